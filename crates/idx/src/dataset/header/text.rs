//! Grammar of the `.idx` file: keys in parentheses on separate lines, and fields with attributes.

use super::{Field, HeaderError, MAX_FIELDS, MAX_HEADER_LEN_BYTES};

/// An attribute `name(value)` after the type of a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attribute {
    /// Name of the attribute.
    pub name: String,
    /// Text in the parentheses.
    pub value: String,
}

fn short(text: &str) -> String {
    text.chars().take(80).collect()
}

/// Splits a header into keys and values, in order; the lines of a value are joined by one space. `#` begins a comment.
pub(super) fn keys(bytes: &[u8]) -> Result<Vec<(String, String)>, HeaderError> {
    if bytes.len() as u64 > MAX_HEADER_LEN_BYTES {
        return Err(HeaderError::TooLong);
    }
    let text = str::from_utf8(bytes).map_err(|_| HeaderError::NotText)?;
    let mut keys: Vec<(String, String)> = Vec::new();
    let mut seen = std::collections::HashSet::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
        } else if let Some(key) = line.strip_prefix('(') {
            let key = key.strip_suffix(')').ok_or_else(|| HeaderError::Key { key: short(line) })?;
            if !seen.insert(key) {
                return Err(HeaderError::KeyTwice { key: short(key) });
            }
            keys.push((key.to_owned(), String::new()));
        } else {
            let (_, value) = keys.last_mut().ok_or(HeaderError::NoKey { line: number + 1 })?;
            if !value.is_empty() {
                value.push(' ');
            }
            value.push_str(line);
        }
    }
    Ok(keys)
}

/// Checks that a key and its value would be read back unchanged.
pub(super) fn check_key(key: &str, value: &str) -> Result<(), HeaderError> {
    let line = format!("({key})\n{value}\n");
    match keys(line.as_bytes()) {
        Ok(read) if read.len() == 1 && read[0].0 == key && read[0].1 == value => Ok(()),
        _ => Err(HeaderError::Key { key: short(key) }),
    }
}

/// Parses the fields, which are separated by `+`.
pub(super) fn fields(text: &str) -> Result<Vec<Field>, HeaderError> {
    let mut fields = Vec::new();
    let mut depth = 0usize;
    let mut begin = 0;
    for (at, character) in text.char_indices().chain([(text.len(), '+')]) {
        match character {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            '+' if depth == 0 || at == text.len() => {
                if fields.len() == MAX_FIELDS {
                    return Err(HeaderError::FieldCount { fields: MAX_FIELDS + 1 });
                }
                fields.push(field(text[begin..at].trim())?);
                begin = at + 1;
            }
            _ => {}
        }
    }
    Ok(fields)
}

fn field(text: &str) -> Result<Field, HeaderError> {
    let wrong = || HeaderError::Field { text: short(text) };
    let (name, rest) = text.split_once(char::is_whitespace).ok_or_else(wrong)?;
    let rest = rest.trim_start();
    let (sample, mut rest) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let mut field = Field::new(name, sample.parse().map_err(|_| wrong())?);
    loop {
        rest = rest.trim_start();
        if rest.is_empty() {
            return Ok(field);
        }
        let (name, after) = rest.split_once('(').ok_or_else(wrong)?;
        let mut depth = 1;
        let end = after.find(|character| {
            match character {
                '(' => depth += 1,
                ')' => depth -= 1,
                _ => {}
            }
            depth == 0
        });
        let end = end.ok_or_else(wrong)?;
        field.attributes.push(Attribute { name: name.trim().to_owned(), value: after[..end].to_owned() });
        rest = &after[end + 1..];
    }
}

/// Returns whether every parenthesis is closed, so that a `+` after the text separates fields.
fn has_paired_parentheses(text: &str) -> bool {
    let mut depth = 0i64;
    text.chars().all(|character| {
        depth += i64::from(character == '(') - i64::from(character == ')');
        depth >= 0
    }) && depth == 0
}

/// Returns the text of a field.
pub(super) fn field_text(field: &Field) -> String {
    let attributes = field.attributes.iter().map(|attribute| format!(" {}({})", attribute.name, attribute.value));
    format!("{} {}{}", field.name, field.sample, attributes.collect::<String>())
}

/// Checks that a field would be read back unchanged, also from a list of fields.
pub(super) fn check_field(field: &Field) -> Result<(), HeaderError> {
    let is_kept = |field: &Field| {
        let text = field_text(field);
        let is_one_line = !text.contains(['\n', '\r']) && !field.name.starts_with(['(', '#']);
        let is_read = || fields(&text).is_ok_and(|read| read.len() == 1 && read[0] == *field);
        is_one_line && has_paired_parentheses(&field.name) && is_read()
    };
    if is_kept(field) {
        return Ok(());
    }
    match is_kept(&Field { name: "name".to_owned(), ..field.clone() }) {
        true => Err(HeaderError::FieldName { name: short(&field.name) }),
        false => Err(HeaderError::Field { text: short(&field_text(field)) }),
    }
}
