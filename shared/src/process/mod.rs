//! What one process has or remembers. Nothing here is stored, and another process knows nothing of it.

pub mod compute;
pub mod deletions;
pub mod due_queue;
pub mod followed;
pub mod held_places;
pub mod kept;
pub mod keyed_locks;
pub mod live_runs;
pub mod memories;
pub mod metrics;
pub mod used_up;
