//! Damage of editing tools.

use super::Grade::{Broken, Refused, Silent};
use super::{DELETED, Fault, fault};

const HERO: &str = "sections/hero.liquid";
const CSS: &str = "assets/hero.css";
const JS: &str = "assets/lantern.js";
const PRICE: &str = "snippets/price.liquid";
const INDEX: &str = "templates/index.json";

pub const DAMAGE: &[Fault] = &[
    fault("damage", Broken, HERO, "  <div class=\"hero__body\">", "  {% comment %} rest of the code {% endcomment %}\n  <div class=\"hero__body\">"),
    fault("damage", Broken, HERO, "  <div class=\"hero__body\">", "  <!-- ... existing code ... -->\n  <div class=\"hero__body\">"),
    fault("damage", Broken, HERO, "  <div class=\"hero__body\">", "  {% # the rest stays the same ... %}\n  <div class=\"hero__body\">"),
    fault("damage", Broken, HERO, "  <div class=\"hero__body\">", "  {% comment %} ... unchanged ... {% endcomment %}\n  <div class=\"hero__body\">"),
    fault("damage", Broken, JS, "function updateCount(parts) {", "// ... rest of the code remains the same\nfunction updateCount(parts) {"),
    fault("damage", Broken, JS, "function updateCount(parts) {", "/* existing code */\nfunction updateCount(parts) {"),
    fault("damage", Broken, JS, "function updateCount(parts) {", "  ...\nfunction updateCount(parts) {"),
    fault("damage", Broken, CSS, ".hero__body {", "/* ... other styles ... */\n.hero__body {"),
    fault("damage", Broken, CSS, ".hero__body {", "/* rest of the styles unchanged */\n.hero__body {"),
    fault("damage", Broken, INDEX, "\"second\": {", "// ... existing sections\n    \"second\": {"),
    fault("damage", Broken, "sections/main-product.liquid", "", ""),
    fault("damage", Broken, PRICE, "", "\n"),
    fault("damage", Broken, CSS, "", ""),
    fault("damage", Broken, "templates/product.json", "", ""),
    fault("damage", Silent, JS, "", "const SELECTORS = { count: '#cart-count' };\n"),
    fault("damage", Broken, PRICE, "{% doc %}", "```liquid\n{% doc %}"),
    fault("damage", Broken, CSS, "/* The hero. */", "```css\n/* The hero. */"),
    fault("damage", Refused, INDEX, "/*\n", "```json\n/*\n"),
    fault("damage", Broken, PRICE, "<div class=\"price\">", "-<div class=\"price\">\n+<div class=\"price price--new\">"),
    fault("damage", Broken, HERO, "  <div class=\"hero__body\">", "+  <div class=\"hero__body\">"),
    fault("damage", Broken, CSS, "  position: relative;", "+  position: relative;"),
    fault("damage", Broken, JS, "  if (!count) return;", "-  if (!count) return;"),
    fault("damage", Broken, PRICE, "<div class=\"price\">", "@@ -8,7 +8,7 @@\n<div class=\"price\">"),
    fault("damage", Broken, PRICE, "<div class=\"price\">", "<<<<<<< SEARCH\n<div class=\"price\">"),
    fault("damage", Broken, PRICE, "<div class=\"price\">", "=======\n<div class=\"price\">"),
    fault("damage", Broken, PRICE, "<div class=\"price\">", ">>>>>>> REPLACE\n<div class=\"price\">"),
    fault("damage", Broken, "blocks/column.liquid", "<div class=\"column\" {{ block.shopify_attributes }}>\n  {% content_for 'blocks' %}\n</div>", "&lt;div class=\"column\" {{ block.shopify_attributes }}&gt;\n  {% content_for 'blocks' %}\n&lt;/div&gt;"),
    fault("damage", Broken, "templates/page.liquid", "", "<div class=\"page\">\\n  <h1>{{ page.title | escape }}</h1>\\n  {{ page.content }}\\n</div>\\n"),
    fault("damage", Broken, "templates/page.liquid", "", "<div class=\\\"page\\\">\n  <h1 class=\\\"x\\\">{{ page.title | escape }}</h1>\n  {{ page.content }}\n</div>\n"),
    fault("damage", Broken, HERO, "<div class=\"hero__body\">", "<div class=\\\"hero__body\\\">"),
    fault("damage", Broken, "templates/page.liquid", "", "1 | <div class=\"page\">\n2 |   <h1>{{ page.title | escape }}</h1>\n3 |   {{ page.content }}\n4 | </div>\n"),
    fault("damage", Silent, "templates/page.liquid", "", "<div class=\"page\">\r\n  <h1>{{ page.title | escape }}</h1>\r\n  {{ page.content }}\r\n</div>\r\n"),
    fault("damage", Silent, "templates/page.liquid", "page.title | escape }}</h1>\n", "page.title | escape }}</h1>\r\n"),
    fault("damage", Silent, PRICE, "{% doc %}", "\u{feff}{% doc %}"),
    fault("damage", Silent, PRICE, "{% doc %}", "\u{0}{% doc %}"),
    fault("damage", Refused, PRICE, "{{ 'products.price' | t }}", "{{ ‘products.price’ | t }}"),
    fault("damage", Broken, PRICE, "<div class=\"price\">", "<div class=“price”>"),
    fault("damage", Refused, PRICE, "{{ price | money }}", "{{ price\u{a0}| money }}"),
    fault("damage", Silent, "templates/page.liquid", "<h1>", "<h1>CafÃ© "),
    fault("damage", Silent, "templates/page.liquid", "<h1>", "<h1>Caf\u{fffd} "),
    fault("damage", Broken, "templates/page.liquid", "<div class=\"page\">", "Here is the updated file:\n<div class=\"page\">"),
    fault("damage", Broken, "templates/page.liquid", "<div class=\"page\">", "<file_content>\n<div class=\"page\">"),
    fault("damage", Broken, CSS, "", "/* The hero. */\n.hero {\n  position: relative;\n}\n\n.hero__title {\n  font-size: 2rem;\n}\n\n.hero__bo").at(CSS, ".hero__bo"),
    fault("damage", Silent, "sections/main-collection.liquid", "            <span>{{ product.title | escape }}</span>", "            <span>{{ product.title | escape }}</span>\n            // TODO: implement\n            [... truncated ...]").at("sections/main-collection.liquid", "[... truncated"),
    fault("damage", Broken, PRICE, "<div class=\"price\">", ">>>>\n<div class=\"price\">"),
    fault("damage", Broken, PRICE, "<div class=\"price\">", "  <<<<<<\n<div class=\"price\">"),
    fault("damage", Broken, "templates/page.liquid", "{{ page.content }}\n</div>\n", "{{ page.content }}\n</div>\n```\n").at("templates/page.liquid", "```"),
    fault("damage", Broken, "templates/page.liquid", "{{ page.content }}\n</div>\n", "{{ page.content }}\n</div>\nEOF\n").at("templates/page.liquid", "EOF"),
    fault("damage", Broken, "templates/page.liquid", "{{ page.content }}\n</div>\n", "{{ page.content }}\n</div>\n// end of file\n").at("templates/page.liquid", "// end"),
    fault("damage", Broken, CSS, "/* The hero. */", "/* The hero. */\n/* the rest of the styles */"),
    fault("damage", Broken, JS, "function updateCount(parts) {", "// the rest of the code\nfunction updateCount(parts) {"),
    fault("files", Refused, "config/settings_schema.json", "", DELETED),
    fault("files", Silent, "config/settings_data.json", "", DELETED),
    fault("files", Broken, "templates/product.json", "", DELETED),
    fault("files", Broken, "templates/page.liquid", "", DELETED),
];
