//! Escaping of names from files, to show them safely.
//!
//! An HDF5 name or a file name may contain any byte: escape sequences that rewrite the terminal, newlines that forge a
//! log line, marks that reverse the reading direction, bytes that are not UTF-8. All text that raddle prints from a
//! file or the command line is escaped here. Invariant: the result contains no control characters, invisible formatting
//! characters or line breaks, whatever the input.

use std::borrow::Cow;

/// Maximum length of a name that is shown whole, in characters. HDF5 allows 64 KiB, too long for a table cell or a
/// message.
const MAX_NAME_LEN: usize = 200;

/// Returns whether a character is invisible itself but changes how the text around it is shown.
fn is_invisible(character: char) -> bool {
    matches!(character,
        '\u{ad}' | '\u{61c}' | '\u{180e}'           // soft hyphen, Arabic letter mark, Mongolian separator
        | '\u{200b}'..='\u{200f}'                   // zero-width characters, left-to-right and right-to-left marks
        | '\u{2028}'..='\u{202e}'                   // line and paragraph separators, bidirectional embeddings
        | '\u{2060}'..='\u{206f}'                   // joiners, bidirectional isolates
        | '\u{feff}' | '\u{fff9}'..='\u{fffb}'      // byte order mark, interlinear annotation
        | '\u{e0000}'..='\u{e007f}') // tags
}

fn needs_escape(character: char) -> bool {
    character.is_control() || is_invisible(character)
}

fn push_escaped(out: &mut String, character: char) {
    match character {
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        c if u32::from(c) < 0x100 => out.push_str(&format!("\\x{:02x}", u32::from(c))),
        c => out.push_str(&format!("\\u{{{:x}}}", u32::from(c))),
    }
}

/// Returns `text` on one line, with control and invisible characters escaped.
pub fn text(text: &str) -> Cow<'_, str> {
    if !text.chars().any(needs_escape) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        if needs_escape(character) {
            push_escaped(&mut out, character);
        } else {
            out.push(character);
        }
    }
    Cow::Owned(out)
}

/// Returns `bytes` as text: valid UTF-8 as such, other bytes as `\xHH`, escaped like [`text`].
pub fn bytes(bytes: &[u8]) -> Cow<'_, str> {
    if let Ok(valid) = std::str::from_utf8(bytes) {
        return text(valid);
    }
    let mut out = String::with_capacity(bytes.len() + 16);
    for part in bytes.utf8_chunks() {
        out.push_str(&text(part.valid()));
        for byte in part.invalid() {
            out.push_str(&format!("\\x{byte:02x}"));
        }
    }
    Cow::Owned(out)
}

/// Returns a file's path, escaped like [`bytes`].
pub fn path(path: &std::path::Path) -> String {
    shorten(&bytes(path.as_os_str().as_encoded_bytes())).into_owned()
}

/// Returns `text`, cut in the middle if it is too long for a message.
pub fn shorten(text: &str) -> Cow<'_, str> {
    let count = text.chars().count();
    if count <= MAX_NAME_LEN {
        return Cow::Borrowed(text);
    }
    let half = MAX_NAME_LEN / 2;
    let head: String = text.chars().take(half).collect();
    let tail: String = text.chars().skip(count - half).collect();
    Cow::Owned(format!("{head}…({} more)…{tail}", count - 2 * half))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_names_are_untouched_and_not_copied() {
        assert!(matches!(bytes("rec.sel/évt µ".as_bytes()), Cow::Borrowed("rec.sel/évt µ")));
    }

    #[test]
    fn terminal_sequences_and_line_breaks_are_escaped() {
        assert_eq!(text("a\x1b[2Jb\nc\td\x7f\u{9b}"), "a\\x1b[2Jb\\nc\\td\\x7f\\x9b");
    }

    #[test]
    fn direction_marks_and_invisible_characters_are_escaped() {
        assert_eq!(text("a\u{202e}b\u{2066}c\u{200b}d\u{feff}"), "a\\u{202e}b\\u{2066}c\\u{200b}d\\u{feff}");
    }

    #[test]
    fn invalid_utf8_shows_each_byte() {
        assert_eq!(bytes(b"ok\xff\xc3(\xe2\x82"), "ok\\xff\\xc3(\\xe2\\x82");
    }

    #[test]
    fn long_names_keep_head_and_tail() {
        let name = "a".repeat(30_000) + &"é".repeat(30_000);
        let short = shorten(&name);
        assert!(short.chars().count() < MAX_NAME_LEN + 30 && short.starts_with('a') && short.ends_with('é'));
        assert!(short.contains("59800 more"));
    }
}
