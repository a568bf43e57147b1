//! Compares what a run is told with what an approval binds, for every field of an action and of an agent.

use jiff::Timestamp;
use serde::de::{DeserializeOwned, Deserializer, Error, Visitor};
use serde_json::{Value, json};
use uuid::Uuid;

use super::*;
use crate::actions::samples::approved;
use crate::actions::{Action, AskedBudget, Budget};
use crate::agents::{Agent, AgentBudget, NewAgent};
use crate::ids::AgentId;
use crate::tools::{LOOP, offered};
use crate::work::TaskConfig;

/// Reads nothing. It notes the fields that a type asks for.
struct Fields<'a>(&'a mut &'static [&'static str]);

impl<'de> Deserializer<'de> for Fields<'_> {
    type Error = serde_json::Error;

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Self::Error> {
        *self.0 = fields;
        Err(Error::custom("only the fields are wanted"))
    }

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Self::Error> {
        Err(Error::custom("the type is no struct"))
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf option unit unit_struct newtype_struct seq
        tuple tuple_struct map enum identifier ignored_any
    }
}

fn fields<T: DeserializeOwned>() -> &'static [&'static str] {
    let mut fields: &'static [&'static str] = &[];
    assert!(T::deserialize(Fields(&mut fields)).is_err() && !fields.is_empty());
    fields
}

/// What a change of a field does to what a run is told, and to the hash that an approval binds.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Does {
    /// Both change.
    Both,
    /// Neither changes. It decides nothing of a run, or decides it in the way that the text says.
    Neither(&'static str),
    /// The hash alone changes. The text says what the field decides, although no model is told of it.
    HashAlone(&'static str),
}
use Does::{Both, HashAlone, Neither};

/// Fields with other values than those of [`action`]: each with what they change.
fn of_action() -> Vec<(&'static str, Value, Does)> {
    let state = Neither("what has happened so far");
    let sweep = Neither("a mark of the sweep");
    let id = json!("act_00000000000000000000000000000009");
    vec![
        ("action_id", id, Neither("a name")),
        (
            "agent_id",
            json!("agt_00000000000000000000000000000009"),
            Neither("a name; the agent's fields are bound"),
        ),
        ("title", json!("Other"), Both),
        ("description", json!("Other"), Both),
        ("priority", json!("low"), Neither("how lists are sorted")),
        ("task_config.instructions", json!("Other"), Both),
        ("task_config.expected_output", json!("Other"), Both),
        ("schedule", json!({"every": "2h"}), HashAlone("when it runs")),
        ("schedule", json!({"every": "1h", "timezone": "Asia/Tokyo"}), Both),
        ("grants", json!(["generate_actions"]), Both),
        ("max_uses", json!({"web_search": 3}), Both),
        ("model_tier", json!("deep"), HashAlone("which model is asked, and what it costs")),
        ("budget.per_run_micros", json!(5), HashAlone("what it may cost")),
        ("budget.per_month_micros", json!(5), HashAlone("what it may cost")),
        ("conditions", json!([{"kind": "min_words", "words": 2}]), Both),
        ("conditions", json!([{"kind": "min_words", "words": 3}]), Both),
        ("conditions", json!([{"kind": "names_today"}]), Both),
        ("conditions", json!([{"kind": "headings", "headings": ["a"]}]), Both),
        ("conditions", json!([{"kind": "json", "schema": {"type": "object"}}]), Both),
        ("conditions", json!([{"kind": "links_only_to", "hosts": ["a.com"]}]), Both),
        ("watches", json!([{"kind": "url", "url": "https://a.com"}]), HashAlone("whether it runs")),
        (
            "watches",
            json!([{"kind": "url", "url": "https://a.com", "pointer": "/a"}]),
            HashAlone("whether it runs"),
        ),
        ("watches", json!([{"kind": "feed", "url": "https://a.com"}]), HashAlone("whether it runs")),
        ("call", json!({"url": "https://a.com"}), HashAlone("what it sends; no model is asked")),
        (
            "call",
            json!({"url": "https://a.com", "method": "PUT"}),
            HashAlone("what it sends; no model is asked"),
        ),
        ("call", json!({"url": "https://a.com", "body": "x"}), HashAlone("what it sends; no model is asked")),
        (
            "call",
            json!({"url": "https://a.com", "headers": {"x-a": "1"}}),
            HashAlone("what it sends; no model is asked"),
        ),
        ("state", json!("completed"), state),
        ("approval", json!(null), state),
        ("anchor", json!("2026-11-20T12:00:00Z"), state),
        ("next_due", json!("2027-11-20T12:00:00Z"), state),
        ("last_due", json!("2026-11-20T12:00:00Z"), state),
        ("found_at", json!("2026-11-20T12:00:00Z"), sweep),
        ("found_until", json!("2026-11-20T12:00:00Z"), sweep),
        ("live_run", json!("run_00000000000000000000000000000009"), state),
        ("queued", json!(2), state),
        (
            "held",
            json!({"times": 1, "first_due_at": "2026-11-20T12:00:00Z", "last_due_at": "2026-11-20T12:00:00Z"}),
            state,
        ),
        (
            "preflight",
            json!({"due_at": "2026-11-20T12:00:00Z", "checked_at": "2026-11-20T12:00:00Z", "problems": []}),
            state,
        ),
        ("preflighted", json!("2026-11-20T12:00:00Z"), sweep),
        (
            "failures",
            json!({"times": 1, "code": "error", "cause": "", "run_id": "run_00000000000000000000000000000009", "at": "2026-11-20T12:00:00Z"}),
            state,
        ),
        ("same_outputs", json!(2), state),
        ("paused_because", json!({"code": "asked", "text": "x"}), state),
        ("paused_at", json!("2026-11-20T12:00:00Z"), state),
        ("paused", json!(true), state),
        ("version", json!(99), Neither("counts changes")),
        (
            "created_at",
            json!("2026-11-20T12:00:00Z"),
            Neither("since when changes are told to its first run, as data"),
        ),
        ("updated_at", json!("2026-11-29T12:00:00Z"), state),
    ]
}

/// The same for [`agent`].
fn of_agent() -> Vec<(&'static str, Value, Does)> {
    let project = json!("prj_00000000000000000000000000000009");
    let chats = Neither("only conversations use it");
    vec![
        ("agent_id", json!("agt_00000000000000000000000000000009"), Neither("a name")),
        ("name", json!("Other"), Both),
        ("goal", json!("Other"), Both),
        ("success_criteria", json!("Other"), Both),
        ("timeline", json!("Other"), Both),
        ("instructions", json!("Other"), Both),
        ("docs_project_id", project.clone(), Both),
        ("theme_project_id", project, Both),
        ("status", json!("paused"), Neither("whether anything runs at all")),
        ("model_tier", json!("deep"), chats),
        ("budget.per_run_micros", json!(5), chats),
        ("budget.per_month_micros", json!(5), Neither("a further ceiling of what all its runs may cost")),
        ("provider_tools", json!(["web_search"]), chats),
        ("timezone", json!("Asia/Tokyo"), Neither("the zone of the schedule counts")),
        ("created_at", json!("2026-11-20T12:00:00Z"), Neither("when it was made")),
        ("updated_at", json!("2026-11-29T12:00:00Z"), Neither("when it was changed")),
    ]
}

fn action() -> Action {
    approved(&json!({"every": "1h"}))
}

fn agent() -> Agent {
    let new = NewAgent { name: "Watch".into(), goal: "Watches prices".into(), ..NewAgent::default() };
    new.into_agent(AgentId::from_uuid(Uuid::from_u128(1)), Timestamp::UNIX_EPOCH).unwrap()
}

/// All that a model is told, and all tools that it has.
fn told(content: &ApprovalContent) -> String {
    let of_table = offered(LOOP, setting(content)).map(|tool| tool.name);
    let of_projects = content.agent.tools().map(|tool| tool.name);
    let tools: Vec<_> = of_table.chain(of_projects).collect();
    let message = message(content, Found::default());
    let zone = zone(content).map(|zone| zone.iana_name().map(str::to_owned));
    let (system, check) = (system(content), to_check(content, ""));
    format!("{system:?} {message:?} {check} {tools:?} {:?} {zone:?}", content.max_uses)
}

/// `value` with another value of one field, such as `budget.per_run_micros`.
fn with<T: serde::Serialize + DeserializeOwned>(value: &T, field: &str, other: &Value) -> T {
    let mut json = json!(value);
    let mut at = &mut json;
    for part in field.split('.') {
        at = &mut at[part];
    }
    assert_ne!(at, other, "{field} has this value already");
    *at = other.clone();
    serde_json::from_value(json).unwrap_or_else(|error| panic!("{field}: {error}"))
}

fn check(field: &str, does: Does, was: &ApprovalContent, is: &ApprovalContent) {
    let found = match (told(was) != told(is), was.hash() != is.hash()) {
        (true, true) => Both,
        (false, false) => Neither(""),
        (false, true) => HashAlone(""),
        (true, false) => panic!("{field} changes what a run is told, and no approval binds it"),
    };
    let same = std::mem::discriminant(&found) == std::mem::discriminant(&does);
    assert!(same, "{field}: {found:?}, and not {does:?}");
}

fn every_field_is_listed<T: DeserializeOwned>(prefix: &str, list: &[(&str, Value, Does)]) {
    for field in fields::<T>() {
        let (name, part) = (format!("{prefix}{field}"), format!("{prefix}{field}."));
        let is_listed = list.iter().any(|(listed, ..)| *listed == name || listed.starts_with(&part));
        assert!(is_listed, "{name} is not in the list above: does it decide what a run is told?");
    }
}

#[test]
fn a_run_is_told_what_the_approval_binds() {
    let (action, agent, of_action, of_agent) = (action(), agent(), of_action(), of_agent());
    every_field_is_listed::<Action>("", &of_action);
    every_field_is_listed::<TaskConfig>("task_config.", &of_action);
    every_field_is_listed::<Budget>("budget.", &of_action);
    every_field_is_listed::<AskedBudget>("budget.", &of_action);
    every_field_is_listed::<Agent>("", &of_agent);
    every_field_is_listed::<AgentBudget>("budget.", &of_agent);
    let was = ApprovalContent::now(&action, &agent);
    for (field, other, does) in &of_action {
        check(field, *does, &was, &ApprovalContent::now(&with(&action, field, other), &agent));
    }
    for (field, other, does) in &of_agent {
        check(field, *does, &was, &ApprovalContent::now(&action, &with(&agent, field, other)));
    }
}

/// Without a schedule, a run names times in the zone of its agent, so the approval binds that zone.
#[test]
fn the_zone_of_the_agent_is_bound_if_there_is_no_schedule() {
    let (action, agent) = (approved(&Value::Null), agent());
    let was = ApprovalContent::now(&action, &agent);
    let moved = with(&agent, "timezone", &json!("Asia/Tokyo"));
    check("timezone", Both, &was, &ApprovalContent::now(&action, &moved));
    assert_eq!(zone(&was), None, "the zone of the account");
}

/// Each value is told or done in a way of its own.
#[test]
fn no_two_values_of_a_field_have_one_hash() {
    let (action, agent) = (action(), agent());
    let mut hashes = vec![ApprovalContent::now(&action, &agent).hash()];
    for (field, other, does) in of_action() {
        if !matches!(does, Neither(_)) {
            hashes.push(ApprovalContent::now(&with(&action, field, &other), &agent).hash());
        }
    }
    let all = hashes.len();
    hashes.sort();
    hashes.dedup();
    assert_eq!(hashes.len(), all);
}
