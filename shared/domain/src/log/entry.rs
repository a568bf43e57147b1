//! One line of a log.

use jiff::Timestamp;
use serde::{Deserialize, Serialize, Serializer};
use utoipa::ToSchema;

use super::ids::{InstanceId, SessionId};
use crate::validate::{TIME_LIMIT, is_sane};

/// What happened to an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum LogEvent {
    /// The agent was asked for something.
    AgentStart,
    /// The agent answered.
    AgentComplete,
}

impl LogEvent {
    pub const ALL: [Self; 2] = [Self::AgentStart, Self::AgentComplete];

    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AgentStart => "agent_start",
            Self::AgentComplete => "agent_complete",
        }
    }
}

/// What an agent was asked, or what it answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct Entry {
    pub event: LogEvent,
    /// The kind of agent: `the-architect`. Empty for the assistant itself.
    pub agent_type: String,
    pub agent_id: InstanceId,
    /// The task in a few words.
    pub description: String,
    /// Everything that the agent was told. Only with `agent_start`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instruction: Option<String>,
    /// What the agent answered, up to 1,000 characters. Only with `agent_complete`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_summary: Option<String>,
    pub session_id: SessionId,
    /// UTC, to the millisecond.
    #[serde(serialize_with = "to_millis")]
    pub timestamp: Timestamp,
}

/// Why a line is skipped.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the line is not an entry: {0}")]
pub struct CorruptLine(String);

/// A line that others may have written. The log itself determines the session and the agent.
#[derive(Deserialize)]
struct Line {
    event: LogEvent,
    agent_id: Option<serde::de::IgnoredAny>,
    #[serde(default)]
    agent_type: String,
    #[serde(default)]
    description: String,
    instruction: Option<String>,
    output_summary: Option<String>,
    timestamp: Timestamp,
}

impl Entry {
    /// The entry as a line of JSON, without a newline.
    #[must_use]
    pub fn to_line(&self) -> String {
        serde_json::to_string(self).expect("an entry is made of texts")
    }

    /// Reads a line of the log of `agent_id` in `session_id`. Unknown fields are ignored.
    ///
    /// # Errors
    /// [`CorruptLine`] if it is not a JSON object, or has no known event or no valid time.
    pub fn from_line(
        line: &[u8],
        session_id: &SessionId,
        agent_id: &InstanceId,
    ) -> Result<Self, CorruptLine> {
        let line = serde_json::from_slice(line).map_err(|error| CorruptLine(error.to_string()))?;
        Self::of(line, session_id, agent_id)
    }

    /// Like [`Self::from_line`], for a line of a file that is imported. It must also name an agent; the file says which one it is.
    ///
    /// # Errors
    /// [`CorruptLine`], also if `agent_id` is missing.
    pub fn from_file(
        line: &[u8],
        session_id: &SessionId,
        agent_id: &InstanceId,
    ) -> Result<Self, CorruptLine> {
        let line: Line = serde_json::from_slice(line).map_err(|error| CorruptLine(error.to_string()))?;
        if line.agent_id.is_none() {
            return Err(CorruptLine("it has no agent_id".to_owned()));
        }
        Self::of(line, session_id, agent_id)
    }

    fn of(line: Line, session_id: &SessionId, agent_id: &InstanceId) -> Result<Self, CorruptLine> {
        let Line { event, agent_id: _, agent_type, description, instruction, output_summary, timestamp } =
            line;
        if !is_sane(timestamp) {
            return Err(CorruptLine(format!("timestamp {TIME_LIMIT}")));
        }
        let (session_id, agent_id) = (session_id.clone(), agent_id.clone());
        Ok(Self {
            event,
            agent_type,
            agent_id,
            description,
            instruction,
            output_summary,
            session_id,
            timestamp,
        })
    }
}

/// A time as logs show it: always with three digits after the second, so that the text sorts like the time.
#[must_use]
pub fn shown(instant: Timestamp) -> String {
    instant.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string()
}

/// Writes an instant as [`shown`] does.
///
/// # Errors
/// What the serializer fails with.
pub fn to_millis<S: Serializer>(instant: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&shown(*instant))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn entry() -> Entry {
        Entry {
            event: LogEvent::AgentStart,
            agent_type: "the-architect".to_owned(),
            agent_id: "arch-001".parse().unwrap(),
            description: "Design authentication system".to_owned(),
            instruction: Some("AgentId: arch-001\nDesign".to_owned()),
            output_summary: None,
            session_id: "dev-20250812-143022".parse().unwrap(),
            timestamp: "2025-08-12T14:00:00Z".parse().unwrap(),
        }
    }

    fn read(line: &str) -> Result<Entry, CorruptLine> {
        let entry = entry();
        Entry::from_line(line.as_bytes(), &entry.session_id, &entry.agent_id)
    }

    #[test]
    fn a_line_has_the_fields_in_this_order() {
        let line = concat!(
            r#"{"event":"agent_start","agent_type":"the-architect","agent_id":"arch-001","#,
            r#""description":"Design authentication system","instruction":"AgentId: arch-001\nDesign","#,
            r#""session_id":"dev-20250812-143022","timestamp":"2025-08-12T14:00:00.000Z"}"#
        );
        assert_eq!(entry().to_line(), line);
        assert_eq!(read(line), Ok(entry()));
    }

    #[test]
    fn a_short_line_takes_what_it_lacks_from_its_place() {
        let bare =
            Entry { agent_type: String::new(), description: "Entry 7".into(), instruction: None, ..entry() };
        for line in [
            r#"{"event":"agent_start","agent_id":"x1","description":"Entry 7","timestamp":"2025-08-12T14:00:00.000Z"}"#,
            r#"{"timestamp":"2025-08-12T16:00:00+02:00","more":{"a":[1]},"event":"agent_start","description":"Entry 7"}"#,
        ] {
            assert_eq!(read(line), Ok(bare.clone()), "{line}");
        }
    }

    #[test]
    fn an_invalid_line_is_corrupt() {
        for line in [
            "",
            "invalid json line",
            "null",
            "[]",
            "{}",
            r#"{"event":"agent_start"}"#,
            r#"{"event":"agent_stop","timestamp":"2025-08-12T14:00:00Z"}"#,
            r#"{"event":"agent_start","timestamp":"noon"}"#,
            r#"{"event":"agent_start","timestamp":"-000001-01-01T00:00:00Z"}"#,
            r#"{"event":"agent_start","timestamp":"9001-01-01T00:00:00Z"}"#,
            r#"{"event":"agent_start","timestamp":"2025-08-12T14:00:00Z","description":7}"#,
            r#"{"event":"agent_start","timestamp":"2025-08-12T14:00:00Z"} tail"#,
            "\u{feff}{}",
        ] {
            assert!(read(line).is_err(), "{line}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(
            complete: bool, kind in ".{0,40}", description in any::<String>(), text in any::<String>(),
            millis in 0i64..221_876_928_000_000,
        ) {
            let (event, instruction, output_summary) = if complete {
                (LogEvent::AgentComplete, None, Some(text))
            } else {
                (LogEvent::AgentStart, Some(text), None)
            };
            let timestamp = Timestamp::from_millisecond(millis).unwrap();
            let agent_type = kind;
            let entry =
                Entry { event, agent_type, description, instruction, output_summary, timestamp, ..entry() };
            let line = entry.to_line();
            prop_assert!(!line.contains('\n'));
            prop_assert_eq!(read(&line), Ok(entry));
        }

        #[test]
        fn no_line_panics(line in proptest::collection::vec(any::<u8>(), 0..200)) {
            let entry = entry();
            let _ = Entry::from_line(&line, &entry.session_id, &entry.agent_id);
        }
    }
}
