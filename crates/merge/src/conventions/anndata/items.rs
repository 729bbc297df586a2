//! Elements of arrays as values, which anndata compares for arrays of different kinds.
//!
//! Source: `equal` of `anndata._core.merge`. Invariant: a missing element equals only another missing one.

use super::tree::CombineResult;
use super::value::{ElementArray, ElementContent, InputElement, NULLABLE, is_kind};
use crate::schema::attribute::string;
use raddle_hdf5::logical::CanonicalElements;
use raddle_hdf5::model::TypeClass;
use raddle_hdf5::number::NumberType;

/// Value of an element.
#[derive(Debug, Clone, PartialEq)]
enum Item {
    Missing,
    Text(Vec<u8>),
    Number(Scalar),
}

/// Number, exact wherever 64-bit integers and floats can be compared exactly.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Scalar {
    Integer(i64),
    Float(f64),
}

impl Scalar {
    /// Decodes a number of any type.
    pub fn of(class: &TypeClass, bytes: &[u8]) -> Option<Self> {
        let class = match class {
            TypeClass::Enum { base, .. } => base,
            class => class,
        };
        let number = NumberType::of(class)?;
        let (mut integers, mut floats) = (Vec::new(), Vec::new());
        if number.is_integer() {
            number.decode_integers(bytes, &mut integers).then_some(())?;
            return integers.first().map(|&integer| Self::Integer(integer));
        }
        number.decode_floats(bytes, &mut integers, &mut floats);
        floats.first().map(|&float| match float.fract() == 0.0 && float.abs() < 9.0e18 {
            true => Self::Integer(float as i64),
            false => Self::Float(float),
        })
    }
}

impl Item {
    fn of(class: &TypeClass, bytes: &[u8]) -> Option<Self> {
        if let Some(text) = string(class, bytes) {
            return Some(Self::Text(text.to_vec()));
        }
        Some(match Scalar::of(class, bytes)? {
            Scalar::Float(float) if float.is_nan() => Self::Missing,
            number => Self::Number(number),
        })
    }
}

/// Returns whether anndata considers an element equal to that of the first input. One of the two is a categorical or a
/// nullable array outside of a data frame. Their types do not matter.
pub(super) fn equal_items(later: &InputElement<'_>, first: &InputElement<'_>) -> CombineResult<bool> {
    let (kind, first_kind) = (later.node.encoding(), first.node.encoding());
    let (Some((dims, items)), Some((first_dims, first_items))) = (items(later), items(first)) else {
        return match [&kind, &first_kind]
            .into_iter()
            .any(|kind| ["dataframe", "csr_matrix", "csc_matrix"].contains(&kind.as_str()))
        {
            true => Ok(false),
            false => later.node.refuse(first_kind.clone(), format!("{kind}; leave it out with --exclude")),
        };
    };
    if dims != first_dims || items != first_items {
        return Ok(false);
    }
    // numpy also compares the types of arrays, which depend on how pandas converts the other one.
    if kind == "array" && !items.iter().all(|item| matches!(item, Item::Text(_))) {
        return later.node.refuse(first_kind, format!("equal values in an {kind}; leave it out with --exclude"));
    }
    Ok(true)
}

/// Returns the sizes and the values of an array, a categorical or a nullable array.
fn items(element: &InputElement<'_>) -> Option<(Vec<u64>, Vec<Item>)> {
    let all = |array: &ElementArray<'_>| -> Option<Vec<Item>> {
        CanonicalElements::new(&array.class, &array.values).map(|bytes| Item::of(&array.class, bytes?)).collect()
    };
    let kind = element.node.encoding();
    match &element.content {
        ElementContent::Array(array) => Some((array.dims.clone(), all(array)?)),
        ElementContent::Parts(_) if kind == "categorical" => {
            let (codes, categories) = (element.part(b"codes")?, all(element.part(b"categories")?)?);
            let mut numbers = Vec::new();
            NumberType::of(&codes.class)?.decode_integers(&codes.values, &mut numbers).then_some(())?;
            let item = |number: &i64| {
                usize::try_from(*number).ok().and_then(|at| categories.get(at).cloned()).unwrap_or(Item::Missing)
            };
            Some((codes.dims.clone(), numbers.iter().map(item).collect()))
        }
        ElementContent::Parts(_) if is_kind(&NULLABLE, &kind) => {
            let (values, mask) = (element.part(b"values")?, element.part(b"mask")?);
            let mut items = all(values)?;
            items
                .iter_mut()
                .enumerate()
                .filter(|(at, _)| mask.is_true(*at))
                .for_each(|(_, item)| *item = Item::Missing);
            Some((values.dims.clone(), items))
        }
        _ => None,
    }
}
