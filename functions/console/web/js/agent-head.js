// The head of every page of an agent.

import { chip, head, tabs } from "./parts.js";
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
