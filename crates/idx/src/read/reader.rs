//! Multithreaded reading of a box of a field at a resolution and time step from the files of a dataset.
//!
//! Only blocks with requested samples are read, each once. `stored` finds and decodes blocks; `collective` reads
//! collectively. Invariant: every sample of the result comes from a block that exists and decodes; otherwise the error
//! names file, field and block, unless the query requests the field's default value in missing blocks.

use crate::dataset::compression::BlockFault;
use crate::dataset::grid::{blocks, runs};
use crate::error::{IdxError, Result};
use crate::kernel;
use crate::read::dataset::{Dataset, Query, Readers, zeros};
use crate::read::slabs::Slabs;
use crate::read::stored::{BlockReader, StoredBlocks};
use raddle_core::cancel::CancelToken;
use raddle_core::parallel;
use raddle_core::plan::extent::fill_with;

impl Dataset {
    /// Reads into a new buffer, x fastest, on one thread; [`Dataset::grid`] returns its shape.
    ///
    /// # Errors
    /// As for [`Dataset::read_into`], or if there is not enough memory.
    pub fn read(&self, query: &Query) -> Result<Vec<u8>> {
        self.read_by(query, &Readers { jobs: 1, cancel: &CancelToken::new() })
    }

    /// Reads into a new buffer, x fastest, on several threads.
    ///
    /// # Errors
    /// As for [`Dataset::read_into_by`], or if there is not enough memory.
    pub fn read_by(&self, query: &Query, readers: &Readers<'_>) -> Result<Vec<u8>> {
        let mut out = zeros(self.len_bytes(query)?)?;
        self.read_into_by(query, &mut out, readers)?;
        Ok(out)
    }

    /// Reads the samples of a query into `out`, x fastest, on one thread.
    ///
    /// # Errors
    /// If the query does not fit the dataset or `out`, or a block cannot be read; `out` is then partly written.
    pub fn read_into(&self, query: &Query, out: &mut [u8]) -> Result<()> {
        self.read_into_by(query, out, &Readers { jobs: 1, cancel: &CancelToken::new() })
    }

    /// Reads into `out`, x fastest, on several threads. If several blocks are bad, the error names any one of them.
    ///
    /// # Errors
    /// As for [`Dataset::read_into`], or on cancellation.
    pub fn read_into_by(&self, query: &Query, out: &mut [u8], readers: &Readers<'_>) -> Result<()> {
        let want_bytes = self.len_bytes(query)?;
        if want_bytes != out.len() as u64 {
            return Err(IdxError::Buffer { field: query.field, got_bytes: out.len() as u64, want_bytes });
        }
        let (header, grid, field) = (self.header(), self.grid(query)?, self.readable(query.field)?);
        if query.missing_as_default {
            fill_with(out, &field.default_sample());
        }
        let len = field.sample.len_bytes();
        let slabs = Slabs::cut(&grid, out, len, readers.jobs);
        let stored = StoredBlocks::new(self, query.field, query.time);
        let blocks = blocks(&header.bitmask, header.bits_per_block, &grid, query.resolution);
        let jobs = stored.jobs(&blocks, readers.jobs);
        parallel::for_each(&jobs, readers.jobs, readers.cancel, BlockReader::default, |reader, of_job| {
            reader.read(&stored, of_job, &mut |block, path, found| match found {
                Ok(found) => {
                    let layout = found.record.layout;
                    let runs = runs(&header.bitmask, header.bits_per_block, block, layout, query.resolution);
                    slabs.each(&runs, |slab, out| {
                        runs.iter().for_each(|run| kernel::decode(run, slab, out, found.raw, len));
                    });
                    Ok(())
                }
                Err(BlockFault::NoFile | BlockFault::NotStored) if query.missing_as_default => Ok(()),
                Err(fault) => Err(stored.bad(block, path, fault)),
            })
        })
    }
}
