"""Functions: their names, artifacts, environment variables and logs."""

from collections.abc import Iterator

from registry import rule
from sources import Repo
from template import BUCKET, Stack, sub, target

# Functions that hold more than one request in memory, in MB.
MEMORY = {"theme-chat": 1024, "theme-index": 2048, "theme-lookup": 1024}
SECRETS = {"ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "XAI_API_KEY", "LAMPLIGHTER_MODEL_KEY"}
# JSON that contains keys. It is too long for most parameters of the parameter store.
HIDDEN = {"LAMPLIGHTER_SERVERS"}


def variables_of(stack: Stack, name: str) -> dict:
    return stack.function(name).get("Environment", {}).get("Variables", {})


@rule
def functions_are_the_folders(stack: Stack, repo: Repo) -> Iterator[str]:
    declared = set(stack.functions)
    for name in sorted(repo.folders - declared):
        yield f"functions/{name} has a main.rs but no function in infra/template.yaml: add one"
    for name in sorted(declared - repo.folders - repo.pending):
        yield f"infra/template.yaml has the function {name}, but functions/{name}/src/main.rs is missing"
    for name in sorted(repo.folders ^ repo.names):
        yield f"functions/{name} and NAMES in functions/catalog/src/lib.rs disagree: add it to NAMES and ALL"


@rule
def pending_functions_are_not_whole(stack: Stack, repo: Repo) -> Iterator[str]:
    for name in sorted(repo.pending & repo.folders):
        routes = {key for key, m in stack.methods.items() if m.function == name and key[0] != "OPTIONS"}
        if routes <= {(route.method, route.path) for route in repo.routes}:
            yield f"{name} is complete: remove it from PENDING in infra/checks/sources.py"


@rule
def functions_run_their_own_artifact(stack: Stack, repo: Repo) -> Iterator[str]:
    for name, logical in stack.functions.items():
        function = stack.properties(logical)
        expected = {"S3Bucket": BUCKET, "S3Key": f"target/lambda/{name}"}
        if function.get("Code") != expected:
            yield f"{name}: CodeUri must be ../target/lambda/{name}/, is {function.get('Code')}"
        if logical != "".join(part.title() for part in name.split("-")) + "Function":
            yield f"{name}: its logical id is {logical}"
        for key, value in {
            "Runtime": "provided.al2023",
            "Handler": "bootstrap",
            "Architectures": ["arm64"],
            "MemorySize": MEMORY.get(name, 512),
        }.items():
            if function.get(key) != value:
                yield f"{name}: {key} must be {value}, is {function.get(key)}"


@rule
def nothing_is_reserved_or_traced(stack: Stack, repo: Repo) -> Iterator[str]:
    for name in stack.functions:
        function = stack.function(name)
        if "ReservedConcurrentExecutions" in function:
            yield f"{name} reserves concurrency: a new account has too little concurrency to reserve any, so the deployment fails"
        if function.get("TracingConfig", {}).get("Mode") == "Active":
            yield f"{name} traces with X-Ray"


# Only installations with a private issuer or a private mail server have a file of authorities, in a separate layer, and only a machine at
# home has a Bot API of its own.
UNTOLD = {"LAMPLIGHTER_JWKS_CA_FILE", "LAMPLIGHTER_SMTP_CA_FILE", "LAMPLIGHTER_TELEGRAM_API"}


@rule
def variables_are_those_the_code_reads(stack: Stack, repo: Repo) -> Iterator[str]:
    told = {variable for name in stack.functions for variable in variables_of(stack, name)} - {"RUST_LOG"}
    for variable in sorted(repo.variables - told - UNTOLD):
        yield f"shared/src/config reads {variable}, but no function sets it"
    for variable in sorted(told - repo.variables):
        yield f"functions set {variable}, but shared/src/config does not read it"


def is_of_models(variable: str) -> bool:
    return any(word in variable for word in ("MODEL", "API_KEY", "BEDROCK"))


@rule
def functions_are_told_where_they_are(stack: Stack, repo: Repo) -> Iterator[str]:
    expected = {
        "LAMPLIGHTER_TABLE": {"Ref": "Table"},
        "LAMPLIGHTER_BUCKET": {"Ref": "Bucket"},
        "LAMPLIGHTER_BUS": {"Ref": "Bus"},
        "LAMPLIGHTER_QUEUE": {"Ref": "Queue"},
        "LAMPLIGHTER_AUTH": "on",
        "LAMPLIGHTER_CORS_ORIGINS": {"Fn::Join": [",", {"Ref": "CorsOrigins"}]},
        "LAMPLIGHTER_ALLOWED_HOSTS": {"Fn::Join": [",", {"Ref": "AllowedHosts"}]},
        "LAMPLIGHTER_RUN_BUDGET_MICROS": {"Ref": "RunBudgetMicros"},
        "LAMPLIGHTER_ANSWER_DAYS": {"Ref": "AnswerDays"},
        "LAMPLIGHTER_DAY_BUDGET_MICROS": {"Ref": "DayBudgetMicros"},
        "LAMPLIGHTER_DAY_BUDGET_MAX_MICROS": {"Ref": "DayBudgetMaxMicros"},
        "LAMPLIGHTER_MONTH_BUDGET_MAX_MICROS": {"Ref": "MonthBudgetMaxMicros"},
        "LAMPLIGHTER_PLAN": {"Ref": "Plan"},
        "LAMPLIGHTER_PLANS": {"Ref": "Plans"},
        "LAMPLIGHTER_FEATURES": {"Ref": "Features"},
        "LAMPLIGHTER_RATE_LIMITS": {"Ref": "RateLimits"},
    }
    for name in stack.functions:
        variables = variables_of(stack, name)
        for variable, value in expected.items():
            if variables.get(variable) != value:
                yield f"{name}: {variable} must be {sub(value)}, is {sub(variables.get(variable))}"
        asks = {variable for variable in variables if is_of_models(variable)}
        if (name in repo.models) != bool(asks):
            yield f"{name}: is told of models ({sorted(asks)}), and should{'' if name in repo.models else ' not'} be"
        for variable in sorted({v for v in repo.variables if is_of_models(v)} - asks):
            if name in repo.models:
                yield f"{name}: {variable} is not set"
    # The cap on one owner's runs is computed from it.
    executors = variables_of(stack, "scheduled-executor").get("LAMPLIGHTER_EXECUTORS")
    if executors != {"Ref": "MaximumExecutors"}:
        yield f"scheduled-executor: LAMPLIGHTER_EXECUTORS must be ${{MaximumExecutors}}, is {sub(executors)}"
    for variable in sorted(v for v in repo.variables - UNTOLD if v.startswith("LAMPLIGHTER_JW")):
        if variable not in variables_of(stack, "authorizer"):
            yield f"authorizer: {variable} is not set"


@rule
def secrets_are_not_shown(stack: Stack, repo: Repo) -> Iterator[str]:
    """A key is a hidden parameter, or the name of a parameter of the parameter store if the operator gives one."""
    parameters = stack.template["Parameters"]
    for name in stack.functions:
        for variable in sorted(SECRETS & set(variables_of(stack, name))):
            match variables_of(stack, name)[variable]:
                case {"Fn::If": [condition, {"Fn::Sub": text}, {"Ref": key}]}:
                    parameter, named = parameters.get(key, {}), f"{key}Parameter"
                    if parameter.get("NoEcho") is not True or parameter.get("Default") != "":
                        yield f"{name}: {variable} must be a parameter with NoEcho and an empty default"
                    if (condition, text) != (f"Has{named}", f"ssm:${{{named}}}") or parameters[named].get("Default") != "":
                        yield f"{name}: {variable} must be ssm:${{{named}}} under the condition Has{named}"
                case _:
                    yield f"{name}: {variable} must be a parameter with NoEcho, or the name of one of the parameter store"
        for variable in sorted(HIDDEN & set(variables_of(stack, name))):
            match variables_of(stack, name)[variable]:
                case {"Ref": key}:
                    parameter = parameters.get(key, {})
                case _:
                    parameter = {}
            if parameter.get("NoEcho") is not True or parameter.get("Default") != "":
                yield f"{name}: {variable} must be a parameter with NoEcho and an empty default"


@rule
def logs_end(stack: Stack, repo: Repo) -> Iterator[str]:
    groups = stack.of("AWS::Logs::LogGroup")
    for name in stack.functions:
        group = target(stack.function(name).get("LoggingConfig", {}).get("LogGroup"))
        if group not in groups:
            yield f"{name}: logs to a group that Lambda creates and keeps for ever"
        elif sub(groups[group].get("LogGroupName", "")) != f"/lamplighter/${{AWS::StackName}}/{name}":
            yield f"{name}: logs to {sub(groups[group].get('LogGroupName', ''))}"
    for logical, group in groups.items():
        if "RetentionInDays" not in group:
            yield f"{logical}: keeps logs for ever"
