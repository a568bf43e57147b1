// Living documents: what their pages share. Addresses, how far the documents are behind, and the newest synchronisation.

import { get, post } from "./api.js";
import { lazily } from "./app.js";
import { bytes, counted, figure, listed, moment, money, spaced } from "./format.js";
import { button, facts, failureOf, press, row, rows, section, when } from "./parts.js";
import { stoppedNote } from "./stop.js";
import { h } from "./view.js";

/** How often a page reads again while a synchronisation goes on. */
export const SYNCING_MS = 2_000;

/** Commits that are shown at first. Up to 1,000 may wait. */
const FIRST_COMMITS = 50;

// ---- Addresses ----

export const docsPath = (project, rest = "") => `/projects/${encodeURIComponent(project)}/docs${rest}`;

/** The address of the documents of a project, or of one of them. Notices lead to the former. */
export function docsHref(project, name, more = {}) {
  const query = new URLSearchParams(Object.entries(more).filter(([, value]) => value)).toString();
  return `#/context/docs/${encodeURIComponent(project)}${name ? `/${encodeURIComponent(name)}` : ""}${query ? `?${query}` : ""}`;
}

// ---- How far they are ----

/** Each staleness: its lamp, its colour, and its word. */
const STALENESS = { fresh: ["lit", "ok"], slightly: ["late", "warn"], stale: ["missed", "warn"] };

/** The words of a staleness. Without a commit, nobody knows whether the documents are right. */
function stalenessText({ commits_since_sync: waiting, last_commit: newest, last_sync: synced }) {
  if (waiting > 0) return `${counted(waiting, "commit")} behind`;
  return newest || synced ? "up to date" : "no commit was reported yet";
}

/** How far the documents of a project are behind, as a mark and in words. */
export function stalenessMark(docs) {
  const isKnown = docs.commits_since_sync > 0 || docs.last_commit || docs.last_sync;
  const [shape, tone] = isKnown ? STALENESS[docs.staleness] : ["skip", ""];
  return h("span", { class: "living-mark" }, h("span", { class: `lamp ${shape}`, "aria-hidden": "true" }, h("i", {})), h("span", { class: `chip ${tone}` }, stalenessText(docs)));
}

export const isSyncing = (docs) => docs.sync?.state === "waiting" || docs.sync?.state === "running";

const syncKey = (docs) => `sync ${docs.project_id}`;

/** How far the documents of a project are, and the button that brings them up to date. `began(sync)` gets what the button has begun. */
export function livingState(ctx, docs, { of, began } = {}) {
  const { staleness, documents, last_sync: synced } = docs;
  const offers = staleness !== "fresh" && documents.length > 0 && !isSyncing(docs);
  const label = "Bring up to date";
  return h(
    "div",
    { class: "living-state", key: "state" },
    h("p", {}, stalenessMark(docs), synced && h("span", { class: "muted" }, " · last brought up to date ", when(synced, { form: "relative" }))),
    staleness !== "fresh" && documents.length === 0 && h("p", { class: "muted" }, "The commits wait for the first document."),
    offers && h("div", { class: "end" }, button(ctx, label, { key: syncKey(docs), kind: staleness === "stale" ? "primary" : "", name: of && `${label}: ${of}`, starts: true, act: () => post(docsPath(docs.project_id, "/sync")).then(began) })),
    offers && stoppedNote(ctx, "no synchronisation begins"),
    failureOf(ctx, syncKey(docs)),
  );
}

// ---- The newest synchronisation ----

const SYNC_STATES = { waiting: ["waits", "warn"], running: ["goes on", "warn"], succeeded: ["succeeded", "ok"], failed: ["failed", "bad"] };

/** A synchronisation in one sentence. */
function syncSentence(sync) {
  const took = sync.commits > 0 ? counted(sync.commits, "commit") : "the commits";
  switch (sync.state) {
    case "waiting":
      return sync.error ? `It begins again soon, because a try has failed: ${sync.error}` : "It begins within a few seconds.";
    case "running":
      return `A model reads ${took} and writes the new texts${sync.tries > 1 ? `, in try ${sync.tries}` : ""}. Nothing is changed until all of them are checked.`;
    case "succeeded":
      if (sync.changed.length > 0) return `It took ${took} and changed ${listed(sync.changed)}.`;
      return sync.commits > 0 ? `It took ${took}, and no document had to change.` : "No commit waited, so nothing had to change.";
    default:
      return `${sync.error ?? "No reason is known"}. The documents and the commits are as they were.`;
  }
}

export const syncChip = (sync) => h("span", { class: `chip ${SYNC_STATES[sync.state]?.[1] ?? ""}` }, SYNC_STATES[sync.state]?.[0] ?? spaced(sync.state));

/** The newest synchronisation in one line, for lists. Its end is announced. */
export function syncLine(docs) {
  const { sync } = docs;
  return sync && h("p", { class: "living-sync", key: "sync" }, h("span", { role: "status" }, "Synchronisation: ", syncChip(sync), h("span", { class: "muted" }, ` · ${syncSentence(sync)}`)));
}

const PROBLEM_WORDS = { lost: "lost", halved: "more than half is gone", too_long: "too long", frontmatter: "frontmatter", link: "unknown link", name: "unknown name" };

/** What a synchronisation has changed in a document, if its newest version is of this synchronisation. */
function changeOf(docs, name) {
  const document = docs.documents.find((one) => one.name === name);
  if (!document) return h("span", {}, `${name} (deleted since)`);
  const isNewest = document.sync_id === docs.sync.sync_id && document.version > 1;
  return h("a", { href: docsHref(docs.project_id, name, isNewest ? { show: "versions", v: document.version, from: document.version - 1 } : { show: "versions" }) }, name);
}

export function syncSection(docs) {
  const { sync } = docs;
  if (!sync) return null;
  const { problems = [], left_out: left } = sync;
  return section(
    "Newest synchronisation",
    { end: when(sync.ended_at ?? sync.requested_at, { form: "relative" }) },
    h("p", { class: "pad living-told", role: "status" }, syncChip(sync), h("span", { "aria-hidden": "true" }, " · "), syncSentence(sync)),
    problems.length > 0 && h("p", { class: "muted" }, "A program has refused the texts of the model:"),
    problems.length > 0 && h("ul", { class: "findings", "aria-label": "Problems" }, problems.map((one, index) => h("li", { key: `${index} ${one.document}` }, h("p", {}, h("b", {}, one.document), ": ", one.text), h("small", { class: "muted" }, PROBLEM_WORDS[one.code] ?? spaced(one.code))))),
    left > 0 && h("p", { class: "warnings" }, `${counted(left, "part")} of long documents should have changed, too. One synchronisation changes at most 16.`),
    facts([
      ["Changed", sync.changed?.length > 0 && h("span", {}, sync.changed.map((name, index) => [index > 0 && ", ", changeOf(docs, name)]))],
      ["Cost", (sync.cost_micros > 0 || sync.ended_at) && (sync.cost_micros > 0 ? money(sync.cost_micros) : "nothing")],
      ["Tries", sync.tries > 1 && figure(sync.tries)],
      ["Asked for", moment(sync.requested_at)],
      ["Name", h("span", { class: "mono long" }, sync.sync_id)],
    ]),
  );
}

// ---- The commits that wait ----

/** The commits that wait, folded. They are read when they are shown, and again when others wait. */
export function waitingCommits(ctx, docs) {
  const { project_id: id, commits_since_sync: count, last_commit: newest } = docs;
  if (count === 0) return null;
  const open = (ctx.state.openCommits ??= new Set());
  const isOpen = open.has(id);
  const list = isOpen ? lazily(`commits ${id} ${count} ${newest}`, () => get(docsPath(id, "/commits"))) : null;
  const all = list?.data ?? [];
  const shown = ctx.state.allCommits ? all : all.slice(0, FIRST_COMMITS);
  return h(
    "details",
    { class: "living-commits", key: "commits", open: isOpen, ontoggle: (event) => {
      if (event.target.open === open.has(id)) return;
      if (event.target.open) open.add(id);
      else open.delete(id);
      ctx.redraw();
    } },
    h("summary", {}, counted(count, "commit waits", "commits wait")),
    isOpen && !list && h("p", { class: "muted" }, "Reading…"),
    list && h("ol", { class: "commits", "aria-label": "Commits that wait, oldest first" }, shown.map(waitingCommit)),
    shown.length < all.length && press(`Show all ${figure(all.length)}`, () => { ctx.state.allCommits = true; ctx.redraw(); }),
  );
}

function waitingCommit(commit) {
  const [first, ...rest] = commit.message.split("\n");
  const body = rest.join("\n").trim();
  const { files = [], more_files: more = 0 } = commit;
  const about = [commit.author, moment(commit.at), commit.id.slice(0, 8)].filter(Boolean).join(" · ");
  return h(
    "li",
    { key: commit.id },
    h("p", { class: "long" }, h("b", {}, first || "(no message)")),
    h("small", { class: "muted long" }, about),
    (body || files.length > 0 || more > 0) &&
      h(
        "details",
        {},
        h("summary", {}, [body && "Whole message", files.length + more > 0 && counted(files.length + more, "file")].filter(Boolean).join(", ")),
        body && h("p", { class: "long" }, body),
        h("ul", { class: "mono" }, files.map((file) => h("li", { key: file, class: "long" }, file)), more > 0 && h("li", { key: "more" }, `and ${figure(more)} more`)),
      ),
  );
}

// ---- The documents ----

const DOC_CAUSES = { created: "created", edited: "written", synced: "brought up to date", restored: "restored" };

/** Why a version was written. */
export const docCause = (cause) => DOC_CAUSES[cause] ?? spaced(cause);

export const docRows = (docs) =>
  rows(docs.documents.map((one) => row({ key: one.name, time: moment(one.written_at), title: one.name, href: docsHref(docs.project_id, one.name), note: `${docCause(one.cause)} · ${bytes(one.bytes)}`, end: h("span", { class: "muted" }, `version ${one.version}`) })));
