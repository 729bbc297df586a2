//! Division of rows between ranks.

use std::ops::Range;

/// Returns the rows that rank number `rank` of `ranks` reads.
pub fn rows_of_rank(rows: u64, rank: usize, ranks: usize) -> Range<u64> {
    let bound = |rank: usize| (u128::from(rows) * rank as u128 / ranks as u128) as u64;
    bound(rank)..bound(rank + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_shared_evenly() {
        let shares: Vec<_> = (0..4).map(|rank| rows_of_rank(10, rank, 4)).collect();
        assert_eq!(shares, [0..2, 2..5, 5..7, 7..10]);
        assert!(rows_of_rank(1, 0, 2).is_empty() && rows_of_rank(1, 1, 2) == (0..1));
    }
}
