"""Reads the answers of fake providers with the official clients: python clients.py PROVIDERS_URL DEMO_URL

The program ends with an error if a client does not accept an answer, or reads something else than was said.
"""

import json
import sys

import anthropic
import boto3
import botocore.config
import botocore.exceptions
import openai
from google import genai
from google.genai import errors, types

URL, DEMO = sys.argv[1:]
TEXT = "Grüße aus Paris 👋"
CALLS = [("call_1", "get_weather", {"city": "Paris"}), ("call_2", "list_alerts", {})]
SCHEMA = {"type": "object", "properties": {}}


def check(name: str, text: str, calls: list, usage: tuple, expected: tuple) -> None:
    assert text == TEXT, (name, text)
    assert calls == CALLS, (name, calls)
    assert usage == expected, (name, usage)
    print(f"{name}: accepted")


def raises(kind, call) -> Exception:
    try:
        call()
    except kind as error:
        return error
    raise SystemExit(f"no {kind} was raised")


# ---- Anthropic
client = anthropic.Anthropic(base_url=URL, api_key="key", max_retries=0)
hour, minutes = {"type": "ephemeral", "ttl": "1h"}, {"type": "ephemeral"}
request = {
    "max_tokens": 100,
    "system": [{"type": "text", "text": "rules", "cache_control": hour}],
    "tools": [{"name": name, "description": "d", "input_schema": SCHEMA} for _, name, _ in CALLS],
    "messages": [{"role": "user", "content": [{"type": "text", "text": "weather?", "cache_control": minutes}]}],
}


def read_anthropic(name: str, message) -> None:
    calls = [(block.id, block.name, block.input) for block in message.content if block.type == "tool_use"]
    text = "".join(block.text for block in message.content if block.type == "text")
    thought = next(block for block in message.content if block.type == "thinking")
    assert (thought.thinking, thought.signature) == ("Hm, Paris.", "EqoBCkgIAx"), thought
    used = message.usage
    cached = used.cache_creation
    usage = (used.input_tokens, used.cache_read_input_tokens, cached.ephemeral_5m_input_tokens)
    usage += (cached.ephemeral_1h_input_tokens, used.output_tokens, message.stop_reason)
    check(name, text, calls, usage, (12, 5000, 548, 1500, 55, "tool_use"))


read_anthropic("anthropic", client.messages.create(model="m", **request))
with client.messages.stream(model="m", **request) as stream:
    assert "".join(stream.text_stream) == TEXT
    read_anthropic("anthropic, streamed", stream.get_final_message())
limited = raises(anthropic.RateLimitError, lambda: client.messages.create(model="limited", **request))
assert limited.response.headers["retry-after"] == "7" and limited.body["error"]["type"] == "rate_limit_error"


def fail_anthropic() -> None:
    with client.messages.stream(model="failing", **request) as stream:
        stream.until_done()


assert "Overloaded" in str(raises(anthropic.APIStatusError, fail_anthropic))
unmatched = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "x", "content": "r"}]}
raises(anthropic.BadRequestError, lambda: client.messages.create(model="m", **(request | {"messages": [unmatched]})))

# ---- The demo model, which speaks Anthropic's format
demo = anthropic.Anthropic(base_url=DEMO, api_key="demo", max_retries=0)
with demo.messages.stream(model="demo", **request) as stream:
    said = "".join(stream.text_stream)
    message = stream.get_final_message()
assert said and message.usage.output_tokens > 0 and message.stop_reason in ("end_turn", "tool_use"), message
print("the demo model, streamed: accepted")

# ---- OpenAI
client = openai.OpenAI(base_url=f"{URL}/v1", api_key="key", max_retries=0)
messages = [{"role": "user", "content": "weather?"}]
tools = [{"type": "function", "function": {"name": name, "parameters": SCHEMA}} for _, name, _ in CALLS]
request = {"messages": messages, "tools": tools}


def read_chat(name: str, completion) -> None:
    message = completion.choices[0].message
    calls = [(call.id, call.function.name, json.loads(call.function.arguments)) for call in message.tool_calls]
    used = completion.usage
    details = used.prompt_tokens_details
    usage = (used.prompt_tokens, details.cached_tokens, used.completion_tokens)
    usage += (used.completion_tokens_details.reasoning_tokens, completion.choices[0].finish_reason)
    check(name, message.content, calls, usage, (7060, 5000, 55, 10, "tool_calls"))


read_chat("chat", client.chat.completions.create(model="m", **request))
options = {"stream_options": {"include_usage": True}}
with client.chat.completions.stream(model="m", **request, **options) as stream:
    for event in stream:
        pass
    read_chat("chat, streamed", stream.get_final_completion())
limited = raises(openai.RateLimitError, lambda: client.chat.completions.create(model="limited", **request))
assert limited.code == "rate_limit_exceeded", limited.body
raises(openai.APIError, lambda: list(client.chat.completions.create(model="failing", stream=True, **request)))

request = {"input": "weather?", "tools": [{"type": "function", "name": "t", "parameters": SCHEMA, "strict": False}]}


def read_response(name: str, response) -> None:
    calls = [(i.call_id, i.name, json.loads(i.arguments)) for i in response.output if i.type == "function_call"]
    thought = next(item for item in response.output if item.type == "reasoning")
    assert (thought.summary[0].text, thought.encrypted_content) == ("Hm, Paris.", "gAAA"), thought
    used = response.usage
    usage = (used.input_tokens, used.input_tokens_details.cached_tokens, used.output_tokens)
    usage += (used.output_tokens_details.reasoning_tokens, response.status)
    check(name, response.output_text, calls, usage, (7060, 5000, 55, 10, "completed"))


read_response("responses", client.responses.create(model="m", **request))
with client.responses.stream(model="m", **request) as stream:
    said = "".join(event.delta for event in stream if event.type == "response.output_text.delta")
    assert said == TEXT, said
    read_response("responses, streamed", stream.get_final_response())
raises(openai.RateLimitError, lambda: client.responses.create(model="limited", **request))
# This client hands the error over as the last event.
events = list(client.responses.create(model="failing", stream=True, **request))
assert (events[-1].type, events[-1].code) == ("error", "server_error"), events[-1]
wrong = openai.OpenAI(base_url=f"{URL}/v1", api_key="wrong", max_retries=0)
raises(openai.AuthenticationError, lambda: wrong.responses.create(model="m", **request))

# ---- Google
client = genai.Client(api_key="key", vertexai=False, http_options=types.HttpOptions(base_url=URL, api_version="v1beta"))
declared = [types.FunctionDeclaration(name=name, parameters_json_schema=SCHEMA) for _, name, _ in CALLS]
config = types.GenerateContentConfig(
    tools=[types.Tool(function_declarations=declared)],
    automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
)
request = {"contents": "weather?", "config": config}


def read_google(name: str, chunks: list) -> None:
    parts = [part for chunk in chunks for part in chunk.candidates[0].content.parts]
    calls = [(p.function_call.id, p.function_call.name, p.function_call.args) for p in parts if p.function_call]
    text = "".join(part.text for part in parts if part.text and not part.thought)
    assert "".join(part.text for part in parts if part.thought) == "Hm, Paris.", parts
    assert next(part.thought_signature for part in parts if part.function_call) == b"signed", parts
    used = chunks[-1].usage_metadata
    usage = (used.prompt_token_count, used.cached_content_token_count, used.candidates_token_count)
    usage += (used.thoughts_token_count, chunks[-1].candidates[0].finish_reason.name)
    check(name, text, calls, usage, (7060, 5000, 45, 10, "STOP"))


read_google("google", [client.models.generate_content(model="m", **request)])
read_google("google, streamed", list(client.models.generate_content_stream(model="m", **request)))
limited = raises(errors.ClientError, lambda: client.models.generate_content(model="limited", **request))
assert (limited.code, limited.status) == (429, "RESOURCE_EXHAUSTED"), limited
raises(errors.APIError, lambda: list(client.models.generate_content_stream(model="failing", **request)))

# ---- Bedrock
client = boto3.client(
    "bedrock-runtime",
    region_name="eu-west-1",
    endpoint_url=URL,
    aws_access_key_id="AKIDKEY",
    aws_secret_access_key="secret",
    config=botocore.config.Config(retries={"total_max_attempts": 1}),
)
specs = [{"toolSpec": {"name": name, "description": "d", "inputSchema": {"json": SCHEMA}}} for _, name, _ in CALLS]
request = {
    "system": [{"text": "rules"}, {"cachePoint": {"type": "default", "ttl": "1h"}}],
    "messages": [{"role": "user", "content": [{"text": "weather?"}, {"cachePoint": {"type": "default"}}]}],
    "toolConfig": {"tools": [*specs, {"cachePoint": {"type": "default", "ttl": "1h"}}]},
    "inferenceConfig": {"maxTokens": 100},
}


def read_bedrock(name: str, content: list, used: dict, reason: str) -> None:
    uses = [block["toolUse"] for block in content if "toolUse" in block]
    calls = [(use["toolUseId"], use["name"], use["input"]) for use in uses]
    text = "".join(block.get("text", "") for block in content)
    thought = next(block["reasoningContent"] for block in content if "reasoningContent" in block)
    assert thought["reasoningText"] == {"text": "Hm, Paris.", "signature": "EqoBCkgIAx"}, thought
    written = {detail["ttl"]: detail["inputTokens"] for detail in used["cacheDetails"]}
    usage = (used["inputTokens"], used["cacheReadInputTokens"], written, used["outputTokens"], reason)
    check(name, text, calls, usage, (12, 5000, {"1h": 1500, "5m": 548}, 55, "tool_use"))


def joined(stream) -> tuple[list, dict, str]:
    blocks, used, reason = {}, {}, ""
    for event in stream:
        if start := event.get("contentBlockStart"):
            blocks[start["contentBlockIndex"]] = {"toolUse": start["start"]["toolUse"] | {"input": ""}}
        elif delta := event.get("contentBlockDelta"):
            index, piece = delta["contentBlockIndex"], delta["delta"]
            if "text" in piece:
                block = blocks.setdefault(index, {"text": ""})
                block["text"] += piece["text"]
            elif "toolUse" in piece:
                blocks[index]["toolUse"]["input"] += piece["toolUse"]["input"]
            else:
                block = blocks.setdefault(index, {"reasoningContent": {"reasoningText": {"text": "", "signature": ""}}})
                for key, value in piece["reasoningContent"].items():
                    block["reasoningContent"]["reasoningText"][key] += value
        elif stop := event.get("messageStop"):
            reason = stop["stopReason"]
        elif metadata := event.get("metadata"):
            used = metadata["usage"]
    for block in blocks.values():
        if "toolUse" in block:
            block["toolUse"]["input"] = json.loads(block["toolUse"]["input"] or "{}")
    return list(blocks.values()), used, reason


answer = client.converse(modelId="amazon.nova-pro-v1:0", **request)
read_bedrock("bedrock", answer["output"]["message"]["content"], answer["usage"], answer["stopReason"])
stream = client.converse_stream(modelId="amazon.nova-pro-v1:0", **request)["stream"]
read_bedrock("bedrock, streamed", *joined(stream))
raises(client.exceptions.ThrottlingException, lambda: client.converse(modelId="limited", **request))
failed = raises(
    botocore.exceptions.EventStreamError,
    lambda: joined(client.converse_stream(modelId="failing", **request)["stream"]),
)
assert "serviceUnavailableException" in str(failed), failed
no_tools = {key: value for key, value in request.items() if key != "toolConfig"}
used_tool = {"role": "assistant", "content": [{"toolUse": {"toolUseId": "1", "name": "t", "input": {}}}]}
result = {"role": "user", "content": [{"toolResult": {"toolUseId": "1", "content": [{"text": "r"}]}}]}
no_tools["messages"] = [*request["messages"], used_tool, result]
raises(client.exceptions.ValidationException, lambda: client.converse(modelId="m", **no_tools))
