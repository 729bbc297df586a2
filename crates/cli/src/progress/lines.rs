//! Progress without a terminal: a line when a stage ends and, if requested, periodic lines before that.

use super::{Display, Tally};
use crate::render::quantity;
use crate::standard_error;
use raddle_core::report::progress::Stage;
use std::time::{Duration, Instant};

/// Time between two lines of a stage with `--progress always`: the log of a day-long batch job stays below ten thousand
/// lines.
pub(super) const HEARTBEAT: Duration = Duration::from_secs(10);

/// One line per stage on standard error.
#[derive(Debug)]
pub(super) struct Lines {
    heartbeat: Option<Duration>,
    last: Instant,
}

impl Lines {
    pub(super) fn new(heartbeat: Option<Duration>) -> Self {
        Self { heartbeat, last: Instant::now() }
    }
}

impl Display for Lines {
    fn advanced(&mut self, stage: Stage, tally: &Tally) {
        let Some(heartbeat) = self.heartbeat else { return };
        if self.last.elapsed() < heartbeat {
            return;
        }
        self.last = Instant::now();
        let done = match tally.total_bytes {
            Some(total) => format!(
                "{} of {} ({})",
                quantity::size(tally.bytes),
                quantity::size(total),
                quantity::share(tally.bytes, total)
            ),
            None => quantity::size(tally.bytes),
        };
        let files = tally.files.map_or(String::new(), |(done, files)| {
            format!(", {} of {} files", quantity::count(done), quantity::count(files))
        });
        let rate = quantity::rate(tally.bytes, tally.started.elapsed().as_secs_f64());
        standard_error::print_line(format_args!("{:<8} {done}, {rate}{files}", stage.name()));
    }

    fn finished(&mut self, _stage: Stage, line: Option<&str>) {
        if let Some(line) = line {
            standard_error::print_line(format_args!("{line}"));
        }
    }

    fn say(&mut self, line: &str) {
        standard_error::print_line(format_args!("{line}"));
    }

    fn close(&mut self) {}
}

/// Display that shows no progress; messages are shown unless `--quiet` is given.
#[derive(Debug, Default)]
pub(super) struct MessagesOnly {
    quiet: bool,
}

impl MessagesOnly {
    pub(super) fn quiet() -> Self {
        Self { quiet: true }
    }
}

impl Display for MessagesOnly {
    fn advanced(&mut self, _stage: Stage, _tally: &Tally) {}

    fn finished(&mut self, _stage: Stage, _line: Option<&str>) {}

    fn say(&mut self, line: &str) {
        if !self.quiet {
            standard_error::print_line(format_args!("{line}"));
        }
    }

    fn close(&mut self) {}
}
