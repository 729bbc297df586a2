//! Tables: groups of datasets with the same number of rows, where row N of each describes the same item.

use crate::decoding::Decoding;
use crate::error::{QueryError, Result};
use crate::packing::ColumnValues;
use crate::statistics::{BlockStatistics, OrderedType};
use crate::strings::StringForm;
use crate::values::{ValueType, Values};
use raddle_hdf5::Hdf5Error;
use raddle_hdf5::logical::Resolver;
use raddle_hdf5::model::{Layout, LinkTarget, ObjectIndex, ObjectKind, TypeClass};
use raddle_hdf5::number::NumberType;
use raddle_hdf5::open_file::{OpenFile, PreparedDataset};
use raddle_hdf5::paths::ResolvedPath;
use raddle_hdf5::read::{BoxRead, DatasetReader, ReadCounts};
use std::collections::{BTreeSet, VecDeque};
use std::ops::Range;
use std::sync::Arc;

/// Length of the values of a block, in bytes, unless a chunk is longer: long enough to occupy a thread, and as long as
/// a chunk in most files.
const BLOCK_LEN_BYTES: u64 = 128 << 10;
/// Length up to which values are plausible in a file of any size. Sparse or malicious dimensions claim more.
const MIN_IMPLAUSIBLE_LEN_BYTES: u64 = 1 << 40;
/// Maximum plausible ratio of the length of values to that of the file. Deflate reaches 1,032.
const MAX_RATIO: u64 = 2000;
/// Maximum number of soft links in one path, as in libhdf5 (`H5L_NUM_LINKS`).
const MAX_LINKS: u32 = 16;
/// Similarity from which a name is offered in place of an unknown one.
const MIN_SIMILARITY: f64 = 0.7;
/// Name of the group in the root group in which raddle stores digests.
const PROVENANCE_GROUP: &[u8] = b"_raddle";
/// Reason to refuse values that a scan cannot return.
pub(crate) const IS_VARIABLE: &str = "holds values of variable length; read it with the row numbers of the scan";
/// Description of values of a type that is not compared, with the types that are.
const UNORDERED_TYPE: &str =
    "values that are not integers of 8 to 64 bits, floats of 32 or 64 bits, enumerations or strings";
/// Maximum number of names offered.
const MAX_OFFERED: usize = 3;

/// A group of an open file, as a table.
#[derive(Debug, Clone)]
pub struct Table<'f> {
    file: &'f OpenFile,
    group: ObjectIndex,
    path: String,
    values: Option<Values>,
}

/// A column of a table.
#[derive(Debug, Clone)]
pub(crate) struct TableColumn {
    /// Name relative to the table.
    pub name: String,
    /// Dataset, ready to be read.
    pub prepared: Arc<PreparedDataset>,
    /// Number of rows.
    pub rows: u64,
    /// Length of the values of a row in bytes; for variable-length strings, the length of the pointer to the string.
    pub row_len_bytes: u64,
    /// Kind of values, for comparisons.
    pub kind: ColumnKind,
    /// Computation of the values; `None` for the stored ones.
    pub decoding: Option<Decoding>,
}

/// Kind of the values of a column, which determines what they can be compared with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ColumnKind {
    /// Numbers.
    Number(NumberType),
    /// Named integers, among them the Booleans of h5py.
    Enumeration { base: NumberType, symbols: Vec<(Vec<u8>, i128)> },
    /// Strings.
    String(StringForm),
    /// Values that are not compared, with a description.
    Other(&'static str),
}

impl TableColumn {
    /// Returns whether rows are pointers to variable-length strings.
    pub fn is_variable(&self) -> bool {
        self.kind == ColumnKind::String(StringForm::Canonical)
    }

    /// Replaces the contents of `out` with rows that can be compared: values as from [`TableColumn::read`] or, for
    /// variable-length strings, their canonical bytes, which `resolver` finds.
    pub fn read_comparable<'f>(
        &self,
        file: &'f OpenFile,
        (reader, resolver): (&mut DatasetReader, &mut Option<Resolver<'f>>),
        rows: &Range<u64>,
        out: &mut Vec<u8>,
    ) -> raddle_hdf5::Result<ReadCounts> {
        out.clear();
        out.resize(self.len_bytes(rows), 0);
        let read = self.read(file, reader, rows, out)?;
        if self.is_variable() {
            let pointers = std::mem::take(out);
            let resolver = resolver.get_or_insert_with(|| file.resolver());
            resolver.canonical(&self.prepared.dataset.datatype.class, &pointers, out)?;
        }
        Ok(read)
    }

    /// Reads the values of rows, with strings padded with zeros, into `out`, which has their length.
    pub fn read(
        &self,
        file: &OpenFile,
        reader: &mut DatasetReader,
        rows: &Range<u64>,
        out: &mut [u8],
    ) -> raddle_hdf5::Result<ReadCounts> {
        let Some(decoding) = &self.decoding else { return self.read_stored(file, reader, rows, out) };
        let mut stored = vec![0; decoding.stored_len_bytes(out.len())];
        let read = self.read_stored(file, reader, rows, &mut stored)?;
        decoding.decode(&stored, out);
        Ok(read)
    }

    fn read_stored(
        &self,
        file: &OpenFile,
        reader: &mut DatasetReader,
        rows: &Range<u64>,
        out: &mut [u8],
    ) -> raddle_hdf5::Result<ReadCounts> {
        let mut count = self.prepared.dataset.dataspace.dims().to_vec();
        let mut start = vec![0; count.len()];
        let origin = start.clone();
        (start[0], count[0]) = (rows.start, rows.end - rows.start);
        let target = BoxRead { start: &start, count: &count, out_shape: &count, out_origin: &origin };
        let read = reader.read_box(&file.source(&self.prepared)?, &target, out);
        file.check_dataset(&self.prepared)?;
        self.prepared.normalise(out);
        read
    }

    /// Returns the type in which the index has statistics of the column; `None` if it has none.
    pub fn indexed(&self) -> Option<OrderedType> {
        let of_values = self.kind.ordered()?;
        Some(self.decoding.as_ref().map_or(of_values, |decoding| OrderedType::Number(decoding.stored())))
    }

    /// Returns statistics of the values, given those of the stored values; `None` if nothing is known.
    pub fn statistics(&self, stored: BlockStatistics) -> Option<BlockStatistics> {
        let Some(decoding) = &self.decoding else { return Some(stored) };
        decoding.limits(stored.limits).map(BlockStatistics::of_limits)
    }

    /// Returns the length of some rows.
    pub fn len_bytes(&self, rows: &Range<u64>) -> usize {
        ((rows.end - rows.start) * self.row_len_bytes) as usize
    }

    /// Returns the number of rows of a chunk; 1 if there are no chunks.
    pub fn chunk_rows(&self) -> u64 {
        match &self.prepared.dataset.layout {
            Layout::Chunked { chunk_shape, .. } => chunk_shape.first().copied().unwrap_or(1).max(1),
            _ => 1,
        }
    }
}

/// Returns the number of rows of a block, which spans one chunk or several short ones.
pub(crate) fn block_rows(chunk_rows: u64, row_len_bytes: u64) -> u64 {
    let wanted = BLOCK_LEN_BYTES / row_len_bytes.max(1);
    chunk_rows.saturating_mul((wanted / chunk_rows).max(1))
}

impl ColumnKind {
    pub fn of(class: &TypeClass, elements_per_row: u64) -> Self {
        if elements_per_row != 1 {
            return Self::Other("several values per row");
        }
        match class {
            TypeClass::Enum { base, symbols } => {
                let Some(base) = NumberType::of(base) else { return Self::Other(UNORDERED_TYPE) };
                let value = |bytes: &[u8]| {
                    let mut values = Vec::new();
                    // Integers of more than 63 bits, which only an unsigned type has, are decoded as negative ones.
                    let is_exact = base.decode_integers(bytes, &mut values);
                    let value = values.first().copied().unwrap_or_default();
                    if is_exact { i128::from(value) } else { i128::from(value.cast_unsigned()) }
                };
                let symbols = symbols.iter().map(|(name, bytes)| (name.clone(), value(bytes))).collect();
                Self::Enumeration { base, symbols }
            }
            TypeClass::FixedString { len_bytes, .. } => {
                Self::String(StringForm::Padded { len_bytes: *len_bytes as usize })
            }
            TypeClass::VariableString { .. } => Self::String(StringForm::Canonical),
            TypeClass::Compound { .. } => Self::Other("compounds"),
            class => NumberType::of(class).map_or(Self::Other(UNORDERED_TYPE), Self::Number),
        }
    }

    /// Describes the values.
    pub fn described(&self) -> &'static str {
        match self {
            Self::Number(_) => "numbers",
            Self::Enumeration { .. } => "named values",
            Self::String(_) => "strings",
            Self::Other(what) => what,
        }
    }

    /// Returns the type of the values; `None` if values of this type have no limits.
    pub fn ordered(&self) -> Option<OrderedType> {
        match self {
            Self::String(StringForm::Padded { len_bytes: 0 }) => None,
            Self::String(form) => Some(OrderedType::String(*form)),
            _ => self.number().map(OrderedType::Number),
        }
    }

    /// Returns the type of the numbers; `None` if there are none.
    pub fn number(&self) -> Option<NumberType> {
        match self {
            Self::Number(number) | Self::Enumeration { base: number, .. } => Some(*number),
            Self::String(_) | Self::Other(_) => None,
        }
    }
}

impl<'f> Table<'f> {
    /// Returns the group at `path` as a table.
    ///
    /// # Errors
    /// [`QueryError::Unknown`] if no group has this path.
    pub fn of(file: &'f OpenFile, path: &str) -> Result<Self> {
        let unknown = || QueryError::Unknown {
            table: file.path().display().to_string(),
            what: "group",
            name: path.to_owned(),
            alternatives: Vec::new(),
        };
        let found = match path.trim_matches('/') {
            "" => ResolvedPath::Object(0),
            inside => file.find(0, inside.as_bytes(), MAX_LINKS)?,
        };
        let ResolvedPath::Object(group) = found else { return Err(unknown()) };
        match file.object(group)?.kind {
            ObjectKind::Group(_) => {
                Ok(Self { file, group, path: format!("/{}", path.trim_matches('/')), values: None })
            }
            _ => Err(unknown()),
        }
    }

    /// Chooses the values of netCDF variables on which scans are carried out; with `None`, scans that use a variable
    /// for which this makes a difference are refused.
    #[must_use]
    pub fn with_values(self, values: Option<Values>) -> Self {
        Self { values, ..self }
    }

    /// Returns the choice between the values of netCDF variables.
    pub fn values(&self) -> Option<Values> {
        self.values
    }

    /// Returns the open file.
    pub fn file(&self) -> &'f OpenFile {
        self.file
    }

    /// Returns the path of the group.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Returns the absolute path of a column.
    pub(crate) fn path_of(&self, column: &str) -> String {
        format!("{}/{column}", self.path.trim_end_matches('/'))
    }

    /// Returns the names of the datasets of the group that have rows, in link order.
    ///
    /// # Errors
    /// If the group cannot be read.
    pub fn names(&self) -> Result<Vec<String>> {
        let mut names = Vec::new();
        for link in self.file.links(self.group)? {
            let LinkTarget::Hard(object) = link.target else { continue };
            let has_rows = self.file.outline(object)?.is_some_and(|(dataspace, _)| !dataspace.dims().is_empty());
            if let (true, Ok(name)) = (has_rows, std::str::from_utf8(&link.name)) {
                names.push(name.to_owned());
            }
        }
        Ok(names)
    }

    /// Returns the number of rows of a dataset, whatever its type.
    pub(crate) fn rows(&self, name: &str) -> Result<u64> {
        let object = self.object(name)?;
        let outline = self.file.outline(object)?;
        outline.and_then(|(space, _)| space.dims().first().copied()).ok_or_else(|| QueryError::Column {
            table: self.path.clone(),
            column: name.to_owned(),
            reason: "has no rows".to_owned(),
        })
    }

    /// Returns the type of the values of a column in scans.
    ///
    /// # Errors
    /// If the column does not exist, if attributes change its values and none are chosen, or if its values cannot be
    /// computed.
    pub fn value_type(&self, name: &str) -> Result<ValueType> {
        let object = self.object(name)?;
        let Some((_, class)) = self.file.outline(object)? else { return Ok(ValueType::default()) };
        let path = self.path_of(name);
        let ColumnValues { decoding, is_nullable } = ColumnValues::of(self.values, self.file, (object, &path), &class)?;
        Ok(ValueType { computed: decoding.map(|decoding| decoding.output()), is_nullable })
    }

    /// Returns the number of the object with this name.
    pub(crate) fn object(&self, name: &str) -> Result<ObjectIndex> {
        match self.file.find(self.group, name.as_bytes(), MAX_LINKS)? {
            ResolvedPath::Object(object) => Ok(object),
            _ => Err(self.unknown(name)?),
        }
    }

    /// Returns a column with the values of scans.
    ///
    /// # Errors
    /// As for [`Table::stored_column`], and if the values are not chosen or cannot be computed.
    pub(crate) fn column(&self, name: &str) -> Result<TableColumn> {
        let mut column = self.stored_column(name)?;
        let class = &column.prepared.dataset.datatype.class;
        let path = self.path_of(name);
        let ColumnValues { decoding, .. } =
            ColumnValues::of(self.values, self.file, (self.object(name)?, &path), class)?;
        if let Some(decoding) = decoding {
            let elements = column.row_len_bytes / class.len_bytes();
            column.kind = ColumnKind::of(&decoding.output().class(), elements);
            column.row_len_bytes = elements.saturating_mul(decoding.output().len_bytes() as u64);
            column.decoding = Some(decoding);
        }
        Ok(column)
    }

    /// Returns a column with the stored values.
    ///
    /// # Errors
    /// If no dataset has this name, or it has no rows, or only libhdf5 can read its values.
    pub(crate) fn stored_column(&self, name: &str) -> Result<TableColumn> {
        let refuse = |reason: &str| QueryError::Column {
            table: self.path.clone(),
            column: name.to_owned(),
            reason: reason.to_owned(),
        };
        let object = self.object(name)?;
        if !matches!(self.file.object(object)?.kind, ObjectKind::Dataset(_) | ObjectKind::Templated(_)) {
            return Err(refuse("is not a dataset"));
        }
        let prepared = self.file.prepared(object)?;
        let dataset = &prepared.dataset;
        let dims = dataset.dataspace.dims();
        let Some((&rows, others)) = dims.split_first() else { return Err(refuse("is a scalar, which has no rows")) };
        let class = &dataset.datatype.class;
        let is_text = matches!(**class, TypeClass::VariableString { .. }) && others.iter().all(|&dim| dim == 1);
        if class.is_file_local() && !is_text {
            return Err(refuse(IS_VARIABLE));
        }
        if !self.file.reads_natively(&prepared) {
            let what = match dataset.layout {
                Layout::Virtual => "is a virtual dataset, whose values only libhdf5 can read",
                _ => "has values that only libhdf5 can read",
            };
            return Err(refuse(what));
        }
        let elements = others.iter().try_fold(1_u64, |product, &dim| product.checked_mul(dim));
        let row_len_bytes = elements.and_then(|elements| elements.checked_mul(class.len_bytes()));
        let Some((elements, row_len_bytes)) = elements.zip(row_len_bytes) else {
            return Err(refuse("has rows of more than 2^64 bytes"));
        };
        let plausible = MIN_IMPLAUSIBLE_LEN_BYTES.max(self.file.identity().len_bytes.saturating_mul(MAX_RATIO));
        if rows.checked_mul(row_len_bytes).is_none_or(|len_bytes| len_bytes > plausible) {
            return Err(refuse("claims more values than a file of this size can hold"));
        }
        let kind = ColumnKind::of(class, elements);
        Ok(TableColumn { name: name.to_owned(), rows, row_len_bytes, kind, prepared, decoding: None })
    }

    fn unknown(&self, name: &str) -> Result<QueryError> {
        let mut similar: Vec<(f64, String)> =
            self.names()?.into_iter().map(|known| (strsim::jaro(&known, name), known)).collect();
        similar.retain(|(similarity, _)| *similarity >= MIN_SIMILARITY);
        similar.sort_by(|left, right| right.0.total_cmp(&left.0));
        let alternatives = similar.into_iter().take(MAX_OFFERED).map(|(_, name)| name).collect();
        Ok(QueryError::Unknown { table: self.path.clone(), what: "column", name: name.to_owned(), alternatives })
    }

    /// Returns the error for a failed read of `column`, with its path.
    pub(crate) fn failed(&self, column: &TableColumn, error: Hdf5Error) -> QueryError {
        QueryError::Hdf5(error.in_object(self.path_of(&column.name)))
    }
}

/// Returns the paths of all groups, each once. A group with several names has the one by which a merge knows it: the
/// first in breadth-first order.
pub(crate) fn groups(file: &OpenFile) -> Result<Vec<String>> {
    let (mut found, mut seen) = (Vec::new(), BTreeSet::new());
    let mut open: VecDeque<(ObjectIndex, String)> = VecDeque::from([(0, "/".to_owned())]);
    while let Some((group, path)) = open.pop_front() {
        if !seen.insert(group) {
            continue;
        }
        for link in file.links(group)? {
            let LinkTarget::Hard(object) = link.target else { continue };
            // The group in which raddle stores digests is not searched.
            let is_searched = path != "/" || link.name != PROVENANCE_GROUP;
            let is_group = is_searched && matches!(file.object(object)?.kind, ObjectKind::Group(_));
            if let (true, Ok(name)) = (is_group, std::str::from_utf8(&link.name)) {
                open.push_back((object, format!("{}/{name}", path.trim_end_matches('/'))));
            }
        }
        found.push(path);
    }
    found.sort_unstable();
    Ok(found)
}
