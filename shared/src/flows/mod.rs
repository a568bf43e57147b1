//! The work of the functions: load, let the domain decide, store.

pub mod accounts;
pub mod actions;
pub mod agents;
pub mod archive;
pub mod assets;
pub mod chats;
pub mod completions;
pub mod documents;
pub mod due;
pub mod edit;
pub mod executor;
pub mod existing;
mod history;
pub mod lease;
pub mod logs;
pub mod messages;
pub mod page;
pub mod projects;
pub mod proposals;
pub mod runs;
pub mod schedules;
pub mod stop;
pub mod themes;
pub mod tools;
pub mod turn;
pub mod uploads;
pub mod watches;
