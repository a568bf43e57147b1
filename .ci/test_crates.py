"""The policy of dependencies speaks when it is broken."""

import copy
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from crates import ROOT, allowed, faults

ALLOW = {"MIT", "Apache-2.0", "ISC", "Apache-2.0 WITH LLVM-exception"}
CRATES_IO = "registry+https://github.com/rust-lang/crates.io-index"


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("MIT", True),
        ("GPL-3.0", False),
        ("GPL-3.0 OR MIT", True),
        ("MIT/GPL-3.0", True),
        ("MIT AND GPL-3.0", False),
        ("MIT OR GPL-3.0 AND GPL-2.0", True),
        ("(MIT OR GPL-3.0) AND ISC", True),
        ("(MIT OR ISC) AND GPL-3.0", False),
        ("Apache-2.0 WITH LLVM-exception", True),
        ("MIT WITH LLVM-exception", False),
    ],
)
def test_licence_expressions(expression: str, expected: bool) -> None:
    assert allowed(expression, ALLOW) is expected


@pytest.mark.parametrize("expression", ["", "MIT OR", "(MIT", "MIT ISC", "MIT)"])
def test_what_is_no_expression_is_refused(expression: str) -> None:
    with pytest.raises(ValueError):
        allowed(expression, ALLOW)


def package(name: str, version: str = "1.0.0", **more: object) -> dict:
    plain = {"id": f"{name}@{version}", "license": "MIT", "source": CRATES_IO, "dependencies": []}
    return {"name": name, "version": version, **plain, **more}


WHOLE = [
    package("ours", source=None, dependencies=[{"name": "tokio", "req": "^1"}]),
    package("tokio"),
    package("base64"),
]


def metadata(packages: list[dict]) -> dict:
    nodes = [{"id": each["id"]} for each in packages]
    return {"packages": packages, "resolve": {"nodes": nodes}, "workspace_members": ["ours@1.0.0"]}


@pytest.mark.parametrize(
    ("plant", "expected"),
    [
        (lambda p: None, []),
        (lambda p: p.append(package("base64", "2.0.0")), []),
        (lambda p: p.append(package("tokio", "2.0.0")), ["bans: tokio is there in the versions 1.0.0, 2.0.0"]),
        (lambda p: p.append(package("openssl")), ["bans: openssl 1.0.0 is there"]),
        (lambda p: p.append(package("x", license="AGPL-3.0")), ["licenses: x 1.0.0 is under AGPL-3.0"]),
        (lambda p: p.append(package("x", license=None)), ["licenses: x 1.0.0 declares none"]),
        (lambda p: p.append(package("x", source="git+https://x")), ["sources: x 1.0.0 comes from git+https://x"]),
        (lambda p: p[0]["dependencies"][0].update(req="*"), ["bans: ours 1.0.0 takes any version of tokio"]),
    ],
)
def test_a_planted_fault_is_told(plant: Callable[[list[dict]], object], expected: list[str]) -> None:
    packages = copy.deepcopy(WHOLE)
    plant(packages)
    policy = tomllib.loads((ROOT / "deny.toml").read_text())
    assert list(faults(metadata(packages), policy)) == expected
