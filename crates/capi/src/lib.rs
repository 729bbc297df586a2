//! The C library `libraddle_idx`: writing and reading IDX from simulations in C, C++ and Fortran.
//!
//! What is done is done by `raddle_idx`; here pointers become values and errors become numbers and words. The header
//! `include/raddle_idx.h` is made from these files, comments included, which therefore speak to readers of C; a test holds it
//! to them. MPI is not linked: ranks are functions that the caller gives (`ranks`), which `include/raddle_idx_mpi.h` has for
//! any MPI. Invariants: no panic leaves a function; null pointers and wrong lengths are refused; a function that takes a
//! handle uses it alone, so a handle must not be used by two threads at once.

#[cfg(not(target_endian = "little"))]
compile_error!("samples are taken as they lie in memory, which has to be little-endian");

mod call;
mod fault;
mod given;
mod options;
mod ranks;
mod reader;
mod writer;
