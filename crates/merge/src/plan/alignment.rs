//! Arenas of a plan, which align chunks on file systems that divide files into stripes.
//!
//! The engine places the chunks. Invariant: every rank has the same arenas, and they depend only on the plan and the
//! length of a stripe.

use crate::error::{MergeError, Result};
use crate::plan::{MergePlan, Route};
use raddle_core::CoreError;
use raddle_core::output::arenas::Arenas;
use raddle_core::output::stripes::{self, StripeSource, Stripes};
use raddle_core::ranks::communicator::{Communicator, CommunicatorExt};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Unit to which chunks are aligned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Align {
    /// The stripes that the file system reports for new files in the output's folder.
    Auto,
    /// Stripes of this length.
    Stripes(u64),
}

/// Alignment of an output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Alignment {
    /// Stripes of the output file.
    pub stripes: Stripes,
    /// Arenas into which the stripes are divided.
    pub arenas: Arenas,
}

/// Collective. Returns the arenas for the output of `plan`, if they are requested. The first rank queries the file
/// system.
pub(crate) fn decide(plan: &MergePlan, ranks: &dyn Communicator) -> Result<Option<Alignment>> {
    const OPERATION: &str = "read the stripes of the file system";
    let stripes = match plan.options.align {
        None => return Ok(None),
        Some(Align::Stripes(len_bytes)) => Stripes { len_bytes, count: None, source: StripeSource::Asked },
        Some(Align::Auto) => {
            let stripes = (ranks.rank() == 0).then(|| of_folder_of(&plan.options.output)).transpose();
            let nonsense = || CoreError::MessageContent { operation: OPERATION, rank: 0 };
            let message = postcard::to_stdvec(&ranks.agree(OPERATION, stripes)?).map_err(|_| nonsense())?;
            let received = ranks.broadcast(0, &message)?;
            postcard::from_bytes::<Option<Stripes>>(&received).ok().flatten().ok_or_else(nonsense)?
        }
    };
    let arenas = Arenas::for_output(stripes.len_bytes, expected_len_bytes(plan), plan.tiles.tile_count());
    Ok(Some(Alignment { stripes, arenas }))
}

fn of_folder_of(output: &Path) -> Result<Stripes> {
    let folder = output.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let failed = |source| MergeError::Write { path: folder.to_path_buf(), operation: "read its stripes", source };
    stripes::of_folder(folder).map_err(failed)
}

/// Estimates the total stored size of the output's chunks. Chunks that are compressed or moved count as they are stored
/// in the inputs, and others with their uncompressed length.
fn expected_len_bytes(plan: &MergePlan) -> u64 {
    let arrays = plan.tiles.arrays.iter().zip(&plan.column_of_array);
    let expected = arrays.map(|(array, &column)| match &plan.columns[column as usize].route {
        Route::Encoded { encoder, .. } if encoder.compression().is_none() => array.len_bytes(),
        _ => plan.schema.columns[column as usize].stored_len_bytes(),
    });
    expected.fold(0, u64::saturating_add).min(plan.tiles.raw_len_bytes())
}
