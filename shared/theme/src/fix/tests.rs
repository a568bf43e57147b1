use proptest::prelude::*;

use super::*;

/// A template, the mended one, and what Liquid says of it: 0, if it accepts it and shows the same as before; 1, if it accepts it and has
/// never shown the old one; 2, if it accepts it and shows something else; or what is wrong.
type Judged = (String, String, serde_json::Value);

const MENDS: &str = include_str!("../../../../tests/liquid/strict/mends.jsonl");
const MEANT: &str = include_str!("../../../../tests/liquid/strict/meant.jsonl");
const VERDICTS: &str = include_str!("../../../../tests/liquid/strict/verdicts.jsonl");

/// The templates that Liquid refuses, and their mends.
fn mended(how: How) -> Vec<(String, Fixed)> {
    type Verdict = (String, serde_json::Value, u8, u8);
    let verdicts =
        VERDICTS.lines().skip(1).map(|line| serde_json::from_str::<Verdict>(line).expect("a verdict"));
    let mended = verdicts.map(|(template, ..)| {
        let fixed = file("snippets/a.liquid", &template, how);
        (template, fixed)
    });
    mended.filter(|(_, fixed)| !fixed.changes.is_empty() && fixed.left.is_empty()).collect()
}

/// The verdicts of Liquid for these mends, in their order. `tests/liquid/strict/mends.rb` says how Liquid is asked again.
fn judged(recorded: &str, ours: &[(String, Fixed)]) -> Vec<Judged> {
    let mut lines = recorded.lines();
    assert_eq!(lines.next(), Some(r#"["Liquid","5.13.0"]"#));
    let judged: Vec<Judged> =
        lines.map(|line| serde_json::from_str(line).expect("a line is a mend")).collect();
    let known = judged.iter().map(|(old, new, _)| (old.as_str(), new.as_str()));
    let ours_now = ours.iter().map(|(old, fixed)| (old.as_str(), fixed.text.as_str()));
    let changed = ours_now.zip(known).find(|(ours, known)| ours != known);
    assert!(changed.is_none() && ours.len() == judged.len(), "ask Liquid again, with mends.rb: {changed:?}");
    judged
}

#[test]
fn every_mend_is_accepted_by_liquid_and_shows_the_same() {
    let judged = judged(MENDS, &mended(How::AsShown));
    let wrong: Vec<&Judged> = judged.iter().filter(|(.., said)| said != 0 && said != 1).collect();
    assert!(wrong.is_empty(), "{} of {}: {wrong:#?}", wrong.len(), judged.len());
    assert!(judged.len() > 7_000, "only {} mends", judged.len());
}

#[test]
fn every_mend_as_meant_is_accepted_by_liquid_and_says_whether_the_page_changes() {
    let shown: FxHashSet<(String, String)> =
        mended(How::AsShown).into_iter().map(|(old, fixed)| (old, fixed.text)).collect();
    let mut ours = mended(How::AsMeant);
    ours.retain(|(old, fixed)| !shown.contains(&(old.clone(), fixed.text.clone())));
    let judged = judged(MEANT, &ours);
    let says = |fixed: &Fixed| fixed.changes.iter().any(|change| change.output.is_some());
    let wrong: Vec<_> = judged
        .iter()
        .zip(&ours)
        .filter(|((.., said), (_, fixed))| said != 0 && said != 1 && !(said == 2 && says(fixed)))
        .map(|(judged, (_, fixed))| (judged, &fixed.changes))
        .collect();
    assert!(wrong.is_empty(), "{} of {}: {wrong:#?}", wrong.len(), judged.len());
    let other = judged.iter().filter(|(.., said)| said == 2).count();
    assert!(judged.len() > 140 && other > 100, "{} mends, {other} of them show something else", judged.len());
}

#[test]
fn liquid_in_json_is_mended_and_escaped_again() {
    let schema = r#"<p>{{ x y }}</p>
{% schema %}
{"name": "A", "settings": [
  {"type": "liquid", "id": "code", "label": "C", "default": "{{ a\u0020b }}\n{{ 'x\/y' | append \u0022é\" }}"},
  {"type": "text", "id": "t", "label": "T", "default": "{{ a b }}", "visible_if": "{{ section.settings.code != \"x\" && c }}"}],
 "blocks": [{"type": "own", "name": "O", "settings": [{"type": "liquid", "id": "more", "label": "M"}]}],
 "presets": [{"name": "P", "settings": {"code": "{{ d e }}"}, "blocks": [{"type": "own", "settings": {"more": "{{ f g }}"}},
  {"type": "there", "settings": {"html": "{{ h i }}"}}]}]}
{% endschema %}"#;
    let mut mender = Mender::new(How::AsShown);
    mender.learn("sections/a.liquid", schema);
    mender.learn(
        "blocks/there.liquid",
        r#"{% schema %}{"settings": [{"type": "liquid", "id": "html"}]}{% endschema %}"#,
    );
    mender
        .learn("config/settings_schema.json", r#"[{"settings": [{"type": "liquid", "id": "theme_code"}]}]"#);
    let check = |mender: &Mender, path: &str, text: &str, pairs: &[(&str, &str)]| {
        let fixed = mender.mend(path, text).expect("it has mends");
        let new = pairs.iter().fold(text.to_owned(), |text, (old, new)| text.replacen(old, new, 1));
        assert_eq!(fixed.text, new);
        assert_eq!((fixed.changes.len(), fixed.left), (pairs.len(), Vec::new()));
        assert_eq!(mender.mend(path, &new), None, "mended once, nothing is mended again");
        fixed.changes.into_iter().map(|change| (change.line, change.reason)).collect::<Vec<_>>()
    };
    let reasons = check(
        &mender,
        "sections/a.liquid",
        schema,
        &[
            ("{{ x y }}", "{{ x }}"),
            (r"{{ a\u0020b }}", "{{ a }}"),
            (r#" | append \u0022é\" }}"#, " | append }}"),
            (r#"!= \"x\" && c }}"#, r#"!= \"x\" }}"#),
            ("{{ d e }}", "{{ d }}"),
            ("{{ f g }}", "{{ f }}"),
            ("{{ h i }}", "{{ h }}"),
        ],
    );
    assert_eq!(reasons.iter().map(|(line, _)| *line).collect::<Vec<_>>(), [1, 4, 4, 5, 7, 7, 8]);
    assert!(reasons[3].1.starts_with("the `visible_if` of `t`: `&&` is not Liquid"), "{reasons:?}");
    let template = r#"/* made by Shopify */
{"sections": {"one": {"type": "a", "settings": {"code": "{{ a b }}é\/", "t": "{{ a b }}"}, "blocks": {"b": {"type": "there", "settings": {"html": "	{{ c d }}"}}}}}}"#;
    let pairs = [("{{ a b }}", "{{ a }}"), ("{{ c d }}", "{{ c }}")];
    let reasons = check(&mender, "templates/index.json", template, &pairs);
    assert!(reasons[1].1.starts_with("the Liquid of `html`: "), "{reasons:?}");
    check(&mender, "sections/group.json", template, &pairs);
    check(
        &mender,
        "config/settings_data.json",
        r#"{"current": {"theme_code": "{{ a b }}", "sections": {"s": {"type": "a", "settings": {"code": "{{ c d }}"}}}}, "presets": {"P": {"theme_code": "{{ e f }}"}}}"#,
        &[("{{ a b }}", "{{ a }}"), ("{{ c d }}", "{{ c }}"), ("{{ e f }}", "{{ e }}")],
    );
    // What is written in the place of a text with quotes and lines is escaped.
    let mut meant = mender.clone();
    meant.how = How::AsMeant;
    let template = r#"{"sections": {"one": {"type": "a", "settings": {"code": "{% if a | append: \"\\\" %}x{% endif %}"}}}}"#;
    check(
        &meant,
        "templates/index.json",
        template,
        &[(
            r#"{% if a | append: \"\\\" %}"#,
            r#"{% assign a_append = a | append: \"\\\" -%}\n{% if a_append %}"#,
        )],
    );
    // What has no mend is listed.
    let fixed = mender.mend("sections/a.liquid", r#"{% schema %}{"settings": [{"type": "text", "id": "t", "visible_if": "{{ a = b }}"}]}{% endschema %}"#);
    let left = fixed.expect("it is listed").left;
    assert_eq!((left[0].kind, left[0].place.as_str()), ("Character", "{{ a = b }}"), "{left:?}");
    assert_eq!(
        mender.mend(
            "templates/b.json",
            r#"{"sections": {"one": {"type": "none", "settings": {"code": "{{ a b }}"}}}}"#
        ),
        None
    );
}

#[test]
fn what_shopify_accepts_is_mended_by_name() {
    let text = "{% schema %}\n{\"name\": \"A\",\n  \"name\": \"A\",\n  \"class\": \"x\", \"class\": \"y\",\n  \"settings\": [{\"a\": [1, {\"b\": null}], \"a\": [1, {\"b\": null}],},],\n}\n{% endschema %}";
    let fixed = |also: Vec<Also>| Mender::new(How::AsShown).also(also).mend("sections/a.liquid", text);
    assert_eq!(fixed(Vec::new()), None);
    let mended = fixed(vec![Also::DuplicateKey]).expect("two keys");
    let new = text.replacen("\"name\": \"A\",\n  ", "", 1).replacen("\"a\": [1, {\"b\": null}], ", "", 1);
    assert_eq!((mended.text.as_str(), mended.was_refused()), (new.as_str(), false));
    assert_eq!(
        mended.changes.iter().map(|change| (change.line, change.code)).collect::<Vec<_>>(),
        [(2, "DuplicateKey"), (5, "DuplicateKey")]
    );
    let mended = fixed(vec![Also::ValidJson]).expect("three commas");
    assert_eq!(mended.text, text.replace(",}", "}").replace("],\n}", "]\n}").replace(",]", "]"));
    let both = fixed(vec![Also::ValidJson, Also::DuplicateKey]).expect("both");
    let body = both.text.trim_start_matches("{% schema %}").trim_end_matches("{% endschema %}");
    assert_eq!(both.changes.len(), 5);
    assert!(serde_json::from_str::<serde_json::Value>(body).is_ok(), "{body}");
    // A comment is a reason to leave a key.
    let template = r#"{"a": "x", "a": "x", "b": {"a": 1, /* why */ "a": 1}}"#;
    let fixed = Mender::new(How::AsShown).also(vec![Also::DuplicateKey]).mend("locales/en.json", template);
    assert_eq!(fixed.expect("one key").text, r#"{"a": "x", "b": {"a": 1, /* why */ "a": 1}}"#);
    assert_eq!(
        Also::NAMES.map(Also::of),
        [Some(Also::DuplicateKey), Some(Also::ValidJson), Some(Also::DeprecatedTag)]
    );
}

#[test]
fn an_include_becomes_a_render_where_both_show_the_same() {
    let mut mender = Mender::new(How::AsShown).also(vec![Also::DeprecatedTag]);
    let section =
        "{% include 'icon' %}{%- include \"box\", class: a.b, size: 1 -%}{% liquid\n  include 'icon'\n%}";
    let listed = [
        ("{% include 'box' %}", "the snippet reads `class`, which is no argument"),
        ("{% include 'icon' with a %}", "it has more than the name of the snippet in quotes, and arguments"),
        ("{% include icon_name %}", "it has more than the name of the snippet in quotes, and arguments"),
        ("{% include 'none' %}", "there is no snippet `none`"),
        ("{% include 'sets' %}", "the snippet has the tag `assign`"),
        ("{% include 'loop' %}", "the snippet reads `forloop`, which is no argument"),
        ("{% include 'product' %}", "the snippet is repeated if the variable `product` is a list"),
        ("{% include 'images' %}", "the snippet is repeated if the variable `images` is a list"),
        ("{% include 'wrong' %}", "strict Liquid refuses a place of it"),
        ("{% include 'money' %}", "the snippet has the filter `money_with_currency`"),
    ];
    for (path, text) in [
        ("sections/a.liquid", section),
        ("sections/b.liquid", "{% assign images = a.b %}{% render 'outer' %}"),
        ("snippets/icon.liquid", "<svg>{% comment %}{{ a }}{% endcomment %}{{ 'icons.cart' | t }}</svg>"),
        (
            "snippets/box.liquid",
            "<p class='{{ class | escape }}'>{% if size > 1 and class.c == blank %}x{% endif %}</p>",
        ),
        ("snippets/sets.liquid", "{% assign x = 1 %}"),
        ("snippets/loop.liquid", "{{ forloop.index }}"),
        ("snippets/product.liquid", "x"),
        ("snippets/images.liquid", "x"),
        ("snippets/wrong.liquid", "{{ 1 2 }}"),
        ("snippets/money.liquid", "{{ 1 | money_with_currency }}"),
        ("snippets/outer.liquid", "{% include 'inner' %}"),
        ("snippets/inner.liquid", "{% include 'icon' %}"),
    ] {
        mender.learn(path, text);
    }
    let fixed = mender.mend("sections/a.liquid", section).expect("three tags");
    assert_eq!(fixed.text, section.replace("include", "render"));
    assert_eq!((fixed.changes.len(), fixed.left.len(), fixed.was_refused()), (3, 0, false));
    for (tag, why) in listed {
        let fixed = mender.mend("sections/c.liquid", tag).expect("it is listed");
        assert_eq!((fixed.text.as_str(), fixed.is_refused()), (tag, false));
        let [left] = fixed.left.as_slice() else { panic!("{fixed:?}") };
        assert!(left.reason.ends_with(&format!(": {why}")), "{left:?}");
    }
    // In a file that is rendered, also through another one, `include` shows an error.
    for path in ["snippets/outer.liquid", "snippets/inner.liquid", "blocks/a.liquid"] {
        let fixed = mender.mend(path, "{% include 'icon' %}").expect("it is listed");
        assert!(fixed.changes.is_empty() && fixed.left[0].reason.contains("shows an error"), "{fixed:?}");
    }
}

fn check(how: How, old: &str, new: &str) {
    let fixed = file("sections/a.liquid", old, how);
    assert_eq!(fixed.text, new, "{old}: {:?} {:?}", fixed.changes, fixed.left);
    assert_eq!(strict::refusals(new), [], "{old}");
}

#[test]
fn a_place_is_written_as_it_is_shown() {
    let shown = |old: &str, new: &str| check(How::AsShown, old, new);
    shown("{% if  a >  1 > 100 %}x{% endif %}", "{% if  a >  1 %}x{% endif %}");
    shown("{%if(a)%}x{%endif%}", "{%if a%}x{%endif%}");
    shown("{% for a in  b limit:2 reversed %}{% endfor %}", "{% for a in  b limit:2 %}{% endfor %}");
    shown("{{ a | append 'b' | upcase }}", "{{ a | append | upcase }}");
    shown("{{ ['a'].b }}", "{{ self['a'].b }}");
    shown("{{ a.0 }}", "{{ a['0'] }}");
    shown("{% raw  x y %}{% endraw %}", "{% raw %}{% endraw %}");
    shown("{% # a\nb\n  c %}", "{% # a\n# b\n  # c %}");
    shown("{{,-1 a}}", "{{ -1}}");
    shown("{% liquid\n  if a && b\n    echo c d\n  endif\n%}", "{% liquid\n  if a\n    echo c\n  endif\n%}");
}

#[test]
fn a_place_is_written_as_it_was_meant() {
    let meant = |old: &str, new: &str| check(How::AsMeant, old, new);
    meant("{% if a = b && c %}x{% endif %}", "{% if a == b and c %}x{% endif %}");
    meant(
        "{% if a === b||c %}x{% elseif d => 1 %}{% endif %}",
        "{% if a == b or c %}x{% elsif d >= 1 %}{% endif %}",
    );
    meant("{% if !a %}x{% endif %}", "{% if a == nil or a == false %}x{% endif %}");
    meant("{% for a in b limit:2 reversed %}{% endfor %}", "{% for a in b reversed limit:2 %}{% endfor %}");
    meant(
        "{% for a in b, offset: 1, reversed %}{% endfor %}",
        "{% for a in b reversed, offset: 1 %}{% endfor %}",
    );
    meant("{{ a | append 'b' | upcase }}", "{{ a | append: 'b' | upcase }}");
    meant("{{ a | replace: 'b' 'c' }}", "{{ a | replace: 'b', 'c' }}");
    meant("{{ a | image_url: width = 3, height=4 }}", "{{ a | image_url: width : 3, height:4 }}");
    meant("{{ ‘products.price’ | t }}", "{{ 'products.price' | t }}");
    meant("{{ a.0.b }}", "{{ a[0].b }}");
    meant(
        "{% if a.b | size > 1 %}{% endif %}",
        "{% assign b_size = a.b | size -%}\n{% if b_size > 1 %}{% endif %}",
    );
    meant(
        "<p>{%- if a | size: 1, 2 == b_size and c -%}{% endif %}",
        "<p>{%- assign a_size = a | size: 1, 2 %}{%- if a_size == b_size and c -%}{% endif %}",
    );
    meant(
        "  {%- render 's', k: a | upcase, l: b -%}",
        "  {%- assign a_upcase = a | upcase -%}\n  {%- render 's', k: a_upcase, l: b -%}",
    );
    meant(
        "{% for a in b | sort: 'c' limit: 1 %}{% endfor %}",
        "{% assign b_sort = b | sort: 'c' -%}\n{% for a in b_sort limit: 1 %}{% endfor %}",
    );
    meant(
        "{% liquid\n  for a in b | split: ','\n  endfor\n%}",
        "{% liquid\n  assign b_split = b | split: ','\n  for a in b_split\n  endfor\n%}",
    );
    meant(
        "x{% render 's', k: a and b, l: 1 %}",
        "x{% assign k_holds = false %}{% if a and b %}{% assign k_holds = true %}{% endif %}{% render 's', k: k_holds, l: 1 %}",
    );
    meant(
        "{%- assign c = a == b -%}",
        "{%- assign c = false %}{% if a == b %}{% assign c = true %}{% endif -%}",
    );
    meant(
        "{% liquid\n  assign c = a and b\n%}",
        "{% liquid\n  assign c = false\n  if a and b\n  assign c = true\n  endif\n%}",
    );
    meant("{% if a\u{a0}== b %}x{% else  if c %}{% endif %}", "{% if a == b %}x{% elsif c %}{% endif %}");
    meant(
        "{% liquid\n  if a\n  else if b == 1\n  endif\n%}",
        "{% liquid\n  if a\n  elsif b == 1\n  endif\n%}",
    );
    meant(
        "{% comment %}{% if a %}{% else if b %}{% endcomment %}",
        "{% comment %}{% if a %}{% else if b %}{% endcomment %}",
    );
    meant("{% render 's' with k: 'a', l: b %}", "{% render 's', k: 'a', l: b %}");
    meant("{% render 's',\n  with k: 'a' %}", "{% render 's', k: 'a' %}");
    meant("{% render 's' | k: a %}", "{% render 's', k: a %}");
    meant("{{ a | append: 'b''c' }}", "{{ a | append: 'b' }}");
    // Where it is not clear, the page stays the same.
    meant("{% assign a = b or c %}", "{% assign a = b %}");
    meant("{% if a > 1 > 100 %}{% endif %}", "{% if a > 1 %}{% endif %}");
    meant("{% if a %}{% elsif b | size > 1 %}{% endif %}", "{% if a %}{% elsif b %}{% endif %}");
    meant("{% render 's', k: a | append: 'b', l: 1 %}", "{% render 's', k: a, append: 'b', l: 1 %}");
}

#[test]
fn what_is_not_mended_is_listed_with_choices() {
    let left = |how: How, text: &str| {
        let fixed = file("sections/a.liquid", text, how);
        assert_eq!(fixed.text, text, "{:?}", fixed.changes);
        assert!(fixed.left.iter().all(|left| !left.choices.is_empty() && !left.reason.is_empty()));
        fixed.left.iter().map(|left| (left.line, left.kind)).collect::<Vec<_>>()
    };
    assert_eq!(left(How::AsShown, "a\n{% if a = b %}x{% endif %}"), [(2, "Character")]);
    let fixed = file("sections/a.liquid", "{% if a = b %}x{% endif %}", How::AsShown);
    let choice = fixed.left.first().and_then(|left| left.choices.first()).map(String::as_str);
    assert_eq!(choice, Some("with --as-meant: {% if a == b %}"));
    assert_eq!(left(How::AsShown, "{% if a %}"), [(1, "OpenBlock")]);
    assert_eq!(left(How::AsMeant, "{% endfor %}{% foo %}"), [(1, "StrayEnd"), (1, "UnknownTag")]);
    assert_eq!(left(How::AsMeant, "{% case a %}{% else b %}{% endcase %}"), [(1, "ElseWithWords")]);
    assert_eq!(left(How::AsMeant, "{{ 'a | t }}"), [(1, "OpenQuote")]);
    assert_eq!(left(How::AsShown, "{% assign a.b = 1 %}"), [(1, "Target")]);
    assert_eq!(left(How::AsShown, "{% form 'a' b %}{% endform %}").len(), 1);
    assert_eq!(file("assets/a.js", "{{ a b }}", How::AsShown).changes, []);
}

#[test]
fn neighbours_are_shown_apart() {
    let fixed =
        file("a.liquid", "{% assign a = b == c %}{{ a b }}{% if a | size %}{% endif %}", How::AsMeant);
    let shown: Vec<&str> = fixed.changes.iter().map(|change| change.after.as_str()).collect();
    assert_eq!(
        shown,
        [
            "{% assign a = false %}{% if b == c %}{% assign a = true %}{% endif %}",
            "{{ a }}",
            "{% assign a_size = a | size %}{% if a_size %}"
        ]
    );
}

#[test]
fn a_diff_has_the_changed_lines() {
    let old = "1\n2\n3\n4\n{{ a b }}\n6\n7\n8\n9\n10\n11\n12\n13\n14\n{% if a | size %}x{% endif %}";
    let fixed = file("sections/a.liquid", old, How::AsMeant);
    let expected = "--- a/sections/a.liquid\n+++ b/sections/a.liquid\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-{{ a b }}\n+{{ a }}\n 6\n 7\n 8\n@@ -12,4 +12,5 @@\n 12\n 13\n 14\n-{% if a | size %}x{% endif %}\n\\ No newline at end of file\n+{% assign a_size = a | size -%}\n+{% if a_size %}x{% endif %}\n\\ No newline at end of file\n";
    assert_eq!(fixed.diff("sections/a.liquid", old), expected);
    let change = fixed.changes.last().expect("two changes");
    assert_eq!((change.line, change.before.as_str()), (15, "{% if a | size %}"));
    assert_eq!(change.after, "{% assign a_size = a | size -%}\n{% if a_size %}");
    assert!(change.output.is_some());
    assert_eq!(file("a.liquid", "{{ a }}", How::AsShown).diff("a.liquid", "{{ a }}"), "");
}

/// Pieces of templates.
const PIECES: [&str; 34] = [
    "{{",
    "}}",
    "{%",
    "%}",
    "-",
    " ",
    "\n",
    "a",
    "b.c",
    "'x'",
    "'",
    "[",
    "]",
    "(",
    "..",
    ")",
    "|",
    ":",
    ",",
    "=",
    "if ",
    "endif",
    "for ",
    " in ",
    "liquid",
    "raw",
    "endraw",
    "{% if a",
    "&&",
    "é",
    "😀",
    "#",
    "“",
    "{% case a %}{% else b %}",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn other_bytes_stay_and_nothing_new_is_refused(
        pieces in prop::collection::vec(prop::sample::select(&PIECES[..]), 0..40),
        is_meant in any::<bool>(),
    ) {
        let text = pieces.concat();
        let how = if is_meant { How::AsMeant } else { How::AsShown };
        let fixed = file("a.liquid", &text, how);
        let again = strict::refusals(&fixed.text);
        prop_assert!(again.len() <= fixed.left.len(), "{text:?} {fixed:?} {again:?}");
        let refused = strict::refusals(&text);
        let branches = fixed.changes.iter().filter(|change| change.kind == "ElseIf").count();
        prop_assert_eq!(fixed.changes.len() - branches + fixed.left.len(), refused.len());
        for edit in &fixed.edits {
            let is_within = |refusal: &Refusal| refusal.tag.start <= edit.span.start && edit.span.end <= refusal.tag.end;
            prop_assert!(branches > 0 || refused.iter().any(is_within), "{:?} {:?}", text, edit);
        }
        prop_assert_eq!(places::applied(&text, &fixed.edits), fixed.text.clone());
        // Mended once, nothing is mended again.
        prop_assert_eq!(file("a.liquid", &fixed.text, how).changes.len(), 0, "{:?} {:?}", text, fixed.text);
    }

    #[test]
    fn a_string_of_json_holds_what_the_file_would_hold(
        pieces in prop::collection::vec((prop::sample::select(&PIECES[..]), any::<bool>()), 0..30),
        is_meant in any::<bool>(),
    ) {
        let (mut text, mut escaped) = (String::new(), String::new());
        for (piece, is_hex) in pieces {
            text.push_str(piece);
            if is_hex {
                escaped.extend(piece.encode_utf16().map(|unit| format!("\\u{unit:04x}")));
            } else {
                escaped.push_str(&piece.replace('\n', "\\n"));
            }
        }
        let how = if is_meant { How::AsMeant } else { How::AsShown };
        let mut mender = Mender::new(how);
        mender.learn("sections/a.liquid", r#"{% schema %}{"settings": [{"type": "liquid", "id": "code"}]}{% endschema %}"#);
        let (before, after) = (r#"{"sections": {"s": {"type": "a", "settings": {"code": ""#, r#"", "more": "{{ a b }}"}}}}"#);
        let alone = liquid(&text, how);
        let fixed = mender.mend("templates/a.json", &format!("{before}{escaped}{after}"));
        let new = fixed.as_ref().map_or(format!("{before}{escaped}{after}"), |fixed| fixed.text.clone());
        let inner = new.strip_prefix(before).and_then(|rest| rest.strip_suffix(after)).expect("the rest stays");
        let read: String = serde_json::from_str(&format!("\"{inner}\"")).expect("a string of JSON");
        prop_assert_eq!(&read, &alone.text);
        prop_assert_eq!(fixed.map_or(0, |fixed| fixed.changes.len() + fixed.left.len()), alone.changes.len() + alone.left.len());
    }
}
