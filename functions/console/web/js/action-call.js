// The form of a call: the request that an action sends instead of asking a model.

import { linesOf } from "./format.js";
import { choiceOf, field, press, withValue } from "./parts.js";
import { h } from "./view.js";

const METHODS = ["POST", "PUT", "PATCH", "GET", "DELETE"].map((name) => [name, name]);
const WITH_BODY = ["POST", "PUT", "PATCH"];
const MOST_SECRET_HEADERS = 10;
const MOST_MINUTES = 1440;

/** A call as the form edits it. Headers are lines; the form of a new action begins with an empty call. */
export const callChoice = (call) => ({
  url: call.url ?? "",
  method: call.method ?? "POST",
  body: call.body ?? "",
  headers: Object.entries(call.headers ?? {}).map(([name, value]) => `${name}: ${value}`).join("\n"),
  secretHeaders: Object.entries(call.secret_headers ?? {}).map(([name, header]) => ({ name, secret: header.secret, prefix: header.prefix ?? "" })),
  sign: call.sign_with ?? "",
  minutes: String(call.expect_report_within_minutes ?? ""),
});

/** The call that the form means, as the API takes it. What is empty is left out. */
export function callOf(choice) {
  const headers = linesOf(choice.headers).map((line) => [line.slice(0, line.indexOf(":")).trim(), line.slice(line.indexOf(":") + 1).trim()]);
  const secretHeaders = choice.secretHeaders.map(({ name, secret, prefix }) => [name.trim(), prefix ? { secret, prefix } : { secret }]);
  return {
    url: choice.url.trim(),
    method: choice.method,
    ...(WITH_BODY.includes(choice.method) && choice.body !== "" && { body: choice.body }),
    ...(headers.length > 0 && { headers: Object.fromEntries(headers) }),
    ...(secretHeaders.length > 0 && { secret_headers: Object.fromEntries(secretHeaders) }),
    ...(choice.sign && { sign_with: choice.sign }),
    ...(choice.minutes.trim() && { expect_report_within_minutes: Number(choice.minutes) }),
  };
}

/** What is wrong, by the names of the form’s fields. The platform checks the rest. */
export function callMistakes(choice) {
  const wrong = {};
  const names = [...linesOf(choice.headers).map((line) => line.split(":")[0]), ...choice.secretHeaders.map((header) => header.name)].map((name) => name.trim().toLowerCase());
  const minutes = Number(choice.minutes);
  if (!choice.url.trim()) wrong.url = "It needs an address.";
  if (linesOf(choice.headers).some((line) => line.indexOf(":") < 1)) wrong.headers = "Write each line as a name, a colon and a value.";
  else if (new Set(names).size < names.length) wrong.headers = "A header may be named only once.";
  choice.secretHeaders.forEach((header, index) => {
    if (!header.name.trim() || !header.secret) wrong[`secret header ${index}`] = "It needs the name of a header and a secret.";
  });
  if (choice.minutes.trim() && !(Number.isInteger(minutes) && minutes >= 1 && minutes <= MOST_MINUTES)) wrong.minutes = `Enter 1 to ${MOST_MINUTES}, or nothing.`;
  return wrong;
}

/** `secrets` are those of the account. */
export function callFields(state, shown, secrets) {
  const { call } = state.form;
  // The form of now, not of the last drawing: two changes may come before the next one.
  const set = (change) => state.set({ call: { ...state.form.call, ...change } });
  const input = (name, label, props, more = {}) => field(label, h("input", { type: "text", value: call[name], spellcheck: "false", oninput: (event) => set({ [name]: event.target.value }), ...props }), { error: shown[name], ...more });
  const text = (name, label, rows, more = {}) => field(label, h("textarea", { rows, class: "mono", spellcheck: "false", value: call[name], oninput: (event) => set({ [name]: event.target.value }) }), { error: shown[name], ...more });
  const setHeader = (index, change) => set({ secretHeaders: state.form.call.secretHeaders.map((one, at) => (at === index ? { ...one, ...change } : one)) });
  const secretOf = (label, value, none, onchange, props) => choiceOf(label, value, [["", none], ...withValue(secrets.map(({ name }) => [name, name]), value)], onchange, props);
  const header = (one, index) =>
    h(
      "li",
      { key: `secret header ${index}` },
      h("input", { type: "text", "aria-label": `Secret header ${index + 1}`, placeholder: "Authorization", value: one.name, oninput: (event) => setHeader(index, { name: event.target.value }) }),
      h("input", { type: "text", "aria-label": `Before the secret ${index + 1}`, placeholder: "Bearer, with a space; or empty", value: one.prefix, oninput: (event) => setHeader(index, { prefix: event.target.value }) }),
      secretOf(`Secret ${index + 1}`, one.secret, "Choose a secret", (secret) => setHeader(index, { secret })),
      shown[`secret header ${index}`] && h("small", { class: "bad", role: "alert" }, shown[`secret header ${index}`]),
      press("Remove", () => set({ secretHeaders: state.form.call.secretHeaders.filter((_, at) => at !== index) }), { kind: "quiet" }),
    );
  return h(
    "div",
    { class: "form-part" },
    field("Method", choiceOf("Method", call.method, METHODS, (method) => set({ method }))),
    input("url", "Address", { inputmode: "url", maxlength: "2000", placeholder: "https://example.com/hooks/rebuild" }, { hint: "A public https address. Everybody who may read the action sees it." }),
    WITH_BODY.includes(call.method) && text("body", "Body", "4", { hint: "JSON or other text, sent as it is." }),
    text("headers", "Headers", "2", { hint: "One a line, such as X-Team: shop. They are not secret." }),
    h("ul", { class: "editable" }, call.secretHeaders.map(header)),
    call.secretHeaders.length < MOST_SECRET_HEADERS && h("div", {}, press("Send a secret in a header", () => set({ secretHeaders: [...state.form.call.secretHeaders, { name: "Authorization", secret: "", prefix: "Bearer " }] }))),
    field("Sign it with", secretOf("Sign it with", call.sign, "nothing", (sign) => set({ sign }))),
    h("p", { class: "muted" }, "You store secrets in ", h("a", { href: "#/account/keys" }, "Account, Keys"), "."),
    input("minutes", "Minutes until its report", { inputmode: "numeric" }, { hint: "If the server reports when its work is done. Empty: no report is expected." }),
  );
}
