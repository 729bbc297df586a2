//! Contents of folders.

use std::path::Path;

/// Returns the sorted names in a folder.
pub fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Returns the number of files that raddle has left next to an output.
pub fn count_left_beside(output: &Path) -> usize {
    let prefix = format!(".{}", output.file_name().unwrap().to_str().unwrap());
    names(output.parent().unwrap()).iter().filter(|name| name.starts_with(&prefix)).count()
}
