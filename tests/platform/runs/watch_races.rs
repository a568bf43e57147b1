//! What happens to an action while a program looks at what it watches.

use std::time::Duration;

use domain::ids::ActionId;
use lamplighter_local::platform::PlatformConfig;
use serde_json::{Value, json};
use tests::golden::Golden;
use tests::model::{Says, ScriptedModel};
use tests::site::{Answers, Site};
use tests::stage::Stage;

fn writes(_: &[Value]) -> Says {
    Says::Text("A report.".into())
}

async fn stage(site: &Site, model: &ScriptedModel) -> Stage {
    let models = model.config("claude-haiku-4-5");
    Stage::of(PlatformConfig { models, reach: site.reach(), ..PlatformConfig::in_memory() }).await
}

async fn hourly(stage: &Stage, watch: Value) -> ActionId {
    stage.approved(json!({"schedule": {"every": "1h"}, "watches": [watch]})).await
}

fn page(site: &Site, path: &str) -> Value {
    json!({"kind": "url", "url": site.url(path)})
}

/// Does something while an executor looks at the site. The answer comes this long after the request.
async fn during_a_look(
    stage: &Stage,
    site: &Site,
    minutes: i64,
    answers_after: u64,
    act: impl Future<Output = ()>,
) {
    let before = site.asked().len();
    site.answers(Answers::RedirectsAfter(Duration::from_millis(answers_after), site.url("/moved")));
    stage.at(minutes);
    stage.sweep().await;
    let act = async {
        while site.asked().len() == before {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        site.says("one");
        act.await;
    };
    tokio::join!(stage.executors.work(), act);
}

/// The look ends before it is found that the action has gone, and after that.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_remains_of_an_action_that_is_deleted_during_a_look() {
    for (looks_before, answers_after) in [(false, 200), (false, 1_500), (true, 200), (true, 1_500)] {
        let site = Site::start(Answers::Page("text/plain", "zero".to_owned(), None)).await;
        let model = ScriptedModel::start(writes).await;
        let stage = stage(&site, &model).await;
        let id = hourly(&stage, page(&site, "/page")).await;
        if looks_before {
            stage.happens_at(60).await;
        }
        let asked = model.asked();
        let path = format!("/actions/{id}");
        let delete = async {
            stage.h.delete(&path).await.expect(204);
        };
        during_a_look(&stage, &site, 120, answers_after, delete).await;
        assert_eq!(model.asked(), asked, "a deleted action has run");
        let items = Golden::of(&stage.h.platform.cx, Vec::new()).await.items;
        let left: Vec<&Value> = items.iter().filter(|item| item.to_string().contains("\"WATCH\"")).collect();
        assert!(left.is_empty(), "{looks_before} {answers_after}: {left:#?}");
    }
}

/// What an earlier look has found says nothing about what is watched now.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_look_that_ends_after_a_change_of_the_watches_says_nothing_about_the_new_ones() {
    let site = Site::start(Answers::Page("text/plain", "one".to_owned(), None)).await;
    let model = ScriptedModel::start(writes).await;
    let stage = stage(&site, &model).await;
    let id = hourly(&stage, page(&site, "/old")).await;
    stage.happens_at(60).await;
    let path = format!("/actions/{id}");
    let change = async {
        stage.h.patch(&path, json!({"watches": [page(&site, "/new")]})).await.expect(200);
    };
    during_a_look(&stage, &site, 120, 300, change).await;
    let changed = stage.h.get(&path).await.expect(200);
    assert_eq!(changed["state"], "defined", "{changed:#}");
    let hash = json!({"approval_hash": changed["approval_hash"]});
    stage.h.post(&format!("{path}/approve"), hash).await.expect(200);
    stage.happens_at(180).await;
    let last = model.sent().last().unwrap()["messages"][1]["content"].as_str().unwrap().to_owned();
    assert!(last.contains("/new, seen for the first time\n> one") && !last.contains("/old"), "{last}");
    stage.happens_at(240).await;
    let became = stage.became(id).await;
    assert_eq!(became.last().unwrap(), "240 unchanged unchanged", "{became:?}");
}

/// A run that was told of a page whose address is unusual knows that strangers have written it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_page_says_taints_a_run_however_its_address_is_written() {
    let site = Site::start(Answers::Page("text/plain", "one".to_owned(), None)).await;
    let model = ScriptedModel::start(writes).await;
    let stage = stage(&site, &model).await;
    let long = format!("/{}", "a".repeat(1_500));
    for url in [site.url("/page").replace("http://", "HTTP://"), site.url("/a b"), site.url(&long)] {
        let id = hourly(&stage, json!({"kind": "url", "url": url})).await;
        let at = stage.clock.now().duration_since(tests::stage::noon()).as_mins() + 60;
        stage.happens_at(at).await;
        let run = &stage.occurrences(id).await[0];
        assert_eq!(run.state.as_str(), "succeeded", "{run:?}");
        assert!(run.tainted, "{url}");
        let shown = stage.h.get(&format!("/runs/{}", run.run_id)).await.expect(200);
        assert_eq!(shown["sources"].as_array().map(Vec::len), Some(1), "{shown:#}");
        stage.h.delete(&format!("/actions/{id}")).await.expect(204);
    }
}
