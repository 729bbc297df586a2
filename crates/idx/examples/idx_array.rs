//! Writes a raw array as a dataset, or reads one back: what the tests against OpenVisus drive.
//!
//! `idx_array write OUT.idx NAME COUNTS SAMPLE LAYOUT COMPRESSION BITS BLOCKS < RAW` with counts as `22x36x22`, x first,
//! layout `hzorder` or `row`, compression `raw`, `zip` or `lz4`; `idx_array read IN.idx FIELD RESOLUTION > RAW`.

use raddle_idx::template::FileTemplate;
use raddle_idx::{Dataset, Existing, Field, Header, Query, WriteOptions, Writer};
use std::io::{Read, Write};
use std::path::Path;

type AnyError = Box<dyn std::error::Error>;

fn main() -> Result<(), AnyError> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["write", path, name, counts, sample, layout, compression, bits, blocks] => {
            let counts = counts.split('x').map(str::parse).collect::<Result<Vec<u64>, _>>()?;
            let field = Field::new(name, sample.parse()?)
                .with("default_layout", if layout == "row" { "" } else { layout })
                .with("default_compression", if compression == "raw" { "" } else { compression });
            let path = Path::new(path);
            let stem = path.file_stem().and_then(|stem| stem.to_str()).ok_or("no file name")?;
            let mut header = Header::new(stem, &counts, vec![field])?;
            header.bits_per_block = bits.parse::<u32>()?.min(header.bitmask.max_level());
            header.blocks_per_file = blocks.parse()?;
            header.files = FileTemplate::for_name(stem, header.bitmask.max_level() - header.bits_per_block)?;
            let mut array = Vec::new();
            std::io::stdin().read_to_end(&mut array)?;
            let options = WriteOptions { existing: Existing::Replace, ..WriteOptions::default() };
            Writer::new(path, header, options)?.write(None, &[&array])?;
        }
        ["read", path, field, resolution] => {
            let dataset = Dataset::open(Path::new(path))?;
            let field = dataset.header().field_index(field).ok_or("no such field")?;
            let query = Query { resolution: resolution.parse()?, ..dataset.whole(field) };
            std::io::stdout().write_all(&dataset.read(&query)?)?;
        }
        _ => return Err("see the head of this file".into()),
    }
    Ok(())
}
