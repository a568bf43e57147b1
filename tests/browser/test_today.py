"""Today: what a person sees first, and what is answered there."""

import datetime
import re
import urllib.parse

import pytest
from playwright.sync_api import expect

from conftest import axe, shot


def test_first_visit_asks_for_one_sentence(owner):
    page = owner.page()
    expect(page.get_by_text("What should somebody look after for you?")).to_be_visible()
    axe(page)
    shot(page, "today-first")
    page.get_by_label("What should it look after?").fill("A research agent that reports on three competitors")
    page.get_by_role("button", name="Set up an agent").click()
    expect(page).to_have_url(re.compile("#/setup"))
    expect(page.get_by_text("A research agent that reports on three competitors").first).to_be_visible()


def test_what_is_paused_or_not_approved_does_not_vanish(owner):
    agent = owner.agent()
    paused = owner.action(agent, "Price report", schedule={"cron": "59 23 * * *"})
    owner.action(agent, "Report on three competitors", approve=False, schedule={"cron": "0 9 1 1 *"})
    owner.post(f"/actions/{paused}/pause", {})
    page = owner.page()
    idle = page.get_by_role("region", name="Will not run")
    expect(idle.get_by_role("listitem").filter(has_text="Price report")).to_contain_text("You paused the action at")
    expect(idle.get_by_role("listitem").filter(has_text="Report on three competitors")).to_contain_text("The action is not approved yet.")
    axe(page)
    shot(page, "today-will-not-run")
    owner.post(f"/actions/{paused}/resume", {})
    page = owner.page()
    expect(page.get_by_role("region", name="Will not run").get_by_role("listitem")).to_have_count(1)
    idle.get_by_role("link", name="Report on three competitors").click()
    expect(page.get_by_role("heading", name="Report on three competitors")).to_be_visible()


def test_the_zone_of_the_browser_is_offered_once(owner):
    page = owner.page(timezone_id="Asia/Tokyo")
    offer = page.get_by_role("region", name="Time zone")
    offer.get_by_role("button", name="Use Asia/Tokyo").click()
    expect(offer).to_have_count(0)
    assert owner.get("/account")["timezone"] == "Asia/Tokyo"
    expect(page.locator(".head")).to_contain_text("Tokyo")


def test_the_day_and_what_waits(owner):
    owner.call("PATCH", "/account", {"timezone": "Europe/Vienna"})
    agent = owner.agent()
    done = owner.action(agent, "Price report", schedule={"cron": "59 23 * * *"})
    owner.run(done)
    draft = owner.action(agent, "Report on three competitors", approve=False, schedule={"cron": "0 9 * * MON"})
    owner.post(f"/agents/{agent}/chat", {"message": "Write a brief about wicks"})
    page = owner.page()
    strip = page.get_by_role("region", name="The day")
    expect(strip.get_by_role("link", name=re.compile("Price report, succeeded"))).to_be_visible()
    expect(strip.get_by_role("link", name=re.compile("23:59 Price report, due"))).to_be_visible()
    ticket = page.get_by_role("article", name="Approval of Report on three competitors")
    expect(ticket).to_contain_text("Read three price pages and write one page.")
    expect(ticket).to_contain_text("Mon")
    proposal = page.get_by_role("article", name=re.compile("Proposed document"))
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme)
        axe(page)
        shot(page, f"today-{theme}")
    ticket.get_by_role("button", name="Approve: runs by itself").click()
    expect(ticket).to_have_count(0)
    assert owner.get(f"/actions/{draft}")["state"] == "scheduled"
    proposal.get_by_role("button", name="Save").click()
    expect(proposal).to_have_count(0)
    assert len(owner.get(f"/agents/{agent}/assets")["data"]) == 2
    expect(page.get_by_role("main").get_by_text("Nothing waits for you.")).to_be_visible()


def test_the_focus_stays_where_the_person_is(owner):
    agent = owner.agent()
    for title in ("Price report", "Stock report"):
        owner.action(agent, title, approve=False, schedule={"cron": "0 9 * * MON"})
    owner.post(f"/agents/{agent}/chat", {"message": "Write a brief about wicks"})
    page = owner.page()
    tickets = page.get_by_role("article", name=re.compile("^Approval of"))
    expect(tickets).to_have_count(2)
    second = tickets.nth(1).get_attribute("aria-label")
    tickets.first.get_by_role("button", name=re.compile("^Approve")).focus()
    page.keyboard.press("Enter")
    expect(tickets).to_have_count(1)
    expect(page.get_by_role("article", name=second)).to_be_focused()
    expect(page.locator("#said")).to_have_text("2 things wait for you.")
    # From the card, its buttons are the next ones.
    page.keyboard.press("Tab")
    tickets.first.get_by_role("button", name=re.compile("^Approve")).press("Enter")
    draft = page.get_by_role("article", name=re.compile("Proposed document"))
    expect(draft).to_be_focused()
    draft.get_by_role("button", name="Delete").press("Enter")
    page.get_by_role("dialog").get_by_role("button", name="Delete", exact=True).press("Enter")
    expect(draft).to_have_count(0)
    expect(page.get_by_role("heading", name="Waits for you")).to_be_focused()
    expect(page.locator("#said")).to_have_text("Nothing waits for you.")
    assert {one["state"] for one in owner.get("/actions")["data"]} == {"scheduled"}


def test_a_draft_is_read_and_deleted(owner):
    agent = owner.agent()
    owner.post(f"/agents/{agent}/chat", {"message": "Write a brief about wicks"})
    page = owner.page()
    proposal = page.get_by_role("article", name=re.compile("Proposed document"))
    proposal.get_by_role("button", name="Read").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("wicks")
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    expect(proposal.get_by_role("button", name="Read")).to_be_focused()
    proposal.get_by_role("button", name="Delete").click()
    dialog.get_by_role("button", name="Delete", exact=True).click()
    expect(proposal).to_have_count(0)
    assert owner.get(f"/agents/{agent}/proposals")["data"] == []


def test_stop_everything_and_start_again(owner):
    agent = owner.agent()
    soon = (datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=4)).strftime("%Y-%m-%dT%H:%M:%SZ")
    action = owner.action(agent, "Report", schedule={"at": soon})
    page = owner.page()
    page.get_by_role("button", name="Stop everything…").click()
    page.get_by_role("dialog").get_by_role("button", name="Stop everything").click()
    banner = page.get_by_text("Everything is stopped.")
    expect(banner).to_be_visible()
    assert owner.get("/account")["stopped_at"]
    axe(page)
    shot(page, "stopped")
    owner.wait(lambda: datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ") > soon)
    page.locator(".stopped").get_by_role("button", name="Start again…").click()
    dialog = page.get_by_role("dialog", name="Start again")
    dialog.get_by_role("button", name="Start", exact=True).click()
    expect(dialog).to_contain_text("Report")
    # What cannot be taken back is not chosen beforehand, and each choice says what it does.
    expect(dialog.get_by_label("Leave all out")).to_be_checked()
    expect(dialog).to_contain_text("Nothing runs now. 1 due time is left out.")
    expect(dialog).to_contain_text("Runs now: “Report” of today")
    expect(dialog).to_contain_text(re.compile("As after an outage: “Report”: today .*, if at most 1 day late"))
    axe(page)
    shot(page, "start-again")
    dialog.get_by_role("button", name="Start: leave all out").click()
    expect(banner).to_have_count(0)
    assert not owner.get("/account").get("stopped_at")
    assert [run["state"] for run in owner.get(f"/actions/{action}/runs")["data"]] == ["skipped"]


def test_while_everything_is_stopped_nothing_is_offered_that_is_refused(owner):
    agent = owner.agent()
    action = owner.action(agent, "Report", schedule={"cron": "59 23 * * *"})
    run = owner.run(action)
    owner.post("/account/stop")
    page = owner.page()
    note = page.locator(".stopped-note")
    expect(note).to_contain_text("Everything is stopped: nothing runs.")
    # It is not named as what comes next, and not said again in each row.
    expect(page.get_by_role("button", name="Run now")).to_have_count(0)
    idle = page.get_by_role("region", name="Will not run")
    expect(idle.get_by_role("link", name="Report")).to_be_visible()
    expect(idle).not_to_contain_text("stopped")
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme)
        axe(page)
        shot(page, f"stopped-{theme}")
    page.goto(f"{owner.platform.url}/#/actions/{action}")
    for name in ("Run now", "Rehearse"):
        expect(page.get_by_role("button", name=name, exact=True)).to_be_disabled()
    expect(page.get_by_role("button", name="Pause")).to_be_enabled()
    axe(page)
    page.goto(f"{owner.platform.url}/#/runs/{run['run_id']}")
    expect(page.get_by_role("button", name="Run again")).to_be_disabled()
    page.goto(f"{owner.platform.url}/#/actions/{action}/talk")
    page.get_by_label("Message about this action").fill("Why?")
    expect(page.get_by_role("button", name="Send")).to_be_disabled()
    page.goto(f"{owner.platform.url}/#/agents/{agent}")
    message = page.get_by_label("Message to Market watch")
    message.fill("Write a brief about wicks")
    message.press("Enter")
    expect(message).to_have_value("Write a brief about wicks")
    expect(page.get_by_role("button", name="Send")).to_be_disabled()
    note.get_by_role("button", name="Start again…").click()
    page.get_by_role("dialog", name="Start again").get_by_role("button", name="Start", exact=True).click()
    expect(note).to_have_count(0)
    page.get_by_role("button", name="Send").click()
    expect(page.get_by_role("article", name=re.compile("Proposed document"))).to_be_visible()
    # The page of a set-up has neither a rail nor a bar, and stops everything nevertheless.
    page.goto(f"{owner.platform.url}/#/setup")
    page.get_by_role("button", name="Stop everything…").click()
    page.get_by_role("dialog").get_by_role("button", name="Stop everything").click()
    expect(page.get_by_text("Everything is stopped.", exact=True)).to_be_visible()
    assert owner.get("/account")["stopped_at"]


def test_the_action_of_a_paused_agent_names_no_next_time(owner):
    agent = owner.agent()
    action = owner.action(agent, "Report", schedule={"cron": "59 23 * * *"})
    page = owner.page(f"/actions/{action}")
    expect(page.get_by_role("button", name="Run now", exact=True)).to_be_visible()
    expect(page.locator(".next")).to_contain_text("Next")
    owner.call("PATCH", f"/agents/{agent}", {"status": "paused"})
    page.reload()
    expect(page.locator(".next")).to_have_text("The agent is paused. Settings")
    for name in ("Run now", "Rehearse"):
        expect(page.get_by_role("button", name=name, exact=True)).to_have_count(0)
    axe(page)
    page.goto(f"{owner.platform.url}/#/agents/{agent}/actions")
    row = page.get_by_role("listitem").filter(has=page.get_by_role("link", name="Report"))
    expect(row).to_be_visible()
    expect(row.locator("time")).to_have_count(0)


def test_what_is_for_code_has_a_group_of_its_own(owner):
    owner.agent()
    page = owner.page()
    main = page.get_by_role("navigation", name="Main", exact=True)
    code = page.get_by_role("navigation", name="For code")
    expect(main.get_by_role("link", name="Agents")).to_be_visible()
    expect(main.get_by_role("link", name="Themes")).to_have_count(0)
    assert code.get_by_role("link").all_inner_texts() == ["Themes", "Context and logs", "API reference"]
    code.get_by_role("link", name="API reference").click()
    expect(page.get_by_role("heading", level=1, name="API reference")).to_be_visible()
    expect(code.get_by_role("link", name="API reference")).to_have_attribute("aria-current", "page")
    for width in (800, 390):
        page.set_viewport_size({"width": width, "height": 800})
        expect(code).to_be_hidden()
        page.get_by_role("button", name="More", exact=True).click()
        drawer = page.get_by_role("dialog", name="More")
        expect(drawer.get_by_role("heading", name="For code")).to_be_visible()
        axe(page)
        shot(page, f"more-{width}")
        drawer.get_by_role("link", name="Context and logs").click()
        expect(page).to_have_url(re.compile("#/context"))
        expect(drawer).to_have_count(0)


def test_the_palette_goes_and_finds(owner):
    agent = owner.agent("Release notes")
    page = owner.page()
    expect(page.get_by_role("link", name="Release notes")).to_be_visible()
    page.keyboard.press("Control+k")
    page.keyboard.type("release")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(agent))
    page.keyboard.press("Escape")
    page.locator("h1").wait_for()
    page.get_by_role("main").focus()
    page.keyboard.press("g")
    page.keyboard.press("t")
    # The address changes before the page does, and a new page closes dialogs.
    expect(page).to_have_title("Today · Lamplighter")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keys")).to_be_visible()


def test_the_palette_does_what_is_typed(owner):
    agent = owner.agent()
    report = owner.action(agent, "Price report", schedule={"cron": "0 9 * * MON"})
    owner.action(agent, "Stock report", approve=False)
    page = owner.page()
    palette = page.get_by_role("dialog", name="Search or do")

    def do(typed, offered, said):
        page.keyboard.press("Control+k")
        page.keyboard.type(typed)
        option = palette.get_by_role("option", name=offered)
        expect(option).to_be_visible()
        # Nothing but what was asked for.
        expect(palette.get_by_role("option")).to_have_count(1)
        page.keyboard.press("Enter")
        expect(page.get_by_text(said)).to_be_visible()

    do("pause price", "Pause “Price report”", "“Price report” is paused.")
    assert owner.get(f"/actions/{report}")["state"] == "paused"
    do("Resume price", "Resume “Price report”", "“Price report” runs again at its due times.")
    assert owner.get(f"/actions/{report}")["state"] == "scheduled"
    do("run price", "Run “Price report” now", "“Price report” runs now.")
    owner.wait(lambda: owner.get(f"/actions/{report}/runs")["data"][0]["state"] == "succeeded")
    # What no person has approved does not run, and the page says why.
    do("run stock", "Run “Stock report” now", "Not done: ")


RED = """(() => {
    const probe = document.createElement("i");
    document.body.append(probe);
    const reds = ["--danger", "--halt"].map((name) => { probe.style.color = `var(${name})`; return getComputedStyle(probe).color; });
    probe.remove();
    const edges = ["top", "right", "bottom", "left"];
    const isRed = (node, part) => {
        const style = getComputedStyle(node, part);
        if (part && style.content === "none") return false;
        const shown = [style.color, style.backgroundColor, ...edges.filter((edge) => parseFloat(style[`border-${edge}-width`]) > 0).map((edge) => style[`border-${edge}-color`])];
        return shown.some((color) => reds.includes(color)) || reds.some((red) => style.boxShadow.includes(red) || style.backgroundImage.includes(red));
    };
    return [...document.body.querySelectorAll("*")].filter((node) => node.checkVisibility() && [undefined, "::before", "::after"].some((part) => isRed(node, part))).map((node) => node.outerHTML.slice(0, 160));
})()"""


def test_red_is_a_failure_and_nothing_else(owner):
    agent = owner.agent()
    action = owner.action(agent, "Price report", schedule={"cron": "59 23 * * *"})
    waiting = owner.action(agent, "Report on three competitors", approve=False, schedule={"cron": "0 9 * * MON"})
    owner.post(f"/agents/{agent}/chat", {"message": "Write a brief about wicks"})
    habit = owner.post("/practices", {"name": "Walk", "target": {"kind": "times_a_week", "times": 3}})["practice_id"]
    watched = owner.post("/watched", {"name": "Nightly backup", "schedule": {"cron": "0 3 * * *"}})["watched_id"]
    owner.post("/notifications/channels", {"kind": "webhook", "url": "https://hooks.example.com/in"})
    page = owner.page()
    places = ["", "agents", f"agents/{agent}", f"agents/{agent}/settings", f"actions/{action}", f"actions/{waiting}", "practices", f"practices/{habit}",
              "watch", f"watch/schedules/{watched}", "notices", "account", "account/data", "reference", "setup"]
    for stopped in (False, True):
        if stopped:
            owner.post("/account/stop")
            page.reload()
            expect(page.get_by_text("Everything is stopped.")).to_be_visible()
        for theme in ("light", "dark"):
            page.emulate_media(color_scheme=theme)
            for place in places:
                page.goto(f"{owner.platform.url}/#/{place}")
                expect(page.locator("main h1, header h1").first).to_be_visible()
                assert page.evaluate(RED) == [], (place, theme, stopped)
    # The look finds red where something has failed.
    owner.post(f"/watched/{watched}/reports", {"exit_code": 3})
    page.goto(f"{owner.platform.url}/#/watch")
    expect(page.get_by_role("list", name="Watched schedules").get_by_text("failed", exact=True)).to_be_visible()
    assert page.evaluate(RED) != []


def test_a_ticket_says_each_time_once_and_deletes_from_its_menu(owner):
    owner.call("PATCH", "/account", {"timezone": "Europe/Vienna"})
    agent = owner.agent()
    action = owner.action(agent, "Price report", approve=False, schedule={"cron": "0 9 * * MON"}, conditions=[{"kind": "min_words", "words": 50}])
    page = owner.page()
    ticket = page.get_by_role("article", name="Approval of Price report")
    expect(ticket.get_by_role("button", name="Approve: runs by itself")).to_be_visible()
    for address in ("", f"actions/{action}"):
        page.goto(f"{owner.platform.url}/#/{address}")
        expect(ticket).to_be_visible()
        shown = ticket.inner_text()
        assert shown.count("09:00") == 1 and shown.count("Every Monday") == 1 and len(re.findall(r"\b20\d\d\b", shown)) == 1, shown
        # The model of these tests costs nothing, so no month is worth a word.
        assert "A month" not in shown
        # What only a technician reads is folded.
        details = ticket.get_by_text("at least 50 words")
        expect(details).to_be_hidden()
        ticket.get_by_text("Details", exact=True).click()
        expect(details).to_be_visible()
        axe(page)
    # The page of the action has its own menu; elsewhere Delete is behind "More", and the keyboard gets there.
    expect(ticket.get_by_role("button", name="Delete")).to_have_count(0)
    page.goto(f"{owner.platform.url}/#/")
    expect(ticket).to_be_visible()
    expect(ticket.get_by_role("button", name="Delete")).to_be_hidden()
    more = ticket.locator("summary", has_text="More")
    more.press("Enter")
    expect(ticket.get_by_role("button", name="Delete")).to_be_visible()
    axe(page)
    page.keyboard.press("Escape")
    expect(ticket.get_by_role("button", name="Delete")).to_be_hidden()
    expect(more).to_be_focused()
    more.press("Enter")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog", name="Delete this action?")
    # Who has pressed it without wanting to, leaves with the next key, and is back at the menu.
    expect(dialog.get_by_role("button", name="Cancel")).to_be_focused()
    page.keyboard.press("Enter")
    expect(dialog).to_have_count(0)
    expect(more).to_be_focused()
    more.press("Enter")
    ticket.get_by_role("button", name="Delete").click()
    dialog.get_by_role("button", name="Delete", exact=True).click()
    expect(ticket).to_have_count(0)


def typed(page, text):
    """Opens the palette and types."""
    page.keyboard.press("Control+k")
    expect(page.get_by_role("combobox", name="Search or do")).to_be_focused()
    page.keyboard.type(text)
    return page.get_by_role("dialog", name="Search or do")


def test_the_palette_finds_pages_by_the_words_people_type(owner):
    owner.agent("Market watch")
    page = owner.page()
    expect(page.get_by_role("link", name="Market watch")).to_be_visible()
    wanted = {
        "Notices page": ["notify", "notification", "tell me", "e-mail", "email", "mail", "Slack", "Discord", "Telegram", "ntfy", "Gotify", "SMTP", "webhook", "channel", "digest", "quiet hours"],
        "Keys and models page": ["key", "keys", "API key"],
        "Time zone page": ["time zone", "timezone"],
        "Budget: what a day and a month may cost page": ["budget"],
        "Export the account do": ["export"],
        "Usage page": ["usage", "costs"],
        "Market watch · Settings page": ["settings", "market settings"],
        "Market watch · Actions page": ["market actions"],
        "Living documents page": ["living"],
        "Agent logs page": ["logs"],
    }
    palette = typed(page, "")
    for offered, words in wanted.items():
        for word in words:
            palette.get_by_role("combobox").fill(word)
            expect(palette.get_by_role("option", name=offered, exact=True), word).to_be_visible()
    # Notices is the best answer, not one of many.
    palette.get_by_role("combobox").fill("tell me")
    expect(palette.get_by_role("option").first).to_contain_text("Notices")
    axe(page)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1, name="Notices")).to_be_visible()


def test_the_palette_explains_and_leads_to_the_views_of_what_it_finds(owner):
    agent = owner.agent("Market watch")
    report = owner.action(agent, "Price report")
    page = owner.page()
    expect(page.get_by_role("link", name="Market watch")).to_be_visible()
    palette = typed(page, "why price")
    expect(palette.get_by_role("option")).to_have_count(1)
    expect(palette.get_by_role("option", name="Why “Price report” ran or did not run")).to_be_visible()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(f"#/actions/{report}$"))
    expect(page.locator(".verdict")).to_contain_text("the action has no schedule")
    palette = typed(page, "price history")
    palette.get_by_role("option", name="Price report · History").click()
    expect(page).to_have_url(re.compile(f"#/actions/{report}/history$"))
    palette = typed(page, "market settings")
    expect(palette.get_by_role("option", name="Market watch · Settings")).to_be_visible()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(f"#/agents/{agent}/settings$"))


def test_what_is_pressed_right_after_a_choice_acts_on_the_new_page(owner):
    """Browsers tell of a new address only later, and much later under load."""
    agent = owner.agent("Market watch")
    context = owner.context()
    context.add_init_script(
        """addEventListener("hashchange", (event) => {
          if (event.late) return;
          event.stopImmediatePropagation();
          const late = new HashChangeEvent("hashchange", event);
          setTimeout(() => dispatchEvent(Object.assign(late, { late: true })), 400);
        }, { capture: true });"""
    )
    page = owner.page(context=context)
    expect(page.get_by_role("link", name="Market watch")).to_be_visible()
    for name, end in (("Actions", "actions"), ("Settings", "settings")):
        palette = typed(page, f"market {name.lower()}")
        expect(palette.get_by_role("option", name=f"Market watch · {name}")).to_be_visible()
        page.keyboard.press("Enter")
        expect(page).to_have_url(re.compile(f"#/agents/{agent}/{end}$"))
    page.keyboard.press("g")
    page.keyboard.press("a")
    palette = typed(page, "notices")
    page.wait_for_timeout(600)
    expect(palette.get_by_role("option", name="Notices page")).to_be_visible()


def test_the_palette_changes_the_colours(owner):
    page = owner.page()
    for word, look in (("theme dark", "dark"), ("theme light", "light")):
        palette = typed(page, word)
        expect(palette.get_by_role("option", name=f"Colours: {look}")).to_be_visible()
        page.keyboard.press("Enter")
        expect(page.locator("html")).to_have_attribute("data-theme", look)
    page.reload()
    expect(page.locator("html")).to_have_attribute("data-theme", "light")
    typed(page, "colours system")
    page.keyboard.press("Enter")
    expect(page.locator("html")).not_to_have_attribute("data-theme", "light")


def test_what_nothing_is_called_is_asked_of_the_agent(owner):
    agent = owner.agent("Market watch")
    page = owner.page()
    expect(page.get_by_role("link", name="Market watch")).to_be_visible()
    palette = typed(page, "zeppelin prices")
    expect(palette.get_by_text("Nothing is called “zeppelin prices”.")).to_be_visible()
    expect(palette.get_by_role("option")).to_have_count(1)
    expect(palette.get_by_role("option", name="Ask the agent: zeppelin prices Market watch")).to_be_visible()
    axe(page)
    page.keyboard.press("Enter")
    composer = page.get_by_role("textbox", name="Message to Market watch")
    expect(composer).to_have_value("zeppelin prices")
    expect(composer).to_be_focused()
    # In the chat itself, the text comes after what is written there. With several agents, the one that was used last is asked.
    owner.agent("Another one")
    page.reload()
    expect(page.get_by_role("navigation", name="Agents").get_by_role("link", name="Another one")).to_be_visible()
    expect(composer).to_have_value("zeppelin prices")
    palette = typed(page, "xylophone")
    expect(palette.get_by_role("option", name="Ask the agent: xylophone Market watch")).to_be_visible()
    page.keyboard.press("Enter")
    expect(composer).to_have_value("zeppelin prices\n\nxylophone")
    expect(composer).to_be_focused()
    assert owner.get(f"/agents/{agent}/chats")["data"] == [], "nothing is sent"


def test_no_key_is_lost_while_the_palette_opens(owner):
    owner.agent("Release notes")
    page = owner.page()
    expect(page.get_by_role("link", name="Release notes")).to_be_visible()
    # Both keys come before the browser has drawn a frame.
    text = page.evaluate("""async () => {
        document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "k", ctrlKey: true, bubbles: true }));
        await null;
        return document.activeElement.getAttribute("role");
    }""")
    assert text == "combobox"
    page.keyboard.type("release")
    expect(page.get_by_role("combobox")).to_have_value("release")


def test_offline_and_back(owner):
    owner.agent()
    page = owner.page()
    expect(page.get_by_role("main").get_by_text("Nothing waits for you.")).to_be_visible()
    page.context.set_offline(True)
    page.evaluate("location.hash = '#/agents'")
    expect(page.get_by_text("No connection.")).to_be_visible()
    page.context.set_offline(False)
    expect(page.get_by_text("No connection.")).to_have_count(0)
    expect(page.get_by_role("heading", name="Agents", level=1)).to_be_visible()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_button_of_the_offline_banner_can_be_read(owner, theme):
    page = owner.page(theme=theme)
    expect(page.get_by_role("main").get_by_role("heading", level=1)).to_be_visible()
    page.context.set_offline(True)
    page.evaluate("location.hash = '#/agents'")
    expect(page.get_by_role("button", name="Try now")).to_be_visible()
    shot(page, f"today offline {theme}")
    axe(page)


def test_hostile_names_are_only_text(owner):
    name = "<img src=x onerror=alert(1)>\"'`{{7*7}}${7*7}</script>"
    agent = owner.agent(name)
    owner.action(agent, name, approve=False, schedule={"cron": "0 9 * * MON"})
    page = owner.page()
    expect(page.get_by_role("heading", name=name, level=3)).to_be_visible()
    assert page.locator("img").count() == 0
    page.goto(f"{owner.platform.url}/#/agents/{urllib.parse.quote(name, safe='')}")
    expect(page.get_by_role("heading", level=1)).to_have_text(re.compile("This (does not exist|could not be read)"))
    page.goto(f"{owner.platform.url}/#/{name}")
    expect(page.get_by_text("There is no such page")).to_be_visible()
    assert page.locator("img").count() == 0


def test_a_phone(owner):
    agent = owner.agent()
    action = owner.action(agent, "Price report", schedule={"cron": "59 23 * * *"})
    owner.run(action)
    owner.action(agent, "Report on three competitors", approve=False, schedule={"cron": "0 9 * * MON"})
    page = owner.page(width=320, height=640, theme="dark")
    expect(page.get_by_role("button", name=re.compile("^Approve"))).to_be_visible()
    expect(page.get_by_role("list", name="The day").filter(visible=True)).to_contain_text("Price report")
    assert page.evaluate("document.documentElement.scrollWidth") <= 320
    axe(page)
    shot(page, "today-phone")
    page.get_by_role("button", name="More").click()
    drawer = page.get_by_role("dialog", name="More")
    expect(drawer.get_by_role("button", name="Stop everything…")).to_be_visible()
    shot(page, "phone-more")
    drawer.get_by_role("link", name="Account").click()
    expect(page).to_have_url(re.compile("#/account"))


def test_what_was_made_is_read_in_one_press(owner):
    agent = owner.agent()
    action = owner.action(agent, "Price report", schedule={"cron": "59 23 * * *"})
    run = owner.run(action)
    output = owner.get(f"/actions/{action}/runs/{run['run_id']}/outputs")["data"][0]
    page = owner.page()
    happened = page.get_by_role("region", name="Just happened")
    dialog = page.get_by_role("dialog", name="Price report")
    read = happened.get_by_role("button", name="Read what “Price report” has made")
    read.click()
    expect(dialog.get_by_role("heading", name="Every price change is named")).to_be_visible()
    expect(dialog.get_by_role("link", name="Open the asset")).to_have_attribute("href", f"#/assets/{output['asset_id']}")
    axe(page)
    shot(page, "read-from-today")
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    expect(read).to_be_focused()
    # Nothing was spent, so nothing is said about money.
    expect(page.get_by_role("main")).not_to_contain_text("$")
    page.goto(f"{owner.platform.url}/#/actions/{action}")
    page.get_by_role("button", name="Read what it made").click()
    expect(dialog.get_by_role("heading", name="Every price change is named")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("region", name="Cost")).to_have_text(re.compile(r"^Cost\s*A runat most \$1.00$"))
    page.get_by_role("region", name="Latest runs").get_by_role("button", name=re.compile("^Read")).click()
    expect(dialog.get_by_role("heading", name="Every price change is named")).to_be_visible()
    page.goto(f"{owner.platform.url}/#/runs/{run['run_id']}")
    page.get_by_role("button", name="Read the output").click()
    expect(page.get_by_role("dialog", name=output["title"]).get_by_role("heading", name="Every price change is named")).to_be_visible()
    page.keyboard.press("Escape")
    # An output may be deleted since.
    owner.call("DELETE", f"/assets/{output['asset_id']}")
    page.goto(f"{owner.platform.url}/#/")
    read.click()
    expect(dialog).to_contain_text("deleted")
