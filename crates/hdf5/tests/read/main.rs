//! Values read without libhdf5 compared with those written by libhdf5: every storage layout, every chunk index, any
//! box.

mod boxes;
mod hostile;
mod lists;
mod logical;
mod maker;
