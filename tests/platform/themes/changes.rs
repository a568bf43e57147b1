//! Change sets: edits of a theme that nobody else sees until they are applied.

use reqwest::Method;
use serde_json::{Value, json};
use tests::mcp;
use tests::model::{Says, ScriptedModel};
use tests::stage::Stage;
use tests::themes::{PROJECT, ask, put};
use tests::{Harness, send};

const PRICE: &str = "snippets/price.liquid";
const TEXT: &str = "<p class=\"price\">\r\n\r\n  {{ product.price | money }}\r\n</p>\r\n";
const CHANGES: &str = "/projects/default/changes";

/// The version of a text, as calls name it.
fn version(text: &str) -> String {
    use sha2::{Digest, Sha256};
    domain::hex(&Sha256::digest(text))[..12].to_owned()
}

async fn text(h: &Harness, path: &str) -> Value {
    h.get(&format!("{PROJECT}/files/{path}")).await.expect(200)
}

async fn begin(h: &Harness, title: &str) -> String {
    let set = h.post(CHANGES, json!({"title": title})).await.expect(201);
    format!("{CHANGES}/{}", set["change_set_id"].as_str().unwrap())
}

fn replace(path: &str, version: &str, old: &str, new: &str) -> Value {
    json!({"tool": "search_replace", "path": path, "version": version, "replacements": [{"old": old, "new": new}]})
}

async fn with_price() -> Harness {
    let h = Harness::start().await;
    put(&h, PRICE, TEXT).await.expect(201);
    put(&h, "snippets/note.liquid", "{{ note }}").await.expect(201);
    h
}

#[tokio::test]
async fn edits_are_seen_by_nobody_until_they_are_applied_and_can_be_reverted() {
    let h = with_price().await;
    let set = begin(&h, "  Prices with their currency ").await;
    let call = replace(PRICE, &version(TEXT), "| money }}", "| money_with_currency }}");
    let edited = h.post(&format!("{set}/edits"), json!({"calls": [call]})).await.expect(200);
    assert_eq!(edited["edit"], 1, "{edited:#}");
    assert_eq!(edited["change_set"]["title"], "Prices with their currency");
    let files = json!([{"path": PRICE, "change": "edited", "added": 1, "removed": 1}]);
    assert_eq!(edited["change_set"]["files"], files, "{edited:#}");
    assert_eq!(text(&h, PRICE).await, TEXT, "nobody sees the edit");

    // A wrong edit is one that Shopify would refuse, and it says so. It is taken back.
    let after = TEXT.replace("| money }}", "| money_with_currency }}");
    let wrong = replace(PRICE, &version(&after), "</p>", "</p>{% if %}");
    let wrong = h.post(&format!("{set}/edits"), json!({"calls": [wrong]})).await.expect(200);
    assert_eq!(wrong["problems"][0]["refused"], true, "{wrong:#}");
    let undone = json!({"calls": [{"tool": "undo_edit", "edit": 2}]});
    h.post(&format!("{set}/edits"), undone).await.expect(200);

    let shown = h.get(&set).await.expect(200);
    let diff = shown["diff"].as_str().unwrap();
    assert!(
        diff.contains("-  {{ product.price | money }}\r\n")
            && diff.contains("+  {{ product.price | money_with_currency }}\r\n"),
        "{diff}"
    );
    assert_eq!((&shown["problems"], &shown["conflicts"]), (&json!([]), &json!([])));
    assert_eq!(h.get(&format!("{set}/diff")).await.expect(200), diff);
    let hash = shown["hash"].as_str().unwrap();

    let other = json!({"hash": "0".repeat(64)});
    h.post(&format!("{set}/apply"), other).await.refused(409, "changes_differ");
    assert_eq!(text(&h, PRICE).await, TEXT);
    let applied = h.post(&format!("{set}/apply"), json!({"hash": hash})).await.expect(200);
    assert_eq!(applied["state"], "applied");
    assert_eq!(text(&h, PRICE).await, after, "the line ends are those of the file");
    // Again changes nothing more.
    h.post(&format!("{set}/apply"), json!({"hash": hash})).await.expect(200);
    let late = json!({"calls": [{"tool": "create_file", "path": "snippets/new.liquid", "content": "a"}]});
    h.post(&format!("{set}/edits"), late).await.refused(409, "change_set_applied");

    // Somebody else changes another line. The revert leaves it.
    let theirs = after.replace("class=\"price\"", "class=\"price price--new\"");
    put(&h, PRICE, &theirs).await.expect(200);
    let revert = h.post(&format!("{set}/revert"), json!({})).await.expect(201);
    let id = revert["change_set_id"].as_str().unwrap();
    assert_eq!(revert["reverts"], applied["change_set_id"]);
    h.post(&format!("{CHANGES}/{id}/apply"), json!({"hash": revert["hash"]})).await.expect(200);
    assert_eq!(text(&h, PRICE).await, TEXT.replace("class=\"price\"", "class=\"price price--new\""));
    let list = h.get(CHANGES).await.expect(200);
    let states: Vec<&str> =
        list["data"].as_array().unwrap().iter().map(|set| set["state"].as_str().unwrap()).collect();
    assert_eq!(states, ["applied", "applied"]);
}

#[tokio::test]
async fn what_the_engine_refuses_changes_nothing_and_says_why() {
    let h = with_price().await;
    let set = begin(&h, "").await;
    let edits = format!("{set}/edits");
    let known = version(TEXT);
    let create = |path: &str| json!({"tool": "create_file", "path": path, "content": "a"});
    for (calls, error) in [
        (json!([replace(PRICE, &"0".repeat(12), "money", "x")]), "changed"),
        (
            json!([{"tool": "search_replace", "path": PRICE, "replacements": [{"old": "money", "new": "x"}]}]),
            "not_read",
        ),
        (json!([replace(PRICE, &known, "price", "x")]), "ambiguous"),
        (json!([replace(PRICE, &known, "nowhere at all", "x")]), "not_found"),
        (json!([create(PRICE)]), "file_exists"),
        (json!([create("../x")]), "bad_path"),
        (json!([{"tool": "delete_file", "path": "snippets/none.liquid"}]), "no_such_file"),
        (json!([{"tool": "write_file", "path": PRICE, "version": known, "content": ""}]), "shrinks"),
        (json!([create("snippets/a.liquid"), create(PRICE)]), "in_batch"),
    ] {
        let problem = h.post(&edits, json!({"calls": calls})).await.refused(409, "edit_refused");
        assert_eq!(problem["current"]["refused"], error, "{problem:#}");
        assert!(problem["detail"].as_str().unwrap().len() > 20, "{problem:#}");
    }
    for (calls, field) in [(json!([]), "calls"), (json!(vec![create("snippets/a.liquid"); 51]), "calls")] {
        let problem = h.post(&edits, json!({"calls": calls})).await.refused(400, "invalid_input");
        assert_eq!(problem["errors"][0]["field"], field);
    }
    assert_eq!(h.get(&set).await.expect(200)["files"], json!([]), "a refused batch leaves nothing behind");
    h.post(&format!("{set}/apply"), json!({"hash": h.get(&set).await.expect(200)["hash"]}))
        .await
        .refused(409, "nothing_changed");
    let long = h.post(CHANGES, json!({"title": "x".repeat(201)})).await.refused(400, "invalid_input");
    assert_eq!(long["errors"][0]["field"], "title");
}

#[tokio::test]
async fn a_theme_that_changes_underneath_loses_nothing() {
    let h = with_price().await;
    let set = begin(&h, "Ours").await;
    let ours = replace(PRICE, &version(TEXT), "| money }}", "| money_with_currency }}");
    h.post(&format!("{set}/edits"), json!({"calls": [ours]})).await.expect(200);
    // What only others change is no conflict.
    put(&h, "snippets/note.liquid", "{{ note | escape }}").await.expect(200);
    assert_eq!(h.get(&set).await.expect(200)["conflicts"], json!([]));
    let theirs = TEXT.replace("| money }}", "| money_without_trailing_zeros }}");
    put(&h, PRICE, &theirs).await.expect(200);
    let shown = h.get(&set).await.expect(200);
    let conflict = &shown["conflicts"][0];
    assert_eq!(
        (&conflict["path"], &conflict["state"]["state"]),
        (&json!(PRICE), &json!("conflict")),
        "{shown:#}"
    );
    assert_eq!((&conflict["state"]["base"], &conflict["state"]["theirs"]), (&json!(TEXT), &json!(theirs)));
    let hash = json!({"hash": shown["hash"]});
    let problem = h.post(&format!("{set}/apply"), hash).await.refused(409, "theme_changed");
    assert_eq!(problem["current"][0], *conflict);
    assert_eq!(text(&h, PRICE).await, theirs);
    // Both have changed one line, so it can't be merged.
    h.post(&format!("{set}/resolve"), json!({"merge": true})).await.refused(409, "theme_changed");
    let decided = h.post(&format!("{set}/resolve"), json!({"decisions": {PRICE: "ours"}})).await.expect(200);
    let hash = json!({"hash": decided["hash"]});
    h.post(&format!("{set}/apply"), hash).await.expect(200);
    assert_eq!(text(&h, PRICE).await, TEXT.replace("| money }}", "| money_with_currency }}"));
    assert_eq!(text(&h, "snippets/note.liquid").await, "{{ note | escape }}");
    // What is taken back is the decision: the text of the others comes again.
    let revert = h.post(&format!("{set}/revert"), json!({})).await.expect(201);
    assert_eq!(revert["files"][0]["change"], "edited", "{revert:#}");
    let path = format!("{CHANGES}/{}/apply", revert["change_set_id"].as_str().unwrap());
    h.post(&path, json!({"hash": revert["hash"]})).await.expect(200);
    assert_eq!(text(&h, PRICE).await, theirs);
}

#[tokio::test]
async fn files_that_were_made_renamed_and_deleted_come_back_as_they_were() {
    let h = with_price().await;
    let logo = "PNG\u{0}\u{1}";
    put(&h, "assets/logo.png", logo).await.expect(201);
    let set = begin(&h, "Moves").await;
    let calls = json!({"calls": [
        {"tool": "create_file", "path": "snippets/new.liquid", "content": "new"},
        {"tool": "rename_file", "path": "assets/logo.png", "to": "assets/mark.png", "version": version(logo)},
        {"tool": "delete_file", "path": "snippets/note.liquid", "version": version("{{ note }}")},
    ]});
    let edited = h.post(&format!("{set}/edits"), calls).await.expect(200);
    h.post(&format!("{set}/apply"), json!({"hash": edited["change_set"]["hash"]})).await.expect(200);
    assert_eq!(text(&h, "snippets/new.liquid").await, "new");
    assert_eq!(text(&h, "assets/mark.png").await, logo);
    for gone in ["assets/logo.png", "snippets/note.liquid"] {
        h.get(&format!("{PROJECT}/files/{gone}")).await.refused(404, "not_found");
    }
    let revert = h.post(&format!("{set}/revert"), json!({})).await.expect(201);
    let path = format!("{CHANGES}/{}/apply", revert["change_set_id"].as_str().unwrap());
    h.post(&path, json!({"hash": revert["hash"]})).await.expect(200);
    assert_eq!(text(&h, "assets/logo.png").await, logo);
    assert_eq!(text(&h, "snippets/note.liquid").await, "{{ note }}");
    for gone in ["assets/mark.png", "snippets/new.liquid"] {
        h.get(&format!("{PROJECT}/files/{gone}")).await.refused(404, "not_found");
    }
}

#[tokio::test]
async fn many_who_edit_one_change_set_at_once_lose_nothing() {
    let h = with_price().await;
    let set = begin(&h, "Together").await;
    let made = (0..12).map(|n| {
        let call = json!({"tool": "create_file", "path": format!("snippets/made-{n}.liquid"), "content": format!("made {n}")});
        let (h, edits) = (&h, format!("{set}/edits"));
        async move { h.post(&edits, json!({"calls": [call]})).await }
    });
    for answer in futures::future::join_all(made).await {
        answer.expect(200);
    }
    let shown = h.get(&set).await.expect(200);
    assert_eq!((shown["files"].as_array().unwrap().len(), &shown["edits"]), (12, &json!(12)), "{shown:#}");
    let hash = json!({"hash": shown["hash"]});
    // Two people apply at once: it is applied once.
    let apply = format!("{set}/apply");
    let (one, other) = futures::join!(h.post(&apply, hash.clone()), h.post(&apply, hash));
    one.expect(200);
    other.expect(200);
    for n in 0..12 {
        assert_eq!(text(&h, &format!("snippets/made-{n}.liquid")).await, format!("made {n}"));
    }
}

#[tokio::test]
async fn more_files_than_a_transaction_holds_are_refused_when_they_are_edited() {
    let h = with_price().await;
    let set = begin(&h, "Many").await;
    let made = |range: std::ops::Range<usize>| {
        let calls: Vec<Value> = range
            .map(|n| json!({"tool": "create_file", "path": format!("snippets/made-{n}.liquid"), "content": "a"}))
            .collect();
        json!({"calls": calls})
    };
    h.post(&format!("{set}/edits"), made(0..50)).await.expect(200);
    let refused = h.post(&format!("{set}/edits"), made(50..91)).await.refused(400, "invalid_input");
    assert_eq!(refused["errors"][0]["field"], "files");
    h.post(&format!("{set}/edits"), made(50..90)).await.expect(200);
    let shown = h.get(&set).await.expect(200);
    h.post(&format!("{set}/apply"), json!({"hash": shown["hash"]})).await.expect(200);
    send(h.request(Method::DELETE, &set)).await.expect(204);
    h.get(&set).await.refused(404, "not_found");
    assert_eq!(text(&h, "snippets/made-89.liquid").await, "a", "the theme stays as it is");
}

fn shown(answer: &Value) -> &str {
    answer["content"][0]["text"].as_str().unwrap()
}

#[tokio::test]
async fn an_assistant_edits_over_mcp_and_a_person_applies() {
    let h = with_price().await;
    let client = mcp::client_of(&h, "/mcp?tools=theme");
    let listed = client.ask("tools/list", json!({})).await;
    let names: Vec<&str> =
        listed["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert!(names.contains(&"edit_lines") && !names.contains(&"apply_changes"), "{names:?}");
    assert!(listed.to_string().len() <= 14_000, "the definitions have {} bytes", listed.to_string().len());

    let read = client.call("read_file", json!({"path": PRICE})).await;
    assert!(shown(&read).contains(&format!("version {}", version(TEXT))), "{read:#}");
    assert!(shown(&read).contains("3\t  {{ product.price | money }}"), "{read:#}");
    let call = json!({"path": PRICE, "version": version(TEXT), "edits": [{"start": 3, "content": "  {{ product.price }}"}]});
    let edited = client.call("edit_lines", call).await;
    assert!(shown(&edited).starts_with("edit 1 of chs_"), "{edited:#}");
    // What it reads then has its edits. Nobody else's does.
    let found = client.call("grep_content", json!({"pattern": "product.price"})).await;
    assert_eq!(shown(&found), format!("{PRICE}:3:   {{{{ product.price }}}}\n"));
    assert_eq!(text(&h, PRICE).await, TEXT);
    for (tool, arguments, told) in [
        ("read_file", json!({"path": "snippets/none.liquid"}), "snippets/none.liquid"),
        ("read_lines", json!({"reads": []}), "`reads` must have 1 to 20 entries"),
        (
            "edit_lines",
            json!({"path": PRICE, "edits": [{"start": 1, "content": "x", "colour": 1}]}),
            "colour",
        ),
        ("create_file", json!({"path": PRICE, "content": "a"}), PRICE),
        ("apply_changes", json!({"hash": "0".repeat(64)}), "a person applies"),
    ] {
        let failed = client.call(tool, arguments).await;
        assert_eq!(failed["isError"], true, "{tool} {failed:#}");
        assert!(shown(&failed).contains(told), "{tool} {failed:#}");
    }
    let show = client.call("show_changes", json!({})).await;
    assert!(shown(&show).contains("+  {{ product.price }}"), "{show:#}");

    // A person sees the same change set, and lets assistants apply.
    let list = h.get(CHANGES).await.expect(200);
    assert_eq!(list["data"].as_array().unwrap().len(), 1, "{list:#}");
    h.patch(PROJECT, json!({"assistants_apply": true})).await.expect(200);
    let listed = client.ask("tools/list", json!({})).await;
    assert!(listed.to_string().contains("apply_changes"));
    let applied = client.call("apply_changes", json!({"hash": list["data"][0]["hash"]})).await;
    assert_eq!(shown(&applied), "applied: 1 files of the theme have changed");
    assert_eq!(text(&h, PRICE).await, TEXT.replace(" | money", ""));
}

/// It reads the file, edits it as it was told, and ends.
fn edits(messages: &[Value]) -> Says {
    let all = json!(messages).to_string();
    let version = version(TEXT);
    if !all.contains(&format!("version {version}")) {
        return Says::Call("read_file", json!({"path": PRICE}));
    }
    if !all.contains("edit 1 of chs_") && !all.contains("not kept") && !all.contains("was not granted") {
        let replacement = json!({"old": "| money }}", "new": "| money_with_currency }}"});
        return Says::Call(
            "search_replace",
            json!({"path": PRICE, "version": version, "replacements": [replacement]}),
        );
    }
    Says::Text("The price has its currency.".to_owned())
}

#[tokio::test]
async fn an_agent_edits_a_theme_in_a_scheduled_run_under_a_grant() {
    let model = ScriptedModel::start(edits).await;
    let stage = Stage::with(model.config("scripted")).await;
    let h = &stage.h;
    put(h, PRICE, TEXT).await.expect(201);
    let agent = format!("/agents/{}", stage.agent);
    let missing = json!({"theme_project_id": "prj_01938f2a7c5e7d3a9b1f4c6d8e0a2b4c"});
    let refused = h.patch(&agent, missing).await.refused(400, "invalid_input");
    assert_eq!(refused["errors"][0]["field"], "theme_project_id");
    h.patch(&agent, json!({"theme_project_id": "default"})).await.expect(200);
    let id = stage.approved(json!({"schedule": {"every": "1h"}, "grants": ["edit_theme"]})).await;
    let ticket = h.get(&format!("/actions/{id}/approval")).await.expect(200);
    let warning = ticket["warnings"][0].as_str().unwrap();
    assert!(
        warning.starts_with("A run reads the theme of the project \"Default\"")
            && warning.contains("change set"),
        "{warning}"
    );

    // A rehearsal keeps nothing.
    let begun = h.post(&format!("/actions/{id}/rehearse"), json!({})).await.expect(202);
    stage.executors.work().await;
    let rehearsed = h.get(&format!("/runs/{}", begun["run_id"].as_str().unwrap())).await.expect(200);
    assert_eq!(rehearsed["rehearsal"]["grants"], json!(["edit_theme"]), "{rehearsed:#}");
    assert_eq!(h.get(CHANGES).await.expect(200)["data"], json!([]));

    stage.happens_at(61).await;
    let run = stage.newest_run(id).await;
    assert_eq!(
        (&run["state"], &json!(run["tainted"].is_object())),
        (&json!("completed"), &json!(true)),
        "{run:#}"
    );
    let list = h.get(CHANGES).await.expect(200);
    let set = &list["data"][0];
    assert_eq!((&set["by"]["kind"], &set["by"]["run_id"]), (&json!("run"), &run["run_id"]), "{list:#}");
    assert_eq!(text(h, PRICE).await, TEXT, "a person applies it");
    let path = format!("{CHANGES}/{}", set["change_set_id"].as_str().unwrap());
    h.post(&format!("{path}/apply"), json!({"hash": set["hash"]})).await.expect(200);
    assert!(text(h, PRICE).await.as_str().unwrap().contains("money_with_currency"));
    // Without the grant, the tools that edit are not offered.
    put(h, PRICE, TEXT).await.expect(200);
    let sent = model.sent();
    assert!(sent[0]["tools"].to_string().contains("\"search_replace\""));
    let without = stage.approved(json!({"schedule": {"every": "1h"}})).await;
    stage.happens_at(121).await;
    assert_eq!(
        stage.newest_run(without).await["state"],
        "waiting",
        "the model asks for what was not granted"
    );
    let offered = model.sent();
    let offered =
        offered.iter().skip(sent.len()).find(|sent| !sent["tools"].to_string().contains("search_replace"));
    assert!(offered.is_some_and(|sent| sent["tools"].to_string().contains("\"read_file\"")));
}

#[tokio::test]
async fn a_check_after_a_change_reads_only_what_has_changed() {
    let h = with_price().await;
    let before = ask(&h, "check", json!({})).await;
    put(&h, "snippets/broken.liquid", "{% if true %}\n").await.expect(201);
    let with = ask(&h, "check", json!({})).await;
    assert!(with["refused"].as_u64() > before["refused"].as_u64(), "{with:#}");
    send(h.request(Method::DELETE, &format!("{PROJECT}/files/snippets/broken.liquid"))).await.expect(204);
    assert_eq!(ask(&h, "check", json!({})).await, before);
}
