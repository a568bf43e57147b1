"""Themes: a person imports one, finds lines in it, and walks its graph."""

import hashlib
import io
import json
import os
import re
import urllib.request
import zipfile

from playwright.sync_api import expect

from conftest import axe, shot

HOSTILE = "<img src=x onerror=\"window.owned=1\">'&{{7*7}}"
FILES = {
    "layout/theme.liquid": "<!doctype html>\n<html>\n<head>{{ content_for_header }}\n{{ 'theme.css' | asset_url | stylesheet_tag }}\n<script src=\"{{ 'cart-drawer.js' | asset_url }}\" defer></script>\n</head>\n<body>\n{% section 'header' %}\n{% render 'cart-drawer' %}\n{{ content_for_layout }}\n</body>\n</html>\n",
    "sections/header.liquid": "<header class=\"header\">\n  {% render 'logo' %}\n  <a href=\"{{ routes.cart_url }}\">{{ 'cart.title' | t }}</a>\n</header>\n{% schema %}\n{\"name\": \"Header\"}\n{% endschema %}\n",
    "snippets/logo.liquid": "<a href=\"/\" class=\"logo\">{{ shop.name | escape }}</a>\n",
    "snippets/cart-drawer.liquid": "<cart-drawer class=\"cart-drawer\">\n  <button type=\"button\" class=\"cart-drawer__close\">{{ 'cart.close' | t }}</button>\n  {% for item in cart.items %}\n    {% render 'price', price: item.price %}\n  {% endfor %}\n</cart-drawer>\n",
    "snippets/price.liquid": "<span class=\"price\">{{ price | money }}</span>\n",
    "assets/cart-drawer.js": "class CartDrawer extends HTMLElement {\n  connectedCallback() {\n    this.addEventListener('keydown', (event) => event.key === 'Escape' && this.close());\n  }\n  close() {\n    this.removeAttribute('open');\n  }\n}\ncustomElements.define('cart-drawer', CartDrawer);\n",
    "assets/theme.css": ".header { position: relative; }\n.cart-drawer { position: fixed; }\n.cart-drawer__close { float: right; }\n",
    "locales/en.default.json": json.dumps({"cart": {"title": "Cart", "close": "Close"}}, indent=2),
    "config/settings_schema.json": "[]",
}
BROKEN = {"snippets/broken.liquid": "{% if product.available %}\n<p>In stock</p>\n{{ product.title \n<p>{% render 'missing-one' %}</p>\n"}


def theme(files):
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as into:
        for path, text in files.items():
            into.writestr(path, text)
    return archive.getvalue()


def imported(owner, files=FILES, project="default"):
    request = urllib.request.Request(
        f"http://127.0.0.1:{owner.platform.port}/projects/{project}/import", data=theme(files), headers={"content-type": "application/zip"}
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        assert json.load(answer)["state"] == "done"
    owner.wait(lambda: owner.get(f"/projects/{project}/map/status")["state"] == "ready")


def written(owner, path, text):
    address = f"http://127.0.0.1:{owner.platform.port}/projects/default/files/{path}"
    request = urllib.request.Request(address, data=text.encode(), headers={"content-type": "text/plain"}, method="PUT")
    urllib.request.urlopen(request, timeout=30).close()


def fits(page):
    """Nothing makes the page scroll sideways."""
    wide = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    too_wide = page.evaluate("[...document.querySelectorAll('main *')].filter((node) => node.getBoundingClientRect().right > innerWidth + 1 && !node.closest('.code, .tabs, pre, svg, .tip')).map((node) => node.outerHTML.slice(0, 120)).slice(0, 5)")
    assert wide[0] <= wide[1] and too_wide == [], f"the page is {wide[0]} wide in a window of {wide[1]}: {too_wide}"


def test_a_project_is_made_renamed_in_two_pages_and_deleted(owner):
    page = owner.page("/themes")
    page.get_by_role("button", name="New project…").click()
    page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.get_by_role("button", name="New project…").click()
    page.get_by_role("textbox", name="Name").fill(HOSTILE)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text(HOSTILE)
    project = next(one for one in owner.get("/projects")["data"] if one["name"] == HOSTILE)
    page.goto(f"{owner.platform.url}/#/themes")
    row = page.get_by_role("listitem").filter(has=page.get_by_role("link", name=HOSTILE, exact=True))
    row.get_by_role("button", name="Rename").click()
    page.get_by_role("textbox", name="Name").fill("Mine")
    # Meanwhile, somebody else renames it.
    owner.call("PATCH", f"/projects/{project['project_id']}", {"name": "Theirs"})
    page.get_by_role("dialog").get_by_role("button", name="Rename", exact=True).click()
    expect(page.get_by_role("dialog")).to_contain_text("It is called Theirs now")
    expect(page.get_by_role("textbox", name="Name")).to_have_value("Mine")
    assert owner.get(f"/projects/{project['project_id']}")["name"] == "Theirs"
    page.get_by_role("dialog").get_by_role("button", name="Rename", exact=True).click()
    expect(page.get_by_role("link", name="Mine", exact=True)).to_be_visible()
    assert owner.get(f"/projects/{project['project_id']}")["name"] == "Mine"
    shot(page, "themes-light")
    page.get_by_role("listitem").filter(has_text="Mine").get_by_role("button", name="Delete").click()
    page.get_by_role("button", name="Delete the project").click()
    expect(page.get_by_role("link", name="Mine", exact=True)).to_have_count(0)
    assert [one["name"] for one in owner.get("/projects")["data"]] == ["Default"]
    assert page.evaluate("window.owned") is None


def test_a_zip_is_chosen_and_its_broken_file_shows_as_degraded(owner, tmp_path):
    (tmp_path / "theme.zip").write_bytes(theme({**FILES, **BROKEN}))
    (tmp_path / "notes.txt").write_text("no theme")
    page = owner.page("/themes/default")
    page.get_by_label("Choose a zip of a theme").set_input_files(tmp_path / "notes.txt")
    expect(page.get_by_role("alert")).to_contain_text("“notes.txt” is not a zip.")
    page.get_by_label("Choose a zip of a theme").set_input_files(tmp_path / "theme.zip")
    expect(page.get_by_text("Imported 10 files.")).to_be_visible()
    assert len(owner.get("/projects/default/files?limit=200")["data"]) == 10
    expect(page.get_by_text("indexed", exact=True)).to_be_visible()
    page.get_by_role("link", name="2 places could not be understood").click()
    expect(page.get_by_role("region", name="Not understood").get_by_role("listitem").filter(has_text="snippets/broken.liquid:3")).to_contain_text("An output {{ is not closed")
    errors = page.get_by_role("region", name="Warnings")
    expect(errors).to_contain_text("there is no snippet missing-one")
    shot(page, "theme-findings-light")
    errors.get_by_role("link", name="snippets/broken.liquid:4").click()
    reader = page.get_by_role("region", name="File snippets/broken.liquid")
    expect(reader.locator("li.hit")).to_have_attribute("data-line", "4")
    expect(reader.locator("li.hit mark")).to_contain_text("missing-one")


def test_what_shopify_refuses_is_mended_with_a_diff(owner):
    imported(owner, {**FILES, "snippets/old.liquid": "<p>{% assign note = 'a' 'b' %}{{ note }}</p>\n", "snippets/open.liquid": "{% if true %}\n"})
    page = owner.page("/themes/default/findings")
    expect(page.get_by_role("status").filter(has_text="Shopify would refuse 2 files.")).to_be_visible()
    expect(page.get_by_role("region", name="Refused")).to_contain_text("snippets/old.liquid:1")
    page.get_by_role("button", name="Show the mends").click()
    diff = page.get_by_role("list", name="What changes in snippets/old.liquid")
    expect(diff).to_contain_text("<p>{% assign note = 'a' %}{{ note }}</p>")
    expect(page.get_by_role("list", name="Mends")).to_contain_text("snippets/open.liquid")
    axe(page)
    shot(page, "theme-mends")
    page.get_by_role("button", name="Store the mended files…").click()
    page.get_by_role("button", name="Store them").click()
    expect(page.get_by_role("status").filter(has_text="Stored 1 mended file.")).to_be_visible()
    expect(page.get_by_role("status").filter(has_text="Shopify would refuse 1 file.")).to_be_visible()
    assert owner.get("/projects/default/files/snippets/old.liquid") == "<p>{% assign note = 'a' %}{{ note }}</p>\n"


def test_a_zip_is_dropped_and_replaces_the_theme_after_a_question(owner):
    imported(owner)
    page = owner.page("/themes/default/files")
    expect(page.get_by_role("link", name="snippets/logo.liquid")).to_be_visible()
    content = list(theme({"layout/theme.liquid": "{{ content_for_header }}{{ content_for_layout }}", "snippets/only.liquid": "x"}))
    drop = """(content) => {
        const transfer = new DataTransfer();
        transfer.items.add(new File([new Uint8Array(content)], "small.zip", { type: "application/zip" }));
        return transfer;
    }"""
    transfer = page.evaluate_handle(drop, content)
    page.locator(".theme").dispatch_event("dragover", {"dataTransfer": transfer})
    page.locator(".theme").dispatch_event("drop", {"dataTransfer": transfer})
    expect(page.get_by_role("dialog")).to_contain_text("All 9 files are replaced by “small.zip”")
    assert len(owner.get("/projects/default/files")["data"]) == 9
    page.get_by_role("button", name="Replace the theme", exact=True).click()
    expect(page.get_by_text("Imported 2 files.")).to_be_visible()
    expect(page.get_by_role("link", name="snippets/only.liquid")).to_be_visible()
    expect(page.get_by_role("link", name="snippets/logo.liquid")).to_have_count(0)
    assert [one["path"] for one in owner.get("/projects/default/files")["data"]] == ["layout/theme.liquid", "snippets/only.liquid"]


def test_an_archive_without_a_theme_is_refused_with_its_reason(owner, tmp_path):
    (tmp_path / "bad.zip").write_bytes(b"this is no zip")
    page = owner.page("/themes/default")
    page.get_by_label("Choose a zip of a theme").set_input_files(tmp_path / "bad.zip")
    expect(page.get_by_role("alert").first).to_contain_text("zip")
    assert owner.get("/projects/default/files")["data"] == []


def test_a_large_archive_goes_to_the_store_or_the_page_says_why_not(owner, tmp_path):
    # Random bytes do not become smaller.
    large = theme({**FILES, "assets/large.bin": os.urandom(5_000_000).hex()})
    assert len(large) > 4_400_000
    (tmp_path / "large.zip").write_bytes(large)
    page = owner.page("/themes/default")
    page.get_by_label("Choose a zip of a theme").set_input_files(tmp_path / "large.zip")
    if os.environ.get("CONSOLE_SOURCES"):
        # The console of the sources has another port than the store, so the policy of the page refuses it.
        expect(page.get_by_role("alert")).to_contain_text("the policy of the page allows its own address only")
        expect(page.get_by_role("region", name="The command that sends the archive")).to_contain_text("--upload-file 'large.zip'")
        refused = page.evaluate("window.violations.splice(0)")
        assert all("connect-src" in one for one in refused), refused
    else:
        expect(page.get_by_role("link", name="Files 10")).to_be_visible()


def test_a_request_is_looked_up_and_its_lines_are_marked(owner):
    imported(owner)
    page = owner.page("/themes/default")
    page.get_by_label("What should change?").fill("The cart drawer does not close on Escape")
    page.keyboard.press("Enter")
    answer = owner.post("/projects/default/lookup", {"request": "The cart drawer does not close on Escape"})
    targets = page.get_by_role("list", name="Files, best first")
    expect(targets.locator(":scope > li")).to_have_count(len(answer["targets"]))
    expect(page.get_by_role("status").filter(has_text="onfident" if answer["confident"] else "Not confident")).to_be_visible()
    # The words as they were typed, and no figures of the index.
    words = {word for one in answer["targets"] for reason in one["reasons"] if ": " in reason for word in reason.split(": ")[1].split(", ")}
    stems = {word for word in words if not re.search(rf"\b{word}\b", "the cart drawer does not close on escape")}
    assert stems, words
    for stem in stems:
        expect(page.get_by_role("region", name="Files", exact=True)).not_to_contain_text(re.compile(rf"\b{stem}\b"))
    for figure in (r"\b\d\.\d\d\b", r"\bms\b", "score"):
        expect(page.get_by_role("region", name="Files", exact=True)).not_to_contain_text(re.compile(figure))
    first = answer["targets"][0]
    link = targets.get_by_role("link", name=first["path"], exact=True)
    link.focus()
    page.keyboard.press("Enter")
    reader = page.get_by_role("region", name=f"File {first['path']}")
    expect(reader.get_by_role("heading")).to_be_focused()
    marked = [number for start, end in first["ranges"] for number in range(start, end + 1)]
    expect(reader.locator("li.hit")).to_have_count(len(marked))
    assert [int(one.get_attribute("data-line")) for one in reader.locator("li.hit").all()] == marked
    shot(page, "theme-lookup-light")
    expect(page.get_by_role("region", name="Order of editing").get_by_role("link")).to_have_text(answer["edit_order"])
    # Closing gives the focus back.
    reader.get_by_role("link", name="Close").click()
    expect(link).to_be_focused()
    # The address is the state.
    page.reload()
    expect(targets.locator(":scope > li")).to_have_count(len(answer["targets"]))
    page.get_by_label("What should change?").fill("zzzqqq")
    page.get_by_role("button", name="Find the files").click()
    expect(page.get_by_text("No file matches these words.")).to_be_visible()


def test_the_reader_jumps_to_the_line_of_a_long_file(owner):
    lines = [f"{{% comment %}} line {number} {{% endcomment %}}" for number in range(1, 4001)]
    lines[3499] = "<p class='needle-here'>found</p>"
    imported(owner, {**FILES, "snippets/long.liquid": "\n".join(lines)})
    page = owner.page("/themes/default/files")
    page.get_by_role("searchbox", name="Search in the texts").fill("NEEDLE-here")
    page.get_by_role("button", name="Search", exact=True).click()
    expect(page.get_by_text("No line contains “NEEDLE-here”.")).to_be_visible()
    page.get_by_label("Ignore case").check()
    page.get_by_role("button", name="Search", exact=True).click()
    page.get_by_role("link", name=re.compile("line 3500")).click()
    reader = page.get_by_role("region", name="File snippets/long.liquid")
    expect(reader.locator("li.hit")).to_be_in_viewport()
    assert reader.locator("li").count() <= 800
    reader.get_by_role("button", name=re.compile("Show lines before")).click()
    expect(reader.locator("li")).to_have_count(1600)


def test_the_files_are_filtered(owner):
    imported(owner)
    page = owner.page("/themes/default/files")
    expect(page.get_by_role("table").get_by_role("row")).to_have_count(10)
    page.keyboard.press("/")
    page.keyboard.type("snip cart")
    expect(page.get_by_role("table").get_by_role("row")).to_have_count(2)
    page.get_by_role("table").get_by_role("link").click()
    expect(page.get_by_role("region", name="File snippets/cart-drawer.liquid")).to_contain_text("cart-drawer__close")


def test_the_graph_is_walked_by_keyboard(owner):
    imported(owner)
    page = owner.page("/themes/default/graph")
    center = page.locator(".graph-center").get_by_role("heading")
    expect(center).to_have_text("layout/theme.liquid")
    page.get_by_role("region", name="Needs", exact=True).get_by_role("link", name="snippets/cart-drawer.liquid", exact=True).focus()
    page.keyboard.press("Enter")
    expect(center).to_have_text("snippets/cart-drawer.liquid")
    expect(center).to_be_focused()
    graph = owner.get("/projects/default/graph?path=snippets/cart-drawer.liquid")
    assert page.locator(".curves path").count() == len({one["to"] for one in graph["depends_on"]}) + len({one["from"] for one in graph["needed_by"]})
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("region", name="Needed by").get_by_role("link", name="layout/theme.liquid", exact=True)).to_be_focused()
    page.keyboard.press("ArrowLeft")
    expect(center).to_be_focused()
    page.keyboard.press("ArrowLeft")
    nodes = page.get_by_role("region", name="Needs", exact=True).locator("a.node")
    expect(nodes.nth(0)).to_be_focused()
    page.keyboard.press("ArrowDown")
    expect(nodes.nth(1)).to_be_focused()
    shot(page, "theme-graph-light")
    to = nodes.nth(1).inner_text()
    page.keyboard.press("Enter")
    expect(center).to_have_text(to)
    page.go_back()
    expect(center).to_have_text("snippets/cart-drawer.liquid")
    page.get_by_role("link", name=re.compile("of layout.theme.liquid")).click()
    expect(page.get_by_role("region", name="File layout/theme.liquid").locator("li.hit")).to_contain_text("render 'cart-drawer'")
    expect(center).to_have_text("snippets/cart-drawer.liquid")


def test_hostile_names_and_contents_are_only_text(owner):
    name = "snippets/a <b>'\"&#?%41 {{7}}.liquid"
    imported(owner, {**FILES, name: f"<script>window.owned = 1</script>\n{HOSTILE}\n{{% render '{HOSTILE}' %}}\n"})
    page = owner.page("/themes/default/files")
    page.get_by_role("link", name=name, exact=True).click()
    reader = page.get_by_role("region", name=f"File {name}")
    expect(reader.locator("li").nth(0)).to_have_text("<script>window.owned = 1</script>")
    expect(reader.locator("li").nth(1)).to_have_text(HOSTILE)
    reader.get_by_role("link", name="In the graph").click()
    expect(page.locator(".graph-center").get_by_role("heading")).to_have_text(name)
    page.get_by_role("link", name="Findings").click()
    expect(page.get_by_role("link", name=f"{name}:1").first).to_be_visible()
    page.goto(f"{owner.platform.url}/#/themes/default/files?file=snippets/none.liquid&lines=1-x,<b>")
    expect(page.get_by_role("alert")).to_contain_text("There is no such file")
    page.goto(f"{owner.platform.url}/#/themes/prj_ffffffffffffffffffffffffffffffff")
    expect(page.get_by_role("heading", level=1)).to_have_text("This does not exist")
    assert page.evaluate("window.owned") is None


def test_narrow_and_dark_pages_fit(owner):
    imported(owner, {**FILES, **BROKEN, f"snippets/{'long-' * 30}name.liquid": "x" * 5000})
    for width, theme_name in ((320, "light"), (1280, "dark")):
        for address in ("/themes", "/themes/default/lookup?q=cart+drawer&file=snippets/cart-drawer.liquid&lines=1-2", "/themes/default/files?grep=cart", "/themes/default/graph?file=snippets/cart-drawer.liquid", "/themes/default/findings"):
            page = owner.page(address, width=width, theme=theme_name)
            expect(page.get_by_role("heading", level=1)).to_be_visible()
            expect(page.get_by_text(re.compile("Reading…|Looking…|Checking…|Searching…"))).to_have_count(0)
            fits(page)
            axe(page)
            shot(page, f"theme-{width}-{theme_name}-{address.split('?')[0].strip('/').replace('/', '-')}")
            page.context.close()


def test_changes_are_read_applied_and_taken_back(owner):
    imported(owner)
    written(owner, "snippets/price.liquid", "<p>\n  {{ price | money }}\n</p>\n")
    text = owner.get("/projects/default/files/snippets/price.liquid")
    made = owner.post("/projects/default/changes", {"title": "Prices with their currency"})
    version = hashlib.sha256(text.encode()).hexdigest()[:12]
    call = {"tool": "search_replace", "path": "snippets/price.liquid", "version": version, "replacements": [{"old": "| money }}", "new": "| money_with_currency }}"}]}
    edits = f"/projects/default/changes/{made['change_set_id']}/edits"
    owner.post(edits, {"calls": [call]})
    owner.post(edits, {"calls": [{"tool": "create_file", "path": "snippets/broken.liquid", "content": "{% if true %}\n"}]})
    page = owner.page("/themes/default/changes")
    page.get_by_role("link", name="Prices with their currency").click()
    diff = page.get_by_role("list", name="What changes in snippets/price.liquid")
    expect(diff).to_contain_text("{{ price | money_with_currency }}")
    expect(page.get_by_text("Shopify would refuse snippets/broken.liquid.")).to_be_visible()
    axe(page)
    shot(page, "theme-changes")
    page.get_by_role("region", name="snippets/broken.liquid").get_by_role("button", name="Undo").click()
    expect(page.get_by_role("region", name="snippets/broken.liquid")).to_have_count(0)
    # Somebody else changes the same line.
    written(owner, "snippets/price.liquid", "<p>\n  {{ price | money_without_currency }}\n</p>\n")
    page.reload()
    expect(page.get_by_text("Somebody else has changed snippets/price.liquid meanwhile.")).to_be_visible()
    expect(page.get_by_role("button", name="Apply", exact=True)).to_be_disabled()
    axe(page)
    page.get_by_role("radio", name="As these edits have it").check()
    page.get_by_role("button", name="Use what I have chosen").click()
    page.get_by_role("button", name="Apply", exact=True).click()
    expect(page.get_by_role("status").filter(has_text="Applied: 1 file of the theme changed.")).to_be_visible()
    assert "money_with_currency" in owner.get("/projects/default/files/snippets/price.liquid")
    page.get_by_role("button", name="Take back").click()
    expect(page.get_by_role("region", name="Revert of Prices with their currency")).to_be_visible()
    page.get_by_role("button", name="Apply", exact=True).click()
    owner.wait(lambda: "money_without_currency" in owner.get("/projects/default/files/snippets/price.liquid"))


def test_a_person_says_who_may_apply_changes(owner):
    imported(owner)
    page = owner.page("/themes/default/changes")
    who = page.get_by_label("Who may apply changes")
    expect(who).to_have_value("person")
    who.select_option("Assistants, each edit at once")
    expect(page.get_by_text("An edit that Shopify would refuse is not applied.")).to_be_visible()
    axe(page)
    project = owner.get("/projects/default")
    assert (project["assistants_apply"], project["apply_at_once"]) == (True, True)
    who.select_option("A person")
    expect(page.get_by_text("An edit that Shopify would refuse is not applied.")).to_have_count(0)
    assert "assistants_apply" not in owner.get("/projects/default")


def test_the_outline_of_a_file_leads_to_its_parts(owner):
    imported(owner)
    lines = [f"  .row-{number} {{ order: {number}; }}" for number in range(2_000)]
    written(owner, "assets/long.css", "\n".join(lines) + "\n")
    page = owner.page("/themes/default/files?file=assets/long.css")
    reader = page.get_by_role("region", name="File assets/long.css")
    reader.get_by_text(re.compile("^Outline: [0-9]+ parts$")).click()
    parts = reader.get_by_role("navigation", name="Parts of assets/long.css")
    axe(page)
    shot(page, "theme-outline")
    part = parts.get_by_role("link").last
    number = int(re.search(r"line (\d+)", part.inner_text())[1])
    part.click()
    expect(page).to_have_url(re.compile(rf"lines={number}"))
    expect(reader.locator("li.hit")).to_have_attribute("data-line", str(number))
    expect(reader.locator("li.hit")).to_be_in_viewport()
