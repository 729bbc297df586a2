//! Merging of many HDF5 files into one.

use crate::context::Context;
use crate::error::Error;
use crate::merge_index::{self, MergeIndex, Observers};
use crate::options::output::{check_output, refuse_replacing};
use crate::options::{
    ExecutionOptions, Inputs, KeyOptions, LayoutOptions, MergeIndexOptions, MergePreviewOptions, OutputOptions,
    PlacementOptions, SchemaOptions, SortOptions, StripeOptions,
};
use crate::preview::{self, MergePreview};
use crate::summary::{Input, Summary};
use crate::text::quantity;
use raddle_codec::{Compression, KnownFilter};
use raddle_core::machine::open_files;
use raddle_core::output::folder_of;
use raddle_core::output::publish::hidden_path;
use raddle_core::output::space::available_bytes;
use raddle_core::ranks::communicator::CommunicatorExt;
use raddle_idx::preview::{PreviewPlan, PreviewReport};
use raddle_merge::Link;
use raddle_merge::keys::DerivedSpec;
use raddle_merge::keys::derived::DerivedColumns;
use raddle_merge::options::{Empty, MergeOptions};
use raddle_merge::path_text;
use raddle_merge::plan::prediction::{Prediction, Sample, predict};
use raddle_merge::plan::{MergePlan, Route, Storage};
use raddle_merge::schema::join::{AttributePolicy, Join};
use raddle_merge::subset::tables::SelectedEvents;
use raddle_merge::write::parts::{Part, PartReport, merge_part};
use raddle_merge::{IoBackend, MergeContext, MergeError, MergeReport, Reading, TileObserver, published_path};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

/// Request to merge files.
///
/// Fields are the options of `raddle merge`. Unset options have the command's defaults.
///
/// ```
/// use raddle::options::LayoutOptions;
/// use raddle::{Context, MergeRequest};
/// # use raddle_testing::plain::make_columns;
/// # let folder = tempfile::tempdir()?;
/// # let (a, b, all) = (folder.path().join("a.h5"), folder.path().join("b.h5"), folder.path().join("all.h5"));
/// # make_columns(&a, &[("/rec/energy", &[1.0, 2.0])])?;
/// # make_columns(&b, &[("/rec/energy", &[3.0])])?;
///
/// let layout = LayoutOptions { compress: Some("zstd:3".parse()?), ..Default::default() };
/// let request = MergeRequest { layout, ..MergeRequest::new([a, b], all) };
/// let merged = request.plan(&Context::default())?.run(&Context::default())?;
/// assert_eq!(merged.expect("one process").report.inputs, 2);
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(default)]
pub struct MergeRequest {
    /// Files to merge.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub inputs: Inputs,
    /// Order of the inputs.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub sorting: SortOptions,
    /// The file to write.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub output: OutputOptions,
    /// Alignment of chunks.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub stripes: StripeOptions,
    /// Treatment of differences between inputs.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub schema: SchemaOptions,
    /// Chunks, compression and format.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub layout: LayoutOptions,
    /// Add partition keys: id columns of the group with one row per event, most significant first
    ///
    /// Every group that has columns with these names gets NAME.seq, NAME.seq_cnt and NAME.offsets, where NAME is the
    /// last of them. Existing keys of the inputs are replaced.
    #[cfg_attr(
        feature = "clap",
        arg(long, value_name = "COLUMNS", value_delimiter = ',', help_heading = "Partition keys")
    )]
    #[serde(with = "crate::options::text::commas")]
    pub keys: Vec<String>,
    /// Options for making keys.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub making: KeyOptions,
    /// Copies or links instead of concatenated values.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub placing: PlacementOptions,
    /// Preview of the output.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub preview: MergePreviewOptions,
    /// Options of the index of the output.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub indexing: MergeIndexOptions,
    /// Write only part I of N: for N processes, on any machines, that share the output's folder
    ///
    /// All parts must have the same inputs and options, and can run concurrently or one after the other. The part that
    /// finds all others done publishes the output, which is identical to that of a single process. An interrupted part
    /// resumes when it is run again.
    #[cfg_attr(feature = "clap", arg(long, value_name = "I/N", help_heading = "Running"))]
    #[serde(with = "crate::options::text::optional")]
    pub part: Option<Part>,
    /// Use of the machine.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub execution: ExecutionOptions,
}

impl MergeRequest {
    /// Creates a request with default options.
    pub fn new(inputs: impl Into<Inputs>, output: impl Into<PathBuf>) -> Self {
        let output = OutputOptions { output: output.into(), ..OutputOptions::default() };
        Self { inputs: inputs.into(), output, ..Self::default() }
    }

    /// Returns the options of the merge.
    ///
    /// # Errors
    /// If options conflict, a pattern is not a valid glob, or a file of options cannot be read.
    pub fn options(&self, default_jobs: usize) -> Result<MergeOptions, Error> {
        self.placing.check(&self.schema, (&self.layout, &self.stripes), !self.keys.is_empty())?;
        self.check_part()?;
        let mut options = MergeOptions::new(&self.output.output);
        self.output.apply(&mut options);
        self.stripes.apply(&mut options);
        self.schema.apply(&mut options)?;
        self.layout.apply(&mut options)?;
        if self.part.is_some() {
            // Parts do not know each other's addresses; a profile shared with other merges may request alignment.
            options.align = None;
        }
        if !self.keys.is_empty() {
            options.derived.push(DerivedSpec::Keys(self.making.spec(&self.keys, true)));
        }
        self.placing.apply(&mut options);
        if options.link.is_external() && !options.derived.is_empty() {
            return Err(Error::usage("an output of external links has no datasets to make keys for: leave out --keys"));
        }
        if options.empty == Empty::Null && !options.derived.is_empty() {
            return Err(Error::usage("--empty null leaves tables without columns to make keys for: leave out --keys"));
        }
        check_axis(&options)?;
        check_subset(&options)?;
        self.execution.apply(&mut options, default_jobs);
        Ok(options)
    }

    fn check_part(&self) -> Result<(), Error> {
        let refused = [
            (self.output.writing.unordered, "--part places chunks in their order: leave out --unordered"),
            (
                self.stripes.align.is_some(),
                "--part places chunks without knowing those of other parts: leave out --align",
            ),
        ];
        match refused.into_iter().find(|(is_requested, _)| self.part.is_some() && *is_requested) {
            Some((_, why)) => Err(Error::usage(why)),
            None => Ok(()),
        }
    }

    /// Collective. Plans the merge from the metadata of the inputs. Nothing is written.
    ///
    /// # Errors
    /// If options conflict, the output cannot be written, or inputs cannot be read or do not fit together.
    pub fn plan(&self, context: &Context<'_>) -> Result<PlannedMerge, Error> {
        self.plan_files(self.inputs.expand_collective(context.ranks)?, context)
    }

    /// Collective. Plans the merge of these files instead of those that the inputs name.
    ///
    /// # Errors
    /// As for [`MergeRequest::plan`].
    pub fn plan_files(&self, files: Vec<PathBuf>, context: &Context<'_>) -> Result<PlannedMerge, Error> {
        let options = context.agree_on_options(self.options(context.default_jobs))?;
        if self.part.is_some() && context.ranks.size() > 1 {
            return Err(Error::usage("--part is for independent processes, not for MPI ranks"));
        }
        let read = [self.inputs.list_files(), self.schema.conventions.files(), self.layout.files()].concat();
        context.on_first("look at the output", || refuse_replacing(&options.output, &read))?;
        let planned = plan_output(files, &self.sorting, options, (&self.preview, self.indexing), self.part, context)?;
        self.placing.check_planned((&self.layout, &self.stripes), planned.plan())?;
        Ok(planned)
    }
}

/// Refuses options that have no meaning together with a choice of the axis of concatenation.
pub(crate) fn check_axis(options: &MergeOptions) -> Result<(), Error> {
    let conventions = &options.conventions;
    let option = match (&conventions.tiles, &conventions.new_dim, conventions.axis.is_first()) {
        (Some(_), ..) => "--tiles",
        (None, Some(_), _) => "--new-dim",
        (None, None, false) => "--axis",
        (None, None, true) => return Ok(()),
    };
    let has_tiles = conventions.tiles.is_some();
    let gives_columns = !options.join.add_columns.is_empty() || options.join.attributes == AttributePolicy::Stack;
    let conflicts = [
        (!options.derived.is_empty(), "--keys needs tables whose rows are on the first axis"),
        (options.join.join == Join::Union, "--union copies datasets as they are"),
        (options.link.is_external(), "an output of external links concatenates nothing"),
        (has_tiles && gives_columns, "--add-column and --attributes stack make rows of inputs, which tiles are not"),
    ];
    match conflicts.into_iter().find(|(is_requested, _)| *is_requested) {
        Some((_, reason)) => Err(Error::usage(&format!("{reason}: leave out {option}"))),
        None => Ok(()),
    }
}

/// Refuses options that have no meaning together with a restriction to ranges of dimensions.
pub(crate) fn check_subset(options: &MergeOptions) -> Result<(), Error> {
    if options.subset.is_empty() {
        return Ok(());
    }
    let gives_columns = !options.join.add_columns.is_empty() || options.join.attributes == AttributePolicy::Stack;
    let conflicts = [
        (!options.derived.is_empty(), "--keys describes all rows of the tables"),
        (options.join.join == Join::Union, "--union copies datasets as they are"),
        (options.link != Link::No, "--link stores no values"),
        (gives_columns, "--add-column and --attributes stack make a row for every row of the inputs"),
    ];
    match conflicts.into_iter().find(|(is_requested, _)| *is_requested) {
        Some((_, reason)) => Err(Error::usage(&format!("{reason}: leave out --select"))),
        None => Ok(()),
    }
}

/// Collective. Plans a merge that writes a file.
pub(crate) fn plan_output(
    files: Vec<PathBuf>,
    sorting: &SortOptions,
    options: MergeOptions,
    (preview, indexing): (&MergePreviewOptions, MergeIndexOptions),
    part: Option<Part>,
    context: &Context<'_>,
) -> Result<PlannedMerge, Error> {
    // Checked before the scan, which may take minutes, and again when writing starts.
    context.on_first("look at the output", || check_output(&options.output, &files, options.force))?;
    let options = MergeOptions { output: published_path(&options.output), ..options };
    context.on_first("look at the preview", || preview::check(preview, &options, part.is_some()))?;
    context.on_first("look at the index", || merge_index::check(indexing.index, &options, part.is_some()))?;
    let (plan, files) = plan_inputs(files, sorting, &options, context)?;
    let preview = context.ranks.agree("plan the preview", MergePreview::of(preview, &plan))?;
    let index = indexing.index.then(|| MergeIndex::of(&plan));
    Ok(PlannedMerge { plan, files, preview, index, part })
}

/// Collective. Sorts the inputs and plans their merge.
pub(crate) fn plan_inputs(
    files: Vec<PathBuf>,
    sorting: &SortOptions,
    options: &MergeOptions,
    context: &Context<'_>,
) -> Result<(MergePlan, Vec<PathBuf>), Error> {
    let files = sorting.sort_collective(files, options, &context.watch, context.ranks)?;
    let failed = |error| of_merge_with(options, &error, &files);
    let plan = raddle_merge::plan_collective(&files, options, &context.watch, context.ranks).map_err(failed)?;
    options.selection.check_matched(context.ranks, &context.watch).map_err(failed)?;
    if options.selection.is_partial() && plan.schema.is_empty() {
        return Err(failed(MergeError::NothingLeft));
    }
    Ok((plan, files))
}

/// Planned merge or rechunk.
#[derive(Debug)]
pub struct PlannedMerge {
    plan: MergePlan,
    files: Vec<PathBuf>,
    preview: Option<MergePreview>,
    index: Option<MergeIndex>,
    part: Option<Part>,
}

/// Ways in which several ranks read the inputs and write the output.
#[derive(Debug, Default)]
pub struct RankIo<'a> {
    /// Interface through which chunks are written.
    pub backend: IoBackend<'a>,
    /// Division of the inputs among the ranks that read them.
    pub reading: Reading<'a>,
}

/// Finished merge.
#[derive(Debug, Serialize)]
pub struct FinishedMerge {
    /// Report of the merge.
    #[serde(flatten)]
    pub report: MergeReport,
    /// Number of events, if some were selected.
    #[serde(flatten)]
    pub events: Option<SelectedEvents>,
    /// Path of the index, if one was requested.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "path_text::of_some")]
    pub index: Option<PathBuf>,
    /// Report of the preview, if one was requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preview: Option<PreviewReport>,
}

impl PlannedMerge {
    /// Creates a planned merge without a preview.
    pub(crate) fn new(plan: MergePlan, files: Vec<PathBuf>) -> Self {
        Self { plan, files, preview: None, index: None, part: None }
    }

    /// Returns the plan of the merge.
    pub fn plan(&self) -> &MergePlan {
        &self.plan
    }

    /// Returns the plan of the preview, if one was requested.
    pub fn preview(&self) -> Option<&PreviewPlan> {
        self.preview.as_ref().map(MergePreview::plan)
    }

    /// Returns the part to write, if several processes share the merge.
    pub fn part(&self) -> Option<Part> {
        self.part
    }

    /// Returns the inputs of the plan.
    pub fn inputs(&self) -> Vec<Input> {
        Input::of(&self.plan)
    }

    /// Predicts size, time and memory by encoding a sample of the values.
    ///
    /// # Errors
    /// If the sample cannot be read.
    pub fn predict(&self, sample: Sample) -> Result<Prediction, Error> {
        predict(&self.plan, sample).map_err(|error| Error::of_merge(&error, &self.files))
    }

    /// Summarises the plan as plain data, with a prediction from a thorough sample.
    ///
    /// # Errors
    /// If the sample cannot be read.
    pub fn summary(&self) -> Result<Summary, Error> {
        Ok(Summary::of(&self.plan, Some(self.predict(Sample::THOROUGH)?)))
    }

    /// Returns warnings about deviations from the request that the output will have.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = layout_warnings(&self.plan);
        match self.plan.options.rows {
            Some(_) => warnings.extend(unselected(&self.plan.derived)),
            None => warnings.extend(key_warnings(&self.plan.derived)),
        }
        warnings.extend(self.preview.iter().flat_map(MergePreview::warnings));
        warnings
    }

    /// Returns a warning if the file system of the output lacks space for even the smallest predicted output. The file
    /// of an interrupted run counts as free space, because the output replaces or continues it. Parts are not warned
    /// about, because several processes share the space.
    pub fn space_warning(&self, predicted: &Prediction) -> Option<String> {
        let output = &self.plan.options.output;
        let folder = folder_of(output);
        let begun = std::fs::metadata(hidden_path(output)).map_or(0, |metadata| metadata.blocks() * 512);
        let available = available_bytes(folder).ok()?.saturating_add(begun);
        let (least, _) = predicted.bounds_len_bytes();
        (self.part.is_none() && least > available).then(|| {
            let (least, available) = (quantity::size(least), quantity::size(available));
            format!("the output will need at least {least}, and {available} are free in {}", folder.display())
        })
    }

    /// Collective. Writes the output. Returns the outcome on the first rank.
    ///
    /// # Errors
    /// If an input changed or cannot be read, or the output cannot be written; also if the request names a part, which
    /// [`PlannedMerge::run_part`] writes.
    pub fn run(self, context: &Context<'_>) -> Result<Option<FinishedMerge>, Error> {
        self.run_with(context, RankIo::default())
    }

    /// Collective. Like [`PlannedMerge::run`], with a choice of how ranks read and write.
    ///
    /// # Errors
    /// As for [`PlannedMerge::run`].
    pub fn run_with(mut self, context: &Context<'_>, io: RankIo<'_>) -> Result<Option<FinishedMerge>, Error> {
        if let Some(part) = self.part {
            return Err(Error::usage(&format!("--part {part}: a part is written on its own (run_part)")));
        }
        if let Some(preview) = &mut self.preview {
            context.on_first("begin the preview", || preview.begin(&self.plan.options))?;
        }
        let preview = self.preview.iter().map(|preview| preview as &dyn TileObserver);
        let observers: Vec<_> = preview.chain(self.index.iter().map(|index| index as &dyn TileObserver)).collect();
        let observers = Observers(observers);
        let tile_observer = (!observers.0.is_empty()).then_some(&observers as &dyn TileObserver);
        let through = MergeContext { io: io.backend, reading: io.reading, tile_observer };
        let merged = raddle_merge::merge_collective(&self.plan, &context.watch, context.ranks, through);
        let Some(report) = merged.map_err(|error| of_merge_with(&self.plan.options, &error, &self.files))? else {
            return Ok(None);
        };
        let preview = self.preview.and_then(MergePreview::into_report);
        let events = self.plan.options.rows.as_ref().map(|rows| rows.events);
        let index = self.index.as_ref().map(MergeIndex::path);
        Ok(Some(FinishedMerge { report, events, index, preview }))
    }

    /// Writes the requested part of the output; `None` if the request does not name a part.
    ///
    /// # Errors
    /// As for [`PlannedMerge::run`], or if another part has other inputs or options.
    pub fn run_part(self, context: &Context<'_>) -> Result<Option<PartReport>, Error> {
        let Some(part) = self.part else { return Ok(None) };
        let (files, options) = (self.files, self.plan.options.clone());
        let written = merge_part(self.plan, part, &context.watch).map(Some);
        written.map_err(|error| of_merge_with(&options, &error, &files))
    }
}

/// Converts the error of a merge with these options.
fn of_merge_with(options: &MergeOptions, error: &MergeError, files: &[PathBuf]) -> Error {
    let error = Error::of_merge(error, files);
    // A union keeps the chunks of its inputs.
    if options.decode_moved { error } else { error.without_option("--chunk") }
}

/// Returns warnings about filters that the output cannot keep, and about filters or inputs that its readers may be
/// unable to use.
pub fn layout_warnings(plan: &MergePlan) -> Vec<String> {
    let mut warnings = lost_filters(plan);
    warnings.extend(too_many_sources(plan, open_files().limit));
    // Readers of the inputs have the filters that are kept.
    let asked = plan.columns.iter().filter(|planned| !planned.layout.keeps_filters);
    let written = asked.filter_map(|planned| match &planned.route {
        Route::Encoded { encoder, .. } => encoder.compression().map(Compression::known_filter),
        _ => None,
    });
    let mut requirements: Vec<String> = Vec::new();
    for requirement in written.filter_map(KnownFilter::requirement) {
        if !requirements.contains(&requirement) {
            requirements.push(requirement);
        }
    }
    warnings.extend(requirements);
    let unused = plan.columns.iter().zip(&plan.schema.columns).filter(|(planned, _)| planned.layout.has_unused_filters);
    let unused: Vec<String> = unused.map(|(_, column)| plan.schema.path_of(column)).collect();
    if !unused.is_empty() {
        let some = if unused.len() == 1 { "holds" } else { "hold" };
        warnings.push(format!(
            "{} {some} values of variable length, whose filters stay those of the inputs: filters of --layout have no effect",
            names(&unused)
        ));
    }
    warnings
}

/// Returns a warning if virtual datasets map more inputs than a process may open.
fn too_many_sources(plan: &MergePlan, limit: Option<u64>) -> Option<String> {
    /// Number of files that a reader has open for other purposes, generously.
    const OTHERS: u64 = 32;
    let has_virtual = plan.columns.iter().any(|planned| matches!(planned.route, Route::Linked));
    let inputs = plan.inputs.len() as u64;
    let limit = limit.filter(|&limit| has_virtual && inputs + OTHERS > limit)?;
    let (inputs, limit) = (quantity::count(inputs), quantity::count(limit));
    Some(format!(
        "a read of all rows opens all {inputs} inputs, and a process can open {limit} files here (ulimit -n): HDF5 would \
         show fill values for the others, without an error"
    ))
}

/// Returns warnings about datasets that were to keep filters but cannot. raddle cannot write the filters, and the chunks
/// cannot be moved as stored: they are not aligned with the rows of the inputs, other chunks were requested, or the
/// values point into their file.
fn lost_filters(plan: &MergePlan) -> Vec<String> {
    let mut lost = BTreeMap::new();
    let columns = plan.columns.iter().zip(&plan.schema.columns);
    for (planned, column) in columns.filter(|(planned, _)| planned.layout.keeps_filters) {
        let is_file_local = column.is_file_local() && matches!(planned.storage, Storage::Chunked(_));
        if !is_file_local && !matches!(planned.route, Route::Encoded { .. }) {
            continue;
        }
        let is_kept = |id: u16| planned.filters.iter().any(|filter| filter.id == id);
        // Without the filters that do not compress, the user asked for it.
        let is_lost = |id: u16| !is_kept(id) && KnownFilter::from_id(id).is_none_or(KnownFilter::compresses);
        for filter in column.model().filters.iter().filter(|filter| is_lost(filter.id)) {
            *lost.entry((is_file_local, filter.id)).or_insert(0_u64) += 1;
        }
    }
    let warning = |((is_file_local, id), datasets)| {
        let name = KnownFilter::from_id(id).map_or_else(|| format!("filter {id}"), |filter| filter.name().to_owned());
        let count = quantity::counted(datasets, "dataset");
        if is_file_local {
            return format!(
                "{count} of strings, sequences or references cannot keep {name}: these are written with deflate or \
                 without compression"
            );
        }
        format!(
            "{count} cannot keep {name}, which raddle does not write: chunks that cannot be moved as stored are deflated"
        )
    };
    lost.into_iter().map(warning).collect()
}

/// Maximum number of groups named in a warning.
const NAMES_IN_WARNING: usize = 5;

/// Returns warnings about derived columns, to print before the columns are written.
pub fn key_warnings(derived: &DerivedColumns) -> Vec<String> {
    let mut warnings = Vec::new();
    if derived.replaced > 0 {
        warnings.push(format!("{} replaced", quantity::counted(derived.replaced, "dataset")));
    }
    if !derived.without.is_empty() {
        let some = if derived.without.len() == 1 { "group lacks" } else { "groups lack" };
        let count = quantity::count(derived.without.len() as u64);
        warnings.push(format!("{count} {some} ids and got no keys: {}", names(&derived.without)));
    }
    for pattern in &derived.unmatched_skips {
        warnings.push(format!("--key-skip {pattern}: skips no group; patterns match whole paths, such as '/rec.*'"));
    }
    for fault in &derived.descending {
        warnings.push(format!(
            "{}: row {} belongs to {}, so it has no counts and offsets",
            fault.group,
            quantity::count(fault.first_row),
            fault.kind.words()
        ));
    }
    warnings
}

/// Returns a warning about groups whose datasets a selection of events copies whole.
fn unselected(derived: &DerivedColumns) -> Option<String> {
    let copied =
        if derived.without.len() == 1 { "has no key and is copied whole" } else { "have no key and are copied whole" };
    (!derived.without.is_empty()).then(|| format!("{} {copied}", names(&derived.without)))
}

/// Formats `/a, /b and 3 more`.
fn names(groups: &[String]) -> String {
    let listed: Vec<&str> = groups.iter().take(NAMES_IN_WARNING).map(String::as_str).collect();
    match groups.len().checked_sub(NAMES_IN_WARNING) {
        Some(more @ 1..) => format!("{} and {} more", listed.join(", "), quantity::count(more as u64)),
        _ => listed.join(", "),
    }
}
