//! Canonical bytes: values of file-local types in a form that means the same in any file.
//!
//! Variable-length elements and references are stored as pointers into their file. **Canonical bytes** contain their
//! targets and are self-delimiting: the type alone suffices to split a stream into elements. They are used for digests,
//! by the writer and in the protocol of the child reader.
//!
//! | type | canonical bytes (numbers little-endian) |
//! |---|---|
//! | not file-local | the stored bytes |
//! | variable-length string | length u64 (2^64 - 1: null, nothing follows), bytes up to the first zero |
//! | sequence | count u64, canonical items |
//! | compound with file-local members | canonical members in order; padding is dropped |
//! | array of file-local items | canonical items |
//! | object reference | path length u64 (0: null), absolute path in the file |
//! | region reference | path length u64 (0: null, nothing follows), path, selection |
//! | selection | kind u8 (0 none, 1 points, 2 blocks, 3 all), rank u32, count u64, coordinates u64: of a point one per dimension; of a block the first and the last (inclusive) element |
//!
//! References of HDF5 1.12 and later have no canonical form yet.

/// Length value of a null variable-length string, such as one that was never written. C programs can distinguish it
/// from an empty string.
pub const NULL_STRING: u64 = u64::MAX;

mod canonical;
mod paths;
mod selection;
mod stream;
mod strings;

pub use canonical::{CanonicalRows, Resolver};
pub use paths::ObjectPaths;
pub use stream::{CanonicalElements, RowShift, append_null, element_len_bytes, shift_regions};
pub use strings::{string, strings_of};
