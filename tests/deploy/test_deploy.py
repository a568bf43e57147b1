"""Deploys the real template with SAM CLI into MiniStack with IAM enforced, and does the README's main job there.

Timer, bus, queues, notifications and event source mappings are the emulator's. HTTP requests go through the gateway of
`gateway.py`, because the emulator's gateway does not stream. Each step needs the steps before it.
"""

import html
import io
import json
import os
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request
import zipfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
FOLDER = HERE.parents[1]
sys.path += [str(HERE), str(FOLDER / "infra/checks")]

import alarms  # noqa: E402
import gateway  # noqa: E402
import template  # noqa: E402
from botocore.exceptions import ClientError  # noqa: E402
from emulator import Emulator  # noqa: E402
from model import OUTPUT, REFUSED, Model  # noqa: E402
from samtranslator.yaml_helper import yaml_parse  # noqa: E402
from stack import NAME, Stack  # noqa: E402

PAGE = "https://app.example.com"
PERSON = "anna@example.com"


class Answer:
    def __init__(self, status: int, headers, body: bytes):
        self.status, self.headers, self.body = status, headers, body

    def json(self, status: int) -> dict:
        assert self.status == status, self.body[:2000]
        return json.loads(self.body)

    def problem(self, status: int, code: str) -> dict:
        problem = self.json(status)
        assert self.headers["content-type"] == "application/problem+json"
        assert (problem["status"], problem["code"]) == (status, code)
        assert problem["request_id"] == self.headers["x-request-id"]
        return problem


class Deployment:
    """The stack, the gateway in front of it, and a client with a key."""

    def __init__(self, folder: Path):
        began = time.monotonic()
        venv = Path(sys.executable).parent
        self.emulator = Emulator(venv / "ministack", folder)
        self.model = Model()
        sam = Path(os.environ.get("SAM", venv / "sam"))
        binaries = Path(os.environ.get("BINARIES", FOLDER / "target/debug"))
        # The test asks more often than a person does.
        rates = "streamed_turns=600,turns=600,others=600"
        parameters = {
            "ModelUrl": self.model.url, "Model": "fake", "Prices": '{"compatible/*": "free"}', "CorsOrigins": PAGE, "RateLimits": rates,
            "SignInEmail": PERSON, "AllowedHosts": self.model.host,
        }  # fmt: skip
        self.stack = Stack(self.emulator, sam, binaries, folder, parameters)
        print(f"deployed in {time.monotonic() - began:.0f} s")
        api = template.Stack(template.translate(yaml_parse(self.stack.template.read_text()))).api["Body"]
        self.logs = folder / "logs"
        self.gateway = gateway.in_front_of(self.stack, api, {"HasCors"}, self.logs)
        self.key: str | None = None

    def call(self, method: str, path: str, body=None, **headers: str) -> Answer:
        """A call of the API with the key, or a call of another address without it."""
        url = path if path.startswith("http") else self.gateway.url + path
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if data is not None and "content-type" not in sent:
            sent["content-type"] = "application/json"
        if self.key and url.startswith(self.gateway.url):
            sent.setdefault("authorization", f"Bearer {self.key}")
        request = urllib.request.Request(url, data, sent, method=method)
        try:
            with urllib.request.urlopen(request, timeout=120) as response:
                return Answer(response.status, response.headers, response.read())
        except urllib.error.HTTPError as error:
            return Answer(error.code, error.headers, error.read())

    def post(self, path: str, body, status: int) -> dict:
        return self.call("POST", path, body, accept="application/json").json(status)

    def get(self, path: str) -> dict:
        return self.call("GET", path, accept="application/json").json(200)

    def upload(self, begun: dict, archive: bytes) -> None:
        target = begun["upload"]
        assert self.call("PUT", target["url"], archive, **target["headers"]).status == 200

    def key_of(self, owner: str) -> str:
        """The credentials of another owner."""
        payload = (FOLDER / "events/account.first-key.json").read_text().replace('"owner": "me"', f'"owner": "{owner}"')
        made = self.emulator.client("lambda").invoke(FunctionName=self.stack.outputs["AccountFunction"], Payload=payload.encode())
        return "Bearer " + json.loads(json.loads(made["Payload"].read())["body"])["api_key"]

    def until(self, path: str, seconds: float, credentials: str | None = None, **expected) -> dict:
        """Waits until fields have these values."""
        end = time.monotonic() + seconds
        headers = {"authorization": credentials} if credentials else {}
        while True:
            found = self.call("GET", path, accept="application/json", **headers).json(200)
            if all(found[name] == value for name, value in expected.items()):
                return found
            assert time.monotonic() < end, f"{path} after {seconds} s: {json.dumps(found)[:3000]}"
            time.sleep(1)

    def lines(self) -> list[str]:
        """Everything that the functions have written, by the gateway and by the emulator."""
        logs = self.emulator.client("logs")
        texts = [path.read_text() for path in self.logs.iterdir()]
        for group in logs.describe_log_groups()["logGroups"]:
            pages = logs.get_paginator("filter_log_events").paginate(logGroupName=group["logGroupName"])
            texts += [event["message"] for page in pages for event in page["events"]]
        return [line for text in texts for line in text.splitlines()]

    def figures(self) -> list[alarms.Figure]:
        return list(alarms.figures(self.lines()))

    def alarms(self) -> dict[str, dict]:
        """The alarms of the stack by their logical ids."""
        cloudformation, cloudwatch = self.emulator.client("cloudformation"), self.emulator.client("cloudwatch")
        pages = cloudformation.get_paginator("list_stack_resources").paginate(StackName=NAME)
        named = {
            each["PhysicalResourceId"]: each["LogicalResourceId"]
            for page in pages
            for each in page["StackResourceSummaries"]
            if each["ResourceType"] == "AWS::CloudWatch::Alarm"
        }
        return {named[alarm["AlarmName"]]: alarm for alarm in cloudwatch.describe_alarms()["MetricAlarms"]}

    def invoke(self, function: str) -> tuple[dict, bool]:
        """One call of a timer's function in the emulator. Also whether it has failed."""
        payload = (FOLDER / f"events/{function}.timer.json").read_bytes()
        answer = self.emulator.client("lambda").invoke(FunctionName=f"{NAME}-{function}", Payload=payload)
        return json.loads(answer["Payload"].read()), "FunctionError" in answer

    def end(self) -> None:
        self.gateway.end()
        self.emulator.stop()


@pytest.fixture(scope="module")
def d(tmp_path_factory: pytest.TempPathFactory):
    deployment = Deployment(tmp_path_factory.mktemp("deploy"))
    yield deployment
    deployment.end()


@pytest.fixture(scope="module")
def made() -> dict:
    """The results of earlier steps."""
    return {}


def archive(files: dict[str, str | bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in files.items():
            file.writestr(name, content)
    return buffer.getvalue()


def test_the_stack_answers(d: Deployment) -> None:
    assert d.get("/health")["status"] == "ok"
    assert d.get("/openapi.json")["openapi"].startswith("3.1")


def test_the_first_key_is_made_by_invoking_the_function(d: Deployment) -> None:
    payload = (FOLDER / "events/account.first-key.json").read_bytes()
    answer = d.emulator.client("lambda").invoke(FunctionName=d.stack.outputs["AccountFunction"], Payload=payload)
    response = json.loads(answer["Payload"].read())
    assert response["statusCode"] == 201, response
    d.key = json.loads(response["body"])["api_key"]


def test_the_gateway_lets_nobody_else_in(d: Deployment) -> None:
    asked = d.gateway.asked
    d.call("GET", "/agents", authorization="").problem(401, "unauthenticated")
    assert d.gateway.asked == asked
    d.call("GET", "/agents", authorization="Bearer llk_nothing").problem(401, "unauthenticated")
    d.call("GET", "/nowhere").problem(404, "not_found")
    assert d.get("/agents")["data"] == [] == d.get("/agents")["data"]
    assert d.gateway.asked == asked + 2, "the authorizer is asked once for each key"


def test_a_role_has_its_rights_and_no_others(d: Deployment) -> None:
    """Checks that IAM refuses other calls. Otherwise "nothing was refused" would prove nothing."""
    table, key = d.stack.outputs["Table"], {"pk": {"S": "U#nobody"}, "sk": {"S": "x"}}
    agents, catalog = (
        d.emulator.client("dynamodb", d.gateway.functions[name].variables) for name in ("AgentsFunction", "CatalogFunction")
    )
    assert "Item" not in agents.get_item(TableName=table, Key=key)
    for forbidden in (lambda: agents.scan(TableName=table), lambda: catalog.get_item(TableName=table, Key=key)):
        with pytest.raises(ClientError, match="AccessDenied"):
            forbidden()


def test_a_provider_key_is_stored_with_a_master_key_that_the_function_makes(d: Deployment) -> None:
    answer = d.call("PUT", "/account/provider-keys/xai", {"key": "xai-0123456789abcdef"})
    assert answer.json(200)["last_characters"] == "cdef"
    # A second key uses the same master key.
    d.call("PUT", "/account/provider-keys/google", {"key": "AIza0123456789abcdef"}).json(200)
    assert [key["provider"] for key in d.get("/account/provider-keys")["data"]] == ["google", "xai"]
    parameter = d.emulator.client("ssm").get_parameter(Name=f"/{NAME}/master-keys/1")["Parameter"]
    assert parameter["Type"] == "SecureString"
    table = d.emulator.client("dynamodb").scan(TableName=d.stack.outputs["Table"])["Items"]
    assert "0123456789abcdef" not in json.dumps(table, default=str)
    for provider in ("xai", "google"):
        assert d.call("DELETE", f"/account/provider-keys/{provider}").status == 204


def test_an_agent_is_set_up_by_talking(d: Deployment, made: dict) -> None:
    draft = d.post("/setup/chat", {"message": "Set me up with something that watches lamp oil"}, 200)["agent_draft"]
    assert draft["name"] == "Lamp watch"
    answer = d.call("POST", "/agents", draft)
    made["agent"] = answer.json(201)["agent_id"]
    # `Location` leads back through the stage.
    place = d.gateway.url.rsplit("/live", 1)[0] + answer.headers["location"]
    assert answer.headers["location"] == f"/live/agents/{made['agent']}"
    assert d.call("GET", place, authorization=f"Bearer {d.key}").json(200)["name"] == "Lamp watch"


def test_a_turn_streams(d: Deployment, made: dict) -> None:
    url = f"{d.gateway.url}/agents/{made['agent']}/chat"
    headers = {"authorization": f"Bearer {d.key}", "content-type": "application/json", "accept": "text/event-stream"}
    body = json.dumps({"message": "Count slowly to 6"}).encode()
    began, seen = time.monotonic(), {}
    with urllib.request.urlopen(urllib.request.Request(url, body, headers), timeout=60) as response:
        assert response.headers["content-type"] == "text/event-stream"
        for line in response:
            if line.startswith(b"event: "):
                seen.setdefault(line.decode().split()[1], time.monotonic() - began)
    assert "run.completed" in seen, seen
    assert seen["run.completed"] - seen["message.delta"] > 3, f"it came in pieces: {seen}"


def test_a_turn_ends_though_the_client_has_left(d: Deployment, made: dict) -> None:
    url = f"{d.gateway.url}/agents/{made['agent']}/chat"
    headers = {"authorization": f"Bearer {d.key}", "content-type": "application/json", "accept": "text/event-stream"}
    body = json.dumps({"message": "Count slowly to 5"}).encode()
    with urllib.request.urlopen(urllib.request.Request(url, body, headers), timeout=60) as response:
        run = response.headers["location"].removeprefix("/live")
        response.readline()
    assert d.until(run, 60, state="completed")["message"].split() == ["0", "1", "2", "3", "4"]


def test_a_spending_alert_reaches_those_who_listen_to_the_topic(d: Deployment, made: dict) -> None:
    sqs, sns = d.emulator.client("sqs"), d.emulator.client("sns")
    queue, topic = sqs.create_queue(QueueName="listener")["QueueUrl"], d.stack.outputs["Alarms"]
    arn = sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    allow = {
        "Effect": "Allow", "Principal": {"Service": "sns.amazonaws.com"}, "Action": "sqs:SendMessage", "Resource": arn,
        "Condition": {"ArnEquals": {"aws:SourceArn": topic}},
    }  # fmt: skip
    policy = json.dumps({"Version": "2012-10-17", "Statement": [allow]})
    sqs.set_queue_attributes(QueueUrl=queue, Attributes={"Policy": policy})
    sns.subscribe(TopicArn=topic, Protocol="sqs", Endpoint=arn)
    event = {
        "owner": "me", "month": "2026-11", "month_micros": 20_000_000, "spent_micros": 20_014_095,
        "month_dollars": "20.00", "spent_dollars": "20.01",
    }  # fmt: skip
    entry = {
        "EventBusName": d.stack.outputs["Bus"], "Source": "lamplighter", "DetailType": "spending.alert",
        "Detail": json.dumps(event),
    }  # fmt: skip
    other = {**entry, "DetailType": "index.completed"}
    assert d.emulator.client("events").put_events(Entries=[other, entry])["FailedEntryCount"] == 0
    end, texts = time.monotonic() + 60, []
    while not texts and time.monotonic() < end:
        found = sqs.receive_message(QueueUrl=queue, WaitTimeSeconds=2).get("Messages", [])
        texts += [json.loads(message["Body"])["Message"] for message in found]
    (text,) = texts
    assert "the costs of me in 2026-11 are $20.01 and have reached the alert at $20.00" in text, text


def test_an_asset_is_kept(d: Deployment, made: dict) -> None:
    asset = {"title": "Brief", "description": "", "asset_type": "document", "content": "# Lamp oil\n"}
    asset = d.post(f"/agents/{made['agent']}/assets", asset, 201)
    assert d.call("GET", f"/assets/{asset['asset_id']}/content").body == b"# Lamp oil\n"


def test_an_approved_action_runs_at_its_time(d: Deployment, made: dict) -> None:
    due = datetime.now(UTC) + timedelta(seconds=30)
    action = {
        "title": "Lamp oil report",
        "description": "",
        "priority": "high",
        "task_config": {"instructions": "Write a report about lamp oil", "expected_output": "A report"},
        "schedule": {"at": due.strftime("%Y-%m-%dT%H:%M:%SZ")},
    }
    action = d.post(f"/agents/{made['agent']}/actions", action, 201)
    path = f"/actions/{action['action_id']}"
    approved = d.post(f"{path}/approve", {"approval_hash": action["approval_hash"]}, 200)
    assert approved["state"] == "scheduled", approved
    d.until(path, 240, state="completed")
    (run,) = d.get(f"{path}/runs")["data"]
    assert run["state"] == "succeeded", run
    (output,) = d.get(f"{path}/runs/{run['run_id']}/outputs")["data"]
    assert d.call("GET", f"/assets/{output['asset_id']}/content").body.decode() == OUTPUT
    made["action"] = path


def test_what_fails_for_good_is_counted_once(d: Deployment, made: dict) -> None:
    turn = d.call("POST", f"/agents/{made['agent']}/chat", {"message": REFUSED}, accept="application/json")
    assert turn.status >= 400, turn.body
    tasks = [
        {"task_config": {"instructions": REFUSED, "expected_output": "Nothing"}},
        {"call": {"url": f"http://{d.model.host}/gone", "body": {"reason": "test"}}},
    ]
    for task in tasks:
        action = d.post(f"/agents/{made['agent']}/actions", {"title": "Fails", "schedule": {"every": "300h"}, **task}, 201)
        path = f"/actions/{action['action_id']}"
        d.post(f"{path}/approve", {"approval_hash": action["approval_hash"]}, 200)
        run = d.post(f"{path}/run", {}, 202)
        d.until(f"/runs/{run['run_id']}", 90, state="failed")
    begun = d.post("/context/import", {"bytes": 9}, 202)
    d.upload(begun, b"no zip...")
    d.until(f"/context/imports/{begun['import_id']}", 90, state="failed")

    expected = {("Function", "all"): 4, **{("Kind", kind): 1 for kind in ("action", "call", "conversation", "job")}}
    end = time.monotonic() + 60
    while True:
        found = [figure for figure in d.figures() if figure.metric.name == "RunsFailed"]
        counts = {dimension: sum(figure.value for figure in found if dimension in figure.metric.dimensions) for dimension in expected}
        if counts == expected or time.monotonic() > end:
            break
        time.sleep(1)
    assert counts == expected
    alarm = d.alarms()["FailedRunsAlarm"]
    at = found[-1].at
    assert alarms.rings(alarm, found, at + 60)
    assert not alarms.rings({**alarm, "Threshold": 5.0}, found, at + 60)
    assert not alarms.rings(alarm, found, at + 7200), "it ends when nothing fails any more"


def test_logs_are_imported_by_an_upload(d: Deployment) -> None:
    entry = {
        "event": "agent_start",
        "agent_type": "architect",
        "agent_id": "arch-1",
        "description": "Design",
        "instruction": "Design it",
        "session_id": "s1",
        "timestamp": "2026-11-21T09:00:00.000Z",
    }
    zipped = archive({"s1/arch-1.jsonl": json.dumps(entry) + "\n"})
    begun = d.post("/context/import", {"bytes": len(zipped)}, 202)
    d.upload(begun, zipped)
    d.until(f"/context/imports/{begun['import_id']}", 90, state="done")
    (read,) = d.get("/context/logs/arch-1?session=s1")["entries"]
    assert read["instruction"] == "Design it"


def test_a_theme_is_imported_and_asked(d: Deployment) -> None:
    files: dict[str, str | bytes] = {
        "layout/theme.liquid": "{% section 'header' %}{{ content_for_layout }}",
        "sections/header.liquid": "<header class='header'></header>{% schema %}{\"name\": \"Header\"}{% endschema %}",
        "assets/large.bin": os.urandom(5_000_000),
    }
    zipped = archive(files)
    begun = d.post("/projects/default/import", {"bytes": len(zipped)}, 202)
    d.upload(begun, zipped)
    d.until(f"/projects/default/imports/{begun['import_id']}", 120, state="done")
    found = d.post("/projects/default/lookup", {"request": "make the header sticky"}, 200)
    assert found["targets"][0]["path"] == "sections/header.liquid", found
    # Larger than a buffered answer in base64 may be.
    assert d.call("GET", "/projects/default/files/assets/large.bin").body == files["assets/large.bin"]


# The function refuses a body that is a little too long. A body of about 4.7 MB does not fit into an event, so the gateway refuses it.
@pytest.mark.parametrize(("size", "fits"), [(4_300_000, True), (4_400_000, True), (4_600_000, False), (4_900_000, False)])
def test_bodies_have_one_limit(d: Deployment, size: int, fits: bool) -> None:
    answer = d.call("PUT", "/projects/default/files/assets/body.bin", b"x" * size, content_type="application/octet-stream")
    if fits:
        assert answer.status in (200, 201), answer.body[:500]
    else:
        assert "4400000" in answer.problem(413, "payload_too_large")["detail"]


def test_pages_of_configured_origins_may_call(d: Deployment) -> None:
    for origin, expected in [(PAGE, PAGE), ("https://other.example.com", None)]:
        asked = {"origin": origin, "access_control_request_method": "POST", "access_control_request_headers": "authorization"}
        preflight = d.call("OPTIONS", "/agents", authorization="", **asked)
        assert (preflight.status, preflight.headers["access-control-allow-origin"]) == (200, expected)
        assert d.call("GET", "/agents", origin=origin).headers["access-control-allow-origin"] == expected
    refused = d.call("GET", "/agents", origin=PAGE, authorization="")
    assert (refused.status, refused.headers["access-control-allow-origin"]) == (401, "*")


def test_people_sign_in_with_the_pool_that_the_stack_makes(d: Deployment) -> None:
    """As far as the emulator goes: it has no page to sign in, and its keys are not at the issuer's address."""
    pool, cognito = d.stack.outputs["UserPool"], d.emulator.client("cognito-idp")
    (listed,) = cognito.list_user_pool_clients(UserPoolId=pool, MaxResults=10)["UserPoolClients"]
    client = cognito.describe_user_pool_client(UserPoolId=pool, ClientId=listed["ClientId"])["UserPoolClient"]
    assert client["CallbackURLs"] == [d.stack.outputs["Console"]]
    assert (client["AllowedOAuthFlows"], client.get("ClientSecret")) == (["code"], None)

    page = d.call("GET", "/", authorization="")
    access = json.loads(html.unescape(re.search(r'name="access" content="([^"]*)"', page.body.decode())[1]))
    assert access["base"] == "/live"
    signs_in = access["openid"]
    assert (signs_in["client_id"], signs_in["use"]) == (listed["ClientId"], "id_token")
    domain = cognito.describe_user_pool(UserPoolId=pool)["UserPool"]["Domain"]
    assert signs_in["token"] == f"https://{domain}.auth.us-east-1.amazoncognito.com/oauth2/token"
    assert f"https://{domain}.auth.us-east-1.amazoncognito.com;" in page.headers["content-security-policy"]


def test_the_smoke_test_passes(d: Deployment) -> None:
    told = subprocess.run(
        ["bash", FOLDER / "infra/smoke.sh", d.gateway.url, d.key],
        env={**os.environ, "SMOKE_TURN": "Count slowly to 62"},
        capture_output=True,
        text=True,
        check=False,
    )
    print(told.stdout)
    assert told.returncode == 0, told.stdout + told.stderr


def test_an_account_is_exported(d: Deployment) -> None:
    begun = d.post("/account/export", {}, 202)
    done = d.until(f"/account/exports/{begun['export_id']}", 60, state="done")
    downloaded = d.call("GET", done["url"])
    assert downloaded.status == 200, downloaded.body[:500]
    with zipfile.ZipFile(io.BytesIO(downloaded.body)) as archived:
        names = archived.namelist()
        manifest = json.loads(archived.read("manifest.json"))
        records = archived.read("records.jsonl").decode().splitlines()
    assert len(downloaded.body) == done["bytes"] > 5_000_000
    assert (manifest["owner"], manifest["records"]) == ("me", done["records"])
    assert len(records) == sum(done["records"].values())
    assert sum(name.startswith("objects/") for name in names) == done["objects"] > 3

    # The archive becomes the contents of another account.
    mover = d.key_of("mover")
    begun = d.call("POST", "/account/import", {"bytes": len(downloaded.body)}, authorization=mover).json(202)
    d.upload(begun, downloaded.body)
    moved = d.until("/account/import", 180, mover, state="done")
    agents = [[agent["name"] for agent in d.call("GET", "/agents", authorization=who).json(200)["data"]] for who in (mover, f"Bearer {d.key}")]
    assert agents[0] == agents[1] != [], agents
    # An export counts records, an import counts things.
    assert moved["records"]["agents"] == len(agents[0]), moved
    large = d.call("GET", "/projects/default/files/assets/large.bin", authorization=mover)
    assert large.status == 200 and large.body == d.call("GET", "/projects/default/files/assets/large.bin").body
    d.until("/projects/default/map/status", 60, mover, state="ready")


def test_an_account_is_deleted_with_all_versions_of_its_objects(d: Deployment) -> None:
    """Its last step comes eighteen minutes later, which the tests of the platform look at."""
    credentials = d.key_of("leaver")
    for content in ("first", "second"):
        put = d.call("PUT", "/projects/default/files/assets/a.css", content.encode(), content_type="text/css", authorization=credentials)
        assert put.status in (200, 201), put.body
    d.call("POST", "/agents", {"name": "Leaver", "goal": "Leave"}, authorization=credentials).json(201)
    # An indexer that has begun would write a map after the first removal.
    d.until("/projects/default/map/status", 60, credentials, state="ready")

    d.call("DELETE", "/account?confirm=me", authorization=credentials).problem(400, "invalid_input")
    receipt = d.call("DELETE", "/account?confirm=leaver", authorization=credentials).json(202)["receipt"]
    d.until(receipt, 60, state="waiting")
    told = d.call("GET", receipt, authorization="").json(200)
    assert told["removed_records"]["agents"] >= 1 and told["removed_objects"] >= 2, told
    # An environment trusts for 30 s what it has read.
    end = time.monotonic() + 45
    while (answer := d.call("GET", "/agents", authorization=credentials)).status == 200 and time.monotonic() < end:
        time.sleep(2)
    answer.problem(410, "account_deleted")
    versions = d.emulator.client("s3").list_object_versions(Bucket=d.stack.outputs["Bucket"])
    keys = [found["Key"] for kind in ("Versions", "DeleteMarkers") for found in versions.get(kind, [])]
    assert keys and not [key for key in keys if key.startswith("leaver/")], keys
    items = d.emulator.client("dynamodb").scan(TableName=d.stack.outputs["Table"])["Items"]
    left = {item["pk"]["S"] for item in items if item["pk"]["S"].startswith("U#leaver#")}
    assert left == {"U#leaver#KEY"}, left
    assert [item for item in items if item["pk"]["S"].startswith("U#me#")]


def test_the_watchdog_looks(d: Deployment) -> None:
    sent, has_failed = d.invoke("watchdog")
    assert not has_failed, sent
    # At a quarter past an even hour, the timer has made the look of these two hours.
    looks = [line for line in d.lines() if "the watchdog looks" in line]
    by_timer = any(re.search(r'"owners":[1-9]', line) for line in looks)
    assert sent["refused"] == 0 and (sent["owners"] >= 1 or by_timer), (sent, looks)
    # It knows how many dead letters there are, and whether the timer is on.
    unknown = [line for line in d.lines() if re.search("dead letters could not be counted|timer could not be read", line)]
    assert not unknown, unknown
    again, has_failed = d.invoke("watchdog")
    assert not has_failed and again["owners"] == 0, "a look that comes twice does nothing"


def test_alarms_on_our_metrics_watch_what_functions_write(d: Deployment) -> None:
    found = d.figures()
    written = {figure.metric for figure in found}
    ours = {name: alarm for name, alarm in d.alarms().items() if alarm["Namespace"] == "Lamplighter"}
    assert set(ours) == {"FailedRunsAlarm", "FireLagAlarm", "SweepSilentAlarm", "WatchdogSilentAlarm"}
    for name, alarm in ours.items():
        assert alarms.watched(alarm) in written, name
    newest = {metric: max(figure.at for figure in found if figure.metric == metric) for metric in written}
    for name, silence in (("SweepSilentAlarm", 301), ("WatchdogSilentAlarm", 14_401)):
        at = newest[alarms.watched(ours[name])]
        assert not alarms.rings(ours[name], found, at + 1), name
        assert alarms.rings(ours[name], found, at + silence), name
    late = alarms.Figure(alarms.watched(ours["FireLagAlarm"]), time.time(), 60_000)
    assert alarms.rings(ours["FireLagAlarm"], [late], late.at + 1)
    assert not alarms.rings(ours["FireLagAlarm"], found, newest[late.metric] + 301)


def test_nothing_was_refused(d: Deployment) -> None:
    """IAM has refused nothing. A step might have continued in spite of a refusal, so this is checked separately."""
    lines = d.lines()
    assert lines
    refused = [line for line in lines if re.search(r"AccessDenied|misconfigured", line)]
    assert not refused, "\n".join(refused[:20])
    queue = d.emulator.client("sqs").get_queue_attributes(
        QueueUrl=d.stack.outputs["DeadLetters"], AttributeNames=["ApproximateNumberOfMessages"]
    )
    assert queue["Attributes"]["ApproximateNumberOfMessages"] == "0"


def test_the_watchdog_has_dead_letters_moved_back(d: Deployment) -> None:
    """The emulator does not know StartMessageMoveTask, and refuses it, because it does not know its resource. So what is seen is that the role
    has the right, that the function asks, that a refusal does not end the look, and that the second look says what is wrong."""
    sqs, table = d.emulator.client("sqs"), d.emulator.client("dynamodb")
    role = d.emulator.client("lambda").get_function_configuration(FunctionName=f"{NAME}-watchdog")["Role"]
    for queue, decision in (("DeadLetters", "allowed"), ("Queue", "implicitDeny")):
        arn = sqs.get_queue_attributes(QueueUrl=d.stack.outputs[queue], AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
        asked = {"PolicySourceArn": role, "ActionNames": ["sqs:StartMessageMoveTask"], "ResourceArns": [arn]}
        (result,) = d.emulator.client("iam").simulate_principal_policy(**asked)["EvaluationResults"]
        assert result["EvalDecision"] == decision, result
    sqs.send_message(QueueUrl=d.stack.outputs["DeadLetters"], MessageBody='{"owner": "nobody"}')
    for looks in (1, 2):
        # Two hours pass: the look before was two hours ago.
        key = {"pk": {"S": "WATCHDOG"}, "sk": {"S": "STATE"}}
        state = table.get_item(TableName=d.stack.outputs["Table"], Key=key)["Item"]
        look = datetime.fromisoformat(state["looked_at"]["S"])
        before = (look - timedelta(hours=2)).strftime("%Y-%m-%dT%H:%M:%SZ")
        earlier = json.loads(json.dumps(state).replace(state["looked_at"]["S"], before))
        table.put_item(TableName=d.stack.outputs["Table"], Item=earlier)
        sent, has_failed = d.invoke("watchdog")
        assert not has_failed and sent["wrong"] >= 1, sent
        lines = d.lines()
        asked = [line for line in lines if re.search("dead letters moved back|dead letters could not be moved back", line)]
        assert len(asked) == looks, asked
        said = [line for line in lines if "the watchdog says about the platform" in line and "DeadLetters" in line]
        assert len(said) == looks - 1, said
    sqs.purge_queue(QueueUrl=d.stack.outputs["DeadLetters"])


def test_a_sweep_that_may_not_send_rings_the_alarm(d: Deployment, made: dict) -> None:
    iam, cloudformation = d.emulator.client("iam"), d.emulator.client("cloudformation")
    function = d.emulator.client("lambda").get_function_configuration(FunctionName=f"{NAME}-schedule-sweep")
    role = function["Role"].rsplit("/", 1)[-1]
    send = cloudformation.describe_stack_resource(StackName=NAME, LogicalResourceId="SendDue")
    send = send["StackResourceDetail"]["PhysicalResourceId"]
    # Due later than what is sent at once when it is approved, so the sweep must send it.
    due = datetime.now(UTC) + timedelta(seconds=100)
    action = {
        "title": "Never sent",
        "task_config": {"instructions": "Write a report about lamp oil", "expected_output": "A report"},
        "schedule": {"at": due.strftime("%Y-%m-%dT%H:%M:%SZ")},
    }
    action = d.post(f"/agents/{made['agent']}/actions", action, 201)
    d.post(f"/actions/{action['action_id']}/approve", {"approval_hash": action["approval_hash"]}, 200)
    iam.detach_role_policy(RoleName=role, PolicyArn=send)
    end = time.monotonic() + 60
    while not (failed := d.invoke("schedule-sweep"))[1]:
        assert time.monotonic() < end, failed
        time.sleep(3)
    broken = time.time()
    assert d.invoke("schedule-sweep")[1], "the next sweep finds the same item"
    assert any("the queue has refused 1 due items" in line for line in d.lines())
    alarm, found = d.alarms()["SweepSilentAlarm"], d.figures()
    assert not [figure for figure in found if figure.metric == alarms.watched(alarm) and figure.at > broken]
    assert not alarms.rings(alarm, found, broken)
    assert alarms.rings(alarm, found, broken + 301)
    iam.attach_role_policy(RoleName=role, PolicyArn=send)


def test_deleting_the_stack_keeps_what_people_have_made(d: Deployment) -> None:
    d.stack.delete()
    with pytest.raises(Exception, match="does not exist"):
        d.emulator.client("cloudformation").describe_stacks(StackName=NAME)
    assert d.stack.outputs["Table"] in d.emulator.client("dynamodb").list_tables()["TableNames"]
    assert d.stack.outputs["Bucket"] in [b["Name"] for b in d.emulator.client("s3").list_buckets()["Buckets"]]
