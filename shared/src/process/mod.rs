//! What one process has or remembers. Nothing here is stored, and another process knows nothing of it.

pub mod compute;
pub mod due_queue;
pub mod keyed_locks;
pub mod live_runs;
pub mod metrics;
pub mod outside;
pub mod themes;
