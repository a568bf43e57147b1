//! The commands of the README's walk-through and of `docs/api.md`, run exactly as they are written.

use std::process::{Command, Output};

use base::clock::Clock;
use lamplighter_local::platform::PlatformConfig;
use tests::Harness;
use tests::skipped;

const README: &str = include_str!("../../../README.md");
const API: &str = include_str!("../../../docs/api.md");

/// The shell blocks of a page, in order.
fn blocks(page: &'static str) -> Vec<&'static str> {
    page.split("```sh\n").skip(1).filter_map(|rest| rest.split("\n```").next()).collect()
}

fn missing(program: &str) -> bool {
    let found = Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success());
    if !found {
        skipped(format_args!("the walk-through needs {program}, which is not here"));
    }
    !found
}

/// Every call of curl also writes the status of its answer to standard error.
const CURL: &str =
    r#"curl() { command curl -w '%{stderr}[status %{http_code} of %{url_effective}]\n' "$@"; }"#;

/// The failed calls of a script, and the number of all calls.
fn failures(stderr: &str) -> (Vec<&str>, usize) {
    let calls = stderr.split("[status ").skip(1).filter_map(|rest| rest.split(']').next());
    let calls: Vec<&str> = calls.collect();
    let failed = calls.iter().filter(|call| !call.starts_with('2')).copied().collect();
    (failed, calls.len())
}

async fn bash(script: String) -> Output {
    let script = format!("{CURL}\n{script}");
    let run = tokio::process::Command::new("bash")
        .args(["-euo", "pipefail", "-c", &script])
        .kill_on_drop(true)
        .output();
    run.await.expect("bash runs")
}

#[tokio::test]
async fn docs_leads_to_the_api_reference() {
    let h = Harness::start().await;
    let answer = h.request(reqwest::Method::GET, "/docs").send().await.unwrap();
    assert_eq!(
        (answer.status().as_u16(), &answer.headers()["location"]),
        (303, &"./#/reference".parse().unwrap())
    );
    h.get("/docs?x=1").await.refused(400, "invalid_input");
}

/// The commands on the front page can be copied as they are: they name the address of this server, and no other.
#[tokio::test]
async fn the_first_page_is_the_console() {
    let h = Harness::start().await;
    let page = h.get("/").await;
    assert_eq!(page.headers["content-type"], "text/html; charset=utf-8");
    let policy = page.headers["content-security-policy"].to_str().unwrap().to_owned();
    assert!(policy.contains("script-src 'self'") && !policy.contains("unsafe"), "{policy}");
    let tag = page.headers["etag"].clone();
    let page = page.expect(200).as_str().unwrap().to_owned();
    // Everything that the page loads is there.
    let loaded: Vec<&str> = page.split('"').filter(|part| part.starts_with("/console/")).collect();
    assert!(loaded.len() >= 4, "{page}");
    for path in loaded {
        assert_eq!(h.get(path).await.status, 200, "{path}");
    }
    let again = tests::send(h.request(reqwest::Method::GET, "/").header("if-none-match", tag)).await;
    assert_eq!(again.status, 304);
    h.get("/console/other.js").await.refused(404, "not_found");
    assert_eq!(h.get("/health").await.expect(200)["status"], "ok");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_newcomer_gets_an_agent_an_asset_and_a_scheduled_output() {
    if missing("bash") || missing("curl") {
        return;
    }
    let mut config = PlatformConfig::in_memory();
    // The minute of waiting passes in ten seconds.
    config.clock = Clock::scaled(6);
    let h = Harness::with(config).await;
    let blocks = blocks(README);
    assert_eq!(blocks.len(), 8, "the walk-through has eight blocks");
    let script = blocks.join("\n").replace("http://127.0.0.1:9000", &h.platform.url());
    let output = bash(script).await;
    let (said, wrong) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{said}\n{wrong}");
    let (failed, calls) = failures(&wrong);
    assert!(failed.is_empty() && calls > 15, "{calls} calls, of which these failed: {failed:?}\n{said}");
    assert!(said.contains("Every minute (UTC).") && said.contains("the action is act_"), "{said}\n{wrong}");
    assert!(
        said.contains("succeeded") && said.contains("paused\n"),
        "the first action ran, and was paused: {said}"
    );
    assert!(said.contains("the agent is agt_"), "{said}\n{wrong}");
    assert!(said.matches("lamp oil").count() >= 2, "both contents are about what was asked: {said}");
    assert_eq!(
        said.matches("the action is completed").count(),
        2,
        "it ran, and ran again after the change: {said}"
    );
    let asked = said.rsplit("the action is completed").next().unwrap_or_default();
    assert!(asked.contains("Name the sources, too"), "the last output is that of the changed action: {said}");
    assert_eq!(
        said.matches("scheduled\n").count(),
        2,
        "approved, and approved again after the change: {said}"
    );
    assert!(said.contains("The last run was due"), "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_examples_of_the_api_manual_work() {
    if missing("bash") || missing("curl") {
        return;
    }
    let h = Harness::start().await;
    let blocks = blocks(API);
    assert_eq!(blocks.len(), 19, "the page has nineteen blocks");
    let script = blocks.join("\n").replace("http://127.0.0.1:9000", &h.platform.url());
    let output = bash(script).await;
    let (said, wrong) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{said}\n{wrong}");
    // The page shows two errors on purpose: an invalid input, and an edit of an old version. And an answer that has not changed.
    let (failed, calls) = failures(&wrong);
    let statuses: Vec<&str> = failed.iter().map(|call| &call[..3]).collect();
    assert!(
        statuses == ["400", "409", "304"] && calls > 8,
        "{calls} calls, of which these failed: {failed:?}"
    );
    let count = |text: &str| said.matches(text).count();
    assert_eq!(count("\"code\":\"invalid_input\""), 1, "an error: {said}");
    // The agents, and what the sections about notices, jobs and the watchdog list.
    assert_eq!(count("\"has_more\":true"), 0, "whole pages: {said}");
    assert!(count("\"has_more\":false") >= 1, "whole pages: {said}");
    assert_eq!((count("201 Created"), count("idempotent-replayed: true")), (2, 1), "one agent: {said}");
    assert_eq!((count("etag: \"1\""), count("\"code\":\"version_conflict\"")), (1, 1), "one edit: {said}");
    assert_eq!(count("\"object\":\"chat.completion\""), 1, "an answer for a client of OpenAI: {said}");
    // The events of a turn, and then those after the second.
    assert_eq!((count("event: run.started"), count("event: run.completed")), (1, 2), "{said}");
    assert_eq!((count("id: 2\n"), count("id: 3\n")), (1, 2), "{said}");
}
