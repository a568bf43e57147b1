//! Lists in the manuals that must equal lists in the code.

use std::collections::BTreeSet;

use serde_json::Value;
use shared::runtime::function::Trigger;

use crate::page::{after, code, column, compare, first_column, in_backticks, read, section, set};

const API: &str = "docs/api.md";
const OPERATIONS: &str = "docs/operations.md";

/// Codes that no client sees: the flows that use them handle them.
const INTERNAL_CODES: [&str; 2] = ["deadline", "hold_lost"];

fn is_code(c: char) -> bool {
    c.is_ascii_lowercase() || c == '_'
}

fn is_variable(c: char) -> bool {
    c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_'
}

#[test]
fn routes_are_those_of_the_openapi_document() {
    let document = catalog::openapi();
    let paths = document["paths"].as_object().expect("the document has paths");
    let routes = paths.iter().flat_map(|(path, methods)| {
        let methods = methods.as_object().expect("a path has methods").keys();
        methods.map(move |method| format!("{} {path}", method.to_uppercase()))
    });
    let documented = first_column(&section(&read(API), "## Routes"));
    assert_eq!(set(documented.clone()).len(), documented.len(), "a route is listed twice");
    compare(API, &set(documented), &set(routes));
}

#[test]
fn error_codes_are_those_of_the_code() {
    let page = read(API);
    let section = section(&page, "## Errors");
    let documented = set(first_column(&section));
    assert!(documented.len() > 50, "{documented:?}");
    let source = code(&[
        "shared/src",
        "shared/themes/src",
        "shared/domain/src",
        "functions",
        "infra/local/src/headers.rs",
    ]) + &read("infra/template.yaml");
    let unknown: Vec<_> = documented.iter().filter(|code| !source.contains(&format!("\"{code}\""))).collect();
    assert!(unknown.is_empty(), "{API} names codes that the code does not have: {unknown:?}");
    for required in required_codes() {
        let is_internal = INTERNAL_CODES.contains(&required.as_str());
        assert!(is_internal || documented.contains(&required), "{API} does not name the code {required}");
    }
}

fn between<'a>(text: &'a str, from: &str, to: &str) -> &'a str {
    let start = text.find(from).unwrap_or_else(|| panic!("{from} is not there"));
    let rest = &text[start..];
    &rest[..rest[from.len()..].find(to).map_or(rest.len(), |at| at + from.len())]
}

fn literals(text: &str) -> BTreeSet<String> {
    let all = text.split('"').skip(1).step_by(2);
    all.filter(|text| !text.is_empty() && text.chars().all(is_code)).map(str::to_owned).collect()
}

/// Why an action refuses a command.
fn refusals() -> BTreeSet<String> {
    literals(between(&read("shared/domain/src/actions/state.rs"), "pub const fn code(&self)", "\n    }\n"))
}

/// How calls of models fail.
fn model_codes() -> BTreeSet<String> {
    literals(between(&read("shared/src/agent_loop/call.rs"), "fn model_code(", "\n}\n"))
}

/// All codes of errors.
fn required_codes() -> BTreeSet<String> {
    let mut codes = refusals();
    codes.extend(model_codes());
    codes.extend(literals(between(&code(&["shared"]), "fn row(&self) -> Row", "\n    }\n")));
    let source = code(&["shared/src", "shared/themes/src", "functions"]);
    for before in ["Error::conflict(", "Error::conflict_with(", "code: \"", "failure(\""] {
        codes.extend(after(&source, before, is_code));
    }
    codes.extend(literals(between(&read("functions/mcp/src/routes.rs"), "let code = match status", "};")));
    codes.extend(after(&code(&["shared/domain/src/agent_loop"]), "Outcome::failed(", is_code));
    let repeats = read("shared/domain/src/agent_loop/repeats.rs");
    codes.extend(after(between(&repeats, "fn stops(", "\n    }\n"), "Some((", is_code));
    codes.extend(after(&read("infra/template.yaml"), "\"code\":\"", is_code));
    let loops = read("shared/domain/src/agent_loop/repeats.rs");
    codes.extend(literals(between(&loops, "pub fn stops(self)", "\n    }\n")));
    // Calls with a variable as their code.
    codes.remove("refused");
    codes.remove("code");
    codes
}

#[test]
fn events_are_those_of_a_run() {
    let text = section(&read(API), "## Turns and streams");
    let events = domain::runs::EventKind::ALL.map(domain::runs::EventKind::name);
    let mut expected = set(events);
    expected.insert("heartbeat".to_owned());
    compare(API, &set(first_column(&text)), &expected);
}

#[tokio::test]
async fn mcp_tools_prompts_and_resources_are_those_of_the_server() {
    let h = tests::Harness::start().await;
    // Otherwise `apply_changes` is not offered.
    h.patch("/projects/default", serde_json::json!({"assistants_apply": true})).await.expect(200);
    let ask = async |method: &str| -> Value {
        let request = h.request(reqwest::Method::POST, "/mcp?tools=all,theme");
        let request = request.header("accept", "application/json, text/event-stream");
        let message = serde_json::json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": {}});
        let request = request.header("mcp-protocol-version", "2025-11-25").json(&message);
        tests::send(request).await.expect(200)["result"].clone()
    };
    let names = |found: &Value, list: &str, name: &str| {
        let all = found[list].as_array().expect("a list").iter();
        set(all.map(|entry| entry[name].as_str().expect("a name").to_owned()))
    };
    let page = read("docs/mcp.md");
    let tools = ask("tools/list").await;
    let documented = set(first_column(&section(&page, "## Tools")));
    compare("docs/mcp.md", &documented, &names(&tools, "tools", "name"));
    // The sets of tools.
    let sets = section(&page, "## Tool sets");
    let known = domain::tools::SETS.iter().map(|of| of.name).chain(["all"]);
    compare("docs/mcp.md, sets", &set(first_column(&sets)), &set(known));
    for of in domain::tools::SETS {
        let row = sets.lines().find(|line| line.starts_with(&format!("| `{}` |", of.name))).expect("a row");
        let documented = set(in_backticks(row.split('|').nth(2).expect("a column")));
        compare(
            &format!("docs/mcp.md, {}", of.name),
            &documented,
            &set(of.tools.iter().map(|tool| tool.name)),
        );
    }
    // Each with its arguments.
    let rows = section(&page, "## Tools");
    for tool in tools["tools"].as_array().expect("a list") {
        let name = tool["name"].as_str().expect("a name");
        let row = rows.lines().find(|line| line.starts_with(&format!("| `{name}` |"))).expect("a row");
        let documented = set(in_backticks(row.split('|').nth(2).expect("a column")));
        let properties = tool["inputSchema"]["properties"].as_object().expect("properties");
        // The document or project of a call is described once for all.
        let properties = properties.keys().filter(|name| !matches!(name.as_str(), "project" | "workflow"));
        compare(&format!("docs/mcp.md, {name}"), &documented, &set(properties.map(String::as_str)));
        let required = tool["inputSchema"]["required"].as_array().map(Vec::as_slice).unwrap_or_default();
        let before = row.split('|').nth(2).and_then(|cell| cell.split("optional").next()).unwrap_or_default();
        let required = set(required.iter().filter_map(Value::as_str));
        compare(&format!("docs/mcp.md, required of {name}"), &set(in_backticks(before)), &required);
    }
    let prompts = section(&page, "## Prompts");
    for prompt in names(&ask("prompts/list").await, "prompts", "name") {
        assert!(prompts.contains(&format!("`{prompt}`")), "docs/mcp.md does not name the prompt {prompt}");
    }
    let resources = names(&ask("resources/templates/list").await, "resourceTemplates", "uriTemplate");
    compare("docs/mcp.md", &set(first_column(&section(&page, "## Resources"))), &resources);
    h.platform.stop().await;
}

#[test]
fn timers_are_those_of_the_functions() {
    let timers = catalog::ALL.iter().filter_map(|function| match function.trigger {
        Trigger::Timer { every, .. } => Some((function.name, every)),
        _ => None,
    });
    let timers: Vec<_> = timers.collect();
    let text = section(&read(OPERATIONS), "## Timers");
    compare(OPERATIONS, &set(first_column(&text)), &set(timers.iter().map(|(name, _)| *name)));
    for (name, every) in timers {
        let minutes = every.as_secs() / 60;
        let interval = if minutes == 1 { "1 minute".to_owned() } else { format!("{minutes} minutes") };
        assert!(text.contains(&format!("| `{name}` | {interval} |")), "{name} is called every {interval}");
    }
}

#[test]
fn variables_are_those_that_the_code_reads() {
    let source = code(&["shared/src", "shared/themes/src", "infra/local/src"]);
    let mut expected: BTreeSet<String> = BTreeSet::new();
    for prefix in ["LAMPLIGHTER_", "AWS_"] {
        let names = after(&source, &format!("\"{prefix}"), is_variable);
        expected.extend(names.into_iter().map(|name| format!("{prefix}{name}")));
    }
    for name in [
        "ANTHROPIC_API_KEY",
        "OPENAI_API_KEY",
        "GEMINI_API_KEY",
        "GOOGLE_AI_API_KEY",
        "XAI_API_KEY",
        "RUST_LOG",
    ] {
        assert!(source.contains(&format!("\"{name}\"")), "{name}");
        expected.insert(name.to_owned());
    }
    let documented = set(first_column(&section(&read(OPERATIONS), "## Environment variables")));
    compare(OPERATIONS, &documented, &expected);
    // Every other variable with the prefix is reported as unknown at the start.
    let of_command = after(&code(&["infra/cli/src"]), "variable(\"LAMPLIGHTER_", is_variable);
    let own = expected.iter().filter_map(|name| name.strip_prefix("LAMPLIGHTER_").map(str::to_owned));
    let known = set(shared::config::VARIABLES.iter().map(|name| (*name).to_owned()));
    compare("shared/src/config/unknown.rs, VARIABLES", &known, &own.chain(of_command).collect());
}

/// The names of the resources of a type in the template.
fn resources(kind: &str) -> BTreeSet<String> {
    let template = read("infra/template.yaml");
    let lines: Vec<&str> = template.lines().collect();
    let named = lines.windows(2).filter(|pair| pair[1].trim() == format!("Type: {kind}"));
    set(named.map(|pair| pair[0].trim().trim_end_matches(':').to_owned()))
}

#[test]
fn alarms_are_those_of_the_template() {
    let alarms = resources("AWS::CloudWatch::Alarm");
    assert_eq!(alarms.len(), 10);
    compare(OPERATIONS, &set(first_column(&section(&read(OPERATIONS), "## Alarms"))), &alarms);
}

#[test]
fn parameters_are_those_of_the_template() {
    let template = read("infra/template.yaml");
    let parameters = between(&template, "\nParameters:\n", "\nRules:\n");
    let names = parameters.lines().filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names = names.filter_map(|line| line.trim().strip_suffix(':'));
    let text = section(&read(OPERATIONS), "## Parameters");
    compare(OPERATIONS, &set(first_column(&text)), &set(names));
}

#[test]
fn metrics_are_those_that_functions_emit() {
    let source = code(&["shared/src", "shared/themes/src", "functions"]);
    let units = ["\"Milliseconds\"", "\"Count\"", "\"Bytes\"", "\"Seconds\"", "\"None\""];
    let metrics = source.match_indices("(\"").filter_map(|(at, _)| {
        let rest = &source[at + 2..];
        let (name, rest) = rest.split_once('"')?;
        let is_metric = units.iter().any(|unit| rest.trim_start_matches([',', ' ', '\n']).starts_with(unit));
        is_metric.then(|| name.to_owned())
    });
    let metrics: BTreeSet<String> = metrics.collect();
    assert!(metrics.contains("FireLagMs"), "{metrics:?}");
    let text = section(&read(OPERATIONS), "## Metrics and logs");
    compare(OPERATIONS, &set(first_column(&text)), &metrics);
    for function in column(&text, 1) {
        assert!(catalog::NAMES.contains(&function.as_str()), "{function}");
    }
}
