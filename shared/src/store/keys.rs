//! Every key of the table in one place.
//!
//! | what | partition key | sort key |
//! |---|---|---|
//! | agent | `U#owner#AGENT` | `agt_…` |
//! | what belongs to an agent | `U#owner#AGENT#agt_…` | the id of the asset, action, chat or proposal |
//! | action | `U#owner#ACTION` | `act_…` |
//! | occurrence | `U#owner#ACTION#act_…` | `RUN#run_…` (an occurrence's id sorts by its due time) |
//! | what was approved of an action | `U#owner#ACTION#act_…` | `APPROVED` |
//! | message about an action | `U#owner#ACTION#act_…` | `MSG#msg_…` |
//! | asset | `U#owner#ASSET` | `ast_…` |
//! | version of an asset | `U#owner#ASSET#ast_…` | `V#0000000001` |
//! | chat | `U#owner#CHAT` | `cht_…` |
//! | message of a chat | `U#owner#CHAT#cht_…` | `MSG#msg_…` |
//! | chat of a client that keeps the conversation | `U#owner#CLIENTCHAT` | SHA-256 of the conversation so far |
//! | proposal | `U#owner#PROPOSAL` | `prp_…` |
//! | run of a turn, in the list of these runs | `U#owner#RUN` | `run_…` |
//! | run | `U#owner#RUN#run_…` | `META` |
//! | event of a run | `U#owner#RUN#run_…` | `EVENT#0000000001` |
//! | step of a run | `U#owner#RUN#run_…` | `STEP#0001`; the results of its calls `STEP#0001#0000` |
//! | live turn of a conversation | the conversation's | `LIVE` |
//! | output of a run | `U#owner#RUN#run_…` | `OUT#0001` |
//! | API key | `U#owner#KEY` | `key_…` |
//! | account | `U#owner#ACCOUNT` | `PROFILE` |
//! | key of a model provider, encrypted | `U#owner#PROVIDERKEY` | the provider's name |
//! | model server of an owner, its key encrypted | `U#owner#SERVER` | the server's name |
//! | the project that was created last under a limit | `U#owner#ACCOUNT` | `PROJECTS` |
//! | requests of a month | `U#owner#QUOTA` | `2026-11` |
//! | spending alert that a month has reached | `U#owner#ACCOUNT` | `ALERT#2026-11#` and the threshold |
//! | project | `U#owner#PROJECT` | `prj_…` |
//! | what belongs to a project | `U#owner#PROJECT#prj_…` | defined by each area |
//! | session with logs | `U#owner#LOG` | when it began, its id |
//! | what belongs to such a session | `U#owner#LOG#session` | `SESSION`, `HEAD#agent`, `ONCE#…`, `LAUNCH#…`, `STOP#…`, `NAME#…`, `NAMES#…` |
//! | line of a log | `U#owner#LOG#session#agent` | `LINE#000000000001` |
//! | segment of a log | `U#owner#LOG#session#agent` | `SEGMENT#` and its first line's number |
//! | session of an agent | `U#owner#LOGOF#agent` | when the agent's log began in it, its id |
//! | session in which an agent was last seen | `U#owner#LOGLAST` | the agent, or the project and the agent |
//! | log with lines that are in no segment | `U#owner#LOGHOT` | since when, session, agent |
//! | import of logs | `U#owner#LOGIMPORT` | `imp_…`; until its end also `OPEN#imp_…`; if it may have left something, `LEFT#imp_…` |
//! | refused hook | `U#owner#LOGREFUSED` | `HOOK#` and a UUID; `COUNT#2026-11-21` |
//! | count of hooks that a project's filter dropped | `U#owner#LOGDROPPED` | `2026-11-21#prj_…#agent type` |
//! | context document | `U#owner#PROJECT#prj_…` | `CONTEXT#workflow` |
//! | version of a context document | `U#owner#PROJECT#prj_…#CONTEXT#workflow` | `V#0000000001`; its text `TEXT#0000000001` |
//! | state of its theme | `U#owner#PROJECT#prj_…` | `THEME` |
//! | state of its enrichment | `U#owner#PROJECT#prj_…` | `ENRICHMENT` |
//! | import of its theme | `U#owner#PROJECT#prj_…` | `IMPORT#imp_…` |
//! | file of its theme | `U#owner#PROJECT#prj_…#FILES#imp_…` (the import that it came from) | `FILE#path` |
//! | place of an owner's runs on an executor | `U#owner#PLACE` | `EXECUTOR#0000` |
//! | run that waits for a place | `U#owner#PLACE` | `WAITS#`, 0 for a run by hand and 1 for others, when it was due, its id |
//! | mark that runs of an owner wait | `U#owner#PLACE` | `BACKLOG` |
//! | idempotency record | `U#owner#IDEMPOTENCY` | SHA-256 of the key |
//! | a day's spending | `U#owner#SPEND` | `2026-11-21` |
//! | a month's spending of the owner, an agent or an action | `U#owner#SPEND` | `MONTH#2026-11`, `MONTH#2026-11#agt_…`, `MONTH#2026-11#act_…` |
//! | count of a caller's requests in a minute | `RATE#` and the SHA-256 of the caller | the class, the number of the minute |
//! | what models have used in a month | `U#owner#USAGE#2026-11` | `2026-11-21#agt_…+act_…#provider/model`; `-` if it was for no agent or no action. Earlier versions wrote `2026-11-21#agt_…#model` |
//! | newest import of an account | `U#owner#ACCOUNT` | `IMPORT` |
//! | export of an account | `U#owner#EXPORT` | `exp_…` |
//! | deletion of an account, until it is done | `DELETION#owner` | `STATE` |
//! | receipt of a deletion | `RECEIPT#rcp_…` | `RECEIPT` |
//! | how far a local clock has come | `CLOCK` | `SEEN` |
//! | circuit breaker | `BREAKER` | `OF#provider#`, the hash of its address and key, `#model` |
//! | an owner's choice of models | `U#owner#MODELS` | `SETTINGS` |
//!
//! The index `due` has the items that must be processed at a certain time (actions, the runs of chat turns, the marks that
//! runs of an owner wait, and exports, imports and deletions of accounts). Its keys are `shard` (of 16) and `due_at` (a time of fixed width, so that the
//! text sorts like the time).

use domain::accounts::KeyProvider;
use domain::accounts::quota::Month;
use domain::accounts::rates::{RouteClass, Window};
use domain::chats::Thread;
use domain::context::Workflow;
use domain::ids::{
    ActionId, AgentId, ApiKeyId, AssetId, ChatId, ExportId, ImportId, MessageId, Owner, ProjectId,
    ProposalId, ReceiptId, RunId,
};
use domain::log::{InstanceId, SessionId};
use domain::models::{ModelId, ServerName, UsedModel};
use jiff::Timestamp;
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::due_item::{DueItem, DueTarget};
use super::partitions::Partition;

pub use super::table::key::{Guard, Key, Range, sortable};

/// The name of the index over all owners' due items.
pub const DUE_INDEX: &str = "due";

/// The number of partitions of the index. A sweep reads each of them every minute, even if nothing is due, so they
/// cause the cost of the sleeping platform. Each accepts about 500 leases per second, and a lease writes to it twice.
pub const SHARDS: u32 = 16;

#[must_use]
pub fn agent(owner: &Owner, id: AgentId) -> Key {
    Key::new(Partition::Agents.of(owner), id).guards(Guard::Agent)
}

#[must_use]
pub fn agents(owner: &Owner) -> Range {
    Range { pk: Partition::Agents.of(owner), prefix: AgentId::PREFIX }
}

/// The metrics of an agent. They exist as long as the agent.
#[must_use]
pub fn agent_metrics(owner: &Owner, agent: AgentId) -> Key {
    agent_child(owner, agent, "METRICS").guards(Guard::Agent)
}

/// The marks of what belongs to an agent. `prefix` is the id prefix of a kind, or empty for all kinds.
#[must_use]
pub fn agent_children(owner: &Owner, agent: AgentId, prefix: &'static str) -> Range {
    Range { pk: Partition::Agent(agent).of(owner), prefix }
}

#[must_use]
pub fn agent_child(owner: &Owner, agent: AgentId, child: impl ToString) -> Key {
    Key::new(Partition::Agent(agent).of(owner), child)
}

#[must_use]
pub fn action(owner: &Owner, id: ActionId) -> Key {
    Key::new(Partition::Actions.of(owner), id)
}

#[must_use]
pub fn actions(owner: &Owner) -> Range {
    Range { pk: Partition::Actions.of(owner), prefix: ActionId::PREFIX }
}

#[must_use]
pub fn occurrence(owner: &Owner, action: ActionId, run: RunId) -> Key {
    Key::new(Partition::Action(action).of(owner), format!("RUN#{run}")).guards(Guard::Occurrence)
}

#[must_use]
pub fn occurrences(owner: &Owner, action: ActionId) -> Range {
    Range { pk: Partition::Action(action).of(owner), prefix: "RUN#" }
}

/// What was last approved.
#[must_use]
pub fn approval(owner: &Owner, action: ActionId) -> Key {
    Key::new(Partition::Action(action).of(owner), "APPROVED")
}

/// Everything that belongs to an action.
#[must_use]
pub fn action_children(owner: &Owner, action: ActionId) -> Range {
    Range { pk: Partition::Action(action).of(owner), prefix: "" }
}

#[must_use]
pub fn asset(owner: &Owner, id: AssetId) -> Key {
    Key::new(Partition::Assets.of(owner), id)
}

#[must_use]
pub fn assets(owner: &Owner) -> Range {
    Range { pk: Partition::Assets.of(owner), prefix: AssetId::PREFIX }
}

#[must_use]
pub fn asset_version(owner: &Owner, id: AssetId, version: u64) -> Key {
    Key::new(Partition::Asset(id).of(owner), format!("V#{version:010}"))
}

#[must_use]
pub fn asset_versions(owner: &Owner, id: AssetId) -> Range {
    Range { pk: Partition::Asset(id).of(owner), prefix: "V#" }
}

#[must_use]
pub fn chat(owner: &Owner, id: ChatId) -> Key {
    Key::new(Partition::Chats.of(owner), id).guards(Guard::Chat)
}

/// Everything that belongs to a chat. `prefix` selects a kind, or is empty for all kinds.
#[must_use]
pub fn chat_children(owner: &Owner, chat: ChatId, prefix: &'static str) -> Range {
    Range { pk: Partition::Chat(chat).of(owner), prefix }
}

/// An asset or action that a chat has produced, by its id.
#[must_use]
pub fn generated(owner: &Owner, chat: ChatId, id: &str) -> Key {
    Key::new(chat_children(owner, chat, "").pk, format!("GEN#{id}"))
}

#[must_use]
pub fn message(owner: &Owner, thread: Thread, message: MessageId) -> Key {
    Key::new(messages(owner, thread).pk, format!("MSG#{message}"))
}

#[must_use]
pub fn messages(owner: &Owner, thread: Thread) -> Range {
    let pk = match thread {
        Thread::Chat(id) => chat_children(owner, id, "").pk,
        Thread::Action(id) => Partition::Action(id).of(owner),
    };
    Range { pk, prefix: "MSG#" }
}

#[must_use]
pub fn live_turn(owner: &Owner, thread: Thread) -> Key {
    Key::new(messages(owner, thread).pk, "LIVE").guards(Guard::Conversation)
}

/// Leads to the chat of a conversation that a client keeps, by the conversation's hash.
#[must_use]
pub fn client_conversation(owner: &Owner, hash: &str) -> Key {
    Key::new(Partition::ClientChats.of(owner), hash)
}

#[must_use]
pub fn proposal(owner: &Owner, id: ProposalId) -> Key {
    Key::new(Partition::Proposals.of(owner), id).guards(Guard::Proposal)
}

/// A run's entry in the list of the runs that no action lists. It is created with the run.
#[must_use]
pub fn run_listed(owner: &Owner, id: RunId) -> Key {
    Key::new(Partition::Runs.of(owner), id)
}

#[must_use]
pub fn run(owner: &Owner, id: RunId) -> Key {
    Key::new(Partition::Run(id).of(owner), "META").guards(Guard::Run)
}

/// The mark that somebody asked the run to stop.
#[must_use]
pub fn run_cancel(owner: &Owner, id: RunId) -> Key {
    Key::new(Partition::Run(id).of(owner), "CANCEL")
}

#[must_use]
pub fn run_event(owner: &Owner, id: RunId, event: u64) -> Key {
    Key::new(Partition::Run(id).of(owner), format!("EVENT#{event:010}")).guards(Guard::RunEvent)
}

#[must_use]
pub fn run_events(owner: &Owner, id: RunId) -> Range {
    Range { pk: Partition::Run(id).of(owner), prefix: "EVENT#" }
}

#[must_use]
pub fn run_step(owner: &Owner, id: RunId, step: u32, call: Option<u32>) -> Key {
    let call = call.map(|call| format!("#{call:04}")).unwrap_or_default();
    Key::new(Partition::Run(id).of(owner), format!("STEP#{step:04}{call}")).guards(Guard::RunStep)
}

#[must_use]
pub fn run_steps(owner: &Owner, id: RunId) -> Range {
    Range { pk: Partition::Run(id).of(owner), prefix: "STEP#" }
}

#[must_use]
pub fn run_output(owner: &Owner, id: RunId, output: u32) -> Key {
    Key::new(Partition::Run(id).of(owner), format!("OUT#{output:04}"))
}

#[must_use]
pub fn run_outputs(owner: &Owner, id: RunId) -> Range {
    Range { pk: Partition::Run(id).of(owner), prefix: "OUT#" }
}

/// Everything that belongs to a run.
#[must_use]
pub fn run_children(owner: &Owner, id: RunId) -> Range {
    Range { pk: Partition::Run(id).of(owner), prefix: "" }
}

#[must_use]
pub fn account(owner: &Owner) -> Key {
    Key::new(Partition::Account.of(owner), "PROFILE")
}

/// Every creation of a project under a limit replaces it.
#[must_use]
pub fn project_creation(owner: &Owner) -> Key {
    Key::new(Partition::Account.of(owner), "PROJECTS")
}

/// The thresholds of a month sort by their amount.
#[must_use]
pub fn alert(owner: &Owner, month: Month, month_micros: i64) -> Key {
    Key::new(Partition::Account.of(owner), format!("{}{month_micros:013}", alerts_of(month)))
}

#[must_use]
pub fn alerts(owner: &Owner) -> Range {
    Range { pk: Partition::Account.of(owner), prefix: "ALERT#" }
}

/// The beginning of the sort keys of a month's alerts.
#[must_use]
pub fn alerts_of(month: Month) -> String {
    format!("ALERT#{month}#")
}

#[must_use]
pub fn month_requests(owner: &Owner, month: Month) -> Key {
    Key::new(Partition::Quota.of(owner), month).guards(Guard::Quota)
}

#[must_use]
pub fn api_key(owner: &Owner, id: ApiKeyId) -> Key {
    Key::new(Partition::ApiKeys.of(owner), id)
}

#[must_use]
pub fn api_keys(owner: &Owner) -> Range {
    Range { pk: Partition::ApiKeys.of(owner), prefix: ApiKeyId::PREFIX }
}

#[must_use]
pub fn provider_key(owner: &Owner, provider: KeyProvider) -> Key {
    Key::new(Partition::ProviderKeys.of(owner), provider)
}

#[must_use]
pub fn provider_keys(owner: &Owner) -> Range {
    Range { pk: Partition::ProviderKeys.of(owner), prefix: "" }
}

#[must_use]
pub fn server(owner: &Owner, name: ServerName) -> Key {
    Key::new(Partition::Servers.of(owner), name)
}

#[must_use]
pub fn servers(owner: &Owner) -> Range {
    Range { pk: Partition::Servers.of(owner), prefix: "" }
}

#[must_use]
pub fn project(owner: &Owner, id: ProjectId) -> Key {
    Key::new(Partition::Projects.of(owner), id).guards(Guard::Project)
}

#[must_use]
pub fn projects(owner: &Owner) -> Range {
    Range { pk: Partition::Projects.of(owner), prefix: ProjectId::PREFIX }
}

/// The items in a project's partition, which are deleted with it. `prefix` selects a kind, or is empty for all kinds.
#[must_use]
pub fn project_children(owner: &Owner, project: ProjectId, prefix: &'static str) -> Range {
    Range { pk: Partition::Project(project).of(owner), prefix }
}

#[must_use]
pub fn project_child(owner: &Owner, project: ProjectId, child: impl ToString) -> Key {
    Key::new(Partition::Project(project).of(owner), child)
}

fn of_session(owner: &Owner, session: &SessionId, sk: impl ToString) -> Key {
    Key::new(Partition::Session(session.clone()).of(owner), sk)
}

fn of_log(owner: &Owner, session: &SessionId, agent: &InstanceId) -> String {
    Partition::Log(session.clone(), agent.clone()).of(owner)
}

#[must_use]
pub fn log_session(owner: &Owner, session: &SessionId) -> Key {
    of_session(owner, session, "SESSION")
}

/// Everything of a session except its logs' lines and segments.
#[must_use]
pub fn log_session_all(owner: &Owner, session: &SessionId) -> Range {
    Range { pk: of_session(owner, session, "").pk, prefix: "" }
}

/// A session's entry in the list of all sessions.
#[must_use]
pub fn log_session_listed(owner: &Owner, session: &SessionId, started_at: Timestamp) -> Key {
    Key::new(Partition::Sessions.of(owner), format!("{}#{session}", sortable(started_at)))
}

#[must_use]
pub fn log_sessions(owner: &Owner) -> Range {
    Range { pk: Partition::Sessions.of(owner), prefix: "" }
}

#[must_use]
pub fn log_head(owner: &Owner, session: &SessionId, agent: &InstanceId) -> Key {
    of_session(owner, session, format!("HEAD#{agent}")).guards(Guard::LogHead)
}

#[must_use]
pub fn log_heads(owner: &Owner, session: &SessionId) -> Range {
    Range { pk: of_session(owner, session, "").pk, prefix: "HEAD#" }
}

/// Names come from outside and may contain anything, so their hash is stored.
#[must_use]
pub fn logged_once(owner: &Owner, session: &SessionId, name: &str) -> Key {
    of_session(owner, session, format!("ONCE#{}", hash(name))).guards(Guard::LoggedOnce)
}

#[must_use]
pub fn launch(owner: &Owner, session: &SessionId, background: &str) -> Key {
    of_session(owner, session, format!("LAUNCH#{}", hash(background)))
}

#[must_use]
pub fn early_stop(owner: &Owner, session: &SessionId, background: &str) -> Key {
    of_session(owner, session, format!("STOP#{}", hash(background)))
}

#[must_use]
pub fn given_name(owner: &Owner, session: &SessionId, prompt: &str) -> Key {
    of_session(owner, session, format!("NAME#{prompt}"))
}

#[must_use]
pub fn given_names(owner: &Owner, session: &SessionId, hash: &str) -> Key {
    of_session(owner, session, format!("NAMES#{hash}"))
}

#[must_use]
pub fn log_line(owner: &Owner, session: &SessionId, agent: &InstanceId, number: u64) -> Key {
    Key::new(of_log(owner, session, agent), format!("LINE#{number:012}"))
}

#[must_use]
pub fn log_lines(owner: &Owner, session: &SessionId, agent: &InstanceId) -> Range {
    Range { pk: of_log(owner, session, agent), prefix: "LINE#" }
}

/// The number of the line under this sort key.
#[must_use]
pub fn log_number(sort_key: &str) -> Option<u64> {
    sort_key.strip_prefix("LINE#")?.parse().ok()
}

#[must_use]
pub fn log_segment(owner: &Owner, session: &SessionId, agent: &InstanceId, first: u64) -> Key {
    Key::new(of_log(owner, session, agent), format!("SEGMENT#{first:012}"))
}

#[must_use]
pub fn log_segments(owner: &Owner, session: &SessionId, agent: &InstanceId) -> Range {
    Range { pk: of_log(owner, session, agent), prefix: "SEGMENT#" }
}

#[must_use]
pub fn latest_log(owner: &Owner, project: Option<ProjectId>, agent: &InstanceId) -> Key {
    let sk = project.map_or_else(|| agent.to_string(), |project| format!("{project}#{agent}"));
    Key::new(Partition::LatestLogs.of(owner), sk)
}

/// The sessions that have a log of this agent, ordered by when that log began.
#[must_use]
pub fn agent_sessions(owner: &Owner, agent: &InstanceId) -> Range {
    Range { pk: Partition::AgentSessions(agent.clone()).of(owner), prefix: "" }
}

#[must_use]
pub fn agent_session(owner: &Owner, agent: &InstanceId, began: Timestamp, session: &SessionId) -> Key {
    Key::new(agent_sessions(owner, agent).pk, format!("{}#{session}", sortable(began)))
}

#[must_use]
pub fn hot_log(owner: &Owner, since: Timestamp, session: &SessionId, agent: &InstanceId) -> Key {
    let sk = format!("{}#{session}#{agent}", sortable(since));
    Key::new(Partition::HotLogs.of(owner), sk)
}

#[must_use]
pub fn hot_logs(owner: &Owner) -> Range {
    Range { pk: Partition::HotLogs.of(owner), prefix: "" }
}

#[must_use]
pub fn log_import(owner: &Owner, id: ImportId) -> Key {
    Key::new(Partition::LogImports.of(owner), id)
}

/// The mark of an unfinished import.
#[must_use]
pub fn open_log_import(owner: &Owner, id: ImportId) -> Key {
    Key::new(Partition::LogImports.of(owner), format!("OPEN#{id}")).guards(Guard::LogImport)
}

/// The mark of an import that may have left segments without a log.
#[must_use]
pub fn left_log_import(owner: &Owner, id: ImportId) -> Key {
    Key::new(Partition::LogImports.of(owner), format!("LEFT#{id}"))
}

#[must_use]
pub fn left_log_imports(owner: &Owner) -> Range {
    Range { pk: Partition::LogImports.of(owner), prefix: "LEFT#" }
}

#[must_use]
pub fn open_log_imports(owner: &Owner) -> Range {
    Range { pk: Partition::LogImports.of(owner), prefix: "OPEN#" }
}

#[must_use]
pub fn refused_hook(owner: &Owner, id: Uuid) -> Key {
    Key::new(Partition::RefusedHooks.of(owner), format!("HOOK#{}", id.simple()))
}

#[must_use]
pub fn refused_hooks(owner: &Owner) -> Range {
    Range { pk: Partition::RefusedHooks.of(owner), prefix: "HOOK#" }
}

/// The count for the UTC day of a time.
#[must_use]
pub fn refused_hooks_of(owner: &Owner, day: Timestamp) -> Key {
    Key::new(Partition::RefusedHooks.of(owner), format!("COUNT#{}", day.strftime("%Y-%m-%d")))
}

/// The hooks that a project's filter dropped, for the UTC day of a time.
#[must_use]
pub fn dropped_hook(owner: &Owner, day: Timestamp, project: ProjectId, agent_type: &str) -> Key {
    Key::new(
        Partition::DroppedHooks.of(owner),
        format!("{}#{project}#{agent_type}", day.strftime("%Y-%m-%d")),
    )
}

#[must_use]
pub fn dropped_hooks(owner: &Owner) -> Range {
    Range { pk: Partition::DroppedHooks.of(owner), prefix: "" }
}

/// The parts of a sort key of [`dropped_hook`]: the day, the project and the agent type.
#[must_use]
pub fn dropped_parts(sort_key: &str) -> Option<(&str, ProjectId, &str)> {
    let (day, rest) = sort_key.split_once('#')?;
    let (project, agent_type) = rest.split_once('#')?;
    Some((day, project.parse().ok()?, agent_type))
}

fn hash(text: &str) -> String {
    domain::hex(&Sha256::digest(text.as_bytes()))
}

#[must_use]
pub fn document(owner: &Owner, project: ProjectId, workflow: &Workflow) -> Key {
    project_child(owner, project, format!("CONTEXT#{workflow}")).guards(Guard::Document)
}

#[must_use]
pub fn documents(owner: &Owner, project: ProjectId) -> Range {
    project_children(owner, project, "CONTEXT#")
}

fn document_part(owner: &Owner, project: ProjectId, workflow: &Workflow) -> String {
    Partition::Document(project, workflow.clone()).of(owner)
}

#[must_use]
pub fn document_version(owner: &Owner, project: ProjectId, workflow: &Workflow, version: u64) -> Key {
    Key::new(document_part(owner, project, workflow), format!("V#{version:010}"))
}

#[must_use]
pub fn document_text(owner: &Owner, project: ProjectId, workflow: &Workflow, version: u64) -> Key {
    Key::new(document_part(owner, project, workflow), format!("TEXT#{version:010}"))
}

/// The versions of a document. With the prefix `V#` without their texts, with an empty one including them.
#[must_use]
pub fn document_versions(
    owner: &Owner,
    project: ProjectId,
    workflow: &Workflow,
    prefix: &'static str,
) -> Range {
    Range { pk: document_part(owner, project, workflow), prefix }
}

#[must_use]
pub fn theme(owner: &Owner, project: ProjectId) -> Key {
    project_child(owner, project, "THEME").guards(Guard::Theme)
}

#[must_use]
pub fn enrichment(owner: &Owner, project: ProjectId) -> Key {
    project_child(owner, project, "ENRICHMENT").guards(Guard::Enrichment)
}

#[must_use]
pub fn theme_import(owner: &Owner, project: ProjectId, id: ImportId) -> Key {
    project_child(owner, project, format!("IMPORT#{id}"))
}

#[must_use]
pub fn theme_imports(owner: &Owner, project: ProjectId) -> Range {
    project_children(owner, project, "IMPORT#")
}

#[must_use]
pub fn theme_file(owner: &Owner, project: ProjectId, generation: ImportId, path: &str) -> Key {
    Key::new(Partition::ThemeFiles(project, generation).of(owner), format!("FILE#{path}"))
}

#[must_use]
pub fn theme_files(owner: &Owner, project: ProjectId, generation: ImportId) -> Range {
    Range { pk: Partition::ThemeFiles(project, generation).of(owner), prefix: "FILE#" }
}

/// A client's key may contain anything, so its hash is stored.
#[must_use]
pub fn idempotency(owner: &Owner, client_key: &str) -> Key {
    Key::new(Partition::Idempotency.of(owner), hash(client_key)).guards(Guard::Idempotency)
}

#[must_use]
pub fn spend(owner: &Owner, day: jiff::civil::Date) -> Key {
    Key::new(Partition::Spend.of(owner), day).guards(Guard::Spend)
}

/// The spending of a month. `of` names the agent or the action; without it, it is the owner's.
#[must_use]
pub fn month_spend(owner: &Owner, month: Month, of: Option<&str>) -> Key {
    let of = of.map_or_else(String::new, |of| format!("#{of}"));
    Key::new(Partition::Spend.of(owner), format!("MONTH#{month}{of}")).guards(Guard::Spend)
}

/// What a model has used on a day, for an agent and an action or for none.
#[must_use]
pub fn usage(
    owner: &Owner,
    agent: Option<AgentId>,
    action: Option<ActionId>,
    day: jiff::civil::Date,
    model: &UsedModel,
) -> Key {
    let UsedModel { vendor, model } = model;
    let (agent, action, vendor) = (or_none(agent), or_none(action), or_none(*vendor));
    Key::new(usage_of_month(owner, day).pk, format!("{day}#{agent}+{action}#{vendor}/{model}"))
}

fn or_none(part: Option<impl std::fmt::Display>) -> String {
    part.map_or_else(|| NONE.to_owned(), |part| part.to_string())
}

#[must_use]
pub fn usage_of_month(owner: &Owner, month: jiff::civil::Date) -> Range {
    Range { pk: Partition::Usage(month).of(owner), prefix: "" }
}

/// Stands where a key has no agent, no action or no provider.
const NONE: &str = "-";

/// The parts of a sort key of [`usage`]: the day, the agent, the action and the model. A key of an earlier version has no `+`. It
/// names neither the action nor the provider.
#[must_use]
pub fn usage_parts(
    sort_key: &str,
) -> Option<(jiff::civil::Date, Option<AgentId>, Option<ActionId>, UsedModel)> {
    let mut parts = sort_key.splitn(3, '#');
    let (day, spender, model) = (parts.next()?, parts.next()?, parts.next()?);
    let day = day.parse().ok()?;
    let Some((agent, action)) = spender.split_once('+') else {
        return Some((day, part(spender)?, None, UsedModel { vendor: None, model: ModelId::new(model) }));
    };
    let (vendor, model) = model.split_once('/')?;
    let model = UsedModel { vendor: part(vendor)?, model: ModelId::new(model) };
    Some((day, part(agent)?, part(action)?, model))
}

/// `None` if the part is invalid, `Some(None)` if there is none.
fn part<T: std::str::FromStr>(text: &str) -> Option<Option<T>> {
    if text == NONE { Some(None) } else { text.parse().ok().map(Some) }
}

/// The spending of all days.
#[must_use]
pub fn spends(owner: &Owner) -> Range {
    Range { pk: Partition::Spend.of(owner), prefix: "" }
}

/// The place with this number.
#[must_use]
pub fn place(owner: &Owner, number: u32) -> Key {
    Key::new(Partition::Places.of(owner), format!("EXECUTOR#{number:04}"))
}

#[must_use]
pub fn places(owner: &Owner) -> Range {
    Range { pk: Partition::Places.of(owner), prefix: "EXECUTOR#" }
}

/// The number of the place under this sort key.
#[must_use]
pub fn place_number(sort_key: &str) -> Option<u32> {
    sort_key.strip_prefix("EXECUTOR#")?.parse().ok()
}

#[must_use]
pub fn waiting_run(owner: &Owner, by_hand: bool, due_at: Timestamp, run: RunId) -> Key {
    let rank = u8::from(!by_hand);
    Key::new(Partition::Places.of(owner), format!("WAITS#{rank}#{}#{run}", sortable(due_at)))
}

#[must_use]
pub fn waiting_runs(owner: &Owner) -> Range {
    Range { pk: Partition::Places.of(owner), prefix: "WAITS#" }
}

/// The mark that runs of this owner wait for a place.
#[must_use]
pub fn backlog(owner: &Owner) -> Key {
    Key::new(Partition::Places.of(owner), "BACKLOG")
}

/// The partition of the `due` index for an item that an owner has once.
#[must_use]
pub fn shard_of_owner(owner: &Owner) -> String {
    shard_name(u32::from(Sha256::digest(owner.as_str().as_bytes())[0]) % SHARDS)
}

/// The partition of the `due` index for the item with this id.
#[must_use]
pub fn shard(id: Uuid) -> String {
    // The last byte of a UUIDv7 is random, so it distributes as well as a hash of the whole id.
    shard_name(u32::from(id.as_bytes()[15]) % SHARDS)
}

#[must_use]
pub fn shard_name(shard: u32) -> String {
    format!("{shard:02}")
}

/// The key of a due item.
#[must_use]
pub fn due_key(item: &DueItem) -> Key {
    match item.target {
        DueTarget::Action(id) => action(&item.owner, id),
        DueTarget::Run(id) => run(&item.owner, id),
        DueTarget::Backlog => backlog(&item.owner),
        DueTarget::Deletion => deletion(&item.owner),
        DueTarget::Export(id) => export(&item.owner, id),
        DueTarget::Import => account_import(&item.owner),
    }
}

/// The item of a key from the `due` index.
#[must_use]
pub fn parse_due(key: &Key) -> Option<DueItem> {
    if let Some(owner) = key.pk.strip_prefix("DELETION#").filter(|_| key.sk == DELETION_STATE) {
        return Some(DueItem::deletion(&Owner::new(owner).ok()?));
    }
    let part = key.pk.strip_prefix("U#")?;
    if let Some(owner) = part.strip_suffix("#ACTION") {
        return Some(DueItem::action(&Owner::new(owner).ok()?, key.sk.parse().ok()?));
    }
    if let Some(owner) = part.strip_suffix("#EXPORT") {
        return Some(DueItem::export(&Owner::new(owner).ok()?, key.sk.parse().ok()?));
    }
    if let Some(owner) = part.strip_suffix("#ACCOUNT").filter(|_| key.sk == ACCOUNT_IMPORT) {
        return Some(DueItem::import(&Owner::new(owner).ok()?));
    }
    if let Some(owner) = part.strip_suffix("#PLACE").filter(|_| key.sk == "BACKLOG") {
        return Some(DueItem::backlog(&Owner::new(owner).ok()?));
    }
    let (owner, id) = part.rsplit_once("#RUN#").filter(|_| key.sk == "META")?;
    Some(DueItem::run(&Owner::new(owner).ok()?, id.parse().ok()?))
}

#[must_use]
pub fn export(owner: &Owner, id: ExportId) -> Key {
    Key::new(Partition::Exports.of(owner), id)
}

const ACCOUNT_IMPORT: &str = "IMPORT";

/// The newest import of an account. There is at most one at a time.
#[must_use]
pub fn account_import(owner: &Owner) -> Key {
    Key::new(Partition::Account.of(owner), ACCOUNT_IMPORT)
}

#[must_use]
pub fn exports(owner: &Owner) -> Range {
    Range { pk: Partition::Exports.of(owner), prefix: ExportId::PREFIX }
}

const DELETION_STATE: &str = "STATE";

/// The deletion of an owner's account. It is not in a partition of the owner, because it is there until all of these are empty.
#[must_use]
pub fn deletion(owner: &Owner) -> Key {
    Key::new(format!("DELETION#{owner}"), DELETION_STATE)
}

/// Whether this partition key is that of a deletion. Every write of a deletion includes an item with such a key.
#[must_use]
pub fn is_of_a_deletion(pk: &str) -> bool {
    pk.starts_with("DELETION#")
}

/// The receipt of a deletion. It names no owner.
#[must_use]
pub fn receipt(id: ReceiptId) -> Key {
    Key::new(format!("RECEIPT#{id}"), "RECEIPT")
}

/// The counter of a caller's requests. It is not in a partition of the owner, because it is no data of a person, and also
/// counts callers without credentials.
#[must_use]
pub fn requests(caller: &str, class: RouteClass, window: Window) -> Key {
    Key::new(format!("RATE#{}", hash(caller)), format!("{}#{}", class.name(), window.number()))
}

/// What an owner has chosen about models.
#[must_use]
pub fn model_settings(owner: &Owner) -> Key {
    Key::new(Partition::Models.of(owner), "SETTINGS").guards(Guard::ModelSettings)
}

/// A circuit breaker that processes share.
#[must_use]
pub fn breaker(name: &str) -> Key {
    Key::new("BREAKER".to_owned(), format!("OF#{name}"))
}

#[must_use]
pub fn breakers() -> Range {
    Range { pk: "BREAKER".to_owned(), prefix: "OF#" }
}

/// How far the clock of this installation has come.
#[must_use]
pub fn clock() -> Key {
    Key::new("CLOCK".to_owned(), "SEEN")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_sort_as_text() {
        let texts: Vec<String> = [0, 1, 999, 1_000, 1_795_251_600_123, 1_795_251_600_124]
            .map(|millis| sortable(Timestamp::from_millisecond(millis).unwrap()))
            .to_vec();
        assert!(texts.is_sorted());
        assert_eq!(texts[0], "1970-01-01T00:00:00.000Z");
        assert_eq!(texts[4], "2026-11-21T09:00:00.123Z");
    }

    #[test]
    fn usage_reads_back_also_as_earlier_versions_wrote_it() {
        let owner = Owner::new("auth0|me").unwrap();
        let (agent, action) =
            (AgentId::from_uuid(Uuid::from_u128(7)), ActionId::from_uuid(Uuid::from_u128(8)));
        let day = jiff::civil::date(2026, 11, 21);
        let used = |vendor: Option<&str>, model: &str| UsedModel {
            vendor: vendor.map(|vendor| vendor.parse().unwrap()),
            model: ModelId::new(model),
        };
        for agent in [None, Some(agent)] {
            for action in [None, Some(action)] {
                for vendor in [None, Some("anthropic"), Some("gpu-2")] {
                    for model in ["m", "org/m", "a#b+c/d", "-"] {
                        let key = usage(&owner, agent, action, day, &used(vendor, model)).sk;
                        let expected = (day, agent, action, used(vendor, model));
                        assert_eq!(usage_parts(&key), Some(expected), "{key}");
                    }
                }
            }
        }
        let old = |agent: String, model: &str| usage_parts(&format!("2026-11-21#{agent}#{model}"));
        for model in ["m", "org/m", "a#b+c/d", "-"] {
            let expected = (day, Some(agent), None, used(None, model));
            assert_eq!(old(agent.to_string(), model), Some(expected));
            assert_eq!(old("-".to_owned(), model), Some((day, None, None, used(None, model))));
        }
        for wrong in [format!("{action}"), "x".to_owned(), format!("{agent}+"), format!("+{action}")] {
            assert_eq!(old(wrong.clone(), "xai/m"), None, "{wrong}");
        }
        assert_eq!(old(format!("{agent}+{action}"), "m"), None, "the new form has a provider");
        assert_eq!(old(format!("{agent}+{action}"), "NO/m"), None);
    }

    #[test]
    fn keys_of_one_item_are_equal_whatever_they_guard() {
        let owner = Owner::new("auth0|me").unwrap();
        let known = agent(&owner, AgentId::from_uuid(Uuid::from_u128(7)));
        let read = Key::new(known.pk.clone(), &known.sk);
        assert_eq!((known.guard(), read.guard()), (Guard::Agent, Guard::Other));
        assert_eq!(known, read);
        assert!(std::collections::HashSet::from([known]).contains(&read));
    }

    #[test]
    fn runs_by_hand_wait_before_others_and_those_that_are_due_longest_first() {
        let owner = Owner::new("auth0|me").unwrap();
        let at = |seconds: i64| Timestamp::from_second(1_795_251_600 + seconds).unwrap();
        let run = |n| RunId::from_uuid(Uuid::from_u128(n));
        let keys = [(true, 90, 1), (true, 91, 0), (false, 0, 9), (false, 1, 7), (false, 1, 8)]
            .map(|(by_hand, due, id)| waiting_run(&owner, by_hand, at(due), run(id)).sk);
        assert!(keys.is_sorted(), "{keys:?}");
        assert_eq!(place_number(&place(&owner, 800).sk), Some(800));
        assert_eq!(place_number(&keys[0]), None);
    }

    #[test]
    fn a_due_entry_names_its_item() {
        let owner = Owner::new("auth0|me").unwrap();
        let id = ActionId::from_uuid(Uuid::from_u128(7));
        assert_eq!(parse_due(&action(&owner, id)), Some(DueItem::action(&owner, id)));
        let of_run = RunId::from_uuid(Uuid::from_u128(8));
        assert_eq!(parse_due(&run(&owner, of_run)), Some(DueItem::run(&owner, of_run)));
        assert_eq!(parse_due(&backlog(&owner)), Some(DueItem::backlog(&owner)));
        assert_eq!(parse_due(&deletion(&owner)), Some(DueItem::deletion(&owner)));
        let of_export = ExportId::from_uuid(Uuid::from_u128(9));
        assert_eq!(parse_due(&export(&owner, of_export)), Some(DueItem::export(&owner, of_export)));
        assert_eq!(parse_due(&account_import(&owner)), Some(DueItem::import(&owner)));
        assert_eq!(parse_due(&account(&owner)), None);
        assert_eq!(parse_due(&place(&owner, 1)), None);
        assert_eq!(parse_due(&run_event(&owner, of_run, 1)), None);
        assert_eq!(parse_due(&Key::new("U#x#AGENT".into(), id)), None);
    }
}
