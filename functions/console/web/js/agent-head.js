// The head of every page of an agent.

import { chip, draftOf, head, press, tabs } from "./parts.js";
import { h } from "./view.js";

/** `current` is `chat`, `actions`, `assets` or `settings`; `counts` may name how many actions and assets there are. */
export function agentHead(agent, current, { counts = {}, aside = [] } = {}) {
  const at = `#/agents/${agent.agent_id}`;
  return [
    head(agent.name, agent.status === "active" ? h("span", { class: "clamp one" }, agent.goal) : chip(agent.status), ...aside),
    tabs("Pages of this agent", [
      ["Chat", at, current === "chat"],
      ["Actions", `${at}/actions`, current === "actions", counts.actions],
      ["Assets", `${at}/assets`, current === "assets", counts.assets ?? agent.metrics?.assets],
      ["Settings", `${at}/settings`, current === "settings"],
    ]),
  ];
}

/**
 * A button that drafts a message in the chat: the goal of the agent often names a time, and only an action keeps it. The person changes and
 * sends it.
 */
export function askForActions(ctx, agent, { kind = "primary", write } = {}) {
  if (agent.status === "archived") return null;
  return press(
    "Ask it to propose its actions",
    () => {
      const draft = draftOf(`chat ${agent.agent_id}`);
      const text = draft.get().trim();
      const asked = `Schedule: ${agent.goal}`;
      if (!text.includes(asked)) draft.set(text ? `${text}\n\n${asked}` : asked);
      if (write) write(draft.get());
      else ctx.go(`#/agents/${agent.agent_id}?write`);
    },
    { kind, key: "ask for actions" },
  );
}
