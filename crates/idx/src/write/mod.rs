//! Writing a time step in up to three phases, planned as data and carried out by ranks.

pub(crate) mod exchange;
pub(crate) mod files;
pub(crate) mod holders;
pub(crate) mod one_phase;
pub(crate) mod options;
pub(crate) mod publish;
pub mod restructure;
pub mod simulate;
pub(crate) mod step_plan;
pub(crate) mod work;
pub(crate) mod writer;
