//! What kind of change a request speaks of, told by single words.

use super::path::FileKind;

/// What kind of change a request speaks of.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cues {
    pub style: bool,
    pub script: bool,
    pub setting: bool,
    pub markup: bool,
    /// What the theme is called and which version it is stands in one place.
    pub release: bool,
}

#[rustfmt::skip]
const STYLE_CUES: &[&str] = &[
    "css", "style", "styles", "styling", "color", "colour", "padding", "margin", "spacing", "gap", "border",
    "shadow", "hover", "align", "alignment", "aligned", "misaligned", "center", "centered", "centre",
    "width", "height", "overflow", "overlap", "overlapping", "index", "animation", "gradient", "opacity",
    "radius", "rounded", "polish", "ui", "visual", "size", "bigger", "smaller", "larger", "underline",
    "bold", "font", "contrast", "responsive", "position", "outline", "background", "thickness", "wider",
    "narrower", "taller", "whitespace", "cut", "breakpoint", "uppercase", "transparent",
    "blur", "specificity",
];
#[rustfmt::skip]
const SCRIPT_CUES: &[&str] = &[
    "js", "javascript", "event", "events", "click", "clicking", "clicked", "listener", "fetch", "request",
    "async", "race", "function", "console", "debounce", "trap", "keyboard", "escape", "callback", "promise",
    "ajax", "reload", "refresh", "autoplay", "swipe", "drag", "scrolling", "esc", "press", "tap", "closes",
    "close", "closing", "opens", "open", "opening", "throws", "exception", "undefined", "script", "loads",
    "performance", "module", "dispatch", "submit", "type", "typing",
];
#[rustfmt::skip]
const SETTING_CUES: &[&str] = &[
    "setting", "settings", "option", "options", "schema", "preset", "presets", "default", "defaults",
    "block", "blocks", "checkbox", "customize", "customizer", "configurable", "merchant", "merchants",
    "editor", "select", "range", "picker", "limit", "maximum", "max",
];
#[rustfmt::skip]
const MARKUP_CUES: &[&str] = &[
    "html", "markup", "tag", "tags", "attribute", "attributes", "aria", "alt", "liquid", "element",
    "elements", "link", "links", "label", "labels", "render", "rendered", "icon", "icons", "svg", "srcset",
    "lazy", "loading", "text", "translation", "translations", "typo", "heading", "title", "escape",
    "syntax", "variable", "image", "images", "json", "ld", "seo", "meta", "url", "href",
];
const RELEASE_CUES: &[&str] = &["release", "bump", "changelog"];

impl Cues {
    /// `words` as they were said, in lower case.
    pub fn of(words: &[String]) -> Self {
        let has = |cues: &[&str]| words.iter().any(|word| cues.contains(&word.as_str()));
        Self {
            style: has(STYLE_CUES),
            script: has(SCRIPT_CUES),
            setting: has(SETTING_CUES),
            markup: has(MARKUP_CUES),
            // Of a longer request `version` says little: the mobile version of the menu.
            release: has(RELEASE_CUES) || has(&["version"]) && (has(&["theme"]) || words.len() <= 3),
        }
    }
}

/// How a kind of file goes with what a request speaks of.
pub fn affinity(cues: Cues, kind: FileKind) -> [f32; 5] {
    let on = |cue: bool, fits: bool| if cue && fits { 1.0 } else { 0.0 };
    let is_template = matches!(
        kind,
        FileKind::Section | FileKind::Snippet | FileKind::Block | FileKind::Layout | FileKind::Template
    );
    [
        on(cues.style, kind == FileKind::Stylesheet),
        on(cues.script, kind == FileKind::Script),
        on(cues.setting, matches!(kind, FileKind::Section | FileKind::Block | FileKind::SettingsSchema)),
        on(cues.markup, is_template),
        on(cues.release, kind == FileKind::SettingsSchema),
    ]
}
