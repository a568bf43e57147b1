//! One call of a tool: its arguments, what it reads, and its answer.

use serde::de::DeserializeOwned;
use serde_json::Value;
use theme::ThemeIndex;
use theme::path::FileKind;

use crate::answer::{MAX_ANSWER, cut};
use crate::arguments::{
    Bounds, DependencyGraph, Performance, Placeholder, References, RenderingChain, RunCommand,
    SchemaSettings, SearchFiles, ThemeSetting, Variants, Visibility,
};
use crate::error::ToolError;
use crate::needs::Needs;
use crate::outcome::Outcome;
use crate::schemas::TOOLS;
use crate::tools::command::Command;
use crate::tools::{
    chain, command, dependencies, performance, placeholder, references, schema, search, setting, variants,
    visibility,
};
use crate::tree::Tree;

/// How many files without a text an answer names.
const MAX_UNREAD: usize = 5;

/// A call whose arguments are within their bounds.
#[derive(Clone, Debug, PartialEq)]
pub enum Call {
    DependencyGraph(DependencyGraph),
    References(References),
    RenderingChain(RenderingChain),
    SchemaSettings(SchemaSettings),
    ThemeSetting(ThemeSetting),
    Visibility(Visibility),
    Variants(Variants),
    Performance(Performance),
    Placeholder(Placeholder),
    Command(Command),
    SearchFiles(SearchFiles),
}

fn read<T: DeserializeOwned + Bounds>(tool: &'static str, arguments: Value) -> Result<T, ToolError> {
    let arguments = if arguments.is_null() { Value::Object(serde_json::Map::new()) } else { arguments };
    let read: T = serde_json::from_value(arguments).map_err(|problem| ToolError::Arguments {
        tool,
        problem: cut(&problem.to_string(), 500).to_owned(),
    })?;
    read.check()?;
    Ok(read)
}

impl Call {
    /// Reads the arguments of a tool.
    ///
    /// # Errors
    /// If the tool is not one of [`TOOLS`], or an argument is missing, unknown, of the wrong type or out of its bounds. For
    /// `run_command`, also if the command is not one of those that work.
    pub fn parse(tool: &str, arguments: Value) -> Result<Self, ToolError> {
        let known = TOOLS.iter().find(|known| known.name == tool).map(|known| known.name);
        let tool = known.ok_or_else(|| ToolError::Tool(cut(tool, 100).to_owned()))?;
        Ok(match tool {
            "get_dependency_graph" => Self::DependencyGraph(read(tool, arguments)?),
            "find_references" => Self::References(read(tool, arguments)?),
            "trace_rendering_chain" => Self::RenderingChain(read(tool, arguments)?),
            "get_schema_settings" => Self::SchemaSettings(read(tool, arguments)?),
            "check_theme_setting" => Self::ThemeSetting(read(tool, arguments)?),
            "diagnose_visibility" => Self::Visibility(read(tool, arguments)?),
            "analyze_variants" => Self::Variants(read(tool, arguments)?),
            "check_performance" => Self::Performance(read(tool, arguments)?),
            "generate_placeholder" => Self::Placeholder(read(tool, arguments)?),
            "search_files" => Self::SearchFiles(read(tool, arguments)?),
            _ => {
                let call: RunCommand = read(tool, arguments)?;
                Self::Command(command::parse(&call)?)
            }
        })
    }

    /// The texts that the call reads.
    #[must_use]
    pub fn needs(&self, index: &ThemeIndex) -> Needs {
        match self {
            Self::DependencyGraph(_) | Self::Placeholder(_) | Self::SearchFiles(_) => Needs::Nothing,
            Self::References(call) => references::needs(call, index),
            Self::RenderingChain(call) => chain::needs(call, index),
            Self::SchemaSettings(call) => schema::needs(call, index),
            Self::ThemeSetting(_) => setting::needs(index),
            Self::Visibility(_) => visibility::needs(index),
            Self::Variants(call) => variants::needs(call, index),
            Self::Performance(call) => performance::needs(call, index),
            Self::Command(command) => command.needs(index),
        }
    }

    /// Answers the call.
    ///
    /// # Errors
    /// If a file that the call names is not there, is of the wrong kind, or is not loaded.
    pub fn run(&self, tree: &Tree<'_>) -> Result<Outcome, ToolError> {
        let text = match self {
            Self::DependencyGraph(call) => dependencies::run(call, tree)?,
            Self::References(call) => references::run(call, tree)?,
            Self::RenderingChain(call) => chain::run(call, tree)?,
            Self::SchemaSettings(call) => schema::run(call, tree)?,
            Self::ThemeSetting(call) => setting::run(call, tree),
            Self::Visibility(call) => visibility::run(call, tree)?,
            Self::Variants(call) => variants::run(call, tree)?,
            Self::Performance(call) => performance::run(call, tree)?,
            Self::Placeholder(call) => return Ok(Outcome::Text(placeholder::svg(call))),
            Self::SearchFiles(call) => search::run(call, tree),
            Self::Command(command) => match command.run(tree)? {
                Outcome::Text(text) => text,
                other => return Ok(other),
            },
        };
        let text = text + &self.unread(tree);
        Ok(Outcome::Text(cut(&text, MAX_ANSWER).to_owned()))
    }

    /// Names the texts that the call needs and did not get.
    fn unread(&self, tree: &Tree<'_>) -> String {
        let is_unread = |path: &str| tree.has(path) && tree.text(path).is_none();
        let unread: Vec<String> = match self.needs(tree.index) {
            Needs::Nothing => Vec::new(),
            Needs::Paths(paths) => paths.into_iter().filter(|path| is_unread(path)).collect(),
            Needs::AllText => {
                let texts = tree.index.paths().filter(|path| FileKind::of(path) != FileKind::Other);
                texts.filter(|path| is_unread(path)).map(str::to_owned).collect()
            }
        };
        if unread.is_empty() {
            return String::new();
        }
        let first = unread[..unread.len().min(MAX_UNREAD)].join(", ");
        match unread.len() - unread.len().min(MAX_UNREAD) {
            0 => format!("Not read, so this says nothing about: {first}.\n"),
            more => format!("Not read, so this says nothing about: {first} and {more} more files.\n"),
        }
    }
}
