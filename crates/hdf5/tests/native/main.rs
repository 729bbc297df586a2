//! Tests of the native metadata reader on files made by libhdf5, on all kinds of damage to them, and on crafted files.
//!
//! Agreement with libhdf5 over all kinds of objects is tested elsewhere (`tests/differential`). These tests cover the
//! ways of storing links and attributes, and the guarantees for arbitrary bytes.

mod crafted;
mod damage;
mod maker;
mod storage;
