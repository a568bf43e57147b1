// One living document: read, written, compared with its earlier versions, restored and deleted.

import { del, get, getAll, orNull, post, put, saveBlob } from "./api.js";
import { LIVE_MS, RESTING_MS, flash, reading } from "./app.js";
import { changedIn, clashView, editOf, endEdit, freshen, hasClash, hasEdit, sendEdit, setIn } from "./conflict-view.js";
import { contextHref, isListed } from "./context.js";
import { diffView } from "./diff.js";
import { bytes, capital, figure, moment } from "./format.js";
import { docCause, docsHref, docsPath, isSyncing, stalenessMark, syncLine } from "./living.js";
import { markdownView } from "./markdown.js";
import { button, confirmation, copyButton, draftOf, empty, failureOf, field, head, link, press, row, rows, section, tabs, when } from "./parts.js";
import { copyBlock } from "./prose.js";
import { h } from "./view.js";

/** The longest text that the platform stores. */
const MOST_DOC_BYTES = 204_800;

const docPath = (ctx, rest = "") => docsPath(ctx.params.project_id, `/${encodeURIComponent(ctx.params.name)}${rest}`);
const docHref = (ctx, more) => docsHref(ctx.params.project_id, ctx.params.name, more);
/** The name of a draft. An address may call the project that everybody has `default`; the platform has one name for it. */
const docKey = (ctx) => `doc ${ctx.data.docs.project_id} ${ctx.params.name}`;

/** A field of a page has no other ends of lines. */
const withPlainLines = (text) => text.replace(/\r\n?/g, "\n");

const isThere = (ctx, signal) => isListed(docsPath(ctx.params.project_id), ctx.state.stored, signal, (one) => one.name === ctx.params.name);

/**
 * The document, or null: its record, `content` as its readers see it, and `text` as it is stored. The first lines of the content say how far
 * it is behind, so they change without a new version.
 */
async function readDoc(ctx, signal) {
  const shown = (await isThere(ctx, signal)) ? await get(docPath(ctx), signal).catch(orNull) : null;
  if (!shown) return null;
  const mark = `${shown.version} ${shown.written_at}`;
  if (ctx.state.stored?.mark !== mark) {
    const stored = await get(docPath(ctx, `?version=${shown.version}`), signal).catch(orNull);
    // It was deleted in between, and perhaps written anew.
    if (stored?.written_at !== shown.written_at) return readDoc(ctx, signal);
    ctx.state.stored = { mark, text: withPlainLines(stored.content) };
  }
  return { ...shown, text: ctx.state.stored.text };
}

export const docPage = {
  nav: "context",
  of: "document",
  title: (ctx) => ctx.params.name,
  reads: (ctx) => {
    const { project_id: id, name } = ctx.params;
    return {
      project: reading(`project of docs ${id}`, async (signal) => (ctx.state.project ??= await get(`/projects/${encodeURIComponent(id)}`, signal))),
      docs: docsPath(id),
      doc: reading(`doc ${id} ${name}`, (signal) => readDoc(ctx, signal)),
      versions: reading(`versions of doc ${id} ${name}`, async (signal) => {
        const none = { data: [], complete: true };
        if (!(await isThere(ctx, signal))) return none;
        return getAll(docPath(ctx, "/versions?limit=100"), 1, signal).catch((error) => orNull(error) ?? none);
      }),
    };
  },
  every: (ctx) => (ctx.data.docs && isSyncing(ctx.data.docs) ? LIVE_MS : RESTING_MS),
  view(ctx) {
    const { project, docs, doc, versions } = ctx.data;
    const { project_id: id, name } = ctx.params;
    const isDraft = hasEdit(docKey(ctx));
    // What was written for a document that is gone is still there.
    const show = ctx.query.show === "edit" || (!doc && isDraft) ? "edit" : doc ? (ctx.query.show ?? "text") : "none";
    return h(
      "div",
      { key: `doc ${id} ${name}` },
      h("p", { class: "crumb" }, h("a", { href: contextHref("docs") }, "Living documents"), " / ", h("a", { href: docsHref(id) }, project.name)),
      head(name, null, doc && show !== "edit" && press("Download", () => saveBlob(new Blob([doc.content], { type: "text/markdown;charset=utf-8" }), name), { key: "download" })),
      doc && h("p", { class: "theme-state muted" }, `Version ${figure(doc.version)}, ${docCause(doc.cause)} `, when(doc.written_at, { form: "relative" }), ` · ${bytes(doc.bytes)} · `, stalenessMark(docs)),
      doc && isSyncing(docs) && syncLine(docs),
      doc &&
        tabs("Views of the document", [
          ["Text", docHref(ctx), show === "text"],
          ["Markdown", docHref(ctx, { show: "markdown" }), show === "markdown"],
          [isDraft ? "Edit (draft)" : "Edit", docHref(ctx, { show: "edit" }), show === "edit"],
          ["Versions", docHref(ctx, { show: "versions" }), show === "versions", versions.data.length],
        ]),
      h(
        "div",
        { class: "context-body", key: show },
        show === "none" && empty("There is no document of this name in the project.", link("Write it", docHref(ctx, { show: "edit" }), { kind: "primary" }), link("All documents of the project", docsHref(id), { kind: "" })),
        show === "text" && docReader(ctx, doc),
        show === "markdown" && docMarkdown(doc),
        show === "edit" && docEditor(ctx, doc),
        show === "versions" && docVersions(ctx, doc),
      ),
    );
  },
};

// ---- Reading ----

/** The frontmatter of a text, and the rest. */
function docParts(text) {
  const found = /^---[^\S\n]*\n((?:[^\n]*\n)*?)---[^\S\n]*(?:\n|$)/.exec(text);
  return found ? { frontmatter: found[1], body: text.slice(found[0].length) } : { frontmatter: "", body: text };
}

/** `level` is that of the heading above the text. */
function docText(text, level) {
  const { frontmatter, body } = docParts(text);
  return [
    frontmatter && h("details", { key: "frontmatter", class: "living-front" }, h("summary", {}, "Frontmatter"), h("pre", { class: "reader", tabindex: "0", role: "region", "aria-label": "The frontmatter" }, frontmatter)),
    body.trim() === "" ? h("p", { class: "calm" }, "The document is empty.") : h("div", { class: "reading", role: "region", "aria-label": "The document" }, markdownView(body, { level })),
  ];
}

const docReader = (ctx, doc) => [docText(doc.text, 1), h("div", { class: "acts living-end", key: "end" }, press("Delete…", () => deleteDoc(ctx, doc)))];

const docMarkdown = (doc) => [
  h("p", { class: "muted" }, "As programs and assistants read it. The lines last_sync, last_commit and commits_since_sync are not part of the text: they say how far it is now."),
  h("p", { class: "acts" }, copyButton(doc.content, "Copy the Markdown")),
  h("pre", { class: "reader tall", tabindex: "0", role: "region", "aria-label": "The document as Markdown" }, doc.content),
];

function deleteDoc(ctx, doc) {
  confirmation(ctx, {
    title: `Delete ${doc.name}?`,
    key: "delete doc",
    label: "Delete",
    text: "The document is deleted with all its versions. This cannot be undone. The commits that wait stay.",
    act: async () => {
      await del(docPath(ctx)).catch(orNull);
      endDocEdit(ctx);
      flash(`${doc.name} is deleted.`);
      ctx.go(docsHref(ctx.params.project_id));
    },
  });
}

// ---- Writing ----

/** What a person has written and given up for theirs. It is kept until the next text is stored. */
const docLeft = (ctx) => draftOf(`${docKey(ctx)} left`);

function keepLeft(ctx, text) {
  ctx.state.left = text;
  try {
    docLeft(ctx).set(text);
  } catch {
    // The browser keeps no more. The page still has the text.
  }
}

/** Makes an edit follow the stored document. */
function followDoc(form, doc) {
  if (!doc) {
    // It was deleted. What was written can be stored as a new one.
    Object.assign(form, { base: { content: "" }, version: 0, clashes: {}, merged: [] });
    return;
  }
  // Versions of a document that was written anew begin again.
  if (doc.version < form.version || (doc.version === form.version && doc.text !== form.base.content)) form.version = doc.version - 1;
  freshen(form, { content: doc.text }, doc.version);
}

function endDocEdit(ctx) {
  if (ctx.state.form) endEdit(ctx.state.form);
  ctx.state.form = null;
  draftOf(docKey(ctx)).set("");
  keepLeft(ctx, "");
}

function docEditor(ctx, doc) {
  const form = (ctx.state.form ??= editOf(docKey(ctx), { content: doc?.text ?? "" }, doc?.version ?? 0));
  followDoc(form, doc);
  const key = "save doc";
  const { content } = form.mine;
  const isChanged = changedIn(form).length > 0;
  const size = new TextEncoder().encode(content).length;
  const fault = size > MOST_DOC_BYTES ? `The text has ${figure(size)} bytes. At most ${figure(MOST_DOC_BYTES)} are stored.` : null;
  const left = ctx.state.left ?? docLeft(ctx).get();
  const cannot = fault || hasClash(form) || (doc ? !isChanged : content.trim() === "");
  const write = (version) => (version === 0 ? post(docsPath(ctx.params.project_id), { name: ctx.params.name, content }) : put(docPath(ctx), { content }, { ifMatch: version }));
  const save = async () => {
    const saved = await sendEdit(form, write).catch(async (error) => {
      // It was deleted: the page says so, and saving creates it.
      if (error.status === 404) await ctx.refresh();
      throw error;
    });
    // The answer of an earlier try may be lost: then the newest version is what was sent.
    if (!saved && (await readDoc(ctx))?.text !== content) return;
    // The page shows what was stored before it ends the edit.
    await ctx.refresh();
    endDocEdit(ctx);
    ctx.go(docHref(ctx));
  };
  const submit = () => cannot || ctx.act(key, save);
  const drop = () => {
    endDocEdit(ctx);
    ctx.forgive(key);
    ctx.go(doc ? docHref(ctx) : docsHref(ctx.params.project_id));
  };
  return [
    !doc && h("p", { class: "muted", key: "new" }, "There is no stored document of this name. Saving creates it."),
    clashView(ctx, form, { content: "Text" }, { took: (_, mine) => keepLeft(ctx, mine) }),
    h(
      "form",
      { key: "editor", class: "editor", onsubmit: (event) => { event.preventDefault(); submit(); } },
      field(
        "The document as Markdown",
        h("textarea", {
          class: "markdown-text",
          rows: "20",
          spellcheck: "false",
          value: content,
          "aria-invalid": fault ? "true" : null,
          oninput: (event) => {
            setIn(form, "content", event.target.value);
            ctx.redraw();
          },
          onkeydown: (event) => {
            if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) event.target.form.requestSubmit();
          },
        }),
        { hint: "Lines last_sync, last_commit and commits_since_sync of a frontmatter are left out: the platform knows them.", error: fault },
      ),
      failureOf(ctx, key),
      h(
        "div",
        { class: "acts" },
        press(isChanged ? "Drop my changes…" : "Close", () => (isChanged ? confirmation(ctx, { title: "Drop your changes?", label: "Drop my changes", text: "The text that you have written here is lost. The stored document stays as it is.", act: async () => drop() }) : drop()), { kind: "quiet" }),
        h("div", { class: "end" }, button(ctx, doc ? `Save as version ${doc.version + 1}` : "Save the first version", { key, kind: "primary", disabled: Boolean(cannot), act: save })),
      ),
    ),
    left && section("Your text, not saved", { end: press("Forget it", () => { keepLeft(ctx, ""); ctx.redraw(); }, { kind: "link" }) }, copyBlock(left, "Your text, which is not saved")),
  ];
}

// ---- Versions ----

const versionHref = (ctx, v, from) => docHref(ctx, { show: "versions", v, from });

function docVersions(ctx, doc) {
  const { versions, docs } = ctx.data;
  const numbers = new Set(versions.data.map((one) => one.version));
  const [shown, from] = [ctx.query.v, ctx.query.from].map((text) => (text ? Number(text) : null));
  const isKnown = [shown, from].every((one) => one === null || numbers.has(one));
  const bySync = (one) => one.sync_id && ["by ", one.sync_id === docs.sync?.sync_id ? h("a", { href: docsHref(docs.project_id) }, "the newest synchronisation") : "the synchronisation", " ", h("span", { class: "mono" }, one.sync_id)];
  return [
    shown !== null && !isKnown && h("p", { class: "bad pad", role: "alert", key: "unknown" }, "There is no such version. It may be older than the 60 that are kept."),
    shown !== null && isKnown && docVersion(ctx, doc, shown, from),
    section(
      "Versions",
      { note: "the newest 60 are kept" },
      rows(
        versions.data.map((one) =>
          row({
            key: String(one.version),
            time: `No. ${one.version}`,
            title: capital(docCause(one.cause)),
            // What made it; of the first one, its text.
            href: versionHref(ctx, one.version, numbers.has(one.version - 1) && one.version - 1),
            note: [`${moment(one.written_at)} · ${bytes(one.bytes)}`, one.sync_id && " · ", bySync(one)],
            end: one.version === doc.version ? h("span", { class: "chip ok" }, "newest") : h("a", { class: "btn quiet", href: versionHref(ctx, doc.version, one.version), "aria-label": `Compare version ${one.version} with the newest` }, "Compare"),
          }),
        ),
      ),
    ),
  ];
}

/** The texts of versions, read once: a version does not change. */
function readVersions(ctx, all) {
  const texts = (ctx.state.versionTexts ??= new Map());
  const keyOf = (number) => `${number} ${ctx.data.versions.data.find((one) => one.version === number)?.written_at}`;
  return all.map((number) => {
    const key = keyOf(number);
    if (!texts.has(key)) {
      const entry = { text: null, error: null };
      texts.set(key, entry);
      get(docPath(ctx, `?version=${number}`), ctx.signal)
        .then(({ content }) => (entry.text = content), (error) => { entry.error = error; })
        .finally(ctx.redraw);
    }
    return texts.get(key);
  });
}

/** A version, or what differs between two. */
function docVersion(ctx, doc, shown, from) {
  const read = readVersions(ctx, from ? [from, shown] : [shown]);
  const error = read.find((one) => one.error)?.error;
  const isReady = read.every((one) => one.text !== null);
  const [text, before] = [read.at(-1).text, read[0].text];
  const again = () => {
    ctx.state.versionTexts.clear();
    ctx.redraw();
  };
  const restorable = [...new Set([from, shown])].filter((one) => one && one !== doc.version);
  const restoreKey = (number) => `restore ${number}`;
  const restore = (number) => async () => {
    await post(docPath(ctx, `/versions/${number}/restore`), undefined, { ifMatch: doc.version });
    flash(`The text of version ${number} is the newest again.`);
    ctx.go(docHref(ctx, { show: "versions" }));
  };
  return section(
    from ? `From version ${from} to version ${shown}` : `Version ${shown}`,
    { id: "version", end: h("a", { href: docHref(ctx, { show: "versions" }) }, "Close") },
    error && h("p", { class: "bad pad", role: "alert" }, error.message, " ", press("Retry", again, { kind: "link" })),
    !error && !isReady && h("p", { class: "muted pad" }, "Reading…"),
    isReady && (!from ? docText(withPlainLines(text), 2) : before === text ? h("p", { class: "calm" }, "The texts are the same.") : diffView(before, text)),
    restorable.map((number) => failureOf(ctx, restoreKey(number))),
    isReady &&
      h(
        "div",
        { class: "acts" },
        copyButton(text, `Copy version ${shown}`),
        h("div", { class: "end" }, restorable.map((number) => button(ctx, `Restore version ${number}`, { key: restoreKey(number), act: restore(number) }))),
      ),
  );
}
