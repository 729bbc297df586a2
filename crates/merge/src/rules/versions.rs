//! The attribute `Conventions` of inputs that follow several versions of CF.
//!
//! Files of an earlier version of CF 1 conform to every later one, so the output states the latest one. The other words
//! of the attribute must be equal.

use super::settling::{DeclaredRule, Settling};
use crate::schema::attribute::{named, replaced, text, with_text};

/// Name of the attribute.
pub(super) const CONVENTIONS: &str = "Conventions";

/// Prefix of a version of CF 1.
const CF: &str = "CF-1.";

/// Sets the latest version of CF in the output; returns whether all inputs agree otherwise.
pub(super) fn settle(settling: &mut Settling<'_>, declared: &DeclaredRule) -> bool {
    let is_asked = settling.options.require_equal.iter().any(|asked| asked == CONVENTIONS);
    if is_asked || !declared.rule.attributes.iter().any(|name| name == CONVENTIONS.as_bytes()) {
        return false;
    }
    let all = std::iter::once(&declared.first).chain(declared.attributes.iter().map(|(_, attributes)| attributes));
    let Some(strings) = all.map(|attributes| text(attributes, CONVENTIONS)).collect::<Option<Vec<_>>>() else {
        return false;
    };
    let Some(latest) = latest(&strings) else { return false };
    let Some(known) = named(&declared.first, CONVENTIONS) else { return false };
    if latest == strings[0] {
        return true;
    }
    // An append does not change attributes.
    if !settling.is_new {
        return false;
    }
    let attributes = replaced(&declared.first, with_text(known, &latest));
    settling.set_attributes(declared.entry, attributes);
    true
}

/// Returns the first text with the latest version of CF among all; `None` if they differ in anything else.
fn latest(strings: &[String]) -> Option<String> {
    let parted = strings.iter().map(|text| parted(text)).collect::<Option<Vec<_>>>()?;
    let &(before, _, after) = parted.first()?;
    if parted.iter().any(|&(other_before, _, other_after)| (other_before, other_after) != (before, after)) {
        return None;
    }
    let version = parted.iter().map(|&(_, version, _)| version).max()?;
    Some(format!("{before}{CF}{version}{after}"))
}

/// Splits a string into the part before the version of CF 1, the version, and the part after it.
fn parted(text: &str) -> Option<(&str, u32, &str)> {
    let at = text.find(CF).filter(|&at| text[..at].ends_with([' ', ',']) || at == 0)?;
    let (before, rest) = (&text[..at], &text[at + CF.len()..]);
    let digits = rest.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(rest.len());
    let (version, after) = rest.split_at(digits);
    // CF has no versions such as 1.08 or 1.7.2.
    let is_whole = !version.starts_with('0') || version == "0";
    let ends = after.is_empty() || after.starts_with([' ', ',']);
    (is_whole && ends).then_some(())?;
    Some((before, version.parse().ok()?, after))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_version_is_named_where_nothing_else_differs() {
        let latest = |strings: &[&str]| latest(&strings.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>());
        assert_eq!(latest(&["CF-1.8", "CF-1.11", "CF-1.9"]).as_deref(), Some("CF-1.11"));
        assert_eq!(latest(&["CF-1.11", "CF-1.8"]).as_deref(), Some("CF-1.11"));
        assert_eq!(
            latest(&["UGRID-1.0 CF-1.0, ACDD-1.3", "UGRID-1.0 CF-1.6, ACDD-1.3"]).as_deref(),
            Some("UGRID-1.0 CF-1.6, ACDD-1.3")
        );
        for others in [
            ["CF-1.8 ACDD-1.3", "CF-1.8"],
            ["CF-1.8 ACDD-1.1", "CF-1.11 ACDD-1.3"],
            ["CF-1.8", "CF-2.0"],
            ["CF-1.8", "CF-1.8.1"],
            ["CF-1.8", "CF-1.08"],
            ["CF-1.8", "COARDS"],
            ["NCCF-1.8", "NCCF-1.9"],
            ["CF-1.", "CF-1.9"],
            ["CF-1.8", "CF-1.99999999999"],
        ] {
            assert_eq!(latest(&others), None, "{others:?}");
        }
    }
}
