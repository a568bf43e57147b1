//! The platform through its HTTP interface, all in one binary: one link, and tests that share nothing.

#![allow(clippy::unwrap_used, reason = "a test's helpers panic as its body does")]

use std::path::Path;
use std::process::Command;

/// Accounts: keys, usage, quotas, alerts, export, import, deletion, and the switch that stops everything.
mod accounts {
    mod account;
    mod alerts;
    mod deletion;
    mod export;
    mod import;
    mod limits;
    mod quota;
    mod stop;
    mod stop_of_many;
}

/// Actions: their routes, their approval, and conversations about them.
mod actions {
    mod about_actions;
    mod approvals;
    mod bound;
    mod history;
    mod routes;
    mod same_state;
}

/// Agents, chats and what belongs to them: projects, assets, images, and the API for clients of OpenAI.
mod agents_and_chats {
    mod agents;
    mod assets;
    mod chats;
    mod commanded;
    mod completion_forms;
    mod completions;
    mod explained;
    mod images;
    mod long_chats;
    mod practices;
    mod projects;
    mod refined;
    mod scope;
    mod setup;
    mod shown;
    mod turns;
}

/// Context: documents and logs, and the programs that write them (hooks, the command).
mod context {
    mod assistant;
    mod cli;
    mod documents;
    mod imports;
    mod log_files;
    mod logs;
}

/// What every route does: HTTP, error messages, rate limits, and who may call.
mod edge {
    mod cors;
    mod door;
    mod generated;
    mod http;
    mod isolation;
    mod messages;
    mod once;
    mod rates;
    mod scopes;
}

/// The executor: due times, the sweep, and limits for one owner's runs.
mod executor {
    mod due_times;
    mod failures;
    mod held;
    mod occurrences;
    mod on_time;
    mod parallel;
    mod places;
    mod preflight;
    mod runs;
    mod season;
    mod sweep;
}

/// Living documents: what people and programs write, commits, the webhook of GitHub, and synchronisations.
mod living {
    mod agents;
    mod command;
    mod documents;
    mod hook;
    mod kills;
    mod ours;
    mod sync;
}

/// The program for one machine: its arguments, its data folder and its log.
mod local {
    mod crash;
    mod erasure;
    mod logs;
    mod program;
    mod show;
    mod smoke;
    mod storage;
    mod walkthrough;
}

/// The Model Context Protocol.
mod mcp {
    mod attacks;
    mod clients;
    mod tools;
}

/// Models and their providers: which model is called, with what, and what happens if it fails.
mod models {
    mod cache_prefix;
    mod chaos;
    mod choice;
    mod fallback;
    mod provider_keys;
    mod provider_requests;
    mod provider_tools;
    mod providers;
    mod recorded_prompts;
    mod servers;
}

/// Notices: who is told what, and how it is delivered.
mod notices {
    mod answers;
    mod at_home;
    mod channels;
    mod deliveries;
    mod foreign;
    mod mails;
    mod preflights;
    mod replies;
    mod results;
    mod smtp;
    mod told;
    mod waits;
}

/// Memory: what is learned, kept, found and forgotten.
mod memory {
    mod demo;
    mod facts;
    mod forgotten;
    mod forgotten_property;
    mod isolation;
    mod kills;
    mod many;
    mod recall;
    mod sync;
    mod take;
    mod thirty_days;
    mod told;
    mod vectors;
}

/// What pages and the command show first: what waits for a person, a day, all runs, a search.
mod overview {
    mod command;
    mod conditional;
    mod day;
    mod inbox;
    mod runs;
    mod search;
    mod thousand;
}

/// Runs of every kind: processes that die, calls that need a person, ceilings of costs, long results.
mod runs {
    mod call_secrets;
    mod calls;
    mod ceilings;
    mod conditions;
    mod durable;
    mod http_calls;
    mod injection;
    mod long_replies;
    mod long_results;
    mod now;
    mod rehearsal_places;
    mod rehearsals;
    mod since_last;
    mod watch_races;
    mod watched;
    mod web;
    mod year;
}

/// Stored data: old versions, faults of AWS, and the walk over an owner's items.
mod store {
    mod faults;
    mod golden;
    mod walk;
}

/// Themes: files, the map, and its descriptions.
mod themes {
    mod changes;
    mod chat;
    mod computing;
    mod demo_edits;
    mod enrichment;
    mod events;
    mod helpers;
    mod routes;
}

/// Records of jobs, and the watchdog that reads them.
mod watchdog {
    mod jobs;
    mod kills;
    mod looks;
    mod many;
    mod wrong;
}

/// Schedules that something else runs.
mod watch {
    mod watched;
}

/// The server on this data folder, as a program. It is not in the harness, because Cargo tells only a test program where the
/// programs of its package are.
fn command(data: &Path) -> Command {
    tests::program::command(Path::new(env!("CARGO_BIN_EXE_server")), data)
}
