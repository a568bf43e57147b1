"""Talks to an agent with the official client of OpenAI: python openai_chat.py URL AGENT_ID [JSON_URL JSON_AGENT_ID]

The program ends with an error if anything is wrong.
"""

import sys
import urllib.request

from openai import BadRequestError, InternalServerError, NotFoundError, OpenAI
from pydantic import BaseModel

URL, AGENT = sys.argv[1:3]
client = OpenAI(base_url=f"{URL}/v1", api_key="not needed here", max_retries=0)

assert [model.id for model in client.models.list()] == [AGENT]
assert client.models.retrieve(AGENT).id == AGENT
try:
    client.models.retrieve("gpt-6")
except NotFoundError as refused:
    assert refused.code == "not_found", refused.body
else:
    raise SystemExit("an unknown model exists")

# What clients send unasked is taken, and what has no effect is named.
taken = {"temperature": 0, "top_p": 0.9, "presence_penalty": 0, "seed": 7, "user": "ada"}
raw = client.chat.completions.with_raw_response.create(model=AGENT, messages=[{"role": "user", "content": "What is due?"}], **taken)
assert raw.parse().choices[0].finish_reason == "stop", raw.text
assert "seed" in raw.headers["x-lamplighter-ignored"].split(", "), raw.headers

# A whole reply, and a second one in the same conversation.
messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "What is due?"}]
first = client.chat.completions.create(model=AGENT, messages=messages, temperature=1)
assert first.choices[0].finish_reason == "stop" and first.usage.total_tokens > 0, first
messages += [first.choices[0].message.to_dict(), {"role": "user", "content": "Write a brief about lamp oil prices"}]

# Streamed, with a draft at its end.
text, usage = "", None
with client.chat.completions.stream(model=AGENT, messages=messages, stream_options={"include_usage": True}) as stream:
    for event in stream:
        if event.type == "content.delta":
            text += event.delta
    final = stream.get_final_completion()
assert final.choices[0].message.content == text and "/proposals/prp_" in text, text
assert final.usage.completion_tokens > 0, final

# The draft is in the reply, and a yes saves it.
messages += [final.choices[0].message.to_dict(), {"role": "user", "content": "yes"}]
assert f"{URL}/proposals/prp_" in text, text
saved = client.chat.completions.create(model=AGENT, messages=messages).choices[0].message.content
address = next(word for word in saved.split() if word.startswith(f"{URL}/assets/")).rstrip(".")
assert b"asset_id" in urllib.request.urlopen(address).read(), saved

# A reply that ends early.
due = [{"role": "user", "content": "What is due?"}]
whole = client.chat.completions.create(model=AGENT, messages=due).choices[0].message.content
stop = whole[20:45]
chunks = client.chat.completions.create(model=AGENT, messages=due, stop=[stop, "never said"], stream=True)
pieces = [choice for chunk in chunks for choice in chunk.choices]
assert "".join(choice.delta.content or "" for choice in pieces) == whole.split(stop)[0], pieces
assert pieces[-1].finish_reason == "stop", pieces
short = client.chat.completions.create(model=AGENT, messages=due, max_completion_tokens=16).choices[0]
assert short.finish_reason == "length" and len(short.message.content) < len(whole), short


# A reply that matches a schema. A second server has a model that can write JSON.
class City(BaseModel):
    city: str
    n: int


if len(sys.argv) > 3:
    json_url, json_agent = sys.argv[3:]
    reader = OpenAI(base_url=f"{json_url}/v1", api_key="not needed here", max_retries=0)
    where = [{"role": "user", "content": "Where?"}]
    parsed = reader.chat.completions.parse(model=json_agent, messages=where, response_format=City)
    assert parsed.choices[0].message.parsed == City(city="Kiel", n=3), parsed
    with reader.chat.completions.stream(model=json_agent, messages=where, response_format=City) as stream:
        assert stream.get_final_completion().choices[0].message.parsed == City(city="Kiel", n=3)
    try:
        where[0]["content"] = "This is hopeless"
        reader.chat.completions.parse(model=json_agent, messages=where, response_format=City)
    except InternalServerError as refused:
        assert "the reply is not valid JSON" in refused.message, refused.body
    else:
        raise SystemExit("a reply that is not JSON was accepted")

# Parameters that agents do not support.
for error, change in [
    (NotFoundError, {"model": "gpt-6"}),
    (BadRequestError, {"n": 2}),
    (BadRequestError, {"logprobs": True}),
    (BadRequestError, {"temperature": 3}),
    (BadRequestError, {"tools": [{"type": "function", "function": {"name": "f", "parameters": {}}}]}),
]:
    try:
        client.chat.completions.create(**({"model": AGENT, "messages": messages} | change))
    except error as refused:
        assert refused.code in ("not_found", "invalid_input"), refused.body
    else:
        raise SystemExit(f"accepted: {change}")
print("the agent has answered")
