// The events of a run: read while the page shows them, and drawn as a waterfall of steps.

import { follow } from "./sse.js";
import { counted, duration, figure, helperName, money, spaced } from "./format.js";
import { asText } from "./changes.js";
import { h } from "./view.js";

/**
 * The events of a run, from its first one on. The stream is opened once for a page, closed while nobody sees the page, and goes on
 * after the last event. `state` is the state of the run as it was last read.
 */
export function runEvents(ctx, runId, state) {
  const streams = (ctx.state.streams ??= new Map());
  let stream = streams.get(runId);
  if (!stream) {
    stream = { events: [], ended: null, isOpen: false, error: null, hasWaited: false };
    streams.set(runId, stream);
    const seen = () => !document.hidden && !stream.ended && listenToRun(ctx, runId, stream);
    document.addEventListener("visibilitychange", seen);
    ctx.signal.addEventListener("abort", () => document.removeEventListener("visibilitychange", seen));
    listenToRun(ctx, runId, stream);
  }
  if (state === "waiting") stream.hasWaited = true;
  else if (state === "running" && stream.hasWaited && stream.ended && !stream.isOpen) {
    // It was answered, and goes on.
    stream.hasWaited = false;
    stream.ended = null;
    listenToRun(ctx, runId, stream);
  }
  return stream;
}

async function listenToRun(ctx, runId, stream) {
  if (stream.isOpen || document.hidden || ctx.signal.aborted) return;
  stream.isOpen = true;
  stream.error = null;
  const unseen = new AbortController();
  const signal = AbortSignal.any([ctx.signal, unseen.signal]);
  const onHidden = () => document.hidden && unseen.abort();
  document.addEventListener("visibilitychange", onHidden);
  try {
    const ended = await follow(runId, {
      after: stream.events.at(-1)?.id ?? 0,
      signal,
      on(event) {
        stream.events.push(event);
        ctx.redraw();
      },
    });
    if (!signal.aborted) {
      stream.ended = ended ?? "ended";
      ctx.refresh();
    }
  } catch (error) {
    if (!signal.aborted) {
      stream.error = error;
      stream.ended = "error";
    }
  } finally {
    document.removeEventListener("visibilitychange", onHidden);
    stream.isOpen = false;
    if (!ctx.signal.aborted) ctx.redraw();
  }
}

const eventTime = (event) => Date.parse(event.data.at);

/**
 * The steps of a run from its events: `{ rows, from, to, waited }`. Each row has `kind` (`model`, `tool`, `check`, `wait` or `note`), `name`,
 * `from`, `to` (absent while it goes on), and what its details show. Text that a restart has made void is left out.
 */
export function stepsOfRun(events, kind) {
  const rows = [];
  let begun = null;
  let last = null;
  let used = { cost: 0, tokensIn: 0, tokensOut: 0 };
  let model = null;
  const tools = new Map();
  const openModel = (event) => {
    if (model && model.step === event.data.step) return model;
    model = { kind: "model", name: "Model", step: event.data.step, key: `model ${event.data.step} ${event.id}`, from: last ?? begun ?? eventTime(event), text: "", thinking: "", ids: [] };
    rows.push(model);
    return model;
  };
  const note = (event, name, text, tone) => rows.push({ kind: "note", name, key: `note ${event.id}`, from: eventTime(event), to: eventTime(event), text, tone });
  for (const event of events) {
    const { data } = event;
    const time = eventTime(event);
    const waiting = rows.at(-1)?.kind === "wait" && !rows.at(-1).to ? rows.at(-1) : null;
    if (waiting && !event.event.startsWith("call.") && event.event !== "run.waiting") {
      waiting.to = time;
      last = time;
    }
    switch (event.event) {
      case "run.started":
        begun = time;
        break;
      case "message.delta":
      case "thinking.delta": {
        const row = openModel(event);
        if (event.event === "message.delta") row.text += data.text;
        else row.thinking += data.text;
        break;
      }
      case "message.completed": {
        const row = openModel(event);
        row.text = data.text;
        row.to = time;
        last = time;
        break;
      }
      case "usage.updated": {
        const now = { cost: data.cost_micros ?? 0, tokensIn: inputTokens(data.usage), tokensOut: data.usage?.output_tokens ?? 0 };
        const row = openModel(event);
        row.cost = now.cost - used.cost;
        row.tokensIn = now.tokensIn - used.tokensIn;
        row.tokensOut = now.tokensOut - used.tokensOut;
        row.to ??= time;
        used = now;
        last = row.to;
        break;
      }
      case "tool.requested": {
        const row = { kind: "tool", name: data.tool, key: `tool ${data.call_id} ${event.id}`, from: last && model?.to ? Math.max(last, model.to) : time, input: data.input, step: data.step };
        row.from = Math.min(row.from, time);
        tools.set(data.call_id, row);
        rows.push(row);
        break;
      }
      case "tool.result": {
        const row = tools.get(data.call_id);
        if (row) {
          row.to = time;
          row.result = data.result;
          row.failed = data.is_error;
        }
        last = time;
        break;
      }
      case "call.waiting":
        rows.push({ kind: "wait", name: data.asks === "ceiling" ? "Waits at a ceiling of costs" : `Waits for you: ${data.tool}`, key: `wait ${event.id}`, from: time, text: data.why });
        break;
      case "call.approved":
      case "call.rejected":
      case "call.resolved": {
        for (const row of rows) if (row.kind === "wait" && !row.to) row.to = time;
        note(event, { "call.approved": `You allowed ${data.tool}`, "call.rejected": `You did not allow ${data.tool}`, "call.resolved": `You said what became of ${data.tool}` }[event.event], data.reason ?? data.outcome);
        last = time;
        break;
      }
      case "run.waiting":
        if (rows.at(-1)?.kind !== "wait") rows.push({ kind: "wait", name: "Waits for you", key: `wait ${event.id}`, from: time });
        break;
      case "model.fallback":
        note(event, `${data.to} answers instead of ${data.from}`, data.reason ?? spaced(data.code ?? ""), "warn");
        break;
      case "deliverable.invalid":
        note(event, "It made something that cannot be used", data.reason, "warn");
        break;
      case "context.reduced":
        note(event, "The conversation was shortened for the model", null);
        break;
      case "history.cut":
        note(event, "A summary replaces the oldest messages", null);
        break;
      case "turn.escalated":
        note(event, "The turn is larger than planned", data.why);
        break;
      case "helper.started":
        note(event, `Another model helps: ${helperName(data.role)}`, data.task);
        break;
      case "helper.ended":
        note(event, `${helperName(data.role)}: ${data.state}`, data.error?.detail ?? data.edited.join(", "), data.state === "completed" ? undefined : "warn");
        break;
      case "theme.changed":
        if (data.files.length > 0) note(event, `Its changes: ${counted(data.files.length, "file")}`, data.files.map((one) => one.path).join(", "));
        break;
      case "step.restarted": {
        const index = rows.findIndex((row) => row.kind === "model" && row.step === data.step && !row.to);
        if (index >= 0) rows.splice(index, 1);
        model = null;
        if (data.void_from > 2) note(event, "Another process went on with this step", null);
        break;
      }
      default:
        if (event.event.endsWith(".proposed")) note(event, `It proposed “${data.title ?? spaced(event.event.split(".")[0])}”`, null);
    }
  }
  // What answers without a text and without a call judges the result.
  for (const row of rows) {
    if (row.kind !== "model" || row.text || row.thinking || !row.to) continue;
    if (["action", "rehearsal"].includes(kind) && ![...tools.values()].some((tool) => tool.step === row.step)) Object.assign(row, { kind: "check", name: "Check of what was expected" });
  }
  const from = begun ?? (events.length > 0 ? eventTime(events[0]) : null);
  const end = events.at(-1);
  return { rows, from, to: end ? eventTime(end) : null, waited: rows.filter((row) => row.kind === "wait") };
}

const inputTokens = (usage = {}) => (usage.input_tokens ?? 0) + (usage.cache_read_tokens ?? 0) + (usage.cache_write_5m_tokens ?? 0) + (usage.cache_write_1h_tokens ?? 0);

const shortLine = (text) => text.trim().split("\n")[0].slice(0, 90);

function stepTitle(row) {
  if (row.kind === "model") return row.text ? ["Model", h("small", {}, shortLine(row.text))] : row.name;
  if (row.kind === "tool") {
    const said = Object.values(row.input ?? {}).find((value) => typeof value === "string" && value.length < 200);
    return [h("span", { class: "tool-name" }, row.name), said && h("small", {}, shortLine(said))];
  }
  return row.name;
}

/** The waterfall. Time for which the run waited takes no room, so that the work stays visible. */
export function waterfall(steps, { now = Date.now(), isLive = false } = {}) {
  const isBetween = isLive && steps.from !== null && steps.rows.every((row) => row.to);
  const all = isBetween ? [...steps.rows, { kind: "model", name: "Works on the next step", key: "now", from: steps.to }] : steps.rows;
  if (all.length === 0) return h("p", { class: "muted pad" }, isLive ? "It has begun. The first step shows here in a moment." : "The steps of this run are no longer kept.");
  const end = isLive ? Math.max(now, steps.to) : steps.to;
  const waits = steps.waited.map((row) => [row.from, row.to ?? end]);
  const active = (instant) => instant - steps.from - waits.reduce((sum, [from, to]) => sum + Math.max(0, Math.min(instant, to) - from), 0);
  const whole = Math.max(1, active(end));
  return h(
    "ol",
    { class: "fall", "aria-label": "Steps of the run" },
    all.map((row) => {
      const to = row.to ?? end;
      const left = Math.min(99, (100 * active(row.from)) / whole);
      const width = Math.max(0.8, Math.min(100 - left, (100 * (active(to) - active(row.from))) / whole));
      const took = row.kind === "note" ? "" : row.kind === "wait" && !row.to ? "waits" : row.to || !isLive ? duration(Math.max(0, to - row.from)) : "…";
      return h(
        "li",
        { key: row.key, class: [`step-${row.kind}`, row.failed && "step-failed"].filter(Boolean).join(" ") },
        h(
          "details",
          {},
          h("summary", {}, h("span", { class: "name" }, stepTitle(row)), h("span", { class: "track", "aria-hidden": "true" }, h("i", { style: { "--a": `${left}%`, "--w": `${width}%` } })), h("span", { class: "num" }, row.failed && h("span", { class: "bad" }, "failed "), took)),
          stepDetails(row),
        ),
      );
    }),
  );
}

function stepDetails(row) {
  const entries = [
    ["Arguments", row.input !== undefined && h("pre", { class: "reader" }, asText(row.input))],
    ["Result", row.result !== undefined && h("pre", { class: "reader" }, row.result)],
    ["It thought", row.thinking && h("p", { class: "long" }, row.thinking)],
    ["It said", row.text && h("p", { class: "long" }, row.text)],
    ["Tokens", row.tokensOut !== undefined && `${figure(row.tokensIn)} in, ${figure(row.tokensOut)} out`],
    ["Cost", row.cost > 0 && money(row.cost)],
  ];
  const shown = entries.filter(([, value]) => value);
  return h("div", { class: "what-it-did" }, shown.length === 0 ? h("p", { class: "muted" }, row.to ? "There is nothing more to show." : "It goes on.") : h("dl", {}, shown.map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)])));
}
