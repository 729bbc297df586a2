//! Expansion of paths, folders, globs and lists to one ordered list of input files.
//!
//! Only names and file metadata are looked at. Named files that do not exist or cannot be read are still listed, so
//! that the scan can report all bad inputs together. Invariant: the list names every file once, unless duplicates were
//! requested.

mod first_value;
pub(crate) mod left_out_coordinates;
pub(crate) mod left_out_scales;
pub(crate) mod linked_files;
mod natural;
pub mod order;
pub(crate) mod paths;
pub(crate) mod reader;
pub mod selection;
pub(crate) mod value_source;

use crate::error::{MergeError, Result};
use raddle_hdf5::native::superblock::SIGNATURE;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// File extensions that are picked up from a folder: HDF5 and formats based on HDF5.
pub(crate) const HDF5_ENDINGS: [&str; 9] = ["h5", "hdf5", "hdf", "he5", "nc", "nc4", "h5ad", "nwb", "nxs"];

/// Files whose presence marks a folder as a Zarr store, version 3 or 2.
const ZARR_FILES: [&str; 3] = ["zarr.json", ".zgroup", ".zarray"];

/// A source of input files.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum InputSpec {
    /// A file, a folder (its HDF5 files, without subfolders), or a glob pattern if no such file exists. In a pattern
    /// `**` stands for any number of folders; as in a shell, hidden files match only patterns that begin with a dot.
    Path(PathBuf),
    /// A text file with one path per line; empty lines and lines that begin with `#` are skipped.
    List(PathBuf),
    /// Paths from another source, in their order.
    Listed(Vec<PathBuf>),
}

/// Order of the inputs, which determines the order of rows in the output.
///
/// Natural order applies to paths in plain sorted order, as a shell's glob produces them. Lists and paths typed in a
/// different order keep their order. Files of one folder or pattern are always in natural order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum InputOrder {
    /// Natural order of numbers: run2 before run10.
    #[default]
    Natural,
    /// As given.
    Given,
}

/// Handling of files that are listed more than once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum DuplicatePolicy {
    /// Stop, because rows would be duplicated.
    #[default]
    #[cfg_attr(feature = "clap", value(alias = "error"))]
    Refuse,
    /// Use the rows of the file twice.
    Keep,
    /// Use its rows once.
    Drop,
}

/// Expands `specs` to the list of input files.
///
/// # Errors
/// If a glob has no match, a folder has no HDF5 files or cannot be read, a list cannot be read, or the same file is
/// given twice. Files that do not exist are not an error here.
pub fn expand(specs: &[InputSpec], order: InputOrder, duplicates: DuplicatePolicy) -> Result<Vec<PathBuf>> {
    let mut inputs = Vec::new();
    // Consecutive paths from the command line, such as a pattern expanded by the shell.
    let mut named = Vec::new();
    let flush = |named: &mut Vec<PathBuf>, inputs: &mut Vec<PathBuf>| {
        if order == InputOrder::Natural && named.is_sorted() {
            named.sort_by(|left, right| natural::compare_paths(left, right));
        }
        inputs.append(named);
    };
    for spec in specs {
        match spec {
            InputSpec::Path(path) => {
                let mut found = expand_path(path)?;
                if found.as_slice() == std::slice::from_ref(path) {
                    named.append(&mut found);
                    continue;
                }
                flush(&mut named, &mut inputs);
                // Files from a folder or pattern have no given order.
                found.sort_by(|left, right| natural::compare_paths(left, right));
                inputs.append(&mut found);
            }
            InputSpec::List(path) => {
                flush(&mut named, &mut inputs);
                inputs.extend(read_list(path)?);
            }
            InputSpec::Listed(paths) => {
                flush(&mut named, &mut inputs);
                inputs.extend(paths.iter().cloned());
            }
        }
    }
    flush(&mut named, &mut inputs);
    if inputs.is_empty() {
        return Err(MergeError::NoInputs { hint: "name files, folders, patterns or @list".to_owned() });
    }
    match duplicates {
        DuplicatePolicy::Keep => Ok(inputs),
        DuplicatePolicy::Refuse | DuplicatePolicy::Drop => without_duplicates(inputs, duplicates),
    }
}

/// Splits the bytes of a list into paths: one per line, or NUL-separated. A byte order mark, as some editors write at
/// the start of a text, is skipped.
pub fn parse_list(bytes: &[u8], zero_separated: bool) -> Vec<PathBuf> {
    let separator = if zero_separated { 0 } else { b'\n' };
    let text = if zero_separated { None } else { bytes.strip_prefix("\u{feff}".as_bytes()) };
    text.unwrap_or(bytes)
        .split(|&byte| byte == separator)
        .map(|line| if zero_separated { line } else { line.strip_suffix(b"\r").unwrap_or(line) })
        .filter(|line| !line.is_empty() && (zero_separated || line[0] != b'#'))
        .map(|line| PathBuf::from(std::ffi::OsString::from_vec(line.to_vec())))
        .collect()
}

/// Formats a list with one path per line that [`parse_list`] reads back as the same files.
///
/// # Errors
/// [`MergeError::Unlistable`] for a path that does not fit on one line.
pub fn format_list(paths: &[PathBuf]) -> Result<Vec<u8>> {
    let mut list = Vec::new();
    for path in paths {
        let name = path.as_os_str().as_bytes();
        if name.contains(&b'\n') || name.ends_with(b"\r") {
            return Err(MergeError::Unlistable { path: path.clone() });
        }
        if name.starts_with(b"#") {
            // Otherwise it would be read as a comment.
            list.extend_from_slice(b"./");
        }
        list.extend_from_slice(name);
        list.push(b'\n');
    }
    Ok(list)
}

/// Returns whether two paths refer to the same file.
pub fn same_file(left: &Path, right: &Path) -> bool {
    let identity = |path: &Path| std::fs::metadata(path).ok().map(|metadata| (metadata.dev(), metadata.ino()));
    identity(left).is_some_and(|left| Some(left) == identity(right))
}

fn read_list(path: &Path) -> Result<Vec<PathBuf>> {
    let mut bytes = Vec::new();
    let read = std::fs::File::open(path).and_then(|mut file| file.read_to_end(&mut bytes));
    read.map_err(|source| MergeError::Input { path: path.to_path_buf(), source })?;
    if bytes.starts_with(SIGNATURE) {
        let hint = format!("{} is an HDF5 file, not a list of paths; name it without --list or @", path.display());
        return Err(MergeError::NoInputs { hint });
    }
    Ok(parse_list(&bytes, false))
}

fn expand_path(path: &Path) -> Result<Vec<PathBuf>> {
    match std::fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => list_folder(path),
        Err(_) if is_pattern(path) => expand_pattern(path),
        _ => Ok(vec![path.to_path_buf()]),
    }
}

fn list_folder(folder: &Path) -> Result<Vec<PathBuf>> {
    let files: Vec<PathBuf> = read_folder(folder)?
        .into_iter()
        .filter(|path| {
            path.extension().and_then(OsStr::to_str).is_some_and(|ending| HDF5_ENDINGS.contains(&ending))
                && !is_hidden(path)
                && !path.is_dir()
        })
        .collect();
    if files.is_empty() && ZARR_FILES.iter().any(|name| folder.join(name).is_file()) {
        let what = "is a Zarr store, not HDF5; convert it, for example with xarray (open_zarr and to_netcdf)";
        return Err(MergeError::NoInputs { hint: format!("folder {} {what}", folder.display()) });
    }
    if files.is_empty() {
        let hint = format!("folder {} has no file ending in {}", folder.display(), HDF5_ENDINGS.join(", "));
        return Err(MergeError::NoInputs { hint });
    }
    Ok(files)
}

fn read_folder(folder: &Path) -> Result<Vec<PathBuf>> {
    let input = |source| MergeError::Input { path: folder.to_path_buf(), source };
    std::fs::read_dir(folder).map_err(input)?.map(|entry| Ok(entry.map_err(input)?.path())).collect()
}

fn is_pattern(path: &Path) -> bool {
    path.as_os_str().as_bytes().iter().any(|byte| b"*?[{".contains(byte))
}

fn is_hidden(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.as_bytes().starts_with(b"."))
}

/// Returns the paths in `folder`, or in the current folder if `folder` is empty. The result is empty if `folder` is not
/// a folder.
fn inside(folder: &Path) -> Result<Vec<PathBuf>> {
    let looked_at = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    if !looked_at.is_dir() {
        return Ok(Vec::new());
    }
    let paths = read_folder(looked_at)?;
    Ok(paths.iter().filter_map(|path| path.file_name()).map(|name| folder.join(name)).collect())
}

/// Returns `folder` and its subfolders at any depth, except hidden ones. Symbolic links are not followed because they
/// may form cycles.
fn with_folders_inside(folder: PathBuf) -> Result<Vec<PathBuf>> {
    let mut found = vec![folder];
    let mut next = 0;
    while let Some(folder) = found.get(next) {
        next += 1;
        let is_folder = |path: &PathBuf| std::fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_dir());
        let mut folders = inside(folder)?;
        folders.retain(|path| !is_hidden(path) && is_folder(path));
        found.append(&mut folders);
    }
    Ok(found)
}

/// Expands a pattern component by component.
fn expand_pattern(pattern: &Path) -> Result<Vec<PathBuf>> {
    let mut found = vec![PathBuf::new()];
    let mut components = pattern.components().peekable();
    while let Some(component) = components.next() {
        let name = Path::new(component.as_os_str());
        if name.as_os_str() == "**" {
            let folders = found.into_iter().map(with_folders_inside).collect::<Result<Vec<_>>>()?;
            found = folders.into_iter().flatten().collect();
            // As the last component, `**` also matches files.
            if components.peek().is_some() {
                continue;
            }
        } else if !is_pattern(name) {
            found.iter_mut().for_each(|path| path.push(name));
            continue;
        }
        let text = name.to_string_lossy().into_owned();
        let glob = globset::GlobBuilder::new(&text).literal_separator(true).build();
        let matcher = glob.map_err(|source| MergeError::Pattern { pattern: text, source })?.compile_matcher();
        let mut next = Vec::new();
        for folder in found {
            let mut paths = inside(&folder)?;
            paths.retain(|path| is_hidden(name) || !is_hidden(path));
            next.extend(paths.into_iter().filter(|path| path.file_name().is_some_and(|name| matcher.is_match(name))));
        }
        found = next;
    }
    // A pattern with two `**` can find the same file more than once.
    found.sort();
    found.dedup();
    found.retain(|path| !path.is_dir());
    if found.is_empty() {
        return Err(MergeError::NoInputs { hint: format!("pattern {} matches no file", pattern.display()) });
    }
    Ok(found)
}

/// Returns the files, each once whatever its names; repetitions are refused or dropped.
fn without_duplicates(inputs: Vec<PathBuf>, duplicates: DuplicatePolicy) -> Result<Vec<PathBuf>> {
    let mut seen: HashMap<(u64, u64), PathBuf> = HashMap::new();
    let mut distinct = Vec::with_capacity(inputs.len());
    for path in inputs {
        // A file whose metadata cannot be read is reported by the scan, together with the other bad inputs.
        if let Ok(metadata) = std::fs::metadata(&path) {
            let identity = (metadata.dev(), metadata.ino());
            match seen.get(&identity) {
                Some(_) if duplicates == DuplicatePolicy::Drop => continue,
                Some(other) => return Err(MergeError::Duplicate { path, other: other.clone() }),
                None => seen.insert(identity, path.clone()),
            };
        }
        distinct.push(path);
    }
    Ok(distinct)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder_with(names: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        names.iter().for_each(|name| std::fs::write(folder.path().join(name), name).unwrap());
        folder
    }

    fn names(paths: &[PathBuf]) -> Vec<&str> {
        paths.iter().map(|path| path.file_name().unwrap().to_str().unwrap()).collect()
    }

    #[test]
    fn folders_and_globs_are_in_natural_order() {
        let folder = folder_with(&["run10.h5", "run2.h5", "notes.txt", ".hidden.h5"]);
        let spec = InputSpec::Path(folder.path().to_path_buf());
        assert_eq!(
            names(&expand(&[spec], InputOrder::Natural, DuplicatePolicy::Refuse).unwrap()),
            ["run2.h5", "run10.h5"]
        );
        let spec = InputSpec::Path(folder.path().join("run*.h5"));
        assert_eq!(
            names(&expand(&[spec], InputOrder::Natural, DuplicatePolicy::Refuse).unwrap()),
            ["run2.h5", "run10.h5"]
        );
        let names_of = ["r010.h5", "r011.h5", "r1.h5", "r2.h5", "r9.h5", "r10.h5"];
        let folder = folder_with(&names_of);
        let spec = InputSpec::Path(folder.path().to_path_buf());
        let found = expand(&[spec], InputOrder::Natural, DuplicatePolicy::Refuse).unwrap();
        assert_eq!(names(&found), ["r1.h5", "r2.h5", "r9.h5", "r010.h5", "r10.h5", "r011.h5"]);
    }

    #[test]
    fn given_order_is_that_of_the_specs_and_natural_inside_them() {
        let files: Vec<String> = (1..=20).rev().map(|number| format!("run{number}.h5")).collect();
        let folder = folder_with(&files.iter().map(String::as_str).collect::<Vec<_>>());
        let specs = ["run2?.h5", "run1*.h5", "run3.h5"].map(|name| InputSpec::Path(folder.path().join(name)));
        let mut expected = vec!["run20.h5".to_owned(), "run1.h5".to_owned()];
        expected.extend((10..20).map(|number| format!("run{number}.h5")));
        expected.push("run3.h5".to_owned());
        assert_eq!(names(&expand(&specs, InputOrder::Given, DuplicatePolicy::Refuse).unwrap()), expected);
    }

    #[test]
    fn lists_keep_their_order_and_skip_comments() {
        for text in ["# first\nb.h5\n\na file.h5\r\n", "\u{feff}b.h5\r\na file.h5", "\u{feff}# first\nb.h5\na file.h5"]
        {
            let paths = parse_list(text.as_bytes(), false);
            assert_eq!(paths, [PathBuf::from("b.h5"), PathBuf::from("a file.h5")], "{text:?}");
        }
        assert_eq!(parse_list(b"b\n1.h5\0a.h5\0", true), [PathBuf::from("b\n1.h5"), PathBuf::from("a.h5")]);
    }

    #[test]
    fn a_list_is_read_as_it_was_written() {
        let paths = ["a.h5", "#b.h5", " c .h5", "@d.h5", "e\r.h5"].map(PathBuf::from);
        let read = parse_list(&format_list(&paths).unwrap(), false);
        let same = ["a.h5", "./#b.h5", " c .h5", "@d.h5", "e\r.h5"].map(PathBuf::from);
        assert_eq!(read, same);
        for path in ["a\n.h5", "a.h5\r"].map(PathBuf::from) {
            assert!(matches!(format_list(&[path]), Err(MergeError::Unlistable { .. })));
        }
    }

    #[test]
    fn a_file_given_twice_is_refused_under_any_name() {
        let folder = folder_with(&["a.h5"]);
        std::os::unix::fs::symlink(folder.path().join("a.h5"), folder.path().join("b.h5")).unwrap();
        let spec = InputSpec::Path(folder.path().to_path_buf());
        assert!(matches!(
            expand(std::slice::from_ref(&spec), InputOrder::Natural, DuplicatePolicy::Refuse),
            Err(MergeError::Duplicate { .. })
        ));
        let count = |duplicates| expand(std::slice::from_ref(&spec), InputOrder::Natural, duplicates).unwrap().len();
        assert_eq!((count(DuplicatePolicy::Keep), count(DuplicatePolicy::Drop)), (2, 1));
    }

    #[test]
    fn what_names_nothing_is_an_error() {
        let folder = folder_with(&[]);
        for path in [folder.path().to_path_buf(), folder.path().join("*.h5"), folder.path().join("**/*.h5")] {
            assert!(expand(&[InputSpec::Path(path)], InputOrder::Natural, DuplicatePolicy::Refuse).is_err());
        }
    }

    #[test]
    fn an_hdf5_file_is_not_read_as_a_list() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.h5");
        std::fs::write(&path, [SIGNATURE.as_slice(), b"\0rest\n"].concat()).unwrap();
        let listed = expand(&[InputSpec::List(path)], InputOrder::Natural, DuplicatePolicy::Refuse);
        let reported = listed.unwrap_err().to_string();
        assert!(reported.contains("is an HDF5 file, not a list of paths"), "{reported}");
    }

    #[test]
    fn a_zarr_store_is_called_one() {
        for name in ZARR_FILES {
            let folder = folder_with(&[name]);
            let spec = InputSpec::Path(folder.path().to_path_buf());
            let reported = expand(&[spec], InputOrder::Natural, DuplicatePolicy::Refuse).unwrap_err().to_string();
            assert!(reported.contains("is a Zarr store"), "{reported}");
        }
    }

    /// Returns the files that `pattern` matches in `folder`, relative to it.
    fn matches(folder: &tempfile::TempDir, pattern: &str) -> Vec<String> {
        let spec = InputSpec::Path(folder.path().join(pattern));
        let found = expand(&[spec], InputOrder::Natural, DuplicatePolicy::Keep).unwrap_or_default();
        found.iter().map(|path| path.strip_prefix(folder.path()).unwrap().to_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn two_stars_cross_folders() {
        let folder = folder_with(&["top.h5", "notes.txt"]);
        for inner in ["a/b", "c", ".git"] {
            std::fs::create_dir_all(folder.path().join(inner)).unwrap();
        }
        for file in ["a/1.h5", "a/b/2.h5", "c/3.h5", ".git/4.h5"] {
            std::fs::write(folder.path().join(file), file).unwrap();
        }
        std::os::unix::fs::symlink("..", folder.path().join("a/up")).unwrap();
        assert_eq!(matches(&folder, "**/*.h5"), ["a/1.h5", "a/b/2.h5", "c/3.h5", "top.h5"]);
        assert_eq!(matches(&folder, "a/**/*.h5"), ["a/1.h5", "a/b/2.h5"]);
        assert_eq!(matches(&folder, "**/b/**/**/*.h5"), ["a/b/2.h5"]);
        assert_eq!(matches(&folder, "a/**"), ["a/1.h5", "a/b/2.h5"]);
        assert_eq!(matches(&folder, "*/*.h5"), ["a/1.h5", "c/3.h5"]);
    }

    #[test]
    fn hidden_files_are_asked_for_by_their_dot() {
        let folder = folder_with(&["a.h5", ".x.h5"]);
        assert_eq!(matches(&folder, "*.h5"), ["a.h5"]);
        assert_eq!(matches(&folder, "?x.h5"), Vec::<String>::new());
        assert_eq!(matches(&folder, ".*.h5"), [".x.h5"]);
    }

    #[test]
    fn what_cannot_be_read_is_left_to_whoever_reads() {
        let folder = folder_with(&["a.h5"]);
        std::os::unix::fs::symlink("nowhere", folder.path().join("dangling.h5")).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, folder.path().join("pipe.h5"), 0o600.into()).unwrap();
        std::fs::create_dir(folder.path().join("folder.h5")).unwrap();
        for pattern in ["", "*", "*.h5", "**/*.h5"] {
            assert_eq!(matches(&folder, pattern), ["a.h5", "dangling.h5", "pipe.h5"], "{pattern}");
        }
        assert_eq!(matches(&folder, "none.h5"), ["none.h5"]);
    }
}
