//! What a run asks its person now: in words, or whether it may make a call.

use domain::actions::Occurrence;
use domain::agent_loop::cards::{self, Asks as CardAsks, Card};
use domain::ids::{ActionId, Owner, RunId};
use domain::notices::answer_link::{AnswerLink, AnswerTo, Shown};
use domain::notices::render::is_shown_whole;
use domain::runs::Run;
use serde_json::Value;

use crate::agent_loop::journal;
use crate::context::Cx;
use crate::error::Result;

/// What a run asks.
#[derive(Debug, Default)]
pub struct Asks {
    pub words: Option<Question>,
    /// The open cards, each with the arguments of its call, if they are still stored.
    pub cards: Vec<(Card, Option<Value>)>,
}

/// A question in words.
#[derive(Debug)]
pub struct Question {
    pub text: String,
    /// The state in which the run asks. Each question of a run has another one.
    pub seen: String,
    /// Of the action.
    pub version: u64,
}

impl Question {
    fn of(live: Occurrence, version: u64) -> Self {
        // Each question of a run raises its fence.
        Self { seen: live.fence.to_string(), text: live.reason.unwrap_or_default(), version }
    }
}

/// What a message shows of what is asked, beyond its reason.
#[derive(Debug, Default)]
pub struct InMessage {
    pub text: String,
    /// What a reply can answer, if the message shows all of it.
    pub shown: Option<Shown>,
    /// What a reply does.
    pub reply: &'static str,
}

impl Asks {
    fn in_message(&self) -> InMessage {
        match (&self.words, &self.cards[..]) {
            (Some(_), []) => InMessage {
                text: String::new(),
                shown: Some(self.shown()),
                reply: "Reply to this message with your answer.",
            },
            (None, [(card, Some(arguments))]) if card.asks == CardAsks::Permission => {
                let text = format!("It wants to call {} with: {}", card.tool, on_one_line(arguments));
                match is_shown_whole(&text) {
                    true => InMessage {
                        text,
                        shown: Some(self.shown()),
                        reply: "Reply to this message with yes or no.",
                    },
                    false => InMessage { text, ..InMessage::default() },
                }
            }
            _ => InMessage::default(),
        }
    }

    /// What an answer to all of it binds.
    #[must_use]
    pub fn shown(&self) -> Shown {
        let words = self.words.iter().map(|words| format!("words {}: {}", words.seen, words.text));
        let cards = self.cards.iter().map(|(card, _)| format!("call {}: {}", card.call_id, card.hash));
        Shown::of(&words.chain(cards).collect::<Vec<_>>().join("\n"))
    }
}

/// JSON on one line, with a blank behind each colon and comma. No text of JSON has a line break of its own.
fn on_one_line(arguments: &Value) -> String {
    let lines = format!("{arguments:#}");
    let parts: Vec<&str> = lines.lines().map(str::trim_start).collect();
    parts.join(" ")
}

/// What a run asks now.
///
/// # Errors
/// If the table or the bucket does not answer.
pub async fn of_run(cx: &Cx, owner: &Owner, run: &Run) -> Result<Asks> {
    let now = cx.clock.now();
    let words = match run.action_id {
        Some(action) => in_words(cx, owner, action, run.run_id).await?,
        None => None,
    };
    let open: Vec<Card> = cards::open(&run.cards).filter(|card| card.expires_at > now).cloned().collect();
    let mut arguments = journal::arguments(cx, owner, run.run_id, &open).await?;
    let with_arguments = |card: Card| {
        let arguments = arguments.remove(&card.call_id);
        (card, arguments)
    };
    Ok(Asks { words, cards: open.into_iter().map(with_arguments).collect() })
}

async fn in_words(cx: &Cx, owner: &Owner, action: ActionId, run: RunId) -> Result<Option<Question>> {
    let Some(action) = cx.store.action(owner, action).await? else { return Ok(None) };
    if action.value.live_run != Some(run) {
        return Ok(None);
    }
    let live = cx.store.occurrence(owner, action.value.id, run).await?.map(|found| found.value);
    let live = live.filter(|live| live.asks_in_words(&action.value));
    Ok(live.map(|live| Question::of(live, action.version)))
}

/// What a message with this link shows of what is asked now. The approval of an action is shown by its page alone.
///
/// # Errors
/// If the table or the bucket does not answer.
pub(super) async fn in_message(cx: &Cx, owner: &Owner, link: &AnswerLink) -> Result<InMessage> {
    let AnswerTo::Run(run) = link.to else { return Ok(InMessage::default()) };
    match cx.store.run(owner, run).await? {
        Some(run) => Ok(of_run(cx, owner, &run.value).await?.in_message()),
        None => Ok(InMessage::default()),
    }
}
