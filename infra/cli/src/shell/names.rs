//! What a person calls a thing: its id, the beginning of its id, or its name.

use icu_normalizer::ComposingNormalizerBorrowed;
use serde_json::Value;

use super::api::Api;
use super::screen::line;
use super::values::Fields;
use crate::Failure;
use crate::url::segment;

/// How many of the newest things are looked through for the beginning of an id.
const MOST: u32 = 5_000;

/// How many candidates are listed.
const SHOWN: usize = 10;

/// The longest query of a search, in characters.
const LONGEST_QUERY: usize = 200;

/// The digits of an id.
const DIGITS: usize = 32;

/// What can be named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Agent,
    Action,
    Asset,
}

impl Kind {
    fn word(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Action => "action",
            Self::Asset => "asset",
        }
    }

    fn article(self) -> &'static str {
        "an"
    }

    fn prefix(self) -> &'static str {
        match self {
            Self::Agent => "agt_",
            Self::Action => "act_",
            Self::Asset => "ast_",
        }
    }

    fn list(self) -> &'static str {
        match self {
            Self::Agent => "/agents",
            Self::Action => "/actions",
            Self::Asset => "/assets",
        }
    }

    fn id_field(self) -> &'static str {
        match self {
            Self::Agent => "agent_id",
            Self::Action => "action_id",
            Self::Asset => "asset_id",
        }
    }

    fn name_field(self) -> &'static str {
        if self == Self::Agent { "name" } else { "title" }
    }
}

/// A thing and how it is called.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Named {
    id: String,
    name: String,
}

/// A name as it is compared: blanks around it, the case of letters and the form of Unicode do not count. The platform has the same rule. A
/// keyboard or the name of a file may give `é` as two characters; names of the platform have it as one.
#[must_use]
pub fn folded(name: &str) -> String {
    composed(&composed(name).to_lowercase())
}

/// The text in the Unicode form NFC, without blanks around it.
fn composed(text: &str) -> String {
    ComposingNormalizerBorrowed::new_nfc().normalize(text.trim()).into_owned()
}

/// The id of a thing. If the person has given a whole id, the server is not asked.
///
/// # Errors
/// If there is no such thing, or there are several.
pub fn id(api: &Api, kind: Kind, called: &str) -> Result<String, Failure> {
    find(api, kind, called)?
}

/// The inner error says that there is no such thing.
fn find(api: &Api, kind: Kind, called: &str) -> Result<Result<String, Failure>, Failure> {
    let called = composed(called);
    let called = called.as_str();
    if called.is_empty() {
        return Err(Failure::Message(format!("the name of {} {} is empty", kind.article(), kind.word())));
    }
    if digits(kind.prefix(), called) == Some(DIGITS) {
        return Ok(Ok(called.to_owned()));
    }
    if digits(kind.prefix(), called).is_some() {
        let matching: Vec<Named> =
            all(api, kind)?.into_iter().filter(|thing| thing.id.starts_with(called)).collect();
        if !matching.is_empty() {
            return only(kind, called, matching).map(Ok);
        }
    }
    let (named, similar) = by_name(api, kind, called)?;
    if named.is_empty() {
        return Ok(Err(unknown(kind, called, &similar)));
    }
    only(kind, called, named).map(Ok)
}

/// The path of a thing.
///
/// # Errors
/// See [`id`].
pub fn path(api: &Api, kind: Kind, called: &str) -> Result<String, Failure> {
    Ok(format!("{}/{}", kind.list(), segment(&id(api, kind, called)?)))
}

/// The agent that the person has named, or the only one there is, and the message. If the first of several words names no agent, all of them
/// are a message to the only one. A single word is a name, because a message of one word is rare and a misspelt name is not.
///
/// # Errors
/// If none is named and there is not exactly one.
pub fn agent_and_message(
    api: &Api,
    called: Option<&str>,
    message: &[String],
) -> Result<(String, String), Failure> {
    let message = message.join(" ");
    let Some(called) = called else { return Ok((only_agent(api)?, message)) };
    let unknown = match find(api, Kind::Agent, called)? {
        Ok(agent) => return Ok((agent, message)),
        Err(unknown) => unknown,
    };
    let words = format!("{called} {message}");
    if digits(Kind::Agent.prefix(), called).is_some() || words.split_whitespace().count() < 2 {
        return Err(unknown);
    }
    only_agent(api).map(|agent| (agent, words.trim().to_owned())).map_err(|_| unknown)
}

/// The agent that the person has named, or the only one there is.
///
/// # Errors
/// If none is named and there is not exactly one.
pub fn agent_or_only(api: &Api, called: Option<&str>) -> Result<String, Failure> {
    called.map_or_else(|| only_agent(api), |called| id(api, Kind::Agent, called))
}

/// Whether there is no active agent.
///
/// # Errors
/// If the server does not answer.
pub fn has_no_agent(api: &Api) -> Result<bool, Failure> {
    Ok(api.list("/agents", &[("status", Some("active"))], 1)?.items("data").is_empty())
}

/// The only active agent.
fn only_agent(api: &Api) -> Result<String, Failure> {
    let mut agents = api.list("/agents", &[("status", Some("active"))], SHOWN as u32)?;
    let agents: Vec<Named> = agents["data"]
        .as_array_mut()
        .map(std::mem::take)
        .unwrap_or_default()
        .iter()
        .map(|agent| named(Kind::Agent, agent))
        .collect();
    match &agents[..] {
        [] => Err(Failure::Message(
            "there is no active agent yet; `lamplighter chat` makes one in a terminal, and `lamplighter agents new` anywhere".to_owned(),
        )),
        [only] => Ok(only.id.clone()),
        several => Err(Failure::Message(format!("say which agent:\n{}", candidates(several)))),
    }
}

/// The id in this list that begins like this, for things without a name.
///
/// # Errors
/// If there is none, or there are several.
pub fn id_in_list(
    called: &str,
    prefix: &str,
    word: &str,
    list: &[Value],
    field: &str,
    title: &str,
) -> Result<String, Failure> {
    let of = |thing: &Value| Named { id: thing.text(field).to_owned(), name: thing.text(title).to_owned() };
    let matching: Vec<Named> =
        list.iter().filter(|thing| thing.text(field).starts_with(called)).map(of).collect();
    match &matching[..] {
        [] => Err(Failure::Message(format!("there is no {word} `{called}`; an id begins with `{prefix}`"))),
        [only] => Ok(only.id.clone()),
        several => Err(Failure::Message(format!(
            "`{called}` is the beginning of several ids:\n{}",
            candidates(several)
        ))),
    }
}

/// The number of digits after the prefix, if the text is an id or the beginning of one.
#[must_use]
pub fn digits(prefix: &str, text: &str) -> Option<usize> {
    let digits = text.strip_prefix(prefix)?;
    let fits = digits.len() <= DIGITS && digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    fits.then_some(digits.len())
}

fn named(kind: Kind, thing: &Value) -> Named {
    Named { id: thing.text(kind.id_field()).to_owned(), name: thing.text(kind.name_field()).to_owned() }
}

fn all(api: &Api, kind: Kind) -> Result<Vec<Named>, Failure> {
    let list = api.list(kind.list(), &[], MOST)?;
    if list.is("has_more") {
        return Err(Failure::Message(format!(
            "there are more than {MOST} {}s; give the whole id",
            kind.word()
        )));
    }
    Ok(list.items("data").iter().map(|thing| named(kind, thing)).collect())
}

/// The things with this name, and those whose names have its words.
fn by_name(api: &Api, kind: Kind, called: &str) -> Result<(Vec<Named>, Vec<Named>), Failure> {
    let wanted = folded(called);
    let same = |thing: &Named| folded(&thing.name) == wanted;
    let mut similar = Vec::new();
    if called.chars().count() <= LONGEST_QUERY {
        let found = api.get("/search", &[("q", Some(called))])?;
        similar = found
            .items("data")
            .iter()
            .filter(|hit| hit.text("kind") == kind.word())
            .map(|hit| Named { id: hit.text("id").to_owned(), name: hit.text("title").to_owned() })
            .collect();
        if found.is("complete") {
            return Ok((similar.iter().filter(|thing| same(thing)).cloned().collect(), similar));
        }
    }
    // The search shows twenty hits of all kinds, so it may have missed the name.
    Ok((all(api, kind)?.into_iter().filter(same).collect(), similar))
}

fn only(kind: Kind, called: &str, mut matching: Vec<Named>) -> Result<String, Failure> {
    if matching.len() == 1 {
        return Ok(matching.remove(0).id);
    }
    Err(Failure::Message(format!(
        "`{called}` may be several {}s; give an id:\n{}",
        kind.word(),
        candidates(&matching)
    )))
}

fn unknown(kind: Kind, called: &str, similar: &[Named]) -> Failure {
    let mut told = format!("there is no {} `{called}`", kind.word());
    if !similar.is_empty() {
        told.push_str(&format!("; these are similar:\n{}", candidates(similar)));
    }
    Failure::Message(told)
}

fn candidates(things: &[Named]) -> String {
    let mut lines: Vec<String> = things
        .iter()
        .take(SHOWN)
        .map(|thing| format!("  {}  {}", line(&thing.id), line(&thing.name)))
        .collect();
    if things.len() > SHOWN {
        lines.push("  and others".to_owned());
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_the_same_in_every_form_of_unicode() {
        for (one, other) in [
            ("Café", "Cafe\u{301}"),
            ("  Büro ", "BU\u{308}RO"),
            ("한글", "\u{1112}\u{1161}\u{11ab}\u{1100}\u{1173}\u{11af}"),
            ("Ångström", "\u{212b}ngstro\u{308}m"),
            ("İstanbul", "I\u{307}STANBUL"),
        ] {
            assert_eq!(folded(one), folded(other), "{one} {other}");
        }
        // What looks different stays different.
        for (one, other) in [("Cafe", "Café"), ("ﬁle", "file"), ("A1", "A¹"), ("a b", "ab")] {
            assert_ne!(folded(one), folded(other), "{one} {other}");
        }
    }
}
