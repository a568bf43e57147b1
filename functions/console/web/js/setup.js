// Setting up an agent: a conversation, and the draft that grows beside it.

import { del, get, post } from "./api.js";
import { keep, optional } from "./app.js";
import { banners, brand } from "./frame.js";
import { button, confirmation, draftOf, failureOf, isStopped, link, press } from "./parts.js";
import { ACTION_PARTS, setupTicket, withParts } from "./setup-ticket.js";
import { forgetSetupOf, rememberSetup, setupDraftStore } from "./setups.js";
import { askToStop } from "./stop.js";
import { TALK_PAGE, composer, newTalk, readTalk, sendTurn, talkView } from "./talk.js";
import { h, icon } from "./view.js";

const IDLE_SETUP_MS = 15_000;
/** A draft is searched in this many of the newest replies. */
const MOST_SEARCHED = 12;
/** The set-up that the address without an id goes on with. */
const keptSetup = draftOf("setup chat", { lasts: true });

const PARTS = [
  { name: "name", label: "Name", most: 200, rows: 1 },
  { name: "goal", label: "Goal", most: 2000, rows: 3 },
  { name: "success_criteria", label: "It works if", most: 2000, rows: 2 },
  { name: "timeline", label: "Timeline", most: 2000, rows: 1 },
  { name: "instructions", label: "Instructions", most: 20_000, rows: 4 },
];

const setupPath = (chatId) => `/chats/${chatId}?limit=${TALK_PAGE}`;

function setupChat(ctx) {
  const { chat_id: chatId } = ctx.params;
  if (chatId === "begin" || ctx.state.isNew) return ctx.state.talk?.chatId ?? null;
  return chatId ?? null;
}

/** The page stays, and its address becomes that of a conversation. */
function addressSetup(ctx, chatId) {
  ctx.params.chat_id = chatId;
  history.replaceState(null, "", `#/setup/${chatId}`);
}

function setupTalk(ctx) {
  ctx.state.talk ??= newTalk({
    path: "/setup/chat",
    draftKey: "setup message",
    onchat: (chatId) => {
      keep(setupPath(chatId), { chat_id: chatId, messages: [], has_more: false });
      keptSetup.set(chatId);
      rememberSetup(chatId);
      ctx.state.isNew = false;
      addressSetup(ctx, chatId);
    },
    onagent: (proposed) => takeProposed(ctx, proposed),
  });
  return ctx.state.talk;
}

// ---- The draft: what the model has proposed (`base`), and what the person has made of it (`mine`) ----

const draftStore = (ctx) => setupDraftStore(ctx.state.talk.chatId);

function setupDraft(ctx) {
  const { chatId } = ctx.state.talk;
  if (ctx.state.draftOf !== chatId) {
    ctx.state.draftOf = chatId;
    const stored = chatId ? draftStore(ctx).get() : "";
    ctx.state.draft = stored ? JSON.parse(stored) : null;
    ctx.state.isSearched = ctx.state.draft !== null;
  }
  return ctx.state.draft;
}

/** All parts that a draft has. */
const partsOf = (draft) => (draft.first_action ? [...PARTS, ...ACTION_PARTS] : PARTS);

function takeProposed(ctx, whole) {
  const proposed = withParts(whole);
  const before = setupDraft(ctx);
  const mine = {};
  const offers = {};
  for (const { name } of partsOf(proposed)) {
    const theirs = proposed[name] ?? "";
    const own = before?.mine[name];
    const isOwn = before && own !== before.base[name];
    mine[name] = isOwn ? own : theirs;
    // What the person has written stays. The other text is offered.
    if (isOwn && theirs !== own && theirs !== before.base[name]) offers[name] = theirs;
  }
  ctx.state.fresh = new Set(partsOf(proposed).filter(({ name }) => !before || before.base[name] !== proposed[name]).map(({ name }) => name));
  ctx.state.draft = { base: proposed, mine, offers };
  ctx.state.isSearched = true;
  if (!before) ctx.say("The draft of the agent is written.");
  draftStore(ctx).set(JSON.stringify(ctx.state.draft));
  ctx.redraw();
}

function editDraft(ctx, name, text) {
  const { draft } = ctx.state;
  draft.mine[name] = text;
  draftStore(ctx).set(JSON.stringify(draft));
  ctx.redraw();
}

/** After a reload elsewhere, the draft is in one of the runs of the conversation. */
async function searchDraft(ctx, talk) {
  if (ctx.state.isSearched || talk.live || talk.messages.length === 0) return;
  ctx.state.isSearched = true;
  const ids = [...new Set(talk.messages.filter((one) => one.role === "assistant" && one.run_id).map((one) => one.run_id))].reverse();
  for (const id of ids.slice(0, MOST_SEARCHED)) {
    const run = await get(`/runs/${id}`, ctx.signal).catch(() => null);
    if (run?.agent_draft && !ctx.state.draft) return takeProposed(ctx, run.agent_draft);
  }
}

export const setupPage = {
  nav: null,
  bare: true,
  title: () => "Setting up an agent",
  reads(ctx) {
    const chatId = setupChat(ctx);
    return { channels: optional("/notifications/channels"), ...(chatId && { chat: optional(setupPath(chatId)) }) };
  },
  every: () => IDLE_SETUP_MS,
  enter(ctx) {
    const kept = keptSetup.get();
    if (!ctx.params.chat_id && kept) addressSetup(ctx, kept);
    if (ctx.params.chat_id !== "begin") return;
    const sentence = draftOf("setup");
    const text = sentence.get();
    if (!text) {
      ctx.state.isNew = true;
      return;
    }
    const talk = setupTalk(ctx);
    sentence.set("");
    talk.draft.set(text);
    sendTurn(ctx, talk, text);
  },
  view(ctx) {
    const talk = setupTalk(ctx);
    const { chat } = ctx.data;
    if (chat === null && !talk.chatId) {
      keptSetup.set("");
      ctx.state.isNew = true;
    }
    readTalk(ctx, talk, chat);
    const draft = setupDraft(ctx);
    queueMicrotask(() => searchDraft(ctx, talk));
    return h(
      "div",
      { class: "setup", key: "setup" },
      h(
        "header",
        {},
        brand(),
        h("h1", {}, "Setting up an agent"),
        h("div", { class: "aside" }, talk.chatId && press("Start over", () => askToStartOver(ctx), { kind: "quiet", disabled: Boolean(talk.live) }), link("Save and close", "#/", { kind: "" }), !isStopped(ctx) && press([icon("stop", "ic s"), h("span", {}, "Stop everything…")], () => askToStop(ctx), { kind: "quiet stop" })),
        // On a phone, the draft stands below the conversation.
        draft && h("p", { class: "jump", key: "jump" }, h("span", {}, h("b", {}, draft.mine.name || "The agent"), ": the draft is written."), press("See the draft", toDraft, { kind: "link" })),
      ),
      h(
        "main",
        { id: "main", tabindex: "-1" },
        banners(ctx, null),
        h("h2", { class: "vh" }, "Conversation"),
        talkView(ctx, talk, { summary: chat?.summary, greeting: h("p", { class: "greeting", key: "greeting" }, "What should it look after? One sentence is enough, such as “Remind me every weekday at 9 to write three sentences”.") }),
        composer(ctx, talk, { placeholder: draft ? "Change any part of the draft…" : "Say it in your words…", label: "Your message", focus: matchMedia("(pointer: fine)").matches }),
      ),
      draftSheet(ctx, talk, draft),
    );
  },
};

function toDraft() {
  const sheet = document.querySelector("#draft");
  sheet.scrollIntoView({ block: "start" });
  sheet.focus({ preventScroll: true });
}

function draftSheet(ctx, talk, draft) {
  const said = talk.messages.filter((one) => one.role === "user");
  return h(
    "aside",
    { class: "sheet", id: "draft", key: "draft", tabindex: "-1", "aria-label": "Draft of the agent" },
    draft?.base.first_action
      ? [
          h("div", { class: "sheet-head", key: "kind" }, h("span", { class: "kind" }, "Ticket"), press("Delete draft", () => askToDeleteDraft(ctx, talk), { kind: "quiet" })),
          h("h2", { class: "vh", key: "title" }, "Ticket of the first action"),
          setupTicket(ctx, draft, { parts: PARTS, part: (one) => draftPart(ctx, draft, one), channels: ctx.data.channels, done: () => forgetSetup(ctx) }),
        ]
      : draft
      ? [
          h("span", { class: "kind", key: "kind" }, "Draft of an agent"),
          h("h2", { class: "vh", key: "title" }, "Draft of the agent"),
          PARTS.map((part) => draftPart(ctx, draft, part)),
          h(
            "div",
            { class: "make", key: "make" },
            h("p", { class: "muted" }, "Creating it runs nothing and spends nothing: each action waits for your approval."),
            failureOf(ctx, "create"),
            h(
              "div",
              { class: "acts" },
              press("Delete draft", () => askToDeleteDraft(ctx, talk)),
              h("div", { class: "end" }, button(ctx, "Create the agent", { key: "create", kind: "primary", disabled: !draft.mine.name.trim() || !draft.mine.goal.trim(), act: () => createAgent(ctx, draft) })),
            ),
          ),
        ]
      : [
          h("span", { class: "kind", key: "kind" }, "No draft yet"),
          h("p", { class: "goal muted", key: "goal" }, "When it knows enough, the draft of the agent appears here. You can change every word of it before you create it."),
          said.length > 0 && h("section", { class: "part", key: "said" }, h("h2", {}, "What you have said so far"), h("ol", { class: "numbered" }, said.map((one) => h("li", { key: one.message_id, class: "long" }, one.content)))),
          h("section", { class: "part", key: "open" }, h("h2", {}, "What the draft will have"), h("ul", { class: "plain muted" }, PARTS.map((part) => h("li", { key: part.name }, part.label)))),
        ],
  );
}

function draftPart(ctx, draft, { name, label, most, rows }) {
  const offer = draft.offers?.[name];
  const isFresh = ctx.state.fresh?.has(name);
  return h(
    "section",
    { class: `part ${name}`, key: name },
    h(
      "label",
      { class: "field" },
      h("span", {}, label, isFresh && h("small", { class: "ok" }, " just written")),
      h(rows === 1 && name !== "timeline" ? "input" : "textarea", {
        name,
        rows: rows === 1 && name !== "timeline" ? null : rows,
        maxlength: most,
        value: draft.mine[name] ?? "",
        required: name === "name" || name === "goal",
        autocomplete: "off",
        oninput: (event) => editDraft(ctx, name, event.target.value),
      }),
    ),
    offer !== undefined &&
      h(
        "div",
        { class: "offer" },
        h("p", { class: "muted" }, "You have changed this part. The conversation proposes:"),
        h("p", { class: "long" }, offer),
        h(
          "div",
          { class: "acts" },
          press("Keep mine", () => settleOffer(ctx, draft, name), { kind: "quiet" }),
          press("Take it", () => {
            draft.mine[name] = offer;
            settleOffer(ctx, draft, name);
          }),
        ),
      ),
  );
}

function settleOffer(ctx, draft, name) {
  delete draft.offers[name];
  editDraft(ctx, name, draft.mine[name]);
}

async function createAgent(ctx, draft) {
  const body = Object.fromEntries(PARTS.map(({ name }) => [name, draft.mine[name].trim()]).filter(([, text]) => text !== ""));
  const agent = await post("/agents", body);
  forgetSetup(ctx);
  ctx.go(`#/agents/${agent.agent_id}`);
}

function forgetSetup(ctx) {
  if (ctx.state.talk.chatId) forgetSetupOf(ctx.state.talk.chatId);
  keptSetup.set("");
}

function askToDeleteDraft(ctx, talk) {
  confirmation(ctx, {
    title: "Delete this draft?",
    key: "delete draft",
    label: "Delete",
    text: "The draft and this conversation are deleted. No agent is created.",
    act: async () => {
      if (talk.chatId) await del(`/chats/${talk.chatId}`);
      forgetSetup(ctx);
      ctx.go("#/");
    },
  });
}

function askToStartOver(ctx) {
  confirmation(ctx, {
    title: "Start over?",
    key: "start over",
    kind: "primary",
    label: "Start over",
    text: "A new conversation begins. This one is kept: the page of the agents leads to it.",
    act: async () => {
      keptSetup.set("");
      draftOf("setup").set("");
      ctx.go("#/setup/begin");
    },
  });
}
