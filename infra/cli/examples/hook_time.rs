//! Measures how long a hook delays an assistant: the time of the whole program from its start to its end, without the time of
//! the server.
//!
//! `cargo run --release -p lamplighter-cli --example hook_time [runs]`, after `cargo build --release -p lamplighter-cli`.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

fn main() {
    let runs = std::env::args().nth(1).and_then(|runs| runs.parse().ok()).unwrap_or(300);
    let example = std::env::current_exe().expect("the path of this program is known");
    let program =
        example.parent().and_then(Path::parent).expect("the program is in a subfolder").join("lamplighter");
    let size = fs::metadata(&program).expect("the command must be built before").len();
    println!("{} is {:.2} MB; {runs} runs each, milliseconds", program.display(), size as f64 / 1e6);

    let home = tempfile::tempdir().expect("a temporary folder can be created");
    let bench = Bench { program, home: home.path().to_owned(), runs };
    let (up, busy) = server();
    bench.measure("starts and does nothing", &["--version"], "", &up, &busy);
    bench.measure("server up", &["log", "-a"], PAYLOAD, &up, &busy);
    let long = PAYLOAD.replace("Look", &"Look around. ".repeat(8_000));
    bench.measure("server up, 100 kB", &["log", "-u"], &long, &up, &busy);
    bench.measure("server down", &["log", "-a"], PAYLOAD, "http://127.0.0.1:1", &busy);
    bench.measure("remote server down", &["log", "-a"], PAYLOAD, "https://127.0.0.1.invalid", &busy);
}

const PAYLOAD: &str = r#"{"session_id":"6f1c","hook_event_name":"PreToolUse","tool_name":"Task","tool_use_id":"toolu_1","tool_input":{"subagent_type":"the-architect","description":"Look","prompt":"AgentId: arch-001\nLook"}}"#;

struct Bench {
    program: PathBuf,
    home: PathBuf,
    runs: usize,
}

impl Bench {
    fn measure(&self, name: &str, args: &[&str], stdin: &str, url: &str, busy: &AtomicU64) {
        let payload = self.home.join("payload");
        fs::write(&payload, stdin).expect("a file is written");
        let mut times: Vec<Duration> = (0..self.runs)
            .map(|_| {
                let mut command = Command::new(&self.program);
                command.args(args).env_clear().env("HOME", &self.home).env("LAMPLIGHTER_URL", url);
                command.stdin(fs::File::open(&payload).expect("it was just written")).stdout(Stdio::null());
                busy.store(0, Ordering::SeqCst);
                let begin = Instant::now();
                let status = command.status().expect("the command starts");
                let took = begin.elapsed();
                assert!(status.success());
                took.saturating_sub(Duration::from_nanos(busy.load(Ordering::SeqCst)))
            })
            .collect();
        times.sort();
        let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize].as_secs_f64() * 1e3;
        println!(
            "{name:26} p50 {:6.2}  p90 {:6.2}  p99 {:6.2}  min {:6.2}",
            at(0.5),
            at(0.9),
            at(0.99),
            at(0.0)
        );
    }
}

/// A server that accepts every request. Also returns how long it needed for the answer to the last request, in nanoseconds.
fn server() -> (String, Arc<AtomicU64>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let url = format!("http://{}", listener.local_addr().expect("it is bound"));
    let busy = Arc::new(AtomicU64::new(0));
    let counter = busy.clone();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let counter = counter.clone();
            thread::spawn(move || serve(stream, &counter));
        }
    });
    (url, busy)
}

fn serve(mut stream: TcpStream, busy: &AtomicU64) {
    let (mut seen, mut buffer) = (Vec::new(), [0; 65_536]);
    while let Ok(read @ 1..) = stream.read(&mut buffer) {
        seen.extend_from_slice(&buffer[..read]);
        let text = String::from_utf8_lossy(&seen);
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length =
            head.lines().find_map(|line| line.strip_prefix("content-length: ")).and_then(|n| n.parse().ok());
        if body.len() >= length.unwrap_or(0) {
            let begin = Instant::now();
            seen.clear();
            if stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").is_err() {
                return;
            }
            busy.fetch_add(begin.elapsed().as_nanos() as u64, Ordering::SeqCst);
        }
    }
}
