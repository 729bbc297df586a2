//! Names of the datasets of a preview, derived from paths, which may contain any byte, for any file system.
//!
//! Invariant: the names of a list are distinct and depend on the list alone.

use std::collections::HashSet;

/// Maximum length of a name before its number: with extension, number and hidden companion files it stays below Linux's
/// 255 bytes.
const MAX_NAME_LEN: usize = 100;

/// Replaces characters that are not allowed in names of files and fields.
pub(super) fn plain(text: &str) -> String {
    let kept = |character: char| character.is_ascii_alphanumeric() || matches!(character, '_' | '-');
    text.chars().map(|character| if kept(character) { character } else { '_' }).collect()
}

/// Returns one name per path: `/` becomes `.`; characters other than letters, digits, `_` and `-` become `_`; names
/// that collide get a number.
pub(super) fn of_paths<'p>(paths: impl Iterator<Item = &'p str>) -> Vec<String> {
    let mut taken = HashSet::new();
    let name = |path: &str| {
        let parts: Vec<String> = path.split('/').filter(|part| !part.is_empty()).map(plain).collect();
        let whole = parts.join(".");
        // The end of a path is more specific than its beginning. All characters are ASCII here.
        let kept = &whole[whole.len().saturating_sub(MAX_NAME_LEN)..];
        let kept = kept.trim_start_matches(['.', '-']);
        let first = if kept.is_empty() { "array".to_owned() } else { kept.to_owned() };
        let numbered = (2u64..).map(|number| format!("{first}-{number}"));
        let mut free = std::iter::once(first.clone()).chain(numbered).skip_while(|name| taken.contains(name));
        // The iterator of numbers is infinite.
        let name = free.next().unwrap_or(first.clone());
        taken.insert(name.clone());
        name
    };
    paths.map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_safe_and_distinct() {
        let long = format!("/{}/end", "a".repeat(300));
        let paths =
            ["/fields/rho", "/fields.rho", "/fields-rho", "/fields_rho", "/ü%04x $(x)", "/../..", "/-rf", "/", &long];
        let names = of_paths(paths.into_iter());
        assert_eq!(names[..4], ["fields.rho", "fields_rho", "fields-rho", "fields_rho-2"]);
        assert_eq!(names[4..8], ["__04x___x_", "__.__", "rf", "array"]);
        assert!(names[8].ends_with("a.end") && names[8].len() == MAX_NAME_LEN);
    }
}
