"""The table and the bucket: their structure matches the code, and their data is kept."""

import re
from collections.abc import Iterator

from registry import rule
from sources import Repo
from template import Stack, listed, sub

# This file defines how long a proposal is kept.
PROPOSALS = "shared/domain/src/chats/proposal.rs"


@rule
def the_table_is_what_the_store_expects(stack: Stack, repo: Repo) -> Iterator[str]:
    table = stack.properties("Table")
    types = {a["AttributeName"]: a["AttributeType"] for a in table["AttributeDefinitions"]}
    if types != dict.fromkeys(("pk", "sk", "shard", "due_at"), "S"):
        yield f"attributes are {types}"
    if keys(table) != ("pk", "sk"):
        yield f"the table's key is {keys(table)}"
    indexes = {index["IndexName"]: index for index in table.get("GlobalSecondaryIndexes", [])}
    if set(indexes) != {repo.due_index}:
        yield f"the indexes are {sorted(indexes)}, and keys.rs reads {repo.due_index}"
    for name, index in indexes.items():
        if keys(index) != ("shard", "due_at"):
            yield f"{name}: its key is {keys(index)}"
        if index["Projection"] != {"ProjectionType": "KEYS_ONLY"}:
            yield f"{name}: projects more than keys, and its content can be read across owners"
    for attribute in (*types, table.get("TimeToLiveSpecification", {}).get("AttributeName", "")):
        if f'"{attribute}"' not in repo.store:
            yield f"shared/src/store does not know the attribute {attribute}"


def keys(of: dict) -> tuple:
    by_type = {key["KeyType"]: key["AttributeName"] for key in of["KeySchema"]}
    return by_type.get("HASH"), by_type.get("RANGE")


@rule
def the_table_is_kept(stack: Stack, repo: Repo) -> Iterator[str]:
    table = stack.properties("Table")
    for key, value in {
        "BillingMode": "PAY_PER_REQUEST",
        "TimeToLiveSpecification": {"AttributeName": "ttl", "Enabled": True},
        "PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": True},
    }.items():
        if table.get(key) != value:
            yield f"{key} must be {value}, is {table.get(key)}"
    if "SSESpecification" in table:
        yield "the table has a key of the account, which is paid for by the call; DynamoDB's own key is free"


@rule
def data_outlives_the_stack(stack: Stack, repo: Repo) -> Iterator[str]:
    # RetainExceptOnCreate: a stack whose creation failed leaves nothing behind.
    for name in ("Table", "Bucket"):
        for policy, value in {"DeletionPolicy": "RetainExceptOnCreate", "UpdateReplacePolicy": "Retain"}.items():
            if stack.resources[name].get(policy) != value:
                yield f"{name}: {policy} must be {value}"


@rule
def the_bucket_is_private(stack: Stack, repo: Repo) -> Iterator[str]:
    bucket = stack.properties("Bucket")
    blocks = bucket.get("PublicAccessBlockConfiguration", {})
    for block in ("BlockPublicAcls", "BlockPublicPolicy", "IgnorePublicAcls", "RestrictPublicBuckets"):
        if blocks.get(block) is not True:
            yield f"{block} must be true"
    if bucket.get("OwnershipControls", {}).get("Rules") != [{"ObjectOwnership": "BucketOwnerEnforced"}]:
        yield "the bucket's owner must own all objects"
    if not bucket.get("BucketEncryption"):
        yield "the bucket must be encrypted"
    statements = [
        statement
        for policy in stack.of("AWS::S3::BucketPolicy").values()
        if policy["Bucket"] == {"Ref": "Bucket"}
        for statement in listed(policy["PolicyDocument"]["Statement"])
    ]
    tls = {
        "Effect": "Deny",
        "Principal": "*",
        "Action": "s3:*",
        "Condition": {"Bool": {"aws:SecureTransport": "false"}},
    }
    if not any(
        all(statement.get(key) == value for key, value in tls.items())
        and {sub(r) for r in listed(statement["Resource"])} == {"${Bucket.Arn}", "${Bucket.Arn}/*"}
        for statement in statements
    ):
        yield "the bucket must refuse plain HTTP, for itself and its objects"
    if any(statement["Effect"] == "Allow" for statement in statements):
        yield "the bucket's policy grants permissions: only roles may grant them"


# The console's page: at the address of the API, which only this pattern can name, and at the domain.
OWN_PAGES = [
    {"Fn::Sub": "https://*.execute-api.${AWS::Region}.${AWS::URLSuffix}"},
    {"Fn::If": ["HasDomain", {"Fn::Sub": "https://${DomainName}"}, {"Ref": "AWS::NoValue"}]},
]


@rule
def the_console_and_configured_pages_reach_the_bucket(stack: Stack, repo: Repo) -> Iterator[str]:
    match stack.properties("Bucket").get("CorsConfiguration"):
        case {"CorsRules": [own, {"Fn::If": ["HasCors", configured, {"Ref": "AWS::NoValue"}]}]}:
            for cors, pages in ((own, OWN_PAGES), (configured, {"Ref": "CorsOrigins"})):
                if cors["AllowedOrigins"] != pages:
                    yield f"the bucket lets pages of {cors['AllowedOrigins']} in, not those of {pages}"
                if set(cors["AllowedMethods"]) != {"GET", "HEAD", "PUT"}:
                    yield f"signed addresses are for GET, HEAD and PUT, and pages may {cors['AllowedMethods']}"
        case other:
            yield f"its CorsConfiguration must be a rule for the console and one for the origins, where there are any, is {other}"


@rule
def the_bucket_keeps_and_forgets(stack: Stack, repo: Repo) -> Iterator[str]:
    bucket = stack.properties("Bucket")
    if bucket.get("VersioningConfiguration") != {"Status": "Enabled"}:
        yield "the bucket must have versioning"
    rules = [r for r in bucket.get("LifecycleConfiguration", {}).get("Rules", []) if r["Status"] == "Enabled"]
    for what in ("NoncurrentVersionExpiration", "AbortIncompleteMultipartUpload"):
        if not any(what in rule for rule in rules):
            yield f"no lifecycle rule has {what}: invisible data would cost money for ever"
    # A proposal's content is stored before its record, so the content must be kept a day longer than the record.
    (days,) = re.findall(r"LIFETIME: SignedDuration = .*from_hours\((\d+) \* 24\)", repo.text(PROPOSALS))
    (tag,) = re.findall(r'EXPIRING_TAG: &str = "(\w+=[\w-]+)"', repo.text("shared/src/blobs/mod.rs"))
    local = repo.text("infra/local/src/engines/s3/store.rs")
    (kept,) = re.findall(r"KEPT: SignedDuration = .*from_hours\((\d+) \* 24\)", local)
    if f'EXPIRES: &str = "{tag}"' not in local:
        yield f"the local bucket does not implement the tag {tag}"
    expired = 0
    for rule in rules:
        if "ExpirationInDays" not in rule and "ExpirationDate" not in rule:
            continue
        tags = [f"{wanted['Key']}={wanted['Value']}" for wanted in rule.get("TagFilters", [])]
        if tags != [tag] or rule.get("ExpirationInDays", 0) <= int(days):
            yield "a lifecycle rule deletes data that is in use"
        elif rule.get("ExpirationInDays") != int(kept):
            yield f"the lifecycle rule and the local bucket use different periods ({kept} days)"
        expired += tags == [tag]
    if expired != 1:
        yield f"no lifecycle rule deletes objects with the tag {tag}: contents of expired proposals stay for ever"
