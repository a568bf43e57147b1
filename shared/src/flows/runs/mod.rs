//! Runs of conversations and of actions: read, followed, answered, reported on and cancelled.

pub mod answers;
mod cancel;
pub mod follow;
mod view;

use domain::ids::RunId;

pub use cancel::{cancel, cancel_because};
pub use view::{CardView, RunView, view};

/// A run that a request began, or that continues because of the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begun {
    /// This process drives it.
    Here(RunId),
    /// Another process drives it. Its new events come after the event `after`.
    Elsewhere { run: RunId, after: u64 },
}

impl Begun {
    #[must_use]
    pub fn run(self) -> RunId {
        match self {
            Self::Here(run) | Self::Elsewhere { run, .. } => run,
        }
    }
}
