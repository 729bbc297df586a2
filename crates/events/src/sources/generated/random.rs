//! Blobs of random lengths, whose bytes compress about as well as event data.
//!
//! They serve for measurements and tests, and cannot be deserialised.

use super::Generator;
use raddle_columns::block::{Buffer, Column};
use raddle_columns::schema::{Form, Product, Schema, Serialization};

/// Distribution of the lengths of blobs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum SizeLaw {
    /// All blobs have the same length.
    Fixed {
        /// Length of every blob.
        len_bytes: u64,
    },
    /// All lengths up to the longest are equally likely.
    Uniform {
        /// Maximum length.
        longest_len_bytes: u64,
    },
    /// Lengths follow an exponential distribution, cut off at 20 times the mean.
    Exponential {
        /// Mean length before the cut-off.
        mean_len_bytes: u64,
    },
}

impl SizeLaw {
    fn mean_len_bytes(self) -> u64 {
        match self {
            Self::Fixed { len_bytes } => len_bytes,
            Self::Uniform { longest_len_bytes } => longest_len_bytes / 2,
            Self::Exponential { mean_len_bytes } => mean_len_bytes,
        }
    }

    fn draw(self, bits: u64) -> u64 {
        // 53 bits, in (0, 1].
        let unit = ((bits >> 11) + 1) as f64 / (1u64 << 53) as f64;
        match self {
            Self::Fixed { len_bytes } => len_bytes,
            Self::Uniform { longest_len_bytes } => bits % (longest_len_bytes.saturating_add(1).max(1)),
            Self::Exponential { mean_len_bytes } => (mean_len_bytes as f64 * (-unit.ln()).min(20.0)) as u64,
        }
    }
}

/// Options for random events.
#[derive(Debug, Clone)]
pub struct RandomOptions {
    /// Number of events.
    pub len_entries: u64,
    /// Number of products per event.
    pub products: usize,
    /// Distribution of the lengths of products.
    pub size: SizeLaw,
    /// Seed of the random numbers.
    pub seed: u64,
}

/// Source of random products.
#[derive(Debug, Clone)]
pub struct RandomProducts {
    options: RandomOptions,
    schema: Schema,
}

impl RandomProducts {
    /// Creates a source of random products named `product0` and so on.
    pub fn new(options: RandomOptions) -> Self {
        let product = |number| Product {
            name: format!("product{number}"),
            class: "vector<float>".to_owned(),
            form: Form::Blob(Serialization::Unrolled),
        };
        Self { schema: Schema { products: (0..options.products).map(product).collect() }, options }
    }
}

/// Returns the next number of a SplitMix64 generator and updates its `state`.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

impl Generator for RandomProducts {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn len_entries(&self) -> u64 {
        self.options.len_entries
    }

    fn entry_len_bytes(&self) -> u64 {
        let product = self.options.size.mean_len_bytes().saturating_add(8);
        product.saturating_mul(self.options.products as u64).saturating_add(16)
    }

    fn push(&self, entry: u64, product: usize, column: &mut Column) {
        let [Buffer::Offsets(offsets), Buffer::Values(bytes)] = column.buffers.as_mut_slice() else { return };
        let mut state = self.options.seed ^ entry.wrapping_mul(0xA076_1D64_78BD_642F) ^ (product as u64) << 32;
        let len_bytes = self.options.size.draw(next(&mut state)) as usize;
        let end = bytes.len() + len_bytes;
        while bytes.len() < end {
            // Floats between 1 and 2 with their lowest bits cleared, which compress by about a third.
            let bits = next(&mut state);
            for half in [bits as u32, (bits >> 32) as u32] {
                bytes.extend_from_slice(&(0x3F80_0000 | (half & 0x007F_FF00)).to_be_bytes());
            }
        }
        bytes.truncate(end);
        offsets.push(end as u64);
    }
}
