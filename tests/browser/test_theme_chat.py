"""The chat with the agent of a theme, as a merchant uses it.

The platform calls `Pace`, a model server of the test: it calls tools and says words when the test says so.
"""

import hashlib
import json
import re

import pytest
from playwright.sync_api import expect

from conftest import Owner, Platform, axe, shot
from test_chat import idle, replies
from test_themes import FILES, fits, imported

HOSTILE = "<img src=x onerror=\"window.owned=1\">'&{{7*7}}"
PRICE = "snippets/price.liquid"
WISH = f"Show prices with their currency in {PRICE}"


@pytest.fixture
def merchant(tmp_path, browser, pace):
    """An owner with a theme, whose model is `pace` and costs something."""
    platform = Platform(tmp_path, auth="off", environment={
        **pace.environment(), "LAMPLIGHTER_PRICES": '{"compatible/*": {"input": 1000000, "output": 4000000}}',
    })
    owner = Owner(platform, browser)
    yield owner
    owner.close()
    platform.end()


def send(page, text):
    page.get_by_label("Message about the theme").fill(text)
    page.get_by_role("button", name="Send", exact=True).click()


calls = iter(range(1, 1_000_000))


def call(tool, **arguments):
    """A piece of a reply: a call of a tool."""
    function = {"name": tool, "arguments": json.dumps(arguments)}
    return {"tool_calls": [{"index": 0, "id": f"call_{next(calls)}", "type": "function", "function": function}]}


def reads(path=PRICE):
    return call("read_lines", reads=[{"path": path, "start": 1, "end": 1}])


def edits(old="| money }}", new="| money_with_currency }}", path=PRICE, text=FILES[PRICE]):
    """An edit of a file that has this text."""
    version = hashlib.sha256(text.encode()).hexdigest()[:12]
    return call("search_replace", path=path, version=version, replacements=[{"old": old, "new": new}])


def file(owner, path=PRICE):
    return owner.get(f"/projects/default/files/{path}")


def plan(page):
    return page.locator("details.plan").last


def step(page, words):
    return page.locator("details.step > summary", has_text=words)


def changed(page, count=1):
    return page.get_by_role("article", name=f"{count} file{'s' if count > 1 else ''} changed", exact=True)


SHIFTS = """
window.shifts = [];
new PerformanceObserver((list) => {
  for (const one of list.getEntries()) if (!one.hadRecentInput) shifts.push([one.value, one.sources.map(({ node }) => (node?.outerHTML ?? node?.textContent ?? "").slice(0, 80))]);
}).observe({ type: "layout-shift", buffered: true });
"""


def stays(page):
    """What was there has not moved. On a busy machine, the line that says that it writes may go a frame before the line below it comes."""
    shifts = page.evaluate("shifts")
    assert sum(value for value, _ in shifts) < 0.06, shifts


def changes_a_price(page, pace):
    """A turn that edits one file."""
    send(page, WISH)
    pace.say("I look at the price. ", reads(), None)
    pace.say(edits(), None)
    pace.say("Prices have their currency.", None)
    expect(replies(page).last).to_contain_text("Prices have their currency.")
    idle(page)


def test_a_sentence_becomes_a_change_that_is_read_and_applied(merchant, pace):
    imported(merchant)
    page = merchant.page("/themes/default")
    page.get_by_role("link", name="Chat", exact=True).click()
    expect(page.get_by_role("region", name="Say what should change")).to_be_visible()
    expect(page.get_by_text("One sentence is enough")).to_be_visible()
    axe(page)
    shot(page, "theme-chat-empty-light")
    send(page, WISH)
    # The plan is there before the model has said anything.
    expect(plan(page).locator("summary")).to_have_text(re.compile(r"^A (small |large )?change · about \$\S+ · looks at \d+ files?$"))
    expect(page).to_have_url(re.compile(r"#/themes/default/chat/cht_\w+$"))
    plan(page).locator("summary").click()
    expect(plan(page).get_by_role("heading", name="Why")).to_be_visible()
    expect(plan(page).get_by_role("listitem").filter(has_text=PRICE)).to_be_visible()
    pace.say("I look at the price. ", reads(), None)
    expect(step(page, f"Reads {PRICE}")).to_be_visible()
    pace.say(edits(), None)
    expect(step(page, f"Edits {PRICE}")).to_be_visible()
    shot(page, "theme-chat-live-light")
    axe(page)
    pace.say("Prices have ", "their currency.", None)
    idle(page)
    expect(replies(page).last).to_contain_text("Prices have their currency.")
    expect(plan(page).locator("summary")).to_contain_text(re.compile(r"cost \S+.*, planned about \$\S+ · looked at"))
    card = changed(page)
    expect(card).to_contain_text(PRICE)
    expect(card).to_contain_text("+1")
    expect(card).to_contain_text("−1")
    expect(card).to_contain_text("not applied")
    assert "money_with_currency" not in file(merchant)
    axe(page)
    shot(page, "theme-chat-changed-light")
    card.get_by_role("link", name="Look at the changes").click()
    expect(page).to_have_url(re.compile(r"#/themes/default/changes\?set="))
    expect(page.get_by_role("list", name=f"What changes in {PRICE}")).to_contain_text("{{ price | money_with_currency }}")
    shot(page, "theme-chat-change-set-light")
    page.get_by_role("button", name="Apply", exact=True).click()
    expect(page.get_by_role("status").filter(has_text="Applied: 1 file of the theme changed.")).to_be_visible()
    assert "money_with_currency" in file(merchant)
    # The conversation knows that its edits are in the theme.
    page.get_by_role("link", name="Chat", exact=True).click()
    expect(changed(page)).to_contain_text("applied")
    expect(changed(page)).not_to_contain_text("not applied")
    chat = merchant.get("/projects/default/chats")["data"][0]["chat_id"]
    run = merchant.get(f"/chats/{chat}")["messages"][-1]["run_id"]
    page.goto(f"{merchant.platform.url}/#/runs/{run}")
    expect(page.get_by_role("heading", level=1)).to_have_text("A turn")
    expect(page.get_by_text("Its changes: 1 file")).to_be_visible()
    axe(page)
    shot(page, "theme-chat-run-light")
    page.get_by_role("link", name="Open the chat").click()
    expect(changed(page)).to_be_visible()


def lane(page, words):
    return page.locator("details.lane", has_text=words)


def test_a_part_of_a_turn_is_a_lane_of_its_own(merchant, pace):
    imported(merchant)
    page = merchant.page("/themes/default/chat")
    send(page, WISH)
    task = f"Show the currency in {PRICE}.\n{HOSTILE}"
    pace.say("A specialist does it. ", call("run_specialist", kind="liquid", task=task, files=[PRICE]), None)
    expect(lane(page, "Specialist for Liquid")).to_contain_text("working…")
    expect(lane(page, "Specialist for Liquid")).to_contain_text("It may change")
    expect(lane(page, "Specialist for Liquid").locator("code")).to_have_text(PRICE)
    axe(page)
    shot(page, "theme-chat-lane-live-light")
    pace.say(edits(), None)
    pace.say(f"{PRICE}:1 shows the currency. {HOSTILE}", None)
    expect(lane(page, "Specialist for Liquid").locator("summary")).to_contain_text("done")
    pace.say("It is done.", None)
    idle(page)
    expect(replies(page).last).to_contain_text("It is done.")
    expect(changed(page)).to_contain_text(PRICE)
    lane(page, "Specialist for Liquid").locator("summary").click()
    expect(lane(page, "Specialist for Liquid")).to_contain_text(HOSTILE)
    assert page.evaluate("window.owned") is None
    axe(page)
    shot(page, "theme-chat-lane-light")
    for width in (320, 390):
        page.set_viewport_size({"width": width, "height": 800})
        fits(page)
    page.set_viewport_size({"width": 1280, "height": 800})
    lane(page, "Specialist for Liquid").get_by_role("link", name="See what it does").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Specialist for Liquid")
    expect(page.get_by_role("link", name="Open its turn")).to_be_visible()
    axe(page)
    shot(page, "theme-chat-lane-run-light")
    page.get_by_role("link", name="Open its turn").click()
    expect(page.get_by_text("Another model helps: Specialist for Liquid")).to_be_visible()


def test_a_question_changes_nothing(merchant, pace):
    imported(merchant)
    before = {path: file(merchant, path) for path in FILES}
    page = merchant.page("/themes/default/chat")
    page.get_by_label("What do you want?").select_option("Ask")
    send(page, "Which file shows the price in the cart?")
    expect(plan(page).locator("summary")).to_contain_text(re.compile("^A (small )?question"))
    pace.say(call("grep_content", pattern="money"), None)
    expect(step(page, "Searches for “money”")).to_be_visible()
    # An edit in a turn that asks is refused, and the step says so.
    pace.say(edits(), None)
    expect(step(page, f"Edits {PRICE}")).to_contain_text("failed")
    pace.say(f"{PRICE} shows it.", None)
    idle(page)
    expect(replies(page).last).to_contain_text(f"{PRICE} shows it.")
    expect(page.get_by_role("article")).to_have_count(0)
    assert page.get_by_label("What do you want?").input_value() == "ask"
    assert merchant.get("/projects/default/changes")["data"] == []
    assert {path: file(merchant, path) for path in FILES} == before
    axe(page)
    shot(page, "theme-chat-question-light")


def test_a_reload_in_the_middle_of_a_turn_loses_nothing(merchant, pace):
    imported(merchant)
    page = merchant.page("/themes/default/chat")
    send(page, WISH)
    pace.say("I look first. ", reads(), None)
    expect(step(page, f"Reads {PRICE}")).to_be_visible()
    before = plan(page).locator("summary").inner_text()
    page.reload()
    expect(page.locator(".said")).to_have_count(1)
    expect(plan(page).locator("summary")).to_have_text(before)
    expect(step(page, f"Reads {PRICE}")).to_have_count(1)
    expect(page.get_by_role("button", name="Stop", exact=True)).to_be_visible()
    pace.say(edits(), None)
    expect(step(page, f"Edits {PRICE}")).to_be_visible()
    pace.say("It is done.", None)
    idle(page)
    expect(changed(page)).to_be_visible()
    expect(page.get_by_text("It is done.")).to_have_count(1)
    # Later, the same is read from what is stored.
    page.reload()
    page.evaluate(SHIFTS)
    expect(changed(page)).to_be_visible()
    expect(page.get_by_text("It is done.")).to_have_count(1)
    expect(page.locator("details.plan")).to_have_count(1)
    expect(page.locator(".said")).to_have_count(1)
    assert len(merchant.get("/projects/default/chats")["data"]) == 1
    stays(page)


def test_a_turn_can_be_stopped(merchant, pace):
    imported(merchant)
    page = merchant.page("/themes/default/chat")
    send(page, WISH)
    pace.say("I begin. ")
    expect(replies(page).last).to_contain_text("I begin.")
    page.get_by_role("button", name="Stop", exact=True).click()
    pace.say(None)
    idle(page)
    expect(replies(page).last).to_contain_text("Stopped.")
    expect(page.get_by_role("article")).to_have_count(0)


def test_a_turn_that_becomes_larger_says_so(merchant, pace):
    imported(merchant)
    page = merchant.page("/themes/default/chat")
    page.get_by_label("What do you want?").select_option("Change")
    send(page, f"Change the colour of the price in {PRICE}")
    # A model that says that it is done, and has changed nothing, is asked again.
    pace.say("It is done.", None)
    larger = page.locator("p.line", has_text="Larger than planned: it stopped without a change.")
    expect(larger).to_have_count(1)
    pace.say(edits(), None)
    pace.say("It is done.", None)
    idle(page)
    shot(page, "theme-chat-larger-light")
    page.reload()
    expect(changed(page)).to_be_visible()
    expect(larger).to_have_count(1)


def test_conversations_are_listed_begun_and_deleted(merchant, pace):
    imported(merchant)
    page = merchant.page("/themes/default/chat")
    page.evaluate(SHIFTS)
    changes_a_price(page, pace)
    stays(page)
    page.get_by_role("link", name="New conversation").click()
    expect(page.get_by_text("One sentence is enough")).to_be_visible()
    expect(page.locator(".said")).to_have_count(0)
    page.get_by_label("What do you want?").select_option("Plan")
    send(page, "Plan a larger logo")
    expect(plan(page).locator("summary")).to_contain_text("plan")
    pace.say("First the logo, then the header.", None)
    idle(page)
    page.get_by_text("Other conversations (1)").click()
    axe(page)
    shot(page, "theme-chat-conversations-light")
    rows = page.get_by_role("list", name="Other conversations")
    expect(rows.get_by_role("listitem")).to_have_count(1)
    rows.get_by_role("link", name=WISH).click()
    expect(changed(page)).to_be_visible()
    # A later turn goes on in the same change set, and only the newest one shows it.
    send(page, f"Also in {PRICE}, say that taxes are included")
    pace.say(edits(old="</span>", new=" {{ 'cart.title' | t }}</span>", text=FILES[PRICE].replace("money", "money_with_currency")), None)
    pace.say("It says so.", None)
    idle(page)
    expect(changed(page)).to_have_count(1)
    assert len(merchant.get("/projects/default/changes")["data"]) == 1
    # The plan of an older turn is read when somebody wants to see it.
    page.get_by_text("How it was planned").click()
    expect(page.locator("details.plan").first.locator("summary")).to_contain_text("A change")
    expect(page.locator("details.plan").first.get_by_role("heading", name="Why")).to_be_visible()
    # By the id of a conversation alone, one comes to its page.
    chat = page.url.split("/")[-1]
    page.goto(f"{merchant.platform.url}/#/chats/{chat}")
    expect(page).to_have_url(re.compile(f"#/themes/prj_\\w+/chat/{chat}$"))
    expect(changed(page)).to_be_visible()
    page.get_by_role("button", name="Delete…").click()
    page.get_by_role("button", name="Delete the conversation").click()
    expect(page.get_by_text("One sentence is enough")).to_be_visible()
    assert len(merchant.get("/projects/default/chats")["data"]) == 1
    # Its edits stay.
    assert len(merchant.get("/projects/default/changes")["data"]) == 1


def test_the_open_file_goes_with_the_message(merchant, pace):
    imported(merchant)
    page = merchant.page("/themes/default/files?file=snippets/logo.liquid")
    page.get_by_role("link", name="Chat", exact=True).click()
    expect(page.get_by_text("Open: snippets/logo.liquid")).to_be_visible()
    send(page, "Make this larger")
    expect(plan(page).locator("summary")).to_contain_text("looks at")
    pace.say("Which of both? ", "The picture or the text?", None)
    idle(page)
    plan(page).locator("summary").click()
    expect(plan(page).get_by_role("listitem").filter(has_text="snippets/logo.liquid")).to_be_visible()
    # It goes with every message until it is left out.
    page.get_by_role("link", name="Leave it out").click()
    expect(page.get_by_text("Open: ")).to_have_count(0)
    expect(page.locator(".said")).to_have_count(1)


def test_hostile_names_and_words_are_only_text(merchant, pace):
    name = "snippets/a <b>'\"&#?%41 {{7}}.liquid"
    text = f"<script>window.owned = 1</script>\n{HOSTILE}\n"
    imported(merchant, {**FILES, name: text})
    requests = []
    page = merchant.page("/themes/default/chat")
    page.on("request", lambda request: requests.append(request.url))
    wish = f"Change {name} {HOSTILE} \u202eevil"
    send(page, wish)
    expect(plan(page)).to_be_visible()
    pace.say(call("read_file", path=name), None)
    expect(step(page, f"Reads {name}")).to_be_visible()
    pace.say(call("grep_content", pattern=f"{HOSTILE}\u202e"), None)
    expect(step(page, f"Searches for “{HOSTILE}\ufffd”")).to_be_visible()
    pace.say(edits("window.owned = 1", "window.owned = 2", name, text), None)
    # A call whose arguments have other types than they should.
    pace.say(call("read_lines", reads=[None, {"path": ["x"]}, 7]), None)
    expect(step(page, "Reads the theme")).to_be_visible()
    pace.say(f"{HOSTILE} ![x](https://evil.test/x.png) <iframe src=https://evil.test/2></iframe>", None)
    idle(page)
    card = changed(page)
    expect(card.locator("code")).to_have_text(name)
    axe(page)
    shot(page, "theme-chat-hostile-light")
    page.reload()
    expect(card.locator("code")).to_have_text(name)
    card.get_by_role("link", name="Look at the changes").click()
    expect(page.get_by_role("region", name=name, exact=True)).to_be_visible()
    assert page.evaluate("window.owned") is None
    assert page.locator("main :is(img, iframe, script)").count() == 0
    assert [url for url in requests if "evil.test" in url] == []


@pytest.mark.parametrize(("width", "theme"), [(320, "light"), (390, "dark"), (1280, "dark")])
def test_narrow_and_dark_pages_fit(merchant, pace, width, theme):
    long = f"snippets/{'long-' * 30}name.liquid"
    text = "<p>{{ price | money }}</p>\n"
    imported(merchant, {**FILES, long: text})
    page = merchant.page("/themes/default/chat", width=width, height=700, theme=theme)
    expect(page.get_by_text("One sentence is enough")).to_be_visible()
    fits(page)
    send(page, f"Show prices with their currency in {PRICE} and {long}")
    pace.say(reads(), None)
    pace.say(edits(), None)
    pace.say(edits(path=long, text=text), None)
    pace.say("Both have their currency.", None)
    expect(replies(page).last).to_contain_text("Both have their currency.")
    idle(page)
    expect(changed(page, 2)).to_be_visible()
    expect(page.get_by_label("Message about the theme")).to_be_in_viewport()
    fits(page)
    axe(page)
    shot(page, f"theme-chat-{width}-{theme}")
    plan(page).locator("summary").click()
    fits(page)
    axe(page)
    shot(page, f"theme-chat-open-{width}-{theme}")
