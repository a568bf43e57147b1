// The search of the memory. Nothing is asked while nothing is typed, and an answer to an older question is never shown.

import { get } from "./api.js";
import { redraw } from "./app.js";
import { capital, counted, listed } from "./format.js";
import { factItem, factList, memoryDate, memoryDayHref, sourceLink } from "./memory-facts.js";
import { empty, press, problem, section } from "./parts.js";
import { h, icon } from "./view.js";

const ASK_AFTER_MS = 250;
const MOST_HITS = 30;
const MOST_QUESTION = 1000;

/** How deep a search goes, in words. */
const DEPTHS = [
  ["", "Stop at a good answer"],
  ["cards", "Cards"],
  ["memory", "Facts"],
  ["raw", "Every message"],
];
const DEPTH_WORDS = { cards: "cards", memory: "cards and facts", raw: "cards, facts and messages" };
const HIT_KINDS = { memory: "Facts", card: "Cards", raw: "Messages" };
const SPEAKERS = { user: "you", assistant: "the assistant", tool: "a tool" };

/** What the search of this page knows. The address has the question, so that it outlives a reload. */
export function searchOf(ctx) {
  const text = ctx.query.q ?? "";
  ctx.state.search ??= { text: null, depth: "", number: 0, found: null, error: null, isAsking: false, timer: null, input: null };
  const { search } = ctx.state;
  ctx.state.searchAgain ??= () => search.text.trim() && askMemory(ctx, search);
  // Somebody has followed a link, or gone back.
  if (search.address !== text) {
    Object.assign(search, { text, address: text, depth: DEPTHS.some(([depth]) => depth === ctx.query.depth) ? ctx.query.depth : search.depth });
    if (search.input) search.input.value = text;
    askSoon(ctx, search, 0);
  }
  return search;
}

export const isSearching = (search) => search.text.trim() !== "";

function askSoon(ctx, search, ms = ASK_AFTER_MS) {
  clearTimeout(search.timer);
  // An answer that is still on its way belongs to another question.
  search.number++;
  if (isSearching(search)) {
    search.timer = setTimeout(() => askMemory(ctx, search), ms);
    return;
  }
  Object.assign(search, { found: null, error: null, isAsking: false });
  keepAddress(ctx, search);
}

function keepAddress(ctx, search) {
  const text = search.text.trim();
  ctx.query = text ? { q: text, ...(search.depth && { depth: search.depth }) } : {};
  search.address = ctx.query.q ?? "";
  history.replaceState(null, "", `#/memory${text ? `?${new URLSearchParams(ctx.query)}` : ""}`);
}

async function askMemory(ctx, search) {
  if (ctx.signal.aborted) return;
  const mine = ++search.number;
  const question = search.text.trim();
  search.isAsking = true;
  keepAddress(ctx, search);
  redraw();
  try {
    const found = await get(`/memory/search?${new URLSearchParams({ q: question, limit: MOST_HITS, ...(search.depth && { depth: search.depth }) })}`, ctx.signal);
    if (mine !== search.number) return;
    Object.assign(search, { found: { ...found, question }, error: null, showsFar: false });
    ctx.say(`${counted(found.hits.length, "result")}.`);
  } catch (error) {
    if (mine !== search.number || ctx.signal.aborted) return;
    Object.assign(search, { error, found: null });
  }
  search.isAsking = false;
  redraw();
}

export function searchForm(ctx, search) {
  const typed = (event) => {
    search.text = event.target.value;
    askSoon(ctx, search);
    redraw();
  };
  return h(
    "form",
    {
      class: "mem-find",
      role: "search",
      "aria-label": "Search the memory",
      onsubmit: (event) => {
        event.preventDefault();
        askSoon(ctx, search, 0);
      },
    },
    h(
      "label",
      { class: "mem-find-box" },
      icon("find"),
      h("span", { class: "vh" }, "Search the memory"),
      h("input", { type: "search", maxlength: MOST_QUESTION, autocomplete: "off", placeholder: "What did I say about…", "data-filter": true, use: (node) => { search.input = node; node.value = search.text; }, oninput: typed }),
    ),
    h(
      "label",
      { class: "inline" },
      h("span", {}, "Look through"),
      h(
        "select",
        {
          value: search.depth,
          onchange: (event) => {
            search.depth = event.target.value;
            askSoon(ctx, search, 0);
            redraw();
          },
        },
        DEPTHS.map(([depth, name]) => h("option", { value: depth, key: depth }, name)),
      ),
    ),
  );
}

export function foundView(ctx, search) {
  const { found, error } = search;
  // If something has what was asked for, what has nothing of it is hidden at first.
  const near = (found?.hits ?? []).filter((hit) => hit.score > 0);
  const hits = near.length > 0 && !search.showsFar ? near : (found?.hits ?? []);
  const far = (found?.hits.length ?? 0) - hits.length;
  const showFar = () => {
    search.showsFar = true;
    redraw();
  };
  const deeper = () => {
    search.depth = "raw";
    askSoon(ctx, search, 0);
  };
  return section(
    "Found",
    { note: found && `about “${found.question}”` },
    h("p", { class: "mem-under muted", role: "status" }, search.isAsking ? "Searching…" : found && `${counted(hits.length, "result")} in ${DEPTH_WORDS[found.stopped_at] ?? "the memory"}${found.layers.length > 0 ? `, by ${listed(found.layers)}` : ""}`),
    error && problem(ctx, error, { compact: true, retry: () => askSoon(ctx, search, 0) }),
    found && found.hits.length === 0 && empty(`Nothing is remembered about “${found.question}”.`, search.depth !== "" && search.depth !== "raw" && press("Search every message", deeper)),
    // The kind of the best result comes first.
    [...new Set(hits.map((hit) => hit.kind))].map((kind) => hitsOfKind(ctx, hits.filter((hit) => hit.kind === kind), kind, HIT_KINDS[kind] ?? kind)),
    far > 0 && h("p", { class: "mem-under" }, press(`Show ${far} that ${far === 1 ? "is" : "are"} farther away`, showFar, { kind: "link" })),
    found && found.hits.length > 0 && ["cards", "memory"].includes(found.stopped_at) && h("p", { class: "mem-under" }, press("Search every message", deeper, { kind: "link" })),
  );
}

function hitsOfKind(ctx, hits, kind, name) {
  return h("div", { class: "mem-group", key: kind }, h("h3", {}, name), factList(`${name} that were found`, hits.map((hit) => (kind === "memory" ? factItem(ctx, factOfHit(hit), { isCut: true }) : hitItem(hit)))));
}

/** What a search says of a fact, as the fact. */
function factOfHit(hit) {
  return { fact_id: hit.ref, text: hit.text, date: hit.date, state: hit.state, on: hit.until, namespace: hit.namespace, sources: hit.session_id ? [{ source: hit.session_id }] : [], origin: hit.session_id ? "" : "person" };
}

function hitItem(hit) {
  const parts = [
    hit.speaker && capital(SPEAKERS[hit.speaker] ?? hit.speaker),
    hit.date && h("a", { href: memoryDayHref(hit.date) }, memoryDate(hit.date)),
    hit.session_id && ["from ", sourceLink(hit.session_id)],
    hit.namespace && `in “${hit.namespace}”`,
  ];
  return h("li", { class: "mem-fact", key: `${hit.kind} ${hit.session_id ?? ""} ${hit.ref}` }, h("div", { class: "mem-says" }, h("p", { class: "long" }, hit.text), h("small", {}, parts.filter(Boolean).map((part, index) => [index > 0 && " · ", part]))));
}
