//! A theme that changed file by file has the findings of the same files read at once.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::CheckedTheme;
use super::doubt::Surroundings;
use super::script::{ScriptFacts, ScriptReader, Unresolved};

/// Reads the few kinds of statements that the texts below have, one a line.
struct Lines;

impl ScriptReader for Lines {
    fn read(&self, source: &str, _: bool) -> ScriptFacts {
        let mut facts = ScriptFacts::default();
        let mut at = 0;
        for line in source.split_inclusive('\n') {
            if let Some(selector) = line.trim().strip_prefix("find ") {
                facts.selectors.push((selector.to_owned(), at));
            } else if let Some(name) = line.trim().strip_prefix("let ") {
                facts.globals.push(name.to_owned());
            } else if let Some(name) = line.trim().strip_prefix("call ") {
                facts.unresolved.push(Unresolved { name: name.to_owned(), at, is_library: false });
            }
            at += line.len();
        }
        facts
    }
}

const LAYOUT: &str = "{{ content_for_header }}{{ content_for_layout }}{% render 'card', title: 'a' %}{{ 'base.css' | asset_url }}";

/// Each path with texts that it can have. Their facts meet: what one file lacks, breaks or defines is said of another one.
const FILES: [(&str, &[&str]); 12] = [
    (
        "layout/theme.liquid",
        &[
            LAYOUT,
            "{{ content_for_layout }}{% section 'hero' %}<script>find .card</script>",
            "{{ content_for_header }}{{ content_for_layout }}{{ '//host/zebra.js' | script_tag }}{{ settings.colour }}",
        ],
    ),
    (
        "sections/hero.liquid",
        &[
            "<div id=\"Hero-{{ section.id }}\" class=\"card hero\">{{ 'a.b' | t }}{% render 'card' %}</div>",
            "<div class=\"hero\">{{ section.settings.none }}{% render 'gone' %}\n{{ 'a.b' | t }}{{ 'c' | t }}",
            "{{ x | plus: 1, 2 }}{% schema %}{\"name\": \"t:names.hero\", \"settings\": [{\"type\": \"text\", \"id\": \"none\", \"label\": \"N\"}], \"limit\": 1}{% endschema %}",
        ],
    ),
    (
        "sections/foot.liquid",
        &["</div><p class=\"foot\">x</p>", "{% if a %}", "{% render 'card', titel: 1 %}"],
    ),
    (
        "snippets/card.liquid",
        &[
            "<p class=\"card\">{{ title }}</p>",
            "{{ titel }}{{ title.nothing }}",
            "{% doc %}@param {string} title{% enddoc %}<b>{{ title }}",
            "",
        ],
    ),
    ("snippets/gone.liquid", &["{{ 'gone.png' | asset_url }}", "{% render 'card' with product as title %}"]),
    (
        "templates/index.json",
        &[
            "{\"sections\": {\"a\": {\"type\": \"hero\"}, \"b\": {\"type\": \"foot\"}}, \"order\": [\"a\", \"b\"]}",
            "{\"sections\": {\"a\": {\"type\": \"hero\", \"settings\": {\"none\": 1}}, \"b\": {\"type\": \"hero\"}}, \"order\": [\"a\", \"b\"]}",
            "{\"sections\": {",
        ],
    ),
    (
        "locales/en.default.json",
        &[
            "{\"a\": {\"b\": \"x {{ n }}\"}, \"d\": \"e\"}",
            "{\"a\": {\"b\": {\"one\": \"1\", \"other\": \"2\"}}}",
            "{\"a\": \"b\", \"c\": \"d\"}",
        ],
    ),
    ("locales/de.json", &["{\"a\": {\"b\": \"x {{ m }}\"}}", "{\"a\": \"y\", \"z\": \"q\"}", "[]"]),
    ("locales/fr.json", &["{\"a\": {\"b\": \"x {{ n }}\"}, \"d\": \"e\"}", "{}"]),
    (
        "assets/base.css",
        &[".card { a: b }\n.hero { a: b }", ".hero { a: b }", "@media (min-width 1px) { a { b: c } }"],
    ),
    (
        "assets/main.js",
        &[
            "find .card\nfind #Hero-1\nfind .none\ncall zebra\n",
            "let zebra\nfind .foot\n",
            "find .hero\ncall horse\n",
        ],
    ),
    (
        "config/settings_schema.json",
        &[
            "[{\"name\": \"A\", \"settings\": [{\"type\": \"color\", \"id\": \"colour\", \"label\": \"C\"}]}]",
            "[]",
        ],
    ),
];

type Texts = BTreeMap<&'static str, &'static str>;

fn fresh(texts: &Texts) -> CheckedTheme {
    CheckedTheme::read(texts, Some(&Lines))
}

#[derive(Clone, Copy, Debug)]
struct Step {
    file: usize,
    /// The text of the file after it, or none.
    text: usize,
    /// Whether the change begins at the theme before all others.
    is_of_first: bool,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = (0..FILES.len(), 0..5_usize, prop::bool::weighted(0.1))
        .prop_map(|(file, text, is_of_first)| Step { file, text, is_of_first });
    prop::collection::vec(step, 1..25)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn a_theme_that_changed_has_the_findings_of_one_that_is_read_at_once(steps in steps()) {
        let first: Texts = FILES.iter().map(|(path, texts)| (*path, texts[0])).collect();
        let first_theme = fresh(&first);
        let (mut texts, mut theme) = (first.clone(), first_theme.clone());
        for Step { file, text, is_of_first } in steps {
            if is_of_first {
                (texts, theme) = (first.clone(), first_theme.clone());
            }
            let (path, choices) = FILES[file];
            let before = (fresh(&texts), theme.clone());
            match choices.get(text) {
                Some(text) => {
                    texts.insert(path, text);
                    theme.add(path, text.as_bytes(), Some(&Lines));
                }
                None => {
                    texts.remove(path);
                    theme.remove(path);
                }
            }
            let scratch = fresh(&texts);
            prop_assert_eq!(theme.added_since(&before.1), scratch.added_since(&before.0));
            prop_assert_eq!(before.1.added_since(&theme), before.0.added_since(&scratch));
            prop_assert_eq!(theme.findings(), scratch.findings());
            prop_assert_eq!(theme.added_since(&first_theme), scratch.added_since(&fresh(&first)));
            // Asked again, it is the same.
            prop_assert_eq!(theme.findings(), theme.clone().findings());
        }
    }
}

#[test]
fn the_surroundings_change_what_is_proven() {
    let files = [
        ("layout/theme.liquid", "{{ content_for_header }}{{ content_for_layout }}{{ 'a.js' | asset_url }}"),
        ("assets/b.js", ""),
    ];
    let mut theme = CheckedTheme::read(files, None);
    let severity = |theme: &CheckedTheme| {
        theme
            .findings()
            .into_iter()
            .find(|finding| finding.code == "MissingAsset")
            .map(|finding| finding.severity)
    };
    assert_eq!(severity(&theme), Some(super::Severity::Error));
    theme.set_surroundings(Surroundings::of(["vite.config.js"], None, None));
    assert_eq!(severity(&theme), Some(super::Severity::Warning));
}
