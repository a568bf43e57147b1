//! Tools that read a theme for an agent.
//!
//! Everything here is a pure function. A caller has the index of a theme ([`ThemeIndex`]) and can load texts of its files. It does three
//! things for each call of a tool:
//!
//! 1. [`Call::parse`] reads the tool's name and its arguments, and refuses what is out of bounds.
//! 2. [`Call::needs`] says which texts the tool reads. The caller loads them.
//! 3. [`Call::run`] answers from a [`Tree`]: the index, the sizes of the files and the loaded texts.
//!
//! [`TOOLS`] lists the tools with their descriptions, and [`schema`] has the JSON Schema of their arguments.
//!
//! An answer is text for a model, with at most [`MAX_ANSWER`] bytes. It gives totals, and the next offset where it is cut. Lines are those
//! of the loaded texts, from 1. A text that a tool needs and does not get is named in the answer. The index must be that of the same files.

mod answer;
mod arguments;
mod call;
mod error;
mod needs;
mod outcome;
mod read;
mod schemas;
mod similar;
mod text;
mod tools;
mod tree;

pub use answer::MAX_ANSWER;
pub use arguments::{
    DependencyGraph, Direction, Performance, Placeholder, References, RenderingChain, RunCommand,
    SchemaSettings, SearchFiles, SymbolSort, ThemeSetting, Variants, Visibility,
};
pub use call::Call;
pub use error::ToolError;
pub use needs::Needs;
pub use outcome::{Grep, Outcome};
pub use schemas::{TOOLS, Tool, schema};
pub use theme::ThemeIndex;
pub use tools::command::Command;
pub use tree::{MAX_FILE_BYTES, Tree};
