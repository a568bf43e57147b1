//! A search over the names and titles of what an owner has. There is no index: the newest records of each kind are read.

use std::cmp::Reverse;

use domain::ids::{AgentId, Owner};
use domain::text::names;
use domain::validate::FieldErrors;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::{Found, PAGE, all};
use crate::context::Cx;
use crate::error::Result;

/// How many of the newest records of each kind are searched.
const MAX_SEARCHED: usize = 2_000;

/// The most results.
const MAX_RESULTS: usize = 20;

/// The longest query, in characters.
const MAX_QUERY: usize = 200;

/// What to search for.
#[derive(Clone, Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct AskedSearch {
    /// Words, 1 to 200 characters. Each must be a part of the name or title, in any order. Case does not matter.
    #[param(min_length = 1, max_length = 200)]
    #[serde(default)]
    pub q: String,
}

/// What was found.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Hits {
    /// At most 20. First names that begin with the query, then names with a word that does, then others; in each group the newest first.
    pub data: Vec<Hit>,
    /// Whether this is everything. `false` if there are more than 20, or if there are more than 2,000 records of a kind: of these, the
    /// newest are searched.
    pub complete: bool,
}

/// A record whose name or title has the words.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Hit {
    pub kind: HitKind,
    #[schema(example = "act_01938f2a7c5e7d3a9b1f4c6d8e0a2b4c")]
    pub id: String,
    /// The name or title.
    pub title: String,
    /// The agent that it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
}

/// What was found, by its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum HitKind {
    Agent,
    Action,
    Asset,
    Chat,
    Practice,
    Project,
}

/// The query in lower case.
struct Query {
    whole: String,
    words: Vec<String>,
}

/// How well a title fits. The smallest is the best.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fit {
    Begins,
    WordBegins,
    Has,
}

impl Query {
    fn read(text: &str) -> Result<Self> {
        let mut errors = FieldErrors::default();
        errors.length("q", text.trim(), 1, MAX_QUERY);
        errors.into_result(())?;
        let whole = names::folded(text);
        let words = whole.split_whitespace().map(str::to_owned).collect();
        Ok(Self { whole, words })
    }

    fn fit(&self, title: &str) -> Option<Fit> {
        let title = names::folded(title);
        if !self.words.iter().all(|word| title.contains(word.as_str())) {
            return None;
        }
        let begins = |word: &str| self.words.iter().any(|wanted| word.starts_with(wanted.as_str()));
        Some(match title.trim_start() {
            title if title.starts_with(&self.whole) => Fit::Begins,
            title if title.split(|letter: char| !letter.is_alphanumeric()).any(begins) => Fit::WordBegins,
            _ => Fit::Has,
        })
    }
}

/// What was found so far, with its rank.
#[derive(Default)]
struct Ranked {
    hits: Vec<(Fit, Reverse<Timestamp>, Hit)>,
    is_cut: bool,
}

impl Ranked {
    fn add<T>(
        &mut self,
        query: &Query,
        found: Found<T>,
        kind: HitKind,
        of: impl Fn(T) -> (String, String, Option<AgentId>, Timestamp),
    ) {
        self.is_cut |= !found.complete;
        for record in found.data {
            let (id, title, agent_id, at) = of(record);
            if let Some(fit) = query.fit(&title) {
                self.hits.push((fit, Reverse(at), Hit { kind, id, title, agent_id }));
            }
        }
    }
}

/// # Errors
/// 400 if the query is empty or too long.
pub async fn search(cx: &Cx, owner: &Owner, asked: &AskedSearch) -> Result<Hits> {
    let query = Query::read(&asked.q)?;
    let store = &cx.store;
    let (agents, actions, assets, chats, practices, projects) = tokio::try_join!(
        all(MAX_SEARCHED, |after| async move { store.agents(owner, after.as_deref(), PAGE).await }),
        all(MAX_SEARCHED, |after| async move { store.actions(owner, after.as_deref(), PAGE).await }),
        all(MAX_SEARCHED, |after| async move { store.assets(owner, after.as_deref(), PAGE).await }),
        all(MAX_SEARCHED, |after| async move { store.chats(owner, after.as_deref(), PAGE).await }),
        all(MAX_SEARCHED, |after| async move { store.practices(owner, after.as_deref(), PAGE).await }),
        all(MAX_SEARCHED, |after| async move { store.projects(owner, after.as_deref(), PAGE).await }),
    )?;
    let mut ranked = Ranked::default();
    ranked.add(&query, agents, HitKind::Agent, |agent| {
        (agent.agent_id.to_string(), agent.name, None, agent.updated_at)
    });
    ranked.add(&query, actions, HitKind::Action, |action| {
        (action.id.to_string(), action.title, Some(action.agent_id), action.updated_at)
    });
    ranked.add(&query, assets, HitKind::Asset, |asset| {
        (asset.asset_id.to_string(), asset.title, Some(asset.agent_id), asset.updated_at)
    });
    ranked.add(&query, chats, HitKind::Chat, |chat| {
        (chat.chat_id.to_string(), chat.title, chat.agent_id, chat.created_at)
    });
    let practices =
        Found { data: practices.data.into_iter().filter(|of| !of.is_deleted).collect(), ..practices };
    ranked.add(&query, practices, HitKind::Practice, |practice| {
        (practice.practice_id.to_string(), practice.name, None, practice.updated_at)
    });
    ranked.add(&query, projects, HitKind::Project, |project| {
        (project.project_id.to_string(), project.name, None, project.updated_at)
    });
    ranked.hits.sort_by(|(fit, at, hit), (other_fit, other_at, other)| {
        (fit, at, &hit.id).cmp(&(other_fit, other_at, &other.id))
    });
    let complete = !ranked.is_cut && ranked.hits.len() <= MAX_RESULTS;
    let data = ranked.hits.into_iter().take(MAX_RESULTS).map(|(_, _, hit)| hit).collect();
    Ok(Hits { data, complete })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fit(query: &str, title: &str) -> Option<Fit> {
        Query::read(query).unwrap().fit(title)
    }

    #[test]
    fn every_word_must_be_in_the_title() {
        for (query, title, told) in [
            ("oil", "Oil prices", Some(Fit::Begins)),
            (" OIL ", "Lamp-oil prices", Some(Fit::WordBegins)),
            ("il", "Oil prices", Some(Fit::Has)),
            ("prices oil", "Oil prices", Some(Fit::WordBegins)),
            ("oil gas", "Oil prices", None),
            ("ÖL", "Das Öl", Some(Fit::WordBegins)),
            ("%_*\\", "Oil", None),
            ("💡", "💡 Lamp", Some(Fit::Begins)),
            ("oil", "", None),
        ] {
            assert_eq!(fit(query, title), told, "{query} in {title}");
        }
        for wrong in ["", "   ", &"a".repeat(MAX_QUERY + 1)] {
            assert_eq!(Query::read(wrong).map(|_| ()).unwrap_err().code(), "invalid_input");
        }
    }
}
