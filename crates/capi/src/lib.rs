//! The C library `libraddle_idx`, for writing and reading IDX from simulations in C, C++ and Fortran.
//!
//! `raddle_idx` does the work; here pointers are converted to values, and errors to status codes and messages. The
//! header `include/raddle_idx.h` is generated from these files, including the comments, which therefore address C
//! programmers; a test checks that it is up to date. MPI is not linked: ranks are functions provided by the caller
//! (`ranks`), which `include/raddle_idx_mpi.h` implements for any MPI. Invariants: no panic leaves a function; null
//! pointers and wrong lengths are rejected; a function has exclusive use of its handle, so two threads must not use a
//! handle at the same time.

#[cfg(not(target_endian = "little"))]
compile_error!("samples are taken as they lie in memory, which has to be little-endian");

mod call;
mod fault;
mod options;
mod pointers;
mod ranks;
mod reader;
mod writer;
