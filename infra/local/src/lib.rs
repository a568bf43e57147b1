//! The platform on one machine: engines that replace AWS, and the code that runs the functions on them.

pub mod demo;
pub mod engines;
pub mod handler;
mod headers;
pub mod platform;
pub mod program;
pub mod served;
mod show;
mod week;
