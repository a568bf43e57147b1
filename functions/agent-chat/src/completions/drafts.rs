//! The text of the drafts that a reply has made: what a person needs to decide about them.

use domain::chats::draft_lines::literal;
use domain::ids::ProposalId;
use shared::flows::actions::proposals::ProposalView;
use shared::request::ClientAddress;

/// How much of the drafts a reply shows, in characters, for all of its drafts together; and at least of each.
const MAX_SHOWN: usize = 6_000;
const LEAST_SHOWN: usize = 300;

/// What the drafts of a reply add to its text.
#[derive(Default)]
pub struct Drafts {
    pub text: String,
    pub ids: Vec<ProposalId>,
}

impl Drafts {
    pub fn of(proposals: &[ProposalView], address: &ClientAddress) -> Self {
        let Some(last) = proposals.len().checked_sub(1) else { return Self::default() };
        let most = (MAX_SHOWN / proposals.len()).max(LEAST_SHOWN);
        let mut text = String::new();
        for (at, draft) in proposals.iter().enumerate() {
            let whole = format!("{}\n\n{}", draft.title, body(draft));
            text.push_str(&format!("\n\n**Draft:**\n\n{}", literal(&shortened(&whole, most))));
            let at_address = address.at(&format!("/proposals/{}", draft.proposal_id));
            text.push_str(&format!("\n\n*The draft waits for your yes at {at_address}.*"));
            if at == last {
                let them = if last == 0 { "it" } else { "all of them" };
                text.push_str(&format!("\n\n*Answer \"yes\" to accept {them}.*"));
            }
        }
        Self { text, ids: proposals.iter().map(|draft| draft.proposal_id).collect() }
    }
}

fn body(draft: &ProposalView) -> String {
    let mut parts = Vec::new();
    if !draft.description.trim().is_empty() {
        parts.push(draft.description.trim().to_owned());
    }
    if let Some(content) = &draft.content {
        parts.push(content.trim().to_owned());
    }
    if let Some(config) = &draft.task_config {
        parts.push(format!("Instructions: {}", config.instructions.trim()));
        parts.push(format!("Expected output: {}", config.expected_output.trim()));
    }
    if let Some(schedule) = &draft.schedule {
        parts.push(format!("Schedule: {schedule}"));
    }
    if let Some(command) = draft.command {
        parts.push(format!("Command: {}", command.as_str()));
    }
    if let Some(change) = &draft.change {
        parts.push(format!("Changes: {}", serde_json::to_string(change).unwrap_or_default()));
    }
    parts.join("\n\n")
}

fn shortened(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…\n\n(shortened)", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_shortened_at_a_character() {
        assert_eq!(shortened("äöü", 3), "äöü");
        assert_eq!(shortened("äöü", 2), "äö…\n\n(shortened)");
    }
}
