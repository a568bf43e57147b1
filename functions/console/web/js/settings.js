// The settings of one agent: its texts, what it sees, what it may cost, who changed what, and its end.

import { del, edit, get, getAll, post } from "./api.js";
import { agentHead } from "./agent-head.js";
import { reading } from "./app.js";
import { changedIn, clashView, editOf, endEdit, freshen, hasClash, sendEdit, setIn } from "./conflict-view.js";
import { asText, changeView, fieldName } from "./changes.js";
import { diffView } from "./diff.js";
import { capital, counted, figure, listed, money, shownZone, spaced } from "./format.js";
import { button, chip, confirmation, failureOf, field, link, press, section, when } from "./parts.js";
import { h } from "./view.js";

const HISTORY_A_PAGE = 20;
const MOST_ACTIONS_SEEN = 30;

/** These texts of an agent are in the prompt of each of its runs. */
const TEXTS = ["name", "goal", "success_criteria", "timeline", "instructions"];

/** Whether an approval of `action` binds this field of its agent. The time zone is that of a run whose action has no schedule. */
const binds = (field, action) => TEXTS.includes(field) || field === "docs_project_id" || field === "theme_project_id" || (field === "timezone" && !action.schedule);

const AGENT_FIELDS = {
  name: "Name",
  goal: "Goal",
  success_criteria: "It works if",
  timeline: "Timeline",
  instructions: "Instructions",
  model_tier: "Model",
  per_run: "Ceiling of a run",
  per_month: "Ceiling of a month",
  timezone: "Time zone",
  docs_project_id: "Living documents",
  theme_project_id: "Theme",
  provider_tools: "Tools of the provider",
  budget: "Ceilings",
  status: "State",
};

const AGENT_LIMITS = { name: 200, goal: 2000, success_criteria: 2000, timeline: 2000, instructions: 20000 };

const agentPath = (ctx) => `/agents/${encodeURIComponent(ctx.params.agent_id)}`;

/** Dollars as people type them. */
export const dollarsText = (micros) => (micros === null || micros === undefined ? "" : String(micros / 1_000_000));

/** The micro-dollars of what was typed, null for nothing, or undefined if it is not an amount. */
export function microsTyped(text) {
  const amount = text.trim().replace(/^\$/, "").replace(",", ".");
  if (amount === "") return null;
  if (!/^\d{1,7}(\.\d{1,6})?$/.test(amount)) return undefined;
  const micros = Math.round(Number(amount) * 1_000_000);
  return micros > 0 ? micros : undefined;
}

const settingsFields = (agent) => ({
  name: agent.name,
  goal: agent.goal,
  success_criteria: agent.success_criteria,
  timeline: agent.timeline,
  instructions: agent.instructions,
  model_tier: agent.model_tier,
  per_run: dollarsText(agent.budget.per_run_micros),
  per_month: dollarsText(agent.budget.per_month_micros),
  timezone: agent.timezone ?? "",
  docs_project_id: agent.docs_project_id ?? "",
  theme_project_id: agent.theme_project_id ?? "",
  provider_tools: [...(agent.provider_tools ?? [])].sort(),
});

export const settingsPage = {
  nav: "agents",
  of: "agent",
  title: (ctx) => `Settings of ${ctx.data.agent.name}`,
  reads: (ctx) => ({
    agent: agentPath(ctx),
    withdrawn: `${agentPath(ctx)}/approvals?limit=200`,
    actions: `/actions?agent_id=${encodeURIComponent(ctx.params.agent_id)}&limit=200`,
    models: "/models",
    limits: "/limits",
    projects: "/projects?limit=200",
    history: reading(`history of ${ctx.params.agent_id}`, (signal) => getAll(`${agentPath(ctx)}/history?limit=${HISTORY_A_PAGE}`, ctx.state.pages ?? 1, signal)),
  }),
  view(ctx) {
    const { agent } = ctx.data;
    const form = (ctx.state.form ??= editOf(`settings ${agent.agent_id}`, settingsFields(agent), agent.version));
    freshen(form, settingsFields(agent), agent.version);
    return h(
      "div",
      { class: "settings", key: agent.agent_id },
      agentHead(agent, "settings"),
      withdrawnSection(ctx),
      h("div", { class: "cols" }, h("div", {}, settingsForm(ctx, form)), h("div", {}, seenSection(ctx), endSection(ctx))),
      agentHistory(ctx),
    );
  },
};

// ---- The form ----

function settingsForm(ctx, form) {
  const { agent, models, limits } = ctx.data;
  const key = `settings ${agent.agent_id}`;
  const changed = changedIn(form);
  const set = (name) => (event) => {
    setIn(form, name, event.target.value);
    ctx.redraw();
  };
  const text = (name, rows, { required, hint } = {}) => {
    const value = form.mine[name];
    const limit = AGENT_LIMITS[name];
    const says = required && value.trim() === "" ? `${AGENT_FIELDS[name]} is needed.` : null;
    const isNear = value.length > limit * 0.9;
    return field(
      AGENT_FIELDS[name],
      rows === 1
        ? h("input", { value, maxlength: String(limit), required, oninput: set(name) })
        : h("textarea", { value, rows: String(rows), maxlength: String(limit), required, oninput: set(name) }),
      { hint: isNear ? `${figure(value.length)} of ${figure(limit)} characters` : hint, error: says },
    );
  };
  const projectSelect = (name) =>
    h(
      "select",
      { value: form.mine[name], onchange: set(name) },
      h("option", { value: "" }, "None"),
      ctx.data.projects.data.map((project) => h("option", { value: project.project_id, key: project.project_id }, project.name)),
    );
  const perRun = microsTyped(form.mine.per_run);
  const perMonth = microsTyped(form.mine.per_month);
  const isWrong = ["name", "goal", "timeline"].some((name) => form.mine[name].trim() === "") || perRun === undefined || perMonth === undefined;
  const holding = ctx.data.actions.data.filter((action) => action.approval && action.approval.hash === action.approval_hash);
  const orMore = ctx.data.actions.has_more ? " or more" : "";
  const withdraws = holding.filter((action) => changed.some((name) => binds(name, action)));
  const save = async () => {
    const body = {};
    for (const name of changed) {
      if (name === "per_run" || name === "per_month") body.budget = budgetOf(perRun, perMonth);
      else if (name === "docs_project_id" || name === "theme_project_id") body[name] = form.mine[name] || null;
      else body[name] = form.mine[name];
    }
    const saved = await sendEdit(form, (version) => edit(agentPath(ctx), body, { ifMatch: version }));
    if (!saved) return;
    endEdit(form, settingsFields(saved), saved.version);
    ctx.state.saved = saved.withdrawn_approvals.length > 0 ? `Saved. ${capital(counted(saved.withdrawn_approvals.length, "approval"))} of this agent ${saved.withdrawn_approvals.length === 1 ? "is" : "are"} withdrawn: see above.` : "Saved.";
    if (saved.withdrawn_approvals.length > 0) scrollTo(0, 0);
  };
  return h(
    "form",
    { class: "form", "aria-label": "Settings", onsubmit: (event) => event.preventDefault() },
    clashView(ctx, form, AGENT_FIELDS),
    text("name", 1, { required: true }),
    text("goal", 2, { required: true, hint: "What it should achieve: a [kind of] agent that [does what]." }),
    text("success_criteria", 2, { hint: "How you know that its work is good." }),
    text("timeline", 1, { required: true, hint: "Until when it works: a date, a range, or “Ongoing”." }),
    text("instructions", 8, { hint: "How it should work, in what tone, and what it must be careful about." }),
    tierChoice(ctx, form, models),
    h(
      "fieldset",
      { class: "pair" },
      h("legend", {}, "Ceilings of costs, in dollars"),
      field("A run may cost", h("input", { inputmode: "decimal", value: form.mine.per_run, placeholder: dollarsText(limits.ceilings.run_micros), oninput: set("per_run") }), { error: perRun === undefined ? "Write an amount, such as 0.50, or nothing." : null, hint: `Leave it empty for ${money(limits.ceilings.run_micros)}.` }),
      field("A month may cost", h("input", { inputmode: "decimal", value: form.mine.per_month, placeholder: "no ceiling", oninput: set("per_month") }), { error: perMonth === undefined ? "Write an amount, such as 20, or nothing." : null, hint: "Months are counted in UTC. At the ceiling, a run waits and asks you." }),
    ),
    toolChoice(ctx, form),
    field("Time zone of its schedules", zoneSelect(form.mine.timezone, set("timezone"), `As the account: ${shownZone()}`), { hint: "For new schedules. A schedule that exists keeps its zone." }),
    field("Living documents that it knows", projectSelect("docs_project_id"), { hint: "It reads the documents of this project, says how far they are behind, and may bring them up to date." }),
    field("Theme that it works on", projectSelect("theme_project_id"), { hint: "It reads the theme of this project. Its edits are change sets: nothing changes until one is applied." }),
    withdraws.length > 0 &&
      h(
        "div",
        { class: "drift-note", key: "withdraws", role: "status" },
        h("p", {}, h("b", {}, `Saving withdraws ${counted(withdraws.length, "approval")}${orMore}: `), listed(withdraws.slice(0, 5).map((action) => action.title)), withdraws.length > 5 && ` and ${withdraws.length - 5} more`, "."),
        h("p", { class: "muted" }, "Their due times are held until you have approved them again. What you have changed is part of what you approved."),
      ),
    failureOf(ctx, key),
    ctx.state.saved && changed.length === 0 && h("p", { class: "ok", role: "status", key: "saved" }, ctx.state.saved),
    h(
      "div",
      { class: "acts save-bar" },
      changed.length > 0 && press("Give up the changes", () => { endEdit(form); ctx.redraw(); }, { kind: "quiet" }),
      h("div", { class: "end" }, button(ctx, withdraws.length > 0 ? `Save, and withdraw ${counted(withdraws.length, "approval")}${orMore}` : "Save", { key, kind: "primary", disabled: changed.length === 0 || isWrong || hasClash(form), act: save })),
    ),
  );
}

function budgetOf(perRun, perMonth) {
  const budget = {};
  if (perRun) budget.per_run_micros = perRun;
  if (perMonth) budget.per_month_micros = perMonth;
  return budget;
}

/** Browsers list some zones by names that are no longer in use. */
const RENAMED_ZONES = {
  "Africa/Asmera": "Africa/Asmara",
  "America/Buenos_Aires": "America/Argentina/Buenos_Aires",
  "America/Godthab": "America/Nuuk",
  "Asia/Calcutta": "Asia/Kolkata",
  "Asia/Katmandu": "Asia/Kathmandu",
  "Asia/Rangoon": "Asia/Yangon",
  "Asia/Saigon": "Asia/Ho_Chi_Minh",
  "Atlantic/Faeroe": "Atlantic/Faroe",
  "Europe/Kiev": "Europe/Kyiv",
  "Pacific/Enderbury": "Pacific/Kanton",
  "Pacific/Ponape": "Pacific/Pohnpei",
  "Pacific/Truk": "Pacific/Chuuk",
};

const allZones = [...new Set([...Intl.supportedValuesOf("timeZone").map((zone) => RENAMED_ZONES[zone] ?? zone), "UTC"])].sort();

/** A list of all time zones. `none` is the name of no zone, if that can be chosen. */
export function zoneSelect(value, onchange, none) {
  // The platform may know zones that this browser does not.
  const zones = value && !allZones.includes(value) ? [...allZones, value] : allZones;
  return h("select", { value, onchange }, none && h("option", { value: "" }, none), zones.map((zone) => h("option", { value: zone, key: zone }, zone.replaceAll("_", " "))));
}

const AGENT_TIERS = [
  ["fast", "Fast", "Short answers and simple work."],
  ["standard", "Standard", "Most work."],
  ["deep", "Deep", "Work that needs long thought."],
];

/** What a model costs, in words. Prices are for a million tokens. */
export function priceText(price) {
  if (!price) return "its price is not listed";
  if (price.input === 0 && price.output === 0) return "costs nothing";
  return `${money(price.input)} for a million tokens that it reads, ${money(price.output)} for a million that it writes`;
}

function tierChoice(ctx, form, models) {
  return h(
    "fieldset",
    { class: "choices tiers" },
    h("legend", {}, "Model"),
    AGENT_TIERS.map(([tier, name, says]) => {
      const chosen = models.choices.find((choice) => choice.tier === tier && !choice.task && !choice.work);
      const model = chosen?.models[0]?.model;
      const known = models.models.find((one) => one.model === model);
      return h(
        "label",
        { key: tier },
        h("input", { type: "radio", name: "tier", value: tier, checked: form.mine.model_tier === tier, onchange: () => { setIn(form, "model_tier", tier); ctx.redraw(); } }),
        h("span", {}, h("b", {}, name), " ", h("span", { class: "muted" }, says), h("small", {}, model ? [h("span", { class: "mono" }, model), `: ${priceText(known?.price)}`] : "No model of this kind can be called now.")),
      );
    }),
  );
}

function toolChoice(ctx, form) {
  const priced = ctx.data.models.models.filter((one) => one.usable && one.price);
  const range = (name) => {
    const amounts = priced.map((one) => one.price[name]).filter((amount) => amount > 0);
    if (amounts.length === 0) return "No model that can be called now has this tool: without it, the agent answers as before.";
    const [least, most] = [Math.min(...amounts), Math.max(...amounts)];
    return least === most ? `Each use costs ${money(least)}.` : `Each use costs ${money(least)} to ${money(most)}, by model.`;
  };
  const tool = (value, name, says, price) =>
    h(
      "label",
      { key: value },
      h("input", {
        type: "checkbox",
        checked: form.mine.provider_tools.includes(value),
        onchange: (event) => {
          const others = form.mine.provider_tools.filter((one) => one !== value);
          setIn(form, "provider_tools", event.target.checked ? [...others, value].sort() : others);
          ctx.redraw();
        },
      }),
      h("span", {}, h("b", {}, name), h("small", {}, `${says} ${range(price)}`)),
    );
  return h(
    "fieldset",
    { class: "choices" },
    h("legend", {}, "Tools of the model’s provider, in chats"),
    tool("web_search", "Search the web", "What is searched for leaves the platform, and what is found may be false.", "web_search_micros"),
    tool("code_execution", "Run code", "The provider runs code that the model writes, in a container of its own.", "code_execution_micros"),
    h("small", { class: "muted" }, "Runs of actions have such a tool only if you allow it in the action."),
  );
}

// ---- Approvals that were withdrawn ----

function withdrawnSection(ctx) {
  const { withdrawn } = ctx.data;
  if (withdrawn.data.length === 0) return null;
  const count = withdrawn.data.length;
  const key = "approve again";
  return h(
    "section",
    { class: "drift-note withdrawn", key: "withdrawn", "aria-label": "Approvals that were withdrawn" },
    h("h2", {}, `${counted(count, "approval")} ${count === 1 ? "was" : "were"} withdrawn`),
    h("p", {}, "The actions below were approved with other texts of the agent or other tools. Nothing runs under these approvals, and due times are held."),
    withdrawn.data.map((one) =>
      h(
        "details",
        { key: one.action_id },
        h("summary", {}, h("b", {}, one.title), " ", h("span", { class: "muted" }, listed(one.changes.map((change) => fieldName(change.field))))),
        one.changes.map((change) => h("div", { class: "change", key: change.field }, h("h3", {}, fieldName(change.field)), changeView(ctx, change.field, change.approved, change.current))),
        h("p", {}, link("Look at it and approve it", `#/actions/${one.action_id}`)),
      ),
    ),
    withdrawn.has_more && h("p", { class: "muted" }, "There are more than these."),
    failureOf(ctx, key),
    h(
      "div",
      { class: "acts" },
      h(
        "div",
        { class: "end" },
        press(`Approve ${count === 1 ? "it" : `all ${count}`} again…`, () =>
          confirmation(ctx, {
            title: `Approve ${counted(count, "action")} again?`,
            key,
            kind: "primary",
            label: "Approve with these changes",
            text: `${listed(withdrawn.data.map((one) => one.title))}: they run again at their next due times, with the changes that are shown. What was held is not caught up.`,
            act: () => approveAgain(ctx, withdrawn.data),
          }),
        ),
      ),
    ),
  );
}

async function approveAgain(ctx, approvals) {
  const answer = await post(`${agentPath(ctx)}/approvals`, { approvals: approvals.slice(0, 100).map(({ action_id, approval_hash }) => ({ action_id, approval_hash })) });
  const refused = answer.data.filter((one) => !one.approved);
  ctx.state.saved = null;
  if (refused.length > 0) throw new Error(`${counted(refused.length, "action was", "actions were")} not approved: ${refused[0].detail ?? refused[0].code}`);
}

// ---- What it sees ----

const tokensText = (characters) => (characters === 0 ? "none" : `about ${figure(Math.max(1, Math.round(characters / 4)))}`);

function seenSection(ctx) {
  const { agent } = ctx.data;
  const parts = TEXTS.map((name) => [AGENT_FIELDS[name], (agent[name] ?? "").length]);
  const total = parts.reduce((sum, [, size]) => sum + size, 0);
  const { seen } = ctx.state;
  return section(
    "What it sees",
    { id: "sees" },
    h(
      "table",
      { class: "figures" },
      h("caption", {}, "In every call: the platform’s own rules, and these texts"),
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Text"), h("th", { scope: "col" }, "Characters"), h("th", { scope: "col" }, "Tokens"))),
      h("tbody", {}, parts.map(([name, size]) => h("tr", { key: name }, h("th", { scope: "row" }, name), h("td", {}, figure(size)), h("td", {}, tokensText(size))))),
      h("tfoot", {}, h("tr", {}, h("th", { scope: "row" }, "Together"), h("td", {}, figure(total)), h("td", {}, tokensText(total)))),
    ),
    h("p", { class: "muted pad" }, "A token is about four characters of English. In chats it also sees the newest messages, and it may look up its assets, actions and messages. It can propose, but it cannot save, schedule or approve anything itself."),
    h(
      "details",
      {
        class: "seen-runs",
        ontoggle: (event) => {
          if (event.target.open && !ctx.state.seen) readSeen(ctx);
        },
      },
      h("summary", {}, "What its runs see and may use"),
      !seen && h("p", { class: "muted" }, "Reading…"),
      seen?.error && h("p", { class: "bad", role: "alert" }, seen.error.message),
      seen?.actions &&
        (seen.actions.length === 0
          ? h("p", { class: "muted" }, "It has no action yet.")
          : h("ul", { class: "plain spaced" }, seen.actions.map(seenAction), seen.more > 0 && h("li", { class: "muted" }, `and ${counted(seen.more, "more action")}`))),
    ),
  );
}

async function readSeen(ctx) {
  const all = ctx.data.actions.data;
  const first = all.slice(0, MOST_ACTIONS_SEEN);
  try {
    const views = await Promise.all(first.map((action) => get(`/actions/${action.action_id}/approval`, ctx.signal)));
    ctx.state.seen = { actions: first.map((action, index) => ({ action, current: views[index].current })), more: all.length - first.length };
  } catch (error) {
    if (ctx.signal.aborted) return;
    ctx.state.seen = { error };
  }
  ctx.redraw();
}

function seenAction({ action, current }) {
  const instructions = current.task_config.instructions.length + (current.task_config.expected_output ?? "").length;
  const tools = [...new Set([...current.grants, ...current.tools.map((tool) => tool.name)])];
  const toolSize = current.tools.length > 0 ? JSON.stringify(current.tools).length : 0;
  return h(
    "li",
    { key: action.action_id },
    h("a", { href: `#/actions/${action.action_id}` }, action.title),
    h("small", {}, `Task: ${figure(instructions)} characters, ${tokensText(instructions)} tokens. `, tools.length > 0 ? `May use: ${tools.join(", ")}${toolSize > 0 ? ` (${figure(toolSize)} characters of descriptions)` : ""}.` : "May use nothing beside its own notes and outputs."),
  );
}

// ---- History ----

const AGENT_COMMANDS = { create: "Made", change: "Changed", import: "Imported", pause: "Paused", resume: "Started again" };

const EFFECT_TEXTS = { approvals_withdrawn: "approvals were withdrawn", paused: "it was paused", resumed: "it was started again", archived: "it was archived", queued_runs_cancelled: "queued runs were cancelled" };

/** Who made a change, in words. */
export function agentChangedBy(by) {
  if (by.kind === "person") return "you";
  if (by.kind === "api_key") return `the API key ${by.key_id.slice(0, 12)}…`;
  if (by.kind === "proposal") return "you, as the agent had proposed";
  return `the ${spaced(by.kind)}`;
}

function agentHistory(ctx) {
  const { history } = ctx.data;
  return section(
    "History",
    { id: "history", note: "kept for 400 days" },
    history.data.length === 0 && h("p", { class: "muted pad" }, "No change is recorded."),
    h("ol", { class: "history" }, history.data.map((change) => historyItem(ctx, change))),
    !history.complete && h("div", { class: "list-end" }, button(ctx, "More", { key: "more history", act: async () => { ctx.state.pages = (ctx.state.pages ?? 1) + 1; } })),
  );
}

function historyItem(ctx, change) {
  const { agent } = ctx.data;
  const changes = change.changes ?? [];
  const key = `revert ${change.version}`;
  const effects = (change.effects ?? []).map((effect) => EFFECT_TEXTS[effect] ?? spaced(effect));
  const title = `${AGENT_COMMANDS[change.command] ?? capital(spaced(change.command))}${changes.length > 0 && change.command !== "create" ? `: ${listed(changes.map((one) => (AGENT_FIELDS[one.field] ?? fieldName(one.field)).toLowerCase()))}` : ""}`;
  return h(
    "li",
    { key: change.version },
    h("p", {}, h("b", {}, title), h("span", { class: "muted" }, ` · version ${change.version} · by ${agentChangedBy(change.by)} · `), when(change.at)),
    effects.length > 0 && h("p", { class: "warn" }, `${capital(listed(effects))}.`),
    changes.length > 0 &&
      h(
        "details",
        {},
        h("summary", {}, "What changed"),
        changes.map((one) => h("div", { class: "change", key: one.field }, h("h3", {}, AGENT_FIELDS[one.field] ?? fieldName(one.field)), diffView(asText(one.before), asText(one.after)))),
        change.command !== "create" &&
          change.command !== "import" &&
          h(
            "div",
            { class: "acts" },
            button(ctx, "Set these fields back", {
              key,
              act: async () => {
                const reverted = await post(`${agentPath(ctx)}/history/${change.version}/revert`, undefined, { ifMatch: agent.version });
                ctx.state.saved = reverted.withdrawn_approvals.length > 0 ? `Set back. ${capital(counted(reverted.withdrawn_approvals.length, "approval"))} withdrawn: see above.` : "Set back.";
              },
            }),
          ),
      ),
    failureOf(ctx, key),
  );
}

// ---- Pause, archive, delete ----

function endSection(ctx) {
  const { agent, actions } = ctx.data;
  const key = "status";
  const to = (status) => () => edit(agentPath(ctx), { status }, { ifMatch: agent.version });
  const scheduled = actions.data.filter((action) => action.next_due).length;
  return section(
    "Pause, keep, end",
    { id: "end" },
    h("p", { class: "pad" }, agent.status === "active" ? "It is at work." : chip(agent.status), " ", agent.status === "active" && scheduled > 0 && `${capital(counted(scheduled, "action has", "actions have"))} a next due time.`),
    failureOf(ctx, key),
    h(
      "div",
      { class: "acts" },
      agent.status === "active"
        ? button(ctx, "Pause this agent", { key, act: to("paused"), title: "Nothing of it runs until you start it again." })
        : button(ctx, "Start this agent again", { key, kind: "primary", act: to("active") }),
      agent.status !== "archived" &&
        press("Archive…", () =>
          confirmation(ctx, { title: "Archive this agent?", key: "archive", kind: "primary", label: "Archive", text: "It takes no turns and runs nothing. Its chats, assets and actions stay, and you can start it again.", act: to("archived") }),
        ),
      press("Delete…", () => deleteAgent(ctx, agent, actions.data.length)),
    ),
    h("p", { class: "muted pad" }, "To take what it has with you, ", h("a", { href: "#/account/data" }, "export the account"), ": one archive with its chats, assets, actions and runs."),
  );
}

function deleteAgent(ctx, agent, count) {
  confirmation(ctx, {
    title: `Delete ${agent.name}?`,
    key: "delete agent",
    label: "Delete it and all that belongs to it",
    text: `This deletes its chats and proposals, ${counted(agent.metrics.assets ?? 0, "asset")} with all versions, and ${counted(count, "action")} with their runs and notebooks. It cannot be undone. What stays: the figures of your usage, the archives that you have exported, and your other agents.`,
    act: async () => {
      await del(`${agentPath(ctx)}`);
      ctx.go("#/agents");
    },
  });
}
