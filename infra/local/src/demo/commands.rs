//! What no model here has a tool for: pausing, deleting, approving. The demo says so, and tells the person which request does it.

use super::intent::words;

/// A command that a person gives to the platform.
struct Command {
    /// The verbs that ask for it, as the first words of a sentence.
    verbs: &'static [&'static str],
    /// "no tool that …".
    does: &'static str,
    /// The request for an action. `{id}` is the action.
    action: &'static str,
    /// The request for the agent itself, if there is one.
    agent: Option<&'static str>,
    /// What the person should know, too.
    note: &'static str,
}

static COMMANDS: [Command; 9] = [
    Command {
        verbs: &["pause", "suspend", "halt", "disable", "turn off", "switch off", "snooze"],
        does: "pauses work",
        action: "POST /actions/{id}/pause",
        agent: Some("PATCH /agents/{agent_id} with {\"status\": \"paused\"}"),
        note: "POST /actions/{id}/resume continues it.",
    },
    Command {
        verbs: &["resume", "continue", "unpause", "restart"],
        does: "continues paused work",
        action: "POST /actions/{id}/resume",
        agent: Some("PATCH /agents/{agent_id} with {\"status\": \"active\"}"),
        note: "",
    },
    Command {
        verbs: &["delete", "remove", "erase", "get rid", "drop", "clear"],
        does: "deletes anything",
        action: "DELETE /actions/{id}",
        agent: Some("DELETE /agents/{agent_id}"),
        note: "A deletion can't be undone.",
    },
    Command {
        verbs: &[
            "stop",
            "cancel",
            "unschedule",
            "abort",
            "end",
            "unsubscribe",
            "don't",
            "dont",
            "do not",
            "no more",
            "never",
            "quit",
        ],
        does: "stops or cancels work",
        action: "POST /actions/{id}/cancel",
        agent: Some("PATCH /agents/{agent_id} with {\"status\": \"paused\"}"),
        note: "It cancels the run that is live, or takes the action off its schedule.",
    },
    Command {
        verbs: &["approve", "activate", "enable"],
        does: "approves work",
        action: "POST /actions/{id}/approve with the approval_hash that GET /actions/{id} shows",
        agent: None,
        note: "",
    },
    Command {
        verbs: &["define", "accept", "confirm"],
        does: "accepts a proposal",
        action: "POST /agents/{agent_id}/actions with {\"proposal_id\": \"prp_…\"}",
        agent: None,
        note: "The card of the proposal has a button for it.",
    },
    Command {
        verbs: &["dismiss"],
        does: "dismisses work",
        action: "POST /actions/{id}/dismiss",
        agent: None,
        note: "A dismissed action never runs again.",
    },
    Command {
        verbs: &["run", "start", "execute", "trigger"],
        does: "starts work",
        action: "POST /actions/{id}/run",
        agent: None,
        note: "The action must be approved.",
    },
    Command {
        verbs: &["change", "edit", "rename", "reschedule", "postpone", "move"],
        does: "changes an action in this conversation",
        action: "PATCH /actions/{id}",
        agent: Some("PATCH /agents/{agent_id}"),
        note: "Or say what you want in the conversation about the action: POST /actions/{id}/messages.",
    },
];

/// Words before the verb that ask politely.
const POLITE: [&str; 26] = [
    "please", "can", "could", "would", "will", "you", "i", "i'd", "we", "want", "wanna", "need", "like",
    "to", "now", "hey", "hi", "hello", "ok", "okay", "just", "should", "let's", "and", "then", "also",
];

/// Where a sentence is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    Chat,
    /// The conversation about one action, where changes are proposed.
    About,
}

/// The answer to a sentence that begins with a command. `rest`: its words without times; `view`: what the platform shows;
/// `names_time`: "start a report every Monday" is new work.
pub fn answer(rest: &[String], view: &str, place: Place, names_time: bool) -> Option<String> {
    let said: Vec<&str> = rest.iter().map(String::as_str).skip_while(|word| POLITE.contains(word)).collect();
    let command = COMMANDS.iter().find(|command| command.verbs.iter().any(|verb| begins(&said, verb)))?;
    let is_new_work = match command.verbs[0] {
        "run" => names_time,
        "change" => place == Place::About,
        // "Don't forget to write to Ann."
        _ => said.get(1) == Some(&"forget") || said.get(2) == Some(&"forget"),
    };
    if is_new_work {
        return None;
    }
    let no_tool = format!("I have no tool that {}, so nothing has changed.", command.does);
    let has = |names: &[&str]| said.iter().any(|word| names.contains(word));
    if let Some(request) = command.agent.filter(|_| has(&["agent", "yourself"])) {
        return Some(format!("{no_tool} You can do it in the console, or with this request: {request}."));
    }
    if command.verbs[0] == "delete" && has(&["asset", "assets", "document", "documents"]) {
        return Some(format!(
            "{no_tool} You can do it in the console, or with this request: DELETE /assets/{{asset_id}}."
        ));
    }
    let mut actions = actions(view);
    if place == Place::About {
        // The first line names the action. What follows is its content.
        actions.truncate(1);
    }
    let meant: Vec<&(&str, &str)> = match &actions[..] {
        [_] if place == Place::About || has(&["it", "this", "that", "all", "everything"]) => {
            actions.iter().collect()
        }
        _ => actions.iter().filter(|(_, title)| is_about(title, &said)).collect(),
    };
    let (id, which) = match &meant[..] {
        [(id, title)] => (*id, format!(" for \"{title}\"")),
        _ => ("{action_id}", String::new()),
    };
    let request = command.action.replace("{id}", id);
    let mut text = format!("{no_tool} You can do it{which} in the console, or with this request: {request}.");
    if !command.note.is_empty() {
        text.push_str(&format!(" {}", command.note.replace("{id}", id)));
    }
    if meant.len() != 1 && !actions.is_empty() {
        let listed: Vec<String> =
            actions.iter().take(10).map(|(id, title)| format!("\n- {id}: {title}")).collect();
        text.push_str(&format!("\n\nThese are the newest actions:\n{}", listed.concat()));
    }
    Some(text)
}

/// Whether a sentence begins with a verb: "turn off it" and "turn it off" begin with "turn off".
fn begins(said: &[&str], verb: &str) -> bool {
    match verb.split_once(' ') {
        None => said.first() == Some(&verb),
        Some((first, second)) => {
            said.first() == Some(&first)
                && (said.get(1) == Some(&second) || second == "off" && said.last() == Some(&"off"))
        }
    }
}

/// The ids and titles of the actions in view.
fn actions(view: &str) -> Vec<(&str, &str)> {
    let lines =
        view.lines().filter_map(|line| line.strip_prefix("- ").or_else(|| line.strip_prefix("action: ")));
    let action = |line: &'_ str| line.starts_with("act_");
    lines
        .filter(|line| action(line))
        .filter_map(|line| {
            let (id, title) = line.split_once(" \"")?;
            Some((id, title.rsplit_once('"')?.0))
        })
        .collect()
}

/// Whether a sentence names one of the long words of a title.
fn is_about(title: &str, said: &[&str]) -> bool {
    let stem = |word: &str| word.trim_end_matches('s').to_owned();
    let title = words(title);
    title
        .iter()
        .filter(|word| word.chars().count() > 3)
        .any(|word| said.iter().any(|other| stem(other) == stem(word)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const VIEW: &str = "assets:\n- ast_1 \"Newsletter\" (3 bytes)\nactions:\n- act_1 \"Newsletter \"for\" shops\" scheduled, Every hour (UTC).\n\
                        - act_2 \"Price report\" defined, no schedule";

    fn told(said: &str, view: &str, place: Place) -> Option<String> {
        answer(&words(said), view, place, false)
    }

    #[test]
    fn a_command_is_answered_with_its_request() {
        for (said, request) in [
            (
                "pause the newsletter",
                "\"Newsletter \"for\" shops\" in the console, or with this request: POST /actions/act_1/pause.",
            ),
            ("Please pause the newsletters.", "POST /actions/act_1/pause."),
            ("Delete the newsletter", "DELETE /actions/act_1."),
            ("Can you delete the price report?", "DELETE /actions/act_2."),
            ("stop sending me the newsletter", "POST /actions/act_1/cancel."),
            ("I don't want the newsletter", "POST /actions/act_1/cancel."),
            ("cancel everything", "POST /actions/{action_id}/cancel."),
            ("Turn the newsletter off", "POST /actions/act_1/pause."),
            ("turn off the report", "POST /actions/act_2/pause."),
            ("resume the report", "POST /actions/act_2/resume."),
            (
                "approve the report",
                "POST /actions/act_2/approve with the approval_hash that GET /actions/act_2 shows.",
            ),
            ("Define it", "POST /agents/{agent_id}/actions with {\"proposal_id\": \"prp_…\"}."),
            ("run the report now", "POST /actions/act_2/run."),
            ("rename the report", "PATCH /actions/act_2."),
            ("dismiss it", "POST /actions/{action_id}/dismiss."),
            ("delete yourself", "DELETE /agents/{agent_id}."),
            ("pause this agent", "PATCH /agents/{agent_id} with {\"status\": \"paused\"}."),
            ("remove the document", "DELETE /assets/{asset_id}."),
        ] {
            let told = told(said, VIEW, Place::Chat).expect(said);
            assert!(told.starts_with("I have no tool that ") && told.contains(request), "{said}: {told}");
        }
        let told =
            |said: &str, place| super::tests::told(said, "action: act_7 \"News\"\nstate: scheduled", place);
        assert!(told("Stop", Place::About).unwrap().contains("POST /actions/act_7/cancel."));
        assert!(told("delete it", Place::Chat).unwrap().contains("DELETE /actions/act_7."));
        assert_eq!(told("Move it to Friday", Place::About), None);
    }

    #[test]
    fn other_sentences_are_no_commands() {
        for said in [
            "",
            "Write about how to delete files",
            "Remind me to cancel the gym",
            "Don't forget to write",
            "Do not forget me",
            "hello",
            "🦀",
        ] {
            assert_eq!(told(said, VIEW, Place::Chat), None, "{said}");
        }
        assert_eq!(answer(&words("start a report"), VIEW, Place::Chat, true), None);
    }
}
