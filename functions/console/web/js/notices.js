// Notices: where a person is told, what about and when, what was sent, and on one machine the mail as it would be sent.

import { del, edit, getAll, post, put } from "./api.js";
import { flash, optional, reading } from "./app.js";
import { shownZone } from "./format.js";
import { button, confirmation, copyButton, empty, failureOf, field, head, press, row, rows, section, when } from "./parts.js";
import { h } from "./view.js";
import { faultOf, fieldFault, watchChip } from "./watch.js";

const MOST_CHANNELS = 10;

const SECRET = "It is a secret: it is stored encrypted and never shown again.";

/**
 * Kinds of channels, with the fields of each: name, label, hint, and more: whether it is `secret`, `optional` or a `number`, or its
 * `choices`, of which the first one is chosen. The choices of a `flag` are no and yes.
 */
const CHANNEL_KINDS = {
  email: ["E-mail", [["to", "Address", "One address, without a name."]]],
  webhook: ["Webhook", [["url", "Address of the receiver", "An https address of a public host. Messages are signed."]]],
  slack: ["Slack", [["url", "Address of the incoming webhook", SECRET, { secret: true }]]],
  discord: ["Discord", [["url", "Address of the webhook", SECRET, { secret: true }]]],
  telegram: ["Telegram", [["token", "Token of the bot", SECRET, { secret: true }], ["chat_id", "Chat", "A number, or the name of a channel with @."], ["replies", "Replies in the chat", "In a chat with one person: a reply answers, pauses or corrects. Nothing else may receive what is written to this bot.", { choices: [["no", "Are not read"], ["yes", "Come back to Lamplighter"]], flag: true }]]],
  ntfy: ["ntfy", [
    ["topic", "Topic", "Whoever knows it may read it, so it is handled as a secret.", { secret: true }],
    ["url", "Server", "Without it: ntfy.sh.", { optional: true }],
    ["token", "Access token", "Only if the server wants one.", { secret: true, optional: true }],
  ]],
  gotify: ["Gotify", [["url", "Server", "An https address of a public host. The operator may allow a server at home."], ["token", "Token of the application", SECRET, { secret: true }]]],
  smtp: ["Mail server", [
    ["to", "Address", "A code is sent there first."],
    ["host", "Mail server", "For example smtp.example.com."],
    ["security", "Encryption", null, { choices: [["tls", "From the start (TLS)"], ["starttls", "With STARTTLS"], ["none", "None, in a network at home"]] }],
    ["port", "Port", "Without it: 465 with TLS, 587 with STARTTLS, 25 without encryption.", { optional: true, number: true }],
    ["user", "User", "If the server wants one.", { optional: true }],
    ["secret", "Password", SECRET, { secret: true, optional: true }],
    ["from", "Sender", "An address from which the server lets you write."],
  ]],
};

export const channelKindName = (kind) => CHANNEL_KINDS[kind][0];

/** On one machine. */
const STORED = "This platform sends no e-mail: it shows each message under Outbox. To be told elsewhere, add another channel, for example your mail server.";

/** What a person may be told, with what happens if nothing is set. */
const NOTICE_KINDS = [
  ["needs_answer", "Needs an answer", "A run waits for you.", "at_once"],
  ["failed", "Failed", "A run has failed, or its due time was missed.", "at_once"],
  ["held", "Held", "What would have run is not what you approved.", "at_once"],
  ["watchdog", "Watchdog", "Something is wrong with a job, an action or a watched schedule.", "at_once"],
  ["budget", "Budget", "Costs near a ceiling, or at it.", "at_once"],
  ["succeeded", "Succeeded", "A run has succeeded.", "digest"],
  ["nothing_new", "Nothing new", "A run has found nothing new.", "off"],
];

const NOTICE_WAYS = [["at_once", "At once"], ["digest", "In the digest"], ["off", "Not"]];

export const noticesPage = {
  nav: "notices",
  title: () => "Notices",
  reads: (ctx) => ({
    settings: "/notifications",
    channels: "/notifications/channels",
    deliveries: reading("deliveries", (signal) => getAll(`/deliveries?limit=20${ctx.state.deliveryState ? `&state=${ctx.state.deliveryState}` : ""}`, ctx.state.deliveryPages ?? 1, signal)),
    outbox: optional("/outbox?limit=10"),
    actions: reading("actions with rules", (signal) => getAll("/actions?limit=200", 1, signal).catch(() => ({ data: [], complete: true }))),
  }),
  view(ctx) {
    return h(
      "div",
      { key: "notices", class: "watch" },
      head("Notices", "who is told, what about, and when"),
      h("div", { class: "cols" }, h("div", {}, channelsSection(ctx), deliveriesSection(ctx), outboxSection(ctx)), h("div", {}, rulesSection(ctx), timesSection(ctx))),
    );
  },
};

// ---- Channels ----

const channelPath = (one) => `/notifications/channels/${one.channel_id}`;
const channelName = (one) => `${CHANNEL_KINDS[one.kind]?.[0] ?? one.kind} ${one.target}`;

function channelsSection(ctx) {
  const { channels } = ctx.data;
  const stored = channels.emails === "stored";
  return section(
    "Channels",
    { note: channels.data.length > 0 ? `${channels.data.length} of ${MOST_CHANNELS}` : null },
    stored && channels.data.some((one) => one.kind === "email") && h("p", { class: "pad", key: "stored" }, STORED),
    ctx.state.secret && webhookSecret(ctx, ctx.state.secret),
    channels.data.length === 0 && empty("Nobody is told yet. Add a channel, and the platform writes to you when a run fails or waits for you, and once a day what has succeeded."),
    channels.data.length > 0 && h("ul", { class: "rows", "aria-label": "Channels" }, channels.data.map((one) => channelRow(ctx, one))),
    channels.data.length < MOST_CHANNELS && newChannel(ctx),
  );
}

function channelRow(ctx, one) {
  const name = channelName(one);
  const [tests, turns] = [`test ${one.channel_id}`, `turn ${one.channel_id}`];
  const isOn = one.state === "enabled";
  const isUnconfirmed = one.state === "unconfirmed";
  const worksUntil = Date.parse(one.code_until ?? "");
  const replace = async () => {
    ctx.state.secret = await edit(channelPath(one), { new_secret: true });
  };
  return row({
    key: one.channel_id,
    time: CHANNEL_KINDS[one.kind]?.[0] ?? one.kind,
    title: one.target,
    note: [
      watchChip(one.state, { enabled: "on", disabled: "paused", suspended: "suspended", unconfirmed: "not confirmed" }[one.state]),
      one.why && h("span", { class: "watch-remedy" }, one.why),
      one.replies && h("span", { class: "watch-remedy" }, one.replies.why ? `Replies do not come back: ${one.replies.why}` : "Replies in the chat come back."),
      one.old_secret_until && h("span", { class: "watch-remedy" }, "The secret before this one signs, too, until ", when(one.old_secret_until, { form: "moment" }), "."),
      isUnconfirmed && h("span", { class: "watch-remedy" }, worksUntil > Date.now() ? ["A code was sent. It works until ", when(one.code_until, { form: "moment" }), "."] : "The code that was sent there no longer works. Send another one."),
      failureOf(ctx, tests),
      failureOf(ctx, turns),
    ],
    below: isUnconfirmed && codeForm(ctx, one),
    end: h(
      "span",
      { class: "watch-acts" },
      isOn && button(ctx, "Test", { key: tests, kind: "quiet", name: `Test ${name}`, act: async () => { await post(`${channelPath(one)}/test`, {}); flash("A test is on its way. What became of it is under Deliveries."); } }),
      !isUnconfirmed && button(ctx, isOn ? "Pause" : "Resume", { key: turns, kind: "quiet", name: `${isOn ? "Pause" : "Resume"} ${name}`, act: () => edit(channelPath(one), { state: isOn ? "disabled" : "enabled" }) }),
      one.kind === "webhook" && press("New secret…", () => confirmation(ctx, { title: "Replace the secret?", key: `secret ${one.channel_id}`, label: "Replace it", kind: "primary", text: "You see the new secret once. For 24 hours, both secrets sign.", act: replace }), { kind: "quiet" }),
      press("Delete…", () => confirmation(ctx, { title: `Delete ${name}?`, key: `delete ${one.channel_id}`, label: "Delete", text: "Nothing is sent to it any more. What waits to be sent to it is given up.", act: () => del(channelPath(one)) }), { kind: "quiet" }),
    ),
  });
}

/** An address gets notices after its reader has given back the code that was sent there. */
function codeForm(ctx, one) {
  const [key, again] = [`confirm ${one.channel_id}`, `code ${one.channel_id}`];
  const codes = (ctx.state.codes ??= {});
  const code = codes[one.channel_id] ?? "";
  const isReady = /\d/.test(code);
  // "It no longer works" is about the code, too.
  const fault = fieldFault(ctx, key, "code") ?? (ctx.failure(key)?.code === "code_expired" ? ctx.failure(key).message : null);
  const confirm = async () => {
    await post(`${channelPath(one)}/confirm`, { code: code.trim() });
    delete codes[one.channel_id];
    flash("Confirmed. Test it, so that you know that it works.");
  };
  const sendAnother = async () => {
    await post(`${channelPath(one)}/code`, {});
    delete codes[one.channel_id];
    ctx.forgive(key);
    flash("Another code is on its way. The one before it no longer works.");
  };
  const type = (text) => {
    codes[one.channel_id] = text;
    ctx.redraw();
  };
  return h(
    "form",
    { class: "form watch-code", "aria-label": `Confirm ${one.target}`, onsubmit: (event) => { event.preventDefault(); if (isReady) ctx.act(key, confirm); } },
    field("Code from the e-mail", h("input", { name: "code", class: "short", value: code, maxlength: "20", inputmode: "numeric", autocomplete: "one-time-code", spellcheck: "false", "aria-invalid": fault ? "true" : null, oninput: (event) => type(event.target.value) }), { hint: "Eight digits.", error: fault }),
    !fault && failureOf(ctx, key),
    failureOf(ctx, again),
    h("div", { class: "acts" }, h("button", { class: "btn primary", disabled: !isReady || ctx.busy(key) }, ctx.busy(key) ? "Confirm…" : "Confirm"), button(ctx, "Send another code", { key: again, kind: "quiet", name: `Send another code to ${one.target}`, act: sendAnother })),
  );
}

/** The secret of a webhook. It stands in this page alone, and is gone with it. */
function webhookSecret(ctx, made) {
  return h(
    "div",
    { class: "drift-note", key: "secret", role: "status" },
    h("h3", { class: "small-title" }, "The secret of the webhook"),
    made.secret
      ? [h("p", {}, "This is the only time that it is shown. The receiver needs it to check who writes (Standard Webhooks)."), h("p", {}, h("code", { class: "secret" }, made.secret), " ", copyButton(made.secret))]
      : h("p", {}, "The answer that had the secret was lost. Replace the secret to see a new one."),
    h("div", { class: "acts" }, press("I have kept it", () => { ctx.state.secret = null; ctx.redraw(); })),
  );
}

function newChannel(ctx) {
  const key = "new channel";
  const { emails } = ctx.data.channels;
  const kinds = Object.entries(CHANNEL_KINDS).filter(([kind]) => kind !== "email" || emails !== "none");
  const form = (ctx.state.channel ??= { kind: kinds[0][0] });
  const [, fields] = CHANNEL_KINDS[form.kind];
  const valueOf = ([name, , , more]) => (form[name] ?? more?.choices?.[0][0] ?? "").trim();
  const isReady = fields.every((one) => one[3]?.optional || valueOf(one) !== "");
  const set = (change) => {
    Object.assign(form, change);
    ctx.redraw();
  };
  const add = async () => {
    // What is no number stays as it is, and the platform says so.
    const sent = (one) => (one[3]?.flag ? valueOf(one) === "yes" : (one[3]?.number && Number(valueOf(one))) || valueOf(one));
    const given = fields.filter((one) => valueOf(one) !== "").map((one) => [one[0], sent(one)]);
    const made = await post("/notifications/channels", { kind: form.kind, ...Object.fromEntries(given) });
    // Who has begun with another one meanwhile keeps what they typed.
    if (ctx.state.channel === form) ctx.state.channel = { kind: form.kind };
    if (made.kind === "webhook") ctx.state.secret = made;
    flash(made.state === "unconfirmed" ? "Added. Its code is on its way." : "Added. Test it, so that you know that it works.");
  };
  return h(
    "form",
    { class: "form watch-new", key: "new", "aria-label": "Add a channel", onsubmit: (event) => { event.preventDefault(); if (isReady) ctx.act(key, add); } },
    field("Kind of channel", h("select", { value: form.kind, onchange: (event) => { ctx.forgive(key); ctx.state.channel = { kind: event.target.value }; ctx.redraw(); } }, kinds.map(([kind, [name]]) => h("option", { value: kind, key: kind }, name)))),
    form.kind === "email" && emails === "stored" && h("p", { class: "muted", key: "stored" }, STORED),
    fields.map(([name, label, hint, more]) => h("div", { key: `${form.kind} ${name}` }, field(label, channelInput(form, name, more, set), { hint, error: fieldFault(ctx, key, name) }))),
    faultOf(ctx, key, ...fields.map(([name]) => name)),
    h("div", { class: "acts" }, h("button", { class: "btn primary", disabled: !isReady || ctx.busy(key) }, ctx.busy(key) ? "Add it…" : "Add it")),
  );
}

function channelInput(form, name, more, set) {
  if (more?.choices) return h("select", { name, value: form[name] ?? more.choices[0][0], onchange: (event) => set({ [name]: event.target.value }) }, more.choices.map(([value, label]) => h("option", { value, key: value }, label)));
  return h("input", { name, type: more?.secret ? "password" : "text", inputmode: more?.number ? "numeric" : null, value: form[name] ?? "", maxlength: "2000", autocomplete: "off", spellcheck: "false", oninput: (event) => set({ [name]: event.target.value }) });
}

// ---- What about, and when ----

/** Replaces the settings with a change of them. */
function saveNotices(ctx, change, undo) {
  const { version, ...settings } = ctx.data.settings;
  return ctx.act("notices", () => put("/notifications", { ...settings, ...change }, { ifMatch: version }).then(() => true)).then((done) => { if (!done) undo?.(); });
}

function wayChoice(ctx, label, value, choose, none) {
  return h(
    "select",
    { "aria-label": label, value: value ?? "", disabled: ctx.busy("notices"), onchange: (event) => { const box = event.target; choose(box.value, () => { box.value = value ?? ""; }); } },
    none && h("option", { value: "" }, none),
    NOTICE_WAYS.map(([way, name]) => h("option", { value: way, key: way }, name)),
  );
}

function rulesSection(ctx) {
  const { settings, actions } = ctx.data;
  const kinds = settings.kinds ?? {};
  const own = settings.actions ?? {};
  const places = settings.channels ?? {};
  const ruled = [...new Set([...Object.keys(own), ...Object.keys(places)])];
  const at = ctx.state.ruleOf ?? ruled[0] ?? "";
  const known = new Map(actions.data.map((one) => [one.action_id, one.title]));
  for (const id of ruled) if (!known.has(id)) known.set(id, "An action that is not in the list");
  const chooseOwn = (kind) => (way, undo) => {
    const rules = { ...own[at] };
    if (way) rules[kind] = way;
    else delete rules[kind];
    const all = { ...own, [at]: rules };
    if (Object.keys(rules).length === 0) delete all[at];
    return saveNotices(ctx, { actions: all }, undo);
  };
  return section(
    "What you are told",
    {},
    failureOf(ctx, "notices"),
    h("ul", { class: "watch-checks", "aria-label": "What you are told" }, NOTICE_KINDS.map(([kind, name, says, standard]) => h("li", { key: kind }, h("span", {}, name, h("small", {}, says)), wayChoice(ctx, name, kinds[kind] ?? standard, (way, undo) => saveNotices(ctx, { kinds: { ...kinds, [kind]: way } }, undo))))),
    known.size > 0 &&
      h(
        "details",
        {},
        h("summary", {}, "Other rules for one action"),
        field("Action", h("select", { value: at, onchange: (event) => { ctx.state.ruleOf = event.target.value; ctx.redraw(); } }, h("option", { value: "" }, "Choose one"), [...known].map(([id, title]) => h("option", { value: id, key: id }, `${title}${ruled.includes(id) ? " (has rules)" : ""}`)))),
        at && h("ul", { class: "watch-checks", key: at, "aria-label": "Rules of this action" }, NOTICE_KINDS.filter(([kind]) => kind !== "watchdog").map(([kind, name]) => h("li", { key: kind }, h("span", {}, name), wayChoice(ctx, `${name}, for this action`, own[at]?.[kind], chooseOwn(kind), "As for all")))),
        at && ctx.data.channels.data.length > 1 && placesOf(ctx, places, at),
      ),
  );
}

/** The channels at which one action is told. None chosen means all of them. */
function placesOf(ctx, places, at) {
  const chosen = places[at] ?? [];
  const choose = (id, isChosen, undo) => {
    const now = isChosen ? [...chosen, id] : chosen.filter((one) => one !== id);
    const all = { ...places, [at]: now };
    if (now.length === 0) delete all[at];
    return saveNotices(ctx, { channels: all }, undo);
  };
  return h(
    "fieldset",
    { key: `places ${at}` },
    h("legend", {}, "Where this action is told"),
    ctx.data.channels.data.map((one) => h("label", { class: "check", key: one.channel_id }, h("input", { type: "checkbox", checked: chosen.includes(one.channel_id), disabled: ctx.busy("notices"), onchange: (event) => { const box = event.target; choose(one.channel_id, box.checked, () => { box.checked = !box.checked; }); } }), h("span", {}, channelName(one)))),
    h("p", { class: "muted" }, chosen.length === 0 ? "None is chosen, so it is told at all of them." : "While none of these is on, it is told at all that are on."),
  );
}

function timesSection(ctx) {
  const { settings } = ctx.data;
  const stored = { quiet: Boolean(settings.quiet_hours), from: settings.quiet_hours?.from?.slice(0, 5) ?? "22:00", to: settings.quiet_hours?.to?.slice(0, 5) ?? "07:00", urgent: settings.urgent_in_quiet_hours ?? false, digest: (settings.digest_at ?? "08:00").slice(0, 5) };
  const form = { ...stored, ...ctx.state.times };
  const set = (change) => {
    ctx.state.times = { ...ctx.state.times, ...change };
    ctx.redraw();
  };
  const save = async () => {
    await saveNotices(ctx, { quiet_hours: form.quiet ? { from: form.from, to: form.to } : null, urgent_in_quiet_hours: form.urgent, digest_at: form.digest });
    if (!ctx.failure("notices")) ctx.state.times = null;
    ctx.redraw();
  };
  const snooze = (hours) => saveNotices(ctx, { snoozed_until: hours ? new Date(Date.now() + hours * 3_600_000).toISOString() : null });
  const isSnoozed = settings.snoozed_until && Date.parse(settings.snoozed_until) > Date.now();
  const time = (name, label) => field(label, h("input", { type: "time", value: form[name], oninput: (event) => set({ [name]: event.target.value }) }));
  const isComplete = [form.from, form.to, form.digest].every((text) => /^\d\d:\d\d$/.test(text));
  return section(
    "When",
    { note: `times in ${shownZone().replaceAll("_", " ")}` },
    h(
      "form",
      { class: "form", "aria-label": "When you are told", onsubmit: (event) => { event.preventDefault(); if (isComplete) save(); } },
      time("digest", "The digest of a day comes at"),
      h("label", { class: "check" }, h("input", { type: "checkbox", checked: form.quiet, onchange: (event) => set({ quiet: event.target.checked }) }), h("span", {}, "Quiet hours: what comes in between is sent when they end")),
      form.quiet && h("div", { class: "pair", key: "quiet" }, time("from", "From"), time("to", "To")),
      form.quiet && h("label", { class: "check", key: "urgent" }, h("input", { type: "checkbox", checked: form.urgent, onchange: (event) => set({ urgent: event.target.checked }) }), h("span", {}, "Answers that are needed and the watchdog are sent then, too")),
      h("div", { class: "acts" }, h("button", { class: "btn", disabled: !isComplete || !ctx.state.times || ctx.busy("notices") }, "Save the times")),
    ),
    isSnoozed
      ? h("p", { class: "watch-why", key: "snoozed" }, "Nothing is sent before ", when(settings.snoozed_until), ". ", press("End it", () => snooze(0), { kind: "link", disabled: ctx.busy("notices") }))
      : h("div", { class: "acts", key: "snooze" }, h("span", { class: "muted" }, "Send nothing for"), press("1 hour", () => snooze(1), { kind: "quiet", disabled: ctx.busy("notices") }), press("8 hours", () => snooze(8), { kind: "quiet", disabled: ctx.busy("notices") }), press("1 day", () => snooze(24), { kind: "quiet", disabled: ctx.busy("notices") })),
  );
}

// ---- What was sent ----

const DELIVERY_STATES = [["", "All"], ["waiting", "Waiting"], ["delivered", "Delivered"], ["undelivered", "Undelivered"]];

function deliveriesSection(ctx) {
  const { deliveries } = ctx.data;
  const filter = h("select", { "aria-label": "Deliveries by state", value: ctx.state.deliveryState ?? "", onchange: (event) => { ctx.state.deliveryState = event.target.value; ctx.state.deliveryPages = 1; ctx.refresh(); } }, DELIVERY_STATES.map(([state, name]) => h("option", { value: state, key: state }, name)));
  return section(
    "Deliveries",
    { id: "deliveries", end: filter },
    deliveries.data.length === 0 && h("p", { class: "muted watch-under" }, ctx.state.deliveryState ? "No delivery is in this state." : "Nothing was sent yet."),
    deliveries.data.length > 0 &&
      h(
        "ul",
        { class: "rows", "aria-label": "Deliveries, newest first" },
        deliveries.data.map((one) => {
          const key = `retry ${one.delivery_id}`;
          return row({
            key: one.delivery_id,
            time: when(one.created_at, { form: "moment" }),
            title: one.subject,
            note: [`${channelName(one)} · ${one.tries === 1 ? "1 try" : `${one.tries} tries`}`, one.state === "waiting" && one.next_at && [" · next ", when(one.next_at, { form: "relative" })], one.error && h("span", { class: "watch-remedy" }, one.error), failureOf(ctx, key)],
            end: [one.state === "undelivered" && button(ctx, "Try again", { key, kind: "quiet", name: `Try again: ${one.subject}`, act: () => post(`/deliveries/${one.delivery_id}/retry`, {}) }), watchChip(one.state)],
          });
        }),
      ),
    !deliveries.complete && button(ctx, "Show more deliveries", { act: async () => { ctx.state.deliveryPages = (ctx.state.deliveryPages ?? 1) + 1; } }),
  );
}

/** The mail of a platform without a sender, as text. Its HTML is not shown. */
function outboxSection(ctx) {
  const mails = ctx.data.outbox?.data ?? [];
  if (mails.length === 0) return null;
  return section(
    "Outbox",
    { note: "this platform sends no mail; this is what it would send" },
    rows(
      mails.map((one) => {
        const { Destination: to, Content: content } = one.request ?? {};
        return row({ key: `${one.delivery_id} ${one.at}`, time: when(one.at, { form: "moment" }), title: content?.Simple?.Subject?.Data ?? "A mail", note: [(to?.ToAddresses ?? []).join(", "), h("details", {}, h("summary", {}, "Read it"), h("pre", { class: "watch-mail", tabindex: "0", "aria-label": "The mail" }, content?.Simple?.Body?.Text?.Data ?? JSON.stringify(one.request, null, 2)))] });
      }),
    ),
  );
}
