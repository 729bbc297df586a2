//! Columns that the user asks to add (`--add-column NAME=@ATTRIBUTE`).
//!
//! Plain values. Invariant: the text form of a parsed column parses to the same column.

use crate::schema::{child_path, last_name};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A column that repeats an attribute of each input for all rows of that input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct AddedColumn {
    /// Absolute path of the column, or a name to be used in every group that has datasets with rows.
    pub name: String,
    /// Path of the object with the attribute.
    pub object: String,
    /// Name of the attribute.
    pub attribute: String,
}

impl AddedColumn {
    /// Parses `NAME=@ATTRIBUTE` or `NAME=OBJECT@ATTRIBUTE`.
    ///
    /// # Errors
    /// If the text is not of this form; the error gives the reason.
    pub fn parse(text: &str) -> Result<Self, String> {
        const FORM: &str = "expected NAME=@ATTRIBUTE, such as run=@run, or NAME=OBJECT@ATTRIBUTE";
        let refuse = |what: &str| format!("{text:?}: {what}");
        let (name, source) = text.split_once('=').ok_or_else(|| refuse(FORM))?;
        let (object, attribute) = source.rsplit_once('@').ok_or_else(|| refuse(FORM))?;
        if name.is_empty() || attribute.is_empty() || name.ends_with('/') {
            return Err(refuse(FORM));
        }
        if name.contains('/') && !name.starts_with('/') {
            return Err(refuse("a path begins with a slash; a name without a slash applies to every group"));
        }
        if !object.is_empty() && !object.starts_with('/') {
            return Err(refuse("the path of an object begins with a slash"));
        }
        let object = match object.trim_end_matches('/') {
            "" => "/",
            object => object,
        };
        Ok(Self { name: name.to_owned(), object: object.to_owned(), attribute: attribute.to_owned() })
    }

    /// Returns whether a dataset at `path` is this column.
    pub(super) fn is_at(&self, path: &[u8]) -> bool {
        match self.name.starts_with('/') {
            true => path == self.name.as_bytes(),
            false => last_name(path) == self.name.as_bytes(),
        }
    }

    /// Returns the path of the column in `group`; `None` if the column belongs to another group.
    pub(super) fn path_in(&self, group: &[u8]) -> Option<Vec<u8>> {
        let name = self.name.rsplit('/').next().unwrap_or_default();
        let path = child_path(group, name.as_bytes());
        self.is_at(&path).then_some(path)
    }
}

impl fmt::Display for AddedColumn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let object = if self.object == "/" { "" } else { &self.object };
        write!(f, "{}={object}@{}", self.name, self.attribute)
    }
}

impl FromStr for AddedColumn {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::parse(text)
    }
}

raddle_core::serde_as_text!(AddedColumn);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_parsed() {
        let parsed = |text: &str| AddedColumn::parse(text).map(|one| (one.name, one.object, one.attribute));
        let of = |parts: [&str; 3]| Ok(parts.map(str::to_owned).into());
        assert_eq!(parsed("run=@run"), of(["run", "/", "run"]));
        assert_eq!(parsed("/hits/run=/meta@run no"), of(["/hits/run", "/meta", "run no"]));
        assert_eq!(parsed("t=/a=b/@start"), of(["t", "/a=b", "start"]));
        for wrong in ["run", "run=", "run=run", "=@run", "run=@", "hits/run=@run", "run=meta@run", "/hits/=@run"] {
            assert!(parsed(wrong).is_err(), "{wrong}");
        }
        for text in ["run=@run", "/hits/run=/meta@run"] {
            assert_eq!(AddedColumn::parse(text).unwrap().to_string(), text);
        }
    }

    #[test]
    fn names_are_for_every_group_and_paths_for_one() {
        let column = |text: &str| AddedColumn::parse(text).unwrap();
        assert_eq!(column("run=@run").path_in(b"/hits"), Some(b"/hits/run".to_vec()));
        assert_eq!(column("run=@run").path_in(b"/"), Some(b"/run".to_vec()));
        assert_eq!(column("/hits/run=@run").path_in(b"/hits"), Some(b"/hits/run".to_vec()));
        assert_eq!(column("/hits/run=@run").path_in(b"/"), None);
    }
}
