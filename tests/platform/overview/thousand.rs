//! An owner with a thousand actions: the answers are bounded, and say so.

use std::collections::BTreeSet;
use std::time::Instant;

use models::ModelsConfig;
use serde_json::{Value, json};
use tests::made;
use tests::stage::Stage;

/// The answer.
async fn read(stage: &Stage, path: &str) -> Value {
    let began = Instant::now();
    let answer = stage.h.get(path).await.expect(200);
    let took = began.elapsed();
    println!("{path} took {took:?}");
    answer
}

fn len(answer: &Value) -> usize {
    answer["data"].as_array().unwrap().len()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_about_a_thousand_actions_are_bounded_and_say_so() {
    let stage = Stage::with(ModelsConfig::default()).await;
    let drafts = made::drafts(&stage.h, &stage.agent, 1_000).await;
    made::occurrences(&stage.h, &drafts, 3).await;

    let inbox = read(&stage, "/inbox").await;
    assert_eq!((len(&inbox), &inbox["complete"]), (500, &json!(false)));
    // The newest come first.
    assert_eq!(inbox["data"][0]["action_id"], json!(drafts[999]));
    assert_eq!(inbox["data"][499]["action_id"], json!(drafts[500]));

    let day = read(&stage, "/day").await;
    let left: u64 = day["more"].as_array().unwrap().iter().filter_map(|more| more["count"].as_u64()).sum();
    assert_eq!((len(&day), left, &day["complete"]), (1_000, 2_000, &json!(false)));

    let (mut ids, mut cursor) = (BTreeSet::new(), String::new());
    loop {
        let page = read(&stage, &format!("/runs?limit=200{cursor}")).await;
        assert_eq!(page["complete"], true);
        let runs = page["data"].as_array().unwrap().iter();
        ids.extend(runs.map(|run| run["run_id"].as_str().unwrap().to_owned()));
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    assert_eq!(ids.len(), 3_000);
    assert_eq!(len(&read(&stage, "/runs?limit=50").await), 50);
    assert_eq!(len(&read(&stage, "/search?q=draft").await), 20);
}
