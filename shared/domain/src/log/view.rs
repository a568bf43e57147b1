//! How a log is shown.

use jiff::Timestamp;
use serde::{Serialize, Serializer};
use utoipa::ToSchema;

use super::entry::{Entry, shown};
use super::ids::{InstanceId, SessionId};
use super::layout;

/// A text of at most `max` characters. What is longer ends in `… [truncated N chars]`, N being what is missing.
#[must_use]
pub fn cut(text: &str, max: usize) -> String {
    let total = text.chars().count();
    if total <= max {
        return text.to_owned();
    }
    let mark = |missing: usize| format!("… [truncated {missing} chars]");
    // The mark takes room, which makes more missing, which may make the mark longer: two rounds settle it.
    let mut missing = total - max;
    for _ in 0..3 {
        missing = total - max.saturating_sub(mark(missing).chars().count());
    }
    let kept: String = text.chars().take(total - missing).collect();
    kept + &mark(missing)
}

/// What is known of a log without reading it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct Metadata {
    pub agent_id: InstanceId,
    /// Absent where no session has the agent.
    pub session_id: Option<SessionId>,
    pub total_entries: u64,
    /// How large the log is as a file, in bytes.
    pub file_size_bytes: u64,
    #[serde(serialize_with = "optional")]
    pub last_modified: Option<Timestamp>,
    /// Where the log is in an export.
    pub context_file: Option<String>,
}

fn optional<S: Serializer>(instant: &Option<Timestamp>, serializer: S) -> Result<S::Ok, S::Error> {
    instant.map(shown).serialize(serializer)
}

impl Metadata {
    /// Of a log that is not there.
    #[must_use]
    pub fn empty(agent_id: InstanceId, session_id: Option<SessionId>) -> Self {
        Self {
            agent_id,
            session_id,
            total_entries: 0,
            file_size_bytes: 0,
            last_modified: None,
            context_file: None,
        }
    }

    #[must_use]
    pub fn of(
        agent_id: InstanceId,
        session_id: SessionId,
        entries: u64,
        bytes: u64,
        last: Timestamp,
    ) -> Self {
        Self {
            context_file: Some(layout::log_path(&session_id, &agent_id)),
            agent_id,
            session_id: Some(session_id),
            total_entries: entries,
            file_size_bytes: bytes,
            last_modified: Some(last),
        }
    }
}

/// The text form: a line about the log, a rule, and a line for each entry.
#[must_use]
pub fn text(metadata: &Metadata, entries: &[Entry]) -> String {
    let session = metadata.session_id.as_ref().map_or("-", SessionId::as_str);
    let head = format!(
        "Agent: {} | Session: {session} | Entries: {}\n---\n",
        metadata.agent_id, metadata.total_entries
    );
    entries.iter().fold(head, |text, entry| text + &line(entry))
}

fn line(entry: &Entry) -> String {
    let texts = [Some(&entry.description), entry.output_summary.as_ref(), entry.instruction.as_ref()];
    let text =
        texts.into_iter().flatten().find(|text| !text.trim().is_empty()).map_or("", |text| text.trim());
    // One line each, whatever the description has in it.
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    format!("{} [{}] {}\n", shown(entry.timestamp), entry.event.as_str(), cut(&text, 200))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::log::LogEvent;

    #[test]
    fn a_long_text_says_how_much_is_missing() {
        for (text, max, expected) in [
            ("short".to_owned(), 10, "short".to_owned()),
            ("é".repeat(1_000), 1_000, "é".repeat(1_000)),
            ("é".repeat(1_001), 1_000, format!("{}… [truncated 23 chars]", "é".repeat(978))),
            ("x".repeat(1_077), 1_000, format!("{}… [truncated 99 chars]", "x".repeat(978))),
            ("x".repeat(1_078), 1_000, format!("{}… [truncated 101 chars]", "x".repeat(977))),
            ("x".repeat(100_000), 1_000, format!("{}… [truncated 99025 chars]", "x".repeat(975))),
        ] {
            assert_eq!(cut(&text, max), expected);
        }
    }

    #[test]
    fn the_text_form_is_one_line_each() {
        let (agent, session): (InstanceId, SessionId) =
            ("arch-001".parse().unwrap(), "dev-20250812-143022".parse().unwrap());
        let entry = |event, description: &str, output: Option<&str>, at: &str| Entry {
            event,
            agent_type: "the-architect".to_owned(),
            agent_id: agent.clone(),
            description: description.to_owned(),
            instruction: None,
            output_summary: output.map(str::to_owned),
            session_id: session.clone(),
            timestamp: at.parse().unwrap(),
        };
        let entries = [
            entry(LogEvent::AgentStart, "Design authentication system", None, "2025-08-12T14:00:00Z"),
            entry(LogEvent::AgentComplete, "Two\n lines", Some("o"), "2025-08-12T14:05:00.5Z"),
            entry(LogEvent::AgentComplete, " ", Some("It is\tdone"), "2025-08-12T14:06:00Z"),
            entry(LogEvent::AgentStart, "", None, "2025-08-12T14:07:00Z"),
        ];
        let last = entries[3].timestamp;
        let metadata = Metadata::of(agent.clone(), session.clone(), 15, 2_048, last);
        assert_eq!(metadata.context_file.as_deref(), Some("dev-20250812-143022/arch-001.jsonl"));
        let expected = "Agent: arch-001 | Session: dev-20250812-143022 | Entries: 15\n---\n\
                        2025-08-12T14:00:00.000Z [agent_start] Design authentication system\n\
                        2025-08-12T14:05:00.500Z [agent_complete] Two lines\n\
                        2025-08-12T14:06:00.000Z [agent_complete] It is done\n\
                        2025-08-12T14:07:00.000Z [agent_start] \n";
        assert_eq!(text(&metadata, &entries), expected);
        let nothing = text(&Metadata::empty(agent, None), &[]);
        assert_eq!(nothing, "Agent: arch-001 | Session: - | Entries: 0\n---\n");
    }

    proptest! {
        #[test]
        fn a_cut_text_fits_and_counts_right(text in "(?s).{0,300}", max in 30usize..200) {
            let cut = cut(&text, max);
            let total = text.chars().count();
            prop_assert!(cut.chars().count() <= max);
            if total > max {
                let (kept, mark) = cut.rsplit_once("… [truncated ").unwrap();
                let missing: usize = mark.strip_suffix(" chars]").unwrap().parse().unwrap();
                prop_assert_eq!(kept.chars().count() + missing, total);
                prop_assert!(text.starts_with(kept));
            } else {
                prop_assert_eq!(cut, text);
            }
        }
    }
}
