//! Single words that show what kind of change a request asks for.

use std::sync::LazyLock;

use rustc_hash::FxHashMap;

use super::path::FileKind;

/// The kinds of change that a request asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cues {
    pub style: bool,
    pub script: bool,
    pub setting: bool,
    pub markup: bool,
    /// The theme's name and version are stored in one place.
    pub release: bool,
    /// Which sections a page has, and their text before a merchant changes it.
    pub template: bool,
    /// Parts that every page has.
    pub layout: bool,
}

#[rustfmt::skip]
const STYLE_CUES: &[&str] = &[
    "css", "style", "styles", "styling", "color", "colour", "padding", "margin", "spacing", "gap", "border",
    "shadow", "hover", "align", "alignment", "aligned", "misaligned", "center", "centered", "centre",
    "width", "height", "overflow", "overlap", "overlapping", "index", "animation", "gradient", "opacity",
    "radius", "rounded", "polish", "ui", "visual", "size", "bigger", "smaller", "larger", "underline",
    "bold", "font", "contrast", "responsive", "position", "outline", "background", "thickness", "wider",
    "narrower", "taller", "whitespace", "cut", "breakpoint", "uppercase", "transparent",
    "blur", "specificity", "safari", "ios", "ux", "design", "desktop", "screens", "sticky", "z", "zindex",
    "container", "state", "states", "disabled", "stretched", "wrap", "wraps", "wrapping", "fit",
];
#[rustfmt::skip]
const SCRIPT_CUES: &[&str] = &[
    "js", "javascript", "event", "events", "click", "clicking", "clicked", "listener", "fetch", "request",
    "async", "race", "function", "console", "debounce", "trap", "keyboard", "escape", "callback", "promise",
    "ajax", "reload", "refresh", "autoplay", "swipe", "drag", "scrolling", "esc", "press", "tap", "closes",
    "close", "closing", "opens", "open", "opening", "throws", "exception", "undefined", "script", "loads",
    "performance", "module", "dispatch", "submit", "type", "typing",
    "error", "errors", "api", "selectors", "dynamic",
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
const TEMPLATE_CUES: &[&str] =
    &["template", "templates", "json", "default", "defaults", "content", "preset", "presets", "groups"];
#[rustfmt::skip]
const LAYOUT_CUES: &[&str] = &[
    "favicon", "head", "preconnect", "preload", "analytics", "pixel", "tracking", "gtm", "variable", "variables",
    "global", "everywhere",
];
const RELEASE_CUES: &[&str] = &["release", "bump", "changelog"];

/// The cues of each word.
static CUES: LazyLock<FxHashMap<&str, Cues>> = LazyLock::new(|| {
    let mut cues: FxHashMap<&str, Cues> = FxHashMap::default();
    let mut add = |words: &[&'static str], mark: fn(&mut Cues)| {
        words.iter().for_each(|word| mark(cues.entry(word).or_default()));
    };
    add(STYLE_CUES, |cues| cues.style = true);
    add(SCRIPT_CUES, |cues| cues.script = true);
    add(SETTING_CUES, |cues| cues.setting = true);
    add(MARKUP_CUES, |cues| cues.markup = true);
    add(RELEASE_CUES, |cues| cues.release = true);
    add(TEMPLATE_CUES, |cues| cues.template = true);
    add(LAYOUT_CUES, |cues| cues.layout = true);
    cues
});

impl Cues {
    /// `words` are the original words in lower case.
    pub fn of(words: &[String]) -> Self {
        let of_words = words.iter().filter_map(|word| CUES.get(word.as_str()));
        let mut all = of_words.fold(Self::default(), |all, cues| Self {
            style: all.style | cues.style,
            script: all.script | cues.script,
            setting: all.setting | cues.setting,
            markup: all.markup | cues.markup,
            release: all.release | cues.release,
            template: all.template | cues.template,
            layout: all.layout | cues.layout,
        });
        // In a longer request `version` says little, for example "the mobile version of the menu".
        let says = |word: &str| words.iter().any(|said| said == word);
        all.release |= says("version") && (says("theme") || words.len() <= 3);
        all
    }
}

/// How well a kind of file fits the cues of a request.
pub fn affinity(cues: Cues, kind: FileKind) -> [f32; 7] {
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
        on(cues.template, matches!(kind, FileKind::JsonTemplate | FileKind::SectionGroup)),
        on(cues.layout, kind == FileKind::Layout),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_speaks_of_kinds_of_files() {
        let check = |request: &str, kind: FileKind, expected: [f32; 7]| {
            let words: Vec<String> = request.split(' ').map(str::to_owned).collect();
            assert_eq!(affinity(Cues::of(&words), kind), expected, "{request}: {kind}");
        };
        check("drawer overlaps on safari", FileKind::Stylesheet, [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
        check("console error when typing", FileKind::Script, [0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
        check("another setting with a label", FileKind::Section, [0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0]);
        check("bump the version of the theme", FileKind::SettingsSchema, [0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0]);
        check("default blocks of the cart", FileKind::JsonTemplate, [0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0]);
        check("show a favicon", FileKind::Layout, [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]);
        check("cart drawer", FileKind::Stylesheet, [0.0; 7]);
    }
}
