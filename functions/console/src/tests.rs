//! The joiner, and what the sources of the page must not have.

use std::collections::BTreeMap;
use std::io::Read;

use flate2::read::GzDecoder;

use crate::join::join;
use crate::squeeze;
use crate::{CSS, FILES, JS};

/// A page of 165 KB arrives within a second over a slow mobile connection.
const MAX_COMPRESSED: usize = 165_000;

fn modules(texts: &[(&str, &str)]) -> BTreeMap<String, String> {
    texts.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
}

fn refused(texts: &[(&str, &str)]) -> String {
    join(&modules(texts), "main.js").expect_err("the modules can't be joined")
}

#[test]
fn modules_follow_what_they_import() {
    let joined = join(
        &modules(&[
            (
                "main.js",
                "// The start.\nimport { b } from \"./b.js\";\nimport {\n  a,\n} from \"./a.js\";\n\nb(a);",
            ),
            ("b.js", "import { a } from \"./a.js\";\nexport async function b(x) {\n  return x + a;\n}"),
            ("a.js", "export const a = 1;\nconst { own, other } = globalThis;"),
        ]),
        "main.js",
    );
    assert_eq!(
        joined.unwrap(),
        "const a = 1;\nconst { own, other } = globalThis;\nasync function b(x) {\n  return x + a;\n}\n\nb(a);\n"
    );
}

#[test]
fn what_cannot_be_joined_is_refused_with_its_place() {
    let main = ("main.js", "import { a } from \"./a.js\";");
    for (texts, reason) in [
        (&[main][..], "a.js does not exist"),
        (&[main, ("a.js", "const a = 1;")], "main.js imports `a` from a.js, which does not export it"),
        (&[main, ("a.js", "export default 1;")], "a.js:1: export only `function`, `const`, `let` or `class`"),
        (&[main, ("a.js", "const a = 1;\nexport { a };")], "a.js:2: export only"),
        (&[main, ("a.js", "export const a = 1;"), ("b.js", "")], "b.js is not imported by any module"),
        (
            &[
                main,
                ("a.js", "import { b } from \"./b.js\";\nexport const a = 1;"),
                ("b.js", "import { a } from \"./a.js\";\nexport const b = a;"),
            ],
            "modules import each other in a circle: main.js -> a.js -> b.js -> a.js",
        ),
        (
            &[
                ("main.js", "import { a } from \"./a.js\";\nfunction b() {}"),
                ("a.js", "export const a = 1;\nlet b = 2;"),
            ],
            "a.js and main.js both declare `b`",
        ),
        (&[("main.js", "import * as a from \"./a.js\";")], "main.js:1: write `import { a, b } from"),
        (&[("main.js", "import { a as b } from \"./a.js\";")], "without renames"),
        (&[("main.js", "import { a } from \"elsewhere\";")], "main.js:1: write `import"),
        (&[("main.js", "import { a } from \"./a.js\"")], "the import does not end with `;`"),
    ] {
        let found = refused(texts);
        assert!(found.contains(reason), "{found:?} does not say {reason:?}");
    }
}

#[test]
fn only_what_readers_need_is_left_out() {
    for (source, squeezed) in [
        ("const a = 1; // one\n\n  const b = a + +a;\n", "let a=1;let b=a+ +a;"),
        ("a = b\n  (c)\n", "a=b\n(c)\n"),
        ("f(\n  1,\n  2,\n);\n", "f(1,2);"),
        ("x = \"// no  comment\" + '/* \\' no */';\n", "x=\"// no  comment\"+'/* \\' no */';"),
        ("t = `a  ${ f({ b: `//  ${c}` }) }  // text`;\n", "t=`a  ${f({b:`//  ${c}`})}  // text`;"),
        ("r = /[/\"]  \\/ x/g.test(s) ? a / b : c / d;\n", "r=/[/\"]  \\/ x/g.test(s)?a / b:c / d;"),
        ("return /a b/;\n", "return /a b/;"),
        ("/* a\n b */ x\n", "x\n"),
        ("for (const x of [1]) y;\n", "for(let x of[1])y;"),
        // A comma after a comma is a hole in the list, and one on the same line stays.
        ("x = [\n  1,\n  ,\n];\n[a, ,] = [b,];\n", "x=[1,,];[a,,]=[b,];"),
        (
            "if (a) {\n  b();\n}\nelse c();\nfunction d() {\n}\nd();\n",
            "if(a){b();}else c();function d(){}d();",
        ),
        (
            "const f = (a) =>\n  a\n    ? b\n    : c;\n\n/** d */\nfunction d() {}\n",
            "let f=(a)=>a?b:c;function d(){}\n",
        ),
        ("if (a) {\n  b();\n}\n\n// e\nfunction d() {}\n\n// f\n", "if(a){b();}function d(){}\n"),
        ("if (a) {\n  b = 1;\n}\nfor (;;) {\n  while (c());\n}\n", "if(a){b=1}for(;;){while(c());}\n"),
        ("let a = b\n  .c();\na++\n++b\n", "let a=b.c();a++\n++b\n"),
        ("function d() {\n}\n[1].map(d);\n(e)();\n", "function d(){}\n[1].map(d);(e)();"),
        ("a.const = constant + \"const b\";\n", "a.const=constant+\"const b\";"),
    ] {
        assert_eq!(squeeze::script(source), squeezed, "{source:?}");
    }
    assert_eq!(squeeze::style("/* a */ b  c {\n  d: e;\n}\n\n"), "b  c {\nd: e;\n}");
}

#[test]
fn the_page_is_small() {
    let files = FILES.iter().filter(|file| file.name == JS || file.name == CSS);
    let sizes: Vec<usize> = files.map(|file| file.compressed.as_ref().unwrap().brotli.len()).collect();
    println!("compressed: script {} bytes, style {} bytes", sizes[0], sizes[1]);
    assert!(sizes.iter().sum::<usize>() < MAX_COMPRESSED, "{sizes:?}");
}

#[test]
fn the_compressed_files_are_the_files() {
    for file in FILES {
        if let Some(compressed) = &file.compressed {
            let mut bytes = Vec::new();
            GzDecoder::new(compressed.gzip).read_to_end(&mut bytes).unwrap();
            assert_eq!(bytes, file.bytes, "{}", file.name);
            bytes.clear();
            brotli::Decompressor::new(compressed.brotli, 4096).read_to_end(&mut bytes).unwrap();
            assert_eq!(bytes, file.bytes, "{}", file.name);
        }
    }
}

/// People are spoken to in plain words. These were used once, and nobody understood them.
#[test]
fn the_pages_use_plain_words() {
    let scripts = FILES.iter().filter(|file| file.kind.contains("javascript"));
    for script in scripts.map(|file| std::str::from_utf8(file.bytes).unwrap()) {
        for word in [
            "egin anew",
            "begun anew",
            "ake off its schedule",
            "aken off its schedule",
            " tidying",
            "Tidying",
            "equal failures",
            "Nothing means",
            "Smallest grant",
            "needs no grant",
            "\"Keep it",
            "\"Keep and",
            "Stay stopped",
            "Comparable within this answer",
        ] {
            assert!(!script.contains(word), "{word}");
        }
    }
}

/// The content security policy refuses these in a browser. Here they are found without one.
#[test]
fn the_sources_use_nothing_that_the_policy_forbids() {
    let sources = FILES.iter().filter(|file| file.kind.contains("javascript") || file.kind.contains("css"));
    let sources = sources.map(|file| (file.name, std::str::from_utf8(file.bytes).unwrap()));
    let page = ("index.html", include_str!("../web/index.html"));
    let forbidden = [
        "innerHTML",
        "outerHTML",
        "insertAdjacentHTML",
        "document.write",
        "DOMParser",
        "eval(",
        "new Function",
        "style=\"",
        "onclick=\"",
        "<style",
        "\"javascript:",
        "@import",
        "createContextualFragment",
        "setHTMLUnsafe",
    ];
    for (name, text) in sources.chain([page]) {
        for word in forbidden {
            let at =
                text.lines().position(|line| line.contains(word) && !line.trim_start().starts_with("//"));
            assert_eq!(at, None, "{name} contains {word}");
        }
        // Names of namespaces are no addresses that are reached.
        for address in text
            .match_indices("http")
            .filter_map(|(at, _)| text[at..].split(['"', '`', '\'', ' ', ')']).next())
        {
            if let Some(host) = address.strip_prefix("https://").or_else(|| address.strip_prefix("http://")) {
                let known = host.is_empty()
                    || [
                        "www.w3.org/",
                        "127.0.0.1",
                        "localhost",
                        "example.com",
                        "models.example.org/",
                        "…",
                        "$",
                    ]
                    .iter()
                    .any(|known| host.starts_with(known));
                assert!(known, "{name} names the address {address}");
            }
        }
    }
}

#[test]
fn the_page_names_its_files() {
    let variable = |name: &str| match name {
        "AWS_REGION" => Some("eu-central-1".to_owned()),
        "AWS_ACCESS_KEY_ID" | "AWS_SECRET_ACCESS_KEY" => Some("key".to_owned()),
        "LAMPLIGHTER_BUCKET" => Some("lamps".to_owned()),
        "LAMPLIGHTER_SIGN_IN_CLIENT_ID" => Some("a\"><script>".to_owned()),
        "LAMPLIGHTER_SIGN_IN_AUTHORIZE_URL" => Some("https://id.example/authorize".to_owned()),
        "LAMPLIGHTER_SIGN_IN_TOKEN_URL" => Some("https://id.example:8443/token".to_owned()),
        _ => None,
    };
    let config = shared::config::Config::read(&variable).unwrap();
    let html = crate::page::html(&config, "/live", |_| None);
    assert!(
        html.contains(&format!("src=\"/live/console/{JS}\""))
            && html.contains(&format!("href=\"/live/console/{CSS}\""))
    );
    assert!(
        !html.contains("{{") && !html.contains("<script>") && html.contains("a\\&quot;&gt;&lt;script&gt;")
    );
    let policy = crate::page::policy(&config);
    assert!(
        policy.contains(
            "connect-src 'self' https://lamps.s3.eu-central-1.amazonaws.com https://id.example:8443;"
        ),
        "{policy}"
    );
    assert!(policy.contains("script-src 'self';") && !policy.contains("unsafe"));

    // The client of a user pool that the stack makes is known to the stage only.
    let config = shared::config::Config::read(&|name: &str| match name {
        "LAMPLIGHTER_SIGN_IN_CLIENT_ID" => Some("stage:client_id".to_owned()),
        _ => variable(name),
    });
    let config = config.unwrap();
    let at = |has: &'static str| {
        crate::page::html(&config, "/live", move |name| (name == "client_id").then(|| has.to_owned()))
    };
    assert!(at("1example23456789").contains("&quot;client_id&quot;:&quot;1example23456789&quot;"));
    // Without the variable, people paste a key.
    assert!(at("").contains("&quot;openid&quot;:null"));
}

/// A browser tells of a new address only later. What is pressed in between would act on the old page, so all go through `go` of app.js.
#[test]
fn one_place_goes_to_another_page() {
    let script = FILES.iter().find(|file| file.name == JS).unwrap();
    let script = std::str::from_utf8(script.bytes).unwrap();
    assert_eq!(script.matches("location.hash=").count(), 1, "call `ctx.go`");
}
