//! Comparisons of two columns, row by row.
//!
//! Numbers of any types are compared exactly, NaN as IEEE 754 requires. Invariant: as in [`crate::condition`], a
//! verdict on limits holds for all values within them.

use crate::any_number::{AnyNumber, floats, integers, values};
use crate::expression::Operator;
use crate::matches::Matches;
use crate::statistics::Limits;
use crate::strings::StringForm;
use crate::table::ColumnKind;
use raddle_hdf5::number::NumberType;
/// Comparison of the values of two columns in a row.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Pair {
    operator: Operator,
    kinds: Kinds,
}

#[derive(Debug, Clone, PartialEq)]
enum Kinds {
    Numbers(NumberType, NumberType),
    Strings(StringForm, StringForm),
}

impl Pair {
    /// Creates the comparison of two columns.
    ///
    /// # Errors
    /// If they cannot be compared. Returns the reason.
    pub fn new(left: &ColumnKind, operator: Operator, right: (&str, &ColumnKind)) -> Result<Self, String> {
        let (name, right) = right;
        let kinds = match (left.number(), right.number(), left, right) {
            (Some(left), Some(right), _, _) => Kinds::Numbers(left, right),
            (_, _, ColumnKind::String(left), ColumnKind::String(right)) => Kinds::Strings(*left, *right),
            _ => {
                return Err(format!(
                    "holds {}, which cannot be compared with {name}, which holds {}",
                    left.described(),
                    right.described()
                ));
            }
        };
        Ok(Self { operator, kinds })
    }

    /// Judges a block by the limits of both columns.
    pub fn judge(&self, left: Limits, right: Limits) -> Matches {
        let (Some(left), Some(right)) = (Bounds::of(left), Bounds::of(right)) else { return Matches::Some };
        let ordered = |left: Bounds, right: Bounds, operator: Operator| {
            Matches::of(operator.holds(&left.max, &right.min), !operator.holds(&left.min, &right.max))
        };
        let is_outside = left.max < right.min || right.max < left.min;
        let is_single = left.min == left.max && right.min == right.max && left.min == right.min;
        let of_numbers = match self.operator {
            Operator::Less | Operator::LessOrEqual => ordered(left, right, self.operator),
            Operator::Greater | Operator::GreaterOrEqual => ordered(right, left, self.operator.exchanged()),
            Operator::Equal => Matches::of(is_single, is_outside),
            Operator::NotEqual => Matches::of(is_single, is_outside).inverted(),
        };
        // A row with NaN satisfies only "not equal".
        let of_nans = if self.operator == Operator::NotEqual { Matches::All } else { Matches::None };
        match left.has_nans || right.has_nans {
            true if of_numbers != of_nans => Matches::Some,
            _ => of_numbers,
        }
    }

    /// Returns whether each row satisfies the comparison.
    pub fn evaluate(&self, left: &[u8], right: &[u8]) -> Vec<bool> {
        match self.kinds {
            Kinds::Numbers(one, other) => match (one.is_integer(), other.is_integer()) {
                (true, true) => self.each(&integers(one, left), &integers(other, right)),
                (false, false) => self.each(&floats(one, left), &floats(other, right)),
                _ => self.each(&values(one, left), &values(other, right)),
            },
            Kinds::Strings(one, other) => {
                let pairs = one.strings(left).into_iter().zip(other.strings(right));
                pairs.map(|(left, right)| self.operator.holds(left, right)).collect()
            }
        }
    }

    fn each<T: PartialOrd>(&self, left: &[T], right: &[T]) -> Vec<bool> {
        left.iter().zip(right).map(|(left, right)| self.operator.holds(left, right)).collect()
    }
}

/// Limits of a block that has numbers.
#[derive(Debug, Clone, Copy)]
struct Bounds {
    min: AnyNumber,
    max: AnyNumber,
    has_nans: bool,
}

impl Bounds {
    fn of(limits: Limits) -> Option<Self> {
        match limits {
            Limits::Integers { min, max } => {
                Some(Self { min: AnyNumber::Integer(min), max: AnyNumber::Integer(max), has_nans: false })
            }
            Limits::Floats { min, max, nans } if min <= max => {
                Some(Self { min: AnyNumber::Float(min), max: AnyNumber::Float(max), has_nans: nans > 0 })
            }
            Limits::Empty | Limits::Floats { .. } | Limits::Strings { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::{BlockStatistics, OrderedType};
    use crate::strings::canonical_of;
    use proptest::prelude::*;
    use std::cmp::Ordering;

    fn column() -> impl Strategy<Value = (NumberType, Vec<u8>)> {
        let integers = prop_oneof![3 => -3_i64..4, 1 => prop::sample::select(vec![i64::MIN, i64::MAX, (1 << 53) + 1])];
        let integers = prop::collection::vec(integers, 5).prop_map(|values| {
            let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
            (NumberType::int64(), bytes)
        });
        let floats = prop_oneof![
            3 => (-6_i32..8).prop_map(|value| f64::from(value) / 2.0),
            1 => prop::sample::select(vec![f64::NAN, -0.0, f64::INFINITY, f64::MIN, 9_007_199_254_740_992.0, 9.3e18]),
        ];
        let floats = prop::collection::vec(floats, 5).prop_map(|values| {
            let bytes = values.iter().flat_map(|value| value.to_be_bytes()).collect();
            (NumberType::Float { len_bytes: 8, is_big_endian: true }, bytes)
        });
        prop_oneof![integers, floats]
    }

    proptest! {
        #[test]
        fn numbers_are_compared_exactly_and_blocks_judged_alike(left in column(), right in column(), at in 0_usize..6) {
            let kind = |number| ColumnKind::Number(number);
            let pair = Pair::new(&kind(left.0), Operator::ALL[at], ("other", &kind(right.0))).unwrap();
            let holds = pair.evaluate(&left.1, &right.1);
            let exact = values(left.0, &left.1).into_iter().zip(values(right.0, &right.1)).map(|(left, right)| {
                let order = match (left, right) {
                    // Doubled, the drawn values are integers, except for the extremes.
                    (AnyNumber::Integer(left), AnyNumber::Float(right)) if right.abs() < 1e10 => Some((left * 2).cmp(&((right * 2.0) as i128))),
                    (AnyNumber::Float(left), AnyNumber::Integer(right)) if left.abs() < 1e10 => Some(((left * 2.0) as i128).cmp(&(right * 2))),
                    (left, right) => left.partial_cmp(&right),
                };
                match Operator::ALL[at] {
                    Operator::Less => order == Some(Ordering::Less),
                    Operator::LessOrEqual => matches!(order, Some(Ordering::Less | Ordering::Equal)),
                    Operator::Greater => order == Some(Ordering::Greater),
                    Operator::GreaterOrEqual => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
                    Operator::Equal => order == Some(Ordering::Equal),
                    Operator::NotEqual => order != Some(Ordering::Equal),
                }
            });
            prop_assert_eq!(&holds, &exact.collect::<Vec<_>>());
            let limits = |side: &(NumberType, Vec<u8>)| {
                BlockStatistics::of(OrderedType::Number(side.0), &side.1).limits
            };
            match pair.judge(limits(&left), limits(&right)) {
                Matches::None => prop_assert!(!holds.contains(&true), "{holds:?}"),
                Matches::All => prop_assert!(!holds.contains(&false), "{holds:?}"),
                Matches::Some => {}
            }
        }
    }

    #[test]
    fn large_integers_differ_from_the_nearest_float() {
        let value = |integer| AnyNumber::Integer(integer);
        assert!(value((1 << 53) + 1) > AnyNumber::Float(9_007_199_254_740_992.0));
        assert!(value(i128::from(u64::MAX)) < AnyNumber::Float(18_446_744_073_709_551_616.0));
        assert!(value(i128::from(i64::MIN)) == AnyNumber::Float(i64::MIN as f64));
        assert!(value(0) < AnyNumber::Float(f64::INFINITY) && value(0) > AnyNumber::Float(f64::NEG_INFINITY));
        assert!(value(0) != AnyNumber::Float(f64::NAN) && value(-1) < AnyNumber::Float(-0.5));
    }

    #[test]
    fn texts_are_compared_without_padding_and_only_with_strings() {
        let text = |len_bytes| ColumnKind::String(StringForm::Padded { len_bytes });
        let pair = Pair::new(&text(2), Operator::Less, ("other", &text(3))).unwrap();
        assert_eq!(pair.evaluate(b"a\0b\0", b"ab\0a\0\0"), [true, false]);
        let longer = ColumnKind::String(StringForm::Canonical);
        let pair = Pair::new(&text(2), Operator::Equal, ("other", &longer)).unwrap();
        assert_eq!(pair.evaluate(b"a\0b\0", &canonical_of([b"a".as_slice(), b"bc"])), [true, false]);
        let refused = Pair::new(&text(2), Operator::Less, ("n", &ColumnKind::Number(NumberType::int64()))).unwrap_err();
        assert_eq!(refused, "holds strings, which cannot be compared with n, which holds numbers");
    }
}
