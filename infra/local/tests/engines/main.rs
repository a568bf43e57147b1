//! The engines, driven through the AWS SDKs as the platform drives them.

mod bucket;
mod bus;
mod harness;
mod queue;
mod table;
