//! Where chunks lie on a file system that cuts files into stripes: the arenas of a plan.
//!
//! Not for placing them, which the engine does. Invariant: every rank has the same arenas, and they follow from the plan
//! and the length of a stripe alone.

use crate::error::{MergeError, Result};
use crate::options::Compress;
use crate::plan::MergePlan;
use crate::ranks::agree;
use raddle_core::CoreError;
use raddle_core::arenas::Arenas;
use raddle_core::communicator::{Communicator, CommunicatorExt};
use raddle_core::stripes::{self, StripeSource, Stripes};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// What chunks are aligned to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Align {
    /// The stripes that the file system says new files in the output's folder have.
    Auto,
    /// Stripes of this length.
    Stripes(u64),
}

/// What was decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Alignment {
    /// Stripes of the output file.
    pub stripes: Stripes,
    /// How they are divided.
    pub arenas: Arenas,
}

/// Collective. The arenas for the output of `plan`, if they are asked for. The first rank asks the file system.
pub(crate) fn decide(plan: &MergePlan, ranks: &dyn Communicator) -> Result<Option<Alignment>> {
    const OPERATION: &str = "look at the stripes of the file system";
    let stripes = match plan.options.align {
        None => return Ok(None),
        Some(Align::Stripes(len_bytes)) => Stripes { len_bytes, count: None, source: StripeSource::Asked },
        Some(Align::Auto) => {
            let own = (ranks.rank() == 0).then(|| of_folder_of(&plan.options.output)).transpose();
            let nonsense = || CoreError::MessageContent { operation: OPERATION, rank: 0 };
            let own = postcard::to_stdvec(&agree(ranks, OPERATION, own)?).map_err(|_| nonsense())?;
            let told = ranks.broadcast(0, &own)?;
            postcard::from_bytes::<Option<Stripes>>(&told).ok().flatten().ok_or_else(nonsense)?
        }
    };
    let arenas = Arenas::for_output(stripes.len_bytes, expected_len_bytes(plan), plan.tiles.tile_count());
    Ok(Some(Alignment { stripes, arenas }))
}

fn of_folder_of(output: &Path) -> Result<Stripes> {
    let folder = output.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let failed = |source| MergeError::Write { path: folder.to_path_buf(), operation: "ask for its stripes", source };
    stripes::of_folder(folder).map_err(failed)
}

/// About what the chunks of the output take: as much as in the inputs, or all that they hold where they are not compressed.
fn expected_len_bytes(plan: &MergePlan) -> u64 {
    let raw_len_bytes = plan.tiles.raw_len_bytes();
    if plan.options.compress == Compress::None {
        return raw_len_bytes;
    }
    let stored = plan.column_of_array.iter().map(|column| plan.schema.columns[*column as usize].stored_len_bytes());
    stored.fold(0, u64::saturating_add).min(raw_len_bytes)
}
