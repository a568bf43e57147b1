//! What a check of the conditions of an action costs. The check is a pure function, so it calls no model and uses no token.
//!
//! ```text
//! cargo run --profile bench -p domain --example condition_checks
//! ```
//!
//! 1,000 checks of each kind, on reports of 3,300 words and on JSON of 20 KB, half of which meet the condition. Then outputs of 1 MB that are
//! written to be slow: the time must grow with the length of the output and not with its square. Exits with 1 if a figure misses its goal.
//! `watch_checks` in `tests/bench` measures the looks at watched things.

// A program that measures reads the clock. The library does not.
#![allow(clippy::disallowed_methods)]

use std::hint::black_box;
use std::process::ExitCode;
use std::time::Instant;

use domain::actions::conditions::{self, Check};
use domain::validate::FieldErrors;
use domain::work::Condition;
use jiff::civil::{Date, date};
use serde_json::{Value, json};

const DAY: Date = date(2026, 11, 25);

const CHECKS: usize = 1_000;

/// How often each of them is measured.
const TRIES: usize = 5;

/// The longest time of a check of a realistic output, in milliseconds: 99 of 100 are faster.
const OWN_MS: f64 = 1.0;

/// The longest time of a check of a hostile output of 1 MB, in milliseconds. A search that is quadratic takes minutes.
const HOSTILE_MS: f64 = 1_000.0;

const MEGABYTE: usize = 1 << 20;

/// A report of 3,300 words. `n` makes each one differ, and the even ones meet all conditions.
fn report(n: usize) -> String {
    let meets = n.is_multiple_of(2);
    let mut text = String::from("# Prices of lamp oil\n\n");
    if meets {
        text.push_str("Seen on 25 November 2026.\n\n");
    }
    let paragraphs = if meets { 60 } else { 59 };
    for at in 0..paragraphs {
        if at % 10 == 0 {
            text.push_str(&format!("## Part {}\n\n", at / 10));
        }
        let sentence =
            format!("The shop {at} sells oil number {n} at a price that is higher than last week. ");
        text.push_str(&sentence.repeat(3));
        text.push_str(&format!("See [the shop](https://shop{at}.example.com/oil?n={n}).\n\n"));
        text.push_str("```\n# not a heading\nhttps://example.com/code\n```\n\n");
    }
    text.push_str(if meets { "## Sources\n\n" } else { "## Origins\n\n" });
    text.push_str(if meets { "https://example.com/end\n" } else { "https://elsewhere.example.net/end\n" });
    text
}

/// JSON of 20 KB. The even ones match the schema.
fn plans(n: usize) -> String {
    let price = |at: usize| if at == 150 && !n.is_multiple_of(2) { json!("dear") } else { json!(at + n) };
    let plan = |at: usize| json!({"name": format!("Plan {at}"), "price": price(at), "text": "Oil for lamps, ".repeat(4)});
    json!({"plans": (0..200).map(plan).collect::<Vec<Value>>()}).to_string()
}

/// A kind of condition with outputs that are realistic, and with outputs of 1 MB that are slow to read.
struct Kind {
    name: &'static str,
    condition: Value,
    output: fn(usize) -> String,
    hostile: Vec<(&'static str, String)>,
}

/// This text again and again, 1 MB of it.
fn much(text: &str) -> String {
    text.repeat(MEGABYTE / text.len())
}

fn kinds() -> Vec<Kind> {
    let headings: Vec<String> = (0..6).map(|at| format!("Part {at}")).chain(["Sources".to_owned()]).collect();
    let plan = json!({
        "type": "object", "required": ["name", "price"],
        "properties": {"name": {"type": "string", "maxLength": 40}, "price": {"type": "integer", "minimum": 0}},
    });
    let schema = json!({"type": "object", "required": ["plans"], "properties": {"plans": {"type": "array", "items": plan}}});
    let nested = format!("{}{}", "[".repeat(MEGABYTE / 2), "]".repeat(MEGABYTE / 2));
    vec![
        Kind {
            name: "min_words",
            condition: json!({"kind": "min_words", "words": 3_300}),
            output: report,
            hostile: vec![("no words", much("- ")), ("one word", much("a")), ("Chinese", much("油"))],
        },
        Kind {
            name: "names_today",
            condition: json!({"kind": "names_today"}),
            output: report,
            hostile: vec![
                ("dates that go on", much("2026-11-251 ")),
                ("white space", much(" \u{a0}")),
                ("nearly dates", much("25 nov 202")),
            ],
        },
        Kind {
            name: "headings",
            condition: json!({"kind": "headings", "headings": headings}),
            output: report,
            hostile: vec![
                ("only headings", much("# a\n")),
                ("lines that may be headings", much("a\n=\n")),
                ("fences", much("```\n~~~\n")),
                ("one line of #", much("#")),
                ("backticks", much("``` ` ")),
            ],
        },
        Kind {
            name: "json",
            condition: json!({"kind": "json", "schema": schema}),
            output: plans,
            hostile: vec![
                ("nested", nested),
                ("many plans", format!("{{\"plans\":[{}1]}}", "{},".repeat((MEGABYTE - 20) / 3))),
            ],
        },
        Kind {
            name: "links_only_to",
            condition: json!({"kind": "links_only_to", "hosts": ["example.com"]}),
            output: report,
            hostile: vec![
                ("foreign links", much("https://a.example.net ")),
                ("brackets", much("[")),
                ("open links", much("[a](")),
                ("schemes", much("https://")),
                ("tags", much("<a href=")),
                ("entities", much("&#104;ttps:")),
                ("backslashes", much("\\[\\(")),
                ("references", much("[a]: b\n")),
                ("quotes", much("> [a](<b")),
                ("hosts", much("example.com,")),
                ("tables", much("|[x](/a)|\n|-|\n")),
                ("raw elements", much("<svg><title>")),
                ("srcset", format!("<img srcset='{}'>", much("/a.png 1x, "))),
                ("a page in a page", format!("<iframe srcdoc='{}'>", much("<a href=/a>"))),
                ("styles", format!("<style>{}</style>", much("a{b:url(/c)}"))),
                ("JSON", format!("{{\"a\":[{}1]}}", much("\"b.c\","))),
            ],
        },
    ]
}

/// How long a check of this output takes, in milliseconds, and whether the condition is met. The fastest of some tries counts, because
/// other programs use the processor, too.
fn checked(conditions: &[Condition], output: &str) -> (f64, bool) {
    let (mut fastest, mut is_met) = (f64::MAX, false);
    for _ in 0..TRIES {
        let began = Instant::now();
        let mut check = Check::new(black_box(conditions), DAY);
        check.output("Report", black_box(output));
        is_met = black_box(check.report()).unmet.is_empty();
        fastest = fastest.min(began.elapsed().as_secs_f64() * 1e3);
    }
    (fastest, is_met)
}

fn main() -> ExitCode {
    let mut good = true;
    println!("{:<16} {:>7} {:>7} {:>9} {:>9} {:>9}", "own time in ms", "checks", "KB", "p50", "p99", "most");
    let mut slowest = Vec::new();
    for kind in kinds() {
        let conditions: Vec<Condition> =
            serde_json::from_value(json!([kind.condition])).expect("a condition has this form");
        let mut errors = FieldErrors::default();
        conditions::check(&mut errors, &conditions);
        assert_eq!(errors.to_string(), "", "{}", kind.name);
        let (mut took, mut bytes) = (Vec::new(), 0);
        for n in 0..CHECKS {
            let output = (kind.output)(n);
            let (ms, is_met) = checked(&conditions, &output);
            assert_eq!(is_met, n.is_multiple_of(2), "{}, output {n}", kind.name);
            took.push(ms);
            bytes += output.len();
        }
        took.sort_by(f64::total_cmp);
        let (p50, p99) = (took[CHECKS / 2], took[CHECKS * 99 / 100]);
        let kilobytes = bytes as f64 / CHECKS as f64 / 1e3;
        println!(
            "{:<16} {CHECKS:>7} {kilobytes:>7.1} {p50:>9.3} {p99:>9.3} {:>9.3}",
            kind.name,
            took[CHECKS - 1]
        );
        good &= p99 <= OWN_MS;
        for (name, output) in &kind.hostile {
            let (ms, _) = checked(&conditions, output);
            slowest.push((ms, kind.name, *name));
        }
    }
    println!("\nhostile outputs of 1 MB, in ms");
    for (ms, kind, name) in slowest {
        println!("{kind:<16} {name:<28} {ms:>9.1}");
        good &= ms <= HOSTILE_MS;
    }
    println!("\ncalls of a model: 0, because the check takes texts and returns a report");
    if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
