"""CloudWatch as far as our alarms need it: metrics in the embedded format, and the state of an alarm over them. The emulator does neither.

Written from AWS's documents ("Embedded metric format specification", "Configuring how CloudWatch alarms treat missing data").
"""

import json
import operator
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

STATISTICS = {"Sum": sum, "Maximum": max, "Minimum": min}
COMPARISONS = {
    "GreaterThanOrEqualToThreshold": operator.ge,
    "GreaterThanThreshold": operator.gt,
    "LessThanOrEqualToThreshold": operator.le,
    "LessThanThreshold": operator.lt,
}
# What a period without a figure counts as.
MISSING = {"breaching": True, "notBreaching": False}


@dataclass(frozen=True)
class Metric:
    namespace: str
    name: str
    dimensions: frozenset[tuple[str, str]]


@dataclass(frozen=True)
class Figure:
    metric: Metric
    # In seconds.
    at: float
    value: float


def figures(lines: Iterable[str]) -> Iterator[Figure]:
    """What CloudWatch reads in lines of logs: a figure for each metric and each set of dimensions."""
    for line in lines:
        if '"_aws"' not in line:
            continue
        said = json.loads(line)
        for directive in said["_aws"]["CloudWatchMetrics"]:
            for names in directive["Dimensions"]:
                dimensions = frozenset((name, said[name]) for name in names)
                for metric in directive["Metrics"]:
                    found = Metric(directive["Namespace"], metric["Name"], dimensions)
                    yield Figure(found, said["_aws"]["Timestamp"] / 1000, said[metric["Name"]])


def watched(alarm: dict) -> Metric:
    """The metric of an alarm, as DescribeAlarms names it."""
    dimensions = frozenset((each["Name"], each["Value"]) for each in alarm["Dimensions"])
    return Metric(alarm["Namespace"], alarm["MetricName"], dimensions)


def rings(alarm: dict, found: Iterable[Figure], now: float) -> bool:
    """Whether an alarm is in the state ALARM at this time."""
    period, periods = alarm["Period"], alarm["EvaluationPeriods"]
    of = [figure for figure in found if figure.metric == watched(alarm)]

    def breaches(end: float) -> bool:
        values = [figure.value for figure in of if end - period < figure.at <= end]
        if not values:
            return MISSING[alarm["TreatMissingData"]]
        return COMPARISONS[alarm["ComparisonOperator"]](STATISTICS[alarm["Statistic"]](values), alarm["Threshold"])

    breaching = sum(breaches(now - number * period) for number in range(periods))
    return breaching >= alarm.get("DatapointsToAlarm", periods)
