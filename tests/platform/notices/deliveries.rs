//! How messages are delivered: receivers that fail, hang and are gone, and processes that die.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use domain::background::lease::Lease;
use domain::background::places::{LEASE, Purpose};
use domain::ids::NoticeId;
use domain::notices::plan::{Event, Happening};
use domain::notices::{About, Cause, LeadsTo, NoticeKey, NoticeKind};
use domain::reach::Policy;
use jiff::SignedDuration;
use lamplighter_local::platform::PlatformConfig;
use serde_json::{Value, json};
use shared::config::ReachConfig;
use shared::store::Store;
use tests::site::{Answers, Site};
use tests::stage::{Stage, noon};

/// A stage with a webhook at this site, and the path of the channel.
async fn stage(site: &Site) -> (Stage, String) {
    let config = PlatformConfig { reach: site.reach(), ..PlatformConfig::in_memory() };
    let stage = Stage::of(config).await;
    let hook = json!({"kind": "webhook", "url": site.url("/hook")});
    let created = stage.h.post("/notifications/channels", hook).await.expect(201);
    let path = format!("/notifications/channels/{}", created["channel_id"].as_str().unwrap());
    (stage, path)
}

async fn test(stage: &Stage, path: &str) -> String {
    let delivery = stage.h.post(&format!("{path}/test"), json!({})).await.expect(202);
    format!("/deliveries/{}", delivery["delivery_id"].as_str().unwrap())
}

async fn read(stage: &Stage, delivery: &str) -> Value {
    stage.h.get(delivery).await.expect(200)
}

/// Lets this much time pass, with sweeps each minute near the times when something is due.
async fn passes(stage: &Stage, seconds: i64) {
    stage.clock.set(noon() + SignedDuration::from_secs(seconds));
    stage.sweep().await;
    stage.executors.work().await;
}

#[tokio::test]
async fn a_receiver_that_fails_is_tried_ten_times_with_one_id() {
    let site = Site::start(Answers::Status(500)).await;
    let (stage, path) = stage(&site).await;
    let delivery = test(&stage, &path).await;
    stage.executors.work().await;
    let first = read(&stage, &delivery).await;
    assert_eq!((&first["state"], &first["tries"]), (&json!("waiting"), &json!(1)), "{first:#}");
    assert_eq!(first["error"], "the receiver answered 500");
    for _ in 0..20 {
        let now = read(&stage, &delivery).await;
        let Some(next) = now["next_at"].as_str() else { break };
        let next: jiff::Timestamp = next.parse().unwrap();
        passes(&stage, next.duration_since(noon()).as_secs() + 1).await;
    }
    let last = read(&stage, &delivery).await;
    assert_eq!((&last["state"], &last["tries"]), (&json!("undelivered"), &json!(10)), "{last:#}");
    let ids: Vec<String> = site.posted().iter().map(|p| p.header("webhook-id").to_owned()).collect();
    assert_eq!(ids.len(), 10);
    assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");

    // A person tries it again, and the receiver works again.
    site.answers(Answers::Status(204));
    stage.h.post(&format!("{delivery}/retry"), json!({})).await.expect(202);
    stage.executors.work().await;
    assert_eq!(read(&stage, &delivery).await["state"], "delivered");
    stage.h.post(&format!("{delivery}/retry"), json!({})).await.refused(409, "not_undelivered");
}

#[tokio::test]
async fn what_a_receiver_answers_decides_what_follows() {
    let site = Site::start(Answers::Status(410)).await;
    let (stage, path) = stage(&site).await;
    let delivery = test(&stage, &path).await;
    stage.executors.work().await;
    assert_eq!(read(&stage, &delivery).await["state"], "undelivered");
    let channel = stage.h.get("/notifications/channels").await.expect(200)["data"][0].clone();
    assert_eq!(
        (&channel["state"], &channel["why"]),
        (&json!("suspended"), &json!("the receiver answered 410"))
    );
    stage.h.patch(&path, json!({"state": "enabled"})).await.expect(200);

    // A redirect is not followed: only the receiver that the person has named gets the message.
    let other = Site::start(Answers::Status(204)).await;
    site.answers(Answers::RedirectsTo(other.url("/elsewhere")));
    let delivery = test(&stage, &path).await;
    stage.executors.work().await;
    let read_ = read(&stage, &delivery).await;
    assert_eq!(read_["state"], "waiting", "{read_:#}");
    assert!(other.asked().is_empty());

    // A channel that is deleted meanwhile gets nothing more.
    let asked = site.asked().len();
    stage.h.delete(&path).await.expect(204);
    passes(&stage, 600).await;
    let dropped = read(&stage, &delivery).await;
    assert_eq!(
        (&dropped["state"], &dropped["error"]),
        (&json!("undelivered"), &json!("the channel was deleted"))
    );
    assert_eq!(site.asked().len(), asked);
}

#[tokio::test]
async fn a_receiver_that_hangs_costs_fifteen_seconds_and_is_tried_again() {
    let site = Site::start(Answers::Hangs).await;
    let (stage, path) = stage(&site).await;
    let delivery = test(&stage, &path).await;
    stage.executors.work().await;
    let read = read(&stage, &delivery).await;
    assert_eq!((&read["state"], &read["tries"]), (&json!("waiting"), &json!(1)), "{read:#}");
    assert!(read["error"].as_str().unwrap().contains("did not answer within 15 seconds"), "{read:#}");
}

/// A receiver that hangs keeps an executor busy. So one person's messages have few executors, and wait if these are taken.
#[tokio::test]
async fn messages_of_one_person_wait_for_a_place_of_their_own() {
    let site = Site::start(Answers::Status(204)).await;
    let (stage, path) = stage(&site).await;
    let cx = &stage.h.platform.cx;
    let lease = Lease::take(cx.clock.uuid(), cx.clock.now(), LEASE);
    let place = (Purpose::Messages, 0);
    assert!(cx.store.take_place(&stage.owner, place, 0, &lease).await.unwrap().done());
    let delivery = test(&stage, &path).await;
    stage.executors.work().await;
    assert_eq!(read(&stage, &delivery).await["tries"], 0);
    passes(&stage, 16).await;
    assert_eq!(site.asked().len(), 0);
    // Runs have other places.
    assert_eq!(cx.store.places(&stage.owner, Purpose::Runs).await.unwrap(), []);

    assert!(cx.store.free_place(&stage.owner, place, 1).await.unwrap().done());
    passes(&stage, 32).await;
    let sent = read(&stage, &delivery).await;
    assert_eq!((&sent["state"], &sent["tries"]), (&json!("delivered"), &json!(1)), "{sent:#}");
    assert_eq!(cx.store.places(&stage.owner, Purpose::Messages).await.unwrap(), []);
}

/// The status decides, whatever follows it: a receiver that has accepted a message does not get it again.
#[tokio::test]
async fn a_receiver_that_accepts_and_never_ends_its_answer_gets_one_delivery() {
    for answers in [Answers::Drips, Answers::Endless(1 << 40)] {
        let site = Site::start(answers.clone()).await;
        let (stage, path) = stage(&site).await;
        let delivery = test(&stage, &path).await;
        stage.executors.work().await;
        let read = read(&stage, &delivery).await;
        assert_eq!((&read["state"], &read["tries"]), (&json!("delivered"), &json!(1)), "{read:#}");
        passes(&stage, 600).await;
        assert_eq!(site.asked().len(), 1, "{answers:?}");
    }
}

#[tokio::test]
async fn an_e_mail_is_stored_in_the_outbox_as_the_request_of_ses() {
    let stage = Stage::of(PlatformConfig::in_memory()).await;
    let path = stage.h.confirmed_email("me@example.com").await;
    let delivery = test(&stage, &path).await;
    stage.executors.work().await;
    assert_eq!(read(&stage, &delivery).await["state"], "delivered");
    let mails = stage.h.get("/outbox").await.expect(200);
    let mail = &mails["data"][0]["request"];
    assert_eq!(mail["Destination"]["ToAddresses"], json!(["me@example.com"]), "{mail:#}");
    assert!(mail["Content"]["Simple"]["Subject"]["Data"].as_str().unwrap().contains("test"), "{mail:#}");
    let tag = json!({"Name": "delivery", "Value": delivery.trim_start_matches("/deliveries/")});
    assert_eq!(mail["EmailTags"][1], tag);
}

/// Executors die at any moment, messages come twice, and receivers fail at times: each message arrives at least once, with one id for
/// all its tries, or is shown as undelivered.
#[tokio::test]
async fn no_message_is_lost_if_executors_die() {
    let many: usize = std::env::var("DELIVERIES").ok().and_then(|n| n.parse().ok()).unwrap_or(60);
    let site = Site::start(Answers::Status(204)).await;
    let (stage, path) = stage(&site).await;
    stage.executors.trouble(0.2, 0.3);
    let mut deliveries = Vec::new();
    for n in 0..many {
        stage.clock.set(noon() + SignedDuration::from_millis(n as i64));
        site.answers(Answers::Status(if n % 5 == 0 { 503 } else { 204 }));
        deliveries.push(test(&stage, &path).await);
        if n % 10 == 9 {
            stage.executors.work().await;
        }
    }
    site.answers(Answers::Status(204));
    for minute in 1..=60 {
        stage.happens_at(minute * 10).await;
    }
    let mut states = BTreeMap::<String, usize>::new();
    let mut ids = BTreeSet::new();
    for delivery in &deliveries {
        let read = read(&stage, delivery).await;
        *states.entry(read["state"].as_str().unwrap().to_owned()).or_default() += 1;
        ids.insert(read["message_id"].as_str().unwrap().to_owned());
    }
    assert_eq!(states, BTreeMap::from([("delivered".to_owned(), many)]));
    let arrived: BTreeSet<String> =
        site.posted().iter().map(|posted| posted.header("webhook-id").to_owned()).collect();
    assert_eq!(arrived, ids);
}

/// Executors die, messages come twice, and channels fail, ask for patience, are gone or hang: each notice is accepted in each channel, with
/// one id, or is shown as undelivered there. With `NOTICES=2500` there are 10,000 deliveries, of which some hang.
#[tokio::test]
async fn each_notice_is_accepted_or_shown_as_undelivered_in_each_channel() {
    let many: usize = std::env::var("NOTICES").ok().and_then(|n| n.parse().ok()).unwrap_or(30);
    let hangs = many >= 1_000;
    let answers = [
        Answers::Status(204),
        Answers::Status(503),
        Answers::Status(429),
        Answers::Status(410),
        if hangs { Answers::Hangs } else { Answers::StatusAfter(Duration::from_millis(50), 500) },
    ];
    let sites = futures::future::join_all(answers.map(Site::start)).await;
    let [_, fails, patient, gone, hanging] = &sites[..] else { panic!("five sites") };
    let allowed_hosts = sites.iter().flat_map(|site| site.reach().policy.allowed_hosts.clone()).collect();
    let reach = ReachConfig {
        policy: Policy { allowed_hosts, ..Policy::default() }.into(),
        ..ReachConfig::default()
    };
    let stage = Stage::of(PlatformConfig { reach, ..PlatformConfig::in_memory() }).await;
    let mut channels = Vec::new();
    for site in &sites {
        let hook = json!({"kind": "webhook", "url": site.url("/hook")});
        let created = stage.h.post("/notifications/channels", hook).await.expect(201);
        channels.push(created["channel_id"].as_str().unwrap().to_owned());
    }
    stage.executors.work().await;
    stage.executors.trouble(0.2, 0.3);
    let store = &stage.h.platform.cx.store;
    for n in 0..many {
        let now = noon() + SignedDuration::from_millis(n as i64);
        stage.clock.set(now);
        let cause = Cause::new(&format!("thing:{n}"));
        let key = NoticeKey { kind: NoticeKind::Watchdog, action_id: None, cause };
        let about = About::new(&format!("Thing {n}"), "It is wrong.", LeadsTo::Watch);
        let event = Event::new(key, Happening::Happened, about);
        let write = Store::happened_write(&stage.owner, NoticeId::of(&n.to_string(), now), event, now);
        assert!(store.write_all(vec![write.unwrap()]).await.unwrap().done());
        if n % 20 == 19 {
            // A try waits for fifteen seconds, so only the first tries hang.
            if n > 50 {
                hanging.answers(Answers::Status(204));
            }
            // Half of the notices meet channels that fail.
            if n > many / 2 {
                fails.answers(Answers::Status(204));
                patient.answers(Answers::Status(200));
            }
            stage.sweep().await;
            stage.executors.work().await;
        }
    }
    for site in [fails, patient, hanging] {
        site.answers(Answers::Status(204));
    }
    for hour in 1..=80 {
        stage.happens_at(hour * 60).await;
    }
    stage.executors.trouble(0.0, 0.0);
    stage.happens_at(81 * 60).await;

    let mut cursor = String::new();
    let mut found: BTreeMap<(usize, String), BTreeSet<String>> = BTreeMap::new();
    loop {
        let page = stage.h.get(&format!("/deliveries?limit=200{cursor}")).await.expect(200);
        for delivery in page["data"].as_array().unwrap() {
            let text = |field: &str| delivery[field].as_str().unwrap().to_owned();
            let channel = channels.iter().position(|id| *id == text("channel_id")).unwrap();
            assert!(found.entry((channel, text("state"))).or_default().insert(text("message_id")));
        }
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    let counts: BTreeMap<(usize, &str), usize> =
        found.iter().map(|((channel, state), ids)| ((*channel, state.as_str()), ids.len())).collect();
    println!("{counts:?}");
    for (n, site) in sites.iter().enumerate() {
        let count = |state: &str| counts.get(&(n, state)).copied().unwrap_or_default();
        let (delivered, undelivered) = (count("delivered"), count("undelivered"));
        assert_eq!(count("waiting"), 0, "channel {n}: {counts:?}");
        let arrived: BTreeSet<String> =
            site.posted().iter().map(|posted| posted.header("webhook-id").to_owned()).collect();
        if n == 3 {
            // It was switched off at the first answer. What was planned before is undelivered, and what came later has no delivery to it.
            assert!(delivered == 0 && (1..=many).contains(&undelivered), "{counts:?}");
            assert!(arrived.is_subset(&found[&(n, "undelivered".to_owned())]), "{counts:?}");
            continue;
        }
        // Its own notice is about the channel that is gone.
        assert_eq!((delivered, undelivered), (many + 1, 0), "channel {n}: {counts:?}");
        assert_eq!(arrived, found[&(n, "delivered".to_owned())], "channel {n}");
    }
    let list = stage.h.get("/notifications/channels").await.expect(200);
    let states: Vec<&str> =
        list["data"].as_array().unwrap().iter().map(|of| of["state"].as_str().unwrap()).collect();
    assert_eq!(states, ["enabled", "enabled", "enabled", "suspended", "enabled"]);
    assert!(!gone.posted().is_empty());
}
