//! `log --flush`: sends what hooks could not send.

use std::io;
use std::thread;
use std::time::{Duration, Instant};

use crate::Failure;
use crate::config::{self, Places, Settings};
use crate::delivery::{self, End, Limit};
use crate::output;
use crate::server::{Patience, Server, ServerError};
use crate::spool::{Counts, Spool, private_dir};

/// How long a person waits for another process that is sending.
const LOCK: Duration = Duration::from_secs(30);

/// How long a reader waits until earlier payloads are sent.
const BEFORE_READING: Duration = Duration::from_secs(2);

/// The background process retries after these pauses, in seconds. Together they are longer than a server keeps the in-flight mark
/// of a request whose client has disconnected.
const PAUSES: [u64; 5] = [0, 1, 5, 20, 60];

/// Sends everything and prints the result.
///
/// # Errors
/// If payloads remain, and why.
pub fn run() -> Result<(), Failure> {
    let places = Places::look();
    let settings = places.read()?;
    output::warn(&settings.warnings);
    let state = config::state_dir().ok_or_else(|| Failure::Message("there is no home folder".to_owned()))?;
    let spool = Spool::new(&state, &places.decider());
    private_dir(spool.dir())?;
    let server = Server::new(&settings, Patience::PERSON);
    let limit = Limit { lock: LOCK, ..Limit::NONE };
    tidy(&spool)?;
    let report = delivery::drain(&spool, &server, settings.project.as_ref(), limit)?;
    let counts = spool.counts()?;
    output::print(format!("sent {}, waiting {}\n", report.sent, counts.waiting))?;
    output::warn(&remarks(&spool, counts));
    for (decider, waiting) in spool.others() {
        output::warn(&[format!("{waiting} more wait for the server that is named by {decider}")]);
    }
    match report.end {
        End::Failed(error) => Err(error.into()),
        End::Busy => Err(Failure::Message("another process is still sending".to_owned())),
        End::Empty | End::Limit => Ok(()),
    }
}

/// Like [`run`], without output and with longer retries. It runs in a process of its own.
///
/// # Errors
/// Nobody reads them.
pub fn background() -> Result<(), Failure> {
    let places = Places::look();
    let Some(spool) = spool(&places) else { return Ok(()) };
    let settings = places.read()?;
    let server = Server::new(&settings, Patience::PERSON);
    tidy(&spool)?;
    for pause in PAUSES {
        thread::sleep(Duration::from_secs(pause));
        let report = delivery::drain(&spool, &server, settings.project.as_ref(), Limit::NONE)?;
        let again = match report.end {
            End::Empty | End::Busy | End::Limit => false,
            End::Failed(error) => error.status().is_none_or(|status| matches!(status, 409 | 429 | 500..)),
        };
        if !again {
            break;
        }
    }
    Ok(())
}

/// Sends the payloads in the spool before a log is read, so that the reader sees them. Returns warnings about what is still
/// missing.
pub fn before_reading(places: &Places, settings: &Settings, server: &Server) -> Vec<String> {
    let Some(spool) = spool(places) else { return Vec::new() };
    if spool.waiting().is_ok_and(|waiting| !waiting.is_empty()) {
        let limit =
            Limit { until: Some(Instant::now() + BEFORE_READING), lock: BEFORE_READING, records: usize::MAX };
        // If this fails, the reading call fails too and reports it.
        drop(delivery::drain(&spool, server, settings.project.as_ref(), limit));
    }
    spool.counts().map(|counts| remarks(&spool, counts)).unwrap_or_default()
}

/// Cleans the spool. Hooks have no time for it.
fn tidy(spool: &Spool) -> io::Result<()> {
    spool.lock()?.map_or(Ok(()), |lock| spool.tidy(&lock))
}

/// The spool of the configured server, if anything was ever put there.
pub fn spool(places: &Places) -> Option<Spool> {
    let spool = Spool::new(&config::state_dir()?, &places.decider());
    spool.dir().exists().then_some(spool)
}

/// The remarks about the spool for a person.
pub fn remarks(spool: &Spool, counts: Counts) -> Vec<String> {
    let Counts { waiting, rejected, lost } = counts;
    let dir = spool.dir().display();
    let mut remarks = Vec::new();
    if waiting > 0 {
        remarks
            .push(format!("{waiting} hook payloads wait to be sent; `lamplighter log --flush` tries again"));
    }
    if rejected > 0 {
        remarks.push(format!(
            "{rejected} hook payloads will never be accepted; {dir}/rejected has them and the reasons"
        ));
    }
    if lost > 0 {
        remarks.push(format!(
            "{lost} hook payloads were lost; {dir}/lost says when and why (delete it when read)"
        ));
    }
    remarks
}

impl From<ServerError> for Failure {
    fn from(error: ServerError) -> Self {
        Self::Message(match error.status() {
            Some(401 | 403) => {
                format!("{error}; set LAMPLIGHTER_API_KEY, or api_key_file in a configuration file")
            }
            None => format!(
                "{error}; is it running? (LAMPLIGHTER_URL says where)\n\
                 `cargo run` in a checkout of Lamplighter starts one; `lamplighter status` says which server is used, and why"
            ),
            Some(_) => error.to_string(),
        })
    }
}
