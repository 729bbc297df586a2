//! Entries in memory: schemas, columns, and the traits of sources and sinks.

pub mod awkward;
pub mod baskets;
pub mod block;
pub mod event_id;
pub mod schema;
pub mod sink;
pub mod source;
