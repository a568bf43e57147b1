//! The kind of a file, from its path. The platform defines a theme's folders.

use std::fmt;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The longest path in a theme, in bytes.
pub const MAX_PATH_BYTES: usize = 256;

/// The role of a file in its theme.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum FileKind {
    Layout,
    Template,
    JsonTemplate,
    Section,
    SectionGroup,
    Block,
    Snippet,
    Stylesheet,
    Script,
    SettingsSchema,
    SettingsData,
    Locale,
    SchemaLocale,
    /// Images, fonts, text files. Only their paths are indexed.
    Other,
}

impl FileKind {
    pub const ALL: [Self; 14] = [
        Self::Layout,
        Self::Template,
        Self::JsonTemplate,
        Self::Section,
        Self::SectionGroup,
        Self::Block,
        Self::Snippet,
        Self::Stylesheet,
        Self::Script,
        Self::SettingsSchema,
        Self::SettingsData,
        Self::Locale,
        Self::SchemaLocale,
        Self::Other,
    ];

    pub fn of(path: &str) -> Self {
        let folder = path.split('/').next().unwrap_or_default();
        let json = path.ends_with(".json");
        let liquid = path.ends_with(".liquid");
        match folder {
            "layout" if liquid => Self::Layout,
            "templates" if json => Self::JsonTemplate,
            "templates" if liquid => Self::Template,
            "sections" if json => Self::SectionGroup,
            "sections" if liquid => Self::Section,
            "blocks" if liquid => Self::Block,
            "snippets" if liquid => Self::Snippet,
            "config" if path.ends_with("settings_schema.json") => Self::SettingsSchema,
            "config" if json => Self::SettingsData,
            "locales" if path.ends_with(".schema.json") => Self::SchemaLocale,
            "locales" if json => Self::Locale,
            "assets" => {
                let name = path.strip_suffix(".liquid").unwrap_or(path);
                if name.ends_with(".css") || name.ends_with(".scss") {
                    Self::Stylesheet
                } else if name.ends_with(".js") || name.ends_with(".mjs") {
                    Self::Script
                } else {
                    Self::Other
                }
            }
            _ => Self::Other,
        }
    }

    /// Whether a request can be about the file's content. Translations, stored settings and images are not written in
    /// an editor, so they can be related files but never targets.
    pub fn is_target(self) -> bool {
        !matches!(self, Self::SettingsData | Self::Locale | Self::SchemaLocale | Self::Other)
    }

    pub fn is_locale(self) -> bool {
        matches!(self, Self::Locale | Self::SchemaLocale)
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Layout => "layout",
            Self::Template => "template",
            Self::JsonTemplate => "json template",
            Self::Section => "section",
            Self::SectionGroup => "section group",
            Self::Block => "block",
            Self::Snippet => "snippet",
            Self::Stylesheet => "stylesheet",
            Self::Script => "script",
            Self::SettingsSchema => "settings schema",
            Self::SettingsData => "settings data",
            Self::Locale => "locale",
            Self::SchemaLocale => "schema locale",
            Self::Other => "other",
        }
    }
}

impl fmt::Display for FileKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The name that other files use for this file: `cart-drawer` for `snippets/cart-drawer.liquid`, `cart.js` for
/// `assets/cart.js.liquid`.
pub fn handle(path: &str) -> &str {
    let name = path.split_once('/').map_or(path, |(_, rest)| rest);
    let name = name.strip_suffix(".liquid").unwrap_or(name);
    if path.starts_with("assets/") { name } else { name.strip_suffix(".json").unwrap_or(name) }
}

/// Why a path is not valid in a theme.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    #[error("the path is empty")]
    Empty,
    #[error("the path is longer than {MAX_PATH_BYTES} bytes")]
    TooLong,
    #[error("the path leaves the theme's folder")]
    Escapes,
    #[error("the path has a control character or a backslash")]
    Unprintable,
}

/// Accepts only relative paths with plain parts: no `..`, no `.`, no empty part, no backslash.
pub fn check_path(path: &str) -> Result<(), PathError> {
    if path.is_empty() {
        return Err(PathError::Empty);
    }
    if path.len() > MAX_PATH_BYTES {
        return Err(PathError::TooLong);
    }
    if path.chars().any(|c| c.is_control() || c == '\\') {
        return Err(PathError::Unprintable);
    }
    if path.split('/').any(|part| matches!(part, "" | "." | "..")) {
        return Err(PathError::Escapes);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_tells_kind_and_handle() {
        let check = |path: &str, kind: FileKind, name: &str| {
            assert_eq!((FileKind::of(path), handle(path)), (kind, name), "{path}");
        };
        check("layout/theme.liquid", FileKind::Layout, "theme");
        check("templates/product.json", FileKind::JsonTemplate, "product");
        check("templates/customers/login.json", FileKind::JsonTemplate, "customers/login");
        check("templates/gift_card.liquid", FileKind::Template, "gift_card");
        check("sections/header.liquid", FileKind::Section, "header");
        check("sections/header-group.json", FileKind::SectionGroup, "header-group");
        check("blocks/_text.liquid", FileKind::Block, "_text");
        check("snippets/cart-drawer.liquid", FileKind::Snippet, "cart-drawer");
        check("assets/base.css", FileKind::Stylesheet, "base.css");
        check("assets/theme.scss.liquid", FileKind::Stylesheet, "theme.scss");
        check("assets/theme.js.liquid", FileKind::Script, "theme.js");
        check("assets/icon-cart.svg", FileKind::Other, "icon-cart.svg");
        check("config/settings_schema.json", FileKind::SettingsSchema, "settings_schema");
        check("config/settings_data.json", FileKind::SettingsData, "settings_data");
        check("locales/en.default.json", FileKind::Locale, "en.default");
        check("locales/fr.schema.json", FileKind::SchemaLocale, "fr.schema");
        check("README.md", FileKind::Other, "README.md");
    }

    #[test]
    fn paths_that_leave_the_theme_are_refused() {
        let check = |path: &str, expected: Result<(), PathError>| {
            assert_eq!(check_path(path), expected, "{path:?}");
        };
        check("sections/header.liquid", Ok(()));
        check("assets/a..b.css", Ok(()));
        check("", Err(PathError::Empty));
        check("../secrets", Err(PathError::Escapes));
        check("assets/../../x", Err(PathError::Escapes));
        check("/etc/passwd", Err(PathError::Escapes));
        check("assets//x", Err(PathError::Escapes));
        check("assets\\x", Err(PathError::Unprintable));
        check("assets/a\nb", Err(PathError::Unprintable));
        check(&"a".repeat(MAX_PATH_BYTES + 1), Err(PathError::TooLong));
    }
}
