//! Columns as JSON values, one per entry, for comparison with expected values.

use raddle_columns::{Buffer, Column, Form, Number};
use serde_json::{Map, Value, json};

/// Returns the values of a column.
pub fn values(form: &Form, column: &Column, entries: u64) -> Vec<Value> {
    column.check(form, entries).unwrap();
    (0..entries as usize).map(|entry| value(form, &column.buffers, &mut 0, entry)).collect()
}

/// Returns value `number` of the buffers from `at` on, and advances `at` past them.
fn value(form: &Form, buffers: &[Buffer], at: &mut usize, number: usize) -> Value {
    match form {
        Form::Number(kind) => {
            let Buffer::Values(bytes) = &buffers[*at] else { panic!("no values") };
            *at += 1;
            number_at(*kind, &bytes[number * kind.len_bytes()..][..kind.len_bytes()])
        }
        Form::Regular { length, content } => {
            let length = *length as usize;
            let start = *at;
            let values = (number * length..(number + 1) * length).map(|inner| {
                *at = start;
                value(content, buffers, at, inner)
            });
            Value::Array(values.collect())
        }
        Form::List(content) => {
            let Buffer::Offsets(offsets) = &buffers[*at] else { panic!("no offsets") };
            let start = *at + 1;
            let inner = offsets[number] as usize..offsets[number + 1] as usize;
            let values: Vec<Value> = inner.map(|inner| value(content, buffers, &mut start.clone(), inner)).collect();
            *at = start + content.buffers().len();
            Value::Array(values)
        }
        Form::String | Form::Blob(_) => {
            let (Buffer::Offsets(offsets), Buffer::Values(bytes)) = (&buffers[*at], &buffers[*at + 1]) else {
                panic!("no bytes")
            };
            *at += 2;
            let bytes = &bytes[offsets[number] as usize..offsets[number + 1] as usize];
            String::from_utf8_lossy(bytes).into_owned().into()
        }
        Form::Record(fields) => {
            let mut map = Map::new();
            for field in fields {
                let start = *at;
                map.insert(field.name.clone(), value(&field.form, buffers, at, number));
                *at = start + field.form.buffers().len();
            }
            Value::Object(map)
        }
    }
}

fn number_at(kind: Number, bytes: &[u8]) -> Value {
    let mut padded = [0; 8];
    padded[..bytes.len()].copy_from_slice(bytes);
    let bits = u64::from_le_bytes(padded);
    match kind {
        Number::Bool => json!(bits == 1),
        Number::Int8 => json!(bits as i8),
        Number::Int16 => json!(bits as i16),
        Number::Int32 => json!(bits as i32),
        Number::Int64 => json!(bits as i64),
        Number::Uint8 | Number::Uint16 | Number::Uint32 | Number::Uint64 => json!(bits),
        Number::Float32 => json!(f64::from(f32::from_bits(bits as u32))),
        Number::Float64 => json!(f64::from_bits(bits)),
    }
}
