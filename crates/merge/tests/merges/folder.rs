//! What lies in a folder.

use std::path::Path;

/// The names in a folder, in order.
pub fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// How many files raddle has left beside an output.
pub fn count_left_beside(output: &Path) -> usize {
    let prefix = format!(".{}", output.file_name().unwrap().to_str().unwrap());
    names(output.parent().unwrap()).iter().filter(|name| name.starts_with(&prefix)).count()
}
