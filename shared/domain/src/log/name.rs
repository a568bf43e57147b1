//! Finds the agent instance of a prompt: the one that the prompt names, or a generated name.
//!
//! A prompt names its agent in a line `AgentId: arch-auth`. If it names none, or the name is not valid, it gets the
//! name `{agent type}-{YYYYMMDD-HHMMSS}-{hash}`. The time is that of the first prompt with this hash in the session. It
//! is stored, so the same prompt always gets the same name.

use jiff::Timestamp;
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::hex;

use super::ids::{InstanceId, MAX_INSTANCE, SessionId};

const MARK: &[u8] = b"agentid";

/// How many characters of a prompt are part of the hash in its name.
const EXCERPT: usize = 100;

/// The largest number that distinguishes names with the same hash.
pub const MAX_NUMBER: u32 = 999;

/// The instance that a prompt names. The first line with `AgentId:` decides. The first token after the colon must be a valid id and not a
/// reserved word. More text may follow. Markup around the token and punctuation behind it do not belong to it.
#[must_use]
pub fn in_prompt(prompt: &str) -> Option<InstanceId> {
    let rest = rest_of_line(prompt)?.trim_start_matches(|c: char| c.is_whitespace() || is_markup(c));
    let token = rest.split_whitespace().next()?;
    let token = token.trim_end_matches(|c: char| is_markup(c) || matches!(c, '.' | ',' | ';' | ':'));
    token.parse().ok().filter(|id: &InstanceId| !id.is_reserved())
}

/// Whether a character stands around a word that is emphasised, quoted or in brackets.
const fn is_markup(c: char) -> bool {
    matches!(
        c,
        '*' | '`' | '"' | '\'' | '(' | ')' | '[' | ']' | '{' | '}' | '<' | '>' | '\u{2018}'
            ..='\u{201f}' | '\u{ab}' | '\u{bb}'
    )
}

/// The rest of the line after the first `AgentId:`. Upper and lower case are the same, and it must be a separate word.
fn rest_of_line(prompt: &str) -> Option<&str> {
    let bytes = prompt.as_bytes();
    let starts = (0..bytes.len().saturating_sub(MARK.len() - 1))
        .filter(|&at| bytes[at..at + MARK.len()].eq_ignore_ascii_case(MARK));
    starts
        .filter(|&at| !prompt[..at].chars().next_back().is_some_and(|c| c.is_alphanumeric() || c == '_'))
        .find_map(|at| {
            // `**AgentId**: arch-001`
            let rest = prompt[at + MARK.len()..].trim_start_matches(['*', '`', '"']);
            rest.trim_start_matches([' ', '\t']).strip_prefix(':')
        })
        .map(|rest| rest.split(['\n', '\r']).next().unwrap_or_default())
}

/// The parts of a generated name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fallback {
    kind: String,
    /// Eight hexadecimal digits from the session, the agent type and the beginning of the prompt.
    pub hash: String,
    /// SHA-256 of the agent type and the whole prompt, in hexadecimal. It distinguishes prompts with the same hash.
    pub prompt: String,
}

impl Fallback {
    #[must_use]
    pub fn new(session: &SessionId, agent_type: &str, prompt: &str) -> Self {
        let excerpt: String = prompt.chars().take(EXCERPT).collect();
        let mut hash = hex(&Sha256::digest(format!("{session}:{agent_type}:{excerpt}")));
        hash.truncate(8);
        let whole =
            hex(&Sha256::new().chain_update(agent_type).chain_update([0]).chain_update(prompt).finalize());
        Self { kind: kind(agent_type), hash, prompt: whole }
    }

    /// The name of the first prompt with this hash (`number` 1), or of a later one (2 to [`MAX_NUMBER`]). After that, a
    /// part of `uuid` distinguishes the names.
    #[must_use]
    pub fn name(&self, first_seen: Timestamp, number: u32, uuid: Uuid) -> InstanceId {
        let suffix = match number {
            0 | 1 => String::new(),
            2..=MAX_NUMBER => format!("-{number}"),
            // The end of a UUIDv7 is random; its beginning is the time.
            _ => format!("-{}", &uuid.simple().to_string()[24..]),
        };
        let tail = format!("-{}-{}{suffix}", first_seen.strftime("%Y%m%d-%H%M%S"), self.hash);
        let kind: String = self.kind.chars().take(MAX_INSTANCE - tail.len()).collect();
        format!("{kind}{tail}").parse().expect("words joined by dashes, within the limit")
    }
}

/// An agent type in a form that an id can begin with.
fn kind(agent_type: &str) -> String {
    let word = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c.to_ascii_lowercase() } else { '-' };
    let kind: String = agent_type.chars().map(word).collect();
    let kind = kind.trim_start_matches(['-', '_']);
    if kind.is_empty() { "agent".to_owned() } else { kind.to_owned() }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn session() -> SessionId {
        "dev-20250812-143022".parse().unwrap()
    }

    fn at() -> Timestamp {
        "2025-08-12T14:30:22.999Z".parse().unwrap()
    }

    #[test]
    fn a_prompt_names_its_agent_in_a_line() {
        let longest = "a".repeat(64);
        for (prompt, named) in [
            ("AgentId: arch-001\nDesign authentication system", "arch-001"),
            ("agentid: dev-frontend\nImplement UI components", "dev-frontend"),
            ("AgentId  :   test-integration-auth   \nRun tests", "test-integration-auth"),
            ("AgentId: sec_audit-2024\nSecurity audit", "sec_audit-2024"),
            ("AGENTID:arch-001", "arch-001"),
            ("AgentId: Arch-DB\r\nDesign", "arch-db"),
            ("AgentId\t:\tarch-001\t\nx", "arch-001"),
            ("Design it.\n\n  AgentId: arch-001", "arch-001"),
            ("Context (AgentId: arch-001\nx", "arch-001"),
            ("\u{65e5}\u{672c} AgentId: arch-001", "arch-001"),
            ("MyAgentId: other\nAgentId: arch-001", "arch-001"),
            ("the AgentId of it\nAgentId: arch-001", "arch-001"),
            ("AgentId: a1", "a1"),
            (&format!("AgentId: {longest}\nLong task"), &longest),
            ("AgentId: arch-001.", "arch-001"),
            ("AgentId: arch-001 design auth", "arch-001"),
            ("AgentId: arch-001, then design", "arch-001"),
            ("AgentId: arch 001", "arch"),
            ("You are the architect (AgentId: arch-001).", "arch-001"),
            ("**AgentId: arch-001**; go on", "arch-001"),
            ("**AgentId:** arch-001", "arch-001"),
            ("**AgentId**: `arch-001`", "arch-001"),
            ("`AgentId`: \"arch-001\".", "arch-001"),
            ("AgentId: [arch-001]:", "arch-001"),
            ("AgentId: \u{201c}arch-001\u{201d} \u{2014} design", "arch-001"),
        ] {
            assert_eq!(in_prompt(prompt).map(|id| id.to_string()).as_deref(), Some(named), "{prompt:?}");
        }
    }

    #[test]
    fn a_prompt_without_an_agent_gets_a_generated_name() {
        for prompt in [
            "",
            "Design authentication system",
            "AgentId: invalid@id!\nWork on task",
            "AgentId: a\nShort",
            &format!("AgentId: {}\nLong", "a".repeat(65)),
            "AgentId: main\nReserved",
            "AgentId: GLOBAL",
            "agentid: System",
            "AgentId: agent-instructions",
            "AgentId: main.",
            "AgentId: `global`",
            "AgentId: a. Short",
            "AgentId: . arch-001",
            "AgentId: **\narch-001",
            "AgentId: arch@001 arch-001",
            "AgentId: arch-001! please",
            "AgentId:\narch-001",
            "AgentId: \r\narch-001",
            "AgentId:",
            "AgentId",
            "AgentId arch-001",
            "AgentId\n: arch-001",
            "AgentId: -arch\nAgentId: arch-001",
            "AgentId: arch-",
            "MyAgentId: arch-001",
            "my_agentid: arch-001",
            "\u{e9}AgentId: arch-001",
            "AgentId: ärch-001",
            "AgentId: ../arch",
            "AgentId: arch\x00001",
            r"AgentId: arch-auth\nDesign",
        ] {
            assert_eq!(in_prompt(prompt), None, "{prompt:?}");
        }
    }

    #[test]
    fn a_fallback_says_kind_time_and_hash() {
        let uuid = Uuid::from_u128(0x0193_8f2a_7c5e_7d3a_9b1f_4c6d_8e0a_2b4c);
        let name = |agent_type: &str, prompt: &str, number| {
            Fallback::new(&session(), agent_type, prompt).name(at(), number, uuid).to_string()
        };
        // The hash is that of "dev-20250812-143022:the-developer:Implement user authentication".
        let hash =
            &hex(&Sha256::digest("dev-20250812-143022:the-developer:Implement user authentication"))[..8];
        let first = name("the-developer", "Implement user authentication", 1);
        assert_eq!(first, format!("the-developer-20250812-143022-{hash}"));
        assert_eq!(name("the-developer", "Implement user authentication", 2), format!("{first}-2"));
        assert_eq!(name("the-developer", "Implement user authentication", 999), format!("{first}-999"));
        assert_eq!(name("the-developer", "Implement user authentication", 1000), format!("{first}-8e0a2b4c"));
        for (agent_type, begins) in [
            ("Explore", "explore-2025"),
            ("plugin:my agent", "plugin-my-agent-2025"),
            ("", "agent-2025"),
            ("-_-", "agent-2025"),
            ("日本", "agent-2025"),
            (&"x".repeat(200), &format!("{}-2025", "x".repeat(39))),
        ] {
            let name = name(agent_type, "p", 1);
            assert!(name.starts_with(begins), "{agent_type}: {name}");
        }
        assert_eq!(name(&"x".repeat(200), "p", 1).len(), 64);
        assert_eq!(name(&"x".repeat(200), "p", 999).len(), 64);
    }

    #[test]
    fn prompts_that_begin_alike_share_the_hash_and_are_two() {
        let fallback = |prompt: &str| Fallback::new(&session(), "the-developer", prompt);
        let beginning = "é".repeat(100);
        let (a, b) = (fallback(&format!("{beginning}a")), fallback(&format!("{beginning}b")));
        assert_eq!(a.hash, b.hash);
        assert_ne!(a.prompt, b.prompt);
        assert_ne!(fallback("a").hash, fallback("b").hash);
    }

    proptest! {
        #[test]
        fn generated_names_are_always_valid(
            agent_type in any::<String>(), prompt in any::<String>(), number in 0u32..1_100, uuid: u128,
            seconds in 0i64..253_402_207_200,
        ) {
            let fallback = Fallback::new(&session(), &agent_type, &prompt);
            let first_seen = Timestamp::from_second(seconds).unwrap();
            let name = fallback.name(first_seen, number, Uuid::from_u128(uuid));
            prop_assert_eq!(name.as_str().parse::<InstanceId>(), Ok(name.clone()));
            prop_assert!(!name.is_reserved());
        }

        #[test]
        fn what_a_prompt_names_is_valid(before in "(?s).{0,20}", blank in "[ \t]{0,2}", value in "(?s).{0,70}") {
            let prompt = format!("{before}AgentId{blank}:{value}");
            if let Some(name) = in_prompt(&prompt) {
                prop_assert_eq!(name.as_str().parse::<InstanceId>(), Ok(name.clone()));
                prop_assert!(!name.is_reserved());
            }
        }

        #[test]
        fn a_valid_name_is_found(name in "[A-Za-z0-9][A-Za-z0-9_-]{0,62}[A-Za-z0-9]", after in "(?s)(\n.{0,20})?") {
            let expected: InstanceId = name.parse().unwrap();
            let found = in_prompt(&format!("AgentId: {name}{after}"));
            prop_assert_eq!(found, Some(expected).filter(|id| !id.is_reserved()));
        }
    }
}
