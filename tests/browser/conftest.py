"""The console in a real Chromium.

Each test gets a platform of its own, and `owner`, which calls the API and opens pages. Each page fails its test if the browser reports a
violation of the content security policy, or if a script throws.

`LAMPLIGHTER_BIN` is the program of the local platform (default: `target/debug/lamplighter-local`). With `CONSOLE_SOURCES=1`, the pages
come from the sources through `functions/console/serve.mjs`, so that a change needs no build.
"""

import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request

import pytest
from playwright.sync_api import expect, sync_playwright

from pace import Pace

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = pathlib.Path(os.environ.get("LAMPLIGHTER_BIN", ROOT / "target/debug/lamplighter-local"))
SHOTS = pathlib.Path(os.environ.get("SCREENSHOTS", ROOT / "target/screenshots"))
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"]
CHROMIUM = next(
    (found for name in ("chromium-headless-shell", "chromium") if (found := shutil.which(name))), None
)
# How long a test waits for what must happen. It only ends a test that hangs: no machine is so busy.
PATIENCE_MS = 60_000
expect.set_options(timeout=PATIENCE_MS)
# What every account or project has, also if there is nothing in it: a page that gets 404 for it would fill the browser's log.
MAY_BE_EMPTY = re.compile(r"/account/import$|/docs/hook$|/memory/(days|weeks)/[0-9-]+$")
VIOLATIONS = """
window.violations = [];
addEventListener("securitypolicyviolation", (event) => window.violations.push(`${event.violatedDirective} ${event.blockedURI} ${event.sample}`));
"""


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


class Platform:
    """The local platform with its console."""

    def __init__(self, folder, *, auth, environment=None, arguments=()):
        self.folder, self.arguments = folder, arguments
        self.port = free_port()
        self.auth = auth
        self.log = open(folder / "server.log", "ab")
        self.environment = {
            "LAMPLIGHTER_PORT": str(self.port),
            "LAMPLIGHTER_DATA": str(folder / "data"),
            "LAMPLIGHTER_AUTH": auth,
            # Tests are faster than people.
            "LAMPLIGHTER_RATE_LIMITS": os.environ.get("LAMPLIGHTER_RATE_LIMITS", ""),
            **(environment or {}),
        }
        self.start()
        self.url = f"http://127.0.0.1:{self.port}"
        self.sources = None
        if os.environ.get("CONSOLE_SOURCES"):
            port = free_port()
            self.sources = subprocess.Popen(
                ["node", str(ROOT / "functions/console/serve.mjs"), str(port), str(self.port)],
                env={**os.environ, "CONSOLE_AUTH": auth}, stdout=subprocess.DEVNULL,
            )
            self.url = f"http://127.0.0.1:{port}"
            wait_for(self.url)

    def start(self):
        keep = {name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "TMPDIR", "LANG")}
        given = {name: value for name, value in self.environment.items() if value}
        self.process = subprocess.Popen([str(BINARY), *self.arguments], env={**keep, **given}, stdout=self.log, stderr=self.log, cwd=self.folder)
        # With `--demo`, a week passes first.
        wait_for(f"http://127.0.0.1:{self.port}")

    def stop(self):
        self.process.terminate()
        self.process.wait(20)

    def end(self):
        self.stop()
        if self.sources:
            self.sources.terminate()


def wait_for(url, seconds=PATIENCE_MS // 1000):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            with urllib.request.urlopen(f"{url}/health", timeout=2):
                return
        except OSError:
            time.sleep(0.1)
    raise AssertionError(f"{url} does not answer within {seconds} s")


class Owner:
    """A person: calls of the API, and pages."""

    def __init__(self, platform, browser, token=None):
        self.platform = platform
        self.browser = browser
        self.token = token
        self.contexts = []
        # Whether the test opens what does not exist.
        self.opens_what_is_missing = False

    def call(self, method, path, body=None, headers=None):
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.platform.port}{path}", method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"content-type": "application/json", "accept": "application/json", **(headers or {})},
        )
        if self.token:
            request.add_header("authorization", f"Bearer {self.token}")
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                text = answer.read().decode()
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{method} {path}: {error.code} {error.read().decode()[:500]}") from None
        try:
            return json.loads(text)
        except ValueError:
            return text

    def get(self, path):
        return self.call("GET", path)

    def post(self, path, body=None):
        return self.call("POST", path, {} if body is None else body)

    def agent(self, name="Market watch", **fields):
        return self.post("/agents", {"name": name, "goal": "A research agent that reports on three competitors", **fields})["agent_id"]

    def action(self, agent_id, title="Price report", *, approve=True, **fields):
        action = self.post(f"/agents/{agent_id}/actions", {
            "title": title, "description": title,
            "task_config": {"instructions": "Read three price pages and write one page.", "expected_output": "Every price change is named"},
            **fields,
        })
        if approve:
            self.post(f"/actions/{action['action_id']}/approve", {"approval_hash": action["approval_hash"]})
        return action["action_id"]

    def run(self, action_id):
        """Runs an action now, and returns its record when it has ended."""
        run_id = self.post(f"/actions/{action_id}/run")["run_id"]
        return self.wait(lambda: next(
            (one for one in self.get(f"/actions/{action_id}/runs")["data"] if one["run_id"] == run_id and one["state"] not in ("due", "claimed", "running")), None,
        ))

    def wait(self, found, seconds=PATIENCE_MS // 1000):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if (value := found()):
                return value
            time.sleep(0.2)
        raise AssertionError(f"nothing after {seconds} s")

    def page(self, address="/", *, width=1280, height=900, theme="light", context=None, **options):
        """Opens a page of the console. `address` is what follows the number sign."""
        context = context or self.context(width=width, height=height, theme=theme, **options)
        page = context.new_page()
        watch(page)
        page.goto(f"{self.platform.url}/#{address}")
        return page

    def context(self, *, width=1280, height=900, theme="light", **options):
        context = self.browser.new_context(viewport={"width": width, "height": height}, color_scheme=theme, **options)
        context.set_default_timeout(PATIENCE_MS)
        context.add_init_script(VIOLATIONS)
        if self.token:
            context.add_init_script(f"sessionStorage.setItem('lamplighter.token', {json.dumps(self.token)});")
        self.contexts.append(context)
        return context

    def close(self):
        """Closes all pages, and fails if one of them has reported an error."""
        wrong = []
        for context in self.contexts:
            for page in context.pages:
                wrong += page.evaluate("window.violations ?? []")
                wrong += getattr(page, "thrown", [])
                wrong += [] if self.opens_what_is_missing else getattr(page, "missing", [])
            context.close()
        self.contexts = []
        assert wrong == [], "the browser reported errors"


def watch(page):
    page.thrown, page.missing = [], []
    go = page.goto

    def goto(address, **options):
        """A browser tells a page of a new part behind the number sign only later, and much later under load. What a test types before that goes into the old page."""
        answer = go(address, **options)
        page.evaluate("() => new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")
        return answer

    page.goto = goto
    page.on("response", lambda answer: page.missing.append(f"404: {answer.url}") if answer.status == 404 and MAY_BE_EMPTY.search(answer.url) else None)
    page.on("pageerror", lambda error: page.thrown.append(f"{error}\n{error.stack}"))


def shot(page, name):
    """Saves a picture of the page, for people to look at."""
    SHOTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=str(SHOTS / f"{re.sub(r'[^a-z0-9-]+', '-', name)}.png"), full_page=True)


# `npm install --prefix tests/browser` puts it there; `AXE` names it elsewhere.
AXE = pathlib.Path(os.environ.get("AXE", pathlib.Path(__file__).parent / "node_modules/axe-core/axe.min.js"))


def axe(page):
    """Fails if axe finds a violation on the page as it is shown."""
    if not AXE.exists():
        pytest.fail(f"{AXE} does not exist: install axe-core, or set AXE")
    page.evaluate(AXE.read_text())
    found = page.evaluate("axe.run(document, { resultTypes: ['violations'] })")["violations"]
    assert [(one["id"], [node["html"][:200] for node in one["nodes"]]) for one in found] == []


@pytest.fixture(scope="session")
def browser():
    if CHROMIUM is None:
        pytest.fail("there is no Chromium: install chromium-headless-shell")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture
def platform(tmp_path):
    """A platform of its own, with one owner and without keys."""
    platform = Platform(tmp_path, auth="off")
    yield platform
    platform.end()


@pytest.fixture
def owner(platform, browser):
    owner = Owner(platform, browser)
    yield owner
    owner.close()


@pytest.fixture
def pace():
    """A model whose replies go on when the test says so."""
    pace = Pace()
    yield pace
    pace.end()
