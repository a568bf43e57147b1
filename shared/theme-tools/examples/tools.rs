//! Runs a tool on the theme in a folder: `tools FOLDER TOOL 'ARGUMENTS AS JSON'`, or `tools FOLDER times` for the time of each tool.
#![allow(clippy::disallowed_methods, reason = "an example reads a folder and measures")]

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use theme_tools::{Call, Needs, Outcome, ThemeIndex, Tree};

type Files = BTreeMap<String, Vec<u8>>;

fn list(folder: &Path, inside: &str, files: &mut Files) {
    for entry in std::fs::read_dir(folder.join(inside)).expect("a folder") {
        let entry = entry.expect("an entry");
        let name = entry.file_name().into_string().expect("UTF-8");
        if name.starts_with('.') || name == "node_modules" {
            continue;
        }
        let path = if inside.is_empty() { name } else { format!("{inside}/{name}") };
        if entry.file_type().expect("a kind").is_dir() {
            list(folder, &path, files);
        } else if path.contains('/') {
            files.insert(path, std::fs::read(entry.path()).expect("a file"));
        }
    }
}

/// As a caller does it: only the texts that the call needs.
fn run(index: &ThemeIndex, files: &Files, call: &Call) -> (String, usize) {
    let texts: Vec<(&str, &str)> = match call.needs(index) {
        Needs::Nothing => Vec::new(),
        Needs::AllText => files
            .iter()
            .filter_map(|(path, bytes)| Some((path.as_str(), std::str::from_utf8(bytes).ok()?)))
            .collect(),
        Needs::Paths(paths) => paths
            .iter()
            .filter_map(|path| files.get_key_value(path))
            .filter_map(|(path, bytes)| Some((path.as_str(), std::str::from_utf8(bytes).ok()?)))
            .collect(),
    };
    let sizes = files.iter().map(|(path, bytes)| (path.as_str(), bytes.len() as u64));
    let loaded = texts.len();
    let text = match call.run(&Tree::new(index, sizes, texts)) {
        Ok(Outcome::Text(text)) => text,
        Ok(other) => format!("{other:?}\n"),
        Err(problem) => format!("error: {problem}\n"),
    };
    (text, loaded)
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder, tool, rest @ ..] = arguments.as_slice() else {
        eprintln!("tools FOLDER TOOL 'ARGUMENTS AS JSON', or tools FOLDER times");
        std::process::exit(2);
    };
    let mut files = Files::new();
    list(Path::new(folder), "", &mut files);
    let index = ThemeIndex::build(files.iter()).expect("a theme");
    if tool != "times" {
        let value: Value = serde_json::from_str(rest.first().map_or("{}", String::as_str)).expect("JSON");
        match Call::parse(tool, value) {
            Ok(call) => print!("{}", run(&index, &files, &call).0),
            Err(problem) => println!("error: {problem}"),
        }
        return;
    }
    let calls = [
        ("get_dependency_graph", json!({"path": "sections/main-product.liquid", "depth": 5})),
        ("find_references", json!({"path": "snippets/price.liquid"})),
        ("find_references", json!({"symbol": "price", "kind": "css_class"})),
        ("find_references", json!({"symbol": "products.product.add_to_cart"})),
        ("trace_rendering_chain", json!({"path": "snippets/price.liquid"})),
        ("get_schema_settings", json!({"path": "sections/main-product.liquid"})),
        ("get_schema_settings", json!({"path": "config/settings_schema.json"})),
        ("check_theme_setting", json!({"id": "settings.page_width"})),
        ("check_theme_setting", json!({"id": "color_scheme"})),
        ("diagnose_visibility", json!({"section": "main-product"})),
        ("diagnose_visibility", json!({"path": "snippets/price.liquid", "selector": ".price"})),
        ("analyze_variants", json!({})),
        ("check_performance", json!({})),
        ("generate_placeholder", json!({"width": 800, "height": 600})),
        ("run_command", json!({"command": "wc assets/base.css"})),
        ("run_command", json!({"command": "diff sections/header.liquid sections/footer.liquid"})),
        ("search_files", json!({"query": "prodct card"})),
    ];
    for (tool, value) in calls {
        let shown = value.to_string();
        let call = Call::parse(tool, value).expect("fine arguments");
        let mut times = Vec::new();
        let mut last = (String::new(), 0);
        for _ in 0..9 {
            let started = Instant::now();
            last = run(&index, &files, &call);
            times.push(started.elapsed());
        }
        times.sort_unstable();
        let median: Duration = times[times.len() / 2];
        println!(
            "{:8.2} ms  {:4} texts  {:6} bytes  {tool} {shown}",
            median.as_secs_f64() * 1e3,
            last.1,
            last.0.len()
        );
    }
}
