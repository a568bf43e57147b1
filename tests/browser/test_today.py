"""Today: what a person sees first, and what is answered there."""

import datetime
import re
import urllib.parse

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
    ticket.get_by_role("button", name=re.compile("^Approve: runs Mon")).click()
    expect(ticket).to_have_count(0)
    assert owner.get(f"/actions/{draft}")["state"] == "scheduled"
    proposal.get_by_role("button", name="Save").click()
    expect(proposal).to_have_count(0)
    assert len(owner.get(f"/agents/{agent}/assets")["data"]) == 2
    expect(page.get_by_text("Nothing waits for you.")).to_be_visible()


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
    page.get_by_role("button", name="Start again…").click()
    dialog = page.get_by_role("dialog", name="Start again")
    dialog.get_by_role("button", name="Start", exact=True).click()
    expect(dialog).to_contain_text("Report")
    dialog.get_by_label("Leave all out").check()
    shot(page, "start-again")
    dialog.get_by_role("button", name="Start", exact=True).click()
    expect(banner).to_have_count(0)
    assert not owner.get("/account").get("stopped_at")
    assert [run["state"] for run in owner.get(f"/actions/{action}/runs")["data"]] == ["skipped"]


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
    expect(page).to_have_url(re.compile("#/$"))
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keys")).to_be_visible()


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
    expect(page.get_by_text("Nothing waits for you.")).to_be_visible()
    page.context.set_offline(True)
    page.evaluate("location.hash = '#/agents'")
    expect(page.get_by_text("No connection.")).to_be_visible()
    page.context.set_offline(False)
    expect(page.get_by_text("No connection.")).to_have_count(0)
    expect(page.get_by_role("heading", name="Agents", level=1)).to_be_visible()


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
