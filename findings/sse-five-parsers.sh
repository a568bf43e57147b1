#!/usr/bin/env bash
# Guess:    five much used parsers of server-sent events agree on streams that the standard defines to the letter.
# Reality:  they disagree on four ordinary streams.
#           - "id only": a frame with an id and no data (a server that moves the resume point sends it). The standard
#             says: remember the id, hand over no event. httpx-sse (it carries the Python SDK of MCP) and
#             the decoders of the openai and anthropic packages hand over an event with the data "", which is no JSON.
#           - "comment" : after such an id, the same three hand over *another* empty event for each keep-alive comment.
#           - "cut":  the connection ends within a frame. The standard says: throw it away. sseclient-py hands it over,
#             so half an event counts as a whole one.
#           - "id stays": the id holds for later events until another comes. eventsource-parser and sseclient-py give it
#             to the event that had the line and leave it out for the next; a client which resumes from
#             "the id of the newest event" has none.
#           - "mark": a byte order mark before the first line must be skipped. Only eventsource-parser does; the others
#             lose the first event in silence.
# Versions: eventsource-parser 4.1.3 (npm); httpx-sse 0.4.3, sseclient-py 1.9.0, openai 3.57.0, anthropic 2.14.0 (PyPI).
# Why:      resuming a stream by id is how a run's events are read after a broken connection. A parser decides whether
#           an event is lost, doubled or invented.
# Seen:     2026-11-29, the text at the end of this script: a list of [data, id] for each stream.
set -euo pipefail
. "$(dirname "$0")/common.sh"
npm_packages eventsource-parser@4.1.3
pip_packages httpx==0.28.1 httpx-sse==0.4.3 sseclient-py==1.9.0 openai==3.57.0 anthropic==2.14.0

cat > "$WORK/streams.json" <<'END'
{"id only": "id: 7\n\ndata: a\n\n",
 "comment": "id: 7\n\n: still here\n\n: still here\n\ndata: a\n\n",
 "cut": "data: a\n\ndata: {\"half\":\n",
 "id stays": "id: 1\ndata: a\n\ndata: b\n\n",
 "mark": "\ufeffdata: a\n\ndata: b\n\n"}
END
cat > "$WORK/probe.mjs" <<'END'
import { readFileSync } from 'node:fs';
import { createParser } from 'eventsource-parser';
for (const [name, text] of Object.entries(JSON.parse(readFileSync('streams.json', 'utf8')))) {
  const seen = [];
  createParser({ onEvent: e => seen.push([e.data, e.id ?? null]) }).feed(text);
  console.log(`${name}: eventsource-parser ${JSON.stringify(seen)}`);
}
END
cat > "$WORK/probe.py" <<'END'
import json
import httpx, httpx_sse, sseclient
import anthropic._streaming, openai._streaming

def with_httpx(data):
    response = httpx.Response(200, headers={"content-type": "text/event-stream"}, content=data)
    return httpx_sse.EventSource(response).iter_sse()

PARSERS = {
    "httpx-sse": with_httpx,
    "openai": lambda data: openai._streaming.SSEDecoder().iter_bytes(iter([data])),
    "anthropic": lambda data: anthropic._streaming.SSEDecoder().iter_bytes(iter([data])),
    "sseclient-py": lambda data: sseclient.SSEClient(iter([data])).events(),
}
for name, text in json.load(open("streams.json")).items():
    for parser, read in PARSERS.items():
        print(f"{name}: {parser}", json.dumps([[e.data, e.id or None] for e in read(text.encode())], separators=(",", ":")))
END
probe node probe.mjs
probe "$PYTHON" probe.py

expect "five parsers of server-sent events disagree" <<'END'
id only: eventsource-parser [["a",null]]
comment: eventsource-parser [["a",null]]
cut: eventsource-parser [["a",null]]
id stays: eventsource-parser [["a","1"],["b",null]]
mark: eventsource-parser [["a",null],["b",null]]
id only: httpx-sse [["","7"],["a","7"]]
id only: openai [["","7"],["a","7"]]
id only: anthropic [["","7"],["a","7"]]
id only: sseclient-py [["a",null]]
comment: httpx-sse [["","7"],["","7"],["","7"],["a","7"]]
comment: openai [["","7"],["","7"],["","7"],["a","7"]]
comment: anthropic [["","7"],["","7"],["","7"],["a","7"]]
comment: sseclient-py [["a",null]]
cut: httpx-sse [["a",null]]
cut: openai [["a",null]]
cut: anthropic [["a",null]]
cut: sseclient-py [["a",null],["{\"half\":",null]]
id stays: httpx-sse [["a","1"],["b","1"]]
id stays: openai [["a","1"],["b","1"]]
id stays: anthropic [["a","1"],["b","1"]]
id stays: sseclient-py [["a","1"],["b",null]]
mark: httpx-sse [["b",null]]
mark: openai [["b",null]]
mark: anthropic [["b",null]]
mark: sseclient-py [["b",null]]
END
