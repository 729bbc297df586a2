//! Names of columns as written in conditions: plain words, or text in backticks.

use std::fmt;

/// Words that are not names of columns unless they are quoted.
pub(crate) const RESERVED: [&str; 7] = ["and", "or", "not", "true", "false", "inf", "nan"];

/// Name of a column, in quotes if it is not a plain word.
pub(crate) struct Name<'n>(pub &'n str);

impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match is_bare(self.0) {
            true => f.write_str(self.0),
            false => QuotedName(self.0).fmt(f),
        }
    }
}

/// Name or path in backticks.
pub(crate) struct QuotedName<'n>(pub &'n str);

impl fmt::Display for QuotedName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`", self.0.replace('\\', "\\\\").replace('`', "\\`"))
    }
}

/// Returns whether a name of a column can be written without quotes.
fn is_bare(name: &str) -> bool {
    name.starts_with(is_initial) && name.chars().all(is_inner) && !RESERVED.contains(&name.to_lowercase().as_str())
}

/// Returns whether a name without quotes can begin with a character.
pub(crate) fn is_initial(one: char) -> bool {
    one.is_alphabetic() || one == '_' || one == '/'
}

/// Returns whether a name without quotes can contain a character after its first.
pub(crate) fn is_inner(one: char) -> bool {
    one.is_alphanumeric() || matches!(one, '_' | '/' | '.')
}
