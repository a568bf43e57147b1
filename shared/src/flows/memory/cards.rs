//! Cards about work: a program writes them for scheduled runs, and clients for work that they have delegated.

use domain::actions::{Action, Occurrence, OccurrenceState};
use domain::ids::{CardId, Owner};
use domain::memory::part::{Collection, MemoryPart};
use domain::memory::{Card, CardText, MAX_CARD_TITLE, MAX_FACT, Source};
use domain::validate::FieldErrors;
use jiff::civil::Date;
use serde::Deserialize;
use utoipa::ToSchema;

use super::index;
use crate::context::{Cx, Data};
use crate::error::{Error, Result};
use crate::flows::schedules;
use crate::store::Store;
use crate::store::keys;
use crate::store::runs::RunOutput;
use crate::store::table::{Extras, Write, item};

/// A card as a client writes it.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"title": "Checked the links", "goal": "No dead links in the shop", "actions": "Checked 214 links", "status": "done"}))]
#[schema(as = NewMemoryCard)]
pub struct NewCard {
    /// 1 to 200 bytes.
    pub title: String,
    /// When the work ended. Default: now.
    #[serde(default)]
    pub at: Option<jiff::Timestamp>,
    #[serde(default)]
    #[schema(max_length = 500)]
    pub goal: String,
    /// What was not to be touched.
    #[serde(default)]
    #[schema(max_length = 500)]
    pub boundary: String,
    /// How the result is judged.
    #[serde(default)]
    #[schema(max_length = 500)]
    pub acceptance: String,
    /// What was done.
    #[serde(default)]
    #[schema(max_length = 500)]
    pub actions: String,
    /// What it has made: names or links.
    #[serde(default)]
    #[schema(max_length = 500)]
    pub artifacts: String,
    #[serde(default)]
    #[schema(max_length = 500)]
    pub status: String,
    /// What is left to do.
    #[serde(default)]
    #[schema(max_length = 500)]
    pub next: String,
    /// Default: the person's own.
    #[serde(default)]
    #[schema(max_length = 64)]
    pub namespace: String,
}

/// Stores a card of a client.
///
/// # Errors
/// 400 with every invalid field and its limit.
pub async fn add(cx: &Cx, owner: &Owner, once: &crate::store::Once, new: NewCard) -> Result<Card> {
    let now = cx.clock.now();
    let zone = schedules::zone_of(cx, owner, None).await?;
    let at = new.at.unwrap_or(now);
    let mut errors = FieldErrors::default();
    errors.time("at", at);
    errors.into_result(())?;
    let local = zone.to_datetime(at);
    let card = Card {
        card_id: CardId::at(at, cx.clock.uuid()),
        date: local.date(),
        time: local.time().strftime("%H:%M").to_string(),
        title: new.title,
        text: CardText {
            goal: new.goal,
            boundary: new.boundary,
            acceptance: new.acceptance,
            actions: new.actions,
            artifacts: new.artifacts,
            status: new.status,
            next: new.next,
        },
        source: None,
        namespace: new.namespace,
        created_at: now,
    };
    card.check()?;
    let writes = writes(cx, owner, &card)?;
    let _ = cx.store.commit(once, writes).await?;
    Ok(card)
}

/// Deletes a card. No search finds it any more, and no object of the index has its text.
///
/// # Errors
/// 404 if it does not exist.
pub async fn delete(cx: &Cx, owner: &Owner, id: CardId) -> Result<()> {
    let part = MemoryPart::with(Collection::Cards, id.uuid());
    let mut writes = vec![Write::Delete { key: keys::memory_card(owner, id), must_exist: true }];
    writes.extend(Store::hidden_marks(owner, [part], cx.clock.uuid(), cx.clock.now())?);
    if !cx.store.write_all(writes).await?.done() {
        return Err(Error::NotFound("card"));
    }
    index::purge(cx, owner).await
}

/// The writes of a card, with the mark of its part.
fn writes(cx: &Cx, owner: &Owner, card: &Card) -> Result<Vec<Write>> {
    let part = MemoryPart::with(Collection::Cards, card.card_id.uuid());
    let mut writes = Store::memory_marks(owner, [part], cx.clock.uuid(), cx.clock.now())?;
    let key = keys::memory_card(owner, card.card_id);
    writes.push(Write::Put { key, item: item(card, &Extras::default())? });
    Ok(writes)
}

/// The writes of the card about a scheduled run that has ended. Of the runs of an action in an hour, the newest has the card: an action
/// that runs every minute does not fill the memory. A run that did nothing has none.
///
/// # Errors
/// If the table does not answer.
pub(crate) async fn of_run(
    cx: &Cx,
    owner: &Owner,
    action: &Action,
    run: &Occurrence,
    outputs: &[RunOutput],
) -> Result<Vec<Write>> {
    let status = match (run.state, &run.reason) {
        (OccurrenceState::Succeeded, None) => "done".to_owned(),
        (OccurrenceState::Succeeded, Some(reason)) => format!("done; {reason}"),
        (OccurrenceState::Failed, reason) => {
            format!("failed: {}", reason.as_deref().unwrap_or("no reason is known"))
        }
        _ => return Ok(Vec::new()),
    };
    let zone = match &action.schedule {
        Some(schedule) => schedule.time_zone().clone(),
        None => schedules::zone_of(cx, owner, None).await?,
    };
    let at = run.finished_at.unwrap_or_else(|| cx.clock.now());
    let local = zone.to_datetime(at);
    let titles: Vec<&str> = outputs.iter().map(|output| output.title.as_str()).collect();
    let card = Card {
        card_id: CardId::for_hour(action.id, at),
        date: local.date(),
        time: local.time().strftime("%H:%M").to_string(),
        title: one_line(&action.title, MAX_CARD_TITLE),
        text: CardText {
            goal: one_line(&action.task_config.instructions, MAX_FACT),
            acceptance: one_line(&action.task_config.expected_output, MAX_FACT),
            artifacts: one_line(&titles.join("; "), MAX_FACT),
            status: one_line(&status, MAX_FACT),
            ..CardText::default()
        },
        source: Some(Source::Run(run.run_id)),
        namespace: String::new(),
        created_at: at,
    };
    writes(cx, owner, &card)
}

/// A text in one line of at most `max` bytes.
fn one_line(text: &str, max: usize) -> String {
    let words: Vec<&str> =
        text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty()).collect();
    let line = words.join(" ");
    if line.len() <= max {
        return line;
    }
    format!("{}…", &line[..line.floor_char_boundary(max - '…'.len_utf8())])
}

/// The cards of a day, in the order of their times.
///
/// # Errors
/// If the table does not answer.
pub async fn of_date(data: &Data, owner: &Owner, date: Date) -> Result<Vec<Card>> {
    use jiff::ToSpan;
    // A local day lies within three UTC days.
    let mut cards = Vec::new();
    for day in [date.saturating_sub(1.day()), date, date.saturating_add(1.day())] {
        cards.extend(data.store.cards_of(owner, day).await?.into_iter().filter(|card| card.date == date));
    }
    cards.sort_by(|a, b| (&a.time, a.card_id).cmp(&(&b.time, b.card_id)));
    Ok(cards)
}

/// The day of a person now.
///
/// # Errors
/// If the table does not answer.
pub async fn today(cx: &Cx, owner: &Owner) -> Result<Date> {
    let zone = schedules::zone_of(cx, owner, None).await?;
    Ok(zone.to_datetime(cx.clock.now()).date())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_becomes_one_line() {
        assert_eq!(one_line(" a\n\n b\u{0}c \t", 20), "a b c");
        let cut = one_line(&"ü".repeat(300), 101);
        assert!(cut.len() <= 101 && cut.ends_with('…'), "{cut}");
    }
}
