//! Broken, nested, circular and very long files: every tool answers, within its bounds, with lines that exist.

use serde_json::json;
use theme_tools::{Call, MAX_ANSWER, Outcome, TOOLS, ThemeIndex, Tree};

fn files() -> Vec<(String, String)> {
    let deep = format!("{}x{}", "{% if a %}".repeat(3_000), "{% endif %}".repeat(3_000));
    let mut files: Vec<(String, String)> = vec![
        ("layout/theme.liquid".into(), "{% sections 'g' %}<é class=\"ü\u{0}{% render 'a' %}".into()),
        ("sections/deep.liquid".into(), deep),
        (
            "sections/broken.liquid".into(),
            "{% if {{ %} {% schema %}{\"settings\": [{\"id\": \"x\", {{ }".into(),
        ),
        ("sections/g.json".into(), "{\"sections\": {\"a\": {\"type\": \"deep\", ]]".into()),
        ("sections/long.liquid".into(), format!("<img class=\"a\">{{% render 'a' %}}{}", "ä".repeat(50_000))),
        ("templates/index.json".into(), "[[[[{\"sections\": 1}".into()),
        ("templates/many.json".into(), many()),
        ("config/settings_schema.json".into(), "{\"name\": [".into()),
        ("config/settings_data.json".into(), "{\"current\": \"none\"}".into()),
        ("locales/en.default.schema.json".into(), "\u{feff}{".into()),
        ("assets/a.css".into(), ".a{display:none".repeat(2_000)),
        ("assets/a.js".into(), "a(".repeat(5_000)),
        ("snippets/a.liquid".into(), "{% render 'b' %}{% render 'a' %}<p class=\"a\" hidden>".into()),
        ("snippets/b.liquid".into(), "{% render 'a' %}{% render 'c' %}".into()),
        ("snippets/c.liquid".into(), "{% render 'a' %}{% render 'b' %}\r\n{{ settings.x }}".into()),
    ];
    // Each of these renders all others: there are more ways than anyone could count.
    for name in 0..14 {
        let all: String = (0..14).map(|other| format!("{{% render 'w{other}' %}}")).collect();
        files.push((format!("snippets/w{name}.liquid"), all));
    }
    files
}

fn many() -> String {
    let sections: Vec<String> =
        (0..2_000).map(|n| format!("\"s{n}\": {{\"type\": \"deep\", \"disabled\": true}}")).collect();
    format!("{{\"sections\": {{{}}}, \"order\": []}}", sections.join(",\n"))
}

#[test]
fn every_tool_answers_on_broken_files() {
    let files = files();
    let texts: Vec<(&str, &str)> = files.iter().map(|(path, text)| (&**path, &**text)).collect();
    let index = ThemeIndex::build(texts.iter().copied()).expect("a theme");
    let sizes = texts.iter().map(|(path, text)| (*path, text.len() as u64));
    let tree = Tree::new(&index, sizes, texts.iter().copied());
    let mut answered = 0;
    for (path, _) in &texts {
        for tool in TOOLS {
            let arguments = match tool.name {
                "find_references"
                | "get_dependency_graph"
                | "trace_rendering_chain"
                | "get_schema_settings"
                | "diagnose_visibility"
                | "analyze_variants"
                | "check_performance" => json!({"path": path}),
                "check_theme_setting" => json!({"id": "x"}),
                "search_files" => json!({"query": path}),
                "run_command" => json!({"command": format!("cat '{path}'")}),
                _ => json!({"width": 10, "height": 10, "text": path}),
            };
            let call = Call::parse(tool.name, arguments).expect("fine arguments");
            let Ok(Outcome::Text(text)) = call.run(&tree) else { continue };
            answered += 1;
            assert!(text.len() <= MAX_ANSWER, "{} {path}: {} bytes", tool.name, text.len());
            for line in text.lines() {
                let Some((file, rest)) = line.split_once(':') else { continue };
                let Some((_, text)) = texts.iter().find(|(path, _)| *path == file) else { continue };
                let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
                if let Ok(number) = digits.parse::<usize>() {
                    let most = text.split('\n').count();
                    assert!((1..=most).contains(&number), "{} {path}: {line}", tool.name);
                }
            }
        }
        for symbol in ["a", "x", "é", "w1", "display"] {
            let call = Call::parse("find_references", json!({"symbol": symbol})).expect("fine arguments");
            let Ok(Outcome::Text(text)) = call.run(&tree) else { panic!("an answer") };
            assert!(text.len() <= MAX_ANSWER);
        }
    }
    assert!(answered > 200, "{answered}");
}

#[test]
fn more_ways_than_anyone_can_read_are_cut_and_counted() {
    let files = files();
    let texts: Vec<(&str, &str)> = files.iter().map(|(path, text)| (&**path, &**text)).collect();
    let index = ThemeIndex::build(texts.iter().copied()).expect("a theme");
    let tree =
        Tree::new(&index, texts.iter().map(|(path, text)| (*path, text.len() as u64)), texts.iter().copied());
    let call = Call::parse("trace_rendering_chain", json!({"path": "snippets/w3.liquid", "limit": 2}))
        .expect("fine");
    let Ok(Outcome::Text(text)) = call.run(&tree) else { panic!("an answer") };
    assert!(text.contains("There are more ways. The search stopped at its limit."), "{text}");
    assert!(text.contains("shown: 1–2. Next offset: 2."), "{text}");
}

#[test]
fn a_product_form_without_the_variant_is_a_problem() {
    let files = [
        ("sections/a.liquid", "\n{% form 'product', product %}{% render 'b' %}{% endform %}"),
        ("snippets/b.liquid", "<input name=\"x\">"),
    ];
    let index = ThemeIndex::build(files).expect("a theme");
    let tree = Tree::new(&index, files.map(|(path, text)| (path, text.len() as u64)), files);
    let call = Call::parse("analyze_variants", json!({})).expect("fine");
    let Ok(Outcome::Text(text)) = call.run(&tree) else { panic!("an answer") };
    assert!(text.contains("sections/a.liquid:2  no field with name=\"id\""), "{text}");
}
