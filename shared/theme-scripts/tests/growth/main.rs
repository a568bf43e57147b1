//! Every reader of texts from outside takes linear time and memory, whatever the text is.
//!
//! Each hostile shape is read at three lengths. This is one test, because other tests at the same time would count, too.
//! Set `FIGURES` and run with `--nocapture` to see what each shape costs. Set `READER` to try only some readers.

mod measure;
mod shapes;

use std::collections::BTreeMap;

use domain::actions::conditions::Check;
use domain::chats::signals::{Reply, SignalReader};
use domain::context::import;
use domain::log::{Entry, InstanceId, SessionId, hook, name};
use domain::schedule::{Cron, Length, Moment, Schedule, ScheduleInput};
use domain::watch::{feed, page};
use domain::work::Condition;
use jiff::Timestamp;
use measure::Shape;
use theme::ThemeIndex;
use theme::check::CheckedTheme;
use theme::check::script::ScriptReader;
use theme::fix::{self, How};
use theme_scripts::Oxc;

/// Reads a text and forgets the result.
type Read = Box<dyn Fn(&str)>;
/// A name, the bytes of the shortest text, and the reader.
type Reader = (&'static str, usize, Read);

/// A file of a theme, checked.
fn checked(path: &'static str) -> Read {
    Box::new(move |text| {
        let theme = CheckedTheme::read([(path, text)], Some(&Oxc));
        theme.findings();
    })
}

/// A change of a theme: the file is new, then it is half as long, then it is gone.
fn changed(path: &'static str) -> Read {
    Box::new(move |text| {
        let base = CheckedTheme::read([("layout/theme.liquid", "<p class=\"a\"></p>")], Some(&Oxc));
        let half = (0..=text.len() / 2).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        let (mut new, mut short) = (base.clone(), base.clone());
        new.add(path, text.as_bytes(), Some(&Oxc));
        short.add(path, &text.as_bytes()[..half], Some(&Oxc));
        new.added_since(&base);
        short.added_since(&new);
        new.added_since(&short);
        base.added_since(&new);
    })
}

/// A file of a theme, indexed and asked.
fn indexed(path: &'static str) -> Read {
    Box::new(move |text| {
        let index = ThemeIndex::build([(path, text)]).expect("the path is fine");
        index.lookup("the colour of a button a b", Some(path), 5);
        index.describe(path);
        index.orphans();
        ThemeIndex::from_blob(&index.to_blob()).expect("a blob just written is readable");
    })
}

/// The links of an output of a run. All are permitted hosts, because the search ends after some others.
fn links(text: &str) {
    let hosts = vec!["good.com".to_owned()];
    let mut check = Check::new(&[Condition::LinksOnlyTo { hosts }], jiff::civil::date(2026, 11, 25));
    check.output("A", text);
    drop(check.report());
}

/// A file, mended.
fn mended(path: &'static str) -> Box<dyn Fn(&str)> {
    Box::new(move |text| {
        for how in [How::AsShown, How::AsMeant] {
            drop(fix::file(path, text, how).diff(path, text));
        }
    })
}

fn readers() -> Vec<Reader> {
    // No power of two: there, buffers grow by jumps.
    let kib = 900;
    vec![
        ("script", 14 * kib, Box::new(|text: &str| drop(Oxc.read(text, false)))),
        ("module", 14 * kib, Box::new(|text: &str| drop(Oxc.read(text, true)))),
        ("check liquid", 10 * kib, checked("sections/a.liquid")),
        ("check css", 10 * kib, checked("assets/a.css")),
        ("check css.liquid", 10 * kib, checked("assets/a.css.liquid")),
        ("check js", 10 * kib, checked("assets/a.js")),
        ("check js.liquid", 10 * kib, checked("assets/a.js.liquid")),
        ("check template", 10 * kib, checked("templates/a.json")),
        ("check settings", 10 * kib, checked("config/settings_schema.json")),
        ("check data", 10 * kib, checked("config/settings_data.json")),
        ("check locale", 10 * kib, checked("locales/en.default.json")),
        ("change liquid", 6 * kib, changed("sections/a.liquid")),
        ("change css", 6 * kib, changed("assets/a.css")),
        ("change template", 6 * kib, changed("templates/a.json")),
        ("index liquid", 10 * kib, indexed("sections/a.liquid")),
        ("index css", 10 * kib, indexed("assets/a.css")),
        ("index js", 10 * kib, indexed("assets/a.js")),
        ("index template", 10 * kib, indexed("templates/a.json")),
        ("index settings", 10 * kib, indexed("config/settings_schema.json")),
        ("index locale", 10 * kib, indexed("locales/fr.json")),
        ("fix liquid", 10 * kib, mended("sections/a.liquid")),
        ("fix settings", 10 * kib, mended("config/settings_schema.json")),
        ("links", 20 * kib, Box::new(links)),
        (
            "request",
            8 * kib,
            Box::new(|text: &str| {
                let index = ThemeIndex::build([("sections/a.liquid", "<p class=\"price\">{{ a }}</p>")]);
                index.expect("the path is fine").gate(text, None, 5);
            }),
        ),
        (
            "signals",
            64 * kib,
            Box::new(|text: &str| {
                drop(Reply::parse(text));
                let mut reader = SignalReader::default();
                for start in (0..text.len()).step_by(7) {
                    reader.feed(text.get(start..(start + 7).min(text.len())).unwrap_or_default());
                }
                drop(reader.finish());
            }),
        ),
        ("page", 63 * kib, Box::new(|text: &str| drop(page::read("text/html", text.as_bytes(), None)))),
        ("json page", 63 * kib, Box::new(|text: &str| drop(page::read("", text.as_bytes(), Some("/a"))))),
        ("feed", 63 * kib, Box::new(|text: &str| drop(feed::read("", text.as_bytes(), "")))),
        ("context", 63 * kib, Box::new(|text: &str| drop(import::import(text, Timestamp::UNIX_EPOCH)))),
        (
            "hook",
            64 * kib,
            Box::new(|text: &str| {
                let payload = serde_json::json!({"hook_event_name": "PreToolUse", "tool_name": "Task", "session_id": "s",
                    "tool_use_id": "t", "tool_input": {"subagent_type": "a", "description": text, "prompt": text}});
                drop(hook::parse(payload.to_string().as_bytes(), None));
                drop(hook::parse(text.as_bytes(), None));
                drop(name::in_prompt(text));
            }),
        ),
        (
            "log line",
            64 * kib,
            Box::new(|text: &str| {
                let session: SessionId = "s".parse().expect("a session");
                for line in text.lines() {
                    drop(Entry::from_line(line.as_bytes(), &session, &InstanceId::main()));
                }
            }),
        ),
        (
            "schedule",
            64 * kib,
            Box::new(|text: &str| {
                drop((Cron::parse(text), Length::parse(text), Moment::parse(text)));
                drop(serde_json::from_str::<Schedule>(text));
                let some = || Some(text.to_owned());
                drop(
                    ScheduleInput {
                        cron: some(),
                        timezone: some(),
                        jitter: some(),
                        ..ScheduleInput::default()
                    }
                    .validate(),
                );
            }),
        ),
    ]
}

#[test]
fn hostile_texts_take_linear_time_and_memory() {
    let wanted = std::env::var("READER").unwrap_or_default();
    let readers: BTreeMap<&str, (usize, Read)> =
        readers().into_iter().map(|(name, bytes, read)| (name, (bytes, read))).collect();
    let mut count = 0;
    let mut wrong = Vec::new();
    for (names, before, unit, after) in shapes::all() {
        for name in names.iter().filter(|name| name.contains(&wanted)) {
            let (bytes, read) = &readers[name];
            // Caches of the readers are filled before.
            if count == 0 {
                read("a");
            }
            count += 1;
            let shape = Shape { reader: (*name).to_owned(), before, unit, after };
            if let Err(error) = measure::check(&shape, *bytes, read) {
                println!("{error}");
                wrong.push(error);
            }
        }
    }
    let tried: std::collections::BTreeSet<&str> =
        shapes::all().flat_map(|(names, ..)| names).copied().collect();
    assert!(readers.keys().all(|name| tried.contains(name)), "a reader has no shape");
    assert!(!wanted.is_empty() || count >= 400, "only {count} shapes");
    assert!(wrong.is_empty(), "{} of {count} grow too fast:\n{}", wrong.len(), wrong.join("\n"));
}
