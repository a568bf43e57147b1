//! The files of OpenClaw: what can be brought in, and what a memory is written as to be taken along.
//!
//! Everything here comes from outside and may be damaged or hostile. Nothing fails as a whole: what can't be read is counted. The texts
//! are data, and nothing of them decides what the platform does.

mod jobs;
mod session;
mod text;

use std::sync::LazyLock;

use jiff::civil::Date;
use sha2::{Digest, Sha256};
use uuid::Uuid;

pub use jobs::{Job, Jobs, MAX_JOBS, jobs};
pub use session::{MAX_LINE, Transcript, TranscriptReader, header, line, scheduled_sessions};
pub use text::{FileCard, FileCards, cards, passages};

use super::MAX_NAMESPACE;
use crate::ids::{ActionId, AgentId, CardId, Owner};
use crate::log::SessionId;
use crate::practices::day_named;
use crate::text::quoting::one_line;

/// The agent that every installation has. Its sessions are the person's own.
pub const MAIN: &str = "main";

/// The longest name in a sentence about a file, in bytes.
const MAX_TOLD: usize = 80;

/// A file that the platform knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Known {
    /// `MEMORY.md`
    LongTerm,
    /// `memory/YYYY-MM-DD.md` and `memory/archive/YYYY/YYYY-MM-DD.md`
    Day(Date),
    /// `memory/weekly/YYYY-MM-DD.md`
    Week(Date),
    /// `memory/tasks/YYYY-MM-DD.md`
    Cards(Date),
    /// `agents/<agent>/sessions/<name>.jsonl`, or without the folder of an agent.
    Session { agent: Option<String>, name: String },
    /// `sessions.json` in a folder of sessions: what each session is for.
    SessionKeys { agent: Option<String> },
    /// `cron/jobs.json`
    Jobs,
    /// `memory/state/processed-sessions.json`
    Processed,
    /// `memory/state/memory-watchdog-state.json`
    Watchdog,
}

impl Known {
    /// The most bytes of the file. A session is read line by line.
    #[must_use]
    pub const fn most_bytes(&self) -> u64 {
        match self {
            Self::Session { .. } => 128 << 20,
            Self::SessionKeys { .. } => 16 << 20,
            Self::Jobs => 4 << 20,
            _ => 1 << 20,
        }
    }
}

/// The folder that all files are in, with its slash, or nothing. What macOS adds to a zip does not count.
#[must_use]
pub fn common_folder<'a>(paths: impl IntoIterator<Item = &'a str>) -> String {
    let mut common: Option<&str> = None;
    for path in paths.into_iter().filter(|path| !path.starts_with("__MACOSX/")) {
        let Some((folder, _)) = path.split_once('/') else { return String::new() };
        if *common.get_or_insert(folder) != folder {
            return String::new();
        }
    }
    match common {
        // These are folders of an installation themselves.
        None | Some("memory" | "agents" | "sessions" | "cron" | "workspace") => String::new(),
        Some(folder) => format!("{folder}/"),
    }
}

/// What a file is, by its path below the common folder. The workspace may be a folder of its own.
#[must_use]
pub fn known(path: &str) -> Option<Known> {
    let path = path.strip_prefix("workspace/").unwrap_or(path);
    let date = |name: &str| day_named(name.strip_suffix(".md")?).ok();
    let session = |agent: Option<&str>, name: &str| {
        let agent = agent.map(str::to_owned);
        match name.strip_suffix(".jsonl") {
            Some(name) if !name.is_empty() => Some(Known::Session { agent, name: name.to_owned() }),
            _ => (name == "sessions.json").then_some(Known::SessionKeys { agent }),
        }
    };
    match path.split('/').collect::<Vec<_>>()[..] {
        ["MEMORY.md"] => Some(Known::LongTerm),
        ["memory", name] => date(name).map(Known::Day),
        ["memory", "weekly", name] => date(name).map(Known::Week),
        ["memory", "tasks", name] => date(name).map(Known::Cards),
        ["memory", "archive", year, name] if year.bytes().all(|byte| byte.is_ascii_digit()) => {
            date(name).map(Known::Day)
        }
        ["memory", "state", "processed-sessions.json"] => Some(Known::Processed),
        ["memory", "state", "memory-watchdog-state.json"] => Some(Known::Watchdog),
        ["sessions", name] => session(None, name),
        ["agents", agent, "sessions", name] => session(Some(agent), name),
        ["cron", "jobs.json"] => Some(Known::Jobs),
        _ => None,
    }
}

/// The id of the outside session that a file of texts becomes.
#[must_use]
pub fn texts_id(file: &Known) -> Option<SessionId> {
    match file {
        Known::Day(date) => format!("memory-{date}").parse().ok(),
        Known::Week(monday) => format!("memory-weekly-{monday}").parse().ok(),
        _ => None,
    }
}

/// The id of the outside session that a session becomes. A name that can't be an id gets a hash at its end, so that two of them stay
/// two sessions.
#[must_use]
pub fn session_id(agent: Option<&str>, name: &str) -> SessionId {
    let whole = match agent {
        Some(agent) => format!("{agent}-{name}"),
        None => name.to_owned(),
    };
    whole.parse().unwrap_or_else(|_| {
        let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        let words: String = whole.chars().map(|c| if is_word(c) { c } else { '-' }).take(100).collect();
        let id = format!("{words}-{}", &hash_of("session", &[&whole])[..16]);
        id.parse().unwrap_or_else(|_| FALLBACK.clone())
    })
}

/// Never used: the id above has 17 to 117 of the allowed characters.
static FALLBACK: LazyLock<SessionId> = LazyLock::new(|| {
    #[allow(clippy::unwrap_used, reason = "a constant that a test parses")]
    "openclaw".parse().unwrap()
});

/// The namespace of an agent's sessions.
#[must_use]
pub fn namespace(agent: Option<&str>) -> String {
    agent
        .filter(|agent| *agent != MAIN)
        .map(|agent| namespace_named(&agent.replace('/', "-")))
        .unwrap_or_default()
}

/// A namespace with this name, as far as a namespace can have it.
#[must_use]
pub fn namespace_named(name: &str) -> String {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/');
    name.chars().map(|c| if allowed(c) { c } else { '-' }).take(MAX_NAMESPACE).collect()
}

/// A name from outside for a sentence: one line, in quotation marks, and cut.
#[must_use]
pub fn told(name: &str) -> String {
    let name = one_line(name.trim());
    let cut = name.floor_char_boundary(MAX_TOLD);
    format!("“{}{}”", &name[..cut], if cut < name.len() { "…" } else { "" })
}

fn digest(kind: &str, parts: &[&str]) -> [u8; 32] {
    let mut hash = Sha256::new().chain_update("openclaw\0").chain_update(kind);
    for part in parts {
        // With its length, so that no two lists have the same bytes.
        hash = hash.chain_update((part.len() as u64).to_be_bytes()).chain_update(part);
    }
    hash.finalize().into()
}

fn hash_of(kind: &str, parts: &[&str]) -> String {
    crate::hex(&digest(kind, parts))
}

fn id_of(kind: &str, parts: &[&str]) -> Uuid {
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&digest(kind, parts)[..16]);
    uuid::Builder::from_custom_bytes(bytes).into_uuid()
}

/// The id of the agent that an agent of OpenClaw becomes.
#[must_use]
pub fn agent_id(owner: &Owner, agent: &str) -> AgentId {
    AgentId::from_uuid(id_of("agent", &[owner.as_str(), agent]))
}

/// The id of the action that a job becomes.
#[must_use]
pub fn action_id(owner: &Owner, job: &Job) -> ActionId {
    ActionId::from_uuid(id_of("job", &[owner.as_str(), &job.agent, &job.key]))
}

/// The id of a card. Its time is that of the card in UTC, whatever the person's zone is, so it stays the same when that changes.
#[must_use]
pub fn card_id(owner: &Owner, date: Date, card: &FileCard) -> CardId {
    let (date_text, text) = (date.to_string(), card.text.named());
    let mut parts = vec![owner.as_str(), &date_text, &card.time, &card.title];
    parts.extend(text.iter().map(|(_, text)| *text));
    let time = jiff::civil::Time::strptime("%H:%M", &card.time).unwrap_or_default();
    let at = date.to_datetime(time).to_zoned_datetime(jiff::tz::TimeZone::UTC);
    CardId::at(at.map_or(jiff::Timestamp::UNIX_EPOCH, |at| at.timestamp()), id_of("card", &parts))
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn files_are_known_by_their_places() {
        let day = date(2026, 2, 1);
        let session =
            |agent: Option<&str>| Known::Session { agent: agent.map(str::to_owned), name: "a1".into() };
        for (path, expected) in [
            ("MEMORY.md", Some(Known::LongTerm)),
            ("workspace/MEMORY.md", Some(Known::LongTerm)),
            ("memory/2026-02-01.md", Some(Known::Day(day))),
            ("memory/archive/2026/2026-02-01.md", Some(Known::Day(day))),
            ("memory/weekly/2026-02-01.md", Some(Known::Week(day))),
            ("workspace/memory/tasks/2026-02-01.md", Some(Known::Cards(day))),
            ("sessions/a1.jsonl", Some(session(None))),
            ("agents/main/sessions/a1.jsonl", Some(session(Some("main")))),
            ("agents/w/sessions/sessions.json", Some(Known::SessionKeys { agent: Some("w".into()) })),
            ("sessions/sessions.json", Some(Known::SessionKeys { agent: None })),
            ("cron/jobs.json", Some(Known::Jobs)),
            ("memory/state/processed-sessions.json", Some(Known::Processed)),
            ("memory/state/memory-watchdog-state.json", Some(Known::Watchdog)),
            ("memory/2026-02-30.md", None),
            ("memory/20260201.md", None),
            ("memory/2026-02-01.txt", None),
            ("memory/archive/old/2026-02-01.md", None),
            ("other/MEMORY.md", None),
            ("sessions/.jsonl", None),
            ("sessions/a1.jsonl.lock", None),
            ("agents/main/agent/auth-profiles.json", None),
            ("openclaw.json", None),
            ("", None),
        ] {
            assert_eq!(known(path), expected, "{path}");
        }
    }

    #[test]
    fn one_folder_around_everything_does_not_count() {
        let common = |paths: &[&str]| common_folder(paths.iter().copied());
        assert_eq!(common(&[".openclaw/cron/jobs.json", ".openclaw/workspace/MEMORY.md"]), ".openclaw/");
        assert_eq!(common(&["w/MEMORY.md", "__MACOSX/w/._MEMORY.md"]), "w/");
        assert_eq!(common(&["MEMORY.md", "memory/2026-02-01.md"]), "");
        assert_eq!(common(&["a/MEMORY.md", "b/MEMORY.md"]), "");
        // A folder of the installation is not one around it.
        assert_eq!(common(&["memory/2026-02-01.md"]), "");
        assert_eq!(common(&["sessions/a.jsonl", "sessions/b.jsonl"]), "");
        assert_eq!(common(&["workspace/MEMORY.md"]), "");
        assert_eq!(common(&[]), "");
    }

    #[test]
    fn names_become_ids() {
        assert_eq!(session_id(Some("main"), "9b22-a").as_str(), "main-9b22-a");
        assert_eq!(session_id(None, "9b22-a").as_str(), "9b22-a");
        let (one, other) = (session_id(Some("a b"), "ü"), session_id(Some("a b"), "ö"));
        assert!(one.as_str().starts_with("a-b---") && one != other, "{one} {other}");
        assert_eq!(namespace(None), "");
        assert_eq!(namespace(Some("main")), "");
        assert_eq!(namespace(Some("my work/ü")), "my-work--");
        assert_eq!(told(" a\nb "), "“a b”");
        assert_eq!(told(&"ü".repeat(50)).len(), 80 + "“…”".len());
        assert_eq!(texts_id(&Known::Week(date(2026, 2, 2))).unwrap().as_str(), "memory-weekly-2026-02-02");
        assert_eq!(FALLBACK.as_str(), "openclaw");
    }

    #[test]
    fn an_id_is_that_of_its_content() {
        let (me, you) = (Owner::new("me").unwrap(), Owner::new("you").unwrap());
        assert_eq!(agent_id(&me, "main"), agent_id(&me, "main"));
        assert_ne!(agent_id(&me, "main"), agent_id(&you, "main"));
        let card = FileCard { time: "09:30".into(), title: "T".into(), ..FileCard::default() };
        let id = card_id(&me, date(2026, 2, 1), &card);
        assert_eq!(crate::ids::instant_of(id.uuid()).to_string(), "2026-02-01T09:30:00Z");
        assert_eq!(id, card_id(&me, date(2026, 2, 1), &card));
        assert_ne!(id, card_id(&me, date(2026, 2, 1), &FileCard { title: "U".into(), ..card }));
        // Moving a character from one part to the next makes another list.
        assert_ne!(hash_of("x", &["ab", "c"]), hash_of("x", &["a", "bc"]));
    }

    proptest! {
        #[test]
        fn any_name_is_an_id(agent in proptest::option::of(".{0,150}"), name in ".{0,150}") {
            let id = session_id(agent.as_deref(), &name);
            prop_assert_ne!(id.as_str(), "openclaw");
            let mut errors = crate::validate::FieldErrors::default();
            crate::memory::check_namespace(&mut errors, &namespace(agent.as_deref()));
            crate::memory::check_namespace(&mut errors, &namespace_named(&name));
            prop_assert!(errors.0.is_empty());
            let _ = known(&name);
        }
    }
}
