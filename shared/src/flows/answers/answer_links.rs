//! Answers by the link in a message, or by a reply to it: what it asks now, and what its reader says.
//!
//! Nobody is signed in. The token says whose question it is, and each answer binds what its reader has seen: the hash of the call or of the
//! approval, or the state of the run that has asked. A question is answered once, because then it no longer waits. The reader of a message
//! about an action may also pause it, and say what should be different.

use domain::accounts::scopes::Scope;
use domain::actions::{Action, Command};
use domain::agent_loop::CallId;
use domain::agent_loop::cards::{Answer, Asks as CardAsks, Card};
use domain::ids::{ActionId, ChannelId, Owner, RunId};
use domain::models::{Block, Role};
use domain::notices::answer_link::{AnswerLink, AnswerTo};
use domain::notices::replies::Words;
use domain::validate::FieldErrors;
use domain::work::ActionCommand;

use crate::context::Cx;
use crate::error::{Error, Result};
use crate::flows::actions::{self, ApprovalView};
use crate::flows::notices::asks::{self, Asks};
use crate::flows::runs::{CardView, answers};
use crate::flows::turn::about_action;
use crate::flows::{existing, messages, turn};
use crate::request::caller::{Actor, Caller};
use crate::stopped;
use crate::store::notices::ChannelState;
use crate::store::{Claim, Once, RequestState};

/// The longest correction, in characters.
pub const MAX_CORRECTION: usize = 4_000;

/// What is asked, as it is now.
#[derive(Debug)]
pub struct Asked {
    /// The name of the action or of the agent.
    pub title: String,
    pub questions: Vec<Question>,
    /// None if it is about no action.
    pub steers: Option<Steers>,
}

/// How the reader steers an action, beside answering its questions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Steers {
    pub can_pause: bool,
    /// It is paused, because of this.
    pub paused: Option<String>,
    /// A correction with the same number is said once.
    pub number: String,
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
    Pause,
    Resume,
    Correct { text: String, number: String },
}

/// What was done, for its reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Done {
    Approved,
    Answered,
    Allowed,
    Refused,
    Paused,
    Resumed,
    Corrected,
}

impl Done {
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::Approved => "Approved. It runs at its times.",
            Self::Answered => "Thank you. The answer was sent.",
            Self::Allowed => "Allowed. The run goes on.",
            Self::Refused => "Refused. The run goes on without this call.",
            Self::Paused => "Paused. Nothing runs until you resume it.",
            Self::Resumed => "Resumed. It runs again at its times.",
            Self::Corrected => {
                "Sent to the agent. It answers in the conversation about the action. Accept what it proposes in the console."
            }
        }
    }
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
pub async fn answer(cx: &Cx, token: &str, said: impl FnOnce() -> Result<Said>) -> Result<Done> {
    let (owner, link) = opened(cx, token).await?;
    let said = said()?;
    let by = Actor::Channel(link.channel);
    let once = Once::none();
    match (link.to, said) {
        (AnswerTo::Action(action), Said::Approve { hash }) => {
            let asks = of_action(cx, &owner, action).await?;
            if let [Question::Elsewhere { why }] = &asks.questions[..] {
                return Err(Error::conflict(
                    "answered_elsewhere",
                    format!("{why} Approve it in the console."),
                ));
            }
            actions::approve(cx, &owner, &once, by, action, &hash).await?;
            Ok(Done::Approved)
        }
        (AnswerTo::Run(run), Said::Call { call, hash, allows }) => {
            allow(cx, owner, &once, run, (call, hash, allows)).await
        }
        (AnswerTo::Run(run), Said::Words { text, seen }) => {
            turn::check("answer", &text)?;
            let run = existing::run(cx, &owner, run).await?.value;
            let asks = asks::of_run(cx, &owner, &run).await?;
            match (run.action_id, asks.words.filter(|words| words.seen == seen)) {
                (Some(action), Some(words)) => {
                    in_words(cx, &owner, &once, (action, words.version), text).await
                }
                _ => {
                    let told = "the question was answered, or the run asks something else now";
                    Err(Error::conflict("already_answered", told))
                }
            }
        }
        (to, Said::Pause) => {
            steer(cx, &owner, &once, by, its_action(cx, &owner, to).await?, Command::Pause).await
        }
        (to, Said::Resume) => {
            steer(cx, &owner, &once, by, its_action(cx, &owner, to).await?, Command::Resume).await
        }
        (to, Said::Correct { text, number }) => {
            let (owner, action) = (&owner, its_action(cx, &owner, to).await?);
            let (key, said) = (format!("answer/{}/{number}", link.channel), text.clone());
            let act = |once: Once| async move { correct(cx, owner, &once, action, text).await };
            Ok(self::once(cx, owner, (&key, &said), act).await?.unwrap_or(Done::Corrected))
        }
        _ => Err(FieldErrors::one("answer", "is not an answer to this question").into()),
    }
}

/// What a reply to the message with this link says. `from`: the channel in which the reply was written.
///
/// # Errors
/// As [`answer`]; 404 also if the message was sent to another channel; 409 if the message has not shown what is asked now.
pub async fn reply(cx: &Cx, token: &str, from: (&Owner, ChannelId), once: &Once, text: &str) -> Result<Done> {
    let (owner, link) = opened(cx, token).await?;
    if (&owner, link.channel) != from {
        return Err(Error::NotFound("link"));
    }
    let asks = match link.to {
        AnswerTo::Run(run) => {
            let run = existing::run(cx, &owner, run).await?.value;
            asks::of_run(cx, &owner, &run).await?
        }
        AnswerTo::Action(_) => Asks::default(),
    };
    let words = Words::of(text);
    let action = action_of(cx, &owner, link.to).await?;
    let by = Actor::Channel(link.channel);
    let page =
        |told: &str| Error::conflict("answered_elsewhere", format!("{told}: open the link of the message"));
    let is_shown = link.shown == Some(asks.shown());
    match (asks.words, &asks.cards[..], link.to) {
        (None, [], to) => match (words, action) {
            (Words::Pause, Some(action)) => steer(cx, &owner, once, by, action, Command::Pause).await,
            (Words::Resume, Some(action)) => steer(cx, &owner, once, by, action, Command::Resume).await,
            (Words::Yes | Words::No, _) if matches!(to, AnswerTo::Action(_)) => {
                Err(page("the page shows what would run"))
            }
            // It asked something, or this answers something.
            (Words::Yes | Words::No, _) => Err(nothing_asked()),
            _ if link.shown.is_some() => Err(nothing_asked()),
            (Words::Other, Some(action)) => correct(cx, &owner, once, action, text.to_owned()).await,
            (_, None) => Err(page("this message can't be answered here")),
        },
        _ if !is_shown => Err(page("the message does not show all that is asked now")),
        (Some(question), [], AnswerTo::Run(_)) => {
            turn::check("answer", text)?;
            let action = action.ok_or(Error::NotFound("action"))?;
            in_words(cx, &owner, once, (action, question.version), text.to_owned()).await
        }
        (None, [(card, _)], AnswerTo::Run(run)) if card.asks == CardAsks::Permission => match words {
            Words::Yes => allow(cx, owner, once, run, (card.call_id, card.hash.clone(), true)).await,
            Words::No => allow(cx, owner, once, run, (card.call_id, card.hash.clone(), false)).await,
            _ => Err(page("the reply must be yes or no")),
        },
        _ => Err(page("this can't be answered by a reply")),
    }
}

fn nothing_asked() -> Error {
    Error::conflict("already_answered", "nothing is asked any more: it was answered, or its time is over")
}

/// Why nothing was done, in words for somebody who sees no API.
#[must_use]
pub fn in_plain_words(error: &Error) -> String {
    match error {
        Error::Invalid(errors) => errors.to_string(),
        Error::Conflict { code, message, .. } => match *code {
            "turn_in_progress" => "the agent is still answering: send it again in a minute".to_owned(),
            "account_stopped" => "everything is stopped: start it in the console".to_owned(),
            "wrong_state" => "this can't be done now: look at the action in the console".to_owned(),
            "approval_mismatch" | "card_mismatch" => {
                "it was changed meanwhile: open the link again, and look at it".to_owned()
            }
            _ => message.clone(),
        },
        other => other.detail(),
    }
}

/// Answers whether a run may make a call.
async fn allow(
    cx: &Cx,
    owner: Owner,
    once: &Once,
    run: RunId,
    (call, hash, allows): (CallId, String, bool),
) -> Result<Done> {
    let found = existing::run(cx, &owner, run).await?.value;
    let is_here = |card: &&Card| card.call_id == call && card.asks == CardAsks::Permission;
    found.cards.iter().find(is_here).ok_or(Error::NotFound("call"))?;
    let caller = Caller { owner, scope: Scope::Write, key: None };
    let said = match allows {
        true => Answer::Approve { hash: Some(hash), raise_by_micros: None },
        false => Answer::Reject { reason: None },
    };
    answers::answer(cx, &caller, once, run, call, &said).await?;
    Ok(if allows { Done::Allowed } else { Done::Refused })
}

async fn in_words(
    cx: &Cx,
    owner: &Owner,
    once: &Once,
    (action, version): (ActionId, u64),
    text: String,
) -> Result<Done> {
    let message = messages::new(cx, Role::User, vec![Block::text(text)], None);
    actions::answer(cx, owner, once, action, version, message).await?;
    Ok(Done::Answered)
}

/// Pauses or resumes. Repeating it changes nothing.
async fn steer(
    cx: &Cx,
    owner: &Owner,
    once: &Once,
    by: Actor,
    action: ActionId,
    command: Command<'_>,
) -> Result<Done> {
    let done = if matches!(command, Command::Pause) { Done::Paused } else { Done::Resumed };
    if done == Done::Resumed {
        stopped::check(cx, owner).await?;
    }
    actions::apply(cx, owner, once, by, action, command).await?;
    Ok(done)
}

/// Says in the conversation about an action what should be different. An executor lets the agent answer.
async fn correct(cx: &Cx, owner: &Owner, once: &Once, action: ActionId, text: String) -> Result<Done> {
    let mut errors = FieldErrors::default();
    errors.length("text", &text, 1, MAX_CORRECTION);
    errors.into_result(())?;
    about_action::leave_message(cx, owner, once, action, text).await?;
    Ok(Done::Corrected)
}

/// Does what comes under a key once: what was done is not done again, and what has failed may be tried again. None if it was done before.
///
/// # Errors
/// Those of `act`; 409 if another try with this key is under way, or if the key came with something else.
pub async fn once<F>(
    cx: &Cx,
    owner: &Owner,
    (key, what): (&str, &str),
    act: impl FnOnce(Once) -> F,
) -> Result<Option<Done>>
where
    F: Future<Output = Result<Done>>,
{
    // No key of a client begins like this one.
    let key = format!("\u{1}{key}");
    let claimed = match cx.store.claim_idempotency(owner, &key, what, cx.clock.now()).await? {
        Claim::First(claimed) => claimed,
        Claim::Other(record) if record.fingerprint != what => {
            let told = "this page has sent something else already: open its link again";
            return Err(Error::conflict("answered_elsewhere", told));
        }
        Claim::Other(record) if matches!(record.outcome, RequestState::InFlight) => {
            return Err(Error::conflict("idempotency_in_flight", "it is being sent already"));
        }
        Claim::Other(_) => return Ok(None),
    };
    match act(Once::of(&claimed)).await {
        Ok(done) => {
            cx.store.complete_idempotency(&claimed, RequestState::Done, cx.clock.now()).await?;
            Ok(Some(done))
        }
        Err(error) => {
            cx.store.release_idempotency(&claimed).await?;
            Err(error)
        }
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

/// The action that a link is about.
async fn action_of(cx: &Cx, owner: &Owner, to: AnswerTo) -> Result<Option<ActionId>> {
    Ok(match to {
        AnswerTo::Action(action) => Some(action),
        AnswerTo::Run(run) => existing::run(cx, owner, run).await?.value.action_id,
    })
}

/// The same, for what is possible only with an action.
async fn its_action(cx: &Cx, owner: &Owner, to: AnswerTo) -> Result<ActionId> {
    action_of(cx, owner, to).await?.ok_or(Error::NotFound("action"))
}

fn steers(cx: &Cx, action: &Action) -> Option<Steers> {
    let now = cx.clock.now();
    let can_resume = ActionCommand::Resume.check_state(action, now).is_ok();
    Some(Steers {
        can_pause: ActionCommand::Pause.check_state(action, now).is_ok(),
        paused: can_resume.then(|| format!("It is {}.", action.paused_words())),
        number: cx.clock.uuid().simple().to_string(),
    })
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
    let steers = steers(cx, &action.action);
    Ok(Asked { title: action.action.title, questions: Vec::from_iter(waits.then_some(question)), steers })
}

async fn of_run(cx: &Cx, owner: &Owner, id: RunId) -> Result<Asked> {
    let run = existing::run(cx, owner, id).await?.value;
    let (title, steers) = match run.action_id {
        None => ("A conversation".to_owned(), None),
        Some(action) => {
            let action = actions::load(cx, owner, action).await?.value;
            let steers = steers(cx, &action);
            (action.title, steers)
        }
    };
    let asks = asks::of_run(cx, owner, &run).await?;
    let words = asks.words.map(|asks| Question::Words { text: asks.text, seen: asks.seen });
    let calls = asks.cards.into_iter().map(|(card, arguments)| match card.asks {
        CardAsks::Permission => Question::Call { card: Box::new(CardView { card, arguments }) },
        CardAsks::Outcome | CardAsks::Ceiling => Question::Elsewhere { why: card.why },
    });
    Ok(Asked { title, questions: words.into_iter().chain(calls).collect(), steers })
}
