//! `lamplighter log`: what agents did, written by hooks and read by agents.

pub mod flush;
pub mod hook;
pub mod read;
pub mod recall;
mod shorten;
