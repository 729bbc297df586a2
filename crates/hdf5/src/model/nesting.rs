//! Depth limit for deserialised datatypes, the same as in the readers.
//!
//! Types nest, and deserialisation is recursive: bytes from elsewhere (a child process, a plan on disk) must not be
//! able to exhaust the stack. Invariant: a deserialised [`TypeClass`] nests at most [`MAX_DEPTH`] deep.

use super::TypeClass;
use crate::native::datatype::MAX_DEPTH;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::cell::Cell;

thread_local! {
    /// Number of types that this thread is currently inside.
    static DEPTH: Cell<usize> = const { Cell::new(0) };
}

/// One level of nesting, left when dropped.
struct Level;

impl Level {
    fn enter() -> Option<Self> {
        let depth = DEPTH.get();
        (depth <= MAX_DEPTH).then(|| {
            DEPTH.set(depth + 1);
            Self
        })
    }
}

impl Drop for Level {
    fn drop(&mut self) {
        DEPTH.set(DEPTH.get() - 1);
    }
}

// The derived code of `TypeClass` is in inherent functions of these names (`serde(remote = "Self")`).

impl Serialize for TypeClass {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Self::serialize(self, serializer)
    }
}

impl<'de> Deserialize<'de> for TypeClass {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Some(_level) = Level::enter() else {
            return Err(D::Error::custom(format_args!("a datatype nests more than {MAX_DEPTH} deep")));
        };
        Self::deserialize(deserializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn nested(depth: usize) -> TypeClass {
        let innermost = TypeClass::Opaque { len_bytes: 1, tag: b"t".to_vec() };
        (0..depth).fold(innermost, |base, _| TypeClass::Array { base: Arc::new(base), dims: vec![1] })
    }

    #[test]
    fn types_come_back_up_to_the_limit() {
        for depth in [0, 1, MAX_DEPTH] {
            let bytes = postcard::to_stdvec(&nested(depth)).unwrap();
            assert_eq!(postcard::from_bytes::<TypeClass>(&bytes).unwrap(), nested(depth));
        }
    }

    #[test]
    fn deeper_types_are_an_error() {
        let bytes = postcard::to_stdvec(&nested(MAX_DEPTH + 1)).unwrap();
        assert!(postcard::from_bytes::<TypeClass>(&bytes).is_err());
        // A repeated variant that begins with its base overflows the stack without the limit.
        let array = postcard::to_stdvec(&nested(1)).unwrap()[0];
        assert!(postcard::from_bytes::<TypeClass>(&vec![array; 10_000_000]).is_err());
        assert!(postcard::from_bytes::<TypeClass>(&postcard::to_stdvec(&nested(3)).unwrap()).is_ok());
    }
}
