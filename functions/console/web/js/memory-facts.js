// Facts of the memory: where each comes from, and how a person corrects, confirms and forgets it.

import { del, get, post } from "./api.js";
import { flash, lazily } from "./app.js";
import { counted, dateIn } from "./format.js";
import { button, confirmation, draftOf, failureOf, press } from "./parts.js";
import { h } from "./view.js";

/** The longest fact or line, in bytes. */
export const MOST_FACT_BYTES = 500;

export const textBytes = (text) => new TextEncoder().encode(text).length;

/** `9 Nov 2026` */
export const memoryDate = (date) => dateIn(date, { day: "numeric", month: "short", year: "numeric" });

export const memoryDayHref = (date) => `#/memory/days/${encodeURIComponent(date)}`;

/** Sources that have a page: how their ids look, what they are called, and their address. */
const SOURCE_PAGES = [
  [/^cht_[0-9a-f]{32}$/, "a chat", (id) => `#/chats/${id}`],
  [/^act_[0-9a-f]{32}$/, "the conversation about an action", (id) => `#/actions/${id}/talk`],
  [/^run_[0-9a-f]{32}$/, "a run", (id) => `#/runs/${id}`],
];

/** Where something comes from: a link, or the name of a session of another program. */
export function sourceLink(source, name) {
  const page = SOURCE_PAGES.find(([pattern]) => pattern.test(source));
  if (page) return h("a", { href: page[2](source) }, name || page[1]);
  return h("span", {}, "the outside session “", h("b", {}, source.replace(/^ext:/, "")), "”");
}

const withDots = (parts) => parts.filter(Boolean).map((part, index) => [index > 0 && " · ", part]);

/** Since when a fact is known, who says it, and what has become of it. A page of a day has said when and where. */
function factOrigin(fact, isAtHome) {
  const sources = [...new Set((fact.sources ?? []).map((one) => one.source))];
  return withDots([
    !isAtHome && fact.date && ["since ", fact.block_id ? h("a", { href: memoryDayHref(fact.date) }, memoryDate(fact.date)) : memoryDate(fact.date)],
    !isAtHome && sources.length > 0 && ["from ", sources.map((source, index) => [index > 0 && ", ", sourceLink(source)])],
    fact.origin === "person" && h("b", { class: "mem-mark" }, fact.corrects ? "you corrected this" : "you wrote this"),
    !isAtHome && fact.namespace && `in “${fact.namespace}”`,
    fact.state === "unconfirmed" && h("b", { class: "mem-mark warn" }, "waits for your yes"),
    fact.state === "corrected" && h("b", { class: "mem-mark" }, `corrected: until ${memoryDate(fact.on)}`),
  ]);
}

const correctionDraft = (factId) => draftOf(`correct ${factId}`);

const shortened = (text) => (text.length > 80 ? `${text.slice(0, 79)}…` : text);

/**
 * A fact with what can be done about it. `text` is the line that is made of it, if that says it in other words. `isCut`: the text may be shorter
 * than that of the fact. `isAtHome`: the page says when and where it was learned.
 */
export function factItem(ctx, fact, { text = fact.text, isCut = false, isAtHome = false, key = fact.fact_id } = {}) {
  const id = fact.fact_id;
  const isHistory = fact.state === "corrected";
  const isOpen = !isHistory && (ctx.state.correcting === id || correctionDraft(id).get() !== "");
  const open = () => {
    ctx.state.correcting = id;
    ctx.redraw();
  };
  return h(
    "li",
    { class: "mem-fact", key },
    h("div", { class: "mem-says" }, h("p", {}, isHistory ? h("s", {}, text) : text), text !== fact.text && h("small", {}, `The fact: “${fact.text}”`), h("small", {}, factOrigin(fact, isAtHome))),
    !isOpen &&
      h(
        "div",
        { class: "mem-acts" },
        fact.state === "unconfirmed" && button(ctx, "Confirm", { key: `confirm ${id}`, name: `Confirm: ${shortened(text)}`, act: () => confirmFact(ctx, fact) }),
        !isHistory && h("button", { class: "btn quiet", type: "button", "aria-label": `Correct: ${shortened(text)}`, onclick: open }, "Correct"),
        forgetPress(ctx, id, text),
      ),
    failureOf(ctx, `confirm ${id}`),
    isOpen && correctionForm(ctx, fact, isCut),
  );
}

async function confirmFact(ctx, fact) {
  await post(`/memory/facts/${fact.fact_id}/confirm`, {});
  flash("Confirmed. From now on your agents are told it.");
  ctx.state.searchAgain?.();
}

function correctionForm(ctx, fact, isCut) {
  const id = fact.fact_id;
  const key = `correct ${id}`;
  const draft = correctionDraft(id);
  const whole = isCut ? lazily(`fact ${id}`, () => get(`/memory/facts/${id}`)) : fact;
  if (!whole) return h("p", { class: "muted" }, whole === null ? "This fact was deleted meanwhile." : "Reading…");
  const size = textBytes((draft.get() || whole.text).trim());
  const close = () => {
    draft.set("");
    ctx.state.correcting = null;
    ctx.redraw();
  };
  const submit = (event) => {
    event.preventDefault();
    // A fact is one line.
    const text = event.target.elements.text.value.replace(/\s+/g, " ").trim();
    if (!text || text === whole.text) return ctx.say("Nothing is changed yet.");
    ctx.act(key, async () => {
      await post(`/memory/facts/${id}/correct`, { text });
      draft.set("");
      ctx.state.correcting = null;
      ctx.state.searchAgain?.();
      flash("Corrected. The old text stays as history only.");
    });
  };
  return h(
    "form",
    { class: "mem-correct", "aria-label": "Correct this fact", onsubmit: submit },
    h("p", { class: "muted" }, "Until now: ", h("q", {}, whole.text)),
    h(
      "label",
      { class: "field" },
      h("span", {}, "What is true?"),
      h("textarea", {
        name: "text",
        rows: "2",
        required: true,
        use: (node) => {
          node.value = draft.get() || whole.text;
          if (ctx.state.correcting === id) queueMicrotask(() => node.focus());
        },
        oninput: (event) => {
          draft.set(event.target.value);
          ctx.redraw();
        },
        onkeydown: (event) => {
          if (event.key === "Escape" && !event.isComposing) close();
        },
      }),
    ),
    size > MOST_FACT_BYTES && h("p", { class: "bad", role: "alert" }, `It has ${size} bytes. A fact has at most ${MOST_FACT_BYTES}.`),
    h("p", { class: "muted" }, "The old text is kept as history, with today’s date. No agent is told it as true any more."),
    failureOf(ctx, key),
    h("div", { class: "acts" }, press("Cancel", close, { kind: "quiet" }), h("div", { class: "end" }, h("button", { class: "btn primary", disabled: ctx.busy(key) }, "Correct this fact"))),
  );
}

/** Facts that were forgotten on this page: until the run is read again, it still has them. */
const forgottenFacts = new Set();

/** `more` says what else stays. With `isLine`, the text may be of several facts, so the fact itself is read first. */
function forgetPress(ctx, id, text, { more, isLine = false } = {}) {
  const read = async () => {
    try {
      askToForget(ctx, id, (await get(`/memory/facts/${id}`)).text, more);
    } catch (error) {
      if (error.status !== 404) return askToForget(ctx, id, text, more);
      forgottenFacts.add(id);
      flash("It was forgotten before.");
    }
  };
  return h("button", { class: "btn quiet", type: "button", "aria-label": `Forget: ${shortened(text)}`, onclick: isLine ? read : () => askToForget(ctx, id, text, more) }, "Forget…");
}

function askToForget(ctx, id, text, more) {
  confirmation(ctx, {
    title: "Forget this fact?",
    key: `forget ${id}`,
    label: "Forget it for good",
    text: [
      h("q", {}, text),
      h("br"),
      "It disappears from its day, from the long-term memory and all its earlier versions, from the summaries of weeks, and from the search. What it has corrected goes with it. It is not learned again. The messages that it comes from stay in their conversation, and the search of the memory does not find them any more. ",
      more && `${more} `,
      h("b", {}, "This cannot be undone."),
    ],
    act: async () => {
      await del(`/memory/facts/${id}`).catch((error) => {
        // Somebody has forgotten it before.
        if (error.status !== 404) throw error;
      });
      forgottenFacts.add(id);
      correctionDraft(id).set("");
      flash("Forgotten.");
      ctx.state.searchAgain?.();
    },
  });
}

/** A line of the long-term memory or of a week, with the facts that it comes from. */
export function memoryLine(ctx, line) {
  const key = line.facts.map((fact) => fact.fact_id).join(" ") || line.text;
  if (line.facts.length === 1) return factItem(ctx, line.facts[0], { text: line.text, key });
  return h(
    "li",
    { class: "mem-fact", key },
    h("div", { class: "mem-says" }, h("p", {}, line.text), line.facts.length > 0 && h("details", {}, h("summary", {}, `From ${counted(line.facts.length, "fact")}`), h("ul", {}, line.facts.map((fact) => factItem(ctx, fact))))),
  );
}

export const factList = (label, items) => h("ul", { class: "mem-facts", "aria-label": label }, items);

// ---- What a run was told ----

const RECALLED_KINDS = { card: "a card about work", memory: "a fact", raw: "a message" };

/** What a run or a turn was told of the memory before it began: a line that opens the list. */
export function knewView(ctx, recalled) {
  if (!recalled?.length) return null;
  return h("details", { class: "step", key: "knew" }, h("summary", {}, `What it knew (${recalled.length})`), recalledList(ctx, recalled));
}

const recalledList = (ctx, recalled) => [
  h("p", { class: "muted" }, "It was told this of the memory when it began."),
  h("ul", { class: "mem-facts", "aria-label": "What it knew" }, recalled.map((one, index) => recalledItem(ctx, one, index))),
  h("p", {}, h("a", { href: "#/memory" }, "All that is known")),
];

/** The same below an older reply. Its run is read when the line is opened. */
export function knewLater(ctx, runId) {
  const read = (ctx.state.knew ??= new Map());
  const known = read.get(runId);
  const ontoggle = (event) => {
    if (!event.target.open || known?.recalled) return;
    get(`/runs/${runId}`, ctx.signal)
      .then(({ recalled = [] }) => read.set(runId, { recalled }), (error) => read.set(runId, { why: error.status === 404 ? "The record of this run is no longer kept." : error.message }))
      .finally(ctx.redraw);
  };
  return h(
    "details",
    { class: "step", key: "knew", ontoggle },
    h("summary", {}, known?.recalled ? `What it knew (${known.recalled.length})` : "What it knew"),
    known?.recalled?.length > 0 ? recalledList(ctx, known.recalled) : h("p", { class: "muted", role: "status" }, known ? known.why ?? "It was told nothing of the memory." : "Reading…"),
  );
}

function recalledItem(ctx, one, index) {
  const isFact = one.kind === "memory";
  return h(
    "li",
    { class: "mem-fact", key: `${index} ${one.ref}` },
    h(
      "div",
      { class: "mem-says" },
      h("p", { class: "long" }, one.text),
      h("small", {}, withDots([
        RECALLED_KINDS[one.kind] ?? one.kind,
        one.source && ["from ", sourceLink(one.source)],
        one.date && h("a", { href: memoryDayHref(one.date) }, memoryDate(one.date)),
        one.until && `true until ${memoryDate(one.until)}`,
      ])),
    ),
    isFact && h("div", { class: "mem-acts" }, forgottenFacts.has(one.ref) ? h("span", { class: "muted" }, "forgotten") : forgetPress(ctx, one.ref, one.text, { isLine: true, more: "The record of this run does not show it any more." })),
  );
}
