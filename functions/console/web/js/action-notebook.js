// The notebook of an action: the words that a run hands on to the next one.

import { del, get, put } from "./api.js";
import { diffView } from "./diff.js";
import { bytes, figure } from "./format.js";
import { button, confirmation, draftOf, empty, failureOf, link, press, section, when } from "./parts.js";
import { h } from "./view.js";

const NOTEBOOK_BYTES = 4000;

const notebookSize = (text) => new TextEncoder().encode(text).length;

const eraseButton = (ctx, action, notebook) =>
  press(
    "Erase",
    () =>
      confirmation(ctx, {
        title: "Erase the notebook?",
        key: "erase notebook",
        label: "Erase",
        text: "The text is deleted with all its versions. The next run begins without it.",
        act: async () => {
          await del(`/actions/${action.action_id}/notebook`, { ifMatch: notebook.version });
          draftOf(`notebook ${action.action_id}`).set("");
          if (ctx.state.notebook) ctx.state.notebook = null;
        },
      }),
    { kind: "quiet" },
  );

const writtenBy = (notebook) => notebook.written_at && h("span", {}, notebook.run_id ? ["written by ", h("a", { href: `#/runs/${notebook.run_id}` }, "a run"), ", "] : "written by you, ", when(notebook.written_at, { form: "moment" }));

/** The notebook beside the other facts of an action. */
export function notebookSection(ctx, action, notebook) {
  const href = `#/actions/${action.action_id}/notebook`;
  return section(
    "Notebook",
    { note: "for the next run", end: notebook.version > 0 && h("span", { class: "muted" }, `version ${figure(notebook.version)}`) },
    notebook.text ? h("p", { class: "ruled" }, notebook.text) : h("p", { class: "calm" }, "It is empty."),
    notebook.text && h("p", { class: "under" }, h("span", {}, `${figure(notebookSize(notebook.text))} of ${figure(NOTEBOOK_BYTES)} bytes`), writtenBy(notebook)),
    notebook.tainted && h("p", { class: "warn" }, "A run that had read what strangers have written wrote this. It may be false."),
    h("p", { class: "muted" }, "The run’s own words: shown to it, never obeyed."),
    failureOf(ctx, "erase notebook"),
    h("div", { class: "acts" }, notebook.text && eraseButton(ctx, action, notebook), h("div", { class: "end" }, notebook.version > 0 && link("Versions", href, { kind: "quiet" }), link(notebook.text ? "Edit the notebook" : "Write in it", href, { kind: "" }))),
  );
}

/** The page of a notebook: its text as a form, and its versions. */
export function notebookPage(ctx, { action, notebook, versions }) {
  const draft = draftOf(`notebook ${action.action_id}`);
  const state = (ctx.state.notebook ??= openNotebook(draft, notebook));
  // What nobody has touched follows what is stored.
  if (state.text === state.base && !state.conflict && notebook.version !== state.version) Object.assign(state, { base: notebook.text, text: notebook.text, version: notebook.version });
  const size = notebookSize(state.text);
  const isTyped = state.text !== state.base;
  const set = (text) => {
    state.text = text;
    draft.set(text === state.base ? "" : JSON.stringify({ text, base: state.base, version: state.version }));
    ctx.redraw();
  };
  const save = async () => {
    try {
      const stored = await put(`/actions/${action.action_id}/notebook`, { text: state.text }, { ifMatch: state.version });
      draft.set("");
      Object.assign(state, { base: stored.text, text: stored.text, version: stored.version, conflict: null });
      ctx.say("The notebook is saved.");
    } catch (error) {
      if (error.code !== "version_conflict") throw error;
      const theirs = await get(`/actions/${action.action_id}/notebook`);
      Object.assign(state, { conflict: theirs, base: theirs.text, version: theirs.version });
      draft.set(JSON.stringify({ text: state.text, base: state.base, version: state.version }));
      ctx.say("It was changed meanwhile. Nothing of yours is lost.");
    }
  };
  return h(
    "div",
    { class: "cols" },
    h(
      "div",
      {},
      h("label", { class: "vh", for: "notebook-text" }, "Text of the notebook"),
      h("textarea", { id: "notebook-text", class: "ruled", rows: "10", value: state.text, oninput: (event) => set(event.target.value) }),
      h("p", { class: "under" }, h("span", { class: size > NOTEBOOK_BYTES ? "bad" : null, role: size > NOTEBOOK_BYTES ? "alert" : null }, `${figure(size)} of ${figure(NOTEBOOK_BYTES)} bytes`), notebook.version > 0 && h("span", {}, `version ${figure(notebook.version)}`), writtenBy(notebook)),
      h("p", { class: "muted" }, "The run’s own words: shown to it, never obeyed. What you write here is shown to the next run."),
      state.conflict &&
        h(
          "section",
          { class: "act-conflict", role: "alert", "aria-label": "The notebook was changed meanwhile" },
          h("h2", {}, "The notebook was changed meanwhile"),
          h("p", {}, state.conflict.run_id ? "A run has written in it. " : "Somebody has written in it. ", "From theirs to yours:"),
          diffView(state.conflict.text, state.text),
          h(
            "div",
            { class: "acts" },
            press("Take theirs", () => {
              state.conflict = null;
              set(state.base);
            }),
            press("Keep mine", () => {
              state.conflict = null;
              ctx.redraw();
            }),
          ),
        ),
      failureOf(ctx, "save notebook"),
      failureOf(ctx, "erase notebook"),
      h("div", { class: "acts" }, notebook.version > 0 && eraseButton(ctx, action, notebook), h("div", { class: "end" }, isTyped && press("Discard my text", () => set(state.base), { kind: "quiet" }), button(ctx, "Save the notebook", { key: "save notebook", kind: "primary", disabled: !isTyped || size > NOTEBOOK_BYTES || Boolean(state.conflict), act: save }))),
    ),
    h("div", {}, section("Versions", { note: "the newest 50 are kept" }, notebookVersions(ctx, versions.data, set))),
  );
}

function openNotebook(draft, notebook) {
  let typed = null;
  try {
    typed = JSON.parse(draft.get());
  } catch {
    // Nothing was typed.
  }
  return { text: typed?.text ?? notebook.text, base: typed?.base ?? notebook.text, version: typed?.version ?? notebook.version, conflict: null };
}

function notebookVersions(ctx, versions, set) {
  if (versions.length === 0) return empty("No version is kept.");
  const open = (ctx.state.openVersions ??= new Set());
  return h(
    "ul",
    { class: "rows act-history" },
    versions.map((version, index) => {
      const isOpen = open.has(version.version);
      return h(
        "li",
        { key: version.version },
        h("span", { class: "when" }, `v ${figure(version.version)}`),
        h("span", { class: "what" }, version.text === "" ? "Emptied" : version.run_id ? "A run" : "You", h("small", {}, when(version.written_at, { form: "moment" }), ` · ${bytes(notebookSize(version.text))}`)),
        h(
          "span",
          { class: "end" },
          press(isOpen ? "Hide" : "See", () => {
            if (isOpen) open.delete(version.version);
            else open.add(version.version);
            ctx.redraw();
          }, { kind: "quiet", expanded: isOpen }),
        ),
        isOpen && h("div", { class: "detail" }, diffView(versions[index + 1]?.text ?? "", version.text), h("div", { class: "acts" }, h("div", { class: "end" }, press("Use this text", () => set(version.text))))),
      );
    }),
  );
}
