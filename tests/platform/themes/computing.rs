//! CPU-bound work: it does not delay other requests, has a time limit, and ends when its client leaves.

use std::time::{Duration, Instant};

use futures::future::join_all;
use reqwest::Method;
use serde_json::json;
use tests::themes::{PROJECT, put};
use tests::{Answer, Harness, send};

/// An expression with a count that has a new state for nearly every byte of a text of `a` and `b`.
const HOSTILE: &str = "/grep?regex=true&q=a%5Bab%5D%7B900%7Dc";

/// Four megabytes of `a` and `b` in one line, always the same. The `c` before them keeps the search from skipping the line.
fn text() -> String {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut letter = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        if state & 1 == 0 { 'a' } else { 'b' }
    };
    std::iter::once('c').chain((0..4 << 20).map(|_| letter())).collect()
}

async fn health(h: &Harness) -> Duration {
    let began = Instant::now();
    h.get("/health").await.expect(200);
    began.elapsed()
}

fn p99(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times[times.len() * 99 / 100]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hostile_searches_delay_nobody_and_end() {
    let h = Harness::start().await;
    put(&h, "assets/long.js", &text()).await.expect(201);
    put(&h, "assets/short.js", "const cart = 1;\n").await.expect(201);
    let mut quiet = Vec::new();
    for _ in 0..100 {
        quiet.push(health(&h).await);
    }
    let path = format!("{PROJECT}{HOSTILE}");
    let began = Instant::now();
    let mut hostile = Box::pin(join_all((0..3).map(|_| h.get(&path))));
    let mut busy = Vec::new();
    let answers: Vec<Answer> = loop {
        tokio::select! {
            answers = &mut hostile => break answers,
            took = health(&h) => busy.push(took),
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    };
    let took = began.elapsed();
    for answer in answers {
        match answer.status {
            // Its time was over, and the error names `q`.
            400 => assert_eq!(answer.refused(400, "invalid_input")["errors"][0]["field"], "q"),
            // It never got a slot.
            _ => {
                assert_eq!(answer.headers["retry-after"], "1");
                assert_eq!(answer.refused(503, "busy")["retryable"], true);
            }
        }
    }
    // Others get their answers while the searches compute. How fast depends on the machine.
    assert!(busy.len() >= 3, "{} answers in {took:?}", busy.len());
    println!("p99 {:?}, {:?} before", p99(&mut busy), p99(&mut quiet));

    // Another search gets its result.
    let found = h.get(&format!("{PROJECT}/grep?q=cart&glob=assets/short*")).await.expect(200);
    assert_eq!(found["matches"][0]["path"], "assets/short.js");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_search_ends_when_its_caller_leaves() {
    let h = Harness::start().await;
    put(&h, "assets/long.js", &text()).await.expect(201);
    let lane = h.platform.cx.compute.searches.clone();
    let search = {
        let request = h.request(Method::GET, &format!("{PROJECT}{HOSTILE}"));
        tokio::spawn(async move { request.send().await })
    };
    while lane.running() == 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    search.abort();
    let left = Instant::now();
    while lane.running() > 0 {
        // Its time limit would end it after two seconds.
        assert!(left.elapsed() < lane.budget * 3 / 4, "it still computes");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn hostile_patterns_of_paths_are_compared_within_bounds() {
    let h = Harness::start().await;
    put(&h, "assets/a.css", ".a {}").await.expect(201);
    let with = |what: &str, glob: &str| {
        let glob = glob.replace('?', "%3F").replace('{', "%7B").replace('}', "%7D");
        h.request(Method::GET, &format!("{PROJECT}/{what}glob={glob}"))
    };
    let stars = "*a?".repeat(170);
    let listed = send(with("files?", &stars)).await.expect(200);
    assert_eq!(listed["data"], json!([]));
    let found = send(with("grep?q=a&", &stars)).await.expect(200);
    assert_eq!(found["searched_files"], 0);
    for what in ["files?", "grep?q=a&"] {
        let deep = with(what, &("{".repeat(200) + &"}".repeat(200)));
        let problem = send(deep).await.refused(400, "invalid_input");
        assert_eq!(problem["errors"][0]["field"], "glob");
    }
}

#[tokio::test]
async fn a_preview_of_a_rare_appointment_is_quick() {
    let h = Harness::start().await;
    // Every minute of a 29th of February that is a Monday: years apart, with two clock changes per year.
    let rare = json!({
        "schedule": {"cron": "* * 29 2 MON", "timezone": "Europe/Berlin"}, "from": "2026-01-01T00:00:00Z", "count": 100
    });
    // A search minute by minute would take hours.
    let times = h.post("/schedules/preview", rare).await.expect(200);
    assert_eq!(times["fire_times"].as_array().map(Vec::len), Some(100), "{times}");
}
