"""Notices: a person adds channels, says what to be told and when, and sees what was sent."""

import re

import pytest
from playwright.sync_api import expect

from conftest import axe, shot
from test_assets import HOSTILE, fits


def channels(owner):
    return owner.get("/notifications/channels")["data"]


def codes(owner):
    """The codes in the outbox, newest first, as people copy them."""
    mails = [one["request"]["Content"]["Simple"]["Body"]["Text"]["Data"] for one in owner.get("/outbox")["data"]]
    return [found[1] for mail in mails if (found := re.search(r"this code within one hour: (\d{4} \d{4})", mail))]


def nth_code(owner, count):
    """The newest code, after so many were sent."""
    return owner.wait(lambda: found[0] if len(found := codes(owner)) == count else None)


def confirmed(owner, to="me@example.com"):
    """An e-mail channel whose address is confirmed."""
    made = owner.post("/notifications/channels", {"kind": "email", "to": to})
    assert made["state"] == "unconfirmed"
    return owner.post(f"/notifications/channels/{made['channel_id']}/confirm", {"code": nth_code(owner, 1)})["channel_id"]


def other(code):
    """A code that is not this one."""
    return "0000 0000" if code != "0000 0000" else "0000 0001"


def test_channels_of_a_person_at_home_have_their_fields(owner):
    page = owner.page("/notices")
    form = page.get_by_role("form", name="Add a channel")
    add, kind = page.get_by_role("button", name="Add it"), page.get_by_label("Kind of channel")
    kind.select_option("ntfy")
    expect(add).to_be_disabled()
    form.get_by_label("Topic").fill("alerts-0123456789abcdef")
    axe(page)
    add.click()
    listed = page.get_by_role("list", name="Channels").locator(":scope > li")
    expect(listed).to_have_count(1)
    expect(listed).to_contain_text("https://ntfy.sh/…cdef")
    kind.select_option("gotify")
    form.locator("input[name=url]").fill("http://192.168.1.5:8080")
    form.get_by_label("Token of the application").fill("AbCdEfGhIjKlMnO")
    add.click()
    expect(form.get_by_role("alert")).to_contain_text("LAMPLIGHTER_ALLOWED_HOSTS")
    kind.select_option("smtp")
    form.locator("input[name=to]").fill("me@example.com")
    form.locator("input[name=host]").fill("smtp.example.com")
    form.locator("select[name=security]").select_option("starttls")
    form.locator("input[name=from]").fill("me@example.com")
    form.locator("input[name=port]").fill("25")
    axe(page)
    add.click()
    expect(form.get_by_role("alert")).to_contain_text("must be 465 or 587")
    form.locator("input[name=port]").fill("")
    add.click()
    expect(listed).to_have_count(2)
    expect(listed.nth(1)).to_contain_text("me@example.com via smtp.example.com")
    expect(listed.nth(1).get_by_label("Code from the e-mail")).to_be_visible()


def test_what_is_typed_before_the_next_frame_goes_into_the_new_fields(owner):
    context = owner.context()
    context.add_init_script("const frame = requestAnimationFrame; window.requestAnimationFrame = (draw) => setTimeout(() => frame(draw), 400);")
    page = owner.page("/notices", context=context)
    form = page.get_by_role("form", name="Add a channel")
    page.get_by_label("Kind of channel").select_option("ntfy")
    expect(form.get_by_label("Topic")).to_be_visible()
    # Both kinds have a field of this name.
    page.get_by_label("Kind of channel").select_option("gotify")
    form.locator("input[name=url]").fill("http://192.168.1.5:8080")
    form.get_by_label("Token of the application").fill("AbCdEfGhIjKlMnO")
    page.get_by_role("button", name="Add it").click()
    expect(form.get_by_role("alert")).to_contain_text("LAMPLIGHTER_ALLOWED_HOSTS")
    expect(form.locator("input[name=url]")).to_have_value("http://192.168.1.5:8080")


def test_an_action_is_told_where_its_person_wants_it(owner):
    agent = owner.post("/agents", {"name": "Watch", "goal": "Watches prices"})["agent_id"]
    task = {"instructions": "Compare the prices", "expected_output": "A report"}
    action = owner.post(f"/agents/{agent}/actions", {"title": "Prices", "task_config": task})["action_id"]
    topics = [owner.post("/notifications/channels", {"kind": "ntfy", "topic": f"lamps-{one}"})["channel_id"] for one in ("first", "second")]
    page = owner.page("/notices")
    page.get_by_text("Other rules for one action").click()
    page.get_by_role("combobox", name="Action", exact=True).select_option(action)
    places = page.get_by_role("group", name="Where this action is told")
    expect(places).to_contain_text("None is chosen, so it is told at all of them.")
    places.get_by_role("checkbox").nth(1).check()
    owner.wait(lambda: owner.get("/notifications").get("channels") == {action: [topics[1]]})
    expect(places).to_contain_text("While none of these is on")
    axe(page)
    shot(page, "notices-places")
    places.get_by_role("checkbox").nth(1).uncheck()
    owner.wait(lambda: "channels" not in owner.get("/notifications"))


def test_replies_of_a_bot_say_whether_they_come_back(owner):
    page = owner.page("/notices")
    form = page.get_by_role("form", name="Add a channel")
    page.get_by_label("Kind of channel").select_option("telegram")
    form.locator("input[name=token]").fill("4839574812:AAFD39kkdpWt3ywyRZergyOLMaJhac60qcK")
    form.locator("input[name=chat_id]").fill("@lamps_news")
    form.locator("select[name=replies]").select_option("yes")
    page.get_by_role("button", name="Add it").click()
    expect(form.get_by_role("alert")).to_contain_text("`chat_id` must have digits only")
    form.locator("input[name=chat_id]").fill("4711")
    axe(page)
    page.get_by_role("button", name="Add it").click()
    listed = page.get_by_role("list", name="Channels").locator(":scope > li")
    expect(listed).to_contain_text("4711 by the bot")
    # Nobody answers for Telegram here.
    owner.wait(lambda: channels(owner)[0]["replies"].get("why"))
    page.reload()
    expect(listed).to_contain_text("Replies do not come back: ")
    shot(page, "notices-replies")


def test_a_first_channel_is_added_tested_paused_and_deleted(owner):
    page = owner.page("/notices")
    expect(page.get_by_text("Nobody is told yet.")).to_be_visible()
    # On one machine no e-mail is sent, and the page says so before a person relies on it.
    form = page.get_by_role("form", name="Add a channel")
    expect(form.get_by_text("This platform sends no e-mail")).to_be_visible()
    page.get_by_label("Kind of channel").select_option("webhook")
    expect(form.get_by_text("This platform sends no e-mail")).to_have_count(0)
    page.get_by_label("Kind of channel").select_option("email")
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
    assert [(one["kind"], one["state"]) for one in channels(owner)] == [("email", "unconfirmed")]
    page.get_by_label("Code from the e-mail").fill(nth_code(owner, 1))
    page.get_by_role("button", name="Confirm", exact=True).click()
    expect(page.get_by_role("button", name="Test E-mail")).to_be_visible()
    expect(page.get_by_label("Code from the e-mail")).to_have_count(0)
    assert [(one["kind"], one["state"]) for one in channels(owner)] == [("email", "enabled")]

    page.get_by_role("button", name="Test E-mail").click()
    owner.wait(lambda: len([one for one in owner.get("/deliveries")["data"] if one["state"] == "delivered"]) == 2)
    page.reload()
    expect(page.get_by_role("list", name="Deliveries, newest first")).to_contain_text("delivered")
    # The mail is there as text, and its HTML is not shown.
    page.get_by_text("Read it").first.click()
    mail = page.get_by_label("The mail").first
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


def test_an_address_is_confirmed_with_the_code_that_was_sent_there(owner):
    owner.post("/notifications/channels", {"kind": "email", "to": "me@example.com"})
    first = nth_code(owner, 1)
    page = owner.page("/notices")
    listed = page.get_by_role("list", name="Channels")
    expect(listed).to_contain_text("not confirmed")
    expect(listed).to_contain_text("It works until")
    # What the platform would refuse is not offered.
    for name in ("Test E-mail", "Pause E-mail", "Resume E-mail"):
        expect(page.get_by_role("button", name=name)).to_have_count(0)
    code = page.get_by_label("Code from the e-mail")
    confirm = page.get_by_role("button", name="Confirm", exact=True)
    form = page.get_by_role("form", name=re.compile("^Confirm "))
    expect(confirm).to_be_disabled()
    axe(page)
    shot(page, "notices-unconfirmed-light")

    # The platform's words stand at the field, and nowhere twice.
    code.fill("123")
    code.press("Enter")
    expect(form.get_by_role("alert")).to_have_text("must be the eight digits of the e-mail")
    code.fill(other(first))
    confirm.click()
    expect(form.get_by_role("alert")).to_contain_text("guesses left: 4")
    expect(code).to_have_value(other(first))
    axe(page)

    page.get_by_role("button", name="Send another code").click()
    second = nth_code(owner, 2)
    expect(form.get_by_role("alert")).to_have_count(0)
    expect(code).to_have_value("")
    # Five wrong guesses end a code, even for the right one.
    for left in (4, 3, 2, 1, 0):
        code.fill(other(second))
        confirm.click()
        expect(form.get_by_role("alert")).to_contain_text(f"guesses left: {left}")
    code.fill(second)
    confirm.click()
    expect(form.get_by_role("alert")).to_have_text("the code no longer works: let another one be sent")
    page.get_by_role("button", name="Send another code").click()
    third = nth_code(owner, 3)
    # A fourth code in a day is refused, and the third one stays as it is.
    page.get_by_role("button", name="Send another code").click()
    expect(form).to_contain_text("at most 3 codes in 24 hours")
    assert len(codes(owner)) == 3
    code.fill(third.replace(" ", "-"))
    code.press("Enter")
    expect(page.get_by_role("button", name="Test E-mail")).to_be_visible()
    expect(form).to_have_count(0)
    assert [one["state"] for one in channels(owner)] == ["enabled"]


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


def test_notices_stands_in_the_navigation(owner):
    page = owner.page()
    main = page.get_by_role("navigation", name="Main", exact=True)
    main.get_by_role("link", name="Notices").click()
    expect(page.get_by_role("heading", level=1, name="Notices")).to_be_visible()
    expect(main.get_by_role("link", name="Notices")).to_have_attribute("aria-current", "page")
    expect(main.get_by_role("link", name="Watch")).not_to_have_attribute("aria-current", "page")
    for width in (800, 320):
        page.set_viewport_size({"width": width, "height": 700})
        page.evaluate("location.hash = '#/'")
        expect(page).to_have_title("Today · Lamplighter")
        if width == 320:
            page.get_by_role("button", name="More", exact=True).click()
            page.get_by_role("dialog", name="More").get_by_role("link", name="Notices").click()
        else:
            main.get_by_role("link", name="Notices").click()
        expect(page.get_by_role("heading", level=1, name="Notices")).to_be_visible()
        fits(page)
        axe(page)


def test_every_kind_that_the_platform_knows_is_offered(owner):
    known = owner.get("/openapi.json")["components"]["schemas"]["Preferences"]["properties"]["kinds"]["propertyNames"]["enum"]
    assert "budget" in known
    page = owner.page("/notices")
    ways = page.get_by_role("list", name="What you are told").get_by_role("combobox")
    expect(ways).to_have_count(len(known))
    expect(page.get_by_label("Budget", exact=True)).to_have_value("at_once")
    for index in range(len(known)):
        ways.nth(index).select_option("In the digest")
        owner.wait(lambda: len(owner.get("/notifications")["kinds"]) == index + 1)
        expect(ways.nth(index)).to_be_enabled()
    assert owner.get("/notifications")["kinds"] == dict.fromkeys(known, "digest")


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


def test_an_error_is_shown_to_its_end(owner):
    confirmed(owner)
    error = "the receiver has answered with the status 500 and with this text. " * 12
    listed = owner.get("/deliveries?limit=20")
    listed["data"] = [{**listed["data"][0], "state": "undelivered", "error": error}]
    page = owner.context(width=640).new_page()
    # An error of this length needs a receiver of its own. The answer has the shape of the platform's.
    page.route("**/deliveries?*", lambda route: route.fulfill(json=listed))
    page.goto(f"{owner.platform.url}/#/notices")
    note = page.get_by_role("list", name="Deliveries, newest first").locator(".what small")
    expect(note).to_contain_text(error.strip())
    shown, whole, line = note.evaluate("(node) => [node.clientHeight, node.scrollHeight, parseFloat(getComputedStyle(node).lineHeight)]")
    assert whole <= shown and shown > 4 * line, (shown, whole, line)
