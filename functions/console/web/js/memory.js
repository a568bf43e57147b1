// The memory: what it knows, the search, days and weeks, the weekly clean-up, and the long-term memory by hand.

import { get, post, put } from "./api.js";
import { flash, lazily } from "./app.js";
import { changedIn, clashView, editOf, endEdit, freshen, hasClash, hasEdit, sendEdit, setIn } from "./conflict-view.js";
import { counted, figure, listed, money, moment } from "./format.js";
import { MEMORY_MS, archiveYear, memoryArchiveSection, memoryDaysSection, openMemoryDay } from "./memory-days.js";
import { factItem, factList, memoryDate, memoryLine, textBytes } from "./memory-facts.js";
import { foundView, isSearching, searchForm, searchOf } from "./memory-search.js";
import { button, confirmation, empty, failureOf, head, link, press, section } from "./parts.js";
import { stoppedNote } from "./stop.js";
import { h } from "./view.js";

const MOST_LINES = 80;
const MOST_BYTES = 5000;
const BY_HAND_KEY = "memory by hand";

export const memoryPage = {
  nav: "memory",
  title: () => "Memory",
  every: () => MEMORY_MS,
  reads: (ctx) => ({
    longTerm: "/memory/long-term",
    days: "/memory/days",
    tidies: "/memory/tidies?limit=10",
    archive: `/memory/archive/${archiveYear(ctx)}`,
  }),
  view(ctx) {
    const { longTerm } = ctx.data;
    const search = searchOf(ctx);
    const lines = longTerm.sections.reduce((sum, one) => sum + one.lines.length, 0);
    return h(
      "div",
      { key: "memory", class: "mem" },
      head("Memory", lines > 0 ? `${counted(lines, "line")} that your agents are told` : "what your agents know about you"),
      searchForm(ctx, search),
      h(
        "div",
        { class: "cols" },
        h("div", {}, isSearching(search) ? foundView(ctx, search) : [waitingFacts(ctx), knownView(ctx)]),
        h("div", {}, memoryDaysSection(ctx), tidiesSection(ctx), memoryArchiveSection(ctx), h("div", { class: "mem-open" }, openMemoryDay(ctx))),
      ),
    );
  },
};

// ---- What it knows ----

/** Of how many days the facts that wait are looked for. */
const DAYS_LOOKED_AT = 7;

/** What other programs have taught in the last days, and nobody has confirmed. */
function waitingFacts(ctx) {
  const days = ctx.data.days.data.slice(0, DAYS_LOOKED_AT).map(({ date }) => lazily(`memory day ${date}`, () => get(`/memory/days/${date}`)));
  const waiting = days.flatMap((day) => day?.blocks ?? []).flatMap((block) => block.facts.filter((fact) => fact.state === "unconfirmed"));
  if (waiting.length === 0) return null;
  return section("Waits for your yes", { note: waiting.length }, h("p", { class: "mem-under muted" }, "Sessions of other programs have taught this. Until you confirm it, only the search finds it."), factList("Facts that wait for your yes", waiting.map((fact) => factItem(ctx, fact))));
}

const isEditing = (ctx) => (ctx.state.isEditing ??= hasEdit(BY_HAND_KEY));

function showByHand(ctx, isOn) {
  ctx.state.isEditing = isOn;
  ctx.state.justOpened = isOn;
  ctx.redraw();
}

const sizeText = (lines, bytes) => `${figure(lines)} of ${figure(MOST_LINES)} lines · ${figure(bytes)} of ${figure(MOST_BYTES)} bytes`;

const memoryLines = (markdown) => (markdown === "" ? 0 : markdown.replace(/\n$/, "").split("\n").length);

function knownView(ctx) {
  const { longTerm, days } = ctx.data;
  const { sections, markdown } = longTerm;
  if (isEditing(ctx)) return byHandForm(ctx, longTerm);
  const isNothing = sections.every((one) => one.lines.length === 0);
  const isNew = isNothing && days.data.length === 0;
  return section(
    "What it knows",
    { note: isNothing ? null : sizeText(memoryLines(markdown), textBytes(markdown)), end: !isNothing && press("Edit by hand", () => showByHand(ctx, true), { kind: "link", key: "edit" }) },
    isNothing &&
      (isNew
        ? empty("Nothing is remembered yet. Talk to an agent; at 23:00 the day is read.", link("Talk to an agent", "#/agents", { kind: "" }), press("Write something yourself", () => showByHand(ctx, true), { kind: "quiet" }))
        : empty("Nothing is in the long-term memory yet. Each Sunday at 22:00 the week is tidied into it.", press("Write something yourself", () => showByHand(ctx, true)))),
    sections.map((one) =>
      h(
        "div",
        { class: one.by_hand ? "mem-group by-hand" : "mem-group", key: `section ${one.title}` },
        h("h3", {}, one.title || "Without a heading", one.by_hand && h("span", { class: "mem-mark" }, " yours: no clean-up changes it")),
        factList(one.title || "Without a heading", one.lines.map((line) => memoryLine(ctx, line))),
      ),
    ),
  );
}

// ---- By hand ----

function byHandForm(ctx, longTerm) {
  const fields = { markdown: longTerm.markdown };
  ctx.state.byHand ??= editOf(BY_HAND_KEY, fields, longTerm.version);
  const form = ctx.state.byHand;
  freshen(form, fields, longTerm.version);
  const { markdown } = form.mine;
  const [lines, bytes] = [memoryLines(markdown), textBytes(markdown)];
  const isOver = lines > MOST_LINES || bytes > MOST_BYTES;
  const close = () => {
    ctx.state.byHand = null;
    showByHand(ctx, false);
  };
  const giveUp = () => {
    const drop = () => {
      endEdit(form);
      close();
    };
    if (changedIn(form).length === 0) return drop();
    confirmation(ctx, { title: "Give up your changes?", text: "What you have changed in this text is lost. The memory stays as it is.", label: "Give up", key: "give up", act: drop });
  };
  const submit = async () => {
    const saved = await sendEdit(form, (version) => put("/memory/long-term", { markdown: form.mine.markdown }, { ifMatch: version }));
    if (!saved) return;
    endEdit(form);
    close();
    flash("Saved. New lines are facts that you wrote.");
  };
  const byHand = longTerm.sections.filter((one) => one.by_hand).map((one) => one.title || "without a heading");
  return section(
    "Edit by hand",
    { end: h("span", { class: isOver ? "bad" : "muted" }, sizeText(lines, bytes)) },
    clashView(ctx, form, { markdown: "The long-term memory" }),
    h(
      "div",
      { class: "form mem-hand" },
      h(
        "label",
        { class: "field" },
        h("span", {}, "The long-term memory as Markdown"),
        h("textarea", {
          class: "text-edit",
          rows: "16",
          spellcheck: "true",
          value: markdown,
          placeholder: "## About me\n- I like tea",
          use: (node) => ctx.state.justOpened && queueMicrotask(() => node.focus()),
          oninput: (event) => {
            setIn(form, "markdown", event.target.value);
            ctx.redraw();
          },
        }),
      ),
      h("p", { class: "muted" }, "A heading begins with ", h("code", {}, "## "), ", a line with ", h("code", {}, "- "), ". A section in which you change a line is yours from then on: no clean-up changes it.", byHand.length > 0 && ` Yours now: ${listed(byHand)}.`),
      isOver && h("p", { class: "bad", role: "alert" }, `It is too long: at most ${MOST_LINES} lines and ${figure(MOST_BYTES)} bytes, with headings and empty lines.`),
      failureOf(ctx, "save memory"),
      h("div", { class: "acts" }, press("Cancel", giveUp, { kind: "quiet" }), h("div", { class: "end" }, button(ctx, "Save the memory", { key: "save memory", kind: "primary", disabled: isOver || hasClash(form), act: submit }))),
    ),
  );
}

// ---- Clean-up ----

function tidiesSection(ctx) {
  const { data } = ctx.data.tidies;
  const tidyNow = async () => {
    const tidied = await post("/memory/tidy", {});
    flash(tidied ? "Tidied." : "There was nothing to tidy.");
  };
  return section(
    "Weekly clean-up",
    {},
    data.length === 0 && h("p", { class: "muted pad" }, "Nothing was tidied yet. Each Sunday at 22:00 a model takes what the week has taught into the long-term memory."),
    h("div", { class: "acts" }, button(ctx, "Clean up now", { key: "tidy memory", starts: true, act: tidyNow })),
    stoppedNote(ctx, "nothing is tidied"),
    failureOf(ctx, "tidy memory"),
    data.length > 0 && h("ol", { class: "mem-tidies", "aria-label": "Clean-ups, newest first" }, data.map((tidied, index) => tidyItem(ctx, tidied, index))),
  );
}

function tidyItem(ctx, tidied, index) {
  const { diff } = tidied;
  const [added, removed] = ["added", "removed"].map((kind) => (diff ?? []).filter((one) => one.kind === kind).length);
  const notes = [
    diff && (diff.length === 0 ? "no line changed" : [added > 0 && `${counted(added, "line")} added`, removed > 0 && `${counted(removed, "line")} removed`].filter(Boolean).join(", ")),
    `${counted(tidied.blocks, "conversation")} archived`,
    tidied.rejected > 0 && `${counted(tidied.rejected, "line")} not accepted, or left out for space`,
    tidied.cost_micros > 0 && money(tidied.cost_micros),
  ];
  return h(
    "li",
    { key: tidied.tidy_id },
    h("h3", {}, h("a", { href: `#/memory/weeks/${encodeURIComponent(tidied.monday)}` }, `The week of ${memoryDate(tidied.monday)}`), h("span", { class: "muted" }, ` ${moment(tidied.at)}`)),
    h("p", { class: "muted" }, notes.filter(Boolean).join(" · ")),
    tidied.rolled_back_at && h("p", {}, h("b", { class: "mem-mark" }, `undone ${moment(tidied.rolled_back_at)}`)),
    diff ? diff.length > 0 && h("details", { use: (node) => { node.open = index === 0 && !tidied.rolled_back_at; } }, h("summary", {}, "What it changed"), tidyDiff(diff)) : h("p", { class: "muted" }, "The version before it is no longer kept, so it cannot be undone."),
    !tidied.rolled_back_at && diff && h("div", { class: "acts" }, h("button", { class: "btn quiet", type: "button", "aria-label": `Undo the clean-up of ${moment(tidied.at)}`, onclick: () => askToUndo(ctx, tidied) }, "Undo…")),
  );
}

/** Lines by their sections. Those of a section follow each other. */
function tidyDiff(diff) {
  return h(
    "ul",
    { class: "diff", "aria-label": "Lines that were added and removed" },
    diff.map((one, index) => [
      (index === 0 || diff[index - 1].section !== one.section) && h("li", { class: "mem-at" }, h("span", {}), h("span", {}, one.section || "Without a heading")),
      h("li", { class: one.kind === "added" ? "add" : "del" }, h("span", { class: "sign", "aria-hidden": "true" }, one.kind === "added" ? "+" : "−"), h("span", { class: "vh" }, `${one.kind}: `), h("span", { class: "line" }, one.text)),
    ]),
  );
}

const UNDO_REFUSED = {
  already_rolled_back: () => "It was undone already.",
  version_gone: () => "The version before it is no longer kept, so it cannot be undone.",
  later_tidying: (ctx, tidied) => {
    const { data } = ctx.data.tidies;
    // Newest first: the nearest later one that still counts.
    const later = data.slice(0, data.findIndex((one) => one.tidy_id === tidied.tidy_id)).findLast((one) => !one.rolled_back_at);
    return `A later clean-up was made on top of this one. Undo that one first${later ? `: ${moment(later.at)}` : ""}.`;
  },
};

function askToUndo(ctx, tidied) {
  confirmation(ctx, {
    title: "Undo this clean-up?",
    key: `undo ${tidied.tidy_id}`,
    label: "Undo the clean-up",
    text: "The long-term memory becomes what it was before it. What you have forgotten or corrected since stays forgotten and corrected; what you have written by hand since is lost. The summary of the week goes, and its days leave the archive, so that the next clean-up reads them again.",
    act: async () => {
      await post(`/memory/tidies/${tidied.tidy_id}/rollback`, {}).catch((error) => {
        if (UNDO_REFUSED[error.code]) error.message = UNDO_REFUSED[error.code](ctx, tidied);
        throw error;
      });
      flash("Undone.");
    },
  });
}
