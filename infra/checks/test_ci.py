"""CI builds a few functions for the processor that they run on. Those contain every dependency of all functions."""

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TARGET = ("--target", "aarch64-unknown-linux-gnu")


def dependencies(packages: list[str]) -> set[str]:
    """The packages that a build for the functions' processor compiles, without those of the workspace."""
    selection = [word for package in packages for word in ("--package", package)]
    tree = ["cargo", "tree", "--locked", "--prefix", "none", "--format", "{p}", "--edges", "normal", *TARGET, *selection]
    lines = subprocess.run(tree, cwd=ROOT, check=True, capture_output=True, text=True).stdout.splitlines()
    return {line.removesuffix(" (*)") for line in lines if line and f"({ROOT}" not in line}


def test_the_functions_that_are_built_for_their_processor_contain_every_dependency():
    script = (ROOT / ".ci/run").read_text()
    line = next(line for line in script.splitlines() if "cargo lambda build" in line and "--arm64" in line)
    built = re.findall(r"--package ([a-z-]+)", line)
    functions = [folder.name for folder in (ROOT / "functions").iterdir() if (folder / "src/main.rs").exists()]
    assert set(built) < set(functions)
    missing = dependencies(functions) - dependencies(built)
    assert not missing, f"no function that `deployable` builds contains {sorted(missing)}"
