//! Elements that several inputs have, such as the halos of tiles: their values must agree.
//!
//! Invariant: every element of every overlap is compared before anything is written. Values agree if their bytes are
//! equal, or if they are equal numbers or both not numbers.

use crate::error::{MergeError, Result};
use crate::options::Watch;
use crate::plan::MergePlan;
use crate::schema::boxes::{BoxLayout, BoxOverlap};
use crate::schema::join::{Difference, DifferenceKind, describe_value};
use crate::schema::{ColumnIndex, display_path};
use crate::write::values::{ColumnReader, open_pool};
use raddle_core::parallel::for_each;
use raddle_core::plan::extent::{BoxTarget, Coordinates, Extent};
use raddle_core::ranks::communicator::{Communicator, CommunicatorExt};
use raddle_hdf5::model::{Dataspace, TypeClass};
use raddle_hdf5::number::NumberType;
use std::sync::{Mutex, PoisonError};

/// Number of bytes that are compared at once.
const BLOCK_LEN_BYTES: u64 = 4 << 20;
/// Number of differences after which a comparison ends.
const MAX_REPORTED: usize = 20;

/// Operation named in errors on other ranks.
const COMPARING: &str = "compare overlaps";

/// Collective. Compares the overlaps of all inputs, each on one rank.
///
/// # Errors
/// [`MergeError::Differences`] with the first element that differs in each of the first overlaps that disagree, on every
/// rank.
pub(crate) fn check(plan: &MergePlan, watch: &Watch<'_>, ranks: &dyn Communicator) -> Result<()> {
    let local = ranks.agree(COMPARING, compare_share(plan, watch, ranks))?;
    let mut differences = ranks.all_gather_values(COMPARING, &local)?.concat();
    differences.sort_by(|left, right| (&left.path, &left.inputs).cmp(&(&right.path, &right.inputs)));
    differences.truncate(MAX_REPORTED);
    match differences.is_empty() {
        true => Ok(()),
        false => Err(MergeError::Differences { differences }),
    }
}

/// Compares the overlaps that are assigned to this rank, and returns the first element that differs in each of the first
/// overlaps that disagree.
fn compare_share(plan: &MergePlan, watch: &Watch<'_>, ranks: &dyn Communicator) -> Result<Vec<Difference>> {
    let layouts = (0..).zip(&plan.schema.columns).filter_map(|(column, one)| Some((column, one.boxes.as_deref()?)));
    let all = layouts.flat_map(|(column, layout)| layout.overlaps.iter().map(move |overlap| (column, layout, overlap)));
    let local_overlaps: Vec<(ColumnIndex, &BoxLayout, &BoxOverlap)> =
        all.skip(ranks.rank()).step_by(ranks.size()).collect();
    if local_overlaps.is_empty() {
        return Ok(Vec::new());
    }
    let pool = open_pool(plan);
    let found = Mutex::new(Vec::new());
    let reader = || ColumnReader::new(plan, &pool);
    for_each(
        &local_overlaps,
        plan.options.jobs.max(1),
        watch.cancel,
        reader,
        |reader, (column, layout, overlap)| -> Result<()> {
            let is_enough = |found: &Vec<Difference>| found.len() >= MAX_REPORTED;
            if is_enough(&found.lock().unwrap_or_else(PoisonError::into_inner)) {
                return Ok(());
            }
            if let Some(difference) = compare(plan, reader, *column, layout, overlap)? {
                found.lock().unwrap_or_else(PoisonError::into_inner).push(difference);
            }
            Ok(())
        },
    )?;
    Ok(found.into_inner().unwrap_or_else(PoisonError::into_inner))
}

/// Compares the values of both inputs of an overlap, block by block.
fn compare(
    plan: &MergePlan,
    reader: &mut ColumnReader<'_>,
    column: ColumnIndex,
    layout: &BoxLayout,
    overlap: &BoxOverlap,
) -> Result<Option<Difference>> {
    let class = &plan.schema.columns[column as usize].model().datatype.class;
    let element_len_bytes = class.len_bytes();
    let (mut left, mut right) = (Vec::new(), Vec::new());
    for block in blocks(&overlap.extent, (BLOCK_LEN_BYTES / element_len_bytes.max(1)).max(1)) {
        for (input, values) in [(overlap.owner, &mut left), (overlap.input, &mut right)] {
            values.clear();
            values.resize((block.element_count().unwrap_or(0) * element_len_bytes) as usize, 0);
            let origin = Coordinates::from_elem(0, block.rank());
            let target = BoxTarget { bytes: values, shape: &block.count, origin: &origin };
            reader.read_piece(column, input, &layout.source(input, &block), target)?;
        }
        let Some(at) = first_difference(class, &left, &right) else { continue };
        let mut position = vec![0; block.rank()];
        let mut rest = at as u64;
        for axis in (0..block.rank()).rev() {
            position[axis] = block.start[axis] + rest % block.count[axis];
            rest /= block.count[axis];
        }
        let element = |values: &[u8]| {
            let start = at * element_len_bytes as usize;
            describe_value(class, &Dataspace::Scalar, &values[start..start + element_len_bytes as usize])
        };
        let position = position.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
        let owner = plan.inputs[overlap.owner as usize].path.display();
        return Ok(Some(Difference {
            path: display_path(plan.schema.column_path(column)),
            kind: DifferenceKind::Overlap,
            expected: format!("{} at ({position}) of the output, as in {owner}", element(&left)),
            found: element(&right),
            inputs: vec![overlap.input],
        }));
    }
    Ok(None)
}

/// Cuts a box into blocks of at most `max_elements` elements, or of one element.
fn blocks(extent: &Extent, max_elements: u64) -> Vec<Extent> {
    let mut blocks = vec![extent.clone()];
    for axis in 0..extent.rank() {
        let inner: u64 = extent.count[axis + 1..].iter().product();
        let along = (max_elements / inner.max(1)).max(1);
        if blocks.iter().all(|block| block.element_count().is_some_and(|count| count <= max_elements)) {
            break;
        }
        let cut = |block: &Extent| {
            let (start, end, block) = (block.start[axis], block.end(axis), block.clone());
            (start..end).step_by(along as usize).map(move |from| {
                let mut part = block.clone();
                (part.start[axis], part.count[axis]) = (from, along.min(end - from));
                part
            })
        };
        blocks = blocks.iter().flat_map(cut).collect();
    }
    blocks
}

/// Returns the number of the first element that differs.
fn first_difference(class: &TypeClass, left: &[u8], right: &[u8]) -> Option<usize> {
    if left == right {
        return None;
    }
    let element_len_bytes = class.len_bytes() as usize;
    let number = NumberType::of(class);
    let value = |element: &[u8]| {
        let (mut integers, mut floats) = (Vec::new(), Vec::new());
        number?.decode_floats(element, &mut integers, &mut floats);
        floats.first().copied()
    };
    let is_float = matches!(number, Some(NumberType::Float { .. }));
    let agree = |left: &[u8], right: &[u8]| match (value(left), value(right)) {
        (Some(left), Some(right)) if is_float => left == right || left.is_nan() && right.is_nan(),
        _ => false,
    };
    let mut pairs = left.chunks(element_len_bytes).zip(right.chunks(element_len_bytes));
    pairs.position(|(left, right)| left != right && !agree(left, right))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_agree_by_value() {
        let class = NumberType::Float { len_bytes: 8, is_big_endian: false }.class();
        let bytes = |values: &[f64]| values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>();
        let other_nan = f64::from_bits(f64::NAN.to_bits() | 1);
        assert_eq!(first_difference(&class, &bytes(&[0.0, f64::NAN]), &bytes(&[-0.0, other_nan])), None);
        assert_eq!(first_difference(&class, &bytes(&[0.0, 1.0, 2.0]), &bytes(&[0.0, 1.0, 3.0])), Some(2));
        assert_eq!(first_difference(&class, &bytes(&[f64::NAN]), &bytes(&[1.0])), Some(0));
    }

    proptest! {
        #[test]
        fn blocks_cover_a_box(axes in prop::collection::vec((0_u64..5, 1_u64..6), 1..4), max in 1_u64..30) {
            let (start, count): (Vec<u64>, Vec<u64>) = axes.into_iter().unzip();
            let extent = Extent::new(&start, &count);
            let blocks = blocks(&extent, max);
            let sum: u64 = blocks.iter().map(|block| block.element_count().unwrap()).sum();
            prop_assert_eq!(sum, extent.element_count().unwrap());
            for (at, block) in blocks.iter().enumerate() {
                prop_assert!(extent.contains(block) && block.element_count().unwrap() <= max);
                prop_assert!(blocks[..at].iter().all(|other| other.intersection(block).is_none()));
            }
        }
    }
}
