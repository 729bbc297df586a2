//! References in kerchunk format: JSON, version 1, written entry by entry.

use raddle_hdf5::references::Reference;
use std::io::{self, Write};

/// Writer of entries; [`Entries::end`] completes the JSON.
pub struct Entries<'a> {
    out: &'a mut dyn Write,
    /// Name of the file in every entry, as JSON.
    url: String,
    count: u64,
}

impl<'a> Entries<'a> {
    /// Begins references to the file that readers know as `url`.
    pub fn begin(out: &'a mut dyn Write, url: &str) -> Self {
        Self { out, url: quoted(url), count: 0 }
    }

    /// Writes an entry.
    ///
    /// # Errors
    /// If the writer fails.
    pub fn write(&mut self, key: &str, reference: Reference<'_>) -> io::Result<()> {
        let before = if self.count == 0 { "{\"version\": 1, \"refs\": {" } else { "," };
        self.count += 1;
        write!(self.out, "{before}\n{}: ", quoted(key))?;
        match reference {
            Reference::Text(text) => write!(self.out, "{}", quoted(text)),
            Reference::Range { address, len_bytes } => write!(self.out, "[{}, {address}, {len_bytes}]", self.url),
        }
    }

    /// Writes the end. There is always at least one entry, for the root group.
    ///
    /// # Errors
    /// If the writer fails.
    pub fn end(self) -> io::Result<()> {
        self.out.write_all(b"\n}}\n")?;
        self.out.flush()
    }
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
