//! Minimum, mean and maximum of a quantity over many ranks, used to report balance.

use serde::Serialize;

/// Minimum, mean and maximum of a quantity over all ranks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Spread {
    /// Minimum.
    pub least: f64,
    /// Mean.
    pub mean: f64,
    /// Maximum.
    pub most: f64,
}

impl Spread {
    /// Computes the spread of the values of all ranks.
    pub fn of(values: impl ExactSizeIterator<Item = f64> + Clone) -> Self {
        let count = values.len().max(1) as f64;
        Self {
            least: values.clone().fold(f64::INFINITY, f64::min),
            mean: values.clone().sum::<f64>() / count,
            most: values.fold(0.0, f64::max),
        }
    }

    /// Returns the excess of the maximum over the mean, relative to the mean.
    pub fn imbalance(&self) -> f64 {
        if self.mean > 0.0 { self.most / self.mean - 1.0 } else { 0.0 }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn imbalance_is_how_much_more_the_most_is_than_the_mean() {
        let spread = Spread::of([1.0, 2.0, 6.0].into_iter());
        assert_eq!((spread.least, spread.mean, spread.most, spread.imbalance()), (1.0, 3.0, 6.0, 1.0));
        assert_eq!(Spread::of([0.0; 3].into_iter()).imbalance(), 0.0);
    }
}
