"""Actions: approving, rehearsing, editing, running, and what their pages show."""

import datetime
import http.server
import json
import re
import threading

import pytest
from conftest import Owner, Platform, axe, shot
from playwright.sync_api import expect

TASK = {"instructions": "Read three price pages and write one page.", "expected_output": "Every price change is named"}


class ScriptedModel:
    """
    A model server with the format of OpenAI. `script(messages)` returns a text, or the name and the arguments of a call. `verdict` is what
    checks of outputs answer.
    """

    def __init__(self, script, verdict):
        self.script = script
        self.verdict = verdict
        model = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                model.answer(self, body)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def environment(self):
        return {
            "LAMPLIGHTER_MODEL_URL": f"http://127.0.0.1:{self.server.server_port}",
            "LAMPLIGHTER_MODEL": "compatible/scripted",
            "LAMPLIGHTER_PRICES": json.dumps({"compatible/*": "free"}),
        }

    def answer(self, handler, body):
        messages = body["messages"]
        is_check = "lamplighter:check" in str(messages[0].get("content"))
        says = json.dumps(self.verdict) if is_check else self.script(messages)
        if isinstance(says, str):
            delta, finish = {"role": "assistant", "content": says}, "stop"
        else:
            name, arguments = says
            call = {"index": 0, "id": "call_1", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
            delta, finish = {"role": "assistant", "content": None, "tool_calls": [call]}, "tool_calls"
        base = {"id": "c", "object": "chat.completion.chunk", "created": 0, "model": body["model"]}
        chunks = [
            {**base, "choices": [{"index": 0, "delta": delta, "finish_reason": None}], "usage": None},
            {**base, "choices": [{"index": 0, "delta": {}, "finish_reason": finish}], "usage": None},
            {**base, "choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": 10, "total_tokens": 20}},
        ]
        text = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"
        handler.send_response(200)
        handler.send_header("content-type", "text/event-stream")
        handler.end_headers()
        handler.wfile.write(text.encode())

    def stop(self):
        self.server.shutdown()


@pytest.fixture
def scripted(tmp_path, browser):
    """Starts a platform whose model follows a script, and gives its owner."""
    opened = []

    def start(script, verdict={"score": 90, "meets": True, "missing": []}):
        model = ScriptedModel(script, verdict)
        platform = Platform(tmp_path, auth="off", environment=model.environment)
        owner = Owner(platform, browser)
        opened.append((model, platform, owner))
        return owner

    yield start
    for model, platform, owner in opened:
        try:
            owner.close()
        finally:
            platform.end()
            model.stop()


def said(messages):
    return [message["content"] for message in messages if isinstance(message.get("content"), str)]


def draft(owner, **fields):
    agent = owner.agent()
    return agent, owner.action(agent, approve=False, schedule={"cron": "0 9 * * MON", "timezone": "UTC"}, **fields)


def state(owner, action):
    return owner.get(f"/actions/{action}")["state"]


def test_an_action_is_approved_by_mouse(owner):
    _, action = draft(owner)
    page = owner.page(f"/actions/{action}")
    expect(page.get_by_text("Nothing runs before you have approved it.")).to_be_visible()
    shot(page, "action to approve light")
    page.get_by_role("button", name=re.compile("^Approve: runs")).click()
    expect(page.get_by_text("What you have approved")).to_be_visible()
    expect(page.get_by_role("button", name="Pause")).to_be_visible()
    stored = owner.get(f"/actions/{action}")
    assert (stored["state"], stored["approval"]["hash"]) == ("scheduled", stored["approval_hash"])


def test_an_action_is_approved_by_keyboard_alone(owner):
    _, action = draft(owner)
    page = owner.page(f"/actions/{action}")
    approve = page.get_by_role("button", name=re.compile("^Approve: runs"))
    expect(approve).to_be_visible()
    for _ in range(80):
        page.keyboard.press("Tab")
        if approve.evaluate("node => node === document.activeElement"):
            break
    else:
        pytest.fail("Tab does not reach the button")
    page.keyboard.press("Enter")
    expect(page.get_by_text("What you have approved")).to_be_visible()
    assert state(owner, action) == "scheduled"


def test_a_change_of_the_agent_shows_what_differs_and_is_approved_again(owner):
    agent = owner.agent(instructions="Write short sentences.")
    action = owner.action(agent, schedule={"cron": "0 9 * * MON"})
    owner.call("PATCH", f"/agents/{agent}", {"instructions": "Write long sentences."})
    page = owner.page(f"/actions/{action}", theme="dark")
    ticket = page.get_by_role("article", name=re.compile("changed since you approved"))
    expect(ticket.locator("del", has_text="short")).to_be_visible()
    expect(ticket.locator("ins", has_text="long")).to_be_visible()
    expect(page.locator(".verdict")).to_contain_text("no longer covers it")
    assert not owner.get(f"/actions/{action}/approval")["holds"]
    shot(page, "action changed since approved dark")
    axe(page)
    ticket.get_by_role("button", name=re.compile("^Approve")).click()
    expect(page.get_by_text("What you have approved")).to_be_visible()
    assert owner.get(f"/actions/{action}/approval")["holds"]


def test_a_rehearsal_shows_what_a_run_would_do_and_its_grant_is_approved(owner):
    agent = owner.agent()
    action = owner.action(agent, approve=False, grants=["generate_actions"])
    page = owner.page(f"/actions/{action}")
    page.get_by_role("button", name="Rehearse").click()
    section = page.get_by_role("region", name="Rehearsal")
    expect(section).to_contain_text("It would have saved 1 output.")
    expect(section.get_by_role("row", name=re.compile("^propose further actions"))).to_contain_text("not needed")
    # Nothing of how the platform speaks to itself.
    for word in ("Smallest grant", "Asks for", "needs no grant", "granted"):
        expect(section).not_to_contain_text(word)
    section.get_by_role("button", name=re.compile("^Read “")).click()
    expect(page.get_by_role("dialog")).to_contain_text("demo model")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    shot(page, "action rehearsed light")
    axe(page)
    # A reload loses nothing.
    page.reload()
    page.get_by_role("button", name="Allow only what it used").click()
    ticket = page.get_by_role("article", name=re.compile("^Approval of"))
    expect(ticket).to_contain_text("It may use only what the rehearsal used: nothing.")
    ticket.get_by_role("button", name=re.compile("^Approve")).click()
    expect(page.get_by_text("What you have approved")).to_be_visible()
    stored = owner.get(f"/actions/{action}")
    assert stored["grants"] == [] and stored["approval"]["hash"] == stored["approval_hash"]
    assert owner.get(f"/actions/{action}/runs")["data"] == [], "a rehearsal is no run"


def test_an_edit_shows_the_next_times_and_what_it_withdraws(owner):
    agent = owner.agent()
    action = owner.action(agent, schedule={"cron": "0 9 * * MON", "timezone": "UTC"})
    page = owner.page(f"/actions/{action}/edit")
    expect(page.get_by_role("list", name="The next times").get_by_role("listitem")).to_have_count(5)
    expect(page.get_by_role("button", name="Save")).to_be_disabled()
    page.get_by_label("When it is due").select_option(label="Every weekday at")
    page.get_by_label("Time", exact=True).fill("07:30")
    expect(page.locator(".preview")).to_contain_text("07:30")
    expect(page.get_by_text("Saving withdraws your approval.")).to_be_visible()
    page.get_by_label("Ceiling of a month, in dollars").fill("2.50")
    page.get_by_label("Search the web").check()
    page.get_by_label("Search the web: times a run").fill("3")
    page.get_by_role("button", name="Add a condition").click()
    page.get_by_label("Words").fill("120")
    page.get_by_role("button", name="Watch something").click()
    page.get_by_label("Address").fill("https://shop.example/prices")
    page.get_by_label("Priority").select_option("high")
    shot(page, "action edit light")
    axe(page)
    # What was typed survives a reload.
    page.reload()
    expect(page.get_by_text("This is what you typed before.")).to_be_visible()
    expect(page.get_by_label("Words")).to_have_value("120")
    page.get_by_label("Search the web", exact=False).first.uncheck()
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Price report")
    stored = owner.get(f"/actions/{action}")
    assert stored["schedule"]["cron"] == "30 7 * * MON-FRI"
    assert stored["budget"]["per_month_micros"] == 2_500_000
    assert stored["conditions"] == [{"kind": "min_words", "words": 120}]
    assert stored["watches"] == [{"kind": "url", "url": "https://shop.example/prices"}]
    assert (stored["priority"], stored["grants"], stored["state"]) == ("high", [], "defined")
    expect(page.get_by_role("article", name=re.compile("changed since you approved"))).to_be_visible()


def test_a_bad_schedule_says_what_is_wrong(owner):
    _, action = draft(owner)
    page = owner.page(f"/actions/{action}/edit")
    page.get_by_label("When it is due").select_option(label="By a cron expression")
    page.get_by_label("Cron expression").fill("every now and then")
    expect(page.locator(".preview").get_by_role("alert")).to_contain_text("cron")
    page.get_by_role("button", name="Save").click()
    expect(page.locator(".problem")).to_contain_text("cron")
    expect(page.get_by_label("Cron expression")).to_have_value("every now and then")
    assert owner.get(f"/actions/{action}")["schedule"]["cron"] == "0 9 * * MON"


def test_two_pages_in_conflict_lose_nothing(owner):
    _, action = draft(owner)
    first = owner.page(f"/actions/{action}/edit")
    second = owner.page(f"/actions/{action}/edit")
    expect(second.get_by_label("Title")).to_have_value("Price report")
    expect(first.get_by_label("Title")).to_have_value("Price report")
    first.get_by_label("Title").fill("Prices of the first page")
    first.get_by_label("Expected output").fill("A table")
    first.get_by_role("button", name="Save").click()
    expect(first.get_by_role("heading", level=1)).to_have_text("Prices of the first page")
    second.get_by_label("Title").fill("Prices of the second page")
    second.get_by_label("Instructions").fill("Look at two pages.")
    second.get_by_role("button", name="Save").click()
    conflict = second.get_by_role("alert", name="Somebody else has changed this action")
    expect(conflict).to_contain_text("Their change is taken over, because you did not touch it: the expected output.")
    expect(conflict.locator("del")).to_have_text("first")
    expect(conflict.locator("ins")).to_have_text("second")
    assert owner.get(f"/actions/{action}")["title"] == "Prices of the first page"
    shot(second, "action edit conflict light")
    axe(second)
    conflict.get_by_role("button", name="Keep mine").click()
    conflict.get_by_role("button", name="Go on").click()
    second.get_by_role("button", name="Save").click()
    expect(second.get_by_role("heading", level=1)).to_have_text("Prices of the second page")
    stored = owner.get(f"/actions/{action}")
    assert (stored["title"], stored["task_config"]) == ("Prices of the second page", {"instructions": "Look at two pages.", "expected_output": "A table"})


def test_times_in_conflict_are_said_in_words(owner):
    _, action = draft(owner)
    page = owner.page(f"/actions/{action}/edit")
    page.get_by_label("When it is due").select_option(label="Every day at")
    owner.call("PATCH", f"/actions/{action}", {"schedule": {"at": "2030-01-02T09:00", "timezone": "UTC"}})
    page.get_by_role("button", name="Save").click()
    conflict = page.get_by_role("alert", name="Somebody else has changed this action")
    expect(conflict).to_contain_text("Once, on Wednesday 2 January 2030 at 09:00 (UTC)")
    expect(conflict).to_contain_text("Every day at 09:00 (UTC)")
    expect(conflict).to_contain_text("It begins to repeat.")
    expect(conflict).not_to_contain_text("cron")
    axe(page)
    shot(page, "times in conflict light")
    conflict.get_by_role("button", name="Take theirs").click()
    expect(page.get_by_label("When it is due")).to_have_value("once")


def test_the_notebook_is_edited_in_conflict_and_erased(owner):
    agent = owner.agent()
    action = owner.action(agent)
    page = owner.page(f"/actions/{action}/notebook")
    text = page.get_by_label("Text of the notebook")
    text.fill("Read up to entry 4711.")
    page.get_by_role("button", name="Save the notebook").click()
    expect(page.get_by_text("version 1").first).to_be_visible()
    assert owner.get(f"/actions/{action}/notebook")["text"] == "Read up to entry 4711."
    text.fill("Read up to entry 4800.")
    owner.call("PUT", f"/actions/{action}/notebook", {"text": "Read up to entry 4712."})
    page.get_by_role("button", name="Save the notebook").click()
    conflict = page.get_by_role("alert", name="The notebook was changed meanwhile")
    expect(conflict.locator("del")).to_have_text("4712")
    expect(text).to_have_value("Read up to entry 4800.")
    conflict.get_by_role("button", name="Keep mine").click()
    page.get_by_role("button", name="Save the notebook").click()
    expect(page.get_by_role("region", name="Versions").get_by_role("listitem").filter(has_text="v 3")).to_be_visible()
    assert owner.get(f"/actions/{action}/notebook")["text"] == "Read up to entry 4800."
    shot(page, "notebook light")
    axe(page)
    text.fill("ä" * 2001)
    expect(page.get_by_role("alert")).to_contain_text("4,002 of 4,000 bytes")
    expect(page.get_by_role("button", name="Save the notebook")).to_be_disabled()
    page.get_by_role("button", name="Discard my text").click()
    page.get_by_role("button", name="Erase").click()
    page.get_by_role("dialog").get_by_role("button", name="Erase").click()
    expect(text).to_have_value("")
    expect(page.get_by_role("region", name="Versions").get_by_role("listitem")).to_have_count(1)
    assert owner.get(f"/actions/{action}/notebook")["text"] == ""


def test_a_change_is_reverted(owner):
    agent = owner.agent()
    action = owner.action(agent, schedule={"cron": "0 9 * * MON"})
    owner.call("PATCH", f"/actions/{action}", {"task_config": {"instructions": "Read one page."}})
    page = owner.page(f"/actions/{action}")
    history = page.get_by_role("region", name="History")
    entry = history.get_by_role("listitem").filter(has_text="Changed the instructions").first
    expect(entry).to_contain_text("the approval was withdrawn")
    entry.get_by_role("button", name="See").click()
    expect(entry.locator("del").first).to_be_visible()
    entry.get_by_role("button", name="Set back to before").click()
    page.get_by_role("dialog").get_by_role("button", name="Set back").click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(history.get_by_role("listitem").filter(has_text="Changed the instructions")).to_have_count(2)
    assert owner.get(f"/actions/{action}")["task_config"]["instructions"] == TASK["instructions"]


def test_a_run_by_hand_is_seen_to_its_end(owner):
    agent = owner.agent()
    action = owner.action(agent)
    page = owner.page(f"/actions/{action}")
    # The page stays while the run that has begun is read, and so does the place of the person.
    page.get_by_role("button", name="Run now").press("Enter")
    expect(page.get_by_role("heading", level=1)).to_be_focused()
    lamp = page.locator(".nights").get_by_role("link", name=re.compile("succeeded, by hand"))
    expect(lamp).to_be_visible()
    expect(page.locator(".nights .legend")).to_contain_text("1 ran")
    shot(page, "action ran light")
    lamp.click()
    expect(page.locator(".verdict")).to_contain_text("saved 1 output, and the check gave it 50 of 100")
    steps = page.get_by_role("list", name="Steps of the run").locator(":scope > li")
    expect(steps).to_have_count(4)
    steps.filter(has_text="save_output").locator("summary").click()
    expect(steps.filter(has_text="save_output")).to_contain_text("asset_type")
    expect(steps.last).to_contain_text("Check of what was expected")
    page.get_by_role("region", name="Outputs").get_by_role("button", name="Read").click()
    expect(page.get_by_role("dialog")).to_contain_text("Lamplighter's demo model wrote this")
    page.keyboard.press("Escape")
    shot(page, "run light")
    axe(page)
    page.get_by_role("button", name="Run again").click()
    expect(page.get_by_role("navigation", name="Runs of this action").get_by_role("link")).to_have_count(2)
    expect(page.locator(".verdict")).to_contain_text("saved 1 output")
    runs = owner.get(f"/actions/{action}/runs")["data"]
    assert [run["state"] for run in runs] == ["succeeded", "succeeded"]
    assert page.url.endswith(runs[0]["run_id"])


def asks_for_a_week(messages):
    answers = [text.split("The person answered: ")[1] for text in said(messages) if "The person answered: " in text]
    if any(text.startswith("saved") for text in said(messages)):
        return "It is done."
    if answers:
        return "save_output", {"title": "Report", "content": f"About {answers[-1]}", "asset_type": "document"}
    return "ask_person", {"question": "Which week?"}


def test_a_run_that_waits_is_answered_on_its_page(scripted):
    owner = scripted(asks_for_a_week)
    action = owner.action(owner.agent())
    run = owner.post(f"/actions/{action}/run")["run_id"]
    owner.wait(lambda: state(owner, action) == "needs_approval")
    page = owner.page(f"/runs/{run}")
    card = page.get_by_role("article", name=re.compile("asks$"))
    expect(card).to_contain_text("Which week?")
    expect(page.locator(".verdict")).to_contain_text("Waits for you.")
    shot(page, "run waits light")
    axe(page)
    card.get_by_label("Answer in words…").fill("Week 47")
    card.get_by_role("button", name="Answer").click()
    expect(page.locator(".verdict")).to_contain_text("the check gave it")
    expect(page.get_by_role("list", name="Steps of the run")).to_contain_text("Waits for you")
    page.get_by_role("region", name="Outputs").get_by_role("button", name="Read").click()
    expect(page.get_by_role("dialog")).to_contain_text("About Week 47")


def saves_once(messages):
    if any(text.startswith("saved") for text in said(messages)):
        return "It is done."
    return "save_output", {"title": "Report", "content": "One price.", "asset_type": "document"}


def test_a_refused_output_says_what_it_lacks(scripted):
    owner = scripted(saves_once, {"score": 30, "meets": False, "missing": ["no source is named", "two of three shops are missing"]})
    soon = (datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=3)).strftime("%Y-%m-%dT%H:%M:%SZ")
    action = owner.action(owner.agent(), schedule={"at": soon})
    owner.wait(lambda: owner.get("/inbox")["data"])
    page = owner.page("/")
    card = page.get_by_role("article", name="Price report failed")
    lacks = page.get_by_role("list", name="What is missing").get_by_role("listitem")
    expect(lacks).to_have_text(["No source is named", "Two of three shops are missing"])
    axe(page)
    card.get_by_role("button", name="Read the output").click()
    expect(page.get_by_role("dialog")).to_contain_text("One price.")
    page.keyboard.press("Escape")
    card.get_by_role("link", name="See the run").click()
    check = page.get_by_role("region", name="The check")
    expect(check).to_contain_text("not accepted")
    expect(check).to_contain_text("Every price change is named")
    expect(lacks).to_have_text(["No source is named", "Two of three shops are missing"])
    expect(page.get_by_role("button", name="Read the output")).to_be_visible()
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme)
        axe(page)
        shot(page, f"refused output {theme}")
    assert owner.get(f"/actions/{action}/runs")["data"][0]["state"] == "failed"


def test_a_check_says_its_score_and_what_it_measured_by(owner):
    action = owner.action(owner.agent())
    run = owner.run(action)
    page = owner.page(f"/runs/{run['run_id']}")
    check = page.get_by_role("region", name="The check")
    expect(check).to_contain_text(f"{run['score']} of 100")
    expect(check).to_contain_text("Every price change is named")


def test_a_run_that_works_is_shown_and_cancelled(scripted):
    goes_on = threading.Event()

    def works(messages):
        goes_on.wait(30)
        return "It is done."

    owner = scripted(works)
    action = owner.action(owner.agent())
    page = owner.page(f"/actions/{action}")
    page.get_by_role("button", name="Run now").click()
    expect(page.locator(".verdict")).to_contain_text("Runs now.")
    page.get_by_role("link", name="See the run").click()
    expect(page.locator(".verdict")).to_contain_text("It began at")
    expect(page.get_by_role("list", name="Steps of the run")).to_contain_text("Works on the next step")
    shot(page, "run live light")
    page.get_by_role("button", name="Cancel").click()
    expect(page.locator(".verdict")).to_contain_text("Cancelled")
    goes_on.set()
    [stored] = owner.get(f"/actions/{action}/runs")["data"]
    assert stored["state"] == "cancelled"


def test_a_due_time_without_a_run_has_a_page(owner):
    action = owner.action(owner.agent(), schedule={"cron": "0 9 * * MON"})
    run = "run_0123456789abcdef0123456789abcdef"
    record = {**occurrence(action, "2026-11-23T09:00:00Z", state="missed", reason="the platform did not run", cost_micros=0), "run_id": run}
    context = owner.context()
    context.route(re.compile(r"/actions/[^/]+/runs\?"), lambda route: route.fulfill(json={"data": [record], "has_more": False}))
    context.route(re.compile(rf"/actions/[^/]+/runs/{run}$"), lambda route: route.fulfill(json=record))
    page = context.new_page()
    page.clock.set_fixed_time("2026-11-24T11:00:00Z")
    page.goto(f"{owner.platform.url}/#/actions/{action}")
    page.locator(".nights").get_by_role("link", name=re.compile("missed")).click()
    expect(page.locator(".verdict")).to_have_text("Missed. It was due on Monday 23 Nov at 09:00:00. The platform did not run.")
    expect(page.get_by_role("button", name="Run now")).to_be_visible()


def wants_more(messages):
    if any(message.get("role") == "tool" for message in messages):
        return "It is done without it."
    task = {"instructions": "Look", "expected_output": "A list"}
    return "generate_actions", {"actions": [{"title": "Look", "description": "Look", "priority": "low", "task_config": task}]}


def test_a_call_without_a_grant_is_refused_on_the_page_of_the_action(scripted):
    owner = scripted(wants_more)
    action = owner.action(owner.agent())
    run = owner.post(f"/actions/{action}/run")["run_id"]
    owner.wait(lambda: state(owner, action) == "needs_approval")
    page = owner.page(f"/actions/{action}", theme="dark")
    card = page.get_by_role("article", name="May generate_actions be called?")
    expect(card).to_be_visible()
    shot(page, "action asks dark")
    axe(page)
    card.get_by_role("button", name="Do not allow").click()
    page.get_by_label("Reason, if you like").fill("Not now")
    page.get_by_role("dialog").get_by_role("button", name="Do not allow").click()
    expect(card).to_have_count(0)
    [stored] = owner.get(f"/runs/{run}")["cards"]
    assert (stored["state"], stored["reason"]) == ("rejected", "Not now")


def test_many_are_paused_and_resumed_at_once(owner):
    agent = owner.agent()
    actions = [owner.action(agent, title, schedule={"cron": "0 9 * * MON"}) for title in ("Prices", "Stock", "News")]
    page = owner.page(f"/agents/{agent}/actions")
    scheduled = page.get_by_role("region", name="Scheduled")
    expect(scheduled.get_by_role("listitem")).to_have_count(3)
    page.keyboard.press("/")
    page.keyboard.type("stock")
    expect(scheduled.get_by_role("listitem")).to_have_count(1)
    expect(page.get_by_role("status").filter(has_text="1 of 3 actions")).to_be_visible()
    page.get_by_label("Filter the actions").fill("")
    page.get_by_label("Choose Prices").check()
    page.get_by_label("Choose News").check()
    shot(page, "actions light")
    page.get_by_role("button", name="Pause 2").click()
    paused = page.get_by_role("region", name="Paused")
    expect(paused.get_by_role("listitem")).to_have_count(2)
    assert [state(owner, action) for action in actions] == ["paused", "scheduled", "paused"]
    paused.get_by_role("button", name="Choose all").click()
    page.get_by_role("button", name="Resume 2").click()
    expect(scheduled.get_by_role("listitem")).to_have_count(3)
    assert {state(owner, action) for action in actions} == {"scheduled"}


def test_what_a_change_of_the_agent_withdrew_is_approved_together(owner):
    agent = owner.agent(instructions="Write short sentences.")
    actions = [owner.action(agent, title, schedule={"cron": "0 9 * * MON"}) for title in ("Prices", "Stock")]
    owner.call("PATCH", f"/agents/{agent}", {"instructions": "Write long sentences."})
    page = owner.page(f"/agents/{agent}/actions", theme="dark")
    expect(page.get_by_text("A change of the agent withdrew 2 approvals.")).to_be_visible()
    page.get_by_role("button", name="Choose all of them").click()
    page.get_by_role("button", name="Approve 2…").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.locator("ins", has_text="long")).to_have_count(2)
    shot(page, "actions approve many dark")
    axe(page)
    assert all(not owner.get(f"/actions/{action}/approval")["holds"] for action in actions)
    dialog.get_by_role("button", name="Approve 2 actions").click()
    expect(page.locator(".banner", has_text="2 actions approved.")).to_be_visible()
    assert all(owner.get(f"/actions/{action}/approval")["holds"] for action in actions)


def test_a_new_action_is_defined_by_a_form(owner):
    agent = owner.agent()
    page = owner.page(f"/agents/{agent}/actions")
    expect(page.get_by_text("This agent has no actions yet")).to_be_visible()
    page.get_by_role("link", name="New action").click()
    page.get_by_role("button", name="Add the action").click()
    expect(page.get_by_role("alert")).to_have_text(["It needs a title.", "Say what it should do.", "Say what you expect."])
    page.get_by_label("Title").fill("<b>Weekly</b> report")
    page.get_by_label("Instructions").fill("Write it.")
    page.get_by_label("Expected output").fill("A page")
    expect(page.get_by_role("alert")).to_have_count(0)
    page.get_by_label("When it is due").select_option(label="Every week on")
    page.get_by_label("Thursday").check()
    page.get_by_label("Time zone").fill("America/New_York")
    expect(page.locator(".preview")).to_contain_text("New_York")
    page.get_by_role("button", name="Add the action").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("<b>Weekly</b> report")
    [stored] = owner.get(f"/actions?agent_id={agent}")["data"]
    assert (stored["schedule"]["cron"], stored["schedule"]["timezone"]) == ("0 9 * * MON,THU", "America/New_York")
    assert (stored["title"], stored["state"]) == ("<b>Weekly</b> report", "defined")


def test_a_call_is_defined_and_changed_by_a_form(owner):
    owner.call("PUT", "/account/secrets/github", {"value": "ghp_0123456789-x9Qw", "hosts": ["example.com"]})
    agent = owner.agent()
    page = owner.page(f"/agents/{agent}/actions?new", theme="dark")
    page.get_by_label("Title").fill("Rebuild the shop")
    page.get_by_label("How", exact=True).select_option(label="It sends a request, without a model")
    expect(page.get_by_label("Instructions")).to_have_count(0)
    page.get_by_label(re.compile("^Headers")).fill("X-Team: shop\nnot a header")
    page.get_by_label("Minutes until its report").fill("0")
    page.get_by_role("button", name="Send a secret in a header").click()
    page.get_by_role("button", name="Add the action").click()
    expect(page.get_by_role("alert")).to_have_text([
        "It needs an address.", "Write each line as a name, a colon and a value.", "It needs the name of a header and a secret.", "Enter 1 to 1440, or nothing.",
    ])
    page.get_by_label("Address").fill("http://10.0.0.7/rebuild")
    page.get_by_label(re.compile("^Headers")).fill("X-Team: shop: one\nAUTHORIZATION: mine")
    expect(page.get_by_text("A header may be named only once.")).to_be_visible()
    page.get_by_label(re.compile("^Headers")).fill("X-Team: shop: one")
    page.get_by_label(re.compile("^Body")).fill('{"reason": "<b>daily</b>"}')
    page.get_by_label("Secret 1", exact=True).select_option("github")
    page.get_by_label("Minutes until its report").fill("30")
    page.get_by_role("button", name="Add the action").click()
    expect(page.get_by_role("alert")).to_contain_text("call.url")
    shot(page, "action call form dark")
    axe(page)
    page.get_by_label("Address").fill("https://example.com/hooks/rebuild")
    page.get_by_role("button", name="Add the action").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Rebuild the shop")
    [stored] = owner.get(f"/actions?agent_id={agent}")["data"]
    assert stored["call"] == {
        "url": "https://example.com/hooks/rebuild", "method": "POST", "body": '{"reason": "<b>daily</b>"}', "headers": {"X-Team": "shop: one"},
        "secret_headers": {"Authorization": {"secret": "github", "prefix": "Bearer "}}, "expect_report_within_minutes": 30,
    }
    ticket = page.get_by_role("article", name=re.compile("^Approval of"))
    expect(ticket).to_contain_text("must come within 30 minutes")
    expect(ticket).to_contain_text("nothing: no model is asked")
    ticket.get_by_role("button", name=re.compile("^Approve")).click()
    owner.wait(lambda: owner.get(f"/actions/{stored['action_id']}/approval")["holds"])

    page = owner.page(f"/actions/{stored['action_id']}/edit")
    expect(page.get_by_label("How", exact=True)).to_have_count(0)
    expect(page.get_by_text("Nothing is changed yet.")).to_be_visible()
    page.get_by_label("Method").select_option("DELETE")
    expect(page.get_by_label(re.compile("^Body"))).to_have_count(0)
    page.get_by_role("button", name="Remove").click()
    expect(page.get_by_text("You change: the request. Saving withdraws your approval.")).to_be_visible()
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Rebuild the shop")
    call = owner.get(f"/actions/{stored['action_id']}")["call"]
    assert (call["method"], call.get("body"), call.get("secret_headers"), call["headers"]) == ("DELETE", None, None, {"X-Team": "shop: one"})


def test_an_action_is_changed_in_a_conversation(owner):
    action = owner.action(owner.agent(), schedule={"cron": "0 9 * * MON"})
    page = owner.page(f"/actions/{action}/talk")
    page.get_by_label("Message about this action").fill("Name the sources, too")
    page.keyboard.press("Enter")
    card = page.get_by_role("article", name=re.compile("^Proposed change of an action"))
    expect(card).to_be_visible()
    messages = page.locator(".about-said > li")
    expect(messages.first).to_contain_text("Name the sources, too")
    expect(page.get_by_label("Message about this action")).to_have_value("")
    stored = owner.get(f"/actions/{action}/messages")["data"]
    expect(messages).to_have_count(len(stored))
    shot(page, "action talk light")
    axe(page)
    expect(card).to_contain_text("It stays approved.")
    card.get_by_role("button", name="Change it").click()
    expect(card).to_have_count(0)
    changed = owner.get(f"/actions/{action}")
    assert "Name the sources, too" in changed["task_config"]["instructions"]
    assert changed["approval"]["hash"] == changed["approval_hash"]


def test_a_proposed_time_is_said_in_words(owner):
    day = datetime.date.today() + datetime.timedelta(days=30)
    words = f"Once, on {day:%A} {day.day} {day:%B %Y} at 09:00 (UTC)"
    agent = owner.agent()
    action = owner.action(agent, "Weekly price report", schedule={"cron": "0 9 * * MON"})
    owner.post(f"/actions/{action}/messages", {"content": f"Run it once on {day.day} {day:%B %Y} at 9:00 instead"})
    page = owner.page("/")
    card = page.get_by_role("article", name="Proposed change of an action: Weekly price report")
    for text in ("It no longer repeats.", "At 09:00 on Monday (UTC)", words, "It stays approved."):
        expect(card).to_contain_text(text)
    # The title names the old time. It is changed with the schedule.
    expect(card.get_by_label("Title")).to_have_value("Weekly price report")
    card.get_by_label("Title").fill("Price report of December")
    card.get_by_role("button", name="Read").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text(words)
    expect(dialog).not_to_contain_text("cron")
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme)
        axe(page)
        shot(page, f"proposed-time-{theme}")
    page.keyboard.press("Escape")
    card.get_by_role("button", name="Change it").click()
    expect(card).to_have_count(0)
    changed = owner.get(f"/actions/{action}")
    assert (changed["title"], changed["state"]) == ("Price report of December", "scheduled")
    # And what was proposed is answered where it was proposed.
    page.goto(f"{owner.platform.url}/#/actions/{action}/talk")
    line = page.locator(".outcome")
    expect(line).to_have_text(f"You approved the change of Price report of December: runs once, on {day.day} {day:%B %Y} at 09:00.")
    page.goto(f"{owner.platform.url}/#/actions/{action}/history")
    page.get_by_role("listitem").filter(has_text="Changed the title and the schedule").get_by_role("button", name="See").click()
    detail = page.locator(".detail")
    expect(detail).to_contain_text("It no longer repeats: one single time")
    expect(detail).to_contain_text(words)
    expect(detail).not_to_contain_text("cron")


def occurrence(action, due_at, **fields):
    run = "run_" + re.sub(r"\D", "", due_at).ljust(32, "0")
    return {"run_id": run, "action_id": action, "kind": "scheduled", "due_at": due_at, "state": "succeeded", "not_before": due_at, "attempts": 1, "usage": {}, "cost_micros": 30_000, **fields}


def test_days_of_a_clock_change_are_whole_days(owner):
    owner.call("PATCH", "/account", {"timezone": "Europe/Vienna"})
    action = owner.action(owner.agent(), schedule={"every": "1h"})
    # On 25 October 2026, the clock in Vienna goes back from 3:00 to 2:00, at 01:00 UTC.
    runs = [
        occurrence(action, "2026-10-25T23:00:00Z"),
        occurrence(action, "2026-10-25T22:59:00Z", state="failed", reason="the provider did not answer"),
        occurrence(action, "2026-10-25T01:30:00Z"),
        occurrence(action, "2026-10-25T00:30:00Z"),
        occurrence(action, "2026-10-24T22:00:00Z"),
        occurrence(action, "2026-10-24T21:59:00Z", state="nothing_new", reason="no price has changed"),
    ]
    context = owner.context()
    context.route(re.compile(r"/actions/[^/]+/runs\?"), lambda route: route.fulfill(json={"data": runs, "has_more": False}))
    page = context.new_page()
    page.clock.set_fixed_time("2026-10-26T11:00:00Z")
    page.goto(f"{owner.platform.url}/#/actions/{action}")
    days = page.locator(".nights > ol > li")
    expect(days).to_have_count(14)
    dates = [day.get_attribute("datetime") for day in page.locator(".nights > ol > li > time").all()]
    assert dates == [f"2026-10-{day}" for day in range(13, 27)]
    sunday = days.nth(12)
    # Four runs: two lamps, of which the failed one is never hidden, and a number for the rest.
    expect(sunday.get_by_role("link")).to_have_count(2)
    expect(sunday.get_by_role("link", name=re.compile("^Sun 25 Oct, 23:59, failed, the provider did not answer"))).to_be_visible()
    sunday.get_by_role("button", name="Sun 25 Oct: 2 more").click()
    dialog = page.get_by_role("dialog", name="Sun 25 Oct")
    expect(dialog.locator(".when")).to_have_text(["00:00", "02:30", "02:30", "23:59"])
    page.keyboard.press("Escape")
    expect(days.nth(11).get_by_role("link")).to_have_count(1)
    expect(days.nth(11).get_by_role("link", name=re.compile("^Sat 24 Oct, 23:59, nothing new"))).to_be_visible()
    expect(days.nth(13).get_by_role("link", name=re.compile("^Mon 26 Oct, 00:00, succeeded"))).to_be_visible()
    expect(days.nth(13)).to_have_class(re.compile("today"))
    expect(page.locator(".nights .legend")).to_contain_text("4 ran")
    shot(page, "action clock change light")
    axe(page)


@pytest.mark.parametrize("address", ["/actions/act_0123456789abcdef0123456789abcdef", "/runs/run_0123456789abcdef0123456789abcdef", "/agents/agt_0123456789abcdef0123456789abcdef/actions"])
def test_what_does_not_exist_says_so(owner, address):
    owner.agent()
    page = owner.page(address)
    expect(page.get_by_role("heading", name="This does not exist")).to_be_visible()


def test_an_action_is_dismissed_and_another_deleted(owner):
    agent = owner.agent()
    first, second = owner.action(agent, "Prices"), owner.action(agent, "Stock")
    page = owner.page(f"/actions/{first}")
    page.locator("main summary", has_text="More").click()
    page.get_by_role("button", name="Dismiss").click()
    page.get_by_role("dialog").get_by_role("button", name="Dismiss").click()
    expect(page.locator(".verdict")).to_contain_text("Dismissed.")
    assert state(owner, first) == "dismissed"
    page.goto(f"{owner.platform.url}/#/agents/{agent}/actions")
    page.get_by_role("link", name="Stock").click()
    page.locator("main summary", has_text="More").click()
    page.get_by_role("button", name="Delete").first.click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Market watch")
    expect(page.get_by_text("1 action", exact=True)).to_be_visible()
    assert [one["action_id"] for one in owner.get(f"/actions?agent_id={agent}")["data"]] == [first]
    assert second != first


# What a page shows or says with a character that turns the direction of a text. The values of fields are not among it.
TURNED = """() => {
  const turns = /[\\u202a-\\u202e\\u2066-\\u2069]/;
  const texts = [document.title];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) texts.push(walker.currentNode.data);
  for (const node of document.querySelectorAll("*")) for (const { name, value } of node.attributes) if (/^(aria-|title$|placeholder$|alt$|label$)/.test(name)) texts.push(value);
  return texts.filter((text) => turns.test(text));
}"""

HOSTILE = "<img src=x onerror=thrown.push(1)><a href=javascript:thrown.push(2)>x</a> ‮{{7*7}}"


def test_hostile_texts_are_only_texts(scripted):
    owner = scripted(lambda messages: ("save_output", {"title": HOSTILE, "content": f"# {HOSTILE}\n\n![x](https://evil.example/x.png) [y](javascript:alert(1))", "asset_type": "document"}) if not any(text.startswith("saved") for text in said(messages)) else HOSTILE)
    agent = owner.agent(name=HOSTILE.replace("\u202e", ""), goal=HOSTILE, instructions=HOSTILE)
    action = owner.action(agent, HOSTILE, description=HOSTILE, task_config={"instructions": HOSTILE, "expected_output": HOSTILE}, schedule={"cron": "0 9 * * MON"})
    owner.call("PUT", f"/actions/{action}/notebook", {"text": HOSTILE})
    run = owner.run(action)["run_id"]
    owner.call("PATCH", f"/agents/{agent}", {"instructions": f"{HOSTILE} changed"})
    context = owner.context()
    asked = []
    context.on("request", lambda request: asked.append(request.url))
    for address in (f"/actions/{action}", f"/actions/{action}/edit", f"/actions/{action}/talk", f"/actions/{action}/notebook", f"/actions/{action}/history", f"/agents/{agent}/actions", f"/runs/{run}"):
        page = owner.page(address, context=context)
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        expect(page.locator("main img, main [href^='javascript']")).to_have_count(0)
        expect(page.get_by_text("\ufffd").first).to_be_visible()
        assert page.evaluate(TURNED) == [], address
    page.get_by_role("region", name="Outputs").get_by_role("button", name="Read").click()
    expect(page.get_by_role("dialog")).to_contain_text("onerror=")
    expect(page.get_by_role("dialog")).to_contain_text("\ufffd{{7*7}}")
    expect(page.locator("img, [href^='javascript']")).to_have_count(0)
    assert page.evaluate(TURNED) == []
    assert [url for url in asked if not url.startswith(owner.platform.url)] == []


def test_a_ticket_cannot_be_turned_around(owner):
    title = "Send \u202eMONEY to Bob\u2066\u200f"
    _, action = draft(owner, title=title)
    page = owner.page("/")
    ticket = page.get_by_role("article", name="Approval of Send \ufffdMONEY to Bob\ufffd")
    expect(ticket.get_by_role("heading", level=3)).to_have_text("Send \ufffdMONEY to Bob\ufffd\u200f")
    shot(page, "ticket turned light")
    # A field has the text as it is, and what is saved is what was there.
    page.goto(f"{owner.platform.url}/#/actions/{action}/edit")
    expect(page.get_by_label("Title")).to_have_value(title)
    page.get_by_label("Expected output").fill("A table")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("\ufffdMONEY")
    assert owner.get(f"/actions/{action}")["title"] == title


def test_a_long_word_stays_on_its_ticket(owner):
    agent = owner.agent(name="A" * 80)
    action = owner.action(agent, "T" * 80, approve=False, description="D" * 200, task_config={"instructions": "I" * 300, "expected_output": "E" * 200}, schedule={"cron": "0 9 * * MON"})
    owner.call("POST", f"/actions/{action}/approve", {"approval_hash": owner.get(f"/actions/{action}")["approval_hash"]})
    owner.call("PATCH", f"/agents/{agent}", {"instructions": "C" * 300})
    for width in (1280, 1100, 900, 700, 320):
        page = owner.page("/", width=width)
        for address in ("/", f"/actions/{action}"):
            page.goto(f"{owner.platform.url}/#{address}")
            ticket = page.get_by_role("article", name=re.compile("changed since you approved"))
            expect(ticket).to_be_visible()
            if width in (1280, 320):
                shot(page, f"ticket long word {address.split('/')[1]} {width}")
            wide = page.evaluate("document.documentElement.scrollWidth")
            assert wide <= width, f"{address} is {wide} px wide at {width} px"
            edges = ticket.evaluate("(node) => { const end = node.getBoundingClientRect().right; return [...node.querySelectorAll('.btn, h3, p, dd')].filter((one) => one.getBoundingClientRect().right > end).map((one) => one.outerHTML.slice(0, 80)); }")
            assert edges == [], f"{address} at {width} px"


def test_run_now_is_done_once_although_its_answers_are_lost(owner):
    action = owner.action(owner.agent())
    page = owner.page(f"/actions/{action}")
    keys = []

    def lose(route):
        keys.append(route.request.headers["idempotency-key"])
        if len(keys) <= 3:
            # The platform gets it, and the answer is lost on the way back.
            route.fetch()
            return route.abort()
        route.continue_()

    page.route(re.compile(r"/actions/[^/]+/run$"), lose)
    page.get_by_role("button", name="Run now").click()
    expect(page.get_by_role("alert")).to_have_text(re.compile("^The platform did not answer. Press again to try it again: it is done once."))
    assert len(keys) == 3
    # The run may have ended meanwhile: only then can it be pressed again.
    owner.wait(lambda: len(owner.get(f"/actions/{action}/runs")["data"]) == 1)
    expect(page.get_by_role("button", name="Run now")).to_be_visible()
    page.get_by_role("button", name="Run now").click()
    expect(page.get_by_role("alert")).to_have_count(0)
    assert len(keys) == 4 and len(set(keys)) == 1
    assert len(owner.get(f"/actions/{action}/runs")["data"]) == 1
    # After an answer, the same press is a new wish.
    page.get_by_role("button", name="Run now").click()
    owner.wait(lambda: len(owner.get(f"/actions/{action}/runs")["data"]) == 2)
    assert len(keys) == 5 and keys[4] != keys[0]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_pages_fit_a_phone(owner, theme):
    agent = owner.agent()
    action = owner.action(agent, schedule={"cron": "0 9 * * MON"}, watches=[{"kind": "url", "url": "https://shop.example/" + "prices" * 30}])
    owner.call("PUT", f"/actions/{action}/notebook", {"text": "Read up to entry 4711."})
    run = owner.run(action)["run_id"]
    context = owner.context(width=320, height=640, theme=theme)
    for name, address, heading in [
        ("action", f"/actions/{action}", "Price report"), ("edit", f"/actions/{action}/edit", "Edit"), ("talk", f"/actions/{action}/talk", "Talk about it"),
        ("notebook", f"/actions/{action}/notebook", "Notebook"), ("history", f"/actions/{action}/history", "History"),
        ("run", f"/runs/{run}", "Price report"), ("actions", f"/agents/{agent}/actions", "Market watch"),
    ]:
        page = owner.page(address, context=context)
        expect(page.get_by_role("heading", level=1, name=heading)).to_be_visible()
        shot(page, f"{name} phone {theme}")
        axe(page)
        wide = page.evaluate("document.documentElement.scrollWidth")
        assert wide <= 320, f"{name} is {wide} px wide"
        page.close()
