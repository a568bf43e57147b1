//! What the named parts of files are.

use std::fmt;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What a part of a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = ThemeNodeKind)]
pub enum NodeKind {
    /// A tag with its end, such as `{% if … %}…{% endif %}`. Its name is the tag without its braces: `if product.available`.
    LiquidBlock,
    /// A setting of a schema. Its name is its `id`.
    SchemaSetting,
    /// A block type of a schema. Its name is its `type`.
    SchemaBlock,
    /// A rule of a stylesheet. Its name is its selector, or `@media (…)`.
    CssRule,
    /// A function or method of a script.
    JsFunction,
    /// A class of a script.
    JsClass,
    /// An element of HTML. Its name is a simple selector: `main`, `#cart`, `div.card.card--wide`.
    HtmlElement,
}

impl NodeKind {
    pub(crate) fn is_json(self) -> bool {
        matches!(self, Self::SchemaSetting | Self::SchemaBlock)
    }
}

impl fmt::Display for NodeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::LiquidBlock => "Liquid block",
            Self::SchemaSetting => "schema setting",
            Self::SchemaBlock => "schema block",
            Self::CssRule => "CSS rule",
            Self::JsFunction => "function",
            Self::JsClass => "class",
            Self::HtmlElement => "element",
        })
    }
}
