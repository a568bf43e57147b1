"""An API Gateway in front of the deployed functions. It supports response streaming, which the emulator does not support.

Written from AWS's documents ("Lambda proxy integrations", "Lambda authorizers", "Stream the integration response", "Gateway
responses"). It serves the API as it was deployed: paths, authorizer, gateway responses and streaming come from the translated
template that the emulator was given.
"""

import base64
import json
import re
import threading
import time
import uuid
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

from runtime import Failed, Function, TooLarge, pieces
from template import sub

STAGE = "live"
END_OF_PRELUDE = bytes(8)
# The largest request that API Gateway accepts.
MOST = 10 * 1024 * 1024


class Refused(Exception):
    """The gateway answers by itself, with the response of this kind."""


# The verbs of a method for all of them. Preflights have methods of their own.
VERBS = ["DELETE", "GET", "HEAD", "PATCH", "POST", "PUT"]


def called(uri: str) -> str:
    """The logical id of the function that an integration calls."""
    return re.search(r"\$\{(\w+)\.Arn\}", uri)[1]


class Method:
    def __init__(self, path: str, definition: dict):
        uri = sub(definition["x-amazon-apigateway-integration"]["uri"])
        self.path, self.logical = path, called(uri)
        self.streams = "response-streaming-invocations" in uri
        self.open = definition["security"] == [{"NONE": []}]
        names = re.findall(r"\{(\w+)(\+?)\}", path)
        pattern = re.sub(r"\\\{(\w+)\\\+\\\}", r"(?P<\1>.+)", re.escape(path))
        self.pattern = re.compile(re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>[^/]+)", pattern))
        # The gateway prefers literal parts to parameters, and a parameter for one part to a parameter for several.
        self.rank = (any(plus for _, plus in names), len(names))


class Gateway:
    def __init__(self, api: dict, functions: dict[str, Function], conditions: set[str], variables: dict[str, str]):
        """`api` is the API's OpenAPI document, `functions` are the functions by logical id, `conditions` are the true conditions,
        `variables` are those of the stage."""
        self.functions, self.conditions, self.variables = functions, conditions, variables
        self.responses = api["x-amazon-apigateway-gateway-responses"]
        self.methods: dict[str, list[Method]] = defaultdict(list)
        for path, item in api["paths"].items():
            for verb, definition in item.items():
                for each in VERBS if verb == "x-amazon-apigateway-any-method" else [verb.upper()]:
                    self.methods[each].append(Method(path, definition))
        for methods in self.methods.values():
            methods.sort(key=lambda method: method.rank)
        scheme = api["components"]["securitySchemes"]["Bearer"]["x-amazon-apigateway-authorizer"]
        self.authorizer = called(sub(scheme["authorizerUri"]))
        self.remembered: dict[str, tuple[float, dict]] = {}
        self.lifetime = scheme["authorizerResultTtlInSeconds"]
        self.asked = 0
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), self.handler())
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/{STAGE}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def end(self) -> None:
        self.server.shutdown()
        for function in self.functions.values():
            function.end()

    def find(self, verb: str, path: str) -> tuple[Method, dict[str, str]]:
        for method in self.methods[verb]:
            if found := method.pattern.fullmatch(path):
                return method, {name: unquote(value) for name, value in found.groupdict().items()}
        raise Refused("MISSING_AUTHENTICATION_TOKEN")

    def authorize(self, event: dict) -> dict:
        """The authorizer's context for this caller. The answers are cached by credentials."""
        credentials = {name.lower(): value for name, value in event["headers"].items()}.get("authorization")
        if not credentials:
            raise Refused("UNAUTHORIZED")
        until, context = self.remembered.get(credentials, (0.0, {}))
        if time.monotonic() < until:
            return context
        self.asked += 1
        asked = {**event, "type": "REQUEST", "methodArn": f"arn:aws:execute-api:us-east-1:000000000000:api/{STAGE}/GET/x"}
        try:
            answer = self.functions[self.authorizer].call(asked)
        except Failed as failed:
            raise Refused("UNAUTHORIZED" if '"Unauthorized"' in str(failed) else "AUTHORIZER_CONFIGURATION_ERROR") from failed
        if any(each["Effect"] != "Allow" for each in answer["policyDocument"]["Statement"]):
            raise Refused("ACCESS_DENIED")
        context = {"principalId": answer["principalId"], **answer.get("context", {})}
        self.remembered[credentials] = (time.monotonic() + self.lifetime, context)
        return context

    def event(self, verb: str, target: str, headers: list[tuple[str, str]], body: bytes) -> tuple[dict, Method]:
        """The event that the function gets."""
        url = urlsplit(target)
        path = url.path.removeprefix(f"/{STAGE}")
        if path == url.path:
            raise Refused("MISSING_AUTHENTICATION_TOKEN")
        method, parameters = self.find(verb, path)
        query, many = parse_qsl(url.query, keep_blank_values=True), defaultdict(list)
        for name, value in query:
            many[name].append(value)
        several = defaultdict(list)
        for name, value in headers:
            several[name].append(value)
        event = {
            "resource": method.path,
            "path": path,
            "httpMethod": verb,
            "headers": dict(headers),
            "multiValueHeaders": several,
            "queryStringParameters": dict(query) or None,
            "multiValueQueryStringParameters": many or None,
            "pathParameters": parameters or None,
            "stageVariables": self.variables or None,
            "requestContext": {
                "resourceId": "r1",
                "resourcePath": method.path,
                "httpMethod": verb,
                "path": url.path,
                "protocol": "HTTP/1.1",
                "stage": STAGE,
                "accountId": "000000000000",
                "apiId": "a1b2c3d4e5",
                "domainName": "a1b2c3d4e5.execute-api.us-east-1.amazonaws.com",
                "domainPrefix": "a1b2c3d4e5",
                "requestId": str(uuid.uuid4()),
                "requestTimeEpoch": int(time.time() * 1000),
                "identity": {"sourceIp": "127.0.0.1", "userAgent": "test"},
            },
            # All types are binary.
            "body": base64.b64encode(body).decode() if body else None,
            "isBase64Encoded": bool(body),
        }
        if not method.open:
            event["requestContext"]["authorizer"] = self.authorize({**event, "body": None})
        return event, method

    def handler(self) -> type[BaseHTTPRequestHandler]:
        gateway = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_) -> None:
                pass

            def serve(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                body = self.rfile.read(length)
                request_id = str(uuid.uuid4())
                try:
                    if length > MOST:
                        raise Refused("REQUEST_TOO_LARGE")
                    event, method = gateway.event(self.command, self.path, self.headers.items(), body)
                    request_id = event["requestContext"]["requestId"]
                    invocation = gateway.functions[method.logical].invoke(json.dumps(event).encode())
                    if method.streams:
                        self.stream(pieces(invocation))
                    else:
                        self.buffered(json.loads(b"".join(pieces(invocation))))
                except Refused as refused:
                    self.refuse(str(refused), request_id)
                except TooLarge:
                    self.refuse("REQUEST_TOO_LARGE", request_id)
                except (Failed, ValueError, KeyError):
                    self.refuse("INTEGRATION_FAILURE", request_id)
                except (BrokenPipeError, ConnectionResetError):
                    # The client has disconnected. The function continues.
                    self.close_connection = True

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = serve  # noqa: N815

            def refuse(self, kind: str, request_id: str) -> None:
                response = gateway.responses[kind]
                text = response["responseTemplates"]["application/problem+json"].replace("$context.requestId", request_id)
                self.send_response(int(response["statusCode"]))
                for name, value in response.get("responseParameters", {}).items():
                    match value:
                        case {"Fn::If": [condition, if_true, _]}:
                            if condition not in gateway.conditions:
                                continue
                            value = if_true
                    value = request_id if value == "context.requestId" else value.strip("'")
                    self.send_header(name.removeprefix("gatewayresponse.header."), value)
                self.send_header("Content-Type", "application/problem+json")
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text.encode())

            def buffered(self, answer: dict) -> None:
                text = answer.get("body") or ""
                body = base64.b64decode(text) if answer.get("isBase64Encoded") else text.encode()
                self.send_response(answer["statusCode"])
                headers = {name: [value] for name, value in answer.get("headers", {}).items()}
                for name, values in {**headers, **answer.get("multiValueHeaders", {})}.items():
                    for value in values:
                        if name.lower() != "content-length":
                            self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def stream(self, answer) -> None:
                begun = b""
                while END_OF_PRELUDE not in begun:
                    begun += next(answer, None) or b""
                prelude, _, first = begun.partition(END_OF_PRELUDE)
                prelude = json.loads(prelude)
                status = prelude["statusCode"]
                self.send_response(status)
                headers = {name: [value] for name, value in prelude.get("headers", {}).items()}
                for name, values in {**headers, **prelude.get("multiValueHeaders", {})}.items():
                    for value in values:
                        if name.lower() not in ("content-length", "transfer-encoding"):
                            self.send_header(name, value)
                if status in (204, 304):
                    self.end_headers()
                    for _ in answer:
                        pass
                    return
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                self.chunk(first)
                try:
                    for piece in answer:
                        self.chunk(piece)
                except Failed:
                    # It is too late for a status, so the client gets a truncated stream.
                    self.close_connection = True
                    return
                self.wfile.write(b"0\r\n\r\n")

            def chunk(self, piece: bytes) -> None:
                if piece:
                    self.wfile.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")

        return Handler


def in_front_of(stack, api: dict, conditions: set[str], logs: Path) -> Gateway:
    """A gateway for a deployed stack."""
    emulator = stack.emulator
    paginator = emulator.client("cloudformation").get_paginator("list_stack_resources")
    resources = [each for page in paginator.paginate(StackName="lamplighter") for each in page["StackResourceSummaries"]]
    physical = {
        each["LogicalResourceId"]: each["PhysicalResourceId"]
        for each in resources
        if each["ResourceType"] == "AWS::Lambda::Function"
    }
    logs.mkdir()
    with ThreadPoolExecutor(4) as pool:
        made = pool.map(lambda name: Function(emulator, name, stack.folder / "functions", logs), physical.values())
        functions = dict(zip(physical, made, strict=True))
    (rest,) = (each["PhysicalResourceId"] for each in resources if each["ResourceType"] == "AWS::ApiGateway::RestApi")
    stage = emulator.client("apigateway").get_stage(restApiId=rest, stageName=STAGE)
    return Gateway(api, functions, conditions, stage.get("variables", {}))
