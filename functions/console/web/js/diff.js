// Differences of two texts: by lines (Myers), and by words within lines that were replaced.

import { h } from "./view.js";

/** Above this many parts on one side, texts are shown as replaced as a whole: the search is quadratic in the differences. */
const MOST_PARTS = 4000;
const MOST_EDITS = 1500;

/** The shortest edit from `a` to `b`, as `[kind, part]` with the kinds `same`, `del` and `add`. */
export function edits(a, b) {
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start++;
  let end = 0;
  while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end++;
  const middle = shortest(a.slice(start, a.length - end), b.slice(start, b.length - end));
  const same = (parts) => parts.map((part) => ["same", part]);
  return [...same(a.slice(0, start)), ...middle, ...same(a.slice(a.length - end))];
}

function shortest(a, b) {
  const replaced = () => [...a.map((part) => ["del", part]), ...b.map((part) => ["add", part])];
  if (a.length === 0 || b.length === 0 || a.length > MOST_PARTS || b.length > MOST_PARTS) return replaced();
  const trace = [];
  let reach = new Map([[1, 0]]);
  for (let edits = 0; edits <= Math.min(a.length + b.length, MOST_EDITS); edits++) {
    const next = new Map();
    for (let k = -edits; k <= edits; k += 2) {
      const down = k === -edits || (k !== edits && (reach.get(k - 1) ?? -1) < (reach.get(k + 1) ?? -1));
      let x = down ? (reach.get(k + 1) ?? 0) : (reach.get(k - 1) ?? 0) + 1;
      let y = x - k;
      while (x < a.length && y < b.length && a[x] === b[y]) {
        x++;
        y++;
      }
      next.set(k, x);
      if (x >= a.length && y >= b.length) return walkBack(a, b, trace, reach, edits);
    }
    trace.push(reach);
    reach = next;
  }
  return replaced();
}

function walkBack(a, b, trace, last, count) {
  const path = [];
  let x = a.length;
  let y = b.length;
  for (let edits = count; edits >= 0; edits--) {
    const reach = edits === count ? last : trace[edits];
    const k = x - y;
    const down = k === -edits || (k !== edits && (reach.get(k - 1) ?? -1) < (reach.get(k + 1) ?? -1));
    const before = down ? k + 1 : k - 1;
    const fromX = reach.get(before) ?? 0;
    // Equal parts follow the one step of this round.
    const begin = edits === 0 ? 0 : down ? fromX : fromX + 1;
    while (x > begin) {
      path.push(["same", a[--x]]);
      y--;
    }
    if (edits === 0) break;
    if (down) path.push(["add", b[--y]]);
    else path.push(["del", a[--x]]);
  }
  return path.reverse();
}

const lines = (text) => (text === "" ? [] : text.split("\n"));
const words = (text) => text.match(/\s+|[\p{L}\p{N}_]+|[^\s\p{L}\p{N}_]/gu) ?? [];

/** Both texts as one list of lines with their marks. Long runs of equal lines are folded; `context` of them stay. */
export function diffView(before, after, { context = 3 } = {}) {
  const all = edits(lines(before), lines(after));
  const rows = [];
  for (let at = 0; at < all.length; ) {
    const [kind] = all[at];
    let end = at;
    while (end < all.length && all[end][0] === kind) end++;
    if (kind === "same") {
      const isFirst = at === 0;
      const isLast = end === all.length;
      const texts = all.slice(at, end).map(([, text]) => text);
      const keepStart = isFirst ? 0 : context;
      const keepEnd = isLast ? 0 : context;
      if (texts.length > keepStart + keepEnd + 1) {
        for (const text of texts.slice(0, keepStart)) rows.push(diffRow("same", text));
        rows.push(h("li", { class: "fold" }, `${texts.length - keepStart - keepEnd} equal lines`));
        for (const text of texts.slice(texts.length - keepEnd)) rows.push(diffRow("same", text));
      } else for (const text of texts) rows.push(diffRow("same", text));
      at = end;
      continue;
    }
    // What was removed and what came in its place, up to the next equal line.
    let stop = at;
    while (stop < all.length && all[stop][0] !== "same") stop++;
    const removed = all.slice(at, stop).filter(([one]) => one === "del").map(([, text]) => text);
    const added = all.slice(at, stop).filter(([one]) => one === "add").map(([, text]) => text);
    const pairs = Math.min(removed.length, added.length);
    const within = removed.slice(0, pairs).map((text, index) => edits(words(text), words(added[index])));
    removed.forEach((text, index) => rows.push(diffRow("del", index < pairs ? marked(within[index], "del") : text)));
    added.forEach((text, index) => rows.push(diffRow("add", index < pairs ? marked(within[index], "add") : text)));
    at = stop;
  }
  return h("ul", { class: "diff", "aria-label": "What differs" }, rows);
}

const SIGNS = { del: ["−", "removed: "], add: ["+", "added: "], same: ["", ""] };

function diffRow(kind, content) {
  const [sign, word] = SIGNS[kind];
  return h("li", { class: kind }, h("span", { class: "sign", "aria-hidden": "true" }, sign), word && h("span", { class: "vh" }, word), h("span", { class: "line" }, content));
}

function marked(parts, kind) {
  return parts.filter(([one]) => one === "same" || one === kind).map(([one, text]) => (one === "same" ? text : h(kind === "add" ? "ins" : "del", {}, text)));
}
