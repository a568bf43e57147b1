//! When something is due, in the words of a person: a small grammar of English phrases.
//!
//! `phrases` finds the phrases that name times, and this file makes one schedule of them. What it does not understand, or what can't
//! be a schedule, becomes a sentence for the person. It never guesses another time instead.

mod phrases;
#[cfg(test)]
mod tests;
mod tokens;

use domain::schedule::{MONTHS, ScheduleInput};
use jiff::civil::{Date, DateTime, Time};
use jiff::{SignedDuration, Span, ZonedDateTime};
use serde_json::{Value, json};

use phrases::{Clock, Day, Facts, Repeat, Unit, WEEKDAYS};

/// When the work of a sentence is due.
#[derive(Debug, Clone, PartialEq)]
pub enum When {
    /// The sentence names no time.
    Unsaid,
    /// A schedule as the tools take it. It has a zone only if the sentence names one.
    At(Value),
    /// A sentence for the person: what was not understood, or why it can't be a schedule.
    Unclear(String),
}

/// What the times in a sentence say.
#[derive(Debug, Clone, PartialEq)]
pub struct Reading {
    pub when: When,
    /// Whether the words can only mean when the work is due. "On Monday" may also belong to the content of a text.
    pub is_certain: bool,
    /// Whether a time of day stands where it can hardly belong to the content: "at 9 write a report".
    pub leads: bool,
    /// The words that name no time, in lower case.
    pub rest: Vec<String>,
}

/// Reads a sentence. `now` is the time of the person; without it, "tomorrow" is unclear.
pub fn read(text: &str, now: Option<&ZonedDateTime>) -> Reading {
    let (facts, rest) = phrases::find(text);
    read_facts(facts, rest, now)
}

fn read_facts(facts: Facts, rest: Vec<String>, now: Option<&ZonedDateTime>) -> Reading {
    let (is_certain, leads) = (facts.is_certain(), facts.leads);
    let when = match schedule(facts, now) {
        Ok(Some(schedule)) => checked(schedule, now),
        Ok(None) => When::Unsaid,
        Err(why) => When::Unclear(why),
    };
    Reading { when, is_certain, leads, rest }
}

/// Reads a sentence that changes the time of work that repeats, such as "make it Wednesday" or "at 10 instead". `current` is its
/// schedule in words. What the sentence does not name stays: the days, the time of day, the zone.
pub fn read_change(text: &str, current: &str, now: Option<&ZonedDateTime>) -> Reading {
    let (mut facts, mut rest) = phrases::find(&phrases::of_change(text));
    // In a change, the bare name of a weekday is enough.
    let day = |word: &String| WEEKDAYS.iter().position(|day| day == word);
    if let (true, Some(named)) = (facts.days.is_empty(), rest.iter().find_map(day)) {
        facts.days.push((Day::Weekday(named), false));
        rest.retain(|word| day(word).is_none());
    }
    let (mut was, _) = phrases::find(current);
    // The words of a schedule that repeats are "At 09:00 on Monday", or "At 09:00" for every day. Those of a single time begin with
    // "Once".
    if was.repeats.is_empty() && current.starts_with("At ") {
        match &was.days[..] {
            [] => was.repeats.push(Repeat::Daily),
            [(Day::Weekday(day), _)] => was.repeats.push(Repeat::Weekly(1 << day)),
            _ => {}
        }
    }
    let keeps = facts.repeats.is_empty() && facts.wrong.is_none() && facts.vague.is_none();
    let repeats = match (&was.repeats[..], &facts.days[..]) {
        _ if !keeps => None,
        ([_, ..], []) if !facts.clocks().is_empty() => Some(was.repeats.clone()),
        ([Repeat::Weekly(_)], [(Day::Weekday(day), _)]) => Some(vec![Repeat::Weekly(1 << day)]),
        _ => None,
    };
    if let Some(repeats) = repeats {
        facts.repeats = repeats;
        facts.days.clear();
        if facts.clocks().is_empty() {
            (facts.times, facts.part) = (was.times, was.part);
        }
        facts.zone = facts.zone.or(was.zone);
    } else if !facts.repeats.is_empty() {
        // "Change it to weekdays" keeps the time of day, and another repetition keeps the zone.
        let has_clock = |repeats: &[Repeat]| !repeats.iter().any(|one| matches!(one, Repeat::Every { .. }));
        if facts.clocks().is_empty() && has_clock(&facts.repeats) && has_clock(&was.repeats) {
            (facts.times, facts.part) = (was.times, was.part);
        }
        facts.zone = facts.zone.or(was.zone);
    } else if keeps && facts.days.is_empty() && !facts.clocks().is_empty() {
        // The day of work that runs once stays.
        facts.days = was.days;
    }
    read_facts(facts, rest, now)
}

pub use phrases::without_times;

/// A schedule in words, in its zone or in that of the person.
pub fn in_words(schedule: &Value, now: Option<&ZonedDateTime>) -> Option<String> {
    let zone = now.and_then(|now| now.time_zone().iana_name()).unwrap_or("UTC");
    let input: ScheduleInput = serde_json::from_value(schedule.clone()).ok()?;
    input.or_in(zone).validate().ok().map(|schedule| schedule.describe())
}

/// What the platform would refuse is unclear, and so is a time that has passed.
fn checked(schedule: Value, now: Option<&ZonedDateTime>) -> When {
    let zone = now.and_then(|now| now.time_zone().iana_name()).unwrap_or("UTC");
    let input = serde_json::from_value::<ScheduleInput>(schedule.clone());
    match input.map(|input| input.or_in(zone).validate()) {
        Ok(Ok(valid)) => {
            let now = now.map(ZonedDateTime::timestamp);
            if now.is_some_and(|now| valid.next_after(now, now).is_none()) {
                return When::Unclear(format!("That time has passed: {}", valid.describe()));
            }
            When::At(schedule)
        }
        Ok(Err(errors)) => When::Unclear(format!("That can't be a schedule: {errors}.")),
        Err(error) => When::Unclear(format!("That can't be a schedule: {error}.")),
    }
}

fn schedule(mut facts: Facts, now: Option<&ZonedDateTime>) -> Result<Option<Value>, String> {
    if let Some(wrong) = facts.wrong.take() {
        return Err(wrong);
    }
    let repeat = match facts.repeats.split_first() {
        None => None,
        Some((first, others)) => {
            let both = others.iter().try_fold(first.clone(), Repeat::and);
            Some(both.ok_or("I understood two repetitions that don't fit together. Name one of them.")?)
        }
    };
    let mut schedule = match repeat {
        Some(repeat) => json_of(repeat, &facts)?,
        None => match once(&facts, now)? {
            Some(at) => json!({ "at": at }),
            None => return Ok(None),
        },
    };
    if let Some(zone) = &facts.zone {
        schedule["timezone"] = zone.clone().into();
    }
    Ok(Some(schedule))
}

/// The default if a sentence names a day and no time.
const MORNING: Clock = Clock { hour: 9, minute: 0 };

impl Facts {
    fn is_certain(&self) -> bool {
        let days = &self.days;
        !self.repeats.is_empty()
            || self.wrong.is_some()
            || days.iter().any(|(_, certain)| *certain)
            || !days.is_empty() && !self.times.is_empty()
    }

    /// The named times, or that of the part of the day.
    fn clocks(&self) -> Vec<Clock> {
        match (&self.times[..], self.part) {
            ([], None) => Vec::new(),
            ([], Some(part)) => vec![Clock { hour: part.hour, minute: 0 }],
            // "At 8 in the evening".
            (times, Some(part)) if part.hour > 12 => {
                let later = |clock: &Clock| match clock.hour {
                    1..=11 => Clock { hour: clock.hour + 12, ..*clock },
                    _ => *clock,
                };
                times.iter().map(later).collect()
            }
            (times, _) => times.to_vec(),
        }
    }

    /// The minute and the hours of a cron.
    fn cron_time(&self) -> Result<String, String> {
        let mut clocks = self.clocks();
        if clocks.is_empty() {
            clocks.push(MORNING);
        }
        clocks.sort_unstable();
        clocks.dedup();
        if clocks.iter().any(|clock| clock.minute != clocks[0].minute) {
            return Err("One action can have several times a day only if their minutes are the same, \
                        such as \"at 8:30 and 17:30\"."
                .to_owned());
        }
        let hours: Vec<String> = clocks.iter().map(|clock| clock.hour.to_string()).collect();
        Ok(format!("{} {}", clocks[0].minute, hours.join(",")))
    }
}

impl Repeat {
    /// What two phrases say together: "a weekly report every Monday".
    fn and(self, other: &Self) -> Option<Self> {
        Some(match (self, other.clone()) {
            (one, other) if one == other => one,
            (Self::Weekly(one), Self::Weekly(other)) => Self::Weekly(one | other),
            (Self::Monthly(one), Self::Monthly(other)) => Self::Monthly(one | other),
            (Self::Months(step, one), Self::Monthly(other))
            | (Self::Monthly(other), Self::Months(step, one)) => Self::Months(step, one | other),
            (Self::Daily, Self::Weekly(days)) | (Self::Weekly(days), Self::Daily) if days != 0 => {
                Self::Weekly(days)
            }
            (Self::Yearly(None), Self::Yearly(date)) | (Self::Yearly(date), Self::Yearly(None)) => {
                Self::Yearly(date)
            }
            (Self::Every { count, unit, .. }, Self::Weekly(days))
            | (Self::Weekly(days), Self::Every { count, unit, .. })
                if days != 0 && unit != 'd' =>
            {
                Self::Every { count, unit, days }
            }
            _ => return None,
        })
    }

    /// A day that belongs to the repetition: "every week on Monday".
    fn on(self, day: &Day) -> Option<Self> {
        Some(match (self, day) {
            (Self::Weekly(0), Day::Weekday(day)) => Self::Weekly(1 << day),
            (Self::Monthly(0), Day::OfMonth(day)) => Self::Monthly(1 << day),
            (Self::Months(step, 0), Day::OfMonth(day)) => Self::Months(step, 1 << day),
            (Self::Yearly(None), Day::Date { year: None, month, day }) => Self::Yearly(Some((*month, *day))),
            _ => return None,
        })
    }
}

/// A repetition as `every` or `cron`.
fn json_of(mut repeat: Repeat, facts: &Facts) -> Result<Value, String> {
    for (day, is_certain) in &facts.days {
        match repeat.clone().on(day) {
            Some(both) => repeat = both,
            // "Every Monday, write a plan for tomorrow".
            None if !is_certain && !matches!(day, Day::OfMonth(_)) => {}
            None => {
                return Err("I understood both one day and a repetition. Name one of them, such as \"tomorrow at 9\" or \
                            \"every day at 9\"."
                    .to_owned());
            }
        }
    }
    let cron = |days: &str| Ok(json!({"cron": format!("{} {days}", facts.cron_time()?)}));
    match repeat {
        Repeat::Every { .. } if !facts.clocks().is_empty() => {
            Err("An interval has no time of day. Say \"every 2 hours\", or \
                                                                   \"every day at 9\"."
                .to_owned())
        }
        Repeat::Every { count, unit, days: 0 } => Ok(json!({"every": format!("{count}{unit}")})),
        Repeat::Every { count, unit, days } => {
            let days = weekdays(days);
            match unit {
                'm' if count < 60 && 60 % count == 0 => Ok(json!({"cron": format!("*/{count} * * * {days}")})),
                'h' if count < 24 && 24 % count == 0 => Ok(json!({"cron": format!("0 */{count} * * {days}")})),
                _ => Err("On chosen days, an interval must be a part of an hour or of a day, such as \"every 2 hours on weekdays\"."
                    .to_owned()),
            }
        }
        Repeat::Daily => cron("* * *"),
        Repeat::Weekly(0) => cron("* * MON"),
        Repeat::Weekly(days) => cron(&format!("* * {}", weekdays(days))),
        Repeat::Monthly(days) => cron(&format!("{} * *", days_of_month(days))),
        Repeat::Months(step, days) => cron(&format!("{} */{step} *", days_of_month(days))),
        Repeat::Yearly(date) => {
            let (month, day) = date.unwrap_or((1, 1));
            cron(&format!("{day} {month} *"))
        }
    }
}

fn weekdays(days: u8) -> String {
    const WORKDAYS: u8 = 0b1_1111;
    if days == WORKDAYS {
        return "MON-FRI".to_owned();
    }
    let named = (0..7).filter(|day| days >> day & 1 == 1);
    named.map(|day: usize| WEEKDAYS[day][..3].to_uppercase()).collect::<Vec<_>>().join(",")
}

/// Bit 0 is the last day of the month.
fn days_of_month(days: u32) -> String {
    let numbers = (1..32).filter(|day| days >> day & 1 == 1).map(|day: u32| day.to_string());
    let last = (days & 1 == 1).then(|| "L".to_owned());
    let days: Vec<String> = numbers.chain(last).collect();
    if days.is_empty() { "1".to_owned() } else { days.join(",") }
}

/// The one time that the sentence names, as `at`.
fn once(facts: &Facts, now: Option<&ZonedDateTime>) -> Result<Option<String>, String> {
    let clocks = facts.clocks();
    if let Some(vague) = &facts.vague
        && facts.days.is_empty()
        && clocks.is_empty()
    {
        return Err(format!(
            "\"{vague}\" is not a time that I can plan for. Name a day, such as \"tomorrow at 5 pm\"."
        ));
    }
    let day = match &facts.days[..] {
        [] if clocks.is_empty() => return Ok(None),
        [] => None,
        [(day, _), others @ ..] if others.iter().all(|(other, _)| other == day) => Some(day),
        _ => return Err("I understood two different days. Name one of them.".to_owned()),
    };
    if clocks.len() > 1 {
        return Err(
            "I understood several times. For one day, name one of them; for every day, say \"every day\"."
                .to_owned(),
        );
    };
    let clock = clocks.first().copied();
    let now = match (now, day) {
        (Some(now), _) => now.clone(),
        (None, Some(Day::Date { year: Some(_), .. })) => ZonedDateTime::default(),
        (None, _) => {
            return Err("I was not told what day it is. Name a date, such as \"2026-12-01 at 9\".".to_owned());
        }
    };
    let too_far = |_: jiff::Error| "That is too far in the future.".to_owned();
    let today = now.date();
    let date = match day {
        None => {
            let at = today.to_datetime(clock.unwrap_or(MORNING).time());
            // With a zone of its own, the check of the whole schedule finds it.
            if facts.zone.is_none() && at <= now.datetime() {
                let time = at.strftime("%H:%M");
                return Err(format!(
                    "It is {time} or later today. Say \"tomorrow at {time}\" or \"every day at {time}\"."
                ));
            }
            today
        }
        Some(Day::Past(said)) => return Err(format!("\"{said}\" is in the past.")),
        Some(Day::After(days)) => today.checked_add(Span::new().days(*days)).map_err(too_far)?,
        Some(Day::Weekday(day)) => {
            let ahead = (day + 7 - weekday_of(today) - 1) % 7 + 1;
            today.checked_add(Span::new().days(i64::try_from(ahead).unwrap_or(1))).map_err(too_far)?
        }
        Some(Day::OfMonth(day)) => {
            let months = (0..12)
                .filter_map(|month| today.first_of_month().checked_add(Span::new().months(month)).ok());
            let mut dates = months.filter_map(|first| Date::new(first.year(), first.month(), *day).ok());
            dates.find(|date| *date > today).ok_or("I know no such day.")?
        }
        Some(Day::Date { year, month, day }) => {
            let none =
                || format!("There is no {day} {}.", MONTHS[usize::try_from(*month - 1).unwrap_or_default()]);
            match year {
                Some(year) => Date::new(*year, *month, *day).map_err(|_| none())?,
                // 29 February may be years away.
                None => (today.year()..today.year().saturating_add(9))
                    .filter_map(|year| Date::new(year, *month, *day).ok())
                    .find(|date| {
                        *date > today
                            || *date == today && clock.is_some_and(|clock| clock.time() > now.time())
                    })
                    .ok_or_else(none)?,
            }
        }
        Some(Day::In(count, unit)) => {
            // The calendar ends long before.
            let count = i64::try_from(*count).unwrap_or(i64::MAX);
            let minutes = match unit {
                Unit::Minute => Some(count),
                Unit::Hour => Some(count.saturating_mul(60)),
                _ => None,
            };
            if let Some(minutes) = minutes {
                if clock.is_some() {
                    return Err("I understood two times. Name one of them.".to_owned());
                }
                let at = now
                    .checked_add(SignedDuration::from_secs(minutes.saturating_mul(60)))
                    .map_err(too_far)?;
                // As an instant, because a wall time may exist twice.
                return Ok(Some(at.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string()));
            }
            let span = match unit {
                Unit::Day => Span::new().try_days(count),
                Unit::Week => Span::new().try_weeks(count),
                Unit::Month => Span::new().try_months(count),
                Unit::Quarter => Span::new().try_months(count.saturating_mul(3)),
                _ => Span::new().try_years(count),
            };
            span.and_then(|span| today.checked_add(span)).map_err(too_far)?
        }
    };
    let time = match (clock, day) {
        (Some(clock), _) => clock.time(),
        (None, Some(Day::In(..))) => now.time(),
        (None, _) => MORNING.time(),
    };
    let at: DateTime = date.to_datetime(time);
    Ok(Some(at.strftime("%Y-%m-%dT%H:%M").to_string()))
}

/// 0 is Monday.
fn weekday_of(date: Date) -> usize {
    usize::try_from(date.weekday().to_monday_zero_offset()).unwrap_or_default()
}

impl Clock {
    fn time(self) -> Time {
        Time::constant(self.hour, self.minute, 0, 0)
    }
}
