//! The log of a run: one JSON object per line.
//!
//! The first line is `run_started`, the last `run_finished`, preceded by `run_failed` if the run failed. In between are
//! the engine's events, each with `unix_s` (time) and `elapsed_s` (time since the start). `advanced` events are summed
//! per stage and written at most twice a second, because a job has millions of tiles. The sum of a stage's `bytes` is
//! still its total.

use raddle::Error;
use raddle_core::report::progress::{Event, Stage};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Minimum time between two `advanced` lines of a stage.
const INTERVAL: Duration = Duration::from_millis(500);

/// A log of events, a line of JSON each, which is open for writing.
#[derive(Debug)]
pub struct JsonLog {
    path: PathBuf,
    out: BufWriter<File>,
    started: Instant,
    pending: BTreeMap<Stage, UnwrittenAdvances>,
    failed: Option<std::io::Error>,
}

/// Advances not written yet.
#[derive(Debug)]
struct UnwrittenAdvances {
    bytes: u64,
    items: u64,
    written: Instant,
}

#[derive(Serialize)]
struct Line<'a, T> {
    unix_s: f64,
    elapsed_s: f64,
    #[serde(flatten)]
    event: &'a T,
}

/// Events of the command as a whole.
#[derive(Serialize)]
#[serde(rename_all = "snake_case", tag = "event")]
enum Frame<'a> {
    #[serde(rename = "run_started")]
    Started { command: &'a str, version: &'a str },
    #[serde(rename = "run_failed")]
    Failed(&'a Value),
    #[serde(rename = "run_finished")]
    Finished { exit_code: u8 },
}

impl JsonLog {
    pub(super) fn create(path: &Path, command: &str) -> Result<Self, Error> {
        let file = File::create(path).map_err(|cause| Error::writing(path, &cause))?;
        let mut log = Self {
            path: path.to_path_buf(),
            out: BufWriter::new(file),
            started: Instant::now(),
            pending: BTreeMap::new(),
            failed: None,
        };
        log.write(&Frame::Started { command, version: env!("CARGO_PKG_VERSION") });
        Ok(log)
    }

    pub(super) fn event(&mut self, event: &Event) {
        match event {
            Event::Advanced { stage, bytes, items } => {
                let written = self.started;
                let pending = self.pending.entry(*stage).or_insert(UnwrittenAdvances { bytes: 0, items: 0, written });
                pending.bytes = pending.bytes.saturating_add(*bytes);
                pending.items = pending.items.saturating_add(*items);
                if pending.written.elapsed() >= INTERVAL {
                    self.write_pending(*stage);
                }
            }
            Event::StageFinished { stage, .. } => {
                self.write_pending(*stage);
                self.write(event);
            }
            other => self.write(other),
        }
    }

    /// Writes the reason for the failure of the run.
    pub(super) fn failed(&mut self, failure: &Error) {
        self.write_failure(&serde_json::to_value(failure.record()).unwrap_or_default());
    }

    /// Writes the reason for the failure of another rank, given as the output of `--json`, and the last line.
    ///
    /// # Errors
    /// If any line could not be written.
    pub fn finish_with_failure(mut self, json: &str, exit_code: u8) -> Result<(), Error> {
        let answer: Value = serde_json::from_str(json).unwrap_or_default();
        self.write_failure(&answer["error"]);
        self.finish(exit_code)
    }

    /// Writes the last line and all buffered data.
    pub(super) fn finish(mut self, exit_code: u8) -> Result<(), Error> {
        self.write_all_pending();
        self.write(&Frame::Finished { exit_code });
        match self.failed.map_or_else(|| self.out.flush(), Err) {
            Ok(()) => Ok(()),
            Err(cause) => Err(Error::writing(&self.path, &cause)),
        }
    }

    fn write_failure(&mut self, failure: &Value) {
        self.write_all_pending();
        self.write(&Frame::Failed(failure));
    }

    fn write_all_pending(&mut self) {
        Stage::ALL.into_iter().for_each(|stage| self.write_pending(stage));
    }

    fn write_pending(&mut self, stage: Stage) {
        let Some(pending) = self.pending.get_mut(&stage) else { return };
        let (bytes, items) = (std::mem::take(&mut pending.bytes), std::mem::take(&mut pending.items));
        pending.written = Instant::now();
        if bytes > 0 || items > 0 {
            self.write(&Event::Advanced { stage, bytes, items });
        }
    }

    /// Writes a line; the first failure is kept and ends the log, not the run.
    fn write(&mut self, event: &impl Serialize) {
        if self.failed.is_some() {
            return;
        }
        let unix_s = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |time| time.as_secs_f64());
        let line = Line { unix_s, elapsed_s: self.started.elapsed().as_secs_f64(), event };
        let written = serde_json::to_writer(&mut self.out, &line).map_err(std::io::Error::from);
        // A log is read while the run continues and after it has been killed, so every line is flushed.
        let written = written.and_then(|()| self.out.write_all(b"\n")).and_then(|()| self.out.flush());
        self.failed = written.err();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_an_object_and_advances_add_up() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log.json");
        let mut log = JsonLog::create(&path, "merge").unwrap();
        log.event(&Event::StageStarted { stage: Stage::Encode, total_bytes: Some(1000) });
        for _ in 0..1000 {
            log.event(&Event::Advanced { stage: Stage::Encode, bytes: 1, items: 1 });
        }
        log.event(&Event::StageFinished { stage: Stage::Encode, elapsed_s: 0.1 });
        log.finish(0).unwrap();

        let text = std::fs::read_to_string(&path).unwrap();
        let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert!(lines.len() < 20, "{} lines", lines.len());
        assert_eq!((&lines[0]["event"], &lines[0]["command"]), (&"run_started".into(), &"merge".into()));
        let bytes = lines.iter().filter(|line| line["event"] == "advanced").filter_map(|line| line["bytes"].as_u64());
        assert_eq!(bytes.sum::<u64>(), 1000);
        let last = lines.last().unwrap();
        assert_eq!((&last["event"], &last["exit_code"]), (&"run_finished".into(), &0.into()));
        assert!(lines.iter().all(|line| line["unix_s"].is_f64() && line["elapsed_s"].is_f64()));
    }

    #[test]
    fn a_full_device_is_an_error_at_the_end() {
        let mut log = JsonLog::create(Path::new("/dev/full"), "merge").unwrap();
        log.event(&Event::StageStarted { stage: Stage::Scan, total_bytes: None });
        assert!(log.finish(0).is_err());
    }
}
