"""Checks requests against the types of the providers' official clients: python requests.py REQUESTS.json

The file has `{name: {format, body}}`. The program ends with an error if a client has no place for something in a body.
"""

import json
import sys
import typing
import warnings

# pydantic reads the members of an Iterable late, and not at all where a type refers to itself.
typing.Iterable = typing.List

import boto3
import botocore.validate
from anthropic.types import message_create_params as messages
from anthropic.types.beta import message_create_params as beta_messages
from google.genai import types as google
from openai.types.chat import completion_create_params as chat
from openai.types.responses import response_create_params as responses
from pydantic import ConfigDict, TypeAdapter
from pydantic.warnings import TypedDictExtraConfigWarning

warnings.simplefilter("ignore", TypedDictExtraConfigWarning)
STRICT = ConfigDict(extra="forbid", arbitrary_types_allowed=True)
converse = boto3.client("bedrock-runtime", region_name="eu-west-1").meta.service_model.operation_model("ConverseStream")


def typed(kind, body: dict) -> None:
    # Only a type without a configuration of its own takes one, and hands it on to its members.
    TypeAdapter(list[kind], config=STRICT).validate_python([body])


def check_google(body: dict) -> None:
    body = dict(body)
    for content in body.pop("contents"):
        google.Content.model_validate(content)
    for tool in body.pop("tools", []):
        google.Tool.model_validate(tool)
    for name, kind in {
        "systemInstruction": google.Content,
        "toolConfig": google.ToolConfig,
        "generationConfig": google.GenerationConfig,
    }.items():
        kind.model_validate(body.pop(name, {}))
    assert not body, body.keys()


def check_converse(body: dict) -> None:
    report = botocore.validate.ParamValidator().validate(body | {"modelId": "m"}, converse.input_shape)
    assert not report.has_errors(), report.generate_report()


def check_messages(body: dict) -> None:
    # Only the beta client edits the context.
    module = beta_messages if "context_management" in body else messages
    typed(module.MessageCreateParamsStreaming, body)


CHECKS = {
    "anthropic": check_messages,
    "bedrock": check_converse,
    "chat": lambda body: typed(chat.CompletionCreateParamsStreaming, body),
    "google": check_google,
    "responses": lambda body: typed(responses.ResponseCreateParamsStreaming, body),
}

if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as file:
        requests = json.load(file)
    for name, request in requests.items():
        check, body = CHECKS[request["format"]], request["body"]
        try:
            check(body)
        except Exception as error:  # every kind of refusal is reported with its request
            raise SystemExit(f"{name}: refused\n{error}") from error
        try:
            check(body | {"unknown": 1})
        except Exception:
            print(f"{name}: accepted")
        else:
            raise SystemExit(f"{name}: an unknown field is accepted too")
