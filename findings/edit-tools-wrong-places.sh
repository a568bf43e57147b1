#!/usr/bin/env bash
# Guess:    a tool that applies an edit of a model either changes the meant place and nothing else, or says that it did not.
# Reality:  Codex's apply_patch and aider take the first of two equal places and report success. apply_patch puts lines under a header
#           without context at the end of the file, creates and moves files onto files that exist, loses the indentation of a line that
#           it adds where it tolerated another one, and makes an LF line CRLF if the file begins with a CRLF line. Both leave the
#           first file changed when the second fails, and add a final newline that the file lacked; aider writes LF for every CRLF.
#           jsdiff doubles lines, without an error, if two hunks stand in the wrong order. `git apply` does none of this, but it
#           refuses LF edits of CRLF files and other blanks. None of the four edits the first line behind a byte order mark.
# Versions: @openai/codex 0.171.0 and diff 9.0.0 (npm), aider-chat 0.86.2 (PyPI), git 2.47.3 (another version may differ).
# Why:      the model reads "Success" and goes on. Nobody looks at a file that was edited at the wrong place, or at all its line ends.
# Seen:     2026-11-30, the text at the end of this script: what became of the file.
#           Needs git, Python 3.11 or 3.12 (for aider), and 1.2 GB on the disk while it runs.
set -euo pipefail
. "$(dirname "$0")/common.sh"
npm_packages @openai/codex@0.171.0 diff@9.0.0
pip_packages aider-chat==0.86.2

codex=$(find "$WORK/node_modules/@openai" -path '*/bin/codex' -type f -not -name '*.js' | head -n 1)
if [ -z "$codex" ]; then
    echo "Codex has no binary for this machine, so its lines are missing." >&2
    exit 1
fi
ln -s "$codex" "$WORK/apply_patch"

cat > "$WORK/jsdiff.cjs" <<'END'
const [before, patch] = JSON.parse(require('fs').readFileSync(0, 'utf8'));
process.stdout.write(JSON.stringify(require('diff').applyPatch(before, patch)));
END
cat > "$WORK/probe.py" <<'END'
import json, os, shutil, subprocess
from aider.coders.editblock_coder import EditBlockCoder
from aider.io import InputOutput

WORK = os.getcwd()
os.environ.update(GIT_CONFIG_GLOBAL="/dev/null", GIT_CONFIG_NOSYSTEM="1", GIT_CEILING_DIRECTORIES=WORK)

def fresh(files):
    shutil.rmtree("theme", ignore_errors=True)
    os.mkdir("theme")
    for name, text in files.items():
        open(f"theme/{name}", "wb").write(text.encode())

def after():
    return {name: open(f"theme/{name}", "rb").read().decode() for name in sorted(os.listdir("theme"))}

def show(case, tool, ok, before):
    now = after()
    what = "changes nothing" if now == before else ", ".join(f"{name} {json.dumps(text)}" for name, text in now.items() if before.get(name) != text)
    gone = "".join(f", {name} is gone" for name in before if name not in now)
    print(f"{case}: {tool} {'succeeds' if ok else 'fails'}: {what}{gone}")

def process(case, tool, files, command, text):
    fresh(files)
    done = subprocess.run(command, input=text.encode(), cwd="theme", capture_output=True, timeout=60)
    show(case, tool, done.returncode == 0, files)

def codex(case, files, patch):
    process(case, "Codex", files, [f"{WORK}/apply_patch"], f"*** Begin Patch\n{patch}*** End Patch\n")

def git(case, files, diff, *options):
    process(case, "git apply", files, ["git", "apply", *options], diff)

def aider(case, files, edits):
    fresh(files)
    coder = EditBlockCoder.__new__(EditBlockCoder)
    coder.io, coder.root, coder.fence = InputOutput(pretty=False, yes=True), f"{WORK}/theme", ("```", "```")
    coder.abs_fnames, coder.abs_root_path_cache = {f"{WORK}/theme/{name}" for name in files}, {}
    try:
        coder.apply_edits(edits)
        ok = True
    except ValueError:
        ok = False
    show(case, "aider", ok, files)

def jsdiff(case, files, diff):
    (name, text), = files.items()
    fresh(files)
    done = subprocess.run(["node", f"{WORK}/jsdiff.cjs"], input=json.dumps([text, diff]).encode(), capture_output=True, timeout=60, check=True)
    made = json.loads(done.stdout)
    if made is not False:
        open(f"theme/{name}", "wb").write(made.encode())
    show(case, "jsdiff", made is not False, files)

def everywhere(case, text, *hunks):
    """Each hunk is the number of its first line, and lines with the signs of a diff."""
    files = {"a.liquid": text}
    side = lambda lines, sign: [line[1:] for line in lines if line[0] in " " + sign]
    codex(case, files, "*** Update File: a.liquid\n" + "".join("@@\n" + "".join(line + "\n" for line in lines) for _, lines in hunks))
    aider(case, files, [("a.liquid", *("".join(line + "\n" for line in side(lines, sign)) for sign in "-+")) for _, lines in hunks])
    diff = "--- a/a.liquid\n+++ b/a.liquid\n"
    for start, lines in hunks:
        diff += f"@@ -{start},{len(side(lines, '-'))} +{start},{len(side(lines, '+'))} @@\n" + "".join(line + "\n" for line in lines)
    git(case, files, diff, "--unidiff-zero")
    jsdiff(case, files, diff)

everywhere("the text stands twice, the diff says line 4", "<b>\n<br>\n<i>\n<br>\n", (4, ["-<br>", "+<hr>"]))
everywhere("other indentation", "  <ul>\n    <li>\n  </ul>\n", (1, [" <ul>", "   <li>", "+  <b>", " </ul>"]))
everywhere("blanks at a line's end", "<b>  \n<i>\n", (1, [" <b>", "-<i>", "+<p>"]))
everywhere("CRLF file, LF edit", "<b>\r\n<i>\r\n<u>\r\n", (1, [" <b>", "-<i>", "+<p>"]))
everywhere("two kinds of line ends", "<b>\r\n<i>\n<u>\r\n", (2, ["-<i>", "+<p>"]))
everywhere("no final newline", "<b>\n<i>\n<u>\n<p>", (1, ["-<b>", "+<p>", " <i>"]))
everywhere("byte order mark", "\ufeff<b>\n<i>\n", (1, ["-<b>", "+<p>", " <i>"]))
everywhere("two hunks in the wrong order", "<b>\n<i>\n<u>\n<p>\n", (4, ["-<p>", "+<br>"]), (1, ["-<b>", "+<hr>"]))

codex("lines under a header, without context", {"a.liquid": "<ul>\n</ul>\n<p>\n</p>\n"}, "*** Update File: a.liquid\n@@ <ul>\n+  <li>\n")
two = {"a.liquid": "<b>\n", "b.liquid": "<i>\n"}
codex("the second of two files fails", two, "*** Update File: a.liquid\n@@\n-<b>\n+<p>\n*** Update File: b.liquid\n@@\n-<u>\n+<p>\n")
git("the second of two files fails", two, "--- a/a.liquid\n+++ b/a.liquid\n@@ -1 +1 @@\n-<b>\n+<p>\n--- a/b.liquid\n+++ b/b.liquid\n@@ -1 +1 @@\n-<u>\n+<p>\n")
aider("the second of two files fails", two, [("a.liquid", "<b>\n", "<p>\n"), ("b.liquid", "<u>\n", "<p>\n")])
codex("create what exists", two, "*** Add File: b.liquid\n+<p>\n")
git("create what exists", two, "--- /dev/null\n+++ b/b.liquid\n@@ -0,0 +1 @@\n+<p>\n")
codex("move onto what exists", two, "*** Update File: a.liquid\n*** Move to: b.liquid\n@@\n-<b>\n+<p>\n")
git("move onto what exists", two, "diff --git a/a.liquid b/b.liquid\nsimilarity index 100%\nrename from a.liquid\nrename to b.liquid\n")
END
probe "$PYTHON" probe.py
expect "four tools edit wrong places, line ends and files" <<'END'
the text stands twice, the diff says line 4: Codex succeeds: a.liquid "<b>\n<hr>\n<i>\n<br>\n"
the text stands twice, the diff says line 4: aider succeeds: a.liquid "<b>\n<hr>\n<i>\n<br>\n"
the text stands twice, the diff says line 4: git apply succeeds: a.liquid "<b>\n<br>\n<i>\n<hr>\n"
the text stands twice, the diff says line 4: jsdiff succeeds: a.liquid "<b>\n<br>\n<i>\n<hr>\n"
other indentation: Codex succeeds: a.liquid "  <ul>\n    <li>\n  <b>\n  </ul>\n"
other indentation: aider succeeds: a.liquid "  <ul>\n    <li>\n    <b>\n  </ul>\n"
other indentation: git apply fails: changes nothing
other indentation: jsdiff fails: changes nothing
blanks at a line's end: Codex succeeds: a.liquid "<b>  \n<p>\n"
blanks at a line's end: aider fails: changes nothing
blanks at a line's end: git apply fails: changes nothing
blanks at a line's end: jsdiff fails: changes nothing
CRLF file, LF edit: Codex succeeds: a.liquid "<b>\r\n<p>\r\n<u>\r\n"
CRLF file, LF edit: aider succeeds: a.liquid "<b>\n<p>\n<u>\n"
CRLF file, LF edit: git apply fails: changes nothing
CRLF file, LF edit: jsdiff succeeds: a.liquid "<b>\r\n<p>\r\n<u>\r\n"
two kinds of line ends: Codex succeeds: a.liquid "<b>\r\n<p>\r\n<u>\r\n"
two kinds of line ends: aider succeeds: a.liquid "<b>\n<p>\n<u>\n"
two kinds of line ends: git apply succeeds: a.liquid "<b>\r\n<p>\n<u>\r\n"
two kinds of line ends: jsdiff succeeds: a.liquid "<b>\r\n<p>\n<u>\r\n"
no final newline: Codex succeeds: a.liquid "<p>\n<i>\n<u>\n<p>\n"
no final newline: aider succeeds: a.liquid "<p>\n<i>\n<u>\n<p>\n"
no final newline: git apply succeeds: a.liquid "<p>\n<i>\n<u>\n<p>"
no final newline: jsdiff succeeds: a.liquid "<p>\n<i>\n<u>\n<p>"
byte order mark: Codex fails: changes nothing
byte order mark: aider fails: changes nothing
byte order mark: git apply fails: changes nothing
byte order mark: jsdiff fails: changes nothing
two hunks in the wrong order: Codex fails: changes nothing
two hunks in the wrong order: aider succeeds: a.liquid "<hr>\n<i>\n<u>\n<br>\n"
two hunks in the wrong order: git apply succeeds: a.liquid "<hr>\n<i>\n<u>\n<br>\n"
two hunks in the wrong order: jsdiff succeeds: a.liquid "<b>\n<i>\n<u>\n<br>\n<hr>\n<i>\n<u>\n<p>\n"
lines under a header, without context: Codex succeeds: a.liquid "<ul>\n</ul>\n<p>\n</p>\n  <li>\n"
the second of two files fails: Codex fails: a.liquid "<p>\n"
the second of two files fails: git apply fails: changes nothing
the second of two files fails: aider fails: a.liquid "<p>\n"
create what exists: Codex succeeds: b.liquid "<p>\n"
create what exists: git apply fails: changes nothing
move onto what exists: Codex succeeds: b.liquid "<p>\n", a.liquid is gone
move onto what exists: git apply fails: changes nothing
END
