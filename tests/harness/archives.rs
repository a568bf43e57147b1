//! Archives of accounts: valid ones, and hostile ones that an import must refuse.

use std::collections::BTreeMap;
use std::time::Duration;

use domain::accounts::import::{AccountImportState, ImportFormat};
use domain::ids::Owner;
use jiff::Timestamp;
use rand::SeedableRng;
use rand::rngs::StdRng;
use reqwest::Method;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use shared::Cx;
use shared::blobs::BlobKey;
use shared::flows::accounts::export;
use shared::flows::accounts::import::{self, AccountImportView, NewAccountImport};
use shared::flows::archive::{self, ArchiveLimits};
use shared::flows::executor::route;
use shared::store::{DueItem, Once};

use crate::golden;
use crate::openapi::{Ids, OpenApi};
use crate::things::Caller;
use crate::{client, put_archive};

/// The files of an archive, by path.
pub type Files = BTreeMap<String, Vec<u8>>;

const LIMITS: ArchiveLimits = ArchiveLimits {
    entries: 1_000,
    entry_bytes: 50_000_000,
    total_bytes: 100_000_000,
    path_bytes: 1_000,
    ratio: None,
};

/// An archive that an import must refuse.
pub struct Hostile {
    pub name: &'static str,
    pub zip: Vec<u8>,
    /// The parts of the error: the entry, the field, the limit.
    pub told: Vec<String>,
}

/// The files of a new export.
///
/// # Panics
/// If the account can't be exported.
pub async fn exported(cx: &Cx, owner: &Owner) -> Files {
    let work = async |id| route::process(cx, &DueItem::export(owner, id), Timestamp::MAX).await;
    for (_, running) in cx.store.exports(owner, 10).await.expect("exports").items {
        work(running.value.export_id).await.expect("an export ends");
    }
    let id = export::request(cx, owner, &Once::none()).await.expect("an export begins").export.export_id;
    work(id).await.expect("an export ends");
    let url = export::read(cx, owner, id).await.expect("an export").url.expect("an address");
    let zip = client().get(url).send().await.expect("an archive").bytes().await.expect("an archive");
    let files = archive::read(&zip, &LIMITS).expect("a valid archive");
    files.into_iter().map(|file| (file.path, file.bytes)).collect()
}

/// # Panics
/// If two files have the same path.
#[must_use]
pub fn zip(files: &Files) -> Vec<u8> {
    archive::write(files.iter().map(|(path, bytes)| (path.as_str(), bytes.as_slice()))).expect("a zip")
}

/// The records.
///
/// # Panics
/// If the archive has none.
#[must_use]
pub fn lines(files: &Files) -> Vec<Value> {
    let text = std::str::from_utf8(&files["records.jsonl"]).expect("text");
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

/// The archive with other lines, and with a manifest that fits.
///
/// # Panics
/// If the archive has no manifest.
#[must_use]
pub fn with_lines(files: &Files, lines: &[Value]) -> Files {
    let mut files = files.clone();
    let mut manifest: Value = serde_json::from_slice(&files["manifest.json"]).expect("a manifest");
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    for line in lines {
        *counts.entry(line["kind"].as_str().unwrap_or("agents").to_owned()).or_default() += 1;
    }
    manifest["records"] = json!(counts);
    manifest["objects"] = json!(files.keys().filter(|path| path.starts_with("objects/")).count());
    files.insert("manifest.json".into(), manifest.to_string().into_bytes());
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    files.insert("records.jsonl".into(), text.into_bytes());
    files
}

/// The archive with other objects.
#[must_use]
pub fn with_objects(files: &Files, objects: impl IntoIterator<Item = (String, Vec<u8>)>) -> Files {
    let mut files = files.clone();
    files.extend(objects.into_iter().map(|(path, bytes)| (format!("objects/{path}"), bytes)));
    let lines = lines(&files);
    with_lines(&files, &lines)
}

/// The first record of a partition whose key begins like this. `*` in the partition stands for one part.
///
/// # Panics
/// If there is none.
#[must_use]
pub fn position(lines: &[Value], partition: &str, key: &str) -> usize {
    let matches = |line: &Value| {
        let parts: Vec<&str> = line["partition"].as_str().unwrap_or_default().split('#').collect();
        let wanted: Vec<&str> = partition.split('#').collect();
        parts.len() == wanted.len()
            && parts.iter().zip(&wanted).all(|(part, wanted)| *wanted == "*" || part == wanted)
            && line["key"].as_str().unwrap_or_default().starts_with(key)
    };
    lines.iter().position(matches).unwrap_or_else(|| panic!("no record {key} of {partition}"))
}

/// The archive with a changed record.
#[must_use]
pub fn changed(files: &Files, partition: &str, key: &str, change: impl FnOnce(&mut Value)) -> Files {
    let mut lines = lines(files);
    let at = position(&lines, partition, key);
    change(&mut lines[at]);
    with_lines(files, &lines)
}

/// What a test stores at a path of a record, and what the error says.
type Bad = (&'static str, &'static str, &'static str, &'static str, Value, &'static str);

const DEEP: usize = 40;

fn deep() -> Value {
    (0..DEEP).fold(json!(1), |inner, _| json!([inner]))
}

/// Each with the name, the partition, the key, the place in the record, the value, and what the error names.
fn bad_values() -> Vec<Bad> {
    let huge = || json!(u64::MAX);
    vec![
        (
            "a theme's revision",
            "PROJECT#*",
            "THEME",
            "/revision",
            huge(),
            "revision: must be 0 to 1000000000000",
        ),
        ("a theme's fence", "PROJECT#*", "THEME", "/fence", huge(), "fence: must be"),
        ("a theme's files", "PROJECT#*", "THEME", "/files", huge(), "files: must be 0 to 10000"),
        (
            "a map elsewhere",
            "PROJECT#*",
            "THEME",
            "/map/sha256",
            json!("../../../you/x"),
            "map.sha256: must be",
        ),
        ("a map's revision", "PROJECT#*", "THEME", "/map/revision", huge(), "map.revision: must be"),
        ("a file's version", "PROJECT#*#FILES#*", "FILE", "/version", huge(), "version: must be"),
        (
            "a file elsewhere",
            "PROJECT#*#FILES#*",
            "FILE",
            "/sha256",
            json!("../../x"),
            "sha256: must be a SHA-256",
        ),
        ("a file's size", "PROJECT#*#FILES#*", "FILE", "/bytes", huge(), "bytes: must be 0 to 16777216"),
        ("a wrong size", "PROJECT#*#FILES#*", "FILE", "/bytes", json!(1), "`bytes`"),
        ("an enrichment", "PROJECT#*", "ENRICHMENT", "/cost_micros", json!(-1), "cost_micros: must be"),
        ("a project's name", "PROJECT", "prj", "/name", json!("x".repeat(201)), "name: must be 1 to 200"),
        ("an agent without a name", "AGENT", "agt", "/name", json!(" "), "name: is required"),
        (
            "long instructions",
            "AGENT",
            "agt",
            "/instructions",
            json!("x".repeat(300_000)),
            "instructions: must be at most 20000",
        ),
        (
            "a negative budget",
            "AGENT",
            "agt",
            "/budget/per_run_micros",
            json!(-5),
            "budget.per_run_micros: must be 1 to",
        ),
        ("an agent's costs", "AGENT#*", "METRICS", "/cost_micros", json!(i64::MAX), "cost_micros: must be"),
        ("an agent's counts", "AGENT#*", "METRICS", "/assets", json!(-1), "assets: must be"),
        (
            "an action's budget",
            "ACTION",
            "act",
            "/budget/per_run_micros",
            json!(0),
            "budget.per_run_micros: must be 1 to",
        ),
        ("an action's grants", "ACTION", "act", "/grants", json!(["all"]), "grants: must be names"),
        (
            "an action's text",
            "ACTION",
            "act",
            "/task_config/instructions",
            json!("x".repeat(300_000)),
            "task_config.instructions: must be",
        ),
        (
            "an action's schedule",
            "ACTION",
            "act",
            "/schedule",
            json!({"every": "1s"}),
            "every: must be 1m to 366d",
        ),
        ("an action's version", "ACTION", "act", "/version", huge(), "version: must be"),
        (
            "an action's time",
            "ACTION",
            "act",
            "/created_at",
            json!("-009000-01-01T00:00:00Z"),
            "created_at: must be between",
        ),
        (
            "another action's occurrence",
            "ACTION#*",
            "RUN",
            "/action_id",
            json!("act_00000000000000000000000000000001"),
            "does not belong to its key",
        ),
        ("an occurrence's fence", "ACTION#*", "RUN", "/fence", huge(), "fence: must be"),
        (
            "an occurrence's usage",
            "ACTION#*",
            "RUN",
            "/usage/output_tokens",
            huge(),
            "usage.output_tokens: must be",
        ),
        (
            "an asset's version",
            "ASSET",
            "ast",
            "/content_version",
            huge(),
            "content_version: must be 1 to 1000000000",
        ),
        (
            "an asset elsewhere",
            "ASSET",
            "ast",
            "/sha256",
            json!("../../../you/assets/x"),
            "sha256: must be a SHA-256",
        ),
        ("an asset's title", "ASSET", "ast", "/title", json!(""), "title: is required"),
        ("a version's size", "ASSET#*", "V", "/bytes", json!(1), "`bytes`"),
        ("a chat's title", "CHAT", "cht", "/title", json!("x".repeat(201)), "title: must be at most 200"),
        (
            "an image elsewhere",
            "CHAT#*",
            "MSG",
            "/content",
            json!([{"type": "image", "media_type": "image/png", "bytes": 1, "width": 1, "height": 1, "object": "../../you/x"}]),
            "content[0].object: must be",
        ),
        (
            "alerts",
            "ACCOUNT",
            "PROFILE",
            "/alerts",
            json!(vec![json!({"month_micros": 1}); 50]),
            "alerts: must have at most 10, has 50",
        ),
        (
            "an alert",
            "ACCOUNT",
            "PROFILE",
            "/alerts",
            json!([{"month_micros": -1}]),
            "alerts[0].month_micros: must be 1 to",
        ),
        (
            "a ceiling",
            "ACCOUNT",
            "PROFILE",
            "/budget",
            json!({"per_day_micros": -1}),
            "budget.per_day_micros: must be 1 to",
        ),
        ("a time zone", "ACCOUNT", "PROFILE", "/timezone", json!("Mars/Base"), "timezone"),
        ("used calls", "USAGE#*", "20", "/calls", huge(), "calls: must be"),
        ("used money", "USAGE#*", "20", "/cost_micros", json!(i64::MAX), "cost_micros: must be"),
        ("negative money", "USAGE#*", "20", "/cost_micros", json!(-1), "cost_micros: must be"),
        ("a run's costs", "RUN#*", "META", "/cost_micros", json!(i64::MIN), "cost_micros: must be"),
        ("a run's attempts", "RUN#*", "META", "/fence", huge(), "fence: must be"),
        ("deep data", "RUN#*", "EVENT", "/data", json!({"a": deep()}), "nested too deeply"),
        ("large data", "RUN#*", "EVENT", "/data", json!({"a": "x".repeat(410_000)}), "the limit is 409600"),
        ("a large number", "RUN#*", "EVENT", "/data", json!({"a": 1e300}), "the table does not accept"),
        ("a log's size", "LOG#*", "HEAD", "/bytes", huge(), "bytes: must be"),
        ("a log's lines", "LOG#*", "HEAD", "/entries", huge(), "impossible numbers of lines"),
        ("an invalid line", "LOG#*#*", "LINE", "/line", json!("{"), "has an invalid `line`"),
        ("names", "LOG#*", "NAMES", "/number", json!(u64::MAX), "can't be read"),
        ("missing lines", "LOG#*#*", "SEGMENT", "/last", json!(77), "`last`"),
        (
            "a context document",
            "PROJECT#*",
            "CONTEXT",
            "/document/title",
            json!("x".repeat(300_000)),
            "title: must be 1 to",
        ),
    ]
}

/// Two files whose entries in the directory name the same data.
fn overlapping(files: &Files) -> Vec<u8> {
    let content = b"the same data".to_vec();
    let sha256 = domain::hex(&Sha256::digest(&content));
    let path = |digit: &str| format!("assets/ast_{}/{sha256}", digit.repeat(32));
    let mut zip = zip(&with_objects(files, [(path("0"), content.clone()), (path("1"), content)]));
    let central = |zip: &[u8], name: &str| {
        let name = format!("objects/{name}");
        let at = zip.windows(name.len()).rposition(|part| part == name.as_bytes()).expect("an entry");
        // The fixed part of an entry in the directory has 46 bytes. The offset of the data's header is its last part.
        at - 4
    };
    let (from, to) = (central(&zip, &path("0")), central(&zip, &path("1")));
    let offset: [u8; 4] = zip[from..from + 4].try_into().expect("four bytes");
    zip[to..to + 4].copy_from_slice(&offset);
    zip
}

/// Archives that an import must refuse, made from a valid one that has a record of each kind.
#[must_use]
pub fn hostile(files: &Files) -> Vec<Hostile> {
    let mut all: Vec<Hostile> = bad_values()
        .into_iter()
        .map(|(name, partition, key, place, value, told)| {
            let mut line = 0;
            let files = {
                line += position(&lines(files), partition, key) + 1;
                changed(files, partition, key, |line| set(&mut line["record"], place, value))
            };
            Hostile { name, zip: zip(&files), told: vec![format!("line {line} "), told.to_owned()] }
        })
        .collect();
    let moved = |name, partition, key: &str, field: &str, number: Value, told: &str| {
        let files = changed(files, partition, &format!("{key}#"), |line| {
            line["key"] = json!(format!("{key}#{number}"));
            line["record"][field] = number.clone();
        });
        Hostile { name, zip: zip(&files), told: vec!["line ".to_owned(), told.to_owned()] }
    };
    all.push(moved(
        "an event's number",
        "RUN#*",
        "EVENT",
        "id",
        json!(u64::MAX),
        "`id`: must be 1 to 9999999999",
    ));
    all.push(moved("a step's number", "RUN#*", "STEP", "n", json!(u32::MAX), "`n` or `call`"));

    let mut object = |name, objects: Vec<(String, Vec<u8>)>, told: &[&str]| {
        let told = told.iter().map(|told| (*told).to_owned()).collect();
        all.push(Hostile { name, zip: zip(&with_objects(files, objects)), told });
    };
    let hash = |content: &[u8]| domain::hex(&Sha256::digest(content));
    let asset = |n: usize, sha256: &str| format!("assets/ast_{n:032}/{sha256}");
    let zeros = |size: usize| (asset(size, &hash(&vec![0; size])), vec![0; size]);
    object("a bomb", vec![zeros(32 * 1024 * 1024)], &["objects/assets/ast_", "more than 250 times"]);
    let many = (0..30).map(|n| zeros(3_900_000 + n)).collect();
    object("many small bombs", many, &["objects/assets/ast_", "more than 100 times"]);
    object("another content", vec![(asset(1, &hash(b"x")), b"y".to_vec())], &["assets/ast_", "SHA-256"]);
    object("no text", vec![(asset(1, &hash(b"\xff")), b"\xff".to_vec())], &["assets/ast_", "is not UTF-8"]);
    let project = format!("projects/prj_{}", "0".repeat(32));
    object(
        "another file",
        vec![(format!("{project}/files/{}", hash(b"x")), b"y".to_vec())],
        &["files/", "SHA-256"],
    );
    object("invalid notes", vec![(format!("{project}/notes/1"), b"[".to_vec())], &["notes/1", "valid notes"]);
    let message = format!("chats/cht_{}/msg_{}", "0".repeat(32), "0".repeat(32));
    object(
        "an invalid message",
        vec![(message.clone(), b"{}".to_vec())],
        &["msg_", "valid content of a message"],
    );
    let image = json!([{"type": "image", "media_type": "image/png", "bytes": 1, "width": 1, "height": 1, "object": "../x"}]);
    object(
        "an image of a large message",
        vec![(message, image.to_string().into_bytes())],
        &["msg_", "content[0].object"],
    );
    let step = format!("runs/run_{}/0001-1", "0".repeat(32));
    object("an invalid step", vec![(step, b"7".to_vec())], &["0001-1", "part of a step"]);
    object(
        "an invalid segment",
        vec![("logs/s1/arch-1/segments/1".to_owned(), b"{}\n".to_vec())],
        &["segments/1", "invalid line 1"],
    );
    object(
        "an invalid long line",
        vec![("logs/s1/arch-1/lines/1".to_owned(), b"{".to_vec())],
        &["lines/1", "invalid line 1"],
    );
    all.push(Hostile {
        name: "overlapping entries",
        zip: overlapping(files),
        told: vec!["assets/ast_1".into(), "same bytes of the archive".into()],
    });
    all
}

/// Sets a value, and creates the maps on the way to it.
fn set(record: &mut Value, place: &str, value: Value) {
    let mut at = record;
    for part in place.split('/').skip(1) {
        if !at.is_object() {
            *at = Value::Object(Map::new());
        }
        at = &mut at[part];
    }
    *at = value;
}

/// The archive with the highest values that an import accepts.
#[must_use]
pub fn at_the_limits(files: &Files) -> Files {
    let most = 1_000_000_000_000_u64;
    let places = [
        ("PROJECT#*", "THEME", "/revision", json!(most)),
        ("PROJECT#*", "THEME", "/fence", json!(most)),
        ("PROJECT#*", "THEME", "/files", json!(10_000)),
        ("PROJECT#*", "THEME", "/bytes", json!(134_217_728)),
        ("PROJECT#*", "ENRICHMENT", "/cost_micros", json!(most)),
        ("PROJECT#*#FILES#*", "FILE", "/version", json!(most)),
        ("AGENT", "agt", "/instructions", json!("x".repeat(20_000))),
        (
            "AGENT",
            "agt",
            "/budget",
            json!({"per_run_micros": 1_000_000_000, "per_month_micros": 1_000_000_000}),
        ),
        ("AGENT#*", "METRICS", "/assets", json!(most)),
        ("AGENT#*", "METRICS", "/cost_micros", json!(most)),
        ("ACTION", "act", "/version", json!(most)),
        ("ACTION", "act", "/task_config/instructions", json!("x".repeat(20_000))),
        ("ACTION", "act", "/budget", json!({"per_run_micros": 100_000_000, "per_month_micros": 1})),
        ("ACTION#*", "RUN", "/fence", json!(most)),
        ("ACTION#*", "RUN", "/attempts", json!(u32::MAX)),
        ("ACTION#*", "RUN", "/steps_done", json!(u32::MAX)),
        ("ACTION#*", "RUN", "/cost_micros", json!(most)),
        ("ASSET", "ast", "/content_version", json!(1_000_000_000)),
        ("ASSET", "ast", "/title", json!("x".repeat(200))),
        (
            "ACCOUNT",
            "PROFILE",
            "/alerts",
            json!((1..=10).map(|n| json!({"month_micros": n})).collect::<Vec<_>>()),
        ),
        ("ACCOUNT", "PROFILE", "/budget", json!({"per_day_micros": most, "per_month_micros": 1})),
        ("USAGE#*", "20", "/calls", json!(most)),
        ("USAGE#*", "20", "/cost_micros", json!(most)),
        ("RUN#*", "META", "/cost_micros", json!(most)),
        (
            "RUN#*",
            "META",
            "/usage",
            json!({"input_tokens": most, "cache_read_tokens": most, "output_tokens": most}),
        ),
        ("LOG#*", "HEAD", "/bytes", json!(most)),
        ("LOG#*", "HEAD", "/entries", json!(most)),
        ("LOG#*", "NAMES", "/number", json!(u32::MAX)),
    ];
    places.into_iter().fold(files.clone(), |files, (partition, key, place, value)| {
        changed(&files, partition, key, |line| set(&mut line["record"], place, value))
    })
}

/// What of an owner is stored, without the import itself, its job, and what the owner had before it.
///
/// # Panics
/// If the table or the bucket does not answer.
pub async fn stored(cx: &Cx, owner: &Owner) -> Vec<String> {
    let text = |item: &Value, name: &str| item[name]["S"].as_str().unwrap_or_default().to_owned();
    // Not `Golden::of`: it reads the objects of all owners, and others may delete theirs meanwhile.
    let items = golden::items(cx).await;
    let items = items.iter().map(|item| (text(item, "pk"), text(item, "sk")));
    let items = items.filter(|(pk, sk)| {
        let had = ["JOB", "KEY", "WATCHDOG"].map(|partition| format!("U#{owner}#{partition}"));
        pk.starts_with(&format!("U#{owner}#")) && sk != "IMPORT" && !had.contains(pk)
    });
    let objects = cx.blobs.list(&BlobKey::everything(owner), None).await.expect("the bucket answers");
    items.map(|(pk, sk)| format!("{pk} {sk}")).chain(objects).collect()
}

/// Requests an import and uploads the archive.
///
/// # Panics
/// If the request is refused, or if the storage does not answer.
pub async fn uploaded(cx: &Cx, owner: &Owner, zip: &[u8]) {
    uploaded_as(cx, owner, zip, ImportFormat::Account).await;
}

/// Requests an import of this format and uploads the archive.
///
/// # Panics
/// If the request is refused, or if the storage does not answer.
pub async fn uploaded_as(cx: &Cx, owner: &Owner, zip: &[u8], format: ImportFormat) {
    let new = NewAccountImport { bytes: zip.len() as u64, format, ..NewAccountImport::default() };
    let begun = import::request(cx, owner, &Once::none(), &new).await.expect("an import begins");
    assert_eq!(begun.state, AccountImportState::Waiting);
    let target = begun.upload.expect("an upload");
    let mut put = client().put(&target.url).body(zip.to_vec());
    for (name, value) in &target.headers {
        put = put.header(name, value);
    }
    assert_eq!(put.send().await.expect("the storage answers").status(), 200);
}

/// Imports an archive without HTTP. Returns the import after its end.
///
/// # Panics
/// If the request is refused, or if the import fails in a way that it must report.
pub async fn imported_at_once(cx: &Cx, owner: &Owner, zip: &[u8]) -> AccountImportView {
    uploaded(cx, owner, zip).await;
    route::process(cx, &DueItem::import(owner), Timestamp::MAX).await.expect("an import ends");
    import::read(cx, owner).await.expect("the import is read").expect("there is an import")
}

/// Imports the files of OpenClaw without HTTP. Returns the import after its end.
///
/// # Panics
/// If the request is refused, or if the import fails in a way that it must report.
pub async fn brought_in(cx: &Cx, owner: &Owner, zip: &[u8]) -> AccountImportView {
    uploaded_as(cx, owner, zip, ImportFormat::OpenClaw).await;
    route::process(cx, &DueItem::import(owner), Timestamp::MAX).await.expect("an import ends");
    import::read(cx, owner).await.expect("the import is read").expect("there is an import")
}

/// Imports an archive over HTTP. Returns the import after its end.
///
/// # Panics
/// If the request is refused, or if the import does not end.
pub async fn imported(caller: &Caller<'_>, owner: &Owner, zip: &[u8]) -> Value {
    let begun = caller.call(Method::POST, "/account/import", json!({"bytes": zip.len()})).await.expect(202);
    let uploaded = put_archive(&client(), &begun, zip.to_vec()).await;
    assert_eq!(uploaded.status(), 200);
    for _ in 0..600 {
        // The server's own sweep may work on it at the same time.
        route::process(&caller.h.platform.cx, &DueItem::import(owner), Timestamp::MAX)
            .await
            .expect("an import ends");
        let import = caller.call(Method::GET, "/account/import", Value::Null).await.expect(200);
        if import["state"] == "done" || import["state"] == "failed" {
            return import;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("the import does not end");
}

/// The ids of things in an archive, by their names in paths.
#[must_use]
pub fn ids(files: &Files) -> Ids {
    let lines = lines(files);
    let key = |partition, key| {
        lines[position(&lines, partition, key)]["key"].as_str().unwrap_or_default().to_owned()
    };
    let asset = key("ASSET", "ast");
    let theme = &lines[position(&lines, "PROJECT#*", "THEME")]["partition"];
    let project = theme.as_str().unwrap_or_default().replace("PROJECT#", "");
    let path = key("PROJECT#*#FILES#*", "FILE").replace("FILE#", "");
    let import = key("PROJECT#*", "IMPORT").replace("IMPORT#", "");
    Ids::from([
        ("agent_id", key("AGENT", "agt")),
        ("action_id", key("ACTION", "act")),
        ("asset_id", asset),
        ("chat_id", key("CHAT", "cht")),
        ("run_id", key("RUN", "run")),
        ("project_id", project.clone()),
        ("project", project),
        ("import_id", import),
        ("path", path),
        ("call_id", "1.0".to_owned()),
        ("version", "1".to_owned()),
    ])
}

/// Calls every route over what was imported: first those that read, at last those that delete. Returns the number of calls, and
/// those that were not answered, or answered with a server error.
pub async fn call_everything(
    caller: &Caller<'_>,
    reads: &[String],
    ids: &Ids,
    seed: u64,
) -> (usize, Vec<String>) {
    let api = OpenApi::new(caller.h.get("/openapi.json").await.expect(200));
    let mut rng = StdRng::seed_from_u64(seed);
    let mut calls: Vec<(Method, String, Value)> =
        reads.iter().map(|path| (Method::GET, path.clone(), Value::Null)).collect();
    let mut routes = api.routes();
    let order = |method: &Method| match *method {
        Method::GET => 0,
        Method::DELETE => 2,
        _ => 1,
    };
    routes.sort_by_key(|route| (order(&route.method), usize::MAX - route.path.len()));
    for route in routes {
        // An import replaces what is tried, a stopped account refuses most of it, and streams do not end.
        if route.path.contains("/account/import")
            || route.path == "/account/stop"
            || route.path.ends_with("/events") && route.method == Method::GET
        {
            continue;
        }
        let path = route.filled(|p| ids.get(p.name.as_str()).cloned().unwrap_or_else(|| "lamp".to_owned()));
        let query: Vec<String> = route
            .placed("query")
            .filter(|parameter| parameter.is_required)
            .map(|parameter| {
                let value = api.value(&mut rng, &parameter.schema, &parameter.name, ids, 0);
                let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                format!("{}={}", parameter.name, value.replace(' ', "%20").replace('#', "%23"))
            })
            .collect();
        let path = if query.is_empty() { path } else { format!("{path}?{}", query.join("&")) };
        let json = route.bodies.iter().find(|(kind, _)| kind == "application/json");
        let body = json.map_or_else(|| json!({}), |(_, schema)| api.value(&mut rng, schema, "", ids, 0));
        calls.push((route.method, path, body));
    }
    let mut wrong = Vec::new();
    let count = calls.len();
    for (method, path, body) in calls {
        let call = caller.call(method.clone(), &path, body.clone());
        match tokio::time::timeout(Duration::from_secs(60), call).await {
            Err(_) => wrong.push(format!("{method} {path}: no answer within 60 s")),
            // A made-up address of a model server may be one that nobody reaches from here.
            Ok(answer) if answer.body["current"]["error_code"] == "model_unreachable" => {}
            Ok(answer) if answer.status >= 500 => {
                wrong.push(format!(
                    "{method} {path} {body:.200}: {} {:.300}",
                    answer.status,
                    answer.body.to_string()
                ));
            }
            Ok(_) => {}
        }
    }
    (count, wrong)
}
