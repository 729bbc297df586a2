//! Generated data to try raddle on: NOvA-like files, and the h5py loop with which raddle is compared.

pub mod generate;
pub mod h5py;
pub mod probe;
mod values;
pub mod workload;
