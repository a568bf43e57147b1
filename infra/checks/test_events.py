"""The payloads in events/: each is an event that its function receives and can read."""

import hashlib
import json
import re
from pathlib import Path

import jsonschema
import pytest

from sources import ROOT, Repo, Route
from template import Stack

EVENTS = {path.stem: json.loads(path.read_text()) for path in sorted(ROOT.glob("events/*.json"))}
BODIES = {path.stem: json.loads(path.read_text()) for path in sorted(ROOT.glob("events/http/*.json"))}
REST = [name for name, event in EVENTS.items() if "httpMethod" in event and "type" not in event]

# The route of each body.
SENT_TO = {
    "action": Route("POST", "/agents/{agent_id}/actions"),
    "agent": Route("POST", "/agents"),
    "api-key": Route("POST", "/account/api-keys"),
    "asset": Route("POST", "/agents/{agent_id}/assets"),
    "lookup": Route("POST", "/projects/{project_id}/lookup"),
    "project": Route("POST", "/projects"),
    "schedule-preview": Route("POST", "/schedules/preview"),
    "setup": Route("POST", "/setup/chat"),
    "turn": Route("POST", "/agents/{agent_id}/chat"),
}


def check_body(repo: Repo, route: Route, body: object) -> None:
    """Checks a body against its schema in the OpenAPI document."""
    if route not in repo.documented:
        pytest.skip(f"{route} is not in infra/openapi.json yet")
    operation = repo.openapi["paths"][route.path][route.method.lower()]
    schema = operation["requestBody"]["content"]["application/json"]["schema"]
    jsonschema.validate(body, {**schema, "components": repo.openapi["components"]}, jsonschema.Draft202012Validator)


def test_every_function_has_a_payload(stack: Stack) -> None:
    assert {name.split(".")[0] for name in EVENTS} == set(stack.functions)


@pytest.mark.parametrize("name", REST)
def test_a_request_is_for_a_route_of_its_function(name: str, stack: Stack, repo: Repo) -> None:
    event = EVENTS[name]
    route = Route(event["httpMethod"], event["resource"])
    context = event["requestContext"]
    assert stack.method(route.method, route.path).function == name.split(".")[0]
    path = re.sub(r"\{(\w+)\}", lambda found: event["pathParameters"][found[1]], route.path)
    # With a custom domain, both paths contain the base path.
    own = not context["domainName"].endswith(".amazonaws.com")
    paths = (f"/v1{path}", f"/v1{path}") if own else (path, f"/{context['stage']}{path}")
    assert (event["path"], context["path"]) == paths
    assert (context["httpMethod"], context["resourcePath"]) == (route.method, route.path)
    assert context["stage"] == next(iter(stack.of("AWS::ApiGateway::Stage").values()))["StageName"]
    assert ("authorizer" in context) == (route not in repo.open_routes)
    assert event["multiValueHeaders"] == {key: [value] for key, value in event["headers"].items()}
    if event["body"] is not None and event["headers"]["Content-Type"] == "application/json":
        check_body(repo, route, json.loads(event["body"]))


@pytest.mark.parametrize("name", BODIES)
def test_a_body_is_what_its_route_takes(name: str, repo: Repo) -> None:
    check_body(repo, SENT_TO[name], BODIES[name])


@pytest.mark.parametrize("name", [name for name, event in EVENTS.items() if "Records" in event])
def test_a_queue_carries_whole_messages(name: str) -> None:
    for record in EVENTS[name]["Records"]:
        assert record["md5OfBody"] == hashlib.md5(record["body"].encode()).hexdigest()
        assert record["eventSource"] == "aws:sqs"


def test_the_due_item_matches_the_code(repo: Repo) -> None:
    (record,) = EVENTS["scheduled-executor.due"]["Records"]
    item = json.loads(record["body"])
    source = repo.text("shared/src/store/due_item.rs")
    tagged = re.search(r'tag = "(\w+)", content = "(\w+)"', source)
    names = {"owner", "due_at", *tagged.groups()}
    assert all(f"pub {name}:" in source for name in ("owner", "due_at"))
    assert set(item) == names
    assert record["attributes"]["MessageGroupId"] == item["owner"]


def test_ids_have_valid_formats(repo: Repo) -> None:
    prefixes = set(re.findall(r'"([a-z]{3}_)"', repo.text("shared/domain/src/ids.rs")))
    found = re.findall(
        r"\b([a-z]{3}_)([0-9a-f]{32})\b", "".join(p.read_text() for p in Path(ROOT / "events").glob("**/*.json"))
    )
    assert found
    for prefix, hex in found:
        assert prefix in prefixes
        assert (hex[12], hex[16] in "89ab") == ("7", True), f"{prefix}{hex} is not a UUIDv7"
