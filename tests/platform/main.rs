//! The platform through its HTTP surface, all in one binary: one link, and tests that share nothing.

#![allow(clippy::unwrap_used, reason = "a test's helpers panic as its body does")]

mod about_actions;
mod account;
mod actions;
mod agents;
mod approvals;
mod assets;
mod assistant;
mod chats;
mod cli;
mod clients;
mod computing;
mod context;
mod context_imports;
mod context_log_files;
mod context_logs;
mod cors;
mod crash;
mod door;
mod due_times;
mod durable;
mod edges;
mod enrichment;
mod faults;
mod generated;
mod golden;
mod isolation;
mod logs;
mod made;
mod mcp;
mod messages;
mod occurrences;
mod program;
mod projects;
mod runs;
mod scope;
mod season;
mod server;
mod smoke;
mod storage;
mod sweep;
mod theme_events;
mod themes;
mod turns;
mod walkthrough;
