"""Modules that are siblings in a folder do not use each other in a circle. This reads the `use` lines and the paths that
begin with `crate`, `super` or `self`, and follows re-exports. Tests may use anything."""

import re
from pathlib import Path

from sources import ROOT

# Circles that are still there: the folder and its modules. Take a line out when its circle is gone; add none.
KNOWN = {
    "shared/src": "agent_loop blobs ceilings context deletions extract flows function idempotency model_choice problem rates store stream",
    "shared/src/flows": "actions agents assets backlog chats deletion documents due execute export import logs places projects proposals runs themes "
    "tools turn waiting wake",
    "shared/src/flows/actions": "apply runs",
    "shared/src/flows/themes": "import index",
    "shared/src/store": "due keys logs messages partitions table",
    "infra/local/src/engines/s3": "operations receive store uploads",
}
USE = re.compile(r"^\s*(pub(?:\([^)]*\))?\s+)?use\s+([^;]+);", re.MULTILINE)
Module = tuple[str, ...]


def modules(root: Path) -> dict[Module, str]:
    """The modules of a crate with their sources, without comments and tests."""
    found = {}
    for file in root.rglob("*.rs"):
        *folders, name = file.relative_to(root).with_suffix("").parts
        if "tests" in (*folders, name) or name == "main" or name.endswith("_tests"):
            continue
        source = re.sub(r"//[^\n]*", "", file.read_text())
        source = re.sub(r"#\[cfg\(test\)\]\s*mod \w+ \{.*?\n\}\n", "", source, flags=re.DOTALL)
        found[(*folders,) if name in ("mod", "lib") else (*folders, name)] = source
    return found


def paths(tree: str) -> list[str]:
    """The paths of a tree such as `a::{b, c::{d}}`."""
    prefix, brace, rest = tree.strip().partition("{")
    if not brace:
        return [prefix]
    parts, depth, part = [], 0, ""
    for sign in rest[: rest.rindex("}")]:
        depth += (sign == "{") - (sign == "}")
        if sign == "," and depth == 0:
            parts, part = [*parts, part], ""
        else:
            part += sign
    return [prefix + path for part in [*parts, part] if part.strip() for path in paths(part)]


def absolute(module: Module, path: list[str], known: dict[Module, str]) -> Module | None:
    base = list(module)
    if path[0] == "crate":
        return tuple(path[1:])
    while path[0] == "super" and len(path) > 1:
        base, path = base[:-1], path[1:]
        if path[0] != "super":
            return (*base, *path)
    if path[0] == "self":
        return (*base, *path[1:])
    return (*base, *path) if (*base, path[0]) in known else None


def circles(root: Path) -> dict[Module, set[str]]:
    """For each folder, the modules that lie on a circle."""
    known = modules(root)
    exports: dict[Module, Module] = {}
    uses: list[tuple[Module, Module]] = []
    for module, source in known.items():
        for public, tree in USE.findall(source):
            for path in paths(tree):
                path, _, alias = (part.strip() for part in path.partition(" as "))
                if target := absolute(module, path.split("::"), known):
                    uses.append((module, target))
                    if public:
                        exports[(*module, alias or target[-1])] = target
        inline = re.findall(r"\b((?:crate|super|self)(?:::\w+)+)", USE.sub("", source))
        uses += [(module, target) for path in inline if (target := absolute(module, path.split("::"), known))]

    def holder(path: Module, depth: int = 0) -> Module:
        """The module that declares what a path names."""
        at: Module = ()
        for index, name in enumerate(path):
            if (*at, name) in exports and depth < 9:
                return holder((*exports[(*at, name)], *path[index + 1 :]), depth + 1)
            if (*at, name) not in known:
                break
            at = (*at, name)
        return at

    edges: dict[Module, dict[str, set[str]]] = {}
    for module, path in uses:
        target = holder(path)
        common = next((i for i, (a, b) in enumerate(zip(module, target)) if a != b), None)
        if common is not None:
            edges.setdefault(module[:common], {}).setdefault(module[common], set()).add(target[common])
    found: dict[Module, set[str]] = {}
    for folder, users in edges.items():
        for start in users:
            reached, left = set(), list(users[start])
            while left:
                if (name := left.pop()) not in reached:
                    reached.add(name)
                    left += users.get(name, ())
            if start in reached:
                found.setdefault(folder, set()).add(start)
    return found


def test_sibling_modules_do_not_use_each_other_in_a_circle():
    found = {}
    for manifest in [*ROOT.glob("shared/**/Cargo.toml"), *ROOT.glob("functions/*/Cargo.toml"), *ROOT.glob("infra/*/Cargo.toml")]:
        root = manifest.parent / "src"
        for folder, names in circles(root).items():
            found[str((root / Path(*folder)).relative_to(ROOT))] = " ".join(sorted(names))
    assert found == KNOWN


def test_circles_are_found(tmp_path: Path):
    for name, source in {
        "lib.rs": "pub mod a;\nmod b;\npub mod c;\npub mod d;\npub use b::Item;",
        "a.rs": "use crate::{c::Thing, Item};\npub struct Other;",
        "b.rs": "pub struct Item;\n#[cfg(test)]\nmod tests {\n    use crate::a::Other;\n}\n",
        "c.rs": "pub struct Thing;\nfn f() { super::d::g() }",
        "d.rs": "// crate::a::Other\npub fn g() {}",
    }.items():
        (tmp_path / name).write_text(source)
    assert circles(tmp_path) == {}
    (tmp_path / "d.rs").write_text("use super::a::Other;\npub fn g() {}")
    assert circles(tmp_path) == {(): {"a", "c", "d"}}
    (tmp_path / "d.rs").write_text("pub fn g() {}")
    (tmp_path / "b.rs").write_text("pub struct Item(crate::a::Other);")
    assert circles(tmp_path) == {(): {"a", "b"}}
