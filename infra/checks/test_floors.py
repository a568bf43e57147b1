"""The floors of the crates: modules of a folder use each other in one direction only.

This reads the `use` lines and the paths that begin with `crate`, `super` or `self`, and follows re-exports. Tests may use
anything. In each folder, no modules use each other in a circle. In the folders whose floors `docs/architecture.md` lists,
a module uses only modules of lower floors. There are no exceptions.
"""

import re
from pathlib import Path

from sources import ROOT

MANUAL = ROOT / "docs/architecture.md"
WHAT_TO_DO = (
    "Move what is needed (a type, a constant, a pure function) down to a floor that both may use, pass it as an argument, "
    "or move the code that needs it up. If a module is new, give it a floor in docs/architecture.md."
)

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


def uses(root: Path) -> list[tuple[Module, Module, str]]:
    """For each path in a module: the module, the module that declares what the path names, and the path."""
    known = modules(root)
    exports: dict[Module, Module] = {}
    found: list[tuple[Module, Module]] = []
    for module, source in known.items():
        for public, tree in USE.findall(source):
            for path in paths(tree):
                path, _, alias = (part.strip() for part in path.partition(" as "))
                if target := absolute(module, path.split("::"), known):
                    found.append((module, target))
                    if public:
                        exports[(*module, alias or target[-1])] = target
        inline = re.findall(r"\b((?:crate|super|self)(?:::\w+)+)", USE.sub("", source))
        found += [(module, target) for path in inline if (target := absolute(module, path.split("::"), known))]

    def holder(path: Module, depth: int = 0) -> Module:
        at: Module = ()
        for index, name in enumerate(path):
            if (*at, name) in exports and depth < 9:
                return holder((*exports[(*at, name)], *path[index + 1 :]), depth + 1)
            if (*at, name) not in known:
                break
            at = (*at, name)
        return at

    return [(module, holder(path), "::".join(("crate", *path))) for module, path in found]


def circles(root: Path) -> dict[Module, set[str]]:
    """For each folder, the modules that lie on a circle."""
    edges: dict[Module, dict[str, set[str]]] = {}
    for module, target, _ in uses(root):
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


def floors(manual: str) -> dict[str, list[list[str]]]:
    """The floors of each folder that the manual lists, the highest first. A line is `names   explanation`."""
    found = {}
    for folder, block in re.findall(r"^```floors (\S+)\n(.*?)^```", manual, re.MULTILINE | re.DOTALL):
        found[folder] = [re.split(r"\s{2,}", line)[0].split() for line in block.splitlines()]
    return found


def arrows(root: Path, folder: Module, listed: list[list[str]]) -> list[str]:
    """What is wrong with the floors of a folder: modules without a floor, and uses of a floor that is not lower."""
    floor = {name: -number for number, names in enumerate(listed) for name in names}
    depth, wrong = len(folder), []
    there = {module[depth] for module in modules(root) if module[:depth] == folder and len(module) > depth}
    wrong += [f"`{name}` has no floor" for name in sorted(there - set(floor))]
    wrong += [f"`{name}` has a floor and does not exist" for name in sorted(set(floor) - there)]
    for module, target, path in uses(root):
        if module[:depth] != folder or target[:depth] != folder or len(module) == depth or len(target) == depth:
            continue
        user, used = module[depth], target[depth]
        if user != used and floor.get(user, 0) <= floor.get(used, 0):
            wrong.append(f"`{'::'.join(module)}` uses `{path}`, and `{used}` is not below `{user}`")
    return sorted(set(wrong))


def crates() -> list[Path]:
    manifests = [
        *ROOT.glob("shared/**/Cargo.toml"),
        *ROOT.glob("functions/*/Cargo.toml"),
        *ROOT.glob("infra/*/Cargo.toml"),
    ]
    return [root for manifest in manifests if (root := manifest.parent / "src").is_dir()]


def test_no_modules_use_each_other_in_a_circle():
    found = []
    for root in crates():
        for folder, names in circles(root).items():
            place = (root / Path(*folder)).relative_to(ROOT)
            found.append(f"{place}: {', '.join(sorted(names))} use each other in a circle")
    assert not found, "\n".join([*found, WHAT_TO_DO])


def test_modules_use_only_lower_floors():
    listed = floors(MANUAL.read_text())
    assert {"shared/src", "shared/src/flows"} <= set(listed)
    wrong = []
    for folder, lines in listed.items():
        root = next(root for root in crates() if (ROOT / folder).is_relative_to(root))
        wrong += [f"{folder}: {text}" for text in arrows(root, (ROOT / folder).relative_to(root).parts, lines)]
    assert not wrong, "\n".join([*wrong, WHAT_TO_DO])


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


def test_arrows_upward_are_found(tmp_path: Path):
    for name, source in {
        "lib.rs": "pub mod high;\npub mod low;\npub use low::Item;",
        "high/mod.rs": "pub mod a;\nmod b;\nuse crate::low::Item;\npub struct Thing;",
        "high/a.rs": "use super::b::g;\nuse crate::Item;",
        "high/b.rs": "pub fn g() { crate::low::f() }",
        "low.rs": "pub struct Item;\npub fn f() {}",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(source)
    listed = floors("text\n```floors x/src\nhigh   above\nlow    below\n```\n```floors x/src/high\na\nb\n```\n")
    assert listed == {"x/src": [["high"], ["low"]], "x/src/high": [["a"], ["b"]]}
    assert arrows(tmp_path, (), listed["x/src"]) == arrows(tmp_path, ("high",), listed["x/src/high"]) == []
    (tmp_path / "low.rs").write_text("pub struct Item;\npub fn f() -> crate::high::Thing { todo!() }")
    assert arrows(tmp_path, (), listed["x/src"]) == [
        "`low` uses `crate::high::Thing`, and `high` is not below `low`"
    ]
    # Modules of one floor do not use each other.
    assert len(arrows(tmp_path, ("high",), [["a", "b"]])) == 1
    (tmp_path / "new.rs").write_text("pub struct New;")
    assert "`new` has no floor" in arrows(tmp_path, (), listed["x/src"])
