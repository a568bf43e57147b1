//! Change sets: edits of a theme that nobody else sees until they are applied.

use reqwest::Method;
use serde_json::{Value, json};
use shared::blobs::BlobKey;
use tests::mcp;
use tests::model::{Says, ScriptedModel};
use tests::stage::Stage;
use tests::themes::{PROJECT, ask, put};
use tests::{Harness, made, send};

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
    assert_eq!(edited["change_set"]["request"], "Prices with their currency");
    let files = json!([{"path": PRICE, "change": "edited", "added": 1, "removed": 1, "lines": [[3, 3]]}]);
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

async fn edit(h: &Harness, set: &str, calls: Value) -> Value {
    h.post(&format!("{set}/edits"), json!({"calls": calls})).await.expect(200)
}

async fn apply(h: &Harness, set: &str) -> Value {
    let shown = h.get(set).await.expect(200);
    h.post(&format!("{set}/apply"), json!({"hash": shown["hash"]})).await.expect(200)
}

async fn gone(h: &Harness, path: &str) {
    h.get(&format!("{PROJECT}/files/{path}")).await.refused(404, "not_found");
}

fn rename(path: &str, to: &str) -> Value {
    json!({"tool": "rename_file", "path": path, "to": to})
}

/// Somebody else writes or removes what a change set has renamed. Whatever is decided, no text is lost that the decision did not give up.
#[tokio::test]
async fn a_renamed_file_keeps_its_text_whatever_others_do() {
    let (a, b) = ("snippets/a.liquid", "snippets/b.liquid");
    for (others, decided, text_of_a, text_of_b) in [
        // Others make a file at the new path.
        ("make b", "ours", None, Some("one")),
        ("make b", "theirs", Some("one"), Some("two")),
        // Others edit the file at the old path.
        ("edit a", "ours", None, Some("one")),
        ("edit a", "theirs", Some("two"), Some("one")),
        // Others delete it: nothing is left to decide.
        ("delete a", "", None, Some("one")),
    ] {
        let h = Harness::start().await;
        put(&h, a, "one").await.expect(201);
        let set = begin(&h, "Rename").await;
        edit(&h, &set, json!([rename(a, b)])).await;
        match others {
            "make b" => put(&h, b, "two").await.expect(201),
            "edit a" => put(&h, a, "two").await.expect(200),
            _ => send(h.request(Method::DELETE, &format!("{PROJECT}/files/{a}"))).await.expect(204),
        };
        let shown = h.get(&set).await.expect(200);
        if decided.is_empty() {
            assert_eq!(shown["conflicts"], json!([]), "{others}: {shown:#}");
        } else {
            let conflict = &shown["conflicts"][0];
            let path = conflict["path"].as_str().unwrap();
            let sides = &conflict["state"];
            assert_eq!(sides["theirs"], "two", "{others}: {shown:#}");
            let kept = if path == b { &sides["ours"] } else { &sides["base"] };
            assert_eq!(kept, "one", "{others}: {shown:#}");
            let unknown = json!({"decisions": {"snippets/none.liquid": "ours"}});
            let refused = h.post(&format!("{set}/resolve"), unknown).await.refused(400, "invalid_input");
            assert_eq!(refused["errors"][0]["field"], "decisions");
            h.post(&format!("{set}/resolve"), json!({"decisions": {path: decided}})).await.expect(200);
        }
        // If the others keep the new path, the file stays where it was, and nothing is left to apply.
        if (others, decided) == ("make b", "theirs") {
            assert_eq!(h.get(&set).await.expect(200)["files"], json!([]));
        } else {
            apply(&h, &set).await;
        }
        for (path, expected) in [(a, text_of_a), (b, text_of_b)] {
            match expected {
                Some(expected) => assert_eq!(text(&h, path).await, expected, "{others} {decided} {path}"),
                None => gone(&h, path).await,
            }
        }
    }
}

#[tokio::test]
async fn two_files_change_places_and_sizes_and_the_diff_stay_true() {
    let h = Harness::start().await;
    let (a, b, c) = ("snippets/a.liquid", "snippets/b.liquid", "snippets/c.liquid");
    put(&h, a, "one").await.expect(201);
    put(&h, b, &"two ".repeat(2_500)).await.expect(201);
    let set = begin(&h, "Swap").await;
    for call in [rename(a, c), rename(b, a), rename(c, b)] {
        edit(&h, &set, json!([call])).await;
    }
    apply(&h, &set).await;
    assert_eq!((text(&h, a).await, text(&h, b).await), (json!("two ".repeat(2_500)), json!("one")));

    // A deletion shows what goes, also if another file takes the path.
    let set = begin(&h, "Delete").await;
    let delete = |path: &str| json!({"tool": "delete_file", "path": path, "force": true});
    edit(&h, &set, json!([delete(a)])).await;
    let shown = h.get(&set).await.expect(200);
    assert_eq!(shown["files"][0]["removed"], 1, "{shown:#}");
    assert!(shown["diff"].as_str().unwrap().contains("deleted file mode 100644"), "{shown:#}");
    edit(&h, &set, json!([rename(b, a)])).await;
    let shown = h.get(&set).await.expect(200);
    let diff = shown["diff"].as_str().unwrap();
    assert!(diff.contains("+one") && diff.contains("-two two"), "{diff}");
    apply(&h, &set).await;
    let files = h.get(&format!("{PROJECT}/files")).await.expect(200);
    let sizes: Vec<(&Value, &Value)> =
        files["data"].as_array().unwrap().iter().map(|file| (&file["path"], &file["bytes"])).collect();
    assert_eq!(sizes, [(&json!(a), &json!(3))]);
    assert_eq!(h.get(&format!("{PROJECT}/map/status")).await.expect(200)["bytes"], 3);

    // What was applied is shown as it was, whatever came later.
    put(&h, a, "three").await.expect(200);
    let later = h.get(&set).await.expect(200);
    assert_eq!(later["diff"].as_str().unwrap(), diff);
    assert_eq!(h.get(&format!("{set}/diff")).await.expect(200), diff);
}

#[tokio::test]
async fn a_batch_edits_many_files_that_were_not_read() {
    let h = Harness::start().await;
    let path = |n: usize| format!("snippets/n{n}.liquid");
    for n in 0..40 {
        put(&h, &path(n), "old").await.expect(201);
    }
    let set = begin(&h, "Many").await;
    let calls: Vec<Value> = (0..40).map(|n| replace(&path(n), &version("old"), "old", "new")).collect();
    let edited = edit(&h, &set, json!(calls)).await;
    assert_eq!(edited["change_set"]["files"].as_array().unwrap().len(), 40);
}

#[tokio::test]
async fn what_others_did_before_it_was_applied_is_not_taken_back() {
    let h = Harness::start().await;
    let (a, b) = ("snippets/a.liquid", "snippets/b.liquid");
    put(&h, a, "one").await.expect(201);
    put(&h, b, "two").await.expect(201);
    let set = begin(&h, "Both").await;
    let delete = json!({"tool": "delete_file", "path": a, "force": true});
    edit(&h, &set, json!([delete, replace(b, &version("two"), "two", "three")])).await;
    // Somebody else deletes the same file.
    send(h.request(Method::DELETE, &format!("{PROJECT}/files/{a}"))).await.expect(204);
    let hash = h.get(&set).await.expect(200)["hash"].clone();
    for _ in 0..2 {
        let applied = h.post(&format!("{set}/apply"), json!({"hash": hash})).await.expect(200);
        assert_eq!(applied["files"].as_array().unwrap().len(), 1, "{applied:#}");
    }
    let diff = h.get(&set).await.expect(200)["diff"].clone();
    assert!(!diff.as_str().unwrap().contains(a), "{diff}");
    let revert = h.post(&format!("{set}/revert"), json!({})).await.expect(201);
    apply(&h, &format!("{CHANGES}/{}", revert["change_set_id"].as_str().unwrap())).await;
    assert_eq!(text(&h, b).await, "two");
    gone(&h, a).await;
}

#[tokio::test]
async fn the_first_calls_of_a_client_that_come_at_once_are_one_change_set() {
    let h = with_price().await;
    let client = mcp::client_of(&h, "/mcp?tools=theme");
    let make = async |n: usize| {
        let call = json!({"path": format!("snippets/n{n}.liquid"), "content": "a"});
        let made = client.call("create_file", call).await;
        assert!(shown(&made).starts_with("edit "), "{made:#}");
    };
    futures::join!(make(0), make(1), make(2), make(3));
    let sets = h.get(CHANGES).await.expect(200);
    let sets = sets["data"].as_array().unwrap();
    assert_eq!((sets.len(), sets[0]["files"].as_array().unwrap().len()), (1, 4), "{sets:#?}");
    // After it was applied, the next call begins another one, also within the same minute. The same apply again is no error.
    h.patch(PROJECT, json!({"assistants_apply": true})).await.expect(200);
    for _ in 0..2 {
        let applied = client.call("apply_changes", json!({"hash": sets[0]["hash"]})).await;
        assert_eq!(shown(&applied), "applied: 4 files of the theme have changed");
    }
    make(4).await;
    let again = client.call("apply_changes", json!({"hash": sets[0]["hash"]})).await;
    assert_eq!(shown(&again), "applied: 4 files of the theme have changed");
    let sets = h.get(CHANGES).await.expect(200);
    let states: Vec<&Value> = sets["data"].as_array().unwrap().iter().map(|set| &set["state"]).collect();
    assert_eq!(states, ["open", "applied"], "newest first");
}

#[tokio::test]
async fn an_assistant_writes_a_plan_beside_its_edits() {
    let h = with_price().await;
    let client = mcp::client_of(&h, "/mcp?tools=theme");
    assert_eq!(shown(&client.call("read_plan", json!({})).await), "there is no plan (version 0)");
    let write = |text: &str, version: u64| json!({"text": text, "version": version});
    let first = client.call("update_plan", write("1. Prices\n2. Notes", 0)).await;
    assert_eq!(shown(&first), "the plan has version 1");
    let stale = client.call("update_plan", write("Other", 0)).await;
    assert!(stale["isError"] == true && shown(&stale).contains("the plan has version 1"), "{stale:#}");
    let long = client.call("update_plan", write(&"x".repeat(8_001), 1)).await;
    assert!(long["isError"] == true && shown(&long).contains("text"), "{long:#}");
    assert_eq!(shown(&client.call("read_plan", json!({})).await), "plan version 1\n1. Prices\n2. Notes");
    // The edits are in the same change set.
    client.call("create_file", json!({"path": "snippets/new.liquid", "content": "a"})).await;
    client.call("update_plan", write("Done", 1)).await;
    let sets = h.get(CHANGES).await.expect(200);
    let set = &sets["data"][0];
    assert_eq!(set["plan"], json!({"text": "Done", "version": 2}), "{sets:#}");
    assert_eq!(
        (set["files"][0]["path"].as_str(), sets["data"].as_array().unwrap().len()),
        (Some("snippets/new.liquid"), 1)
    );
    // Names that assistants know from elsewhere lead to the tool that does it.
    for (name, told) in [("read_chunk", "read_lines"), ("push_to_shopify", "not_configured")] {
        let answer = client.call(name, json!({})).await;
        assert!(answer["isError"] == true && shown(&answer).contains(told), "{answer:#}");
    }
}

#[tokio::test]
async fn edits_that_are_replaced_or_refused_leave_no_object() {
    let h = with_price().await;
    let set = begin(&h, "Many").await;
    let make = async |n: usize| {
        let call = json!({"tool": "create_file", "path": format!("snippets/n{n}.liquid"), "content": "a"});
        edit(&h, &set, json!([call])).await;
    };
    futures::join!(make(0), make(1), make(2), make(3), make(4));
    let objects = async || {
        let all = h.platform.cx.blobs.list(&BlobKey::everything(&made::local()), None).await.unwrap();
        all.iter().filter(|key| key.contains("/changes/")).count()
    };
    assert_eq!(objects().await, 1, "those of edits that met another one are gone, too");
    let read = send(h.request(Method::GET, &format!("{set}/files/snippets/n3.liquid"))).await;
    assert_eq!(read.headers["x-content-sha256"].to_str().unwrap()[..12], version("a"));
    assert_eq!(read.expect(200), "a");
    assert_eq!(h.get(&format!("{set}/files/{PRICE}")).await.expect(200), TEXT, "the theme's");
    h.get(&format!("{set}/files/snippets/none.liquid")).await.refused(404, "not_found");
    send(h.request(Method::DELETE, &set)).await.expect(204);
    assert_eq!(objects().await, 0);
}

#[tokio::test]
async fn a_file_is_edited_often_and_the_last_edits_can_be_taken_back() {
    let h = Harness::start().await;
    let line = "a { color: red; }\n".repeat(25_000);
    put(&h, "assets/large.css", &line).await.expect(201);
    let set = begin(&h, "Often").await;
    let mut text = line;
    for n in 0..45 {
        let next = format!("b{n} {{ order: {n}; }}\n");
        let insert = json!({"after": 0, "content": next});
        let call = json!({"tool": "edit_lines", "path": "assets/large.css", "version": version(&text), "edits": [insert]});
        edit(&h, &set, json!([call])).await;
        text.insert_str(0, &next);
    }
    edit(&h, &set, json!([{"tool": "undo_edit", "edit": 45}])).await;
    let shown = h.get(&set).await.expect(200);
    assert!(shown["diff"].as_str().unwrap().contains("+b43 { order: 43; }"), "all but the last edit");
    let first = json!({"calls": [{"tool": "undo_edit", "edit": 1}]});
    h.post(&format!("{set}/edits"), first).await.refused(409, "edit_refused");
    edit(&h, &set, json!([{"tool": "undo_edit", "all": true}])).await;
    assert_eq!(h.get(&set).await.expect(200)["files"], json!([]));
}

#[tokio::test]
async fn an_edit_over_mcp_is_applied_at_once_if_the_project_says_so() {
    let h = with_price().await;
    let client = mcp::client_of(&h, "/mcp?tools=theme");
    h.patch(PROJECT, json!({"apply_at_once": true})).await.expect(200);
    let call = |old: &str, new: &str, version: &str| {
        let replacements = json!([{"old": old, "new": new}]);
        json!({"path": PRICE, "version": version, "replacements": replacements})
    };
    let after = TEXT.replace("| money }}", "| money_with_currency }}");
    let first = call("| money }}", "| money_with_currency }}", &version(TEXT));
    let edited = client.call("search_replace", first).await;
    assert!(!shown(&edited).contains("applied"), "assistants may not apply yet: {edited:#}");
    assert_eq!(text(&h, PRICE).await, TEXT);

    h.patch(PROJECT, json!({"assistants_apply": true})).await.expect(200);
    // What was begun as a draft stays one.
    let kept = client.call("create_file", json!({"path": "snippets/new.liquid", "content": "a"})).await;
    assert!(shown(&kept).contains("was begun as a draft"), "{kept:#}");
    assert_eq!(text(&h, PRICE).await, TEXT);
    let draft = h.get(CHANGES).await.expect(200)["data"][0]["change_set_id"].as_str().unwrap().to_owned();
    send(h.request(Method::DELETE, &format!("{CHANGES}/{draft}"))).await.expect(204);

    let wrong = client.call("search_replace", call("</p>", "</p>{% if %}", &version(TEXT))).await;
    assert!(shown(&wrong).contains(&format!("Not applied: Shopify would refuse {PRICE}.")), "{wrong:#}");
    // Another edit does not take the refused one along.
    let next = client.call("create_file", json!({"path": "snippets/new.liquid", "content": "a"})).await;
    assert!(shown(&next).contains(&format!("Not applied: Shopify would refuse {PRICE}.")), "{next:#}");
    assert_eq!(text(&h, PRICE).await, TEXT);
    let undone = client.call("undo_edit", json!({"path": PRICE})).await;
    assert!(shown(&undone).contains("\nIt is applied."), "{undone:#}");
    assert_eq!(text(&h, "snippets/new.liquid").await, "a");
    let first = call("| money }}", "| money_with_currency }}", &version(TEXT));
    assert!(shown(&client.call("search_replace", first).await).contains("\nIt is applied."));
    assert_eq!(text(&h, PRICE).await, after);
    // Many at once: each is applied, and each says so.
    let made = futures::future::join_all((0..6).map(|n| {
        client.call("create_file", json!({"path": format!("snippets/n{n}.liquid"), "content": "a"}))
    }));
    for made in made.await {
        assert!(shown(&made).contains("\nIt is applied."), "{made:#}");
    }
    let sets = h.get(CHANGES).await.expect(200);
    let sets = sets["data"].as_array().unwrap();
    assert!(
        sets.len() >= 3 && sets.iter().all(|set| set["state"] == "applied"),
        "each can be taken back: {sets:#?}"
    );
    // Somebody else has changed the file since it was read.
    put(&h, PRICE, TEXT).await.expect(200);
    let stale =
        client.call("search_replace", call("product.price_max", "product.price_min", &version(&after))).await;
    assert_eq!(stale["isError"], true, "{stale:#}");
    assert_eq!(text(&h, PRICE).await, TEXT);
}

#[tokio::test]
async fn a_lookup_knows_what_was_asked_and_edited_before() {
    let h = Harness::start().await;
    for name in ["alpha", "beta", "gamma", "delta"] {
        let text = format!("<div class=\"{name}\">\n  <p>{{{{ {name} }}}}</p>\n</div>\n");
        put(&h, &format!("snippets/{name}.liquid"), &text).await.expect(201);
    }
    let request = "the wobbly thing at the top";
    let found = async |body: Value| ask(&h, "lookup", body).await["targets"].clone();
    let none = found(json!({"request": request})).await;
    assert_eq!(none, json!([]), "no file has these words");

    // An assistant searches, edits and applies. The change set has what it asked.
    let client = mcp::client_of(&h, "/mcp?tools=theme");
    client.call("search_files", json!({"request": format!("  {request}\n now ")})).await;
    let read = client.call("read_file", json!({"path": "snippets/gamma.liquid"})).await;
    let version = shown(&read).split_whitespace().nth(2).unwrap().to_owned();
    let edit = json!([{"start": 2, "content": "  <b>{{ gamma }}</b>"}]);
    client
        .call("edit_lines", json!({"path": "snippets/gamma.liquid", "version": version, "edits": edit}))
        .await;
    let set = h.get(CHANGES).await.expect(200)["data"][0].clone();
    assert_eq!(set["request"], format!("{request} now"), "{set:#}");
    assert_eq!(set["title"], set["request"]);
    assert_eq!(found(json!({"request": request})).await, json!([]), "it is not applied");
    let path = format!("{CHANGES}/{}", set["change_set_id"].as_str().unwrap());
    h.post(&format!("{path}/apply"), json!({"hash": set["hash"]})).await.expect(200);
    let first = found(json!({"request": request})).await[0].clone();
    assert_eq!(first["path"], "snippets/gamma.liquid", "{first:#}");
    assert_eq!(first["ranges"][0], json!([2, 2]), "the lines that were edited: {first:#}");
    let gate = ask(&h, "gate", json!({"request": request})).await;
    assert_eq!(gate["files"][0]["path"], "snippets/gamma.liquid", "{gate:#}");

    // What the caller itself knows comes with the question.
    let own = json!([{"request": "a zebra crossing", "files": ["snippets/beta.liquid"]}]);
    let zebra = found(json!({"request": "zebra crossing", "changes": own})).await;
    assert_eq!(zebra[0]["path"], "snippets/beta.liquid", "{zebra:#}");
    for (changes, field) in [
        (json!([{"files": [], "hours": -1}]), "changes[0].hours"),
        (json!(vec![json!({"files": []}); 101]), "changes"),
        (json!([{"files": vec!["a"; 1_001]}]), "changes[0].files"),
    ] {
        let refused = h.post(&format!("{PROJECT}/lookup"), json!({"request": "a", "changes": changes})).await;
        assert_eq!(refused.refused(400, "invalid_input")["errors"][0]["field"], field);
    }
    // Another project knows nothing of it.
    let other = h.post("/projects", json!({"name": "Other"})).await.expect(201);
    let other = format!("/projects/{}", other["project_id"].as_str().unwrap());
    send(h.request(Method::PUT, &format!("{other}/files/snippets/gamma.liquid")).body("<p></p>"))
        .await
        .expect(201);
    let there = h.post(&format!("{other}/lookup"), json!({"request": request})).await.expect(200);
    assert_eq!(there["targets"], json!([]), "{there:#}");
}

#[tokio::test]
async fn the_outline_of_a_file_names_its_parts() {
    let h = with_price().await;
    put(&h, "assets/base.css", ".a { color: red; }\n\n.b {\n  top: 0;\n}\n").await.expect(201);
    let outline = async |path: &str| h.get(&format!("{PROJECT}/outline?path={path}")).await;
    let of_css = outline("assets/base.css").await.expect(200);
    let parts: Vec<(&Value, &Value)> =
        of_css["nodes"].as_array().unwrap().iter().map(|node| (&node["name"], &node["lines"])).collect();
    let lines = |start: u32, end: u32| json!({"start": start, "end": end});
    assert_eq!(parts, [(&json!(".a"), &lines(1, 1)), (&json!(".b"), &lines(3, 5))], "{of_css:#}");
    assert_eq!(of_css["total_lines"], 5);
    outline("snippets/none.liquid").await.refused(404, "not_found");
    h.get(&format!("{PROJECT}/outline")).await.refused(400, "invalid_input");
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
    let action = h.get(&format!("/actions/{id}")).await.expect(200);
    let asked = format!(
        "{}: {}",
        action["title"].as_str().unwrap(),
        action["task_config"]["instructions"].as_str().unwrap()
    );
    assert_eq!((&set["request"], &set["title"]), (&json!(asked), &json!(asked)), "{set:#}");
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
