//! Distributions of times as curves: the share of runs up to each time.

use crate::measured::axis::{Axis, LEFT, plain};
use crate::measured::{Finding, Findings};
use crate::svg::{Anchor, COLOURS, Figure, WIDTH};

/// Maximum number of arms whose distribution is drawn, including the default.
const MAX_CURVES: usize = 6;

/// A name with sorted times.
pub(super) type Curve<'a> = (&'a str, Vec<f64>);

/// Returns the legend of the curves with these names.
pub(super) fn legend_of<'a>(names: impl Iterator<Item = &'a str>) -> Vec<(String, &'static str)> {
    names.enumerate().map(|(place, name)| (name.to_owned(), COLOURS[place % COLOURS.len()])).collect()
}

/// Draws distributions below `top`, each in the colour of its index; the scale below them takes 26 units.
pub(super) fn distribute(figure: &mut Figure, top: f64, height: f64, curves: &[Curve<'_>]) {
    // Space for the shares at the side.
    const SIDE: f64 = 46.0;
    let axis = Axis::of(curves.iter().flat_map(|(_, times)| times.iter().copied()), WIDTH);
    // The full width, because there are no names at the side.
    let x = |time: f64| SIDE + (axis.at(time) - LEFT) / (axis.right - LEFT) * (WIDTH - SIDE - 4.0);
    for share in [0.0, 0.5, 1.0] {
        let y = top + height * (1.0 - share);
        figure.line([SIDE, y, WIDTH, y]);
        figure.text(SIDE - 6.0, y + 4.0, Anchor::End, SIDE, &format!("{:.0} %", 100.0 * share));
    }
    for (place, (name, times)) in curves.iter().enumerate().filter(|(_, (_, times))| !times.is_empty()) {
        let share = |count: usize| top + height * (1.0 - count as f64 / times.len() as f64);
        let steps = times.iter().enumerate().flat_map(|(at, time)| [[x(*time), share(at)], [x(*time), share(at + 1)]]);
        figure.stroke(&steps.collect::<Vec<_>>(), 1.5, COLOURS[place % COLOURS.len()], name);
    }
    for tick in axis.ticks() {
        figure.text(x(tick), top + height + 18.0, Anchor::Middle, 60.0, &time(tick));
    }
}

/// Returns the default and the arms whose ratios are farthest from 1.
pub(super) fn chosen(findings: &Findings) -> Vec<&Finding> {
    let Some((default, others)) = findings.arms.split_first() else { return Vec::new() };
    let distance = |finding: &&Finding| {
        finding.estimate.filter(|estimate| estimate.is_fit()).map_or(0.0, |estimate| estimate.ratio.ln().abs())
    };
    let mut others: Vec<_> = others.iter().collect();
    others.sort_by(|a, b| distance(b).total_cmp(&distance(a)));
    std::iter::once(default).chain(others.into_iter().take(MAX_CURVES - 1)).collect()
}

/// Formats a round number of seconds in a unit without leading zeros: `50 µs`, `1.5 ms`, `20 s`.
fn time(tick_s: f64) -> String {
    match tick_s {
        s if s < 0.999e-3 => format!("{} µs", plain(s * 1e6)),
        s if s < 0.999 => format!("{} ms", plain(s * 1e3)),
        s => format!("{} s", plain(s)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_times_are_distinguished() {
        let texts = [2e-6, 1.1e-5, 5e-5, 1e-3, 0.0015, 0.5, 1.0, 20.0].map(time);
        assert_eq!(texts, ["2 µs", "11 µs", "50 µs", "1 ms", "1.5 ms", "500 ms", "1 s", "20 s"]);
    }
}
