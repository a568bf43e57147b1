// What stands around every page: the rail, the bar of a phone, banners, the palette, and the one button that stops everything.

import { get, getText, post } from "./api.js";
import { flash, flashedText, optional } from "./app.js";
import { access, signOut } from "./credentials.js";
import { entrancePage } from "./entrance.js";
import { showTimesIn } from "./format.js";
import { dialog, failureText, press, problem } from "./parts.js";
import { askToStop, stoppedBanner } from "./stop.js";
import { h, icon } from "./view.js";

const PLACES = [
  { name: "Today", href: "#/", icon: "today", nav: "today" },
  { name: "Agents", href: "#/agents", icon: "agents", nav: "agents" },
  { name: "Assets", href: "#/assets", icon: "assets", nav: "assets" },
  { name: "Memory", href: "#/memory", icon: "memory", nav: "memory" },
  { name: "Practice", href: "#/practices", icon: "practice", nav: "practice" },
  { name: "Watch", href: "#/watch", icon: "watch", nav: "watch" },
];
/** Places for people who write code, in a group of their own. */
const CODE_PLACES = [
  { name: "Themes", href: "#/themes", icon: "themes", nav: "themes" },
  { name: "Context and logs", href: "#/context", icon: "context", nav: "context" },
  { name: "API reference", href: "#/reference", icon: "code", nav: "reference" },
];
const ACCOUNT = { name: "Account", href: "#/account", icon: "account", nav: "account" };
/** The places that a phone shows in its bar; the rest is behind "More". */
const IN_BAR = ["today", "agents", "assets"];
const MOST_IN_RAIL = 12;

/** The places of the console, without those that are not built. */
let places = PLACES;
let codePlaces = CODE_PLACES;

/** Leaves out the places that have no page. */
export function offer(navs) {
  places = PLACES.filter((place) => navs.has(place.nav));
  codePlaces = CODE_PLACES.filter((place) => navs.has(place.nav));
}

export const frame = { reads, prepare, view, failed, skeleton, entrance: (ctx) => entrancePage(ctx) };

function reads() {
  return { account: "/account", agents: "/agents?limit=100&status=active", inbox: optional("/inbox") };
}

const waiting = (ctx) => ctx.shared.inbox?.data.length ?? 0;

/** What must be known before a page describes itself. */
function prepare(ctx) {
  const { account } = ctx.shared;
  if (account?.timezone) showTimesIn(account.timezone);
}

function view(ctx, { content, page, stale, dialog: opened }) {
  return [page.bare && content ? content : framed(ctx, page, content, stale), opened?.()];
}

function framed(ctx, page, content, stale) {
  return h(
    "div",
    { class: "app", key: "app" },
    h("a", { class: "to-main", href: "#main", onclick: toMain }, "To the page"),
    rail(ctx, page),
    h(
      "main",
      { id: "main", tabindex: "-1", "aria-busy": content ? null : "true" },
      banners(ctx, stale),
      content,
    ),
    bar(ctx, page),
  );
}

function toMain(event) {
  event.preventDefault();
  document.querySelector("#main").focus();
}

/** The banners that also pages without the rail show. */
export function banners(ctx, stale) {
  const { account } = ctx.shared;
  return [
    account?.stopped_at && stoppedBanner(ctx, account),
    h("div", { class: flashedText() ? "flash" : "flash none", role: "status", key: "flash" }, flashedText()),
    !ctx.isOnline && h("div", { class: "banner offline", role: "status", key: "offline" }, icon("offline"), h("p", {}, "No connection. You can go on writing: it is kept here."), press("Try now", () => ctx.refresh())),
    newVersion && h("div", { class: "banner", role: "status", key: "version" }, h("p", {}, "A new version of this page is there."), press("Load it", () => location.reload())),
    stale && ctx.isOnline && h("div", { class: "banner stale", role: "status", key: "stale" }, h("p", {}, `This may be old: ${stale.message}`), press("Retry", () => ctx.refresh())),
  ];
}

function lampMark() {
  return h(
    "svg",
    { viewBox: "0 0 24 24", "aria-hidden": "true" },
    h("path", { d: "M8 9h8l2 9H6z", fill: "none", stroke: "currentColor", "stroke-width": "1.5", "stroke-linejoin": "round" }),
    h("path", { d: "M9.5 9V6.5a2.5 2.5 0 0 1 5 0V9M9 21h6", fill: "none", stroke: "currentColor", "stroke-width": "1.5", "stroke-linecap": "round" }),
    h("path", { class: "flame", d: "M12 11.2c1.3 1.2 1.8 2 1.8 2.9a1.8 1.8 0 0 1-3.6 0c0-.9.5-1.7 1.8-2.9z" }),
  );
}

export const brand = () => h("a", { class: "brand", href: "#/" }, lampMark(), h("span", {}, "Lamplighter"));

function placeLink(one, page, count) {
  return h(
    "a",
    { href: one.href, key: one.href, "aria-current": page.nav === one.nav && !page.of ? "page" : null },
    icon(one.icon),
    h("span", {}, one.name),
    count > 0 && h("b", { class: "count" }, String(count), h("span", { class: "vh" }, count === 1 ? " waits for you" : " wait for you")),
  );
}

function rail(ctx, page) {
  const agents = ctx.shared.agents?.data ?? [];
  const shown = agents.slice(0, MOST_IN_RAIL);
  return h(
    "aside",
    { class: "rail" },
    brand(),
    h("button", { class: "palette", type: "button", onclick: () => palette(ctx) }, h("span", {}, "Search or do…"), h("kbd", {}, isApple() ? "⌘K" : "Ctrl K")),
    h("nav", { "aria-label": "Main" }, places.map((one) => placeLink(one, page, one.nav === "today" ? waiting(ctx) : 0))),
    shown.length > 0 &&
      h(
        "div",
        { class: "more", key: "agents" },
        h("h3", {}, "Agents"),
        h(
          "nav",
          { "aria-label": "Agents" },
          shown.map((agent) => h("a", { href: `#/agents/${agent.agent_id}`, key: agent.agent_id, "aria-current": ctx.params.agent_id === agent.agent_id ? "page" : null }, h("span", {}, agent.name))),
          agents.length > MOST_IN_RAIL && h("a", { href: "#/agents", key: "all" }, h("span", {}, `All ${agents.length}`)),
        ),
      ),
    h("div", { class: "more", key: "code" }, h("h3", {}, "For code"), h("nav", { "aria-label": "For code" }, codePlaces.map((one) => placeLink(one, page, 0)))),
    h(
      "div",
      { class: "foot" },
      h(
        "nav",
        { "aria-label": "Yours" },
        // The narrow rail has no room for the group above.
        h("button", { class: "rail-more", type: "button", "aria-haspopup": "dialog", onclick: () => drawer(ctx) }, icon("more"), h("span", {}, "More")),
        h("button", { class: "halt-link", type: "button", onclick: () => askToStop(ctx) }, icon("stop"), h("span", {}, "Stop everything…")),
        placeLink(ACCOUNT, page, 0),
      ),
    ),
  );
}

/** The bar at the bottom of a phone. */
function bar(ctx, page) {
  const inBar = places.filter((one) => IN_BAR.includes(one.nav));
  return h(
    "nav",
    { class: "tabbar", "aria-label": "Main, short" },
    inBar.map((one) => placeLink(one, page, one.nav === "today" ? waiting(ctx) : 0)),
    h("button", { type: "button", "aria-haspopup": "dialog", onclick: () => drawer(ctx) }, icon("more"), h("span", {}, "More")),
  );
}

function drawer(ctx) {
  const leave = (act) => (event) => {
    ctx.close();
    act?.(event);
  };
  const place = (one) => h("a", { href: one.href, key: one.href, onclick: leave() }, icon(one.icon), one.name);
  ctx.open(() =>
    dialog(
      { title: "More", kind: "drawer", onclose: () => ctx.close() },
      h("button", { type: "button", onclick: leave(() => palette(ctx)) }, icon("find"), "Search or do…"),
      [...places.filter((one) => !IN_BAR.includes(one.nav)), ACCOUNT].map(place),
      h("button", { type: "button", class: "halt-link", onclick: leave(() => askToStop(ctx)) }, icon("stop"), "Stop everything…"),
      h("h3", { class: "group" }, "For code"),
      codePlaces.map(place),
    ),
  );
}

// ---- The palette: search, go, do ----

function commands(ctx) {
  const agents = ctx.shared.agents?.data ?? [];
  return [
    ...[...places, ACCOUNT, ...codePlaces].map((one) => ({ title: one.name, kind: "page", href: one.href })),
    { title: "Set up an agent", kind: "do", href: "#/setup" },
    { title: "Watch a schedule", kind: "do", href: "#/watch?new" },
    { title: "Notices", kind: "page", href: "#/notices" },
    { title: "Living documents", kind: "page", href: "#/context/docs" },
    { title: "New habit", kind: "do", href: "#/practices?new" },
    { title: ctx.shared.account?.stopped_at ? "Start again" : "Stop everything", kind: "do", act: () => askToStop(ctx) },
    { title: "Keys of this page", kind: "help", act: () => help(ctx) },
    ...(access.auth === "off" ? [] : [{ title: "Sign out", kind: "do", act: () => signOut() }]),
    ...agents.map((agent) => ({ title: agent.name, kind: "agent", href: `#/agents/${agent.agent_id}` })),
  ];
}

const HREFS = {
  agent: (one) => `#/agents/${one.id}`,
  action: (one) => `#/actions/${one.id}`,
  asset: (one) => `#/assets/${one.id}`,
  chat: (one) => `#/agents/${one.agent_id}/chat/${one.id}`,
  practice: (one) => `#/practices/${one.id}`,
  project: (one) => `#/themes/${one.id}`,
};

/** What can be done with an action that the palette finds: the word that a person types, and what stands before and after. */
const VERBS = {
  run: [(name) => `Run “${name}” now`, (name) => `“${name}” runs now.`],
  pause: [(name) => `Pause “${name}”`, (name) => `“${name}” is paused.`],
  resume: [(name) => `Resume “${name}”`, (name) => `“${name}” runs again at its due times.`],
};

/** The verb and what it is done with, or no verb and all of the text. */
function understood(text) {
  const [first, ...rest] = text.trim().split(/\s+/);
  const verb = first.toLowerCase();
  return Object.hasOwn(VERBS, verb) && rest.length > 0 ? { verb, query: rest.join(" ") } : { query: text.trim() };
}

function doing(ctx, verb, action) {
  const [title, done] = VERBS[verb];
  const act = () =>
    post(`/actions/${action.id}/${verb}`, {})
      .then(() => flash(done(action.title)), (error) => flash(`Not done: ${failureText(error)}`))
      .then(() => ctx.refresh());
  return { title: title(action.title), kind: "do", act };
}

/** What can be done with the actions that fit. If several fit and none is called just so, Enter alone does nothing. */
function doable(ctx, verb, query, fits) {
  const exact = fits.filter((one) => one.title.toLowerCase() === query.toLowerCase());
  const several = exact.length !== 1 && fits.length > 1;
  return [...(several ? [{ title: "Several actions fit: choose one", kind: "" }] : []), ...[...new Set([...exact, ...fits])].map((one) => doing(ctx, verb, one))];
}

export function palette(ctx) {
  let text = "";
  let found = [];
  let at = 0;
  let asked = 0;
  let timer;
  const matching = () => {
    const words = text.toLowerCase().split(/\s+/).filter(Boolean);
    const own = commands(ctx).filter((one) => words.every((word) => one.title.toLowerCase().includes(word)));
    const ids = new Set(own.map((one) => one.href));
    return [...own, ...found.filter((one) => !ids.has(one.href))].slice(0, 12);
  };
  const search = () => {
    clearTimeout(timer);
    const { verb, query } = understood(text);
    if (query.length < 2) {
      found = [];
      return;
    }
    timer = setTimeout(async () => {
      const mine = ++asked;
      const answer = await get(`/search?q=${encodeURIComponent(query)}`).catch(() => ({ data: [] }));
      if (mine !== asked) return;
      found = verb
        ? doable(ctx, verb, query, answer.data.filter((one) => one.kind === "action"))
        : answer.data.filter((one) => HREFS[one.kind]).map((one) => ({ title: one.title, kind: one.kind, href: HREFS[one.kind](one) }));
      ctx.redraw();
    }, 150);
  };
  const choose = (one) => {
    if (!one?.href && !one?.act) return;
    ctx.close();
    if (one.href) location.hash = one.href;
    else setTimeout(one.act);
  };
  const onkeydown = (event) => {
    const all = matching();
    if (event.isComposing) return;
    if (event.key === "ArrowDown") at = Math.min(at + 1, all.length - 1);
    else if (event.key === "ArrowUp") at = Math.max(at - 1, 0);
    else if (event.key === "Enter") return choose(all[at]);
    else return;
    event.preventDefault();
    ctx.redraw();
  };
  ctx.open(() => {
    const all = matching();
    return dialog(
      { title: "Search or do", kind: "find", onclose: () => ctx.close() },
      h("input", {
        type: "search",
        class: "finder",
        role: "combobox",
        "aria-expanded": "true",
        "aria-controls": "found",
        "aria-activedescendant": all[at] ? `found-${at}` : null,
        "aria-label": "Search or do",
        placeholder: "A name, or: run, pause, resume and the name of an action",
        autocomplete: "off",
        spellcheck: "false",
        autofocus: true,
        onkeydown,
        oninput: (event) => {
          text = event.target.value;
          at = 0;
          search();
          ctx.redraw();
        },
      }),
      h(
        "ul",
        { id: "found", role: "listbox", "aria-label": "Found" },
        all.map((one, index) =>
          h("li", { id: `found-${index}`, role: "option", "aria-selected": String(index === at), key: `${one.kind} ${one.href ?? one.title}`, onclick: () => choose(one) }, h("span", {}, one.title), h("small", { class: "muted" }, one.kind)),
        ),
        all.length === 0 && h("li", { class: "muted", role: "option", "aria-selected": "false" }, `Nothing is called “${text.trim()}”.`),
      ),
    );
  });
}

// ---- Keys ----

const KEYS = [
  ["Ctrl K or ⌘ K", "search, go or do"],
  ["g t", "go to Today"],
  ["g a", "go to the agents"],
  ["g m", "go to the account"],
  ["g r", "go to what is remembered"],
  ["j, k", "next, previous"],
  ["/", "filter this page"],
  ["?", "these keys"],
  ["Esc", "close"],
];

const SINGLE = "lamplighter.keys";
const singleKeys = () => localStorage.getItem(SINGLE) !== "off";

function help(ctx) {
  ctx.open(() =>
    dialog(
      { title: "Keys", onclose: () => ctx.close() },
      h("dl", { class: "facts" }, KEYS.map(([key, does]) => [h("dt", {}, h("kbd", {}, key)), h("dd", {}, does)])),
      h(
        "label",
        { class: "check" },
        h("input", {
          type: "checkbox",
          checked: singleKeys(),
          onchange: (event) => {
            localStorage.setItem(SINGLE, event.target.checked ? "on" : "off");
            ctx.redraw();
          },
        }),
        "Use single keys",
      ),
      h("p", { class: "muted" }, "No key approves anything by itself."),
    ),
  );
}

let before = "";

/** Listens to the keys of all pages. `context()` is the one of the page that is shown. */
export function listenToKeys(context) {
  addEventListener("keydown", (event) => {
    const ctx = context();
    if (!ctx || event.isComposing) return;
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
      event.preventDefault();
      return palette(ctx);
    }
    const typing = event.target.closest?.("input, textarea, select, [contenteditable]");
    if (typing || event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]") || !singleKeys()) return;
    const pair = `${before} ${event.key}`;
    before = event.key;
    setTimeout(() => (before = ""), 1000);
    if (pair === "g t") location.hash = "#/";
    else if (pair === "g a") location.hash = "#/agents";
    else if (pair === "g m") location.hash = "#/account";
    else if (pair === "g r") location.hash = "#/memory";
    else if (event.key === "?") help(ctx);
    else if (event.key === "/") focusOn(event, "[data-filter]");
    else if (event.key === "j" || event.key === "k") step(event.key === "j" ? 1 : -1);
  });
}

function focusOn(event, selector) {
  const node = document.querySelector(selector);
  if (!node) return;
  event.preventDefault();
  node.focus();
}

/** Moves the focus to the next item that can be picked up. */
function step(by) {
  const items = [...document.querySelectorAll("main :is(.rows > li, .ticket, .ask, .card)")].map((item) => item.querySelector("a, button, input, [tabindex='0']")).filter(Boolean);
  const now = items.findIndex((item) => item === document.activeElement || item.closest("li, article")?.contains(document.activeElement));
  items[Math.max(0, Math.min(items.length - 1, now + by))]?.focus();
}

const isApple = () => /mac|iphone|ipad/i.test(navigator.userAgentData?.platform ?? navigator.platform ?? "");

// ---- What stands in place of a page ----

function failed(ctx, error) {
  const missing = error.status === 404;
  return h(
    "div",
    { class: "lost", key: "failed" },
    h("h1", {}, missing ? "This does not exist" : "This could not be read"),
    missing ? h("p", {}, "It was deleted, or the address is wrong.") : problem(ctx, error, { retry: () => ctx.refresh() }),
    missing && h("p", {}, h("a", { class: "btn", href: "#/" }, "Go to Today")),
  );
}

function skeleton() {
  const bone = (key) => h("li", { key }, h("i", {}), h("span", {}, h("i", {}), h("i", {})), h("i", {}));
  return h("div", { class: "bones", key: "bones", role: "status", "aria-label": "Loading" }, h("i", { class: "title" }), h("ul", {}, [1, 2, 3, 4, 5].map(bone)));
}

// ---- A new version ----

let newVersion = false;
const ASK_EVERY_MS = 5 * 60_000;

/** The files of this page. Their names change with their contents. */
const ownFiles = () => [...document.querySelectorAll("script[src], link[rel=stylesheet]")].map((node) => node.getAttribute("src") ?? node.getAttribute("href"));

/** Asks now and then whether the platform has a newer page than this one. What is typed stays: a reload is offered, not done. */
export function watchVersion(redraw) {
  const files = ownFiles();
  setInterval(async () => {
    if (document.hidden || newVersion) return;
    const page = await getText("/").catch(() => null);
    newVersion = page !== null && files.some((file) => !page.includes(file));
    if (newVersion) redraw();
  }, ASK_EVERY_MS);
}

/** The agents by id, for names beside what belongs to them. */
export const agentName = (ctx, agentId) => (ctx.shared.agents?.data ?? []).find((agent) => agent.agent_id === agentId)?.name ?? null;
