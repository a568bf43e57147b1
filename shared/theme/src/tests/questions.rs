//! The answers of the index.

use super::{harbour, harbour::FILES};
use crate::ThemeIndex;
use crate::index::DegradedFile;
use crate::repo_map::{BUDGETS, BYTES_PER_TOKEN};
use crate::scan::{DegradedReason, EdgeKind, EdgeNature};
use crate::text::LineRange;

#[test]
fn a_request_leads_to_its_file() {
    let index = harbour();
    let check = |request: &str, expected: &str| {
        let lookup = index.lookup(request, None, 3);
        let paths: Vec<&str> = lookup.targets.iter().map(|target| target.path.as_str()).collect();
        assert!(paths.contains(&expected), "{request:?}: {paths:?}");
    };
    check("The hamburger menu should stay open", "sections/header.liquid");
    check("make the header stay at the top while scrolling", "sections/header.liquid");
    check("FAQ rows: pointer cursor", "assets/collapsible.css");
    check("The bag does not close when I press Escape", "assets/cart-drawer.js");
    check("Change the wording of \"Nothing in here yet\"", "snippets/cart-drawer.liquid");
    check("strikethrough price is too small", "snippets/price.liquid");
    check("add youtube to the social icons", "snippets/social-icons.liquid");
    check("der Warenkorb ist leer", "snippets/cart-drawer.liquid");
    check("anouncement text is not centered", "sections/announcement.liquid");
    check("change focus.js", "assets/focus.js");
    check("subscribe button in the footer", "sections/footer.liquid");
}

#[test]
fn the_open_file_breaks_ties_and_is_the_fallback() {
    let index = harbour();
    let first = |request: &str, active: Option<&str>| {
        index.lookup(request, active, 1).targets.first().map(|target| target.path.clone())
    };
    assert_eq!(first("xyzzy", None), None);
    assert_eq!(first("xyzzy", Some("snippets/price.liquid")).as_deref(), Some("snippets/price.liquid"));
    assert_eq!(first("xyzzy", Some("snippets/unknown.liquid")), None);
    assert_eq!(first("", None), None);
}

#[test]
fn an_answer_tells_lines_reasons_and_order() {
    let lookup = harbour().lookup("cart drawer overlay color", None, 4);
    let css = lookup.targets.iter().find(|target| target.path == "assets/base.css").unwrap();
    let overlay = LineRange::new(47, 49);
    assert!(
        css.ranges.iter().any(|range| range.start <= overlay.start && overlay.end <= range.end),
        "{:?}",
        css.ranges
    );
    let drawer = lookup.targets.iter().find(|target| target.path == "snippets/cart-drawer.liquid").unwrap();
    assert_eq!(drawer.reasons[0], "path: cart, drawer, cart drawer");
    let place = |path: &str| lookup.edit_order.iter().position(|other| other == path).unwrap();
    assert!(place("assets/cart-drawer.js") < place("snippets/cart-drawer.liquid"), "{:?}", lookup.edit_order);
    assert!(lookup.related.iter().all(|related| lookup.targets.iter().all(|t| t.path != related.path)));
}

#[test]
fn ranges_are_within_files_and_do_not_touch() {
    let index = harbour();
    for request in ["cart", "product price button", "menu", "padding", "the newsletter label in the footer"] {
        for target in index.lookup(request, None, 50).targets {
            let lines = FILES.iter().find(|(path, _)| *path == target.path).unwrap().1.lines().count();
            let mut last = 0;
            for range in target.ranges {
                assert!(last < range.start && range.start <= range.end, "{request}: {}", target.path);
                assert!(range.end as usize <= lines, "{request}: {} {range:?}", target.path);
                last = range.end;
            }
        }
    }
}

#[test]
fn the_graph_knows_who_needs_what() {
    let index = harbour();
    let edges = |edges: Vec<crate::graph::Edge>| -> Vec<(String, EdgeKind, EdgeNature, u32)> {
        edges
            .into_iter()
            .map(|e| {
                (
                    e.to.filter(|to| to != "snippets/price.liquid").unwrap_or(e.from),
                    e.kind,
                    e.nature,
                    e.lines.start,
                )
            })
            .collect()
    };
    assert_eq!(
        edges(index.needed_by("snippets/price.liquid")),
        [
            ("sections/broken.liquid".to_owned(), EdgeKind::Render, EdgeNature::Direct, 4),
            ("sections/main-product.liquid".to_owned(), EdgeKind::Render, EdgeNature::Direct, 11),
            ("snippets/cart-drawer.liquid".to_owned(), EdgeKind::Render, EdgeNature::Direct, 14),
        ]
    );
    assert_eq!(
        edges(index.depends_on("templates/index.json")),
        [
            ("sections/collapsible.liquid".to_owned(), EdgeKind::Section, EdgeNature::Direct, 1),
            ("blocks/row.liquid".to_owned(), EdgeKind::Block, EdgeNature::Preset, 1),
        ]
    );
    let icons = edges(index.depends_on("snippets/icon.liquid"));
    assert_eq!(
        icons,
        [
            ("assets/icon-cart.svg".to_owned(), EdgeKind::Asset, EdgeNature::Indirect, 1),
            ("assets/icon-close.svg".to_owned(), EdgeKind::Asset, EdgeNature::Indirect, 1),
        ]
    );
    let needs = index.depends_on("snippets/cart-drawer.liquid");
    let has = |to: &str, kind| needs.iter().any(|edge| edge.to.as_deref() == Some(to) && edge.kind == kind);
    assert!(has("assets/cart-drawer.js", EdgeKind::CustomElement));
    assert!(has("assets/base.css", EdgeKind::CssClass));
    assert!(has("locales/en.default.json", EdgeKind::Translation));
}

#[test]
fn unresolved_references_and_orphans_are_listed() {
    let index = harbour();
    let unresolved: Vec<(String, EdgeKind, String, u32)> =
        index.unresolved().into_iter().map(|e| (e.from, e.kind, e.via, e.lines.start)).collect();
    let expect = |from: &str, kind, via: &str, line| (from.to_owned(), kind, via.to_owned(), line);
    assert_eq!(
        unresolved,
        [
            expect("snippets/leftover.liquid", EdgeKind::Render, "long-gone", 2),
            expect("snippets/social-icons.liquid", EdgeKind::Setting, "social_tiktok_link", 5),
            expect("templates/product.json", EdgeKind::Section, "reviews", 1),
        ]
    );
    assert_eq!(index.orphans(), ["sections/broken.liquid", "snippets/leftover.liquid"]);
}

#[test]
fn a_form_of_a_plural_is_not_missing() {
    let index = ThemeIndex::build([
        ("locales/en.default.json", r#"{"cart": {"items": {"one": "1 item", "other": "items"}, "title": "Cart"}}"#),
        (
            "snippets/cart.liquid",
            "{{ 'cart.items.one' | t }}{{ 'cart.items' | t: count: 2 }}{{ 'cart.title.one' | t }}{{ 'cart.gone.one' | t }}",
        ),
    ])
    .unwrap();
    let unresolved: Vec<String> = index.unresolved().into_iter().map(|edge| edge.via).collect();
    // `cart.title` is no plural, but the index does not keep what is one.
    assert_eq!(unresolved, ["cart.gone.one"]);
}

#[test]
fn broken_places_are_named_with_their_lines() {
    let place = |line, reason| DegradedFile { path: "sections/broken.liquid".into(), line, reason };
    assert_eq!(
        harbour().degraded(),
        [
            place(3, DegradedReason::UnclosedOutput),
            place(5, DegradedReason::UnclosedTag),
            place(11, DegradedReason::InvalidJson),
            place(2, DegradedReason::UnclosedBlock),
        ]
    );
}

#[test]
fn a_repo_map_keeps_its_budget() {
    let index = harbour();
    let everything = index.repo_map(None, None, 100_000).len();
    for budget in [0, 1, 50, 200, 400, 700].into_iter().chain(BUDGETS) {
        for request in [None, Some("cart drawer"), Some("xyzzy")] {
            let length = index.repo_map(request, None, budget).len();
            assert!(length <= budget * BYTES_PER_TOKEN, "{budget} tokens, {length} bytes");
            if (200 * BYTES_PER_TOKEN..everything).contains(&(budget * BYTES_PER_TOKEN)) {
                assert!(
                    length >= budget * BYTES_PER_TOKEN * 9 / 10,
                    "{budget} tokens, {length} of {everything}"
                );
            }
        }
    }
    let map = index.repo_map(Some("cart drawer"), None, 300);
    // The requested file comes first.
    assert_eq!(map.lines().next(), Some("assets/cart-drawer.js [script, 29 lines]"), "{map}");
}
