"""The console and the API below a path: API Gateway serves the deployment at its stage, `/live/`, and nothing beside it.

`Stage` plays the part of the gateway and of the function behind it: the path of a request loses the stage, and the page and its links get
it. The page is made as `page::html` of the console does it for a base path, which a test of that crate checks.
"""

import http.client
import json
import pathlib
import re
import subprocess
import threading
import urllib.error
import urllib.parse
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from playwright.sync_api import expect

from conftest import Owner, Platform, axe, shot
from test_chat import idle, replies, send, stored

BASE = "/live"
# Of one connection; the other side has its own.
HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding", "content-length"}


class Stage:
    """Serves a platform below `BASE`, as a stream. `outside` are the requests that did not belong there."""

    def __init__(self, upstream):
        self.upstream = urllib.parse.urlsplit(upstream).netloc
        self.outside = []
        stage = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def answer(self):
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
                path = self.path.removeprefix(BASE)
                below = self.path == BASE or self.path.startswith((f"{BASE}/", f"{BASE}?"))
                # The API has no route for HEAD, so the gateway refuses it, as it refuses every path that it does not know.
                if not below or self.command == "HEAD":
                    stage.outside.append(f"{self.command} {self.path}")
                    return self.whole(403, [("content-type", "application/json")], b'{"message":"Missing Authentication Token"}')
                if not path.startswith("/"):
                    path = f"/{path}"
                connection = http.client.HTTPConnection(stage.upstream, timeout=60)
                try:
                    headers = {name: value for name, value in self.headers.items() if name.lower() not in HOP_BY_HOP}
                    connection.request(self.command, path, body or None, headers)
                    self.forward(connection.getresponse(), path.split("?")[0])
                except OSError:
                    self.close_connection = True
                finally:
                    connection.close()

            do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = answer

            def forward(self, got, path):
                headers = [(name, value) for name, value in got.getheaders() if name.lower() not in HOP_BY_HOP]
                headers = [(name, BASE + value if name.lower() == "location" and value.startswith("/") else value) for name, value in headers]
                if path == "/" and got.status == 200:
                    return self.whole(got.status, headers, based(got.read().decode()).encode())
                if got.status in (204, 304):
                    return self.whole(got.status, headers, None)
                self.send_response(got.status)
                for name, value in [*headers, ("transfer-encoding", "chunked")]:
                    self.send_header(name, value)
                self.end_headers()
                while piece := got.read1(65536):
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
                    self.wfile.flush()
                self.wfile.write(b"0\r\n\r\n")

            def whole(self, status, headers, body):
                self.send_response(status)
                for name, value in headers:
                    self.send_header(name, value)
                if body is not None:
                    self.send_header("content-length", str(len(body)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(body or b"")

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.origin = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def end(self):
        self.server.shutdown()
        self.server.server_close()


def based(html):
    """The page with the base path in its links and in what it knows about the platform."""
    nowhere = "&quot;base&quot;:&quot;&quot;"
    assert html.count(nowhere) == 1
    html, links = re.subn(r'(src|href)="/console/', rf'\1="{BASE}/console/', html)
    assert links == 4, "the script, the style, the icon and the manifest"
    return html.replace(nowhere, f"&quot;base&quot;:&quot;{BASE}&quot;")


@pytest.fixture
def live(tmp_path, browser, pace):
    """An owner of a platform below a path, whose model is `pace`. Fails if a page has left the path."""
    platform = Platform(tmp_path, auth="off", environment=pace.environment())
    stage = Stage(platform.url)
    platform.url = f"{stage.origin}{BASE}"
    owner = Owner(platform, browser)
    owner.stage = stage
    yield owner
    owner.close()
    stage.end()
    platform.end()
    assert stage.outside == [], "nothing leaves the path"


def asked(page):
    """The addresses that the page asks for from now on, without what is no request of the network."""
    urls = []
    page.on("request", lambda request: urls.append(request.url) if request.url.startswith("http") else None)
    return urls


def stays_below(live, urls):
    assert urls and [url for url in urls if not url.startswith(f"{live.platform.url}/") and url != live.platform.url] == []


def test_today_opens_below_a_path_and_every_page_stays_there(live):
    agent = live.agent()
    live.action(agent, approve=False, schedule={"cron": "0 9 * * MON"})
    page = live.page("/")
    urls = asked(page)
    expect(page.get_by_role("article").get_by_role("heading", name="Price report")).to_be_visible()
    axe(page)
    shot(page, "today-below-a-path")
    page.get_by_role("button", name=re.compile("^Approve")).click()
    expect(page.get_by_role("region", name="Waits for you").get_by_text("Nothing waits for you.")).to_be_visible()
    assert live.get("/actions?limit=10")["data"][0]["state"] == "scheduled"
    for name in page.get_by_role("navigation", name="Main", exact=True).get_by_role("link").all_inner_texts() + ["Account"]:
        page.get_by_role("link", name=name, exact=True).first.click()
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        assert page.url.startswith(f"{live.platform.url}/#/"), page.url
    # A link of the page opens in another tab, too.
    page.goto(page.get_by_role("link", name="Market watch").evaluate("(link) => link.href"))
    expect(page.get_by_role("heading", level=1, name="Market watch")).to_be_visible()
    stays_below(live, urls)


def test_the_stage_without_a_slash_opens_too(live):
    page = live.context().new_page()
    page.goto(live.platform.url)
    expect(page.get_by_text("What should somebody look after for you?")).to_be_visible()
    page.goto(f"{live.platform.url}#/agents")
    expect(page.get_by_role("heading", level=1, name="Agents")).to_be_visible()
    page.get_by_role("link", name="Today").first.click()
    expect(page.get_by_text("What should somebody look after for you?")).to_be_visible()


def test_sign_in_comes_back_to_the_slash(live):
    """The client of a provider has one exact callback: the address of the console with the slash at its end."""
    access = {"auth": "on", "base": BASE, "openid": {"authorize": "https://id.example/authorize", "token": "https://id.example/token", "client_id": "console", "scope": "openid", "use": "id_token"}}
    html = urllib.request.urlopen(f"{live.platform.url}/", timeout=10).read().decode()
    guarded = re.sub(r'name="access" content="[^"]*"', lambda _: f'name="access" content="{json.dumps(access).replace(chr(34), "&quot;")}"', html)
    context = live.context()
    context.route(live.platform.url, lambda route: route.fulfill(body=guarded, content_type="text/html"))
    context.route("https://id.example/**", lambda route: route.fulfill(body="The provider", content_type="text/plain"))
    page = context.new_page()
    page.goto(live.platform.url)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url("https://id.example/**")
    back = urllib.parse.parse_qs(urllib.parse.urlsplit(page.url).query)["redirect_uri"]
    assert back == [f"{live.platform.url}/"]


def test_a_chat_streams_and_a_reload_in_mid_reply_goes_on(live, pace):
    agent = live.agent()
    page = live.page(f"/agents/{agent}")
    urls = asked(page)
    send(page, "Say it slowly")
    pace.say("One *two* ")
    # It is shown while the reply still goes on, so the proxy, and the page, do stream.
    expect(replies(page).locator("em")).to_have_text("two")
    page.reload()
    expect(replies(page).locator("em")).to_have_text("two")
    pace.say("three", None)
    expect(replies(page)).to_contain_text("One two three")
    idle(page)
    assert stored(live, agent)[1]["content"] == "One *two* three"
    assert any("/events?after=" in url for url in urls)
    stays_below(live, urls)


def test_files_are_saved(live):
    agent = live.agent()
    made = live.post(f"/agents/{agent}/assets", {"title": "Price note", "description": "", "asset_type": "document", "content": "# Prices\n"})
    page = live.page(f"/assets/{made['asset_id']}")
    urls = asked(page)
    with page.expect_download() as saved:
        page.get_by_role("button", name="Download").click()
    assert pathlib.Path(saved.value.path()).read_text() == "# Prices\n"
    # Logs come through the API as a file.
    live.post("/context/logs/lamp-bot", {"session_id": "sess-1", "agent_type": "lamp-bot", "event": "agent_start"})
    page.goto(f"{live.platform.url}/#/context/logs")
    with page.expect_download() as saved:
        page.get_by_role("button", name="Export as a zip").click()
    assert pathlib.Path(saved.value.path()).read_bytes()[:2] == b"PK"
    stays_below(live, urls)


def test_the_reference_opens_and_its_calls_name_the_path(live):
    page = live.page("/reference/agents?op=create_agent")
    urls = asked(page)
    call = page.get_by_role("region", name="A call of create_agent").inner_text()
    assert f"{live.platform.url}/agents" in call
    answer = json.loads(subprocess.run(["sh", "-c", call], capture_output=True, timeout=30, check=True).stdout)
    assert live.get(f"/agents/{answer['agent_id']}")["agent_id"] == answer["agent_id"]
    page.get_by_role("link", name=re.compile("^assets")).first.click()
    expect(page.locator(".operation").first).to_be_visible()
    stays_below(live, [*urls, page.url])


def test_the_address_for_github_has_the_path_once(live):
    live.post("/projects/default/docs/hook", {})
    page = live.page("/context/docs/default")
    url = page.get_by_role("region", name="Webhook for GitHub").locator("code.secret")
    # Here the platform does not know the path. Behind the gateway it does, and names it.
    expect(url).to_have_text(re.compile(f"^{re.escape(live.platform.url)}/hooks/github/"))
    known = {**live.get("/projects/default/docs/hook"), "path": f"{BASE}/hooks/github/1.x"}
    page.route("**/docs/hook", lambda route: route.fulfill(json=known))
    page.reload()
    expect(url).to_have_text(f"{live.platform.url}/hooks/github/1.x")
    expect(page.get_by_role("region", name="The commands that install the hook")).to_contain_text(f"export LAMPLIGHTER_URL={live.platform.url}\n")


def test_the_installed_page_begins_below_the_path(live):
    page = live.page("/")
    found = page.evaluate("""async () => {
        const at = document.querySelector("link[rel=manifest]").href;
        const manifest = await (await fetch(at)).json();
        return [at, new URL(manifest.start_url, at).href, new URL(manifest.scope, at).href, ...manifest.icons.map((icon) => new URL(icon.src, at).href)];
    }""")
    assert found[1:3] == [f"{live.platform.url}/"] * 2
    for url in found[3:]:
        with urllib.request.urlopen(url, timeout=10) as answer:
            assert answer.status == 200
    # And the stage serves nothing beside the path, so that the tests above can fail.
    with pytest.raises(urllib.error.HTTPError, match="403"):
        urllib.request.urlopen(f"{live.stage.origin}/agents", timeout=10)
    assert live.stage.outside.pop() == "GET /agents"


def test_a_new_version_is_offered(live):
    context = live.context()
    page = context.new_page()
    page.clock.install()
    page.goto(f"{live.platform.url}/#/agents")
    expect(page.get_by_role("heading", level=1, name="Agents")).to_be_visible()
    page.get_by_role("main").focus()
    with page.expect_response(lambda response: response.url == f"{live.platform.url}/"):
        page.clock.run_for(5 * 60_000)
    banner = page.get_by_text("A new version of this page is there.")
    expect(banner).to_have_count(0)
    # A deployment: the script has another name.
    html = urllib.request.urlopen(f"{live.platform.url}/", timeout=10).read().decode()
    context.route(f"{live.platform.url}/", lambda route: route.fulfill(body=re.sub(r"/console/[^\"]+\.js", "/console/of-tomorrow.js", html), content_type="text/html"))
    page.clock.run_for(5 * 60_000)
    expect(banner).to_be_visible()
    context.unroute_all()
    page.get_by_role("button", name="Load it").click()
    expect(page.get_by_role("heading", level=1, name="Agents")).to_be_visible()
    expect(banner).to_have_count(0)
