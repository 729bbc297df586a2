//! Strings in canonical bytes, without the padding of their type.

use super::{CanonicalElements, NULL_STRING};
use crate::model::TypeClass;

/// Decodes strings from canonical bytes of a string type.
pub fn strings_of(class: &TypeClass, canonical: &[u8]) -> Option<Vec<String>> {
    let elements = CanonicalElements::new(class, canonical);
    elements.map(|element| string(class, element?).map(|text| String::from_utf8_lossy(text).into_owned())).collect()
}

/// Returns the bytes of one string in canonical bytes, without padding.
pub fn string<'a>(class: &TypeClass, element: &'a [u8]) -> Option<&'a [u8]> {
    match class {
        TypeClass::VariableString { .. } => {
            let (len, text) = element.split_first_chunk::<8>()?;
            Some(if u64::from_le_bytes(*len) == NULL_STRING { b"" } else { text })
        }
        TypeClass::FixedString { padding, .. } => {
            let end = element.iter().position(|&byte| byte == 0).unwrap_or(element.len());
            let text = &element[..end];
            let is_space_padded = *padding == 2;
            let trimmed = text.iter().rposition(|&byte| byte != b' ').map_or(0, |last| last + 1);
            Some(if is_space_padded { &text[..trimmed] } else { text })
        }
        _ => None,
    }
}
