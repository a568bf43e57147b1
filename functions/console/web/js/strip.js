// The day strip: midnight to midnight in the person's zone, drawn from instants, so that a day has 23, 24 or 25 hours.

import { clock, duration, money, relative } from "./format.js";
import { chip, lamp, row, stateWord } from "./parts.js";
import { h } from "./view.js";

const STRIP_HOUR = 3_600_000;
/** Lamps are 24 px wide; closer ones go below each other. The strip is at least 600 px wide where it is shown. */
const APART = 2.6;
const DEEPEST = 3;

export const isAhead = (item) => item.state === "due" || item.state === "claimed";

/** The words of an item for people who do not see its lamp. */
export function itemWords(item) {
  const parts = [`${clock(item.at)} ${item.action_title}`, stateWord(item.state)];
  if (item.reason && !["due", "succeeded"].includes(item.state)) parts.push(item.reason);
  if (item.due_times > 1) parts.push(`${item.due_times} due times`);
  if (item.cost_micros > 0) parts.push(money(item.cost_micros));
  return parts.join(", ");
}

/** States in which a run has begun. Of all others there is only the record of the due time. */
const BEGUN = new Set(["running", "in_progress", "succeeded", "completed", "nothing_new", "failed", "waiting", "cancelled", "unknown"]);

export const itemHref = (item) => (item.run_id && BEGUN.has(item.state) ? `#/runs/${item.run_id}` : `#/actions/${item.action_id}`);

function placed(items, position) {
  const rows = [];
  const lamps = [];
  const piles = [];
  for (const item of items) {
    const at = position(Date.parse(item.at));
    let depth = 0;
    while (depth < DEEPEST && rows[depth] !== undefined && at - rows[depth] < APART) depth++;
    if (depth === DEEPEST) {
      const pile = piles.at(-1);
      if (pile && at - pile.at < APART) pile.items.push(item);
      else piles.push({ at: rows[DEEPEST - 1], items: [item] });
      continue;
    }
    rows[depth] = at;
    lamps.push({ item, at, depth });
  }
  return { lamps, piles };
}

export function strip(day, now = Date.now()) {
  const from = Date.parse(day.from);
  const to = Date.parse(day.to);
  const position = (instant) => (100 * (Math.min(Math.max(instant, from), to) - from)) / (to - from);
  const hours = [];
  for (let instant = from; instant < to; instant += STRIP_HOUR) {
    const text = clock(instant);
    if (text.endsWith(":00") && Number(text.slice(0, 2)) % 3 === 0 && !hours.some((hour) => hour.text === text)) hours.push({ text, at: position(instant) });
  }
  const edge = (text, otherwise) => hours.find((hour) => hour.text === text)?.at ?? otherwise;
  const { lamps, piles } = placed(day.data, position);
  const isNow = now >= from && now < to;
  return h(
    "div",
    { class: "strip", style: { "--dawn": `${edge("06:00", 25)}%`, "--dusk": `${edge("18:00", 75)}%` } },
    h(
      "ol",
      { "aria-label": "The day" },
      lamps.map(({ item, at, depth }) =>
        h("li", { key: `${item.action_id} ${item.at} ${item.run_id ?? ""}`, style: { "--at": `${at}%`, "--row": depth }, class: at > 70 ? "right" : null }, lamp(item.state === "due" && Date.parse(item.at) < now - 60_000 ? "late" : item.state, itemHref(item), itemWords(item))),
      ),
      piles.map((pile) => h("li", { key: `pile ${pile.at}`, class: "pile", style: { "--at": `${pile.at}%`, "--row": DEEPEST } }, h("span", { title: pile.items.map(itemWords).join("\n") }, `+${pile.items.length}`))),
    ),
    isNow && h("span", { class: "now", style: { "--at": `${position(now)}%` }, "aria-hidden": "true" }),
    h("div", { class: "hours", "aria-hidden": "true" }, hours.map((hour) => h("span", { key: hour.text, style: { "--at": `${hour.at}%` } }, hour.text))),
  );
}

/** The same day as a list, for narrow screens. */
export function agenda(day, now = Date.now()) {
  const items = day.data;
  const near = items.findIndex((item) => Date.parse(item.at) > now);
  const middle = near < 0 ? items.length : near;
  const shown = items.slice(Math.max(0, middle - 4), middle + 5);
  return h(
    "ol",
    { class: "rows agenda", "aria-label": "The day" },
    shown.map((item) => row({ key: `${item.action_id} ${item.at}`, time: clock(item.at), title: item.action_title, href: itemHref(item), note: isAhead(item) ? relative(item.at, now) : item.cost_micros ? money(item.cost_micros) : item.agent_name, end: chip(item.state) })),
  );
}

/** What the day holds, in figures. */
export function dayFigures(day) {
  const count = (...states) => day.data.filter((item) => states.includes(item.state)).length;
  const all = [
    [count("succeeded", "completed"), "ran"],
    [count("nothing_new"), "found nothing new"],
    [count("unchanged"), "nothing changed"],
    [count("running", "claimed", "in_progress"), count("running", "claimed", "in_progress") === 1 ? "runs now" : "run now"],
    [count("failed"), "failed"],
    [count("missed"), "missed"],
    [count("skipped"), "skipped"],
    [count("held", "waiting", "unknown"), "wait for you"],
    [count("due"), "still to come"],
  ];
  return all.filter(([number]) => number > 0);
}

export const tookText = (item) => (item.started_at && item.finished_at ? duration(Date.parse(item.finished_at) - Date.parse(item.started_at)) : null);
