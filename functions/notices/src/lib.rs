//! What people want to be told, the channels through which they are told, and the deliveries.
//!
//! Executors plan and send the messages. Here, people say what they want and see what became of it.

mod answers;
mod channels;
mod deliveries;
mod preferences;
mod telegram;
mod unsubscribe;

use models::Models;
use shared::runtime::function::{Function, Trigger};

shared::routes!(in answers, channels, deliveries, preferences, telegram, unsubscribe);

pub const FUNCTION: Function = Function {
    name: "notices",
    trigger: Trigger::Http { routes: router, streaming: false },
    models: Models::none,
    areas: &[],
};
