"""The path of an upload: bucket, queue, indexer."""

from collections.abc import Iterator

from registry import rule
from sources import Repo
from template import Stack, listed, target


@rule
def uploads_wake_the_indexer(stack: Stack, repo: Repo) -> Iterator[str]:
    bucket = stack.properties("Bucket")
    told = set()
    for notification in bucket.get("NotificationConfiguration", {}).get("QueueConfigurations", []):
        if notification["Event"] != "s3:ObjectCreated:*":
            yield f"the bucket reports {notification['Event']}: it must report all ways to create objects, because archives may be uploaded in parts"
        if target(notification["Queue"]) != "ThemeQueue":
            yield f"the bucket notifies {notification['Queue']}"
        rules = notification.get("Filter", {}).get("S3Key", {}).get("Rules", [])
        if [rule["Name"] for rule in rules] != ["suffix"]:
            yield f"keys begin with the owner, so the filter must be by suffix, not {rules}"
        told |= {rule["Value"] for rule in rules}
    for suffix in sorted(told ^ repo.upload_keys):
        yield f"blobs/key.rs and the bucket's notification disagree about keys that end in {suffix}"
    if "ThemeQueuePolicy" not in listed(stack.resources["Bucket"].get("DependsOn", [])):
        yield "S3 refuses to notify a queue that does not accept it yet: the bucket must depend on ThemeQueuePolicy"


@rule
def s3_may_send_and_nobody_else(stack: Stack, repo: Repo) -> Iterator[str]:
    wanted = {
        "Effect": "Allow",
        "Principal": {"Service": "s3.amazonaws.com"},
        "Action": "sqs:SendMessage",
        "Resource": {"Fn::GetAtt": ["ThemeQueue", "Arn"]},
        "Condition": {"StringEquals": {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}},
    }
    if stack.queue_policies("ThemeQueue") != [wanted]:
        yield f"ThemeQueue: its policy must be {wanted}"


@rule
def the_theme_queue_waits_and_gives_up(stack: Stack, repo: Repo) -> Iterator[str]:
    queue, timeout = stack.properties("ThemeQueue"), stack.function("theme-index").get("Timeout", 3)
    if queue.get("VisibilityTimeout", 30) < 6 * timeout:
        yield f"VisibilityTimeout must be at least 6 × {timeout}, is {queue.get('VisibilityTimeout', 30)}"
    redrive = queue.get("RedrivePolicy", {})
    if target(redrive.get("deadLetterTargetArn")) != "DeadLetters" or redrive.get("maxReceiveCount") != repo.receives:
        yield f"a message must go to DeadLetters after {repo.receives} tries, not {redrive}"
    if queue.get("SqsManagedSseEnabled") is not True or queue.get("FifoQueue") or queue.get("DelaySeconds"):
        yield "it must be an encrypted standard queue without delay"


@rule
def a_call_of_the_model_fits(stack: Stack, repo: Repo) -> Iterator[str]:
    timeout, needed = stack.function("theme-index").get("Timeout", 3), 2 * repo.enrichment_call_seconds
    if timeout < needed:
        yield f"the indexer's timeout is {timeout} s; the map and the longest call of a model need {needed} s"


@rule
def the_indexer_reads_its_queue(stack: Stack, repo: Repo) -> Iterator[str]:
    mappings = stack.mappings("theme-index")
    if len(mappings) != 1:
        yield f"there must be one mapping, but there are {sorted(mappings)}"
    for name, mapping in mappings.items():
        if target(mapping["EventSourceArn"]) != "ThemeQueue":
            yield f"{name}: reads {mapping['EventSourceArn']}"
        if mapping.get("FunctionResponseTypes") != ["ReportBatchItemFailures"]:
            yield f"{name}: without ReportBatchItemFailures the failed messages that the code reports are deleted"
        # A separate number: otherwise uploads would take the executors' share.
        if mapping.get("ScalingConfig") != {"MaximumConcurrency": {"Ref": "MaximumIndexers"}}:
            yield f"{name}: MaximumIndexers must bound it, and does not: {mapping.get('ScalingConfig')}"
        if mapping.get("FilterCriteria") or mapping.get("Enabled", True) is not True:
            yield f"{name}: must be enabled and must not filter"


@rule
def bodies_pass_as_they_are(stack: Stack, repo: Repo) -> Iterator[str]:
    types = stack.api["Body"].get("x-amazon-apigateway-binary-media-types") or stack.api.get("BinaryMediaTypes", [])
    if types != ["*/*"]:
        yield f"the API must treat bodies of all types as binary, not {types}: it would convert archives to text"
