"""What a person sees who starts with `--demo`: each page has something to show. The README's pictures are of these pages."""

import pytest
from playwright.sync_api import expect

from conftest import SHOTS, Owner, Platform, axe, shot


@pytest.fixture
def demo(tmp_path, browser):
    platform = Platform(tmp_path, auth="off", arguments=["--demo"])
    owner = Owner(platform, browser)
    yield owner
    owner.close()
    platform.end()


def test_each_page_has_something_to_show(demo):
    market = next(agent for agent in demo.get("/agents")["data"] if agent["name"] == "Market watch")
    actions = {action["title"]: action["action_id"] for action in demo.get("/actions")["data"]}
    run = next(run for run in demo.get("/runs")["data"] if run["state"] == "succeeded")
    project = demo.get("/projects")["data"][0]["project_id"]
    pages = {
        "today": ("/", "Letter to the suppliers"),
        "agents": ("/agents", "Newsletter"),
        "chat": (f"/agents/{market['agent_id']}", "Send me a list of new lamp shops every month"),
        "actions": (f"/agents/{market['agent_id']}/actions", "Price digest"),
        "action": (f"/actions/{actions['Morning brief']}", "Morning brief"),
        "paused": (f"/actions/{actions['Long read']}", "three failures with the same cause"),
        "run": (f"/runs/{run['run_id']}", run["action_title"]),
        "assets": ("/assets", "Lamp oil prices"),
        "memory": ("/memory", "The lamp shop is in Lisbon"),
        "practice": ("/practices", "Read before the screen"),
        "theme": (f"/themes/{project}", "Lamp shop"),
        "account": ("/account", "Time zone"),
    }
    for width, theme in ((1280, "light"), (1280, "dark"), (390, "light"), (390, "dark")):
        page = demo.page("/", width=width, theme=theme)
        for name, (address, text) in pages.items():
            # Each page anew, so that nothing of the one before is on the picture.
            page.goto("about:blank")
            page.goto(f"{demo.platform.url}/#{address}")
            expect(page.locator("#main").get_by_text(text).filter(visible=True).first).to_be_visible()
            if width == 1280:
                axe(page)
            shot(page, f"demo-{name}-{width}-{theme}")
    # The pictures of the README: copy them to docs/ when the pages have changed.
    page = demo.page("/", width=1180, height=760)
    for name in ("today", "action"):
        address, text = pages[name]
        page.goto("about:blank")
        page.goto(f"{demo.platform.url}/#{address}")
        expect(page.locator("#main").get_by_text(text).filter(visible=True).first).to_be_visible()
        page.screenshot(path=str(SHOTS / f"readme-{name}.png"))
