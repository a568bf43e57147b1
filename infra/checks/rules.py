"""Rules for the translated template that no other tool checks. Each rule yields a sentence per fault."""

from collections.abc import Callable, Iterator

from sources import Repo
from template import Stack

Rule = Callable[[Stack, Repo], Iterator[str]]
RULES: list[Rule] = []


def rule(check: Rule) -> Rule:
    RULES.append(check)
    return check


def faults(stack: Stack, repo: Repo) -> list[str]:
    """The sentences of all rules, each prefixed with the name of its rule."""
    import rules_api  # noqa: F401  each module registers its rules
    import rules_data  # noqa: F401
    import rules_functions  # noqa: F401
    import rules_metrics  # noqa: F401
    import rules_rights  # noqa: F401
    import rules_themes  # noqa: F401
    import rules_time  # noqa: F401

    return [f"{check.__name__}: {sentence}" for check in RULES for sentence in check(stack, repo)]
