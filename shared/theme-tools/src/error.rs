//! Why a tool does not answer.

/// Why a tool does not answer. The message is for the model that called it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ToolError {
    #[error("there is no tool `{0}` here")]
    Tool(String),
    /// An argument has the wrong type, is missing, or has an unknown name.
    #[error("the arguments of `{tool}` do not fit: {problem}")]
    Arguments { tool: &'static str, problem: String },
    /// An argument is out of its bounds.
    #[error("`{field}` {problem}")]
    Bounds { field: &'static str, problem: String },
    #[error("the theme has no file `{path}`{}", near_text(.near))]
    NoFile { path: String, near: Vec<String> },
    #[error("`{path}` is a {kind}, and {tool} reads {wanted}")]
    WrongKind { path: String, kind: &'static str, tool: &'static str, wanted: &'static str },
    #[error("the text of `{0}` is not loaded")]
    NotLoaded(String),
    #[error("{0}")]
    Command(String),
}

impl ToolError {
    pub(crate) fn bounds(field: &'static str, problem: impl Into<String>) -> Self {
        Self::Bounds { field, problem: problem.into() }
    }
}

fn near_text(near: &[String]) -> String {
    if near.is_empty() { String::new() } else { format!("; similar names: {}", near.join(", ")) }
}
