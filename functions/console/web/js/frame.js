// What stands around every page: the rail, the bar of a phone, banners, the keys, and the one button that stops everything.

import { getText } from "./api.js";
import { flashedNow, optional, say } from "./app.js";
import { entrancePage } from "./entrance.js";
import { showTimesIn } from "./format.js";
import { noteAgent, palette } from "./palette.js";
import { dialog, press, problem } from "./parts.js";
import { askToStop, stoppedBanner } from "./stop.js";
import { h, icon } from "./view.js";

const PLACES = [
  { name: "Today", href: "#/", icon: "today", nav: "today" },
  { name: "Agents", href: "#/agents", icon: "agents", nav: "agents" },
  { name: "Assets", href: "#/assets", icon: "assets", nav: "assets" },
  { name: "Memory", href: "#/memory", icon: "memory", nav: "memory" },
  { name: "Practice", href: "#/practices", icon: "practice", nav: "practice" },
  { name: "Watch", href: "#/watch", icon: "watch", nav: "watch" },
  { name: "Notices", href: "#/notices", icon: "notices", nav: "notices" },
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
  noteAgent(ctx.params.agent_id);
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
    flashView(),
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
    h("button", { class: "palette", type: "button", onclick: () => find(ctx) }, h("span", {}, "Search or do…"), h("kbd", {}, isApple() ? "⌘K" : "Ctrl K")),
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
      h("button", { type: "button", onclick: leave(() => find(ctx)) }, icon("find"), "Search or do…"),
      [...places.filter((one) => !IN_BAR.includes(one.nav)), ACCOUNT].map(place),
      h("button", { type: "button", class: "halt-link", onclick: leave(() => askToStop(ctx)) }, icon("stop"), "Stop everything…"),
      h("h3", { class: "group" }, "For code"),
      codePlaces.map(place),
    ),
  );
}

/** The palette, with all pages of the navigation. */
const find = (ctx) => palette(ctx, { places: [...places, ACCOUNT, ...codePlaces], help });

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
      return find(ctx);
    }
    const typing = event.target.closest?.("input, textarea, select, [contenteditable]");
    if (typing || event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]") || !singleKeys()) return;
    const pair = `${before} ${event.key}`;
    before = event.key;
    setTimeout(() => (before = ""), 1000);
    if (pair === "g t") ctx.go("#/");
    else if (pair === "g a") ctx.go("#/agents");
    else if (pair === "g m") ctx.go("#/account");
    else if (pair === "g r") ctx.go("#/memory");
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

/** What was just done. Its button is pressed once. */
function flashView() {
  const now = flashedNow();
  const press = () => {
    now.end();
    now.way.act().catch((error) => say(error.message));
  };
  return h("div", { class: now ? "flash" : "flash none", role: "status", key: "flash" }, now?.text, now?.way && [" ", h("button", { class: "btn quiet", type: "button", onclick: press }, now.way.label)]);
}
