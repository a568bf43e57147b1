#!/usr/bin/env bash
# Guess:    if the server of an SDK has validated a tool's `structuredContent` against the `outputSchema`, the
#           client of the same SDK takes it.
# Reality:  with the TypeScript SDK the two sides check different schemas. The server checks the zod object, which
#           ignores unknown properties, and sends the value as the tool returned it. What it *published* says
#           `additionalProperties: false`. So one extra property passes on the server, and the client throws
#           -32602 (an exception, not a result with `isError`), although the tool did its work: an effect
#           has happened, and the caller sees a failed call. A client that has not listed the tools yet has no
#           schema to check, so the same call passes before the first `listTools()` and fails after it.
# Others:   the Python SDK's published schema has no `additionalProperties`; its typed models drop the extra property.
# Versions: @modelcontextprotocol/sdk 1.32.2 with zod 4.6.7 (npm), mcp 2.3.0 (PyPI).
# Why:      tools return rows of a database or an upstream answer. A new column breaks every caller, and a
#           retry repeats the effect.
# Seen:     2026-11-29, the text at the end of this script.
set -euo pipefail
. "$(dirname "$0")/common.sh"
npm_packages @modelcontextprotocol/sdk@1.32.2 zod@4.6.7
pip_packages mcp==2.3.0

cat > "$WORK/probe.mjs" <<'END'
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { InMemoryTransport } from '@modelcontextprotocol/sdk/inMemory.js';
import { z } from 'zod';
let sent = 0;
const server = new McpServer({ name: 's', version: '1' });
server.registerTool('send', { outputSchema: { id: z.string() } }, async () => {
  sent += 1;
  return { content: [{ type: 'text', text: 'sent' }], structuredContent: { id: 'm1', queue: 'fast' } };
});
const client = new Client({ name: 'c', version: '1' });
const [a, b] = InMemoryTransport.createLinkedPair();
await Promise.all([server.connect(a), client.connect(b)]);
const call = () => client.callTool({ name: 'send', arguments: {} })
  .then(r => `result ${JSON.stringify(r.structuredContent)}, isError ${r.isError}`, e => `exception ${e.message}`);
console.log('TypeScript, before listTools:', await call());
const { tools } = await client.listTools();
console.log('TypeScript, published additionalProperties:', tools[0].outputSchema.additionalProperties);
console.log('TypeScript, after listTools:', await call());
console.log('TypeScript, messages sent:', sent);
END
cat > "$WORK/probe.py" <<'END'
import asyncio
from mcp import Client
from mcp.server.mcpserver import MCPServer
from pydantic import BaseModel

server = MCPServer("s")

class Sent(BaseModel):
    id: str

@server.tool()
def send() -> Sent:
    return Sent.model_validate({"id": "m1", "queue": "fast"})

async def main():
    async with Client(server) as client:
        tool = (await client.list_tools()).tools[0]
        print("Python, published additionalProperties:", tool.output_schema.get("additionalProperties"))
        answer = await client.call_tool("send", {})
        print("Python, after list_tools:", answer.structured_content, "is_error", answer.is_error)

asyncio.run(main())
END
probe node probe.mjs
probe "$PYTHON" probe.py

expect "the server sends a structured result that its own client refuses" <<'END'
TypeScript, before listTools: result {"id":"m1","queue":"fast"}, isError undefined
TypeScript, published additionalProperties: false
TypeScript, after listTools: exception MCP error -32602: Structured content does not match the tool's output schema: data must NOT have additional properties
TypeScript, messages sent: 2
Python, published additionalProperties: None
Python, after list_tools: {'id': 'm1'} is_error False
END
