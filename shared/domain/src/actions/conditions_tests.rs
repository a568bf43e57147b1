use jiff::civil::{Date, date};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::conditions::{Check, MAX_JSON, Report, check, told};
use crate::validate::FieldErrors;
use crate::work::Condition;

const DAY: Date = date(2026, 11, 25);

fn conditions(value: Value) -> Vec<Condition> {
    serde_json::from_value(value).unwrap()
}

fn condition(value: Value) -> Vec<Condition> {
    conditions(json!([value]))
}

/// What is missing in these outputs.
fn unmet(conditions: &[Condition], outputs: &[&str]) -> Vec<String> {
    let mut check = Check::new(conditions, DAY);
    outputs.iter().zip('A'..).for_each(|(text, title)| check.output(&title.to_string(), text));
    check.report().unmet
}

#[track_caller]
fn meets(condition: &[Condition], text: &str, expected: bool) {
    let unmet = unmet(condition, &[text]);
    assert_eq!(unmet.is_empty(), expected, "{text:?}: {unmet:?}");
}

#[test]
fn conditions_have_a_wire_format() {
    let all = json!([
        {"kind": "min_words", "words": 200},
        {"kind": "names_today"},
        {"kind": "headings", "headings": ["Summary", "Sources"]},
        {"kind": "json", "schema": {"type": "object"}},
        {"kind": "links_only_to", "hosts": ["example.com"]},
    ]);
    assert_eq!(json!(conditions(all.clone())), all);
    let mut errors = FieldErrors::default();
    check(&mut errors, &conditions(all));
    assert_eq!(errors.to_string(), "");
}

#[test]
fn bad_conditions_are_refused_by_field_and_limit() {
    let refused = |value: Value| {
        let mut errors = FieldErrors::default();
        match serde_path_to_error::deserialize::<_, Vec<Condition>>(&value) {
            Ok(conditions) => check(&mut errors, &conditions),
            Err(error) => {
                let path = format!("conditions{}", error.path());
                errors = crate::text::wording::refusal("body", &path, &error.inner().to_string());
            }
        }
        errors.to_string()
    };
    let third = |value: Value| refused(json!([{"kind": "names_today"}, {"kind": "names_today"}, value]));
    for (value, message) in [
        (json!({"kind": "min_words", "words": 0}), "conditions[2].words: must be 1 to 50000, is 0"),
        (json!({"kind": "min_words", "words": 50_001}), "conditions[2].words: must be 1 to 50000, is 50001"),
        (
            json!({"kind": "min_words", "words": -1}),
            "conditions[2].words: must be a whole number from 0, is -1",
        ),
        (
            json!({"kind": "min_words", "words": "many"}),
            "conditions[2].words: must be a whole number from 0, is \"many\"",
        ),
        (json!({"kind": "min_words"}), "conditions[2].words: is required"),
        (
            json!({"kind": "names_today", "words": 3}),
            "conditions[2].words: is not a field here; the fields are `kind`",
        ),
        (
            json!({"kind": "headings", "words": 3, "headings": ["a"]}),
            "conditions[2].words: is not a field here; the fields are `kind` or `headings`",
        ),
        (json!({"words": 3}), "conditions[2].kind: is required"),
        (
            json!({"kind": "headings", "headings": []}),
            "conditions[2].headings: must have 1 to 20 items, has 0",
        ),
        (
            json!({"kind": "headings", "headings": vec!["a"; 21]}),
            "conditions[2].headings: must have 1 to 20 items, has 21",
        ),
        (
            json!({"kind": "headings", "headings": ["a", "é".repeat(201)]}),
            "conditions[2].headings[1]: must be 1 to 200 characters, is 201",
        ),
        (
            json!({"kind": "headings", "headings": ["##"]}),
            "conditions[2].headings[0]: must be the text of a heading, on one line",
        ),
        (
            json!({"kind": "json", "schema": {"pattern": "a"}}),
            "conditions[2].schema.pattern: is a keyword that is not supported",
        ),
        (json!({"kind": "json", "schema": 3}), "conditions[2].schema: must be an object"),
        (
            json!({"kind": "json", "schema": {"title": "x".repeat(16_384)}}),
            "conditions[2].schema: must be at most 16384 bytes, is 16396",
        ),
        (
            json!({"kind": "links_only_to", "hosts": []}),
            "conditions[2].hosts: must have 1 to 20 items, has 0",
        ),
    ] {
        assert_eq!(third(value.clone()), message, "{value}");
    }
    assert!(
        third(json!({"kind": "max_words", "words": 3}))
            .starts_with("conditions[2].kind: must be one of `min_words`")
    );
    for host in [
        "https://a.com",
        "a.com/x",
        "a.com:80",
        "*.a.com",
        "com",
        ".a.com",
        "a.com.",
        "a b.com",
        "u@a.com",
        "a..com",
    ] {
        let message = third(json!({"kind": "links_only_to", "hosts": ["b.com", host]}));
        assert!(
            message.starts_with("conditions[2].hosts[1]: must be a host name such as"),
            "{host}: {message}"
        );
    }
    for host in ["a.com", "A.com", "bücher.example", "10.0.0.7", "[::1]", "a_b.c-d.com"] {
        assert_eq!(third(json!({"kind": "links_only_to", "hosts": [host]})), "", "{host}");
    }
    let many = vec![json!({"kind": "names_today"}); 11];
    assert_eq!(refused(json!(many)), "conditions: must have at most 10 items, has 11");
    let large = vec![json!({"kind": "json", "schema": {"title": "x".repeat(12_000)}}); 3];
    assert!(refused(json!(large)).starts_with("conditions: must be at most 32768 bytes of JSON, is 36"));
}

#[test]
fn words_are_counted() {
    for (text, words) in [
        ("", 0),
        ("one two\nthree\t four", 4),
        ("well-known it's 3.5 – & *** a", 4),
        ("# Title\n\n- item", 2),
        ("灯油の価格", 5),
        ("価格 ABC", 3),
        ("価格ABC。", 3),
    ] {
        for (least, expected) in [(words, true), (words + 1, false)] {
            if least > 0 {
                meets(&condition(json!({"kind": "min_words", "words": least})), text, expected);
            }
        }
    }
    let two = condition(json!({"kind": "min_words", "words": 5}));
    assert_eq!(
        unmet(&two, &["one", "one two three", "one two"]),
        ["no output has at least 5 words: \"B\" has 3"]
    );
    assert_eq!(unmet(&two, &["one", "1 2 3 4 5", "one two"]), [""; 0]);
    assert_eq!(unmet(&two, &[]), ["no output has at least 5 words"]);
}

#[test]
fn the_date_is_found_in_its_forms() {
    let today = condition(json!({"kind": "names_today"}));
    for text in [
        "2026-11-25",
        "2026-11-25T09:00:00Z",
        "As of 25 November 2026, oil costs 7.",
        "25 NOVEMBER 2026",
        "25th November 2026",
        "the 25th of November 2026",
        "25 Nov 2026",
        "Wednesday, November 25, 2026",
        "November 25th, 2026",
        "Nov. 25, 2026",
        "November\u{a0}25,\n 2026",
        "(25.11.2026)",
        "25/11/2026",
        "**25 November 2026**",
        "report_2026-11-25",
    ] {
        meets(&today, text, true);
    }
    for text in [
        "",
        "2026-11-24",
        "2026-11-250",
        "12026-11-25",
        "125.11.2026",
        "25.11.20261",
        "25 November",
        "25 November 2025",
        "11/25/2026",
        "2026-25-11",
        "November 5, 2026",
        "yesterday",
    ] {
        meets(&today, text, false);
    }
    assert_eq!(
        unmet(&today, &["x"]),
        [
            "no output names the date 2026-11-25 (write for example 2026-11-25 or 25 November 2026): \"A\" does not name it"
        ]
    );
    let early = |text: &str| {
        let mut check = Check::new(&today, date(2026, 3, 5));
        check.output("A", text);
        check.report().unmet.is_empty()
    };
    for (text, expected) in [
        ("5.3.2026", true),
        ("05.03.2026", true),
        ("5 May 2026", false),
        ("25.3.2026", false),
        ("5th March 2026", true),
    ] {
        assert_eq!(early(text), expected, "{text}");
    }
}

#[test]
fn headings_are_found() {
    let both = condition(json!({"kind": "headings", "headings": ["## Summary", " sources "]}));
    for (text, expected) in [
        ("# Summary\n## Sources", true),
        ("### SUMMARY ###\ntext\n\n   # sources", true),
        ("Summary\n===\n\nSources\n---\n", true),
        ("# Summary", false),
        ("#Summary\n# Sources", false),
        ("# Summary\n```\n# Sources\n```", false),
        ("# Summary\n~~~\n```\n# Sources\n~~~", false),
        ("```\ncode\n```\n# Summary\n# Sources", true),
        ("# Summary\n    # Sources", false),
        ("# Summary\n# Sources of it", false),
        ("####### Summary\n# Sources", false),
        ("Summary\nSources", false),
    ] {
        meets(&both, text, expected);
    }
    assert_eq!(
        unmet(&both, &["x", "# Summary"]),
        ["no output has all of the headings \"## Summary\", \" sources \": \"B\" lacks \" sources \""]
    );
    // One output must have them all.
    assert_eq!(unmet(&both, &["# Summary", "# Sources"]).len(), 1);
}

#[test]
fn json_is_checked_against_the_schema() {
    let schema = json!({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]});
    let has_a = condition(json!({"kind": "json", "schema": schema}));
    meets(&has_a, " {\"a\": 1}\n", true);
    for (text, why) in [
        ("{\"a\": \"1\"}", "\"A\" does not match: `a` must be of type integer"),
        ("{}", "\"A\" does not match: the value must have the field `a`"),
        ("```json\n{\"a\": 1}\n```", "\"A\" is not valid JSON"),
        ("{\"a\": 1} and more", "\"A\" is not valid JSON"),
        ("", "\"A\" is not valid JSON"),
    ] {
        let [told] = unmet(&has_a, &[text]).try_into().unwrap();
        assert!(told.starts_with("no output is JSON that matches") && told.contains(why), "{told}");
    }
    assert_eq!(unmet(&has_a, &["x", "{\"a\": 1}"]), [""; 0]);
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    meets(&condition(json!({"kind": "json", "schema": {}})), &deep, false);
    let large = format!("\"{}\"", "x".repeat(MAX_JSON));
    meets(&condition(json!({"kind": "json", "schema": {}})), &large, false);
}

fn links() -> Vec<Condition> {
    condition(json!({"kind": "links_only_to", "hosts": ["good.com", "bücher.example"]}))
}

#[test]
fn links_to_permitted_hosts_pass() {
    for text in [
        "",
        "No links: e.g. a.b, x@y, 3/4 and https:// alone.",
        "https://good.com",
        "HTTP://GOOD.COM:8080/a?b=c#d",
        "https://sub.sub.good.com/x, (https://good.com). See https://good.com/a_(b)!",
        "[a](https://good.com)[b](https://good.com/2 \"title\") ![c](<https://good.com/a b>)",
        "**https://good.com** `https://good.com` \"https://good.com\", 'https://good.com'",
        "[a]: https://good.com/x 'Title'\n[b]: <https://good.com>\n",
        "<https://good.com/x>",
        "<form action=\"/save\"><meta name=description content=\"A shop // since 1999\"><p style=\"background: url('/x.png')\">",
        "The action = save, the data = {\"a\": 1}; @import \"x.css\"; url(//good.com/y.png)",
        "<a href=\"https://good.com/?a=1&amp;b=2\">x</a><img src='//good.com/x.png' srcset=\"/a.png 1x, b.png 2x\">",
        "[up](#sources) [other](other.md#x) [root](/a/b) [q](?a=b) [file](a%20b.md) [mail](a@b.md)",
        "{\"url\":\"https://good.com\",\"n\":1} [\"https://good.com\",\"https://a.good.com\"]",
        "https://bücher.example/ https://xn--bcher-kva.example/ https://BÜCHER.example",
        "https://good.com，然后",
        "www.good.com and http://www.good.com",
        "[Note]: this: is text\n[10:00]: meeting at: noon",
        "https://good.com/a\\_b and [x](https://good.com/a\\_b)",
        "<b>bold</b> <br/> a < b > c <p class=\"x\">",
    ] {
        meets(&links(), text, true);
    }
}

/// Each of these leads elsewhere in some program that shows it.
#[test]
fn links_to_other_hosts_do_not_pass() {
    for text in [
        "https://evil.com",
        "hTTps://EVIL.com",
        "xhttps://evil.com",
        "https://notgood.com",
        "https://good.com.evil.com",
        "https://good.comevil.com",
        "https://good.com@evil.com/",
        "https://good.com:x@evil.com/",
        "https://u:p@good.com/",
        "https://good.com)@evil.com/",
        "https://good.com\\@evil.com/",
        "https:\\\\evil.com",
        "https:/\\evil.com",
        "https:///evil.com",
        "https://good.com%2eevil.com",
        "https://good.com%00.evil.com",
        "https://good.com。evil.com",
        "https://good.com\u{200b}.evil.com",
        "https://good.com\u{ad}.evil.com",
        "https://good.com).evil.com/",
        "https://good.com\".evil.com/",
        "https://good.com,.evil.com/",
        "https://good.com&period;evil.com",
        "https://gооd.com",
        "https://good.com./",
        "https://..good.com",
        "https://1.2.3.4",
        "http://0x7f.1",
        "http://[::1]/",
        "https://good.com/?to=https://evil.com",
        "www.evil.com",
        "Text WWW.evil.com",
        "ftp://good.com/x",
        "[x](https://evil.com)",
        "[x](<https://evil.com>)",
        "[x]( \n https://evil.com )",
        "[x](//evil.com)",
        "[x](//evil.com/good.com)",
        "[x](\\/\\/evil.com)",
        "[x](/\\evil.com)",
        "[x](\\\\evil.com)",
        "[x](///evil.com)",
        "[x](https:evil.com)",
        "[x](https:good.com)",
        "[x](javascript:alert(1))",
        "[x](JavaScript:alert(1))",
        "[x](javascript\\:alert(1))",
        "[x](java&#115;cript:alert(1))",
        "[x](javascript&colon;alert(1))",
        "[x](&#47;&#47;evil.com)",
        "[x](/&#47;evil.com)",
        "[x](&sol;&sol;evil.com)",
        "[x](data:text/html,x)",
        "[x](mailto:a@good.com)",
        "[x](vbscript:x)",
        "[x](https://good.com\\.evil.com)",
        "[x](https://good.com\\)@evil.com)",
        "![x](//evil.com/pixel.png)",
        "[x]: //evil.com",
        "[x]: javascript:alert(1)",
        "[x]:\n  //evil.com 'title'",
        "[x]: <//evil.com>",
        "<ftp://evil.com>",
        "<javascript:alert(1)>",
        "<a@evil.com>",
        "<mailto:a@evil.com>",
        "<a href=//evil.com>",
        "<a href = \"//evil.com\">",
        "<a HREF='//evil.com'>",
        "<a href=\"java\nscript:alert(1)\">",
        "<a href=\"java&Tab;script:alert(1)\">",
        "<a href=\" javascript:alert(1)\">",
        "<a href=\"\u{1}javascript:alert(1)\">",
        "<a href=\"&#x2f;&#x2f;evil.com\">",
        "<a href=\\\"//evil.com\\\">",
        "<img src=//evil.com/x>",
        "<img srcset=\"/a.png 1x, //evil.com/b.png 2x\">",
        "<svg xlink:href=\"//evil.com\">",
        "<form action=\"//evil.com/x\">",
        "<button formaction='//evil.com'>",
        "<object data=//evil.com>",
        "<video poster=\"//evil.com/x.png\">",
        "<a href=\"/\" ping=\"/a //evil.com/b\">",
        "<blockquote cite=\"//evil.com\">",
        "<meta http-equiv=refresh content=\"0; URL='//evil.com'\">",
        "<p style=\"background: url(//evil.com/x.png)\">",
        "<style>a { background: URL( '//evil.com' ) }</style>",
        "<style>@import \"//evil.com/x.css\";</style>",
        "```\nhttps://evil.com\n```",
    ] {
        meets(&links(), text, false);
        meets(&links(), &format!("Öl: {text}\nende"), false);
    }
}

#[test]
fn foreign_links_are_named() {
    let texts =
        ["[a](https://evil.com/x) https://good.com", "//x https://a.evil.com https://b.evil.com <data:x>"];
    assert_eq!(
        unmet(&links(), &texts[..1]),
        [
            "links may lead only to good.com, bücher.example and their subdomains: \"A\" has `https://evil.com/x`, \
         which leads to evil.com, `https://evil.com`, which leads to evil.com"
        ]
    );
    // The links of all outputs count.
    assert_eq!(unmet(&links(), &["https://good.com", texts[1]]).len(), 1);
    assert_eq!(unmet(&links(), &[]), [""; 0]);
    let many = (0..100).map(|n| format!("https://e{n}.com ")).collect::<String>();
    assert_eq!(unmet(&links(), &[&many])[0].matches("leads to").count(), 3);
}

#[test]
fn hostile_texts_are_checked_in_time() {
    let unit = |text: &str, length: usize| text.repeat(length / text.len());
    for text in [
        unit("](", 60_000),
        unit("](a)", 60_000),
        unit("](](](](](](](](](] ", 60_000),
        unit("https://good.com/", 60_000),
        unit("https://good.com ", 60_000),
        unit("<", 60_000),
        unit("href=\"", 60_000),
        unit("www.", 60_000),
        unit("[a]:", 60_000),
        unit("\\", 60_000),
        unit("&#47;", 60_000),
        unit("```", 60_000),
        unit("\"", 200_000),
        unit("\\\"", 200_000),
        unit("\"\\/", 200_000),
        unit("'\\x2f", 200_000),
        unit("\"\\u002f\" ", 200_000),
        unit("\"\\u{2f", 200_000),
        format!("See \"\\u0061{}", unit("\\\\\\\"", 200_000)),
        unit("#", 60_000),
        unit("25 november ", 60_000),
    ] {
        unmet(&all(), &[&text]);
    }
}

/// One of each kind.
fn all() -> Vec<Condition> {
    let mut all = links();
    all.extend(conditions(json!([
        {"kind": "min_words", "words": 3}, {"kind": "names_today"}, {"kind": "headings", "headings": ["Summary"]},
        {"kind": "json", "schema": {"type": "object"}},
    ])));
    all
}

#[test]
fn a_run_is_told_its_conditions() {
    assert_eq!(told(&[]), "");
    insta::assert_snapshot!(told(&all()));
}

proptest! {
    #[test]
    fn no_text_panics(text in any::<String>(), title in any::<String>()) {
        let mut check = Check::new(&all(), DAY);
        check.output(&title, &text);
        let report = check.report();
        prop_assert_eq!(Report::read(&report.to_text()).unwrap(), report);
    }

    /// Texts of the pieces that links are made of.
    #[test]
    fn no_markup_panics(pieces in prop::collection::vec(prop::sample::select(vec![
        "](", "]:", "[a", "<", ">", "https://", "http:", "//", "/", "\\", "@", "good.com", "evil.com", "www.", "href=",
        "src", "srcset", "=", "\"", "'", "&#47;", "%2f", " ", "\n", "\u{200b}", "ö", "。", "`", "```", "#", "(", ")", ":",
        "javascript:", "data:", "[::1]", "1.2.3.4",
    ]), 0..30)) {
        unmet(&all(), &[&pieces.concat()]);
    }

    /// Wherever it stands, a URL of another host is found.
    #[test]
    fn a_foreign_url_is_found_everywhere(before in "\\PC{0,40}", after in "([ /?#\n]\\PC{0,40})?") {
        let text = format!("{before}https://evil.example{after}");
        prop_assert!(!unmet(&links(), &[&text]).is_empty());
    }

    #[test]
    fn reports_do_not_depend_on_the_order_of_checks(a in "\\PC{0,60}", b in "\\PC{0,60}") {
        prop_assert_eq!(unmet(&all(), &[&a, &b]).len(), unmet(&all(), &[&b, &a]).len());
    }
}
