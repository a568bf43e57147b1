//! The keys of the table.
//!
//! `records` lists every kind of record. It makes the function that builds the key of a record, and of most ranges. Here are
//! the ranges of several kinds, keys that depend on more than one kind, and what reads keys.
//!
//! The index `due` has the items that must be processed at a certain time (actions, the runs of chat turns, the marks that
//! runs of an owner wait, and exports, imports and deletions of accounts). Its keys are `shard` (of 16) and `due_at` (a time of fixed width, so that the
//! text sorts like the time).

use domain::accounts::quota::Month;
use domain::chats::Thread;
use domain::context::Workflow;
use domain::ids::{ActionId, AgentId, ChatId, MessageId, Owner, ProjectId, RunId};
use domain::log::SessionId;
use domain::models::{ModelId, UsedModel};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::due_item::{DueItem, DueTarget};

pub use super::record_kinds::*;
pub use super::table::key::{Guard, Key, Range, sortable};
use super::table::key::{NONE, or_none};

/// The name of the index over all owners' due items.
pub const DUE_INDEX: &str = "due";

/// The number of partitions of the index. A sweep reads each of them every minute, even if nothing is due, so they
/// cause the cost of the sleeping platform. Each accepts about 500 leases per second, and a lease writes to it twice.
pub const SHARDS: u32 = 16;

/// The marks of what belongs to an agent. `prefix` is the id prefix of a kind, or empty for all kinds.
#[must_use]
pub fn agent_children(owner: &Owner, agent: AgentId, prefix: &'static str) -> Range {
    Range { pk: Partition::Agent(agent).of(owner), prefix }
}

/// Everything that belongs to an action.
#[must_use]
pub fn action_children(owner: &Owner, action: ActionId) -> Range {
    Range { pk: Partition::Action(action).of(owner), prefix: "" }
}

/// Everything that belongs to a chat. `prefix` selects a kind, or is empty for all kinds.
#[must_use]
pub fn chat_children(owner: &Owner, chat: ChatId, prefix: &'static str) -> Range {
    Range { pk: Partition::Chat(chat).of(owner), prefix }
}

#[must_use]
pub fn message(owner: &Owner, thread: Thread, message: MessageId) -> Key {
    match thread {
        Thread::Action(id) => action_message(owner, id, message),
        Thread::Chat(id) => chat_message(owner, id, message),
    }
}

#[must_use]
pub fn summary(owner: &Owner, thread: Thread) -> Key {
    match thread {
        Thread::Action(id) => action_summary(owner, id),
        Thread::Chat(id) => chat_summary(owner, id),
    }
}

#[must_use]
pub fn messages(owner: &Owner, thread: Thread) -> Range {
    match thread {
        Thread::Action(id) => action_messages(owner, id),
        Thread::Chat(id) => chat_messages(owner, id),
    }
}

#[must_use]
pub fn live_turn(owner: &Owner, thread: Thread) -> Key {
    match thread {
        Thread::Action(id) => action_live_turn(owner, id),
        Thread::Chat(id) => chat_live_turn(owner, id),
    }
}

/// Everything that belongs to a run.
#[must_use]
pub fn run_children(owner: &Owner, id: RunId) -> Range {
    Range { pk: Partition::Run(id).of(owner), prefix: "" }
}

/// The beginning of the sort keys of a month's alerts.
#[must_use]
pub fn alerts_of(month: Month) -> String {
    format!("ALERT#{month}#")
}

/// The beginning of the sort keys of what was said of an action.
#[must_use]
pub fn notice_states_of(action: ActionId) -> String {
    format!("STATE#{action}#")
}

/// The items in a project's partition, which are deleted with it. `prefix` selects a kind, or is empty for all kinds.
#[must_use]
pub fn project_children(owner: &Owner, project: ProjectId, prefix: &'static str) -> Range {
    Range { pk: Partition::Project(project).of(owner), prefix }
}

/// Everything of a session except its logs' lines and segments.
#[must_use]
pub fn log_session_all(owner: &Owner, session: &SessionId) -> Range {
    Range { pk: Partition::Session(session.clone()).of(owner), prefix: "" }
}

/// The messages of an outside session, and their marks.
#[must_use]
pub fn outside_session_all(owner: &Owner, session: &SessionId) -> Range {
    Range { pk: Partition::OutsideSession(session.clone()).of(owner), prefix: "" }
}

/// The number of the line under this sort key.
#[must_use]
pub fn log_number(sort_key: &str) -> Option<u64> {
    sort_key.strip_prefix("LINE#")?.parse().ok()
}

/// The parts of a sort key of [`dropped_hook`]: the day, the project and the agent type.
#[must_use]
pub fn dropped_parts(sort_key: &str) -> Option<(&str, ProjectId, &str)> {
    let (day, rest) = sort_key.split_once('#')?;
    let (project, agent_type) = rest.split_once('#')?;
    Some((day, project.parse().ok()?, agent_type))
}

/// The versions of a document. With the prefix `V#` without their texts, with an empty one including them.
#[must_use]
pub fn document_versions(
    owner: &Owner,
    project: ProjectId,
    workflow: &Workflow,
    prefix: &'static str,
) -> Range {
    Range { pk: Partition::Document(project, workflow.clone()).of(owner), prefix }
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
    used(owner, Month::of(day), day, &or_none(agent), &or_none(action), &or_none(*vendor), model)
}

#[must_use]
pub fn usage_of_month(owner: &Owner, month: jiff::civil::Date) -> Range {
    used_in(owner, Month::of(month))
}

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

/// The number of the place under this sort key.
#[must_use]
pub fn place_number(sort_key: &str) -> Option<u32> {
    let number = sort_key.strip_prefix("EXECUTOR#").or_else(|| sort_key.strip_prefix("SENDER#"));
    number?.parse().ok()
}

/// The partition of the `due` index for an item that an owner has once.
#[must_use]
pub fn shard_of_owner(owner: &Owner) -> String {
    shard_name(shard_number_of_owner(owner))
}

/// The same as a number.
#[must_use]
pub fn shard_number_of_owner(owner: &Owner) -> u32 {
    u32::from(Sha256::digest(owner.as_str().as_bytes())[0]) % SHARDS
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

/// The partition of the `due` index for an owner whom the watchdog looks at. No sweep reads these partitions.
#[must_use]
pub fn watched_shard(shard: u32) -> String {
    format!("watch-{shard:02}")
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
        DueTarget::Memory => memory_due(&item.owner),
        DueTarget::Occurrence { action, run } => untold(&item.owner, action, run),
        // Of several entries of an owner, any one brings the executor to all of them.
        DueTarget::Notices => notices_again(&item.owner),
        DueTarget::Delivery(id) => delivery(&item.owner, id),
        DueTarget::Replies(id) => listening(&item.owner, id),
        DueTarget::Watchdog => watchdog_state(&item.owner),
        DueTarget::Docs(project) => docs_sync(&item.owner, project),
    }
}

/// The item of a key from the `due` index.
#[must_use]
pub fn parse_due(key: &Key) -> Option<DueItem> {
    if let Some(owner) = key.pk.strip_prefix("DELETION#").filter(|_| key.sk == "STATE") {
        return Some(DueItem::deletion(&Owner::new(owner).ok()?));
    }
    let part = key.pk.strip_prefix("U#")?;
    if let Some(owner) = part.strip_suffix("#ACTION") {
        return Some(DueItem::action(&Owner::new(owner).ok()?, key.sk.parse().ok()?));
    }
    if let Some(owner) = part.strip_suffix("#NOTICE")
        && let Some((action, run)) = key.sk.strip_prefix("UNTOLD#").and_then(|of| of.split_once('#'))
    {
        let (action, run) = (action.parse().ok()?, run.parse().ok()?);
        return Some(DueItem::occurrence(&Owner::new(owner).ok()?, action, run));
    }
    if let Some(owner) = part.strip_suffix("#NOTICE")
        && let Some(channel) = key.sk.strip_prefix("REPLIES#")
    {
        return Some(DueItem::replies(&Owner::new(owner).ok()?, channel.parse().ok()?));
    }
    if let Some(owner) = part.strip_suffix("#NOTICE").filter(|_| is_of_notices(&key.sk)) {
        return Some(DueItem::notices(&Owner::new(owner).ok()?));
    }
    if let Some(owner) = part.strip_suffix("#DELIVERY") {
        return Some(DueItem::delivery(&Owner::new(owner).ok()?, key.sk.parse().ok()?));
    }
    if let Some(owner) = part.strip_suffix("#EXPORT") {
        return Some(DueItem::export(&Owner::new(owner).ok()?, key.sk.parse().ok()?));
    }
    if let Some(owner) = part.strip_suffix("#ACCOUNT").filter(|_| key.sk == "IMPORT") {
        return Some(DueItem::import(&Owner::new(owner).ok()?));
    }
    if let Some(owner) = part.strip_suffix("#WATCHDOG").filter(|_| key.sk == "STATE") {
        return Some(DueItem::watchdog(&Owner::new(owner).ok()?));
    }
    if let Some(owner) = part.strip_suffix("#MEMORY").filter(|_| key.sk == "DUE") {
        return Some(DueItem::memory(&Owner::new(owner).ok()?));
    }
    if let Some(owner) = part.strip_suffix("#PLACE").filter(|_| key.sk == "BACKLOG") {
        return Some(DueItem::backlog(&Owner::new(owner).ok()?));
    }
    if let Some((owner, project)) = part.rsplit_once("#PROJECT#").filter(|_| key.sk == "DOCSYNC") {
        return Some(DueItem::docs(&Owner::new(owner).ok()?, project.parse().ok()?));
    }
    let (owner, id) = part.rsplit_once("#RUN#").filter(|_| key.sk == "META")?;
    Some(DueItem::run(&Owner::new(owner).ok()?, id.parse().ok()?))
}

/// Whether this is the sort key of something that [`DueTarget::Notices`] looks at.
fn is_of_notices(sort_key: &str) -> bool {
    ["AGAIN", "DIGEST#", "HAPPENED#", "STATE#"].iter().any(|prefix| sort_key.starts_with(prefix))
}

/// Whether this partition key is that of a deletion. Every write of a deletion includes an item with such a key.
#[must_use]
pub fn is_of_a_deletion(pk: &str) -> bool {
    pk.starts_with("DELETION#")
}

#[cfg(test)]
mod tests {
    use domain::ids::{ChannelId, DeliveryId, ExportId, NoticeId};
    use domain::notices::{Cause, NoticeKey, NoticeKind};
    use jiff::Timestamp;

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
            .map(|(by_hand, due, id)| backlog_run(&owner, by_hand, at(due), run(id)).sk);
        assert!(keys.is_sorted(), "{keys:?}");
        assert_eq!(place_number(&place(&owner, 800).sk), Some(800));
        assert_eq!(place_number(&message_place(&owner, 2).sk), Some(2));
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
        for project in [ProjectId::DEFAULT, ProjectId::from_uuid(Uuid::from_u128(13))] {
            let docs = DueItem::docs(&owner, project);
            assert_eq!(parse_due(&due_key(&docs)), Some(docs));
        }
        let of_occurrence = DueItem::occurrence(&owner, id, of_run);
        assert_eq!(parse_due(&due_key(&of_occurrence)), Some(of_occurrence));
        let of_replies = DueItem::replies(&owner, ChannelId::from_uuid(Uuid::from_u128(11)));
        assert_eq!(parse_due(&due_key(&of_replies)), Some(of_replies));
        let of_delivery = DueItem::delivery(&owner, DeliveryId::from_uuid(Uuid::from_u128(10)));
        assert_eq!(parse_due(&due_key(&of_delivery)), Some(of_delivery));
        let cause = NoticeKey { kind: NoticeKind::Failed, action_id: Some(id), cause: Cause::new("timeout") };
        let happened = happened(&owner, NoticeId::from_uuid(Uuid::from_u128(11)));
        let of_date = notice_digest(&owner, jiff::civil::date(2026, 11, 26));
        for key in [notices_again(&owner), notice_state(&owner, &cause), happened, of_date] {
            assert_eq!(parse_due(&key), Some(DueItem::notices(&owner)), "{key:?}");
        }
        assert!(notice_state(&owner, &cause).sk.starts_with(&notice_states_of(id)));
        assert_eq!(parse_due(&preferences(&owner)), None);
        assert_eq!(parse_due(&action_message(&owner, id, MessageId::from_uuid(Uuid::from_u128(12)))), None);
        assert_eq!(parse_due(&account(&owner)), None);
        assert_eq!(parse_due(&place(&owner, 1)), None);
        assert_eq!(parse_due(&run_event(&owner, of_run, 1)), None);
        assert_eq!(parse_due(&Key::new("U#x#AGENT".into(), id)), None);
    }
}
