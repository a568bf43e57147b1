"""The sources of the console: names that nobody declares. The build joins all modules into one scope, where a forgotten import works by chance."""

import pathlib
import re
import shutil
import subprocess

import pytest

from conftest import ROOT

TSC = pathlib.Path(__file__).parent / "node_modules/typescript/bin/tsc"
MAIN = ROOT / "functions/console/web/js/main.js"
# An unknown name, an import that does not exist, a name that is declared twice.
CODES = {"TS2304", "TS2305", "TS2307", "TS2552", "TS2300", "TS2451", "TS2724"}


def faults(main):
    if not TSC.exists():
        pytest.fail(f"{TSC} does not exist: npm install --prefix tests/browser")
    options = ["--noEmit", "--allowJs", "--checkJs", "--target", "es2024", "--module", "esnext", "--moduleResolution", "bundler", "--lib", "es2024,dom,dom.iterable"]
    found = subprocess.run([shutil.which("node"), str(TSC), *options, str(main)], capture_output=True, text=True, timeout=120)
    return [line for line in found.stdout.splitlines() if re.search(r"error (TS\d+)", line) and re.search(r"error (TS\d+)", line)[1] in CODES]


def test_every_name_is_declared_or_imported():
    assert faults(MAIN) == []


def test_a_forgotten_import_is_found(tmp_path):
    (tmp_path / "main.js").write_text('import { a } from "./a.js";\na();\nframe.prepare();\n')
    (tmp_path / "a.js").write_text("export const a = () => 1;\n")
    assert len(faults(tmp_path / "main.js")) == 1
