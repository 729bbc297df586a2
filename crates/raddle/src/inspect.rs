//! Statistics of a file: how its bytes are used.

use crate::error::Error;
use raddle_hdf5::child::ChildReader;
use raddle_hdf5::inspect::Inspection;
use raddle_hdf5::native::ReadLimits;
use raddle_hdf5::source::InputFile;
use raddle_merge::append::redo::settle;
use std::path::Path;

/// Inspects the file at `path` from its metadata. An interrupted append to it is completed or rolled back first.
///
/// Anything that raddle does not read natively is read by `library`, if there is one.
///
/// ```
/// # use raddle_testing::plain::make_columns;
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("run.h5");
/// # make_columns(&path, &[("/rec/energy", &[1.0, 2.0])])?;
/// let inspection = raddle::inspect(&path, None)?;
/// assert!(inspection.faults.is_empty());
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// If the file cannot be read. Unreadable objects are part of the result.
pub fn inspect(path: &Path, library: Option<&ChildReader>) -> Result<Inspection, Error> {
    // First of all, so that the error distinguishes a missing file from a damaged one.
    let opened = InputFile::open(path).and_then(|file| file.check_no_writer());
    opened.map_err(|error| Error::of_file(&error))?;
    settle(path).map_err(|error| Error::of_merge(&error, &[path.to_path_buf()]))?;
    let inspect = || raddle_hdf5::inspect::inspect(&InputFile::open(path)?, &ReadLimits::default(), library);
    inspect().map_err(|error| Error::of_file(&error))
}
