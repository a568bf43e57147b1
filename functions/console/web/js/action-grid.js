// The last fourteen days of an action, one column a day, one lamp for each run.

import { atNoon, clock, dateIn, dateWords, dayMonth, figure, isoDate, money, moment, shownZone, weekdayShort } from "./format.js";
import { getAll } from "./api.js";
import { chip, dialog, lamp, row, rows, stateWord, willRunAt } from "./parts.js";
import { h } from "./view.js";

const GRID_DAYS = 14;
const DAY_MS = 86_400_000;
/** With more runs in a day than this, the last place says how many more there are. */
const LAMPS_A_DAY = 3;
/** Pages of 200 runs that are read for the grid at most. */
const MOST_RUN_PAGES = 8;

/** The dates of the last days in the shown zone, oldest first. It counts dates and not hours, so days of 23 and 25 hours are one day each. */
export function gridDates(now = Date.now(), count = GRID_DAYS) {
  const today = Date.parse(isoDate(now));
  return Array.from({ length: count }, (_, index) => new Date(today - (count - 1 - index) * DAY_MS).toISOString().slice(0, 10));
}

/** The time at which a run stands in the grid. Due times that wait together stand at the last of them. */
const gridTime = (occurrence) => (occurrence.state === "held" && occurrence.last_due_at) || occurrence.due_at;

/** How bad a state is: what needs a person is never hidden behind a number. */
const WEIGHT = { failed: 3, missed: 3, unknown: 3, waiting: 3, held: 3, running: 2, claimed: 2 };

/** The columns of the grid: `{ date, shown, rest, unchanged }`, with the runs of each day, oldest first. */
export function gridColumns(occurrences, now = Date.now(), count = GRID_DAYS) {
  const columns = new Map(gridDates(now, count).map((date) => [date, { date, all: [], unchanged: [] }]));
  for (const occurrence of occurrences) {
    const column = columns.get(isoDate(gridTime(occurrence)));
    if (!column) continue;
    if (occurrence.state === "unchanged") column.unchanged.push(occurrence);
    else column.all.push(occurrence);
  }
  return [...columns.values()].map(({ date, all, unchanged }) => {
    const oldestFirst = all.sort((a, b) => Date.parse(gridTime(a)) - Date.parse(gridTime(b)));
    if (oldestFirst.length <= LAMPS_A_DAY) return { date, shown: oldestFirst, rest: [], unchanged };
    const chosen = new Set([...oldestFirst].reverse().sort((a, b) => (WEIGHT[b.state] ?? 1) - (WEIGHT[a.state] ?? 1)).slice(0, LAMPS_A_DAY - 1));
    return { date, shown: oldestFirst.filter((one) => chosen.has(one)), rest: oldestFirst.filter((one) => !chosen.has(one)), unchanged };
  });
}

/** States of due times that began no run. */
const WITHOUT_RUN = new Set(["due", "unchanged", "missed", "skipped", "held", "cancelled"]);

/** The page of a due time. Where no run began, the address names the action, because there is no run to ask. */
export function occurrenceHref(occurrence) {
  return `#/runs/${occurrence.run_id}${WITHOUT_RUN.has(occurrence.state) ? `?action=${occurrence.action_id}` : ""}`;
}

/** A due time in words, for people who do not see its lamp. */
export function occurrenceName(occurrence) {
  const at = gridTime(occurrence);
  const parts = [`${weekdayShort(at)} ${dayMonth(at)}, ${clock(at)}`, stateWord(occurrence.state)];
  if (occurrence.kind === "manual") parts.push("by hand");
  if (occurrence.reason && !["succeeded", "unchanged"].includes(occurrence.state)) parts.push(occurrence.reason);
  if (occurrence.due_times > 1) parts.push(`${figure(occurrence.due_times)} due times`);
  if (occurrence.cost_micros > 0) parts.push(money(occurrence.cost_micros));
  return parts.join(", ");
}

const GRID_LEGEND = [
  [["succeeded"], "ran"],
  [["nothing_new"], "found nothing new"],
  [["running", "claimed"], "under way"],
  [["failed"], "failed"],
  [["missed"], "missed"],
  [["skipped"], "skipped"],
  [["cancelled"], "cancelled"],
  [["held"], "held"],
  [["waiting", "unknown"], "wait for you"],
];

/** The grid with its legend. `runs` is what `recentRuns` has read; `lit` names the runs that have succeeded while the page is shown. */
export function actionGrid(ctx, action, runs, { lit = new Set(), now = Date.now() } = {}) {
  const columns = gridColumns(runs.data, now);
  const today = isoDate(now);
  const from = columns[0].date;
  const inGrid = runs.data.filter((one) => isoDate(gridTime(one)) >= from);
  const next = willRunAt(action) && isoDate(action.next_due) === today;
  return h(
    "section",
    { class: "nights", key: "nights", "aria-label": `The last fourteen days, in the zone ${shownZone()}` },
    h(
      "ol",
      {},
      columns.map((column, index) => {
        const weekend = [0, 6].includes(atNoon(column.date).getUTCDay());
        const isToday = column.date === today;
        return h(
          "li",
          { key: column.date, class: [weekend && "rest", isToday && "today", index > 9 && "right", index < 4 && "left"].filter(Boolean).join(" ") || null },
          isToday && next && column.shown.length < LAMPS_A_DAY && lamp("due", `#/actions/${action.action_id}`, `Due ${moment(action.next_due)}`),
          column.rest.length > 0 &&
            h("button", { class: "more", type: "button", "aria-label": `${dateWords(column.date)}: ${figure(column.rest.length)} more`, onclick: () => openDay(ctx, column) }, `+${figure(column.rest.length)}`),
          [...column.shown].reverse().map((one) => lamp(one.state, occurrenceHref(one), occurrenceName(one), { fresh: lit.has(one.run_id) })),
          column.shown.length + column.rest.length === 0 &&
            column.unchanged.length > 0 &&
            lamp("unchanged", occurrenceHref(column.unchanged[0]), `${dateWords(column.date)}: ${figure(column.unchanged.length)} ${column.unchanged.length === 1 ? "check" : "checks"}, nothing changed`),
          h("time", { datetime: column.date }, dateIn(column.date, { weekday: "narrow" }), h("b", {}, isToday ? [h("span", { class: "vh" }, "today, "), dateIn(column.date, { day: "numeric" })] : dateIn(column.date, { day: "numeric" }))),
        );
      }),
    ),
    gridLegend(action, inGrid, runs.complete, columns[0].date, now),
  );
}

function gridLegend(action, inGrid, complete, from, now) {
  const counts = GRID_LEGEND.map(([states, word]) => [inGrid.filter((one) => states.includes(one.state)).reduce((sum, one) => sum + (one.due_times ?? 1), 0), word]).filter(([count]) => count > 0);
  return h(
    "div",
    { class: "legend" },
    counts.map(([count, word]) => h("span", { key: word }, h("b", {}, figure(count)), ` ${word}`)),
    counts.length === 0 && h("span", {}, Date.parse(action.created_at) > now - DAY_MS && inGrid.length === 0 ? "It has not run yet." : "It has not run since ".concat(dateWords(from), ".")),
    !complete && h("span", {}, "There is more than is shown here."),
    action.watching && action.watching.unchanged > 0 && h("span", { class: "end" }, h("b", {}, figure(action.watching.unchanged)), ` ${action.watching.unchanged === 1 ? "check" : "checks"} woke nobody`),
  );
}

/** All runs of a day, when there are more than the grid has room for. */
function openDay(ctx, column) {
  const all = [...column.shown, ...column.rest].sort((a, b) => Date.parse(gridTime(a)) - Date.parse(gridTime(b)));
  ctx.open(() =>
    dialog(
      { title: dateWords(column.date), onclose: () => ctx.close() },
      rows(
        all.map((one) =>
          row({ key: one.run_id, time: clock(gridTime(one)), title: stateWord(one.state), href: occurrenceHref(one), note: [one.kind === "manual" && "by hand", one.reason, one.cost_micros > 0 && money(one.cost_micros)].filter(Boolean).join(" · "), end: chip(one.state) }),
        ),
      ),
    ),
  );
}

/** What was read of the runs of actions. Runs that have ended do not change, so only the newest are read again. */
const runsKnown = new Map();
const MOST_ACTIONS_KNOWN = 20;

/** The runs of an action since `since`, newest first: `{ data, complete }`. */
export async function recentRuns(actionId, since, signal) {
  const path = `/actions/${actionId}/runs?limit=200`;
  const known = runsKnown.get(actionId) ?? { runs: new Map(), isWhole: false, complete: true };
  const first = await getAll(path, 1, signal);
  const oldest = first.data.at(-1);
  const goesOn = !first.complete && Date.parse(oldest.due_at) > since;
  const joins = known.isWhole && oldest && known.runs.has(oldest.run_id);
  const answer = goesOn && !joins ? await getAll(path, MOST_RUN_PAGES, signal) : first;
  // A first page that is all there is also says what was deleted.
  const runs = first.complete ? new Map() : new Map(known.runs);
  for (const one of answer.data) runs.set(one.run_id, one);
  const data = [...runs.values()].filter((one) => Date.parse(one.last_due_at ?? one.due_at) > since - DAY_MS).sort((a, b) => Date.parse(b.due_at) - Date.parse(a.due_at));
  const complete = joins ? known.complete : answer.complete || Date.parse(answer.data.at(-1)?.due_at ?? 0) <= since;
  runsKnown.delete(actionId);
  runsKnown.set(actionId, { runs: new Map(data.map((one) => [one.run_id, one])), isWhole: true, complete });
  if (runsKnown.size > MOST_ACTIONS_KNOWN) runsKnown.delete(runsKnown.keys().next().value);
  return { data, complete, newest: first.data };
}

export const GRID_SPAN_MS = (GRID_DAYS + 1) * DAY_MS;
