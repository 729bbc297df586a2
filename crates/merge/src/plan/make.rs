//! Planning: scans and joins the inputs, then plans each column of the joined schema.
//!
//! Storage of a column is planned in `column`, growth of a column in [`crate::append`]. Invariant: the engine's arrays
//! and the columns they belong to are added together and in the same order.

use super::flat;
use super::growable::Growable;
use super::growth::Growth;
use super::new_columns::table_rows;
use super::null::make_null;
use super::{MergePlan, PlannedInput, Planner, sizes};
use crate::append::redo;
use crate::conventions::{self, Choice, Completion, ConventionOptions, anndata};
use crate::error::{BadInput, MergeError, Result};
use crate::keys::{self, DerivedSpec, derived::DerivedColumns};
use crate::options::Link;
use crate::options::{Empty, MergeOptions, Watch};
use crate::plan::alignment;
use crate::plan::asked_layout::AskedLayouts;
use crate::plan::fill_references;
use crate::plan::layout::LayoutPolicy;
use crate::plan::links::{self, RootObjects};
use crate::plan::memory::ReaderMemory;
use crate::rules::pick::SelectedCounts;
use crate::rules::{
    self,
    check::{RecordOrder, RecordTrims},
    packed::Ranges,
    repack, user,
};
use crate::scan::dimension_scales;
use crate::scan::{self, ScannedFile, ScannedInput};
use crate::schema::ColumnIndex;
use crate::schema::join::{Difference, DifferenceKind, Join, JoinResult, Joiner};
use crate::schema::parent_path;
use crate::subset;
use crate::subset::selected::SelectedElements;
use crate::verify::digests::{Records, StoredDigests};
use crate::verify::record::StoredRecord;
use crate::write::counting;
use raddle_core::plan::{Plan, SegmentLists};
use raddle_core::ranks::communicator::{Communicator, CommunicatorExt, SingleProcess};
use raddle_core::report::progress::{Event, Severity, Stage};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Instant;

/// Operation named in errors on other ranks.
const PLANNING: &str = "plan the merge";

/// State of the output when a run begins.
#[derive(Clone)]
pub(crate) enum OutputState {
    /// The output does not exist.
    New,
    /// The output is the only input, which is rewritten; with its stored digests.
    Rewritten(Option<StoredDigests>),
    /// The output is the first input, to which the others are appended; with its stored digests.
    Grows(Option<StoredDigests>),
}

/// Scans `inputs` and plans their merge.
///
/// # Errors
/// [`MergeError::BadInputs`] with all inputs that cannot be read, [`MergeError::Differences`] with all differences that
/// the requested join does not bridge, [`MergeError::Object`] for a dataset that cannot be written as requested.
pub fn plan(inputs: &[PathBuf], options: &MergeOptions, watch: &Watch<'_>) -> Result<MergePlan> {
    plan_from(inputs, OutputState::New, options, watch, &SingleProcess)
}

/// Collective. Like [`plan`], but each input is scanned by one of the `ranks`; all of them get the same plan, or an
/// error.
///
/// # Errors
/// As [`plan`]; also [`RankFailed`](raddle_core::CoreError::RankFailed) if only another rank met an error.
pub fn plan_collective(
    inputs: &[PathBuf],
    options: &MergeOptions,
    watch: &Watch<'_>,
    ranks: &dyn Communicator,
) -> Result<MergePlan> {
    plan_from(inputs, OutputState::New, options, watch, ranks)
}

/// Collective. Like [`plan_collective`], for an output that may already exist. Plans again if the records of the inputs
/// turn out to be in a different order or to overlap.
pub(crate) fn plan_from(
    inputs: &[PathBuf],
    beginning: OutputState,
    options: &MergeOptions,
    watch: &Watch<'_>,
    ranks: &dyn Communicator,
) -> Result<MergePlan> {
    let local_inputs = inputs.iter().filter(|_| ranks.rank() == 0);
    let settled = local_inputs.map(PathBuf::as_path).try_for_each(|input| redo::settle(input).map(|_| ()));
    ranks.agree("complete an interrupted append", settled)?;
    let (mut inputs, mut taken) = (inputs.to_vec(), RecordTrims::default());
    let mut is_ordered = false;
    let (mut counts, mut ranges) = (SelectedCounts::new(), Ranges::new());
    let mut selected: Option<SelectedElements> = None;
    loop {
        let mut found = FoundInputs::new(options, inputs.len());
        if let OutputState::Grows(_) = &beginning {
            found.joiner = found.joiner.growing(&options.derived);
        }
        (found.taken, found.counts, found.ranges) = (taken.clone(), counts.clone(), ranges.clone());
        found.selected.clone_from(&selected);
        let take = |place: usize, scanned| found.add(place, inputs[place].clone(), scanned);
        found.skipped = scan::scan(&inputs, options, watch, ranks, take)?;
        let mut plan = plan_found(found, beginning.clone(), options, watch, ranks)?;
        if !plan.uncounted.is_empty() {
            counts.extend(ranks.agree(PLANNING, counting::count(&plan, &plan.uncounted, watch))?);
            taken = RecordTrims::default();
            continue;
        }
        if !plan.unranged.is_empty() {
            ranges.extend(ranks.agree(PLANNING, repack::ranges(&plan, &plan.unranged, watch))?);
            taken = RecordTrims::default();
            continue;
        }
        let order = match &selected {
            None => ranks.agree(PLANNING, rules::check::check(&plan, watch))?,
            // Values were checked, and records ordered, before the output was restricted.
            Some(_) => RecordOrder::Kept,
        };
        match order {
            RecordOrder::Kept if selected.is_none() && !options.subset.is_empty() => {
                ranks.agree(PLANNING, rules::overlaps::check(&plan, watch, ranks))?;
                selected = Some(ranks.agree(PLANNING, subset::resolve::resolve(&plan))?);
            }
            RecordOrder::Kept => {
                plan.warnings.extend(ranks.agree(PLANNING, anndata::repeated(&plan, watch))?);
                if ranks.rank() == 0 {
                    let event = |text| Event::Message { severity: Severity::Warning, text };
                    repack::describe(&plan).into_iter().for_each(|text| watch.observer.event(&event(text)));
                }
                ranks.agree(PLANNING, rules::overlaps::check(&plan, watch, ranks))?;
                plan.alignment = alignment::decide(&plan, ranks)?;
                return Ok(plan);
            }
            RecordOrder::Other(order, coordinate) if !is_ordered => {
                is_ordered = true;
                taken = RecordTrims::default();
                let by_record = order.iter().map(|&input| plan.inputs[input as usize].path.clone());
                inputs = by_record.chain(plan.skipped.iter().map(|bad| bad.path.clone())).collect();
                if ranks.rank() == 0 {
                    let text = format!("inputs are put in the order of {coordinate}");
                    watch.observer.event(&Event::Message { severity: Severity::Warning, text });
                }
            }
            RecordOrder::Trimmed(trims) => taken = trims,
            RecordOrder::Other(_, coordinate) => {
                let reason = "does not order the inputs in a way that all coordinates agree on".to_owned();
                return Err(MergeError::Object { object: coordinate, reason });
            }
        }
    }
}

/// Inputs that have been scanned and joined, before planning.
pub(crate) struct FoundInputs {
    started: Instant,
    joiner: Joiner,
    /// AnnData inputs, which are not joined path by path.
    anndata: anndata::Files,
    planned: Vec<PlannedInput>,
    /// Number of each planned input in the caller's list, in which skipped inputs are counted too.
    places: Vec<u32>,
    skipped: Vec<BadInput>,
    chunk_count: u64,
    /// Wall time of opening all inputs.
    open_s: f64,
    link: Link,
    /// Link targets, if each object in a root group gets a link.
    objects: Vec<RootObjects>,
    /// Records taken from each input, if inputs overlap.
    taken: RecordTrims,
    /// Counts of elements that are picked.
    counts: SelectedCounts,
    /// Ranges of values that are repacked.
    ranges: Ranges,
    /// Elements to which the output is restricted, if they are known.
    selected: Option<SelectedElements>,
    /// Records in the inputs about the merges that wrote them.
    remembered: Option<StoredRecord>,
    /// Datasets that those merges added to the inputs.
    recorded_specs: Vec<DerivedSpec>,
}

impl FoundInputs {
    /// Creates an empty set that expects `expected` inputs.
    pub(crate) fn new(options: &MergeOptions, expected: usize) -> Self {
        let guards_meaning = options.conventions.convention != Some(Choice::None);
        let joiner = Joiner::new(options.join.clone(), guards_meaning, expected);
        let has_some_rows = options.rows.is_some() || !options.subset.is_empty();
        Self {
            started: Instant::now(),
            joiner: if has_some_rows { joiner.with_some_rows() } else { joiner },
            anndata: anndata::Files::default(),
            planned: Vec::with_capacity(expected),
            places: Vec::with_capacity(expected),
            skipped: Vec::new(),
            chunk_count: 0,
            open_s: 0.0,
            link: options.link,
            objects: Vec::new(),
            taken: RecordTrims::default(),
            counts: SelectedCounts::new(),
            ranges: Ranges::new(),
            selected: None,
            remembered: None,
            recorded_specs: Vec::new(),
        }
    }

    /// Adds an input, number `place` of the caller's list. Inputs must be added in list order.
    pub(crate) fn add(&mut self, place: usize, path: PathBuf, scanned: ScannedInput) {
        let ScannedInput { paths, entries, file } = scanned;
        let ScannedFile { identity, encoding, userblock_len_bytes, chunk_count, recognised, records, open_s } = file;
        let Records { remembered, made: specs } = records;
        self.recorded_specs
            .extend(specs.into_iter().filter(|spec| !self.recorded_specs.contains(spec)).collect::<Vec<_>>());
        self.remembered = match (self.remembered.take(), remembered) {
            (Some(known), Some(other)) if known != other => Some(known.of_parts().united(&other.of_parts())),
            (known, other) => known.or(other),
        };
        self.places.push(place as u32);
        self.planned.push(PlannedInput { path, identity, encoding, userblock_len_bytes });
        self.chunk_count += chunk_count;
        self.open_s += open_s;
        match self.link {
            Link::External => return,
            Link::ExternalObjects => return self.objects.push(RootObjects::of(&paths, &entries)),
            Link::No | Link::Virtual => {}
        }
        if recognised.choice == Some(Choice::Anndata) {
            self.joiner.add(&paths, Vec::new(), &recognised);
            self.anndata.add(paths, entries);
        } else {
            self.joiner.add(&paths, entries, &recognised);
        }
    }
}

/// Collective. Plans the merge of scanned inputs; like [`plan_from`], with the same result on every rank.
pub(crate) fn plan_found(
    found: FoundInputs,
    beginning: OutputState,
    options: &MergeOptions,
    watch: &Watch<'_>,
    ranks: &dyn Communicator,
) -> Result<MergePlan> {
    let mut plan = ranks.agree(PLANNING, plan_read(found, beginning, options, watch))?;
    keys::attach::attach(&mut plan, watch, ranks)?;
    ranks.agree(PLANNING, check_layouts(&plan))?;
    ranks.agree(PLANNING, plan.check_output_len())?;
    ranks.agree(PLANNING, ReaderMemory::of(&plan).fitting_jobs(&plan, 1, 0))?;
    watch.observer.event(&Event::StageFinished { stage: Stage::Plan, elapsed_s: plan.elapsed_s - plan.scan_s });
    Ok(plan)
}

/// Refuses layout options of a new file that have no effect.
fn check_layouts(plan: &MergePlan) -> Result<()> {
    match plan.growth.is_some() || !plan.options.refuses_unused_layouts {
        true => Ok(()),
        false => AskedLayouts::new(&plan.options, &plan.schema)?.check(&plan.schema),
    }
}

/// Plans the columns that are read from the inputs, without the added ones.
fn plan_read(
    found: FoundInputs,
    beginning: OutputState,
    options: &MergeOptions,
    watch: &Watch<'_>,
) -> Result<MergePlan> {
    let FoundInputs {
        started,
        joiner,
        anndata,
        planned,
        places,
        skipped,
        chunk_count: input_chunk_count,
        open_s,
        objects,
        taken,
        counts,
        ranges,
        selected,
        remembered,
        recorded_specs,
        ..
    } = found;
    let scan_s = started.elapsed().as_secs_f64();
    watch.observer.event(&Event::StageStarted { stage: Stage::Plan, total_bytes: None });
    let paths: Vec<PathBuf> = planned.iter().map(|input| input.path.clone()).collect();
    let link_names = match options.link {
        Link::No => Vec::new(),
        _ => links::names(&options.output, paths.iter().map(PathBuf::as_path), options.link_paths)?,
    };
    let mut joined = match options.link {
        Link::External => JoinResult { schema: links::external_schema(&paths, &link_names), ..JoinResult::default() },
        Link::ExternalObjects => {
            let (schema, differences) = links::object_schema(&objects, &link_names);
            JoinResult { schema, differences, ..JoinResult::default() }
        }
        _ => joiner.finish(),
    };
    if joined.convention == Some(Choice::Anndata) && joined.differences.is_empty() && !anndata.is_empty() {
        let because = std::mem::take(&mut joined.because);
        joined = JoinResult { because, ..anndata::join(&anndata, options.join.join, &options.conventions, &counts) };
        if let OutputState::Grows(_) = &beginning {
            joined.differences.push(anndata::refuse_append());
        }
    }
    user::check_matched(&options.conventions.rules, &joined.schema)?;
    joined.differences.extend(misplaced_option(&joined, &options.conventions, planned.len() as u32));
    let is_new = !matches!(beginning, OutputState::Grows(_));
    if !is_new {
        keys::growth::set_apart(&mut joined, &options.derived)?;
    }
    let (unsettled, unranged) = settle(&mut joined, options, &paths, (&taken, &ranges), is_new);
    let is_reported = |new: &Difference| {
        let is_same =
            |old: &Difference| (&old.path, &old.expected, &old.found) == (&new.path, &new.expected, &new.found);
        joined.differences.iter().any(is_same)
    };
    let unsettled: Vec<_> = unsettled.into_iter().filter(|new| !is_reported(new)).collect();
    joined.differences.extend(unsettled);
    let is_once_by_user =
        |path: &[u8]| options.selection.keeps(path) || user::keeps_once(&options.conventions.rules, path);
    joined.differences.extend(dimension_scales::once_along_rows(&joined.schema, is_once_by_user));
    if options.join.join == Join::Inner || options.selection.is_partial() {
        dimension_scales::drop_missing(&mut joined.schema);
    }
    rules::once::explain(&joined.schema, &mut joined.differences, &planned, options)?;
    rules::once::explain(&joined.schema, &mut joined.warnings, &planned, options)?;
    conventions::explain_plain(&mut joined.differences, &joined.schema, &joined.declared, &options.conventions);
    if let OutputState::Grows(_) = &beginning {
        // Objects cannot be added to an existing file, and rows missing from its inputs are filled. An index in it
        // would remain.
        let refused = |warning: &Difference| match warning.kind {
            // With an inner join it is left out.
            DifferenceKind::Extra => options.join.join != Join::Inner,
            DifferenceKind::Missing => options.join.join == Join::Inner,
            DifferenceKind::Index => warning.inputs.first() == Some(&0),
            _ => false,
        };
        let (refused, rest) = joined.warnings.into_iter().partition(refused);
        joined.warnings = rest;
        joined.differences.extend::<Vec<_>>(refused);
    }
    let has_other_rows = planned.len() > 1 || options.rows.is_some();
    if is_new && has_other_rows && options.join.join != Join::Union {
        joined.differences.extend(keys::attach::stale(
            &joined.schema,
            &recorded_specs,
            &options.derived,
            planned.len() as u32,
        )?);
    }
    if !joined.differences.is_empty() {
        let mut differences = joined.differences;
        for input in differences.iter_mut().flat_map(|difference| &mut difference.inputs) {
            *input = places[*input as usize];
        }
        return Err(MergeError::Differences { differences });
    }
    if let Some(selected) = &selected {
        subset::cut::cut(&mut joined.schema, &joined.declared, selected)?;
    }
    if let Some(rows) = &options.rows {
        subset::tables::cut(&mut joined.schema, &joined.declared, &options.derived, rows)?;
    }
    sizes::check(&joined.schema, &planned)?;
    joined.warnings.extend(fill_references::settle(&mut joined.schema, planned.len() as u32));
    let stays = usize::from(matches!(beginning, OutputState::Grows(_)));
    joined.warnings.extend(user_blocks(&planned, stays));
    let replaced = match is_new {
        true => keys::attach::remove_replaced(&mut joined.schema, &options.derived)?,
        false => 0,
    };
    if options.empty == Empty::Null && is_new {
        make_null(&mut joined)?;
    }
    let (tiles, column_of_array, segments) = (Vec::new(), Vec::new(), SegmentLists::default());
    let is_plain = joined.convention.is_none()
        && matches!(beginning, OutputState::New)
        && options.link == Link::No
        && options.join.join != Join::Union;
    let growable = Growable::of(&joined.schema, options.extendible, is_plain);
    flat::check_regions(&joined.schema)?;
    if options.rank_1 && is_new {
        flat::check(&joined.schema)?;
    }
    let mut planner = Planner { options, tiles, column_of_array, segments, link: options.link, growable };
    let table_rows = table_rows(&joined.schema, options.layout);
    let layouts = AskedLayouts::new(options, &joined.schema)?;
    let mut columns = Vec::with_capacity(joined.schema.columns.len());
    let mut grown = Vec::new();
    for (index, column) in joined.schema.columns.iter().enumerate() {
        let path = joined.schema.column_path(index as ColumnIndex);
        let rows = table_rows.get(parent_path(path)).copied().unwrap_or(1);
        if let OutputState::Grows(_) = &beginning {
            let (column, growth) = planner.grown_column(index as ColumnIndex, column, path)?;
            columns.push(column);
            grown.push(growth);
            continue;
        }
        let entry = &joined.schema.entries[column.entry as usize];
        columns.push(planner.column(index as ColumnIndex, column, entry, &layouts, rows)?);
    }
    let remembered = match planned.len() {
        1 => remembered,
        _ => remembered.map(|remembered| remembered.of_parts()),
    };
    let (carried, growth) = match beginning {
        OutputState::New => (None, None),
        OutputState::Rewritten(carried) => (carried, None),
        OutputState::Grows(stored) => (None, Some(Growth { stored, columns: grown })),
    };
    let Planner { tiles, column_of_array, .. } = planner;
    let tiles = Plan { arrays: tiles };
    let has_room = joined.schema.reader_without_provenance().is_none();
    let open_s = open_s / planned.len().max(1) as f64;
    let plan = MergePlan {
        inputs: planned,
        skipped,
        schema: joined.schema,
        columns,
        tiles,
        column_of_array,
        warnings: joined.warnings,
        input_chunk_count,
        elapsed_s: started.elapsed().as_secs_f64(),
        scan_s,
        open_s,
        derived: DerivedColumns::new(options.derived.clone(), replaced),
        link_names,
        remembered,
        carried,
        growth,
        alignment: None,
        convention: joined.convention,
        uncounted: joined.uncounted,
        unranged,
        selected,
        because: joined.because,
        rules: joined.declared.into_iter().map(|declared| (declared.entry, declared.rule)).collect(),
        // A foreign group makes the readers of some formats fail; the classic model of CMIP7 files has no groups.
        options: MergeOptions {
            provenance: options.provenance && has_room && options.layout != LayoutPolicy::Cmip7,
            ..options.clone()
        },
    };
    plan.tiles.validate().map_err(|error| sizes::explain(&plan, error))?;
    links::check_sources(&plan, watch)?;
    Ok(plan)
}

/// Settles the rules of the joined inputs. In a new file, also completes attributes and datasets that the inputs'
/// convention derives from the data; a file that is appended to keeps its attributes.
fn settle(
    joined: &mut JoinResult,
    options: &MergeOptions,
    paths: &[PathBuf],
    (taken, ranges): (&RecordTrims, &Ranges),
    is_new: bool,
) -> (Vec<Difference>, Vec<Vec<u8>>) {
    let JoinResult { schema, declared, convention, warnings, .. } = joined;
    let (mut differences, unranged) =
        rules::settle::settle(schema, declared, &options.conventions, taken, ranges, is_new);
    differences.extend(rules::absent::unfillable(schema));
    if options.join.join == Join::Union {
        conventions::settle_union(schema);
    }
    let (inputs, tiles) = (paths.len() as u32, options.conventions.tiles.as_ref());
    let mut completion = Completion {
        schema,
        declared,
        inputs,
        paths,
        tiles,
        is_partial: options.selection.is_partial(),
        is_new,
        left_out: BTreeSet::new(),
    };
    if convention.is_none() && is_new {
        conventions::complete_plain(&mut completion, &options.conventions);
    }
    if let Some(convention) = convention.and_then(conventions::of_choice)
        && (inputs > 1 || options.conventions.is_of_one_file())
    {
        differences.extend(convention.settle(&mut completion));
        warnings.extend(convention.warnings(&completion));
        if is_new {
            convention.complete(&mut completion);
        }
        let left_out = completion.left_out;
        joined.leave_out(&left_out);
    }
    (differences, unranged)
}

/// Refuses an option of a convention that the inputs do not follow, because it would have no effect.
fn misplaced_option(joined: &JoinResult, options: &ConventionOptions, inputs: u32) -> Option<Difference> {
    let is_refused = |difference: &Difference| difference.kind == DifferenceKind::Convention;
    let (option, of) = options.misplaced(joined.convention)?;
    let has_names = (option, joined.convention) == ("axis", Some(Choice::Cf));
    let by_name = if has_names { "; --dim names the dimension, whatever axis it is" } else { "" };
    // Inputs that mix conventions are reported separately.
    (!joined.differences.iter().any(is_refused)).then(|| Difference {
        path: "/".to_owned(),
        kind: DifferenceKind::Convention,
        expected: format!("{}, for --{option}", of.title()),
        found: format!(
            "{}; --convention {} reads them as {}{by_name}",
            joined.convention.unwrap_or(Choice::None).title(),
            of.word(),
            of.title()
        ),
        inputs: (0..inputs).collect(),
    })
}

/// Warns about the user blocks of all inputs except the first `stay` ones, whose files are kept.
fn user_blocks(planned: &[PlannedInput], stay: usize) -> Option<Difference> {
    let has_one = |&(_, input): &(u32, &PlannedInput)| input.userblock_len_bytes > 0;
    let inputs: Vec<u32> = (0..).zip(planned).skip(stay).filter(has_one).map(|(number, _)| number).collect();
    let (path, expected, found) = ("/".to_owned(), "no user block".to_owned(), "a user block".to_owned());
    (!inputs.is_empty()).then_some(Difference { path, kind: DifferenceKind::UserBlock, expected, found, inputs })
}
