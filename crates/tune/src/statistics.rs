//! Statistics of noisy runs: paired ratios, their interval, and a verdict that may be "cannot tell".
//!
//! Runs come in blocks. A block runs every arm once, in random order, so that drift (another program, a warm cache, a
//! clock) affects all arms alike; each arm is compared with the default of its own block. Ratio, interval and
//! probability come from a single estimator, the trimmed mean of the logarithms of the ratios (Yuen 1974), so they
//! cannot contradict each other. This module runs nothing and does not choose what to compare. Invariants: the same
//! samples give the same figures; fewer than [`MIN_BLOCKS`] blocks give no result.

use crate::student;
use raddle_core::random::Random;
use serde::{Deserialize, Serialize};

/// Minimum number of blocks for a result.
pub const MIN_BLOCKS: usize = 5;

/// Default for the smallest effect of interest, as a distance of the ratio from 1. On a machine shared with others,
/// equal runs vary by 5 to 10 %: detecting smaller effects takes more blocks than there is time for, and such results
/// would not be reproducible.
pub const DEFAULT_MARGIN: f64 = 0.15;

/// Numbers of blocks after which an arm is tested for being done: each about 1.6 times the previous one, which makes
/// intervals a fifth narrower.
const LOOKS: [usize; 10] = [MIN_BLOCKS, 8, 13, 21, 34, 55, 89, 144, 233, 377];

/// Probability of error of all looks together, divided evenly among them (Bonferroni): looking six times at 5 % and
/// stopping at the first positive result would err with 17 %.
pub const ERROR: f64 = 0.05;

/// One in this many ratios is trimmed at each end. With a disturbance in every twentieth run, the mean of 34 ratios
/// cannot detect 5 % but the trimmed mean can; without disturbances its interval is a tenth wider.
const TRIMMED_SHARE: usize = 5;
/// Minimum number of blocks for trimming.
const TRIMMED_FROM: usize = 8;

/// Returns the order in which the arms of block `block` run: a permutation of `0..arms`.
pub fn order_of_block(seed: u64, block: u64, arms: usize) -> Vec<usize> {
    let mut random = Random::of(&[seed, block]);
    let mut order: Vec<usize> = (0..arms).collect();
    // Fisher-Yates shuffle.
    for last in (1..arms).rev() {
        order.swap(last, random.below(last as u64 + 1) as usize);
    }
    order
}

/// Comparison of one arm with the default over blocks.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// Trimmed mean of the paired ratios (geometric).
    pub ratio: f64,
    /// Confidence interval of `ratio`: 95 % over all looks.
    pub interval: [f64; 2],
    /// Number of blocks that both arms ran in.
    pub blocks: u32,
    /// Probability of a ratio this far from 1 at this look if there were no effect. The interval excludes 1 if this is
    /// below the probability of error that the interval was computed for.
    pub p: f64,
}

/// Result of comparing an arm with the default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The arm is better: its metric is lower.
    Better,
    /// The arm is worse: its metric is higher.
    Worse,
    /// Any effect is below [`StopRule::margin`].
    NoEffect,
    /// The runs vary too much.
    CannotTell,
}

impl Verdict {
    /// Returns the description for people.
    pub fn words(self) -> &'static str {
        match self {
            Self::Better => "better",
            Self::Worse => "worse",
            Self::NoEffect => "no effect",
            Self::CannotTell => "cannot tell",
        }
    }

    /// Returns whether there is an effect.
    pub fn is_effect(self) -> bool {
        matches!(self, Self::Better | Self::Worse)
    }
}

/// Compares `candidate` with `default`, values of the same blocks in the same order, with this probability of error;
/// `None` for fewer than [`MIN_BLOCKS`] blocks, or if a value is not above 0, so that its ratio is undefined.
pub fn estimate(default: &[f64], candidate: &[f64], error: f64) -> Option<Estimate> {
    let pairs = default.iter().zip(candidate);
    if pairs.len() < MIN_BLOCKS || pairs.clone().any(|(a, b)| !(*a > 0.0 && *b > 0.0 && (b / a).is_finite())) {
        return None;
    }
    let mut logarithms: Vec<f64> = pairs.map(|(default, candidate)| (candidate / default).ln()).collect();
    let Mean { value, deviation, freedom } = trimmed_mean(&mut logarithms);
    // All ratios are equal, up to the rounding of their logarithms.
    let is_exact = deviation <= 1e-12 * value.abs().max(1e-3);
    let p = match is_exact {
        true if value.abs() <= 1e-12 => 1.0,
        true => 0.0,
        false => student::two_sided(value / deviation, freedom),
    };
    let half_width = if is_exact { 0.0 } else { student::quantile(error, freedom) * deviation };
    Some(Estimate {
        ratio: value.exp(),
        interval: [value - half_width, value + half_width].map(f64::exp),
        blocks: u32::try_from(logarithms.len()).unwrap_or(u32::MAX),
        p,
    })
}

/// A mean with its standard deviation and the degrees of freedom.
struct Mean {
    value: f64,
    deviation: f64,
    freedom: f64,
}

/// Computes the mean without the extremes; its deviation is computed from the winsorized values (Yuen 1974).
fn trimmed_mean(values: &mut [f64]) -> Mean {
    values.sort_by(f64::total_cmp);
    let len = values.len();
    let trimmed = if len < TRIMMED_FROM { 0 } else { len / TRIMMED_SHARE };
    let kept = &values[trimmed..len - trimmed];
    let value = kept.iter().sum::<f64>() / kept.len() as f64;
    let drawn_in = || values.iter().map(|value| value.clamp(kept[0], kept[kept.len() - 1]));
    let mean = drawn_in().sum::<f64>() / len as f64;
    let squares: f64 = drawn_in().map(|value| (value - mean).powi(2)).sum();
    let left = kept.len() as f64;
    Mean { value, deviation: (squares / (left * (left - 1.0))).sqrt(), freedom: left - 1.0 }
}

/// Returns the median; sorts the values. NaN if there are none.
pub fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => f64::NAN,
        len if len % 2 == 1 => values[middle],
        _ => f64::midpoint(values[middle - 1], values[middle]),
    }
}

/// Describes reads by the share of bytes that came from storage. Up to 5 % either way is attributed to readahead or
/// leftovers in the page cache.
pub fn coldness(share: f64) -> &'static str {
    match share {
        share if share >= 0.95 => "cold",
        share if share <= 0.05 => "from the page cache",
        _ => "partly cold",
    }
}

/// Returns the coefficient of variation; 0 for fewer than two values.
pub fn variation(values: &[f64]) -> f64 {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    if values.len() < 2 || mean <= 0.0 {
        return 0.0;
    }
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (squares / (values.len() - 1) as f64).sqrt() / mean
}

/// Corrects the probabilities of a family of tests, so that the chance of any false positive stays that of a single
/// test (Holm 1979): the k-th smallest of n is multiplied by n - k + 1, and is never less than those before it.
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

/// Rule for when to stop running an arm, and for its verdict.
///
/// Stopping at the first positive result would find effects everywhere. Therefore arms are tested only a few times,
/// each with a smaller probability of error, so that the total is 5 %.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct StopRule {
    /// Maximum number of blocks.
    pub max_blocks: usize,
    /// Effects below this share count as none.
    pub margin: f64,
    /// Half-width of the interval, as a share of the ratio, that is narrow enough to report how much better or worse an
    /// arm is.
    pub half_width: f64,
    /// Ratio from which an effect is clear, so that no narrower interval and no more blocks are needed. For arms that
    /// are better, the same holds below its inverse.
    pub clear: f64,
    /// Minimum number of blocks for reporting a smaller effect: times on a machine that is occasionally slow for a
    /// second are not normally distributed, and five of them in a row mean little.
    pub least_for_small: usize,
}

impl Default for StopRule {
    /// Returns the usual rule. With 55 blocks, it detects 5 % if equal runs vary by 5 %, and 10 % if they vary by 10 %.
    fn default() -> Self {
        Self { max_blocks: LOOKS[5], margin: DEFAULT_MARGIN, half_width: 0.10, clear: 1.5, least_for_small: LOOKS[3] }
    }
}

impl StopRule {
    /// Returns a rule with a fixed number of blocks and a single look, which uses the whole probability of error.
    pub fn of_one_look() -> Self {
        Self { max_blocks: MIN_BLOCKS, ..Self::default() }
    }

    /// Returns the probability of error of intervals and verdicts at each look.
    pub fn error(&self) -> f64 {
        // The last look is at the maximum number of blocks.
        let before = LOOKS.iter().filter(|look| **look < self.max_blocks).count();
        ERROR / (before + 1) as f64
    }

    /// Returns the verdict on an estimate whose probability, corrected for its family, is `corrected_p`. Its interval
    /// is first widened by `doubt`: the factor by which equal runs differ beyond chance, or 1 if they do not.
    pub fn verdict(&self, estimate: Option<&Estimate>, corrected_p: f64, doubt: f64) -> Verdict {
        let Some(Estimate { interval: [low, high], .. }) = estimate else { return Verdict::CannotTell };
        let (low, high) = (low / doubt, high * doubt);
        if low >= 1.0 - self.margin && high <= 1.0 + self.margin {
            Verdict::NoEffect
        } else if corrected_p > self.error() || (low..=high).contains(&1.0) {
            Verdict::CannotTell
        } else if high < 1.0 {
            Verdict::Better
        } else {
            Verdict::Worse
        }
    }

    /// Returns the verdicts on a family of estimates; `doubt` is as in [`Self::verdict`].
    pub fn verdicts(&self, estimates: &[Option<Estimate>], doubt: f64) -> Vec<Verdict> {
        let probabilities: Vec<f64> =
            estimates.iter().map(|estimate| estimate.map_or(1.0, |estimate| estimate.p)).collect();
        let corrected = holm(&probabilities);
        estimates.iter().zip(corrected).map(|(estimate, p)| self.verdict(estimate.as_ref(), p, doubt)).collect()
    }

    /// Returns whether an arm that ran in `blocks` blocks, one of `comparisons`, is done.
    pub fn is_done(&self, blocks: usize, estimate: Option<&Estimate>, comparisons: usize) -> bool {
        if blocks >= self.max_blocks {
            return true;
        }
        let Some(found) = estimate.filter(|_| LOOKS.contains(&blocks)) else { return false };
        let Estimate { ratio, interval: [low, high], p, .. } = *found;
        // The worst case of Holm's correction, so that a verdict reached here also holds at the end.
        match self.verdict(Some(found), p * comparisons.max(1) as f64, 1.0) {
            Verdict::NoEffect => true,
            Verdict::CannotTell => false,
            Verdict::Better | Verdict::Worse => {
                let is_narrow = (high - low) / 2.0 <= self.half_width * ratio;
                (is_narrow && blocks >= self.least_for_small) || low >= self.clear || high <= 1.0 / self.clear
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Error probability of a single look.
    const ONCE: f64 = ERROR;

    /// Returns times of `blocks` blocks with log-normal noise: of the default, and of a candidate with this ratio.
    fn simulated_times(seed: u64, blocks: usize, noise: f64, ratio: f64) -> (Vec<f64>, Vec<f64>) {
        let mut random = Random::of(&[seed, 77]);
        let mut time = |mean: f64| mean * (noise * random.normal()).exp();
        (0..blocks).map(|_| (time(2.0), time(2.0 * ratio))).unzip()
    }

    fn verdict_of(seed: u64, blocks: usize, noise: f64, ratio: f64) -> Verdict {
        let (default, candidate) = simulated_times(seed, blocks, noise, ratio);
        StopRule::of_one_look().verdicts(&[estimate(&default, &candidate, ONCE)], 1.0)[0]
    }

    fn share(rounds: u64, mut is_so: impl FnMut(u64) -> bool) -> f64 {
        (0..rounds).filter(|seed| is_so(*seed)).count() as f64 / rounds as f64
    }

    fn is_called(verdict: Verdict) -> bool {
        verdict.is_effect()
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
        let found = estimate(&default, &default.map(|time| time * 3.0), ONCE).unwrap();
        assert!((found.ratio - 3.0).abs() < 1e-12 && found.blocks == 5);
        assert!(found.interval.iter().all(|bound| (bound - 3.0).abs() < 1e-12));
        assert_eq!((found.p, estimate(&default, &default, ONCE).unwrap().p), (0.0, 1.0));
        // Logarithms -1, 0, 1, 2, 3: mean 1, deviation of the mean 0.7071; t of 4 degrees is 2.776 at 5 %.
        let found = estimate(&[1.0; 5], &[-1.0, 0.0, 1.0, 2.0, 3.0].map(f64::exp), ONCE).unwrap();
        assert!((found.ratio.ln() - 1.0).abs() < 1e-12 && (found.p - 0.230_2).abs() < 1e-4, "{found:?}");
        let bounds = found.interval.map(f64::ln);
        assert!((bounds[0] + 0.963_2).abs() < 1e-3 && (bounds[1] - 2.963_2).abs() < 1e-3, "{bounds:?}");
        // Ten values, two trimmed on each side, as in Wilcox's book: of 1 to 10 the mean of 3 to 8 is 5.5, and with 3,
        // 3, 3, 4, 5, 6, 7, 8, 8, 8 the squares are 42.5, over 6 x 5.
        let Mean { value, deviation, freedom } = trimmed_mean(&mut (1..=10).map(f64::from).collect::<Vec<_>>());
        assert!((value - 5.5).abs() < 1e-12 && (deviation - (42.5_f64 / 30.0).sqrt()).abs() < 1e-12 && freedom == 5.0);
        assert!((median(&mut [4.0, 1.0, 3.0, 2.0]) - 2.5).abs() < 1e-12);
        assert!((variation(&[9.0, 10.0, 11.0]) - 0.1).abs() < 1e-12);
    }

    #[test]
    fn little_or_nothing_measured_says_nothing() {
        assert_eq!(estimate(&[1.0; 4], &[9.0; 4], ONCE), None);
        assert_eq!(estimate(&[0.0; 6], &[9.0; 6], ONCE), None);
        assert_eq!(estimate(&[1.0; 6], &[f64::NAN; 6], ONCE), None);
        assert_eq!(StopRule::of_one_look().verdicts(&[None], 1.0), [Verdict::CannotTell]);
    }

    #[test]
    fn the_interval_covers_the_truth_and_agrees_with_the_probability() {
        for blocks in [5, 8, 13, 34] {
            let covered = share(1000, |seed| {
                let (default, candidate) = simulated_times(seed, blocks, 0.1, 1.3);
                let [low, high] = estimate(&default, &candidate, ONCE).unwrap().interval;
                low <= 1.3 && 1.3 <= high
            });
            // 95 % with a standard deviation of 0.7 %.
            assert!((0.93..0.975).contains(&covered), "{blocks} blocks: {covered}");
            for seed in 0..300 {
                let (default, candidate) = simulated_times(seed, blocks, 0.1, 1.05);
                let Estimate { interval: [low, high], p, .. } = estimate(&default, &candidate, ONCE).unwrap();
                assert_eq!(low > 1.0 || high < 1.0, p < ONCE, "{low} {high} {p}");
            }
        }
    }

    #[test]
    fn no_effect_is_rarely_called_one() {
        for noise in [0.02, 0.1, 0.5] {
            for blocks in [5, 8, 12] {
                let wrong = share(1000, |seed| is_called(verdict_of(seed, blocks, noise, 1.0)));
                // 5 % with a standard deviation of 0.7 %.
                assert!(wrong <= 0.07, "noise {noise}, {blocks} blocks: {wrong}");
            }
        }
    }

    #[test]
    fn an_effect_is_rarely_called_none() {
        for noise in [0.01, 0.03, 0.1] {
            for ratio in [1.0 - DEFAULT_MARGIN, 1.0 + DEFAULT_MARGIN] {
                // Exactly on the margin, each side may err with 2.5 %.
                let wrong = share(1000, |seed| verdict_of(seed, 34, noise, ratio) == Verdict::NoEffect);
                assert!(wrong <= 0.04, "noise {noise}, ratio {ratio}: {wrong}");
            }
        }
    }

    #[test]
    fn effects_are_found() {
        let better =
            |blocks, noise, ratio| share(300, |seed| verdict_of(seed, blocks, noise, ratio) == Verdict::Better);
        assert!(better(8, 0.1, 0.7) > 0.95, "{}", better(8, 0.1, 0.7));
        assert!(better(13, 0.05, 0.8) > 0.9, "{}", better(13, 0.05, 0.8));
        let worse = share(300, |seed| verdict_of(seed, 5, 0.15, 6.0) == Verdict::Worse);
        assert!(worse > 0.99, "{worse}");
        // A quiet machine can demonstrate the absence of an effect, a noisy one cannot.
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
                    let (default, candidate) = simulated_times(seed * 1000 + arm, 8, 0.1, 1.0);
                    estimate(&default, &candidate, ONCE)
                })
                .collect();
            StopRule::of_one_look().verdicts(&family, 1.0).into_iter().any(is_called)
        });
        // Without correction it would be 1 - 0.95^20 = 64 %.
        assert!(any_called < 0.09, "{any_called}");
        let corrected = holm(&[0.01, 0.04, 0.03, 0.5]);
        let expected = [0.04, 0.09, 0.09, 0.5];
        assert!(corrected.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-12), "{corrected:?}");
        assert!(holm(&[]).is_empty());
    }

    /// Simulates three equal arms while the machine gets slower with each run.
    fn drifting(seed: u64, order: impl Fn(u64) -> Vec<usize>) -> Verdict {
        let mut random = Random::of(&[seed, 5]);
        let (mut times, mut slowness) = ([const { Vec::new() }; 3], 1.0);
        for block in 0..8 {
            for arm in order(block) {
                slowness *= 1.1;
                times[arm].push(slowness * (0.02 * random.normal()).exp());
            }
        }
        StopRule::of_one_look().verdicts(&[estimate(&times[0], &times[2], ONCE)], 1.0)[0]
    }

    #[test]
    fn drift_is_not_an_effect_where_the_order_is_drawn() {
        let drawn = share(500, |seed| is_called(drifting(seed, |block| order_of_block(seed, block, 3))));
        assert!(drawn < 0.08, "{drawn}");
        // The same in a fixed order: the last arm is always judged worse.
        let fixed = share(100, |seed| drifting(seed, |_| vec![0, 1, 2]) == Verdict::Worse);
        assert!(fixed > 0.9, "{fixed}");
    }

    #[test]
    fn the_margin_and_the_doubt_decide_the_verdict() {
        let rule = StopRule::default();
        let said = |low: f64, high: f64, margin, doubt| {
            let found = Estimate { ratio: (low * high).sqrt(), interval: [low, high], blocks: 9, p: 1e-9 };
            StopRule { margin, ..rule }.verdict(Some(&found), 1e-9, doubt)
        };
        assert_eq!(said(0.92, 0.96, 0.10, 1.0), Verdict::NoEffect);
        assert_eq!(said(0.92, 0.96, 0.05, 1.0), Verdict::Better);
        assert_eq!(said(1.08, 1.12, 0.10, 1.0), Verdict::Worse);
        // If equal runs differ by a fifth, an effect of a tenth cannot be detected, but one of five times can.
        assert_eq!(said(1.08, 1.12, 0.10, 1.2), Verdict::CannotTell);
        assert_eq!(said(0.99, 1.01, 0.10, 1.2), Verdict::CannotTell);
        assert_eq!(said(4.0, 6.0, 0.10, 1.2), Verdict::Worse);
        assert_eq!(said(0.1, 0.2, 0.10, 1.2), Verdict::Better);
    }

    #[test]
    fn the_rule_stops_at_looks_when_something_can_be_decided_and_at_the_end() {
        let rule = StopRule::default();
        assert_eq!((rule.error(), StopRule { max_blocks: 5, ..rule }.error()), (0.05 / 6.0, 0.05));
        let of = |ratio: f64, width: f64, p| Estimate { ratio, interval: [ratio - width, ratio + width], blocks: 5, p };
        let is_done = |blocks, estimate: Estimate| rule.is_done(blocks, Some(&estimate), 10);
        assert!(!is_done(4, of(1.0, 0.01, 0.5)) && is_done(5, of(1.0, 0.01, 0.5)));
        assert!(!is_done(6, of(1.0, 0.01, 0.5)), "between looks nothing is asked");
        assert!(!is_done(5, of(1.0, 0.2, 0.5)) && !is_done(21, of(1.4, 0.2, 1e-9)) && is_done(21, of(1.4, 0.1, 1e-9)));
        assert!(!is_done(13, of(1.4, 0.1, 1e-9)), "13 blocks are few for a small effect");
        assert!(!is_done(21, of(1.4, 0.1, 0.01)), "one of ten may be this far by chance");
        assert!(is_done(5, of(6.0, 1.0, 1e-9)) && is_done(5, of(0.3, 0.1, 1e-9)));
        assert!(rule.is_done(55, None, 10) && !rule.is_done(54, None, 10));
    }

    /// Simulates a whole experiment on arms with these true ratios: looks, two defaults per block, and runs of which
    /// every `1 / busy`-th is disturbed and takes up to twice as long.
    fn experiment(seed: u64, truth: &[f64], noise: f64, busy: f64) -> Vec<Verdict> {
        let rule = StopRule::default();
        let mut random = Random::of(&[seed, 991]);
        let mut time = |mean: f64| {
            let neighbour = if random.chance(busy) { 1.0 + random.unit() } else { 1.0 };
            mean * neighbour * (noise * random.normal()).exp()
        };
        let mut runs = vec![(Vec::new(), Vec::new()); truth.len()];
        let reported = |(default, candidate): &(Vec<f64>, Vec<f64>)| estimate(default, candidate, rule.error());
        for _ in 0..rule.max_blocks {
            let default = (time(1.0) * time(1.0)).sqrt();
            for (arm, ratio) in runs.iter_mut().zip(truth) {
                if !rule.is_done(arm.1.len(), reported(arm).as_ref(), truth.len()) {
                    arm.0.push(default);
                    arm.1.push(time(*ratio));
                }
            }
        }
        rule.verdicts(&runs.iter().map(reported).collect::<Vec<_>>(), 1.0)
    }

    fn looking_several_times_does_not_make_effects(busy: f64) {
        let any = |seed| experiment(seed, &[1.0; 6], 0.08, busy).into_iter().any(is_called);
        // 5 % with a standard deviation of 1 %.
        let wrong = share(500, any);
        assert!(wrong <= 0.08, "{wrong}");
        // Effects of twice the margin are hardly ever missed.
        let none = |seed| experiment(seed, &[0.7, 1.3], 0.05, busy).contains(&Verdict::NoEffect);
        assert!(share(200, none) <= 0.02, "{}", share(200, none));
    }

    #[test]
    fn looking_several_times_does_not_make_effects_on_a_quiet_machine() {
        looking_several_times_does_not_make_effects(0.0);
    }

    #[test]
    fn looking_several_times_does_not_make_effects_on_a_busy_machine() {
        looking_several_times_does_not_make_effects(0.05);
    }

    #[test]
    fn two_experiments_agree() {
        // Similar to the papers' settings: most have no effect, some a small one, a few a large one.
        let truth = [1.0, 1.0, 1.0, 1.0, 1.0, 1.01, 0.99, 1.02, 1.08, 1.15, 1.3, 1.8, 0.9, 0.8];
        for (noise, busy) in [(0.02, 0.0), (0.05, 0.0), (0.02, 0.05), (0.03, 0.1)] {
            let (mut equal, rounds) = (0, 20_u64);
            for round in 0..rounds {
                let of = |run: u64| experiment(2 * round + run, &truth, noise, busy);
                equal += of(0).iter().zip(of(1)).filter(|(first, second)| **first == *second).count();
            }
            let agreement = equal as f64 / (truth.len() as f64 * rounds as f64);
            assert!(agreement >= 0.9, "noise {noise}, busy {busy}: {agreement}");
        }
    }
}
