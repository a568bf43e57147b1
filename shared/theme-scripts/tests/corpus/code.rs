//! Faults of stylesheets and scripts.

use super::Grade::{Broken, Quality, Silent};
use super::{Fault, fault};

const CSS: &str = "assets/lantern.css";
const HERO: &str = "assets/hero.css";
const JS: &str = "assets/lantern.js";
const COLLECTION: &str = "sections/main-collection.liquid";
const LAYOUT: &str = "layout/theme.liquid";

pub const STYLES: &[Fault] = &[
    fault("styles", Broken, HERO, "  font-size: 2rem;\n}", "  font-size: 2rem;").at(HERO, ".hero__title {"),
    fault("styles", Broken, HERO, "  position: relative;\n}", "  position: relative;").at(HERO, ".hero {"),
    fault("styles", Broken, HERO, "    min-height: 60vh;\n  }", "    min-height: 60vh;")
        .at(HERO, ".hero--large {"),
    fault("styles", Broken, HERO, "    color: gold;\n  }\n}", "    color: gold;\n  }")
        .at(HERO, "@media screen"),
    fault("styles", Broken, HERO, "  font-size: 2rem;\n}", "  font-size: 2rem;\n}\n}")
        .at(HERO, "}\n}\n\n.hero__body"),
    fault("styles", Broken, HERO, "    min-height: 60vh;\n  }", "    min-height: 60vh;\n  }\n  }")
        .at(HERO, "  }\n\n  .hero__rating"),
    fault("styles", Broken, HERO, ".hero__title {", ".hero__title"),
    fault("styles", Broken, HERO, ".hero__title {\n", "").at(HERO, "font-size: 2rem"),
    fault("styles", Broken, HERO, "/* The hero. */", "/* The hero."),
    fault("styles", Broken, HERO, "/* The hero. */", "The hero. */"),
    fault("styles", Broken, HERO, "/* The hero. */", "// The hero."),
    fault("styles", Broken, HERO, "font-size: 2rem;", "font-size: {{ settings.size }}rem;"),
    fault(
        "styles",
        Broken,
        HERO,
        "  position: relative;",
        "  {% if settings.notify %}position: relative;{% endif %}",
    ),
    fault(
        "styles",
        Broken,
        COLLECTION,
        "    display: grid;",
        "    display: {{ section.settings.per_page }};",
    ),
    fault("styles", Silent, HERO, "position: relative;", "position relative;"),
    fault("styles", Silent, CSS, "position: absolute;", "position absolute;"),
    fault("styles", Silent, CSS, "    margin: 0;\n", "    margin: 0\n"),
    fault(
        "styles",
        Silent,
        CSS,
        "  border: 1px solid currentColor;",
        "  border: 1px solid currentColor\n  padding: 0;",
    ),
    fault("styles", Silent, CSS, "opacity: 0.8;", "opacity: ;"),
    fault("styles", Silent, CSS, "opacity: 0.8;", "opacity: 0.8 !importent;"),
    fault("styles", Silent, CSS, "var(--accent, #222)", "var(--accent, #22x)"),
    fault("styles", Broken, CSS, "var(--accent, #222)", "var(--accent, #222"),
    fault("styles", Broken, CSS, "content: '{';", "content: '{;"),
    fault("styles", Broken, CSS, "@media (min-width: 40em)", "@media (min-width 40em)"),
    fault("styles", Silent, CSS, "@container product", "@contaner product"),
    fault("styles", Silent, CSS, "opacity: 0.8;", "opactiy: 0.8;"),
    fault("styles", Silent, CSS, "border: 1px solid", "boder: 1px solid"),
    fault("styles", Silent, CSS, "position: absolute;", "position: absolut;"),
    fault("styles", Silent, CSS, "padding: 0.25rem;", "padding: 0.25rm;"),
    fault("styles", Silent, CSS, "padding: 0.5rem 1rem;", "padding: 0.5rem 1;"),
    fault("styles", Silent, HERO, "font-size: 2rem;", "font-size: 2;"),
    fault("styles", Silent, CSS, ".footer {", ".footer, {"),
    fault("styles", Silent, CSS, ".footer {", ".footer {}\n. {"),
    fault("styles", Silent, HERO, ".hero__title {", ".hero__heading {"),
    fault("styles", Silent, HERO, ".hero__body {\n  padding: 1rem;\n}\n", "")
        .at("sections/hero.liquid", "hero__body"),
    fault("styles", Silent, CSS, ".header__item {", ".header-item {"),
    fault(
        "styles",
        Silent,
        COLLECTION,
        "  .collection__item {\n    list-style",
        "  .collection-item {\n    list-style",
    )
    .at(COLLECTION, "<li class"),
    fault("styles", Broken, COLLECTION, "      padding: 0;\n    }\n", "      padding: 0;\n")
        .at(COLLECTION, "& > li"),
    fault(
        "styles",
        Broken,
        LAYOUT,
        "        --page-width: {{ settings.page_width }}px;\n      }",
        "        --page-width: {{ settings.page_width }}px;",
    )
    .at(LAYOUT, ":root {"),
];

pub const SCRIPTS: &[Fault] = &[
    fault("scripts", Broken, JS, "  const item = await", "  const response = await"),
    fault("scripts", Broken, JS, "class ProductInfo", "const SELECTORS = {};\n\nclass ProductInfo"),
    fault("scripts", Broken, JS, "class ProductInfo", "class updateCount {}\nclass ProductInfo")
        .at(JS, "function updateCount"),
    fault("scripts", Broken, JS, "'#cart-count'", "{{ section.id | json }}"),
    fault("scripts", Broken, JS, "  if (!count) return;", "  {% if settings.notify %}return;{% endif %}"),
    fault("scripts", Broken, JS, "updateCount(parts);\n  }", "updateCounts(parts);\n  }"),
    fault("scripts", Broken, JS, "Object.keys(parts)", "Object.keys(items)"),
    fault("scripts", Broken, JS, "const item = await", "item = waits"),
    fault("scripts", Broken, JS, "  if (!count) return;", "  if (!count return;"),
    fault("scripts", Broken, JS, "    this.#controller.abort();\n  }", "    this.#controller.abort();")
        .at(JS, "async onSubmit"),
    fault("scripts", Broken, JS, "new AbortController();", "new AbortController(;"),
    fault(
        "scripts",
        Broken,
        JS,
        "`${window.Shopify.routes.root}cart/add.js`",
        "`${window.Shopify.routes.root}cart/add.js",
    )
    .at(JS, "const parts"),
    fault("scripts", Broken, JS, "async onSubmit(event) {", "onSubmit(event) {").at(JS, "await fetch"),
    fault("scripts", Broken, JS, "this.#controller.abort()", "this.#control.abort()"),
    fault("scripts", Broken, JS, "const count = document", "const count == document"),
    fault("scripts", Broken, JS, "method: 'POST',", "method: 'POST'").at(JS, "body: new FormData"),
    fault("scripts", Broken, JS, "function updateCount(parts) {", "function updateCount(parts {"),
    fault("scripts", Broken, JS, "extends HTMLElement", "extend HTMLElement"),
    fault("scripts", Broken, JS, "method: 'POST'", "method: 'POST"),
    fault("scripts", Broken, LAYOUT, "routes: { cart:", "routes: { cart").at(LAYOUT, "routes: {"),
    fault("scripts", Broken, LAYOUT, "      };\n", "      ;\n").at(LAYOUT, "      ;\n"),
    fault("scripts", Broken, COLLECTION, "  });\n{% endjavascript %}", "  };\n{% endjavascript %}")
        .at(COLLECTION, "  };\n{% endjavascript"),
    fault("scripts", Silent, JS, "querySelector('.product__info')", "querySelector('.product__details')"),
    fault("scripts", Silent, JS, "getElementById('main')", "getElementById('content')"),
    fault(
        "scripts",
        Silent,
        COLLECTION,
        "querySelectorAll('.collection__item')",
        "querySelectorAll('.collection__card')",
    ),
    fault(
        "scripts",
        Quality,
        LAYOUT,
        "<script src=\"{{ 'lantern.js' | asset_url }}\" defer></script>",
        "{{ 'lantern.js' | asset_url | script_tag }}",
    ),
];
