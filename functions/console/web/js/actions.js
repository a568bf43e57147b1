// The actions of an agent, by state.

import { get, getAll, post } from "./api.js";
import { LIVE_MS, RESTING_MS, cached, reading } from "./app.js";
import { fieldsInWords, formReads, formView, openForm } from "./action-form.js";
import { occurrenceHref, occurrenceName } from "./action-grid.js";
import { agentHead, askForActions } from "./agent-head.js";
import { changeView, fieldName, scheduleWords, toolWords } from "./changes.js";
import { counted, listed, money, moment, relative } from "./format.js";
import { button, dialog, dialogActs, empty, failureOf, lamp, link, press, section, willRunAt } from "./parts.js";
import { h } from "./view.js";

const MOST_ACTION_PAGES = 5;
/** The last runs are read for this many actions at most. */
const MOST_LAST_RUNS = 40;
const APPROVE_AT_ONCE = 100;

/** Groups in their order: what each is called, and which actions belong to it. */
const ACTION_GROUPS = [
  ["Waits for you", (action) => action.state === "needs_approval" || (needsApproval(action) && ["defined", "scheduled", "paused"].includes(action.state))],
  ["Runs now", (action) => action.state === "in_progress"],
  ["Scheduled", (action) => action.state === "scheduled"],
  ["Paused", (action) => action.state === "paused"],
  ["Ready", (action) => action.state === "defined"],
  ["Failed", (action) => action.state === "failed"],
  ["Done", (action) => action.state === "completed"],
  ["Dismissed", (action) => action.state === "dismissed"],
];
const FOLDED_GROUPS = new Set(["Done", "Dismissed"]);

const needsApproval = (action) => !action.approval || action.approval.hash !== action.approval_hash;

const canPause = (action) => action.state === "scheduled" || (action.state === "in_progress" && action.next_due);
const canResume = (action) => action.state === "paused";
const canApprove = (action) => needsApproval(action) && action.state !== "dismissed";

const listKey = (agentId) => `/actions of ${agentId}`;

/** The newest due time of each action, for its lamp. Actions that have not changed since are not asked again. */
const lastRuns = new Map();

async function readLastRuns(actions, signal) {
  await Promise.all(
    actions.slice(0, MOST_LAST_RUNS).map(async (action) => {
      const known = lastRuns.get(action.action_id);
      if (known?.version === action.version && !action.live_run) return;
      const answer = await get(`/actions/${action.action_id}/runs?limit=1`, signal).catch((error) => {
        if (signal.aborted) throw error;
        return null;
      });
      if (answer) lastRuns.set(action.action_id, { version: action.version, run: answer.data[0] ?? null });
    }),
  );
  return Object.fromEntries(actions.map((action) => [action.action_id, lastRuns.get(action.action_id)?.run ?? null]));
}

export const actionsPage = {
  nav: "agents",
  title: (ctx) => `Actions of ${ctx.data.agent.name}`,
  reads(ctx) {
    const id = ctx.params.agent_id;
    const actions = cached(listKey(id));
    return {
      agent: `/agents/${id}`,
      actions: reading(listKey(id), (signal) => getAll(`/actions?agent_id=${encodeURIComponent(id)}&limit=200`, MOST_ACTION_PAGES, signal)),
      stale: reading(`/agents/${id}/approvals all`, (signal) => getAll(`/agents/${id}/approvals?limit=100`, 2, signal)),
      ...(ctx.query.new !== undefined && formReads(id)),
      ...(actions && { last: reading(`last runs of ${id}`, (signal) => readLastRuns(cached(listKey(id))?.data ?? actions.data, signal)) }),
    };
  },
  every: (ctx) => (ctx.data.actions?.data.some((action) => action.state === "in_progress") ? LIVE_MS : RESTING_MS),
  view(ctx) {
    const { agent, actions, stale, last = {} } = ctx.data;
    const isNew = ctx.query.new !== undefined;
    return h(
      "div",
      { key: `actions of ${agent.agent_id}` },
      agentHead(agent, "actions", { counts: { actions: actions.data.length }, aside: isNew ? [] : [link("New action", `#/agents/${agent.agent_id}/actions?new`, { kind: "" })] }),
      isNew ? newAction(ctx, agent) : actions.data.length === 0 ? empty("This agent has no actions yet, so nothing runs by itself. Ask it to propose some. You see the message before it is sent.", askForActions(ctx, agent), link("Fill in a form", `#/agents/${agent.agent_id}/actions?new`, { kind: "" })) : listPart(ctx, actions, stale, last),
    );
  },
};

function newAction(ctx, agent) {
  ctx.state.form ??= openForm(ctx, null, agent.agent_id);
  return formView(ctx, ctx.state.form, {
    agentName: agent.name,
    cancelHref: `#/agents/${agent.agent_id}/actions`,
    done: (made) => ctx.go(`#/actions/${made.action_id}`),
  });
}

function listPart(ctx, actions, stale, last) {
  const state = ctx.state;
  state.filter ??= "";
  state.chosen ??= new Set();
  const words = state.filter.trim().toLowerCase().split(/\s+/).filter(Boolean);
  const shown = actions.data.filter((action) => words.every((word) => `${action.title} ${action.description} ${action.schedule_text ?? ""}`.toLowerCase().includes(word)));
  const staleById = new Map(stale.data.map((one) => [one.action_id, one]));
  const left = new Set(shown);
  const groups = ACTION_GROUPS.map(([name, belongs]) => {
    const own = [...left].filter(belongs);
    own.forEach((action) => left.delete(action));
    return [name, own];
  }).filter(([, own]) => own.length > 0);
  const chosen = actions.data.filter((action) => state.chosen.has(action.action_id));
  return h(
    "div",
    { class: "actions-of" },
    h(
      "div",
      { class: "tools" },
      h("input", {
        type: "search",
        "data-filter": true,
        "aria-label": "Filter the actions",
        placeholder: "Filter by a word",
        value: state.filter,
        oninput: (event) => {
          state.filter = event.target.value;
          ctx.redraw();
        },
      }),
      h("span", { class: "muted", role: "status" }, words.length > 0 ? `${shown.length} of ${counted(actions.data.length, "action")}` : counted(actions.data.length, "action")),
    ),
    stale.data.length > 1 && staleBanner(ctx, stale),
    !actions.complete && h("p", { class: "muted pad" }, "The newest 1,000 actions are shown."),
    shown.length === 0 && empty(`No action has “${state.filter.trim()}” in its name, its description or its schedule.`, press("Show all", () => {
      state.filter = "";
      ctx.redraw();
    })),
    groups.map(([name, own]) => groupPart(ctx, name, own, staleById, last)),
    chosen.length > 0 && bulkBar(ctx, chosen, staleById),
    ["bulk pause", "bulk resume"].map((key) => ctx.failure(key) && h("div", { key: `failed ${key}` }, failureOf(ctx, key))),
    state.bulkResult && h("div", { class: "banner", role: "status", key: "bulk result" }, h("p", {}, state.bulkResult.text), state.bulkResult.failed.length > 0 && h("ul", {}, state.bulkResult.failed.map((text, index) => h("li", { key: index }, text))), press("Close", () => {
      state.bulkResult = null;
      ctx.redraw();
    }, { kind: "quiet" })),
  );
}

function staleBanner(ctx, stale) {
  return h(
    "div",
    { class: "banner", key: "stale" },
    h("p", {}, h("b", { class: "warn" }, `A change of the agent withdrew ${counted(stale.data.length, "approval")}. `), "Look at what has changed, then approve them together."),
    press("Choose all of them", () => {
      for (const one of stale.data) ctx.state.chosen.add(one.action_id);
      ctx.redraw();
    }),
  );
}

function groupPart(ctx, name, own, staleById, last) {
  const { state } = ctx;
  const list = h("ul", { class: "actions-list" }, own.map((action) => actionRow(ctx, action, staleById.get(action.action_id), last[action.action_id])));
  const isFolded = FOLDED_GROUPS.has(name) && !state.filter.trim() && !state.unfolded?.has(name);
  const all = own.every((action) => state.chosen.has(action.action_id));
  return section(
    name,
    {
      note: own.length,
      end: isFolded
        ? press("Show", () => {
            (state.unfolded ??= new Set()).add(name);
            ctx.redraw();
          }, { kind: "link" })
        : own.length > 1 &&
          press(all ? "Choose none" : "Choose all", () => {
            for (const action of own) {
              if (all) state.chosen.delete(action.action_id);
              else state.chosen.add(action.action_id);
            }
            ctx.redraw();
          }, { kind: "link" }),
    },
    !isFolded && list,
  );
}

function actionRow(ctx, action, stale, run) {
  const { state } = ctx;
  const id = action.action_id;
  const isOpen = state.open?.has(id);
  return h(
    "li",
    { key: id },
    h("input", {
      type: "checkbox",
      "aria-label": `Choose ${action.title}`,
      checked: state.chosen.has(id),
      onchange: (event) => {
        if (event.target.checked) state.chosen.add(id);
        else state.chosen.delete(id);
        ctx.redraw();
      },
    }),
    run ? lamp(run.state, occurrenceHref(run), `Last: ${occurrenceName(run)}`) : h("span", { class: "muted", title: "It has not run yet." }, "·"),
    h("span", { class: "what" }, h("a", { href: `#/actions/${id}` }, action.title), h("small", {}, actionNote(action, stale))),
    h(
      "span",
      { class: "end" },
      willRunAt(action) && h("time", { datetime: action.next_due, title: moment(action.next_due) }, `${relative(action.next_due)} · ${moment(action.next_due)}`),
      !stale && canApprove(action) && !action.live_run && link("Look at it and approve", `#/actions/${id}`),
      stale &&
        press(isOpen ? "Hide the change" : "See the change", () => {
          state.open ??= new Set();
          if (isOpen) state.open.delete(id);
          else state.open.add(id);
          ctx.redraw();
        }, { kind: "link", expanded: Boolean(isOpen) }),
    ),
    isOpen && stale && h("div", { class: "detail" }, stale.changes.map((change) => h("div", { class: "change", key: change.field }, h("h3", {}, fieldName(change.field)), changeView(ctx, change.field, change.approved, change.current)))),
  );
}

function actionNote(action, stale) {
  const when = action.schedule_text ? scheduleWords(action.schedule_text) : "runs when you run it";
  const why = stale
    ? `changed since you approved it: ${fieldsInWords(stale.changes.map((change) => change.field))}`
    : action.state === "needs_approval" && action.live_run
      ? "its run waits for you"
      : needsApproval(action) && action.state !== "dismissed"
        ? "not approved"
        : action.paused_because
          ? `paused ${action.paused_because.text}`
          : action.preflight?.problems.length > 0
            ? `the next run will fail: ${action.preflight.problems[0].text}`
            : null;
  return [when, why].filter(Boolean).join(" · ");
}

// ---- Many at once ----

function bulkBar(ctx, chosen, staleById) {
  const toPause = chosen.filter(canPause);
  const toResume = chosen.filter(canResume);
  const toApprove = chosen.filter(canApprove).slice(0, APPROVE_AT_ONCE);
  return h(
    "div",
    { class: "bulk", role: "group", "aria-label": "What to do with the chosen actions", key: "bulk" },
    h("p", {}, `${counted(chosen.length, "action")} chosen`),
    press("Choose none", () => {
      ctx.state.chosen.clear();
      ctx.redraw();
    }, { kind: "quiet" }),
    toPause.length > 0 && button(ctx, `Pause ${toPause.length}`, { key: "bulk pause", act: () => eachOf(ctx, toPause, "pause", "paused") }),
    toResume.length > 0 && button(ctx, `Resume ${toResume.length}`, { key: "bulk resume", act: () => eachOf(ctx, toResume, "resume", "resumed") }),
    toApprove.length > 0 && press(`Approve ${toApprove.length}…`, () => askApproval(ctx, toApprove, staleById), { kind: "primary" }),
  );
}

/** A few at a time, so that one slow answer does not hold up all, and the platform is not flooded. */
const BULK_AT_ONCE = 4;

async function eachOf(ctx, actions, command, word) {
  const failed = [];
  const left = [...actions];
  const work = async () => {
    for (let action = left.shift(); action; action = left.shift()) {
      try {
        await post(`/actions/${action.action_id}/${command}`, {});
        ctx.state.chosen.delete(action.action_id);
      } catch (error) {
        failed.push(`${action.title}: ${error.message}`);
      }
    }
  };
  await Promise.all(Array.from({ length: BULK_AT_ONCE }, work));
  reportBulk(ctx, `${counted(actions.length - failed.length, "action")} ${word}.`, failed);
}

/** Shows what would be approved, before it is. */
function askApproval(ctx, actions, staleById) {
  ctx.open(() =>
    dialog(
      { title: `Approve ${counted(actions.length, "action")}?`, kind: "wide", onclose: () => ctx.close() },
      h(
        "ul",
        { class: "to-approve" },
        actions.map((action) => {
          const stale = staleById.get(action.action_id);
          return h(
            "li",
            { key: action.action_id },
            h("h3", {}, action.title),
            h("p", { class: "muted" }, action.schedule_text ? scheduleWords(action.schedule_text) : "runs when you run it", ` · up to ${money(action.budget.per_run_micros)} a run`, action.grants.length > 0 && ` · may ${listed(action.grants.map(toolWords))}`),
            stale
              ? stale.changes.map((change) => h("div", { class: "change", key: change.field }, h("h4", {}, fieldName(change.field)), changeView(ctx, change.field, change.approved, change.current)))
              : h("p", { class: "long" }, action.task_config.instructions || action.description),
          );
        }),
      ),
      failureOf(ctx, "bulk approve"),
      dialogActs(ctx, button(ctx, `Approve ${counted(actions.length, "action")}`, { key: "bulk approve", kind: "primary", act: () => approveAll(ctx, actions).then(() => ctx.close()) })),
    ),
  );
}

async function approveAll(ctx, actions) {
  const agentId = actions[0].agent_id;
  const answer = await post(`/agents/${agentId}/approvals`, { approvals: actions.map((action) => ({ action_id: action.action_id, approval_hash: action.approval_hash })) });
  const titles = new Map(actions.map((action) => [action.action_id, action.title]));
  const failed = [];
  for (const one of answer.data) {
    if (one.approved) ctx.state.chosen.delete(one.action_id);
    else failed.push(`${titles.get(one.action_id)}: ${one.detail ?? one.code}`);
  }
  reportBulk(ctx, `${counted(answer.data.length - failed.length, "action")} approved.`, failed);
}

function reportBulk(ctx, text, failed) {
  ctx.state.bulkResult = { text, failed };
  ctx.say(failed.length > 0 ? `${text} ${counted(failed.length, "action")} not.` : text);
}
