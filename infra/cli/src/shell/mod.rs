//! The commands for people: they ask the HTTP API, and print tables, or JSON for programs.

mod accept;
mod actions;
mod agents;
mod answer;
pub(crate) mod api;
mod approve;
mod assets;
mod chat;
mod chats;
mod due;
mod events;
mod inbox;
mod jobs;
mod memory;
mod names;
mod notices;
mod proposals;
mod runs;
pub(crate) mod screen;
pub(crate) mod table;
mod theme;
mod times;
mod usage;
pub(crate) mod values;
mod watch;
mod watched;
mod why;
mod wrap;

use crate::Failure;
use crate::args::{Person, Watch, WatchCommand};
use api::Api;

/// Does what the person asks for.
///
/// # Errors
/// If the server refuses it or does not answer.
pub fn run(person: Person) -> Result<(), Failure> {
    if let Person::Watch(Watch { command: Some(WatchCommand::Wrap(args)), .. }) = &person {
        // The command runs even if the configuration is invalid.
        wrap::run(args);
    }
    let api = Api::open()?;
    match person {
        Person::Chat(args) => chat::run(api, &args),
        Person::Inbox(args) => inbox::run(&api, &args),
        Person::Approve(args) => approve::run(&api, &args),
        Person::Accept(args) => accept::run(&api, &args),
        Person::Answer(args) => answer::run(&api, &args),
        Person::Actions(args) => actions::run(&api, &args),
        Person::Runs(args) => runs::run(&api, &args),
        Person::Due(args) => due::run(&api, &args),
        Person::Why(args) => why::run(&api, &args),
        Person::Assets(args) => assets::run(&api, &args),
        Person::Agents(args) => agents::run(api, &args),
        Person::Chats(args) => chats::run(&api, &args),
        Person::Proposals(args) => proposals::run(&api, &args),
        Person::Usage(args) => usage::run(&api, &args),
        Person::Memory(args) => memory::run(&api, &args),
        Person::Jobs(args) => jobs::run(&api, &args),
        Person::Notices(args) => notices::run(&api, &args),
        Person::Theme(args) => theme::run(&api, &args),
        Person::Watch(Watch { command: Some(command), .. }) => watched::run(&api, &command),
        Person::Watch(args) => watch::run(&api, &args),
    }
}
