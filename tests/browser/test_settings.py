"""The settings of an agent: a person changes them, sees what that withdraws, sets a change back, and ends the agent."""

import re

from playwright.sync_api import expect

from conftest import axe, shot
from test_assets import HOSTILE, fits

CHANGED = "Write long sentences."


def settings(owner, agent, **options):
    page = owner.page(f"/agents/{agent}/settings", **options)
    expect(page.get_by_role("form", name="Settings")).to_be_visible()
    return page


def test_a_change_says_what_it_withdraws_and_the_approval_is_given_again(owner):
    agent = owner.agent(instructions="Write short sentences.", timeline="Ongoing")
    action = owner.action(agent, "Price report", schedule={"cron": "0 9 * * MON"})
    page = settings(owner, agent)
    page.get_by_label("Instructions").fill(CHANGED)
    expect(page.get_by_text("Saving withdraws 1 approval: Price report.")).to_be_visible()
    # Nothing is changed before it is saved, and a reload keeps the text.
    assert owner.get(f"/agents/{agent}")["instructions"] == "Write short sentences."
    page.reload()
    expect(page.get_by_label("Instructions")).to_have_value(CHANGED)
    page.get_by_role("button", name="Save, and withdraw 1 approval").click()
    notice = page.get_by_role("region", name="Approvals that were withdrawn")
    expect(notice).to_contain_text("1 approval was withdrawn")
    assert owner.get(f"/agents/{agent}")["instructions"] == CHANGED
    assert owner.get(f"/actions/{action}/approval")["holds"] is False
    notice.get_by_text("Price report").click()
    expect(notice.locator(".diff ins")).to_have_text("long")
    assert notice.get_by_role("link", name="Look at it and approve it").get_attribute("href") == f"#/actions/{action}"
    shot(page, "settings-withdrawn-light")
    axe(page)
    notice.get_by_role("button", name="Approve it again…").click()
    page.get_by_role("button", name="Approve with these changes").click()
    expect(notice).to_have_count(0)
    assert owner.get(f"/actions/{action}/approval")["holds"] is True


def test_what_does_not_bind_approvals_is_saved_without_a_word_about_them(owner):
    agent = owner.agent(timeline="Ongoing")
    action = owner.action(agent, schedule={"cron": "0 9 * * MON"})
    page = settings(owner, agent)
    page.get_by_label("Time zone of its schedules").select_option("Asia/Tokyo")
    page.get_by_label("Deep").check()
    page.get_by_label("A run may cost").fill("0,5")
    page.get_by_label("A month may cost").fill("20")
    page.get_by_label("Search the web").check()
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("Saved.")).to_be_visible()
    stored = owner.get(f"/agents/{agent}")
    assert stored["model_tier"] == "deep"
    assert stored["budget"] == {"per_run_micros": 500_000, "per_month_micros": 20_000_000}
    assert stored["provider_tools"] == ["web_search"]
    assert stored["timezone"] == "Asia/Tokyo"
    assert owner.get(f"/actions/{action}/approval")["holds"] is True
    # Each can be taken back.
    page.get_by_label("A month may cost").fill("")
    page.get_by_label("Search the web").uncheck()
    page.get_by_label("Time zone of its schedules").select_option("")
    page.get_by_role("button", name="Save", exact=True).click()
    owner.wait(lambda: owner.get(f"/agents/{agent}")["budget"] == {"per_run_micros": 500_000})
    stored = owner.get(f"/agents/{agent}")
    assert (stored.get("provider_tools", []), stored.get("timezone")) == ([], None)


def test_documents_and_the_zone_of_a_run_withdraw_approvals(owner):
    agent = owner.agent(timeline="Ongoing")
    planned = owner.action(agent, "Price report", schedule={"cron": "0 9 * * MON"})
    by_hand = owner.action(agent, "Stock report")

    def holds():
        return [owner.get(f"/actions/{action}/approval")["holds"] for action in (planned, by_hand)]

    page = settings(owner, agent)
    # A schedule has a zone of its own.
    page.get_by_label("Time zone of its schedules").select_option("Asia/Tokyo")
    expect(page.get_by_text("Saving withdraws 1 approval: Stock report.")).to_be_visible()
    page.get_by_role("button", name="Save, and withdraw 1 approval").click()
    expect(page.get_by_role("region", name="Approvals that were withdrawn")).to_contain_text("1 approval was withdrawn")
    assert holds() == [True, False]
    page.get_by_label("Living documents that it knows").select_option(index=1)
    page.get_by_role("button", name="Save, and withdraw 1 approval").click()
    expect(page.get_by_role("region", name="Approvals that were withdrawn")).to_contain_text("2 approvals were withdrawn")
    assert holds() == [False, False]
    assert owner.get(f"/agents/{agent}")["docs_project_id"] == owner.get("/projects")["data"][0]["project_id"]
    # Setting both back gives the approvals back.
    page.get_by_label("Time zone of its schedules").select_option("")
    page.get_by_label("Living documents that it knows").select_option("")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("region", name="Approvals that were withdrawn")).to_have_count(0)
    assert holds() == [True, True]


def test_wrong_amounts_and_empty_texts_are_not_sent(owner):
    agent = owner.agent(timeline="Ongoing")
    page = settings(owner, agent)
    page.get_by_label("A run may cost").fill("ten")
    expect(page.get_by_text("Write an amount, such as 0.50, or nothing.")).to_be_visible()
    expect(page.get_by_role("button", name="Save", exact=True)).to_be_disabled()
    page.get_by_label("A run may cost").fill("")
    page.get_by_label("Name", exact=False).first.fill(" ")
    expect(page.get_by_text("Name is needed.")).to_be_visible()
    expect(page.get_by_role("button", name="Save", exact=True)).to_be_disabled()
    assert owner.get(f"/agents/{agent}")["version"] == 1


def test_two_people_change_an_agent_at_once(owner):
    agent = owner.agent(instructions="One.", timeline="Ongoing")
    page = settings(owner, agent)
    page.get_by_label("Instructions").fill("Mine.")
    owner.call("PATCH", f"/agents/{agent}", {"instructions": "Theirs.", "timeline": "Until May"})
    page.get_by_role("button", name="Save", exact=True).click()
    notice = page.get_by_role("alert", name="Changed meanwhile")
    expect(notice).to_contain_text("Timeline")
    notice.get_by_role("button", name="Keep mine").click()
    page.get_by_role("button", name="Save", exact=True).click()
    owner.wait(lambda: owner.get(f"/agents/{agent}")["instructions"] == "Mine.")
    assert owner.get(f"/agents/{agent}")["timeline"] == "Until May"


def test_a_change_is_set_back_from_the_history(owner):
    agent = owner.agent(instructions="First text.", timeline="Ongoing")
    owner.call("PATCH", f"/agents/{agent}", {"instructions": "Second text."})
    page = settings(owner, agent)
    change = page.get_by_role("region", name="History").locator("li", has_text="Changed: instructions").first
    change.get_by_text("What changed").click()
    expect(change.locator(".diff del")).to_have_text("First")
    expect(change.locator(".diff ins")).to_have_text("Second")
    change.get_by_role("button", name="Set these fields back").click()
    expect(page.get_by_label("Instructions")).to_have_value("First text.")
    expect(page.get_by_role("region", name="History").locator("li", has_text="Changed: instructions")).to_have_count(2)
    assert owner.get(f"/agents/{agent}")["instructions"] == "First text."


def test_what_it_sees(owner):
    agent = owner.agent(instructions="x" * 400, timeline="Ongoing")
    owner.action(agent, "Price report")
    page = settings(owner, agent)
    sees = page.get_by_role("region", name="What it sees")
    row = sees.get_by_role("row", name=re.compile("^Instructions"))
    expect(row).to_contain_text("400")
    expect(row).to_contain_text("about 100")
    sees.get_by_text("What its runs see and may use").click()
    expect(sees.get_by_role("link", name="Price report")).to_be_visible()
    expect(sees).to_contain_text("May use nothing beside its own notes and outputs.")


def test_pause_start_archive_and_delete(owner):
    agent = owner.agent(HOSTILE)
    page = settings(owner, agent)
    page.get_by_role("button", name="Pause this agent").click()
    expect(page.get_by_role("button", name="Start this agent again")).to_be_visible()
    assert owner.get(f"/agents/{agent}")["status"] == "paused"
    page.get_by_role("button", name="Start this agent again").click()
    expect(page.get_by_role("button", name="Pause this agent")).to_be_visible()
    page.get_by_role("button", name="Archive…").click()
    page.get_by_role("button", name="Archive", exact=True).click()
    expect(page.get_by_role("button", name="Start this agent again")).to_be_visible()
    assert owner.get(f"/agents/{agent}")["status"] == "archived"
    page.get_by_role("button", name="Delete…").click()
    expect(page.get_by_role("dialog")).to_contain_text("What stays")
    page.get_by_role("button", name="Delete it and all that belongs to it").click()
    expect(page).to_have_url(re.compile("#/agents$"))
    assert owner.get("/agents")["data"] == []
    assert page.evaluate("window.owned") is None


def test_narrow_pages_both_themes_and_axe(owner):
    agent = owner.agent("W" * 200, instructions=f"{HOSTILE} " + "i" * 3000, timeline="t" * 300, success_criteria=HOSTILE)
    owner.action(agent, "V" * 190, schedule={"cron": "0 9 * * MON"})
    owner.call("PATCH", f"/agents/{agent}", {"instructions": "j" * 3000})
    for theme, width in (("light", 1280), ("dark", 320)):
        page = settings(owner, agent, theme=theme, width=width)
        for summary in page.locator("summary").all():
            summary.click()
        expect(page.get_by_text("V" * 190).last).to_be_visible()
        fits(page)
        axe(page)
        shot(page, f"settings-{theme}-{width}")
        assert page.evaluate("window.owned") is None
