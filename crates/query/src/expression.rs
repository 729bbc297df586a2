//! Conditions on the rows of a table, as plain data.
//!
//! Comparisons follow IEEE 754: every comparison with NaN is false, except `!=`, which is true, and -0 equals 0. A
//! number is compared with a column of floats in the precision of the column, as in numpy; a column of integers is
//! compared with any number exactly.

use crate::column_name::Name;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;

/// A condition on the rows of a table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Expression {
    /// Comparison of a column with a value.
    Compare {
        /// Name of the column, relative to the table.
        column: String,
        /// Operator of the comparison.
        operator: Operator,
        /// Value to compare with.
        value: Literal,
    },
    /// Whether all conditions hold; true for none.
    And(Vec<Expression>),
    /// Whether any condition holds; false for none.
    Or(Vec<Expression>),
    /// Whether the condition does not hold.
    Not(Box<Expression>),
}

/// A comparison operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Operator {
    /// Less than.
    #[serde(rename = "<")]
    Less,
    /// Less than or equal.
    #[serde(rename = "<=")]
    LessOrEqual,
    /// Greater than.
    #[serde(rename = ">")]
    Greater,
    /// Greater than or equal.
    #[serde(rename = ">=")]
    GreaterOrEqual,
    /// Equal.
    #[serde(rename = "==")]
    Equal,
    /// Not equal.
    #[serde(rename = "!=")]
    NotEqual,
}

impl Operator {
    /// All operators, for tests.
    #[cfg(test)]
    pub(crate) const ALL: [Self; 6] =
        [Self::Less, Self::LessOrEqual, Self::Greater, Self::GreaterOrEqual, Self::Equal, Self::NotEqual];

    /// Compares two values that may be unordered.
    pub fn holds<T: PartialOrd + ?Sized>(self, left: &T, right: &T) -> bool {
        match self {
            Self::Less => left < right,
            Self::LessOrEqual => left <= right,
            Self::Greater => left > right,
            Self::GreaterOrEqual => left >= right,
            Self::Equal => left == right,
            Self::NotEqual => left != right,
        }
    }

    /// Returns the operator for exchanged values: `a < b` is `b > a`.
    #[must_use]
    pub fn exchanged(self) -> Self {
        match self {
            Self::Less => Self::Greater,
            Self::LessOrEqual => Self::GreaterOrEqual,
            Self::Greater => Self::Less,
            Self::GreaterOrEqual => Self::LessOrEqual,
            Self::Equal | Self::NotEqual => self,
        }
    }

    /// Returns the operator as it is written.
    pub fn word(self) -> &'static str {
        match self {
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
            Self::Equal => "==",
            Self::NotEqual => "!=",
        }
    }
}

/// A value that a column is compared with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Literal {
    /// Integer, written as text in JSON, which has no integers of more than 64 bits.
    #[serde(with = "as_text")]
    Integer(i128),
    /// Floating-point number, written as its bits in JSON, which has no NaN and no infinities.
    #[serde(with = "as_bits")]
    Float(f64),
    /// String, or the name of a value of an enumeration.
    #[serde(rename = "text")]
    String(String),
    /// Value of another column in the same row; the column is given by its name.
    Column(String),
}

mod as_text {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub fn serialize<S: Serializer>(value: &i128, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(value)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i128, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

mod as_bits {
    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(value.to_bits())
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
        u64::deserialize(deserializer).map(f64::from_bits)
    }
}

impl Expression {
    /// Returns the names of the columns.
    pub fn columns(&self) -> BTreeSet<&str> {
        match self {
            Self::Compare { column, value: Literal::Column(other), .. } => {
                BTreeSet::from([column.as_str(), other.as_str()])
            }
            Self::Compare { column, .. } => BTreeSet::from([column.as_str()]),
            Self::And(all) | Self::Or(all) => all.iter().flat_map(Self::columns).collect(),
            Self::Not(one) => one.columns(),
        }
    }
}

impl fmt::Display for Literal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(value) => value.fmt(f),
            Self::Float(value) => fmt::Debug::fmt(value, f),
            Self::String(value) => fmt::Debug::fmt(value, f),
            Self::Column(name) => Name(name).fmt(f),
        }
    }
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let joined = |all: &[Self], by: &str| all.iter().map(ToString::to_string).collect::<Vec<_>>().join(by);
        match self {
            Self::Compare { column, operator, value } => {
                write!(f, "({} {} {value})", Name(column), operator.word())
            }
            Self::And(all) if all.is_empty() => f.write_str("true"),
            Self::Or(all) if all.is_empty() => f.write_str("false"),
            Self::And(all) => write!(f, "({})", joined(all, " & ")),
            Self::Or(all) => write!(f, "({})", joined(all, " | ")),
            Self::Not(one) => write!(f, "~{one}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_is_read_back_from_json() {
        let compare =
            |column: &str, operator, value| Expression::Compare { column: column.to_owned(), operator, value };
        let condition = Expression::And(vec![
            compare("a", Operator::Less, Literal::Integer(i128::from(u64::MAX))),
            Expression::Not(Box::new(compare("b", Operator::NotEqual, Literal::Float(f64::INFINITY)))),
            Expression::Or(vec![compare("a", Operator::Equal, Literal::String("x\"".to_owned()))]),
        ]);
        let text = serde_json::to_string(&condition).unwrap();
        assert_eq!(serde_json::from_str::<Expression>(&text).unwrap(), condition);
        assert_eq!(condition.to_string(), r#"((a < 18446744073709551615) & ~(b != inf) & ((a == "x\"")))"#);
        assert_eq!(condition.columns(), BTreeSet::from(["a", "b"]));
    }
}
