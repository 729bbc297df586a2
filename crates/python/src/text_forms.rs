//! Fixed-length strings as HDF5's readers show them: padded with zeros, whatever padding the file has.
//!
//! libhdf5 converts on reading; bytes behind a terminator and trailing blanks of space-padded strings are not shown.

use raddle_hdf5::model::TypeClass;

/// Values of `H5T_str_t`.
const NULL_TERMINATED: u8 = 0;
const SPACE_PADDED: u8 = 2;

/// A string inside of an element, or several of the same kind in a row.
#[derive(Debug, Clone, Copy)]
struct Strings {
    offset: usize,
    len: usize,
    count: usize,
    space_padded: bool,
}

/// Which bytes of an element are strings that have to be brought into form.
#[derive(Debug, Default)]
pub struct TextForms {
    element_len: usize,
    strings: Vec<Strings>,
}

impl TextForms {
    /// The strings of elements of `class`.
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
                    // Arrays of what holds no such string, the usual ones, are looked at once.
                    if self.strings.len() > before {
                        (1..count).for_each(|item| self.add(base, offset + item * len));
                    }
                }
            }
            _ => {}
        }
    }

    /// Brings all elements of `values` into form.
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
