//! Values read without libhdf5 against what libhdf5 wrote: every storage, every chunk index, any box.

mod boxes;
mod logical;
mod maker;
