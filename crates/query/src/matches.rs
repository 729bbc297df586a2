//! The verdict on the rows of a block of which only the statistics are known.

/// Verdict on a block: which of its rows satisfy a condition.
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

    /// Returns the verdict for values that all satisfy a condition, or for values that all fail it.
    pub fn of(all: bool, none: bool) -> Self {
        match (all, none) {
            (_, true) => Self::None,
            (true, false) => Self::All,
            (false, false) => Self::Some,
        }
    }
}
