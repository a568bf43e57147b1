// A conversation: its stored messages, the reply that is being written, and the field for the next message.
//
// Stored messages come from the reads of the page. A run that goes on is followed event by event; what it says is added to nodes of its own,
// so a piece of text never draws the page again.

import { get, post } from "./api.js";
import { callCard, proposalCard } from "./cards.js";
import { bytes, capital, counted, helperName, moment, money, spaced } from "./format.js";
import { foreignLink, markdownStream, markdownView, readContent } from "./markdown.js";
import { knewLater, knewView } from "./memory-facts.js";
import { isAnswered, outcomeLines } from "./outcomes.js";
import { button, confirmation, draftOf, failureOf, failureText, isStopped, press, sendOnEnter, when } from "./parts.js";
import { follow, turn } from "./sse.js";
import { stoppedNote } from "./stop.js";
import { asText } from "./changes.js";
import { h, visible } from "./view.js";

export const TALK_PAGE = 50;
const OLDER_PAGE = 200;
/** Nearer to the end than this, the page follows the reply. */
const NEAR_PX = 64;

const ENDED = new Set(["completed", "failed", "cancelled"]);

let talks = 0;

/**
 * What the turns of a conversation may have of their own: more for the `body` of a message; what stands `above` and `below` what a run did;
 * `stepWords` for a tool and what it was asked with; whether a message may have images, and whether a reply says what it knew.
 */
const TURNS = { body: () => ({}), above: () => null, below: () => null, stepWords: () => null, takesImages: true, tellsMemory: true };

/** Where a conversation is kept while its page is shown. `path` takes the turns; `onchat` is told the id of a new chat. */
export function newTalk({ path, draftKey, onchat, onagent, turns }) {
  return {
    id: ++talks,
    path,
    turns: { ...TURNS, ...turns },
    draft: draftOf(draftKey),
    onchat,
    onagent,
    chatId: null,
    read: null,
    run: null,
    isReadingRun: false,
    messages: [],
    cursor: null,
    hasOlder: false,
    runs: new Map(),
    live: null,
    asked: null,
    failure: null,
    views: new Map(),
    follows: true,
    isAway: false,
    input: null,
    images: [],
  };
}

/** Takes in what was read: `chat` is a page of the newest messages. */
export function readTalk(ctx, talk, chat) {
  if (!chat || chat === talk.read) return;
  talk.read = chat;
  talk.chatId = chat.chat_id;
  const fresh = new Set(chat.messages.map((one) => one.message_id));
  const first = talk.messages.findIndex((one) => fresh.has(one.message_id));
  if (first >= 0) talk.messages = [...talk.messages.slice(0, first), ...chat.messages];
  else {
    // The first page, or a conversation that was reset, or more new messages than a page has.
    talk.messages = chat.messages;
    talk.cursor = chat.next_cursor ?? null;
    talk.hasOlder = chat.has_more;
  }
  queueMicrotask(() => readRun(ctx, talk));
}

/** Reads the run of the newest message until it has ended, and follows it if it goes on. */
async function readRun(ctx, talk) {
  const runId = talk.messages.at(-1)?.run_id;
  if (!runId || talk.live || talk.asked || talk.isReadingRun || (talk.run?.run_id === runId && ENDED.has(talk.run.state))) return;
  talk.isReadingRun = true;
  try {
    talk.run = await get(`/runs/${runId}`, ctx.signal);
  } catch (error) {
    // A run is kept for a shorter time than its messages.
    if (error.status === 404) talk.run = { run_id: runId, state: "completed" };
    return;
  } finally {
    talk.isReadingRun = false;
  }
  ctx.redraw();
  if (talk.live || talk.asked) return;
  const { state } = talk.run;
  const known = talk.runs.get(runId)?.state;
  if (known === "waiting" ? state !== "waiting" : state === "running" || (state === "waiting" && !known)) followRun(ctx, talk, runId);
}

// ---- Runs ----

function recordOf(talk, runId) {
  if (!talk.runs.has(runId)) talk.runs.set(runId, { runId, state: "running", items: [], last: 0, error: null, theme: null, changed: null });
  return talk.runs.get(runId);
}

async function followRun(ctx, talk, runId) {
  if (talk.live) return;
  const record = recordOf(talk, runId);
  record.state = "running";
  talk.live = record;
  ctx.redraw();
  await streamed(ctx, talk, () => record, null);
  await endRun(ctx, talk, record);
}

/**
 * Reads the events of a run until it has ended. `begin(signal)` begins it, if it is not under way. While nobody sees the page, no connection is
 * held; afterwards the run is followed from the last event on. Throws only if the run has not begun.
 */
async function streamed(ctx, talk, recordNow, begin) {
  for (;;) {
    const connection = new AbortController();
    const cut = () => connection.abort();
    const onhide = () => document.hidden && recordNow() && cut();
    ctx.signal.addEventListener("abort", cut);
    document.addEventListener("visibilitychange", onhide);
    try {
      if (begin && !recordNow()) await begin(connection.signal);
      else await follow(recordNow().runId, { after: recordNow().last, signal: connection.signal, on: (event) => onEvent(ctx, talk, recordNow(), event) });
    } catch (error) {
      if (ctx.signal.aborted) return;
      if (!recordNow()) throw error;
      if (!connection.signal.aborted) recordNow().error ??= { code: error.code ?? "unknown", detail: error.message };
    } finally {
      ctx.signal.removeEventListener("abort", cut);
      document.removeEventListener("visibilitychange", onhide);
    }
    if (!connection.signal.aborted || ctx.signal.aborted || recordNow()?.state !== "running") return;
    if (document.hidden) await new Promise((done) => document.addEventListener("visibilitychange", done, { once: true }));
  }
}

async function endRun(ctx, talk, record) {
  if (ctx.signal.aborted) return;
  for (const item of record.items) item.stream?.end();
  if (record.state === "running") record.state = "ended";
  // The stored messages come first, so that nothing is missing for a moment.
  await ctx.refresh();
  if (talk.live === record) talk.live = null;
  if (talk.asked?.runId === record.runId) talk.asked = null;
  await readRun(ctx, talk);
  if (record.state === "completed") ctx.say("Reply finished.");
  ctx.redraw();
}

/** Sends a message and follows the reply. If the turn cannot begin, the text is in the field again. */
export async function sendTurn(ctx, talk, text, images = []) {
  if (talk.live || talk.asked) return;
  talk.failure = null;
  talk.asked = { text, images: images.length, runId: null };
  talk.follows = true;
  ctx.redraw();
  let record = null;
  const body = { ...talk.turns.body(), message: text, ...(talk.chatId && { chat_id: talk.chatId }), ...(images.length > 0 && { images: images.map(({ media_type, data }) => ({ media_type, data })) }) };
  const on = (event) => {
    if (event.event === "run.started" && !record) {
      record = recordOf(talk, event.data.run_id);
      talk.live = record;
      talk.asked.runId = record.runId;
      talk.draft.set(talk.input?.value ?? "");
      if (!talk.chatId && event.data.chat_id) {
        talk.chatId = event.data.chat_id;
        talk.onchat?.(talk.chatId);
      }
    }
    if (record) onEvent(ctx, talk, record, event);
  };
  try {
    await streamed(ctx, talk, () => record, (signal) => turn(talk.path, body, { on, signal }));
  } catch (error) {
    if (ctx.signal.aborted) return;
    talk.asked = null;
    talk.images = images;
    // What was typed meanwhile is not overwritten: the failed text is in the message below.
    if (!talk.input?.value) {
      talk.draft.set(text);
      if (talk.input) talk.input.value = text;
    }
    if (error.code === "turn_in_progress" && error.current?.run_id) {
      talk.failure = { detail: "A reply is being written, perhaps for another tab. Your text is kept: send it when the reply has ended.", code: error.code };
      ctx.redraw();
      return followRun(ctx, talk, error.current.run_id);
    }
    talk.failure = { detail: failureText(error), code: error.code, fields: error.fields, requestId: error.requestId, text };
    ctx.say(error.message);
    ctx.redraw();
    return;
  }
  if (record) await endRun(ctx, talk, record);
  else talk.asked = null;
  ctx.redraw();
}

function textItem(record, id) {
  const last = record.items.at(-1);
  if (last?.kind === "text" && !last.isDone) return last;
  const item = { kind: "text", key: `text ${id}`, text: "", pieces: [], stream: null, isDone: false };
  record.items.push(item);
  return item;
}

function addText(item, id, text) {
  item.pieces.push([id, text]);
  item.text += text;
  if (item.stream) item.stream.push(text);
  else if (item.node) item.node.append(visible(text));
}

function onEvent(ctx, talk, record, { id, event, data }) {
  if (id !== null) {
    if (id <= record.last) return;
    record.last = id;
  }
  switch (event) {
    case "message.delta": {
      const known = record.items.at(-1);
      const item = textItem(record, id);
      addText(item, id, data.text);
      if (item === known) return;
      break;
    }
    case "thinking.delta": {
      const last = record.items.at(-1);
      if (last?.kind === "thinking") return addText(last, id, data.text);
      const item = { kind: "thinking", key: `thinking ${id}`, text: "", pieces: [], node: null };
      record.items.push(item);
      addText(item, id, data.text);
      break;
    }
    case "message.completed": {
      const item = record.items.findLast((one) => one.kind === "text" && !one.isDone);
      // What was streamed stands, unless the finished text says something else.
      if (!item && data.text) {
        const whole = textItem(record, id);
        addText(whole, id, data.text);
        whole.isDone = true;
      } else if (item) {
        item.isDone = true;
        if (data.text.trim() !== item.text.trim() && data.text.length < 90_000) Object.assign(item, { text: data.text, pieces: [[id, data.text]], key: `text ${id}`, stream: null });
        item.stream?.end();
      }
      break;
    }
    case "tool.requested":
      record.items.push({ kind: "tool", key: `tool ${id}`, id, callId: data.call_id, tool: data.tool, words: talk.turns.stepWords(data.tool, data.input), input: data.input, result: null });
      break;
    case "tool.result": {
      const item = record.items.findLast((one) => one.kind === "tool" && one.callId === data.call_id);
      if (item) Object.assign(item, { result: data.result, isError: data.is_error });
      break;
    }
    case "asset.proposed":
    case "action.proposed":
      record.items.push({ kind: "proposal", key: `proposal ${id}`, id, proposal: { ...data, kind: event === "asset.proposed" ? "asset" : "action" } });
      ctx.refresh();
      break;
    case "agent.proposed":
      talk.onagent?.(data.agent_draft);
      break;
    case "step.restarted":
      record.items = record.items.flatMap((item) => restarted(item, data.void_from, id));
      break;
    case "model.fallback":
      record.items.push({ kind: "line", key: `line ${id}`, id, text: `${data.from} did not answer (${spaced(data.code)}). ${data.to} answers.` });
      break;
    case "context.reduced":
      record.items.push({ kind: "line", key: `line ${id}`, id, text: reducedText(data) });
      break;
    case "history.cut":
      record.items.push({ kind: "line", key: `line ${id}`, id, text: `A summary now replaces the oldest ${counted(data.count, "message")} for the model.` });
      break;
    case "deliverable.invalid":
      record.items.push({ kind: "line", key: `line ${id}`, id, text: `A draft could not be used and is made again: ${data.reason}` });
      break;
    case "run.completed":
    case "run.failed":
    case "run.cancelled":
    case "run.waiting":
      record.state = data.state ?? event.slice(4);
      record.error = data.error ?? null;
      for (const item of record.items) item.stream?.end();
      break;
    case "turn.escalated":
      record.items.push({ kind: "line", key: `line ${id}`, id, text: largerText(data) });
      break;
    case "theme.changed":
      record.changed = data;
      break;
    // After a crash the first of them can come again.
    case "helper.started":
    case "helper.ended": {
      const known = record.items.find((one) => one.kind === "helper" && one.runId === data.run_id);
      const item = known ?? { kind: "helper", key: `helper ${data.run_id}`, id, runId: data.run_id, role: data.role, task: "", files: [], ended: null };
      if (!known) record.items.push(item);
      Object.assign(item, event === "helper.ended" ? { ended: data } : { task: data.task, files: data.files });
      break;
    }
    case "run.started":
      if (!data.theme) return;
      record.theme = data.theme;
      break;
    case "usage.updated":
    case "call.approved":
    case "call.rejected":
    case "call.resolved":
    case "call.waiting":
      return;
    default:
      return;
  }
  ctx.redraw();
}

/** Why a turn became larger than it was planned. */
export const largerText = ({ why }) => `Larger than planned: ${why.replace(/\.$/, "")}.`;

function reducedText(data) {
  const parts = [
    data.messages_left_out > 0 && counted(data.messages_left_out, "old message"),
    data.images_left_out > 0 && counted(data.images_left_out, "image"),
    data.results_shortened > 0 && `parts of ${counted(data.results_shortened, "result")}`,
  ].filter(Boolean);
  return `The conversation was larger than the model can read, so this reply was written without ${parts.join(", ") || "a part of it"}.`;
}

/** An item without what came after a step began again. */
function restarted(item, from, id) {
  if (!item.pieces) return (item.id ?? 0) >= from ? [] : [item];
  const pieces = item.pieces.filter(([piece]) => piece < from);
  if (pieces.length === item.pieces.length) return [item];
  if (pieces.length === 0) return [];
  return [{ ...item, key: `${item.key} ${id}`, pieces, text: pieces.map(([, text]) => text).join(""), stream: null, node: null, isDone: true }];
}

// ---- What is shown ----

/** The conversation. `proposals` are those of its runs; `greeting` stands where no message is. */
export function talkView(ctx, talk, { summary, proposals = [], greeting }) {
  const { messages, live, asked } = talk;
  const lastOf = new Map(messages.map((one) => [one.run_id, one.message_id]));
  const answered = new Set(messages.filter((one) => one.role === "assistant").map((one) => one.run_id));
  const shown = [];
  const done = new Set();
  const headed = new Set();
  for (const message of messages) {
    const { run_id: runId } = message;
    const record = talk.runs.get(runId);
    // What was streamed keeps its nodes, unless the stored text differs.
    const isStreamed = record && (record === live || !answered.has(runId) || saysTheSame(record, messages));
    const above = message.role === "assistant" && !isStreamed && runId && !headed.has(runId) ? talk.turns.above(ctx, talk, runId, record ?? null) : null;
    if (message.role === "assistant") headed.add(runId);
    if (above) shown.push(h("li", { class: "reply before", key: `before ${runId}` }, above));
    if (message.role === "user" || !isStreamed) shown.push(storedView(talk, message, record));
    if (!runId || lastOf.get(runId) !== message.message_id) continue;
    if (isStreamed) shown.push(runView(ctx, talk, record, proposals));
    else shown.push(afterRun(ctx, talk, runId, proposals));
    done.add(runId);
  }
  if (summary) {
    const at = shown.findIndex((one) => one?.key === summary.up_to);
    if (at >= 0) shown.splice(at + 1, 0, summaryMark(summary));
  }
  if (asked && !messages.some((one) => one.run_id && one.run_id === asked.runId)) shown.push(saidView("asked", asked.text, asked.images, null));
  if (live && !done.has(live.runId)) shown.push(runView(ctx, talk, live, proposals));
  if (asked && !live) shown.push(h("li", { class: "reply", key: "wait" }, h("p", { class: "muted typing" }, "Sending…")));
  return [
    talk.hasOlder && h("p", { class: "older", key: "older" }, button(ctx, "Older messages", { key: "older", kind: "quiet", act: () => readOlder(ctx, talk) }), failureOf(ctx, "older")),
    shown.length === 0 && greeting,
    h("ol", { class: "talk", key: `talk ${talk.id}`, "aria-label": "Conversation", "aria-live": "off", use: (node) => watchEnd(ctx, talk, node) }, shown),
    talk.failure && talkFailure(ctx, talk),
  ];
}

function saysTheSame(record, messages) {
  if (record.same !== undefined && record.sameOf === messages) return record.same;
  const stored = messages.filter((one) => one.run_id === record.runId && one.role === "assistant").map((one) => one.content.trim()).join("\n");
  const streamed = record.items.filter((one) => one.kind === "text").map((one) => one.text.trim()).join("\n");
  record.sameOf = messages;
  return (record.same = stored === streamed);
}

function storedView(talk, message, record) {
  const known = talk.views.get(message.message_id);
  if (known && known.content === message.content && known.record === record) return known.view;
  const view =
    message.role === "user"
      ? saidView(message.message_id, message.content, message.images?.length ?? 0, message.created_at)
      : h(
          "li",
          { class: "reply", key: message.message_id },
          h("span", { class: "vh" }, "Reply:"),
          record && stepsOf(record),
          markdownView(message.content),
          message.run_id && h("p", { class: "meta" }, h("a", { href: `#/runs/${message.run_id}` }, moment(message.created_at))),
        );
  talk.views.set(message.message_id, { content: message.content, record, view });
  return view;
}

function saidView(key, text, images, at) {
  return h(
    "li",
    { class: "said", key },
    h("div", { class: "bubble" }, h("span", { class: "vh" }, "You:"), h("p", { class: "long" }, text), images > 0 && h("p", { class: "muted" }, counted(images, "image")), at && h("p", { class: "meta" }, when(at, { form: "moment" }))),
  );
}

const stepsOf = (record) => record.items.filter((item) => item.kind !== "text" && item.kind !== "proposal").map((item) => itemView(item));

/** A run that was watched: what it thought, did and said, in this order. */
function runView(ctx, talk, record, proposals) {
  const isLive = talk.live === record;
  return h(
    "li",
    { class: `reply${isLive ? " live" : ""}`, key: `run ${record.runId}`, "aria-busy": isLive ? "true" : null },
    h("span", { class: "vh", key: "who" }, "Reply:"),
    talk.turns.above(ctx, talk, record.runId, record),
    record.items.map((item) => (item.kind === "proposal" ? null : itemView(item))),
    isLive && record.state === "running" && h("p", { class: "muted typing", key: "typing" }, record.items.length === 0 ? "Thinking…" : "Writing…"),
    runEnd(ctx, talk, record.runId, proposals, record),
    !isLive && talk.path !== "/setup/chat" && h("p", { class: "meta", key: "meta" }, h("a", { href: `#/runs/${record.runId}` }, "See the run")),
  );
}

function itemView(item) {
  switch (item.kind) {
    case "text":
      return h("div", {
        class: "md",
        key: item.key,
        opaque: true,
        use(node) {
          item.stream = markdownStream(node);
          item.stream.push(item.text);
          if (item.isDone) item.stream.end();
        },
      });
    case "thinking":
      return h(
        "details",
        { class: "step", key: item.key },
        h("summary", {}, "Thinking"),
        h("div", {
          class: "long thought",
          opaque: true,
          use(node) {
            item.node = node;
            node.append(visible(item.text));
          },
        }),
      );
    case "tool":
      return h(
        "details",
        { class: "step", key: item.key },
        h("summary", {}, item.words ?? capital(spaced(item.tool)), h("span", { class: item.isError ? "bad" : "muted" }, item.result === null ? " · working…" : item.isError ? " · failed" : "")),
        h("h3", {}, "Asked with"),
        h("pre", { class: "reader", tabindex: "0", "aria-label": "What the tool was asked with" }, asText(item.input) || "nothing"),
        item.result !== null && [h("h3", {}, "Answer"), h("pre", { class: "reader", tabindex: "0", "aria-label": "What the tool answered" }, asText(item.result))],
      );
    case "helper":
      return helperView(item);
    default:
      return h("p", { class: "line muted", key: item.key }, item.text);
  }
}

/** What another model does for the turn, as a lane of its own. */
function helperView({ key, runId, role, task, files, ended }) {
  const state = !ended ? " · working…" : ended.state === "completed" ? " · done" : ` · ${ended.state}`;
  const paths = (title, list) => list.length > 0 && [h("h3", {}, title), h("ul", { class: "plain paths" }, list.map((path) => h("li", { key: `${title} ${path}` }, h("code", {}, path))))];
  return h(
    "details",
    { class: "step lane", key, open: ended ? null : true },
    h("summary", {}, h("b", {}, helperName(role)), task && ` ${task.split("\n")[0].slice(0, 120)}`, h("span", { class: ended && ended.state !== "completed" ? "bad" : "muted" }, state)),
    task.includes("\n") || task.length > 120 ? h("p", { class: "long" }, task) : null,
    ended ? paths("Changed", ended.edited) : paths("It may change", files),
    ended?.error && h("p", { class: "bad" }, ended.error.detail),
    ended?.report && [h("h3", {}, "Report"), h("p", { class: "long" }, ended.report)],
    h("p", { class: "muted" }, [ended?.model, ended?.cost_micros > 0 && money(ended.cost_micros)].filter(Boolean).join(" · "), " ", h("a", { href: `#/runs/${runId}` }, "See what it does")),
  );
}

function afterRun(ctx, talk, runId, proposals) {
  const parts = runEnd(ctx, talk, runId, proposals, null).filter(Boolean);
  return parts.length > 0 && h("li", { class: "reply", key: `after ${runId}` }, parts);
}

/** What stands below a reply: drafts, calls that wait, sources, and how the run ended if it did not succeed. */
function runEnd(ctx, talk, runId, proposals, record) {
  const own = talk.run?.run_id === runId ? talk.run : null;
  const stored = proposals.filter((one) => one.run_id === runId && !isAnswered(one.proposal_id));
  const fresh = (record?.items ?? []).filter((item) => item.kind === "proposal" && talk.live === record && !stored.some((one) => one.proposal_id === item.proposal.proposal_id)).length;
  const state = own && ENDED.has(own.state) ? own.state : (record?.state ?? own?.state);
  const error = own?.error ?? record?.error;
  const sources = own?.sources ?? [];
  const isNewest = talk.messages.at(-1)?.run_id === runId;
  return [
    talk.turns.below(ctx, talk, runId, record),
    ...stored.map((one) => proposalCard(ctx, one, { reader: readContent })),
    fresh > 0 && h("p", { class: "muted", key: "fresh" }, `${counted(fresh, "draft")} written.`),
    ...outcomeLines(ctx, runId),
    ...(own?.cards ?? []).filter((card) => card.state === "waiting").map((card) => callCard(ctx, { ...card, run_id: runId })),
    sources.length > 0 && h("details", { class: "step", key: "sources" }, h("summary", {}, counted(sources.length, "source")), h("p", { class: "muted" }, "Strangers have written these pages."), h("ul", { class: "plain" }, sources.map((one) => h("li", {}, foreignLink({ to: one.url }, [one.title || one.url]))))),
    // The record of the newest run is read anyway.
    !talk.turns.tellsMemory ? null : own || isNewest || talk.path === "/setup/chat" ? knewView(ctx, own?.recalled) : (!record || talk.live !== record) && knewLater(ctx, runId),
    own?.cut_off && h("p", { class: "line muted", key: "cut" }, "The reply ends here because it reached the limit of its length."),
    state === "cancelled" && h("p", { class: "line muted", key: "cancelled" }, "Stopped."),
    state === "failed" && error && runFailed(ctx, talk, runId, error),
  ];
}

function runFailed(ctx, talk, runId, error) {
  const asked = talk.messages.findLast((one) => one.run_id === runId && one.role === "user");
  const isLast = talk.messages.at(-1)?.run_id === runId;
  return h(
    "div",
    { class: "problem compact", role: "alert", key: "failed" },
    h("p", {}, h("b", {}, "No reply. "), error.detail),
    h("p", { class: "muted" }, h("code", {}, error.code)),
    h("div", { class: "acts" }, asked && isLast && !talk.live && press("Send it again", () => sendTurn(ctx, talk, asked.content), { disabled: isStopped(ctx) }), h("a", { class: "btn quiet", href: `#/runs/${runId}` }, "See the run")),
  );
}

function talkFailure(ctx, talk) {
  const { failure } = talk;
  return h(
    "div",
    { class: "problem compact", role: "alert", key: "failure" },
    h("p", {}, failure.detail),
    failure.fields?.length > 0 && h("ul", {}, failure.fields.map((one) => h("li", {}, h("code", {}, one.field), `: ${one.message}`))),
    failure.code && h("p", { class: "muted" }, h("code", {}, failure.code), failure.requestId && ` · ${failure.requestId}`),
    h(
      "div",
      { class: "acts" },
      failure.text && press("Send it again", () => {
        if (talk.input.value.trim() === failure.text) talk.input.value = "";
        sendTurn(ctx, talk, failure.text, talk.images.splice(0));
      }, { disabled: isStopped(ctx) }),
      press("Close", () => {
        talk.failure = null;
        ctx.redraw();
      }, { kind: "quiet" }),
    ),
  );
}

function summaryMark(summary) {
  return h(
    "li",
    { class: "summary-mark", key: "summary" },
    h("details", {}, h("summary", {}, `For the model, a summary replaces what is above: ${counted(summary.count, "message")}`), h("p", { class: "muted" }, summary.by === "model" ? "A model has written it." : "A program has kept the beginnings of the messages."), markdownView(summary.text)),
  );
}

async function readOlder(ctx, talk) {
  const page = await get(`/chats/${talk.chatId}?limit=${OLDER_PAGE}&cursor=${encodeURIComponent(talk.cursor)}`, ctx.signal);
  const height = document.documentElement.scrollHeight;
  talk.messages = [...page.messages, ...talk.messages];
  talk.cursor = page.next_cursor ?? null;
  talk.hasOlder = page.has_more;
  talk.follows = false;
  const top = scrollY;
  ctx.redraw();
  // What was read stays where it is.
  requestAnimationFrame(() => requestAnimationFrame(() => Math.abs(scrollY - top) < 2 && scrollTo(0, top + document.documentElement.scrollHeight - height)));
}

// ---- The end of the page ----

/** How far below the window the end of the conversation is. On a phone, a draft may stand below it. */
const belowWindow = () => document.querySelector("#main").getBoundingClientRect().bottom - innerHeight;
const isNearEnd = () => Math.abs(belowWindow()) <= NEAR_PX;

function toEnd() {
  const below = belowWindow();
  if (below > 0) scrollBy(0, below);
}

/** Follows the end of the conversation while the person is there, and else says that there is something newer. */
function watchEnd(ctx, talk, node) {
  const onresize = () => {
    if (talk.follows) toEnd();
    else away(belowWindow() > NEAR_PX);
  };
  const away = (isAway) => {
    if (talk.isAway === isAway) return;
    talk.isAway = isAway;
    ctx.redraw();
  };
  let top = scrollY;
  const onscroll = () => {
    const isNear = isNearEnd();
    // The page may have grown since: only a person scrolls up.
    if (isNear || scrollY < top - 2) talk.follows = isNear;
    top = scrollY;
    away(belowWindow() > NEAR_PX && !talk.follows);
  };
  const observer = new ResizeObserver(onresize);
  observer.observe(node);
  addEventListener("scroll", onscroll, { passive: true });
  return () => {
    observer.disconnect();
    removeEventListener("scroll", onscroll);
  };
}

// ---- The field ----

function submitTalk(ctx, talk) {
  const text = (talk.input?.value ?? "").trim();
  if (!text) return;
  if (isStopped(ctx)) return ctx.say("Everything is stopped. Your text is kept.");
  if (talk.live || talk.asked) return ctx.say("A reply is being written. Your text is kept.");
  talk.input.value = "";
  const { images } = talk;
  talk.images = [];
  sendTurn(ctx, talk, text, images);
}

const IMAGE_TYPES = ["image/png", "image/jpeg", "image/gif", "image/webp"];
const MOST_IMAGES = 8;
const MOST_IMAGE_BYTES = 3_000_000;

/** Takes images for the next message, as far as the limits of a turn allow. */
async function addImages(ctx, talk, files) {
  for (const file of files) {
    const total = talk.images.reduce((sum, one) => sum + one.bytes, file.size);
    const refused = !IMAGE_TYPES.includes(file.type)
      ? "is not a PNG, JPEG, GIF or WebP image"
      : talk.images.length === MOST_IMAGES
        ? `is one too many: a message has at most ${MOST_IMAGES} images`
        : total > MOST_IMAGE_BYTES
          ? `is too large: the images of a message have at most ${bytes(MOST_IMAGE_BYTES)} together`
          : null;
    if (refused) {
      talk.failure = { detail: `${file.name || "The image"} ${refused}.`, code: null };
      continue;
    }
    const image = { media_type: file.type, bytes: file.size, name: file.name || "image", url: URL.createObjectURL(file), data: "" };
    talk.images.push(image);
    const reader = new FileReader();
    await new Promise((done) => {
      reader.onloadend = done;
      reader.readAsDataURL(file);
    });
    if (reader.error) dropImage(ctx, talk, image);
    else image.data = reader.result.slice(reader.result.indexOf(",") + 1);
  }
  ctx.redraw();
}

function dropImage(ctx, talk, image) {
  URL.revokeObjectURL(image.url);
  talk.images = talk.images.filter((one) => one !== image);
  ctx.redraw();
}

function pastedImages(ctx, talk, event, transfer) {
  const files = [...(transfer?.files ?? [])];
  if (files.length === 0) return;
  event.preventDefault();
  addImages(ctx, talk, files);
}

function imageRow(ctx, talk) {
  return h(
    "ul",
    { class: "images", key: "images", "aria-label": "Images of the message" },
    talk.images.map((image) =>
      h("li", { key: image.url }, h("img", { src: image.url, alt: image.name }), h("button", { class: "btn quiet", type: "button", "aria-label": `Remove ${image.name}`, onclick: () => dropImage(ctx, talk, image) }, "×")),
    ),
  );
}

/** Puts a text into the field for the next message, to be changed and sent by the person. */
export function writeIn(talk, text) {
  talk.draft.set(text);
  talk.input.value = text;
  talk.input.focus();
}

/** The field for the next message. While a reply is written, it can be stopped. `above` stands over the field. */
export function composer(ctx, talk, { placeholder, label = "Your message", disabled = false, focus = false, above }) {
  const runs = talk.live && talk.live.state === "running" ? talk.live : null;
  const key = `stop ${runs?.runId}`;
  return h(
    "form",
    {
      class: "composer",
      key: `composer ${talk.id}`,
      "aria-label": "Write a message",
      onsubmit: (event) => {
        event.preventDefault();
        submitTalk(ctx, talk);
      },
      ...(talk.turns.takesImages && {
        onpaste: (event) => pastedImages(ctx, talk, event, event.clipboardData),
        ondragover: (event) => event.dataTransfer?.types.includes("Files") && event.preventDefault(),
        ondrop: (event) => pastedImages(ctx, talk, event, event.dataTransfer),
      }),
    },
    talk.isAway && h("button", { class: "newest", type: "button", key: "newest", onclick: () => { talk.follows = true; toEnd(); } }, "Newest ↓"),
    failureOf(ctx, key),
    stoppedNote(ctx, "no reply is written. Your text is kept"),
    talk.images.length > 0 && imageRow(ctx, talk),
    above,
    h(
      "div",
      { class: "composer-box" },
      talk.turns.takesImages && h(
        "label",
        { class: "btn quiet icon add-image", key: "add", title: "Add images" },
        h("span", { "aria-hidden": "true" }, "+"),
        h("input", {
          type: "file",
          class: "vh",
          accept: IMAGE_TYPES.join(","),
          multiple: true,
          disabled,
          "aria-label": "Add images",
          onchange: (event) => {
            addImages(ctx, talk, [...event.target.files]);
            event.target.value = "";
          },
        }),
      ),
      h("textarea", {
        name: "message",
        rows: "1",
        maxlength: "32000",
        "aria-label": label,
        placeholder,
        disabled,
        key: "input",
        use: (node) => {
          talk.input = node;
          // What was sent before this field was there, and is not stored yet, is not offered again.
          node.value = talk.asked && talk.asked.text === talk.draft.get() ? "" : talk.draft.get();
          // The address says that the person comes to write.
          if (ctx.query.write !== undefined || focus) queueMicrotask(() => node.focus());
        },
        oninput: (event) => talk.draft.set(event.target.value),
        onkeydown: sendOnEnter,
      }),
      runs && button(ctx, "Stop", { key, act: () => post(`/runs/${runs.runId}/cancel`, {}) }),
      h("button", { class: "btn primary", key: "send", disabled: disabled || isStopped(ctx) || Boolean(talk.live || talk.asked) }, "Send"),
    ),
  );
}

/** Asks, and begins a conversation anew: its messages are deleted. */
export function askToReset(ctx, talk) {
  confirmation(ctx, {
    title: "Reset this conversation?",
    key: "reset",
    label: "Reset conversation",
    text: "Its messages are deleted, and later replies know nothing of them. Drafts, assets and actions stay.",
    act: async () => {
      await post(`/chats/${talk.chatId}`, {});
      Object.assign(talk, { messages: [], cursor: null, hasOlder: false, read: null, run: null, failure: null, follows: true });
      talk.runs.clear();
      talk.views.clear();
    },
  });
}
