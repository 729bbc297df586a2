//! Progress of a run: bars on a terminal, one line per stage elsewhere, and a log of events in JSON.
//!
//! The other crates send events from any thread; here they are summed per stage and passed on under one lock.
//! Invariant: nothing is written to standard output, which is reserved for results.

mod bars;
mod json_log;
mod lines;

pub use json_log::JsonLog;

use crate::options::running::{VerbosityArgs, Visibility, Warnings};
use crate::render::{escape, quantity};
use raddle::Error;
use raddle_core::report::progress::{Event, Observer, Severity, Stage};
use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// Totals of a stage so far.
#[derive(Debug, Clone, Copy)]
struct Tally {
    bytes: u64,
    items: u64,
    total_bytes: Option<u64>,
    /// Number of finished files and of all, if the run is over many.
    files: Option<(u64, u64)>,
    started: Instant,
}

/// Display of events for the user.
trait Display: Send {
    /// Handles the start or progress of a stage; `tally` holds its totals.
    fn advanced(&mut self, stage: Stage, tally: &Tally);
    /// Handles the end of a stage; `line` summarises it, if there is anything to report.
    fn finished(&mut self, stage: Stage, line: Option<&str>);
    /// Shows a line above the progress.
    fn say(&mut self, line: &str);
    /// Ends the display.
    fn close(&mut self);
}

/// Observer of a run.
pub struct Progress {
    state: Mutex<State>,
    threshold: Option<Severity>,
    warnings: Warnings,
}

struct State {
    tallies: BTreeMap<Stage, Tally>,
    display: Box<dyn Display>,
    log: Option<json_log::JsonLog>,
}

impl std::fmt::Debug for Progress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Progress").finish_non_exhaustive()
    }
}

impl Progress {
    /// Creates the observer that `arguments` request; `command` is the name of the run in the log.
    ///
    /// # Errors
    /// If the log cannot be created.
    pub fn start(arguments: &VerbosityArgs, command: &str) -> Result<Self, Error> {
        let terminal = std::io::stderr().is_terminal();
        let display: Box<dyn Display> = match arguments.progress {
            _ if arguments.quiet => Box::new(lines::MessagesOnly::quiet()),
            Visibility::Never => Box::new(lines::MessagesOnly::default()),
            Visibility::Auto | Visibility::Always if terminal => Box::new(bars::Bars::new()),
            Visibility::Auto => Box::new(lines::Lines::new(None)),
            Visibility::Always => Box::new(lines::Lines::new(Some(lines::HEARTBEAT))),
        };
        let threshold = match (arguments.quiet, arguments.verbose) {
            (true, _) => None,
            (false, 0) => Some(Severity::Warning),
            (false, _) => Some(Severity::Note),
        };
        let log = arguments.log_json.as_deref().map(|path| json_log::JsonLog::create(path, command)).transpose()?;
        let state = Mutex::new(State { tallies: BTreeMap::new(), display, log });
        Ok(Self { state, threshold, warnings: arguments.warnings.clone() })
    }

    /// Creates an observer that shows nothing.
    pub fn silent() -> Self {
        let display = Box::new(lines::MessagesOnly::quiet());
        let state = Mutex::new(State { tallies: BTreeMap::new(), display, log: None });
        Self { state, threshold: None, warnings: Warnings::default() }
    }

    /// Shows a line of text to the user (not with `--quiet`).
    pub fn say(&self, line: &str) {
        self.lock().display.say(line);
    }

    /// Logs the reason for the failure of the run.
    pub fn failed(&self, failure: &Error) {
        if let Some(log) = &mut self.lock().log {
            log.failed(failure);
        }
    }

    /// Closes bars and log. `exit_code` is written to the log.
    ///
    /// # Errors
    /// If any line of the log could not be written.
    pub fn finish(&self, exit_code: u8) -> Result<(), Error> {
        let mut state = self.lock();
        state.display.close();
        state.log.take().map_or(Ok(()), |log| log.finish(exit_code))
    }

    /// Closes bars, and returns the log, which does not tell yet how the run ended.
    pub fn finish_without_outcome(&self) -> Option<JsonLog> {
        let mut state = self.lock();
        state.display.close();
        state.log.take()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Observer for Progress {
    fn event(&self, event: &Event) {
        if let Event::Message { severity: Severity::Warning, text } = event {
            self.warnings.push(text);
        }
        let mut guard = self.lock();
        let state = &mut *guard;
        if let Some(log) = &mut state.log {
            log.event(event);
        }
        match event {
            Event::StageStarted { stage, total_bytes } => {
                let tally =
                    Tally { bytes: 0, items: 0, total_bytes: *total_bytes, files: None, started: Instant::now() };
                state.display.advanced(*stage, &tally);
                state.tallies.insert(*stage, tally);
            }
            Event::Advanced { stage, bytes, items } => {
                let started = Instant::now();
                let new = || Tally { bytes: 0, items: 0, total_bytes: None, files: None, started };
                let tally = state.tallies.entry(*stage).or_insert_with(new);
                tally.bytes = tally.bytes.saturating_add(*bytes);
                tally.items = tally.items.saturating_add(*items);
                state.display.advanced(*stage, tally);
            }
            Event::FileFinished { done, files, .. } => {
                if let Some(tally) = state.tallies.get_mut(&Stage::Encode) {
                    tally.files = Some((*done, *files));
                    state.display.advanced(Stage::Encode, tally);
                }
            }
            Event::StageFinished { stage, elapsed_s } => {
                let tally = state.tallies.remove(stage);
                let line = finished_line(*stage, tally.as_ref(), *elapsed_s);
                state.display.finished(*stage, line.as_deref());
            }
            Event::Message { severity, text } if self.threshold.is_some_and(|least| *severity >= least) => {
                let text = escape::text(text);
                state.display.say(&match severity {
                    Severity::Warning => format!("\x1b[1;33mwarning:\x1b[0m {text}"),
                    Severity::Note => format!("note: {text}"),
                });
            }
            Event::Resumed { tiles, stored_len_bytes } => {
                let (chunks, len) = (quantity::counted(*tiles, "chunk"), quantity::size(*stored_len_bytes));
                state.display.say(&format!("resuming an interrupted run: {chunks} ({len}) are kept"));
            }
            Event::PartsJoined { tiles, stored_len_bytes } => {
                let (chunks, len) = (quantity::counted(*tiles, "chunk"), quantity::size(*stored_len_bytes));
                state.display.say(&format!("all parts are done: publishing {chunks} ({len})"));
            }
            // Event kinds newer than this command only go to the log.
            _ => {}
        }
    }
}

/// Minimum time for which a stage without any counts gets a line.
const MIN_ELAPSED_S: f64 = 0.1;

/// Formats `encode   1.20 GiB in 2.10 s (585 MiB/s)`; `None` for a stage that did almost nothing.
fn finished_line(stage: Stage, tally: Option<&Tally>, elapsed_s: f64) -> Option<String> {
    let took = quantity::seconds(elapsed_s);
    match tally {
        Some(tally) if tally.bytes > 0 => {
            let rate = quantity::rate(tally.bytes, elapsed_s);
            Some(format!("{:<8} {} in {took} ({rate})", stage.name(), quantity::size(tally.bytes)))
        }
        Some(tally) if tally.items > 0 => {
            Some(format!("{:<8} {} in {took}", stage.name(), quantity::counted(tally.items, item_noun(stage))))
        }
        _ if elapsed_s >= MIN_ELAPSED_S => Some(format!("{:<8} {took}", stage.name())),
        _ => None,
    }
}

/// Returns the name of the items that a stage counts.
fn item_noun(stage: Stage) -> &'static str {
    match stage {
        Stage::Scan => "file",
        Stage::Keys => "table",
        Stage::Plan | Stage::Create | Stage::Commit | Stage::Verify => "dataset",
        Stage::Measure => "run",
        _ => "tile",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(bytes: u64, items: u64) -> Tally {
        Tally { bytes, items, total_bytes: None, files: None, started: Instant::now() }
    }

    #[test]
    fn a_finished_stage_reports_what_it_did() {
        let line = |stage, tally: Option<&Tally>, elapsed_s| finished_line(stage, tally, elapsed_s);
        let encoded = line(Stage::Encode, Some(&tally(1 << 30, 7)), 2.0);
        assert_eq!(encoded.as_deref(), Some("encode   1.00 GiB in 2.00 s (512 MiB/s)"));
        assert_eq!(line(Stage::Scan, Some(&tally(0, 16)), 0.5).as_deref(), Some("scan     16 files in 0.50 s"));
        assert_eq!(line(Stage::Plan, None, 1.5).as_deref(), Some("plan     1.50 s"));
        assert_eq!(line(Stage::Plan, None, 0.004), None);
    }
}
