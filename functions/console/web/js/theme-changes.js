// Change sets of a theme: edits that nobody else sees until they are applied.

import { del, edit, post, saveBlob } from "./api.js";
import { flash } from "./app.js";
import { capital, counted, figure, listed } from "./format.js";
import { markdownView } from "./markdown.js";
import { button, choiceOf, confirmation, empty, failureOf, press, section, when } from "./parts.js";
import { h } from "./view.js";

const LONGEST_DIFF = 3_000;
/** Where the change sets of the page's project are. */
export const changesPath = (ctx) => `/projects/${encodeURIComponent(ctx.params.project_id)}/changes`;
/** The address of a change set. */
export const changeSetHref = (ctx, id) => `#/themes/${encodeURIComponent(ctx.params.project_id)}/changes?set=${encodeURIComponent(id)}`;

/** What the page asks for again and again while it shows change sets. */
export const changesReads = (ctx) => ({
  changes: `${changesPath(ctx)}?limit=100`,
  ...(ctx.query.set && { changeSet: `${changesPath(ctx)}/${encodeURIComponent(ctx.query.set)}` }),
});

const MAKERS = { person: "a person", api_key: "an assistant or a program with a key" };
const makerOf = ({ kind, run_id }) => (kind === "run" ? ["an agent, in ", h("a", { href: `#/runs/${run_id}` }, "a run")] : MAKERS[kind]);
const changeCounts = (set) => (set.files.length === 0 ? "no edits" : `${counted(set.files.length, "file")}, +${figure(set.files.reduce((sum, one) => sum + one.added, 0))} −${figure(set.files.reduce((sum, one) => sum + one.removed, 0))}`);

/** The lines of a unified diff, without the lines that name the files. */
export function diffLines(diff, label) {
  const lines = diff.split("\n").filter((line) => !/^(diff --git |index |--- |\+\+\+ )/.test(line));
  if (lines.at(-1) === "") lines.pop();
  const kinds = { "+": ["add", "added"], "-": ["del", "removed"] };
  const row = (line) => {
    const [kind, word] = kinds[line[0]] ?? ["", ""];
    return h("li", { class: kind }, h("span", { class: "sign", "aria-hidden": "true" }, kind ? line[0] : ""), word && h("span", { class: "vh" }, `${word}: `), h("span", { class: "line" }, /^[ +-]/.test(line) ? line.slice(1) : line));
  };
  return [h("ul", { class: "diff", "aria-label": label }, lines.slice(0, LONGEST_DIFF).map(row)), lines.length > LONGEST_DIFF && h("p", { class: "muted" }, `${counted(lines.length - LONGEST_DIFF, "more line")} are in the diff.`)];
}

/** Who may put edits into the theme: the value, what it is called, and the project's settings for it. */
const APPLIERS = [
  ["person", "A person", { assistants_apply: false, apply_at_once: false }],
  ["assistants", "A person, assistants and agents", { assistants_apply: true, apply_at_once: false }],
  ["at_once", "Assistants, each edit at once", { assistants_apply: true, apply_at_once: true }],
];

/** The setting, and what it means. An agent in a scheduled run needs a grant, too. */
function whoApplies(ctx) {
  const { project } = ctx.data;
  const now = !project.assistants_apply ? "person" : project.apply_at_once ? "at_once" : "assistants";
  const set = (value) => ctx.act("who applies", () => edit(`/projects/${encodeURIComponent(ctx.params.project_id)}`, APPLIERS.find(([name]) => name === value)[2]));
  return h(
    "div",
    { class: "who-applies", key: "who applies" },
    h("label", {}, h("span", {}, "Who may apply changes "), choiceOf("Who may apply changes", now, APPLIERS.map(([value, name]) => [value, name]), set, { disabled: ctx.busy("who applies") })),
    now === "at_once" && h("p", { class: "muted" }, "An edit that Shopify would refuse is not applied. Each edit can be taken back."),
    failureOf(ctx, "who applies"),
  );
}

export function changesView(ctx) {
  const all = ctx.data.changes.data;
  const open = all.filter((one) => one.state === "open");
  const done = all.filter((one) => one.state !== "open");
  if (ctx.query.set) return changeSetView(ctx, ctx.data.changeSet);
  if (all.length === 0) return [whoApplies(ctx), empty("Nothing is being changed. Edits of assistants, agents and people collect here, and nobody else sees them until they are applied.")];
  const row = (one) =>
    h("li", { key: one.change_set_id }, h("p", {}, h("a", { href: changeSetHref(ctx, one.change_set_id) }, one.title), " ", h("span", { class: "muted" }, changeCounts(one))), h("small", { class: "muted" }, "By ", makerOf(one.by), ", ", when(one.updated_at, { form: "relative" })));
  return [
    whoApplies(ctx),
    open.length > 0 && section("Not applied", { note: figure(open.length) }, h("ul", { class: "findings", "aria-label": "Change sets that are not applied" }, open.map(row))),
    done.length > 0 && section("Applied", { note: figure(done.length) }, h("ul", { class: "findings", "aria-label": "Applied change sets" }, done.map(row))),
    ctx.data.changes.has_more && h("p", { class: "muted" }, "Older ones are not shown."),
  ];
}

function changeSetView(ctx, set) {
  const path = `${changesPath(ctx)}/${encodeURIComponent(set.change_set_id)}`;
  const isOpen = set.state === "open";
  const back = `#/themes/${encodeURIComponent(ctx.params.project_id)}/changes`;
  const editing = (key, label, calls, kind = "quiet") => button(ctx, label, { key, kind, act: () => post(`${path}/edits`, { calls }) });
  const apply = async () => {
    await post(`${path}/apply`, { hash: set.hash });
    flash(`Applied: ${counted(set.files.length, "file")} of the theme changed.`);
  };
  const revert = async () => {
    const made = await post(`${path}/revert`, {});
    ctx.go(changeSetHref(ctx, made.change_set_id));
  };
  const remove = async () => {
    await del(path);
    ctx.go(back);
  };
  const parts = set.diff.split(/^(?=diff --git )/m).filter(Boolean);
  const refused = set.problems.filter((one) => one.refused);
  return [
    h("p", { class: "crumb", key: "back" }, h("a", { href: back }, "All changes")),
    section(
      set.title,
      { id: set.change_set_id, note: `${isOpen ? "not applied" : "applied"} · ${changeCounts(set)}` },
      h("p", { class: "muted" }, "By ", makerOf(set.by), ", last changed ", when(set.updated_at, { form: "relative" }), isOpen && ". Nobody else sees these edits in the theme."),
      set.request && set.request !== set.title && h("p", { key: "request" }, h("span", { class: "muted" }, "Asked: "), set.request),
      set.plan && h("details", { key: "plan", open: isOpen }, h("summary", {}, "Plan"), markdownView(set.plan.text, { level: 3 })),
      set.not_checked && h("p", { class: "warn", key: "not checked" }, `The edits were not checked: ${set.not_checked}`),
      set.conflicts.length > 0 && conflictsForm(ctx, path, set),
      refused.length > 0 && h("p", { class: "bad", role: "status", key: "refused" }, `With these edits, Shopify would refuse ${listed([...new Set(refused.map((one) => one.path))])}.`),
      set.problems.length > 0 && h("ul", { class: "findings", "aria-label": "What the edits make wrong" }, set.problems.map((one, at) => h("li", { key: `${at} ${one.path} ${one.line}` }, h("p", {}, capital(one.message)), h("small", { class: "muted" }, `${one.path}:${one.line} `, h("code", {}, one.code))))),
      failureOf(ctx, "apply"),
      failureOf(ctx, "undo all"),
      failureOf(ctx, "revert"),
      h(
        "div",
        { class: "acts", key: "acts" },
        isOpen && button(ctx, "Apply", { key: "apply", kind: "primary", disabled: set.files.length === 0 || set.conflicts.length > 0, act: apply }),
        isOpen && set.files.length > 0 && editing("undo all", "Undo all", [{ tool: "undo_edit", all: true }]),
        !isOpen && button(ctx, "Take back", { key: "revert", kind: "quiet", act: revert }),
        press("Save the diff", () => saveBlob(new Blob([set.diff], { type: "text/plain" }), `${set.change_set_id}.diff`), { kind: "quiet" }),
        press("Delete…", () => confirmation(ctx, { title: "Delete these changes?", key: "delete changes", label: "Delete", text: isOpen ? "The edits are gone. The theme stays as it is." : "The theme stays as it is, with these edits.", act: remove }), { kind: "quiet" }),
      ),
    ),
    set.files.map((one, at) => {
      const what = one.change === "renamed" ? `renamed from ${one.from}` : one.change;
      return section(
        one.path,
        { note: `${what}, +${figure(one.added)} −${figure(one.removed)}`, end: isOpen && editing(`undo ${one.path}`, "Undo", [{ tool: "undo_edit", path: one.path }]) },
        failureOf(ctx, `undo ${one.path}`),
        parts[at] ? diffLines(parts[at], `What changes in ${one.path}`) : h("p", { class: "muted" }, "This file is not text."),
      );
    }),
  ];
}

function conflictsForm(ctx, path, set) {
  const chosen = (ctx.state.sides ??= {});
  const choose = (file, side) => {
    chosen[file] = side;
    ctx.redraw();
  };
  const decided = set.conflicts.every((one) => chosen[one.path]);
  const side = (one, name, label, text) =>
    h("label", { class: "choice" }, h("input", { type: "radio", name: `side ${one.path}`, checked: chosen[one.path] === name, onchange: () => choose(one.path, name) }), ` ${label}`, h("pre", { class: "output", tabindex: "0" }, text ?? "(deleted)"));
  const resolve = (body) => async () => {
    await post(`${path}/resolve`, body);
    ctx.state.sides = {};
  };
  return h(
    "div",
    { class: "drift-note", key: "conflicts" },
    h("p", {}, h("b", {}, `Somebody else has changed ${listed(set.conflicts.map((one) => one.path))} meanwhile.`)),
    failureOf(ctx, "merge"),
    set.conflicts.map((one) => h("fieldset", { key: one.path }, h("legend", {}, one.path), side(one, "ours", "As these edits have it", one.state.ours), side(one, "theirs", "As the theme has it", one.state.theirs))),
    failureOf(ctx, "decide"),
    h("div", { class: "acts" }, button(ctx, "Join both", { key: "merge", kind: "quiet", act: resolve({ merge: true }) }), button(ctx, "Use what I have chosen", { key: "decide", kind: "primary", disabled: !decided, act: resolve({ merge: true, decisions: chosen }) })),
  );
}
