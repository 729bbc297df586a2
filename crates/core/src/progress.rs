//! Progress events: what a run tells while it runs. How it looks on a terminal is the observer's affair.

use crate::cancel::CancelToken;
use crate::report::InputDifference;
use serde::{Deserialize, Serialize};

/// A stage of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stage {
    /// Reading the inputs' metadata.
    Scan,
    /// Making the plan.
    Plan,
    /// Creating the output's objects.
    Create,
    /// Joining tables by their ids.
    Keys,
    /// Reading stored bytes of inputs.
    Read,
    /// Decoding stored bytes.
    Decode,
    /// Bringing what ranks hold into the boxes that tiles are made of.
    Restructure,
    /// Bringing a tile's pieces together.
    Regroup,
    /// Encoding tiles.
    Encode,
    /// Writing tiles at their addresses.
    Place,
    /// Making the output's metadata point at the tiles.
    Commit,
    /// Reading the output back.
    Verify,
    /// Runs that are measured.
    Measure,
}

impl Stage {
    /// All stages, in the order of a run.
    pub const ALL: [Self; 13] = [
        Self::Scan,
        Self::Plan,
        Self::Create,
        Self::Keys,
        Self::Read,
        Self::Decode,
        Self::Restructure,
        Self::Regroup,
        Self::Encode,
        Self::Place,
        Self::Commit,
        Self::Verify,
        Self::Measure,
    ];

    /// Lower-case name, as in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Scan => "scan",
            Self::Plan => "plan",
            Self::Create => "create",
            Self::Keys => "keys",
            Self::Read => "read",
            Self::Decode => "decode",
            Self::Restructure => "restructure",
            Self::Regroup => "regroup",
            Self::Encode => "encode",
            Self::Place => "place",
            Self::Commit => "commit",
            Self::Verify => "verify",
            Self::Measure => "measure",
        }
    }
}

impl std::fmt::Display for Stage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// Weight of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Something the user may like to know.
    Note,
    /// Something the user should look at.
    Warning,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "event")]
#[non_exhaustive]
pub enum Event {
    /// A stage begins. Stages overlap.
    StageStarted {
        /// Stage.
        stage: Stage,
        /// Bytes that it will advance by, where known.
        total_bytes: Option<u64>,
    },
    /// A stage got on.
    Advanced {
        /// Stage.
        stage: Stage,
        /// Bytes since the last event of this stage.
        bytes: u64,
        /// Items (files, tiles, arrays) since the last event of this stage.
        items: u64,
    },
    /// A stage ended.
    StageFinished {
        /// Stage.
        stage: Stage,
        /// Wall time since it began.
        elapsed_s: f64,
    },
    /// What an interrupted run placed is kept.
    Resumed {
        /// Tiles.
        tiles: u64,
        /// Their stored bytes.
        stored_len_bytes: u64,
    },
    /// What all parts of a job array placed is joined, to be published.
    PartsJoined {
        /// Tiles.
        tiles: u64,
        /// Their stored bytes.
        stored_len_bytes: u64,
    },
    /// Inputs differ, and the run goes on with what its options say of that.
    Differences {
        /// The differences.
        differences: Vec<InputDifference>,
    },
    /// Something to tell.
    Message {
        /// Weight.
        severity: Severity,
        /// Text of one line, without escape sequences.
        text: String,
    },
}

/// Receives events from any thread. Called between batches, so it may take a lock, but should not block.
pub trait Observer: Sync {
    /// Receives one event.
    fn event(&self, event: &Event);
}

/// An observer that ignores everything.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Observer for Silent {
    fn event(&self, _event: &Event) {}
}

/// Who watches a run and who may stop it.
#[derive(Clone, Copy)]
pub struct Watch<'a> {
    /// Receives progress events.
    pub observer: &'a dyn Observer,
    /// Stops the run when cancelled.
    pub cancel: &'a CancelToken,
}

impl std::fmt::Debug for Watch<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Watch").field("cancel", &self.cancel).finish_non_exhaustive()
    }
}

impl<F: Fn(&Event) + Sync> Observer for F {
    fn event(&self, event: &Event) {
        self(event);
    }
}
