// The agents of a person.

import { counted, money } from "./format.js";
import { chip, empty, head, link, row, rows } from "./parts.js";
import { unfinishedSetups } from "./setups.js";
import { h } from "./view.js";

export const agentsPage = {
  nav: "agents",
  title: () => "Agents",
  reads: () => ({ all: "/agents?limit=200" }),
  view(ctx) {
    const { all } = ctx.data;
    const groups = [
      ["active", "At work"],
      ["paused", "Paused"],
      ["archived", "Archived"],
    ];
    return h(
      "div",
      { key: "agents" },
      head("Agents", all.data.length > 0 && counted(all.data.length, "agent"), link("Set up an agent", "#/setup", { kind: "primary" })),
      unfinishedSetups(ctx),
      all.data.length === 0 && empty("No agent yet. One sentence is enough to begin.", link("Set up an agent", "#/setup", { kind: "primary" })),
      groups.map(([status, title]) => {
        const agents = all.data.filter((agent) => agent.status === status);
        return (
          agents.length > 0 &&
          h(
            "section",
            { class: "sec", key: status, "aria-label": title },
            h("h2", {}, title, h("span", { class: "muted" }, ` ${agents.length}`)),
            rows(
              agents.map((agent) =>
                row({
                  key: agent.agent_id,
                  time: agent.status === "active" ? null : chip(agent.status),
                  title: agent.name,
                  href: `#/agents/${agent.agent_id}`,
                  note: [agent.goal],
                  end: h("span", { class: "muted" }, [counted(agent.metrics.assets ?? 0, "asset"), counted(agent.metrics.actions_completed ?? 0, "run"), agent.metrics.cost_micros > 0 && money(agent.metrics.cost_micros)].filter(Boolean).join(" · ")),
                }),
              ),
            ),
          )
        );
      }),
    );
  },
};
