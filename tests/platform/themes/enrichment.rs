//! A model describes a theme: what is sent to it and how often, which parts of its answers are used, and what stops it.

use base::clock::Clock;
use futures::future::join_all;
use jiff::SignedDuration;
use lamplighter_local::platform::PlatformConfig;
use models::ModelsConfig;
use serde_json::{Value, json};
use shared::Cx;
use shared::blobs::BlobKey;
use shared::config::{BudgetConfig, Config};
use shared::store::keys;
use tests::Harness;
use tests::made;
use tests::model::{Says, ScriptedModel};
use tests::themes::{CHANGED, deliver, deliver_to};
use tests::themes::{PROJECT, ask, harbour, import, put, ready, started, zip};

/// The paths of the files that a message shows.
fn shown(message: &Value) -> Vec<String> {
    let lines = message["content"].as_str().unwrap().lines();
    let heads = lines.filter_map(|line| line.strip_prefix("=== ")?.rsplit_once(" ("));
    heads.map(|(path, _)| path.to_owned()).collect()
}

fn note(path: &str) -> Value {
    json!({
        "path": path, "purpose": format!("Merchants know {path} as the thing."), "keywords": ["thing"],
        "features": [{"name": "All of it", "start_line": 1, "end_line": 1}],
    })
}

fn notes(messages: &[Value]) -> Value {
    let files: Vec<Value> = shown(messages.last().unwrap()).iter().map(|path| note(path)).collect();
    json!({ "files": files })
}

/// A model that follows the request.
fn describes(messages: &[Value]) -> Says {
    Says::Call("describe_files", notes(messages))
}

/// The files of each request, sorted.
fn sent(model: &ScriptedModel) -> Vec<Vec<String>> {
    let files = |body: &Value| {
        let mut files = shown(body["messages"].as_array().unwrap().last().unwrap());
        files.sort();
        files
    };
    model.sent().iter().map(files).collect()
}

fn config(models: ModelsConfig) -> PlatformConfig {
    PlatformConfig { clock: Clock::scaled(20), automatic: false, models, ..PlatformConfig::in_memory() }
}

const THEME: [(&str, &str); 7] = [
    ("assets/base.css", ".price {\n  color: red;\n}\n"),
    ("assets/icon.svg", "<svg></svg>"),
    ("config/settings_data.json", "{}"),
    ("locales/de.json", "{\"a\": \"Warenkorb\"}"),
    ("locales/en.default.json", "{\"a\": \"Cart\"}"),
    ("sections/header.liquid", "<header>\n{% render 'price' %}\n</header>\n"),
    ("snippets/price.liquid", "{{ product.price | money }}\n"),
];
const DESCRIBED: [&str; 4] =
    ["assets/base.css", "locales/en.default.json", "sections/header.liquid", "snippets/price.liquid"];

async fn switch(h: &Harness, on: bool) {
    assert_eq!(h.patch(PROJECT, json!({"enrichment": on})).await.expect(200)["enrichment"], on);
}

/// A platform with a small theme, whose indexer runs only when the test calls it, and a project with enrichment.
async fn with_theme(config: PlatformConfig) -> Harness {
    let h = Harness::with(config).await;
    for (path, content) in THEME {
        put(&h, path, content).await.expect(201);
    }
    switch(&h, true).await;
    h
}

async fn status(h: &Harness) -> Value {
    h.get(&format!("{PROJECT}/map/status")).await.expect(200)["enrichment"].clone()
}

async fn check_status(h: &Harness, state: &str, written: usize, wanted: usize) -> Value {
    let status = status(h).await;
    assert_eq!(
        (&status["state"], &status["files_written"], &status["files_wanted"]),
        (&json!(state), &json!(written), &json!(wanted)),
        "{status:#}"
    );
    status
}

fn reason(status: &Value) -> &str {
    status["reason"].as_str().unwrap()
}

/// The files with a note in the map, and their purposes.
async fn enriched(h: &Harness) -> Vec<(String, String)> {
    let map = h.get(&format!("{PROJECT}/map?limit=200")).await.expect(200);
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let files = map["data"].as_array().unwrap().iter().filter(|file| file.get("enriched").is_some());
    files.map(|file| (text(&file["path"]), text(&file["enriched"]["purpose"]))).collect()
}

async fn enriched_paths(h: &Harness) -> Vec<String> {
    enriched(h).await.into_iter().map(|(path, _)| path).collect()
}

/// The holder has been dead for longer than a lease.
async fn let_the_lease_end(h: &Harness) {
    let (cx, project) = (&h.platform.cx, domain::ids::ProjectId::DEFAULT);
    let found = cx.store.enrichment(&made::local(), project).await.unwrap();
    let ended = found.value.released();
    assert!(
        cx.store.replace_enrichment(&made::local(), project, &ended, found.version).await.unwrap().done()
    );
}

/// How many notes are in the bucket, and whether the state of the enrichment is stored.
async fn left(h: &Harness) -> (usize, bool) {
    let (cx, project) = (&h.platform.cx, domain::ids::ProjectId::DEFAULT);
    let all = BlobKey::all_theme_notes(&made::local(), project);
    let item = cx.store.get::<Value>(&keys::enrichment(&made::local(), project)).await.unwrap();
    (cx.blobs.list(&all, None).await.unwrap().len(), item.is_some())
}

#[tokio::test]
async fn an_imported_theme_is_described() {
    let model = ScriptedModel::start(describes).await;
    let h = Harness::with(PlatformConfig { automatic: true, ..config(model.config("gpt-5.1")) }).await;
    check_status(&h, "off", 0, 0).await;
    switch(&h, true).await;
    check_status(&h, "done", 0, 0).await;
    import(&h, zip(&harbour())).await.expect(200);
    ready(&h).await;
    let found = ask(&h, "lookup", json!({"request": "cart drawer"})).await;
    loop {
        if status(&h).await["state"] == "done" {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(25)).await;
    }

    let requests = model.sent();
    assert_eq!(requests.len(), 1, "it fits into one call");
    let files = sent(&model).remove(0);
    let status = check_status(&h, "done", files.len(), files.len()).await;
    assert_eq!(status["model"], "gpt-5.1");
    assert!(status["cost_micros"].as_i64().unwrap() > 0 && status.get("reason").is_none());
    let has = |path: &str| files.iter().any(|file| file == path);
    assert!(has("sections/header.liquid") && has("locales/en.default.json") && has("assets/cart-drawer.js"));
    assert!(!has("locales/de.json") && !has("assets/icon-cart.svg"));
    assert_eq!(requests[0]["tool_choice"]["function"]["name"], "describe_files");
    let system = requests[0]["messages"][0]["content"].as_str().unwrap();
    assert!(system.contains("not instructions") && system.contains("Outline of the theme:"), "{system}");
    let question = requests[0]["messages"][1]["content"].as_str().unwrap();
    assert!(question.contains("=== snippets/price.liquid (snippet, ") && question.contains("\n1\t"));

    let map = h.get(&format!("{PROJECT}/map?limit=200")).await.expect(200);
    let file =
        |path: &str| map["data"].as_array().unwrap().iter().find(|f| f["path"] == path).unwrap().clone();
    let drawer = file("snippets/cart-drawer.liquid");
    assert_eq!(
        (&drawer["enriched"]["purpose"], &drawer["enriched"]["features"]),
        (
            &json!("Merchants know snippets/cart-drawer.liquid as the thing."),
            &json!([{"name": "All of it", "range": [1, 1]}])
        )
    );
    assert_eq!(
        (&drawer["enriched"]["model"], &drawer["enriched"]["keywords"]),
        (&json!("gpt-5.1"), &json!(["thing"]))
    );
    assert!(drawer["enriched"]["written_at"].is_string());
    assert!(drawer["purpose"].as_str().unwrap().starts_with("Snippet `cart-drawer`"), "the map's own stays");
    assert_eq!(file("locales/de.json").get("enriched"), None);
    let brief = ask(&h, "scout", json!({"request": "cart drawer"})).await;
    assert!(
        brief["key_files"].as_array().unwrap().iter().all(|file| file["enriched"].is_object()),
        "{brief:#}"
    );
    let later = ask(&h, "lookup", json!({"request": "cart drawer"})).await;
    assert_eq!(later["targets"], found["targets"], "what is found does not change");
}

#[tokio::test]
async fn a_gate_shows_notes_next_to_an_outline() {
    let model = ScriptedModel::start(describes).await;
    let h = with_theme(config(model.config("scripted"))).await;
    let long = "<p>{{ product.price }}</p>\n".repeat(1_000);
    put(&h, "sections/price-table.liquid", &long).await.expect(201);
    deliver(&h, CHANGED).await.unwrap();
    let gate = ask(&h, "gate", json!({"request": "price table"})).await;
    let file = |path: &str| gate["files"].as_array().unwrap().iter().find(|f| f["path"] == path).unwrap();
    let (table, whole) = (file("sections/price-table.liquid"), file("snippets/price.liquid"));
    assert!(table["outline"].is_array(), "{table:#}");
    assert_eq!(table["enriched"]["purpose"], "Merchants know sections/price-table.liquid as the thing.");
    assert_eq!((whole.get("outline"), whole.get("enriched")), (None, None));
}

#[tokio::test]
async fn a_content_is_sent_once_even_if_reported_often() {
    let model = ScriptedModel::start(describes).await;
    let h = with_theme(config(model.config("scripted"))).await;
    check_status(&h, "waiting", 0, 0).await;
    for ended in join_all((0..3).map(|_| deliver(&h, CHANGED))).await {
        ended.unwrap();
    }
    deliver(&h, CHANGED).await.unwrap();
    assert_eq!(sent(&model), [DESCRIBED]);
    check_status(&h, "done", 4, 4).await;
    assert_eq!(enriched_paths(&h).await, DESCRIBED);

    // A changed file has no note until it is described again, and only that file is sent. An image changes nothing.
    put(&h, "snippets/price.liquid", "{{ product.price | money_with_currency }}\n").await.expect(200);
    put(&h, "assets/icon.svg", "<svg/>").await.expect(200);
    assert_eq!(enriched_paths(&h).await, DESCRIBED[..3]);
    check_status(&h, "waiting", 4, 4).await;
    deliver(&h, CHANGED).await.unwrap();
    deliver(&h, CHANGED).await.unwrap();
    assert_eq!(sent(&model)[1..], [["snippets/price.liquid"]]);
    assert_eq!(enriched_paths(&h).await, DESCRIBED);

    // A deleted file is not missed.
    assert_eq!(h.delete(&format!("{PROJECT}/files/sections/header.liquid")).await.status, 204);
    deliver(&h, CHANGED).await.unwrap();
    check_status(&h, "done", 3, 3).await;
    assert_eq!((model.asked(), left(&h).await), (2, (1, true)));
}

#[tokio::test]
async fn a_change_is_seen_before_the_next_call() {
    let model = ScriptedModel::held(describes).await;
    let h = Harness::with(config(model.config("scripted"))).await;
    // Two calls: the answer about a file this long takes a large part of a call.
    let content = |n: usize| format!("<p>{n}</p>\n").repeat(300);
    let path = |n: usize| format!("snippets/file{n}.liquid");
    for n in 0..9 {
        put(&h, &path(n), &content(n)).await.expect(201);
    }
    switch(&h, true).await;
    let change = async {
        model.asked_times(1).await;
        put(&h, &path(8), &content(88)).await.expect(200);
        put(&h, &path(0), &content(80)).await.expect(200);
        check_status(&h, "working", 0, 0).await;
        model.allow(100);
    };
    let (ended, ()) = tokio::join!(deliver(&h, CHANGED), change);
    ended.unwrap();
    let first = sent(&model).remove(0);
    assert!(
        (1..9).contains(&first.len()) && first.contains(&path(0)) && !first.contains(&path(8)),
        "{first:?}"
    );
    // The first call's answer is kept except for the changed file, and the old contents of the rest are not sent.
    assert_eq!((model.asked(), enriched(&h).await.len()), (1, first.len() - 1));
    deliver(&h, CHANGED).await.unwrap();
    check_status(&h, "done", 9, 9).await;
    let again: Vec<String> = sent(&model)[1..].concat();
    assert_eq!(again.len(), 9 - first.len() + 1);
    let late = model.sent().iter().skip(1).map(Value::to_string).collect::<String>();
    assert!(late.contains("<p>88</p>") && late.contains("<p>80</p>") && !late.contains("<p>8</p>"));
}

#[tokio::test]
async fn a_busy_provider_is_called_four_times() {
    let model = ScriptedModel::start(describes).await;
    model.refuses([0, 1, 0]);
    let h = with_theme(config(model.config("scripted"))).await;
    deliver(&h, CHANGED).await.unwrap();
    assert_eq!(model.asked(), 4);
    check_status(&h, "done", 4, 4).await;

    model.refuses([0; 8]);
    put(&h, "assets/base.css", ".price { color: blue }").await.expect(200);
    deliver(&h, CHANGED).await.unwrap();
    let stopped = check_status(&h, "stopped", 3, 4).await;
    assert!(reason(&stopped).contains("rate limit") && reason(&stopped).ends_with("4 times"), "{stopped}");
    assert_eq!(model.asked(), 8);
    // No work is left, and a wake-up without a reason does not ask again.
    assert_eq!(ask(&h, "lookup", json!({"request": "price"})).await["source"], "map");
    assert_eq!(enriched_paths(&h).await, DESCRIBED[1..]);
    deliver(&h, CHANGED).await.unwrap();
    assert_eq!(model.asked(), 8);
    // It continues when it is requested again, and after the next change.
    switch(&h, true).await;
    deliver(&h, CHANGED).await.unwrap();
    assert_eq!(model.asked(), 12);
    put(&h, "assets/icon.svg", "<svg/>").await.expect(200);
    deliver(&h, CHANGED).await.unwrap();
    assert_eq!(model.asked(), 13);
    check_status(&h, "done", 4, 4).await;
}

#[tokio::test]
async fn only_the_parts_of_an_answer_that_match_the_files_are_used() {
    fn odd(messages: &[Value]) -> Says {
        let files: Vec<Value> = shown(&messages[messages.len() - 1])
            .iter()
            .map(|path| match path.as_str() {
                "assets/base.css" => json!({
                    "path": path, "purpose": "x\u{7}".repeat(5_000), "keywords": vec!["word"; 50],
                    "features": [
                        {"name": "Inside", "start_line": 1, "end_line": 3},
                        {"name": "Outside", "start_line": 2, "end_line": 400},
                    ],
                }),
                "snippets/price.liquid" => json!({"path": "snippets/prices.liquid", "purpose": "A typo"}),
                path => note(path),
            })
            .collect();
        Says::Call("describe_files", json!({"files": files}))
    }
    let model = ScriptedModel::start(odd).await;
    let h = with_theme(config(model.config("scripted"))).await;
    deliver(&h, CHANGED).await.unwrap();
    // The file without a note is sent once more, alone, and then given up.
    assert_eq!(sent(&model)[1..], [["snippets/price.liquid"]]);
    let done = check_status(&h, "done", 3, 4).await;
    assert!(reason(&done).contains("no usable answer about 1 files"), "{done}");
    let map = h.get(&format!("{PROJECT}/map")).await.expect(200);
    let css = &map["data"][0]["enriched"];
    assert_eq!(
        (&css["features"], &css["keywords"]),
        (&json!([{"name": "Inside", "range": [1, 3]}]), &json!(["word"]))
    );
    assert_eq!(css["purpose"].as_str().unwrap().chars().count(), 299, "cut, and no blank at its end");
    deliver(&h, CHANGED).await.unwrap();
    put(&h, "assets/icon.svg", "<svg/>").await.expect(200);
    deliver(&h, CHANGED).await.unwrap();
    assert_eq!(model.asked(), 2, "given up is given up, until the content changes");
    put(&h, "snippets/price.liquid", "{{ price }}").await.expect(200);
    deliver(&h, CHANGED).await.unwrap();
    assert_eq!(model.asked(), 4);
}

#[tokio::test]
async fn a_model_with_unusable_answers_is_called_at_most_twice() {
    let scripts: [fn(&[Value]) -> Says; 6] = [
        |_| Says::Text("I would rather not.".into()),
        |_| Says::Text("{\"files\": [{\"path\": \"assets/ba".into()),
        |_| Says::Call("describe_files", json!({"files": "none"})),
        |_| Says::Call("describe_files", json!([])),
        |_| Says::Call("delete_files", json!({"files": []})),
        |_| Says::Call("describe_files", json!({"files": [{"path": "../etc/passwd", "purpose": "Secrets"}]})),
    ];
    for script in scripts {
        let model = ScriptedModel::start(script).await;
        let h = with_theme(config(model.config("scripted"))).await;
        for _ in 0..3 {
            deliver(&h, CHANGED).await.unwrap();
        }
        assert_eq!(sent(&model), [DESCRIBED, DESCRIBED]);
        check_status(&h, "done", 0, 4).await;
        assert_eq!(enriched(&h).await, []);
    }
}

#[tokio::test]
async fn a_model_without_usable_answers_is_not_called_again() {
    let model = ScriptedModel::start(|_| Says::Text("?".into())).await;
    let h = with_theme(config(model.config("scripted"))).await;
    for n in 0..40 {
        put(&h, &format!("snippets/file{n}.liquid"), &format!("{n}")).await.expect(201);
    }
    deliver(&h, CHANGED).await.unwrap();
    let stopped = check_status(&h, "stopped", 0, 44).await;
    assert!(reason(&stopped).contains("was usable"), "{stopped}");
    assert_eq!(model.asked(), 3);
    deliver(&h, CHANGED).await.unwrap();
    assert_eq!(model.asked(), 3);
}

#[tokio::test]
async fn a_model_without_tools_answers_in_text() {
    let model =
        ScriptedModel::start(|messages| Says::Text(format!("USE_TOOL: describe_files\n{}", notes(messages))))
            .await;
    let mut models = model.config("scripted");
    models.servers.values_mut().for_each(|server| server.tools = false);
    let h = with_theme(config(models)).await;
    deliver(&h, CHANGED).await.unwrap();
    assert_eq!(enriched_paths(&h).await, DESCRIBED);
    assert!(model.sent()[0].get("tools").is_none());
}

#[tokio::test]
async fn the_next_invocation_continues_after_one_that_died() {
    let model = ScriptedModel::held(describes).await;
    let h = with_theme(config(model.config("scripted"))).await;
    // In the middle of the call: its answer is never received.
    tokio::select! {
        ended = deliver(&h, CHANGED) => panic!("the model has not answered: {ended:?}"),
        () = model.asked_times(1) => {}
    }
    check_status(&h, "working", 0, 0).await;
    deliver(&h, CHANGED).await.unwrap();
    assert_eq!(model.asked(), 1, "somebody seems to be at it");
    let_the_lease_end(&h).await;
    model.allow(100);
    deliver(&h, CHANGED).await.unwrap();
    assert_eq!(sent(&model), [DESCRIBED, DESCRIBED]);
    check_status(&h, "done", 4, 4).await;

    // Wherever it is interrupted, at most one call is repeated, and saved notes are kept.
    for (round, millis) in [0, 1, 2, 4, 8, 16, 30].into_iter().enumerate() {
        put(&h, "assets/base.css", &format!(".round{round} {{}}")).await.expect(200);
        let before = model.asked();
        let cut = async {
            model.asked_times(before + 1).await;
            tokio::time::sleep(std::time::Duration::from_millis(millis)).await;
        };
        tokio::select! {
            ended = deliver(&h, CHANGED) => ended.unwrap(),
            () = cut => {}
        }
        let_the_lease_end(&h).await;
        deliver(&h, CHANGED).await.unwrap();
        check_status(&h, "done", 4, 4).await;
        assert!((1..=2).contains(&(model.asked() - before)), "{millis} ms");
        assert!(sent(&model)[before..].iter().all(|files| *files == ["assets/base.css"]));
        assert_eq!(enriched_paths(&h).await, DESCRIBED);
    }
}

#[tokio::test]
async fn ceilings_stop_enrichment_and_its_notes_stay() {
    // The day's budget does not pay for one call.
    let model = ScriptedModel::start(describes).await;
    let budget = BudgetConfig { day_micros: 100, ..BudgetConfig::default() };
    let h = with_theme(PlatformConfig { budget, ..config(model.config("gpt-5.1")) }).await;
    deliver(&h, CHANGED).await.unwrap();
    let stopped = check_status(&h, "stopped", 0, 4).await;
    assert!(reason(&stopped).starts_with("today's ceiling of 100 micro-dollars"), "{stopped}");
    assert_eq!((model.asked(), enriched(&h).await), (0, vec![]));

    // The budget of a pass pays for the first of two calls.
    let model = ScriptedModel::start(describes).await;
    model.costs(8_000);
    let budget = BudgetConfig { enrichment_micros: 120_000, ..BudgetConfig::default() };
    let h = Harness::with(PlatformConfig { budget, ..config(model.config("gpt-5.1")) }).await;
    for n in 0..9 {
        let content = format!("<p>{n}</p>\n").repeat(300);
        put(&h, &format!("snippets/file{n}.liquid"), &content).await.expect(201);
    }
    switch(&h, true).await;
    deliver(&h, CHANGED).await.unwrap();
    let first = sent(&model).concat().len();
    let stopped = check_status(&h, "stopped", first, 9).await;
    assert!(reason(&stopped).starts_with("the ceiling of one pass of 120000 micro-dollars"), "{stopped}");
    assert_eq!((model.asked(), enriched(&h).await.len()), (1, first));
    let cost = stopped["cost_micros"].as_i64().unwrap();
    let spent = h.get("/usage").await.expect(200);
    assert!(spent.to_string().contains(&format!(":{cost}")), "{spent:#} {cost}");
    // The next pass, which somebody requests, may spend as much again.
    deliver(&h, CHANGED).await.unwrap();
    assert_eq!(model.asked(), 1);
    switch(&h, true).await;
    deliver(&h, CHANGED).await.unwrap();
    check_status(&h, "done", 9, 9).await;
}

#[tokio::test]
async fn a_stopped_account_is_not_described() {
    let model = ScriptedModel::start(describes).await;
    let h = with_theme(config(model.config("gpt-5.1"))).await;
    h.post("/account/stop", json!({})).await.expect(200);
    deliver(&h, CHANGED).await.unwrap();
    let stopped = check_status(&h, "stopped", 0, 4).await;
    assert!(reason(&stopped).starts_with("the account was stopped at "), "{stopped}");
    assert_eq!(model.asked(), 0);
    h.post("/account/start", json!({})).await.expect(200);
    deliver(&h, CHANGED).await.unwrap();
    check_status(&h, "done", 4, 4).await;
}

#[tokio::test]
async fn switching_enrichment_off_deletes_everything() {
    let model = ScriptedModel::held(describes).await;
    model.allow(1);
    let h = with_theme(config(model.config("scripted"))).await;
    deliver(&h, CHANGED).await.unwrap();
    assert_eq!((enriched_paths(&h).await.len(), left(&h).await), (4, (1, true)));
    switch(&h, false).await;
    check_status(&h, "off", 0, 0).await;
    assert_eq!((enriched(&h).await, left(&h).await), (vec![], (0, false)));
    deliver(&h, CHANGED).await.unwrap();
    assert_eq!(model.asked(), 1);

    // In the middle of a call. Its result is not saved.
    switch(&h, true).await;
    let off = async {
        model.asked_times(2).await;
        switch(&h, false).await;
        model.allow(100);
    };
    let (ended, ()) = tokio::join!(deliver(&h, CHANGED), off);
    ended.unwrap();
    assert_eq!((enriched(&h).await, left(&h).await, model.asked()), (vec![], (0, false), 2));

    // Also deleted with the project.
    switch(&h, true).await;
    deliver(&h, CHANGED).await.unwrap();
    assert_eq!(left(&h).await, (1, true));
    assert_eq!(h.delete(PROJECT).await.status, 204);
    assert_eq!(left(&h).await, (0, false));
    assert_eq!(h.get(PROJECT).await.expect(200)["enrichment"], false);
}

#[tokio::test]
async fn without_a_model_the_map_is_whole_and_the_status_says_why() {
    let model = ScriptedModel::start(describes).await;
    let h = with_theme(config(model.config("scripted"))).await;
    let without = Config { models: ModelsConfig::default(), ..Config::clone(&h.platform.cx.config) };
    let cx = Cx::new(without, h.platform.cx.clock.clone()).unwrap();
    deliver_to(&cx, CHANGED, SignedDuration::from_mins(15)).await.unwrap();
    let unavailable = check_status(&h, "unavailable", 0, 0).await;
    assert_eq!(reason(&unavailable), "no model is configured");
    assert_eq!(ready(&h).await["files"], THEME.len());
    // When there is a model, a change or a request is enough.
    deliver(&h, CHANGED).await.unwrap();
    assert_eq!(model.asked(), 0);
    switch(&h, true).await;
    deliver(&h, CHANGED).await.unwrap();
    check_status(&h, "done", 4, 4).await;
}

#[tokio::test]
async fn an_invocation_with_little_time_left_hands_over() {
    let model = ScriptedModel::start(describes).await;
    let h = with_theme(config(model.config("scripted"))).await;
    deliver_to(&h.platform.cx, CHANGED, SignedDuration::from_secs(130)).await.unwrap();
    check_status(&h, "waiting", 0, 0).await;
    assert_eq!(model.asked(), 0);
    deliver_to(&h.platform.cx, CHANGED, SignedDuration::from_secs(300)).await.unwrap();
    check_status(&h, "done", 4, 4).await;
}

#[tokio::test]
async fn the_demo_model_says_what_it_is() {
    let h = started().await;
    let made = h.post("/projects", json!({"name": "Spring", "enrichment": true})).await.expect(201);
    assert_eq!(made["enrichment"], true);
    put(&h, "sections/header.liquid", "<header></header>\n").await.expect(201);
    switch(&h, true).await;
    loop {
        if status(&h).await["state"] == "done" && !enriched(&h).await.is_empty() {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(25)).await;
    }
    let described = enriched(&h).await;
    assert_eq!(described.len(), 1);
    assert!(
        described[0].1.contains("demo model") && described[0].1.contains("it is a section"),
        "{described:?}"
    );
    let problem = h.patch(PROJECT, json!({"enrichment": "yes"})).await.refused(400, "invalid_input");
    assert_eq!(problem["errors"][0]["field"], "enrichment");
}
