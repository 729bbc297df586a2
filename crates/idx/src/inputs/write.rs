//! Writing of inputs to an output, by ranks that each read their share of the rows.

use super::array::{Inputs, RowArray};
use crate::error::IdxError;
use crate::request::WriteRequest;
use crate::targets::{FieldSet, TargetWriter, WrittenLayout, begin, format_of, target};
use crate::write::exchange::BoxData;
use crate::write::options::{WriteOptions, WriteReport};
use crate::write::writer::BlockSource;
use raddle_core::ranks::communicator::{Communicator, CommunicatorExt};
use raddle_core::ranks::shares::even_share;
use raddle_core::report::progress::{Event, RunningStage, Stage, Watch};
use std::collections::BTreeSet;
use std::ops::Range;

/// A finished output.
#[derive(Debug)]
pub struct FinishedOutput {
    /// Layout of the output.
    pub layout: WrittenLayout,
    /// Reports of the time steps, or of the only write.
    pub reports: Vec<WriteReport>,
}

/// A write of inputs, the same on every rank except for threads and memory.
///
/// # Examples
///
/// A dataset is copied to a folder of images, and compared with it.
///
/// ```
/// use raddle_core::cancel::CancelToken;
/// use raddle_core::ranks::communicator::SingleProcess;
/// use raddle_core::report::progress::{Silent, Watch};
/// use raddle_idx::inputs::{DatasetInput, InputWrite, Inputs};
/// use raddle_idx::request::{InputRequest, WriteRequest};
/// use raddle_idx::verify::verify;
/// use raddle_idx::{Field, Header, Readers, WriteOptions, Writer};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("a.idx");
/// let header = Header::new("a", &[4, 3], vec![Field::new("rho", "uint8".parse()?)])?;
/// Writer::new(&path, header, WriteOptions::default())?.write(None, &[&[7; 12]])?;
///
/// let selection = InputRequest::default();
/// let open = || Inputs::of_dataset(&selection, DatasetInput::open(&path, &selection)?, |field| field);
/// let request = WriteRequest { output: folder.path().join("a.zarr"), ..WriteRequest::default() };
/// let cancel = CancelToken::new();
/// let watch = Watch { observer: &Silent, cancel: &cancel };
/// let write =
///     InputWrite { inputs: &open()?, request: &request, default_jobs: 1, watch: &watch, ranks: &SingleProcess };
/// assert_eq!(write.write_collective()?.reports[0].sample_len_bytes, 12);
/// assert!(verify(&request.output, Some(open), &Readers { jobs: 1, cancel: &cancel })?.is_good());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy)]
pub struct InputWrite<'w, A> {
    /// Inputs to write.
    pub inputs: &'w Inputs<A>,
    /// Request for the output.
    pub request: &'w WriteRequest,
    /// Number of threads if the request does not name one.
    pub default_jobs: usize,
    /// Observer and cancellation.
    pub watch: &'w Watch<'w>,
    /// Ranks that write together.
    pub ranks: &'w dyn Communicator,
}

impl<A: RowArray> Inputs<A> {
    /// Refuses a request whose output would replace one of the inputs.
    ///
    /// # Errors
    /// If an input is, or has its blocks in, the output.
    pub fn check_output(&self, request: &WriteRequest) -> Result<(), IdxError> {
        let folder = target(format_of(request)).samples_folder(&request.output);
        // The arrays of a dataset have the same path, and one of them is checked for all.
        let mut seen = BTreeSet::new();
        let mut files = self.arrays.iter().filter(|array| seen.insert(array.path()));
        match files.any(|array| array.is_of_output(&request.output, &folder)) {
            true => Err(IdxError::IsInput { path: request.output.clone() }),
            false => Ok(()),
        }
    }

    /// Adds to a request what an input dataset determines: header keys, time steps and, if all of its samples are
    /// copied, its layout.
    pub fn complete(&self, request: &mut WriteRequest) {
        request.others.clone_from(&self.others);
        if self.is_dataset {
            request.input_steps = self.layout.steps.iter().filter_map(|(step, _)| *step).collect();
        }
        if let Some(whole) = &self.whole {
            target(format_of(request)).adopt_layout(request, whole.dataset.header());
        }
    }

    /// Returns the fields that the inputs form in an output.
    pub fn field_set(&self) -> FieldSet {
        let (counts, fields) = (self.layout.counts.clone(), self.layout.fields.clone());
        FieldSet { counts, fields, steps: self.layout.step_range() }
    }
}

impl<A: RowArray> InputWrite<'_, A> {
    /// Collective. Writes the inputs. If they are a dataset whose blocks the output has as well, blocks are copied and
    /// not decoded to samples.
    ///
    /// # Errors
    /// If an input cannot be read, the request does not fit the inputs, or the output cannot be written; on every rank.
    pub fn write_collective(&self) -> Result<FinishedOutput, A::Error> {
        if let Some(written) = self.copy_blocks()? {
            return Ok(written);
        }
        let options = self.options()?;
        self.write_steps(options, None)
    }

    /// Collective. Returns the options of this rank, which holds its share of a time step in addition to what the
    /// writer needs.
    ///
    /// # Errors
    /// If the share of a rank does not fit into its memory; on every rank.
    pub fn options(&self) -> Result<WriteOptions, A::Error> {
        let fitted =
            self.request.options(self.default_jobs, self.inputs.layout.counts.len()).and_then(|mut options| {
                options.memory_limit_bytes = self.memory_left(options.memory_limit_bytes)?;
                Ok(options)
            });
        self.agree("fit the samples into memory", fitted)
    }

    /// Returns the memory left by this rank's share of a time step.
    pub(super) fn memory_left(&self, limit_bytes: u64) -> Result<u64, IdxError> {
        let rows = self.rows();
        let needed_len_bytes = self.inputs.buffered_row_len_bytes().saturating_mul(rows.end - rows.start);
        limit_bytes.checked_sub(needed_len_bytes).ok_or(IdxError::SampleMemory { needed_len_bytes, limit_bytes })
    }

    /// Collective. Begins the output and writes all time steps. `first` are the samples of the first one, if they were
    /// read before.
    ///
    /// # Errors
    /// As for [`InputWrite::write_collective`].
    pub fn write_steps(
        &self,
        options: WriteOptions,
        mut first: Option<Vec<BoxData<'static>>>,
    ) -> Result<FinishedOutput, A::Error> {
        let mut output = self.begin(options)?;
        let mut reports = Vec::new();
        for (step, of_step) in &self.inputs.layout.steps {
            let patches = first.take().map_or_else(|| self.read_collective(of_step.clone()), Ok)?;
            reports.push(output.write_collective(*step, patches, self.watch, self.ranks)?);
        }
        self.finish(output, reports)
    }

    /// Collective. Copies blocks, if the inputs are a dataset whose blocks the output has as well.
    fn copy_blocks(&self) -> Result<Option<FinishedOutput>, A::Error> {
        let Some(whole) = &self.inputs.whole else { return Ok(None) };
        let options = self.request.options(self.default_jobs, self.inputs.layout.counts.len());
        let mut output = self.begin(self.agree("begin the output", options)?)?;
        let (dataset, fields, missing_as_default) = (&*whole.dataset, &*whole.fields, whole.missing_as_default);
        let source = |time| BlockSource { dataset, time, fields, missing_as_default };
        if !output.has_blocks_of(&source(None)) {
            return Ok(None);
        }
        let mut reports = Vec::new();
        for (step, _) in &self.inputs.layout.steps {
            reports.push(output.rewrite_collective(*step, &source(*step), self.watch, self.ranks)?);
        }
        self.finish(output, reports).map(Some)
    }

    fn begin(&self, options: WriteOptions) -> Result<Box<dyn TargetWriter>, A::Error> {
        self.agree("begin the output", begin(self.request, &self.inputs.field_set(), options))
    }

    fn finish(&self, output: Box<dyn TargetWriter>, mut reports: Vec<WriteReport>) -> Result<FinishedOutput, A::Error> {
        let layout = output.finish_collective(reports.last_mut(), self.ranks)?;
        Ok(FinishedOutput { layout, reports })
    }

    /// Collective. Reads this rank's share of a time step, as at most one box.
    ///
    /// # Errors
    /// If an input cannot be read; on every rank.
    pub fn read_collective(&self, of_step: Range<usize>) -> Result<Vec<BoxData<'static>>, A::Error> {
        self.ranks.agree("read the inputs", self.read(of_step))
    }

    fn read(&self, of_step: Range<usize>) -> Result<Vec<BoxData<'static>>, A::Error> {
        let (rows, observer) = (self.rows(), self.watch.observer);
        if rows.is_empty() {
            return Ok(Vec::new());
        }
        let reading = RunningStage::start(observer, Stage::Read, None);
        let mut arrays = Vec::new();
        for array in &self.inputs.arrays[of_step] {
            self.watch.cancel.check().map_err(IdxError::Core)?;
            let values = array.read_rows(rows.clone())?;
            observer.event(&Event::Advanced { stage: Stage::Read, bytes: values.len() as u64, items: 1 });
            arrays.push(values.into());
        }
        reading.finish();
        Ok(vec![BoxData { region: self.inputs.layout.region(&rows), arrays }])
    }

    /// Returns the rows that this rank reads.
    fn rows(&self) -> Range<u64> {
        even_share(self.inputs.layout.rows(), self.ranks.rank() as u64, self.ranks.size() as u64)
    }

    /// Collective. Converts an error of this crate on one rank to an error on all.
    pub(super) fn agree<T>(&self, operation: &'static str, result: Result<T, IdxError>) -> Result<T, A::Error> {
        self.ranks.agree(operation, result.map_err(A::Error::from))
    }
}
