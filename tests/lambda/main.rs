//! Every function as Lambda runs it: its own binary, polling a Runtime API, fed with `events/*.json`, on the embedded
//! engines. What a gateway, a queue and a clock send, and what they are answered, is compared here.

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
