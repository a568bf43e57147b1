//! Every function as Lambda runs it: its own binary polls a Runtime API, receives `events/*.json`, and uses the
//! embedded engines. These tests check the events of a gateway, a queue and a timer, and the responses to them.

#![allow(clippy::unwrap_used, reason = "a test's helpers panic as its body does")]

mod bed;
mod binaries;
mod issuer;
mod lambda;
mod model;
mod payload;
mod reply;
mod runtime_api;

mod authorizer;
mod http;
mod lifecycle;
mod panics;
mod payloads;
mod sizes;
mod streams;
mod triggers;
