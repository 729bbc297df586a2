//! Values read without libhdf5 against what libhdf5 wrote: every storage, every chunk index, any box.

mod boxes;
mod hostile;
mod logical;
mod maker;
