// Calls of the platform: credentials, retries that act once, and errors as values that a page can show.

import { access, credential, forgetCredential } from "./credentials.js";

/** The answer to a request that was refused, as the problem document says it. */
export class Problem extends Error {
  constructor(status, body, retryAfter) {
    super(body.detail ?? body.title ?? "The request failed.");
    this.status = status;
    this.code = body.code ?? "unknown";
    this.requestId = body.request_id ?? null;
    this.fields = body.errors ?? [];
    this.current = body.current ?? null;
    this.retryable = body.retryable ?? status >= 500;
    this.retryAfter = retryAfter;
  }
}

/** The platform did not answer. Nothing is known about what it did; requests that act can be repeated with their key. */
export class Unreachable extends Error {
  constructor() {
    super("The platform does not answer. What you have typed is kept.");
    this.code = "unreachable";
    this.status = 0;
    this.retryable = true;
  }
}

const listeners = new Set();

/** Calls `listener(isOnline)` when the connection goes or comes back. */
export function onConnection(listener) {
  listeners.add(listener);
}

let reachable = true;

function connection(works) {
  if (works === reachable) return;
  reachable = works;
  for (const listener of listeners) listener(works);
}

/** The address of a path of the API. A deployment may lie below a prefix such as `/live`. */
export function address(path) {
  return (access.base ?? "") + path;
}

function headersFor(extra) {
  const headers = { accept: "application/json", ...extra };
  const token = credential();
  if (token) headers.authorization = `Bearer ${token}`;
  return headers;
}

/** Sends a request and returns the response, whatever its status is. */
export async function send(path, { method = "GET", body, headers = {}, signal } = {}) {
  const isJson = body !== undefined && !(body instanceof Blob) && typeof body !== "string";
  try {
    const response = await fetch(address(path), {
      method,
      headers: headersFor(isJson ? { "content-type": "application/json", ...headers } : headers),
      body: isJson ? JSON.stringify(body) : body,
      signal,
      credentials: "omit",
      redirect: "error",
      // The browser keeps answers with an ETag and asks whether they are still valid.
      cache: "no-cache",
    });
    connection(true);
    return response;
  } catch (error) {
    if (signal?.aborted) throw error;
    connection(false);
    throw new Unreachable();
  }
}

async function problemOf(response) {
  let body = {};
  try {
    body = await response.json();
  } catch {
    body = { detail: `The platform answered ${response.status} without an explanation.` };
  }
  if (response.status === 401) forgetCredential();
  return new Problem(response.status, body, Number(response.headers.get("retry-after")) || null);
}

/** The response if it was successful. Throws a `Problem` otherwise. */
export async function succeed(response) {
  if (!response.ok) throw await problemOf(response);
  return response;
}

async function json(response) {
  await succeed(response);
  return response.status === 204 ? null : response.json();
}

const pause = (ms) => new Promise((done) => setTimeout(done, ms));

/** Reads a resource. */
export async function get(path, signal) {
  return json(await send(path, { signal }));
}

/** For a thing that may be gone: null. Any other error is thrown again. */
export const orNull = (error) => {
  if (error.status === 404) return null;
  throw error;
};

/** Reads a text, for example the content of an asset. */
export async function getText(path, signal) {
  return (await succeed(await send(path, { signal, headers: { accept: "*/*" } }))).text();
}

/** Requests to which no answer came, with their keys: if a person presses again, the platform still does it once. */
const unanswered = new Map();

/** Called when something else was done or another page is shown: the same request is then a new wish. */
export const forgetUnanswered = () => unanswered.clear();

/** What a press sends, and nobody types. */
const PRESSED = new Set(["approval_hash", "approvals", "hash", "outcome", "proposal_id", "rehearsal"]);

/**
 * Changes something. A request that got no answer, or 502, 503 or 504, is repeated up to twice with the same `Idempotency-Key`, so
 * the platform does it once.
 */
export async function change(method, path, body, { ifMatch, headers = {} } = {}) {
  const all = { ...headers };
  const request = method === "POST" && !(body instanceof Blob) && JSON.stringify([path, body]);
  const key = unanswered.get(request) ?? crypto.randomUUID?.() ?? randomKey();
  if (method === "POST") all["idempotency-key"] = key;
  if (ifMatch !== undefined) all["if-match"] = `"${ifMatch}"`;
  for (let attempt = 0; ; attempt++) {
    try {
      const response = await send(path, { method, body, headers: all });
      const again = [502, 503, 504].includes(response.status) || (response.status === 409 && (await inFlight(response)));
      // The platform keeps no answer of 500 and above, so nobody knows what was done.
      if (request && (again || response.status >= 500)) unanswered.set(request, key);
      else unanswered.delete(request);
      if (!again || attempt === 2 || method === "PATCH") return await json(response);
      await pause(1000 * Math.min(Number(response.headers.get("retry-after")) || attempt + 1, 5));
    } catch (error) {
      const isLost = error instanceof Unreachable;
      if (isLost && request) unanswered.set(request, key);
      if (isLost && !(body instanceof Blob) && Object.keys(body ?? {}).every((name) => PRESSED.has(name))) error.message = "The platform did not answer. Press again to try it again: it is done once.";
      if (!isLost || attempt === 2 || method === "PATCH") throw error;
      await pause(500 * 2 ** attempt);
    }
  }
}

async function inFlight(response) {
  const body = await response.clone().json().catch(() => ({}));
  return body.code === "idempotency_in_flight";
}

// `randomUUID` exists only on https and on this machine.
export function randomKey() {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

export const post = (path, body, options) => change("POST", path, body, options);
export const edit = (path, body, options) => change("PATCH", path, body, options);
export const put = (path, body, options) => change("PUT", path, body, options);
export const del = (path, options) => change("DELETE", path, undefined, options);

/** Reads a list page by page, at most `most` pages. `complete` says whether that was all. */
export async function getAll(path, most = 5, signal) {
  const all = [];
  let cursor;
  for (let page = 0; page < most; page++) {
    const joiner = path.includes("?") ? "&" : "?";
    const answer = await get(cursor ? `${path}${joiner}cursor=${encodeURIComponent(cursor)}` : path, signal);
    all.push(...answer.data);
    if (!answer.has_more) return { data: all, complete: true };
    cursor = answer.next_cursor;
  }
  return { data: all, complete: false };
}

/** Saves a response as a file. Links cannot carry credentials, so the bytes are fetched here. */
export async function download(path, name) {
  const response = await succeed(await send(path, { headers: { accept: "*/*" } }));
  saveBlob(await response.blob(), name);
}

export function saveBlob(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
