//! Tables of numbers that need no timing: what commands of this program plan or predict, next to the paper's numbers.
//!
//! A table is data: command lines that print JSON, and where the numbers are in it. Running them is left to the caller.
//! Invariant: a number of the paper is compared with one reported by the command.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A table of numbers.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlannedTable {
    /// Name of the table.
    pub name: String,
    /// One-line title.
    pub title: String,
    /// Place in the paper and its result.
    pub paper: Option<String>,
    /// Rows of the table.
    pub cases: Vec<Case>,
}

/// A row of a table.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// Name of the row.
    pub name: String,
    /// Command line without the program's name; `--json` is added.
    pub command: String,
    /// Numbers by name, with their JSON pointers in the command's output.
    pub take: BTreeMap<String, String>,
    /// The paper's numbers, indexed by the same names.
    #[serde(default)]
    pub paper: BTreeMap<String, f64>,
    /// Tolerance for numbers that the paper rounds, as a share of the paper's number.
    #[serde(default)]
    pub rounded: f64,
    /// Whether the row predicts more processes than this machine has; such rows need `--simulate`.
    #[serde(default)]
    pub simulate: bool,
}

/// Result of a command.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlannedRow {
    /// Name of the row.
    pub name: String,
    /// Command that was run.
    pub command: String,
    /// Numbers reported by the command.
    pub here: BTreeMap<String, f64>,
    /// The paper's numbers.
    pub paper: BTreeMap<String, f64>,
    /// Agreement of the numbers.
    pub verdict: Agreement,
}

/// A table with results.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ResultTable {
    /// Name of the table.
    pub name: String,
    /// One-line title.
    pub title: String,
    /// Place in the paper and its result.
    pub paper: Option<String>,
    /// Rows of the table.
    pub rows: Vec<PlannedRow>,
}

/// Agreement of numbers with the paper's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Agreement {
    /// The numbers are equal, within the paper's rounding.
    Equal,
    /// The numbers differ.
    Differs,
    /// The paper has no such numbers.
    Predicted,
}

impl Agreement {
    /// Returns the description as a phrase.
    pub fn words(self) -> &'static str {
        match self {
            Self::Equal => "as in the paper",
            Self::Differs => "differs",
            Self::Predicted => "predicted",
        }
    }
}

/// Error for a command output that lacks a number.
#[derive(Debug, thiserror::Error)]
#[error("the output of {command:?} has no number at {pointer}")]
pub struct NoNumber {
    command: String,
    pointer: String,
}

impl Case {
    /// Extracts the row from the command's output.
    ///
    /// # Errors
    /// If a number is missing.
    pub fn row(&self, answer: &serde_json::Value) -> Result<PlannedRow, NoNumber> {
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
        Ok(PlannedRow {
            name: self.name.clone(),
            command: self.command.clone(),
            here,
            paper: self.paper.clone(),
            verdict,
        })
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
