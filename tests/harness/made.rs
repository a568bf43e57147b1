//! Records that HTTP can't create: those of another owner, and proposals, which only a model makes.

#![allow(clippy::unwrap_used, reason = "a test's helpers panic as its body does")]

use domain::accounts::quota::Charge;
use domain::accounts::scopes::Scope;
use domain::actions::Occurrence;
use domain::agents::NewAgent;
use domain::assets::NewAsset;
use domain::ceilings::{Ceiling, CeilingOf};
use domain::chats::{Proposal, ProposalBody};
use domain::ids::{ActionId, AgentId, ChatId, Owner, ProposalId, RunId};
use domain::models::ModelId;
use domain::runs::Reservation;
use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use shared::Cx;
use shared::edge::extract::{Actor, Caller};
use shared::flows::accounts::api_keys;
use shared::flows::actions;
use shared::flows::actions::proposals::{self, Origin};
use shared::flows::agents;
use shared::flows::agents::assets::{self, SaveAsset};
use shared::flows::chats::{self, NewChat};
use shared::store::accounts::spend::Spender;
use shared::store::{Once, Store};
use themes::projects;

use crate::Harness;

/// The owner of the harness's calls.
pub fn local() -> Owner {
    Owner::new("local").unwrap()
}

/// Reserves a part of a day's ceiling, as a call of a model does.
pub async fn reserve(cx: &Cx, owner: &Owner, at: Timestamp, micros: i64, ceiling: i64) -> bool {
    let ceiling = Ceiling { of: CeilingOf::Day, micros: ceiling };
    let writes = Store::reserve_writes(Spender::owner(owner), at, micros, &[ceiling]);
    cx.store.write_all(writes).await.unwrap().done()
}

/// Counts the cost of a call, and returns what it had reserved.
pub async fn settle(cx: &Cx, owner: &Owner, at: Timestamp, reserved: i64, cost: i64) {
    let reservation = Reservation {
        at,
        date: None,
        micros: reserved,
        of: vec![CeilingOf::Day],
        model: ModelId::new("scripted"),
        vendor: None,
        input_tokens: 0,
        rates: None,
    };
    let spender = Spender::owner(owner);
    let writes = Store::settle_writes(spender, Some(&reservation), at, cost, Charge::Included);
    assert!(cx.store.write_all(writes).await.unwrap().done());
}

async fn proposed(cx: &Cx, owner: &Owner, proposal: Proposal) -> ProposalId {
    let writes = Store::proposal_writes(owner, &proposal).unwrap();
    assert!(cx.store.write_all(writes).await.unwrap().done());
    proposal.proposal_id
}

fn origin(cx: &Cx, agent_id: AgentId, chat_id: Option<ChatId>) -> Origin {
    Origin { agent_id, chat_id, run_id: Some(RunId::from_uuid(cx.clock.uuid())) }
}

/// A proposed asset with this content.
pub async fn asset_proposal(h: &Harness, agent: &str, chat: Option<&str>, content: &str) -> ProposalId {
    let cx = &h.platform.cx;
    let origin = origin(cx, agent.parse().unwrap(), chat.map(|chat| chat.parse().unwrap()));
    let asset = NewAsset { title: "Draft".into(), content: content.into(), ..NewAsset::default() };
    let proposal = proposals::of_asset(cx, &local(), origin, asset).await.unwrap();
    proposed(cx, &local(), proposal).await
}

/// A proposed action.
pub async fn action_proposal(h: &Harness, agent: &str) -> ProposalId {
    let cx = &h.platform.cx;
    let draft = serde_json::from_value(json!({
        "title": "Look", "description": "Look at prices", "priority": "high",
        "task_config": {"instructions": "Look", "expected_output": "A list"},
    }));
    let agent = cx.store.agent(&local(), agent.parse().unwrap()).await.unwrap().unwrap().value;
    let (origin, body) = (origin(cx, agent.agent_id, None), ProposalBody::Action(draft.unwrap()));
    let proposal = proposals::of_action(cx, &local(), &agent, origin, body).await.unwrap();
    proposed(cx, &local(), proposal).await
}

/// Actions that nobody has approved, oldest first.
pub async fn drafts(h: &Harness, agent: &str, count: usize) -> Vec<ActionId> {
    let (cx, agent) = (&h.platform.cx, agent.parse().unwrap());
    let mut ids = Vec::new();
    for n in 0..count {
        let defined = serde_json::from_value(json!({
            "title": format!("Draft {n}"), "task_config": {"instructions": "Look", "expected_output": "A list"},
        }));
        let made = actions::define(cx, &local(), &Once::none(), Actor::Person, agent, defined.unwrap()).await;
        ids.push(made.unwrap().action.id);
    }
    ids
}

/// Runs by hand of each of these actions that have not begun, one in each of the next minutes.
pub async fn occurrences(h: &Harness, of: &[ActionId], each: i64) {
    let cx = &h.platform.cx;
    for id in of {
        let action = cx.store.action(&local(), *id).await.unwrap().unwrap().value;
        let made = |n: i64| {
            let at = cx.clock.now() + SignedDuration::from_mins(n);
            let run = RunId::for_occurrence(*id, at);
            Store::create_occurrence(&local(), &Occurrence::manual(&action, run, at)).unwrap()
        };
        assert!(cx.store.write_all((1..=each).map(made).collect()).await.unwrap().done());
    }
}

/// Paths of existing things that belong to another owner.
pub struct Foreign {
    pub agent: String,
    pub action: String,
    pub asset: String,
    pub chat: String,
    pub proposal: String,
    pub api_key: String,
    pub project: String,
}

/// Creates one thing of each kind for the owner `somebody-else`.
pub async fn foreign(h: &Harness) -> Foreign {
    let cx = &h.platform.cx;
    let owner = Owner::new("somebody-else").unwrap();
    let new = NewAgent { name: "Theirs".into(), goal: "An agent".into(), ..NewAgent::default() };
    let agent = agents::create(cx, &owner, &Once::none(), Actor::Person, new).await.unwrap().agent.agent_id;
    let defined = serde_json::from_value(json!({
        "title": "t", "task_config": {"instructions": "Look", "expected_output": "A list"},
    }));
    let action = actions::define(cx, &owner, &Once::none(), Actor::Person, agent, defined.unwrap())
        .await
        .unwrap()
        .action
        .id;
    let save = SaveAsset { title: Some("t".into()), content: Some("c".into()), ..SaveAsset::default() };
    let asset = assets::save(cx, &owner, &Once::none(), agent, save).await.unwrap().asset.asset_id;
    let chat =
        chats::create(cx, &owner, &Once::none(), agent, NewChat::default()).await.unwrap().chat.chat_id;
    let asset_draft = NewAsset { title: "t".into(), content: "c".into(), ..NewAsset::default() };
    let draft = proposals::of_asset(cx, &owner, origin(cx, agent, None), asset_draft).await.unwrap();
    let proposal = proposed(cx, &owner, draft).await;
    let new_key = api_keys::NewApiKey { name: "theirs".into(), expires_in_days: None, scopes: None };
    let caller = Caller { owner: owner.clone(), scope: Scope::Admin, key: None };
    let key = api_keys::create(cx, &caller, &Once::none(), new_key).await.unwrap().key.key_id;
    let new_project = serde_json::from_value(json!({"name": "theirs"})).unwrap();
    let project = projects::create(cx, &owner, &Once::none(), new_project).await.unwrap().project.project_id;
    Foreign {
        agent: format!("/agents/{agent}"),
        action: format!("/actions/{action}"),
        asset: format!("/assets/{asset}"),
        chat: format!("/chats/{chat}"),
        proposal: format!("/proposals/{proposal}"),
        api_key: format!("/account/api-keys/{key}"),
        project: format!("/projects/{project}"),
    }
}
