"""`cargo run` and `cargo test` compile the same dependencies with the same features, so neither repeats the other's build."""

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def built(*selection: str) -> set[str]:
    """Packages with their features."""
    tree = ["cargo", "tree", "--locked", "--prefix", "none", "--format", "{p} [{f}]", *selection]
    lines = subprocess.run(tree, cwd=ROOT, check=True, capture_output=True, text=True).stdout.splitlines()
    return {line.removesuffix(" (*)") for line in lines if line}


@pytest.mark.parametrize(
    "selection",
    [("--package", "lamplighter-local", "--edges", "normal,build"), ("--package", "tests", "--edges", "normal,build,dev")],
)
def test_a_part_is_compiled_like_the_whole_workspace(selection):
    only = built(*selection) - built("--workspace", "--edges", "normal,build,dev")
    assert not only, f"compiled with other features than in the workspace; add them in infra/local/Cargo.toml: {only}"
