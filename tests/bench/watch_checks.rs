//! What a look at the things that an action watches costs, and whether hostile servers delay the looks at good ones.
//!
//! ```text
//! cargo run --profile bench -p bench --bin watch_checks
//! ```
//!
//! The servers are on this machine: a page with an `ETag`, a page without one, a value in JSON, and a feed. First 1,000 due times
//! without a change: prints how many tokens they used. Then 1,000 looks one by one: prints the time besides that of the server, which is
//! measured alone with a plain client. Then 100 actions are due at once, alternately with and without actions that watch a server that
//! hangs, one that redirects to a private address, and two that send too much: prints when the looks of the 100 end. Exits with 1 if a token
//! was used, or if a figure misses its goal.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use base::clock::ManualClock;
use domain::actions::{Occurrence, OccurrenceState};
use domain::ids::{ActionId, RunId};
use domain::reach::Policy;
use domain::watch::{Watch, feed, page};
use jiff::{SignedDuration, Timestamp};
use lamplighter_local::platform::PlatformConfig;
use reqwest::header::{ETAG, IF_NONE_MATCH};
use serde_json::{Value, json};
use shared::config::ReachConfig;
use shared::flows::actions::watches;
use shared::store::table::Order;
use tests::executors::{Executors, invocations};
use tests::model::{Says, ScriptedModel};
use tests::site::{Answers, Site};
use tests::stage::{Stage, noon};
use tokio::task::JoinSet;

/// Actions of each kind, and due times of each action without a change.
const EACH: usize = 25;
const DUE_TIMES: usize = 10;

/// How many looks of each kind are measured.
const LOOKS: usize = 250;

/// The longest own time of a look, in milliseconds.
const OWN_MS: f64 = 1.0;

/// How many actions with good servers are due at once, and how often.
const GOOD: usize = 100;
const ROUNDS: usize = 7;

/// How many executors work on them, each on up to ten runs.
const EXECUTORS: usize = 10;

/// The actions with hostile servers may delay the others by this share and by this many milliseconds at most. Two rounds without
/// them differ by as much.
const SHARE: f64 = 1.2;
const NOISE_MS: f64 = 20.0;

/// A server with an answer of one kind.
struct Kind {
    name: &'static str,
    site: Site,
    /// The answers differ, but what counts of them does not.
    answers: fn(usize) -> Answers,
    watch: Value,
}

impl Kind {
    async fn new(name: &'static str, answers: fn(usize) -> Answers, watch: fn(&Site) -> Value) -> Self {
        let site = Site::start(answers(0)).await;
        let watch = watch(&site);
        Self { name, site, answers, watch }
    }

    async fn all() -> [Self; 4] {
        let page = |site: &Site| json!({"kind": "url", "url": site.url("/page")});
        [
            Self::new("a page of 20 KB with an ETag", |_| html(0, Some("\"1\"")), page).await,
            Self::new("a page of 20 KB without one", |n| html(n, None), page).await,
            Self::new(
                "a value in 10 KB of JSON",
                plans,
                |site| json!({"kind": "url", "url": site.url("/plans.json"), "pointer": "/plans/42/price"}),
            )
            .await,
            Self::new(
                "a feed with 50 entries",
                entries,
                |site| json!({"kind": "feed", "url": site.url("/feed.xml")}),
            )
            .await,
        ]
    }
}

fn html(n: usize, etag: Option<&'static str>) -> Answers {
    let lines: String =
        (0..400).map(|line| format!("<p class=\"price\">Oil {line} costs 7 &amp; is dear.</p>\n")).collect();
    let head = format!("<head><title>Prices</title><script>nonce = {n};</script></head>");
    Answers::Page("text/html", format!("<html>{head}<body>{lines}</body></html>"), etag)
}

fn plans(n: usize) -> Answers {
    let plan =
        |at: usize| json!({"name": format!("Plan {at}"), "price": 7, "text": "Oil for lamps, ".repeat(4)});
    let plans: Vec<Value> = (0..100).map(plan).collect();
    Answers::Page("application/json", json!({"time": n, "plans": plans}).to_string(), None)
}

fn entries(n: usize) -> Answers {
    let entry = |at: usize| {
        format!(
            "<entry><id>urn:{at}</id><title>Post {at}</title><updated>2026-11-21T12:00:00Z</updated>\
             <link href=\"https://example.com/{at}\"/><summary>{}</summary></entry>",
            "Oil for lamps is dear. ".repeat(8)
        )
    };
    let entries: String = (0..50).map(entry).collect();
    Answers::Page("application/atom+xml", format!("<feed><updated>{n}</updated>{entries}</feed>"), None)
}

fn body(answers: &Answers) -> (&'static str, &str) {
    match answers {
        Answers::Page(content_type, body, _) => (content_type, body),
        other => panic!("{other:?} has no body"),
    }
}

async fn stage(model: &ScriptedModel, sites: &[&Site]) -> Stage {
    let hosts = sites.iter().flat_map(|site| site.reach().policy.allowed_hosts.clone()).collect();
    let policy = Policy { allowed_hosts: hosts, ..Policy::default() };
    Stage::of(PlatformConfig {
        models: model.config("claude-haiku-4-5"),
        reach: ReachConfig { policy: policy.into(), ..ReachConfig::default() },
        executors: EXECUTORS,
        ..PlatformConfig::in_memory()
    })
    .await
}

fn writes(_: &[Value]) -> Says {
    Says::Text("A report.".into())
}

/// An action that is due at each full hour, whenever it is created.
async fn hourly(stage: &Stage, watch: &Value) -> ActionId {
    let schedule = json!({"cron": "0 * * * *", "timezone": "UTC"});
    stage.approved(json!({"schedule": schedule, "watches": [watch]})).await
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// The value below which this share of the values lies.
fn at(values: &[f64], share: f64) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    let index = (values.len() as f64 * share) as usize;
    values.get(index.min(values.len().saturating_sub(1))).copied().unwrap_or(f64::NAN)
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

#[tokio::main]
async fn main() -> ExitCode {
    let kinds = Kind::all().await;
    let model = ScriptedModel::start(writes).await;
    let stage = stage(&model, &kinds.each_ref().map(|kind| &kind.site)).await;
    let mut actions = Vec::new();
    for kind in &kinds {
        for _ in 0..EACH {
            actions.push(hourly(&stage, &kind.watch).await);
        }
    }
    let mut good = due_times(&stage, &model, &kinds, &actions).await;
    println!();
    good &= looks(&stage, &kinds, &actions).await;
    stage.h.platform.stop().await;
    println!();
    good &= beside_hostile_servers().await;
    if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Due times without a change on the whole platform: sweep, queue, claim, look, record. They must use no token.
async fn due_times(stage: &Stage, model: &ScriptedModel, kinds: &[Kind], actions: &[ActionId]) -> bool {
    let one = Executors::of(&stage.h.platform, 1);
    // The first look is a change, so a run takes place.
    stage.happens_at(60).await;
    let (calls, mut took) = (model.received().len(), Duration::ZERO);
    for n in 1..=DUE_TIMES {
        for kind in kinds {
            kind.site.answers((kind.answers)(n));
        }
        stage.at(60 * (n as i64 + 1));
        stage.sweep().await;
        let began = Instant::now();
        one.work().await;
        took += began.elapsed();
    }
    let calls = model.received().len() - calls;
    let (mut unchanged, mut tokens, mut cost, mut other) = (0, 0, 0, 0);
    for action in actions {
        for occurrence in stage.occurrences(*action).await.into_iter().skip(1) {
            if occurrence.state == OccurrenceState::Unchanged {
                unchanged += 1;
            } else {
                other += 1;
            }
            tokens += occurrence.usage.total_input() + occurrence.usage.output_tokens;
            cost += occurrence.cost_micros;
        }
    }
    let not_modified = kinds[0].site.asked().iter().filter(|(_, etag)| etag.is_some()).count();
    println!(
        "{unchanged} due times without a change, {other} others: {tokens} tokens, {cost} micro-dollars, {calls} calls of the model"
    );
    println!("  {not_modified} of them were answered with 304");
    println!(
        "  whole due time with queue, claim and records, one executor: {:.2} ms",
        ms(took) / (actions.len() * DUE_TIMES) as f64
    );
    (unchanged, other, tokens, calls) == (actions.len() * DUE_TIMES, 0, 0, 0)
}

/// Looks one by one, each beside a request of a plain client for the same answer.
async fn looks(stage: &Stage, kinds: &[Kind], actions: &[ActionId]) -> bool {
    let (cx, client) = (&stage.h.platform.cx, tests::client());
    let mut good = true;
    println!(
        "{:<30} {:>6} {:>9} {:>9} {:>9} {:>9} {:>12} {:>12}",
        "own time in ms",
        "looks",
        "look p50",
        "alone p50",
        "own p50",
        "own mean",
        "compute p50",
        "compute p99"
    );
    for (kind, actions) in kinds.iter().zip(actions.chunks(EACH)) {
        let watch: Watch = serde_json::from_value(kind.watch.clone()).expect("a watch");
        let state = cx.store.watch_state(&stage.owner, actions[0]).await.expect("the table answers").value;
        let seen = state.seen_of(&watch).expect("it was looked at").clone();
        let (mut whole, mut alone, mut computed) = (Vec::new(), Vec::new(), Vec::new());
        for n in 0..LOOKS {
            let answers = (kind.answers)(100 + n);
            kind.site.answers(answers.clone());
            // Which one is first alternates, so that neither always finds the server warm.
            for part in 0..2 {
                if (part + n) % 2 == 0 {
                    let began = Instant::now();
                    let look = watches::look(cx, &stage.owner, &watch, Some(&seen)).await;
                    let look = look.expect("the table answers").expect("the server answers");
                    let run = RunId::from_uuid(cx.clock.uuid());
                    let (_, changed) = state.clone().decide(vec![(&watch, look)], run, cx.clock.now());
                    whole.push(ms(began.elapsed()));
                    assert!(!changed, "{}: it has changed", kind.name);
                } else {
                    let began = Instant::now();
                    let mut request = client.get(watch.url().expect("an address"));
                    if let Some(etag) = &seen.etag {
                        request = request.header(IF_NONE_MATCH, etag);
                    }
                    let response = request.send().await.expect("the server answers");
                    let has_etag = response.headers().contains_key(ETAG);
                    let bytes = response.bytes().await.expect("the server answers").len();
                    alone.push(ms(began.elapsed()));
                    assert!(has_etag || seen.etag.is_none() || bytes == 0, "it is not the same answer");
                }
            }
            let (content_type, body) = body(&answers);
            let began = Instant::now();
            // What follows the network: reading the answer. A 304 has none.
            let is_read = match &watch {
                _ if seen.etag.is_some() => true,
                Watch::Url { pointer, .. } => {
                    page::read(content_type, body.as_bytes(), pointer.as_deref()).is_ok()
                }
                _ => feed::read(content_type, body.as_bytes(), "https://a.com/feed").is_ok(),
            };
            computed.push(ms(began.elapsed()));
            assert!(is_read, "{}: it can't be read", kind.name);
        }
        let own: Vec<f64> = whole.iter().zip(&alone).map(|(whole, alone)| whole - alone).collect();
        let figures = [at(&own, 0.5), mean(&own), at(&computed, 0.99)];
        println!(
            "{:<30} {:>6} {:>9.3} {:>9.3} {:>9.3} {:>9.3} {:>12.3} {:>12.3}",
            kind.name,
            whole.len(),
            at(&whole, 0.5),
            at(&alone, 0.5),
            figures[0],
            figures[1],
            at(&computed, 0.5),
            figures[2]
        );
        good &= figures.iter().all(|figure| *figure <= OWN_MS);
    }
    good
}

/// Lets the clock run from now on.
fn runs(clock: ManualClock, work: &mut JoinSet<()>) {
    let (began, from) = (Instant::now(), clock.now());
    work.spawn(async move {
        let mut ticks = tokio::time::interval(Duration::from_millis(1));
        loop {
            ticks.tick().await;
            clock.set(from + SignedDuration::from_millis(began.elapsed().as_millis() as i64));
        }
    });
}

/// The occurrence of an action at this due time, when it is as `ready` says.
async fn occurrence(
    stage: &Stage,
    action: ActionId,
    due_at: Timestamp,
    ready: fn(&Occurrence) -> bool,
) -> Occurrence {
    let patience = Instant::now() + Duration::from_secs(60);
    loop {
        let store = &stage.h.platform.cx.store;
        let found = store.occurrences(&stage.owner, action, None, 5, Order::Newest).await;
        let found = found.expect("the table answers").items.into_iter().map(|(_, found)| found.value);
        if let Some(found) = found.into_iter().find(|found| found.due_at == due_at && ready(found)) {
            return found;
        }
        assert!(Instant::now() < patience, "{action} is not processed");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// A platform with one owner's actions that watch a good server.
struct Many {
    stage: Stage,
    actions: Vec<ActionId>,
}

impl Many {
    async fn new(model: &ScriptedModel, good: &Site, sites: &[&Site]) -> Self {
        let stage = stage(model, sites).await;
        let mut actions = Vec::new();
        for n in 0..GOOD {
            let url = good.url(&format!("/{n}"));
            actions.push(hourly(&stage, &json!({"kind": "url", "url": url})).await);
        }
        stage.happens_at(60).await;
        Self { stage, actions }
    }

    /// How long after the due time of this hour the look of each action ended, in milliseconds. `hostile` are further actions.
    /// Also says why their looks failed.
    async fn round(&self, hour: usize, hostile: &[ActionId]) -> (Vec<f64>, Vec<String>) {
        let due_at = noon() + SignedDuration::from_hours(hour as i64);
        let (stage, mut work) = (&self.stage, JoinSet::new());
        let queue = stage.h.platform.engines().queue("scheduled-executor").expect("executors have a queue");
        stage.clock.set(due_at);
        stage.sweep().await;
        for _ in 0..EXECUTORS {
            work.spawn(invocations(stage.h.platform.cx.clone(), queue.clone()));
        }
        runs(stage.clock.clone(), &mut work);
        let mut ends = Vec::new();
        for action in &self.actions {
            let ended = occurrence(stage, *action, due_at, |found| found.state.is_final()).await;
            assert_eq!(ended.state, OccurrenceState::Unchanged, "{ended:?}");
            let took = ended.finished_at.expect("it has ended").duration_since(due_at);
            ends.push(took.as_millis_f64());
        }
        let mut reasons = Vec::new();
        for action in hostile {
            reasons.extend(occurrence(stage, *action, due_at, |found| found.reason.is_some()).await.reason);
        }
        work.shutdown().await;
        (ends, reasons)
    }
}

/// The same due times with and without hostile servers, alternately.
async fn beside_hostile_servers() -> bool {
    let good = Site::start(html(0, None)).await;
    let inside = Site::start(Answers::Page("text/plain", "secret".to_owned(), None)).await;
    let hostile = [
        Site::start(Answers::Hangs).await,
        Site::start(Answers::RedirectsTo(inside.url("/"))).await,
        Site::start(Answers::Endless(1 << 30)).await,
        Site::start(Answers::Drips).await,
    ];
    let model = ScriptedModel::start(writes).await;
    let sites: Vec<&Site> = std::iter::once(&good).chain(&hostile).collect();
    let (without, with) = (Many::new(&model, &good, &sites).await, Many::new(&model, &good, &sites).await);
    let calls = model.received().len();
    let (mut medians, mut lasts) = ([Vec::new(), Vec::new()], [Vec::new(), Vec::new()]);
    for round in 0..ROUNDS {
        let mut theirs = Vec::new();
        for site in &hostile {
            theirs.push(hourly(&with.stage, &json!({"kind": "url", "url": site.url("/page")})).await);
        }
        for (at_once, (many, theirs)) in [(&without, &[][..]), (&with, &theirs[..])].into_iter().enumerate() {
            good.answers(html(round + 1, None));
            let (ends, reasons) = many.round(round + 2, theirs).await;
            let (median, last) = (at(&ends, 0.5), at(&ends, 1.0));
            medians[at_once].push(median);
            lasts[at_once].push(last);
            println!(
                "round {}, {GOOD} good {}: p50 after {median:.0} ms, the last one after {last:.0} ms",
                round + 1,
                if theirs.is_empty() {
                    "alone".to_owned()
                } else {
                    format!("beside {} hostile", theirs.len())
                }
            );
            if round == 0 {
                reasons.iter().for_each(|reason| println!("  {reason}"));
            }
        }
        for action in theirs {
            with.stage.h.post(&format!("/actions/{action}/pause"), json!({})).await.expect(200);
        }
    }
    let calls = model.received().len() - calls;
    println!("{calls} calls of the model, {} requests to the private address", inside.asked().len());
    let mut is_good = calls == 0 && inside.asked().is_empty();
    for (what, [without, with]) in [("p50", &medians), ("the last one", &lasts)] {
        let (without, with) = (at(without, 0.5), at(with, 0.5));
        println!(
            "{what} of {GOOD} good, median of {ROUNDS} rounds: {without:.0} ms alone, {with:.0} ms beside hostile ones"
        );
        is_good &= with <= without * SHARE + NOISE_MS;
    }
    for many in [without, with] {
        many.stage.h.platform.stop().await;
    }
    is_good
}
