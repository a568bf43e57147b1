//! The engine as a whole. Planted faults are in the tests of the crate `theme-scripts`.

use proptest::prelude::*;

use super::{CheckedTheme, Finding, Severity};

fn theme(files: &[(&str, &str)]) -> CheckedTheme {
    CheckedTheme::read(files.iter().copied(), None)
}

fn shown(findings: &[Finding]) -> Vec<(&str, u32, &str)> {
    findings.iter().map(|finding| (finding.path.as_str(), finding.line, finding.code)).collect()
}

#[test]
fn findings_have_paths_lines_and_severities() {
    let found = theme(&[("snippets/a.liquid", "<p>\n{% render 'b' %}{{ x | plus: 1, 2 }}</p>\n")]).findings();
    assert_eq!(
        shown(&found),
        [("snippets/a.liquid", 2, "FilterArguments"), ("snippets/a.liquid", 2, "MissingTemplate")]
    );
    assert!(found.iter().all(|finding| finding.severity == Severity::Error));
}

#[test]
fn a_change_adds_only_what_was_not_there() {
    let base = theme(&[
        ("snippets/a.liquid", "<p>{{ 'x' | nothing }}</p>\n"),
        ("sections/b.liquid", "{% render 'a' %}\n{% if true %}x\n"),
    ]);
    // The old finding moves down, a second one of the same kind is new.
    let moved = "<b>new</b>\n\n<p>{{ 'x' | nothing }}</p>\n<p>{{ 'y' | nothing }}</p>\n";
    let after = base.changed([("snippets/a.liquid", moved)], &[], None);
    assert_eq!(shown(&after.added_since(&base)), [("snippets/a.liquid", 4, "UnknownFilter")]);
    assert_eq!(base.added_since(&base), []);
    // A deleted file is missed where it is used.
    let after = base.changed(Vec::<(&str, &str)>::new(), &["snippets/a.liquid".to_owned()], None);
    assert_eq!(shown(&after.added_since(&base)), [("sections/b.liquid", 1, "MissingTemplate")]);
}

#[test]
fn the_second_of_two_equal_places_is_noticed() {
    let text = "<div class=\"a\">\n  <p>The same words</p>\n</div>\n<hr>\n<div class=\"a\">\n  <p>The same words</p>\n</div>\n";
    let base = theme(&[("snippets/a.liquid", text)]);
    let place = text.rfind("same").expect("it is there");
    let edited = format!("{}other{}", &text[..place], &text[place + 4..]);
    let after = base.changed([("snippets/a.liquid", edited.as_str())], &[], None);
    assert_eq!(shown(&after.added_since(&base)), [("snippets/a.liquid", 6, "EditedRepeatedText")]);
    let first = text.replacen("same", "other", 1);
    let after = base.changed([("snippets/a.liquid", first.as_str())], &[], None);
    assert_eq!(after.added_since(&base), []);
}

#[test]
fn what_strict_liquid_refuses_is_one_error_for_each_place() {
    let refused = |files: &[(&str, &str)]| {
        let findings = theme(files).findings();
        let refused = findings.into_iter().filter(|finding| finding.code.ends_with("SyntaxError"));
        refused
            .map(|finding| (finding.path, finding.line, finding.severity, finding.message))
            .collect::<Vec<_>>()
    };
    let error =
        |path: &str, line, message: &str| (path.to_owned(), line, Severity::Error, message.to_owned());
    let path = "snippets/a.liquid";
    assert_eq!(
        refused(&[(path, "{% if b == 7 > 1 %}\n{{ c | append 'd' }}\n{% if e %}\n{% endif %}\n")]),
        [
            error(
                path,
                1,
                "`if` does not expect `> 1`: one comparison has one operator: join comparisons with `and` (Liquid: Expected end_of_string but found comparison); until now, the shop read it as `if b == 7`"
            ),
            error(path, 1, "`if` has no `endif` (Liquid: 'if' tag was never closed)"),
            error(
                path,
                2,
                "an output does not expect `'d'`: filters follow a `|`, and their arguments a colon, with commas between them (Liquid: Expected end_of_string but found string); until now, the shop read it as `{{ c | append }}`"
            ),
        ]
    );
    // A setting of the type `liquid`, in a schema, a template and the stored settings, and a condition of a setting.
    let section = r#"<p>{{ section.settings.a }}</p>
{% schema %}
{ "name": "A", "settings": [
  { "type": "liquid", "id": "a", "label": "A", "default": "{{ b.0 }}" },
  { "type": "text", "id": "b", "label": "B", "visible_if": "{{ section.settings.a && true }}" }
] }
{% endschema %}"#;
    let template = r#"{ "sections": { "a": { "type": "a", "settings": { "a": "{% if %}{% endif %}", "b": "{% if %}" } } },
  "order": ["a"] }"#;
    let schema = r#"[{ "name": "theme_info", "theme_name": "A" }, { "name": "A", "settings": [{ "type": "liquid", "id": "c", "label": "C" }] }]"#;
    let files = [
        ("config/settings_data.json", r#"{ "current": { "c": "{% endif %}" } }"#),
        ("config/settings_schema.json", schema),
        ("sections/a.liquid", section),
        ("templates/page.json", template),
        ("assets/a.css.liquid", "a { color: {{ b = c }}; }"),
    ];
    let found = refused(&files);
    let places: Vec<_> = found.iter().map(|(path, line, ..)| (path.as_str(), *line)).collect();
    let expected = [
        ("assets/a.css.liquid", 1),
        ("config/settings_data.json", 1),
        ("sections/a.liquid", 4),
        ("sections/a.liquid", 5),
        ("templates/page.json", 1),
    ];
    assert_eq!(places, expected, "{found:#?}");
}

#[test]
fn what_is_accepted_without_effect_is_a_warning() {
    for text in [
        "{% if a %}{% else if b %}c{% endif %}",
        "{% if a %}{% else %}b{% else %}c{% endif %}",
        "{% case a %}{% when 1 %}b{% else %}c{% when 2 %}d{% endcase %}",
        "{% assign b = 'a' | upcase: %}{{ b }}",
        "{% assign the b = 'a' %}{{ b }}",
    ] {
        let found = theme(&[("snippets/a.liquid", text)]).findings();
        let [finding] = found.as_slice() else { panic!("{text}: {found:?}") };
        assert_eq!((finding.code, finding.severity), ("LiquidHTMLSyntaxError", Severity::Warning), "{text}");
    }
}

const PATHS: [&str; 11] = [
    "layout/theme.liquid",
    "sections/a.liquid",
    "blocks/a.liquid",
    "snippets/a.liquid",
    "sections/a.json",
    "templates/a.json",
    "config/settings_schema.json",
    "config/settings_data.json",
    "locales/en.default.json",
    "assets/a.css",
    "assets/a.css.liquid",
];

/// Pieces that open, close and cross everything that the checks know.
const PIECES: [&str; 48] = [
    "{% if a %}",
    "{% endif %}",
    "{% for b in section.blocks %}",
    "{% endfor %}",
    "{% case block.type %}",
    "{% when 'x' %}",
    "{% endcase %}",
    "{% else %}",
    "{% elsif %}",
    "{{ a | b: c, d: e }}",
    "{{ a",
    "{%",
    "%}",
    "}}",
    "{",
    "}",
    "<div class=\"a\" id='x'>",
    "</div>",
    "<",
    ">",
    "\"",
    "'",
    "<script>",
    "</script>",
    "<style>",
    "</style>",
    "{% schema %}",
    "{\"name\": \"x\", \"settings\": [{\"type\": \"range\", \"id\": \"a\"}]}",
    "{% endschema %}",
    "{% stylesheet %}",
    "{% endstylesheet %}",
    "{% liquid\nassign x = 1\n",
    "{% style %}",
    "{% endstyle %}",
    ".a {",
    "color: red;",
    "/*",
    "*/",
    "@media",
    "[",
    "]",
    ",",
    ":",
    "\n",
    "\r\n",
    "é…“",
    "{% capture x %}",
    "{% endcapture %}",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn no_text_makes_it_panic(pieces in prop::collection::vec(prop::sample::select(&PIECES[..]), 0..60)) {
        let text = pieces.concat();
        let base = CheckedTheme::read(PATHS.iter().map(|path| (*path, text.as_bytes())), None);
        for finding in base.findings() {
            prop_assert!(finding.line >= 1);
        }
        let half = text.chars().take(text.chars().count() / 2).collect::<String>();
        let after = base.changed([(PATHS[1], half.as_bytes())], &[PATHS[3].to_owned()], None);
        after.added_since(&base);
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        CheckedTheme::read(PATHS.iter().map(|path| (*path, bytes.as_slice())), None).findings();
    }
}

/// Their time is tested in the crate `theme-scripts`, with the parser of scripts.
#[test]
fn hostile_texts_have_a_bounded_number_of_findings() {
    for piece in [
        "{% if a %}",
        "<div>",
        "{",
        "[",
        "{{",
        "{% for a in b %}<p>",
        "<a b=\"",
        "{\"a\":",
        ".a{",
        "(",
        "{% else %}",
        "{% case x %}{% when 'a' %}<b>",
        "</i>",
    ] {
        let text = piece.repeat(5_000);
        let theme = CheckedTheme::read(PATHS.iter().map(|path| (*path, text.as_bytes())), None);
        assert!(theme.findings().len() < 20_000, "{piece}");
    }
}

#[test]
fn a_script_that_is_not_read_is_no_error_and_may_define_any_name() {
    struct Reader;
    impl super::script::ScriptReader for Reader {
        fn read(&self, source: &str, _: bool) -> super::script::ScriptFacts {
            if source.starts_with("deep") {
                super::script::ScriptFacts {
                    unread: Some((2, "it is too deep".to_owned())),
                    ..Default::default()
                }
            } else {
                super::script::ScriptFacts {
                    unresolved: vec![super::script::Unresolved {
                        name: "a".to_owned(),
                        at: 0,
                        is_library: false,
                    }],
                    ..Default::default()
                }
            }
        }
    }
    let found = |texts: &[(&str, &str)]| {
        let findings = CheckedTheme::read(texts.iter().copied(), Some(&Reader)).findings();
        let of_scripts = findings.into_iter().filter(|finding| finding.path.starts_with("assets/"));
        of_scripts.map(|finding| (finding.code, finding.severity, finding.message)).collect::<Vec<_>>()
    };
    assert_eq!(found(&[("assets/a.js", "a()")])[0].0, "UndefinedName");
    let expected = [("ScriptNotRead", Severity::Info, "it is too deep".to_owned())];
    assert_eq!(found(&[("assets/a.js", "a()"), ("assets/b.js", "deep")]), expected);
}

#[test]
fn nested_values_do_not_exhaust_the_stack() {
    for unit in ["[", "!", "(1..", "a["] {
        let text = format!("{{% if a{} %}}b{{% endif %}}", unit.repeat(50_000));
        let theme = CheckedTheme::read([("snippets/a.liquid", text.as_bytes())], None);
        assert!(!theme.findings().is_empty(), "{unit}");
    }
}

#[test]
fn suggestions_do_not_displace_errors() {
    let mut theme = CheckedTheme::default();
    let assigns: String = (0..700).map(|n| format!("{{% assign a{n} = 1 %}}\n")).collect();
    theme.add("snippets/a.liquid", (assigns + "{% if x %}").as_bytes(), None);
    let findings = theme.findings();
    assert!(findings.iter().any(|finding| finding.severity == Severity::Error), "the open `if` is last");
    // A text of ends only: the first errors are listed, and it is said that there are more.
    assert!(!theme.is_cut());
    theme.add("snippets/b.liquid", "{% endif %}\n".repeat(700).as_bytes(), None);
    assert!(theme.is_cut());
    let of_b =
        |finding: &&Finding| finding.path == "snippets/b.liquid" && finding.severity == Severity::Error;
    assert_eq!(theme.findings().iter().filter(of_b).count(), 500);
}

fn messages(files: &[(&str, &str)]) -> Vec<String> {
    theme(files)
        .findings()
        .into_iter()
        .map(|finding| format!("{} {}", finding.code, finding.message))
        .collect()
}

#[test]
fn layouts_of_shopify_have_variables_of_their_own() {
    let page =
        |body: &str| format!("<html><head>{{{{ content_for_header }}}}</head><body>{body}</body></html>");
    let found = |path: &str, body: &str| messages(&[(path, &page(body))]);
    let checkpoint = "{{ content_checkpoint }}";
    assert_eq!(found("layout/checkpoint.liquid", checkpoint), Vec::<String>::new());
    assert_eq!(found("layout/checkpoint.liquid", "{{ content_for_layout }}"), Vec::<String>::new());
    let lacks = "RequiredLayoutThemeObject the layout does not print `content_for_layout`";
    assert_eq!(found("layout/checkpoint.liquid", ""), [lacks]);
    let comment = "{% comment %}{{ content_for_layout }}{% endcomment %}";
    let named = "RequiredLayoutThemeObject the layout has `content_for_layout` only in a comment, so it does not print it";
    assert_eq!(found("layout/theme.liquid", comment), [named]);
    assert_eq!(
        found("layout/theme.liquid", checkpoint),
        [lacks, "UndefinedObject nothing defines `content_checkpoint`"]
    );
    let checkout = "{{ content_for_layout }}{{ checkout_html_classes }}{{ direction }}{{ content_for_logo }}";
    assert_eq!(found("layout/checkout.liquid", checkout), Vec::<String>::new());
    assert_eq!(found("layout/theme.liquid", checkout).len(), 3);
    assert_eq!(
        found("layout/checkout.liquid", "{{ content_for_layout }}{{ content_checkpoint }}"),
        ["UndefinedObject nothing defines `content_checkpoint`"]
    );
}

#[test]
fn a_section_group_stands_in_a_layout_only() {
    let group = ("sections/top.json", r#"{"type": "header", "name": "Top", "sections": {}, "order": []}"#);
    let text = "{% sections 'top' %}{{ content_for_header }}{{ content_for_layout }}";
    for path in ["sections/a.liquid", "snippets/a.liquid", "blocks/a.liquid", "templates/page.liquid"] {
        let found = messages(&[group, (path, text)]);
        let of = found.iter().filter(|message| message.starts_with("SectionsOutsideLayout ")).count();
        assert_eq!(of, 1, "{path} {found:?}");
    }
    for path in ["layout/theme.liquid", "layout/password.liquid"] {
        let found = messages(&[group, (path, text)]);
        assert!(!found.iter().any(|message| message.starts_with("SectionsOutsideLayout ")), "{found:?}");
    }
    // In a `liquid` tag, too. A comment is none.
    let found = messages(&[
        group,
        (
            "templates/page.liquid",
            "{% liquid\n  sections 'top'\n%}{% comment %}{% sections 'top' %}{% endcomment %}",
        ),
    ]);
    let of = found.iter().filter(|message| message.starts_with("SectionsOutsideLayout ")).count();
    assert_eq!(of, 1, "{found:?}");
}

#[test]
fn a_name_that_only_a_loop_reads_is_not_read() {
    let doc = "{% doc %}\n  @param {object} item - One\n{% enddoc %}\n";
    let unused = |text: &str| {
        let found = messages(&[("snippets/a.liquid", &format!("{doc}{text}"))]);
        found.iter().filter(|message| message.starts_with("UnusedDocParam ")).count()
    };
    for (text, expected) in [
        ("{% for item in collections %}{{ item.title }}{% endfor %}", 1),
        ("{% tablerow item in collections %}{{ item.title }}{% endtablerow %}", 1),
        ("{% for item in collections %}{% if a %}{{ item }}{% endif %}{% endfor %}", 1),
        ("{% for item in item.children %}{{ item.title }}{% endfor %}", 0),
        ("{% for item in collections limit: item.size %}{% endfor %}", 0),
        ("{% for item in collections %}{% else %}{{ item.title }}{% endfor %}", 0),
        ("{% for item in collections %}{{ item.title }}{% endfor %}{{ item.title }}", 0),
        ("{% for other in collections %}{{ item.title }}{% endfor %}", 0),
    ] {
        assert_eq!(unused(text), expected, "{text}");
    }
    // The same for a variable, and for an argument that a snippet gets.
    let text = "{% assign item = 1 %}{% for item in collections %}{{ item }}{% endfor %}";
    assert_eq!(messages(&[("sections/a.liquid", text)]), ["UnusedAssign the variable `item` is never read"]);
    let found = messages(&[
        ("snippets/a.liquid", "{% for item in collections %}{{ item }}{% endfor %}"),
        ("sections/a.liquid", "{% render 'a', item: 1 %}"),
    ]);
    assert_eq!(
        found,
        ["UnrecognizedRenderSnippetArguments the snippet `a` does not read the argument `item`"]
    );
}

#[test]
fn commas_and_comments_that_shopify_reads_are_warnings() {
    let found = |path: &str, text: &str| {
        let findings = theme(&[(path, text)]).findings();
        let of = findings.into_iter().filter(|finding| finding.code == "ValidJSON");
        of.map(|finding| (finding.line, finding.severity)).collect::<Vec<_>>()
    };
    let schema = "{% schema %}\n{\n  // the name\n  \"name\": \"A\",\n  \"settings\": [\n    {\"type\": \"text\", \"id\": \"a\", \"label\": \"A\",},\n  ],\n}\n{% endschema %}";
    let warning = |line: u32| (line, Severity::Warning);
    assert_eq!(found("sections/a.liquid", schema), [warning(3), warning(6), warning(6), warning(7)]);
    assert_eq!(found("blocks/a.liquid", schema).len(), 4);
    let text = "/* by Shopify */\n{\"a\": {\"b\": \"c\",\n},}";
    assert_eq!(found("locales/en.default.json", text), [warning(2), warning(3)]);
    // The schema is read: its settings are known.
    let section = format!("{{{{ section.settings.a }}}}{{{{ section.settings.b }}}}\n{schema}");
    let all = messages(&[("sections/a.liquid", &section)]);
    assert!(
        all.iter().any(|message| message.starts_with("UnknownSetting ") && message.contains("`b`")),
        "{all:?}"
    );
    assert!(
        !all.iter().any(|message| message.starts_with("UnknownSetting ") && message.contains("`a`")),
        "{all:?}"
    );
    // Two commas are no JSON for Shopify either.
    let twice = "{% schema %}{\"name\": \"A\",,}{% endschema %}";
    assert_eq!(found("sections/a.liquid", twice), [(1, Severity::Error)]);
}

#[test]
fn a_file_of_a_market_has_only_what_differs() {
    let part =
        r#"{"parent": "index.json", "context": {"market": "ca"}, "sections": {"a": {"settings": {}}}}"#;
    for path in ["templates/index.context.ca.json", "sections/top.context.ca.json"] {
        assert_eq!(messages(&[(path, part)]), Vec::<String>::new());
        let wrong = part.replace(r#"{"a": {"settings": {}}}"#, "[]");
        assert_eq!(messages(&[(path, &wrong)]), ["ValidTemplate `sections` must be an object, is an array"]);
        let unknown = part.replace("sections", "section");
        assert_eq!(messages(&[(path, &unknown)]).len(), 1, "{unknown}");
    }
    assert!(!messages(&[("templates/index.json", &part.replace("context", "contexts"))]).is_empty());
}

#[test]
fn settings_of_old_themes_are_settings() {
    let found = |text: &str| messages(&[("config/settings_schema.json", text)]);
    let info = r#"[{"name": "theme_info", "settings": [{"type": "paragraph", "content": "By us"}]}]"#;
    assert_eq!(found(info), Vec::<String>::new());
    assert!(!found(r#"[{"name": "theme_info"}]"#).is_empty());
    let image = r#"[{"name": "Logo", "settings": [{"type": "image", "id": "logo.png", "label": "Logo"}]}]"#;
    assert_eq!(found(image), Vec::<String>::new());
    let section = r#"{% schema %}{"name": "A", "settings": [{"type": "image", "id": "a", "label": "A"}]}{% endschema %}"#;
    assert!(
        messages(&[("sections/a.liquid", section)]).iter().any(|message| message.contains("`image`")),
        "{section}"
    );
}

#[test]
fn a_refused_place_has_one_finding() {
    let codes = |path: &str, text: &str| -> Vec<&'static str> {
        CheckedTheme::read([(path, text)], None).findings().iter().map(|finding| finding.code).collect()
    };
    for refused in [
        "{{ ‘products.price’ | t }}",
        "{% if a =“b” %}x{% endif %}",
        "{{ product.title\u{a0}| upcase }}",
        "{{ product.title | upcase: - 1 }}",
        "{% case product.title %}{% when 1 %}{% else x %}{% endcase %}",
        "{% if a – b %}x{% endif %}",
    ] {
        let found = codes("sections/a.liquid", refused);
        let about_syntax =
            found.iter().filter(|code| !matches!(**code, "UndefinedObject" | "RequiredLayoutThemeObject"));
        assert_eq!(about_syntax.collect::<Vec<_>>(), [&"LiquidSyntaxError"], "{refused}");
    }
    assert_eq!(codes("sections/a.liquid", "{% comment %}{{ “a” }}{% endcomment %}<p>a</p>"), [""; 0]);
    assert!(codes("sections/a.liquid", "<a href=“b”>a</a>").contains(&"SmartQuotes"));
    let section = "<p>{{ section.settings.a }}</p>{% schema %}{\"name\": \"A\", \"settings\": [{\"type\": \"liquid\", \"id\": \"a\", \"label\": \"A\"}]}{% endschema %}";
    let template = "{\"sections\": {\"a\": {\"type\": \"a\", \"settings\": {\"a\": \"{{ ‘b’ }}\"}}}, \"order\": [\"a\"]}";
    let findings =
        CheckedTheme::read([("sections/a.liquid", section), ("templates/page.json", template)], None)
            .findings();
    let in_template = findings.iter().filter(|finding| finding.path == "templates/page.json");
    assert_eq!(in_template.map(|finding| finding.code).collect::<Vec<_>>(), ["LiquidSyntaxError"]);
    // Scripts and stylesheets with Liquid are read, too.
    assert!(codes("assets/a.js.liquid", "let a = {{ a b }};").contains(&"LiquidSyntaxError"));
    assert!(codes("assets/a.css.liquid", "a { color: {{ a b }}; }").contains(&"LiquidSyntaxError"));
}

/// Of what browsers forgive, and of what the text does not tell, nothing is an error.
#[test]
fn doubts_are_warnings() {
    let errors = |path: &str, text: &str| {
        // As a change that adds the file.
        let findings = CheckedTheme::read([(path, text)], None).added_since(&CheckedTheme::default());
        let errors = findings.into_iter().filter(|finding| finding.severity == Severity::Error);
        errors.map(|finding| (finding.code, finding.line)).collect::<Vec<_>>()
    };
    let section = "sections/a.liquid";
    for (path, doubtful, certain, code) in [
        // Browsers ignore an end whose element is not open, also not around the section.
        (section, "<p>x</p></span>", "<p>x</p></div>", "UnclosedElement"),
        (section, "<b>x</b class=\"y\">", "<b>x</b\n<i>y</i>", "HtmlSyntax"),
        (section, "<{{- tag }} id=\"a\">x</{{ tag -}}>", "<{{ tag }}>x", "UnclosedElement"),
        // A heading ends with the end of any heading.
        (section, "<div><h2>x</h3></div>", "<div><h2>x<p>y</p></div>", "UnclosedElement"),
        // The end of the element around it ends it, but bold text goes on.
        (section, "<label><span>x<br></label>", "<label><b>x<br></label>", "UnclosedElement"),
        (
            section,
            "<div>{% form 'contact' %}<p>x</p></div>{% endform %}",
            "<div>{% form 'contact' %}<b>x</div>{% endform %}",
            "UnclosedElement",
        ),
        // A variable remembers whether the element is open.
        (
            section,
            "{% for b in section.blocks %}{% if open %}</div>{% endif %}{% if b.x %}{% assign open = true %}<div>{% else %}{% assign open = false %}{% endif %}{% endfor %}",
            "{% for b in section.blocks %}{% if open %}</div>{% endif %}{% endfor %}",
            "UnclosedElement",
        ),
        (section, "<p class=\"x\"\">y</p>", "<p class=\"x\" y\">z</p>", "StrayQuote"),
        (
            section,
            "<a data-text=\"&lt;b&gt;x&lt;/b&gt;\">y</a>",
            "&lt;div&gt;x&lt;/div&gt; &lt;div&gt;y&lt;/div&gt;",
            "EditingDamage",
        ),
        (section, "<p>a=“b”</p>", "<p class=“b”>a</p>", "SmartQuotes"),
        (
            section,
            "<style>a { b: c }\nd { e: f;</style>",
            "<style>a { b: c;\nd { e: f }</style>",
            "CssSyntax",
        ),
        ("assets/a.css", "a { b: c }\n/* d", "/* d\na { b: c }", "CssSyntax"),
        ("assets/a.css", "a {\n  // b: c;\n  d: e;\n}", "// a\nb { c: d }", "CssSyntax"),
        ("assets/a.css", "// a { b: c }\nd { e: f }", "// a\nd { e: f }", "CssSyntax"),
        ("assets/a.css", "a { b: c); }", "a { b: (c; }", "CssSyntax"),
        ("assets/a.css", "{ a: b }", "}\na { b: c }", "CssSyntax"),
        ("assets/a.css", "/* a\u{200b} */ b { c: d }", "\u{200b}b { c: d }", "InvisibleCharacter"),
        ("assets/a.js", "a = 'b'\n+ 'c'\n", "a = 'b';\n+ 'c';\n", "EditingDamage"),
        (section, "{{ 'a.min.js' | asset_url }}", "{{ 'a.png' | asset_url }}", "MissingAsset"),
        (section, "{{ 'a.js' | asset_url }}", "{{ 'a.svg' | asset_url }}", "MissingAsset"),
        ("config/a.json", "{}", "", ""),
        ("snippets/a.md", "x", "", ""),
        (section, "<i>&lt;div&gt;x&lt;/div&gt;</i>", "&lt;div&gt;x&lt;/div&gt;", "EditingDamage"),
        ("templates/agents.md.liquid", "# a\n- **b:** c, d,\n", "# a\n- <b>x</b>\n", "EditingDamage"),
        (section, "<!-- Unit price (unchanged) -->", "<!-- other code unchanged -->", "Placeholder"),
        (
            section,
            "{% paginate a.b by 1000 %}{% endpaginate %}",
            "{% paginate a.b by 0 %}{% endpaginate %}",
            "PaginationSize",
        ),
    ] {
        assert_eq!(errors(path, doubtful), [], "{path}: {doubtful}");
        if !code.is_empty() {
            let found = errors(path, certain);
            assert!(
                !found.is_empty() && found.iter().all(|(of, _)| *of == code),
                "{path}: {certain} {found:?}"
            );
        }
    }
}

#[test]
fn old_settings_are_no_errors() {
    let schema = r#"[{"name": "A", "settings": [
        {"type": "image", "id": "logo.png", "label": "Logo"},
        {"type": "snippet", "id": "bar", "label": "Bar"},
        {"type": "text", "id": "words"},
        {"type": "select", "id": "size", "label": "Size", "options": [{"value": "1"}]},
        {"type": "range", "id": "speed", "label": "Speed", "min": 1, "max": 9, "step": 1, "default": 1, "unit": {"en": "seconds"}}
    ]}]"#;
    let files =
        [("config/settings_schema.json", schema), ("sections/a.liquid", "{{ 'logo.png' | asset_url }}")];
    let findings = CheckedTheme::read(files, None).findings();
    assert!(findings.iter().all(|finding| finding.severity != Severity::Error), "{findings:?}");
}

#[test]
fn a_section_is_as_long_as_it_is_without_its_schema() {
    let codes = |text: &str| {
        let findings = CheckedTheme::read([("sections/a.liquid", text)], None).findings();
        findings.iter().any(|finding| finding.code == "FileSize")
    };
    let setting = r#"{"type": "header", "content": "A heading of many words for the settings"},"#;
    let settings = setting.repeat(5_000);
    let schema = format!(
        "{{% schema %}}{{\"name\": \"A\", \"settings\": [{}]}}{{% endschema %}}",
        settings.trim_end_matches(',')
    );
    assert!(schema.len() > 300_000 && !codes(&schema));
    assert!(codes(&format!("{}{schema}", "<p>x</p>\n".repeat(40_000))));
}

#[test]
fn what_a_tool_makes_may_be_missing() {
    let section = "{% include 'icon-cart' %}{{ 'theme.scss.css' | asset_url }}{{ 'theme.js' | asset_url }}";
    let errors = |more: &[(&str, &str)]| {
        let other = [("assets/a.css", "a { b: c }"), ("assets/a.js", "a();"), ("sections/a.liquid", section)];
        let findings = CheckedTheme::read(other.iter().chain(more).copied(), None).findings();
        findings.iter().filter(|finding| finding.severity == Severity::Error).count()
    };
    assert_eq!(errors(&[]), 3);
    assert_eq!(
        errors(&[("icons/icon-cart.svg", ""), ("styles/theme.scss", ""), ("scripts/theme.js", "")]),
        0
    );
}
