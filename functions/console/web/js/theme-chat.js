// The chat with the agent of a theme: a person says what should change, and the edits collect in a change set.

import { del, get } from "./api.js";
import { LIVE_MS, keep } from "./app.js";
import { counted, figure, listed, moment, money } from "./format.js";
import { choiceOf, confirmation, empty, link, press, section } from "./parts.js";
import { TALK_PAGE, composer, largerText, newTalk, readTalk, talkView } from "./talk.js";
import { changeSetHref, changesPath } from "./theme-changes.js";
import { h } from "./view.js";

/** Messages of another tab or device are read this often. */
const THEME_CHAT_MS = 10_000;
const MOST_PATHS = 8;
const LONGEST_STEP = 120;

const themeChatPath = (chatId) => `/chats/${encodeURIComponent(chatId)}?limit=${TALK_PAGE}`;
const themeChatHref = (ctx, chatId) => `#/themes/${encodeURIComponent(ctx.params.project_id)}/chat/${encodeURIComponent(chatId)}`;

/** The conversation of the address, or else the newest one when the page was opened. */
function themeChatId(ctx) {
  if (ctx.params.chat_id) return ctx.params.chat_id === "new" ? null : ctx.params.chat_id;
  ctx.state.chatId ??= ctx.data.chats?.data[0]?.chat_id ?? null;
  return ctx.state.chatId;
}

/** What the page asks for again and again while it shows the chat. */
export function themeChatReads(ctx) {
  const reads = { chats: `/projects/${encodeURIComponent(ctx.params.project_id)}/chats?limit=50`, changes: `${changesPath(ctx)}?limit=100` };
  // Below, `ctx.data` would ask for these reads again.
  if (ctx.state.isReading) return reads;
  ctx.state.isReading = true;
  const chatId = themeChatId(ctx);
  ctx.state.isReading = false;
  return { ...reads, ...(chatId && { chat: themeChatPath(chatId) }) };
}

export const themeChatRests = (ctx) => (ctx.state.talk?.run?.state === "waiting" ? LIVE_MS : THEME_CHAT_MS);

function themeTalk(ctx) {
  const { project_id: id } = ctx.params;
  ctx.state.talk ??= newTalk({
    path: `/projects/${encodeURIComponent(id)}/chat`,
    draftKey: `theme chat ${id}`,
    onchat: (chatId) => {
      keep(themeChatPath(chatId), { chat_id: chatId, messages: [], has_more: false });
      // The page stays; only its address becomes that of the conversation that has begun.
      delete ctx.params.view;
      ctx.params.chat_id = chatId;
      const [, query] = location.hash.split("?");
      history.replaceState(null, "", `${themeChatHref(ctx, chatId)}${query ? `?${query}` : ""}`);
    },
    turns: {
      body: () => ({ ...(ctx.state.mode && { mode: ctx.state.mode }), ...(ctx.query.file && { active_file: ctx.query.file }) }),
      above: turnPlan,
      below: turnChanges,
      stepWords: themeStepWords,
      takesImages: false,
      tellsMemory: false,
    },
  });
  return ctx.state.talk;
}

export function themeChatView(ctx) {
  const { project, chats, chat } = ctx.data;
  if (chat?.project_id && chat.project_id !== project.project_id) return empty("This conversation is about another theme.", link("Open it there", `#/themes/${chat.project_id}/chat/${chat.chat_id}`, { kind: "" }));
  const talk = themeTalk(ctx);
  readTalk(ctx, talk, chat);
  const earlier = chats.data.filter((one) => one.chat_id !== talk.chatId);
  return h(
    "div",
    { class: "theme-chat", key: "chat" },
    section("Say what should change", { end: talk.chatId && [press("Delete…", () => askToDeleteTalk(ctx, talk, chats.data.find((one) => one.chat_id === talk.chatId)), { kind: "link", disabled: Boolean(talk.live || talk.asked) }), link("New conversation", themeChatHref(ctx, "new"))] }, earlier.length > 0 && conversations(ctx, earlier, chats.has_more)),
    talkView(ctx, talk, {
      summary: chat?.summary,
      greeting: talk.messages.length === 0 && h("p", { class: "greeting", key: "greeting" }, "One sentence is enough, such as “Make the header sticky on phones”. Nobody else sees the edits before you apply them."),
    }),
    composer(ctx, talk, { placeholder: "Say what should change, or ask…", label: "Message about the theme", above: wishes(ctx) }),
  );
}

const WISHES = [
  ["", "Decide by the message"],
  ["code", "Change"],
  ["plan", "Plan"],
  ["debug", "Find a fault"],
  ["ask", "Ask"],
];

/** What the next message is for, and the file that it is about. */
function wishes(ctx) {
  const { file } = ctx.query;
  const set = (mode) => {
    ctx.state.mode = mode;
    ctx.redraw();
  };
  return h(
    "div",
    { class: "wishes", key: "wishes" },
    h("label", {}, h("span", {}, "What do you want? "), choiceOf("What do you want?", ctx.state.mode ?? "", WISHES, set)),
    file && h("span", { class: "about", key: "about" }, "Open: ", h("code", {}, file), " ", h("a", { href: location.hash.split("?")[0] }, "Leave it out")),
  );
}

// ---- The conversations ----

/** The others. The one that is shown is not among them, so that nothing moves when it begins. */
function conversations(ctx, earlier, hasMore) {
  const row = (one) =>
    h(
      "li",
      { key: one.chat_id },
      h("span", { class: "when" }, moment(one.updated_at)),
      h("span", { class: "what" }, h("a", { href: themeChatHref(ctx, one.chat_id) }, one.title || "Untitled")),
      h("span", { class: "end muted" }, one.live_run && "being answered"),
    );
  return h(
    "details",
    { class: "conversations", key: "conversations" },
    h("summary", {}, `Other conversations (${figure(earlier.length)})`),
    h("ul", { class: "rows chats", "aria-label": "Other conversations" }, earlier.map(row)),
    hasMore && h("p", { class: "muted" }, "There are more than these."),
  );
}

function askToDeleteTalk(ctx, talk, chat) {
  confirmation(ctx, {
    title: "Delete this conversation?",
    key: "delete talk",
    label: "Delete the conversation",
    text: `${chat?.title ? `“${chat.title}”` : "It"} is deleted. Its edits stay where they are.`,
    act: async () => {
      await del(`/chats/${encodeURIComponent(talk.chatId)}`);
      ctx.go(themeChatHref(ctx, "new"));
    },
  });
}

// ---- The plan of a turn ----

const SIZES = { trivial: "small ", simple: "", complex: "large ", architectural: "very large " };
const TASKS = { code: "change", plan: "plan", debug: "repair", ask: "question" };
const STRATEGIES = {
  simple: "It edits directly.",
  hybrid: "It edits, and gives parts of the work to specialists.",
  god_mode: "The most capable model does everything itself.",
};

/** What is known of how a turn was planned: from its events, or from its record if it is the newest. */
const planOf = (talk, runId, record) => record?.theme ?? (talk.run?.run_id === runId ? talk.run.theme : null);

/** The plan in one line, with the reasons and the files below it. */
function turnPlan(ctx, talk, runId, record) {
  const plan = planOf(talk, runId, record) ?? ctx.state.plans?.get(runId)?.plan;
  if (!plan) return record || talk.run?.run_id === runId ? null : planLater(ctx, talk, runId);
  const run = talk.run?.run_id === runId ? talk.run : null;
  const hasEnded = talk.live?.runId !== runId;
  const spent = hasEnded && run?.cost_micros > 0 ? `cost ${money(run.cost_micros)}` : null;
  const planned = plan.estimate_micros > 0 ? `about ${money(plan.estimate_micros)}` : null;
  const words = [
    `A ${SIZES[plan.tier] ?? ""}${TASKS[plan.mode] ?? "turn"}`,
    spent && planned ? `${spent}, planned ${planned}` : (spent ?? planned),
    plan.files.length > 0 && `${hasEnded ? "looked" : "looks"} at ${counted(plan.files.length, "file")}`,
  ];
  return [
    h(
      "details",
      { class: "step plan", key: "plan" },
      h("summary", {}, words.filter(Boolean).join(" · ")),
      h("h3", {}, "Why"),
      h("ul", { class: "plain" }, plan.why.map((one, at) => h("li", { key: `why ${at}` }, one)), STRATEGIES[plan.strategy] && h("li", { key: "strategy" }, STRATEGIES[plan.strategy])),
      plan.files.length > 0 && [h("h3", {}, "Files that it was given"), h("ul", { class: "plain paths" }, plan.files.map((path) => h("li", { key: `file ${path}` }, h("code", {}, path))))],
    ),
    // In a turn that was watched, they stand where they came.
    !record && (plan.escalations ?? []).map((one, at) => h("p", { class: "line muted", key: `larger ${at}` }, largerText(one))),
  ];
}

/** The line of a plan that is not known. The record of the newest turn is read anyway; that of an older one when the line is opened. */
function planLater(ctx, talk, runId) {
  if (talk.messages.at(-1)?.run_id === runId) return h("p", { class: "step plan", key: "plan" }, "Reading the plan…");
  const plans = (ctx.state.plans ??= new Map());
  const known = plans.get(runId);
  const ontoggle = (event) => {
    if (!event.target.open || known) return;
    get(`/runs/${encodeURIComponent(runId)}`, ctx.signal)
      .then(({ theme }) => plans.set(runId, theme ? { plan: theme } : { why: "No plan of it is kept." }), (error) => plans.set(runId, { why: error.status === 404 ? "The record of this turn is no longer kept." : error.message }))
      .finally(ctx.redraw);
  };
  return h("details", { class: "step plan", key: "plan", ontoggle }, h("summary", {}, "How it was planned"), h("p", { class: "muted", role: "status" }, known?.why ?? "Reading…"));
}

// ---- What a turn has changed ----

const CHANGE_WORDS = { created: "new", deleted: "deleted", renamed: "renamed" };

/** The change set of a turn, below the last turn that is known to have it. */
function turnChanges(ctx, talk, runId, record) {
  const plan = planOf(talk, runId, record);
  if (!plan) return null;
  const id = plan.change_set_id;
  const placeOf = (run) => {
    const at = talk.messages.findLastIndex((one) => one.run_id === run);
    return at < 0 ? Infinity : at;
  };
  const known = [...talk.runs.values()].map((one) => [one.runId, one.theme]).concat(talk.run ? [[talk.run.run_id, talk.run.theme]] : []);
  if (known.some(([run, theme]) => run !== runId && theme?.change_set_id === id && placeOf(run) > placeOf(runId))) return null;
  // The list is read again and again, so it knows what was applied or taken back since. While the turn goes on, its own event is newer.
  const set = (talk.live === record && record?.changed) || ctx.data.changes.data.find((one) => one.change_set_id === id);
  if (!set || set.files.length === 0) return null;
  const isOpen = set.state === "open";
  const title = `${counted(set.files.length, "file")} changed`;
  const href = changeSetHref(ctx, id);
  if (!["code", "debug"].includes(plan.mode)) {
    return isOpen && h("p", { class: "line muted", key: "changes" }, `${title} earlier, not applied yet. `, h("a", { href }, "Look at the changes"));
  }
  const row = (one) =>
    h(
      "li",
      { key: one.path },
      h("code", {}, one.path),
      h("span", { class: "counts" }, CHANGE_WORDS[one.change] && h("span", { class: "muted" }, `${CHANGE_WORDS[one.change]} `), h("span", { class: "ok" }, `+${figure(one.added)}`), " ", h("span", { class: "bad" }, `−${figure(one.removed)}`)),
    );
  return h(
    "article",
    { class: "card asset changed", key: "changes", "aria-label": title },
    h("h3", {}, title, h("span", { class: "muted" }, isOpen ? " · not applied" : " · applied")),
    h("ul", { class: "plain" }, set.files.slice(0, MOST_PATHS).map(row), set.files.length > MOST_PATHS && h("li", { class: "muted", key: "more" }, `and ${counted(set.files.length - MOST_PATHS, "more file")}`)),
    isOpen && h("p", { class: "muted" }, "Nobody else sees this before you apply it."),
    h("div", { class: "acts" }, link(isOpen ? "Look at the changes and apply them" : "Look at the changes", href, { kind: isOpen ? "primary" : "" })),
  );
}

// ---- Steps in words ----

/** What the tools do with a file, a text or a setting. The names of all others say enough. */
const STEP_VERBS = {
  read_file: "Reads",
  read_lines: "Reads",
  extract_region: "Reads a part of",
  get_schema_settings: "Reads the settings of",
  get_dependency_graph: "Looks at what belongs to",
  find_references: "Looks for uses of",
  trace_rendering_chain: "Looks at what shows",
  diagnose_visibility: "Looks for what hides",
  search_files: "Looks for the files of",
  grep_content: "Searches for",
  theme_check: "Checks",
  check_theme_setting: "Checks",
  run_command: "Runs",
  edit_lines: "Edits",
  search_replace: "Edits",
  edit_node: "Edits",
  write_file: "Writes",
  create_file: "Makes",
  delete_file: "Deletes",
  rename_file: "Moves",
};

/** A call of a tool as a short line. Null for a tool without words. The input is what a model has written: any value may be there. */
function themeStepWords(tool, input) {
  if (!Object.hasOwn(STEP_VERBS, tool)) return null;
  const { path, reads, pattern, request, symbol, section: part, id, command } = input ?? {};
  const isText = (value) => typeof value === "string" && value !== "";
  const clipped = (text) => (text.length > LONGEST_STEP ? `${text.slice(0, LONGEST_STEP)}…` : text);
  const paths = [...new Set([path, ...(Array.isArray(reads) ? reads.map((one) => one?.path) : [])].filter(isText).map(clipped))];
  const words = [pattern, request, symbol, part, id, command].find(isText);
  return `${STEP_VERBS[tool]} ${paths.length > 3 ? counted(paths.length, "file") : listed(paths) || (words ? `“${clipped(words)}”` : "the theme")}`;
}
