//! Made data to try raddle on: NOvA-like files.

pub mod generate;
mod random;
mod values;
pub mod workload;
