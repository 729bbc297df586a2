//! What a number of noisy runs says: paired ratios, their interval, and a verdict that may be "cannot tell".
//!
//! Runs come in blocks. A block runs every arm once, in an order of its own, so that what drifts (another program, a warm
//! cache, a clock) meets all arms alike; arm 0 is the default, and each other arm is compared with the default of its own
//! block. Not for running anything, nor for what is compared. Invariants: the same samples and seed give the same figures;
//! nothing is said from fewer than [`LEAST_BLOCKS`] blocks.

use crate::student;
use raddle_core::random::Random;
use serde::{Deserialize, Serialize};

/// Fewest blocks from which something is said: the median of 5 lies between the smallest and the largest with 94 %.
pub const LEAST_BLOCKS: usize = 5;

/// Bootstrap samples: the 2.5 % bounds then rest on 50 of them at each end.
const RESAMPLES: usize = 2000;

/// Probability of error, for intervals and verdicts.
const ERROR: f64 = 0.05;

/// Ratios nearer to 1 than this matter to nobody: 5 %.
pub const MARGIN: f64 = 0.05;

/// The arms of block `block` in the order in which they run: a permutation of `0..arms`.
pub fn order_of_block(seed: u64, block: u64, arms: usize) -> Vec<usize> {
    let mut random = Random::of(&[seed, block]);
    let mut order: Vec<usize> = (0..arms).collect();
    // Fisher and Yates.
    for last in (1..arms).rev() {
        order.swap(last, random.below(last as u64 + 1) as usize);
    }
    order
}

/// What the blocks say of one arm against the default.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// Median of the paired ratios.
    pub ratio: f64,
    /// Bootstrap 95 % confidence interval of `ratio`.
    pub interval: [f64; 2],
    /// Blocks that both arms ran in.
    pub blocks: u32,
    /// Probability of ratios this far from 1 if there were no effect: paired t test of their logarithms.
    pub p: f64,
}

/// Whether an arm is better than the default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It takes less.
    Better,
    /// It takes more.
    Worse,
    /// If there is an effect, it is below [`MARGIN`].
    NoEffect,
    /// The runs differ too much among themselves.
    CannotTell,
}

impl Verdict {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Better => "better",
            Self::Worse => "worse",
            Self::NoEffect => "no effect",
            Self::CannotTell => "cannot tell",
        }
    }
}

/// Compares `candidate` with `default`, values of the same blocks in the same order; `None` from fewer than
/// [`LEAST_BLOCKS`] blocks, or where a value is not above 0 and has no ratio.
pub fn estimate(default: &[f64], candidate: &[f64], seed: u64) -> Option<Estimate> {
    let pairs = default.iter().zip(candidate);
    if pairs.len() < LEAST_BLOCKS || pairs.clone().any(|(a, b)| !(*a > 0.0 && *b > 0.0 && (b / a).is_finite())) {
        return None;
    }
    let logarithms: Vec<f64> = pairs.map(|(default, candidate)| (candidate / default).ln()).collect();
    let interval = bootstrap_interval(&logarithms, seed);
    Some(Estimate {
        ratio: median(&mut logarithms.clone()).exp(),
        interval: interval.map(f64::exp),
        blocks: u32::try_from(logarithms.len()).unwrap_or(u32::MAX),
        p: student::p_of_mean(&logarithms),
    })
}

/// The interval of the median of `values`: percentiles of the medians of resamples.
fn bootstrap_interval(values: &[f64], seed: u64) -> [f64; 2] {
    let mut random = Random::of(&[seed, values.len() as u64]);
    let mut resample = vec![0.0; values.len()];
    let mut medians = Vec::with_capacity(RESAMPLES);
    for _ in 0..RESAMPLES {
        resample.fill_with(|| values[random.below(values.len() as u64) as usize]);
        medians.push(median(&mut resample));
    }
    medians.sort_by(f64::total_cmp);
    let tail = (RESAMPLES as f64 * ERROR / 2.0) as usize;
    [medians[tail], medians[RESAMPLES - 1 - tail]]
}

/// The median; sorts. Of no values, not a number.
pub fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => f64::NAN,
        len if len % 2 == 1 => values[middle],
        _ => f64::midpoint(values[middle - 1], values[middle]),
    }
}

/// Standard deviation over mean; 0 of fewer than two values.
pub fn variation(values: &[f64]) -> f64 {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    if values.len() < 2 || mean <= 0.0 {
        return 0.0;
    }
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (squares / (values.len() - 1) as f64).sqrt() / mean
}

/// Probabilities of a family of tests, corrected so that the chance of any false one stays what it is for one (Holm 1979):
/// the k-th smallest of n counts n - k + 1 times, and never less than those before it.
pub fn holm(probabilities: &[f64]) -> Vec<f64> {
    let mut by_size: Vec<usize> = (0..probabilities.len()).collect();
    by_size.sort_by(|a, b| probabilities[*a].total_cmp(&probabilities[*b]));
    let (mut corrected, mut largest) = (vec![1.0; probabilities.len()], 0.0_f64);
    for (place, index) in by_size.iter().enumerate() {
        largest = largest.max(probabilities[*index] * (probabilities.len() - place) as f64).min(1.0);
        corrected[*index] = largest;
    }
    corrected
}

/// The verdict on an estimate whose probability, corrected for the family it belongs to, is `corrected_p`.
pub fn verdict(estimate: Option<&Estimate>, corrected_p: f64) -> Verdict {
    let Some(Estimate { interval: [low, high], .. }) = estimate else { return Verdict::CannotTell };
    if *low >= 1.0 - MARGIN && *high <= 1.0 + MARGIN {
        Verdict::NoEffect
    } else if corrected_p > ERROR {
        Verdict::CannotTell
    } else if *high < 1.0 {
        Verdict::Better
    } else if *low > 1.0 {
        Verdict::Worse
    } else {
        Verdict::CannotTell
    }
}

/// Verdicts on a family of estimates.
pub fn verdicts(estimates: &[Option<Estimate>]) -> Vec<Verdict> {
    let probabilities: Vec<f64> =
        estimates.iter().map(|estimate| estimate.map_or(1.0, |estimate| estimate.p)).collect();
    let corrected = holm(&probabilities);
    estimates.iter().zip(corrected).map(|(estimate, p)| verdict(estimate.as_ref(), p)).collect()
}

/// When an arm has run often enough.
///
/// It does not look at whether the interval excludes 1, for who stops at the first lucky moment finds an effect everywhere;
/// an interval beyond `clear` on one side is beyond luck.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct StopRule {
    /// Fewest blocks, [`LEAST_BLOCKS`] at least.
    pub least_blocks: usize,
    /// Most blocks.
    pub most_blocks: usize,
    /// Half of the interval, as a share of the ratio, that is narrow enough.
    pub half_width: f64,
    /// Ratios all beyond this, or all below its inverse, need no narrower interval.
    pub clear: f64,
}

impl Default for StopRule {
    fn default() -> Self {
        Self { least_blocks: LEAST_BLOCKS, most_blocks: 12, half_width: MARGIN, clear: 1.5 }
    }
}

impl StopRule {
    /// Whether an arm that ran in `blocks` blocks is done.
    pub fn is_done(&self, blocks: usize, estimate: Option<&Estimate>) -> bool {
        if blocks >= self.most_blocks {
            return true;
        }
        let Some(Estimate { ratio, interval: [low, high], .. }) = estimate else { return false };
        let is_narrow = (high - low) / 2.0 <= self.half_width * ratio;
        let is_clear = *low >= self.clear || *high <= 1.0 / self.clear;
        blocks >= self.least_blocks.max(LEAST_BLOCKS) && (is_narrow || is_clear)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Times of `blocks` blocks with log-normal noise: of the default, and of a candidate with this ratio.
    fn made(seed: u64, blocks: usize, noise: f64, ratio: f64) -> (Vec<f64>, Vec<f64>) {
        let mut random = Random::of(&[seed, 77]);
        let mut time = |mean: f64| mean * (noise * random.normal()).exp();
        (0..blocks).map(|_| (time(2.0), time(2.0 * ratio))).unzip()
    }

    fn verdict_of(seed: u64, blocks: usize, noise: f64, ratio: f64) -> Verdict {
        let (default, candidate) = made(seed, blocks, noise, ratio);
        verdicts(&[estimate(&default, &candidate, seed)])[0]
    }

    fn share(rounds: u64, mut is_so: impl FnMut(u64) -> bool) -> f64 {
        (0..rounds).filter(|seed| is_so(*seed)).count() as f64 / rounds as f64
    }

    #[test]
    fn orders_are_permutations_that_differ_and_repeat() {
        let mut first = [0; 4];
        for block in 0..4000 {
            let order = order_of_block(1, block, 4);
            first[order[0]] += 1;
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, [0, 1, 2, 3]);
            assert_eq!(order, order_of_block(1, block, 4));
        }
        // Each arm is first in a quarter of the blocks: 1000 with a standard deviation of 27.
        assert!(first.iter().all(|count| (880..1120).contains(count)), "{first:?}");
        assert_eq!(order_of_block(1, 1, 0), [0_usize; 0]);
    }

    #[test]
    fn known_samples_give_known_figures() {
        let default = [1.0, 2.0, 4.0, 8.0, 16.0];
        let found = estimate(&default, &default.map(|time| time * 3.0), 1).unwrap();
        assert!((found.ratio - 3.0).abs() < 1e-12 && found.blocks == 5);
        assert!(found.interval.iter().all(|bound| (bound - 3.0).abs() < 1e-12));
        assert_eq!(found.p, 0.0);
        // Ratios 1, 2, 3, 4, 5: the bounds of the median of 5 are the smallest and the largest.
        let found = estimate(&[1.0; 5], &[1.0, 2.0, 3.0, 4.0, 5.0], 1).unwrap();
        assert!((found.ratio - 3.0).abs() < 1e-12, "{found:?}");
        assert!((found.interval[0] - 1.0).abs() < 1e-12 && (found.interval[1] - 5.0).abs() < 1e-12, "{found:?}");
        assert!((median(&mut [4.0, 1.0, 3.0, 2.0]) - 2.5).abs() < 1e-12);
        assert!((variation(&[9.0, 10.0, 11.0]) - 0.1).abs() < 1e-12);
    }

    #[test]
    fn little_or_nothing_measured_says_nothing() {
        assert_eq!(estimate(&[1.0; 4], &[9.0; 4], 1), None);
        assert_eq!(estimate(&[0.0; 6], &[9.0; 6], 1), None);
        assert_eq!(estimate(&[1.0; 6], &[f64::NAN; 6], 1), None);
        assert_eq!(verdicts(&[None]), [Verdict::CannotTell]);
    }

    #[test]
    fn the_interval_covers_the_truth() {
        for blocks in [5, 8, 12] {
            let covered = share(1000, |seed| {
                let (default, candidate) = made(seed, blocks, 0.1, 1.3);
                let [low, high] = estimate(&default, &candidate, seed).unwrap().interval;
                low <= 1.3 && 1.3 <= high
            });
            assert!(covered >= 0.91, "{blocks} blocks: {covered}");
        }
    }

    #[test]
    fn no_effect_is_rarely_called_one() {
        for noise in [0.02, 0.1, 0.5] {
            for blocks in [5, 8, 12] {
                let called = |seed| matches!(verdict_of(seed, blocks, noise, 1.0), Verdict::Better | Verdict::Worse);
                let wrong = share(1000, called);
                // 5 % with a standard deviation of 0.7 %.
                assert!(wrong <= 0.07, "noise {noise}, {blocks} blocks: {wrong}");
            }
        }
    }

    #[test]
    fn effects_are_found() {
        let better =
            |blocks, noise, ratio| share(300, |seed| verdict_of(seed, blocks, noise, ratio) == Verdict::Better);
        assert!(better(8, 0.1, 0.7) > 0.95, "{}", better(8, 0.1, 0.7));
        assert!(better(12, 0.05, 0.9) > 0.9, "{}", better(12, 0.05, 0.9));
        let worse = share(300, |seed| verdict_of(seed, 5, 0.15, 6.0) == Verdict::Worse);
        assert!(worse > 0.99, "{worse}");
        // A quiet machine can say that there is nothing, a noisy one cannot.
        let nothing = share(300, |seed| verdict_of(seed, 8, 0.01, 1.0) == Verdict::NoEffect);
        assert!(nothing > 0.95, "{nothing}");
        let open = share(300, |seed| verdict_of(seed, 8, 0.5, 1.0) == Verdict::CannotTell);
        assert!(open > 0.9, "{open}");
    }

    #[test]
    fn a_family_is_held_to_the_error_of_one() {
        let any_called = share(300, |seed| {
            let family: Vec<_> = (0..20)
                .map(|arm| {
                    let (default, candidate) = made(seed * 1000 + arm, 8, 0.1, 1.0);
                    estimate(&default, &candidate, seed)
                })
                .collect();
            verdicts(&family).iter().any(|verdict| matches!(verdict, Verdict::Better | Verdict::Worse))
        });
        // Uncorrected it would be 1 - 0.95^20 = 64 %.
        assert!(any_called < 0.09, "{any_called}");
        let corrected = holm(&[0.01, 0.04, 0.03, 0.5]);
        let expected = [0.04, 0.09, 0.09, 0.5];
        assert!(corrected.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-12), "{corrected:?}");
        assert!(holm(&[]).is_empty());
    }

    /// Runs of three equal arms while the machine gets slower with each run.
    fn drifting(seed: u64, order: impl Fn(u64) -> Vec<usize>) -> Verdict {
        let mut random = Random::of(&[seed, 5]);
        let (mut times, mut slowness) = ([const { Vec::new() }; 3], 1.0);
        for block in 0..8 {
            for arm in order(block) {
                slowness *= 1.03;
                times[arm].push(slowness * (0.02 * random.normal()).exp());
            }
        }
        verdicts(&[estimate(&times[0], &times[2], seed)])[0]
    }

    #[test]
    fn drift_is_no_effect_where_the_order_is_drawn() {
        let is_called = |verdict| matches!(verdict, Verdict::Better | Verdict::Worse);
        let drawn = share(500, |seed| is_called(drifting(seed, |block| order_of_block(seed, block, 3))));
        assert!(drawn < 0.08, "{drawn}");
        // The same in a fixed order: the last arm is always called worse.
        let fixed = share(100, |seed| drifting(seed, |_| vec![0, 1, 2]) == Verdict::Worse);
        assert!(fixed > 0.9, "{fixed}");
    }

    #[test]
    fn the_rule_stops_at_a_narrow_or_clear_interval_and_at_the_end() {
        let rule = StopRule::default();
        let of =
            |ratio: f64, width: f64| Estimate { ratio, interval: [ratio - width, ratio + width], blocks: 5, p: 0.5 };
        assert!(!rule.is_done(4, Some(&of(1.0, 0.01))));
        assert!(rule.is_done(5, Some(&of(1.0, 0.01))));
        assert!(!rule.is_done(5, Some(&of(1.0, 0.1))));
        assert!(!rule.is_done(5, Some(&of(1.4, 0.2))));
        assert!(rule.is_done(5, Some(&of(6.0, 1.0))) && rule.is_done(5, Some(&of(0.3, 0.1))));
        assert!(rule.is_done(12, None) && !rule.is_done(11, None));
    }

    #[test]
    fn stopping_early_does_not_make_effects() {
        let rule = StopRule::default();
        let wrong = share(1000, |seed| {
            let (default, candidate) = made(seed, rule.most_blocks, 0.08, 1.0);
            let of = |blocks: usize| estimate(&default[..blocks], &candidate[..blocks], seed);
            let blocks = (1..=rule.most_blocks).find(|blocks| rule.is_done(*blocks, of(*blocks).as_ref())).unwrap();
            matches!(verdicts(&[of(blocks)])[0], Verdict::Better | Verdict::Worse)
        });
        assert!(wrong <= 0.07, "{wrong}");
    }
}
