//! Translation of named settings to the settings of a library, and back from settings found in a file.
//!
//! Invariant: a setting is either passed to the library or refused; none is dropped.

use crate::error::{Obstacle, Result, TuneError};
use crate::knob::{ALIGNMENT_THRESHOLD_BYTES, Knob, PropertyListKind, SettingValue, Settings};
use raddle_hdf5::dynamic::{ChunkCache, DatasetSettings, FileSettings, SzipCoding};

/// Version and filters of a library, which determine the available settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Abilities {
    /// Version, such as `1.10.8`.
    pub version: String,
    /// Names of filters.
    pub filters: Vec<&'static str>,
    /// Whether the library supports ranks; `None` for a single process.
    pub ranks: Option<bool>,
    /// Version of the zlib that the library was loaded with; `None` for the bundled library, which contains zlib.
    pub zlib: Option<String>,
}

/// Settings in the form that a library accepts.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TranslatedSettings {
    /// Settings of the file.
    pub file: FileSettings,
    /// Settings of datasets.
    pub dataset: DatasetSettings,
    /// Datasets of at most this many bytes are compact.
    pub compact_len_bytes: Option<u64>,
    /// Size of the conversion buffer, in bytes.
    pub buffer_len_bytes: Option<u64>,
    /// Whether ranks read and write metadata collectively.
    pub collective_metadata: bool,
}

/// Numbers of `H5F_libver_t`, with the version that introduced them.
const BOUNDS: [(&str, i32, [u32; 2]); 4] =
    [("v18", 1, [1, 10]), ("v110", 2, [1, 10]), ("v112", 3, [1, 12]), ("v114", 4, [1, 14])];

impl Abilities {
    fn is_since(&self, since: [u32; 2]) -> bool {
        let mut numbers = self.version.split('.').map(|number| number.parse::<u32>().unwrap_or(0));
        [numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)] >= since
    }

    /// Returns the newest bound that the library supports.
    fn newest_bound(&self) -> i32 {
        let known = BOUNDS.iter().filter(|(_, _, since)| self.is_since(*since)).map(|(_, number, _)| *number).max();
        if self.is_since([2, 0]) { 5 } else { known.unwrap_or(1) }
    }

    /// Checks whether a zlib can be replaced: another zlib is used only if it was loaded before the library.
    fn zlib_obstacle(&self, value: &SettingValue) -> Option<Obstacle> {
        let SettingValue::Text(wanted) = value else { return None };
        if self.zlib.is_none() {
            return Some(Obstacle::OwnZlib(self.version.clone()));
        }
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
        let file = std::fs::canonicalize(wanted).unwrap_or_else(|_| wanted.into());
        let is_wanted = |line: &str| line.ends_with(&*file.to_string_lossy());
        let is_loaded = maps.lines().any(is_wanted);
        let has_another = maps.lines().any(|line| line.contains("/libz.so") && !is_wanted(line));
        (!is_loaded || has_another).then_some(Obstacle::Preload)
    }

    fn obstacle(&self, knob: Knob, value: &SettingValue) -> Option<Obstacle> {
        let filter = match knob {
            Knob::Gzip | Knob::Szip | Knob::SzipEntropy if *value == SettingValue::Whole(0) => None,
            Knob::Gzip => Some("gzip"),
            Knob::Szip | Knob::SzipEntropy => Some("szip"),
            _ => None,
        };
        match (knob, knob.place()) {
            _ if filter.is_some_and(|filter| !self.filters.contains(&filter)) => {
                Some(Obstacle::Filter(self.version.clone()))
            }
            (Knob::CollectiveMetadata, _) | (_, PropertyListKind::MpiHints) => match self.ranks {
                None => Some(Obstacle::Ranks),
                Some(false) => Some(Obstacle::NotParallel(self.version.clone())),
                Some(true) => None,
            },
            (Knob::PageBuffer | Knob::FilePage, _) if self.ranks.is_some() => Some(Obstacle::OneProcess),
            (Knob::AutoChunkCache, _) => Some(Obstacle::Applied),
            (Knob::Zlib, _) => self.zlib_obstacle(value),
            (_, PropertyListKind::Folder) => Some(Obstacle::Stripes),
            (Knob::Libver, _) => {
                let SettingValue::Text(bound) = value else { return None };
                let (_, _, since) = BOUNDS.iter().find(|(name, _, _)| name == bound)?;
                (!self.is_since(*since)).then(|| Obstacle::Version(self.version.clone()))
            }
            _ => None,
        }
    }
}

/// Returns the MPI-IO hints among `settings`, with ROMIO's names.
pub fn hints(settings: &Settings) -> Vec<(String, String)> {
    let of = |(knob, value): (&Knob, &SettingValue)| match knob {
        Knob::CollectiveBuffering => {
            ["romio_cb_write", "romio_cb_read"].map(|key| (key.to_owned(), value.to_string())).into()
        }
        knob if knob.place() == PropertyListKind::MpiHints => vec![(knob.name().to_owned(), value.to_string())],
        _ => Vec::new(),
    };
    settings.0.iter().flat_map(of).collect()
}

impl TranslatedSettings {
    /// Translates settings for a library.
    ///
    /// # Errors
    /// If the library lacks one of them.
    pub fn of(settings: &Settings, abilities: &Abilities) -> Result<Self> {
        for (knob, value) in &settings.0 {
            if let Some(why) = abilities.obstacle(*knob, value) {
                return Err(TuneError::NotApplicable { knob: *knob, value: value.clone(), why });
            }
        }
        let whole = |knob| settings.whole(knob);
        if let (Some(1..), Some(pixels @ 1..)) = (whole(Knob::Szip), whole(Knob::SzipEntropy)) {
            let (knob, value, why) = (Knob::SzipEntropy, SettingValue::Whole(pixels), Obstacle::OneSzip);
            return Err(TuneError::NotApplicable { knob, value, why });
        }
        let level = |knob| whole(knob).filter(|level| *level > 0).map(|level| u32::try_from(level).unwrap_or(u32::MAX));
        let bound = |name: &str| {
            let known = BOUNDS.iter().find(|(bound, _, _)| *bound == name);
            known.map_or_else(|| abilities.newest_bound(), |(_, number, _)| *number)
        };
        let (alignment, threshold) = (whole(Knob::Alignment), whole(Knob::AlignmentThreshold));
        Ok(Self {
            file: FileSettings {
                alignment: alignment.map(|alignment| (threshold.unwrap_or(ALIGNMENT_THRESHOLD_BYTES), alignment)),
                meta_block_len_bytes: whole(Knob::MetaBlock),
                small_data_block_len_bytes: whole(Knob::SmallDataBlock),
                sieve_len_bytes: whole(Knob::Sieve),
                chunk_cache: ChunkCache {
                    len_bytes: whole(Knob::ChunkCache),
                    slots: whole(Knob::ChunkCacheSlots),
                    preemption: settings.number(Knob::ChunkCachePreemption),
                },
                metadata_cache_len_bytes: whole(Knob::MetadataCache),
                defers_flush: settings.is_on(Knob::DeferFlush).then_some(true),
                versions: match settings.get(Knob::Libver) {
                    Some(SettingValue::Text(name)) => Some((bound(name), bound(name))),
                    _ => None,
                },
                page_buffer_len_bytes: whole(Knob::PageBuffer),
                page_len_bytes: whole(Knob::FilePage),
            },
            dataset: DatasetSettings {
                chunk: match settings.get(Knob::Chunk) {
                    Some(SettingValue::Shape(shape)) => Some(shape.clone()),
                    _ => None,
                },
                gzip: level(Knob::Gzip),
                szip: [(Knob::Szip, SzipCoding::NearestNeighbour), (Knob::SzipEntropy, SzipCoding::Entropy)]
                    .into_iter()
                    .find_map(|(knob, coding)| Some((coding, level(knob)?))),
                shuffle: settings.is_on(Knob::Shuffle),
                fletcher32: settings.is_on(Knob::Fletcher32),
                no_fill: settings.is_on(Knob::NoFill),
                compact: false,
            },
            compact_len_bytes: whole(Knob::Compact),
            buffer_len_bytes: whole(Knob::ConversionBuffer),
            collective_metadata: settings.is_on(Knob::CollectiveMetadata),
        })
    }

    /// Returns the settings of a dataset of `len_bytes` bytes.
    pub fn dataset_of(&self, len_bytes: u64) -> DatasetSettings {
        let compact = self.compact_len_bytes.is_some_and(|limit| len_bytes <= limit);
        DatasetSettings { compact, ..self.dataset.clone() }
    }
}

/// Returns the requested settings that a file and its first dataset have, with their actual values. The size of the
/// conversion buffer cannot be read back, so it is never returned.
pub fn found(asked: &Settings, file: &FileSettings, dataset: &DatasetSettings) -> Settings {
    let filter = |level: Option<u32>| Some(SettingValue::Whole(u64::from(level.unwrap_or(0))));
    let szip = |wanted| dataset.szip.filter(|(coding, _)| *coding == wanted).map(|(_, pixels)| pixels);
    let mut all = Settings::default();
    for (knob, value) in &asked.0 {
        let found = match knob {
            Knob::Alignment => file.alignment.map(|(_, alignment)| SettingValue::Whole(alignment)),
            Knob::AlignmentThreshold => file.alignment.map(|(threshold, _)| SettingValue::Whole(threshold)),
            Knob::MetaBlock => file.meta_block_len_bytes.map(SettingValue::Whole),
            Knob::SmallDataBlock => file.small_data_block_len_bytes.map(SettingValue::Whole),
            Knob::Sieve => file.sieve_len_bytes.map(SettingValue::Whole),
            Knob::ChunkCache => file.chunk_cache.len_bytes.map(SettingValue::Whole),
            Knob::ChunkCacheSlots => file.chunk_cache.slots.map(SettingValue::Whole),
            Knob::ChunkCachePreemption => file.chunk_cache.preemption.map(SettingValue::Number),
            Knob::MetadataCache => file.metadata_cache_len_bytes.map(SettingValue::Whole),
            Knob::DeferFlush => file.defers_flush.map(SettingValue::Flag),
            Knob::PageBuffer => file.page_buffer_len_bytes.map(SettingValue::Whole),
            Knob::FilePage => file.page_len_bytes.map(SettingValue::Whole),
            Knob::Libver => file.versions.map(|(low, _)| match BOUNDS.iter().find(|(_, number, _)| *number == low) {
                // `latest` is reported by that name, not by the version it stands for.
                Some((name, _, _)) if *value != SettingValue::Text("latest".to_owned()) => {
                    SettingValue::Text((*name).to_owned())
                }
                _ => value.clone(),
            }),
            Knob::Chunk => dataset.chunk.clone().map(SettingValue::Shape),
            Knob::Gzip => filter(dataset.gzip),
            Knob::Szip => filter(szip(SzipCoding::NearestNeighbour)),
            Knob::SzipEntropy => filter(szip(SzipCoding::Entropy)),
            Knob::Shuffle => Some(SettingValue::Flag(dataset.shuffle)),
            Knob::Fletcher32 => Some(SettingValue::Flag(dataset.fletcher32)),
            Knob::NoFill => Some(SettingValue::Flag(dataset.no_fill)),
            Knob::Compact => dataset.compact.then(|| value.clone()),
            _ => None,
        };
        all.0.extend(found.map(|found| (*knob, found)));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn abilities(version: &str) -> Abilities {
        Abilities { version: version.to_owned(), filters: vec!["gzip", "shuffle"], ranks: None, zlib: None }
    }

    fn text(text: &str) -> SettingValue {
        SettingValue::Text(text.to_owned())
    }

    #[test]
    fn what_a_library_has_depends_on_its_version_and_filters() {
        let refused = |knob, value: SettingValue, version| {
            let settings = Settings::default().and(knob, value);
            TranslatedSettings::of(&settings, &abilities(version)).err().map(|error| error.to_string())
        };
        assert_eq!(refused(Knob::Libver, text("v110"), "1.10.8"), None);
        assert!(refused(Knob::Libver, text("v112"), "1.10.8").unwrap().contains("1.10.8"));
        assert_eq!(refused(Knob::Libver, text("v114"), "2.0.0"), None);
        assert!(refused(Knob::Szip, SettingValue::Whole(8), "2.0.0").unwrap().contains("filter"));
        assert!(refused(Knob::SzipEntropy, SettingValue::Whole(8), "2.0.0").unwrap().contains("filter"));
        assert_eq!(refused(Knob::Szip, SettingValue::Whole(0), "2.0.0"), None);
        let with_szip = Abilities { filters: vec!["szip"], ..abilities("1.10.8") };
        let both =
            Settings::default().and(Knob::Szip, SettingValue::Whole(8)).and(Knob::SzipEntropy, SettingValue::Whole(16));
        let error = TranslatedSettings::of(&both, &with_szip).unwrap_err().to_string();
        assert!(error.contains("szip_entropy = 16") && error.contains("only one"), "{error}");
        let none = both.and(Knob::Szip, SettingValue::Whole(0));
        let szip = TranslatedSettings::of(&none, &with_szip).unwrap().dataset.szip;
        assert_eq!(szip, Some((SzipCoding::Entropy, 16)));
        assert!(refused(Knob::CollectiveMetadata, SettingValue::Flag(true), "2.0.0").unwrap().contains("MPI"));
        assert!(refused(Knob::StripeCount, SettingValue::Whole(2), "2.0.0").unwrap().contains("stripes"));
        let latest = Settings::default().and(Knob::Libver, text("latest"));
        let bounds = |version| TranslatedSettings::of(&latest, &abilities(version)).unwrap().file.versions;
        assert_eq!((bounds("1.10.8"), bounds("1.14.6"), bounds("2.2.0")), (Some((2, 2)), Some((4, 4)), Some((5, 5))));
    }

    #[test]
    fn small_datasets_alone_are_compact() {
        let settings = Settings::default().and(Knob::Compact, SettingValue::Whole(8192));
        let translated = TranslatedSettings::of(&settings, &abilities("1.10.8")).unwrap();
        assert!(translated.dataset_of(8192).compact && !translated.dataset_of(8193).compact);
        let aligned = Settings::default().and(Knob::Alignment, SettingValue::Whole(4096));
        let aligned = TranslatedSettings::of(&aligned, &abilities("1.10.8")).unwrap();
        assert_eq!(aligned.file.alignment, Some((ALIGNMENT_THRESHOLD_BYTES, 4096)));
    }
}
