//! `theme` of a folder: nothing is asked of a server, and nothing outside the folder is read.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::bed::{Bed, DOWN, Output};
use crate::server::{Reply, Request, Server};

const LAYOUT: &str =
    "<!doctype html><html>{{ content_for_header }}{{ content_for_layout }}{% render 'header' %}</html>";

fn write(folder: &Path, files: &[(&str, &str)]) {
    for (path, text) in files {
        let path = folder.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

/// A theme without a fault.
fn theme(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), &[("layout/theme.liquid", LAYOUT), ("snippets/header.liquid", "<h1>Shop</h1>")]);
    write(folder.path(), files);
    folder
}

fn of<'a>(folder: &'a TempDir, question: &[&'a str]) -> Vec<&'a str> {
    let path = folder.path().to_str().unwrap();
    [&["theme", question[0], path], &question[1..]].concat()
}

#[test]
fn a_folder_is_answered_without_a_server() {
    let bed = Bed::new(DOWN);
    let folder = theme(&[("snippets/old.liquid", "<p>old</p>"), ("snippets/bad.liquid", "{% if %}")]);
    let check = bed.run(&of(&folder, &["check"]));
    assert_eq!(check.code, 1, "{check:?}");
    assert!(
        check.out.starts_with("Shopify would refuse 1 file.\n\nsnippets/bad.liquid:1: error: "),
        "{check:?}"
    );
    assert!(check.out.ends_with(" in 4 files\n"), "{check:?}");
    assert!(check.err.starts_with("lamplighter: the theme has "), "{check:?}");
    let lookup = bed.run(&of(&folder, &["lookup", "change the header"]));
    assert_eq!((lookup.code, lookup.err.as_str()), (0, ""), "{lookup:?}");
    assert!(lookup.out.contains("snippets/header.liquid\n"), "{lookup:?}");
    let map = bed.run(&of(&folder, &["map", "--tokens", "200"]));
    assert!(map.code == 0 && map.out.contains("layout/theme.liquid"), "{map:?}");
    let graph = bed.run(&of(&folder, &["graph"]));
    assert!(graph.out.contains("snippets/old.liquid: probably unused"), "{graph:?}");
    let graph = bed.run(&of(&folder, &["graph", "--file", "snippets/header.liquid"]));
    assert!(graph.out.contains("layout/theme.liquid  render header, line 1\n"), "{graph:?}");
    bed.run(&of(&folder, &["graph", "--file", "snippets/none.liquid"]))
        .failed("the theme has no file snippets/none.liquid");
}

#[test]
fn a_change_is_checked_and_not_made() {
    let bed = Bed::new(DOWN);
    let folder = theme(&[("snippets/bad.liquid", "{% if %}")]);
    let changed = tempfile::tempdir().unwrap();
    write(changed.path(), &[("snippets/new.liquid", "{{ 1 | nothing }}")]);
    let overlay = changed.path().to_str().unwrap();
    let check = bed.run(&of(&folder, &["check", "--overlay", overlay]));
    assert!(check.out.contains("snippets/new.liquid:1: ") && !check.out.contains("bad.liquid"), "{check:?}");
    let verdict = "The change adds nothing for which Shopify would refuse a file.\n\nsnippets/new.liquid:1: ";
    assert!(check.out.starts_with(verdict), "{check:?}");
    let check = bed.run(&of(&folder, &["check", "--deleted", "snippets/header.liquid"]));
    assert!(check.out.contains("layout/theme.liquid:1: error: "), "{check:?}");
    assert!(folder.path().join("snippets/header.liquid").exists());
    let empty = tempfile::tempdir().unwrap();
    bed.run(&of(&folder, &["check", "--overlay", empty.path().to_str().unwrap()])).failed(" has no files");
    bed.run(&of(&folder, &["check", "--overlay", "nowhere"])).failed("nowhere is not a folder");
}

#[test]
fn a_change_of_a_project_is_sent() {
    let server = Server::start(|request: &Request| match request.target.as_str() {
        "/projects/default/check" => {
            Reply::ok(json!({"findings": [], "errors": 0, "warnings": 0, "infos": 0, "files": 3}).to_string())
        }
        _ => Reply::status(404, json!({"detail": "there is no such thing"}).to_string()),
    });
    let bed = Bed::new(&server.url);
    let changed = tempfile::tempdir().unwrap();
    write(changed.path(), &[("snippets/new.liquid", "<p>ü</p>")]);
    let overlay = changed.path().to_str().unwrap();
    let check = bed.run(&["theme", "check", "default", "--overlay", overlay, "--deleted", "a.css"]);
    assert_eq!((check.code, check.out.as_str()), (0, "0 errors, 0 warnings, 0 suggestions in 3 files\n"));
    let sent: Value = serde_json::from_slice(&server.requests()[0].body).unwrap();
    assert_eq!(
        sent,
        json!({"files": [{"path": "snippets/new.liquid", "content": "<p>ü</p>"}], "deleted": ["a.css"], "limit": 1_000})
    );
    fs::write(changed.path().join("snippets/new.liquid"), b"\xff\xfe").unwrap();
    bed.run(&["theme", "check", "default", "--overlay", overlay]).failed("snippets/new.liquid is not a text");
}

#[test]
fn links_and_hidden_files_are_left_out() {
    let bed = Bed::new(DOWN);
    let secret = tempfile::tempdir().unwrap();
    fs::write(secret.path().join("secret.liquid"), "{{ 'secret' | nothing }}").unwrap();
    let folder = theme(&[
        (".git/snippets/a.liquid", "{% if %}"),
        ("snippets/.hidden.liquid", "{% if %}"),
        ("node_modules/a/layout/theme.liquid", "{% if %}"),
    ]);
    symlink(secret.path(), folder.path().join("sections")).unwrap();
    symlink(secret.path().join("secret.liquid"), folder.path().join("snippets/secret.liquid")).unwrap();
    symlink(folder.path(), folder.path().join("snippets/circle")).unwrap();
    fs::write(folder.path().join("snippets").join(OsStr::from_bytes(b"\xff.liquid")), "{% if %}").unwrap();
    let check = bed.run(&of(&folder, &["check"]));
    assert_eq!(check.code, 0, "{check:?}");
    assert!(check.out.ends_with(" in 2 files\n"), "{check:?}");
    assert_eq!(
        check.err,
        "lamplighter: 4 entries are left out: links, special files, and names that are not UTF-8\n"
    );
}

#[test]
fn a_theme_within_a_folder_is_found() {
    let bed = Bed::new(DOWN);
    let folder = tempfile::tempdir().unwrap();
    write(
        folder.path(),
        &[
            ("README.md", "A shop"),
            ("shop/theme/layout/theme.liquid", LAYOUT),
            ("shop/theme/snippets/header.liquid", "<h1>Shop</h1>"),
        ],
    );
    let lookup = bed.run(&of(&folder, &["lookup", "header"]));
    assert!(lookup.out.starts_with("snippets/header.liquid\n"), "{lookup:?}");
    assert_eq!(lookup.err, "lamplighter: the theme is in shop/theme/\n");
}

#[test]
fn what_is_no_theme_says_why() {
    let bed = Bed::new(DOWN);
    bed.run(&["theme", "check", "prj_1"]).failed("prj_1 is neither a folder nor the id of a project");
    let folder = tempfile::tempdir().unwrap();
    bed.run(&of(&folder, &["check"])).failed("has no files of a theme: expected layout/theme.liquid");
    write(folder.path(), &[("a/layout/theme.liquid", LAYOUT), ("b/layout/theme.liquid", LAYOUT)]);
    bed.run(&of(&folder, &["check"])).failed("has more than one theme: a/, b/; choose one of them");
    let folder = theme(&[("snippets/a\\b.liquid", "")]);
    bed.run(&of(&folder, &["map"])).failed("the path has a control character or a backslash");
    let folder = theme(&[]);
    bed.run(&of(&folder, &["lookup", " "])).failed("the request must have 1 to 10000 characters, has 1");
    bed.run(&of(&folder, &["lookup", &"a".repeat(10_001)])).failed("has 10001");
}

#[test]
fn a_theme_that_is_too_large_is_not_read() {
    let bed = Bed::new(DOWN);
    let folder = theme(&[]);
    // Files without content on the disk: only their sizes are large.
    let sparse = |path: &str, bytes: u64| {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::File::create(path).unwrap().set_len(bytes).unwrap();
    };
    sparse("assets/film.mp4", 1 << 40);
    // A film is no text, so a check does not read it.
    let check = bed.run(&of(&folder, &["check"]));
    assert!(check.out.contains("assets/film.mp4:1: "), "{check:?}");
    bed.run(&of(&folder, &["map"])).failed("a theme may have at most 134217728 bytes, this has 10995116");
    fs::remove_file(folder.path().join("assets/film.mp4")).unwrap();
    for at in 0..20 {
        sparse(&format!("assets/{at}.js"), 2_000_000);
    }
    bed.run(&of(&folder, &["check"]))
        .failed("the texts of a theme that is checked may have at most 33554432 bytes, this has 40000");
}

#[test]
fn names_and_texts_do_not_control_the_terminal() {
    let bed = Bed::new(DOWN);
    let folder =
        theme(&[("snippets/a\u{202e}b.liquid", "{{ product.\u{1b}[31mred }}{% render '\u{9b}2J' %}")]);
    for question in [&["check"][..], &["lookup", "ab red"], &["map"], &["graph"], &["graph", "--json"]] {
        let output = bed.run(&of(&folder, question));
        let text = output.out + &output.err;
        assert!(!text.contains(['\u{1b}', '\u{202e}', '\u{9b}']), "{text:?}");
    }
}

#[test]
fn every_finding_can_be_listed() {
    let bed = Bed::new(DOWN);
    let many = (0..450).map(|n| format!("{{{{ 1 | plus: 1, {n} }}}}\n")).collect::<String>();
    let paths: Vec<String> = (0..3).map(|n| format!("sections/s{n}.liquid")).collect();
    let mut files: Vec<(&str, &str)> = paths.iter().map(|path| (path.as_str(), many.as_str())).collect();
    // Only a page that shows a section breaks by its errors.
    let page = "{% if %}{% endif %}{% section 's0' %}{% section 's1' %}{% section 's2' %}";
    files.push(("templates/page.liquid", page));
    let folder = theme(&files);
    let listed = |run: &Output| run.out.lines().filter(|line| line.contains(": error: ")).count();
    let check = bed.run(&of(&folder, &["check"]));
    assert_eq!((check.code, listed(&check)), (1, 1_000), "{}", check.err);
    assert!(
        check
            .err
            .starts_with("lamplighter: the worst 1000 of 1351 findings are listed; `--limit 0` lists all\n"),
        "{}",
        check.err
    );
    assert!(
        check.out.ends_with("\n1351 errors, 0 warnings, 0 suggestions in 6 files\n"),
        "{}",
        check.out.len()
    );
    // What Shopify refuses is listed, although its path is the last one.
    assert!(check.out.starts_with("Shopify would refuse 1 file.\n\ntemplates/page.liquid:1: error: "));
    let check = bed.run(&of(&folder, &["check", "--limit", "0"]));
    assert_eq!((check.code, listed(&check)), (1, 1_351));
    assert_eq!(check.err, "lamplighter: the theme has 1351 errors\n");
    let check = bed.run(&of(&folder, &["check", "--limit", "1", "--format", "json"]));
    let answer: Value = serde_json::from_str(&check.out).unwrap();
    assert_eq!(
        (answer["findings"][0]["path"].as_str(), answer["refused"].as_i64()),
        (Some("templates/page.liquid"), Some(1))
    );
    assert_eq!((answer["has_more"].as_bool(), answer["errors"].as_i64()), (Some(true), Some(1_351)));
}

#[test]
fn programs_get_the_findings_in_their_formats() {
    let bed = Bed::new(DOWN);
    let folder = tempfile::tempdir().unwrap();
    write(
        folder.path(),
        &[("shop/layout/theme.liquid", LAYOUT), ("shop/snippets/header.liquid", "{% if %}{% endif %}")],
    );
    let check = bed.run(&of(&folder, &["check", "--format", "sarif"]));
    assert_eq!(check.code, 1, "{check:?}");
    let log: Value = serde_json::from_str(&check.out).unwrap();
    let result = &log["runs"][0]["results"][0];
    let place = &result["locations"][0]["physicalLocation"];
    assert_eq!((result["level"].as_str(), place["region"]["startLine"].as_i64()), (Some("error"), Some(1)));
    let uri = place["artifactLocation"]["uri"].as_str().unwrap();
    assert!(uri.ends_with("/shop/snippets/header.liquid") && !uri.contains("/./"), "{uri}");
    let check = bed.run(&of(&folder, &["check", "--format", "github"]));
    assert!(
        check.code == 1 && check.out.starts_with("Shopify would refuse 1 file.\n::error file="),
        "{check:?}"
    );
    assert!(check.out.contains("/shop/snippets/header.liquid,line=1,title="), "{check:?}");
    // `--format json` is `--json`, and both together are refused.
    let json = bed.run(&of(&folder, &["check", "--json"]));
    assert_eq!(bed.run(&of(&folder, &["check", "--format", "json"])).out, json.out);
    assert_eq!(bed.run(&of(&folder, &["check", "--json", "--format", "sarif"])).code, 1);
    // A theme without errors ends with 0 in each format.
    write(folder.path(), &[("shop/snippets/header.liquid", "<h1>Shop</h1>")]);
    for format in ["text", "json", "sarif", "github"] {
        assert_eq!(bed.run(&of(&folder, &["check", "--format", format])).code, 0, "{format}");
    }
    let check = bed.run(&of(&folder, &["check"]));
    assert_eq!(check.out, "Shopify would take every file.\n0 errors, 0 warnings, 0 suggestions in 2 files\n");
}

#[test]
fn a_server_is_asked_answer_after_answer() {
    let server = Server::start(|request: &Request| {
        let ask: Value = serde_json::from_slice(&request.body).unwrap();
        let begin = ask["cursor"].as_str().map_or(0, |cursor| cursor.parse::<usize>().unwrap());
        let most = ask["limit"].as_u64().unwrap() as usize;
        let end = (begin + most.min(10)).min(30);
        let finding = |n: usize| json!({"path": "a.liquid", "line": n, "severity": "error", "message": "m", "code": "C", "refused": n == 9});
        let findings: Vec<Value> = (begin + 1..=end).map(finding).collect();
        let mut answer = json!({"findings": findings, "refused": 1, "errors": 30, "warnings": 0, "infos": 0, "files": 3, "has_more": end < 30});
        if end < 30 {
            answer["next_cursor"] = json!(end.to_string());
        }
        Reply::ok(answer.to_string())
    });
    let bed = Bed::new(&server.url);
    let check = bed.run(&["theme", "check", "default", "--limit", "12"]);
    assert!(check.out.starts_with("Shopify would refuse 1 file.\n\na.liquid:9: error: m (C)\n"), "{check:?}");
    assert_eq!(check.out.matches("error: m (C)").count(), 12, "{check:?}");
    assert!(
        check.err.starts_with("lamplighter: the worst 12 of 30 findings are listed; `--limit 0` lists all\n"),
        "{check:?}"
    );
    let check = bed.run(&["theme", "check", "default", "--limit", "0"]);
    assert_eq!(check.out.matches("error: m (C)").count(), 30, "{check:?}");
    assert_eq!(check.err, "lamplighter: the theme has 30 errors\n");
}

const REFUSED: &str =
    "<ul>\n{% for a in b limit:2 reversed %}\n  {{ a | append 'c' }}\n{% endfor %}\n</ul>\n";

#[test]
fn a_fix_is_shown_and_written_on_request() {
    let bed = Bed::new(DOWN);
    let folder = theme(&[("snippets/list.liquid", REFUSED)]);
    let path = folder.path().join("snippets/list.liquid");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    let shown = bed.run(&of(&folder, &["fix"]));
    assert_eq!(shown.code, 1, "{shown:?}");
    assert_eq!(shown.err, "lamplighter: nothing is written: `--write` mends 2 places\n");
    assert!(shown.out.starts_with("# snippets/list.liquid:2 `reversed` stands behind the list"), "{shown:?}");
    let diff = "--- a/snippets/list.liquid\n+++ b/snippets/list.liquid\n@@ -1,5 +1,5 @@\n <ul>\n-{% for a in b limit:2 reversed %}\n-  {{ a | append 'c' }}\n+{% for a in b limit:2 %}\n+  {{ a | append }}\n {% endfor %}\n </ul>\n# 2 places can be mended, 0 left to a person, in 1 file\n";
    assert!(shown.out.ends_with(diff), "{shown:?}");
    assert_eq!(fs::read_to_string(&path).unwrap(), REFUSED);

    let meant = bed.run(&of(&folder, &["fix", "--as-meant", "--write"]));
    assert_eq!((meant.code, meant.err.as_str()), (0, ""), "{meant:?}");
    assert!(meant.out.contains("#   the page changes: `reversed` reverses the loop\n"), "{meant:?}");
    let written = "<ul>\n{% for a in b reversed limit:2 %}\n  {{ a | append: 'c' }}\n{% endfor %}\n</ul>\n";
    assert_eq!(fs::read_to_string(&path).unwrap(), written);
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
    bed.run(&of(&folder, &["fix"])).printed("# Strict Liquid refuses nothing.\n");
    let names: Vec<_> = fs::read_dir(folder.path().join("snippets"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(names.len(), 2, "{names:?}");
}

#[test]
fn what_a_fix_leaves_is_listed_with_choices() {
    let bed = Bed::new(DOWN);
    let left = "{% if a = b %}x{% endif %}{{ c d }}";
    let folder = theme(&[("snippets/left.liquid", left), ("snippets/other.liquid", "{{ a b }}")]);
    let shown = bed.run(&of(&folder, &["fix", "--write", "snippets/left.liquid"]));
    assert_eq!(shown.code, 1, "{shown:?}");
    assert_eq!(shown.err, "lamplighter: 1 place is still refused\n");
    assert!(
        shown.out.contains("# snippets/left.liquid:1 `=` is not Liquid: use `==`; until now, "),
        "{shown:?}"
    );
    assert!(shown.out.contains("\n#   - with --as-meant: {% if a == b %}\n"), "{shown:?}");
    let text = |path: &str| fs::read_to_string(folder.path().join(path)).unwrap();
    assert_eq!(text("snippets/left.liquid"), "{% if a = b %}x{% endif %}{{ c }}");
    assert_eq!(text("snippets/other.liquid"), "{{ a b }}", "it was not named");
    let answer = bed.run(&of(&folder, &["fix", "--format", "json"]));
    assert_eq!(answer.code, 1);
    let answer: Value = serde_json::from_str(&answer.out).unwrap();
    assert_eq!(
        (&answer["refused_before"], &answer["refused_after"], &answer["written"]),
        (&json!(2), &json!(1), &json!(0))
    );
    let change = &answer["files"][1]["changes"][0];
    assert_eq!(
        (&change["before"], &change["after"], &change["kind"]),
        (&json!("{{ a b }}"), &json!("{{ a }}"), &json!("Rest"))
    );
    let choices = answer["files"][0]["left"][0]["choices"].as_array().unwrap();
    assert_eq!(choices.len(), 3, "{choices:?}");
    bed.run(&of(&folder, &["fix", "snippets/none.liquid"]))
        .failed("the theme has no file snippets/none.liquid");
}

#[test]
fn liquid_in_json_is_mended_with_the_schemas_of_the_theme() {
    let bed = Bed::new(DOWN);
    let schema = r#"{% schema %}{"name": "A", "settings": [{"type": "liquid", "id": "code", "label": "C"}]}{% endschema %}"#;
    let template = "{\n  \"sections\": {\"a\": {\"type\": \"a\", \"settings\": {\"code\": \"\\u003cp>{{ a b }}\\/\"}}},\n  \"order\": [\"a\"]\n}\n";
    let folder = theme(&[("sections/a.liquid", schema), ("templates/index.json", template)]);
    let fixed = bed.run(&of(&folder, &["fix", "--write", "templates/index.json"]));
    assert_eq!((fixed.code, fixed.err.as_str()), (0, ""), "{fixed:?}");
    assert!(fixed.out.starts_with("# templates/index.json:2 the Liquid of `code`: "), "{fixed:?}");
    let written = fs::read_to_string(folder.path().join("templates/index.json")).unwrap();
    assert_eq!(written, template.replace("{{ a b }}", "{{ a }}"));
}

#[test]
fn what_shopify_accepts_is_mended_on_request() {
    let bed = Bed::new(DOWN);
    let section = "{% include 'icon' %}{% include 'box' %}";
    let locale = "{\"a\": \"b\",\n\"a\": \"b\",}";
    let folder = theme(&[
        ("sections/a.liquid", section),
        ("snippets/icon.liquid", "<svg></svg>"),
        ("snippets/box.liquid", "{{ size }}"),
        ("locales/en.default.json", locale),
    ]);
    bed.run(&of(&folder, &["fix"])).printed("# Strict Liquid refuses nothing.\n");
    let fixed = bed.run(&of(&folder, &["fix", "--write", "--also", "DeprecatedTag", "--also", "ValidJSON"]));
    assert_eq!((fixed.code, fixed.err.as_str()), (0, ""), "an `include` that is left is accepted: {fixed:?}");
    assert!(fixed.out.contains("the snippet reads `size`, which is no argument\n"), "{fixed:?}");
    assert!(fixed.out.ends_with("# 2 places mended, 1 left to a person, in 2 files\n"), "{fixed:?}");
    let text = |path: &str| fs::read_to_string(folder.path().join(path)).unwrap();
    assert_eq!(text("sections/a.liquid"), "{% render 'icon' %}{% include 'box' %}");
    assert_eq!(text("locales/en.default.json"), locale.replace(",}", "}"));
    assert_ne!(bed.run(&of(&folder, &["fix", "--also", "ImgAlt"])).code, 0);
    bed.run(&["theme", "fix", "default", "--also", "ValidJSON"])
        .failed("`--also` mends the files of a folder");
}

#[test]
fn the_theme_of_a_project_is_mended_by_the_server() {
    let answer = json!({
        "files": [{
            "path": "snippets/a.liquid",
            "diff": "--- a/snippets/a.liquid\n+++ b/snippets/a.liquid\n@@ -1,1 +1,1 @@\n-{{ a b }}\n+{{ a }}\n",
            "changes": [{"line": 1, "code": "LiquidSyntaxError", "kind": "Rest", "before": "{{ a b }}", "after": "{{ a }}", "reason": "r"}],
            "left": [],
        }],
        "refused_before": 1, "refused_after": 0, "has_more": true, "written": 0,
    });
    let reply = answer.to_string();
    let server = Server::start(move |_: &Request| Reply::ok(reply.as_str()));
    let bed = Bed::new(&server.url);
    let shown = bed.run(&["theme", "fix", "default", "snippets/a.liquid", "--as-meant"]);
    assert_eq!(shown.code, 1, "{shown:?}");
    assert!(shown.out.starts_with("# snippets/a.liquid:1 r\n--- a/snippets/a.liquid\n"), "{shown:?}");
    assert_eq!(
        shown.err,
        "lamplighter: more files are to be mended; name some of them\nlamplighter: nothing is written: `--write` mends 1 place\n"
    );
    let written = bed.run(&["theme", "fix", "default", "--write", "--format", "json"]);
    assert_eq!((written.code, serde_json::from_str::<Value>(&written.out).unwrap()), (0, answer));
    let asks: Vec<Value> = server.bodies().iter().map(|body| serde_json::from_str(body).unwrap()).collect();
    assert_eq!(
        asks,
        [
            json!({"paths": ["snippets/a.liquid"], "as_meant": true, "write": false}),
            json!({"paths": [], "as_meant": false, "write": true}),
        ]
    );
    assert!(server.requests().iter().all(|request| request.target.ends_with("/projects/default/fix")));
}

#[test]
fn a_fix_does_not_leave_the_folder() {
    let bed = Bed::new(DOWN);
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("a.liquid"), "{{ a b }}").unwrap();
    let folder = theme(&[]);
    symlink(outside.path(), folder.path().join("sections")).unwrap();
    symlink(outside.path().join("a.liquid"), folder.path().join("snippets/a.liquid")).unwrap();
    let fixed = bed.run(&of(&folder, &["fix", "--write"]));
    assert_eq!((fixed.code, fixed.out.as_str()), (0, "# Strict Liquid refuses nothing.\n"), "{fixed:?}");
    assert_eq!(fs::read_to_string(outside.path().join("a.liquid")).unwrap(), "{{ a b }}");
    // A file that can't be written leaves the others as they were.
    let folder = theme(&[("sections/a.liquid", "{{ a b }}"), ("snippets/b.liquid", "{{ a b }}\u{0}")]);
    fs::write(folder.path().join("snippets/c.liquid"), b"\xff").unwrap();
    bed.run(&of(&folder, &["fix", "--write"])).failed("snippets/c.liquid is not UTF-8");
    assert_eq!(fs::read_to_string(folder.path().join("sections/a.liquid")).unwrap(), "{{ a b }}");
}
