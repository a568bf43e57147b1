//! Work that no request waits for: it is dispatched when it is due, one process at a time does it, and it leaves a record.

pub mod due;
pub mod jobs;
pub mod lease;
