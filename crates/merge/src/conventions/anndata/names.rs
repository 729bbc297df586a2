//! Names that match the elements of an axis, and categories: their union or intersection, in pandas' order.
//!
//! Sources: `pandas.Index.union` and `intersection`, `natsort.natsorted`. Invariant: an order that cannot be reproduced
//! is an error.

use crate::schema::join::Join;
use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Mapping of the elements of an axis between each input and the output.
#[derive(Debug, Clone)]
pub(super) struct Alignment {
    /// Number of elements in the output.
    pub len: u64,
    /// Position in each input of each element of the output; `None` for an input whose elements remain unchanged.
    pub of_inputs: Vec<Option<Arc<[Option<u32>]>>>,
    /// Number of elements in each input.
    pub lens: Vec<u64>,
}

impl Alignment {
    /// Creates the alignment of an axis with numbered elements, the first `len` of which are taken.
    pub fn numbered(len: u64, lens: Vec<u64>) -> Self {
        let places = |input_len: &u64| {
            (*input_len != len)
                .then(|| (0..len).map(|at| (at < *input_len).then_some(at as u32)).collect::<Arc<[Option<u32>]>>())
        };
        Self { len, of_inputs: lens.iter().map(places).collect(), lens }
    }

    /// Creates the alignment of an axis from the names of its elements in the output and in each input.
    pub(crate) fn by_names(names: &[String], input_names: &[Vec<String>]) -> Self {
        let places = |names_of_input: &Vec<String>| {
            if names_of_input == names {
                return None;
            }
            let at: HashMap<&str, u32> = names_of_input.iter().map(String::as_str).zip(0..).collect();
            Some(names.iter().map(|name| at.get(name.as_str()).copied()).collect::<Arc<[Option<u32>]>>())
        };
        let lens = input_names.iter().map(|names| names.len() as u64).collect();
        Self { len: names.len() as u64, of_inputs: input_names.iter().map(places).collect(), lens }
    }

    /// Returns whether an input lacks an element of the output.
    pub fn lacks(&self, input: usize) -> bool {
        self.of_inputs[input].as_ref().is_some_and(|places| places.contains(&None))
    }

    /// Returns the position in the output of each element of an input; `None` if it is dropped.
    pub fn places(&self, input: usize) -> Vec<Option<u32>> {
        let Some(from) = &self.of_inputs[input] else { return (0..self.len as u32).map(Some).collect() };
        let mut places = vec![None; self.lens[input] as usize];
        for (to, from) in (0..).zip(from.iter()) {
            if let Some(from) = from {
                places[*from as usize] = Some(to);
            }
        }
        places
    }
}

/// Returns a name that occurs more than once in `names`; `None` if there is none.
pub(super) fn repeated(names: &[String]) -> Option<&str> {
    let mut known = HashSet::with_capacity(names.len());
    names.iter().map(String::as_str).find(|name| !known.insert(*name))
}

/// Joins the names of the inputs; each name occurs at most once per input.
pub(super) fn join(input_names: &[Vec<String>], join: Join) -> Vec<String> {
    let Some((first, others)) = input_names.split_first() else { return Vec::new() };
    if join == Join::Outer {
        return others.iter().fold(first.clone(), |known, next| union(known, next));
    }
    let sets: Vec<HashSet<&str>> = others.iter().map(|names| names.iter().map(String::as_str).collect()).collect();
    first.iter().filter(|name| sets.iter().all(|set| set.contains(name.as_str()))).cloned().collect()
}

/// Computes `known.union(next)`: sorted unless both are equal or one is empty.
fn union(known: Vec<String>, next: &[String]) -> Vec<String> {
    if next.is_empty() || known == next {
        return known;
    }
    if known.is_empty() {
        return next.to_vec();
    }
    let mut all: Vec<String> = known.into_iter().chain(next.iter().cloned()).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// Sorts strings as `natsorted` does: digits by the number that they form, everything else by code points. Returns
/// `None` if a string is not ASCII, because natsort has special rules for other digits and composed letters.
pub(super) fn sort_naturally(mut strings: Vec<String>) -> Option<Vec<String>> {
    if strings.iter().any(|text| !text.is_ascii()) {
        return None;
    }
    strings.sort_unstable();
    strings.sort_by(|left, right| natural(left, right));
    Some(strings)
}

fn natural(left: &str, right: &str) -> Ordering {
    let (mut left, mut right) = (Tokens(left.as_bytes()), Tokens(right.as_bytes()));
    loop {
        match (left.next(), right.next()) {
            (None, None) => return Ordering::Equal,
            (None, Some(_)) => return Ordering::Less,
            (Some(_), None) => return Ordering::Greater,
            (Some((text, digits)), Some((other_text, other_digits))) => {
                let order = text.cmp(other_text).then_with(|| compare_numbers(digits, other_digits));
                if order != Ordering::Equal {
                    return order;
                }
            }
        }
    }
}

/// Iterator over a string as pairs of a part without digits, which may be empty, and the digits after it, which are
/// missing at the end of the text.
struct Tokens<'a>(&'a [u8]);

impl<'a> Iterator for Tokens<'a> {
    type Item = (&'a [u8], Option<&'a [u8]>);

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let digits_at = self.0.iter().position(u8::is_ascii_digit).unwrap_or(self.0.len());
        let (text, rest) = self.0.split_at(digits_at);
        let end = rest.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(rest.len());
        let (digits, rest) = rest.split_at(end);
        self.0 = rest;
        Some((text, (!digits.is_empty()).then_some(digits)))
    }
}

/// Compares numbers of any length; a string that ends comes before one that continues.
fn compare_numbers(left: Option<&[u8]>, right: Option<&[u8]>) -> Ordering {
    let significant = |digits: &'_ [u8]| digits.iter().position(|&digit| digit != b'0').unwrap_or(digits.len());
    match (left, right) {
        (Some(left), Some(right)) => {
            let (left, right) = (&left[significant(left)..], &right[significant(right)..]);
            left.len().cmp(&right.len()).then_with(|| left.cmp(right))
        }
        (left, right) => left.is_some().cmp(&right.is_some()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owned(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn strings_are_sorted_as_natsort_sorts_them() {
        let sorted = |names: &[&str]| sort_naturally(owned(names)).unwrap();
        assert_eq!(sorted(&["b", "a10", "a2", "z"]), ["a2", "a10", "b", "z"]);
        assert_eq!(sorted(&["a", "", "1", "10", "9x"]), ["", "1", "9x", "10", "a"]);
        assert_eq!(sorted(&["a1b", "a1", "a", "a01"]), ["a", "a01", "a1", "a1b"]);
        assert_eq!(sort_naturally(owned(&["é"])), None);
    }

    #[test]
    fn names_are_joined_in_the_order_of_pandas() {
        let inputs = [owned(&["c", "a", "b"]), owned(&["d", "b", "c"])];
        assert_eq!(join(&inputs, Join::Inner), ["c", "b"]);
        assert_eq!(join(&inputs, Join::Outer), ["a", "b", "c", "d"]);
        assert_eq!(join(&[owned(&["c", "a"]), owned(&["c", "a"]), owned(&[])], Join::Outer), ["c", "a"]);
        let alignment = Alignment::by_names(&owned(&["a", "b", "c", "d"]), &inputs);
        assert_eq!(alignment.of_inputs[0].as_deref(), Some(&[Some(1), Some(2), Some(0), None][..]));
        assert!(alignment.lacks(0));
        assert_eq!(alignment.places(1), [Some(3), Some(1), Some(2)]);
    }
}
