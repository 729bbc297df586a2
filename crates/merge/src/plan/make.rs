//! Planning: scans and joins the inputs, settles the rules of the joined schema, then plans each of its columns.
//!
//! Inputs are collected in `found`, storage of a column is planned in `column`, growth of a column in [`crate::append`].
//! Invariant: the engine's arrays and the columns they belong to are added together and in the same order.

use super::flat;
use super::found::{FoundInputs, LearnedValues};
use super::growable::Growable;
use super::growth::{ColumnGrowth, Growth};
use super::input_states::InputStates;
use super::new_columns::table_rows;
use super::null::make_null;
use super::{ColumnPlan, MergePlan, PlannedInput, Planner, sizes};
use crate::append::redo;
use crate::conventions::{self, Choice, Completion, ConventionOptions, anndata};
use crate::error::{MergeError, Result};
use crate::keys::{self, DerivedSpec, derived::DerivedColumns};
use crate::options::Link;
use crate::options::{Empty, MergeOptions, Watch};
use crate::plan::asked_layout::AskedLayouts;
use crate::plan::fill_references;
use crate::plan::layout::LayoutPolicy;
use crate::plan::links;
use crate::plan::memory::ReaderMemory;
use crate::plan::{alignment, regrouping};
use crate::rules::{
    self,
    records::{RecordOrder, RecordTrims},
    repack, user,
};
use crate::scan;
use crate::scan::dimension_scales;
use crate::schema::join::{Difference, DifferenceKind, Join, JoinResult};
use crate::schema::{ColumnIndex, Schema, parent_path};
use crate::subset;
use crate::subset::selected::SelectedElements;
use crate::verify::digests::StoredDigests;
use crate::write::counting;
use crate::write::resume::options_text;
use raddle_core::plan::{Plan, SegmentLists};
use raddle_core::ranks::communicator::{Communicator, CommunicatorExt, SingleProcess};
use raddle_core::report::progress::{Event, Stage};
use std::collections::BTreeSet;
use std::path::PathBuf;

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

impl OutputState {
    /// Returns the stored digests of a rewritten output, and the growth of one that grows by `grown` columns.
    fn into_existing(self, grown: Vec<ColumnGrowth>) -> (Option<StoredDigests>, Option<Growth>) {
        match self {
            Self::New => (None, None),
            Self::Rewritten(carried) => (carried, None),
            Self::Grows(stored) => (None, Some(Growth { stored, columns: grown })),
        }
    }
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
/// As for [`plan`]; also [`RankFailed`](raddle_core::CoreError::RankFailed) if only another rank encountered an error.
pub fn plan_collective(
    inputs: &[PathBuf],
    options: &MergeOptions,
    watch: &Watch<'_>,
    ranks: &dyn Communicator,
) -> Result<MergePlan> {
    plan_from(inputs, OutputState::New, options, watch, ranks)
}

/// Collective. Like [`plan_collective`], for an output that may already exist. Plans again if the records of the inputs
/// turn out to be in a different order or to overlap. All ranks plan with the least memory of any rank, because it
/// determines the groups in which they assemble tiles together.
pub(crate) fn plan_from(
    inputs: &[PathBuf],
    beginning: OutputState,
    options: &MergeOptions,
    watch: &Watch<'_>,
    ranks: &dyn Communicator,
) -> Result<MergePlan> {
    let options = &agree_on_options(options, ranks)?;
    complete_interrupted_appends(inputs, ranks)?;
    let mut inputs = inputs.to_vec();
    let mut learned = LearnedValues::default();
    let mut states = InputStates::before(&inputs, options);
    let mut is_ordered = false;
    loop {
        let mut found = FoundInputs::new(options, inputs.len());
        if let OutputState::Grows(_) = &beginning {
            found = found.growing();
        }
        found.learned.clone_from(&learned);
        let take = |place: usize, scanned| found.add(place, inputs[place].clone(), scanned);
        found.skipped = scan::scan(&inputs, options, watch, ranks, take)?;
        ranks.agree(PLANNING, states.check(&found.inputs))?;
        let plan = plan_found(found, beginning.clone(), options, watch, ranks)?;
        if learns_missing_values(&mut learned, &plan, watch, ranks)? {
            continue;
        }
        let order = match &learned.selected {
            None => ranks.agree(PLANNING, rules::check::check(&plan, watch))?,
            // Values were checked, and records ordered, before the output was restricted.
            Some(_) => RecordOrder::Kept,
        };
        match order {
            RecordOrder::Kept if learned.selected.is_none() && !options.subset.is_empty() => {
                rules::overlaps::check(&plan, watch, ranks)?;
                learned.selected = Some(ranks.agree(PLANNING, subset::resolve::resolve(&plan))?);
            }
            RecordOrder::Kept => return complete_plan(plan, watch, ranks),
            RecordOrder::Other(order, coordinate) if !is_ordered => {
                is_ordered = true;
                learned.taken = RecordTrims::default();
                let by_record = order.iter().map(|&input| plan.inputs[input as usize].path.clone());
                inputs = by_record.chain(plan.skipped.iter().map(|bad| bad.path.clone())).collect();
                warn_once(format!("inputs are put in the order of {coordinate}"), watch, ranks);
            }
            RecordOrder::Trimmed(trims) => learned.taken = trims,
            RecordOrder::Other(_, coordinate) => {
                let reason = "does not order the inputs in a way that all coordinates agree on".to_owned();
                return Err(MergeError::Object { object: coordinate, reason });
            }
        }
    }
}

/// Collective. Returns the options with the least memory of any rank, if all other options are the same on all ranks.
fn agree_on_options(options: &MergeOptions, ranks: &dyn Communicator) -> Result<MergeOptions> {
    // Selected rows are a result, and their text would be long.
    ranks.check_same_options(&options_text(&MergeOptions { rows: None, ..options.clone() }))?;
    let memory_limit_bytes = ranks.least_u64(options.memory_limit_bytes)?;
    Ok(MergeOptions { memory_limit_bytes, ..options.clone() })
}

/// Collective. Completes appends to the inputs that were interrupted.
fn complete_interrupted_appends(inputs: &[PathBuf], ranks: &dyn Communicator) -> Result<()> {
    let local_inputs = inputs.iter().filter(|_| ranks.rank() == 0);
    let settled = local_inputs.map(PathBuf::as_path).try_for_each(|input| redo::settle(input).map(|_| ()));
    ranks.agree("complete an interrupted append", settled)?;
    Ok(())
}

/// Collective. Determines values that `plan` lacks. Returns whether it lacked any; then the merge is planned again.
fn learns_missing_values(
    learned: &mut LearnedValues,
    plan: &MergePlan,
    watch: &Watch<'_>,
    ranks: &dyn Communicator,
) -> Result<bool> {
    if !plan.uncounted.is_empty() {
        learned.counts.extend(ranks.agree(PLANNING, counting::count(plan, &plan.uncounted, watch))?);
    } else if !plan.unranged.is_empty() {
        learned.ranges.extend(ranks.agree(PLANNING, repack::ranges(plan, &plan.unranged, watch))?);
    } else {
        return Ok(false);
    }
    learned.taken = RecordTrims::default();
    Ok(true)
}

/// Collective. Completes a plan whose records are in order: warns about its values and its memory, and aligns its
/// tiles.
fn complete_plan(mut plan: MergePlan, watch: &Watch<'_>, ranks: &dyn Communicator) -> Result<MergePlan> {
    plan.warnings.extend(ranks.agree(PLANNING, anndata::repeated(&plan, watch))?);
    repack::describe(&plan).into_iter().for_each(|text| warn_once(text, watch, ranks));
    rules::overlaps::check(&plan, watch, ranks)?;
    plan.alignment = alignment::decide(&plan, ranks)?;
    regrouping::repeated_decodes(&plan, ranks.size()).into_iter().for_each(|text| warn_once(text, watch, ranks));
    Ok(plan)
}

/// Reports a warning on the first rank only.
fn warn_once(text: String, watch: &Watch<'_>, ranks: &dyn Communicator) {
    if ranks.rank() == 0 {
        watch.warn(text);
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
    let FoundInputs { started, contents, inputs, places, skipped, chunk_count, open_s, learned, digests, .. } = found;
    let mut recorded = found.recorded;
    let scan_s = started.elapsed().as_secs_f64();
    watch.observer.event(&Event::StageStarted { stage: Stage::Plan, total_bytes: None });
    let paths: Vec<PathBuf> = inputs.iter().map(|input| input.path.clone()).collect();
    let link_names = link_names(&paths, options)?;
    let is_new = !matches!(beginning, OutputState::Grows(_));
    let mut joined = contents.join(&paths, &link_names, options, &learned.counts, is_new);
    let unranged = settle_join(&mut joined, options, &inputs, &paths, &learned, is_new)?;
    match is_new {
        true => keys::attach::accept_replaced(&mut joined, &options.derived)?,
        false => refuse_in_growing_file(&mut joined, options.join.join),
    }
    let has_other_rows = inputs.len() > 1 || options.rows.is_some();
    if has_other_rows && options.join.join != Join::Union {
        let outdated = outdated_keys(&joined.schema, &recorded.derived_specs, options, inputs.len() as u32, is_new)?;
        joined.differences.extend(outdated);
    }
    refuse_differences(&mut joined, &places)?;
    let replaced = complete_schema(&mut joined, options, &inputs, learned.selected.as_ref(), is_new)?;
    let PlannedColumns { columns, grown, tiles, column_of_array } = plan_columns(&joined, options, &beginning)?;
    let is_copied = !has_other_rows || options.join.join == Join::Union && options.rows.is_none();
    let is_copy = matches!(beginning, OutputState::New) && is_copied;
    let of_input = if is_copy { std::mem::take(&mut recorded.derived_specs) } else { Vec::new() };
    let (carried, growth) = beginning.into_existing(grown);
    let has_room = joined.schema.reader_without_provenance().is_none();
    let mut plan = MergePlan {
        skipped,
        schema: joined.schema,
        columns,
        tiles,
        column_of_array,
        warnings: joined.warnings,
        input_chunk_count: chunk_count,
        elapsed_s: started.elapsed().as_secs_f64(),
        scan_s,
        open_s: open_s / inputs.len().max(1) as f64,
        derived: DerivedColumns::new(options.derived.clone(), replaced),
        link_names,
        remembered: recorded.record_for(inputs.len()),
        input_digests: digests,
        carried,
        growth,
        alignment: None,
        convention: joined.convention,
        uncounted: joined.uncounted,
        unranged,
        selected: learned.selected,
        because: joined.because,
        rules: joined.declared.into_iter().map(|declared| (declared.entry, declared.rule)).collect(),
        // A foreign group makes the readers of some formats fail; the classic model of CMIP7 files has no groups.
        options: MergeOptions {
            provenance: options.provenance && has_room && options.layout != LayoutPolicy::Cmip7,
            ..options.clone()
        },
        inputs,
    };
    keys::attach::carry_over(&mut plan, of_input)?;
    plan.tiles.validate().map_err(|error| sizes::explain(&plan, error))?;
    links::check_sources(&plan, watch)?;
    Ok(plan)
}

/// Returns the names by which links of the output find the inputs at `paths`; empty if it has no links.
fn link_names(paths: &[PathBuf], options: &MergeOptions) -> Result<Vec<Vec<u8>>> {
    match options.link {
        Link::No => Ok(Vec::new()),
        _ => links::names(&options.output, paths.iter().map(PathBuf::as_path), options.link_paths),
    }
}

/// Returns a difference for each dataset of the inputs that was computed from all rows of one file, such as a key, and
/// that the merge neither recomputes nor removes. `recorded` are the records of the inputs.
fn outdated_keys(
    schema: &Schema,
    recorded: &[DerivedSpec],
    options: &MergeOptions,
    inputs: u32,
    is_new: bool,
) -> Result<Vec<Difference>> {
    let unrecorded = keys::unrecorded::unrecorded(schema, recorded, options, !is_new)?;
    let mut outdated = match is_new {
        true => keys::attach::stale(schema, recorded, &options.derived, inputs)?,
        false => Vec::new(),
    };
    outdated.extend(unrecorded);
    Ok(outdated)
}

/// Refuses inputs with differences. The error numbers them by `places`, in the caller's list.
fn refuse_differences(joined: &mut JoinResult, places: &[u32]) -> Result<()> {
    let mut differences = std::mem::take(&mut joined.differences);
    if differences.is_empty() {
        return Ok(());
    }
    for input in differences.iter_mut().flat_map(|difference| &mut difference.inputs) {
        *input = places[*input as usize];
    }
    Err(MergeError::Differences { differences })
}

/// Settles the rules of the joined inputs, and adds the differences that the rules and options do not bridge. Returns
/// the paths of values whose range must be determined before planning again.
fn settle_join(
    joined: &mut JoinResult,
    options: &MergeOptions,
    inputs: &[PlannedInput],
    paths: &[PathBuf],
    learned: &LearnedValues,
    is_new: bool,
) -> Result<Vec<Vec<u8>>> {
    let rules = &options.conventions.rules;
    user::check_matched(rules, &joined.schema)?;
    joined.differences.extend(misplaced_option(joined, &options.conventions, inputs.len() as u32));
    if !is_new {
        keys::growth::set_apart(joined, &options.derived)?;
    }
    let (unsettled, unranged) = settle_rules(joined, options, paths, learned, is_new);
    let is_reported = |new: &Difference| {
        let is_same =
            |old: &Difference| (&old.path, &old.expected, &old.found) == (&new.path, &new.expected, &new.found);
        joined.differences.iter().any(is_same)
    };
    let unsettled: Vec<_> = unsettled.into_iter().filter(|new| !is_reported(new)).collect();
    joined.differences.extend(unsettled);
    let is_once_by_user = |path: &[u8]| options.selection.keeps(path) || user::keeps_once(rules, path);
    joined.differences.extend(dimension_scales::once_along_rows(&joined.schema, is_once_by_user));
    let has_rows_by_user = |path: &[u8]| user::has_rows(rules, path);
    joined.differences.extend(dimension_scales::rows_along_once(&joined.schema, has_rows_by_user));
    if options.join.join == Join::Inner || options.selection.is_partial() {
        dimension_scales::drop_missing(&mut joined.schema);
    }
    rules::once::explain(&joined.schema, joined.convention, &mut joined.differences, inputs, options)?;
    rules::once::explain(&joined.schema, joined.convention, &mut joined.warnings, inputs, options)?;
    conventions::explain_plain(&mut joined.differences, &joined.schema, &joined.declared, &options.conventions);
    Ok(unranged)
}

/// Refuses differences that are only reported for a new file: objects cannot be added to an existing file, rows that
/// are missing from its inputs are filled, and an index in it would remain.
fn refuse_in_growing_file(joined: &mut JoinResult, join: Join) {
    let is_refused = |warning: &Difference| match warning.kind {
        // An inner join leaves it out.
        DifferenceKind::Extra => join != Join::Inner,
        DifferenceKind::Missing => join == Join::Inner,
        DifferenceKind::Index => warning.inputs.first() == Some(&0),
        _ => false,
    };
    let (mut refused, rest): (Vec<Difference>, _) =
        std::mem::take(&mut joined.warnings).into_iter().partition(is_refused);
    for difference in refused.iter_mut().filter(|difference| difference.kind == DifferenceKind::Index) {
        "a PyTables index, which an append cannot update; merge all inputs into a new file"
            .clone_into(&mut difference.found);
    }
    joined.warnings = rest;
    joined.differences.extend(refused);
}

/// Restricts the joined schema to the requested elements, and completes it. Returns the number of datasets that derived
/// columns replace.
fn complete_schema(
    joined: &mut JoinResult,
    options: &MergeOptions,
    inputs: &[PlannedInput],
    selected: Option<&SelectedElements>,
    is_new: bool,
) -> Result<u64> {
    if let Some(selected) = selected {
        subset::cut::cut(&mut joined.schema, &joined.declared, selected)?;
    }
    if let Some(rows) = &options.rows {
        subset::tables::cut(&mut joined.schema, &joined.declared, &options.derived, rows)?;
    }
    sizes::check(&joined.schema, inputs)?;
    joined.warnings.extend(fill_references::settle(&mut joined.schema, inputs.len() as u32));
    joined.warnings.extend(user_blocks(inputs, usize::from(!is_new)));
    if !is_new {
        return Ok(0);
    }
    let replaced = keys::attach::remove_replaced(&mut joined.schema, &options.derived)?;
    if options.empty == Empty::Null {
        make_null(joined)?;
    }
    Ok(replaced)
}

/// Planned columns of a schema, and the arrays of the engine that belong to them.
struct PlannedColumns {
    columns: Vec<ColumnPlan>,
    /// Growth of each column, if the output grows.
    grown: Vec<ColumnGrowth>,
    tiles: Plan,
    column_of_array: Vec<ColumnIndex>,
}

/// Plans the storage of each column of the joined schema.
fn plan_columns(joined: &JoinResult, options: &MergeOptions, beginning: &OutputState) -> Result<PlannedColumns> {
    let schema = &joined.schema;
    let grows = matches!(beginning, OutputState::Grows(_));
    let is_plain = joined.convention.is_none()
        && matches!(beginning, OutputState::New)
        && options.link == Link::No
        && options.join.join != Join::Union;
    flat::check_regions(schema)?;
    if options.rank_1 && !grows {
        flat::check(schema)?;
    }
    let mut planner = Planner {
        options,
        tiles: Vec::new(),
        column_of_array: Vec::new(),
        segments: SegmentLists::default(),
        link: options.link,
        growable: Growable::of(schema, options.extendible, is_plain),
    };
    let table_rows = table_rows(schema, options.layout);
    let layouts = AskedLayouts::new(options, schema)?;
    let (mut columns, mut grown) = (Vec::with_capacity(schema.columns.len()), Vec::new());
    for (index, column) in (0..).zip(&schema.columns) {
        let path = schema.column_path(index);
        if grows {
            let (column, growth) = planner.grown_column(index, column, path)?;
            columns.push(column);
            grown.push(growth);
        } else {
            let rows = table_rows.get(parent_path(path)).copied().unwrap_or(1);
            let entry = &schema.entries[column.entry as usize];
            columns.push(planner.column(index, column, entry, &layouts, rows)?);
        }
    }
    let Planner { tiles, column_of_array, .. } = planner;
    Ok(PlannedColumns { columns, grown, tiles: Plan { arrays: tiles }, column_of_array })
}

/// Settles the rules of the joined inputs. In a new file, also completes attributes and datasets that the inputs'
/// convention derives from the data; a file that is appended to keeps its attributes.
fn settle_rules(
    joined: &mut JoinResult,
    options: &MergeOptions,
    paths: &[PathBuf],
    learned: &LearnedValues,
    is_new: bool,
) -> (Vec<Difference>, Vec<Vec<u8>>) {
    let JoinResult { schema, declared, convention, warnings, .. } = joined;
    let (mut differences, unranged) =
        rules::settle::settle(schema, declared, &options.conventions, &learned.taken, &learned.ranges, is_new);
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
