"""From an empty platform to a result on the person's own channel: one sentence, one line for the channel, one press."""

import json
import os
import pty
import re
import select
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from conftest import BINARY, Owner, Platform, axe, shot
from playwright.sync_api import expect

SENTENCE = "Write a haiku about lamps every minute"


class Receiver:
    """A webhook on this machine. It keeps what it gets, and answers with `status`."""

    def __init__(self, status=204):
        self.got = []
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                receiver.got.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
                self.send_response(status)
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.host = f"127.0.0.1:{self.server.server_port}"
        self.url = f"http://{self.host}/hook"


@pytest.fixture
def receiver():
    receiver = Receiver()
    yield receiver
    receiver.server.shutdown()


@pytest.fixture
def home(tmp_path, browser, receiver):
    platform = Platform(tmp_path, auth="off", environment={"LAMPLIGHTER_ALLOWED_HOSTS": receiver.host})
    owner = Owner(platform, browser)
    yield owner
    try:
        owner.close()
    finally:
        platform.end()


def told(home, page, sentence):
    """The ticket of a sentence that was written on the first page."""
    page.get_by_label("What should it look after?").fill(sentence)
    page.get_by_label("What should it look after?").press("Enter")
    ticket = page.get_by_role("article", name="Ticket of the first action")
    expect(ticket).to_be_visible()
    return ticket


def test_one_sentence_one_line_one_press_and_the_result_arrives(home, receiver):
    page = home.page()
    ticket = told(home, page, SENTENCE)
    expect(ticket.get_by_label("Does")).to_have_value("Haiku about lamps")
    expect(ticket.get_by_label("How")).to_have_value("Write a haiku about lamps.")
    expect(ticket.locator(".stub")).to_contain_text("Every minute")
    axe(page)
    shot(page, "first-ticket")
    # What was said first, and then at most three more things: the channel, and the press.
    ticket.get_by_label("Tell me at").fill(receiver.url)
    page.get_by_role("button", name="Create and start").click()
    expect(page).to_have_url(re.compile("#/actions/act_"))
    expect(page.get_by_role("status").filter(has_text="Created.")).to_be_visible()
    shot(page, "first-created")

    home.wait(lambda: receiver.got, seconds=150)
    [message, *_] = receiver.got
    assert message["type"] == "notice.succeeded", message
    assert "haiku" in json.dumps(message).lower()

    # The run says where it was told.
    run = home.get("/runs?limit=1")["data"][0]["run_id"]
    home.wait(lambda: home.get(f"/runs/{run}").get("told", {}).get("state") == "sent")
    page.goto(f"{home.platform.url}/#/runs/{run}")
    expect(page.get_by_text(re.compile("Told by webhook"))).to_be_visible()
    shot(page, "first-told")


def test_it_is_undone_with_one_press(home):
    page = home.page(theme="dark")
    ticket = told(home, page, "Tell me every weekday at 7 what changed at my competitors")
    expect(ticket.get_by_role("list", name="What it cannot do")).to_contain_text("It cannot read web pages")
    expect(ticket.locator(".stub")).to_contain_text("07:00")
    shot(page, "first-ticket-dark")
    page.get_by_role("button", name="Create and start").click()
    expect(page).to_have_url(re.compile("#/actions/act_"))
    assert [one["name"] for one in home.get("/agents")["data"]] == ["What changed at my competitors"]
    page.get_by_role("status").get_by_role("button", name="Undo").click()
    expect(page.get_by_role("status").filter(has_text="Undone.")).to_be_visible()
    assert home.get("/agents")["data"] == []
    assert home.get("/actions")["data"] == []


def test_a_ticket_is_changed_by_words_and_by_hand(home, receiver):
    page = home.page(width=390, height=844)
    ticket = told(home, page, "Write a market report every Monday at 9")
    expect(ticket.locator(".stub")).to_contain_text("09:00")
    ticket.get_by_label("How").fill("Write a market report in three lines.")
    page.get_by_label("Your message").fill("at 8 instead")
    page.get_by_label("Your message").press("Enter")
    expect(ticket.locator(".stub")).to_contain_text("08:00")
    # What the person has written stays.
    expect(ticket.get_by_label("How")).to_have_value("Write a market report in three lines.")
    # A line that is no channel keeps the press back, and says what is expected.
    channel = ticket.get_by_label("Tell me at")
    channel.fill("the kitchen")
    expect(page.get_by_role("button", name="Create and start")).to_be_disabled()
    expect(ticket).to_contain_text("This is no e-mail address")
    # An address that the platform may not reach creates nothing.
    channel.fill("http://127.0.0.1:9/hook")
    page.get_by_role("button", name="Create and start").click()
    expect(page.get_by_role("alert").first).to_be_visible()
    assert home.get("/agents")["data"] == []
    axe(page)
    shot(page, "first-ticket-narrow")
    channel.fill(receiver.url)
    page.get_by_role("button", name="Create and start").click()
    expect(page).to_have_url(re.compile("#/actions/act_"))
    [action] = home.get("/actions")["data"]
    assert action["task_config"]["instructions"] == "Write a market report in three lines."
    assert action["schedule"]["cron"] == "0 8 * * MON"
    assert action["state"] == "scheduled"


def test_today_says_that_nobody_is_told(home):
    page = home.page()
    told(home, page, "Write a haiku about lamps every day at 9")
    page.get_by_role("button", name="Create and start").click()
    expect(page).to_have_url(re.compile("#/actions/act_"))
    page.goto(f"{home.platform.url}/#/")
    expect(page.get_by_text("Nobody is told of results: there is no channel.")).to_be_visible()
    axe(page)
    shot(page, "first-untold")
    page.get_by_role("link", name="Add a channel").click()
    expect(page).to_have_url(re.compile("#/notices"))
    page.goto(f"{home.platform.url}/#/")
    page.get_by_role("button", name="They may wait here").click()
    expect(page.get_by_text("Nobody is told of results")).to_have_count(0)
    page.reload()
    expect(page.get_by_role("region", name="The day")).to_be_visible()
    expect(page.get_by_text("Nobody is told of results")).to_have_count(0)


def test_the_first_sentence_is_read_in_the_zone_of_the_browser(home):
    page = home.page(timezone_id="Asia/Tokyo")
    ticket = told(home, page, "Write a haiku about lamps every day at 9")
    expect(ticket.locator(".stub")).to_contain_text("09:00")
    expect(ticket.locator(".stub")).to_contain_text("GMT+9")
    assert home.get("/account")["timezone"] == "Asia/Tokyo"


class Terminal:
    """A program in a terminal, and the person before it."""

    def __init__(self, arguments, folder, environment):
        self.said = ""
        self.process, self.line = pty.fork()
        if self.process == 0:
            os.chdir(folder)
            keep = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
            os.execve(arguments[0], arguments, {**keep, "HOME": str(folder), "TERM": "xterm", **environment})

    def says(self, text, seconds=60):
        end = time.monotonic() + seconds
        while text not in self.said:
            assert time.monotonic() < end, self.said
            if select.select([self.line], [], [], 0.5)[0]:
                try:
                    part = os.read(self.line, 4096)
                except OSError:
                    part = b""
                assert part or text in self.said, self.said
                self.said += part.decode(errors="replace")

    def types(self, text):
        os.write(self.line, f"{text}\n".encode())

    def ends(self):
        return os.waitstatus_to_exitcode(os.waitpid(self.process, 0)[1])


def test_in_a_shell_it_takes_two_lines(home, receiver, tmp_path):
    command = str(BINARY.with_name("lamplighter"))
    shell = Terminal([command, "chat", *SENTENCE.split()], tmp_path, {"LAMPLIGHTER_URL": home.platform.url})
    shell.says("Tell me at")
    assert "Every minute" in shell.said and "may use   nothing beside its own notes and outputs" in shell.said
    shell.types(receiver.url)
    shell.says("approve this?")
    shell.types("y")
    shell.says("Made ")
    assert shell.ends() == 0
    home.wait(lambda: receiver.got, seconds=150)
    assert receiver.got[0]["type"] == "notice.succeeded" and "haiku" in json.dumps(receiver.got[0]).lower()
