//! Texts with which the platform answers a model in the place of a person. They are stored with the conversation, and are recognised there,
//! because nobody said them.

const REPAIR: (&str, &str) =
    ("What you tried to deliver could not be read: ", ". Deliver it again, complete and correct.");

/// Asks the model to repeat a deliverable that could not be read.
#[must_use]
pub fn repair(reason: &str) -> String {
    let (before, after) = REPAIR;
    format!("{before}{reason}{after}")
}

const RESULT_OF: &str = "Result of ";

/// What the model is told about a signal that asked for a tool.
#[must_use]
pub fn result_of(tool: &str, result: &str) -> String {
    format!("{RESULT_OF}{tool}:\n{result}")
}

/// Whether a text has the form of [`repair`] or [`result_of`].
#[must_use]
pub fn is_told_by_platform(text: &str) -> bool {
    let (before, after) = REPAIR;
    let is_name = |name: &str| {
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte))
    };
    let result = text.strip_prefix(RESULT_OF).and_then(|rest| rest.split_once(":\n"));
    text.strip_prefix(before).is_some_and(|rest| rest.contains(after))
        || result.is_some_and(|(name, _)| is_name(name))
}
