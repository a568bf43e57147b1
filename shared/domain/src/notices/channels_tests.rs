//! Channels as people write them, and retries.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn said(channel: Value) -> String {
    let channel: Channel = serde_json::from_value(channel).unwrap();
    channel.validate(&Policy::default()).map_or_else(|errors| errors.to_string(), |()| String::new())
}

const SLACK: &str = "https://hooks.slack.com/services/T0000/B0000/abcdefghijklmnop";
const DISCORD: &str = "https://discord.com/api/webhooks/1234567890/abc-DEF_ghijklmnop";
const TOKEN: &str = "1234567890:AAbbCCddEEffGGhhIIjjKKllMMnnOOppQQr";

#[test]
fn good_channels_are_taken_and_shown_without_their_secrets() {
    for (channel, target) in [
        (json!({"kind": "email", "to": "a.b+c@mail.example.com"}), "a.b+c@mail.example.com"),
        (
            json!({"kind": "webhook", "url": "https://example.com/hooks/0123456789?key=7"}),
            "https://example.com/…ey=7",
        ),
        (json!({"kind": "webhook", "url": "https://example.com/x"}), "https://example.com/…"),
        (json!({"kind": "slack", "url": SLACK}), "https://hooks.slack.com/…mnop"),
        (json!({"kind": "discord", "url": DISCORD}), "https://discord.com/…mnop"),
        (
            json!({"kind": "discord", "url": DISCORD.replace("discord.com", "discordapp.com")}),
            "https://discordapp.com/…mnop",
        ),
        (
            json!({"kind": "telegram", "token": TOKEN, "chat_id": "-1001234567890"}),
            "-1001234567890 by the bot …pQQr",
        ),
        (
            json!({"kind": "telegram", "token": TOKEN, "chat_id": "@my_channel"}),
            "@my_channel by the bot …pQQr",
        ),
        (json!({"kind": "ntfy", "topic": "alerts"}), "https://ntfy.sh/…"),
        (json!({"kind": "ntfy", "topic": "alerts-0123456789abcdef"}), "https://ntfy.sh/…cdef"),
        (
            json!({"kind": "ntfy", "url": "https://ntfy.example.com/", "topic": "a", "token": "tk_0123456789abcdefgh"}),
            "https://ntfy.example.com/… with the token …efgh",
        ),
        (
            json!({"kind": "gotify", "url": "https://example.com/gotify/", "token": "AbCdE.fGhI-jKl_x"}),
            "https://example.com with the token …Kl_x",
        ),
        (
            json!({"kind": "smtp", "host": "smtp.example.com", "port": 465, "security": "tls", "user": "me",
                "secret": "a password", "from": "lamp@example.com", "to": "me@example.com"}),
            "me@example.com via smtp.example.com",
        ),
        (
            json!({"kind": "smtp", "host": "93.184.215.14", "port": 587, "security": "starttls", "from": "lamp@example.com",
                "to": "me@example.com"}),
            "me@example.com via 93.184.215.14",
        ),
    ] {
        assert_eq!(said(channel.clone()), "", "{channel}");
        let channel: Channel = serde_json::from_value(channel).unwrap();
        assert_eq!(channel.shown().target, target);
        let debug = format!("{channel:?}");
        for secret in channel.secrets().into_iter().filter(|secret| secret.len() > 1) {
            assert!(!debug.contains(secret), "{debug}");
        }
        let json = serde_json::to_value(&channel).unwrap();
        assert_eq!(serde_json::from_value::<Channel>(json).unwrap(), channel);
    }
}

#[test]
fn the_scheme_and_the_port_are_shown_as_they_are() {
    for (url, target) in [
        ("http://hooks.internal:8080/in/0123456789abcdef", "http://hooks.internal:8080/…cdef"),
        ("https://example.com:8443/0123456789abcdef", "https://example.com:8443/…cdef"),
        ("https://EXAMPLE.com:443/0123456789abcdef", "https://example.com/…cdef"),
    ] {
        let channel = Channel::Webhook { url: url.to_owned() };
        assert_eq!(channel.shown().target, target);
    }
}

#[test]
fn hostile_addresses_are_refused_with_the_field() {
    let local = "a".repeat(65);
    for to in [
        "",
        "me",
        "@example.com",
        "me@",
        "me@localhost",
        "me@example",
        "me@example.com.",
        "me@-example.com",
        "me@127.0.0.1",
        "me@[127.0.0.1]",
        "Me <me@example.com>",
        "me@example.com,you@example.com",
        "me@example.com\r\nBcc: you@example.com",
        "me@exa mple.com",
        "a..b@example.com",
        ".a@example.com",
        "\"a b\"@example.com",
        "me@you@example.com",
        "mé@example.com",
        "me@exämple.com",
        "me@example.com\0",
        &format!("{local}@example.com"),
        &format!("a@{}.com", "b.".repeat(130)),
    ] {
        let message = said(json!({"kind": "email", "to": to}));
        assert!(message.starts_with("to: must "), "{to:?}: {message:?}");
    }
    for url in [
        "http://example.com/x",
        "ftp://example.com/x",
        "https://127.0.0.1/x",
        "https://2130706433/x",
        "https://0x7f.1/x",
        "https://[::1]/x",
        "https://[::ffff:10.0.0.1]/x",
        "https://169.254.169.254/latest",
        "https://localhost/x",
        "https://db.internal/x",
        "https://user:secret-word@example.com/x",
        "https://example.com:8443/x",
        " https://example.com/x",
        "https://example.com/x\r\nHost: y",
        "https:\\\\10.0.0.1",
        "javascript:alert(1)",
        "x",
        "",
    ] {
        let message = said(json!({"kind": "webhook", "url": url}));
        assert!(message.starts_with("url: must "), "{url:?}: {message:?}");
        assert!(!message.contains("secret-word"), "{message}");
    }
    let long = format!("https://example.com/{}", "x".repeat(1_981));
    assert_eq!(said(json!({"kind": "webhook", "url": long})), "url: must be at most 2000 bytes, is 2001");
    for url in [
        "https://hooks.slack.com.evil.com/services/T/B/x",
        "https://evil.com/services/T/B/x",
        "https://hooks.slack.com/services/T/B",
        "https://hooks.slack.com/services/T/B/x/y",
        "https://hooks.slack.com/services/T/../x",
        "https://hooks.slack.com/services/T/B/x?y=1",
        "https://hooks.slack.com/services/T//x",
    ] {
        let message = said(json!({"kind": "slack", "url": url}));
        assert_eq!(message, "url: must be https://hooks.slack.com/services/ and three more parts", "{url}");
    }
    for url in [
        "https://discord.com/api/webhooks/abc/def",
        "https://discord.com/api/webhooks/123",
        "https://discord.com.evil.com/api/webhooks/123/def",
        "https://discord.com/api/webhooks/123/def/slack",
        "https://evil.com/api/webhooks/123/def",
    ] {
        let message = said(json!({"kind": "discord", "url": url}));
        assert_eq!(message, "url: must be https://discord.com/api/webhooks/ and two more parts", "{url}");
    }
    for token in [
        "",
        "1234567890",
        "12345:x",
        &TOKEN.replace(':', "/"),
        &format!("{TOKEN}/../x"),
        &TOKEN.replace("AA", "A/"),
    ] {
        let message = said(json!({"kind": "telegram", "token": token, "chat_id": "1"}));
        assert!(message.starts_with("token: must be the token of a bot"), "{token}: {message}");
        assert!(token.is_empty() || !message.contains(token));
    }
    for chat_id in ["", "-", "@ab", "1 2", "me", "@a-b-c-d", &"1".repeat(21)] {
        let message = said(json!({"kind": "telegram", "token": TOKEN, "chat_id": chat_id}));
        assert!(message.starts_with("chat_id: must be a number"), "{chat_id}: {message}");
    }
    for (channel, message) in [
        (
            json!({"kind": "ntfy", "url": "https://ntfy.sh/alerts", "topic": "alerts"}),
            "url: must be the address of the server alone: the topic is a field of its own",
        ),
        (
            json!({"kind": "ntfy", "url": "https://ntfy.sh/?auth=x", "topic": "alerts"}),
            "url: must be the address of the server alone: the topic is a field of its own",
        ),
        (
            json!({"kind": "ntfy", "url": "http://ntfy.sh", "topic": "alerts"}),
            "url: must begin with https://",
        ),
        (json!({"kind": "ntfy", "topic": "a/b"}), "topic: must be 1 to 64 letters, digits, - and _"),
        (json!({"kind": "ntfy", "topic": ""}), "topic: must be 1 to 64 letters, digits, - and _"),
        (json!({"kind": "ntfy", "topic": "a".repeat(65)}), "topic: must be 1 to 64 letters, digits, - and _"),
        (
            json!({"kind": "ntfy", "topic": "a", "token": "tk_x\r\nX-Email: a"}),
            "token: must be 1 to 200 letters, digits, - . and _",
        ),
        (
            json!({"kind": "gotify", "url": "https://example.com/?token=x", "token": "x"}),
            "url: must be the address of the server, without a query",
        ),
        (
            json!({"kind": "gotify", "url": "https://example.com", "token": ""}),
            "token: must be 1 to 200 letters, digits, - . and _",
        ),
    ] {
        assert_eq!(said(channel.clone()), message, "{channel}");
    }
    for url in ["http://192.168.1.5", "https://192.168.1.5", "https://ntfy.lan", "https://10.0.0.1/"] {
        for channel in [
            json!({"kind": "ntfy", "url": url, "topic": "alerts"}),
            json!({"kind": "gotify", "url": url, "token": "x"}),
        ] {
            let message = said(channel);
            assert!(message.starts_with("url: must be a public https address: "), "{url}: {message}");
        }
    }
    for (change, message) in [
        (
            json!({"host": "192.168.1.5"}),
            "host: must be a public mail server: 192.168.1.5 is an address of a private",
        ),
        (json!({"host": "localhost"}), "host: must be a public mail server: names without a dot"),
        (json!({"host": "smtp.example.com\r\nx"}), "host: must be a public mail server: it has a control"),
        (
            json!({"port": 25}),
            "port: must be 465 or 587: port 25 is not permitted for this host. The operator may",
        ),
        (json!({"port": 2525}), "port: must be 465 or 587: port 2525"),
        (json!({"port": 443}), "port: must be 465 or 587: port 443"),
        (json!({"security": "none"}), "security: cannot be `none` for this host"),
        (json!({"user": "me"}), "secret: is required"),
        (json!({"secret": "x"}), "user: is required"),
        (json!({"user": "a\0b", "secret": "x"}), "user: must be 1 to 500 bytes without control characters"),
        (json!({"user": "a", "secret": ""}), "secret: must be 1 to 500 bytes"),
        (json!({"user": "a", "secret": "x\r\nRCPT TO:<b@example.com>"}), "secret: must be 1 to 500 bytes"),
        (json!({"to": "me@example.com\r\nBcc: b@example.com"}), "to: must be one e-mail address"),
        (json!({"from": "Me <me@example.com>"}), "from: must be one e-mail address"),
    ] {
        let mut channel = json!({"kind": "smtp", "host": "smtp.example.com", "port": 465, "security": "tls",
            "from": "lamp@example.com", "to": "me@example.com"});
        channel.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        let told = said(channel);
        assert!(told.starts_with(message), "{change}: {told}");
        assert!(!told.contains("RCPT"), "{told}");
    }
    for wrong in [json!({"kind": "sms", "to": "1"}), json!({"kind": "email", "to": "a@b.c", "name": "x"})] {
        assert!(serde_json::from_value::<Channel>(wrong).is_err());
    }
}

#[test]
fn a_host_that_the_operator_allows_may_have_no_certificate() {
    let policy = Policy { allowed_hosts: vec!["127.0.0.1:9000".parse().unwrap()], ..Policy::default() };
    let channel = |url: &str| Channel::Webhook { url: url.to_owned() }.validate(&policy);
    assert_eq!(channel("http://127.0.0.1:9000/hook"), Ok(()));
    assert!(channel("http://127.0.0.1:9001/hook").is_err());
    // A server at home, with the ports of the policy and with its own.
    let allowed_hosts = ["192.168.1.5", "192.168.1.6:8080"].map(|host| host.parse().unwrap()).to_vec();
    let policy = Policy { allowed_hosts, ..Policy::default() };
    let ntfy = |url: &str| {
        let (url, topic) = (url.to_owned(), "alerts".to_owned());
        Channel::Ntfy { url, topic, token: None }.validate(&policy).is_ok()
    };
    assert!(ntfy("http://192.168.1.5") && ntfy("http://192.168.1.6:8080"));
    assert!(!ntfy("http://192.168.1.5:8080") && !ntfy("http://192.168.1.6") && !ntfy("http://192.168.1.7"));
    assert!(channel("http://example.com/hook").is_err());
}

#[test]
fn a_mail_server_that_the_operator_allows_may_be_private_and_without_encryption() {
    let allowed_hosts = ["192.168.1.5:25", "mail.lan:1025"].map(|host| host.parse().unwrap()).to_vec();
    let policy = Policy { allowed_hosts, ..Policy::default() };
    let is_taken = |host: &str, port: u16, security: Security| {
        let (host, from) = (host.to_owned(), "lamp@example.com".to_owned());
        let to = from.clone();
        Channel::Smtp(MailServer { host, port, security, user: None, secret: None, from, to })
            .validate(&policy)
            .is_ok()
    };
    assert!(is_taken("192.168.1.5", 25, Security::None) && is_taken("mail.lan", 1025, Security::Starttls));
    assert!(!is_taken("192.168.1.5", 587, Security::Starttls) && !is_taken("mail.lan", 25, Security::None));
    assert!(!is_taken("192.168.1.6", 25, Security::None));
}

fn now() -> Timestamp {
    "2026-11-22T09:00:00Z".parse().unwrap()
}

fn status(code: u16) -> Answer {
    Answer::Status { code, retry_after: None }
}

#[test]
fn ten_tries_are_made_and_then_it_is_given_up() {
    let mut at = now();
    let mut tries = 1;
    while let Next::Again(next) = after(ChannelKind::Webhook, tries, Answer::None, at) {
        assert_eq!(next.duration_since(at), RETRIES[tries]);
        (at, tries) = (next, tries + 1);
    }
    assert_eq!(tries, 10);
    assert_eq!(after(ChannelKind::Webhook, 10, status(500), at), Next::GiveUp);
    assert_eq!(after(ChannelKind::Webhook, usize::MAX, status(500), at), Next::GiveUp);
    // Three days and a few hours.
    assert_eq!(at.duration_since(now()), SignedDuration::from_secs(75 * 3_600 + 35 * 60 + 5));
}

#[test]
fn only_2xx_counts_and_who_is_gone_is_not_asked_again() {
    let next = |kind, answer| match after(kind, 1, answer, now()) {
        Next::Again(at) => format!("again in {}", at.duration_since(now()).as_secs()),
        other => format!("{other:?}"),
    };
    let asked =
        |code, seconds| Answer::Status { code, retry_after: Some(SignedDuration::from_secs(seconds)) };
    for (kind, answer, expected) in [
        (ChannelKind::Webhook, status(200), "Done"),
        (ChannelKind::Webhook, status(204), "Done"),
        (ChannelKind::Webhook, status(299), "Done"),
        (ChannelKind::Webhook, status(199), "again in 5"),
        (ChannelKind::Webhook, status(301), "again in 5"),
        (ChannelKind::Webhook, status(400), "again in 5"),
        (ChannelKind::Webhook, status(404), "again in 5"),
        (ChannelKind::Webhook, status(403), "again in 5"),
        (ChannelKind::Webhook, status(410), "Disable"),
        (ChannelKind::Slack, status(404), "Disable"),
        (ChannelKind::Discord, status(404), "Disable"),
        (ChannelKind::Telegram, status(403), "Disable"),
        (ChannelKind::Telegram, status(400), "again in 5"),
        (ChannelKind::Ntfy, status(401), "Disable"),
        (ChannelKind::Ntfy, status(403), "Disable"),
        (ChannelKind::Ntfy, status(404), "again in 5"),
        (ChannelKind::Ntfy, status(413), "again in 5"),
        (ChannelKind::Ntfy, asked(429, 60), "again in 60"),
        (ChannelKind::Gotify, status(401), "Disable"),
        (ChannelKind::Gotify, status(403), "Disable"),
        (ChannelKind::Gotify, status(404), "again in 5"),
        (ChannelKind::Gotify, status(410), "Disable"),
        (ChannelKind::Webhook, asked(429, 60), "again in 60"),
        (ChannelKind::Webhook, asked(429, 1), "again in 5"),
        (ChannelKind::Webhook, asked(429, -7), "again in 5"),
        (ChannelKind::Webhook, asked(503, i64::MAX), "again in 86400"),
        (ChannelKind::Webhook, Answer::None, "again in 5"),
        (ChannelKind::Email, Answer::Bounced { is_permanent: true }, "Suspend"),
        (ChannelKind::Email, Answer::Bounced { is_permanent: false }, "again in 5"),
        (ChannelKind::Email, Answer::Complained, "Suspend"),
        (ChannelKind::Smtp, Answer::Bounced { is_permanent: true }, "Suspend"),
        (ChannelKind::Smtp, Answer::Bounced { is_permanent: false }, "again in 5"),
        (ChannelKind::Smtp, Answer::Refused, "Disable"),
    ] {
        assert_eq!(next(kind, answer), expected, "{kind:?} {answer:?}");
    }
}

#[test]
fn a_server_asks_to_wait_in_seconds_or_with_a_date() {
    for (header, expected) in [
        ("120", Some(120)),
        (" 0 ", Some(0)),
        ("Sun, 22 Nov 2026 09:01:00 GMT", Some(60)),
        ("Sun, 22 Nov 2026 08:59:00 GMT", Some(0)),
        ("", None),
        ("-5", None),
        ("1.5", None),
        ("soon", None),
    ] {
        assert_eq!(retry_after(header, now()).map(|wait| wait.as_secs()), expected, "{header:?}");
    }
    assert_eq!(retry_after("99999999999999999999", now()), Some(SignedDuration::from_secs(i64::MAX)));
}

proptest! {
    #[test]
    fn hostile_texts_are_never_a_channel_with_line_breaks(text in "(a|b|@|\\.|:|/|\r|\n|\u{0}| |<|>|,|com|https){0,20}") {
        for channel in [
            Channel::Email { to: text.clone() },
            Channel::Webhook { url: text.clone() },
            Channel::Slack { url: text.clone() },
            Channel::Discord { url: text.clone() },
            Channel::Telegram { token: text.clone(), chat_id: text.clone() },
            Channel::Ntfy { url: NTFY.to_owned(), topic: text.clone(), token: Some(text.clone()) },
            Channel::Gotify { url: "https://example.com".to_owned(), token: text.clone() },
        ] {
            if channel.validate(&Policy::default()).is_ok() {
                let is_plain = |c: char| c.is_ascii_graphic() && !"<>,".contains(c);
                let is_url = matches!(channel, Channel::Webhook { .. });
                prop_assert!(is_url || text.chars().all(is_plain), "{:?}", text);
                prop_assert!(!text.contains(char::is_control));
            }
            let _ = channel.shown();
        }
    }
}
