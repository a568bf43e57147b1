//! The verdicts of Liquid itself are in `tests/liquid/strict`, which says how they are made.

use proptest::prelude::*;

use super::*;

/// A template, what `strict2` says of it, and whether `strict` and `lax` refuse it.
type Verdict = (String, serde_json::Value, u8, u8);

const VERDICTS: &str = include_str!("../../../../tests/liquid/strict/verdicts.jsonl");

fn verdicts() -> Vec<Verdict> {
    let mut lines = VERDICTS.lines();
    assert_eq!(lines.next(), Some(r#"["Liquid","5.13.0"]"#));
    lines.map(|line| serde_json::from_str(line).expect("a line is a verdict")).collect()
}

#[test]
fn every_verdict_is_that_of_liquid() {
    let verdicts = verdicts();
    assert!(verdicts.len() >= 5_000, "only {} templates", verdicts.len());
    let accepted = verdicts.iter().filter(|(_, said, ..)| said == 0).count();
    assert!((2_000..verdicts.len() - 2_000).contains(&accepted), "{accepted} are accepted");
    let mut wrong = Vec::new();
    for (template, said, ..) in &verdicts {
        let found = refusals(template);
        // Liquid stops at its first error. We name the same one, in its words.
        let is_same = match said.as_str() {
            None => found.is_empty(),
            Some(said) => found.iter().any(|refusal| refusal.parser == said),
        };
        if !is_same {
            wrong.push(format!("{template:?}\n  Liquid: {said}\n  ours: {found:?}"));
        }
    }
    assert!(wrong.is_empty(), "{} of {} differ:\n{}", wrong.len(), verdicts.len(), wrong.join("\n"));
}

#[test]
fn what_the_tolerant_parser_refused_has_no_tolerant_reading() {
    for (template, said, _, lax) in verdicts() {
        let found = refusals(&template);
        if let (false, 1, [only]) = (said == 0, lax, found.as_slice()) {
            assert_eq!(only.lax, None, "{template:?}");
        }
    }
}

/// A template that both parsers accept, and whether they show different things.
const OTHERWISE: &str = include_str!("../../../../tests/liquid/strict/otherwise.jsonl");

#[test]
fn what_is_shown_otherwise_is_named() {
    let mut lines = OTHERWISE.lines();
    assert_eq!(lines.next(), Some(r#"["Liquid","5.13.0"]"#));
    let (mut named, mut missed, mut same) = (0, Vec::new(), Vec::new());
    for line in lines {
        let (template, differs): (String, u8) = serde_json::from_str(line).expect("a line is a verdict");
        let found = read(&template);
        assert_eq!(found.refusals, [], "{template}");
        match (differs == 1, found.otherwise.is_empty()) {
            (true, false) => named += 1,
            (true, true) => missed.push(template),
            (false, false) => same.push((template, found.otherwise)),
            (false, true) => {}
        }
    }
    assert!(named > 500, "only {named}");
    assert!(missed.is_empty(), "{missed:#?}");
    // They are read otherwise, and show the same in the three shops by chance.
    assert!(same.len() < 230, "{} {same:#?}", same.len());
}

#[test]
fn what_is_read_the_same_is_not_named() {
    let named = |text: &str| {
        let found = read(text).otherwise;
        assert!(found.iter().all(|found| !found.tag.of(text).is_empty()), "{text}");
        found.into_iter().map(|found| found.sentence).collect::<Vec<_>>()
    };
    for text in [
        "{% if a == 'b' and c.d contains \"x, y: z\" %}{% elsif a['b' ] %}{% endif %}",
        "{% for  i in a.b  limit : 2,offset:1 %}{% endfor %}{% for i in (1..a.b) reversed %}{% endfor %}",
        "{% render 's' , k : 'a: b', l: 'c, d' %}{% render 's' for a as b,c:1 %}{% include a.b %}",
        "{% cycle 'a','b', %}{% cycle 'g': a, \"b: c\" %}{% cycle nil %}{% cycle nil: 'a', 'b' %}",
        "{{ a . b | append: ( 1 .. 2 ) }}{% assign x = a [ 0 ] %}{% echo a . b %}",
        "{% case a %}{% when 'a', \"b\" or 1 %}{% endcase %}{% tablerow i in a,cols:2 %}{% endtablerow %}",
    ] {
        assert_eq!(named(text), [""; 0], "{text}");
    }
    assert_eq!(named("{% liquid\n  if a=='b'\n  endif\n%}"), ["until now, the shop read it as `if a.b`"]);
    assert_eq!(named("{% cycle 'a', nil, 'b' %}"), ["until now, the shop read it as `cycle 'a', 'b'`"]);
    assert_eq!(named("{% cycle 'a, b', 'c' %}"), ["until now, the shop read it as `cycle a, b, 'c'`"]);
    assert_eq!(
        named("{% for i in ( 1..2) %}{% endfor %}"),
        ["until now, the shop read it as `for i in nil`"]
    );
}

#[test]
fn all_faults_are_named_with_their_places() {
    let check = |text: &str, expected: &[(&str, &str)]| {
        let found = refusals(text);
        let shown: Vec<_> =
            found.iter().map(|refusal| (refusal.place.of(text), refusal.message.as_str())).collect();
        assert_eq!(shown, expected, "{text}");
    };
    check(
        "{{ '{{' }}{%- # {% echo 'x' %} -%}{% comment %}{% raw %}{% endcomment %}{% endraw %}{% endcomment a %}",
        &[],
    );
    check(
        "{{ ['a'] }}{{ a.0 }}{% endfor %}",
        &[
            (
                "[",
                "a square bracket needs a name before it: a variable by its name is `self['name']`; Liquid has no lists, use `split`",
            ),
            ("0", "`.0` is no property: write `[0]`"),
            ("{% endfor %}", "`endfor` has no `for` that it could end here"),
        ],
    );
    check(
        "{% if a = b %}{% elsif a && b %}{% endif %}",
        &[("=", "`=` is not Liquid: use `==`"), ("&", "`&&` is not Liquid: use `and`")],
    );
    check(
        "{% liquid\nif a\n  assign b? = 1\nendif\nfor c in d limit:2 reversed\nendfor\n%}",
        &[
            ("b? = 1", "`b? = 1` is no name of a variable: a name has letters, digits, `_` and `-`"),
            ("reversed", "`reversed` stands behind the list, before `limit` and `offset`"),
        ],
    );
    check("{% if a %}{% for b in c %}{% endif %}", &[("{% for b in c %}", "`for` has no `endfor`")]);
    check("{{ a\n{% if b %}{% endif %}", &[("{{", "an output has no `}}`")]);
    check("{% # a\nb\n#c\nd %}", &[("", "2 lines of the comment lack `#`: each line begins with it")]);
}

#[test]
fn the_tags_that_only_shopify_has_are_read() {
    for accepted in [
        "{% form 'product', product, id: x, class: 'a' %}{% endform %}",
        "{% form 'contact' %}{% endform %}",
        "{% paginate a.b by 12 %}{% endpaginate %}",
        "{% paginate a by section.settings.n, window_size: 3, %}{% endpaginate %}",
        "{% section 'a' %}{% sections 'b' %}{% layout none %}{% layout 'a' %}",
        "{% content_for 'blocks' %}{% content_for 'block', type: 'a', id: 'b', closest.product: c %}",
        "{% style %}a{ {{ b }} }{% endstyle %}{% stylesheet %}{{ {% endstylesheet %}{% stylesheet 'scss' %}{% endstylesheet %}",
        "{% schema %}{\"a\": \"{{\"}{% endschema %}{% javascript %}{% if %}{% endjavascript %}",
        "{% render block %}{% for b in section.blocks %}{% render b, a: 1 %}{% endfor %}",
    ] {
        assert_eq!(refusals(accepted), [], "{accepted}");
    }
    for refused in [
        "{% form %}{% endform %}",
        "{% form id: 'a' %}{% endform %}",
        "{% form 'a', b, c %}{% endform %}",
        "{% form 'a', b: c, d %}{% endform %}",
        "{% form 'a', %}{% endform %}",
        "{% form 'a' b: 1 %}{% endform %}",
        "{% paginate a %}{% endpaginate %}",
        "{% paginate a by 3 %}",
        "{% section a %}",
        "{% sections 'a', b: 1 %}",
        "{% content_for a %}",
        "{% layout %}",
        "{% style a %}{% endstyle %}",
        "{% schema 'a' %}{% endschema %}",
        "{% schema %}",
        "{% javascript a %}{% endjavascript %}",
        "{% stylesheet 'less' %}{% endstylesheet %}",
        "{% render b %}",
    ] {
        assert_ne!(refusals(refused), [], "{refused}");
    }
}

#[test]
fn nesting_has_no_limit_that_breaks() {
    for unit in [
        "[",
        "(",
        "a[",
        "(1..",
        "a.",
        "{{",
        "{%",
        "{% if a %}",
        "{% liquid liquid ",
        "{% raw %}",
        "{% comment %}{% raw %}",
    ] {
        for around in ["{{ ", "{% if a", "{% assign a = ", ""] {
            let text = format!("{around}{}", unit.repeat(20_000));
            let is_plain = around.is_empty() && !unit.starts_with('{');
            assert_eq!(refusals(&text).is_empty(), is_plain, "{around}{unit}");
        }
    }
}

/// Pieces of templates whose places are compared with the text.
const PIECES: [&str; 30] = [
    "{{", "}}", "{%", "%}", "-", " ", "\n", "a", "b.c", "'x", "'", "[", "]", "(", "..", ")", "|", ":", ",",
    "=", "if", "endif", "for", " in ", "liquid", "raw", "endraw", "comment", "é", "#",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn places_are_in_the_text(pieces in prop::collection::vec(prop::sample::select(&PIECES[..]), 0..40)) {
        let text = pieces.concat();
        for refusal in refusals(&text) {
            for span in [refusal.place, refusal.tag, refusal.markup] {
                prop_assert!(text.get(span.start as usize..span.end as usize).is_some(), "{text:?}: {refusal:?}");
            }
            prop_assert!(refusal.tag.start <= refusal.markup.start && refusal.markup.end <= refusal.tag.end);
            prop_assert!(!refusal.message.is_empty() && !refusal.parser.is_empty());
        }
    }
}

#[test]
fn the_tolerant_reading_is_told() {
    let check = |text: &str, expected: &str| {
        let found = refusals(text);
        let sentence =
            found.first().and_then(|refusal| refusal.lax.as_ref()).map_or("", |lax| lax.sentence.as_str());
        assert_eq!(sentence, expected, "{text}: {found:?}");
    };
    check("{% if a > 1 > 100 %}{% endif %}", "until now, the shop read it as `if a > 1`");
    check("{% if (a or b) and c %}{% endif %}", "until now, the shop read it as `if a or b and c`");
    check("{% if a && b %}{% endif %}", "until now, the shop read it as `if a`");
    check(
        "{% if a = b %}{% endif %}",
        "until now, the comparison failed with `Liquid error: Unknown operator =`",
    );
    check("{{ a | append 'b' | upcase }}", "until now, the shop read it as `{{ a | append | upcase }}`");
    check("{{ a | image_url: width = 3 }}", "until now, the shop read it as `{{ a | image_url: width }}`");
    check("{{ ['a'].b }}", "until now, the shop read it as `{{ self['a'].b }}`");
    check("{{ a.0 }}", "until now, the shop read it as `{{ a['0'] }}`");
    check("{% assign a = b == c %}", "until now, the shop read it as `assign a = b`");
    check("{% assign a.b = 1 %}", "until now, the shop set a variable of the name `a.b`");
    check(
        "{% for a in b limit:2 reversed %}{% endfor %}",
        "until now, the shop read it as `for a in b limit: 2`",
    );
    check("{% cycle 'a' 'b', nil, c d %}", "until now, the shop read it as `cycle 'a', c`");
    check("{% render 'a', b = c, d: e | f %}", "until now, the shop read it as `render 'a', d: e`");
    check("{% capture 'a' %}{% endcapture %}", "until now, the shop read it as `capture a`");
    check("{% case a or b %}{% endcase %}", "until now, the shop read it as `case a`");
    check("{% if %}{% endif %}", "");
    check("{% form 'a' b %}{% endform %}", "");
}
