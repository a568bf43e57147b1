//! What becomes of e-mails after Amazon SES has accepted them: they come back, readers complain or unsubscribe.

use http::Method;
use lamplighter_local::platform::PlatformConfig;
use serde_json::{Value, json};
use shared::flows::notices::mail;
use tests::site::{Answers, Site};
use tests::stage::Stage;

/// A stage with an e-mail address and a webhook, and the path of the address.
async fn stage(site: &Site) -> (Stage, String) {
    let stage = Stage::of(PlatformConfig { reach: site.reach(), ..PlatformConfig::in_memory() }).await;
    let path = stage.h.confirmed_email("me@example.com").await;
    let hook = json!({"kind": "webhook", "url": site.url("/hook")});
    stage.h.post("/notifications/channels", hook).await.expect(201);
    stage.executors.work().await;
    (stage, path)
}

/// Sends a test message to the address. Returns its delivery and the request to SES.
async fn sent(stage: &Stage, path: &str) -> (String, Value) {
    let delivery = stage.h.post(&format!("{path}/test"), json!({})).await.expect(202);
    stage.executors.work().await;
    let mails = stage.h.get("/outbox").await.expect(200);
    (
        format!("/deliveries/{}", delivery["delivery_id"].as_str().unwrap()),
        mails["data"][0]["request"].clone(),
    )
}

/// The only e-mail to this address, as the request to SES.
async fn mail_to(stage: &Stage, address: &str) -> Value {
    let mails = stage.h.get("/outbox").await.expect(200);
    let requests = mails["data"].as_array().unwrap().iter().map(|mail| &mail["request"]);
    let to: Vec<&Value> =
        requests.filter(|request| request["Destination"]["ToAddresses"][0] == address).collect();
    let [request] = to[..] else { panic!("{to:#?}") };
    request.clone()
}

/// What SES tells of an e-mail, with the tags of its request.
fn event(kind: &str, request: &Value, more: Value) -> Value {
    let mut detail = json!({"eventType": kind, "mail": {"messageId": "0100", "tags": {}}});
    for tag in request["EmailTags"].as_array().unwrap() {
        detail["mail"]["tags"][tag["Name"].as_str().unwrap()] = json!([tag["Value"]]);
    }
    detail.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({"version": "0", "source": "aws.ses", "detail-type": "Email Bounced", "detail": detail})
}

fn bounce(kind: &str) -> Value {
    json!({"bounce": {"bounceType": kind, "bouncedRecipients":
        [{"emailAddress": "me@example.com", "diagnosticCode": "smtp; 550 5.1.1\nunknown user"}]}})
}

async fn take(stage: &Stage, event: &Value) {
    assert!(mail::is_of_mail(event));
    mail::take(&stage.h.platform.cx, event).await.unwrap();
    stage.executors.work().await;
}

async fn channel(stage: &Stage, path: &str) -> Value {
    let id = path.rsplit('/').next().unwrap();
    let all = stage.h.get("/notifications/channels").await.expect(200);
    all["data"].as_array().unwrap().iter().find(|one| one["channel_id"] == id).unwrap().clone()
}

/// The titles of what the site was told.
fn told(site: &Site) -> Vec<String> {
    site.posted().iter().map(|posted| posted.json()["data"]["title"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn an_address_that_takes_no_e_mails_is_switched_off_and_the_other_channels_say_so_once() {
    let site = Site::start(Answers::Status(204)).await;
    let (stage, path) = stage(&site).await;
    let (delivery, request) = sent(&stage, &path).await;
    let event = event("Bounce", &request, bounce("Permanent"));
    // EventBridge and the queue deliver at least once.
    for _ in 0..2 {
        take(&stage, &event).await;
        let read = stage.h.get(&delivery).await.expect(200);
        assert_eq!(read["state"], "undelivered", "{read:#}");
        let channel = channel(&stage, &path).await;
        assert_eq!(channel["state"], "suspended");
        assert_eq!(channel["why"], "the e-mail came back: smtp; 550 5.1.1 unknown user");
    }
    let posted = site.posted();
    let [notice] = &posted[..] else { panic!("{:?}", told(&site)) };
    let notice = notice.json();
    assert_eq!(notice["data"]["title"], "no notices go to me@example.com", "{notice:#}");
    assert!(notice["data"]["url"].as_str().unwrap().ends_with("/#/notices"), "{notice:#}");
    stage.h.post(&format!("{path}/test"), json!({})).await.refused(409, "channel_off");

    // Its person mends it.
    stage.h.patch(&path, json!({"state": "enabled"})).await.expect(200);
    stage.executors.work().await;
    assert_eq!(told(&site), ["no notices go to me@example.com", "the channel to me@example.com"]);
    let (delivery, _) = sent(&stage, &path).await;
    assert_eq!(stage.h.get(&delivery).await.expect(200)["state"], "delivered");
}

#[tokio::test]
async fn a_full_mailbox_switches_nothing_off_and_a_complaint_does() {
    let site = Site::start(Answers::Status(204)).await;
    let (stage, path) = stage(&site).await;
    let (delivery, request) = sent(&stage, &path).await;
    take(&stage, &event("Bounce", &request, bounce("Transient"))).await;
    let read = stage.h.get(&delivery).await.expect(200);
    assert_eq!(
        (&read["state"], read["error"].as_str().unwrap().starts_with("the e-mail came back for now")),
        (&json!("undelivered"), true)
    );
    assert_eq!(channel(&stage, &path).await["state"], "enabled");
    // It may be tried again by hand.
    stage.h.post(&format!("{delivery}/retry"), json!({})).await.expect(202);
    stage.executors.work().await;
    assert_eq!(stage.h.get(&delivery).await.expect(200)["state"], "delivered");

    take(&stage, &event("Complaint", &request, json!({"complaint": {}}))).await;
    assert_eq!(stage.h.get(&delivery).await.expect(200)["state"], "delivered", "its reader has got it");
    assert_eq!(channel(&stage, &path).await["why"], "the reader has marked an e-mail as spam");
}

#[tokio::test]
async fn what_is_told_of_other_e_mails_changes_nothing() {
    let site = Site::start(Answers::Status(204)).await;
    let (stage, path) = stage(&site).await;
    let (delivery, request) = sent(&stage, &path).await;
    let good = event("Bounce", &request, bounce("Permanent"));
    let mut others = vec![event("Open", &request, json!({}))];
    for (tag, value) in [
        ("delivery", json!(["dlv_00000000000000000000000000000000"])),
        ("delivery", json!(null)),
        ("owner", json!(["c3RyYW5nZXI"])),
        ("owner", json!(["%"])),
    ] {
        let mut other = good.clone();
        other["detail"]["mail"]["tags"][tag] = value;
        others.push(other);
    }
    for other in others {
        take(&stage, &other).await;
    }
    assert_eq!(stage.h.get(&delivery).await.expect(200)["state"], "delivered");
    assert_eq!((channel(&stage, &path).await["state"].clone(), told(&site).len()), (json!("enabled"), 0));
    // An address that was never confirmed can't be switched on by a bounce and an answer to it.
    let email = json!({"kind": "email", "to": "you@example.com"});
    let created = stage.h.post("/notifications/channels", email).await.expect(201);
    let path = format!("/notifications/channels/{}", created["channel_id"].as_str().unwrap());
    stage.executors.work().await;
    let code = &mail_to(&stage, "you@example.com").await;
    take(&stage, &event("Bounce", code, bounce("Permanent"))).await;
    assert_eq!(channel(&stage, &path).await["state"], "unconfirmed");
    stage.h.patch(&path, json!({"state": "enabled"})).await.refused(409, "channel_unconfirmed");
}

/// The address to unsubscribe of an e-mail, without the server.
fn unsubscribe(request: &Value) -> String {
    let headers = request["Content"]["Simple"]["Headers"].as_array().unwrap();
    let value = |name: &str| {
        let header = headers.iter().find(|header| header["Name"] == name);
        header.unwrap()["Value"].as_str().unwrap().to_owned()
    };
    assert_eq!(value("List-Unsubscribe-Post"), "List-Unsubscribe=One-Click");
    let url = value("List-Unsubscribe");
    let path = url.find("/unsubscribe/").expect("it is an address of the platform");
    url[path..].strip_suffix('>').expect("it ends there").to_owned()
}

#[tokio::test]
async fn one_click_unsubscribes_without_credentials() {
    let site = Site::start(Answers::Status(204)).await;
    let (stage, path) = stage(&site).await;
    let (_, request) = sent(&stage, &path).await;
    let target = unsubscribe(&request);
    // A page of it changes nothing.
    let page = stage.h.request(Method::GET, &target).send().await.unwrap();
    assert_eq!(
        (page.status().as_u16(), &page.headers()["location"]),
        (303, &"../#/notices".parse().unwrap())
    );
    assert_eq!(channel(&stage, &path).await["state"], "enabled");
    // As mail programs do it (RFC 8058), twice.
    for _ in 0..2 {
        let form = stage.h.request(Method::POST, &target);
        let form = form
            .header("content-type", "application/x-www-form-urlencoded")
            .body("List-Unsubscribe=One-Click");
        assert_eq!(stage.h.execute(form.build().unwrap()).await.unwrap().status().as_u16(), 204);
        stage.executors.work().await;
        let channel = channel(&stage, &path).await;
        assert_eq!(channel["state"], "suspended");
        assert_eq!(channel["why"], "the reader of an e-mail has unsubscribed");
        assert_eq!(told(&site).len(), 1);
    }
    // A code has no such address: nobody has subscribed yet.
    let email = json!({"kind": "email", "to": "you@example.com"});
    stage.h.post("/notifications/channels", email).await.expect(201);
    stage.executors.work().await;
    assert_eq!(mail_to(&stage, "you@example.com").await["Content"]["Simple"]["Headers"], json!([]));
}

#[tokio::test]
async fn a_token_that_was_not_made_here_is_refused() {
    let site = Site::start(Answers::Status(204)).await;
    let (stage, path) = stage(&site).await;
    let (_, request) = sent(&stage, &path).await;
    let target = unsubscribe(&request);
    let token = target.strip_prefix("/unsubscribe/").unwrap();
    let (master, text) = token.split_once('.').unwrap();
    let mut changed = text.to_owned();
    let other = if &changed[10..11] == "A" { "B" } else { "A" };
    changed.replace_range(10..11, other);
    for wrong in [
        "x".to_owned(),
        "1.".to_owned(),
        format!("{master}.{changed}"),
        format!("0.{text}"),
        format!("2.{text}"),
        format!("4294967295.{text}"),
        format!("99999999999.{text}"),
        format!("-1.{text}"),
        text.to_owned(),
        format!("{master}.{}", &text[..20]),
        format!("{master}.{}", "A".repeat(900)),
        format!("{master}.{}", "%00"),
    ] {
        stage.h.post(&format!("/unsubscribe/{wrong}"), json!({})).await.refused(404, "not_found");
    }
    assert_eq!(channel(&stage, &path).await["state"], "enabled");
    // A channel that was deleted is not found.
    stage.h.delete(&path).await.expect(204);
    stage.h.post(&target, json!({})).await.refused(404, "not_found");
}
