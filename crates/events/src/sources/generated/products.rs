//! The reference framework's test products (TestProductsSource.cc). Entry i has `ints` {i, i+1, i+2} and `floats` {i,
//! 2i, 3i}.
//!
//! Invariant: serialised products equal those of the framework and ROOT byte for byte.

use super::Generator;
use raddle_columns::block::{Buffer, Column};
use raddle_columns::schema::{Form, Number, Product, Schema, Serialization};

/// Source of test products, as blobs or as columns.
#[derive(Debug, Clone)]
pub struct TestProducts {
    len_entries: u64,
    schema: Schema,
    serialization: Option<Serialization>,
}

/// Number of values in each product.
const VALUES: usize = 3;

impl TestProducts {
    /// Creates a source of `len_entries` events, serialised, or as columns if `serialization` is `None`.
    pub fn new(len_entries: u64, serialization: Option<Serialization>) -> Self {
        let product = |name: &str, class: &str, number| Product {
            name: name.to_owned(),
            class: class.to_owned(),
            form: serialization.map_or_else(|| Form::list(Form::Number(number)), Form::Blob),
        };
        let ints = product("ints", "vector<int>", Number::Int32);
        let floats = product("floats", "vector<float>", Number::Float32);
        Self { len_entries, schema: Schema { products: vec![ints, floats] }, serialization }
    }
}

impl Generator for TestProducts {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn len_entries(&self) -> u64 {
        self.len_entries
    }

    fn entry_len_bytes(&self) -> u64 {
        // Ids, two offsets, two blobs.
        16 + 2 * 8 + 2 * 28
    }

    fn push(&self, entry: u64, product: usize, column: &mut Column) {
        // As the framework computes them: an int from the event number, which wraps, and a float from products of ints.
        let first = entry as i32;
        let multiple = |factor: i32| (first.wrapping_mul(factor)) as f32;
        let bits: [u32; VALUES] = match product {
            0 => [0, 1, 2].map(|more| first.wrapping_add(more) as u32),
            _ => [1, 2, 3].map(|factor| multiple(factor).to_bits()),
        };
        let [Buffer::Offsets(offsets), Buffer::Values(bytes)] = column.buffers.as_mut_slice() else { return };
        match self.serialization {
            None => {
                bits.iter().for_each(|value| bytes.extend_from_slice(&value.to_le_bytes()));
                offsets.push(offsets.last().copied().unwrap_or(0) + VALUES as u64);
            }
            Some(serialization) => {
                if serialization == Serialization::Root {
                    // Byte count of all that follows, and the version of the collection's class.
                    bytes.extend_from_slice(&(0x4000_0000u32 | 24).to_be_bytes());
                    bytes.extend_from_slice(&6u16.to_be_bytes());
                }
                // Byte count, version and length of the collection, and its values.
                bytes.extend_from_slice(&(0x4000_0000u32 | 18).to_be_bytes());
                bytes.extend_from_slice(&10u16.to_be_bytes());
                bytes.extend_from_slice(&(VALUES as u32).to_be_bytes());
                bits.iter().for_each(|value| bytes.extend_from_slice(&value.to_be_bytes()));
                offsets.push(bytes.len() as u64);
            }
        }
    }
}
