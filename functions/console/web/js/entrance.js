// How a person gets in: nothing on one machine, a key, or the sign-in page of an OpenID Connect provider.

import { Problem, send, succeed } from "./api.js";
import { access, keepCredential } from "./credentials.js";
import { beginSignIn } from "./openid.js";
import { problem } from "./parts.js";
import { h } from "./view.js";

let error = null;
let works = false;
let remember = false;
let key = "";

/** Shows why a sign-in failed. `reason` is a sentence, or null. */
export function refuseEntrance(reason) {
  error = reason === null ? null : new Error(reason);
}

export function entrancePage(ctx) {
  const enter = async (event) => {
    event.preventDefault();
    works = true;
    error = null;
    ctx.redraw();
    try {
      // The key is tried before it is kept.
      await succeed(await send("/account", { headers: { authorization: `Bearer ${key.trim()}` } }));
      keepCredential(key.trim(), remember);
      key = "";
    } catch (failure) {
      error = failure instanceof Problem && failure.status === 401 ? new Error("The platform does not accept this key.") : failure;
    }
    works = false;
    ctx.redraw();
  };
  return h(
    "div",
    { class: "entrance", key: "entrance" },
    h("h1", {}, "Come in"),
    access.openid &&
      h(
        "section",
        {},
        h("p", {}, "Sign in with the account of your organisation."),
        h(
          "button",
          {
            class: "btn primary",
            type: "button",
            onclick: () =>
              beginSignIn(access.openid).catch((failure) => {
                error = failure;
                ctx.redraw();
              }),
          },
          "Sign in",
        ),
      ),
    h(
      "form",
      { onsubmit: enter },
      h(
        "label",
        { class: "field" },
        h("span", {}, access.openid ? "Or paste an API key" : "Paste an API key"),
        h("input", { type: "password", name: "key", autocomplete: "current-password", spellcheck: "false", value: key, placeholder: "llk_…", oninput: (event) => { key = event.target.value; ctx.redraw(); } }),
      ),
      h("label", { class: "check" }, h("input", { type: "checkbox", checked: remember, onchange: (event) => { remember = event.target.checked; } }), "Remember it on this device"),
      h("button", { class: access.openid ? "btn" : "btn primary", disabled: works || key.trim() === "" }, works ? "Trying…" : "Enter"),
    ),
    error && problem(ctx, error, { compact: true }),
    h("p", { class: "muted" }, "The key stays in this tab, unless you let this device remember it. It is never part of an address."),
  );
}
