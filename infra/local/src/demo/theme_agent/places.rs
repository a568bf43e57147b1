//! Finds the places of edits. Each rule runs from its beginning each time, and ends early with the first call whose result it lacks.

use serde_json::json;

use super::super::theme_turn::{File, Found, Hit, Step, Turn};
use super::stored::{Stored, quoted};
use super::{Plan, edits, wish};

/// The file with the sections above each page, in most themes.
const HEADER_GROUP: &str = "sections/header-group.json";

const SETTINGS: &str = "config/settings_data.json";

fn say<T>(why: impl Into<String>) -> Found<T> {
    Err(Step::Say(why.into()))
}

/// What follows the setting of a section, as `get_schema_settings` says it.
struct Setting {
    kind: String,
    options: Vec<String>,
    default: Option<String>,
}

/// Reads `524: select some_id "Label", default "a", options: a "A" | b "B"`.
fn setting(told: &str, id: &str) -> Option<Setting> {
    let line = told
        .lines()
        .find(|line| line.split_whitespace().nth(2).is_some_and(|word| word.trim_end_matches(',') == id))?;
    let kind = line.split_whitespace().nth(1)?.to_owned();
    let (head, options) = line.split_once(", options: ").unwrap_or((line, ""));
    let value = |option: &str| option.split_once(" \"").map_or(option, |(value, _)| value).trim().to_owned();
    let options = options.split(" | ").map(value).filter(|value| !value.is_empty()).collect();
    let default =
        head.split_once(", default ").map(|(_, rest)| rest.split(',').next().unwrap_or(rest).to_owned());
    Some(Setting { kind, options, default })
}

/// The value with which a header sticks.
fn sticking(setting: &Setting) -> Option<String> {
    if setting.kind == "checkbox" {
        return Some("true".to_owned());
    }
    let is_off = |value: &str| {
        ["none", "never", "no", "false", "off", "static", "disabled", "normal"].contains(&value)
    };
    let is_always = |value: &&String| value.contains("always");
    let is_on = |value: &&String| !is_off(value) && !value.contains("scroll") && !value.contains("reduce");
    let options = &setting.options;
    let value = options.iter().find(is_always).or_else(|| options.iter().find(is_on));
    value.or_else(|| options.iter().find(|value| !is_off(value))).map(|value| quoted(value))
}

/// The name of a file without folder and ending.
fn stem(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.split('.').next().unwrap_or(name)
}

/// The value of `"id": "value"` in a line.
fn value_in<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    let (_, rest) = line.split_once(&format!("\"{key}\""))?;
    rest.trim_start().strip_prefix(':')?.trim_start().strip_prefix('"')?.split('"').next()
}

/// The files that have sections or blocks of such a type, as a regular expression; those of the header first.
fn holders(turn: &Turn, kind: &str) -> Found<Vec<String>> {
    let pattern = format!("\"type\"\\s*:\\s*\"{kind}\"");
    let input = json!({"pattern": pattern, "regex": true, "glob": "{sections,templates,config}/*.json"});
    let mut paths: Vec<String> = turn.grep(input)?.into_iter().map(|hit| hit.path).collect();
    paths.retain(|path| path != "config/settings_schema.json");
    paths.dedup();
    paths
        .sort_by_key(|path| (path != HEADER_GROUP, !path.contains("header"), !path.starts_with("sections/")));
    Ok(paths)
}

/// A section of this type that a merchant has set, and the settings in it.
fn section(stored: &Stored<'_>, kind: &str) -> Option<usize> {
    stored.all().find(|node| {
        let is_section = stored.parent(*node).is_some_and(|parent| stored.key(parent) == "sections");
        is_section && stored.is_object(*node) && stored.string_of(*node, "type").as_deref() == Some(kind)
    })
}

pub fn sticky(turn: &Turn) -> Found<Plan> {
    let input = json!({"pattern": "\"id\"\\s*:\\s*\"[^\"]*sticky[^\"]*\"", "regex": true, "glob": "sections/*.liquid"});
    let hits = turn.grep(input)?;
    let of_header = |hit: &&Hit| stem(&hit.path).contains("header");
    let rank =
        |hit: &&Hit| (!hit.text.contains("header"), !hit.text.contains("enable"), stem(&hit.path).len());
    let found = hits.iter().filter(of_header).min_by_key(rank);
    let Some((hit, id)) = found.and_then(|hit| Some((hit, value_in(&hit.text, "id")?))) else {
        return sticky_by_style(turn);
    };
    let told = turn.asked("get_schema_settings", json!({"path": hit.path, "setting": id}))?;
    let Some(setting) = told.and_then(|told| setting(told, id)) else {
        return say(format!("I can't read the setting `{id}` of `{}`.", hit.path));
    };
    let Some(value) = sticking(&setting) else {
        return say(format!("I can't tell which value of `{id}` in `{}` makes the header stick.", hit.path));
    };
    let kind = stem(&hit.path);
    if let Some(plan) = store_setting(turn, HEADER_GROUP, kind, id, &value, &setting)? {
        return Ok(plan);
    }
    for path in holders(turn, kind)?.iter().filter(|path| *path != HEADER_GROUP).take(1) {
        if let Some(plan) = store_setting(turn, path, kind, id, &value, &setting)? {
            return Ok(plan);
        }
    }
    say(format!("`{}` has the setting `{id}`, but I find no JSON file that holds this section.", hit.path))
}

/// Stores the value in the section of this type. `None`: the file does not hold it.
fn store_setting(
    turn: &Turn,
    path: &str,
    kind: &str,
    id: &str,
    value: &str,
    setting: &Setting,
) -> Found<Option<Plan>> {
    let Some(file) = turn.file(path)? else { return Ok(None) };
    let stored = Stored::read(&file.text);
    let Some(section) = section(&stored, kind) else { return Ok(None) };
    let told = |before: &str| {
        format!(
            "In `{path}`, the header's setting `{id}` is {value} instead of {before}, so the header stays at the top."
        )
    };
    let settings = stored.get(section, "settings");
    if let Some(node) = settings.and_then(|settings| stored.get(settings, id)) {
        let before = stored.written(node);
        if before == value {
            return say(format!("the header is sticky already: `{id}` in `{path}` is {value}."));
        }
        return edits::replaced(&file, stored.place(node), value, told(before)).map(Some);
    }
    if setting.default.as_deref() == Some(value) {
        return say(format!(
            "the header is sticky already: `{id}` is {value} unless `{path}` says otherwise."
        ));
    }
    let (place, new) = match settings {
        Some(settings) => stored.entry(settings, id, value),
        None => stored.entry(section, "settings", &format!("{{ \"{id}\": {value} }}")),
    };
    let before = setting.default.as_deref().unwrap_or("nothing").to_owned();
    edits::replaced(&file, place, &new, told(&before)).map(Some)
}

/// A rule for themes whose header has no such setting.
fn sticky_by_style(turn: &Turn) -> Found<Plan> {
    let mut header = turn.file("sections/header.liquid")?;
    if header.is_none() {
        let list = turn
            .asked("list_files", json!({"glob": "{sections,snippets}/*header*.liquid"}))?
            .unwrap_or_default();
        let first = list
            .lines()
            .skip(1)
            .find_map(|line| line.split('\t').next().filter(|path| path.ends_with(".liquid")));
        let Some(path) = first else { return say("I find no header section in this theme.") };
        header = turn.file(path)?;
    }
    let Some(header) = header else { return say("I can't read the header section of this theme.") };
    let Some(selector) = selector(&header) else {
        return say(format!("I find no class of the header in `{}`.", header.path));
    };
    let list = turn.asked("list_files", json!({"glob": "assets/*.css*"}))?.unwrap_or_default();
    let Some(path) = stylesheet(list) else { return say("I find no stylesheet in this theme.") };
    let Some(sheet) = turn.file(&path)? else { return say(format!("I can't read `{path}`.")) };
    let rule = format!("{selector} {{\n  position: sticky;\n  top: 0;\n  z-index: 10;\n}}");
    if sheet.text.contains(&rule) {
        return say(format!("`{path}` has this rule for `{selector}` already."));
    }
    let done = format!(
        "A new rule at the end of `{path}` keeps `{selector}` at the top, because the header has no setting for it."
    );
    Ok(edits::appended(&sheet, &format!("\n{rule}"), done))
}

/// The element that must stick. A section has an element of its own around it, and nothing in it leaves that element.
fn selector(header: &File) -> Option<String> {
    let is_name = |class: &&str| {
        !class.is_empty()
            && class.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    let (markup, schema) = header.text.split_once("{% schema %}").unwrap_or((&header.text, ""));
    let is_section = header.path.starts_with("sections/");
    let before_settings = schema.split("\"settings\"").next().unwrap_or_default();
    if let Some(class) =
        value_in(before_settings, "class").and_then(|classes| classes.split_whitespace().find(is_name))
    {
        return Some(format!(".{class}"));
    }
    let tag =
        ["<header", "class=\"header", "class=\"site-header"].iter().find_map(|begin| markup.find(begin))?;
    let (_, rest) = markup[tag..].split_once("class=\"")?;
    let rest = without_liquid(rest);
    let class = rest.split('"').next()?.split_whitespace().find(is_name)?;
    Some(if is_section { format!(".shopify-section:has(.{class})") } else { format!(".{class}") })
}

/// A text without what Liquid writes into it. What has no end goes with all that follows.
fn without_liquid(text: &str) -> String {
    let (mut plain, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once('{') {
        plain.push_str(before);
        rest = match after.as_bytes().first() {
            Some(b'{') => after.split_once("}}").map_or("", |(_, behind)| behind),
            Some(b'%') => after.split_once("%}").map_or("", |(_, behind)| behind),
            _ => after,
        };
    }
    plain + rest
}

/// The main stylesheet in a list of files.
fn stylesheet(list: &str) -> Option<String> {
    let rows = list.lines().skip(1).filter_map(|line| {
        let mut parts = line.split('\t');
        let (path, bytes) = (parts.next()?, parts.next()?);
        let name = path.strip_prefix("assets/")?;
        (name.ends_with(".css") || name.ends_with(".css.liquid"))
            .then(|| (path, bytes.parse::<u64>().unwrap_or(0)))
    });
    let is_main = |path: &str| {
        ["theme", "base", "styles", "style", "main", "app", "application", "global"].contains(&stem(path))
    };
    rows.max_by_key(|(path, bytes)| (is_main(path), *bytes)).map(|(path, _)| path.to_owned())
}

/// The settings that hold what an announcement says.
const TEXTS: [&str; 7] =
    ["text", "announcement_text", "announcement", "message", "content", "title", "heading"];

pub fn announcement(turn: &Turn, words: &str) -> Found<Plan> {
    if words.contains(['<', '>', '{', '}']) {
        return say("I write plain text only, without markup.");
    }
    let paths = holders(turn, "[^\"]*announcement[^\"]*")?;
    let Some(path) = paths.first() else {
        return say("I find no announcement in the JSON files of this theme.");
    };
    let Some(file) = turn.file(path)? else { return say(format!("I can't read `{path}`.")) };
    let stored = Stored::read(&file.text);
    let texts = stored.all().filter_map(|node| {
        let is_announcement =
            stored.string_of(node, "type").is_some_and(|kind| kind.contains("announcement"));
        let is_shown = stored.get(node, "disabled").is_none_or(|node| stored.written(node) != "true");
        let settings = stored.get(node, "settings").filter(|_| is_announcement && is_shown)?;
        let text = TEXTS.iter().find_map(|key| stored.get(settings, key))?;
        Some((text, stored.string(text)?))
    });
    let all: Vec<(usize, String)> = texts.collect();
    let Some((node, before)) = all.first() else {
        return say(format!("`{path}` has an announcement, but no text of it that I know."));
    };
    let (open, inner, close) = markup(before);
    if inner == words {
        return say(format!("the announcement in `{path}` says this already."));
    }
    let new = format!("{open}{words}{close}");
    let which = if all.len() > 1 {
        format!("the first of {} announcements", all.len())
    } else {
        "the announcement".to_owned()
    };
    let done = format!("In `{path}`, {which} says \"{words}\" instead of \"{inner}\".");
    edits::replaced(&file, stored.place(*node), &quoted(&new), done)
}

/// The tags around a text, and the text.
fn markup(text: &str) -> (&str, &str, &str) {
    let mut open = 0;
    while text[open..].starts_with('<') && !text[open..].starts_with("</") {
        match text[open..].find('>') {
            Some(end) => open += end + 1,
            None => break,
        }
    }
    let mut close = text.len();
    while close > open && text[..close].ends_with('>') {
        match text[open..close].rfind("</") {
            Some(begin) if !text[open + begin..close - 1].contains('>') => close = open + begin,
            _ => break,
        }
    }
    (&text[..open], &text[open..close], &text[close..])
}

/// How well a name means the colour of buttons. `None`: it means something else.
fn rank(name: &str) -> Option<usize> {
    const OTHER: [&str; 19] = [
        "label",
        "text",
        "border",
        "shadow",
        "hover",
        "secondary",
        "radius",
        "width",
        "font",
        "opacity",
        "size",
        "gradient",
        "outline",
        "link",
        "show",
        "enable",
        "height",
        "alpha",
        "variant",
    ];
    let name = name.to_lowercase();
    match name.as_str() {
        "button" => return Some(0),
        "primary_button_background" => return Some(1),
        "button_background" => return Some(2),
        _ => {}
    }
    let is_colour = ["background", "bg", "color", "colour"].iter().any(|part| name.contains(part))
        || name.ends_with("button");
    let is_meant = name.contains("button") && is_colour && !OTHER.iter().any(|part| name.contains(part));
    is_meant.then(|| if name.contains("primary") { 3 } else { 4 })
}

pub fn button(turn: &Turn, colour: &str) -> Found<Plan> {
    let file = turn.file(SETTINGS)?;
    let stored = file.as_ref().map(|file| (file, Stored::read(&file.text)));
    let current = stored.as_ref().and_then(|(file, stored)| Some((*file, stored, current(stored)?)));
    if let Some((file, stored, current)) = current
        && let Some((node, scheme)) = colour_of_buttons(stored, current)
    {
        let key = stored.key(node);
        let of = scheme.map_or_else(String::new, |scheme| format!(" of the colour scheme `{scheme}`"));
        let before = stored.string(node).unwrap_or_default();
        if wish::colour(&before).as_deref() == Some(colour) {
            return say(format!(
                "the buttons have this colour already: `{key}`{of} in `{SETTINGS}` is {before}."
            ));
        }
        let before = if before.is_empty() { "nothing".to_owned() } else { before };
        let done = format!("In `{SETTINGS}`, `{key}`{of} is {colour} instead of {before}.");
        return edits::replaced(file, stored.place(node), &quoted(colour), done);
    }
    let pattern = "(--[A-Za-z0-9_-]*button[A-Za-z0-9_-]*\\s*:)|(\"id\"\\s*:\\s*\"[^\"]*button[^\"]*\")";
    let hits = turn.grep(json!({"pattern": pattern, "regex": true, "glob": "{assets,config,snippets}/*"}))?;
    if let Some((file, stored, current)) = current {
        let declared = hits.iter().filter(|hit| hit.path == "config/settings_schema.json");
        let ids = declared.filter_map(|hit| value_in(&hit.text, "id").and_then(|id| Some((rank(id)?, id))));
        if let Some((_, id)) = ids.min() {
            let input = json!({"path": "config/settings_schema.json", "setting": id});
            let told = turn.asked("get_schema_settings", input)?;
            let found = told.and_then(|told| setting(told, id)).filter(|setting| setting.kind == "color");
            if let Some(setting) = found {
                let before = setting.default.as_deref().unwrap_or("nothing").trim_matches('"');
                let done = format!("In `{SETTINGS}`, `{id}` is {colour} instead of its default, {before}.");
                let (place, new) = stored.entry(current, id, &quoted(colour));
                return edits::replaced(file, place, &new, done);
            }
        }
    }
    button_by_style(turn, &hits, colour)
}

/// The values that the theme has: stored as such, or as the name of a preset.
fn current(stored: &Stored<'_>) -> Option<usize> {
    let root = stored.root()?;
    let current = stored.get(root, "current")?;
    match stored.string(current) {
        Some(name) => {
            let presets = stored.get(root, "presets")?;
            stored.children(presets).iter().copied().find(|node| stored.key(*node) == name)
        }
        None => stored.is_object(current).then_some(current),
    }
}

/// The setting with the colour of buttons, and the colour scheme that it is in.
fn colour_of_buttons<'a>(stored: &Stored<'a>, current: usize) -> Option<(usize, Option<&'a str>)> {
    let best = |object: usize| {
        let ranked = stored.children(object).iter().filter_map(|node| {
            let value = stored.string(*node)?;
            let is_colour = value.starts_with('#') || value.starts_with("rgb") || value.contains("{{");
            Some((rank(stored.key(*node)).filter(|_| is_colour)?, *node))
        });
        ranked.min().map(|(_, node)| node)
    };
    let schemes = stored.get(current, "color_schemes");
    let first = schemes.and_then(|schemes| stored.children(schemes).first().copied());
    let in_scheme = first.and_then(|scheme| {
        let settings = stored.get(scheme, "settings").unwrap_or(scheme);
        Some((best(settings)?, Some(stored.key(scheme))))
    });
    in_scheme.or_else(|| best(current).map(|node| (node, None)))
}

/// A custom property of a stylesheet, for themes without such a setting.
fn button_by_style(turn: &Turn, hits: &[Hit], colour: &str) -> Found<Plan> {
    let places = hits.iter().filter(|hit| hit.path.contains(".css") || hit.path.starts_with("snippets/"));
    let found = places.filter_map(|hit| Some((property(&hit.text)?.0, hit)));
    let Some((_, hit)) = found.min_by_key(|(rank, _)| *rank) else {
        return say("I find no setting and no custom property with the colour of the buttons.");
    };
    let number = u32::try_from(hit.line).unwrap_or(u32::MAX);
    let Some(file) = turn.lines(&hit.path, number, number)? else {
        return say(format!("I can't read `{}`.", hit.path));
    };
    let Some((_, name, place)) = property(&file.text) else {
        return say(format!("line {number} of `{}` is not as the search says.", hit.path));
    };
    let before = &file.text[place.clone()];
    if wish::colour(before).as_deref() == Some(colour) {
        return say(format!("the buttons have this colour already: `{name}` in `{}` is {before}.", hit.path));
    }
    let new = format!("{}{colour}{}", &file.text[..place.start], &file.text[place.end..]);
    let done = format!("In `{}`, `{name}` is {colour} instead of {before}.", hit.path);
    edits::line(&file, hit.line, &new, done)
}

/// The custom property of a line that is the colour of buttons, and where its value stands.
fn property(line: &str) -> Option<(usize, &str, std::ops::Range<usize>)> {
    line.match_indices("--").find_map(|(at, _)| {
        let (name, rest) = line[at..].split_once(':')?;
        let rank = rank(&name.trim().trim_start_matches('-').replace('-', "_"))?;
        let begin = line.len() - rest.trim_start().len();
        let value = rest.trim_start().split([';', '}']).next()?.trim_end();
        wish::colour(value).map(|_| (rank, name.trim(), begin..begin + value.len()))
    })
}

pub fn words(turn: &Turn, old: &str, new: &str) -> Found<Plan> {
    if new.contains(['<', '>', '{', '}', '\\']) {
        return say("I write plain text only, without markup.");
    }
    let mut hits = turn.grep(json!({ "pattern": old }))?;
    // What only the theme editor shows is not what a person sees in the shop.
    if hits.iter().any(|hit| !hit.path.ends_with(".schema.json")) {
        hits.retain(|hit| !hit.path.ends_with(".schema.json"));
    }
    let hit = match &hits[..] {
        [] => return say(format!("\"{old}\" stands nowhere in the theme, as it is written here.")),
        [hit] => hit,
        several => {
            let places: Vec<String> =
                several.iter().take(5).map(|hit| format!("`{}` line {}", hit.path, hit.line)).collect();
            let places = places.join(", ");
            return say(format!(
                "\"{old}\" stands in {} lines, and I change only what stands in one: {places}.",
                several.len()
            ));
        }
    };
    let number = u32::try_from(hit.line).unwrap_or(u32::MAX);
    let Some(file) = turn.lines(&hit.path, number, number)? else {
        return say(format!("I can't read `{}`.", hit.path));
    };
    let line = file.text.as_str();
    let mut found = line.match_indices(old);
    let (Some((at, _)), None) = (found.next(), found.next()) else {
        return say(format!("\"{old}\" does not stand once in line {number} of `{}`.", hit.path));
    };
    let (before, after) = (&line[..at], &line[at + old.len()..]);
    let goes_on = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '/'));
    if goes_on(before.chars().next_back()) || goes_on(after.chars().next()) {
        return say(format!("\"{old}\" is a part of a longer name in line {number} of `{}`.", hit.path));
    }
    let is_json = hit.path.ends_with(".json") || before.trim_start().starts_with('"');
    if is_json && after.split_once('"').is_some_and(|(_, rest)| rest.trim_start().starts_with(':')) {
        return say(format!(
            "\"{old}\" is the name of a value in line {number} of `{}`, and no text.",
            hit.path
        ));
    }
    let new_text = match is_json {
        true => quoted(new)[1..].trim_end_matches('"').to_owned(),
        false => new.to_owned(),
    };
    let ends_text = |c: char| (line.contains(c) && new.contains(c)) && !is_json;
    if ends_text('\'') || ends_text('"') || (is_json && new.ends_with('"')) {
        return say(format!(
            "line {number} of `{}` has quotes, so I write no text with quotes there.",
            hit.path
        ));
    }
    let done = format!("In line {number} of `{}`, \"{old}\" is \"{new}\".", hit.path);
    edits::line(&file, hit.line, &format!("{before}{new_text}{after}"), done)
}

#[cfg(test)]
#[path = "places_tests.rs"]
mod tests;
