"""Notices: a person adds channels, says what to be told and when, and sees what was sent."""

from playwright.sync_api import expect

import pytest

from conftest import axe, shot
from test_assets import HOSTILE, fits


def channels(owner):
    return owner.get("/notifications/channels")["data"]


def test_a_first_channel_is_added_tested_paused_and_deleted(owner):
    page = owner.page("/notices")
    expect(page.get_by_text("Nobody is told yet.")).to_be_visible()
    axe(page)
    to = page.get_by_label("Address")
    to.fill("not an address")
    page.get_by_role("button", name="Add it").click()
    expect(page.get_by_role("form", name="Add a channel").get_by_role("alert")).to_have_count(1)
    assert channels(owner) == []
    axe(page)
    to.fill("me@example.com")
    page.get_by_role("button", name="Add it").click()
    listed = page.get_by_role("list", name="Channels").locator(":scope > li")
    expect(listed).to_have_count(1)
    assert [(one["kind"], one["state"]) for one in channels(owner)] == [("email", "enabled")]

    page.get_by_role("button", name="Test E-mail").click()
    owner.wait(lambda: [one for one in owner.get("/deliveries")["data"] if one["state"] == "delivered"])
    page.reload()
    expect(page.get_by_role("list", name="Deliveries, newest first")).to_contain_text("delivered")
    # The mail is there as text, and its HTML is not shown.
    page.get_by_text("Read it").click()
    mail = page.get_by_label("The mail")
    expect(mail).to_contain_text("/#/watch")
    expect(mail).not_to_contain_text("<")
    axe(page)
    shot(page, "notices-light")

    page.get_by_role("button", name="Pause E-mail").click()
    expect(page.get_by_role("button", name="Resume E-mail")).to_be_visible()
    assert channels(owner)[0]["state"] == "disabled"
    page.get_by_role("button", name="Delete…").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.get_by_text("Nobody is told yet.")).to_be_visible()
    assert channels(owner) == []


def test_the_secret_of_a_webhook_is_shown_once_and_replaced(owner):
    page = owner.page("/notices")
    page.get_by_label("Kind of channel").select_option("Webhook")
    page.get_by_label("Address of the receiver").fill("https://hooks.example.com/in")
    page.get_by_role("button", name="Add it").click()
    secret = page.locator("code.secret")
    expect(secret).to_contain_text("whsec_")
    first = secret.inner_text()
    page.get_by_role("button", name="New secret…").click()
    page.get_by_role("dialog").get_by_role("button", name="Replace it").click()
    expect(secret).not_to_have_text(first)
    expect(secret).to_contain_text("whsec_")
    page.get_by_role("button", name="I have kept it").click()
    expect(secret).to_have_count(0)
    page.reload()
    expect(page.get_by_text("The secret before this one signs, too")).to_be_visible()
    expect(secret).to_have_count(0)


def test_rules_quiet_hours_digest_and_snooze_are_stored(owner):
    action_id = owner.action(owner.agent(), HOSTILE)
    page = owner.page("/notices")
    page.get_by_label("Succeeded", exact=True).select_option("At once")
    owner.wait(lambda: owner.get("/notifications")["kinds"].get("succeeded") == "at_once")
    page.get_by_text("Other rules for one action").click()
    page.get_by_role("combobox", name="Action", exact=True).select_option(action_id)
    page.get_by_label("Failed, for this action").select_option("Not")
    owner.wait(lambda: owner.get("/notifications")["actions"] == {action_id: {"failed": "off"}})
    page.get_by_label("The digest of a day comes at").fill("18:30")
    page.get_by_label("Quiet hours").check()
    page.get_by_label("From", exact=True).fill("21:30")
    page.get_by_role("button", name="Save the times").click()
    owner.wait(lambda: owner.get("/notifications").get("quiet_hours"))
    stored = owner.get("/notifications")
    assert (stored["quiet_hours"]["from"][:5], stored["quiet_hours"]["to"][:5], stored["digest_at"][:5]) == ("21:30", "07:00", "18:30")
    assert stored["kinds"] == {"succeeded": "at_once"}
    page.get_by_role("button", name="8 hours").click()
    expect(page.get_by_text("Nothing is sent before")).to_be_visible()
    page.get_by_role("button", name="End it").click()
    owner.wait(lambda: not owner.get("/notifications").get("snoozed_until"))
    axe(page)
    assert page.evaluate("window.owned") is None


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_narrow_page_fits(owner, theme):
    owner.post("/notifications/channels", {"kind": "email", "to": "a.rather.long.name.of.a.person@a-rather-long-host.example.com"})
    page = owner.page("/notices", width=320, height=700, theme=theme)
    expect(page.get_by_role("list", name="Channels")).to_be_visible()
    fits(page)
    axe(page)
    shot(page, f"notices-narrow-{theme}")
