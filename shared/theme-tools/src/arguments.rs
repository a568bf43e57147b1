//! The arguments of the tools, and their bounds.

use serde::Deserialize;
use theme::path::check_path;

use crate::answer::Page;
use crate::error::ToolError;

pub const MAX_DEPTH: usize = 5;
pub const DEFAULT_LIMIT: usize = 100;
pub const MAX_LIMIT: usize = 500;
pub const MAX_OFFSET: usize = 10_000_000;
pub const MAX_NAME: usize = 256;
pub const MAX_COMMAND: usize = 2_000;
pub const MAX_SIDE: u32 = 4_096;
pub const MAX_PLACEHOLDER_TEXT: usize = 200;

/// Arguments that can be out of bounds.
pub trait Bounds {
    fn check(&self) -> Result<(), ToolError>;
}

macro_rules! arguments {
    ($($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $kind:ty,)* })*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Debug, PartialEq, Deserialize)]
            #[serde(deny_unknown_fields)]
            pub struct $name {
                $($(#[$field_doc])* pub $field: $kind,)*
                /// How many items to skip.
                #[serde(default)]
                pub offset: usize,
                /// How many items to show.
                #[serde(default = "default_limit")]
                pub limit: usize,
            }

            impl $name {
                pub(crate) fn page(&self) -> Page {
                    Page { offset: self.offset, limit: self.limit }
                }
            }
        )*
    };
}

fn default_limit() -> usize {
    DEFAULT_LIMIT
}

/// Which way a graph is followed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    Uses,
    UsedBy,
    #[default]
    Both,
}

/// What a symbol is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SymbolSort {
    Snippet,
    /// The type of a section: its file's name without `.liquid`.
    Section,
    /// The type of a block.
    Block,
    /// The id of a setting, of the theme or of a section or block.
    Setting,
    CssClass,
    CustomElement,
    /// The dotted key of a text.
    Translation,
    /// A function, method or class of a script.
    Function,
}

arguments! {
    /// `get_dependency_graph`
    DependencyGraph {
        path: String,
        #[serde(default)]
        direction: Direction,
        /// How many steps to follow, from 1 to 5.
        #[serde(default = "one")]
        depth: usize,
    }

    /// `find_references`: either `path` or `symbol`.
    References {
        #[serde(default)]
        path: Option<String>,
        #[serde(default)]
        symbol: Option<String>,
        /// What the symbol is. Without it, all sorts are looked for.
        #[serde(default)]
        kind: Option<SymbolSort>,
    }

    /// `trace_rendering_chain`
    RenderingChain {
        path: String,
    }

    /// `get_schema_settings`
    SchemaSettings {
        /// A section, a block, or `config/settings_schema.json`.
        path: String,
        /// Only the setting with this id.
        #[serde(default)]
        setting: Option<String>,
    }

    /// `check_theme_setting`
    ThemeSetting {
        /// The id. `settings.x` is only a setting of the theme, `section.settings.x` only one of sections, `block.settings.x` only one of
        /// blocks, and `x` any.
        id: String,
    }

    /// `diagnose_visibility`: either `path` or `section`.
    Visibility {
        /// A section, block, snippet or template.
        #[serde(default)]
        path: Option<String>,
        /// The type of a section.
        #[serde(default)]
        section: Option<String>,
        /// A class, id or element: `.price`, `#cart`, `cart-drawer`.
        #[serde(default)]
        selector: Option<String>,
    }

    /// `analyze_variants`
    Variants {
        #[serde(default)]
        path: Option<String>,
    }

    /// `check_performance`
    Performance {
        #[serde(default)]
        path: Option<String>,
    }

    /// `search_files`
    SearchFiles {
        /// A part of a path, in any spelling.
        query: String,
    }
}

fn one() -> usize {
    1
}

/// `generate_placeholder`
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Placeholder {
    pub width: u32,
    pub height: u32,
    /// Without it, the size is shown.
    #[serde(default)]
    pub text: Option<String>,
    /// The background: `#rgb` or `#rrggbb`.
    #[serde(default)]
    pub colour: Option<String>,
}

/// `run_command`
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunCommand {
    pub command: String,
    #[serde(default)]
    pub offset: usize,
    #[serde(default = "default_limit")]
    pub limit: usize,
}

pub fn page(offset: usize, limit: usize) -> Result<(), ToolError> {
    if offset > MAX_OFFSET {
        return Err(ToolError::bounds("offset", format!("must be at most {MAX_OFFSET}, and is {offset}")));
    }
    if !(1..=MAX_LIMIT).contains(&limit) {
        return Err(ToolError::bounds("limit", format!("must be from 1 to {MAX_LIMIT}, and is {limit}")));
    }
    Ok(())
}

pub fn path(field: &'static str, path: &str) -> Result<(), ToolError> {
    check_path(path)
        .map_err(|problem| ToolError::bounds(field, format!("is not a path of a theme: {problem}")))
}

fn name(field: &'static str, name: &str, most: usize) -> Result<(), ToolError> {
    if name.trim().is_empty() {
        return Err(ToolError::bounds(field, "is empty"));
    }
    if name.len() > most {
        return Err(ToolError::bounds(
            field,
            format!("must have at most {most} bytes, and has {}", name.len()),
        ));
    }
    Ok(())
}

fn either(fields: &'static str, given: [bool; 2]) -> Result<(), ToolError> {
    match given {
        [true, false] | [false, true] => Ok(()),
        [true, true] => Err(ToolError::bounds(fields, "are both given; give one")),
        [false, false] => Err(ToolError::bounds(fields, "are both missing; give one")),
    }
}

impl Bounds for DependencyGraph {
    fn check(&self) -> Result<(), ToolError> {
        path("path", &self.path)?;
        if !(1..=MAX_DEPTH).contains(&self.depth) {
            return Err(ToolError::bounds(
                "depth",
                format!("must be from 1 to {MAX_DEPTH}, and is {}", self.depth),
            ));
        }
        page(self.offset, self.limit)
    }
}

impl Bounds for References {
    fn check(&self) -> Result<(), ToolError> {
        either("path, symbol", [self.path.is_some(), self.symbol.is_some()])?;
        self.path.as_deref().map_or(Ok(()), |given| path("path", given))?;
        self.symbol.as_deref().map_or(Ok(()), |given| name("symbol", given, MAX_NAME))?;
        page(self.offset, self.limit)
    }
}

impl Bounds for RenderingChain {
    fn check(&self) -> Result<(), ToolError> {
        path("path", &self.path)?;
        page(self.offset, self.limit)
    }
}

impl Bounds for SchemaSettings {
    fn check(&self) -> Result<(), ToolError> {
        path("path", &self.path)?;
        self.setting.as_deref().map_or(Ok(()), |given| name("setting", given, MAX_NAME))?;
        page(self.offset, self.limit)
    }
}

impl Bounds for ThemeSetting {
    fn check(&self) -> Result<(), ToolError> {
        name("id", &self.id, MAX_NAME)?;
        page(self.offset, self.limit)
    }
}

impl Bounds for Visibility {
    fn check(&self) -> Result<(), ToolError> {
        either("path, section", [self.path.is_some(), self.section.is_some()])?;
        self.path.as_deref().map_or(Ok(()), |given| path("path", given))?;
        self.section.as_deref().map_or(Ok(()), |given| name("section", given, MAX_NAME))?;
        if let Some(selector) = &self.selector {
            name("selector", selector, MAX_NAME)?;
            let word = selector.strip_prefix(['.', '#']).unwrap_or(selector);
            if word.is_empty() || !word.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'))
            {
                return Err(ToolError::bounds(
                    "selector",
                    "must be one class, id or element: .price, #cart, cart-drawer",
                ));
            }
        }
        page(self.offset, self.limit)
    }
}

impl Bounds for Variants {
    fn check(&self) -> Result<(), ToolError> {
        self.path.as_deref().map_or(Ok(()), |given| path("path", given))?;
        page(self.offset, self.limit)
    }
}

impl Bounds for Performance {
    fn check(&self) -> Result<(), ToolError> {
        self.path.as_deref().map_or(Ok(()), |given| path("path", given))?;
        page(self.offset, self.limit)
    }
}

impl Bounds for SearchFiles {
    fn check(&self) -> Result<(), ToolError> {
        name("query", &self.query, MAX_NAME)?;
        page(self.offset, self.limit)
    }
}

impl Bounds for Placeholder {
    fn check(&self) -> Result<(), ToolError> {
        for (field, side) in [("width", self.width), ("height", self.height)] {
            if !(1..=MAX_SIDE).contains(&side) {
                return Err(ToolError::bounds(field, format!("must be from 1 to {MAX_SIDE}, and is {side}")));
            }
        }
        if let Some(text) = &self.text {
            let length = text.chars().count();
            if length > MAX_PLACEHOLDER_TEXT {
                let problem =
                    format!("must have at most {MAX_PLACEHOLDER_TEXT} characters, and has {length}");
                return Err(ToolError::bounds("text", problem));
            }
        }
        let is_colour = |colour: &str| {
            let digits = colour.strip_prefix('#').unwrap_or_default();
            matches!(digits.len(), 3 | 6) && digits.bytes().all(|b| b.is_ascii_hexdigit())
        };
        if self.colour.as_deref().is_some_and(|colour| !is_colour(colour)) {
            return Err(ToolError::bounds("colour", "must be #rgb or #rrggbb"));
        }
        Ok(())
    }
}

impl Bounds for RunCommand {
    fn check(&self) -> Result<(), ToolError> {
        name("command", &self.command, MAX_COMMAND)?;
        page(self.offset, self.limit)
    }
}
