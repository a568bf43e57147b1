// A rehearsal: what a run would do, without doing it, and the least that it must be allowed.

import { post } from "./api.js";
import { toolWords } from "./changes.js";
import { bytes, capital, clock, counted, duration, listed, money, moment } from "./format.js";
import { button, dialog, dialogActs, draftOf, failureOf, press, section } from "./parts.js";
import { runEvents } from "./run-events.js";
import { h } from "./view.js";

const rehearsalDraft = (actionId) => draftOf(`rehearsal ${actionId}`);

/** The newest rehearsal of an action that was begun in this tab, or "". */
export const rehearsalId = (actionId) => rehearsalDraft(actionId).get();

/** Begins a rehearsal. */
export async function rehearse(ctx, actionId, tools = []) {
  const { run_id: runId } = await post(`/actions/${actionId}/rehearse`, tools.length > 0 ? { provider_tools: tools } : {});
  rehearsalDraft(actionId).set(runId);
  ctx.state.isOnTicket = false;
  ctx.say("The rehearsal has begun.");
}

const TRIED_TOOLS = [
  ["web_search", "Search the web", "What it searches for leaves the platform."],
  ["code_execution", "Run code", "At the provider of the model, not here."],
];

/** Asks which tools a rehearsal may try that the action is not granted. */
export function askToRehearse(ctx, actionId) {
  const tools = new Set();
  ctx.open(() =>
    dialog(
      { title: "Rehearse with more tools", onclose: () => ctx.close() },
      h("p", {}, "The rehearsal may use these up to ten times each. The action itself is not allowed to use them by this."),
      h(
        "div",
        { class: "choices" },
        TRIED_TOOLS.map(([name, label, note]) =>
          h(
            "label",
            { key: name },
            h("input", {
              type: "checkbox",
              onchange: (event) => {
                if (event.target.checked) tools.add(name);
                else tools.delete(name);
                ctx.redraw();
              },
            }),
            h("span", {}, label, h("small", {}, note)),
          ),
        ),
      ),
      failureOf(ctx, "rehearse"),
      dialogActs(ctx, button(ctx, "Rehearse", { key: "rehearse", kind: "primary", starts: true, disabled: tools.size === 0, act: () => rehearse(ctx, actionId, [...tools]).then(() => ctx.close()) })),
    ),
  );
}

/** Forgets a rehearsal, for example after it was approved. */
export const forgetRehearsal = (actionId) => rehearsalDraft(actionId).set("");

/** These need a grant. All other tools of a run need none. */
export const NEEDS_GRANT = new Set(["web_search", "code_execution", "generate_asset", "generate_actions", "edit_theme", "apply_theme_changes"]);

const timesWord = (count) => (count === 0 ? "never" : count === 1 ? "once" : `${count} times`);

/** Whether the grant of a rehearsal differs from that of the action. */
function isSmaller(action, done) {
  const same = JSON.stringify([...action.grants].sort()) === JSON.stringify([...done.grants].sort());
  return !same || done.grants.some((grant) => (done.max_uses[grant] ?? null) !== (action.max_uses?.[grant] ?? null));
}

export function rehearsalSection(ctx, action, run) {
  const runId = run.run_id;
  const note = run.finished_at ? [moment(run.finished_at), duration(Date.parse(run.finished_at) - Date.parse(run.created_at)), run.cost_micros > 0 && money(run.cost_micros)].filter(Boolean).join(" · ") : `since ${clock(run.created_at)}`;
  const again = button(ctx, "Rehearse again", { key: "rehearse", kind: "quiet", starts: true, act: () => rehearse(ctx, action.action_id) });
  if (run.state === "running") {
    const { events } = runEvents(ctx, runId, run.state);
    const calls = events.filter((event) => event.event === "tool.requested").map((event) => event.data.tool);
    return section(
      "Rehearsal",
      { note, id: "rehearsal" },
      h("p", { class: "said-so", role: "status" }, calls.length > 0 ? `It has used: ${listed([...new Set(calls.map(toolWords))])}. Nothing of it is done.` : "It works. Nothing of it is done."),
      h("div", { class: "acts" }, h("a", { class: "btn quiet", href: `#/runs/${runId}` }, "Watch it"), h("div", { class: "end" }, button(ctx, "Cancel the rehearsal", { key: `cancel ${runId}`, act: () => post(`/runs/${runId}/cancel`) }))),
      failureOf(ctx, `cancel ${runId}`),
    );
  }
  const done = run.rehearsal;
  if (!done) {
    return section(
      "Rehearsal",
      { note, id: "rehearsal" },
      h("p", { class: "said-so" }, h("b", { class: run.state === "cancelled" ? "warn" : "bad" }, run.state === "cancelled" ? "It was cancelled." : "It failed."), run.error && ` ${capital(run.error.detail)}`),
      h("div", { class: "acts" }, h("a", { class: "btn quiet", href: `#/runs/${runId}` }, "See what happened"), h("div", { class: "end" }, again)),
    );
  }
  const outside = done.effects.filter((effect) => !["save_output", "note"].includes(effect.tool));
  const tools = [...new Set([...action.grants, ...done.grants, ...Object.keys(done.used)])].sort();
  const isNew = isSmaller(action, done);
  return section(
    "Rehearsal",
    { note, id: "rehearsal" },
    h(
      "p",
      { class: "said-so" },
      done.outputs.length === 0 ? "It would have saved nothing. " : `It would have saved ${counted(done.outputs.length, "output")}. `,
      outside.length > 0 && [h("b", { class: "warn" }, `It would have used: ${listed([...new Set(outside.map((effect) => toolWords(effect.tool)))])}`), "; nothing of it was done. "],
      done.score !== null && done.score !== undefined ? `The check gave it ${done.score} of 100.` : "Nobody has judged it.",
    ),
    h(
      "div",
      { class: "quick" },
      done.outputs.map((output, index) => press(`Read “${output.title}”`, () => openText(ctx, output.title, output.content, bytes(output.bytes)), { key: `output ${index}` })),
      outside.map((effect, index) => press(`See what it would have done: ${toolWords(effect.tool)}`, () => openText(ctx, `Not done: ${toolWords(effect.tool)}`, effect.arguments), { key: `effect ${index}` })),
      h("a", { class: "btn quiet", href: `#/runs/${runId}` }, "See its steps"),
    ),
    tools.length > 0 &&
      h(
        "table",
        { class: "tbl" },
        h("caption", { class: "vh" }, "Tools of the rehearsal"),
        h("thead", {}, h("tr", {}, ["It can", "Allowed", "Used", "Would be enough"].map((name) => h("th", { scope: "col" }, name)))),
        h(
          "tbody",
          {},
          tools.map((tool) => {
            const asks = action.grants.includes(tool) ? (action.max_uses?.[tool] ? `${timesWord(action.max_uses[tool])} a run` : "yes") : NEEDS_GRANT.has(tool) ? "no" : "always";
            const smallest = done.grants.includes(tool) ? (done.max_uses[tool] ? `${timesWord(done.max_uses[tool])} a run` : "yes") : action.grants.includes(tool) ? h("b", {}, "not needed") : "—";
            return h("tr", { key: tool }, h("th", { scope: "row" }, toolWords(tool)), h("td", { "data-l": "Allowed" }, asks), h("td", { "data-l": "Used" }, timesWord(done.used[tool] ?? 0)), h("td", { "data-l": "Would be enough" }, smallest));
          }),
        ),
      ),
    failureOf(ctx, "rehearse"),
    h(
      "div",
      { class: "acts" },
      h("span", { class: "muted" }, isNew ? "The rehearsal used less than the action is allowed." : "The rehearsal used what the action is allowed."),
      h(
        "div",
        { class: "end" },
        again,
        press(ctx.state.isOnTicket ? "Allow all of it again" : "Allow only what it used", () => {
          ctx.state.isOnTicket = !ctx.state.isOnTicket;
          ctx.redraw();
          if (ctx.state.isOnTicket) requestAnimationFrame(() => requestAnimationFrame(() => document.querySelector(".ticket")?.scrollIntoView({ block: "nearest" })));
        }),
      ),
    ),
  );
}

/** Shows a text in a dialog. */
export function openText(ctx, title, text, note) {
  ctx.open(() => dialog({ title, kind: "wide", onclose: () => ctx.close() }, note && h("p", { class: "muted" }, note), h("pre", { class: "reader", tabindex: "0", "aria-label": title }, text)));
}

/** The approval as it is with the grant of a rehearsal. */
export function approvalWith(view, done) {
  // Tools that no grant names belong to the agent, and stay.
  const tools = (view.current.tools ?? []).filter((tool) => done.grants.includes(tool.name) || !view.current.grants.includes(tool.name));
  return { ...view, current: { ...view.current, grants: done.grants, max_uses: done.max_uses, tools } };
}
