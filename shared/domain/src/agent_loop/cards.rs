//! Cards: calls that wait for a person.
//!
//! A card asks one of three questions. *Permission*: may this call be made? *Outcome*: the call was begun, and its result was
//! lost; did it happen? *Ceiling*: may a ceiling of costs be raised, so that the model can be called? A card of a call binds the
//! hash of the tool's name, its schema and the arguments: what was shown is what runs. A card of a ceiling binds the ceiling.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use utoipa::ToSchema;

use super::step::CallResult;
use crate::ceilings::CeilingReached;
use crate::ids::CallId;
use crate::text::canonical::canonical;

/// How many calls of one reply may wait for a person at the same time.
pub const MAX_OPEN: usize = 20;

/// The longest reason of a rejection, in characters.
pub const MAX_REASON: usize = 1_000;

/// How many cards a run's record keeps.
const MAX_KEPT: usize = 2 * MAX_OPEN;

/// A call that waits for a person, or waited for one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Card {
    /// The step and the place of the call in it.
    #[schema(value_type = String, example = "3.0", pattern = "^[1-9][0-9]*\\.(0|[1-9][0-9]*)$")]
    pub call_id: CallId,
    /// What the person is asked.
    pub asks: Asks,
    /// The name of the tool. `model` if the card is about a ceiling: then the call is the next call of the model.
    pub tool: String,
    /// Why a person has to decide.
    pub why: String,
    /// What the call is expected to cost, in micro-dollars, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_micros: Option<i64>,
    /// The SHA-256 of the tool's name, its schema and the arguments; or of the ceiling.
    pub hash: String,
    pub state: CardState,
    /// When the person was asked.
    pub asked_at: Timestamp,
    /// An answer is taken until this time. Then the run ends.
    pub expires_at: Timestamp,
    /// The reason of a rejection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// When a person answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered_at: Option<Timestamp>,
    /// The attempt at the call that an outcome is asked of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(ignore)]
    pub attempt: Option<u32>,
    /// The ceiling that was reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ceiling: Option<CeilingReached>,
}

/// The question of a card.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Asks {
    /// Whether the call may be made: approve it or reject it.
    Permission,
    /// Whether the call happened, which is not known: resolve it.
    Outcome,
    /// Whether a ceiling of costs may be raised: approve or reject it.
    Ceiling,
}

/// The state of a card.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum CardState {
    Waiting,
    Approved,
    Rejected,
    /// A person said that the call happened.
    Happened,
    /// A person said that the call did not happen. It is made again.
    NotHappened,
    /// Nobody answered in time.
    Expired,
    /// The question was dropped: the run went on without an answer, or it ended.
    Void,
}

impl CardState {
    /// As in JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Approved => "approved",
            Self::Rejected => "rejected",
            Self::Happened => "happened",
            Self::NotHappened => "not_happened",
            Self::Expired => "expired",
            Self::Void => "void",
        }
    }
}

/// The mark of a call outside the platform that was begun. It is stored before the call and removed with its result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenCall {
    pub call_id: CallId,
    pub tool: String,
    pub hash: String,
    /// How often the call was begun.
    pub attempt: u32,
}

impl OpenCall {
    /// Whether one of the cards asks, or has asked, for the outcome of this attempt.
    #[must_use]
    pub fn has_card(&self, cards: &[Card]) -> bool {
        cards.iter().any(|card| {
            card.call_id == self.call_id && (card.asks, card.attempt) == (Asks::Outcome, Some(self.attempt))
        })
    }

    /// What a person reads about it.
    #[must_use]
    pub fn unknown(&self) -> String {
        format!("{} was begun, and it is not known whether it happened", self.tool)
    }
}

/// What a person says about a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// With `hash`, only if the card has this hash. `raise_by_micros` is for a ceiling: by default, the card's amount.
    Approve {
        hash: Option<String>,
        raise_by_micros: Option<i64>,
    },
    Reject {
        reason: Option<String>,
    },
    /// Whether the call happened.
    Resolve {
        happened: bool,
    },
}

impl Answer {
    const fn state(&self) -> CardState {
        match self {
            Self::Approve { .. } => CardState::Approved,
            Self::Reject { .. } => CardState::Rejected,
            Self::Resolve { happened: true } => CardState::Happened,
            Self::Resolve { happened: false } => CardState::NotHappened,
        }
    }

    const fn is_to(&self, asks: Asks) -> bool {
        matches!(
            (self, asks),
            (Self::Approve { .. } | Self::Reject { .. }, Asks::Permission | Asks::Ceiling)
                | (Self::Resolve { .. }, Asks::Outcome)
        )
    }
}

/// Why an answer is not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AnswerRefused {
    #[error("no call of this run with this id waits for a person")]
    NoCard,
    #[error("this was answered before: {}", .0.as_str())]
    Answered(CardState),
    #[error("the time for an answer ended at {0}")]
    Expired(Timestamp),
    #[error("the question was dropped, because the run went on without an answer or has ended")]
    Void,
    #[error("it is not known whether this call happened: say that with /resolve")]
    AsksOutcome,
    #[error("this call was not begun: answer with /approve or /reject")]
    AsksPermission,
    #[error("the card has the hash {0}: what was shown is not what waits")]
    Mismatch(String),
    #[error("this card is not about a ceiling: leave `raise_by_micros` out")]
    NotACeiling,
    #[error(
        "must be {least} to {most} micro-dollars, because the next call needs {least} more than the ceiling leaves, is {by}"
    )]
    Raise { by: i64, least: i64, most: i64 },
    #[error(
        "the next call needs {least} micro-dollars more than the ceiling leaves, and the ceiling can be raised only by {most}"
    )]
    AtMaximum { least: i64, most: i64 },
}

impl AnswerRefused {
    /// A stable code for clients.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::NoCard => "not_found",
            Self::Answered(_) => "already_answered",
            Self::Expired(_) => "card_expired",
            Self::Void => "card_void",
            Self::AsksOutcome | Self::AsksPermission | Self::NotACeiling => "wrong_question",
            Self::Raise { .. } => "invalid_input",
            Self::AtMaximum { .. } => "ceiling_at_maximum",
            Self::Mismatch(_) => "card_mismatch",
        }
    }
}

/// Answers a card. `false`: it was answered in the same way before, and nothing changes.
///
/// # Errors
/// [`AnswerRefused`]; then nothing has changed.
pub fn answer(
    cards: &mut [Card],
    id: CallId,
    answer: &Answer,
    now: Timestamp,
) -> Result<bool, AnswerRefused> {
    let card = cards.iter_mut().find(|card| card.call_id == id).ok_or(AnswerRefused::NoCard)?;
    if !answer.is_to(card.asks) {
        return Err(match card.asks {
            Asks::Outcome => AnswerRefused::AsksOutcome,
            Asks::Permission | Asks::Ceiling => AnswerRefused::AsksPermission,
        });
    }
    let mut raised = card.ceiling;
    if let Answer::Approve { hash, raise_by_micros } = answer {
        if hash.as_ref().is_some_and(|hash| *hash != card.hash) {
            return Err(AnswerRefused::Mismatch(card.hash.clone()));
        }
        match (raise_by_micros, &mut raised) {
            (None, None) => {}
            (Some(_), None) => return Err(AnswerRefused::NotACeiling),
            // A card that has its answer changes no more, so its amounts are not checked again.
            (by, Some(ceiling)) if card.state == CardState::Waiting => {
                let (least, most) = (ceiling.min_raise_micros(), ceiling.max_raise_micros);
                let by = by.unwrap_or(ceiling.raise_by_micros);
                if least > most {
                    return Err(AnswerRefused::AtMaximum { least, most });
                }
                if !(least..=most).contains(&by) {
                    return Err(AnswerRefused::Raise { by, least, most });
                }
                ceiling.raise_by_micros = by;
            }
            (_, Some(_)) => {}
        }
    }
    match card.state {
        CardState::Waiting if card.expires_at <= now => Err(AnswerRefused::Expired(card.expires_at)),
        CardState::Waiting => {
            card.state = answer.state();
            card.ceiling = raised;
            card.answered_at = Some(now);
            if let Answer::Reject { reason } = answer {
                card.reason.clone_from(reason);
            }
            Ok(true)
        }
        state if state == answer.state() => Ok(false),
        CardState::Expired => Err(AnswerRefused::Expired(card.expires_at)),
        CardState::Void => Err(AnswerRefused::Void),
        state => Err(AnswerRefused::Answered(state)),
    }
}

/// The cards that wait.
pub fn open(cards: &[Card]) -> impl Iterator<Item = &Card> {
    cards.iter().filter(|card| card.state == CardState::Waiting)
}

/// Drops the questions that wait: those whose time is over have expired.
pub fn drop_open(cards: &mut [Card], now: Timestamp) {
    for card in cards.iter_mut().filter(|card| card.state == CardState::Waiting) {
        card.state = if card.expires_at <= now { CardState::Expired } else { CardState::Void };
    }
}

/// Adds cards. A card replaces the one of the same call; only the newest are kept.
pub fn add(cards: &mut Vec<Card>, new: Vec<Card>) {
    cards.retain(|card| new.iter().all(|new| new.call_id != card.call_id));
    cards.extend(new);
    let excess = cards.len().saturating_sub(MAX_KEPT);
    cards.drain(..excess);
}

/// The hash that a card binds.
#[must_use]
pub fn hash(tool: &str, schema: &Value, arguments: &Value) -> String {
    let content = json!({"tool": tool, "schema": schema, "arguments": arguments});
    crate::hex(&Sha256::digest(canonical(&content)))
}

/// The hash that a card of a ceiling binds. The most by which it may be raised is no part of it.
#[must_use]
pub fn hash_of_ceiling(ceiling: &CeilingReached) -> String {
    let CeilingReached { of, limit_micros, raise_by_micros, .. } = ceiling;
    let content = json!({"ceiling": of, "limit_micros": limit_micros, "raise_by_micros": raise_by_micros});
    crate::hex(&Sha256::digest(canonical(&content)))
}

/// A call without a result, and whether a person has to decide about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pending {
    pub call_id: CallId,
    /// What a person has to decide.
    pub question: Option<Question>,
}

/// What a person has to decide about a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    pub asks: Asks,
    /// The attempt that the question is about, if it asks about an outcome.
    pub attempt: Option<u32>,
    /// The [`hash()`] of the call.
    pub hash: String,
}

/// What to do with the calls of a reply that have no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Gate {
    /// So many of the first ones may be made, or have an answer.
    Perform(usize),
    /// The first one waits for a person. The calls with these indexes need a new card; the others that need a card have one.
    Wait(Vec<usize>),
}

/// Decides about the calls of a reply that have no result, in their order. They are made in this order, so a call that waits
/// holds back those after it. All questions of a reply are asked at once, and the run goes on when all are answered.
#[must_use]
pub fn gate(pending: &[Pending], cards: &[Card]) -> Gate {
    let ready = pending.iter().take_while(|call| ruling(call, cards).is_some()).count();
    if ready > 0 || pending.is_empty() {
        return Gate::Perform(ready);
    }
    let has_card = |call: &Pending| matching(call, cards).is_some();
    let asked = (0..pending.len()).filter(|at| pending[*at].question.is_some() && !has_card(&pending[*at]));
    Gate::Wait(asked.collect())
}

/// What becomes of a call.
#[derive(Clone, Debug, PartialEq)]
pub enum Ruling {
    Make,
    /// It is not made, and this is its result.
    Told(CallResult),
    /// It is not made. Its result is this, followed by what the person said instead of an answer.
    Unanswered(CallResult),
}

/// What becomes of a call. `None`: a person has to decide and has not decided yet.
#[must_use]
pub fn ruling(call: &Pending, cards: &[Card]) -> Option<Ruling> {
    if call.question.is_none() {
        return Some(Ruling::Make);
    }
    let card = matching(call, cards)?;
    let name = &card.tool;
    Some(match (card.state, card.asks) {
        (CardState::Waiting | CardState::Expired, _) => return None,
        (CardState::Approved | CardState::NotHappened, _) => Ruling::Make,
        (CardState::Rejected, _) => {
            let why = card.reason.as_deref().map_or_else(|| ".".to_owned(), |reason| format!(": {reason}"));
            Ruling::Told(CallResult::refused(format!(
                "{name} was not called. The person rejected this call{why}"
            )))
        }
        (CardState::Happened, _) => Ruling::Told(CallResult::told(format!(
            "{name} was called. Its result was lost, and the person said that the call happened. Do not make it again."
        ))),
        (CardState::Void, Asks::Permission | Asks::Ceiling) => {
            Ruling::Unanswered(CallResult::refused(format!(
                "{name} was not called. The person neither approved nor rejected this call, and let the run go on."
            )))
        }
        (CardState::Void, Asks::Outcome) => Ruling::Unanswered(CallResult::refused(format!(
            "{name} was begun, and it is not known whether it happened. The person did not say, and let the run go on. Do not \
             make the call again."
        ))),
    })
}

/// The card of this call. A changed tool or changed arguments have another hash, and so no card.
fn matching<'a>(call: &Pending, cards: &'a [Card]) -> Option<&'a Card> {
    let Question { asks, attempt, hash } = call.question.as_ref()?;
    cards.iter().find(|card| {
        // A person who says that a call did not happen lets it be made.
        let permits = *asks == Asks::Permission && card.state == CardState::NotHappened;
        card.call_id == call.call_id
            && card.hash == *hash
            && (permits || (card.asks, card.attempt) == (*asks, *attempt))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ceilings::CeilingOf;

    const EXPIRES: i64 = 100;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn id(at: u32) -> CallId {
        CallId { step: 3, at }
    }

    fn card(call: u32, asks: Asks, state: CardState) -> Card {
        Card {
            call_id: id(call),
            asks,
            tool: "send".into(),
            why: "it acts outside".into(),
            cost_micros: None,
            hash: "h".into(),
            state,
            asked_at: at(0),
            expires_at: at(EXPIRES),
            reason: None,
            answered_at: None,
            attempt: (asks == Asks::Outcome).then_some(1),
            ceiling: None,
        }
    }

    fn pending(call: u32, asks: Option<Asks>) -> Pending {
        let attempt = |asks| (asks == Asks::Outcome).then_some(1);
        let question = |asks| Question { asks, attempt: attempt(asks), hash: "h".into() };
        Pending { call_id: id(call), question: asks.map(question) }
    }

    #[test]
    fn an_answer_counts_once_and_in_time() {
        use Answer::{Approve, Reject, Resolve};
        use Asks::{Outcome, Permission};
        use CardState::{Approved, Expired, Happened, NotHappened, Rejected, Void, Waiting};
        let approve = || Approve { hash: None, raise_by_micros: None };
        let reject = || Reject { reason: Some("no".into()) };
        let with_hash = |hash: &str| Approve { hash: Some(hash.into()), raise_by_micros: None };
        let happened = |happened| Resolve { happened };
        for (asks, state, answer_is, now, expected) in [
            (Permission, Waiting, approve(), 1, Ok((true, Approved))),
            (Permission, Waiting, with_hash("h"), 1, Ok((true, Approved))),
            (Permission, Waiting, with_hash("other"), 1, Err("card_mismatch")),
            (Permission, Approved, with_hash("other"), 1, Err("card_mismatch")),
            (Permission, Waiting, reject(), 1, Ok((true, Rejected))),
            (Permission, Waiting, approve(), EXPIRES, Err("card_expired")),
            (Permission, Waiting, reject(), EXPIRES, Err("card_expired")),
            (Permission, Approved, approve(), 1_000, Ok((false, Approved))),
            (Permission, Rejected, reject(), 1_000, Ok((false, Rejected))),
            (Permission, Approved, reject(), 1, Err("already_answered")),
            (Permission, Rejected, approve(), 1, Err("already_answered")),
            (Permission, Expired, approve(), 1_000, Err("card_expired")),
            (Permission, Void, approve(), 1, Err("card_void")),
            (Permission, Waiting, happened(true), 1, Err("wrong_question")),
            (Outcome, Waiting, approve(), 1, Err("wrong_question")),
            (Outcome, Waiting, reject(), 1, Err("wrong_question")),
            (Outcome, Waiting, happened(true), 1, Ok((true, Happened))),
            (Outcome, Waiting, happened(false), 1, Ok((true, NotHappened))),
            (Outcome, Happened, happened(true), 1, Ok((false, Happened))),
            (Outcome, Happened, happened(false), 1, Err("already_answered")),
            (Outcome, NotHappened, happened(true), 1, Err("already_answered")),
        ] {
            let mut cards = vec![card(0, asks, state)];
            let before = cards.clone();
            let answered = answer(&mut cards, id(0), &answer_is, at(now));
            let what = format!("{asks:?} {state:?} {answer_is:?} at {now}");
            match expected {
                Ok((changed, after)) => {
                    assert_eq!((answered, cards[0].state), (Ok(changed), after), "{what}");
                }
                Err(code) => {
                    assert_eq!(answered.unwrap_err().code(), code, "{what}");
                    assert_eq!(cards, before, "{what}");
                }
            }
        }
        let mut cards = vec![card(0, Permission, Waiting)];
        assert_eq!(answer(&mut cards, id(1), &approve(), at(1)), Err(AnswerRefused::NoCard));
        answer(&mut cards, id(0), &reject(), at(1)).unwrap();
        assert_eq!((cards[0].reason.as_deref(), cards[0].answered_at), (Some("no"), Some(at(1))));
    }

    #[test]
    fn an_approval_raises_a_ceiling_once_and_within_its_limit() {
        let approve = |by| Answer::Approve { hash: None, raise_by_micros: by };
        let reached = CeilingReached {
            of: CeilingOf::Run,
            limit_micros: 100,
            raised_micros: 0,
            committed_micros: 95,
            needs_micros: 10,
            raise_by_micros: 100,
            max_raise_micros: 900,
        };
        let waiting = || Card { ceiling: Some(reached), ..card(0, Asks::Ceiling, CardState::Waiting) };
        for (by, expected) in [(None, 100), (Some(5), 5), (Some(900), 900)] {
            let mut cards = vec![waiting()];
            assert_eq!(answer(&mut cards, id(0), &approve(by), at(1)), Ok(true));
            assert_eq!(cards[0].ceiling.unwrap().raise_by_micros, expected);
            // The second approval changes nothing, whatever it says.
            assert_eq!(answer(&mut cards, id(0), &approve(Some(7)), at(2)), Ok(false));
            assert_eq!(cards[0].ceiling.unwrap().raise_by_micros, expected);
        }
        // The next call needs 5 more.
        for by in [0, -5, 1, 4, 901, i64::MAX] {
            let mut cards = vec![waiting()];
            let refused = AnswerRefused::Raise { by, least: 5, most: 900 };
            assert_eq!(answer(&mut cards, id(0), &approve(Some(by)), at(1)), Err(refused));
            assert_eq!(cards, [waiting()]);
        }
        // The maximum has become lower since the person was asked.
        for (most, by, refused) in [
            (99, None, AnswerRefused::Raise { by: 100, least: 5, most: 99 }),
            (4, None, AnswerRefused::AtMaximum { least: 5, most: 4 }),
            (4, Some(4), AnswerRefused::AtMaximum { least: 5, most: 4 }),
        ] {
            let ceiling = Some(CeilingReached { max_raise_micros: most, ..reached });
            let mut cards = vec![Card { ceiling, ..waiting() }];
            assert_eq!(answer(&mut cards, id(0), &approve(by), at(1)), Err(refused));
        }
        let mut cards = vec![card(0, Asks::Permission, CardState::Waiting)];
        assert_eq!(answer(&mut cards, id(0), &approve(Some(1)), at(1)), Err(AnswerRefused::NotACeiling));
        let resolve = Answer::Resolve { happened: true };
        assert_eq!(answer(&mut [waiting()], id(0), &resolve, at(1)), Err(AnswerRefused::AsksPermission));
        let reject = Answer::Reject { reason: None };
        assert_eq!(answer(&mut [waiting()], id(0), &reject, at(1)), Ok(true));
        // The hash binds what is shown, and not how far the ceiling may be raised.
        let hash = hash_of_ceiling(&reached);
        assert_eq!(hash, hash_of_ceiling(&CeilingReached { max_raise_micros: 1, ..reached }));
        assert_ne!(hash, hash_of_ceiling(&CeilingReached { limit_micros: 101, ..reached }));
        assert_ne!(hash, hash_of_ceiling(&CeilingReached { of: CeilingOf::Day, ..reached }));
    }

    #[test]
    fn calls_are_made_in_their_order_and_asked_about_at_once() {
        use Asks::{Outcome, Permission};
        use CardState::{Approved, Expired, Happened, NotHappened, Rejected, Void, Waiting};
        let free = |call| pending(call, None);
        let asks = |call| pending(call, Some(Permission));
        let lost = |call| pending(call, Some(Outcome));
        let has = |call, state| card(call, Permission, state);
        let other = |mut card: Card| {
            card.hash = "other".into();
            card
        };
        for (what, calls, cards, expected) in [
            ("nothing is asked", vec![free(0), free(1)], vec![], Gate::Perform(2)),
            (
                "the calls before a question come first",
                vec![free(0), asks(1), free(2)],
                vec![],
                Gate::Perform(1),
            ),
            ("two questions at once", vec![asks(1), free(2), asks(3)], vec![], Gate::Wait(vec![0, 2])),
            ("one has a card", vec![asks(1), asks(3)], vec![has(1, Waiting)], Gate::Wait(vec![1])),
            ("both wait", vec![asks(1), asks(3)], vec![has(1, Waiting), has(3, Waiting)], Gate::Wait(vec![])),
            ("approved", vec![asks(1), free(2)], vec![has(1, Approved)], Gate::Perform(2)),
            ("rejected", vec![asks(1)], vec![has(1, Rejected)], Gate::Perform(1)),
            ("dropped", vec![asks(1)], vec![has(1, Void)], Gate::Perform(1)),
            ("expired", vec![asks(1)], vec![has(1, Expired)], Gate::Wait(vec![])),
            ("the call of another step", vec![asks(1)], vec![has(2, Approved)], Gate::Wait(vec![0])),
            ("another call was shown", vec![asks(1)], vec![other(has(1, Approved))], Gate::Wait(vec![0])),
            ("lost", vec![lost(1)], vec![], Gate::Wait(vec![0])),
            ("lost after it was approved", vec![lost(1)], vec![has(1, Approved)], Gate::Wait(vec![0])),
            ("it happened", vec![lost(1)], vec![card(1, Outcome, Happened)], Gate::Perform(1)),
            ("it did not happen", vec![lost(1)], vec![card(1, Outcome, NotHappened)], Gate::Perform(1)),
            ("and is still allowed", vec![asks(1)], vec![card(1, Outcome, NotHappened)], Gate::Perform(1)),
            (
                "and is another call",
                vec![asks(1)],
                vec![other(card(1, Outcome, NotHappened))],
                Gate::Wait(vec![0]),
            ),
            ("no call is left", vec![], vec![], Gate::Perform(0)),
        ] {
            assert_eq!(gate(&calls, &cards), expected, "{what}");
        }
        // The answer about one attempt says nothing about the next.
        let mut again = lost(1);
        again.question.as_mut().unwrap().attempt = Some(2);
        assert_eq!(gate(&[again], &[card(1, Outcome, NotHappened)]), Gate::Wait(vec![0]));
    }

    #[test]
    fn an_answer_decides_whether_the_call_is_made() {
        use Asks::{Outcome, Permission};
        let ruled = |asks, state| ruling(&pending(0, Some(asks)), &[card(0, asks, state)]);
        let words = |ruled: Option<Ruling>| match ruled {
            None => "waits".to_owned(),
            Some(Ruling::Make) => "made".to_owned(),
            Some(Ruling::Told(result)) => format!("{} {}", result.is_error, result.content),
            Some(Ruling::Unanswered(result)) => format!("{} {} …", result.is_error, result.content),
        };
        for (asks, state, expected) in [
            (Permission, CardState::Waiting, "waits"),
            (Permission, CardState::Expired, "waits"),
            (Permission, CardState::Approved, "made"),
            (Permission, CardState::Rejected, "true send was not called. The person rejected this call."),
            (
                Permission,
                CardState::Void,
                "true send was not called. The person neither approved nor rejected this call, and let the run go on. …",
            ),
            (
                Outcome,
                CardState::Happened,
                "false send was called. Its result was lost, and the person said that the call happened. Do not make it again.",
            ),
            (Outcome, CardState::NotHappened, "made"),
            (
                Outcome,
                CardState::Void,
                "true send was begun, and it is not known whether it happened. The person did not say, and let the run go \
                 on. Do not make the call again. …",
            ),
        ] {
            assert_eq!(words(ruled(asks, state)), expected, "{asks:?} {state:?}");
        }
        let rejected = Card { reason: Some("Too early.".into()), ..card(0, Permission, CardState::Rejected) };
        let told = words(ruling(&pending(0, Some(Permission)), &[rejected]));
        assert_eq!(told, "true send was not called. The person rejected this call: Too early.");
    }

    #[test]
    fn the_hash_binds_name_schema_and_arguments() {
        let of = |tool: &str, schema: Value, arguments: Value| hash(tool, &schema, &arguments);
        let whole = of("send", json!({"type": "object"}), json!({"to": "a", "text": "b"}));
        assert_eq!(whole, of("send", json!({"type": "object"}), json!({"text": "b", "to": "a"})));
        assert_eq!(whole.len(), 64);
        for other in [
            of("sent", json!({"type": "object"}), json!({"to": "a", "text": "b"})),
            of("send", json!({"type": "string"}), json!({"to": "a", "text": "b"})),
            of("send", json!({"type": "object"}), json!({"to": "b", "text": "b"})),
        ] {
            assert_ne!(whole, other);
        }
    }

    #[test]
    fn a_card_replaces_the_one_of_its_call_and_the_oldest_go() {
        let mut cards = Vec::new();
        add(
            &mut cards,
            vec![
                card(0, Asks::Permission, CardState::Approved),
                card(1, Asks::Permission, CardState::Waiting),
            ],
        );
        add(&mut cards, vec![card(0, Asks::Outcome, CardState::Waiting)]);
        assert_eq!(
            cards.iter().map(|card| (card.call_id.at, card.asks)).collect::<Vec<_>>(),
            [(1, Asks::Permission), (0, Asks::Outcome)]
        );
        add(&mut cards, (2..100).map(|call| card(call, Asks::Permission, CardState::Waiting)).collect());
        assert_eq!((cards.len(), cards[0].call_id.at, cards[39].call_id.at), (40, 60, 99));
        drop_open(&mut cards, at(EXPIRES - 1));
        assert!(cards.iter().all(|card| card.state == CardState::Void));
        let mut late = vec![card(0, Asks::Permission, CardState::Waiting)];
        drop_open(&mut late, at(EXPIRES));
        assert_eq!(late[0].state, CardState::Expired);
    }
}
