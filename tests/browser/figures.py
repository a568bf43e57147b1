"""Prints how fast the console is: medians of five, each beside its ceiling.

    target/browser/bin/python tests/browser/figures.py

It starts platforms of its own (`LAMPLIGHTER_BIN`, as the tests do), fills them, and measures in Chromium. Use a machine with nothing else to do,
and pages that the build has joined: with `CONSOLE_SOURCES=1` every module is a request of its own, and the paints and the weight are no
figures of what people get.
"""

import pathlib
import statistics
import tempfile

from playwright.sync_api import expect, sync_playwright

from conftest import ARGUMENTS, CHROMIUM, Owner, Platform
from pace import Pace
from test_chat import idle, send

TIMES = 5
MESSAGES = 2000
OBSERVE = """
window.seen = { lcp: 0, cls: 0, frame: 0, events: [] };
const observe = (type, take, more) => new PerformanceObserver((list) => list.getEntries().forEach(take)).observe({ type, buffered: true, ...more });
observe("largest-contentful-paint", (entry) => (seen.lcp = entry.startTime));
observe("layout-shift", (entry) => (seen.cls += entry.hadRecentInput ? 0 : entry.value));
observe("event", (entry) => seen.events.push({ name: entry.name, duration: entry.duration, interaction: entry.interactionId }), { durationThreshold: 16 });
window.palette = new Promise((done) => addEventListener("keydown", (event) => {
  if (event.key !== "k" || !event.ctrlKey) return;
  const begun = event.timeStamp;
  const look = () => {
    // It can be used when the keys go to it and the first entries are there to be chosen; the frame after that shows them.
    if (document.activeElement?.matches(".finder") && document.querySelector("#found [role=option]")) requestAnimationFrame((now) => done(now - begun));
    else requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
}, { capture: true }));
"""
FRAMES = """() => {
  let last = performance.now();
  seen.frame = 0;
  const tick = (now) => {
    seen.frame = Math.max(seen.frame, now - last);
    last = now;
    requestAnimationFrame(tick);
  };
  requestAnimationFrame(tick);
}"""
SETTLED = "() => new Promise((done) => requestIdleCallback(() => requestAnimationFrame(() => requestAnimationFrame(done)), { timeout: 2000 }))"
# Every entry of Today has arrived, and the last of them is shown.
WAITING = 6


def fill(owner):
    """The day of somebody who uses it: three agents, actions of every kind, runs, approvals that wait, assets, and a long chat."""
    owner.call("PATCH", "/account", {"timezone": "Europe/Vienna"})
    agents = [owner.agent(name) for name in ("Market watch", "Release notes", "Shop assistant")]
    for number in range(24):
        owner.action(agents[number % 3], f"Report {number}", schedule={"cron": f"{number * 2} {number} * * *"})
    ran = owner.action(agents[0], "Price changes", schedule={"cron": "0 9 * * MON"})
    for number in range(WAITING):
        owner.action(agents[1], f"Notes of week {number}", approve=False, schedule={"cron": "0 9 * * MON"})
    for number in range(60):
        owner.post(f"/agents/{agents[number % 3]}/assets", {"title": f"Price note {number}", "description": "", "asset_type": "document", "content": "# Prices\n\nLamp oil costs $3.\n" * 20})
    return agents, ran


def long_chat(owner, agent):
    said = lambda number: {"role": "user" if number % 2 == 0 else "assistant", "content": f"Message {number}\n\n- a *list*\n- of `two`\n" * 2}
    chat = owner.post(f"/agents/{agent}/chats", {"title": "Long", "messages": [said(number) for number in range(98)]})["chat_id"]
    for start in range(98, MESSAGES, 98):
        owner.post(f"/chats/{chat}/messages", {"messages": [said(number) for number in range(start, min(start + 98, MESSAGES))]})
    return chat


def today(page):
    expect(page.get_by_role("region", name="Waits for you").get_by_role("article")).to_have_count(WAITING)
    page.evaluate(SETTLED)
    seen = page.evaluate("seen")
    paint = page.evaluate("performance.getEntriesByName('first-paint')[0]?.startTime ?? NaN")
    return {"first paint": paint, "LCP": seen["lcp"], "CLS": seen["cls"]}


def slowest(page):
    """The longest interaction that was seen. The browser reports none that is shorter than 16 ms."""
    return max((entry["duration"] for entry in page.evaluate("seen.events") if entry["interaction"]), default=16)


def opened(owner, address, context=None):
    context = context or owner.context()
    context.add_init_script(OBSERVE)
    return owner.page(address, context=context)


def pages(owner, note):
    """Opening pages, and what a person presses there. The model is the demo model, so that there are runs."""
    agents, ran = fill(owner)
    for _ in range(TIMES):
        page = opened(owner, "/")
        for name, value in today(page).items():
            note(f"Today, cold cache: {name}", value)
        note("weight", page.evaluate("performance.getEntries().filter((one) => one.entryType === 'navigation' || one.name.includes('/console/')).map((one) => one.encodedBodySize)"))
        page.reload()
        for name, value in today(page).items():
            note(f"Today, warm cache: {name}", value)
        page.keyboard.press("Control+k")
        note("palette, from the key until it can be used", page.evaluate("palette"))
        owner.close()

    for number in range(TIMES):
        page = opened(owner, f"/agents/{agents[0]}/actions")
        page.get_by_role("link", name="Price changes").first.click()
        expect(page.get_by_role("heading", level=1, name="Price changes")).to_be_visible()
        page.evaluate(SETTLED)
        note("a click that opens an action", slowest(page))
        page.evaluate("seen.events = []")
        page.get_by_role("button", name="Run now").first.click()
        page.evaluate(SETTLED)
        note("a click on Run now", slowest(page))
        owner.wait(lambda: len(owner.get(f"/actions/{ran}/runs")["data"]) > number and not owner.get(f"/actions/{ran}").get("live_run"))
        owner.close()


def stream(owner, pace, note):
    """Replies in a chat that is long and shown whole."""
    agent = owner.agent()
    chat = long_chat(owner, agent)
    page = opened(owner, f"/agents/{agent}/chat/{chat}")
    count = 50
    while (older := page.get_by_role("button", name="Older messages")).count():
        older.click()
        count = min(count + 200, MESSAGES)
        expect(page.locator(".talk > li")).to_have_count(count)
    page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
    for number in range(TIMES + 1):
        asked = len(pace.asked)
        send(page, f"And now? {number}")
        if number == 0:
            # So long a conversation is summarised first.
            pace.say("They talked about lamps.", None)
            owner.wait(lambda: len(pace.asked) == asked + 2)
        pace.say("First. ")
        expect(page.locator(".reply.live")).to_contain_text("First.")
        page.evaluate(FRAMES)
        for word in range(60):
            pace.say(f"Word {word} *and* more. " + ("\n\n" if word % 10 == 9 else ""))
            page.evaluate("new Promise((done) => requestAnimationFrame(done))")
        pace.say(None)
        idle(page)
        page.evaluate(SETTLED)
        if number > 0:
            note(f"longest frame of a stream into {MESSAGES:,} messages", page.evaluate("seen.frame"))
    owner.close()


def ceiling(name):
    for part, most in (("first paint", 150), ("LCP", 500), ("CLS", 0.02), ("longest frame", 200), ("palette", 200), ("click", 200)):
        if part in name:
            return most
    return None


def main():
    figures = {}
    note = lambda name, value: figures.setdefault(name, []).append(value)
    pace = Pace()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        for environment, measure in (({}, pages), (pace.environment(), lambda owner, note: stream(owner, pace, note))):
            with tempfile.TemporaryDirectory() as folder:
                platform = Platform(pathlib.Path(folder), auth="off", environment=environment)
                try:
                    measure(Owner(platform, browser), note)
                finally:
                    platform.end()
        browser.close()
    pace.end()
    weights = figures.pop("weight")[0]
    for name, values in figures.items():
        most = ceiling(name)
        median = statistics.median(values)
        shown = f"{median:.3f}" if "CLS" in name else f"{median:.0f} ms"
        print(f"{name:58} {shown:>9}   ceiling {most}{'   OVER' if median > most else ''}   ({', '.join(f'{value:.3g}' for value in values)})")
    print(f"{'weight of the page, compressed':58} {sum(weights) / 1000:6.0f} KB   in {len(weights)} requests")


if __name__ == "__main__":
    main()
