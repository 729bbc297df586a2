//! Groups of ranks that act together: communicators, messages, and who owns which part of a plan.

pub mod communicator;
#[cfg(any(test, feature = "testing"))]
pub mod conformance;
pub mod datasets;
pub mod message;
pub mod owners;
pub mod pieces;
pub mod received;
pub mod regroup;
pub mod rounds;
pub mod shares;
pub mod threads;
pub mod timed;
pub mod traffic;

/// Number of a rank in its communicator, from 0.
pub type Rank = usize;
