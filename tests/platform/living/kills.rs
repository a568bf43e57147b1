//! A synchronisation that is cut off before or after any of its writes, in parallel with itself: each commit is in exactly one that
//! succeeds, and no document is lost.

use std::collections::BTreeSet;
use std::time::Duration;

use domain::ids::ProjectId;
use jiff::SignedDuration;
use lamplighter_local::engines::faults::{FaultConfig, FaultRates, Faults};
use lamplighter_local::platform::PlatformConfig;
use reqwest::Method;
use serde_json::json;
use shared::Cx;
use shared::blobs::BlobKey;
use shared::flows::executor::route;
use shared::store::DueItem;
use tests::living::{keeps, reports, text, times};
use tests::model::ScriptedModel;
use tests::send;
use tests::stage::Stage;

/// More writes than a synchronisation has.
const MOST_WRITES: u64 = 60;

const NAMES: [&str; 3] = ["A.md", "B.md", "LONG.md"];

/// An executor of a process of its own.
fn executor(stage: &Stage) -> Cx {
    let cx = &stage.h.platform.cx;
    Cx::new((*cx.config).clone(), cx.clock.clone()).unwrap()
}

async fn work(cx: &Cx, stage: &Stage) -> shared::Result<()> {
    let deadline = cx.clock.now() + SignedDuration::from_mins(15);
    route::process(cx, &DueItem::docs(&stage.owner, ProjectId::DEFAULT), deadline).await
}

/// The texts in the bucket are those that the records name.
async fn has_no_lost_texts(stage: &Stage, when: &str) {
    let cx = &stage.h.platform.cx;
    let listed = cx.blobs.list(&BlobKey::living_texts(&stage.owner, ProjectId::DEFAULT), None).await.unwrap();
    let listed: BTreeSet<String> = listed.into_iter().collect();
    for name in NAMES {
        let name = name.parse().unwrap();
        let versions =
            cx.store.living_versions(&stage.owner, ProjectId::DEFAULT, &name, None, 200).await.unwrap();
        for (_, version) in versions.items {
            assert!(listed.contains(&version.value.text.simple().to_string()), "{when}: {:?}", version.value);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_synchronisation_that_is_cut_off_anywhere_has_each_commit_once() {
    for dies in [Faults::stop_after, Faults::stop_before_write_after] {
        let model = ScriptedModel::start(keeps).await;
        let faults =
            FaultConfig { seed: 7, rates: FaultRates::default(), slow_by: Duration::from_millis(20) };
        // A model with a price, so that money is reserved before each call and settled after it.
        let config = PlatformConfig {
            models: model.config("gpt-5.1"),
            faults: Some(faults),
            ..PlatformConfig::in_memory()
        };
        let stage = Stage::of(config).await;
        let faults = stage.h.platform.engines().faults().unwrap().clone();
        let long: String = (0..8).map(|n| format!("## Part {n}\n\n{}\n\n", "word ".repeat(900))).collect();
        for (name, content) in NAMES.into_iter().zip(["# A\n", "# B\n", long.as_str()]) {
            let put = stage.h.request(Method::PUT, &format!("/projects/default/docs/{name}"));
            send(put.json(&json!({"content": content}))).await.expect(201);
        }
        let (mut cuts, mut next, mut all) = (0, 1, Vec::new());
        for writes in 1..=MOST_WRITES {
            let when = format!("cut off after {writes} writes");
            let numbers = [next, next + 1];
            next += 2;
            all.extend(numbers);
            reports(&stage.h, "default", numbers).await;
            stage.h.post("/projects/default/docs/sync", json!({})).await.expect(202);
            dies(&faults, writes);
            let ended = work(&executor(&stage), &stage).await;
            let is_cut = faults.go_on();
            // The costs of a try are saved after the error.
            assert!(is_cut || ended.is_ok(), "{when}: {ended:?}");
            // A hook reports them again, and a new one.
            reports(&stage.h, "default", numbers).await;
            reports(&stage.h, "default", [next]).await;
            all.push(next);
            next += 1;
            // Two executors at once after the lease, then others, which find nothing.
            stage.clock.set(stage.clock.now() + SignedDuration::from_mins(33));
            let (one, other) = (executor(&stage), executor(&stage));
            let (first, second) = futures::join!(work(&one, &stage), work(&other, &stage));
            first.and(second).unwrap_or_else(|error| panic!("{when}: {}", error.causes()));
            let asked = model.asked();
            for _ in 0..10 {
                work(&other, &stage).await.unwrap();
            }
            assert_eq!(model.asked(), asked, "{when}");
            let sync = stage.h.get("/projects/default/docs/sync").await.expect(200);
            assert_eq!(sync["state"], "succeeded", "{when}: {sync:#}");
            // The next one takes what is left.
            stage.h.post("/projects/default/docs/sync", json!({})).await.expect(202);
            work(&one, &stage).await.unwrap();
            let waiting = stage.h.get("/projects/default/docs").await.expect(200);
            assert_eq!(waiting["commits_since_sync"], 0, "{when}");
            has_no_lost_texts(&stage, &when).await;
            let first = text(&stage.h, "default", "A.md").await;
            assert_eq!(times(&first, all.clone()), vec![1; all.len()], "{when}");
            if !is_cut {
                break;
            }
            cuts += 1;
        }
        assert!((6..MOST_WRITES).contains(&cuts), "{cuts} cuts");
    }
}
