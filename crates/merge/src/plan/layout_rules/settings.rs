//! Settings of a layout rule: `chunk=time=365,lat=90, filter=zstd:3, shuffle`.

use super::{LayoutSettings, UnchunkedStorage};
use crate::options::{Compress, Shuffle};
use crate::plan::chunk::Chunk;

/// Names of settings.
const NAMES: [&str; 7] = ["chunk", "filter", "compress", "shuffle", "fletcher32", "contiguous", "compact"];

/// Returns whether a string begins with a setting.
pub(super) fn begins(text: &str) -> bool {
    let end = text.find(|c: char| "=,".contains(c) || c.is_whitespace()).unwrap_or(text.len());
    NAMES.contains(&&text[..end])
}

/// Parses settings that are separated by commas.
pub(super) fn parse(text: &str) -> Result<LayoutSettings, String> {
    let mut settings = LayoutSettings::default();
    let mut seen: Vec<&str> = Vec::new();
    let mut parts = split(text).into_iter().peekable();
    while let Some(part) = parts.next() {
        let (name, value) =
            part.split_once('=').map_or((part, None), |(name, value)| (name.trim(), Some(value.trim())));
        let known = NAMES.into_iter().find(|known| *known == name).ok_or_else(|| not_a_setting(part))?;
        let known = if known == "compress" { "filter" } else { known };
        if seen.contains(&known) {
            return Err(format!("{known} is given twice"));
        }
        seen.push(known);
        match known {
            "chunk" => {
                let mut value = value.unwrap_or_default().to_owned();
                if let Some(inside) = value.strip_prefix('(').and_then(|value| value.strip_suffix(')')) {
                    value = inside.trim().to_owned();
                } else if value.contains('=') {
                    // Sizes of further dimensions follow.
                    while let Some(next) = parts.next_if(|next| next.contains('=') && !begins(next)) {
                        value = format!("{value},{next}");
                    }
                }
                settings.chunk = Some(value.parse::<Chunk>().map_err(|error| error.to_string())?);
            }
            "filter" => {
                let word = value.unwrap_or_default();
                settings.compress = Some(word.parse::<Compress>().map_err(|error| error.to_string())?);
            }
            "shuffle" => {
                settings.shuffle = Some(match value {
                    None | Some("yes") => Shuffle::Yes,
                    Some("no") => Shuffle::No,
                    Some("keep") => Shuffle::Keep,
                    Some(_) => return Err("shuffle is yes, no or keep".to_owned()),
                });
            }
            "fletcher32" => settings.fletcher32 = Some(is_yes(known, value)?),
            _ if is_yes(known, value)? => {
                let asked = if known == "compact" { UnchunkedStorage::Compact } else { UnchunkedStorage::Contiguous };
                if settings.unchunked.replace(asked).is_some() {
                    return Err("contiguous and compact exclude each other".to_owned());
                }
            }
            _ => {}
        }
    }
    check(&settings)?;
    Ok(settings)
}

/// Refuses settings without an effect: chunks and filters of datasets without chunks, and shuffling without
/// compression.
fn check(settings: &LayoutSettings) -> Result<(), String> {
    if settings.compress == Some(Compress::None) && settings.shuffle == Some(Shuffle::Yes) {
        return Err("shuffle only helps a compression, and filter=none leaves none: leave out one of them".to_owned());
    }
    let Some(unchunked) = settings.unchunked else { return Ok(()) };
    let excluded = [
        ("chunk", settings.chunk.is_some()),
        ("filter", settings.compress.is_some_and(|compress| compress.compression().is_some())),
        ("shuffle", settings.shuffle == Some(Shuffle::Yes)),
        ("fletcher32", settings.fletcher32 == Some(true)),
    ];
    match excluded.iter().find(|(_, is_set)| *is_set) {
        Some((name, _)) => {
            let word = unchunked.word();
            Err(format!("{word} datasets have neither chunks nor filters: leave out {name}, or {word}"))
        }
        None => Ok(()),
    }
}

fn is_yes(name: &str, value: Option<&str>) -> Result<bool, String> {
    match value {
        None | Some("yes") => Ok(true),
        Some("no") => Ok(false),
        Some(_) => Err(format!("{name} is yes or no")),
    }
}

fn not_a_setting(part: &str) -> String {
    format!("{part:?}: not a setting; settings are {}", NAMES.join(", "))
}

/// Splits a string at commas outside of parentheses.
fn split(text: &str) -> Vec<&str> {
    let mut depth = 0;
    let is_separator = |c: char| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        c == ',' && depth == 0
    };
    text.split(is_separator).map(str::trim).collect()
}
