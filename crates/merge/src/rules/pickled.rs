//! Pickles in which pandas describes the index and the columns of a table (attribute `info`).
//!
//! The frequency of an index of dates is left out of comparisons, because pandas itself ignores a frequency that the
//! dates of a table do not have. Only the opcodes of protocol 0 that pandas writes there are supported. Source:
//! `pickletools` of Python. Invariant: two pickles that are found to be the same describe the same objects.

use super::settling::DeclaredRule;
use crate::schema::AttributeValue;
use crate::schema::attribute::named;
use std::collections::HashMap;

/// Name of the attribute.
pub(super) const INFO: &str = "info";

/// Largest number of objects that are open at a time. A pickle of pandas needs less than ten; the limit keeps nested
/// objects shallow.
const MAX_OPEN: usize = 64;

/// Key of the frequency of an index.
const FREQUENCY: &[u8] = b"freq";

/// Returns whether the inputs' pickles differ only in frequencies.
pub(super) fn are_same(declared: &DeclaredRule) -> bool {
    if !declared.rule.attributes.iter().any(|name| name == INFO.as_bytes()) {
        return false;
    }
    let known = named(&declared.first, INFO).and_then(without_frequencies);
    let found = |attributes: &[AttributeValue]| named(attributes, INFO).and_then(without_frequencies);
    known.is_some() && declared.attributes.iter().all(|(_, attributes)| found(attributes) == known)
}

fn without_frequencies(attribute: &AttributeValue) -> Option<Value> {
    let mut value = parse(&attribute.value)?;
    value.remove(FREQUENCY);
    Some(value)
}

/// Object in a pickle.
#[derive(Debug, Clone, PartialEq)]
enum Value {
    /// Number, text, constant or function, by its opcode and argument.
    Plain(u8, Vec<u8>),
    List(Vec<Value>),
    Tuple(Vec<Value>),
    Dictionary(Vec<(Value, Value)>),
    /// Result of a function for its arguments.
    Call(Box<(Value, Value)>),
}

impl Value {
    /// Removes a key from dictionaries at any depth.
    fn remove(&mut self, key: &[u8]) {
        match self {
            Self::Plain(..) => {}
            Self::List(items) | Self::Tuple(items) => items.iter_mut().for_each(|item| item.remove(key)),
            Self::Dictionary(items) => {
                items.retain(|(known, _)| !matches!(known, Self::Plain(b'V', text) if text == key));
                items.iter_mut().for_each(|(_, value)| value.remove(key));
            }
            Self::Call(parts) => parts.1.remove(key),
        }
    }
}

/// Parses a pickle; returns `None` if it has other opcodes, or refers back to anything other than a plain object.
fn parse(pickle: &[u8]) -> Option<Value> {
    let mut rest = pickle;
    let line = |rest: &mut &[u8]| {
        let end = rest.iter().position(|&byte| byte == b'\n')?;
        let line = rest[..end].to_vec();
        *rest = &rest[end + 1..];
        Some(line)
    };
    let (mut stack, mut marks, mut memo) = (Vec::new(), Vec::new(), HashMap::new());
    loop {
        let (&opcode, after) = rest.split_first().filter(|_| stack.len() + marks.len() <= MAX_OPEN)?;
        rest = after;
        match opcode {
            b'.' => return stack.pop().filter(|_| stack.is_empty() && marks.is_empty()),
            b'(' => marks.push(stack.len()),
            b'N' => stack.push(Value::Plain(opcode, Vec::new())),
            b'I' | b'L' | b'F' | b'S' | b'V' => stack.push(Value::Plain(opcode, line(&mut rest)?)),
            b'c' => {
                let (module, name) = (line(&mut rest)?, line(&mut rest)?);
                stack.push(Value::Plain(opcode, [module, name].join(&b'\n')));
            }
            b'l' | b't' | b'd' => {
                let start = marks.pop().filter(|start| *start <= stack.len())?;
                let items = stack.split_off(start);
                stack.push(match opcode {
                    b'l' => Value::List(items),
                    b't' => Value::Tuple(items),
                    _ => Value::Dictionary(pairs(items)?),
                });
            }
            b'a' => {
                let item = stack.pop()?;
                let Some(Value::List(items)) = stack.last_mut() else { return None };
                items.push(item);
            }
            b's' => {
                let (value, key) = (stack.pop()?, stack.pop()?);
                let Some(Value::Dictionary(items)) = stack.last_mut() else { return None };
                items.push((key, value));
            }
            b'R' => {
                let (arguments, function) = (stack.pop()?, stack.pop()?);
                if !matches!(function, Value::Plain(..)) {
                    return None;
                }
                stack.push(Value::Call(Box::new((function, arguments))));
            }
            b'p' => {
                let name = line(&mut rest)?;
                // Lists and dictionaries are filled after they are remembered.
                match stack.last()? {
                    value @ Value::Plain(..) => drop(memo.insert(name, value.clone())),
                    _ => drop(memo.remove(&name)),
                }
            }
            b'g' => {
                let name = line(&mut rest)?;
                stack.push(memo.get(&name)?.clone());
            }
            _ => return None,
        }
    }
}

/// Returns keys with their values, which alternate.
fn pairs(items: Vec<Value>) -> Option<Vec<(Value, Value)>> {
    let mut items = items.into_iter();
    let mut pairs = Vec::new();
    while let Some(key) = items.next() {
        pairs.push((key, items.next()?));
    }
    Some(pairs)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAILY: &[u8] =
        b"(dp0\nVindex\np1\n(dp2\nVfreq\np3\ncoffsets\nDay\np4\n(I1\nI00\ntp5\nRp6\nsVtz\np7\nVUTC\np8\nss.";
    const IRREGULAR: &[u8] = b"(dp0\nVindex\np1\n(dp2\nVtz\np3\nVUTC\np4\nss.";
    const OTHER_ZONE: &[u8] = b"(dp0\nVindex\np1\n(dp2\nVtz\np3\nVCET\np4\nss.";

    fn compared(pickle: &[u8]) -> Option<Value> {
        let mut value = parse(pickle)?;
        value.remove(FREQUENCY);
        Some(value)
    }

    #[test]
    fn frequencies_are_left_out() {
        assert_eq!(compared(DAILY), compared(IRREGULAR));
        assert!(compared(DAILY).is_some());
        assert_ne!(compared(DAILY), compared(OTHER_ZONE));
        assert_ne!(parse(DAILY), parse(IRREGULAR));
    }

    #[test]
    fn what_is_remembered_is_found() {
        assert_eq!(parse(b"(lp0\nVa\np1\nag1\na."), parse(b"(lVa\naVa\na."));
        assert_eq!(parse(b"(lp0\nVa\nag0\na."), None);
    }

    #[test]
    fn deeply_nested_pickles_are_not_compared() {
        let nested = |depth: usize| [b"(".repeat(depth), b"l".repeat(depth), b".".to_vec()].concat();
        assert!(parse(&nested(MAX_OPEN / 2)).is_some());
        assert_eq!(parse(&nested(100_000)), None);
        assert_eq!(parse(&[b"cf\nf\n".to_vec(), b"(tR".repeat(100_000), b".".to_vec()].concat()), None);
        assert_eq!(parse(&[b"(tp0\n".to_vec(), b"0(g0\nt".repeat(3), b".".to_vec()].concat()), None);
    }

    #[test]
    fn damaged_and_other_pickles_are_not_compared() {
        for end in 0..DAILY.len() {
            assert_eq!(parse(&DAILY[..end]), None, "{end}");
        }
        for pickle in [&b"\x80\x02}."[..], b"t.", b"a.", b"s.", b"R.", b"g7\n.", b"(I1\nd.", b"N(.", b"NN."] {
            assert_eq!(parse(pickle), None, "{pickle:?}");
        }
    }
}
