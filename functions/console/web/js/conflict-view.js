// Edits of what others may change meanwhile. A form keeps three texts of each field: what it began with, mine, and theirs. Nothing that
// a person has typed is lost by a reload, a failure or a conflict.

import { Problem } from "./api.js";
import { diffView } from "./diff.js";
import { listed } from "./format.js";
import { draftOf, press } from "./parts.js";
import { h } from "./view.js";

/**
 * Begins an edit, or continues the one that this tab has kept under `key`. `fields` has the texts of the fields of `version`. The values
 * of fields are texts, or lists of texts.
 */
export function editOf(key, fields, version) {
  const form = { draft: draftOf(key), base: fields, mine: { ...fields }, version, clashes: {}, merged: [] };
  try {
    const kept = JSON.parse(form.draft.get() || "null");
    // A newer version of the console may have other fields.
    if (kept && Object.keys(fields).every((name) => name in kept.mine && name in kept.base)) Object.assign(form, { base: kept.base, mine: kept.mine, version: kept.version, clashes: kept.clashes ?? {} });
  } catch {
    form.draft.set("");
  }
  freshen(form, fields, version);
  return form;
}

/** Whether this tab has kept an edit under `key`. */
export const hasEdit = (key) => draftOf(key).get() !== "";

const isSame = (one, other) => JSON.stringify(one) === JSON.stringify(other);

/** The fields that the person has changed. */
export const changedIn = (form) => Object.keys(form.mine).filter((name) => !isSame(form.mine[name], form.base[name]));

/** Whether both have changed a field, and the person has not said yet which text stays. */
export const hasClash = (form) => Object.keys(form.clashes).length > 0;

function keepEdit(form) {
  try {
    form.draft.set(changedIn(form).length > 0 || hasClash(form) ? JSON.stringify({ base: form.base, mine: form.mine, version: form.version, clashes: form.clashes }) : "");
  } catch {
    // The browser keeps no more. The form still has the text.
  }
}

/** Sets a field to what the person has typed. */
export function setIn(form, name, value) {
  form.mine[name] = value;
  keepEdit(form);
}

/** Takes over a newer version. Fields that only one of us has changed need no question. */
export function freshen(form, fields, version) {
  if (version <= form.version) return;
  const wasEdited = changedIn(form).length > 0;
  for (const [name, theirs] of Object.entries(fields)) {
    const mine = form.mine[name];
    if (isSame(theirs, mine)) delete form.clashes[name];
    else if (isSame(mine, form.base[name])) {
      form.mine[name] = theirs;
      if (wasEdited && !form.merged.includes(name)) form.merged.push(name);
    } else if (!isSame(theirs, form.base[name])) form.clashes[name] ??= { began: form.base[name] };
  }
  form.base = fields;
  form.version = version;
  keepEdit(form);
}

/** Ends an edit: it was saved as `version`, or given up. */
export function endEdit(form, fields = form.base, version = form.version) {
  Object.assign(form, { base: fields, mine: { ...fields }, version, clashes: {}, merged: [], late: false });
  form.draft.set("");
}

/**
 * Sends an edit. `send(version)` changes the resource and returns its new state. A conflict is no failure: it returns null, the caller
 * reads again, and `freshen` says what clashes.
 */
export async function sendEdit(form, send) {
  try {
    return await send(form.version);
  } catch (error) {
    if (error instanceof Problem && error.code === "version_conflict") {
      form.late = true;
      return null;
    }
    throw error;
  }
}

const clashText = (value) => (Array.isArray(value) ? value.join("\n") : String(value ?? ""));

/**
 * What others have changed meanwhile: mine and theirs of each field that both have changed. `names` has the names of fields for people.
 * `took(name, mine)` is called when theirs replaces mine.
 */
export function clashView(ctx, form, names, { took } = {}) {
  const clashes = Object.keys(form.clashes);
  const merged = form.merged.map((name) => names[name] ?? name);
  if (clashes.length === 0 && merged.length === 0 && !form.late) return null;
  const decide = (name, value) => () => {
    if (value !== form.mine[name]) took?.(name, form.mine[name]);
    form.mine[name] = value;
    delete form.clashes[name];
    form.late = true;
    keepEdit(form);
    ctx.redraw();
  };
  return h(
    "section",
    { class: "conflict", key: "conflict", role: "alert", "aria-label": "Changed meanwhile" },
    h("p", {}, h("b", {}, "This was changed while you wrote. "), clashes.length > 0 ? "Your text is kept. Say for each field which text stays." : "Your text is kept. Look it over and save again."),
    merged.length > 0 && h("p", { class: "muted" }, `Taken over, because you have not changed it: ${listed(merged)}.`),
    clashes.map((name) =>
      h(
        "div",
        { class: "clash", key: name },
        h("h2", {}, names[name] ?? name),
        h("p", { class: "muted" }, "Removed lines are theirs, added lines are yours."),
        diffView(clashText(form.base[name]), clashText(form.mine[name])),
        form.clashes[name].began !== undefined && meanwhileView(ctx, form, name),
        h("div", { class: "acts" }, press("Take theirs", decide(name, form.base[name])), press("Keep mine", decide(name, form.mine[name]))),
      ),
    ),
  );
}

/** What others have changed in a field since the edit began. Long texts are compared only if somebody wants to see it. */
function meanwhileView(ctx, form, name) {
  const clash = form.clashes[name];
  const ontoggle = (event) => {
    clash.isOpen = event.target.open;
    ctx.redraw();
  };
  return h("details", { key: "meanwhile", ontoggle }, h("summary", {}, "What was changed meanwhile"), clash.isOpen && diffView(clashText(clash.began), clashText(form.base[name])));
}
