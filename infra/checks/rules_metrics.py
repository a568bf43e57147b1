"""Alarms and the dashboard: they use existing metrics of existing resources, and alarms can be sent."""

import json
import re
from collections.abc import Iterator

from registry import rule
from sources import Repo
from template import Stack, sub, target

# The dimensions with which AWS publishes a metric. With other dimensions an alarm watches nothing and stays OK.
LAMBDA = {m: [{"FunctionName"}] for m in ("Invocations", "Errors", "Duration", "Throttles", "ConcurrentExecutions")}
SQS = {
    m: [{"QueueName"}]
    for m in (
        "ApproximateNumberOfMessagesVisible",
        "ApproximateNumberOfMessagesNotVisible",
        "ApproximateNumberOfMessagesDelayed",
        "ApproximateAgeOfOldestMessage",
        "NumberOfMessagesSent",
    )
}
API = {
    m: [{"ApiName"}, {"ApiName", "Stage"}] for m in ("Count", "4XXError", "5XXError", "Latency", "IntegrationLatency")
}
TABLE = {
    m: [{"TableName"}, {"TableName", "GlobalSecondaryIndexName"}]
    for m in ("ConsumedReadCapacityUnits", "ConsumedWriteCapacityUnits", "ReadThrottleEvents", "WriteThrottleEvents")
}
METRICS = {
    "AWS/Lambda": LAMBDA,
    "AWS/SQS": SQS,
    "AWS/ApiGateway": API,
    "AWS/DynamoDB": TABLE,
}
# The references that a dimension's value may have.
VALUES = {
    "QueueName": {"${Queue.QueueName}", "${DeadLetters.QueueName}"},
    "ApiName": {"${AWS::StackName}"},
    "Stage": {"live", "${Api.Stage}", "${ApiliveStage}"},
    "TableName": {"${Table}"},
}
# The alarms that must exist: namespace, metric, resource, and the direction that is bad.
WATCHED = {
    ("AWS/SQS", "ApproximateNumberOfMessagesVisible", "${DeadLetters.QueueName}"): ">",
    ("AWS/SQS", "ApproximateAgeOfOldestMessage", "${Queue.QueueName}"): ">",
    ("AWS/Lambda", "Errors", "${ScheduledExecutorFunction}"): ">",
    ("AWS/ApiGateway", "5XXError", "${AWS::StackName}"): ">",
    ("AWS/DynamoDB", "ReadThrottleEvents", "${Table}"): ">",
    ("AWS/DynamoDB", "WriteThrottleEvents", "${Table}"): ">",
    ("Lamplighter", "Dispatched", "schedule-sweep"): "<",
    ("Lamplighter", "OwnersLookedAt", "watchdog"): "<",
    ("Lamplighter", "RunsFailed", "all"): ">",
    ("Lamplighter", "FireLagMs", "scheduled-executor"): ">",
}


def wrong(stack: Stack, repo: Repo, namespace: str, metric: str, dimensions: dict[str, str]) -> Iterator[str]:
    """The fault of one metric, if it has one."""
    if namespace == repo.namespace:
        written = [metric in repo.metrics.get(dimension, ()) for dimension in dimensions.items()]
        if written != [True]:
            yield f"no function writes {metric} with {dimensions}"
        return
    if metric not in METRICS.get(namespace, {}):
        yield f"{namespace} has no metric {metric}"
    elif set(dimensions) not in METRICS[namespace][metric]:
        yield f"{namespace} {metric} is never published with {sorted(dimensions)}"
    for name, value in dimensions.items():
        allowed = VALUES.get(name)
        if name == "FunctionName":
            allowed = {f"${{{logical}}}" for logical in stack.functions.values()}
        if name == "GlobalSecondaryIndexName":
            allowed = {repo.due_index}
        if allowed is not None and value not in allowed:
            yield f"{namespace} {metric}: {name} is {value}"


@rule
def alarms_watch_what_exists(stack: Stack, repo: Repo) -> Iterator[str]:
    watched = {}
    alarms = stack.of("AWS::CloudWatch::Alarm")
    if len(alarms) > 10:
        yield f"there are {len(alarms)} alarms, but only ten are free"
    for name, alarm in alarms.items():
        dimensions = {d["Name"]: sub(d["Value"]) for d in alarm.get("Dimensions", [])}
        namespace = sub(alarm["Namespace"])
        for sentence in wrong(stack, repo, namespace, alarm["MetricName"], dimensions):
            yield f"{name}: {sentence}"
        subject = dimensions.get("GlobalSecondaryIndexName") or next(iter(dimensions.values()), "")
        direction = alarm["ComparisonOperator"][0].replace("G", ">").replace("L", "<")
        watched[namespace, alarm["MetricName"], subject] = direction
        if [target(action) for action in alarm.get("AlarmActions", [])] != ["Alarms"]:
            yield f"{name}: nobody hears it"
        if alarm.get("ActionsEnabled", True) is not True:
            yield f"{name}: is muted"
        # Missing data means that nothing happened. Only for the alarms on a silent sweep and a silent watchdog is that the fault.
        missing = "breaching" if direction == "<" else "notBreaching"
        if alarm.get("TreatMissingData") != missing:
            yield f"{name}: missing data must be {missing}"
        if alarm["Period"] % 60 or alarm["Period"] * alarm["EvaluationPeriods"] > 86_400:
            yield f"{name}: its period is {alarm['Period']} × {alarm['EvaluationPeriods']}"
        if alarm.get("DatapointsToAlarm", 1) > alarm["EvaluationPeriods"]:
            yield f"{name}: needs more breaching periods than it evaluates"
        statistics = {"AWS/Lambda": "Sum", "AWS/ApiGateway": "Sum", "AWS/DynamoDB": "Sum"}
        if (
            alarm.get("Statistic") != statistics.get(namespace, alarm.get("Statistic"))
            or alarm.get("Statistic") == "SampleCount"
        ):
            yield f"{name}: its statistic is {alarm.get('Statistic')}"
    for key, direction in WATCHED.items():
        if watched.get(key) != direction:
            yield f"no alarm watches {' '.join(key)} {direction}"


@rule
def the_manual_says_what_each_alarm_notices(stack: Stack, repo: Repo) -> Iterator[str]:
    """The table of what goes wrong: one row for each alarm, with the minutes after which it rings."""
    table = repo.text("docs/operations.md").split("\n## What goes wrong\n")[-1].split("\n## ")[0]
    rows = dict(re.findall(r"^\| [^|]+ \| `(\w+Alarm)` \| the operator \| (\d+) minutes? \|$", table, re.MULTILINE))
    alarms = stack.of("AWS::CloudWatch::Alarm")
    for name in sorted(rows.keys() ^ alarms.keys()):
        yield f"{name}: must be an alarm, and have a row in the manual's table of what goes wrong"
    for name in sorted(rows.keys() & alarms.keys()):
        minutes = alarms[name]["Period"] * alarms[name]["EvaluationPeriods"] // 60
        if int(rows[name]) != minutes:
            yield f"{name}: rings after {minutes} minutes, but the manual says {rows[name]}"


@rule
def alarms_can_be_sent(stack: Stack, repo: Repo) -> Iterator[str]:
    topic = stack.properties("Alarms")
    if "aws/sns" in sub(topic.get("KmsMasterKeyId", "")):
        yield "CloudWatch may not use the AWS-managed key: alarms would be lost"
    allowed = [
        statement
        for policy in stack.of("AWS::SNS::TopicPolicy").values()
        if "Alarms" in map(target, policy["Topics"])
        for statement in policy["PolicyDocument"]["Statement"]
        if statement.get("Principal") == {"Service": "cloudwatch.amazonaws.com"}
        and statement["Action"] == "sns:Publish"
        and target(statement["Resource"]) == "Alarms"
    ]
    if not allowed:
        yield "CloudWatch may not publish to the topic"
    for subscription in stack.of("AWS::SNS::Subscription").values():
        if target(subscription["TopicArn"]) != "Alarms":
            yield f"the subscription is to {subscription['TopicArn']}"


@rule
def spending_alerts_reach_the_topic(stack: Stack, repo: Repo) -> Iterator[str]:
    yield from reaches_the_topic(stack, *repo.spending_alert)


@rule
def action_alerts_reach_the_topic(stack: Stack, repo: Repo) -> Iterator[str]:
    yield from reaches_the_topic(stack, *repo.action_alert)


@rule
def alerts_about_the_platform_reach_the_topic(stack: Stack, repo: Repo) -> Iterator[str]:
    # What the watchdog says about an owner, the owner is told.
    yield from reaches_the_topic(stack, *repo.watchdog_alert, detail={"owner": [{"exists": False}]})


def reaches_the_topic(
    stack: Stack, source: str, kind: str, fields: set[str], detail: dict | None = None
) -> Iterator[str]:
    """Someone is told of each event of this kind, in a sentence of fields that the event has."""
    rules = {
        name: rule
        for name, rule in stack.of("AWS::Events::Rule").items()
        if kind in rule.get("EventPattern", {}).get("detail-type", ())
    }
    if len(rules) != 1:
        yield f"there must be one rule for {kind}, but there are {sorted(rules)}"
    for name, found in rules.items():
        if found["EventPattern"] != {"source": [source], "detail-type": [kind], **({"detail": detail} if detail else {})}:
            yield f"{name}: matches {found['EventPattern']}"
        if target(found.get("EventBusName")) != "Bus" or found.get("State", "ENABLED") != "ENABLED":
            yield f"{name}: must be enabled, on the stack's bus"
        if [target(to["Arn"]) for to in found["Targets"]] != ["Alarms"]:
            yield f"{name}: tells {found['Targets']}"
        for to in found["Targets"]:
            transformer = to.get("InputTransformer", {})
            paths, text = transformer.get("InputPathsMap", {}), transformer.get("InputTemplate", "")
            for path in paths.values():
                if path.removeprefix("$.detail.") not in fields:
                    yield f"{name}: the event has no {path}"
            if set(re.findall(r"<(\w+)>", text)) != set(paths) or not paths:
                yield f"{name}: the sentence uses other names than {sorted(paths)}"
            # EventBridge takes a text only in quotes, and on one line.
            if not re.fullmatch(r'"[^"\n]+"', text):
                yield f"{name}: the sentence must be one line in quotes, is {text!r}"
        allowed = [
            statement
            for policy in stack.of("AWS::SNS::TopicPolicy").values()
            if "Alarms" in map(target, policy["Topics"])
            for statement in policy["PolicyDocument"]["Statement"]
            if statement["Effect"] == "Allow"
            and statement.get("Principal") == {"Service": "events.amazonaws.com"}
            and statement["Action"] == "sns:Publish"
            and target(statement["Resource"]) == "Alarms"
            and "Condition" not in statement
        ]
        if not allowed:
            yield f"{name}: EventBridge may not publish to the topic"


@rule
def the_dashboard_shows_what_exists(stack: Stack, repo: Repo) -> Iterator[str]:
    for name, dashboard in stack.of("AWS::CloudWatch::Dashboard").items():
        body = dashboard["DashboardBody"]["Fn::Sub"]
        text, names = body if isinstance(body, list) else (body, {})
        for reference in sorted(set(re.findall(r"\$\{([\w:]+)", text)) - set(names)):
            known = reference in stack.resources or reference.startswith("AWS::")
            if not known and reference != "Api":
                yield f"{name}: refers to {reference}, which does not exist"
        try:
            widgets = json.loads(text)["widgets"]
        except (ValueError, KeyError) as error:
            yield f"{name}: is not a dashboard: {error}"
            continue
        for widget in widgets:
            for namespace, metric, *rest in widget["properties"]["metrics"]:
                pairs = [value for value in rest if isinstance(value, str)]
                for sentence in wrong(stack, repo, namespace, metric, dict(zip(pairs[::2], pairs[1::2], strict=True))):
                    yield f"{name}: {widget['properties']['title']}: {sentence}"
        functions = {f"${{{name}}}" for name in stack.of("AWS::Lambda::Function")}
        for metric in ("Invocations", "Errors", "Duration"):
            shown = {one[3] for widget in widgets for one in widget["properties"]["metrics"] if one[:2] == ["AWS/Lambda", metric]}
            for missing in sorted(functions - shown):
                yield f"{name}: does not show {metric} of {missing}"
        if "AWS/X-Ray" in text or not widgets:
            yield f"{name}: is empty"


@rule
def outputs_name_what_one_needs(stack: Stack, repo: Repo) -> Iterator[str]:
    outputs = stack.template.get("Outputs", {})
    wanted = {
        "Url": "Api",
        "AccountFunction": "AccountFunction",
        "Table": "Table",
        "Bucket": "Bucket",
        "Bus": "Bus",
        "Queue": "Queue",
        "DeadLetters": "DeadLetters",
        "Alarms": "Alarms",
    }
    for name, resource in wanted.items():
        value = outputs.get(name, {}).get("Value")
        if f"${{{resource}}}" not in sub(value):
            yield f"the output {name} must be {resource}, is {sub(value)}"
