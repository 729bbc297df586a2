//! Readers of one thread: raddle's own, and libhdf5 in child processes if the run may start them.
//!
//! Invariant: libhdf5 never opens an input in this process.

use crate::inputs::selection::{LeftOut, Selection};
use crate::options::MergeOptions;
use raddle_hdf5::child::{ChildOptions, ChildReader, ForeignFiles, ListedChunk, ObjectName};
use raddle_hdf5::metadata::{MetadataReader, NativeReader, Reader};
use raddle_hdf5::model::{FileTree, Object};
use raddle_hdf5::native::{self, HeaderTemplateCache, ReadLimits};
use raddle_hdf5::source::MetadataView;
use raddle_hdf5::{Hdf5Error, Result};
use std::ops::Range;
use std::path::Path;

/// Minimum memory for the chunks of a value that is stored once, however many threads share the budget.
const MIN_VALUE_LIMIT_BYTES: u64 = 64 << 20;

/// Reader of the inputs' metadata, and of values that only libhdf5 can find.
#[derive(Debug)]
pub struct InputReader {
    native: NativeReader,
    composed: Option<Reader>,
    selection: Selection,
    /// Maximum memory for the chunks of a dataset that the output stores once.
    value_limit_bytes: u64,
}

impl InputReader {
    /// Creates the readers that `options` allow.
    pub fn new(options: &MergeOptions) -> Self {
        let native = NativeReader { limits: ReadLimits::default() };
        let composed = options.reader.as_ref().map(|command| {
            let foreign_files =
                if options.follow_foreign_files { ForeignFiles::Anywhere } else { ForeignFiles::SameFolder };
            let timeout = options.reader_timeout;
            let is_replaced = options.force && !options.in_place;
            let replaced = is_replaced.then(|| options.output.canonicalize().ok()).flatten();
            let child_options = ChildOptions { foreign_files, timeout, replaced, ..ChildOptions::default() };
            let child = ChildReader::with_options(command.clone(), child_options);
            Reader::new(native, child)
        });
        let value_limit_bytes = (options.memory_limit_bytes / options.jobs.max(1) as u64).max(MIN_VALUE_LIMIT_BYTES);
        Self { native, composed, selection: options.selection.clone(), value_limit_bytes }
    }

    /// Returns the memory for the chunks of a value that is stored once: a thread's share of the budget.
    pub fn value_limit_bytes(&self) -> u64 {
        self.value_limit_bytes
    }

    /// Reads the metadata of the selected objects of a file.
    pub fn read_tree(&self, path: &Path) -> Result<FileTree> {
        let mut tree = self.read_whole_tree(path)?;
        self.selection.prune(&mut tree, path);
        Ok(tree)
    }

    /// Returns whether the dataset at `path` is stored once.
    pub fn keeps(&self, path: &[u8]) -> bool {
        self.selection.keeps(path)
    }

    /// Reads the metadata of all objects of a file.
    pub fn read_whole_tree(&self, path: &Path) -> Result<FileTree> {
        match &self.composed {
            Some(reader) => reader.read_tree(path),
            None => self.native.read_tree(path),
        }
    }

    /// Reads the metadata of the selected objects in the file of `view`; datasets with known templates are returned as
    /// [`ObjectKind::Templated`](raddle_hdf5::model::ObjectKind::Templated). Also returns what is left out.
    pub fn read_outline(
        &self,
        view: &mut MetadataView<'_>,
        forms: &HeaderTemplateCache,
    ) -> Result<(FileTree, LeftOut)> {
        let mut tree = match &self.composed {
            Some(reader) => reader.read_outline(view, forms)?,
            None => native::read_outline(view, &self.native.limits, forms)?,
        };
        let left_out = self.selection.prune(&mut tree, view.file().path());
        Ok((tree, left_out))
    }

    /// Reads one object through libhdf5.
    pub fn read_object(&self, path: &Path, address: u64) -> Result<Object> {
        let mut objects = self.child(path, address)?.read_objects(path, &[address])?;
        objects.pop().ok_or_else(|| unsupported(path, address, "libhdf5 did not find the object"))
    }

    /// Reads values through libhdf5: stored bytes of fixed-size types, and canonical bytes of file-local ones. Reads
    /// `rows` of axis 0, or all rows if `rows` is `None`.
    pub fn read_values(&self, path: &Path, object: &[u8], rows: Option<Range<u64>>) -> Result<Vec<u8>> {
        self.child(path, 0)?.read_values(path, ObjectName::Path(object.to_vec()), rows)
    }

    /// Lists the stored chunks of a dataset whose index only libhdf5 can read.
    pub fn read_chunks(&self, path: &Path, object: &[u8]) -> Result<Vec<ListedChunk>> {
        self.child(path, 0)?.read_chunks(path, ObjectName::Path(object.to_vec()))
    }

    fn child(&self, path: &Path, address: u64) -> Result<&ChildReader> {
        let child = self.composed.as_ref().map(Reader::child);
        child.ok_or_else(|| unsupported(path, address, "needs libhdf5 in a child process, which this run cannot start"))
    }
}

fn unsupported(path: &Path, address: u64, what: &str) -> Hdf5Error {
    Hdf5Error::Unsupported { path: path.to_path_buf(), address, what: what.to_owned() }
}
