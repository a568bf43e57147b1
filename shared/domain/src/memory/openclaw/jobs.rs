//! The jobs of OpenClaw. Each becomes an action that nobody has approved.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::Value;

use super::{MAIN, told};
use crate::schedule::{ScheduleInput, Timing};
use crate::validate::FieldErrors;

/// The most jobs of a file that are looked at.
pub const MAX_JOBS: usize = 200;

/// What the platform does by itself.
const OWN: [&str; 5] = [
    "memory-sync-daily",
    "memory-weekly-tidy",
    "memory-cron-watchdog",
    "memory-retrieval-watchdog-v1",
    "memory-qmd-nightly-maintain",
];

/// The longest title and description of an action, in characters.
const MAX_TITLE: usize = 200;
const MAX_DESCRIPTION: usize = 2_000;

/// A job that can become an action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// What tells it from the other jobs of its agent.
    pub key: String,
    pub agent: String,
    /// 1 to 200 characters.
    pub title: String,
    pub description: String,
    pub instructions: String,
    /// It is valid. Without a zone, it is in that of the person.
    pub schedule: ScheduleInput,
}

/// The jobs of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Jobs {
    pub jobs: Vec<Job>,
    /// Why others are left out: a sentence for each.
    pub left_out: Vec<String>,
    /// At least one of the jobs that are not left out sends its result somewhere.
    pub delivers: bool,
}

/// Reads the jobs. `zone` is the person's.
///
/// # Errors
/// Why the file can't be read.
pub fn jobs(json: &[u8], now: Timestamp, zone: &TimeZone) -> Result<Jobs, String> {
    let file: Value = serde_json::from_slice(json).map_err(|error| format!("it is no JSON: {error}"))?;
    let Some(all) = file["jobs"].as_array().or_else(|| file.as_array()) else {
        return Err("it has no list `jobs`".to_owned());
    };
    let mut found = Jobs::default();
    for (at, job) in all.iter().take(MAX_JOBS).enumerate() {
        let name = text(&job["name"]).unwrap_or_default();
        match read(job, name, at, now, zone) {
            Ok(read) => {
                let to = &job["delivery"];
                found.delivers |= to.is_object() && to["mode"] != "none";
                found.jobs.push(read);
            }
            Err(reason) => {
                let name = if name.is_empty() { format!("number {}", at + 1) } else { told(name) };
                found.left_out.push(format!("the job {name} was left out: {reason}"));
            }
        }
    }
    if let Some(more) = all.len().checked_sub(MAX_JOBS).filter(|more| *more > 0) {
        found.left_out.push(format!("{more} jobs were left out: at most {MAX_JOBS} of a file are taken"));
    }
    Ok(found)
}

/// A text that is not empty.
fn text(value: &Value) -> Option<&str> {
    value.as_str().map(str::trim).filter(|text| !text.is_empty())
}

fn read(job: &Value, name: &str, at: usize, now: Timestamp, zone: &TimeZone) -> Result<Job, String> {
    if OWN.contains(&name) {
        return Err("the platform does this itself".to_owned());
    }
    if job["enabled"] == false {
        // An action is paused only after somebody has approved it.
        return Err("it is disabled".to_owned());
    }
    let payload = &job["payload"];
    let instructions = match payload["kind"].as_str() {
        Some("agentTurn") => text(&payload["message"]),
        Some("systemEvent") => text(&payload["text"]),
        _ => return Err("its payload is neither `agentTurn` nor `systemEvent`".to_owned()),
    };
    let instructions = instructions.ok_or("it has no text")?;
    let id = text(&job["id"]).or_else(|| text(&job["jobId"]));
    let key = id.map_or_else(|| format!("{at} {name}"), str::to_owned);
    let title = if name.is_empty() { format!("Job {key}") } else { name.to_owned() };
    Ok(Job {
        agent: text(&job["agentId"]).unwrap_or(MAIN).to_owned(),
        title: title.chars().take(MAX_TITLE).collect(),
        description: text(&job["description"]).unwrap_or_default().chars().take(MAX_DESCRIPTION).collect(),
        instructions: instructions.to_owned(),
        schedule: schedule(&job["schedule"], now, zone)?,
        key,
    })
}

fn schedule(given: &Value, now: Timestamp, zone: &TimeZone) -> Result<ScheduleInput, String> {
    let plain = ScheduleInput::default();
    let instant = |value: &Value| value.as_i64().and_then(|millis| Timestamp::from_millisecond(millis).ok());
    let input = match given["kind"].as_str() {
        Some("cron") => {
            let cron = text(&given["expr"]).ok_or("its schedule has no `expr`")?;
            if cron.split_whitespace().count() == 6 {
                return Err(
                    "its schedule has a field for seconds, and the shortest interval here is one minute"
                        .to_owned(),
                );
            }
            ScheduleInput {
                cron: Some(cron.to_owned()),
                timezone: text(&given["tz"]).map(str::to_owned),
                ..plain
            }
        }
        Some("every") => {
            let millis = given["everyMs"].as_u64().ok_or("its schedule has no `everyMs`")?;
            if millis < 60_000 {
                return Err("its interval is less than one minute".to_owned());
            }
            let start_at = instant(&given["anchorMs"]).map(|at| at.to_string());
            ScheduleInput { every: Some(format!("{}s", millis / 1_000)), start_at, ..plain }
        }
        Some("at") => {
            let at = match (text(&given["at"]), instant(&given["atMs"])) {
                (Some(at), _) => at.to_owned(),
                (None, Some(at)) => at.to_string(),
                (None, None) => return Err("its schedule has neither `at` nor `atMs`".to_owned()),
            };
            ScheduleInput { at: Some(at), timezone: text(&given["tz"]).map(str::to_owned), ..plain }
        }
        _ => return Err("its schedule is none of `cron`, `every` and `at`".to_owned()),
    };
    let named = |input: ScheduleInput| match zone.iana_name() {
        Some(name) => input.or_in(name),
        None => input,
    };
    let valid = named(input.clone())
        .validate()
        .map_err(|errors| format!("its schedule is not valid: {}", of(&errors)))?;
    if let Timing::At(moment) = valid.timing()
        && moment.instant(valid.time_zone()).is_none_or(|at| at <= now)
    {
        return Err("its time has passed".to_owned());
    }
    Ok(input)
}

/// The first error, in a line that is not too long.
fn of(errors: &FieldErrors) -> String {
    let first = errors.0.first().map(|error| format!("{}: {}", error.field, error.message));
    first.unwrap_or_default().chars().take(300).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    const NOW: &str = "2026-11-26T12:00:00Z";

    fn read_all(jobs_given: &Value) -> Jobs {
        let zone = TimeZone::get("Europe/Berlin").unwrap();
        jobs(jobs_given.to_string().as_bytes(), NOW.parse().unwrap(), &zone).unwrap()
    }

    fn job(change: Value) -> Value {
        let mut job = json!({
            "id": "j1", "agentId": "main", "name": "Report", "enabled": true,
            "schedule": {"kind": "cron", "expr": "0 9 * * 1", "tz": "America/New_York"},
            "sessionTarget": "isolated", "payload": {"kind": "agentTurn", "message": "Write it."},
        });
        for (name, value) in change.as_object().unwrap() {
            job[name] = value.clone();
        }
        job
    }

    fn one(change: Value) -> Result<Job, String> {
        let mut found = read_all(&json!({"version": 1, "jobs": [job(change)]}));
        found.jobs.pop().ok_or_else(|| found.left_out.pop().unwrap())
    }

    #[test]
    fn a_job_becomes_the_content_of_an_action() {
        let found = one(json!({})).unwrap();
        assert_eq!(
            (found.key.as_str(), found.agent.as_str(), found.title.as_str()),
            ("j1", "main", "Report")
        );
        assert_eq!(found.instructions, "Write it.");
        assert_eq!(found.schedule.cron.as_deref(), Some("0 9 * * 1"));
        assert_eq!(found.schedule.timezone.as_deref(), Some("America/New_York"));
        let every = one(
            json!({"schedule": {"kind": "every", "everyMs": 5_400_000, "anchorMs": 1_775_609_023_000_i64}}),
        );
        let every = every.unwrap().schedule;
        assert_eq!(
            (every.every.as_deref(), every.start_at.as_deref()),
            (Some("5400s"), Some("2026-04-08T00:43:43Z"))
        );
        for at in [
            json!({"kind": "at", "at": "2026-12-01T09:00:00+01:00"}),
            json!({"kind": "at", "atMs": 1_796_112_000_000_i64}),
            json!({"kind": "at", "at": "2026-12-01T09:00"}),
        ] {
            assert!(one(json!({"schedule": at.clone()})).unwrap().schedule.at.is_some(), "{at}");
        }
        let event =
            one(json!({"payload": {"kind": "systemEvent", "text": "Ping"}, "name": "", "agentId": null}));
        let event = event.unwrap();
        assert_eq!(
            (event.instructions.as_str(), event.title.as_str(), event.agent.as_str()),
            ("Ping", "Job j1", "main")
        );
        assert_eq!(one(json!({"id": null, "jobId": "k"})).unwrap().key, "k");
    }

    #[test]
    fn what_can_not_become_an_action_is_left_out_with_the_reason() {
        for (change, reason) in [
            (json!({"name": "memory-sync-daily"}), "the platform does this itself"),
            (json!({"name": "memory-qmd-nightly-maintain"}), "the platform does this itself"),
            (json!({"enabled": false}), "it is disabled"),
            (
                json!({"schedule": {"kind": "cron", "expr": "0 0 9 * * 1"}}),
                "its schedule has a field for seconds",
            ),
            (json!({"schedule": {"kind": "cron", "expr": "often"}}), "its schedule is not valid: cron: "),
            (
                json!({"schedule": {"kind": "cron", "expr": "0 9 * * 1", "tz": "Mars/Base"}}),
                "its schedule is not valid: timezone: ",
            ),
            (
                json!({"schedule": {"kind": "every", "everyMs": 59_999}}),
                "its interval is less than one minute",
            ),
            (json!({"schedule": {"kind": "every", "everyMs": -1}}), "its schedule has no `everyMs`"),
            (
                json!({"schedule": {"kind": "every", "everyMs": u64::MAX}}),
                "its schedule is not valid: every: ",
            ),
            (json!({"schedule": {"kind": "at", "at": "2026-11-26T12:00:00Z"}}), "its time has passed"),
            // 12:30 in Berlin is 11:30 UTC.
            (json!({"schedule": {"kind": "at", "at": "2026-11-26T12:30"}}), "its time has passed"),
            (
                json!({"schedule": {"kind": "at", "atMs": i64::MAX}}),
                "its schedule has neither `at` nor `atMs`",
            ),
            (json!({"schedule": {"kind": "on-exit"}}), "its schedule is none of"),
            (json!({"schedule": null}), "its schedule is none of"),
            (json!({"payload": {"kind": "shell", "command": "rm"}}), "its payload is neither"),
            (json!({"payload": {"kind": "agentTurn", "message": " "}}), "it has no text"),
        ] {
            let told = one(change.clone()).unwrap_err();
            assert!(told.contains(reason), "{change}: {told}");
        }
        assert_eq!(
            one(json!({"enabled": false})).unwrap_err(),
            "the job “Report” was left out: it is disabled"
        );
    }

    #[test]
    fn a_file_has_limits() {
        let many: Vec<Value> = (0..MAX_JOBS + 3).map(|n| job(json!({"id": n.to_string()}))).collect();
        let found = read_all(&json!({ "jobs": many }));
        assert_eq!((found.jobs.len(), found.left_out.len(), found.delivers), (MAX_JOBS, 1, false));
        assert!(found.left_out[0].starts_with("3 jobs were left out"));
        assert!(read_all(&json!([job(json!({"delivery": {"mode": "announce", "to": "x"}}))])).delivers);
        assert!(!read_all(&json!([job(json!({"delivery": {"mode": "none"}}))])).delivers);
        assert_eq!(read_all(&json!({"jobs": [7, null, []]})).left_out.len(), 3);
        for bad in ["", "{", "7", "{\"jobs\": {}}"] {
            jobs(bad.as_bytes(), NOW.parse().unwrap(), &TimeZone::UTC).unwrap_err();
        }
    }

    proptest! {
        #[test]
        fn any_schedule_is_valid_or_left_out(kind in "cron|every|at|x", text in ".{0,20}|[0-9*/, -]{5,15}", millis in any::<i64>()) {
            let schedule = json!({"kind": kind, "expr": text, "tz": text, "everyMs": millis, "anchorMs": millis, "at": text, "atMs": millis});
            for schedule in [schedule.clone(), { let mut it = schedule; it["tz"] = Value::Null; it["at"] = Value::Null; it }] {
                if let Ok(job) = one(json!({ "schedule": schedule })) {
                    job.schedule.or_in("Europe/Berlin").validate().unwrap();
                }
            }
        }
    }
}
