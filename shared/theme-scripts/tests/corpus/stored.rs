//! Faults of schemas, JSON templates, settings, locales and paths.

use super::Grade::{Broken, Refused, Silent};
use super::{Fault, fault};

const HERO: &str = "sections/hero.liquid";
const INDEX: &str = "templates/index.json";
const GROUP: &str = "sections/header-group.json";
const THEME: &str = "config/settings_schema.json";
const DATA: &str = "config/settings_data.json";
const LOCALE: &str = "locales/en.default.json";

pub const SCHEMA: &[Fault] = &[
    fault("schema", Refused, HERO, "\"tag\": \"section\",", "\"tag\": \"section\""),
    fault("schema", Refused, HERO, "\"max_blocks\": 6,", "\"max_blocks\": 6,,"),
    fault("schema", Refused, HERO, "\"max_blocks\": 6,", "'max_blocks': 6,"),
    fault("schema", Refused, HERO, "\"max_blocks\": 6,", "max_blocks: 6,"),
    fault("schema", Silent, HERO, "\"max_blocks\": 6,", "// blocks\n  \"max_blocks\": 6,"),
    fault("schema", Silent, HERO, "      \"default\": true\n", "      \"default\": true,\n"),
    fault("schema", Refused, HERO, "      \"default\": true\n", "      \"default\": True\n"),
    fault("schema", Refused, HERO, "\"label\": \"Size\"", "\"label\": \"Size"),
    fault("schema", Refused, HERO, "\"label\": \"Size\"", "\"label\" \"Size\""),
    fault("schema", Refused, HERO, "\"name\": \"t:sections.hero.name\"", "\"name\": \"{{ 'x' | t }}\"\"x\""),
    fault("schema", Refused, HERO, "    { \"type\": \"@app\" },", "    { \"type\": \"@app\" "),
    fault("schema", Refused, HERO, "      \"default\": 25", "      \"default\": 27"),
    fault("schema", Refused, HERO, "      \"default\": 25", "      \"default\": 60"),
    fault("schema", Refused, HERO, "      \"default\": 25", "      \"default\": \"25\""),
    fault("schema", Refused, HERO, "      \"unit\": \"pt\",\n      \"default\": 25", "      \"unit\": \"pt\"").at(HERO, "\"type\": \"range\""),
    fault("schema", Refused, HERO, "\"step\": 5,", "\"step\": 0.1,"),
    fault("schema", Refused, HERO, "\"step\": 5,", "\"step\": 0,"),
    fault("schema", Refused, HERO, "\"max\": 50,", "\"max\": \"50\","),
    fault("schema", Refused, HERO, "      \"max\": 50,\n", "").at(HERO, "\"type\": \"range\""),
    fault("schema", Refused, HERO, "\"min\": 0,", "\"min\": 100,").at(HERO, "\"max\": 50"),
    fault("schema", Refused, HERO, "\"unit\": \"pt\"", "\"unit\": \"points\""),
    fault("schema", Refused, HERO, "      \"options\": [\n        { \"value\": \"small\", \"label\": \"Small\" },\n        { \"value\": \"large\", \"label\": \"Large\" }\n      ],\n", "").at(HERO, "\"type\": \"select\""),
    fault("schema", Refused, HERO, "[\n        { \"value\": \"small\", \"label\": \"Small\" },\n        { \"value\": \"large\", \"label\": \"Large\" }\n      ]", "[]"),
    fault("schema", Refused, HERO, "{ \"value\": \"small\", \"label\": \"Small\" }", "{ \"label\": \"Small\" }"),
    fault("schema", Refused, HERO, "{ \"value\": \"large\", \"label\": \"Large\" }", "{ \"value\": \"large\" }"),
    fault("schema", Refused, HERO, "{ \"value\": \"large\", \"label\": \"Large\" }", "{ \"value\": \"small\", \"label\": \"Large\" }"),
    fault("schema", Refused, HERO, "\"default\": \"small\"", "\"default\": \"medium\""),
    fault("schema", Refused, HERO, "      \"default\": true", "      \"default\": \"true\""),
    fault("schema", Refused, HERO, "      \"default\": true", "      \"default\": 1"),
    fault("schema", Refused, HERO, "\"default\": \"<p>Light for every room</p>\"", "\"default\": \"Light for every room\""),
    fault("schema", Refused, HERO, "\"default\": \"<p>Light for every room</p>\"", "\"default\": \"<div>Light</div>\""),
    fault("schema", Refused, HERO, "\"default\": \"#ffcc00\"", "\"default\": \"#ffcc0\""),
    fault("schema", Refused, HERO, "\"default\": \"#ffcc00\"", "\"default\": 123"),
    fault("schema", Refused, HERO, "\"visible_if\": \"{{ section.settings.show_rating }}\"", "\"visible_if\": \"section.settings.show_rating\""),
    fault("schema", Refused, HERO, "\"visible_if\": \"{{ section.settings.show_rating }}\"", "\"visible_if\": \"{{ section.settings.show_rating = true }}\""),
    fault("schema", Refused, HERO, "\"type\": \"checkbox\"", "\"type\": \"boolean\""),
    fault("schema", Refused, HERO, "      \"type\": \"checkbox\",\n", "").at(HERO, "\"id\": \"show_rating\""),
    fault("schema", Refused, HERO, "      \"id\": \"tint\",\n", "").at(HERO, "\"type\": \"color\""),
    fault("schema", Refused, HERO, "\"id\": \"tint\"", "\"id\": \"text\""),
    fault("schema", Refused, HERO, "      \"label\": \"Tint\",\n", "").at(HERO, "\"type\": \"color\""),
    fault("schema", Refused, HERO, "      \"type\": \"header\",\n      \"content\"", "      \"type\": \"header\",\n      \"label\"").at(HERO, "\"type\": \"header\""),
    fault("schema", Refused, HERO, "\"label\": \"t:sections.hero.image\"", "\"label\": \"t:sections.hero.image\",\n      \"default\": \"x.png\""),
    fault("schema", Refused, HERO, "\"tag\": \"section\"", "\"tag\": \"main\""),
    fault("schema", Refused, HERO, "\"name\": \"t:sections.hero.name\"", "\"name\": \"A name that is much longer than allowed\""),
    fault("schema", Refused, HERO, "\"name\": \"t:sections.hero.name\",\n", "").at(HERO, "{% schema %}"),
    fault("schema", Refused, HERO, "\"max_blocks\": 6", "\"max_blocks\": 60"),
    fault("schema", Refused, HERO, "\"max_blocks\": 6", "\"limit\": 5"),
    fault("schema", Refused, HERO, "\"limit\": 2", "\"limit\": \"two\""),
    fault("schema", Refused, HERO, "      \"type\": \"button\",\n      \"name\": \"Button\",", "      \"type\": \"heading\",\n      \"name\": \"Button\","),
    fault("schema", Refused, HERO, "      \"name\": \"Button\",\n", "").at(HERO, "\"type\": \"button\",\n      \"settings\""),
    fault("schema", Refused, HERO, "      \"type\": \"button\",\n", "").at(HERO, "\"name\": \"Button\""),
    fault("schema", Refused, HERO, "    { \"type\": \"@app\" },", "    { \"type\": \"@apps\" },"),
    fault("schema", Refused, HERO, "    { \"type\": \"@app\" },", "    { \"type\": \"@theme\" },"),
    fault("schema", Refused, HERO, "{ \"type\": \"url\", \"id\": \"link\", \"label\": \"Link\" }", "{ \"type\": \"url\", \"id\": \"label\", \"label\": \"Link\" }"),
    fault("schema", Refused, HERO, "{ \"type\": \"button\" }", "{ \"type\": \"buttons\" }"),
    fault("schema", Refused, HERO, "{ \"type\": \"button\" }", "{ \"type\": \"heading\" },\n        { \"type\": \"heading\" }").at(HERO, "{ \"type\": \"heading\" }\n"),
    fault("schema", Silent, HERO, "\"settings\": { \"size\": \"large\" }", "\"settings\": { \"sizes\": \"large\" }"),
    fault("schema", Silent, HERO, "\"settings\": { \"title\": \"Welcome\" }", "\"settings\": { \"heading\": \"Welcome\" }"),
    fault("schema", Refused, HERO, "      \"name\": \"Hero\",\n", "").at(HERO, "\"settings\": { \"size\""),
    fault("schema", Refused, HERO, "\"disabled_on\": {", "\"enabled_on\": { \"templates\": [\"index\"] },\n  \"disabled_on\": {").at(HERO, "\"disabled_on\""),
    fault("schema", Refused, HERO, "[\"header\", \"footer\"]", "[\"head\"]"),
    fault("schema", Refused, "sections/main-product.liquid", "\"templates\": [\"product\"]", "\"templates\": [\"products\"]"),
    fault("schema", Refused, HERO, "{% endschema %}", "{% endschema %}\n{% schema %}\n{ \"name\": \"Two\" }\n{% endschema %}").at(HERO, "{% schema %}\n{ \"name\": \"Two\""),
    fault("schema", Refused, "snippets/price.liquid", "<div class=\"price\">", "{% schema %}{ \"name\": \"Price\" }{% endschema %}\n<div class=\"price\">"),
    fault("schema", Refused, "layout/theme.liquid", "<!doctype html>", "{% schema %}{ \"name\": \"Layout\" }{% endschema %}\n<!doctype html>"),
    fault("schema", Silent, HERO, "    {\n      \"type\": \"select\",\n      \"id\": \"size\"", "    {\n      \"type\": \"select\",\n      \"id\": \"height\"").at(HERO, "hero--{{ section.settings.size"),
    fault("schema", Silent, HERO, "\"presets\": [", "\"preset\": ["),
    fault("schema", Refused, HERO, "\"settings\": [\n    {\n      \"type\": \"header\"", "\"settings\": {}, \"x\": [\n    {\n      \"type\": \"header\""),
    fault("schema", Refused, "sections/header.liquid", "\"default\": \"main-menu\"", "\"default\": \"top-menu\""),
    fault("schema", Refused, "blocks/column.liquid", "\"default\": 2", "\"default\": \"2\""),
    fault("schema", Refused, "blocks/column.liquid", "\"blocks\": [{ \"type\": \"_notice\" }],", "\"blocks\": [{ \"type\": \"_notice\", \"name\": \"Notice\" }],"),
    fault("schema", Refused, "blocks/column.liquid", "\"presets\": [{ \"name\": \"Column\", \"blocks\": [{ \"type\": \"_notice\" }] }]", "\"presets\": [{ \"name\": \"Column\", \"blocks\": [{ \"type\": \"column\" }] }]"),
    fault("schema", Refused, "sections/header.liquid", "\"block_order\": [\"notice\"]", "\"block_order\": [\"notices\"]"),
    fault("schema", Silent, HERO, "\"class\": \"hero-section\",", "\"class\": \"hero-section\",\n  \"class\": \"hero\",").at(HERO, "\"class\": \"hero\","),
    fault("schema", Silent, "sections/header.liquid", "\"settings\": { \"message\": \"Hello\" }", "\"settings\": { \"text\": \"Hello\" }"),
];

/// Newer attributes of schemas.
pub const ATTRIBUTES: &[Fault] = &[
    fault(
        "schema",
        Refused,
        "blocks/column.liquid",
        "\"name\": \"Column\",\n",
        "\"name\": \"Column\",\n  \"tag\": \"a b\",\n",
    )
    .at("blocks/column.liquid", "\"tag\""),
    fault(
        "schema",
        Silent,
        "blocks/column.liquid",
        "\"presets\": [{ \"name\": \"Column\",",
        "\"presets\": [{ \"name\": \"Column\", \"group\": \"Layout\",",
    ),
    fault(
        "settings",
        Refused,
        THEME,
        "\"theme_author\": \"The authors\"",
        "\"theme_author\": \"The authors of the whole Lantern theme\"",
    ),
    fault(
        "locales",
        Silent,
        LOCALE,
        "\"one\": \"{{ count }} point\",\n        \"other\": \"{{ count }} points\"",
        "\"one\": \"{{ count }} point\"",
    )
    .at(LOCALE, "\"rating\""),
];

pub const TEMPLATES: &[Fault] = &[
    fault("templates", Refused, INDEX, "\"order\": [\"hero\", \"second\"]", "\"order\": [\"hero\", \"third\", \"second\"]"),
    fault("templates", Silent, INDEX, "\"order\": [\"hero\", \"second\"]", "\"order\": [\"hero\"]").at(INDEX, "\"second\": {"),
    fault("templates", Refused, INDEX, "\"order\": [\"hero\", \"second\"]", "\"order\": [\"hero\", \"hero\", \"second\"]"),
    fault("templates", Refused, INDEX, "  },\n  \"order\": [\"hero\", \"second\"]\n", "  }\n").at(INDEX, "{\n  \"sections\""),
    fault("templates", Refused, INDEX, "\"block_order\": [\"title\", \"action\"]", "\"block_order\": [\"title\", \"link\", \"action\"]"),
    fault("templates", Silent, INDEX, "\"block_order\": [\"title\", \"action\"]", "\"block_order\": [\"title\"]").at(INDEX, "\"action\": {"),
    fault("templates", Refused, INDEX, "\"type\": \"heading\"", "\"type\": \"headline\""),
    fault("templates", Refused, INDEX, "          \"type\": \"button\",\n", "").at(INDEX, "\"action\": {"),
    fault("templates", Refused, INDEX, "      \"type\": \"hero\",\n      \"blocks\"", "      \"blocks\"").at(INDEX, "\"hero\": {"),
    fault("templates", Refused, INDEX, "        \"action\": {", "        \"two\": { \"type\": \"heading\" },\n        \"three\": { \"type\": \"heading\" },\n        \"action\": {").at(INDEX, "\"three\""),
    fault("templates", Silent, INDEX, "\"rating\": 40", "\"rating\": \"many\""),
    fault("templates", Refused, INDEX, "\"rating\": 40", "\"rating\": 400"),
    // Whether Shopify refuses a stored number between two steps, and a stored rich text without a paragraph, is not known.
    fault("templates", Silent, INDEX, "\"rating\": 40", "\"rating\": 42"),
    fault("templates", Silent, INDEX, "\"size\": \"large\"", "\"size\": \"huge\""),
    fault("templates", Silent, INDEX, "\"show_rating\": true", "\"show_rating\": \"yes\""),
    fault("templates", Silent, INDEX, "\"show_rating\": true", "\"show_ratings\": true"),
    fault("templates", Silent, INDEX, "\"text\": \"<p>Light for every room</p>\"", "\"text\": \"Light for every room\""),
    fault("templates", Silent, INDEX, "\"rating\": 40,", "\"rating\": 40,\n        \"rating\": 45,"),
    fault("templates", Refused, INDEX, "\"rating\": 40,", "\"rating\": 40"),
    fault("templates", Silent, INDEX, "  \"order\": [\"hero\", \"second\"]\n", "  \"order\": [\"hero\", \"second\"],\n"),
    fault("templates", Refused, INDEX, "    \"second\": {", "    \"second\": [").at(INDEX, "\"type\": \"hero\",\n      \"settings\""),
    fault("templates", Refused, INDEX, "  \"order\": [\"hero\", \"second\"]\n}", "  \"order\": [\"hero\", \"second\"]\n"),
    fault("templates", Refused, INDEX, "  \"sections\": {\n    \"hero\"", "  \"section\": {\n    \"hero\"").at(INDEX, "{\n  \"section\""),
    fault("templates", Refused, INDEX, "\"second\": {", "\"second section\": {"),
    fault("templates", Refused, INDEX, "{\n  \"sections\"", "{\n  \"wrapper\": \"span\",\n  \"sections\""),
    fault("templates", Refused, INDEX, "\"type\": \"hero\",\n      \"settings\"", "\"type\": \"main-product\",\n      \"settings\""),
    fault("templates", Refused, INDEX, "      \"block_order\": [\"title\", \"action\"],", "      \"disabled\": \"false\",\n      \"block_order\": [\"title\", \"action\"],"),
    fault("templates", Refused, GROUP, "  \"type\": \"header\",\n  \"name\"", "  \"name\"").at(GROUP, "{\n  \"name\""),
    fault("templates", Refused, GROUP, "  \"type\": \"header\",\n  \"name\"", "  \"type\": \"top\",\n  \"name\""),
    fault("templates", Refused, GROUP, "  \"name\": \"Header\",\n", "").at(GROUP, "{\n  \"type\""),
    fault("templates", Refused, GROUP, "\"type\": \"_notice\"", "\"type\": \"_notices\""),
    fault("templates", Silent, GROUP, "\"settings\": { \"message\": \"Free delivery\" }", "\"settings\": { \"text\": \"Free delivery\" }"),
    fault("templates", Refused, GROUP, "\"order\": [\"header\"]", "\"order\": [\"header\", \"bar\"]"),
    fault("templates", Refused, GROUP, "  \"order\": [\"header\"]", "  \"order\": \"header\""),
    fault("templates", Refused, GROUP, "    \"header\": {\n      \"type\": \"header\",", "    \"header\": {\n      \"type\": \"hero\",\n      \"x\": 1,").at(GROUP, "\"type\": \"hero\""),
    fault("templates", Refused, "templates/product.liquid", "", "<h1>{{ product.title | escape }}</h1>\n"),
    fault("templates", Refused, "templates/collection.json", "\"per_page\": 24", "\"per_page\": 100"),
];

pub const SETTINGS: &[Fault] = &[
    fault("settings", Refused, THEME, "\"id\": \"notify\"", "\"id\": \"accent\""),
    fault("settings", Refused, THEME, "\"type\": \"checkbox\"", "\"type\": \"toggle\""),
    fault("settings", Refused, THEME, "\"default\": 1200", "\"default\": 1250"),
    fault("settings", Refused, THEME, "\"step\": 100,", "\"step\": 1,"),
    fault("settings", Refused, THEME, "\"default\": \"assistant_n4\"", "\"default\": \"Assistant\""),
    fault("settings", Refused, THEME, ", \"default\": \"assistant_n4\"", ""),
    fault("settings", Refused, THEME, "    \"name\": \"Layout\",\n", "")
        .at(THEME, "{\n    \"settings\": [\n      {\n        \"type\": \"range\""),
    fault("settings", Refused, THEME, "    \"theme_version\": \"1.0.0\",\n", "")
        .at(THEME, "\"name\": \"theme_info\""),
    fault("settings", Refused, THEME, "\"default\": true }", "\"default\": \"on\" }"),
    fault("settings", Refused, THEME, "\"label\": \"Notices\"", "\"label\" \"Notices\""),
    fault("settings", Broken, DATA, "\"current\": \"Default\"", "\"current\": \"Standard\""),
    fault("settings", Broken, DATA, "\"page_width\": 1200", "\"page_width\": 5000"),
    fault("settings", Silent, DATA, "\"page_width\": 1200", "\"page_width\": \"wide\""),
    fault("settings", Silent, DATA, "\"notify\": false", "\"notify\": \"false\""),
    fault("settings", Refused, DATA, "\"page_width\": 1200,", "\"page_width\": 1200"),
    fault("settings", Silent, DATA, "\"accent\": \"#aa3300\"", "\"accent\": \"#aa33\u{67}0\""),
    fault("settings", Broken, DATA, "  \"current\": \"Default\",\n", "").at(DATA, "{\n  \"presets\""),
];

pub const LOCALES: &[Fault] = &[
    fault("locales", Refused, LOCALE, "\"skip\": \"Skip to content\",", "\"skip\": \"Skip to content\""),
    fault("locales", Refused, LOCALE, "\"skip\": \"Skip to content\",", "\"skip\": \"Skip to \"content\"\","),
    fault("locales", Silent, LOCALE, "\"sold_out\": \"Sold out\"\n", "\"sold_out\": \"Sold out\",\n"),
    fault(
        "locales",
        Silent,
        LOCALE,
        "\"skip\": \"Skip to content\",",
        "\"skip\": \"Skip to content\",\n    \"skip\": \"Skip\",",
    )
    .at(LOCALE, "\"skip\": \"Skip\","),
    fault("locales", Silent, LOCALE, "{{ count }} points", "{{ count } points"),
    fault("locales", Broken, "locales/fr.default.json", "", "{ \"general\": { \"skip\": \"Aller\" } }\n"),
    fault("locales", Silent, LOCALE, "\"pages\": \"Pages\"", "\"pages\": 12"),
    fault("paths", Broken, "snippets/cards/card.liquid", "", "<p>Card</p>\n"),
    fault("paths", Broken, "sections/parts/card.liquid", "", "<p>Card</p>\n"),
    fault("paths", Broken, "sections/banner.html", "", "<p>Banner</p>\n"),
    fault("paths", Broken, "snippets/card.html", "", "<p>Card</p>\n"),
    fault("paths", Broken, "blocks/card.json", "", "{}\n"),
    fault("paths", Broken, "templates/about.json", "", "{ \"sections\": {}, \"order\": [] }\n"),
    fault("paths", Broken, "templates/customers/profile.liquid", "", "<p>Profile</p>\n"),
    fault("paths", Broken, "assets/images/logo.css", "", "a { b: c }\n"),
    fault("paths", Broken, "layout/wide.html", "", "<p>Wide</p>\n"),
    // Other tools keep files there.
    fault("paths", Silent, "config/colors.json", "", "{}\n"),
    fault("paths", Broken, "locales/en.txt", "", "x\n"),
];

/// 26 sections.
pub fn many_sections() -> Fault {
    let sections: Vec<String> = (1..=26).map(|n| format!("    \"s{n}\": {{ \"type\": \"hero\" }}")).collect();
    let order: Vec<String> = (1..=26).map(|n| format!("\"s{n}\"")).collect();
    let text = format!(
        "{{\n  \"sections\": {{\n{}\n  }},\n  \"order\": [{}]\n}}\n",
        sections.join(",\n"),
        order.join(", ")
    );
    fault("templates", Refused, "templates/page.json", "", text.leak())
        .at("templates/page.json", "\"s26\": {")
}

/// A snippet of more than 256 KB.
pub fn large_snippet() -> Fault {
    let text = format!("{{% doc %}}\n{{% enddoc %}}\n{}", "<p>The same words</p>\n".repeat(15_000));
    fault("paths", Refused, "snippets/large.liquid", "", text.leak())
}

/// 51 blocks.
pub fn many_blocks() -> Fault {
    let blocks: Vec<String> =
        (1..=51).map(|n| format!("        \"b{n}\": {{ \"type\": \"button\" }}")).collect();
    let order: Vec<String> = (1..=51).map(|n| format!("\"b{n}\"")).collect();
    let text = format!(
        "{{\n  \"sections\": {{\n    \"hero\": {{\n      \"type\": \"hero\",\n      \"blocks\": {{\n{}\n      }},\n      \"block_order\": [{}]\n    }}\n  }},\n  \"order\": [\"hero\"]\n}}\n",
        blocks.join(",\n"),
        order.join(", ")
    );
    fault("templates", Refused, "templates/search.json", "", text.leak())
        .at("templates/search.json", "\"b51\": {")
}
