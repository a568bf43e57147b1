// The account: its time zone, plan and ceilings; usage; keys and models; its data and its end.

import { Problem, del, download, edit, get, post } from "./api.js";
import { keysReads, keysView } from "./account-keys.js";
import { usageReads, usageView } from "./account-usage.js";
import { LIVE_MS, RESTING_MS, cached, optional, reading } from "./app.js";
import { changedIn, clashView, editOf, endEdit, freshen, hasClash, sendEdit, setIn } from "./conflict-view.js";
import { credential, signOut } from "./credentials.js";
import { bytes, capital, counted, figure, money, moment, spaced } from "./format.js";
import { LOOKS, chooseLook, chosenLook } from "./look.js";
import { button, copyButton, dialog, dialogActs, facts, failureOf, field, head, link, oil, press, receiptLink, section, tabs, when } from "./parts.js";
import { dollarsText, microsTyped, zoneSelect } from "./settings.js";
import { h } from "./view.js";

// ---- The colours ----

function themeSection(ctx) {
  return section(
    "This browser",
    { id: "browser" },
    h(
      "fieldset",
      { class: "choices inline-choices" },
      h("legend", {}, "Colours"),
      LOOKS.map(([value, name]) =>
        h(
          "label",
          { key: value },
          h("input", {
            type: "radio",
            name: "theme",
            value,
            checked: chosenLook() === value,
            onchange: () => {
              chooseLook(value);
              ctx.redraw();
            },
          }),
          h("span", {}, name),
        ),
      ),
    ),
    credential() !== null && h("div", { class: "acts" }, press("Sign out", () => signOut())),
  );
}

// ---- The page ----

const ACCOUNT_VIEWS = { usage: "Usage", keys: "Keys and models", data: "Data" };

const isReceipt = (view) => /^rcp_[0-9a-f]{32}$/.test(view ?? "");

/** The account, or the receipt of its deletion. */
const ACCOUNT_READ = "account of the page";
const accountRead = reading(ACCOUNT_READ, async (signal) => {
  try {
    return await get("/account", signal);
  } catch (error) {
    if (error instanceof Problem && error.code === "account_deleted") return { deleted: error.current?.receipt_id ?? null };
    throw error;
  }
});

export const accountPage = {
  nav: "account",
  title: (ctx) => (isReceipt(ctx.params.view) ? "Receipt" : (ACCOUNT_VIEWS[ctx.params.view] ?? "Account")),
  reads(ctx) {
    const { view } = ctx.params;
    if (isReceipt(view)) return { receipt: `/receipts/${view}` };
    const reads = { account: accountRead };
    // A deleted account refuses everything else.
    if (cached(ACCOUNT_READ)?.deleted !== undefined) return reads;
    if (view === "usage") return { ...reads, limits: "/limits", ...usageReads(ctx) };
    if (view === "keys") return { ...reads, ...keysReads() };
    if (view === "data") return { ...reads, imported: "/account/import", ...(exportId() ? { exported: optional(`/account/exports/${exportId()}`) } : {}) };
    return { ...reads, limits: "/limits", day: "/usage" };
  },
  every(ctx) {
    const { exported, imported, receipt } = ctx.data;
    return receipt?.state === "removing" || exported?.state === "running" || ["running", "waiting"].includes(imported?.state) ? LIVE_MS : RESTING_MS;
  },
  view(ctx) {
    const { view } = ctx.params;
    if (isReceipt(view)) return receiptView(ctx);
    if (ctx.data.account.deleted !== undefined) return deletedView(ctx);
    return h(
      "div",
      { class: "account", key: `account ${view ?? ""}` },
      head("Account", ctx.data.account.owner === "local" ? null : h("span", { class: "mono owner" }, ctx.data.account.owner)),
      tabs("Pages of the account", [["Account", "#/account", !(view in ACCOUNT_VIEWS)], ...Object.entries(ACCOUNT_VIEWS).map(([name, title]) => [title, `#/account/${name}`, view === name])]),
      h("div", { class: "account-page" }, view === "usage" ? usageView(ctx) : view === "keys" ? keysView(ctx) : view === "data" ? dataView(ctx) : generalView(ctx)),
    );
  },
};

// ---- General ----

const ACCOUNT_FIELDS = { timezone: "Time zone", plan: "Plan", billing_mode: "Billing", overage: "Beyond the plan", per_day: "Ceiling of a day", per_month: "Ceiling of a month", alerts: "Alerts", memory_vectors: "Search of memory" };

const accountFields = (account) => ({
  timezone: account.timezone,
  plan: account.plan,
  billing_mode: account.billing_mode,
  overage: account.overage,
  per_day: dollarsText(account.budget.per_day_micros),
  per_month: dollarsText(account.budget.per_month_micros),
  alerts: account.alerts.map((alert) => dollarsText(alert.month_micros)),
  memory_vectors: account.memory_vectors,
});

const MOST_ALERTS = 10;

function generalView(ctx) {
  const { account, limits, day } = ctx.data;
  const form = (ctx.state.form ??= editOf(`account ${account.owner}`, accountFields(account), account.version));
  freshen(form, accountFields(account), account.version);
  return [
    h("div", { class: "cols" }, h("div", {}, accountForm(ctx, form)), h("div", {}, spentToday(day), planSection(account, limits), themeSection(ctx))),
    limitsSection(limits),
  ];
}

function spentToday(day) {
  return section("Spending", { note: "today, in UTC", end: h("a", { href: "#/account/usage" }, "Usage") }, oil({ spent: day.spent_micros ?? 0, reserved: Math.max(0, (day.committed_micros ?? 0) - (day.spent_micros ?? 0)), ceiling: day.ceiling_micros + (day.raised_micros ?? 0) }));
}

function accountForm(ctx, form) {
  const { account, limits } = ctx.data;
  const key = "save account";
  const changed = changedIn(form);
  const change = (name, value) => {
    setIn(form, name, value);
    ctx.state.saved = false;
    ctx.redraw();
  };
  const set = (name) => (event) => change(name, event.target.value);
  const { ceilings } = limits;
  const perDay = microsTyped(form.mine.per_day);
  const perMonth = microsTyped(form.mine.per_month);
  const dayError = perDay === undefined ? "Write an amount, such as 5, or nothing." : perDay > ceilings.day_max_micros ? `At most ${money(ceilings.day_max_micros)}.` : null;
  const monthError = perMonth === undefined ? "Write an amount, such as 100, or nothing." : perMonth > ceilings.month_max_micros ? `At most ${money(ceilings.month_max_micros)}.` : null;
  const alerts = form.mine.alerts.map(microsTyped);
  const isWrong = dayError || monthError || alerts.some((amount) => !amount);
  const save = async () => {
    const body = {};
    for (const name of changed) {
      if (name === "per_day" || name === "per_month") body.budget = { ...(perDay ? { per_day_micros: perDay } : {}), ...(perMonth ? { per_month_micros: perMonth } : {}) };
      else if (name === "alerts") body.alerts = alerts.map((month_micros) => ({ month_micros }));
      else body[name] = form.mine[name];
    }
    const saved = await sendEdit(form, (version) => edit("/account", body, { ifMatch: version }));
    if (!saved) return;
    endEdit(form, accountFields(saved), saved.version);
    ctx.state.saved = true;
  };
  const radio = (name, value, title, says) =>
    h("label", { key: value }, h("input", { type: "radio", name, value, checked: form.mine[name] === value, onchange: set(name) }), h("span", {}, h("b", {}, title), h("small", {}, says)));
  return h(
    "form",
    { class: "form", "aria-label": "Account", onsubmit: (event) => event.preventDefault() },
    clashView(ctx, form, ACCOUNT_FIELDS),
    field("Time zone", zoneSelect(form.mine.timezone, set("timezone")), { hint: "All times are shown in it, and new schedules run by it. Schedules that exist keep theirs." }),
    limits.plans.length > 1 && field("Plan", h("select", { value: form.mine.plan, onchange: set("plan") }, [...new Set([...limits.plans, account.plan])].map((plan) => h("option", { value: plan, key: plan }, capital(plan))))),
    h(
      "fieldset",
      { class: "pair" },
      h("legend", {}, "Ceilings of costs, in dollars"),
      field("A day may cost", h("input", { inputmode: "decimal", value: form.mine.per_day, placeholder: dollarsText(ceilings.day_micros), oninput: set("per_day") }), { error: dayError, hint: "Leave it empty for the ceiling of the platform." }),
      field("A month may cost", h("input", { inputmode: "decimal", value: form.mine.per_month, placeholder: "no ceiling", oninput: set("per_month") }), { error: monthError, hint: "At a ceiling, work waits and asks you." }),
    ),
    alertFields(ctx, form, account, change),
    limits.requests.limited &&
      h(
        "fieldset",
        { class: "choices" },
        h("legend", {}, "When the plan includes no more requests"),
        radio("overage", "off", "Refuse further requests", "Turns are refused, and runs of actions fail, until the next month."),
        radio("overage", "on", "Go on, at double cost", "The cost of further requests counts twice."),
      ),
    h(
      "fieldset",
      { class: "choices" },
      h("legend", {}, "Billing"),
      radio("billing_mode", "platform", "The platform pays the models", "Requests count against the plan."),
      radio("billing_mode", "byok", "My own keys pay the models", "With a stored key of a provider, requests are not counted. The provider bills you."),
    ),
    h(
      "fieldset",
      { class: "choices" },
      h("legend", {}, "Search of memory"),
      radio("memory_vectors", "off", "By words", "Nothing is sent anywhere, and it costs nothing."),
      ...[["openai", "OpenAI"], ["google", "Google"], ["bedrock", "Amazon Bedrock"]].map(([value, name]) =>
        radio("memory_vectors", value, `By words and by meaning, with ${name}`, `Your conversations, facts and cards are sent to ${name} soon after this choice, and what is new once a week. The text of each search, chat message and task of a run is sent to it as a question.`),
      ),
    ),
    failureOf(ctx, key),
    ctx.state.saved && changed.length === 0 && h("p", { class: "ok", role: "status", key: "saved" }, "Saved."),
    h(
      "div",
      { class: "acts save-bar" },
      changed.length > 0 && press("Give up the changes", () => { endEdit(form); ctx.redraw(); }, { kind: "quiet" }),
      h("div", { class: "end" }, button(ctx, "Save", { key, kind: "primary", disabled: changed.length === 0 || isWrong || hasClash(form), act: save })),
    ),
  );
}

function alertFields(ctx, form, account, change) {
  const list = form.mine.alerts;
  const reached = (text) => account.alerts.find((alert) => alert.month_micros === microsTyped(text) && alert.reached_at);
  return h(
    "fieldset",
    { class: "choices" },
    h("legend", {}, "Tell me when a month has cost"),
    list.map((text, index) =>
      h(
        "div",
        { class: "alert-row", key: index },
        h("input", { class: "short", inputmode: "decimal", "aria-label": `Alert ${index + 1}, in dollars`, value: text, oninput: (event) => change("alerts", list.with(index, event.target.value)) }),
        press("Remove", () => change("alerts", list.toSpliced(index, 1)), { kind: "quiet" }),
        reached(text) && h("small", { class: "warn" }, `Reached ${moment(reached(text).reached_at)}.`),
        !microsTyped(text) && text !== "" && h("small", { class: "bad", role: "alert" }, "Write an amount, such as 20."),
      ),
    ),
    list.length < MOST_ALERTS && h("div", {}, press(list.length === 0 ? "Add an alert" : "Add another", () => change("alerts", [...list, ""]))),
    h("small", { class: "muted" }, "In dollars. Each is told once a month, here and to the operator of the platform."),
  );
}

function planSection(account, limits) {
  const { includes, requests } = limits;
  return section(
    "Plan",
    { note: capital(account.plan) },
    h(
      "div",
      { class: "pad" },
      requests.limited
        ? facts([
            ["Requests", `${figure(requests.used)} used, ${figure(requests.left ?? 0)} left`],
            ["Begins again", when(requests.resets_at, { form: "moment" })],
            ["Beyond it", requests.overage > 0 && counted(requests.overage, "request")],
            ["Projects", includes.projects ? `up to ${figure(includes.projects)}` : "as many as you like"],
            ["Price", includes.month_cents ? `${money(includes.month_cents * 10_000)} a month` : null],
          ])
        : h("p", { class: "muted" }, "Requests are not limited. Only the ceilings of costs are."),
    ),
  );
}

const RATE_NAMES = { theme_agent: "Theme agent", streamed_turns: "Turns that stream", turns: "Other turns and runs", mcp: "Messages of MCP", hooks: "Reports of hooks", others: "All other requests" };

function limitsSection(limits) {
  const { sizes, rates, ceilings } = limits;
  const sizeText = (name, value) => (name.endsWith("bytes") ? bytes(value) : figure(value));
  return h(
    "section",
    { class: "sec", key: "limits", "aria-label": "Limits" },
    h(
      "details",
      {},
      h("summary", {}, h("h2", { class: "in-summary" }, "Limits")),
      h(
        "div",
        { class: "limit-tables" },
        h(
          "table",
          { class: "figures" },
          h("caption", {}, "Requests a minute"),
          h("tbody", {}, rates.length === 0 && h("tr", {}, h("th", { scope: "row" }, "All requests"), h("td", {}, "not limited")), rates.map((rate) => h("tr", { key: rate.class }, h("th", { scope: "row" }, RATE_NAMES[rate.class] ?? capital(spaced(rate.class))), h("td", {}, figure(rate.per_minute))))),
        ),
        h(
          "table",
          { class: "figures" },
          h("caption", {}, "Costs"),
          h(
            "tbody",
            {},
            [["A run, unless it has a ceiling of its own", ceilings.run_micros], ["A day", ceilings.day_micros], ["A day, raised as far as possible", ceilings.day_max_micros], ["A month", ceilings.month_micros], ["A month, raised as far as possible", ceilings.month_max_micros], ["Notes about a theme", ceilings.enrichment_micros]].map(([name, value]) => h("tr", { key: name }, h("th", { scope: "row" }, name), h("td", {}, value ? money(value) : "no ceiling"))),
          ),
        ),
        h("table", { class: "figures" }, h("caption", {}, "Sizes"), h("tbody", {}, Object.entries(sizes).map(([name, value]) => h("tr", { key: name }, h("th", { scope: "row" }, capital(spaced(name.replace(/_bytes$/, "")))), h("td", {}, sizeText(name, value)))))),
      ),
    ),
  );
}

// ---- Data ----

const EXPORT_KEPT = "lamplighter.export";

const exportId = () => {
  const id = sessionStorage.getItem(EXPORT_KEPT);
  return /^exp_[0-9a-f]{32}$/.test(id ?? "") ? id : null;
};

function dataView(ctx) {
  return [exportSection(ctx), importSection(ctx), deleteSection(ctx)];
}

const isWebAddress = (text) => /^https?:\/\//.test(text ?? "") && URL.canParse(text);

function exportSection(ctx) {
  const { exported } = ctx.data;
  const begin = async () => {
    let begun;
    try {
      begun = await post("/account/export");
    } catch (error) {
      if (error.code !== "export_running" || !error.current?.export_id) throw error;
      begun = error.current;
    }
    sessionStorage.setItem(EXPORT_KEPT, begun.export_id);
  };
  const isRunning = exported?.state === "running";
  return section(
    "Export",
    { id: "export" },
    h("p", { class: "pad" }, "One archive with all that the account has: agents, chats, assets, actions and their runs, themes, context and logs. Keys are left out. It is kept for 30 days."),
    exported && isRunning && h("p", { role: "status" }, "The archive is being written…"),
    exported?.state === "failed" && h("p", { class: "bad", role: "alert" }, exported.error ?? "The export has failed."),
    exported?.state === "done" &&
      h(
        "div",
        { class: "drift-note calm-note", key: "done", role: "status" },
        h("p", {}, h("b", {}, "The archive is ready. "), `${bytes(exported.bytes)}, ${counted(Object.values(exported.records ?? {}).reduce((sum, count) => sum + count, 0), "record")}, ${counted(exported.objects, "file")}.`),
        isWebAddress(exported.url) && h("p", {}, h("a", { class: "btn primary", href: exported.url, rel: "noreferrer", download: true }, "Download the archive")),
        h("p", { class: "muted" }, "Of ", when(exported.finished_at, { form: "moment" }), ". Whoever has the address of the download can read the archive for 15 minutes."),
      ),
    failureOf(ctx, "export"),
    h("div", { class: "acts" }, button(ctx, exported ? "Export again" : "Export the account", { key: "export", kind: exported ? "" : "primary", disabled: isRunning, act: begin })),
    h("p", { class: "pad" }, "The memory alone, as text files that a person can read: what it knows, day by day and week by week."),
    failureOf(ctx, "export memory"),
    h("div", { class: "acts" }, button(ctx, "Download the memory", { key: "export memory", act: () => download("/memory/export", "memory.zip") })),
  );
}

const IMPORT_STATES = { waiting: "It waits for the archive.", running: "The archive is being read…", done: "It is done.", failed: "It has failed." };

function importSection(ctx) {
  const { imported } = ctx.data;
  const choose = (event) => {
    ctx.state.file = event.target.files[0] ?? null;
    ctx.redraw();
  };
  const { file, command } = ctx.state;
  return section(
    "Import",
    { id: "import" },
    h("p", { class: "pad" }, "Makes an archive the contents of this account, which must be empty. Actions must be approved again before they run."),
    imported &&
      facts([
        ["State", IMPORT_STATES[imported.state] ?? imported.state],
        ["Begun", when(imported.requested_at)],
        ["Archive", bytes(imported.bytes)],
        ["Read", Object.keys(imported.records).length > 0 && Object.entries(imported.records).map(([name, count]) => `${figure(count)} ${spaced(name)}`).join(", ")],
        ["Left out", Object.keys(imported.left_out).length > 0 && Object.entries(imported.left_out).map(([name, count]) => `${figure(count)} ${spaced(name)}`).join(", ")],
        ["Why", imported.error && h("span", { class: "bad" }, imported.error)],
      ]),
    h("div", { class: "form" }, field("Archive of an export", h("input", { type: "file", accept: ".zip,application/zip", onchange: choose }))),
    command && imported?.state === "waiting" && h("div", { class: "aside-note", key: "command" }, h("p", {}, "The archive goes to another address than this page, so send it yourself, with this command in the folder of the archive. The address is valid until ", when(ctx.state.commandUntil, { form: "moment" }), "."), h("pre", { class: "reader", tabindex: "0", role: "region", "aria-label": "Command that sends the archive" }, command), copyButton(command)),
    failureOf(ctx, "import"),
    h("div", { class: "acts" }, button(ctx, "Import this archive", { key: "import", disabled: !file, act: () => sendAccountArchive(ctx, file) })),
  );
}

/** Announces an archive and uploads it. The policy of this page forbids other addresses than its own: for those it shows a command. */
async function sendAccountArchive(ctx, file) {
  ctx.state.command = null;
  const { upload } = await post("/account/import", { bytes: file.size });
  if (!upload) return;
  if (new URL(upload.url, location.href).origin !== location.origin) {
    const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;
    ctx.state.commandUntil = upload.expires_at;
    ctx.state.command = ["curl -fsS -X", upload.method, ...Object.entries(upload.headers).map(([name, value]) => `-H ${quoted(`${name}: ${value}`)}`), `--data-binary @${quoted(file.name)}`, quoted(upload.url)].join(" ");
    return;
  }
  const answer = await fetch(upload.url, { method: upload.method, headers: upload.headers, body: file, credentials: "omit", redirect: "error" });
  if (!answer.ok) throw new Error(`The archive could not be uploaded: the answer was ${answer.status}.`);
}

// ---- The end ----

const DELETE_WORD = "delete";

function deleteSection(ctx) {
  return section(
    "Delete the account",
    { id: "delete" },
    h("p", { class: "pad" }, "Removes everything that the account has, with all versions: agents, chats, assets, actions, runs, themes, logs and keys. It begins at once and cannot be undone. You get a receipt that lists what was removed."),
    h("div", { class: "acts" }, press("Delete the account…", () => askToDelete(ctx))),
  );
}

function askToDelete(ctx) {
  const key = "delete account";
  let typed = "";
  ctx.open(() =>
    dialog(
      { title: "Delete the account?", onclose: () => ctx.close() },
      h("p", {}, "Everything in it is removed, and nothing can be restored. What stays is the count of what it has spent in this day and month, and copies in backups until they end: the receipt names them."),
      field(`Type “${DELETE_WORD}” to confirm`, h("input", { value: typed, autocomplete: "off", autocapitalize: "off", spellcheck: "false", autofocus: true, oninput: (event) => { typed = event.target.value; ctx.redraw(); } })),
      failureOf(ctx, key),
      dialogActs(
        ctx,
        button(ctx, "Delete everything", {
          key,
          kind: "halt",
          disabled: typed.trim().toLowerCase() !== DELETE_WORD,
          act: async () => {
            const { receipt_id } = await del(`/account?confirm=${encodeURIComponent(ctx.data.account.owner)}`);
            sessionStorage.removeItem(EXPORT_KEPT);
            ctx.close();
            ctx.go(`#/account/${receipt_id}`);
          },
        }),
      ),
    ),
  );
}

function deletedView(ctx) {
  const { deleted } = ctx.data.account;
  return h("div", { class: "lost", key: "deleted" }, h("h1", {}, "This account is being deleted"), h("p", {}, "It takes no more calls. You can start again with an empty account when the deletion has ended: its receipt says when."), isReceipt(deleted) && receiptLink(deleted));
}

const RECEIPT_STATES = { removing: "Everything is being removed.", waiting: "Everything was removed. It is removed once more when work that had begun before has ended.", done: "Everything is removed." };
const PLACES_OF_COPIES = { table_backups: "Backups of the table", incomplete_uploads: "Uploads that were cut off", table_file: "Free pages of the file of the table" };
const KEPT_COUNTS = { day_spending: "What the day has cost", month_spending: "What the month has cost", month_requests: "The number of requests of the month" };

function receiptView(ctx) {
  const { receipt } = ctx.data;
  const removed = Object.entries(receipt.removed_records);
  const count = removed.reduce((sum, [, number]) => sum + number, 0);
  return h(
    "article",
    { class: "account", key: "receipt" },
    head("Receipt of a deletion", null, copyButton(JSON.stringify(receipt, null, 2), "Copy all of it")),
    h("p", { class: "verdict", role: "status" }, RECEIPT_STATES[receipt.state] ?? spaced(receipt.state)),
    h("p", { class: "muted" }, "Keep the address of this page or the number below: for 90 days, whoever knows it can read this receipt. It has no data of a person."),
    facts([
      ["Number", h("span", {}, h("code", {}, receipt.receipt_id), " ", copyButton(receipt.receipt_id))],
      ["Asked for", when(receipt.requested_at)],
      ["Confirmed", receipt.state !== "done" && when(receipt.confirms_at)],
      ["Ended", receipt.finished_at && when(receipt.finished_at)],
      ["Removed", `${counted(count, "record")} of the table, and ${counted(receipt.removed_objects, "version")} of files`],
      ["Left", receipt.left && `${counted(receipt.left.records, "record")} and ${counted(receipt.left.objects, "version")} of files, looked for ${moment(receipt.left.checked_at)}`],
      ["Start again", receipt.state === "done" ? link("with an empty account", "#/") : ["after ", when(receipt.confirms_at, { form: "moment" }), ". Until then, this account takes no calls"]],
    ]),
    h("p", { class: "muted" }, "Each thing has several records: itself, its changes, and what finds it."),
    removed.length > 0 &&
      section(
        "What was removed",
        {},
        h("table", { class: "figures" }, h("caption", { class: "vh" }, "Records that were removed, by kind"), h("tbody", {}, removed.map(([name, number]) => h("tr", { key: name }, h("th", { scope: "row" }, capital(spaced(name))), h("td", {}, figure(number)))))),
      ),
    (receipt.kept ?? []).length > 0 &&
      section("What is kept, and until when", {}, facts(receipt.kept.map((one) => [KEPT_COUNTS[one.what] ?? capital(spaced(one.what)), when(one.until, { form: "moment" })]))),
    (receipt.copies ?? []).length > 0 &&
      section("Where copies may be", {}, facts(receipt.copies.map((one) => [PLACES_OF_COPIES[one.place] ?? capital(spaced(one.place)), one.until ? ["until ", when(one.until, { form: "moment" })] : "until the file is written again"]))),
  );
}
