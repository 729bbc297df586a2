//! The header of a stream: version, codec, classes and products.
//!
//! Invariants: a written header is read back unchanged; a header that is read has unique names of products and refers
//! only to existing classes.

use super::{PdsCodec, WORD_LEN_BYTES, padding_len_bytes};
use raddle_columns::bytes::Bytes;
use raddle_columns::error::UnlocatedError;
use raddle_columns::input::InputFile;
use raddle_columns::schema::{Form, Product, Schema, Serialization};
use std::collections::{BTreeSet, HashSet};

/// First word of a stream without the version: 3141592 shifted by 8 bits.
const MAGIC: u32 = 3_141_592 << 8;

/// Length of the magic number and the fields after it: identification of the file (unused), codec and header length.
const FRONT_LEN_BYTES: usize = 4 * WORD_LEN_BYTES;

/// The only type of records, as stored.
const RECORD_TYPES: &[u8; 8] = b"Event\0\0\0";

/// Returns whether `first` are the first bytes of a stream of any version.
pub(crate) fn is_pds(first: &[u8]) -> bool {
    first.first_chunk().is_some_and(|word| u32::from_le_bytes(*word) & !0xff == MAGIC)
}

/// Contents of a header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StreamHeader {
    pub(super) serialization: Serialization,
    pub(super) codec: PdsCodec,
    /// Products, whose forms are all [`Form::Blob`].
    pub(super) schema: Schema,
    /// Length in the file, which is the address of the first record.
    pub(super) len_bytes: u64,
}

impl StreamHeader {
    /// Reads the header of a file of at least 4 bytes.
    pub(super) fn read(file: &InputFile) -> Result<Self, UnlocatedError> {
        const STRUCTURE: &str = "stream header";
        let front = file.read(0, FRONT_LEN_BYTES as u64, STRUCTURE)?;
        let mut front = Bytes::new(&front, 0, STRUCTURE);
        let serialization = match front.le_u32()? ^ MAGIC {
            1 => Serialization::Root,
            2 => Serialization::Unrolled,
            version => return Err(front.unsupported(format!("version {version} of packed data streams"))),
        };
        let _file_id = front.le_u32()?;
        // Like the framework's readers, this checks only the first letter.
        let codec = match front.array::<4>()?[0] {
            b'N' => PdsCodec::None,
            b'L' => PdsCodec::Lz4,
            b'Z' => PdsCodec::Zstd(0),
            letter => return Err(front.unsupported(format!("codec {:?}", char::from(letter)))),
        };
        let len_words = front.le_u32()?;
        let inner_len_bytes = u64::from(len_words) * WORD_LEN_BYTES as u64;
        let inner = file.read(FRONT_LEN_BYTES as u64, inner_len_bytes + WORD_LEN_BYTES as u64, STRUCTURE)?;
        let mut inner = Bytes::new(&inner, FRONT_LEN_BYTES as u64, STRUCTURE);
        let schema = read_schema(&mut inner, serialization)?;
        if inner.remaining() != WORD_LEN_BYTES {
            return Err(inner.damaged(format!("{} bytes are left after the products", inner.remaining())));
        }
        if inner.le_u32()? != len_words {
            return Err(inner.damaged("the two lengths of the header differ"));
        }
        Ok(Self { serialization, codec, schema, len_bytes: FRONT_LEN_BYTES as u64 + inner_len_bytes + 4 })
    }

    /// Encodes the header. Names and classes must not contain NUL.
    pub(super) fn write(&self) -> Vec<u8> {
        let classes: BTreeSet<&str> = self.schema.products.iter().map(|product| product.class.as_str()).collect();
        let mut inner = Vec::new();
        push_word(&mut inner, RECORD_TYPES.len() / WORD_LEN_BYTES);
        inner.extend_from_slice(RECORD_TYPES);
        let mut names = Vec::new();
        for class in &classes {
            names.extend_from_slice(class.as_bytes());
            names.push(0);
        }
        pad(&mut names);
        push_word(&mut inner, names.len() / WORD_LEN_BYTES);
        inner.extend_from_slice(&names);
        // No types other than top-level ones.
        push_word(&mut inner, 0);
        push_word(&mut inner, self.schema.products.len());
        for product in &self.schema.products {
            push_word(&mut inner, classes.range(..product.class.as_str()).count());
            inner.extend_from_slice(product.name.as_bytes());
            inner.push(0);
            pad(&mut inner);
        }
        let version = match self.serialization {
            Serialization::Root => 1,
            Serialization::Unrolled | Serialization::Basket => 2,
        };
        let mut header = Vec::new();
        header.extend_from_slice(&(MAGIC | version).to_le_bytes());
        push_word(&mut header, 0);
        header.extend_from_slice(match self.codec {
            PdsCodec::None => b"None",
            PdsCodec::Lz4 => b"LZ4\0",
            PdsCodec::Zstd(_) => b"ZSTD",
        });
        push_word(&mut header, inner.len() / WORD_LEN_BYTES);
        header.extend_from_slice(&inner);
        push_word(&mut header, inner.len() / WORD_LEN_BYTES);
        header
    }
}

/// Appends a word. Headers are far shorter than 4 Gi words, because they only hold names.
fn push_word(out: &mut Vec<u8>, word: usize) {
    out.extend_from_slice(&(word as u32).to_le_bytes());
}

fn pad(out: &mut Vec<u8>) {
    out.resize(out.len() + padding_len_bytes(out.len()), 0);
}

fn read_schema(bytes: &mut Bytes<'_>, serialization: Serialization) -> Result<Schema, UnlocatedError> {
    let types_len_bytes = bytes.le_u32()? as usize * WORD_LEN_BYTES;
    if bytes.take(types_len_bytes)? != RECORD_TYPES {
        return Err(bytes.unsupported("records that are not events"));
    }
    let classes_len_bytes = bytes.le_u32()? as usize * WORD_LEN_BYTES;
    let names = bytes.take(classes_len_bytes)?;
    let mut classes = Vec::new();
    for name in names.split(|&byte| byte == 0).take_while(|name| !name.is_empty()) {
        classes.push(text(bytes, name)?);
    }
    match bytes.le_u32()? {
        0 => {}
        words => return Err(bytes.unsupported(format!("{words} words of inner types"))),
    }
    let count = bytes.le_u32()? as usize;
    let (mut products, mut names) = (Vec::new(), HashSet::new());
    for _ in 0..count {
        let class = bytes.le_u32()? as usize;
        let class = classes.get(class).ok_or_else(|| bytes.damaged(format!("class {class} does not exist")))?.clone();
        let mut name = Vec::new();
        // The word that ends with NUL is the last.
        loop {
            let word: [u8; WORD_LEN_BYTES] = bytes.array()?;
            name.extend_from_slice(&word);
            if word[WORD_LEN_BYTES - 1] == 0 {
                break;
            }
        }
        let len = name.iter().position(|&byte| byte == 0).unwrap_or(0);
        let name = text(bytes, &name[..len])?;
        if !names.insert(name.clone()) {
            return Err(bytes.damaged(format!("two products are named {}", name.escape_debug())));
        }
        products.push(Product { name, class, form: Form::Blob(serialization) });
    }
    Ok(Schema { products })
}

fn text(bytes: &Bytes<'_>, name: &[u8]) -> Result<String, UnlocatedError> {
    match std::str::from_utf8(name) {
        Ok(name) => Ok(name.to_owned()),
        Err(_) => Err(bytes.damaged(format!("a name is not UTF-8: {}", name.escape_ascii()))),
    }
}
