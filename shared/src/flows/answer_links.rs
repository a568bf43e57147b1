//! Answers by the link in a message: what it asks now, and the answer.
//!
//! Nobody is signed in. The token says whose question it is, and each answer binds what its reader has seen: the hash of the call or of the
//! approval, or the state of the run that has asked. A question is answered once, because then it no longer waits.

use domain::accounts::scopes::Scope;
use domain::actions::{ActionState, OccurrenceState, ReasonCode};
use domain::agent_loop::CallId;
use domain::agent_loop::cards::{self, Answer, Asks, Card};
use domain::ids::{ActionId, Owner, RunId};
use domain::models::{Block, Role};
use domain::notices::answer_link::{AnswerLink, AnswerTo};
use domain::validate::FieldErrors;

use crate::agent_loop::journal;
use crate::context::Cx;
use crate::error::{Error, Result};
use crate::flows::actions::{self, ApprovalView, Loaded};
use crate::flows::runs::{CardView, answers};
use crate::flows::{existing, messages, turn};
use crate::request::caller::{Actor, Caller};
use crate::store::Once;
use crate::store::notices::ChannelState;

/// What is asked, as it is now.
#[derive(Debug)]
pub struct Asked {
    /// The name of the action or of the agent.
    pub title: String,
    pub questions: Vec<Question>,
}

/// One question of a page.
#[derive(Debug)]
pub enum Question {
    /// An action waits for its approval.
    Approval { view: Box<ApprovalView>, schedule: Option<String> },
    /// A run has asked in words, and wants an answer in words.
    Words { text: String, seen: String },
    /// A run asks whether it may make a call.
    Call { card: Box<CardView> },
    /// Only the console can answer it: a ceiling of costs, or a call whose outcome is not known.
    Elsewhere { why: String },
}

/// What the reader has pressed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    Approve { hash: String },
    Words { text: String, seen: String },
    Call { call: CallId, hash: String, allows: bool },
}

/// # Errors
/// 404 if the platform has not made the token, if it no longer works, or if what it is about does not exist any more.
pub async fn asked(cx: &Cx, token: &str) -> Result<Asked> {
    let (owner, link) = opened(cx, token).await?;
    match link.to {
        AnswerTo::Action(action) => of_action(cx, &owner, action).await,
        AnswerTo::Run(run) => of_run(cx, &owner, run).await,
    }
}

/// Stores the answer. `said` is read only if the link works.
///
/// # Errors
/// As [`asked`]; 400 if `said` can't be read; 409 if the question is another one now, or was answered.
pub async fn answer(cx: &Cx, token: &str, said: impl FnOnce() -> Result<Said>) -> Result<()> {
    let (owner, link) = opened(cx, token).await?;
    let said = said()?;
    let once = Once::none();
    match (link.to, said) {
        (AnswerTo::Action(action), Said::Approve { hash }) => {
            let by = Actor::Channel(link.channel);
            actions::approve(cx, &owner, &once, by, action, &hash).await.map(drop)
        }
        (AnswerTo::Run(run), Said::Call { call, hash, allows }) => {
            let found = existing::run(cx, &owner, run).await?.value;
            let is_here = |card: &&Card| card.call_id == call && card.asks == Asks::Permission;
            found.cards.iter().find(is_here).ok_or(Error::NotFound("call"))?;
            let caller = Caller { owner, scope: Scope::Write, key: None };
            let said = match allows {
                true => Answer::Approve { hash: Some(hash), raise_by_micros: None },
                false => Answer::Reject { reason: None },
            };
            answers::answer(cx, &caller, &once, run, call, &said).await.map(drop)
        }
        (AnswerTo::Run(run), Said::Words { text, seen }) => {
            turn::check("answer", &text)?;
            let action = existing::run(cx, &owner, run).await?.value.action_id;
            let action = action.ok_or(Error::NotFound("question"))?;
            let (waits, version) = waiting(cx, &owner, action, run).await?;
            if waits.filter(|(_, now)| *now == seen).is_none() {
                let told = "the question was answered, or the run asks something else now";
                return Err(Error::conflict("already_answered", told));
            }
            let message = messages::new(cx, Role::User, vec![Block::text(text)], None);
            actions::answer(cx, &owner, &once, action, version, message).await
        }
        _ => Err(FieldErrors::one("answer", "is not an answer to this question").into()),
    }
}

/// The owner and the link of a token that works.
async fn opened(cx: &Cx, token: &str) -> Result<(Owner, AnswerLink)> {
    let unknown = || Error::NotFound("link");
    let (owner, link) = cx.provider_keys.answer_of_token(token).await?.ok_or_else(unknown)?;
    let now = cx.clock.now();
    // Whoever deletes or switches off a channel ends what was sent there.
    let channel = cx.store.channel(&owner, link.channel).await?.ok_or_else(unknown)?;
    let works = link.until > now && channel.value.state == ChannelState::Enabled;
    let is_there = cx.deletions.of(&cx.store, &owner, now).await?.is_none();
    if works && is_there { Ok((owner, link)) } else { Err(unknown()) }
}

async fn of_action(cx: &Cx, owner: &Owner, id: ActionId) -> Result<Asked> {
    let action = actions::read(cx, owner, id).await?;
    let view = actions::approval(cx, owner, id).await?;
    let waits = action.action.needs_approval(&view.approval_hash);
    let schedule = action.schedule_text.clone();
    let question = if view.current.call.is_some() {
        Question::Elsewhere {
            why: "It sends a request. Its headers and its body are shown in the console.".to_owned(),
        }
    } else if !view.current.max_uses.is_empty() {
        // Whether the provider of its model offers a tool is asked where models are known.
        Question::Elsewhere { why: "It may use tools of its model's provider.".to_owned() }
    } else {
        Question::Approval { view: Box::new(view), schedule }
    };
    Ok(Asked { title: action.action.title, questions: Vec::from_iter(waits.then_some(question)) })
}

async fn of_run(cx: &Cx, owner: &Owner, id: RunId) -> Result<Asked> {
    let run = existing::run(cx, owner, id).await?.value;
    let now = cx.clock.now();
    let (mut title, mut questions) = ("A conversation".to_owned(), Vec::new());
    if let Some(action) = run.action_id {
        title = actions::load(cx, owner, action).await?.value.title;
        if let (Some((text, seen)), _) = waiting(cx, owner, action, id).await? {
            questions.push(Question::Words { text, seen });
        }
    }
    let open: Vec<Card> = cards::open(&run.cards).filter(|card| card.expires_at > now).cloned().collect();
    let mut arguments = journal::arguments(cx, owner, id, &open).await?;
    questions.extend(open.into_iter().map(|card| match card.asks {
        Asks::Permission => {
            let arguments = arguments.remove(&card.call_id);
            Question::Call { card: Box::new(CardView { card, arguments }) }
        }
        Asks::Outcome | Asks::Ceiling => Question::Elsewhere { why: card.why },
    }));
    Ok(Asked { title, questions })
}

/// The question in words of this run, with the state in which it asks, and the version of its action.
async fn waiting(
    cx: &Cx,
    owner: &Owner,
    action: ActionId,
    run: RunId,
) -> Result<(Option<(String, String)>, u64)> {
    let Loaded { action, live } = actions::load_live(cx, owner, action).await?;
    let asks = live.map(|live| live.value).filter(|live| {
        live.run_id == run
            && action.value.state == ActionState::NeedsApproval
            && live.state == OccurrenceState::Waiting
            && live.reason_code == Some(ReasonCode::Asked)
    });
    // Each question of a run raises its fence.
    let question = asks.map(|live| (live.reason.unwrap_or_default(), live.fence.to_string()));
    Ok((question, action.version))
}
