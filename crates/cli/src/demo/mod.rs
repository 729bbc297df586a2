//! Made data to try raddle on: NOvA-like files, and the loop over h5py that raddle is compared with.

pub mod generate;
pub mod h5py;
pub mod probe;
mod values;
pub mod workload;
