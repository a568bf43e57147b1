"""A small theme with ten commits, which have all kinds of changes. `theme_replay.py --small` replays it."""

import os
import subprocess

Files = dict[str, str]

LAYOUT = """\
<!doctype html>
<html lang="{{ request.locale.iso_code }}">
  <head>
    {{ 'base.css' | asset_url | stylesheet_tag }}
    {{ content_for_header }}
  </head>
  <body>
    {% section 'header' %}
    {{ content_for_layout }}
    <script src="{{ 'cart.js' | asset_url }}" defer></script>
  </body>
</html>
"""

PRICE = """\
{%- liquid
  assign price = product.price
  assign compare_at = product.compare_at_price
-%}
<div class="price">
  {% if compare_at > price %}
    <s>{{ compare_at | money }}</s>
  {% endif %}
  <span>{{ price | money }}</span>
</div>
"""

ICON = """\
<svg class="icon" viewBox="0 0 20 20" aria-hidden="true" focusable="false">
  <path d="M10 1l2.6 5.6 6.1.8-4.5 4.2 1.1 6.1L10 14.7l-5.3 3 1.1-6.1L1.3 7.4l6.1-.8z"></path>
  <title>{{ title | escape }}</title>
</svg>
"""

HEADER = """\
<header class="header">
  <a href="{{ routes.root_url }}">{{ shop.name }}</a>
  {% render 'icon', title: 'Menu' %}
</header>
{% schema %}
{
  "name": "Header",
  "settings": []
}
{% endschema %}
"""

ITEM = """\
  <li>
    <a href="{{ link.url }}">
      {{ link.title }}
    </a>
  </li>
"""

LIST = "{% for link in linklists.main.links %}\n" + ITEM * 5 + "{% endfor %}\n"

CSS = "".join(
    f".tea-{name} {{\n  color: var(--colour-{name});\n  margin: 0;\n  padding: 0;\n}}\n\n"
    for name in ("black", "green", "white", "oolong", "rooibos", "mint", "chai", "earl")
)

SCRIPT = """\
class CartCount extends HTMLElement {
  connectedCallback() {
    this.render();
  }

  render() {
    fetch('/cart.js')
      .then((answer) => answer.json())
      .then((cart) => {
        this.textContent = cart.item_count;
      });
  }
}

customElements.define('cart-count', CartCount);
"""

INDEX = """\
{
  "sections": {
    "list": {
      "type": "list",
      "settings": {}
    }
  },
  "order": ["list"]
}
"""

WORDS = """\
{
  "general": {
    "cart": "Cart",
    "search": "Search"
  }
}
"""

ROWS = "".join(f"{{% assign row_{number} = {number} %}}\n" for number in range(240))

LONG = "<p>" + "tea and more tea, " * 200 + "</p>\n"


def first() -> Files:
    return {
        "layout/theme.liquid": LAYOUT,
        "config/settings_schema.json": '[\n  {\n    "name": "Colours",\n    "settings": []\n  }\n]\n',
        "snippets/price.liquid": PRICE,
        "snippets/icon.liquid": ICON,
        "sections/header.liquid": HEADER.replace("\n", "\r\n"),
        "sections/list.liquid": LIST,
        "snippets/rows.liquid": ROWS,
        "snippets/long.liquid": LONG + "{{ long }}\n",
        "snippets/unended.liquid": "<p>one</p>\n<p>two</p>",
        "snippets/marked.liquid": "\ufeff<b>\n  {{ mark }}\n</b>\n",
        "assets/base.css": CSS,
        "assets/cart.js": SCRIPT,
        "templates/index.json": INDEX,
        "locales/en.default.json": WORDS,
    }


def replaced(files: Files, path: str, *pairs: tuple[str, str]) -> None:
    for old, new in pairs:
        assert files[path].count(old) == 1, (path, old)
        files[path] = files[path].replace(old, new)


def commits() -> list[tuple[str, Files]]:
    """The theme after each commit, the first tree included."""
    files = first()
    made = [("A theme", files)]

    def commit(subject: str) -> Files:
        nonlocal files
        files = dict(files)
        made.append((subject, files))
        return files

    # The beginning, the middle and the end of a file.
    files = commit("Prices have their currency")
    replaced(files, "snippets/price.liquid", ("<span>{{ price | money }}", "<span>{{ price | money_with_currency }}"))
    files["snippets/price.liquid"] = "{% comment %}A price{% endcomment %}\n" + files["snippets/price.liquid"] + "<hr>\n"

    # The same lines stand in five places, and one place changes. A line comes twice.
    files = commit("The third link is bold")
    items = ITEM * 2 + ITEM.replace("{{ link.title }}", "<b>{{ link.title }}</b>") + ITEM * 2
    files["sections/list.liquid"] = LIST.replace(ITEM * 5, items + "  <li></li>\n  <li></li>\n")

    # Files with CRLF, without a newline at the end, and with a byte order mark.
    files = commit("A header with a search")
    search = "  <a href=\"{{ routes.search_url }}\">{{ 'general.search' | t }}</a>\r\n"
    replaced(files, "sections/header.liquid", ("</header>\r\n", search + "</header>\r\n"))
    files["snippets/unended.liquid"] = "<p>one</p>\n<p>2</p>\n<p>three</p>"
    files["snippets/marked.liquid"] = "\ufeff<strong>\n  {{ mark }}\n</strong>\n"

    # New files, and letters of other scripts.
    files = commit("A badge for new teas")
    files["snippets/badge.liquid"] = "<em>Größe: {{ size }} — 新茶 🍵</em>\n"
    files["blocks/tea.liquid"] = '<div {{ block.shopify_attributes }}></div>\n{% schema %}\n{ "name": "茶" }\n{% endschema %}\n'
    replaced(files, "snippets/price.liquid", ("<hr>\n", "{% render 'badge', size: product.type %}\n"))

    # A file gets another name and other lines.
    files = commit("The icon is a star")
    files["snippets/icon-star.liquid"] = files.pop("snippets/icon.liquid").replace('class="icon"', 'class="icon icon--star"')
    replaced(files, "sections/header.liquid", ("render 'icon'", "render 'icon-star'"))

    # A file goes that another one still names.
    files = commit("No badge")
    del files["snippets/badge.liquid"]

    # More than half of a file goes, and a file is emptied but for one line.
    files = commit("Only two teas have colours")
    rules = CSS.split("\n\n")
    files["assets/base.css"] = rules[2] + "\n\n" + rules[5] + "\n"
    files["snippets/rows.liquid"] = "".join(ROWS.splitlines(True)[:60] + ROWS.splitlines(True)[-20:])

    # Settings, translations, and other indentation.
    files = commit("Settings of the list")
    replaced(files, "templates/index.json", ('"settings": {}', '"settings": {\n        "count": 4\n      }'))
    replaced(files, "locales/en.default.json", ('"Cart",', '"Basket",'), ('"Search"', '"Search",\n    "close": "Schließen"'))
    files["assets/cart.js"] = SCRIPT.replace("  ", "\t")

    # Blanks and empty lines; and a newline at the end, which edits leave as it is.
    files = commit("Blanks")
    replaced(files, "layout/theme.liquid", ("  <body>\n", "  <body>   \n\n\n"), ("  </head>\n", "\t</head>\n"))
    files["snippets/unended.liquid"] += "\n"

    # More changes than a call takes, and a line that is too long to be shown.
    files = commit("Every third row")
    rows = files["snippets/rows.liquid"].splitlines(True) + ROWS.splitlines(True)[60:200]
    files["snippets/rows.liquid"] = "".join(row if at % 3 else row.replace("= ", "= 1") for at, row in enumerate(rows))
    replaced(files, "snippets/long.liquid", ("{{ long }}", "{{ long | escape }}"))
    files["snippets/long.liquid"] = files["snippets/long.liquid"].replace("tea, </p>", "tea.</p>")
    return made


def write(folder: str) -> None:
    """Writes the history into a new git repository."""
    environment = os.environ | {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull}

    def git(*arguments: str, stream: bytes | None = None) -> None:
        command = ["git", "-C", folder, *arguments]
        subprocess.run(command, input=stream, check=True, capture_output=True, env=environment)

    parts: list[bytes] = []
    for number, (subject, files) in enumerate(commits()):
        parts.append(
            b"commit refs/heads/main\n"
            b"committer Tea <tea@example.com> %d +0000\n"
            b"data %d\n%s\n" % (1_700_000_000 + number, len(subject.encode()), subject.encode())
        )
        parts.append(b"deleteall\n")
        for path, text in files.items():
            content = text.encode()
            parts.append(b"M 100644 inline %s\ndata %d\n%s\n" % (path.encode(), len(content), content))
    git("init", "--quiet")
    git("symbolic-ref", "HEAD", "refs/heads/main")
    git("fast-import", "--quiet", stream=b"".join(parts))
