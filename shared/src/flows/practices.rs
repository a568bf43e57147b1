//! Practices: created, read, changed, deleted with all their check-ins; check-ins of days.
//!
//! A practice's record has a mark of each check-in, and each check-in and its mark are written in one transaction. So a read of a
//! practice reads one item, whatever the length of its history, and of two check-ins at the same time both are kept.

use std::time::Duration;

use domain::ids::{Owner, PracticeId};
use domain::practices::{
    CheckIn, MAX_PRACTICES, NewCheckIn, NewPractice, Practice, PracticePatch, PracticeStatus, PracticeView,
    Streak, day_named, find,
};
use domain::schedule::moment_in_words;
use domain::tools::practices::QueryPractice;
use domain::validate::FieldErrors;
use futures::FutureExt;
use jiff::ToSpan;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::{IntoParams, ToSchema};

use super::page::{self, Page, PageQuery};
use super::{edit, schedules};
use crate::context::{Cx, Data};
use crate::error::{Error, Result};
use crate::request::caller::IfMatch;
use crate::store::accounts::quota::Created;
use crate::store::keys;
use crate::store::table::QueryPage;
use crate::store::{Once, StoreError, Tries, Versioned};

/// How long a check-in is tried while others change the same practice.
const MAX_RETRY_TIME: Duration = Duration::from_secs(10);

/// A stored check-in.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct CheckedIn {
    #[serde(flatten)]
    pub check_in: CheckIn,
    /// The streaks of the practice with this check-in.
    pub streak: Streak,
}

/// Which check-ins to list.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct AskedCheckIns {
    /// Only days from this one on, such as `2026-11-01`.
    #[param(value_type = Option<String>, format = Date)]
    pub from: Option<String>,
    /// Only days up to this one.
    #[param(value_type = Option<String>, format = Date)]
    pub to: Option<String>,
}

/// The days that are asked for.
#[derive(Clone, Copy, Debug, Default)]
struct Days {
    from: Option<Date>,
    to: Option<Date>,
}

impl Days {
    fn read(from: Option<&str>, to: Option<&str>) -> Result<Self, FieldErrors> {
        let mut errors = FieldErrors::default();
        let mut day = |field: &str, text: Option<&str>| match text.map(day_named)? {
            Ok(day) => Some(day),
            Err(told) => {
                errors.add(field, told);
                None
            }
        };
        let days = Self { from: day("from", from), to: day("to", to) };
        if let Self { from: Some(from), to: Some(to) } = days
            && from > to
        {
            errors.add("from", format!("must not be after `to`, which is {to}; is {from}"));
        }
        errors.into_result(days)
    }
}

/// # Errors
/// 404 if it does not exist, or is being deleted.
async fn load(data: &Data, owner: &Owner, id: PracticeId) -> Result<Versioned<Practice>> {
    let found = data.store.practice(owner, id).await?;
    found.filter(|practice| !practice.value.is_deleted).ok_or(Error::NotFound("practice"))
}

/// The zone of the account, if one of these practices has no zone of its own.
async fn account_zone<'a>(
    data: &Data,
    owner: &Owner,
    practices: impl IntoIterator<Item = &'a Practice>,
) -> Result<TimeZone> {
    if practices.into_iter().all(|practice| practice.timezone.is_some()) {
        return Ok(TimeZone::UTC);
    }
    schedules::zone_of(data, owner, None).await
}

async fn view(data: &Data, owner: &Owner, practice: Practice) -> Result<PracticeView> {
    let zone = account_zone(data, owner, [&practice]).await?;
    Ok(practice.view(data.clock.now(), &zone))
}

/// # Errors
/// 400 with every invalid field and its limit; 409 if the owner has as many practices as the limit allows.
pub async fn create(cx: &Cx, owner: &Owner, once: &Once, input: NewPractice) -> Result<PracticeView> {
    let practice = input.into_practice(PracticeId::from_uuid(cx.clock.uuid()), cx.clock.now())?;
    let _lock = cx.locks.lock((owner, "practices")).await;
    let mut tries = Tries::within(MAX_RETRY_TIME);
    loop {
        tries.next().await?;
        match cx.store.create_practice(owner, once, &practice, MAX_PRACTICES).await? {
            Created::Yes => return view(cx, owner, practice).await,
            Created::TooMany => {
                let told = format!(
                    "an account has at most {MAX_PRACTICES} practices, with archived ones: delete one first"
                );
                return Err(Error::conflict("too_many_practices", told));
            }
            Created::Raced => {}
        }
    }
}

/// # Errors
/// 404 if it does not exist.
pub async fn read(cx: &Cx, owner: &Owner, id: PracticeId) -> Result<PracticeView> {
    view(cx, owner, load(cx, owner, id).await?.value).await
}

/// # Errors
/// 400 if `limit` or `cursor` is invalid.
pub async fn list(
    cx: &Cx,
    owner: &Owner,
    status: Option<PracticeStatus>,
    query: &PageQuery,
) -> Result<Page<PracticeView>> {
    let read = |after: Option<String>, limit| {
        async move { cx.store.practices(owner, after.as_deref(), limit).await }.boxed()
    };
    let keep =
        |practice: &Practice| !practice.is_deleted && status.is_none_or(|status| practice.status == status);
    let found = page::filtered(owner, "practices", query, read, keep).await?;
    let zone = account_zone(cx, owner, found.data.iter().map(|practice| &practice.value)).await?;
    let now = cx.clock.now();
    Ok(found.map(|practice| practice.value.view(now, &zone)))
}

/// # Errors
/// 404; 400 with every invalid field; 409 if `If-Match` is not the current version.
pub async fn change(
    cx: &Cx,
    owner: &Owner,
    id: PracticeId,
    if_match: Option<IfMatch>,
    patch: PracticePatch,
) -> Result<PracticeView> {
    let _lock = cx.locks.lock((owner, id)).await;
    let mut tries = Tries::within(MAX_RETRY_TIME);
    loop {
        tries.next().await?;
        let current = load(cx, owner, id).await?;
        check_version(cx, owner, if_match, &current.value).await?;
        let practice = current.value.patched(patch.clone(), cx.clock.now())?;
        if cx.store.replace_practice(owner, &practice, current.version).await?.done() {
            return view(cx, owner, practice).await;
        }
    }
}

async fn check_version(cx: &Cx, owner: &Owner, if_match: Option<IfMatch>, current: &Practice) -> Result<()> {
    let shown = async { view(cx, owner, current.clone()).await };
    edit::check_read(if_match, current.edition, shown).await
}

/// Deletes a practice and all its check-ins. The record first says that it is deleted, so that nothing is added any more, and is deleted
/// last, so that the check-ins can be found as long as there are any. If a call was interrupted, the next one continues.
///
/// # Errors
/// 404 if it does not exist; 409 if `If-Match` is not the current version.
pub async fn delete(cx: &Cx, owner: &Owner, id: PracticeId, if_match: Option<IfMatch>) -> Result<()> {
    let mut tries = Tries::within(MAX_RETRY_TIME);
    loop {
        tries.next().await?;
        let found = cx.store.practice(owner, id).await?.ok_or(Error::NotFound("practice"))?;
        if found.value.is_deleted {
            break;
        }
        check_version(cx, owner, if_match, &found.value).await?;
        let deleted = Practice { is_deleted: true, ..found.value };
        if cx.store.replace_practice(owner, &deleted, found.version).await?.done() {
            break;
        }
    }
    Ok(cx.store.delete_practice(owner, id).await?)
}

/// Stores a check-in. Returns whether it is the first one of its day; otherwise it has replaced an earlier one.
///
/// # Errors
/// 404 if the practice does not exist; 400 with every invalid field and its limit; 409 if it is archived.
pub async fn check_in(
    cx: &Cx,
    owner: &Owner,
    once: &Once,
    id: PracticeId,
    input: NewCheckIn,
) -> Result<(CheckedIn, bool)> {
    let _lock = cx.locks.lock((owner, id)).await;
    let mut tries = Tries::within(MAX_RETRY_TIME);
    loop {
        tries.next().await?;
        let current = load(cx, owner, id).await?;
        if current.value.status == PracticeStatus::Archived {
            let told = "an archived practice takes no check-ins: make it active first";
            let current = view(cx, owner, current.value).await?;
            return Err(Error::conflict_with("practice_archived", told, &current));
        }
        let zone = account_zone(cx, owner, [&current.value]).await?;
        let now = cx.clock.now();
        let check_in = input.clone().into_check_in(now, &current.value.zone(&zone))?;
        let is_new = current.value.marks.of(check_in.date).is_none();
        let practice = current.value.checked_in(&check_in);
        if cx.store.check_in(owner, once, (&practice, current.version), &check_in).await?.done() {
            return Ok((CheckedIn { check_in, streak: practice.view(now, &zone).streak }, is_new));
        }
    }
}

/// # Errors
/// 404 if the practice does not exist or has no check-in on this day.
pub async fn read_check_in(cx: &Cx, owner: &Owner, id: PracticeId, day: Date) -> Result<CheckIn> {
    load(cx, owner, id).await?;
    cx.store.check_in_of(owner, id, day).await?.ok_or(Error::NotFound("check-in"))
}

/// # Errors
/// 404 if the practice does not exist or has no check-in on this day.
pub async fn delete_check_in(cx: &Cx, owner: &Owner, id: PracticeId, day: Date) -> Result<()> {
    let _lock = cx.locks.lock((owner, id)).await;
    let mut tries = Tries::within(MAX_RETRY_TIME);
    loop {
        tries.next().await?;
        let current = load(cx, owner, id).await?;
        let practice = current.value.without(day).ok_or(Error::NotFound("check-in"))?;
        if cx.store.delete_check_in(owner, (&practice, current.version), day).await?.done() {
            return Ok(());
        }
    }
}

/// The check-ins of a practice, newest first.
///
/// # Errors
/// 404 if the practice does not exist; 400 if a day, `limit` or `cursor` is invalid.
pub async fn check_ins(
    cx: &Cx,
    owner: &Owner,
    id: PracticeId,
    asked: &AskedCheckIns,
    query: &PageQuery,
) -> Result<Page<CheckIn>> {
    let days = Days::read(asked.from.as_deref(), asked.to.as_deref())?;
    load(cx, owner, id).await?;
    let read = |after: Option<String>, limit| {
        async move { check_ins_of(cx, owner, id, days, after, limit).await }.boxed()
    };
    let page = page::filtered(owner, &format!("check-ins of {id}"), query, read, |_| true).await?;
    Ok(page.map(|check_in| check_in.value))
}

/// A page of the check-ins of these days, newest first, before the sort key `before`. It ends with the first day.
async fn check_ins_of(
    data: &Data,
    owner: &Owner,
    id: PracticeId,
    Days { from, to }: Days,
    before: Option<String>,
    limit: usize,
) -> Result<QueryPage<CheckIn>, StoreError> {
    // The sort key that follows the last day.
    let end = to.and_then(|day| day.checked_add(1.day()).ok()).map(|day| keys::check_in(owner, id, day).sk);
    let before = match (before, end) {
        (Some(before), Some(end)) => Some(before.min(end)),
        (before, end) => before.or(end),
    };
    let mut found = data.store.check_ins(owner, id, before.as_deref(), limit).await?;
    if let Some(from) = from {
        let all = found.items.len();
        found.items.retain(|(_, check_in)| check_in.value.date >= from);
        if found.items.len() < all {
            found.last = None;
        }
    }
    Ok(found)
}

/// The most check-ins of an answer for a model.
const MAX_TOLD: usize = 60;

/// What a model is told about the person's practices: all of them, or one that it names. The inner error is a sentence for the model.
///
/// # Errors
/// If the table does not answer.
pub async fn query(
    data: &Data,
    owner: &Owner,
    QueryPractice { practice, from, to }: QueryPractice,
) -> Result<Result<Value, String>> {
    let days = match Days::read(from.as_deref(), to.as_deref()) {
        Ok(days) => days,
        Err(errors) => return Ok(Err(errors.to_string())),
    };
    let mut practices = data.store.all_practices(owner, MAX_PRACTICES).await?;
    let is_named = practice.is_some();
    if let Some(named) = practice {
        match find(&practices, &named) {
            Ok(found) => practices = vec![found.clone()],
            Err(sentence) => return Ok(Err(sentence)),
        }
    } else {
        practices.retain(|practice| practice.status == PracticeStatus::Active);
    }
    let zone = account_zone(data, owner, &practices).await?;
    let now = data.clock.now();
    // Without days, check-ins are told of one practice alone.
    let wants_check_ins = is_named || days.from.is_some() || days.to.is_some();
    let (mut rows, mut room, mut complete) = (Vec::with_capacity(practices.len()), MAX_TOLD, true);
    for practice in practices {
        let practice_zone = practice.zone(&zone);
        let view = practice.view(now, &zone);
        let mut row = row(&view);
        if wants_check_ins && room > 0 {
            let found = check_ins_of(data, owner, view.practice_id, days, None, room).await?;
            room -= found.items.len();
            complete &= found.last.is_none();
            let told = found.items.into_iter().map(|(_, check_in)| check_in.value);
            row["check_ins"] = told.map(|check_in| told_check_in(&check_in)).collect();
        } else if wants_check_ins {
            complete = false;
        }
        row["now"] = json!(moment_in_words(now, &practice_zone));
        rows.push(row);
    }
    let mut answer = json!({ "practices": rows });
    if !complete {
        answer["more_check_ins"] = json!(format!(
            "there are more; these are the newest {MAX_TOLD} at most: name a practice, or fewer days with from and to"
        ));
    }
    Ok(Ok(answer))
}

fn row(view: &PracticeView) -> Value {
    let mut row = json!({
        "practice_id": view.practice_id, "name": view.name, "target": view.target_text, "status": view.status,
        "current_streak": view.streak.current, "longest_streak": view.streak.longest, "streak_unit": view.streak.unit,
        "today": {"date": view.today.day.date, "due": view.today.day.due, "done": view.today.day.done},
        "done_in_last_14_days": view.last_days.iter().filter(|day| day.done == Some(true)).count(),
    });
    if !view.description.is_empty() {
        row["description"] = json!(view.description);
    }
    row
}

fn told_check_in(CheckIn { date, done, note, .. }: &CheckIn) -> Value {
    let mut row = json!({ "date": date, "done": done });
    if !note.is_empty() {
        row["note"] = json!(note);
    }
    row
}
