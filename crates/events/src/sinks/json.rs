//! Values of columns as JSON.
//!
//! JSON cannot represent some values: NaN and infinities become the strings `"NaN"`, `"Infinity"` and `"-Infinity"`;
//! bytes, and strings that are not UTF-8, become objects with hexadecimal digits, `{"bytes":"00ff"}`.

use raddle_columns::block::Buffer;
use raddle_columns::schema::{Form, Number};
use std::fmt::Write as _;

/// Style of the written values.
#[derive(Debug, Clone, Copy)]
pub(super) struct Style {
    /// Maximum number of items of a list, or bytes of a string, to write; the rest is only counted.
    max_items: usize,
    /// Whether to put spaces after commas and colons, and to shorten 32-bit numbers.
    is_for_people: bool,
}

impl Style {
    /// Style for programs, which writes everything.
    pub(super) const WHOLE: Self = Self { max_items: usize::MAX, is_for_people: false };

    /// Returns a style for people, which writes only the first items. Truncated values are not valid JSON.
    pub(super) fn shortened(max_items: usize) -> Self {
        Self { max_items, is_for_people: true }
    }

    fn comma(self) -> &'static str {
        if self.is_for_people { ", " } else { "," }
    }
}

/// Appends value `number` of a checked column.
pub(super) fn push_value(form: &Form, buffers: &[Buffer], number: u64, style: Style, text: &mut String) {
    match form {
        Form::Number(kind) => {
            if let Some(Buffer::Values(bytes)) = buffers.first() {
                push_number(*kind, &bytes[number as usize * kind.len_bytes()..][..kind.len_bytes()], style, text);
            }
        }
        Form::Regular { length, content } => {
            push_list(content, buffers, number * length..(number + 1) * length, style, text);
        }
        Form::List(content) => {
            if let Some((Buffer::Offsets(offsets), below)) = buffers.split_first() {
                let items = offsets[number as usize]..offsets[number as usize + 1];
                push_list(content, below, items, style, text);
            }
        }
        Form::String | Form::Blob(_) => {
            if let [Buffer::Offsets(offsets), Buffer::Values(bytes), ..] = buffers {
                let bytes = &bytes[offsets[number as usize] as usize..offsets[number as usize + 1] as usize];
                match (form, std::str::from_utf8(bytes)) {
                    (Form::String, Ok(_)) => push_text(bytes, text),
                    _ => push_bytes(bytes, style, text),
                }
            }
        }
        Form::Record(fields) => {
            let mut at = 0;
            text.push('{');
            for (place, field) in fields.iter().enumerate() {
                if place > 0 {
                    text.push_str(style.comma());
                }
                push_text(field.name.as_bytes(), text);
                text.push_str(if style.is_for_people { ": " } else { ":" });
                push_value(&field.form, &buffers[at..], number, style, text);
                at += field.form.buffers().len();
            }
            text.push('}');
        }
    }
}

fn push_list(content: &Form, buffers: &[Buffer], items: std::ops::Range<u64>, style: Style, text: &mut String) {
    let len = items.end - items.start;
    text.push('[');
    for (place, item) in items.enumerate() {
        if place > 0 {
            text.push_str(style.comma());
        }
        if place >= style.max_items {
            // Writing to a string cannot fail, here and below.
            let _ = write!(text, "… {} more", len - place as u64);
            break;
        }
        push_value(content, buffers, item, style, text);
    }
    text.push(']');
}

/// Appends a little-endian number.
fn push_number(kind: Number, bytes: &[u8], style: Style, text: &mut String) {
    let mut word = [0; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    let bits = u64::from_le_bytes(word);
    let unused = 64 - 8 * bytes.len() as u32;
    let _ = match kind {
        Number::Bool => write!(text, "{}", bits != 0),
        Number::Int8 | Number::Int16 | Number::Int32 | Number::Int64 => {
            write!(text, "{}", (bits << unused) as i64 >> unused)
        }
        Number::Uint8 | Number::Uint16 | Number::Uint32 | Number::Uint64 => write!(text, "{bits}"),
        Number::Float32 if style.is_for_people => return push_float(f32::from_bits(bits as u32), text),
        Number::Float32 => return push_float(f64::from(f32::from_bits(bits as u32)), text),
        Number::Float64 => return push_float(f64::from_bits(bits), text),
    };
}

/// Appends a floating-point number with the fewest digits that round-trip.
fn push_float(value: impl std::fmt::Debug + Into<f64> + Copy, text: &mut String) {
    let wide: f64 = value.into();
    let _ = match () {
        () if wide.is_nan() => write!(text, "\"NaN\""),
        () if wide.is_infinite() => write!(text, "\"{}Infinity\"", if wide < 0.0 { "-" } else { "" }),
        // `Debug` writes a point or an exponent, so readers see a floating-point number.
        () => write!(text, "{value:?}"),
    };
}

/// Appends a string if it is valid UTF-8.
pub(super) fn push_text(bytes: &[u8], text: &mut String) {
    text.push('"');
    for letter in String::from_utf8_lossy(bytes).chars() {
        match letter {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            // Some readers treat these separators as ends of lines, and the controls from U+007F affect terminals.
            '\u{2028}' | '\u{2029}' => {
                let _ = write!(text, "\\u{:04x}", u32::from(letter));
            }
            letter if letter.is_control() => {
                let _ = write!(text, "\\u{:04x}", u32::from(letter));
            }
            letter => text.push(letter),
        }
    }
    text.push('"');
}

fn push_bytes(bytes: &[u8], style: Style, text: &mut String) {
    text.push_str(if style.is_for_people { "{\"bytes\": \"" } else { "{\"bytes\":\"" });
    for byte in bytes.iter().take(style.max_items) {
        let _ = write!(text, "{byte:02x}");
    }
    if bytes.len() > style.max_items {
        let _ = write!(text, "… {} more", bytes.len() - style.max_items);
    }
    text.push_str("\"}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use raddle_columns::schema::{Field, Serialization};

    fn value_text(form: &Form, buffers: &[Buffer], number: u64, style: Style) -> String {
        let mut text = String::new();
        push_value(form, buffers, number, style, &mut text);
        text
    }

    fn number(kind: Number, bytes: &[u8]) -> String {
        value_text(&Form::Number(kind), &[Buffer::Values(bytes.to_vec())], 0, Style::WHOLE)
    }

    #[test]
    fn numbers_are_exact() {
        assert_eq!(number(Number::Bool, &[1]), "true");
        assert_eq!(number(Number::Int8, &[0x80]), "-128");
        assert_eq!(number(Number::Uint8, &[0x80]), "128");
        assert_eq!(number(Number::Int64, &i64::MIN.to_le_bytes()), "-9223372036854775808");
        assert_eq!(number(Number::Uint64, &u64::MAX.to_le_bytes()), "18446744073709551615");
        let tenth = 0.1_f32.to_le_bytes();
        assert_eq!(number(Number::Float32, &tenth), "0.10000000149011612");
        let people = Style::shortened(9);
        assert_eq!(value_text(&Form::Number(Number::Float32), &[Buffer::Values(tenth.to_vec())], 0, people), "0.1");
        assert_eq!(number(Number::Float64, &1.0_f64.to_le_bytes()), "1.0");
        assert_eq!(number(Number::Float64, &(-0.0_f64).to_le_bytes()), "-0.0");
        assert_eq!(number(Number::Float64, &f64::NAN.to_le_bytes()), "\"NaN\"");
        assert_eq!(number(Number::Float32, &f32::NEG_INFINITY.to_le_bytes()), "\"-Infinity\"");
    }

    #[test]
    fn strings_and_bytes_are_whole_or_counted() {
        let text = |bytes: &[u8], form: Form, style| {
            let buffers = [Buffer::Offsets(vec![0, bytes.len() as u64]), Buffer::Values(bytes.to_vec())];
            value_text(&form, &buffers, 0, style)
        };
        let quoted = text("ä\"\\\n\u{7f}\u{2028}".as_bytes(), Form::String, Style::WHOLE);
        assert_eq!(quoted, r#""ä\"\\\u000a\u007f\u2028""#);
        assert_eq!(serde_json::from_str::<String>(&quoted).unwrap(), "ä\"\\\n\u{7f}\u{2028}");
        assert_eq!(text(b"\xff", Form::String, Style::WHOLE), r#"{"bytes":"ff"}"#);
        let blob = Form::Blob(Serialization::Root);
        assert_eq!(text(b"\x00\x0a\xff", blob.clone(), Style::WHOLE), r#"{"bytes":"000aff"}"#);
        assert_eq!(text(b"\x00\x0a\xff", blob, Style::shortened(1)), r#"{"bytes": "00… 2 more"}"#);
    }

    #[test]
    fn fields_have_their_own_buffers() {
        let number = || Form::Number(Number::Int8);
        let field = |name: &str, form| Field { name: name.to_owned(), form };
        let pair = Form::Regular { length: 2, content: Box::new(number()) };
        let record = Form::Record(vec![field("a", Form::list(pair)), field("b", number())]);
        let form = Form::list(record);
        let buffers = [
            Buffer::Offsets(vec![0, 0, 2]),
            Buffer::Offsets(vec![0, 3, 3]),
            Buffer::Values(vec![1, 2, 3, 4, 5, 6]),
            Buffer::Values(vec![7, 8]),
        ];
        assert_eq!(value_text(&form, &buffers, 0, Style::WHOLE), "[]");
        assert_eq!(value_text(&form, &buffers, 1, Style::WHOLE), r#"[{"a":[[1,2],[3,4],[5,6]],"b":7},{"a":[],"b":8}]"#);
        assert_eq!(
            value_text(&form, &buffers, 1, Style::shortened(1)),
            r#"[{"a": [[1, … 1 more], … 2 more], "b": 7}, … 1 more]"#
        );
    }
}
