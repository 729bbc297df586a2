//! Reading a box of samples, by one process or by ranks together.

pub mod check;
pub(crate) mod collective;
pub(crate) mod dataset;
pub mod info;
pub mod npy;
pub(crate) mod reader;
pub(crate) mod slabs;
pub(crate) mod steps;
pub(crate) mod stored;
