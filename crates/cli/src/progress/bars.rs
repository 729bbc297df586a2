//! Progress on a terminal: a bar for each active stage, with bytes, rate and remaining time.

use super::{Display, Tally};
use crate::standard_error;
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use raddle_core::report::progress::Stage;
use std::collections::BTreeMap;
use std::time::Duration;

/// Templates of a bar by the minimum width of the terminal: a line that wraps would be redrawn below itself.
const WITH_TOTAL: [(u16, &str); 4] = [
    (96, "{prefix:<8} {bar:32} {binary_bytes:>10} of {binary_total_bytes}, {binary_bytes_per_sec}, {msg}{eta} left"),
    (64, "{prefix:<8} {wide_bar} {binary_bytes:>10} of {binary_total_bytes}, {msg}{eta} left"),
    (40, "{prefix:<8} {wide_bar} {percent:>3} %, {eta} left"),
    (0, "{prefix} {percent} %"),
];
const WITHOUT_TOTAL: [(u16, &str); 3] = [
    (64, "{prefix:<8} {spinner} {binary_bytes} {msg} {elapsed}"),
    (40, "{prefix:<8} {spinner} {binary_bytes} {elapsed}"),
    (0, "{prefix} {spinner}"),
];
/// Assumed width of a terminal that does not report it, in columns.
const TYPICAL_COLUMNS: u16 = 80;
/// Interval at which a bar without events is redrawn, so that its clock advances.
const TICK: Duration = Duration::from_millis(200);

/// Progress bars on standard error.
#[derive(Debug)]
pub(super) struct Bars {
    all: MultiProgress,
    bars: BTreeMap<Stage, ProgressBar>,
}

impl Bars {
    pub(super) fn new() -> Self {
        Self { all: MultiProgress::with_draw_target(ProgressDrawTarget::stderr_with_hz(10)), bars: BTreeMap::new() }
    }

    fn bar(&mut self, stage: Stage, tally: &Tally) -> &ProgressBar {
        self.bars.entry(stage).or_insert_with(|| {
            let (bar, templates) = match tally.total_bytes {
                Some(total) => (ProgressBar::new(total), &WITH_TOTAL[..]),
                None => (ProgressBar::no_length(), &WITHOUT_TOTAL[..]),
            };
            let template = fitting(templates, columns());
            // The templates are constants that are tested below; a style that fails to parse is replaced by the default
            // one.
            let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
            let bar = self.all.add(bar.with_style(style.progress_chars("█▉▊▋▌▍▎▏ ")).with_prefix(stage.name()));
            bar.enable_steady_tick(TICK);
            bar
        })
    }
}

/// Returns the width of the terminal at standard error, in columns.
fn columns() -> u16 {
    let size = rustix::termios::tcgetwinsize(std::io::stderr());
    size.ok().map(|size| size.ws_col).filter(|columns| *columns > 0).unwrap_or(TYPICAL_COLUMNS)
}

/// Returns the most detailed template that fits `columns`.
fn fitting<'t>(templates: &[(u16, &'t str)], columns: u16) -> &'t str {
    templates.iter().find(|(least, _)| columns >= *least).map_or("{prefix}", |(_, template)| template)
}

impl Display for Bars {
    fn advanced(&mut self, stage: Stage, tally: &Tally) {
        let bar = self.bar(stage, tally);
        bar.set_position(tally.bytes);
        if let Some((done, files)) = tally.files {
            let (done, files) = (crate::render::quantity::count(done), crate::render::quantity::count(files));
            bar.set_message(format!("{done} of {files} files, "));
        } else if tally.total_bytes.is_none() && tally.items > 0 {
            bar.set_message(crate::render::quantity::counted(tally.items, super::item_noun(stage)));
        }
    }

    fn finished(&mut self, stage: Stage, line: Option<&str>) {
        if let Some(bar) = self.bars.remove(&stage) {
            bar.finish_and_clear();
            self.all.remove(&bar);
        }
        if let Some(line) = line {
            self.say(line);
        }
    }

    fn say(&mut self, line: &str) {
        self.all.suspend(|| standard_error::print_line(format_args!("{line}")));
    }

    fn close(&mut self) {
        for bar in std::mem::take(&mut self.bars).into_values() {
            bar.finish_and_clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_are_valid() {
        for (_, template) in WITH_TOTAL.iter().chain(&WITHOUT_TOTAL) {
            ProgressStyle::with_template(template).unwrap();
        }
    }

    #[test]
    fn narrow_terminals_get_less() {
        assert_eq!(fitting(&WITH_TOTAL, 200), WITH_TOTAL[0].1);
        assert_eq!(fitting(&WITH_TOTAL, 80), WITH_TOTAL[1].1);
        assert_eq!(fitting(&WITH_TOTAL, 60), WITH_TOTAL[2].1);
        assert_eq!(fitting(&WITHOUT_TOTAL, 1), WITHOUT_TOTAL[2].1);
    }
}
