//! The work of the functions: load, let the domain decide, store.

pub mod actions;
pub mod agents;
pub mod api_keys;
pub mod assets;
pub mod chats;
pub mod clock;
pub mod documents;
pub mod due;
pub mod edit;
pub mod execute;
pub mod follow;
pub mod logs;
pub mod messages;
pub mod projects;
pub mod proposals;
pub mod restart;
pub mod run_view;
pub mod runs;
pub mod schedules;
pub mod sweep;
pub mod themes;
pub mod tools;
pub mod turn;
pub mod uploads;
pub mod wake;
