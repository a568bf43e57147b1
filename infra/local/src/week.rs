//! `--demo`: an empty data folder gets a week of history, so that every page of the console has something to show.
//!
//! The platform makes it itself: its functions and its demo model work through the week with a clock that is set from hour to hour.
//! Nothing is written past them, and no provider is called.

use std::path::Path;
use std::time::Duration;

use axum::body::Body;
use base::clock::{Clock, ManualClock};
use http::{Method, Request, StatusCode, header};
use http_body_util::BodyExt;
use jiff::{SignedDuration, Timestamp, ToSpan};
use models::ModelsConfig;
use serde_json::{Value, json};
use shared::config::AuthConfig;

use crate::engines::DataLocation;
use crate::platform::{Platform, PlatformConfig};

const DAYS: i64 = 7;
/// The hours of a day (UTC) in which the actions below are due, or were due a moment ago.
const HOURS: [i64; 5] = [6, 7, 8, 16, 20];
const HOUR: SignedDuration = SignedDuration::from_hours(1);

/// A small theme: a page with a header, a product card, a style sheet and translations.
const THEME: [(&str, &str); 8] = [
    ("layout/theme.liquid", include_str!("week/theme.liquid")),
    ("sections/header.liquid", include_str!("week/header.liquid")),
    ("sections/product.liquid", include_str!("week/product.liquid")),
    ("snippets/price.liquid", include_str!("week/price.liquid")),
    ("templates/index.json", include_str!("week/index.json")),
    ("assets/lamps.css", include_str!("week/lamps.css")),
    ("config/settings_schema.json", include_str!("week/settings_schema.json")),
    ("locales/en.default.json", include_str!("week/en.default.json")),
];

/// What the person has written into the long-term memory.
const MEMORY: &str = "\
## The shop
- The lamp shop is in Lisbon and has three people.
- It sells lamps of brass and glass, and lamp oil by the litre.
- The three shops whose prices count are Candeia, Luzeiro and Farol.

## How I like it
- Prices are in euros, with the date on which they were read.
- A text for me fits on one page and begins with what has changed.
- No letter goes out on a Sunday.
";

/// Fills the folder of this configuration. A folder that has data stays as it is.
///
/// The week is made in a folder beside it, which then takes its place, so that a stop on the way leaves nothing behind.
///
/// # Errors
/// One line that follows "failed to …".
pub async fn fill(config: &PlatformConfig) -> Result<(), String> {
    let DataLocation::Folder(folder) = &config.data else { return Ok(()) };
    let shown = folder.display();
    let failed = |error: std::io::Error| format!("fill the folder {shown}: {error}");
    if folder.exists() && std::fs::read_dir(folder).map_err(failed)?.next().is_some() {
        eprintln!("The folder {shown} has data. It stays as it is.");
        return Ok(());
    }
    eprintln!("The folder {shown} gets a week of history. This takes half a minute.");
    let parent = folder.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    std::fs::create_dir_all(parent).map_err(failed)?;
    let made = tempfile::Builder::new().prefix(".lamplighter-week-").tempdir_in(parent).map_err(failed)?;

    let now = Timestamp::now();
    let clock = ManualClock::at(hour_of(now) - SignedDuration::from_hours(24 * DAYS));
    let platform = Platform::start(PlatformConfig {
        data: DataLocation::Folder(made.path().to_owned()),
        address: ([127, 0, 0, 1], 0).into(),
        auth: AuthConfig::Off,
        models: ModelsConfig::default(),
        clock: Clock::Manual(clock.clone()),
        automatic: false,
        ..config.clone()
    });
    let platform = platform.await.map_err(|error| error.to_string())?;
    let done = Week { platform: &platform, clock }.pass(now).await;
    platform.stop().await;
    done.map_err(|error| format!("fill the folder {shown}: {error}"))?;
    std::fs::rename(made.path(), folder).map_err(failed)?;
    // It has another name now.
    let _ = made.keep();
    Ok(())
}

fn hour_of(at: Timestamp) -> Timestamp {
    Timestamp::from_second(at.as_second() / 3_600 * 3_600).unwrap_or(at)
}

struct Week<'a> {
    platform: &'a Platform,
    clock: ManualClock,
}

impl Week<'_> {
    async fn pass(&self, end: Timestamp) -> Result<(), String> {
        let actions = self.begin().await?;
        let started = self.clock.now();
        // The last hour stays free: what takes a while must not end in the future.
        let mut at = hour_of(started) + HOUR;
        let changed = hour_of(started) + SignedDuration::from_hours(24 * (DAYS - 2));
        while at < end - HOUR {
            if HOURS.contains(&(at.as_second() / 3_600 % 24)) {
                self.clock.set(at);
                self.work().await?;
            }
            if at == changed {
                self.clock.set(at);
                self.change_of_mind(&actions).await?;
            }
            at += HOUR;
        }
        self.clock.set(end);
        self.habits(end).await
    }

    /// What is due now, with a clock that goes on meanwhile.
    async fn work(&self) -> Result<(), String> {
        let goes_on = async {
            loop {
                tokio::time::sleep(Duration::from_millis(20)).await;
                self.clock.set(self.clock.now() + SignedDuration::from_secs(1));
            }
        };
        tokio::select! {
            done = self.platform.work() => done,
            () = goes_on => Ok(()),
        }
    }

    /// The agents, what they have made at once, and their actions. Returns the actions that change later.
    async fn begin(&self) -> Result<Actions, String> {
        // First, so that the turns and the runs of the week are told it.
        self.call(Method::PUT, "/memory/long-term", Some(json!({"markdown": MEMORY}))).await?;
        let market = self
            .agent(json!({
                "name": "Market watch",
                "goal": "A research agent that watches the prices of lamp oil at three shops",
                "success_criteria": "One page that names every change of a price",
                "instructions": "Write short sentences. Name the source of each number.",
            }))
            .await?;
        let letters = self
            .agent(json!({
                "name": "Newsletter",
                "goal": "A writing agent that prepares the newsletter of a lamp shop",
                "success_criteria": "A letter that can be sent as it is",
                "timeline": "Ongoing",
            }))
            .await?;
        self.post(
            &format!("/agents/{market}/chat"),
            json!({"message": "Write a brief about lamp oil prices"}),
        )
        .await?;
        let drafts = self.call(Method::GET, &format!("/agents/{market}/proposals"), None).await?;
        for draft in drafts["data"].as_array().into_iter().flatten() {
            self.post(&format!("/agents/{market}/assets"), json!({"proposal_id": draft["proposal_id"]}))
                .await?;
        }
        self.post(
            &format!("/agents/{market}/chat"),
            json!({"message": "Send me a list of new lamp shops every month"}),
        )
        .await?;

        let brief = json!({
            "title": "Morning brief", "description": "The prices of lamp oil each morning",
            "task_config": {
                "instructions": "Compare the prices of lamp oil at three shops with those of yesterday.",
                "expected_output": "A short page with the three prices",
            },
            "schedule": {"cron": "0 7 * * *"},
        });
        let brief = self.action(&market, brief, true).await?;
        let digest = json!({
            "title": "Price digest", "description": "What changed since the last look",
            "task_config": {
                "instructions": "List each price of lamp oil that has changed.",
                "expected_output": "A list, or a sentence that nothing has changed",
            },
            "schedule": {"cron": "0 8,20 * * *"},
        });
        self.action(&market, digest, true).await?;
        let letter = json!({
            "title": "Draft of the newsletter", "description": "The letter of the week",
            "task_config": {
                "instructions": "Draft an email about the lamps of the week.",
                "expected_output": "An email with a greeting and three lamps",
            },
            "schedule": {"cron": "0 16 * * MON,WED,FRI"},
        });
        let letter = self.action(&letters, letter, true).await?;
        // It can't hold its promise: after three days, the platform pauses it.
        let long = json!({
            "title": "Long read", "description": "An essay of two thousand words",
            "task_config": {
                "instructions": "Write an essay about the history of lamps.",
                "expected_output": "Two thousand words",
            },
            "schedule": {"cron": "30 5 * * *"}, "conditions": [{"kind": "min_words", "words": 2_000}],
        });
        self.action(&letters, long, true).await?;
        let waiting = json!({
            "title": "Letter to the suppliers", "description": "Waits for your approval",
            "task_config": {
                "instructions": "Write a letter that asks three suppliers for their prices.",
                "expected_output": "A letter of half a page",
            },
            "schedule": {"cron": "0 9 * * MON"},
        });
        self.action(&market, waiting, false).await?;
        self.theme().await?;
        Ok(Actions { brief, letter })
    }

    /// Two days before the end: the person speaks about one action, and changes another without approving it again.
    async fn change_of_mind(&self, actions: &Actions) -> Result<(), String> {
        let said = json!({"content": "Name the shop beside each price"});
        self.post(&format!("/actions/{}/messages", actions.brief), said).await?;
        let change = json!({"task_config": {"instructions": "Draft an email about the lamps of the week, with one picture."}});
        self.call(Method::PATCH, &format!("/actions/{}", actions.letter), Some(change)).await?;
        Ok(())
    }

    async fn theme(&self) -> Result<(), String> {
        let project = self.post("/projects", json!({"name": "Lamp shop"})).await?;
        let id = text(&project, "project_id")?;
        for (path, content) in THEME {
            let request = request(Method::PUT, &format!("/projects/{id}/files/{path}"))
                .header(header::CONTENT_TYPE, "text/plain; charset=utf-8");
            self.send(request, Body::from(content)).await?;
        }
        let document = "# Context: Lamp shop\n\n## PLAN (09:00)\n\n**Task**: Show the price beside each lamp\n\n\
                        ### Decisions\n\n- The price stands below the name\n";
        let request = request(Method::PUT, &format!("/projects/{id}/context.md"))
            .header(header::CONTENT_TYPE, "text/markdown; charset=utf-8");
        self.send(request, Body::from(document)).await?;
        Ok(())
    }

    /// Three habits, with three weeks of check-ins that are not perfect.
    async fn habits(&self, end: Timestamp) -> Result<(), String> {
        let today = end.to_zoned_datetime(jiff::tz::TimeZone::UTC).date();
        let week = json!({"kind": "times_a_week", "times": 3});
        let workdays = json!({"kind": "days", "days": ["mon", "tue", "wed", "thu", "fri"]});
        for (name, target, left_out) in [
            ("Read before the screen", json!({"kind": "days"}), 9),
            ("A walk", week, 2),
            ("Write the diary", workdays, 6),
        ] {
            let practice = self.post("/practices", json!({"name": name, "target": target})).await?;
            let id = text(&practice, "practice_id")?;
            for ago in (1..22).rev().filter(|ago| *ago % left_out != left_out - 1) {
                let date = today.checked_sub(i64::from(ago).days()).map_err(|error| error.to_string())?;
                let mut check_in = json!({"date": date.to_string()});
                if ago == 3 {
                    check_in["note"] = json!("Longer than planned");
                }
                self.post(&format!("/practices/{id}/check-ins"), check_in).await?;
            }
        }
        Ok(())
    }

    async fn agent(&self, fields: Value) -> Result<String, String> {
        text(&self.post("/agents", fields).await?, "agent_id")
    }

    async fn action(&self, agent: &str, fields: Value, approve: bool) -> Result<String, String> {
        let action = self.post(&format!("/agents/{agent}/actions"), fields).await?;
        let id = text(&action, "action_id")?;
        if approve {
            let hash = json!({"approval_hash": action["approval_hash"]});
            self.post(&format!("/actions/{id}/approve"), hash).await?;
        }
        Ok(id)
    }

    async fn post(&self, path: &str, body: Value) -> Result<Value, String> {
        self.call(Method::POST, path, Some(body)).await
    }

    async fn call(&self, method: Method, path: &str, body: Option<Value>) -> Result<Value, String> {
        let request = request(method, path).header(header::CONTENT_TYPE, "application/json");
        self.send(request, body.map_or_else(Body::empty, |body| Body::from(body.to_string()))).await
    }

    /// The answer, which must be a success.
    async fn send(&self, request: http::request::Builder, body: Body) -> Result<Value, String> {
        let request = request.body(body).map_err(|error| error.to_string())?;
        let what = format!("{} {}", request.method(), request.uri());
        let answer = self.platform.app().call(request).await.map_err(|error| format!("{what}: {error}"))?;
        let status: StatusCode = answer.status();
        let body = answer.into_body().collect().await.map_err(|error| format!("{what}: {error}"))?.to_bytes();
        if !status.is_success() {
            return Err(format!("{what}: {status}: {}", String::from_utf8_lossy(&body)));
        }
        Ok(serde_json::from_slice(&body).unwrap_or_default())
    }
}

/// The actions that change in the course of the week.
struct Actions {
    brief: String,
    letter: String,
}

fn request(method: Method, path: &str) -> http::request::Builder {
    Request::builder()
        .method(method)
        .uri(path)
        .header(header::HOST, "127.0.0.1")
        .header(header::ACCEPT, "application/json")
}

fn text(value: &Value, field: &str) -> Result<String, String> {
    value[field].as_str().map(str::to_owned).ok_or_else(|| format!("an answer has no {field}: {value}"))
}
