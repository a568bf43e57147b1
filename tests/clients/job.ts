// The README's walk-through, with a client that openapi-typescript and openapi-fetch generate from the document.
// node generated/js/job.js URL
// The program ends with an error if anything is wrong.

import createClient from "openapi-fetch";
import type { components, paths } from "./generated/schema.js";

declare const process: { argv: string[] };

type Run = components["schemas"]["RunView"];

const client = createClient<paths, "application/json" | "application/problem+json">({
  baseUrl: process.argv[2],
  headers: { Accept: "application/json" },
});

function must<T>(value: T | null | undefined, what: string): T {
  if (value === null || value === undefined) throw new Error(`there is no ${what}`);
  return value;
}

async function done<T>(call: Promise<{ data?: T; error?: unknown; response: Response }>): Promise<T> {
  const { data, error, response } = await call;
  if (error !== undefined || data === undefined) {
    throw new Error(`${response.url}: ${response.status} ${JSON.stringify(error)}`);
  }
  return data;
}

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

// Set an agent up by talking.
let setup: Run = await done(client.POST("/setup/chat", { body: { message: "I want to follow my market" } }));
const setupChat = must(setup.chat_id, "chat");
for (const message of ["A research agent that reports on three competitors", "One page that names every price change", "Ongoing"]) {
  setup = await done(client.POST("/setup/chat", { body: { chat_id: setupChat, message } }));
}
const agent = await done(client.POST("/agents", { body: must(setup.agent_draft, "draft of an agent") }));
const agentPath = { path: { agent_id: agent.agent_id } };

// Ask for something now, and save it.
const asked: Run = await done(
  client.POST("/agents/{agent_id}/chat", { params: agentPath, body: { message: "Write a brief about lamp oil prices" } }),
);
const proposedAsset = must(asked.proposals[0], "proposal of an asset");
const asset = await done(
  client.POST("/agents/{agent_id}/assets", {
    params: { ...agentPath, header: { "Idempotency-Key": crypto.randomUUID() } },
    body: { proposal_id: proposedAsset.proposal_id },
  }),
);
const text = await done(
  client.GET("/assets/{asset_id}/content", { params: { path: { asset_id: asset.asset_id } }, parseAs: "text" }),
);
if (!String(text).includes("lamp oil")) throw new Error(`the brief is about something else: ${text}`);

// Ask for something later, approve it, and set its time.
const planned: Run = await done(
  client.POST("/agents/{agent_id}/chat", { params: agentPath, body: { message: "Schedule a report on lamp oil prices" } }),
);
const proposedAction = must(planned.proposals[0], "proposal of an action");
const defined = await done(
  client.POST("/agents/{agent_id}/actions", { params: agentPath, body: { proposal_id: proposedAction.proposal_id } }),
);
const actionPath = { path: { action_id: defined.action_id } };
await done(
  client.POST("/actions/{action_id}/approve", { params: actionPath, body: { approval_hash: defined.approval_hash } }),
);
const at = new Date(Math.ceil(Date.now() / 1000) * 1000 + 60_000).toISOString().replace(".000Z", "Z");
const scheduled = await done(
  client.POST("/actions/{action_id}/schedule", { params: actionPath, body: { schedule: { at } } }),
);
if (scheduled.state !== "scheduled") throw new Error(`the action is ${scheduled.state}`);

// Read what it made.
for (;;) {
  const action = await done(client.GET("/actions/{action_id}", { params: actionPath }));
  if (action.state === "completed") break;
  if (!["scheduled", "in_progress"].includes(action.state)) throw new Error(`the action is ${action.state}`);
  await pause(250);
}
const runs = await done(client.GET("/actions/{action_id}/runs", { params: { ...actionPath, query: { limit: 10 } } }));
const run = must(runs.data[0], "run");
const outputs = await done(
  client.GET("/actions/{action_id}/runs/{run_id}/outputs", {
    params: { path: { action_id: defined.action_id, run_id: run.run_id } },
  }),
);
must(outputs.data[0], "output");

// Ask why, and talk about it.
const why = await done(client.GET("/actions/{action_id}/why", { params: { ...actionPath, query: { at } } }));
if (why.code !== "ran") throw new Error(why.sentence);
const talk = await done(
  client.POST("/actions/{action_id}/messages", { params: actionPath, body: { content: "What happened in the last run?" } }),
);
console.log(talk.message);
const wish = await done(
  client.POST("/actions/{action_id}/messages", { params: actionPath, body: { content: "Name the sources, too" } }),
);
const changed = await done(
  client.PATCH("/actions/{action_id}", {
    params: actionPath,
    body: { proposal_id: must(wish.proposals[0], "proposed change").proposal_id },
  }),
);
if (!changed.task_config.instructions.includes("Name the sources, too")) throw new Error("the change is lost");

// An error is a problem document of the type in the OpenAPI document.
const lost = await client.GET("/agents/{agent_id}", { params: { path: { agent_id: "agt_" + "0".repeat(32) } } });
if (lost.error?.code !== "not_found") throw new Error(JSON.stringify(lost.error));
console.log("the main job is done");
