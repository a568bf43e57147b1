//! The official clients of the Model Context Protocol, and its conformance suite, with this server. They are programs
//! for Node and Python. If their packages are missing, a test says so and is skipped. `.ci/run` installs them.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tests::Harness;
use tests::{skipped, skips};
use tokio::process::Command;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("mcp")
}

/// The program of a package, if it is installed.
fn installed(path: PathBuf) -> Option<PathBuf> {
    skips::installed(&path).then_some(path)
}

/// The longest time that a program may take. The slowest takes a minute.
const MOST: Duration = Duration::from_secs(400);

/// Runs a program to its end and returns its output.
async fn output(program: impl AsRef<std::ffi::OsStr>, arguments: &[&str]) -> Option<String> {
    let ran = Command::new(program).args(arguments).current_dir(folder()).kill_on_drop(true).output();
    let ran = match tokio::time::timeout(MOST, ran).await.expect("the program ends") {
        Ok(ran) => ran,
        Err(error) => {
            skipped(error);
            return None;
        }
    };
    let printed = String::from_utf8_lossy(&ran.stdout).into_owned() + &String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{arguments:?}: {printed}");
    Some(printed)
}

/// The sequences of calls, each with what its address adds and with how many calls it makes at least.
const SEQUENCES: [(&str, &str, usize); 2] =
    [("sequence.json", "", 60), ("sets.json", "&tools=context,logs", 7)];

fn made_its_calls(printed: &str, least: usize) {
    let last = printed.trim_end().lines().last().unwrap_or_default();
    let calls: usize = last.split(' ').next().and_then(|calls| calls.parse().ok()).unwrap_or_default();
    assert!(calls >= least && last.ends_with("calls, 0 differences"), "{printed}");
}

#[tokio::test]
async fn the_typescript_client_is_served() {
    let Some(_) = installed(folder().join("node_modules/@modelcontextprotocol/sdk")) else { return };
    let h = Harness::start().await;
    for (sequence, more, least) in SEQUENCES {
        let url = format!("{}/mcp?workflow=typescript{more}", h.platform.url());
        if let Some(printed) = output("node", &["client.mjs", &url, "typescript", sequence]).await {
            made_its_calls(&printed, least);
        }
    }
}

/// Once with the newest version of the protocol, and once with the versions that begin with a handshake.
#[tokio::test]
async fn the_python_client_is_served() {
    let python = folder().join("../../target/ci/mcp/bin/python");
    let Some(python) = installed(python) else { return };
    let h = Harness::start().await;
    for mode in ["auto", "legacy"] {
        for (sequence, more, least) in SEQUENCES {
            let url = format!("{}/mcp?workflow={mode}{more}", h.platform.url());
            if let Some(printed) = output(&python, &["client.py", &url, mode, mode, sequence]).await {
                made_its_calls(&printed, least);
            }
        }
    }
}

/// Ten commits of a small theme, each made by an assistant's calls in three ways. The files have four forms, and in a part of the
/// replays somebody else writes meanwhile.
#[tokio::test]
async fn commits_of_a_theme_are_replayed_byte_for_byte() {
    let python = folder().join("../../target/ci/mcp/bin/python");
    let Some(python) = installed(python) else { return };
    // The program writes its history with git, and git applies the diffs of the change sets.
    let Some(_) = output("git", &["--version"]).await else { return };
    let h = Harness::start().await;
    let url = h.platform.url();
    let Some(printed) = output(&python, &["theme_replay.py", &url, "--small"]).await else { return };
    let last = printed.trim_end().lines().last().unwrap_or_default();
    // In each of four walks, one commit adds a newline at the end of a file, which edits leave as it is.
    assert!(
        last.starts_with("10 commits, 180 replays, ")
            && last.ends_with(": 168 equal, 12 but for the form, 0 refused, 0 wrong"),
        "{printed}"
    );
}

/// The suite's server scenarios that only need a server. The others call tools, resources and prompts of the suite's
/// own example server, or need completions, logging, subscriptions, sampling and elicitation, which this server does not
/// offer.
#[tokio::test]
async fn the_conformance_suite_passes() {
    const SCENARIOS: &[&str] = &[
        "server-initialize",
        "ping",
        "tools-list",
        "resources-list",
        "prompts-list",
        "dns-rebinding-protection",
    ];
    let suite = folder().join("node_modules/@modelcontextprotocol/conformance/dist/index.js");
    let Some(suite) = installed(suite) else { return };
    let suite = suite.to_str().unwrap();
    let h = Harness::start().await;
    let url = format!("{}/mcp", h.platform.url());
    for scenario in SCENARIOS {
        let arguments = [suite, "server", "--url", &url, "--scenario", scenario];
        if let Some(printed) = output("node", &arguments).await {
            assert!(
                printed.contains(" 0 failed") && !printed.contains("Passed: 0/"),
                "{scenario}: {printed}"
            );
        }
    }
}
