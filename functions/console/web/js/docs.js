// The living documents of all projects, and those of one.

import { get, getAll } from "./api.js";
import { RESTING_MS, reading } from "./app.js";
import { MOST_PROJECTS_READ, contextHref, contextTabs, platformUrl } from "./context.js";
import { access } from "./credentials.js";
import { hookRead, hookSection } from "./docs-hook.js";
import { counted } from "./format.js";
import { SYNCING_MS, docRows, docsHref, docsPath, isSyncing, livingState, syncLine, syncSection, waitingCommits } from "./living.js";
import { empty, field, head, link, section } from "./parts.js";
import { codeSpans, copyBlock } from "./prose.js";
import { h } from "./view.js";

const MOST_DOCUMENTS = 20;
const WHAT = "Texts that describe a project, such as ARCHITECTURE.md. The platform keeps them, and a model brings them up to date with the commits of the repository.";

// ---- All projects ----

/** The projects with their documents. While synchronisations go on, only the projects that have one are read often. */
async function readDocs(ctx, signal) {
  const { kept } = ctx.state;
  if (kept && Date.now() - kept.at < RESTING_MS - 1000 && kept.projects.some(({ docs }) => isSyncing(docs))) {
    kept.projects = await Promise.all(kept.projects.map(async (one) => (isSyncing(one.docs) ? { ...one, docs: await get(docsPath(one.project_id), signal) } : one)));
    return { ...kept };
  }
  const at = Date.now();
  const all = await getAll("/projects?limit=100", 5, signal);
  const read = all.data.slice(0, MOST_PROJECTS_READ);
  const docs = await Promise.all(read.map((project) => get(docsPath(project.project_id), signal)));
  ctx.state.kept = { at, projects: read.map((project, index) => ({ ...project, docs: docs[index] })), others: all.data.slice(MOST_PROJECTS_READ), complete: all.complete };
  return { ...ctx.state.kept };
}

const docsRead = (ctx) => reading("living documents", (signal) => readDocs(ctx, signal));

const isUsed = ({ docs }) => docs.documents.length > 0 || docs.commits_since_sync > 0;

export const docsPage = {
  nav: "context",
  title: () => "Living documents",
  reads: (ctx) => ({ lists: docsRead(ctx) }),
  every: (ctx) => (ctx.data.lists?.projects.some(({ docs }) => isSyncing(docs)) ? SYNCING_MS : RESTING_MS),
  view: (ctx) => h("div", { key: "docs" }, head("Context and logs", "what coding assistants plan and do"), contextTabs("docs"), h("div", { class: "context-body", key: "docs" }, docsLists(ctx))),
};

function docsLists(ctx) {
  const { projects, others, complete } = ctx.data.lists;
  const used = projects.filter(isUsed);
  const rest = [...projects.filter((one) => !isUsed(one)), ...others];
  const isEmpty = used.length === 0;
  // The project that everybody has is the last one.
  const first = projects.at(-1)?.project_id ?? "default";
  const began = (sync) => {
    for (const one of ctx.state.kept?.projects ?? []) if (one.project_id === sync.project_id) one.docs.sync = sync;
  };
  return [
    isEmpty && empty(`${WHAT} There is no document yet.`, link("Write the first one", docsHref(first), { kind: "primary" })),
    isEmpty && h("p", { class: "muted", key: "how" }, codeSpans("Commits come from the command `lamplighter docs hook install`, or from a webhook of GitHub. The page of a project has both.")),
    used.map(({ project_id: id, name, docs }) =>
      section(
        name,
        { id, note: counted(docs.documents.length, "document"), end: h("a", { href: docsHref(id), "aria-label": `All about them: ${name}` }, "All about them") },
        livingState(ctx, docs, { of: name, began }),
        syncLine(docs),
        docs.documents.length > 0 && docRows(docs),
        waitingCommits(ctx, docs),
      ),
    ),
    rest.length > 0 && !(isEmpty && rest.length === 1) && section("Projects without living documents", {}, h("ul", { class: "related" }, rest.map((one) => h("li", { key: one.project_id }, h("a", { href: docsHref(one.project_id) }, one.name))))),
    (others.length > 0 || !complete) && h("p", { class: "muted pad", key: "more" }, `The documents of the newest ${MOST_PROJECTS_READ} projects are shown.`),
  ];
}

// ---- One project ----

export const projectDocsPage = {
  nav: "context",
  of: "project",
  title: (ctx) => `Living documents of ${ctx.data.project.name}`,
  reads: (ctx) => {
    const id = ctx.params.project_id;
    return {
      // While a synchronisation goes on, only the documents are read often.
      project: reading(`project of docs ${id}`, async (signal) => (ctx.state.project ??= await get(`/projects/${encodeURIComponent(id)}`, signal))),
      docs: docsPath(id),
      hook: hookRead(ctx),
    };
  },
  every: (ctx) => (ctx.data.docs && isSyncing(ctx.data.docs) ? SYNCING_MS : RESTING_MS),
  view(ctx) {
    const { project, docs } = ctx.data;
    return h(
      "div",
      { key: `docs ${docs.project_id}` },
      h("p", { class: "crumb" }, h("a", { href: contextHref("docs") }, "Living documents")),
      head(project.name, docs.documents.length > 0 ? counted(docs.documents.length, "living document") : "living documents"),
      h(
        "div",
        { class: "context-body" },
        livingState(ctx, docs),
        waitingCommits(ctx, docs),
        syncSection(docs),
        section("Documents", {}, docs.documents.length > 0 ? docRows(docs) : h("p", { class: "calm" }, WHAT), newDocForm(ctx, docs)),
        reportSection(ctx, docs),
        hookSection(ctx),
      ),
    );
  },
};

/** The rule of the platform for names: a file in no folder, and no word that stands in the same place of a path. */
const isDocName = (name) => /^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/.test(name) && !["commits", "hook", "sync"].includes(name);

/** The name comes first. The text is written on the page of the document, where it is kept until it is stored. */
function newDocForm(ctx, docs) {
  if (docs.documents.length >= MOST_DOCUMENTS) return h("p", { class: "muted pad" }, `A project has at most ${MOST_DOCUMENTS} documents.`);
  const name = (ctx.state.docName ?? "").trim();
  const isKnown = docs.documents.some((one) => one.name === name);
  const fault = name === "" || isDocName(name) ? null : "Use 1 to 100 letters, digits, hyphens, underscores and dots, and begin with a letter or a digit. “commits”, “hook” and “sync” are no names.";
  const write = () => ctx.go(docsHref(docs.project_id, name, isKnown ? {} : { show: "edit" }));
  return h(
    "form",
    { class: "form living-new", key: "new", "aria-label": "New document", onsubmit: (event) => { event.preventDefault(); if (name && !fault) write(); } },
    field("Name of a new document", h("input", { value: ctx.state.docName ?? "", placeholder: "ARCHITECTURE.md", maxlength: "100", autocomplete: "off", spellcheck: "false", "aria-invalid": fault ? "true" : null, oninput: (event) => { ctx.state.docName = event.target.value; ctx.redraw(); } }), { error: fault }),
    h("div", { class: "acts" }, h("button", { class: `btn ${docs.documents.length === 0 ? "primary" : ""}`, disabled: !name || Boolean(fault) }, isKnown ? "Open it" : "Write it")),
  );
}

/** The project that everybody has. Programs use it without being told. */
const isDefaultProject = (id) => /^(default|prj_0{32})$/.test(id);

/** How commits are reported from a repository. */
function reportSection(ctx, docs) {
  const isSigned = access.auth !== "off";
  const settings = [`export LAMPLIGHTER_URL=${platformUrl()}`, isSigned && "export LAMPLIGHTER_API_KEY=llk_…", !isDefaultProject(docs.project_id) && `export LAMPLIGHTER_PROJECT=${docs.project_id}`];
  return h(
    "details",
    { class: "connect", key: "report", ...(docs.last_commit ? {} : { use: (node) => { node.open = true; } }) },
    h("summary", {}, "Report commits from a repository"),
    h("p", {}, codeSpans("In the repository, the command `lamplighter` installs a hook of Git. From then on each commit is reported, and a commit is never delayed.")),
    copyBlock([...settings.filter(Boolean), "lamplighter docs hook install"].join("\n"), "The commands that install the hook"),
  );
}
