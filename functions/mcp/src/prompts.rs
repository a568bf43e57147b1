//! One prompt for each mode.

use domain::context::Mode;
use rmcp::ErrorData;
use rmcp::model::{GetPromptResult, JsonObject, Prompt, PromptArgument, PromptMessage, Role};

struct ModePrompt {
    mode: Mode,
    name: &'static str,
    title: &'static str,
    description: &'static str,
    /// What the assistant is to do beside calling `parse_mode` and `update_context`.
    work: &'static str,
}

const PROMPTS: [ModePrompt; 4] = [
    ModePrompt {
        mode: Mode::Plan,
        name: "plan",
        title: "Plan",
        description: "Plan a task, and begin its context document.",
        work: "Plan the task; change no files. Record each decision with its reason, and which agent should act.",
    },
    ModePrompt {
        mode: Mode::Act,
        name: "act",
        title: "Act",
        description: "Carry out what was planned.",
        work: "Carry out the plan in the context document. Keep its decisions; where one turns out wrong, record the new one.",
    },
    ModePrompt {
        mode: Mode::Eval,
        name: "eval",
        title: "Evaluate",
        description: "Evaluate what was done against what was planned.",
        work: "Evaluate what was done against the plan in the context document; change no files. Record each finding with the place it is at, and what you recommend.",
    },
    ModePrompt {
        mode: Mode::Auto,
        name: "auto",
        title: "Plan, act and evaluate",
        description: "Plan, act and evaluate in rounds, without asking in between.",
        work: "Plan, act and evaluate in rounds until no important finding is left, at most as often as autoConfig.maxIterations says. When you are done, set the status of the AUTO section to completed.",
    },
];

/// The prompts there are.
pub fn all() -> Vec<Prompt> {
    let prompt = |prompt: &ModePrompt| {
        let task = PromptArgument::new("task")
            .with_title("Task")
            .with_description("What it is about, in your own words.")
            .with_required(begins(prompt.mode));
        Prompt::new(prompt.name, Some(prompt.description), Some(vec![task])).with_title(prompt.title)
    };
    PROMPTS.iter().map(prompt).collect()
}

/// What acting and evaluating is about stands in the document.
fn begins(mode: Mode) -> bool {
    matches!(mode, Mode::Plan | Mode::Auto)
}

/// A prompt, filled in.
///
/// # Errors
/// When there is no such prompt, or it lacks its task.
pub fn get(name: &str, arguments: Option<&JsonObject>) -> Result<GetPromptResult, ErrorData> {
    let prompt = PROMPTS
        .iter()
        .find(|prompt| prompt.name == name)
        .ok_or_else(|| ErrorData::invalid_params(format!("there is no prompt `{name}`"), None))?;
    let task = arguments.and_then(|arguments| arguments.get("task")?.as_str()).unwrap_or_default().trim();
    if task.is_empty() && begins(prompt.mode) {
        return Err(ErrorData::invalid_params("the argument `task` is missing", None));
    }
    let asked = format!("{} {task}", prompt.mode);
    let text = format!(
        "{asked}\n\nFirst call parse_mode with exactly this prompt: \"{}\"\nThen: {}\nBefore you end, do what mandatoryAction says.",
        asked.trim_end(),
        prompt.work
    );
    Ok(GetPromptResult::new(vec![PromptMessage::new_text(Role::User, text)])
        .with_description(prompt.description))
}
