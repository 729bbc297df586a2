//! A condition on typed columns: evaluated on values, and judged from the statistics of a block.
//!
//! Invariant: if a block is judged to have no match, evaluation of any values with its statistics finds none; if all rows
//! are judged to match, it finds all.

use crate::expression::{Expression, Literal, Operator};
use crate::numbers::{Number, with_words};
use crate::pair::Pair;
use crate::statistics::{BlockStatistics, Limits, TextPrefix};
use crate::table::{ColumnKind, TableColumn};
use crate::texts::{TextForm, unpadded};
use raddle_hdf5::number::NumberType;

/// Which rows of a block satisfy a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Matches {
    /// No row.
    None,
    /// Any rows: the limits do not decide.
    Some,
    /// Every row.
    All,
}

impl Matches {
    pub fn inverted(self) -> Self {
        match self {
            Self::None => Self::All,
            Self::Some => Self::Some,
            Self::All => Self::None,
        }
    }

    /// Returns the verdict for values of which all, or none, satisfy a condition.
    pub fn of(all: bool, none: bool) -> Self {
        match (all, none) {
            (_, true) => Self::None,
            (true, false) => Self::All,
            (false, false) => Self::Some,
        }
    }
}

/// A condition on columns with known types.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Condition {
    /// Test of the column with this number.
    Test(usize, Test),
    /// Comparison of the columns with these numbers.
    Pair(usize, usize, Pair),
    And(Vec<Condition>),
    Or(Vec<Condition>),
    Not(Box<Condition>),
}

/// Test of the values of a column.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Test {
    /// Whether an integer lies in a range, or outside of it.
    Integers { number: NumberType, low: i128, high: i128, is_inside: bool },
    /// Comparison of a float with a value of the column's precision.
    Floats { number: NumberType, operator: Operator, value: f64 },
    /// Comparison of a text, byte by byte.
    Texts { form: TextForm, operator: Operator, value: Vec<u8> },
}

impl Condition {
    /// Creates the condition on `columns`, which include those of the expression.
    ///
    /// # Errors
    /// The column that cannot be compared with its value, and why.
    pub fn new(expression: &Expression, columns: &[TableColumn]) -> Result<Self, (String, String)> {
        let all = |all: &[Expression]| all.iter().map(|one| Self::new(one, columns)).collect::<Result<Vec<_>, _>>();
        Ok(match expression {
            Expression::And(parts) => Self::And(all(parts)?),
            Expression::Or(parts) => Self::Or(all(parts)?),
            Expression::Not(one) => Self::Not(Box::new(Self::new(one, columns)?)),
            Expression::Compare { column, operator, value } => {
                let refuse = |reason: String| (column.clone(), reason);
                let place = |name: &str| {
                    let at = columns.iter().position(|known| known.name == name);
                    at.ok_or_else(|| (name.to_owned(), "is not a column of the scan".to_owned()))
                };
                let at = place(column)?;
                let Literal::Column(other) = value else {
                    return Ok(Self::Test(at, Test::new(&columns[at].kind, *operator, value).map_err(refuse)?));
                };
                let right = place(other)?;
                let pair = Pair::new(&columns[at].kind, *operator, (other, &columns[right].kind)).map_err(refuse)?;
                Self::Pair(at, right, pair)
            }
        })
    }

    /// Judges a block by the statistics of each column; `None` if they are unknown.
    pub fn judge<'s>(&self, known: &impl Fn(usize) -> Option<&'s BlockStatistics>) -> Matches {
        match self.judge_limits(&|column| known(column).map(|statistics| statistics.limits)) {
            Matches::Some => self.judge_values(known),
            decided => decided,
        }
    }

    /// Judges a block by distinct values: a condition on one column is judged for each value of the column, so that
    /// values between the limits which no row has do not count.
    fn judge_values<'s>(&self, known: &impl Fn(usize) -> Option<&'s BlockStatistics>) -> Matches {
        if let Some(column) = self.only_column() {
            let Some(each) = known(column).and_then(BlockStatistics::of_each_value) else { return Matches::Some };
            let mut verdicts = each.iter().map(|one| self.judge_limits(&|_| Some(*one)));
            let first = verdicts.next().unwrap_or(Matches::Some);
            return if verdicts.all(|other| other == first) { first } else { Matches::Some };
        }
        match self {
            Self::Test(..) | Self::Pair(..) => Matches::Some,
            Self::And(all) => all.iter().map(|one| one.judge(known)).min().unwrap_or(Matches::All),
            Self::Or(any) => any.iter().map(|one| one.judge(known)).max().unwrap_or(Matches::None),
            Self::Not(one) => one.judge(known).inverted(),
        }
    }

    /// Returns the column, if the condition depends on exactly one.
    fn only_column(&self) -> Option<usize> {
        match self {
            Self::Test(column, _) => Some(*column),
            Self::Pair(..) => None,
            Self::Not(one) => one.only_column(),
            Self::And(parts) | Self::Or(parts) => {
                let (first, others) = parts.split_first()?;
                let column = first.only_column()?;
                others.iter().all(|one| one.only_column() == Some(column)).then_some(column)
            }
        }
    }

    fn judge_limits(&self, limits: &impl Fn(usize) -> Option<Limits>) -> Matches {
        match self {
            Self::Test(column, test) => limits(*column).map_or(Matches::Some, |limits| test.judge(limits)),
            Self::Pair(left, right, pair) => match (limits(*left), limits(*right)) {
                (Some(left), Some(right)) => pair.judge(left, right),
                _ => Matches::Some,
            },
            Self::And(all) => all.iter().map(|one| one.judge_limits(limits)).min().unwrap_or(Matches::All),
            Self::Or(any) => any.iter().map(|one| one.judge_limits(limits)).max().unwrap_or(Matches::None),
            Self::Not(one) => one.judge_limits(limits).inverted(),
        }
    }

    /// Returns whether each of `rows` rows satisfies the condition. `values` holds the values of columns, by number, as
    /// [`TableColumn::read_comparable`] reads them; of those that are not tested it may hold none.
    pub fn evaluate(&self, rows: usize, values: &[&[u8]]) -> Vec<bool> {
        let fold = |all: &[Self], start: bool, join: fn(bool, bool) -> bool| {
            let mut holds = vec![start; rows];
            for one in all {
                let found = one.evaluate(rows, values);
                holds.iter_mut().zip(found).for_each(|(holds, found)| *holds = join(*holds, found));
            }
            holds
        };
        match self {
            Self::Test(column, test) => test.evaluate(values[*column]),
            Self::Pair(left, right, pair) => pair.evaluate(values[*left], values[*right]),
            Self::And(all) => fold(all, true, |left, right| left & right),
            Self::Or(any) => fold(any, false, |left, right| left | right),
            Self::Not(one) => {
                let mut holds = one.evaluate(rows, values);
                holds.iter_mut().for_each(|holds| *holds = !*holds);
                holds
            }
        }
    }
}

impl Test {
    fn new(kind: &ColumnKind, operator: Operator, value: &Literal) -> Result<Self, String> {
        match (kind, value) {
            (ColumnKind::Number(number) | ColumnKind::Enumeration { base: number, .. }, Literal::Integer(value)) => {
                Ok(Self::of_integer(*number, operator, *value))
            }
            (ColumnKind::Number(number) | ColumnKind::Enumeration { base: number, .. }, Literal::Float(value)) => {
                Ok(Self::of_float(*number, operator, *value))
            }
            (ColumnKind::Enumeration { base, symbols }, Literal::Text(name)) => {
                let known = symbols.iter().find(|(known, _)| known == name.as_bytes());
                known.map(|(_, value)| Self::of_integer(*base, operator, *value)).ok_or_else(|| {
                    let names = symbols.iter().map(|(name, _)| String::from_utf8_lossy(name)).collect::<Vec<_>>();
                    format!("has no value {name:?}; its values are {}", names.join(", "))
                })
            }
            (ColumnKind::Text(form), Literal::Text(value)) => {
                Ok(Self::Texts { form: *form, operator, value: value.as_bytes().to_vec() })
            }
            (ColumnKind::Number(_), Literal::Text(text)) => Err(format!("holds numbers, which {text:?} is not")),
            (ColumnKind::Text(_), _) => Err(format!("holds texts, which {value} is not; put it in quotes")),
            // Compared elsewhere.
            (_, Literal::Column(other)) => Err(format!("is compared with the column {other}")),
            (ColumnKind::Other(what), _) => Err(format!("holds {what}, which cannot be compared")),
        }
    }

    fn of_integer(number: NumberType, operator: Operator, value: i128) -> Self {
        if !number.is_integer() {
            return Self::of_float(number, operator, value as f64);
        }
        let (low, high, is_inside) = match operator {
            // Nothing is in the range from 1 to 0.
            Operator::Less if value == i128::MIN => (1, 0, true),
            Operator::Greater if value == i128::MAX => (1, 0, true),
            Operator::Less => (i128::MIN, value - 1, true),
            Operator::LessOrEqual => (i128::MIN, value, true),
            Operator::Greater => (value + 1, i128::MAX, true),
            Operator::GreaterOrEqual => (value, i128::MAX, true),
            Operator::Equal => (value, value, true),
            Operator::NotEqual => (value, value, false),
        };
        Self::Integers { number, low, high, is_inside }
    }

    fn of_float(number: NumberType, operator: Operator, value: f64) -> Self {
        if !number.is_integer() {
            let value = if number.len_bytes() == 4 { f64::from(value as f32) } else { value };
            return Self::Floats { number, operator, value };
        }
        let nothing = |is_inside| Self::Integers { number, low: 1, high: 0, is_inside };
        if value.is_nan() {
            return nothing(operator != Operator::NotEqual);
        }
        let (floor, is_integral) = (value.floor(), value.fract() == 0.0);
        let below = floor as i128;
        match operator {
            Operator::Equal | Operator::NotEqual if !is_integral || value.is_infinite() => {
                nothing(operator == Operator::Equal)
            }
            // Of two integers, the smaller one lies below any number between them.
            Operator::Less if !is_integral => Self::of_integer(number, Operator::LessOrEqual, below),
            Operator::GreaterOrEqual if !is_integral => Self::of_integer(number, Operator::Greater, below),
            operator => Self::of_integer(number, operator, below),
        }
    }

    fn judge(&self, limits: Limits) -> Matches {
        match (self, limits) {
            (_, Limits::Empty) => Matches::None,
            (Self::Integers { low, high, is_inside, .. }, Limits::Integers { min, max }) => {
                let verdict = Matches::of(*low <= min && max <= *high, max < *low || min > *high || low > high);
                if *is_inside { verdict } else { verdict.inverted() }
            }
            (Self::Floats { operator, value, .. }, Limits::Floats { min, max, nans }) => {
                let of_nans = operator.holds(&f64::NAN, value);
                let of_numbers = judge_floats(*operator, *value, min, max);
                match (nans > 0, min <= max) {
                    (false, _) => of_numbers,
                    (true, false) => Matches::of(of_nans, !of_nans),
                    (true, true) if of_numbers == Matches::of(of_nans, !of_nans) => of_numbers,
                    (true, true) => Matches::Some,
                }
            }
            (Self::Texts { form, operator, value }, Limits::Texts { min, max }) => {
                let is_whole = match form {
                    TextForm::Padded { len_bytes } => {
                        value.len().max(*len_bytes) <= TextPrefix::LEN_BYTES && unpadded(value).len() == value.len()
                    }
                    // A text without zeros that has the prefix of a shorter one, also without zeros, is equal to it.
                    TextForm::Canonical => value.len() < TextPrefix::LEN_BYTES && !value.contains(&0),
                };
                judge_texts(*operator, TextPrefix::of(value), min, max, is_whole)
            }
            _ => Matches::Some,
        }
    }

    fn evaluate(&self, bytes: &[u8]) -> Vec<bool> {
        match self {
            Self::Integers { number, low, high, is_inside } => {
                with_words!(*number, bytes, |words| in_range(words, *low, *high, *is_inside))
            }
            Self::Floats { number, operator, value } => {
                with_words!(*number, bytes, |words| compared(words, *operator, *value))
            }
            Self::Texts { form, operator, value } => {
                let mut holds = Vec::new();
                form.for_each(bytes, |text| holds.push(operator.holds(text, value.as_slice())));
                holds
            }
        }
    }
}

/// Judges numbers between two limits, none of which is NaN.
fn judge_floats(operator: Operator, value: f64, min: f64, max: f64) -> Matches {
    let is_outside = !(min <= value && value <= max);
    match operator {
        Operator::Less | Operator::LessOrEqual => {
            Matches::of(operator.holds(&max, &value), !operator.holds(&min, &value))
        }
        Operator::Greater | Operator::GreaterOrEqual => {
            Matches::of(operator.holds(&min, &value), !operator.holds(&max, &value))
        }
        Operator::Equal => Matches::of(min == value && max == value, is_outside),
        Operator::NotEqual => Matches::of(min == value && max == value, is_outside).inverted(),
    }
}

/// Judges texts by the limits of their prefixes. `is_whole` states whether a text with the prefix of the value is equal to
/// it; otherwise they may differ.
fn judge_texts(operator: Operator, value: TextPrefix, min: TextPrefix, max: TextPrefix, is_whole: bool) -> Matches {
    // Of all texts.
    let (are_less, are_greater) = (max < value, min > value);
    let (are_not_greater, are_not_less) =
        (are_less || is_whole && max <= value, are_greater || is_whole && min >= value);
    match operator {
        Operator::Less => Matches::of(are_less, are_not_less),
        Operator::LessOrEqual => Matches::of(are_not_greater, are_greater),
        Operator::Greater => Matches::of(are_greater, are_not_greater),
        Operator::GreaterOrEqual => Matches::of(are_not_less, are_less),
        Operator::Equal => Matches::of(are_not_greater && are_not_less, are_less || are_greater),
        Operator::NotEqual => Matches::of(are_not_greater && are_not_less, are_less || are_greater).inverted(),
    }
}

fn in_range<N: Number>(words: impl Iterator<Item = N>, low: i128, high: i128, is_inside: bool) -> Vec<bool> {
    let (first, last) = (N::clamped(low), N::clamped(high));
    // Limits beyond those of the type are moved to them, unless that would move them past each other.
    if low > high || first.to_integer() < low || last.to_integer() > high {
        return words.map(|_| !is_inside).collect();
    }
    words.map(|word| (word >= first && word <= last) == is_inside).collect()
}

fn compared<N: Number>(words: impl Iterator<Item = N>, operator: Operator, value: f64) -> Vec<bool> {
    let value = N::rounded(value);
    match operator {
        Operator::Less => words.map(|word| word < value).collect(),
        Operator::LessOrEqual => words.map(|word| word <= value).collect(),
        Operator::Greater => words.map(|word| word > value).collect(),
        Operator::GreaterOrEqual => words.map(|word| word >= value).collect(),
        Operator::Equal => words.map(|word| word == value).collect(),
        Operator::NotEqual => words.map(|word| word != value).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::OrderedType;
    use crate::texts::canonical_of;
    use proptest::prelude::*;

    fn of_value(number: NumberType, operator: Operator, value: &Literal) -> Test {
        Test::new(&ColumnKind::Number(number), operator, value).unwrap()
    }

    /// Small numbers, so that they often are equal, and extremes.
    fn floats() -> impl Strategy<Value = f64> {
        let special =
            prop::sample::select(vec![0.0, -0.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MAX, 1e-320]);
        prop_oneof![4 => (-3_i32..4).prop_map(|value| f64::from(value) / 2.0), 1 => special, 1 => any::<f64>()]
    }

    fn integers() -> impl Strategy<Value = i64> {
        prop_oneof![4 => -3_i64..4, 1 => prop::sample::select(vec![i64::MIN, i64::MAX, 1 << 53, (1 << 53) + 1]), 1 => any::<i64>()]
    }

    /// Texts that often share their first bytes, with zeros at any place.
    fn text() -> impl Strategy<Value = Vec<u8>> {
        let start = prop::sample::select(vec![0_usize, 2, 15, 16, 18]);
        (start, prop::collection::vec(prop::sample::select(vec![0, b'a', b'b', 0xff]), 0..3)).prop_map(
            |(start, end)| {
                let mut text = vec![b'a'; start];
                text.extend(end);
                text
            },
        )
    }

    fn literal() -> impl Strategy<Value = Literal> {
        prop_oneof![
            integers().prop_map(|value| Literal::Integer(i128::from(value))),
            (-2_i128..3).prop_map(|beyond| Literal::Integer(i128::from(u64::MAX) + beyond)),
            floats().prop_map(Literal::Float),
        ]
    }

    /// Compares exactly, whatever the types.
    fn exactly(operator: Operator, left: i128, right: &Literal) -> bool {
        match right {
            Literal::Integer(right) => operator.holds(&left, right),
            Literal::Float(right) if right.is_nan() => operator == Operator::NotEqual,
            Literal::Float(right) if right.abs() > 1e30 => operator.holds(&0.0, right),
            // An integer equals the float if it equals its floor and nothing is left; otherwise the rest decides.
            Literal::Float(right) => {
                let (floor, has_rest) = (right.floor() as i128, right.fract() != 0.0);
                operator.holds(&(left, false), &(floor, has_rest))
            }
            Literal::Text(_) | Literal::Column(_) => false,
        }
    }

    fn condition() -> impl Strategy<Value = (Vec<Test>, Condition)> {
        let test = (any::<bool>(), prop::sample::select(Operator::ALL.to_vec()), literal());
        prop::collection::vec(test, 1..5).prop_flat_map(|drawn| {
            let number = |is_float: bool| match is_float {
                true => NumberType::Float { len_bytes: 8, is_big_endian: false },
                false => NumberType::int64(),
            };
            let tests: Vec<(usize, Test)> = drawn
                .iter()
                .map(|(is_float, operator, value)| {
                    (usize::from(*is_float), of_value(number(*is_float), *operator, value))
                })
                .collect();
            let leaf = prop::sample::select(tests.clone()).prop_map(|(column, test)| Condition::Test(column, test));
            let tree = leaf.prop_recursive(3, 12, 3, |inner| {
                prop_oneof![
                    prop::collection::vec(inner.clone(), 0..3).prop_map(Condition::And),
                    prop::collection::vec(inner.clone(), 0..3).prop_map(Condition::Or),
                    inner.prop_map(|one| Condition::Not(Box::new(one))),
                ]
            });
            (Just(tests.into_iter().map(|(_, test)| test).collect()), tree)
        })
    }

    proptest! {
        #[test]
        fn integers_are_compared_exactly(values in prop::collection::vec(integers(), 0..8), at in 0_usize..6, value in literal()) {
            let test = of_value(NumberType::int64(), Operator::ALL[at], &value);
            let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
            let expected: Vec<bool> = values.iter().map(|&left| exactly(Operator::ALL[at], i128::from(left), &value)).collect();
            prop_assert_eq!(test.evaluate(&bytes), expected);
        }

        #[test]
        fn small_types_have_limits(values in prop::collection::vec(any::<u8>(), 0..8), at in 0_usize..6, value in -300_i128..600) {
            let number = NumberType::Integer { len_bytes: 1, signed: false, is_big_endian: false };
            let test = of_value(number, Operator::ALL[at], &Literal::Integer(value));
            let expected: Vec<bool> = values.iter().map(|&left| Operator::ALL[at].holds(&i128::from(left), &value)).collect();
            prop_assert_eq!(test.evaluate(&values), expected);
        }

        #[test]
        fn floats_are_compared_as_ieee_says(values in prop::collection::vec(floats(), 0..8), at in 0_usize..6, value in floats()) {
            let single = NumberType::Float { len_bytes: 4, is_big_endian: true };
            let double = NumberType::Float { len_bytes: 8, is_big_endian: false };
            let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
            let expected: Vec<bool> = values.iter().map(|left| Operator::ALL[at].holds(left, &value)).collect();
            prop_assert_eq!(of_value(double, Operator::ALL[at], &Literal::Float(value)).evaluate(&bytes), expected);
            let bytes: Vec<u8> = values.iter().flat_map(|&value| (value as f32).to_be_bytes()).collect();
            let expected: Vec<bool> = values.iter().map(|&left| Operator::ALL[at].holds(&(left as f32), &(value as f32))).collect();
            prop_assert_eq!(of_value(single, Operator::ALL[at], &Literal::Float(value)).evaluate(&bytes), expected);
        }

        #[test]
        fn texts_are_judged_as_their_values(
            texts in prop::collection::vec(text(), 0..4),
            value in text(),
            len_bytes in prop::sample::select(vec![3_usize, 16, 17, 20]),
            at in 0_usize..6,
        ) {
            let mut bytes = Vec::new();
            for text in &texts {
                let end = bytes.len() + len_bytes;
                bytes.extend(text.iter().take(len_bytes));
                bytes.resize(end, 0);
            }
            // Texts of variable length have no zeros.
            let cut = texts.iter().map(|text| text.split(|byte| *byte == 0).next().unwrap());
            let (padded, canonical) = (TextForm::Padded { len_bytes }, TextForm::Canonical);
            for (form, bytes) in [(padded, bytes), (canonical, canonical_of(cut))] {
                let test = Test::Texts { form, operator: Operator::ALL[at], value: value.clone() };
                let holds = test.evaluate(&bytes);
                let expected = form.texts(&bytes).into_iter().map(|text| Operator::ALL[at].holds(text, value.as_slice()));
                prop_assert_eq!(&holds, &expected.collect::<Vec<_>>());
                match test.judge(BlockStatistics::of(OrderedType::Text(form), &bytes).limits) {
                    Matches::None => prop_assert!(!holds.contains(&true), "{test:?} {holds:?}"),
                    Matches::All => prop_assert!(!holds.contains(&false), "{test:?} {holds:?}"),
                    Matches::Some => {}
                }
            }
        }

        #[test]
        fn a_block_is_judged_as_its_values(
            rows in prop::collection::vec((integers(), floats()), 0..6),
            (_, condition) in condition(),
        ) {
            let whole: Vec<u8> = rows.iter().flat_map(|row| row.0.to_le_bytes()).collect();
            let real: Vec<u8> = rows.iter().flat_map(|row| row.1.to_le_bytes()).collect();
            let double = NumberType::Float { len_bytes: 8, is_big_endian: false };
            let known = [(NumberType::int64(), &whole), (double, &real)]
                .map(|(number, bytes)| BlockStatistics::of(OrderedType::Number(number), bytes));
            let limits = known.clone().map(|one| BlockStatistics::of_limits(one.limits));
            let holds = condition.evaluate(rows.len(), &[&whole, &real]);
            let unknown = condition.judge(&|column| (column == 0).then_some(&known[0]));
            let by_limits = condition.judge(&|column| Some(&limits[column]));
            let by_values = condition.judge(&|column| Some(&known[column]));
            // Of fewer than 16 rows of one column, the values decide everything.
            if condition.only_column().is_some() && !rows.is_empty() {
                let expected = Matches::of(!holds.contains(&false), !holds.contains(&true));
                prop_assert_eq!(by_values, expected);
            }
            for verdict in [by_values, by_limits, unknown] {
                match verdict {
                    Matches::None => prop_assert!(!holds.contains(&true), "{condition:?} {holds:?}"),
                    Matches::All => prop_assert!(!holds.contains(&false), "{condition:?} {holds:?}"),
                    Matches::Some => {}
                }
            }
        }
    }

    #[test]
    fn limits_decide_where_they_can() {
        let double = NumberType::Float { len_bytes: 8, is_big_endian: false };
        let verdict = |operator, value, min, max, nans| {
            of_value(double, operator, &Literal::Float(value)).judge(Limits::Floats { min, max, nans })
        };
        assert_eq!(verdict(Operator::Greater, 2.0, 0.0, 2.0, 0), Matches::None);
        assert_eq!(verdict(Operator::Greater, 2.0, 2.5, 3.0, 0), Matches::All);
        assert_eq!(verdict(Operator::Greater, 2.0, 2.5, 3.0, 1), Matches::Some);
        assert_eq!(verdict(Operator::NotEqual, 2.0, 2.5, 3.0, 1), Matches::All);
        assert_eq!(verdict(Operator::Equal, f64::NAN, 0.0, 1.0, 1), Matches::None);
        assert_eq!(verdict(Operator::NotEqual, 1.0, f64::INFINITY, f64::NEG_INFINITY, 3), Matches::All);
        // Infinite limits of a block without numbers are not values.
        assert_eq!(verdict(Operator::LessOrEqual, f64::INFINITY, f64::INFINITY, f64::NEG_INFINITY, 3), Matches::None);
        assert_eq!(verdict(Operator::Equal, 0.0, -0.0, -0.0, 0), Matches::All);
    }

    #[test]
    fn texts_are_compared_without_padding() {
        let padded = TextForm::Padded { len_bytes: 4 };
        let kind = ColumnKind::Text(padded);
        let test = |operator, value: &str| Test::new(&kind, operator, &Literal::Text(value.to_owned())).unwrap();
        assert_eq!(test(Operator::Equal, "ab").evaluate(b"ab\0\0abc\0"), [true, false]);
        assert_eq!(test(Operator::Less, "abc").evaluate(b"ab\0\0abc\0b\0\0\0"), [true, false, false]);
        let refused = Test::new(&kind, Operator::Equal, &Literal::Integer(3)).unwrap_err();
        assert!(refused.contains("holds texts"), "{refused}");

        let judge = |operator, value: &str, texts: &[u8]| {
            test(operator, value).judge(BlockStatistics::of(OrderedType::Text(padded), texts).limits)
        };
        assert_eq!(judge(Operator::Equal, "far", b"far\0far\0"), Matches::All);
        assert_eq!(judge(Operator::Equal, "far", b"far\0near"), Matches::Some);
        assert_eq!(judge(Operator::Equal, "side", b"far\0near"), Matches::None);
        assert_eq!(judge(Operator::Less, "near", b"far\0near"), Matches::Some);
        assert_eq!(judge(Operator::LessOrEqual, "near", b"far\0near"), Matches::All);
        assert_eq!(judge(Operator::Greater, "near", b"far\0near"), Matches::None);
    }

    #[test]
    fn distinct_values_decide_between_the_limits() {
        let double = NumberType::Float { len_bytes: 8, is_big_endian: false };
        let bytes: Vec<u8> = [1.0, 5.0, 1.0, f64::NAN].iter().flat_map(|value: &f64| value.to_le_bytes()).collect();
        let known = BlockStatistics::of(OrderedType::Number(double), &bytes);
        let test = |operator, value| Condition::Test(0, of_value(double, operator, &Literal::Float(value)));
        let limits = BlockStatistics::of_limits(known.limits);
        let judge = |condition: Condition| {
            let by_limits = condition.judge(&|_| Some(&limits));
            (by_limits, condition.judge(&|_| Some(&known)))
        };
        assert_eq!(judge(test(Operator::Equal, 3.0)), (Matches::Some, Matches::None));
        assert_eq!(judge(test(Operator::NotEqual, 3.0)), (Matches::Some, Matches::All));
        assert_eq!(judge(test(Operator::Equal, 5.0)), (Matches::Some, Matches::Some));
        // No row lies between 2 and 4, although some are above 2 and some below 4.
        let between = Condition::And(vec![test(Operator::Greater, 2.0), test(Operator::Less, 4.0)]);
        assert_eq!(judge(between.clone()), (Matches::Some, Matches::None));
        assert_eq!(judge(Condition::Not(Box::new(between))), (Matches::Some, Matches::All));
        // Together, both parts hold for every number, but not for NaN.
        let any = Condition::Or(vec![test(Operator::Equal, 1.0), test(Operator::Equal, 5.0)]);
        assert_eq!(judge(any), (Matches::Some, Matches::Some));
        // Each part has a column of its own.
        let other = Condition::Test(1, of_value(double, Operator::Equal, &Literal::Float(0.0)));
        let both = Condition::And(vec![other, test(Operator::Equal, 3.0)]);
        assert_eq!(both.judge(&|column| (column == 0).then_some(&known)), Matches::None);
    }

    #[test]
    fn prefixes_of_longer_texts_decide_where_they_can() {
        let judge = |operator, value: &str, texts: &[&[u8]]| {
            let test = Test::new(&ColumnKind::Text(TextForm::Canonical), operator, &Literal::Text(value.to_owned()));
            test.unwrap().judge(BlockStatistics::of_texts(texts).limits)
        };
        let (long, longer) = (b"0123456789abcdef".as_slice(), b"0123456789abcdefg".as_slice());
        assert_eq!(judge(Operator::Equal, "far", &[b"far", b"far"]), Matches::All);
        assert_eq!(judge(Operator::Equal, "far", &[b"near", b"side"]), Matches::None);
        assert_eq!(judge(Operator::Equal, "0123456789abcdef", &[long, longer]), Matches::Some);
        assert_eq!(judge(Operator::Equal, "0123456789abcde", &[long, longer]), Matches::None);
        assert_eq!(judge(Operator::LessOrEqual, "0123456789abcdef", &[long, longer]), Matches::Some);
        assert_eq!(judge(Operator::Greater, "", &[b"", b"a"]), Matches::Some);
        assert_eq!(judge(Operator::GreaterOrEqual, "", &[b"", b"a"]), Matches::All);
    }

    #[test]
    fn values_of_enumerations_have_names() {
        let symbols = vec![(b"red".to_vec(), 3), (b"blue".to_vec(), -1)];
        let kind = ColumnKind::Enumeration {
            base: NumberType::Integer { len_bytes: 1, signed: true, is_big_endian: false },
            symbols,
        };
        let test = Test::new(&kind, Operator::Equal, &Literal::Text("blue".to_owned())).unwrap();
        assert_eq!(test.evaluate(&[3, 255]), [false, true]);
        let refused = Test::new(&kind, Operator::Equal, &Literal::Text("green".to_owned())).unwrap_err();
        assert_eq!(refused, "has no value \"green\"; its values are red, blue");
    }
}
