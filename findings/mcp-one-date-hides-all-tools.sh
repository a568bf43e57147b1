#!/usr/bin/env bash
# Guess:    a tool whose schema can't be written as JSON Schema fails when it is registered, or is the only
#           one that is missing from the list.
# Reality:  with the TypeScript SDK, `registerTool` accepts `z.date()` (and `z.bigint()`), the server
#           starts, and `tools/call` of every tool works. But `tools/list` answers -32603 for *all* tools, because
#           schemas are converted while the list is written, and the first error ends it. A server
#           that was tested by calling its tools looks healthy; a client that lists first sees nothing at all.
# Others:   the Python SDK writes a `datetime` as a string with `format: date-time`, and lists both tools.
# Versions: @modelcontextprotocol/sdk 1.32.2 with zod 4.6.7 (npm), mcp 2.3.0 (PyPI).
# Why:      times are what a scheduling tool takes as arguments. "The connection has no tools" is then the
#           symptom of one property of one tool; the person looks for a network fault.
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
for (const [name, field] of [['string', z.string()], ['date', z.date()], ['coerce.date', z.coerce.date()], ['bigint', z.bigint()]]) {
  const server = new McpServer({ name: 's', version: '1' });
  server.registerTool('ping', { inputSchema: {} }, async () => ({ content: [{ type: 'text', text: 'pong' }] }));
  server.registerTool('remind', { inputSchema: { at: field.optional() } }, async () => ({ content: [{ type: 'text', text: 'set' }] }));
  const client = new Client({ name: 'c', version: '1' });
  const [a, b] = InMemoryTransport.createLinkedPair();
  await Promise.all([server.connect(a), client.connect(b)]);
  const list = await client.listTools().then(r => r.tools.map(t => t.name).join(' and '), e => e.message);
  const call = await client.callTool({ name: 'ping', arguments: {} }).then(r => r.content[0].text, e => e.message);
  console.log(`TypeScript, z.${name}: list = ${list}; call of the other tool = ${call}`);
  await client.close();
}
END
cat > "$WORK/probe.py" <<'END'
import asyncio, datetime
from mcp import Client
from mcp.server.mcpserver import MCPServer

server = MCPServer("s")

@server.tool()
def ping() -> str:
    return "pong"

@server.tool()
def remind(at: datetime.datetime | None = None) -> str:
    return "set"

async def main():
    async with Client(server) as client:
        names = [tool.name for tool in (await client.list_tools()).tools]
        print("Python, datetime: list =", " and ".join(names))

asyncio.run(main())
END
probe node probe.mjs
probe "$PYTHON" probe.py

expect "one tool with a date argument makes tools/list fail for all tools" <<'END'
TypeScript, z.string: list = ping and remind; call of the other tool = pong
TypeScript, z.date: list = MCP error -32603: Date cannot be represented in JSON Schema; call of the other tool = pong
TypeScript, z.coerce.date: list = MCP error -32603: Date cannot be represented in JSON Schema; call of the other tool = pong
TypeScript, z.bigint: list = MCP error -32603: BigInt cannot be represented in JSON Schema; call of the other tool = pong
Python, datetime: list = ping and remind
END
