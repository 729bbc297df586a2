//! Progress events of a run. Observers decide how to display them.

use crate::cancel::CancelToken;
use crate::report::InputDifference;
use serde::{Deserialize, Serialize};
use std::time::Instant;

/// A stage of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stage {
    /// Reading the metadata of the inputs.
    Scan,
    /// Making the plan.
    Plan,
    /// Creating the objects of the output.
    Create,
    /// Joining tables with the index by their ids.
    Keys,
    /// Reading stored bytes of inputs.
    Read,
    /// Decoding stored bytes.
    Decode,
    /// Rearranging values into the boxes from which tiles are made: between ranks, or in a scratch file.
    Restructure,
    /// Gathering the pieces of a tile.
    Regroup,
    /// Encoding tiles.
    Encode,
    /// Writing tiles at their addresses.
    Place,
    /// Linking the tiles in the metadata of the output.
    Commit,
    /// Reading the output back.
    Verify,
    /// Measured runs.
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

    /// Returns the lower-case name, as used in reports.
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

/// Importance of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Information that may be useful.
    Note,
    /// Problem that the user should look at.
    Warning,
}

/// Progress event.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "event")]
#[non_exhaustive]
pub enum Event {
    /// A stage has started. Stages overlap.
    StageStarted {
        /// Stage.
        stage: Stage,
        /// Total number of bytes the stage will process, if known.
        total_bytes: Option<u64>,
    },
    /// A stage has made progress.
    Advanced {
        /// Stage.
        stage: Stage,
        /// Number of bytes processed since the last event of this stage.
        bytes: u64,
        /// Items (files, tiles, arrays) processed since the last event of this stage.
        items: u64,
    },
    /// A stage has finished.
    StageFinished {
        /// Stage.
        stage: Stage,
        /// Wall time since the stage began.
        elapsed_s: f64,
    },
    /// Work of an interrupted run is kept.
    Resumed {
        /// Number of tiles.
        tiles: u64,
        /// Stored length of these tiles.
        stored_len_bytes: u64,
    },
    /// The work of all parts of a job array is joined for publication.
    PartsJoined {
        /// Number of tiles.
        tiles: u64,
        /// Stored length of these tiles.
        stored_len_bytes: u64,
    },
    /// One of many files is done.
    FileFinished {
        /// Path of the input.
        input: String,
        /// Path of the output.
        output: String,
        /// Number of files that are done.
        done: u64,
        /// Number of files of the run.
        files: u64,
    },
    /// Inputs differ, and the run continues as its options specify.
    Differences {
        /// The differences.
        differences: Vec<InputDifference>,
    },
    /// Message for the user.
    Message {
        /// Importance.
        severity: Severity,
        /// Text of one line, without escape sequences.
        text: String,
    },
}

/// Receiver of events from any thread. It is called between batches, so it may take a lock, but should not block.
pub trait Observer: Sync {
    /// Handles one event.
    fn event(&self, event: &Event);
}

/// An observer that ignores everything.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Observer for Silent {
    fn event(&self, _event: &Event) {}
}

/// Observer and cancellation of a run.
#[derive(Clone, Copy)]
pub struct Watch<'a> {
    /// Observer that receives progress events.
    pub observer: &'a dyn Observer,
    /// Token that stops the run when it is cancelled.
    pub cancel: &'a CancelToken,
}

impl Watch<'_> {
    /// Reports a warning, of one line without escape sequences.
    pub fn warn(&self, text: String) {
        self.observer.event(&Event::Message { severity: Severity::Warning, text });
    }
}

/// Stage in progress. It is reported as started when it is created, and as finished by [`RunningStage::finish`]. A stage
/// that fails is not reported as finished.
#[must_use = "a stage that is not finished appears to have failed"]
pub struct RunningStage<'a> {
    observer: &'a dyn Observer,
    stage: Stage,
    started: Instant,
}

impl<'a> RunningStage<'a> {
    /// Starts a stage that processes `total_bytes`, if their number is known.
    pub fn start(observer: &'a dyn Observer, stage: Stage, total_bytes: Option<u64>) -> Self {
        let started = Instant::now();
        observer.event(&Event::StageStarted { stage, total_bytes });
        Self { observer, stage, started }
    }

    /// Finishes the stage and returns its wall time in seconds.
    pub fn finish(self) -> f64 {
        let elapsed_s = self.started.elapsed().as_secs_f64();
        self.observer.event(&Event::StageFinished { stage: self.stage, elapsed_s });
        elapsed_s
    }
}

impl std::fmt::Debug for RunningStage<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("RunningStage").field("stage", &self.stage).finish_non_exhaustive()
    }
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
