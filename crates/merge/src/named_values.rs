//! Lists of names with values, such as `time=365, lat=90`, whose names may hold commas.
//!
//! Invariant: a comma belongs to a name if no value precedes it, so a list of names without commas needs no quotes.

/// Splits a list at the commas that follow a value. Parts are trimmed; those of an invalid list lack a name or a value.
pub(crate) fn split(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut start = 0;
    for (at, _) in text.match_indices(',') {
        let part = text[start..at].trim();
        if part.is_empty() || part.contains('=') {
            parts.push(part);
            start = at + 1;
        }
    }
    parts.push(text[start..].trim());
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_may_hold_commas() {
        assert_eq!(split("time=0:3, lat=-30..30"), ["time=0:3", "lat=-30..30"]);
        assert_eq!(split("a,b=0:3,c, d=4"), ["a,b=0:3", "c, d=4"]);
        assert_eq!(split("a=b=1,c"), ["a=b=1", "c"]);
        assert_eq!(split("a=1,,b=2,"), ["a=1", "", "b=2", ""]);
        assert_eq!(split(""), [""]);
    }
}
