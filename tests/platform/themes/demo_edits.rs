//! The demo model edits themes: true small edits for a few sentences, without a key.

use std::fs;
use std::path::{Path, PathBuf};

use models::ModelsConfig;
use reqwest::Method;
use serde_json::{Value, json};
use tests::send;
use tests::stage::Stage;
use tests::themes::put;

const CHAT: &str = "/projects/default/chat";
const CHANGES: &str = "/projects/default/changes";

const HEADER_OF_ONE: &str = r#"<header class="header-wrapper">{{ shop.name }}</header>
{% schema %}
{
  "name": "Header",
  "class": "section-header",
  "settings": [
    {
      "type": "select",
      "id": "sticky_header_type",
      "options": [
        { "value": "none", "label": "None" },
        { "value": "on-scroll-up", "label": "On scroll up" },
        { "value": "always", "label": "Always" }
      ],
      "default": "on-scroll-up",
      "label": "Sticky header"
    }
  ]
}
{% endschema %}
"#;

const GROUP_OF_ONE: &str = r#"{
  "type": "header",
  "name": "Header group",
  "sections": {
    "announcement-bar": {
      "type": "announcement-bar",
      "blocks": {
        "one": {
          "type": "announcement",
          "settings": {
            "text": "<p>Welcome to our lamps</p>"
          }
        }
      },
      "block_order": ["one"]
    },
    "header": {
      "type": "header",
      "settings": {
        "sticky_header_type": "on-scroll-up"
      }
    }
  },
  "order": ["announcement-bar", "header"]
}
"#;

const ANNOUNCEMENT_OF_ONE: &str = r#"{% for block in section.blocks %}<div {{ block.shopify_attributes }}>{{ block.settings.text }}</div>{% endfor %}
{% schema %}
{
  "name": "Announcement bar",
  "blocks": [
    {
      "type": "announcement",
      "name": "Announcement",
      "settings": [{ "type": "richtext", "id": "text", "label": "Text" }]
    }
  ]
}
{% endschema %}
"#;

const SCHEMA_OF_ONE: &str = r##"[
  {
    "name": "Colours",
    "settings": [
      {
        "type": "color_scheme_group",
        "id": "color_schemes",
        "definition": [
          { "type": "color", "id": "background", "label": "Background", "default": "#FFFFFF" },
          { "type": "color", "id": "button", "label": "Button", "default": "#121212" }
        ],
        "role": { "text": "button", "background": "background", "links": "button", "icons": "button",
          "primary_button": "button", "on_primary_button": "background", "primary_button_border": "button",
          "secondary_button": "background", "on_secondary_button": "button", "secondary_button_border": "button" }
      }
    ]
  }
]
"##;

const DATA_OF_ONE: &str = r##"{
  "current": "Default",
  "presets": {
    "Default": {
      "color_schemes": {
        "scheme-1": {
          "settings": {
            "background": "#FFFFFF",
            "button": "#121212"
          }
        },
        "scheme-2": {
          "settings": {
            "background": "#F3F3F3",
            "button": "#121212"
          }
        }
      }
    }
  }
}
"##;

const HEADER_OF_OTHER: &str = r#"<div class="header">{{ shop.name }}</div>
{% schema %}
{
  "name": "Header",
  "settings": [
    {
      "type": "select",
      "id": "enable_sticky_header",
      "label": "Sticky",
      "options": [
        { "value": "always", "label": "Always" },
        { "value": "scroll-up", "label": "On scroll up" },
        { "value": "never", "label": "Never" }
      ],
      "default": "never"
    }
  ]
}
{% endschema %}
"#;

const GROUP_OF_OTHER: &str = r#"/* The admin writes this file. */
{
  "type": "header",
  "name": "Header",
  "sections": {
    "announcements_1": {
      "type": "header-announcements",
      "blocks": {
        "text_1": {
          "type": "_announcement",
          "settings": {
            "text": "Welcome"
          }
        }
      },
      "block_order": ["text_1"]
    },
    "header_section": {
      "type": "header",
      "settings": {}
    }
  },
  "order": ["announcements_1", "header_section"]
}
"#;

const ANNOUNCEMENTS_OF_OTHER: &str = "{% content_for 'blocks' %}\n{% schema %}\n{ \"name\": \"Announcements\", \"blocks\": [{ \"type\": \"_announcement\" }] }\n{% endschema %}\n";

const ANNOUNCEMENT_OF_OTHER: &str = "<p>{{ block.settings.text }}</p>\n{% schema %}\n{ \"name\": \"Announcement\", \"settings\": [{ \"type\": \"inline_richtext\", \"id\": \"text\", \"label\": \"Text\" }] }\n{% endschema %}\n";

const SCHEMA_OF_OTHER: &str = r##"[
  {
    "name": "Buttons",
    "settings": [
      { "type": "color", "id": "palette_primary_button_background", "label": "Background", "default": "#333333" },
      { "type": "color", "id": "palette_primary_button_text", "label": "Text", "default": "#ffffff" }
    ]
  }
]
"##;

const DATA_OF_OTHER: &str = "/* The admin writes this file. */\n{\n  \"current\": {\n    \"palette_primary_button_text\": \"#ffffff\"\n  }\n}\n";

const LAYOUT: &str = "<!doctype html>\n<html lang=\"en\">\n  <head>\n    <title>Lamps</title>\n    {{ content_for_header }}\n  </head>\n  <body>\n    {% sections 'header-group' %}\n    {{ content_for_layout }}\n    <p>Made with care</p>\n  </body>\n</html>\n";

/// A theme in the manner of Dawn, one in the manner of Horizon, and one whose header and buttons have no settings.
fn theme(name: &str) -> Vec<(&'static str, &'static str)> {
    let mut files = vec![("layout/theme.liquid", LAYOUT)];
    files.extend(match name {
        "schemes" => vec![
            ("sections/header.liquid", HEADER_OF_ONE),
            ("sections/announcement-bar.liquid", ANNOUNCEMENT_OF_ONE),
            ("sections/header-group.json", GROUP_OF_ONE),
            ("config/settings_schema.json", SCHEMA_OF_ONE),
            ("config/settings_data.json", DATA_OF_ONE),
        ],
        "palette" => vec![
            ("sections/header.liquid", HEADER_OF_OTHER),
            ("sections/header-announcements.liquid", ANNOUNCEMENTS_OF_OTHER),
            ("blocks/_announcement.liquid", ANNOUNCEMENT_OF_OTHER),
            ("sections/header-group.json", GROUP_OF_OTHER),
            ("config/settings_schema.json", SCHEMA_OF_OTHER),
            ("config/settings_data.json", DATA_OF_OTHER),
        ],
        _ => vec![
            ("sections/header.liquid", "<header class=\"site-header\">{{ shop.name }}</header>\n"),
            ("assets/theme.css", ":root {\n  --button-background: #121212;\n}\n"),
            ("assets/widget.css", ".widget {\n  color: red;\n}\n"),
        ],
    });
    files
}

/// A platform with the demo model and a theme.
async fn stage(theme: &[(impl AsRef<str>, impl AsRef<str>)]) -> Stage {
    let stage = Stage::with(ModelsConfig::default()).await;
    for (path, text) in theme {
        put(&stage.h, path.as_ref(), text.as_ref()).await.expect(201);
    }
    stage
}

/// What the model says to a message, and the diff of what it has changed.
async fn say(stage: &Stage, message: &str) -> (String, Option<String>) {
    let body = json!({"message": message, "mode": "code"});
    let request = stage.h.request(Method::POST, CHAT).header("accept", "application/json").json(&body);
    let run = send(request).await.expect(200);
    assert_eq!(run["state"], "completed", "{message}: {run:#}");
    let chat = stage.h.get(&format!("/chats/{}", run["chat_id"].as_str().unwrap())).await.expect(200);
    let said = chat["messages"].as_array().unwrap().last().unwrap()["content"].as_str().unwrap().to_owned();
    let sets = stage.h.get(CHANGES).await.expect(200);
    let of_turn = |set: &&Value| set["change_set_id"] == run["theme"]["change_set_id"];
    let Some(set) = sets["data"].as_array().unwrap().iter().find(of_turn) else { return (said, None) };
    let detail =
        stage.h.get(&format!("{CHANGES}/{}", set["change_set_id"].as_str().unwrap())).await.expect(200);
    assert_eq!(detail["problems"], json!([]), "{message}: {detail:#}");
    (said, detail["diff"].as_str().filter(|diff| !diff.is_empty()).map(str::to_owned))
}

/// The lines that a diff takes away and adds.
fn lines(diff: &str) -> Vec<&str> {
    let is_header = |line: &&str| line.starts_with("+++") || line.starts_with("---");
    diff.lines().filter(|line| line.starts_with(['+', '-']) && !is_header(line)).collect()
}

#[tokio::test]
async fn each_sentence_changes_what_it_says_and_nothing_else() {
    for (name, wanted) in [
        (
            "schemes",
            vec![
                (
                    "make the header sticky",
                    "sections/header-group.json",
                    vec![
                        "-        \"sticky_header_type\": \"on-scroll-up\"",
                        "+        \"sticky_header_type\": \"always\"",
                    ],
                ),
                (
                    "announcement bar: free shipping over 50",
                    "sections/header-group.json",
                    vec![
                        "-            \"text\": \"<p>Welcome to our lamps</p>\"",
                        "+            \"text\": \"<p>free shipping over 50</p>\"",
                    ],
                ),
                (
                    "change the button colour to #0a7",
                    "config/settings_data.json",
                    vec!["-            \"button\": \"#121212\"", "+            \"button\": \"#00aa77\""],
                ),
                (
                    "rename \"Made with care\" to \"Made with love\"",
                    "layout/theme.liquid",
                    vec!["-    <p>Made with care</p>", "+    <p>Made with love</p>"],
                ),
            ],
        ),
        (
            "palette",
            vec![
                (
                    "Please keep the header at the top",
                    "sections/header-group.json",
                    vec![
                        "-      \"settings\": {}",
                        "+      \"settings\": { \"enable_sticky_header\": \"always\" }",
                    ],
                ),
                (
                    "change the announcement to Sale until Friday!",
                    "sections/header-group.json",
                    vec![
                        "-            \"text\": \"Welcome\"",
                        "+            \"text\": \"Sale until Friday!\"",
                    ],
                ),
                (
                    "make the buttons teal",
                    "config/settings_data.json",
                    vec!["+    \"palette_primary_button_background\": \"#008080\","],
                ),
            ],
        ),
        (
            "plain",
            vec![
                (
                    "make the header sticky",
                    "assets/theme.css",
                    vec![
                        "+",
                        "+.shopify-section:has(.site-header) {",
                        "+  position: sticky;",
                        "+  top: 0;",
                        "+  z-index: 10;",
                        "+}",
                    ],
                ),
                (
                    "change the button color to red",
                    "assets/theme.css",
                    vec!["-  --button-background: #121212;", "+  --button-background: #ff0000;"],
                ),
            ],
        ),
    ] {
        let stage = stage(&theme(name)).await;
        for (message, path, changed) in wanted {
            let (said, diff) = say(&stage, message).await;
            let diff = diff.unwrap_or_else(|| panic!("{name}: {message}: {said}"));
            assert_eq!(lines(&diff), changed, "{name}: {message}: {said}");
            assert_eq!(diff.matches("diff --git").count(), 1, "{diff}");
            assert!(diff.contains(path) && said.contains(path), "{said}\n{diff}");
            assert!(said.ends_with("The edit waits in a change set until you apply it."), "{said}");
        }
    }
}

#[tokio::test]
async fn what_it_can_not_do_or_need_not_do_changes_nothing() {
    let stage = stage(&theme("schemes")).await;
    for (message, part) in [
        ("add a countdown to the product page", "I am Lamplighter's demo model"),
        ("rename \"header\" to \"top\"", "lines, and I change only what stands in one"),
        ("rename \"No such text\" to \"Other\"", "stands nowhere"),
        ("change the button colour to #121212", "have this colour already"),
        ("change the announcement to Welcome to our lamps", "says this already"),
    ] {
        let (said, diff) = say(&stage, message).await;
        assert!(said.starts_with("NO CHANGE: ") && said.contains(part), "{message}: {said}");
        assert_eq!(diff, None, "{message}");
    }
    let body = json!({"message": "Where is the announcement?", "mode": "ask"});
    let request = stage.h.request(Method::POST, CHAT).header("accept", "application/json").json(&body);
    let run = send(request).await.expect(200);
    let chat = stage.h.get(&format!("/chats/{}", run["chat_id"].as_str().unwrap())).await.expect(200);
    let said = chat["messages"].as_array().unwrap().last().unwrap()["content"].as_str().unwrap();
    assert!(said.contains("- `sections/announcement-bar.liquid`: the request is about it"), "{said}");
}

/// The text files below a folder, as a theme has them.
fn files_of(root: &Path) -> Vec<(String, String)> {
    let mut files = Vec::new();
    for folder in ["assets", "blocks", "config", "layout", "locales", "sections", "snippets", "templates"] {
        let Ok(entries) = fs::read_dir(root.join(folder)) else { continue };
        for path in entries.map(|entry| entry.unwrap().path()).filter(|path| path.is_file()) {
            if let Ok(text) = fs::read_to_string(&path) {
                let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
                files.push((name, text));
            }
        }
    }
    files
}

/// Says these sentences to themes of others, and prints the answers. `THEMES` has their folders, separated by `:`.
#[tokio::test]
#[ignore = "needs themes that are not in the repository"]
async fn themes_of_others() {
    let folders = std::env::var("THEMES").unwrap();
    for root in folders.split(':').map(PathBuf::from) {
        let stage = stage(&files_of(&root)).await;
        for message in [
            "make the header sticky",
            "announcement bar: free shipping over 50",
            "change the button colour to #0a7",
            "make the buttons red",
            "rename \"Welcome to our store\" to \"Hello\"",
            "rename \"Add to cart\" to \"Buy now\"",
            "add a countdown to the product page",
        ] {
            let (said, diff) = say(&stage, message).await;
            let diff = diff.unwrap_or_default();
            println!("{}: {message}\n  {said}\n{}", root.display(), lines(&diff).join("\n"));
            assert_eq!(diff.is_empty(), said.starts_with("NO CHANGE: "), "{message}: {said}");
        }
    }
}
