//! Whole merges, appends and joins of made files, compared through plain libhdf5 with what must come out.
//!
//! One program: every file of tests that were a program of its own would link HDF5 anew.

mod append;
mod digests;
mod folder;
mod keys;
mod links;
mod order;
mod partition;
mod parts;
mod ranks;
mod ranks_files;
mod ranks_keys;
mod ranks_resume;
mod references;
mod regression;
mod remembered;
mod resume;
mod round_trip;
mod simulate;
mod union;
mod watched;
