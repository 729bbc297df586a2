//! The paths of all objects and links of one file, in one piece of memory: thousands of them are made, handed to another
//! thread, compared and dropped for each input.
//!
//! Invariant: a path is never changed once it is there; its number is its place in the order of pushing.

use serde::{Deserialize, Serialize};

/// Absolute paths by number.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Paths {
    bytes: Vec<u8>,
    /// Where each path ends in `bytes`; it begins where the one before ends.
    ends: Vec<usize>,
}

impl Paths {
    /// Room for `count` paths.
    pub fn with_capacity(count: usize) -> Self {
        // A guess at a usual path; growing costs a copy.
        Self { bytes: Vec::with_capacity(count.saturating_mul(32)), ends: Vec::with_capacity(count) }
    }

    /// Number of paths.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Bytes of all paths together.
    pub fn len_bytes(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// The path number `at`.
    ///
    /// # Panics
    /// Where there is no such path.
    pub fn get(&self, at: usize) -> &[u8] {
        let start = if at == 0 { 0 } else { self.ends[at - 1] };
        &self.bytes[start..self.ends[at]]
    }

    /// Adds the root group's path.
    pub fn push_root(&mut self) {
        self.bytes.push(b'/');
        self.ends.push(self.bytes.len());
    }

    /// Adds the path of `name` in the group whose path is number `parent`.
    ///
    /// # Panics
    /// Where there is no such group.
    pub fn push_child(&mut self, parent: usize, name: &[u8]) {
        let end = self.ends[parent];
        let start = if parent == 0 { 0 } else { self.ends[parent - 1] };
        if self.bytes[start..end] != *b"/" {
            self.bytes.extend_from_within(start..end);
        }
        self.bytes.push(b'/');
        self.bytes.extend_from_slice(name);
        self.ends.push(self.bytes.len());
    }

    /// All paths in order.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.len()).map(|at| self.get(at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn children_are_below_their_parents_with_one_slash() {
        let mut paths = Paths::with_capacity(1);
        paths.push_root();
        paths.push_child(0, b"spill");
        paths.push_child(1, b"run");
        paths.push_child(0, b"");
        let all: Vec<&[u8]> = paths.iter().collect();
        assert_eq!(all, [b"/".as_slice(), b"/spill", b"/spill/run", b"/"]);
        assert_eq!(paths.len(), 4);
    }
}
