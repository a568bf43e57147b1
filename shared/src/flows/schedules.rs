//! The time zone of an owner, and previews of schedules before anybody approves one.

use domain::actions::ApprovalContent;
use domain::agents::Agent;
use domain::ids::Owner;
use domain::prompts::of_run;
use domain::schedule::{ScheduleInput, zone_or_utc};
use domain::validate::FieldErrors;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::context::{Cx, Data};
use crate::error::{Error, Result};
use crate::process::compute::Stop;

/// The most fire times that one preview shows.
const MAX_COUNT: usize = 100;

/// The schedule to preview.
#[derive(Clone, Debug, Deserialize, ToSchema)]
pub struct Preview {
    pub schedule: ScheduleInput,
    /// Only fire times after this time. `every` also counts from it. Default: now.
    #[serde(default)]
    pub from: Option<Timestamp>,
    /// The number of fire times, 1 to 100. Default 5.
    #[serde(default = "five")]
    #[schema(minimum = 1, maximum = 100)]
    pub count: usize,
}

fn five() -> usize {
    5
}

/// The next fire times of a schedule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct FireTimes {
    /// Fewer than requested if the schedule ends.
    pub fire_times: Vec<Timestamp>,
    /// The schedule as a sentence.
    #[schema(example = "At 09:00 on weekdays (Europe/Berlin).")]
    pub schedule_text: String,
}

/// The zone of an agent: its own, or that of the owner's account.
///
/// # Errors
/// If the table does not answer.
pub async fn zone_of(data: &Data, owner: &Owner, agent: Option<&Agent>) -> Result<TimeZone> {
    Ok(zone_or_utc(&zone_name(data, owner, agent).await?))
}

/// The zone of a run of an action. See [`of_run::zone`].
///
/// # Errors
/// If the table does not answer.
pub async fn zone_of_run(data: &Data, owner: &Owner, content: &ApprovalContent) -> Result<TimeZone> {
    match of_run::zone(content) {
        Some(zone) => Ok(zone),
        None => zone_of(data, owner, None).await,
    }
}

async fn zone_name(data: &Data, owner: &Owner, agent: Option<&Agent>) -> Result<String> {
    match agent.and_then(|agent| agent.timezone.clone()) {
        Some(own) => Ok(own),
        None => Ok(data.store.account(owner).await?.value.timezone),
    }
}

/// The schedule in the zone of its agent, or of the owner's account, if it names none.
///
/// # Errors
/// If the table does not answer.
pub async fn in_zone_of(
    data: &Data,
    owner: &Owner,
    agent: Option<&Agent>,
    schedule: ScheduleInput,
) -> Result<ScheduleInput> {
    if schedule.timezone.is_some() {
        return Ok(schedule);
    }
    Ok(schedule.or_in(&zone_name(data, owner, agent).await?))
}

/// # Errors
/// 400 with everything that is wrong with the schedule or the count.
pub async fn preview(cx: &Cx, owner: &Owner, input: Preview) -> Result<FireTimes> {
    let Preview { schedule, from, count } = input;
    let schedule = in_zone_of(cx, owner, None, schedule).await?;
    let mut errors = FieldErrors::default();
    let schedule = errors.nest("schedule", schedule.validate());
    if !(1..=MAX_COUNT).contains(&count) {
        errors.add("count", format!("must be 1 to {MAX_COUNT}, is {count}"));
    }
    from.iter().for_each(|from| errors.time("from", *from));
    let Some(schedule) = errors.into_result(schedule)? else {
        return Err(Error::internal("an error was lost"));
    };
    let from = from.unwrap_or_else(|| cx.clock.now());
    // In whole seconds, as an approval would anchor it.
    let anchor = Timestamp::from_second(from.as_second()).unwrap_or(from);
    let look_ahead = move |stop: &Stop| {
        let schedule_text = schedule.describe();
        let (mut fire_times, mut last) = (Vec::new(), from);
        while fire_times.len() < count
            && let Some(next) = schedule.next_after(anchor, last)
        {
            stop.check()?;
            fire_times.push(next);
            last = next;
        }
        Ok(FireTimes { fire_times, schedule_text })
    };
    cx.compute.answers.run(look_ahead).await
}
