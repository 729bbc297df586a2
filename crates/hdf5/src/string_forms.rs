//! Normalisation of fixed-length strings to the form in which HDF5 readers show them: padded with zeros, whatever the
//! padding in the file.
//!
//! libhdf5 converts them on reading: bytes after a terminator, and trailing blanks of space-padded strings, are not
//! shown.

use crate::model::TypeClass;

/// Constants of `H5T_str_t`.
const NULL_TERMINATED: u8 = 0;
const SPACE_PADDED: u8 = 2;

/// A string inside an element, or several consecutive strings of the same kind.
#[derive(Debug, Clone, Copy)]
struct Strings {
    offset: usize,
    len: usize,
    count: usize,
    space_padded: bool,
}

/// Positions of the strings in an element that have to be normalised.
#[derive(Debug, Default)]
pub struct StringForms {
    element_len: usize,
    strings: Vec<Strings>,
}

impl StringForms {
    /// Finds the strings in elements of `class`.
    pub fn of(class: &TypeClass) -> Self {
        let mut forms = Self { element_len: class.len_bytes() as usize, strings: Vec::new() };
        forms.add(class, 0);
        forms
    }

    fn add(&mut self, class: &TypeClass, offset: usize) {
        match class {
            TypeClass::FixedString { len_bytes, padding: padding @ (NULL_TERMINATED | SPACE_PADDED), .. } => {
                let space_padded = *padding == SPACE_PADDED;
                self.strings.push(Strings { offset, len: *len_bytes as usize, count: 1, space_padded });
            }
            TypeClass::Compound { members, .. } => {
                members.iter().for_each(|member| self.add(&member.class, offset + member.offset_bytes as usize));
            }
            TypeClass::Array { base, dims } => {
                let (len, count) = (base.len_bytes() as usize, dims.iter().product::<u32>() as usize);
                if let TypeClass::FixedString { padding: padding @ (NULL_TERMINATED | SPACE_PADDED), .. } = **base {
                    self.strings.push(Strings { offset, len, count, space_padded: padding == SPACE_PADDED });
                } else {
                    let before = self.strings.len();
                    self.add(base, offset);
                    // Arrays without such strings, which are the usual ones, are examined only once.
                    if self.strings.len() > before {
                        (1..count).for_each(|item| self.add(base, offset + item * len));
                    }
                }
            }
            _ => {}
        }
    }

    /// Normalises all elements of `values`.
    pub fn apply(&self, values: &mut [u8]) {
        if self.strings.is_empty() || self.element_len == 0 {
            return;
        }
        for element in values.chunks_exact_mut(self.element_len) {
            for strings in &self.strings {
                let all = &mut element[strings.offset..strings.offset + strings.len * strings.count];
                all.chunks_exact_mut(strings.len.max(1)).for_each(|text| show(text, strings.space_padded));
            }
        }
    }
}

fn show(text: &mut [u8], space_padded: bool) {
    let end = match space_padded {
        true => text.iter().rposition(|&byte| byte != b' ').map_or(0, |last| last + 1),
        false => text.iter().position(|&byte| byte == 0).unwrap_or(text.len()),
    };
    text[end..].fill(0);
}
