//! Where the platform accepts files, and how large they may be.

use super::Notes;
use super::Severity::{Error, Warning};
use crate::path::FileKind;
use crate::scan::liquid::{self, TokenKind};

const KIB: usize = 1024;

/// Larger files are not read: only their path and size are checked.
pub const MAX_READ: usize = 4 * 1024 * KIB;

/// Names of templates, before the first dot.
const TEMPLATES: [&str; 18] = [
    "404",
    "article",
    "blog",
    "cart",
    "collection",
    "gift_card",
    "index",
    "list-collections",
    "page",
    "password",
    "product",
    "search",
    "robots",
    "policy",
    "captcha",
    "agents",
    "llms",
    "llms-full",
];

const CUSTOMER_TEMPLATES: [&str; 7] =
    ["account", "activate_account", "addresses", "login", "order", "register", "reset_password"];

/// Extensions of files that people and their tools keep beside a theme's files.
const FOREIGN: [&str; 24] = [
    "", "bak", "backup", "gif", "gitkeep", "jpg", "jpeg", "lock", "map", "md", "old", "orig", "png", "py",
    "rb", "scss", "sh", "svg", "tmp", "ts", "webp", "yaml", "yml", "zip",
];

/// The size that Shopify counts, in bytes: a section or a block without its schema.
pub fn counted(kind: FileKind, text: &str, bytes: usize) -> u64 {
    let mut counted = bytes;
    if bytes > 256 * KIB && bytes <= MAX_READ && matches!(kind, FileKind::Section | FileKind::Block) {
        for token in liquid::tokens(text).0 {
            if let TokenKind::Schema { body } = token.kind {
                counted = counted.saturating_sub(body.of(text).len());
            }
        }
    }
    counted as u64
}

pub fn check_size(kind: FileKind, path: &str, len: u64, notes: &mut Notes) {
    let most = match kind {
        FileKind::Layout | FileKind::Template | FileKind::Section | FileKind::Block | FileKind::Snippet => {
            256 * KIB
        }
        FileKind::JsonTemplate | FileKind::SectionGroup | FileKind::SettingsSchema => 512 * KIB,
        FileKind::SettingsData | FileKind::Locale | FileKind::SchemaLocale => 1536 * KIB,
        _ if path.starts_with("assets/") => 20 * 1024 * KIB,
        _ => return,
    };
    if len > most as u64 {
        notes.add(0, Error, "FileSize", format!("the file has {len} bytes; the most are {most}"));
    }
}

/// Checks a path. Files outside of the theme's folders are not part of the theme.
pub fn check(path: &str, notes: &mut Notes) {
    let Some((folder, name)) = path.split_once('/') else { return };
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    // Shopify's tools leave out what is no part of a theme.
    let is_foreign = FOREIGN.contains(&extension) || folder == "config";
    let severity = if is_foreign { Warning } else { Error };
    let mut error = |message: String| notes.add(0, severity, "InvalidPath", message);
    match folder {
        "snippets" | "sections" | "blocks" | "layout" | "assets" | "config" | "locales"
            if name.contains('/') =>
        {
            error(format!("`{folder}` can't have folders"));
        }
        "snippets" | "blocks" | "layout" if extension != "liquid" => {
            error(format!("a file in `{folder}` must end in .liquid"));
        }
        "sections" if !matches!(extension, "liquid" | "json") => {
            error("a file in `sections` must end in .liquid or .json".to_owned());
        }
        "templates" if !matches!(extension, "liquid" | "json") => {
            error("a file in `templates` must end in .liquid or .json".to_owned());
        }
        "templates" => {
            let parts: Vec<&str> = name.split('/').collect();
            let stem = |name: &str| name.split('.').next().unwrap_or_default().to_owned();
            match parts.as_slice() {
                [name] if !TEMPLATES.contains(&stem(name).as_str()) => {
                    error(format!("there is no template `{}`", stem(name)));
                }
                ["customers", name] if !CUSTOMER_TEMPLATES.contains(&stem(name).as_str()) => {
                    error(format!("there is no customer template `{}`", stem(name)));
                }
                [_] | ["customers" | "metaobject", _] => {}
                _ => error("`templates` has only the folders `customers` and `metaobject`".to_owned()),
            }
        }
        "config" if !matches!(name, "settings_schema.json" | "settings_data.json" | "markets.json") => {
            error("`config` has only settings_schema.json and settings_data.json".to_owned());
        }
        "locales" if extension != "json" => error("a file in `locales` must end in .json".to_owned()),
        _ => {}
    }
    if folder != "assets"
        && matches!(folder, "snippets" | "sections" | "blocks" | "templates" | "layout")
        && name.contains(' ')
    {
        notes.add(0, Warning, "InvalidPath", "a name with a blank can't be used everywhere");
    }
}
