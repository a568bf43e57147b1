// Context and logs: what coding assistants have planned, done and said.

import { address, download, get, getAll, getText, orNull, post, put, send, succeed } from "./api.js";
import { reading } from "./app.js";
import { access } from "./credentials.js";
import { diffView } from "./diff.js";
import { bytes, capital, counted, figure, moment, spaced } from "./format.js";
import { markdownView } from "./markdown.js";
import { button, confirmation, copyButton, draftOf, empty, facts, failureOf, field, head, link, press, row, rows, section, tabs, when } from "./parts.js";
import { copyBlock } from "./prose.js";
import { archiveFault, archiveInput, sendArchiveTo, sendingState } from "./upload.js";
import { h } from "./view.js";

/** Projects whose documents are read for the list. */
export const MOST_PROJECTS_READ = 12;
const LOG_LINES = [50, 200, 1000];
const LOG_ARCHIVE_BYTES = 128_000_000;
const LONG_TEXT = 600;

const shownMarkdown = (text) => h("div", { class: "reading", role: "region", "aria-label": "The document as Markdown" }, markdownView(text));

// ---- Addresses ----

export function contextHref(view, id, more = {}) {
  const query = new URLSearchParams(Object.entries(more).filter(([, value]) => value)).toString();
  return `#/context${view ? `/${view}` : ""}${id ? `/${encodeURIComponent(id)}` : ""}${query ? `?${query}` : ""}`;
}

const workflowOf = (ctx) => ctx.query.workflow || "default";
const documentPath = (project, workflow, rest = "") => `/projects/${encodeURIComponent(project)}/context${rest}?workflow=${encodeURIComponent(workflow)}`;
const documentHref = (project, workflow, more = {}) => contextHref("documents", project, { ...(workflow === "default" ? {} : { workflow }), ...more });

const allProjects = reading("/projects all", (signal) => getAll("/projects?limit=100", 5, signal));

const CONTEXT_VIEWS = {
  documents: { list: documentsView, one: documentView, listReads: documentsReads, oneReads: documentReads },
  logs: { list: sessionsView, one: logView, listReads: sessionsReads, oneReads: logReads },
  hooks: { list: hooksView, listReads: () => ({ hooks: "/context/hooks/rejected?limit=100" }) },
};

const shownView = (ctx) => {
  const view = CONTEXT_VIEWS[ctx.params.view ?? "documents"];
  return view && (ctx.params.id === undefined ? { reads: view.listReads, view: view.list } : view.one && { reads: view.oneReads, view: view.one });
};

/** The tabs of this page. The living documents have pages of their own. */
export const contextTabs = (at) =>
  tabs("Views of the memory", [
    ["Documents", contextHref(), at === "documents"],
    ["Living documents", contextHref("docs"), at === "docs"],
    ["Agent logs", contextHref("logs"), at === "logs"],
    ["Refused hooks", contextHref("hooks"), at === "hooks"],
  ]);

export const contextPage = {
  nav: "context",
  title: () => "Context and logs",
  reads: (ctx) => shownView(ctx)?.reads(ctx) ?? {},
  view(ctx) {
    const shown = shownView(ctx);
    const at = ctx.params.view ?? "documents";
    if (!shown) return h("div", { key: "context" }, head("Context and logs"), empty("There is no such view.", link("See the documents", contextHref(), { kind: "" })));
    if (ctx.params.id !== undefined) return shown.view(ctx);
    return h(
      "div",
      { key: "context" },
      head("Context and logs", "what coding assistants plan and do"),
      contextTabs(at),
      h("div", { class: "context-body", key: at }, shown.view(ctx)),
    );
  },
};

// ---- How an assistant is connected ----

export const platformUrl = () => new URL(address("/"), location.origin).href.replace(/\/$/, "");

function connectHelp(isOpen) {
  const url = platformUrl();
  const isSigned = access.auth !== "off";
  const key = isSigned ? ' --header "Authorization: Bearer llk_…"' : "";
  const server = { type: "http", url: `${url}/mcp`, ...(isSigned ? { headers: { Authorization: "Bearer llk_…" } } : {}) };
  const hook = (command, matcher) => [{ ...(matcher ? { matcher } : {}), hooks: [{ type: "command", command: `lamplighter log --${command}` }] }];
  const hooks = { PreToolUse: hook("assistant", "Task|Agent"), PostToolUse: hook("user", "Task|Agent"), SubagentStop: hook("user"), SubagentStart: hook("recall"), SessionStart: hook("recall") };
  return h(
    "details",
    { class: "connect", key: "connect", ...(isOpen ? { use: (node) => { node.open = true; } } : {}) },
    h("summary", {}, "Connect a coding assistant"),
    h("p", {}, "Context documents and theme lookups come over the Model Context Protocol. For Claude Code:"),
    copyBlock(`claude mcp add --transport http lamplighter ${url}/mcp${key}`, "The command that adds the server"),
    h("p", {}, "For everybody who works on a repository, in its file ", h("code", {}, ".mcp.json"), ". Cursor takes the same in ", h("code", {}, ".cursor/mcp.json"), ":"),
    copyBlock(JSON.stringify({ mcpServers: { lamplighter: server } }, null, 2), "The file .mcp.json"),
    h("p", {}, "Logs of sub-agents come from hooks, which call the command ", h("code", {}, "lamplighter"), ". Install it from the sources of the platform", isSigned ? ", and give it an API key:" : ":"),
    copyBlock(`cargo install --locked --path infra/cli\nexport LAMPLIGHTER_URL=${url}${isSigned ? "\nexport LAMPLIGHTER_API_KEY=llk_…" : ""}\nlamplighter context init .claude/agents`, "The commands that install the program"),
    h("p", {}, "The hooks, in ", h("code", {}, ".claude/settings.json"), ":"),
    copyBlock(JSON.stringify({ hooks }, null, 2), "The hooks of Claude Code"),
    h("p", {}, "Every route is in the ", h("a", { href: "#/reference/context" }, "API reference"), "."),
  );
}

// ---- Documents ----

function documentsReads() {
  return {
    documents: reading("context documents", async (signal) => {
      const projects = await getAll("/projects?limit=100", 5, signal);
      const read = projects.data.slice(0, MOST_PROJECTS_READ);
      const lists = await Promise.all(read.map((project) => get(`/projects/${project.project_id}/context/workflows?limit=100`, signal)));
      return { projects: read.map((project, index) => ({ ...project, workflows: lists[index].data, more: lists[index].has_more })), complete: projects.complete && projects.data.length === read.length };
    }),
  };
}

const documentName = (document) => document.title || document.task || (document.workflow === "default" ? "Context document" : document.workflow);

function documentsView(ctx) {
  const { projects, complete } = ctx.data.documents;
  const filled = projects.filter((project) => project.workflows.length > 0);
  const isEmpty = filled.length === 0;
  return [
    isEmpty && empty("A coding assistant keeps here what it plans, does and finds. There is no document yet.", link("Write the first one", documentHref(projects.at(-1)?.project_id ?? "default", "default", { show: "edit" }), { kind: "" })),
    filled.map((project) =>
      section(
        project.name,
        { note: counted(project.workflows.length, "document"), id: project.project_id, end: h("a", { href: documentHref(project.project_id, "default") }, "Default document") },
        rows(project.workflows.map((one) => row({ key: one.workflow, time: moment(one.updated_at), title: documentName(one), href: documentHref(project.project_id, one.workflow), note: [one.workflow !== "default" && `workflow ${one.workflow}`, one.sections.map((part) => part.mode).join(", "), one.task !== documentName(one) && one.task].filter(Boolean).join(" · "), end: h("span", { class: "muted" }, `version ${one.version}`) }))),
        project.more && h("p", { class: "muted" }, "There are more workflows than are shown here."),
      ),
    ),
    !complete && h("p", { class: "muted pad" }, "The documents of the newest projects are shown. For another one, open it under Themes."),
    connectHelp(isEmpty),
  ];
}

/** Whether a document is in the list of all. Of one that is not there, nothing else is asked. `there` says that it is known to be there. */
export async function isListed(path, there, signal, is) {
  if (there) return true;
  const list = await get(path, signal);
  return list.has_more || (list.documents ?? list.data).some(is);
}

/** The text of a document with the version that it has, so that both belong together. */
async function fetchMarkdown(project, workflow, signal) {
  const response = await send(documentPath(project, workflow, ".md"), { signal, headers: { accept: "text/markdown, */*" } });
  if (response.status === 404) {
    // No document of this workflow; an unknown project is an error of its own.
    return { text: null, version: 0 };
  }
  await succeed(response);
  return { text: await response.text(), version: Number((response.headers.get("etag") ?? "").replace(/\D/g, "")) };
}

function documentReads(ctx) {
  const project = ctx.params.id;
  const workflow = workflowOf(ctx);
  const there = documentPath(project, workflow);
  /** Reads what belongs to the document, or gives what stands for it if there is none. */
  const ofDocument = (key, none, read) =>
    reading(`${key} ${project} ${workflow}`, async (signal) => {
      if (!(await isListed(`/projects/${encodeURIComponent(project)}/context/workflows?limit=200`, ctx.state.there === there, signal, (one) => one.workflow === workflow))) return none;
      ctx.state.there = there;
      return read(signal).catch((error) => orNull(error) ?? none);
    });
  return {
    project: `/projects/${encodeURIComponent(project)}`,
    document: ofDocument("document", null, (signal) => get(documentPath(project, workflow), signal)),
    markdown: ofDocument("markdown", { text: null, version: 0 }, (signal) => fetchMarkdown(project, workflow, signal)),
    versions: ofDocument("versions", { data: [], complete: true }, (signal) => getAll(`${documentPath(project, workflow, "/versions")}&limit=100`, 2, signal)),
  };
}

function documentView(ctx) {
  const { project, document, versions } = ctx.data;
  const id = ctx.params.id;
  const workflow = workflowOf(ctx);
  const show = ctx.query.show ?? (document ? "sections" : "none");
  const isDraft = Boolean(draftOf(documentDraft(ctx)).get());
  return h(
    "div",
    { key: `document ${id} ${workflow}` },
    h("p", { class: "crumb" }, h("a", { href: contextHref() }, "Context and logs"), ` / ${project.name}`),
    head(document ? documentName(document) : "No document yet", workflow === "default" ? null : `workflow ${workflow}`),
    document && h("p", { class: "theme-state muted" }, `Version ${document.version} · `, when(document.updated_at)),
    document?.task && document.task !== documentName(document) && h("p", { class: "verdict" }, document.task),
    (document || show === "edit") &&
      tabs("Views of the document", [
        ["Sections", documentHref(id, workflow), show === "sections"],
        ["Markdown", documentHref(id, workflow, { show: "markdown" }), show === "markdown"],
        [isDraft ? "Edit (draft)" : "Edit", documentHref(id, workflow, { show: "edit" }), show === "edit"],
        ["Versions", documentHref(id, workflow, { show: "versions" }), show === "versions", versions.data.length],
      ]),
    h(
      "div",
      { class: "context-body", key: show },
      show === "edit" && documentEditor(ctx),
      show === "markdown" && document && contextMarkdown(ctx),
      show === "versions" && documentVersions(ctx),
      show === "sections" && (document ? documentSections(document) : null),
      show === "none" && [empty("Nobody has written this document. An assistant begins it with the words PLAN or AUTO.", link("Write it by hand", documentHref(id, workflow, { show: "edit" }), { kind: "" }), link("All documents", contextHref(), { kind: "quiet" })), connectHelp(false)],
    ),
  );
}

const DOCUMENT_PARTS = [
  ["decisions", "Decisions"],
  ["progress", "Progress"],
  ["findings", "Findings"],
  ["recommendations", "Recommendations"],
  ["notes", "Notes"],
];

const SECTION_TONES = { completed: "ok", blocked: "warn", in_progress: "warn" };

function documentSections(document) {
  if (document.sections.length === 0) return h("p", { class: "calm" }, "The document has no section yet.");
  return document.sections.map((part) =>
    section(
      part.mode,
      { note: [part.primary_agent, moment(part.updated_at)].filter(Boolean).join(" · "), end: part.status && h("span", { class: `chip ${SECTION_TONES[part.status] ?? ""}` }, spaced(part.status)) },
      part.task && h("p", { class: "long pad" }, h("b", {}, "Task: "), part.task),
      DOCUMENT_PARTS.filter(([name]) => part[name]?.length > 0).map(([name, title]) => h("div", { class: "context-part", key: name }, h("h3", {}, title), h("ul", {}, part[name].map((text) => h("li", { class: "long" }, text))))),
      part.recommended_act_agent && facts([["Next agent", `${part.recommended_act_agent.name}${part.recommended_act_agent.confidence !== undefined && part.recommended_act_agent.confidence !== null ? ` (confidence ${part.recommended_act_agent.confidence})` : ""}`]]),
      !part.task && DOCUMENT_PARTS.every(([name]) => !part[name]?.length) && h("p", { class: "muted pad" }, "Nothing is written in this section yet."),
    ),
  );
}

function contextMarkdown(ctx) {
  const { text } = ctx.data.markdown;
  return text === null ? null : [h("p", { class: "acts" }, copyButton(text, "Copy the Markdown")), shownMarkdown(text)];
}

// ---- The editor ----

const documentDraft = (ctx) => `context ${ctx.params.id} ${workflowOf(ctx)}`;

const DOCUMENT_TEMPLATE = "# Context Document\n\n## PLAN\n\n### Task\n- \n";

/** What is being edited: the text, and the version that it began from. It is kept until it is saved or dropped. */
function editedDocument(ctx) {
  const key = documentDraft(ctx);
  // Another workflow of the project is another document.
  if (ctx.state.editing?.key === key) return ctx.state.editing;
  const { text, version } = ctx.data.markdown;
  let kept = null;
  try {
    kept = JSON.parse(draftOf(key).get() || "null");
  } catch {
    kept = null;
  }
  ctx.state.editing = typeof kept?.text === "string" ? { key, text: kept.text, base: kept.base, isChanged: true } : { key, text: text ?? DOCUMENT_TEMPLATE, base: version, isChanged: false };
  return ctx.state.editing;
}

function changeDocumentText(ctx, edit) {
  edit.isChanged = true;
  draftOf(documentDraft(ctx)).set(JSON.stringify({ text: edit.text, base: edit.base }));
  ctx.redraw();
}

function endDocumentEdit(ctx) {
  draftOf(documentDraft(ctx)).set("");
  ctx.state.editing = null;
}

async function saveDocument(ctx) {
  const edit = editedDocument(ctx);
  const id = ctx.params.id;
  const workflow = workflowOf(ctx);
  try {
    await put(documentPath(id, workflow, ".md"), edit.text, { ifMatch: edit.base, headers: { "content-type": "text/markdown" } });
  } catch (error) {
    if (error.code === "version_conflict") edit.theirs = await fetchMarkdown(id, workflow);
    throw error;
  }
  endDocumentEdit(ctx);
  ctx.go(documentHref(id, workflow));
}

function documentEditor(ctx) {
  const edit = editedDocument(ctx);
  const { markdown } = ctx.data;
  // Nothing is typed yet: the editor follows the newest version.
  if (!edit.isChanged && markdown.version !== edit.base) Object.assign(edit, { text: markdown.text ?? DOCUMENT_TEMPLATE, base: markdown.version });
  const newer = edit.isChanged && markdown.version > edit.base ? markdown : null;
  const theirs = newer ?? (edit.theirs && edit.theirs.version > edit.base ? edit.theirs : null);
  const drop = () => {
    endDocumentEdit(ctx);
    ctx.forgive("save document");
    ctx.redraw();
  };
  return [
    theirs && documentConflict(ctx, edit, theirs),
    h(
      "form",
      {
        key: "editor",
        class: "editor",
        onsubmit: (event) => {
          event.preventDefault();
          ctx.act("save document", () => saveDocument(ctx));
        },
      },
      field(
        "The document as Markdown",
        h("textarea", {
          class: "markdown-text",
          rows: "18",
          spellcheck: "false",
          value: edit.text,
          oninput: (event) => {
            edit.text = event.target.value;
            changeDocumentText(ctx, edit);
          },
          onkeydown: (event) => {
            if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) event.target.form.requestSubmit();
          },
        }),
        { hint: "Sections are PLAN, ACT, EVAL and AUTO. Items begin with a hyphen; further lines of an item are indented by two spaces." },
      ),
      !theirs && failureOf(ctx, "save document"),
      h(
        "div",
        { class: "acts" },
        edit.isChanged && press("Drop my changes", () => (edit.text === (markdown.text ?? DOCUMENT_TEMPLATE) ? drop() : confirmation(ctx, { title: "Drop your changes?", label: "Drop my changes", text: "The text that you have written here is lost. The stored document stays as it is.", act: async () => drop() })), { kind: "quiet" }),
        h("div", { class: "end" }, button(ctx, edit.base === 0 ? "Save the first version" : theirs ? `Save over version ${theirs.version}…` : `Save as version ${edit.base + 1}`, { key: "save document", kind: "primary", disabled: !edit.isChanged || edit.text.trim() === "" || Boolean(theirs), act: () => saveDocument(ctx) })),
      ),
    ),
    edit.mine && section("Your text, which is not saved", { end: press("Forget it", () => { edit.mine = null; changeDocumentText(ctx, edit); }, { kind: "link" }) }, copyBlock(edit.mine, "Your text, which is not saved")),
  ];
}

function documentConflict(ctx, edit, theirs) {
  const takeBase = (text, mine) => {
    Object.assign(edit, { text, base: theirs.version, mine });
    edit.theirs = null;
    ctx.forgive("save document");
    changeDocumentText(ctx, edit);
  };
  return h(
    "section",
    { class: "conflict", key: "conflict", role: "alert", "aria-label": "Somebody else has changed the document" },
    h("h3", {}, "Somebody else has changed the document"),
    h("p", {}, `You began with ${edit.base === 0 ? "no document" : `version ${edit.base}`}. Now it is version ${theirs.version}. This is what your text would change in theirs:`),
    diffView(theirs.text ?? "", edit.text),
    h(
      "div",
      { class: "acts" },
      press("Take theirs, keep mine below", () => takeBase(theirs.text ?? DOCUMENT_TEMPLATE, edit.text)),
      h("div", { class: "end" }, press("Go on with mine", () => takeBase(edit.text, edit.mine), { kind: "primary" })),
    ),
    h("p", { class: "muted" }, "If you save yours, theirs stays among the versions for 90 days."),
  );
}

// ---- Versions ----

const VERSION_CAUSES = { begun: "started over", updated: "updated by an assistant", imported: "written as a whole", restored: "restored" };

function documentVersions(ctx) {
  const { versions, markdown } = ctx.data;
  const id = ctx.params.id;
  const workflow = workflowOf(ctx);
  const chosen = /^\d{1,9}$/.test(ctx.query.v ?? "") ? Number(ctx.query.v) : null;
  if (versions.data.length === 0) return empty("There is no version yet.", link("Write the first one", documentHref(id, workflow, { show: "edit" }), { kind: "" }));
  return [
    chosen !== null && documentVersionDiff(ctx, chosen),
    section(
      "Versions",
      { note: "each is kept for 90 days" },
      rows(
        versions.data.map((one) =>
          row({
            key: String(one.version),
            time: `No. ${one.version}`,
            title: capital(VERSION_CAUSES[one.cause] ?? spaced(one.cause)),
            href: documentHref(id, workflow, { show: "versions", v: one.version }),
            note: `${moment(one.written_at)} · ${bytes(one.bytes)}`,
            end: one.version === markdown.version ? h("span", { class: "chip ok" }, "newest") : h("a", { class: "btn quiet", href: documentHref(id, workflow, { show: "versions", v: one.version }), "aria-label": `Compare version ${one.version}` }, "Compare"),
          }),
        ),
      ),
      !versions.complete && h("p", { class: "muted" }, "There are older versions than are shown here."),
    ),
  ];
}

function documentVersionDiff(ctx, version) {
  const id = ctx.params.id;
  const workflow = workflowOf(ctx);
  const { markdown } = ctx.data;
  const key = `${id} ${workflow} ${version}`;
  if (ctx.state.compared?.key !== key) {
    const mine = { key, text: null, error: null };
    ctx.state.compared = mine;
    getText(`${documentPath(id, workflow, ".md")}&version=${version}`, ctx.signal).then((text) => (mine.text = text), (error) => (mine.error = error)).finally(ctx.redraw);
  }
  const { text, error } = ctx.state.compared;
  const isNewest = version === markdown.version;
  const restoring = `restore ${version}`;
  return section(
    isNewest ? `Version ${version}, the newest` : `From version ${version} to version ${markdown.version}`,
    { end: h("a", { href: documentHref(id, workflow, { show: "versions" }) }, "Close") },
    error && h("p", { class: "bad pad", role: "alert" }, error.status === 404 ? `There is no version ${version}.` : error.message),
    !error && text === null && h("p", { class: "muted pad" }, "Reading…"),
    text !== null && (isNewest ? shownMarkdown(text) : text === markdown.text ? h("p", { class: "calm" }, "The texts are the same.") : diffView(text, markdown.text ?? "")),
    failureOf(ctx, restoring),
    text !== null &&
      !isNewest &&
      h(
        "div",
        { class: "acts" },
        copyButton(text, "Copy this version"),
        h(
          "div",
          { class: "end" },
          button(ctx, `Restore version ${version}`, {
            key: restoring,
            kind: "primary",
            act: async () => {
              await post(`${documentPath(id, workflow, `/versions/${version}/restore`)}`, undefined, { ifMatch: markdown.version });
              ctx.go(documentHref(id, workflow, { show: "versions" }));
            },
          }),
        ),
      ),
  );
}

// ---- Sessions and logs ----

function sessionsReads(ctx) {
  const project = ctx.query.project;
  const path = `/context/logs?limit=100${project ? `&project_id=${encodeURIComponent(project)}` : ""}`;
  return { projects: allProjects, limits: "/limits", sessions: reading(path, (signal) => getAll(path, 2, signal)) };
}

const projectNameOf = (projects, id) => projects.data.find((project) => project.project_id === id)?.name ?? id;
const logHref = (agent, session) => contextHref("logs", agent, { session });

function sessionsView(ctx) {
  const { projects, sessions } = ctx.data;
  const { project } = ctx.query;
  const filter = (ctx.state.sessionFilter ?? "").trim().toLowerCase();
  const has = (text) => text.toLowerCase().includes(filter);
  const shown = sessions.data
    .map((session) => (!filter || has(session.session_id) ? session : { ...session, agents: session.agents.filter((agent) => has(agent.agent_id) || has(agent.agent_type)) }))
    .filter((session) => !filter || has(session.session_id) || session.agents.length > 0);
  const isEmpty = sessions.data.length === 0;
  const exportPath = `/context/export${project ? `?project_id=${encodeURIComponent(project)}` : ""}`;
  return [
    h(
      "div",
      { class: "log-tools", key: "tools" },
      projects.data.length > 1 &&
        h("label", { class: "field" }, h("span", {}, "Project"), h("select", { value: project ?? "", onchange: (event) => ctx.go(contextHref("logs", null, { project: event.target.value })) }, h("option", { value: "" }, "All projects"), projects.data.map((one) => h("option", { value: one.project_id, key: one.project_id }, one.name)))),
      !isEmpty && h("label", { class: "field grow" }, h("span", {}, "Filter"), h("input", { type: "search", "data-filter": true, placeholder: "A session, an agent or its type", autocomplete: "off", value: ctx.state.sessionFilter ?? "", oninput: (event) => { ctx.state.sessionFilter = event.target.value; ctx.redraw(); } })),
      !isEmpty && button(ctx, "Export as a zip", { key: "export logs", act: () => download(exportPath, "context-logs.zip") }),
      press(ctx.state.importing ? "Close the import" : "Import a zip…", () => { ctx.state.importing = !ctx.state.importing; ctx.redraw(); }, { expanded: Boolean(ctx.state.importing), key: "import" }),
    ),
    failureOf(ctx, "export logs"),
    ctx.state.importing && logImport(ctx),
    isEmpty && empty(project ? "No session of this project has a log." : "Here is what sub-agents were asked, and what they answered. No session has a log yet.", project && link("Show all projects", contextHref("logs"), { kind: "" })),
    !isEmpty && shown.length === 0 && h("p", { class: "calm" }, `Nothing is called “${filter}”. `, press("Show all", () => { ctx.state.sessionFilter = ""; ctx.redraw(); }, { kind: "link" })),
    shown.map((session) =>
      section(
        session.session_id,
        { note: `${projectNameOf(projects, session.project_id)} · ${moment(session.started_at)}`, id: session.session_id, end: button(ctx, "Export", { key: `export ${session.session_id}`, kind: "link", act: () => download(`/context/export?session_id=${encodeURIComponent(session.session_id)}`, `logs-${session.session_id}.zip`) }) },
        failureOf(ctx, `export ${session.session_id}`),
        rows(session.agents.map((agent) => row({ key: agent.agent_id, time: moment(agent.last_modified), title: agent.agent_id, href: logHref(agent.agent_id, session.session_id), note: agent.agent_type || (agent.agent_id === "main" ? "the assistant itself" : ""), end: h("span", { class: "muted" }, `${counted(agent.total_entries, "entry", "entries")} · ${bytes(agent.file_size_bytes)}`) }))),
        session.more_agents && h("p", { class: "muted" }, "The session has more agents. The export has all of them."),
      ),
    ),
    !sessions.complete && h("p", { class: "muted pad" }, "There are older sessions than are shown here. The export has all of them."),
    connectHelp(isEmpty),
  ];
}

function logImport(ctx) {
  const { projects, limits } = ctx.data;
  const result = ctx.state.logImport;
  const choose = (files) => {
    const fault = archiveFault(files, LOG_ARCHIVE_BYTES);
    ctx.state.refused = fault ? { text: fault } : null;
    ctx.state.logImport = null;
    if (fault) return ctx.redraw();
    const project = ctx.state.importProject ?? ctx.query.project;
    return ctx.act("import logs", async () => {
      ctx.state.logImport = await sendArchiveTo(ctx, `/context/import${project ? `?project_id=${encodeURIComponent(project)}` : ""}`, files[0], limits.sizes.body_bytes);
    });
  };
  return h(
    "section",
    { class: "log-import", key: "log import", "aria-label": "Import logs" },
    h("p", {}, "Choose a zip that was exported here or from another installation. A log that already exists is not changed, so an import can be repeated."),
    projects.data.length > 1 && h("label", { class: "field" }, h("span", {}, "Project of new sessions"), h("select", { value: ctx.state.importProject ?? ctx.query.project ?? projects.data.at(-1).project_id, onchange: (event) => { ctx.state.importProject = event.target.value; ctx.redraw(); } }, projects.data.map((one) => h("option", { value: one.project_id, key: one.project_id }, one.name)))),
    archiveInput("Choose a zip of logs", choose),
    sendingState(ctx, "import logs"),
    result &&
      h(
        "div",
        { role: "status" },
        result.state === "failed" && h("p", { class: "bad" }, `The import failed: ${result.reason ?? "no reason is known"}.`),
        result.state === "waiting" && h("p", {}, "The archive was sent. The import goes on; the sessions appear here."),
        result.state === "done" && h("p", { class: "ok" }, `Imported ${counted(result.logs, "log")} with ${counted(result.entries, "entry", "entries")}.`),
        result.state === "done" && facts([["Already there", result.skipped_logs > 0 && counted(result.skipped_logs, "log")], ["Lines left out", result.corrupt_lines > 0 && `${figure(result.corrupt_lines)}, because they are not entries`], ["Files left out", result.ignored_files > 0 && figure(result.ignored_files)]]),
        result.skipped?.length > 0 && h("details", {}, h("summary", {}, "Logs that were already there"), h("ul", {}, result.skipped.map((path) => h("li", { class: "mono long", key: path }, path)))),
      ),
  );
}

const logLines = (ctx) => (LOG_LINES.includes(Number(ctx.query.lines)) ? Number(ctx.query.lines) : LOG_LINES[0]);

function logPath(ctx, more = "") {
  const { session } = ctx.query;
  return `/context/logs/${encodeURIComponent(ctx.params.id)}?lines=${logLines(ctx)}${session ? `&session_id=${encodeURIComponent(session)}` : ""}${more}`;
}

function logReads(ctx) {
  const asText = ctx.query.show === "text";
  const path = logPath(ctx, "&include_metadata=true");
  return { log: path, ...(asText ? { text: reading(`${path} text`, (signal) => getText(logPath(ctx, "&format=text"), signal)) } : {}) };
}

const LOG_EVENT_WORDS = { agent_start: ["was asked", ""], agent_complete: ["answered", "ok"] };

function logView(ctx) {
  const { log, text } = ctx.data;
  const { session, show } = ctx.query;
  const agent = ctx.params.id;
  const here = (more) => contextHref("logs", agent, { session, lines: logLines(ctx) === LOG_LINES[0] ? null : logLines(ctx), ...more });
  const filter = (ctx.state.entryFilter ?? "").trim().toLowerCase();
  const all = log.entries.map((entry, index) => ({ ...entry, index }));
  const shown = all.filter((entry) => !filter || `${entry.description} ${entry.instruction ?? ""} ${entry.output_summary ?? ""} ${entry.agent_type}`.toLowerCase().includes(filter));
  const total = log.metadata?.total_entries ?? 0;
  return h(
    "div",
    { key: `log ${agent} ${session}` },
    h("p", { class: "crumb" }, h("a", { href: contextHref("logs") }, "Agent logs"), session && ` / ${session}`),
    head(agent, log.entries.at(-1)?.agent_type || null),
    h("p", { class: "theme-state muted" }, `${counted(total, "entry", "entries")} · ${bytes(log.metadata?.file_size_bytes ?? 0)}`, log.metadata?.last_modified && [" · ", when(log.metadata.last_modified, { form: "relative" })], !session && log.metadata?.session_id && [" · session ", h("a", { href: logHref(agent, log.metadata.session_id) }, log.metadata.session_id)], session && [" · ", h("a", { href: contextHref("logs", agent) }, "all sessions")]),
    tabs("Forms of the log", [
      ["Entries", here({}), show !== "text"],
      ["Text", here({ show: "text" }), show === "text"],
    ]),
    all.length === 0
      ? empty("No session has a log of this agent.", link("All logs", contextHref("logs"), { kind: "" }))
      : show === "text"
        ? [h("p", { class: "acts", key: "copy" }, copyButton(text, "Copy the text")), h("pre", { class: "reader tall", tabindex: "0", role: "region", "aria-label": "The log as text", key: "text" }, text)]
        : [
            h(
              "div",
              { class: "log-tools", key: "tools" },
              h("label", { class: "field grow" }, h("span", {}, "Filter"), h("input", { type: "search", "data-filter": true, placeholder: "Words of a task or an answer", autocomplete: "off", value: ctx.state.entryFilter ?? "", oninput: (event) => { ctx.state.entryFilter = event.target.value; ctx.redraw(); } })),
              h("label", { class: "field" }, h("span", {}, "Show the last"), h("select", { value: String(logLines(ctx)), onchange: (event) => ctx.go(contextHref("logs", agent, { session, lines: event.target.value })) }, LOG_LINES.map((count) => h("option", { value: String(count) }, `${figure(count)} entries`)))),
            ),
            filter && h("p", { class: "muted", role: "status" }, `${figure(shown.length)} of ${figure(all.length)}`),
            h("ol", { class: "log", "aria-label": "Entries, oldest first" }, shown.map(logEntry)),
          ],
  );
}

function logEntry(entry) {
  const [says, tone] = LOG_EVENT_WORDS[entry.event] ?? [spaced(entry.event), ""];
  const body = entry.instruction ?? entry.output_summary ?? "";
  return h(
    "li",
    { key: `${entry.index}`, class: entry.event },
    h("p", {}, h("span", { class: `chip ${tone}` }, says), " ", when(entry.timestamp, { form: "moment" }), entry.earlier_session && h("span", { class: "muted" }, ` · session ${entry.session_id}`)),
    entry.description && h("p", {}, h("b", {}, entry.description)),
    body && (body.length > LONG_TEXT ? h("details", {}, h("summary", {}, h("span", { class: "clamp" }, body.slice(0, LONG_TEXT))), h("p", { class: "long" }, body)) : h("p", { class: "long" }, body)),
  );
}

// ---- Refused hooks ----

function hooksView(ctx) {
  const { hooks } = ctx.data;
  return [
    hooks.count === 0 && hooks.data.length === 0 ? empty("No hook was refused since the beginning of yesterday.", link("See the logs", contextHref("logs"), { kind: "" })) : h("p", { class: "verdict" }, h("b", {}, counted(hooks.count, "hook was", "hooks were")), " refused since the beginning of yesterday (UTC). What they reported is in no log."),
    hooks.data.length > 0 &&
      section(
        "Refused",
        { note: "newest first" },
        h("ul", { class: "findings" }, hooks.data.map((one, index) => h("li", { key: `${one.refused_at} ${index}` }, h("p", { class: "bad" }, one.reason), h("small", { class: "muted" }, when(one.refused_at), ` · ${bytes(one.bytes)}`), h("details", {}, h("summary", {}, "What was sent"), h("pre", { class: "reader", tabindex: "0", role: "region", "aria-label": "What was sent" }, one.excerpt))))),
        hooks.has_more && h("p", { class: "muted" }, "There are more than are shown here."),
      ),
    hooks.dropped.length > 0 &&
      section(
        "Left out by filters",
        { note: "of projects" },
        h("ul", { class: "findings" }, hooks.dropped.map((one) => h("li", { key: `${one.project_id} ${one.agent_type}` }, h("p", {}, `${counted(one.count, "hook")} of ${one.agent_type ? `agents of the type ${one.agent_type}` : "agents without a type"}`), h("small", { class: "muted" }, one.reason)))),
      ),
    connectHelp(false),
  ];
}
