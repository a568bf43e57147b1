//! The rules of settings: their definitions in a schema, and the values that templates store for them.

use rustc_hash::FxHashSet;

use super::Notes;
use super::Severity::{self, Error, Warning};
use super::json::{Node, Value};
use super::syntax;

/// A setting that a schema defines.
#[derive(Debug)]
pub struct Setting {
    pub id: String,
    pub kind: String,
    pub range: Option<(f64, f64, f64)>,
    pub options: Vec<String>,
}

const KINDS: [&str; 34] = [
    "article",
    "article_list",
    "blog",
    "checkbox",
    "collection",
    "collection_list",
    "color",
    "color_background",
    "color_palette",
    "color_scheme",
    "color_scheme_group",
    "font_picker",
    "header",
    "html",
    "image_picker",
    "inline_richtext",
    "link_list",
    "liquid",
    "metaobject",
    "metaobject_list",
    "number",
    "page",
    "paragraph",
    "product",
    "product_list",
    "radio",
    "range",
    "richtext",
    "select",
    "text",
    "text_alignment",
    "textarea",
    "url",
    "video",
];

/// Other kinds that are accepted.
const MORE_KINDS: [&str; 6] = [
    "video_url",
    "style.flex_layout",
    "style.layout_panel",
    "style.size_panel",
    "style.spacing_panel",
    "font",
];

/// Kinds whose value a merchant chooses from the store, so that a schema can't know a default.
const WITHOUT_DEFAULT: [&str; 12] = [
    "article",
    "blog",
    "collection",
    "collection_list",
    "page",
    "product",
    "product_list",
    "video",
    "article_list",
    "metaobject",
    "metaobject_list",
    "image_picker",
];

const CODE: &str = "ValidSchema";

/// Reads and checks the `settings` of a schema, a block or a group of theme settings. Ids must be new to `seen`.
pub fn read(list: &Node, seen: &mut FxHashSet<String>, in_theme: bool, notes: &mut Notes) -> Vec<Setting> {
    let mut settings = Vec::new();
    if !list.is_array() {
        notes.add(list.at, Error, CODE, format!("`settings` must be an array, is {}", list.kind()));
        return settings;
    }
    for node in list.items() {
        if !node.is_object() {
            notes.add(node.at, Error, CODE, format!("a setting must be an object, is {}", node.kind()));
            continue;
        }
        let Some(kind_node) = node.get("type") else {
            notes.add(node.at, Error, CODE, "a setting has no `type`");
            continue;
        };
        let kind = kind_node.text().unwrap_or_default();
        // Old themes have pictures with fixed names and choices of snippets in their settings.
        let is_old = in_theme && matches!(kind, "image" | "snippet");
        if !KINDS.contains(&kind) && !MORE_KINDS.contains(&kind) && !is_old {
            notes.add(kind_node.at, Error, CODE, format!("there is no setting of the type `{kind}`"));
        }
        if matches!(kind, "header" | "paragraph") {
            if node.get("content").is_none() {
                notes.add(node.at, Error, CODE, format!("a `{kind}` has no `content`"));
            }
            continue;
        }
        let Some(id_node) = node.get("id") else {
            notes.add(node.at, Error, CODE, format!("a setting of the type `{kind}` has no `id`"));
            continue;
        };
        let id = id_node.text().unwrap_or_default();
        if id.is_empty() {
            notes.add(id_node.at, Error, CODE, "the `id` of a setting must be a string that is not empty");
        } else if !seen.insert(id.to_owned()) {
            notes.add(id_node.at, Error, "UniqueSettingId", format!("the setting `{id}` is there twice"));
        }
        match node.get("label") {
            None if !matches!(kind, "color_scheme_group" | "color_palette")
                && !kind.starts_with("style.") =>
            {
                // Old themes have such settings.
                let severity = if in_theme { Warning } else { Error };
                notes.add(node.at, severity, CODE, format!("the setting `{id}` has no `label`"));
            }
            Some(label)
                if label.text().is_none()
                // A label may be an object of languages.
                && !label.is_object() =>
            {
                notes.add(label.at, Error, CODE, format!("the label of `{id}` must be a string"));
            }
            _ => {}
        }
        if kind == "color_scheme_group" && !in_theme {
            let message = "a `color_scheme_group` is allowed only in the theme's settings";
            notes.add(kind_node.at, Error, CODE, message);
        }
        let setting = Setting {
            id: id.to_owned(),
            kind: kind.to_owned(),
            range: range(node, id, kind, notes),
            options: options(node, id, kind, in_theme, notes),
        };
        check_default(node, &setting, notes);
        check_rest(node, id, kind, notes);
        settings.push(setting);
    }
    settings
}

fn check_rest(node: &Node, id: &str, kind: &str, notes: &mut Notes) {
    match kind {
        "video_url" => match node.get("accept") {
            None => notes.add(node.at, Error, CODE, format!("the setting `{id}` has no `accept`")),
            Some(accept) => {
                let all_known =
                    accept.items().iter().all(|item| matches!(item.text(), Some("youtube" | "vimeo")));
                if accept.items().is_empty() || !all_known {
                    let message = format!("`accept` of `{id}` is a list of youtube and vimeo");
                    notes.add(accept.at, Error, CODE, message);
                }
            }
        },
        "metaobject" | "metaobject_list" if node.get("metaobject_type").is_none() => {
            notes.add(node.at, Error, CODE, format!("the setting `{id}` has no `metaobject_type`"));
        }
        "product_list" | "collection_list" | "article_list" | "metaobject_list" => {
            if let Some(limit) = node.get("limit")
                && !limit.number().is_some_and(|limit| (1.0..=50.0).contains(&limit) && limit.fract() == 0.0)
            {
                notes.add(limit.at, Error, CODE, format!("the limit of `{id}` must be 1 to 50"));
            }
        }
        _ => {}
    }
    if let Some(condition) = node.get("visible_if") {
        let text = condition.text().unwrap_or_default().trim();
        if !(text.starts_with("{{") && text.ends_with("}}")) {
            let message = format!("`visible_if` of `{id}` must be an output: {{{{ … }}}}");
            notes.add(condition.at, Error, "ValidVisibleIf", message);
        } else if let Some(inner) = text.get(2..text.len() - 2) {
            let what = format!("the `visible_if` of `{id}`");
            syntax::report_condition(&what, inner.trim_matches('-'), condition.at, notes);
        }
    }
}

fn range(node: &Node, id: &str, kind: &str, notes: &mut Notes) -> Option<(f64, f64, f64)> {
    if kind != "range" {
        return None;
    }
    let mut bound = |name: &str, fallback: Option<f64>| match node.get(name) {
        None => {
            if fallback.is_none() {
                notes.add(node.at, Error, CODE, format!("the range `{id}` has no `{name}`"));
            }
            fallback
        }
        Some(value) => {
            let number = value.number();
            if number.is_none() {
                let message = format!("`{name}` of the range `{id}` must be a number, is {}", value.kind());
                notes.add(value.at, Error, CODE, message);
            }
            number
        }
    };
    let (min, max, step) = (bound("min", None)?, bound("max", None)?, bound("step", Some(1.0))?);
    let place = |name: &str| node.get(name).map_or(node.at, |value| value.at);
    if step <= 0.0 {
        notes.add(place("step"), Error, CODE, format!("the step of the range `{id}` must be greater than 0"));
        return None;
    }
    if max < min {
        notes.add(place("max"), Error, CODE, format!("the range `{id}` ends before it begins"));
        return None;
    }
    // 101 values, so 100 steps.
    let steps = (max - min) / step;
    if steps < 2.0 - 1e-6 {
        notes.add(place("max"), Warning, CODE, format!("the range `{id}` has less than three values"));
    } else if steps > 100.0 + 1e-6 {
        let at = if node.get("step").is_some() { place("step") } else { place("max") };
        notes.add(at, Error, CODE, format!("the range `{id}` has more than 101 steps"));
    } else if !is_whole(steps) {
        let message = format!("the step of the range `{id}` does not reach its maximum");
        notes.add(place("step"), Warning, CODE, message);
    }
    if let Some(unit) = node.get("unit")
        // A unit may be an object of languages, as a label.
        && !unit.is_object()
        && unit.text().is_none_or(|unit| unit.chars().count() > 3 && !unit.starts_with("t:"))
    {
        notes.add(unit.at, Error, CODE, format!("the unit of `{id}` has at most 3 characters"));
    }
    Some((min, max, step))
}

fn is_whole(number: f64) -> bool {
    (number - number.round()).abs() < 1e-6
}

fn options(node: &Node, id: &str, kind: &str, in_theme: bool, notes: &mut Notes) -> Vec<String> {
    if !matches!(kind, "select" | "radio") {
        return Vec::new();
    }
    let Some(list) = node.get("options") else {
        notes.add(node.at, Error, CODE, format!("the {kind} `{id}` has no `options`"));
        return Vec::new();
    };
    if !list.is_array() || list.items().is_empty() {
        notes.add(list.at, Error, CODE, format!("the {kind} `{id}` needs at least one option"));
        return Vec::new();
    }
    let mut values = Vec::new();
    for option in list.items() {
        for name in ["value", "label"] {
            match option.get(name) {
                None => {
                    // Old themes have such options in their settings.
                    let severity = if in_theme && name == "label" { Warning } else { Error };
                    notes.add(option.at, severity, CODE, format!("an option of `{id}` has no `{name}`"));
                }
                Some(text) if text.text().is_none() && !(name == "label" && text.is_object()) => {
                    let message =
                        format!("the {name} of an option of `{id}` must be a string, is {}", text.kind());
                    notes.add(text.at, Error, CODE, message);
                }
                Some(_) => {}
            }
        }
        if let Some(value) = option.text_of("value") {
            if values.iter().any(|other| other == value) {
                let message = format!("the {kind} `{id}` has the option `{value}` twice");
                notes.add(option.at, Error, CODE, message);
            }
            values.push(value.to_owned());
        }
    }
    values
}

fn check_default(node: &Node, setting: &Setting, notes: &mut Notes) {
    let Setting { id, kind, .. } = setting;
    let Some(default) = node.get("default") else {
        if kind == "range" || kind == "font_picker" {
            notes.add(node.at, Error, CODE, format!("the {kind} `{id}` has no `default`"));
        }
        return;
    };
    let at = default.at;
    if WITHOUT_DEFAULT.contains(&kind.as_str()) {
        // Some of them accept a dynamic source.
        if !default.text().is_some_and(|text| text.contains("{{")) {
            notes.add(at, Error, CODE, format!("a setting of the type `{kind}` takes no default"));
        }
        return;
    }
    refused_liquid(setting, default, notes);
    if let Some((_, message)) = wrong_value(setting, default, true) {
        notes.add(at, Error, CODE, message);
    }
}

/// Elements that a richtext value may begin with.
const RICH: [&str; 11] = ["p", "ul", "ol", "h1", "h2", "h3", "h4", "h5", "h6", "strong", "em"];

/// Reports Liquid in a setting that Shopify refuses.
pub fn refused_liquid(setting: &Setting, value: &Node, notes: &mut Notes) {
    if setting.kind == "liquid" {
        syntax::report_value(&format!("the Liquid of `{}`", setting.id), value, notes);
    }
}

/// What is wrong with a value of a setting.
pub fn wrong_value(setting: &Setting, value: &Node, is_default: bool) -> Option<(Severity, String)> {
    let Setting { id, kind, .. } = setting;
    let what = if is_default { "the default of" } else { "the value of" };
    // A dynamic source, or the key of a translation.
    if value.text().is_some_and(|text| text.contains("{{") || text.starts_with("t:")) {
        return None;
    }
    // One text for each language.
    let is_language = |key: &str| key.len() == 2 || key.len() == 5 && key.as_bytes()[2] == b'-';
    if is_default
        && !value.members().is_empty()
        && value.members().iter().all(|member| is_language(&member.key) && member.node.text().is_some())
    {
        return None;
    }
    if matches!(value.value, Value::Null) {
        return is_default.then(|| (Error, format!("the default of `{id}` must not be null")));
    }
    let must = |severity: Severity, rule: &str| {
        Some((severity, format!("{what} `{id}` must be {rule}, is {}", shown(value))))
    };
    let kind_severity = if is_default { Error } else { Warning };
    match kind.as_str() {
        "checkbox" if !matches!(value.value, Value::Bool(_)) => must(kind_severity, "true or false"),
        "range" => {
            let (min, max, step) = setting.range?;
            let Some(number) = value.number() else { return must(kind_severity, "a number") };
            if number < min - 1e-9 || number > max + 1e-9 {
                must(Error, &format!("{min} to {max}"))
            } else if !is_whole((number - min) / step) {
                // Whether Shopify refuses a stored one is not known.
                must(kind_severity, &format!("on a step of {step} from {min}"))
            } else {
                None
            }
        }
        "number" if value.number().is_none() && value.text() != Some("") => must(kind_severity, "a number"),
        "select" | "radio" => match value.text() {
            None => must(kind_severity, "a string"),
            Some(text)
                if !setting.options.is_empty() && !setting.options.iter().any(|option| option == text) =>
            {
                // Shopify keeps such values: its own commits of live themes have them.
                must(kind_severity, "one of its options")
            }
            Some(_) => None,
        },
        "text" | "textarea" | "html" | "liquid" | "url" | "inline_richtext" | "color_scheme"
        | "link_list"
            if value.text().is_none() && !(kind == "url" && value.is_object()) =>
        {
            must(kind_severity, "a string")
        }
        "text" | "textarea" | "html" | "liquid" if is_default && value.text() == Some("") => {
            Some((Error, format!("the default of `{id}` must not be empty")))
        }
        "url" if is_default && !matches!(value.text(), Some("/collections" | "/collections/all" | "")) => {
            let text = value.text().unwrap_or_default();
            // A default may name a page of the shop. A relative link without a slash is none.
            (!text.starts_with('/')
                && !text.starts_with("shopify://")
                && !text.starts_with("http")
                && !text.starts_with('#'))
            .then(|| (Error, format!("the default of `{id}` must be a link")))
        }
        "link_list"
            if is_default
                && !matches!(value.text(), Some("main-menu" | "footer" | "customer-account-main-menu")) =>
        {
            must(Error, "main-menu or footer")
        }
        "text_alignment" if !matches!(value.text(), Some("left" | "right" | "center")) => {
            must(kind_severity, "left, center or right")
        }
        "richtext" => {
            let Some(text) = value.text() else { return must(kind_severity, "a string") };
            if text.trim().is_empty() && !is_default {
                return None;
            }
            let name = text.trim_start().strip_prefix('<').unwrap_or_default();
            let name = &name[..name.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(name.len())];
            if RICH[..9].contains(&name) {
                return None;
            }
            let message = format!("{what} `{id}` must begin with a paragraph or a list, such as <p>");
            Some((kind_severity, message))
        }
        "inline_richtext" => {
            let text = value.text().unwrap_or_default();
            ["<p", "<div", "<ul", "<ol", "<h1", "<h2", "<h3"]
                .iter()
                .any(|block| text.contains(block))
                .then(|| (Error, format!("{what} `{id}` must not contain blocks such as <p>")))
        }
        "color" | "color_background" => {
            let Some(text) = value.text() else { return must(kind_severity, "a string") };
            let is_hex = text.strip_prefix('#').is_none_or(|digits| {
                matches!(digits.len(), 3 | 4 | 6 | 8) && digits.bytes().all(|b| b.is_ascii_hexdigit())
            });
            let is_color = text.is_empty()
                || text.starts_with('#')
                || text.contains('(')
                || text.bytes().all(|b| b.is_ascii_alphabetic());
            (!is_hex || !is_color).then(|| (kind_severity, format!("{what} `{id}` is not a colour")))
        }
        "font_picker" => {
            let Some(text) = value.text() else { return must(kind_severity, "a string") };
            let is_system = matches!(text, "mono" | "sans-serif" | "serif");
            let is_font = is_system
                || text.rsplit_once('_').is_some_and(|(name, style)| {
                    !name.is_empty() && matches!(style.as_bytes(), [b'n' | b'i' | b'o', b'1'..=b'9'])
                });
            (!is_font && !text.is_empty())
                .then(|| (kind_severity, format!("{what} `{id}` is not a font such as assistant_n4")))
        }
        "collection_list" | "product_list" if !value.is_array() && value.text() != Some("") => {
            must(kind_severity, "an array")
        }
        _ => None,
    }
}

fn shown(value: &Node) -> String {
    match &value.value {
        Value::Number(number) => number.to_string(),
        Value::String(text) if text.chars().count() <= 30 => format!("\"{text}\""),
        Value::Bool(value) => value.to_string(),
        _ => value.kind().to_owned(),
    }
}
