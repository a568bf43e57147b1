// Set-ups that were begun and not finished. The platform has no list of them, so this browser remembers where they are.

import { del, get } from "./api.js";
import { RESTING_MS, lazily } from "./app.js";
import { moment } from "./format.js";
import { confirmation, draftOf, link, press } from "./parts.js";
import { h } from "./view.js";

const SETUPS = "lamplighter.setups";
const MOST_SETUPS = 10;

function storedSetups() {
  try {
    const all = JSON.parse(localStorage.getItem(SETUPS) ?? "[]");
    return Array.isArray(all) ? all.filter((one) => /^cht_[0-9a-f]{32}$/.test(one)) : [];
  } catch {
    return [];
  }
}

function storeSetups(all) {
  if (all.length > 0) localStorage.setItem(SETUPS, JSON.stringify(all.slice(-MOST_SETUPS)));
  else localStorage.removeItem(SETUPS);
}

/** What the person has made of the draft of a set-up. It outlives the tab, as the conversation does. */
export const setupDraftStore = (chatId) => draftOf(`agent draft ${chatId}`, { lasts: true });

/** Remembers a set-up that was begun. */
export function rememberSetup(chatId) {
  storeSetups([...storedSetups().filter((one) => one !== chatId), chatId]);
}

/** Forgets a set-up: it was finished, or deleted. */
export function forgetSetupOf(chatId) {
  storeSetups(storedSetups().filter((one) => one !== chatId));
  setupDraftStore(chatId).set("");
}

function nameOf(chatId, chat) {
  try {
    const name = JSON.parse(setupDraftStore(chatId).get() || "{}").mine?.name?.trim();
    if (name) return name;
  } catch {
    // It was written by another version of the console.
  }
  return chat.title || "an agent";
}

/** The set-ups that can be gone on with. They are shown only when the platform has confirmed that they are this person's. */
export function unfinishedSetups(ctx) {
  const chats = storedSetups().map((chatId) => [chatId, lazily(`set-up ${chatId}`, () => get(`/chats/${chatId}?limit=1`), 10 * RESTING_MS)]);
  const known = chats.filter(([, chat]) => chat && !chat.agent_id);
  if (known.length === 0) return null;
  return h(
    "ul",
    { class: "setups", key: "setups", "aria-label": "Unfinished set-ups" },
    [...known].reverse().map(([chatId, chat]) => {
      const name = nameOf(chatId, chat);
      return h(
        "li",
        { key: chatId, class: "banner" },
        h("p", {}, "Unfinished set-up: ", h("b", {}, name), h("span", { class: "muted" }, ` · ${moment(chat.updated_at ?? chat.created_at)}`)),
        press("Discard", () => askToDiscard(ctx, chatId, name)),
        link("Continue", `#/setup/${chatId}`, { kind: "primary" }),
      );
    }),
  );
}

function askToDiscard(ctx, chatId, name) {
  confirmation(ctx, {
    title: "Discard this set-up?",
    key: `discard ${chatId}`,
    label: "Discard",
    text: `The conversation and the draft of “${name}” are deleted. No agent is created.`,
    act: async () => {
      await del(`/chats/${chatId}`).catch((error) => {
        if (error.status !== 404) throw error;
      });
      forgetSetupOf(chatId);
      const kept = draftOf("setup chat", { lasts: true });
      if (kept.get() === chatId) kept.set("");
    },
  });
}
