"""The API reference: a person finds an operation, and its call works."""

import json
import re
import subprocess
import time

from playwright.sync_api import expect

from conftest import axe, shot


def operations(owner):
    return [
        (method, path, operation) for path, item in owner.get("/openapi.json")["paths"].items() for method, operation in item.items() if method in ("get", "post", "put", "patch", "delete")
    ]


def fits(page):
    wide = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    too_wide = page.evaluate("[...document.querySelectorAll('main *')].filter((node) => node.getBoundingClientRect().right > innerWidth + 1 && !node.closest('pre')).map((node) => node.outerHTML.slice(0, 120)).slice(0, 5)")
    assert wide[0] <= wide[1] and too_wide == [], f"the page is {wide[0]} wide in a window of {wide[1]}: {too_wide}"


def test_an_operation_is_found_by_keyboard(owner):
    page = owner.page("/reference")
    expect(page.locator(".operations a")).to_have_count(len(operations(owner)))
    shot(page, "reference-light")
    page.keyboard.press("/")
    page.keyboard.type("lookup theme")
    first = page.locator(".operations a").first
    expect(first).to_contain_text("/projects/{project_id}/lookup")
    page.keyboard.press("ArrowDown")
    expect(first).to_be_focused()
    page.keyboard.press("Enter")
    operation = page.locator("#op-lookup_theme")
    expect(operation.locator("> summary")).to_be_focused()
    expect(operation).to_contain_text("Needs the scope write")
    field = operation.get_by_role("listitem").filter(has=page.get_by_text("request", exact=True)).first
    expect(field).to_contain_text("required")
    expect(field).to_contain_text("1 to 10,000 characters")
    errors = operation.get_by_text(re.compile("^Errors: "))
    errors.press("Enter")
    expect(operation).to_contain_text("It does not exist, or it belongs to somebody else.")
    shot(page, "reference-operation-light")
    assert page.url.endswith("#/reference/themes?op=lookup_theme")
    # What is closed is not in the page.
    assert page.locator(".operation-body").count() == 1
    page.keyboard.press("/")
    page.keyboard.type("nothing like this")
    expect(page.get_by_text("No operation has the words")).to_be_visible()


def test_docs_leads_to_the_reference(owner):
    page = owner.page("/")
    page.goto(f"{owner.platform.url}/docs")
    expect(page).to_have_url(f"{owner.platform.url}/#/reference")
    expect(page.locator(".operations a")).to_have_count(len(operations(owner)))


def test_the_calls_of_the_reference_work(owner):
    page = owner.page("/reference/projects?op=create_project")
    for op, tag, tells in (("create_project", "projects", "project_id"), ("create_agent", "agents", "agent_id"), ("append_to_log", "context", "session_id"), ("preview_schedule", "actions", "fire_times")):
        page.goto(f"{owner.platform.url}/#/reference/{tag}?op={op}")
        call = page.get_by_role("region", name=f"A call of {op}").inner_text()
        answer = json.loads(subprocess.run(["sh", "-c", call], capture_output=True, timeout=30, check=True).stdout)
        assert tells in answer, (call, answer)
    assert any(one["name"] == "Spring theme" for one in owner.get("/projects")["data"])


def test_every_operation_can_be_opened(owner):
    page = owner.page("/reference")
    expect(page.get_by_role("link", name=re.compile("^account"))).to_be_visible()
    all_operations = operations(owner)
    tags = {operation["tags"][0] for _, _, operation in all_operations}
    for tag in sorted(tags):
        own = [one for one in all_operations if one[2]["tags"][0] == tag]
        page.goto(f"{owner.platform.url}/#/reference/{tag}")
        # The list before may have been as long.
        expect(page.locator(f"#op-{own[0][2]['operationId']}")).to_be_attached()
        expect(page.locator(".operation")).to_have_count(len(own))
        page.evaluate("document.querySelectorAll('.operation').forEach((node) => { node.open = true; })")
        expect(page.locator(".operation-body")).to_have_count(len(own))
        for method, path, operation in own:
            body = page.locator(f"#op-{operation['operationId']}")
            for word in [path.split("{")[0], *(["-X DELETE"] if method == "delete" else [])]:
                assert word in body.locator("pre").first.inner_text(), (method, path)
        # And what is nested, twice.
        for _ in range(2):
            page.evaluate("document.querySelectorAll('.api-more:not([open])').forEach((node) => { node.open = true; })")
            page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        expect(page.locator(".operation-body")).to_have_count(len(own))


def test_the_search_is_fast(owner):
    page = owner.page("/reference")
    expect(page.locator(".operations a").first).to_be_visible()
    times = []
    for letter in "approve":
        times.append(page.evaluate("""async (letter) => {
            const field = document.querySelector("[data-filter]");
            const begun = performance.now();
            field.value += letter;
            field.dispatchEvent(new Event("input", { bubbles: true }));
            await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
            return performance.now() - begun;
        }""", letter))
    assert sorted(times)[len(times) // 2] < 200, times


def test_a_hostile_address_changes_nothing(owner):
    page = owner.page("/reference/%3Cimg%20src%3Dx%3E?op=%22%5D%3Cb%3E")
    expect(page.get_by_text("There is no part of the API that is called “<img src=x>”.")).to_be_visible()
    page.get_by_role("searchbox").fill("<script>alert(1)</script>")
    expect(page.get_by_text("No operation has the words “<script>alert(1)</script>”.")).to_be_visible()


def test_narrow_and_dark_pages_fit(owner):
    for width, theme in ((320, "light"), (1280, "dark")):
        for name, address in (("overview", "/reference"), ("operation", "/reference/actions?op=define_action"), ("file", "/reference/themes?op=read_theme_file")):
            page = owner.page(address, width=width, theme=theme)
            expect(page.get_by_role("heading", level=1)).to_be_visible()
            if "op=" in address:
                expect(page.locator(".operation-body")).to_be_visible()
                page.evaluate("[...document.querySelectorAll('.api-more')].slice(0, 3).forEach((node) => { node.open = true; })")
            fits(page)
            axe(page)
            # A picture of a long page with a focus far below takes seconds.
            page.evaluate("document.activeElement.blur()")
            shot(page, f"reference-{width}-{theme}-{name}")
            page.context.close()
