#!/usr/bin/env python3
"""Copies what an owner lacks from a restored copy of the table back into the table of a running stack.

    restore.py --table TABLE --copy COPY --owner OWNER [--empty] [--bucket BUCKET --at TIME] [--overwrite] [--write]

COPY is a table that `aws dynamodb restore-table-to-point-in-time` has made. Without --write, nothing is changed: the program prints what
it would do. With --write, it

- writes each item of the copy that the table no longer has;
- leaves an item that differs, unless --overwrite is given. Then the item gets the copy's contents and a new version, if nobody has
  changed it since it was compared;
- never deletes anything.

With --bucket and --at, the time of the copy, it also brings back the objects that were deleted after this time, from their old versions.
Objects that still exist are left.

Left out: what has expired, API keys, provider keys and secrets (they may have been revoked for a reason), idempotency records, and the places of
runs that were under way. An owner whose account is being deleted is refused. So is an owner who has nothing in the table, unless --empty is
given: a deleted account leaves no other trace. It needs boto3, and the credentials of an administrator.

Prints one line for each kind of record. Exits with 1 if something could not be restored, and with 2 if the arguments are wrong.
Running it twice changes nothing.
"""

import argparse
import sys
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime

import boto3
from botocore.exceptions import ClientError

LEFT_OUT = {"KEY", "PROVIDERKEY", "SECRET", "IDEMPOTENCY", "PLACE"}
# An upload with this end starts an import.
UPLOAD = ".zip"
# The items of one call.
BATCH = 100


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Restores records and objects. Without --write, it only says what it would do.")
    parser.add_argument("--table", required=True, help="the table of the stack")
    parser.add_argument("--copy", required=True, help="the table that was restored from a point in time")
    parser.add_argument("--owner", required=True, help="whose data is restored")
    parser.add_argument("--empty", action="store_true", help="allow an owner who has nothing in the table; the account may have been deleted")
    parser.add_argument("--bucket", help="the bucket of the stack, to restore deleted objects too")
    parser.add_argument("--at", type=moment, help="the time of the copy, such as 2026-11-21T09:00:00Z; required with --bucket")
    parser.add_argument("--overwrite", action="store_true", help="also replace items that differ from the copy")
    parser.add_argument("--write", action="store_true", help="write; without it, nothing is changed")
    given = parser.parse_args()
    if bool(given.bucket) != bool(given.at):
        parser.error("--bucket and --at are given together")
    if given.table == given.copy:
        parser.error("--table and --copy must be different tables")
    if not given.owner or set(given.owner) & set("#/"):
        parser.error("--owner must be the name of an owner, without # and /")
    return given


def moment(text: str) -> datetime:
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text} is not a time like 2026-11-21T09:00:00Z") from None
    if at.tzinfo is None:
        raise argparse.ArgumentTypeError(f"{text} has no time zone; add Z for UTC")
    return at.astimezone(UTC)


def kind(pk: str) -> str:
    """The kind of a record: `U#me#ASSET#ast_1` is an ASSET."""
    return pk.split("#")[2]


class Restore:
    def __init__(self, given: argparse.Namespace):
        self.given = given
        self.dynamodb, self.s3 = boto3.client("dynamodb"), boto3.client("s3")
        self.counts: Counter[tuple[str, str]] = Counter()
        self.failed = False

    def note(self, kind: str, outcome: str) -> None:
        self.counts[kind, outcome] += 1

    def refusal(self) -> str | None:
        """Why the owner's data must not come back."""
        owner, table = self.given.owner, self.given.table
        key = {"pk": {"S": f"DELETION#{owner}"}, "sk": {"S": "STATE"}}
        if "Item" in self.dynamodb.get_item(TableName=table, Key=key, ConsistentRead=True):
            return f"the account of {owner} is being deleted"
        if not self.given.empty and not any(page["Items"] for page in self.scan(table)):
            return f"{owner} has nothing in {table}, so the account may have been deleted. If it was not, add --empty"
        return None

    def scan(self, table: str) -> Iterator[dict]:
        """The owner's items, in pages."""
        return self.dynamodb.get_paginator("scan").paginate(
            TableName=table,
            ConsistentRead=True,
            FilterExpression="begins_with(pk, :prefix)",
            ExpressionAttributeValues={":prefix": {"S": f"U#{self.given.owner}#"}},
        )

    # ---- Records ----

    def records(self) -> None:
        for page in self.scan(self.given.copy):
            items = [item for item in page["Items"] if self.is_wanted(item)]
            for at in range(0, len(items), BATCH):
                self.batch(items[at : at + BATCH])

    def is_wanted(self, item: dict) -> bool:
        pk = item["pk"]["S"]
        if kind(pk) in LEFT_OUT:
            self.note(kind(pk), "left out")
        elif "ttl" in item and int(item["ttl"]["N"]) <= time.time():
            self.note(kind(pk), "expired")
        else:
            return True
        return False

    def batch(self, items: list[dict]) -> None:
        live = self.live([{"pk": item["pk"], "sk": item["sk"]} for item in items])
        for item in items:
            here = live.get((item["pk"]["S"], item["sk"]["S"]))
            if here is None:
                self.put(item, "restored", "attribute_not_exists(pk)")
            elif here == item:
                self.note(kind(item["pk"]["S"]), "equal")
            elif not self.given.overwrite:
                self.note(kind(item["pk"]["S"]), "different, left")
            else:
                self.replace(item, here)

    def live(self, keys: list[dict]) -> dict[tuple[str, str], dict]:
        found = {}
        wanted = {self.given.table: {"Keys": keys, "ConsistentRead": True}}
        while wanted:
            answer = self.dynamodb.batch_get_item(RequestItems=wanted)
            for item in answer["Responses"].get(self.given.table, []):
                found[item["pk"]["S"], item["sk"]["S"]] = item
            wanted = answer.get("UnprocessedKeys")
        return found

    def replace(self, item: dict, here: dict) -> None:
        """A writer that has read the item before fails: the version rises, and it is not the version that the writer knows."""
        version = int(here["_v"]["N"]) if "_v" in here else 0
        new = {**item, "_v": {"N": str(max(version, int(item.get("_v", {}).get("N", 0))) + 1)}, "_w": {"S": str(uuid.uuid4())}}
        if "_v" in here:
            self.put(new, "replaced", "#v = :v", {"#v": "_v"}, {":v": here["_v"]})
        else:
            self.put(new, "replaced", "attribute_exists(pk) AND attribute_not_exists(#v)", {"#v": "_v"})

    def put(self, item: dict, outcome: str, condition: str, names: dict | None = None, values: dict | None = None) -> None:
        of = kind(item["pk"]["S"])
        if self.given.write:
            more = {"ExpressionAttributeNames": names} if names else {}
            more |= {"ExpressionAttributeValues": values} if values else {}
            try:
                self.dynamodb.put_item(TableName=self.given.table, Item=item, ConditionExpression=condition, **more)
            except ClientError as error:
                if error.response["Error"]["Code"] != "ConditionalCheckFailedException":
                    raise
                self.note(of, "changed meanwhile, left")
                self.failed = True
                return
        self.note(of, outcome)

    # ---- Objects ----

    def objects(self) -> None:
        """The versions of a key come together, the newest first."""
        pages = self.s3.get_paginator("list_object_versions").paginate(Bucket=self.given.bucket, Prefix=f"{self.given.owner}/")
        now: dict | None = None
        for page in pages:
            marked = [(entry, False) for entry in page.get("Versions", [])]
            marked += [(entry, True) for entry in page.get("DeleteMarkers", [])]
            # The service lists versions and delete markers apart.
            marked.sort(key=lambda pair: (pair[0]["Key"], -pair[0]["LastModified"].timestamp(), not pair[0]["IsLatest"]))
            for entry, is_marker in marked:
                if now is None or now["key"] != entry["Key"]:
                    now = {"key": entry["Key"], "gone": is_marker and entry["IsLatest"], "done": False}
                if now["done"] or entry["LastModified"] > self.given.at:
                    continue
                # What the key was at the time of the copy.
                now["done"] = True
                if now["gone"] and not is_marker:
                    self.object(entry)

    def object(self, version: dict) -> None:
        of = f"object {version['Key'].split('/')[1]}"
        if version["Key"].endswith(UPLOAD):
            self.note(of, "left out")
        else:
            if self.given.write:
                source = {"Bucket": self.given.bucket, "Key": version["Key"], "VersionId": version["VersionId"]}
                # In parts, if the object is too large for one call.
                self.s3.copy(source, self.given.bucket, version["Key"])
            self.note(of, "restored")


def main() -> int:
    given = arguments()
    restore = Restore(given)
    if refusal := restore.refusal():
        print(refusal, file=sys.stderr)
        return 1
    # First the objects, so that no record names an object that is not there yet.
    if given.bucket:
        restore.objects()
    restore.records()
    for (of, outcome), count in sorted(restore.counts.items()):
        print(f"{of}: {count} {outcome}")
    print("written" if given.write else "nothing was written: repeat with --write")
    return 1 if restore.failed else 0


if __name__ == "__main__":
    sys.exit(main())
