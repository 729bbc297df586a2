//! Filters that options and layout rules request, and the rules that decide.

use crate::options::{Compress, MergeOptions, Shuffle};
use crate::plan::layout_rules::LayoutSettings;

/// Requested filters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AskedFilters {
    pub compress: Compress,
    pub shuffle: Shuffle,
    /// Whether chunks are shuffled even if they are not compressed.
    pub shuffles_alone: bool,
    /// Whether chunks have checksums; `None`: as in the inputs.
    pub fletcher32: Option<bool>,
}

impl AskedFilters {
    /// Returns the filters for all datasets.
    pub fn of(options: &MergeOptions) -> Self {
        let fletcher32 = options.fletcher32.then_some(true);
        Self { compress: options.compress, shuffle: options.shuffle, shuffles_alone: false, fletcher32 }
    }

    /// Applies the filters of a rule. `is_replaced` states whether a rule in the syntax of h5repack removed all others.
    pub fn set(&mut self, settings: &LayoutSettings, is_replaced: &mut bool) {
        if settings.replaces_filters && !*is_replaced {
            *is_replaced = true;
            *self =
                Self { compress: Compress::None, shuffle: Shuffle::No, shuffles_alone: true, fletcher32: Some(false) };
        }
        self.compress = settings.compress.unwrap_or(self.compress);
        self.shuffle = settings.shuffle.unwrap_or(self.shuffle);
        self.fletcher32 = settings.fletcher32.or(self.fletcher32);
    }

    /// Returns whether a rule adds a filter, which needs chunks.
    pub fn needs_chunks(&self, settings: &LayoutSettings) -> bool {
        settings.compress.is_some_and(|compress| compress != Compress::Keep && compress.compression().is_some())
            || settings.shuffle == Some(Shuffle::Yes) && (self.compress.compression().is_some() || self.shuffles_alone)
            || settings.fletcher32 == Some(true)
    }
}

/// Numbers of the rules that decide each setting of a dataset.
#[derive(Debug, Default)]
pub(super) struct DecidingRules {
    pub chunk: Option<u32>,
    pub unchunked: Option<u32>,
    pub compress: Option<u32>,
    pub shuffle: Option<u32>,
    pub fletcher32: Option<u32>,
}

impl DecidingRules {
    /// Records the filters of a rule.
    pub fn set_filters(&mut self, settings: &LayoutSettings, number: u32) {
        let is_set = |has_setting: bool, known: Option<u32>| if has_setting { Some(number) } else { known };
        self.compress = is_set(settings.compress.is_some(), self.compress);
        self.shuffle = is_set(settings.shuffle.is_some(), self.shuffle);
        self.fletcher32 = is_set(settings.fletcher32.is_some(), self.fletcher32);
    }

    pub fn numbers(&self) -> Vec<u32> {
        let all = [self.chunk, self.unchunked, self.compress, self.shuffle, self.fletcher32];
        let mut numbers: Vec<u32> = all.into_iter().flatten().collect();
        numbers.sort_unstable();
        numbers.dedup();
        numbers
    }
}
