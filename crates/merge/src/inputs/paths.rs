//! Paths of all objects and links of one file in a single allocation: thousands of them are created, passed to another
//! thread, compared and dropped for each input.
//!
//! Invariant: an added path never changes; its number is its position in insertion order.

use serde::{Deserialize, Serialize};

/// Absolute paths by number.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Paths {
    bytes: Vec<u8>,
    /// End of each path in `bytes`; a path begins at the end of the previous one.
    ends: Vec<usize>,
}

impl Paths {
    /// Creates an empty list with capacity for `count` paths.
    pub fn with_capacity(count: usize) -> Self {
        // Estimated mean path length; growing costs a copy.
        Self { bytes: Vec::with_capacity(count.saturating_mul(32)), ends: Vec::with_capacity(count) }
    }

    /// Returns the number of paths.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns the total number of bytes of all paths.
    pub fn len_bytes(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// Returns path number `at`.
    ///
    /// # Panics
    /// If there is no such path.
    pub fn get(&self, at: usize) -> &[u8] {
        let start = if at == 0 { 0 } else { self.ends[at - 1] };
        &self.bytes[start..self.ends[at]]
    }

    /// Adds the path of the root group.
    pub fn push_root(&mut self) {
        self.bytes.push(b'/');
        self.ends.push(self.bytes.len());
    }

    /// Adds the path of `name` in the group with path number `parent`.
    ///
    /// # Panics
    /// If there is no such path.
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

    /// Iterates over all paths in order.
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
