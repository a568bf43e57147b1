//! Context logs: what the agents of a coding assistant were asked and what they answered, one line per entry.
//!
//! A log belongs to one agent *instance* of one session. Its lines come from the assistant's hooks ([`hook`]). A hook
//! names the instance, or the instance gets a generated name ([`name`]). An [`Entry`] is one line of JSON. [`view`]
//! displays a log. [`recall`] writes the text that an assistant gets when a session or an agent starts. [`layout`]
//! defines the folder of files that holds all logs, and [`import`] the record of importing such a folder.

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
