//! Hostile files of a theme: an owner sends each shape of the growth test as a change to a check, at the largest size that is still
//! read. Each must get its answer in time, other requests must be answered meanwhile, and the server must not keep the memory.

#[path = "../../../shared/theme-scripts/tests/growth/shapes.rs"]
mod shapes;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use reqwest::Client;
use serde_json::{Value, json};
use tests::program::{self, Server};

/// The size of each file, in bytes. Larger scripts are not read.
const BYTES: usize = 250 * 1024;

/// The longest time of a check. The server is not optimised, and a check may take 60 s before it is ended.
const LONGEST: Duration = Duration::from_secs(20);

/// The longest time of another request meanwhile.
const PATIENCE: Duration = Duration::from_secs(2);

/// The most memory of the server, in KiB. The files of a check, what is read from them and the findings are in memory.
const MOST_MEMORY: i64 = 1024 * 1024;

/// The fewest shapes.
const LEAST: usize = 150;

/// The file that a reader of the growth test reads.
fn path(reader: &str) -> Option<&'static str> {
    Some(match reader {
        "script" | "module" | "check js" => "assets/m.js",
        "check js.liquid" => "assets/m.js.liquid",
        "check css" => "assets/m.css",
        "check css.liquid" => "assets/m.css.liquid",
        "check liquid" => "sections/m.liquid",
        "check template" => "templates/m.json",
        "check settings" => "config/settings_schema.json",
        "check data" => "config/settings_data.json",
        "check locale" => "locales/en.default.json",
        _ => return None,
    })
}

/// A text of the shape, about as long as a file may be. A `§` in the unit becomes the number of its repetition.
fn text(before: &str, unit: &str, after: &str) -> String {
    let mut text = before.to_owned();
    for number in 0.. {
        let unit = unit.replacen('§', &number.to_string(), 1);
        if text.len() + unit.len() + after.len() > BYTES {
            break;
        }
        text.push_str(&unit);
    }
    text + after
}

pub async fn attack() -> Vec<String> {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(&mut program::command(&program::beside().unwrap(), data.path()));
    let (client, url) = (tests::client(), server.url.clone());
    let project = client.post(format!("{url}/projects")).json(&json!({"name": "Shop"})).send().await.unwrap();
    let project: Value = serde_json::from_str(&project.text().await.unwrap()).unwrap();
    let check = format!("{url}/projects/{}/check", project["project_id"].as_str().unwrap());

    // All the time, somebody else asks.
    let (is_over, began_with) = (AtomicBool::new(false), server.resident().unwrap());
    let others = async {
        let mut slowest = Duration::ZERO;
        while !is_over.load(Ordering::Relaxed) {
            let began = Instant::now();
            client.get(format!("{url}/agents")).send().await.unwrap().bytes().await.unwrap();
            slowest = slowest.max(began.elapsed());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        slowest
    };
    let checks = async {
        let (mut wrong, mut slowest, mut most, mut count) =
            (Vec::new(), BTreeMap::new(), server.resident().unwrap(), 0);
        for (readers, before, unit, after) in shapes::all() {
            for path in readers.iter().filter_map(|reader| path(reader)) {
                let body = json!({"files": [{"path": path, "content": text(before, unit, after)}]});
                let (status, took) = checked(&client, &check, &body).await;
                count += 1;
                let memory = server.resident().unwrap();
                most = most.max(memory);
                let what = format!("{path} {before:?} {unit:?} {after:?}");
                if status != 200 || took > LONGEST || memory > MOST_MEMORY {
                    wrong.push(format!("{what}: {status} after {took:.1?}, with {memory} KiB"));
                }
                slowest.insert(took, what);
            }
        }
        is_over.store(true, Ordering::Relaxed);
        if count < LEAST {
            wrong.push(format!("only {count} shapes, {LEAST} are wanted"));
        }
        println!("{count} hostile files; memory {began_with} KiB before, at most {most} KiB");
        for (took, what) in slowest.iter().rev().take(3) {
            println!("  {took:.1?} {what}");
        }
        wrong
    };
    let (slowest, mut wrong) = tokio::join!(others, checks);
    println!("  {slowest:.1?} another request meanwhile");
    if slowest > PATIENCE {
        wrong.push(format!("another request took {slowest:.1?}"));
    }
    wrong
}

async fn checked(client: &Client, url: &str, body: &Value) -> (u16, Duration) {
    let began = Instant::now();
    let answer = client.post(url).json(body).send().await.unwrap();
    let status = answer.status().as_u16();
    answer.bytes().await.unwrap();
    (status, began.elapsed())
}
