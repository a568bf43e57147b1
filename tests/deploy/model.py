"""A model on loopback that speaks the Chat Completions format and follows a script: it sets an agent up, delivers an asset,
proposes an action, does a task with one output, and finds every output good. It refuses what says that it is refused. Nothing else is at its
address."""

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

OUTPUT = "# Lamp oil\n\nThe price has not moved.\n"
REFUSED = "Ask the model to refuse"
READY = """READY_TO_CREATE
---
TITLE: Lamp watch
GOAL: A research agent that watches the price of lamp oil
SUCCESS_CRITERIA: One page that names every change
TIMELINE: Ongoing
INSTRUCTIONS: Name your sources.
"""


def call(name: str, arguments: dict) -> dict:
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {"tool_calls": [{"index": 0, "id": "call_1", "type": "function", "function": function}]}


def reply(messages: list[dict], tools: set[str]) -> list[dict]:
    """The pieces of the answer."""
    system, last = str(messages[0]["content"]), messages[-1]
    text = str(last["content"])
    if "<lamplighter:check>" in system:
        return [{"content": '{"score": 90, "meets": true, "missing": []}'}]
    if last["role"] == "tool":
        return [{"content": "It is done."}]
    if "save_output" in tools:
        return [{"content": "I save it."}, call("save_output", {"title": "Lamp oil", "content": OUTPUT})]
    if "Set me up" in text:
        return [{"content": READY}]
    if "slowly" in text:
        seconds = int(text.split()[-1])
        return [{"content": f"{second} "} for second in range(seconds)]
    return [{"content": "The lamp "}, {"content": "is lit."}]


class Model:
    def __init__(self) -> None:
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.host = f"127.0.0.1:{self.server.server_address[1]}"
        self.url = f"http://{self.host}/v1"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_) -> None:
        pass

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.path != "/v1/chat/completions" or REFUSED.encode() in body:
            return self.refuse(404 if self.path != "/v1/chat/completions" else 400)
        request = json.loads(body)
        tools = {tool["function"]["name"] for tool in request.get("tools", [])}
        said = reply(request["messages"], tools)
        end = "tool_calls" if "tool_calls" in said[-1] else "stop"
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        try:
            for delta in said:
                self.event({"model": "fake", "choices": [{"index": 0, "delta": delta}]})
                # One piece per second if a long reply was requested.
                time.sleep(1 if len(said) > 2 else 0)
            self.event({"model": "fake", "choices": [{"index": 0, "delta": {}, "finish_reason": end}]})
            self.event({"model": "fake", "choices": [], "usage": {"prompt_tokens": 20, "completion_tokens": 5}})
            self.write(b"data: [DONE]\n\n")
            self.wfile.write(b"0\r\n\r\n")
        except OSError:
            self.close_connection = True

    def refuse(self, status: int) -> None:
        body = b'{"error": {"message": "This is refused", "type": "invalid_request_error"}}'
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def event(self, value: dict) -> None:
        self.write(f"data: {json.dumps(value)}\n\n".encode())

    def write(self, piece: bytes) -> None:
        self.wfile.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
        self.wfile.flush()
