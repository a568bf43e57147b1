//! Answers that come back with a message: by the link in it, and as a reply to a bot.

pub mod answer_links;
pub mod replies;
