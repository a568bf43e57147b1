#!/usr/bin/env bash
# Guess:    a tool that returns a list gives one text with JSON: `[]` for none, `[{...}, {...}]` for two.
# Reality:  the Python SDK makes one text block of *each element*. A list of one looks like an object, strings
#           lose their quotation marks, nested lists are flattened, and an empty list has no content at
#           all: a model that is given `content` is not even told "none". `structuredContent` has the list, as
#           `{"result": []}`, but only if the annotation says what the elements are: a bare `-> list`
#           publishes no output schema, and then the empty answer is empty in both places. An empty mapping, on
#           the other hand, is the text `{}`.
# Versions: mcp 2.3.0 (PyPI).
# Why:      "no open invoices" is a frequent, good answer of a scheduled check. It arrives as an answer without content,
#           which a caller must turn into words, or the model goes on from nothing.
# Seen:     2026-11-29, the text at the end of this script.
set -euo pipefail
. "$(dirname "$0")/common.sh"
pip_packages mcp==2.3.0

cat > "$WORK/probe.py" <<'END'
import asyncio
from mcp import Client
from mcp.server.mcpserver import MCPServer

server = MCPServer("s")
ANSWERS = {
    "two": [{"id": 1}, {"id": 2}],
    "one": [{"id": 1}],
    "none": [],
    "words": ["true", "7"],
    "nested": [[1, 2], [3]],
}

@server.tool()
def typed(which: str) -> list[dict]:
    return ANSWERS[which]

@server.tool()
def bare(which: str) -> list:
    return ANSWERS[which]

@server.tool()
def mapping() -> dict:
    return {}

async def main():
    async with Client(server) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        for name, which in [("typed", "two"), ("typed", "one"), ("typed", "none"),
                            ("bare", "words"), ("bare", "nested"), ("bare", "none"), ("mapping", None)]:
            answer = await client.call_tool(name, {"which": which} if which else {})
            blocks = [" ".join(block.text.split()) for block in answer.content]
            schema = "with" if tools[name].output_schema else "without"
            print(f"{name} {which}: {blocks} structured {answer.structured_content} ({schema} output schema)")

asyncio.run(main())
END
probe "$PYTHON" probe.py

expect "an empty list has no content; each element is a block of its own" <<'END'
typed two: ['{ "id": 1 }', '{ "id": 2 }'] structured {'result': [{'id': 1}, {'id': 2}]} (with output schema)
typed one: ['{ "id": 1 }'] structured {'result': [{'id': 1}]} (with output schema)
typed none: [] structured {'result': []} (with output schema)
bare words: ['true', '7'] structured None (without output schema)
bare nested: ['1', '2', '3'] structured None (without output schema)
bare none: [] structured None (without output schema)
mapping None: ['{}'] structured None (without output schema)
END
