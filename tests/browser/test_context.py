"""Context and logs: a person reads, edits and restores a document, reads logs, and moves them as a zip."""

import io
import json
import re
import urllib.request
import zipfile

from playwright.sync_api import expect

from conftest import axe, shot

HOSTILE = "<img src=x onerror=\"window.owned=1\"> [a](javascript:alert(1)) ![i](https://example.com/i.png)"
FIRST = f"""# Context Document

## Metadata
- Title: Cart drawer
- Task: Close it on Escape

## PLAN

**Status**: completed

### Task
- Plan the change

### Decisions
- One listener on the element
- {HOSTILE}
"""


def write(owner, text, workflow="default", version=None):
    request = urllib.request.Request(
        f"http://127.0.0.1:{owner.platform.port}/projects/default/context.md?workflow={workflow}", method="PUT", data=text.encode(),
        headers={"content-type": "text/markdown", **({"if-match": f'"{version}"'} if version is not None else {})},
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)["version"]


def markdown(owner, workflow="default"):
    return owner.get(f"/projects/default/context.md?workflow={workflow}")


def logged(owner, session="s-1", agent="arch-auth", **fields):
    return owner.post(f"/context/logs/{agent}", {"session_id": session, "agent_type": "the-architect", **fields})


def fits(page):
    wide = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    too_wide = page.evaluate("[...document.querySelectorAll('main *')].filter((node) => node.getBoundingClientRect().right > innerWidth + 1 && !node.closest('pre, .tabs')).map((node) => node.outerHTML.slice(0, 120)).slice(0, 5)")
    assert wide[0] <= wide[1] and too_wide == [], f"the page is {wide[0]} wide in a window of {wide[1]}: {too_wide}"


def test_the_empty_page_says_how_an_assistant_is_connected(owner):
    page = owner.page("/context")
    expect(page.get_by_text("There is no document yet.")).to_be_visible()
    command = page.get_by_role("region", name="The command that adds the server")
    expect(command).to_have_text(f"claude mcp add --transport http lamplighter {owner.platform.url}/mcp")
    hooks = json.loads(page.get_by_role("region", name="The hooks of Claude Code").inner_text())
    assert hooks["hooks"]["PreToolUse"] == [{"matcher": "Task|Agent", "hooks": [{"type": "command", "command": "lamplighter log --assistant"}]}]
    shot(page, "context-empty-light")
    page.get_by_role("link", name="Write the first one").click()
    page.get_by_label("The document as Markdown").fill(FIRST)
    page.get_by_role("button", name="Save the first version").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Cart drawer")
    assert "- One listener on the element" in markdown(owner)
    assert owner.get("/projects/default/context")["version"] == 1


def test_a_document_is_read_in_sections_and_as_markdown(owner):
    write(owner, FIRST)
    page = owner.page("/context")
    page.get_by_role("link", name="Cart drawer").click()
    plan = page.get_by_role("region", name="PLAN")
    expect(plan).to_contain_text("completed")
    expect(plan.get_by_role("listitem")).to_have_text(["One listener on the element", HOSTILE])
    shot(page, "context-document-light")
    page.get_by_role("link", name="Markdown", exact=True).click()
    expect(page.get_by_text("Copy the Markdown")).to_be_visible()
    shown = page.get_by_role("region", name="The document as Markdown")
    expect(shown).to_contain_text('<img src=x onerror="window.owned=1">')
    assert shown.locator("img, a[href^='javascript']").count() == 0
    assert page.locator("main img").count() == 0
    assert page.evaluate("window.owned") is None


def test_two_pages_edit_and_nothing_is_lost(owner):
    write(owner, FIRST)
    address = "/context/documents/default?show=edit"
    mine, theirs = owner.page(address), owner.page(address)
    for page, text in ((theirs, "- Theirs: a listener on the window\n"), (mine, "- Mine: a listener on the dialog\n")):
        editor = page.get_by_label("The document as Markdown")
        expect(editor).to_have_value(re.compile("One listener"))
        editor.fill(editor.input_value() + text)
    theirs.get_by_role("button", name="Save as version 2").click()
    expect(theirs.get_by_role("region", name="PLAN")).to_contain_text("Theirs: a listener on the window")
    mine.get_by_role("button", name="Save as version 2").click()
    conflict = mine.get_by_role("alert", name="Somebody else has changed the document")
    expect(conflict).to_contain_text("Now it is version 2")
    expect(conflict).to_contain_text("Theirs: a listener on the window")
    expect(conflict).to_contain_text("Mine: a listener on the dialog")
    shot(mine, "context-conflict-light")
    assert owner.get("/projects/default/context")["version"] == 2
    # The draft outlives a reload, and so does the conflict.
    mine.reload()
    expect(mine.get_by_label("The document as Markdown")).to_have_value(re.compile("Mine: a listener"))
    mine.get_by_role("button", name="Take theirs, keep mine below").click()
    expect(mine.get_by_label("The document as Markdown")).to_have_value(re.compile("Theirs: a listener"))
    kept = mine.get_by_role("region", name="Your text, which is not saved").locator("pre")
    expect(kept).to_contain_text("Mine: a listener on the dialog")
    editor = mine.get_by_label("The document as Markdown")
    editor.fill(editor.input_value() + "- Mine: a listener on the dialog\n")
    mine.get_by_role("button", name="Save as version 3").click()
    expect(mine.get_by_role("region", name="PLAN")).to_contain_text("Mine: a listener on the dialog")
    text = markdown(owner)
    assert "Theirs: a listener on the window" in text and "Mine: a listener on the dialog" in text
    # What was saved is no draft any more.
    mine.goto(f"{owner.platform.url}/#{address}")
    expect(mine.get_by_role("button", name="Save as version 4")).to_be_disabled()


def test_going_on_with_mine_replaces_theirs_which_stays_a_version(owner):
    write(owner, FIRST)
    page = owner.page("/context/documents/default?show=edit")
    editor = page.get_by_label("The document as Markdown")
    expect(editor).to_have_value(re.compile("One listener"))
    editor.fill(FIRST.replace("One listener", "My listener"))
    write(owner, FIRST.replace("One listener", "Their listener"))
    editor.press("Control+Enter")
    page.get_by_role("button", name="Go on with mine").click()
    page.get_by_role("button", name="Save as version 3").click()
    expect(page.get_by_role("region", name="PLAN")).to_contain_text("My listener")
    assert "My listener" in markdown(owner)
    assert "Their listener" in owner.get("/projects/default/context.md?version=2")


def test_two_workflows_have_drafts_of_their_own(owner):
    write(owner, FIRST)
    write(owner, FIRST.replace("Cart drawer", "Checkout").replace("One listener", "No listener"), workflow="checkout")
    page = owner.page("/context/documents/default?show=edit")
    editor = page.get_by_label("The document as Markdown")
    expect(editor).to_have_value(re.compile("One listener"))
    editor.fill(FIRST + "- Only for the cart\n")
    page.evaluate("location.hash = '#/context/documents/default?workflow=checkout&show=edit'")
    expect(editor).to_have_value(re.compile("No listener"))
    expect(page.get_by_role("button", name="Save as version 2")).to_be_disabled()
    page.go_back()
    expect(editor).to_have_value(re.compile("Only for the cart"))
    page.get_by_role("button", name="Save as version 2").click()
    expect(page.get_by_role("region", name="PLAN")).to_contain_text("Only for the cart")
    assert "Only for the cart" not in markdown(owner, "checkout")


def test_a_text_that_is_no_document_is_refused_and_kept(owner):
    write(owner, FIRST)
    page = owner.page("/context/documents/default?show=edit")
    page.get_by_label("The document as Markdown").fill("no document at all")
    page.get_by_role("button", name="Save as version 2").click()
    expect(page.get_by_role("alert")).to_contain_text("line 1")
    page.reload()
    expect(page.get_by_label("The document as Markdown")).to_have_value("no document at all")
    page.get_by_role("button", name="Drop my changes").click()
    page.get_by_role("dialog").get_by_role("button", name="Drop my changes").click()
    expect(page.get_by_label("The document as Markdown")).to_have_value(re.compile("One listener"))
    assert owner.get("/projects/default/context")["version"] == 1


def test_an_older_version_is_compared_and_restored(owner):
    write(owner, FIRST)
    write(owner, FIRST.replace("One listener on the element", "Two listeners"))
    page = owner.page("/context/documents/default?show=versions")
    page.get_by_role("link", name="Compare version 1").click()
    change = page.get_by_role("region", name="From version 1 to version 2")
    expect(change).to_contain_text("One listener on the element")
    expect(change).to_contain_text("Two listeners")
    shot(page, "context-versions-light")
    page.get_by_role("button", name="Restore version 1").click()
    expect(page.get_by_role("link", name="Restored")).to_be_visible()
    assert owner.get("/projects/default/context")["version"] == 3
    assert "One listener on the element" in markdown(owner)
    page.goto(f"{owner.platform.url}/#/context/documents/default?show=versions&v=99")
    expect(page.get_by_role("alert")).to_contain_text("There is no version 99.")


def test_logs_are_read_filtered_and_shown_as_text(owner):
    logged(owner, event="agent_start", description=HOSTILE, instruction="Design the sessions.\n" + "Long. " * 200)
    logged(owner, event="agent_complete", description="Design auth", output_summary="Sessions in DynamoDB, one item each.")
    logged(owner, session="s-2", agent="reviewer", event="agent_complete", description="Review", output_summary="It is right.")
    page = owner.page("/context/logs")
    expect(page.get_by_role("region", name="s-1")).to_contain_text("2 entries")
    page.keyboard.press("/")
    page.keyboard.type("review")
    expect(page.get_by_role("region", name="s-1")).to_have_count(0)
    expect(page.get_by_role("region", name="s-2")).to_be_visible()
    page.get_by_label("Filter").fill("")
    page.get_by_role("link", name="arch-auth").click()
    entries = page.get_by_role("list", name="Entries, oldest first").locator(":scope > li")
    expect(entries).to_have_count(2)
    expect(entries.nth(0)).to_contain_text(HOSTILE)
    expect(entries.nth(1)).to_contain_text("Sessions in DynamoDB, one item each.")
    shot(page, "context-log-light")
    page.get_by_label("Filter").fill("dynamodb")
    expect(entries).to_have_count(1)
    page.get_by_role("link", name="Text", exact=True).click()
    expect(page.get_by_role("region", name="The log as text")).to_contain_text("[agent_complete] Design auth")
    assert page.evaluate("window.owned") is None
    page.goto(f"{owner.platform.url}/#/context/logs/nobody")
    expect(page.get_by_text("No session has a log of this agent.")).to_be_visible()


def test_logs_are_exported_and_imported_again(owner, tmp_path):
    logged(owner, event="agent_complete", description="Design auth", output_summary="Sessions in DynamoDB.")
    page = owner.page("/context/logs")
    with page.expect_download() as download:
        page.get_by_role("button", name="Export as a zip").click()
    assert download.value.suggested_filename == "context-logs.zip"
    content = open(download.value.path(), "rb").read()
    names = zipfile.ZipFile(io.BytesIO(content)).namelist()
    assert "s-1/arch-auth.jsonl" in names
    # The same zip under another session is new; the old one is there already.
    changed = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as source, zipfile.ZipFile(changed, "w") as into:
        line = source.read("s-1/arch-auth.jsonl").decode()
        into.writestr("s-1/arch-auth.jsonl", line)
        into.writestr("s-9/arch-auth.jsonl", line.replace("s-1", "s-9") + "this is no entry\n")
    (tmp_path / "logs.zip").write_bytes(changed.getvalue())
    page.get_by_role("button", name="Import a zip…").click()
    page.get_by_label("Choose a zip of logs").set_input_files(tmp_path / "logs.zip")
    status = page.get_by_role("status").filter(has_text="Imported")
    expect(status).to_contain_text("Imported 1 log with 1 entry.")
    expect(status).to_contain_text("1, because they are not entries")
    expect(page.get_by_role("region", name="s-9")).to_be_visible()
    assert {session["session_id"] for session in owner.get("/context/logs")["data"]} == {"s-1", "s-9"}


def test_refused_hooks_are_shown_with_their_reason(owner):
    owner.post("/context/hooks", {"what": HOSTILE})
    page = owner.page("/context/hooks")
    refused = owner.get("/context/hooks/rejected")["data"][0]
    region = page.get_by_role("region", name="Refused")
    expect(region).to_contain_text(refused["reason"])
    region.get_by_text("What was sent").click()
    expect(region.get_by_role("region", name="What was sent")).to_have_text(refused["excerpt"])
    assert page.evaluate("window.owned") is None


def test_narrow_and_dark_pages_fit(owner):
    write(owner, FIRST + "- " + "x" * 400 + "\n")
    write(owner, FIRST)
    logged(owner, session="s-" + "long" * 30, event="agent_complete", description="y" * 300, output_summary="z" * 900)
    owner.post("/context/hooks", {"what": HOSTILE})
    session = "s-" + "long" * 30
    for width, theme in ((320, "light"), (1280, "dark")):
        for name, address in (("documents", "/context"), ("document", "/context/documents/default"), ("edit", "/context/documents/default?show=edit"), ("versions", "/context/documents/default?show=versions&v=1"), ("logs", "/context/logs"), ("log", f"/context/logs/arch-auth?session={session}"), ("hooks", "/context/hooks")):
            page = owner.page(address, width=width, theme=theme)
            expect(page.get_by_role("heading", level=1)).to_be_visible()
            expect(page.get_by_text("Reading…")).to_have_count(0)
            for summary in page.locator("main summary").all():
                summary.click()
            fits(page)
            axe(page)
            page.evaluate("document.activeElement.blur()")
            shot(page, f"context-{width}-{theme}-{name}")
            page.context.close()
