//! A synchronisation, a clean-up or a rollback that is cut off after any of its writes: another executor goes on, and nothing is lost or
//! there twice. Between two writes, what is stored does not change. So these are also the cuts before and after each call of a model.

use std::collections::BTreeSet;
use std::time::Duration;

use domain::memory::{Block, Fact};
use jiff::{SignedDuration, Timestamp, ToSpan};
use lamplighter_local::engines::faults::{FaultConfig, FaultRates, Faults};
use lamplighter_local::platform::PlatformConfig;
use serde_json::{Value, json};
use shared::Cx;
use shared::blobs::BlobKey;
use shared::flows::executor::route;
use shared::store::DueItem;
use tests::memory::{fact, learns, sentence, texts, words};
use tests::model::ScriptedModel;
use tests::stage::Stage;

/// More writes than any of these has.
const MOST_WRITES: u64 = 80;

/// After this, the executor that was cut off is taken for dead.
const DEAD: SignedDuration = SignedDuration::from_mins(33);

/// A stage whose table and bucket can stop. The person lives in Berlin: 23:00 is 22:00 UTC.
async fn stage(model: &ScriptedModel) -> (Stage, Faults) {
    let faults = FaultConfig { seed: 7, rates: FaultRates::default(), slow_by: Duration::from_millis(20) };
    // A model with a price, so that money is reserved before each call and settled after it.
    let config = PlatformConfig {
        models: model.config("gpt-5.1"),
        faults: Some(faults),
        ..PlatformConfig::in_memory()
    };
    let stage = Stage::of(config).await;
    stage.h.patch("/account", json!({"timezone": "Europe/Berlin"})).await.expect(200);
    let faults = stage.h.platform.engines().faults().unwrap().clone();
    (stage, faults)
}

/// An executor of a process of its own.
fn executor(stage: &Stage) -> Cx {
    let cx = &stage.h.platform.cx;
    Cx::new((*cx.config).clone(), cx.clock.clone()).unwrap()
}

async fn work(cx: &Cx, stage: &Stage) -> shared::Result<()> {
    let deadline = cx.clock.now() + SignedDuration::from_mins(15);
    route::process(cx, &DueItem::memory(&stage.owner), deadline).await
}

async fn facts(stage: &Stage) -> Vec<Fact> {
    stage.h.platform.cx.store.all_facts(&stage.owner).await.unwrap()
}

async fn blocks(stage: &Stage) -> Vec<Block> {
    let store = &stage.h.platform.cx.store;
    let open = store.open_blocks(&stage.owner).await.unwrap();
    let archived = store.archived_blocks(&stage.owner, None).await.unwrap();
    open.into_iter().chain(archived).map(|block| block.value).collect()
}

/// The objects of the search index in the bucket are those that the index names.
async fn has_no_other_objects(stage: &Stage, when: &str) {
    let cx = &stage.h.platform.cx;
    let listed = cx.blobs.list(&BlobKey::listed(&stage.owner, "memory/"), None).await.unwrap();
    let head = cx.store.memory_index(&stage.owner).await.unwrap().unwrap().value;
    let named: BTreeSet<String> = head.objects().map(|id| id.simple().to_string()).collect();
    assert_eq!(listed.into_iter().collect::<BTreeSet<_>>(), named, "{when}");
}

/// Each of these facts was learned once, and is found once.
async fn are_known_once(stage: &Stage, numbers: &[u64], when: &str) {
    let all = facts(stage).await;
    for n in numbers {
        let known = all.iter().filter(|known| known.text == fact(*n)).count();
        assert_eq!(known, 1, "{when}: {}", fact(*n));
        let path = format!("/memory/search?depth=memory&limit=100&q={}", words(*n)[0]);
        let found = stage.h.get(&path).await.expect(200);
        let found = texts(&found["hits"]).into_iter().filter(|text| *text == fact(*n)).count();
        assert_eq!(found, 1, "{when}: {}", fact(*n));
    }
}

/// Two executors at once, then ten times more, which does nothing.
async fn goes_on(stage: &Stage, model: &ScriptedModel, when: &str) {
    let (one, other) = (executor(stage), executor(stage));
    let (first, second) = futures::join!(work(&one, stage), work(&other, stage));
    first.and(second).unwrap_or_else(|error| panic!("{when}: {}", error.causes()));
    let (asked, known) = (model.asked(), facts(stage).await);
    for _ in 0..10 {
        work(&one, stage).await.unwrap();
    }
    assert_eq!((model.asked(), facts(stage).await), (asked, known), "{when}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_synchronisation_that_is_cut_off_anywhere_goes_on() {
    let model = ScriptedModel::start(learns).await;
    let (stage, faults) = stage(&model).await;
    let store = &stage.h.platform.cx.store;
    let mut chats: [Option<String>; 2] = [None, None];
    let first: Timestamp = "2026-11-23T12:00:00Z".parse().unwrap();
    let mut cuts = 0;
    for writes in 1..=MOST_WRITES {
        let day = (writes - 1) as i64;
        let noon = first + SignedDuration::from_hours(24 * day);
        let date = noon.to_zoned_datetime(jiff::tz::TimeZone::UTC).date();
        stage.clock.set(noon);
        let numbers: [u64; 4] = std::array::from_fn(|at| 4 * writes + at as u64);
        for (chat, n) in chats.iter_mut().zip([0, 2]) {
            let said = [sentence(numbers[n]), sentence(numbers[n + 1])];
            *chat = Some(stage.says(chat.as_deref(), &said.each_ref().map(String::as_str)).await);
        }
        stage.clock.set(noon + SignedDuration::from_mins(10 * 60 + 1));
        let when = format!("{date}, cut off after {writes} writes");
        faults.stop_after(writes);
        let ended = work(&executor(&stage), &stage).await;
        let is_cut = faults.go_on();
        assert_eq!(ended.is_err(), is_cut, "{when}: {ended:?}");
        stage.clock.set(stage.clock.now() + DEAD);
        if writes % 2 == 0 {
            goes_on(&stage, &model, &when).await;
        } else {
            // The sweep finds it.
            stage.sweep().await;
            stage.executors.work().await;
        }
        are_known_once(&stage, &numbers, &when).await;
        let all = blocks(&stage).await;
        let of_day: Vec<&Block> = all.iter().filter(|block| block.date == date).collect();
        assert_eq!(of_day.len(), 2, "{when}: {of_day:#?}");
        let states: BTreeSet<_> = all.iter().map(|block| (&block.source, &block.fingerprint)).collect();
        assert_eq!(states.len(), all.len(), "{when}: one block for each state of a conversation");
        let in_blocks: BTreeSet<_> = all.iter().flat_map(|block| &block.facts).collect();
        assert_eq!(in_blocks.len(), facts(&stage).await.len(), "{when}: each fact is in one block");
        assert_eq!(store.active_conversations(&stage.owner).await.unwrap(), [], "{when}");
        assert_eq!(store.memory_kept(&stage.owner).await.unwrap().value.daily, Some(date), "{when}");
        assert!(
            store.memory_due(&stage.owner).await.unwrap().is_some(),
            "{when}: the clean-up is left to do"
        );
        has_no_other_objects(&stage, &when).await;
        if !is_cut {
            break;
        }
        cuts += 1;
    }
    assert!((10..MOST_WRITES).contains(&cuts), "{cuts} cuts");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tidying_that_is_cut_off_anywhere_goes_on() {
    let model = ScriptedModel::start(learns).await;
    let (stage, faults) = stage(&model).await;
    let store = &stage.h.platform.cx.store;
    let saturday: Timestamp = "2026-11-21T12:00:00Z".parse().unwrap();
    let mut sunday_before: Option<u64> = None;
    let mut cuts = 0;
    for writes in 1..=MOST_WRITES {
        let noon = saturday + SignedDuration::from_hours(24 * 7 * (writes - 1) as i64);
        let date = noon.to_zoned_datetime(jiff::tz::TimeZone::UTC).date();
        let (sunday, monday) = (date + 1.day(), date - 5.days());
        let when = format!("the week of {monday}, cut off after {writes} writes");
        stage.clock.set(noon);
        let [one, other, late] = [3 * writes, 3 * writes + 1, 3 * writes + 2];
        let chat = stage.says(None, &[&sentence(one), &sentence(other)]).await;
        // Saturday at 23:01, and Sunday at 22:01.
        stage.clock.set(noon + SignedDuration::from_mins(10 * 60 + 1));
        work(&stage.h.platform.cx, &stage).await.unwrap();
        stage.clock.set(noon + SignedDuration::from_mins(33 * 60 + 1));
        faults.stop_after(writes);
        let ended = work(&executor(&stage), &stage).await;
        let is_cut = faults.go_on();
        assert_eq!(ended.is_err(), is_cut, "{when}: {ended:?}");
        // Sunday at 22:34. The person says something after the clean-up.
        stage.clock.set(stage.clock.now() + DEAD);
        if writes % 2 == 0 {
            goes_on(&stage, &model, &when).await;
        } else {
            stage.sweep().await;
            stage.executors.work().await;
        }
        stage.says(Some(&chat), &[&sentence(late)]).await;
        stage.clock.set(noon + SignedDuration::from_mins(34 * 60 + 1));
        work(&stage.h.platform.cx, &stage).await.unwrap();

        are_known_once(&stage, &[one, other, late], &when).await;
        let tidies = store.memory_tidies(&stage.owner).await.unwrap();
        let of_week: Vec<_> = tidies.iter().filter(|tidy| tidy.monday == monday).collect();
        assert_eq!(of_week.len(), 1, "{when}: {of_week:#?}");
        let all = blocks(&stage).await;
        for block in &all {
            let is_archived = block.date != sunday;
            assert_eq!(block.archived_by.is_some(), is_archived, "{when}: {block:#?}");
        }
        let of_tidy = all.iter().filter(|block| block.archived_by == Some(of_week[0].tidy_id)).count();
        assert_eq!(of_tidy as u64, of_week[0].blocks, "{when}");
        // What was said on the Sunday before is in this week. What was said today is in no week yet, and in no archive.
        let week = stage.h.get(&format!("/memory/weeks/{monday}")).await.expect(200);
        // The scripted model also repeats older lines.
        let lines = texts(&week["lines"]);
        for n in sunday_before.iter().chain([&one, &other]) {
            assert_eq!(lines.iter().filter(|line| **line == fact(*n)).count(), 1, "{when}: {lines:?}");
        }
        assert!(!lines.contains(&fact(late)), "{when}: {lines:?}");
        let days = stage.h.get("/memory/days").await.expect(200);
        let listed: Vec<&Value> = days["data"].as_array().unwrap().iter().map(|day| &day["date"]).collect();
        assert_eq!(listed, [&json!(sunday)], "{when}");
        let archive = stage.h.get(&format!("/memory/archive/{}", sunday.year())).await.expect(200);
        let archived = archive["days"].as_array().unwrap();
        assert!(!archived.iter().any(|day| day["date"] == json!(sunday)), "{when}: {archive:#}");
        let memory = stage.h.get("/memory/long-term").await.expect(200);
        let markdown = memory["markdown"].as_str().unwrap();
        for n in [one, other] {
            assert_eq!(markdown.matches(&fact(n)).count(), 1, "{when}: {markdown}");
        }
        assert!(!markdown.contains(&fact(late)), "{when}: {markdown}");
        assert!(store.memory_due(&stage.owner).await.unwrap().is_some(), "{when}");
        sunday_before = Some(late);
        if !is_cut {
            break;
        }
        cuts += 1;
    }
    assert!((5..MOST_WRITES).contains(&cuts), "{cuts} cuts");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rollback_that_is_cut_off_anywhere_is_done_or_not_begun() {
    let model = ScriptedModel::start(learns).await;
    let (stage, faults) = stage(&model).await;
    stage.says(None, &[&sentence(1), &sentence(2)]).await;
    stage.h.post("/memory/sync", json!({})).await.expect(200);
    for writes in 0..=MOST_WRITES {
        let tidied = stage.h.post("/memory/tidy", json!({})).await.expect(200);
        let path = format!("/memory/tidies/{}/rollback", tidied["tidy_id"].as_str().unwrap());
        assert!(blocks(&stage).await.iter().all(|block| block.archived_by.is_some()), "{writes}");
        faults.stop_after(writes);
        stage.h.post(&path, json!({})).await;
        let is_cut = faults.go_on();
        let again = stage.h.post(&path, json!({})).await;
        assert!([200, 409].contains(&again.status), "{writes}: {again:?}");
        assert!(blocks(&stage).await.iter().all(|block| block.archived_by.is_none()), "{writes}");
        let memory = stage.h.get("/memory/long-term").await.expect(200);
        assert!(!memory["markdown"].as_str().unwrap().contains(&fact(1)), "{writes}: {memory:#}");
        assert!(stage.h.platform.cx.store.memory_due(&stage.owner).await.unwrap().is_some());
        if !is_cut {
            assert!(writes > 0);
            return;
        }
    }
    panic!("it never ends");
}
