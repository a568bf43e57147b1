// Streams of server-sent events, read with fetch, because an EventSource cannot send credentials or a body.

import { Problem, Unreachable, randomKey, send, succeed } from "./api.js";

/** The connection is taken for dead after this silence. The platform sends a heartbeat every 15 seconds. */
const SILENCE_MS = 35_000;
const SHORTEST_MS = 500;
const LONGEST_MS = 15_000;

/** Reads events from a body: `{ id, event, data }`. Chunks may end anywhere, also within a character. */
export async function* events(body, alive = () => {}) {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  let event = { id: null, event: "message", data: [] };
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      alive();
      rest += decoder.decode(value, { stream: true });
      // A carriage return at the end may be the first half of a line's end.
      const ready = rest.endsWith("\r") ? rest.length - 1 : rest.length;
      const lines = rest.slice(0, ready).split(/\r\n|\n|\r/);
      rest = lines.pop() + rest.slice(ready);
      for (const line of lines) {
        if (line === "") {
          if (event.data.length > 0) yield { id: event.id, event: event.event, data: event.data.join("\n") };
          event = { id: null, event: "message", data: [] };
          continue;
        }
        const colon = line.indexOf(":");
        const field = colon < 0 ? line : line.slice(0, colon);
        const text = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
        if (field === "data") event.data.push(text);
        else if (field === "event") event.event = text;
        else if (field === "id" && /^\d+$/.test(text)) event.id = Number(text);
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

const ENDS = new Set(["run.completed", "run.failed", "run.cancelled", "run.waiting"]);

/**
 * Follows a run until it ends or waits. Calls `on({ id, event, data })` once for each event, with the data parsed. If the connection breaks, it
 * reconnects and goes on after the last event. Returns the last event's name, or null if the run had ended before.
 */
export async function follow(runId, { after = 0, on, signal }) {
  return readEvents(() => send(`/runs/${runId}/events?after=${after}`, options(signal)), {
    after,
    on,
    signal,
    again: (last) => send(`/runs/${runId}/events?after=${last}`, options(signal)),
  });
}

function options(signal) {
  return { headers: { accept: "text/event-stream" }, signal };
}

/**
 * Starts a turn and follows its run. The request carries an `Idempotency-Key`, so if its answer is lost, the same turn is found again.
 * `started(runId)` is called as soon as the run is known.
 */
export async function turn(path, body, { on, signal, started }) {
  const key = randomKey();
  let runId = null;
  const begin = () =>
    send(path, { method: "POST", body, signal, headers: { accept: "text/event-stream", "idempotency-key": key } });
  return readEvents(begin, {
    after: 0,
    signal,
    on(event) {
      if (event.event === "run.started" && runId === null) {
        runId = event.data.run_id;
        started?.(runId);
      }
      on(event);
    },
    again: (last) => (runId ? send(`/runs/${runId}/events?after=${last}`, options(signal)) : begin()),
  });
}

async function readEvents(first, { after, on, signal, again }) {
  let last = after;
  let wait = SHORTEST_MS;
  let request = first;
  for (;;) {
    const silence = new AbortController();
    let timer;
    const alive = () => {
      clearTimeout(timer);
      timer = setTimeout(() => silence.abort(), SILENCE_MS);
    };
    try {
      const response = await request();
      if (response.status === 204) return null;
      await succeed(response);
      alive();
      for await (const event of until(events(response.body, alive), silence.signal)) {
        if (event.id !== null) {
          if (event.id <= last) continue;
          last = event.id;
        }
        if (event.event === "heartbeat") continue;
        wait = SHORTEST_MS;
        on({ id: event.id, event: event.event, data: JSON.parse(event.data) });
        if (ENDS.has(event.event)) return event.event;
      }
    } catch (error) {
      if (signal?.aborted) throw error;
      const passes = error instanceof Unreachable || error instanceof TypeError || (error instanceof Problem && (error.status === 429 || error.status >= 500 || error.code === "idempotency_in_flight"));
      if (!passes) throw error;
      if (error instanceof Problem && error.code === "run_failed") throw error;
      if (error.retryAfter) wait = Math.min(error.retryAfter * 1000, LONGEST_MS);
    } finally {
      clearTimeout(timer);
    }
    if (signal?.aborted) return null;
    await new Promise((done) => setTimeout(done, wait * (0.5 + Math.random() / 2)));
    wait = Math.min(wait * 2, LONGEST_MS);
    request = () => again(last);
  }
}

/** The items until the signal is aborted. */
async function* until(items, signal) {
  const aborted = new Promise((done) => signal.addEventListener("abort", () => done(null), { once: true }));
  try {
    for (;;) {
      const next = await Promise.race([items.next(), aborted]);
      if (next === null || next.done) return;
      yield next.value;
    }
  } finally {
    items.return?.().catch?.(() => {});
  }
}
