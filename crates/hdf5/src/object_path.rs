//! Paths of objects: absolute, as bytes, with components separated by slashes.
//!
//! Paths of files are not covered. Invariant: a displayed path has no control characters.

/// Returns the parent of an absolute path; the root is its own parent.
pub fn parent_path(path: &[u8]) -> &[u8] {
    match path.iter().rposition(|&byte| byte == b'/') {
        Some(0) | None => b"/",
        Some(slash) => &path[..slash],
    }
}

/// Returns the path of a child; `parent` is an absolute path.
pub fn child_path(parent: &[u8], name: &[u8]) -> Vec<u8> {
    let mut path = Vec::with_capacity(parent.len() + 1 + name.len());
    path.extend_from_slice(if parent == b"/" { b"" } else { parent });
    path.push(b'/');
    path.extend_from_slice(name);
    path
}

/// Returns the last component of a path; the root has an empty one.
pub fn last_name(path: &[u8]) -> &[u8] {
    path.rsplit(|&byte| byte == b'/').next().unwrap_or_default()
}

/// Returns whether `name` is the path of an object, or the last part of it.
pub fn is_named(path: &[u8], name: &str) -> bool {
    path == name.as_bytes() || last_name(path) == name.as_bytes()
}

/// Returns a path for messages, with control characters, invalid UTF-8 and direction marks escaped.
pub fn display_path(path: &[u8]) -> String {
    let mut text = String::new();
    for chunk in path.utf8_chunks() {
        for character in chunk.valid().chars() {
            let bidirectional =
                matches!(character, '\u{200e}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
            if character.is_control() || bidirectional {
                text.extend(character.escape_unicode());
            } else {
                text.push(character);
            }
        }
        chunk.invalid().iter().for_each(|byte| text.push_str(&format!("\\x{byte:02x}")));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_shown_without_surprises() {
        assert_eq!(display_path(b"/g/\x1b[31m"), "/g/\\u{1b}[31m");
        assert_eq!(display_path(b"/g/\xff"), "/g/\\xff");
        assert_eq!(display_path("/é/\u{202e}x".as_bytes()), "/é/\\u{202e}x");
    }

    #[test]
    fn child_paths_have_one_slash() {
        assert_eq!(child_path(b"/", b"a"), b"/a");
        assert_eq!(child_path(b"/a", b"b"), b"/a/b");
        assert_eq!((parent_path(b"/a/b"), last_name(b"/a/b")), (&b"/a"[..], &b"b"[..]));
        assert_eq!((parent_path(b"/"), last_name(b"/")), (&b"/"[..], &b""[..]));
    }
}
