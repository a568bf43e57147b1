// What several pages show: buttons that act, sections, times, lamps, tickets, dialogs.

import { Problem } from "./api.js";
import { moment, money, relative, shownZone, wholeTime } from "./format.js";
import { h } from "./view.js";

/** A section: a title on a hairline. `note` stands beside the title, `end` at its end. */
export function section(title, { note, end, id } = {}, ...content) {
  return h(
    "section",
    { class: "sec", key: id ?? title, "aria-label": title },
    h("h2", {}, title, note !== undefined && note !== null && h("span", { class: "muted" }, ` ${note}`), end && h("span", { class: "end" }, end)),
    ...content,
  );
}

/** The head of a page. `aside` are its actions. */
export function head(title, note, ...aside) {
  return h(
    "header",
    { class: "head" },
    h("h1", {}, title),
    note && h("span", { class: "muted note" }, note),
    aside.some(Boolean) && h("div", { class: "aside" }, aside),
  );
}

const STOPPED = "Everything is stopped, so nothing begins. Start again first: the banner above has the button.";

/** Whether the person has stopped everything, so that no run and no turn begins. */
export const isStopped = (ctx) => Boolean(ctx.shared.account?.stopped_at);

/**
 * A button that does something. While it works it cannot be pressed again; if it fails, `failureOf(ctx, key)` says why. One that `starts` a run or
 * a turn is disabled while everything is stopped: a `stoppedNote` nearby says so. `name` is for people who do not see what stands beside it; it has the label.
 */
export function button(ctx, label, { key = label, kind = "", act, disabled = false, title, name, busy = "…", starts = false }) {
  const works = ctx.busy(key);
  if (starts && isStopped(ctx)) [disabled, title] = [true, STOPPED];
  return h(
    "button",
    { class: `btn ${kind}`, type: "button", key: `button ${key}`, disabled: works || disabled, title, "aria-label": name, "aria-busy": works ? "true" : null, onclick: () => ctx.act(key, act) },
    works ? `${label}${busy}` : label,
  );
}

/** A button that opens or changes something on the page, at once. */
export function press(label, onclick, { kind = "", key, disabled = false, expanded, title, autofocus } = {}) {
  return h("button", { class: `btn ${kind}`, type: "button", key, disabled, title, autofocus, "aria-expanded": expanded === undefined ? null : String(expanded), onclick }, label);
}

/** A link that looks like a button, if it has a kind (which may be ""). */
export function link(label, href, { kind, key } = {}) {
  return h("a", { class: kind === undefined ? null : `btn ${kind}`, href, key }, label);
}

/** Why the act `key` failed, if it did. */
export function failureOf(ctx, key) {
  const error = ctx.failure(key);
  return error && problem(ctx, error, { compact: true, close: () => ctx.forgive(key) });
}

/** Errors of which the platform speaks to programs. The page has a button for what they advise. */
const OWN_WORDS = {
  account_stopped: STOPPED,
  account_deleted: "This account is being deleted and takes no more calls. You can start again with an empty account when the deletion has ended: its receipt says when.",
};

/** Why something failed, in the words of the page. */
export const failureText = (error) => OWN_WORDS[error.code] ?? error.message;

/** An error: the reason first, then what to quote. */
export function problem(ctx, error, { title, retry, compact, close } = {}) {
  const isProblem = error instanceof Problem;
  return h(
    "div",
    { class: compact ? "problem compact" : "problem", role: "alert", key: "problem" },
    title && h("h3", {}, title),
    h("p", {}, failureText(error)),
    isProblem && error.fields.length > 0 && h("ul", {}, error.fields.map((one) => h("li", {}, h("code", {}, one.field), `: ${one.message}`))),
    isProblem &&
      h(
        "dl",
        { class: "facts" },
        h("dt", {}, "Code"),
        h("dd", { class: "mono" }, `${error.code} · ${error.status}`),
        error.requestId && [h("dt", {}, "Request"), h("dd", { class: "mono" }, error.requestId, " ", copyButton(error.requestId))],
      ),
    isProblem && error.code === "account_deleted" && receiptLink(error.current?.receipt_id),
    (retry || close) && h("div", { class: "acts" }, retry && press("Retry", retry), close && press("Close", close, { kind: "quiet" })),
  );
}

/** The receipt of the deletion of an account. */
export const receiptLink = (id) => id && h("p", { key: "receipt" }, link("Read the receipt", `#/account/${id}`, { kind: "primary" }));

/** Copies a text, and says so. */
export function copyButton(text, label = "Copy") {
  return h(
    "button",
    {
      class: "btn link",
      type: "button",
      onclick: async (event) => {
        const pressed = event.currentTarget;
        try {
          await navigator.clipboard.writeText(text);
          pressed.textContent = "Copied";
        } catch {
          pressed.textContent = "Cannot copy here";
        }
        setTimeout(() => (pressed.textContent = label), 2000);
      },
    },
    label,
  );
}

/** What stands where nothing is: one sentence, and one way on. */
export function empty(sentence, ...ways) {
  return h("div", { class: "empty" }, h("p", {}, sentence), ways.some(Boolean) && h("div", { class: "acts" }, ways));
}

/** A time: short, with the exact instant on hover and on focus. */
export function when(at, { form = "both", prefix } = {}) {
  if (!at) return h("span", { class: "muted" }, "never");
  const text = form === "relative" ? relative(at) : form === "moment" ? moment(at) : `${relative(at)} · ${moment(at)}`;
  return h(
    "time",
    { class: "instant", datetime: new Date(at).toISOString(), tabindex: "0" },
    prefix,
    text,
    h("span", { class: "tip", role: "tooltip" }, wholeTime(at), h("br"), `${shownZone()} · ${new Date(at).toISOString().replace(".000", "")}`),
  );
}

/** How each state of a due time looks and what it is called. */
export const LAMPS = {
  due: ["due", "due"],
  claimed: ["run", "starting"],
  running: ["run", "running"],
  in_progress: ["run", "running"],
  succeeded: ["lit", "succeeded"],
  completed: ["lit", "succeeded"],
  nothing_new: ["nothing", "nothing new"],
  unchanged: ["skip", "nothing changed"],
  skipped: ["skip", "skipped"],
  held: ["wait", "held"],
  waiting: ["wait", "waits for you"],
  late: ["late", "late"],
  failed: ["fail", "failed"],
  unknown: ["wait", "outcome unknown"],
  missed: ["missed", "missed"],
  cancelled: ["gone", "cancelled"],
  paused: ["skip", "paused"],
};

const TONES = { lit: "ok", fail: "bad", missed: "bad", wait: "warn", late: "warn", run: "warn" };

/** The word for a state of a run. */
export const stateWord = (state) => LAMPS[state]?.[1] ?? state.replaceAll("_", " ");

/** A state as a coloured word. */
export function chip(state) {
  return h("span", { class: `chip ${TONES[LAMPS[state]?.[0]] ?? ""}` }, stateWord(state));
}

/** A lamp that is a link. `name` says in words what it shows. */
export function lamp(state, href, name, { style, fresh } = {}) {
  return h(
    "a",
    { class: `lamp ${LAMPS[state]?.[0] ?? "due"}${fresh ? " fresh" : ""}`, href, style, "aria-label": name },
    h("i", {}),
    h("span", { class: "tip", "aria-hidden": "true" }, name),
  );
}

/** Spending as oil in a lamp: spent, reserved, and a tick at the ceiling. */
export function oil({ spent, reserved = 0, ceiling, words }) {
  const part = (amount) => (ceiling > 0 ? Math.min(100, (100 * amount) / ceiling) : 0);
  const share = part(spent + reserved);
  const level = share >= 100 ? "empty" : share >= 80 ? "low" : "";
  const says = share >= 100 ? "The ceiling is reached." : share >= 80 ? `${Math.round(share)} % of the ceiling is used.` : null;
  return h(
    "div",
    { class: `oil ${level}` },
    h(
      "div",
      { class: "bar", role: "img", "aria-label": `${money(spent)} spent, ${money(reserved)} reserved, of ${money(ceiling)}` },
      h("b", { style: { "--w": `${part(spent)}%` } }),
      h("u", { style: { "--a": `${part(spent)}%`, "--w": `${Math.max(0, share - part(spent))}%` } }),
    ),
    h("p", {}, h("span", {}, spent > 0 ? [h("b", {}, money(spent)), " spent"] : reserved === 0 && "nothing spent", reserved > 0 && [spent > 0 && ", ", h("b", {}, money(reserved)), " reserved"]), h("span", {}, words ?? "of ", !words && h("b", {}, money(ceiling)))),
    says && h("p", { class: "says" }, says),
  );
}

/** Facts: a list of `[name, value]`; entries without a value are left out. */
export function facts(entries) {
  return h(
    "dl",
    { class: "facts" },
    entries.filter((entry) => entry && entry[1] !== null && entry[1] !== undefined && entry[1] !== false && entry[1] !== "").map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]),
  );
}

/** A row of a list: when, what, and what can be done. */
export function row({ key, time, title, href, note, end, below }) {
  return h(
    "li",
    { key },
    h("span", { class: "when" }, time),
    h("span", { class: "what" }, href ? h("a", { href }, title) : title, note && h("small", {}, note)),
    h("span", { class: "end" }, end),
    below && h("div", { class: "below" }, below),
  );
}

export const rows = (...items) => h("ul", { class: "rows" }, items);

/** Tabs are links, so that each has an address. */
export function tabs(label, items) {
  return h(
    "nav",
    { class: "tabs", "aria-label": label },
    items.map(([name, href, isCurrent, count]) => h("a", { href, key: href, "aria-current": isCurrent ? "page" : null }, name, count !== undefined && count !== null && ` ${count}`)),
  );
}

/** A field of a form: its label, the control and what is wrong with it. */
export function field(label, control, { hint, error } = {}) {
  return h("label", { class: "field" }, h("span", {}, label), control, hint && h("small", { class: "muted" }, hint), error && h("small", { class: "bad", role: "alert" }, error));
}

/** One of several: `options` are names and texts. */
export const choiceOf = (label, value, options, onchange, props = {}) =>
  h("select", { "aria-label": label, value, onchange: (event) => onchange(event.target.value), ...props }, options.map(([name, text]) => h("option", { value: name, key: name }, text)));

/** A menu of what is seldom done. `items` are buttons and links; each closes it. Esc closes it, too, and goes back to its button. */
export function moreMenu(key, ...items) {
  return h(
    "details",
    {
      class: "act-menu",
      key,
      onkeydown: (event) => {
        if (event.key !== "Escape") return;
        event.currentTarget.open = false;
        event.currentTarget.querySelector("summary").focus();
      },
      onclick: (event) => {
        if (event.target.closest(".btn") && !event.target.closest("summary")) event.currentTarget.open = false;
      },
    },
    h("summary", { class: "btn" }, "More"),
    h("div", {}, items),
  );
}

/** These options, and the value that is chosen already if it is not among them. */
export const withValue = (options, value) => (value && !options.some(([name]) => name === value) ? [...options, [value, value]] : options);

/** A dialog in front of the page. Esc and the backdrop close it, and focus goes back to where it was. */
export function dialog({ title, kind = "", onclose }, ...content) {
  return h(
    "dialog",
    {
      key: `dialog ${title}`,
      class: `sheet-dialog ${kind}`,
      "aria-label": title,
      onclose: () => onclose(),
      onclick: (event) => {
        if (event.target === event.currentTarget) onclose();
      },
      use: (node) => {
        const before = document.activeElement;
        queueMicrotask(() => node.isConnected && !node.open && node.showModal());
        return () => {
          // While it is open, nothing else can take the focus.
          node.onclose = null;
          node.close();
          if (!(before instanceof HTMLElement) || !before.isConnected) return;
          // What was pressed in a menu is hidden now: the menu is what is left of it.
          (before.closest("details:not([open])")?.querySelector("summary") ?? before).focus();
        };
      },
    },
    h("div", { class: "dialog-card" }, h("header", {}, h("h2", {}, title), h("button", { class: "btn quiet close", type: "button", "aria-label": "Close", onclick: () => onclose() }, "×")), ...content),
  );
}

/** Why nothing of an action can begin, if that is because of its agent. */
export const agentOff = (action) => action.will_not_run?.find((one) => one.code.startsWith("agent_"))?.text;

/** Whether a person may run it now. */
export const mayRun = (action) => action.approval?.hash === action.approval_hash && !action.live_run && !agentOff(action) && !["needs_approval", "dismissed"].includes(action.state);

/** Whether its next due time runs: it has one, and nothing is in the way. */
export const willRunAt = (action) => action.next_due && !action.will_not_run && ["scheduled", "in_progress"].includes(action.state);

/** What can be done in a dialog: on the left leave it, on the right what it is for. */
export const dialogActs = (ctx, end, more, autofocus, leave = "Cancel") => h("div", { class: "acts" }, press(leave, () => ctx.close(), { kind: "quiet", autofocus }), more, h("div", { class: "end" }, end));

/** Asks before something that cannot be undone. */
export function confirmation(ctx, { title, text, act, label, key = title, kind = "halt" }) {
  ctx.open(() =>
    dialog(
      { title, onclose: () => ctx.close() },
      h("p", {}, text),
      failureOf(ctx, key),
      dialogActs(
        ctx,
        button(ctx, label, {
          key,
          kind,
          act: async () => {
            await act();
            ctx.close();
          },
        }),
        null,
        true,
        // “Cancel” beside “Cancel the run” would be a riddle.
        label.startsWith("Cancel") ? "Go back" : "Cancel",
      ),
    ),
  );
}

/** A text that a person writes, which survives a reload and a lost connection, and with `lasts` the end of the tab. */
export function draftOf(key, { lasts = false } = {}) {
  const name = `lamplighter.draft ${key}`;
  const storage = lasts ? localStorage : sessionStorage;
  return {
    get: () => storage.getItem(name) ?? "",
    set: (text) => (text ? storage.setItem(name, text) : storage.removeItem(name)),
  };
}

/** A dot between two texts. */
export const dot = () => h("span", { class: "muted", "aria-hidden": "true" }, " · ");

/** Enter sends, Shift Enter begins a new line. While a word is being composed, Enter belongs to the input method. */
export function sendOnEnter(event) {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing || event.keyCode === 229) return;
  event.preventDefault();
  event.target.form.requestSubmit();
}
