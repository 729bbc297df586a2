//! The engine on synthetic work: bytes and claims must not depend on threads and ranks, errors must come out, memory
//! must hold.

mod arenas;
mod faults;
mod ranks;
mod resume;
mod single;
mod work;
