#!/usr/bin/env bash
# Guess:    moto, the in-memory AWS of most Python test suites, refuses what the service refuses in its documented rules. It does refuse
#           many: an attribute name that is declared and not used, a reserved word, two paths that overlap.
# Reality:  the neighbours of these rules are not there. moto takes what the service refuses:
#           - a filter expression on a key attribute: the query answers;
#           - an expression *value* that is declared and not used, although the unused *name* is refused;
#           - `rate(1 minutes)` (EventBridge wants the singular for 1), a `cron()` with both days set (one must be `?`), and
#             a `cron()` of two fields;
#           - an object's key of 1,025 bytes (S3's limit is 1,024).
#           And `test_event_pattern` answers 200 without `Result`: it decides nothing, and `answer["Result"]` is a KeyError.
# Versions: moto 5.2.5, boto3 1.44.8 (PyPI).
# Why:      the suite is green, and the first deployment is red.
# Seen:     2026-11-29, the text at the end of this script.
set -euo pipefail
. "$(dirname "$0")/common.sh"
pip_packages 'moto[s3,dynamodb,events]==5.2.5' boto3==1.44.8

cat > "$WORK/probe.py" <<'END'
import json, os
os.environ.update(AWS_ACCESS_KEY_ID="test", AWS_SECRET_ACCESS_KEY="test", AWS_DEFAULT_REGION="us-east-1")
import boto3
from botocore.exceptions import ClientError
from moto import mock_aws

def show(what, call):
    try:
        answer = call()
        answer.pop("ResponseMetadata")
        print(f"{what}: accepted")
        return answer
    except ClientError as error:
        print(f"{what}: {error.response['Error']['Code']}")

with mock_aws():
    table = boto3.client("dynamodb")
    table.create_table(TableName="t", BillingMode="PAY_PER_REQUEST",
                       KeySchema=[{"AttributeName": "p", "KeyType": "HASH"}, {"AttributeName": "s", "KeyType": "RANGE"}],
                       AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in "ps"])
    item = {"p": {"S": "1"}, "s": {"S": "1"}}
    show("unused name", lambda: table.put_item(TableName="t", Item=item, ExpressionAttributeNames={"#x": "y"}))
    show("unused value", lambda: table.put_item(TableName="t", Item=item, ConditionExpression="attribute_not_exists(p)",
                                                ExpressionAttributeValues={":x": {"S": "y"}}))
    show("filter on the sort key", lambda: table.query(
        TableName="t", KeyConditionExpression="p = :p", FilterExpression="s = :s",
        ExpressionAttributeValues={":p": {"S": "1"}, ":s": {"S": "1"}}))
    show("reserved word", lambda: table.update_item(TableName="t", Key=item, UpdateExpression="SET status = :x",
                                                    ExpressionAttributeValues={":x": {"S": "y"}}))
    events = boto3.client("events")
    show("rate(1 minutes)", lambda: events.put_rule(Name="a", ScheduleExpression="rate(1 minutes)"))
    show("cron(0 9 1 * 2 *)", lambda: events.put_rule(Name="a", ScheduleExpression="cron(0 9 1 * 2 *)"))
    show("cron(0 9)", lambda: events.put_rule(Name="a", ScheduleExpression="cron(0 9)"))
    event = {"id": "1", "account": "1", "source": "shop", "time": "2026-11-29T00:00:00Z", "region": "us-east-1",
             "resources": [], "detail-type": "order", "detail": {}}
    answer = show("test_event_pattern", lambda: events.test_event_pattern(
        EventPattern=json.dumps({"source": ["other"]}), Event=json.dumps(event)))
    print("its answer:", answer)
    store = boto3.client("s3")
    store.create_bucket(Bucket="bucket")
    show("key of 1,025 bytes", lambda: store.put_object(Bucket="bucket", Key="k" * 1025, Body=b""))
END
probe "$PYTHON" probe.py

expect "moto takes requests that AWS refuses" <<'END'
unused name: ValidationException
unused value: accepted
filter on the sort key: accepted
reserved word: ValidationException
rate(1 minutes): accepted
cron(0 9 1 * 2 *): accepted
cron(0 9): accepted
test_event_pattern: accepted
its answer: {}
key of 1,025 bytes: accepted
END
