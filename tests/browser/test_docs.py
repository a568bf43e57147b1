"""Living documents: a person writes them, compares and restores versions, brings them up to date with commits, and connects a repository."""

import hashlib
import hmac
import json
import re
import urllib.error
import urllib.request

import pytest
from playwright.sync_api import expect

from conftest import Owner, Platform, axe, shot
from test_assets import fits

DOCS = "/projects/default/docs"
# What the platform calls the project `default`.
DEFAULT = f"prj_{'0' * 32}"
HOSTILE = "<img src=x onerror=\"window.owned=1\"> [a](javascript:alert(1)) ![i](https://example.com/i.png) '&{{7*7}}"
FIRST = "# Architecture\n\nOne program.\n\nIt lights the lamps.\n"
TWO = FIRST.replace("One program", "Two programs")


def document(owner, name="ARCHITECTURE.md", content=FIRST, project="default"):
    return owner.post(f"/projects/{project}/docs", {"name": name, "content": content})


def replaced(owner, content, name="ARCHITECTURE.md"):
    return owner.call("PUT", f"{DOCS}/{name}", {"content": content})["version"]


def stored(owner, name="ARCHITECTURE.md"):
    """The newest text without the lines that say how far it is."""
    newest = owner.get(f"{DOCS}/{name}")["version"]
    return owner.get(f"{DOCS}/{name}?version={newest}")["content"]


def commit(number, message=None, **fields):
    return {"id": f"{number:040x}", "at": "2026-11-20T08:00:00Z", "author": "Ada", "message": message or f"Change number {number}", "files": [f"src/file_{number}.rs"], **fields}


def report(owner, *commits, project="default"):
    return owner.post(f"/projects/{project}/docs/commits", {"commits": list(commits)})


def editor(page):
    return page.get_by_label("The document as Markdown")


def body(page):
    return page.get_by_role("region", name="The document", exact=True)


def state(page):
    return page.locator(".living-state")


def sync_of(**fields):
    """A synchronisation as the platform shows it."""
    return {"sync_id": "syn_01938f2a7c5e7d3a9b1f4c6d8e0a2b4c", "project_id": "default", "requested_at": "2026-11-27T08:00:00Z", "state": "waiting", "commits": 0, "changed": [], "left_out": 0, "cost_micros": 0, "tries": 0, **fields}


def with_sync(page, owner, sync):
    """The page sees this synchronisation, until it is changed. All else is the platform's."""
    def answer(route):
        if route.request.method != "GET":
            return route.continue_()
        shown = owner.get(DOCS)
        shown.pop("sync", None)
        route.fulfill(json={**shown, **({"sync": dict(sync)} if sync else {})})

    page.route(re.compile(rf"/projects/(default|{DEFAULT})/docs$"), answer)


# ---- A document ----


def test_the_empty_page_says_what_belongs_there_and_the_first_document_is_written(owner):
    page = owner.page("/context")
    page.get_by_role("link", name="Living documents").click()
    expect(page).to_have_url(re.compile("#/context/docs$"))
    expect(page.get_by_text("There is no document yet.")).to_be_visible()
    expect(page.locator("main")).to_contain_text("lamplighter docs hook install")
    axe(page)
    shot(page, "docs-empty-light")
    page.get_by_role("link", name="Write the first one").click()
    expect(page).to_have_url(re.compile(f"#/context/docs/({DEFAULT}|default)$"))
    expect(page.get_by_role("region", name="The commands that install the hook")).to_have_text(f"export LAMPLIGHTER_URL={owner.platform.url}\nlamplighter docs hook install")
    name = page.get_by_label("Name of a new document")
    write = page.get_by_role("button", name="Write it")
    for bad in ("../etc", "-a", "a b", "sync", "Ä.md"):
        name.fill(bad)
        expect(page.get_by_role("form", name="New document").get_by_role("alert")).to_be_visible()
        expect(write).to_be_disabled()
    axe(page)
    name.fill("ARCHITECTURE.md")
    name.press("Enter")
    expect(page).to_have_url(re.compile(rf"#/context/docs/{DEFAULT}/ARCHITECTURE\.md\?show=edit$"))
    expect(page.get_by_role("button", name="Save the first version")).to_be_disabled()
    editor(page).fill(FIRST)
    # What is typed outlives a reload before anything is stored.
    page.reload()
    expect(editor(page)).to_have_value(FIRST)
    axe(page)
    editor(page).press("Control+Enter")
    expect(body(page)).to_contain_text("It lights the lamps.")
    expect(body(page).get_by_role("heading", name="Architecture")).to_be_visible()
    assert stored(owner) == FIRST
    axe(page)
    shot(page, "doc-light")


def test_a_document_is_edited_downloaded_and_deleted(owner):
    document(owner, content=f"---\ntitle: The shop\n---\n{FIRST}")
    report(owner, commit(1))
    page = owner.page("/context/docs/default/ARCHITECTURE.md")
    expect(page.get_by_text("1 commit behind")).to_be_visible()
    expect(body(page)).not_to_contain_text("title: The shop")
    page.get_by_text("Frontmatter").click()
    expect(page.get_by_role("region", name="The frontmatter")).to_have_text("title: The shop\n")
    page.get_by_role("link", name="Markdown", exact=True).click()
    expect(page.get_by_role("region", name="The document as Markdown")).to_contain_text("commits_since_sync: 1")
    page.get_by_role("link", name="Text", exact=True).click()
    with page.expect_download() as download:
        page.get_by_role("button", name="Download").click()
    assert download.value.suggested_filename == "ARCHITECTURE.md"
    assert open(download.value.path()).read() == owner.get(f"{DOCS}/ARCHITECTURE.md")["content"]
    page.get_by_role("link", name="Edit").click()
    # The lines that the platform adds are not there to be edited.
    expect(editor(page)).to_have_value(f"---\ntitle: The shop\n---\n{FIRST}")
    editor(page).fill(f"---\ntitle: The shop\n---\n{FIRST}Two.\n")
    page.get_by_role("button", name="Save as version 2").click()
    expect(body(page)).to_contain_text("Two.")
    assert stored(owner).endswith("Two.\n")
    # Changes that are dropped leave nothing.
    page.get_by_role("link", name="Edit").click()
    editor(page).fill("Never")
    expect(page.get_by_role("link", name="Edit (draft)")).to_be_visible()
    page.get_by_role("button", name="Drop my changes…").click()
    page.get_by_role("dialog").get_by_role("button", name="Drop my changes").click()
    expect(body(page)).to_contain_text("Two.")
    assert owner.get(f"{DOCS}/ARCHITECTURE.md")["version"] == 2
    page.get_by_role("button", name="Delete…").click()
    axe(page)
    page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    assert owner.get(f"{DOCS}/ARCHITECTURE.md")["version"] == 2
    page.get_by_role("button", name="Delete…").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete", exact=True).click()
    expect(page).to_have_url(re.compile(f"#/context/docs/({DEFAULT}|default)$"))
    assert owner.get(DOCS)["documents"] == []
    page.goto(f"{owner.platform.url}/#/context/docs/default/ARCHITECTURE.md")
    expect(page.get_by_text("There is no document of this name")).to_be_visible()
    axe(page)


def test_two_pages_edit_and_nothing_is_lost(owner):
    document(owner)
    address = "/context/docs/default/ARCHITECTURE.md?show=edit"
    mine, theirs = owner.page(address), owner.page(address)
    for page, text in ((theirs, "Theirs.\n"), (mine, "Mine.\n")):
        expect(editor(page)).to_have_value(FIRST)
        editor(page).fill(FIRST + text)
    theirs.get_by_role("button", name="Save as version 2").click()
    expect(body(theirs)).to_contain_text("Theirs.")
    mine.get_by_role("button", name=re.compile("Save as version")).click()
    conflict = mine.get_by_role("alert", name="Changed meanwhile")
    expect(conflict.locator(".diff").first.locator("li.del")).to_contain_text("Theirs.")
    expect(conflict.locator(".diff").first.locator("li.add")).to_contain_text("Mine.")
    # What they have changed since I began, without mine.
    conflict.get_by_text("What was changed meanwhile").click()
    meanwhile = conflict.locator("details .diff")
    expect(meanwhile.locator("li.add")).to_contain_text("Theirs.")
    expect(meanwhile).not_to_contain_text("Mine.")
    save = mine.get_by_role("button", name="Save as version 3")
    expect(save).to_be_disabled()
    axe(mine)
    shot(mine, "doc-conflict-light")
    assert stored(owner) == FIRST + "Theirs.\n"
    # The question outlives a reload, and so does the text.
    mine.reload()
    expect(editor(mine)).to_have_value(FIRST + "Mine.\n")
    expect(mine.get_by_role("alert", name="Changed meanwhile")).to_contain_text("What was changed meanwhile")
    mine.get_by_role("button", name="Take theirs").click()
    expect(editor(mine)).to_have_value(FIRST + "Theirs.\n")
    left = mine.get_by_role("region", name="Your text, which is not saved")
    expect(left).to_have_text(FIRST + "Mine.\n")
    mine.reload()
    expect(left).to_have_text(FIRST + "Mine.\n")
    axe(mine)
    editor(mine).fill(FIRST + "Theirs.\nMine.\n")
    save.click()
    expect(body(mine)).to_contain_text("Mine.")
    assert stored(owner) == FIRST + "Theirs.\nMine.\n"
    # What was saved is no draft any more.
    mine.get_by_role("link", name="Edit", exact=True).click()
    expect(mine.get_by_role("button", name="Save as version 4")).to_be_disabled()
    expect(left).to_have_count(0)


def test_mine_can_replace_theirs_which_stays_a_version(owner):
    document(owner)
    page = owner.page("/context/docs/default/ARCHITECTURE.md?show=edit")
    expect(editor(page)).to_have_value(FIRST)
    editor(page).fill("Mine\n")
    replaced(owner, "Theirs\n")
    editor(page).press("Control+Enter")
    page.get_by_role("button", name="Keep mine").click()
    page.get_by_role("button", name="Save as version 3").click()
    expect(body(page)).to_have_text("Mine")
    assert stored(owner) == "Mine\n"
    assert owner.get(f"{DOCS}/ARCHITECTURE.md?version=2")["content"] == "Theirs\n"


def test_a_cut_connection_loses_nothing_and_stores_once(owner):
    document(owner)
    page = owner.page("/context/docs/default/ARCHITECTURE.md?show=edit")
    expect(editor(page)).to_have_value(FIRST)
    editor(page).fill("Written without a connection\n")
    page.context.set_offline(True)
    page.get_by_role("button", name="Save as version 2").click()
    expect(page.get_by_role("alert")).to_contain_text("The platform does not answer.")
    expect(editor(page)).to_have_value("Written without a connection\n")
    page.context.set_offline(False)
    # The text is stored and the answer is lost. The next try finds what it has written.
    lost = []

    def lose(route):
        if route.request.method != "PUT" or lost:
            return route.continue_()
        lost.append(route.fetch().status)
        route.abort()

    page.route(re.compile(r"/docs/ARCHITECTURE\.md$"), lose)
    page.get_by_role("button", name="Save as version 2").click()
    expect(body(page)).to_have_text("Written without a connection")
    expect(page.get_by_role("alert")).to_have_count(0)
    assert lost == [200]
    assert owner.get(f"{DOCS}/ARCHITECTURE.md")["version"] == 2


def test_a_document_that_was_deleted_meanwhile_is_written_again(owner):
    document(owner)
    page = owner.page("/context/docs/default/ARCHITECTURE.md?show=edit")
    expect(editor(page)).to_have_value(FIRST)
    editor(page).fill("Mine\n")
    owner.call("DELETE", f"{DOCS}/ARCHITECTURE.md")
    page.get_by_role("button", name="Save as version 2").click()
    expect(page.get_by_text("Saving creates it.")).to_be_visible()
    page.reload()
    expect(editor(page)).to_have_value("Mine\n")
    # And somebody writes another one of the same name.
    document(owner, content="Theirs\n")
    page.get_by_role("button", name="Save the first version").click()
    expect(page.get_by_role("alert", name="Changed meanwhile").locator("li.del").first).to_contain_text("Theirs")
    assert stored(owner) == "Theirs\n"
    page.get_by_role("button", name="Keep mine").click()
    page.get_by_role("button", name="Save as version 2").click()
    expect(body(page)).to_have_text("Mine")
    assert stored(owner) == "Mine\n"


def test_a_text_that_is_too_long_is_not_sent(owner):
    document(owner)
    page = owner.page("/context/docs/default/ARCHITECTURE.md?show=edit")
    editor(page).fill("é" * 102_401)
    expect(page.get_by_role("alert")).to_contain_text("204,802 bytes")
    expect(page.get_by_role("button", name="Save as version 2")).to_be_disabled()
    axe(page)


# ---- Versions ----


def test_versions_are_compared_and_restored(owner):
    document(owner)
    replaced(owner, FIRST.replace("One program", "Two programs"))
    replaced(owner, FIRST.replace("One program", "Three programs"))
    page = owner.page("/context/docs/default/ARCHITECTURE.md?show=versions")
    listed = page.get_by_role("region", name="Versions").locator(".rows > li")
    expect(listed).to_have_count(3)
    # The link of a version shows what made it.
    listed.nth(1).get_by_role("link", name="Written").click()
    change = page.get_by_role("region", name="From version 1 to version 2")
    expect(change.locator("li.del")).to_contain_text("One program.")
    expect(change.locator("li.add")).to_contain_text("Two programs.")
    listed.nth(2).get_by_role("link", name="Created").click()
    expect(page.get_by_role("region", name="Version 1", exact=True)).to_contain_text("One program.")
    page.get_by_role("link", name="Compare version 1 with the newest").click()
    change = page.get_by_role("region", name="From version 1 to version 3")
    expect(change.locator("li.add")).to_contain_text("Three programs.")
    axe(page)
    shot(page, "doc-versions-light")
    page.get_by_role("button", name="Restore version 1").click()
    expect(listed).to_have_count(4)
    expect(listed.first).to_contain_text("Restored")
    assert stored(owner) == FIRST
    # Somebody writes after this page was read: nothing is restored over it.
    page.get_by_role("link", name="Compare version 2 with the newest").click()
    expect(page.get_by_role("button", name="Restore version 2")).to_be_visible()
    replaced(owner, "Theirs\n")
    page.get_by_role("button", name="Restore version 2").click()
    expect(page.get_by_role("alert")).to_contain_text("version_conflict")
    assert stored(owner) == "Theirs\n"
    for unknown in ("v=99", "v=a", "v=2&from=0"):
        page.goto(f"{owner.platform.url}/#/context/docs/default/ARCHITECTURE.md?show=versions&{unknown}")
        expect(page.get_by_role("alert")).to_contain_text("There is no such version.")


# ---- How far they are ----


def test_how_far_the_documents_are_is_said_and_shown(owner):
    document(owner)
    page = owner.page("/context/docs/default")
    expect(state(page)).to_contain_text("no commit was reported yet")
    up = page.get_by_role("button", name="Bring up to date")
    expect(up).to_have_count(0)
    report(owner, commit(1, HOSTILE + "\n\nThe reason.\n" + HOSTILE, author=HOSTILE[:100], files=[HOSTILE, "src/a b.rs"], more_files=3))
    page.reload()
    expect(state(page)).to_contain_text("1 commit behind")
    expect(state(page).locator(".lamp.late")).to_be_visible()
    expect(up).not_to_have_class(re.compile("primary"))
    page.get_by_text("1 commit waits").click()
    waiting = page.get_by_role("list", name="Commits that wait, oldest first")
    expect(waiting.get_by_text(HOSTILE, exact=True).first).to_be_visible()
    expect(waiting).not_to_contain_text("The reason.", use_inner_text=True)
    waiting.get_by_text("Whole message, 5 files").click()
    expect(waiting).to_contain_text("The reason.")
    expect(waiting.get_by_role("listitem").filter(has_text="src/a b.rs").last).to_be_visible()
    expect(waiting).to_contain_text("and 3 more")
    axe(page)
    assert page.evaluate("window.owned") is None and waiting.locator("img, a").count() == 0
    report(owner, commit(2), commit(3))
    page.reload()
    expect(state(page)).to_contain_text("3 commits behind")
    expect(state(page).locator(".lamp.missed")).to_be_visible()
    expect(up).to_have_class(re.compile("primary"))
    axe(page)
    # The list of all projects says the same, and its button names the project.
    page.goto(f"{owner.platform.url}/#/context/docs")
    expect(state(page)).to_contain_text("3 commits behind")
    expect(page.get_by_role("button", name="Bring up to date: ")).to_have_class(re.compile("primary"))
    page.get_by_text("3 commits wait").click()
    expect(page.get_by_role("list", name="Commits that wait, oldest first").locator(":scope > li")).to_have_count(3)
    axe(page)
    shot(page, "docs-stale-light")


def test_many_commits_are_shown_in_part_at_first(owner):
    report(owner, *(commit(number) for number in range(1, 121)))
    page = owner.page("/context/docs/default")
    expect(page.get_by_text("The commits wait for the first document.")).to_be_visible()
    expect(page.get_by_role("button", name="Bring up to date")).to_have_count(0)
    page.get_by_text("120 commits wait").click()
    listed = page.get_by_role("list", name="Commits that wait, oldest first").locator(":scope > li")
    expect(listed).to_have_count(50)
    page.get_by_role("button", name="Show all 120").click()
    expect(listed).to_have_count(120)


# ---- Synchronisations ----


@pytest.fixture
def paced(tmp_path, browser, pace):
    """An owner of a platform whose model is `pace`."""
    platform = Platform(tmp_path, auth="off", environment=pace.environment())
    owner = Owner(platform, browser)
    yield owner
    owner.close()
    platform.end()


def test_a_model_brings_the_documents_up_to_date(paced, pace):
    owner = paced
    document(owner)
    report(owner, commit(1), commit(2), commit(3))
    page = owner.page("/context/docs/default")
    page.get_by_role("button", name="Bring up to date").click()
    sync = page.get_by_role("region", name="Newest synchronisation")
    # It goes on, and the page says so without a press.
    expect(sync).to_contain_text("goes on")
    expect(page.get_by_role("button", name="Bring up to date")).to_have_count(0)
    axe(page)
    pace.say(f"===ARCHITECTURE.md===\n{TWO}\n===END===\n", None)
    expect(sync).to_contain_text("It took 3 commits and changed ARCHITECTURE.md.")
    expect(state(page)).to_contain_text("up to date")
    expect(state(page).locator(".lamp.lit")).to_be_visible()
    expect(page.get_by_text("commits wait")).to_have_count(0)
    axe(page)
    shot(page, "docs-synced-light")
    sync.get_by_role("link", name="ARCHITECTURE.md").click()
    change = page.get_by_role("region", name="From version 1 to version 2")
    expect(change.locator("li.add")).to_contain_text("Two programs.")
    first = page.get_by_role("region", name="Versions").locator(".rows > li").first
    expect(first).to_contain_text("Brought up to date")
    expect(first).to_contain_text("by the newest synchronisation syn_")
    assert stored(owner) == TWO


def test_a_synchronisation_without_an_able_model_says_why_it_waits_or_fails(owner):
    document(owner)
    report(owner, commit(1))
    page = owner.page("/context/docs")
    page.get_by_role("button", name="Bring up to date: ").click()
    told = page.get_by_role("region", name=owner.get("/projects/default")["name"]).get_by_role("status")
    owner.wait(lambda: (sync := owner.get(DOCS).get("sync")) and (sync.get("error") or sync["state"] == "succeeded"))
    expect(told).to_contain_text(re.compile("try has failed|as they were|It took 1 commit"))
    assert replaced(owner, "Still writable\n") >= 2


def test_each_state_of_a_synchronisation(owner):
    document(owner)
    document(owner, "DESIGN.md", "# Design\n")
    report(owner, commit(1), commit(2), commit(3))
    sync = sync_of()
    page = owner.context().new_page()
    with_sync(page, owner, sync)
    page.goto(f"{owner.platform.url}/#/context/docs/default")
    shown = page.get_by_role("region", name="Newest synchronisation")
    told = shown.get_by_role("status")
    expect(told).to_contain_text("It begins within a few seconds.")
    for change, text in (
        ({"state": "running", "commits": 3, "tries": 1}, "A model reads 3 commits and writes the new texts."),
        ({"state": "running", "tries": 3}, "in try 3"),
        ({"state": "waiting", "error": f"the provider is away {HOSTILE}"}, f"It begins again soon, because a try has failed: the provider is away {HOSTILE}"),
        ({"state": "failed", "error": "the new texts have 2 problems", "ended_at": "2026-11-27T08:01:00Z", "cost_micros": 4200, "problems": [
            {"document": "DESIGN.md", "code": "link", "text": f"neither the texts nor the commits name {HOSTILE}"},
            {"document": "ARCHITECTURE.md", "code": "halved", "text": "the text has 3 characters, and had 50"},
        ]}, "the new texts have 2 problems. The documents and the commits are as they were."),
    ):
        # The page reads again by itself while the synchronisation goes on.
        sync.update(change)
        expect(told).to_contain_text(text)
        axe(page)
    problems = shown.get_by_role("list", name="Problems").locator(":scope > li")
    expect(problems).to_have_count(2)
    expect(problems.first).to_contain_text(HOSTILE)
    expect(problems.first).to_contain_text("unknown link")
    expect(shown).to_contain_text("$0.0042")
    expect(page.get_by_role("button", name="Bring up to date")).to_be_visible()
    shot(page, "docs-failed-light")
    assert page.evaluate("window.owned") is None and shown.locator("img").count() == 0
    sync.clear()
    sync.update(sync_of(state="succeeded", commits=3, changed=["DESIGN.md", "GONE.md"], left_out=2, cost_micros=12_000, ended_at="2026-11-27T08:02:00Z"))
    page.reload()
    expect(told).to_contain_text("It took 3 commits and changed DESIGN.md and GONE.md.")
    expect(shown).to_contain_text("2 parts of long documents should have changed, too.")
    expect(shown).to_contain_text("GONE.md (deleted since)")
    axe(page)
    sync.update(commits=0, changed=[], left_out=0, cost_micros=0)
    page.reload()
    expect(told).to_contain_text("No commit waited")


def test_only_what_goes_on_is_read_often(owner):
    shop = owner.post("/projects", {"name": "Shop"})["project_id"]
    document(owner)
    document(owner, "SHOP.md", project=shop)
    sync = sync_of(project_id=DEFAULT, state="running", tries=1)
    page = owner.context().new_page()
    asked = []
    page.on("request", lambda request: asked.append(request.url.removeprefix(owner.platform.url)))
    with_sync(page, owner, sync)
    page.goto(f"{owner.platform.url}/#/context/docs")
    for _ in range(3):
        with page.expect_response(re.compile(rf"{DEFAULT}/docs$")):
            pass
    assert asked.count(f"/projects/{shop}/docs") == 1 and asked.count("/projects?limit=100") == 1, asked
    told = page.get_by_role("region", name="Default").get_by_role("status")
    expect(told).to_contain_text("goes on")
    sync.update(state="succeeded", commits=1, changed=["ARCHITECTURE.md"], ended_at="2026-11-27T08:01:00Z")
    expect(told).to_contain_text("It took 1 commit and changed ARCHITECTURE.md.")


def test_nothing_begins_while_everything_is_stopped(owner):
    document(owner)
    report(owner, commit(1), commit(2), commit(3))
    page = owner.page("/context/docs/default")
    up = page.get_by_role("button", name="Bring up to date")
    expect(up).to_be_enabled()
    owner.post("/account/stop")
    # This page does not know yet.
    up.click()
    expect(page.locator("main")).to_contain_text("Everything is stopped")
    expect(up).to_be_disabled()
    assert "sync" not in owner.get(DOCS)


# ---- The webhook ----


def push(url, secret, *numbers):
    payload = json.dumps({
        "ref": "refs/heads/main", "repository": {"default_branch": "main"},
        "commits": [{"id": f"{number:040x}", "message": f"Pushed {number}", "timestamp": "2026-11-20T08:00:00Z", "author": {"name": "Ada"}, "distinct": True, "added": [], "modified": ["a.rs"], "removed": []} for number in numbers],
    }).encode()
    signature = hmac.new(secret.encode(), payload, hashlib.sha256).hexdigest()
    request = urllib.request.Request(url, payload, {"content-type": "application/json", "x-github-event": "push", "x-hub-signature-256": f"sha256={signature}"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)


def test_a_webhook_is_made_used_replaced_and_deleted(owner):
    document(owner)
    context = owner.context()
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = owner.page("/context/docs/default", context=context)
    hook = page.get_by_role("region", name="Webhook for GitHub")
    expect(hook).to_contain_text("GitHub cannot reach")
    hook.get_by_label("Branch that counts").fill("x" * 150 + "é" * 50)
    hook.get_by_role("button", name="Make a webhook").click()
    expect(hook.get_by_role("alert")).to_contain_text("1 to 200 bytes")
    axe(page)
    hook.get_by_label("Branch that counts").fill("main")
    hook.get_by_role("button", name="Make a webhook").click()
    secret = hook.get_by_role("status").locator("code.secret")
    expect(secret).to_be_visible()
    first = secret.inner_text()
    expect(hook).to_contain_text("Just the push event")
    axe(page)
    shot(page, "docs-hook-light")
    hook.get_by_role("button", name="Copy the secret").click()
    assert page.evaluate("navigator.clipboard.readText()") == first
    hook.get_by_role("button", name="Copy the URL").click()
    url = page.evaluate("navigator.clipboard.readText()")
    assert url.startswith(f"{owner.platform.url}/hooks/github/")
    assert push(url, first, 1, 2)["new"] == 2
    hook.get_by_role("button", name="I have kept it").click()
    expect(secret).to_have_count(0)
    # It is in no later answer, and nowhere in the browser.
    page.reload()
    expect(hook).to_contain_text("main")
    expect(state(page)).to_contain_text("2 commits behind")
    assert first not in page.content()
    assert first not in page.evaluate("JSON.stringify([{...sessionStorage}, {...localStorage}])")
    hook.get_by_role("button", name="New secret or branch…").click()
    expect(hook.get_by_label("Branch that counts")).to_have_value("main")
    axe(page)
    hook.get_by_label("Branch that counts").fill("")
    hook.get_by_role("button", name="Replace the secret").click()
    expect(secret).to_be_visible()
    second = secret.inner_text()
    assert second != first and "branch" not in owner.get(f"{DOCS}/hook")
    with pytest.raises(urllib.error.HTTPError):
        push(url, first, 3)
    assert push(url, second, 3)["new"] == 1
    hook.get_by_role("button", name="Delete the webhook…").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete it").click()
    expect(hook.get_by_role("button", name="Make a webhook")).to_be_visible()
    expect(secret).to_have_count(0)
    with pytest.raises(urllib.error.HTTPError):
        push(url, second, 4)


# ---- All pages ----


def test_projects_are_apart_and_unknown_ones_do_not_exist(owner):
    owner.opens_what_is_missing = True
    shop = owner.post("/projects", {"name": HOSTILE[:90]})["project_id"]
    document(owner)
    document(owner, "SHOP.md", "# Shop\n", project=shop)
    report(owner, commit(1), project=shop)
    page = owner.page("/context/docs")
    region = page.get_by_role("region", name=HOSTILE[:90])
    expect(region).to_contain_text("1 commit behind")
    expect(region.get_by_role("link", name="SHOP.md")).to_have_attribute("href", f"#/context/docs/{shop}/SHOP.md")
    expect(region).not_to_contain_text("ARCHITECTURE.md")
    region.get_by_role("link", name="All about them").click()
    expect(page.get_by_role("heading", level=1)).to_have_text(HOSTILE[:90])
    page.get_by_text("Report commits from a repository").click()
    expect(page.get_by_role("region", name="The commands that install the hook")).to_contain_text(f"export LAMPLIGHTER_PROJECT={shop}")
    axe(page)
    for address in (f"/context/docs/prj_{'1' * 32}", f"/context/docs/prj_{'1' * 32}/A.md"):
        page.goto(f"{owner.platform.url}/#{address}")
        expect(page.get_by_role("heading", name="This does not exist")).to_be_visible()
    assert page.evaluate("window.owned") is None


def test_the_palette_and_the_keys_lead_there(owner):
    document(owner)
    page = owner.page("/")
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    page.keyboard.press("Control+k")
    page.keyboard.type("living")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("#/context/docs$"))
    expect(page.get_by_role("link", name="ARCHITECTURE.md")).to_be_visible()
    page.keyboard.press("j")
    expect(page.get_by_role("link", name="ARCHITECTURE.md")).to_be_focused()
    page.keyboard.press("Enter")
    expect(body(page)).to_contain_text("One program.")


@pytest.mark.parametrize("theme,width", [("light", 320), ("dark", 1280)])
def test_hostile_texts_fit_and_are_never_html(owner, theme, width):
    name = "A" * 97 + ".md"
    document(owner, name, f"---\ntitle: {'t' * 300}\n---\n# {HOSTILE}\n\n{HOSTILE}\n\n{'w' * 400}\n")
    replaced(owner, f"{HOSTILE}\n\n{'y' * 400}\n", name)
    report(owner, commit(1, "m" * 400 + f"\n\n{HOSTILE}", author="a" * 100, files=["f" * 300, HOSTILE]), commit(2), commit(3))
    owner.post(f"{DOCS}/hook", {"branch": "b" * 200})
    sync = sync_of(state="failed", ended_at="2026-11-27T08:01:00Z", tries=5, error=f"{HOSTILE} {'e' * 300}", problems=[{"document": name, "code": "name", "text": f"{HOSTILE} {'p' * 300}"}])
    page = owner.context(width=width, theme=theme).new_page()
    with_sync(page, owner, sync)
    base = f"/context/docs/default/{name}"
    for what, address in (("list", "/context/docs"), ("project", "/context/docs/default"), ("text", base), ("markdown", f"{base}?show=markdown"), ("edit", f"{base}?show=edit"), ("versions", f"{base}?show=versions&v=2&from=1")):
        page.goto("about:blank")
        page.goto(f"{owner.platform.url}/#{address}")
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        expect(page.get_by_text("Reading…")).to_have_count(0)
        for summary in page.locator("main details:not([open]) > summary").all():
            summary.click()
        if what in ("list", "project"):
            commits = page.get_by_role("list", name="Commits that wait, oldest first")
            expect(commits).to_be_visible()
            for summary in commits.locator("summary").all():
                summary.click()
        fits(page)
        axe(page)
        page.evaluate("document.activeElement.blur()")
        shot(page, f"docs-{what}-{theme}-{width}")
        assert page.evaluate("window.owned") is None
        assert page.locator("main img, main a[href^='javascript']").count() == 0
