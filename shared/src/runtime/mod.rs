//! How a process runs functions: what a function declares, and the runner that calls it on Lambda.

pub mod function;
pub mod lambda;
pub mod logging;
pub mod model_keys;
mod shutdown;
