//! Explains signals to a model that has no native tools.

use crate::models::ToolSpec;

/// The text that replaces `tools`. Empty if there is nothing to explain.
#[must_use]
pub fn explain(tools: &[ToolSpec]) -> String {
    let parts: Vec<String> = tools.iter().map(one).collect();
    if parts.is_empty() {
        return String::new();
    }
    format!(
        "To deliver something or to use a tool, write one of the signals below. Its first word must be at the very start \
         of a line. Write everything exactly as shown. What you say to the person goes before or after the signal.\n\n{}",
        parts.join("\n\n")
    )
}

fn one(tool: &ToolSpec) -> String {
    let ToolSpec { name, description, input_schema } = tool;
    match name.as_str() {
        "ready_to_create" => format!(
            "{description} The signal is the very first thing in your reply:\n\nREADY_TO_CREATE\n---\nTITLE: …\nGOAL: …\n\
             SUCCESS_CRITERIA: …\nTIMELINE: …\nINSTRUCTIONS: …\nFIRST_ACTION: {{…}}\nNEEDS: …\n\nThe braces stand for \
             `first_action` as JSON. Leave its line out if the person named no time, and NEEDS if nothing is needed. This schema \
             explains all parts: {input_schema}"
        ),
        "generate_asset" | "generate_actions" => format!(
            "{description}\n\n{}\n---\n{{…}}\n\nThe braces stand for JSON that follows this schema: {input_schema}",
            name.to_uppercase()
        ),
        _ => format!(
            "{description}\n\nUSE_TOOL: {name}\n{{…}}\n\nThe braces stand for JSON that follows this schema. Leave \
             them out if there is nothing to pass: {input_schema}"
        ),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::chats::signals::{Deliverable, Reply, SignalKind};

    fn tool(name: &str) -> ToolSpec {
        ToolSpec {
            name: name.into(),
            description: "Does it.".into(),
            input_schema: json!({"type": "object"}),
        }
    }

    /// What the text explains as a signal is also read as that signal.
    #[test]
    fn every_explained_signal_can_be_read() {
        assert_eq!(explain(&[]), "");
        for (name, kind) in [
            ("generate_asset", SignalKind::GenerateAsset),
            ("generate_actions", SignalKind::GenerateActions),
            ("ready_to_create", SignalKind::ReadyToCreate),
            ("query_actions", SignalKind::UseTool),
            ("change_action", SignalKind::UseTool),
            ("command_action", SignalKind::UseTool),
        ] {
            let text = explain(&[tool(name)]);
            let form = &text[text.find(&format!("\n\n{}", kind.keyword())).unwrap() + 2..];
            match &Reply::parse(form).deliverables[..] {
                [Deliverable::Invalid { signal, .. }] => assert_eq!(*signal, kind),
                [Deliverable::ReadyToCreate(draft)] => {
                    assert_eq!((kind, draft.name.as_str()), (SignalKind::ReadyToCreate, "…"));
                }
                other => panic!("{name}: {other:?}"),
            }
        }
    }
}
