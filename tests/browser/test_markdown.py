"""Markdown as the console shows it, in a real Chromium under the console's content security policy.

The 652 examples of CommonMark come from the npm package `commonmark-spec` (`npm install --prefix tests/browser`).
"""

import html.parser
import json
import os
import pathlib
import random
import re

import pytest

from conftest import ROOT

WEB = ROOT / "functions/console/web"
SPEC = pathlib.Path(os.environ.get("COMMONMARK_SPEC", pathlib.Path(__file__).parent / "node_modules/commonmark-spec/spec.txt"))
ORIGIN = "http://console.test"

RAW_HTML = "raw HTML is shown as text, so what stands in it is read as Markdown"
BARE = "an address in a text becomes a link"
ENTITY = "of the named characters, only the usual ones are known"
EXCEPTIONS = {
    25: ENTITY,
    **dict.fromkeys([21, 31, *range(148, 192), 201, 308, 309, 344, 475, 476, 477, 491, 494, 524, 536, *range(613, 618), 623, *range(625, 632), 642, 643], RAW_HTML),
    608: BARE,
    611: BARE,
}

# What the DOM holds, as a list of beginnings, texts and ends. Parts that are no part of the text are left out.
READ = """
(root) => {
  const events = [];
  const walk = (node) => {
    if (node.nodeType === Node.TEXT_NODE) return events.push(["text", node.data]);
    if (node.matches(".host, .code-head")) return;
    const plain = node.matches("div.code, div.table");
    const heading = /^h[1-6]$/.exec(node.className)?.[0];
    const isLink = node.matches("a, .no-link");
    const tag = heading ?? (isLink ? "a" : node.localName);
    const attributes = {};
    if (isLink) attributes.href = node.getAttribute("href") ?? node.dataset.to;
    for (const name of ["title", "start"]) if (node.hasAttribute(name)) attributes[name] = node.getAttribute(name);
    if (tag === "code" && node.className) attributes.class = node.className;
    if (!plain) events.push(["open", tag, attributes]);
    if (node.matches(".image")) events.push(["text", node.textContent]);
    else node.childNodes.forEach(walk);
    if (!plain) events.push(["close", tag]);
  };
  root.childNodes.forEach(walk);
  return events;
}
"""

BLOCKS = {"p", "h1", "h2", "h3", "h4", "h5", "h6", "blockquote", "ul", "ol", "li", "hr", "pre", "table", "thead", "tbody", "tr", "th", "td", "br"}
VOID = {"hr", "br"}


class Expected(html.parser.HTMLParser):
    """The expected HTML as the same list. An image is a link with its description."""

    def __init__(self):
        super().__init__()
        self.events = []
        self.links = 0

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        if tag == "img":
            kept = {"href": given.get("src", ""), **({"title": given["title"]} if "title" in given else {})}
            inner = ["text", given.get("alt", "")]
            self.events += [inner] if self.links else [["open", "a", kept], inner, ["close", "a"]]
            return
        self.links += tag == "a"
        self.events.append(["open", tag, given])
        if tag in VOID:
            self.events.append(["close", tag])

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)

    def handle_endtag(self, tag):
        self.links -= tag == "a"
        self.events.append(["close", tag])

    def handle_data(self, data):
        self.events.append(["text", data])


def normal(events):
    """Joins texts, and leaves out the white space that a browser does not show."""
    joined = []
    for event in events:
        if event[0] == "text" and joined and joined[-1][0] == "text":
            joined[-1] = ["text", joined[-1][1] + event[1]]
        else:
            joined.append(list(event))
    result = []
    inside = 0
    is_block = lambda at: not 0 <= at < len(joined) or (joined[at][0] != "text" and joined[at][1] in BLOCKS)
    for at, event in enumerate(joined):
        if event[0] == "text" and not inside:
            text = re.sub(r"[ \n]+", " ", event[1])
            if is_block(at - 1):
                text = text.lstrip(" ")
            if is_block(at + 1):
                text = text.rstrip(" ")
            if text:
                result.append(["text", text])
            continue
        inside += {"open": 1, "close": -1}.get(event[0], 0) * (event[0] != "text" and event[1] == "pre")
        if event[0] != "text" or event[1]:
            result.append(event)
    return result


def examples():
    text = SPEC.read_text(encoding="utf-8").replace("→", "\t")
    found = re.findall(r"^`{32} example\n(.*?)^\.\n(.*?)^`{32}$", text, re.DOTALL | re.MULTILINE)
    return [(number, source, wanted) for number, (source, wanted) in enumerate(found, 1)]


@pytest.fixture(scope="module")
def md(browser):
    """A page that has loaded the module, with a policy like the console's."""
    context = browser.new_context()
    page = context.new_page()
    requests = []
    policy = (WEB / "csp.txt").read_text().strip()

    def answer(route):
        path = route.request.url.removeprefix(ORIGIN)
        requests.append(route.request.url)
        if path == "/":
            route.fulfill(body="<!doctype html><div id=root></div><script type=module src=/load.js></script>", content_type="text/html", headers={"content-security-policy": policy})
        elif path == "/load.js":
            route.fulfill(body='import { markdownStream, markdownView } from "./js/markdown.js"; import { draw } from "./js/view.js"; Object.assign(window, { markdownStream, markdownView, draw, ready: true });', content_type="text/javascript")
        elif path.startswith("/js/") and (WEB / path[1:]).is_file():
            route.fulfill(body=(WEB / path[1:]).read_text(encoding="utf-8"), content_type="text/javascript")
        else:
            route.fulfill(status=404)

    page.route("**/*", answer)
    thrown = []
    page.on("pageerror", lambda error: thrown.append(str(error)))
    page.add_init_script("window.violations = []; addEventListener('securitypolicyviolation', (event) => violations.push(event.violatedDirective));")
    page.goto(ORIGIN)
    page.wait_for_function("window.ready")
    page.evaluate(f"() => {{ window.read = {READ}; }}")
    page.evaluate("""() => { window.whole = (text) => { const node = document.createElement("div"); draw(node, markdownView(text)); node.firstChild.holder = node; return node.firstChild; }; }""")
    del requests[:]
    page.requests = requests
    yield page
    wrong = page.evaluate("window.violations") + thrown
    context.close()
    assert wrong == []


def shown(md, text):
    return normal(md.evaluate("(text) => read(whole(text))", text))


def test_the_examples_of_commonmark(md):
    all_examples = examples()
    assert len(all_examples) == 652
    read = md.evaluate("(texts) => texts.map((text) => read(whole(text)))", [source for _, source, _ in all_examples])
    wrong = []
    for (number, source, wanted), events in zip(all_examples, read):
        expected = Expected()
        expected.feed(wanted)
        expected.close()
        if normal(events) != normal(expected.events):
            wrong.append((number, source, normal(expected.events), normal(events)))
    failed = {number for number, *_ in wrong}
    print(f"{652 - len(failed)} of 652 examples are shown as CommonMark says")
    unknown = [one for one in wrong if one[0] not in EXCEPTIONS]
    for number, source, want, got in unknown:
        print(f"--- {number}\n{source}\nwanted {json.dumps(want, ensure_ascii=False)}\nshown  {json.dumps(got, ensure_ascii=False)}")
    assert unknown == []
    assert set(EXCEPTIONS) - failed == set(), "these are no exceptions any more"


def test_raw_html_is_text(md):
    source = "<script>window.hurt = 1</script>\n\n<img src=x onerror=hurt()> and <b>bold</b>\n\n<iframe src=https://example.com></iframe>\n"
    html = md.evaluate("(text) => whole(text).innerHTML", source)
    assert not re.search(r"<(script|img|b|iframe)[ >]", html)
    assert "&lt;b&gt;bold&lt;/b&gt;" in html


def test_links_and_images(md):
    text = lambda source: md.evaluate("(text) => whole(text).textContent", source)
    links = lambda source: md.evaluate("(text) => [...whole(text).querySelectorAll('a')].map((a) => [a.getAttribute('href'), a.rel, a.target])", source)
    for address in ("javascript:alert(1)", "JAVASCRIPT:alert(1)", "java&#10;script:alert(1)", "&#1;javascript:alert(1)", "data:text/html,x", "vbscript:x", "//evil.test/", "/path", "https:evil.test", "file:///etc/passwd", "blob:https://a.test/1", "https://", "https://[", "mailto"):
        assert links(f"[a](<{address}>)") == [], address
    del md.requests[:]
    assert links("[a](https://shop.test/x?y=1&z)") == [["https://shop.test/x?y=1&z", "noopener noreferrer", "_blank"]]
    assert text("[prices](https://shop.test/x)") == "prices (shop.test)"
    assert text("[https://bank.test](https://evil.test/)") == "https://bank.test (evil.test)"
    assert text("[shop.test](https://shop.test/x)") == "shop.test"
    assert text("https://bank.test@evil.test/") == "https://bank.test@evil.test/ (evil.test)"
    assert text("[аpple.test](https://аpple.test/)").startswith("аpple.test")
    assert text("[b](https://bücher.test)") == "b (xn--bcher-kva.test)"
    assert text("<me@shop.test> [write](mailto:me@shop.test)") == "me@shop.test write (me@shop.test)"
    assert links("See https://shop.test/a_(b). And (https://shop.test/c), **https://shop.test/d**!")[0][0] == "https://shop.test/a_(b)"
    assert [one[0] for one in links("(https://shop.test/c), **https://shop.test/d**!")] == ["https://shop.test/c", "https://shop.test/d"]
    assert links("[a https://inner.test b](https://outer.test)") == [["https://outer.test", "noopener noreferrer", "_blank"]]
    # An image is a link, and nothing is fetched.
    assert links("![a chart](https://evil.test/?q=secret)") == [["https://evil.test/?q=secret", "noopener noreferrer", "_blank"]]
    md.evaluate("(text) => document.querySelector('#root').append(whole(text))", "![a](https://evil.test/1.png) ![b][b] [![c](https://evil.test/3.png)](https://shop.test)\n\n[b]: https://evil.test/2.png")
    assert md.evaluate("document.images.length") == 0
    assert md.requests == []


def test_tables_and_strikethrough(md):
    source = "before\n| a | b \\| c | *d* |\n|:--|:-:|--:|\n| 1 | `x \\| y` |\n| 1 | 2 | 3 | 4 |\n> quote\n\n~~gone~~ ~one~ ~~~three~~~\n\na | b\n--\n\n| a | b |\n| - |\n"
    assert shown(md, source) == normal([
        ["open", "p", {}], ["text", "before"], ["close", "p"],
        ["open", "table", {}], ["open", "thead", {}], ["open", "tr", {}],
        ["open", "th", {}], ["text", "a"], ["close", "th"], ["open", "th", {}], ["text", "b | c"], ["close", "th"], ["open", "th", {}], ["open", "em", {}], ["text", "d"], ["close", "em"], ["close", "th"],
        ["close", "tr"], ["close", "thead"], ["open", "tbody", {}],
        ["open", "tr", {}], ["open", "td", {}], ["text", "1"], ["close", "td"], ["open", "td", {}], ["open", "code", {}], ["text", "x | y"], ["close", "code"], ["close", "td"], ["close", "tr"],
        ["open", "tr", {}], ["open", "td", {}], ["text", "1"], ["close", "td"], ["open", "td", {}], ["text", "2"], ["close", "td"], ["open", "td", {}], ["text", "3"], ["close", "td"], ["close", "tr"],
        ["close", "tbody"], ["close", "table"],
        ["open", "blockquote", {}], ["open", "p", {}], ["text", "quote"], ["close", "p"], ["close", "blockquote"],
        ["open", "p", {}], ["open", "del", {}], ["text", "gone"], ["close", "del"], ["text", " ~one~ ~~~three~~~"], ["close", "p"],
        ["open", "h2", {}], ["text", "a | b"], ["close", "h2"],
        ["open", "p", {}], ["text", "| a | b | | - |"], ["close", "p"],
    ])
    assert md.evaluate("(text) => [...whole(text).querySelectorAll('th')].map((cell) => cell.className)", source) == ["", "center", "right"]


# Frames come when the test says so.
STREAM = """
(chunks) => {
  let waiting = [];
  const real = window.requestAnimationFrame;
  window.requestAnimationFrame = (work) => waiting.push(work);
  const root = document.createElement("div");
  const stream = markdownStream(root);
  const wrong = [];
  let kept = [];
  const look = (isLast) => {
    kept.forEach((node, at) => { if (root.childNodes[at] !== node) wrong.push(`node ${at}`); });
    if (!isLast) kept = [...root.childNodes].slice(0, -1);
  };
  for (const [text, isFrame] of chunks) {
    stream.push(text);
    if (!isFrame) continue;
    const now = waiting;
    waiting = [];
    now.forEach((work) => work());
    look(false);
  }
  stream.end();
  look(true);
  window.requestAnimationFrame = real;
  return { events: read(root), html: root.innerHTML, wrong };
}
"""


@pytest.mark.parametrize("seed", range(8))
def test_any_chunks_give_the_same_nodes(md, seed):
    made = random.Random(seed)
    sources = [source for _, source, _ in examples()] + ["| a | b |\n|---|---|\n| *1* | [foo] |\n", "- [ ] a\r\n- [x] b\r\n", "~~x~~ 🏮 `y`\r", "```js\nconst a = 1;\n```\n", "\r\n", "\n\n"]
    for _ in range(30):
        text = "".join(made.choice(sources) for _ in range(made.randint(1, 12)))
        chunks = []
        at = 0
        while at < len(text):
            size = made.choice([1, 1, 2, 3, 7, 40])
            chunks.append([text[at:at + size], made.random() < 0.6])
            at += size
        got = md.evaluate(STREAM, chunks)
        assert got["html"] == md.evaluate("(text) => whole(text).innerHTML", text), json.dumps(chunks)
        assert got["wrong"] == [], json.dumps(chunks)


def test_parts_of_an_open_list_and_table_keep_their_nodes(md):
    kept = md.evaluate(r"""
    () => {
      let frame;
      const real = window.requestAnimationFrame;
      window.requestAnimationFrame = (work) => (frame = work);
      const root = document.createElement("div");
      const stream = markdownStream(root);
      stream.push("- one *a*\n- two\n- thr");
      frame();
      const first = [...root.querySelectorAll("li")].slice(0, 2).flatMap((node) => [node, ...node.childNodes]);
      stream.push("ee\n- four\n\n| a |\n|---|\n| *1* |\n| 2");
      frame();
      const row = root.querySelector("tbody tr em");
      stream.push("2 |\n| 3 |\n\nend [late]\n\n[late]: https://shop.test\n");
      frame();
      const before = root.querySelector("p");
      stream.end();
      window.requestAnimationFrame = real;
      return [first.every((node) => root.contains(node)), root.contains(row), root.querySelectorAll("li").length, root.querySelectorAll("tbody tr").length, root.querySelector("p") === before, root.querySelector("a").href];
    }
    """)
    assert kept == [True, True, 4, 3, True, "https://shop.test/"]


SIZE = 200_000
ATTACKS = {
    "opening brackets": "[",
    "brackets and links": "[[[[[[[[[a](b)",
    "images": "![![![[a](b)",
    "closing brackets": "]",
    "stars": "*",
    "open emphasis": "**a ",
    "mixed emphasis": "*a _b ~~c **d __e ",
    "nested emphasis": "*a **a ",
    "closing emphasis": "a** ",
    "quotes": ">",
    "quotes on lines": "> > > > > > > > a\n",
    "list marks": "- ",
    "nested lists": "".join(" " * (2 * depth) + "- a\n" for depth in range(60)),
    "backticks": "`",
    "runs of backticks": "".join("`" * size + " " for size in range(1, 620)),
    "fences": "```\n",
    "tables": "| a | b |\n|---|---|\n| c |\n",
    "wide table": "|" * 100,
    "delimiter rows": "|-|\n",
    "table that is none": "a|b\n|-|-|-|\n",
    "link with a pointed address": "[a](<b",
    "link with a title": '[a](b "c',
    "links in brackets": "[a](b(c",
    "labels": "[a][",
    "definitions": "[a]: b 'c\n",
    "definitions without an end": '[a]: b "\n',
    "used definitions": "[a]: b\n\n[a] [c]\n\n",
    "angles": "<",
    "addresses": "<a:",
    "mail": "<a@a.",
    "bare addresses": "https://a.test/(((",
    "dots of an address": "https://a.test/" + "." * 5000,
    "parentheses": "https://a.test/" + ")" * 5000,
    "entities": "&#x",
    "backslashes": "\\",
    "spaces": "a" + " " * 1000,
    "headings": "# " + "#" * 500 + " x\n",
    "spaces in a heading": "# a" + " " * 5000 + "b\n",
    "underlines": "[a\n===\n",
    "rules": "* * * a\n",
    "tabs": "\t>\t-\t1.\t",
    "tildes": "~~a ",
    "code words": "`a`*b*",
    "blank lines": "- a\n\n\n",
    "zeros": "\0",
}


@pytest.mark.parametrize("name", ATTACKS)
def test_no_pattern_takes_more_than_linear_time(md, name):
    piece = ATTACKS[name]
    text = piece * (SIZE // len(piece))
    measure = "(text) => { const began = performance.now(); const node = whole(text); const took = performance.now() - began; node.remove(); return took; }"
    took = md.evaluate(measure, text)
    if took < 1000:
        return
    # A slow machine, or very many nodes. Eight times the text may take eight times as long; a quadratic pattern takes 64 times as long.
    part = max(md.evaluate(measure, piece * (SIZE // 8 // len(piece))) for _ in range(2))
    took = min(took, md.evaluate(measure, text))
    assert took < 24 * part, f"{name}: {took:.0f} ms for {len(text)} characters, {part:.0f} ms for an eighth"


@pytest.mark.parametrize("name", ["opening brackets", "mixed emphasis", "code words", "tables", "nested lists", "used definitions", "quotes"])
def test_a_hostile_stream_leaves_the_page_usable(md, name):
    piece = ATTACKS[name]
    text = piece * (SIZE // len(piece))
    longest = md.evaluate("""
    async (text) => {
      const root = document.createElement("div");
      document.body.append(root);
      const stream = markdownStream(root);
      let longest = 0;
      for (let at = 0; at < text.length; at += 5000) {
        const began = performance.now();
        stream.push(text.slice(at, at + 5000));
        await new Promise((done) => requestAnimationFrame(done));
        longest = Math.max(longest, performance.now() - began);
      }
      stream.end();
      root.remove();
      return longest;
    }
    """, text)
    assert longest < 3000


def test_code_is_painted_without_nodes(md):
    painted = md.evaluate("""
    (text) => {
      const node = whole(text);
      document.body.append(node);
      const words = [...CSS.highlights].map(([kind, ranges]) => [kind, [...ranges].filter((range) => node.contains(range.startContainer)).map((range) => range.startContainer.data.slice(range.startOffset, range.endOffset))]);
      const codes = [...node.querySelectorAll("code")].map((code) => code.childNodes.length);
      const texts = [...node.querySelectorAll("code")].map((code) => code.firstChild);
      node.remove();
      draw(node.holder);
      return [Object.fromEntries(words.filter(([, said]) => said.length > 0)), codes, [...CSS.highlights].map(([, ranges]) => [...ranges].filter((range) => texts.includes(range.startContainer)).length)];
    }
    """, "```js\nconst a = 'x'; // why\n```\n\n```json\n{\"k\": 12}\n```\n\n```nonesuch\nlet\n```\n")
    assert painted[0] == {"code-word": ["const"], "code-string": ["'x'"], "code-comment": ["// why"], "code-name": ['"k"'], "code-number": ["12"]}
    assert painted[1] == [1, 1, 1]
    assert set(painted[2]) == {0}, "ranges of removed code are forgotten"


@pytest.mark.parametrize("language", ["js", "json", "css", "rust", "shell", "liquid"])
def test_lexers_take_linear_time(md, language):
    for piece in ('"', "'", "/*", "{{", "{%", "<!--", "\\", "`", "$", "#", "-", "a-", "1.", "a:", "<a"):
        took = md.evaluate("""
        (text) => {
          const began = performance.now();
          const node = document.createElement("div");
          draw(node, markdownView(text));
          const took = performance.now() - began;
          draw(node);
          return took;
        }
        """, f"```{language}\n{piece * (39_000 // len(piece))}\n```\n")
        assert took < 700, f"{piece}: {took:.0f} ms"
