//! Estimation of totals over all datasets, with their uncertainty, from trials of parts.
//!
//! A tried dataset is scaled by its stored length in the inputs: the gain of a part over its inputs predicts the rest
//! better than the length of the part does. A sample drawn by weight represents the datasets that were not tried. All
//! functions are pure. Invariant: a dataset that was tried as a whole has no error.

use super::trial::{AmountUnit, Subject, TrialResult, Trials};

/// Relative deviation of a part of a dataset from the mean of its parts, assumed where no dataset has more than one
/// trial. NOvA-like columns and netCDF fields have 0.05 to 0.2.
const DEVIATION: f64 = 0.2;
/// Relative deviation of a dataset of which only the length in the inputs is known.
const DEVIATION_OF_UNTRIED: f64 = 0.5;
/// Relative deviation of a cost that is a constant of this program: processors in use differ by about twice this value
/// from the one on which it was measured.
const DEVIATION_OF_ASSUMED: f64 = 0.15;
/// Stored bytes per byte of a dataset that no input has, assumed where no such dataset was tried.
const RATIO_OF_RAW: f64 = 0.25;

/// An estimated total and its variance.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Estimate {
    pub total: f64,
    pub variance: f64,
}

impl Estimate {
    /// Estimates a cost from constants instead of trials.
    pub(super) fn assumed(total: f64) -> Self {
        Self { total, variance: (total * DEVIATION_OF_ASSUMED).powi(2) }
    }

    /// Adds an independent estimate.
    pub(super) fn add(&mut self, other: Self) {
        self.total += other.total;
        self.variance += other.variance;
    }

    /// Returns twice the standard error.
    pub(super) fn two_errors(&self) -> f64 {
        2.0 * self.variance.sqrt()
    }

    /// Returns twice the standard error as a share of the total.
    pub(super) fn relative_error(&self) -> f64 {
        if self.variance > 0.0 { self.two_errors() / self.total.max(1e-9) } else { 0.0 }
    }
}

/// Estimates the sum of `value` over the `subjects` for which `counts` holds.
pub(super) fn total(
    subjects: &[Subject],
    trials: &Trials,
    value: impl Fn(&TrialResult) -> f64,
    counts: impl Fn(&Subject) -> bool,
) -> Estimate {
    let of_subjects: Vec<&[TrialResult]> =
        trials.of_large.chunk_by(|one, other| one.subject == other.subject).collect();
    let fits: Vec<(usize, Fit)> = of_subjects.iter().map(|tried| (tried[0].subject, Fit::of(tried, &value))).collect();
    let deviations = fits.iter().filter_map(|(_, fit)| fit.deviation);
    let (sum, count) = deviations.fold((0.0, 0), |(sum, count), deviation| (sum + deviation * deviation, count + 1));
    let usual_deviation = if count > 0 { (sum / f64::from(count)).sqrt() } else { DEVIATION };
    let mut all = Estimate::default();
    let mut is_large = vec![false; subjects.len()];
    for (at, fit) in fits.iter().filter(|(at, _)| counts(&subjects[*at])) {
        is_large[*at] = true;
        all.add(fit.scaled_to(subjects[*at].amount, usual_deviation));
    }
    for at in &trials.untried {
        is_large[*at] = true;
    }
    for unit in [AmountUnit::Stored, AmountUnit::Raw] {
        let is_of_unit = |at: usize| subjects[at].unit == unit && counts(&subjects[at]);
        let rest = (0..subjects.len()).filter(|&at| !is_large[at] && is_of_unit(at));
        let amount: f64 = rest.map(|at| subjects[at].amount).sum();
        let drawn: Vec<f64> = trials
            .of_small
            .iter()
            .filter(|tried| is_of_unit(tried.subject) && tried.amount > 0.0)
            .map(|tried| value(tried) / tried.amount)
            .collect();
        let usual = usual_ratio(subjects, &fits, unit, &counts).or_else(|| mean(&drawn));
        all.add(match mean(&drawn) {
            Some(ratio) => {
                let variance = match drawn.len() {
                    1 => (ratio * DEVIATION_OF_UNTRIED).powi(2),
                    count => {
                        drawn.iter().map(|drawn| (drawn - ratio).powi(2)).sum::<f64>() / (count * (count - 1)) as f64
                    }
                };
                Estimate { total: ratio * amount, variance: variance * amount * amount }
            }
            None => guess(amount, unit, usual),
        });
        let untried = trials.untried.iter().filter(|&&at| is_of_unit(at)).map(|&at| subjects[at].amount).sum();
        all.add(guess(untried, unit, usual));
    }
    all
}

/// Estimates datasets of which no part was tried.
fn guess(amount: f64, unit: AmountUnit, usual_ratio: Option<f64>) -> Estimate {
    let ratio = usual_ratio.unwrap_or(if unit == AmountUnit::Stored { 1.0 } else { RATIO_OF_RAW });
    let total = ratio * amount;
    Estimate { total, variance: (total * DEVIATION_OF_UNTRIED).powi(2) }
}

/// Returns the ratio over all tried datasets of a unit.
fn usual_ratio(
    subjects: &[Subject],
    fits: &[(usize, Fit)],
    unit: AmountUnit,
    counts: &impl Fn(&Subject) -> bool,
) -> Option<f64> {
    let of_unit = fits.iter().filter(|(at, _)| subjects[*at].unit == unit && counts(&subjects[*at]));
    let (total, amount) = of_unit.fold((0.0, 0.0), |(total, amount), (at, fit)| {
        (total + fit.ratio * subjects[*at].amount, amount + subjects[*at].amount)
    });
    (amount > 0.0).then(|| total / amount)
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// The trials of one dataset, summarised.
struct Fit {
    /// Value per unit of the dataset.
    ratio: f64,
    /// Number of trials.
    count: f64,
    /// Amount of the dataset that was tried.
    amount: f64,
    /// Standard deviation of trials, as a share of their mean; `None` with a single trial.
    deviation: Option<f64>,
}

impl Fit {
    fn of(tried: &[TrialResult], value: &impl Fn(&TrialResult) -> f64) -> Self {
        let amount: f64 = tried.iter().map(|tried| tried.amount).sum();
        let total: f64 = tried.iter().map(value).sum();
        let ratio = if amount > 0.0 { total / amount } else { 0.0 };
        let residuals: Vec<f64> = tried.iter().map(|tried| value(tried) - ratio * tried.amount).collect();
        let mean_value = total / tried.len() as f64;
        // Trials are in the order of their rows. A steady trend along the rows is not an error of the mean.
        let steps = residuals.windows(2).map(|pair| (pair[1] - pair[0]).powi(2));
        let variance = steps.sum::<f64>() / (2 * tried.len().saturating_sub(1)).max(1) as f64;
        let deviation = (tried.len() > 1 && mean_value > 0.0).then(|| variance.sqrt() / mean_value);
        Self { ratio, count: tried.len() as f64, amount, deviation }
    }

    /// Estimates the whole dataset.
    fn scaled_to(&self, amount: f64, usual_deviation: f64) -> Estimate {
        let total = self.ratio * amount;
        let untried_share = (1.0 - self.amount / amount).clamp(0.0, 1.0);
        let untried_share = if untried_share < 1e-6 { 0.0 } else { untried_share };
        let deviation = self.deviation.unwrap_or(usual_deviation);
        Estimate { total, variance: (total * deviation).powi(2) / self.count * untried_share }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subject(amount: f64) -> Subject {
        Subject { array: 0, unit: AmountUnit::Stored, amount, stored_len_bytes: None, is_readable: true }
    }

    fn tried(subject: usize, amount: f64, stored_len_bytes: f64) -> TrialResult {
        TrialResult { subject, amount, stored_len_bytes, cpu_s: 0.0 }
    }

    fn stored(subjects: &[Subject], trials: &Trials) -> Estimate {
        total(subjects, trials, |tried| tried.stored_len_bytes, |_| true)
    }

    #[test]
    fn what_was_tried_as_a_whole_is_known() {
        let trials = Trials { of_large: vec![tried(0, 100.0, 30.0), tried(1, 50.0, 60.0)], ..Trials::default() };
        assert_eq!(stored(&[subject(100.0), subject(50.0)], &trials), Estimate { total: 90.0, variance: 0.0 });
    }

    #[test]
    fn each_dataset_has_its_own_gain() {
        let of_large = vec![tried(0, 10.0, 1.0), tried(0, 10.0, 1.0), tried(1, 10.0, 9.0), tried(1, 10.0, 9.0)];
        let of_small = vec![tried(2, 1.0, 0.5), tried(3, 1.0, 0.5)];
        let trials = Trials { of_large, of_small, ..Trials::default() };
        let subjects = [1000.0, 500.0, 10.0, 10.0].map(subject);
        let found = stored(&subjects, &trials);
        assert_eq!((found.total, found.relative_error()), (100.0 + 450.0 + 10.0, 0.0));
    }

    #[test]
    fn trials_that_differ_leave_an_error_and_a_trend_a_small_one() {
        let error = |stored_len_bytes: &[f64]| {
            let of_large = stored_len_bytes.iter().map(|&len_bytes| tried(0, 10.0, len_bytes)).collect();
            let found = stored(&[subject(1e6)], &Trials { of_large, ..Trials::default() });
            found.relative_error()
        };
        let trend: Vec<f64> = (0..16).map(f64::from).collect();
        let noise: Vec<f64> = (0..16).map(|at| f64::from(at * 7 % 16)).collect();
        assert!(error(&trend) < 0.06 && error(&noise) > 0.25, "{} {}", error(&trend), error(&noise));
        assert!((0.3..0.5).contains(&error(&[5.0])), "one trial: the usual deviation");
    }

    #[test]
    fn what_cannot_be_tried_is_a_guess() {
        let trials = Trials { of_large: vec![tried(0, 10.0, 5.0)], untried: vec![1], ..Trials::default() };
        let found = stored(&[subject(10.0), subject(90.0)], &trials);
        assert_eq!(found.total, 50.0);
        assert!(found.relative_error() > 0.5);
    }
}
