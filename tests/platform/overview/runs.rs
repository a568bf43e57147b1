//! The runs of all actions, newest first.

use std::collections::BTreeSet;

use domain::ids::ActionId;
use jiff::{SignedDuration, Timestamp};
use models::ModelsConfig;
use serde_json::{Value, json};
use tests::stage::{Stage, noon};

/// All pages, with this many runs on each.
async fn pages(stage: &Stage, query: &str, limit: usize) -> Vec<Value> {
    let (mut data, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = stage.h.get(&format!("/runs?limit={limit}{query}{cursor}")).await.expect(200);
        assert_eq!(page["complete"], true);
        let runs = page["data"].as_array().unwrap();
        assert!(runs.len() <= limit);
        data.extend(runs.iter().cloned());
        assert_eq!(page["has_more"].as_bool().unwrap(), page["next_cursor"].is_string());
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    let ids: BTreeSet<&str> = data.iter().map(|run| run["run_id"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), data.len(), "no run is on two pages");
    let times: Vec<Timestamp> = data.iter().map(|run| run["at"].as_str().unwrap().parse().unwrap()).collect();
    assert!(times.is_sorted_by(|a, b| a >= b), "{times:?}");
    data
}

fn minute(minutes: i64) -> Timestamp {
    noon() + SignedDuration::from_mins(minutes)
}

/// Three actions with runs at different times, one of them by hand, a rehearsal and a turn.
async fn busy() -> (Stage, Vec<ActionId>) {
    let stage = Stage::with(ModelsConfig::default()).await;
    let mut ids = Vec::new();
    for every in ["10m", "15m", "1h"] {
        ids.push(stage.approved(json!({"title": every, "schedule": {"every": every}})).await);
    }
    for minutes in (5..=60).step_by(5) {
        stage.happens_at(minutes).await;
    }
    stage.at(61);
    stage.h.post(&format!("/actions/{}/run", ids[2]), json!({})).await.expect(202);
    stage.executors.work().await;
    stage.at(62);
    stage.h.post(&format!("/actions/{}/rehearse", ids[0]), json!({})).await.expect(202);
    stage.executors.work().await;
    stage.at(63);
    let chat = format!("/agents/{}/chat", stage.agent);
    stage.h.post(&chat, json!({"message": "Hello"})).await.expect(200);
    (stage, ids)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_runs_of_all_actions_are_one_list_that_pages_to_its_end() {
    let (stage, ids) = busy().await;
    let all = pages(&stage, "", 200).await;
    let kinds: Vec<&str> = all.iter().map(|run| run["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds[..2], ["rehearsal", "manual"]);
    assert_eq!(all.len(), 2 + 6 + 4 + 1, "{all:#?}");
    for limit in [1, 2, 5, 13] {
        assert_eq!(pages(&stage, "", limit).await, all, "{limit}");
    }
    let newest = &all[1];
    for (field, is) in [
        ("action_id", json!(ids[2])),
        ("action_title", json!("1h")),
        ("agent_name", json!("Watch")),
        ("state", json!("succeeded")),
        ("at", json!(minute(61))),
    ] {
        assert_eq!(newest[field], is, "{field}: {newest:#}");
    }

    let turns = pages(&stage, "&kind=chat", 200).await;
    assert_eq!((turns.len(), &turns[0]["state"]), (1, &json!("succeeded")), "{turns:#?}");
    assert!(turns[0]["chat_id"].is_string());
    assert_eq!(pages(&stage, "&kind=rehearsal", 1).await, all[..1]);
    assert_eq!(pages(&stage, "&kind=manual", 1).await, all[1..2]);
    assert_eq!(pages(&stage, "&kind=setup", 1).await.len(), 0);
    assert_eq!(pages(&stage, &format!("&action_id={}", ids[1]), 3).await.len(), 4);
    assert_eq!(pages(&stage, &format!("&agent_id={}", stage.agent), 4).await, all);
    let other = stage.h.agent().await;
    assert_eq!(pages(&stage, &format!("&agent_id={other}"), 4).await.len(), 0);
    assert_eq!(pages(&stage, &format!("&agent_id={other}&action_id={}", ids[0]), 4).await.len(), 0);
    // `from` is part of the range, `to` is not.
    let within = pages(&stage, &format!("&from={}&to={}", minute(30), minute(60)), 2).await;
    let within: Vec<Value> = within.iter().map(|run| run["at"].clone()).collect();
    assert_eq!(within, [50, 45, 40, 30, 30].map(|minutes| json!(minute(minutes))));
    assert_eq!(pages(&stage, "&state=failed", 2).await.len(), 0);
    assert_eq!(pages(&stage, "&state=succeeded", 2).await, all);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn runs_that_come_meanwhile_move_no_run_from_page_to_page() {
    let (stage, ids) = busy().await;
    let before = pages(&stage, "", 200).await;
    let first = stage.h.get("/runs?limit=4").await.expect(200);
    // New runs, a new action, and a change of an old one.
    for minutes in [70, 75, 80] {
        stage.happens_at(minutes).await;
    }
    stage.h.patch(&format!("/actions/{}", ids[0]), json!({"title": "Renamed"})).await.expect(200);
    stage.approved(json!({"schedule": {"every": "1h"}})).await;
    let cursor = first["next_cursor"].as_str().unwrap();
    let rest = stage.h.get(&format!("/runs?limit=200&cursor={cursor}")).await.expect(200);
    let ids = |runs: &[Value]| -> Vec<Value> { runs.iter().map(|run| run["run_id"].clone()).collect() };
    assert_eq!(ids(rest["data"].as_array().unwrap()), ids(&before[4..]));
    // A deleted action takes its runs with it, in the middle of the list.
    stage.h.delete(&format!("/actions/{}", before[6]["action_id"].as_str().unwrap())).await.expect(204);
    let rest = stage.h.get(&format!("/runs?limit=200&cursor={cursor}")).await.expect(200);
    assert!(!ids(rest["data"].as_array().unwrap()).contains(&before[6]["run_id"]));
}

#[tokio::test]
async fn invalid_filters_and_cursors_are_refused() {
    let (stage, ids) = busy().await;
    let page = stage.h.get("/runs?limit=1").await.expect(200);
    let cursor = page["next_cursor"].as_str().unwrap();
    for (query, field) in [
        ("limit=0".to_owned(), "limit"),
        ("limit=201".to_owned(), "limit"),
        ("state=done".to_owned(), "state"),
        ("kind=turn".to_owned(), "kind"),
        ("from=yesterday".to_owned(), "from"),
        ("agent_id=agt_1".to_owned(), "agent_id"),
        (format!("agent_id={}", ids[0]), "agent_id"),
        ("cursor=x".to_owned(), "cursor"),
        // A cursor of other filters would leave runs out.
        (format!("state=failed&cursor={cursor}"), "cursor"),
        ("page=2".to_owned(), "page"),
    ] {
        let refused = stage.h.get(&format!("/runs?{query}")).await.refused(400, "invalid_input");
        assert_eq!(refused["errors"][0]["field"], field, "{query}: {refused:#}");
    }
    let nobody = "act_01938f2a7c5e7d3a9b1f4c6d8e0a2b4c";
    stage.h.get(&format!("/runs?action_id={nobody}")).await.refused(404, "not_found");
}
