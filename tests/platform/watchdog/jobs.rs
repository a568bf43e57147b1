//! The records of background jobs: one for each job, with what it found and what it has written.

use std::time::Duration;

use domain::accounts::export::ExportState;
use domain::background::jobs::{JobKind, JobRun, JobState};
use domain::ids::{JobId, Owner};
use jiff::{SignedDuration, Timestamp};
use lamplighter_local::engines::faults::{FaultConfig, FaultRates};
use lamplighter_local::platform::PlatformConfig;
use serde_json::json;
use shared::Cx;
use shared::flows::executor::route;
use shared::store::table::{Extras, item};
use shared::store::{DueItem, keys};
use tests::Harness;
use tests::memory::{learns, remembers};
use tests::model::ScriptedModel;
use tests::stage::Stage;
use tests::themes::{CHANGED, PROJECT, deliver, harbour, put, zip};

/// All records, newest first.
async fn jobs(cx: &Cx, owner: &Owner) -> Vec<JobRun> {
    let found = cx.store.job_runs(owner, None, 1_000).await.unwrap();
    assert_eq!(found.last, None, "the test reads all of them");
    let jobs: Vec<JobRun> = found.items.into_iter().map(|(_, found)| found.value).collect();
    for job in &jobs {
        assert_eq!(job.validate(), Ok(()), "{job:?}");
    }
    assert!(jobs.is_sorted_by(|newer, older| newer.due >= older.due), "{jobs:?}");
    jobs
}

fn figures(job: &JobRun) -> (JobKind, JobState, u64, u64) {
    (job.kind, job.state, job.work_found, job.artefacts)
}

fn time(text: &str) -> Timestamp {
    text.parse().unwrap()
}

#[tokio::test]
async fn memory_has_a_record_of_each_day_and_week() {
    use JobKind::{MemoryDaily, MemoryWeekly};
    let model = ScriptedModel::start(learns).await;
    let stage = remembers(&model).await;
    let cx = &stage.h.platform.cx;
    // A look that finds nothing due leaves no record.
    stage.says(None, &["I like green tea", "I work at a small shop in Lisbon"]).await;
    stage.says(None, &["Hello"]).await;
    stage.moves_to("2026-11-21T18:00:00Z").await;
    assert_eq!(jobs(cx, &stage.owner).await, []);

    // The model fails. The next try goes on in the same record.
    model.refuses([0; 4]);
    stage.moves_to("2026-11-21T22:01:00Z").await;
    let all = jobs(cx, &stage.owner).await;
    assert_eq!(all.len(), 1, "{all:#?}");
    assert_eq!(figures(&all[0]), (MemoryDaily, JobState::Failed, 1, 0), "{all:#?}");
    assert_eq!((all[0].due, all[0].subject.as_str()), (time("2026-11-21T22:00:00Z"), ""));
    assert!(all[0].error.as_ref().is_some_and(|error| !error.is_empty()), "{all:#?}");
    stage.moves_to("2026-11-21T23:30:00Z").await;
    let all = jobs(cx, &stage.owner).await;
    // Of the two conversations, one was worth learning from.
    assert_eq!(all.iter().map(figures).collect::<Vec<_>>(), [(MemoryDaily, JobState::Succeeded, 1, 1)]);
    assert_eq!(all[0].ended_at.map(|at| at >= time("2026-11-21T23:30:00Z")), Some(true));

    // A week, and a day on which nothing was said.
    stage.moves_to("2026-11-22T21:01:00Z").await;
    stage.says(None, &["Hello again"]).await;
    stage.moves_to("2026-11-22T22:01:00Z").await;
    let all = jobs(cx, &stage.owner).await;
    let expected = [
        (MemoryDaily, JobState::Skipped, 0, 0),
        (MemoryWeekly, JobState::Succeeded, 1, 1),
        (MemoryDaily, JobState::Succeeded, 1, 1),
    ];
    assert_eq!(all.iter().map(figures).collect::<Vec<_>>(), expected, "{all:#?}");
}

#[tokio::test]
async fn jobs_are_listed_and_are_on_their_day() {
    let model = ScriptedModel::start(learns).await;
    let stage = remembers(&model).await;
    let h = &stage.h;
    stage.says(None, &["I like green tea", "I work at a small shop in Lisbon"]).await;
    stage.moves_to("2026-11-22T21:01:00Z").await;
    // Too short to learn from.
    stage.says(None, &["Hello again"]).await;
    stage.moves_to("2026-11-22T22:01:00Z").await;
    let found = h.get("/jobs").await.expect(200);
    let kinds = |found: &serde_json::Value| -> Vec<String> {
        let jobs = found["data"].as_array().unwrap();
        jobs.iter().map(|job| job["kind"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(kinds(&found), ["memory_daily", "memory_weekly", "memory_daily"], "{found:#}");
    let first = h.get("/jobs?limit=1&kind=memory_daily").await.expect(200);
    assert_eq!(first["data"], json!([found["data"][0]]));
    let cursor = first["next_cursor"].as_str().unwrap();
    let rest = h.get(&format!("/jobs?kind=memory_daily&cursor={cursor}")).await.expect(200);
    assert_eq!((&rest["data"], &rest["has_more"]), (&json!([found["data"][2]]), &json!(false)));
    assert_eq!(h.get("/jobs?state=failed").await.expect(200)["data"], json!([]));
    h.get("/jobs?kind=nonsense").await.refused(400, "invalid_input");
    h.get("/jobs?limit=0").await.refused(400, "invalid_input");

    let day = async |date: &str| {
        let day = h.get(&format!("/day?date={date}")).await.expect(200);
        assert_eq!(day["complete"], true);
        day["jobs"].clone()
    };
    // Oldest first. The person lives in Berlin.
    assert_eq!(day("2026-11-22").await, json!([found["data"][1], found["data"][0]]));
    assert_eq!(day("2026-11-21").await, json!([found["data"][2]]));
    assert_eq!(day("2026-11-23").await, json!([]));
}

/// An executor that is cut off after any of its writes leaves the record as it is, and the next one goes on in it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_that_is_killed_goes_on_in_its_record() {
    let model = ScriptedModel::start(learns).await;
    let faults = FaultConfig { seed: 7, rates: FaultRates::default(), slow_by: Duration::from_millis(20) };
    let config = PlatformConfig {
        models: model.config("gpt-5.1"),
        faults: Some(faults),
        ..PlatformConfig::in_memory()
    };
    let stage = Stage::of(config).await;
    stage.h.patch("/account", json!({"timezone": "Europe/Berlin"})).await.expect(200);
    let faults = stage.h.platform.engines().faults().unwrap().clone();
    let cx = &stage.h.platform.cx;
    let executor = || Cx::new((*cx.config).clone(), cx.clock.clone()).unwrap();
    let work = async |cx: &Cx| {
        let deadline = cx.clock.now() + SignedDuration::from_mins(15);
        route::process(cx, &DueItem::memory(&stage.owner), deadline).await
    };
    let (first, mut left_running) = (time("2026-11-23T12:00:00Z"), 0);
    for day in 0..40 {
        let noon = first + SignedDuration::from_hours(24 * day);
        stage.clock.set(noon);
        stage.says(None, &[&format!("I like tea number {day}"), &format!("I have {day} cats")]).await;
        let due = noon + SignedDuration::from_hours(10);
        stage.clock.set(due + SignedDuration::from_mins(1));
        faults.stop_after(day as u64 + 1);
        let ended = work(&executor()).await;
        let is_cut = faults.go_on();
        assert_eq!(ended.is_err(), is_cut, "{day}: {ended:?}");
        let daily = async || {
            let all = jobs(cx, &stage.owner).await;
            let daily = all.into_iter().filter(|job| (job.kind, job.due) == (JobKind::MemoryDaily, due));
            daily.collect::<Vec<_>>()
        };
        let found = daily().await;
        if is_cut {
            assert!(found.len() <= 1, "{found:#?}");
            let running = found.iter().filter(|job| job.state == JobState::Running).count();
            left_running += running;
        }
        stage.clock.set(stage.clock.now() + SignedDuration::from_mins(33));
        work(&executor()).await.unwrap();
        let after = daily().await;
        // What the killed one has written is there, so the next one may find nothing left to do.
        assert_eq!(after.len(), 1, "{day}: {after:#?}");
        assert!(matches!(after[0].state, JobState::Succeeded | JobState::Skipped), "{day}: {after:#?}");
        assert!(!after[0].is_empty_success(), "{day}: {after:#?}");
        if let Some(before) = found.first() {
            assert_eq!(before.job_id, after[0].job_id);
            assert!(after[0].cost_micros >= before.cost_micros, "{day}: {before:#?} {after:#?}");
        }
        if !is_cut {
            assert!(left_running > 3, "{left_running} records of killed jobs said that they run");
            return;
        }
    }
    panic!("an executor writes more than 40 times");
}

#[tokio::test]
async fn a_record_that_cannot_be_written_keeps_no_work_from_being_done() {
    let model = ScriptedModel::start(learns).await;
    let stage = remembers(&model).await;
    let cx = &stage.h.platform.cx;
    stage.says(None, &["I like green tea", "I work at a small shop in Lisbon"]).await;
    // The item under the key of the record is no record.
    let due = time("2026-11-21T22:00:00Z");
    let key = keys::job_run(&stage.owner, due, JobId::of(JobKind::MemoryDaily.as_str(), "", due));
    let broken = item(&json!({"job_id": "none"}), &Extras::default()).unwrap();
    cx.store.put(&key, broken.clone()).await.unwrap();
    stage.moves_to("2026-11-21T22:01:00Z").await;
    assert_eq!(stage.learned_on("2026-11-21").await.len(), 2);
    let kept = cx.store.get::<serde_json::Value>(&key).await.unwrap().unwrap();
    assert_eq!(kept.value["job_id"], "none", "it is left as it is");
}

#[tokio::test]
async fn exports_and_imports_have_records_and_a_deletion_has_none() {
    let h = Harness::with(PlatformConfig { automatic: false, ..PlatformConfig::in_memory() }).await;
    let cx = &h.platform.cx;
    let owner = Owner::new("local").unwrap();
    let agent = h.agent().await;
    h.post(&format!("/agents/{agent}/assets"), json!({"title": "One", "content": "Lamp oil"}))
        .await
        .expect(201);
    let asked = h.post("/account/export", json!({})).await.expect(202);
    let id = asked["export_id"].as_str().unwrap();
    let item = DueItem::export(&owner, id.parse().unwrap());
    let deadline = || cx.clock.now() + SignedDuration::from_mins(15);
    for _ in 0..3 {
        route::process(cx, &item, deadline()).await.unwrap();
    }
    let export = cx.store.export(&owner, id.parse().unwrap()).await.unwrap().unwrap().value;
    assert_eq!(export.state, ExportState::Done);
    let all = jobs(cx, &owner).await;
    let records = export.records.values().sum::<u64>() + export.objects;
    assert!(records > 3, "{export:?}");
    assert_eq!(
        all.iter().map(figures).collect::<Vec<_>>(),
        [(JobKind::AccountExport, JobState::Succeeded, records, 1)]
    );
    assert_eq!((all[0].subject.as_str(), all[0].due), (id, export.requested_at));
    assert!(!export.records.contains_key("jobs"), "records of jobs are no part of an export");

    h.delete("/account?confirm=local").await.expect(202);
    route::process(cx, &DueItem::deletion(&owner), deadline()).await.unwrap();
    assert_eq!(jobs(cx, &owner).await, [], "its receipt is the record of a deletion");
}

#[tokio::test]
async fn work_on_a_theme_has_records() {
    use JobKind::{ThemeImport, ThemeIndex};
    let config = PlatformConfig {
        clock: base::clock::Clock::scaled(20),
        automatic: false,
        ..PlatformConfig::in_memory()
    };
    let h = Harness::with(config).await;
    let (cx, owner) = (&h.platform.cx, Owner::new("local").unwrap());
    put(&h, "snippets/one.liquid", "<p>1</p>").await.expect(201);
    put(&h, "snippets/two.liquid", "<p>2</p>").await.expect(201);
    deliver(&h, CHANGED).await.unwrap();
    deliver(&h, CHANGED).await.unwrap();
    let all = jobs(cx, &owner).await;
    let project = "prj_00000000000000000000000000000000";
    assert_eq!(all.iter().map(figures).collect::<Vec<_>>(), [(ThemeIndex, JobState::Succeeded, 2, 1)]);
    assert_eq!(all[0].subject, project);

    // An indexer has died: its record says `running`, and the next one goes on in it.
    let died = JobRun::begin(None, ThemeIndex, project, cx.clock.now(), cx.clock.now());
    assert!(cx.store.save_job_run(&owner, &died, 0).await.unwrap().done());
    put(&h, "snippets/two.liquid", "<p>3</p>").await;
    deliver(&h, CHANGED).await.unwrap();
    let all = jobs(cx, &owner).await;
    assert_eq!(all.len(), 2, "{all:#?}");
    assert_eq!((all[0].job_id, figures(&all[0])), (died.job_id, (ThemeIndex, JobState::Succeeded, 2, 1)));

    let archive = zip(&harbour());
    let import = h.post(&format!("{PROJECT}/import"), json!({"bytes": archive.len()})).await.expect(202);
    let id = import["import_id"].as_str().unwrap();
    tests::put_archive(&tests::client(), &import, archive).await;
    for _ in 0..2 {
        deliver(&h, &format!("local/projects/{project}/imports/{id}.zip")).await.unwrap();
    }
    let broken = h.post(&format!("{PROJECT}/import"), json!({"bytes": 9})).await.expect(202);
    let broken_id = broken["import_id"].as_str().unwrap();
    tests::put_archive(&tests::client(), &broken, b"no zip...".to_vec()).await;
    deliver(&h, &format!("local/projects/{project}/imports/{broken_id}.zip")).await.unwrap();
    let all = jobs(cx, &owner).await;
    let files = harbour().len() as u64;
    assert_eq!(figures(&all[1]), (ThemeImport, JobState::Succeeded, files, files), "{all:#?}");
    assert_eq!(figures(&all[0]), (ThemeImport, JobState::Failed, 0, 0), "{all:#?}");
    assert_eq!((all[1].subject.as_str(), all[0].subject.as_str()), (id, broken_id));
}
