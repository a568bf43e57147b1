"""The chat of an agent and the setup conversation, as a person uses them.

Most tests run with the demo model. Where a reply must be slow, the platform calls `Pace`, a model server of the test that sends a piece
when the test says so.
"""

import base64
import json
import os
import pathlib
import re

import pytest
from playwright.sync_api import expect

from conftest import Owner, Platform, axe, shot

HOSTILE = "\"><img src=x onerror=window.hurt=1><script>window.hurt=1</script>{{7*7}}' \u202e\u0000]]>"


@pytest.fixture
def slow(tmp_path, browser, pace):
    """An owner whose model is `pace`."""
    platform = Platform(tmp_path, auth="off", environment=pace.environment())
    owner = Owner(platform, browser)
    yield owner
    owner.close()
    platform.end()


def send(page, text):
    page.get_by_role("textbox", name=re.compile("message", re.I)).fill(text)
    page.get_by_role("button", name="Send", exact=True).click()


def replies(page):
    return page.locator(".talk .reply")


def idle(page):
    """Waits until no reply is being written."""
    expect(page.get_by_role("button", name="Send", exact=True)).to_be_enabled()
    expect(page.locator(".typing")).to_have_count(0)


def stored(owner, agent):
    chat = owner.get(f"/agents/{agent}/chats")["data"][0]["chat_id"]
    return owner.get(f"/chats/{chat}")["messages"]


def test_setting_up_chatting_saving_and_defining_by_mouse(owner):
    page = owner.page("/")
    page.get_by_label("What should it look after?").fill("A research agent that watches the prices of three competitors")
    page.get_by_role("button", name="Set up an agent").click()
    expect(page.locator(".said")).to_contain_text("watches the prices")
    expect(page.get_by_role("complementary", name="Draft of the agent")).to_contain_text("No draft yet")
    expect(page.get_by_role("complementary", name="Draft of the agent")).to_contain_text("What you have said so far")
    idle(page)
    send(page, "It works if I get one page that names every change, until March")
    draft = page.get_by_role("complementary", name="Draft of the agent")
    expect(draft.get_by_label("Name")).to_have_value("Research agent")
    expect(draft.get_by_label("Timeline")).to_have_value("Until March")
    idle(page)
    shot(page, "setup-light")
    draft.get_by_label("Name").fill("Price watch")
    # The draft and what was changed in it outlive a reload.
    page.reload()
    expect(draft.get_by_label("Name")).to_have_value("Price watch")
    send(page, "Timeline: until June")
    expect(draft.get_by_label("Timeline")).to_have_value(re.compile("June", re.I))
    expect(draft.get_by_label("Name")).to_have_value("Price watch")
    idle(page)
    draft.get_by_role("button", name="Create").click()
    expect(page.get_by_role("heading", level=1, name="Price watch")).to_be_visible()
    agent = next(one for one in owner.get("/agents")["data"] if one["name"] == "Price watch")
    assert "June" in agent["timeline"]

    send(page, "Write a brief about lamp oil prices")
    card = page.get_by_role("article", name=re.compile("Proposed document"))
    expect(card).to_be_visible()
    idle(page)
    card.get_by_role("button", name="Read").click()
    dialog = page.get_by_role("dialog", name=re.compile("Brief"))
    expect(dialog.get_by_role("heading", name="Summary")).to_be_visible()
    shot(page, "chat-proposal-light")
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    card.get_by_role("button", name="Save").click()
    expect(card).to_have_count(0)
    expect(page.get_by_text("Saved:")).to_be_visible()
    assert len(owner.get(f"/agents/{agent['agent_id']}/assets")["data"]) == 1

    send(page, "Schedule a report on lamp oil prices every Monday at 9")
    draft_card = page.get_by_role("article", name=re.compile("Draft action"))
    expect(draft_card).to_be_visible()
    idle(page)
    shot(page, "chat-light")
    draft_card.get_by_role("button", name="Add action…").click()
    expect(page).to_have_url(re.compile("#/actions/act_"))
    assert owner.get(f"/actions/{page.url.split('/')[-1]}")["agent_id"] == agent["agent_id"]


def test_a_setup_is_kept_and_what_the_person_wrote_is_never_overwritten(owner):
    page = owner.page("/setup")
    send(page, "A research agent that watches the prices of three competitors")
    idle(page)
    page.get_by_role("link", name="Save and close").click()
    expect(page).to_have_url(re.compile("#/$"))
    page.goto(f"{owner.platform.url}/#/setup")
    expect(page.locator(".said")).to_contain_text("watches the prices")
    send(page, "It works if I get one page that names every change, until March")
    timeline = page.get_by_label("Timeline")
    expect(timeline).to_have_value("Until March")
    idle(page)
    timeline.fill("Until the summer")
    send(page, "Timeline: until June")
    offer = page.get_by_text("You have changed this part. The conversation proposes:")
    expect(offer).to_be_visible()
    expect(timeline).to_have_value("Until the summer")
    idle(page)
    page.get_by_role("button", name="Take it").click()
    expect(timeline).to_have_value(re.compile("June", re.I))
    expect(offer).to_have_count(0)
    # Another browser has no draft of its own: it finds the one of the conversation.
    other = owner.page(page.url.split("#")[1])
    expect(other.get_by_label("Timeline")).to_have_value(re.compile("June", re.I))
    # Without a goal there is nothing to create.
    page.get_by_label("Goal").fill("")
    expect(page.get_by_role("button", name="Create")).to_be_disabled()
    page.get_by_role("button", name="Delete draft").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page).to_have_url(re.compile("#/$"))
    assert owner.get("/agents")["data"] == []
    page.goto(f"{owner.platform.url}/#/setup")
    expect(page.get_by_text("What should it look after?")).to_be_visible()


def test_an_unfinished_setup_is_found_again(owner):
    page = owner.page("/setup")
    send(page, "A research agent that watches the prices of three competitors")
    idle(page)
    page.get_by_role("link", name="Save and close").click()
    unfinished = page.get_by_role("list", name="Unfinished set-ups").get_by_role("listitem")
    expect(unfinished).to_contain_text("Unfinished set-up: A research agent that watches")
    axe(page)
    shot(page, "setup-unfinished-today")
    # It outlives the tab, and what the person has written in the draft does so, too.
    page.goto(f"{owner.platform.url}/#/agents")
    unfinished.get_by_role("link", name="Continue").click()
    send(page, "It works if I get one page that names every change, until March")
    expect(page.get_by_label("Name")).to_have_value("Research agent")
    idle(page)
    page.get_by_label("Name").fill("Price watch")
    address = page.url
    context = page.context
    page.close()
    page = context.new_page()
    page.goto(f"{owner.platform.url}/#/agents")
    unfinished = page.get_by_role("list", name="Unfinished set-ups").get_by_role("listitem")
    expect(unfinished).to_contain_text("Unfinished set-up: Price watch")
    shot(page, "setup-unfinished-agents")
    unfinished.get_by_role("link", name="Continue").click()
    expect(page).to_have_url(address)
    expect(page.get_by_label("Name")).to_have_value("Price watch")
    page.get_by_role("button", name="Create").click()
    expect(page.get_by_role("heading", level=1, name="Price watch")).to_be_visible()
    page.goto(f"{owner.platform.url}/#/agents")
    expect(page.get_by_role("link", name="Price watch").first).to_be_visible()
    expect(unfinished).to_have_count(0)
    # Another one is discarded.
    page.goto(f"{owner.platform.url}/#/setup/begin")
    send(page, "A research agent that watches the weather")
    idle(page)
    chat = page.url.split("/")[-1]
    page.get_by_role("link", name="Save and close").click()
    page.goto(f"{owner.platform.url}/#/agents")
    unfinished.get_by_role("button", name="Discard").click()
    page.get_by_role("dialog").get_by_role("button", name="Discard").click()
    expect(unfinished).to_have_count(0)
    with pytest.raises(AssertionError, match="404"):
        owner.get(f"/chats/{chat}")


def test_a_goal_with_a_time_becomes_an_action(owner):
    agent = owner.agent(goal="Report on three competitors every Monday at nine")
    page = owner.page(f"/agents/{agent}/actions")
    expect(page.get_by_role("main")).to_contain_text("nothing runs by itself")
    axe(page)
    shot(page, "actions-none")
    page.get_by_role("button", name="Ask it to propose its actions").click()
    message = page.get_by_label("Message to Market watch")
    expect(message).to_have_value("Schedule: Report on three competitors every Monday at nine")
    expect(message).to_be_focused()
    assert owner.get(f"/agents/{agent}/chats")["data"] == [], "nothing is sent by itself"
    shot(page, "actions-asked-for")
    message.press("Enter")
    card = page.get_by_role("article", name=re.compile("Draft action"))
    expect(card).to_contain_text("At 09:00 on Monday (UTC).")
    # The empty chat offers the same. A text that was begun stays.
    other = owner.agent("Release notes", goal="Write the release notes every Friday at four")
    page.goto(f"{owner.platform.url}/#/agents/{other}")
    message = page.get_by_label("Message to Release notes")
    message.fill("Hello.")
    page.get_by_role("button", name="Ask it to propose its actions").click()
    expect(message).to_have_value("Hello.\n\nSchedule: Write the release notes every Friday at four")
    expect(message).to_be_focused()


def test_a_click_on_a_card_opens_the_draft(owner):
    agent = owner.agent()
    chat = owner.post(f"/agents/{agent}/chat", {"message": "Schedule a report on lamp oil prices every Monday at 9"})["chat_id"]
    owner.post(f"/agents/{agent}/chat", {"message": "Write a brief about wicks", "chat_id": chat})
    owner.post(f"/agents/{agent}/chat", {"message": "Write a brief about wicks", "chat_id": chat})
    page = owner.page(f"/agents/{agent}")
    # The newer brief has replaced the earlier one.
    asset = page.get_by_role("article", name=re.compile("Proposed document"))
    expect(asset).to_have_count(1)
    action = page.get_by_role("article", name=re.compile("Draft action"))
    dialog = page.get_by_role("dialog")
    for card, shown in [(asset, "Summary"), (action, "At 09:00 on Monday (UTC).")]:
        card.get_by_role("heading").click()
        expect(dialog).to_contain_text(shown)
        page.keyboard.press("Escape")
        expect(dialog).to_have_count(0)
    asset.get_by_role("heading").click()
    dialog.get_by_text("It replaces 1 earlier draft").click()
    dialog.get_by_role("button", name="Earlier draft 1").click()
    expect(dialog).to_contain_text("A newer draft has replaced this one.")
    expect(dialog.get_by_role("button", name="Save")).to_have_count(0)
    page.keyboard.press("Escape")
    # A button of the card does only its own work.
    asset.get_by_role("button", name="Delete").click()
    expect(page.get_by_role("dialog", name="Delete this draft?")).to_be_visible()


def test_what_was_decided_stays_in_the_chat(owner):
    agent = owner.agent()
    owner.post(f"/agents/{agent}/chat", {"message": "Schedule a report on lamp oil prices every Monday at 9"})
    page = owner.page(f"/agents/{agent}")
    card = page.get_by_role("article", name=re.compile("Draft action"))
    expect(card).to_contain_text("At 09:00 on Monday (UTC).")
    card.get_by_role("button", name="Add action…").click()
    expect(page).to_have_url(re.compile("#/actions/act_"))
    action = page.url.split("/")[-1]
    page.go_back()
    lines = page.locator(".outcome")
    title = owner.get(f"/actions/{action}")["title"]
    expect(lines).to_have_text(f"You added {title}. It waits for your approval, then runs at 09:00 on Monday.")
    lines.get_by_role("link", name="waits for your approval").click()
    page.get_by_role("button", name=re.compile("^Approve")).click()
    expect(page.get_by_role("article", name=re.compile("^Approval"))).to_have_count(0)
    page.goto(f"{owner.platform.url}/#/agents/{agent}")
    expect(lines).to_have_text(f"You approved {title}: runs at 09:00 on Monday.")
    send(page, "Write a brief about wicks")
    draft = page.get_by_role("article", name=re.compile("Proposed document"))
    expect(draft).to_be_visible()
    idle(page)
    draft.get_by_role("button", name="Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete", exact=True).click()
    expect(lines.last).to_have_text(re.compile("^You deleted the draft “.*wicks.*”.$"))
    shot(page, "chat-decided")
    page.reload()
    expect(lines).to_have_count(2)
    owner.call("DELETE", f"/actions/{action}")
    page.reload()
    expect(lines.first).to_have_text(f"You added “{title}”. It was deleted since.")


def test_an_action_is_changed_paused_and_resumed_in_the_chat(owner):
    agent = owner.agent()
    action = owner.action(agent, "Lamp oil report", schedule={"cron": "0 9 * * *"})
    page = owner.page(f"/agents/{agent}")
    send(page, "Every day at 8 instead")
    card = page.get_by_role("article", name="Proposed change of an action: Lamp oil report")
    for text in ("Every day at 09:00 (UTC)", "Every day at 08:00 (UTC)", "It stays approved."):
        expect(card).to_contain_text(text)
    idle(page)
    axe(page)
    shot(page, "chat-change-light")
    card.get_by_role("button", name="Change it").click()
    lines = page.locator(".outcome")
    expect(lines).to_have_text("You approved the change of Lamp oil report: runs every day at 08:00.")
    expect(page).to_have_url(re.compile(f"#/agents/{agent}"))
    changed = owner.get(f"/actions/{action}")
    assert (changed["state"], changed["schedule_text"]) == ("scheduled", "At 08:00 (UTC).")
    assert "8" not in changed["task_config"]["instructions"]

    send(page, "pause it")
    card = page.get_by_role("article", name="Proposed: Pause Lamp oil report")
    expect(card).to_contain_text("It does not run until you resume it. Next due:")
    idle(page)
    card.get_by_role("button", name="Pause", exact=True).click()
    expect(lines.last).to_contain_text("You paused Lamp oil report.")
    assert owner.get(f"/actions/{action}")["state"] == "paused"
    axe(page)
    shot(page, "chat-paused-light")
    lines.last.get_by_role("button", name="Undo").click()
    expect(lines.last).to_contain_text("You resumed Lamp oil report.")
    assert owner.get(f"/actions/{action}")["state"] == "scheduled"

    # What somebody else has done meanwhile is said on the card.
    send(page, "pause it")
    expect(card).to_be_visible()
    idle(page)
    owner.post(f"/actions/{action}/pause", {})
    card.get_by_role("button", name="Pause", exact=True).click()
    expect(card.get_by_role("alert")).to_contain_text("the action is paused already")


def test_the_same_by_keyboard_alone(owner):
    page = owner.page("/setup", theme="dark")
    field = page.get_by_label("Your message")

    def reach(locator, most=40):
        for _ in range(most):
            if locator.evaluate("(node) => node === document.activeElement"):
                return
            page.keyboard.press("Tab")
        raise AssertionError("the keyboard does not reach it")

    expect(field).to_be_visible()
    reach(field)
    page.keyboard.type("A research agent that watches the prices of three competitors")
    page.keyboard.press("Enter")
    idle(page)
    page.keyboard.type("It works if I get one page")
    page.keyboard.press("Shift+Enter")
    page.keyboard.type("that names every change, until March")
    assert field.input_value().count("\n") == 1
    page.keyboard.press("Enter")
    name = page.get_by_label("Name")
    expect(name).to_have_value("Research agent")
    idle(page)
    shot(page, "setup-dark")
    reach(page.get_by_role("button", name="Create"))
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1, name="Research agent")).to_be_visible()
    message = page.get_by_label("Message to Research agent")
    reach(message)
    page.keyboard.type("Write a brief about wicks")
    page.keyboard.press("Enter")
    save = page.get_by_role("button", name="Save", exact=True)
    expect(save).to_be_visible()
    idle(page)
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Shift+Tab")
    reach(save)
    page.keyboard.press("Enter")
    expect(page.get_by_text("Saved:")).to_be_visible()
    reach(message)
    page.keyboard.type("Schedule a report every Monday at 9")
    page.keyboard.press("Enter")
    define = page.get_by_role("button", name="Add action…")
    expect(define).to_be_visible()
    idle(page)
    shot(page, "chat-dark")
    for _ in range(4):
        page.keyboard.press("Shift+Tab")
    reach(define)
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("#/actions/act_"))


def test_a_reload_in_mid_reply_loses_nothing(slow, pace):
    agent = slow.agent()
    page = slow.page(f"/agents/{agent}")
    send(page, "Say it slowly")
    pace.say("# Begun\n\nOne *two* ")
    expect(replies(page).locator("em")).to_have_text("two")
    expect(page.get_by_role("heading", name="Begun")).to_be_visible()
    page.reload()
    expect(replies(page).locator("em")).to_have_text("two")
    expect(page.locator(".said")).to_have_count(1)
    pace.say("three\n\n- four\n- five\n")
    expect(replies(page).get_by_role("listitem")).to_have_count(2)
    node = page.locator(".reply .md h3").element_handle()
    pace.say(None)
    idle(page)
    expect(page.locator("#said")).to_have_text("Reply finished.")
    messages = stored(slow, agent)
    assert [one["role"] for one in messages] == ["user", "assistant"]
    assert messages[1]["content"].strip() == "# Begun\n\nOne *two* three\n\n- four\n- five"
    assert node.evaluate("(node) => node.isConnected"), "the streamed nodes stay"
    assert page.locator(".reply .md").inner_text().split() == ["Begun", "One", "two", "three", "four", "five"]
    streamed = page.locator(".reply .md").inner_html()
    page.reload()
    expect(replies(page).get_by_role("listitem")).to_have_count(2)
    assert page.locator(".reply .md").inner_html() == streamed


def test_stop_works_also_after_a_reload(slow, pace):
    agent = slow.agent()
    page = slow.page(f"/agents/{agent}")
    send(page, "Say it slowly")
    pace.say("One ")
    expect(replies(page)).to_contain_text("One")
    page.reload()
    expect(replies(page)).to_contain_text("One")
    page.get_by_role("button", name="Stop", exact=True).click()
    expect(replies(page).get_by_text("Stopped.")).to_be_visible()
    idle(page)
    run = slow.get(f"/runs/{stored(slow, agent)[0]['run_id']}")
    assert run["state"] == "cancelled"
    pace.say(None)
    # The next turn works.
    send(page, "Again")
    pace.say("Here.", None)
    expect(replies(page).last).to_contain_text("Here.")
    idle(page)


def test_a_cut_connection_goes_on_where_it_was(slow, pace):
    agent = slow.agent()
    page = slow.page(f"/agents/{agent}")
    send(page, "Say it slowly")
    pace.say("One ")
    expect(replies(page)).to_contain_text("One")
    page.context.set_offline(True)
    pace.say("two ")
    page.context.set_offline(False)
    pace.say("three", None)
    expect(replies(page)).to_contain_text("One two three")
    idle(page)
    assert page.locator(".reply .md").inner_text() == stored(slow, agent)[1]["content"]


def test_a_hidden_page_holds_no_connection(slow, pace):
    agent = slow.agent()
    page = slow.page(f"/agents/{agent}")
    streams = []
    page.on("request", lambda request: streams.append(request.url) if "/events?after=" in request.url else None)
    hide = "(hidden) => { Object.defineProperty(document, 'hidden', { value: hidden, configurable: true }); document.dispatchEvent(new Event('visibilitychange')); }"
    send(page, "Say it slowly")
    pace.say("One ")
    expect(replies(page)).to_contain_text("One")
    with page.expect_event("requestfailed", lambda request: request.url.endswith("/chat")):
        page.evaluate(hide, True)
    pace.say("two ", "three.")
    assert streams == []
    page.evaluate(hide, False)
    expect(replies(page)).to_contain_text("One two three.")
    assert len(streams) == 1 and not streams[0].endswith("after=0")
    pace.say(None)
    idle(page)
    assert page.locator(".reply .md").inner_text() == stored(slow, agent)[1]["content"]


def test_a_chat_of_another_agent_is_not_mixed_in(owner):
    first, second = owner.agent("First"), owner.agent("Second")
    owner.post(f"/agents/{first}/chat", {"message": "For the first"})
    chat = owner.get(f"/agents/{first}/chats")["data"][0]["chat_id"]
    page = owner.page(f"/agents/{second}/chat/{chat}")
    expect(page.get_by_role("heading", name="This chat belongs to another agent")).to_be_visible()
    page.get_by_role("link", name="Open it there").click()
    expect(page.locator(".said")).to_contain_text("For the first")
    page.goto(f"{owner.platform.url}/#/agents/{first}/chat/cht_01a215f3b63970009874111fe8005541")
    expect(page.get_by_role("heading", name="This does not exist")).to_be_visible()


def test_what_happens_within_a_run_is_said_quietly(owner):
    """The events of one stream, as docs/api.md describes them; after them the connection is lost."""
    agent = owner.agent()
    page = owner.page(f"/agents/{agent}")
    run = "run_01a215f40ec97000a585a7d7e00f868e"
    said = [
        ("run.started", {"run_id": run, "kind": "chat", "agent_id": agent, "chat_id": None}),
        ("message.delta", {"step": 1, "text": "One *two*"}),
        ("message.delta", {"step": 1, "text": " void"}),
        ("step.restarted", {"step": 1, "void_from": 3}),
        ("message.delta", {"step": 1, "text": "Again."}),
        ("message.completed", {"step": 1, "text": "Again."}),
        ("tool.requested", {"step": 1, "call_id": "1.0", "tool": "void_tool", "input": {}}),
        ("step.restarted", {"step": 2, "void_from": 7}),
        ("model.fallback", {"step": 2, "from": "a/one", "to": "b/two", "code": "model_overloaded", "reason": "busy"}),
        ("context.reduced", {"step": 2, "results_shortened": 0, "images_left_out": 1, "messages_left_out": 2}),
        ("deliverable.invalid", {"step": 2, "kind": "asset", "reason": "it has no title"}),
        ("thinking.delta", {"step": 2, "text": "Hm"}),
        ("thinking.delta", {"step": 2, "text": "mm."}),
        ("tool.requested", {"step": 2, "call_id": "2.0", "tool": "read_asset", "input": {"asset_id": "ast_1"}}),
        ("tool.result", {"step": 2, "call_id": "2.0", "tool": "read_asset", "result": "gone", "is_error": True}),
        ("from.the.future", {"step": 2}),
        ("message.delta", {"step": 2, "text": "Done so far"}),
    ]
    # The first event twice: what was seen already is ignored.
    numbered = list(enumerate(said, 1))
    body = "".join(f"id: {number}\nevent: {name}\ndata: {json.dumps({'at': '2026-11-26T09:00:00Z', **data})}\n\n" for number, (name, data) in [*numbered[:2], *numbered[1:]])
    page.route("**/agents/*/chat", lambda route: route.fulfill(body=body, content_type="text/event-stream"))
    page.route("**/runs/*/events?*", lambda route: route.fulfill(status=503, json={"code": "busy", "detail": "not now"}))
    send(page, "Do it")
    expect(replies(page)).to_contain_text("Done so far")
    assert page.locator(".reply .md").all_inner_texts() == ["One two", "Again.", "Done so far"]
    assert page.get_by_text("Void tool").count() == 0
    expect(replies(page)).to_contain_text("a/one did not answer (model overloaded). b/two answers.")
    expect(replies(page)).to_contain_text("written without 2 old messages, 1 image.")
    expect(replies(page)).to_contain_text("made again: it has no title")
    expect(page.locator("details.step", has_text="Thinking")).to_contain_text("Hmmm.")
    expect(page.locator("details.step", has_text="Read asset")).to_contain_text("failed")
    # Nothing of this is announced piece by piece.
    expect(page.locator("#said")).to_have_text("")


def test_two_tabs_and_one_turn_at_a_time(slow, pace):
    agent = slow.agent()
    first = slow.page(f"/agents/{agent}")
    send(first, "From the first tab")
    pace.say("One ")
    expect(replies(first)).to_contain_text("One")
    second = slow.page(f"/agents/{agent}", context=first.context)
    expect(second.locator(".said")).to_contain_text("From the first tab")
    expect(replies(second)).to_contain_text("One")
    pace.say("two.", None)
    for page in (first, second):
        expect(replies(page)).to_contain_text("One two.")
        idle(page)
    # A turn that another tab has begun, before this tab knows of it.
    send(second, "From the second tab")
    expect(second.locator(".typing")).to_be_visible()
    slow.wait(lambda: len(pace.asked) == 2)
    send(first, "Meanwhile")
    expect(first.get_by_text("A reply is being written, perhaps for another tab")).to_be_visible()
    expect(first.get_by_label(re.compile("Message to"))).to_have_value("Meanwhile")
    pace.say("Three.", None)
    for page in (first, second):
        expect(replies(page).filter(has_text="Three.")).to_have_count(1)
        idle(page)
    expect(first.locator(".said").filter(has_text="From the second tab")).to_have_count(1)
    assert [one["role"] for one in stored(slow, agent)] == ["user", "assistant"] * 2


def test_a_failed_turn_says_why_and_can_be_sent_again(slow, pace):
    agent = slow.agent()
    page = slow.page(f"/agents/{agent}")
    send(page, "Will it work?")
    pace.say(400)
    expect(page.get_by_role("alert")).to_contain_text("No reply.")
    expect(page.get_by_role("alert")).to_contain_text("model_")
    shot(page, "chat-failed-light")
    page.reload()
    expect(page.get_by_role("alert")).to_contain_text("No reply.")
    page.get_by_role("button", name="Send it again").click()
    pace.say("It does.", None)
    expect(replies(page).last).to_contain_text("It does.")
    idle(page)
    assert stored(slow, agent)[-1]["content"] == "It does."


def test_without_a_connection_the_text_is_kept(owner):
    agent = owner.agent()
    page = owner.page(f"/agents/{agent}")
    field = page.get_by_label("Message to Market watch")
    field.fill("Half a thought")
    page.reload()
    expect(field).to_have_value("Half a thought")
    page.context.set_offline(True)
    page.get_by_role("button", name="Send", exact=True).click()
    expect(page.locator(".banner.offline")).to_be_visible()
    page.context.set_offline(False)
    # The request is repeated with its key, so the turn takes place once.
    expect(replies(page).first).to_contain_text("demo model")
    idle(page)
    assert [one["content"] for one in stored(owner, agent) if one["role"] == "user"] == ["Half a thought"]


def test_tools_and_thinking_are_folded(slow, pace):
    agent = slow.agent()
    page = slow.page(f"/agents/{agent}")
    send(page, "Remember the brand")
    arguments = json.dumps({"title": HOSTILE.replace("\u0000", ""), "description": "All of it", "asset_type": "document", "content": "# Lamp\n\n[oil](javascript:alert(1)) ![x](https://evil.test/x.png)"})
    pace.say({"reasoning_content": "They want a lamp."}, "I write it. ", {"tool_calls": [{"index": 0, "id": "call_1", "type": "function", "function": {"name": "generate_asset", "arguments": arguments}}]}, None)
    expect(replies(page)).to_contain_text("They want a lamp. I write it.".split(". ")[1])
    idle(page)
    step = page.locator("details.step", has_text="Generate asset")
    expect(page.locator("details.step", has_text="Thinking")).to_contain_text("They want a lamp.")
    expect(step.get_by_role("heading", name="Answer")).to_be_hidden()
    step.locator("summary").click()
    expect(step.get_by_role("heading", name="Answer")).to_be_visible()
    card = page.get_by_role("article", name=re.compile("Proposed document"))
    expect(card).to_contain_text("<script>")
    card.get_by_role("button", name="Read").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("heading", name="Lamp")).to_be_visible()
    assert dialog.locator("img").count() == 0
    assert dialog.locator("a[href^='javascript']").count() == 0
    assert page.evaluate("window.hurt") is None


def test_hostile_strings_and_images_do_nothing(slow, pace):
    requests = []
    agent = slow.agent(name=HOSTILE.replace("\u202e\u0000", ""), goal=HOSTILE.replace("\u0000", ""))
    page = slow.page(f"/agents/{agent}")
    page.on("request", lambda request: requests.append(request.url))
    send(page, HOSTILE.replace("\u0000", ""))
    pace.say("![a chart](https://evil.test/?q=1) <img src=https://evil.test/2> [b](javascript:alert(1))\n\n<iframe src=https://evil.test/3></iframe>\n\n", HOSTILE.replace("\u0000", ""), " [c](https://evil.test/4)", None)
    expect(replies(page)).to_contain_text("c (evil.test)")
    idle(page)
    page.reload()
    expect(replies(page)).to_contain_text("c (evil.test)")
    assert page.evaluate("window.hurt") is None
    assert page.locator("main :is(img, iframe, script)").count() == 0
    assert [url for url in requests if "evil.test" in url] == []
    links = page.locator(".reply .md a").evaluate_all("(all) => all.map((a) => [a.href, a.rel])")
    assert links == [["https://evil.test/?q=1", "noopener noreferrer"], ["https://evil.test/4", "noopener noreferrer"]]


def test_enter_belongs_to_the_input_method_while_it_composes(owner):
    page = owner.page(f"/agents/{owner.agent()}")
    field = page.get_by_label("Message to Market watch")
    field.focus()
    session = page.context.new_cdp_session(page)
    session.send("Input.imeSetComposition", {"text": "らんぷ", "selectionStart": 3, "selectionEnd": 3})
    field.dispatch_event("keydown", {"key": "Enter", "isComposing": True, "bubbles": True})
    field.evaluate("(node) => node.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter', keyCode: 229, bubbles: true }))")
    expect(page.locator(".said")).to_have_count(0)
    session.send("Input.insertText", {"text": "ランプ"})
    expect(field).to_have_value("ランプ")
    page.keyboard.press("Enter")
    expect(page.locator(".said")).to_contain_text("ランプ")


def test_it_follows_the_end_only_while_one_is_there(slow, pace):
    agent = slow.agent()
    page = slow.page(f"/agents/{agent}", height=600)
    send(page, "A long one")
    pace.say("\n\n".join(f"Paragraph {number}" for number in range(40)) + "\n\n")
    expect(page.get_by_text("Paragraph 39")).to_be_in_viewport()
    page.mouse.wheel(0, -800)
    newest = page.get_by_role("button", name="Newest")
    expect(newest).to_be_visible()
    before = page.evaluate("scrollY")
    pace.say("\n\n".join(f"Paragraph {number}" for number in range(40, 80)) + "\n\n")
    expect(page.get_by_text("Paragraph 79")).to_be_attached()
    assert abs(page.evaluate("scrollY") - before) < 2
    newest.click()
    expect(page.get_by_text("Paragraph 79")).to_be_in_viewport()
    expect(newest).to_have_count(0)
    pace.say("\n\n".join(f"Paragraph {number}" for number in range(80, 99)), None)
    expect(page.get_by_text("Paragraph 98")).to_be_in_viewport()
    idle(page)


def test_chats_can_be_changed_begun_and_reset(owner):
    agent = owner.agent()
    page = owner.page(f"/agents/{agent}")
    expect(page.get_by_text("Ask for something to be written")).to_be_visible()
    send(page, "Write a brief about wicks")
    expect(page.get_by_role("article", name=re.compile("Proposed document"))).to_be_visible()
    idle(page)
    page.get_by_role("link", name="New chat").click()
    expect(page.get_by_text("Ask for something to be written")).to_be_visible()
    send(page, "Hello")
    expect(page).to_have_url(re.compile("/chat/cht_"))
    expect(page.locator(".said")).to_have_count(1)
    idle(page)
    page.get_by_role("button", name="Chats").click()
    page.get_by_role("dialog").get_by_role("link", name="Write a brief about wicks").click()
    expect(page.locator(".said")).to_contain_text("wicks")
    page.get_by_role("button", name="Reset conversation").click()
    page.get_by_role("dialog").get_by_role("button", name="Reset conversation").click()
    expect(page.locator(".said")).to_have_count(0)
    chats = owner.get(f"/agents/{agent}/chats")["data"]
    assert len(chats) == 2
    assert owner.get(f"/chats/{chats[1]['chat_id']}")["messages"] == []


def frames_of_a_reply(page, pace):
    """Streams a reply, and returns the median of the times between two frames."""
    expect(page.locator(".reply.live")).to_be_visible()
    page.evaluate("""
    () => {
      window.times = [];
      let last = performance.now();
      const tick = (now) => {
        times.push(now - last);
        last = now;
        requestAnimationFrame(tick);
      };
      requestAnimationFrame(tick);
    }
    """)
    for number in range(60):
        pace.say(f"Word {number} *and* more. " + ("\n\n" if number % 10 == 9 else ""))
        # A reply that comes all at once needs only one frame.
        page.evaluate("new Promise((done) => requestAnimationFrame(done))")
    pace.say(None)
    idle(page)
    frames = sorted(page.evaluate("times"))
    return frames[len(frames) // 2]


def test_two_thousand_messages(slow, pace):
    agent = slow.agent()
    said = lambda number: {"role": "user" if number % 2 == 0 else "assistant", "content": f"Message {number}\n\n- a *list*\n- of `two`\n" * 2}
    chat = slow.post(f"/agents/{agent}/chats", {"title": "Long", "messages": [said(number) for number in range(96)]})["chat_id"]
    for start in range(96, 2000, 96):
        slow.post(f"/chats/{chat}/messages", {"messages": [said(number) for number in range(start, min(start + 96, 2000))]})
    page = slow.page(f"/agents/{agent}")
    expect(page.get_by_text("Message 1999").first).to_be_in_viewport()
    older = page.get_by_role("button", name="Older messages")
    count = 50
    while older.count():
        older.click()
        count = min(count + 200, 2000)
        expect(page.locator(".talk > li")).to_have_count(count)
    assert count == 2000
    page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
    send(page, "And now?")
    expect(page.locator(".typing")).to_be_visible()
    # So long a conversation is summarised first.
    pace.say("They talked about lamps.", None)
    slow.wait(lambda: len(pace.asked) == 2)
    long = frames_of_a_reply(page, pace)
    # The same reply in an empty chat, on the same machine.
    other = slow.page(f"/agents/{agent}/chat/new")
    send(other, "And now?")
    slow.wait(lambda: len(pace.asked) == 3)
    short = frames_of_a_reply(other, pace)
    print(f"median of frames: {long:.0f} ms among 2,000 messages, {short:.0f} ms in an empty chat")
    assert long < 3 * short + 34
    page.bring_to_front()
    mark = page.get_by_text("For the model, a summary replaces what is above")
    mark.click()
    expect(page.get_by_text("They talked about lamps.")).to_be_visible()
    page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
    expect(page.get_by_text("Word 59").first).to_be_in_viewport()


def test_a_reply_that_needs_money_asks_and_goes_on(tmp_path, browser, pace):
    platform = Platform(tmp_path, auth="off", environment={
        **pace.environment(),
        "LAMPLIGHTER_PRICES": '{"compatible/*": {"input": 1000000, "output": 4000000}}',
        "LAMPLIGHTER_RUN_BUDGET_MICROS": "100",
    })
    owner = Owner(platform, browser)
    try:
        page = owner.page(f"/agents/{owner.agent()}")
        send(page, "Write something long")
        card = page.get_by_role("article", name="A ceiling of costs is reached")
        expect(card).to_be_visible()
        idle(page)
        shot(page, "chat-ceiling-light")
        page.reload()
        expect(card).to_be_visible()
        card.get_by_role("button", name=re.compile("Raise it by")).click()
        pace.say("It is written.", None)
        expect(replies(page)).to_contain_text("It is written.")
        idle(page)
        expect(card).to_have_count(0)
    finally:
        owner.close()
        platform.end()


# One pixel.
PNG = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")


def test_images_go_with_a_message(slow, pace):
    agent = slow.agent()
    page = slow.page(f"/agents/{agent}")
    add = page.get_by_label("Add images")
    add.set_input_files([{"name": f"{name}.png", "mimeType": "image/png", "buffer": PNG} for name in ("one", "two")])
    pictures = page.get_by_role("list", name="Images of the message")
    expect(pictures.get_by_role("img")).to_have_count(2)
    assert pictures.get_by_role("img").first.evaluate("(image) => image.decode().then(() => image.naturalWidth)") == 1
    page.get_by_role("button", name="Remove one.png").click()
    expect(pictures.get_by_role("img")).to_have_count(1)
    add.set_input_files([{"name": "notes.txt", "mimeType": "text/plain", "buffer": b"x"}])
    expect(page.get_by_role("alert")).to_contain_text("notes.txt is not a PNG")
    add.set_input_files([{"name": "huge.png", "mimeType": "image/png", "buffer": PNG + bytes(3_000_000)}])
    expect(page.get_by_role("alert")).to_contain_text("huge.png is too large")
    # A picture from the clipboard.
    page.get_by_label("Message to").evaluate("""
    (field, png) => {
      const transfer = new DataTransfer();
      transfer.items.add(new File([Uint8Array.from(png)], "pasted.png", { type: "image/png" }));
      field.dispatchEvent(new ClipboardEvent("paste", { clipboardData: transfer, bubbles: true, cancelable: true }));
    }
    """, list(PNG))
    expect(pictures.get_by_role("img", name="pasted.png")).to_be_visible()
    shot(page, "chat-images-light")
    send(page, "What is this?")
    pace.say("A dot.", None)
    expect(replies(page)).to_contain_text("A dot.")
    idle(page)
    expect(pictures).to_have_count(0)
    expect(page.locator(".said")).to_contain_text("2 images")
    assert [one["media_type"] for one in stored(slow, agent)[0]["images"]] == ["image/png"] * 2


AXE = pathlib.Path(os.environ.get("AXE", pathlib.Path(__file__).parent / "node_modules/axe-core/axe.min.js"))


def violations(page):
    """What axe finds wrong with the page."""
    page.evaluate(AXE.read_text(encoding="utf-8") + "; 0")
    found = page.evaluate("axe.run(document, { resultTypes: ['violations'] })")
    assert len(found["passes"]) > 10, "axe has looked at the page"
    return [(one["id"], [node["target"] for node in one["nodes"]], one["nodes"][0]["failureSummary"]) for one in found["violations"]]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_everybody_can_use_it(slow, pace, theme):
    agent = slow.agent()
    page = slow.page(f"/agents/{agent}", theme=theme)
    send(page, "Everything")
    arguments = json.dumps({"title": "Lamp", "description": "All of it", "asset_type": "document", "content": "# Lamp"})
    pace.say({"reasoning_content": "Well."}, "# A title\n\n[oil](https://shop.test) and `code`\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n```js\nconst a = 'x'; // why\n```\n\n> quoted ![chart](https://shop.test/a.png)\n\n- [x] done\n")
    expect(page.get_by_text("done")).to_be_visible()
    assert violations(page) == [], "while it is written"
    pace.say({"tool_calls": [{"index": 0, "id": "call_1", "type": "function", "function": {"name": "generate_asset", "arguments": arguments}}]}, None)
    expect(page.get_by_role("article", name=re.compile("Proposed document"))).to_be_visible()
    idle(page)
    page.locator("details.step summary").last.click()
    shot(page, f"chat-everything-{theme}")
    assert violations(page) == []
    page.goto(f"{slow.platform.url}/#/setup")
    expect(page.get_by_label("Your message")).to_be_visible()
    assert violations(page) == []


@pytest.mark.parametrize("width", [320, 390])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_narrow_screens(owner, width, theme):
    agent = owner.agent()
    owner.post(f"/agents/{agent}/chat", {"message": "Write a brief about lamp oil prices"})
    page = owner.page(f"/agents/{agent}", width=width, height=700, theme=theme)
    expect(page.get_by_role("article", name=re.compile("Proposed document"))).to_be_visible()
    shot(page, f"chat-{width}-{theme}")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.goto(f"{owner.platform.url}/#/setup")
    send(page, "A research agent that watches the prices of three competitors")
    idle(page)
    send(page, "It works if I get one page that names every change, until March")
    expect(page.get_by_label("Name")).to_have_value("Research agent")
    idle(page)
    # The end of the conversation is in sight, and the draft is below it.
    expect(page.get_by_label("Your message")).to_be_in_viewport()
    page.get_by_role("button", name="See the draft").click()
    expect(page.get_by_label("Name")).to_be_in_viewport()
    shot(page, f"setup-{width}-{theme}")
    # Also what is out of sight has its width.
    assert page.locator(".said").first.evaluate("(node) => node.offsetWidth") > width / 2
    assert page.evaluate("document.documentElement.scrollWidth") <= width
