// The conversation about an action.

import { get, getAll, post } from "./api.js";
import { proposalCard, questionCard } from "./cards.js";
import { figure } from "./format.js";
import { markdownStream, markdownView } from "./markdown.js";
import { outcomeLines } from "./outcomes.js";
import { button, draftOf, empty, failureOf, isStopped, section, sendOnEnter, when } from "./parts.js";
import { follow, turn } from "./sse.js";
import { stoppedNote } from "./stop.js";
import { h } from "./view.js";

/** How the text of a message is shown: what a person has typed as it is, what the agent says as Markdown. */
const messageText = (text, isMine) => (isMine ? h("div", { class: "long" }, text) : markdownView(text));

const MOST_MESSAGE_PAGES = 5;

/** All messages about an action, oldest first. */
export async function readActionTalk(actionId, signal) {
  const path = `/actions/${actionId}/messages?limit=200`;
  const first = await get(path, signal);
  if (!first.has_more) return { data: first.data, complete: true, summary: first.summary ?? null };
  const all = await getAll(path, MOST_MESSAGE_PAGES, signal);
  return { ...all, summary: first.summary ?? null };
}

/** The proposals of an agent that would change this action. */
export async function readChanges(agentId, actionId, signal) {
  const all = await getAll(`/agents/${agentId}/proposals?limit=200`, 2, signal);
  return all.data.filter((proposal) => proposal.action_id === actionId);
}

export function actionTalkView(ctx, action, talk, proposals, question) {
  const state = (ctx.state.talk ??= { draft: draftOf(`talk ${action.action_id}`), text: null, live: null });
  state.text ??= state.draft.get();
  goOnTalking(ctx, state, talk);
  const { live } = state;
  const lastOf = new Map(talk.data.filter((message) => message.run_id).map((message) => [message.run_id, message]));
  const isStored = live && talk.data.some((message) => message.run_id === live.runId && message.role === "user");
  return h(
    "section",
    { class: "about", "aria-label": "Conversation about this action" },
    talk.data.length === 0 && !live && empty("Nothing has been said about this action yet. Ask why it ran, or say what it should do otherwise."),
    !talk.complete && h("p", { class: "muted" }, "Older messages are not shown here."),
    h(
      "ol",
      { class: "about-said" },
      talk.data.filter((message) => !live || message.run_id !== live.runId || message.role === "user").map((message) => [oneMessage(message), lastOf.get(message.run_id) === message && outcomesOf(ctx, message.run_id), talk.summary?.up_to === message.message_id && h("li", { class: "about-mark", key: `mark ${message.message_id}` }, `A summary of ${figure(talk.summary.count)} messages replaces what is above for the agent.`)]),
      live && !isStored && live.mine && h("li", { class: "about-mine", key: "mine now" }, messageText(live.mine, true)),
      live && h("li", { class: "about-theirs", key: "theirs now", "aria-busy": "true" }, live.text ? h("div", { class: "md", key: `stream ${live.restarts}`, opaque: true, use: (node) => liveText(live, node) }) : h("p", { class: "muted" }, live.tool ? `It calls ${live.tool}…` : "It reads…")),
    ),
    question && questionCard(ctx, question),
    proposals.length > 0 && section("Proposed changes", { note: proposals.length }, proposals.map((proposal) => proposalCard(ctx, proposal))),
    failureOf(ctx, "talk"),
    stoppedNote(ctx, "no reply is written. Your text is kept"),
    h(
      "form",
      {
        class: "about-composer",
        onsubmit: (event) => {
          event.preventDefault();
          const text = state.text.trim();
          if (!text || state.live || isStopped(ctx)) return;
          // The last letters may not have been drawn yet, so the field would keep them.
          event.target.querySelector("textarea").value = "";
          sendAbout(ctx, state, action, text);
        },
      },
      h("label", { class: "vh", for: "talk-text" }, "Message about this action"),
      h("textarea", {
        id: "talk-text",
        rows: "2",
        maxlength: "32000",
        placeholder: "Why did it fail? Or: from now on, write at most 200 words.",
        value: state.text,
        onkeydown: sendOnEnter,
        oninput: (event) => {
          state.text = event.target.value;
          state.draft.set(state.text);
          ctx.redraw();
        },
      }),
      h(
        "div",
        { class: "acts" },
        h("span", { class: "muted" }, "Nothing changes before you take a proposal over."),
        h("div", { class: "end" }, live?.runId && button(ctx, "Stop", { key: "stop talk", act: () => post(`/runs/${live.runId}/cancel`) }), h("button", { class: "btn primary", disabled: state.text.trim() === "" || Boolean(live) || isStopped(ctx) }, "Send")),
      ),
    ),
  );
}

/** What the person has decided about the changes that a reply proposed. */
function outcomesOf(ctx, runId) {
  const lines = outcomeLines(ctx, runId);
  return lines.length > 0 && h("li", { class: "about-theirs", key: `outcomes ${runId}` }, lines);
}

function oneMessage(message) {
  const isMine = message.role === "user";
  return h("li", { key: message.message_id, class: isMine ? "about-mine" : "about-theirs" }, h("p", { class: "muted who" }, isMine ? "You" : "The agent", " · ", when(message.created_at, { form: "moment" })), messageText(message.content, isMine));
}

/** Shows the reply as it comes: pieces go to nodes of their own, so that they do not draw the page again. */
function liveText(live, node) {
  live.stream = markdownStream(node);
  live.stream.push(live.text);
  return () => {
    live.stream = null;
  };
}

function talkEvents(state, ctx) {
  return (event) => {
    const { live } = state;
    if (!live) return;
    if (event.event === "message.delta" || event.event === "message.completed") {
      // The pieces of a step are the text of the step. A finished step is followed by an empty line.
      const piece = event.event === "message.delta" ? event.data.text : "\n\n";
      const isFirst = live.text === "";
      live.text += piece;
      if (live.stream) live.stream.push(piece);
      if (event.event === "message.completed") live.kept = live.text.length;
      if (!isFirst) return;
    } else if (event.event === "tool.requested") live.tool = event.data.tool;
    else if (event.event === "step.restarted") {
      // Another process begins the step again: what it had said of it is void.
      live.text = live.text.slice(0, live.kept);
      live.restarts++;
    } else return;
    ctx.redraw();
  };
}

async function sendAbout(ctx, state, action, text) {
  state.live = { mine: text, runId: null, text: "", kept: 0, restarts: 0, stream: null, tool: null };
  state.text = "";
  await ctx.act("talk", async () => {
    try {
      await turn(`/actions/${action.action_id}/messages`, { content: text }, { on: talkEvents(state, ctx), signal: ctx.signal, started: (runId) => { state.live.runId = runId; } });
      state.draft.set("");
      ctx.say("Reply finished");
    } catch (error) {
      // What was not sent stays in the field.
      if (!state.live?.runId && !ctx.signal.aborted) state.text ||= text;
      throw error;
    } finally {
      await ctx.refresh();
      state.live = null;
    }
  });
}

/** After a reload, the reply to the newest message may still be on its way. */
function goOnTalking(ctx, state, talk) {
  const last = talk.data.at(-1);
  if (state.live || state.asked || !last || last.role !== "user" || !last.run_id) return;
  state.asked = true;
  (async () => {
    const run = await get(`/runs/${last.run_id}`, ctx.signal).catch(() => null);
    if (run?.state !== "running") return;
    state.live = { mine: null, runId: last.run_id, text: "", kept: 0, restarts: 0, stream: null, tool: null };
    try {
      await follow(last.run_id, { on: talkEvents(state, ctx), signal: ctx.signal });
      await ctx.refresh();
    } finally {
      state.live = null;
    }
  })().catch(() => {});
}
