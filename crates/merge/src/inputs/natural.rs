//! Natural order of names, in which `run2` comes before `run10` and `r9` before `r010`.
//!
//! A number is a run of ASCII digits of any length, compared by value. Digits of other scripts, signs and fractions are
//! not recognised. Invariant: the order is total: two names are equal only if their bytes are.

use std::cmp::Ordering;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Compares two paths by [`compare`].
pub(crate) fn compare_paths(left: &Path, right: &Path) -> Ordering {
    compare(left.as_os_str().as_bytes(), right.as_os_str().as_bytes())
}

/// Compares two names. If only leading zeros differ (`r01` and `r1`), the bytes decide.
fn compare(left: &[u8], right: &[u8]) -> Ordering {
    let (mut rest_of_left, mut rest_of_right) = (left, right);
    loop {
        let (a, b) = match (rest_of_left.split_first(), rest_of_right.split_first()) {
            (Some(a), Some(b)) => (a, b),
            (None, None) => return left.cmp(right),
            (a, b) => return a.is_some().cmp(&b.is_some()),
        };
        let order = if a.0.is_ascii_digit() && b.0.is_ascii_digit() {
            number(&mut rest_of_left).cmp(&number(&mut rest_of_right))
        } else {
            (rest_of_left, rest_of_right) = (a.1, b.1);
            a.0.cmp(b.0)
        };
        if order.is_ne() {
            return order;
        }
    }
}

/// Removes the leading digits from `name` and returns them as a key that compares by value: number of digits without
/// leading zeros, then these digits.
fn number<'n>(name: &mut &'n [u8]) -> (usize, &'n [u8]) {
    let end = name.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(name.len());
    let (digits, rest) = name.split_at(end);
    *name = rest;
    let first = digits.iter().position(|&digit| digit != b'0').unwrap_or(digits.len());
    (digits.len() - first, &digits[first..])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sorted(names: &[&str]) -> Vec<String> {
        let mut names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        names.sort_by(|left, right| compare(left.as_bytes(), right.as_bytes()));
        names
    }

    #[test]
    fn numbers_count_by_their_value() {
        assert_eq!(sorted(&["r10", "r011", "r9", "r1", "r010", "r2"]), ["r1", "r2", "r9", "r010", "r10", "r011"]);
        assert_eq!(sorted(&["a.h5", "a10.h5", "a1b.h5", "a1.h5"]), ["a.h5", "a1.h5", "a1b.h5", "a10.h5"]);
        assert_eq!(sorted(&["v1.10", "v1.9", "v1.09"]), ["v1.09", "v1.9", "v1.10"]);
        let long = ["100000000000000000000000000000000000000", "99999999999999999999999999999999999999"];
        assert_eq!(sorted(&long), [long[1], long[0]]);
    }

    /// Generates names in which numbers and equal parts are frequent.
    fn name() -> impl Strategy<Value = Vec<u8>> {
        proptest::collection::vec(
            prop_oneof![4 => proptest::sample::select(b"0019r._".to_vec()), 1 => any::<u8>()],
            0..12,
        )
    }

    proptest! {
        #[test]
        fn the_order_is_total(a in name(), b in name(), c in name()) {
            prop_assert_eq!(compare(&a, &b), compare(&b, &a).reverse());
            prop_assert_eq!(compare(&a, &b).is_eq(), a == b);
            if compare(&a, &b).is_le() && compare(&b, &c).is_le() {
                prop_assert!(compare(&a, &c).is_le());
            }
        }

        #[test]
        fn numbers_between_equal_strings_are_in_order(
            left in any::<u32>(), right in any::<u32>(), zeros in 0_usize..4, before in "[a-z]{0,3}", after in "[a-z]{0,3}",
        ) {
            let (a, b) = (format!("{before}{left}{after}"), format!("{before}{}{right}{after}", "0".repeat(zeros)));
            let order = compare(a.as_bytes(), b.as_bytes());
            prop_assert!(left == right || order == left.cmp(&right), "{} {}", a, b);
        }
    }
}
