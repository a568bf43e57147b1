//! The commands for people: they ask the HTTP API or read a folder, and print tables, or JSON for programs.

mod accept;
mod actions;
mod agents;
mod answer;
pub(crate) mod api;
mod approve;
mod assets;
mod chat;
mod chats;
mod control;
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
pub(crate) mod times;
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
    match person {
        Person::Chat(args) => agents::chat(Api::open()?, &args),
        Person::Inbox(args) => inbox::run(&Api::open()?, &args),
        Person::Approve(args) => approve::run(&Api::open()?, &args),
        Person::Accept(args) => accept::run(&Api::open()?, &args),
        Person::Answer(args) => answer::run(&Api::open()?, &args),
        Person::Actions(args) => actions::run(&Api::open()?, &args),
        Person::Run(args) => control::run(&Api::open()?, &args),
        Person::Pause(args) => control::pause(&Api::open()?, &args),
        Person::Resume(args) => control::resume(&Api::open()?, &args),
        Person::Runs(args) => runs::run(&Api::open()?, &args),
        Person::Due(args) => due::run(&Api::open()?, &args),
        Person::Why(args) => why::run(&Api::open()?, &args),
        Person::Assets(args) => assets::run(&Api::open()?, &args),
        Person::Agents(args) => agents::run(Api::open()?, &args),
        Person::Chats(args) => chats::run(&Api::open()?, &args),
        Person::Proposals(args) => proposals::run(&Api::open()?, &args),
        Person::Usage(args) => usage::run(&Api::open()?, &args),
        Person::Memory(args) => memory::run(&Api::open()?, &args),
        Person::Jobs(args) => jobs::run(&Api::open()?, &args),
        Person::Notices(args) => notices::run(&Api::open()?, &args),
        Person::Theme(args) => theme::run(&args),
        Person::Watch(Watch { command: Some(command), .. }) => watched::run(&Api::open()?, &command),
        Person::Watch(args) => watch::run(&Api::open()?, &args),
    }
}
