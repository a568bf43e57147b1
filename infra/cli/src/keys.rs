//! `lamplighter keys`: makes, lists and revokes the API keys of the person's account.
//!
//! This needs a key with the scope `admin`, or a local server without authentication. The first key of a server comes from
//! the server itself: `cargo run -- api-key` on one machine, the account function in AWS.

use std::io;

use serde::Deserialize;
use serde_json::json;

use crate::Failure;
use crate::args::Keys;
use crate::output::{self, escaped};
use crate::server::{Server, ServerError};
use crate::shell::api::Api;
use crate::url::segment;

const PATH: &str = "/account/api-keys";

/// The largest page of the list.
const PAGE: &str = "200";

#[derive(Deserialize)]
struct Created {
    #[serde(flatten)]
    key: Key,
    api_key: String,
}

#[derive(Deserialize)]
struct Key {
    key_id: String,
    name: String,
    created_at: String,
    expires_at: Option<String>,
    scopes: Vec<String>,
    last_used: Option<String>,
}

#[derive(Deserialize)]
struct Page {
    data: Vec<Key>,
    next_cursor: Option<String>,
}

/// Makes, lists or revokes keys.
///
/// # Errors
/// If the server refuses it or does not answer.
pub fn run(keys: &Keys) -> Result<(), Failure> {
    let api = Api::open()?;
    let done = match keys {
        Keys::List => list(&api),
        Keys::Create { name, scopes, days } => create(&api, name, scopes.as_deref(), *days),
        Keys::Revoke { key_id } => revoke(&api.server, key_id),
    };
    done.map_err(|failure| match failure {
        KeysError::Server(error) if error.status() == Some(401) => Failure::Message(format!(
            "{error}; set LAMPLIGHTER_API_KEY to a key with the scope admin\n\
             The first key of a server: stop it, and run `cargo run -- api-key` in its checkout. docs/operations.md has the way in AWS"
        )),
        KeysError::Server(error) => error.into(),
        KeysError::Lost(error) => Failure::Message(format!(
            "{error}; if `lamplighter keys list` shows a new key, revoke it, because nobody knows it"
        )),
        KeysError::Answer => {
            Failure::Message("the server's answer is not what this program expects".to_owned())
        }
        KeysError::Output(error) => error.into(),
    })
}

/// Why a command failed.
enum KeysError {
    Server(ServerError),
    /// The server may have created a key.
    Lost(ServerError),
    /// It quotes nothing, because the answer may contain a key.
    Answer,
    Output(io::Error),
}

impl From<ServerError> for KeysError {
    fn from(error: ServerError) -> Self {
        Self::Server(error)
    }
}

impl From<io::Error> for KeysError {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

fn revoke(server: &Server, key_id: &str) -> Result<(), KeysError> {
    server.delete(&format!("{PATH}/{}", segment(key_id)))?;
    Ok(output::print(format!("revoked {key_id}; it can still work for up to 60 seconds\n"))?)
}

/// Prints only the key to standard output, so that it can go to a file or a variable.
fn create(api: &Api, name: &str, scopes: Option<&[String]>, days: Option<u32>) -> Result<(), KeysError> {
    let mut body = json!({ "name": name });
    if let Some(scopes) = scopes {
        body["scopes"] = json!(scopes);
    }
    if let Some(days) = days {
        body["expires_in_days"] = json!(days);
    }
    let answer = api.server.post_json(PATH, &body).map_err(|error| match error {
        ServerError::Slow { .. } => KeysError::Lost(error),
        _ => KeysError::Server(error),
    })?;
    let Created { key, api_key } = parse(&answer.body)?;
    output::print(format!("{}\n", escaped(&api_key)))?;
    let until = key.expires_at.map_or_else(|| "it is revoked".to_owned(), |at| api.when(&at));
    output::note(&format!(
        "this is the key `{}` ({}) with the scopes {}, valid until {until}. It is shown only once",
        key.name,
        key.key_id,
        key.scopes.join(", "),
    ));
    Ok(())
}

fn list(api: &Api) -> Result<(), KeysError> {
    let mut cursor: Option<String> = None;
    let mut found = false;
    loop {
        let answer = api.server.get(PATH, &[("limit", Some(PAGE)), ("cursor", cursor.as_deref())])?;
        let page: Page = parse(&answer.body)?;
        for Key { key_id, name, created_at, expires_at, scopes, last_used } in &page.data {
            found = true;
            let created = api.when(created_at);
            let used = last_used.as_deref().map_or_else(|| "never".to_owned(), |at| api.when(at));
            let until = expires_at.as_deref().map(|at| format!(", expires {}", api.when(at)));
            let (until, scopes) = (until.unwrap_or_default(), scopes.join(","));
            let line = format!("{key_id}  {scopes}  created {created}{until}, last used {used}  {name}");
            output::print(format!("{}\n", escaped(&line)))?;
        }
        // A server that repeats a cursor would make this endless.
        if page.next_cursor.is_none() || page.next_cursor == cursor {
            break;
        }
        cursor = page.next_cursor;
    }
    if !found {
        output::note("there is no API key yet");
    }
    Ok(())
}

fn parse<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, KeysError> {
    serde_json::from_slice(body).map_err(|_| KeysError::Answer)
}
