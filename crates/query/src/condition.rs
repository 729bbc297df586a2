//! A condition on typed columns: evaluated on values, and judged from the statistics of a block.
//!
//! Invariant: if a block is judged to have no match, evaluation of any values with its statistics finds none; if all
//! rows are judged to match, it finds all.

#[cfg(test)]
mod tests;

use crate::expression::{Expression, Literal, Operator};
use crate::lists::{FloatList, StringList};
use crate::matches::Matches;
use crate::numbers::{Number, with_words};
use crate::pair::Pair;
use crate::ranges::Ranges;
use crate::statistics::{BlockStatistics, Limits, StringPrefix};
use crate::strings::StringForm;
use crate::table::{ColumnKind, TableColumn};
use raddle_hdf5::number::NumberType;
use std::collections::BTreeMap;

/// Minimum length of a list that is searched for each value. With fewer values or ranges, each of them is compared with
/// all values, which the compiler does for several at a time.
const MIN_LISTED: usize = 16;

/// A condition on columns with known types.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Condition {
    /// Test of the column with this number.
    Test(usize, Test),
    /// Comparison of two columns, given by their numbers.
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
    /// Whether an integer lies in one of several ranges.
    Ranges { number: NumberType, ranges: Ranges },
    /// Comparison of a float with a value of the column's precision.
    Floats { number: NumberType, operator: Operator, value: f64 },
    /// Comparison of a string, byte by byte.
    Strings { form: StringForm, operator: Operator, value: Vec<u8> },
    /// Whether a float is one of several.
    FloatList(FloatList),
    /// Whether a string is one of several.
    StringList(StringList),
}

impl Condition {
    /// Creates the condition on `columns`, which include the columns of the expression.
    ///
    /// # Errors
    /// If a column cannot be compared with its value. The error names the column and the reason.
    pub fn new(expression: &Expression, columns: &[TableColumn]) -> Result<Self, (String, String)> {
        let all = |all: &[Expression]| all.iter().map(|one| Self::new(one, columns)).collect::<Result<Vec<_>, _>>();
        Ok(match expression {
            Expression::And(parts) => Self::And(all(parts)?),
            Expression::Or(parts) => Self::any_of(all(parts)?, MIN_LISTED),
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

    /// Creates the condition that any of `parts` holds. Tests of one column that are values or ranges of a list become
    /// one test if there are at least `min_listed`.
    fn any_of(parts: Vec<Self>, min_listed: usize) -> Self {
        let (mut any, mut of_columns) = (Vec::new(), BTreeMap::<usize, Vec<Test>>::new());
        for part in parts {
            match part {
                Self::Test(column, test) if test.is_listed() => of_columns.entry(column).or_default().push(test),
                other => any.push(other),
            }
        }
        for (column, tests) in of_columns {
            match tests.len() >= min_listed {
                true => any.push(Self::Test(column, Test::any_of(tests))),
                false => any.extend(tests.into_iter().map(|test| Self::Test(column, test))),
            }
        }
        Self::Or(any)
    }

    /// Judges a block by the statistics of each column; `None` if they are unknown.
    pub fn judge<'s>(&self, known: &impl Fn(usize) -> Option<&'s BlockStatistics>) -> Matches {
        match self.judge_limits(&|column| known(column).map(|statistics| statistics.limits)) {
            Matches::Some => self.judge_values(known),
            decided => decided,
        }
    }

    /// Judges a block by distinct values: a condition on one column is judged for each value of the column, so that
    /// values that lie between the limits but occur in no row are ignored.
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

    /// Returns the column on which the condition depends; `None` if there is more than one.
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

    /// Returns whether each of `rows` rows satisfies the condition. `values` holds the values of columns, indexed by
    /// column number, as [`TableColumn::read_comparable`] reads them; the values of columns that are not tested may be
    /// empty.
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
            (ColumnKind::Enumeration { base, symbols }, Literal::String(name)) => {
                let known = symbols.iter().find(|(known, _)| known == name.as_bytes());
                known.map(|(_, value)| Self::of_integer(*base, operator, *value)).ok_or_else(|| {
                    let names = symbols.iter().map(|(name, _)| String::from_utf8_lossy(name)).collect::<Vec<_>>();
                    format!("has no value {name:?}; its values are {}", names.join(", "))
                })
            }
            (ColumnKind::String(form), Literal::String(value)) => {
                Ok(Self::Strings { form: *form, operator, value: value.as_bytes().to_vec() })
            }
            (ColumnKind::Number(_), Literal::String(text)) => Err(format!("holds numbers, which {text:?} is not")),
            (ColumnKind::String(_), _) => Err(format!("holds strings, which {value} is not; put it in quotes")),
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

    /// Returns whether the test asks for a range of integers, for one float, or for one string.
    fn is_listed(&self) -> bool {
        match self {
            Self::Integers { is_inside, .. } => *is_inside,
            Self::Floats { operator, .. } | Self::Strings { operator, .. } => *operator == Operator::Equal,
            Self::Ranges { .. } | Self::FloatList(_) | Self::StringList(_) => false,
        }
    }

    /// Creates the test that any of `tests` holds. They are tests of one column, at least one, and all are listed.
    fn any_of(tests: Vec<Self>) -> Self {
        let (mut ranges, mut floats, mut strings) = (Vec::new(), Vec::new(), Vec::new());
        let mut any = tests[0].clone();
        for test in tests {
            match test {
                Self::Integers { low, high, .. } => ranges.push((low, high)),
                Self::Floats { value, .. } => floats.push(value),
                Self::Strings { value, .. } => strings.push(value),
                listed => any = listed,
            }
        }
        match any {
            Self::Integers { number, .. } => Self::Ranges { number, ranges: Ranges::union(ranges) },
            Self::Floats { number, .. } => Self::FloatList(FloatList::new(number, floats)),
            Self::Strings { form, .. } => Self::StringList(StringList::new(form, strings)),
            listed => listed,
        }
    }

    fn judge(&self, limits: Limits) -> Matches {
        match (self, limits) {
            (_, Limits::Empty) => Matches::None,
            (Self::Integers { low, high, is_inside, .. }, Limits::Integers { min, max }) => {
                let verdict = Matches::of(*low <= min && max <= *high, max < *low || min > *high || low > high);
                if *is_inside { verdict } else { verdict.inverted() }
            }
            (Self::Ranges { ranges, .. }, Limits::Integers { min, max }) => ranges.judge(min, max),
            (Self::FloatList(list), limits) => list.judge(limits),
            (Self::StringList(list), limits) => list.judge(limits),
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
            (Self::Strings { form, operator, value }, Limits::Strings { min, max }) => {
                judge_strings(*operator, StringPrefix::of(value), min, max, StringPrefix::is_whole(value, *form))
            }
            _ => Matches::Some,
        }
    }

    fn evaluate(&self, bytes: &[u8]) -> Vec<bool> {
        match self {
            Self::Integers { number, low, high, is_inside } => {
                with_words!(*number, bytes, |words| in_range(words, *low, *high, *is_inside))
            }
            Self::Ranges { number, ranges } => with_words!(*number, bytes, |words| ranges.contain(words)),
            Self::Floats { number, operator, value } => {
                with_words!(*number, bytes, |words| compared(words, *operator, *value))
            }
            Self::Strings { form, operator, value } => {
                let mut holds = Vec::new();
                form.for_each(bytes, |text| holds.push(operator.holds(text, value.as_slice())));
                holds
            }
            Self::FloatList(list) => list.contain(bytes),
            Self::StringList(list) => list.contain(bytes),
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

/// Judges strings by the limits of their prefixes. `is_whole` states whether a string with the prefix of the value is
/// equal to it; otherwise they may differ.
fn judge_strings(
    operator: Operator,
    value: StringPrefix,
    min: StringPrefix,
    max: StringPrefix,
    is_whole: bool,
) -> Matches {
    // Of all strings.
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
