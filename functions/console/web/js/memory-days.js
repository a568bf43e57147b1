// What days and weeks have taught: the list, the synchronisation by hand, the archive, a day with its cards, and the summary of a week.

import { get, post } from "./api.js";
import { atNoon, capital, counted, dateIn, dateWords, isoDate, money } from "./format.js";
import { factItem, factList, memoryDate, memoryDayHref, memoryLine, sourceLink } from "./memory-facts.js";
import { button, empty, facts, failureOf, field, head, link, press, row, rows, section } from "./parts.js";
import { stoppedNote } from "./stop.js";
import { h } from "./view.js";

/** The memory changes seldom by itself. */
export const MEMORY_MS = 120_000;

const memoryWeekHref = (monday) => `#/memory/weeks/${encodeURIComponent(monday)}`;

function dayAfter(date, days) {
  const at = atNoon(date);
  at.setUTCDate(at.getUTCDate() + days);
  return at.toISOString().slice(0, 10);
}

const mondayBefore = (date) => dayAfter(date, -((atNoon(date).getUTCDay() + 6) % 7));

/** The Monday of an address, or null if the address has no date. */
function addressedMonday(ctx) {
  const { monday } = ctx.params;
  return /^\d{4}-\d\d-\d\d$/.test(monday) && !Number.isNaN(atNoon(monday).getTime()) ? mondayBefore(monday) : null;
}

/** `Monday, 9 November 2026` */
const wholeDate = (date) => dateIn(date, { weekday: "long", day: "numeric", month: "long", year: "numeric" }).replace(/^(\w+) /, "$1, ");

const taughtText = (day) => `${counted(day.facts, "fact")} from ${counted(day.blocks, "conversation")}`;

// ---- The days that are not archived ----

export function memoryDaysSection(ctx) {
  const { days } = ctx.data;
  const today = isoDate(Date.now());
  return section(
    "Days",
    { note: days.synced && `read up to ${dateWords(days.synced)}`, end: h("a", { href: memoryDayHref(today) }, "Open today") },
    days.failure && h("div", { class: "notice warn", role: "alert" }, h("p", {}, h("b", {}, "The memory could not be brought up to date. "), `${capital(days.failure).replace(/\.$/, "")}. It is tried again by itself.`)),
    days.data.length === 0 && h("p", { class: "muted pad" }, "Every day that has taught something is archived, or none has yet. At 23:00 the day is read."),
    days.data.length > 0 && rows(days.data.map((day) => row({ key: day.date, time: dateWords(day.date), title: taughtText(day), href: memoryDayHref(day.date) }))),
    h("div", { class: "acts" }, button(ctx, "Synchronise now", { key: "sync memory", starts: true, act: () => synchronise(ctx) }), h("small", { class: "muted" }, "A model reads the conversations since the last time.")),
    stoppedNote(ctx, "no conversation is read"),
    failureOf(ctx, "sync memory"),
    ctx.state.synced && syncedView(ctx, ctx.state.synced),
  );
}

/** Learns now, and reads what was learned: the answer only counts it. */
async function synchronise(ctx) {
  const synced = await post("/memory/sync", {});
  const day = synced.result === "written" ? await get(`/memory/days/${synced.date}`).catch(() => null) : null;
  ctx.state.synced = { ...synced, blocks: new Map((day?.blocks ?? []).map((block) => [block.block_id, block.facts])) };
}

const SKIP_WORDS = {
  started_by_schedule: "a schedule has started it, so nobody has said anything about themselves",
  not_active: "nothing was said in it lately",
  too_few_messages: "you have said too little in it: fewer than two messages",
  unchanged: "you have said nothing since it was read",
  unreadable: "no model has given a usable answer about it, several times",
};

const REJECTED_WORDS = {
  form: "the model has not kept to the form",
  text: "it must be one line of at most 500 bytes",
  too_many: "there are enough facts without it",
  sources: "it names no message that exists",
  not_the_person: "you have not said it: none of its messages is yours",
  unrelated: "it has nothing to do with what you said",
  instruction: "it is an order that you have not given",
  secret: "it seems to contain a password, a key or the number of a card",
  repeated: "it says the same as another one",
  known: "it is known already",
  forgotten: "you have forgotten or corrected it before",
};

function rejectedText({ reason }) {
  if (reason.code === "not_said") return reason.what ? `its messages do not contain “${reason.what}”` : "it has a name, a number or a date that its messages do not contain";
  return REJECTED_WORDS[reason.code] ?? reason.code.replaceAll("_", " ");
}

/** What a synchronisation by hand has learned, and what it has not accepted. */
function syncedView(ctx, synced) {
  const learned = synced.sources.reduce((sum, one) => sum + one.facts, 0);
  const close = () => {
    ctx.state.synced = null;
    ctx.redraw();
  };
  return h(
    "div",
    { class: "notice mem-synced", key: "synced", role: "status" },
    h("p", {}, h("b", {}, learned > 0 ? `${counted(learned, "fact")} learned.` : "Nothing new was learned."), synced.sources.length === 0 ? " No conversation was active since the last time." : ` ${counted(synced.sources.length, "conversation")} looked at.`, synced.cost_micros > 0 && ` It cost ${money(synced.cost_micros)}.`),
    synced.sources.length > 0 &&
      h(
        "ul",
        { class: "mem-sources" },
        synced.sources.map((one) =>
          h(
            "li",
            { key: one.source },
            sourceLink(one.source),
            one.skipped ? `: nothing, because ${SKIP_WORDS[one.skipped] ?? one.skipped}.` : [": ", h("a", { href: memoryDayHref(synced.date) }, counted(one.facts, "fact")), "."],
            one.facts > 0 && h("ul", {}, (synced.blocks.get(one.block_id) ?? []).map((fact) => h("li", { key: fact.fact_id }, fact.text))),
            one.rejected?.length > 0 && h("p", { class: "muted" }, "Not accepted:"),
            one.rejected?.length > 0 && h("ul", {}, one.rejected.map((rejected, index) => h("li", { key: index }, rejected.text ? h("q", {}, rejected.text) : h("i", {}, "(not shown)"), `: ${rejectedText(rejected)}.`))),
          ),
        ),
      ),
    h("div", { class: "acts" }, press("Close", close, { kind: "quiet" })),
  );
}

// ---- The archive ----

export const archiveYear = (ctx) => ctx.state.year ?? Number(isoDate(Date.now()).slice(0, 4));

export function memoryArchiveSection(ctx) {
  const { archive } = ctx.data;
  const year = archiveYear(ctx);
  const show = (other) => () => {
    ctx.state.year = other;
    ctx.refresh();
    ctx.redraw();
  };
  const weeks = new Map(archive.weeks.map((monday) => [monday, { monday, has: true, days: [] }]));
  for (const day of archive.days) {
    const monday = mondayBefore(day.date);
    if (!weeks.has(monday)) weeks.set(monday, { monday, has: false, days: [] });
    weeks.get(monday).days.push(day);
  }
  const all = [...weeks.values()].sort((a, b) => b.monday.localeCompare(a.monday));
  return section(
    "Archive",
    { note: String(archive.year), end: [press(String(year - 1), show(year - 1), { kind: "link" }), year < Number(isoDate(Date.now()).slice(0, 4)) && [" ", press(String(year + 1), show(year + 1), { kind: "link" })]] },
    all.length === 0 && h("p", { class: "muted pad" }, `Nothing of ${archive.year} is archived. Each Sunday at 22:00 the week is tidied.`),
    all.length > 0 && rows(
      all.map((week) =>
        h(
          "li",
          { key: week.monday },
          h("span", { class: "when" }, dateIn(week.monday, { day: "numeric", month: "short" })),
          h("span", { class: "what" }, week.has ? h("a", { href: memoryWeekHref(week.monday) }, "Summary of the week") : "No summary", h("small", {}, [...week.days].reverse().map((day, index) => [index > 0 && " · ", h("a", { href: memoryDayHref(day.date), title: taughtText(day) }, dateWords(day.date))]))),
        ),
      ),
    ),
  );
}

// ---- A day ----

const crumbOf = (...more) => h("p", { class: "crumb" }, h("a", { href: "#/memory" }, "Memory"), more);

export const memoryDayPage = {
  nav: "memory",
  of: "memory",
  title: (ctx) => memoryDate(ctx.params.date),
  every: () => MEMORY_MS,
  reads: (ctx) => ({
    day: `/memory/days/${encodeURIComponent(ctx.params.date)}`,
    cards: `/memory/cards?date=${encodeURIComponent(ctx.params.date)}`,
  }),
  view(ctx) {
    const { date } = ctx.params;
    const { day, cards } = ctx.data;
    const { blocks } = day;
    const monday = mondayBefore(date);
    const isPast = date < isoDate(Date.now());
    return h(
      "div",
      { key: `memory day ${date}`, class: "mem-narrow" },
      crumbOf(),
      head(wholeDate(date), null, link("The day before", memoryDayHref(dayAfter(date, -1)), { kind: "quiet" }), isPast && link("The day after", memoryDayHref(dayAfter(date, 1)), { kind: "quiet" })),
      blocks.length === 0 && cards.data.length === 0 && empty(isPast ? "This day has taught nothing." : "Nothing is known of this day yet. At 23:00 it is read.", link("All that is known", "#/memory", { kind: "" })),
      blocks.map((block) =>
        section(
          block.title || "A conversation",
          { id: block.block_id, note: [block.namespace && `in “${block.namespace}”`, block.archived_by && "archived"].filter(Boolean).join(" · ") || null, end: sourceLink(block.source) },
          factList(`What it has taught: ${block.title || "a conversation"}`, block.facts.map((fact) => factItem(ctx, fact, { isAtHome: true }))),
        ),
      ),
      cards.data.length > 0 && section("Cards", { note: "about work that was done" }, cards.data.map(memoryCard)),
      h("p", { class: "mem-under" }, h("a", { href: memoryWeekHref(monday) }, `The week of ${memoryDate(monday)}`)),
    );
  },
};

const CARD_PARTS = [
  ["goal", "Goal"],
  ["boundary", "Not to be touched"],
  ["acceptance", "Judged by"],
  ["actions", "Done"],
  ["artifacts", "Made"],
  ["status", "Status"],
  ["next", "Left to do"],
];

function memoryCard(card) {
  return h(
    "article",
    { class: "mem-card", key: card.card_id, "aria-label": card.title },
    h("h3", {}, h("span", { class: "muted" }, `${card.time} `), card.title),
    facts([...CARD_PARTS.map(([part, name]) => [name, card[part]]), ["From", card.source && sourceLink(card.source)], ["In", card.namespace]]),
  );
}

// ---- A week ----

export const memoryWeekPage = {
  nav: "memory",
  of: "memory",
  title: (ctx) => `Week of ${memoryDate(addressedMonday(ctx))}`,
  every: () => MEMORY_MS,
  reads(ctx) {
    const monday = addressedMonday(ctx);
    return { week: `/memory/weeks/${monday ?? encodeURIComponent(ctx.params.monday)}` };
  },
  view(ctx) {
    const monday = addressedMonday(ctx);
    const { week } = ctx.data;
    return h(
      "div",
      { key: `memory week ${monday}`, class: "mem-narrow" },
      crumbOf(),
      head(`The week of ${memoryDate(monday)}`, null),
      week?.lines.length > 0
        ? section("Summary", {}, factList("Summary of the week", week.lines.map((line) => memoryLine(ctx, line))))
        : empty(week ? "Nothing of this week is remembered any more." : "This week has no summary. It is written when the week is tidied, each Sunday at 22:00.", link("All that is known", "#/memory", { kind: "" })),
      section("Its days", {}, h("ul", { class: "mem-days" }, Array.from({ length: 7 }, (_, index) => dayAfter(monday, index)).map((date) => h("li", { key: date }, h("a", { href: memoryDayHref(date) }, dateWords(date)))))),
    );
  },
};

/** Opens any day, also one that is archived. */
export function openMemoryDay(ctx) {
  return field("Open a day", h("input", { type: "date", max: isoDate(Date.now()), onchange: (event) => event.target.value && ctx.go(memoryDayHref(event.target.value)) }));
}
