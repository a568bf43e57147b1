//! The import of an account: an archive becomes the contents of an empty account, or changes nothing.

use std::collections::{BTreeMap, BTreeSet};

use base::clock::{Clock, ManualClock};
use domain::accounts::import::{AccountImport, AccountImportState, Position};
use domain::ids::Owner;
use jiff::{SignedDuration, Timestamp};
use lamplighter_local::platform::PlatformConfig;
use reqwest::Method;
use serde_json::{Value, json};
use shared::Cx;
use shared::blobs::BlobKey;
use shared::config::AuthConfig;
use shared::flows::accounts::import::{self, NewAccountImport};
use shared::flows::executor::route;
use shared::store::{DueItem, Once};
use tests::Harness;
use tests::archives::{self, Files, exported, imported_at_once, lines, uploaded, with_lines, zip};
use tests::everything::{scanned, with_everything};
use tests::stage::noon;
use tests::things::Caller;

fn owner(name: &str) -> Owner {
    Owner::new(name).unwrap()
}

async fn work(cx: &Cx, owner: &Owner) {
    route::process(cx, &DueItem::import(owner), Timestamp::MAX).await.unwrap();
}

/// Stores the newest import as if an executor had left it like this.
async fn left_as(cx: &Cx, owner: &Owner, change: impl FnOnce(&mut AccountImport)) {
    let found = cx.store.account_import(owner).await.unwrap().unwrap();
    let mut import = found.value;
    change(&mut import);
    let saved = cx.store.save_job(owner, &import, found.version, cx.clock.now()).await;
    assert!(saved.unwrap().done());
}

/// A platform whose owner `local` has everything, and the export of that owner.
async fn full() -> (Harness, Files) {
    let h = with_everything().await;
    let files = exported(&h.platform.cx, &owner("local")).await;
    (h, files)
}

/// A platform with keys and without data, which imports only when a test says so.
fn empty() -> PlatformConfig {
    PlatformConfig { auth: AuthConfig::On(None), automatic: false, ..PlatformConfig::in_memory() }
}

/// The objects of an owner, without their owner.
async fn objects(cx: &Cx, owner: &Owner) -> Files {
    let mut found = BTreeMap::new();
    for rest in cx.blobs.list(&BlobKey::everything(owner), None).await.unwrap() {
        let content = cx.blobs.get(&BlobKey::listed(owner, &rest)).await.unwrap();
        found.insert(rest, content.to_vec());
    }
    found
}

/// The record and the version of a stored item.
fn plain(item: &Value) -> Value {
    let mut item = item.clone();
    let is_due = item.get("shard").is_some();
    for name in ["pk", "_w", "ttl", "shard", "found_at", "found_until"] {
        item.as_object_mut().unwrap().remove(name);
    }
    if is_due {
        item.as_object_mut().unwrap().remove("due_at");
    }
    item
}

#[tokio::test]
async fn an_account_moves_with_everything_that_has_ended() {
    let (h, files) = full().await;
    let (cx, me) = (&h.platform.cx, owner("mover"));
    let view = imported_at_once(cx, &me, &zip(&files)).await;
    assert_eq!((view.state, view.error.as_deref()), (AccountImportState::Done, None));

    let strip = |items: BTreeMap<(String, String), Value>, name: &str| -> BTreeMap<(String, String), Value> {
        let prefix = format!("U#{name}#");
        items
            .into_iter()
            .map(|((pk, sk), item)| ((pk.strip_prefix(&prefix).unwrap().to_owned(), sk), item))
            .collect()
    };
    let before = strip(scanned(cx, "local").await, "local");
    let mut after = strip(scanned(cx, "mover").await, "mover");
    after.remove(&("ACCOUNT".to_owned(), "IMPORT".to_owned())).unwrap();
    // The import itself is a job, and from now on the watchdog looks at the account.
    after.retain(|(pk, _), _| pk != "JOB" && pk != "WATCHDOG");
    assert!(after.len() > 80, "{}", after.len());
    let mut noted = Vec::new();
    for (key, item) in &after {
        if item.get("command").is_some_and(|command| command["S"] == "import") {
            noted.push(key.0.split('#').next().unwrap());
            assert_eq!(item["by"], json!({"M": {"kind": {"S": "import"}}}));
            continue;
        }
        let old = before.get(key).unwrap_or_else(|| panic!("{key:?} is new"));
        match key.0.as_str() {
            // A person must approve it again.
            "ACTION" => {
                assert_eq!(
                    (&item["state"]["S"], &item["approval"]),
                    (&json!("defined"), &json!({"NULL": true}))
                );
                assert_eq!(item["schedule"], old["schedule"]);
                assert!(item.get("due_at").is_none() && old.get("due_at").is_some());
            }
            "ACCOUNT" => {
                assert_eq!((&item["timezone"], &item["overage"]["S"]), (&old["timezone"], &json!("off")));
            }
            "AGENT" => {
                let without_version = |item: &Value| {
                    let mut item = plain(item);
                    item.as_object_mut().unwrap().remove("_v");
                    item
                };
                assert_eq!(without_version(item), without_version(old), "{key:?}");
            }
            _ => assert_eq!(plain(item), plain(old), "{key:?}"),
        }
        let version = |item: &Value| item["_v"]["N"].as_str().unwrap().parse::<u64>().unwrap();
        // The import itself is a change of an action and of an agent.
        let added = u64::from(matches!(key.0.as_str(), "ACTION" | "AGENT"));
        assert_eq!(version(item), version(old) + added, "{key:?}");
        if old.get("ttl").is_some() {
            assert!(item.get("ttl").is_some(), "{key:?} would be kept for ever");
        }
    }
    assert!(noted.contains(&"ACTION") && noted.contains(&"AGENT"), "{noted:?}");
    let left: BTreeSet<&str> = before
        .keys()
        .filter(|key| !after.contains_key(key))
        .map(|(pk, _)| pk.split('#').next().unwrap())
        .collect();
    let expected = [
        "ACCOUNT",
        "ACTION",
        "AGENT",
        "CHAT",
        "CLIENTCHAT",
        "EXPORT",
        "CHANNEL",
        "DELIVERY",
        "DOCSHOOK",
        "IDEMPOTENCY",
        "KEY",
        "NOTICE",
        "OUTBOX",
        "LOGDROPPED",
        "LOGIMPORT",
        "LOGREFUSED",
        "MEMORY",
        "JOB",
        "PLACE",
        "PROJECT",
        "PROPOSAL",
        "PROVIDERKEY",
        "QUOTA",
        "RUN",
        "SECRET",
        "SERVER",
        "SPEND",
        "WATCHDOG",
    ];
    assert!(left.iter().all(|kind| expected.contains(kind)), "{left:?}");
    // The counts are of things that people know, and not of records.
    let things = [
        ("account", 1),
        ("actions", 1),
        ("agents", 1),
        ("asset_versions", 3),
        ("assets", 2),
        ("chats", 3),
        ("context_document_versions", 2),
        ("context_documents", 1),
        ("log_sessions", 2),
        ("logs", 5),
        ("messages", 10),
        ("model_settings", 1),
        ("projects", 2),
        ("theme_files", 6),
        ("theme_imports", 1),
        ("themes", 1),
    ];
    let counted: BTreeMap<&str, u64> =
        view.records.iter().map(|(kind, count)| (kind.as_str(), *count)).collect();
    let left_out: BTreeMap<&str, u64> =
        view.left_out.iter().map(|(kind, count)| (kind.as_str(), *count)).collect();
    assert_eq!(
        things.iter().copied().filter(|(kind, count)| counted.get(kind) != Some(count)).collect::<Vec<_>>(),
        [],
        "{counted:?}"
    );
    assert_eq!((left_out.get("approvals"), left_out.get("proposals")), (Some(&1), Some(&1)), "{left_out:?}");

    // Objects are the same, but nothing that would begin work or that expires.
    let (old, new) = (objects(cx, &owner("local")).await, objects(cx, &me).await);
    assert!(new.len() > 10 && view.objects <= new.len() as u64, "{} and {}", new.len(), view.objects);
    for (path, content) in &old {
        let begins_work = BlobKey::parse_upload(BlobKey::listed(&me, path).as_str()).is_some();
        match path.split('/').next().unwrap() {
            "exports" | "memory" | "proposals" => assert!(!new.contains_key(path), "{path}"),
            _ if begins_work => {}
            _ => assert_eq!(&new[path], content, "{path}"),
        }
    }
    assert!(!new.contains_key("imports/account.zip"), "the archive is deleted");

    // The account works: what was exported again is what was imported.
    let again = exported(&h.platform.cx, &owner("mover")).await;
    let kept = |files: &Files| -> BTreeMap<String, Value> {
        let all = lines(files).into_iter().filter(|line| line["partition"] != "ACCOUNT");
        all.map(|line| (format!("{} {}", line["partition"], line["key"]), line)).collect()
    };
    let (first, second) = (kept(&files), kept(&again));
    assert_eq!(second.len() + 1, after.len());
    for (key, line) in second {
        // The import withdraws approvals and adds its own entry to each history, which raises the version.
        let is_of_import = key.contains("CHANGE#") && !first.contains_key(&key);
        if line["partition"] != "ACTION" && line["partition"] != "AGENT" && !is_of_import {
            assert_eq!(line, first[&key]);
        }
    }
}

/// The record of the import, its job, and the mark by which the watchdog finds the account.
fn is_of_the_import(pk: &str, sk: &str) -> bool {
    sk == "IMPORT" || pk.ends_with("#JOB") || pk.ends_with("#WATCHDOG")
}

#[tokio::test]
async fn nothing_is_written_unless_everything_is_valid() {
    let (h, files) = full().await;
    let (cx, me) = (&h.platform.cx, owner("mover"));
    let all = lines(&files);
    let agent = all.iter().position(|line| line["partition"] == "AGENT").unwrap();
    let run = all.iter().position(|line| line["key"] == "META").unwrap();
    let check = async |files: &Files, expected: &str| {
        let view = imported_at_once(cx, &me, &zip(files)).await;
        let error = view.error.unwrap_or_default();
        assert!(view.state == AccountImportState::Failed && error.contains(expected), "{expected}: {error}");
        let written: Vec<_> =
            scanned(cx, "mover").await.into_keys().filter(|(pk, sk)| !is_of_the_import(pk, sk)).collect();
        assert_eq!(written, [], "{expected}");
        assert_eq!(objects(cx, &me).await, BTreeMap::new(), "{expected}");
    };
    let changed = |at: usize, change: &dyn Fn(&mut Value)| {
        let mut lines = all.clone();
        change(&mut lines[at]);
        with_lines(&files, &lines)
    };
    for (change, expected) in [
        (&(|line: &mut Value| line["record"]["name"] = 7.into()) as &dyn Fn(&mut Value), "can't be read"),
        (&|line: &mut Value| line["record"] = Value::Null, "can't be read"),
        (&|line: &mut Value| line["partition"] = "AGENTS".into(), "is unknown"),
        (&|line: &mut Value| line["partition"] = "U#local#AGENT".into(), "is unknown"),
        (&|line: &mut Value| line["partition"] = "RUN#x".into(), "is unknown"),
        (
            &|line: &mut Value| line["key"] = "agt_00000000000000000000000000000001".into(),
            "does not belong to its key",
        ),
        (&|line: &mut Value| line["key"] = "x".repeat(1_025).into(), "1 to 1024 bytes"),
        (&|line: &mut Value| line["version"] = 0.into(), "the version must be"),
        (&|line: &mut Value| line["version"] = u64::MAX.into(), "the version must be"),
        (&|line: &mut Value| *line = json!([]), "line"),
    ] {
        check(&changed(agent, change), expected).await;
    }
    check(
        &changed(run, &|line| line["record"]["run_id"] = "run_00000000000000000000000000000001".into()),
        "does not belong",
    )
    .await;
    // The line is named.
    check(&changed(agent, &|line| line["record"]["name"] = 7.into()), &format!("line {} of", agent + 1))
        .await;

    let with = |path: &str, bytes: &[u8]| {
        let mut files = files.clone();
        files.insert(path.to_owned(), bytes.to_vec());
        with_lines(&files, &all)
    };
    check(&with("other.txt", b"x"), "unknown file").await;
    check(&with("objects/secrets/x", b"x"), "is unknown").await;
    check(&with("objects/assets/large", &vec![0; 33 * 1024 * 1024]), "has more than").await;
    let without = |path: &str| {
        let mut files = files.clone();
        files.remove(path).unwrap();
        files
    };
    check(&without("manifest.json"), "has no manifest.json").await;
    check(&without("records.jsonl"), "not as many records").await;
    let manifest = |change: fn(&mut Value)| {
        let mut manifest: Value = serde_json::from_slice(&files["manifest.json"]).unwrap();
        change(&mut manifest);
        let mut files = files.clone();
        files.insert("manifest.json".into(), manifest.to_string().into_bytes());
        files
    };
    check(&manifest(|manifest| manifest["version"] = 2.into()), "version 1").await;
    check(&manifest(|manifest| manifest["objects"] = 1.into()), "not as many records and objects").await;
    let view = imported_at_once(cx, &me, b"this is no zip").await;
    assert!(view.error.as_deref().unwrap().contains("not a zip archive"), "{view:?}");
    // A damaged object is found in the check, too.
    let mut damaged = zip(&files);
    let middle = damaged.windows(8).position(|bytes| bytes == b"objects/").unwrap() + 200;
    damaged[middle..middle + 16].fill(0xA5);
    let view = imported_at_once(cx, &me, &damaged).await;
    assert_eq!(view.state, AccountImportState::Failed, "{view:?}");
    assert_eq!(objects(cx, &me).await, BTreeMap::new());
}

#[tokio::test]
async fn an_import_continues_where_it_was_interrupted_and_replaces_nothing() {
    let (h, files) = full().await;
    let (cx, me) = (&h.platform.cx, owner("mover"));
    uploaded(cx, &me, &zip(&files)).await;
    // No executor has time: the import stays as it is.
    for _ in 0..3 {
        let soon = cx.clock.now() + SignedDuration::from_secs(10);
        route::process(cx, &DueItem::import(&me), soon).await.unwrap();
        assert_eq!(import::read(cx, &me).await.unwrap().unwrap().state, AccountImportState::Running);
    }
    // An executor was killed after it had written the objects and some records.
    left_as(cx, &me, |import| import.position = Position { objects: u64::MAX, lines: 3 }).await;
    // Two executors at once: one of them writes.
    futures::future::join_all((0..3).map(|_| work(cx, &me))).await;
    let view = import::read(cx, &me).await.unwrap().unwrap();
    assert_eq!((view.state, view.objects), (AccountImportState::Done, 0), "{view:?}");
    assert_eq!(view.records["agents"], 1, "{view:?}");

    // What exists stays.
    let agent = scanned(cx, "mover").await.into_iter().find(|((pk, _), _)| pk == "U#mover#AGENT").unwrap().1;
    let (table, name) = cx.store.raw();
    let mut record = found_item(cx, &agent).await;
    record.insert("name".into(), aws_sdk_dynamodb::types::AttributeValue::S("Mine".into()));
    table.put_item().table_name(name).set_item(Some(record)).send().await.unwrap();
    let refused = import::request(
        cx,
        &me,
        &Once::none(),
        &NewAccountImport { bytes: 1, ..NewAccountImport::default() },
    )
    .await
    .unwrap_err();
    assert!(refused.to_string().ends_with("an import needs an empty account"), "{refused}");
    left_as(cx, &me, |import| {
        (import.state, import.position) = (AccountImportState::Failed, Position { objects: 1, lines: 1 });
    })
    .await;
    let view = imported_at_once(cx, &me, &zip(&files)).await;
    assert_eq!(view.state, AccountImportState::Done, "{view:?}");
    assert_eq!(found_item(cx, &agent).await["name"].as_s().unwrap(), "Mine");
}

async fn found_item(
    cx: &Cx,
    of: &Value,
) -> std::collections::HashMap<String, aws_sdk_dynamodb::types::AttributeValue> {
    use aws_sdk_dynamodb::types::AttributeValue;
    let (table, name) = cx.store.raw();
    let part = |name: &str| AttributeValue::S(of[name]["S"].as_str().unwrap().to_owned());
    let get = table.get_item().table_name(name).key("pk", part("pk")).key("sk", part("sk"));
    get.send().await.unwrap().item.unwrap()
}

#[tokio::test]
async fn only_an_empty_account_takes_an_archive_and_only_for_an_hour() {
    let clock = ManualClock::at(noon());
    let h = Harness::with(PlatformConfig { clock: Clock::Manual(clock.clone()), ..empty() }).await;
    let (mine, theirs) = (h.key_of("me").await, h.key_of("you").await);
    let (me, you) = (Caller { h: &h, key: Some(&mine) }, Caller { h: &h, key: Some(&theirs) });
    me.call(Method::GET, "/account/import", Value::Null).await.expect(204);
    for bytes in [0, 5_000_000_001_u64] {
        me.call(Method::POST, "/account/import", json!({ "bytes": bytes }))
            .await
            .refused(400, "invalid_input");
    }
    let begun = me.call(Method::POST, "/account/import", json!({"bytes": 10})).await.expect(202);
    assert_eq!((&begun["state"], &begun["upload"]["method"]), (&json!("waiting"), &json!("PUT")));
    // A request that waits is replaced by the next one. Only one of several at once succeeds.
    let several = (0..8).map(|_| me.call(Method::POST, "/account/import", json!({"bytes": 11})));
    let answers = futures::future::join_all(several).await;
    let (mut accepted, mut refused) = (0, 0);
    for answer in answers {
        match answer.status {
            202 => accepted += 1,
            409 => refused += 1,
            other => panic!("{other}"),
        }
    }
    assert!(accepted >= 1 && accepted + refused == 8, "{accepted} and {refused}");
    let read = me.call(Method::GET, "/account/import", Value::Null).await.expect(200);
    assert_eq!((&read["bytes"], read.get("upload")), (&json!(11), None));

    let agent = json!({"name": "A", "goal": "G"});
    you.call(Method::POST, "/agents", agent).await.expect(201);
    let refused = you.call(Method::POST, "/account/import", json!({"bytes": 10})).await;
    refused.refused(409, "account_not_empty");
    you.call(Method::GET, "/account/import", Value::Null).await.expect(204);

    let cx = &h.platform.cx;
    work(cx, &owner("me")).await;
    let state = async || import::read(cx, &owner("me")).await.unwrap().unwrap().state;
    assert_eq!(state().await, AccountImportState::Waiting);
    clock.set(noon() + SignedDuration::from_mins(61));
    work(cx, &owner("me")).await;
    assert_eq!(state().await, AccountImportState::Failed);
}

#[tokio::test]
async fn hostile_archives_are_refused_and_nothing_of_them_is_stored() {
    let (_, files) = full().await;
    let h = Harness::with(empty()).await;
    let cx = &h.platform.cx;
    let hostile = archives::hostile(&files);
    assert!(hostile.len() > 60, "{}", hostile.len());
    let mut wrong = Vec::new();
    for (n, archive) in hostile.iter().enumerate() {
        let me = owner(&format!("attacker-{n}"));
        let key = h.key_of(me.as_str()).await;
        let import = archives::imported(&Caller { h: &h, key: Some(&key) }, &me, &archive.zip).await;
        let error = import["error"].as_str().unwrap_or_default();
        let is_told = archive.told.iter().all(|told| error.contains(told));
        let stored = archives::stored(cx, &me).await;
        if import["state"] != "failed" || !is_told || !stored.is_empty() {
            wrong.push(format!(
                "{}: {} {error:?}, expected {:?}; stored {stored:?}",
                archive.name, import["state"], archive.told
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test]
async fn every_route_answers_over_the_highest_values_that_an_import_accepts() {
    let golden: tests::golden::Golden = serde_json::from_str(include_str!("../../golden/data.json")).unwrap();
    let reads: Vec<String> = golden.reads.into_iter().map(|read| read.path).collect();
    assert!(reads.len() > 20, "{}", reads.len());
    let (_, files) = full().await;
    let clock = Clock::Manual(ManualClock::at(golden.written_at));
    let h = Harness::with(PlatformConfig { clock, ..empty() }).await;
    for (name, files) in [("plain", files.clone()), ("limits", archives::at_the_limits(&files))] {
        let key = h.key_of(name).await;
        let caller = Caller { h: &h, key: Some(&key) };
        let import = archives::imported(&caller, &owner(name), &zip(&files)).await;
        assert_eq!(import["state"], "done", "{name}: {import:#}");
        assert_eq!(import["records"]["agents"], 1, "{import:#}");
        // The indexer looks at the theme, too.
        let ids = archives::ids(&files);
        let project = ids["project_id"].parse().unwrap();
        themes::index::catch_up(&h.platform.cx, &owner(name), project, Timestamp::MAX).await.unwrap();
        let (calls, wrong) = archives::call_everything(&caller, &reads, &ids, 1).await;
        assert!(calls > 100, "{calls}");
        assert!(wrong.is_empty(), "{name}:\n{}", wrong.join("\n"));
    }
}

#[tokio::test]
async fn objects_without_a_record_stay_behind_and_records_without_their_object_too() {
    let (_, files) = full().await;
    let h = Harness::with(empty()).await;
    let (cx, me, key) = (&h.platform.cx, owner("me"), h.key_of("me").await);
    let caller = Caller { h: &h, key: Some(&key) };
    let stray = |n: usize| (format!("assets/ast_{n:032}/stray-{n}"), n.to_string().into_bytes());
    let mut files = archives::with_objects(
        &files,
        (0..50).map(|n| {
            let (_, content) = stray(n);
            let sha256 = domain::hex(&<sha2::Sha256 as sha2::Digest>::digest(&content));
            (format!("assets/ast_{n:032}/{sha256}"), content)
        }),
    );
    // An export lacks objects that were deleted while it was written: here the theme's map and the content of an asset.
    let map = files.keys().find(|path| path.contains("/maps/")).unwrap().clone();
    let asset = archives::ids(&files)["asset_id"].clone();
    files.retain(|path, _| *path != map && !path.contains(&asset));
    let files = with_lines(&files, &lines(&files));
    let import = archives::imported(&caller, &me, &zip(&files)).await;
    assert_eq!(import["state"], "done", "{import:#}");
    assert_eq!(
        (&import["records"]["themes"], &import["left_out"]["assets"]),
        (&json!(1), &json!(1)),
        "{import:#}"
    );
    assert!(import["left_out"]["objects"].as_u64().unwrap() >= 50, "{import:#}");
    let stored = objects(cx, &me).await;
    assert!(stored.keys().all(|path| !path.starts_with("assets/ast_0000000000")), "{:?}", stored.keys());
    assert!(!stored.is_empty());
    caller.call(Method::GET, &format!("/assets/{asset}"), Value::Null).await.refused(404, "not_found");
}

#[tokio::test]
async fn an_imported_approval_is_no_approval() {
    let (_, files) = full().await;
    let h = Harness::with(empty()).await;
    let key = h.key_of("me").await;
    let caller = Caller { h: &h, key: Some(&key) };
    assert!(lines(&files).iter().any(|line| line["key"] == "APPROVED"));
    archives::imported(&caller, &owner("me"), &zip(&files)).await;
    let action = archives::ids(&files)["action_id"].clone();
    let approval =
        caller.call(Method::GET, &format!("/actions/{action}/approval"), Value::Null).await.expect(200);
    assert_eq!(
        (&approval["holds"], approval.get("approved"), &approval["changes"]),
        (&json!(false), None, &json!([])),
        "{approval:#}"
    );
}

#[tokio::test]
async fn a_plan_limits_the_inflated_size() {
    use shared::config::PlansConfig;
    let plans = PlansConfig {
        default: domain::accounts::plans::Plan::Starter,
        allowed: vec![domain::accounts::plans::Plan::Starter],
    };
    let h = Harness::with(PlatformConfig { plans, ..empty() }).await;
    let key = h.key_of("me").await;
    let caller = Caller { h: &h, key: Some(&key) };
    let refused = caller.call(Method::POST, "/account/import", json!({"bytes": 1_000_000_001})).await;
    let refused = refused.refused(400, "invalid_input");
    assert!(refused.to_string().contains("1000000000"), "{refused:#}");
    caller.call(Method::POST, "/account/import", json!({"bytes": 1_000_000_000})).await.expect(202);
}
