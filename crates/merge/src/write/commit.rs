//! Creation of the output's objects in schema order on one thread, while the engine writes tiles.
//!
//! The dataset of an array is created when its tiles have been placed, gets its claims, and is closed. Values that hold
//! addresses within their file (variable-length data, references) are written once every object exists, and so are
//! attributes that hold references. When the metadata region is full, creation pauses until the raw region is complete
//! and resumes after it. Invariant: objects are created in schema order, so creation order and bytes do not depend on
//! the threads.

use crate::error::{MergeError, Result};
use crate::plan::dataset_specs::{attribute_spec, column_spec, constant_spec, type_ref};
use crate::plan::{MergePlan, Route};
use crate::schema::attribute::marks_classic_model;
use crate::schema::{AttributeValue, EntryIndex, Role, SchemaEntry, display_path};
use crate::verify::digests::blocks::{Digests, InOrder, block_rows};
use crate::verify::digests::column::{ColumnDigests, DigestForm};
use crate::verify::digests::known_rows::{RowsDigest, canonical_runs, carried, runs};
use crate::verify::provenance::dimensions::class_of_dimensions;
use crate::verify::provenance::{self, Provenance};
use crate::write::tile_observer::TileObserver;
use crate::write::tiles::MergeWork;
use crate::write::values::ColumnReader;
use raddle_core::cancel::CancelToken;
use raddle_core::digest::Digest;
use raddle_core::engine::Claim;
use raddle_hdf5::Hdf5Error;
use raddle_hdf5::model::{CreationOrder, Dataspace, FillValue, TypeClass};
use raddle_hdf5::write::{
    AttributeSpec, DatasetSpec, NewLink, OutputFile, OutputLayout, OutputOptions, TypeRef, WrittenFile,
};
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// Creator of the objects of one output.
pub struct Committer<'p> {
    plan: &'p MergePlan,
    cancel: CancelToken,
    output: OutputFile,
    reader: ColumnReader<'p>,
    tile_observer: Option<&'p dyn TileObserver>,
    at: Cursor,
    /// Claims of arrays whose datasets are not complete, in array order. Arrays only queue up here once the metadata
    /// region is full, so the queue is nearly always empty.
    waiting: Vec<(u32, Vec<Claim>)>,
    /// Committed datatypes that have not been created yet, indexed by path.
    missing_types: HashMap<&'p [u8], EntryIndex>,
    /// Hard links to objects that are created after them.
    late_links: HashSet<EntryIndex>,
    /// Entries whose values are written at the end.
    late_values: Vec<EntryIndex>,
    /// Entries whose attributes are written at the end.
    late_attributes: Vec<EntryIndex>,
    /// Digests of columns whose values do not come in tiles.
    digests: Vec<UntiledDigests>,
}

/// Progress of creation. Each step either succeeds or, if the metadata region is full, changes nothing.
#[derive(Debug, Clone, Copy, Default)]
struct Cursor {
    /// The entry being created.
    entry: EntryIndex,
    /// Whether the object of this entry exists.
    created: bool,
    /// Number of chunks inserted into the object.
    inserted: usize,
    /// Number of attributes written to the object.
    attributes: usize,
}

impl<'p> Committer<'p> {
    /// Creates the output in `file`, which is open under `path`, with the `options` of [`output_options`].
    pub fn create(
        plan: &'p MergePlan,
        file: File,
        path: &Path,
        options: &OutputOptions,
        work: &MergeWork<'p>,
        cancel: &CancelToken,
    ) -> Result<Self> {
        Ok(Self {
            plan,
            cancel: cancel.clone(),
            output: OutputFile::create_in(file, path, options)?,
            reader: work.column_reader(),
            tile_observer: work.tile_observer(),
            at: Cursor::default(),
            waiting: Vec::new(),
            missing_types: (0..)
                .zip(&plan.schema.entries)
                .filter(|(_, entry)| matches!(entry.role, Role::CommittedDatatype(_)))
                .map(|(index, entry)| (entry.path.as_slice(), index))
                .collect(),
            late_links: late_links(&plan.schema.entries),
            late_values: Vec::new(),
            late_attributes: Vec::new(),
            digests: Vec::new(),
        })
    }

    /// Returns the first address for tiles.
    pub fn raw_start(&self) -> u64 {
        self.output.raw_start()
    }

    /// Creates the objects before the dataset of `array`, and then the dataset with its claims.
    pub fn commit(&mut self, array: u32, claims: &[Claim]) -> Result<()> {
        if !self.waiting.is_empty() {
            self.waiting.push((array, claims.to_vec()));
            return Ok(());
        }
        match self.commit_now(array, claims) {
            Err(error) if is_region_full(&error) => {
                self.waiting.push((array, claims.to_vec()));
                Ok(())
            }
            outcome => outcome,
        }
    }

    /// Creates all remaining objects and closes the file. `raw_end` is the first address after the tiles; `digests`
    /// covers values that came in tiles and receives the digests of all others; `samples` are those of the inputs.
    pub fn finish(mut self, raw_end: u64, digests: &mut Digests, samples: &[u64]) -> Result<WrittenFile> {
        self.create_rest(raw_end)?;
        add_untiled(self.plan, std::mem::take(&mut self.digests), digests);
        if self.plan.options.provenance {
            write_provenance(&mut self.output, &provenance::gather(self.plan, digests, samples))?;
        }
        Ok(self.output.finish()?)
    }

    /// Creates all objects of an output without tiles and closes the file. Parts contribute the tiles; provenance is
    /// added once all of them are available.
    pub fn finish_without_tiles(mut self) -> Result<Skeleton> {
        self.create_rest(self.raw_start())?;
        Ok(Skeleton { digests: std::mem::take(&mut self.digests), file: self.output.finish()? })
    }

    fn create_rest(&mut self, raw_end: u64) -> Result<()> {
        self.output.set_raw_end(raw_end);
        for (array, claims) in std::mem::take(&mut self.waiting) {
            self.commit_now(array, &claims)?;
        }
        self.create_until(self.plan.schema.entries.len() as EntryIndex, &[])?;
        let mut late_links: Vec<EntryIndex> = std::mem::take(&mut self.late_links).into_iter().collect();
        late_links.sort_unstable();
        for entry in late_links {
            self.at.entry = entry;
            self.make_other(&self.plan.schema.entries[entry as usize])?;
        }
        for entry in std::mem::take(&mut self.late_values) {
            self.write_late_values(entry)?;
        }
        for entry in std::mem::take(&mut self.late_attributes) {
            let entry = &self.plan.schema.entries[entry as usize];
            for attribute in entry.attributes.iter() {
                self.write_attribute(&entry.path, attribute)?;
            }
        }
        Ok(())
    }

    fn commit_now(&mut self, array: u32, claims: &[Claim]) -> Result<()> {
        let column = self.plan.column_of_array[array as usize];
        let entry = self.plan.schema.columns[column as usize].entry;
        self.create_until(entry, &[])?;
        self.create_until(entry + 1, claims)
    }

    /// Creates the entries before `end`. `claims` belong to the last of them; the others have no tiles.
    fn create_until(&mut self, end: EntryIndex, claims: &[Claim]) -> Result<()> {
        while self.at.entry < end {
            self.cancel.check()?;
            let entry = &self.plan.schema.entries[self.at.entry as usize];
            self.make(entry, claims).map_err(|error| error.in_object(&entry.path))?;
            self.at = Cursor { entry: self.at.entry + 1, ..Cursor::default() };
        }
        Ok(())
    }

    /// Creates the committed datatypes that `entry` refers to and that come after it in creation order.
    fn make_types_of(&mut self, entry: &'p SchemaEntry) -> Result<()> {
        let plan: &'p MergePlan = self.plan;
        let of_object = match &entry.role {
            Role::Column(column) => plan.schema.columns[*column as usize].committed.as_ref(),
            Role::Constant { committed, .. } => committed.as_ref(),
            _ => None,
        };
        let of_attributes = entry.attributes.iter().filter_map(|attribute| attribute.committed.as_ref());
        for path in of_object.into_iter().chain(of_attributes) {
            let Some(&index) = self.missing_types.get(path.as_slice()) else { continue };
            let missing = &plan.schema.entries[index as usize];
            if let (Role::CommittedDatatype(class), true) = (&missing.role, index != self.at.entry) {
                self.output.commit_datatype_ahead(path, class, missing.attribute_order)?;
                self.missing_types.remove(path.as_slice());
            }
        }
        Ok(())
    }

    fn make(&mut self, entry: &'p SchemaEntry, claims: &[Claim]) -> Result<()> {
        self.make_types_of(entry)?;
        match &entry.role {
            Role::Column(column) => self.make_column(entry, *column, claims)?,
            _ if self.at.created => {}
            _ => self.make_other(entry)?,
        }
        if entry.attributes.iter().any(|attribute| attribute.datatype.class.has_reference()) {
            self.late_attributes.push(self.at.entry);
            return Ok(());
        }
        while let Some(attribute) = entry.attributes.get(self.at.attributes) {
            if !self.plan.options.provenance || !marks_classic_model(&entry.path, attribute) {
                self.write_attribute(&entry.path, attribute)?;
            }
            self.at.attributes += 1;
        }
        Ok(())
    }

    fn make_other(&mut self, entry: &'p SchemaEntry) -> Result<()> {
        let link = NewLink { path: &entry.path, utf8: entry.utf8 };
        match &entry.role {
            Role::Group { .. } if entry.path == b"/" => {}
            Role::Group { link_order } => self.output.create_group(link, *link_order, entry.attribute_order)?,
            Role::CommittedDatatype(class) => {
                self.output.commit_datatype(link, class, entry.attribute_order)?;
                self.missing_types.remove(entry.path.as_slice());
            }
            Role::Constant { dataset, committed, value } => {
                let spec = constant_spec(entry, dataset, committed.as_ref());
                let mut created = self.output.create_dataset(link, &spec)?;
                if dataset.dataspace == Dataspace::Null {
                } else if dataset.datatype.class.is_file_local() {
                    self.late_values.push(self.at.entry);
                } else {
                    created.write(value)?;
                }
            }
            Role::HardLink { .. } if self.late_links.contains(&self.at.entry) => {}
            Role::HardLink { target } => self.output.hard_link(link, target)?,
            Role::SoftLink(target) => self.output.soft_link(link, target)?,
            Role::ExternalLink { file, path } => self.output.external_link(link, file, path)?,
            Role::UserLink { class, data } => self.output.user_link(link, *class, data)?,
            Role::Column(_) => {}
        }
        self.at.created = true;
        match &entry.comment {
            Some(comment) => Ok(self.output.set_comment(&entry.path, comment)?),
            None => Ok(()),
        }
    }

    fn make_column(&mut self, entry: &'p SchemaEntry, column: u32, claims: &[Claim]) -> Result<()> {
        let plan: &'p MergePlan = self.plan;
        let planned = &plan.columns[column as usize];
        let spec = column_spec(plan, entry, column);
        let mut dataset = if self.at.created {
            self.output.open_dataset(&entry.path, &spec)?
        } else {
            self.output.create_dataset(NewLink { path: &entry.path, utf8: entry.utf8 }, &spec)?
        };
        self.at.created = true;
        match &planned.route {
            Route::Encoded { array, .. } | Route::Verbatim { array } => {
                let tiles = &plan.tiles.arrays[*array as usize];
                dataset.expect_chunks((claims.len() - self.at.inserted) as u64)?;
                while let Some(claim) = claims.get(self.at.inserted) {
                    let origin = tiles.tile_origin(claim.tile.index);
                    dataset.insert(&origin[..planned.rank()], claim.address, claim.len_bytes, claim.filter_mask)?;
                    self.at.inserted += 1;
                }
            }
            Route::Raw { array } if self.at.inserted == 0 => {
                // There are no claims if a parallel libhdf5 writes the values into the finished object.
                if let Some(first) = claims.first() {
                    check_run(claims, plan.tiles.arrays[*array as usize].len_bytes())
                        .map_err(|reason| MergeError::Object { object: display_path(&entry.path), reason })?;
                    dataset.place(first.address)?;
                }
                self.at.inserted = 1;
            }
            Route::Direct if self.at.inserted == 0 => {
                let values = self.reader.whole_column(column)?;
                dataset.write(&values)?;
                let digests = InOrder::of_values(&values, plan.row_len_bytes(column));
                let run = |bytes: Range<u64>| Some(Digest::of(values.get(bytes.start as usize..bytes.end as usize)?));
                self.digests.push((column, digests, runs(plan, column, run)));
                self.at.inserted = 1;
            }
            Route::FileLocal if self.at.inserted == 0 => {
                self.late_values.push(self.at.entry);
                self.at.inserted = 1;
            }
            Route::Raw { .. } | Route::Direct | Route::FileLocal | Route::Empty | Route::Linked => {}
        }
        drop(dataset);
        match &entry.comment {
            Some(comment) if self.at.attributes == 0 => Ok(self.output.set_comment(&entry.path, comment)?),
            _ => Ok(()),
        }
    }

    fn write_late_values(&mut self, index: EntryIndex) -> Result<()> {
        let plan: &'p MergePlan = self.plan;
        let entry = &plan.schema.entries[index as usize];
        let named = |error: Hdf5Error| MergeError::Hdf5(error.in_object(display_path(&entry.path)));
        match &entry.role {
            Role::Constant { dataset, committed, value } => {
                let spec = constant_spec(entry, dataset, committed.as_ref());
                let mut dataset = self.output.open_dataset(&entry.path, &spec).map_err(named)?;
                dataset.write(value).map_err(named)
            }
            Role::Column(column) => {
                let spec = column_spec(plan, entry, *column);
                let mut dataset = self.output.open_dataset(&entry.path, &spec).map_err(named)?;
                let block_rows = block_rows(plan.row_len_bytes(*column), plan.columns[*column as usize].dims[0]);
                let mut digests = InOrder::new(DigestForm::Canonical, block_rows);
                let mut runs = canonical_runs(plan, *column);
                let (cancel, tile_observer) = (&self.cancel, self.tile_observer);
                self.reader.for_each_canonical_block(*column, block_rows, &mut |start, rows, canonical| {
                    cancel.check()?;
                    digests.add(rows, canonical);
                    runs.add(start, canonical);
                    if let Some(tile_observer) = tile_observer {
                        let taken = tile_observer.take_canonical(*column, start, canonical);
                        taken.map_err(|source| MergeError::TileObserver { source })?;
                    }
                    dataset.write_rows(start, rows, canonical).map_err(named)
                })?;
                self.digests.push((*column, digests.finish(), runs.finish()));
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn write_attribute(&mut self, path: &[u8], attribute: &AttributeValue) -> Result<()> {
        let datatype = type_ref(&attribute.datatype.class, attribute.committed.as_ref());
        self.output.write_attribute(path, &attribute_spec(attribute, &datatype)).map_err(|error| {
            let object = format!("{} (attribute {})", display_path(path), display_path(&attribute.name));
            MergeError::Hdf5(error.in_object(object))
        })
    }
}

/// Checks that the tiles with `claims` are adjacent and have `len_bytes` in total.
fn check_run(claims: &[Claim], len_bytes: u64) -> std::result::Result<(), String> {
    let is_run = claims.windows(2).all(|pair| pair[0].address + pair[0].len_bytes == pair[1].address);
    let found_len_bytes: u64 = claims.iter().map(|claim| claim.len_bytes).sum();
    match is_run && found_len_bytes == len_bytes {
        true => Ok(()),
        false => {
            Err("cannot be contiguous: its values were not placed in order; place them in order, without alignment"
                .to_owned())
        }
    }
}

/// An output file without tiles.
pub struct Skeleton {
    /// The written file.
    pub file: WrittenFile,
    digests: Vec<UntiledDigests>,
}

impl Skeleton {
    /// Adds the digests of all columns without tiles to `digests`.
    pub fn add_to(&mut self, plan: &MergePlan, digests: &mut Digests) {
        add_untiled(plan, std::mem::take(&mut self.digests), digests);
    }
}

/// Digests of a column whose values do not come in tiles, and of runs of its rows ([`Digests::runs`]).
type UntiledDigests = (u32, ColumnDigests, Vec<RowsDigest>);

/// Adds the digests of columns whose values do not come in tiles.
fn add_untiled(plan: &MergePlan, untiled: Vec<UntiledDigests>, digests: &mut Digests) {
    for (column, of_column, runs) in untiled {
        digests.columns[column as usize] = Some(of_column);
        digests.runs.insert(column, runs);
    }
    for (planned, digests) in plan.columns.iter().zip(&mut digests.columns) {
        if let Route::Linked = planned.route {
            *digests = Some(ColumnDigests { form: DigestForm::Linked, block_rows: 1, whole: 0, blocks: Vec::new() });
        }
    }
    for (column, digests) in (0..).zip(&mut digests.columns) {
        if let Some(carried) = carried(plan, column) {
            *digests = Some(carried.clone());
        }
    }
}

/// Creates `/_raddle` with all its members.
pub fn write_provenance(output: &mut OutputFile, provenance: &Provenance) -> Result<()> {
    for group in &provenance.groups {
        output.create_group(group, provenance.link_order, CreationOrder::default())?;
    }
    for attribute in &provenance.attributes {
        let spec = AttributeSpec {
            name: attribute.name.as_bytes(),
            utf8: false,
            datatype: &TypeRef::Own(Arc::clone(&attribute.class)),
            dataspace: &Dataspace::Scalar,
            value: &attribute.value,
        };
        output.write_attribute(&provenance.groups[0], &spec)?;
    }
    for table in &provenance.tables {
        let spec = table_spec(&table.class, &table.dims, !table.attributes.is_empty());
        let mut dataset = output.create_dataset(&table.path, &spec)?;
        if !table.dims.contains(&0) {
            dataset.write(&table.value)?;
        }
    }
    let class = class_of_dimensions();
    for dimension in &provenance.dimensions {
        output.create_dataset(&dimension.path, &table_spec(&class, &[dimension.len], true))?;
    }
    // Tables and dimensions refer to each other.
    let of_tables = provenance.tables.iter().map(|table| (&table.path, &table.attributes));
    let of_dimensions = provenance.dimensions.iter().map(|dimension| (&dimension.path, &dimension.attributes));
    for (path, attributes) in of_tables.chain(of_dimensions) {
        for attribute in attributes {
            let datatype = type_ref(&attribute.datatype.class, None);
            output.write_attribute(path, &attribute_spec(attribute, &datatype))?;
        }
    }
    Ok(())
}

/// Returns the specification of a dataset of `/_raddle`.
fn table_spec(class: &Arc<TypeClass>, dims: &[u64], has_attributes: bool) -> DatasetSpec {
    DatasetSpec {
        datatype: TypeRef::Own(Arc::clone(class)),
        dataspace: Dataspace::Simple { dims: dims.to_vec(), max_dims: dims.to_vec() },
        layout: OutputLayout::Contiguous,
        filters: Vec::new(),
        fill: FillValue::default(),
        attribute_order: CreationOrder::default(),
        has_attributes,
    }
}

/// Returns the hard links to objects that are created after them. This order occurs if inputs hold different objects:
/// the object comes with a group that another input lacks. Hard links never refer to one another: a path that is a link
/// in one input and the object in another is a difference.
fn late_links(entries: &[SchemaEntry]) -> HashSet<EntryIndex> {
    let target = |entry: &'_ SchemaEntry| match &entry.role {
        Role::HardLink { target } => Some(target.clone()),
        _ => None,
    };
    let targets: HashSet<Vec<u8>> = entries.iter().filter_map(target).collect();
    let places: HashMap<&[u8], EntryIndex> = (0..)
        .zip(entries)
        .filter(|(_, entry)| targets.contains(&entry.path))
        .map(|(at, entry)| (&*entry.path, at))
        .collect();
    let is_late = |link: EntryIndex, target: &[u8]| places.get(target).is_some_and(|&place| place > link);
    let links = (0..).zip(entries).filter_map(|(link, entry)| Some((link, target(entry)?)));
    links.filter(|(link, target)| is_late(*link, target)).map(|(link, _)| link).collect()
}

fn is_region_full(error: &MergeError) -> bool {
    match error {
        MergeError::Hdf5(Hdf5Error::MetadataRegionFull { .. }) => true,
        MergeError::Hdf5(Hdf5Error::InObject { source, .. }) => {
            matches!(**source, Hdf5Error::MetadataRegionFull { .. })
        }
        _ => false,
    }
}
