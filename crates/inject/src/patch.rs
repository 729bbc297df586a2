//! Settings as a patch of HDF5's source that makes them the defaults, as Xie, Tang and others (2021) applied them.

use crate::error::{InjectError, Result};
use raddle_tune::knob::{ALIGNMENT_THRESHOLD_BYTES, Knob, Settings};
use std::path::Path;

/// Lines of context around a change.
const CONTEXT: usize = 3;

/// The macro of each default, and its file relative to the source folder.
const DEFINITIONS: [(Knob, &str, &str); 7] = [
    (Knob::AlignmentThreshold, "src/H5Fprivate.h", "H5F_ALIGN_THRHD_DEF"),
    (Knob::Alignment, "src/H5Fprivate.h", "H5F_ALIGN_DEF"),
    (Knob::MetaBlock, "src/H5Fprivate.h", "H5F_META_BLOCK_SIZE_DEF"),
    (Knob::SmallDataBlock, "src/H5Fprivate.h", "H5F_SDATA_BLOCK_SIZE_DEF"),
    (Knob::Sieve, "src/H5Pfapl.c", "H5F_ACS_SIEVE_BUF_SIZE_DEF"),
    (Knob::ChunkCacheSlots, "src/H5Pfapl.c", "H5F_ACS_DATA_CACHE_NUM_SLOTS_DEF"),
    (Knob::ChunkCache, "src/H5Pfapl.c", "H5F_ACS_DATA_CACHE_BYTE_SIZE_DEF"),
];

/// Returns the settings without a default that could be changed in the source.
pub fn left_out(settings: &Settings) -> Vec<Knob> {
    settings.0.keys().copied().filter(|knob| !DEFINITIONS.iter().any(|(known, ..)| known == knob)).collect()
}

/// Returns a patch (`patch -p1`) of the HDF5 source in `folder`.
///
/// # Errors
/// If a source file cannot be read, or lacks a definition that must be changed.
pub fn patch(settings: &Settings, folder: &Path) -> Result<String> {
    let mut text = String::new();
    for file in ["src/H5Fprivate.h", "src/H5Pfapl.c"] {
        let path = folder.join(file);
        let mut changes = Vec::new();
        for &(knob, _, name) in DEFINITIONS.iter().filter(|(_, of, _)| *of == file) {
            let implied = (knob == Knob::AlignmentThreshold && settings.whole(Knob::Alignment).is_some())
                .then_some(ALIGNMENT_THRESHOLD_BYTES);
            if let Some(value) = settings.whole(knob).or(implied) {
                changes.push((name, value));
            }
        }
        if changes.is_empty() {
            continue;
        }
        let failed = |source| InjectError::Io { path: path.clone(), operation: "reading", source };
        let before: Vec<u8> = std::fs::read(&path).map_err(failed)?;
        let before = String::from_utf8_lossy(&before).into_owned();
        let before: Vec<&str> = before.lines().collect();
        let mut after: Vec<String> = before.iter().map(|&line| line.to_owned()).collect();
        for (name, value) in changes {
            let defines = |line: &&str| {
                line.strip_prefix("#define ").is_some_and(|rest| rest.split_whitespace().next() == Some(name))
            };
            let at = before.iter().position(defines);
            let at = at.ok_or_else(|| InjectError::Source { path: path.clone(), definition: name })?;
            after[at] = format!("#define {name} {value}");
        }
        text.push_str(&format!("--- a/{file}\n+++ b/{file}\n{}", hunks(&before, &after)));
    }
    Ok(text)
}

/// Returns the hunks that turn `before` into `after`, which have the same number of lines.
fn hunks(before: &[&str], after: &[String]) -> String {
    let changed: Vec<usize> = (0..before.len()).filter(|&at| before[at] != after[at]).collect();
    let mut text = String::new();
    let mut next = 0;
    while next < changed.len() {
        let begin = changed[next].saturating_sub(CONTEXT);
        let mut last = next;
        while last + 1 < changed.len() && changed[last + 1] <= changed[last] + 2 * CONTEXT {
            last += 1;
        }
        let end = (changed[last] + CONTEXT + 1).min(before.len());
        text.push_str(&format!("@@ -{0},{1} +{0},{1} @@\n", begin + 1, end - begin));
        for at in begin..end {
            if before[at] == after[at] {
                text.push_str(&format!(" {}\n", before[at]));
            } else {
                text.push_str(&format!("-{}\n+{}\n", before[at], after[at]));
            }
        }
        next = last + 1;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use raddle_tune::knob::SettingValue;

    #[test]
    fn a_patch_changes_definitions_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("src")).unwrap();
        let lines: Vec<String> = (0..20).map(|number| format!("line {number}")).collect();
        let source = format!(
            "{}\n#define H5F_ALIGN_DEF 1\n/* default */\n#define H5F_ALIGN_THRHD_DEF 1\n#define H5F_META_BLOCK_SIZE_DEF 2048\nend\n",
            lines.join("\n")
        );
        std::fs::write(folder.path().join("src/H5Fprivate.h"), source).unwrap();
        let settings = Settings::default()
            .and(Knob::Alignment, SettingValue::Whole(1 << 20))
            .and(Knob::Gzip, SettingValue::Whole(1));
        let expected = "--- a/src/H5Fprivate.h\n+++ b/src/H5Fprivate.h\n@@ -18,8 +18,8 @@\n line 17\n line 18\n line 19\n\
                        -#define H5F_ALIGN_DEF 1\n+#define H5F_ALIGN_DEF 1048576\n /* default */\n\
                        -#define H5F_ALIGN_THRHD_DEF 1\n+#define H5F_ALIGN_THRHD_DEF 65536\n #define H5F_META_BLOCK_SIZE_DEF 2048\n end\n";
        assert_eq!(patch(&settings, folder.path()).unwrap(), expected);
        assert_eq!(left_out(&settings), [Knob::Gzip]);
        let other = Settings::default().and(Knob::SmallDataBlock, SettingValue::Whole(1));
        assert!(matches!(patch(&other, folder.path()), Err(InjectError::Source { .. })));
    }
}
