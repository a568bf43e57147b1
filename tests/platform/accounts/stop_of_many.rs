//! A stop with many live runs of every kind: nothing begins afterwards, and no due time is lost.

use std::time::{Duration, Instant};

use domain::actions::{Occurrence, OccurrenceState};
use domain::ids::{ActionId, RunId};
use futures::future::join_all;
use jiff::{SignedDuration, Timestamp};
use lamplighter_local::platform::PlatformConfig;
use serde_json::{Value, json};
use shared::flows::executor::route;
use shared::flows::turn::Topic;
use shared::store::DueItem;
use tests::executors::Executors;
use tests::model::{Says, ScriptedModel};
use tests::process::Process;
use tests::site::{Answers, Site};
use tests::stage::{Stage, noon};

/// How many runs are live: of actions, of actions that watch a site, rehearsals and turns. With 200 runs, a test takes minutes of
/// computing without optimization, so 200 are only tried if `STOP_OF_MANY_RUNS` asks for it.
struct Counts {
    actions: usize,
    watching: usize,
    rehearsals: usize,
    turns: usize,
    /// How many runs of actions two other processes drive, each.
    elsewhere: usize,
    /// How many runs are at their second call of the model.
    further: usize,
}

impl Counts {
    fn new() -> Self {
        let all = std::env::var("STOP_OF_MANY_RUNS").ok();
        let all = all.map_or(60, |all| all.parse::<usize>().expect("a number of runs"));
        let (actions, few) = (all * 2 / 5, all * 2 / 15);
        let turns = all - actions - 2 * few;
        Self { actions, watching: few, rehearsals: few, turns, elsewhere: actions / 3, further: all / 4 }
    }

    /// How many runs call the model before one of them has an answer.
    fn calling(&self) -> usize {
        self.actions + self.rehearsals + self.turns
    }
}

const CATCH_UP: [&str; 3] = ["none", "latest", "all"];

/// How many due times came while the account was stopped.
const MISSED: usize = 5;

/// Nothing may begin later than this after the answer to a stop.
const AT_MOST: Duration = Duration::from_secs(2);

/// How long a site waits before it redirects.
const SLOW: Duration = Duration::from_secs(4);

/// Looks something up twice, so that further calls of the model would follow.
fn works(messages: &[Value]) -> Says {
    let since = messages.iter().rposition(|message| message["role"] == "user").unwrap_or(0);
    match messages[since..].iter().filter(|message| message["role"] == "tool").count() {
        0 | 1 => Says::Call("query_assets", json!({"limit": 3})),
        _ => Says::Text("There is nothing yet.".into()),
    }
}

/// An executor of this process that works on what is due of these actions.
fn executors(process: &Process, stage: &Stage, actions: &[ActionId]) {
    for action in actions {
        let (cx, item) = (process.cx.clone(), DueItem::action(&stage.owner, *action));
        let deadline = cx.clock.now() + SignedDuration::from_mins(15);
        process.runtime.spawn(async move { route::process(&cx, &item, deadline).await });
    }
}

/// Begins a rehearsal of a new action. Returns its run.
async fn rehearsal(stage: &Stage) -> RunId {
    let task = json!({"instructions": "Write a report", "expected_output": "A report"});
    let body = json!({"title": "Draft", "task_config": task});
    let draft = stage.h.post(&format!("/agents/{}/actions", stage.agent), body).await.expect(201);
    let path = format!("/actions/{}/rehearse", draft["action_id"].as_str().unwrap());
    let begun = stage.h.post(&path, json!({})).await.expect(202);
    begun["run_id"].as_str().unwrap().parse().unwrap()
}

/// How many due times of an action run after a start with this answer.
fn ran(answer: &str, catch_up: &str) -> usize {
    match (answer, catch_up) {
        ("run_newest", _) | ("each_schedule", "latest") => 1,
        ("each_schedule", "all") => MISSED,
        _ => 0,
    }
}

/// The due times of an hourly action in its ledger, each as often as a record names it.
async fn ledger(stage: &Stage, action: ActionId) -> Vec<Timestamp> {
    let hour = SignedDuration::from_hours(1);
    let mut due_times = Vec::new();
    for occurrence in stage.occurrences(action).await {
        let (last, times) =
            occurrence.covers.map_or((occurrence.due_at, 1), |covers| (covers.last, covers.times));
        let covered: Vec<Timestamp> =
            std::iter::successors(Some(occurrence.due_at), |due_at| Some(*due_at + hour))
                .take_while(|due_at| *due_at <= last)
                .collect();
        assert_eq!(covered.len(), times as usize, "{occurrence:?}");
        due_times.extend(covered);
    }
    due_times.sort();
    due_times
}

async fn a_stop_of_many(answer: &str) {
    let counts = Counts::new();
    let model = ScriptedModel::held(works).await;
    // The site answers nothing until its clients have gone, or redirects them after the stop.
    let (hangs, redirects) = (Site::start(Answers::Hangs).await, Site::start(Answers::Status(500)).await);
    redirects.answers(Answers::RedirectsAfter(SLOW, redirects.url("/moved")));
    let mut allowed = Vec::new();
    for site in [&hangs, &redirects] {
        allowed.extend(site.reach().policy.allowed_hosts.clone());
    }
    let mut reach = hangs.reach();
    reach.policy = domain::reach::Policy { allowed_hosts: allowed, ..(*reach.policy).clone() }.into();
    let config = PlatformConfig {
        models: model.config("scripted"),
        reach,
        executors: 10,
        ..PlatformConfig::in_memory()
    };
    let stage = Stage::of(config).await;
    let mut actions = Vec::new();
    for n in 0..counts.actions + counts.watching {
        let catch_up = CATCH_UP[n % 3];
        let site = if n % 2 == 0 { &hangs } else { &redirects };
        let watches = match n < counts.actions {
            true => json!([]),
            false => json!([{"kind": "url", "url": site.url("/page")}]),
        };
        let schedule = json!({"every": "1h", "catch_up": catch_up});
        actions.push(stage.approved(json!({"schedule": schedule, "watches": watches})).await);
    }
    let mut runs = Vec::new();
    for _ in 0..counts.rehearsals {
        runs.push(rehearsal(&stage).await);
    }

    // Two other processes begin some runs of actions and the turns, and the executors of this one the rest.
    stage.at(60);
    let processes = [Process::start(&stage), Process::start(&stage)];
    for (process, actions) in processes.iter().zip(actions.chunks(counts.elsewhere)) {
        executors(process, &stage, actions);
    }
    let turns = (0..counts.turns).map(|n| processes[n % 2].begins(&stage, Topic::Setup(None), "Hello"));
    runs.extend(join_all(turns).await);
    stage.sweep().await;
    let others = Executors::of(&stage.h.platform, counts.actions + counts.watching + counts.rehearsals);
    let working = tokio::spawn(async move { others.work().await });
    model.asked_times(counts.calling()).await;
    let deadline = Instant::now() + Duration::from_secs(120);
    while hangs.asked().len() + redirects.asked().len() < counts.watching {
        assert!(Instant::now() < deadline, "{} {}", hangs.asked().len(), redirects.asked().len());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    // Some are at their second call.
    model.allow(counts.further);
    model.asked_times(counts.calling() + counts.further).await;

    let began = Instant::now();
    let stopped = stage.h.post("/account/stop", json!({})).await.expect(200);
    let answered = Instant::now();
    assert!(stopped["runs_ended"].as_u64() > Some(0), "{stopped:#}");
    // The model would answer now.
    model.allow(10_000);
    let more = Duration::from_secs(1);
    tokio::time::sleep(AT_MOST.max(SLOW.saturating_sub(answered - began)) + more).await;
    let all = || [model.received(), hangs.received(), redirects.received()].concat();
    let newest = all().into_iter().max().unwrap();
    println!(
        "a stop of {} runs took {:?}; the last request began {:?} after its call",
        stopped["runs_ended"],
        answered - began,
        newest.saturating_duration_since(began)
    );
    let late: Vec<Duration> = all()
        .into_iter()
        .map(|at| at.saturating_duration_since(answered))
        .filter(|late| *late > AT_MOST)
        .collect();
    assert!(late.is_empty(), "{} requests began after the stop: {late:?}", late.len());
    working.await.unwrap();

    // Hours pass, and all executors look at all actions.
    let requests = all().len();
    for minutes in (90..=90 + 60 * MISSED as i64).step_by(60) {
        stage.happens_at(minutes).await;
    }
    for (process, actions) in processes.iter().zip(actions.chunks(actions.len().div_ceil(2))) {
        executors(process, &stage, actions);
    }
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(all().len(), requests, "something ran while the account was stopped");
    for action in &actions {
        assert_eq!(stage.became(*action).await, ["60 cancelled stopped"]);
    }
    for run in runs {
        let run = stage.h.get(&format!("/runs/{run}")).await.expect(200);
        assert_eq!(
            (&run["state"], &run["error"]["code"]),
            (&json!("cancelled"), &json!("stopped")),
            "{run:#}"
        );
    }

    for site in [&hangs, &redirects] {
        site.says("One");
    }
    stage.h.post("/account/start", json!({"missed": answer})).await.expect(200);
    stage.executors.work().await;
    let due_times: Vec<Timestamp> =
        (1..=1 + MISSED as i64).map(|hour| noon() + SignedDuration::from_hours(hour)).collect();
    for (n, action) in actions.iter().enumerate() {
        let became = stage.became(*action).await;
        assert_eq!(ledger(&stage, *action).await, due_times, "{answer}: {became:?}");
        // A due time at which a site had not changed since the one before was decided, too.
        let has_run = |occurrence: &&Occurrence| {
            matches!(occurrence.state, OccurrenceState::Succeeded | OccurrenceState::Unchanged)
        };
        let count = stage.occurrences(*action).await.iter().filter(has_run).count();
        assert_eq!(count, ran(answer, CATCH_UP[n % 3]), "{answer}, {}: {became:?}", CATCH_UP[n % 3]);
    }
    for process in processes {
        process.kill();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_begins_after_it_and_the_newest_due_times_run() {
    a_stop_of_many("run_newest").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_begins_after_it_and_all_due_times_are_skipped() {
    a_stop_of_many("skip").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_begins_after_it_and_each_schedule_decides() {
    a_stop_of_many("each_schedule").await;
}
