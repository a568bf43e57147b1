//! `chats`: the latest chat, or the chats of an agent.

use serde_json::Value;

use super::api::Api;
use super::chat;
use super::names::{self, Kind};
use super::screen::{Look, block, line, print_json};
use super::table::{Table, short_ids};
use super::values::{Fields, counted};
use crate::Failure;
use crate::args::{Chats, ChatsCommand};
use crate::output;
use crate::url::segment;

/// How many agents are asked for their latest chat.
const AGENTS: u32 = 200;

/// Prints the latest chat, or a list of chats.
///
/// # Errors
/// If the server does not answer.
pub fn run(api: &Api, args: &Chats) -> Result<(), Failure> {
    match &args.command {
        ChatsCommand::Latest { agent, json, limit } => {
            let Some(found) = latest(api, agent.as_deref())? else {
                return Err(Failure::Message(
                    "there is no chat yet; `lamplighter chat AGENT` begins one".to_owned(),
                ));
            };
            let path = format!("/chats/{}", segment(found.text("chat_id")));
            let size = limit.limit.min(200).to_string();
            let chat = api.get(&path, &[("limit", Some(&size))])?;
            if json.json {
                return print_json(&chat);
            }
            output::print(shown(api, &chat))?;
            if chat.is("has_more") {
                output::note("there are earlier messages; `--limit N` shows more of them");
            }
            Ok(())
        }
        ChatsCommand::List { agent, json, limit } => {
            let agent = names::agent_or_only(api, agent.as_deref())?;
            let list = api.list(&format!("/agents/{}/chats", segment(&agent)), &[], limit.limit)?;
            if json.json {
                return print_json(&list);
            }
            let chats = list.items("data");
            let ids: Vec<&str> = chats.iter().map(|chat| chat.text("chat_id")).collect();
            let mut table = Table::new(api.screen, &["ID", "TITLE", "NEWEST MESSAGE", "NOW"]);
            for (chat, id) in chats.iter().zip(short_ids(api.screen, &ids)) {
                let now = if chat.some("live_run").is_some() { "a turn is under way" } else { "" };
                table.row([
                    (id.as_str(), Look::Dim),
                    (chat.text("title"), Look::Plain),
                    (api.when(chat.text("updated_at")).as_str(), Look::Plain),
                    (now, Look::Good),
                ]);
            }
            output::print(if table.is_empty() { "there are no chats\n".to_owned() } else { table.lines() })?;
            api.note_more(&list);
            Ok(())
        }
    }
}

/// The chat with the newest message, of an agent or of all.
fn latest(api: &Api, agent: Option<&str>) -> Result<Option<Value>, Failure> {
    if let Some(called) = agent {
        return chat::latest(api, &names::id(api, Kind::Agent, called)?);
    }
    let mut newest: Option<Value> = None;
    for agent in api.list("/agents", &[], AGENTS)?.items("data") {
        let found = chat::latest(api, agent.text("agent_id"))?;
        if found.as_ref().map(|chat| chat.text("updated_at"))
            > newest.as_ref().map(|chat| chat.text("updated_at"))
        {
            newest = found;
        }
    }
    Ok(newest)
}

fn shown(api: &Api, chat: &Value) -> String {
    let mut text = format!(
        "{}\n{}\n",
        api.screen.painted(&line(chat.text("title")), Look::Bold),
        api.screen.painted(
            &format!(
                "{} of {}, {}",
                line(chat.text("chat_id")),
                line(chat.text("agent_id")),
                api.when(chat.text("updated_at"))
            ),
            Look::Dim
        )
    );
    if chat["summary"].is_object() {
        let number = chat["summary"].number("count").unwrap_or(0);
        let count = counted(number, "earlier message", "earlier messages");
        text.push_str(&format!("\n{count}, in short: {}\n", block(chat["summary"].text("text"))));
    }
    for message in chat.items("messages") {
        let who = if message.text("role") == "user" { "you" } else { message.text("role") };
        let head = format!("{}, {}", line(who), api.when(message.text("created_at")));
        text.push_str(&format!(
            "\n{}\n{}\n",
            api.screen.painted(&head, Look::Dim),
            block(message.text("content").trim_end())
        ));
        let images = message.items("images").len();
        if images > 0 {
            text.push_str(&format!("({})\n", counted(images as i64, "image", "images")));
        }
    }
    text
}
