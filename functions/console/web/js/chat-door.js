// A chat by its id alone: what the memory knows of where a fact comes from. It leads to the page of the chat.

import { h } from "./view.js";

export const chatDoorPage = {
  nav: "agents",
  title: () => "A chat",
  reads: (ctx) => ({ chat: `/chats/${encodeURIComponent(ctx.params.chat_id)}?limit=1` }),
  view(ctx) {
    const { chat_id: chatId, agent_id: agentId, project_id: projectId } = ctx.data.chat;
    // Not in the history: the way back would lead here again.
    location.replace(agentId ? `#/agents/${agentId}/chat/${chatId}` : projectId ? `#/themes/${projectId}/chat/${chatId}` : `#/setup/${chatId}`);
    return h("p", { class: "muted", key: "door" }, "Opening the chat…");
  },
};
