//! The engine on synthetic work: bytes and claims must not depend on threads and ranks, errors must be reported, and
//! the memory limit must hold.

mod arenas;
mod faults;
mod ranks;
mod resume;
mod single;
mod work;
