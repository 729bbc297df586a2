//! Rows of the output that are copied from inputs with digests of their own. Their digests are known before they are
//! read.
//!
//! Invariant: rows are known only if they are in the output in order and as they are stored in the inputs.

use super::{ColumnDigests, DigestForm};
use crate::plan::MergePlan;
use crate::schema::ColumnIndex;
use raddle_core::digest::Digest;
use std::ops::Range;

/// Digest of a run of rows of the output.
#[derive(Debug, Clone)]
pub struct RowsDigest {
    pub(super) rows: Range<u64>,
    pub(super) digest: Digest,
}

/// Digests of runs of rows, from canonical bytes that arrive in order.
#[derive(Debug)]
pub struct CanonicalRuns {
    runs: Vec<RowsDigest>,
    /// Number of runs that are complete.
    at: usize,
}

impl CanonicalRuns {
    /// Adds rows of one input, the first of which is row `start` of the output.
    pub fn add(&mut self, start: u64, canonical: &[u8]) {
        while self.runs.get(self.at).is_some_and(|run| run.rows.end <= start) {
            self.at += 1;
        }
        if let Some(run) = self.runs.get_mut(self.at).filter(|run| run.rows.start <= start) {
            run.digest = run.digest.then(Digest::of(canonical));
        }
    }

    /// Returns the digests.
    pub fn finish(self) -> Vec<RowsDigest> {
        self.runs
    }
}

/// Rows of a column whose digest is known from inputs.
#[derive(Debug, Clone)]
pub(super) struct KnownRows {
    pub(super) rows: Range<u64>,
    pub(super) inputs: Range<usize>,
    pub(super) digest: Digest,
}

/// Returns the offsets in the values of a column at which runs of rows with known digests begin and end.
pub fn cuts(plan: &MergePlan, column: ColumnIndex) -> Vec<u64> {
    let row_len_bytes = plan.row_len_bytes(column);
    let known = known_rows(plan, column, DigestForm::Values);
    known.flat_map(|known| [known.rows.start * row_len_bytes, known.rows.end * row_len_bytes]).collect()
}

/// Returns the digests of the runs of rows of which inputs have digests, too; `between` returns the digest of a run of
/// bytes in the output.
pub fn runs(plan: &MergePlan, column: ColumnIndex, between: impl Fn(Range<u64>) -> Option<Digest>) -> Vec<RowsDigest> {
    let row_len_bytes = plan.row_len_bytes(column);
    let run = |known: KnownRows| {
        let digest = between(known.rows.start * row_len_bytes..known.rows.end * row_len_bytes)?;
        Some(RowsDigest { rows: known.rows, digest })
    };
    known_rows(plan, column, DigestForm::Values).filter_map(run).collect()
}

/// Returns empty digests of the runs of rows of which inputs have digests of canonical bytes.
pub fn canonical_runs(plan: &MergePlan, column: ColumnIndex) -> CanonicalRuns {
    let known = known_rows(plan, column, DigestForm::Canonical);
    let empty = known.map(|known| RowsDigest { rows: known.rows, digest: Digest::default() });
    CanonicalRuns { runs: empty.collect(), at: 0 }
}

/// Returns the runs of rows of a column that are copied from inputs with digests of this form.
pub(super) fn known_rows(plan: &MergePlan, column: ColumnIndex, form: DigestForm) -> impl Iterator<Item = KnownRows> {
    let combined = match is_copied(plan, column) {
        true => plan.input_digests.of_dataset(plan.schema.column_path(column)),
        false => &[],
    };
    let facts = &plan.schema.columns[column as usize].facts;
    let rows_of = move |inputs: Range<usize>| inputs.map(|input| facts[input].rows).sum::<u64>();
    let (row_len_bytes, total) = (plan.row_len_bytes(column), plan.columns[column as usize].dims.first().copied());
    let is_joined = combined.is_empty() || Some(rows_of(0..facts.len())) == total;
    let (mut input, mut row) = (0, 0);
    combined.iter().filter(move |one| is_joined && one.form == form).filter_map(move |one| {
        row += rows_of(input..one.inputs.start);
        let rows = row..row + rows_of(one.inputs.clone());
        (input, row) = (one.inputs.end, rows.end);
        let len_bytes = (rows.end - rows.start).saturating_mul(row_len_bytes);
        let known = KnownRows { rows, inputs: one.inputs.clone(), digest: one.digest };
        (len_bytes > 0 && len_bytes == one.digest.len_bytes()).then_some(known)
    })
}

/// Returns whether a column consists of the rows of the inputs, one after another and as they are stored.
fn is_copied(plan: &MergePlan, column: ColumnIndex) -> bool {
    let joined = &plan.schema.columns[column as usize];
    let is_computed = plan.derived.has(column) || carried(plan, column).is_some();
    // References to rows change if the rows of other inputs precede them.
    let is_alone = plan.inputs.len() == 1;
    !is_computed
        && (is_alone || joined.axis == 0 && !joined.model().datatype.class.has_reference())
        && joined.conversion.is_none()
        && joined.trims.is_none()
        && joined.runs.is_none()
        && joined.boxes.is_none()
        && joined.templates.iter().all(|template| template.datatype == joined.model().datatype)
}

/// Returns the digests of a column that its file already contains and that are kept.
pub fn carried(plan: &MergePlan, column: u32) -> Option<&ColumnDigests> {
    let of_file = plan.carried.as_ref().filter(|_| !plan.derived.has(column))?;
    let digests = of_file.datasets.get(plan.schema.column_path(column))?.digests.as_ref();
    // A virtual dataset gets values when its file is rewritten.
    digests.filter(|digests| digests.form != DigestForm::Linked)
}
