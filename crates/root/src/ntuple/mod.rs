//! RNTuples, ROOT's columnar format, read without ROOT as its specification (version 1.0) describes it.
//!
//! A key of class `ROOT::RNTuple` leads to two envelopes: the header describes fields and columns ([`schema`]), and the
//! footer leads to page lists ([`clusters`]). A field's pages are decoded ([`pages`]) and assembled according to its
//! form ([`source`]). All numbers are little-endian, except those of the key.
//!
//! RNTuples are written too ([`sink`]): forms become fields and columns ([`fields`]), blocks become clusters
//! ([`encode`]), and page lists, footer and anchor locate them ([`index`]).
//!
//! Not supported: variants, streamed fields, half-precision numbers, and representations of one column as different
//! kinds of numbers. Fields with these are left out, and the reason is reported. Invariant: the checksums of envelopes,
//! and of pages that have one, are verified.

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
