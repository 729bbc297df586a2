//! Writes the contents of a file as plain arrays, for comparison with other readers: `dump FILE OUT [TREE] [--raw]`
//! creates `OUT/schema.json` and a file for each buffer of each column.
//!
//! The entries are read in several ranges of odd lengths, as a conversion with threads would read them.

use raddle_events::formats::{OpenOptions, open};
use raddle_events::{Block, Buffer, BufferKind, Source};
use std::error::Error;
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    match dump() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn dump() -> Result<(), Box<dyn Error>> {
    let (flags, arguments): (Vec<_>, Vec<_>) =
        std::env::args().skip(1).partition(|argument| argument.starts_with("--"));
    let [file, out, tree @ ..] = arguments.as_slice() else {
        return Err("usage: dump FILE OUT [TREE] [--raw]".into());
    };
    let source = open_any(Path::new(file), tree.first().map(String::as_str), flags.iter().any(|flag| flag == "--raw"))?;
    let out = Path::new(out);
    std::fs::create_dir_all(out)?;
    let schema = source.schema();
    let products: Vec<usize> = (0..schema.products.len()).collect();
    let mut reader = source.reader(&products)?;
    let mut block = Block::new(schema, 0);
    let (mut start, mut target_len_bytes) = (0, 1000);
    while start < source.len_entries() {
        let end = source.unit_end(start, target_len_bytes);
        let next = reader.read(start..end)?;
        block.ids.extend(next.ids);
        for (column, next) in block.columns.iter_mut().zip(&next.columns) {
            column.append(next)?;
        }
        (start, target_len_bytes) = (end, target_len_bytes * 2 + 7);
    }
    block.entries.end = start;
    block.check(schema).map_err(|(_, fault)| fault)?;
    for (number, (column, product)) in block.columns.iter().zip(&schema.products).enumerate() {
        for (part, (buffer, form)) in column.buffers.iter().zip(product.form.buffers()).enumerate() {
            let name = match form.kind {
                BufferKind::Offsets => "uint64",
                BufferKind::Values(number) => number.name(),
            };
            let bytes = match buffer {
                Buffer::Offsets(offsets) => offsets.iter().flat_map(|offset| offset.to_le_bytes()).collect(),
                Buffer::Values(values) => values.clone(),
            };
            std::fs::write(out.join(format!("{number}.{part}.{name}")), bytes)?;
        }
    }
    let about = serde_json::json!({ "entries": start, "products": schema.products, "ids": block.ids });
    std::fs::write(out.join("schema.json"), serde_json::to_string(&about)?)?;
    Ok(())
}

fn open_any(path: &Path, tree: Option<&str>, raw: bool) -> Result<Box<dyn Source>, Box<dyn Error>> {
    let opened = open(path, &OpenOptions { tree: tree.map(str::to_owned), raw, ..OpenOptions::default() })?;
    opened.undecoded().iter().for_each(|(product, why)| eprintln!("{product}: read as bytes: {why}"));
    opened.unread().iter().for_each(|unread| eprintln!("not read: {unread}"));
    Ok(opened)
}
