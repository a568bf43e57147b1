//! `infra/smoke.sh`, which tests a deployment from outside, with the server of this machine.

use std::process::Output;

use base::clock::Clock;
use lamplighter_local::platform::PlatformConfig;
use tests::Harness;

async fn smoke(url: &str) -> Output {
    let run = tokio::process::Command::new("bash")
        .args([concat!(env!("CARGO_MANIFEST_DIR"), "/../infra/smoke.sh"), url, "none"])
        // The demo model's turns are short.
        .env("SMOKE_SECONDS", "0")
        .kill_on_drop(true)
        .output();
    run.await.expect("bash runs")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_check_passes_and_leaves_nothing_behind() {
    let h = Harness::with(PlatformConfig { clock: Clock::scaled(6), ..PlatformConfig::in_memory() }).await;
    let output = smoke(&h.platform.url()).await;
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!((said.matches("ok      ").count(), said.lines().count()), (11, 11), "{said}");
    for path in ["/agents", "/actions", "/assets"] {
        assert_eq!(h.get(path).await.expect(200)["data"], serde_json::json!([]), "{path}");
    }
}

#[tokio::test]
async fn an_unavailable_server_fails_each_check_with_the_reason() {
    let output = smoke("http://127.0.0.1:1").await;
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.lines().all(|line| line.starts_with("failed  ") && line.contains("Failed to connect")),
        "{said}"
    );
}
