//! Memory: search it, keep a card about work, correct and delete facts.

use domain::memory::recall::RecalledKind;
use domain::text::quoting::{one_line, quoted};
use domain::tools::memory::{CorrectFact, ForgetFact, MAX_HITS, MemoryDepth, RememberCard, SearchMemory};
use serde_json::{Value, json};
use shared::Error;
use shared::flows::memory::cards::{self, NewCard};
use shared::flows::memory::facts::{self, Correction};
use shared::flows::memory::search::{self, Asked, Depth, HitView};

use super::{Failure, ToolResult, to_json};
use crate::client::Client;

/// The longest text of one hit, in bytes.
const MAX_TEXT: usize = 2_000;

pub async fn search_memory(client: Client, arguments: SearchMemory) -> ToolResult {
    let SearchMemory { query, depth, namespace, limit } = arguments;
    if let Some(limit) = limit.filter(|limit| !(1..=MAX_HITS).contains(limit)) {
        return Err(Failure(format!("limit: must be 1 to {MAX_HITS}, is {limit}")));
    }
    let depth = depth.map(|depth| match depth {
        MemoryDepth::Cards => Depth::Cards,
        MemoryDepth::Memory => Depth::Memory,
        MemoryDepth::Raw => Depth::Raw,
    });
    let asked = Asked { q: query, limit, depth, namespace };
    let found = search::search_for_agent(&client.cx, &client.owner, &asked).await;
    let found = found.map_err(|error| {
        // The argument has another name than the parameter of the route.
        let Failure(text) = Failure::from(error);
        Failure(text.strip_prefix("q: ").map_or(text.clone(), |rest| format!("query: {rest}")))
    })?;
    let hits = found.hits.iter().map(hit).collect::<Result<Vec<Value>, Failure>>()?;
    Ok(json!({ "hits": hits, "stopped_at": to_json(found.stopped_at)? }))
}

/// A hit whose text is quoted: each of its lines begins with `> `.
fn hit(hit: &HitView) -> ToolResult {
    let text = quoted(&hit.text, MAX_TEXT);
    let mut shown = json!({ "kind": to_json(hit.kind)?, "text": text.trim_end() });
    let id = match hit.kind {
        RecalledKind::Card => "card_id",
        RecalledKind::Memory => "fact_id",
        RecalledKind::Raw => "message_id",
    };
    shown[id] = json!(hit.of);
    let more = [
        ("session_id", hit.session_id.clone()),
        ("speaker", hit.speaker.as_deref().map(|speaker| one_line(speaker).into_owned())),
        ("namespace", Some(hit.namespace.clone()).filter(|namespace| !namespace.is_empty())),
        ("date", hit.date.map(|date| date.to_string())),
        ("state", hit.state.map(str::to_owned)),
        ("true_until", hit.until.map(|until| until.to_string())),
    ];
    for (name, value) in more {
        if let Some(value) = value {
            shown[name] = json!(value);
        }
    }
    Ok(shown)
}

pub async fn remember_card(client: Client, arguments: RememberCard) -> ToolResult {
    let RememberCard { title, goal, actions, artifacts, status, next, namespace } = arguments;
    let card = NewCard {
        title,
        at: None,
        goal,
        boundary: String::new(),
        acceptance: String::new(),
        actions,
        artifacts,
        status,
        next,
        namespace,
    };
    to_json(cards::add(&client.cx, &client.owner, &client.once, card).await?)
}

pub async fn correct_fact(client: Client, CorrectFact { fact_id, text }: CorrectFact) -> ToolResult {
    to_json(facts::correct(&client.cx, &client.owner, fact_id, Correction { text }).await?)
}

pub async fn forget_fact(client: Client, ForgetFact { fact_id }: ForgetFact) -> ToolResult {
    let Client { cx, owner, .. } = &client;
    match facts::forget(cx, owner, fact_id).await {
        // The same call again, after its answer was lost.
        Err(Error::NotFound(_)) if facts::is_forgotten(cx, owner, fact_id).await? => {}
        done => done?,
    }
    Ok(json!({ "fact_id": fact_id, "forgotten": true }))
}
