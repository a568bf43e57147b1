//! The engines, used through the AWS SDKs as the platform uses them.

#![allow(clippy::unwrap_used, reason = "a failure here is a failed test, in helpers as well")]

mod bucket;
mod bus;
mod crash;
mod faults;
mod harness;
mod integrity;
mod multipart;
mod ports;
mod queue;
mod retries;
mod sends;
mod table;
mod uploads;
