//! Prints the mends of templates, for `tests/liquid/strict/mends.rb`, which asks Liquid for its verdicts.
//!
//! ```console
//! $ cargo run -p theme-scripts --example mends -- tests/liquid/strict/verdicts.jsonl
//! ```
//!
//! Each line of the output is an array: a refused template and the mended one. Templates that are not wholly mended are left out. With
//! `--as-meant`, it mends as it was meant, and leaves out what is mended so without it. With `--figures`, it prints how many places of each kind
//! are mended and how many are listed.

use std::collections::BTreeMap;
use std::env;
use std::error::Error;

use std::fs;
use theme::fix::{self, How};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let has = |flag: &str| arguments.iter().any(|argument| argument == flag);
    let file = arguments.iter().find(|argument| !argument.starts_with("--")).ok_or("name verdicts.jsonl")?;
    let how = if has("--as-meant") { How::AsMeant } else { How::AsShown };
    let mut figures = BTreeMap::<&str, (u32, u32)>::new();
    for line in fs::read_to_string(file)?.lines().skip(1) {
        let (template, ..): (String, serde_json::Value, u8, u8) = serde_json::from_str(line)?;
        let fixed = fix::file("snippets/a.liquid", &template, how);
        for change in &fixed.changes {
            figures.entry(change.kind).or_default().0 += 1;
        }
        for left in &fixed.left {
            figures.entry(left.kind).or_default().1 += 1;
        }
        let is_known = || {
            let shown = fix::file("snippets/a.liquid", &template, How::AsShown);
            how == How::AsMeant && shown.left.is_empty() && shown.text == fixed.text
        };
        if !has("--figures") && !fixed.changes.is_empty() && fixed.left.is_empty() && !is_known() {
            println!("{}", serde_json::to_string(&(template, fixed.text))?);
        }
    }
    if has("--figures") {
        for (kind, (mended, listed)) in figures {
            println!("{kind} {mended} {listed}");
        }
    }
    Ok(())
}
