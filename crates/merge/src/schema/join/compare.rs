//! Comparison of an object of an input with the first object of the same path.
//!
//! Attributes are compared elsewhere, because they may differ in several ways at once. Invariant: at most one
//! difference is found, the one that makes the others meaningless: datatype before rank, rank before dimensions.

use super::contrast::{TypedValue, contrast};
use super::{DifferenceKind, describe_both};
use crate::schema::{Role, display_path};
use raddle_hdf5::model::{Dataset, Dataspace};

/// Kind, expected value and found value of a difference between two objects, if there is one.
pub(super) type Mismatch = Option<(DifferenceKind, String, String)>;

/// Compares datasets that are to be concatenated along `axis`.
pub(super) fn compare_datasets(expected: &Dataset, found: &Dataset, axis: usize) -> Mismatch {
    if !expected.datatype.has_same_elements(&found.datatype) {
        let (expected, found) = describe_both(&expected.datatype.class, &found.datatype.class);
        return Some((DifferenceKind::Datatype, expected, found));
    }
    let (left, right) = (expected.dataspace.dims(), found.dataspace.dims());
    if left.len() != right.len() {
        return Some((DifferenceKind::Rank, left.len().to_string(), right.len().to_string()));
    }
    let differs = |(at, (left, right)): (usize, (&u64, &u64))| at != axis && left != right;
    if left.iter().zip(right).enumerate().any(differs) {
        let words = |dims: &[u64]| {
            let size = |(at, size): (usize, &u64)| if at == axis { "rows".to_owned() } else { size.to_string() };
            format!("({})", dims.iter().enumerate().map(size).collect::<Vec<_>>().join(", "))
        };
        return Some((DifferenceKind::TrailingDimensions, words(left), words(right)));
    }
    None
}

/// Compares objects that the output has only once for all inputs.
pub(super) fn compare_roles<'d>(expected: &'d Role, found: &'d Role) -> Mismatch {
    let kind = |kind| Some((kind, expected.word().to_owned(), found.word().to_owned()));
    match (expected, found) {
        (Role::Group { .. }, Role::Group { .. }) => None,
        (Role::Constant { dataset: left, value: a, .. }, Role::Constant { dataset: right, value: b, .. }) => {
            let is_null = |dataset: &Dataset| dataset.dataspace == Dataspace::Null;
            if is_null(left) != is_null(right) {
                kind(DifferenceKind::Kind)
            } else if left.datatype != right.datatype {
                let (left, right) = describe_both(&left.datatype.class, &right.datatype.class);
                Some((DifferenceKind::Datatype, left, right))
            } else {
                let typed = |dataset: &'d Dataset, canonical: &'d [u8]| TypedValue {
                    class: &dataset.datatype.class,
                    dataspace: &dataset.dataspace,
                    canonical,
                };
                (a != b).then(|| {
                    let (expected, found) = contrast("", typed(left, a), typed(right, b));
                    (DifferenceKind::Value, expected, found)
                })
            }
        }
        (Role::CommittedDatatype(left), Role::CommittedDatatype(right)) => (left != right).then(|| {
            let (expected, found) = describe_both(left, right);
            (DifferenceKind::Datatype, expected, found)
        }),
        (Role::HardLink { target: left }, Role::HardLink { target: right })
        | (Role::SoftLink(left), Role::SoftLink(right)) => {
            (left != right).then(|| (DifferenceKind::LinkTarget, display_path(left), display_path(right)))
        }
        (Role::ExternalLink { file: a, path: in_a }, Role::ExternalLink { file: b, path: in_b }) => {
            let words = |file: &[u8], path: &[u8]| format!("{}:{}", display_path(file), display_path(path));
            ((a, in_a) != (b, in_b)).then(|| (DifferenceKind::LinkTarget, words(a, in_a), words(b, in_b)))
        }
        (left, right) if std::mem::discriminant(left) != std::mem::discriminant(right) => kind(DifferenceKind::Kind),
        (left, right) => {
            if left == right {
                None
            } else {
                kind(DifferenceKind::LinkTarget)
            }
        }
    }
}
