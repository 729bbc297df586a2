//! Values of the inputs' datasets, read with raddle's own decoder, or with libhdf5 in a child process for layouts that
//! refer to other files.
//!
//! There is one [`ColumnReader`] per thread; it keeps the last dataset it read, so that consecutive tiles find it
//! without cost. Invariant: returned values are complete and exact, or the error names file and object.

mod canonical;
mod rows;

use crate::error::{MergeError, Result};
use crate::inputs::reader::InputReader;
use crate::plan::MergePlan;
use crate::plan::fill_pattern::FillPattern;
use crate::plan::memory::BufferSizes;
use crate::rules::{ConvertBuffers, ConvertError, InputConversion, Pick, PickForm, Trim, convert_piece, source_box};
use crate::schema::lifted;
use crate::schema::{ABSENT, AddressKind, InputExtent, address_kind, complete, display_path};
use crate::write::picking::Picker;
use raddle_codec::Pipeline;
use raddle_core::plan::extent::{BoxSource, BoxTarget, Extent, copy_box};
use raddle_core::report::progress::Stage;
use raddle_core::report::{StageTable, StageTotals};
use raddle_hdf5::Hdf5Error;
use raddle_hdf5::model::{Dataset, FileTree, ObjectKind, TypeClass};
use raddle_hdf5::native::{ReadLimits, Superblock, read_object};
use raddle_hdf5::number::NumberType;
use raddle_hdf5::read::{BoxRead, DatasetReader, DatasetSource, ReadCounts};
use raddle_hdf5::source::{InputFile, InputPool, MetadataView};
use std::collections::HashMap;
use std::sync::Arc;

/// Size of the metadata cache while one object header is read.
const MAX_HEADER_VIEW_BYTES: u64 = 256 << 10;

/// Maximum number of input files kept open; far below the usual limit of 1,024 descriptors, above the inputs of most
/// tiles.
const OPEN_INPUTS: usize = 256;

/// Returns a pool of the inputs of `plan`, each of which must still be the file that was scanned.
pub fn open_pool(plan: &MergePlan) -> InputPool {
    open_pool_of(plan, open_inputs())
}

/// Returns a pool for trials of parts of `plan`. A merge that cannot keep all inputs open opens them again for each
/// dataset; this pool then keeps only a few, so that a trial of a part does not find all of its inputs open.
pub fn open_pool_for_trials(plan: &MergePlan) -> InputPool {
    let are_kept = plan.inputs.len() <= open_inputs();
    open_pool_of(plan, if are_kept { open_inputs() } else { plan.options.jobs.max(1) })
}

/// Returns the number of inputs that a merge keeps open.
pub(crate) fn open_inputs() -> usize {
    OPEN_INPUTS.min(descriptor_limit() / 4).max(1)
}

fn open_pool_of(plan: &MergePlan, kept: usize) -> InputPool {
    let paths = plan.inputs.iter().map(|input| input.path.clone()).collect();
    // A file that is appended to changes while it is read, but only after the part that is read.
    let is_growing = |number: usize| number == 0 && plan.growth.is_some();
    let identities = plan.inputs.iter().enumerate();
    let identities = identities.map(|(number, input)| (!is_growing(number)).then_some(input.identity)).collect();
    InputPool::new(paths, identities, kept)
}

/// Returns the soft limit on open files, or a large number if there is no limit.
fn descriptor_limit() -> usize {
    rustix::process::getrlimit(rustix::process::Resource::Nofile).current.map_or(1 << 20, |limit| limit as usize)
}

/// Reader of pieces of a plan's columns; one per thread.
pub struct ColumnReader<'p> {
    plan: &'p MergePlan,
    pool: &'p InputPool,
    reader: DatasetReader,
    library: InputReader,
    current: Option<CurrentDataset>,
    superblocks: HashMap<u32, Superblock>,
    /// Objects of the input whose references were resolved last.
    tree: Option<(u32, Arc<FileTree>)>,
    counts: ReadCounts,
    /// Rows that are read together because some of them are needed.
    span: Vec<u8>,
    /// Values before and after conversion.
    stored: Vec<u8>,
    converted: Vec<u8>,
    convert_buffers: ConvertBuffers,
    /// Reader of the numbers of elements that are picked by number.
    picker: Option<Box<Picker<'p>>>,
}

/// The last dataset that was read.
struct CurrentDataset {
    column: u32,
    input: u32,
    file: Arc<InputFile>,
    dataset: Dataset,
}

impl<'p> ColumnReader<'p> {
    /// Creates a reader for the columns of `plan`.
    pub fn new(plan: &'p MergePlan, pool: &'p InputPool) -> Self {
        Self {
            plan,
            pool,
            reader: DatasetReader::new(BufferSizes::within(plan.options.memory_limit_bytes).reader),
            library: InputReader::new(&plan.options),
            current: None,
            superblocks: HashMap::new(),
            tree: None,
            counts: ReadCounts::default(),
            stored: Vec::new(),
            span: Vec::new(),
            converted: Vec::new(),
            convert_buffers: ConvertBuffers::default(),
            picker: None,
        }
    }

    /// Returns the number of chunks decoded so far.
    pub(crate) fn decoded_chunks(&self) -> u64 {
        self.counts.chunks
    }

    /// Adds the counts of this reader to `stages`.
    pub fn retire(self, stages: &mut StageTable) {
        let totals = |seconds: f64, bytes| {
            let wall_ns = (seconds * 1e9) as u64;
            StageTotals { wall_ns, cpu_ns: wall_ns, bytes, calls: self.counts.chunks }
        };
        stages.get_mut(Stage::Read).add(&totals(self.counts.read_s, self.counts.stored_len_bytes));
        stages.get_mut(Stage::Decode).add(&totals(self.counts.decode_s, 0));
    }

    /// Fills a box with the rows for an input that lacks the column.
    pub fn read_absent(&self, column: u32, input: u32, source: &Extent, target: BoxTarget<'_>) -> Result<()> {
        let scanned = &self.plan.schema.columns[column as usize];
        let Some(row) = scanned.row_of(input) else {
            return FillPattern::of(scanned.model()).fill_box(target, &source.count);
        };
        let mut shape = scanned.model().dataspace.dims().to_vec();
        let mut origin = source.start.to_vec();
        (shape[0], origin[0]) = (source.count[0], 0);
        let rows = row.repeat(source.count[0] as usize);
        let from = BoxSource { bytes: &rows, shape: &shape, origin: &origin };
        Ok(copy_box(from, target, &source.count, scanned.model().datatype.class.len_bytes() as usize)?)
    }

    /// Reads a box of an input's part of a column, or fills it if the input lacks the column.
    pub fn read_any(&mut self, column: u32, input: u32, source: &Extent, target: BoxTarget<'_>) -> Result<()> {
        match self.plan.schema.columns[column as usize].facts[input as usize].template {
            ABSENT => self.read_absent(column, input, source, target),
            _ => self.read_piece(column, input, source, target),
        }
    }

    /// Reads a box of an input's part of a column.
    pub fn read_piece(&mut self, column: u32, input: u32, source: &Extent, target: BoxTarget<'_>) -> Result<()> {
        if self.plan.derived.has(column) {
            let dims = &self.plan.columns[column as usize].dims;
            return self.plan.derived.read_piece(column, input, dims, source, target);
        }
        self.find(column, input)?;
        let scanned = &self.plan.schema.columns[column as usize];
        let (axis, trim) = (scanned.axis, scanned.trim_of(input));
        let mut source = source.clone();
        if let Some(Trim { leading, stored_rows }) = trim {
            source.start[axis] += leading;
            let available = stored_rows.saturating_sub(source.start[axis]).min(source.count[axis]);
            if available < source.count[axis] {
                // Elements that the input does not store read as its fill value.
                let target = BoxTarget { bytes: &mut *target.bytes, ..target };
                self.fill_of(column, input).fill_box(target, &source.count)?;
            }
            if available == 0 {
                return Ok(());
            }
            source.count[axis] = available;
        }
        // Strings are converted later, when their addresses are resolved.
        let conversion = scanned.conversion_of(input).filter(|_| !scanned.is_file_local());
        let outcome = match conversion {
            None => self.read_found(column, input, &source, target),
            Some(conversion) => self.read_converted(column, input, conversion, &source, target),
        };
        outcome.map_err(|error| self.named(column, error))
    }

    /// Returns the pattern with which elements that an input does not store are filled.
    fn fill_of(&self, column: u32, input: u32) -> FillPattern {
        let scanned = &self.plan.schema.columns[column as usize];
        match scanned.conversion_of(input) {
            Some(_) => FillPattern::of(scanned.model()),
            None => FillPattern::of(&scanned.templates[template(self.plan, column, input)]),
        }
    }

    /// Returns one element of an input's one-dimensional dataset, as stored.
    pub fn stored_element(&mut self, column: u32, input: u32, row: u64) -> Result<Vec<u8>> {
        self.find(column, input)?;
        let scanned = &self.plan.schema.columns[column as usize];
        let template = &scanned.templates[template(self.plan, column, input)];
        let mut element = vec![0; template.datatype.class.len_bytes() as usize];
        let (mut start, shape) = (vec![0; template.dataspace.dims().len()], vec![1; template.dataspace.dims().len()]);
        start[0] = row;
        let target = BoxTarget { bytes: &mut element, shape: &shape, origin: &vec![0; shape.len()] };
        let read = self.read_found(column, input, &Extent::new(&start, &shape), target);
        read.map_err(|error| self.named(column, error))?;
        Ok(element)
    }

    /// Reads rows of an input's dataset, which grows along its first axis, as stored; returns the type of their elements.
    pub fn read_stored(
        &mut self,
        column: u32,
        input: u32,
        start: u64,
        rows: u64,
        out: &mut Vec<u8>,
    ) -> Result<Arc<TypeClass>> {
        self.find(column, input)?;
        let scanned = &self.plan.schema.columns[column as usize];
        let template = &scanned.templates[template(self.plan, column, input)];
        let class = Arc::clone(&template.datatype.class);
        let mut shape = template.dataspace.dims().to_vec();
        shape[0] = rows;
        let mut starts = vec![0; shape.len()];
        starts[0] = start;
        out.clear();
        out.resize((shape.iter().product::<u64>() * class.len_bytes()) as usize, 0);
        let target = BoxTarget { bytes: out, shape: &shape, origin: &vec![0; shape.len()] };
        let read = self.read_found(column, input, &Extent::new(&starts, &shape), target);
        read.map_err(|error| self.named(column, error))?;
        Ok(class)
    }

    /// Reads picked elements, or positions among them, as stored.
    fn read_picked(&mut self, column: u32, input: u32, pick: &Pick, source: &Extent, out: &mut Vec<u8>) -> Result<()> {
        let (plan, pool) = (self.plan, self.pool);
        let picker = self.picker.take();
        let mut picker = picker.unwrap_or_else(|| Box::new(Picker::new(plan, ColumnReader::new(plan, pool))));
        let (start, count) = (source.start[0], source.count[0]);
        let scanned = &plan.schema.columns[column as usize];
        let class = &scanned.templates[template(plan, column, input)].datatype.class;
        let outcome = match pick.form {
            PickForm::Elements => {
                let is_of_numbers = plan.schema.column_path(column) == pick.numbers;
                let read = |first, elements, block: &mut Vec<u8>| {
                    self.read_stored(column, input, first, elements, block).map(drop)
                };
                let read = (!is_of_numbers).then_some(read);
                picker.elements(pick, input, (start, count), class.len_bytes() as usize, out, read)
            }
            PickForm::Positions => self.read_stored(column, input, start, count, out).and_then(|class| {
                let Some(number) = NumberType::of(&class) else { return Ok(()) };
                let mut positions = Vec::new();
                number.decode_integers(out, &mut positions);
                picker.positions(pick, input, &mut positions)?;
                out.clear();
                // Positions never grow, so encoding them cannot fail.
                let _ = number.encode_integers(&positions, out);
                Ok(())
            }),
        };
        self.picker = Some(picker);
        outcome
    }

    /// Reads a box of values and converts them to values of the output.
    fn read_converted(
        &mut self,
        column: u32,
        input: u32,
        conversion: &InputConversion,
        source: &Extent,
        target: BoxTarget<'_>,
    ) -> Result<()> {
        let scanned = &self.plan.schema.columns[column as usize];
        let fill = FillPattern::of(scanned.model());
        let Some(read) = source_box(conversion, source) else { return fill.fill_box(target, &source.count) };
        let to = Arc::clone(&scanned.model().datatype.class);
        let from = Arc::clone(&scanned.templates[template(self.plan, column, input)].datatype.class);
        let mut stored = std::mem::take(&mut self.stored);
        stored.clear();
        stored.resize(read.element_count().unwrap_or(0) as usize * from.len_bytes() as usize, 0);
        let origin = vec![0; read.rank()];
        let found = match &conversion.pick {
            Some(pick) => {
                let mut picked = Vec::new();
                let found = self.read_picked(column, input, pick, &read, &mut picked);
                if found.is_ok() {
                    stored = picked;
                }
                found
            }
            None => {
                let whole = BoxTarget { bytes: &mut stored, shape: &read.count, origin: &origin };
                self.read_found(column, input, &read, whole)
            }
        };
        let outcome = found.and_then(|()| {
            let scratch = (&mut self.convert_buffers, &mut self.converted);
            convert_piece(conversion, (&stored, &read), source, (&from, &to), &fill.pattern, scratch, target).map_err(
                |error| match error {
                    ConvertError::Core(error) => error.into(),
                    ConvertError::Inexact(inexact) => MergeError::Inexact {
                        object: display_path(self.plan.schema.column_path(column)),
                        input: self.plan.inputs[input as usize].path.clone(),
                        value: inexact.value,
                        reason: inexact.reason,
                    },
                },
            )
        });
        self.stored = stored;
        outcome
    }

    fn read_found(
        &mut self,
        column: u32,
        input: u32,
        source: &Extent,
        target: BoxTarget<'_>,
    ) -> std::result::Result<(), MergeError> {
        let Some(current) = &self.current else { return Ok(()) };
        let is_lifted = self.plan.schema.columns[column as usize].is_lifted;
        let lowered = is_lifted.then(|| lifted::lower_extent(source));
        let (source, target) = match &lowered {
            Some(lowered) => {
                (lowered, lifted::lower_target(target, current.dataset.datatype.class.len_bytes() as usize))
            }
            None => (source, target),
        };
        if current.dataset.layout.is_through_library() {
            let rows = source.start[0]..source.end(0);
            let path = self.plan.schema.column_path(column);
            let values = self.library.read_values(current.file.path(), path, Some(rows.clone()))?;
            let mut shape = current.dataset.dataspace.dims().to_vec();
            shape[0] = rows.end - rows.start;
            let mut origin = source.start.to_vec();
            origin[0] = 0;
            let from = BoxSource { bytes: &values, shape: &shape, origin: &origin };
            return Ok(copy_box(from, target, &source.count, current.dataset.datatype.class.len_bytes() as usize)?);
        }
        let from = DatasetSource {
            file: &current.file,
            encoding: self.plan.inputs[input as usize].encoding,
            dataset: &current.dataset,
            pipeline: pipeline(self.plan, column, input)?,
        };
        let to =
            BoxRead { start: &source.start, count: &source.count, out_shape: target.shape, out_origin: target.origin };
        self.counts += self.reader.read_box(&from, &to, target.bytes)?;
        Ok(())
    }

    /// Appends the stored bytes of an input's chunk; returns `None` if it was never written.
    pub fn stored_chunk(
        &mut self,
        column: u32,
        input: u32,
        origin: &[u64],
        stored: &mut Vec<u8>,
    ) -> Result<Option<u32>> {
        self.find(column, input)?;
        let Some(current) = &self.current else { return Ok(None) };
        // Chunks are moved as stored: the pipeline is not run, so an unknown filter needs none.
        let unfiltered = Pipeline::new(&[], 1);
        let pipeline =
            match (&self.plan.columns[column as usize].pipelines[template(self.plan, column, input)], &unfiltered) {
                (Some(pipeline), _) | (None, Ok(pipeline)) => pipeline,
                (None, Err(_)) => return Ok(None),
            };
        let from = DatasetSource {
            file: &current.file,
            encoding: self.plan.inputs[input as usize].encoding,
            dataset: &current.dataset,
            pipeline,
        };
        let found = self.reader.stored_chunk(&from, origin, stored);
        let found = found.map_err(|error| self.named(column, error.into()))?;
        self.counts.chunks += 1;
        Ok(found.map(|chunk| chunk.filter_mask))
    }

    /// Makes the dataset of `column` in `input` the current one.
    fn find(&mut self, column: u32, input: u32) -> Result<()> {
        if self.current.as_ref().is_some_and(|current| current.column == column && current.input == input) {
            return Ok(());
        }
        let scanned = &self.plan.schema.columns[column as usize];
        let fact = &scanned.facts[input as usize];
        let known = &scanned.templates[fact.template as usize];
        let file = self.pool.get(input)?;
        let fact = &InputExtent { rows: scanned.trim_of(input).map_or(fact.rows, |trim| trim.stored_rows), ..*fact };
        let completed = || {
            let mut dataset = complete(known, fact, scanned.axis);
            if scanned.is_lifted {
                lifted::lower(&mut dataset);
            }
            dataset
        };
        let dataset = match address_kind(known) {
            AddressKind::Data => completed(),
            AddressKind::Header if known.layout.is_through_library() => completed(),
            AddressKind::Header => self.read_header(&file, input, fact.address).map_err(|e| self.named(column, e))?,
        };
        self.current = Some(CurrentDataset { column, input, file, dataset });
        Ok(())
    }

    fn read_header(&mut self, file: &InputFile, input: u32, address: u64) -> Result<Dataset> {
        let superblock = match self.superblocks.entry(input) {
            std::collections::hash_map::Entry::Occupied(known) => known.into_mut(),
            std::collections::hash_map::Entry::Vacant(unknown) => unknown.insert(Superblock::read(file)?),
        };
        let mut view = MetadataView::new(file, MAX_HEADER_VIEW_BYTES);
        let object = match read_object(&mut view, superblock, address, &ReadLimits::default()) {
            Ok(object) => object,
            Err(error) if error.is_unsupported() => self.library.read_object(file.path(), address)?,
            Err(error) => return Err(error.into()),
        };
        match object.kind {
            ObjectKind::Dataset(dataset) => Ok(*dataset),
            _ => Err(Hdf5Error::Changed { path: file.path().to_path_buf(), what: "a dataset has disappeared" }.into()),
        }
    }

    fn named(&self, column: u32, error: MergeError) -> MergeError {
        error.in_object(self.plan.schema.column_path(column))
    }
}

fn template(plan: &MergePlan, column: u32, input: u32) -> usize {
    plan.schema.columns[column as usize].facts[input as usize].template as usize
}

fn pipeline(plan: &MergePlan, column: u32, input: u32) -> Result<&Pipeline> {
    plan.columns[column as usize].pipelines[template(plan, column, input)].as_ref().ok_or_else(|| MergeError::Object {
        object: display_path(plan.schema.column_path(column)),
        reason: "a filter is unknown, so its values cannot be decoded".to_owned(),
    })
}
