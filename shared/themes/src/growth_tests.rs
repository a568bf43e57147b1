//! Path patterns, expressions and the search in a theme take linear time and memory, whatever the text is.
//!
//! The test runs itself again in a process of its own, because other tests at the same time would count, too.

#[path = "../../theme-scripts/tests/growth/measure.rs"]
mod measure;

use std::time::Duration;

use shared::process::compute::Stop;

use crate::expression::{Expression, Matching};
use crate::glob::Glob;
use crate::grep;
use measure::Shape;

/// Set in the process that measures.
const ALONE: &str = "GROWTH_TEST";
const NAME: &str = "growth_tests::hostile_texts_take_linear_time_and_memory";

/// How much text, in bytes.
const BYTES: usize = 64 * 900;

type Read = Box<dyn Fn(&str)>;

const TEXTS: &[(&str, &str, &str)] =
    &[("", "a", ""), ("", "a", "b"), ("", "ab", ""), ("", "a/", "c"), ("", "\n", ""), ("", "é", "")];

fn stop() -> Stop {
    Stop::after(Duration::from_secs(600))
}

/// The matching lines of a file.
fn grepped(pattern: &'static str) -> Read {
    Box::new(move |text| grep::search_all(pattern, text, &stop()))
}

/// Searches a text with an expression, forwards and backwards.
fn searched(pattern: &'static str) -> Read {
    Box::new(move |text| {
        let mut expression = Expression::new(pattern, Matching::default()).unwrap();
        if let Some(end) = expression.end(text.as_bytes(), &stop()).unwrap() {
            expression.begin(text.as_bytes(), end, &stop()).unwrap();
        }
    })
}

fn matched(pattern: &'static str) -> Read {
    Box::new(move |text| _ = Glob::new("glob", pattern).unwrap().is_match(text, &stop()))
}

fn readers() -> Vec<(&'static str, Read)> {
    let expressions = [
        "(a*)*b",
        "(a|aa)+$",
        "(a|a)*c",
        "a*a*a*a*c",
        "(?:a?){30}a{30}b",
        ".*.*=.*",
        "(?i)(é|a)*x",
        "^(([a-z])+.)+[A-Z]",
    ];
    let globs = ["**/**/**/**/x", "*a*a*a*a*b", "{a,a,a}*{a,b}*c", "**a**a**a**b", "?*?*?*x"];
    let mut all: Vec<(&'static str, Read)> = Vec::new();
    all.extend(expressions.map(|pattern| (pattern, searched(pattern))));
    all.extend(["a", "(a*)*b", "b$", "^a", "x"].map(|pattern| (pattern, grepped(pattern))));
    all.extend(globs.map(|pattern| (pattern, matched(pattern))));
    all
}

#[test]
fn hostile_texts_take_linear_time_and_memory() {
    if std::env::var_os(ALONE).is_none() {
        let mut again = std::process::Command::new(std::env::current_exe().unwrap());
        let done = again.args(["--exact", NAME, "--nocapture"]).env(ALONE, "1").output().unwrap();
        let said = String::from_utf8_lossy(&done.stdout);
        assert!(
            done.status.success() && said.contains("1 passed"),
            "{said}{}",
            String::from_utf8_lossy(&done.stderr)
        );
        return;
    }
    let mut wrong = Vec::new();
    for (reader, read) in readers() {
        // Caches are filled before.
        read("a");
        for &(before, unit, after) in TEXTS {
            let shape = Shape { reader: reader.to_owned(), before, unit, after };
            wrong.extend(measure::check(&shape, BYTES, &read).err());
        }
    }
    assert!(wrong.is_empty(), "{} grow too fast:\n{}", wrong.len(), wrong.join("\n"));
}
