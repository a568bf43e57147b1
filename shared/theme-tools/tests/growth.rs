//! Each tool takes linear time on hostile files: twice the length takes at most 2.6 times as long.
//!
//! It is one test, so that other tests do not count. Set `FIGURES` and run with `--nocapture` to see the times.
#![allow(clippy::disallowed_methods, reason = "a test measures")]

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};
use theme_tools::{Call, ThemeIndex, Tree};

const MAX_GROWTH: f64 = 2.6;
/// Shorter times are decided by caches and memory that is touched for the first time.
const MAX_SHORT_GROWTH: f64 = 3.2;
const SHORT: Duration = Duration::from_millis(100);
const LEAST_TIME: Duration = Duration::from_millis(4);
const TRIES: usize = 6;
const BYTES: usize = 30_000;

struct Shape {
    path: &'static str,
    before: &'static str,
    /// A `§` is the number of its repetition.
    unit: &'static str,
    after: &'static str,
}

impl Shape {
    fn text(&self, bytes: usize) -> String {
        let mut text = self.before.to_owned();
        for number in 0..bytes / self.unit.len() {
            text += &self.unit.replace('§', &number.to_string());
        }
        text + self.after
    }
}

const SHAPES: [Shape; 26] = [
    Shape { path: "sections/a.liquid", before: "", unit: "{% if section.settings.a == 'b' %}", after: "" },
    Shape {
        path: "sections/a.liquid",
        before: "",
        unit: "{% for a in b.products %}{% render 'a' %}",
        after: "",
    },
    Shape {
        path: "sections/a.liquid",
        before: "{% if a %}",
        unit: "{% elsif settings.a %}<p>",
        after: "{% endif %}",
    },
    Shape {
        path: "sections/a.liquid",
        before: "{% case a %}",
        unit: "{% when 'x' %}<p>",
        after: "{% endcase %}",
    },
    Shape { path: "sections/a.liquid", before: "", unit: "{% endif %}{% else %}", after: "" },
    Shape {
        path: "sections/a.liquid",
        before: "",
        unit: "<img class=\"a a§\" hidden style=\"display:none\">",
        after: "",
    },
    Shape { path: "sections/a.liquid", before: "<p ", unit: "a§=\"b\" ", after: ">" },
    Shape { path: "sections/a.liquid", before: "", unit: "<a b=\"", after: "" },
    Shape {
        path: "sections/a.liquid",
        before: "",
        unit: "{{ section.settings.a§ | image_tag: loading: 'lazy' }}",
        after: "",
    },
    Shape { path: "sections/a.liquid", before: "{{ ", unit: "settings.a and ", after: " }}" },
    Shape { path: "sections/a.liquid", before: "{% if ", unit: "settings.a or ", after: " %}{% endif %}" },
    Shape {
        path: "sections/a.liquid",
        before: "",
        unit: "{% form 'product' %}<input name=\"options[a]\">",
        after: "",
    },
    Shape {
        path: "sections/a.liquid",
        before: "{% style %}",
        unit: ".a{display:none}",
        after: "{% endstyle %}",
    },
    Shape {
        path: "sections/a.liquid",
        before: "{% schema %}{\"settings\":[",
        unit: "{\"type\":\"select\",\"id\":\"a\",\"options\":[{\"value\":\"§\"}]},",
        after: "]}{% endschema %}",
    },
    Shape {
        path: "sections/a.liquid",
        before: "{% schema %}{\"blocks\":[",
        unit: "{\"type\":\"a§\",\"settings\":[{\"id\":\"a\"}]},",
        after: "]}{% endschema %}",
    },
    Shape {
        path: "sections/a.liquid",
        before: "{% schema %}",
        unit: "{\"settings\":[",
        after: "{% endschema %}",
    },
    Shape {
        path: "templates/index.json",
        before: "{\"sections\":{",
        unit: "\"s§\":{\"type\":\"a\",\"settings\":{\"a\":1}},",
        after: "},\"order\":[]}",
    },
    Shape {
        path: "templates/index.json",
        before: "{\"sections\":{\"s\":{\"type\":\"a\",\"blocks\":{",
        unit: "\"b§\":{\"type\":\"a\",\"settings\":{\"a\":1}},",
        after: "}}},\"order\":[\"s\"]}",
    },
    Shape {
        path: "templates/index.json",
        before: "{\"sections\":{},\"order\":[",
        unit: "\"s§\",",
        after: "]}",
    },
    Shape {
        path: "templates/index.json",
        before: "{\"sections\":",
        unit: "{\"a\":{\"type\":\"a\",\"blocks\":",
        after: "",
    },
    Shape {
        path: "config/settings_schema.json",
        before: "[",
        unit: "{\"name\":\"a\",\"settings\":[{\"id\":\"a\",\"type\":\"text\"}]},",
        after: "]",
    },
    Shape { path: "config/settings_data.json", before: "{\"current\":{", unit: "\"a\":1,", after: "}}" },
    Shape { path: "assets/a.css", before: "", unit: ".a§ .a, .b{display:none}", after: "" },
    Shape { path: "assets/a.css", before: "", unit: "@media x{.a{", after: "" },
    Shape { path: "assets/a.css", before: "", unit: ".a", after: "{display:none}" },
    Shape { path: "assets/a.js", before: "", unit: "a(); '.a'; variant-picker; ", after: "" },
];

fn calls() -> Vec<(&'static str, Value)> {
    let section = "sections/a.liquid";
    vec![
        ("get_dependency_graph", json!({"path": section, "depth": 5})),
        ("find_references", json!({"path": "snippets/a.liquid"})),
        ("find_references", json!({"symbol": "a"})),
        ("trace_rendering_chain", json!({"path": "snippets/a.liquid"})),
        ("get_schema_settings", json!({"path": section})),
        ("get_schema_settings", json!({"path": section, "setting": "a"})),
        ("get_schema_settings", json!({"path": "config/settings_schema.json"})),
        ("check_theme_setting", json!({"id": "a"})),
        ("diagnose_visibility", json!({"path": section})),
        ("diagnose_visibility", json!({"path": section, "selector": ".a"})),
        ("diagnose_visibility", json!({"path": "snippets/a.liquid"})),
        ("diagnose_visibility", json!({"path": "templates/index.json"})),
        ("analyze_variants", json!({})),
        ("check_performance", json!({})),
        ("search_files", json!({"query": "a"})),
        ("run_command", json!({"command": format!("cat {section}")})),
        ("run_command", json!({"command": format!("wc {section}")})),
        ("run_command", json!({"command": format!("diff {section} assets/a.css")})),
    ]
}

fn now() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or_default())
}

struct Theme {
    files: Vec<(String, String)>,
    index: ThemeIndex,
}

impl Theme {
    fn new(shape: &Shape, bytes: usize) -> Self {
        let files: Vec<(&str, String)> = vec![
            ("sections/a.liquid", "<p class=\"a\">{% render 'a' %}{{ section.settings.a }}".into()),
            ("snippets/a.liquid", "<p class=\"a\">{{ settings.a }}".into()),
            ("templates/index.json", "{\"sections\":{\"s\":{\"type\":\"a\"}},\"order\":[\"s\"]}".into()),
            ("config/settings_schema.json", "[]".into()),
            ("config/settings_data.json", "{}".into()),
            ("assets/a.css", ".a{display:none}".into()),
            ("assets/a.js", "a()".into()),
        ];
        let hostile = |path| (path == shape.path).then(|| shape.text(bytes));
        let files = files.into_iter().map(|(path, text)| (path.to_owned(), hostile(path).unwrap_or(text)));
        let files: Vec<(String, String)> = files.collect();
        let index = ThemeIndex::build(files.iter().map(|(path, text)| (path, text))).expect("a theme");
        Self { files, index }
    }

    /// Many files that use each other.
    fn many(count: usize) -> Self {
        let mut files: Vec<(String, String)> = Vec::new();
        for number in 0..count {
            let next = number + 1;
            files.push((
                format!("snippets/s{number}.liquid"),
                format!("{{% render 'a' %}}{{% render 's{next}' %}}<p class=\"a\">{{{{ settings.a }}}}"),
            ));
            files.push((
                format!("sections/t{number}.liquid"),
                "{% render 's1' %}{{ section.settings.a }}".into(),
            ));
            files.push((
                format!("templates/t{number}.json"),
                format!("{{\"sections\":{{\"s\":{{\"type\":\"t{number}\",\"settings\":{{\"a\":1}}}}}},\"order\":[\"s\"]}}"),
            ));
        }
        files.push(("snippets/a.liquid".into(), "<p class=\"a\">{% render 's1' %}".into()));
        files.push(("sections/a.liquid".into(), "{% render 'a' %}".into()));
        files.push(("templates/index.json".into(), "{}".into()));
        files.push(("config/settings_schema.json".into(), "[]".into()));
        files.push(("assets/a.css".into(), ".a{display:none}".into()));
        let index = ThemeIndex::build(files.iter().map(|(path, text)| (path, text))).expect("a theme");
        Self { files, index }
    }

    fn cost(&self, call: &Call) -> Duration {
        let texts = self.files.iter().map(|(path, text)| (path.as_str(), text.as_str()));
        let sizes = self.files.iter().map(|(path, text)| (path.as_str(), text.len() as u64));
        let tree = Tree::new(&self.index, sizes, texts);
        let began = now();
        drop(call.run(&tree));
        now() - began
    }
}

#[test]
fn twice_the_length_takes_about_twice_the_time() {
    let mut wrong = Vec::new();
    let shapes = SHAPES.iter().map(|shape| {
        let name = format!("{}: {:?} {:?}", shape.path, shape.before, shape.unit);
        (name, [1, 2, 4].map(|times| Theme::new(shape, BYTES * times)))
    });
    let many =
        std::iter::once_with(|| ("many files".to_owned(), [1, 2, 4].map(|times| Theme::many(200 * times))));
    for (shape, themes) in shapes.chain(many) {
        for (tool, arguments) in calls() {
            let name = format!("{tool} {arguments} on {shape}");
            let call = Call::parse(tool, arguments).expect("fine arguments");
            let mut times = [0, 1, 2].map(|index| themes[index].cost(&call));
            for attempt in 0.. {
                let growth = (times[2].as_secs_f64() / times[0].as_secs_f64()).sqrt();
                let most = if times[2] < SHORT { MAX_SHORT_GROWTH } else { MAX_GROWTH };
                if times[2] < LEAST_TIME || growth <= most {
                    if std::env::var_os("FIGURES").is_some() {
                        println!("{:6.1} ms {growth:.1} {name}", times[2].as_secs_f64() * 1e3);
                    }
                    break;
                }
                if attempt == TRIES {
                    wrong.push(format!("{name}: {times:?}"));
                    break;
                }
                for (theme, least) in themes.iter().zip(&mut times) {
                    *least = (*least).min(theme.cost(&call));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} grow too much:\n{}", wrong.len(), wrong.join("\n"));
}
