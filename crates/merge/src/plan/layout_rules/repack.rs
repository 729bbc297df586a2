//! Layouts and filters in the syntax of h5repack's `-l` and `-f`: `dset1,dset2:CHUNK=20x10`, `:CONTI`, `GZIP=6`.
//!
//! Objects are named by their whole path, with or without the first slash. As in h5repack, filters that are not named
//! are removed, and several rules for a dataset add up. Invariant: a filter that raddle cannot write is refused.

use super::{LayoutSettings, RuleObjects, UnchunkedStorage};
use crate::options::{Compress, Shuffle};
use crate::plan::chunk::{Chunk, positive};
use raddle_codec::{Compression, Effort, KnownFilter};

/// Names of layouts and filters.
const NAMES: [&str; 11] = ["CHUNK", "CONTI", "COMPA", "GZIP", "SHUF", "FLET", "NONE", "UD", "SZIP", "NBIT", "SOFF"];

/// Returns whether a string begins with a layout or filter.
pub(super) fn begins(text: &str) -> bool {
    NAMES.contains(&text.split('=').next().unwrap_or_default().trim_end())
}

/// Converts a list of paths, separated by commas; an empty one stands for all datasets.
pub(super) fn objects(list: &str) -> RuleObjects {
    let paths = list.split(',').map(str::trim).filter(|path| !path.is_empty());
    let globs: Vec<String> = paths.map(|path| format!("/{}", globset::escape(path.trim_start_matches('/')))).collect();
    if globs.is_empty() { RuleObjects::All } else { RuleObjects::Matching(globs) }
}

/// Parses a layout or filter.
pub(super) fn parse(text: &str) -> Result<LayoutSettings, String> {
    let (name, value) = text.split_once('=').map_or((text.trim(), None), |(name, value)| (name.trim(), Some(value)));
    let refuse = |why: &str| Err(format!("{name}: {why}"));
    let filters = LayoutSettings { replaces_filters: true, ..LayoutSettings::default() };
    let settings = match (name, value) {
        ("CHUNK", value) => {
            let sizes: Option<Vec<u64>> =
                value.unwrap_or_default().split('x').map(|size| positive(size.trim())).collect();
            let Some(sizes) = sizes else { return refuse("expected a shape, such as CHUNK=20x10") };
            LayoutSettings { chunk: Some(Chunk::Shape(sizes)), ..LayoutSettings::default() }
        }
        ("GZIP", value) => match value.and_then(|level| level.trim().parse().ok()) {
            Some(level @ 0..=9) => LayoutSettings { compress: Some(Effort::Gzip(level).into()), ..filters },
            _ => return refuse("expected a level from 0 to 9, such as GZIP=6"),
        },
        ("UD", value) => LayoutSettings { compress: Some(registered(value.unwrap_or_default())?.into()), ..filters },
        ("SZIP", _) => return refuse("raddle does not write szip; use GZIP=6, or 'PATTERN: filter=zstd:3'"),
        ("NBIT", _) => return refuse("raddle does not write nbit; use GZIP=6, or 'PATTERN: filter=zstd:3'"),
        ("SOFF", _) => return refuse("raddle does not write scaleoffset; use GZIP=6, or 'PATTERN: filter=zstd:3'"),
        (_, Some(_)) => return refuse("takes no value"),
        ("CONTI", _) => LayoutSettings { unchunked: Some(UnchunkedStorage::Contiguous), ..LayoutSettings::default() },
        ("COMPA", _) => LayoutSettings { unchunked: Some(UnchunkedStorage::Compact), ..LayoutSettings::default() },
        ("SHUF", _) => LayoutSettings { shuffle: Some(Shuffle::Yes), ..filters },
        ("FLET", _) => LayoutSettings { fletcher32: Some(true), ..filters },
        ("NONE", _) => LayoutSettings {
            compress: Some(Compress::None),
            shuffle: Some(Shuffle::No),
            fletcher32: Some(false),
            ..filters
        },
        _ => return refuse("not a layout or filter"),
    };
    Ok(settings)
}

/// Converts `NUMBER,FLAG,COUNT,VALUES` of a registered filter; older versions of h5repack have no flag.
fn registered(value: &str) -> Result<Compression, String> {
    let numbers: Option<Vec<u32>> = value.split(',').map(|number| number.trim().parse().ok()).collect();
    let refuse = || {
        "UD: expected the number of a filter, a flag, the number of its values, and these, such as UD=32015,0,1,3"
            .to_owned()
    };
    let numbers = numbers.filter(|numbers| !numbers.is_empty()).ok_or_else(refuse)?;
    let id = numbers[0];
    let values = match numbers.as_slice() {
        [_, 0 | 1, count, values @ ..] if *count as usize == values.len() => values,
        [_, count, values @ ..] if *count as usize == values.len() => values,
        [_] => &[],
        _ => return Err(refuse()),
    };
    let known = u16::try_from(id).ok().and_then(KnownFilter::from_id);
    let name = known.map_or("", KnownFilter::name);
    let Some(usual) = name.parse::<Compression>().ok().filter(|usual| Some(usual.known_filter()) == known) else {
        let name = if name.is_empty() { String::new() } else { format!(" ({name})") };
        return Err(format!("UD: takes the filters 32015 (zstd) and 32004 (lz4), not {id}{name}"));
    };
    // The first value is the level if the filter has levels.
    match values.first() {
        Some(level) if usual.to_string() != name => {
            format!("{name}:{level}").parse().map_err(|error| format!("UD: {error}"))
        }
        _ => Ok(usual),
    }
}
