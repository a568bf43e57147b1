// What a change replaces, field by field, in words. Schedules are said in the words of the platform.

import { post } from "./api.js";
import { lazily } from "./app.js";
import { diffView } from "./diff.js";
import { capital, clock, counted, money, moment, shownZone } from "./format.js";
import { h } from "./view.js";

/** What the tools of a run do, in words. */
const TOOL_WORDS = { web_search: "search the web", code_execution: "run code", generate_asset: "propose drafts", generate_actions: "propose further actions" };

export const toolWords = (tool) => TOOL_WORDS[tool] ?? tool.replaceAll("_", " ");

/** What the fields of an approval are called on a ticket. */
const FIELDS = {
  title: "Title",
  description: "Description",
  "task_config.instructions": "Instructions",
  "task_config.expected_output": "Expected",
  schedule: "When",
  grants: "May use",
  max_uses: "At most",
  tools: "Tools",
  model_tier: "Model",
  budget: "May cost",
  conditions: "A program checks",
  watches: "Only if",
  call: "Request",
  agent: "The agent",
  "agent.instructions": "Instructions of the agent",
  "agent.goal": "Goal of the agent",
  "agent.success_criteria": "It works if",
  "agent.timeline": "Timeline",
  "agent.name": "Name of the agent",
  "agent.docs_project_id": "Documents of the project",
  "agent.theme_project_id": "Theme of the project",
  timezone: "Time zone of the agent",
};

export const fieldName = (field) => FIELDS[field] ?? field.replaceAll("_", " ").replaceAll(".", " · ");

/** A value as a text that can be compared. */
export function asText(value) {
  if (value === null || value === undefined) return "";
  if (typeof value === "string") return value;
  if (Array.isArray(value) && value.every((one) => typeof one === "string")) return value.join("\n");
  return JSON.stringify(value, null, 2);
}

/** What the conditions of an action say, in words. */
export function conditionText(condition) {
  switch (condition.kind) {
    case "min_words":
      return `at least ${condition.words} words`;
    case "names_today":
      return "names today’s date";
    case "headings":
      return `has the headings ${condition.headings.join(", ")}`;
    case "json":
      return "is JSON of a given schema";
    case "links_only_to":
      return `links only to ${condition.hosts.join(", ")}`;
    default:
      return condition.kind;
  }
}

/** What an action watches, in words. */
export function watchText(watch) {
  switch (watch.kind) {
    case "url":
      return `${watch.url}${watch.pointer ? ` at ${watch.pointer}` : ""} has changed`;
    case "feed":
      return `${watch.url} has new entries`;
    case "asset":
      return `the asset ${watch.asset_id} has changed`;
    case "theme_file":
      return `the theme file ${watch.path} has changed`;
    case "context_document":
      return "a context document has changed";
    default:
      return watch.kind;
  }
}

/** The ceilings of an action in words. */
export function budgetText(budget) {
  const parts = [budget.per_run_micros && `up to ${money(budget.per_run_micros)} a run`, budget.per_month_micros && `${money(budget.per_month_micros)} a month`];
  return parts.filter(Boolean).join(", ");
}

/** What the runs of a month will probably cost, or null if they have cost nothing so far. */
export function monthText(expected) {
  if (!expected || expected.month_micros === 0) return null;
  const runs = counted(expected.runs, "run");
  return expected.run_micros === null || expected.run_micros === undefined ? `at most ${money(expected.month_micros)} for ${runs}` : `about ${money(expected.month_micros)} for ${runs}`;
}

function wordsOfField(field, value) {
  if (value === null || value === undefined || typeof value === "string") return asText(value);
  if (field === "conditions") return value.map(conditionText).join("\n");
  if (field === "watches") return value.map(watchText).join("\n");
  if (field === "budget") return budgetText(value);
  if (field === "max_uses") return Object.entries(value).map(([tool, times]) => `${toolWords(tool)}, up to ${times} times a run`).join("\n");
  if (field === "grants") return value.map(toolWords).join("\n");
  if (field === "tools" && value.every((tool) => tool.name)) return value.map((tool) => tool.name).join("\n");
  return asText(value);
}

/** What differs in a field. Texts in words hide nothing: if they are equal and the values are not, the values are shown. */
export function changeView(ctx, field, before, after, options = {}) {
  if (field === "schedule") return rescheduled(ctx, before, after, options);
  const texts = [wordsOfField(field, before), wordsOfField(field, after)];
  return texts[0] === texts[1] ? diffView(asText(before), asText(after)) : diffView(...texts);
}

// ---- Schedules ----

/** The words of a schedule stay; its next time does not. */
const SAID_MS = 10 * 60_000;

/** What the platform says of a schedule: `{ text, next }`, or undefined until it has said it. */
function saidSchedule(ctx, schedule) {
  const read = () =>
    post("/schedules/preview", { schedule, count: 1 }).then(
      ({ schedule_text: text, fire_times: times }) => ({ text, next: times[0] ?? null }),
      () => ({ text: asText(schedule), next: null }),
    );
  return lazily(`schedule ${ctx.shared.account?.timezone} ${JSON.stringify(schedule)}`, read, SAID_MS);
}

const SCHEDULE_SORTS = { at: "once", cron: "repeats", every: "repeats" };
const kindOf = (schedule) => (schedule ? SCHEDULE_SORTS[Object.keys(SCHEDULE_SORTS).find((name) => schedule[name])] ?? "repeats" : "never");

/** What is said loudly, because a glance at two sentences may miss it. */
const LOUD = {
  "repeats once": ["It no longer repeats.", "It would run one single time, and then never again."],
  "once repeats": ["It begins to repeat.", "It was to run one single time."],
  "repeats never": ["It loses its schedule.", "It runs only when you run it."],
  "once never": ["It loses its schedule.", "It runs only when you run it."],
};
const LOUD_LATER = {
  "repeats once": ["It no longer repeats:", "one single time instead of a schedule that repeats."],
  "once repeats": ["It repeats from here on:", "a schedule instead of one single time."],
  "repeats never": ["It lost its schedule.", null],
  "once never": ["It lost its schedule.", null],
};

/** Settings of a schedule that its sentence does not say. */
const SETTINGS = {
  overlap: "If the last run is not over",
  catch_up: "Times that were missed in an outage",
  max_age: "Caught up at most this late",
  jitter: "Spread over",
  start_at: "Not before",
  end_at: "Not after",
};

const SETTING_WORDS = { skip: "skip this time", queue: "wait for it", replace: "end it and begin", latest: "run the newest one", all: "run all of them", none: "run none of them" };
const settingWords = (value) => (value === undefined || value === null ? "not set" : (SETTING_WORDS[value] ?? value));

/** A schedule with what the platform takes for what it does not say. */
const settled = (schedule) => ({ overlap: "skip", catch_up: "latest", max_age: schedule.catch_up === "all" ? "7d" : "1d", ...schedule });

/** `At 09:00 on Monday (Europe/Vienna).` without its full stop. Of a daily schedule the platform says only the time. */
const plainSchedule = (text) => text.replace(/\.$/, "").replace(/^At (?=\d\d:\d\d(?: \(|$))/, "Every day at ");

/** A schedule within a sentence, without the zone if it is the shown one. */
export function scheduleWords(text) {
  const sentence = plainSchedule(text);
  const words = sentence.charAt(0).toLowerCase() + sentence.slice(1);
  return words.endsWith(` (${shownZone()})`) ? words.slice(0, -shownZone().length - 3) : words;
}

/** A schedule beside its next time, so without the clock and the zone that stand there already. */
export function scheduleBeside(text, nextAt) {
  const words = capital(scheduleWords(text));
  if (!nextAt) return words;
  const at = clock(nextAt);
  if (words === `Every day at ${at}`) return "Every day";
  if (words.startsWith("Once, on ") && words.includes(at)) return "Once";
  const [, days] = words.match(new RegExp(`^At ${at} on (.*)$`)) ?? [];
  if (!days || days.includes(at)) return words;
  return /^(Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day/.test(days) ? `Every ${days}` : `On ${days}`;
}

function scheduleSentence(ctx, schedule) {
  if (!schedule) return "no schedule";
  const said = saidSchedule(ctx, schedule);
  if (!said) return "…";
  const sentence = plainSchedule(said.text);
  return schedule.at ? withWeekday(sentence) : sentence;
}

/** `Once, on 2 December 2026` as `Once, on Wednesday 2 December 2026`: people plan by weekdays. */
function withWeekday(sentence) {
  const day = /^Once, on (\d{1,2} \w+ \d{4})/.exec(sentence)?.[1];
  const date = day && new Date(`${day} 12:00 UTC`);
  if (!date || Number.isNaN(date.getTime())) return sentence;
  return sentence.replace("Once, on ", `Once, on ${new Intl.DateTimeFormat("en-GB", { timeZone: "UTC", weekday: "long" }).format(date)} `);
}

/**
 * A schedule before and after, in words. `isPast`: the change has been made; else its first time is shown. `before` may be undefined while
 * it is not known.
 */
function rescheduled(ctx, before, after, { isPast = false, isFirst = false } = {}) {
  const loud = before === undefined || isFirst ? null : (isPast ? LOUD_LATER : LOUD)[`${kindOf(before)} ${kindOf(after)}`];
  const next = !isPast && after && !after.at ? saidSchedule(ctx, after)?.next : null;
  const [old, now] = before && after ? [settled(before), settled(after)] : [{}, {}];
  const settings = Object.keys(SETTINGS).filter((name) => (old[name] ?? null) !== (now[name] ?? null));
  const isSettled = before && after && scheduleSentence(ctx, before) === scheduleSentence(ctx, after);
  return h(
    "div",
    { class: "resched" },
    loud && h("p", { class: "loud" }, h("b", {}, loud[0]), loud[1] && ` ${loud[1]}`),
    h(
      "p",
      { class: "from-to" },
      before !== undefined && !isFirst && !isSettled && [h("span", { class: "vh" }, "From: "), h("del", {}, scheduleSentence(ctx, before)), h("span", { "aria-hidden": "true" }, " → "), h("span", { class: "vh" }, " to: ")],
      h("ins", {}, scheduleSentence(ctx, after)),
    ),
    next && h("p", { class: "muted" }, `Next: ${moment(next)}`),
    settings.length > 0 && h("ul", { class: "plain muted" }, settings.map((name) => h("li", { key: name }, `${SETTINGS[name]}: ${settingWords(old[name])} → ${settingWords(now[name])}`))),
  );
}
