//! Verification of an output against its inputs: compares all objects, reads all values from both sides and compares
//! them byte by byte.
//!
//! Both sides use the same reader, but with different layouts; the interoperability tests compare with other readers.
//! Invariant: equality is only reported if every row of every dataset of every input was compared.

mod boxes;
mod comparison;
pub mod digests;
pub mod provenance;
pub mod record;
pub mod remembered;

use crate::conventions::{Choice, ConventionOptions};
use crate::error::{MergeError, Result};
use crate::inputs::reader::InputReader;
use crate::inputs::selection::Selection;
use crate::keys::DerivedSpec;
use crate::options::Link;
use crate::options::{Compress, Contiguous, Empty, Extendible, MergeOptions, Shuffle, Watch};
use crate::plan::layout::LayoutPolicy;
use crate::plan::{MergePlan, plan_collective};
use crate::schema::join::{Join, JoinOptions};
use crate::verify::comparison::Comparison;
use crate::verify::digests::stored;
use crate::verify::remembered::{OnConflict, recall};
use raddle_core::ranks::communicator::{Communicator, CommunicatorExt, SingleProcess};
use raddle_core::report::progress::{Event, Stage};
use raddle_hdf5::model::{FileTree, ObjectKind};
use raddle_hdf5::source::InputFile;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// A difference between the output and its inputs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mismatch {
    /// Path of the object, escaped for display.
    pub path: String,
    /// Description of the difference.
    pub what: String,
    /// First row of the output that differs, for differing values.
    pub row: Option<u64>,
    /// Input that the row comes from.
    #[serde(serialize_with = "crate::path_text::of_some")]
    pub input: Option<PathBuf>,
}

impl Mismatch {
    /// Describes an output that records another number of inputs than were `given`, the likely cause of all other
    /// differences.
    fn of_input_counts(recorded: usize, given: usize) -> Self {
        let what = format!("inputs recorded: {recorded}, inputs given: {given}");
        let path = String::from_utf8_lossy(&provenance::provenance_path("inputs")).into_owned();
        Self { path, what, row: None, input: None }
    }
}

/// Result of a verification.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct VerifyReport {
    /// Number of datasets compared value by value.
    pub datasets: u64,
    /// Number of virtual datasets and external links whose files exist; the values in these files were not compared.
    #[serde(default)]
    pub linked: u64,
    /// Number of other objects, links and attributes compared.
    pub objects: u64,
    /// Number of bytes of values compared, per side.
    pub compared_len_bytes: u64,
    /// Differences found; empty if output and inputs are equal.
    pub mismatches: Vec<Mismatch>,
    /// Wall time.
    pub elapsed_s: f64,
}

/// Operation named in errors on other ranks.
pub(crate) const VERIFYING: &str = "verify the file";

/// Compares `output` with the concatenation of `inputs` under the join of `options`.
///
/// # Errors
/// If a file cannot be read, or the inputs do not fit together. A mismatch is not an error: it is part of the report.
pub fn verify(output: &Path, inputs: &[PathBuf], options: &MergeOptions, watch: &Watch<'_>) -> Result<VerifyReport> {
    verify_collective(output, inputs, options, watch, &SingleProcess)
}

/// Collective. Like [`verify`], with each block of rows compared by one of the `ranks`. All ranks return the same
/// report, which does not depend on their number.
///
/// # Errors
/// As for [`verify`], on every rank; also [`raddle_core::CoreError::RankFailed`] if only another rank encountered an
/// error.
pub fn verify_collective(
    output: &Path,
    inputs: &[PathBuf],
    options: &MergeOptions,
    watch: &Watch<'_>,
    ranks: &dyn Communicator,
) -> Result<VerifyReport> {
    of_unchanged_collective(output, ranks, || compare_collective(output, inputs, options, watch, ranks))
}

fn compare_collective(
    output: &Path,
    inputs: &[PathBuf],
    options: &MergeOptions,
    watch: &Watch<'_>,
    ranks: &dyn Communicator,
) -> Result<VerifyReport> {
    let started = std::time::Instant::now();
    let Recalled { options: recalled, inputs: recorded } =
        ranks.agree(VERIFYING, recall_options(output, inputs, options))?;
    let recalled = MergeOptions { ignore_digests: true, ..recalled };
    let expected = plan_collective(inputs, &recalled, watch, ranks)?;
    let found = plan_file_collective(output, Selection::default(), options, watch, ranks)?;
    let total_bytes = Some(expected.logical_len_bytes().saturating_mul(2));
    watch.observer.event(&Event::StageStarted { stage: Stage::Verify, total_bytes });
    let mut comparison = Comparison::new(&expected, &found);
    comparison.structure();
    // All ranks find the same here, so the first one reports it.
    let first = match ranks.rank() {
        0 => comparison.stacks(),
        _ => {
            comparison.report = VerifyReport::default();
            Ok(())
        }
    };
    ranks.agree(VERIFYING, first)?;
    let compared = comparison.values(watch, ranks);
    ranks.agree(VERIFYING, compared)?;
    let mut report = together(comparison.report, ranks)?;
    if let Some(recorded) = recorded
        && !report.mismatches.is_empty()
        && recorded != inputs.len()
    {
        report.mismatches.insert(0, Mismatch::of_input_counts(recorded, inputs.len()));
    }
    report.elapsed_s = started.elapsed().as_secs_f64();
    watch.observer.event(&Event::StageFinished { stage: Stage::Verify, elapsed_s: report.elapsed_s });
    Ok(report)
}

/// Collective. Returns the report of `compare` on the file at `path`. While another program writes the file, its parts do
/// not match each other, which is not damage.
///
/// # Errors
/// Those of `compare`. If it finds differences and the file changed meanwhile, [`Hdf5Error::Changed`] on the ranks that
/// see the change, and [`raddle_core::CoreError::RankFailed`] on the others.
///
/// [`Hdf5Error::Changed`]: raddle_hdf5::Hdf5Error::Changed
pub(crate) fn of_unchanged_collective(
    path: &Path,
    ranks: &dyn Communicator,
    compare: impl FnOnce() -> Result<VerifyReport>,
) -> Result<VerifyReport> {
    // The completion of an interrupted append is not a change by another program.
    ranks.agree(VERIFYING, crate::append::redo::settle(path))?;
    // The comparison reports a file that cannot be opened.
    let file = InputFile::open(path).ok();
    let report = compare()?;
    if !report.mismatches.is_empty() {
        let unchanged = file.map_or(Ok(()), |file| file.check_unchanged());
        ranks.agree(VERIFYING, unchanged.map_err(MergeError::from))?;
    }
    Ok(report)
}

/// What a verification takes from the records in the output. Only the way of merging is taken from there, never values.
struct Recalled {
    /// Options under which merging the inputs reproduces the output. Those that the caller left open are as recorded.
    options: MergeOptions,
    /// Number of inputs, if it is recorded.
    inputs: Option<usize>,
}

/// Reads the records in `output`, if it has any.
fn recall_options(output: &Path, inputs: &[PathBuf], options: &MergeOptions) -> Result<Recalled> {
    let mut stored = match stored::read(output, options) {
        Ok(stored) => Some(stored),
        // Without usable digests, objects missing from all inputs are reported as such; a file that cannot be read is
        // reported when it is planned.
        Err(
            MergeError::NoDigests { .. }
            | MergeError::DigestsDamaged { .. }
            | MergeError::DigestsNewer { .. }
            | MergeError::Hdf5(_),
        ) => None,
        Err(error) => return Err(error),
    };
    let recorded_inputs = stored.as_ref().map(|stored| stored.inputs.len());
    let (mut made, mut done) = (Vec::new(), None);
    // An input that cannot be read is reported when the inputs are planned.
    if let (Some(stored), [input]) = (&mut stored, inputs)
        && let Ok(of_input) = stored::records_of(input, options)
    {
        if let (Some(remembered), Some(of_input)) = (&mut stored.remembered, &of_input.remembered) {
            remembered.forget_done(of_input);
        }
        made = of_input.made;
        done = of_input.remembered.map(|of_input| (input, of_input));
    }
    let mut recalled = recall(stored.as_ref(), options, OnConflict::FollowRequest)?;
    if let Some(stored) = &mut stored {
        // A copy has the keys of its input, unless they were left out and recreated, or rows were selected.
        let is_left_out = |spec: &DerivedSpec| spec.index_paths().iter().any(|path| recalled.selection.excludes(path));
        let is_copied = |spec: &DerivedSpec| made.iter().any(|made| made.is_like(spec)) && !is_left_out(spec);
        stored.derived.retain(|spec| options.rows.is_some() || !is_copied(spec));
    }
    if recalled.join.join == Join::Union
        && let Some(stored) = &mut stored
    {
        let made = inputs.iter().filter_map(|input| Some(stored::records_of(input, options).ok()?.made));
        let made: Vec<DerivedSpec> = made.flatten().collect();
        // A union copies the keys of its inputs.
        stored.derived.retain(|spec| !made.iter().any(|made| made.is_like_in_other_groups(spec)));
        // A union concatenates nothing. The options of conventions that it records are those of its inputs.
        let ConventionOptions { convention, rules, .. } = recalled.conventions;
        recalled.conventions = ConventionOptions { convention, rules, ..options.conventions.clone() };
    }
    if let Some((input, of_input)) = done
        && of_input.has_selected(&recalled.selection)
        && !holds_only_selected(output, &recalled)?
    {
        recalled.selection = recalled.selection.with_whole(input);
    }
    let (mut derived, link) = stored.map_or_else(Default::default, |stored| (stored.derived, stored.link));
    // A virtual output is compared by its values; for external links only the links can be compared.
    let (link, link_paths) = if link.0.is_external() { link } else { Default::default() };
    derived.iter_mut().for_each(DerivedSpec::allow_replacing);
    let options = MergeOptions { derived, link, link_paths, output: output.to_path_buf(), ..recalled };
    Ok(Recalled { options, inputs: recorded_inputs })
}

/// Returns whether the selection of `options` leaves out nothing of the file. It leaves out stacked attributes, which are
/// made after the selection.
fn holds_only_selected(path: &Path, options: &MergeOptions) -> Result<bool> {
    let links = |tree: &FileTree| -> usize {
        let groups = tree.objects.iter().filter_map(|object| match &object.kind {
            ObjectKind::Group(group) => Some(group.links.len()),
            _ => None,
        });
        groups.sum()
    };
    let mut tree = InputReader::new(options).read_whole_tree(path)?;
    let all = links(&tree);
    options.selection.prune(&mut tree, path);
    Ok(links(&tree) == all)
}

/// Plans a single file unchanged, restricted to the selected objects. A file that cannot be read is reported on its
/// own, not as one of the inputs.
pub(crate) fn plan_file(
    path: &Path,
    selection: Selection,
    options: &MergeOptions,
    watch: &Watch<'_>,
) -> Result<MergePlan> {
    plan_file_collective(path, selection, options, watch, &SingleProcess)
}

/// Collective. Like [`plan_file`], with the file scanned by one of the `ranks`.
pub(crate) fn plan_file_collective(
    path: &Path,
    selection: Selection,
    options: &MergeOptions,
    watch: &Watch<'_>,
    ranks: &dyn Communicator,
) -> Result<MergePlan> {
    let as_it_is = MergeOptions {
        output: path.to_path_buf(),
        layout: LayoutPolicy::Keep,
        compress: Compress::default(),
        shuffle: Shuffle::Keep,
        chunk: None,
        max_output_len_bytes: Some(u64::MAX),
        skip_bad: false,
        derived: Vec::new(),
        extendible: Extendible::Never,
        contiguous: Contiguous::default(),
        empty: Empty::default(),
        rank_1: false,
        link: Link::No,
        conventions: ConventionOptions { convention: Some(Choice::None), ..ConventionOptions::default() },
        join: JoinOptions { add_columns: Vec::new(), ..options.join.clone() },
        selection,
        subset: Vec::new(),
        rows: None,
        ignore_digests: true,
        ..options.clone()
    };
    plan_collective(&[path.to_path_buf()], &as_it_is, watch, ranks).map_err(|error| match error {
        MergeError::BadInputs { mut bad } if bad.len() == 1 => MergeError::Hdf5(bad.swap_remove(0).error),
        error => error,
    })
}

/// Collective. Combines the reports of all ranks, on every rank.
pub(crate) fn together(local: VerifyReport, ranks: &dyn Communicator) -> Result<VerifyReport> {
    let sent: Vec<SentMismatch> = local.mismatches.iter().map(SentMismatch::from).collect();
    let counts = [local.datasets, local.linked, local.objects, local.compared_len_bytes];
    let mut report = VerifyReport { elapsed_s: local.elapsed_s, ..VerifyReport::default() };
    for (counts, mismatches) in ranks.all_gather_values(VERIFYING, &(counts, sent))? {
        let [datasets, linked, objects, compared_len_bytes] = counts;
        report.datasets += datasets;
        report.linked += linked;
        report.objects += objects;
        report.compared_len_bytes += compared_len_bytes;
        report.mismatches.extend(mismatches.into_iter().map(Mismatch::from));
    }
    report.mismatches.sort_by(|a, b| (&a.path, a.row, &a.what).cmp(&(&b.path, b.row, &b.what)));
    // Several boxes may differ in the same row.
    report.mismatches.dedup();
    Ok(report)
}

/// A [`Mismatch`] as sent between ranks, with the path as bytes because it need not be UTF-8.
#[derive(Serialize, Deserialize)]
struct SentMismatch {
    path: String,
    what: String,
    row: Option<u64>,
    input: Option<Vec<u8>>,
}

impl From<&Mismatch> for SentMismatch {
    fn from(Mismatch { path, what, row, input }: &Mismatch) -> Self {
        let input = input.as_ref().map(|input| input.as_os_str().as_bytes().to_vec());
        Self { path: path.clone(), what: what.clone(), row: *row, input }
    }
}

impl From<SentMismatch> for Mismatch {
    fn from(SentMismatch { path, what, row, input }: SentMismatch) -> Self {
        Self { path, what, row, input: input.map(|input| OsString::from_vec(input).into()) }
    }
}
