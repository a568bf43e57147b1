"""`[workspace.dependencies]` is the list of all crates that the workspace uses directly, so a new one is a change of this list.

cargo-deny cannot check this: its list of allowed crates would have to name the dependencies of dependencies too.
"""

import tomllib

from sources import ROOT

# Dependencies outside the list, each with its reason.
OUTSIDE = {
    ("infra/local", "getrandom"): "only enables the features that the tests use, so that both share what is compiled",
    ("infra/local", "regex-syntax"): "the same, and with its default features",
}


def used(manifest: dict) -> dict[str, bool]:
    """The direct dependencies of a crate, and whether the list has them."""
    found = {}
    for part in (manifest, *manifest.get("target", {}).values()):
        for kind in ("dependencies", "dev-dependencies", "build-dependencies"):
            for name, wanted in part.get(kind, {}).items():
                listed = isinstance(wanted, dict) and wanted.get("workspace", False)
                found[name] = listed and found.get(name, True)
    return found


def wrong(listed: set[str], members: dict[str, dict]) -> list[str]:
    found = {folder: used(manifest) for folder, manifest in members.items()}
    outside = {(folder, name) for folder, names in found.items() for name, is_listed in names.items() if not is_listed}
    unused = listed - {name for names in found.values() for name in names}
    return sorted(
        [f"{folder}/Cargo.toml declares `{name}` itself; use `{name}.workspace = true`" for folder, name in outside - set(OUTSIDE)]
        + [f"{folder}/Cargo.toml does not declare `{name}` itself; remove it from OUTSIDE" for folder, name in set(OUTSIDE) - outside]
        + [f"no crate uses `{name}` of [workspace.dependencies]" for name in unused]
    )


def workspace() -> tuple[set[str], dict[str, dict]]:
    root = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]
    folders = sorted(folder for pattern in root["members"] for folder in ROOT.glob(pattern) if folder.is_dir())
    members = {str(folder.relative_to(ROOT)): tomllib.loads((folder / "Cargo.toml").read_text()) for folder in folders}
    return set(root["dependencies"]), members


def test_all_direct_dependencies_are_in_the_list():
    listed, members = workspace()
    assert len(listed) > 50 and len(members) > 20
    assert wrong(listed, members) == []


def test_what_is_outside_the_list_is_found():
    listed, members = workspace()
    members["shared"] = {"target": {"cfg(unix)": {"build-dependencies": {"anyhow": {"version": "1"}}}}, "dependencies": {"hex": "1"}}
    members["infra/local"] = {}
    found = wrong(listed | {"left-over"}, members)
    assert [line for line in found if line.startswith("shared/")] == [
        "shared/Cargo.toml declares `anyhow` itself; use `anyhow.workspace = true`",
        "shared/Cargo.toml declares `hex` itself; use `hex.workspace = true`",
    ]
    assert "infra/local/Cargo.toml does not declare `getrandom` itself; remove it from OUTSIDE" in found
    assert "no crate uses `left-over` of [workspace.dependencies]" in found
