"""Permissions: each function has exactly the permissions that its work needs."""

from collections.abc import Iterator

from registry import rule
from rules_functions import variables_of
from sources import Repo
from template import Stack, listed, sub, target, unconditional

# Functions that read and write items. The sweep and the authorizer have fewer permissions, the catalog none.
STORES = {
    "agents",
    "agent-chat",
    "asset-save",
    "action-define",
    "account",
    "context",
    "docs-sync",
    "mcp",
    "memory-recall",
    "notices",
    "scheduled-executor",
    "theme-chat",
    "theme-index",
    "theme-lookup",
    "watch",
}
PUBLISHES = {"agents", "agent-chat", "asset-save", "scheduled-executor", "theme-chat", "theme-index", "watchdog"}
# Functions that call models, with the keys that owners bring. The account stores these keys, and makes the key that encrypts them.
OPENS_KEYS = {"account", "agents", "agent-chat", "docs-sync", "memory-recall", "notices", "scheduled-executor", "theme-chat", "theme-index"}
SEALS_KEYS = {"account", "docs-sync", "notices"}
# Functions that send due items to the executors.
SENDS = {
    "account",
    "agents",
    "schedule-sweep",
    "action-define",
    "agent-chat",
    "docs-sync",
    "mcp",
    "notices",
    "scheduled-executor",
    "theme-chat",
    "watchdog",
}
# The permissions for each kind of body.
BODIES = {
    "agents": {
        "s3:GetObject": {"chats", "runs"},
        "s3:PutObject": {"chats", "runs"},
        "s3:DeleteObject": {"actions", "assets", "chats", "proposals", "runs"},
    },
    "agent-chat": {
        "s3:GetObject": {"actions", "assets", "chats", "memory", "projects", "proposals", "runs"},
        "s3:PutObject": {"actions", "chats", "memory", "projects", "proposals", "runs"},
        "s3:PutObjectTagging": {"projects", "proposals"},
        "s3:DeleteObject": {"actions", "chats", "memory", "proposals"},
    },
    "asset-save": {
        "s3:GetObject": {"assets", "proposals"},
        "s3:PutObject": {"assets"},
        "s3:DeleteObject": {"assets", "proposals"},
    },
    "action-define": {"s3:DeleteObject": {"actions", "runs"}},
    "context": {"s3:GetObject": {"logs"}, "s3:PutObject": {"logs"}, "s3:DeleteObject": {"logs"}},
    "docs-sync": dict.fromkeys(("s3:GetObject", "s3:PutObject", "s3:DeleteObject"), {"projects"}),
    "mcp": {
        "s3:GetObject": {"actions", "assets", "chats", "logs", "memory", "projects"},
        "s3:PutObject": {"logs", "memory", "projects", "proposals"},
        "s3:PutObjectTagging": {"projects", "proposals"},
        "s3:DeleteObject": {"logs", "memory", "projects", "proposals"},
    },
    "memory-recall": {
        "s3:GetObject": {"actions", "chats", "memory"},
        "s3:PutObject": {"memory"},
        "s3:DeleteObject": {"memory"},
    },
    "notices": {"s3:GetObject": {"runs"}},
    "theme-index": dict.fromkeys(("s3:GetObject", "s3:PutObject", "s3:DeleteObject"), {"logs", "projects"}),
    "theme-chat": {
        "s3:GetObject": {"actions", "chats", "memory", "projects", "runs"},
        "s3:PutObject": {"chats", "memory", "projects", "runs"},
        "s3:PutObjectTagging": {"projects"},
        "s3:DeleteObject": {"chats", "memory"},
    },
    "theme-lookup": {
        "s3:GetObject": {"projects"},
        "s3:PutObject": {"projects"},
        "s3:PutObjectTagging": {"projects"},
        # The conversations with the theme agent are deleted with their project.
        "s3:DeleteObject": {"chats", "projects"},
    },
    # It also finishes turns that another function began.
    "scheduled-executor": {
        "s3:PutObject": {"actions", "assets", "chats", "exports", "logs", "memory", "projects", "proposals", "runs"},
        "s3:PutObjectTagging": {"exports", "projects", "proposals"},
        "s3:AbortMultipartUpload": {"exports"},
    },
    "account": {"s3:GetObject": {"exports"}, "s3:PutObject": {"imports", "projects"}, "s3:DeleteObject": {"imports"}},
}
# The function that exports, imports and deletes accounts, with every version of their objects.
WHOLE_ACCOUNTS = "scheduled-executor"
ITEMS = {
    "dynamodb:BatchGetItem",
    "dynamodb:BatchWriteItem",
    "dynamodb:ConditionCheckItem",
    "dynamodb:DeleteItem",
    "dynamodb:GetItem",
    "dynamodb:PutItem",
    "dynamodb:Query",
    "dynamodb:UpdateItem",
}
TABLE, INDEX, BUCKET, BUS = ("${Table.Arn}", "${Table.Arn}/index/due", "${Bucket.Arn}", "${Bus.Arn}")
MASTER_KEYS = "arn:${AWS::Partition}:ssm:${AWS::Region}:${AWS::AccountId}:parameter/${AWS::StackName}/master-keys/*"
# The parameters with the keys of model providers, each only if the operator names one.
MODEL_KEYS = {
    f"arn:${{AWS::Partition}}:ssm:${{AWS::Region}}:${{AWS::AccountId}}:parameter${{{key}Parameter}}"
    for key in ("AnthropicApiKey", "OpenAiApiKey", "GeminiApiKey", "XAiApiKey", "ModelKey")
}
SWEEP_TIMER = "arn:${AWS::Partition}:scheduler:${AWS::Region}:${AWS::AccountId}:schedule/default/${AWS::StackName}-every-minute"
# The function that reads each queue.
QUEUES = {"scheduled-executor": "${Queue.Arn}", "theme-index": "${ThemeQueue.Arn}"}


# Profiles send calls to the models of several regions.
BEDROCK = {
    "arn:${AWS::Partition}:bedrock:*::foundation-model/*",
    "arn:${AWS::Partition}:bedrock:*:${AWS::AccountId}:inference-profile/*",
    "arn:${AWS::Partition}:bedrock:*:${AWS::AccountId}:application-inference-profile/*",
}


def expected(name: str, repo: Repo) -> set[tuple[str, str]]:
    """The permissions of a function, as pairs of action and resource."""
    rights: set[tuple[str, str]] = set()
    if name in STORES:
        rights |= {(action, TABLE) for action in ITEMS}
    if name in PUBLISHES:
        rights.add(("events:PutEvents", BUS))
    if name in repo.models:
        rights |= {("bedrock:InvokeModelWithResponseStream", resource) for resource in BEDROCK}
        rights |= {("ssm:GetParameters", resource) for resource in MODEL_KEYS}
    if name in OPENS_KEYS:
        rights.add(("ssm:GetParameter", MASTER_KEYS))
    if name in SEALS_KEYS:
        rights.add(("ssm:PutParameter", MASTER_KEYS))
    if name == "scheduled-executor":
        mail = "arn:${AWS::Partition}:ses:${AWS::Region}:${AWS::AccountId}"
        rights |= {("ses:SendEmail", f"{mail}:{of}") for of in ("identity/*", "configuration-set/${AWS::StackName}")}
    if name in SENDS:
        rights.add(("sqs:SendMessage", QUEUES["scheduled-executor"]))
    for action, prefixes in BODIES.get(name, {}).items():
        rights |= {(action, f"{BUCKET}/*/{prefix}/*") for prefix in prefixes}
        # Without it S3 answers "access denied" if an object does not exist.
        rights.add(("s3:ListBucket", BUCKET))
    if name in {"agent-chat", "theme-chat"}:
        # Of a project, it deletes only edits that no record names any more.
        rights.add(("s3:DeleteObject", f"{BUCKET}/*/projects/*/changes/*"))
    if name == WHOLE_ACCOUNTS:
        rights |= {(f"s3:{action}", f"{BUCKET}/*") for action in ("DeleteObject", "DeleteObjectVersion", "GetObject")}
        rights.add(("s3:ListBucketVersions", BUCKET))
    if name == "schedule-sweep":
        rights |= {("dynamodb:Query", INDEX), ("dynamodb:UpdateItem", TABLE), ("dynamodb:PutItem", TABLE)}
    if name == "watchdog":
        rights |= {("dynamodb:Query", INDEX), ("dynamodb:GetItem", TABLE), ("dynamodb:PutItem", TABLE)}
        rights.add(("scheduler:GetSchedule", SWEEP_TIMER))
        # It has dead letters moved back into the queues from which they came.
        actions = ("DeleteMessage", "GetQueueAttributes", "ReceiveMessage", "StartMessageMoveTask")
        rights |= {(f"sqs:{action}", "${DeadLetters.Arn}") for action in actions}
        rights |= {("sqs:SendMessage", queue) for queue in QUEUES.values()}
    if name == "authorizer":
        rights |= {("dynamodb:GetItem", TABLE), ("dynamodb:UpdateItem", TABLE)}
    if name in QUEUES:
        actions = ("ChangeMessageVisibility", "DeleteMessage", "GetQueueAttributes", "ReceiveMessage")
        rights |= {(f"sqs:{action}", QUEUES[name]) for action in actions}
    return rights


@rule
def rights_are_those_the_work_needs(stack: Stack, repo: Repo) -> Iterator[str]:
    for name in stack.functions:
        held: set[tuple[str, str]] = set()
        for statement in stack.statements(name):
            if statement.get("Effect") != "Allow" or "NotAction" in statement or "NotResource" in statement:
                yield f"{name}: has a statement that is not a plain Allow"
                continue
            held |= {(a, sub(r)) for a in listed(statement["Action"]) for r in map(unconditional, listed(statement["Resource"]))}
        for action, resource in sorted(expected(name, repo) - held):
            yield f"{name}: may not {action} on {resource}"
        for action, resource in sorted(held - expected(name, repo)):
            yield f"{name}: may {action} on {resource}, but does not need to"
        if (managed := stack.managed(name)) != ["AWSLambdaBasicExecutionRole"]:
            yield f"{name}: has AWS's policies {managed}; only the permission to log is needed"


# Policies that exist only under a condition, and their attachments with them.
CONDITIONAL = {"CallBedrock": "HasBedrock", "ReadModelKeys": "HasModelKeyParameters"}


@rule
def rights_under_a_condition_are_attached_under_it(stack: Stack, repo: Repo) -> Iterator[str]:
    for policy, condition in CONDITIONAL.items():
        if stack.resources[policy].get("Condition") != condition:
            yield f"{policy} must have the condition {condition}"
        for name in stack.functions:
            role = stack.properties(target(stack.function(name).get("Role")) or "")
            for attached in role.get("ManagedPolicyArns", []):
                chosen = unconditional(attached)
                if target(chosen) == policy and (chosen is attached or attached["Fn::If"][0] != condition):
                    yield f"{name}: {policy} must be attached only under the condition {condition}"


@rule
def a_model_key_is_read_only_if_it_is_named(stack: Stack, repo: Repo) -> Iterator[str]:
    (statement,) = stack.properties("ReadModelKeys")["PolicyDocument"]["Statement"]
    for resource in statement["Resource"]:
        named = sub(unconditional(resource)).rpartition("${")[2].rstrip("}")
        if unconditional(resource) is resource or resource["Fn::If"][0] != f"Has{named}":
            yield f"the parameter of {named} must be there only under the condition Has{named}"
        if stack.template["Conditions"].get(f"Has{named}") != {"Fn::Not": [{"Fn::Equals": [{"Ref": named}, ""]}]}:
            yield f"the condition Has{named} must be that {named} is not empty"


@rule
def master_keys_are_named_and_never_values(stack: Stack, repo: Repo) -> Iterator[str]:
    wanted = "/${AWS::StackName}/master-keys/${MasterKeyNumber}"
    for name in stack.functions:
        given = variables_of(stack, name).get("LAMPLIGHTER_MASTER_KEY")
        expected_value = wanted if name in OPENS_KEYS else None
        if (given and sub(given)) != expected_value:
            yield f"{name}: LAMPLIGHTER_MASTER_KEY must be {expected_value}, is {given}"


@rule
def the_authorizer_reads_keys_and_notes_their_use_only(stack: Stack, repo: Repo) -> Iterator[str]:
    keys = {"ForAllValues:StringLike": {"dynamodb:LeadingKeys": ["U#*#KEY"]}}
    use = {
        "ForAllValues:StringEquals": {"dynamodb:Attributes": ["pk", "sk", "last_used"]},
        "StringEqualsIfExists": {"dynamodb:ReturnValues": "NONE"},
    }
    for statement in stack.statements("authorizer"):
        wanted = keys if listed(statement["Action"]) == ["dynamodb:GetItem"] else keys | use
        if statement.get("Condition") != wanted:
            yield f"its condition must be {wanted}, is {statement.get('Condition')}"
    if "SET last_used = :hour" not in repo.text("shared/src/store/accounts/api_keys.rs"):
        yield "api_keys.rs no longer notes the use of a key in last_used alone"
    if 'ApiKeys = "KEY"' not in repo.text("shared/src/store/record_kinds.rs"):
        yield "record_kinds.rs no longer calls the partition of API keys KEY"


@rule
def prefixes_are_those_of_the_code(stack: Stack, repo: Repo) -> Iterator[str]:
    granted = {prefix for bodies in BODIES.values() for prefixes in bodies.values() for prefix in prefixes}
    for prefix in sorted(repo.blob_prefixes ^ granted):
        yield f"blobs/key.rs and infra/checks/rules_rights.py disagree about bodies under {prefix}/"


@rule
def only_services_assume_roles(stack: Stack, repo: Repo) -> Iterator[str]:
    for name, role in stack.of("AWS::IAM::Role").items():
        for statement in listed(role["AssumeRolePolicyDocument"]["Statement"]):
            services = listed(statement.get("Principal", {}).get("Service", "*"))
            if not set(services) <= {"lambda.amazonaws.com", "scheduler.amazonaws.com"}:
                yield f"{name}: may be assumed by {statement.get('Principal')}"
