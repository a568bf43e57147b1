//! `watch wrap`: the command comes first, whatever the platform does.

use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Once};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use signal_hook::consts::{SIGHUP, SIGINT};
use signal_hook::flag;

use crate::bed::{Bed, DOWN, Output};
use crate::server::{Reply, Request, Server, wait_until};

const ID: &str = "wch_11111111111111111111111111111111";

/// A server with one watched schedule, called Backup.
fn platform() -> Server {
    Server::start(|request: &Request| match request.method.as_str() {
        "GET" => Reply::ok(json!({"data": [{"watched_id": ID, "name": "Backup"}]}).to_string()),
        _ => Reply::status(201, json!({"report_id": "rpt_1"}).to_string()),
    })
}

fn wrap(bed: &Bed, command: &[&str]) -> Output {
    bed.run(&[&["watch", "wrap", "Backup", "--"], command].concat())
}

/// The report that the server has got, and its idempotency key.
fn reported(server: &Server) -> (Value, String) {
    let requests = server.requests();
    let posts: Vec<&Request> = requests.iter().filter(|request| request.method == "POST").collect();
    let [post] = posts[..] else { panic!("{posts:?}") };
    assert_eq!(post.target, format!("/watched/{ID}/reports"));
    (serde_json::from_slice(&post.body).unwrap(), post.header("idempotency-key").unwrap().to_owned())
}

fn started(bed: &Bed, script: &str) -> Child {
    let mut command = bed.command(&["watch", "wrap", ID, "--", "sh", "-c", script]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

fn signal(child: &Child, name: &str) {
    let sent = Command::new("kill").args(["-s", name, &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
}

/// Reads the first line that the command prints.
fn first_line(child: &mut Child) -> String {
    let (mut line, mut byte) = (Vec::new(), [0u8; 1]);
    let out = child.stdout.as_mut().unwrap();
    while out.read(&mut byte).unwrap() == 1 && byte[0] != b'\n' {
        line.push(byte[0]);
    }
    String::from_utf8(line).unwrap()
}

#[test]
fn the_exit_code_is_passed_on_and_reported() {
    for code in [0, 1, 2, 3, 126, 127, 255] {
        let server = platform();
        let bed = Bed::new(&server.url);
        let script = format!("echo out; echo err >&2; exit {code}");
        let ended = wrap(&bed, &["sh", "-c", &script]);
        assert_eq!(ended, Output { code, out: "out\n".to_owned(), err: "err\n".to_owned() });
        let (report, key) = reported(&server);
        assert_eq!(report["exit_code"], code);
        let summary = report["summary"].as_str().unwrap();
        assert!(summary.starts_with("It took 0.") && summary.ends_with(" s."), "{summary}");
        assert!(report.get("ok").is_none() && !key.is_empty(), "{report}");
    }
}

#[test]
fn a_command_that_does_not_exist_is_127() {
    let server = platform();
    let ended = wrap(&Bed::new(&server.url), &["no-such-command-here", "--flag"]);
    assert_eq!((ended.code, ended.out.as_str()), (127, ""), "{ended:?}");
    assert!(ended.err.starts_with("lamplighter: no-such-command-here: "), "{ended:?}");
    assert_eq!(reported(&server).0["exit_code"], 127);
    // One that may not be run is 126.
    let server = platform();
    assert_eq!(wrap(&Bed::new(&server.url), &["/etc/passwd"]).code, 126);
    assert_eq!(reported(&server).0["exit_code"], 126);
}

#[test]
fn arguments_and_input_are_the_commands_own() {
    let server = platform();
    let bed = Bed::new(&server.url);
    let args = [
        "watch",
        "wrap",
        "Backup",
        "--",
        "sh",
        "-c",
        "cat; printf '[%s]' \"$@\"",
        "sh",
        "--json",
        "-x",
        "",
        "a b",
    ];
    let ended = bed.give(&args, "from the pipe");
    assert_eq!((ended.code, ended.out.as_str()), (0, "from the pipe[--json][-x][][a b]"), "{ended:?}");
}

#[test]
fn no_trouble_of_the_platform_changes_the_result() {
    let refusing = Server::start(|_| Reply::status(403, json!({"detail": "not for you"}).to_string()));
    let failing = Server::start(|_| Reply::status(500, "x"));
    let closing = Server::start(|_| Reply::Close);
    let strange = Server::start(|_| Reply::ok("<html>"));
    let empty = Server::start(|_| Reply::ok(json!({"data": []}).to_string()));
    let unconfigured = Bed::bare();
    unconfigured.private(".config/lamplighter/config.toml", "url = [");
    let beds = [DOWN, &refusing.url, &failing.url, &closing.url, &strange.url, &empty.url].map(Bed::new);
    for bed in beds.iter().chain([&unconfigured]) {
        let ended = wrap(bed, &["sh", "-c", "echo out; exit 7"]);
        assert_eq!((ended.code, ended.out.as_str()), (7, "out\n"), "{ended:?}");
        assert_eq!(ended.err.lines().count(), 1, "{ended:?}");
        assert!(ended.err.starts_with("lamplighter: the run of Backup was not reported: "), "{ended:?}");
    }
}

#[test]
fn a_server_that_hangs_is_not_waited_for() {
    let server = Server::start(|_| Reply::Silence);
    let ended = wrap(&Bed::new(&server.url), &["sh", "-c", "exit 7"]);
    assert_eq!(ended.code, 7, "{ended:?}");
    assert_eq!(ended.err.lines().count(), 1, "{ended:?}");
}

#[test]
fn a_server_that_starts_again_gets_the_report_once() {
    let tried = std::sync::atomic::AtomicU32::new(0);
    let server = Server::start(move |_| match tried.fetch_add(1, std::sync::atomic::Ordering::SeqCst) {
        0 => Reply::status(503, "{}"),
        _ => Reply::status(201, "{}"),
    });
    let ended = Bed::new(&server.url).run(&["watch", "wrap", ID, "--", "true"]);
    ended.silent();
    let keys: Vec<Option<String>> = server
        .requests()
        .iter()
        .map(|request| request.header("idempotency-key").map(str::to_owned))
        .collect();
    assert!(keys.len() == 2 && keys[0].is_some() && keys[0] == keys[1], "{keys:?}");
}

#[test]
fn a_limit_of_requests_is_waited_for_as_the_server_says() {
    for (after, is_reported) in
        [("2", true), ("0", true), ("60", false), ("x", true), ("18446744073709551615", false)]
    {
        let tried = std::sync::atomic::AtomicU32::new(0);
        let server = Server::start(move |_| match tried.fetch_add(1, std::sync::atomic::Ordering::SeqCst) {
            0 => Reply::ServerResponse {
                status: 429,
                headers: vec![("retry-after", after.to_owned())],
                body: b"{}".to_vec(),
            },
            _ => Reply::status(201, "{}"),
        });
        let began = Instant::now();
        let ended = Bed::new(&server.url).run(&["watch", "wrap", ID, "--", "sh", "-c", "exit 3"]);
        assert_eq!(ended.code, 3, "{ended:?}");
        assert_eq!(ended.err.contains("was not reported"), !is_reported, "{after}: {ended:?}");
        assert_eq!(server.requests().len(), if is_reported { 2 } else { 1 }, "{after}");
        let least = if after == "2" { 2 } else { 0 };
        let took = began.elapsed();
        assert!(took >= Duration::from_secs(least), "{after}: {took:?}");
    }
}

#[test]
fn a_name_that_is_not_text_does_not_keep_the_command_from_running() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    let server = platform();
    let bed = Bed::new(&server.url);
    let mut command = bed.command(&["watch", "wrap"]);
    command.arg(OsStr::from_bytes(b"Back\xffup")).args(["--", "sh", "-c", "echo ran; exit 6"]);
    let ended = command.output().unwrap();
    assert_eq!((ended.status.code(), ended.stdout.as_slice()), (Some(6), b"ran\n".as_slice()));
    let told = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(told, "lamplighter: the run of Back\u{fffd}up was not reported: its name is not UTF-8\n");
    assert!(server.requests().is_empty());
}

/// A child inherits what its parent ignores: INT and HUP in the background of a script or under `nohup`. What the parent handles has its
/// default in the child.
fn handle_what_may_be_ignored() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        flag::register(SIGHUP, Arc::new(AtomicBool::new(false))).unwrap();
        // It still ends the tests.
        flag::register_conditional_shutdown(SIGINT, 130, Arc::new(AtomicBool::new(true))).unwrap();
    });
}

#[test]
fn signals_reach_the_command() {
    handle_what_may_be_ignored();
    for (name, number) in [("TERM", 15), ("HUP", 1), ("INT", 2), ("USR1", 10)] {
        // The command ends of the signal.
        let server = platform();
        let bed = Bed::new(&server.url);
        let mut child = started(&bed, "echo ready; exec sleep 60");
        assert_eq!(first_line(&mut child), "ready");
        signal(&child, name);
        assert_eq!(child.wait().unwrap().code(), Some(128 + number), "{name}");
        let (report, _) = reported(&server);
        assert_eq!(report["exit_code"], 128 + number);
        assert!(report["summary"].as_str().unwrap().starts_with(&format!("Signal {number} ended it after ")));

        // The command handles it, and decides.
        let server = platform();
        let bed = Bed::new(&server.url);
        let script = format!("trap 'echo caught; exit 5' {name}; echo ready; while :; do sleep 0.05; done");
        let mut child = started(&bed, &script);
        assert_eq!(first_line(&mut child), "ready");
        signal(&child, name);
        assert_eq!(first_line(&mut child), "caught");
        assert_eq!(child.wait().unwrap().code(), Some(5), "{name}");
        assert_eq!(reported(&server).0["exit_code"], 5);
    }
}

/// Under `nohup`, the command ignores what this program would otherwise handle.
#[test]
fn a_signal_that_is_ignored_stays_ignored() {
    let server = platform();
    let bed = Bed::new(&server.url);
    let program = env!("CARGO_BIN_EXE_lamplighter");
    let command = bed.command(&[]);
    let envs: Vec<_> =
        command.get_envs().filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned()))).collect();
    let mut child = Command::new("sh")
        .args(["-c", "trap '' HUP; exec \"$@\"", "sh", program, "watch", "wrap", ID, "--"])
        .args(["sh", "-c", "echo ready; sleep 1; echo done"])
        .env_clear()
        .envs(envs)
        .current_dir(bed.path("project"))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    assert_eq!(first_line(&mut child), "ready");
    signal(&child, "HUP");
    assert_eq!(first_line(&mut child), "done");
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn fifty_megabytes_pass_through() {
    const BYTES: usize = 50_000_000;
    let server = platform();
    let bed = Bed::new(&server.url);
    let mut child = started(&bed, "cat");
    let mut stdin = child.stdin.take().unwrap();
    let writer = thread::spawn(move || {
        let part: Vec<u8> = (0..=255).cycle().take(100_000).collect();
        for _ in 0..BYTES / part.len() {
            stdin.write_all(&part).unwrap();
        }
    });
    let mut got = Vec::new();
    child.stdout.take().unwrap().read_to_end(&mut got).unwrap();
    writer.join().unwrap();
    assert_eq!(got.len(), BYTES);
    assert!(got.chunks(100_000).all(|part| part == &got[..100_000]));
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(reported(&server).0["exit_code"], 0);
}

/// If this program kept its ends of the pipes, the writer would wait for ever, and the reader would not see the end.
#[test]
fn a_command_that_closes_its_input_and_output_is_seen_to_do_so() {
    let server = platform();
    let bed = Bed::new(&server.url);
    let done = bed.path("done");
    let script =
        format!("exec <&-; echo closed; exec >&-; until [ -e '{}' ]; do sleep 0.1; done", done.display());
    let mut child = started(&bed, &script);
    assert_eq!(first_line(&mut child), "closed");
    let mut stdin = child.stdin.take().unwrap();
    let part = [0u8; 65_536];
    // The pipe has room for some parts at most.
    let refused = (0..1_000).find_map(|_| stdin.write_all(&part).err());
    assert_eq!(refused.unwrap().kind(), std::io::ErrorKind::BrokenPipe);
    let mut rest = Vec::new();
    child.stdout.take().unwrap().read_to_end(&mut rest).unwrap();
    // Both happened while the command still ran.
    std::fs::write(done, "").unwrap();
    assert_eq!((rest.len(), child.wait().unwrap().code()), (0, Some(0)));
}

#[test]
fn a_reader_that_goes_away_ends_the_command_as_ever() {
    let server = platform();
    let bed = Bed::new(&server.url);
    let mut child = started(&bed, "exec yes");
    assert_eq!(first_line(&mut child), "y");
    drop(child.stdout.take());
    wait_until(|| server.requests().iter().any(|request| request.method == "POST"));
    // SIGPIPE
    assert_eq!(child.wait().unwrap().code(), Some(141));
    assert_eq!(reported(&server).0["exit_code"], 141);
}

#[test]
fn a_second_signal_ends_the_report() {
    let server = Server::start(|_| Reply::Silence);
    let bed = Bed::new(&server.url);
    let child = &mut started(&bed, "exit 4");
    wait_until(|| !server.requests().is_empty());
    signal(child, "TERM");
    assert_eq!(child.wait().unwrap().code(), Some(4));
}

#[test]
fn schedules_are_added_listed_and_reported() {
    let watched = json!({
        "watched_id": ID, "name": "Backup", "schedule_text": "At 03:00 every day (UTC).", "grace_minutes": 30,
        "next_due": "2026-11-27T03:00:00Z", "last": {"due": "2026-11-26T03:00:00Z", "state": "silent"},
    });
    let server =
        Server::start(move |request: &Request| match (request.method.as_str(), request.target.as_str()) {
            ("GET", target) if target.starts_with("/watched?") => {
                Reply::ok(json!({"data": [watched]}).to_string())
            }
            ("GET", "/account") => Reply::ok(json!({"timezone": "UTC"}).to_string()),
            ("PATCH", _) => Reply::ok(json!({"name": "Backup", "paused": true}).to_string()),
            ("DELETE", _) => Reply::status(204, ""),
            _ => Reply::status(201, watched.to_string()),
        });
    let bed = Bed::new(&server.url);
    let run = |args: &[&str]| bed.run(args);
    let added =
        run(&["watch", "add", "Backup", "--daily", "03:00", "--timezone", "Europe/Berlin", "--grace", "5"]);
    assert!(added.code == 0 && added.out.contains(&format!("lamplighter watch wrap {ID} -- ")), "{added:?}");
    let sent: Value = serde_json::from_str(&server.bodies()[0]).unwrap();
    let schedule = json!({"cron": "0 3 * * *", "timezone": "Europe/Berlin"});
    let body = json!({"name": "Backup", "schedule": schedule, "expects_result": false, "grace_minutes": 5});
    assert_eq!(sent, body);
    let listed = run(&["watch", "list"]);
    assert!(listed.out.contains("silent") && listed.out.contains("At 03:00 every day (UTC)"), "{listed:?}");
    run(&["watch", "report", "backup", "--failed", "--summary", "disk full"]).printed("reported\n");
    let sent: Value = serde_json::from_str(server.bodies().last().unwrap()).unwrap();
    assert_eq!(sent, json!({"ok": false, "summary": "disk full"}));
    assert!(run(&["watch", "pause", "Backup"]).out.starts_with("Backup is paused."));
    run(&["watch", "delete", "Backup"]).failed("--yes");
    run(&["watch", "delete", "Backup", "--yes"]).printed("deleted\n");
    run(&["watch", "report", "Bakcup"]).failed("there are: Backup");
    // Times are those that a person writes.
    for (from, asked) in
        [("2026-11-25", "2026-11-25T00%3A00%3A00Z"), ("2026-11-25 09:00", "2026-11-25T09%3A00%3A00Z")]
    {
        run(&["watch", "show", ID, "--from", from]);
        let asked = format!("/watched/{ID}/ledger?from={asked}");
        assert!(server.requests().iter().any(|request| request.target == asked), "{from}");
    }
    run(&["watch", "show", ID, "--from", "yesterday"]).failed("--from must be a time such as `09:00`");
    for wrong in [
        &["watch", "add", "x"][..],
        &["watch", "add", "x", "--daily", "25:00"],
        &["watch", "add", "x", "--cron", "* * * * *", "--every", "1h"],
        &["watch", "wrap", "x"],
        &["watch", "--json", "list"],
    ] {
        assert_eq!(run(wrong).code, 1, "{wrong:?}");
    }
}

/// A failure before the first due time has no due time to which it belongs.
#[test]
fn a_failure_is_listed_and_shown_before_the_first_due_time() {
    let watched = json!({
        "watched_id": ID, "name": "Backup", "schedule_text": "At 03:00 every day (UTC).", "grace_minutes": 30,
        "state": "failed", "why": "It reported a failure with exit code 3.", "paused": false,
        "next_due": "2026-11-27T03:00:00Z",
    });
    let one = watched.clone();
    let server = Server::start(move |request: &Request| match request.target.as_str() {
        target if target.starts_with("/watched?") => Reply::ok(json!({"data": [watched]}).to_string()),
        "/account" => Reply::ok(json!({"timezone": "UTC"}).to_string()),
        target if target.ends_with("/ledger") => Reply::ok(json!({"data": []}).to_string()),
        _ => Reply::ok(one.to_string()),
    });
    let bed = Bed::new(&server.url);
    let listed = bed.run(&["watch", "list"]);
    let row = listed.out.lines().nth(1).unwrap();
    assert!(row.starts_with("Backup  failed  "), "{listed:?}");
    let shown = bed.run(&["watch", "show", "Backup"]);
    assert!(shown.out.contains("\nfailed: It reported a failure with exit code 3.\n"), "{shown:?}");
}
