"""All rules for the translated template that no other tool checks."""

# Each module adds its rules to the list.
import rules_api  # noqa: F401
import rules_data  # noqa: F401
import rules_functions  # noqa: F401
import rules_metrics  # noqa: F401
import rules_rights  # noqa: F401
import rules_themes  # noqa: F401
import rules_time  # noqa: F401
from registry import RULES
from sources import Repo
from template import Stack


def faults(stack: Stack, repo: Repo) -> list[str]:
    """The sentences of all rules, each prefixed with the name of its rule."""
    return [f"{check.__name__}: {sentence}" for check in RULES for sentence in check(stack, repo)]
