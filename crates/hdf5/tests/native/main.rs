//! The native metadata reader on files that libhdf5 makes, on every damage of them, and on crafted ones.
//!
//! Agreement with libhdf5 over all kinds of objects is tested elsewhere (`tests/differential`); here it is the ways of
//! storing links and attributes, and what must not happen whatever the bytes.

mod crafted;
mod damage;
mod maker;
mod storage;
