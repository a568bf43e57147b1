//! The deletion of an account: everything goes, nobody else loses anything, and the receipt says so.

use std::collections::BTreeMap;
use std::sync::Arc;

use base::clock::{Clock, ManualClock};
use domain::accounts::import::AccountImportState;
use domain::accounts::plans::Plan;
use domain::accounts::quota::Month;
use domain::ids::Owner;
use jiff::{SignedDuration, Timestamp};
use lamplighter_local::platform::PlatformConfig;
use reqwest::Method;
use serde_json::{Value, json};
use shared::Cx;
use shared::blobs::BlobKey;
use shared::config::{AuthConfig, AwsConfig, Config, PlansConfig};
use shared::flows::executor::route;
use shared::store::{DueItem, Store};
use tests::archives::{exported, imported_at_once, zip};
use tests::everything::{copied, scanned, with_everything};
use tests::made::settle;
use tests::stage::Stage;
use tests::things::Caller;
use tests::{Answer, Harness, send};

fn owner(name: &str) -> Owner {
    Owner::new(name).unwrap()
}

async fn work(cx: &Cx, name: &str, deadline: Timestamp) {
    route::process(cx, &DueItem::deletion(&owner(name)), deadline).await.unwrap();
}

async fn objects(cx: &Cx, name: &str) -> u64 {
    cx.blobs.count_versions(&BlobKey::everything(&owner(name))).await.unwrap()
}

fn set(cx: &Cx, at: Timestamp) {
    let Clock::Manual(clock) = &cx.clock else { panic!("the test sets the clock") };
    clock.set(at);
}

fn pass(cx: &Cx, time: SignedDuration) {
    set(cx, cx.clock.now() + time);
}

/// The items without the counts of this day and month, which a deletion keeps, and the number of these counts.
fn without_counts(
    mut items: BTreeMap<(String, String), Value>,
    day: &str,
) -> (BTreeMap<(String, String), Value>, usize) {
    let (all, month) = (items.len(), &day[..7]);
    items.retain(|(pk, sk), _| match pk.split('#').nth(2) {
        Some("SPEND") => *sk != day && *sk != format!("MONTH#{month}"),
        Some("QUOTA") => sk != month,
        _ => true,
    });
    let counts = all - items.len();
    (items, counts)
}

/// The day at which the items of `with_everything` were written.
const GOLDEN_DAY: &str = "2026-11-22";

#[tokio::test]
async fn everything_of_the_owner_is_removed_and_nothing_else() {
    let h = with_everything().await;
    let cx = &h.platform.cx;
    copied(cx).await;
    // An owner whose name begins like this one has an object, too.
    let others_object =
        BlobKey::asset(&owner("local2"), "ast_01a204e5539a89e18906c3404399aa63".parse().unwrap(), "00");
    cx.blobs.put(&others_object, "theirs", "text/plain").await.unwrap();
    let (mine, others) = (scanned(cx, "local").await, scanned(cx, "local2").await);
    let my_objects = objects(cx, "local").await;
    assert!(mine.len() > 100 && my_objects > 5, "{} items, {my_objects} objects", mine.len());

    for confirm in ["", "?confirm=", "?confirm=local2", "?confirm=Local"] {
        let problem = h.delete(&format!("/account{confirm}")).await.refused(400, "invalid_input");
        assert_eq!(problem["errors"][0]["field"], "confirm", "{problem:#}");
    }
    assert_eq!(scanned(cx, "local").await, mine, "a refused deletion changes nothing");

    let accepted = h.delete("/account?confirm=local").await;
    assert_eq!(accepted.headers["location"].to_str().unwrap(), accepted.body["receipt"]);
    let accepted = accepted.expect(202);
    let path = accepted["receipt"].as_str().unwrap().to_owned();
    let problem = h.get("/agents").await.refused(410, "account_deleted");
    // The page that shows the receipt.
    for path in ["/", "/console/icon.svg", "/health", "/openapi.json"] {
        assert_eq!(h.get(path).await.status, 200, "{path}");
    }
    assert_eq!(h.request(Method::GET, "/docs").send().await.unwrap().status(), 303);
    assert_eq!(problem["current"]["receipt_id"], accepted["receipt_id"]);
    h.post("/agents", json!({"name": "A", "goal": "G"})).await.refused(410, "account_deleted");
    assert_eq!(h.delete("/account?confirm=local").await.expect(202), accepted, "a repeated call");
    assert_eq!(h.get(&path).await.expect(200)["state"], "removing");

    work(cx, "local", Timestamp::MAX).await;
    let left = scanned(cx, "local").await;
    let (others_left, counts) = without_counts(left.clone(), GOLDEN_DAY);
    assert_eq!(counts, 3, "{left:#?}");
    assert!(!others_left.is_empty() && others_left.keys().all(|(pk, _)| pk.ends_with("#KEY")), "{left:#?}");
    assert_eq!(objects(cx, "local").await, 0);
    let receipt = h.get(&path).await.expect(200);
    assert_eq!(receipt["state"], "waiting");
    assert_eq!(receipt["removed_objects"], my_objects);
    let removed: u64 =
        receipt["removed_records"].as_object().unwrap().values().map(|n| n.as_u64().unwrap()).sum();
    assert_eq!(removed as usize, mine.len() - left.len(), "{receipt:#}");
    assert!(receipt["removed_records"]["runs"].as_u64().unwrap() > 10, "{receipt:#}");

    // Before its time, nothing more happens.
    pass(cx, SignedDuration::from_mins(17));
    work(cx, "local", Timestamp::MAX).await;
    assert_eq!(h.get(&path).await.expect(200)["state"], "waiting");

    // Something that had begun before the deletion has written late.
    let asset = "ast_01a204e5539a89e18906c3404399aa63".parse().unwrap();
    cx.blobs.put(&BlobKey::asset(&owner("local"), asset, "00"), "late", "text/plain").await.unwrap();
    let (table, name) = cx.store.raw();
    let late = mine.iter().find(|((pk, _), _)| pk == "U#local#AGENT").unwrap().1;
    let late = BTreeMap::from([("pk", &late["pk"]["S"]), ("sk", &late["sk"]["S"])]);
    let late = late.into_iter().map(|(name, value)| {
        (name.to_owned(), aws_sdk_dynamodb::types::AttributeValue::S(value.as_str().unwrap().to_owned()))
    });
    table.put_item().table_name(name).set_item(Some(late.collect())).send().await.unwrap();

    pass(cx, SignedDuration::from_mins(2));
    work(cx, "local", Timestamp::MAX).await;
    let receipt = h.get(&path).await.expect(200);
    assert_eq!((&receipt["state"], &receipt["left"]["records"]), (&json!("done"), &json!(0)), "{receipt:#}");
    assert_eq!(receipt["left"]["objects"], 0);
    assert_eq!(receipt["removed_records"]["agents"].as_u64(), Some(1 + count(&mine, "AGENT")));
    assert_eq!(receipt["removed_objects"], my_objects + 1);
    assert!(!receipt.to_string().contains("local"), "a receipt does not name the owner: {receipt:#}");

    assert_eq!(without_counts(scanned(cx, "local").await, GOLDEN_DAY), (BTreeMap::new(), 3));
    assert!(cx.store.deletion(&owner("local")).await.unwrap().is_none());
    assert_eq!(scanned(cx, "local2").await, others);
    assert_eq!(cx.blobs.get(&others_object).await.unwrap(), "theirs");

    // The same owner has an empty account, as soon as every process knows that the deletion is done.
    pass(cx, SignedDuration::from_secs(30));
    assert_eq!(h.get("/agents").await.expect(200)["data"], json!([]));
    // The receipt is kept for 90 days.
    h.get("/receipts/rcp_00000000000000000000000000000000").await.refused(404, "not_found");
}

/// How many items are in the partitions of this kind.
fn count(items: &BTreeMap<(String, String), Value>, kind: &str) -> u64 {
    items.keys().filter(|(pk, _)| pk.split('#').nth(2) == Some(kind)).count() as u64
}

#[tokio::test]
async fn a_deletion_that_is_cut_off_anywhere_goes_on() {
    let h = with_everything().await;
    let cx = &h.platform.cx;
    let items = scanned(cx, "local").await;
    let keys = count(&items, "KEY");
    let path = h.delete("/account?confirm=local").await.expect(202)["receipt"].as_str().unwrap().to_owned();
    // Each invocation has time for one page only.
    let mut invocations = 0;
    while h.get(&path).await.expect(200)["state"] == "removing" {
        invocations += 1;
        assert!(invocations < 500, "the deletion makes no progress");
        work(cx, "local", cx.clock.now()).await;
    }
    assert!(invocations > 20, "{invocations} invocations");
    // Several executors at once, most of which stop.
    pass(cx, SignedDuration::from_mins(18));
    let executors = (0..4).map(|_| work(cx, "local", Timestamp::MAX));
    futures::future::join_all(executors).await;
    let receipt = h.get(&path).await.expect(200);
    assert_eq!(receipt["state"], "done", "{receipt:#}");
    let removed: u64 =
        receipt["removed_records"].as_object().unwrap().values().map(|n| n.as_u64().unwrap()).sum();
    let (items, counts) = without_counts(items, GOLDEN_DAY);
    assert!(removed <= items.len() as u64 && removed >= items.len() as u64 - keys, "{receipt:#}");
    assert_eq!(without_counts(scanned(cx, "local").await, GOLDEN_DAY), (BTreeMap::new(), counts));
}

/// Polls the work this many times, and then drops it, like a process that is killed. `false` if it ended before.
async fn killed(work: impl Future<Output = ()>, polls: usize) -> bool {
    let mut work = Box::pin(work);
    for _ in 0..polls {
        if futures::poll!(&mut work).is_ready() {
            return false;
        }
        tokio::task::yield_now().await;
    }
    true
}

#[tokio::test]
async fn repeated_requests_and_kills_do_not_change_the_counts() {
    let h = with_everything().await;
    let cx = &h.platform.cx;
    let (items, my_objects) = (scanned(cx, "local").await, objects(cx, "local").await);
    let keys = count(&items, "KEY");
    let path = h.delete("/account?confirm=local").await.expect(202)["receipt"].as_str().unwrap().to_owned();
    let removed = |receipt: &Value| -> u64 {
        receipt["removed_records"].as_object().unwrap().values().map(|n| n.as_u64().unwrap()).sum()
    };

    // An executor is killed while it works. What it has removed is counted.
    assert!(killed(work(cx, "local", Timestamp::MAX), 40).await, "the work ended before the kill");
    let gone = items.len() - scanned(cx, "local").await.len();
    assert!(gone > 0, "the executor was killed before it removed anything");
    assert_eq!(removed(&h.get(&path).await.expect(200)), gone as u64);
    // A repeated request does not start a second executor before the lease has ended.
    h.delete("/account?confirm=local").await.expect(202);
    work(cx, "local", Timestamp::MAX).await;
    assert_eq!(items.len() - scanned(cx, "local").await.len(), gone);

    // The lease of an executor ends while it works: another one continues, and the first one removes and counts nothing more.
    pass(cx, SignedDuration::from_mins(3));
    let mut first = Box::pin(work(cx, "local", Timestamp::MAX));
    assert!(killed(&mut first, 40).await, "the work ended before the second executor began");
    pass(cx, SignedDuration::from_mins(3));
    let others = (0..3).map(|_| work(cx, "local", Timestamp::MAX));
    futures::future::join(first, futures::future::join_all(others)).await;
    let receipt = h.get(&path).await.expect(200);
    assert_eq!(receipt["state"], "waiting", "{receipt:#}");
    let (items, counts) = without_counts(items, GOLDEN_DAY);
    assert_eq!((removed(&receipt), counts), (items.len() as u64 - keys, 3), "{receipt:#}");
    assert_eq!(receipt["removed_objects"], my_objects, "{receipt:#}");
    assert!(receipt.get("leased_until").is_none(), "{receipt:#}");
}

#[tokio::test]
async fn the_sweep_finishes_a_deletion_and_no_action_runs_meanwhile() {
    let stage = Stage::of(PlatformConfig::in_memory()).await;
    stage.approved(json!({"schedule": {"every": "1h"}})).await;
    stage.happens_at(61).await;
    let runs = stage.h.get("/actions").await.expect(200)["data"][0]["action_id"].as_str().unwrap().to_owned();
    let runs = stage.h.get(&format!("/actions/{runs}/runs")).await.expect(200);
    assert_eq!(runs["data"].as_array().unwrap().len(), 1, "{runs:#}");

    let path =
        stage.h.delete("/account?confirm=local").await.expect(202)["receipt"].as_str().unwrap().to_owned();
    // The message is lost. The action is due before the sweep finds the deletion, and does not run.
    stage
        .h
        .platform
        .engines()
        .queue("scheduled-executor")
        .unwrap()
        .receive(10, std::time::Duration::ZERO)
        .await;
    stage.happens_at(62).await;
    assert_eq!(stage.h.get(&path).await.expect(200)["state"], "removing");
    stage.happens_at(65).await;
    assert_eq!(stage.h.get(&path).await.expect(200)["state"], "waiting");
    stage.happens_at(78).await;
    assert_eq!(stage.h.get(&path).await.expect(200)["state"], "waiting");
    stage.happens_at(80).await;
    let receipt = stage.h.get(&path).await.expect(200);
    assert_eq!(receipt["state"], "done", "{receipt:#}");
    let (left, _) = without_counts(scanned(&stage.h.platform.cx, "local").await, "2026-11-21");
    assert_eq!(left, BTreeMap::new());
}

#[tokio::test]
async fn a_holder_of_a_key_is_told_until_the_key_is_gone() {
    let clock = Clock::Manual(ManualClock::at(tests::stage::noon()));
    let config =
        PlatformConfig { auth: AuthConfig::On(None), clock, automatic: false, ..PlatformConfig::in_memory() };
    let h = Harness::with(config).await;
    let cx = &h.platform.cx;
    let (mine, theirs) = (h.key_of("me").await, h.key_of("you").await);
    let writer = h.key_with("me", json!({"name": "writer", "scopes": ["write"]})).await;
    let (me, you) = (Caller { h: &h, key: Some(&mine) }, Caller { h: &h, key: Some(&theirs) });
    me.things("oil").await;
    you.things("oil").await;
    let writer = Caller { h: &h, key: Some(&writer) };
    writer.call(Method::DELETE, "/account?confirm=me", Value::Null).await.refused(403, "scope_missing");
    you.call(Method::DELETE, "/account?confirm=me", Value::Null).await.refused(400, "invalid_input");
    send(h.request(Method::DELETE, "/account?confirm=me")).await.refused(401, "unauthenticated");

    let accepted = me.call(Method::DELETE, "/account?confirm=me", Value::Null).await.expect(202);
    let path = accepted["receipt"].as_str().unwrap();
    work(cx, "me", Timestamp::MAX).await;
    for (method, path) in [(Method::GET, "/agents"), (Method::POST, "/mcp"), (Method::GET, "/v1/models")] {
        writer.call(method, path, json!({})).await.refused(410, "account_deleted");
    }
    pass(cx, SignedDuration::from_mins(18));
    work(cx, "me", Timestamp::MAX).await;
    // Without credentials, and the keys are gone.
    let receipt = send(h.request(Method::GET, path)).await.expect(200);
    assert_eq!(receipt["state"], "done", "{receipt:#}");
    me.call(Method::GET, "/agents", Value::Null).await.refused(401, "unauthenticated");
    let agents = you.call(Method::GET, "/agents", Value::Null).await.expect(200);
    assert_eq!(agents["data"].as_array().unwrap().len(), 1, "{agents:#}");
}

/// A platform on which owners have 50 requests a month, and a ceiling of one dollar a day.
async fn limited(now: &str) -> Harness {
    let clock = Clock::Manual(ManualClock::at(now.parse().unwrap()));
    let plans = PlansConfig { default: Plan::Starter, allowed: vec![Plan::Starter] };
    let auth = AuthConfig::On(None);
    let mut config = PlatformConfig { plans, auth, clock, automatic: false, ..PlatformConfig::in_memory() };
    config.budget.day_micros = 1_000_000;
    Harness::with(config).await
}

/// Counts requests of this month.
async fn requests(cx: &Cx, name: &str, number: u32) {
    for _ in 0..number {
        let write = Store::request_write(&owner(name), Month::at(cx.clock.now()), 50);
        assert!(cx.store.write_all(vec![write]).await.unwrap().done());
    }
}

async fn delete(h: &Harness, key: &str, name: &str) -> String {
    let me = Caller { h, key: Some(key) };
    let accepted =
        me.call(Method::DELETE, &format!("/account?confirm={name}"), Value::Null).await.expect(202);
    accepted["receipt"].as_str().unwrap().to_owned()
}

async fn receipt(h: &Harness, path: &str) -> Value {
    send(h.request(Method::GET, path)).await.expect(200)
}

/// A new agent's first turn.
async fn turn(caller: &Caller<'_>) -> Answer {
    let agent = caller.call(Method::POST, "/agents", json!({"name": "A", "goal": "G"})).await.expect(201);
    let path = format!("/agents/{}/chat", agent["agent_id"].as_str().unwrap());
    caller.call(Method::POST, &path, json!({"message": "Hello"})).await
}

async fn read(caller: &Caller<'_>, path: &str) -> Value {
    caller.call(Method::GET, path, Value::Null).await.expect(200)
}

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deleted_and_reopened_account_has_the_days_ceiling_and_the_months_quota_only_once() {
    let h = limited("2026-11-29T12:00:00Z").await;
    let cx = &h.platform.cx;
    let (first, theirs) = (h.key_of("me").await, h.key_of("you").await);
    let me = Caller { h: &h, key: Some(&first) };
    let you = Caller { h: &h, key: Some(&theirs) };
    assert_eq!(turn(&me).await.expect(200)["state"], "completed");
    assert_eq!(turn(&you).await.expect(200)["state"], "completed");
    requests(cx, "me", 40).await;
    settle(cx, &owner("me"), cx.clock.now(), 0, 990_000).await;
    let others = scanned(cx, "you").await;
    let spent = read(&me, "/usage").await["spent_micros"].as_i64().unwrap();
    assert!(spent > 990_000 && spent < 1_000_000, "{spent}");
    assert_eq!(read(&me, "/limits").await["requests"]["used"], 41);

    let path = delete(&h, &first, "me").await;
    work(cx, "me", Timestamp::MAX).await;
    let kept = json!([
        {"what": "month_requests", "until": "2026-12-01T00:00:00Z"},
        {"what": "day_spending", "until": "2026-11-30T00:00:00Z"},
        {"what": "month_spending", "until": "2026-12-01T00:00:00Z"},
    ]);
    assert_eq!(receipt(&h, &path).await["kept"], kept);
    // The cost of a call that had begun before the deletion is counted late.
    settle(cx, &owner("me"), cx.clock.now(), 0, 20_000).await;
    pass(cx, SignedDuration::from_mins(18));
    work(cx, "me", Timestamp::MAX).await;
    let done = receipt(&h, &path).await;
    assert_eq!(
        (&done["state"], &done["kept"], &done["left"]["records"]),
        (&json!("done"), &kept, &json!(0)),
        "{done:#}"
    );
    let (left, counts) = without_counts(scanned(cx, "me").await, "2026-11-29");
    assert_eq!((left, counts), (BTreeMap::new(), 3));
    for ((_, sk), item) in scanned(cx, "me").await {
        let until = at(if sk == "2026-11-29" { "2026-11-30T00:00:00Z" } else { "2026-12-01T00:00:00Z" });
        assert_eq!(item["ttl"]["N"], until.as_second().to_string(), "{item:#}");
        let numbers =
            ["committed_micros", "spent_micros", "overage_micros", "raised_micros", "used", "overage"];
        for (name, value) in item.as_object().unwrap() {
            let says_no_more = ["pk", "sk"].contains(&name.as_str())
                || ["_v", "ttl"].iter().chain(&numbers).any(|number| number == name)
                    && value.get("N").is_some();
            assert!(says_no_more, "{name}: {item:#}");
        }
    }
    assert_eq!(scanned(cx, "you").await, others);

    // The account is opened again on the same day.
    pass(cx, SignedDuration::from_secs(31));
    let second = h.key_of("me").await;
    let me = Caller { h: &h, key: Some(&second) };
    assert_eq!(read(&me, "/account").await["owner"], "me");
    assert_eq!(read(&me, "/agents").await["data"], json!([]));
    let usage = read(&me, "/usage").await;
    assert_eq!(usage["spent_micros"], spent + 20_000, "{usage:#}");
    assert_eq!(read(&me, "/limits").await["requests"]["used"], 41);
    let waits = turn(&me).await.expect(200);
    assert_eq!(
        (&waits["state"], &waits["cards"][0]["ceiling"]["of"]),
        (&json!("waiting"), &json!("day")),
        "{waits:#}"
    );
    assert_eq!(turn(&you).await.expect(200)["state"], "completed");

    // The next day has its own ceiling, but the month has no more requests.
    set(cx, at("2026-11-30T00:00:00Z"));
    assert_eq!(read(&me, "/usage").await["spent_micros"], 0);
    assert_eq!(turn(&me).await.expect(200)["state"], "completed");
    requests(cx, "me", 7).await;
    turn(&me).await.refused(402, "quota_exceeded");
    // A second deletion changes nothing about that.
    let path = delete(&h, &second, "me").await;
    work(cx, "me", Timestamp::MAX).await;
    pass(cx, SignedDuration::from_mins(18));
    work(cx, "me", Timestamp::MAX).await;
    assert_eq!(receipt(&h, &path).await["state"], "done");
    pass(cx, SignedDuration::from_secs(31));
    let third = h.key_of("me").await;
    let me = Caller { h: &h, key: Some(&third) };
    turn(&me).await.refused(402, "quota_exceeded");

    set(cx, at("2026-12-01T00:00:00Z"));
    assert_eq!(turn(&me).await.expect(200)["state"], "completed");
    assert_eq!(read(&me, "/limits").await["requests"]["used"], 1);
}

#[tokio::test]
async fn a_count_stays_only_while_its_day_or_month_lasts() {
    let month = json!([
        {"what": "month_requests", "until": "2026-12-01T00:00:00Z"},
        {"what": "month_spending", "until": "2026-12-01T00:00:00Z"},
    ]);
    for (begins, ends, kept) in
        [("2026-11-29T23:50:00Z", "2026-11-30", month), ("2026-11-30T23:50:00Z", "2026-12-01", json!([]))]
    {
        let h = limited(begins).await;
        let cx = &h.platform.cx;
        let key = h.key_of("me").await;
        requests(cx, "me", 3).await;
        settle(cx, &owner("me"), cx.clock.now(), 0, 7).await;
        // An older month's counts do not stay.
        settle(cx, &owner("me"), at("2026-10-31T12:00:00Z"), 0, 7).await;
        let path = delete(&h, &key, "me").await;
        work(cx, "me", Timestamp::MAX).await;
        assert_eq!(receipt(&h, &path).await["kept"].as_array().unwrap().len(), 3, "{begins}");
        pass(cx, SignedDuration::from_mins(18));
        work(cx, "me", Timestamp::MAX).await;
        let done = receipt(&h, &path).await;
        assert_eq!((&done["state"], &done["kept"]), (&json!("done"), &kept), "{done:#}");
        let (left, counts) = without_counts(scanned(cx, "me").await, ends);
        assert_eq!((left, counts), (BTreeMap::new(), kept.as_array().unwrap().len()), "{begins}");
    }
}

#[tokio::test]
async fn an_import_into_a_reopened_account_keeps_the_counts() {
    let h = with_everything().await;
    let cx = &h.platform.cx;
    let files = exported(&h.platform.cx, &owner("local")).await;
    let before = cx.store.spend(&owner("local"), cx.clock.now()).await.unwrap();
    let used = cx.store.month_requests(&owner("local"), Month::at(cx.clock.now())).await.unwrap();
    assert!(before.spent_micros > 0 && used.used > 0, "{before:?}, {used:?}");
    h.delete("/account?confirm=local").await.expect(202);
    work(cx, "local", Timestamp::MAX).await;
    pass(cx, SignedDuration::from_mins(18));
    work(cx, "local", Timestamp::MAX).await;
    assert_eq!(without_counts(scanned(cx, "local").await, GOLDEN_DAY), (BTreeMap::new(), 3));

    pass(cx, SignedDuration::from_secs(31));
    let view = imported_at_once(cx, &owner("local"), &zip(&files)).await;
    assert_eq!(view.state, AccountImportState::Done, "{view:?}");
    assert_eq!(cx.store.spend(&owner("local"), cx.clock.now()).await.unwrap(), before);
    let after = cx.store.month_requests(&owner("local"), Month::at(cx.clock.now())).await.unwrap();
    assert_eq!(after, used);
}

#[tokio::test]
async fn on_aws_the_receipt_names_the_copies_and_when_they_expire() {
    let h = with_everything().await;
    // As a Lambda function is configured.
    let aws = AwsConfig { eraser: None, ..h.platform.cx.config.aws.clone() };
    let config = Arc::new(Config { aws, ..Config::clone(&h.platform.cx.config) });
    let cx = &h.platform.cx.with(|parts| parts.config = config);
    let path = h.delete("/account?confirm=local").await.expect(202)["receipt"].as_str().unwrap().to_owned();
    work(cx, "local", Timestamp::MAX).await;
    assert_eq!(receipt(&h, &path).await["copies"], json!([]), "the last removal is still to come");
    pass(cx, SignedDuration::from_mins(18));
    work(cx, "local", Timestamp::MAX).await;
    let done = receipt(&h, &path).await;
    let until = |days: i64| (cx.clock.now() + SignedDuration::from_hours(24 * days)).to_string();
    let copies = json!([
        {"place": "incomplete_uploads", "until": until(3)},
        {"place": "table_backups", "until": until(35)},
    ]);
    assert_eq!((&done["state"], &done["copies"]), (&json!("done"), &copies), "{done:#}");
}
