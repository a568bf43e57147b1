//! Channels: where a person is told.

use std::io::{self, IsTerminal, Read};
use std::thread;

use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
use serde_json::{Value, json};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;

use super::{PATH, look, told};
use crate::Failure;
use crate::args::{AddChannel, NamedChannel, NewChannel};
use crate::output;
use crate::server::Change;
use crate::shell::api::{Api, patiently, unexpected};
use crate::shell::chat::{ask, confirmed};
use crate::shell::names::folded;
use crate::shell::screen::{Look, line, print_json};
use crate::shell::table::{Table, short_ids};
use crate::shell::values::Fields;

/// How many channels an error lists.
const SHOWN: usize = 10;

/// The longest secret that is read, in bytes. The platform's limits are lower.
const LONGEST: u64 = 10_000;

/// The channels, oldest first.
pub fn all(api: &Api) -> Result<Vec<Value>, Failure> {
    Ok(api.get(&format!("{PATH}/channels"), &[])?.items("data").to_vec())
}

pub fn list(api: &Api, json: bool) -> Result<(), Failure> {
    let list = api.get(&format!("{PATH}/channels"), &[])?;
    if json {
        return print_json(&list);
    }
    let channels = list.items("data");
    if channels.is_empty() {
        return Ok(output::print("there is no channel; `lamplighter notices add` adds one\n")?);
    }
    let ids: Vec<&str> = channels.iter().map(|channel| channel.text("channel_id")).collect();
    let mut table = Table::new(api.screen, &["KIND", "TARGET", "STATE", "WHY", "ID"]);
    for (channel, id) in channels.iter().zip(short_ids(api.screen, &ids)) {
        let state = channel.text("state");
        let why = match channel.some("code_until") {
            Some(until) if super::snooze::is_ahead(until) => {
                format!("its code works until {}", api.when(until))
            }
            Some(_) => "its code no longer works".to_owned(),
            None => channel.text("why").to_owned(),
        };
        table.row([
            (channel.text("kind"), Look::Plain),
            (channel.text("target"), Look::Plain),
            (if state == "disabled" { "paused" } else { state }, look(state)),
            (why.as_str(), Look::Plain),
            (id.as_str(), Look::Dim),
        ]);
    }
    Ok(output::print(table.lines())?)
}

pub fn add(api: &Api, args: &AddChannel) -> Result<(), Failure> {
    let (body, asked) = match &args.channel {
        NewChannel::Email { address, json } => (json!({ "kind": "email", "to": address }), json),
        NewChannel::Webhook { url, json } => (json!({ "kind": "webhook", "url": url }), json),
        NewChannel::Slack { url, json } => (
            json!({ "kind": "slack", "url": given(url.as_deref(), "Address of the incoming webhook")? }),
            json,
        ),
        NewChannel::Discord { url, json } => {
            (json!({ "kind": "discord", "url": given(url.as_deref(), "Address of the webhook")? }), json)
        }
        NewChannel::Telegram { chat_id, json } => {
            (json!({ "kind": "telegram", "chat_id": chat_id, "token": secret("Token of the bot")? }), json)
        }
        NewChannel::Ntfy { topic, server, token, json } => {
            let mut body = json!({ "kind": "ntfy", "topic": given(topic.as_deref(), "Topic")? });
            if let Some(server) = server {
                body["url"] = json!(server);
            }
            if *token {
                body["token"] = json!(secret("Access token")?);
            }
            (body, json)
        }
        NewChannel::Gotify { url, json } => {
            (json!({ "kind": "gotify", "url": url, "token": secret("Token of the application")? }), json)
        }
        NewChannel::Smtp { host, to, from, security, port, user, json } => {
            let mut body = json!({ "kind": "smtp", "host": host, "from": from, "to": to });
            if let Some(security) = security {
                body["security"] = json!(security);
            }
            if let Some(port) = port {
                body["port"] = json!(port);
            }
            if let Some(user) = user {
                body["user"] = json!(user);
                body["secret"] = json!(secret("Password")?);
            }
            (body, json)
        }
    };
    let made = api.send(Change::Post, &format!("{PATH}/channels"), &body)?;
    if asked.json {
        return print_json(&made);
    }
    let (kind, target, id) =
        (line(made.text("kind")), line(made.text("target")), line(made.text("channel_id")));
    let mut text = format!("{kind} {target}  {id}\n");
    if kind == "webhook" {
        text.push_str(&told_secret(&made));
    }
    text.push_str(&if made.text("state") == "unconfirmed" {
        let where_to = match api.get(&format!("{PATH}/channels"), &[])?.text("emails") {
            // A mail server of a person sends it nevertheless.
            "stored" if kind == "email" => {
                "This platform sends no e-mail. The code is in the outbox (GET /outbox, or the page Notices)."
            }
            _ => "A code is on its way there.",
        };
        format!("{where_to} Give it back with:\n  lamplighter notices confirm {id} CODE\n")
    } else {
        format!("Test it with:\n  lamplighter notices test {id}\n")
    });
    Ok(output::print(text)?)
}

pub fn rotate(api: &Api, args: &NamedChannel) -> Result<(), Failure> {
    let channel = api.send(Change::Patch, &path(api, &args.channel)?, &json!({ "new_secret": true }))?;
    let text = format!("{}For 24 hours, the old secret signs, too.", told_secret(&channel));
    told(&channel, args.json.json, &text)
}

/// The secret of a webhook, which is in one answer only.
fn told_secret(channel: &Value) -> String {
    match channel.some("secret") {
        Some(secret) => format!(
            "The receiver needs this secret to check who writes. It is shown only now:\n  {}\n",
            line(secret)
        ),
        None => format!(
            "The answer that had the secret was lost. Make a new one with:\n  lamplighter notices rotate {}\n",
            line(channel.text("channel_id"))
        ),
    }
}

/// A secret that may be on the command line, because the person has put it there.
fn given(argument: Option<&str>, what: &str) -> Result<String, Failure> {
    match argument {
        Some(text) => Ok(text.to_owned()),
        None => secret(what),
    }
}

/// A secret from the standard input. Other people of the machine can read a command line, and a shell keeps it. On a terminal, it is
/// asked for, and what is typed is not shown.
fn secret(what: &str) -> Result<String, Failure> {
    let mut text = String::new();
    let stdin = io::stdin();
    if stdin.is_terminal() {
        let before = tcgetattr(&stdin).map_err(io::Error::from)?;
        let mut hidden = before.clone();
        hidden.local_modes.remove(LocalModes::ECHO);
        // A signal that ends the program must not leave a terminal that shows nothing.
        let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
        let (handle, restored) = (signals.handle(), before.clone());
        let watcher = thread::spawn(move || {
            if let Some(signal) = signals.forever().next() {
                let _ = tcsetattr(io::stdin(), OptionalActions::Now, &restored);
                drop(emulate_default_handler(signal));
            }
        });
        tcsetattr(&stdin, OptionalActions::Flush, &hidden).map_err(io::Error::from)?;
        let answer = ask(&format!("{what} (it is not shown): "));
        tcsetattr(&stdin, OptionalActions::Now, &before).map_err(io::Error::from)?;
        handle.close();
        drop(watcher.join());
        output::print("\n")?;
        text = answer?.unwrap_or_default();
    } else {
        stdin.lock().take(LONGEST).read_to_string(&mut text)?;
    }
    let text = text.trim();
    if text.is_empty() {
        return Err(Failure::Message(format!(
            "{what}: it is read from the standard input, which is empty, because a command line is no place for secrets"
        )));
    }
    Ok(text.to_owned())
}

pub fn confirm(api: &Api, called: &str, code: &str, json: bool) -> Result<(), Failure> {
    let path = format!("{}/confirm", path(api, called)?);
    let channel = api.send(Change::Post, &path, &json!({ "code": code }))?;
    told(&channel, json, &format!("Confirmed. Notices are sent to {}.", line(channel.text("target"))))
}

pub fn send_another_code(api: &Api, args: &NamedChannel) -> Result<(), Failure> {
    let path = format!("{}/code", path(api, &args.channel)?);
    let channel = api.send(Change::Post, &path, &json!({}))?;
    let to = line(channel.text("target"));
    let until = api.when(channel.text("code_until"));
    told(
        &channel,
        args.json.json,
        &format!(
            "A code is on its way to {to}. It works until {until}, and the one before it no longer works."
        ),
    )
}

pub fn test(api: &Api, args: &NamedChannel) -> Result<(), Failure> {
    let path = format!("{}/test", path(api, &args.channel)?);
    let delivery = api.send(Change::Post, &path, &json!({}))?;
    let to = line(delivery.text("target"));
    told(
        &delivery,
        args.json.json,
        &format!("A test is on its way to {to}. `lamplighter notices deliveries` shows what becomes of it."),
    )
}

pub fn turn(api: &Api, args: &NamedChannel, on: bool) -> Result<(), Failure> {
    let state = if on { "enabled" } else { "disabled" };
    let channel = api.send(Change::Patch, &path(api, &args.channel)?, &json!({ "state": state }))?;
    let to = line(channel.text("target"));
    let text = if on {
        format!("Notices are sent to {to}.")
    } else {
        format!("Nothing is sent to {to} until `notices resume`.")
    };
    told(&channel, args.json.json, &text)
}

pub fn delete(api: &Api, called: &str, yes: bool) -> Result<(), Failure> {
    let channel = found(api, called)?;
    if !yes {
        if !io::stdin().is_terminal() {
            let told = "without a terminal, `--yes` is needed to delete the channel";
            return Err(Failure::Message(told.to_owned()));
        }
        let (kind, target) = (line(channel.text("kind")), line(channel.text("target")));
        output::note(&format!("{kind} {target} is deleted. What waits to be sent to it is given up"));
        if !confirmed("Delete it?")? {
            return Ok(output::print("nothing was deleted\n")?);
        }
    }
    let path = format!("{PATH}/channels/{}", checked(&channel)?);
    patiently(|| api.server.delete(&path))?;
    Ok(output::print("deleted\n")?)
}

fn path(api: &Api, called: &str) -> Result<String, Failure> {
    Ok(format!("{PATH}/channels/{}", checked(&found(api, called)?)?))
}

/// The id, which goes into a path.
fn checked(channel: &Value) -> Result<&str, Failure> {
    let id = channel.text("channel_id");
    let is_plain = !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if is_plain { Ok(id) } else { Err(unexpected()) }
}

fn found(api: &Api, called: &str) -> Result<Value, Failure> {
    only(&all(api)?, called).cloned().map_err(Failure::Message)
}

/// The channel with this id, or with this target, or whose id or target has this part. There are at most ten of them.
fn only<'a>(all: &'a [Value], called: &str) -> Result<&'a Value, String> {
    let wanted = folded(called);
    if wanted.is_empty() {
        return Err("the name of a channel is empty".to_owned());
    }
    let target = |channel: &Value| folded(channel.text("target"));
    let is_id = wanted.len() > "chn_".len() && wanted.starts_with("chn_");
    let ways: [&dyn Fn(&Value) -> bool; 4] = [
        &|channel| channel.text("channel_id") == wanted,
        &|channel| is_id && channel.text("channel_id").starts_with(&wanted),
        &|channel| target(channel) == wanted,
        &|channel| target(channel).contains(&wanted),
    ];
    let named = |channels: &[&Value]| {
        let one = |channel: &&Value| {
            let part = |field| line(channel.text(field));
            format!("{} {} ({})", part("kind"), part("target"), part("channel_id"))
        };
        channels.iter().take(SHOWN).map(one).collect::<Vec<_>>().join(", ")
    };
    let matching = ways
        .iter()
        .map(|is| all.iter().filter(|channel| is(channel)).collect::<Vec<&Value>>())
        .find(|matching| !matching.is_empty())
        .unwrap_or_default();
    match matching[..] {
        [one] => Ok(one),
        [] if all.is_empty() => Err("there is no channel; `lamplighter notices add` adds one".to_owned()),
        [] => {
            let all: Vec<&Value> = all.iter().collect();
            Err(format!("no channel is called `{}`; there are: {}", line(called), named(&all)))
        }
        ref several => Err(format!("`{}` fits several: {}; use an id", line(called), named(several))),
    }
}

/// The channel that a person names in one line: an e-mail address, the address of a webhook, or the token of a Telegram bot and a chat.
#[must_use]
pub fn named(said: &str) -> Option<Value> {
    if let Some((token, chat)) = said.split_once(' ')
        && token.split_once(':').is_some_and(|(bot, _)| bot.bytes().all(|byte| byte.is_ascii_digit()))
    {
        return Some(json!({ "kind": "telegram", "token": token, "chat_id": chat.trim() }));
    }
    if said.contains(char::is_whitespace) {
        return None;
    }
    if said.contains('@') && !said.contains('/') {
        return Some(json!({ "kind": "email", "to": said }));
    }
    if let Some(topic) = said.strip_prefix("https://ntfy.sh/").filter(|topic| !topic.contains('/')) {
        return Some(json!({ "kind": "ntfy", "url": "https://ntfy.sh", "topic": topic }));
    }
    let kind = match said {
        _ if said.starts_with("https://hooks.slack.com/") => "slack",
        _ if said.starts_with("https://discord.com/api/webhooks/") => "discord",
        _ if said.starts_with("https://discordapp.com/api/webhooks/") => "discord",
        _ if said.starts_with("https://") || said.starts_with("http://") => "webhook",
        _ => return None,
    };
    Some(json!({ "kind": kind, "url": said }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_found_by_its_id_or_a_part_of_its_target() {
        let channel = |id: &str, target: &str| json!({ "channel_id": id, "kind": "email", "target": target });
        let all = [
            channel("chn_0a", "me@example.com"),
            channel("chn_0b", "not.me@example.com"),
            channel("chn_1c", "https://hooks.slack.com/…k3Xz"),
        ];
        let id = |called| only(&all, called).map(|channel| channel.text("channel_id"));
        assert_eq!(id("chn_0a"), Ok("chn_0a"));
        assert_eq!(id("chn_1"), Ok("chn_1c"));
        // A whole target is meant before a part of another one.
        assert_eq!(id("ME@example.com"), Ok("chn_0a"));
        assert_eq!(id("not."), Ok("chn_0b"));
        assert_eq!(id("k3xz"), Ok("chn_1c"));
        let composed = [channel("chn_2d", "https://caf\u{e9}.example/hook")];
        assert_eq!(
            only(&composed, "cafe\u{301}.example").map(|channel| channel.text("channel_id")),
            Ok("chn_2d")
        );
        assert!(id("example").unwrap_err().contains("fits several: email me@example.com (chn_0a), "));
        assert!(id("chn_0").unwrap_err().contains("several"));
        assert!(id("nobody").unwrap_err().contains("there are: email me@example.com (chn_0a)"));
        assert!(id(" ").unwrap_err().contains("empty"));
        assert!(only(&[], "x").unwrap_err().contains("notices add"));
        assert!(checked(&channel("chn_/../x", "a")).is_err() && checked(&json!({})).is_err());
    }

    #[test]
    fn one_line_names_a_channel() {
        for (said, expected) in [
            ("me@example.com", json!({"kind": "email", "to": "me@example.com"})),
            (
                "https://hooks.slack.com/services/a/b/c",
                json!({"kind": "slack", "url": "https://hooks.slack.com/services/a/b/c"}),
            ),
            (
                "https://discord.com/api/webhooks/1/a",
                json!({"kind": "discord", "url": "https://discord.com/api/webhooks/1/a"}),
            ),
            (
                "https://ntfy.sh/my-topic",
                json!({"kind": "ntfy", "url": "https://ntfy.sh", "topic": "my-topic"}),
            ),
            ("https://example.com/@me", json!({"kind": "webhook", "url": "https://example.com/@me"})),
            ("123:abc @news", json!({"kind": "telegram", "token": "123:abc", "chat_id": "@news"})),
        ] {
            assert_eq!(named(said), Some(expected), "{said}");
        }
        for said in ["", "nowhere", "me at example.com", "ftp://example.com"] {
            assert_eq!(named(said), None, "{said}");
        }
    }
}
