//! The logarithmic axis of figures about measurements, and the labels of its ticks.

/// Horizontal position where names end and axes begin.
pub(super) const LEFT: f64 = 160.0;

/// A logarithmic scale from `low` to `high`, to the right of the names.
pub(super) struct Axis {
    low: f64,
    high: f64,
    /// Horizontal position of the end.
    pub(super) right: f64,
}

impl Axis {
    /// Creates the scale of `values`, which ends at `right`.
    pub(super) fn of(values: impl Iterator<Item = f64>, right: f64) -> Self {
        let (low, high) = values.fold((f64::MAX, 0.0_f64), |(low, high), value| (low.min(value), high.max(value)));
        // Leaves a margin at both ends, and a nonzero length for a single value.
        Self { low: low / 1.08, high: high * 1.08, right }
    }

    /// Returns the horizontal position of a value.
    pub(super) fn at(&self, value: f64) -> f64 {
        LEFT + (value / self.low).ln() / (self.high / self.low).ln() * (self.right - LEFT)
    }

    /// Returns a few tick labels, the roundest numbers possible.
    pub(super) fn ticks(&self) -> Vec<f64> {
        const DIGITS: [&[f64]; 4] = [
            &[1.0],
            &[1.0, 2.0, 5.0],
            &[1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0],
            &[1.0, 1.1, 1.2, 1.3, 1.4, 1.6, 1.8, 2.0, 2.3, 2.6, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0],
        ];
        let exponents = self.low.log10().floor() as i32..=self.high.log10().ceil() as i32;
        let of = |digits: &[f64]| -> Vec<f64> {
            let all = exponents.clone().flat_map(|e| digits.iter().map(move |digit| digit * 10_f64.powi(e)));
            all.filter(|tick| (self.low..=self.high).contains(tick)).collect()
        };
        let all = DIGITS.map(of);
        // Six or more labels would overlap.
        let some = all.iter().find(|ticks| (3..6).contains(&ticks.len()));
        some.or(all.iter().rev().find(|ticks| (1..6).contains(&ticks.len()))).cloned().unwrap_or_default()
    }
}

/// Formats a number without trailing zeros.
pub(super) fn plain(number: f64) -> String {
    format!("{number:.6}").trim_end_matches('0').trim_end_matches('.').to_owned()
}
