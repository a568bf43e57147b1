//! A rehearsal: a run of an action before a person approves it. It reads as a real run would. What it would change is recorded and
//! not done.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::actions::http_call::HttpCall;
use crate::actions::input::MOST_USES;
use crate::agent_loop::{Call, Purpose, Step};
use crate::models::{ProviderTool, Usage};
use crate::tools::{self, LOOP, THEME, ToolCall};
use crate::{assets::NewAsset, chats::signals::Deliverable};

/// How much of an output a rehearsal keeps, in bytes, and how much of all outputs together.
const MAX_OUTPUT: usize = 20_000;
const MAX_OUTPUTS: usize = 60_000;

/// How many effects it lists.
const MAX_EFFECTS: usize = 20;

/// The longest argument of an effect that is shown, in bytes.
const MAX_ARGUMENTS: usize = 2_000;

/// A rehearsal, as the record of its run keeps it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rehearsal {
    /// The hash of what is rehearsed. If the action or its agent changes meanwhile, the rehearsal fails.
    pub hash: String,
    /// The tools of the model's provider that it may use, and how often.
    #[serde(default)]
    pub provider_tools: BTreeMap<ProviderTool, u32>,
    /// What it has shown. `None` until it has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shown: Option<Rehearsed>,
}

/// What a rehearsal has shown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Rehearsed {
    /// How often it called each tool.
    #[schema(example = json!({"query_assets": 2, "save_output": 1}))]
    pub used: BTreeMap<String, u32>,
    /// What a real run would have done. At most 20. For a call that acts outside the platform, it would have waited for a person's yes.
    pub effects: Vec<NotDone>,
    /// The outputs that a real run would have saved.
    pub outputs: Vec<RehearsedOutput>,
    /// The quality of the outputs as judged by the check, 0 to 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<u8>,
    /// The smallest grant with which a run can do the same.
    pub grants: Vec<String>,
    /// How often it used each tool of its model's provider.
    pub max_uses: BTreeMap<ProviderTool, u32>,
    /// The `approval_hash` of the action with this grant. Send it to `approve`, with the id of the rehearsal.
    pub approval_hash: String,
}

/// Something that a rehearsal has not done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NotDone {
    /// The tool.
    #[schema(example = "generate_actions")]
    pub tool: String,
    /// Its arguments as JSON, at most 2,000 bytes.
    pub arguments: String,
}

/// An output of a rehearsal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RehearsedOutput {
    pub title: String,
    /// Its beginning: at most 20,000 bytes, and 60,000 bytes of all outputs together.
    pub content: String,
    /// The size of all of it, in bytes.
    pub bytes: u64,
}

impl Rehearsed {
    /// The request that a run of an action with this call would send. A run has a key of its own.
    #[must_use]
    pub fn of_call(call: &HttpCall, key: &str) -> Self {
        let mut headers: BTreeMap<String, String> = call.own_headers().into_iter().collect();
        headers.insert("idempotency-key".to_owned(), key.to_owned());
        let request = json!({
            "method": call.method, "url": call.url, "headers": headers, "secret_headers": call.secret_headers,
            "sign_with": call.sign_with, "body": call.body,
            "expect_report_within_minutes": call.expect_report_within_minutes,
        });
        let request = request.to_string();
        let arguments = request[..request.floor_char_boundary(MAX_ARGUMENTS)].to_owned();
        Self { effects: vec![NotDone { tool: "call".to_owned(), arguments }], ..Self::default() }
    }

    /// What these steps have shown. `outside` are the names of the tools that act outside the platform.
    #[must_use]
    pub fn of(steps: &[Step], outputs: &[NewAsset], usage: &Usage, outside: &[&str]) -> Self {
        let mut shown = Self::default();
        let mut grants = BTreeSet::new();
        let work = steps.iter().filter(|step| step.purpose == Purpose::Work);
        for (call, result) in work.flat_map(|step| step.reply.calls.iter().zip(&step.results)) {
            if result.is_error || call.invalid.is_some() {
                continue;
            }
            *shown.used.entry(call.name.clone()).or_default() += 1;
            let tool = tools::find(LOOP, &call.name).or_else(|| tools::find(THEME, &call.name));
            let is_outside = outside.contains(&call.name.as_str());
            if let Some(tool) = tool.filter(|tool| tool.needs_grant()) {
                grants.insert(tool.grant().to_owned());
            }
            let is_effect = is_outside
                || tool.is_some_and(|tool| tool.granted_as.is_some())
                || matches!(
                    call.name.as_str(),
                    "generate_actions" | "note" | "ask_person" | "sync_documentation"
                );
            if is_effect && shown.effects.len() < MAX_EFFECTS {
                let arguments = call.input.to_string();
                let arguments = arguments[..arguments.floor_char_boundary(MAX_ARGUMENTS)].to_owned();
                shown.effects.push(NotDone { tool: call.name.clone(), arguments });
            }
        }
        let mut left = MAX_OUTPUTS;
        for NewAsset { title, content, .. } in outputs {
            let kept = content.floor_char_boundary(MAX_OUTPUT.min(left));
            left -= kept;
            let (title, content, bytes) = (title.clone(), content[..kept].to_owned(), content.len() as u64);
            shown.outputs.push(RehearsedOutput { title, content, bytes });
        }
        for (tool, uses) in
            [(ProviderTool::WebSearch, usage.web_searches), (ProviderTool::CodeExecution, usage.code_runs)]
        {
            if uses > 0 {
                grants.insert(tool.name().to_owned());
                shown.max_uses.insert(tool, u32::try_from(uses).unwrap_or(u32::MAX).min(MOST_USES));
            }
        }
        shown.grants = grants.into_iter().collect();
        shown
    }
}

/// Adds an output to those of a run: one with the title of an earlier one replaces it.
pub fn save(outputs: &mut Vec<NewAsset>, output: NewAsset) {
    match outputs.iter_mut().find(|known| known.title.eq_ignore_ascii_case(&output.title)) {
        Some(known) => *known = output,
        None => outputs.push(output),
    }
}

/// The outputs that these steps have saved.
#[must_use]
pub fn outputs(steps: &[Step]) -> Vec<NewAsset> {
    let mut outputs = Vec::new();
    for (call, result) in steps.iter().flat_map(|step| step.reply.calls.iter().zip(&step.results)) {
        if let Some(output) = output(call).filter(|_| !result.is_error) {
            save(&mut outputs, output);
        }
    }
    outputs
}

fn output(call: &Call) -> Option<NewAsset> {
    let tool = tools::find(LOOP, &call.name)?;
    let input: &Value = &call.input;
    match ToolCall::parse(tool, input).ok()? {
        ToolCall::SaveOutput(output) | ToolCall::Deliver(Deliverable::Asset(output)) => {
            Some(NewAsset { title: output.title.trim().to_owned(), ..output })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {

    use super::*;
    use crate::agent_loop::{CallResult, Reply};

    fn step(calls: Vec<(&str, Value, bool)>) -> Step {
        let mut step = Step { purpose: Purpose::Work, reply: Reply::default(), results: Vec::new() };
        for (name, input, is_error) in calls {
            let (id, invalid) = (None, None);
            step.reply.calls.push(Call { id, name: name.to_owned(), input, invalid, implied: false });
            step.results.push(if is_error { CallResult::refused("no") } else { CallResult::told("yes") });
        }
        step
    }

    #[test]
    fn the_smallest_grant_names_what_was_used() {
        let save = |content: &str| json!({"title": "Report", "content": content});
        let steps = [
            step(vec![("query_assets", json!({}), false), ("send_mail", json!({"to": "a@b.c"}), false)]),
            step(vec![("save_output", save("first"), false), ("generate_actions", json!({}), false)]),
            step(vec![
                ("save_output", save(&"é".repeat(20_000)), false),
                ("note", json!({"text": "x"}), false),
            ]),
        ];
        let usage = Usage { web_searches: 3, ..Usage::default() };
        let outputs = outputs(&steps);
        let shown = Rehearsed::of(&steps, &outputs, &usage, &["send_mail", "other"]);
        assert_eq!(shown.grants, ["generate_actions", "web_search"]);
        assert_eq!(shown.max_uses, [(ProviderTool::WebSearch, 3)].into());
        let effects: Vec<&str> = shown.effects.iter().map(|effect| effect.tool.as_str()).collect();
        assert_eq!(effects, ["send_mail", "generate_actions", "note"]);
        let [output] = shown.outputs.try_into().unwrap();
        assert_eq!((output.bytes, output.content.len()), (40_000, MAX_OUTPUT));
        assert_eq!(shown.used["save_output"], 2);
    }

    #[test]
    fn what_is_kept_fits_into_the_record() {
        let call =
            |n: usize| ("save_output", json!({"title": n.to_string(), "content": "x".repeat(30_000)}), false);
        let note = ("note", json!({"text": "y".repeat(100_000)}), false);
        let steps = [step((0..20).map(call).collect()), step(vec![note; 40])];
        let shown = Rehearsed::of(&steps, &outputs(&steps), &Usage::default(), &[]);
        assert_eq!((shown.outputs.len(), shown.effects.len()), (20, MAX_EFFECTS));
        assert!(json!(shown).to_string().len() < 120_000);
    }
}
