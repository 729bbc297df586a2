//! Whole merges, appends and joins of generated files, compared with the expected results through plain libhdf5.
//!
//! All tests are in one program, because each separate program would have to link HDF5 again.

mod append;
mod changed_inputs;
mod damaged_inputs;
mod digests;
mod folder;
mod keys;
mod layouts;
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
mod regrouping;
mod remembered;
mod resume;
mod round_trip;
mod simulate;
mod union;
mod watched;
