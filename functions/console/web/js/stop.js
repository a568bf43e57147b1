// The one button that stops everything, and the way back.

import { get, post } from "./api.js";
import { lazily } from "./app.js";
import { counted, figure, moment } from "./format.js";
import { button, confirmation, dialog, failureOf, press } from "./parts.js";
import { h, icon } from "./view.js";

let lastStop = null;

export function askToStop(ctx) {
  if (ctx.shared.account?.stopped_at) return askToStart(ctx);
  confirmation(ctx, {
    title: "Stop everything?",
    key: "stop",
    label: "Stop everything",
    text: "Running work is cancelled, and keeps what it has saved. No schedule runs, and no model is called, until you start again. You lose nothing: what comes due meanwhile is kept, and you decide then what becomes of it.",
    act: async () => {
      lastStop = await post("/account/stop", {});
    },
  });
}

export function stoppedBanner(ctx, account) {
  const ended = lastStop && lastStop.runs_ended > 0 ? ` ${counted(lastStop.runs_ended, "run was", "runs were")} cancelled.` : "";
  return h(
    "div",
    { class: "stopped", role: "status", key: "stopped" },
    icon("stop"),
    h("p", {}, h("b", {}, "Everything is stopped."), ` Since ${moment(account.stopped_at)}.${ended} Schedules are held until you start again.`),
    press("Start again…", () => askToStart(ctx)),
  );
}

/** Why a button is disabled while everything is stopped: `what` waits. Nothing while the account works. */
export function stoppedNote(ctx, what) {
  if (!ctx.shared.account?.stopped_at) return null;
  return h("p", { class: "stopped-note", key: "stopped note" }, `Everything is stopped: ${what}. `, press("Start again…", () => askToStart(ctx), { kind: "link" }));
}

// ---- Starting again ----

/** The first one does nothing that cannot be done later as well. */
const ANSWERS = [
  ["skip", "Leave all out"],
  ["run_newest", "Run the newest of each"],
  ["each_schedule", "As each schedule says"],
];
const MOST_NAMED = 5;
const AGE_UNITS = { m: "minute", h: "hour", d: "day", w: "week" };

function dueTimes(count) {
  return count >= 1000 ? "1,000 or more due times" : counted(count, "due time");
}

function ageText(text) {
  const parts = /^(\d+)([mhdw])$/.exec(text ?? "");
  return parts ? counted(Number(parts[1]), AGE_UNITS[parts[2]]) : text;
}

/** What the schedule of an action says about due times that are found late. */
function caughtUp(one) {
  const action = lazily(`missed by ${one.action_id}`, () => get(`/actions/${one.action_id}`));
  if (!action) return "…";
  const { catch_up: rule = "latest", max_age: age = rule === "all" ? "7d" : "1d" } = action.schedule ?? {};
  if (rule === "none") return "none";
  const limit = `if at most ${ageText(age)} late`;
  if (rule === "all" && one.due_times > 1) return `all ${figure(one.due_times)}, each ${limit}`;
  return `${moment(one.last_due_at)}, ${limit}`;
}

/** What a choice does with which due times. */
function answerWords(value, missed) {
  const actions = missed.data;
  const all = actions.reduce((sum, one) => sum + one.due_times, 0);
  const more = missed.has_more ? " and those of further actions" : "";
  if (value === "skip") return `Nothing runs now. ${dueTimes(all)}${more} ${all === 1 && !more ? "is" : "are"} left out. The next due times run as planned.`;
  const named = actions.slice(0, MOST_NAMED);
  const others = actions.length > named.length || missed.has_more ? "; and others" : "";
  if (value === "run_newest") {
    const left = all - actions.length;
    return `Runs now: ${named.map((one) => `“${one.title}” of ${moment(one.last_due_at)}`).join("; ")}${others}.${left > 0 ? ` ${dueTimes(left)} before ${actions.length === 1 ? "it" : "them"} ${left === 1 ? "is" : "are"} left out.` : ""}`;
  }
  return `As after an outage: ${named.map((one) => `“${one.title}”: ${caughtUp(one)}`).join("; ")}${others}.`;
}

export function askToStart(ctx) {
  let missed = null;
  let answer = "skip";
  const start = async () => {
    try {
      await post("/account/start", missed ? { missed: answer } : {});
      lastStop = null;
      ctx.close();
    } catch (error) {
      if (error.code !== "missed_runs") throw error;
      missed = error.current;
    }
  };
  ctx.open(() =>
    dialog(
      { title: "Start again", onclose: () => ctx.close() },
      missed
        ? [
            h("p", {}, "Nothing has started yet. These came due while everything was stopped. What should become of them?"),
            h(
              "ul",
              { class: "rows" },
              missed.data.map((one) =>
                h("li", { key: one.action_id }, h("span", { class: "when" }, moment(one.last_due_at)), h("span", { class: "what" }, one.title, h("small", {}, one.due_times > 1 ? `${dueTimes(one.due_times)} since ${moment(one.first_due_at)}` : "1 due time"))),
              ),
            ),
            missed.has_more && h("p", { class: "muted" }, "There are more than these."),
            h(
              "fieldset",
              { class: "choices" },
              h("legend", { class: "vh" }, "What should become of them?"),
              ANSWERS.map(([value, label]) =>
                h(
                  "label",
                  { key: value },
                  h("input", { type: "radio", name: "missed", value, checked: answer === value, onchange: () => { answer = value; ctx.redraw(); } }),
                  h("span", {}, h("b", {}, label), h("small", {}, answerWords(value, missed))),
                ),
              ),
            ),
          ]
        : h("p", {}, "Schedules run again from now on. A run that was cancelled does not begin again. If something came due meanwhile, you are asked first what becomes of it."),
      failureOf(ctx, "start"),
      h("div", { class: "acts" }, press("Cancel", () => ctx.close(), { kind: "quiet" }), h("div", { class: "end" }, button(ctx, missed ? `Start: ${START_WORDS[answer]}` : "Start", { key: "start", kind: "primary", act: start }))),
    ),
  );
}

const START_WORDS = { skip: "leave all out", run_newest: "run the newest", each_schedule: "as each schedule says" };
