//! `check_performance`: what makes pages slow, as far as the text shows it.

use std::collections::BTreeMap;

use rustc_hash::{FxHashMap, FxHashSet};
use theme::ThemeIndex;
use theme::path::{FileKind, handle};
use theme::scan::liquid::TokenKind;
use theme::text::Span;

use crate::answer::{Report, short};
use crate::arguments::Performance;
use crate::error::ToolError;
use crate::needs::{Needs, paths};
use crate::read::html;
use crate::read::liquid::{Frame, Liquid};
use crate::read::stored::Stored;
use crate::tree::{Tree, is_liquid};

/// Larger files are named.
const BIG_SCRIPT: u64 = 60_000;
const BIG_STYLE: u64 = 100_000;
const BIG_IMAGE: u64 = 300_000;
const BIG_FONT: u64 = 100_000;
const BIG_INLINE: usize = 10_000;

pub fn needs(call: &Performance, index: &ThemeIndex) -> Needs {
    paths(index, |path, kind| {
        kind == FileKind::JsonTemplate
            || call.path.as_deref().map_or(is_liquid(kind), |wanted| wanted == path)
    })
}

struct Finding {
    line: u32,
    code: &'static str,
    why: String,
}

pub fn run(call: &Performance, tree: &Tree<'_>) -> Result<String, ToolError> {
    if let Some(path) = &call.path {
        tree.require(path)?;
    }
    let places = Places::read(tree);
    let mut report = Report::new(call.page(), "finding", "findings");
    let mut counts: BTreeMap<&'static str, usize> = BTreeMap::new();
    let is_wanted = |path: &str| call.path.as_deref().is_none_or(|wanted| wanted == path);
    for (path, _, text) in tree.texts(|path, kind| is_liquid(kind) && is_wanted(path)) {
        let mut findings = Vec::new();
        template(path, text, &places, &mut findings);
        findings.sort_by_key(|finding| (finding.line, finding.code));
        for finding in findings {
            *counts.entry(finding.code).or_default() += 1;
            report.item(|| format!("{path}:{}  {}: {}", finding.line, finding.code, finding.why));
        }
    }
    for (path, size) in tree.sizes().filter(|(path, _)| is_wanted(path)) {
        if let Some(why) = big_asset(path, size) {
            *counts.entry("big asset").or_default() += 1;
            report.item(|| format!("{path}  big asset: {why}"));
        }
    }
    for (code, count) in counts {
        report.head(format!("{code}: {count}"));
    }
    report.note("Found in the text; nothing was measured.");
    Ok(report.finish())
}

/// Where templates place each type of section.
struct Places {
    first: FxHashMap<String, String>,
    later: FxHashSet<String>,
}

impl Places {
    fn read(tree: &Tree<'_>) -> Self {
        let mut all = Self { first: FxHashMap::default(), later: FxHashSet::default() };
        for (path, _, text) in tree.texts(|_, kind| kind == FileKind::JsonTemplate) {
            let stored = Stored::template(text);
            let visible = || stored.sections.iter().filter(|section| !section.is_disabled);
            let Some(first) = visible().filter_map(|section| section.place).min() else { continue };
            for section in visible() {
                match section.place {
                    Some(place) if place == first => {
                        all.first.entry(section.kind.to_string()).or_insert_with(|| path.to_owned());
                    }
                    Some(_) => _ = all.later.insert(section.kind.to_string()),
                    None => {}
                }
            }
        }
        all
    }
}

struct Image {
    at: u32,
    is_lazy: bool,
    /// An image without any `loading`, written as HTML.
    is_eager: bool,
    is_high: bool,
}

fn template(path: &str, text: &str, places: &Places, findings: &mut Vec<Finding>) {
    let liquid = Liquid::read(text);
    let mut add = |at: u32, code, why: String| findings.push(Finding { line: liquid.line(at), code, why });
    let (elements, _, scripts) = html::read(&liquid.masked);
    let mut images = Vec::new();
    for element in &elements {
        let at = element.name.start;
        if element.is(text, "img") {
            let lacks: Vec<&str> =
                ["width", "height"].into_iter().filter(|name| !element.has(text, name)).collect();
            if !lacks.is_empty() {
                add(
                    at,
                    "image without size",
                    format!("the image lacks {}, so the page jumps when it loads", lacks.join(" and ")),
                );
            }
            let loading = element.get(text, "loading");
            images.push(Image {
                at,
                is_lazy: loading == Some("lazy"),
                is_eager: loading.is_none(),
                is_high: element.get(text, "fetchpriority") == Some("high"),
            });
        } else if element.is(text, "script") && element.has(text, "src") {
            let is_module = element.get(text, "type") == Some("module");
            if !(is_module || element.has(text, "defer") || element.has(text, "async")) {
                add(
                    at,
                    "blocking script",
                    "the script lacks defer or async, so the page waits for it".to_owned(),
                );
            }
        } else if element.is(text, "iframe") && !element.has(text, "loading") {
            add(
                at,
                "eager iframe",
                "the iframe lacks loading=\"lazy\", so it loads even if nobody scrolls to it".to_owned(),
            );
        }
    }
    for script in scripts.iter().filter(|script| (script.end - script.start) as usize > BIG_INLINE) {
        let bytes = script.end - script.start;
        add(
            script.start,
            "big inline script",
            format!("{bytes} bytes of script are in each page, and no cache keeps them"),
        );
    }
    for token in &liquid.tokens {
        let (TokenKind::Output { markup } | TokenKind::Tag { markup, .. }) = token.kind else { continue };
        filters(text, markup, token.span.start, &mut images, &mut add);
    }
    loops(&liquid, &mut add);
    images.sort_by_key(|image| image.at);
    loading(path, text, places, &images, &mut add);
}

fn filters(
    text: &str,
    markup: Span,
    at: u32,
    images: &mut Vec<Image>,
    add: &mut impl FnMut(u32, &'static str, String),
) {
    let inner = markup.of(text);
    if !inner.contains('|') {
        return;
    }
    if inner.contains("image_tag") {
        let has = |name: &str, value: &str| {
            inner.split(name).skip(1).any(|rest| {
                rest.trim_start()
                    .strip_prefix(':')
                    .is_some_and(|rest| rest.trim_start().trim_start_matches(['\'', '"']).starts_with(value))
            })
        };
        // The filter decides by the section's place if nothing is given.
        images.push(Image {
            at,
            is_lazy: has("loading", "lazy"),
            is_eager: false,
            is_high: has("fetchpriority", "high"),
        });
    }
    if inner.contains("script_tag") {
        add(
            at,
            "blocking script",
            "script_tag makes a script without defer, so the page waits for it".to_owned(),
        );
    }
    if inner.contains("font_face") && !inner.contains("font_display") {
        add(
            at,
            "font without swap",
            "font_face without font_display: 'swap' hides the text until the font is there".to_owned(),
        );
    }
}

fn loading(
    path: &str,
    text: &str,
    places: &Places,
    images: &[Image],
    add: &mut impl FnMut(u32, &'static str, String),
) {
    let section = handle(path);
    let is_section = path.starts_with("sections/");
    // The file decides by the section's place.
    let decides = text.contains("section.index") || text.contains("section.location");
    if is_section && !decides {
        match (places.first.get(section), images.first()) {
            (Some(template), Some(image)) if image.is_lazy => {
                add(
                    image.at,
                    "lazy first image",
                    format!(
                        "the first image of the first section of {template} is lazy, so the largest image of the page comes late"
                    ),
                );
            }
            (None, _) if places.later.contains(section) => {
                for image in images.iter().filter(|image| image.is_eager) {
                    add(
                        image.at,
                        "image without lazy loading",
                        "no template has this section first, and the image lacks loading=\"lazy\"".to_owned(),
                    );
                }
            }
            _ => {}
        }
    }
    for image in images.iter().filter(|image| image.is_high && image.is_lazy) {
        add(
            image.at,
            "lazy and urgent",
            "loading=\"lazy\" and fetchpriority=\"high\" contradict each other".to_owned(),
        );
    }
    for image in images.iter().filter(|image| image.is_high).skip(1) {
        add(
            image.at,
            "many urgent images",
            "more than one image of this file has fetchpriority=\"high\", so none comes first".to_owned(),
        );
    }
}

/// What a loop goes through: `collection.products` of `product in collection.products limit: 4`.
fn source<'m>(frame: &Frame<'m>) -> &'m str {
    let markup = frame.markup;
    markup.split_once(" in ").map_or("", |(_, rest)| rest.split_whitespace().next().unwrap_or_default())
}

/// A loop that may be long. Blocks and numbers are few.
fn is_long(frame: &Frame<'_>) -> bool {
    let from = source(frame);
    frame.is_loop() && from != "section.blocks" && !from.starts_with('(')
}

fn loops(liquid: &Liquid<'_>, add: &mut impl FnMut(u32, &'static str, String)) {
    for frame in liquid.frames().iter().filter(|frame| frame.is_loop()) {
        let from = source(frame);
        let outside = liquid.around(frame.at);
        let (mut is_paged, mut outer) = (false, None);
        for other in outside {
            is_paged |= other.tag == "paginate";
            if outer.is_none() && is_long(other) {
                outer = Some(other);
            }
        }
        let shown = short(from, 80);
        let has_limit = frame.markup.contains("limit:") || frame.markup.contains("limit :");
        let why = if has_limit {
            None
        } else if from == "collections" {
            Some("goes through all collections of the shop")
        } else if from.ends_with(".products") && !is_paged && !from.starts_with("search") {
            Some("goes through products without limit or paginate; the shop gives at most 50")
        } else if from.ends_with(".articles") && !is_paged {
            Some("goes through articles without limit or paginate; the shop gives at most 50")
        } else if from.ends_with(".variants") {
            Some("goes through all variants; a product may have up to 2,048")
        } else if from.ends_with(".all_tags") || from == "all_products" {
            Some("goes through a list of the whole shop")
        } else {
            None
        };
        if let Some(why) = why {
            add(frame.at, "loop without limit", format!("{shown} {why}"));
        }
        if let Some(outer) = outer
            && is_long(frame)
        {
            let line = liquid.line(outer.at);
            add(
                frame.at,
                "nested loop",
                format!("{shown} is gone through for each of {} (line {line})", short(source(outer), 80)),
            );
        }
    }
    for (name, markup, token) in liquid.tags() {
        if !matches!(name, "render" | "include") {
            continue;
        }
        let inside = liquid.around(token.span.start).find(|frame| is_long(frame));
        if let Some(frame) = inside {
            let file = short(
                crate::read::liquid::first_string(markup.of(liquid.text)).unwrap_or("a computed name"),
                80,
            );
            let line = liquid.line(frame.at);
            add(
                token.span.start,
                "render in a loop",
                format!("{name} {file} runs for each of {} (line {line})", short(source(frame), 80)),
            );
        }
    }
}

fn big_asset(path: &str, size: u64) -> Option<String> {
    if !path.starts_with("assets/") {
        return None;
    }
    let name = path.strip_suffix(".liquid").unwrap_or(path);
    let (most, what) = match name.rsplit('.').next()? {
        "js" | "mjs" => (BIG_SCRIPT, "scripts"),
        "css" | "scss" => (BIG_STYLE, "styles"),
        "png" | "jpg" | "jpeg" | "gif" | "webp" | "avif" | "svg" => (BIG_IMAGE, "images"),
        "woff" | "woff2" | "ttf" | "otf" => (BIG_FONT, "fonts"),
        _ => return None,
    };
    (size > most).then(|| format!("{size} bytes; {what} above {most} take long on a phone"))
}
