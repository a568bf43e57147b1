//! `watch wrap`: runs a command, passes on how it ended, and reports that.
//!
//! The command comes first. Its standard input, output and error are its own, signals reach it, and its exit code is passed on. Whatever
//! goes wrong with the report is one line on the standard error.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};
use serde_json::{Value, json};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::Signals;
use uuid::Uuid;

use super::watched;
use crate::args::Wrap;
use crate::config::Places;
use crate::output;
use crate::server::{Change, Patience, Server, ServerError};

/// How long the report may take, after the command has ended.
const REPORT: Duration = Duration::from_secs(10);

/// How long one call may take.
const PATIENCE: Patience = Patience { connect: Duration::from_secs(3), answer: Duration::from_secs(8) };

/// The pause before a call is made again.
const PAUSE: Duration = Duration::from_secs(1);

/// The exit codes of shells for a command that does not exist, and for one that can't be started.
const NOT_FOUND: i32 = 127;
const NOT_STARTED: i32 = 126;

/// What shells add to the number of the signal that has ended a command.
const SIGNALLED: i32 = 128;

/// The signals that are passed on.
const PASSED_ON: [i32; 6] = [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2];

/// How a command has ended.
struct Ended {
    code: i32,
    /// For the report.
    summary: String,
}

/// The command, as long as signals may be sent to it. Afterwards its number may be that of another process.
type Living = Arc<Mutex<Option<Pid>>>;

/// Runs the command, reports its end, and ends this process with its exit code.
pub fn run(args: &Wrap) -> ! {
    let (send, receive) = mpsc::channel();
    let ended = run_command(&args.command, &send);
    let (named, body) = (args.name.clone(), json!({ "exit_code": ended.code, "summary": ended.summary }));
    thread::spawn(move || {
        let told = match named.to_str() {
            Some(named) => report(named, &body),
            None => Err("its name is not UTF-8".to_owned()),
        };
        drop(send.send(Some(told)));
    });
    let told = match receive.recv_timeout(REPORT) {
        Ok(Some(told)) => told,
        Ok(None) => Err("a signal has ended it".to_owned()),
        Err(RecvTimeoutError::Timeout) => Err(format!("it took longer than {} s", REPORT.as_secs())),
        Err(RecvTimeoutError::Disconnected) => Err("it has failed".to_owned()),
    };
    if let Err(why) = told {
        output::note(&format!("the run of {} was not reported: {why}", args.name.to_string_lossy()));
    }
    std::process::exit(ended.code)
}

/// Runs the command to its end. A signal that comes afterwards sends `None` to `after`.
fn run_command(command: &[OsString], after: &Sender<Option<Result<(), String>>>) -> Ended {
    let Some((program, args)) = command.split_first() else {
        return Ended { code: NOT_FOUND, summary: "There was no command.".to_owned() };
    };
    let began = Instant::now();
    // Before the command begins, so that no signal ends this process while the command runs.
    let signals = Signals::new(PASSED_ON.into_iter().filter(|signal| !is_ignored(*signal)));
    let child = match Command::new(program).args(args).spawn() {
        Ok(child) => child,
        Err(error) => {
            output::note(&format!("{}: {error}", program.to_string_lossy()));
            let code = if error.kind() == io::ErrorKind::NotFound { NOT_FOUND } else { NOT_STARTED };
            return Ended { code, summary: format!("The command could not be started: {error}.") };
        }
    };
    let living: Living = Arc::new(Mutex::new(pid(&child)));
    if let Ok(signals) = signals {
        let (living, after) = (living.clone(), after.clone());
        thread::spawn(move || pass_on(signals, &living, &after));
    }
    let_go();
    let status = wait(child, &living);
    let took = in_words(began.elapsed());
    match status {
        Ok(status) => match (status.code(), status.signal()) {
            (Some(code), _) => Ended { code, summary: format!("It took {took}.") },
            (None, signal) => {
                let signal = signal.unwrap_or_default();
                let summary = format!("Signal {signal} ended it after {took}.");
                Ended { code: SIGNALLED + signal, summary }
            }
        },
        Err(error) => {
            output::note(&format!("failed to wait for {}: {error}", program.to_string_lossy()));
            Ended { code: 1, summary: format!("Its end is not known: {error}.") }
        }
    }
}

fn pid(child: &Child) -> Option<Pid> {
    Pid::from_raw(i32::try_from(child.id()).ok()?)
}

/// Closes this process's ends of the command's input and output. Otherwise a program that writes to a command that has closed its
/// input would wait for ever, and one that reads its output would not see the end.
fn let_go() {
    if let Ok(null) = File::options().read(true).write(true).open("/dev/null") {
        let _ = rustix::stdio::dup2_stdin(&null);
        let _ = rustix::stdio::dup2_stdout(&null);
    }
}

/// Waits for the end. The command stays a zombie until no signal can be sent to it any more.
fn wait(mut child: Child, living: &Living) -> io::Result<ExitStatus> {
    if let Some(pid) = pid(&child) {
        let until_end = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        while let Err(rustix::io::Errno::INTR) = rustix::process::waitid(WaitId::Pid(pid), until_end) {}
    }
    *living.lock().unwrap_or_else(PoisonError::into_inner) = None;
    child.wait()
}

fn pass_on(mut signals: Signals, living: &Living, after: &Sender<Option<Result<(), String>>>) {
    for number in signals.forever() {
        let living = living.lock().unwrap_or_else(PoisonError::into_inner);
        match *living {
            Some(pid) => {
                if is_from_terminal(number) {
                    continue;
                }
                if let Some(signal) = Signal::from_named_raw(number) {
                    let _ = rustix::process::kill_process(pid, signal);
                }
            }
            None => drop(after.send(None)),
        }
    }
}

/// Whether a terminal has sent this signal to all processes in its foreground, so that the command has it already. Many programs take a
/// second one as the wish to end at once.
fn is_from_terminal(signal: i32) -> bool {
    if !matches!(signal, SIGINT | SIGQUIT) {
        return false;
    }
    let Ok(terminal) = File::open("/dev/tty") else { return false };
    rustix::termios::tcgetpgrp(&terminal).is_ok_and(|foreground| foreground == rustix::process::getpgrp())
}

/// Whether this process ignores a signal, as under `nohup`. The command must ignore it, too, and it would not if this process handled it.
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    ignored >> (signal - 1) & 1 == 1
}

/// "0.4 s", "12 s", "5 min 3 s", "2 h 5 min"
fn in_words(took: Duration) -> String {
    let seconds = took.as_secs();
    match seconds {
        0..10 => format!("{:.1} s", took.as_secs_f64()),
        10..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3_600, seconds % 3_600 / 60),
    }
}

/// Sends the report. A server that is busy or starts again may take it a little later; the same report is stored once.
fn report(named: &str, body: &Value) -> Result<(), String> {
    let settings = Places::look().read().map_err(|error| error.to_string())?;
    let server = Server::new(&settings, PATIENCE);
    let key = Uuid::now_v7().to_string();
    let until = Instant::now() + REPORT;
    let once = || -> Result<(), Told> {
        let id = watched::id_on(&server, named)?;
        server.send_json(Change::Post, &format!("/watched/{id}/reports"), body, &key)?;
        Ok(())
    };
    loop {
        match once() {
            Ok(()) => return Ok(()),
            Err(told) => match told
                .again_after
                .filter(|pause| *pause < until.saturating_duration_since(Instant::now()))
            {
                Some(pause) => thread::sleep(pause),
                None => return Err(told.why),
            },
        }
    }
}

/// Why a report was not taken.
struct Told {
    why: String,
    /// After which pause the same call may succeed.
    again_after: Option<Duration>,
}

impl From<ServerError> for Told {
    fn from(error: ServerError) -> Self {
        let again_after = match &error {
            ServerError::Refused { status: 429, retry_after, .. } => {
                Some(retry_after.map_or(PAUSE, Duration::from_secs).max(PAUSE))
            }
            ServerError::Refused { status: ..500, .. } => None,
            ServerError::Refused { .. } | ServerError::Unreachable { .. } | ServerError::Slow { .. } => {
                Some(PAUSE)
            }
        };
        Self { why: error.to_string(), again_after }
    }
}

impl From<watched::Unnamed> for Told {
    fn from(unnamed: watched::Unnamed) -> Self {
        match unnamed {
            watched::Unnamed::Server(error) => error.into(),
            watched::Unnamed::Name(why) => Self { why, again_after: None },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_told_in_words() {
        for (millis, words) in
            [(0, "0.0 s"), (420, "0.4 s"), (12_900, "12 s"), (303_000, "5 min 3 s"), (7_500_000, "2 h 5 min")]
        {
            assert_eq!(in_words(Duration::from_millis(millis)), words);
        }
    }

    #[test]
    fn signals_are_known_by_their_numbers() {
        for signal in PASSED_ON {
            assert!(Signal::from_named_raw(signal).is_some(), "{signal}");
        }
    }
}
