//! Lookups that know what was asked and edited before.

use proptest::prelude::*;

use super::{harbour, harbour::FILES};
use crate::ThemeIndex;
use crate::history::{
    Change, EditedFile, History, MAX_CHANGES, MAX_FILES, MAX_RANGES, MAX_REQUEST_BYTES, Recalled,
};
use crate::text::LineRange;
use crate::words;

const HEADER: &str = "sections/header.liquid";
const FOOTER: &str = "sections/footer.liquid";
const PRICE: &str = "snippets/price.liquid";
const ICON: &str = "snippets/icon.liquid";
const BASE: &str = "assets/base.css";
const GONE: &str = "snippets/gone.liquid";

fn change(request: &str, hours: f32, paths: &[&str]) -> Change {
    let file = |path: &&str| EditedFile { path: (*path).into(), lines: Vec::new() };
    Change { request: request.into(), files: paths.iter().map(file).collect(), hours }
}

/// Changes with other words each, newest first.
fn changes(paths: &[&[&str]]) -> History {
    History::new(paths.iter().zip('a'..).map(|(paths, c)| change(&c.to_string().repeat(5), 0.0, paths)))
}

fn recall(index: &ThemeIndex, history: &History, request: &str) -> Recalled {
    history.recall(index, &words::words(request))
}

fn near(found: f32, expected: f32) {
    assert!((found - expected).abs() < 1e-4, "{found} instead of {expected}");
}

#[test]
fn a_file_is_recent_by_its_last_change_and_the_size_of_the_change() {
    let index = harbour();
    let check = |paths: &[&[&str]], expected: f32| {
        let recalled = recall(&index, &changes(paths), "");
        near(recalled.of(index.file(HEADER).unwrap()).map_or(0.0, |found| found.recent), expected);
    };
    check(&[&[HEADER]], 1.0);
    check(&[&[FOOTER], &[HEADER]], 0.5);
    check(&[&[FOOTER], &[FOOTER], &[FOOTER], &[HEADER]], 1.0 / 3.0);
    // The best change counts, not the sum.
    check(&[&[HEADER], &[HEADER]], 1.0);
    check(&[&[HEADER, FOOTER]], 0.840_896);
    // Files that the theme lacks, and translations, do not count.
    check(&[&[HEADER, GONE, "locales/de.json"]], 1.0);
    // A change without a file of the theme keeps its place.
    check(&[&[GONE], &[HEADER]], 0.5);
    let many: Vec<&str> = FILES.iter().map(|(path, _)| *path).collect();
    check(&[&many], 0.0);
    check(&[&[FOOTER]], 0.0);
}

#[test]
fn a_file_is_busy_by_all_its_changes() {
    let index = harbour();
    let check = |paths: &[&[&str]], expected: f32| {
        let recalled = recall(&index, &changes(paths), "");
        near(recalled.of(index.file(HEADER).unwrap()).map_or(0.0, |found| found.busy), expected);
    };
    let sum = |parts: &[f32]| parts.iter().sum::<f32>().ln_1p() / 2.0;
    check(&[&[HEADER]], sum(&[1.0]));
    check(&[&[HEADER], &[HEADER]], sum(&[1.0, (-1.0_f32 / 40.0).exp()]));
    check(&[&[HEADER, FOOTER, PRICE, ICON]], sum(&[0.5]));
    check(&[&[FOOTER], &[FOOTER], &[HEADER]], sum(&[(-2.0_f32 / 40.0).exp()]));
    check(&[&[FOOTER]], 0.0);
    // An import says nothing.
    let import: Vec<String> = (0..=MAX_FILES).map(|n| format!("assets/{n}.css")).collect();
    let mut import: Vec<&str> = import.iter().map(String::as_str).collect();
    import[0] = HEADER;
    check(&[&import], 0.0);
}

#[test]
fn a_file_is_asked_for_by_the_words_of_its_changes() {
    let index = harbour();
    let history = History::new([
        change("the logo is too small", 0.0, &[HEADER]),
        change("wider newsletter", 0.0, &[FOOTER]),
        change("logo on the left", 0.0, &[BASE]),
    ]);
    let asked = |request: &str, path: &str| {
        let recalled = history.recall(&index, &query_stems(&index, request));
        recalled.of(index.file(path).unwrap()).map_or(0.0, |found| found.asked)
    };
    near(asked("wider newsletter", FOOTER), 1.0);
    near(asked("the newsletter, wider", FOOTER), 1.0);
    near(asked("wider newsletter", HEADER), 0.0);
    near(asked("the", HEADER), 0.0);
    // Half of the words, and a word that two changes have counts less than one that one change has.
    let weight = |having: f32| (1.0 + (3.5 - having) / (having + 0.5)).ln();
    let (once, twice, never) = (weight(1.0), weight(2.0), weight(0.0));
    near(asked("newsletter", FOOTER), once / (2.0 * once * once).sqrt());
    near(asked("logo", HEADER), twice / (twice * twice + once * once).sqrt());
    let length = (twice * twice + never * never).sqrt() * (twice * twice + once * once).sqrt();
    near(asked("green logo", HEADER), twice * twice / length);
}

fn query_stems(index: &ThemeIndex, request: &str) -> Vec<String> {
    crate::query::Query::parse(index, request, &crate::rank::Weights::TUNED.query).stems
}

#[test]
fn stick_is_the_share_of_files_that_are_edited_again() {
    let index = harbour();
    let check = |paths: &[&[&str]], sum: f32, count: f32| {
        near(recall(&index, &changes(paths), "").stick, (sum + 1.5) / (count + 5.0));
    };
    check(&[], 0.0, 0.0);
    check(&[&[HEADER]], 0.0, 1.0);
    check(&[&[HEADER], &[HEADER]], 1.0, 2.0);
    check(&[&[HEADER], &[FOOTER], &[HEADER]], 1.0, 3.0);
    check(&[&[HEADER, FOOTER], &[HEADER]], 0.5, 2.0);
    check(&[&[HEADER, GONE], &[HEADER], &[GONE]], 1.0, 2.0);
    // Eight changes before count, nine do not.
    let apart = |between: usize| [vec![&[HEADER][..]], vec![&[][..]; between], vec![&[HEADER]]].concat();
    check(&apart(7), 1.0, 2.0);
    check(&apart(8), 0.0, 2.0);
    // A large change is not measured, but it is a change before.
    let eleven: Vec<&str> =
        FILES.iter().map(|(path, _)| *path).filter(|path| path.ends_with(".liquid")).take(11).collect();
    check(&[&[eleven[0]], &eleven], 1.0, 1.0);
}

#[test]
fn an_old_history_fades() {
    let index = harbour();
    let check = |hours: f32, expected: f32| {
        near(recall(&index, &History::new([change("x", hours, &[HEADER])]), "").fade, expected);
    };
    check(0.0, 1.0);
    check(-5.0, 1.0);
    check(72.0, 0.3 + 0.7 / std::f32::consts::E);
    check(1e9, 0.3);
    check(f32::NAN, 0.3);
    check(f32::INFINITY, 0.3);
    // The last change counts.
    let history = History::new([change("x", 0.0, &[GONE]), change("y", 500.0, &[HEADER])]);
    near(recall(&index, &history, "").fade, 1.0);
}

#[test]
fn the_next_request_is_about_the_same_file() {
    let index = harbour();
    let history = History::new([change("make the footer darker", 0.1, &[FOOTER])]);
    let first = |request: &str, history: &History| {
        index.lookup_with_history(request, None, 5, history).targets.first().map(|t| t.path.clone())
    };
    assert_eq!(first("a bit more", &history).as_deref(), Some(FOOTER));
    assert_eq!(first("a bit more", &History::default()), None);
    let gone = History::new([change("make it darker", 0.1, &[GONE, "locales/de.json"])]);
    assert_eq!(first("a bit more", &gone), None);
    for request in ["cart drawer", "", "make the header sticky"] {
        assert_eq!(
            index.lookup_with_history(request, None, 9, &History::default()),
            index.lookup(request, None, 9)
        );
    }
}

#[test]
fn another_history_does_not_push_a_named_file_away() {
    let index = harbour();
    let requests = [
        ("change focus.js", "assets/focus.js"),
        ("add youtube to the social icons snippet", "snippets/social-icons.liquid"),
        ("the cart drawer snippet has no heading", "snippets/cart-drawer.liquid"),
        ("newsletter in sections/footer.liquid", FOOTER),
    ];
    const OTHERS: [&str; 5] = [
        PRICE,
        "sections/announcement.liquid",
        "sections/collapsible.liquid",
        "assets/collapsible.css",
        "blocks/row.liquid",
    ];
    for hours in [0.0, 24.0, 10_000.0] {
        let of = |n: usize, path: &str| change(&format!("words{n} of another topic"), hours, &[path]);
        let unrelated = History::new((0..100).map(|n| of(n, OTHERS[n % OTHERS.len()])));
        let one_file = History::new((0..100).map(|n| of(n, PRICE)));
        for (request, expected) in requests {
            assert_eq!(index.lookup(request, None, 1).targets[0].path, expected, "{request}");
            let first = |history: &History, limit: usize| {
                let found = index.lookup_with_history(request, None, limit, history);
                found.targets.into_iter().map(|target| target.path).collect::<Vec<_>>()
            };
            assert_eq!(first(&unrelated, 1), [expected], "{request}, {hours} hours ago");
            // After a hundred edits of one file the request may be about that file again.
            assert!(first(&one_file, 2).iter().any(|path| path == expected), "{request}, {hours} hours ago");
        }
    }
}

#[test]
fn the_lines_of_the_last_edits_are_shown() {
    let index = harbour();
    let edited = |start, end| EditedFile { path: BASE.into(), lines: vec![LineRange { start, end }] };
    let change = |file| Change { request: "darker".into(), files: vec![file], hours: 0.0 };
    let ranges = |request: &str, edits: &[(u32, u32)]| {
        let history = History::new(edits.iter().map(|&(start, end)| change(edited(start, end))));
        let found = index.lookup_with_history(request, None, 9, &history);
        found.targets.into_iter().find(|target| target.path == BASE).map(|target| target.ranges)
    };
    assert_eq!(ranges("a bit more", &[(12, 13)]), Some(vec![LineRange::new(12, 13)]));
    assert_eq!(
        ranges("a bit more", &[(12, 13), (30, 31)]),
        Some(vec![LineRange::new(12, 13), LineRange::new(30, 31)])
    );
    // With words, the lines that fit them come, too.
    let both = ranges("cart drawer overlay color", &[(12, 13)]).unwrap();
    assert!(both.iter().any(|range| range.start <= 12 && 13 <= range.end), "{both:?}");
    assert!(both.iter().any(|range| range.start <= 47 && 49 <= range.end), "{both:?}");
    // Only a rewriting.
    let lines = index.lines(BASE).unwrap();
    assert_eq!(ranges("a bit more", &[(1, 20)]), Some(vec![LineRange::new(1, 20)]));
    // The file is shorter than it was.
    assert_eq!(ranges("a bit more", &[(lines + 5, lines + 6)]), Some(Vec::new()));
}

#[test]
fn an_alternate_template_is_found_with_its_sections() {
    let template = r#"{"sections": {"main": {"type": "rate-list"}}, "order": ["main"]}"#;
    let other = r#"{"sections": {"main": {"type": "plain-page"}}, "order": ["main"]}"#;
    let index = ThemeIndex::build([
        ("templates/page.json", other),
        ("templates/page.prices.json", template),
        ("templates/page.contact.json", other),
        (
            "sections/rate-list.liquid",
            "<ul>{% for row in section.blocks %}<li>{{ row.settings.amount }}</li>{% endfor %}</ul>",
        ),
        ("sections/plain-page.liquid", "<h1>{{ page.title }}</h1>{{ page.content }}"),
        ("snippets/price.liquid", "{{ product.price | money }}"),
    ])
    .unwrap();
    let found = index.lookup("the prices page needs a heading", None, 3);
    assert_eq!(found.targets[0].path, "templates/page.prices.json");
    let related = found.related.iter().map(|related| related.path.as_str());
    let mut all = found.targets.iter().map(|target| target.path.as_str()).chain(related);
    assert!(all.any(|path| path == "sections/rate-list.liquid"), "{found:?}");
}

#[test]
fn a_history_is_stored_compactly() {
    let lines = |start, end| LineRange { start, end };
    let history = History::new([
        Change {
            request: "darker".into(),
            files: vec![
                EditedFile { path: HEADER.into(), lines: vec![lines(3, 4), lines(9, 9)] },
                EditedFile { path: FOOTER.into(), lines: Vec::new() },
            ],
            hours: 0.25,
        },
        change("lighter", 1.5, &[HEADER]),
    ]);
    let stored = serde_json::to_string(&history).unwrap();
    assert_eq!(
        stored,
        r#"{"paths":["sections/header.liquid","sections/footer.liquid"],"changes":[["darker",0.25,[[0,3,4,9,9],[1]]],["lighter",1.5,[[0]]]]}"#
    );
    assert_eq!(serde_json::from_str::<History>(&stored).unwrap(), history);
    let refused = |changes: &str, expected: &str| {
        let error =
            serde_json::from_str::<History>(&format!(r#"{{"paths":["a"],"changes":[["x",1,{changes}]]}}"#));
        assert!(error.unwrap_err().to_string().starts_with(expected), "{changes}");
    };
    refused("[[1]]", "the history has no path with the number 1");
    refused("[[]]", "a file of the history has no number of a path");
    refused("[[0,3]]", "a range of lines of the history");
    refused("[[0,0,3]]", "a range of lines of the history");
    refused("[[0,4,3]]", "a range of lines of the history");
}

#[test]
fn a_hostile_history_stays_small() {
    let index = harbour();
    // Changes of ten thousand files say nothing, so nothing of their files is kept.
    let huge = "cart drawer ".repeat(20_000);
    let import = |n: usize| Change {
        request: huge.clone(),
        files: (0..10_000)
            .map(|at| EditedFile { path: format!("assets/{n}-{at}.css"), lines: Vec::new() })
            .collect(),
        hours: f32::NAN,
    };
    let imports = History::new((0..MAX_CHANGES + 5).map(import));
    let stored = serde_json::to_string(&imports).unwrap();
    assert_eq!(imports.len(), MAX_CHANGES);
    assert!(stored.len() < MAX_CHANGES * (MAX_REQUEST_BYTES + 50), "{}", stored.len());
    // The largest changes that are kept, each of other files, with ranges everywhere and words of many bytes.
    let full = |n: usize| Change {
        request: format!("{n} ü{}", "日本語 ".repeat(9_999)),
        files: (0..MAX_FILES)
            .map(|at| EditedFile {
                path: if at == 0 { FILES[n % FILES.len()].0.into() } else { format!("assets/{n}-{at}.css") },
                lines: (0..5_000)
                    .map(|line| LineRange { start: line * 10 % 977, end: u32::MAX - line })
                    .rev()
                    .chain((1..100).map(|line| LineRange { start: line * 9, end: line * 9 + 1 }))
                    .collect(),
            })
            .collect(),
        hours: f32::MAX,
    };
    let full = History::new((0..MAX_CHANGES).map(full));
    let stored = serde_json::to_string(&full).unwrap();
    let most = MAX_CHANGES * (MAX_REQUEST_BYTES + MAX_FILES * (30 + MAX_RANGES * 22));
    assert!(stored.len() < most, "{} of {most}", stored.len());
    assert_eq!(serde_json::from_str::<History>(&stored).unwrap(), full);
    for history in [imports, full] {
        let found = index.lookup_with_history(&huge, Some(HEADER), 100, &history);
        assert!(found.targets.iter().all(|target| index.lines(&target.path).is_some()));
    }
}

fn any_change() -> impl Strategy<Value = Change> {
    let path = prop_oneof![
        3 => (0..FILES.len()).prop_map(|at| FILES[at].0.to_owned()),
        1 => "[a-z./]{0,12}",
    ];
    let range = (0..200_u32, 0..200_u32).prop_map(|(start, end)| LineRange { start, end });
    let file =
        (path, proptest::collection::vec(range, 0..4)).prop_map(|(path, lines)| EditedFile { path, lines });
    let request = "(the|cart|drawer|footer|icon|[a-z]{1,6}|ü| ){0,8}";
    (request, proptest::collection::vec(file, 0..20), any::<f32>())
        .prop_map(|(request, files, hours)| Change { request, files, hours })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn a_lookup_with_a_history_returns_files_of_the_theme(
        changes in proptest::collection::vec(any_change(), 0..120),
        request in "(cart|drawer|footer|icon|[a-z]{1,6}| ){0,6}",
        limit in 0..40_usize,
    ) {
        let index = harbour();
        let history = History::new(changes.clone());
        let found = index.lookup_with_history(&request, None, limit, &history);
        prop_assert!(found.targets.len() <= limit);
        for target in &found.targets {
            let lines = index.lines(&target.path);
            prop_assert!(lines.is_some(), "{}", target.path);
            prop_assert!(target.score.is_finite());
            let mut last = 0;
            for range in &target.ranges {
                prop_assert!(last < range.start && range.start <= range.end && Some(range.end) <= lines);
                last = range.end;
            }
        }
        // Twice the same, and the same after storing both.
        let stored: History = serde_json::from_str(&serde_json::to_string(&history).unwrap()).unwrap();
        prop_assert_eq!(&stored, &history);
        let loaded = ThemeIndex::from_blob(&index.to_blob()).unwrap();
        prop_assert_eq!(&loaded.lookup_with_history(&request, None, limit, &stored), &found);
        prop_assert_eq!(&index.lookup_with_history(&request, None, limit, &History::new(changes)), &found);
    }
}
