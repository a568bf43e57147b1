//! Context logs: what the agents of a coding assistant were asked and what they answered, one line for each.
//!
//! A log belongs to one agent *instance* of one session. Its lines come from the assistant's hooks ([`hook`]), which name
//! the instance or have it named for them ([`name`]). An [`Entry`] is one line of JSON; [`view`] is how a log is shown,
//! [`recall`] is what an assistant is told of it when a session or an agent starts, and
//! [`layout`] is how all logs lie in a folder of files, and [`import`] what is known of taking such a folder over.

pub mod entry;
pub mod hook;
pub mod ids;
pub mod import;
pub mod layout;
pub mod name;
pub mod recall;
pub mod view;

pub use entry::{CorruptLine, Entry, LogEvent};
pub use hook::{Hook, Refusal};
pub use ids::{InstanceId, SessionId};
