"""Holds the policy of deny.toml over `cargo metadata`: licences, bans and sources.

For machines without cargo-deny, which takes longer to build than everything here. It reads the licence that a crate
declares, where cargo-deny reads the licence files too.
"""

import json
import re
import subprocess
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def allowed(expression: str, allow: set[str]) -> bool:
    """Whether an SPDX expression can be satisfied by licences of `allow`; AND binds tighter than OR."""
    # Before SPDX expressions a slash meant "or".
    tokens = re.findall(r"[()]|[^()\s]+", expression.replace("/", " OR "))
    at = 0

    def peek() -> str | None:
        return tokens[at] if at < len(tokens) else None

    def take() -> str:
        nonlocal at
        if at == len(tokens):
            raise ValueError(f"{expression!r} ends too early")
        at += 1
        return tokens[at - 1]

    def atom() -> bool:
        name = take()
        if name == "(":
            value = either()
            if take() != ")":
                raise ValueError(f"{expression!r} lacks a parenthesis")
            return value
        if peek() == "WITH":
            take()
            name += f" WITH {take()}"
        return name in allow

    def both() -> bool:
        value = atom()
        while peek() == "AND":
            take()
            value = atom() and value
        return value

    def either() -> bool:
        value = both()
        while peek() == "OR":
            take()
            value = both() or value
        return value

    value = either()
    if peek() is not None:
        raise ValueError(f"{expression!r} goes on with {peek()!r}")
    return value


def faults(metadata: dict, policy: dict) -> Iterator[str]:
    """What of the dependencies the policy does not allow."""
    used = {node["id"] for node in metadata["resolve"]["nodes"]}
    members = set(metadata["workspace_members"])
    packages = [package for package in metadata["packages"] if package["id"] in used]
    allow = set(policy["licenses"]["allow"])
    registries = {f"registry+{url}" for url in policy["sources"]["allow-registry"]}
    versions: dict[str, set[str]] = defaultdict(set)
    for package in packages:
        name = f"{package['name']} {package['version']}"
        versions[package["name"]].add(package["version"])
        if not package["license"]:
            yield f"licenses: {name} declares none"
        elif not allowed(package["license"], allow):
            yield f"licenses: {name} is under {package['license']}"
        if package["source"] is not None and package["source"] not in registries:
            yield f"sources: {name} comes from {package['source']}"
        if package["id"] in members:
            for dependency in package["dependencies"]:
                if dependency["req"] == "*" and not dependency.get("path"):
                    yield f"bans: {name} takes any version of {dependency['name']}"
    for ban in policy["bans"]["deny"]:
        found = sorted(versions.get(ban["crate"], ()))
        if ban.get("deny-multiple-versions"):
            if len(found) > 1:
                yield f"bans: {ban['crate']} is there in the versions {', '.join(found)}"
        elif found:
            yield f"bans: {ban['crate']} {', '.join(found)} is there"


def main() -> int:
    policy = tomllib.loads((ROOT / "deny.toml").read_text())
    platforms = [part for target in policy["graph"]["targets"] for part in ("--filter-platform", target)]
    command = ["cargo", "metadata", "--locked", "--format-version", "1", *platforms]
    metadata = json.loads(subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout)
    found = list(faults(metadata, policy))
    print("\n".join(found) or f"{len(metadata['resolve']['nodes'])} packages are as deny.toml would have them")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
