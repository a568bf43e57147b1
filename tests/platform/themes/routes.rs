//! Themes: imported, written, queried; and what is refused.

use std::time::Duration;

use domain::ids::{Owner, ProjectId};
use domain::projects::theme::MAP_LAYOUT;
use reqwest::Method;
use serde_json::{Value, json};
use shared::store::keys;
use shared::store::table::{Extras, item};
use tests::made;
use tests::send;
use tests::themes::{PROJECT, ask, harbour, import, put, ready, started, zip};

fn paths(list: &Value) -> Vec<&str> {
    list.as_array().unwrap().iter().map(|entry| entry["path"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn an_imported_theme_answers_questions() {
    let h = started().await;
    let status = h.get(&format!("{PROJECT}/map/status")).await.expect(200);
    assert_eq!((&status["state"], &status["files"]), (&json!("empty"), &json!(0)));
    let nothing = ask(&h, "lookup", json!({"request": "cart"})).await;
    assert_eq!((&nothing["targets"], &nothing["confident"]), (&json!([]), &json!(false)));

    let files = harbour();
    let wrapped: Vec<(String, &Vec<u8>)> =
        files.iter().map(|(p, c)| (format!("harbour-main/{p}"), c)).collect();
    let done = import(&h, zip(&wrapped)).await.expect(200);
    assert_eq!(
        (&done["state"], &done["files"], &done["left_out"]),
        (&json!("done"), &json!(files.len()), &json!(0))
    );
    let status = ready(&h).await;
    assert_eq!((&status["files"], &status["import"]["import_id"]), (&json!(files.len()), &done["import_id"]));
    assert_eq!(status["degraded"][0]["path"], "sections/broken.liquid");
    assert!(status["indexed_at"].is_string() && status["took_ms"].is_u64());

    let found = ask(&h, "lookup", json!({"request": "The hamburger menu should stay open"})).await;
    assert_eq!(found["source"], "map");
    assert!(paths(&found["targets"])[..3].contains(&"sections/header.liquid"), "{found:#}");
    assert!(found["took_us"].is_u64() && found["edit_order"].is_array());
    let range = found["targets"][0]["ranges"][0].as_array().unwrap();
    assert!(range.len() == 2 && range[0].as_u64() <= range[1].as_u64());

    let brief = ask(&h, "scout", json!({"request": "cart drawer overlay color", "limit": 4})).await;
    let drawer =
        brief["key_files"].as_array().unwrap().iter().find(|f| f["path"] == "snippets/cart-drawer.liquid");
    assert!(drawer.unwrap()["purpose"].as_str().unwrap().starts_with("Snippet `cart-drawer`"), "{brief:#}");
    assert!(
        brief["relationships"].as_array().unwrap().iter().any(|r| r["to"] == "assets/base.css"),
        "{brief:#}"
    );
    assert!(brief["summary"].as_str().unwrap().contains("files are about the request"));

    let gate = ask(&h, "gate", json!({"request": "cart drawer", "active_file": "layout/theme.liquid"})).await;
    assert!(paths(&gate["files"]).contains(&"layout/theme.liquid"));
    assert_eq!(gate["left_out"], files.len() - gate["files"].as_array().unwrap().len());

    for tokens in [200, 500, 2_000, 12_000] {
        let map = ask(&h, "repo-map", json!({"request": "cart drawer", "max_tokens": tokens})).await;
        assert!(map["tokens"].as_u64().unwrap() <= tokens && !map["text"].as_str().unwrap().is_empty());
    }
    let map = ask(&h, "repo-map", json!({})).await;
    assert!(map["text"].as_str().unwrap().contains("layout/theme.liquid"), "{map:#}");

    let (mut seen, mut page) = (Vec::new(), format!("{PROJECT}/map?limit=10"));
    loop {
        let map = h.get(&page).await.expect(200);
        seen.extend(paths(&map["data"]).into_iter().map(str::to_owned));
        let Some(cursor) = map["next_cursor"].as_str() else { break };
        page = format!("{PROJECT}/map?limit=10&cursor={cursor}");
    }
    assert_eq!(seen, files.iter().map(|(path, _)| path.clone()).collect::<Vec<_>>());

    let graph = h.get(&format!("{PROJECT}/graph?path=snippets/price.liquid")).await.expect(200);
    assert_eq!(
        graph["rendered_by"],
        json!(["sections/broken.liquid", "sections/main-product.liquid", "snippets/cart-drawer.liquid"])
    );
    let findings = h.get(&format!("{PROJECT}/graph/findings")).await.expect(200);
    assert_eq!(findings["orphans"], json!(["sections/broken.liquid", "snippets/leftover.liquid"]));
    let unused = findings["probably_unused"].as_array().unwrap();
    assert_eq!(unused.len(), 2);
    assert_eq!(unused[1]["path"], "snippets/leftover.liquid");
    assert!(unused[1]["reason"].as_str().unwrap().starts_with("no file renders this snippet"), "{unused:#?}");
    assert_eq!(
        (&findings["unresolved"][0]["name"], findings["unresolved"][0].get("to")),
        (&json!("long-gone"), None)
    );
    h.get(&format!("{PROJECT}/graph?path=no/such")).await.refused(404, "not_found");
}

#[tokio::test]
async fn files_are_listed_searched_and_read_in_part() {
    let h = started().await;
    let files = harbour();
    import(&h, zip(&files)).await.expect(200);
    let list = |query: &str| {
        let path = format!("{PROJECT}/files{query}");
        let h = &h;
        async move { h.get(&path).await.expect(200) }
    };
    assert_eq!(
        paths(&list("").await["data"]),
        files.iter().map(|(path, _)| path.as_str()).collect::<Vec<_>>()
    );
    assert_eq!(
        paths(&list("?glob=sections/header*.%7Bliquid,json%7D").await["data"]),
        ["sections/header-group.json", "sections/header.liquid"]
    );
    let first = &list("?limit=1").await["data"][0];
    assert_eq!(
        [&first["path"], &first["kind"], &first["bytes"], &first["version"]],
        [&json!("assets/base.css"), &json!("stylesheet"), &json!(files[0].1.len()), &json!(1)]
    );

    let read = h.get(&format!("{PROJECT}/files/snippets/leftover.liquid")).await;
    assert_eq!(read.headers["content-type"], "text/plain; charset=utf-8");
    assert_eq!(read.headers["etag"], "\"1\"");
    let leftover =
        String::from_utf8(files.iter().find(|f| f.0 == "snippets/leftover.liquid").unwrap().1.clone())
            .unwrap();
    assert_eq!(read.expect(200), leftover.as_str());
    let second = h.get(&format!("{PROJECT}/files/snippets/leftover.liquid?lines=2")).await.expect(200);
    assert_eq!(second, leftover.split_inclusive('\n').nth(1).unwrap());

    let grep = h.get(&format!("{PROJECT}/grep?q=cart-drawer&glob=snippets/**")).await.expect(200);
    assert!(
        paths(&grep["matches"]).iter().all(|path| path.starts_with("snippets/"))
            && grep["next_path"].is_null()
    );
    let (mut seen, mut from) = (0, String::new());
    loop {
        let page =
            h.get(&format!("{PROJECT}/grep?q=%5E%5Cs*%5C.&regex=true&limit=3{from}")).await.expect(200);
        seen += page["matches"].as_array().unwrap().len();
        let Some(path) = page["next_path"].as_str() else { break };
        from = format!("&from={path}&from_line={}", page["next_line"]);
    }
    let all = h.get(&format!("{PROJECT}/grep?q=%5E%5Cs*%5C.&regex=true")).await.expect(200);
    assert!(seen > 3);
    assert_eq!(seen, all["matches"].as_array().unwrap().len());

    for (path, field) in [
        ("files?glob=%7Ba", "glob"),
        ("files/assets/base.css?lines=x", "lines"),
        ("grep?q=", "q"),
        ("grep?q=(&regex=true", "q"),
        ("grep?q=a&limit=301", "limit"),
        ("grep", "q"),
        ("map?limit=0", "limit"),
    ] {
        let problem = h.get(&format!("{PROJECT}/{path}")).await.refused(400, "invalid_input");
        let named = problem["errors"][0]["field"] == field
            || problem["errors"][0]["message"].as_str().unwrap().contains(field);
        assert!(named, "{path}: {problem:#}");
    }
}

#[tokio::test]
async fn a_file_is_written_moved_and_deleted_by_its_version() {
    let h = started().await;
    let file = |path: &str| format!("{PROJECT}/files/{path}");
    let made = put(&h, "assets/a.css", ".a {}").await;
    assert_eq!(made.headers["etag"], "\"1\"");
    let made = made.expect(201);
    assert_eq!(put(&h, "assets/a.css", ".a {}").await.expect(200), made, "the same again changes nothing");
    assert_eq!(put(&h, "assets/a.css", ".b {}").await.expect(200)["version"], 2);
    assert_eq!(
        put(&h, "assets/b.css", ".b {}").await.expect(201)["version"],
        3,
        "no version of a path comes again"
    );

    let edit = |method: Method, path: &str, version: u64, body: &'static str| {
        let request = h.request(method, &file(path)).header("if-match", format!("\"{version}\""));
        send(request.header("content-type", "application/json").body(body))
    };
    let problem = edit(Method::PUT, "assets/a.css", 1, "x").await.refused(409, "version_conflict");
    assert_eq!(
        (&problem["current"]["version"], &problem["current"]["path"]),
        (&json!(2), &json!("assets/a.css"))
    );
    edit(Method::DELETE, "assets/a.css", 1, "").await.refused(409, "version_conflict");
    edit(Method::PATCH, "assets/a.css", 1, r#"{"path": "assets/c.css"}"#)
        .await
        .refused(409, "version_conflict");
    let taken = edit(Method::PATCH, "assets/a.css", 2, r#"{"path": "assets/b.css"}"#)
        .await
        .refused(409, "path_taken");
    assert_eq!(taken["current"]["path"], "assets/b.css");
    edit(Method::PATCH, "assets/a.css", 2, r#"{"path": "assets/a.css"}"#).await.refused(409, "path_taken");
    let moved = edit(Method::PATCH, "assets/a.css", 2, r#"{"path": "assets/c d.css"}"#).await.expect(200);
    assert_eq!(moved["path"], "assets/c d.css");
    h.get(&file("assets/a.css")).await.refused(404, "not_found");
    assert_eq!(h.get(&file("assets/c%20d.css")).await.expect(200), ".b {}");
    assert_eq!(h.delete(&file("assets/c%20d.css")).await.status, 204);
    h.delete(&file("assets/c%20d.css")).await.refused(404, "not_found");
    h.patch(&file("assets/c.css"), json!({"path": "x"})).await.refused(404, "not_found");

    let status = h.get(&format!("{PROJECT}/map/status")).await.expect(200);
    assert_eq!((&status["files"], &status["bytes"], &status["revision"]), (&json!(1), &json!(5), &json!(5)));

    let long = format!("assets/{}", "p".repeat(250));
    for path in ["..%2Fx", "assets%2F..%2Fx", "a%5Cb", "a%00b", "a//b", &long] {
        let problem = put(&h, path, "x").await.refused(400, "invalid_input");
        assert_eq!(problem["errors"][0]["field"], "path", "{path}");
    }
    h.patch(&file("assets/b.css"), json!({"path": "../b.css"})).await.refused(400, "invalid_input");
    put(&h, "assets/big.css", &"x".repeat(6 << 20 | 1)).await.refused(413, "payload_too_large");
    let elsewhere =
        h.request(Method::PUT, "/projects/prj_01938f2a7c5e7d3a9b1f4c6d8e0a2b4c/files/a").body("x");
    send(elsewhere).await.refused(404, "not_found");
}

#[tokio::test]
async fn an_invalid_theme_path_is_not_found() {
    let h = started().await;
    for path in [format!("assets/{}.css", "p".repeat(2_000)), "assets/%00.css".to_owned()] {
        let path = format!("{PROJECT}/files/{path}");
        h.get(&path).await.refused(404, "not_found");
        h.delete(&path).await.refused(404, "not_found");
        h.patch(&path, json!({"path": "assets/b.css"})).await.refused(404, "not_found");
    }
}

#[tokio::test]
async fn an_incomplete_theme_does_not_replace_the_theme() {
    let h = started().await;
    import(&h, zip(&harbour())).await.expect(200);
    let before = h.get(&format!("{PROJECT}/files?limit=200")).await.expect(200);
    let refused = async |files: &[(&str, &str)], expected: &str| {
        let problem = import(&h, zip(files)).await.refused(400, "invalid_input");
        let message = problem["errors"][0]["message"].as_str().unwrap();
        assert!(message.contains(expected), "{message}");
        assert_eq!(h.get(&format!("{PROJECT}/files?limit=200")).await.expect(200), before);
    };
    refused(
        &[("__MACOSX/layout/theme.liquid", "x"), ("holiday/photo.jpg", "x")],
        "found holiday/photo.jpg and 1 more",
    )
    .await;
    refused(
        &[("README.md", "x"), ("config/app.json", "{}")],
        "expected layout/theme.liquid and files in folders",
    )
    .await;
    refused(&[("a/sections/x.liquid", "x"), ("b/sections/x.liquid", "x")], "more than one theme: a/, b/")
        .await;
    refused(
        &[("templates/index.json", "{}")],
        "has no layout/theme.liquid, which the theme of this project has",
    )
    .await;

    // Also by an upload.
    let archive = zip(&[("templates/index.json", "{}")]);
    let import_of = h.post(&format!("{PROJECT}/import"), json!({"bytes": archive.len()})).await.expect(202);
    tests::put_archive(&tests::client(), &import_of, archive).await.error_for_status().unwrap();
    let path = format!("{PROJECT}/imports/{}", import_of["import_id"].as_str().unwrap());
    let mut ended = h.get(&path).await.expect(200);
    loop {
        if ended["state"] != "waiting" {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
        ended = h.get(&path).await.expect(200);
    }
    assert_eq!(ended["state"], "failed", "{ended:#}");
    assert!(ended["reason"].as_str().unwrap().contains("has no layout/theme.liquid"), "{ended:#}");
    assert_eq!(h.get(&format!("{PROJECT}/files?limit=200")).await.expect(200), before);

    // A folder around the theme is removed, even if other files are next to it.
    let wrapped: Vec<(String, Vec<u8>)> = harbour()
        .into_iter()
        .map(|(path, content)| (format!("downloads/harbour/{path}"), content))
        .chain([
            ("downloads/notes.txt".to_owned(), b"x".to_vec()),
            ("__MACOSX/._x".to_owned(), b"x".to_vec()),
        ])
        .collect();
    let done = import(&h, zip(&wrapped)).await.expect(200);
    assert_eq!((&done["state"], &done["left_out"]), (&json!("done"), &json!(2)));
    let after = h.get(&format!("{PROJECT}/files?limit=200")).await.expect(200);
    assert_eq!(paths(&after["data"]), paths(&before["data"]));
}

#[tokio::test]
async fn an_archive_without_a_theme_is_refused_by_name() {
    let h = started().await;
    let refused = async |archive: Vec<u8>, expected: &str| {
        let problem = import(&h, archive).await.refused(400, "invalid_input");
        assert_eq!(problem["errors"][0]["field"], "archive");
        let message = problem["errors"][0]["message"].as_str().unwrap();
        assert!(message.contains(expected), "{message}");
    };
    refused(b"no zip".to_vec(), "not a zip archive").await;
    refused(zip(&[("../x", "x")]), "`..`").await;
    refused(zip(&[("theme/../../x", "x")]), "`..`").await;
    refused(zip(&[("/etc/passwd", "x")]), "begins with a slash").await;
    refused(zip(&[(".DS_Store", "x")]), "no files of a theme").await;
    refused(zip(&[(format!("assets/{}", "p".repeat(250)), "x")]), "longer than 256 bytes").await;
    refused(zip(&[("assets/bomb.css", vec![b' '; (16 << 20) + 1])]), "more than 16777216 bytes").await;
    let many: Vec<(String, &str)> = (0..20_000).map(|n| (format!("assets/{n}.svg"), "")).collect();
    refused(zip(&many), "20000 entries; the limit is 10000").await;

    let text =
        h.request(Method::POST, &format!("{PROJECT}/import")).header("content-type", "text/plain").body("x");
    send(text).await.refused(415, "unsupported_media_type");
    import(&h, vec![0; (6 << 20) + 1]).await.refused(413, "payload_too_large");
    for (body, field) in [
        (json!({"bytes": 0}), "bytes"),
        (json!({"bytes": 134_217_729}), "bytes"),
        (json!({"bytes": "x"}), "bytes"),
    ] {
        let problem = h.post(&format!("{PROJECT}/import"), body).await.refused(400, "invalid_input");
        assert_eq!(problem["errors"][0]["field"], field);
    }
    for (what, body, field) in [
        ("lookup", json!({}), "request"),
        ("lookup", json!({"request": "x".repeat(10_001)}), "request"),
        ("lookup", json!({"request": "x", "limit": 0}), "limit"),
        ("scout", json!({"request": " "}), "request"),
        ("gate", json!({"request": "x", "limit": 101}), "limit"),
        ("repo-map", json!({"max_tokens": 0}), "max_tokens"),
    ] {
        let problem = h.post(&format!("{PROJECT}/{what}"), body).await.refused(400, "invalid_input");
        assert_eq!(problem["errors"][0]["field"], field, "{what}");
    }
    let status = h.get(&format!("{PROJECT}/map/status")).await.expect(200);
    assert_eq!((&status["state"], status.get("import")), (&json!("empty"), None), "nothing was begun");
    h.get(&format!("{PROJECT}/imports/imp_01938f2a7c5e7d3a9b1f4c6d8e0a2b4c")).await.refused(404, "not_found");
}

#[tokio::test]
async fn hostile_files_are_kept_and_reported_as_degraded() {
    let h = started().await;
    let one_line = format!("a=1;{}", "b();".repeat(250_000));
    let files: [(&str, &[u8]); 4] = [
        ("assets/line.js", one_line.as_bytes()),
        ("assets/bytes.css", b".drawer {}\n\xFF\xFE {}\n"),
        ("sections/open.liquid", b"{% if a %}{{ b"),
        ("assets/logo.png", &[0x89, b'P', b'N', b'G', 0, 0xFF]),
    ];
    assert_eq!(import(&h, zip(&files)).await.expect(200)["files"], 4);
    let degraded = ready(&h).await["degraded"].clone();
    let reason = |path: &str| {
        degraded.as_array().unwrap().iter().find(|d| d["path"] == path).map(|d| d["reason"].clone())
    };
    assert_eq!(reason("assets/line.js"), Some(json!("minified")));
    assert_eq!(reason("assets/bytes.css"), Some(json!("invalid_utf8")));
    assert_eq!(reason("sections/open.liquid"), Some(json!("unclosed_output")));
    assert_eq!(reason("assets/logo.png"), None);
    let found = ask(&h, "lookup", json!({"request": "drawer"})).await;
    assert_eq!(paths(&found["targets"]), ["assets/bytes.css"]);
    let logo = h.request(Method::GET, &format!("{PROJECT}/files/assets/logo.png")).send().await.unwrap();
    assert_eq!(logo.headers()["content-type"], "application/octet-stream");
    assert_eq!(logo.bytes().await.unwrap(), files[3].1);
}

/// Scripts whose parse would take minutes and gigabytes. Meanwhile, another check gets its answer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hostile_scripts_and_styles_take_no_time_of_a_check() {
    let h = started().await;
    put(&h, "assets/good.js", "cart.open(;\n").await.expect(201);
    let shapes = [
        ("assets/m.js", "a=(", true),
        ("assets/m.js", "({a=", true),
        ("assets/m.js", "[a=", true),
        ("assets/m.js", "`${", true),
        ("assets/m.js", "if(a)", false),
        ("assets/m.js", "a=>{", true),
        ("assets/m.js", "async(", true),
        ("assets/m.css", "url(", false),
        ("assets/m.css", "a{", false),
        ("assets/m.css", "/*", false),
        ("assets/m.css.liquid", "{%", false),
        ("sections/m.liquid", "<script>a=(", false),
        ("sections/m.liquid", "{% if a %}", false),
        ("sections/m.liquid", "<div>", false),
        ("sections/m.liquid", "{{ a[", false),
    ];
    for (path, unit, is_not_read) in shapes {
        let text = unit.repeat(250 * 1024 / unit.len());
        let began = std::time::Instant::now();
        let files = json!({"files": [{"path": path, "content": text}]});
        let check = format!("{PROJECT}/check");
        let (hostile, other) = tokio::join!(h.post(&check, files), h.post(&check, json!({})));
        let took = began.elapsed();
        let found = hostile.expect(200);
        let codes: Vec<&str> =
            found["findings"].as_array().unwrap().iter().map(|f| f["code"].as_str().unwrap()).collect();
        assert_eq!(codes.contains(&"ScriptNotRead"), is_not_read, "{path} {unit:?}: {codes:?}");
        let other = other.expect(200);
        assert_eq!(other["findings"][0]["path"], "assets/good.js", "{other:#}");
        // The parse alone took more than 40 seconds. Without optimisation and beside other tests, this takes some.
        assert!(took < std::time::Duration::from_secs(20), "{path} {unit:?}: {took:?}");
    }
}

#[tokio::test]
async fn a_repeated_import_is_done_once() {
    let h = started().await;
    let archive = zip(&harbour());
    let once = || {
        let request = h.request(Method::POST, &format!("{PROJECT}/import"));
        let request = request.header("content-type", "application/zip").header("idempotency-key", "k");
        send(request.body(archive.clone()))
    };
    let first = once().await.expect(200);
    let again = once().await;
    assert_eq!(again.headers["idempotent-replayed"], "true");
    assert_eq!(again.expect(200), first);
    let place = format!("{PROJECT}/imports/{}", first["import_id"].as_str().unwrap());
    assert_eq!(h.get(&place).await.expect(200), first);
}

#[tokio::test]
async fn another_owners_theme_is_not_found() {
    let h = started().await;
    let foreign = made::foreign(&h).await.project;
    for path in ["files", "files/a.css", "map", "map/status", "graph?path=a", "graph/findings", "grep?q=a"] {
        h.get(&format!("{foreign}/{path}")).await.refused(404, "not_found");
    }
    for (path, body) in [
        ("lookup", json!({"request": "x"})),
        ("scout", json!({"request": "x"})),
        ("gate", json!({"request": "x"})),
        ("repo-map", json!({})),
        ("import", json!({"bytes": 5})),
    ] {
        h.post(&format!("{foreign}/{path}"), body).await.refused(404, "not_found");
    }
    send(h.request(Method::PUT, &format!("{foreign}/files/a.css")).body("x")).await.refused(404, "not_found");
    h.delete(&format!("{foreign}/files/a.css")).await.refused(404, "not_found");
}

#[tokio::test]
async fn a_deleted_project_leaves_nothing() {
    let h = started().await;
    import(&h, zip(&harbour())).await.expect(200);
    put(&h, "assets/new.css", ".new {}").await.expect(201);
    assert_eq!(ask(&h, "lookup", json!({"request": "new"})).await["targets"][0]["path"], "assets/new.css");
    assert_eq!(h.delete(PROJECT).await.status, 204);
    assert_eq!(ask(&h, "lookup", json!({"request": "new"})).await["targets"], json!([]));
    assert_eq!(h.get(&format!("{PROJECT}/files")).await.expect(200)["data"], json!([]));
    assert_eq!(put(&h, "assets/other.css", ".other {}").await.expect(201)["version"], 1);
    assert_eq!(ask(&h, "lookup", json!({"request": "new"})).await["targets"], json!([]));

    let cx = &h.platform.cx;
    let project = h.post("/projects", json!({"name": "gone"})).await.expect(201)["project_id"].clone();
    let path = format!("/projects/{}", project.as_str().unwrap());
    send(h.request(Method::PUT, &format!("{path}/files/a.css")).body("x")).await.expect(201);
    assert_eq!(h.delete(&path).await.status, 204);
    h.get(&format!("{path}/files")).await.refused(404, "not_found");
    let id: ProjectId = project.as_str().unwrap().parse().unwrap();
    let files = cx.store.all_theme_files(&made::local(), id, domain::ids::ImportId::NONE).await.unwrap();
    assert!(files.is_empty());
}

#[tokio::test]
async fn a_theme_and_a_change_of_it_are_checked() {
    let h = started().await;
    import(&h, zip(&harbour())).await.expect(200);
    let before = send(h.request(Method::POST, &format!("{PROJECT}/check"))).await.expect(200);
    // The test's own theme has a file that is broken on purpose.
    let broken = json!("sections/broken.liquid");
    assert!(before["findings"].as_array().unwrap().iter().any(|found| found["path"] == broken), "{before:#}");
    assert_eq!(before["files"].as_u64().unwrap() as usize, harbour().len());
    assert_eq!(before, ask(&h, "check", json!({})).await);

    // Only what the change adds, and nothing is saved.
    let broken = "{% if product %}\n<p>{{ product.title | no_such_filter }}</p>\n";
    let change = json!({"files": [{"path": "snippets/new-note.liquid", "content": broken}]});
    let found = ask(&h, "check", change.clone()).await;
    let codes: Vec<_> = found["findings"].as_array().unwrap().iter().map(|found| &found["code"]).collect();
    assert!(codes.contains(&&json!("LiquidSyntaxError")), "{found:#}");
    let found = found["findings"].as_array().unwrap();
    assert!(found.iter().all(|found| found["path"] == "snippets/new-note.liquid"), "{found:#?}");
    assert_eq!(before, ask(&h, "check", json!({})).await);
    let script = json!({"files": [{"path": "assets/new.js", "content": "const a = 1;\nfunction ("}]});
    let found = ask(&h, "check", script).await;
    assert_eq!(
        (&found["findings"][0]["code"], &found["findings"][0]["line"]),
        (&json!("JavaScriptSyntax"), &json!(2))
    );
    // A file that others render is missing then.
    let used =
        harbour().into_iter().map(|(path, _)| path).find(|path| path.starts_with("snippets/")).unwrap();
    let found = ask(&h, "check", json!({"deleted": [used]})).await;
    assert!(
        found["findings"].as_array().unwrap().iter().any(|found| found["code"] == "MissingTemplate"),
        "{found:#}"
    );

    // A stored fault is a finding, and is not new in a later change.
    put(&h, "snippets/new-note.liquid", broken).await.expect(201);
    let after = ask(&h, "check", json!({})).await;
    assert!(after["errors"].as_u64() > before["errors"].as_u64(), "{after:#}");
    let moved = json!({"files": [{"path": "snippets/new-note.liquid", "content": format!("\n\n{broken}")}]});
    assert_eq!(ask(&h, "check", moved).await["findings"], json!([]));

    for (body, field) in [
        (json!({"files": [{"path": "../x", "content": ""}]}), "files[0].path"),
        (json!({"deleted": ["snippets/a.liquid", "snippets/a.liquid"]}), "deleted[1]"),
        (json!({"deleted": vec!["snippets/a.liquid"; 201]}), "deleted"),
    ] {
        let problem = h.post(&format!("{PROJECT}/check"), body).await.refused(400, "invalid_input");
        assert_eq!(problem["errors"][0]["field"], field, "{problem:#}");
    }
    h.post(&format!("{PROJECT}/check"), json!({"files": [{"path": "a/b"}]}))
        .await
        .refused(400, "invalid_input");
    let unknown = format!("/projects/prj_{}/check", "1".repeat(32));
    h.post(&unknown, json!({})).await.refused(404, "not_found");
}

/// Of too many findings, the worst are listed, and all are counted.
#[tokio::test]
async fn the_worst_findings_come_first_if_there_are_too_many() {
    let h = started().await;
    import(&h, zip(&harbour())).await.expect(200);
    let unused: String = (0..480).map(|n| format!("{{% assign unused_{n} = 1 %}}\n")).collect();
    let mut files: Vec<_> =
        (0..3).map(|n| json!({"path": format!("snippets/a{n}.liquid"), "content": unused})).collect();
    files.push(json!({"path": "snippets/z.liquid", "content": "{% if true %}"}));
    let found = ask(&h, "check", json!({"files": files})).await;
    assert_eq!((&found["has_more"], found["findings"].as_array().unwrap().len()), (&json!(true), 1_000));
    // The rest follows, each finding once. Other findings have other cursors.
    let total: u64 = ["errors", "warnings", "infos"].iter().map(|of| found[*of].as_u64().unwrap()).sum();
    let mut all = found["findings"].as_array().unwrap().clone();
    let mut next = found["next_cursor"].clone();
    while !next.is_null() {
        let part = ask(&h, "check", json!({"files": files, "limit": 300, "cursor": next})).await;
        all.extend(part["findings"].as_array().unwrap().clone());
        next = part["next_cursor"].clone();
    }
    let distinct: std::collections::BTreeSet<String> = all.iter().map(Value::to_string).collect();
    assert_eq!((all.len() as u64, distinct.len()), (total, all.len()));
    for (ask, field) in [
        (json!({"cursor": found["next_cursor"]}), "cursor"),
        (json!({"cursor": "x"}), "cursor"),
        (json!({"limit": 0}), "limit"),
        (json!({"limit": 1_001}), "limit"),
    ] {
        let refused = h.post(&format!("{PROJECT}/check"), ask).await.refused(400, "invalid_input");
        assert_eq!(refused["errors"][0]["field"], field, "{refused:#}");
    }
    let listed = found["findings"].as_array().unwrap();
    assert!(listed.iter().any(|found| found["path"] == "snippets/z.liquid" && found["severity"] == "error"));
    let counted = ["errors", "warnings", "infos"].map(|kind| found[kind].as_u64().unwrap());
    assert!(counted.iter().sum::<u64>() > 1_000, "{counted:?}");
}

/// After an update that changes the layout of maps, the first question has the map computed again. No file has to change.
#[tokio::test]
async fn a_map_of_an_older_layout_is_computed_again_without_a_change() {
    let h = started().await;
    import(&h, zip(&harbour())).await.expect(200);
    let before = ready(&h).await;
    let (store, owner) = (&h.platform.cx.store, Owner::new("local").unwrap());
    let mut state = store.theme(&owner, ProjectId::DEFAULT).await.unwrap().value;
    state.map.as_mut().unwrap().layout -= 1;
    let key = keys::theme(&owner, ProjectId::DEFAULT);
    store.put(&key, item(&state, &Extras::default()).unwrap()).await.unwrap();

    ask(&h, "lookup", json!({"request": "the header"})).await;
    loop {
        let state = store.theme(&owner, ProjectId::DEFAULT).await.unwrap().value;
        if state.map.is_some_and(|map| map.layout == MAP_LAYOUT) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    let after = ready(&h).await;
    assert_eq!((&after["files"], &after["revision"]), (&before["files"], &before["revision"]));
    assert_ne!(after["indexed_at"], before["indexed_at"]);
}

/// What strict Liquid refuses is mended: shown first, stored only if the caller wants it, and all files or none.
#[tokio::test]
async fn what_shopify_refuses_is_mended() {
    let h = started().await;
    import(&h, zip(&harbour())).await.expect(200);
    let (price, note) = ("snippets/old-price.liquid", "snippets/old-note.liquid");
    let old_price = "<p>\n{% assign price = 5 'x' %}{{ price | money }}\n</p>\n";
    put(&h, price, old_price).await.expect(201);
    put(&h, note, "{% assign note = 'a' 'b' %}{{ note }}\n").await.expect(201);
    put(&h, "snippets/open.liquid", "{% if true %}\n").await.expect(201);
    let before = ask(&h, "check", json!({})).await;
    let shown = ask(&h, "fix", json!({"paths": [price, note]})).await;
    let paths: Vec<&Value> = shown["files"].as_array().unwrap().iter().map(|file| &file["path"]).collect();
    assert_eq!(paths, [&json!(note), &json!(price)], "{shown:#}");
    assert_eq!(
        (&shown["refused_before"], &shown["refused_after"], &shown["written"]),
        (&json!(2), &json!(0), &json!(0))
    );
    let diff = shown["files"][1]["diff"].as_str().unwrap();
    assert!(
        diff.contains("-{% assign price = 5 'x' %}") && diff.contains("+{% assign price = 5 %}"),
        "{diff}"
    );
    assert!(
        shown["files"][1]["changes"][0]["reason"].as_str().is_some_and(|reason| !reason.is_empty()),
        "{shown:#}"
    );
    assert_eq!(ask(&h, "check", json!({})).await, before, "nothing is stored");

    // What has no safe rewriting is listed with what a person can do.
    let all = ask(&h, "fix", json!({})).await;
    let open =
        all["files"].as_array().unwrap().iter().find(|file| file["path"] == "snippets/open.liquid").unwrap();
    assert!(open["diff"] == "" && !open["left"][0]["choices"].as_array().unwrap().is_empty(), "{open:#}");
    // The check and the mends agree about Liquid. Other things are refused, too.
    let of_liquid =
        before["findings"].as_array().unwrap().iter().filter(|found| found["code"] == "LiquidSyntaxError");
    let of_liquid: std::collections::BTreeSet<&str> =
        of_liquid.map(|found| found["path"].as_str().unwrap()).collect();
    assert_eq!(all["refused_before"], of_liquid.len(), "{of_liquid:?}");

    let stored = ask(&h, "fix", json!({"paths": [price, note], "write": true})).await;
    assert_eq!(stored["written"], 2, "{stored:#}");
    let text = h.get(&format!("{PROJECT}/files/{price}")).await.expect(200);
    assert_eq!(text, "<p>\n{% assign price = 5 %}{{ price | money }}\n</p>\n");
    let after = ask(&h, "check", json!({})).await;
    assert_eq!(after["refused"].as_u64().unwrap() + 2, before["refused"].as_u64().unwrap());
    let again = ask(&h, "fix", json!({"paths": [price, note], "write": true})).await;
    assert_eq!((&again["files"], &again["written"]), (&json!([]), &json!(0)));

    for (body, field) in [
        (json!({"paths": ["snippets/none.liquid"]}), "paths"),
        (json!({"paths": ["../x"]}), "paths[0]"),
        (json!({"paths": vec!["snippets/a.liquid"; 201]}), "paths"),
    ] {
        let problem = h.post(&format!("{PROJECT}/fix"), body).await.refused(400, "invalid_input");
        assert_eq!(problem["errors"][0]["field"], field, "{problem:#}");
    }
    // More files than a transaction holds are not stored in part.
    let old = "{% assign a = 1 2 %}\n";
    for n in 0..91 {
        put(&h, &format!("snippets/many-{n}.liquid"), old).await.expect(201);
    }
    let refused =
        h.post(&format!("{PROJECT}/fix"), json!({"write": true})).await.refused(400, "invalid_input");
    assert_eq!(refused["errors"][0]["field"], "write", "{refused:#}");
    assert_eq!(h.get(&format!("{PROJECT}/files/snippets/many-0.liquid")).await.expect(200), old);
    let unknown = format!("/projects/prj_{}/fix", "1".repeat(32));
    h.post(&unknown, json!({})).await.refused(404, "not_found");
}
