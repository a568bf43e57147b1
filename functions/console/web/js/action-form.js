// The form of an action: all that a person may set, with the next times of the schedule as it is typed.

import { callChoice, callFields, callMistakes, callOf } from "./action-call.js";
import { edit, get, post } from "./api.js";
import { reading } from "./app.js";
import { changeView, fieldName } from "./changes.js";
import { clock, dayMonthYear, linesOf, listed, shownZone, weekdayShort } from "./format.js";
import { choiceOf, draftOf, failureOf, field, press, section, withValue } from "./parts.js";
import { h } from "./view.js";

const FORM_DAYS = [
  ["MON", "Monday"],
  ["TUE", "Tuesday"],
  ["WED", "Wednesday"],
  ["THU", "Thursday"],
  ["FRI", "Friday"],
  ["SAT", "Saturday"],
  ["SUN", "Sunday"],
];
const CRON_DAY_NAMES = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN"];

/** What a run may do only if it is granted. All other tools of runs need no grant. */
const GRANT_CHOICES = [
  ["web_search", "Search the web", "What it searches for leaves the platform, and what it reads may be false."],
  ["code_execution", "Run code", "At the provider of the model, not here."],
  ["generate_asset", "Propose drafts", "They wait for you as proposals."],
  ["generate_actions", "Propose further actions", "They wait for you as proposals."],
  ["edit_theme", "Edit the theme of its agent", "In a change set: nothing changes until it is applied."],
  ["apply_theme_changes", "Apply its edits of the theme", "If the project lets assistants apply changes."],
];
const COUNTED_GRANTS = ["web_search", "code_execution"];
const DEFAULT_USES = 10;

const TIERS = [
  ["fast", "Fast: simple work, the least cost"],
  ["standard", "Standard"],
  ["deep", "Deep: hard work, the highest cost"],
];
const PRIORITIES = [
  ["high", "High"],
  ["medium", "Medium"],
  ["low", "Low"],
];

/** What the fields of an action are called within a sentence. */
const FIELD_WORDS = {
  title: "the title",
  description: "the description",
  "task_config.instructions": "the instructions",
  "task_config.expected_output": "the expected output",
  schedule: "the schedule",
  grants: "what it may use",
  max_uses: "how often it may use it",
  tools: "the tools",
  model_tier: "the model",
  budget: "the ceilings of costs",
  conditions: "what a program checks",
  watches: "what it watches",
  call: "the request",
  priority: "the priority",
  "agent.instructions": "the agent’s instructions",
  "agent.goal": "the agent’s goal",
  "agent.success_criteria": "how the agent’s success is recognised",
  "agent.timeline": "the agent’s timeline",
  "agent.name": "the agent’s name",
  "agent.docs_project_id": "the project whose documents the agent knows",
  "agent.theme_project_id": "the project whose theme the agent works on",
  timezone: "the agent’s time zone",
};

/** The names of fields within a sentence: `the title and the schedule`. */
export const fieldsInWords = (names) => listed(names.map((name) => FIELD_WORDS[name] ?? fieldName(name).toLowerCase()));

// ---- Schedules ----

/** A schedule as the choices of the form. */
export function scheduleChoice(schedule) {
  const choice = { kind: "none", time: "09:00", days: ["MON"], date: "", number: "15", unit: "m", cron: "", timezone: schedule?.timezone ?? "", overlap: schedule?.overlap ?? "skip", catch_up: schedule?.catch_up ?? "latest", jitter: schedule?.jitter ?? "", max_age: schedule?.max_age ?? "", start_at: schedule?.start_at ?? "", end_at: schedule?.end_at ?? "" };
  if (!schedule) return choice;
  if (schedule.at) {
    const local = /^\d{4}-\d\d-\d\dT\d\d:\d\d/.test(schedule.at) && !/(Z|[+-]\d\d:\d\d)$/.test(schedule.at) ? schedule.at : localTimeOf(schedule.at, schedule.timezone);
    return { ...choice, kind: "once", date: local.slice(0, 10), time: local.slice(11, 16) };
  }
  if (schedule.every) {
    const simple = /^(\d+)\s*(m|h|d)$/.exec(schedule.every.trim());
    return simple ? { ...choice, kind: "every", number: simple[1], unit: simple[2] } : { ...choice, kind: "every", number: schedule.every, unit: "" };
  }
  const cron = (schedule.cron ?? "").trim();
  const parts = /^(\d{1,2}) (\d{1,2}) \* \* (\S+)$/.exec(cron);
  if (!parts || Number(parts[1]) > 59 || Number(parts[2]) > 23) return { ...choice, kind: "cron", cron };
  const time = `${parts[2].padStart(2, "0")}:${parts[1].padStart(2, "0")}`;
  const days = parts[3].toUpperCase();
  if (days === "*") return { ...choice, kind: "daily", time };
  if (days === "MON-FRI" || days === "1-5") return { ...choice, kind: "weekdays", time };
  const named = days.split(",").map((day) => (/^[0-7]$/.test(day) ? CRON_DAY_NAMES[Number(day)] : day));
  if (named.every((day) => FORM_DAYS.some(([name]) => name === day))) return { ...choice, kind: "weekly", time, days: named };
  return { ...choice, kind: "cron", cron };
}

/** An instant as date and time in a zone, as the fields of the form show it. */
function localTimeOf(instant, timezone) {
  try {
    const parts = new Intl.DateTimeFormat("en-GB", { timeZone: timezone || shownZone(), year: "numeric", month: "2-digit", day: "2-digit", hour: "2-digit", minute: "2-digit" }).formatToParts(new Date(instant));
    const part = (type) => parts.find((one) => one.type === type).value;
    return `${part("year")}-${part("month")}-${part("day")}T${part("hour")}:${part("minute")}`;
  } catch {
    return "";
  }
}

/** The schedule that the choices of the form mean, or null. */
export function scheduleOf(choice) {
  if (choice.kind === "none") return null;
  const [hour, minute] = (choice.time || "0:0").split(":").map(Number);
  const at = `${minute} ${hour} * *`;
  const schedule = {
    daily: () => ({ cron: `${at} *` }),
    weekdays: () => ({ cron: `${at} MON-FRI` }),
    weekly: () => ({ cron: `${at} ${FORM_DAYS.map(([day]) => day).filter((day) => choice.days.includes(day)).join(",")}` }),
    once: () => ({ at: `${choice.date}T${choice.time}` }),
    every: () => ({ every: `${choice.number}${choice.unit}` }),
    cron: () => ({ cron: choice.cron.trim() }),
  }[choice.kind]();
  for (const name of ["timezone", "overlap", "catch_up", "jitter", "max_age"]) if (choice[name]) schedule[name] = choice[name].trim();
  if (choice.kind !== "once") for (const name of ["start_at", "end_at"]) if (choice[name]) schedule[name] = choice[name].trim();
  return schedule;
}

function scheduleMistake(choice) {
  if (choice.kind === "weekly" && choice.days.length === 0) return "Choose a day.";
  if (choice.kind === "once" && !choice.date) return "Choose a date.";
  if (["daily", "weekdays", "weekly", "once"].includes(choice.kind) && !choice.time) return "Choose a time.";
  if (choice.kind === "every" && choice.unit && !(Number(choice.number) > 0)) return "Enter a number.";
  if (choice.kind === "cron" && !choice.cron.trim()) return "Enter an expression.";
  return null;
}

// ---- Values ----

const dollarsOf = (micros) => (micros === null || micros === undefined ? "" : String(micros / 1_000_000));
const microsOf = (dollars) => (String(dollars).trim() === "" ? null : Math.round(Number(String(dollars).replace(",", ".")) * 1_000_000));

/** An action as the form edits it. */
export function formOf(action) {
  return {
    title: action.title ?? "",
    description: action.description ?? "",
    // An action with a call has no task.
    call: action.call ? callChoice(action.call) : null,
    instructions: action.task_config?.instructions ?? "",
    expected: action.task_config?.expected_output ?? "",
    priority: action.priority ?? "medium",
    tier: action.model_tier ?? "standard",
    run: dollarsOf(action.budget?.per_run_micros),
    month: dollarsOf(action.budget?.per_month_micros),
    grants: [...(action.grants ?? [])],
    uses: { ...(action.max_uses ?? {}) },
    schedule: scheduleChoice(action.schedule),
    conditions: (action.conditions ?? []).map(conditionChoice),
    watches: (action.watches ?? []).map((watch) => ({ ...watch })),
  };
}

const conditionChoice = (condition) => ({
  kind: condition.kind,
  words: String(condition.words ?? 200),
  lines: (condition.headings ?? condition.hosts ?? []).join("\n"),
  schema: condition.schema ? JSON.stringify(condition.schema, null, 2) : "",
});

function conditionOf(choice) {
  switch (choice.kind) {
    case "min_words":
      return { kind: "min_words", words: Number(choice.words) };
    case "headings":
      return { kind: "headings", headings: linesOf(choice.lines) };
    case "links_only_to":
      return { kind: "links_only_to", hosts: linesOf(choice.lines) };
    case "json":
      return { kind: "json", schema: parsedOrNull(choice.schema) };
    default:
      return { kind: choice.kind };
  }
}

function parsedOrNull(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** What the form says, by the names of the fields of the API. */
export function fieldsOfForm(form) {
  const fields = { title: form.title.trim(), description: form.description, schedule: scheduleOf(form.schedule), priority: form.priority };
  if (form.call) return { ...fields, call: callOf(form.call) };
  return {
    ...fields,
    "task_config.instructions": form.instructions,
    "task_config.expected_output": form.expected,
    grants: [...form.grants].sort(),
    max_uses: Object.fromEntries(COUNTED_GRANTS.filter((name) => form.grants.includes(name)).map((name) => [name, Number(form.uses[name] ?? DEFAULT_USES)])),
    model_tier: form.tier,
    budget: { per_run_micros: microsOf(form.run), ...(microsOf(form.month) === null ? {} : { per_month_micros: microsOf(form.month) }) },
    conditions: form.conditions.map(conditionOf),
    watches: form.watches.map(watchOf),
  };
}

function watchOf(watch) {
  const kept = { url: ["url", "pointer"], feed: ["url"], asset: ["asset_id"], theme_file: ["project_id", "path"], context_document: ["project_id", "workflow"] }[watch.kind] ?? [];
  return { kind: watch.kind, ...Object.fromEntries(kept.filter((name) => watch[name]).map((name) => [name, watch[name].trim()])) };
}

/** A value as a text that does not depend on the order of names. */
const canonical = (value) => JSON.stringify(value, (_, one) => (one && typeof one === "object" && !Array.isArray(one) ? Object.fromEntries(Object.entries(one).sort(([a], [b]) => (a < b ? -1 : 1))) : one));

/** The names of the fields in which two forms differ. */
export function changedFields(before, after) {
  const [a, b] = [fieldsOfForm(before), fieldsOfForm(after)];
  return Object.keys(b).filter((name) => canonical(a[name] ?? null) !== canonical(b[name] ?? null));
}

/** The body of a request that sets these fields. */
function bodyOf(form, names) {
  const fields = fieldsOfForm(form);
  const body = {};
  for (const name of names) {
    if (name.startsWith("task_config.")) body.task_config = { ...body.task_config, [name.slice("task_config.".length)]: fields[name] };
    else if (fields[name] !== null) body[name] = fields[name];
  }
  // Uses belong to grants: the platform replaces both together.
  if (body.max_uses && !body.grants) body.grants = fields.grants;
  return body;
}

function formMistakes(form) {
  const wrong = {};
  if (!form.title.trim()) wrong.title = "It needs a title.";
  const schedule = scheduleMistake(form.schedule);
  if (schedule) wrong.schedule = schedule;
  if (form.call) return { ...wrong, ...callMistakes(form.call) };
  if (!form.instructions.trim()) wrong.instructions = "Say what it should do.";
  if (!form.expected.trim()) wrong.expected = "Say what you expect.";
  if (form.run !== "" && !(microsOf(form.run) > 0)) wrong.run = "Enter an amount in dollars.";
  if (form.month !== "" && !(microsOf(form.month) > 0)) wrong.month = "Enter an amount in dollars, or nothing.";
  form.conditions.forEach((one, index) => {
    if (one.kind === "json" && parsedOrNull(one.schema) === null) wrong[`condition ${index}`] = "This is not JSON.";
  });
  return wrong;
}

// ---- The form on a page ----

/**
 * The state of a form on a page. `action` is null for a new action. What is typed survives a reload; it belongs to the version
 * of the action that was read when the typing began.
 */
export function openForm(ctx, action, agentId) {
  const key = action ? `edit ${action.action_id}` : `new action ${agentId}`;
  const draft = draftOf(key);
  const stored = parsedOrNull(draft.get());
  const base = action ?? { budget: {}, schedule: null };
  const state = { key, draft, agentId, actionId: action?.action_id ?? null, base: stored?.base ?? formOf(base), version: stored?.version ?? action?.version ?? null, form: stored?.form ?? formOf(base), isStored: Boolean(stored), preview: null, conflict: null, tried: false };
  state.set = (change) => {
    Object.assign(state.form, change);
    draft.set(JSON.stringify({ base: state.base, version: state.version, form: state.form }));
    previewSoon(ctx, state);
    ctx.redraw();
  };
  state.reset = (next) => {
    draft.set("");
    state.base = formOf(next);
    state.form = formOf(next);
    state.version = next.version ?? null;
    state.conflict = null;
    state.isStored = false;
    state.tried = false;
    previewSoon(ctx, state);
    ctx.redraw();
  };
  previewSoon(ctx, state);
  return state;
}

const PREVIEW_AFTER_MS = 300;

function previewSoon(ctx, state) {
  const { schedule } = state.form;
  const wanted = scheduleMistake(schedule) ? null : scheduleOf(schedule);
  const key = canonical(wanted);
  if (state.preview?.key === key) return;
  clearTimeout(state.timer);
  state.preview = { key, times: state.preview?.times ?? [], text: state.preview?.text ?? "", waits: Boolean(wanted), none: !wanted };
  if (!wanted) return;
  state.timer = setTimeout(async () => {
    let answer;
    try {
      const { fire_times: times, schedule_text: text } = await post("/schedules/preview", { schedule: wanted, count: 5 });
      answer = { key, times, text };
    } catch (error) {
      answer = { key, times: [], text: "", error };
    }
    if (state.preview.key !== key || ctx.signal.aborted) return;
    state.preview = answer;
    ctx.redraw();
  }, PREVIEW_AFTER_MS);
}

/** What the form offers to choose from. `agentId` may be unknown so far. */
export const formReads = (agentId) => ({
  ...(agentId && { assets: choices(`/agents/${agentId}/assets?limit=100`) }),
  projects: choices("/projects?limit=100"),
  secrets: choices("/account/secrets"),
});

/** A list to choose from, or an empty one if it can't be read: then what is chosen stays. */
const choices = (path) =>
  reading(`choices of ${path}`, (signal) =>
    get(path, signal).catch((error) => {
      if (signal.aborted) throw error;
      return { data: [] };
    }),
  );

const WORKERS = [
  ["model", "A model does the work"],
  ["call", "It sends a request, without a model"],
];

/** The whole form. `done(action)` is called with the stored action; `cancelHref` is where Cancel leads. */
export function formView(ctx, state, { action, agentName, done, cancelHref }) {
  const { form } = state;
  const [assets, projects, secrets] = ["assets", "projects", "secrets"].map((name) => ctx.data[name]?.data ?? []);
  const wrong = formMistakes(form);
  const shown = state.tried ? wrong : {};
  const changed = changedFields(state.base, form);
  const text = (name, label, { rows, max, hint, error, placeholder } = {}) =>
    field(
      label,
      rows
        ? h("textarea", { rows: String(rows), maxlength: String(max), value: form[name], placeholder, oninput: (event) => state.set({ [name]: event.target.value }) })
        : h("input", { type: "text", maxlength: String(max), value: form[name], placeholder, oninput: (event) => state.set({ [name]: event.target.value }) }),
      { hint, error },
    );
  const dollars = (name, label, hint) => field(label, h("input", { type: "text", inputmode: "decimal", value: form[name], oninput: (event) => state.set({ [name]: event.target.value }) }), { hint, error: shown[name] });
  return h(
    "form",
    {
      class: "form action-form",
      key: state.key,
      novalidate: true,
      onsubmit: (event) => {
        event.preventDefault();
        state.tried = true;
        const form = event.target;
        // The next frame draws what is wrong.
        const showWhatIsWrong = () => requestAnimationFrame(() => requestAnimationFrame(() => form.querySelector("[role=alert]")?.scrollIntoView({ block: "center" })));
        if (Object.keys(formMistakes(state.form)).length > 0) {
          ctx.redraw();
          return showWhatIsWrong();
        }
        ctx.act(state.key, () => saveForm(ctx, state, changedFields(state.base, state.form), done)).then(showWhatIsWrong);
      },
    },
    state.isStored && changed.length > 0 && h("p", { class: "aside-note" }, "This is what you typed before. It is not saved yet. ", press("Discard it", () => state.reset(action ?? { budget: {}, schedule: null }), { kind: "link" })),
    section(
      "Work",
      {},
      h(
        "div",
        { class: "form-part" },
        text("title", "Title", { max: 200, error: shown.title }),
        text("description", "Description", { rows: 2, max: 2000, hint: "What it is about, for you." }),
        // A task can't become a call later, and not the other way round.
        !action && field("How", choiceOf("How", form.call ? "call" : "model", WORKERS, (worker) => state.set({ call: worker === "call" ? callChoice({}) : null }))),
        !form.call && text("instructions", "Instructions", { rows: 6, max: 20000, hint: "What the agent does in each run.", error: shown.instructions }),
        !form.call && text("expected", "Expected output", { rows: 3, max: 5000, hint: "How the result is judged.", error: shown.expected }),
        field("Priority", choiceOf("Priority", form.priority, PRIORITIES, (priority) => state.set({ priority }))),
      ),
    ),
    form.call && section("Request", { note: "sent when it is due" }, callFields(state, shown, secrets)),
    section("When", {}, scheduleFields(ctx, state, shown.schedule, action)),
    !form.call && [
      section(
        "May use",
        { note: "without asking you" },
        h(
          "div",
          { class: "choices form-part" },
          GRANT_CHOICES.map(([name, label, note]) => grantField(state, name, label, note)),
          form.grants.filter((name) => !GRANT_CHOICES.some(([known]) => known === name)).map((name) => grantField(state, name, name, "Every run may use it.")),
        ),
      ),
      section(
        "Model and cost",
        {},
        h(
          "div",
          { class: "form-part" },
          field("Model", choiceOf("Model", form.tier, TIERS, (tier) => state.set({ tier }))),
          h("div", { class: "act-pair" }, dollars("run", "Ceiling of a run, in dollars", action ? undefined : "Empty: that of the agent."), dollars("month", "Ceiling of a month, in dollars", "Empty: none of its own.")),
        ),
      ),
      section("Only if", { note: "a program looks before each run, without a model" }, watchFields(state, assets, projects)),
      section("A program checks", { note: "each run’s outputs" }, conditionFields(state, shown)),
    ],
    conflictPart(ctx, state),
    failureOf(ctx, state.key),
    saveBar(ctx, state, { action, agentName, changed, cancelHref }),
  );
}

function grantField(state, name, label, note) {
  const { form } = state;
  const isOn = form.grants.includes(name);
  return h(
    "div",
    { key: name, class: "grant" },
    h(
      "label",
      {},
      h("input", { type: "checkbox", checked: isOn, onchange: (event) => state.set({ grants: event.target.checked ? [...state.form.grants, name] : state.form.grants.filter((one) => one !== name) }) }),
      h("span", {}, label, label !== name && [" ", h("code", {}, name)], h("small", {}, note)),
    ),
    isOn &&
      COUNTED_GRANTS.includes(name) &&
      h("label", { class: "uses" }, "at most ", h("input", { type: "number", min: "1", max: "50", "aria-label": `${label}: times a run`, value: String(form.uses[name] ?? DEFAULT_USES), oninput: (event) => state.set({ uses: { ...state.form.uses, [name]: Number(event.target.value) } }) }), " times a run"),
  );
}

const SCHEDULE_KINDS = [
  ["none", "When I run it"],
  ["daily", "Every day at"],
  ["weekdays", "Every weekday at"],
  ["weekly", "Every week on"],
  ["once", "Once at"],
  ["every", "Again and again, every"],
  ["cron", "By a cron expression"],
];

function scheduleFields(ctx, state, mistake, action) {
  const { schedule } = state.form;
  // The form of now, not of the last drawing: two changes may come before the next one.
  const set = (change) => state.set({ schedule: { ...state.form.schedule, ...change } });
  const kinds = action?.schedule ? SCHEDULE_KINDS.filter(([kind]) => kind !== "none") : SCHEDULE_KINDS;
  const timeField = h("input", { type: "time", "aria-label": "Time", key: "time", value: schedule.time, oninput: (event) => set({ time: event.target.value }) });
  const plain = (name, label, hint) => field(label, h("input", { type: "text", value: schedule[name], oninput: (event) => set({ [name]: event.target.value }) }), { hint });
  return h(
    "div",
    { class: "form-part" },
    h(
      "div",
      { class: "controls" },
      choiceOf("When it is due", schedule.kind, kinds, (kind) => set({ kind })),
      schedule.kind === "once" && h("input", { type: "date", "aria-label": "Date", key: "date", value: schedule.date, oninput: (event) => set({ date: event.target.value }) }),
      ["daily", "weekdays", "once"].includes(schedule.kind) && timeField,
      schedule.kind === "every" && h("input", { type: "text", class: "act-short", "aria-label": "Number", key: "number", value: schedule.number, oninput: (event) => set({ number: event.target.value }) }),
      schedule.kind === "every" &&
        choiceOf("Unit", schedule.unit, [["m", "minutes"], ["h", "hours"], ["d", "days"], ...(schedule.unit === "" ? [["", "as written"]] : [])], (unit) => set({ unit }), { key: "unit" }),
      schedule.kind === "cron" && h("input", { type: "text", class: "mono", "aria-label": "Cron expression", key: "cron", placeholder: "0 9 * * MON-FRI", value: schedule.cron, oninput: (event) => set({ cron: event.target.value }) }),
    ),
    schedule.kind === "weekly" &&
      h(
        "fieldset",
        { class: "act-days", key: "days" },
        h("legend", { class: "vh" }, "Days"),
        FORM_DAYS.map(([day, name]) =>
          h("label", { key: day }, h("input", { type: "checkbox", checked: schedule.days.includes(day), onchange: (event) => set({ days: event.target.checked ? [...state.form.schedule.days, day] : state.form.schedule.days.filter((one) => one !== day) }) }), name),
        ),
        h("span", { class: "controls" }, "at ", timeField),
      ),
    mistake && h("small", { class: "bad", role: "alert" }, mistake),
    schedule.kind !== "none" && field("Time zone", h("input", { type: "text", list: "zones", value: schedule.timezone, placeholder: shownZone(), oninput: (event) => set({ timezone: event.target.value }) }), { hint: "Empty: the zone of the account." }),
    schedule.kind !== "none" && h("datalist", { id: "zones" }, zoneNames().map((zone) => h("option", { value: zone, key: zone }))),
    previewPart(state),
    schedule.kind !== "none" &&
      h(
        "details",
        { class: "more-fields" },
        h("summary", {}, "If it is late, or the last run is not over"),
        h(
          "div",
          { class: "form-part" },
          field("If the last run is not over", choiceOf("If the last run is not over", schedule.overlap, [["skip", "skip this time"], ["queue", "wait for it"], ["replace", "end it and begin"]], (overlap) => set({ overlap }))),
          field("Times that were missed in an outage", choiceOf("Times that were missed in an outage", schedule.catch_up, [["latest", "run the newest one"], ["all", "run all of them"], ["none", "run none of them"]], (catchUp) => set({ catch_up: catchUp }))),
          plain("max_age", "How late it may still run", "For example 1d or 2h. Empty: one day, or seven days for all of them."),
          plain("jitter", "Delay by up to", "For example 30s. Empty: none."),
          schedule.kind !== "once" && plain("start_at", "Not before", "A date and time, such as 2026-12-01T09:00."),
          schedule.kind !== "once" && plain("end_at", "Not after", "A date and time."),
        ),
      ),
    action?.schedule && h("p", { class: "muted" }, "To end its schedule, use End its schedule in the menu of the action."),
  );
}

let zoneList = null;
const zoneNames = () => (zoneList ??= Intl.supportedValuesOf?.("timeZone") ?? []);

function previewPart(state) {
  const { preview } = state;
  if (!preview || preview.none) return h("p", { class: "muted" }, "It runs only when you run it.");
  if (preview.error) return h("div", { class: "preview" }, h("p", { class: "bad", role: "alert" }, preview.error.fields?.length > 0 ? preview.error.fields.map((one) => `${one.field.replace(/^schedule\./, "")}: ${one.message}`).join("; ") : preview.error.message));
  return h(
    "div",
    { class: "preview", "aria-busy": preview.waits ? "true" : null },
    h("p", {}, preview.text || "…"),
    preview.times.length > 0
      ? h("ol", { "aria-label": "The next times" }, preview.times.map((at) => h("li", { key: at }, h("time", { datetime: at }, `${weekdayShort(at)} ${dayMonthYear(at)}, ${clock(at)}`))))
      : !preview.waits && h("p", { class: "warn" }, "It is never due."),
    preview.times.length > 0 && h("p", { class: "muted" }, `Times in ${shownZone()}`),
  );
}

const WATCH_KINDS = [
  ["url", "a page has changed"],
  ["feed", "a feed has new entries"],
  ["asset", "an asset has changed"],
  ["theme_file", "a file of a theme has changed"],
  ["context_document", "a context document has changed"],
];
const MOST_WATCHES = 5;
const MOST_CONDITIONS = 10;

function watchFields(state, assets, projects) {
  const { watches } = state.form;
  const set = (index, change) => state.set({ watches: state.form.watches.map((watch, at) => (at === index ? { ...watch, ...change } : watch)) });
  const input = (watch, index, name, label, props = {}) => h("input", { type: "text", "aria-label": label, placeholder: label, key: name, value: watch[name] ?? "", oninput: (event) => set(index, { [name]: event.target.value }), ...props });
  return h(
    "div",
    { class: "form-part" },
    h(
      "ul",
      { class: "editable" },
      watches.map((watch, index) =>
        h(
          "li",
          { key: `watch ${index}` },
          choiceOf(`Watch ${index + 1}`, watch.kind, WATCH_KINDS, (kind) => set(index, { kind })),
          ["url", "feed"].includes(watch.kind) && input(watch, index, "url", "https://…", { "aria-label": "Address", inputmode: "url" }),
          watch.kind === "url" && input(watch, index, "pointer", "/plans/0/price, or empty", { "aria-label": "JSON Pointer" }),
          watch.kind === "asset" && choiceOf("Asset", watch.asset_id ?? "", [["", "Choose an asset"], ...withValue(assets.map((asset) => [asset.asset_id, asset.title]), watch.asset_id)], (id) => set(index, { asset_id: id }), { key: "asset" }),
          ["theme_file", "context_document"].includes(watch.kind) && choiceOf("Project", watch.project_id ?? "", [["", "Choose a project"], ...withValue(projects.map((project) => [project.project_id, project.name]), watch.project_id)], (id) => set(index, { project_id: id }), { key: "project" }),
          watch.kind === "theme_file" && input(watch, index, "path", "sections/header.liquid", { "aria-label": "Path" }),
          watch.kind === "context_document" && input(watch, index, "workflow", "default", { "aria-label": "Workflow" }),
          press("Remove", () => state.set({ watches: state.form.watches.filter((_, at) => at !== index) }), { kind: "quiet" }),
        ),
      ),
    ),
    watches.length === 0 && h("p", { class: "muted" }, "Every due time begins a run."),
    watches.length < MOST_WATCHES && h("div", {}, press("Watch something", () => state.set({ watches: [...state.form.watches, { kind: "url", url: "" }] }))),
  );
}

const CONDITION_KINDS = [
  ["min_words", "has at least so many words"],
  ["names_today", "names today’s date"],
  ["headings", "has these headings"],
  ["json", "is JSON of this schema"],
  ["links_only_to", "links only to these hosts"],
];

function conditionFields(state, shown) {
  const { conditions } = state.form;
  const set = (index, change) => state.set({ conditions: state.form.conditions.map((one, at) => (at === index ? { ...one, ...change } : one)) });
  return h(
    "div",
    { class: "form-part" },
    h(
      "ul",
      { class: "editable" },
      conditions.map((one, index) =>
        h(
          "li",
          { key: `condition ${index}` },
          choiceOf(`Condition ${index + 1}`, one.kind, CONDITION_KINDS, (kind) => set(index, { kind })),
          one.kind === "min_words" && h("input", { type: "number", min: "1", max: "50000", "aria-label": "Words", key: "words", value: one.words, oninput: (event) => set(index, { words: event.target.value }) }),
          ["headings", "links_only_to"].includes(one.kind) && h("textarea", { rows: "2", "aria-label": one.kind === "headings" ? "Headings, one a line" : "Hosts, one a line", placeholder: "One a line", key: "lines", value: one.lines, oninput: (event) => set(index, { lines: event.target.value }) }),
          one.kind === "json" && h("textarea", { rows: "4", class: "mono", "aria-label": "JSON Schema", key: "schema", value: one.schema, oninput: (event) => set(index, { schema: event.target.value }) }),
          shown[`condition ${index}`] && h("small", { class: "bad", role: "alert" }, shown[`condition ${index}`]),
          press("Remove", () => state.set({ conditions: state.form.conditions.filter((_, at) => at !== index) }), { kind: "quiet" }),
        ),
      ),
    ),
    conditions.length === 0 && h("p", { class: "muted" }, "No program checks the outputs."),
    conditions.length < MOST_CONDITIONS && h("div", {}, press("Add a condition", () => state.set({ conditions: [...state.form.conditions, conditionChoice({ kind: "min_words" })] }))),
  );
}

// ---- Saving ----

function saveBar(ctx, state, { action, changed, cancelHref }) {
  const binds = changed.filter((name) => name !== "priority");
  const withdraws = action?.approval && binds.length > 0;
  const names = fieldsInWords(changed);
  return h(
    "div",
    { class: "act-save" },
    h(
      "p",
      { role: "status" },
      changed.length === 0 && (action ? "Nothing is changed yet." : "Nothing runs until you approve it."),
      changed.length > 0 && action && `You change: ${names}. `,
      withdraws && h("b", { class: "warn" }, "Saving withdraws your approval. Nothing runs until you approve it again."),
    ),
    h(
      "div",
      { class: "acts" },
      h("a", { class: "btn quiet", href: cancelHref, onclick: () => state.reset(action ?? { budget: {}, schedule: null }) }, "Cancel"),
      h("div", { class: "end" }, h("button", { class: "btn primary", disabled: ctx.busy(state.key) || Boolean(state.conflict) || (action && changed.length === 0), "aria-busy": ctx.busy(state.key) ? "true" : null }, action ? "Save" : "Add the action")),
    ),
  );
}

/** The version of an action, if what people set of it is still what `shown` shows. Runs also count versions. */
export async function versionIfSame(shown) {
  const current = await get(`/actions/${shown.action_id}`);
  const theirs = changedFields(formOf(shown), formOf(current));
  if (theirs.length === 0) return current.version;
  throw new Error(`Somebody else has changed this meanwhile: ${fieldsInWords(theirs)}. Look at it again.`);
}

const MOST_TRIES = 3;

async function saveForm(ctx, state, changed, done) {
  if (!state.actionId) {
    const names = Object.keys(fieldsOfForm(state.form)).filter((name) => (name !== "budget" || state.form.run !== "" || state.form.month !== "") && (name !== "max_uses" || state.form.grants.length > 0));
    const body = bodyOf(state.form, names);
    if (body.budget && body.budget.per_run_micros === null) delete body.budget.per_run_micros;
    const made = await post(`/agents/${state.agentId}/actions`, body);
    state.draft.set("");
    return done(made);
  }
  for (let attempt = 1; ; attempt++) {
    try {
      const saved = await edit(`/actions/${state.actionId}`, bodyOf(state.form, changed), { ifMatch: state.version });
      state.reset(saved);
      return done(saved);
    } catch (error) {
      if (error.code !== "version_conflict") throw error;
      meetTheirs(ctx, state, await get(`/actions/${state.actionId}`));
      // A run also counts versions. If nobody has changed a field, there is nothing to decide.
      if (state.conflict || attempt === MOST_TRIES) return undefined;
    }
  }
}

/** Somebody else has changed the action. What only one of the two has changed is taken; what both have changed is asked. */
function meetTheirs(ctx, state, current) {
  const theirs = formOf(current);
  const mine = state.form;
  const byThem = changedFields(state.base, theirs);
  const byMe = changedFields(state.base, mine);
  const both = byThem.filter((name) => byMe.includes(name) && changedFields(mine, theirs).includes(name));
  const onlyThem = byThem.filter((name) => !byMe.includes(name));
  const merged = { ...mine };
  for (const name of onlyThem) Object.assign(merged, formPart(theirs, name));
  state.form = merged;
  state.base = theirs;
  state.version = current.version;
  state.conflict = both.length + onlyThem.length > 0 ? { both, onlyThem, theirs, mine: { ...merged } } : null;
  state.draft.set(JSON.stringify({ base: state.base, version: state.version, form: state.form }));
  previewSoon(ctx, state);
  if (state.conflict) ctx.say("Somebody else has changed this action. Nothing of yours is lost.");
}

const FORM_PARTS = {
  "task_config.instructions": ["instructions"],
  "task_config.expected_output": ["expected"],
  model_tier: ["tier"],
  budget: ["run", "month"],
  grants: ["grants"],
  max_uses: ["uses"],
};

const formPart = (form, name) => Object.fromEntries((FORM_PARTS[name] ?? [name]).map((part) => [part, form[part]]));

function conflictPart(ctx, state) {
  const { conflict } = state;
  if (!conflict) return null;
  const mine = fieldsOfForm(conflict.mine);
  const theirs = fieldsOfForm(conflict.theirs);
  const settle = (name, form) => {
    conflict.both = conflict.both.filter((one) => one !== name);
    state.set(formPart(form, name));
    if (conflict.both.length === 0 && conflict.onlyThem.length === 0) state.conflict = null;
    ctx.redraw();
  };
  return h(
    "section",
    { class: "act-conflict", role: "alert", "aria-label": "Somebody else has changed this action" },
    h("h3", {}, "Somebody else has changed this action meanwhile"),
    conflict.onlyThem.length > 0 && h("p", {}, `Their change is taken over, because you did not touch it: ${fieldsInWords(conflict.onlyThem)}.`),
    conflict.both.map((name) =>
      h(
        "div",
        { class: "change", key: name },
        h("h4", {}, `${fieldName(name)}: from theirs to yours`),
        changeView(ctx, name, theirs[name], mine[name]),
        h("div", { class: "acts" }, press("Take theirs", () => settle(name, conflict.theirs)), press("Keep mine", () => settle(name, conflict.mine))),
      ),
    ),
    conflict.both.length === 0 &&
      h("div", { class: "acts" }, press("Go on", () => {
        state.conflict = null;
        ctx.redraw();
      })),
  );
}

