//! Descriptions of two unequal values, which are never the same: if both values begin alike, the part that differs is
//! shown.
//!
//! Invariant: the two descriptions are only equal if the values are equal.

use super::describe;
use super::describe_value::{describe_bytes, describe_element, describe_text, describe_value, members, text_of};
use raddle_hdf5::logical::CanonicalElements;
use raddle_hdf5::model::{Dataspace, TypeClass};

/// A value with its type and extent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct TypedValue<'a> {
    pub class: &'a TypeClass,
    pub dataspace: &'a Dataspace,
    /// Canonical bytes of the value.
    pub canonical: &'a [u8],
}

/// Describes both values as `name = value`, or as `value` if `name` is empty because the path identifies them.
pub(super) fn contrast(name: &str, left: TypedValue<'_>, right: TypedValue<'_>) -> (String, String) {
    let (place, left, right) = differing(left, right);
    let place = format!("{name}{place}");
    let placed = |text: String| if place.is_empty() { text } else { format!("{} = {text}", place.trim_start()) };
    (placed(left), placed(right))
}

/// Describes both values. Returns the place of the described part first, which is empty if whole values are described.
fn differing(left: TypedValue<'_>, right: TypedValue<'_>) -> (String, String, String) {
    let mut place = String::new();
    let texts = [left, right].map(|value| describe_value(value.class, value.dataspace, value.canonical));
    if texts[0] != texts[1] {
        let [left, right] = texts;
        return (place, left, right);
    }
    let [text, _] = texts;
    if left.class != right.class {
        let named = |class: &TypeClass| format!("{text} ({})", describe(class));
        let (left, right) = (named(left.class), named(right.class));
        // For some types the description omits the difference, such as the padding of numbers.
        let right = if left == right { format!("{text} (different datatype)") } else { right };
        return (place, left, right);
    }
    if left.dataspace != right.dataspace {
        let [left, right] = [left, right].map(|value| format!("{text} ({})", extent(value.dataspace)));
        return (place, left, right);
    }
    let is_array = matches!(left.dataspace, Dataspace::Simple { .. });
    let found = match is_array {
        true => in_items(left.class, left.canonical, right.canonical, &mut place),
        false => in_element(left.class, left.canonical, right.canonical, &mut place),
    };
    let (left, right) = found.unwrap_or_else(|| in_bytes(left.canonical, right.canonical));
    (place, left, right)
}

fn extent(dataspace: &Dataspace) -> String {
    match dataspace {
        Dataspace::Null => "null".to_owned(),
        Dataspace::Scalar => "scalar".to_owned(),
        Dataspace::Simple { dims, max_dims } => {
            let size = |&size: &u64| if size == u64::MAX { "unlimited".to_owned() } else { size.to_string() };
            let sizes = |dims: &[u64]| dims.iter().map(size).collect::<Vec<_>>().join(" x ");
            format!("{} of at most {}", sizes(dims), sizes(max_dims))
        }
    }
}

/// Describes two elements of one class and appends the position of the difference to `place`; `None` if none
/// is found.
fn in_element(class: &TypeClass, left: &[u8], right: &[u8], place: &mut String) -> Option<(String, String)> {
    let (left_text, right_text) = (describe_element(class, left), describe_element(class, right));
    if left_text != right_text {
        return Some((left_text, right_text));
    }
    match class {
        TypeClass::Compound { .. } => {
            let pairs = members(class, left)?.into_iter().zip(members(class, right)?);
            let ((member, left), (_, right)) = { pairs }.find(|((_, left), (_, right))| left != right)?;
            place.push('.');
            place.push_str(&crate::schema::display_path(&member.name));
            in_element(&member.class, left, right, place).or_else(|| Some(in_bytes(left, right)))
        }
        TypeClass::Array { base, .. } => in_items(base, left, right, place),
        // Skips the number of items.
        TypeClass::Sequence { base, .. } => in_items(base, left.get(8..)?, right.get(8..)?, place),
        TypeClass::FixedString { .. } | TypeClass::VariableString { .. } => {
            let (left, right) = (text_of(class, left)?, text_of(class, right)?);
            if left == right {
                return None;
            }
            let start = first_difference(left, right);
            // Avoids splitting a character.
            let start = (0..4)
                .map(|back| start.saturating_sub(back))
                .find(|&at| left.get(at).is_none_or(|byte| byte & 0xc0 != 0x80));
            let start = start.unwrap_or(0);
            place.push_str(&format!(" from byte {start}"));
            Some((describe_text(&left[start..]), describe_text(&right[start..])))
        }
        _ => None,
    }
}

/// Like [`in_element`], for the items that the bytes hold.
fn in_items(class: &TypeClass, left: &[u8], right: &[u8], place: &mut String) -> Option<(String, String)> {
    let (mut left, mut right) = (CanonicalElements::new(class, left), CanonicalElements::new(class, right));
    for index in 0_u64.. {
        let (left, right) = match (left.next(), right.next()) {
            (None, None) => return None,
            (left, right) if left == right => continue,
            (left, right) => (left.flatten(), right.flatten()),
        };
        place.push_str(&format!("[{index}]"));
        return Some(match (left, right) {
            (Some(left), Some(right)) => in_element(class, left, right, place).unwrap_or_else(|| in_bytes(left, right)),
            (left, right) => {
                let describe_item =
                    |item: Option<&[u8]>| item.map_or("nothing".to_owned(), |item| describe_element(class, item));
                (describe_item(left), describe_item(right))
            }
        });
    }
    None
}

/// Describes the bytes from the first difference.
fn in_bytes(left: &[u8], right: &[u8]) -> (String, String) {
    let start = first_difference(left, right);
    (describe_bytes(&left[start..]), describe_bytes(&right[start..]))
}

fn first_difference(left: &[u8], right: &[u8]) -> usize {
    left.iter().zip(right).take_while(|(left, right)| left == right).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use raddle_hdf5::model::{BitRange, ByteOrder, Member};
    use std::sync::Arc;

    fn integer(signed: bool, padding: (u8, u8)) -> TypeClass {
        TypeClass::Integer {
            len_bytes: 1,
            order: ByteOrder::Little,
            signed,
            bits: BitRange { offset: 0, count: 8 },
            padding,
        }
    }

    fn string(len_bytes: usize) -> TypeClass {
        TypeClass::FixedString { len_bytes: len_bytes as u32, padding: 1, charset: 0 }
    }

    fn contrasted(class: &TypeClass, dataspace: &Dataspace, left: &[u8], right: &[u8]) -> (String, String) {
        let value = |canonical| TypedValue { class, dataspace, canonical };
        contrast("", value(left), value(right))
    }

    fn row(count: u64) -> Dataspace {
        Dataspace::Simple { dims: vec![count], max_dims: vec![count] }
    }

    fn texts(left: &str, right: &str) -> (String, String) {
        (left.to_owned(), right.to_owned())
    }

    #[test]
    fn beginnings_are_enough_where_they_differ() {
        let class = integer(true, (0, 0));
        assert_eq!(contrasted(&class, &Dataspace::Scalar, &[1], &[2]), texts("1", "2"));
        assert_eq!(contrasted(&class, &row(2), &[1, 2], &[1, 3]), texts("[1, 2]", "[1, 3]"));
    }

    #[test]
    fn what_differs_further_on_is_found() {
        let class = integer(true, (0, 0));
        let (left, mut right) = (vec![7; 300], vec![7; 300]);
        right[200] = 8;
        assert_eq!(contrasted(&class, &row(300), &left, &right), texts("[200] = 7", "[200] = 8"));
        let text = |end: &str| [&[b'x'; 99][..], end.as_bytes()].concat();
        let (left, right) = (text("é1"), text("è2"));
        assert_eq!(
            contrasted(&string(102), &Dataspace::Scalar, &left, &right),
            texts("from byte 99 = \"é1\"", "from byte 99 = \"è2\"")
        );
        let member =
            |name: &str, offset_bytes, class| Member { name: name.into(), offset_bytes, class: Arc::new(class) };
        let members = (0..9).map(|at| member(&format!("m{at}"), at * 110, string(110))).collect();
        let class = TypeClass::Compound { len_bytes: 990, members };
        let (left, mut right) = (vec![b'a'; 990], vec![b'a'; 990]);
        right[7 * 110 + 70] = b'b';
        let (found, other) = contrasted(&class, &Dataspace::Scalar, &left, &right);
        assert!(
            found.starts_with(".m7 from byte 70 = \"aaa") && other.starts_with(".m7 from byte 70 = \"baa"),
            "{found} {other}"
        );
        // A difference that the text does not show: bytes after its end.
        let class = TypeClass::FixedString { len_bytes: 4, padding: 0, charset: 0 };
        assert_eq!(contrasted(&class, &Dataspace::Scalar, b"a\0bc", b"a\0de"), texts("bytes 6263", "bytes 6465"));
    }

    #[test]
    fn parts_belong_to_the_name() {
        let (class, space) = (integer(true, (0, 0)), row(300));
        let (left, mut right) = (vec![7; 300], vec![7; 300]);
        right[5] = 8;
        let value = |canonical| TypedValue { class: &class, dataspace: &space, canonical };
        assert_eq!(contrast("run", value(&left), value(&right)), texts("run[5] = 7", "run[5] = 8"));
        assert_eq!(contrast("run", value(&right[5..6]), value(&left[5..6])), texts("run = [8]", "run = [7]"));
    }

    #[test]
    fn the_meaning_of_bytes_is_shown_where_the_values_are_alike() {
        let value = |class, dataspace, canonical| TypedValue { class, dataspace, canonical };
        let (scalar, signed, unsigned) = (Dataspace::Scalar, integer(true, (0, 0)), integer(false, (0, 0)));
        let (left, right) = contrast("", value(&signed, &scalar, &[1]), value(&unsigned, &scalar, &[1]));
        assert_eq!((left, right), texts("1 (int8 little-endian)", "1 (uint8 little-endian)"));
        let padded = integer(true, (1, 1));
        let (left, right) = contrast("", value(&signed, &scalar, &[1]), value(&padded, &scalar, &[1]));
        assert_eq!((left, right), texts("1 (int8 little-endian)", "1 (different datatype)"));
        let growing = Dataspace::Simple { dims: vec![1], max_dims: vec![u64::MAX] };
        let (left, right) = contrast("", value(&signed, &row(1), &[1]), value(&signed, &growing, &[1]));
        assert_eq!((left, right), texts("[1] (1 of at most 1)", "[1] (1 of at most unlimited)"));
    }
}
