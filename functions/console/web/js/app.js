// Runs the pages: finds the page of an address, reads what it needs, keeps that fresh, and draws.
//
// A page is an object:
//   title(ctx)   the name of the page, in words
//   reads(ctx)   what it shows: names of data, each with a path of the API or a function that reads it, or `optional(path)`
//   view(ctx)    describes the page from `ctx.data`; it is called when all reads have answered once
//   every(ctx)   milliseconds until it reads again; 3,000 while something runs, else 30,000, or 0 for never
//   enter(ctx), leave(ctx)   optional

import { Problem, forgetUnanswered, get, onConnection, orNull } from "./api.js";
import { isIn, onCredential } from "./credentials.js";
import { holdFocus, watchFocus } from "./focus.js";
import { draw, visible } from "./view.js";

export const RESTING_MS = 30_000;
export const LIVE_MS = 3_000;
const SKELETON_MS = 200;
const MOST_CACHED = 200;

/** A read that may answer 404: then the data is null. */
export const optional = (path) => ({ optional: path });

const cache = new Map();
let routes = [];
let surroundings = null;
let current = null;
let timer = null;
let drawing = false;
let online = true;

/** Shows the page of the address, and every later one. `pages` is a list of `[pattern, page]`. */
export function run(pages, frameOf) {
  routes = pages.map(([pattern, page]) => ({ parts: pattern.split("/").filter(Boolean), page }));
  surroundings = frameOf;
  addEventListener("hashchange", (event) => {
    if (event.newURL === arrived) arrived = null;
    else navigate();
  });
  document.addEventListener("visibilitychange", () => (document.hidden ? clearTimeout(timer) : refresh()));
  watchFocus();
  // A handler knows what was true at the last drawing. If a key or a click comes before the next frame, that is drawn first. Not so with
  // `input` and `change`: what was typed is in the field only, and the drawing would replace it. They are drawn as soon as they are handled,
  // so that what is typed next goes into the field that is there then: another kind of channel has other fields.
  for (const type of ["keydown", "click", "submit"]) addEventListener(type, drawNow, { capture: true });
  for (const type of ["input", "change"]) addEventListener(type, drawNow);
  // A browser follows a link some time after the click. What is pressed in between would still act on the old address.
  addEventListener("click", (event) => {
    const isPlain = event.button === 0 && !(event.ctrlKey || event.metaKey || event.shiftKey || event.altKey);
    const href = isPlain && !event.defaultPrevented && event.target.closest?.("a:not([target], [download])")?.getAttribute("href");
    if (!href || !href.startsWith("#/")) return;
    event.preventDefault();
    go(href);
  });
  onConnection((works) => {
    online = works;
    if (works) refresh();
    redraw();
  });
  onCredential((isIn) => {
    cache.clear();
    lazyReads.clear();
    if (isIn) refresh();
    else redraw();
  });
  addEventListener("online", () => refresh());
  navigate();
}

function addressed() {
  const [path, search = ""] = location.hash.replace(/^#/, "").split("?");
  const parts = path.split("/").filter(Boolean).map(decoded);
  const query = Object.fromEntries(new URLSearchParams(search));
  for (const route of routes) {
    const params = matched(route.parts, parts);
    if (params) return { page: route.page, params, query };
  }
  return { page: routes.at(-1).page, params: {}, query };
}

function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

function matched(pattern, parts) {
  const rest = pattern.at(-1)?.startsWith("*");
  if (rest ? parts.length < pattern.length : parts.length !== pattern.length) return null;
  const params = {};
  for (const [index, name] of pattern.entries()) {
    if (name.startsWith("*")) params[name.slice(1)] = parts.slice(index).join("/");
    else if (name.startsWith(":")) params[name.slice(1)] = parts[index];
    else if (name !== parts[index]) return null;
  }
  return params;
}

function navigate() {
  const next = addressed();
  const same = current && current.page === next.page && JSON.stringify(current.ctx.params) === JSON.stringify(next.params);
  if (same) {
    // Only the query has changed: the page stays as it is.
    current.ctx.query = next.query;
    refresh();
    return redraw();
  }
  if (current) {
    current.abort.abort();
    current.page.leave?.(current.ctx);
    forgetUnanswered();
  }
  const abort = new AbortController();
  current = { page: next.page, abort, slow: false, ctx: null, busy: new Set(), failures: new Map() };
  current.ctx = contextOf(current, next);
  const mine = current;
  setTimeout(() => {
    mine.slow = true;
    if (mine === current) redraw();
  }, SKELETON_MS);
  current.page.enter?.(current.ctx);
  scrollTo(0, 0);
  document.querySelector("#main")?.focus({ preventScroll: true });
  refresh();
  redraw();
}

function contextOf(mine, { params, query }) {
  const ctx = {
    params,
    query,
    /** What the page keeps while it is shown. */
    state: {},
    signal: mine.abort.signal,
    get data() {
      return dataOf(mine.page.reads?.(ctx) ?? {});
    },
    /** What the frame knows: `account`, `agents`, `inbox`; each may be undefined at first. */
    get shared() {
      return dataOf(surroundings.reads());
    },
    get isOnline() {
      return online;
    },
    redraw,
    refresh,
    go,
    say,
    /**
     * Does something once at a time. While it goes on, `busy(key)` is true. If it fails, `failure(key)` is the error. Afterwards everything
     * is read again.
     */
    async act(key, work) {
      if (mine.busy.has(key)) return undefined;
      mine.busy.add(key);
      mine.failures.delete(key);
      redraw();
      try {
        const result = await work();
        forgetUnanswered();
        for (const entry of lazyReads.values()) if (entry.fresh <= RESTING_MS) entry.at = 0;
        await refresh();
        return result;
      } catch (error) {
        if (!mine.abort.signal.aborted) {
          mine.failures.set(key, error);
          say(error.message);
        }
        // A conflict means that what is shown is old.
        if (error instanceof Problem && error.status === 409) await refresh();
        return undefined;
      } finally {
        mine.busy.delete(key);
        redraw();
      }
    },
    busy: (key) => mine.busy.has(key),
    failure: (key) => mine.failures.get(key) ?? null,
    forgive(key) {
      mine.failures.delete(key);
      forgetUnanswered();
      redraw();
    },
    /** Shows a dialog: `view()` describes it. It is there at once, so that the next key goes to it and none is lost. */
    open(view) {
      mine.dialog = view;
      if (mine === current) render();
    },
    close() {
      mine.dialog = null;
      redraw();
    },
  };
  return ctx;
}

/** The context of the page that is shown. */
export const contextNow = () => current?.ctx ?? null;

/** The address that `go` has shown, while its event is still to come. */
let arrived = null;

/** Goes to another page, at once. */
export function go(hash) {
  const before = location.href;
  location.hash = hash;
  if (location.href === before) return;
  arrived = location.href;
  navigate();
}

function readOf(source) {
  if (typeof source === "string") return { key: source, read: (signal) => get(source, signal) };
  if (source.optional) {
    return { key: source.optional, read: (signal) => get(source.optional, signal).catch(orNull) };
  }
  return source;
}

/** A read that is more than one request; `key` names it. */
export const reading = (key, read) => ({ key, read });

function dataOf(reads) {
  const data = {};
  for (const [name, source] of Object.entries(reads)) data[name] = cache.get(readOf(source).key)?.data;
  return data;
}

/** What was read under a path before, or undefined. */
export const cached = (path) => cache.get(path)?.data;

/** Puts a fresher answer in the place of what was read. */
export function keep(path, data) {
  cache.set(path, { data, at: Date.now() });
  redraw();
}

/** How many reads were begun. Each entry of the cache has the number of its read. */
let readsBegun = 0;

/**
 * Reads what `reads()` names, each path once. Some reads depend on what others have answered; they begin as soon as those are there.
 */
async function readAll(reads, signal) {
  const begun = new Map();
  const begin = () => {
    if (signal.aborted) return;
    for (const source of reads()) {
      const { key, read } = readOf(source);
      if (!begun.has(key)) begun.set(key, readOne(key, read, signal).then(begin));
    }
  };
  begin();
  for (let waited = 0; waited < begun.size; ) {
    waited = begun.size;
    await Promise.all(begun.values());
  }
}

async function readOne(key, read, signal) {
  const number = ++readsBegun;
  let entry;
  try {
    entry = { data: await read(signal), at: Date.now(), number };
  } catch (error) {
    if (signal.aborted) return;
    const before = cache.get(key);
    entry = { data: before?.data, at: before?.at, error, number };
  }
  // An answer that comes late does not replace that of a later read.
  if (number < cache.get(key)?.number) return;
  cache.delete(key);
  cache.set(key, entry);
  if (cache.size > MOST_CACHED) cache.delete(cache.keys().next().value);
}

/** What parts of pages have read by themselves, by a key. */
const lazyReads = new Map();

/**
 * What a part of a page reads when it is shown, because lists leave it out: the answer, or undefined until it is there. It is read again after
 * `fresh` milliseconds, and after each act. If it cannot be read, what was read before stays.
 */
export function lazily(key, read, fresh = RESTING_MS) {
  const known = lazyReads.get(key);
  if (known && (known.isAsked || Date.now() - known.at < fresh)) return known.data;
  const entry = { data: known?.data, at: Date.now(), isAsked: true, fresh };
  lazyReads.delete(key);
  lazyReads.set(key, entry);
  if (lazyReads.size > MOST_CACHED) lazyReads.delete(lazyReads.keys().next().value);
  read()
    .then(
      (data) => (entry.data = data),
      (error) => {
        if (error instanceof Problem && error.status === 404) entry.data = null;
      },
    )
    .finally(() => {
      entry.isAsked = false;
      redraw();
    });
  return entry.data;
}

let refreshing = null;

/** Whether all of these were read without an error a short time ago. */
function areFresh(reads, now = Date.now()) {
  return Object.values(reads).every((source) => {
    const entry = cache.get(readOf(source).key);
    return entry && !entry.error && now - entry.at < RESTING_MS - 1000;
  });
}

/**
 * Reads everything again that the page and the frame show. With `live`, the frame only if it is old: a page that shows something running reads
 * often, and the platform limits the requests of a minute.
 */
export function refresh({ live = false } = {}) {
  clearTimeout(timer);
  if (!isIn()) return Promise.resolve();
  const mine = current;
  const work = (async () => {
    const skipsFrame = live && areFresh(surroundings.reads());
    await readAll(() => [...Object.values(mine.page.reads?.(mine.ctx) ?? {}), ...(skipsFrame ? [] : Object.values(surroundings.reads()))], mine.abort.signal);
    if (mine !== current || refreshing !== work) return;
    redraw();
    const ms = mine.page.every?.(mine.ctx) ?? RESTING_MS;
    clearTimeout(timer);
    if (ms > 0 && !document.hidden) timer = setTimeout(() => refresh({ live: true }), ms);
  })();
  refreshing = work;
  return work;
}

/** Draws again with the next frame of the browser. */
export function redraw() {
  if (drawing) return;
  drawing = true;
  requestAnimationFrame(drawNow);
}

function drawNow() {
  // A key or a click may have drawn it before its frame came.
  if (!drawing) return;
  drawing = false;
  render();
}

function render() {
  const { page, ctx } = current;
  const reads = Object.values(page.reads?.(ctx) ?? {}).map((source) => cache.get(readOf(source).key));
  const failed = reads.find((entry) => entry?.error);
  const complete = reads.every((entry) => entry && (entry.data !== undefined));
  // What all pages are described with, such as the time zone, comes first.
  surroundings.prepare(ctx);
  let content;
  let title = "";
  if (!isIn()) {
    content = surroundings.entrance(ctx);
    title = "Sign in";
  } else if (complete) {
    title = page.title(ctx);
    content = page.view(ctx);
    current.shown = { title, content };
  } else if (failed) {
    title = "Error";
    content = surroundings.failed(ctx, failed.error);
  } else if (current.shown) {
    // Something new must be read, for example about a run that has begun. Until then the page stays as it is.
    ({ title, content } = current.shown);
  } else {
    title = "…";
    content = current.slow ? surroundings.skeleton(ctx) : null;
  }
  document.title = title ? `${visible(title)} · Lamplighter` : "Lamplighter";
  const stale = complete && failed ? failed.error : null;
  const restore = holdFocus();
  draw(document.querySelector("#app"), surroundings.view(ctx, { content, title, page, stale, dialog: current.dialog }));
  restore();
}

const FLASH_MS = 8_000;
const FLASH_WAY_MS = 20_000;
let flashed = null;

/**
 * What was just done, in a sentence, for a few seconds. It is shown and announced. `way`: a label, and what its button does while the sentence
 * is shown. Then it is shown for longer.
 */
export function flash(text, way) {
  const mine = { text, way };
  flashed = mine;
  redraw();
  const end = () => {
    if (flashed !== mine) return;
    flashed = null;
    redraw();
  };
  mine.end = end;
  setTimeout(end, way ? FLASH_WAY_MS : FLASH_MS);
}

export const flashedNow = () => flashed;

/** Tells people who do not see the page what has happened. */
export function say(text) {
  const region = document.querySelector("#said");
  region.textContent = "";
  // The same text again is announced again.
  setTimeout(() => (region.textContent = visible(text)), 50);
}
