//! Parses the command line.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use theme::answers::{DEFAULT_TOKENS, MAX_FINDINGS, MAX_TOKENS};
use theme::fix::Also;

use crate::project::{NoProjectId, ProjectId};

/// The maximum number of entries of `log --read`.
const MAX_LINES: u32 = 1000;

/// The longest lifetime of a key, in days.
const MAX_DAYS: u32 = 365;

/// A parsed command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// A page of help, or the version.
    Print(String),
    Hook(Hook),
    Read(Read),
    /// Sends the payloads in the spool. In the background, it prints nothing and retries for longer.
    Flush {
        background: bool,
    },
    Show(Document),
    Edit {
        document: Document,
        /// Begins with this text instead of the document's.
        from: Option<PathBuf>,
    },
    Export {
        dir: PathBuf,
        /// Replaces files that differ from the server's logs.
        force: bool,
    },
    Init {
        dir: PathBuf,
    },
    /// Prints what was done before, for a hook.
    Recall,
    Status,
    /// Stops everything that runs for the person's account.
    Stop {
        json: bool,
    },
    Start {
        /// What to do with the due times that came meanwhile, in the words of the server.
        missed: Option<&'static str>,
        json: bool,
    },
    Trust(Trust),
    Keys(Keys),
    Completions(Shell),
    /// What a person does with agents and actions.
    Person(Person),
    Docs(DocsArgs),
}

/// `keys`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Keys {
    List,
    Create {
        name: String,
        /// As they are on the command line, separated. If absent, the server gives all scopes.
        scopes: Option<Vec<String>>,
        days: Option<u32>,
    },
    Revoke {
        key_id: String,
    },
}

/// `trust`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trust {
    /// Trusts the project of this folder. If absent, of the current folder.
    Add(Option<PathBuf>),
    Revoke(Option<PathBuf>),
    List,
}

/// `log --assistant` and `log --user`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hook {
    pub event: HookEvent,
    pub session: Option<String>,
}

/// The event of a payload that does not name one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HookEvent {
    PreToolUse,
    PostToolUse,
}

/// `log --read`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Read {
    pub agent_id: String,
    /// 1 to 1000.
    pub lines: u32,
    /// If absent, the latest session that has the agent.
    pub session: Option<String>,
    pub format: Format,
    pub include_metadata: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Json,
    Text,
}

impl Format {
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Text => "text",
        }
    }
}

/// The context document of a command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Document {
    /// If absent, the configured project.
    pub project: Option<ProjectId>,
    /// If absent, the default workflow.
    pub workflow: Option<String>,
}

/// The shells that [`Command::Completions`] knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Shell {
    Bash,
    Zsh,
    Fish,
}

/// Why a command line is invalid.
#[derive(Debug, thiserror::Error)]
pub enum UsageError {
    #[error("exactly one mode required: --assistant, --user, or --read (or --recall, or --flush)")]
    Mode,
    #[error("--agent-id required when using --read")]
    NoAgentId,
    #[error("invalid agent-id format")]
    AgentId,
    #[error("--lines must be between 1 and {MAX_LINES}")]
    Lines,
    #[error("--format must be json or text")]
    Format,
    #[error("`{0}` needs one of {1}")]
    NoCommand(&'static str, &'static str),
    #[error("`keys create` needs a name for the key")]
    NoKeyName,
    #[error("`keys revoke` needs the id of a key; `lamplighter keys list` shows it")]
    NoKeyId,
    #[error("`{0}` is not the id of a key; it must be `key_` followed by 32 lower-case hexadecimal digits")]
    KeyId(String),
    #[error("--scopes must be read, write or admin, or several of them with commas, is `{0}`")]
    Scopes(String),
    #[error("--days must be between 1 and {MAX_DAYS}, is `{0}`")]
    Days(String),
    #[error("--missed must be run-newest, skip or each-schedule, is `{0}`")]
    Missed(String),
    #[error("`context {0}` needs a folder")]
    NoFolder(&'static str),
    #[error("`trust --list` takes no folder and no --revoke")]
    TrustList,
    #[error("{0}")]
    Project(#[from] NoProjectId),
    /// Of the parser.
    #[error("{0}")]
    Syntax(String),
}

const ABOUT: &str = "Talk to your agents, approve what they want to do, and see what they did.";

const SETTINGS: &str = "\
Settings: LAMPLIGHTER_URL, LAMPLIGHTER_API_KEY, LAMPLIGHTER_PROJECT, or url, api_key (api_key_file), project
in lamplighter.toml or ~/.config/lamplighter/config.toml. `lamplighter status` shows what is used.

An agent, an action or an asset is named by its id, by the beginning of its id, or by its name.
`lamplighter help COMMAND` shows the options of a command, with examples.";

#[derive(Parser)]
#[command(
    name = "lamplighter", version, propagate_version = true, about = ABOUT, after_help = SETTINGS,
    max_term_width = 100, subcommand_value_name = "COMMAND", subcommand_help_heading = "Commands"
)]
struct Line {
    #[command(subcommand)]
    command: Option<Top>,
}

#[derive(Subcommand)]
enum Top {
    #[command(flatten)]
    Person(Person),
    /// Stop everything of your account: runs, turns and schedules
    #[command(after_help = "Example:\n  lamplighter stop")]
    Stop(Json),
    /// Start your account again after a stop
    #[command(after_help = "Example:\n  lamplighter start --missed run-newest")]
    Start(StartArgs),
    /// Show the server, what waits to be sent, and which hooks were dropped
    #[command(after_help = "Example:\n  lamplighter status")]
    Status,
    /// List, make and revoke API keys
    #[command(after_help = "Example:\n  lamplighter keys create laptop --scopes read,write > laptop.key")]
    Keys(KeysArgs),
    /// Show and edit context documents, and export agent logs
    #[command(
        after_help = "Examples:\n  lamplighter context show\n  lamplighter context init .claude/agents"
    )]
    Context(ContextArgs),
    /// Living documents: pull and push their files, report commits, and bring them up to date
    #[command(after_help = "\
A living document describes the project, such as ARCHITECTURE.md. The platform stores it, and a model brings it up to date with commits.
Its file is at the top of the repository. LAMPLIGHTER_PROJECT, or `project` in lamplighter.toml, says which project it is.

Examples:
  lamplighter docs push ARCHITECTURE.md
  lamplighter docs hook install
  lamplighter docs sync --wait")]
    Docs(DocsArgs),
    /// Record hooks of a coding assistant, and read agent logs
    #[command(
        after_help = "Examples:\n  lamplighter log --read --agent-id arch-auth --lines 20 --format text\n  lamplighter log --flush"
    )]
    Log(LogArgs),
    /// Use the server and the key that lamplighter.toml of a folder names
    #[command(after_help = "Examples:\n  lamplighter trust\n  lamplighter trust --revoke old/checkout")]
    Trust(TrustArgs),
    /// Print completions for a shell
    #[command(
        after_help = "Example:\n  lamplighter completions bash > ~/.local/share/bash-completion/completions/lamplighter"
    )]
    Completions(CompletionsArgs),
}

/// The commands for people. They ask the server, except `theme` of a folder.
#[derive(Clone, Debug, PartialEq, Eq, Subcommand)]
pub enum Person {
    /// Talk to an agent
    #[command(after_help = "\
Without MESSAGE, the message is the standard input. On a terminal, it is a conversation: one line is one message, and Ctrl-D
ends it. Ctrl-C cancels the reply that is being written. While there is no agent, a conversation on a terminal makes the first one,
with its first action.

Examples:
  lamplighter chat Tell me a haiku every weekday at 7
  lamplighter chat Watcher What changed since Monday?
  lamplighter chat Watcher
  git diff | lamplighter chat Reviewer --new")]
    Chat(Chat),
    /// Show what waits for you
    #[command(after_help = "Examples:\n  lamplighter inbox\n  lamplighter inbox --json")]
    Inbox(Inbox),
    /// Show the ticket of an action, and approve it
    #[command(after_help = "\
Without a terminal, --hash is required: the hash of the ticket that you have seen. So a script approves only what it saw.

Examples:
  lamplighter approve \"Weekly report\"
  lamplighter approve act_01938f2a --hash 6b3a…")]
    Approve(Approve),
    /// Accept a proposal: save the asset, define the action, take over the change, or do the command
    #[command(after_help = "Example:\n  lamplighter accept prp_01938f2a7c5e")]
    Accept(Accept),
    /// Answer a run that waits: yes, no, happened or not-happened
    #[command(after_help = "\
`lamplighter inbox` shows what waits, with the command that answers it.

Examples:
  lamplighter answer run_01938f2a7c5e call_1 yes
  lamplighter answer run_01938f2a7c5e call_1 no --reason \"Ask me again on Monday\"")]
    Answer(Answer),
    /// List actions, or show one
    #[command(
        after_help = "Examples:\n  lamplighter actions --state scheduled\n  lamplighter actions \"Weekly report\""
    )]
    Actions(Actions),
    /// Run an action now, once
    #[command(after_help = "\
The action must be approved as it is, and the run costs what a run costs.

Example:
  lamplighter run \"Weekly report\"")]
    Run(NamedAction),
    /// Pause an action: its due times are skipped. A run that is under way goes on
    #[command(after_help = "Example:\n  lamplighter pause \"Weekly report\"")]
    Pause(NamedAction),
    /// Continue an action after a pause, or its run that waits for you
    #[command(after_help = "\
A run that asked a question gets the answer of --message. If a run waits for a yes to a call, the call is not made; `lamplighter answer`
answers it.

Examples:
  lamplighter resume \"Weekly report\"
  lamplighter resume \"Weekly report\" --message \"The week of Monday\"")]
    Resume(Resume),
    /// List runs, or show one
    #[command(after_help = "\
A time is `2026-11-25`, `2026-11-25 09:00`, `09:00` (today), or like `2026-11-25T09:00:00Z`. A day without a time is the whole day.

Examples:
  lamplighter runs --action \"Weekly report\" --state failed
  lamplighter runs --from 2026-11-01 --to 2026-11-07 --json")]
    Runs(Runs),
    /// Show what is due next
    #[command(after_help = "Example:\n  lamplighter due")]
    Due(Due),
    /// Explain what happened at a due time
    #[command(
        after_help = "Examples:\n  lamplighter why \"Weekly report\"\n  lamplighter why \"Weekly report\" --at \"2026-11-23 09:00\""
    )]
    Why(Why),
    /// List assets, or print the content of one
    #[command(
        after_help = "Examples:\n  lamplighter assets --agent Watcher\n  lamplighter assets \"Report of Monday\" > report.md"
    )]
    Assets(Assets),
    /// List agents, show one, or make one
    #[command(
        args_conflicts_with_subcommands = true,
        after_help = "Examples:\n  lamplighter agents\n  lamplighter agents Watcher\n  lamplighter agents new"
    )]
    Agents(Agents),
    /// Show the latest chat, or list the chats of an agent
    #[command(after_help = "Examples:\n  lamplighter chats latest\n  lamplighter chats list --agent Watcher")]
    Chats(Chats),
    /// List the proposals of an agent, or show one
    #[command(
        after_help = "Examples:\n  lamplighter proposals --agent Watcher\n  lamplighter proposals prp_01938f2a7c5e"
    )]
    Proposals(Proposals),
    /// Show what today and a month cost
    #[command(after_help = "Examples:\n  lamplighter usage\n  lamplighter usage --month 2026-10")]
    Usage(Usage),
    /// Search, read and correct what was learned from conversations
    #[command(after_help = "\
`memory doctor` ends with 1 if the search does not find what was just written.

Examples:
  lamplighter memory search \"where do I live\"
  lamplighter memory show
  lamplighter memory show week 2026-11-23")]
    Memory(Memory),
    /// List background jobs: what the platform did by itself
    #[command(
        after_help = "Examples:\n  lamplighter jobs\n  lamplighter jobs --state failed --kind memory_daily"
    )]
    Jobs(Jobs),
    /// Show what you are told; add and test channels, and see what was sent
    #[command(
        args_conflicts_with_subcommands = true,
        after_help = "\
A channel is named by its id, by the beginning of its id, or by a part of its target that no other channel has.

Examples:
  lamplighter notices
  lamplighter notices add email me@example.com
  lamplighter notices confirm me@example.com 1234 5678
  lamplighter notices snooze 2h"
    )]
    Notices(Notices),
    /// Check, search and map the theme of a folder or of a project
    #[command(after_help = "\
A folder is read on this machine, and nothing is sent. `default` or the id of a project asks the server. A folder with such a name is
written with its path: ./default.
Links, hidden files and node_modules of a folder are left out. `theme check` ends with 1 if it has found errors.

Examples:
  lamplighter theme check ./theme
  lamplighter theme fix ./theme
  lamplighter theme lookup ./theme \"make the header sticky\"
  lamplighter theme check prj_01938f2a7c5e7d3a9b1f4c6d8e0a2b4c")]
    Theme(Theme),
    /// Follow what happens, until Ctrl-C; or watch schedules that something else runs
    #[command(
        args_conflicts_with_subcommands = true,
        after_help = "\
A watched schedule is one that something else runs: cron, a CI job, another agent. It reports after each run, and you see which of its
due times ran.

Examples:
  lamplighter watch
  lamplighter watch --for 600
  lamplighter watch add \"Nightly backup\" --daily 03:00
  lamplighter watch wrap \"Nightly backup\" -- ./backup.sh --all
  lamplighter watch list"
    )]
    Watch(Watch),
}

/// `--json`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Args)]
pub struct Json {
    /// Print the answer of the API as one JSON document
    #[arg(long)]
    pub json: bool,
}

/// `--limit`
#[derive(Clone, Copy, Debug, PartialEq, Eq, Args)]
pub struct Limit {
    /// How many, 1 to 10,000
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub limit: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct Chat {
    /// The agent. May be left out if there is only one active agent; then all words are the message
    pub agent: Option<String>,
    /// What to say
    pub message: Vec<String>,
    /// Continue this chat [default: the latest chat of the agent]
    #[arg(long = "chat", value_name = "ID", conflicts_with = "new")]
    pub chat: Option<String>,
    /// Begin a new chat
    #[arg(long)]
    pub new: bool,
    /// Print the finished run as JSON, and nothing before it
    #[arg(long)]
    pub json: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct Inbox {
    #[command(flatten)]
    pub json: Json,
    #[command(flatten)]
    pub limit: Limit,
}

#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct Approve {
    /// The action
    pub action: String,
    /// Approve only if the action still has this hash, and do not ask
    #[arg(long, value_name = "HASH")]
    pub hash: Option<String>,
    #[command(flatten)]
    pub json: Json,
}

#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct Accept {
    /// The id of the proposal, or its beginning
    pub proposal: String,
    #[command(flatten)]
    pub json: Json,
}

#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct Answer {
    /// The run: its id, or the beginning of its id
    pub run: String,
    /// The id of the call
    pub call: String,
    /// The answer. `happened` and `not-happened` are for a call whose result was lost
    pub answer: CallAnswer,
    /// Why not
    #[arg(long)]
    pub reason: Option<String>,
    /// Only if the call still has this hash
    #[arg(long, value_name = "HASH")]
    pub hash: Option<String>,
    #[command(flatten)]
    pub json: Json,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CallAnswer {
    Yes,
    No,
    Happened,
    NotHappened,
}

#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct Actions {
    /// Show this action
    #[arg(value_name = "ACTION", conflicts_with_all = ["state", "agent"])]
    pub action: Option<String>,
    /// Only actions in this state: defined, scheduled, paused, in_progress, completed, failed, needs_approval or dismissed
    #[arg(long)]
    pub state: Option<String>,
    /// Only actions of this agent
    #[arg(long)]
    pub agent: Option<String>,
    #[command(flatten)]
    pub json: Json,
    #[command(flatten)]
    pub limit: Limit,
}

#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct NamedAction {
    /// The action
    pub action: String,
    #[command(flatten)]
    pub json: Json,
}

#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct Resume {
    /// The action
    pub action: String,
    /// The answer for the run that waits
    #[arg(long, value_name = "TEXT")]
    pub message: Option<String>,
    #[command(flatten)]
    pub json: Json,
}

#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct Runs {
    /// Show this run
    #[arg(value_name = "RUN", conflicts_with_all = ["action", "agent", "state", "kind", "from", "to"])]
    pub run: Option<String>,
    /// Only runs of this action
    #[arg(long)]
    pub action: Option<String>,
    /// Only runs of this agent
    #[arg(long)]
    pub agent: Option<String>,
    /// Only runs in this state, such as succeeded, failed, waiting or running
    #[arg(long)]
    pub state: Option<String>,
    /// Only this kind: scheduled, manual, catch_up, rehearsal, chat or setup [default: all but chat and setup]
    #[arg(long)]
    pub kind: Option<String>,
    /// Only runs at this time or later
    #[arg(long, value_name = "TIME")]
    pub from: Option<String>,
    /// Only runs before this time
    #[arg(long, value_name = "TIME")]
    pub to: Option<String>,
    #[command(flatten)]
    pub json: Json,
    #[command(flatten)]
    pub limit: Limit,
}

#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct Due {
    #[command(flatten)]
    pub json: Json,
    #[command(flatten)]
    pub limit: Limit,
}

#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct Why {
    /// The action
    pub action: String,
    /// The due time, to the minute [default: the newest one]
    #[arg(long, value_name = "TIME")]
    pub at: Option<String>,
    #[command(flatten)]
    pub json: Json,
}

#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct Assets {
    /// Print the content of this asset
    #[arg(value_name = "ASSET", conflicts_with = "agent")]
    pub asset: Option<String>,
    /// Only assets of this agent
    #[arg(long)]
    pub agent: Option<String>,
    #[command(flatten)]
    pub json: Json,
    #[command(flatten)]
    pub limit: Limit,
}

#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct Agents {
    /// Show this agent
    #[arg(value_name = "AGENT")]
    pub agent: Option<String>,
    #[command(flatten)]
    pub json: Json,
    #[command(flatten)]
    pub limit: Limit,
    #[command(subcommand)]
    pub command: Option<AgentsCommand>,
}

#[derive(Clone, Debug, PartialEq, Eq, Subcommand)]
pub enum AgentsCommand {
    /// Make an agent by talking, or at once with --name and --goal
    #[command(
        after_help = "Examples:\n  lamplighter agents new\n  lamplighter agents new --name Watcher --goal \"Watch three competitors\""
    )]
    New(NewAgent),
}

#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct NewAgent {
    /// Its name
    #[arg(long, requires = "goal")]
    pub name: Option<String>,
    /// What it is for
    #[arg(long, requires = "name")]
    pub goal: Option<String>,
    #[command(flatten)]
    pub json: Json,
}

#[derive(Clone, Debug, PartialEq, Eq, Args)]
#[command(subcommand_required = true)]
pub struct Chats {
    #[command(subcommand)]
    pub command: ChatsCommand,
}

#[derive(Clone, Debug, PartialEq, Eq, Subcommand)]
pub enum ChatsCommand {
    /// Print the chat with the newest message
    #[command(after_help = "Example:\n  lamplighter chats latest --agent Watcher --json")]
    Latest {
        /// Only chats of this agent
        #[arg(long)]
        agent: Option<String>,
        #[command(flatten)]
        json: Json,
        #[command(flatten)]
        limit: Limit,
    },
    /// List the chats of an agent
    #[command(after_help = "Example:\n  lamplighter chats list --agent Watcher")]
    List {
        /// The agent. May be left out if there is only one
        #[arg(long)]
        agent: Option<String>,
        #[command(flatten)]
        json: Json,
        #[command(flatten)]
        limit: Limit,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct Proposals {
    /// Show this proposal: its id, or the beginning of its id
    #[arg(value_name = "PROPOSAL")]
    pub proposal: Option<String>,
    /// The agent. May be left out if there is only one
    #[arg(long, conflicts_with = "proposal")]
    pub agent: Option<String>,
    #[command(flatten)]
    pub json: Json,
    #[command(flatten)]
    pub limit: Limit,
}

#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct Usage {
    /// The month, such as 2026-10 [default: this one]
    #[arg(long, value_name = "MONTH")]
    pub month: Option<String>,
    #[command(flatten)]
    pub json: Json,
}

#[derive(Clone, Debug, PartialEq, Eq, Args)]
#[command(subcommand_required = true)]
pub struct Memory {
    #[command(subcommand)]
    pub command: MemoryCommand,
}

#[derive(Clone, Debug, PartialEq, Eq, Subcommand)]
pub enum MemoryCommand {
    /// Find cards, facts and messages. It costs nothing
    #[command(
        after_help = "Examples:\n  lamplighter memory search where do I live\n  lamplighter memory search lease --depth raw --limit 20"
    )]
    Search {
        /// A question or a few words
        #[arg(required = true)]
        query: Vec<String>,
        /// How deep to look: cards, also facts (memory), also messages (raw) [default: stops where there is a good hit]
        #[arg(long)]
        depth: Option<SearchDepth>,
        /// Only this namespace
        #[arg(long, value_name = "NAME")]
        namespace: Option<String>,
        /// How many hits, 1 to 100
        #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=100))]
        limit: u32,
        #[command(flatten)]
        json: Json,
    },
    /// Print a part of the memory, as Markdown
    #[command(
        after_help = "Examples:\n  lamplighter memory show\n  lamplighter memory show 2026-11-26\n  lamplighter memory show archive 2026"
    )]
    Show {
        /// days, a day such as 2026-11-26, week, long-term, cards or archive [default: long-term]
        what: Option<String>,
        /// Of a week: its Monday. Of cards: the day [default: today]. Of the archive: the year
        when: Option<String>,
        #[command(flatten)]
        json: Json,
    },
    /// Replace a fact by what is true. The old one stays as history
    #[command(
        after_help = "Example:\n  lamplighter memory correct fct_01938f2a7c5e7d3a9b1f4c6d8e0a2b4c \"The user lives in Lisbon.\""
    )]
    Correct {
        /// The id of the fact
        #[arg(value_name = "FACT_ID")]
        fact: String,
        /// What is true, in one sentence
        text: String,
        #[command(flatten)]
        json: Json,
    },
    /// Delete a fact everywhere
    #[command(
        after_help = "Example:\n  lamplighter memory forget fct_01938f2a7c5e7d3a9b1f4c6d8e0a2b4c --yes"
    )]
    Forget {
        /// The id of the fact
        #[arg(value_name = "FACT_ID")]
        fact: String,
        /// Do not ask
        #[arg(long)]
        yes: bool,
        #[command(flatten)]
        json: Json,
    },
    /// Use a fact of an outside session like any other
    #[command(after_help = "Example:\n  lamplighter memory confirm fct_01938f2a7c5e7d3a9b1f4c6d8e0a2b4c")]
    Confirm {
        /// The id of the fact
        #[arg(value_name = "FACT_ID")]
        fact: String,
        #[command(flatten)]
        json: Json,
    },
    /// Learn now from the conversations since the last time. A model is asked about each
    #[command(after_help = "Example:\n  lamplighter memory sync")]
    Sync {
        #[command(flatten)]
        json: Json,
    },
    /// Take what is not archived into the long-term memory now, with one call of a model
    #[command(after_help = "Example:\n  lamplighter memory tidy")]
    Tidy {
        #[command(flatten)]
        json: Json,
    },
    /// List the clean-ups, newest first
    #[command(after_help = "Example:\n  lamplighter memory tidies --limit 3")]
    Tidies {
        /// How many, 1 to 50
        #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=50))]
        limit: u32,
        #[command(flatten)]
        json: Json,
    },
    /// Undo a clean-up
    #[command(after_help = "Example:\n  lamplighter memory rollback tdy_01938f2a")]
    Rollback {
        /// The id of the clean-up, or its beginning
        #[arg(value_name = "TIDY_ID")]
        tidy: String,
        #[command(flatten)]
        json: Json,
    },
    /// Change the long-term memory in $VISUAL or $EDITOR
    #[command(after_help = "Example:\n  lamplighter memory edit --from notes.md")]
    Edit {
        /// Begin with the text of this file
        #[arg(long, value_name = "FILE")]
        from: Option<PathBuf>,
    },
    /// Write everything as a zip of files
    #[command(after_help = "Example:\n  lamplighter memory export memory.zip")]
    Export {
        /// The zip
        file: PathBuf,
        /// Replace it if it exists
        #[arg(long)]
        force: bool,
    },
    /// Bring in the memory, sessions, cards and jobs of OpenClaw, and wait until they are there
    #[command(
        after_help = "Examples:\n  lamplighter memory import ~/.openclaw\n  lamplighter memory import memory.zip"
    )]
    Import {
        /// A folder, or a zip of one
        #[arg(value_name = "FOLDER")]
        from: PathBuf,
        #[command(flatten)]
        json: Json,
    },
    /// Check that the search finds what was just written, and show the last failure and facts that are twice or never used
    #[command(after_help = "Example:\n  lamplighter memory doctor")]
    Doctor {
        #[command(flatten)]
        json: Json,
    },
}

/// Where a search of the memory may look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SearchDepth {
    Cards,
    Memory,
    Raw,
}

#[derive(Clone, Debug, PartialEq, Eq, Args)]
#[command(subcommand_required = true)]
pub struct DocsArgs {
    #[command(subcommand)]
    pub command: DocsCommand,
}

#[derive(Clone, Debug, PartialEq, Eq, Subcommand)]
pub enum DocsCommand {
    /// List the documents: versions, commits that wait, and how their files compare
    #[command(after_help = "Example:\n  lamplighter docs status")]
    Status {
        #[command(flatten)]
        json: Json,
    },
    /// Take over what has changed there. A file that has changed here is not overwritten
    #[command(after_help = "\
If a document has changed on both sides, the texts are written to files, nothing is overwritten, and it ends with 1.

Examples:
  lamplighter docs pull
  lamplighter docs pull ARCHITECTURE.md")]
    Pull {
        /// The documents [default: all]
        #[arg(value_name = "NAME")]
        names: Vec<String>,
    },
    /// Store what has changed here. A document that has changed there is not overwritten
    #[command(after_help = "\
A file becomes a new document only if it is named.

Examples:
  lamplighter docs push
  lamplighter docs push ARCHITECTURE.md
  lamplighter docs push --merged ARCHITECTURE.md")]
    Push {
        /// The documents [default: all that are stored]
        #[arg(value_name = "NAME")]
        names: Vec<String>,
        /// After a conflict: the files hold both texts now
        #[arg(long, requires = "names")]
        merged: bool,
    },
    /// Bring the documents up to date with the commits that wait. A model is asked
    #[command(after_help = "Example:\n  lamplighter docs sync --wait")]
    Sync {
        /// Wait until it has ended, and pull what has changed. With --json, nothing is pulled
        #[arg(long)]
        wait: bool,
        #[command(flatten)]
        json: Json,
    },
    /// Report commits, which wait for a synchronisation
    #[command(after_help = "Examples:\n  lamplighter docs commit\n  lamplighter docs commit v1.0..main")]
    Commit {
        /// Commits, or ranges such as v1.0..main [default: HEAD]
        #[arg(value_name = "REV")]
        revisions: Vec<String>,
        /// For the hooks of git
        #[arg(long, hide = true, conflicts_with_all = ["revisions", "json"])]
        hook: bool,
        #[command(flatten)]
        json: Json,
    },
    /// Report commits by themselves, with hooks of git
    #[command(after_help = "Example:\n  lamplighter docs hook install")]
    Hook {
        #[command(subcommand)]
        command: DocsHook,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Subcommand)]
pub enum DocsHook {
    /// Add the hooks to this repository. Other hooks are kept
    #[command(after_help = "Example:\n  lamplighter docs hook install")]
    Install,
    /// Remove the hooks. Other hooks are kept
    #[command(after_help = "Example:\n  lamplighter docs hook remove")]
    Remove,
    /// Show the hooks, and what they have reported
    #[command(after_help = "Example:\n  lamplighter docs hook show")]
    Show,
}

#[derive(Clone, Debug, PartialEq, Eq, Args)]
#[command(subcommand_required = true)]
pub struct Theme {
    #[command(subcommand)]
    pub command: ThemeCommand,
}

/// How `theme check` writes what it has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CheckFormat {
    Text,
    Json,
    Sarif,
    Github,
}

/// How `theme fix` writes what it mends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FixFormat {
    Text,
    Json,
}

#[derive(Clone, Debug, PartialEq, Eq, Subcommand)]
pub enum ThemeCommand {
    /// List what is wrong with a theme, or what a change adds. Ends with 1 if there are errors
    #[command(after_help = "\
First it says whether Shopify would take the theme. With --overlay or --deleted, only what this change would add is listed. Nothing is
changed. `sarif` is SARIF 2.1.0, and `github` writes the annotations of GitHub Actions: their paths begin where the command runs.

Examples:
  lamplighter theme check ./theme
  lamplighter theme check ./theme --limit 0
  lamplighter theme check ./theme --format sarif > theme.sarif
  lamplighter theme check ./theme --overlay ./changed --deleted snippets/old.liquid
  lamplighter theme check default")]
    Check {
        #[command(flatten)]
        of: ThemeOf,
        /// A folder with changed and new files
        #[arg(long, value_name = "FOLDER")]
        overlay: Option<PathBuf>,
        /// The path of a file that the change deletes. Can be repeated
        #[arg(long, value_name = "FILE")]
        deleted: Vec<String>,
        /// How the findings are written [default: text]
        #[arg(long, value_name = "FORMAT", conflicts_with = "json")]
        format: Option<CheckFormat>,
        /// How many findings are listed, the worst first. 0 lists all. A server lists at most 1,000
        #[arg(long, value_name = "N", default_value_t = MAX_FINDINGS as u32)]
        limit: u32,
    },
    /// Write what strict Liquid refuses so that Shopify takes it. Shows a diff, and writes with --write
    #[command(after_help = "\
The Liquid of a theme is mended, and the Liquid in its settings. The page stays as it is shown today. With --as-meant, places whose meaning is
clear are written as they were meant, and it says what the page shows then. Each place has a reason. What has no safe rewriting is listed with
the choices. Bytes outside of the places stay. For a project, the server mends, and --write changes the stored files.

The output is a unified diff with comments, for `git apply` or `patch -p1`. It ends with 1 if something is to be mended, and with --write if
something is still refused.

Examples:
  lamplighter theme fix ./theme
  lamplighter theme fix ./theme --as-meant --write
  lamplighter theme fix ./theme --also ValidJSON --also DuplicateKey
  lamplighter theme fix default snippets/price.liquid --write
  lamplighter theme fix ./theme sections/tea.liquid --format json")]
    Fix {
        #[command(flatten)]
        of: ThemeOf,
        /// Only these files, with their paths in the theme
        #[arg(value_name = "FILE")]
        files: Vec<String>,
        /// Write what was meant, where that is clear
        #[arg(long)]
        as_meant: bool,
        /// Mend what Shopify accepts, too, if it has one right mend: a finding of `theme check`. Can be repeated
        #[arg(long, value_name = "CHECK", value_parser = Also::NAMES)]
        also: Vec<String>,
        /// Write the files. Without it, nothing is changed
        #[arg(long)]
        write: bool,
        /// How the answer is written [default: text]
        #[arg(long, value_name = "FORMAT", conflicts_with = "json")]
        format: Option<FixFormat>,
    },
    /// Find the files and lines that a request is about
    #[command(after_help = "Example:\n  lamplighter theme lookup ./theme \"make the header sticky\"")]
    Lookup {
        #[command(flatten)]
        of: ThemeOf,
        /// What is to be done
        request: String,
        /// The file that is open in the editor
        #[arg(long, value_name = "FILE")]
        active: Option<String>,
    },
    /// Outline a theme within a token budget
    #[command(
        after_help = "Example:\n  lamplighter theme map ./theme --request \"cart drawer\" --tokens 4000"
    )]
    Map {
        #[command(flatten)]
        of: ThemeOf,
        /// What the outline is for
        #[arg(long)]
        request: Option<String>,
        /// The file that is open in the editor
        #[arg(long, value_name = "FILE")]
        active: Option<String>,
        /// The largest size, in tokens
        #[arg(long, value_name = "N", default_value_t = DEFAULT_TOKENS as u32, value_parser = clap::value_parser!(u32).range(1..=MAX_TOKENS as i64))]
        tokens: u32,
    },
    /// Show what a file needs and what needs it; without --file, what is unused or missing
    #[command(
        after_help = "Examples:\n  lamplighter theme graph ./theme\n  lamplighter theme graph ./theme --file snippets/price.liquid"
    )]
    Graph {
        #[command(flatten)]
        of: ThemeOf,
        /// The file
        #[arg(long, value_name = "FILE")]
        file: Option<String>,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct ThemeOf {
    /// A folder, such as ./theme, or the id of a project, or `default`
    pub theme: PathBuf,
    #[command(flatten)]
    pub json: Json,
}

#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct Jobs {
    /// Only jobs of this kind, such as memory_daily, memory_weekly, account_export or theme_index
    #[arg(long)]
    pub kind: Option<String>,
    /// Only jobs in this state: running, succeeded, failed or skipped
    #[arg(long)]
    pub state: Option<String>,
    #[command(flatten)]
    pub json: Json,
    #[command(flatten)]
    pub limit: Limit,
}

#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct Notices {
    #[command(flatten)]
    pub json: Json,
    #[command(subcommand)]
    pub command: Option<NoticesCommand>,
}

#[derive(Clone, Debug, PartialEq, Eq, Subcommand)]
pub enum NoticesCommand {
    /// List the channels, oldest first
    #[command(after_help = "Example:\n  lamplighter notices channels")]
    Channels(Json),
    /// Add a channel: email, webhook, slack, discord, telegram, ntfy, gotify or smtp
    #[command(after_help = "\
Examples:
  lamplighter notices add email me@example.com
  lamplighter notices add slack < address.txt")]
    Add(AddChannel),
    /// Confirm an e-mail address with the code that was sent there
    #[command(after_help = "Example:\n  lamplighter notices confirm me@example.com 1234 5678")]
    Confirm {
        /// Its id, the beginning of its id, or a part of its target
        channel: String,
        /// The eight digits of the e-mail
        #[arg(required = true, num_args = 1..=8)]
        code: Vec<String>,
        #[command(flatten)]
        json: Json,
    },
    /// Send another code to an e-mail address. The one before it no longer works
    #[command(after_help = "Example:\n  lamplighter notices code me@example.com")]
    Code(NamedChannel),
    /// Send a test to a channel
    #[command(after_help = "Example:\n  lamplighter notices test me@example.com")]
    Test(NamedChannel),
    /// Give a webhook a new secret. For 24 hours, the old one signs, too
    #[command(after_help = "Example:\n  lamplighter notices rotate hooks.example.com")]
    Rotate(NamedChannel),
    /// Send nothing to a channel until it is resumed
    #[command(after_help = "Example:\n  lamplighter notices pause me@example.com")]
    Pause(NamedChannel),
    /// Send notices to a channel again, also to one that was suspended
    #[command(after_help = "Example:\n  lamplighter notices resume me@example.com")]
    Resume(NamedChannel),
    /// Delete a channel. What waits to be sent to it is given up
    #[command(after_help = "Example:\n  lamplighter notices delete me@example.com --yes")]
    Delete {
        /// Its id, the beginning of its id, or a part of its target
        channel: String,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
    /// List what was sent, newest first
    #[command(after_help = "Example:\n  lamplighter notices deliveries --state undelivered")]
    Deliveries(Deliveries),
    /// Try an undelivered delivery again
    #[command(after_help = "Example:\n  lamplighter notices retry dlv_01938f2a")]
    Retry {
        /// The id of the delivery, or its beginning
        delivery: String,
        #[command(flatten)]
        json: Json,
    },
    /// Send nothing before a time
    #[command(after_help = "\
Examples:
  lamplighter notices snooze 2h
  lamplighter notices snooze until 2026-12-01 09:00
  lamplighter notices snooze off")]
    Snooze {
        /// A duration such as 30m, 2h or 1d, `until` and a time, or `off`
        #[arg(required = true, num_args = 1..=3, value_name = "WHEN")]
        when: Vec<String>,
        #[command(flatten)]
        json: Json,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct NamedChannel {
    /// Its id, the beginning of its id, or a part of its target
    pub channel: String,
    #[command(flatten)]
    pub json: Json,
}

#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct AddChannel {
    #[command(subcommand)]
    pub channel: NewChannel,
}

#[derive(Clone, Debug, PartialEq, Eq, Subcommand)]
pub enum NewChannel {
    /// An e-mail address. It must be confirmed with the code that is sent there
    #[command(after_help = "Example:\n  lamplighter notices add email me@example.com")]
    Email {
        /// One address, without a name
        address: String,
        #[command(flatten)]
        json: Json,
    },
    /// A receiver of signed JSON. Its secret is shown once
    #[command(
        after_help = "Example:\n  lamplighter notices add webhook https://example.com/hooks/lamplighter"
    )]
    Webhook {
        /// An https address of a public host
        url: String,
        #[command(flatten)]
        json: Json,
    },
    /// A channel of Slack
    #[command(after_help = "Example:\n  lamplighter notices add slack < address.txt")]
    Slack {
        /// The address of the incoming webhook. It is a secret [default: asked for, or the standard input]
        url: Option<String>,
        #[command(flatten)]
        json: Json,
    },
    /// A channel of Discord
    #[command(after_help = "Example:\n  lamplighter notices add discord < address.txt")]
    Discord {
        /// The address of the webhook. It is a secret [default: asked for, or the standard input]
        url: Option<String>,
        #[command(flatten)]
        json: Json,
    },
    /// A chat of Telegram. The token of the bot is asked for, or read from the standard input
    #[command(after_help = "Example:\n  lamplighter notices add telegram @my_channel < token.txt")]
    Telegram {
        /// A number, or the name of a channel with @
        #[arg(allow_negative_numbers = true)]
        chat_id: String,
        #[command(flatten)]
        json: Json,
    },
    /// A topic of ntfy
    #[command(after_help = "\
Examples:
  lamplighter notices add ntfy < topic.txt
  lamplighter notices add ntfy alerts --server https://ntfy.example.com --token < token.txt")]
    Ntfy {
        /// Whoever knows it may read it, so it is a secret [default: asked for, or the standard input]
        topic: Option<String>,
        /// The address of the server [default: that of ntfy.sh]
        #[arg(long, value_name = "URL")]
        server: Option<String>,
        /// With an access token, which is asked for, or read from the standard input
        #[arg(long, requires = "topic")]
        token: bool,
        #[command(flatten)]
        json: Json,
    },
    /// A server of Gotify. The token of the application is asked for, or read from the standard input
    #[command(
        after_help = "Example:\n  lamplighter notices add gotify https://gotify.example.com < token.txt"
    )]
    Gotify {
        /// The address of the server
        url: String,
        #[command(flatten)]
        json: Json,
    },
    /// E-mails through a mail server. With a user, the password is asked for, or read from the standard input
    #[command(after_help = "\
Example:
  lamplighter notices add smtp smtp.example.com --user me --from me@example.com --to me@example.com < password.txt")]
    Smtp {
        /// The name of the mail server
        host: String,
        /// The address that is told. It must be confirmed
        #[arg(long, value_name = "ADDRESS")]
        to: String,
        /// The sender, which the server must accept
        #[arg(long, value_name = "ADDRESS")]
        from: String,
        /// tls, starttls, or none to a host that the operator allows [default: tls]
        #[arg(long)]
        security: Option<String>,
        /// [default: the usual one: 465 with tls, 587 with starttls, 25 with none]
        #[arg(long)]
        port: Option<u16>,
        /// With whom the platform logs in
        #[arg(long)]
        user: Option<String>,
        #[command(flatten)]
        json: Json,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct Deliveries {
    /// Only deliveries in this state: waiting, delivered or undelivered
    #[arg(long)]
    pub state: Option<String>,
    #[command(flatten)]
    pub json: Json,
    #[command(flatten)]
    pub limit: Limit,
}

#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct Watch {
    /// End after this many seconds
    #[arg(long = "for", value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=31_536_000))]
    pub seconds: Option<u64>,
    /// Print each change as a JSON object on a line of its own
    #[arg(long)]
    pub json: bool,
    #[command(subcommand)]
    pub command: Option<WatchCommand>,
}

#[derive(Clone, Debug, PartialEq, Eq, Subcommand)]
pub enum WatchCommand {
    /// List watched schedules, with what became of the newest due time
    #[command(after_help = "Example:\n  lamplighter watch list")]
    List(Json),
    /// Declare when something else runs
    #[command(after_help = "\
Examples:
  lamplighter watch add \"Nightly backup\" --daily 03:00
  lamplighter watch add Mirror --cron \"*/15 * * * *\" --grace 5 --timezone Europe/Berlin")]
    Add(AddWatched),
    /// Show a watched schedule, and what became of its due times
    #[command(after_help = "Example:\n  lamplighter watch show \"Nightly backup\"")]
    Show(ShowWatched),
    /// Expect nothing of a watched schedule until it is resumed
    #[command(after_help = "Example:\n  lamplighter watch pause \"Nightly backup\"")]
    Pause(NamedWatched),
    /// Expect runs of a watched schedule again
    #[command(after_help = "Example:\n  lamplighter watch resume \"Nightly backup\"")]
    Resume(NamedWatched),
    /// Delete a watched schedule and all its reports
    #[command(after_help = "Example:\n  lamplighter watch delete \"Nightly backup\" --yes")]
    Delete {
        /// Its name, its id, or the beginning of its id
        watched: String,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
    /// Report a run of a watched schedule
    #[command(after_help = "\
Examples:
  lamplighter watch report \"Nightly backup\" --summary \"412 files\"
  lamplighter watch report \"Nightly backup\" --failed")]
    Report(ReportWatched),
    /// Run a command, report how it ended, and end with its exit code
    #[command(after_help = "\
The command's input, output and signals are its own. Its exit code is passed on: 127 if there is no such command, and 128 plus the
number of the signal that has ended it. If the report fails, the exit code stays the same. The report takes 10 seconds at most.

Example:
  lamplighter watch wrap \"Nightly backup\" -- ./backup.sh --all")]
    Wrap(Wrap),
}

#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct NamedWatched {
    /// Its name, its id, or the beginning of its id
    pub watched: String,
    #[command(flatten)]
    pub json: Json,
}

#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct AddWatched {
    /// A name, 1 to 100 characters
    pub name: String,
    #[command(flatten)]
    pub when: WatchedWhen,
    /// The IANA name of the time zone [default: the account's]
    #[arg(long, value_name = "ZONE")]
    pub timezone: Option<String>,
    /// How many minutes after a due time its report is not yet late, 1 to 1,440 [default: 30]
    #[arg(long, value_name = "MINUTES", value_parser = clap::value_parser!(u16).range(1..=1_440))]
    pub grace: Option<u16>,
    /// A success must have a summary or a link
    #[arg(long)]
    pub expects_result: bool,
    #[command(flatten)]
    pub json: Json,
}

/// When it runs.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
#[group(required = true, multiple = false)]
pub struct WatchedWhen {
    /// Every day at this time, such as 03:00
    #[arg(long, value_name = "TIME")]
    pub daily: Option<String>,
    /// Minute, hour, day of month, month and day of week
    #[arg(long, value_name = "CRON")]
    pub cron: Option<String>,
    /// Again and again after this time, such as 15m, 1h 30m or 24h; 1d is a calendar day
    #[arg(long, value_name = "DURATION")]
    pub every: Option<String>,
    /// Once, such as 2026-12-01T09:00
    #[arg(long, value_name = "TIME")]
    pub at: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct ShowWatched {
    /// Its name, its id, or the beginning of its id
    pub watched: String,
    /// Due times after this time, such as 2026-11-25T09:00:00Z [default: seven days ago]
    #[arg(long, value_name = "TIME")]
    pub from: Option<String>,
    #[command(flatten)]
    pub json: Json,
}

#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct ReportWatched {
    /// Its name, its id, or the beginning of its id
    pub watched: String,
    /// It failed [default: it succeeded]
    #[arg(long)]
    pub failed: bool,
    /// What came of it, at most 500 bytes
    #[arg(long, value_name = "TEXT")]
    pub summary: Option<String>,
    /// Where its result is: an https address
    #[arg(long, value_name = "URL")]
    pub link: Option<String>,
    #[command(flatten)]
    pub json: Json,
}

#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct Wrap {
    /// The name or the id of the watched schedule
    pub name: OsString,
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

#[derive(Args)]
struct StartArgs {
    /// What becomes of the due times that came meanwhile: run-newest, skip or each-schedule
    #[arg(long, value_name = "ANSWER")]
    missed: Option<String>,
    #[command(flatten)]
    json: Json,
}

#[derive(Args)]
struct KeysArgs {
    #[command(subcommand)]
    command: Option<KeysCommand>,
}

#[derive(Subcommand)]
enum KeysCommand {
    /// Show the active API keys: id, scopes, last use
    #[command(after_help = "Example:\n  lamplighter keys list")]
    List,
    /// Make an API key, and print it once
    #[command(
        after_help = "Example:\n  lamplighter keys create laptop --scopes read,write --days 90 > laptop.key"
    )]
    Create {
        /// A name for the key
        name: Option<String>,
        /// What it may do: read, write, admin, or several with commas [default: all]
        #[arg(long)]
        scopes: Option<String>,
        /// How long it is valid, 1 to 365 days [default: until it is revoked]
        #[arg(long, value_name = "N", allow_hyphen_values = true)]
        days: Option<String>,
    },
    /// End an API key
    #[command(after_help = "Example:\n  lamplighter keys revoke key_0123456789abcdef0123456789abcdef")]
    Revoke {
        /// The id of the key
        key_id: Option<String>,
    },
}

#[derive(Args)]
struct ContextArgs {
    #[command(subcommand)]
    command: Option<ContextCommand>,
}

#[derive(Subcommand)]
enum ContextCommand {
    /// Print the context document
    #[command(after_help = "Example:\n  lamplighter context show --workflow release")]
    Show(DocumentArgs),
    /// Change the context document in $VISUAL or $EDITOR
    #[command(after_help = "Example:\n  lamplighter context edit --from notes.md")]
    Edit {
        #[command(flatten)]
        document: DocumentArgs,
        /// Begin with the text of this file
        #[arg(long, value_name = "FILE")]
        from: Option<PathBuf>,
    },
    /// Write all agent logs into a folder
    #[command(after_help = "Example:\n  lamplighter context export logs")]
    Export {
        /// The folder
        dir: Option<PathBuf>,
        /// Also over files that hold other lines
        #[arg(long)]
        force: bool,
    },
    /// Teach the agent templates in a folder to read their log
    #[command(after_help = "Example:\n  lamplighter context init .claude/agents")]
    Init {
        /// The folder
        dir: Option<PathBuf>,
    },
}

#[derive(Args)]
struct DocumentArgs {
    /// The project [default: the configured one]
    #[arg(long, value_name = "ID")]
    project: Option<String>,
    /// The workflow [default: default]
    #[arg(long, value_name = "NAME")]
    workflow: Option<String>,
}

#[derive(Args)]
struct LogArgs {
    /// For a hook: take a PreToolUse payload from the standard input
    #[arg(long, short)]
    assistant: bool,
    /// For a hook: take a PostToolUse or SubagentStop payload
    #[arg(long, short)]
    user: bool,
    /// For a hook: take a SessionStart or SubagentStart payload, and print what was done before
    #[arg(long)]
    recall: bool,
    /// Print the last entries of an agent, oldest first
    #[arg(long, short)]
    read: bool,
    /// Send what hooks could not send
    #[arg(long)]
    flush: bool,
    /// For the process that hooks start
    #[arg(long, hide = true)]
    background: bool,
    /// --read: the agent
    #[arg(long, value_name = "ID", allow_hyphen_values = true)]
    agent_id: Option<String>,
    /// --read: how many entries, 1 to 1000 [default: 50]
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    lines: Option<String>,
    /// --read: only this session [default: the latest, and those before it]. --assistant, --user: instead of the payload's
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// --read: json or text [default: json]
    #[arg(long, value_name = "FORMAT")]
    format: Option<String>,
    /// --read: also the session, the path and the size of the log
    #[arg(long)]
    include_metadata: bool,
}

#[derive(Args)]
struct TrustArgs {
    /// The folder [default: the current one]
    dir: Option<PathBuf>,
    /// End the trust
    #[arg(long)]
    revoke: bool,
    /// Show the trusted folders
    #[arg(long)]
    list: bool,
}

#[derive(Args)]
struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

/// A command, its options and the commands below it.
pub type Description = clap::Command;

/// The description of the whole command line.
#[must_use]
pub fn description() -> Description {
    Line::command()
}

/// Parses the arguments after the program's name.
///
/// # Errors
/// The first error in them.
pub fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Command, UsageError> {
    let args: Vec<OsString> = args.into_iter().collect();
    if let Some(command) = of_hook(&args) {
        return Ok(command);
    }
    let args = std::iter::once(OsString::from("lamplighter")).chain(args);
    let parsed =
        description().try_get_matches_from(args).and_then(|matches| Line::from_arg_matches(&matches));
    match parsed {
        Ok(Line { command: Some(command) }) => command.command(),
        Ok(Line { command: None }) => Ok(Command::Print(description().render_help().to_string())),
        Err(error) => match error.kind() {
            ErrorKind::DisplayHelp => Ok(Command::Print(error.to_string())),
            // The same line for all commands: they have no versions of their own.
            ErrorKind::DisplayVersion => {
                Ok(Command::Print(format!("lamplighter {}\n", env!("CARGO_PKG_VERSION"))))
            }
            _ => Err(UsageError::Syntax(told(&error))),
        },
    }
}

/// The command lines of hooks. An assistant waits for them, and the description of all commands takes a tenth of their time. Every
/// other command line, also one with a mistake, is left to the parser.
fn of_hook(args: &[OsString]) -> Option<Command> {
    let args: Vec<&str> = args.iter().map(|arg| arg.to_str()).collect::<Option<_>>()?;
    let (mode, session) = match args[..] {
        ["log", mode] => (mode, None),
        ["log", mode, "--session", id] | ["log", "--session", id, mode] if !id.starts_with('-') => {
            (mode, Some(id))
        }
        _ => return None,
    };
    let session = session.filter(|id| !id.is_empty()).map(str::to_owned);
    match mode {
        "--assistant" | "-a" => Some(Command::Hook(Hook { event: HookEvent::PreToolUse, session })),
        "--user" | "-u" => Some(Command::Hook(Hook { event: HookEvent::PostToolUse, session })),
        "--recall" => Some(Command::Recall),
        _ => None,
    }
}

/// The error of the parser without its blank lines.
fn told(error: &clap::Error) -> String {
    let text = error.to_string();
    let lines = text.trim_start_matches("error: ").lines().filter(|line| !line.trim().is_empty());
    lines.collect::<Vec<_>>().join("\n")
}

impl Top {
    fn command(self) -> Result<Command, UsageError> {
        Ok(match self {
            Self::Person(person) => Command::Person(person),
            Self::Docs(args) => Command::Docs(args),
            Self::Stop(Json { json }) => Command::Stop { json },
            Self::Start(StartArgs { missed, json: Json { json } }) => {
                Command::Start { missed: missed.map(missed_answer).transpose()?, json }
            }
            Self::Status => Command::Status,
            Self::Keys(KeysArgs { command }) => Command::Keys(keys(command)?),
            Self::Context(ContextArgs { command }) => context(command)?,
            Self::Log(args) => log(args)?,
            Self::Trust(args) => Command::Trust(trust(args)?),
            Self::Completions(CompletionsArgs { shell }) => Command::Completions(shell),
        })
    }
}

fn log(args: LogArgs) -> Result<Command, UsageError> {
    let LogArgs { assistant, user, recall, read, flush, background, .. } = args;
    let modes = [assistant, user, read, flush, recall];
    if modes.iter().filter(|mode| **mode).count() != 1 {
        return Err(UsageError::Mode);
    }
    let session = args.session.filter(|id| !id.is_empty());
    if assistant {
        return Ok(Command::Hook(Hook { event: HookEvent::PreToolUse, session }));
    }
    if user {
        return Ok(Command::Hook(Hook { event: HookEvent::PostToolUse, session }));
    }
    if flush {
        return Ok(Command::Flush { background });
    }
    if recall {
        return Ok(Command::Recall);
    }
    let agent_id = args.agent_id.filter(|id| !id.is_empty()).ok_or(UsageError::NoAgentId)?;
    if !is_agent_id(&agent_id) {
        return Err(UsageError::AgentId);
    }
    let (lines, format) = (read_lines(args.lines.as_deref())?, read_format(args.format.as_deref())?);
    Ok(Command::Read(Read { agent_id, lines, session, format, include_metadata: args.include_metadata }))
}

fn read_lines(text: Option<&str>) -> Result<u32, UsageError> {
    let lines = text.unwrap_or("50").parse().map_err(|_| UsageError::Lines)?;
    if (1..=MAX_LINES).contains(&lines) { Ok(lines) } else { Err(UsageError::Lines) }
}

fn read_format(text: Option<&str>) -> Result<Format, UsageError> {
    match text {
        None | Some("json") => Ok(Format::Json),
        Some("text") => Ok(Format::Text),
        Some(_) => Err(UsageError::Format),
    }
}

/// Whether the text has the form of an agent id: 2 to 64 letters, digits, `-` and `_`, beginning and ending with a
/// letter or digit. The platform has the same rule. It is repeated here because a dependency on the platform's crate would triple
/// the size of the build.
#[must_use]
pub fn is_agent_id(text: &str) -> bool {
    let bytes = text.as_bytes();
    (2..=64).contains(&bytes.len())
        && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
        && bytes[0].is_ascii_alphanumeric()
        && bytes[bytes.len() - 1].is_ascii_alphanumeric()
}

fn context(command: Option<ContextCommand>) -> Result<Command, UsageError> {
    Ok(match command.ok_or(UsageError::NoCommand("context", "show, edit, export, init"))? {
        ContextCommand::Show(args) => Command::Show(document(args)?),
        ContextCommand::Edit { document: args, from } => Command::Edit { document: document(args)?, from },
        ContextCommand::Export { dir, force } => {
            Command::Export { dir: dir.ok_or(UsageError::NoFolder("export"))?, force }
        }
        ContextCommand::Init { dir } => Command::Init { dir: dir.ok_or(UsageError::NoFolder("init"))? },
    })
}

fn document(args: DocumentArgs) -> Result<Document, UsageError> {
    let project = args.project.map(|id| id.parse()).transpose()?;
    Ok(Document { project, workflow: args.workflow })
}

fn keys(command: Option<KeysCommand>) -> Result<Keys, UsageError> {
    Ok(match command.ok_or(UsageError::NoCommand("keys", "list, create, revoke"))? {
        KeysCommand::List => Keys::List,
        KeysCommand::Create { name, scopes, days } => Keys::Create {
            scopes: scopes.map(|list| key_scopes(&list)).transpose()?,
            days: days.map(|text| key_days(&text)).transpose()?,
            name: name.filter(|name| !name.trim().is_empty()).ok_or(UsageError::NoKeyName)?,
        },
        KeysCommand::Revoke { key_id: id } => {
            Keys::Revoke { key_id: key_id(id.ok_or(UsageError::NoKeyId)?)? }
        }
    })
}

fn key_scopes(list: &str) -> Result<Vec<String>, UsageError> {
    let scopes: Vec<String> = list.split(',').map(|scope| scope.trim().to_owned()).collect();
    let known = scopes.iter().all(|scope| matches!(scope.as_str(), "read" | "write" | "admin"));
    if known { Ok(scopes) } else { Err(UsageError::Scopes(list.to_owned())) }
}

fn key_days(text: &str) -> Result<u32, UsageError> {
    text.parse()
        .ok()
        .filter(|days| (1..=MAX_DAYS).contains(days))
        .ok_or_else(|| UsageError::Days(text.to_owned()))
}

/// The id is checked here, because a key itself must not become a part of an address or of an error.
fn key_id(text: String) -> Result<String, UsageError> {
    let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let digits =
        text.strip_prefix("key_").filter(|digits| digits.len() == 32 && digits.bytes().all(is_digit));
    if digits.is_some() {
        return Ok(text);
    }
    let shown = if text.starts_with("llk_") { "llk_…".to_owned() } else { text };
    Err(UsageError::KeyId(shown))
}

fn missed_answer(answer: String) -> Result<&'static str, UsageError> {
    match answer.as_str() {
        "run-newest" => Ok("run_newest"),
        "skip" => Ok("skip"),
        "each-schedule" => Ok("each_schedule"),
        _ => Err(UsageError::Missed(answer)),
    }
}

fn trust(args: TrustArgs) -> Result<Trust, UsageError> {
    let TrustArgs { dir, revoke, list } = args;
    match (list, revoke) {
        (true, false) if dir.is_none() => Ok(Trust::List),
        (true, _) => Err(UsageError::TrustList),
        (false, true) => Ok(Trust::Revoke(dir)),
        (false, false) => Ok(Trust::Add(dir)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_description_is_consistent() {
        description().debug_assert();
    }

    #[test]
    fn the_short_way_of_hooks_reads_what_the_parser_reads() {
        for line in [
            "log -a",
            "log --assistant",
            "log -u",
            "log --user",
            "log --recall",
            "log -u --session s-1",
            "log --session s-1 -a",
            "log --recall --session s-1",
        ] {
            let args: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            let short = of_hook(&args).unwrap();
            let with_name = std::iter::once(OsString::from("lamplighter")).chain(args);
            let matches = description().try_get_matches_from(with_name).unwrap();
            let long = Line::from_arg_matches(&matches).unwrap().command.unwrap().command().unwrap();
            assert_eq!(short, long, "{line}");
        }
        for line in [
            "log",
            "log -au",
            "log -a -u",
            "log --session -a",
            "log -a --session -u",
            "log --flush",
            "status -a",
            "",
        ] {
            let args: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            assert_eq!(of_hook(&args), None, "{line}");
        }
    }

    #[test]
    fn every_command_has_a_page_of_help_with_an_example() {
        fn check(command: &clap::Command, path: &str) {
            for sub in command.get_subcommands() {
                let path = format!("{path} {}", sub.get_name());
                let after = sub.get_after_help().map(ToString::to_string).unwrap_or_default();
                let group = sub.has_subcommands();
                assert!(
                    after.contains("lamplighter ") && (group || after.contains(&path)),
                    "{path}: {after:?}"
                );
                assert!(sub.get_about().is_some(), "{path}");
                check(sub, &path);
            }
        }
        check(&description(), "lamplighter");
    }
}
