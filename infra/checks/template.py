"""The template as CloudFormation sees it: translated offline by SAM's own translator."""

import contextlib
import io
import logging
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# boto3 needs a region to derive the partition. No call is made.
os.environ.setdefault("AWS_DEFAULT_REGION", "us-east-1")
logging.getLogger("samtranslator").setLevel(logging.ERROR)

import yaml
from samtranslator.model.exceptions import InvalidDocumentException
from samtranslator.translator.transform import transform
from samtranslator.yaml_helper import yaml_parse

TEMPLATE = Path(__file__).resolve().parents[1] / "template.yaml"
BUCKET = "artifacts"


class NoManagedPolicies:
    """The translator would list AWS's managed policies to resolve names. Our policies are given by ARN or reference."""

    def load(self) -> dict[str, str]:
        return {}


def source() -> dict[str, Any]:
    return yaml_parse(TEMPLATE.read_text())


def repeated_keys(text: str) -> list[str]:
    """The keys that a mapping of a YAML text has twice. Loaders keep the last one without a warning."""
    found = []

    def look(node: yaml.Node) -> None:
        if isinstance(node, yaml.MappingNode):
            seen = set()
            for key, value in node.value:
                if key.value in seen:
                    found.append(f"line {key.start_mark.line + 1}: {key.value} is there twice")
                seen.add(key.value)
                look(value)
        elif isinstance(node, yaml.SequenceNode):
            for value in node.value:
                look(value)

    look(yaml.compose(text, Loader=yaml.SafeLoader))
    return found


def translate(template: dict[str, Any]) -> dict[str, Any]:
    """Translates the output of `sam package`: local code becomes an object with the name of its folder."""
    for resource in template["Resources"].values():
        code = resource.get("Properties", {}).get("CodeUri")
        if isinstance(code, str):
            local = os.path.normpath(os.path.join("infra", code))
            resource["Properties"]["CodeUri"] = f"s3://{BUCKET}/{local}"
    try:
        with contextlib.redirect_stderr(io.StringIO()):
            return transform(template, {}, NoManagedPolicies())
    except InvalidDocumentException as error:
        causes = "\n".join(cause.message for cause in error.causes)
        raise AssertionError(f"SAM can't translate the template:\n{causes}") from error


def target(value: Any) -> str | None:
    """The resource, parameter or pseudo parameter that a value refers to, if the value is only a reference."""
    match value:
        case {"Ref": name}:
            return name
        case {"Fn::GetAtt": [name, *_]}:
            return name
        case {"Fn::GetAtt": str(path)}:
            return path.split(".")[0]
    return None


def sub(value: Any) -> str:
    """A text with its `${…}` kept. A reference becomes `${…}`."""
    match value:
        case str():
            return value
        case {"Fn::Sub": str(text)}:
            return text
        case {"Fn::Sub": [str(text), dict(names)]}:
            return re.sub(r"\$\{(\w+)\}", lambda m: sub(names[m[1]]) if m[1] in names else m[0], text)
        case {"Ref": name}:
            return f"${{{name}}}"
        case {"Fn::GetAtt": [name, attribute]}:
            return f"${{{name}.{attribute}}}"
        case {"Fn::GetAtt": str(path)}:
            return f"${{{path}}}"
    return f"<{value}>"


def unconditional(value: Any) -> Any:
    """A value without the condition on which it is there."""
    match value:
        case {"Fn::If": [_, chosen, {"Ref": "AWS::NoValue"}]}:
            return chosen
    return value


def listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


# The verb of a method for all that is below a path.
ANY = "ANY"


@dataclass(frozen=True)
class Method:
    """One method of one path of the API."""

    function: str | None
    streams: bool
    definition: dict[str, Any]

    @property
    def integration(self) -> dict[str, Any]:
        return self.definition["x-amazon-apigateway-integration"]


class Stack:
    """A translated template, with the queries that the rules need."""

    def __init__(self, template: dict[str, Any]):
        self.template = template
        self.resources: dict[str, Any] = template["Resources"]

    def of(self, kind: str) -> dict[str, Any]:
        """The resources of one type, by logical id, each with its properties."""
        return {
            name: resource.get("Properties", {})
            for name, resource in self.resources.items()
            if resource["Type"] == kind
        }

    def properties(self, name: str) -> dict[str, Any]:
        return self.resources.get(name, {}).get("Properties", {})

    @property
    def functions(self) -> dict[str, str]:
        """Logical ids of the functions by the name after the stack's."""
        return {
            sub(properties.get("FunctionName", "")).removeprefix("${AWS::StackName}-"): logical
            for logical, properties in self.of("AWS::Lambda::Function").items()
        }

    def function(self, name: str) -> dict[str, Any]:
        return self.properties(self.functions.get(name, ""))

    def name_of(self, logical: str | None) -> str | None:
        return next((name for name, id in self.functions.items() if id == logical), None)

    @property
    def api(self) -> dict[str, Any]:
        return next(iter(self.of("AWS::ApiGateway::RestApi").values()))

    def method(self, verb: str, path: str, methods: dict[tuple[str, str], Method] | None = None) -> Method | None:
        """The method that answers a request: the path's own, or else the nearest one for all that is below a path.

        Who asks often passes `methods`, which is computed anew each time."""
        methods = self.methods if methods is None else methods
        if own := methods.get((verb, path)):
            return own
        if any(at == path for _, at in methods):
            return None
        for at in sorted((at for each, at in methods if each == ANY), key=len, reverse=True):
            if path.startswith(at.rsplit("{", 1)[0]):
                return methods[ANY, at]
        return None

    @property
    def methods(self) -> dict[tuple[str, str], Method]:
        """By method and path. A method for all verbs is `ANY`."""
        found = {}
        for path, item in self.api["Body"]["paths"].items():
            for method, definition in item.items():
                uri = sub(definition.get("x-amazon-apigateway-integration", {}).get("uri", ""))
                called = re.search(r"/functions/\$\{(\w+)\.Arn\}/(response-streaming-)?invocations$", uri)
                # In API Gateway, `{path+}` is a parameter that matches the rest of the path.
                verb = ANY if method == "x-amazon-apigateway-any-method" else method.upper()
                found[verb, path.replace("+}", "}")] = Method(
                    function=self.name_of(called[1]) if called else None,
                    streams=bool(called and called[2]),
                    definition=definition,
                )
        return found

    def statements(self, name: str) -> list[dict[str, Any]]:
        """Everything that a function's role allows, without AWS's managed policies."""
        role = self.properties(target(self.function(name).get("Role")) or "")
        documents = [policy["PolicyDocument"] for policy in role.get("Policies", [])]
        for policy in role.get("ManagedPolicyArns", []):
            own = self.properties(target(unconditional(policy)) or "")
            if own:
                documents.append(own["PolicyDocument"])
        return [statement for document in documents for statement in listed(document["Statement"])]

    def managed(self, name: str) -> list[str]:
        """The names of the AWS-managed policies of a function's role."""
        role = self.properties(target(self.function(name).get("Role")) or "")
        policies = map(unconditional, role.get("ManagedPolicyArns", []))
        return [sub(policy).rsplit("/", 1)[-1] for policy in policies if not target(policy)]

    def mappings(self, name: str) -> dict[str, Any]:
        """The event source mappings that feed a function."""
        mappings = self.of("AWS::Lambda::EventSourceMapping")
        return {id: m for id, m in mappings.items() if self.name_of(target(m["FunctionName"])) == name}

    def queue_policies(self, queue: str) -> list[dict[str, Any]]:
        """The statements of the policies of a queue."""
        return [
            statement
            for policy in self.of("AWS::SQS::QueuePolicy").values()
            if queue in map(target, policy.get("Queues", []))
            for statement in listed(policy["PolicyDocument"]["Statement"])
        ]
