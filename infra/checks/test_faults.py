"""Each rule can fail: each case plants one fault, and only the rule for this fault must report it.

If one fault breaks several rules (for example a missing function), the case lists the others in `also`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest

import rules
from sources import Repo, Route
from template import Stack, source, target, translate

GONE = object()


@dataclass(frozen=True)
class Fault:
    what: str
    rule: str
    plant: Callable[[Stack, Repo], Any]
    also: frozenset[str] = frozenset()

    def __str__(self) -> str:
        return self.what.replace(" ", "-")


CASES: list[Fault] = []


def fault(what: str, rule: str, plant: Callable[[Stack, Repo], Any], *also: str) -> None:
    CASES.append(Fault(what, rule, plant, frozenset(also)))


def put(path: str, value: Any) -> Callable[[Stack, Repo], None]:
    """Sets a value at a path below the resources, or removes it with GONE. Numbers are list indexes."""

    def plant(stack: Stack, _: Repo) -> None:
        *way, last = (int(part) if part.isdigit() else part for part in path.split("/"))
        at = stack.resources
        for part in way:
            at = at[part]
        if value is GONE:
            del at[last]
        else:
            at[last] = value

    return plant


def method(verb: str, path: str, key: str, value: Any, *, integration: bool = True) -> Callable[[Stack, Repo], None]:
    """Changes one method of the API."""

    def plant(stack: Stack, _: Repo) -> None:
        definition = stack.api["Body"]["paths"][path][verb]
        at = definition["x-amazon-apigateway-integration"] if integration else definition
        if value is GONE:
            del at[key]
        else:
            at[key] = value

    return plant


def rename(stack: Stack, _: Repo, path: str, to: str) -> None:
    paths = stack.api["Body"]["paths"]
    paths[to] = paths.pop(path)


def statement(
    role: str, change: Callable[[dict], Any], policy: int = 0, index: int = 0
) -> Callable[[Stack, Repo], None]:
    def plant(stack: Stack, _: Repo) -> None:
        document = stack.resources[role]["Properties"]["Policies"][policy]["PolicyDocument"]
        change(document["Statement"][index])

    return plant


def attribute(name: str, value: Any) -> Callable[[Stack, Repo], None]:
    """Changes a fact from the code."""
    return lambda _, repo: repo.__dict__.__setitem__(name, value)


def drop_permission(stack: Stack, _: Repo, ending: str) -> None:
    for name, each in list(stack.of("AWS::Lambda::Permission").items()):
        if str(each.get("SourceArn")).find(ending) >= 0:
            del stack.resources[name]


def variable(stack: Stack, name: str) -> Any:
    return stack.function("agents")["Environment"]["Variables"][name]


HEALTH = Route("GET", "/health")
SWEEP, EXECUTOR = "ScheduleSweepFunction", "ScheduledExecutorFunction"
TIMER = "ScheduleSweepFunctionEveryMinute"
WATCHDOG = "WatchdogFunctionEveryTwoHours"
URI = "arn:aws:apigateway:${AWS::Region}:lambda:path/2015-03-31/functions/${AgentChatFunction.Arn}/invocations"

# Functions
f = partial(fault, rule="functions_are_the_folders")
f("a folder without a function", plant=lambda s, r: r.folders.add("nothing-like-it"))
f("a function without a folder", plant=lambda s, r: r.folders.discard("asset-save"))
f("a name that the catalog lacks", plant=lambda s, r: r.names.discard("asset-save"))
fault(
    "a whole function still called pending",
    "pending_functions_are_not_whole",
    lambda s, r: r.pending.add("catalog"),
)
f = partial(fault, rule="functions_run_their_own_artifact")
f("another function's artifact", plant=put("AccountFunction/Properties/Code/S3Key", "target/lambda/catalog"))
f("the wrong processor", plant=put("CatalogFunction/Properties/Architectures", ["x86_64"]))
f("an old runtime", plant=put("CatalogFunction/Properties/Runtime", "provided.al2"))
f("too little memory", plant=put(f"{EXECUTOR}/Properties/MemorySize", 128))
f = partial(fault, rule="nothing_is_reserved_or_traced")
f("reserved concurrency", plant=put(f"{SWEEP}/Properties/ReservedConcurrentExecutions", 1))
f("a traced function", plant=put(f"{SWEEP}/Properties/TracingConfig", {"Mode": "Active"}))
f = partial(fault, rule="rights_under_a_condition_are_attached_under_it")
f(
    "Bedrock permitted though it is off",
    plant=put("ThemeIndexRole/Properties/ManagedPolicyArns/2", {"Ref": "CallBedrock"}),
)
f(
    "model keys read under another condition",
    plant=put("ThemeIndexRole/Properties/ManagedPolicyArns/3/Fn::If/0", "HasBedrock"),
)
f("model keys without a condition", plant=put("ReadModelKeys/Condition", GONE))
READ = "ReadModelKeys/Properties/PolicyDocument/Statement/0"
fault(
    "a model key read although it is not named",
    "a_model_key_is_read_only_if_it_is_named",
    put(f"{READ}/Resource/0/Fn::If/0", "HasXAiApiKeyParameter"),
)
fault(
    "every parameter read",
    "rights_are_those_the_work_needs",
    put(f"{READ}/Resource/0/Fn::If/1", {"Fn::Sub": "arn:${AWS::Partition}:ssm:${AWS::Region}:${AWS::AccountId}:parameter/*"}),
    "a_model_key_is_read_only_if_it_is_named",
)
fault(
    "a variable that nobody reads",
    "variables_are_those_the_code_reads",
    put("CatalogFunction/Properties/Environment/Variables/LAMPLIGHTER_COLOUR", "red"),
)
fault(
    "a variable that nobody is told",
    "variables_are_those_the_code_reads",
    lambda s, r: r.variables.add("LAMPLIGHTER_COLOUR"),
)
f = partial(fault, rule="functions_are_told_where_they_are")
f(
    "another bucket's name",
    plant=put("AssetSaveFunction/Properties/Environment/Variables/LAMPLIGHTER_BUCKET", "lamplighter"),
)
f("authentication off", plant=put("AgentsFunction/Properties/Environment/Variables/LAMPLIGHTER_AUTH", "off"))
f(
    "a model key where none is needed",
    plant=lambda s, r: put("CatalogFunction/Properties/Environment/Variables/OPENAI_API_KEY", variable(s, "OPENAI_API_KEY"))(s, r),
)
fault(
    "a function that calls models now",
    "functions_are_told_where_they_are",
    attribute("models", {"agent-chat", "agents"}),
    "rights_are_those_the_work_needs",
)
f("another number of executors", plant=put(f"{EXECUTOR}/Properties/Environment/Variables/LAMPLIGHTER_EXECUTORS", "10"))
f("an executor without a model", plant=put(f"{EXECUTOR}/Properties/Environment/Variables/ANTHROPIC_API_KEY", GONE))
f = partial(fault, rule="master_keys_are_named_and_never_values")
f("a master key as a value", plant=put("AgentsFunction/Properties/Environment/Variables/LAMPLIGHTER_MASTER_KEY", "c2VjcmV0"))
f("an account without a master key", plant=put("AccountFunction/Properties/Environment/Variables/LAMPLIGHTER_MASTER_KEY", GONE))
fault(
    "an authorizer without an audience",
    "functions_are_told_where_they_are",
    put("AuthorizerFunction/Properties/Environment/Variables/LAMPLIGHTER_JWT_AUDIENCE", GONE),
    "variables_are_those_the_code_reads",
    "the_operator_invites_who_signs_in",
)
fault(
    "a secret that is echoed",
    "secrets_are_not_shown",
    lambda s, r: s.template["Parameters"]["AnthropicApiKey"].pop("NoEcho"),
)
f = partial(fault, rule="the_operator_invites_who_signs_in")
f("a pool in which everybody signs up", plant=put("UserPool/Properties/AdminCreateUserConfig/AllowAdminCreateUserOnly", False))
f("a pool that goes with the stack", plant=put("UserPool/DeletionPolicy", "Delete"))
f("a client with a secret", plant=put("UserPoolClient/Properties/GenerateSecret", True))
f("a client that hands out tokens", plant=put("UserPoolClient/Properties/AllowedOAuthFlows", ["code", "implicit"]))
f("a client for another page", plant=put("UserPoolClient/Properties/CallbackURLs/0", {"Fn::Sub": "https://${Api}.example/"}))
f("a client that nobody names", plant=put("ApiliveStage/Properties/Variables", GONE))
f("a page without its client", plant=put("ConsoleFunction/Properties/Environment/Variables/LAMPLIGHTER_SIGN_IN_CLIENT_ID/Fn::If/1", "x"))
f("an authorizer of another pool", plant=put("AuthorizerFunction/Properties/Environment/Variables/LAMPLIGHTER_JWT_ISSUER/Fn::If/1", "x"))
KEY = "AgentsFunction/Properties/Environment/Variables/ANTHROPIC_API_KEY"
f = partial(fault, rule="secrets_are_not_shown")
f("a secret that is written in the template", plant=put(KEY, "sk-ant-1"))
f("a key named for another one", plant=put(f"{KEY}/Fn::If/1", {"Fn::Sub": "ssm:${OpenAiApiKeyParameter}"}))
f("a key named under another condition", plant=put(f"{KEY}/Fn::If/0", "HasBedrock"))
f("servers with their keys written in the template", plant=put("AgentsFunction/Properties/Environment/Variables/LAMPLIGHTER_SERVERS", "{}"))
f("servers with their keys shown", plant=lambda s, r: s.template["Parameters"]["Servers"].pop("NoEcho"))
f = partial(fault, rule="logs_end")
f("logs for ever", plant=put("AgentsLogs/Properties/RetentionInDays", GONE))
f("a group of Lambda's making", plant=put("AgentsFunction/Properties/LoggingConfig", GONE))
f("another function's logs", plant=put("AgentsFunction/Properties/LoggingConfig/LogGroup", {"Ref": "AccountLogs"}))

# The API
f = partial(fault, rule="routes_are_those_of_the_document")
f("a route without an event", plant=lambda s, r: s.api["Body"]["paths"].pop("/health"))
f("an event without a route", plant=lambda s, r: (r.documented.discard(HEALTH), r.routes.pop(HEALTH)))
f("a handler that is not documented", plant=lambda s, r: r.documented.discard(HEALTH))
f("a route of another function", plant=lambda s, r: r.routes.__setitem__(HEALTH, "agents"))
fault(
    "two names for one place",
    "siblings_share_a_parameter_name",
    partial(rename, path="/actions/{action_id}/why", to="/actions/{id}/why"),
    "routes_are_those_of_the_document",
)
f = partial(fault, rule="streaming_functions_stream")
f("a stream that is buffered", plant=method("post", "/agents/{agent_id}/chat", "uri", {"Fn::Sub": URI}))
f("a transfer mode that is missing", plant=method("post", "/agents/{agent_id}/chat", "responseTransferMode", GONE))
f("a gateway that gives up first", plant=method("post", "/agents/{agent_id}/chat", "timeoutInMillis", 29_000))
f("a function that outlasts the gateway", plant=put("AccountFunction/Properties/Timeout", 60))
f("a code that streams and an event that does not", plant=lambda s, r: r.streaming.__setitem__("account", True))
f("an integration by GET", plant=method("get", "/health", "httpMethod", "GET"))
f("an integration that is no proxy", plant=method("get", "/health", "type", "aws"))
f = partial(fault, rule="only_open_routes_are_open")
f("a route without the authorizer", plant=method("get", "/usage", "security", [{"NONE": []}], integration=False))
f(
    "a health check behind the authorizer",
    plant=method("get", "/health", "security", [{"Bearer": []}], integration=False),
)
f("a route without security", plant=method("get", "/usage", "security", GONE, integration=False))
SCHEME = "Api/Properties/Body/components/securitySchemes/Bearer/x-amazon-apigateway-authorizer"
f = partial(fault, rule="the_authorizer_is_ours")
f("an authorizer that is asked by another header", plant=put(f"{SCHEME}/identitySource", "method.request.header.Auth"))
f("a revoked key that works for an hour", plant=put(f"{SCHEME}/authorizerResultTtlInSeconds", 3600))
f("an authorizer that is another function", plant=put(f"{SCHEME}/authorizerUri", {"Fn::Sub": URI}))
f("an authorizer that may not be called", plant=partial(drop_permission, ending="/authorizers/"))
fault(
    "a function that may not be called",
    "the_api_may_call_its_functions",
    partial(drop_permission, ending="/GET/health"),
)
f = partial(fault, rule="the_api_is_regional_and_bounded")
f("an edge API", plant=put("Api/Properties/EndpointConfiguration/Types", ["EDGE"]))
f("an API without a ceiling", plant=put("ApiliveStage/Properties/MethodSettings", GONE))
f("a traced stage", plant=put("ApiliveStage/Properties/TracingEnabled", True))
f("a stage that the output does not name", plant=put("ApiliveStage/Properties/StageName", "prod"))
f = partial(fault, rule="a_domain_leads_to_the_stage")
f("a domain that is always there", plant=put("Domain/Condition", GONE))
f("a record without a zone", plant=put("DomainRecord/Condition", "HasDomain"))
f("a domain at the edge", plant=put("Domain/Properties/EndpointConfiguration/Types", ["EDGE"]))
f("a domain that accepts old TLS", plant=put("Domain/Properties/SecurityPolicy", "TLS_1_0"))
f("a domain of another stage", plant=put("DomainMapping/Properties/Stage", "Stage"))
f("a record that points elsewhere", plant=put("DomainRecord/Properties/AliasTarget/DNSName", "example.com"))
ANSWERS = "Api/Properties/Body/x-amazon-apigateway-gateway-responses"
f = partial(fault, rule="the_gateway_answers_problems")
f("an answer of the gateway's own form", plant=put(f"{ANSWERS}/THROTTLED", GONE))
f("an answer that is no JSON", plant=put(f"{ANSWERS}/THROTTLED/responseTemplates", {"application/problem+json": "{"}))
f("an answer with two statuses", plant=put(f"{ANSWERS}/UNAUTHORIZED/statusCode", "403"))
f("a throttled authorizer that is our fault", plant=put(f"{ANSWERS}/AUTHORIZER_CONFIGURATION_ERROR", GONE))
HEADER = "responseParameters/gatewayresponse.header."
f("a retry without a time", plant=put(f"{ANSWERS}/INTEGRATION_FAILURE/{HEADER}Retry-After", GONE))
f("an answer without its request", plant=put(f"{ANSWERS}/THROTTLED/{HEADER}x-request-id", GONE))
f("an answer for every page", plant=put(f"{ANSWERS}/THROTTLED/{HEADER}Access-Control-Allow-Origin", "'*'"))
f("another limit than the code's", plant=attribute("most_bytes", 6_291_456))
f = partial(fault, rule="browsers_may_ask_first")
f("a path without preflights", plant=lambda s, r: s.api["Body"]["paths"]["/usage"].pop("options"))
fault(
    "preflights of another function",
    "browsers_may_ask_first",
    lambda s, r: s.api["Body"]["paths"]["/usage"].update(options=s.api["Body"]["paths"]["/health"]["options"]),
    "the_api_may_call_its_functions",
)

# Data
f = partial(fault, rule="the_table_is_what_the_store_expects")
f("an index of another name", plant=put("Table/Properties/GlobalSecondaryIndexes/0/IndexName", "dueIndex"))
f(
    "an index by another attribute",
    plant=put("Table/Properties/GlobalSecondaryIndexes/0/KeySchema/1/AttributeName", "dueAt"),
)
f(
    "an index that holds everything",
    plant=put("Table/Properties/GlobalSecondaryIndexes/0/Projection", {"ProjectionType": "ALL"}),
)
fault(
    "a code that reads another index",
    "the_table_is_what_the_store_expects",
    attribute("due_index", "due2"),
    "alarms_watch_what_exists",
    "the_dashboard_shows_what_exists",
)
fault(
    "another time to live",
    "the_table_is_what_the_store_expects",
    put("Table/Properties/TimeToLiveSpecification/AttributeName", "expiry"),
    "the_table_is_kept",
)
f = partial(fault, rule="the_table_is_kept")
f("no way back in time", plant=put("Table/Properties/PointInTimeRecoverySpecification", GONE))
f("a table with a key that is paid for", plant=put("Table/Properties/SSESpecification", {"SSEEnabled": True}))
f("a table with a price while idle", plant=put("Table/Properties/BillingMode", "PROVISIONED"))
f = partial(fault, rule="data_outlives_the_stack")
f("a table that goes with the stack", plant=put("Table/DeletionPolicy", "Delete"))
f("a table that a failed creation leaves behind", plant=put("Table/DeletionPolicy", "Retain"))
f("a bucket that is replaced", plant=put("Bucket/UpdateReplacePolicy", GONE))
f = partial(fault, rule="the_bucket_is_private")
f("a bucket that may be opened", plant=put("Bucket/Properties/PublicAccessBlockConfiguration/BlockPublicPolicy", False))
f(
    "a bucket in plain HTTP",
    plant=put(
        "BucketPolicy/Properties/PolicyDocument/Statement/0/Condition", {"Bool": {"aws:SecureTransport": "true"}}
    ),
)
f(
    "objects in plain HTTP",
    plant=put("BucketPolicy/Properties/PolicyDocument/Statement/0/Resource", {"Fn::GetAtt": ["Bucket", "Arn"]}),
)
f("a bucket that anybody reads", plant=put("BucketPolicy/Properties/PolicyDocument/Statement/0/Effect", "Allow"))
f = partial(fault, rule="the_console_and_configured_pages_reach_the_bucket")
CORS = "Bucket/Properties/CorsConfiguration"
f("a bucket without pages", plant=put(CORS, GONE))
f("a bucket for every page", plant=put(f"{CORS}/CorsRules/0/AllowedOrigins", ["*"]))
f("pages that delete", plant=put(f"{CORS}/CorsRules/1/Fn::If/1/AllowedMethods", ["GET", "HEAD", "PUT", "DELETE"]))
f("pages that nobody named", plant=put(f"{CORS}/CorsRules/1/Fn::If/1/AllowedOrigins", ["https://evil.example"]))
f = partial(fault, rule="the_bucket_keeps_and_forgets")
f("a bucket without versions", plant=put("Bucket/Properties/VersioningConfiguration", GONE))
f("versions for ever", plant=put("Bucket/Properties/LifecycleConfiguration/Rules/0/Status", "Disabled"))
f("bodies that vanish", plant=put("Bucket/Properties/LifecycleConfiguration/Rules/0/ExpirationInDays", 30))
f("proposals that vanish", plant=put("Bucket/Properties/LifecycleConfiguration/Rules/1/ExpirationInDays", 30))
f("proposals for ever", plant=put("Bucket/Properties/LifecycleConfiguration/Rules/1/TagFilters/0/Value", "a-day"))

# Rights
f = partial(fault, rule="rights_are_those_the_work_needs")
f(
    "a sweep without the index",
    plant=statement("ScheduleSweepFunctionRole", lambda s: s.update(Resource={"Fn::GetAtt": ["Table", "Arn"]})),
)
f(
    "a sweep of all indexes",
    plant=statement("ScheduleSweepFunctionRole", lambda s: s.update(Resource={"Fn::Sub": "${Table.Arn}/index/*"})),
)
f(
    "a function that reads across owners",
    plant=put(
        "TableAccess/Properties/PolicyDocument/Statement/0/Resource",
        [{"Fn::GetAtt": ["Table", "Arn"]}, {"Fn::Sub": "${Table.Arn}/index/due"}],
    ),
)
f(
    "a scan",
    plant=lambda s, r: s.resources["TableAccess"]["Properties"]["PolicyDocument"]["Statement"][0]["Action"].append(
        "dynamodb:Scan"
    ),
)
f("any action on everything", plant=put("Publish/Properties/PolicyDocument/Statement/0/Resource", "*"))
f(
    "a function that may not publish",
    plant=put(
        "ActionDefineFunctionRole/Properties/ManagedPolicyArns",
        ["arn:aws:iam::aws:policy/service-role/AWSLambdaBasicExecutionRole", {"Ref": "TableAccess"}],
    ),
)
f(
    "a function that may publish",
    plant=lambda s, r: s.resources["AccountFunctionRole"]["Properties"]["ManagedPolicyArns"].append({"Ref": "Publish"}),
)
f(
    "a function that may send due items",
    plant=lambda s, r: s.resources["ContextFunctionRole"]["Properties"]["ManagedPolicyArns"].append({"Ref": "SendDue"}),
)
f(
    "rights to every queue",
    plant=lambda s, r: s.resources["ScheduledExecutorRole"]["Properties"]["ManagedPolicyArns"].append(
        "arn:aws:iam::aws:policy/service-role/AWSLambdaSQSQueueExecutionRole"
    ),
)
f(
    "a bucket whose absences are refusals",
    plant=lambda s, r: s.resources["AssetSaveFunctionRole"]["Properties"]["Policies"][0]["PolicyDocument"][
        "Statement"
    ].pop(),
)
f("all but one action", plant=statement("AssetSaveFunctionRole", lambda s: s.update(NotAction=s.pop("Action"))))
f = partial(fault, rule="the_authorizer_reads_keys_and_notes_their_use_only")
f("an authorizer that reads everything", plant=statement("AuthorizerFunctionRole", lambda s: s.pop("Condition")))
f(
    "an authorizer that changes the scope of a key",
    plant=lambda s, r: s.statements("authorizer")[1]["Condition"]["ForAllValues:StringEquals"]["dynamodb:Attributes"].append("scope"),
)
fault("a body under a new prefix", "prefixes_are_those_of_the_code", lambda s, r: r.blob_prefixes.add("maps"))
fault(
    "a role for another account",
    "only_services_assume_roles",
    put("ScheduledExecutorRole/Properties/AssumeRolePolicyDocument/Statement/0/Principal", {"AWS": "*"}),
)

# Time
f = partial(fault, rule="the_timer_wakes_the_sweep")
f("a schedule that is no schedule", plant=put(f"{TIMER}/Properties/ScheduleExpression", "rate(1 minutes)"))
f("a schedule in another form", plant=put(f"{TIMER}/Properties/ScheduleExpression", "every minute"))
f("a timer of five minutes", plant=put(f"{TIMER}/Properties/ScheduleExpression", "rate(5 minutes)"))
f("a code that is swept every two minutes", plant=attribute("timer_seconds", 120))
f("a timer that is off", plant=put(f"{TIMER}/Properties/State", "DISABLED"))
f(
    "a timer that may be late",
    plant=put(f"{TIMER}/Properties/FlexibleTimeWindow", {"Mode": "FLEXIBLE", "MaximumWindowInMinutes": 15}),
)
f("a timer that two stacks share", plant=put(f"{TIMER}/Properties/Name", "every-minute"))
f(
    "a timer for another function",
    plant=put(f"{TIMER}/Properties/Target/Arn", {"Fn::GetAtt": ["CatalogFunction", "Arn"]}),
)
f("a timer without rights", plant=lambda s, r: s.resources[f"{TIMER}Role"]["Properties"].pop("Policies"))
f = partial(fault, rule="a_timer_wakes_the_watchdog")
f("a watchdog on the hour", plant=put(f"{WATCHDOG}/Properties/ScheduleExpression", "cron(0 0/2 * * ? *)"))
f("a watchdog that is off", plant=put(f"{WATCHDOG}/Properties/State", "DISABLED"))
f = partial(fault, rule="a_failed_sweep_is_left_to_the_next")
f(
    "sweeps that are tried again",
    plant=lambda s, r: next(
        config
        for config in s.of("AWS::Lambda::EventInvokeConfig").values()
        if target(config["FunctionName"]) == s.functions["schedule-sweep"]
    ).update(MaximumRetryAttempts=2),
)
f("a sweep of five minutes", plant=put(f"{SWEEP}/Properties/Timeout", 300))
f = partial(fault, rule="the_bus_has_no_part_in_due_items")
f("a rule that fills the queue", plant=put("DueRule", {"Type": "AWS::Events::Rule", "Properties": {}}))
f(
    "a queue with a policy",
    plant=put("OtherPolicy", {"Type": "AWS::SQS::QueuePolicy", "Properties": {"Queues": [{"Ref": "Queue"}], "PolicyDocument": {"Statement": []}}}),
)
f = partial(fault, rule="only_our_mails_are_told")
f("the e-mails of others", plant=put("MailEventsRule/Properties/EventPattern/detail", GONE))
f("what no function understands", plant=put("MailEventsRule/Properties/EventPattern/detail-type", ["Email Opened"]))
f("a bus that SES does not use", plant=put("MailEventsRule/Properties/EventBusName", {"Ref": "Bus"}))
f("an event that is changed", plant=put("MailEventsRule/Properties/Targets/0/InputPath", "$.detail"))
f("every rule of the account", plant=put("QueuePolicy/Properties/PolicyDocument/Statement/0/Condition", {"StringEquals": {"aws:SourceAccount": "1"}}))
f("no bounces", plant=put("MailEventsDestination/Properties/EventDestination/MatchingEventTypes", ["COMPLAINT"]))
f("a destination that is off", plant=put("MailEventsDestination/Properties/EventDestination/Enabled", False))
fault(
    "a queue for everybody",
    "nobody_else_may_send",
    put("ThemeQueuePolicy/Properties/PolicyDocument/Statement/0/Condition", GONE),
    "s3_may_send_and_nobody_else",
)
f = partial(fault, rule="the_queue_waits_and_gives_up")
f("a message that comes again too soon", plant=put("Queue/Properties/VisibilityTimeout", 900))
f("a message that is never given up", plant=put("Queue/Properties/RedrivePolicy", GONE))
f("a message that is tried once", plant=put("Queue/Properties/RedrivePolicy/maxReceiveCount", 1))
f("a message that is tried less often than locally", plant=put("Queue/Properties/RedrivePolicy/maxReceiveCount", 3))
f("dead letters that rot", plant=put("DeadLetters/Properties/MessageRetentionPeriod", 345_600))
f("a queue in the clear", plant=put("Queue/Properties/SqsManagedSseEnabled", False))
f("an executor that is stopped early", plant=put(f"{EXECUTOR}/Properties/Timeout", 300))
MAPPING = f"{EXECUTOR}Due/Properties"
f = partial(fault, rule="the_executor_takes_ten_at_once")
f("failures that are not reported", plant=put(f"{MAPPING}/FunctionResponseTypes", GONE))
f("executors without limit", plant=put(f"{MAPPING}/ScalingConfig", GONE))
f(
    "executors bounded with the indexers",
    plant=put(f"{MAPPING}/ScalingConfig/MaximumConcurrency", {"Ref": "MaximumIndexers"}),
)
f("one run in one function", plant=put(f"{MAPPING}/BatchSize", 1))
f("runs that wait for others", plant=put(f"{MAPPING}/MaximumBatchingWindowInSeconds", 5))
f("a mapping of the dead letters", plant=put(f"{MAPPING}/EventSourceArn", {"Fn::GetAtt": ["DeadLetters", "Arn"]}))
f("a filter that drops", plant=put(f"{MAPPING}/FilterCriteria", {"Filters": [{"Pattern": "{}"}]}))

# Metrics
f = partial(fault, rule="alarms_watch_what_exists")
f("a metric that does not exist", plant=put("DeadLettersAlarm/Properties/MetricName", "NumberOfMessagesVisible"))
f("a dimension that does not exist", plant=put("DeadLettersAlarm/Properties/Dimensions/0/Name", "Queue"))
f(
    "a queue's reference for its name",
    plant=put("DeadLettersAlarm/Properties/Dimensions/0/Value", {"Ref": "DeadLetters"}),
)
f(
    "an alarm of another function",
    plant=put("ExecutorErrorsAlarm/Properties/Dimensions/0/Value", {"Ref": "CatalogFunction"}),
)
f(
    "a function's ARN for its name",
    plant=put("ExecutorErrorsAlarm/Properties/Dimensions/0/Value", {"Fn::GetAtt": [EXECUTOR, "Arn"]}),
)
f("an API's id for its name", plant=put("ApiErrorsAlarm/Properties/Dimensions/0/Value", {"Ref": "Api"}))
f("throttles per operation", plant=put("TableReadsThrottledAlarm/Properties/MetricName", "ThrottledRequests"))
f("silence that is no alarm", plant=put("SweepSilentAlarm/Properties/TreatMissingData", "notBreaching"))
f(
    "a watchdog whose silence is no alarm",
    plant=put("WatchdogSilentAlarm/Properties/TreatMissingData", "notBreaching"),
)
f("an alarm the wrong way round", plant=put("SweepSilentAlarm/Properties/ComparisonOperator", "GreaterThanThreshold"))
f("a sweep that is called and fails", plant=put("SweepSilentAlarm/Properties/MetricName", "Invocations"))
f("failed runs of one function", plant=put("FailedRunsAlarm/Properties/Dimensions/0/Value", "scheduled-executor"))
f(
    "failed runs of one kind",
    plant=put("FailedRunsAlarm/Properties/Dimensions/0", {"Name": "Kind", "Value": "call"}),
)
f("two dimensions of one metric", plant=lambda s, r: s.properties("FailedRunsAlarm")["Dimensions"].append({"Name": "Kind", "Value": "call"}))
f("an alarm that nobody hears", plant=put("FireLagAlarm/Properties/AlarmActions", []))
fault(
    "an alarm that is missing",
    "alarms_watch_what_exists",
    put("ExecutorErrorsAlarm", {"Type": "AWS::CloudFormation::WaitConditionHandle"}),
    "the_manual_says_what_each_alarm_notices",
)
fault("an alarm that rings later", "the_manual_says_what_each_alarm_notices", put("FailedRunsAlarm/Properties/EvaluationPeriods", 3))
fault(
    "alerts of owners for the operator",
    "alerts_about_the_platform_reach_the_topic",
    put("WatchdogAlertRule/Properties/EventPattern/detail", GONE),
)
f("a metric of another namespace", plant=put("FireLagAlarm/Properties/Namespace", "AWS/Lamplighter"))
f("errors by their average", plant=put("ExecutorErrorsAlarm/Properties/Statistic", "SampleCount"))
f("a metric of ours under another name", plant=put("FireLagAlarm/Properties/MetricName", "FireLag"))
fault(
    "a metric that no code writes any more",
    "alarms_watch_what_exists",
    lambda s, r: r.metrics["Function", "scheduled-executor"].discard("FireLagMs"),
    "the_dashboard_shows_what_exists",
)
f = partial(fault, rule="alarms_can_be_sent")
f("a topic with AWS's key", plant=put("Alarms/Properties/KmsMasterKeyId", "alias/aws/sns"))
f(
    "a topic that CloudWatch may not use",
    plant=put("AlarmsPolicy/Properties/PolicyDocument/Statement/0/Principal/Service", "events.amazonaws.com"),
)
f = partial(fault, rule="spending_alerts_reach_the_topic")
ALERT = "SpendingAlertRule/Properties"
f("no rule for alerts", plant=put(f"{ALERT}/EventPattern/detail-type", ["index.completed"]))
f("alerts of strangers", plant=put(f"{ALERT}/EventPattern/source", ["stranger"]))
f("alerts on another bus", plant=put(f"{ALERT}/EventBusName", "default"))
f("alerts that are off", plant=put(f"{ALERT}/State", "DISABLED"))
fault(
    "alerts for nobody",
    "spending_alerts_reach_the_topic",
    put(f"{ALERT}/Targets", []),
    "the_bus_has_no_part_in_due_items",
)
f("an alert of a field that is missing", plant=put(f"{ALERT}/Targets/0/InputTransformer/InputPathsMap/spent", "$.detail.cost"))
f("an alert without its numbers", plant=put(f"{ALERT}/Targets/0/InputTransformer/InputTemplate", '"Look"'))
f("an alert as raw JSON", plant=put(f"{ALERT}/Targets/0/InputTransformer", GONE))
f("an alert that is no text", plant=put(f"{ALERT}/Targets/0/InputTransformer/InputTemplate", "<owner> <month> <threshold> <spent>"))
fault("a topic that EventBridge may not use", "spending_alerts_reach_the_topic", put("AlarmsPolicy/Properties/PolicyDocument/Statement/1", {
    "Effect": "Allow", "Principal": {"Service": "events.amazonaws.com"}, "Action": "sns:Publish",
    "Resource": {"Ref": "Alarms"}, "Condition": {"ArnEquals": {"aws:SourceArn": "arn:other"}},
}), "action_alerts_reach_the_topic", "alerts_about_the_platform_reach_the_topic")  # fmt: skip
f = partial(fault, rule="action_alerts_reach_the_topic")
OF_ACTIONS = "ActionAlertRule/Properties"
f("no rule for alerts of actions", plant=put(f"{OF_ACTIONS}/EventPattern/detail-type", ["index.completed"]))
f("an alert of an action without its field", plant=put(f"{OF_ACTIONS}/Targets/0/InputTransformer/InputPathsMap/codes", "$.detail.text"))
f = partial(fault, rule="the_dashboard_shows_what_exists")


def dashboard(old: str, new: str) -> Callable[[Stack, Repo], None]:
    def plant(stack: Stack, _: Repo) -> None:
        body = stack.resources["Dashboard"]["Properties"]["DashboardBody"]
        assert old in body["Fn::Sub"]
        body["Fn::Sub"] = body["Fn::Sub"].replace(old, new)

    return plant


f("a dashboard of nothing", plant=dashboard("${CatalogFunction}", "${OldFunction}"))
f("a dashboard with a wrong metric", plant=dashboard('"5XXError"', '"5xxErrors"'))
f("a dashboard with a kind that no run has", plant=dashboard('"Kind", "call"', '"Kind", "calls"'))
f("a dashboard without a function", plant=dashboard('"Errors", "FunctionName", "${WatchdogFunction}"', '"Errors", "FunctionName", "${WatchFunction}"'))
f("a dashboard that is no JSON", plant=dashboard('"widgets":', '"widgets"'))
fault(
    "an output of another thing",
    "outputs_name_what_one_needs",
    lambda s, r: s.template["Outputs"]["Table"].update(Value={"Ref": "Bucket"}),
)


f = partial(fault, rule="uploads_wake_the_indexer")
NOTIFICATION = "Bucket/Properties/NotificationConfiguration/QueueConfigurations"
f("a misspelt event", plant=put(f"{NOTIFICATION}/0/Event", "s3:ObjectCreated:Put"))
f("a key by its beginning", plant=put(f"{NOTIFICATION}/0/Filter/S3Key/Rules/0/Name", "prefix"))
f("keys that nobody writes", plant=put(f"{NOTIFICATION}/1/Filter/S3Key/Rules/0/Value", "theme.change"))
f("a notification elsewhere", plant=put(f"{NOTIFICATION}/0/Queue", {"Fn::GetAtt": ["Queue", "Arn"]}))
f("a bucket before its queue", plant=put("Bucket/DependsOn", []))
f = partial(fault, rule="s3_may_send_and_nobody_else")
THEME_SENDER = "ThemeQueuePolicy/Properties/PolicyDocument/Statement/0"
f("a queue of another service", plant=put(f"{THEME_SENDER}/Principal/Service", "events.amazonaws.com"))
f = partial(fault, rule="the_theme_queue_waits_and_gives_up")
f("an upload taken twice at once", plant=put("ThemeQueue/Properties/VisibilityTimeout", 300))
f("an upload tried for ever", plant=put("ThemeQueue/Properties/RedrivePolicy", {}))
f("uploads that wait", plant=put("ThemeQueue/Properties/DelaySeconds", 5))
f = partial(fault, rule="a_call_of_the_model_fits")
f("an indexer that ends before a model answers", plant=put("ThemeIndexFunction/Properties/Timeout", 120))
f("a model that is waited for too long", plant=attribute("enrichment_call_seconds", 200))
f = partial(fault, rule="the_indexer_reads_its_queue")
THEME_MAPPING = "ThemeIndexFunctionUpload/Properties"
f("an indexer of due actions", plant=put(f"{THEME_MAPPING}/EventSourceArn", {"Fn::GetAtt": ["Queue", "Arn"]}))
f("uploads that fail together", plant=put(f"{THEME_MAPPING}/FunctionResponseTypes", []))
f("indexers without end", plant=put(f"{THEME_MAPPING}/ScalingConfig", {}))
f(
    "indexers bounded with the executors",
    plant=put(f"{THEME_MAPPING}/ScalingConfig/MaximumConcurrency", {"Ref": "MaximumExecutors"}),
)
f("uploads that are filtered", plant=put(f"{THEME_MAPPING}/FilterCriteria", {"Filters": []}))
fault(
    "archives as text",
    "bodies_pass_as_they_are",
    lambda s, r: s.api["Body"].pop("x-amazon-apigateway-binary-media-types", None) or s.api.pop("BinaryMediaTypes", None),
)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_planted_fault_is_reported(case: Fault, stack: Stack, repo: Repo) -> None:
    case.plant(stack, repo)
    told = {sentence.split(":")[0] for sentence in rules.faults(stack, repo)}
    assert case.rule in told, f"{case.what} was not seen"
    assert told <= {case.rule} | case.also, f"{case.what} was also reported by other rules"


def test_every_rule_can_fail(stack: Stack, repo: Repo) -> None:
    rules.faults(stack, repo)
    assert {check.__name__ for check in rules.RULES} == {case.rule for case in CASES}


# Faults in the source template that the translation hides or changes.
SOURCE_CASES = {
    "STREAM instead of RESPONSE_STREAM": (
        lambda t: t["Resources"]["AgentChatFunction"]["Properties"]["Events"]["PostAgentsAgentIdChat"][
            "Properties"
        ].update(ResponseTransferMode="STREAM"),
        "streaming_functions_stream",
    ),
    "a stream without a timeout": (
        lambda t: t["Resources"]["AgentChatFunction"]["Properties"]["Events"]["PostAgentsAgentIdChat"][
            "Properties"
        ].pop("TimeoutInMillis"),
        "streaming_functions_stream",
    ),
    "an executor with SAM's own role": (
        lambda t: t["Resources"]["ScheduledExecutorFunction"]["Properties"].pop("Role"),
        "rights_are_those_the_work_needs",
    ),
    "an API of SAM's second stage": (
        lambda t: t["Resources"]["Api"]["Properties"].pop("OpenApiVersion"),
        "the_api_is_regional_and_bounded",
    ),
    "code of another folder": (
        lambda t: t["Resources"]["AgentsFunction"]["Properties"].update(CodeUri="../target/release/"),
        "functions_run_their_own_artifact",
    ),
}


def small_source() -> dict[str, Any]:
    """The template with few routes. The time of a translation grows with the square of their number."""
    template = source()
    for name, resource in template["Resources"].items():
        events = resource.get("Properties", {}).get("Events", {})
        if name != "AgentChatFunction":
            for event in [event for event, found in events.items() if found["Type"] == "Api"][1:]:
                del events[event]
    return template


@pytest.fixture(scope="session")
def small_reports() -> set[str]:
    """The rules that report the small template as it is: for example, those that miss its routes."""
    return {sentence.split(":")[0] for sentence in rules.faults(Stack(translate(small_source())), Repo())}


@pytest.mark.parametrize("what", SOURCE_CASES)
def test_a_fault_of_the_source_is_reported(what: str, repo: Repo, small_reports: set[str]) -> None:
    plant, rule = SOURCE_CASES[what]
    template = small_source()
    plant(template)
    told = {sentence.split(":")[0] for sentence in rules.faults(Stack(translate(template)), repo)}
    assert rule not in small_reports, f"{rule} reports the small template without a fault"
    assert rule in told, f"{what}: the reports were {sorted(told)}"
