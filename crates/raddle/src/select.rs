//! Selection of events: a file with the rows of all tables that belong to events that satisfy conditions.
//!
//! The events are found by a search, and the output is a merge of a single input that is restricted to their rows, with
//! partition keys derived again.

use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::merge::{PlannedMerge, plan_output};
use crate::options::{
    ExecutionOptions, KeyOptions, LayoutOptions, MergeIndexOptions, MergePreviewOptions, OutputOptions, SortOptions,
    StripeOptions,
};
use crate::text::quantity;
use raddle_core::plan::Segments;
use raddle_core::ranks::communicator::CommunicatorExt;
use raddle_hdf5::open_file::OpenFile;
use raddle_merge::append::redo::settle;
use raddle_merge::inputs::selection::Selection;
use raddle_merge::keys::{DerivedSpec, KeyScope, KeySpec};
use raddle_merge::options::MergeOptions;
use raddle_merge::subset::tables::{SelectedEvents, SelectedRows, TableSelection};
use raddle_merge::verify::digests::stored::records_of;
use raddle_query::events::{SearchContext, events_of, key_of, keyed_tables, row_count, rows_of};
use raddle_query::index::FoundIndex;
use raddle_query::{EventSet, Index, QueryError, Table, TableCondition, Values};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Divisor of the memory: the runs of the selected rows may take the quotient.
const RUNS_SHARE: u64 = 2;

/// Request to write the events of a file that satisfy conditions.
///
/// Fields are the options of `raddle select`.
///
/// ```no_run
/// use raddle::{Context, SelectRequest};
///
/// let context = Context::default();
/// let request = SelectRequest::new("all.h5", "skim.h5", ["rec.slc: calE > 2".parse()?]);
/// request.plan(&context)?.run(&context)?;
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(default)]
pub struct SelectRequest {
    /// File with partition keys
    #[cfg_attr(feature = "clap", arg(value_name = "FILE"))]
    #[serde(skip)]
    pub file: PathBuf,
    /// Keep events that have a row in TABLE that satisfies CONDITION; may be given several times
    ///
    /// 'rec.slc: calE > 2 & run == 1234' names the path of a group, and compares its datasets with numbers, or strings
    /// in quotes, by <, <=, ==, !=, >= and >. Comparisons are combined by & (and), | (or), ~ (not) and parentheses. An
    /// event must satisfy all conditions given.
    #[cfg_attr(
        feature = "clap",
        arg(
            id = "where",
            long = "where",
            value_name = "TABLE: CONDITION",
            required = true,
            help_heading = "Selection"
        )
    )]
    #[serde(rename = "where", with = "crate::options::text::list")]
    pub conditions: Vec<TableCondition>,
    /// Values that conditions compare, where attributes of netCDF variables define other values than those stored; without
    /// this option, such variables are refused
    ///
    /// The rows of the output are those of FILE, packed or not.
    #[cfg_attr(feature = "clap", arg(long, value_enum, value_name = "WHICH", help_heading = "Selection"))]
    pub values: Option<Values>,
    /// Name of the partition key: evt for datasets evt.seq [default: the only key of the first table]
    #[cfg_attr(feature = "clap", arg(long, value_name = "NAME", help_heading = "Selection"))]
    pub key: Option<String>,
    /// Only include objects whose path matches, and the groups that lead to them; may be given several times
    #[cfg_attr(feature = "clap", arg(long, value_name = "GLOB", help_heading = "Selection"))]
    #[serde(with = "crate::options::text::list")]
    pub include: Vec<String>,
    /// Exclude objects whose path matches, with everything in them; may be given several times
    #[cfg_attr(feature = "clap", arg(long, value_name = "GLOB", help_heading = "Selection"))]
    #[serde(with = "crate::options::text::list")]
    pub exclude: Vec<String>,
    /// Id columns of the partition keys, most significant first [default: as recorded in FILE]
    #[cfg_attr(
        feature = "clap",
        arg(long, value_name = "COLUMNS", value_delimiter = ',', help_heading = "Partition keys")
    )]
    #[serde(with = "crate::options::text::commas")]
    pub keys: Vec<String>,
    /// How to make keys, with --keys.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub making: KeyOptions,
    /// The file to write.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub output: OutputOptions,
    /// Alignment of chunks.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub stripes: StripeOptions,
    /// Chunks, compression and format.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub layout: LayoutOptions,
    /// Preview of the output.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub preview: MergePreviewOptions,
    /// Index of the output.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub indexing: MergeIndexOptions,
    /// Use of the machine.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub execution: ExecutionOptions,
}

impl SelectRequest {
    /// Creates a request with default options.
    pub fn new(
        file: impl Into<PathBuf>,
        output: impl Into<PathBuf>,
        conditions: impl IntoIterator<Item = TableCondition>,
    ) -> Self {
        let output = OutputOptions { output: output.into(), ..OutputOptions::default() };
        Self { file: file.into(), output, conditions: conditions.into_iter().collect(), ..Self::default() }
    }

    /// Collective. Finds the events and plans the output. Reads keys and the columns of conditions; nothing is written.
    ///
    /// # Errors
    /// If options conflict, a table, column or key does not exist, the file cannot be read, or the output cannot be
    /// written.
    pub fn plan(&self, context: &Context<'_>) -> Result<PlannedMerge, Error> {
        let mut options = MergeOptions::new(&self.output.output);
        self.output.apply(&mut options);
        self.stripes.apply(&mut options);
        context.agree_on_options(self.layout.apply(&mut options))?;
        options.selection =
            Selection::new(&self.include, &self.exclude, &[]).map_err(|error| Error::of_merge(&error, &[]))?;
        self.execution.apply(&mut options, context.default_jobs);
        let of_file = |error| Error::of_merge(&error, std::slice::from_ref(&self.file));
        context.on_first("complete an interrupted append", || settle(&self.file).map(drop).map_err(of_file))?;
        let found = OpenFile::open(&self.file, Some(1)).map_err(|error| Error::of_file(&error)).and_then(|file| {
            let (spec, derived) = self.key(&file, &options)?;
            let selection = select(&file, (&self.conditions, self.values), &spec, &options, context)?;
            Ok((selection, derived))
        });
        let (selection, derived) = context.ranks.agree("select events", found)?;
        restrict(&mut options, selection);
        options.derived = derived;
        plan_output(
            vec![self.file.clone()],
            &SortOptions::default(),
            options,
            (&self.preview, self.indexing),
            None,
            context,
        )
    }

    /// Returns the specification of the key of the events, and those of all columns to derive: this key first, then the
    /// others that the file records.
    fn key(&self, file: &OpenFile, options: &MergeOptions) -> Result<(KeySpec, Vec<DerivedSpec>), Error> {
        let Some(first) = self.conditions.first() else {
            return Err(Error::usage("no condition: give one with --where, such as 'rec.slc: calE > 2'"));
        };
        let of_table = Table::of(file, &first.table).and_then(|table| key_of(&table, self.key.as_deref()));
        let key = of_table.map_err(|error| Error::of_query(&error))?;
        let records = records_of(&self.file, options)
            .map_err(|error| Error::of_merge(&error, std::slice::from_ref(&self.file)))?;
        let mut derived = records.made;
        if !self.keys.is_empty() {
            let spec = self.making.spec(&self.keys, true);
            if name_of(&spec) != key {
                let what = format!("--keys makes {}.seq, and the events are those of {key}.seq", name_of(&spec));
                return Err(Error::usage(&what));
            }
            derived.retain(|known| named_key(known, &key).is_none());
            derived.insert(0, DerivedSpec::Keys(spec));
        }
        derived.iter_mut().for_each(DerivedSpec::allow_replacing);
        let spec = derived.iter().find_map(|spec| named_key(spec, &key)).cloned().ok_or_else(|| {
            let what = format!("{} does not record how {key}.seq was made", self.file.display());
            Error::usage(&what)
                .hint("name its id columns with --keys, such as --keys /spill/run,/spill/subrun,/spill/evt")
        })?;
        let of_inputs = derived.iter().find_map(|spec| match spec {
            DerivedSpec::Keys(spec) if spec.scope == KeyScope::Input => Some(name_of(spec)),
            _ => None,
        });
        if let Some(name) = of_inputs {
            let what =
                format!("{}: the ids of {name}.seq are unique only within the inputs of the file", self.file.display());
            let advice =
                "one output cannot keep them apart; make the keys again with more id columns (raddle keys add)";
            return Err(Error::usage(&what).hint(advice));
        }
        // Verification expects the key of the events to be the first.
        derived.sort_by_key(|known| named_key(known, &key).is_none());
        Ok((spec, derived))
    }
}

/// Returns the specification in `spec` of the key `name`; `None` if `spec` makes something else.
fn named_key<'s>(spec: &'s DerivedSpec, name: &str) -> Option<&'s KeySpec> {
    match spec {
        DerivedSpec::Keys(spec) if name_of(spec) == name => Some(spec),
        _ => None,
    }
}

/// Returns the name of the key that a specification makes.
fn name_of(spec: &KeySpec) -> &str {
    spec.columns.last().map_or("", |column| column.rsplit('/').next().unwrap_or(column))
}

/// Restricts the rows of a merge. Their runs take a part of its memory.
pub(crate) fn restrict(options: &mut MergeOptions, selection: TableSelection) {
    options.memory_limit_bytes = options.memory_limit_bytes.saturating_sub(selection.len_bytes());
    options.rows = Some(Arc::new(selection));
}

/// Returns the rows of all tables of a file that belong to events that satisfy conditions on some values.
///
/// # Errors
/// If the file cannot be read, or the runs of rows need more than a part of the memory.
fn select(
    file: &OpenFile,
    (conditions, values): (&[TableCondition], Option<Values>),
    spec: &KeySpec,
    options: &MergeOptions,
    context: &Context<'_>,
) -> Result<TableSelection, Error> {
    let key = name_of(spec);
    let failed = |error: QueryError| Error::of_query(&error);
    let index = match Index::find(file).map_err(failed)? {
        FoundIndex::Usable(index) => Some(index),
        FoundIndex::Stale if context.leads() => {
            let path = Index::default_path(file.path());
            context.warn(format!("{} was written for a different state of the file, and is not used", path.display()));
            None
        }
        FoundIndex::Stale | FoundIndex::Missing => None,
    };
    let running = SearchContext { threads: options.jobs, cancel: context.watch.cancel };
    let mut events: Option<EventSet> = None;
    for condition in conditions {
        let table = Table::of(file, &condition.table).map_err(failed)?.with_values(values);
        let found =
            events_of(&table, key, Some(&condition.condition), None, index.as_ref(), running).map_err(failed)?;
        events = Some(events.map_or_else(|| found.clone(), |known| known.intersection(&found)));
    }
    let events = events.unwrap_or_default();
    let mut selection = TableSelection {
        input: Some(file.identity()),
        conditions: conditions.iter().map(ToString::to_string).collect(),
        values: values.map(|values| values.to_string()),
        ..TableSelection::default()
    };
    for table in keyed_tables(file, key).map_err(failed)? {
        let of = row_count(&table, key).map_err(failed)?;
        let taken = rows_of(&table, key, &events, None, running).map_err(failed)?;
        let runs = Segments::of_rows(0, taken.runs());
        selection.tables.insert(table.path().as_bytes().to_vec(), SelectedRows { of, runs });
        if selection.len_bytes() > options.memory_limit_bytes / RUNS_SHARE {
            return Err(too_many_runs(table.path(), &selection, options.memory_limit_bytes));
        }
    }
    let group = spec.columns.first().and_then(|column| column.rsplit_once('/')).map_or("/", |(group, _)| group);
    let of = selection.tables.get(group.as_bytes()).map_or(0, |rows| rows.of);
    selection.events = SelectedEvents { selected: events.count(), of };
    Ok(selection)
}

/// Returns the selection that produced the file `output` from `input`; `None` if the file records none.
pub(crate) fn recorded_selection(
    output: &Path,
    input: &Path,
    options: &MergeOptions,
    context: &Context<'_>,
) -> Result<Option<TableSelection>, Error> {
    let of_output = |error| Error::of_merge(&error, &[output.to_path_buf()]);
    let records = records_of(output, options).map_err(of_output)?;
    let (conditions, values) = match records.remembered {
        Some(remembered) => (remembered.options.conditions, remembered.options.values),
        None => Default::default(),
    };
    // The key of the events comes first.
    let spec = records.made.iter().find_map(|spec| match spec {
        DerivedSpec::Keys(spec) => Some(spec),
        _ => None,
    });
    let Some(spec) = spec.filter(|_| !conditions.is_empty()) else { return Ok(None) };
    let parsed = conditions.iter().map(|text| text.parse()).collect::<Result<Vec<TableCondition>, QueryError>>();
    let parsed = parsed.map_err(|error| Error::of_query(&error))?;
    let values = values.map(|word| word.parse()).transpose().map_err(|error| Error::of_query(&error))?;
    settle(input).map_err(|error| Error::of_merge(&error, &[input.to_path_buf()]))?;
    let input = OpenFile::open(input, Some(1)).map_err(|error| Error::of_file(&error))?;
    select(&input, (&parsed, values), spec, options, context).map(Some)
}

/// Refuses a selection whose runs of rows, up to those of `table`, need too much memory.
fn too_many_runs(table: &str, selection: &TableSelection, limit_bytes: u64) -> Error {
    let (runs, needed) = (quantity::count(selection.run_count()), quantity::size(selection.len_bytes()));
    let limit = quantity::size(limit_bytes);
    let what = format!(
        "{table}: with this table, the selected rows form {runs} runs, which need {needed} of the {limit} of memory; \
         they may take half of it"
    );
    Error::new(Exit::Limit, &what).hint("raise --memory")
}
