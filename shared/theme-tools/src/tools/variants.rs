//! `analyze_variants`: how a theme handles options and variants.

use memchr::memmem::Finder;
use rustc_hash::FxHashSet;
use theme::ThemeIndex;
use theme::path::{FileKind, handle};
use theme::scan::EdgeKind;
use theme::text::{Lines, Span};

use crate::answer::{Report, excerpt};
use crate::arguments::Variants;
use crate::error::ToolError;
use crate::needs::{Needs, paths};
use crate::read::html::{self, Element};
use crate::read::liquid::Liquid;
use crate::text::{is_word, line_of};
use crate::tree::{Tree, has_liquid, is_liquid};

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Problem,
    Inputs,
    Target,
    Script,
    Options,
    Data,
}

const PARTS: [(Part, &str); 6] = [
    (Part::Problem, "what looks wrong (static; not proven)"),
    (Part::Inputs, "inputs and pickers"),
    (Part::Target, "where the id of the chosen variant goes"),
    (Part::Script, "scripts"),
    (Part::Options, "options"),
    (Part::Data, "variants"),
];

/// Words in tags and outputs.
const LIQUID: [(&str, Part, &str); 16] = [
    ("options_with_values", Part::Options, "each option with its values"),
    ("product.options", Part::Options, "names of options"),
    ("options_by_name", Part::Options, "an option by its name"),
    ("option.values", Part::Options, "values of an option"),
    ("product_option", Part::Options, "an option"),
    ("selected_value", Part::Options, "the chosen value"),
    (".swatch", Part::Options, "swatch of a value"),
    ("product.variants", Part::Data, "all variants: a product may have up to 2,048"),
    ("selected_or_first_available_variant", Part::Data, "the chosen variant, or the first available"),
    ("first_available_variant", Part::Data, "the first available variant"),
    ("selected_variant", Part::Data, "the variant that the address names"),
    ("has_only_default_variant", Part::Data, "whether there is a choice"),
    ("variant.option", Part::Data, "an option of a variant by its place"),
    ("variant.available", Part::Data, "whether a variant can be bought"),
    ("value.available", Part::Data, "whether a value can be bought"),
    ("value.variant", Part::Data, "the variant of a value"),
];

/// Words in scripts.
const SCRIPT: [(&str, Part, &str); 12] = [
    ("variant=", Part::Target, "puts the id into the address"),
    ("[name=\"id\"]", Part::Target, "sets the field of the product form"),
    ("[name=id]", Part::Target, "sets the field of the product form"),
    ("[name='id']", Part::Target, "sets the field of the product form"),
    ("cart_add_url", Part::Target, "adds to the cart"),
    ("/cart/add", Part::Target, "adds to the cart"),
    ("option_values=", Part::Script, "asks the shop by the values' ids"),
    ("section_id=", Part::Script, "renders a section again"),
    ("variantChange", Part::Script, "event of a change"),
    ("variant:change", Part::Script, "event of a change"),
    ("currentVariant", Part::Script, "holds the chosen variant"),
    ("variant-", Part::Script, "names a picker"),
];

pub fn needs(call: &Variants, index: &ThemeIndex) -> Needs {
    let Some(path) = &call.path else {
        return paths(index, |path, kind| has_liquid(path, kind) || kind == FileKind::Script);
    };
    // The form may have its fields in a file that it renders.
    let edges = index.depends_on(path).into_iter().filter(|edge| is_render(edge.kind));
    let mut all: Vec<String> = edges.filter_map(|edge| edge.to).collect();
    all.push(path.clone());
    all.sort_unstable();
    all.dedup();
    Needs::Paths(all)
}

fn is_render(kind: EdgeKind) -> bool {
    matches!(kind, EdgeKind::Render | EdgeKind::Include)
}

/// The most lines of one entry.
const MAX_LINES: usize = 12;

struct Found {
    part: Part,
    path: usize,
    at: u32,
    what: &'static str,
}

pub fn run(call: &Variants, tree: &Tree<'_>) -> Result<String, ToolError> {
    if let Some(path) = &call.path {
        tree.require_text(path)?;
    }
    let files: Vec<(&str, FileKind, &str)> =
        tree.texts(|path, kind| has_liquid(path, kind) || kind == FileKind::Script).collect();
    let finders = |words: &[(&'static str, Part, &'static str)]| {
        words.iter().map(|&(word, part, what)| (Finder::new(word), part, what)).collect::<Vec<_>>()
    };
    let (liquid_words, script_words) = (finders(&LIQUID), finders(&SCRIPT));
    let mut found = Vec::new();
    let mut forms = Vec::new();
    let mut with_field: FxHashSet<&str> = FxHashSet::default();
    for (index, &(path, kind, text)) in files.iter().enumerate() {
        let is_wanted = call.path.as_deref().is_none_or(|wanted| wanted == path);
        let mut add = |part, at, what| {
            if is_wanted {
                found.push(Found { part, path: index, at, what });
            }
        };
        if !is_liquid(kind) {
            words(text, Span::new(0, text.len()), &script_words, &mut add);
            continue;
        }
        let liquid = Liquid::read(text);
        for markup in liquid.markups() {
            words(text, markup, &liquid_words, &mut add);
        }
        let (elements, _, scripts) = html::read(&liquid.masked);
        for element in &elements {
            if inputs(element, text, &mut add) {
                with_field.insert(handle(path));
            }
        }
        for (name, markup, token) in liquid.tags() {
            let markup = markup.of(text);
            if name == "form" && crate::read::liquid::first_string(markup) == Some("product") {
                add(Part::Target, token.span.start, "product form");
                forms.push((index, token.span.start, is_wanted));
            }
        }
        for script in scripts {
            words(text, script, &script_words, &mut add);
        }
    }
    for (index, at, is_wanted) in forms {
        let (path, ..) = files[index];
        let renders = tree.index.depends_on(path).into_iter().filter(|edge| is_render(edge.kind));
        let has = with_field.contains(handle(path))
            || renders.filter_map(|edge| edge.to).any(|to| with_field.contains(handle(&to)));
        if is_wanted && !has {
            let what = "no field with name=\"id\" in this file or in what it renders: nothing says which variant is bought";
            found.push(Found { part: Part::Problem, path: index, at, what });
        }
    }
    Ok(report(call, &files, found))
}

fn report(call: &Variants, files: &[(&str, FileKind, &str)], mut found: Vec<Found>) -> String {
    found.sort_by_key(|found| (found.part, found.path, found.what, found.at));
    let mut report = Report::new(call.page(), "entry", "entries");
    for (part, name) in PARTS {
        let count = found.iter().filter(|found| found.part == part).count();
        if count > 0 {
            report.head(format!("{name}: {count} {}", if count == 1 { "place" } else { "places" }));
        }
    }
    let mut lines: Option<(usize, Lines)> = None;
    for group in found.chunk_by(|a, b| (a.part, a.path, a.what) == (b.part, b.path, b.what)) {
        let Found { path: index, at, what, .. } = group[0];
        let (path, _, text) = files[index];
        report.item(|| {
            if lines.as_ref().is_none_or(|(path, _)| *path != index) {
                lines = Some((index, Lines::new(text)));
            }
            let Some((_, lines)) = &lines else { return String::new() };
            let mut places: Vec<u32> = group.iter().map(|found| line_of(lines, found.at)).collect();
            places.dedup();
            let shown: Vec<String> = places.iter().take(MAX_LINES).map(u32::to_string).collect();
            let more = if places.len() > MAX_LINES {
                format!(" and {} more", places.len() - MAX_LINES)
            } else {
                String::new()
            };
            format!("{path}:{}{more}  {what}  {}", shown.join(","), excerpt(text, lines, at))
        });
    }
    if report.total() == 0 {
        report.head("Nothing here reads options or variants.");
    }
    report.finish()
}

fn words(
    text: &str,
    within: Span,
    words: &[(Finder<'_>, Part, &'static str)],
    add: &mut impl FnMut(Part, u32, &'static str),
) {
    let inner = within.of(text);
    for (finder, part, what) in words {
        for at in finder.find_iter(inner.as_bytes()) {
            let first = finder.needle()[0];
            let end = at + finder.needle().len();
            let last = finder.needle()[finder.needle().len() - 1];
            // A word that is only a part of another word is another word. `variant.option1` is meant by `variant.option`.
            let is_part = (is_word(first) && at > 0 && is_word(inner.as_bytes()[at - 1]) && first != b'v')
                || (is_word(last)
                    && last != b'-'
                    && inner.as_bytes().get(end).is_some_and(|&b| is_word(b) && !b.is_ascii_digit()));
            if !is_part {
                add(*part, within.start + at as u32, what);
            }
        }
    }
}

/// Adds an input or picker. Returns whether it is the field with the variant's id.
fn inputs(element: &Element, text: &str, add: &mut impl FnMut(Part, u32, &'static str)) -> bool {
    let (at, name) = (element.name.start, element.name.of(text));
    if name.contains('-')
        && (name.contains("variant")
            || name.contains("swatch")
            || name == "product-form"
            || name == "product-info")
    {
        add(Part::Inputs, at, "element of a script");
        return false;
    }
    if !matches!(name, "input" | "select" | "button" | "fieldset" | "option") {
        return false;
    }
    let field = element.get(text, "name").unwrap_or_default();
    if field == "id" {
        add(Part::Target, at, "the field with the variant's id");
        return true;
    }
    let lower = field.to_ascii_lowercase();
    // `options[prefix]` and its like belong to the search.
    let is_search = lower.starts_with("options[prefix") || lower.starts_with("options[unavailable");
    let is_option =
        !is_search && (lower.contains("option") || lower.contains("variant") || lower.contains("swatch"));
    let has_data = element.attributes.iter().any(|attribute| {
        let name = attribute.name.of(text);
        name.starts_with("data-") && (name.contains("variant") || name.contains("option"))
    });
    if is_option || has_data {
        add(
            Part::Inputs,
            at,
            match name {
                "input" => "input of an option",
                "select" => "list of an option",
                "fieldset" => "group of an option",
                "option" => "value of an option",
                _ => "button of an option",
            },
        );
    }
    false
}
