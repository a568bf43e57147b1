// An action: why it ran or did not, its last fourteen days, what is approved, what it costs, and its notebook.

import { get, post } from "./api.js";
import { LIVE_MS, RESTING_MS, cached, keep, optional, reading } from "./app.js";
import { fieldsInWords, formReads, formView, openForm, versionIfSame } from "./action-form.js";
import { GRID_SPAN_MS, actionGrid, occurrenceHref, occurrenceName, recentRuns } from "./action-grid.js";
import { notebookPage, notebookSection } from "./action-notebook.js";
import { approvalWith, askToRehearse, forgetRehearsal, rehearsalId, rehearsalSection, rehearse } from "./action-rehearsal.js";
import { actionTalkView, readActionTalk, readChanges } from "./action-talk.js";
import { callCard, questionCard } from "./cards.js";
import { changeView, fieldName, monthText, scheduleWords, watchText } from "./changes.js";
import { capital, clock, counted, dayMonth, dayMonthYear, duration, figure, isoDate, money, moment, shortHash, shownZone } from "./format.js";
import { agentName } from "./frame.js";
import { readButton, readOutputs } from "./outputs.js";
import { agentOff, button, confirmation, empty, facts, failureOf, head, isStopped, lamp, link, mayRun, moreMenu, oil, press, row, rows, section, stateWord, when, willRunAt } from "./parts.js";
import { contentFacts, deleteAction, ticket } from "./ticket.js";
import { stoppedNote } from "./stop.js";
import { h } from "./view.js";

const FIRST_CHANGES = 6;
const ALL_CHANGES = 100;

const monthNow = () => new Date().toISOString().slice(0, 7);

/** When an action that is not approved would be due first. It is asked again when that time has passed. */
const firstTimes = new Map();

async function firstTime(schedule) {
  if (!schedule) return { at: null };
  const key = JSON.stringify(schedule);
  const known = firstTimes.get(key);
  if (known && (known.at === null || Date.parse(known.at) > Date.now())) return known;
  const answer = await post("/schedules/preview", { schedule, count: 1 }).catch(() => null);
  if (!answer) return { at: null };
  const first = { at: answer.fire_times[0] ?? null };
  firstTimes.set(key, first);
  return first;
}

export const actionPage = {
  nav: "agents",
  title: (ctx) => `${{ edit: "Edit: ", talk: "Talk about: ", notebook: "Notebook: ", history: "History: " }[ctx.params.view] ?? ""}${ctx.data.action.title}`,
  reads(ctx) {
    const id = ctx.params.action_id;
    const at = `/actions/${id}`;
    const action = cached(at);
    const base = { action: at };
    switch (ctx.params.view) {
      case "edit":
        return { ...base, ...formReads(action?.agent_id) };
      case "talk":
        return {
          ...base,
          talk: reading(`${at}/messages all`, (signal) => readActionTalk(id, signal)),
          ...(action && { changes: reading(`${at} proposed changes`, (signal) => readChanges(action.agent_id, id, signal)) }),
          ...(action?.live_run && action.state === "needs_approval" && { occurrence: optional(`${at}/runs/${action.live_run}`) }),
        };
      case "notebook":
        return { ...base, notebook: `${at}/notebook`, versions: `${at}/notebook/versions?limit=50` };
      case "history":
        return { ...base, history: `${at}/history?limit=${ALL_CHANGES}` };
      default: {
        const rehearsal = rehearsalId(id);
        const approval = cached(`${at}/approval`);
        return {
          ...base,
          why: `${at}/why`,
          approval: `${at}/approval`,
          runs: reading(`${at}/runs of the grid`, (signal) => recentRuns(id, Date.now() - GRID_SPAN_MS, signal)),
          history: `${at}/history?limit=${FIRST_CHANGES}`,
          notebook: `${at}/notebook`,
          usage: `/usage?month=${monthNow()}`,
          ...(action?.live_run && { live: optional(`/runs/${action.live_run}`) }),
          ...(rehearsal && { rehearsal: optional(`/runs/${rehearsal}`) }),
          // The schedule is part of the name: a time of an older schedule must not stand on the ticket.
          ...(approval && !action?.next_due && { first: reading(`first time of ${JSON.stringify(approval.current.schedule ?? null)}`, () => firstTime(approval.current.schedule)) }),
        };
      }
    }
  },
  every(ctx) {
    const { action, rehearsal } = ctx.data;
    if (ctx.params.view === "edit") return 0;
    return action?.live_run || rehearsal?.state === "running" ? LIVE_MS : RESTING_MS;
  },
  view(ctx) {
    switch (ctx.params.view) {
      case "edit":
        return editPart(ctx);
      case "talk":
        return talkPart(ctx);
      case "notebook":
        return h("div", { key: "notebook page" }, crumb(ctx), head("Notebook", "what a run hands on to the next one"), notebookPage(ctx, ctx.data));
      case "history":
        return h("div", { key: "history page" }, crumb(ctx), head("History", null), historyRows(ctx, ctx.data.action, ctx.data.history.data), ctx.data.history.has_more && h("p", { class: "muted pad" }, `The newest ${ALL_CHANGES} changes are shown.`));
      default:
        return actionOverview(ctx);
    }
  },
};

/** A list that is only offered as a choice: without it, the page works. */
function crumb(ctx) {
  const { action } = ctx.data;
  const name = agentName(ctx, action.agent_id) ?? "The agent";
  return h(
    "p",
    { class: "crumb" },
    h("a", { href: `#/agents/${action.agent_id}` }, name),
    " · ",
    h("a", { href: `#/agents/${action.agent_id}/actions` }, "Actions"),
    ctx.params.view && [" · ", h("a", { href: `#/actions/${action.action_id}` }, action.title)],
  );
}

// ---- The head ----

const act = (ctx, action, name, body = {}) => post(`/actions/${action.action_id}/${name}`, body);

function actionHead(ctx) {
  const { action } = ctx.data;
  const id = action.action_id;
  const isOver = action.state === "dismissed";
  const canPause = action.state === "scheduled" || (action.state === "in_progress" && action.next_due);
  const off = agentOff(action);
  return [
    crumb(ctx),
    head(
      action.title,
      action.schedule_text ? scheduleWords(action.schedule_text) : "runs when you run it",
      link("Talk about it", `#/actions/${id}/talk`, { kind: "quiet", key: "talk" }),
      !isOver && !off && button(ctx, "Rehearse", { key: "rehearse", starts: true, act: () => rehearse(ctx, id) }),
      mayRun(action) && button(ctx, "Run now", { key: "run", starts: true, act: () => act(ctx, action, "run").then(() => ctx.say("The run has begun.")) }),
      canPause && button(ctx, "Pause", { key: "pause", act: () => act(ctx, action, "pause") }),
      action.state === "paused" && button(ctx, "Resume", { key: "resume", kind: "primary", act: () => act(ctx, action, "resume") }),
      menu(ctx, action),
    ),
    !isOver && stoppedNote(ctx, "no run and no rehearsal begins"),
    ["rehearse", "run", "pause", "resume"].map((key) => ctx.failure(key) && h("div", { key: `failed ${key}` }, failureOf(ctx, key))),
  ];
}

function menu(ctx, action) {
  const id = action.action_id;
  const ask = (label, options) => press(label, () => confirmation(ctx, options), { kind: "quiet", key: label });
  const isLive = Boolean(action.live_run);
  return moreMenu(
    "menu",
    link("Edit", `#/actions/${id}/edit`, { kind: "quiet", key: "edit" }),
    link("Notebook", `#/actions/${id}/notebook`, { kind: "quiet", key: "notebook" }),
    link("History", `#/actions/${id}/history`, { kind: "quiet", key: "history" }),
    isLive && ask("Cancel the run", { title: "Cancel the run?", key: "cancel action", label: "Cancel the run", text: "The run ends. What it has saved stays, and the action stays on its schedule.", act: () => act(ctx, action, "cancel") }),
    action.state !== "dismissed" && !agentOff(action) && press("Rehearse with more tools", () => askToRehearse(ctx, id), { kind: "quiet", key: "rehearse more", disabled: isStopped(ctx) }),
    !isLive && ["scheduled", "paused"].includes(action.state) && ask("End its schedule", { title: "End its schedule?", key: "cancel action", label: "End its schedule", text: "Your approval is withdrawn, and it no longer runs by itself. To start it again, approve it.", act: () => act(ctx, action, "cancel") }),
    !isLive && !["completed", "dismissed"].includes(action.state) && ask("Mark as done", { title: "Mark it as done?", key: "complete", label: "Mark as done", kind: "primary", text: "It is no longer due. You can approve it again later.", act: () => act(ctx, action, "complete") }),
    !isLive && action.state !== "dismissed" && ask("Dismiss", { title: "Dismiss this action?", key: "dismiss", label: "Dismiss", kind: "halt", text: "It never runs again. Its runs and its history stay. This cannot be undone.", act: () => act(ctx, action, "dismiss") }),
    press("Delete", () => deleteAction(ctx, id, action.title, true), { kind: "quiet", key: "delete" }),
  );
}

// ---- The overview ----

/** Times that the platform has written in the shown zone, in the words of the console. A sentence names its zone once. */
export function plainTimes(sentence) {
  const zone = /\d\d:\d\d(?::\d\d)? \(([^)]+)\)/.exec(sentence)?.[1];
  if (zone !== shownZone()) return sentence;
  const today = isoDate(Date.now());
  return sentence.replace(/(\d{4}-\d\d-\d\d) (\d\d:\d\d)(?::\d\d)?(?: \(([^)]+)\))?/g, (whole, date, time, ofZone) => {
    if (ofZone && ofZone !== zone) return whole;
    if (date === today) return `${time} today`;
    return `${time} on ${new Intl.DateTimeFormat("en-GB", { timeZone: "UTC", day: "numeric", month: "long" }).format(new Date(`${date}T12:00:00Z`))}`;
  });
}

function verdict(ctx) {
  const { action, approval, why, runs } = ctx.data;
  const newest = runs.newest.find((run) => run.state !== "unchanged");
  const lead = leadOf(action, approval);
  let sentence = plainTimes(why.sentence).replace(/ Start it with `POST \/account\/start`\./, " Start again when you want.");
  if (action.state !== "dismissed" && !approval.holds) {
    sentence = approval.approved
      ? `Your approval of ${dayMonth(approval.approved.approved_at)} no longer covers it, because this has changed: ${fieldsInWords(approval.changes.map((change) => change.field))}. ${action.held_text ? `It was ${action.held_text}; nothing ran and nothing was spent.` : "Nothing runs until you approve it again."}`
      : "Nothing runs before you have approved it.";
  } else if (action.held_text) sentence = `${sentence} Since then it was ${action.held_text}.`;
  return [
    h("p", { class: "verdict" }, lead && h("b", { class: lead[1] }, `${lead[0]} `), sentence),
    newest?.state === "succeeded" && !action.live_run && h("div", { class: "quick to-read", key: "to read" }, press("Read what it made", () => readOutputs(ctx, action.title, action.action_id, newest.run_id))),
    agentOff(action) && h("p", { class: "next muted" }, agentOff(action), " ", h("a", { href: `#/agents/${action.agent_id}/settings` }, "Settings")),
    willRunAt(action) && h("p", { class: "next muted" }, "Next ", when(action.next_due), action.queued > 0 && ` · ${counted(action.queued, "run")} queued`),
    action.state === "paused" && action.paused_because && h("div", { class: "banner", key: "paused" }, h("p", {}, h("b", {}, "The platform has paused it "), `${action.paused_because.text}.`)),
    action.preflight?.problems.length > 0 &&
      h(
        "div",
        { class: "banner", key: "preflight" },
        h("p", {}, h("b", { class: "warn" }, `The run of ${moment(action.preflight.due_at)} will fail unless this is mended:`)),
        h("ul", {}, action.preflight.problems.map((problem) => h("li", { key: problem.code }, problem.text))),
      ),
    action.failures?.times > 1 && action.state !== "paused" && h("p", { class: "muted" }, `It has failed ${figure(action.failures.times)} times in the same way. After three times the platform pauses it.`),
  ];
}

function leadOf(action, approval) {
  if (action.state === "dismissed") return ["Dismissed.", "muted"];
  if (action.state === "needs_approval" && action.live_run) return ["Waits for you.", "warn"];
  if (!approval.holds) return ["Waits for you.", "warn"];
  if (action.live_run) return ["Runs now.", "ok"];
  return { paused: ["Paused.", "warn"], failed: ["Failed.", "bad"], completed: ["Done.", "ok"], needs_approval: ["Waits for you.", "warn"] }[action.state] ?? null;
}

/** Remembers which runs went on while the page was shown, so that their lamps light up when they succeed. */
function litRuns(ctx, runs) {
  const live = (ctx.state.liveRuns ??= new Set());
  const lit = (ctx.state.litRuns ??= new Set());
  for (const run of runs.data) {
    if (["running", "claimed", "due"].includes(run.state)) live.add(run.run_id);
    else if (live.has(run.run_id) && run.state === "succeeded") lit.add(run.run_id);
  }
  return lit;
}

function actionOverview(ctx) {
  const { action, approval, runs, rehearsal, first, live, history, notebook, usage } = ctx.data;
  const id = action.action_id;
  const done = rehearsal?.rehearsal;
  const isOnTicket = ctx.state.isOnTicket && done;
  const needsTicket = action.state !== "dismissed" && (!approval.holds || isOnTicket);
  const lead = runs.newest.find((run) => run.run_id === action.live_run);
  if (isOnTicket && approval.holds && approval.approved?.hash === done.approval_hash) {
    // The smaller grant is approved.
    ctx.state.isOnTicket = false;
    forgetRehearsal(id);
  }
  return h(
    "div",
    { key: `action ${id}` },
    actionHead(ctx),
    verdict(ctx),
    // Nothing stands between a first visit and the ticket.
    !(needsTicket && runs.newest.length === 0) && actionGrid(ctx, action, runs, { lit: litRuns(ctx, runs) }),
    h(
      "div",
      { class: "cols" },
      h(
        "div",
        {},
        action.live_run && liveSection(ctx, action, live, lead),
        needsTicket &&
          section(
            "To approve",
            { note: approval.holds ? "with only what the rehearsal used" : null },
            // Until it is known when it runs, there is no button that says so.
            !action.next_due && !first ? h("div", { class: "ticket waiting", key: "waiting" }) : ticket(ctx, {
              actionId: id,
              title: action.title,
              agent: agentName(ctx, action.agent_id),
              view: isOnTicket ? approvalWith(approval, done) : approval,
              nextAt: action.next_due ?? first?.at ?? null,
              scheduleText: action.schedule_text,
              isOnPage: true,
              rehearsal: isOnTicket ? { run_id: rehearsal.run_id, approval_hash: done.approval_hash, grants: done.grants } : undefined,
            }),
          ),
        approval.holds && approval.approved && approvedSection(action, approval),
        rehearsal && rehearsalSection(ctx, action, rehearsal),
        latestSection(ctx, action, runs),
      ),
      h("div", {}, watchSection(action), costSection(action, usage), notebookSection(ctx, action, notebook), section("History", { end: h("a", { href: `#/actions/${id}/history` }, "All changes") }, historyRows(ctx, action, history.data))),
    ),
  );
}

/** The question of a run as a card needs it. */
export function questionOf(action, occurrence) {
  if (occurrence?.reason_code !== "asked" || occurrence.state !== "waiting") return null;
  // A run names possible answers on lines of their own.
  const [text, ...choices] = occurrence.reason.split("\n• ");
  const parts = choices.some((choice) => choice.includes("\n")) ? { text: occurrence.reason } : { text, choices };
  return { action_id: action.action_id, action_title: action.title, run_id: occurrence.run_id, at: occurrence.started_at ?? occurrence.due_at, ...parts };
}

function liveSection(ctx, action, live, occurrence) {
  const question = questionOf(action, occurrence);
  const cards = (live?.cards ?? []).filter((card) => card.state === "waiting");
  const waits = question || cards.length > 0;
  return section(
    waits ? "Waits for you" : "Under way",
    { id: "live", end: h("a", { href: `#/runs/${action.live_run}` }, "See the run") },
    question && questionCard(ctx, question),
    cards.map((card) => callCard(ctx, { ...card, run_id: action.live_run, action_id: action.action_id, action_title: action.title })),
    !waits && h("p", { class: "pad" }, occurrence?.started_at ? ["It has run since ", clock(occurrence.started_at), "."] : occurrence ? `It is ${stateWord(occurrence.state)}${occurrence.reason ? `: ${occurrence.reason}` : ""}.` : "It has begun."),
  );
}

function approvedSection(action, approval) {
  return section(
    "Approved",
    { note: moment(approval.approved.approved_at), end: h("code", { title: approval.approved.hash }, shortHash(approval.approved.hash)) },
    h(
      "details",
      { class: "approved", key: "approved" },
      h("summary", {}, "What you have approved"),
      contentFacts(approval),
      approval.warnings.length > 0 && h("ul", { class: "warnings" }, approval.warnings.map((warning) => h("li", {}, warning))),
      h("div", { class: "acts" }, h("div", { class: "end" }, link("Edit", `#/actions/${action.action_id}/edit`, { kind: "" }))),
    ),
  );
}

const LATEST_RUNS = 6;

function latestSection(ctx, action, runs) {
  const latest = runs.newest.filter((run) => run.state !== "unchanged").slice(0, LATEST_RUNS);
  if (latest.length === 0) return null;
  return section(
    "Latest runs",
    {},
    rows(
      latest.map((run) =>
        row({
          key: run.run_id,
          time: isoDate(run.due_at) === isoDate(Date.now()) ? clock(run.due_at) : dayMonth(run.due_at),
          title: capital(run.state === "held" && run.due_times > 1 ? `${stateWord(run.state)} ${figure(run.due_times)} times` : stateWord(run.state)),
          href: occurrenceHref(run),
          note: [moment(run.due_at), run.kind === "manual" && "by hand", run.started_at && run.finished_at && `took ${duration(Date.parse(run.finished_at) - Date.parse(run.started_at))}`, run.cost_micros > 0 && money(run.cost_micros), run.reason && plainTimes(run.reason), run.tainted && "has read what strangers have written"].filter(Boolean).join(" · "),
          end: [readButton(ctx, run, run.action_id, action.title), lamp(run.state, occurrenceHref(run), occurrenceName(run))],
        }),
      ),
    ),
  );
}

function watchSection(action) {
  const { watches = [], watching } = action;
  if (watches.length === 0) return null;
  return section(
    "Condition",
    { note: "checked by a program, no tokens" },
    watching &&
      h(
        "dl",
        { class: "act-figs" },
        [
          [figure(watching.checks), watching.checks === 1 ? "check" : "checks"],
          [figure(watching.wakes), "of them woke it"],
          [money(watching.saved_micros), "saved, about"],
        ].map(([number, word]) => h("div", { key: word }, h("dt", {}, word), h("dd", {}, number))),
      ),
    h("ul", { class: "plain act-listed" }, watches.map((watch, index) => h("li", { key: `watch ${index}` }, watchText(watch)))),
    watching?.checked_at && h("p", { class: "muted" }, "Checked last ", when(watching.checked_at)),
  );
}

function costSection(action, usage) {
  const spent = usage.month?.by_action.find((one) => one.action_id === action.action_id)?.cost_micros ?? 0;
  const ceiling = action.budget.per_month_micros;
  return section(
    "Cost",
    {},
    ceiling ? oil({ spent, ceiling, words: ["ceiling ", h("b", {}, money(ceiling))] }) : spent > 0 && h("p", { class: "pad" }, h("b", {}, money(spent)), " this month"),
    facts([
      ["A run", `at most ${money(action.budget.per_run_micros)}`],
      ["A month", monthText(action.expected_cost)],
    ]),
  );
}

// ---- History ----

const COMMANDS = { define: "Created", create: "Created", approve: "Approved", schedule: "Schedule set", pause: "Paused", resume: "Resumed", cancel: "Schedule ended", dismiss: "Dismissed", complete: "Marked as done", import: "Imported" };
const EFFECT_WORDS = { approval_withdrawn: "the approval was withdrawn", unscheduled: "its schedule was ended", scheduled: "it is on its schedule", run_cancelled: "the run was cancelled", queued_runs_cancelled: "queued runs were cancelled" };

function changedBy(ctx, action, by) {
  switch (by.kind) {
    case "person":
      return "you";
    case "api_key":
      return `the API key ${by.key_id.slice(0, 12)}…`;
    case "proposal":
      return `proposed by ${agentName(ctx, action.agent_id) ?? "the agent"}, taken over by ${by.key_id ? `the API key ${by.key_id.slice(0, 12)}…` : "you"}`;
    case "platform":
      return "the platform";
    default:
      return by.kind;
  }
}

function historyRows(ctx, action, changes) {
  if (changes.length === 0) return empty("Nothing was changed in the last 400 days.");
  const open = (ctx.state.openChanges ??= new Set());
  return h(
    "ul",
    { class: "rows act-history" },
    changes.map((change) => {
      const fields = change.changes ?? [];
      const isCreation = ["define", "create"].includes(change.command);
      const isOpen = open.has(change.version);
      const key = `revert ${change.version}`;
      const words = COMMANDS[change.command] ?? `Changed ${fieldsInWords(fields.map((one) => one.field))}`;
      const effects = (change.effects ?? []).map((effect) => EFFECT_WORDS[effect]).filter(Boolean);
      return h(
        "li",
        { key: change.version },
        h("span", { class: "when" }, isoDate(change.at) === isoDate(Date.now()) ? clock(change.at) : dayMonth(change.at)),
        h(
          "span",
          { class: "what" },
          words,
          h("small", {}, [changedBy(ctx, action, change.by), `${dayMonthYear(change.at)} ${clock(change.at)}`, ...effects].join(" · ")),
        ),
        h(
          "span",
          { class: "end" },
          fields.length > 0 &&
            press(isOpen ? "Hide" : "See", () => {
              if (isOpen) open.delete(change.version);
              else open.add(change.version);
              ctx.redraw();
            }, { kind: "quiet", expanded: isOpen }),
        ),
        isOpen &&
          h(
            "div",
            { class: "detail" },
            fields.map((one) => h("div", { class: "change", key: one.field }, h("h3", {}, fieldName(one.field)), changeView(ctx, one.field, one.before, one.after, { isPast: true, isFirst: isCreation }))),
            failureOf(ctx, key),
            !isCreation && h("div", { class: "acts" }, h("div", { class: "end" }, press("Set back to before", () => askRevert(ctx, action, change, key)))),
          ),
      );
    }),
  );
}

function askRevert(ctx, action, change, key) {
  const withdraws = action.approval && change.changes.some((one) => one.field !== "priority");
  confirmation(ctx, {
    title: "Set it back?",
    key,
    label: "Set back",
    kind: "primary",
    text: `${capital(fieldsInWords(change.changes.map((one) => one.field)))} will be as before this change.${withdraws ? " Your approval is withdrawn: nothing runs until you approve it again." : ""}`,
    act: async () => post(`/actions/${action.action_id}/history/${change.version}/revert`, undefined, { ifMatch: await versionIfSame(action) }),
  });
}

// ---- Talk and edit ----

function talkPart(ctx) {
  const { action, talk, changes, occurrence } = ctx.data;
  return h("div", { key: "talk page" }, crumb(ctx), head("Talk about it", action.schedule_text ? scheduleWords(action.schedule_text) : null), actionTalkView(ctx, action, talk, changes ?? [], questionOf(action, occurrence)));
}

function editPart(ctx) {
  const { action } = ctx.data;
  ctx.state.form ??= openForm(ctx, action, action.agent_id);
  return h(
    "div",
    { key: "edit page" },
    crumb(ctx),
    head("Edit", action.state === "dismissed" ? "It was dismissed, and cannot be changed." : null),
    formView(ctx, ctx.state.form, {
      action,
      cancelHref: `#/actions/${action.action_id}`,
      done: (saved) => {
        keep(`/actions/${action.action_id}`, saved);
        ctx.go(`#/actions/${action.action_id}`);
      },
    }),
  );
}
