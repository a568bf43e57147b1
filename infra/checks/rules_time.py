"""The path of time: timer, sweep, queue, executor, dead letters."""

import re
from collections.abc import Iterator

from registry import rule
from sources import Repo
from template import Stack, listed, sub, target

UNITS = {"minute": 60, "hour": 3_600, "day": 86_400}


def rate_seconds(expression: str) -> int | None:
    """The seconds between two calls, or None if EventBridge Scheduler would refuse the expression."""
    found = re.fullmatch(r"rate\((\d+) (minute|hour|day)(s?)\)", expression)
    if not found or int(found[1]) < 1 or (int(found[1]) == 1) == bool(found[3]):
        return None
    return int(found[1]) * UNITS[found[2]]


@rule
def the_timer_wakes_the_sweep(stack: Stack, repo: Repo) -> Iterator[str]:
    schedules = stack.of("AWS::Scheduler::Schedule")
    if len(schedules) != 2:
        yield f"there must be two timers, but there are {sorted(schedules)}"
    for name, schedule in schedules.items():
        if target(schedule["Target"]["Arn"]) == stack.functions.get("watchdog"):
            continue
        every = rate_seconds(schedule["ScheduleExpression"])
        if every is None:
            yield f"{name}: {schedule['ScheduleExpression']!r} is not a rate"
        elif every != (repo.timer_seconds or 60):
            yield f"{name}: fires every {every} s, but the code says {repo.timer_seconds or 60}"
        if schedule.get("State", "ENABLED") != "ENABLED" or schedule["FlexibleTimeWindow"] != {"Mode": "OFF"}:
            yield f"{name}: must be enabled, and on time"
        if "${AWS::StackName}" not in sub(schedule.get("Name", "")):
            yield f"{name}: has a name that a second stack would also use"
        sweep = stack.functions.get("schedule-sweep")
        if target(schedule["Target"]["Arn"]) != sweep:
            yield f"{name}: invokes {schedule['Target']['Arn']}"
        role = stack.properties(target(schedule["Target"]["RoleArn"]) or "")
        allowed = {
            (action, target(resource))
            for policy in role.get("Policies", [])
            for statement in listed(policy["PolicyDocument"]["Statement"])
            for action in listed(statement["Action"])
            for resource in listed(statement["Resource"])
        }
        if allowed != {("lambda:InvokeFunction", sweep)}:
            yield f"{name}: its role may {sorted(allowed, key=str)}"


@rule
def a_timer_wakes_the_watchdog(stack: Stack, repo: Repo) -> Iterator[str]:
    watchdog = stack.functions.get("watchdog")
    found = [s for s in stack.of("AWS::Scheduler::Schedule").values() if target(s["Target"]["Arn"]) == watchdog]
    if len(found) != 1:
        yield f"one timer must wake the watchdog, but there are {len(found)}"
    for schedule in found:
        # A quarter past the hour, so that what is due at the hour has begun. The code has the same times.
        if schedule["ScheduleExpression"] != "cron(15 0/2 * * ? *)" or schedule.get("ScheduleExpressionTimezone"):
            yield f"the watchdog must look a quarter past every second hour of UTC, not {schedule['ScheduleExpression']!r}"
        if schedule.get("State", "ENABLED") != "ENABLED" or schedule["FlexibleTimeWindow"] != {"Mode": "OFF"}:
            yield "the timer of the watchdog must be enabled, and on time"
        if "${AWS::StackName}" not in sub(schedule.get("Name", "")):
            yield "the timer of the watchdog has a name that a second stack would also use"


@rule
def a_failed_sweep_is_left_to_the_next(stack: Stack, repo: Repo) -> Iterator[str]:
    sweep = stack.functions.get("schedule-sweep")
    configs = [c for c in stack.of("AWS::Lambda::EventInvokeConfig").values() if target(c["FunctionName"]) == sweep]
    if [c.get("MaximumRetryAttempts") for c in configs] != [0]:
        yield "Lambda retries a failed sweep: sweeps would pile up"
    if stack.function("schedule-sweep").get("Timeout", 3) > 60:
        yield "a sweep may take longer than a minute, the time until the next one"


MAIL_EVENTS = {
    "source": ["aws.ses"],
    "detail-type": ["Email Bounced", "Email Complaint Received"],
    "detail": {"mail": {"tags": {"ses:configuration-set": [{"Ref": "MailEvents"}]}}},
}


@rule
def the_bus_has_no_part_in_due_items(stack: Stack, repo: Repo) -> Iterator[str]:
    for name, rule in stack.of("AWS::Events::Rule").items():
        targets = [target(to["Arn"]) for to in rule.get("Targets", [])]
        if name != "MailEventsRule" and targets != ["Alarms"]:
            yield f"{name}: due items go to the queue directly; a rule can't delay, and only alerts need one"
    for name, properties in stack.of("AWS::SQS::QueuePolicy").items():
        if name != "QueuePolicy" and "Queue" in map(target, properties["Queues"]):
            yield f"{name}: functions send to Queue by their own permissions, nobody else does"


@rule
def only_our_mails_are_told(stack: Stack, repo: Repo) -> Iterator[str]:
    """Amazon SES tells of e-mails that came back, through a rule of the default bus, which alone may send to Queue."""
    rule = stack.properties("MailEventsRule")
    if rule.get("EventPattern") != MAIL_EVENTS or "EventBusName" in rule:
        yield f"MailEventsRule: must match the bounces and complaints of our configuration set on the default bus: {rule.get('EventPattern')}"
    if [target(to["Arn"]) for to in rule.get("Targets", [])] != ["Queue"] or any(set(to) != {"Id", "Arn"} for to in rule["Targets"]):
        yield "MailEventsRule: must send the event as it is to Queue, and nowhere else"
    statements = stack.properties("QueuePolicy")["PolicyDocument"]["Statement"]
    allowed = {
        "Effect": "Allow",
        "Principal": {"Service": "events.amazonaws.com"},
        "Action": "sqs:SendMessage",
        "Resource": {"Fn::GetAtt": ["Queue", "Arn"]},
        "Condition": {"ArnEquals": {"aws:SourceArn": {"Fn::GetAtt": ["MailEventsRule", "Arn"]}}},
    }
    if statements != [allowed]:
        yield f"QueuePolicy: only MailEventsRule may send: {statements}"
    events = stack.properties("MailEventsDestination")["EventDestination"]
    if not events.get("Enabled") or set(events.get("MatchingEventTypes", [])) != {"BOUNCE", "COMPLAINT"} or "EventBridgeDestination" not in events:
        yield f"MailEventsDestination: must publish bounces and complaints on the bus: {events}"


@rule
def nobody_else_may_send(stack: Stack, repo: Repo) -> Iterator[str]:
    for queue in stack.of("AWS::SQS::Queue"):
        for statement in stack.queue_policies(queue):
            if statement["Effect"] == "Allow" and (statement.get("Principal") == "*" or "Condition" not in statement):
                yield f"{queue}: accepts messages from everybody"


@rule
def the_queue_waits_and_gives_up(stack: Stack, repo: Repo) -> Iterator[str]:
    queue, letters = stack.properties("Queue"), stack.properties("DeadLetters")
    timeout = stack.function("scheduled-executor").get("Timeout", 3)
    if timeout != 900:
        yield f"an executor has {timeout} s, but 900 s are possible"
    if queue.get("VisibilityTimeout", 30) < 6 * timeout:
        yield f"VisibilityTimeout must be at least 6 × {timeout}, is {queue.get('VisibilityTimeout', 30)}"
    redrive = queue.get("RedrivePolicy", {})
    if target(redrive.get("deadLetterTargetArn")) != "DeadLetters" or redrive.get("maxReceiveCount") != repo.receives:
        yield f"a message must go to DeadLetters after {repo.receives} tries, not {redrive}"
    if letters.get("MessageRetentionPeriod", 0) != 1_209_600:
        yield "dead letters must be kept for 14 days, the maximum"
    if queue.get("MessageRetentionPeriod", 345_600) >= letters.get("MessageRetentionPeriod", 345_600):
        yield "a dead letter keeps its age, so the dead letter queue must keep messages longer"
    for name, each in (("Queue", queue), ("DeadLetters", letters)):
        if each.get("SqsManagedSseEnabled") is not True:
            yield f"{name}: is not encrypted"
        if each.get("FifoQueue") or each.get("DelaySeconds"):
            yield f"{name}: must be a standard queue without a delay of its own: messages have theirs, and their groups"


@rule
def the_executor_takes_ten_at_once(stack: Stack, repo: Repo) -> Iterator[str]:
    mappings = stack.mappings("scheduled-executor")
    if len(mappings) != 1:
        yield f"there must be one mapping, but there are {sorted(mappings)}"
    for name, mapping in mappings.items():
        if target(mapping["EventSourceArn"]) != "Queue":
            yield f"{name}: reads {sub(mapping['EventSourceArn'])}"
        if mapping.get("FunctionResponseTypes") != ["ReportBatchItemFailures"]:
            yield f"{name}: without ReportBatchItemFailures the failed messages that the code reports are deleted"
        if mapping.get("ScalingConfig") != {"MaximumConcurrency": {"Ref": "MaximumExecutors"}}:
            yield f"{name}: MaximumExecutors must bound it, and does not: {mapping.get('ScalingConfig')}"
        if mapping.get("BatchSize") != repo.batch or mapping.get("Enabled", True) is not True:
            yield f"{name}: must be enabled, with {repo.batch} messages at once as in shared/src/runtime/lambda.rs"
        if mapping.get("MaximumBatchingWindowInSeconds"):
            yield f"{name}: a batching window delays every run"
        if mapping.get("FilterCriteria"):
            yield f"{name}: messages that a filter drops are deleted silently"
