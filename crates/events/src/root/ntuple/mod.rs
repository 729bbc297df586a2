//! RNTuples: ROOT's columns, read by the format's own specification (version 1.0), without ROOT.
//!
//! A key of class `ROOT::RNTuple` leads to two envelopes: the header describes fields and columns ([`schema`]), the footer
//! leads to lists of pages ([`clusters`]). A field's pages are decoded ([`pages`]) and put together as its form says
//! ([`source`]). All numbers are little-endian but those of the key.
//!
//! Not known: variants, streamed fields, half-precision numbers, representations of one column as different numbers. Fields with
//! these are left out, with the reason. Invariant: envelopes, and pages that have a checksum, are checked.

mod clusters;
mod envelope;
mod pages;
mod schema;
mod source;

pub use source::NtupleSource;
