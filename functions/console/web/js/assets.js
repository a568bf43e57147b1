// What agents have written and what was saved: the lists, and the page of one asset.

import { del, edit, get, getAll, getText, saveBlob } from "./api.js";
import { agentHead } from "./agent-head.js";
import { reading } from "./app.js";
import { changedIn, clashView, editOf, endEdit, freshen, hasClash, hasEdit, sendEdit, setIn } from "./conflict-view.js";
import { diffView } from "./diff.js";
import { bytes, capital, counted, dayMonth, dayMonthYear, moment } from "./format.js";
import { readContent } from "./markdown.js";
import { button, confirmation, copyButton, empty, facts, failureOf, field, head, link, press, row, rows, tabs, when } from "./parts.js";
import { h } from "./view.js";

const ASSET_TYPES = { document: ["document", "Documents"], code: ["code", "Code"], prompt: ["prompt", "Prompts"], email: ["e-mail", "E-mails"] };
const ASSETS_A_PAGE = 50;

const assetTypeName = (type) => ASSET_TYPES[type]?.[0] ?? type;

// ---- Lists ----

/** The list is read under one name whatever the filters are, so that the old list stays until the new one is there. */
const assetsRead = (ctx) =>
  reading(`assets of ${ctx.params.agent_id ?? "all"}`, async (signal) => {
    const { type, agent } = assetFilters(ctx);
    const query = new URLSearchParams({ limit: ASSETS_A_PAGE });
    if (type) query.set("asset_type", type);
    if (agent) query.set("agent_id", agent);
    const path = ctx.params.agent_id ? `/agents/${encodeURIComponent(ctx.params.agent_id)}/assets` : "/assets";
    return { ...(await getAll(`${path}?${query}`, ctx.state.pages ?? 1, signal)), type, agent };
  });

function assetFilters(ctx) {
  const type = ctx.query.type in ASSET_TYPES ? ctx.query.type : "";
  const agent = !ctx.params.agent_id && /^agt_[0-9a-f]{32}$/.test(ctx.query.agent ?? "") ? ctx.query.agent : "";
  return { type, agent };
}

function assetsAddress(base, { type, agent }) {
  const query = new URLSearchParams();
  if (type) query.set("type", type);
  if (agent) query.set("agent", agent);
  return query.size > 0 ? `${base}?${query}` : base;
}

export const assetsPage = {
  nav: "assets",
  title: () => "Assets",
  reads: (ctx) => ({ list: assetsRead(ctx), agents: "/agents?limit=200" }),
  view: (ctx) => h("div", { key: "assets" }, head("Assets", "what your agents have written"), assetList(ctx, "#/assets", ctx.data.agents.data)),
};

export const agentAssetsPage = {
  nav: "agents",
  of: "agent",
  title: (ctx) => `Assets of ${ctx.data.agent.name}`,
  reads: (ctx) => ({ agent: `/agents/${encodeURIComponent(ctx.params.agent_id)}`, list: assetsRead(ctx) }),
  view: (ctx) => h("div", { key: "assets" }, agentHead(ctx.data.agent, "assets"), assetList(ctx, `#/agents/${encodeURIComponent(ctx.params.agent_id)}/assets`, null)),
};

function assetList(ctx, base, agents) {
  const { list } = ctx.data;
  const filters = assetFilters(ctx);
  const text = (ctx.state.text ?? "").trim().toLowerCase();
  const isOld = list.type !== filters.type || list.agent !== filters.agent;
  const fitting = list.data.filter((asset) => (!filters.type || asset.asset_type === filters.type) && (!filters.agent || asset.agent_id === filters.agent));
  const shown = fitting.filter((asset) => !text || `${asset.title}\n${asset.description}`.toLowerCase().includes(text));
  const isFirst = list.data.length === 0 && !filters.type && !filters.agent && !isOld;
  if (isFirst) return empty("No asset yet. What an agent writes and you save is kept here, and so is what its runs make.", link(agents ? "Go to the agents" : "Write with this agent", agents ? "#/agents" : base.replace(/\/assets$/, ""), { kind: "primary" }));
  const names = new Map((agents ?? []).map((agent) => [agent.agent_id, agent.name]));
  const all = (name) => h("option", { value: "" }, name);
  return [
    tabs("Types of assets", [["All", assetsAddress(base, { ...filters, type: "" }), !filters.type], ...Object.entries(ASSET_TYPES).map(([type, [, name]]) => [name, assetsAddress(base, { ...filters, type }), filters.type === type])]),
    h(
      "div",
      { class: "filters", role: "search", "aria-label": "Filter the assets" },
      h("input", {
        type: "search",
        "data-filter": true,
        "aria-label": "Filter by title or description",
        placeholder: "Filter by title…",
        value: ctx.state.text ?? "",
        oninput: (event) => {
          ctx.state.text = event.target.value;
          ctx.redraw();
        },
      }),
      agents &&
        agents.length > 1 &&
        h(
          "select",
          // The address may have changed since the last drawing, so it is read again.
          { "aria-label": "Agent", value: filters.agent, onchange: (event) => ctx.go(assetsAddress(base, { ...assetFilters(ctx), agent: event.target.value })) },
          all("All agents"),
          agents.map((agent) => h("option", { value: agent.agent_id, key: agent.agent_id }, agent.name)),
        ),
    ),
    isOld && h("p", { class: "muted pad", role: "status" }, "Reading…"),
    rows(shown.map((asset) => assetRow(asset, agents && (names.get(asset.agent_id) ?? (ctx.data.agents.has_more ? "Another agent" : "A deleted agent"))))),
    !isOld &&
      shown.length === 0 &&
      h(
        "div",
        { class: "empty" },
        h("p", {}, text ? `No ${fitting.length === 0 ? "asset" : "title or description"} here has “${ctx.state.text.trim()}”.` : "No asset is of this kind."),
        h("div", { class: "acts" }, text ? press("Clear the filter", () => { ctx.state.text = ""; ctx.redraw(); }) : link("Show all assets", base, { kind: "" })),
      ),
    h(
      "div",
      { class: "list-end" },
      h("p", { class: "muted" }, `${counted(shown.length, "asset")}${list.complete ? "" : text ? `. The newest ${list.data.length} were looked through; there are older ones` : ", and there are older ones"}.`),
      !list.complete && button(ctx, "More", { key: "more", act: async () => { ctx.state.pages = (ctx.state.pages ?? 1) + 1; } }),
    ),
  ];
}

function assetRow(asset, agent) {
  return row({
    key: asset.asset_id,
    time: h("time", { datetime: asset.updated_at, title: moment(asset.updated_at) }, dayMonth(asset.updated_at)),
    title: asset.title,
    href: `#/assets/${asset.asset_id}`,
    note: [agent, asset.description].filter(Boolean).join(" · "),
    end: h("span", { class: "muted" }, [assetTypeName(asset.asset_type), asset.content_version > 1 && `version ${asset.content_version}`, bytes(asset.bytes)].filter(Boolean).join(" · ")),
  });
}

// ---- One asset ----

/** Texts longer than this are shown in part at first. */
const FIRST_CHARACTERS = 100_000;

/** The subject and the text of an e-mail. A subject may stand in its first lines; otherwise its title is the subject. */
export function emailParts(title, content) {
  const found = /^(?:(?:to|from|cc|bcc|date):[^\n]*\n)*subject:[ \t]*([^\n]*)\n(?:(?:to|from|cc|bcc|date):[^\n]*\n)*\n*/i.exec(content);
  return found ? { subject: found[1].trim() || title, text: content.slice(found[0].length) } : { subject: title, text: content };
}

const FILE_ENDINGS = { document: "md", code: "txt", prompt: "txt", email: "txt" };

/** A name of a file that every system accepts. */
export function assetFileName(asset) {
  const name = asset.title
    .normalize("NFC")
    .replace(/[^\p{L}\p{M}\p{N}._ -]+/gu, "-")
    .replace(/\s+/g, " ")
    .slice(0, 80)
    .replace(/^[-. ]+|[-. ]+$/g, "");
  const isReserved = /^(con|prn|aux|nul|com\d|lpt\d)(\.|$)/i.test(name);
  return `${isReserved || !name ? `asset-${name || asset.asset_id.slice(4, 12)}` : name}.${FILE_ENDINGS[asset.asset_type] ?? "txt"}`;
}

const contentPath = (id, version) => `/assets/${id}/content?version=${version}`;

/** An asset with its versions and the texts that are shown. A version never changes, so it is read once. */
const assetRead = (ctx) =>
  reading(`asset ${ctx.params.asset_id}`, async (signal) => {
    const id = encodeURIComponent(ctx.params.asset_id);
    const asset = await get(`/assets/${id}`, signal);
    const texts = (ctx.state.texts ??= new Map());
    const textOf = async (version) => {
      if (!texts.has(version)) texts.set(version, await getText(contentPath(id, version), signal));
      return texts.get(version);
    };
    const known = ctx.state.versions;
    const versions = known?.newest === asset.content_version && known.title === asset.title ? known : { ...(await getAll(`/assets/${id}/versions?limit=200`, 5, signal)), newest: asset.content_version, title: asset.title };
    ctx.state.versions = versions;
    const isVersion = (number) => Number.isInteger(number) && versions.data.some((one) => one.content_version === number);
    const asked = Number(ctx.query.version);
    const shown = isVersion(asked) ? asked : asset.content_version;
    const against = isVersion(Number(ctx.query.against)) && Number(ctx.query.against) !== shown ? Number(ctx.query.against) : null;
    const [newest, text, before] = await Promise.all([textOf(asset.content_version), textOf(shown), against && textOf(against)]);
    return { asset, versions: versions.data, shown, against, newest, text, before };
  });

const assetFields = ({ asset, newest }) => ({ title: asset.title, description: asset.description, asset_type: asset.asset_type, content: newest });
const ASSET_FIELDS = { title: "Title", description: "Description", asset_type: "Type", content: "Text" };

export const assetPage = {
  nav: "assets",
  of: "asset",
  title: (ctx) => ctx.data.whole.asset.title,
  reads: (ctx) => ({
    whole: assetRead(ctx),
    agents: "/agents?limit=200",
  }),
  view(ctx) {
    const { whole, agents } = ctx.data;
    const { asset } = whole;
    const key = `asset ${asset.asset_id}`;
    if (ctx.state.editing === undefined) ctx.state.editing = hasEdit(key);
    const agent = agents.data.find((one) => one.agent_id === asset.agent_id);
    if (ctx.state.editing) {
      ctx.state.form ??= editOf(key, assetFields(whole), asset.version);
      freshen(ctx.state.form, assetFields(whole), asset.version);
    }
    return h(
      "article",
      { key: asset.asset_id },
      h("p", { class: "crumb" }, h("a", { href: "#/assets" }, "Assets"), agent && [" / ", h("a", { href: `#/agents/${agent.agent_id}/assets` }, agent.name)]),
      head(asset.title, assetTypeName(asset.asset_type), !ctx.state.editing && press("Edit", () => beginAssetEdit(ctx), { key: "edit" }), !ctx.state.editing && press("Download", () => saveBlob(new Blob([whole.text], { type: "text/plain;charset=utf-8" }), assetFileName(asset)), { key: "download" }), !ctx.state.editing && copyPress(ctx, "Copy", asset.asset_type === "email" ? emailParts(asset.title, whole.text).text : whole.text)),
      ctx.state.editing ? assetForm(ctx, whole) : assetReader(ctx, whole, agent),
    );
  },
};

function beginAssetEdit(ctx) {
  ctx.state.editing = true;
  ctx.redraw();
}

/** The main way on of an asset: its text goes to the clipboard. */
function copyPress(ctx, label, text) {
  const state = ctx.state.copied;
  return press(
    state ?? label,
    async () => {
      try {
        await navigator.clipboard.writeText(text);
        ctx.state.copied = "Copied";
        ctx.say("Copied");
      } catch {
        ctx.state.copied = "Cannot copy here";
      }
      setTimeout(() => {
        ctx.state.copied = null;
        ctx.redraw();
      }, 2000);
      ctx.redraw();
    },
    { kind: "primary", key: "copy" },
  );
}

/** Reads once whether a run had read what strangers wrote. A run that is no longer kept says nothing. */
async function readAssetRun(ctx, runId) {
  ctx.state.run = { run_id: runId };
  const run = await get(`/runs/${runId}`, ctx.signal).catch(() => null);
  if (!run?.tainted) return;
  ctx.state.run = run;
  ctx.redraw();
}

function assetReader(ctx, whole, agent) {
  const { asset, versions, shown, against, text } = whole;
  if (asset.run_id && ctx.state.run?.run_id !== asset.run_id) readAssetRun(ctx, asset.run_id);
  const shownVersion = versions.find((one) => one.content_version === shown);
  const email = asset.asset_type === "email" && against === null ? emailParts(asset.title, text) : null;
  const body = email ? email.text : text;
  const isLong = body.length > FIRST_CHARACTERS && !ctx.state.whole;
  return [
    asset.description && h("p", { class: "asset-says long" }, asset.description),
    ctx.state.run?.tainted && h("p", { class: "warnings", key: "tainted" }, "The run that wrote this had read texts of strangers, for example from the web. Look at what it says before you use it."),
    facts([
      ["By", agent ? h("a", { href: `#/agents/${agent.agent_id}` }, agent.name) : ctx.data.agents.has_more ? h("a", { href: `#/agents/${asset.agent_id}` }, "its agent") : "an agent that no longer exists"],
      ["Made by", asset.run_id ? h("a", { href: `#/runs/${asset.run_id}` }, "the run that wrote it") : "you, or a program of yours"],
      ["Saved", when(asset.created_at)],
      ["Changed", asset.updated_at !== asset.created_at && when(asset.updated_at)],
      ["Size", bytes(shownVersion?.bytes ?? asset.bytes)],
    ]),
    versions.length > 1 && versionChoice(ctx, whole),
    shown !== asset.content_version && against === null && h("p", { class: "aside-note", key: "old" }, `This is version ${shown} of ${moment(shownVersion.created_at)}. `, h("a", { href: `#/assets/${asset.asset_id}` }, `Show the newest, ${asset.content_version}`), "."),
    email &&
      h(
        "div",
        { class: "email-head", key: "email" },
        facts([["Subject", h("span", {}, h("b", {}, email.subject), " ", copyButton(email.subject, "Copy the subject"))]]),
        h("p", {}, h("a", { href: mailto(email), rel: "noreferrer" }, "Open in your mail program")),
      ),
    against === null
      ? h("div", { class: "asset-body", key: "body" }, h("div", { role: "region", "aria-label": `Text of the ${assetTypeName(asset.asset_type)}` }, readContent(isLong ? body.slice(0, FIRST_CHARACTERS) : body, asset.asset_type)), isLong && press(`Show all ${bytes(asset.bytes)}`, () => { ctx.state.whole = true; ctx.redraw(); }))
      : h("div", { class: "asset-body", key: "diff" }, h("h2", { class: "diff-title" }, `From version ${against} to version ${shown}`), whole.before === text ? h("p", { class: "muted pad" }, "The texts are equal.") : diffView(whole.before, text)),
    h("div", { class: "acts asset-end" }, press("Delete…", () => deleteAsset(ctx, asset))),
  ];
}

/** Mail programs and systems refuse long addresses. What does not fit is copied by hand. */
function mailto({ subject, text }) {
  const address = `mailto:?subject=${encodeURIComponent(subject.slice(0, 200).toWellFormed())}`;
  const body = `&body=${encodeURIComponent(text.replaceAll("\n", "\r\n").toWellFormed())}`;
  return address.length + body.length <= 1900 ? address + body : address;
}

function versionChoice(ctx, { asset, versions, shown, against }) {
  const at = `#/assets/${asset.asset_id}`;
  const toVersion = (version, other) => {
    const query = new URLSearchParams();
    if (version !== asset.content_version) query.set("version", version);
    if (other && other !== version) query.set("against", other);
    ctx.go(query.size > 0 ? `${at}?${query}` : at);
  };
  const named = (one) => h("option", { value: String(one.content_version), key: one.content_version }, `${one.content_version} · ${dayMonthYear(one.created_at)}`);
  return h(
    "div",
    { class: "filters", key: "versions", role: "group", "aria-label": "Versions" },
    h("label", { class: "inline" }, h("span", {}, "Version"), h("select", { value: String(shown), onchange: (event) => toVersion(Number(event.target.value), against) }, versions.map(named))),
    h(
      "label",
      { class: "inline" },
      h("span", {}, "Compare with"),
      h("select", { value: String(against ?? ""), onchange: (event) => toVersion(shown, Number(event.target.value)) }, h("option", { value: "" }, "nothing"), versions.filter((one) => one.content_version !== shown).map(named)),
    ),
  );
}

/** A form that was opened by a key or a click is filled in from its first field. */
function focusFirst(node) {
  queueMicrotask(() => node.focus({ preventScroll: true }));
}

function assetForm(ctx, whole) {
  const { asset } = whole;
  const { form } = ctx.state;
  const key = `save ${asset.asset_id}`;
  const changed = changedIn(form);
  const set = (name) => (event) => {
    setIn(form, name, event.target.value);
    ctx.redraw();
  };
  const done = () => {
    ctx.state.editing = false;
    ctx.state.form = null;
    // The control that had the focus is gone.
    document.querySelector("#main")?.focus({ preventScroll: true });
    ctx.redraw();
  };
  const save = async () => {
    const fields = Object.fromEntries(changed.map((name) => [name, form.mine[name]]));
    const saved = await sendEdit(form, (version) => edit(`/assets/${asset.asset_id}`, fields, { ifMatch: version }));
    if (!saved) return;
    endEdit(form);
    ctx.go(`#/assets/${asset.asset_id}`);
    done();
  };
  return h(
    "form",
    { class: "form wide-form", key: "form", onsubmit: (event) => event.preventDefault() },
    clashView(ctx, form, ASSET_FIELDS),
    field("Title", h("input", { value: form.mine.title, maxlength: "200", required: true, oninput: set("title"), use: focusFirst })),
    field("Description", h("textarea", { rows: "2", value: form.mine.description, maxlength: "2000", oninput: set("description") })),
    field("Type", h("select", { value: form.mine.asset_type, onchange: set("asset_type") }, Object.entries(ASSET_TYPES).map(([type, [name]]) => h("option", { value: type, key: type }, capital(name))))),
    field("Text", h("textarea", { class: "text-edit", rows: "16", value: form.mine.content, spellcheck: form.mine.asset_type === "code" ? "false" : null, oninput: set("content") }), { hint: changed.includes("content") ? `Saving makes version ${asset.content_version + 1}. Older versions stay readable.` : null }),
    failureOf(ctx, key),
    h(
      "div",
      { class: "acts" },
      press(changed.length > 0 ? "Give up the changes" : "Close", () => { endEdit(form); done(); }, { kind: "quiet" }),
      h("div", { class: "end" }, button(ctx, "Save", { key, kind: "primary", disabled: changed.length === 0 || hasClash(form) || form.mine.title.trim() === "", act: save })),
    ),
  );
}

function deleteAsset(ctx, asset) {
  confirmation(ctx, {
    title: "Delete this asset?",
    key: `delete ${asset.asset_id}`,
    label: "Delete",
    text: `“${asset.title}” is deleted with ${counted(asset.content_version, "version")}. This cannot be undone. Schedules that watch it fail from then on.`,
    act: async () => {
      await del(`/assets/${asset.asset_id}`);
      ctx.go("#/assets");
    },
  });
}
