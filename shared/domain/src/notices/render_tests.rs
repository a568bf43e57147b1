//! Attacks: hostile texts in every field of every channel.

use jiff::Timestamp;
use jiff::civil::date;
use proptest::prelude::*;
use uuid::Uuid;

use super::super::digest::digest;
use super::super::inert::joins;
use super::super::plan::Notice;
use super::super::{Cause, NoticeKey};
use super::*;
use crate::ids::{ActionId, NoticeId, RunId, WatchedId};

const RUN: RunId = RunId::from_uuid(Uuid::from_u128(9));

fn site() -> Site {
    Site::new("https://lamp.example/").unwrap()
}

fn now() -> Timestamp {
    "2026-11-22T09:00:00Z".parse().unwrap()
}

fn notice(kind: NoticeKind, title: &str, reason: &str) -> Notice {
    let action_id = Some(ActionId::from_uuid(Uuid::from_u128(5)));
    Notice {
        notice_id: NoticeId::of("x", now()),
        key: NoticeKey { kind, action_id, cause: Cause::new("timeout") },
        // Not by `About::new`, as a record of another version might have it.
        about: About {
            title: title.to_owned(),
            reason: reason.to_owned(),
            leads_to: LeadsTo::Run { run_id: RUN },
            has_paused: false,
        },
        count: 1,
        since: now(),
        last_at: now(),
        is_over: false,
        at: now(),
        runs: Vec::new(),
    }
}

/// What every channel sends.
struct Sent {
    email: Email,
    slack: String,
    discord: String,
    telegram: String,
    ntfy: Value,
    gotify: Value,
    webhook: Value,
}

impl Sent {
    fn of(message: Message<'_>) -> Self {
        Self::with(message, &Results::new())
    }

    fn with(message: Message<'_>, results: &Results) -> Self {
        let site = site();
        let text = |body: &Value, field: &str| body[field].as_str().unwrap().to_owned();
        let discord = message.discord(&site, results);
        assert_eq!(discord["allowed_mentions"], json!({"parse": []}));
        assert_eq!(discord.as_object().unwrap().len(), 2);
        let telegram = message.telegram(&site, results, ("-100", None));
        assert_eq!(telegram.get("parse_mode"), None);
        assert_eq!(message.slack(&site, results).as_object().unwrap().len(), 1);
        let unsubscribe = Url::parse("https://lamp.example/notifications/x").unwrap();
        Self {
            email: message.email(&site, results, Links { unsubscribe: Some(&unsubscribe), answer: None }),
            slack: text(&message.slack(&site, results), "text"),
            discord: text(&discord, "content"),
            telegram: text(&telegram, "text"),
            ntfy: message.ntfy(&site, results, "topic"),
            gotify: message.gotify(&site, results),
            webhook: message.webhook(&site, results),
        }
    }

    fn chats(&self) -> [(&str, &str); 5] {
        [
            ("slack", &self.slack),
            ("discord", &self.discord),
            ("telegram", &self.telegram),
            ("ntfy", self.ntfy["message"].as_str().unwrap()),
            ("gotify", self.gotify["message"].as_str().unwrap()),
        ]
    }

    fn titles(&self) -> [&str; 2] {
        [&self.ntfy, &self.gotify].map(|body| body["title"].as_str().unwrap())
    }

    /// What must hold whatever the texts are.
    fn check(&self) -> Result<(), TestCaseError> {
        let Email { subject, text, html, headers } = &self.email;
        let is_hidden = |c: char| {
            is_invisible(c) || (c.is_control() && c != '\n') || matches!(c, '\u{2028}' | '\u{2029}')
        };
        prop_assert!(subject.chars().count() <= MAX_SUBJECT && !subject.is_empty());
        prop_assert!(!subject.contains(|c: char| c.is_control() || is_hidden(c)), "{:?}", subject);
        for (name, value) in headers {
            prop_assert!(!value.contains(['\r', '\n', '\0']) && !name.contains(' '));
        }
        prop_assert_eq!(headers.len(), 2);
        let chats = || self.chats().into_iter().map(|(_, text)| text);
        for text in [text.as_str(), html].into_iter().chain(chats()) {
            prop_assert!(!text.contains(is_hidden), "{:?}", text);
        }
        for title in self.titles() {
            prop_assert!(title.chars().count() <= MAX_SUBJECT && !title.contains(is_hidden), "{:?}", title);
            prop_assert!(!title.is_empty() && !title.contains(['\n', '\r', '@']), "{:?}", title);
            prop_assert!(!title.contains("://"), "{:?}", title);
        }
        prop_assert!(!self.titles()[0].contains("=?"), "ntfy decodes it: {:?}", self.ntfy);
        // Each tag of the HTML is one of ours.
        for tag in html.split('<').skip(1) {
            let name = tag.split_once('>').map_or(tag, |(name, _)| name);
            let is_ours = matches!(
                name,
                "!doctype html" | "html" | "body" | "h3" | "/h3" | "p" | "/p" | "/a" | "/body" | "/html"
            ) || name
                .strip_prefix("a href=\"https://lamp.example/#/")
                .is_some_and(|rest| rest.ends_with('"'));
            prop_assert!(is_ours, "{}", name);
        }
        // Each address is one of ours, and nothing mentions anybody.
        for text in [subject.as_str(), text, html].into_iter().chain(chats()) {
            for (at, _) in text.match_indices("://") {
                let ours = text[..at].ends_with("https") && text[at..].starts_with("://lamp.example/#/");
                prop_assert!(ours, "{:?}", text);
            }
            prop_assert!(!text.contains('@'), "{:?}", text);
        }
        for text in chats() {
            let rest = text.replace("https://lamp.example/#/", "");
            for (at, _) in rest.match_indices('.') {
                let after = rest[at + 1..].chars().next();
                prop_assert!(!joins(rest[..at].chars().next_back(), after), "a host: {:?}", text);
            }
        }
        prop_assert!(self.discord.chars().count() <= DISCORD_MAX);
        prop_assert!(self.telegram.encode_utf16().count() <= TELEGRAM_MAX);
        prop_assert!(self.slack.chars().count() <= SLACK_MAX);
        prop_assert!(self.ntfy["message"].as_str().unwrap().len() <= NTFY_MAX);
        prop_assert!(self.ntfy.to_string().len() <= 2 * NTFY_MAX, "ntfy reads no longer body");
        prop_assert!(self.gotify["message"].as_str().unwrap().chars().count() <= GOTIFY_MAX);
        prop_assert!(!self.slack.contains(['<', '>']));
        let ands = self.slack.matches('&').count();
        let known =
            ["&amp;", "&lt;", "&gt;"].iter().map(|entity| self.slack.matches(entity).count()).sum::<usize>();
        prop_assert_eq!(ands, known);
        Ok(())
    }

    /// The link is there, whatever the texts are.
    fn has_link(&self) -> bool {
        let link = format!("https://lamp.example/#/runs/{RUN}");
        self.webhook["data"]["url"] == link
            && self.email.text.contains(&link)
            && self.email.html.contains(&format!("<a href=\"{link}\">"))
            && self.chats().iter().all(|(_, text)| text.ends_with(&format!("See it: {link}")))
    }
}

const ATTACKS: [&str; 34] = [
    "x\r\nBcc: victim@example.com",
    "x\nSubject: other",
    "x\u{0}y",
    "x\u{85}\u{2028}y",
    "<!channel> <!here> <@U123> <#C1>",
    "<https://evil.com|Click here>",
    "@everyone @here",
    "<@&123> <@123>",
    "[x](javascript:alert(1))",
    "[x](https://evil.com)",
    "javascript:alert(1)",
    "https://evil.com/approve",
    "HTTPS:\\\\evil.com www.evil.com evil.com/a",
    "evil\u{3002}com evil\u{FF0E}com",
    "tg://resolve?domain=x t.me/x /start @name",
    "mailto:a@b.com",
    "{{7*7}} ${7*7} #{7*7} <%= 7*7 %> %s %n",
    "<script>alert(1)</script>",
    "\"><img src=x onerror=alert(1)>",
    "' onmouseover='alert(1)",
    "&lt;script&gt; &amp; &",
    "</p></body></html>",
    "<!-- -->",
    "abc\u{202e}moc.live",
    "a\u{200b}b\u{feff}c\u{2060}d\u{e0041}e\u{ad}f\u{180e}g\u{3164}h",
    "\u{2066}x\u{2069}\u{200f}",
    "```\ncode\n``` **bold** __x__ ||spoiler|| ~~x~~ > quote # head",
    "a\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}b",
    "\u{1b}[2J\u{7}",
    "127.0.0.1/x 169.254.169.254",
    "-----BEGIN",
    "=?utf-8?q?x?=",
    "",
    "\u{200b}",
];

#[test]
fn no_attack_in_any_field_reaches_any_channel() {
    let sent = |kind: NoticeKind, title: &str, reason: &str, is_over: bool| {
        let notice = Notice { is_over, count: 3, ..notice(kind, title, reason) };
        let sent = Sent::of(Message::Notice(&notice));
        sent.check().unwrap_or_else(|error| panic!("{kind} {title:?} {reason:?}: {error}"));
        assert!(sent.has_link(), "{kind} {title:?} {reason:?} {}", sent.discord);
    };
    for attack in ATTACKS {
        let long = attack.repeat(60);
        for kind in NoticeKind::ALL {
            sent(kind, attack, attack, false);
        }
        for (title, reason) in [(attack, "reason"), ("title", attack), (&long, &long)] {
            sent(NoticeKind::Failed, title, reason, true);
        }
        let Notice { key, about, .. } = notice(NoticeKind::Failed, &long, attack);
        let item = DigestItem { key, about, count: 2, is_over: false, last_at: now() };
        let digest = digest(vec![item; 52]);
        let message = Message::Digest { date: date(2026, 11, 22), at: now(), digest: &digest };
        Sent::of(message).check().unwrap_or_else(|error| panic!("{attack:?}: {error}"));
    }
}

#[test]
fn a_notice_in_each_channel() {
    let failed = notice(NoticeKind::Failed, "Report <1>", "timeout: no answer from api.example.com at 09:00");
    let failed = Notice { count: 3, ..failed };
    let sent = Sent::of(Message::Notice(&failed));
    let link = format!("https://lamp.example/#/runs/{RUN}");
    assert_eq!(sent.email.subject, "Report <1> has failed 3 times");
    assert_eq!(
        sent.email.text,
        format!(
            "Report <1> has failed 3 times\ntimeout: no answer from api[.]example[.]com at 09:00\n\
             It began at 2026-11-22 09:00 UTC.\nSee it: {link}\n\n\
             What you are told: https://lamp.example/#/notices\n"
        )
    );
    assert!(sent.email.html.contains("<h3>Report &lt;1&gt; has failed 3 times</h3>"));
    assert_eq!(
        sent.email.headers,
        [
            ("List-Unsubscribe", "<https://lamp.example/notifications/x>".to_owned()),
            ("List-Unsubscribe-Post", "List-Unsubscribe=One-Click".to_owned()),
        ]
    );
    assert!(
        sent.slack
            .starts_with("Report &lt;1&gt; has failed 3 times\ntimeout: no answer from api[.]example[.]com")
    );
    assert!(sent.discord.starts_with("Report \\<1\\> has failed 3 times\ntimeout\\: no answer"));
    assert_eq!(
        sent.webhook,
        json!({
            "type": "notice.failed",
            "timestamp": "2026-11-22T09:00:00Z",
            "data": {
                "notice_id": failed.notice_id, "kind": "failed", "action_id": failed.key.action_id, "cause": "timeout",
                "title": "Report <1>", "reason": "timeout: no answer from api.example.com at 09:00", "count": 3,
                "since": "2026-11-22T09:00:00Z", "last_at": "2026-11-22T09:00:00Z", "is_over": false, "url": link,
            },
        })
    );
    assert!(Message::Notice(&failed).email(&site(), &Results::new(), Links::default()).headers.is_empty());
}

#[test]
fn every_kind_has_its_words() {
    for (kind, count, is_over, expected) in [
        (NoticeKind::NeedsAnswer, 1, false, "R needs an answer"),
        (NoticeKind::NeedsAnswer, 2, false, "R needs 2 answers"),
        (NoticeKind::Watchdog, 2, false, "Watchdog: R"),
        (NoticeKind::Watchdog, 2, true, "R is right again"),
        (NoticeKind::Failed, 1, false, "R has failed"),
        (NoticeKind::Failed, 2, true, "R works again"),
        (NoticeKind::Held, 1, false, "R was held back"),
        (NoticeKind::Held, 1, true, "R is not held back any more"),
        (NoticeKind::Budget, 1, false, "Costs: R"),
        (NoticeKind::Succeeded, 4, false, "R has succeeded 4 times"),
        (NoticeKind::NothingNew, 1, false, "R found nothing new"),
    ] {
        let notice = Notice { count, is_over, ..notice(kind, "R", "") };
        assert_eq!(Message::Notice(&notice).subject(), expected);
    }
}

#[test]
fn a_test_has_neither_succeeded_nor_failed() {
    let mut test = notice(NoticeKind::Succeeded, "A test of this channel", "");
    test.key.cause = Cause::new(TEST);
    assert_eq!(Message::Notice(&test).subject(), "A test of this channel");
}

#[test]
fn a_missed_due_time_has_not_failed_and_once_is_not_1_times() {
    let mut missed = notice(NoticeKind::Failed, "R", "");
    missed.key.cause = Cause::new("missed");
    for (count, is_over, expected) in [
        (1, false, "R has missed its due time"),
        (631, false, "R has missed its due time 631 times"),
        (2, true, "R works again"),
    ] {
        let missed = Notice { count, is_over, ..missed.clone() };
        assert_eq!(Message::Notice(&missed).subject(), expected);
    }
    for (count, expected) in [(1, "happened once."), (2, "happened 2 times.")] {
        let over = Notice { count, is_over: true, ..notice(NoticeKind::Watchdog, "R", "It was silent.") };
        let text = Message::Notice(&over).email(&site(), &Results::new(), Links::default()).text;
        assert!(text.starts_with("R is right again\nIt was silent.\nIt began at "), "{text}");
        assert!(text.contains(expected), "{text}");
    }
}

#[test]
fn a_long_digest_says_what_is_missing() {
    let item = |n: u128| DigestItem {
        key: NoticeKey { kind: NoticeKind::Succeeded, action_id: None, cause: Cause::new("x") },
        about: About::new(
            &format!("Report {n}"),
            "",
            LeadsTo::Action { action_id: ActionId::from_uuid(Uuid::from_u128(n)) },
        ),
        count: 1,
        is_over: false,
        last_at: now(),
    };
    let digest = digest((0..62).map(item).collect());
    let message = Message::Digest { date: date(2026, 11, 22), at: now(), digest: &digest };
    let sent = Sent::of(message);
    assert_eq!(sent.email.subject, "2026-11-22: 62 things");
    assert_eq!(sent.email.html.matches("<a ").count(), 51);
    assert!(sent.email.text.contains("\nand 12 more\n"));
    for (name, text) in sent.chats() {
        let lines = text.matches("https://").count();
        let more: usize = text.rsplit_once("and ").unwrap().1.strip_suffix(" more").unwrap().parse().unwrap();
        assert_eq!(lines + more, 62, "{name}");
    }
}

#[test]
fn a_digest_says_that_an_action_was_paused() {
    let about = About::new("Report", "It is paused after three equal failures: no key.", LeadsTo::Watch);
    let item = |has_paused, is_over| DigestItem {
        key: NoticeKey { kind: NoticeKind::Failed, action_id: None, cause: Cause::new("x") },
        about: About { has_paused, ..about.clone() },
        count: 3,
        is_over,
        last_at: now(),
    };
    for (item, line) in [
        (item(true, false), "Report has failed 3 times, and is paused"),
        (item(false, false), "Report has failed 3 times"),
        (item(true, true), "Report works again"),
    ] {
        let digest = digest(vec![item]);
        let sent = Sent::of(Message::Digest { date: date(2026, 11, 22), at: now(), digest: &digest });
        assert!(
            sent.email.text.lines().any(|told| told.starts_with(&format!("{line}: https:"))),
            "{}",
            sent.email.text
        );
    }
}

#[test]
fn an_address_of_the_platform_is_plain() {
    for good in ["https://lamp.example", "http://127.0.0.1:9000/", "https://x.example/Prod"] {
        let link = Site::new(good).unwrap().link(LeadsTo::Watch);
        assert_eq!(link, format!("{}/#/watch", good.trim_end_matches('/')));
        let watched_id = WatchedId::from_uuid(Uuid::from_u128(7));
        let link = Site::new(good).unwrap().link(LeadsTo::Watched { watched_id });
        assert_eq!(link, format!("{}/#/watch/schedules/{watched_id}", good.trim_end_matches('/')));
    }
    for bad in [
        "",
        "lamp.example",
        "javascript:x",
        "https://u:p@x.example",
        "https://x.example/?a=1",
        "https://x.example/#a",
    ] {
        assert_eq!(Site::new(bad), Err(InvalidSite), "{bad}");
    }
}

#[test]
fn what_is_no_address_is_left_alone() {
    for text in ["3.1 GB at 09:00", "Done. Next", "a: b", "1/2 and 24/7", "v1.2.3"] {
        assert_eq!(inert(text), text);
    }
    assert_eq!(inert("10.0.0.1 1.2"), "10[.]0[.]0[.]1 1.2");
    assert_eq!(visible(" a \r\n\t b\u{a0}c "), "a b c");
    assert_eq!(visible("Zo\u{308}e 日本 ناصر"), "Zo\u{308}e 日本 ناصر");
    // A character may combine with others and have no width.
    assert_eq!(visible("a\u{34f}b\u{34f}"), "ab");
    assert_eq!(visible(&format!("a{}", "\u{308}\u{34f}".repeat(9))), format!("a{}", "\u{308}".repeat(3)));
}

proptest! {
    /// Whatever the texts are, nothing but our link and visible text leaves.
    #[test]
    fn any_text_is_harmless(
        title in prop_oneof!["\\PC{0,300}", "(<|>|&|@|:|/|\\.|\\[|\\]|\\(|\\)|`|a|1| |\r|\n|\u{202e}|\u{200b}|www|com|https){0,60}"],
        reason in prop_oneof![any::<String>(), Just("@".repeat(2_000)), Just("<".repeat(2_000)), Just(".a".repeat(2_000))],
        kind in 0..7_usize, count: u32, is_over: bool,
    ) {
        let notice = Notice { count, is_over, ..notice(NoticeKind::ALL[kind], &title, &reason) };
        let sent = Sent::of(Message::Notice(&notice));
        sent.check()?;
        prop_assert!(sent.has_link());
    }
}

fn result(text: &str, tainted: bool) -> Results {
    let output = Output::new("Prices".to_owned(), text.to_owned(), true, tainted);
    Results::from([(RUN, RunResult { outputs: vec![output], cost_micros: 12_300, ..RunResult::default() })])
}

const REPORT: &str = "# Prices\n\nAsk <name> about **two** changes & more:\n\n3. Lamp\n4. [Shade](https://example.com/s)\n\n| what | cost |\n|---|---|\n| lamp | 12 |\n";

#[test]
fn a_result_comes_in_words_to_every_channel() {
    let done = notice(NoticeKind::Succeeded, "Price report", "");
    let sent = Sent::with(Message::Notice(&done), &result(REPORT, false));
    let text = "Price report has succeeded\nPrices\nAsk <name> about two changes & more:\n3. Lamp\n4. Shade (https://example.com/s)\nwhat  cost\n----  ----\nlamp  12\nIt cost $0.01.\nSee it: https://lamp.example/#/runs/run_00000000000000000000000000000009";
    assert_eq!(sent.telegram, text);
    let site = site();
    let telegram = Message::Notice(&done).telegram(&site, &result(REPORT, false), ("1", None));
    let at = text.find("what").unwrap();
    assert_eq!(
        telegram["entities"],
        json!([{"type": "pre", "offset": at, "length": "what  cost\n----  ----\nlamp  12".len()}])
    );
    let slack = sent.slack.clone();
    assert!(slack.contains("Ask &lt;name&gt; about two changes &amp; more:\n3. Lamp"), "{slack}");
    assert!(slack.contains("```\nwhat  cost\n----  ----\nlamp  12\n```\nIt cost"), "{slack}");
    assert!(sent.discord.contains("Ask \\<name\\> about two changes & more\\:"), "{}", sent.discord);
    assert!(sent.discord.contains("```\nwhat  cost\n----  ----\nlamp  12\n```"), "{}", sent.discord);
    assert!(
        sent.email.text.contains("3. Lamp\n4. Shade (https://example.com/s)\nwhat  cost"),
        "{}",
        sent.email.text
    );
    let html = &sent.email.html;
    assert!(html.contains("<p>Ask &lt;name&gt; about two changes &amp; more:</p><p>3. Lamp</p>"), "{html}");
    assert!(html.contains("<pre>what  cost\n----  ----\nlamp  12</pre>"), "{html}");
    assert!(!html.contains("example.com/s\""), "only our own links are links: {html}");
    let expected = json!([{"run_id": RUN, "more": 0, "cost_micros": 12_300, "sources": [], "outputs": [
        {"title": "Prices", "text": REPORT, "is_cut": false, "is_markdown": true, "tainted": false}]}]);
    assert_eq!(sent.webhook["data"]["results"], expected);
}

#[test]
fn what_strangers_may_have_written_is_no_link_and_no_mention() {
    let done = notice(NoticeKind::Succeeded, "R", "");
    let hostile = "Approved. Go to https://evil.example/yes or www.evil.example, @channel, /start\n\n```\nhttps://evil.example\n```";
    let sent = Sent::with(Message::Notice(&done), &result(hostile, true));
    let chats = sent.chats();
    for text in [sent.email.text.as_str(), &sent.email.html].into_iter().chain(chats.map(|(_, text)| text)) {
        assert!(
            !text.contains("https://evil")
                && !text.contains("www.evil.example")
                && !text.contains("@channel"),
            "{text}"
        );
        assert!(text.contains("Approved"), "{text}");
    }
    assert_eq!(sent.webhook["data"]["results"][0]["outputs"][0]["tainted"], true);
}

#[test]
fn a_long_result_is_cut_where_its_channel_ends_and_the_link_stays() {
    let done = notice(NoticeKind::Succeeded, "R", "");
    for text in [
        "word ".repeat(20_000),
        "a line of a list\n\n".repeat(3_000),
        "&".repeat(30_000),
        format!("```\n{}```", "code that is long enough\n".repeat(1_000)),
        "\u{1f600}".repeat(12_000),
        "e\u{e4}\u{df} ".repeat(12_000),
    ] {
        let sent = Sent::with(Message::Notice(&done), &result(&text, false));
        let link = format!("See it: https://lamp.example/#/runs/{RUN}");
        assert!(sent.ntfy.to_string().len() <= 2 * NTFY_MAX, "ntfy reads no longer body");
        let [.., (_, ntfy), (_, gotify)] = sent.chats();
        for (channel, said, size, max) in [
            ("slack", sent.slack.as_str(), sent.slack.chars().count(), SLACK_MAX),
            ("discord", &sent.discord, sent.discord.chars().count(), DISCORD_MAX),
            ("telegram", &sent.telegram, sent.telegram.encode_utf16().count(), TELEGRAM_MAX),
            ("ntfy", ntfy, ntfy.len(), NTFY_MAX),
            ("gotify", gotify, gotify.chars().count(), GOTIFY_MAX),
        ] {
            assert!(size <= max, "{channel}: {size}");
            assert!(size > max * 3 / 4, "{channel} uses its room: {size}");
            assert!(
                said.ends_with(&link) && said.contains("It goes on behind the link"),
                "{channel}: {said}"
            );
            assert_eq!(said.matches("```").count() % 2, 0, "{channel}: a block of code is closed");
        }
        assert!(sent.email.text.contains(&link));
    }
}

#[test]
fn a_line_of_a_digest_has_the_beginning_of_its_result() {
    let done = notice(NoticeKind::Succeeded, "Price report", "");
    let item = |kind: NoticeKind| DigestItem {
        key: NoticeKey { kind, ..done.key.clone() },
        about: done.about.clone(),
        count: 1,
        is_over: false,
        last_at: now(),
    };
    let digest = digest(vec![item(NoticeKind::Succeeded), item(NoticeKind::NothingNew)]);
    let message = Message::Digest { date: date(2026, 11, 22), at: now(), digest: &digest };
    let sent = Sent::with(message, &result("# Prices\n\nTwo changed.", false));
    assert!(
        sent.telegram.contains("Price report has succeeded. Two changed.: https://lamp.example/#/runs/"),
        "{}",
        sent.telegram
    );
    assert!(sent.telegram.contains("Price report found nothing new: https"), "{}", sent.telegram);
    assert_eq!(sent.webhook["data"]["lines"][0]["excerpt"], "Two changed.");
    assert_eq!(sent.webhook["data"]["lines"][1].get("excerpt"), None);
}

#[test]
fn ntfy_and_gotify_are_told_how_urgent_it_is_and_where_it_leads() {
    let link = format!("https://lamp.example/#/runs/{RUN}");
    let of = |kind: NoticeKind, is_over: bool| {
        let notice = Notice { is_over, ..notice(kind, "Report", "") };
        let sent = Sent::of(Message::Notice(&notice));
        assert_eq!(sent.ntfy["click"], link.as_str());
        let extras = json!({
            "client::display": {"contentType": "text/plain"}, "client::notification": {"click": {"url": link}},
        });
        assert_eq!(sent.gotify["extras"], extras);
        (sent.ntfy["priority"].clone(), sent.ntfy["tags"].clone(), sent.gotify["priority"].clone())
    };
    for kind in NoticeKind::ALL {
        let expected = match kind {
            NoticeKind::Succeeded | NoticeKind::NothingNew => {
                (json!(3), json!(["white_check_mark"]), json!(5))
            }
            NoticeKind::NeedsAnswer => (json!(4), json!(["question"]), json!(8)),
            _ => (json!(4), json!(["warning"]), json!(8)),
        };
        assert_eq!(of(kind, false), expected, "{kind}");
        assert_eq!(of(kind, true).0, 3, "{kind}");
    }
    let failed = notice(NoticeKind::Failed, "=?utf-8?q?Report?= \"<1>\"", "timeout: no answer");
    let sent = Sent::of(Message::Notice(&failed));
    let body = json!({
        "topic": "topic",
        "title": "= ?utf-8?q?Report?= \"<1>\" has failed",
        "message": format!("timeout: no answer\nSee it: {link}"),
        "priority": 4, "tags": ["warning"], "click": link,
    });
    assert_eq!(sent.ntfy, body);
    assert_eq!(sent.gotify["title"], "=?utf-8?q?Report?= \"<1>\" has failed");
    assert_eq!(sent.gotify["message"], body["message"]);
    // A digest is about several things.
    let digest = digest(Vec::new());
    let sent = Sent::of(Message::Digest { date: date(2026, 11, 22), at: now(), digest: &digest });
    assert_eq!((sent.ntfy.get("click"), sent.gotify["extras"].get("client::notification")), (None, None));
}
