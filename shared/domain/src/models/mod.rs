//! Requests, replies, usage and prices, in no provider's dialect.
//!
//! - [`request`]: what is asked of a model, stable blocks first, and the hash of that stable prefix
//! - [`event`]: what a model answers, piece by piece
//! - [`usage`] and [`prices`]: tokens, and what they cost in micro-dollars
//! - [`estimate`]: tokens before the call, for reservations
//! - [`error`]: how a call can fail, and which failures are worth another try

pub mod error;
pub mod estimate;
pub mod event;
pub mod prices;
pub mod request;
pub mod usage;

pub use error::{HttpFailure, ModelError};
pub use event::{ModelEvent, StopReason};
pub use request::{
    Block, CacheTtl, Message, ModelId, ModelRequest, ModelTier, Provider, Role, SystemBlock, ToolChoice,
    ToolSpec,
};
pub use usage::Usage;
