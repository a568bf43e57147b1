"""`infra/restore.py` in the emulator. It has no restore of its own, so a copy of the table takes the place of one."""

import os
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE))

from emulator import REGION, ROOT, Emulator  # noqa: E402

TOOL = HERE.parents[1] / "infra/restore.py"


def item(owner: str, kind: str, sk: str, version: int = 1, **more: str) -> dict:
    values = {name: {"S": value} for name, value in more.items()}
    key = {"pk": {"S": f"U#{owner}#{kind}"}, "sk": {"S": sk}}
    return {**key, "_v": {"N": str(version)}, "_w": {"S": "w"}, **values}


class Stack:
    def __init__(self, folder: Path):
        self.emulator = Emulator(Path(sys.executable).parent / "ministack", folder)
        self.dynamodb, self.s3 = self.emulator.client("dynamodb"), self.emulator.client("s3")
        for table in ("live", "copy"):
            self.dynamodb.create_table(
                TableName=table,
                BillingMode="PAY_PER_REQUEST",
                AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in ("pk", "sk")],
                KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
            )
        self.s3.create_bucket(Bucket="bucket")
        self.s3.put_bucket_versioning(Bucket="bucket", VersioningConfiguration={"Status": "Enabled"})

    def put(self, table: str, *items: dict) -> None:
        for each in items:
            self.dynamodb.put_item(TableName=table, Item=each)

    def items(self, table: str) -> dict[tuple[str, str], dict]:
        found = self.dynamodb.scan(TableName=table)["Items"]
        return {(each["pk"]["S"], each["sk"]["S"]): each for each in found}

    def body(self, key: str) -> bytes | None:
        try:
            return self.s3.get_object(Bucket="bucket", Key=key)["Body"].read()
        except self.s3.exceptions.NoSuchKey:
            return None

    def run(self, *more: str, status: int = 0) -> list[str]:
        environment = {**os.environ, **ROOT, "AWS_ENDPOINT_URL": self.emulator.url, "AWS_REGION": REGION}
        command = [sys.executable, TOOL, "--table", "live", "--copy", "copy", *more]
        told = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert told.returncode == status, told.stdout + told.stderr
        return (told.stdout + told.stderr).splitlines()


@pytest.fixture
def s(tmp_path: Path):
    stack = Stack(tmp_path)
    yield stack
    stack.emulator.stop()


def test_missing_records_come_back_and_newer_ones_stay(s: Stack) -> None:
    gone, newer = item("me", "ASSET", "ast_1", title="gone"), item("me", "ASSET", "ast_2", 3, title="old")
    equal, other = item("me", "CHAT", "cht_1"), item("you", "ASSET", "ast_9")
    # "me2" begins like "me".
    similar = item("me2", "ASSET", "ast_8")
    revoked, expired = item("me", "KEY", "key_1"), item("me", "RUN", "run_1") | {"ttl": {"N": "1"}}
    lasting = item("me", "RUN", "run_2") | {"ttl": {"N": str(int(time.time()) + 3600)}}
    s.put("copy", gone, newer, equal, other, similar, revoked, expired, lasting)
    s.put("live", item("me", "ASSET", "ast_2", 5, title="new"), equal, item("me", "ASSET", "ast_3"))
    before = s.items("live")

    expected = ["ASSET: 1 different, left", "ASSET: 1 restored", "CHAT: 1 equal", "KEY: 1 left out", "RUN: 1 expired", "RUN: 1 restored"]
    assert s.run("--owner", "me") == [*expected, "nothing was written: repeat with --write"]
    assert s.items("live") == before
    assert s.run("--owner", "me", "--write") == [*expected, "written"]
    restored = {(each["pk"]["S"], each["sk"]["S"]): each for each in (gone, lasting)}
    assert s.items("live") == before | restored
    assert "ASSET: 1 equal" in s.run("--owner", "me", "--write")
    assert s.items("live") == before | restored

    # Only when it is told to, it replaces. Writers who know version 5 then fail.
    assert "ASSET: 1 replaced" in s.run("--owner", "me", "--write", "--overwrite")
    replaced = s.items("live")["U#me#ASSET", "ast_2"]
    assert (replaced["title"], replaced["_v"]) == ({"S": "old"}, {"N": "6"})
    assert replaced["_w"] != newer["_w"]
    assert ("U#me#ASSET", "ast_3") in s.items("live"), "nothing is deleted"
    assert not {"U#you#ASSET", "U#me2#ASSET"} & {pk for pk, _ in s.items("live")}, "of another owner"


def test_a_deleted_account_does_not_come_back(s: Stack) -> None:
    s.put("copy", item("me", "ASSET", "ast_1"))
    s.put("live", {"pk": {"S": "DELETION#me"}, "sk": {"S": "STATE"}})
    before = s.items("live")
    assert s.run("--owner", "me", "--write", "--empty", status=1) == ["the account of me is being deleted"]
    assert s.items("live") == before
    # When a deletion has ended, nothing says so.
    s.put("copy", item("you", "ASSET", "ast_1"))
    (refusal,) = s.run("--owner", "you", "--write", status=1)
    assert refusal.startswith("you has nothing in live, so the account may have been deleted")
    assert s.items("live") == before
    s.run("--owner", "you", "--write", "--empty")
    assert len(s.items("live")) == 2


def test_deleted_objects_come_back_as_they_were(s: Stack) -> None:
    put = lambda key, body: s.s3.put_object(Bucket="bucket", Key=key, Body=body)  # noqa: E731
    s.put("live", item("me", "CHAT", "cht_1"))
    put("me/assets/one", b"first")
    put("me/assets/one", b"second")
    put("me/assets/kept", b"old")
    put("me/assets/before", b"x")
    s.s3.delete_object(Bucket="bucket", Key="me/assets/before")
    put("me/projects/p/upload.zip", b"zip")
    put("you/assets/one", b"yours")
    time.sleep(1.1)
    at = datetime.now(UTC).isoformat()
    time.sleep(1.1)
    put("me/assets/one", b"third")
    put("me/assets/later", b"later")
    put("me/assets/kept", b"new")
    for key in ("me/assets/one", "me/assets/later", "me/projects/p/upload.zip", "you/assets/one"):
        s.s3.delete_object(Bucket="bucket", Key=key)

    expected = ["object assets: 1 restored", "object projects: 1 left out"]
    told = s.run("--owner", "me", "--bucket", "bucket", "--at", at)
    assert told == [*expected, "nothing was written: repeat with --write"]
    assert s.body("me/assets/one") is None
    s.run("--owner", "me", "--bucket", "bucket", "--at", at, "--write")
    keys = ("me/assets/one", "me/assets/kept", "me/assets/before", "me/assets/later", "me/projects/p/upload.zip", "you/assets/one")
    assert [s.body(key) for key in keys] == [b"second", b"new", None, None, None, None]
    assert s.run("--owner", "me", "--bucket", "bucket", "--at", at, "--write") == ["object projects: 1 left out", "written"]


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        (("--owner", "me", "--bucket", "bucket"), "--bucket and --at are given together"),
        (("--owner", "me", "--bucket", "bucket", "--at", "yesterday"), "yesterday is not a time like"),
        (("--owner", "me", "--bucket", "bucket", "--at", "2026-11-21T09:00:00"), "has no time zone"),
        (("--owner", "me#ASSET"), "--owner must be the name of an owner"),
        ((), "the following arguments are required: --owner"),
        (("--owner", "me", "--copy", "live"), "must be different tables"),
    ],
)
def test_wrong_arguments_are_named(more: tuple[str, ...], problem: str) -> None:
    command = [sys.executable, TOOL, "--table", "live", "--copy", "copy", *more]
    told = subprocess.run(command, capture_output=True, text=True, check=False)
    assert told.returncode == 2, told.stderr
    assert problem in told.stderr
