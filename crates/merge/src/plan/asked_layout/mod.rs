//! Layout that options and layout rules request for each dataset, before its size decides the rest.
//!
//! The rules of a dataset are applied in their order; they take precedence over the options for all datasets.
//! Invariant: a rule, a dimension or a chunk shape that cannot be applied is refused, with the text of the rule.

mod check;
mod filters;

pub(crate) use check::offered_dimensions;
pub(crate) use filters::AskedFilters;

use super::cmip7::{self, Cmip7Role, Cmip7Variables};
use super::dimensions::Dimensions;
use super::layout_rules::{LayoutRule, RuleObjects, UnchunkedStorage};
use super::needing_chunks::{TableIndex, short_of_dimensions};
use crate::conventions::cf::axes::AxisRole;
use crate::error::{MergeError, Result};
use crate::options::{Contiguous, Empty, MergeOptions};
use crate::plan::chunk::Chunk;
use crate::plan::grid::Grid;
use crate::plan::layout::{LayoutPolicy, Shape, chunk_shape, shape_with};
use crate::schema::{Role, Schema, SchemaEntry, display_path, is_named};
use filters::DecidingRules;
use globset::GlobSet;
use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Origin of the chunk shape of a dataset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChunkSource {
    /// The read pattern (`--for`).
    Policy,
    /// The read pattern, for a variable with a time axis or a CMIP7 rule.
    Grid,
    /// The shape for all datasets (`--chunk`).
    Option,
    /// The layout rule of this number.
    Rule(u32),
    /// The stored chunks of the inputs, which are moved.
    Stored,
}

/// Requested chunk shape.
#[derive(Debug, Clone, PartialEq, Eq)]
enum AskedChunk {
    /// The shape that the read pattern chooses.
    Policy,
    Rows(u64),
    Shape(Vec<u64>),
    /// Sizes of some axes.
    Axes(Vec<Option<u64>>),
    /// The shape that the CMIP7 rules require.
    Cmip7(Cmip7Role),
    /// A shape for reading maps or series, with the time axis and the other axes that are not horizontal.
    Grid {
        time: usize,
        others: Vec<usize>,
    },
}

/// Requested layout.
#[derive(Debug, Clone)]
pub(crate) struct AskedLayout {
    policy: LayoutPolicy,
    chunk: AskedChunk,
    pub source: ChunkSource,
    /// Storage without chunks, with the number of the rule that requests it.
    pub unchunked: Option<(u32, UnchunkedStorage)>,
    /// Whether a rule requests chunks or filters.
    pub is_chunked: bool,
    /// Whether readers need chunks: see [`short_of_dimensions`].
    pub needs_chunks: bool,
    pub filters: AskedFilters,
    /// Numbers of the rules of the dataset, ascending.
    pub rules: Vec<u32>,
}

impl AskedLayout {
    /// Returns the chunk shape before it is limited. `table_rows` is the number of rows per chunk of the group.
    pub fn chunk_shape(&self, shape: Shape<'_>, table_rows: u64) -> Vec<u64> {
        match &self.chunk {
            AskedChunk::Policy => chunk_shape(self.policy, shape, table_rows),
            AskedChunk::Rows(rows) => {
                let mut chunk = chunk_shape(LayoutPolicy::Scan, shape, table_rows);
                chunk[0] = *rows;
                chunk
            }
            AskedChunk::Shape(asked) => asked.clone(),
            AskedChunk::Axes(sizes) => shape_with(self.policy, shape, sizes),
            AskedChunk::Cmip7(role) => {
                cmip7::chunk_shape(*role, shape).unwrap_or_else(|| chunk_shape(self.policy, shape, table_rows))
            }
            AskedChunk::Grid { time, others } => {
                let grid = Grid { dims: shape.dims, element_len_bytes: shape.element_len_bytes, time: *time, others };
                match self.policy {
                    LayoutPolicy::Maps => grid.chunk_of_maps(),
                    _ => grid.chunk_of_series(),
                }
            }
        }
    }

    /// Returns whether rules name filters.
    pub fn names_filters(&self, options: &MergeOptions) -> bool {
        self.rules.iter().any(|&rule| {
            let settings = options.layout_rules[rule as usize].settings();
            settings.compress.is_some() || settings.shuffle.is_some() || settings.fletcher32.is_some()
        })
    }

    /// Returns whether stored chunks of a different shape must not be moved.
    pub fn asks_for_chunk(&self) -> bool {
        self.chunk != AskedChunk::Policy
    }
}

/// Options and rules, ready to be applied to datasets.
pub(crate) struct AskedLayouts<'o> {
    options: &'o MergeOptions,
    matchers: Vec<Option<GlobSet>>,
    /// Dimensions of the datasets, if an option depends on them.
    dimensions: Option<Dimensions>,
    /// Variables with CMIP7 rules, if these are requested.
    cmip7: Cmip7Variables,
    /// Additional paths of datasets, indexed by their first path.
    links: HashMap<Vec<u8>, Vec<Vec<u8>>>,
    /// Paths of datasets that readers accept only in chunks, if an option requests storage without chunks.
    needing_chunks: HashSet<Vec<u8>>,
    indexes: Vec<TableIndex>,
}

impl<'o> AskedLayouts<'o> {
    /// Prepares the options for the datasets of `schema`.
    ///
    /// # Errors
    /// [`MergeError::Pattern`] for an invalid pattern.
    pub fn new(options: &'o MergeOptions, schema: &Schema) -> Result<Self> {
        let mut layouts = Self::without_dimensions(options)?;
        let is_grid = options.layout != options.layout.without_time();
        if is_grid || layouts.chunks().any(|chunk| matches!(chunk, Chunk::Named(_))) {
            layouts.dimensions = Some(Dimensions::of(schema));
        }
        if options.layout == LayoutPolicy::Cmip7 {
            layouts.cmip7 = Cmip7Variables::of(schema);
        }
        layouts.indexes = TableIndex::all(schema);
        let is_unchunked = |rule: &LayoutRule| rule.settings().unchunked.is_some();
        if options.contiguous != Contiguous::Small
            || matches!(options.empty, Empty::Contiguous | Empty::Compact)
            || options.layout_rules.iter().any(is_unchunked)
        {
            layouts.needing_chunks = short_of_dimensions(schema);
        }
        for entry in schema.entries.iter().filter(|_| !options.layout_rules.is_empty()) {
            if let Role::HardLink { target } = &entry.role {
                layouts.links.entry(target.clone()).or_default().push(entry.path.clone());
            }
        }
        Ok(layouts)
    }

    /// Prepares the options for datasets that are added to those of the inputs and have no named dimensions.
    ///
    /// # Errors
    /// [`MergeError::Pattern`] for an invalid pattern.
    pub fn without_dimensions(options: &'o MergeOptions) -> Result<Self> {
        let matchers = options.layout_rules.iter().map(LayoutRule::matcher).collect::<Result<_>>()?;
        Ok(Self {
            options,
            matchers,
            dimensions: None,
            cmip7: Cmip7Variables::default(),
            links: HashMap::new(),
            needing_chunks: HashSet::new(),
            indexes: Vec::new(),
        })
    }

    /// Returns the names of each of the `rank` axes of a dataset.
    fn names(&self, entry: &SchemaEntry, rank: usize) -> Vec<Vec<Vec<u8>>> {
        self.dimensions.as_ref().map_or_else(|| vec![Vec::new(); rank], |dimensions| dimensions.names(entry, rank))
    }

    fn is_coordinate(&self, entry: &SchemaEntry) -> bool {
        self.dimensions.as_ref().is_some_and(|dimensions| dimensions.is_coordinate(entry))
    }

    fn chunks(&self) -> impl Iterator<Item = &'o Chunk> {
        let of_rules = self.options.layout_rules.iter().filter_map(|rule| rule.settings().chunk.as_ref());
        self.options.chunk.iter().chain(of_rules)
    }

    /// Returns whether a rule applies to the dataset of an entry.
    fn applies(&self, rule: usize, entry: &SchemaEntry) -> bool {
        let Some(matcher) = &self.matchers[rule] else { return true };
        let links = self.links.get(&entry.path).map_or(&[][..], Vec::as_slice);
        std::iter::once(&entry.path).chain(links).any(|path| {
            // A matching group stands for everything in it.
            let path = Path::new(OsStr::from_bytes(path));
            path.ancestors().any(|above| matcher.is_match(above))
        })
    }

    /// Returns the requested layout of a dataset of `rank` axes. `is_flat` states whether its second axis is removed.
    ///
    /// # Errors
    /// [`MergeError::Object`] if a rule cannot be applied.
    pub fn of_dataset(&self, entry: &SchemaEntry, rank: usize, is_flat: bool) -> Result<AskedLayout> {
        if self.indexes.iter().any(|index| index.relies_on(&entry.path)) {
            return self.of_indexed(entry);
        }
        let axes = Axes { names: &self.names(entry, rank), rank, is_flat };
        let without_rules = self.without_rules(entry, axes)?;
        self.with_rules(without_rules, entry, axes)
    }

    /// Returns the layout of a dataset for which nothing is requested.
    fn usual(&self, entry: &SchemaEntry) -> AskedLayout {
        AskedLayout {
            policy: self.options.layout,
            chunk: AskedChunk::Policy,
            source: ChunkSource::Policy,
            unchunked: None,
            is_chunked: false,
            needs_chunks: self.needing_chunks.contains(&entry.path),
            filters: AskedFilters::of(self.options),
            rules: Vec::new(),
        }
    }

    /// Returns the layout of a dataset with a PyTables index, which keeps its chunks. Rules for its path are refused.
    fn of_indexed(&self, entry: &SchemaEntry) -> Result<AskedLayout> {
        let is_named = |rule: usize| self.matchers[rule].is_some() && self.applies(rule, entry);
        if (0..self.options.layout_rules.len()).any(is_named) {
            let object = display_path(&entry.path);
            let reason = "has a PyTables index, which relies on its chunks (--layout); leave the index out with \
                          `raddle merge --exclude '_i_*'`";
            return Err(MergeError::Object { object, reason: reason.to_owned() });
        }
        Ok(AskedLayout { policy: LayoutPolicy::Keep, needs_chunks: true, ..self.usual(entry) })
    }

    /// Returns the layout that the read pattern and `--chunk` request.
    fn without_rules(&self, entry: &SchemaEntry, axes: Axes<'_>) -> Result<AskedLayout> {
        let options = self.options;
        let mut asked = self.usual(entry);
        if options.layout != options.layout.without_time() {
            asked.chunk = self.grid(entry, axes.names)?;
            asked.source = if asked.asks_for_chunk() { ChunkSource::Grid } else { ChunkSource::Policy };
        }
        if options.layout == LayoutPolicy::Cmip7 {
            let role = self.cmip7.role(&entry.path);
            if role != Cmip7Role::Other {
                (asked.chunk, asked.source) = (AskedChunk::Cmip7(role), ChunkSource::Grid);
            }
        }
        let of_option = match &options.chunk {
            // A coordinate is read as a whole, and is tiny next to the variables that it describes.
            Some(Chunk::Named(_)) if self.is_coordinate(entry) => None,
            Some(chunk) => axes.applied(chunk),
            None => None,
        };
        if let Some(chunk) = of_option {
            (asked.chunk, asked.source) = (chunk, ChunkSource::Option);
        }
        Ok(asked)
    }

    /// Returns the layout that the layout rules request, of which later ones take precedence, on top of `first`.
    fn with_rules(&self, first: AskedLayout, entry: &SchemaEntry, axes: Axes<'_>) -> Result<AskedLayout> {
        let mut asked = first.clone();
        let (mut deciding, mut is_replaced) = (DecidingRules::default(), false);
        for (number, rule) in (0..).zip(&self.options.layout_rules) {
            if !self.applies(number as usize, entry) {
                continue;
            }
            let settings = rule.settings();
            if let Some(unchunked) = settings.unchunked {
                asked = AskedLayout { unchunked: Some((number, unchunked)), ..first.clone() };
                deciding = DecidingRules { unchunked: Some(number), ..DecidingRules::default() };
                continue;
            }
            let chunk = match &settings.chunk {
                None => None,
                Some(chunk) => match axes.applied(chunk) {
                    None if matches!((chunk, rule.objects()), (Chunk::Shape(_), RuleObjects::Matching(_))) => {
                        return Err(axes.other_rank(rule, entry));
                    }
                    chunk => chunk,
                },
            };
            asked.filters.set(settings, &mut is_replaced);
            deciding.set_filters(settings, number);
            if chunk.is_some() || asked.filters.needs_chunks(settings) {
                (asked.is_chunked, asked.unchunked, deciding.unchunked) = (true, None, None);
            }
            if let Some(chunk) = chunk {
                (asked.chunk, asked.source) = (chunk, ChunkSource::Rule(number));
                deciding.chunk = Some(number);
            }
        }
        asked.rules = deciding.numbers();
        Ok(asked)
    }

    /// Returns the axes of a gridded variable; the read pattern decides for variables without a time axis.
    fn grid(&self, entry: &SchemaEntry, names: &[Vec<Vec<u8>>]) -> Result<AskedChunk> {
        let Some(dimensions) = &self.dimensions else { return Ok(AskedChunk::Policy) };
        let roles: Vec<AxisRole> = names.iter().map(|names| dimensions.role(names)).collect();
        let with = |role: AxisRole| (0..roles.len()).filter(|&axis| roles[axis] == role).collect::<Vec<_>>();
        let (times, other_times) = (with(AxisRole::Time), with(AxisRole::OtherTime));
        let time = match (times.as_slice(), other_times.as_slice()) {
            ([time], _) | ([], [time]) => *time,
            ([], []) => return Ok(AskedChunk::Policy),
            (times, others) => {
                let several = if times.is_empty() { others } else { times };
                let axis_names = several.iter().filter_map(|&axis| names[axis].first()).map(|name| display_path(name));
                return Err(MergeError::Object {
                    object: display_path(&entry.path),
                    reason: format!(
                        "has several time axes ({}), and --for {} needs one; give the chunk shape by --layout or --chunk",
                        axis_names.collect::<Vec<_>>().join(", "),
                        self.options.layout.word()
                    ),
                });
            }
        };
        let places = (0..roles.len()).rev().filter(|&axis| axis != time && roles[axis] == AxisRole::Other);
        let horizontal: Vec<usize> = places.take(2).collect();
        let others = (0..roles.len()).filter(|axis| *axis != time && !horizontal.contains(axis)).collect();
        Ok(AskedChunk::Grid { time, others })
    }
}

/// Axes of a dataset, to which requested chunk shapes are applied.
#[derive(Clone, Copy)]
struct Axes<'a> {
    /// Names of each axis, if any option depends on them.
    names: &'a [Vec<Vec<u8>>],
    rank: usize,
    /// Whether the second axis is removed.
    is_flat: bool,
}

impl Axes<'_> {
    /// Returns the chunk shape for the dataset; `None` if it has a different number of axes, or none of the named
    /// dimensions.
    fn applied(&self, chunk: &Chunk) -> Option<AskedChunk> {
        match chunk {
            Chunk::Rows(rows) => Some(AskedChunk::Rows(*rows)),
            Chunk::Shape(shape) if self.is_flat && shape.len() == 1 => Some(AskedChunk::Shape(vec![shape[0], 1])),
            Chunk::Shape(shape) => (shape.len() == self.rank).then(|| AskedChunk::Shape(shape.clone())),
            Chunk::Named(sizes) => {
                let is_of = |name: &str, names: &[Vec<u8>]| names.iter().any(|known| is_named(known, name));
                let size =
                    |names: &Vec<Vec<u8>>| sizes.iter().find(|(name, _)| is_of(name, names)).map(|(_, size)| *size);
                let sizes: Vec<Option<u64>> = self.names.iter().map(size).collect();
                sizes.iter().any(Option::is_some).then_some(AskedChunk::Axes(sizes))
            }
        }
    }

    /// Returns the error for a rule whose chunk shape has a different number of axes.
    fn other_rank(&self, rule: &LayoutRule, entry: &SchemaEntry) -> MergeError {
        let rank = if self.is_flat { 1 } else { self.rank };
        let asked = match &rule.settings().chunk {
            Some(Chunk::Shape(shape)) => shape.len(),
            _ => 0,
        };
        MergeError::Object {
            object: display_path(&entry.path),
            reason: format!(
                "has {rank} dimension(s), and the chunk shape of --layout {:?} has {asked}; narrow the pattern, give sizes \
                 by name (chunk=time=1), or use --chunk, which applies to datasets of its number of dimensions",
                rule.to_string()
            ),
        }
    }
}
