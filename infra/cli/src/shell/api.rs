//! Calls of the API for a person who waits.

use std::cell::OnceCell;
use std::thread;
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::{Value, json};
use uuid::Uuid;

use super::screen::Screen;
use super::times;
use super::values::Fields;
use crate::Failure;
use crate::config::{Places, Settings};
use crate::output;
use crate::server::{Change, Patience, Server, ServerError, ServerResponse};

/// How many items one page has at most.
const PAGE: u32 = 200;

/// How often a call that is too early is repeated.
const TRIES: u32 = 3;

/// The longest time that a person waits for a limit of requests, in seconds. Limits are per minute.
const LONGEST_WAIT: u64 = 90;

/// The server of the settings.
pub struct Api {
    pub server: Server,
    pub settings: Settings,
    pub screen: Screen,
    zone: OnceCell<TimeZone>,
}

impl Api {
    /// # Errors
    /// If the configuration is invalid.
    pub fn open() -> Result<Self, Failure> {
        let settings = Places::look().read()?;
        output::warn(&settings.warnings);
        let server = Server::new(&settings, Patience::PERSON);
        Ok(Self { server, settings, screen: Screen::look(), zone: OnceCell::new() })
    }

    /// # Errors
    /// If the server refuses it, does not answer, or answers something that is not JSON.
    pub fn get(&self, path: &str, query: &[(&str, Option<&str>)]) -> Result<Value, Failure> {
        parsed(&self.get_bytes(path, query)?.body)
    }

    /// # Errors
    /// If the server refuses it or does not answer.
    pub fn get_bytes(&self, path: &str, query: &[(&str, Option<&str>)]) -> Result<ServerResponse, Failure> {
        Ok(patiently(|| self.server.get(path, query))?)
    }

    /// The first items of a list, as the API answers them, however many pages that takes.
    ///
    /// # Errors
    /// See [`Self::get`].
    pub fn list(&self, path: &str, query: &[(&str, Option<&str>)], limit: u32) -> Result<Value, Failure> {
        let mut all: Vec<Value> = Vec::new();
        let mut cursor: Option<String> = None;
        loop {
            let missing = limit.saturating_sub(u32::try_from(all.len()).unwrap_or(u32::MAX));
            let size = missing.clamp(1, PAGE).to_string();
            let mut asked = query.to_vec();
            asked.extend([("limit", Some(size.as_str())), ("cursor", cursor.as_deref())]);
            let mut page = self.get(path, &asked)?;
            let Some(Value::Array(items)) = page.get_mut("data").map(Value::take) else {
                return Err(unexpected());
            };
            all.extend(items);
            let next = page.some("next_cursor").map(str::to_owned);
            // A server that repeats a cursor would make this endless.
            if all.len() >= limit as usize || next.is_none() || next == cursor {
                page["data"] = Value::Array(all);
                return Ok(page);
            }
            cursor = next;
        }
    }

    /// Changes something. A limit of requests is waited for.
    ///
    /// # Errors
    /// See [`Self::get`].
    pub fn send(&self, change: Change, path: &str, body: &Value) -> Result<Value, Failure> {
        Ok(self.sent(change, path, body)?)
    }

    /// Like [`Self::send`], for a caller that looks at the error.
    ///
    /// # Errors
    /// See [`Self::get`].
    pub fn sent(&self, change: Change, path: &str, body: &Value) -> Result<Value, ServerError> {
        let key = Uuid::now_v7().to_string();
        let answer = patiently(|| self.server.send_json(change, path, body, &key))?;
        Ok(serde_json::from_slice(&answer.body).unwrap_or(json!({})))
    }

    /// The zone of the account. A key that may not read the account gets UTC.
    pub fn zone(&self) -> &TimeZone {
        self.zone.get_or_init(|| times::zone(&self.get("/account", &[]).unwrap_or_default()))
    }

    /// A time of the API for people.
    #[must_use]
    pub fn when(&self, text: &str) -> String {
        if text.is_empty() { String::new() } else { times::when(text, self.zone(), Timestamp::now()) }
    }

    /// The instant that a person has written, for the API.
    ///
    /// # Errors
    /// If it is no time.
    pub fn instant(&self, text: &str, option: &str, ends: bool) -> Result<String, Failure> {
        times::instant(text, option, self.zone(), Timestamp::now(), ends).map(|at| at.to_string())
    }

    /// Says that a list has more than was printed.
    pub fn note_more(&self, answer: &Value) {
        if answer.is("has_more") {
            output::note("there are more; `--limit N` shows more of them");
        }
    }
}

/// Makes a call again when the server says that it was too early.
///
/// # Errors
/// Those of the call.
pub fn patiently<T>(call: impl Fn() -> Result<T, ServerError>) -> Result<T, ServerError> {
    for _ in 1..TRIES {
        match call() {
            Err(ServerError::Refused {
                status: 429, retry_after: Some(seconds @ ..=LONGEST_WAIT), ..
            }) => {
                output::note(&format!("too many requests; waiting for {seconds} s"));
                thread::sleep(Duration::from_secs(seconds));
            }
            done => return done,
        }
    }
    call()
}

/// # Errors
/// If it is not JSON.
pub fn parsed(body: &[u8]) -> Result<Value, Failure> {
    serde_json::from_slice(body).map_err(|_| unexpected())
}

#[must_use]
pub fn unexpected() -> Failure {
    Failure::Message("the server's answer is not what this program expects".to_owned())
}
