//! The map follows the files: bursts, uploads, and events that come twice, late, in any order, or to an indexer that
//! dies.

use std::time::Duration;

use base::clock::Clock;
use futures::future::join_all;
use lamplighter_local::platform::PlatformConfig;
use serde_json::{Value, json};
use tests::themes::{CHANGED, PROJECT, ask, deliver, harbour, import, put, ready, started, zip};
use tests::{Harness, send};

/// A platform whose indexer runs only when the test calls it.
async fn by_hand() -> Harness {
    let config = PlatformConfig { clock: Clock::scaled(20), automatic: false, ..PlatformConfig::in_memory() };
    Harness::with(config).await
}

fn archive_key(import: &Value) -> String {
    let id = import["import_id"].as_str().unwrap();
    format!("local/projects/prj_00000000000000000000000000000000/imports/{id}.zip")
}

/// Requests an upload of this archive and makes it.
async fn upload(h: &Harness, archive: Vec<u8>) -> Value {
    let import = h.post(&format!("{PROJECT}/import"), json!({"bytes": archive.len()})).await.expect(202);
    let put = put_to(&import, archive).await;
    assert_eq!(put.status(), 200, "{}", put.text().await.unwrap());
    import
}

async fn put_to(import: &Value, archive: Vec<u8>) -> reqwest::Response {
    assert_eq!(import["upload"]["method"], "PUT");
    tests::put_archive(&tests::client(), import, archive).await
}

async fn state_of(h: &Harness, import: &Value) -> Value {
    let id = import["import_id"].as_str().unwrap();
    h.get(&format!("{PROJECT}/imports/{id}")).await.expect(200)["state"].clone()
}

async fn files(h: &Harness) -> Vec<String> {
    let list = h.get(&format!("{PROJECT}/files?limit=200")).await.expect(200);
    list["data"].as_array().unwrap().iter().map(|file| file["path"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn a_change_is_seen_at_once_and_the_map_follows() {
    let h = started().await;
    import(&h, zip(&harbour())).await.expect(200);
    assert_eq!(ask(&h, "lookup", json!({"request": "gondola"})).await["targets"], json!([]));
    put(&h, "snippets/gondola.liquid", "<p class=\"gondola\">{{ product.title }}</p>").await.expect(201);
    let found = ask(&h, "lookup", json!({"request": "gondola"})).await;
    assert_eq!(found["targets"][0]["path"], "snippets/gondola.liquid");
    ready(&h).await;
    let later = ask(&h, "lookup", json!({"request": "gondola"})).await;
    assert_eq!((&later["source"], &later["targets"]), (&json!("map"), &found["targets"]));

    h.patch(&format!("{PROJECT}/files/snippets/gondola.liquid"), json!({"path": "snippets/ferry.liquid"}))
        .await
        .expect(200);
    ready(&h).await;
    assert_eq!(
        ask(&h, "lookup", json!({"request": "gondola"})).await["targets"][0]["path"],
        "snippets/ferry.liquid"
    );
    assert_eq!(h.delete(&format!("{PROJECT}/files/snippets/ferry.liquid")).await.status, 204);
    assert_eq!(ready(&h).await["files"], harbour().len());
    assert_eq!(ask(&h, "lookup", json!({"request": "gondola"})).await["targets"], json!([]));
}

#[tokio::test]
async fn a_burst_ends_with_its_last_content() {
    let h = started().await;
    let writes = (0..24).map(|n| {
        let h = &h;
        async move {
            put(h, &format!("assets/f{}.css", n % 4), &format!(".word{n} {{ color: red; }}")).await.status
        }
    });
    assert!(join_all(writes).await.into_iter().all(|status| [200, 201].contains(&status)));
    for n in 0..4 {
        put(&h, &format!("assets/f{n}.css"), &format!(".last{n} {{ color: red; }}")).await;
    }
    let status = ready(&h).await;
    assert_eq!(status["files"], 4);
    for n in 0..4 {
        let found = ask(&h, "lookup", json!({"request": format!("last{n}")})).await;
        assert_eq!(
            (&found["source"], &found["targets"][0]["path"]),
            (&json!("map"), &json!(format!("assets/f{n}.css")))
        );
    }
}

#[tokio::test]
async fn an_upload_is_accepted_as_signed_and_imported() {
    let h = started().await;
    let archive = zip(&harbour());
    let import = h.post(&format!("{PROJECT}/import"), json!({"bytes": archive.len()})).await.expect(202);
    assert_eq!(import["state"], "waiting");
    assert_eq!(h.get(&format!("{PROJECT}/map/status")).await.expect(200)["state"], "pending");
    let longer = [archive.clone(), vec![0]].concat();
    assert!([400, 403].contains(&put_to(&import, longer).await.status().as_u16()));
    assert_eq!(put_to(&import, archive).await.status(), 200);
    loop {
        if state_of(&h, &import).await == "done" {
            assert_eq!(ready(&h).await["files"], harbour().len());
            return;
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
}

#[tokio::test]
async fn an_upload_that_is_not_a_theme_fails_and_changes_nothing() {
    let h = by_hand().await;
    put(&h, "assets/a.css", ".a {}").await.expect(201);
    for (archive, reason) in
        [(b"no zip at all".to_vec(), "not a zip archive"), (zip(&[("a/../../b", "x")]), "`..`")]
    {
        let import = upload(&h, archive).await;
        deliver(&h, &archive_key(&import)).await.unwrap();
        let id = import["import_id"].as_str().unwrap();
        let ended = h.get(&format!("{PROJECT}/imports/{id}")).await.expect(200);
        assert_eq!(ended["state"], "failed");
        assert!(ended["reason"].as_str().unwrap().contains(reason), "{ended}");
        assert_eq!(files(&h).await, ["assets/a.css"]);
    }
    deliver(&h, CHANGED).await.unwrap();
    assert_eq!(h.get(&format!("{PROJECT}/map/status")).await.expect(200)["state"], "ready");
}

#[tokio::test]
async fn the_last_requested_import_wins_in_any_order_of_uploads() {
    for order in [[0, 1, 1, 0], [1, 0, 0, 1], [1, 1, 0, 0], [0, 0, 1, 1]] {
        let h = by_hand().await;
        put(&h, "assets/before.css", ".before {}").await.expect(201);
        let first =
            upload(&h, zip(&[("assets/first.css", ".first {}"), ("assets/both.css", ".one {}")])).await;
        let second =
            upload(&h, zip(&[("assets/second.css", ".second {}"), ("assets/both.css", ".two {}")])).await;
        let keys = [archive_key(&first), archive_key(&second)];
        for at in order {
            deliver(&h, &keys[at]).await.unwrap();
            deliver(&h, CHANGED).await.unwrap();
        }
        assert_eq!(files(&h).await, ["assets/both.css", "assets/second.css"]);
        let expected = if order[0] == 0 { "done" } else { "superseded" };
        assert_eq!(
            (state_of(&h, &first).await, state_of(&h, &second).await),
            (json!(expected), json!("done"))
        );
        let status = h.get(&format!("{PROJECT}/map/status")).await.expect(200);
        assert_eq!((&status["state"], &status["files"]), (&json!("ready"), &json!(2)));
        assert_eq!(ask(&h, "lookup", json!({"request": "first before"})).await["targets"], json!([]));
        // An edit continues from the versions of the imports.
        let edited = put(&h, "assets/both.css", ".three {}").await.expect(200);
        assert_eq!(
            edited["version"],
            h.get(&format!("{PROJECT}/files?glob=assets/both.css")).await.expect(200)["data"][0]["version"]
        );
    }
}

#[tokio::test]
async fn two_imports_at_once_never_mix() {
    let h = started().await;
    let theme = |name: &str| {
        zip(&(0..30).map(|n| (format!("assets/{n}.css"), format!(".{name}{n} {{}}"))).collect::<Vec<_>>())
    };
    let archives: Vec<Vec<u8>> = ["alpha", "beta", "gamma"].map(theme).to_vec();
    let imports = join_all(archives.iter().map(|archive| import(&h, archive.clone()))).await;
    let mut ids: Vec<(String, usize)> = imports
        .into_iter()
        .enumerate()
        .map(|(at, answer)| (answer.body["import_id"].as_str().unwrap().to_owned(), at))
        .collect();
    ids.sort();
    let winner = ["alpha", "beta", "gamma"][ids[2].1];
    for (id, _) in &ids {
        loop {
            if h.get(&format!("{PROJECT}/imports/{id}")).await.expect(200)["state"] != "waiting" {
                break;
            }
            tokio::time::sleep(Duration::from_millis(25)).await;
        }
    }
    ready(&h).await;
    for n in 0..30 {
        let content = h.get(&format!("{PROJECT}/files/assets/{n}.css")).await.expect(200);
        assert_eq!(content, format!(".{winner}{n} {{}}"));
    }
}

#[tokio::test]
async fn the_next_indexer_continues_after_one_that_died() {
    let h = by_hand().await;
    let import = upload(&h, zip(&harbour())).await;
    let key = archive_key(&import);
    // Interrupted at any point. Its lease ends by time.
    for millis in [3, 15, 40] {
        let cut = tokio::time::timeout(Duration::from_millis(millis), deliver(&h, &key)).await;
        if cut.is_ok() {
            break;
        }
    }
    deliver(&h, &key).await.unwrap();
    assert_eq!((state_of(&h, &import).await, files(&h).await.len()), (json!("done"), harbour().len()));

    put(&h, "assets/late.css", ".late {}").await.expect(201);
    let is_indexing = async {
        while h.get(&format!("{PROJECT}/map/status")).await.expect(200)["state"] != "indexing" {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::select! {
        ended = deliver(&h, CHANGED) => panic!("it waits for the burst to end: {ended:?}"),
        () = is_indexing => {}
    }
    // Three are called at once. One takes over, and none returns before the map has the change.
    for ended in join_all((0..3).map(|_| deliver(&h, CHANGED))).await {
        ended.unwrap();
    }
    let status = h.get(&format!("{PROJECT}/map/status")).await.expect(200);
    assert_eq!((&status["state"], &status["files"]), (&json!("ready"), &json!(harbour().len() + 1)));
}

#[tokio::test]
async fn uploads_without_a_meaning_are_ignored() {
    let h = by_hand().await;
    for key in [
        "local/assets/ast_1/00",
        "local/projects/default/files/00",
        "local/projects/default/theme.changed",
        "local/projects/default/imports/imp_01938f2a7c5e7d3a9b1f4c6d8e0a2b4c.zip",
        "local/projects/prj_01938f2a7c5e7d3a9b1f4c6d8e0a2b4c/theme.changed",
        "nobody",
    ] {
        deliver(&h, key).await.unwrap();
    }
    let gone = h.post("/projects", json!({"name": "gone"})).await.expect(201)["project_id"].clone();
    let path = format!("/projects/{}", gone.as_str().unwrap());
    send(h.request(reqwest::Method::PUT, &format!("{path}/files/a.css")).body("x")).await.expect(201);
    assert_eq!(h.delete(&path).await.status, 204);
    deliver(&h, &format!("local{path}/theme.changed")).await.unwrap();
}
