//! What a call leads to: an answer, or work of the caller.

/// What a call leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The answer.
    Text(String),
    /// The caller searches, with its own search.
    Grep(Grep),
    /// The caller checks the theme, or one file.
    ThemeCheck { path: Option<String> },
}

/// A search that the caller runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grep {
    pub pattern: String,
    /// `-F`: the pattern is text. Otherwise it is a regular expression.
    pub is_fixed: bool,
    /// `-i`
    pub ignore_case: bool,
    /// `-l`: only the files' names.
    pub names_only: bool,
    /// `-c`: only how many lines match in each file.
    pub count_only: bool,
    /// Files and folders. Empty for the whole theme.
    pub paths: Vec<String>,
}
