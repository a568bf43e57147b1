// Watch: what is wrong now, the checks of the watchdog, schedules that something else runs, and the background jobs.

import { getAll, post, put } from "./api.js";
import { scheduleChoice, scheduleOf } from "./action-form.js";
import { cached, flash, optional, reading } from "./app.js";
import { capital, counted, figure, money, spaced } from "./format.js";
import { button, draftOf, empty, facts, failureOf, field, head, link, rows, section, when } from "./parts.js";
import { h } from "./view.js";

const MOST_WATCHED_NAME = 100;
const WATCH_PAGE = 50;
const MOST_TITLES = 20;
/** A longer text may not fit in one line. */
const LONG_LINE = 30;
const ALERTS_PATH = "/watchdog/alerts?limit=50";
const NEW_WATCHED = draftOf("new watched schedule");

/** The checks of a person, with what they look for. The other checks are of the platform. */
const CHECKS = {
  action_repeats: ["Repeated outputs", "An action has delivered the same output again, three times in a row."],
  budget_burn: ["Costs", "At the pace of the last day, a ceiling is reached soon."],
  job_failed: ["A job failed", "The newest job of its kind has failed, or has not ended after two hours."],
  stale: ["Something did not begin", "A job or an action has not begun two hours after its due time."],
  empty_success: ["A job wrote nothing", "A job succeeded and wrote nothing, although there was work."],
  action_fails: ["An action fails", "An action has failed twice in a row or more, for the same reason."],
  action_without_next: ["An action has no next time", "An action is approved and recurs, and has no next time."],
  watched_schedule: ["A watched schedule is not in order", "A watched schedule is late, silent or empty, or has failed."],
};

const JOBS = {
  memory_daily: "Daily memory",
  memory_weekly: "Weekly clean-up of memory",
  account_export: "Export of the account",
  account_import: "Import of the account",
  theme_index: "Index of a theme",
  theme_enrichment: "Descriptions of a theme",
  theme_import: "Import of a theme",
  logs_import: "Import of logs",
  docs_sync: "Synchronisation of documents",
};

const WATCH_TONES = { ran: "ok", succeeded: "ok", delivered: "ok", enabled: "ok", late: "warn", empty: "warn", waiting: "", running: "warn", silent: "bad", failed: "bad", undelivered: "bad", suspended: "bad", unconfirmed: "warn" };

/** The state of something that is watched, or of a job, a delivery or a channel. */
export const watchChip = (state, words) => h("span", { class: `chip ${WATCH_TONES[state] ?? ""}` }, words ?? spaced(state));

/** What the platform says of one field of a form. */
export function fieldFault(ctx, key, ...names) {
  return ctx.failure(key)?.fields?.find(({ field: at }) => names.some((name) => at === name || at.startsWith(`${name}.`)))?.message ?? null;
}

/** Why an act failed, unless a field says it. */
export function faultOf(ctx, key, ...names) {
  return fieldFault(ctx, key, ...names) ? null : failureOf(ctx, key);
}

const watchHref = (id) => `#/watch/schedules/${encodeURIComponent(id)}`;

export const watchPage = {
  nav: "watch",
  title: () => "Watch",
  reads: (ctx) => ({
    dog: "/watchdog",
    alerts: ALERTS_PATH,
    watched: reading("watched schedules", (signal) => getAll(`/watched?limit=${WATCH_PAGE}`, ctx.state.watchedPages ?? 1, signal)),
    ...Object.fromEntries(namedActions().map((id) => [id, optional(`/actions/${id}`)])),
    jobs: reading("background jobs", (signal) => getAll(`/jobs?limit=20${ctx.state.jobState ? `&state=${ctx.state.jobState}` : ""}`, ctx.state.jobPages ?? 1, signal)),
  }),
  view(ctx) {
    const { dog } = ctx.data;
    const wrong = dog.counters.filter((one) => one.anomalies > 0);
    const told = wrong.filter((one) => one.alerted_at).length;
    return h(
      "div",
      { key: "watch", class: "watch" },
      head("Watch", told > 0 ? `${counted(told, "alert")}` : wrong.length > 0 ? `${counted(wrong.length, "thing")} seen once` : "nothing is wrong", link("What you are told", "#/notices", { kind: "" })),
      h("div", { class: "cols" }, h("div", {}, wrongNow(ctx, wrong), watchedSection(ctx), jobsSection(ctx)), h("div", {}, saidSection(ctx), checksSection(ctx))),
    );
  },
};

// ---- What is wrong ----

const alertOf = (ctx, one) => ctx.data.alerts.data.find((alert) => alert.say === "alert" && alert.check === one.check && alert.item === one.item);

/** The actions that are wrong or were said, for their titles. */
function namedActions() {
  const items = [...(cached("/watchdog")?.counters ?? []).filter((one) => one.anomalies > 0), ...(cached(ALERTS_PATH)?.data ?? [])].map((one) => one.item);
  return [...new Set(items)].filter((item) => /^act_\w+$/.test(item)).slice(0, MOST_TITLES);
}

/** What an item is called, and where it leads. */
function itemOf(ctx, item) {
  const watched = ctx.data.watched.data.find((one) => one.watched_id === item);
  if (item.startsWith("wch_")) return { name: watched?.name ?? "A watched schedule", href: watchHref(item) };
  if (item.startsWith("act_")) return { name: ctx.data[item]?.title ?? "An action", href: `#/actions/${encodeURIComponent(item)}` };
  const [kind] = item.split(":");
  return { name: JOBS[kind] ?? capital(spaced(kind)) };
}

/** One line for one thing: its name and what is to be said of it. `rest` is shown when the line is opened. */
function lineOf(ctx, { key, time, title, href, says, end, rest }) {
  const open = (ctx.state.openLines ??= new Set());
  const isOpen = open.has(key);
  const more = [rest].flat(2).filter(Boolean);
  return h(
    "li",
    { key, class: "watch-one" },
    h("span", { class: "when" }, time),
    h("span", { class: "what" }, href ? h("a", { href }, title) : title, says && h("span", { class: "muted" }, ` ${says}`)),
    h(
      "span",
      { class: "end" },
      end,
      (more.length > 0 || (says && title.length + says.length > LONG_LINE)) &&
        h("button", { class: "btn quiet", type: "button", "aria-expanded": String(isOpen), "aria-label": `Details of ${title}`, onclick: () => { if (isOpen) open.delete(key); else open.add(key); ctx.redraw(); } }, "Details"),
    ),
    isOpen && h("div", { class: "below", key: "rest" }, says && h("p", {}, says), more),
  );
}

function snapshots(last3) {
  return (last3 ?? []).length > 0 && h("div", {}, h("p", { class: "muted" }, "What the last looks saw:"), h("ol", { class: "watch-looks" }, last3.map((one) => h("li", { key: one.at }, when(one.at, { form: "moment" }), " ", h("span", {}, one.text)))));
}

function wrongNow(ctx, wrong) {
  const { dog } = ctx.data;
  return section(
    "Wrong now",
    { note: wrong.length || null },
    wrong.length === 0 && h("p", { class: "calm" }, "Nothing is wrong."),
    h("p", { class: "muted watch-under" }, dog.looked_at ? ["The watchdog looked ", when(dog.looked_at, { form: "relative" }), ", and looks again ", when(dog.next_look, { form: "relative" }), "."] : ["The watchdog looks first ", when(dog.next_look), "."], " What two looks in a row find, it tells you once. A failure that is reported, it tells you at once."),
    wrong.length > 0 &&
      rows(
        wrong.map((one) => {
          const { name, href } = itemOf(ctx, one.item);
          const alert = alertOf(ctx, one);
          return lineOf(ctx, {
            key: `${one.check} ${one.item}`,
            time: when(one.since, { form: "moment" }),
            title: name,
            href,
            says: one.last3?.[0]?.text ?? alert?.what ?? CHECKS[one.check]?.[1] ?? capital(spaced(one.check)),
            rest: [alert?.remedy && h("p", { class: "watch-remedy" }, alert.remedy), alert?.heal && h("p", { class: "watch-remedy" }, "The platform tries it again by itself."), snapshots(one.last3)],
            end: watchChip(one.alerted_at ? "failed" : "late", one.alerted_at ? `${counted(one.anomalies, "look")}` : "seen once"),
          });
        }),
      ),
  );
}

function saidSection(ctx) {
  const { alerts } = ctx.data;
  return section(
    "Alerts and recoveries",
    {},
    alerts.data.length === 0 && h("p", { class: "muted watch-under" }, "Nothing was said in the last 35 days."),
    alerts.data.length > 0 &&
      rows(
        alerts.data.map((one) => {
          const { name, href } = itemOf(ctx, one.item);
          return lineOf(ctx, { key: `${one.at} ${one.say} ${one.check} ${one.item}`, time: when(one.at, { form: "moment" }), title: name, href, says: one.say === "alert" ? one.what : "in order again", end: watchChip(one.say === "alert" ? "failed" : "ran", one.say === "alert" ? "alert" : "recovered") });
        }),
      ),
    alerts.has_more && h("p", { class: "muted" }, "There are older ones. The API lists them."),
  );
}

function checksSection(ctx) {
  const checks = ctx.data.dog.checks.filter((one) => CHECKS[one.check]);
  const change = (check, fields, undo) => async () => {
    const all = Object.fromEntries(ctx.data.dog.checks.filter((one) => one.check === check || !one.enabled || one.hits !== 2).map((one) => [one.check, { enabled: one.enabled, hits: one.hits, ...(one.check === check ? fields : {}) }]));
    // The control shows again what is stored.
    const done = await ctx.act("checks", () => put("/watchdog/settings", { checks: all }).then(() => true));
    if (!done) undo();
  };
  return section(
    "Checks",
    { note: "every two hours" },
    failureOf(ctx, "checks"),
    h(
      "ul",
      { class: "watch-checks", "aria-label": "Checks" },
      checks.map((one) => {
        const [name] = CHECKS[one.check];
        return h(
          "li",
          { key: one.check },
          h("label", { class: "check" }, h("input", { type: "checkbox", checked: one.enabled, disabled: ctx.busy("checks"), onchange: (event) => { const box = event.target; change(one.check, { enabled: box.checked }, () => { box.checked = one.enabled; })(); } }), h("span", {}, name)),
          h(
            "select",
            { "aria-label": `${name}: told after`, value: String(one.hits), disabled: ctx.busy("checks") || !one.enabled, onchange: (event) => { const box = event.target; change(one.check, { hits: Number(box.value) }, () => { box.value = String(one.hits); })(); } },
            [1, 2, 3, 4, 5].map((hits) => h("option", { value: String(hits), key: hits }, counted(hits, "look"))),
          ),
        );
      }),
    ),
    h("details", { key: "looked for" }, h("summary", {}, "What each check looks for"), facts(checks.map((one) => CHECKS[one.check]))),
  );
}

// ---- Watched schedules ----

export const watchedState = (one) => (one.state === "waiting" && !one.waiting_since ? watchChip("waiting", "no due time yet") : watchChip(one.state));

/** Why it is in its state, if there is something to say. */
export const watchedWhy = (one) => (["paused", "waiting"].includes(one.state) ? null : one.why);

function watchedSection(ctx) {
  const { watched } = ctx.data;
  const all = watched.data;
  const isNew = ctx.query.new !== undefined;
  return section(
    "Schedules that run elsewhere",
    { id: "watched", note: all.length > 0 ? `${all.length}${watched.complete ? "" : "+"}` : null, end: !isNew && all.length > 0 && link("Watch one", "#/watch?new") },
    isNew && newWatched(ctx),
    all.length === 0 && !isNew && empty("Cron on a server, a CI job, a routine of a coding assistant: say when it runs, and you are told when it does not.", link("Watch a schedule", "#/watch?new", { kind: "primary" })),
    all.length > 0 &&
      h(
        "ul",
        { class: "rows watch-list", "aria-label": "Watched schedules" },
        all.map((one) =>
          lineOf(ctx, {
            key: one.watched_id,
            time: one.paused ? h("span", { class: "muted" }, "paused") : when(one.next_due, { form: "moment" }),
            title: one.name,
            href: watchHref(one.watched_id),
            says: watchedWhy(one) ?? one.schedule_text,
            rest: [watchedWhy(one) && h("p", { class: "muted" }, one.schedule_text), one.last_report && h("p", { class: "muted" }, "Reported ", when(one.last_report.at, { form: "moment" }), ".")],
            end: watchedState(one),
          }),
        ),
      ),
    !watched.complete && button(ctx, "Show more schedules", { act: async () => { ctx.state.watchedPages = (ctx.state.watchedPages ?? 1) + 1; } }),
  );
}

const WATCHED_KINDS = [["daily", "Every day"], ["weekdays", "Monday to Friday"], ["every", "Again and again"], ["cron", "As cron says"]];

/** What the form of a watched schedule holds at first. */
export const watchedForm = (one) => ({ name: one?.name ?? "", schedule: { ...scheduleChoice(one?.schedule ?? null), ...(one ? {} : { kind: "daily", time: "03:00" }) }, grace: String(one?.grace_minutes ?? 30), expects: one?.expects_result ?? false });

/** What the form of a watched schedule sends. */
export const watchedFields = (form) => {
  const { overlap, catch_up: _, ...schedule } = scheduleOf(form.schedule);
  return { name: form.name.trim(), schedule, grace_minutes: Number(form.grace), expects_result: form.expects };
};

const WATCHED_NAMES = ["name", "schedule", "grace_minutes"];

/** Whether a form may be sent. */
export const isWatchedReady = (form) => form.name.trim() !== "" && !graceFault(form);

const graceFault = ({ grace }) => (/^\d{1,4}$/.test(grace.trim()) && Number(grace) >= 1 && Number(grace) <= 1440 ? null : "Write a number from 1 to 1440.");

/** The fields of a watched schedule. `set(change)` changes the form. */
export function watchedInputs(ctx, key, form, set, { focus } = {}) {
  const { schedule } = form;
  const choose = (change) => set({ schedule: { ...schedule, ...change } });
  const kinds = WATCHED_KINDS.some(([kind]) => kind === schedule.kind) ? WATCHED_KINDS : [...WATCHED_KINDS, [schedule.kind, "As it is now"]];
  const text = (name, label, extra = {}) => h("input", { "aria-label": label, key: name, value: schedule[name], autocomplete: "off", oninput: (event) => choose({ [name]: event.target.value }), ...extra });
  return [
    field("What runs?", h("input", { name: "name", value: form.name, maxlength: String(MOST_WATCHED_NAME), autocomplete: "off", placeholder: "Nightly backup", oninput: (event) => set({ name: event.target.value }), use: focus ? (node) => { queueMicrotask(() => node.focus()); } : undefined }), { error: fieldFault(ctx, key, "name") }),
    h(
      "div",
      { class: "watch-when", key: "when" },
      field("When is it due?", h("select", { value: schedule.kind, onchange: (event) => choose({ kind: event.target.value }) }, kinds.map(([kind, name]) => h("option", { value: kind, key: kind }, name)))),
      (schedule.kind === "daily" || schedule.kind === "weekdays") && text("time", "Time", { type: "time" }),
      schedule.kind === "every" && [text("number", "Number", { class: "short", inputmode: "numeric" }), h("select", { "aria-label": "Unit", key: "unit", value: schedule.unit, onchange: (event) => choose({ unit: event.target.value }) }, [["m", "minutes"], ["h", "hours"], ["d", "days"]].map(([unit, name]) => h("option", { value: unit, key: unit }, name)))],
      schedule.kind === "cron" && text("cron", "Cron", { class: "mono", spellcheck: "false", placeholder: "0 3 * * *" }),
    ),
    fieldFault(ctx, key, "schedule") && h("small", { class: "bad", role: "alert", key: "schedule fault" }, fieldFault(ctx, key, "schedule")),
    field("Minutes until a report is late", h("input", { class: "short", inputmode: "numeric", value: form.grace, oninput: (event) => set({ grace: event.target.value }) }), { hint: "1 to 1,440.", error: graceFault(form) ?? fieldFault(ctx, key, "grace_minutes") }),
    h("label", { class: "check", key: "expects" }, h("input", { type: "checkbox", checked: form.expects, onchange: (event) => set({ expects: event.target.checked }) }), h("span", {}, "A success must have a summary or a link")),
    faultOf(ctx, key, ...WATCHED_NAMES),
  ];
}

function keptWatched() {
  try {
    const kept = JSON.parse(NEW_WATCHED.get() || "null");
    if (typeof kept?.name === "string" && kept.schedule?.kind && typeof kept.grace === "string") return kept;
  } catch {
    NEW_WATCHED.set("");
  }
  return watchedForm();
}

function newWatched(ctx) {
  const key = "new watched";
  const form = (ctx.state.newWatched ??= keptWatched());
  const set = (change) => {
    Object.assign(form, change);
    NEW_WATCHED.set(form.name ? JSON.stringify(form) : "");
    ctx.redraw();
  };
  const create = async () => {
    const made = await post("/watched", watchedFields(form));
    ctx.state.newWatched = null;
    NEW_WATCHED.set("");
    flash("It is watched from now on. Let it report, with one of these lines.");
    ctx.go(watchHref(made.watched_id));
  };
  const isReady = isWatchedReady(form);
  return h(
    "form",
    { class: "form watch-new", key: "new", "aria-label": "Watch a schedule", onsubmit: (event) => { event.preventDefault(); if (isReady) ctx.act(key, create); } },
    watchedInputs(ctx, key, form, set, { focus: true }),
    h("div", { class: "acts" }, h("button", { class: "btn primary", disabled: !isReady || ctx.busy(key) }, ctx.busy(key) ? "Watch it…" : "Watch it"), link("Close", "#/watch", { kind: "quiet" })),
  );
}

// ---- Background jobs ----

const JOB_STATES = [["", "All"], ["failed", "Failed"], ["running", "Running"], ["skipped", "Nothing to do"], ["succeeded", "Succeeded"]];

function jobsSection(ctx) {
  const { jobs } = ctx.data;
  const filter = h("select", { "aria-label": "Jobs by state", value: ctx.state.jobState ?? "", onchange: (event) => { ctx.state.jobState = event.target.value; ctx.state.jobPages = 1; ctx.refresh(); } }, JOB_STATES.map(([state, name]) => h("option", { value: state, key: state }, name)));
  return section(
    "Background jobs",
    { id: "jobs", end: filter },
    jobs.data.length === 0 && h("p", { class: "muted watch-under" }, ctx.state.jobState ? "No job of the last 35 days is in this state." : "What the platform does by itself, such as the daily memory, is listed here. Nothing was due yet."),
    jobs.data.length > 0 &&
      h(
        "ul",
        { class: "rows", "aria-label": "Background jobs" },
        jobs.data.map((one) =>
          lineOf(ctx, {
            key: one.job_id,
            time: when(one.due, { form: "moment" }),
            title: JOBS[one.kind] ?? capital(spaced(one.kind)),
            says: one.error,
            rest: one.work_found !== undefined || one.artefacts !== undefined || one.cost_micros > 0 ? h("p", { class: "muted" }, [`${figure(one.work_found ?? 0)} found, ${figure(one.artefacts ?? 0)} made`, one.cost_micros > 0 && money(one.cost_micros)].filter(Boolean).join(" · ")) : null,
            end: watchChip(one.state, one.state === "skipped" ? "nothing to do" : undefined),
          }),
        ),
      ),
    !jobs.complete && button(ctx, "Show more jobs", { act: async () => { ctx.state.jobPages = (ctx.state.jobPages ?? 1) + 1; } }),
  );
}
