//! Objects of the output and, for each dataset to concatenate, where each input stores its part.
//!
//! A schema is the result of the scan after the trees of the inputs are dropped: one [`SchemaEntry`] per path, one
//! [`Column`] per concatenated dataset, and 32 bytes per (column, input) pair with rows, of which real jobs have 10⁶ to
//! 10⁸. Invariant: `facts` of a column has one element per input, in input order.

pub(crate) mod attribute;
pub(crate) mod boxes;
pub(crate) mod extents;
pub mod join;
pub(crate) mod lifted;
pub(crate) mod stacked_scalars;

pub use attribute::AttributeValue;
pub use raddle_hdf5::object_path::{child_path, display_path, parent_path};
pub(crate) use raddle_hdf5::object_path::{is_named, last_name};

use crate::rules::{Conversion, InputConversion, Trim};
use crate::schema::attribute::{named, text};
use crate::schema::boxes::BoxLayout;
use crate::schema::extents::InputExtents;
use raddle_core::plan::Segments;
use raddle_hdf5::model::template::{self, DatasetLocation};
use raddle_hdf5::model::{ChunkIndex, CreationOrder, Dataset, Dataspace, InlineData, Layout, TypeClass};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Index of an entry in [`Schema::entries`].
pub(crate) type EntryIndex = u32;
/// Index of a column in [`Schema::columns`].
pub type ColumnIndex = u32;

/// Group of the output in which raddle stores digests and provenance; that group is not merged from the inputs.
pub const PROVENANCE_GROUP: &[u8] = b"_raddle";

/// The joined structure of all inputs.
#[derive(Debug, Default)]
pub struct Schema {
    /// Objects and links in creation order, parents before children. Entry 0 is the root group.
    pub entries: Vec<SchemaEntry>,
    /// Concatenated datasets, in the order of their entries.
    pub columns: Vec<Column>,
}

/// An entry of the schema: a path of the output and the object or link there.
#[derive(Debug, Clone)]
pub struct SchemaEntry {
    /// Absolute path, components separated by `/`; the root is `/`.
    pub path: Vec<u8>,
    /// Whether the last component is marked UTF-8.
    pub utf8: bool,
    /// Kind of object or link at this path.
    pub role: Role,
    /// Attributes in creation order; empty for links.
    pub attributes: Arc<[AttributeValue]>,
    /// Whether the object tracks the creation order of attributes.
    pub attribute_order: CreationOrder,
    /// Comment of the object.
    pub comment: Option<Vec<u8>>,
}

/// Kind of object or link at a path of the output.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Role {
    /// A group.
    Group {
        /// Whether the group tracks the creation order of links.
        link_order: CreationOrder,
    },
    /// A dataset of rank 1 or more: the rows of all inputs one after another.
    Column(ColumnIndex),
    /// A scalar or null dataset, stored once; or a small dataset that a convention computes from all inputs.
    Constant {
        /// Description of the dataset.
        dataset: Box<Dataset>,
        /// Path of its committed datatype, if it has one.
        committed: Option<Vec<u8>>,
        /// Value in canonical bytes.
        value: Vec<u8>,
    },
    /// A committed datatype.
    CommittedDatatype(Arc<TypeClass>),
    /// An additional hard link to an object that already has another path.
    HardLink {
        /// Path of the object.
        target: Vec<u8>,
    },
    /// A soft link.
    SoftLink(Vec<u8>),
    /// An external link.
    ExternalLink {
        /// File name as stored.
        file: Vec<u8>,
        /// Object path as stored.
        path: Vec<u8>,
    },
    /// A user-defined link.
    UserLink {
        /// Class of the link.
        class: u8,
        /// Class-specific data.
        data: Vec<u8>,
    },
}

impl Role {
    /// Returns the path to which a hard or soft link at `path` leads in its file.
    pub fn target(&self, path: &[u8]) -> Option<Vec<u8>> {
        match self {
            Self::HardLink { target } => Some(target.clone()),
            Self::SoftLink(target) if target.starts_with(b"/") => Some(target.clone()),
            Self::SoftLink(target) => Some(child_path(parent_path(path), target)),
            _ => None,
        }
    }

    /// Returns the role as a word for messages.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Group { .. } => "group",
            Self::Column(_) => "dataset",
            Self::Constant { dataset, .. } => match dataset.dataspace {
                Dataspace::Null => "null dataset",
                Dataspace::Scalar => "scalar dataset",
                Dataspace::Simple { .. } => "dataset",
            },
            Self::CommittedDatatype(_) => "committed datatype",
            Self::HardLink { .. } => "hard link",
            Self::SoftLink(_) => "soft link",
            Self::ExternalLink { .. } => "external link",
            Self::UserLink { .. } => "user-defined link",
        }
    }
}

/// A concatenated dataset; along axis 0 unless a rule states another axis.
#[derive(Debug)]
pub struct Column {
    /// Index of the column's entry.
    pub entry: EntryIndex,
    /// Storage in the inputs: one template per distinct combination of datatype, filters, layout and fill value. The
    /// output follows the first one.
    pub templates: Vec<Arc<Dataset>>,
    /// Path of its committed datatype, if it has one.
    pub committed: Option<Vec<u8>>,
    /// Location of each input's part, in input order.
    pub facts: InputExtents,
    /// Axis along which inputs are concatenated.
    pub axis: usize,
    /// Whether the output holds a single copy of values that all inputs share.
    pub is_once: bool,
    /// Whether the dataset of each input becomes one row of the output, which has an additional axis.
    pub is_lifted: bool,
    /// Description of the output dataset, if a rule makes it differ from the first template.
    pub output: Option<Arc<Dataset>>,
    /// Conversion of the inputs' values, if there is one.
    pub conversion: Option<Arc<Conversion>>,
    /// Rows that are left out of the output, indexed by input; `None` if there are none.
    pub trims: Option<Arc<[Option<Trim>]>>,
    /// Runs of rows in output order, if the inputs do not simply follow one another.
    pub runs: Option<Segments>,
    /// Places of the inputs, if these are boxes of a larger array.
    pub boxes: Option<Arc<BoxLayout>>,
    /// Row values for inputs that lack the dataset, if they differ from the fill value.
    pub of_inputs: Option<Arc<InputValues>>,
}

/// One row for each input that lacks a dataset, repeated for all its rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputValues {
    /// Canonical bytes of the row, indexed by input; empty if the input has rows of the dataset.
    pub rows: Vec<Vec<u8>>,
}

/// Location of one input's part of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InputExtent {
    /// Number of rows that the input contributes: its size along the concatenation axis, without trimmed rows.
    pub rows: u64,
    /// Address that completes the template: of the chunk index or of contiguous data; of the object header for layouts
    /// that need it (compact, single chunk, virtual, external). [`UNALLOCATED`] if nothing is stored.
    pub address: u64,
    /// Number of stored bytes.
    pub stored_len_bytes: u64,
    /// Index into [`Column::templates`], or [`ABSENT`].
    pub template: u32,
}

/// Address of data for which no storage was allocated.
pub const UNALLOCATED: u64 = u64::MAX;
/// Template of an input that lacks the column; its rows are fill values (`--join outer`).
pub const ABSENT: u32 = u32::MAX;

impl InputExtent {
    /// Returns the extent of an input that lacks the column and contributes `rows` rows of fill values.
    pub const fn absent(rows: u64) -> Self {
        Self { rows, address: UNALLOCATED, stored_len_bytes: 0, template: ABSENT }
    }

    /// Returns the extent of a dataset at `place`, with template 0 until its template is known.
    pub fn at(place: DatasetLocation, stored_len_bytes: u64) -> Self {
        Self { rows: place.rows, address: place.address.unwrap_or(UNALLOCATED), stored_len_bytes, template: 0 }
    }
}

/// Meaning of the address in an [`InputExtent`], which completes a template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddressKind {
    /// Address of data or of a chunk index.
    Data,
    /// Address of the object header, which must be read again.
    Header,
}

/// Returns the meaning of addresses in extents with this template. The header is needed if the fill value is in
/// canonical bytes, because it cannot be read as stored.
pub fn address_kind(template: &Dataset) -> AddressKind {
    if matches!(template.fill.value, Some(InlineData::Canonical(_))) {
        return AddressKind::Header;
    }
    match &template.layout {
        Layout::Contiguous { .. } => AddressKind::Data,
        Layout::Chunked { index, .. } => match index {
            ChunkIndex::Single { .. } => AddressKind::Header,
            _ => AddressKind::Data,
        },
        _ => AddressKind::Header,
    }
}

/// Splits the description of a dataset into a template, which inputs can share, and the extent of this input; `axis` is
/// the concatenation axis.
pub fn split(mut dataset: Dataset, header_address: u64, stored_len_bytes: u64, axis: usize) -> (Dataset, InputExtent) {
    let place = template::open_along(&mut dataset, axis);
    dataset.datatype.committed = None;
    match &mut dataset.layout {
        Layout::Chunked { index: ChunkIndex::Single { address, len_bytes, filter_mask }, .. } => {
            (*address, *len_bytes, *filter_mask) = (0, None, 0);
        }
        Layout::Compact(data) => *data = InlineData::Stored(Vec::new()),
        _ => {}
    }
    let fact = match address_kind(&dataset) {
        AddressKind::Data => InputExtent::at(place, stored_len_bytes),
        AddressKind::Header => InputExtent { address: header_address, ..InputExtent::at(place, stored_len_bytes) },
    };
    (dataset, fact)
}

/// Completes a template with the extent of an input; the inverse of [`split`] if [`address_kind`] is `Data`.
pub fn complete(template: &Dataset, fact: &InputExtent, axis: usize) -> Dataset {
    let mut dataset = template.clone();
    let address = (fact.address != UNALLOCATED).then_some(fact.address);
    template::close_along(&mut dataset, DatasetLocation { rows: fact.rows, address }, axis);
    dataset
}

/// Converts a template and an extent that were split along axis 0 to a split along `axis`.
pub(crate) fn split_again(template: &Dataset, fact: &InputExtent, axis: usize) -> (Dataset, InputExtent) {
    let mut dataset = complete(template, fact, 0);
    let place = template::open_along(&mut dataset, axis);
    (dataset, InputExtent { rows: place.rows, ..*fact })
}

impl Column {
    /// Creates a column without rules.
    pub fn new(template: Arc<Dataset>, committed: Option<Vec<u8>>, facts: InputExtents) -> Self {
        Self {
            entry: 0,
            templates: vec![template],
            committed,
            facts,
            axis: 0,
            is_lifted: false,
            output: None,
            conversion: None,
            trims: None,
            runs: None,
            boxes: None,
            of_inputs: None,
            is_once: false,
        }
    }

    /// Returns the number of a template, and adds it if no input so far has an equal one.
    pub(crate) fn number_of_template(&mut self, template: Arc<Dataset>) -> u32 {
        // Addresses are compared first, because equal templates are usually shared in memory.
        let is_same = |known: &Arc<Dataset>| Arc::ptr_eq(known, &template) || *known == template;
        let number = self.templates.iter().position(is_same).unwrap_or_else(|| {
            self.templates.push(Arc::clone(&template));
            self.templates.len() - 1
        });
        number as u32
    }

    /// Adds the extent in an input; inputs since the last one lack the column.
    pub(crate) fn add_extent(&mut self, input: u32, extent: InputExtent) {
        self.facts.fill_to(input as usize, InputExtent::absent(0));
        self.facts.push(extent);
    }

    /// Returns the conversion of the values of an input; `None` if they are not converted.
    pub(crate) fn conversion_of(&self, input: u32) -> Option<&InputConversion> {
        let conversion = self.conversion.as_ref()?.of_inputs.get(input as usize)?;
        (!conversion.is_identity()).then_some(conversion)
    }

    /// Returns the rows of an input that are left out of the output; `None` if no rows are.
    pub(crate) fn trim_of(&self, input: u32) -> Option<Trim> {
        *self.trims.as_ref()?.get(input as usize)?
    }

    /// Returns whether the output consists of the stored values of the inputs, row by row.
    pub fn is_plain(&self) -> bool {
        self.axis == 0
            && !self.is_lifted
            && self.output.is_none()
            && self.conversion.is_none()
            && self.trims.is_none()
            && self.runs.is_none()
            && self.boxes.is_none()
            && self.of_inputs.is_none()
    }

    /// Returns the row that is repeated for an input that lacks the dataset; `None` if it is the fill value.
    pub fn row_of(&self, input: u32) -> Option<&[u8]> {
        self.of_inputs.as_ref()?.rows.get(input as usize).map(Vec::as_slice)
    }

    /// Sets an output description that replaces the first template.
    pub(crate) fn set_output(&mut self, output: Dataset) {
        self.output = Some(Arc::new(output));
    }

    /// Returns the number of rows in the output.
    pub fn rows(&self) -> u64 {
        if let Some(layout) = &self.boxes {
            return layout.dims.get(self.axis).copied().unwrap_or(0);
        }
        self.facts.iter().fold(0, |sum, fact| sum.saturating_add(fact.rows))
    }

    /// Returns dimensions and maximum dimensions of the output. Rows add up; the concatenation axis is unlimited if it
    /// is in an input or if `extendible` is set.
    pub(crate) fn output_dims(&self, extendible: bool) -> (Vec<u64>, Vec<u64>) {
        let Dataspace::Simple { dims, max_dims } = &self.model().dataspace else {
            return (Vec::new(), Vec::new());
        };
        let (mut dims, mut max_dims) = (dims.clone(), max_dims.clone());
        let axis = self.axis;
        dims[axis] = self.rows();
        let unlimited = self.templates.iter().any(|template| match &template.dataspace {
            Dataspace::Simple { max_dims, .. } => max_dims[axis] == u64::MAX,
            _ => false,
        });
        let holders = self.facts.iter().filter(|fact| fact.template != ABSENT).count();
        max_dims[axis] = match (unlimited || extendible, holders) {
            (true, _) => u64::MAX,
            // As in the only input: moved chunks may have more rows than the dataset.
            (false, 1) => max_dims[axis],
            (false, _) => dims[axis],
        };
        for (max, dim) in max_dims.iter_mut().zip(&dims) {
            *max = (*max).max(*dim);
        }
        (dims, max_dims)
    }

    /// Returns the dimensions of an input's dataset, without rows that are left out. The result is empty if the input
    /// lacks the dataset.
    pub(crate) fn dims_in(&self, input: u32) -> Vec<u64> {
        let fact = &self.facts[input as usize];
        let Some(template) = self.templates.get(fact.template as usize) else { return Vec::new() };
        let mut dims = template.dataspace.dims().to_vec();
        if let Some(rows) = dims.get_mut(self.axis) {
            *rows = fact.rows;
        }
        dims
    }

    /// Returns the number of bytes stored in all inputs.
    pub fn stored_len_bytes(&self) -> u64 {
        self.facts.iter().fold(0, |sum, fact| sum.saturating_add(fact.stored_len_bytes))
    }

    /// Returns the description that the output follows: datatype, other dimensions, filters and fill value of the first
    /// input, with the changes by rules.
    pub fn model(&self) -> &Dataset {
        self.output.as_ref().unwrap_or(&self.templates[0])
    }

    /// Returns whether elements hold addresses within their file, in which case values must be copied through libhdf5.
    pub fn is_file_local(&self) -> bool {
        self.model().datatype.class.is_file_local()
    }
}

impl Schema {
    /// Removes datasets whose paths satisfy `is_unwanted`, with all hard links to them; returns their number.
    pub(crate) fn remove_columns(&mut self, is_unwanted: impl Fn(&[u8]) -> bool) -> u64 {
        let unwanted = |entry: &SchemaEntry| match &entry.role {
            Role::Column(_) => is_unwanted(&entry.path),
            Role::HardLink { target } => is_unwanted(target),
            _ => false,
        };
        let before = self.columns.len();
        let mut columns: Vec<Option<Column>> = std::mem::take(&mut self.columns).into_iter().map(Some).collect();
        self.entries.retain(|entry| !unwanted(entry));
        for (index, entry) in (0..).zip(&mut self.entries) {
            if let Role::Column(column) = &mut entry.role
                && let Some(mut kept) = columns[*column as usize].take()
            {
                kept.entry = index;
                *column = self.columns.len() as ColumnIndex;
                self.columns.push(kept);
            }
        }
        (before - self.columns.len()) as u64
    }

    /// Returns the library that cannot read the output if its root has a member foreign to its format, as
    /// [`PROVENANCE_GROUP`] is. HDMF ignores such members only in its tables and in NWB files.
    pub fn reader_without_provenance(&self) -> Option<&'static str> {
        let root = &*self.entries.first()?.attributes;
        if text(root, "encoding-type").is_some_and(|encoding| encoding == "anndata") {
            return Some("anndata");
        }
        let is_hdmf = ["data_type", "namespace"].iter().all(|name| named(root, name).is_some());
        (is_hdmf && named(root, "colnames").is_none()).then_some("HDMF")
    }

    /// Returns the number of axes of the column at an entry; 0 for other entries.
    pub fn rank(&self, entry: &SchemaEntry) -> usize {
        match entry.role {
            Role::Column(column) => self.columns[column as usize].model().dataspace.dims().len(),
            _ => 0,
        }
    }

    /// Returns whether the output has no object but the root group.
    pub fn is_empty(&self) -> bool {
        self.entries.len() <= 1
    }

    /// Returns the path of a column, escaped for display.
    pub fn path_of(&self, column: &Column) -> String {
        display_path(&self.entries[column.entry as usize].path)
    }

    /// Returns the path of a column.
    pub fn column_path(&self, column: ColumnIndex) -> &[u8] {
        &self.entries[self.columns[column as usize].entry as usize].path
    }
}
