// The webhook with which GitHub reports the commits of a project.

import { address, del, get, post } from "./api.js";
import { RESTING_MS, reading } from "./app.js";
import { docsPath } from "./living.js";
import { button, confirmation, copyButton, facts, failureOf, field, press, section, when } from "./parts.js";
import { fieldFault } from "./watch.js";
import { h } from "./view.js";

const hookPath = (ctx) => docsPath(ctx.params.project_id, "/hook");

/** The webhook, or null. It changes only here, so it is not read as often as the rest of its page. */
export const hookRead = (ctx) =>
  reading(`hook of docs ${ctx.params.project_id}`, async (signal) => {
    const { hook: kept } = ctx.state;
    if (kept && Date.now() - kept.at < RESTING_MS - 1000) return kept.hook;
    const hook = await get(hookPath(ctx), signal);
    keepHook(ctx, hook);
    return ctx.state.hook.hook;
  });

/** Each answer has another path, and all of them work. What a person copies step by step is one of them. */
function keepHook(ctx, hook) {
  const before = ctx.state.hook?.hook;
  const isSame = before && hook && before.created_at === hook.created_at;
  ctx.state.hook = { at: Date.now(), hook: isSame ? before : hook };
}

/** The address that GitHub calls. A deployment below a prefix names it in the path. */
function payloadUrl({ path }) {
  const base = address("");
  return new URL(path.startsWith(`${base}/`) ? path : address(path), location.origin).href;
}

const isOwnMachine = () => /^(localhost|127\.|\[::1\])/.test(location.hostname);

export function hookSection(ctx) {
  const { hook } = ctx.data;
  const { madeHook: made, changesHook: isChanging } = ctx.state;
  return section(
    "Webhook for GitHub",
    { note: "reports each push" },
    made && secretOfHook(ctx, made),
    isOwnMachine() && h("p", { class: "aside-note", key: "own" }, "The platform runs on this machine, which GitHub cannot reach. Use the command above."),
    hook && hookFacts(ctx, hook),
    !hook && h("p", { class: "muted pad" }, "With a webhook, GitHub reports the commits of everybody who pushes, also without the command on their machines."),
    (!hook || isChanging) && hookForm(ctx, hook),
  );
}

function hookFacts(ctx, hook) {
  const url = payloadUrl(hook);
  const remove = async () => {
    await del(hookPath(ctx)).catch((error) => {
      // It is gone already, perhaps by a request whose answer was lost.
      if (error.status !== 404) throw error;
    });
    Object.assign(ctx.state, { hook: null, madeHook: null, changesHook: false });
  };
  return [
    h("p", { class: "pad", key: "where" }, "At GitHub, under Settings, Webhooks, Add webhook of the repository, enter:"),
    facts([
      ["Payload URL", h("span", {}, h("code", { class: "secret" }, url), " ", copyButton(url, "Copy the URL"))],
      ["Content type", h("code", {}, "application/json")],
      ["Secret", "the one that was shown when the webhook was made"],
      ["Which events", "Just the push event"],
      ["Branch that counts", hook.branch ? h("code", { class: "long" }, hook.branch) : "the default branch of the repository"],
      ["Made", when(hook.created_at)],
    ]),
    h(
      "div",
      { class: "acts", key: "hook acts" },
      !ctx.state.changesHook && press("New secret or branch…", () => { Object.assign(ctx.state, { changesHook: true, hookBranch: hook.branch ?? "" }); ctx.redraw(); }),
      h("div", { class: "end" }, press("Delete the webhook…", () => confirmation(ctx, { title: "Delete the webhook?", key: "delete hook", label: "Delete it", text: "GitHub’s calls are refused from then on. The commits that wait stay. Delete the webhook at GitHub, too.", act: remove }))),
    ),
  ];
}

function hookForm(ctx, hook) {
  const key = "make hook";
  const branch = ctx.state.hookBranch ?? "";
  const make = async () => {
    const made = await post(hookPath(ctx), branch.trim() ? { branch: branch.trim() } : {});
    const { secret, ...known } = made;
    Object.assign(ctx.state, { hook: null, madeHook: { secret: secret ?? null }, changesHook: false, hookBranch: "" });
    keepHook(ctx, known);
  };
  const fault = fieldFault(ctx, key, "branch");
  return h(
    "form",
    { class: "form living-new", key: "hook form", "aria-label": "Webhook for GitHub", onsubmit: (event) => { event.preventDefault(); ctx.act(key, make); } },
    field("Branch that counts", h("input", { value: branch, placeholder: "the default branch", maxlength: "200", autocomplete: "off", spellcheck: "false", "aria-invalid": fault ? "true" : null, oninput: (event) => { ctx.state.hookBranch = event.target.value; ctx.redraw(); } }), { hint: "Leave it empty for the default branch of the repository.", error: fault }),
    hook && h("p", { class: "warnings" }, "The webhook gets a new secret. The old one no longer works, so enter the new one at GitHub."),
    !fault && failureOf(ctx, key),
    h(
      "div",
      { class: "acts" },
      button(ctx, hook ? "Replace the secret" : "Make a webhook", { key, act: make }),
      hook && press("Cancel", () => { ctx.state.changesHook = false; ctx.forgive(key); }, { kind: "quiet" }),
    ),
  );
}

/** The secret of a new webhook. It stands in this page alone, and is gone with it. */
function secretOfHook(ctx, made) {
  return h(
    "div",
    { class: "drift-note", key: "secret", role: "status" },
    h("h3", { class: "small-title" }, "The secret of the webhook"),
    made.secret
      ? [h("p", {}, "This is the only time that it is shown. Enter it at GitHub now."), h("p", {}, h("code", { class: "secret" }, made.secret), " ", copyButton(made.secret, "Copy the secret"))]
      : h("p", {}, "The answer that had the secret was lost. Replace the secret to see a new one."),
    h("div", { class: "acts" }, press("I have kept it", () => { ctx.state.madeHook = null; ctx.redraw(); })),
  );
}
