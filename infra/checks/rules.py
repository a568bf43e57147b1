"""What must be true of the translated template and no tool tells: each rule yields a sentence for what is wrong."""

from collections.abc import Callable, Iterator

from sources import Repo
from template import Stack

Rule = Callable[[Stack, Repo], Iterator[str]]
RULES: list[Rule] = []


def rule(check: Rule) -> Rule:
    RULES.append(check)
    return check


def faults(stack: Stack, repo: Repo) -> list[str]:
    """Every rule's sentences, each behind the name of its rule."""
    import rules_api  # noqa: F401  each registers its rules
    import rules_data  # noqa: F401
    import rules_functions  # noqa: F401
    import rules_metrics  # noqa: F401
    import rules_rights  # noqa: F401
    import rules_themes  # noqa: F401
    import rules_time  # noqa: F401

    return [f"{check.__name__}: {sentence}" for check in RULES for sentence in check(stack, repo)]
