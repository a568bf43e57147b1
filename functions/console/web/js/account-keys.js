// Keys of the API, keys of model providers, model servers, secrets of calls, and which models are called.

import { del, post, put } from "./api.js";
import { capital, dayMonthYear, money, spaced } from "./format.js";
import { button, confirmation, copyButton, failureOf, field, press, row, rows, section, when } from "./parts.js";
import { microsTyped, priceText } from "./settings.js";
import { h } from "./view.js";

export const keysReads = () => ({ keys: "/account/api-keys?limit=200", own: "/account/provider-keys", servers: "/account/servers", secrets: "/account/secrets", models: "/models" });

export function keysView(ctx) {
  return [modelsSection(ctx), apiKeysSection(ctx), providerKeysSection(ctx), serversSection(ctx), secretsSection(ctx)];
}

// ---- Models ----

const KIND_NAMES = { fast: "Fast work", standard: "Most work", deep: "Deep work", coder: "Code", explainer: "Explanations", documenter: "Documents" };

const LEVEL_TEXTS = {
  forced: "The operator has set one model for everything.",
  max_quality: "You ask for the highest quality.",
  canary: "The operator tries this model out with a part of the runs.",
  preference: "You prefer this model.",
  locked: "The model of this step is fixed.",
  tier: "The tier of the agent decides.",
  default: "It is the standard model.",
};

function modelsSection(ctx) {
  const { models } = ctx.data;
  const usable = models.models.filter((one) => one.usable);
  const choose = async (change, undo) => {
    const chosen = await ctx.act("models", () => put("/models/settings", settingsToSend({ ...models.settings, ...change })));
    // The control shows again what is stored.
    if (!chosen) undo();
  };
  const restored = (control, value) => () => {
    control.value = value ?? "";
  };
  const option = (one) => h("option", { value: one.model, key: one.model }, one.model);
  const kinds = { ...(models.settings.models ?? {}) };
  return section(
    "Models in use",
    { id: "models", note: `prices of ${dayMonthYear(`${models.as_of}T12:00:00Z`)}` },
    h(
      "table",
      { class: "figures words" },
      h("caption", { class: "vh" }, "The model of each tier, and why"),
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Tier"), h("th", { scope: "col" }, "Model"), h("th", { scope: "col" }, "Why"))),
      h(
        "tbody",
        {},
        models.choices.map((choice) => {
          const first = choice.models[0];
          const price = models.models.find((one) => one.model === first?.model)?.price ?? priceOfServer(ctx.data.servers.data, first?.model ?? "");
          return h(
            "tr",
            { key: `${choice.role} ${choice.tier ?? ""}` },
            h("th", { scope: "row" }, capital(choice.tier ?? spaced(choice.role))),
            h("td", {}, first ? [h("span", { class: "mono" }, first.model), h("small", {}, priceText(price)), choice.models.length > 1 && h("small", {}, `If it fails: ${choice.models.slice(1, 4).map((one) => one.model).join(", ")}${choice.models.length > 4 ? "…" : ""}`)] : "No model can be called.", first?.paused_until && h("small", { class: "warn" }, "It has failed, and waits. ", when(first.paused_until))),
            h("td", {}, LEVEL_TEXTS[choice.level] ?? capital(choice.why)),
          );
        }),
      ),
    ),
    h(
      "div",
      { class: "form pad" },
      field(
        "Model of all agents",
        h("select", { value: models.settings.preferred ?? "", disabled: ctx.busy("models"), onchange: (event) => choose({ preferred: event.target.value || null }, restored(event.target, models.settings.preferred)) }, h("option", { value: "" }, "As the tier of each agent says"), usable.map(option)),
        { hint: "Only models that can be called now are listed." },
      ),
      h(
        "label",
        { class: "check" },
        h("input", { type: "checkbox", checked: models.settings.max_quality ?? false, disabled: ctx.busy("models"), onchange: (event) => { const control = event.target; choose({ max_quality: control.checked }, () => { control.checked = models.settings.max_quality ?? false; }); } }),
        h("span", {}, "Use the most capable models for everything. This costs more."),
      ),
      h(
        "details",
        {},
        h("summary", {}, "A model for each kind of work"),
        h(
          "div",
          { class: "form" },
          Object.entries(KIND_NAMES).map(([kind, name]) =>
            field(
              name,
              h(
                "select",
                {
                  value: kinds[kind] ?? "",
                  disabled: ctx.busy("models"),
                  onchange: (event) => {
                    const chosen = { ...kinds };
                    if (event.target.value) chosen[kind] = event.target.value;
                    else delete chosen[kind];
                    choose({ models: chosen }, restored(event.target, kinds[kind]));
                  },
                },
                h("option", { value: "" }, "The platform chooses"),
                usable.filter((one) => one.kinds.includes(kind)).map(option),
              ),
            ),
          ),
        ),
      ),
      failureOf(ctx, "models"),
    ),
  );
}

/** The price of a model of an own server, which its owner has set. */
function priceOfServer(servers, model) {
  const server = servers.find((one) => model.startsWith(`${one.name}/`));
  const price = server?.prices?.[model.slice(server.name.length + 1)] ?? server?.prices?.["*"];
  return price === "free" ? { input: 0, output: 0 } : price;
}

const settingsToSend = (settings) => Object.fromEntries(Object.entries(settings).filter(([, value]) => value !== null && value !== undefined && value !== false));

// ---- Keys of the API ----

const KEY_SCOPES = [
  ["read", "Read", "Sees everything, changes nothing.", ["read"]],
  ["write", "Read and write", "Also begins turns and runs, and changes agents, actions and assets.", ["read", "write"]],
  ["admin", "All", "Also makes keys, changes the account and deletes it.", ["read", "write", "admin"]],
];

function apiKeysSection(ctx) {
  const { keys } = ctx.data;
  const state = (ctx.state.newKey ??= { name: "", scope: "write", days: "90" });
  const set = (name) => (event) => {
    state[name] = event.target.value;
    ctx.redraw();
  };
  const days = state.days.trim() === "" ? null : Number(state.days);
  const isWrong = days !== null && !(Number.isInteger(days) && days >= 1 && days <= 365);
  const create = async () => {
    const made = await post("/account/api-keys", { name: state.name.trim(), scopes: KEY_SCOPES.find(([scope]) => scope === state.scope)[3], ...(days ? { expires_in_days: days } : {}) });
    ctx.state.made = made;
    ctx.state.newKey = null;
  };
  return section(
    "API keys",
    { id: "api-keys", note: "for programs that call the platform for you" },
    ctx.state.made && secretOnce(ctx, ctx.state.made),
    keys.data.length === 0 && h("p", { class: "muted pad" }, "No key yet."),
    rows(
      keys.data.map((one) =>
        row({
          key: one.key_id,
          time: h("span", { class: "muted mono" }, one.key_id.slice(-6)),
          title: one.name,
          note: [`May ${one.scopes.includes("admin") ? "do all" : one.scopes.includes("write") ? "read and write" : "read"} · made ${dayMonthYear(one.created_at)} · ${one.last_used ? `last used ${dayMonthYear(one.last_used)}` : "not used yet"} · ${one.expires_at ? `ends ${dayMonthYear(one.expires_at)}` : "without an end"}`],
          end: press("Revoke…", () => revoke(ctx, one), { kind: "quiet" }),
        }),
      ),
    ),
    keys.has_more && h("p", { class: "muted" }, "There are more keys than these."),
    h(
      "form",
      { class: "form pad", "aria-label": "New API key", onsubmit: (event) => event.preventDefault() },
      h("h3", { class: "small-title" }, "New key"),
      field("Name", h("input", { value: state.name, maxlength: "100", autocomplete: "off", oninput: set("name") }), { hint: "What it is for, such as “website”." }),
      h(
        "fieldset",
        { class: "choices" },
        h("legend", {}, "It may"),
        KEY_SCOPES.map(([scope, name, says]) => h("label", { key: scope }, h("input", { type: "radio", name: "scope", value: scope, checked: state.scope === scope, onchange: set("scope") }), h("span", {}, h("b", {}, name), h("small", {}, says)))),
      ),
      field("Days until it ends", h("input", { class: "short", inputmode: "numeric", value: state.days, oninput: set("days") }), { hint: "1 to 365, or nothing for a key without an end.", error: isWrong ? "Write a number from 1 to 365, or nothing." : null }),
      failureOf(ctx, "new key"),
      h("div", { class: "acts" }, button(ctx, "Make the key", { key: "new key", kind: "primary", disabled: state.name.trim() === "" || isWrong, act: create })),
    ),
  );
}

/** The secret of a new key. It stands in this page alone, and is gone with it. */
function secretOnce(ctx, made) {
  return h(
    "div",
    { class: "drift-note", key: "secret", role: "status" },
    h("h3", { class: "small-title" }, `The key “${made.name}”`),
    made.api_key
      ? [h("p", {}, "This is the only time that it is shown. Copy it now, and keep it where only you can read it."), h("p", {}, h("code", { class: "secret" }, made.api_key), " ", copyButton(made.api_key))]
      : h("p", {}, "The answer that had the key was lost. Revoke this key, and make another one."),
    h("div", { class: "acts" }, press("I have kept it", () => { ctx.state.made = null; ctx.redraw(); })),
  );
}

function revoke(ctx, one) {
  confirmation(ctx, {
    title: `Revoke the key “${one.name}”?`,
    key: `revoke ${one.key_id}`,
    label: "Revoke",
    text: "Programs that use it are refused, after a few seconds at the latest. This cannot be undone.",
    act: async () => {
      await del(`/account/api-keys/${one.key_id}`);
      if (ctx.state.made?.key_id === one.key_id) ctx.state.made = null;
    },
  });
}

// ---- Keys of providers ----

const PROVIDERS = { anthropic: "Anthropic", google: "Google", openai: "OpenAI", xai: "xAI" };

function providerKeysSection(ctx) {
  const { own } = ctx.data;
  const state = (ctx.state.ownKey ??= { provider: "anthropic", key: "" });
  const stored = own.data.find((one) => one.provider === state.provider);
  return section(
    "Your own keys of model providers",
    { id: "provider-keys" },
    h("p", { class: "muted pad" }, "Models are then called with your key, and the provider bills you. A key is stored encrypted and never shown again."),
    rows(
      own.data.map((one) =>
        row({
          key: one.provider,
          time: h("span", { class: "muted mono" }, `…${one.last_characters}`),
          title: PROVIDERS[one.provider] ?? one.provider,
          note: [`stored ${dayMonthYear(one.created_at)}`],
          end: press("Delete…", () =>
            confirmation(ctx, { title: `Delete your key of ${PROVIDERS[one.provider] ?? one.provider}?`, key: `own ${one.provider}`, label: "Delete", text: "Work that runs may use it for up to 60 seconds more. To end its use at once, revoke it at the provider.", act: () => del(`/account/provider-keys/${one.provider}`) }), { kind: "quiet" }),
        }),
      ),
    ),
    h(
      "form",
      { class: "form pad", "aria-label": "Your own key of a provider", onsubmit: (event) => event.preventDefault() },
      field("Provider", h("select", { value: state.provider, onchange: (event) => { state.provider = event.target.value; ctx.redraw(); } }, Object.entries(PROVIDERS).map(([id, name]) => h("option", { value: id, key: id }, name)))),
      field("Key", h("input", { type: "password", autocomplete: "off", spellcheck: "false", maxlength: "512", value: state.key, oninput: (event) => { state.key = event.target.value; ctx.redraw(); } })),
      failureOf(ctx, "own key"),
      h(
        "div",
        { class: "acts" },
        button(ctx, stored ? "Replace the key" : "Store the key", {
          key: "own key",
          disabled: state.key.trim().length < 16,
          act: async () => {
            await put(`/account/provider-keys/${state.provider}`, { key: state.key.trim() });
            ctx.state.ownKey = null;
          },
        }),
      ),
    ),
  );
}

// ---- Servers ----

const EMPTY_SERVER = { name: "", url: "", key: "", models: "", price: "free", input: "", output: "", tools: true };

function serversSection(ctx) {
  const { servers } = ctx.data;
  const state = (ctx.state.server ??= { ...EMPTY_SERVER });
  const set = (name) => (event) => {
    state[name] = event.target.value;
    ctx.redraw();
  };
  const isNamed = /^[a-z0-9-]{1,32}$/.test(state.name);
  const models = serverModels(state.models);
  const [input, output] = [microsTyped(state.input), microsTyped(state.output)];
  const isPriced = state.price === "free" || (input && output);
  const isComplete = isNamed && /^https?:\/\/\S+$/.test(state.url.trim()) && isPriced && !models.wrong;
  const save = async () => {
    await put(`/account/servers/${state.name}`, {
      url: state.url.trim(),
      tools: state.tools,
      ...(state.key.trim() ? { key: state.key.trim() } : {}),
      ...(Object.keys(models.byKind).length > 0 ? { models: models.byKind } : {}),
      prices: { "*": state.price === "free" ? "free" : { input, output } },
    });
    ctx.state.server = null;
  };
  return section(
    "Your own model servers",
    { id: "servers" },
    h("p", { class: "muted pad" }, "Anything with the Chat Completions format of OpenAI. Its models come before those of other providers, which replace them if they fail."),
    rows(
      servers.data.map((one) =>
        row({
          key: one.name,
          time: h("span", { class: "mono" }, one.name),
          title: one.url,
          note: [[Object.entries(one.models ?? {}).map(([kind, names]) => `${kind}: ${names.join(", ")}`).join(" · ") || "its first model for every kind of work", one.last_characters ? `key …${one.last_characters}` : "no key", serverPrice(one.prices)].join(" · ")],
          end: press("Delete…", () => confirmation(ctx, { title: `Delete the server ${one.name}?`, key: `server ${one.name}`, label: "Delete", text: "Other providers are called instead. Work that runs may use it for up to 60 seconds more.", act: () => del(`/account/servers/${one.name}`) }), { kind: "quiet" }),
        }),
      ),
    ),
    h(
      "details",
      { class: "pad" },
      h("summary", {}, "Add or replace a server"),
      h(
        "form",
        { class: "form", "aria-label": "A model server", onsubmit: (event) => event.preventDefault() },
        field("Name of the server", h("input", { value: state.name, maxlength: "32", autocomplete: "off", spellcheck: "false", oninput: set("name") }), { error: state.name && !isNamed ? "Use lower-case letters, digits and hyphens." : null, hint: "Models are then called name/model. A server of the same name is replaced." }),
        field("Base address", h("input", { value: state.url, inputmode: "url", maxlength: "8192", autocomplete: "off", spellcheck: "false", placeholder: "https://models.example.org/v1", oninput: set("url") })),
        field("Key of the server", h("input", { type: "password", value: state.key, maxlength: "512", autocomplete: "off", oninput: set("key") }), { hint: "Only if it needs one. 16 characters or more." }),
        field("Its models", h("textarea", { rows: "2", value: state.models, spellcheck: "false", oninput: set("models") }), { hint: "One a line, with its kind: deep z-ai/glm-5. Kinds: fast, standard, deep, coder, explainer, documenter. If it is empty, its first model does everything.", error: models.wrong }),
        h(
          "fieldset",
          { class: "choices" },
          h("legend", {}, "Price of its models"),
          h("label", {}, h("input", { type: "radio", name: "price", value: "free", checked: state.price === "free", onchange: set("price") }), h("span", {}, "They cost nothing")),
          h("label", {}, h("input", { type: "radio", name: "price", value: "rates", checked: state.price === "rates", onchange: set("price") }), h("span", {}, "Dollars for a million tokens")),
        ),
        state.price === "rates" && h("div", { class: "pair", key: "rates" }, field("Read", h("input", { inputmode: "decimal", value: state.input, oninput: set("input") }), { error: state.input && !input ? "Write an amount, such as 0.60." : null }), field("Written", h("input", { inputmode: "decimal", value: state.output, oninput: set("output") }), { error: state.output && !output ? "Write an amount, such as 2.20." : null })),
        h("label", { class: "check" }, h("input", { type: "checkbox", checked: state.tools, onchange: (event) => { state.tools = event.target.checked; ctx.redraw(); } }), h("span", {}, "Its models can call tools")),
        failureOf(ctx, "server"),
        h("div", { class: "acts" }, button(ctx, "Store the server", { key: "server", disabled: !isComplete, act: save })),
      ),
    ),
  );
}

function serverPrice(prices) {
  const all = Object.entries(prices ?? {});
  if (all.length === 0) return "no price, so it is not called";
  return all.map(([model, price]) => `${model === "*" ? "all others" : model}: ${price === "free" ? "free" : `${money(price.input)} read, ${money(price.output)} written`}`).join("; ");
}

function serverModels(text) {
  const byKind = {};
  for (const line of text.split("\n").map((one) => one.trim()).filter(Boolean)) {
    const [, kind, model] = /^(\w+)[\s:]+(\S+)$/.exec(line) ?? [];
    if (!Object.hasOwn(KIND_NAMES, kind ?? "")) return { byKind: {}, wrong: `“${line.slice(0, 60)}” is not a kind and a model.` };
    (byKind[kind] ??= []).push(model);
  }
  return { byKind, wrong: null };
}

// ---- Secrets ----

function secretsSection(ctx) {
  const { secrets } = ctx.data;
  const state = (ctx.state.secret ??= { name: "", value: "", hosts: "" });
  const set = (name) => (event) => {
    state[name] = event.target.value;
    ctx.redraw();
  };
  const isNamed = /^[a-z0-9_-]{1,64}$/.test(state.name);
  const hosts = state.hosts.split(/[\s,]+/).filter(Boolean);
  const isKnown = secrets.data.some((one) => one.name === state.name);
  return section(
    "Secrets of calls",
    { id: "secrets" },
    h("p", { class: "muted pad" }, "An action without a model names one to send it in a header, or to sign its request. It is sent only to its hosts. It is stored encrypted and never shown again."),
    rows(
      secrets.data.map((one) =>
        row({
          key: one.name,
          time: h("span", { class: "mono" }, one.name),
          title: `only to ${one.hosts.join(", ")}`,
          note: [`version ${one.version}, stored ${dayMonthYear(one.stored_at)}${one.signs ? ", can sign" : ""}`],
          end: press("Delete…", () => confirmation(ctx, { title: `Delete the secret ${one.name}?`, key: `secret ${one.name}`, label: "Delete", text: "Runs whose call uses it fail, and send nothing. To end its use at once everywhere, revoke it where it was made.", act: () => del(`/account/secrets/${one.name}`) }), { kind: "quiet" }),
        }),
      ),
    ),
    h(
      "form",
      { class: "form pad", "aria-label": "A secret of calls", onsubmit: (event) => event.preventDefault() },
      field("Name of the secret", h("input", { value: state.name, maxlength: "64", autocomplete: "off", spellcheck: "false", oninput: set("name") }), { error: state.name && !isNamed ? "Use lower-case letters, digits, hyphens and underscores." : null }),
      field("Value", h("input", { type: "password", value: state.value, maxlength: "4096", autocomplete: "off", spellcheck: "false", oninput: set("value") })),
      field("Hosts", h("input", { value: state.hosts, autocomplete: "off", spellcheck: "false", placeholder: "api.github.com", oninput: set("hosts") }), { hint: "The only hosts that get it, at most 10." }),
      failureOf(ctx, "secret"),
      h(
        "div",
        { class: "acts" },
        button(ctx, isKnown ? "Replace the secret" : "Store the secret", {
          key: "secret",
          disabled: !isNamed || !state.value || hosts.length === 0,
          act: async () => {
            await put(`/account/secrets/${state.name}`, { value: state.value, hosts });
            ctx.state.secret = null;
          },
        }),
      ),
    ),
  );
}
