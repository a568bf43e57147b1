//! One prompt for each mode.

use domain::context::Mode;
use rmcp::ErrorData;
use rmcp::model::{GetPromptResult, JsonObject, Prompt, PromptArgument, PromptMessage, Role};

struct ModePrompt {
    mode: Mode,
    name: &'static str,
    title: &'static str,
    description: &'static str,
    /// What the assistant must do between `parse_mode` and `update_context`.
    work: &'static str,
}

const PROMPTS: [ModePrompt; 4] = [
    ModePrompt {
        mode: Mode::Plan,
        name: "plan",
        title: "Plan",
        description: "Plan a task and start its context document.",
        work: "Plan the task. Do not change files. Record each decision with its reason, and the agent that should carry out the plan.",
    },
    ModePrompt {
        mode: Mode::Act,
        name: "act",
        title: "Act",
        description: "Carry out the plan.",
        work: "Carry out the plan in the context document. Follow its decisions. If a decision turns out to be wrong, record the new one.",
    },
    ModePrompt {
        mode: Mode::Eval,
        name: "eval",
        title: "Evaluate",
        description: "Compare what was done with the plan.",
        work: "Compare what was done with the plan in the context document. Do not change files. Record each finding with its file and line, and what you recommend.",
    },
    ModePrompt {
        mode: Mode::Auto,
        name: "auto",
        title: "Plan, act and evaluate",
        description: "Plan, act and evaluate in rounds, without asking the user in between.",
        work: "Plan, act and evaluate in rounds until no important finding is left. Make at most autoConfig.maxIterations rounds. When you are done, set the status of the AUTO section to completed.",
    },
];

/// All prompts.
pub fn all() -> Vec<Prompt> {
    let prompt = |prompt: &ModePrompt| {
        let task = PromptArgument::new("task")
            .with_description("The task, in your own words.")
            .with_required(needs_task(prompt.mode));
        Prompt::new(prompt.name, Some(prompt.description), Some(vec![task])).with_title(prompt.title)
    };
    PROMPTS.iter().map(prompt).collect()
}

/// Whether a prompt of this mode starts a document and so needs a task. The other modes take the task from the document.
fn needs_task(mode: Mode) -> bool {
    matches!(mode, Mode::Plan | Mode::Auto)
}

/// A prompt with its task.
///
/// # Errors
/// If there is no such prompt, or the task is missing.
pub fn get(name: &str, arguments: Option<&JsonObject>) -> Result<GetPromptResult, ErrorData> {
    let prompt = PROMPTS
        .iter()
        .find(|prompt| prompt.name == name)
        .ok_or_else(|| ErrorData::invalid_params(format!("there is no prompt `{name}`"), None))?;
    let task = arguments.and_then(|arguments| arguments.get("task")?.as_str()).unwrap_or_default().trim();
    if task.is_empty() && needs_task(prompt.mode) {
        return Err(ErrorData::invalid_params("the argument `task` is missing", None));
    }
    let asked = format!("{} {task}", prompt.mode);
    let text = format!(
        "{asked}\n\nFirst call parse_mode with exactly this prompt: \"{}\"\nThen: {}\nBefore you end, make the call in mandatoryAction.",
        asked.trim_end(),
        prompt.work
    );
    Ok(GetPromptResult::new(vec![PromptMessage::new_text(Role::User, text)])
        .with_description(prompt.description))
}
