//! Generated data to try raddle on: NOvA-like files, and the h5py loop with which raddle is compared.
//!
//! `raddle demo` writes the files, as the benchmarks do through it, and `raddle plan --simulate` measures codecs on the
//! same values. [`workload`] holds plain data, `values` draws from it, and [`generate`] writes. Invariant: the files
//! depend on the workload and the seed alone, not on threads or machines.
#![forbid(unsafe_code)]

pub mod generate;
pub mod h5py;
pub mod probe;
mod values;
pub mod workload;
