//! Replies to the messages of a Telegram bot, fetched or sent by Telegram: each does what the page of the message does, once, and only
//! for the person of the chat.

use domain::ids::ActionId;
use domain::notices::render::Site;
use http::Method;
use jiff::SignedDuration;
use lamplighter_local::platform::PlatformConfig;
use serde_json::{Value, json};
use tests::model::{Says, ScriptedModel};
use tests::send;
use tests::stage::Stage;
use tests::telegram::{PERSON, TOKEN, Telegram};

/// A model that asks which week, writes about the week of the answer, and answers in conversations.
fn asks(messages: &[Value]) -> Says {
    let text = json!(messages).to_string();
    let last = messages.last().unwrap();
    if last["content"].as_str().is_some_and(|content| content.starts_with("saved")) {
        return Says::Text("It is done.".into());
    }
    if text.contains("Shorter, please") {
        return Says::Text("I will write less.".into());
    }
    let contents = messages.iter().filter_map(|message| message["content"].as_str());
    let answer = contents.filter_map(|content| content.split_once("The person answered: ")).next_back();
    match answer {
        None => Says::Call("ask_person", json!({"question": "Which week?"})),
        Some((_, week)) => Says::Call("save_output", json!({"title": "Report", "content": week})),
    }
}

/// A model whose runs want to propose an action, which needs a yes.
fn plans(messages: &[Value]) -> Says {
    let last = messages.last().unwrap()["content"].as_str().unwrap_or_default();
    if last.contains("Result of generate_actions") {
        return Says::Text(format!("Result: {last}"));
    }
    if last.starts_with("Result of save_output") {
        return Says::Text("Done.".into());
    }
    let task = json!({"instructions": "Look", "expected_output": "A list"});
    let plan = json!({"title": "Check", "description": "d", "priority": "low", "task_config": task});
    Says::Text(format!("GENERATE_ACTIONS\n---\n{plan}\n"))
}

struct Scene {
    stage: Stage,
    telegram: Telegram,
    channel: String,
    _model: ScriptedModel,
}

impl Scene {
    async fn of(script: fn(&[Value]) -> Says, site: Option<&str>) -> Self {
        let telegram = Telegram::start().await;
        let model = ScriptedModel::start(script).await;
        let (models, reach) = (model.config("scripted"), telegram.reach());
        let site = site.map(|site| Site::new(site).unwrap());
        let stage = Stage::of(PlatformConfig { models, reach, site, ..PlatformConfig::in_memory() }).await;
        let made = stage.h.post("/notifications/channels", channel(true)).await.expect(201);
        assert_eq!(made["replies"], json!({}), "{made:#}");
        let channel = format!("/notifications/channels/{}", made["channel_id"].as_str().unwrap());
        stage.executors.work().await;
        Self { stage, telegram, channel, _model: model }
    }

    /// The platform listens, a few seconds after this minute.
    async fn hears_at(&self, minutes: i64) {
        self.stage.happens_at(minutes).await;
        self.stage.executors.work().await;
    }

    fn last(&self) -> String {
        self.telegram.said().last().unwrap().clone()
    }

    async fn state(&self, id: ActionId) -> Value {
        self.stage.h.get(&format!("/actions/{id}")).await.expect(200)["state"].clone()
    }

    async fn messages(&self, id: ActionId) -> Vec<String> {
        let found = self.stage.h.get(&format!("/actions/{id}/messages")).await.expect(200);
        found["data"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["content"].as_str().unwrap().to_owned())
            .collect()
    }
}

fn channel(replies: bool) -> Value {
    json!({"kind": "telegram", "token": TOKEN, "chat_id": PERSON.to_string(), "replies": replies})
}

#[tokio::test]
async fn a_question_is_answered_and_a_result_corrected_and_paused_in_the_chat() {
    let scene = Scene::of(asks, None).await;
    let (stage, telegram) = (&scene.stage, &scene.telegram);
    let id = stage.approved(json!({"schedule": {"every": "1h"}})).await;
    stage.happens_at(60).await;
    assert_eq!(stage.became(id).await, ["60 waiting asked"]);
    let question = telegram.said().len() - 1;
    let asked = scene.last();
    assert!(
        asked.contains("Which week?") && asked.contains("Reply to this message with your answer."),
        "{asked}"
    );
    assert!(asked.contains("Answer it: "), "{asked}");

    // What is no reply, and what others write, does nothing.
    telegram.writes("Week 47", None);
    let mut others = telegram.message("Week 1", Some(question));
    others["message"]["chat"]["id"] = json!(1);
    others["message"]["from"]["id"] = json!(1);
    telegram.arrives(others);
    let mut forged = telegram.message("Week 2", Some(question));
    let link = format!("{}/answers/1.AAAA", stage.h.platform.url());
    forged["message"]["reply_to_message"]["text"] = json!(format!("Answer it: {link}"));
    telegram.arrives(forged);
    scene.hears_at(61).await;
    assert_eq!(stage.became(id).await, ["60 waiting asked"]);
    let said = telegram.said();
    assert!(said[question + 1].starts_with("Please reply to one of my messages"), "{said:#?}");
    assert_eq!(said[question + 2], "That message can't be answered any more.");
    assert_eq!(said.len(), question + 3, "{said:#?}");

    telegram.writes("Week 47", Some(question));
    scene.hears_at(62).await;
    assert_eq!(stage.became(id).await, ["60 succeeded"]);
    let said = telegram.said();
    assert_eq!(said[question + 3], "Thank you. The answer was sent.");
    let result = said.len() - 1;
    assert!(said[result].contains("Week 47") && said[result].contains("Pause or correct it: "), "{said:#?}");
    // The question was answered. A second answer to it is no correction.
    telegram.writes("Week 48", Some(question));
    scene.hears_at(63).await;
    assert!(scene.last().starts_with("Not done: nothing is asked any more"), "{}", scene.last());

    let before = scene.messages(id).await.len();
    telegram.writes("Shorter, please", Some(result));
    scene.hears_at(64).await;
    assert!(
        telegram.said().iter().any(|said| said.starts_with("Sent to the agent.")),
        "{:#?}",
        telegram.said()
    );
    let messages = scene.messages(id).await;
    assert_eq!(messages[before..], ["Shorter, please", "I will write less."], "{messages:#?}");

    telegram.writes("Pause!", Some(result));
    scene.hears_at(65).await;
    assert_eq!(
        (scene.last().as_str(), scene.state(id).await),
        ("Paused. Nothing runs until you resume it.", json!("paused"))
    );
    let history = stage.h.get(&format!("/actions/{id}/history")).await.expect(200);
    let by = json!({"kind": "channel", "channel_id": scene.channel.rsplit('/').next().unwrap()});
    assert_eq!((&history["data"][0]["command"], &history["data"][0]["by"]), (&json!("pause"), &by));
    telegram.writes("resume", Some(result));
    scene.hears_at(66).await;
    assert_eq!(scene.state(id).await, "scheduled");

    // A lone yes is no correction, and a message without a link can't be answered.
    telegram.writes("Yes", Some(result));
    telegram.writes("Thanks", Some(question + 1));
    scene.hears_at(67).await;
    let said = telegram.said();
    assert!(said[said.len() - 2].contains("nothing is asked any more"), "{said:#?}");
    assert!(said[said.len() - 1].starts_with("That message can't be answered here."), "{said:#?}");

    // Updates are confirmed, so each is heard once, also if the platform forgets that it has heard it.
    let said = telegram.said().len();
    scene.hears_at(68).await;
    assert_eq!((telegram.said().len(), scene.messages(id).await.len()), (said, before + 2));
    telegram.writes("Even shorter", Some(result));
    let again = telegram.message("Even shorter", Some(result));
    scene.hears_at(69).await;
    assert_eq!(scene.messages(id).await[before + 2], "Even shorter");
    let mut again = again;
    again["update_id"] = json!(again["update_id"].as_i64().unwrap() - 1);
    let store = &stage.h.platform.cx.store;
    let channel = scene.channel.rsplit('/').next().unwrap().parse().unwrap();
    let mut listening = store.listening(&stage.owner, channel).await.unwrap().unwrap();
    listening.value.next = 0;
    let write =
        shared::store::Store::listening_write(&stage.owner, &listening.value, listening.version).unwrap();
    assert!(store.write_all(vec![write]).await.unwrap().done());
    telegram.arrives(again);
    listening = store.listening(&stage.owner, channel).await.unwrap().unwrap();
    assert_eq!(listening.value.next, 0);
    let count = scene.messages(id).await.len();
    scene.hears_at(70).await;
    assert_eq!(scene.messages(id).await.len(), count, "the update was heard before");
    // Every few seconds, and not every minute.
    let fetched = telegram.calls("getUpdates");
    for _ in 0..3 {
        stage.clock.set(stage.clock.now() + SignedDuration::from_secs(5));
        stage.executors.work().await;
    }
    assert_eq!(telegram.calls("getUpdates"), fetched + 3);
    // After a quiet week, Telegram begins with lower numbers, and sends what it has until it is confirmed.
    let mut lower = telegram.message("resume", Some(result));
    lower["update_id"] = json!(17);
    telegram.arrives(lower);
    stage.clock.set(stage.clock.now() + SignedDuration::from_secs(5));
    stage.executors.work().await;
    assert_eq!(store.listening(&stage.owner, channel).await.unwrap().unwrap().value.next, 18);
}

#[tokio::test]
async fn a_call_is_allowed_by_yes_if_the_message_has_shown_it() {
    for (word, done) in
        [("yes", "Allowed. The run goes on."), ("No.", "Refused. The run goes on without this call.")]
    {
        let scene = Scene::of(plans, None).await;
        let (stage, telegram) = (&scene.stage, &scene.telegram);
        let id = stage.approved(json!({"schedule": {"every": "1h"}})).await;
        stage.happens_at(60).await;
        let asked = scene.last();
        assert!(asked.contains("It wants to call generate_actions with: {"), "{asked}");
        assert!(asked.contains("Reply to this message with yes or no."), "{asked}");
        let question = telegram.said().len() - 1;
        telegram.writes("approved", Some(question));
        scene.hears_at(61).await;
        assert!(scene.last().contains("the reply must be yes or no"), "{}", scene.last());
        telegram.writes(word, Some(question));
        scene.hears_at(62).await;
        assert!(telegram.said().contains(&done.to_owned()), "{:#?}", telegram.said());
        let run = stage.newest_run(id).await;
        let state = if word == "yes" { "approved" } else { "rejected" };
        assert_eq!(
            (&run["state"], &run["cards"][0]["state"]),
            (&json!("completed"), &json!(state)),
            "{run:#}"
        );
    }
}

#[tokio::test]
async fn an_approval_needs_its_page() {
    let scene = Scene::of(asks, None).await;
    let task = json!({"instructions": "Compare the prices", "expected_output": "A report"});
    let body = json!({"title": "Prices", "task_config": task, "schedule": {"every": "24h"}});
    let action =
        scene.stage.h.post(&format!("/agents/{}/actions", scene.stage.agent), body).await.expect(201);
    let id: ActionId = action["action_id"].as_str().unwrap().parse().unwrap();
    scene.hears_at(15).await;
    assert!(scene.last().contains("Answer it: "), "{}", scene.last());
    scene.telegram.writes("yes", Some(scene.telegram.said().len() - 1));
    scene.hears_at(16).await;
    assert!(scene.last().contains("the page shows what would run: open the link"), "{}", scene.last());
    assert_eq!(scene.state(id).await, "defined");
}

#[tokio::test]
async fn telegram_calls_a_platform_that_it_can_reach() {
    let scene = Scene::of(asks, Some("https://lamps.example/base")).await;
    let (stage, telegram) = (&scene.stage, &scene.telegram);
    let hook = telegram.hook().expect("a webhook");
    assert_eq!(hook["allowed_updates"], json!(["message"]), "{hook:#}");
    let path =
        hook["url"].as_str().unwrap().strip_prefix("https://lamps.example/base").expect("ours").to_owned();
    let password = hook["secret_token"].as_str().unwrap().to_owned();
    assert!(!hook["url"].as_str().unwrap().contains(TOKEN) && password.len() >= 32);
    let id = stage.approved(json!({"schedule": {"every": "1h"}})).await;
    stage.happens_at(60).await;
    let question = telegram.said().len() - 1;
    let update = telegram.message("Week 47", Some(question));
    let call = async |path: &str, password: Option<&str>, update: &Value| {
        let mut request = stage.h.request(Method::POST, path);
        if let Some(password) = password {
            request = request.header("X-Telegram-Bot-Api-Secret-Token", password);
        }
        send(request.json(update)).await.status
    };
    // Only Telegram knows the password, and only with it the token.
    assert_eq!(call(&path, None, &update).await, 404);
    assert_eq!(call(&path, Some(&password[1..]), &update).await, 404);
    assert_eq!(call("/hooks/telegram/1.AAAA", Some(&password), &update).await, 404);
    assert_eq!(stage.became(id).await, ["60 waiting asked"]);
    assert_eq!(call(&path, Some(&password), &json!({"update_id": 1, "poll": {}})).await, 204);
    assert_eq!(call(&path, Some(&password), &json!([])).await, 400);
    assert_eq!(call(&path, Some(&password), &update).await, 204);
    stage.executors.work().await;
    assert_eq!(stage.became(id).await, ["60 succeeded"]);
    // Telegram sends it again if it has not got the answer.
    assert_eq!(call(&path, Some(&password), &update).await, 204);
    assert_eq!(telegram.calls("getUpdates"), 0);

    // While a run asks something, a reply to an older message is no answer to it.
    let result = telegram.said().iter().rposition(|said| said.contains("Pause or correct it")).unwrap();
    stage.happens_at(120).await;
    assert_eq!(stage.became(id).await, ["60 succeeded", "120 waiting asked"]);
    let old = telegram.message("Without numbers", Some(result));
    assert_eq!(call(&path, Some(&password), &old).await, 204);
    assert!(
        scene.last().contains("it asks something now: answer its newest message first"),
        "{}",
        scene.last()
    );
    assert_eq!(stage.became(id).await, ["60 succeeded", "120 waiting asked"]);
    let asked = telegram.said().iter().rposition(|said| said.contains("Which week?")).unwrap();
    let answer = telegram.message("pause", Some(asked));
    assert_eq!(call(&path, Some(&password), &answer).await, 204);
    assert!(scene.telegram.said().contains(&"“pause” was sent as your answer.".to_owned()));
    stage.executors.work().await;

    // A correction is said once, however often it is sent.
    let result = telegram.said().iter().rposition(|said| said.contains("Pause or correct it")).unwrap();
    let correction = telegram.message("Shorter, please", Some(result));
    for _ in 0..2 {
        assert_eq!(call(&path, Some(&password), &correction).await, 204);
    }
    stage.executors.work().await;
    let messages = scene.messages(id).await;
    assert_eq!(messages.iter().filter(|text| *text == "Shorter, please").count(), 1, "{messages:#?}");
    assert_eq!(messages.last().unwrap(), "I will write less.");

    // Each look makes another token, and the webhook is ours all the same.
    let sets = telegram.calls("setWebhook");
    stage.happens_at(25 * 60).await;
    let channels = stage.h.get("/notifications/channels").await.expect(200);
    assert_eq!((&channels["data"][0]["replies"], telegram.calls("setWebhook")), (&json!({}), sets));
    assert!(telegram.calls("getWebhookInfo") >= 2);

    // A channel that is off hears nothing, and one that is deleted ends the webhook.
    stage.h.patch(&scene.channel, json!({"state": "disabled"})).await.expect(200);
    assert_eq!(call(&path, Some(&password), &update).await, 404);
    stage.h.patch(&scene.channel, json!({"state": "enabled"})).await.expect(200);
    stage.h.delete(&scene.channel).await.expect(204);
    assert_eq!((telegram.hook(), call(&path, Some(&password), &update).await), (None, 404));
}

#[tokio::test]
async fn a_bot_that_something_else_uses_is_left_alone_and_the_channel_says_so() {
    for site in [None, Some("https://lamps.example")] {
        let scene = Scene::of(asks, site).await;
        let (stage, telegram) = (&scene.stage, &scene.telegram);
        let theirs = json!({"url": "https://other.example/bot", "secret_token": "x"});
        telegram.is_hooked(Some(theirs.clone()));
        // The platform looks every few seconds, or once a day.
        scene.hears_at(if site.is_some() { 24 * 60 } else { 2 }).await;
        let channels = stage.h.get("/notifications/channels").await.expect(200);
        let why = channels["data"][0]["replies"]["why"].as_str().unwrap_or_default();
        assert!(why.starts_with("another program receives the replies of this bot"), "{channels:#}");
        assert_eq!(telegram.hook(), Some(theirs));
        // Also when replies end.
        stage.h.patch(&scene.channel, json!({"replies": false})).await.expect(200);
        assert_eq!((telegram.hook().is_some(), telegram.calls("deleteWebhook")), (true, 0));
        stage.h.patch(&scene.channel, json!({"replies": true})).await.expect(200);
        telegram.is_hooked(None);
        scene.hears_at(if site.is_some() { 24 * 60 + 3 } else { 5 }).await;
        let channels = stage.h.get("/notifications/channels").await.expect(200);
        assert_eq!(channels["data"][0]["replies"], json!({}), "{channels:#}");
        assert_eq!(telegram.hook().is_some(), site.is_some());

        // One channel hears a bot, and only a chat with one person.
        let other = stage.h.post("/notifications/channels", channel(true)).await;
        let told = other.refused(400, "invalid_input").to_string();
        assert!(told.contains("another channel receives the replies of this bot"), "{told}");
        let mut group = channel(true);
        group["chat_id"] = json!("-100123");
        let told =
            stage.h.post("/notifications/channels", group).await.refused(400, "invalid_input").to_string();
        assert!(told.contains("`chat_id` must have digits only"), "{told}");
        let ntfy = json!({"kind": "ntfy", "topic": "lamps", "replies": true});
        stage.h.post("/notifications/channels", ntfy).await.refused(400, "invalid_input");
        let off = stage.h.patch(&scene.channel, json!({"replies": false})).await.expect(200);
        assert_eq!(off["replies"], Value::Null);
        assert_eq!(telegram.hook(), None);
        let calls = telegram.calls("getUpdates");
        scene.hears_at(48 * 60).await;
        assert_eq!(telegram.calls("getUpdates"), calls);
    }
}
