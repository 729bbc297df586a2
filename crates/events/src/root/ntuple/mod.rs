//! RNTuples: ROOT's columns, read by the format's own specification (version 1.0), without ROOT.
//!
//! A key of class `ROOT::RNTuple` leads to two envelopes: the header describes fields and columns ([`schema`]), the footer
//! leads to lists of pages ([`clusters`]). A field's pages are decoded ([`pages`]) and put together as its form says
//! ([`source`]). All numbers are little-endian but those of the key.
//!
//! RNTuples are written too ([`sink`]): forms become fields and columns ([`fields`]), blocks become clusters ([`encode`]), and
//! lists of pages, footer and anchor say where these are ([`index`]).
//!
//! Not known: variants, streamed fields, half-precision numbers, representations of one column as different numbers. Fields with
//! these are left out, with the reason. Invariant: envelopes, and pages that have a checksum, are checked.

mod clusters;
mod encode;
mod envelope;
mod fields;
mod frames;
mod index;
mod names;
mod pages;
mod schema;
mod sink;
mod source;

pub use encode::EncodedCluster;
pub use names::renamed;
pub use sink::{CLUSTER_LEN_BYTES, NTUPLE_NAME, NtupleOptions, NtuplePreparer, NtupleSink, NtupleSummary};
pub use source::NtupleSource;
