// A sequence of calls, with the official TypeScript client: node client.mjs URL WORKFLOW SEQUENCE
// Prints how many calls were made, and every answer that differs. If one differs, the exit status is 1.

import { readFileSync } from "node:fs";
import { isDeepStrictEqual } from "node:util";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const [url, workflow, sequence] = process.argv.slice(2);
const steps = JSON.parse(readFileSync(new URL(sequence, import.meta.url), "utf8"));
const known = { workflow };
let calls = 0;
const differences = [];

function filled(value, index) {
  if (typeof value === "string") {
    return value.replace(/\$(\w+)/g, (name, key) => known[key] ?? name).replace("#", index ?? "#");
  }
  if (Array.isArray(value)) return value.map((item) => filled(item, index));
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, filled(item, index)]));
}

function at(value, pointer) {
  return pointer.split("/").slice(1).reduce((part, key) => part?.[key], value);
}

function expect(step, what, found, wanted) {
  if (!isDeepStrictEqual(found, wanted)) differences.push({ step, what, found, wanted });
}

async function tool(client, step, index) {
  calls += 1;
  const result = await client.callTool({ name: step.call, arguments: filled(step.with, index) });
  if (step.fails !== undefined) {
    expect(step, "isError", [result.isError, result.content[0].text], [true, step.fails]);
    return;
  }
  if (result.isError) {
    differences.push({ step, error: result.content[0].text });
    return;
  }
  expect(step, "text", JSON.parse(result.content[0].text), result.structuredContent);
  for (const [pointer, wanted] of Object.entries(step.gives)) {
    expect(step, pointer, at(result.structuredContent, pointer), filled(wanted));
  }
  for (const [name, pointer] of Object.entries(step.keep ?? {})) known[name] = at(result.structuredContent, pointer);
}

const LISTS = {
  tools: async (client) => (await client.listTools()).tools.map((tool) => tool.name),
  prompts: async (client) => (await client.listPrompts()).prompts.map((prompt) => prompt.name),
  resources: async (client) => (await client.listResources()).resources.map((resource) => resource.uri),
};
const REFUSED = {
  "tools/call": (client, name) => client.callTool({ name, arguments: {} }),
  "prompts/get": (client, name) => client.getPrompt({ name, arguments: {} }),
  "resources/read": (client, uri) => client.readResource({ uri }),
};

async function run(client, step) {
  if (step.call) {
    const times = Array.from({ length: step.times ?? 1 }, (_, index) => (step.times ? index : undefined));
    await Promise.all(times.map((index) => tool(client, step, index)));
    return;
  }
  calls += 1;
  if (step.list) {
    const found = await LISTS[step.list](client);
    for (const name of filled(step.has)) expect(step, name, found.includes(name), true);
    for (const name of step.lacks ?? []) expect(step, name, found.includes(name), false);
  } else if (step.prompt) {
    const { messages } = await client.getPrompt({ name: step.prompt, arguments: step.with });
    expect(step, "prompt", messages[0].content.text.startsWith(step.begins), true);
  } else if (step.resource) {
    const { contents } = await client.readResource({ uri: filled(step.resource) });
    expect(step, "resource", contents[0].text.includes(step.has), true);
  } else {
    const refused = await REFUSED[step.refused](client, step.with).then(() => false, (error) => error.code < 0);
    expect(step, "refused", refused, true);
  }
}

const client = new Client({ name: "typescript-sequence", version: "1.0.0" });
await client.connect(new StreamableHTTPClientTransport(new URL(url)));
for (const step of steps) await run(client, step);
await client.close();
for (const difference of differences) console.log(JSON.stringify(difference));
console.log(`${calls} calls, ${differences.length} differences`);
process.exit(differences.length === 0 ? 0 : 1);
