//! Figures and tables that have no time: numbers that commands of this program plan or predict, next to the paper's own.
//!
//! What is run is data: the words of a command that prints JSON, and where in it the numbers are. Not for running it. Invariant:
//! a number of the paper is compared with one that the command gave.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A table of numbers.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Planned {
    /// Name.
    pub name: String,
    /// One line on it.
    pub title: String,
    /// Where the paper has it, and what it found.
    pub paper: Option<String>,
    /// Its rows.
    pub cases: Vec<Case>,
}

/// A row.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// Name.
    pub name: String,
    /// Words of a command of this program, without its name; it is given `--json`.
    pub command: String,
    /// Numbers by name, and where the command's answer has them, as JSON pointers.
    pub take: BTreeMap<String, String>,
    /// The paper's numbers, of those that are taken.
    #[serde(default)]
    pub paper: BTreeMap<String, f64>,
    /// By how much, as a share of the paper's number, one may differ that the paper itself rounds.
    #[serde(default)]
    pub rounded: f64,
    /// Whether it is a prediction for more processes than this machine has, which only `--simulate` runs.
    #[serde(default)]
    pub simulate: bool,
}

/// What a command gave.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// Name of the row.
    pub name: String,
    /// The command.
    pub command: String,
    /// The numbers.
    pub here: BTreeMap<String, f64>,
    /// The paper's.
    pub paper: BTreeMap<String, f64>,
    /// Whether they agree.
    pub verdict: Agreement,
}

/// A table and what commands gave.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Table {
    /// Name.
    pub name: String,
    /// One line on it.
    pub title: String,
    /// Where the paper has it, and what it found.
    pub paper: Option<String>,
    /// Its rows.
    pub rows: Vec<Row>,
}

/// Whether numbers agree with the paper's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Agreement {
    /// They are equal, up to the paper's rounding.
    Equal,
    /// They differ.
    Differs,
    /// The paper gives none.
    Predicted,
}

impl Agreement {
    /// As words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Equal => "as in the paper",
            Self::Differs => "differs",
            Self::Predicted => "predicted",
        }
    }
}

/// Why an answer has no row.
#[derive(Debug, thiserror::Error)]
#[error("the answer of {command:?} has no number at {pointer}")]
pub struct NoNumber {
    command: String,
    pointer: String,
}

impl Case {
    /// The row of the command's answer.
    ///
    /// # Errors
    /// If it does not have one of the numbers.
    pub fn row(&self, answer: &serde_json::Value) -> Result<Row, NoNumber> {
        let number = |pointer: &String| {
            let found = answer.pointer(pointer).and_then(serde_json::Value::as_f64);
            found.ok_or_else(|| NoNumber { command: self.command.clone(), pointer: pointer.clone() })
        };
        let here = self.take.iter().map(|(name, pointer)| Ok((name.clone(), number(pointer)?)));
        let here: BTreeMap<String, f64> = here.collect::<Result<_, NoNumber>>()?;
        let agrees = |(name, paper): (&String, &f64)| {
            here.get(name).is_some_and(|found| (found - paper).abs() <= self.rounded * paper.abs())
        };
        let verdict = match self.paper.is_empty() {
            true => Agreement::Predicted,
            false if self.paper.iter().all(agrees) => Agreement::Equal,
            false => Agreement::Differs,
        };
        Ok(Row { name: self.name.clone(), command: self.command.clone(), here, paper: self.paper.clone(), verdict })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(paper: f64, rounded: f64) -> Case {
        let text = format!(
            "name = 'a'\ncommand = 'idx plan'\ntake.holders = '/boxes/0/holders'\npaper.holders = {paper:.1}\nrounded = {rounded:.2}"
        );
        toml::from_str(&text).unwrap()
    }

    #[test]
    fn numbers_are_compared_with_the_papers() {
        let answer = serde_json::json!({"boxes": [{"holders": 420}]});
        assert_eq!(case(420.0, 0.0).row(&answer).unwrap().verdict, Agreement::Equal);
        assert_eq!(case(422.0, 0.01).row(&answer).unwrap().verdict, Agreement::Equal);
        assert_eq!(case(422.0, 0.0).row(&answer).unwrap().verdict, Agreement::Differs);
        let unknown = Case { paper: BTreeMap::new(), ..case(1.0, 0.0) };
        assert_eq!(unknown.row(&answer).unwrap().verdict, Agreement::Predicted);
        let error = unknown.row(&serde_json::json!({"boxes": []})).unwrap_err().to_string();
        assert!(error.contains("/boxes/0/holders"), "{error}");
    }
}
