//! Every kind of record in one list.
//!
//! **To add a kind of record, add an entry to `records!` in this file.** The entry says what the record is, its key, when
//! it is deleted, and whether an import of an account restores it. What reads the list:
//!
//! - [`keys`](super::keys): the entry becomes a function that builds the key.
//! - [`Partition`]: a partition becomes a variant. If it has fields, `partitions` must say which item names it; otherwise
//!   the test `a_walk_finds_every_kind_of_item_once` fails.
//! - `restore`: an entry with `restored by` needs that function; otherwise the crate does not compile.
//! - `docs/architecture.md`: `cargo xtask bless data-model` writes its table; the test `the_data_model_is_the_list_of_records`
//!   compares it.
//! - `tests/golden/data.json`: the test `every_kind_of_record_is_among_the_stored_data` fails until it has such a record.
//!
//! A partition is `Name(field: Type) = "KEY#{field}" (…) { records }`. Its key follows `U#` and the owner. `as &` means that
//! functions take the field by reference. `exported` says whether an export takes its records, and `setting` whether an
//! account that has them still counts as empty.
//!
//! A record is `name(argument: type) = "sort key" … => fate`. The function `name` takes the owner, the fields of the
//! partition and the arguments. The first line of the comment is also in the manual. A key is a format string, so
//! `{number:010}` has ten digits. These may follow in this order:
//!
//! - `with (name = value)`: parts of the sort key that are computed from the arguments.
//! - `guards G`: the [`Guard`] of the key.
//! - `lists name("prefix")`: a second function, which builds the range of these records.
//! - `deleted "when"`: for the manual. Without it, the record stays until its owner deletes it.
//!
//! Then comes `[restored by area::function]`, with a function in `restore/`, or `[left out]`, and what people call the
//! record if it is a thing of its own and not a part of one. An import leaves out what only matters while the platform
//! works, what expires soon, secrets, and what limits an owner here.
//!
//! Within a partition, the text before the first `#` of a sort key tells the kinds apart. The first entry that fits counts,
//! so an entry that begins with a value comes last.

use std::str::FromStr;

use domain::accounts::KeyProvider;
use domain::accounts::quota::Month;
use domain::accounts::rates::{RouteClass, Window};
use domain::context::Workflow;
use domain::ids::{
    ActionId, AgentId, ApiKeyId, AssetId, BlockId, CardId, ChangeSetId, ChannelId, ChatId, DeliveryId,
    ExportId, FactId, ImportId, JobId, MessageId, NoticeId, Owner, PracticeId, ProjectId, ProposalId,
    ReceiptId, ReportId, RunId, TidyId, WatchedId,
};
use domain::living::DocName;
use domain::log::{InstanceId, SessionId};
use domain::memory::Source;
use domain::memory::part::MemoryPart;
use domain::models::{ModelId, ServerName};
use domain::notices::NoticeKey;
use domain::secrets::SecretName;
use domain::watchdog::Check;
use jiff::Timestamp;
use jiff::civil::Date;
use uuid::Uuid;

use super::table::key::{Guard, Key, Range, hash, or_none, sortable};

/// Gives the list to the macro `$then`.
macro_rules! records {
    ($then:ident) => { $then! {
        Account = "ACCOUNT" (kind: "account", exported: true, setting: true) {
            /// A spending alert that a month has reached.
            /// The thresholds of a month sort by their amount.
            alert(month: Month, micros: i64) = "ALERT#{month}#{micros:013}"
                lists alerts("ALERT#") deleted "400 days after the month" => [left out];
            /// The channel that was created last, and when codes for e-mail addresses were sent.
            /// Every creation and every code replaces it.
            channel_guard() = "CHANNELS" => [left out];
            /// The newest import of the account.
            /// There is at most one at a time.
            account_import() = "IMPORT" => [left out];
            /// The practice that was created last.
            /// Every creation replaces it.
            practice_creation() = "PRACTICES" => [left out];
            /// The account: profile, plan and limits.
            account() = "PROFILE" => [restored by accounts::account] as "account";
            /// The project that was created last under a limit.
            /// Every such creation replaces it.
            project_creation() = "PROJECTS" => [left out];
            /// The watched schedule that was created last.
            /// Every creation replaces it.
            watched_creation() = "WATCHED" => [left out];
        }
        Actions = "ACTION" (kind: "actions", exported: true, setting: false) {
            /// An action.
            action(id: ActionId) = "{id}"
                lists actions(ActionId::PREFIX) => [restored by actions::action] as "actions";
        }
        Action(action: ActionId) = "ACTION#{action}" (kind: "actions", exported: true, setting: false) {
            /// What was approved last of an action.
            approval() = "APPROVED" => [left out] as "approvals";
            /// A change of an action, by the version of the action after it.
            action_change(version: u64) = "CHANGE#{version:012}" lists action_changes("CHANGE#")
                deleted "400 days after the change" => [restored by actions::change];
            /// The outputs of the newest runs of an action that have succeeded.
            last_outputs() = "LAST" => [restored by actions::last_outputs];
            /// The live turn of the conversation about an action.
            action_live_turn() = "LIVE" guards Conversation deleted "30 days" => [left out];
            /// A message about an action.
            action_message(message: MessageId) = "MSG#{message}" lists action_messages("MSG#")
                => [restored by chats::message_about_action] as "messages";
            /// A version of the notebook of an action.
            /// The newest 50 are kept.
            notebook_version(version: u64) = "NOTE#{version:010}" guards Notebook
                lists notebook_versions("NOTE#") => [restored by actions::notebook];
            /// An occurrence of an action.
            occurrence(run: RunId) = "RUN#{run}" guards Occurrence
                lists occurrences("RUN#") deleted "400 days after it was due"
                => [restored by actions::occurrence] as "occurrences";
            /// The summary of the oldest messages about an action.
            action_summary() = "SUMMARY" guards Summary => [restored by chats::summary_about_action];
            /// What was last seen of the things that an action watches.
            watch_state() = "WATCH" => [restored by actions::watch_state];
        }
        Agents = "AGENT" (kind: "agents", exported: true, setting: false) {
            /// An agent.
            agent(id: AgentId) = "{id}" guards Agent
                lists agents(AgentId::PREFIX) => [restored by agents::agent] as "agents";
        }
        Agent(agent: AgentId) = "AGENT#{agent}" (kind: "agents", exported: true, setting: false) {
            /// A change of an agent, by the version of the agent after it.
            agent_change(version: u64) = "CHANGE#{version:012}" lists agent_changes("CHANGE#")
                deleted "400 days after the change" => [restored by agents::change];
            /// The counts of an agent.
            /// They exist as long as the agent.
            agent_metrics() = "METRICS" guards Agent => [restored by agents::metrics];
            /// What belongs to an agent: an action, an asset, a chat or a proposal.
            agent_child(child: impl ToString) = "{child}" with (child = child.to_string())
                => [restored by agents::child];
        }
        Assets = "ASSET" (kind: "assets", exported: true, setting: false) {
            /// An asset.
            asset(id: AssetId) = "{id}"
                lists assets(AssetId::PREFIX) => [restored by assets::asset] as "assets";
        }
        Asset(asset: AssetId) = "ASSET#{asset}" (kind: "assets", exported: true, setting: false) {
            /// A version of an asset.
            asset_version(version: u64) = "V#{version:010}"
                lists asset_versions("V#") => [restored by assets::version] as "asset_versions";
        }
        Channels = "CHANNEL" (kind: "channels", exported: false, setting: true) {
            /// A channel of a person, its address encrypted.
            channel(id: ChannelId) = "{id}" lists channels(ChannelId::PREFIX) => [left out];
        }
        Chats = "CHAT" (kind: "chats", exported: true, setting: false) {
            /// A chat.
            chat(id: ChatId) = "{id}" guards Chat
                lists chats(ChatId::PREFIX) => [restored by chats::chat] as "chats";
        }
        Chat(chat: ChatId) = "CHAT#{chat}" (kind: "chats", exported: true, setting: false) {
            /// An asset or action that a chat has produced, by its id.
            generated(id: &str) = "GEN#{id}" => [restored by chats::generated];
            /// The live turn of a chat.
            chat_live_turn() = "LIVE" guards Conversation deleted "30 days" => [left out];
            /// A message of a chat.
            chat_message(message: MessageId) = "MSG#{message}" lists chat_messages("MSG#")
                => [restored by chats::message_of_chat] as "messages";
            /// The summary of the oldest messages of a chat.
            chat_summary() = "SUMMARY" guards Summary => [restored by chats::summary_of_chat];
        }
        ClientChats = "CLIENTCHAT" (kind: "chats", exported: true, setting: false) {
            /// The chat of a conversation that a client keeps, by the SHA-256 of the conversation so far.
            client_conversation(hash: &str) = "{hash}" deleted "30 days" => [left out];
        }
        Deliveries = "DELIVERY" (kind: "deliveries", exported: false, setting: true) {
            /// The delivery of a message through a channel.
            delivery(id: DeliveryId) = "{id}" lists deliveries(DeliveryId::PREFIX) deleted "30 days" => [left out];
        }
        DocsHooks = "DOCSHOOK" (kind: "docs_hooks", exported: false, setting: true) {
            /// The webhook of a project's living documents, its secret encrypted.
            docs_hook(project: ProjectId) = "{project}" => [left out];
        }
        Exports = "EXPORT" (kind: "exports", exported: false, setting: true) {
            /// An export of the account.
            export(id: ExportId) = "{id}" lists exports(ExportId::PREFIX) deleted "30 days" => [left out];
        }
        Idempotency = "IDEMPOTENCY" (kind: "repeated_requests", exported: false, setting: true) {
            /// A request with an `Idempotency-Key`, by the SHA-256 of the key.
            /// A client's key may contain anything, so its hash is stored.
            idempotency(client_key: &str) = "{hash}" with (hash = hash(client_key)) guards Idempotency
                deleted "24 hours" => [left out];
        }
        /// The records of background jobs, by their due time.
        Jobs = "JOB" (kind: "jobs", exported: false, setting: true) {
            /// A background job: when it was due, whether there was work, and what came of it.
            job_run(due: Timestamp, id: JobId) = "{due}#{id}" with (due = sortable(due))
                lists job_runs("") deleted "35 days after its due time or its last beginning" => [left out];
        }
        ApiKeys = "KEY" (kind: "api_keys", exported: false, setting: true) {
            /// An API key.
            api_key(id: ApiKeyId) = "{id}"
                lists api_keys(ApiKeyId::PREFIX) deleted "when it expires" => [left out];
        }
        Sessions = "LOG" (kind: "logs", exported: true, setting: false) {
            /// A session with agent logs, in the list of all sessions.
            log_session_listed(session: &SessionId, started_at: Timestamp) = "{began}#{session}"
                with (began = sortable(started_at)) lists log_sessions("") => [restored by logs::session_listed];
        }
        Session(session: SessionId as &) = "LOG#{session}" (kind: "logs", exported: true, setting: false) {
            /// The head of a log: its length.
            log_head(agent: &InstanceId) = "HEAD#{agent}" guards LogHead
                lists log_heads("HEAD#") => [restored by logs::head] as "logs";
            /// An agent that works in the background.
            launch(background: &str) = "LAUNCH#{hash}" with (hash = hash(background))
                deleted "30 days" => [restored by logs::launch];
            /// The name given to a prompt without a name, by the prompt's hash.
            given_name(prompt: &str) = "NAME#{prompt}" => [restored by logs::name];
            /// The names given for one short hash.
            given_names(hash: &str) = "NAMES#{hash}" => [restored by logs::names];
            /// The mark that a hook was logged.
            /// Names come from outside and may contain anything, so their hash is stored.
            logged_once(name: &str) = "ONCE#{hash}" with (hash = hash(name)) guards LoggedOnce
                deleted "30 days" => [restored by logs::once];
            /// A session with agent logs.
            log_session() = "SESSION" => [restored by logs::session] as "log_sessions";
            /// An agent's end that came before its launch.
            early_stop(background: &str) = "STOP#{hash}" with (hash = hash(background))
                deleted "30 days" => [restored by logs::stop];
        }
        /// The lines and segments of a log.
        Log(session: SessionId as &, agent: InstanceId as &) = "LOG#{session}#{agent}"
            (kind: "logs", exported: true, setting: false) {
            /// A line of a log.
            log_line(number: u64) = "LINE#{number:012}"
                lists log_lines("LINE#") deleted "when it is moved to the bucket, after 30 days"
                => [restored by logs::line];
            /// Lines of a log that were moved to the bucket.
            log_segment(first: u64) = "SEGMENT#{first:012}"
                lists log_segments("SEGMENT#") => [restored by logs::segment];
        }
        DroppedHooks = "LOGDROPPED" (kind: "logs", exported: true, setting: false) {
            /// The count of hooks that a project's filter dropped, for the UTC day of a time.
            dropped_hook(day: Timestamp, project: ProjectId, agent_type: &str) = "{day}#{project}#{agent_type}"
                with (day = day.strftime("%Y-%m-%d")) lists dropped_hooks("") deleted "48 hours" => [left out];
        }
        HotLogs = "LOGHOT" (kind: "logs", exported: true, setting: false) {
            /// A log with lines that are not in the bucket.
            hot_log(since: Timestamp, session: &SessionId, agent: &InstanceId) = "{since}#{session}#{agent}"
                with (since = sortable(since)) lists hot_logs("") => [restored by logs::hot];
        }
        LogImports = "LOGIMPORT" (kind: "logs", exported: true, setting: false) {
            /// The mark of an import of logs that may have left segments without a log.
            left_log_import(id: ImportId) = "LEFT#{id}" lists left_log_imports("LEFT#") => [left out];
            /// The mark of an import of logs that has not ended.
            open_log_import(id: ImportId) = "OPEN#{id}" guards LogImport
                lists open_log_imports("OPEN#") => [left out];
            /// An import of logs.
            log_import(id: ImportId) = "{id}" deleted "7 days after its end" => [left out] as "log_imports";
        }
        LatestLogs = "LOGLAST" (kind: "logs", exported: true, setting: false) {
            /// The latest session of an agent, in all projects or in one.
            latest_log(project: Option<ProjectId>, agent: &InstanceId) = "{in_project}{agent}"
                with (in_project = project.map_or_else(String::new, |project| format!("{project}#")))
                => [restored by logs::latest];
        }
        /// The sessions that have a log of an agent.
        AgentSessions(agent: InstanceId as &) = "LOGOF#{agent}" (kind: "logs", exported: true, setting: false) {
            /// A session that has a log of an agent.
            /// Such sessions sort by when that log began.
            agent_session(began: Timestamp, session: &SessionId) = "{began}#{session}"
                with (began = sortable(began)) lists agent_sessions("") => [restored by logs::session_of_agent];
        }
        RefusedHooks = "LOGREFUSED" (kind: "logs", exported: true, setting: false) {
            /// The count of refused hooks, for the UTC day of a time.
            refused_hooks_of(day: Timestamp) = "COUNT#{day}" with (day = day.strftime("%Y-%m-%d"))
                deleted "48 hours" => [left out];
            /// A refused hook.
            refused_hook(id: Uuid) = "HOOK#{id}" with (id = id.simple())
                lists refused_hooks("HOOK#") deleted "24 hours" => [left out];
        }
        Memory = "MEMORY" (kind: "memory", exported: true, setting: false) {
            /// The mark that a conversation was active on a UTC day.
            memory_active(part: &MemoryPart) = "ACTIVE#{part}" lists all_memory_active("ACTIVE#")
                deleted "when it is synchronised" => [left out];
            /// What a synchronisation has learned from a conversation, after a clean-up.
            archived_block(date: Date, block: BlockId) = "ARCHIVE#{date}#{block}"
                lists archived_blocks("ARCHIVE#") => [restored by memory::block] as "archived_memory_blocks";
            /// What a synchronisation has learned from a conversation, before a clean-up.
            memory_block(date: Date, block: BlockId) = "BLOCK#{date}#{block}"
                lists memory_blocks("BLOCK#") => [restored by memory::block] as "memory_blocks";
            /// A card about work.
            memory_card(card: CardId) = "CARD#{card}"
                lists memory_cards("CARD#") => [restored by memory::card] as "memory_cards";
            /// The mark that a part of memory has changed.
            memory_changed(part: &MemoryPart) = "CHANGED#{part}" lists all_memory_changed("CHANGED#")
                deleted "when it is indexed" => [left out];
            /// The time of the next synchronisation.
            memory_due() = "DUE" deleted "when nothing is left to do" => [left out];
            /// A fact.
            memory_fact(fact: FactId) = "FACT#{fact}"
                lists memory_facts("FACT#") => [restored by memory::fact] as "facts";
            /// The objects of the search index.
            memory_index() = "INDEX" => [left out];
            /// The latest day that was synchronised, and the latest week that was tidied.
            memory_kept() = "KEPT" => [restored by memory::kept];
            /// The newest version of the long-term memory.
            long_term() = "LONG" => [restored by memory::long_term] as "long_term_memory";
            /// An earlier version of the long-term memory.
            /// The newest 60 are kept.
            long_term_version(version: u64) = "LONGV#{version:010}"
                lists long_term_versions("LONGV#") => [restored by memory::long_term_version];
            /// An outside session.
            outside_session(session: &SessionId) = "SESSION#{session}"
                lists outside_sessions("SESSION#") => [restored by memory::outside_session] as "outside_sessions";
            /// The state of a conversation that was synchronised last.
            learned(source: &Source) = "SOURCE#{source}" lists all_learned("SOURCE#") => [restored by memory::learned];
            /// A clean-up of a week.
            memory_tidy(tidy: TidyId) = "TIDY#{tidy}"
                lists memory_tidies("TIDY#") => [restored by memory::tidy] as "memory_tidies";
            /// What keeps a deleted or corrected fact away.
            tombstone(fact: FactId) = "TOMB#{fact}" lists tombstones("TOMB#") => [restored by memory::tombstone];
            /// The summary of a week.
            memory_week(monday: Date) = "WEEK#{monday}"
                lists memory_weeks("WEEK#") => [restored by memory::week] as "memory_weeks";
        }
        /// The messages of an outside session.
        OutsideSession(session: SessionId as &) = "MEMORY#{session}" (kind: "memory", exported: true, setting: false) {
            /// The mark that a message of an outside session is stored, by the SHA-256 of its id.
            outside_once(id: &str) = "ID#{hash}" with (hash = hash(id)) guards LoggedOnce
                => [restored by memory::outside_once];
            /// A message of an outside session, by the time of its arrival.
            outside_message(arrived: Uuid) = "MSG#{arrived}" with (arrived = arrived.simple())
                lists outside_messages("MSG#") => [restored by memory::outside_message] as "outside_messages";
        }
        Models = "MODELS" (kind: "model_settings", exported: true, setting: true) {
            /// What the owner has chosen about models.
            model_settings() = "SETTINGS" guards ModelSettings
                => [restored by accounts::model_settings] as "model_settings";
        }
        Notices = "NOTICE" (kind: "notices", exported: true, setting: true) {
            /// The mark that everything is to be planned again, after a change of preferences or channels.
            notices_again() = "AGAIN" deleted "when it is planned" => [left out];
            /// The mark that the digest of a date is to be sent.
            notice_digest(date: Date) = "DIGEST#{date}" lists notice_digests("DIGEST#")
                deleted "when it is sent" => [left out];
            /// Something that happened and of which a person is to be told.
            happened(id: NoticeId) = "HAPPENED#{id}" lists all_happened("HAPPENED#")
                deleted "when it is planned" => [left out];
            /// What a person wants to be told.
            preferences() = "PREFERENCES" => [restored by accounts::preferences] as "notice_preferences";
            /// How far the replies in a chat with a bot were read.
            listening(channel: ChannelId) = "REPLIES#{channel}" deleted "with its channel" => [left out];
            /// What was said for a kind, an action and a cause.
            notice_state(key: &NoticeKey) = "STATE#{of}#{kind}#{cause}"
                with (of = or_none(key.action_id), kind = key.kind, cause = key.cause.as_str())
                lists notice_states("STATE#") deleted "35 days after its newest event" => [left out];
            /// The mark that a person is to be told of a run that has come to rest.
            untold(action: ActionId, run: RunId) = "UNTOLD#{action}#{run}" deleted "when it is told" => [left out];
        }
        Outbox = "OUTBOX" (kind: "outbox", exported: false, setting: true) {
            /// An e-mail that was not sent, because the platform has no sender.
            mail(id: DeliveryId) = "{id}" lists mails(DeliveryId::PREFIX) deleted "7 days" => [left out];
        }
        Places = "PLACE" (kind: "places", exported: false, setting: true) {
            /// The mark that runs of the owner wait for a place.
            backlog() = "BACKLOG" deleted "when no run waits" => [left out];
            /// The place with this number of the owner's runs on an executor.
            place(number: u32) = "EXECUTOR#{number:04}" lists places("EXECUTOR#")
                deleted "when it is given back, or 2 days after its lease" => [left out];
            /// The place with this number for an executor that sends the owner's messages.
            message_place(number: u32) = "SENDER#{number:04}" lists message_places("SENDER#")
                deleted "when it is given back, or 2 days after its lease" => [left out];
            /// A run that waits for a place. Its rank is 0 if it was started by hand, otherwise 1.
            backlog_run(by_hand: bool, due_at: Timestamp, run: RunId) = "WAITS#{rank}#{due}#{run}"
                with (rank = u8::from(!by_hand), due = sortable(due_at)) lists backlog_runs("WAITS#")
                deleted "when an executor takes it, or after 2 days" => [left out];
        }
        Practices = "PRACTICE" (kind: "practices", exported: true, setting: false) {
            /// A practice, with a mark of each check-in.
            practice(id: PracticeId) = "{id}"
                lists practices(PracticeId::PREFIX) => [restored by practices::practice] as "practices";
        }
        /// The check-ins of a practice.
        Practice(practice: PracticeId) = "PRACTICE#{practice}" (kind: "practices", exported: true, setting: false) {
            /// A check-in of a practice.
            check_in(day: Date) = "DAY#{day}"
                lists check_ins("DAY#") => [restored by practices::check_in] as "check_ins";
        }
        Projects = "PROJECT" (kind: "projects", exported: true, setting: false) {
            /// A project.
            project(id: ProjectId) = "{id}" guards Project
                lists projects(ProjectId::PREFIX) => [restored by projects::project] as "projects";
        }
        Project(project: ProjectId) = "PROJECT#{project}" (kind: "projects", exported: true, setting: false) {
            /// A change set: edits of a theme that wait to be applied. The edits are an object.
            change_set(id: ChangeSetId) = "CHANGES#{id}" lists change_sets("CHANGES#")
                deleted "30 days after it was changed last" => [left out] as "change_sets";
            /// The commits that a project's living documents do not know yet.
            docs_changelog() = "CHANGELOG" => [restored by projects::docs_changelog] as "docs_changelogs";
            /// A context document.
            document(workflow: &Workflow) = "CONTEXT#{workflow}" guards Document
                lists documents("CONTEXT#") => [restored by projects::document] as "context_documents";
            /// The newest synchronisation of a project's living documents.
            docs_sync() = "DOCSYNC" => [left out];
            /// The state of an enrichment.
            enrichment() = "ENRICHMENT" guards Enrichment => [restored by projects::enrichment];
            /// An import of a theme.
            theme_import(id: ImportId) = "IMPORT#{id}" lists theme_imports("IMPORT#") deleted "7 days"
                => [restored by projects::theme_import] as "theme_imports";
            /// A living document. Its text is an object.
            living_document(name: &DocName) = "LIVING#{name}" lists living_documents("LIVING#")
                => [restored by projects::living_document] as "living_documents";
            /// The state of a theme.
            theme() = "THEME" guards Theme => [restored by projects::theme] as "themes";
            /// A conversation with the theme agent of a project, by its id.
            project_chat(chat: ChatId) = "{chat}"
                lists project_chats(ChatId::PREFIX) => [restored by projects::chat];
        }
        /// The versions of a context document.
        Document(project: ProjectId, workflow: Workflow as &) = "PROJECT#{project}#CONTEXT#{workflow}"
            (kind: "context_documents", exported: true, setting: false) {
            /// The text of a version of a context document.
            document_text(version: u64) = "TEXT#{version:010}"
                deleted "90 days" => [restored by projects::document_text];
            /// A version of a context document.
            document_version(version: u64) = "V#{version:010}" deleted "90 days"
                => [restored by projects::document_version] as "context_document_versions";
        }
        /// The versions of a living document.
        LivingDocument(project: ProjectId, name: DocName as &) = "PROJECT#{project}#LIVING#{name}"
            (kind: "living_documents", exported: true, setting: false) {
            /// A version of a living document. Its text is an object.
            /// The newest 60 are kept.
            living_version(version: u64) = "V#{version:010}" lists living_versions("V#")
                => [restored by projects::living_version] as "living_document_versions";
        }
        /// The files of a theme that came from one import.
        ThemeFiles(project: ProjectId, generation: ImportId) = "PROJECT#{project}#FILES#{generation}"
            (kind: "theme_files", exported: true, setting: false) {
            /// A file of a theme.
            theme_file(path: &str) = "FILE#{path}"
                lists theme_files("FILE#") => [restored by projects::theme_file] as "theme_files";
        }
        Proposals = "PROPOSAL" (kind: "proposals", exported: true, setting: false) {
            /// A proposal.
            proposal(id: ProposalId) = "{id}" guards Proposal
                lists proposals(ProposalId::PREFIX) deleted "30 days" => [left out] as "proposals";
        }
        ProviderKeys = "PROVIDERKEY" (kind: "provider_keys", exported: false, setting: true) {
            /// The key of a model provider, encrypted.
            provider_key(provider: KeyProvider) = "{provider}" lists provider_keys("") => [left out];
        }
        Quota = "QUOTA" (kind: "quota", exported: true, setting: true) {
            /// The requests of a month.
            month_requests(month: Month) = "{month}" guards Quota
                deleted "400 days after the month; after a deletion of the account, when the month ends"
                => [left out];
        }
        /// The list of the runs that no action lists.
        Runs = "RUN" (kind: "runs", exported: true, setting: false) {
            /// The run of a turn, in the list of these runs.
            /// It is created with the run, and written again when the run ends.
            run_listed(id: RunId) = "{id}" lists runs_listed("") deleted "30 days" => [restored by runs::listed];
        }
        Run(run: RunId) = "RUN#{run}" (kind: "runs", exported: true, setting: false) {
            /// The mark that somebody asked a run to stop.
            run_cancel() = "CANCEL" deleted "30 days" => [left out];
            /// An event of a run.
            run_event(event: u64) = "EVENT#{event:010}" guards RunEvent
                lists run_events("EVENT#") deleted "30 days" => [restored by runs::event];
            /// A run.
            run() = "META" guards Run deleted "30 days" => [restored by runs::run] as "runs";
            /// An output of a run.
            run_output(output: u32) = "OUT#{output:04}"
                lists run_outputs("OUT#") deleted "with its action" => [restored by runs::output];
            /// A step of a run: its reply; and with `#0000` and so on, the results of its calls.
            run_step(step: u32, call: Option<u32>) = "STEP#{step:04}{call}"
                with (call = call.map(|call| format!("#{call:04}")).unwrap_or_default()) guards RunStep
                lists run_steps("STEP#") deleted "30 days" => [restored by runs::step];
            /// A message that told a person of a run, and its channels.
            run_told(message: NoticeId) = "TOLD#{message}" lists run_tellings("TOLD#") deleted "30 days" => [left out];
        }
        Secrets = "SECRET" (kind: "secrets", exported: false, setting: true) {
            /// A secret for the calls of actions, encrypted.
            secret(name: &SecretName) = "{name}" lists secrets("") => [left out];
        }
        Servers = "SERVER" (kind: "servers", exported: false, setting: true) {
            /// A model server of the owner, its key encrypted.
            server(name: ServerName) = "{name}" lists servers("") => [left out];
        }
        Spend = "SPEND" (kind: "spending", exported: true, setting: true) {
            /// The spending of a month. `of` names an agent or an action, after a `#`; without it, it is the owner's.
            month_spend(month: Month, of: Option<&str>) = "MONTH#{month}{of}"
                with (of = of.map_or_else(String::new, |of| format!("#{of}"))) guards Spend
                deleted "400 days; after a deletion of the account, the owner's when the month ends"
                => [left out];
            /// The spending of a day.
            spend(day: Date) = "{day}" guards Spend lists spends("")
                deleted "400 days; after a deletion of the account, when the day ends" => [left out];
        }
        /// The use of models in a month.
        Usage(month: Month) = "USAGE#{month}" (kind: "usage", exported: true, setting: true) {
            /// What a model has used on a day. `-` stands for no agent, no action or no provider.
            /// Earlier versions wrote only the day, the agent and the model.
            used(day: Date, agent: &str, action: &str, vendor: &str, model: &ModelId)
                = "{day}#{agent}+{action}#{vendor}/{model}"
                lists used_in("") deleted "400 days" => [restored by accounts::used];
        }
        /// What the watchdog knows of an owner.
        Watchdog = "WATCHDOG" (kind: "watchdog", exported: false, setting: true) {
            /// What the watchdog has said: an alert or a recovery.
            watchdog_alert(look: Timestamp, check: Check, item: &str) = "ALERT#{look}#{check}#{item}"
                with (look = sortable(look), item = hash(item)) lists watchdog_alerts("ALERT#")
                deleted "35 days" => [left out];
            /// The counters and the settings of the watchdog. It is in the index of those whom it looks at.
            watchdog_state() = "STATE" => [left out];
        }
        WatchedSchedules = "WATCHED" (kind: "watched", exported: true, setting: false) {
            /// A schedule that something else runs.
            watched(id: WatchedId) = "{id}"
                lists watched_schedules(WatchedId::PREFIX) => [restored by watched::watched] as "watched";
        }
        /// The reports of a watched schedule.
        Watched(watched: WatchedId) = "WATCHED#{watched}" (kind: "watched", exported: true, setting: false) {
            /// A report about a run of a watched schedule.
            watched_report(report: ReportId) = "REPORT#{report}"
                lists watched_reports("REPORT#") deleted "400 days after it came"
                => [restored by watched::report] as "watched_reports";
        }
    } };
}
pub(super) use records;

/// Keys that are in no partition of an owner.
macro_rules! records_of_nobody {
    ($then:ident) => { $then! {
        /// A circuit breaker of a model. Its name is the provider, a hash of its address and key, and the model.
        /// Processes share it.
        breaker(name: &str) = "BREAKER", "OF#{name}" lists breakers("OF#") deleted "one hour";
        /// When codes were sent to an e-mail address, by the SHA-256 of the address.
        /// It is no data of an owner: all accounts together send few codes to one address.
        codes_to(address: &str) = "CODES#{address}", "SENT" with (address = hash(address)), ()
            deleted "one day after the newest code";
        /// How far the clock of this installation has come, on one machine.
        clock() = "CLOCK", "SEEN";
        /// The deletion of an account.
        /// It is in no partition of the owner, because it is there until all of these are empty.
        deletion(owner: &Owner) = "DELETION#{owner}", "STATE" deleted "when it is done";
        /// The count of a caller's requests in a minute.
        /// It is no data of a person, and also counts callers without credentials.
        requests(caller: &str, class: RouteClass, window: Window) = "RATE#{caller}", "{class}#{minute}"
            with (caller = hash(caller)), (class = class.name(), minute = window.number())
            deleted "10 minutes after it";
        /// What the watchdog knows of the platform, and when it looked last.
        watchdog_of_platform() = "WATCHDOG", "STATE";
        /// When the sweep last ran, rounded down to ten minutes.
        heartbeat_of_sweep() = "WATCHDOG", "SWEEP";
        /// The receipt of a deletion. It names no owner.
        receipt(id: ReceiptId) = "RECEIPT#{id}", "RECEIPT" deleted "90 days after the end of the deletion";
    } };
}

/// Makes the type [`Partition`].
macro_rules! partitions {
    ($(
        $(#[$doc:meta])*
        $partition:ident $(($($field:ident: $type:ty $(as $by:tt)?),+))? = $pk:literal
            (kind: $kind:literal, exported: $exported:literal, setting: $setting:literal) $records:tt
    )*) => {
        /// A partition of an owner's items.
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        pub enum Partition {
            $($(#[$doc])* $partition $(($($type),+))?,)*
        }

        impl Partition {
            /// The partition key.
            #[must_use]
            pub fn of(&self, owner: &Owner) -> String {
                let place = match self {
                    $(Self::$partition $(($($field),+))? => format!($pk),)*
                };
                format!("U#{owner}#{place}")
            }

            /// Reads a partition key without its owner. The opposite of [`Partition::of`].
            #[must_use]
            pub fn parse(place: &str) -> Option<Self> {
                $(if fits($pk, place) {
                    $($(let $field;)+)?
                    #[allow(unused_mut, unused_variables, reason = "many partitions have no fields")]
                    let mut values = values($pk, place);
                    $($($field = <$type>::from_str(values.next()?).ok()?;)+)?
                    return Some(Self::$partition $(($($field),+))?);
                })*
                None
            }

            /// What the items are, for people.
            #[must_use]
            pub const fn kind(&self) -> &'static str {
                match self {
                    $(Self::$partition { .. } => $kind,)*
                }
            }

            /// Whether an export takes the items. Secrets stay here, and so does what only matters while the platform works.
            #[must_use]
            pub const fn is_exported(&self) -> bool {
                match self {
                    $(Self::$partition { .. } => $exported,)*
                }
            }

            /// Whether an account that has such items still counts as empty, because nobody has made them.
            #[must_use]
            pub const fn is_setting(&self) -> bool {
                match self {
                    $(Self::$partition { .. } => $setting,)*
                }
            }

            /// The partitions without fields.
            pub(super) fn without_fields() -> impl Iterator<Item = Self> {
                [$(partition!(@known $partition $(($($field)+))?)),*].into_iter().flatten()
            }
        }
    };
}

macro_rules! partition {
    (@known $partition:ident) => {
        Some(Partition::$partition)
    };
    (@known $partition:ident ($($field:ident)+)) => {
        None
    };
}

/// A kind of record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordKind {
    /// The name of the function that builds its key.
    pub name: &'static str,
    /// What it is.
    pub what: &'static str,
    /// The format of its partition key.
    pub partition: &'static str,
    /// The format of its sort key.
    pub sort: &'static str,
    /// When it is deleted. Empty if it stays until its owner deletes it.
    pub deleted: &'static str,
    /// Whether an import of an account restores it.
    pub is_restored: bool,
    /// What people call it, if it is a thing of its own and not a part of one.
    pub thing: Option<&'static str>,
}

impl RecordKind {
    /// All kinds, by partition key and sort key.
    pub fn all() -> impl Iterator<Item = &'static Self> {
        KINDS.iter().copied().flatten()
    }

    /// The kind of the record with this key.
    #[must_use]
    pub fn of(pk: &str, sk: &str) -> Option<&'static Self> {
        Self::all().find(|kind| fits(kind.partition, pk) && is_kind(kind.sort, sk))
    }
}

/// Whether a partition key has this format: the same words, and a value for each name.
fn fits(format: &str, pk: &str) -> bool {
    let same = |(word, part): (&str, &str)| word.starts_with('{') || word == part;
    format.split('#').count() == pk.split('#').count() && format.split('#').zip(pk.split('#')).all(same)
}

/// The values in a partition key of this format.
fn values<'a>(format: &'a str, pk: &'a str) -> impl Iterator<Item = &'a str> {
    let parts = format.split('#').zip(pk.split('#'));
    parts.filter(|(word, _)| word.starts_with('{')).map(|(_, value)| value)
}

/// Whether a sort key is of the kind with this format. The text before the first `#` decides.
pub(super) fn is_kind(format: &str, sk: &str) -> bool {
    format.starts_with('{') || format.split('#').next() == sk.split('#').next()
}

const fn first(of: &[&'static str]) -> Option<&'static str> {
    match of {
        [] => None,
        [first, ..] => Some(first),
    }
}

/// Makes the list of kinds, and the functions that build keys. `kinds_in!`, `keys_in!` and `restore_in!` read the same entries.
macro_rules! kinds {
    ($(
        $(#[$doc:meta])*
        $partition:ident $(($($fields:tt)*))? = $pk:literal $about:tt $records:tt
    )*) => {
        const KINDS: &[&[RecordKind]] = &[$(kinds_in!($pk $records),)* KINDS_OF_NOBODY];
        $(keys_in!([$partition $(($($fields)*))?] $records);)*
    };
}

macro_rules! kinds_in {
    ($pk:literal {$(
        $(#[doc = $doc:literal])+
        $key:ident $arguments:tt = $sk:literal $(with $with:tt)? $(guards $guard:ident)?
            $(lists $list:ident($prefix:expr))? $(deleted $deleted:literal)? => $fate:tt $(as $thing:literal)?;
    )*}) => {
        &[$(RecordKind {
            name: stringify!($key),
            what: [$($doc),+][0].trim_ascii(),
            partition: concat!("U#{owner}#", $pk),
            sort: $sk,
            deleted: concat!($($deleted)?),
            is_restored: is_restored!($fate),
            thing: first(&[$($thing)?]),
        }),*]
    };
}

macro_rules! is_restored {
    ([restored by $restore:path]) => {
        true
    };
    ([left out]) => {
        false
    };
}

macro_rules! keys_in {
    ($partition:tt {$(
        $(#[doc = $doc:literal])+
        $key:ident $arguments:tt = $sk:literal $(with ($($with:tt)*))? $(guards $guard:ident)?
            $(lists $list:ident($prefix:expr))? $(deleted $deleted:literal)? => $fate:tt $(as $thing:literal)?;
    )*}) => {$(
        key!($(#[doc = $doc])+ $key $partition $arguments ($sk $(, $($with)*)?) $(guards $guard)?);
        $(range!($list of $key $partition $prefix);)?
    )*};
}

macro_rules! key {
    (
        $(#[$doc:meta])+
        $key:ident [$partition:ident $(($($field:ident: $type:ty $(as $by:tt)?),+))?]
            ($($argument:ident: $argument_type:ty),*) ($($sk:tt)*) $(guards $guard:ident)?
    ) => {
        $(#[$doc])+
        #[must_use]
        pub fn $key(owner: &Owner, $($($field: $($by)? $type,)+)? $($argument: $argument_type),*) -> Key {
            let partition = Partition::$partition $(($(<$type>::clone(&$field)),+))?;
            Key::new(partition.of(owner), format!($($sk)*)) $(.guards(Guard::$guard))?
        }
    };
}

macro_rules! range {
    ($list:ident of $key:ident [$partition:ident $(($($field:ident: $type:ty $(as $by:tt)?),+))?] $prefix:expr) => {
        #[doc = concat!("The range of the keys of [`", stringify!($key), "`].")]
        #[must_use]
        pub fn $list(owner: &Owner, $($($field: $($by)? $type),+)?) -> Range {
            Range { pk: Partition::$partition $(($(<$type>::clone(&$field)),+))?.of(owner), prefix: $prefix }
        }
    };
}

/// The same for the records that are in no partition of an owner.
macro_rules! kinds_of_nobody {
    ($(
        $(#[doc = $doc:literal])+
        $key:ident($($argument:ident: $type:ty),*) = $pk:literal, $sk:literal
            $(with ($($pk_with:tt)*), ($($sk_with:tt)*))?
            $(lists $list:ident($prefix:expr))? $(deleted $deleted:literal)?;
    )*) => {
        const KINDS_OF_NOBODY: &[RecordKind] = &[$(RecordKind {
            name: stringify!($key),
            what: [$($doc),+][0].trim_ascii(),
            partition: $pk,
            sort: $sk,
            deleted: concat!($($deleted)?),
            is_restored: false,
            thing: None,
        }),*];
        $(
            $(#[doc = $doc])+
            #[must_use]
            pub fn $key($($argument: $type),*) -> Key {
                Key::new(format!($pk $(, $($pk_with)*)?), format!($sk $(, $($sk_with)*)?))
            }
            $(
                #[doc = concat!("The range of the keys of [`", stringify!($key), "`].")]
                #[must_use]
                pub fn $list() -> Range {
                    Range { pk: $pk.to_owned(), prefix: $prefix }
                }
            )?
        )*
    };
}

records!(partitions);
records!(kinds);
records_of_nobody!(kinds_of_nobody);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partition_key_reads_back() {
        let owner = Owner::new("auth0|me").unwrap();
        let session: SessionId = "s".parse().unwrap();
        let agent: InstanceId = "arch-1".parse().unwrap();
        let workflow: Workflow = "checkout".parse().unwrap();
        let (project, import) = (ProjectId::DEFAULT, ImportId::NONE);
        let with_fields = [
            Partition::AgentSessions(agent.clone()),
            Partition::Document(project, workflow),
            Partition::Log(session.clone(), agent),
            Partition::Practice(PracticeId::from_uuid(Uuid::nil())),
            Partition::Project(project),
            Partition::Session(session),
            Partition::ThemeFiles(project, import),
            Partition::Usage("2026-11".parse().unwrap()),
            Partition::Watched(WatchedId::from_uuid(Uuid::nil())),
        ];
        for partition in with_fields.into_iter().chain(Partition::without_fields()) {
            let key = partition.of(&owner);
            let place = key.strip_prefix("U#auth0|me#").unwrap();
            assert_eq!(Partition::parse(place), Some(partition), "{place}");
        }
        for unknown in ["", "NONE", "ACCOUNT#x", "ACTION#x", "LOG#s#a#b", "USAGE#2026-13"] {
            assert_eq!(Partition::parse(unknown), None, "{unknown}");
        }
    }

    #[test]
    fn a_sort_key_has_the_first_kind_that_fits() {
        let name = |pk, sk| RecordKind::of(pk, sk).map(|kind| kind.name);
        assert_eq!(name("U#me#LOGIMPORT", "OPEN#imp_1"), Some("open_log_import"));
        assert_eq!(name("U#me#LOGIMPORT", "imp_1"), Some("log_import"));
        assert_eq!(name("U#me#RUN#run_1", "STEP#0001#0000"), Some("run_step"));
        assert_eq!(name("U#me#RUN#run_1", "STEPS"), None);
        assert_eq!(name("BREAKER", "OF#x#y#z"), Some("breaker"));
    }
}
