"""Talks to an agent with the official client of OpenAI: python openai_chat.py URL AGENT_ID

The program ends with an error if anything is wrong.
"""

import sys

from openai import BadRequestError, NotFoundError, OpenAI

URL, AGENT = sys.argv[1:]
client = OpenAI(base_url=f"{URL}/v1", api_key="not needed here", max_retries=0)

assert [model.id for model in client.models.list()] == [AGENT]
assert client.models.retrieve(AGENT).id == AGENT
try:
    client.models.retrieve("gpt-6")
except NotFoundError as refused:
    assert refused.code == "not_found", refused.body
else:
    raise SystemExit("an unknown model exists")

# A whole reply, and a second one in the same conversation.
messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "What is due?"}]
first = client.chat.completions.create(model=AGENT, messages=messages, temperature=0)
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

# Parameters that agents do not support.
for error, change in [
    (NotFoundError, {"model": "gpt-6"}),
    (BadRequestError, {"n": 2}),
    (BadRequestError, {"tools": [{"type": "function", "function": {"name": "f", "parameters": {}}}]}),
]:
    try:
        client.chat.completions.create(**({"model": AGENT, "messages": messages} | change))
    except error as refused:
        assert refused.code in ("not_found", "invalid_input"), refused.body
    else:
        raise SystemExit(f"accepted: {change}")
print("the agent has answered")
