//! Mail servers of people: a real one, and ones that refuse, hang and lie.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex};

use base::https;
use domain::ids::NoticeId;
use domain::notices::plan::{Event, Happening};
use domain::notices::{About, Cause, LeadsTo, NoticeKey, NoticeKind};
use domain::reach::Policy;
use jiff::{SignedDuration, Timestamp};
use lamplighter_local::platform::PlatformConfig;
use serde_json::{Value, json};
use shared::config::ReachConfig;
use shared::store::Store;
use tempfile::TempDir;
use tests::model::{Says, ScriptedModel};
use tests::skips::installed;
use tests::stage::{Stage, noon};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, ChildStdout, Command};
use tokio::task::JoinHandle;

const ME: &str = "me@example.com";
const PASSWORD: &str = "pässword";

/// A platform whose people may use these servers of this machine, and that trusts the authority of the tests.
async fn stage(hosts: &[String]) -> (Stage, ScriptedModel) {
    let model = ScriptedModel::start(|_| Says::Text(report())).await;
    let models = model.config("claude-haiku-4-5");
    let allowed_hosts = hosts.iter().map(|host| host.parse().unwrap()).collect();
    let policy = Policy { allowed_hosts, ..Policy::default() };
    let authority = certificates()["authority"].as_str().unwrap().to_owned();
    let mail_authorities = https::authorities(authority.as_bytes()).map(Arc::new);
    assert!(mail_authorities.is_some());
    let reach = ReachConfig { policy: policy.into(), mail_authorities, ..ReachConfig::default() };
    (Stage::of(PlatformConfig { models, reach, ..PlatformConfig::in_memory() }).await, model)
}

/// Of a test authority, for `localhost`. The keys are public.
fn certificates() -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("lambda/test_data/issuer.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// Lines that are longer than a mail may have, letters that are not ASCII, and what a mail server could take for its own.
fn report() -> String {
    format!(
        "# Übersicht\n\n{}\n\n.\n\nFür <name> & \"andere\": 日本語 😀\n\n| Lampe | Preis |\n|---|---|\n| Öl | 12 € |\n\nFrom here\n",
        "ein sehr langer Satz ohne Ende ".repeat(60)
    )
}

fn channel(host: &str, port: u16, security: &str) -> Value {
    json!({"kind": "smtp", "host": host, "port": port, "security": security, "user": "lamp", "secret": PASSWORD,
        "from": "lamplighter@example.com", "to": ME})
}

/// Adds a channel. Returns its path.
async fn add(stage: &Stage, channel: &Value) -> String {
    let created = stage.h.post("/notifications/channels", channel.clone()).await.expect(201);
    assert_eq!(created["state"], "unconfirmed", "{created:#}");
    assert_eq!(
        created["target"],
        format!("{} via {}", channel["to"].as_str().unwrap(), channel["host"].as_str().unwrap())
    );
    format!("/notifications/channels/{}", created["channel_id"].as_str().unwrap())
}

/// The only delivery to a channel.
async fn delivery_to(stage: &Stage, path: &str) -> Value {
    stage.executors.work().await;
    let all = stage.h.get("/deliveries").await.expect(200);
    let id = path.rsplit('/').next().unwrap();
    let mut found = all["data"].as_array().unwrap().iter().filter(|one| one["channel_id"] == id);
    let delivery = found.next().expect("there is one").clone();
    assert!(found.next().is_none(), "{all:#}");
    delivery
}

async fn state_of(stage: &Stage, path: &str) -> Value {
    let id = path.rsplit('/').next().unwrap();
    let all = stage.h.get("/notifications/channels").await.expect(200);
    all["data"].as_array().unwrap().iter().find(|one| one["channel_id"] == id).unwrap().clone()
}

/// A mail server that is not ours.
struct Real {
    port: u16,
    mails: Lines<BufReader<ChildStdout>>,
    _program: Child,
    _files: TempDir,
}

impl Real {
    /// None if the machine does not have it.
    async fn start(mode: &str) -> Option<Self> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("wire");
        let python: PathBuf = folder.join("../../target/ci/providers/bin/python");
        if !installed(&python) {
            return None;
        }
        let files = tempfile::tempdir().unwrap();
        let server = &certificates()["server"];
        let pem = |kind: &str, field: &str| {
            let path = files.path().join(field);
            let text = server[field].as_str().unwrap();
            std::fs::write(&path, format!("-----BEGIN {kind}-----\n{text}\n-----END {kind}-----\n")).unwrap();
            path
        };
        let mut program = Command::new(python)
            .arg("mailserver.py")
            .arg(mode)
            .args([pem("CERTIFICATE", "certificate"), pem("PRIVATE KEY", "private")])
            .current_dir(&folder)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut mails = BufReader::new(program.stdout.take().unwrap()).lines();
        let port = mails.next_line().await.unwrap().expect("it prints its port").parse().unwrap();
        Some(Self { port, mails, _program: program, _files: files })
    }

    /// The next mail that it has accepted.
    async fn mail(&mut self) -> Value {
        serde_json::from_str(&self.mails.next_line().await.unwrap().expect("it runs")).unwrap()
    }
}

fn header<'a>(mail: &'a Value, name: &str) -> &'a str {
    let headers = mail["headers"].as_array().unwrap();
    let mut found = headers.iter().filter(|header| header[0] == name);
    let value = found.next().unwrap_or_else(|| panic!("{name}: {mail:#}"));
    assert!(found.next().is_none(), "{name} is there once: {mail:#}");
    value[1].as_str().unwrap()
}

/// Confirms the address with the code of its mail, lets a result, an alarm and a hostile text come, and compares each mail with what the
/// outbox has for the same notice.
async fn delivers(mode: &str, security: &str) {
    let Some(mut server) = Real::start(mode).await else { return };
    let (stage, _model) = stage(&[format!("localhost:{}", server.port)]).await;
    let path = add(&stage, &channel("localhost", server.port, security)).await;
    stage.executors.work().await;
    let mail = server.mail().await;
    assert_eq!(header(&mail, "Subject"), "Confirm this e-mail address");
    let text = mail["parts"][0][1].as_str().unwrap();
    let code =
        text.lines().find_map(|line| line.strip_prefix("If it is you, type this code within one hour: "));
    stage.h.post(&format!("{path}/confirm"), json!({ "code": code.unwrap() })).await.expect(200);
    stage.h.confirmed_email(ME).await;

    let action = stage.approved(json!({"title": "Bericht für <name>: Übersicht über alle Lampen dieses Hauses und der Nachbarn", "schedule": {"every": "1h"}})).await;
    stage.happens_at(60).await;
    let run = stage.occurrences(action).await[0].run_id;
    let at: Timestamp = noon() + SignedDuration::from_mins(61);
    stage.clock.set(at);
    let key = NoticeKey { kind: NoticeKind::Watchdog, action_id: None, cause: Cause::new("x") };
    let about = About {
        title: "a\r\nBcc: b@example.com\r\n\r\n.\r\nMAIL FROM:<c@example.com>".to_owned(),
        reason: "r\r\n.\r\nQUIT\r\n<script>".to_owned(),
        leads_to: LeadsTo::Watch,
        has_paused: false,
    };
    let event = Event::new(key, Happening::Happened, about);
    let write = Store::happened_write(&stage.owner, NoticeId::of("x", at), event, at);
    assert!(stage.h.platform.cx.store.write_all(vec![write.unwrap()]).await.unwrap().done());
    stage.sweep().await;
    stage.executors.work().await;

    let outbox = stage.h.get("/outbox").await.expect(200);
    let contents =
        outbox["data"].as_array().unwrap().iter().map(|mail| &mail["request"]["Content"]["Simple"]);
    let meant: Vec<&Value> =
        contents.filter(|content| content["Subject"]["Data"] != "Confirm this e-mail address").collect();
    let [hostile, result] = meant[..] else { panic!("{meant:#?}") };
    for content in [result, hostile] {
        let mail = server.mail().await;
        assert_eq!((&mail["sender"], &mail["recipients"]), (&json!("lamplighter@example.com"), &json!([ME])));
        assert_eq!(
            (&mail["user"], &mail["encrypted"]),
            (&json!("lamp"), &json!(mode != "plain")),
            "{mail:#}"
        );
        assert_eq!(
            (&mail["type"], &mail["defects"]),
            (&json!("multipart/alternative"), &json!([])),
            "{mail:#}"
        );
        assert!(mail["longest"].as_u64().unwrap() <= 998, "{mail:#}");
        assert_eq!(header(&mail, "Subject"), content["Subject"]["Data"]);
        assert_eq!((header(&mail, "From"), header(&mail, "To")), ("lamplighter@example.com", ME));
        let headers: Vec<&Value> =
            mail["headers"].as_array().unwrap().iter().map(|header| &header[0]).collect();
        let known = ["From", "To", "Subject", "Date", "Message-ID", "MIME-Version", "Content-Type"];
        assert!(headers.iter().all(|name| known.iter().any(|known| *name == known)), "{headers:?}");
        let expected = json!([
            ["text/plain", content["Body"]["Text"]["Data"]],
            ["text/html", content["Body"]["Html"]["Data"]]
        ]);
        assert_eq!(without_tokens(&mail["parts"]), without_tokens(&expected));
    }
    let text = result["Body"]["Text"]["Data"].as_str().unwrap();
    assert!(text.contains("Für <name> & \"andere\": 日本語 😀") && text.contains("12 €"), "{text}");
    assert!(text.lines().any(|line| line.len() > 998), "a line is longer than a mail may have");
    let told = stage.h.get(&format!("/runs/{run}")).await.expect(200)["told"].clone();
    let sentence = told["sentence"].as_str().unwrap();
    assert!(sentence.contains(&format!("Told by mail server ({ME} via localhost).")), "{sentence}");
    let stored = format!("{:?}", tests::everything::scanned(&stage.h.platform.cx, "local").await);
    assert!(!stored.contains(PASSWORD), "it is stored encrypted");
    let list = stage.h.get("/notifications/channels").await.expect(200);
    assert!(!list.to_string().contains(PASSWORD));
}

/// The same without the tokens of links: each message has its own.
fn without_tokens(parts: &Value) -> String {
    let text = parts.to_string();
    let mut pieces = text.split("/answers/");
    let first = pieces.next().unwrap_or_default().to_owned();
    let is_token = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    pieces.fold(first, |all, piece| format!("{all}/answers/{}", piece.trim_start_matches(is_token)))
}

#[tokio::test]
async fn a_real_server_gets_what_the_outbox_has_with_tls() {
    delivers("tls", "tls").await;
}

#[tokio::test]
async fn a_real_server_gets_what_the_outbox_has_with_starttls() {
    delivers("starttls", "starttls").await;
}

#[tokio::test]
async fn a_real_server_gets_what_the_outbox_has_in_a_network_that_the_operator_allows() {
    delivers("plain", "none").await;
}

/// The certificate of the tests is one of `localhost` alone.
#[tokio::test]
async fn a_certificate_of_another_host_is_refused_and_the_server_gets_nothing() {
    for (mode, security) in [("tls", "tls"), ("starttls", "starttls")] {
        let Some(server) = Real::start(mode).await else { return };
        let (stage, _model) = stage(&[format!("127.0.0.1:{}", server.port)]).await;
        let path = add(&stage, &channel("127.0.0.1", server.port, security)).await;
        let delivery = delivery_to(&stage, &path).await;
        let told = delivery["error"].as_str().unwrap();
        let expected =
            format!("127.0.0.1:{} has no valid certificate, or the connection broke: ", server.port);
        assert!(told.starts_with(&expected) && told.contains("certificate"), "{told}");
        assert_eq!(delivery["state"], "waiting");
    }
}

#[tokio::test]
async fn a_real_server_says_why_in_its_own_words() {
    let Some(server) = Real::start("starttls").await else { return };
    let at = format!("localhost:{}", server.port);
    let (stage, _model) = stage(std::slice::from_ref(&at)).await;
    let with = |change: Value| {
        let mut channel = channel("localhost", server.port, "starttls");
        channel.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        channel
    };
    for (change, state, told) in [
        (
            json!({"secret": "wrong"}),
            "undelivered",
            "refuses the user or the password: 535 5.7.8 Authentication credentials invalid",
        ),
        (
            json!({"to": "nobody@example.com"}),
            "undelivered",
            "refuses the recipient: 550 5.1.1 There is no nobody here",
        ),
        (
            json!({"to": "later@example.com"}),
            "waiting",
            "refuses the recipient: 450 4.2.0 Greylisted, come back later",
        ),
    ] {
        let path = add(&stage, &with(change.clone())).await;
        let delivery = delivery_to(&stage, &path).await;
        assert_eq!(delivery["state"], state, "{delivery:#}");
        assert_eq!(delivery["error"], format!("{at} {told}"), "{delivery:#}");
        assert!(!delivery.to_string().contains("wrong"), "{delivery:#}");
        assert_eq!(state_of(&stage, &path).await["state"], "unconfirmed");
    }
    // A channel that had worked is switched off, and its person reads why.
    let path = add(&stage, &with(json!({"secret": "wrong", "to": "you@example.com"}))).await;
    let id = path.rsplit('/').next().unwrap();
    let code = tests::mail::code(&stage.h.platform.cx, &stage.owner, id).await;
    stage.h.post(&format!("{path}/confirm"), json!({ "code": code })).await.expect(200);
    stage.h.post(&format!("{path}/test"), json!({})).await.expect(202);
    stage.executors.work().await;
    let off = state_of(&stage, &path).await;
    assert_eq!(off["state"], "suspended", "{off:#}");
    assert_eq!(
        off["why"],
        format!("{at} refuses the user or the password: 535 5.7.8 Authentication credentials invalid")
    );
}

/// A server that says what it is told to say, one line for each line of the client. It keeps what the client has sent.
struct Fake {
    address: String,
    port: u16,
    heard: Arc<Mutex<Vec<u8>>>,
    task: JoinHandle<()>,
}

impl Fake {
    async fn start(lines: Vec<String>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let heard = Arc::new(Mutex::new(Vec::new()));
        let keeps = heard.clone();
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                // A client that goes away is no fault here.
                let _ = Self::talk(stream, &lines, &keeps).await;
            }
        });
        Self { address: address.to_string(), port: address.port(), heard, task }
    }

    async fn talk(mut stream: TcpStream, lines: &[String], heard: &Mutex<Vec<u8>>) -> std::io::Result<()> {
        for (at, line) in lines.iter().enumerate() {
            // After the greeting, one line of the client is answered with one line.
            if at > 0 {
                loop {
                    let byte = stream.read_u8().await?;
                    heard.lock().unwrap().push(byte);
                    if byte == b'\n' {
                        break;
                    }
                }
            }
            stream.write_all(line.as_bytes()).await?;
        }
        // The client says goodbye and waits for an answer. It gets none, and the connection ends.
        while !heard.lock().unwrap().ends_with(b"QUIT\r\n") {
            let byte = stream.read_u8().await?;
            heard.lock().unwrap().push(byte);
        }
        Ok(())
    }

    fn heard(&self) -> String {
        String::from_utf8_lossy(&self.heard.lock().unwrap()).into_owned()
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// What becomes of a mail to this server.
async fn told_by(lines: &[&str], security: &str) -> (Value, String) {
    let fake = Fake::start(lines.iter().map(|line| (*line).to_owned()).collect()).await;
    let (stage, _model) = stage(std::slice::from_ref(&fake.address)).await;
    let path = add(&stage, &channel("127.0.0.1", fake.port, security)).await;
    let mut delivery = delivery_to(&stage, &path).await;
    let error = delivery["error"].as_str().unwrap().replace(&fake.address, "SERVER");
    delivery["error"] = json!(error);
    (delivery, fake.heard())
}

#[tokio::test]
async fn without_encryption_nothing_is_sent() {
    let hello = "250-mail\r\n250 AUTH PLAIN LOGIN\r\n";
    for (lines, told) in [
        (vec!["220 mail\r\n", hello], "SERVER offers no encryption with STARTTLS, so nothing was sent to it"),
        (
            vec!["220 mail\r\n", "250-mail\r\n250 STARTTLS\r\n", "454 TLS not available\r\n"],
            "SERVER refuses to encrypt: 454 TLS not available",
        ),
        (vec!["554 No service\r\n"], "SERVER does not talk to us: 554 No service"),
        (
            vec!["HTTP/1.1 400 Bad Request\r\n\r\n"],
            "the connection to SERVER broke, or its answer is not SMTP",
        ),
    ] {
        let (delivery, heard) = told_by(&lines, "starttls").await;
        assert_eq!((&delivery["error"], &delivery["state"]), (&json!(told), &json!("waiting")));
        let lower = heard.to_ascii_lowercase();
        assert!(
            !lower.contains("auth") && !lower.contains("mail from") && !lower.contains("rcpt"),
            "{heard}"
        );
    }
    // What a stranger puts behind the consent to encrypt is no answer of the server: it breaks the handshake.
    let injected = "220 go on\r\n250-mail\r\n250 AUTH PLAIN LOGIN\r\n235 welcome\r\n250 ok\r\n250 ok\r\n354 go on\r\n250 accepted\r\n";
    let (delivery, heard) =
        told_by(&["220 mail\r\n", "250-mail\r\n250 STARTTLS\r\n", injected], "starttls").await;
    let told = delivery["error"].as_str().unwrap();
    assert!(told.starts_with("SERVER has no valid certificate, or the connection broke: "), "{told}");
    assert_eq!(delivery["state"], "waiting");
    assert!(!heard.contains("MAIL FROM") && !heard.contains("AUTH"), "{heard}");
}

#[tokio::test]
async fn each_answer_has_its_consequence_and_its_words_are_cleaned() {
    let hello = "250-mail\r\n250 AUTH PLAIN LOGIN\r\n";
    let long = format!("550 {}\r\n", "very long ".repeat(90));
    for (lines, state, told) in [
        (
            vec!["220 mail\r\n", hello, "534-5.7.9 Use an\r\n534 5.7.9 app password\r\n"],
            "undelivered",
            "SERVER refuses the user or the password: 534 5.7.9 Use an app password",
        ),
        (
            vec!["220 mail\r\n", hello, "454 4.7.0 Later\r\n"],
            "waiting",
            "SERVER refuses the user or the password: 454 4.7.0 Later",
        ),
        (
            vec!["220 mail\r\n", "250-mail\r\n250 AUTH GSSAPI\r\n"],
            "undelivered",
            "SERVER offers no way to log in that is supported: PLAIN or LOGIN",
        ),
        (
            vec!["220 mail\r\n", hello, "235 ok\r\n", "553 5.7.1 Not your address\r\n"],
            "waiting",
            "SERVER refuses the sender: 553 5.7.1 Not your address",
        ),
        (
            vec!["220 mail\r\n", hello, "235 ok\r\n", "250 ok\r\n", "550 \u{1b}[2Jno\u{202e} \u{7}body\r\n"],
            "undelivered",
            "SERVER refuses the recipient: 550 [2Jno body",
        ),
        (
            vec!["220 mail\r\n", hello, "235 ok\r\n", "250 ok\r\n", "421 4.3.2 Closing\r\n"],
            "waiting",
            "SERVER refuses the recipient: 421 4.3.2 Closing",
        ),
        (
            vec!["220 mail\r\n", hello, "235 ok\r\n", "250 ok\r\n", "250 ok\r\n", "554 5.7.1 Spam\r\n"],
            "waiting",
            "SERVER refuses the mail: 554 5.7.1 Spam",
        ),
        (
            vec!["421 Too many connections\r\n"],
            "waiting",
            "SERVER does not talk to us: 421 Too many connections",
        ),
        (
            vec!["220 mail\r\n", "garbage\r\n"],
            "waiting",
            "the connection to SERVER broke, or its answer is not SMTP",
        ),
    ] {
        let (delivery, heard) = told_by(&lines, "none").await;
        assert_eq!((&delivery["error"], &delivery["state"]), (&json!(told), &json!(state)), "{heard}");
    }
    let (delivery, _) = told_by(&["220 mail\r\n", hello, "235 ok\r\n", "250 ok\r\n", &long], "none").await;
    let told = delivery["error"].as_str().unwrap();
    let words = told.strip_prefix("SERVER refuses the recipient: ").unwrap();
    assert!(words.starts_with("550 very long") && words.len() <= 200, "{} bytes: {words}", words.len());
    // A server that never ends its line is not read without an end.
    let endless = format!("220 {}", "x".repeat(200_000));
    let (delivery, _) = told_by(&[&endless], "none").await;
    assert_eq!(delivery["error"], "the connection to SERVER broke, or its answer is not SMTP");
    let (delivery, _) = told_by(&[&endless], "starttls").await;
    assert_eq!(delivery["error"], "the connection to SERVER broke, or its answer is not SMTP");
}

#[tokio::test]
async fn only_a_mail_server_that_is_public_or_allowed_is_taken() {
    let (stage, _model) = stage(&["mail.lan:25".to_owned()]).await;
    let hint = "The operator may allow it with LAMPLIGHTER_ALLOWED_HOSTS, as host:port";
    for (host, port, security, field) in [
        ("127.0.0.1", 25, "tls", "host"),
        ("localhost", 465, "tls", "host"),
        ("192.168.1.5", 587, "starttls", "host"),
        ("2130706433", 465, "tls", "host"),
        ("mail.lan", 587, "starttls", "host"),
        ("smtp.example.com", 25, "tls", "port"),
        ("smtp.example.com", 6379, "tls", "port"),
        ("smtp.example.com", 465, "none", "security"),
    ] {
        let new = channel(host, port, security);
        let refused = stage.h.post("/notifications/channels", new).await.refused(400, "invalid_input");
        let errors = refused["errors"].to_string();
        assert!(
            errors.contains(&format!("\"{field}\"")) && errors.contains(hint),
            "{host}:{port}: {refused:#}"
        );
        assert!(!errors.contains(PASSWORD));
    }
    let stage_has = stage.h.get("/notifications/channels").await.expect(200);
    assert_eq!(stage_has["data"], json!([]));
    // The usual port of each security.
    for (new, target) in [
        (
            json!({"kind": "smtp", "host": "smtp.example.com", "from": ME, "to": ME}),
            "me@example.com via smtp.example.com",
        ),
        (
            json!({"kind": "smtp", "host": "mail.lan", "security": "none", "from": ME, "to": "you@example.com"}),
            "you@example.com via mail.lan",
        ),
    ] {
        let created = stage.h.post("/notifications/channels", new).await.expect(201);
        assert_eq!((&created["target"], &created["state"]), (&json!(target), &json!("unconfirmed")));
    }
}
