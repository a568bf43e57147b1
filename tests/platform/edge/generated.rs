//! Programs that read OpenAPI documents, with our document: two linters, two client generators whose clients do the
//! README's main job, and a tester that makes its own requests. They are programs for Node and Python. If their
//! packages are missing, a test says so and is skipped. `.ci/run` installs them.

use std::path::{Path, PathBuf};

use base::clock::Clock;
use lamplighter_local::platform::PlatformConfig;
use tests::Harness;
use tests::{skipped, skips};
use tokio::process::Command;

const DOCUMENT: &str = "../../infra/openapi.json";

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("clients")
}

/// A program of the folder's packages, if it is installed.
fn node(name: &str) -> Option<PathBuf> {
    installed(folder().join("node_modules/.bin").join(name))
}

fn python(name: &str) -> Option<PathBuf> {
    installed(folder().join("../../target/ci/clients/bin").join(name))
}

fn installed(path: PathBuf) -> Option<PathBuf> {
    skips::installed(&path).then_some(path)
}

/// Runs a program to its end, for at most five minutes, and returns its output.
async fn output(program: impl AsRef<Path>, arguments: &[&str]) -> String {
    let run = Command::new(program.as_ref())
        .args(arguments)
        .current_dir(folder())
        .env("NO_COLOR", "1")
        .env("REDOCLY_TELEMETRY", "off")
        .env("REDOCLY_SUPPRESS_UPDATE_NOTICE", "true")
        .kill_on_drop(true)
        .output();
    let ran = run.await.expect("it runs");
    let printed = String::from_utf8_lossy(&ran.stdout).into_owned() + &String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{} {arguments:?}: {printed}", program.as_ref().display());
    printed
}

/// A platform on which a minute passes in ten seconds.
async fn quick() -> Harness {
    let mut config = PlatformConfig::in_memory();
    config.clock = Clock::scaled(6);
    Harness::with(config).await
}

#[tokio::test]
async fn redocly_reports_nothing() {
    let Some(redocly) = node("redocly") else { return };
    let printed = output(redocly, &["lint", "--config", "lint.redocly.yaml", DOCUMENT]).await;
    assert!(printed.contains("Your API description is valid") && !printed.contains("You have"), "{printed}");
}

#[tokio::test]
async fn spectral_reports_nothing() {
    let Some(spectral) = node("spectral") else { return };
    let arguments = ["lint", "--ruleset", "spectral.yaml", "--fail-severity", "hint", DOCUMENT];
    let printed = output(spectral, &arguments).await;
    assert!(printed.contains("No results with a severity of 'hint' or higher found!"), "{printed}");
}

#[tokio::test]
async fn a_generated_typescript_client_does_the_main_job() {
    let (Some(generate), Some(tsc)) = (node("openapi-typescript"), node("tsc")) else { return };
    output(generate, &[DOCUMENT, "--output", "generated/schema.d.ts"]).await;
    // The types are half of the client: the program's code must match them.
    output(tsc, &["--project", "tsconfig.json"]).await;
    let h = quick().await;
    let printed = output("node", &["generated/js/job.js", &h.platform.url()]).await;
    assert!(printed.ends_with("the main job is done\n"), "{printed}");
}

#[tokio::test]
async fn a_generated_python_client_does_the_main_job() {
    let (Some(generate), Some(python)) = (python("openapi-python-client"), python("python")) else { return };
    let arguments = [
        "generate",
        "--path",
        DOCUMENT,
        "--config",
        "generate.yaml",
        "--meta",
        "none",
        "--overwrite",
        "--fail-on-warning",
        "--output-path",
        "generated/lamplighter_client",
    ];
    output(generate, &arguments).await;
    let h = quick().await;
    let printed = output(python, &["job.py", &h.platform.url(), "generated"]).await;
    assert!(printed.ends_with("the main job is done\n"), "{printed}");
}

#[tokio::test]
async fn schemathesis_finds_no_violation() {
    let Some(schemathesis) = python("schemathesis") else { return };
    let h = Harness::start().await;
    let url = h.platform.url();
    let printed =
        output(schemathesis, &["--config-file", "schemathesis.toml", "run", DOCUMENT, "--url", &url]).await;
    println!("{printed}");
}

/// The official client of OpenAI talks to an agent.
#[tokio::test]
async fn the_client_of_openai_is_served() {
    let Some(python) = python("python") else { return };
    let is_there = Command::new(&python).args(["-c", "import openai"]).output().await;
    if !is_there.is_ok_and(|ran| ran.status.success()) {
        skipped("the package openai is not there; `.ci/run` installs it");
        return;
    }
    let h = Harness::start().await;
    let agent = h.agent().await;
    let (json, _model, json_agent) = tests::completions::forgetful().await;
    let (url, json_url) = (h.platform.url(), json.platform.url());
    let printed = output(python, &["openai_chat.py", &url, &agent, &json_url, &json_agent]).await;
    assert!(printed.contains("the agent has answered"), "{printed}");
}
