// Themes: projects, the import of a theme, and what the index knows about it.

import { del, edit, get, getAll, post, saveBlob, send, succeed } from "./api.js";
import { flash, optional } from "./app.js";
import { bytes, capital, counted, figure, listed, spaced } from "./format.js";
import { button, confirmation, dialog, dialogActs, draftOf, empty, failureOf, field, head, link, press, problem, section, tabs, when } from "./parts.js";
import { codeSpans } from "./prose.js";
import { changesReads, changesView, diffLines } from "./theme-changes.js";
import { themeChatReads, themeChatRests, themeChatView } from "./theme-chat.js";
import { archiveFault, archiveInput, sendArchiveTo, sendingState } from "./upload.js";
import { h } from "./view.js";

const INDEXING_MS = 4_000;
/** An upload that takes its time is not asked about as often. */
const UPLOADING_MS = 15_000;
/** An import waits at most five minutes for its upload. */
const UPLOAD_MS = 5.5 * 60_000;
/** Projects whose state is read for the list. */
const MOST_STATES = 8;
const MOST_FILES_SHOWN = 300;
const MOST_FINDINGS_SHOWN = 300;
const LINES_SHOWN = 800;
const LONGEST_LINE = 2_000;
const LARGEST_TEXT = 2_000_000;

// ---- Addresses ----

const projectPath = (id) => `/projects/${encodeURIComponent(id)}`;
const themeFilePath = (id, path) => `${projectPath(id)}/files/${path.split("/").map(encodeURIComponent).join("/")}`;

/** The address of a view of a theme. `more` is the query: `q`, `file`, `lines`, `grep`, … */
export function themeHref(id, view, more = {}) {
  const query = new URLSearchParams(Object.entries(more).filter(([, value]) => value !== undefined && value !== null && value !== "")).toString();
  return `#/themes/${encodeURIComponent(id)}/${view}${query ? `?${query}` : ""}`;
}

const rangesText = (ranges) => (ranges ?? []).map(([first, last]) => (first === last ? `${first}` : `${first}-${last}`)).join(",");

/** `3-5,9` as pairs. What is no range is left out. */
function rangesOf(text) {
  return (text ?? "")
    .split(",")
    .map((one) => one.match(/^(\d{1,9})(?:-(\d{1,9}))?$/))
    .filter(Boolean)
    .map(([, first, last]) => [Number(first), Number(last ?? first)])
    .filter(([first, last]) => first >= 1 && last >= first);
}

const linesWord = ([first, last]) => (first === last ? `line ${first}` : `lines ${first}–${last}`);

/** The same page with another file in the reader. */
function openHref(ctx, file, ranges) {
  const { file: _, lines: __, ...rest } = ctx.query;
  return themeHref(ctx.params.project_id, themeView(ctx), { ...rest, file, lines: rangesText(ranges) });
}

const THEME_VIEWS = ["chat", "lookup", "files", "graph", "findings", "changes"];
const themeView = (ctx) => (ctx.params.chat_id ? "chat" : ctx.params.view ?? "lookup");

/**
 * An answer to a question that the page asks once, and again when `key` changes. Meanwhile the answer before it is still there. The
 * questions do not belong to `reads`, because those are asked again and again.
 */
function askedOnce(ctx, slot, key, ask) {
  const before = ctx.state[slot];
  if (before?.key === key) return before;
  const mine = { key, answer: before?.keeps === slot ? before.answer : null, error: null, working: true, keeps: slot };
  ctx.state[slot] = mine;
  ask(ctx.signal)
    .then(
      (answer) => Object.assign(mine, { answer, working: false }),
      (error) => Object.assign(mine, { error, answer: null, working: false }),
    )
    .finally(() => !ctx.signal.aborted && ctx.redraw());
  return mine;
}

function askOnceAgain(ctx, slot) {
  ctx.state[slot] = null;
  ctx.redraw();
}

// ---- Projects ----

export const themesPage = {
  nav: "themes",
  title: () => "Themes",
  reads(ctx) {
    const projects = { key: "/projects all", read: (signal) => getAll("/projects?limit=100", 5, signal) };
    const known = ctx.state.projects ?? [];
    return { projects, ...Object.fromEntries(known.map((id) => [`state ${id}`, optional(`${projectPath(id)}/map/status`)])) };
  },
  every: () => 0,
  view(ctx) {
    const { projects } = ctx.data;
    if (!ctx.state.projects) {
      ctx.state.projects = [];
      queueMicrotask(() => {
        ctx.state.projects = projects.data.slice(0, MOST_STATES).map((one) => one.project_id);
        ctx.refresh();
      });
    }
    return h(
      "div",
      { key: "themes" },
      head("Themes", "projects that hold a theme", press("New project…", () => askForProject(ctx))),
      h(
        "ul",
        { class: "rows projects" },
        projects.data.map((project) => projectRow(ctx, project, ctx.data[`state ${project.project_id}`])),
      ),
      !projects.complete && h("p", { class: "muted pad" }, "There are more projects than are shown here."),
      projects.data.length <= 1 &&
        h("p", { class: "calm" }, "A project holds one Shopify theme, and the context documents of a coding assistant. Open the project, and drop a zip of a theme."),
    );
  },
};

function projectRow(ctx, project, status) {
  const id = project.project_id;
  return h(
    "li",
    { key: id },
    h(
      "span",
      { class: "what" },
      h("a", { href: themeHref(id, "lookup") }, project.name),
      h("small", {}, status ? `${counted(status.files, "file")}${betweenDots}${themeStateWord(status)}${status.degraded.length ? `${betweenDots}${counted(status.degraded.length, "place")} not understood` : ""}` : project.version === 0 ? "the project that everybody has" : " "),
    ),
    h(
      "span",
      { class: "end" },
      link("Context", `#/context/documents/${encodeURIComponent(id)}`, { kind: "quiet" }),
      press("Rename", () => renameProject(ctx, project), { kind: "quiet" }),
      press("Delete", () => deleteProject(ctx, project, status), { kind: "quiet" }),
    ),
  );
}

const betweenDots = " · ";

function askForProject(ctx) {
  const draft = draftOf("new project");
  const key = "new project";
  const make = async () => {
    const made = await post("/projects", { name: draft.get().trim() });
    draft.set("");
    ctx.close();
    ctx.go(themeHref(made.project_id, "lookup"));
  };
  ctx.open(() =>
    dialog(
      { title: "New project", onclose: () => ctx.close() },
      projectForm(ctx, draft.get(), (text) => draft.set(text), () => ctx.act(key, make)),
      failureOf(ctx, key),
      dialogActs(ctx, button(ctx, "Create the project", { key, kind: "primary", disabled: draft.get().trim() === "", act: make })),
    ),
  );
}

function projectForm(ctx, value, set, submit) {
  return h(
    "form",
    {
      onsubmit: (event) => {
        event.preventDefault();
        if (event.target.elements.name.value.trim()) submit();
      },
    },
    field(
      "Name",
      h("input", {
        name: "name",
        value,
        maxlength: "200",
        autofocus: true,
        required: true,
        autocomplete: "off",
        oninput: (event) => {
          set(event.target.value);
          ctx.redraw();
        },
      }),
      { hint: "1 to 200 characters, for example Spring theme" },
    ),
  );
}

function renameProject(ctx, project) {
  const key = `rename ${project.project_id}`;
  let name = project.name;
  let version = project.version;
  let theirs = null;
  const save = async () => {
    try {
      await edit(projectPath(project.project_id), { name: name.trim() }, { ifMatch: version });
      ctx.close();
    } catch (error) {
      if (error.code === "version_conflict") {
        theirs = error.current ?? (await get(projectPath(project.project_id)));
        version = theirs.version;
      }
      throw error;
    }
  };
  ctx.open(() =>
    dialog(
      { title: "Rename the project", onclose: () => ctx.close() },
      projectForm(ctx, name, (text) => { name = text; }, () => ctx.act(key, save)),
      theirs && h("p", { role: "status" }, "Somebody has changed it meanwhile. It is called ", h("b", {}, theirs.name), " now. Your name is still in the field: rename again to use it."),
      !theirs && failureOf(ctx, key),
      dialogActs(ctx, button(ctx, "Rename", { key, kind: "primary", disabled: name.trim() === "", act: save })),
    ),
  );
}

function deleteProject(ctx, project, status) {
  const what = `${status?.files ? `Its theme (${counted(status.files, "file")}), its` : "Its theme, its"} context documents and the logs of its sessions are deleted.`;
  confirmation(ctx, {
    title: `Delete ${project.name}?`,
    key: `delete ${project.project_id}`,
    label: "Delete the project",
    text: `${what} This cannot be undone.${/^prj_0+$/.test(project.project_id) ? " The default project is empty afterwards, and stays." : ""}`,
    act: () => del(projectPath(project.project_id)),
  });
}

// ---- One theme ----

const THEME_STATES = {
  empty: ["", "no files yet"],
  pending: ["warn", "waits for the index"],
  indexing: ["warn", "is being indexed"],
  ready: ["ok", "indexed"],
  failed: ["bad", "cannot be indexed"],
};

const themeStateWord = (status) => THEME_STATES[status.state]?.[1] ?? spaced(status.state);

const DEGRADED_WORDS = {
  unclosed_tag: "a tag {% is not closed",
  unclosed_output: "an output {{ is not closed",
  unclosed_block: "a block has no end",
  stray_end: "an end without its beginning",
  invalid_json: "JSON with an error",
  unbalanced: "braces, a string or a comment without an end",
  invalid_utf8: "bytes that are not UTF-8",
  minified: "generated text, split by lines only",
  too_large: "more than 2 MB: only the path is indexed",
};

/** An import that waits for its upload, which may still come. */
const importComes = (status) => status.import?.state === "waiting" && Date.now() - Date.parse(status.import.created_at) < UPLOAD_MS;

export const themePage = {
  nav: "themes",
  title: (ctx) => ctx.data.project.name,
  reads: (ctx) => ({
    project: projectPath(ctx.params.project_id),
    status: `${projectPath(ctx.params.project_id)}/map/status`,
    limits: "/limits",
    ...(themeView(ctx) === "changes" && changesReads(ctx)),
    ...(themeView(ctx) === "chat" && themeChatReads(ctx)),
  }),
  every: (ctx) => {
    const { status } = ctx.data;
    if (!status) return undefined;
    if (importComes(status)) return Date.now() - Date.parse(status.import.created_at) < 60_000 ? INDEXING_MS : UPLOADING_MS;
    return ["pending", "indexing"].includes(status.state) ? INDEXING_MS : themeView(ctx) === "chat" ? themeChatRests(ctx) : undefined;
  },
  leave: (ctx) => ctx.state.upload?.stop?.(),
  view(ctx) {
    const { project, status } = ctx.data;
    const id = ctx.params.project_id;
    const view = themeView(ctx);
    const isEmpty = status.files === 0;
    const wrong = status.degraded.length;
    return h(
      "div",
      { key: `theme ${id}`, class: ctx.state.over ? "theme over" : "theme", ...dropping(ctx) },
      h("p", { class: "crumb" }, h("a", { href: "#/themes" }, "Themes")),
      head(project.name, null, !isEmpty && press("Replace the theme…", () => askForArchive(ctx))),
      themeState(ctx, status),
      isEmpty && [archiveDrop(ctx), importProgress(ctx, status)],
      !isEmpty && !ctx.state.choosing && importProgress(ctx, status),
      !isEmpty &&
        tabs("Views of this theme", [
          ["Chat", themeHref(id, "chat", { file: view === "chat" ? undefined : ctx.query.file }), view === "chat"],
          ["Lookup", themeHref(id, "lookup"), view === "lookup"],
          ["Files", themeHref(id, "files"), view === "files", status.files],
          ["Graph", themeHref(id, "graph"), view === "graph"],
          ["Findings", themeHref(id, "findings"), view === "findings"],
          ["Changes", themeHref(id, "changes"), view === "changes"],
        ]),
      !isEmpty && wrong > 0 && view !== "findings" && h("p", { class: "pad warn", key: "degraded" }, h("a", { href: themeHref(id, "findings") }, `${counted(wrong, "place")} could not be understood`), ". The rest of these files is indexed."),
      !isEmpty &&
        (THEME_VIEWS.includes(view)
          ? view === "changes"
            ? changesView(ctx)
            : view === "chat"
            ? themeChatView(ctx)
            : withReader(ctx, { lookup: lookupView, files: filesView, graph: graphView, findings: findingsView }[view](ctx))
          : empty("There is no such view of a theme.", link("Look something up", themeHref(id, "lookup"), { kind: "" }))),
    );
  },
};

function themeState(ctx, status) {
  const [tone] = THEME_STATES[status.state] ?? [""];
  return h(
    "p",
    { class: "theme-state", key: "state", role: "status" },
    h("span", { class: `chip ${tone}` }, themeStateWord(status)),
    status.files > 0 && h("span", { class: "muted" }, `${betweenDots}${counted(status.files, "file")}${betweenDots}${bytes(status.bytes)}`),
    status.indexed_at && status.files > 0 && h("span", { class: "muted" }, betweenDots, when(status.indexed_at, { form: "relative", prefix: "index of " })),
    status.reason && h("span", { class: "bad" }, `${betweenDots}${status.reason}`),
  );
}

// ---- The import ----

function dropping(ctx) {
  const hasFiles = (event) => [...(event.dataTransfer?.types ?? [])].includes("Files");
  return {
    ondragover: (event) => {
      if (!hasFiles(event)) return;
      event.preventDefault();
      if (!ctx.state.over) {
        ctx.state.over = true;
        ctx.redraw();
      }
    },
    ondragleave: (event) => {
      if (event.currentTarget.contains(event.relatedTarget)) return;
      ctx.state.over = false;
      ctx.redraw();
    },
    ondrop: (event) => {
      if (!hasFiles(event)) return;
      event.preventDefault();
      ctx.state.over = false;
      const [item] = event.dataTransfer.items;
      if (item?.webkitGetAsEntry?.()?.isDirectory) return refuseArchive(ctx, "This is a folder. Make a zip of it, and drop the zip.");
      chooseArchive(ctx, [...event.dataTransfer.files]);
    },
  };
}

function refuseArchive(ctx, text) {
  ctx.state.refused = { text };
  ctx.redraw();
}

/** A large place for the zip, where nothing is yet. */
function archiveDrop(ctx) {
  const { limits } = ctx.data;
  return h(
    "label",
    { class: "drop", key: "drop" },
    h("b", {}, "Drop a zip of a theme here, or choose one"),
    h("span", { class: "muted" }, `Up to ${bytes(limits.sizes.theme_archive_bytes)}. The theme is at the top of the archive or within one folder.`),
    archiveInput("Choose a zip of a theme", (files) => chooseArchive(ctx, files)),
  );
}

function askForArchive(ctx) {
  ctx.state.choosing = true;
  const close = () => {
    ctx.state.choosing = false;
    ctx.close();
  };
  ctx.open(() =>
    dialog(
      { title: "Replace the theme", onclose: close },
      h("p", {}, `All ${counted(ctx.data.status.files, "file")} of this project are replaced in one step. An unchanged file keeps its version.`),
      h("div", { ...dropping(ctx) }, archiveDrop(ctx)),
      ctx.state.refused && h("p", { class: "bad", role: "alert" }, ctx.state.refused.text),
    ),
  );
}

function chooseArchive(ctx, files) {
  const [file] = files;
  const { limits, status } = ctx.data;
  ctx.state.refused = null;
  const fault = archiveFault(files, limits.sizes.theme_archive_bytes);
  if (fault) return refuseArchive(ctx, fault);
  if (status.files === 0 || ctx.state.choosing) return importArchive(ctx, file);
  confirmation(ctx, {
    title: "Replace the theme?",
    key: "replace",
    label: "Replace the theme",
    text: `All ${counted(status.files, "file")} are replaced by “${file.name}” (${bytes(file.size)}).`,
    act: () => {
      importArchive(ctx, file);
    },
  });
}

function importArchive(ctx, file) {
  ctx.state.choosing = false;
  ctx.close();
  return ctx.act("import", async () => {
    ctx.state.imported = null;
    ctx.state.imported = await sendArchiveTo(ctx, `${projectPath(ctx.params.project_id)}/import`, file, ctx.data.limits.sizes.body_bytes);
  });
}

function importProgress(ctx, status) {
  const { upload, imported } = ctx.state;
  const last = status.import;
  const shown = imported && last && last.import_id === imported.import_id ? last : imported;
  return h(
    "div",
    { class: "importing", key: "importing", "aria-live": "polite" },
    sendingState(ctx, "import"),
    !upload && shown?.state === "done" && h("p", { class: "ok" }, `Imported ${counted(shown.files ?? 0, "file")}.${shown.left_out ? ` ${counted(shown.left_out, "entry was", "entries were")} left out.` : ""}`),
    !upload && shown?.state === "waiting" && h("p", {}, "The archive was sent. The import goes on."),
    !upload && shown?.state === "superseded" && h("p", { class: "warn" }, "A newer import has finished first. This one changed nothing."),
    !upload && (shown ?? last)?.state === "failed" && h("p", { class: "bad", role: "alert" }, `The last import failed: ${(shown ?? last).reason ?? "no reason is known"}. The files are as before.`),
    ["pending", "indexing"].includes(status.state) && !upload && h("p", { class: "muted" }, "The index follows within seconds. Answers use the new files already."),
  );
}

// ---- The reader ----

/** Puts the reader beside what the page shows, if a file is open. */
function withReader(ctx, content) {
  const file = readerFile(ctx);
  return h("div", { class: file ? "split" : "split single", key: `view ${themeView(ctx)}` }, h("div", { class: "split-list" }, content), file && themeReader(ctx, file, rangesOf(ctx.query.lines)));
}

/** The file in the reader. In the graph, `file` is the one in the centre. */
const readerFile = (ctx) => (themeView(ctx) === "graph" ? ctx.query.open : ctx.query.file);

async function readThemeFile(id, path, signal) {
  const response = await succeed(await send(themeFilePath(id, path), { signal, headers: { accept: "*/*" } }));
  const type = response.headers.get("content-type") ?? "";
  const size = Number(response.headers.get("content-length") ?? 0);
  if (!/^text\/|json|javascript|svg|xml/.test(type) || size > LARGEST_TEXT) {
    await response.body?.cancel();
    return { size, type, lines: null };
  }
  const text = await response.text();
  const lines = text.split("\n");
  if (lines.at(-1) === "") lines.pop();
  return { size: size || text.length, type, lines };
}

function themeReader(ctx, path, ranges) {
  const id = ctx.params.project_id;
  const key = `${path} ${ctx.data.status.revision}`;
  const file = askedOnce(ctx, "reader", key, (signal) => readThemeFile(id, path, signal));
  const shows = file.working && file.shownPath !== path ? null : file.answer;
  if (!file.working) file.shownPath = path;
  const parts = shows?.lines ? outlineOf(ctx, path, key) : [];
  const inGraph = themeView(ctx) === "graph";
  const closed = inGraph ? themeHref(id, "graph", { file: ctx.query.file }) : openHref(ctx, undefined, []);
  const own = inGraph ? graphOpen(ctx, path, ranges) : openHref(ctx, path, ranges);
  return h(
    "section",
    { class: "file-reader", key: `reader ${path}`, "aria-label": `File ${path}` },
    h(
      "header",
      {},
      h("h2", { tabindex: "-1", key: `${path} ${rangesText(ranges)}`, use: (node) => { queueMicrotask(() => showReader(node)); } }, path),
      h("span", { class: "muted" }, shows && `${bytes(shows.size)}${shows.lines ? `${betweenDots}${counted(shows.lines.length, "line")}` : ""}`),
      h(
        "span",
        { class: "end" },
        !inGraph && link("In the graph", themeHref(id, "graph", { file: path })),
        press("Save as a file", () => ctx.act("save file", () => saveThemeFile(id, path)), { kind: "link" }),
        h("a", { href: closed, onclick: () => focusLinkLater(own) }, "Close"),
      ),
    ),
    failureOf(ctx, "save file"),
    file.error && problem(ctx, file.error, { title: file.error.status === 404 ? "There is no such file" : undefined, retry: () => askOnceAgain(ctx, "reader") }),
    !file.error && !shows && h("p", { class: "muted pad" }, "Reading…"),
    shows && !shows.lines && h("p", { class: "pad" }, "This file is not shown, because it is not text or has more than 2 MB. You can save it."),
    parts.length > 0 &&
      h(
        "details",
        { class: "outline", key: `outline ${path}` },
        h("summary", {}, `Outline: ${counted(parts.length, "part")}`),
        h("nav", { "aria-label": `Parts of ${path}` }, parts.map(({ kind, name, lines: { start, end } }) => partLink(inGraph ? graphOpen(ctx, path, [[start, end]]) : openHref(ctx, path, [[start, end]]), kind, name, [start, end]))),
      ),
    shows?.lines && readerLines(ctx, file, path, shows.lines, ranges),
  );
}

/** The named parts of a file, once they are known. Without them, the file is shown all the same. */
function outlineOf(ctx, path, key) {
  const outline = askedOnce(ctx, "outline", key, (signal) => get(`${projectPath(ctx.params.project_id)}/outline?path=${encodeURIComponent(path)}`, signal));
  return outline.answer?.path === path ? outline.answer.nodes : [];
}

const partLink = (href, kind, name, range) => h("a", { href, key: `${range} ${kind} ${name}` }, h("span", {}, name), h("small", { class: "muted" }, `${spaced(kind)}, ${linesWord(range)}`));

/** Below the list, as on narrow pages, the reader comes into view as a whole. */
function showReader(heading) {
  heading.focus({ preventScroll: true });
  const isBelow = heading.getBoundingClientRect().top > innerHeight / 2;
  (isBelow ? heading.closest(".file-reader") : heading).scrollIntoView({ block: isBelow ? "start" : "nearest" });
}

async function saveThemeFile(id, path) {
  const response = await succeed(await send(themeFilePath(id, path), { headers: { accept: "*/*" } }));
  saveBlob(await response.blob(), path.split("/").at(-1));
}

/** When the reader is closed, the focus goes back to the link that opened it. */
function focusLinkLater(href) {
  requestAnimationFrame(() => requestAnimationFrame(() => [...document.querySelectorAll("main a")].find((node) => node.getAttribute("href") === href)?.focus()));
}

function readerLines(ctx, file, path, lines, ranges) {
  const first = ranges[0]?.[0] ?? 1;
  const place = rangesText(ranges);
  if (file.place !== place) {
    file.place = place;
    file.from = Math.max(0, Math.min(first - 1 - 100, lines.length - LINES_SHOWN));
    file.to = Math.min(lines.length, file.from + LINES_SHOWN);
  }
  const more = (from, to) => {
    file.from = from;
    file.to = to;
    ctx.redraw();
  };
  const key = `${file.from} ${file.to} ${place}`;
  if (file.drawnAs !== key) {
    file.drawnAs = key;
    const isHit = (number) => ranges.some(([from, to]) => number >= from && number <= to);
    file.drawn = h(
      "ol",
      { key: "lines" },
      lines.slice(file.from, file.to).map((text, index) => {
        const number = file.from + index + 1;
        const shown = text.length > LONGEST_LINE ? [text.slice(0, LONGEST_LINE), h("i", {}, ` … ${figure(text.length - LONGEST_LINE)} more characters`)] : text.replace(/\r$/, "");
        return h("li", { "data-line": String(number), class: isHit(number) ? "hit" : null }, isHit(number) ? h("mark", {}, shown) : h("span", {}, shown));
      }),
    );
  }
  return [
    ranges.length > 0 &&
      h(
        "p",
        { class: "places", key: "places" },
        "Marked: ",
        ranges.map((range, index) => [index > 0 && ", ", h("button", { class: "btn link", type: "button", onclick: (event) => jumpToLine(event.target.closest(".file-reader"), range[0]) }, linesWord(range))]),
        ranges[0][0] > lines.length && h("span", { class: "warn" }, ` The file has only ${counted(lines.length, "line")}.`),
      ),
    h(
      "div",
      { class: "code", key: `code ${path} ${place}`, tabindex: "0", role: "region", "aria-label": `Lines of ${path}`, use: (node) => { requestAnimationFrame(() => showLine(node.parentNode, first)); } },
      file.from > 0 && h("button", { class: "btn link", type: "button", key: "earlier", onclick: () => more(Math.max(0, file.from - LINES_SHOWN), file.to) }, `Show lines before ${figure(file.from + 1)}`),
      lines.length === 0 && h("p", { class: "muted" }, "The file is empty."),
      file.drawn,
      file.to < lines.length && h("button", { class: "btn link", type: "button", key: "later", onclick: () => more(file.from, Math.min(lines.length, file.to + LINES_SHOWN)) }, `Show lines after ${figure(file.to)}`),
    ),
  ];
}

/** When the lines have come: the first that is marked is in view, and the reader still is, unless the person has gone on. */
function showLine(reader, number) {
  jumpToLine(reader, number);
  const heading = reader?.querySelector("h2");
  if (heading && document.activeElement === heading) showReader(heading);
}

function jumpToLine(reader, number) {
  const code = reader?.querySelector(".code");
  const line = code?.querySelector(`[data-line="${number}"]`);
  if (line) code.scrollTop = Math.max(0, line.offsetTop - 3 * line.offsetHeight);
}

// ---- Lookup ----

function lookupView(ctx) {
  const id = ctx.params.project_id;
  const draft = draftOf(`lookup ${id}`);
  const asked = ctx.query.q?.slice(0, 10_000);
  const found = asked ? askedOnce(ctx, "lookup", `${asked} ${ctx.data.status.revision}`, () => post(`${projectPath(id)}/lookup`, { request: asked })) : null;
  const find = (event) => {
    event.preventDefault();
    const text = event.target.elements.request.value.trim();
    if (!text) return;
    // From here on, the field shows what the address asks.
    ctx.state.request = undefined;
    ctx.go(themeHref(id, "lookup", { q: text }));
  };
  return [
    h(
      "form",
      { class: "ask-theme", role: "search", onsubmit: find, key: "form" },
      field(
        "What should change?",
        h("input", { name: "request", type: "search", maxlength: "10000", required: true, "data-filter": true, autocomplete: "off", placeholder: "The cart drawer does not close on Escape", value: ctx.state.request ?? asked ?? draft.get(), oninput: (event) => { ctx.state.request = event.target.value; draft.set(event.target.value); } }),
        { hint: "In your words. Words in double quotes are looked for as text of the shop." },
      ),
      h("button", { class: "btn primary", disabled: found?.working ?? false }, "Find the files"),
    ),
    !asked && h("p", { class: "calm", key: "calm" }, "Say what should change. The index names the files and the lines, without a model. In the ", h("a", { href: themeHref(id, "chat") }, "chat"), ", an agent changes them."),
    found?.error && problem(ctx, found.error, { retry: () => askOnceAgain(ctx, "lookup") }),
    asked && !found.answer && found.working && h("p", { class: "muted pad", key: "wait" }, "Looking…"),
    found?.answer && lookupAnswer(ctx, found.answer),
  ];
}

/** A reason with the words as they were typed: the index knows only what they begin with. */
function asTyped(reason, asked) {
  const [field, found] = reason.split(": ");
  if (!found) return reason;
  const typed = asked.match(/[\p{L}\p{N}]+/gu) ?? [];
  const whole = (word) => typed.find((one) => one.toLowerCase() === word) ?? typed.find((one) => one.toLowerCase().startsWith(word.slice(0, Math.max(3, word.length - 1)))) ?? word;
  return `${field}: ${[...new Set(found.split(", ").map(whole))].join(", ")}`;
}

function lookupAnswer(ctx, answer) {
  const { targets, related, edit_order: order } = answer;
  if (targets.length === 0) return h("div", { key: "found" }, h("p", { class: "calm", role: "status" }, "No file matches these words. Try the words that customers read, or the name of a file."));
  const first = Object.fromEntries(targets.map((one) => [one.path, one.ranges]));
  return h(
    "div",
    { key: "found" },
    h(
      "p",
      { class: answer.confident ? "verdict" : "verdict unsure", role: "status" },
      answer.confident ? [h("b", {}, "Confident: "), "a file to edit is very likely among the first three."] : [h("b", {}, "Not confident. "), "These are the best matches, but none is certain. Look at the places, or say it in other words."],
    ),
    section(
      "Files",
      { note: `${counted(targets.length, "file")}, the best first` },
      h(
        "ol",
        { class: "targets rows", "aria-label": "Files, best first" },
        targets.map((one) =>
          h(
            "li",
            { key: one.path },
            h(
              "span",
              { class: "what" },
              h("a", { href: openHref(ctx, one.path, one.ranges), "aria-current": readerFile(ctx) === one.path ? "true" : null }, one.path),
              h("span", { class: "places" }, one.ranges.map((range) => [h("a", { href: openHref(ctx, one.path, [range]) }, linesWord(range)), " "])),
              h("small", {}, one.reasons.map((reason) => asTyped(reason, ctx.query.q)).join(betweenDots)),
            ),
          ),
        ),
      ),
    ),
    order.length > 1 && section("Order of editing", { note: "each file comes after those that it needs" }, h("ol", { class: "order" }, order.map((path) => h("li", { key: path }, h("a", { href: openHref(ctx, path, first[path]) }, path))))),
    related.length > 0 &&
      section(
        "Related",
        { note: "connected, but not found by your words" },
        h("ul", { class: "related" }, related.map((one) => h("li", { key: `${one.path} ${one.via}` }, h("a", { href: openHref(ctx, one.path, []) }, one.path), h("small", { class: "muted" }, ` ${spaced(one.edge)} of ${one.via}`)))),
      ),
  );
}

// ---- Files, and the search in their texts ----

function filesOf(ctx) {
  const id = ctx.params.project_id;
  return askedOnce(ctx, "files", `files ${ctx.data.status.revision}`, (signal) => getAll(`${projectPath(id)}/files?limit=200`, 50, signal));
}

function filesView(ctx) {
  const files = filesOf(ctx);
  const filter = ctx.state.filter ?? "";
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
  const all = files.answer?.data ?? [];
  const found = all.filter((one) => words.every((word) => one.path.toLowerCase().includes(word) || spaced(one.kind).includes(word)));
  const shown = found.slice(0, ctx.state.mostFiles ?? MOST_FILES_SHOWN);
  return [
    grepForm(ctx),
    ctx.query.grep ? grepAnswer(ctx) : null,
    section(
      "Files",
      { note: files.answer && (words.length ? `${figure(found.length)} of ${figure(all.length)}` : figure(all.length)) },
      h("label", { class: "filter" }, h("span", { class: "vh" }, "Filter by path or kind"), h("input", { type: "search", "data-filter": true, placeholder: "Filter by path or kind", autocomplete: "off", value: filter, oninput: (event) => { ctx.state.filter = event.target.value; ctx.redraw(); } })),
      files.error && problem(ctx, files.error, { retry: () => askOnceAgain(ctx, "files") }),
      !files.error && !files.answer && h("p", { class: "muted pad" }, "Reading…"),
      files.answer && found.length === 0 && h("p", { class: "calm" }, `No path contains “${filter.trim()}”. `, press("Show all files", () => { ctx.state.filter = ""; ctx.redraw(); }, { kind: "link" })),
      shown.length > 0 &&
        h(
          "table",
          { class: "files" },
          h("caption", { class: "vh" }, "Files of the theme, by path"),
          h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Path"), h("th", { scope: "col", class: "kind" }, "Kind"), h("th", { scope: "col", class: "size" }, "Size"))),
          h(
            "tbody",
            {},
            shown.map((one) =>
              h("tr", { key: one.path }, h("td", {}, h("a", { href: openHref(ctx, one.path, []), "aria-current": readerFile(ctx) === one.path ? "true" : null }, one.path)), h("td", { class: "kind muted" }, spaced(one.kind)), h("td", { class: "size muted" }, bytes(one.bytes))),
            ),
          ),
        ),
      found.length > shown.length && press(`Show ${figure(Math.min(MOST_FILES_SHOWN, found.length - shown.length))} more`, () => { ctx.state.mostFiles = shown.length + MOST_FILES_SHOWN; ctx.redraw(); }),
      files.answer && !files.answer.complete && h("p", { class: "muted" }, "There are more files than are shown here."),
    ),
  ];
}

function grepForm(ctx) {
  const { query } = ctx;
  const find = (event) => {
    event.preventDefault();
    const { grep, regex, nocase, glob } = event.target.elements;
    if (!grep.value) return;
    ctx.go(themeHref(ctx.params.project_id, "files", { grep: grep.value, regex: regex.checked ? "1" : "", nocase: nocase.checked ? "1" : "", glob: glob.value.trim() }));
  };
  return h(
    "form",
    { class: "grep-form", role: "search", onsubmit: find, key: "grep", "aria-label": "Search in the texts" },
    h("label", { class: "field wide" }, h("span", {}, "Search in the texts"), h("input", { name: "grep", type: "search", maxlength: "1000", required: true, autocomplete: "off", spellcheck: "false", placeholder: "cart-drawer", use: (node) => { node.value = query.grep ?? ""; } })),
    h("label", { class: "field" }, h("span", {}, "Only paths like"), h("input", { name: "glob", maxlength: "256", autocomplete: "off", spellcheck: "false", placeholder: "sections/*.liquid", use: (node) => { node.value = query.glob ?? ""; } })),
    h("label", { class: "check" }, h("input", { name: "nocase", type: "checkbox", use: (node) => { node.checked = query.nocase === "1"; } }), "Ignore case"),
    h("label", { class: "check" }, h("input", { name: "regex", type: "checkbox", use: (node) => { node.checked = query.regex === "1"; } }), "Regular expression"),
    h("button", { class: "btn" }, "Search"),
  );
}

function grepPath(ctx, from, fromLine) {
  const { grep, regex, nocase, glob } = ctx.query;
  const query = new URLSearchParams({ q: grep, ...(regex ? { regex: "true" } : {}), ...(nocase ? { ignore_case: "true" } : {}), ...(glob ? { glob } : {}), ...(from ? { from, from_line: String(fromLine ?? 1) } : {}) });
  return `${projectPath(ctx.params.project_id)}/grep?${query}`;
}

function grepAnswer(ctx) {
  const { grep, regex, nocase, glob } = ctx.query;
  const found = askedOnce(ctx, "grep", JSON.stringify([grep, regex, nocase, glob, ctx.data.status.revision]), (signal) => get(grepPath(ctx), signal));
  const answer = found.answer;
  const more = async () => {
    const next = await get(grepPath(ctx, answer.next_path, answer.next_line), ctx.signal);
    found.answer = { ...next, matches: [...answer.matches, ...next.matches], searched_files: answer.searched_files + next.searched_files };
  };
  const byFile = new Map();
  for (const match of answer?.matches ?? []) byFile.set(match.path, [...(byFile.get(match.path) ?? []), match]);
  return section(
    "Found",
    { note: answer && `${counted(answer.matches.length, "line")} in ${counted(byFile.size, "file")}`, end: h("a", { href: themeHref(ctx.params.project_id, "files") }, "Close the search") },
    found.error && problem(ctx, found.error, { retry: () => askOnceAgain(ctx, "grep") }),
    !found.error && !answer && h("p", { class: "muted pad" }, "Searching…"),
    answer && answer.matches.length === 0 && h("p", { class: "calm" }, `No line contains “${grep}”${answer.next_path ? " so far" : ""}.`),
    h(
      "ul",
      { class: "matches" },
      [...byFile].map(([path, matches]) =>
        h(
          "li",
          { key: path },
          h("h3", {}, path),
          h("ul", {}, matches.map((one) => h("li", { key: String(one.line) }, h("a", { href: openHref(ctx, path, [[one.line, one.line]]) }, h("span", { class: "number" }, h("span", { class: "vh" }, "line "), String(one.line)), h("code", {}, one.text.trim() || " "))))),
        ),
      ),
    ),
    answer?.next_path && [failureOf(ctx, "grep more"), button(ctx, "Search on", { key: "grep more", act: more })],
  );
}

// ---- The graph ----

/** A file that shows at once what a theme is made of. */
const firstFile = (files) => (files.find((one) => one.path === "layout/theme.liquid") ?? files.find((one) => one.kind === "layout") ?? files[0])?.path;

function graphView(ctx) {
  const id = ctx.params.project_id;
  const files = filesOf(ctx);
  const all = files.answer?.data ?? [];
  const center = ctx.query.file ?? firstFile(all);
  const graph = center ? askedOnce(ctx, "graph", `${center} ${ctx.data.status.revision}`, (signal) => get(`${projectPath(id)}/graph?path=${encodeURIComponent(center)}`, signal)) : null;
  const answer = graph?.answer && graph.answer.path === center ? graph.answer : null;
  const choose = (event) => {
    event.preventDefault();
    const path = event.target.elements.path.value.trim();
    if (path) ctx.go(themeHref(id, "graph", { file: path }));
  };
  return [
    h(
      "form",
      { class: "graph-form", onsubmit: choose, key: "choose" },
      h("label", { class: "field wide" }, h("span", {}, "File in the centre"), h("input", { name: "path", list: "theme-paths", "data-filter": true, autocomplete: "off", spellcheck: "false", maxlength: "256", key: center, use: (node) => { node.value = center ?? ""; } })),
      h("datalist", { id: "theme-paths" }, all.slice(0, 2000).map((one) => h("option", { value: one.path, key: one.path }))),
      h("button", { class: "btn" }, "Show"),
    ),
    files.error && problem(ctx, files.error, { retry: () => askOnceAgain(ctx, "files") }),
    graph?.error && problem(ctx, graph.error, { title: graph.error.status === 404 ? "There is no such file" : undefined, retry: () => askOnceAgain(ctx, "graph") }),
    !answer && !graph?.error && !files.error && h("p", { class: "muted pad", key: "wait" }, "Reading…"),
    answer && graphDrawing(ctx, answer),
  ];
}

/** The edges of one direction, one entry for each file. */
function byNeighbour(edges, side) {
  const all = new Map();
  for (const edge of edges) {
    const path = edge[side];
    const one = all.get(path) ?? { path, edges: [] };
    one.edges.push(edge);
    all.set(path, one);
  }
  return [...all.values()];
}

const EDGE_NATURES = { direct: null, indirect: "known at run time only", preset: "from a preset" };

function graphDrawing(ctx, answer) {
  const needs = byNeighbour(answer.depends_on, "to");
  const neededBy = byNeighbour(answer.needed_by, "from");
  const { path } = answer;
  return h(
    "div",
    { class: "graph", key: `graph ${path}`, onkeydown: walkGraph, use: drawCurves },
    h("svg", { class: "curves", "aria-hidden": "true", opaque: true, key: "curves" }),
    graphSide(ctx, "needs", "Needs", "It needs no other file.", needs),
    h(
      "div",
      { class: "graph-center", key: "center" },
      h("h2", { tabindex: "-1", use: (node) => { if (ctx.state.walks) queueMicrotask(() => node.focus({ preventScroll: true })); } }, path),
      h("p", { class: "muted" }, `needs ${counted(needs.length, "file")}, needed by ${counted(neededBy.length, "file")}`),
      answer.rendered_by.length > 0 && h("p", { class: "muted" }, `On a page through ${listed(answer.rendered_by.slice(0, 4))}${answer.rendered_by.length > 4 ? " and others" : ""}`),
      h("p", {}, h("a", { href: graphOpen(ctx, path, [[1, 1]]) }, "Read it")),
    ),
    graphSide(ctx, "needed-by", "Needed by", "No other file needs it.", neededBy),
    answer.truncated && h("p", { class: "muted", key: "truncated" }, "There are more than are shown here."),
    h("p", { class: "muted keys", key: "keys" }, "Arrow keys walk; Enter puts a file into the centre."),
  );
}

/** Lines of a file beside the graph, whose file stays in the centre. */
const graphOpen = (ctx, open, ranges) => themeHref(ctx.params.project_id, "graph", { file: ctx.query.file ?? open, open, lines: rangesText(ranges) });

function graphSide(ctx, side, title, none, neighbours) {
  const id = ctx.params.project_id;
  return h(
    "section",
    { class: `graph-side ${side}`, key: side, "aria-label": title },
    h("h2", {}, title, h("span", { class: "muted" }, ` ${neighbours.length}`)),
    neighbours.length === 0 && h("p", { class: "muted" }, none),
    h(
      "ul",
      {},
      neighbours.map((one) => {
        const kinds = [...new Set(one.edges.map((edge) => spaced(edge.kind)))];
        const natures = [...new Set(one.edges.map((edge) => EDGE_NATURES[edge.nature]).filter(Boolean))];
        const places = one.edges.slice(0, 5);
        return h(
          "li",
          { key: one.path },
          h("a", { class: "node", href: themeHref(id, "graph", { file: one.path }), onclick: () => { ctx.state.walks = true; } }, one.path),
          h("small", { class: "muted" }, [...kinds, ...natures].join(", "), " · ", places.map((edge, index) => [index > 0 && ", ", h("a", { href: graphOpen(ctx, edge.from, [edge.range]), "aria-label": `${linesWord(edge.range)} of ${edge.from}` }, linesWord(edge.range))]), one.edges.length > places.length && " …"),
        );
      }),
    ),
  );
}

/** Up and down within a side, left and right between the sides. */
function walkGraph(event) {
  const step = { ArrowUp: -1, ArrowDown: 1 }[event.key];
  const side = { ArrowLeft: "needs", ArrowRight: "needed-by" }[event.key];
  if ((!step && !side) || event.altKey || event.ctrlKey || event.metaKey || event.target.closest("input")) return;
  const graph = event.currentTarget;
  const nodes = (of) => [...of.querySelectorAll("a.node")];
  const mine = event.target.closest(".graph-side");
  let to;
  if (side) {
    const other = graph.querySelector(`.graph-side.${side}`);
    const sides = { needs: "needed-by", "needed-by": "needs" };
    // From the far side, the centre comes first.
    to = mine?.classList.contains(sides[side]) ? graph.querySelector(".graph-center h2") : nodes(other)[0];
  } else {
    const list = nodes(mine ?? graph);
    const now = list.findIndex((node) => node.closest("li") === event.target.closest("li") && event.target.closest("li"));
    to = list[Math.max(0, Math.min(list.length - 1, now + step))];
  }
  if (!to) return;
  event.preventDefault();
  to.focus();
}

/** Draws a curve from each file to the one in the centre, and again when the size changes. */
function drawCurves(graph) {
  const svg = () => graph.querySelector(".curves");
  const curve = () => {
    const drawing = svg();
    if (!drawing) return;
    const box = graph.getBoundingClientRect();
    const center = graph.querySelector(".graph-center").getBoundingClientRect();
    const paths = [...graph.querySelectorAll("a.node")].map((node) => {
      const at = node.getBoundingClientRect();
      const isLeft = Boolean(node.closest(".needs"));
      const from = { x: (isLeft ? at.right + 6 : at.left - 6) - box.left, y: at.top + at.height / 2 - box.top };
      const to = { x: (isLeft ? center.left : center.right) - box.left, y: center.top + center.height / 2 - box.top };
      const middle = (from.x + to.x) / 2;
      const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
      path.setAttribute("d", `M${from.x} ${from.y}C${middle} ${from.y} ${middle} ${to.y} ${to.x} ${to.y}`);
      return path;
    });
    drawing.replaceChildren(...paths);
  };
  const observer = new ResizeObserver(curve);
  observer.observe(graph);
  return () => observer.disconnect();
}

// ---- Findings ----

const FINDING_SEVERITIES = [
  ["refused", "Refused", "bad", "Shopify does not take these files"],
  ["error", "Errors", "bad", "a page breaks"],
  ["warning", "Warnings", "warn", "something silently does not work"],
  ["info", "Hints", "", "it works, but could be better"],
];

/** What strict Liquid refuses, written in strict Liquid: as diffs with reasons, and stored with one press. */
function mendsSection(ctx, check) {
  const path = `${projectPath(ctx.params.project_id)}/fix`;
  const show = (how) => () => {
    ctx.state.mendHow = how;
    ctx.redraw();
  };
  const asMeant = ctx.state.mendHow === "meant";
  const choices = h(
    "div",
    { class: "acts" },
    press("Show the mends", show("shown"), { kind: ctx.state.mendHow ? "quiet" : "primary" }),
    press("As it was meant", show("meant"), { kind: "quiet" }),
  );
  const intro = h("p", { class: "pad" }, "Most of it can be written in strict Liquid so that pages stay as they are. “As it was meant” also mends what never worked, and says how the page changes.");
  if (!ctx.state.mendHow) return section("Mends", { note: counted(check.refused, "refused file") }, intro, choices);
  const asked = askedOnce(ctx, "mends", `${asMeant} ${ctx.data.status.revision}`, () => post(path, { as_meant: asMeant }));
  const mends = asked.answer;
  const changed = mends?.files.filter((one) => one.changes.length > 0) ?? [];
  const store = async () => {
    const stored = await post(path, { as_meant: asMeant, write: true });
    flash(`Stored ${counted(stored.written, "mended file")}.`);
    askOnceAgain(ctx, "check");
    askOnceAgain(ctx, "mends");
    ctx.refresh();
  };
  return section(
    "Mends",
    { note: mends && `${counted(mends.refused_before - mends.refused_after, "file")} of ${figure(mends.refused_before)} would be taken afterwards` },
    intro,
    choices,
    asked.error && problem(ctx, asked.error, { retry: () => askOnceAgain(ctx, "mends") }),
    !mends && !asked.error && h("p", { class: "muted pad", role: "status" }, "Mending…"),
    mends && h("ul", { class: "findings", "aria-label": "Mends" }, mends.files.slice(0, MOST_FINDINGS_SHOWN).map(mendedFile)),
    mends?.has_more && h("p", { class: "muted" }, "There are more files. Store these first."),
    changed.length > 0 && h("div", { class: "acts" }, press("Store the mended files…", () => confirmation(ctx, { title: "Store the mended files?", key: "store mends", label: "Store them", kind: "primary", text: `${counted(changed.length, "file")} of the theme are replaced, all or none.`, act: store }))),
  );
}

function mendedFile(one) {
  return h(
    "li",
    { key: one.path },
    h("p", {}, h("b", {}, one.path)),
    one.diff && diffLines(one.diff, `What changes in ${one.path}`),
    one.changes.map((change) => h("p", { class: "muted" }, `Line ${change.line}: ${change.output ?? change.reason}`)),
    one.left.map((left) => [h("p", { class: "bad" }, `Line ${left.line}: ${left.reason}`), h("ul", { class: "plain" }, left.choices.map((choice) => h("li", { class: "muted" }, capital(choice))))]),
  );
}

function findingsView(ctx) {
  const id = ctx.params.project_id;
  const { status } = ctx.data;
  const check = askedOnce(ctx, "check", `check ${status.revision}`, () => post(`${projectPath(id)}/check`, {}));
  const graph = askedOnce(ctx, "unused", `unused ${status.revision}`, (signal) => get(`${projectPath(id)}/graph/findings`, signal));
  const answer = check.answer;
  const place = (path, line) => h("a", { href: openHref(ctx, path, [[line, line]]) }, `${path}:${line}`);
  const filter = (ctx.state.finding ?? "").toLowerCase();
  const found = (answer?.findings ?? []).filter((one) => !filter || `${one.path} ${one.code} ${one.message}`.toLowerCase().includes(filter));
  // What is refused is an error, and stands first in the answer.
  const kindOf = (one) => (one.refused ? "refused" : one.severity);
  const refused = (answer?.findings ?? []).filter((one) => one.refused).length;
  const counts = { refused, error: (answer?.errors ?? 0) - refused, warning: answer?.warnings, info: answer?.infos };
  return [
    h(
      "p",
      { class: "verdict", key: "verdict", role: "status" },
      check.error ? "The check did not end." : !answer ? "Checking…" : answer.findings.length === 0 ? "The check finds nothing wrong." : [h("b", {}, answer.refused ? `Shopify would refuse ${counted(answer.refused, "file")}.` : "Shopify would take every file."), " ", h("b", {}, listed([answer.errors && counted(answer.errors, "error"), answer.warnings && counted(answer.warnings, "warning"), answer.infos && counted(answer.infos, "hint")].filter(Boolean))), ` in ${counted(answer.files, "file")}.`],
    ),
    check.error && problem(ctx, check.error, { retry: () => askOnceAgain(ctx, "check") }),
    answer && answer.findings.length > 8 && h("label", { class: "filter", key: "filter" }, h("span", { class: "vh" }, "Filter the findings"), h("input", { type: "search", "data-filter": true, placeholder: "Filter by path, code or words", value: ctx.state.finding ?? "", oninput: (event) => { ctx.state.finding = event.target.value; ctx.redraw(); } })),
    FINDING_SEVERITIES.map(([severity, title, tone, means]) => {
      const own = found.filter((one) => kindOf(one) === severity);
      if (!counts[severity]) return null;
      return section(
        title,
        { note: `${figure(counts[severity])} · ${means}` },
        h(
          "ul",
          { class: "findings" },
          own.slice(0, MOST_FINDINGS_SHOWN).map((one, index) => h("li", { key: `${index} ${one.path}:${one.line} ${one.code}` }, h("p", { class: tone }, codeSpans(one.message)), h("small", {}, place(one.path, one.line), " ", h("code", { class: "muted" }, one.code)))),
        ),
        own.length > MOST_FINDINGS_SHOWN && h("p", { class: "muted" }, `${figure(own.length - MOST_FINDINGS_SHOWN)} more are not shown. Filter by a path.`),
        own.length === 0 && h("p", { class: "muted pad" }, "The filter hides them."),
      );
    }),
    answer?.has_more && h("p", { class: "muted", key: "more" }, "There are more. These are the worst."),
    answer?.refused > 0 && mendsSection(ctx, answer),
    status.degraded.length > 0 &&
      section("Not understood", { note: `${counted(status.degraded.length, "place")} · the rest of these files is indexed` }, h("ul", { class: "findings degraded" }, status.degraded.map((one) => h("li", { key: `${one.path} ${one.line} ${one.reason}` }, h("p", {}, capital(DEGRADED_WORDS[one.reason] ?? spaced(one.reason))), h("small", {}, place(one.path, one.line), " ", h("code", { class: "muted" }, one.reason)))))),
    graph.error && problem(ctx, graph.error, { retry: () => askOnceAgain(ctx, "unused") }),
    graph.answer?.unresolved.length > 0 &&
      section("References to files that do not exist", { note: figure(graph.answer.unresolved.length) }, h("ul", { class: "findings" }, graph.answer.unresolved.slice(0, MOST_FINDINGS_SHOWN).map((one) => h("li", { key: `${one.from} ${one.name} ${one.kind} ${one.range}` }, h("p", {}, `${capital(spaced(one.kind))} “${one.name}”`), h("small", {}, place(one.from, one.range[0])))))),
    graph.answer?.probably_unused.length > 0 &&
      section("Probably unused", { note: `${figure(graph.answer.probably_unused.length)} · look before you delete one` }, h("ul", { class: "findings" }, graph.answer.probably_unused.slice(0, MOST_FINDINGS_SHOWN).map((one) => h("li", { key: one.path }, h("p", {}, h("a", { href: openHref(ctx, one.path, []) }, one.path)), h("small", { class: "muted" }, one.reason))))),
    graph.answer && h("p", { class: "muted pad", key: "edges" }, `The graph of this theme has ${counted(graph.answer.edges, "edge")}.`),
  ];
}
