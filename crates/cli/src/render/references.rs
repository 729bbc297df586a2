//! References as kerchunk writes them: JSON, version 1, entry by entry.

use raddle_hdf5::references::Reference;
use std::io::{self, Write};

/// Entries being written; [`Entries::end`] makes the JSON whole.
pub struct Entries<'a> {
    out: &'a mut dyn Write,
    /// Name of the file in every entry, as JSON.
    url: String,
    count: u64,
}

impl<'a> Entries<'a> {
    /// References to the file that readers know as `url`.
    pub fn begin(out: &'a mut dyn Write, url: &str) -> Self {
        Self { out, url: quoted(url), count: 0 }
    }

    /// Writes an entry.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn write(&mut self, key: &str, reference: Reference<'_>) -> io::Result<()> {
        let before = if self.count == 0 { "{\"version\": 1, \"refs\": {" } else { "," };
        self.count += 1;
        write!(self.out, "{before}\n{}: ", quoted(key))?;
        match reference {
            Reference::Text(text) => write!(self.out, "{}", quoted(text)),
            Reference::Range { address, len_bytes } => write!(self.out, "[{}, {address}, {len_bytes}]", self.url),
        }
    }

    /// Writes the end. There is always an entry: the root group's.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn end(self) -> io::Result<()> {
        self.out.write_all(b"\n}}\n")?;
        self.out.flush()
    }
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
