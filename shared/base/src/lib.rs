//! What every crate that does I/O may use: the clock, HTTPS, AWS credentials, and requests to servers that people and models name.

pub mod aws_keys;
pub mod clock;
pub mod https;
pub mod reach;
