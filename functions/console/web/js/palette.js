// The palette: one field that goes to pages, finds what is called so, and does what is typed.

import { get, post } from "./api.js";
import { flash } from "./app.js";
import { access, signOut } from "./credentials.js";
import { LOOKS, chooseLook } from "./look.js";
import { dialog, draftOf, failureText } from "./parts.js";
import { askToStop } from "./stop.js";
import { h } from "./view.js";

const MOST_FOUND = 12;
/** Shorter texts are not looked for. */
const LEAST_CHARACTERS = 2;
const MOST_ASKED = 5;

/** Words that people type for a page, besides its name. */
const PAGE_WORDS = {
  "#/notices": "notify notifications tell me told alerts e-mail email mail slack discord telegram ntfy gotify smtp webhooks channels digest quiet hours snooze",
  "#/watch": "watchdog cron jobs",
  "#/practices": "habits check-in",
  "#/memory": "facts remember",
  "#/account": "profile plan",
};

/** The views of each kind of thing, as its tabs and its menu name them, with the end of their address. */
const THING_VIEWS = {
  agent: [["Chat", ""], ["Actions", "/actions"], ["Assets", "/assets"], ["Settings", "/settings"]],
  action: [["Edit", "/edit"], ["Talk", "/talk"], ["Notebook", "/notebook"], ["History", "/history"]],
  project: [["Lookup", "/lookup"], ["Files", "/files"], ["Graph", "/graph"], ["Findings", "/findings"]],
};

const THING_HREFS = {
  agent: (one) => `#/agents/${one.id}`,
  action: (one) => `#/actions/${one.id}`,
  asset: (one) => `#/assets/${one.id}`,
  chat: (one) => `#/agents/${one.agent_id}/chat/${one.id}`,
  practice: (one) => `#/practices/${one.id}`,
  project: (one) => `#/themes/${one.id}`,
};

const wordsOf = (text) => text.toLowerCase().split(/\s+/).filter(Boolean);

/** The views of a thing whose name the words contain, if they also contain something of a view's name. */
function viewsOf(kind, { id, title }, words) {
  return (THING_VIEWS[kind] ?? [])
    .filter(([view]) => words.some((word) => view.toLowerCase().startsWith(word)))
    .map(([view, end]) => ({ title: `${title} · ${view}`, kind: "page", href: `${THING_HREFS[kind]({ id })}${end}` }));
}

/** All that can be chosen without a search. `words` are what people type for it, besides its title. */
function commands(ctx, typed, { places, help }) {
  const agents = ctx.shared.agents?.data ?? [];
  const isStopped = Boolean(ctx.shared.account?.stopped_at);
  return [
    ...places.map((one) => ({ title: one.name, kind: "page", href: one.href, words: PAGE_WORDS[one.href] })),
    { title: "Set up an agent", kind: "do", href: "#/setup", words: "new create" },
    { title: "Watch a schedule", kind: "do", href: "#/watch?new", words: "new" },
    { title: "New habit", kind: "do", href: "#/practices?new" },
    { title: "Living documents", kind: "page", href: "#/context/docs" },
    { title: "Agent logs", kind: "page", href: "#/context/logs" },
    { title: "Refused hooks", kind: "page", href: "#/context/hooks" },
    { title: "Keys and models", kind: "page", href: "#/account/keys", words: "api provider token" },
    { title: "Usage", kind: "page", href: "#/account/usage", words: "costs spending money budget" },
    { title: "Budget: what a day and a month may cost", kind: "page", href: "#/account", words: "ceiling limit money spending" },
    { title: "Time zone", kind: "page", href: "#/account", words: "timezone clock" },
    { title: "Export the account", kind: "do", href: "#/account/data", words: "data download archive backup" },
    { title: "Export the memory", kind: "do", href: "#/account/data", words: "data download facts" },
    { title: "Import an account", kind: "do", href: "#/account/data", words: "data upload archive" },
    { title: "Delete the account", kind: "do", href: "#/account/data", words: "data end" },
    ...LOOKS.map(([look, name]) => ({
      title: `Colours: ${name.toLowerCase()}`,
      kind: "do",
      words: "theme colors mode",
      act: () => {
        chooseLook(look);
        flash(`Colours: ${name.toLowerCase()}.`);
      },
    })),
    { title: isStopped ? "Start again" : "Stop everything", kind: "do", act: () => askToStop(ctx) },
    { title: "Keys of this page", kind: "help", words: "keyboard shortcuts", act: () => help(ctx) },
    ...(access.auth === "off" ? [] : [{ title: "Sign out", kind: "do", words: "log out leave", act: () => signOut() }]),
    ...agents.map((agent) => ({ title: agent.name, kind: "agent", href: `#/agents/${agent.agent_id}` })),
    ...agents.flatMap((agent) => viewsOf("agent", { id: agent.agent_id, title: agent.name }, typed)),
  ];
}

/** Those that fit what was typed; first those whose title says it. */
function fitting(all, typed) {
  const said = (one) => typed.every((word) => one.title.toLowerCase().includes(word));
  const meant = (one) => typed.every((word) => one.title.toLowerCase().includes(word) || wordsOf(one.words ?? "").some((known) => known.startsWith(word)));
  return [...all.filter(said), ...all.filter((one) => !said(one) && meant(one))];
}

/** What can be done with an action that the palette finds: the word that a person types, and what stands before and after. */
const VERBS = {
  run: [(name) => `Run “${name}” now`, (name) => `“${name}” runs now.`],
  pause: [(name) => `Pause “${name}”`, (name) => `“${name}” is paused.`],
  resume: [(name) => `Resume “${name}”`, (name) => `“${name}” runs again at its due times.`],
  why: [(name) => `Why “${name}” ran or did not run`],
};

/** The verb and what it is about, or no verb and all of the text. */
function understood(text) {
  const [first, ...rest] = text.trim().split(/\s+/);
  const verb = first.toLowerCase();
  return Object.hasOwn(VERBS, verb) && rest.length > 0 ? { verb, query: rest.join(" ") } : { query: text.trim() };
}

function doing(ctx, verb, action) {
  const [title, done] = VERBS[verb];
  // The page of an action begins with the explanation.
  if (verb === "why") return { title: title(action.title), kind: "page", href: THING_HREFS.action(action) };
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

const searched = (query) => (query.length < LEAST_CHARACTERS ? Promise.resolve([]) : get(`/search?q=${encodeURIComponent(query)}`).then((answer) => answer.data, () => []));

/** What the platform knows by this text, and the views of what it knows by all but the last word. */
async function lookFor(ctx, text) {
  const { verb, query } = understood(text);
  if (verb) return doable(ctx, verb, query, (await searched(query)).filter((one) => one.kind === "action"));
  const words = query.split(/\s+/);
  const [named, owners] = await Promise.all([searched(query), searched(words.slice(0, -1).join(" "))]);
  const last = wordsOf(words.at(-1));
  return [
    ...named.filter((one) => THING_HREFS[one.kind]).map((one) => ({ title: one.title, kind: one.kind, href: THING_HREFS[one.kind](one) })),
    ...owners.flatMap((one) => viewsOf(one.kind, one, last)),
  ];
}

// ---- Asking an agent ----

const LAST_AGENT = "lamplighter.agent";

/** Remembers whose page is shown. */
export function noteAgent(agentId) {
  if (agentId && localStorage.getItem(LAST_AGENT) !== agentId) localStorage.setItem(LAST_AGENT, agentId);
}

/** The agent that was used last in this browser or is the only one; if neither is known, the first ones. */
function askable(ctx) {
  const agents = ctx.shared.agents?.data ?? [];
  const last = agents.find((one) => one.agent_id === localStorage.getItem(LAST_AGENT));
  return last ? [last] : agents.slice(0, MOST_ASKED);
}

/** Puts the text in the composer of the agent's chat. The person sends it. */
function askAgent(ctx, agent, text) {
  const draft = draftOf(`chat ${agent.agent_id}`);
  const before = draft.get().trim();
  if (!before.includes(text)) draft.set(before ? `${before}\n\n${text}` : text);
  const field = ctx.params.agent_id === agent.agent_id && document.querySelector("textarea[name=message]");
  if (!field) return ctx.go(`#/agents/${agent.agent_id}?write`);
  // The chat is shown already. The dialog gives the focus back with the next drawing.
  field.value = draft.get();
  requestAnimationFrame(() => requestAnimationFrame(() => field.focus()));
}

const asking = (ctx, text) => askable(ctx).map((agent) => ({ title: `Ask the agent: ${text}`, kind: agent.name, act: () => askAgent(ctx, agent, text) }));

// ---- The dialog ----

/** Opens the palette. `places` are the pages of the navigation; `help` shows the keys. */
export function palette(ctx, own) {
  let text = "";
  let found = [];
  /** What `found` answers. */
  let answered = "";
  let at = 0;
  let timer;
  const isAnswered = () => answered === text.trim();
  const matching = () => {
    const typed = wordsOf(text);
    const known = fitting(commands(ctx, typed, own), typed);
    const hrefs = new Set(known.map((one) => one.href).filter(Boolean));
    const all = [...known, ...found.filter((one) => !hrefs.has(one.href))].slice(0, MOST_FOUND);
    return all.length === 0 && isAnswered() ? asking(ctx, text.trim()) : all;
  };
  const search = () => {
    clearTimeout(timer);
    const asked = text.trim();
    if (asked.length < LEAST_CHARACTERS) {
      [found, answered] = [[], asked];
      return;
    }
    timer = setTimeout(async () => {
      const answer = await lookFor(ctx, asked);
      if (asked !== text.trim()) return;
      [found, answered] = [answer, asked];
      ctx.redraw();
    }, 150);
  };
  const choose = (one) => {
    if (!one?.href && !one?.act) return;
    ctx.close();
    if (one.href) ctx.go(one.href);
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
    const isUnknown = all.length === 0 || all[0].title.startsWith("Ask the agent: ");
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
        placeholder: "A name, a word, or: run, pause, resume, why and the name of an action",
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
      isUnknown && h("p", { class: "muted", key: "unknown", role: "status" }, isAnswered() ? `Nothing is called “${text.trim()}”.` : "Looking…"),
      h(
        "ul",
        { id: "found", role: "listbox", "aria-label": "Found" },
        all.map((one, index) =>
          h("li", { id: `found-${index}`, role: "option", "aria-selected": String(index === at), key: `${one.kind} ${one.href ?? ""} ${one.title}`, onclick: () => choose(one) }, h("span", {}, one.title), h("small", { class: "muted" }, one.kind)),
        ),
      ),
    );
  });
}
