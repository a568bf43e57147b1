"""The REST API: its routes, their authentication, streaming, and the gateway's own responses."""

import json
from collections.abc import Iterator

from registry import rule
from sources import Repo, Route
from template import ANY, Stack, sub, target

# What a browser sends before a call from another origin.
PREFLIGHT = "OPTIONS"
# API Gateway's longest timeouts for a buffered and for a streamed response, in milliseconds.
BUFFERED, STREAMED = 29_000, 900_000


# The gateway's own answers. Temporary errors are marked as such: a throttled authorizer or function is retried.
STATUSES = {
    "MISSING_AUTHENTICATION_TOKEN": "404",
    "INVALID_SIGNATURE": "404",
    "UNAUTHORIZED": "401",
    "ACCESS_DENIED": "401",
    "REQUEST_TOO_LARGE": "413",
    "THROTTLED": "429",
    "QUOTA_EXCEEDED": "429",
    "AUTHORIZER_FAILURE": "503",
    "AUTHORIZER_CONFIGURATION_ERROR": "503",
    "INTEGRATION_FAILURE": "503",
    "INTEGRATION_TIMEOUT": "504",
    "DEFAULT_5XX": "503",
}
PASSING = {"429", "503", "504"}
# There are no credentials in the sense of CORS, and these answers contain no data of anybody.
ONLY_WITH_CORS = {"Fn::If": ["HasCors", "'*'", {"Ref": "AWS::NoValue"}]}


def event(route: Route, repo: Repo, timeout: int | None) -> str:
    """The line that is missing in the template, ready to paste."""
    parts = [part.strip("{}").replace(".", "_").replace("-", "_") for part in route.path.strip("/").split("/")]
    name = route.method.title() + "".join(word.title() for part in parts for word in part.split("_"))
    path = f"'{route.path}'" if "{" in route.path else route.path
    more = f", ResponseTransferMode: RESPONSE_STREAM, TimeoutInMillis: {1000 * (timeout or 0)}" if timeout else ""
    is_open = route in repo.open_routes or route.method == PREFLIGHT
    more += ", Auth: { Authorizer: NONE }" if is_open else ""
    return f"{name}: {{ Type: Api, Properties: {{ RestApiId: !Ref Api, Method: {route.method}, Path: {path}{more} }} }}"


@rule
def routes_are_those_of_the_document(stack: Stack, repo: Repo) -> Iterator[str]:
    methods = stack.methods
    for route, function in repo.routes.items():
        method = stack.method(route.method, route.path, methods)
        if method is None:
            timeout = stack.function(function).get("Timeout") if repo.streaming.get(function) else None
            yield f"{route} has no event: add to {function} in infra/template.yaml\n    {event(route, repo, timeout)}"
        elif method.function != function:
            yield f"{route} belongs to {function}, but the template sends it to {method.function}"
    for route in sorted(repo.documented ^ set(repo.routes), key=str):
        yield f"{route}: infra/openapi.json and the handlers disagree: run `UPDATE_OPENAPI=1 cargo test -p catalog`"
    for (verb, path), method in methods.items():
        if verb not in (PREFLIGHT, ANY) and Route(verb, path) not in repo.documented and method.function not in repo.pending:
            yield f"{verb} {path} is in the template of {method.function} but not in infra/openapi.json"


@rule
def browsers_may_ask_first(stack: Stack, repo: Repo) -> Iterator[str]:
    """A function of the path answers its preflights. The gateway's own answer (a mock) fails if all types are binary."""
    methods = stack.methods
    for path in sorted({path for _, path in methods}):
        functions = {m.function for (verb, at), m in methods.items() if at == path and verb != PREFLIGHT}
        preflight = methods.get((PREFLIGHT, path))
        if preflight is None:
            name = min(function for function in functions if function)
            timeout = stack.function(name).get("Timeout") if repo.streaming.get(name) else None
            yield f"{path} takes no preflight: add to {name}\n    {event(Route(PREFLIGHT, path), repo, timeout)}"
        elif preflight.function not in functions:
            yield f"{path}: its preflights go to {preflight.function}, which has no other method there"


@rule
def siblings_share_a_parameter_name(stack: Stack, repo: Repo) -> Iterator[str]:
    names: dict[str, str] = {}
    for path in stack.api["Body"]["paths"]:
        parts = path.split("/")
        for depth, part in enumerate(parts):
            if part.startswith("{"):
                before = "/".join(parts[:depth])
                if names.setdefault(before, part) != part:
                    yield f"{before} has the children {names[before]} and {part}: API Gateway allows only one name"


@rule
def streaming_functions_stream(stack: Stack, repo: Repo) -> Iterator[str]:
    # A function whose folder does not exist yet streams if all its routes say so.
    for (verb, path), method in stack.methods.items():
        route, name = f"{verb} {path}", method.function
        if name is None:
            yield f"{route}: its integration calls none of our functions"
            continue
        integration = method.integration
        if integration.get("httpMethod") != "POST" or integration.get("type") != "aws_proxy":
            yield f"{route}: Lambda must be invoked by POST, through aws_proxy"
        says = integration.get("responseTransferMode")
        if method.streams != (says == "STREAM") or says not in (None, "STREAM"):
            yield f"{route}: is invoked {'' if method.streams else 'without '}streaming, but its transfer mode is {says}"
        if name in repo.streaming and repo.streaming[name] != method.streams:
            yield (
                f"{route}: functions/{name} says streaming: {str(repo.streaming[name]).lower()}, "
                f"and the event has{'' if method.streams else ' no'} ResponseTransferMode: RESPONSE_STREAM"
            )
        timeout = 1000 * stack.function(name).get("Timeout", 3)
        if method.streams:
            if integration.get("timeoutInMillis") != timeout or timeout > STREAMED:
                yield f"{route}: the gateway waits {integration.get('timeoutInMillis')} ms for a function of {timeout} ms"
        elif timeout >= integration.get("timeoutInMillis", BUFFERED) or timeout >= BUFFERED:
            yield f"{route}: {name} may take {timeout} ms, but the gateway stops waiting after {BUFFERED}"
    methods = list(stack.methods.values())
    for name in stack.functions:
        modes = {method.streams for method in methods if method.function == name}
        if len(modes) > 1:
            yield f"{name}: some routes stream and some do not, but one runner serves all of them"


@rule
def only_open_routes_are_open(stack: Stack, repo: Repo) -> Iterator[str]:
    for (verb, path), method in stack.methods.items():
        is_open = verb == PREFLIGHT or Route(verb, path) in repo.open_routes
        expected = [{"NONE": []}] if is_open else [{"Bearer": []}]
        if method.definition.get("security") != expected:
            yield f"{verb} {path}: its security is {method.definition.get('security')}, should be {expected}"


@rule
def the_authorizer_is_ours(stack: Stack, repo: Repo) -> Iterator[str]:
    logical = stack.functions.get("authorizer")
    schemes = stack.api["Body"].get("components", {}).get("securitySchemes", {})
    authorizer = schemes.get("Bearer", {}).get("x-amazon-apigateway-authorizer", {})
    if authorizer.get("type") != "request" or authorizer.get("identitySource") != "method.request.header.Authorization":
        yield "Bearer must be a request authorizer whose identity source is the Authorization header"
    if f"${{{logical}.Arn}}/invocations" not in sub(authorizer.get("authorizerUri", "")):
        yield "Bearer does not call the authorizer"
    if not 0 <= authorizer.get("authorizerResultTtlInSeconds", 300) <= 300:
        yield "Bearer caches a result longer than five minutes: a revoked key must stop working"
    callers = [
        permission
        for permission in stack.of("AWS::Lambda::Permission").values()
        if target(permission["FunctionName"]) == logical and "/authorizers/" in sub(permission.get("SourceArn", ""))
    ]
    if not callers:
        yield "the API may not call the authorizer"


@rule
def the_api_may_call_its_functions(stack: Stack, repo: Repo) -> Iterator[str]:
    allowed = {
        (stack.name_of(target(permission["FunctionName"])), sub(permission.get("SourceArn", "")).split("${Api}/*/")[-1])
        for permission in stack.of("AWS::Lambda::Permission").values()
        if permission.get("Principal") == "apigateway.amazonaws.com"
    }
    for (verb, path), method in stack.methods.items():
        pattern = "/".join("*" if part.startswith("{") else part for part in path.split("/"))
        if (method.function, f"{'*' if verb == ANY else verb}{pattern}") not in allowed:
            yield f"{verb} {path}: the API may not call {method.function}"


@rule
def the_api_is_regional_and_bounded(stack: Stack, repo: Repo) -> Iterator[str]:
    if stack.api.get("EndpointConfiguration", {}).get("Types") != ["REGIONAL"]:
        yield "the API must be regional: an edge-optimized API ends a stream after 30 idle seconds"
    stages = stack.of("AWS::ApiGateway::Stage")
    if len(stages) != 1:
        yield f"there must be one stage, but there are {sorted(stages)}"
    if any("StageName" in deployment for deployment in stack.of("AWS::ApiGateway::Deployment").values()):
        yield "the deployment creates a second stage without alarms and limits"
    for stage in stages.values():
        everything = [s for s in stage.get("MethodSettings", []) if (s["HttpMethod"], s["ResourcePath"]) == ("*", "/*")]
        if not everything or not all("ThrottlingRateLimit" in s and "ThrottlingBurstLimit" in s for s in everything):
            yield "the stage has no request limit"
        if stage.get("TracingEnabled"):
            yield "the stage traces with X-Ray"
        if sub(stage["StageName"]) not in sub(stack.template["Outputs"]["Url"]["Value"]):
            yield "the output Url does not name the stage"


@rule
def a_domain_leads_to_the_stage(stack: Stack, repo: Repo) -> Iterator[str]:
    conditions = {"Domain": "HasDomain", "DomainMapping": "HasDomain", "DomainRecord": "HasDomainRecord"}
    for name, condition in conditions.items():
        if stack.resources.get(name, {}).get("Condition") != condition:
            yield f"{name} must have the condition {condition}"
    domain = stack.properties("Domain")
    if domain.get("EndpointConfiguration") != {"Types": ["REGIONAL"]} or "CertificateArn" in domain:
        yield "the domain must be regional, as the API is"
    if domain.get("SecurityPolicy") != "TLS_1_2":
        yield "the domain must refuse old versions of TLS"
    (stage,) = stack.of("AWS::ApiGateway::Stage")
    mapping = stack.properties("DomainMapping")
    expected = {"DomainName": {"Ref": "Domain"}, "RestApiId": {"Ref": "Api"}, "Stage": {"Ref": stage}}
    if mapping != expected:
        yield f"the domain must lead to the stage {stage}, leads to {mapping}"
    alias = stack.properties("DomainRecord").get("AliasTarget", {})
    if [sub(alias.get(key)) for key in ("DNSName", "HostedZoneId")] != ["${Domain.RegionalDomainName}", "${Domain.RegionalHostedZoneId}"]:
        yield "the record must point to the domain"


@rule
def the_gateway_answers_problems(stack: Stack, repo: Repo) -> Iterator[str]:
    answers = stack.api["Body"].get("x-amazon-apigateway-gateway-responses", {})
    for kind in sorted(set(STATUSES) - set(answers)):
        yield f"{kind} has the gateway's default format"
    schema = set(repo.openapi["components"]["schemas"].get("Problem", {}).get("required", []))
    for kind, answer in answers.items():
        text = answer.get("responseTemplates", {}).get("application/problem+json", "")
        try:
            problem = json.loads(text)
        except ValueError:
            yield f"{kind}: is not a problem: {text!r}"
            continue
        status = str(answer.get("statusCode"))
        if str(problem.get("status")) != status:
            yield f"{kind}: the body says {problem.get('status')}, but the response is {status}"
        if status != STATUSES.get(kind, status):
            yield f"{kind}: must be {STATUSES[kind]}, is {status}"
        headers = answer.get("responseParameters", {})
        says_when = "gatewayresponse.header.Retry-After" in headers
        if (problem.get("retryable"), says_when) != ((True, True) if status in PASSING else (False, False)):
            yield f"{kind}: answers {status}, retryable {problem.get('retryable')}, Retry-After {says_when}"
        if headers.get("gatewayresponse.header.x-request-id") != "context.requestId":
            yield f"{kind}: does not name its request in x-request-id"
        if headers.get("gatewayresponse.header.Access-Control-Allow-Origin") != ONLY_WITH_CORS:
            yield f"{kind}: must be readable from other origins where some are configured, and only there"
        if status == "413" and str(repo.most_bytes) not in problem.get("detail", ""):
            yield f"{kind}: names another limit than shared/src/request/limits.rs ({repo.most_bytes})"
        if missing := schema - set(problem):
            yield f"{kind}: the fields {sorted(missing)} are missing"


@rule
def the_operator_invites_who_signs_in(stack: Stack, repo: Repo) -> Iterator[str]:
    """Whoever signs in has an account and spends the operator's money. What the pool and the functions say fits together."""
    pool, client = stack.template["Resources"]["UserPool"], stack.properties("UserPoolClient")
    if not pool["Properties"]["AdminCreateUserConfig"]["AllowAdminCreateUserOnly"]:
        yield "anybody can sign up"
    if pool.get("DeletionPolicy") != "RetainExceptOnCreate":
        yield "the pool is deleted with the stack, and the data that stays loses its owners"
    if client["GenerateSecret"] or client["AllowedOAuthFlows"] != ["code"]:
        yield "a page in a browser has no secret, and gets a code, not a token, in its address"
    url = stack.template["Outputs"]["Console"]["Value"]
    if client["CallbackURLs"][0] != url:
        yield f"the client sends people back to {client['CallbackURLs'][0]}, and the console is at {url}"
    named = {"Fn::If": ["HasUserPool", {"client_id": {"Ref": "UserPoolClient"}}, {"Ref": "AWS::NoValue"}]}
    if stack.properties("ApiliveStage").get("Variables") != named:
        yield f"the stage's variables must be {named}"
    for function, variable, value in (
        ("ConsoleFunction", "LAMPLIGHTER_SIGN_IN_CLIENT_ID", "stage:client_id"),
        ("AuthorizerFunction", "LAMPLIGHTER_JWT_AUDIENCE", "stage:client_id"),
        ("AuthorizerFunction", "LAMPLIGHTER_JWT_ISSUER", {"Fn::Sub": "https://cognito-idp.${AWS::Region}.${AWS::URLSuffix}/${UserPool}"}),
    ):
        has = stack.properties(function)["Environment"]["Variables"].get(variable, {})
        if not isinstance(has, dict) or has.get("Fn::If", [])[:2] != ["HasUserPool", value]:
            yield f"with a user pool, {variable} of {function} must be {value}, is {has}"
