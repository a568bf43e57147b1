"""Watch: a person sees what is wrong, declares schedules that something else runs, and reads what became of them."""

import re

import pytest
from playwright.sync_api import expect

from conftest import axe, shot
from test_assets import HOSTILE, fits


def watched(owner, name="Nightly backup", **fields):
    return owner.post("/watched", {"name": name, "schedule": {"cron": "0 3 * * *"}, **fields})["watched_id"]


def test_a_schedule_is_watched_reports_and_is_deleted(owner):
    page = owner.page("/watch")
    expect(page.get_by_text("Nothing is wrong.")).to_be_visible()
    expect(page.get_by_text("you are told when it does not")).to_be_visible()
    axe(page)
    shot(page, "watch-empty-light")
    page.get_by_role("link", name="Watch a schedule").click()
    page.get_by_label("What runs?").fill("Nightly backup")
    # What was typed outlives a reload.
    page.reload()
    expect(page.get_by_label("What runs?")).to_have_value("Nightly backup")
    page.get_by_label("Time", exact=True).fill("04:30")
    late = page.get_by_label("Minutes until a report is late")
    late.fill("1441")
    expect(page.get_by_role("alert")).to_contain_text("1 to 1440")
    expect(page.get_by_role("button", name="Watch it")).to_be_disabled()
    late.fill("20")
    axe(page)
    page.get_by_role("button", name="Watch it").click()
    expect(page.get_by_role("heading", name="Nightly backup")).to_be_visible()
    made = owner.get("/watched")["data"]
    assert [(one["name"], one["schedule"]["cron"], one["grace_minutes"], one["expects_result"]) for one in made] == [("Nightly backup", "30 4 * * *", 20, False)]
    watched_id = made[0]["watched_id"]

    # The lines that report name this schedule and this platform.
    curl = page.get_by_label("The line with curl")
    expect(curl).to_contain_text(f"/watched/{watched_id}/reports")
    expect(page.get_by_label("The line with lamplighter")).to_contain_text(f"lamplighter watch wrap {watched_id} -- ")

    owner.post(f"/watched/{watched_id}/reports", {"exit_code": 3, "summary": "the disk is full"})
    page.reload()
    report = page.get_by_role("list", name="Reports, newest first").get_by_role("listitem")
    expect(report).to_contain_text("exit code 3")
    expect(report).to_contain_text("the disk is full")
    axe(page)
    shot(page, "watch-schedule-light")

    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_role("button", name="Resume")).to_be_visible()
    assert owner.get(f"/watched/{watched_id}")["paused"] is True
    page.get_by_role("button", name="Resume").click()
    expect(page.get_by_role("button", name="Pause")).to_be_visible()
    assert owner.get(f"/watched/{watched_id}")["paused"] is False

    page.get_by_role("button", name="Edit").click()
    page.get_by_label("What runs?").fill("Backup of the shop")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("heading", name="Backup of the shop")).to_be_visible()

    page.get_by_role("button", name="Delete…").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.get_by_text("you are told when it does not")).to_be_visible()
    assert owner.get("/watched")["data"] == []


def test_a_failure_is_wrong_at_once_and_a_success_ends_it(owner):
    watched_id = watched(owner)
    owner.post(f"/watched/{watched_id}/reports", {"exit_code": 3})
    page = owner.page("/watch")
    expect(page.get_by_text("Nothing is wrong.")).to_have_count(0)
    wrong = page.get_by_role("region", name="Wrong now")
    expect(wrong).to_contain_text("Nightly backup")
    expect(wrong).to_contain_text("exit code 3")
    listed = page.get_by_role("list", name="Watched schedules").get_by_role("listitem")
    expect(listed.locator(".chip")).to_have_text("failed")
    expect(listed).to_contain_text("It reported a failure with exit code 3.")
    axe(page)
    listed.get_by_role("link", name="Nightly backup").click()
    expect(page.get_by_role("region", name="Now")).to_contain_text("failed")
    owner.post(f"/watched/{watched_id}/reports", {"exit_code": 0})
    page = owner.page("/watch")
    expect(page.get_by_text("Nothing is wrong.")).to_be_visible()
    expect(page.get_by_role("list", name="Watched schedules").locator(".chip")).to_have_text("ran")


def test_a_wrong_schedule_is_named_at_its_field(owner):
    page = owner.page("/watch?new")
    page.get_by_label("What runs?").fill("Mirror")
    page.get_by_label("When is it due?").select_option("As cron says")
    page.get_by_label("Cron", exact=True).fill("61 3 * * *")
    page.get_by_role("button", name="Watch it").click()
    expect(page.get_by_role("form", name="Watch a schedule").get_by_role("alert")).to_have_count(1)
    axe(page)
    assert owner.get("/watched")["data"] == []
    page.get_by_label("Cron", exact=True).fill("*/15 * * * *")
    page.get_by_role("button", name="Watch it").click()
    expect(page.get_by_role("heading", name="Mirror")).to_be_visible()


def test_checks_are_switched_and_the_rest_stays(owner):
    page = owner.page("/watch")
    looked_for = page.get_by_text("An action has failed twice in a row or more")
    expect(looked_for).to_be_hidden()
    page.get_by_text("What each check looks for").click()
    expect(looked_for).to_be_visible()
    axe(page)
    box = page.get_by_role("checkbox", name="An action fails", exact=True)
    box.click()
    expect(box).not_to_be_checked()
    owner.wait(lambda: owner.get("/watchdog/settings")["checks"].get("action_fails", {}).get("enabled") is False)
    page.get_by_label("A job failed: told after").select_option("4 looks")
    owner.wait(lambda: owner.get("/watchdog/settings")["checks"].get("job_failed", {}).get("hits") == 4)
    assert owner.get("/watchdog/settings")["checks"]["action_fails"]["enabled"] is False


def test_foreign_text_is_text(owner):
    name = HOSTILE
    watched_id = watched(owner, name)
    owner.post(f"/watched/{watched_id}/reports", {"summary": name})
    page = owner.page("/watch")
    expect(page.get_by_role("link", name=name, exact=True)).to_be_visible()
    page.get_by_role("link", name=name, exact=True).click()
    expect(page.get_by_role("list", name="Reports, newest first")).to_contain_text(name)
    assert page.locator("main img").count() == 0 and page.evaluate("window.owned") is None


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_many_schedules_on_a_narrow_page(owner, theme):
    for n in range(200):
        watched(owner, f"Mirror number {n}")
    page = owner.page("/watch", width=320, height=700, theme=theme)
    listed = page.get_by_role("list", name="Watched schedules").locator(":scope > li")
    expect(listed).to_have_count(50)
    fits(page)
    whole, shown = listed.first.locator(".what").evaluate("(node) => [node.scrollWidth, node.clientWidth]")
    assert whole <= shown, "a name is cut"
    shot(page, f"watch-narrow-{theme}")
    for count in (100, 150, 200):
        page.get_by_role("button", name="Show more schedules").click()
        expect(listed).to_have_count(count)
    expect(page.get_by_role("button", name="Show more schedules")).to_have_count(0)
    axe(page)


def test_a_schedule_is_watched_by_keyboard_alone(owner):
    page = owner.page("/watch?new")
    expect(page.get_by_label("What runs?")).to_be_focused()
    page.keyboard.type("Weekly report")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Weekly report")).to_be_visible()
    assert [one["name"] for one in owner.get("/watched")["data"]] == ["Weekly report"]


def test_what_is_wrong_is_named_with_what_to_do(owner):
    watched_id = watched(owner, HOSTILE)
    at = "2026-11-22T06:15:00Z"
    page = owner.context().new_page()
    # The platform needs two looks, which are two hours apart, until it alerts. The answers have its shapes.
    seen = [{"at": f"2026-11-22T{hour}:15:00Z", "text": f"silent since Friday, seen at {hour}"} for hour in ("10", "08", "06")]
    action = owner.action(owner.agent(), "Price report")
    fails = [{"at": "2026-11-22T10:15:00Z", "text": "it fails with budget_exceeded"}, {"at": "2026-11-22T08:15:00Z", "text": "it fails with internal"}]
    gone = "act_0123456789abcdef0123456789abcdef"
    dog = owner.get("/watchdog") | {"counters": [{"check": "watched_schedule", "item": watched_id, "anomalies": 3, "since": at, "alerted_at": at, "last3": seen}, *({"check": "action_fails", "item": item, "anomalies": 2, "since": at, "alerted_at": at, "last3": fails} for item in (action, gone))]}
    remedy = "Look at its log. " + "Then look at the log of the machine that should have started it. " * 6
    said = {"at": at, "say": "alert", "check": "watched_schedule", "item": watched_id, "count": 2, "since": at, "what": "It is silent.", "remedy": remedy, "last3": seen}
    page.route("**/watchdog", lambda route: route.fulfill(json=dog))
    older = {"at": at, "say": "alert", "check": "action_fails", "item": action, "count": 2, "since": at, "what": "it fails with internal", "remedy": "Run it again.", "last3": fails[1:]}
    page.route("**/watchdog/alerts*", lambda route: route.fulfill(json={"data": [said, older], "has_more": False}))
    page.goto(f"{owner.platform.url}/#/watch")
    wrong = page.get_by_role("region", name="Wrong now")
    # One line for one thing, whatever there is to say of it.
    lines = wrong.get_by_role("list").first.locator(":scope > li")
    expect(lines).to_have_count(3)
    for text in (HOSTILE, "silent since Friday, seen at 10", "3 looks"):
        expect(lines.first).to_contain_text(text)
    expect(wrong).not_to_contain_text("Look at its log.")
    heights = lines.evaluate_all("all => all.map((one) => one.clientHeight)")
    assert max(heights) < 50, heights
    details = wrong.get_by_role("button", name=f"Details of {HOSTILE}")
    expect(details).to_have_attribute("aria-expanded", "false")
    details.press("Enter")
    expect(details).to_have_attribute("aria-expanded", "true")
    # What the newest look saw, and not what the alert said before. An action has its title, if it still exists.
    failing = wrong.get_by_role("listitem").filter(has=page.get_by_role("link", name="Price report"))
    expect(failing.locator(".what")).to_contain_text("it fails with budget_exceeded")
    failing.get_by_role("button", name="Details of Price report").click()
    expect(failing).to_contain_text("Run it again.")
    expect(wrong.get_by_role("link", name="An action")).to_have_attribute("href", f"#/actions/{gone}")
    expect(page.get_by_role("region", name="Alerts and recoveries").get_by_role("link", name="Price report")).to_be_visible()
    expect(wrong.get_by_text("seen at 06")).to_be_visible()
    # Nothing is cut: not the remedy, and not what the looks saw.
    note = wrong.locator(".watch-remedy").first
    expect(note).to_contain_text(remedy.strip())
    shown, whole, line = note.evaluate("(node) => [node.clientHeight, node.scrollHeight, parseFloat(getComputedStyle(node).lineHeight)]")
    assert whole <= shown and shown > 4 * line, (shown, whole, line)
    expect(page.get_by_role("heading", level=1)).to_have_text("Watch")
    axe(page)
    shot(page, "watch-wrong-light")
