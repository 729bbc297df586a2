//! Locations of the chunks of a file, as references with which Zarr readers read it: kerchunk's JSON, version 1.

use crate::error::Error;
use raddle_hdf5::child::ChildReader;
use raddle_hdf5::native::ReadLimits;
use raddle_hdf5::references::{OmittedObject, Reference, for_each_reference};
use raddle_hdf5::source::InputFile;
use raddle_merge::append::redo::settle;
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::path::Path;

/// Writes the location of each chunk of the file at `path` to `out`, as references that name the file `url`; returns
/// the objects without references. Anything that raddle does not read natively is read by `library`.
///
/// # Errors
/// If the file cannot be read, or the writer fails.
pub fn write_references(
    path: &Path,
    url: &str,
    library: Option<&ChildReader>,
    out: &mut dyn Write,
) -> Result<Vec<OmittedObject>, Error> {
    let file = InputFile::open(path).map_err(|error| Error::of_file(&error))?;
    file.check_no_writer().map_err(|error| Error::of_file(&error))?;
    settle(path).map_err(|error| Error::of_merge(&error, &[path.to_path_buf()]))?;
    let (mut entries, mut failed) = (Entries::begin(out, url), None);
    let left_out = for_each_reference(&file, &ReadLimits::default(), library, &mut |key, reference| match entries
        .write(key, reference)
    {
        Ok(()) => ControlFlow::Continue(()),
        Err(cause) => {
            failed = Some(cause);
            ControlFlow::Break(())
        }
    });
    let left_out = left_out.map_err(|error| Error::of_file(&error))?;
    match failed.map_or_else(|| entries.end(), Err) {
        Ok(()) => Ok(left_out),
        Err(cause) => Err(Error::writing(Path::new("references"), &cause)),
    }
}

/// Writer of entries; [`Entries::end`] completes the JSON.
struct Entries<'a> {
    out: &'a mut dyn Write,
    /// Name of the file in every entry, as JSON.
    url: String,
    count: u64,
}

impl<'a> Entries<'a> {
    /// Begins references to the file that readers know as `url`.
    fn begin(out: &'a mut dyn Write, url: &str) -> Self {
        Self { out, url: quoted(url), count: 0 }
    }

    /// Writes an entry.
    ///
    /// # Errors
    /// If the writer fails.
    fn write(&mut self, key: &str, reference: Reference<'_>) -> io::Result<()> {
        let before = if self.count == 0 { "{\"version\": 1, \"refs\": {" } else { "," };
        self.count += 1;
        write!(self.out, "{before}\n{}: ", quoted(key))?;
        match reference {
            Reference::Text(text) => write!(self.out, "{}", quoted(text)),
            Reference::Range { address, len_bytes } => write!(self.out, "[{}, {address}, {len_bytes}]", self.url),
        }
    }

    /// Writes the end. There is always at least one entry, for the root group.
    ///
    /// # Errors
    /// If the writer fails.
    fn end(self) -> io::Result<()> {
        self.out.write_all(b"\n}}\n")?;
        self.out.flush()
    }
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
