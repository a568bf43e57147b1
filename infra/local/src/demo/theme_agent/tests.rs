use serde_json::Value;

use super::super::ask::Scene;
use super::*;

const TOOLS: [&str; 8] = [
    "grep_content",
    "read_lines",
    "list_files",
    "get_schema_settings",
    "search_replace",
    "edit_lines",
    "undo_edit",
    "run_specialist",
];

fn ask() -> Ask {
    Ask {
        scene: Scene::ThemeAgent,
        tools: TOOLS.iter().map(|tool| (*tool).to_owned()).collect(),
        said: Vec::new(),
        view: String::new(),
        now: None,
        spoken: 0,
        results: Vec::new(),
        turn: None,
    }
}

/// A turn with the answers of `tool`, until the model says something without a call: its calls and its words.
fn told(
    said: &str,
    mut tool: impl FnMut(&str, &Value) -> Result<String, String>,
) -> (Vec<(String, Value)>, String) {
    let mut turn = Turn { said: said.to_owned(), mode: "code".to_owned(), ..Turn::default() };
    loop {
        let reply = answer(&ask(), &turn);
        let Some((name, input)) = reply.call else {
            let calls = turn.calls.into_iter().map(|call| (call.name, call.input)).collect();
            return (calls, reply.text);
        };
        assert!(turn.calls.len() < 4 * MAX_CALLS, "{said}: {:?}", turn.calls);
        let answered = tool(&name, &input);
        let is_error = answered.is_err();
        let result = answered.unwrap_or_else(|why| why);
        turn.calls.push(Call { name, input, result, is_error });
    }
}

fn window(path: &str, text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let numbered: String = (1..).zip(&lines).map(|(number, line)| format!("{number}\t{line}\n")).collect();
    format!("{path} version 0123456789ab lines 1–{0} of {0}\n{numbered}", lines.len())
}

#[test]
fn the_first_call_of_each_sentence() {
    for (said, tool) in [
        ("make the header sticky", Some("grep_content")),
        ("announcement bar: free shipping over 50", Some("grep_content")),
        ("change the button colour to #0a7", Some("read_lines")),
        ("rename Welcome to Hello", Some("grep_content")),
        ("add a countdown", None),
        ("make the header sticky on phones only", None),
    ] {
        let turn = Turn { said: said.to_owned(), mode: "code".to_owned(), ..Turn::default() };
        let reply = answer(&ask(), &turn);
        assert_eq!(reply.call.map(|(name, _)| name).as_deref(), tool, "{said}");
        assert_eq!(reply.text.starts_with(NO_CHANGE), tool.is_none(), "{said}: {}", reply.text);
    }
}

const PATH: &str = "config/settings_data.json";
const COLOURS: &str = "{\n  \"current\": {\n    \"color_schemes\": {\n      \"scheme-1\": {\n        \"settings\": {\n          \"button\": \"#121212\"\n        }\n      }\n    }\n  }\n}\n";

/// A theme of one file, whose edits are answered with this.
fn colours(edited: Result<&str, &str>) -> (Vec<(String, Value)>, String) {
    told("make the buttons red", |name, _| match name {
        "read_lines" => Ok(window(PATH, COLOURS)),
        "undo_edit" => Ok(format!("edit 2 of chs_1\n{PATH} taken back")),
        _ => edited.map(str::to_owned).map_err(str::to_owned),
    })
}

#[test]
fn an_edit_is_made_and_told() {
    let (calls, said) =
        colours(Ok("edit 1 of chs_1\nconfig/settings_data.json edited, version 1: line 6 of 10"));
    let replacement =
        json!({"old": "          \"button\": \"#121212\"", "new": "          \"button\": \"#ff0000\""});
    let input = json!({"path": PATH, "version": "0123456789ab", "replacements": [replacement]});
    assert_eq!(calls[1..], [("search_replace".to_owned(), input)]);
    assert_eq!(
        said,
        "In `config/settings_data.json`, `button` of the colour scheme `scheme-1` is #ff0000 instead of #121212. The edit waits in a \
         change set until you apply it."
    );
}

#[test]
fn an_edit_that_makes_something_wrong_is_taken_back() {
    let (calls, said) = colours(Ok(
        "edit 7 of chs_1\nconfig/settings_data.json edited\nThis edit has made wrong:\nconfig/settings_data.json:6 X: bad.\nmore",
    ));
    assert_eq!(calls.last().unwrap(), &("undo_edit".to_owned(), json!({"edit": 7})));
    assert!(
        said.starts_with(NO_CHANGE) && said.ends_with("took it back: config/settings_data.json:6 X: bad."),
        "{said}"
    );
}

#[test]
fn what_is_refused_or_there_already_is_said() {
    let (calls, said) = colours(Err("it changed since you read it\nmore"));
    assert_eq!(
        (calls.len(), said.as_str()),
        (2, "NO CHANGE: the edit of `config/settings_data.json` was refused: it changed since you read it")
    );
    let (_, said) = colours(Ok("nothing to do: the files are already like this"));
    assert_eq!(said, "NO CHANGE: `config/settings_data.json` is already like this.");
    let red = COLOURS.replace("#121212", "#FF0000");
    let (calls, said) = told("make the buttons red", |_, _| Ok(window(PATH, &red)));
    assert_eq!(calls.len(), 1);
    assert!(said.starts_with("NO CHANGE: the buttons have this colour already: `button`"), "{said}");
    // Nothing can be read or found.
    for said in ["make the header sticky", "announcement: x", "make the buttons red", "rename a b to c"] {
        let (calls, told) = told(said, |_, _| Err("no".to_owned()));
        assert!(told.starts_with(NO_CHANGE) && calls.len() < MAX_CALLS, "{said}: {told}");
    }
}

#[test]
fn a_long_file_is_read_in_parts_and_not_for_ever() {
    let (calls, said) = told("make the buttons red", |name, input| {
        match (name, &input["reads"][0]["start"]) {
            ("read_lines", start) if *start == 1 => Ok(format!(
                "{PATH} version 0123456789ab lines 1–2 of 5\n1\t{{\n2\t  \"current\": {{\n(the next line is 3)"
            )),
            ("read_lines", _) => Ok(format!(
                "{PATH} version 0123456789ab lines 3–5 of 5\n3\t    \"color_button\": \"#000\"\n4\t  }}\n5\t}}\n"
            )),
            _ => Ok("edit 1 of chs_1".to_owned()),
        }
    });
    assert_eq!(calls[2].1["replacements"][0]["new"], "    \"color_button\": \"#ff0000\"", "{said}");
    let mut line = 1;
    let (calls, said) = told("make the buttons red", |_, _| {
        line += 1;
        Ok(format!("{PATH} version 0123456789ab lines 1–1 of 99\n1\t{{\n(the next line is {line})"))
    });
    assert!(calls.len() < MAX_CALLS && said.starts_with(NO_CHANGE), "{said}");
}

#[test]
fn a_text_that_stands_once_is_replaced() {
    let replaced = |path: &str, line: &str, said: &str| {
        let (calls, said) = told(said, |name, _| match name {
            "grep_content" => Ok(format!("{path}:1: {line}\n")),
            "read_lines" => Ok(window(path, line)),
            _ => Ok("edit 1 of chs_1".to_owned()),
        });
        calls
            .into_iter()
            .find_map(|(_, input)| input["edits"][0]["content"].as_str().map(str::to_owned))
            .ok_or(said)
    };
    let locale = "  \"add\": \"Add to cart\",";
    let said = "rename \"Add to cart\" to \"Buy now\"";
    assert_eq!(replaced("locales/en.default.json", locale, said).unwrap(), "  \"add\": \"Buy now\",");
    assert_eq!(replaced("snippets/a.liquid", "<b>Add to cart</b>", said).unwrap(), "<b>Buy now</b>");
    let quotes = "rename \"Add to cart\" to 'Say \"yes\" now'";
    assert_eq!(replaced("locales/en.json", locale, quotes).unwrap(), "  \"add\": \"Say \\\"yes\\\" now\",");
    for (path, line, said) in [
        ("snippets/a.liquid", "{{ 'Add to cart' | t }}", "rename \"Add to cart\" to \"Don't\""),
        ("snippets/a.liquid", "<b>Add to carts</b>", said),
        ("locales/en.json", "  \"Add to cart\": \"x\",", said),
        ("snippets/a.liquid", "Add to cart, Add to cart", said),
        ("snippets/a.liquid", "<b>Add to cart</b>", "rename \"Add to cart\" to \"<i>\""),
    ] {
        assert!(replaced(path, line, said).unwrap_err().starts_with(NO_CHANGE), "{line} {said}");
    }
    // The editor's own texts stay.
    let (calls, _) = told(said, |name, _| match name {
        "grep_content" => {
            Ok(format!("locales/en.default.json:1: {locale}\nlocales/en.default.schema.json:1: {locale}\n"))
        }
        "read_lines" => Ok(window("locales/en.default.json", locale)),
        _ => Ok("edit 1 of chs_1".to_owned()),
    });
    assert_eq!(calls.last().unwrap().1["path"], "locales/en.default.json");
    let (_, several) = told(said, |_, _| Ok("a.liquid:1: Add to cart\nb.json:12: Add to cart\n".to_owned()));
    assert!(several.contains("2 lines") && several.contains("`b.json` line 12"), "{several}");
}

#[test]
fn questions_and_plans_change_nothing() {
    let turn = Turn {
        said: "make the header sticky".to_owned(),
        mode: "ask".to_owned(),
        files: vec![
            ("a.liquid".to_owned(), "the request is about it".to_owned()),
            ("b.css".to_owned(), String::new()),
        ],
        calls: Vec::new(),
    };
    let reply = answer(&ask(), &turn);
    assert!(
        reply.call.is_none() && reply.text.ends_with("- `a.liquid`: the request is about it\n- `b.css`"),
        "{}",
        reply.text
    );
    let plan = answer(&ask(), &Turn { mode: "plan".to_owned(), ..turn.clone() });
    assert!(plan.call.is_none() && plan.text.contains("demo model"), "{}", plan.text);
    // Without tools, it says so.
    let without = Ask { tools: Default::default(), ..ask() };
    let reply = answer(&without, &Turn { mode: "code".to_owned(), ..turn });
    assert!(reply.call.is_none() && reply.text.starts_with(NO_CHANGE), "{}", reply.text);
}

#[test]
fn a_sentence_with_several_wishes_has_parts() {
    for (said, count) in [
        ("Make the header sticky and change the button colour to #0a7", 2),
        ("make the header sticky; change the button colour to #0a7; rename \"Sold out\" to \"Gone\"", 3),
        ("Make the header sticky. Change the button colour to green", 2),
        ("Make the header sticky", 1),
        ("Change the announcement to Free shipping and returns", 1),
        ("Make the header sticky and delete all files", 1),
        ("and and and", 1),
        ("", 1),
    ] {
        assert_eq!(share::parts(said).len(), count, "{said}: {:?}", share::parts(said));
    }
}

#[test]
fn each_part_is_given_to_a_specialist_of_its_file() {
    let said = "Rename \"Sold out\" to \"Gone\" and rename \"Hello\" to \"Welcome\"";
    let files = [
        ("locales/en.default.json", "{\n  \"a\": \"Sold out\"\n}"),
        ("snippets/greeting.liquid", "<p>Hello</p>"),
    ];
    let answered = |name: &str, input: &Value| match name {
        "grep_content" => {
            let text = input["pattern"].as_str().unwrap();
            let hit = |(path, content): &(&str, &str)| {
                let at = content.lines().position(|line| line.contains(text))?;
                Some(format!("{path}:{}: {}", at + 1, content.lines().nth(at)?))
            };
            Ok(files.iter().find_map(hit).unwrap_or_default())
        }
        "read_lines" => {
            let path = input["reads"][0]["path"].as_str().unwrap();
            let file = files.iter().find(|(other, _)| *other == path);
            file.map(|(path, content)| window(path, content)).ok_or_else(|| "no such file".to_owned())
        }
        SPECIALIST => {
            let path = input["files"][0].as_str().unwrap();
            Ok(format!(
                "It has changed {path}.\nReport of the specialist, which is data:\n`{path}` says it. The edit waits in a change set until you apply it."
            ))
        }
        other => panic!("{other} {input}"),
    };
    let (calls, words) = told(said, answered);
    let given: Vec<(&str, &str)> = calls
        .iter()
        .filter(|(name, _)| name == SPECIALIST)
        .map(|(_, input)| (input["kind"].as_str().unwrap(), input["files"][0].as_str().unwrap()))
        .collect();
    assert_eq!(given, [("json", files[0].0), ("liquid", files[1].0)], "{calls:?} {words}");
    assert!(
        words.starts_with("- `locales/en.default.json` says it.\n- `snippets/greeting.liquid` says it."),
        "{words}"
    );
}
