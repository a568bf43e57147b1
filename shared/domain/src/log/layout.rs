//! All logs as a folder of files, with one line per entry:
//!
//! ```text
//! {session}/{agent}.jsonl               one agent's log
//! {session}/main.jsonl                  the assistant's own
//! {session}/agent-instructions.jsonl    all agents of the session together, as their entries arrived
//! all-agent-instructions.jsonl          all sessions, one after the other
//! ```
//!
//! Only the first two are logs. The others repeat the same lines for programs that want them in this form.

use super::ids::{InstanceId, SessionId};

/// The name of the file with all sessions.
pub const ALL_INSTRUCTIONS: &str = "all-agent-instructions.jsonl";

/// The content of a file in the folder.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogFile {
    Log(SessionId, InstanceId),
    SessionInstructions(SessionId),
    AllInstructions,
}

#[must_use]
pub fn log_path(session: &SessionId, agent: &InstanceId) -> String {
    format!("{session}/{agent}.jsonl")
}

#[must_use]
pub fn instructions_path(session: &SessionId) -> String {
    format!("{session}/agent-instructions.jsonl")
}

/// The content of the file at `path`. The folder may be below other folders. `None` if the file does not belong to the layout.
#[must_use]
pub fn parse_path(path: &str) -> Option<LogFile> {
    let (folder, name) = path.rsplit_once(['/', '\\']).unwrap_or(("", path));
    if name == ALL_INSTRUCTIONS {
        return Some(LogFile::AllInstructions);
    }
    let session = folder.rsplit(['/', '\\']).next()?.parse().ok()?;
    match name.strip_suffix(".jsonl")? {
        "agent-instructions" => Some(LogFile::SessionInstructions(session)),
        agent => Some(LogFile::Log(session, agent.parse().ok()?)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_says_what_a_file_holds() {
        let session: SessionId = "dev-20250812-143022".parse().unwrap();
        let log = |agent: &str| Some(LogFile::Log(session.clone(), agent.parse().unwrap()));
        for (path, expected) in [
            ("dev-20250812-143022/arch-001.jsonl", log("arch-001")),
            ("dev-20250812-143022/Arch-001.jsonl", log("arch-001")),
            ("dev-20250812-143022/main.jsonl", log("main")),
            (".the-startup/dev-20250812-143022/arch-001.jsonl", log("arch-001")),
            (r"C:\x\dev-20250812-143022\arch-001.jsonl", log("arch-001")),
            (
                "./dev-20250812-143022/agent-instructions.jsonl",
                Some(LogFile::SessionInstructions(session.clone())),
            ),
            ("all-agent-instructions.jsonl", Some(LogFile::AllInstructions)),
            (".the-startup/all-agent-instructions.jsonl", Some(LogFile::AllInstructions)),
            ("arch-001.jsonl", None),
            ("dev-20250812-143022/arch-001.json", None),
            ("dev-20250812-143022/a.jsonl", None),
            ("dev-20250812-143022/", None),
            ("../arch-001.jsonl", None),
            (".the-startup/templates/PLAN.md", None),
            (".hidden/arch-001.jsonl", None),
            ("", None),
        ] {
            assert_eq!(parse_path(path), expected, "{path}");
        }
        assert_eq!(parse_path(&log_path(&session, &"a1".parse().unwrap())), log("a1"));
        assert_eq!(
            parse_path(&instructions_path(&session)),
            Some(LogFile::SessionInstructions(session.clone()))
        );
    }
}
