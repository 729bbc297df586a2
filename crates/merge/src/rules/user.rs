//! The user's own rules, `PATTERN: RULE`, for objects that no convention covers.
//!
//! Patterns have the syntax of `--include`. Invariant: a rule of the user takes precedence over one of a convention.

use super::{PositionForm, Rule};
use crate::conventions::{FileView, Refusal};
use crate::error::MergeError;
use crate::schema::{Role, Schema, SchemaEntry, display_path};
use globset::{GlobBuilder, GlobMatcher};
use serde::{Deserialize, Serialize};
use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::str::FromStr;

/// Rule for all datasets whose path matches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserRule {
    /// Pattern, as the user wrote it.
    pub pattern: String,
    /// Rule, as the user wrote it.
    pub rule: String,
}

/// Description of the syntax, for messages.
const FORMS: &str = "expected 'PATTERN: once', 'PATTERN: concatenate', 'PATTERN: along AXIS', 'PATTERN: bounds|starts|ends|rows of TARGET' or \
     'PATTERN: positions of TARGET'";

impl UserRule {
    /// Parses "PATTERN: RULE".
    ///
    /// # Errors
    /// If the text is not a valid rule; the error gives the reason.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (pattern, rule) = text.rsplit_once(": ").ok_or_else(|| format!("{text:?}: {FORMS}"))?;
        Self::new(pattern.trim(), rule.trim())
    }

    /// Creates a rule for a pattern.
    ///
    /// # Errors
    /// If the pattern or the rule is invalid; the error gives the reason.
    pub fn new(pattern: &str, rule: &str) -> Result<Self, String> {
        let parsed = Self { pattern: pattern.to_owned(), rule: rule.to_owned() };
        parsed.matcher().map_err(|error| format!("{pattern:?}: not a valid pattern: {error}"))?;
        parsed.form(b"/").ok_or_else(|| format!("{rule:?}: {FORMS}"))?;
        Ok(parsed)
    }

    /// Returns whether the rule is for the dataset at `path`.
    pub(crate) fn matches(&self, path: &[u8]) -> bool {
        self.matcher().is_ok_and(|matcher| matcher.is_match(Path::new(OsStr::from_bytes(path))))
    }

    /// Reads rules from a TOML file: a table `rules` that maps patterns to rules.
    ///
    /// # Errors
    /// If the file is not TOML or holds an invalid rule; the error gives the place.
    pub fn parse_file(text: &str) -> Result<Vec<Self>, String> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct UserRulesFile {
            rules: std::collections::BTreeMap<String, String>,
        }
        let file: UserRulesFile = toml::from_str(text).map_err(|error: toml::de::Error| match error.span() {
            Some(span) => {
                let line = text[..span.start.min(text.len())].lines().count().max(1);
                format!("line {line}: {}", error.message())
            }
            None => error.message().to_owned(),
        })?;
        file.rules.iter().map(|(pattern, rule)| Self::new(pattern, rule)).collect()
    }

    fn matcher(&self) -> Result<GlobMatcher, globset::Error> {
        let anchored = match self.pattern.strip_prefix('/') {
            Some(_) => self.pattern.clone(),
            None if self.pattern.contains('/') => format!("/{}", self.pattern),
            None => format!("/**/{}", self.pattern),
        };
        Ok(GlobBuilder::new(anchored.trim_end_matches('/')).literal_separator(true).build()?.compile_matcher())
    }

    /// Returns the rule for the dataset at `path`; a target without a slash is in the dataset's group.
    fn form(&self, path: &[u8]) -> Option<Rule> {
        let words: Vec<&str> = self.rule.split_whitespace().collect();
        match words.as_slice() {
            ["once"] => Some(Rule::once()),
            ["concatenate"] => Some(Rule::along(0)),
            ["along", axis] => axis.parse().ok().map(Rule::along),
            [form, "of", target] => {
                let form = match *form {
                    "bounds" => PositionForm::Bounds,
                    "starts" => PositionForm::Starts,
                    "ends" => PositionForm::Ends,
                    "rows" | "positions" => PositionForm::Rows,
                    _ => return None,
                };
                let target = match target.starts_with('/') {
                    true => target.as_bytes().to_vec(),
                    false => crate::schema::child_path(crate::schema::parent_path(path), target.as_bytes()),
                };
                Some(Rule::positions(target, form))
            }
            _ => None,
        }
    }
}

impl FromStr for UserRule {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::parse(text)
    }
}

impl fmt::Display for UserRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.pattern, self.rule)
    }
}

/// Refuses rules that match no dataset of the inputs, such as misspelt ones.
pub(crate) fn check_matched(user: &[UserRule], schema: &Schema) -> Result<(), MergeError> {
    let is_column = |entry: &&SchemaEntry| matches!(entry.role, Role::Column(_));
    let columns = || schema.entries.iter().filter(is_column);
    let unmatched = user.iter().find(|one| !columns().any(|entry| one.matches(&entry.path)));
    match unmatched {
        None => Ok(()),
        Some(rule) => Err(MergeError::Object {
            object: rule.pattern.clone(),
            reason: format!("matches no dataset of the inputs (--rule '{rule}')"),
        }),
    }
}

/// Returns whether the last rule that matches the dataset at `path` stores it once.
pub(crate) fn keeps_once(user: &[UserRule], path: &[u8]) -> bool {
    user.iter().rev().find(|one| one.matches(path)).is_some_and(|one| one.rule.trim() == "once")
}

/// Returns whether the last rule that matches the dataset at `path` takes rows of all inputs.
pub(crate) fn has_rows(user: &[UserRule], path: &[u8]) -> bool {
    user.iter().rev().find(|one| one.matches(path)).is_some_and(|one| one.rule.trim() != "once")
}

/// Replaces rules of a convention by those of the user; if several match a dataset, the last applies.
///
/// # Errors
/// If a rule names an axis that its dataset does not have.
pub(crate) fn apply(user: &[UserRule], file: &FileView<'_>, rules: &mut Vec<(u32, Rule)>) -> Result<(), Refusal> {
    for one in user {
        let Ok(matcher) = one.matcher() else { continue };
        for at in 0..file.len() {
            let path = file.path_of(at);
            let is_dataset = file.column(at).is_some();
            if !is_dataset || !matcher.is_match(Path::new(OsStr::from_bytes(path))) {
                continue;
            }
            let Some(rule) = one.form(path) else { continue };
            let rank = file.dims(at).map_or(0, |dims| dims.len());
            if rule.axis() >= rank {
                return Err(Refusal {
                    object: display_path(path),
                    reason: format!("has {rank} axes, counted from 0; the rule for it is '{}'", one.rule),
                });
            }
            rules.retain(|(known, _)| *known as usize != at);
            rules.push((at as u32, rule));
        }
    }
    Ok(())
}
