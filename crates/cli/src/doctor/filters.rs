//! The section about the HDF5 filters: those of raddle, and the plugins that other programs find.

use super::{Check, Section};
use crate::render::{escape, quantity};
use raddle_codec::{Compression, KnownFilter};
use serde_json::json;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Variable with the folders in which libhdf5 looks for plugins.
const PLUGIN_PATH: &str = "HDF5_PLUGIN_PATH";

/// Makes the section about the HDF5 filters.
pub(super) fn section() -> Section {
    let read = KnownFilter::ALL.map(KnownFilter::name);
    let written = written();
    let mut checks = vec![
        Check::ok("read", read.join(", ")).value(json!(read)),
        Check::ok("written", written.join(", ")).value(json!(written)),
    ];
    checks.extend(plugins(std::env::var_os(PLUGIN_PATH).as_deref()));
    Section::new("filters", checks)
}

/// Returns the names of filters that raddle can write.
fn written() -> Vec<&'static str> {
    let zstd = Compression::Zstd(Compression::DEFAULT_ZSTD_LEVEL);
    let compressions = [Compression::default(), zstd, Compression::Lz4];
    let others = [KnownFilter::Shuffle, KnownFilter::Fletcher32];
    compressions.map(Compression::known_filter).into_iter().chain(others).map(KnownFilter::name).collect()
}

/// Describes the plugins that programs with libhdf5 find; raddle itself loads none.
fn plugins(path: Option<&OsStr>) -> Vec<Check> {
    let Some(path) = path.filter(|path| !path.is_empty()) else {
        return vec![
            Check::note(
                "plugins",
                format!("{PLUGIN_PATH} is not set: other programs may not read zstd and lz4 (raddle does)"),
            )
            .remedy("in Python: pip install hdf5plugin, and import it before h5py"),
        ];
    };
    let mut checks = Vec::new();
    let folders: Vec<PathBuf> = std::env::split_paths(path).filter(|folder| !folder.as_os_str().is_empty()).collect();
    for (at, folder) in folders.iter().enumerate() {
        let name = if folders.len() == 1 { "plugins".to_owned() } else { format!("plugins {}", at + 1) };
        checks.push(in_folder(&name, folder));
    }
    checks
}

fn in_folder(name: &str, folder: &Path) -> Check {
    let path_text = escape::path(folder);
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(cause) => {
            return Check::note(name, format!("{path_text}: {cause}"))
                .value(json!([]))
                .remedy(&format!("correct {PLUGIN_PATH}, which other programs use; raddle does not"));
        }
    };
    let mut objects: Vec<String> = entries
        .filter_map(|entry| Some(entry.ok()?.file_name().to_string_lossy().into_owned()))
        .filter(|name| is_object(name))
        .collect();
    objects.sort_unstable();
    let found = match objects.len() {
        0 => format!("none in {path_text}"),
        count => format!("{} in {path_text}: {}", quantity::count(count as u64), escape::text(&objects.join(", "))),
    };
    Check::ok(name, found).value(json!(objects))
}

/// Returns whether a file is a shared object by its name: `libh5zstd.so`, `libH5Zzstd.so.1.2`, `plugin.dylib`.
fn is_object(name: &str) -> bool {
    name.ends_with(".so") || name.contains(".so.") || name.ends_with(".dylib")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Mark;

    #[test]
    fn everything_that_is_written_can_be_read() {
        let written = written();
        assert!(written.contains(&"deflate") && written.contains(&"zstd"), "{written:?}");
        assert!(written.iter().all(|name| KnownFilter::ALL.iter().any(|known| known.name() == *name)));
    }

    #[test]
    fn plugins_are_listed_and_absent_folders_noted() {
        assert_eq!(plugins(None)[0].mark, Mark::Note);
        assert_eq!(plugins(Some(OsStr::new("")))[0].mark, Mark::Note);
        let folder = tempfile::tempdir().unwrap();
        for name in ["libh5zstd.so", "libH5Zlz4.so.1", "notes.txt", "b\u{1b}.so"] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        let both = format!("{0}:{0}/none", folder.path().display());
        let checks = plugins(Some(OsStr::new(&both)));
        assert_eq!((checks.len(), checks[0].mark, checks[1].mark), (2, Mark::Ok, Mark::Note), "{checks:?}");
        assert_eq!(checks[0].value, Some(json!(["b\u{1b}.so", "libH5Zlz4.so.1", "libh5zstd.so"])));
        assert!(checks[0].found.contains("libh5zstd.so") && !checks[0].found.contains(['\u{1b}']), "{checks:?}");
    }
}
