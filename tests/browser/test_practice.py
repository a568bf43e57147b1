"""Practice: a person says each day what was done, looks back, and loses nothing to another tab, a reload or midnight."""

import datetime
import json
import re

import pytest
from playwright.sync_api import expect

from conftest import axe, shot
from test_assets import HOSTILE, fits

ALL_DAYS = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]


def habit(owner, name="Read for twenty minutes", done=(), notes={}, left=(), **fields):
    """A habit, done so many days ago each. Returns its id."""
    made = owner.post("/practices", {"name": name, **fields})
    today = datetime.date.fromisoformat(made["today"]["date"])
    for ago in sorted({*done, *notes, *left}):
        owner.post(f"/practices/{made['practice_id']}/check-ins", {"date": f"{today - datetime.timedelta(ago)}", "done": ago not in left, "note": notes.get(ago, "")})
    return made["practice_id"]


def stored(owner, practice_id):
    return owner.get(f"/practices/{practice_id}")


def check_ins(owner, practice_id):
    return owner.get(f"/practices/{practice_id}/check-ins?limit=100")["data"]


def day(owner, practice_id, ago=0):
    return datetime.date.fromisoformat(stored(owner, practice_id)["today"]["date"]) - datetime.timedelta(ago)


def named(date):
    """A day as the calendar names it."""
    return f"{date:%A} {date.day} {date:%B} {date.year}"


def in_calendar(page, date):
    return page.get_by_role("button", name=re.compile(f"^{named(date)}:"))


def row(page, name):
    return page.get_by_role("list", name="Habits").locator(":scope > li").filter(has=page.get_by_role("link", name=name, exact=True))


def streak_words(streak):
    """What the page says of what the platform has counted."""
    unit = streak["unit"][:-1]
    counted = lambda count: f"{count} {unit}{'' if count == 1 else 's'}"
    if streak["longest"] == 0:
        return "no streak yet"
    if streak["current"] == 0:
        return f"no streak now, best {counted(streak['longest'])}"
    return f"{counted(streak['current'])} in a row, {'the best so far' if streak['current'] == streak['longest'] else 'best ' + str(streak['longest'])}"


def test_a_first_habit_is_made_checked_in_and_taken_back(owner):
    page = owner.page("/practices")
    expect(page.get_by_text("Nothing is tracked yet.")).to_be_visible()
    expect(page.get_by_text("Your agents can read your habits")).to_contain_text("query_practice")
    axe(page)
    shot(page, "practice-empty-light")
    page.get_by_label("What do you want to do?").fill("Read for twenty minutes")
    # What was typed outlives a reload.
    page.reload()
    expect(page.get_by_label("What do you want to do?")).to_have_value("Read for twenty minutes")
    for name in ("Saturday", "Sunday"):
        page.get_by_label(name).uncheck()
    page.get_by_role("button", name="Track it").click()
    expect(row(page, "Read for twenty minutes")).to_contain_text("no streak yet")
    expect(page.get_by_role("form", name="New habit")).to_have_count(0)
    made = owner.get("/practices")["data"]
    assert [(one["name"], one["target"]) for one in made] == [("Read for twenty minutes", {"kind": "days", "days": ALL_DAYS[:5]})]
    practice_id = made[0]["practice_id"]

    page.get_by_role("button", name="Check in: Read for twenty minutes").click()
    done = page.get_by_role("button", name="Done today: Read for twenty minutes. Open the day")
    expect(done).to_be_visible()
    # The focus stays where the hand is, and a second press takes nothing back.
    expect(done).to_be_focused()
    today = stored(owner, practice_id)["today"]
    assert today["done"] is True and [(one["date"], one["done"]) for one in check_ins(owner, practice_id)] == [(today["date"], True)]
    expect(row(page, "Read for twenty minutes").get_by_role("listitem").last).to_contain_text(": done")
    expect(row(page, "Read for twenty minutes")).to_contain_text(streak_words(stored(owner, practice_id)["streak"]))
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog")).to_contain_text("Read for twenty minutes: done.")
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Undo: Read for twenty minutes").click()
    expect(page.get_by_role("button", name="Check in: Read for twenty minutes")).to_be_visible()
    assert check_ins(owner, practice_id) == [] and stored(owner, practice_id)["today"]["done"] is None


def test_so_many_times_a_week(owner):
    page = owner.page("/practices?new")
    page.get_by_label("What do you want to do?").fill("Run")
    page.get_by_label("Times a week, on any day").check()
    page.get_by_label("Times a week", exact=True).select_option("2 times")
    page.get_by_role("button", name="Track it").click()
    expect(row(page, "Run")).to_contain_text("0 of 2 this week")
    made = owner.get("/practices")["data"][0]
    assert made["target"] == {"kind": "times_a_week", "times": 2}
    page.get_by_role("button", name="Check in: Run").click()
    expect(row(page, "Run")).to_contain_text("1 of 2 this week")
    # The week before, twice: a streak of a week, and no day is called missed.
    monday = day(owner, made["practice_id"]) - datetime.timedelta(day(owner, made["practice_id"]).weekday())
    for ago in (7, 5):
        owner.post(f"/practices/{made['practice_id']}/check-ins", {"date": f"{monday - datetime.timedelta(ago)}"})
    page.reload()
    expect(row(page, "Run")).to_contain_text("1 week in a row, the best so far")
    assert stored(owner, made["practice_id"])["streak"]["current"] == 1
    expect(row(page, "Run").get_by_role("listitem").filter(has_text="missed")).to_have_count(0)
    page.get_by_role("link", name="Run", exact=True).click()
    expect(page.get_by_role("heading", level=1, name="Run")).to_be_visible()
    expect(page.get_by_role("row").filter(has=in_calendar(page, monday - datetime.timedelta(7)))).to_contain_text("2 of 2")
    expect(page.get_by_role("row").filter(has=in_calendar(page, monday))).to_contain_text("1 of 2")


def test_the_list_shows_what_the_platform_counts(owner):
    ids = [
        habit(owner, "Every day", done=[0, 1, 2, 4, 5, 6, 7, 8]),
        habit(owner, "On weekdays", done=range(1, 20), target={"kind": "days", "days": ALL_DAYS[:5]}),
        habit(owner, "Broken", done=[5, 6, 7]),
        habit(owner, "New"),
        habit(owner, "Left out", done=[2], left=[0, 1]),
    ]
    page = owner.page("/practices")
    for practice_id in ids:
        one = stored(owner, practice_id)
        expect(row(page, one["name"])).to_contain_text(streak_words(one["streak"]))
        # Each lamp says what the platform says of its day.
        days = row(page, one["name"]).get_by_role("list", name="The last 14 days").get_by_role("listitem").all_inner_texts()
        words = {True: "done", False: "left out on purpose"}
        wanted = [words.get(each["done"]) or ("not due" if not each["due"] else "due today" if each is one["last_days"][-1] else "missed") for each in one["last_days"]]
        assert [text.split(": ")[1] for text in days] == wanted, one["name"]
    left = sum(one["today"]["due"] and one["today"]["done"] is None for one in owner.get("/practices")["data"])
    expect(page.get_by_text(f"{left} habits left today")).to_be_visible()
    legend = page.get_by_role("list", name="What the lamps mean")
    for word in ("done", "due today", "missed", "left out on purpose"):
        expect(legend.get_by_text(word, exact=True)).to_be_visible()


def test_a_day_can_be_said_later_and_taken_back(owner):
    practice_id = habit(owner, done=[1, 2, 4], notes={6: "Finished the Russians.\nA long one."})
    page = owner.page(f"/practices/{practice_id}")
    expect(page.get_by_text("2 days in a row, the best so far.")).to_be_visible()
    date = day(owner, practice_id, 3)
    expect(in_calendar(page, date)).to_have_accessible_name(f"{named(date)}: missed")
    in_calendar(page, date).click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("no check-in")
    dialog.get_by_label("Note").fill("Only ten minutes")
    # A reload keeps the note that is not saved yet.
    page.reload()
    in_calendar(page, date).click()
    expect(dialog.get_by_label("Note")).to_have_value("Only ten minutes")
    axe(page)
    shot(page, "practice-day-light")
    dialog.get_by_role("button", name="Done").click()
    expect(dialog).to_have_count(0)
    expect(in_calendar(page, date)).to_have_accessible_name(f"{named(date)}: done, with a note")
    expect(in_calendar(page, date)).to_be_focused()
    expect(page.get_by_text("4 days in a row, the best so far.")).to_be_visible()
    assert stored(owner, practice_id)["streak"]["current"] == 4
    assert next(one for one in check_ins(owner, practice_id) if one["date"] == str(date))["note"] == "Only ten minutes"
    notes = page.get_by_role("list", name="Notes, newest first").get_by_role("listitem")
    assert [text.split("\n", 1)[1].strip() for text in notes.all_inner_texts()] == ["Only ten minutes", "Finished the Russians.\nA long one."]
    # Left out on purpose: the day is said, and does not count.
    in_calendar(page, date).click()
    dialog.get_by_role("button", name="Left out on purpose").click()
    expect(in_calendar(page, date)).to_have_accessible_name(f"{named(date)}: left out on purpose, with a note")
    expect(page.get_by_text("2 days in a row")).to_be_visible()
    in_calendar(page, date).click()
    dialog.get_by_role("button", name="Remove the check-in").click()
    expect(in_calendar(page, date)).to_have_accessible_name(f"{named(date)}: missed")
    assert str(date) not in [one["date"] for one in check_ins(owner, practice_id)]
    # Twelve weeks, and no day that has not begun.
    dates = page.locator("[data-date]").evaluate_all("(all) => all.map((one) => one.dataset.date)")
    assert dates[-1] == str(day(owner, practice_id)) and len(dates) == 77 + day(owner, practice_id).weekday() + 1


def test_old_notes_come_page_by_page(owner):
    practice_id = habit(owner, notes={ago: f"Note {ago}" for ago in range(1, 106)})
    page = owner.page(f"/practices/{practice_id}")
    notes = page.get_by_role("list", name="Notes, newest first").get_by_role("listitem")
    expect(notes).to_have_count(100)
    expect(notes.first).to_contain_text("Note 1")
    page.get_by_role("button", name="Older notes").click()
    expect(notes).to_have_count(105)
    expect(notes.last).to_contain_text("Note 105")
    expect(page.get_by_role("button", name="Older notes")).to_have_count(0)


def test_an_edit_in_two_tabs_loses_nothing(owner):
    practice_id = habit(owner, "Read")
    page = owner.page(f"/practices/{practice_id}")
    page.get_by_role("button", name="Edit", exact=True).click()
    page.get_by_label("Name", exact=True).fill("Read on paper")
    page.get_by_label("Sunday", exact=True).uncheck()
    page.get_by_label("Why, or how").fill("In the evening")
    axe(page)
    shot(page, "practice-edit-light")
    owner.call("PATCH", f"/practices/{practice_id}", {"name": "Read aloud", "timezone": "Asia/Tokyo"})
    page.get_by_role("button", name="Save").click()
    conflict = page.get_by_role("alert", name="Changed meanwhile")
    expect(conflict).to_contain_text("Read aloud")
    expect(conflict).to_contain_text("Read on paper")
    expect(conflict).to_contain_text("Taken over, because you have not changed it: Time zone.")
    page.reload()
    expect(conflict).to_be_visible()
    conflict.get_by_role("button", name="Keep mine").click()
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("heading", level=1, name="Read on paper")).to_be_visible()
    expect(page.get_by_text("its days begin and end in Asia/Tokyo")).to_be_visible()
    kept = stored(owner, practice_id)
    assert (kept["name"], kept["description"], kept["timezone"], kept["target"]["days"]) == ("Read on paper", "In the evening", "Asia/Tokyo", ALL_DAYS[:6])
    # A check-in of another tab is no conflict.
    page.get_by_role("button", name="Edit", exact=True).click()
    page.get_by_label("Time zone").select_option("As the account: UTC")
    owner.post(f"/practices/{practice_id}/check-ins")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("button", name="Edit", exact=True)).to_be_visible()
    assert "timezone" not in stored(owner, practice_id)


def test_two_tabs_and_one_day(owner):
    practice_id = habit(owner, "Read")
    first = owner.page("/practices")
    second = owner.page(f"/practices/{practice_id}", context=first.context)
    expect(first.get_by_role("button", name="Check in: Read")).to_be_visible()
    today = day(owner, practice_id)
    in_calendar(second, today).click()
    second.get_by_role("dialog").get_by_label("Note").fill("Two chapters")
    second.get_by_role("dialog").get_by_role("button", name="Done").click()
    expect(second.get_by_role("button", name=re.compile("^Done today"))).to_be_visible()
    # The first tab does not know of it. Its press does not take the note away.
    first.get_by_role("button", name="Check in: Read").click()
    expect(first.get_by_role("button", name=re.compile("^Done today"))).to_be_visible()
    assert [(one["done"], one["note"]) for one in check_ins(owner, practice_id)] == [(True, "Two chapters")]
    # Undo would, so it asks.
    first.get_by_role("button", name="Undo: Read").click()
    expect(first.get_by_role("dialog")).to_contain_text("Two chapters")
    first.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    # A note that was written meanwhile is shown, and not replaced unseen.
    first.get_by_role("button", name=re.compile("^Done today")).click()
    dialog = first.get_by_role("dialog")
    dialog.get_by_label("Note").fill("My own words")
    owner.post(f"/practices/{practice_id}/check-ins", {"date": str(today), "note": "From elsewhere"})
    dialog.get_by_role("button", name="Save").click()
    expect(dialog.get_by_role("alert")).to_contain_text("it is done, with the note “From elsewhere”")
    expect(dialog.get_by_label("Note")).to_have_value("My own words")
    assert check_ins(owner, practice_id)[0]["note"] == "From elsewhere"
    dialog.get_by_role("button", name="Save").click()
    expect(dialog).to_have_count(0)
    assert check_ins(owner, practice_id)[0]["note"] == "My own words"
    # What another tab has taken back already is no error.
    owner.call("DELETE", f"/practices/{practice_id}/check-ins/{today}")
    first.get_by_role("button", name="Undo: Read").click()
    first.get_by_role("dialog").get_by_role("button", name="Remove").click()
    expect(first.get_by_role("button", name="Check in: Read")).to_be_visible()


def test_archive_make_active_and_delete(owner):
    practice_id = habit(owner, "Cold shower", done=[1, 2, 3], notes={2: "Brr"})
    page = owner.page(f"/practices/{practice_id}")
    page.get_by_role("button", name="Archive").click()
    expect(page.get_by_role("button", name="Make active")).to_be_visible()
    expect(page.get_by_role("button", name=re.compile("^Check in"))).to_have_count(0)
    in_calendar(page, day(owner, practice_id, 2)).click()
    expect(page.get_by_role("dialog")).to_contain_text("An archived habit takes no check-ins.")
    expect(page.get_by_role("dialog")).to_contain_text("Brr")
    page.keyboard.press("Escape")
    page.get_by_role("link", name="Practice", exact=True).last.click()
    expect(page.get_by_role("region", name="Archived")).to_contain_text("best 3 days in a row")
    expect(page.get_by_text("No habit is active.")).to_be_visible()
    page.get_by_role("button", name="Make active: Cold shower").click()
    expect(page.get_by_role("button", name="Check in: Cold shower")).to_be_visible()
    assert stored(owner, practice_id)["status"] == "active"
    page.get_by_role("link", name="Cold shower").click()
    page.get_by_role("button", name="Delete…").click()
    dialog = page.get_by_role("dialog", name="Delete this habit?")
    expect(dialog).to_contain_text("“Cold shower” is deleted with all its check-ins and notes. This cannot be undone.")
    dialog.get_by_role("button", name="Cancel").click()
    assert stored(owner, practice_id)["name"] == "Cold shower"
    page.get_by_role("button", name="Delete…").click()
    dialog.get_by_role("button", name="Delete", exact=True).click()
    expect(page.get_by_text("Nothing is tracked yet.")).to_be_visible()
    assert owner.get("/practices")["data"] == []
    page = owner.page(f"/practices/{practice_id}")
    expect(page.get_by_role("heading", name="This does not exist")).to_be_visible()


def test_today_has_the_habits_of_today(owner):
    owner.agent()
    page = owner.page("/")
    expect(page.get_by_role("main").get_by_text("Nothing waits for you.")).to_be_visible()
    expect(page.get_by_role("region", name="Habits")).to_have_count(0)
    practice_id = habit(owner, "Read", done=[1])
    weekday = ALL_DAYS[day(owner, practice_id).weekday()]
    habit(owner, "On another day", target={"kind": "days", "days": [one for one in ALL_DAYS if one != weekday]})
    archived = habit(owner, "Given up")
    owner.call("PATCH", f"/practices/{archived}", {"status": "archived"})
    page.reload()
    habits = page.get_by_role("region", name="Habits")
    expect(habits).to_contain_text("1 left")
    expect(habits.get_by_role("button", name=re.compile("^Check in"))).to_have_count(1)
    habits.get_by_role("button", name="Check in: Read").click()
    expect(habits.get_by_role("button", name=re.compile("^Done today: Read"))).to_be_visible()
    expect(habits).to_contain_text("2 days in a row")
    assert stored(owner, practice_id)["today"]["done"] is True
    axe(page)
    shot(page, "today-habits-light")
    habits.get_by_role("button", name="Undo: Read").click()
    expect(habits.get_by_role("button", name="Check in: Read")).to_be_visible()
    assert stored(owner, practice_id)["today"]["done"] is None
    habits.get_by_role("link", name="All").click()
    expect(page).to_have_url(re.compile("#/practices$"))


def test_a_new_person_sees_habits_before_there_is_an_agent(owner):
    habit(owner, "Read")
    page = owner.page("/")
    expect(page.get_by_text("What should somebody look after for you?")).to_be_visible()
    expect(page.get_by_role("region", name="Habits").get_by_role("button", name="Check in: Read")).to_be_visible()


def test_keyboard_alone(owner):
    page = owner.page("/practices", theme="dark")

    def reach(locator, key="Tab", most=60):
        for _ in range(most):
            if locator.count() and locator.evaluate("(node) => node === document.activeElement"):
                return
            page.keyboard.press(key)
        raise AssertionError("the keyboard does not reach it")

    field = page.get_by_label("What do you want to do?")
    expect(field).to_be_visible()
    reach(field)
    page.keyboard.type("Read")
    page.keyboard.press("Enter")
    check_in = page.get_by_role("button", name="Check in: Read")
    expect(check_in).to_be_visible()
    reach(check_in)
    page.keyboard.press("Space")
    expect(page.get_by_role("button", name=re.compile("^Done today"))).to_be_focused()
    practice_id = owner.get("/practices")["data"][0]["practice_id"]
    assert stored(owner, practice_id)["today"]["done"] is True
    reach(page.get_by_role("link", name="Read", exact=True))
    page.keyboard.press("Enter")
    today = day(owner, practice_id)
    expect(in_calendar(page, today)).to_be_visible()
    # The calendar is one stop of the Tab key; the arrows go through it.
    reach(in_calendar(page, today))
    page.keyboard.press("ArrowUp")
    expect(in_calendar(page, today - datetime.timedelta(7))).to_be_focused()
    page.keyboard.press("ArrowLeft")
    chosen = today - datetime.timedelta(8)
    expect(in_calendar(page, chosen)).to_be_focused()
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog")
    reach(dialog.get_by_label("Note"))
    page.keyboard.type("By hand")
    reach(dialog.get_by_role("button", name="Done"))
    page.keyboard.press("Enter")
    expect(dialog).to_have_count(0)
    expect(in_calendar(page, chosen)).to_have_accessible_name(f"{named(chosen)}: done, with a note")
    expect(in_calendar(page, chosen)).to_be_focused()
    assert [one["note"] for one in check_ins(owner, practice_id) if one["date"] == str(chosen)] == ["By hand"]
    page.keyboard.press("End")
    expect(in_calendar(page, today)).to_be_focused()
    # The days ahead do not exist, so nothing moves.
    page.keyboard.press("ArrowRight")
    expect(in_calendar(page, today)).to_be_focused()
    page.keyboard.press("Home")
    assert page.evaluate("document.activeElement.dataset.date") == str(today - datetime.timedelta(77 + today.weekday()))
    edit = page.get_by_role("button", name="Edit", exact=True)
    reach(edit, "Shift+Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_label("Name", exact=True)).to_be_focused()
    page.keyboard.type(" aloud")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1, name="Read aloud")).to_be_visible()
    assert stored(owner, practice_id)["name"] == "Read aloud"
    delete = page.get_by_role("button", name="Delete…")
    reach(delete)
    page.keyboard.press("Enter")
    reach(page.get_by_role("dialog").get_by_role("button", name="Delete", exact=True))
    page.keyboard.press("Enter")
    expect(page.get_by_text("Nothing is tracked yet.")).to_be_visible()
    assert owner.get("/practices")["data"] == []


def test_hostile_strings_are_only_text(owner):
    owner.agent()
    practice_id = habit(owner, HOSTILE, notes={0: HOSTILE, 1: f"{HOSTILE}\n{'w' * 900}"}, description=f"{HOSTILE} {'x' * 200}")
    for address in ("/practices", f"/practices/{practice_id}", "/"):
        for width in (320, 1280):
            page = owner.page(address, width=width)
            expect(page.get_by_text(HOSTILE).first).to_be_visible()
            if practice_id in address:
                in_calendar(page, day(owner, practice_id)).click()
                expect(page.get_by_role("dialog").get_by_label("Note")).to_have_value(HOSTILE)
            fits(page)
            assert page.locator("main :is(img, iframe, script)").count() == 0
            assert page.evaluate("window.owned") is None
            page.context.close()
    page = owner.page("/practices/%3Cimg%20src%3Dx%3E?new=%22%3E")
    expect(page.get_by_role("heading", level=1)).to_have_text(re.compile("This (does not exist|could not be read)"))
    assert page.locator("main img").count() == 0


def test_a_day_ends_at_midnight_of_the_zone(owner):
    """Two zones whose clocks are exactly 24 hours apart: what is today in one is yesterday in the other, at any hour of any day."""
    practice_id = habit(owner, "Read", timezone="Pacific/Pago_Pago")
    tonga = habit(owner, "Read in Tonga", timezone="Pacific/Tongatapu")
    before, after = day(owner, practice_id), day(owner, tonga)
    assert after - before == datetime.timedelta(1)
    page = owner.page("/practices")
    for name in ("Read", "Read in Tonga"):
        page.get_by_role("button", name=f"Check in: {name}", exact=True).click()
        expect(page.get_by_role("button", name=f"Done today: {name}. Open the day")).to_be_visible()
    assert [one["date"] for one in check_ins(owner, practice_id)] == [str(before)]
    assert [one["date"] for one in check_ins(owner, tonga)] == [str(after)]
    page.goto(f"{owner.platform.url}/#/practices/{practice_id}")
    expect(in_calendar(page, before)).to_have_accessible_name(f"{named(before)}: done")
    expect(in_calendar(page, after)).to_have_count(0)
    expect(page.get_by_text("its days begin and end in Pacific/Pago Pago")).to_be_visible()
    # Midnight: the day that was today is yesterday. The streak goes on, and the new day waits.
    owner.call("PATCH", f"/practices/{practice_id}", {"timezone": "Pacific/Tongatapu"})
    page.reload()
    expect(in_calendar(page, before)).to_have_accessible_name(f"{named(before)}: done")
    expect(in_calendar(page, after)).to_have_accessible_name(f"{named(after)}: due today")
    expect(page.get_by_text("1 day in a row")).to_be_visible()
    page.get_by_role("button", name="Check in: Read", exact=True).click()
    expect(page.get_by_text("2 days in a row")).to_be_visible()
    assert [one["date"] for one in check_ins(owner, practice_id)] == [str(after), str(before)]


def test_a_press_after_midnight_means_the_day_that_is_shown(owner):
    practice_id = habit(owner, "Read", timezone="Pacific/Pago_Pago")
    shown = day(owner, practice_id)
    page = owner.page("/practices")
    expect(page.get_by_role("button", name="Check in: Read")).to_be_visible()
    # Midnight comes while the page is open.
    owner.call("PATCH", f"/practices/{practice_id}", {"timezone": "Pacific/Tongatapu"})
    page.get_by_role("button", name="Check in: Read").click()
    expect(row(page, "Read")).to_contain_text("1 day in a row")
    assert [one["date"] for one in check_ins(owner, practice_id)] == [str(shown)]
    # And the new day is there to be done.
    expect(page.get_by_role("button", name="Check in: Read")).to_be_visible()


def test_a_failed_check_in_says_so_and_can_be_repeated(owner):
    practice_id = habit(owner, "Read")
    page = owner.page("/practices")
    expect(page.get_by_role("button", name="Check in: Read")).to_be_visible()
    page.route("**/check-ins", lambda route: route.fulfill(status=500, content_type="application/problem+json", body=json.dumps({"code": "internal", "detail": "The table does not answer.", "request_id": "req_1"})))
    page.get_by_role("button", name="Check in: Read").click()
    expect(page.get_by_role("alert")).to_contain_text("The table does not answer.")
    expect(page.get_by_role("button", name="Check in: Read")).to_be_visible()
    page.unroute_all()
    page.get_by_role("button", name="Check in: Read").click()
    expect(page.get_by_role("button", name=re.compile("^Done today"))).to_be_visible()
    expect(page.get_by_role("alert")).to_have_count(0)
    assert stored(owner, practice_id)["today"]["done"] is True


def test_the_palette_finds_a_habit(owner):
    practice_id = habit(owner, "Practise the cello")
    page = owner.page("/")
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    page.keyboard.press("Control+k")
    page.keyboard.type("cello")
    expect(page.get_by_role("option", name=re.compile("Practise the cello"))).to_be_visible()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(practice_id))
    expect(page.get_by_role("heading", level=1, name="Practise the cello")).to_be_visible()


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [320, 1280])
def test_pages_fit_and_can_be_used_by_everybody(owner, theme, width):
    practice_id = habit(owner, done=[ago for ago in range(1, 60) if ago % 9], left=[61], notes={1: "Two chapters of Middlemarch.", 12: "Only ten minutes, tired."}, description="In the evening, on paper.")
    runs = habit(owner, "Run", done=[0, 2, 7, 9, 11], target={"kind": "times_a_week", "times": 3})
    owner.call("PATCH", f"/practices/{habit(owner, 'Cold shower')}", {"status": "archived"})
    for name, address in (("practice", "/practices"), ("practice-new", "/practices?new"), ("practice-one", f"/practices/{practice_id}"), ("practice-weekly", f"/practices/{runs}")):
        page = owner.page(address, width=width, theme=theme)
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        expect(page.get_by_role("button", name=re.compile("^(Check in|Done today): ")).first).to_be_visible()
        fits(page)
        axe(page)
        shot(page, f"{name}-{theme}-{width}")
        page.context.close()
