"""A model whose replies go on when a test says so."""

import json
import queue
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Pace:
    """A model server for the platform. Each reply takes its pieces from `pieces` until it gets `None`."""

    def __init__(self):
        self.pieces = queue.Queue()
        self.asked = []
        pace = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_POST(self):
                request = json.loads(self.rfile.read(int(self.headers["content-length"])))
                if str(request["messages"][0]["content"]).startswith("You sort one request of a merchant"):
                    return self.reply("I can't tell.")
                pace.asked.append(request)
                try:
                    first = pace.pieces.get(timeout=30)
                    if isinstance(first, int):
                        body = b'{"error": {"message": "broken by the test", "type": "server_error"}}'
                        self.send_response(first)
                        self.send_header("content-type", "application/json")
                        self.send_header("content-length", str(len(body)))
                        self.end_headers()
                        self.wfile.write(body)
                        return
                    self.send_response(200)
                    self.send_header("content-type", "text/event-stream")
                    self.send_header("transfer-encoding", "chunked")
                    self.end_headers()
                    end = "stop"
                    while first is not None:
                        delta = {"content": first} if isinstance(first, str) else first
                        end = "tool_calls" if "tool_calls" in delta else end
                        self.event({"model": "fake", "choices": [{"index": 0, "delta": delta}]})
                        first = pace.pieces.get(timeout=30)
                    self.event({"model": "fake", "choices": [{"index": 0, "delta": {}, "finish_reason": end}]})
                    self.event({"model": "fake", "choices": [], "usage": {"prompt_tokens": 20, "completion_tokens": 5}})
                    self.chunk(b"data: [DONE]\n\n")
                    self.wfile.write(b"0\r\n\r\n")
                except (OSError, queue.Empty):
                    self.close_connection = True

            def reply(self, text):
                """A whole reply at once."""
                self.send_response(200)
                self.send_header("content-type", "text/event-stream")
                self.send_header("transfer-encoding", "chunked")
                self.end_headers()
                self.event({"model": "fake", "choices": [{"index": 0, "delta": {"content": text}, "finish_reason": "stop"}]})
                self.event({"model": "fake", "choices": [], "usage": {"prompt_tokens": 20, "completion_tokens": 5}})
                self.chunk(b"data: [DONE]\n\n")
                self.wfile.write(b"0\r\n\r\n")

            def event(self, value):
                self.chunk(f"data: {json.dumps(value)}\n\n".encode())

            def chunk(self, data):
                self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
                self.wfile.flush()

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def say(self, *pieces):
        for piece in pieces:
            self.pieces.put(piece)

    def end(self):
        self.server.shutdown()
        self.server.server_close()

    def environment(self):
        """The settings of a platform whose only model this is."""
        return {
            "LAMPLIGHTER_MODEL_URL": f"http://127.0.0.1:{self.server.server_address[1]}/v1",
            "LAMPLIGHTER_PRICES": '{"compatible/*": "free"}',
            "LAMPLIGHTER_MODEL": "compatible/fake",
        }
