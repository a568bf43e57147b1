"""Replays real commits of a theme with the official Python client.

    python theme_replay.py URL DIRECTORY COMMITS    commits of a git repository, spread evenly over its first-parent history
    python theme_replay.py URL --small              a small history that the program writes itself

URL is the server's address (http://127.0.0.1:9000). An assistant's calls make each commit in three ways, each as a change set of its own:
`edit_lines`, `search_replace` and `write_file`. What the change set makes of the files is compared with the commit, byte for byte: through
the versions that the answers name, and through `git apply` of its diff. Two ways are then taken back, and one is applied.

One walk through the history has the files as they are. In the others, all text files have CRLF, no newline at the end, or a byte order mark.
In `written before` somebody else writes the first changed file between the reading and the edit, in `written after` between the edit and
the applying. Then the edit or the applying must be refused, and nothing may be lost.

A refusal that names an argument (`allow_shrink`, `force`) is answered with this argument. The table counts these, too. The last line says
how many replays were wrong; the exit status is 1 if there is one.
"""

import argparse
import asyncio
import functools
import hashlib
import http.client
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import urllib.parse
import zipfile
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import theme_replay_history
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client

FOLDERS = ("assets", "blocks", "config", "layout", "locales", "sections", "snippets", "templates")
BOM = b"\xef\xbb\xbf"
# A change set changes at most 90 files, and a renamed one counts twice.
MOST_WRITES = 90
# A call has at most 50 edits.
MOST_EDITS = 50
# The largest archive that one request takes.
MOST_ARCHIVE = 4_400_000
# A history with more commits is a long one.
LONG_HISTORY = 50
# The edits of larger commits are taken back at once.
MOST_UNDONE = 5
# So few files are written one by one.
FEW_FILES = 50
# More changed files between two commits are imported.
MOST_PUT = 100
WAYS = ("edit_lines", "search_replace", "write_file")
SLOW_MS = 50

# The codes of refusals, each with words of its message: over MCP, a refusal is a text.
CODES = [
    ("file_exists", "exists, and nothing was overwritten"),
    ("bad_path", "is no path of a theme's file"),
    ("not_text", "is not a text file"),
    ("too_large", "are the most: split"),
    ("not_read", "was not read yet"),
    ("changed", "changed since you read it"),
    ("not_found", "the old text is not in"),
    ("ambiguous", "expected: add lines around it"),
    ("no_such_lines", "has lines 1–"),
    ("other_text", "do not have the text of `old`"),
    ("overlap", "change the same place"),
    ("shrinks", "in allow_shrink"),
    ("artefact", "write the code that belongs there"),
    ("required", "a theme does not work without"),
    ("referenced", "change that first, or give force"),
    ("no_such_file", "does not exist"),
    ("theme_changed", "the theme has changed underneath"),
]


def code_of(message: str) -> str:
    return next((code for code, words in CODES if words in message), "other: " + message[:80])


def version_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:12]


def is_text(content: bytes) -> bool:
    if b"\0" in content:
        return False
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True


def plain(content: bytes) -> str:
    """A text as an assistant writes it: with LF, and without a byte order mark."""
    return content.removeprefix(BOM).decode().replace("\r\n", "\n")


def lines_of(content: bytes) -> list[str]:
    """The lines without their ends. A newline at the end opens no other line."""
    text = plain(content)
    return text.removesuffix("\n").split("\n") if text else []


def as_is(content: bytes) -> bytes:
    return content


def with_crlf(content: bytes) -> bytes:
    return content.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")


def without_end(content: bytes) -> bytes:
    shorter = content.removesuffix(b"\n").removesuffix(b"\r")
    return content if shorter.endswith(b"\n") or not shorter else shorter


def with_bom(content: bytes) -> bytes:
    return content if content.startswith(BOM) else BOM + content


WALKS = {"as it is": as_is, "CRLF": with_crlf, "no end": without_end, "BOM": with_bom}
WRITTEN = ("written before", "written after")


def form_of(content: bytes) -> tuple[set[bytes], bool, bool]:
    """What edits keep: the kinds of line ends, the newline at the end, and the byte order mark."""
    ends = {b"\r\n" if line.endswith(b"\r\n") else b"\n" for line in content.splitlines(True) if line.endswith(b"\n")}
    return ends, content.endswith(b"\n"), content.startswith(BOM)


def keeps_form(old: bytes, new: bytes) -> bool:
    """Whether the commit itself keeps what edits keep. If it does not, edits can't make its bytes, and must make its lines."""
    was, is_ = form_of(old), form_of(new)
    return was[1:] == is_[1:] and len(was[0] | is_[0]) <= 1


@dataclass
class Hunk:
    """Lines `start..end` of the old file, from 0, become lines `new_start..new_end` of the new one."""

    start: int
    end: int
    new_start: int
    new_end: int


@dataclass
class FileChange:
    path: str
    old: bytes | None
    new: bytes | None
    # The path before, if the file was renamed.
    source: str | None = None
    hunks: list[Hunk] = field(default_factory=list)

    @property
    def before(self) -> str:
        return self.source or self.path


@dataclass
class Commit:
    name: str
    parent: str
    files: list[FileChange]
    # Files that are no text: they are written with the file API.
    others: list[str]


class Git:
    """A repository, read with git's own commands."""

    def __init__(self, directory: str) -> None:
        self.directory = directory
        # What is set up on this machine must not change what git prints.
        self.environment = os.environ | {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull}
        self.batch = subprocess.Popen(
            ["git", "-C", directory, "cat-file", "--batch"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=self.environment,
        )

    def run(self, *arguments: str) -> bytes:
        command = ["git", "-C", self.directory, *arguments]
        return subprocess.run(command, check=True, capture_output=True, env=self.environment).stdout

    def content(self, name: str) -> bytes:
        assert self.batch.stdin and self.batch.stdout
        self.batch.stdin.write(name.encode() + b"\n")
        self.batch.stdin.flush()
        size = int(self.batch.stdout.readline().split()[2])
        return self.batch.stdout.read(size + 1)[:-1]

    @functools.lru_cache(maxsize=4)
    def tree(self, commit: str) -> dict[str, str]:
        """The blobs of a theme's files by path."""
        listed = self.run("ls-tree", "-r", "-z", commit, "--", *FOLDERS).decode()
        rows = (row.split("\t", 1) for row in listed.split("\0") if row)
        return {path: kind.split()[2] for kind, path in rows if kind.split()[1] == "blob" and kind[:6] != "120000"}

    def hunks(self, old: str, new: str) -> list[Hunk]:
        printed = self.run("diff", "-U0", "-a", "--no-color", "--no-ext-diff", old, new)
        found = []
        for line in printed.split(b"\n"):
            if at := re.match(rb"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@", line):
                start, removed = int(at[1]), int(at[2] or b"1")
                new_start, added = int(at[3]), int(at[4] or b"1")
                start -= removed > 0
                new_start -= added > 0
                found.append(Hunk(start, start + removed, new_start, new_start + added))
        return found

    def commit(self, name: str, parent: str) -> Commit:
        listed = self.run("diff-tree", "-r", "-z", "-M", "--raw", "--no-abbrev", parent, name, "--", *FOLDERS)
        fields = iter(listed.decode().split("\0"))
        commit = Commit(name, parent, [], [])
        for row in fields:
            if not row:
                break
            _, mode, old_blob, new_blob, kind = row.split(" ")
            source = next(fields) if kind[0] in "RC" else None
            path = next(fields)
            if mode in ("120000", "160000"):
                continue
            if kind[0] == "C":
                kind, source = "A", None
            old = None if kind[0] == "A" else self.content(old_blob)
            new = None if kind[0] == "D" else self.content(new_blob)
            if not all(is_text(content) for content in (old, new) if content is not None):
                commit.others += [path, *([source] if source else [])]
                continue
            if old == new and source is None:
                continue
            hunks = [] if old is None or new is None or old == new else self.hunks(old_blob, new_blob)
            commit.files.append(FileChange(path, old, new, source, hunks))
        return commit

    def commits(self, count: int, most_files: int) -> list[Commit]:
        listed = self.run("rev-list", "--first-parent", "--reverse", "--parents", "HEAD", "--", *FOLDERS)
        names = [row.split()[0] for row in listed.decode().splitlines()]
        parents = self.run("rev-list", "--first-parent", "--parents", "HEAD").decode().splitlines()
        parent_of = {row.split()[0]: row.split()[1] for row in parents if len(row.split()) == 2}
        names = [name for name in names if name in parent_of]
        fitting: list[Commit] = []
        step = max(1, len(names) // max(count, 1))
        # First one of each part of the history, then those between, so that commits without text do not lower the count.
        order = [name for offset in range(step) for name in names[offset::step]]
        for name in order:
            commit = self.commit(name, parent_of[name])
            writes = sum(2 if file.source else 1 for file in commit.files)
            if 0 < writes <= MOST_WRITES and len(commit.files) <= most_files:
                fitting.append(commit)
            if len(fitting) == count:
                break
        place = {name: index for index, name in enumerate(names)}
        return sorted(fitting, key=lambda commit: place[commit.name])


class Api:
    """The HTTP API, as somebody else than the assistant uses it."""

    def __init__(self, url: str) -> None:
        address = urllib.parse.urlsplit(url)
        self.connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=60)

    def ask(
        self, method: str, path: str, body: bytes | None = None, kind: str = "application/json", expect: tuple[int, ...] = (200,)
    ) -> bytes:
        headers = {"content-type": kind} if body is not None else {}
        try:
            self.connection.request(method, path, body, headers)
            answer = self.connection.getresponse()
        except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError):
            # The server has closed a connection that was idle. All these requests can be repeated.
            self.connection.close()
            self.connection.request(method, path, body, headers)
            answer = self.connection.getresponse()
        content = answer.read()
        if answer.status not in expect:
            raise RuntimeError(f"{method} {path}: {answer.status} {content[:500]!r}")
        self.status = answer.status
        return content

    def imported(self, route: str, archive: bytes) -> Any:
        done = json.loads(self.ask("POST", f"{route}/import", archive, "application/zip", (200, 202)))
        deadline = time.monotonic() + 60
        while done["state"] == "waiting" and time.monotonic() < deadline:
            time.sleep(0.05)
            done = self.json("GET", f"{route}/imports/{done['import_id']}")
        return done

    def json(self, method: str, path: str, body: Any = None, expect: tuple[int, ...] = (200, 201, 202)) -> Any:
        return json.loads(self.ask(method, path, None if body is None else json.dumps(body).encode(), expect=expect))


class Project:
    """A project of its own, and what its files are."""

    def __init__(self, api: Api, name: str) -> None:
        self.api = api
        self.id = api.json("POST", "/projects", {"name": name})["project_id"]
        self.route = f"/projects/{self.id}"
        # One way of each commit is applied by the assistant.
        api.json("PATCH", self.route, {"assistants_apply": True})

    def file(self, path: str) -> str:
        return f"{self.route}/files/{urllib.parse.quote(path)}"

    def read(self, path: str) -> bytes | None:
        content = self.api.ask("GET", self.file(path), expect=(200, 404))
        return content if self.api.status == 200 else None

    def write(self, path: str, content: bytes | None) -> None:
        if content is None:
            self.api.ask("DELETE", self.file(path), expect=(204, 404))
        else:
            self.api.ask("PUT", self.file(path), content, "text/plain", (200, 201))

    def all(self, files: dict[str, bytes]) -> None:
        """Makes these the files of the project."""
        archive = io.BytesIO()
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as zipped:
            for path, content in files.items():
                zipped.writestr(path, content)
        if len(files) <= FEW_FILES or archive.tell() > MOST_ARCHIVE:
            for path in self.listed().keys() - files.keys():
                self.write(path, None)
            for path, content in files.items():
                self.write(path, content)
            return
        done = self.api.imported(self.route, archive.getvalue())
        assert done["state"] == "done", done

    def listed(self) -> dict[str, str]:
        """The SHA-256 of each file."""
        found: dict[str, str] = {}
        cursor = ""
        while True:
            page = self.api.json("GET", f"{self.route}/files?limit=100{cursor}")
            found |= {file["path"]: file["sha256"] for file in page["data"]}
            if not page["has_more"]:
                return found
            cursor = "&cursor=" + urllib.parse.quote(page["next_cursor"])

    def drop_changes(self) -> None:
        """Deletes the open change sets."""
        for change_set in self.api.json("GET", f"{self.route}/changes?limit=10")["data"]:
            if change_set["state"] == "open":
                self.api.ask("DELETE", f"{self.route}/changes/{change_set['change_set_id']}", expect=(204,))

    def delete(self) -> None:
        self.api.ask("DELETE", self.route, expect=(204,))


@dataclass
class Row:
    """What became of the commits in one way and variant."""

    commits: int = 0
    equal: int = 0
    # Edits keep line ends, the newline at the end and the mark at the beginning. Such a commit changes them.
    kept: int = 0
    needed: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    wrong: int = 0
    times: list[float] = field(default_factory=list)
    sent: int = 0


class Refused(Exception):
    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.code = code_of(message)


class Wrong(Exception):
    pass


def expect(holds: bool, *what: Any) -> None:
    if not holds:
        raise Wrong(" ".join(str(part) for part in what))


class Assistant:
    """The calls of an assistant, with their times."""

    def __init__(self, client: Client, sent: list[int], tools: dict[str, list[tuple[float, str]]]) -> None:
        self.client = client
        self.sent = sent
        # For each tool, how long its calls took, and for which file.
        self.tools = tools
        self.row = Row()

    async def call(self, tool: str, **arguments: Any) -> str:
        before = self.sent[0]
        begun = time.perf_counter()
        result = await self.client.call_tool(tool, arguments)
        took = (time.perf_counter() - begun) * 1000
        self.row.times.append(took)
        self.row.sent += self.sent[0] - before
        self.tools[tool].append((took, str(arguments.get("path", ""))))
        text = result.content[0].text
        if result.is_error:
            raise Refused(text)
        return text

    async def edit(self, tool: str, **arguments: Any) -> str:
        """An edit. If it is refused and the refusal names an argument, it is made with this argument."""
        for _ in range(3):
            try:
                return await self.call(tool, **arguments)
            except Refused as refused:
                message = str(refused)
                match refused.code:
                    case "shrinks" if "allow_shrink" not in arguments:
                        # "If lines 3–5, line 9 and lines 11–20 shall go, give them in allow_shrink"
                        named = message.split(" after). If ", 1)[-1].split(" shall go", 1)[0]
                        ranges = re.findall(r"(\d+)(?:–(\d+))?", named)
                        expect(bool(ranges), "names no lines:", message)
                        lines = [{"start": int(start), "end": int(end or start)} for start, end in ranges]
                        arguments["allow_shrink"] = lines
                    case "referenced" | "required" if "force" not in arguments and "force" in message:
                        arguments["force"] = True
                    case _:
                        raise
                self.row.needed[refused.code] += 1
        raise Wrong(f"{tool} is refused again and again")


def version_in(answer: str, path: str) -> str | None:
    """The version of a file that an answer names."""
    found = re.search(rf"^{re.escape(path)} (?:edited|made|renamed from \S+|taken back)?,? ?version ([0-9a-f]+)", answer, re.M)
    return found[1] if found else None


class Replay:
    """One commit in one way."""

    def __init__(self, assistant: Assistant, project: Project, files: list[FileChange], index: int) -> None:
        self.assistant = assistant
        self.project = project
        self.files = files
        self.index = index
        # The versions that were read, by the path before.
        self.versions: dict[str, str] = {}
        self.change_set = ""

    async def read(self) -> None:
        """Reads what the edits need, as an assistant does, and compares it with the files."""
        for file in self.files:
            if file.old is None:
                continue
            answer = await self.assistant.call("read_file", path=file.before)
            lines = lines_of(file.old) or [""]
            head, _, body = answer.partition("\n")
            version = re.search(r" version ([0-9a-f]+)", head)
            expect(version is not None and version[1] == version_of(file.old), "another version:", head)
            self.versions[file.before] = version_of(file.old)
            if " lines 1–" in head:
                self.compare(file.before, body, lines)
            elif file.hunks:
                for at in range(0, len(file.hunks), 20):
                    reads = [
                        {"path": file.before, "start": max(hunk.start, 1), "end": max(hunk.end, 1)}
                        for hunk in file.hunks[at : at + 20]
                    ]
                    answer = await self.assistant.call("read_lines", reads=reads, context=3)
                    for part in re.split(rf"^{re.escape(file.before)} version [^\n]*\n", answer, flags=re.M)[1:]:
                        self.compare(file.before, part, lines)

    def compare(self, path: str, listing: str, lines: list[str]) -> None:
        for row in listing.split("\n"):
            found = re.match(r"(\d+)\t(.*)", row, re.S)
            if not found or "more bytes)" in row:
                continue
            expect(found[2] == lines[int(found[1]) - 1], path, "shows another line", found[1], repr(found[2]))

    async def made(self, tool: str, path: str, **arguments: Any) -> str:
        answer = await self.assistant.edit(tool, path=path, **arguments)
        if found := re.match(r"edit \d+ of (chs_\w+)", answer):
            self.change_set = found[1]
        else:
            expect(answer.startswith("nothing to do"), tool, path, answer)
        return answer

    async def make(self, way: str) -> None:
        """Makes the commit's changes. New files come first and deleted ones go last, so that nothing is missing in between."""
        for file in self.files:
            if file.old is None and file.new is not None:
                await self.made("create_file", file.path, content=self.created(file).decode())
        for file in self.files:
            if file.source:
                await self.made("rename_file", file.source, to=file.path, version=self.versions[file.source])
        for file in self.files:
            if file.old is not None and file.new is not None and file.old != file.new:
                await getattr(self, way)(file)
        for file in self.files:
            if file.new is None:
                await self.made("delete_file", file.path, version=self.versions[file.path])

    def created(self, file: FileChange) -> bytes:
        """What a created file has: the text of the call, without a byte order mark."""
        assert file.new is not None
        return file.new.removeprefix(BOM)

    async def edit_lines(self, file: FileChange) -> None:
        assert file.new is not None
        news = lines_of(file.new)
        version = self.versions[file.before]
        # From the end to the beginning, so that line numbers stay right if there are several calls.
        hunks = file.hunks[::-1]
        for at in range(0, len(hunks), MOST_EDITS):
            edits = []
            for hunk in hunks[at : at + MOST_EDITS]:
                content = "".join(line + "\n" for line in news[hunk.new_start : hunk.new_end])
                if hunk.start == hunk.end:
                    edits.append({"after": hunk.start, "content": content})
                else:
                    edits.append({"start": hunk.start + 1, "end": hunk.end, "content": content})
            answer = await self.made("edit_lines", file.path, version=version, edits=edits)
            version = version_in(answer, file.path) or version

    async def search_replace(self, file: FileChange) -> None:
        assert file.old is not None and file.new is not None
        olds, news = lines_of(file.old), lines_of(file.new)
        if not olds:
            return await self.write_file(file)
        text = "\n".join(olds)
        version = self.versions[file.before]
        blocks = blocks_of(text, olds, file.hunks)
        for at in range(0, len(blocks), MOST_EDITS):
            replacements = [
                {"old": "\n".join(olds[b.start : b.end]), "new": "\n".join(news[b.new_start : b.new_end])}
                for b in blocks[at : at + MOST_EDITS]
            ]
            answer = await self.made("search_replace", file.path, version=version, replacements=replacements)
            version = version_in(answer, file.path) or version
        return None

    async def write_file(self, file: FileChange) -> None:
        assert file.new is not None
        content = plain(file.new)
        # An assistant ends a file as it likes. The file keeps its own way.
        if self.index % 2 and content and file.old:
            content = content.removesuffix("\n") if content.endswith("\n") else content + "\n"
        await self.made("write_file", file.path, version=self.versions[file.before], content=content)

    def result(self, diff: bytes) -> dict[str, bytes | None]:
        """The files after `git apply` of the diff."""
        with tempfile.TemporaryDirectory() as folder:
            paths = {path for file in self.files for path in (file.path, file.before)}
            for file in self.files:
                if file.old is not None:
                    place = Path(folder, file.before)
                    place.parent.mkdir(parents=True, exist_ok=True)
                    place.write_bytes(file.old)
            if diff:
                environment = os.environ | {
                    "GIT_CONFIG_NOSYSTEM": "1",
                    "GIT_CONFIG_GLOBAL": os.devnull,
                    "GIT_CEILING_DIRECTORIES": str(Path(folder).parent),
                }
                ran = subprocess.run(
                    ["git", "apply", "--whitespace=nowarn", "-"],
                    input=diff,
                    cwd=folder,
                    capture_output=True,
                    env=environment,
                )
                expect(ran.returncode == 0, "git apply:", ran.stderr.decode())
            places = {path: Path(folder, path) for path in paths}
            return {path: place.read_bytes() if place.is_file() else None for path, place in places.items()}

    def wanted(self) -> dict[str, bytes | None]:
        wanted: dict[str, bytes | None] = {file.source: None for file in self.files if file.source}
        for file in self.files:
            wanted[file.path] = self.created(file) if file.old is None and file.new is not None else file.new
        return wanted

    def judge(self, made: dict[str, bytes | None]) -> str:
        """`equal`, or `kept` if only what edits keep differs, and the commit changes it."""
        verdict = "equal"
        for path, wanted in self.wanted().items():
            found = made.get(path)
            if found == wanted:
                continue
            file = next((file for file in self.files if file.path == path), None)
            is_form = (
                file is not None
                and file.old is not None
                and wanted is not None
                and found is not None
                and not keeps_form(file.old, wanted)
                and plain(found).rstrip("\n") == plain(wanted).rstrip("\n")
            )
            expect(is_form, path, "has other bytes:", first_difference(found, wanted))
            verdict = "kept"
        return verdict

    async def check(self) -> tuple[str, str, dict[str, bytes | None]]:
        """Compares the change set with the commit. Returns the verdict, its hash, and what the files become."""
        shown = await self.assistant.call("show_changes")
        if not self.change_set:
            expect(shown == "there are no edits", shown[:200])
            made = self.result(b"")
            return self.judge(made), "", made
        head = shown.partition("\n")[0]
        found = re.fullmatch(rf"{self.change_set}, not applied, \d+ files, hash ([0-9a-f]+)", head)
        if found is None:
            # All edits together may change nothing.
            expect(shown == "there are no edits", head)
        diff = self.project.api.ask("GET", f"{self.project.route}/changes/{self.change_set}/diff")
        told = diff.decode()[:50_000]
        expect(found is None or told in shown, "show_changes has another diff")
        made = self.result(diff)
        return self.judge(made), found[1] if found else "", made

    async def take_back(self, how: str) -> None:
        """Undoes all edits at once, or one after the other, and looks whether nothing is left. Or deletes the change set as it is."""
        if self.change_set and how != "delete":
            if how == "all":
                await self.assistant.call("undo_edit", all=True)
            else:
                route = f"{self.project.route}/changes/{self.change_set}"
                for edit in range(self.project.api.json("GET", route)["edits"], 0, -1):
                    await self.assistant.call("undo_edit", edit=edit)
            shown = await self.assistant.call("show_changes")
            expect(shown == "there are no edits", "undo leaves", shown[:300])
        self.project.drop_changes()

    async def apply(self, digest: str, made: dict[str, bytes | None]) -> None:
        if digest:
            answer = await self.assistant.call("apply_changes", hash=digest)
            expect(answer.startswith("applied: "), answer)
        self.compare_project(made)
        self.project.drop_changes()

    def compare_project(self, wanted: dict[str, bytes | None]) -> None:
        for path, content in wanted.items():
            found = self.project.read(path)
            expect(found == content, "the project's", path, "has other bytes:", first_difference(found, content))


def first_difference(found: bytes | None, wanted: bytes | None) -> str:
    if found is None or wanted is None:
        return f"there is {'no' if found is None else 'a'} file"
    at = next((at for at, pair in enumerate(zip(found, wanted)) if pair[0] != pair[1]), min(len(found), len(wanted)))
    part = slice(max(at - 30, 0), at + 30)
    return f"byte {at}: found {found[part]!r}, wanted {wanted[part]!r}"


def blocks_of(text: str, olds: list[str], hunks: list[Hunk]) -> list[Hunk]:
    """The hunks with as many lines around them as their text needs to stand in the file once. Blocks that meet are joined."""

    def is_unique(block: str) -> bool:
        first = text.find(block)
        return bool(block) and text.find(block, first + 1) < 0

    blocks: list[Hunk] = []
    for hunk in hunks:
        around = 0 if hunk.start < hunk.end and hunk.new_start < hunk.new_end else 1
        while True:
            before, after = min(around, hunk.start), min(around, len(olds) - hunk.end)
            block = Hunk(hunk.start - before, hunk.end + after, hunk.new_start - before, hunk.new_end + after)
            if (before, after) == (hunk.start, len(olds) - hunk.end) or is_unique("\n".join(olds[block.start : block.end])):
                break
            around += 1
        while blocks and block.start < blocks[-1].end:
            last = blocks.pop()
            block = Hunk(min(last.start, block.start), max(last.end, block.end), min(last.new_start, block.new_start), 0)
        blocks.append(block)
    # Between two hunks, both files have the same lines. So the end in the new file follows from the old one.
    for block in blocks:
        inside = [hunk for hunk in hunks if block.start <= hunk.start and hunk.end <= block.end]
        block.new_start = inside[0].new_start - (inside[0].start - block.start)
        block.new_end = inside[-1].new_end + (block.end - inside[-1].end)
    return blocks


def of_another(file: FileChange) -> tuple[str, bytes]:
    """What somebody else writes at the first lines that the commit changes."""
    if file.old is None:
        return file.path, b"somebody else's\n"
    end = b"\r\n" if b"\r\n" in file.old else b"\n"
    lines = file.old.split(end)
    hunk = file.hunks[0] if file.hunks else Hunk(0, 1, 0, 1)
    lines[hunk.start : max(hunk.end, hunk.start + 1)] = [b"somebody else's"]
    return file.before, end.join(lines)


def in_form(commit: Commit, form: Any) -> list[FileChange]:
    def of(content: bytes | None) -> bytes | None:
        return None if content is None else form(content)

    return [FileChange(file.path, of(file.old), of(file.new), file.source, file.hunks) for file in commit.files]


class Program:
    assistant: Assistant

    def __init__(self, git: Git, api: Api) -> None:
        self.git = git
        self.api = api
        self.tools: dict[str, list[tuple[float, str]]] = defaultdict(list)
        self.rows: dict[tuple[str, str], Row] = defaultdict(Row)
        self.faults: list[str] = []
        # A long history is not taken back in every walk, and each walk may have an end.
        self.is_long = False
        self.is_touched_only = False
        self.seconds = float("inf")

    def row(self, way: str, variant: str) -> Row:
        self.assistant.row = self.rows[way, variant]
        return self.assistant.row

    def fault(self, commit: Commit, way: str, variant: str, what: object) -> None:
        self.faults.append(f"{commit.name[:10]} {way}, {variant}: {what}")
        print("WRONG", self.faults[-1], flush=True)

    def tree(self, commit: Commit, name: str) -> dict[str, str]:
        """The files of the project: the whole theme, or only those that the commit changes."""
        tree = self.git.tree(name)
        if not self.is_touched_only:
            return tree
        paths = {path for file in commit.files for path in (file.path, file.before)} | set(commit.others)
        return {path: blob for path, blob in tree.items() if path in paths}

    def contents(self, tree: dict[str, str], form: Any) -> dict[str, bytes]:
        contents = {path: self.git.content(blob) for path, blob in tree.items()}
        return {path: form(content) if is_text(content) else content for path, content in contents.items()}

    def move(self, project: Project, old: dict[str, str], new: dict[str, str], form: Any) -> None:
        """Writes what differs between two trees with the file API."""
        changed = {path: blob for path, blob in new.items() if old.get(path) != blob}
        if len(changed) > MOST_PUT:
            return project.all(self.contents(new, form))
        for path in old.keys() - new.keys():
            project.write(path, None)
        for path, content in self.contents(changed, form).items():
            project.write(path, content)
        return None

    async def walk(self, project: Project, commits: list[Commit], variant: str) -> None:
        form = WALKS[variant]
        at = self.tree(commits[0], commits[0].parent)
        project.all(self.contents(at, form))
        deadline = time.monotonic() + self.seconds
        for index, commit in enumerate(commits):
            if time.monotonic() > deadline:
                print(f"{variant}: ended after {index} commits", flush=True)
                break
            parent = self.tree(commit, commit.parent)
            self.move(project, at, parent, form)
            at = parent
            files = in_form(commit, form)
            if variant == "as it is":
                # In a long history, each commit has one of the ways.
                for way in WAYS[index % len(WAYS) :][:1] if self.is_long else WAYS:
                    for when in WRITTEN:
                        await self.written(project, commit, files, way, when, index)
            applied = WAYS[index % len(WAYS)]
            # The way that is applied comes last.
            for way in sorted(WAYS, key=lambda way: way == applied):
                await self.replay(project, commit, files, way, variant, index, way == applied)
            tree = self.tree(commit, commit.name)
            # What was refused, what edits keep, and what is no text.
            for path in {path for file in files for path in (file.path, file.before)} | set(commit.others):
                content = self.git.content(tree[path]) if path in tree else None
                project.write(path, form(content) if content is not None and is_text(content) else content)
            at = tree
            if index % 50 == 49 or commit is commits[-1]:
                found = project.listed()
                wanted = {path: hashlib.sha256(it).hexdigest() for path, it in self.contents(at, form).items()}
                if found != wanted:
                    paths = [path for path in found.keys() | wanted.keys() if found.get(path) != wanted.get(path)]
                    self.fault(commit, "all", variant, f"the project has other files than the commit: {paths[:5]}")
                if len(commits) > 10:
                    print(f"{variant}: {index + 1} commits", flush=True)

    async def replay(
        self, project: Project, commit: Commit, files: list[FileChange], way: str, variant: str, index: int, is_applied: bool
    ) -> None:
        row = self.row(way, variant)
        row.commits += 1
        replay = Replay(self.assistant, project, files, index)
        try:
            await replay.read()
            await replay.make(way)
            verdict, digest, made = await replay.check()
            if is_applied:
                await replay.apply(digest, made)
            else:
                is_few = len(files) <= MOST_UNDONE
                # The undoing does not depend on the form, and takes as long as the edits.
                how = "delete" if self.is_long and variant != "as it is" else "each" if index % 2 and is_few else "all"
                await replay.take_back(how)
                replay.compare_project({file.before: file.old for file in files})
            if verdict == "equal":
                row.equal += 1
            else:
                row.kept += 1
        except Refused as refused:
            row.refused[refused.code] += 1
            print("refused", commit.name[:10], way, variant, str(refused)[:300], flush=True)
            project.drop_changes()
        except Wrong as wrong:
            row.wrong += 1
            self.fault(commit, way, variant, wrong)
            project.drop_changes()

    async def written(
        self, project: Project, commit: Commit, files: list[FileChange], way: str, when: str, index: int
    ) -> None:
        """Somebody else writes the same lines meanwhile: nothing of theirs may be lost, and nothing of the edits."""
        row = self.row(way, when)
        row.commits += 1
        replay = Replay(self.assistant, project, files, index)
        # An edited file, if there is one.
        file = min(files, key=lambda file: (not file.hunks, file.old is None))
        path, theirs = of_another(file)
        try:
            await replay.read()
            if when == "written before":
                project.write(path, theirs)
                replay.files = [file]
                try:
                    await replay.make(way)
                    raise Wrong("the edit is not refused")
                except Refused as refused:
                    wanted = "file_exists" if file.old is None else "changed"
                    expect(refused.code == wanted, "refused, but for another reason:", refused)
                    row.refused[refused.code] += 1
                expect(await self.assistant.call("show_changes") == "there are no edits", "a refused edit leaves something")
            else:
                try:
                    await replay.make(way)
                except Refused as refused:
                    # The same refusal as without somebody else.
                    row.refused[refused.code] += 1
                    return
                if not replay.change_set:
                    # The commit changes only what edits keep.
                    row.kept += 1
                    return
                diff = f"{project.route}/changes/{replay.change_set}/diff"
                before = self.api.ask("GET", diff)
                shown = await self.assistant.call("show_changes")
                if shown == "there are no edits":
                    row.kept += 1
                    return
                project.write(path, theirs)
                conflict = await self.assistant.call("show_changes")
                expect("Somebody else has changed these files" in conflict, "the conflict is not shown:", conflict[:300])
                found = re.search(r"hash ([0-9a-f]+)", conflict)
                expect(found is not None, conflict[:300])
                try:
                    await self.assistant.call("apply_changes", hash=found[1])
                    raise Wrong("the applying is not refused")
                except Refused as refused:
                    expect(refused.code == "theme_changed", "refused, but for another reason:", refused)
                    row.refused[refused.code] += 1
                expect(self.api.ask("GET", diff) == before, "the change set has other edits than before")
            replay.compare_project({one.before: one.old for one in files if one is not file} | {path: theirs})
            row.equal += 1
        except Wrong as wrong:
            row.wrong += 1
            self.fault(commit, way, when, wrong)
        except Refused as refused:
            row.wrong += 1
            self.fault(commit, way, when, f"refused: {refused}")
        finally:
            project.drop_changes()
            project.write(path, file.old)

    def table(self) -> None:
        heads = ("way", "variant", "commits", "equal", "form kept", "wrong", "p50 ms", "p95 ms", "KB sent", "argument needed; refused")
        rows = [heads]
        for (way, variant), row in self.rows.items():
            counts = [f"{code}: {count}" for code, count in sorted(row.needed.items())]
            refused = [f"{code}: {count}" for code, count in sorted(row.refused.items())]
            told = ", ".join(counts) + ("; " if refused else "") + ", ".join(refused)
            times = f"{part(row.times, 50):.1f}", f"{part(row.times, 95):.1f}"
            numbers = row.commits, row.equal, row.kept, row.wrong, *times, f"{row.sent / 1000:.0f}"
            rows.append((way, variant, *map(str, numbers), told))
        show(rows)
        print()
        rows = [("tool", "calls", "p50 ms", "p95 ms", "max ms", f"over {SLOW_MS} ms")]
        for tool, calls in sorted(self.tools.items()):
            times = [time for time, _ in calls]
            slow = sum(time > SLOW_MS for time in times)
            numbers = len(times), *(f"{part(times, at):.1f}" for at in (50, 95, 100)), slow
            rows.append((tool, *map(str, numbers)))
        show(rows)


def part(times: list[float], percent: int) -> float:
    ordered = sorted(times) or [0.0]
    return ordered[min(len(ordered) * percent // 100, len(ordered) - 1)]


def show(rows: list[tuple[str, ...]]) -> None:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())


async def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url")
    parser.add_argument("directory", nargs="?")
    parser.add_argument("commits", nargs="?", type=int, default=300)
    parser.add_argument("--small", action="store_true", help="replay a small history that the program writes itself")
    parser.add_argument("--only", choices=WALKS, nargs="+", default=list(WALKS), help="only these walks")
    parser.add_argument("--most-files", type=int, default=MOST_WRITES, help="only commits that change at most so many files")
    parser.add_argument("--touched", action="store_true", help="the project has only the files that a commit changes: this is faster")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="end each walk after so many seconds")
    arguments = parser.parse_args()
    if arguments.small == bool(arguments.directory):
        parser.error("give a git directory, or --small")
    url = arguments.url.rstrip("/")
    with tempfile.TemporaryDirectory() as folder:
        if arguments.small:
            theme_replay_history.write(folder)
        git = Git(arguments.directory or folder)
        commits = git.commits(arguments.commits, arguments.most_files)
        if not commits:
            parser.error("the history has no commit that changes text files of a theme")
        api = Api(url)
        sent = [0]

        async def count(request: httpx2.Request) -> None:
            sent[0] += int(request.headers.get("content-length", 0))

        program = Program(git, api)
        program.is_long = len(commits) > LONG_HISTORY
        program.seconds = arguments.seconds
        program.is_touched_only = arguments.touched
        for variant in arguments.only:
            project = Project(api, f"Replay: {variant}")
            address = f"{url}/mcp?tools=theme&project={project.id}"
            try:
                async with httpx2.AsyncClient(timeout=60, event_hooks={"request": [count]}) as http_client:
                    async with Client(streamable_http_client(address, http_client=http_client)) as client:
                        program.assistant = Assistant(client, sent, program.tools)
                        await program.walk(project, commits, variant)
            except Exception as error:  # The other walks and the table are still worth having.
                program.fault(commits[0], "all", variant, f"the walk ended: {error!r}")
            project.delete()
        git.batch.kill()
        git.batch.wait()
    program.table()
    calls = [(took, tool, path) for tool, calls in program.tools.items() for took, path in calls]
    for took, tool, path in sorted(calls, reverse=True)[:5]:
        if took > SLOW_MS:
            print(f"slow: {took:.0f} ms {tool} {path}")
    rows = program.rows.values()
    replays, equal, kept, wrong = (sum(getattr(row, name) for row in rows) for name in ("commits", "equal", "kept", "wrong"))
    refused = replays - equal - kept - wrong
    print(
        f"{max((row.commits for row in rows), default=0)} commits, {replays} replays, {len(calls)} calls: {equal} equal, {kept} but for the form, "
        f"{refused} refused, {len(program.faults)} wrong"
    )
    return 1 if program.faults else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
