// The chat of an agent.

import { agentHead, askForActions } from "./agent-head.js";
import { get } from "./api.js";
import { LIVE_MS, keep, lazily } from "./app.js";
import { moment } from "./format.js";
import { dialog, empty, link, press } from "./parts.js";
import { TALK_PAGE, askToReset, composer, newTalk, readTalk, talkView, writeIn } from "./talk.js";
import { h } from "./view.js";

/** Messages of another tab or device are read this often. */
const IDLE_MS = 10_000;

const chatPath = (chatId) => `/chats/${chatId}?limit=${TALK_PAGE}`;
const isNew = (ctx) => ctx.params.chat_id === "new";

/** The chat of the address, or else the newest one when the page was opened. */
function chatIdOf(ctx) {
  if (ctx.params.chat_id) return isNew(ctx) ? null : ctx.params.chat_id;
  ctx.state.chatId ??= ctx.data.chats?.data[0]?.chat_id ?? null;
  return ctx.state.chatId;
}

function talkOf(ctx) {
  const { agent_id: agentId } = ctx.params;
  ctx.state.talk ??= newTalk({
    path: `/agents/${agentId}/chat`,
    draftKey: `chat ${agentId}`,
    onchat: (chatId) => {
      keep(chatPath(chatId), { chat_id: chatId, messages: [], has_more: false });
      if (!isNew(ctx)) ctx.state.chatId = chatId;
      else {
        // The page stays; only its address becomes that of the chat that has begun.
        ctx.params.chat_id = chatId;
        history.replaceState(null, "", `#/agents/${agentId}/chat/${chatId}`);
      }
    },
  });
  return ctx.state.talk;
}

export const chatPage = {
  nav: "agents",
  title: (ctx) => ctx.data.agent.name,
  reads(ctx) {
    const at = `/agents/${ctx.params.agent_id}`;
    const reads = { agent: at, chats: `${at}/chats?limit=50` };
    // Below, `ctx.data` would ask for these reads again.
    if (ctx.state.isReading) return reads;
    ctx.state.isReading = true;
    const chatId = chatIdOf(ctx);
    ctx.state.isReading = false;
    return { ...reads, proposals: `${at}/proposals?limit=20`, ...(chatId && { chat: chatPath(chatId) }) };
  },
  every: (ctx) => (ctx.state.talk?.run?.state === "waiting" ? LIVE_MS : IDLE_MS),
  view(ctx) {
    const { agent, chats, chat, proposals } = ctx.data;
    if (chat?.agent_id && chat.agent_id !== agent.agent_id) return h("div", { class: "lost", key: "other" }, h("h1", {}, "This chat belongs to another agent"), h("p", {}, link("Open it there", `#/agents/${chat.agent_id}/chat/${chat.chat_id}`, { kind: "" })));
    const talk = talkOf(ctx);
    readTalk(ctx, talk, chat);
    const isArchived = agent.status === "archived";
    return h(
      "div",
      { key: "chat", class: "chat-page" },
      agentHead(agent, "chat", {
        aside: [
          chats.data.length > 0 && press("Chats", () => openChats(ctx), { kind: "quiet" }),
          talk.messages.length > 0 && press("Reset conversation", () => askToReset(ctx, talk), { kind: "quiet", disabled: Boolean(talk.live) }),
          talk.messages.length > 0 && link("New chat", `#/agents/${agent.agent_id}/chat/new`, { kind: "" }),
        ],
      }),
      h("h2", { class: "vh" }, "Conversation"),
      talkView(ctx, talk, {
        summary: chat?.summary,
        proposals: proposals.data,
        greeting: talk.messages.length === 0 && greetingOf(ctx, agent, talk),
      }),
      composer(ctx, talk, { placeholder: "Ask, or plan something…", label: `Message to ${agent.name}`, disabled: isArchived }),
    );
  },
};

function greetingOf(ctx, agent, talk) {
  if (agent.status === "archived") return empty("This agent is archived. It takes no messages.");
  const actions = lazily(`has actions ${agent.agent_id}`, () => get(`/actions?agent_id=${encodeURIComponent(agent.agent_id)}&limit=1`));
  if (actions?.data.length !== 0) return empty("Ask for something to be written, or say what it should do regularly.");
  return empty("Ask for something to be written, or say what it should do regularly. Nothing runs by itself yet: for that it needs an action.", askForActions(ctx, agent, { write: (text) => writeIn(talk, text) }));
}

function openChats(ctx) {
  const { agent_id: agentId } = ctx.params;
  const current = chatIdOf(ctx);
  ctx.open(() =>
    dialog(
      { title: "Chats", onclose: () => ctx.close() },
      h(
        "ul",
        { class: "rows chats" },
        ctx.data.chats.data.map((chat) =>
          h(
            "li",
            { key: chat.chat_id },
            h("span", { class: "when" }, moment(chat.created_at)),
            h("span", { class: "what" }, h("a", { href: `#/agents/${agentId}/chat/${chat.chat_id}`, "aria-current": chat.chat_id === current ? "true" : null, onclick: () => ctx.close() }, chat.title || "Untitled")),
            h("span", { class: "end muted" }, chat.chat_id === current && "open now"),
          ),
        ),
      ),
      ctx.data.chats.has_more && h("p", { class: "muted" }, "There are more than these."),
      h("div", { class: "acts" }, h("div", { class: "end" }, h("a", { class: "btn primary", href: `#/agents/${agentId}/chat/new`, onclick: () => ctx.close() }, "New chat"))),
    ),
  );
}
