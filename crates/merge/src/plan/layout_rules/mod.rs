//! Layout rules: `PATTERN: chunk=64x128, filter=zstd:3`, for the datasets whose path matches.
//!
//! Patterns are those of `--include`. The rules of a dataset are applied one after another, and each setting keeps its
//! last value. Rules in the syntax of h5repack are converted to the same settings. Invariant: a rule has no effect that
//! its text does not name.

mod repack;
mod settings;

use crate::error::{MergeError, Result};
use crate::inputs::selection::glob_set;
use crate::options::{Compress, Shuffle};
use crate::plan::chunk::Chunk;
use globset::GlobSet;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

/// Layout rule of the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayoutRule {
    /// Rule, as the user wrote it.
    text: String,
    /// Datasets to which it applies.
    objects: RuleObjects,
    /// Settings for these datasets.
    settings: LayoutSettings,
}

/// Datasets to which a rule applies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RuleObjects {
    /// All datasets. A chunk shape applies to the datasets with as many dimensions.
    All,
    /// Datasets whose path, or the path of a group above them, matches one of these globs.
    Matching(Vec<String>),
}

/// Settings of a rule. A setting that is `None` is left to earlier rules and to the options for all datasets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LayoutSettings {
    /// Chunk shape.
    pub chunk: Option<Chunk>,
    /// Storage without chunks.
    pub unchunked: Option<UnchunkedStorage>,
    /// Compression.
    pub compress: Option<Compress>,
    /// Whether bytes are shuffled.
    pub shuffle: Option<Shuffle>,
    /// Whether chunks have checksums.
    pub fletcher32: Option<bool>,
    /// Whether filters that no rule in the syntax of h5repack names are removed.
    pub replaces_filters: bool,
}

/// Storage without chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnchunkedStorage {
    /// In one block of the file.
    Contiguous,
    /// In the object header.
    Compact,
}

impl UnchunkedStorage {
    /// Returns the word of the setting.
    pub fn word(self) -> &'static str {
        match self {
            Self::Contiguous => "contiguous",
            Self::Compact => "compact",
        }
    }
}

/// Description of the syntax, for messages.
const FORM: &str = "expected 'PATTERN: SETTING, SETTING', such as '/tas: chunk=time=365,lat=90, filter=zstd:3'; settings are \
                    chunk, filter, shuffle, fletcher32, contiguous and compact";

impl LayoutRule {
    /// Parses a rule, also one in the syntax of h5repack.
    ///
    /// # Errors
    /// If the text is not a valid rule; the error gives the reason.
    pub fn parse(text: &str) -> std::result::Result<Self, String> {
        let refuse = |why: String| format!("{text:?}: {why}");
        let colons = text.match_indices(':').map(|(at, _)| (&text[..at], &text[at + 1..]));
        // Objects and words may contain colons; the first setting begins with its name.
        let split = colons.chain([("", text)]).find_map(|(objects, behind)| {
            let behind = behind.trim();
            let is_repack = repack::begins(behind);
            // Without objects, h5repack applies a setting to all.
            let is_complete = is_repack || !objects.trim().is_empty();
            (is_complete && (is_repack || settings::begins(behind))).then_some((objects.trim(), behind, is_repack))
        });
        let (objects, behind, is_repack) = split.ok_or_else(|| refuse(FORM.to_owned()))?;
        let (objects, settings) = match is_repack {
            true => (repack::objects(objects), repack::parse(behind)),
            false => (RuleObjects::Matching(vec![objects.to_owned()]), settings::parse(behind)),
        };
        let rule = Self { text: text.to_owned(), objects, settings: settings.map_err(refuse)? };
        rule.matcher().map_err(|error| error.to_string())?;
        Ok(rule)
    }

    /// Reads rules from a TOML file, in which the table `layout` maps patterns to settings. Returns them in the order
    /// of the file.
    ///
    /// # Errors
    /// If the file is not TOML or holds an invalid rule; the error gives the place.
    pub fn parse_file(text: &str) -> std::result::Result<Vec<Self>, String> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct LayoutRulesFile {
            layout: BTreeMap<String, toml::Spanned<String>>,
        }
        let line = |at: usize| text[..at.min(text.len())].lines().count().max(1);
        let file: LayoutRulesFile = toml::from_str(text).map_err(|error: toml::de::Error| match error.span() {
            Some(span) => format!("line {}: {}", line(span.start), error.message()),
            None => error.message().to_owned(),
        })?;
        let mut rules: Vec<_> = file.layout.into_iter().collect();
        rules.sort_by_key(|(_, settings)| settings.span().start);
        let rule = |(pattern, settings): (String, toml::Spanned<String>)| {
            Self::parse(&format!("{pattern}: {}", settings.get_ref()))
                .map_err(|error| format!("line {}: {error}", line(settings.span().start)))
        };
        rules.into_iter().map(rule).collect()
    }

    /// Returns the settings that the rule requests.
    pub fn settings(&self) -> &LayoutSettings {
        &self.settings
    }

    /// Returns the datasets to which the rule applies.
    pub fn objects(&self) -> &RuleObjects {
        &self.objects
    }

    /// Returns the patterns as one string, for messages.
    pub fn pattern(&self) -> String {
        match &self.objects {
            RuleObjects::All => "/".to_owned(),
            RuleObjects::Matching(patterns) => patterns.join(","),
        }
    }

    /// Returns the matcher of object paths; `None` if the rule applies to all datasets.
    ///
    /// # Errors
    /// [`MergeError::Pattern`] for an invalid pattern.
    pub(crate) fn matcher(&self) -> Result<Option<GlobSet>, MergeError> {
        match &self.objects {
            RuleObjects::All => Ok(None),
            RuleObjects::Matching(patterns) => glob_set(patterns).map(Some),
        }
    }
}

impl FromStr for LayoutRule {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        Self::parse(text)
    }
}

impl fmt::Display for LayoutRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use raddle_codec::{Compression, Effort};

    fn parsed(text: &str) -> (RuleObjects, LayoutSettings) {
        let rule: LayoutRule = text.parse().unwrap();
        assert_eq!(rule.to_string(), text);
        (rule.objects, rule.settings)
    }

    fn named(sizes: &[(&str, u64)]) -> Option<Chunk> {
        Some(Chunk::Named(sizes.iter().map(|&(name, size)| (name.to_owned(), size)).collect()))
    }

    #[test]
    fn settings_follow_a_pattern() {
        let (objects, settings) = parsed("/tas: chunk=time=365,lat=90, lon=180, filter=zstd:3, shuffle");
        assert_eq!(objects, RuleObjects::Matching(vec!["/tas".to_owned()]));
        assert_eq!(settings.chunk, named(&[("time", 365), ("lat", 90), ("lon", 180)]));
        assert_eq!(settings.compress, Some(Compress::Encode(Compression::Zstd(3))));
        assert_eq!((settings.shuffle, settings.fletcher32), (Some(Shuffle::Yes), None));
        let (_, settings) = parsed("rec/*:compress=none,shuffle=no,fletcher32");
        assert_eq!((settings.compress, settings.shuffle), (Some(Compress::None), Some(Shuffle::No)));
        assert_eq!((settings.fletcher32, settings.replaces_filters), (Some(true), false));
        let (objects, settings) = parsed("a:b: compact");
        assert_eq!(objects, RuleObjects::Matching(vec!["a:b".to_owned()]));
        assert_eq!(settings.unchunked, Some(UnchunkedStorage::Compact));
        let (_, settings) = parsed("x: chunk=(filter=3, lat=2), contiguous=no");
        assert_eq!(settings.chunk, named(&[("filter", 3), ("lat", 2)]));
    }

    #[test]
    fn what_h5repack_takes_is_converted() {
        let (objects, settings) = parsed("g/a,b*:CHUNK=20x10");
        assert_eq!(objects, RuleObjects::Matching(vec!["/g/a".to_owned(), "/b[*]".to_owned()]));
        assert_eq!((settings.chunk, settings.replaces_filters), (Some(Chunk::Shape(vec![20, 10])), false));
        let (objects, settings) = parsed("CHUNK=20");
        assert_eq!((objects, settings.chunk), (RuleObjects::All, Some(Chunk::Shape(vec![20]))));
        assert_eq!(parsed(":CONTI").1.unchunked, Some(UnchunkedStorage::Contiguous));
        assert_eq!(parsed("a:COMPA").1.unchunked, Some(UnchunkedStorage::Compact));
        let (_, settings) = parsed("a:GZIP=6");
        assert_eq!(settings.compress, Some(Compress::Encode(Compression::Deflate(Effort::Gzip(6)))));
        assert!(settings.replaces_filters && settings.shuffle.is_none());
        assert_eq!(parsed("a:SHUF").1.shuffle, Some(Shuffle::Yes));
        assert_eq!(parsed("FLET").1.fletcher32, Some(true));
        assert_eq!(parsed("a:NONE").1.compress, Some(Compress::None));
        for (text, compression) in [
            ("a:UD=32015,0,1,7", Compression::Zstd(7)),
            ("a:UD=32015,1,7", Compression::Zstd(7)),
            ("a:UD=32015,1,0", Compression::Zstd(3)),
            ("a:UD=32004,1,1,1048576", Compression::Lz4),
            ("a:UD=32004,0", Compression::Lz4),
        ] {
            assert_eq!(parsed(text).1.compress, Some(Compress::Encode(compression)), "{text}");
        }
    }

    #[test]
    fn nonsense_is_refused_with_the_reason() {
        for (text, reason) in [
            ("", "expected 'PATTERN: SETTING"),
            ("/tas", "expected 'PATTERN: SETTING"),
            ("chunk=64x128", "expected 'PATTERN: SETTING"),
            ("/tas: 64x128", "expected 'PATTERN: SETTING"),
            ("/tas: chunk=64", "\"64\" is not a chunk shape"),
            ("/tas: chunk", "\"\" is not a chunk shape"),
            ("/tas: chunk=0x4", "\"0x4\" is not a chunk shape"),
            ("/tas: filter=best", "invalid compression \"best\""),
            ("/tas: shuffle=maybe", "shuffle is yes, no or keep"),
            ("/tas: fletcher32=1", "fletcher32 is yes or no"),
            (
                "/tas: contiguous, filter=zstd:3",
                "contiguous datasets have neither chunks nor filters: leave out filter",
            ),
            ("/tas: chunk=4x4, compact", "compact datasets have neither chunks nor filters: leave out chunk"),
            ("/tas: contiguous, compact", "contiguous and compact exclude each other"),
            ("/tas: chunk=4x4, chunk=5x5", "chunk is given twice"),
            ("/tas: filter=none, shuffle", "filter=none leaves none"),
            ("/tas: shuffle, lat=4", "\"lat=4\": not a setting"),
            ("/tas: chunk=4x4, lat=4", "\"lat=4\": not a setting"),
            ("[: chunk=4x4", "not a valid pattern"),
            ("a:SZIP=8,NN", "SZIP: raddle does not write szip"),
            ("a:NBIT", "NBIT: raddle does not write nbit"),
            ("a:SOFF=31,IN", "SOFF: raddle does not write scaleoffset"),
            ("a:UD=307,1,1,9", "UD: takes the filters 32015 (zstd) and 32004 (lz4), not 307 (bzip2)"),
            ("a:UD=9999,0,0", "not 9999"),
            ("a:UD=", "UD: expected the number of a filter"),
            ("a:UD=32015,0,5,1", "UD: expected the number of a filter"),
            ("a:UD=32015,0,1,30", "UD: invalid compression \"zstd:30\""),
            ("a:GZIP", "GZIP: expected a level from 0 to 9"),
            ("a:GZIP=10", "GZIP: expected a level from 0 to 9"),
            ("a:CHUNK=20x", "CHUNK: expected a shape"),
            ("a:CONTI=2", "CONTI: takes no value"),
        ] {
            let error = text.parse::<LayoutRule>().unwrap_err();
            assert!(error.contains(reason), "{text:?}: {error}");
        }
    }

    #[test]
    fn rules_of_a_file_keep_their_order() {
        let file = "[layout]\n\"z*\" = \"filter=lz4\"\n\"/a\" = \"contiguous\"\n\"m\" = \"chunk=time=1\"\n";
        let rules = LayoutRule::parse_file(file).unwrap();
        assert_eq!(
            rules.iter().map(ToString::to_string).collect::<Vec<_>>(),
            ["z*: filter=lz4", "/a: contiguous", "m: chunk=time=1"]
        );
        for (file, reason) in [
            ("[layout]\n\n\"/a\" = \"chunk=7\"\n", "line 3: "),
            ("[layout]\n\"/a\" = 7\n", "line 2: "),
            ("[rules]\n", "unknown field `rules`"),
            ("", "missing field `layout`"),
        ] {
            let error = LayoutRule::parse_file(file).unwrap_err();
            assert!(error.contains(reason), "{file:?}: {error}");
        }
    }
}
