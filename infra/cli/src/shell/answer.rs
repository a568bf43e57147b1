//! `answer`: the person's answer to a run that waits.

use serde_json::json;

use super::api::Api;
use super::runs;
use super::screen::{line, print_json};
use super::values::Fields;
use crate::Failure;
use crate::args::{Answer, CallAnswer};
use crate::output;
use crate::server::Change;
use crate::url::segment;

/// Sends the answer.
///
/// # Errors
/// If nothing waits, the hash is another one, or the server refuses it.
pub fn run(api: &Api, args: &Answer) -> Result<(), Failure> {
    let id = runs::id(api, &args.run)?;
    let run = api.get(&format!("/runs/{}", segment(&id)), &[])?;
    let Some(card) = run.items("cards").iter().find(|card| card.text("call_id") == args.call) else {
        return Err(Failure::Message(format!("the run {id} has no call `{}`", args.call)));
    };
    let hash = card.text("hash");
    if args.hash.as_deref().is_some_and(|seen| seen != hash) {
        return Err(Failure::Message(format!(
            "not answered: the call has changed, its hash is {}",
            line(hash)
        )));
    }
    let call = format!("/runs/{}/calls/{}", segment(&id), segment(&args.call));
    let (path, body, told) = match args.answer {
        CallAnswer::Yes => ("approve", json!({ "hash": hash }), "Approved"),
        CallAnswer::No => match &args.reason {
            Some(reason) => ("reject", json!({ "reason": reason }), "Rejected"),
            None => ("reject", json!({}), "Rejected"),
        },
        CallAnswer::Happened => ("resolve", json!({ "outcome": "happened" }), "Noted"),
        CallAnswer::NotHappened => ("resolve", json!({ "outcome": "not_happened" }), "Noted"),
    };
    let answered = api.send(Change::Post, &format!("{call}/{path}"), &body)?;
    if args.json.json {
        return print_json(&answered);
    }
    Ok(output::print(format!(
        "{told}: {}. The run goes on when everything is answered.\n",
        line(card.text("tool"))
    ))?)
}
