"""Runs a deployed function like Lambda: its binary runs in separate processes, each with its own Runtime API.

Written from AWS's documents ("Lambda runtime API", "Lambda execution environment", "Lambda quotas"). A process serves one
invocation at a time and is stopped (SIGSTOP) between invocations, so that no work continues after an answer. It has the rights of
the function's role and no variable of this process's environment.
"""

import json
import queue
import signal
import subprocess
import threading
import time
import uuid
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from emulator import REGION, Emulator

# The largest payload of an invocation, and the largest answer without streaming, in bytes.
MOST = 6 * 1024 * 1024
NEXT = "/2018-06-01/runtime/invocation/next"
INVOCATION = "/2018-06-01/runtime/invocation/"


class Failed(Exception):
    """The function failed, or its process did."""


class TooLarge(Exception):
    """The payload is larger than an invocation allows."""


@dataclass
class Invocation:
    payload: bytes
    deadline: float
    id: str = field(default_factory=lambda: str(uuid.uuid4()))
    # The pieces of the answer, then None; or an exception.
    answer: queue.Queue = field(default_factory=queue.Queue)
    streams: bool = False


class Environment:
    """One process, with its Runtime API."""

    def __init__(self, name: str, binary: Path, variables: dict[str, str], log: Path):
        self.waiting: queue.Queue[Invocation] = queue.Queue()
        self.current: Invocation | None = None
        # Set while the process waits for the next invocation and is idle.
        self.idle = threading.Event()
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), self.handler())
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        host, port = self.server.server_address
        variables = {
            "_HANDLER": "bootstrap",
            "AWS_DEFAULT_REGION": REGION,
            "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "512",
            "AWS_LAMBDA_FUNCTION_NAME": name,
            "AWS_LAMBDA_FUNCTION_VERSION": "$LATEST",
            "AWS_LAMBDA_RUNTIME_API": f"{host}:{port}",
            "AWS_REGION": REGION,
            "PATH": "/usr/local/bin:/usr/bin:/bin:/opt/bin",
            "TZ": ":UTC",
            **variables,
        }
        with log.open("ab") as output:
            self.process = subprocess.Popen([binary], env=variables, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
        threading.Thread(target=self.watch, daemon=True).start()

    def watch(self) -> None:
        status = self.process.wait()
        for invocation in [self.current, *self.waiting.queue]:
            if invocation:
                invocation.answer.put(Failed(f"the process ended with {status}"))
        self.idle.set()

    def invoke(self, invocation: Invocation) -> None:
        self.idle.clear()
        self.waiting.put(invocation)
        self.process.send_signal(signal.SIGCONT)

    def done(self) -> None:
        """Stops the process. Work that is not finished waits until the next invocation."""
        self.current = None
        self.idle.set()
        self.process.send_signal(signal.SIGSTOP)

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        self.server.shutdown()

    def handler(self) -> type[BaseHTTPRequestHandler]:
        environment = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_) -> None:
                pass

            def do_GET(self) -> None:
                if self.path != NEXT:
                    return self.reply(404)
                if environment.current:
                    environment.done()
                invocation = environment.current = environment.waiting.get()
                self.send_response(200)
                for name, value in {
                    "Content-Type": "application/json",
                    "Content-Length": str(len(invocation.payload)),
                    "Lambda-Runtime-Aws-Request-Id": invocation.id,
                    "Lambda-Runtime-Deadline-Ms": str(int(invocation.deadline * 1000)),
                    "Lambda-Runtime-Invoked-Function-Arn": f"arn:aws:lambda:{REGION}:000000000000:function:x",
                    "Lambda-Runtime-Trace-Id": "Root=1-69208f10-0a1b2c3d4e5f60718293a40d;Sampled=0",
                }.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(invocation.payload)

            def do_POST(self) -> None:
                invocation = environment.current
                if self.path == "/2018-06-01/runtime/init/error":
                    self.body()
                    return self.reply(202)
                if invocation is None or not self.path.startswith(f"{INVOCATION}{invocation.id}/"):
                    self.body()
                    return self.reply(400)
                if self.path.endswith("/error"):
                    invocation.answer.put(Failed(self.body().decode()))
                    return self.reply(202)
                invocation.streams = self.headers.get("Lambda-Runtime-Function-Response-Mode") == "streaming"
                sent = 0
                for piece in self.pieces():
                    sent += len(piece)
                    if not invocation.streams and sent > MOST:
                        invocation.answer.put(Failed(f"the answer has more than {MOST} bytes"))
                        return self.reply(413)
                    invocation.answer.put(piece)
                failed = self.trailers.get("lambda-runtime-function-error-type")
                invocation.answer.put(Failed(failed) if failed else None)
                self.reply(202)

            def pieces(self):
                self.trailers: dict[str, str] = {}
                if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
                    yield self.rfile.read(int(self.headers.get("Content-Length", 0)))
                    return
                while size := int(self.rfile.readline().split(b";")[0], 16):
                    yield self.rfile.read(size)
                    self.rfile.readline()
                while line := self.rfile.readline().strip():
                    name, _, value = line.decode().partition(":")
                    self.trailers[name.lower()] = value.strip()

            def body(self) -> bytes:
                return b"".join(self.pieces())

            def reply(self, status: int) -> None:
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()

        return Handler


class Function:
    """A deployed function: its binary, its environment variables, and its role's rights."""

    def __init__(self, emulator: Emulator, arn: str, functions: Path, logs: Path):
        name = arn.rsplit(":", 1)[-1]
        config = emulator.client("lambda").get_function_configuration(FunctionName=name)
        self.name, self.timeout, self.log = name, config["Timeout"], logs / f"{name}.log"
        # The last part of the name, after the stack's.
        (self.binary,) = [folder / "bootstrap" for folder in functions.iterdir() if name.endswith(f"-{folder.name}")]
        self.variables = {**config["Environment"]["Variables"], **emulator.endpoints, **assumed(emulator, config["Role"])}
        self.idle: list[Environment] = []
        self.all: list[Environment] = []
        self.lock = threading.Lock()

    def invoke(self, payload: bytes) -> Invocation:
        """Begins an invocation. The answer arrives in pieces."""
        if len(payload) > MOST:
            raise TooLarge
        invocation = Invocation(payload, time.time() + self.timeout)
        with self.lock:
            environment = self.idle.pop() if self.idle else None
        if environment is None:
            environment = Environment(self.name, self.binary, self.variables, self.log)
            self.all.append(environment)
        environment.invoke(invocation)
        threading.Thread(target=self.bring_back, args=(environment, invocation), daemon=True).start()
        return invocation

    def bring_back(self, environment: Environment, invocation: Invocation) -> None:
        if environment.idle.wait(self.timeout):
            with self.lock:
                if environment.process.poll() is None:
                    self.idle.append(environment)
        else:
            environment.end()
            invocation.answer.put(Failed(f"Task timed out after {self.timeout} seconds"))

    def call(self, payload: object) -> object:
        """Invokes a function whose answer is one JSON document."""
        return json.loads(b"".join(pieces(self.invoke(json.dumps(payload).encode()))))

    def end(self) -> None:
        for environment in self.all:
            environment.end()


def pieces(invocation: Invocation):
    """The pieces of an answer, as they arrive."""
    while (piece := invocation.answer.get()) is not None:
        if isinstance(piece, Exception):
            raise piece
        yield piece


def assumed(emulator: Emulator, role: str) -> dict[str, str]:
    """Credentials with the rights of a role. Only Lambda may assume the role, so this first extends its trust policy. The template
    is not changed."""
    iam, name = emulator.client("iam"), role.rsplit("/", 1)[-1]
    trust = {
        "Version": "2012-10-17",
        "Statement": [
            {"Effect": "Allow", "Principal": {"Service": "lambda.amazonaws.com"}, "Action": "sts:AssumeRole"},
            {"Effect": "Allow", "Principal": {"AWS": f"arn:aws:iam::{role.split(':')[4]}:root"}, "Action": "sts:AssumeRole"},
        ],
    }
    iam.update_assume_role_policy(RoleName=name, PolicyDocument=json.dumps(trust))
    keys = emulator.client("sts").assume_role(RoleArn=role, RoleSessionName="gateway")["Credentials"]
    return {
        "AWS_ACCESS_KEY_ID": keys["AccessKeyId"],
        "AWS_SECRET_ACCESS_KEY": keys["SecretAccessKey"],
        "AWS_SESSION_TOKEN": keys["SessionToken"],
    }
