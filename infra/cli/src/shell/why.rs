//! `why`: what happened at a due time.

use super::api::Api;
use super::names::{self, Kind};
use super::screen::{line, print_json};
use super::values::Fields;
use crate::Failure;
use crate::args::Why;
use crate::output;

/// Prints the explanation.
///
/// # Errors
/// If the server does not answer, or there is no such action.
pub fn run(api: &Api, args: &Why) -> Result<(), Failure> {
    let path = names::path(api, Kind::Action, &args.action)?;
    let at = args.at.as_deref().map(|text| api.instant(text, "--at", false)).transpose()?;
    let why = api.get(&format!("{path}/why"), &[("at", at.as_deref())])?;
    if args.json.json {
        return print_json(&why);
    }
    let mut text = format!("{}\n", line(why.text("sentence")));
    if let Some(told) = why["told"].some("sentence") {
        text.push_str(&format!("{}\n", line(told)));
    }
    if let Some(run) = why.some("run_id") {
        text.push_str(&format!("→ lamplighter runs {}\n", line(run)));
    }
    Ok(output::print(text)?)
}
