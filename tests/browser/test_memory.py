"""The memory: a person sees what is known and where it comes from, corrects and forgets it, searches, and undoes what a model has made of it."""

import datetime
import json
import re
import urllib.error
import urllib.request

import pytest
from playwright.sync_api import expect

from conftest import Owner, Platform, axe, shot
from test_assets import HOSTILE, fits

MEMORY = "## About me\n- The user likes green tea\n- The user lives in Lisbon\n\n## Work\n- The shop opens at nine\n"


@pytest.fixture
def taught(tmp_path, browser, pace):
    """An owner whose model is `pace`."""
    platform = Platform(tmp_path, auth="off", environment=pace.environment())
    owner = Owner(platform, browser)
    yield owner
    owner.close()
    platform.end()


def write(owner, markdown=MEMORY):
    return owner.call("PUT", "/memory/long-term", {"markdown": markdown})


def long_term(owner):
    return owner.get("/memory/long-term")


def lines(owner):
    return [line["text"] for section in long_term(owner)["sections"] for line in section["lines"]]


def fact_of(owner, text):
    """The fact of a line of the long-term memory."""
    return next(line["facts"][0] for section in long_term(owner)["sections"] for line in section["lines"] if line["text"] == text)


def status(owner, path, method="GET", body=None):
    """The status of a request that may fail."""
    request = urllib.request.Request(f"http://127.0.0.1:{owner.platform.port}{path}", method=method, data=None if body is None else json.dumps(body).encode(), headers={"content-type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code


def found(owner, question, depth="raw"):
    return [hit["text"] for hit in owner.get(f"/memory/search?q={question.replace(' ', '%20')}&depth={depth}")["hits"]]


def fact(page, text):
    return page.locator(".mem-fact", has_text=text)


def called(tool, arguments):
    """A reply of a model that calls a tool."""
    return {"tool_calls": [{"index": 0, "id": "call_1", "type": "function", "function": {"name": tool, "arguments": json.dumps(arguments)}}]}


def talk(owner, pace, agent, *said):
    """Says something to an agent. Returns the chat and the ids of what the person said."""
    chat = None
    for text in said:
        pace.say("I see.", None)
        chat = owner.post(f"/agents/{agent}/chat", {"message": text, **({"chat_id": chat} if chat else {})})["chat_id"]
    return chat, [one["message_id"] for one in owner.get(f"/chats/{chat}")["messages"] if one["role"] == "user"]


def outside(owner, session="s1", namespace=None):
    said = ["My favourite colour for lamps is turquoise.", "I always read the news in the kitchen."]
    messages = [{"id": f"m{index}", "role": "user", "text": text} for index, text in enumerate(said)]
    return owner.post(f"/memory/sessions/{session}/messages", {"messages": messages, **({"namespace": namespace} if namespace else {})})


def test_an_empty_memory_says_how_it_fills_and_takes_a_first_line(owner):
    page = owner.page("/")
    page.get_by_role("navigation", name="Main", exact=True).get_by_role("link", name="Memory").click()
    expect(page.get_by_text("Nothing is remembered yet. Talk to an agent; at 23:00 the day is read.")).to_be_visible()
    expect(page.get_by_role("link", name="Memory")).to_have_attribute("aria-current", "page")
    axe(page)
    shot(page, "memory-empty-light")
    page.get_by_role("button", name="Write something yourself").click()
    text = page.get_by_label("The long-term memory as Markdown")
    expect(text).to_be_focused()
    text.fill("## About me\n- The user likes green tea\n")
    expect(page.get_by_text("2 of 80 lines · 39 of 5,000 bytes")).to_be_visible()
    page.get_by_role("button", name="Save the memory").click()
    expect(fact(page, "The user likes green tea")).to_contain_text("you wrote this")
    expect(page.get_by_role("heading", name="About me")).to_contain_text("yours: no clean-up changes it")
    assert lines(owner) == ["The user likes green tea"]
    # Keys and the palette lead here.
    page.goto(f"{owner.platform.url}/#/agents")
    page.get_by_role("heading", level=1, name="Agents").wait_for()
    page.keyboard.press("g")
    page.keyboard.press("r")
    expect(page.get_by_role("heading", level=1, name="Memory")).to_be_visible()


def test_a_fact_is_corrected_and_forgotten(owner):
    write(owner)
    old = fact_of(owner, "The user lives in Lisbon")
    page = owner.page("/memory")
    fact(page, "lives in Lisbon").get_by_role("button", name="Correct").click()
    form = page.get_by_role("form", name="Correct this fact")
    expect(form).to_contain_text("Until now: The user lives in Lisbon")
    form.get_by_label("What is true?").fill("The user lives in Porto")
    # What was typed outlives a reload.
    page.reload()
    expect(form.get_by_label("What is true?")).to_have_value("The user lives in Porto")
    # A fact has at most 500 bytes.
    form.get_by_label("What is true?").fill("é" * 251)
    expect(form.get_by_text("It has 502 bytes. A fact has at most 500.")).to_be_visible()
    form.get_by_role("button", name="Correct this fact").click()
    expect(form.get_by_role("alert").filter(has_text="Code")).to_be_visible()
    assert lines(owner)[1] == "The user lives in Lisbon"
    form.get_by_label("What is true?").fill("The user lives in Porto")
    form.get_by_role("button", name="Correct this fact").click()
    expect(form).to_have_count(0)
    expect(fact(page, "lives in Porto")).to_contain_text("you corrected this")
    expect(fact(page, "lives in Lisbon")).to_have_count(0)
    assert lines(owner) == ["The user likes green tea", "The user lives in Porto", "The shop opens at nine"]
    assert owner.get(f"/memory/facts/{old['fact_id']}")["state"] == "corrected"

    new = fact_of(owner, "The user lives in Porto")
    forget = fact(page, "lives in Porto").get_by_role("button", name="Forget: The user lives in Porto")
    forget.click()
    dialog = page.get_by_role("dialog", name="Forget this fact?")
    expect(dialog).to_contain_text("The user lives in Porto")
    expect(dialog).to_contain_text("This cannot be undone.")
    axe(page)
    shot(page, "memory-forget-light")
    dialog.get_by_role("button", name="Cancel").click()
    expect(forget).to_be_focused()
    assert len(lines(owner)) == 3
    forget.click()
    dialog.get_by_role("button", name="Forget it for good").click()
    expect(dialog).to_have_count(0)
    expect(fact(page, "Porto")).to_have_count(0)
    assert lines(owner) == ["The user likes green tea", "The shop opens at nine"]
    # With what it has corrected.
    assert [status(owner, f"/memory/facts/{one['fact_id']}") for one in (old, new)] == [404, 404]
    assert not any("Porto" in text or "Lisbon" in text for text in found(owner, "where does the user live"))


def test_the_search_asks_only_what_was_typed_and_shows_the_newest_answer(owner):
    write(owner)
    owner.post("/memory/cards", {"title": "Ordered green tea", "goal": "Tea for the office", "status": "done"})
    outside(owner, namespace="garden/notes")
    page = owner.page("/memory")
    asked = []
    page.on("request", lambda request: "/memory/search" in request.url and asked.append(request.url))
    box = page.get_by_role("searchbox", name="Search the memory")
    box.wait_for()
    box.fill("   ")
    page.get_by_label("Look through").select_option(label="Every message")
    expect(page.get_by_role("heading", name="What it knows")).to_be_visible()
    box.fill("green tea")
    result = page.get_by_role("region", name="Found")
    expect(fact(result.get_by_role("list", name="Facts that were found"), "likes green tea")).to_contain_text("you wrote this")
    expect(fact(result.get_by_role("list", name="Cards that were found"), "Ordered green tea")).to_be_visible()
    assert len(asked) == 1 and "depth=raw" in asked[0], asked
    # What has nothing of the question is shown only when asked for.
    expect(fact(result, "lives in Lisbon")).to_have_count(0)
    every = owner.get("/memory/search?q=green%20tea&depth=raw&limit=30")["hits"]
    far = [one for one in every if one["score"] == 0]
    assert far, every
    result.get_by_role("button", name=f"Show {len(far)} that {'is' if len(far) == 1 else 'are'} farther away").click()
    expect(result.locator(".mem-fact")).to_have_count(len(every))
    box.fill("favourite colour turquoise")
    message = fact(result.get_by_role("list", name="Messages that were found"), "turquoise")
    expect(message).to_contain_text("You")
    expect(message).to_contain_text("the outside session “s1”")
    expect(message).to_contain_text("in “garden/notes”")
    axe(page)
    # The question is in the address, so it outlives a reload.
    page.reload()
    expect(message).to_be_visible()

    # The answer to an older question comes last, and is not shown.
    held = []
    page.route("**/memory/search?q=slow*", lambda route: held.append(route))
    box.fill("slow")
    page.wait_for_function("() => true")
    expect(result.get_by_role("status")).to_have_text("Searching…")
    owner.wait(lambda: page.wait_for_timeout(20) or held)
    box.fill("shop opens")
    expect(fact(result, "The shop opens at nine")).to_be_visible()
    held[0].fulfill(json={"hits": [{"kind": "raw", "ref": "m", "score": 1, "text": "Too late"}], "stopped_at": "raw", "layers": []})
    page.evaluate("() => new Promise((done) => setTimeout(done, 200))")
    expect(page.get_by_text("Too late")).to_have_count(0)
    expect(fact(result, "The shop opens at nine")).to_be_visible()
    # A failure leaves the field and offers to ask again.
    page.unroute("**/memory/search?q=slow*")
    page.route("**/memory/search*", lambda route: route.fulfill(status=503, json={"code": "unavailable", "detail": "Try again later.", "status": 503}))
    box.fill("opens nine")
    expect(result.get_by_role("alert")).to_contain_text("Try again later.")
    page.unroute("**/memory/search*")
    result.get_by_role("button", name="Retry").click()
    expect(fact(result, "The shop opens at nine")).to_be_visible()
    # Facts that were found can be corrected; what was true is marked.
    fact(result, "The shop opens at nine").get_by_role("button", name="Correct").click()
    page.get_by_label("What is true?").fill("The shop opens at ten")
    page.get_by_role("button", name="Correct this fact").click()
    expect(fact(result, "The shop opens at ten")).to_be_visible()
    box.fill("shop opens at nine")
    expect(fact(result, "The shop opens at nine")).to_contain_text("corrected: until")
    expect(fact(result, "The shop opens at nine").get_by_role("button", name="Correct")).to_have_count(0)
    assert "The shop opens at ten" in lines(owner)
    box.fill("")
    expect(page.get_by_role("heading", name="What it knows")).to_be_visible()


def test_a_keyboard_alone_searches_corrects_and_forgets(owner):
    write(owner)
    page = owner.page("/memory")
    page.get_by_role("heading", name="About me").wait_for()
    key = page.keyboard

    def tab_to(locator, most=60):
        for _ in range(most):
            if locator.count() and locator.first.evaluate("(node) => node === document.activeElement"):
                return
            key.press("Tab")
        raise AssertionError(f"{locator} is not reached by Tab")

    key.press("/")
    expect(page.get_by_role("searchbox", name="Search the memory")).to_be_focused()
    key.type("green tea")
    result = page.get_by_role("region", name="Found")
    expect(fact(result, "likes green tea")).to_be_visible()
    tab_to(result.get_by_role("button", name="Correct: The user likes green tea"))
    key.press("Enter")
    expect(page.get_by_label("What is true?")).to_be_focused()
    key.press("Escape")
    expect(page.get_by_label("What is true?")).to_have_count(0)
    tab_to(result.get_by_role("button", name="Correct: The user likes green tea"))
    key.press("Enter")
    expect(page.get_by_label("What is true?")).to_be_focused()
    key.press("Control+a")
    key.type("The user likes black tea")
    tab_to(page.get_by_role("button", name="Correct this fact"))
    key.press("Enter")
    expect(fact(result, "likes black tea")).to_be_visible()
    assert "The user likes black tea" in lines(owner)
    tab_to(result.get_by_role("button", name="Forget: The user likes black tea"))
    key.press("Enter")
    dialog = page.get_by_role("dialog", name="Forget this fact?")
    expect(dialog.get_by_role("button", name="Cancel")).to_be_focused()
    tab_to(dialog.get_by_role("button", name="Forget it for good"))
    key.press("Enter")
    expect(fact(result, "likes black tea")).to_have_count(0)
    assert "The user likes black tea" not in lines(owner)


def test_a_conversation_is_read_and_its_facts_lead_back_to_it(taught, pace):
    owner = taught
    agent = owner.agent()
    chat, ids = talk(owner, pace, agent, "I live in Lisbon with my sister Ana.", "My shop sells lamps of brass.")
    page = owner.page("/memory")
    expect(page.get_by_text("Nothing is remembered yet.")).to_be_visible()
    pace.say(called("save_facts", {"title": "home and shop", "facts": [
        {"text": "The user lives in Lisbon with the sister Ana.", "message_ids": ids[:1]},
        {"text": "The user's shop sells lamps of brass.", "message_ids": ids[1:]},
        {"text": "The user's shop has 42 employees.", "message_ids": ids[1:]},
    ]}), None)
    page.get_by_role("button", name="Synchronise now").click()
    result = page.locator(".mem-synced")
    expect(result).to_contain_text("2 facts learned.")
    expect(result).to_contain_text("The user lives in Lisbon with the sister Ana.")
    expect(result).to_contain_text("Not accepted:")
    expect(result).to_contain_text("The user's shop has 42 employees.: its messages do not contain “42”")
    axe(page)
    shot(page, "memory-synced-light")
    day = owner.get("/memory/days")["data"][0]
    assert day["facts"] == 2
    # Nothing is said twice.
    page.get_by_role("button", name="Synchronise now").click()
    expect(result).to_contain_text("Nothing new was learned.")
    page.get_by_role("region", name="Days").get_by_role("link", name="2 facts from 1 conversation").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text(str(datetime.date.fromisoformat(day["date"]).year))
    expect(fact(page, "lives in Lisbon")).to_be_visible()
    axe(page)
    shot(page, "memory-day-light")
    # The next turn is told of it. Below its reply, it says so.
    pace.say("You live in Lisbon.", None)
    run = owner.post(f"/agents/{agent}/chat", {"message": "Where do I live, in Lisbon?", "chat_id": chat})["run_id"]
    knew = owner.get(f"/runs/{run}")["recalled"]
    assert any("Lisbon" in one["text"] for one in knew), knew
    page.get_by_role("region", name="home and shop").get_by_role("link", name="a chat").click()
    expect(page).to_have_url(re.compile(f"#/agents/{agent}/chat/{chat}$"))
    page.get_by_text(f"What it knew ({len(knew)})").click()
    told = page.get_by_role("list", name="What it knew")
    expect(told.locator(".mem-fact")).to_have_count(len(knew))
    axe(page)
    shot(page, "memory-knew-chat-light")
    # An older reply reads it when it is opened.
    pace.say("With Ana.", None)
    owner.post(f"/agents/{agent}/chat", {"message": "And with whom?", "chat_id": chat})
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.reload()
    expect(page.get_by_text("With Ana.")).to_be_visible()
    reply = page.locator(".talk > li").filter(has=page.get_by_text("You live in Lisbon."))
    older = page.locator(".talk > li").nth(reply.evaluate("(node) => [...node.parentNode.children].indexOf(node) + 1"))
    assert not any(url.endswith(f"/runs/{run}") for url in asked)
    older.get_by_text("What it knew", exact=True).click()
    expect(older.get_by_role("list", name="What it knew").locator(".mem-fact")).to_have_count(len(knew))
    expect(older.get_by_text(f"What it knew ({len(knew)})")).to_be_visible()
    assert sum(url.endswith(f"/runs/{run}") for url in asked) == 1
    axe(page)
    shot(page, "memory-knew-older-light")
    page.goto(f"{owner.platform.url}/#/runs/{run}")
    page.get_by_text(f"What it knew ({len(knew)})").click()
    told.get_by_role("button", name=re.compile("^Forget: The user lives in Lisbon")).click()
    page.get_by_role("button", name="Forget it for good").click()
    expect(page.get_by_text("Forgotten.")).to_be_visible()
    # The record of the run does not show it any more.
    page.reload()
    expect(page.get_by_role("heading", name="A turn")).to_be_visible()
    expect(page.get_by_text("You live in Lisbon.").first).to_be_visible()
    expect(fact(told, "lives in Lisbon with the sister")).to_have_count(0)
    expect(page.get_by_role("dialog")).to_have_count(0)
    shot(page, "memory-knew-run-light")
    assert [one["text"] for block in owner.get(f"/memory/days/{day['date']}")["blocks"] for one in block["facts"]] == ["The user's shop sells lamps of brass."]


def test_what_a_session_of_another_program_taught_waits_for_a_yes(taught, pace):
    owner = taught
    outside(owner)
    pace.say(called("save_facts", {"title": "lamps", "facts": [{"text": "The user's favourite colour for lamps is turquoise.", "message_ids": ["m0"]}]}), None)
    owner.post("/memory/sync")
    date = owner.get("/memory/days")["data"][0]["date"]
    page = owner.page(f"/memory/days/{date}")
    one = fact(page, "turquoise")
    expect(one).to_contain_text("waits for your yes")
    expect(page.get_by_text("the outside session “s1”")).to_be_visible()
    axe(page)
    stored = owner.get(f"/memory/days/{date}")["blocks"][0]["facts"][0]
    assert stored["state"] == "unconfirmed"
    # The first page has it, too, so that nobody must look for it.
    page.get_by_role("link", name="Memory").first.click()
    waiting = page.get_by_role("region", name="Waits for your yes")
    expect(waiting).to_contain_text("the outside session “s1”")
    axe(page)
    shot(page, "memory-waits-light")
    waiting.get_by_role("button", name="Confirm").click()
    expect(waiting).to_have_count(0)
    page.go_back()
    expect(one.get_by_role("button", name="Confirm")).to_have_count(0)
    expect(one).not_to_contain_text("waits for your yes")
    assert owner.get(f"/memory/facts/{stored['fact_id']}")["state"] == "current"


def tidied(owner, pace, session, text):
    """Learns a fact from a session, confirms it, and says which answer tidies it."""
    owner.post(f"/memory/sessions/{session}/messages", {"messages": [{"id": f"{session}{n}", "role": "user", "text": said} for n, said in enumerate([text, "That matters to me a lot, please keep it in mind."])]})
    pace.say(called("save_facts", {"title": text, "facts": [{"text": text, "message_ids": [f"{session}0"]}]}), None)
    owner.post("/memory/sync")
    date = owner.get("/memory/days")["data"][0]["date"]
    learned = next(one for block in owner.get(f"/memory/days/{date}")["blocks"] for one in block["facts"] if one["text"] == text)
    owner.post(f"/memory/facts/{learned['fact_id']}/confirm")
    return learned["fact_id"]


def test_a_week_is_tidied_and_the_tidying_is_undone(taught, pace):
    owner = taught
    first = tidied(owner, pace, "a", "My neighbour Maria waters the plants.")
    page = owner.page("/memory")
    line = {"text": "My neighbour Maria waters the plants.", "facts": [first]}
    pace.say(called("save_memory", {"sections": [{"title": "People", "lines": [line]}], "week": [line]}), None)
    page.get_by_role("button", name="Clean up now").click()
    items = page.get_by_role("list", name="Clean-ups, newest first").locator(":scope > li")
    expect(items).to_have_count(1)
    expect(items.first.locator(".diff .add")).to_contain_text("Maria waters the plants")
    expect(items.first.locator(".diff .mem-at")).to_have_text("People")
    expect(fact(page.get_by_role("list", name="People", exact=True), "Maria")).to_be_visible()
    assert lines(owner) == [line["text"]]
    axe(page)
    shot(page, "memory-tidied-light")

    second = tidied(owner, pace, "b", "My friend Pedro repairs clocks.")
    more = {"text": "My friend Pedro repairs clocks.", "facts": [second]}
    both = {"text": "Pedro repairs clocks, Maria waters the plants.", "facts": [first, second]}
    pace.say(called("save_memory", {"sections": [{"title": "People", "lines": [both]}], "week": [more]}), None)
    page.get_by_role("button", name="Clean up now").click()
    expect(items).to_have_count(2)
    assert lines(owner) == [both["text"]]
    # A line of several facts names each of them.
    merged = fact(page.get_by_role("list", name="People", exact=True), both["text"])
    merged.get_by_text("From 2 facts").click()
    expect(merged.locator(".mem-fact")).to_have_count(2)
    expect(merged.get_by_role("button", name="Correct: My friend Pedro repairs clocks.")).to_be_visible()
    shot(page, "memory-merged-light")
    # The week has a summary, and its day is in the archive.
    archive = page.get_by_role("region", name="Archive")
    archive.get_by_role("link", name="Summary of the week").click()
    # The page of the week, not the page that is being left.
    expect(fact(page.get_by_role("list", name="Summary of the week"), "Pedro repairs clocks")).to_be_visible()
    axe(page)
    shot(page, "memory-week-light")
    page.get_by_role("link", name="Memory").first.click()

    items.nth(1).get_by_role("button", name="Undo").click()
    dialog = page.get_by_role("dialog", name="Undo this clean-up?")
    dialog.get_by_role("button", name="Undo the clean-up").click()
    expect(dialog.get_by_role("alert")).to_contain_text("A later clean-up was made on top of this one. Undo that one first")
    assert lines(owner) == [both["text"]]
    dialog.get_by_role("button", name="Cancel").click()
    items.first.get_by_role("button", name="Undo").click()
    dialog.get_by_role("button", name="Undo the clean-up").click()
    expect(dialog).to_have_count(0)
    expect(items.first).to_contain_text("undone")
    assert lines(owner) == [line["text"]]
    assert [one.get("rolled_back_at") is not None for one in owner.get("/memory/tidies")["data"]] == [True, False]
    # Now nothing stands on the first one.
    items.nth(1).get_by_role("button", name="Undo").click()
    dialog.get_by_role("button", name="Undo the clean-up").click()
    expect(items.nth(1)).to_contain_text("undone")
    assert lines(owner) == []


def test_there_is_nothing_to_tidy(owner):
    write(owner)
    page = owner.page("/memory")
    page.get_by_role("button", name="Clean up now").click()
    expect(page.get_by_text("There was nothing to tidy.").first).to_be_visible()
    assert owner.get("/memory/tidies")["data"] == []


def test_the_text_by_hand_keeps_its_draft_and_loses_nothing_to_another_tab(owner):
    write(owner)
    page = owner.page("/memory")
    page.get_by_role("button", name="Edit by hand").click()
    text = page.get_by_label("The long-term memory as Markdown")
    before = long_term(owner)["markdown"]
    expect(text).to_have_value(before)
    text.fill(before + "- The shop closes at six\n")
    # What was typed outlives a reload.
    page.reload()
    expect(text).to_have_value(before + "- The shop closes at six\n")
    write(owner, before.replace("at nine", "at ten"))
    page.get_by_role("button", name="Save the memory").click()
    conflict = page.get_by_role("alert", name="Changed meanwhile")
    expect(conflict).to_contain_text("The shop opens at ten")
    expect(conflict).to_contain_text("The shop closes at six")
    assert lines(owner)[-1] == "The shop opens at ten"
    axe(page)
    shot(page, "memory-conflict-light")
    conflict.get_by_role("button", name="Keep mine").click()
    text.fill(before.replace("at nine", "at ten") + "- The shop closes at six\n")
    page.get_by_role("button", name="Save the memory").click()
    expect(fact(page, "The shop closes at six")).to_be_visible()
    assert lines(owner)[-2:] == ["The shop opens at ten", "The shop closes at six"]
    page.reload()
    expect(page.get_by_role("button", name="Edit by hand")).to_be_visible()
    # What is too long is not sent.
    page.get_by_role("button", name="Edit by hand").click()
    text.fill("- tea\n" * 81)
    expect(page.get_by_role("alert").filter(has_text="It is too long")).to_be_visible()
    expect(page.get_by_role("button", name="Save the memory")).to_be_disabled()
    page.get_by_role("button", name="Cancel").click()
    page.get_by_role("button", name="Give up").click()
    expect(fact(page, "The shop closes at six")).to_be_visible()
    assert len(lines(owner)) == 4


def test_a_day_shows_its_cards(owner):
    owner.opens_what_is_missing = True
    card = owner.post("/memory/cards", {"title": "Checked the links", "goal": "No dead links in the shop", "actions": "Checked 214 links", "status": "done", "next": "Look again in spring"})
    page = owner.page("/memory")
    page.get_by_label("Open a day").fill(card["date"])
    one = page.get_by_role("article", name="Checked the links")
    for text in ("Goal", "No dead links in the shop", "Done", "Checked 214 links", "Left to do", "Look again in spring"):
        expect(one).to_contain_text(text)
    axe(page)
    page.goto(f"{owner.platform.url}/#/memory/days/2020-01-01")
    expect(page.get_by_text("This day has taught nothing.")).to_be_visible()
    page.goto(f"{owner.platform.url}/#/memory/weeks/2020-01-06")
    expect(page.get_by_text("This week has no summary.")).to_be_visible()
    # An address without a date, and a day that no week begins with.
    for address in ("days/foo", "weeks/2020-13-45"):
        page.goto(f"{owner.platform.url}/#/memory/{address}")
        expect(page.get_by_role("heading", level=1, name=re.compile("This could not be read|This does not exist"))).to_be_visible()
    page.goto(f"{owner.platform.url}/#/memory/weeks/2020-01-07")
    expect(page.get_by_role("heading", level=1, name="The week of 6 Jan 2020")).to_be_visible()
    page.goto(f"{owner.platform.url}/#/memory")
    page.get_by_role("region", name="Archive").get_by_role("button").first.click()
    expect(page.get_by_role("region", name="Archive")).to_contain_text(f"Nothing of {datetime.date.today().year - 1} is archived.")


def test_a_failure_of_the_last_synchronisation_is_a_sentence(owner):
    page = owner.page("/agents")
    page.route("**/memory/days", lambda route: route.fulfill(json={"data": [], "synced": "2026-11-20", "failure": "the model did not answer"}))
    page.goto(f"{owner.platform.url}/#/memory")
    expect(page.get_by_role("alert")).to_contain_text("The memory could not be brought up to date. The model did not answer.")
    axe(page)


def test_hostile_words_change_nothing_at_any_width_and_in_both_themes(owner):
    long = "w" * 300
    write(owner, f"## {HOSTILE}\n- {HOSTILE}\n- {long}\n")
    owner.post("/memory/cards", {"title": HOSTILE, "goal": HOSTILE, "status": "x" * 400, "namespace": "a/b"})
    owner.post("/memory/sessions/s-1/messages", {"messages": [{"id": "m1", "role": "user", "name": HOSTILE[:60], "text": f"{HOSTILE} teapot {long}"}]})
    today = owner.get("/memory/cards")["date"]
    for theme, width in (("light", 1280), ("dark", 320), ("dark", 1280), ("light", 320)):
        page = owner.page("/memory", theme=theme, width=width)
        expect(fact(page, HOSTILE).first).to_be_visible()
        fits(page)
        axe(page)
        shot(page, f"memory-{theme}-{width}")
        fact(page, long).get_by_role("button", name="Correct").click()
        fits(page)
        axe(page)
        page.get_by_role("button", name="Cancel").click()
        page.get_by_role("searchbox", name="Search the memory").fill("teapot")
        page.get_by_label("Look through").select_option(label="Every message")
        expect(fact(page, "teapot")).to_be_visible()
        fits(page)
        axe(page)
        shot(page, f"memory-found-{theme}-{width}")
        page.get_by_role("searchbox", name="Search the memory").fill("")
        page.get_by_role("button", name="Edit by hand").click()
        fits(page)
        axe(page)
        shot(page, f"memory-hand-{theme}-{width}")
        page.goto(f"{owner.platform.url}/#/memory/days/{today}")
        expect(page.get_by_role("article")).to_contain_text(HOSTILE)
        fits(page)
        axe(page)
        shot(page, f"memory-day-{theme}-{width}")
        assert page.evaluate("window.owned") is None
        page.close()


def test_nothing_is_learned_or_tidied_while_everything_is_stopped(owner):
    page = owner.page("/memory")
    page.get_by_role("button", name="Synchronise now").wait_for()
    owner.post("/account/stop")
    page.reload()
    for name, section in (("Synchronise now", "Days"), ("Clean up now", "Weekly clean-up")):
        region = page.get_by_role("region", name=section)
        expect(region.get_by_role("button", name=name)).to_be_disabled()
        expect(region).to_contain_text("Everything is stopped:")
    # What is known can still be read, written and corrected.
    write(owner)
    page.reload()
    fact(page, "lives in Lisbon").get_by_role("button", name="Correct").click()
    page.get_by_label("What is true?").fill("The user lives in Porto")
    page.get_by_role("button", name="Correct this fact").click()
    expect(fact(page, "lives in Porto")).to_be_visible()
    assert "The user lives in Porto" in lines(owner)
