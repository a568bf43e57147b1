"""The list of all rules. A rule yields a sentence per fault of the translated template."""

from collections.abc import Callable, Iterator

from sources import Repo
from template import Stack

Rule = Callable[[Stack, Repo], Iterator[str]]
RULES: list[Rule] = []


def rule(check: Rule) -> Rule:
    """Adds a rule to the list."""
    RULES.append(check)
    return check
