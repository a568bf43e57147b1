"""Assets: a person finds one, reads it, compares versions, changes it while others do, and takes it along."""

import re

from playwright.sync_api import expect

from conftest import axe, shot

HOSTILE = "<img src=x onerror=\"window.owned=1\">'&{{7*7}} ../../etc"
NOTE = "# Prices\n\nLamp oil costs $3.\n\nWicks cost $1.\n"


def asset(owner, agent_id, title="Price note", content=NOTE, **fields):
    return owner.post(f"/agents/{agent_id}/assets", {"title": title, "description": "", "asset_type": "document", "content": content, **fields})["asset_id"]


def content(owner, asset_id):
    return owner.get(f"/assets/{asset_id}/content")


WIDE = """() => [...document.querySelectorAll('main *')]
    .filter((node) => node.getBoundingClientRect().right > innerWidth + 1)
    // What scrolls by itself, or is seen by readers of screens alone, may be wider.
    .filter((node) => !node.closest('.vh'))
    .filter((node) => { for (let up = node; up.tagName !== 'MAIN'; up = up.parentElement) if (getComputedStyle(up).overflowX !== 'visible') return false; return true; })
    .map((node) => node.outerHTML.slice(0, 120)).slice(0, 5)"""


def fits(page):
    """Nothing is wider than the window."""
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "the page scrolls sideways"
    assert page.evaluate(WIDE) == [], "something is cut off at the side"


def test_the_list_is_filtered_by_type_agent_and_words(owner):
    first, second = owner.agent("First"), owner.agent("Second")
    asset(owner, first, "Alpha report")
    asset(owner, first, "Beta mail", "Hello", asset_type="email")
    asset(owner, second, "Gamma report", description="About lamps")
    page = owner.page("/assets")
    expect(page.locator(".rows > li")).to_have_count(3)
    expect(page.locator(".rows > li").first).to_contain_text("Gamma report")
    page.get_by_role("link", name="E-mails").click()
    expect(page.locator(".rows > li")).to_have_count(1)
    expect(page.locator(".rows > li")).to_contain_text("Beta mail")
    page.get_by_role("link", name="All", exact=True).click()
    page.get_by_label("Agent", exact=True).select_option("Second")
    expect(page.locator(".rows > li")).to_have_count(1)
    expect(page.locator(".rows > li")).to_contain_text("Gamma report")
    page.get_by_label("Agent", exact=True).select_option("All agents")
    expect(page.locator(".rows > li")).to_have_count(3)
    # The slash goes to the filter. Descriptions count.
    page.keyboard.press("Escape")
    page.locator("main").focus()
    page.keyboard.press("/")
    page.keyboard.type("LAMPS")
    expect(page.locator(".rows > li")).to_have_count(1)
    page.keyboard.type(" and nothing")
    expect(page.get_by_text("has “LAMPS and nothing”")).to_be_visible()
    page.get_by_role("button", name="Clear the filter").click()
    expect(page.locator(".rows > li")).to_have_count(3)
    # The page of one agent has its assets alone.
    page.goto(f"{owner.platform.url}/#/agents/{second}/assets")
    expect(page.locator(".rows > li")).to_have_count(1)
    expect(page.get_by_role("heading", level=1)).to_have_text("Second")


def test_more_than_one_page_of_assets(owner):
    agent = owner.agent()
    for number in range(53):
        asset(owner, agent, f"Note {number}", "x")
    page = owner.page("/assets")
    expect(page.locator(".rows > li")).to_have_count(50)
    expect(page.get_by_text("there are older ones")).to_be_visible()
    page.get_by_role("button", name="More").last.click()
    expect(page.locator(".rows > li")).to_have_count(53)
    expect(page.get_by_text("53 assets.")).to_be_visible()


def test_an_empty_list_says_what_belongs_there(owner):
    page = owner.page("/assets")
    expect(page.get_by_text("No asset yet.")).to_be_visible()
    page.get_by_role("link", name="Go to the agents").click()
    expect(page).to_have_url(re.compile("#/agents$"))


def test_versions_are_compared_and_saved_as_files(owner):
    agent = owner.agent()
    one = asset(owner, agent, HOSTILE)
    owner.call("PATCH", f"/assets/{one}", {"content": NOTE.replace("$3", "$4")})
    owner.call("PATCH", f"/assets/{one}", {"content": NOTE.replace("$3", "$5") + "\nThe end.\n"})
    page = owner.page(f"/assets/{one}")
    expect(page.get_by_role("heading", level=1)).to_have_text(HOSTILE)
    expect(page.get_by_text("The end.")).to_be_visible()
    page.get_by_role("combobox", name="Version", exact=True).select_option("1")
    expect(page.get_by_text("Lamp oil costs $3.")).to_be_visible()
    expect(page.get_by_text("This is version 1")).to_be_visible()
    with page.expect_download() as saved:
        page.get_by_role("button", name="Download").click()
    assert saved.value.suggested_filename == "img src-x onerror-window.owned-1-7-7- ..-..-etc.md"
    assert open(saved.value.path()).read() == NOTE
    # Any two versions, also the older one as the newer side.
    page.get_by_role("combobox", name="Compare with").select_option("3")
    expect(page.get_by_role("heading", name="From version 3 to version 1")).to_be_visible()
    expect(page.locator(".diff li.del", has_text="The end.")).to_be_visible()
    page.get_by_role("combobox", name="Version", exact=True).select_option("2")
    expect(page.get_by_role("heading", name="From version 3 to version 2")).to_be_visible()
    expect(page.locator(".diff del")).to_have_text("5")
    expect(page.locator(".diff ins")).to_have_text("4")
    # The address has it all.
    page.reload()
    expect(page.get_by_role("heading", name="From version 3 to version 2")).to_be_visible()
    assert page.evaluate("window.owned") is None
    shot(page, "asset-diff-light")


def test_an_edit_is_kept_until_it_is_saved(owner):
    one = asset(owner, owner.agent())
    page = owner.page(f"/assets/{one}")
    page.get_by_role("button", name="Edit").click()
    page.get_by_label("Title").fill("Prices of oil")
    page.get_by_label("Text", exact=False).fill("New text\n")
    page.reload()
    expect(page.get_by_label("Title")).to_have_value("Prices of oil")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Prices of oil")
    expect(page.get_by_role("region", name="Text of the document")).to_have_text("New text\n")
    stored = owner.get(f"/assets/{one}")
    assert (stored["title"], stored["content_version"]) == ("Prices of oil", 2)
    assert content(owner, one) == "New text\n"
    page.reload()
    expect(page.get_by_role("button", name="Edit")).to_be_visible()
    # An edit that is given up leaves nothing.
    page.get_by_role("button", name="Edit").click()
    page.get_by_label("Title").fill("Never")
    page.get_by_role("button", name="Give up the changes").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Prices of oil")
    assert owner.get(f"/assets/{one}")["title"] == "Prices of oil"


def test_an_edit_by_keyboard_alone(owner):
    one = asset(owner, owner.agent())
    page = owner.page(f"/assets/{one}")
    page.get_by_role("button", name="Edit").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_label("Title")).to_be_focused()
    page.keyboard.press("Control+a")
    page.keyboard.type("Typed title")
    for _ in range(3):
        page.keyboard.press("Tab")
    expect(page.get_by_role("textbox", name=re.compile("^Text"))).to_be_focused()
    page.keyboard.press("Control+a")
    page.keyboard.type("Typed text")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    expect(page.get_by_role("button", name="Save")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Typed title")
    assert (owner.get(f"/assets/{one}")["title"], content(owner, one)) == ("Typed title", "Typed text")


def test_a_cut_connection_loses_no_text(owner):
    one = asset(owner, owner.agent())
    context = owner.context()
    page = owner.page(f"/assets/{one}", context=context)
    page.get_by_role("button", name="Edit").click()
    page.get_by_role("textbox", name=re.compile("^Text")).fill("Written without a connection\n")
    context.set_offline(True)
    page.get_by_role("button", name="Save").click()
    expect(page.locator("form .problem")).to_contain_text("What you have typed is kept.")
    expect(page.get_by_role("textbox", name=re.compile("^Text"))).to_have_value("Written without a connection\n")
    context.set_offline(False)
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("region", name="Text of the document")).to_have_text("Written without a connection\n")
    assert content(owner, one) == "Written without a connection\n"
    assert owner.get(f"/assets/{one}")["content_version"] == 2


def test_two_people_edit_at_once_and_nothing_is_lost(owner):
    one = asset(owner, owner.agent())
    mine, theirs = owner.page(f"/assets/{one}"), owner.page(f"/assets/{one}")
    for page in (mine, theirs):
        page.get_by_role("button", name="Edit").click()
    theirs.get_by_label("Title").fill("Their title")
    theirs.get_by_role("textbox", name=re.compile("^Text")).fill("Their text\n")
    mine.get_by_role("textbox", name=re.compile("^Text")).fill("My text\n")
    theirs.get_by_role("button", name="Save").click()
    expect(theirs.get_by_role("heading", level=1)).to_have_text("Their title")
    mine.get_by_role("button", name="Save").click()
    notice = mine.get_by_role("alert", name="Changed meanwhile")
    expect(notice).to_contain_text("Taken over, because you have not changed it: Title.")
    expect(notice.locator(".diff li.del")).to_contain_text("Their text")
    expect(notice.locator(".diff li.add")).to_contain_text("My text")
    expect(mine.get_by_role("button", name="Save")).to_be_disabled()
    assert content(owner, one) == "Their text\n"
    shot(mine, "asset-conflict-light")
    axe(mine)
    # The question outlives a reload.
    mine.reload()
    expect(mine.get_by_role("textbox", name=re.compile("^Text"))).to_have_value("My text\n")
    mine.get_by_role("textbox", name=re.compile("^Text")).fill("My longer text\n")
    expect(mine.get_by_role("button", name="Save")).to_be_disabled()
    mine.get_by_role("button", name="Keep mine").click()
    mine.get_by_role("button", name="Save").click()
    expect(mine.get_by_role("region", name="Text of the document")).to_have_text("My longer text\n")
    assert content(owner, one) == "My longer text\n"
    assert owner.get(f"/assets/{one}")["title"] == "Their title"


def test_theirs_can_be_taken(owner):
    one = asset(owner, owner.agent())
    page = owner.page(f"/assets/{one}")
    page.get_by_role("button", name="Edit").click()
    page.get_by_label("Title").fill("Mine")
    owner.call("PATCH", f"/assets/{one}", {"title": "Theirs"})
    page.get_by_role("button", name="Save").click()
    page.get_by_role("button", name="Take theirs").click()
    expect(page.get_by_label("Title")).to_have_value("Theirs")
    expect(page.get_by_role("button", name="Save")).to_be_disabled()


def test_an_email_shows_its_subject_and_is_copied(owner):
    one = asset(owner, owner.agent(), "Mail to the shop", "Subject: Our order\n\nDear shop,\nthank you.\n", asset_type="email")
    context = owner.context()
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = owner.page(f"/assets/{one}", context=context)
    expect(page.get_by_text("Our order")).to_be_visible()
    expect(page.get_by_role("region", name="Text of the e-mail")).to_have_text("Dear shop,\nthank you.\n")
    page.get_by_role("button", name="Copy", exact=True).click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == "Dear shop,\nthank you.\n"
    assert page.get_by_role("link", name="Open in your mail program").get_attribute("href") == "mailto:?subject=Our%20order&body=Dear%20shop%2C%0D%0Athank%20you.%0D%0A"
    axe(page)


def test_what_a_run_has_made_names_the_run(owner):
    agent = owner.agent()
    run = owner.run(owner.action(agent))
    made = owner.wait(lambda: owner.get("/assets")["data"])[0]
    page = owner.page(f"/assets/{made['asset_id']}")
    assert page.get_by_role("link", name="the run that wrote it").get_attribute("href") == f"#/runs/{run['run_id']}"


def test_deleting_asks_first(owner):
    one = asset(owner, owner.agent())
    page = owner.page(f"/assets/{one}")
    page.get_by_role("button", name="Delete…").click()
    page.get_by_role("button", name="Cancel").click()
    assert owner.get(f"/assets/{one}")["asset_id"] == one
    page.get_by_role("button", name="Delete…").click()
    page.get_by_role("button", name="Delete", exact=True).click()
    expect(page.get_by_text("No asset yet.")).to_be_visible()
    assert owner.get("/assets")["data"] == []


def test_an_unknown_asset(owner):
    page = owner.page(f"/assets/ast_{'0' * 32}")
    expect(page.get_by_role("heading", name="This does not exist")).to_be_visible()


def test_hostile_texts_narrow_pages_and_axe(owner):
    agent = owner.agent(HOSTILE)
    wide = "W" * 190
    asset(owner, agent, HOSTILE, f"{HOSTILE}\n{'w' * 2000}\n", description=HOSTILE)
    one = asset(owner, agent, wide, "Subject: " + HOSTILE + "\n\n" + "x" * 500, asset_type="email", description="d" * 400)
    owner.call("PATCH", f"/assets/{one}", {"content": "y" * 500})
    for theme, width in (("light", 1280), ("dark", 320)):
        for name, address in (("assets", "/assets"), ("agent-assets", f"/agents/{agent}/assets"), ("asset", f"/assets/{one}?version=1"), ("asset-compared", f"/assets/{one}?against=1")):
            page = owner.page(address, theme=theme, width=width)
            expect(page.get_by_role("heading", level=1)).not_to_be_empty()
            expect(page.get_by_text(wide).or_(page.get_by_text("w" * 100)).first).to_be_visible()
            fits(page)
            axe(page)
            shot(page, f"{name}-{theme}-{width}")
            assert page.evaluate("window.owned") is None
        page.goto(f"{owner.platform.url}/#/assets/{one}")
        page.get_by_role("button", name="Edit").click()
        fits(page)
        axe(page)
        shot(page, f"asset-edit-{theme}-{width}")
