//! Even division of consecutive items.

use std::ops::Range;

/// Returns the share of part `part` of `parts` in `count` consecutive items. The first shares have at most one item
/// more than the last ones.
pub fn even_share(count: u64, part: u64, parts: u64) -> Range<u64> {
    let (each, more) = (count / parts.max(1), count % parts.max(1));
    let bound = |part: u64| part * each + part.min(more);
    bound(part)..bound(part + 1)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_item_is_in_one_share_and_shares_are_even(count: u64, small in 0_u64..100, parts in 1_u64..50) {
            for count in [count, small] {
                let mut next = 0;
                for part in 0..parts {
                    let share = even_share(count, part, parts);
                    prop_assert_eq!(share.start, next);
                    prop_assert_eq!(share.end - share.start, count / parts + u64::from(part < count % parts));
                    next = share.end;
                }
                prop_assert_eq!(next, count);
            }
        }
    }
}
