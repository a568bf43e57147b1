"""Facts from the code that the template must agree with: names, routes, constants, variables."""

import json
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# Functions in the template whose folder or routes do not exist yet. Empty if none is missing.
PENDING: set[str] = set()


def one(pattern: str, text: str, what: str) -> str:
    """The single group of the single match. A rename in the code must fail here instead of going unnoticed."""
    found = re.findall(pattern, text)
    if len(set(found)) != 1:
        raise AssertionError(f"expected to find {what} once, by {pattern}, found {found}")
    return found[0]


@dataclass(frozen=True)
class Route:
    method: str
    path: str

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


class Repo:
    """The repository's side of each comparison. Tests plant faults by changing the fields of a copy."""

    def __init__(self, root: Path = ROOT):
        self.root = root
        self.pending = set(PENDING)

    def text(self, path: str) -> str:
        return (self.root / path).read_text()

    @cached_property
    def folders(self) -> set[str]:
        return {main.parts[-3] for main in self.root.glob("functions/*/src/main.rs")}

    @cached_property
    def names(self) -> set[str]:
        text = self.text("functions/catalog/src/lib.rs")
        return set(re.findall(r'"([\w-]+)"', one(r"(?s)const NAMES: &\[&str\] =\s*&\[(.*?)\];", text, "NAMES")))

    @cached_property
    def streaming(self) -> dict[str, bool]:
        """Whether a function with routes uses the streaming runner."""
        found = {}
        for source in self.root.glob("functions/*/src/lib.rs"):
            if flag := re.search(r"streaming: (true|false)", source.read_text()):
                found[source.parts[-3]] = flag[1] == "true"
        return found

    @cached_property
    def models(self) -> set[str]:
        """The functions that call models."""
        calls = r"models: Models::(from_config|none)\b"
        sources = self.root.glob("functions/*/src/lib.rs")
        declared = {source.parts[-3]: one(calls, source.read_text(), "models") for source in sources}
        return {name for name, models in declared.items() if models == "from_config"}

    @cached_property
    def spending_alert(self) -> tuple[str, str, set[str]]:
        """The source, the detail type and the fields of the event."""
        return self.event("SpendingAlert", "SPENDING_ALERT")

    @cached_property
    def action_alert(self) -> tuple[str, str, set[str]]:
        """The same of the event about an action."""
        return self.event("ActionAlert", "ACTION_ALERT")

    @cached_property
    def watchdog_alert(self) -> tuple[str, str, set[str]]:
        """The same of what the watchdog says."""
        return self.event("WatchdogEvent", "WATCHDOG_ALERT")

    def event(self, struct: str, constant: str) -> tuple[str, str, set[str]]:
        text = self.text("shared/src/aws/bus.rs")
        source = one(r'pub const SOURCE: &str = "([\w.]+)";', text, "SOURCE")
        kind = one(rf'pub const {constant}: &\'static str = "([\w.]+)";', text, constant)
        fields = one(rf"(?s)pub struct {struct} \{{(.*?)\n\}}", text, struct)
        return source, kind, set(re.findall(r"pub (\w+):", fields))

    @cached_property
    def openapi(self) -> dict:
        return json.loads(self.text("infra/openapi.json"))

    @cached_property
    def documented(self) -> set[Route]:
        """The routes of infra/openapi.json."""
        verbs = {"get", "put", "post", "delete", "patch", "head", "options"}
        paths = self.openapi["paths"].items()
        return {Route(verb.upper(), path) for path, item in paths for verb in item if verb in verbs}

    @cached_property
    def routes(self) -> dict[Route, str]:
        """Each route's function: the folder of the handler that declares it."""
        declaration = re.compile(r'utoipa::path\(\s*(\w+),\s*path\s*=\s*"([^"]+)"')
        return {
            # In axum, `{*path}` is a parameter that matches the rest of the path.
            Route(verb.upper(), path.replace("{*", "{")): source.relative_to(self.root).parts[1]
            for source in self.root.glob("functions/*/src/**/*.rs")
            for verb, path in declaration.findall(source.read_text())
        }

    @cached_property
    def open_routes(self) -> set[Route]:
        """Routes that need no credentials according to the document."""
        return {
            Route(verb.upper(), path)
            for path, item in self.openapi["paths"].items()
            for verb, operation in item.items()
            if isinstance(operation, dict) and {} in operation.get("security", [])
        }

    @cached_property
    def source(self) -> str:
        return one(r'const SOURCE: &str = "([^"]+)"', self.text("shared/src/aws/bus.rs"), "SOURCE")

    @cached_property
    def due_index(self) -> str:
        return one(r'const DUE_INDEX: &str = "([^"]+)"', self.text("shared/src/store/keys.rs"), "DUE_INDEX")

    @cached_property
    def store(self) -> str:
        return "".join(path.read_text() for path in sorted((self.root / "shared/src/store").rglob("*.rs")))

    @cached_property
    def blob_prefixes(self) -> set[str]:
        return set(re.findall(r'"\{owner\}/(\w+)/', self.text("shared/src/blobs/key.rs")))

    @cached_property
    def upload_keys(self) -> set[str]:
        """The suffixes of the keys whose uploads trigger the indexer."""
        text = self.text("shared/src/blobs/key.rs")
        names = ("theme_archive", "theme_change", "log_archive")
        keys = [one(rf'(?s)pub fn {name}\(.*?format!\("([^"]+)"\)', text, name) for name in names]
        return {key.rsplit("/", 1)[1].rsplit("}", 1)[-1] for key in keys}

    @cached_property
    def variables(self) -> set[str]:
        """The environment variables that the code reads, except those that Lambda sets."""
        files = sorted((self.root / "shared/src/config").glob("*.rs"))
        text = "".join(path.read_text().split("#[cfg(test)]")[0] for path in files if path.name != "tests.rs")
        return set(re.findall(r'"((?:LAMPLIGHTER_\w+)|(?:[A-Z]+_API_KEY))"', text))

    @cached_property
    def timer_seconds(self) -> int | None:
        """The interval of the sweep in the code, in seconds."""
        path = self.root / "functions/schedule-sweep/src/lib.rs"
        if not path.exists():
            return None
        found = re.search(r"every: Duration::from_(secs|mins)\((\d+)\)", path.read_text())
        return int(found[2]) * {"secs": 1, "mins": 60}[found[1]] if found else None

    @cached_property
    def enrichment_call_seconds(self) -> int:
        """The longest call of a model in the indexer, in seconds."""
        text = self.text("shared/src/flows/ask.rs")
        return int(one(r"const CALL: Duration = Duration::from_secs\((\d+)\)", text, "CALL"))

    @cached_property
    def most_bytes(self) -> int:
        """The largest body of a request."""
        text = self.text("shared/src/request/limits.rs")
        return int(one(r"const MAX_BODY_BYTES: usize = ([\d_]+);", text, "MAX_BODY_BYTES").replace("_", ""))

    @cached_property
    def receives(self) -> int:
        """How often a message is delivered before it is given up. The embedded queue and the template agree."""
        return int(one(r"const RECEIVES: u32 = (\d+);", self.text("infra/local/src/platform.rs"), "RECEIVES"))

    @cached_property
    def batch(self) -> int:
        """How many runs an executor drives at once."""
        return int(one(r"pub const BATCH: usize = (\d+);", self.text("shared/src/runtime/lambda.rs"), "BATCH"))

    @cached_property
    def namespace(self) -> str:
        return one(r'const NAMESPACE: &str = "([^"]+)"', self.text("shared/src/process/metrics.rs"), "NAMESPACE")

    @cached_property
    def metrics(self) -> dict[tuple[str, str], set[str]]:
        """The figures that are written with each dimension: by a function in its own folder, in a flow that names it, or for all functions."""
        figures = re.compile(r'\("(\w+)", "(?:Milliseconds|Count)",')
        found = {
            ("Function", source.parts[-3]): set(figures.findall(source.read_text()))
            for source in self.root.glob("functions/*/src/lib.rs")
            if "metrics::emit(FUNCTION.name" in source.read_text()
        }
        claim = self.text("shared/src/flows/executor/wake/claim.rs")
        executor = one(r'const EXECUTOR: &str = "([^"]+)"', claim, "EXECUTOR")
        found.setdefault(("Function", executor), set()).update(figures.findall(claim))
        by_name = re.compile(r'\bemit\(\s*"([\w-]+)",[^;]*?\("(\w+)", "(?:Milliseconds|Count)",')
        for source in [*self.root.glob("shared/src/**/*.rs"), *self.root.glob("shared/themes/src/**/*.rs")]:
            for function, figure in by_name.findall(source.read_text()):
                found.setdefault(("Function", function), set()).add(figure)
        metrics = by_name.sub("", self.text("shared/src/process/metrics.rs").split("#[cfg(test)]")[0])
        kinds = [("Kind", kind) for kind in re.findall(r'Self::\w+ => "(\w+)",', metrics)]
        everywhere = ("Function", one(r'const ALL: &str = "([^"]+)"', metrics, "ALL"))
        return found | {dimension: set(figures.findall(metrics)) for dimension in (everywhere, *kinds)}
