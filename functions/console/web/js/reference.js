// The API reference, from the document that the platform itself publishes.

import { address, get, saveBlob } from "./api.js";
import { reading } from "./app.js";
import { access } from "./credentials.js";
import { capital, counted, figure, listed } from "./format.js";
import { empty, head, link, press, section } from "./parts.js";
import { codeSpans, copyBlock } from "./prose.js";
import { h } from "./view.js";

const API_METHODS = ["get", "post", "put", "patch", "delete"];
/** An example ends here, because schemas may contain themselves. */
const DEEPEST_EXAMPLE = 6;
const MOST_EXAMPLE_BYTES = 4_000;

let apiDocument = null;
let apiIndex = null;

/** The document does not change while the page is open, so it is read once. */
const readApi = reading("/openapi.json", async (signal) => {
  if (!apiDocument) {
    apiDocument = await get("/openapi.json", signal);
    apiIndex = apiIndexOf(apiDocument);
  }
  return apiIndex;
});

/** All operations, in the order of the tags. */
function apiIndexOf(api) {
  const operations = [];
  for (const [path, item] of Object.entries(api.paths ?? {})) {
    for (const method of API_METHODS) {
      const operation = item[method];
      if (!operation) continue;
      const tag = operation.tags?.[0] ?? "other";
      operations.push({
        id: operation.operationId ?? `${method} ${path}`,
        method: method.toUpperCase(),
        path,
        tag,
        operation,
        parameters: [...(item.parameters ?? []), ...(operation.parameters ?? [])].map((one) => resolvedRef(api, one)),
        title: `${method} ${path} ${operation.summary ?? ""} ${operation.operationId ?? ""} ${tag}`.toLowerCase(),
        words: (operation.description ?? "").toLowerCase(),
      });
    }
  }
  const named = new Map((api.tags ?? []).map((tag) => [tag.name, tag.description ?? ""]));
  for (const { tag } of operations) if (!named.has(tag)) named.set(tag, "");
  const tags = [...named].map(([name, description]) => ({ name, description, operations: operations.filter((one) => one.tag === name) })).filter((tag) => tag.operations.length > 0);
  return { api, tags, operations };
}

// ---- Schemas ----

/** What a `$ref` names; what stands beside it counts more. */
function resolvedRef(api, thing) {
  let now = thing ?? {};
  for (let step = 0; now.$ref && step < 20; step++) {
    const { $ref, ...own } = now;
    const target = $ref.startsWith("#/") ? $ref.slice(2).split("/").reduce((at, part) => at?.[part.replaceAll("~1", "/").replaceAll("~0", "~")], api) : undefined;
    now = { ...(target ?? {}), ...own };
  }
  return now;
}

/** A schema without references, with the parts of `allOf` joined, and without the variant `null`. */
function wholeSchema(api, schema) {
  let whole = resolvedRef(api, schema);
  if (whole.allOf) {
    const { allOf, ...own } = whole;
    const parts = [...allOf.map((part) => wholeSchema(api, part)), own];
    whole = Object.assign({}, ...parts, {
      properties: Object.assign({}, ...parts.map((part) => part.properties ?? {})),
      required: [...new Set(parts.flatMap((part) => part.required ?? []))],
    });
  }
  const variants = whole.oneOf ?? whole.anyOf;
  if (variants) {
    const others = variants.filter((one) => one.type !== "null");
    if (others.length === 1) {
      const { oneOf: _, anyOf: __, ...own } = whole;
      return { ...wholeSchema(api, others[0]), ...own, nullable: others.length < variants.length };
    }
    return { ...whole, variants: others, nullable: others.length < variants.length };
  }
  if (Array.isArray(whole.type)) {
    const types = whole.type.filter((type) => type !== "null");
    return { ...whole, type: types.length === 1 ? types[0] : types, nullable: types.length < whole.type.length };
  }
  return whole;
}

const schemaName = (schema) => schema?.$ref?.split("/").at(-1).replace(/^Page_/, "page of ") ?? null;

function schemaType(api, schema) {
  const whole = wholeSchema(api, schema);
  if (whole.type === "array") return `list of ${schemaType(api, whole.items ?? {})}`;
  if (whole.variants) return listed([...new Set(whole.variants.map((one) => schemaName(one) ?? schemaType(api, one)))]).replace(" and ", " or ");
  const type = Array.isArray(whole.type) ? whole.type.join(" or ") : (whole.type ?? (whole.properties ? "object" : whole.enum ? "string" : "any value"));
  const format = whole.format && !/^u?int/.test(whole.format) ? `, ${whole.format}` : "";
  return `${type}${format}`;
}

function limitText(least, most, one, many) {
  const unit = (count) => (one ? ` ${count === 1 ? one : many}` : "");
  if (least !== undefined && most !== undefined) return least === most ? `exactly ${figure(most)}${unit(most)}` : `${figure(least)} to ${figure(most)}${unit(most)}`;
  if (most !== undefined) return `at most ${figure(most)}${unit(most)}`;
  if (least !== undefined) return `at least ${figure(least)}${unit(least)}`;
  return null;
}

function schemaLimits(whole) {
  return [
    limitText(whole.minLength, whole.maxLength, "character", "characters"),
    // Zero as the least value says only that numbers are not negative.
    whole.type === "integer" || whole.type === "number" ? limitText(whole.minimum === 0 && whole.maximum === undefined ? undefined : whole.minimum, whole.maximum) : null,
    limitText(whole.minItems, whole.maxItems, "item", "items"),
    whole.uniqueItems && "no item twice",
    whole.nullable && "may be null",
    whole.additionalProperties === false && "no other fields",
  ].filter(Boolean);
}

function schemaExampleText(value) {
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** Whether a schema has fields of its own to show. */
function innerSchema(api, schema) {
  const whole = wholeSchema(api, schema);
  if (whole.type === "array") return innerSchema(api, whole.items ?? {});
  if (whole.variants) return whole.variants.some((one) => innerSchema(api, one)) ? { whole } : null;
  if (Object.keys(whole.properties ?? {}).length > 0) return { whole };
  if (whole.additionalProperties && typeof whole.additionalProperties === "object") return innerSchema(api, whole.additionalProperties);
  return null;
}

/** An example of a value: what the document gives, else the fields that are required. */
function schemaExample(api, schema, depth = 0) {
  const whole = wholeSchema(api, schema);
  if (whole.example !== undefined) return whole.example;
  if (whole.examples?.length > 0) return whole.examples[0];
  if (whole.default !== undefined && whole.default !== null && depth > 0) return whole.default;
  if (whole.enum) return whole.enum[0];
  if (whole.variants) return schemaExample(api, whole.variants[0], depth + 1);
  if (depth > DEEPEST_EXAMPLE) return null;
  switch (Array.isArray(whole.type) ? whole.type[0] : (whole.type ?? (whole.properties ? "object" : "string"))) {
    case "object": {
      const names = Object.keys(whole.properties ?? {});
      const required = names.filter((name) => whole.required?.includes(name));
      return Object.fromEntries(required.map((name) => [name, schemaExample(api, whole.properties[name], depth + 1)]));
    }
    case "array":
      return whole.minItems > 0 || depth === 0 ? [schemaExample(api, whole.items ?? {}, depth + 1)] : [];
    case "integer":
    case "number":
      return whole.minimum ?? 1;
    case "boolean":
      return true;
    default:
      return whole.format === "date-time" ? "2026-11-23T09:00:00Z" : "text";
  }
}

// ---- The page ----

const referenceHref = (tag, op) => `#/reference/${encodeURIComponent(tag)}${op ? `?op=${encodeURIComponent(op)}` : ""}`;

export const referencePage = {
  nav: "reference",
  title: (ctx) => (ctx.params.tag ? `${capital(ctx.params.tag)}, API reference` : "API reference"),
  reads: () => ({ api: readApi }),
  every: () => 0,
  view(ctx) {
    const { api } = ctx.data;
    const find = ctx.state.find ?? "";
    const tag = ctx.params.tag && api.tags.find((one) => one.name === ctx.params.tag);
    followLink(ctx);
    return h(
      "div",
      { key: "reference" },
      head("API reference", `version ${api.api.info?.version ?? "unknown"}`, press("Save openapi.json", () => saveBlob(new Blob([JSON.stringify(api.api, null, 2)], { type: "application/json" }), "openapi.json"))),
      h(
        "label",
        { class: "filter reference-find", key: "find" },
        h("span", { class: "vh" }, "Find an operation"),
        h("input", {
          type: "search",
          "data-filter": true,
          placeholder: "Find an operation: lookup, approve, POST /agents…",
          autocomplete: "off",
          spellcheck: "false",
          value: find,
          oninput: (event) => {
            ctx.state.find = event.target.value;
            ctx.redraw();
          },
          onkeydown: operationFindKeys,
        }),
      ),
      h(
        "div",
        { class: "reference" },
        h(
          "nav",
          { class: "reference-tags", "aria-label": "Parts of the API" },
          h("a", { href: "#/reference", key: "all", "aria-current": ctx.params.tag || find ? null : "page", onclick: () => leaveFinding(ctx) }, "Overview"),
          api.tags.map((one) => h("a", { href: referenceHref(one.name), key: one.name, "aria-current": one === tag && !find ? "page" : null, onclick: () => leaveFinding(ctx) }, one.name, h("span", { class: "muted" }, ` ${one.operations.length}`))),
        ),
        h(
          "div",
          { class: "reference-body", key: find ? "found" : (ctx.params.tag ?? "overview") },
          find.trim() ? foundOperations(ctx, api, find) : tag ? referenceTag(ctx, api.api, tag) : ctx.params.tag ? empty(`There is no part of the API that is called “${ctx.params.tag}”.`, link("See all parts", "#/reference", { kind: "" })) : referenceOverview(api),
        ),
      ),
    );
  },
};

function leaveFinding(ctx) {
  ctx.state.find = "";
  ctx.redraw();
}

/** Enter opens the first that was found; the arrow goes into the list. */
function operationFindKeys(event) {
  if (event.isComposing || (event.key !== "Enter" && event.key !== "ArrowDown")) return;
  const first = document.querySelector(".operations a");
  if (!first) return;
  event.preventDefault();
  if (event.key === "Enter") first.click();
  else first.focus();
}

function referenceOverview({ api, tags }) {
  return [
    proseOf(api.info?.description),
    h("p", { class: "muted pad", key: "base" }, "The address of this platform: ", h("code", {}, apiBase())),
    tags.map((tag) => section(capital(tag.name), { id: tag.name, end: h("a", { href: referenceHref(tag.name) }, "Details"), note: tag.description }, operationLinks(tag.operations))),
  ];
}

function foundOperations(ctx, { operations }, find) {
  const words = find.toLowerCase().split(/\s+/).filter(Boolean);
  const inTitle = operations.filter((one) => words.every((word) => one.title.includes(word)));
  const inText = operations.filter((one) => !inTitle.includes(one) && words.every((word) => one.title.includes(word) || one.words.includes(word)));
  const found = [...inTitle, ...inText];
  return section("Found", { note: counted(found.length, "operation") }, found.length === 0 ? h("p", { class: "calm", role: "status" }, `No operation has the words “${find.trim()}”. `, press("Show all", () => leaveFinding(ctx), { kind: "link" })) : operationLinks(found, () => leaveFinding(ctx)));
}

function operationLinks(operations, onclick) {
  return h(
    "ul",
    { class: "operations", onkeydown: operationListKeys },
    operations.map((one) => h("li", { key: one.id }, h("a", { href: referenceHref(one.tag, one.id), onclick }, h("span", { class: `method ${one.method.toLowerCase()}` }, one.method), h("code", {}, one.path), h("span", { class: "muted" }, one.operation.summary ?? "")))),
  );
}

function operationListKeys(event) {
  const step = { ArrowUp: -1, ArrowDown: 1 }[event.key];
  if (!step) return;
  const all = [...document.querySelectorAll(".operations a")];
  const at = all.indexOf(document.activeElement);
  event.preventDefault();
  if (at === 0 && step < 0) document.querySelector(".reference-find input").focus();
  else all[Math.min(all.length - 1, at + step)]?.focus();
}

/** Opens the operation that the address names, and goes there, once for each address. */
function followLink(ctx) {
  const { op } = ctx.query;
  if (ctx.state.followed === op) return;
  ctx.state.followed = op;
  if (!op) return;
  openedParts(ctx).add(op);
  requestAnimationFrame(() =>
    requestAnimationFrame(() => {
      const node = document.getElementById(`op-${op}`);
      node?.querySelector("summary").focus({ preventScroll: true });
      node?.scrollIntoView({ block: "start" });
    }),
  );
}

/** What is open: operations by their id, fields by their path. */
function openedParts(ctx) {
  ctx.state.opened ??= new Set();
  return ctx.state.opened;
}

/** A part whose content is described only while it is open. */
function lazyPart(ctx, key, props, summary, content) {
  const open = openedParts(ctx).has(key);
  return h(
    "details",
    {
      ...props,
      key,
      open,
      ontoggle: (event) => {
        // The event also tells what the page itself has done.
        if (event.target.open === openedParts(ctx).has(key)) return;
        if (event.target.open) openedParts(ctx).add(key);
        else openedParts(ctx).delete(key);
        ctx.redraw();
      },
    },
    h("summary", {}, summary),
    open && content(),
  );
}

const proseOf = (text) => (text ?? "").split(/\n\s*\n/).filter((one) => one.trim()).map((one) => h("p", { class: "prose" }, codeSpans(one.replaceAll("\n", " "))));

function referenceTag(ctx, api, tag) {
  return [
    h("h2", { class: "reference-title", key: "title" }, capital(tag.name)),
    tag.description && h("p", { class: "prose", key: "says" }, codeSpans(tag.description)),
    h(
      "div",
      { class: "operation-list", key: "list" },
      tag.operations.map((one) =>
        lazyPart(
          ctx,
          one.id,
          { id: `op-${one.id}`, class: "operation" },
          [h("span", { class: `method ${one.method.toLowerCase()}` }, one.method), h("code", {}, one.path), h("span", { class: "says" }, one.operation.summary ?? "")],
          () => operationBody(ctx, api, one),
        ),
      ),
    ),
  ];
}

const statusKind = (status) => (/^[23]/.test(status) ? "answer" : "error");

function operationBody(ctx, api, one) {
  const { operation, parameters } = one;
  const responses = Object.entries(operation.responses ?? {}).map(([status, response]) => [status, resolvedRef(api, response)]);
  const answers = responses.filter(([status]) => statusKind(status) === "answer");
  const errors = responses.filter(([status]) => statusKind(status) === "error");
  const body = operation.requestBody && resolvedRef(api, operation.requestBody);
  const needsNone = Array.isArray(operation.security) && operation.security.length === 0;
  const scope = operation["x-required-scope"];
  return h(
    "div",
    { class: "operation-body" },
    proseOf(operation.description),
    h("p", { class: "muted" }, needsNone ? "Needs no credentials. " : scope ? ["Needs the scope ", h("code", {}, scope), ". "] : "Needs credentials. ", "Its name is ", h("code", {}, one.id), ". ", h("a", { href: referenceHref(one.tag, one.id) }, "Link to this operation")),
    copyBlock(curlOf(api, one), `A call of ${one.id}`),
    parameters.length > 0 && [h("h3", {}, "Parameters"), h("ul", { class: "api-fields" }, parameters.map((parameter) => schemaField(ctx, api, `${one.id} ${parameter.in} ${parameter.name}`, parameter.name, { ...parameter.schema, ...(parameter.description ? { description: parameter.description } : {}), ...(parameter.example !== undefined ? { example: parameter.example } : {}) }, parameter.required === true, parameter.in)))],
    body && [
      h("h3", {}, "Body", !body.required && h("span", { class: "muted" }, " optional")),
      body.description && proseOf(body.description),
      bodyForms(ctx, api, `${one.id} body`, body.content),
    ],
    answers.length > 0 && h("h3", {}, answers.length === 1 ? "Answer" : "Answers"),
    answers.map(([status, response]) =>
      h(
        "div",
        { class: "api-answer", key: `answer ${status}` },
        h("p", {}, h("b", { class: "ok" }, status), " ", codeSpans(response.description)),
        response.headers && h("p", { class: "muted small" }, "Headers: ", Object.keys(response.headers).map((name, index) => [index > 0 && ", ", h("code", {}, name)])),
        bodyForms(ctx, api, `${one.id} ${status}`, response.content),
      ),
    ),
    errors.length > 0 &&
      lazyPart(ctx, `${one.id} errors`, { class: "api-more" }, `Errors: ${errors.map(([status]) => status).join(", ")}`, () => [
        h("dl", { class: "facts" }, errors.map(([status, response]) => [h("dt", {}, status), h("dd", {}, codeSpans(response.description))])),
        h("p", { class: "muted" }, "Each is a problem with these fields:"),
        bodyForms(ctx, api, `${one.id} problem`, Object.fromEntries(Object.entries(errors[0][1].content ?? {}).slice(0, 1))),
      ]),
  );
}

/** The forms of a body, each with its fields. */
function bodyForms(ctx, api, key, content) {
  return Object.entries(content ?? {}).map(([type, media]) => {
    const fields = media.schema && innerSchema(api, media.schema);
    const whole = media.schema ? wholeSchema(api, media.schema) : {};
    return h(
      "div",
      { class: "api-content", key: type },
      h("p", { class: "small muted" }, h("code", {}, type), " ", media.schema && whole.format !== "binary" && (schemaName(media.schema) ?? schemaType(api, media.schema)), whole.format === "binary" && "the bytes"),
      whole.description && whole.type !== "string" && h("p", { class: "small" }, codeSpans(whole.description)),
      fields && schemaFields(ctx, api, `${key} ${type}`, media.schema),
    );
  });
}

/** The fields of an object, of the items of a list, or of each variant. */
function schemaFields(ctx, api, key, schema) {
  const whole = wholeSchema(api, schema);
  if (whole.type === "array") return schemaFields(ctx, api, key, whole.items ?? {});
  if (whole.variants) {
    return [
      h("p", { class: "small muted" }, "One of these:"),
      h("ul", { class: "api-fields" }, whole.variants.map((one, index) => schemaField(ctx, api, `${key} ${index}`, variantName(api, one, index), one, null))),
    ];
  }
  const isRequired = (name) => whole.required?.includes(name) ?? false;
  // What is required comes first.
  const names = Object.keys(whole.properties ?? {}).sort((a, b) => isRequired(b) - isRequired(a));
  if (names.length === 0 && whole.additionalProperties && typeof whole.additionalProperties === "object") return schemaFields(ctx, api, key, whole.additionalProperties);
  return h("ul", { class: "api-fields" }, names.map((name) => schemaField(ctx, api, `${key} ${name}`, name, whole.properties[name], isRequired(name))));
}

/** A variant is named by its value of the field that tells the variants apart. */
function variantName(api, schema, index) {
  const whole = wholeSchema(api, schema);
  const told = Object.entries(whole.properties ?? {}).find(([, value]) => wholeSchema(api, value).enum?.length === 1);
  return told ? `${told[0]}: ${wholeSchema(api, told[1]).enum[0]}` : (schemaName(schema) ?? whole.title ?? `${index + 1}. form`);
}

function schemaField(ctx, api, key, name, schema, isRequired, place) {
  const whole = wholeSchema(api, schema);
  const items = whole.type === "array" ? wholeSchema(api, whole.items ?? {}) : null;
  const limits = [...schemaLimits(whole), ...(items ? schemaLimits(items).map((limit) => `each: ${limit}`) : [])];
  const values = whole.enum ?? items?.enum;
  const example = whole.example ?? whole.examples?.[0];
  const pattern = whole.pattern ?? items?.pattern;
  return h(
    "li",
    { key },
    h("p", {}, h("code", { class: "name" }, name), " ", h("span", { class: "muted" }, schemaType(api, schema), place && `, in the ${place}`), isRequired !== null && (isRequired ? h("b", { class: "required" }, " required") : h("span", { class: "muted" }, " optional"))),
    whole.description && h("p", { class: "small" }, codeSpans(whole.description.replaceAll("\n", " "))),
    limits.length > 0 && h("p", { class: "small" }, capital(limits.join(", "))),
    values && values.length > 0 && h("p", { class: "small" }, values.length === 1 ? "Always " : "One of ", values.map((value, index) => [index > 0 && ", ", h("code", {}, schemaExampleText(value))])),
    whole.default !== undefined && h("p", { class: "small muted" }, "Default: ", h("code", {}, schemaExampleText(whole.default))),
    pattern && h("p", { class: "small muted" }, "Form: ", h("code", {}, pattern)),
    example !== undefined && h("p", { class: "small muted" }, "Example: ", h("code", {}, schemaExampleText(example).slice(0, 400))),
    innerSchema(api, schema) && lazyPart(ctx, key, { class: "api-more" }, [whole.variants ? "Forms of " : "Fields of ", h("code", {}, name)], () => schemaFields(ctx, api, key, schema)),
  );
}

// ---- A call ----

const apiBase = () => new URL(address("/"), location.origin).href.replace(/\/$/, "");
const quotedForShell = (text) => `'${text.replaceAll("'", `'\\''`)}'`;

/** A call with curl: what is required, with the examples of the document. */
export function curlOf(api, { method, path, parameters, operation }) {
  const valueOf = (parameter) => {
    const schema = wholeSchema(api, parameter.schema ?? {});
    const value = parameter.example ?? schema.example ?? schema.examples?.[0] ?? (parameter.in === "path" ? `{${parameter.name}}` : schemaExample(api, parameter.schema ?? {}, 1));
    return schemaExampleText(value);
  };
  const inPath = parameters.filter((one) => one.in === "path");
  const url = inPath.reduce((at, one) => at.replace(`{${one.name}}`, one.name === "path" ? encodeURI(valueOf(one)) : valueOf(one)), path);
  const query = new URLSearchParams(parameters.filter((one) => one.in === "query" && one.required).map((one) => [one.name, valueOf(one)])).toString();
  const body = operation.requestBody && resolvedRef(api, operation.requestBody);
  const [type, media] = Object.entries(body?.content ?? {})[0] ?? [];
  const streams = Object.values(operation.responses ?? {}).some((response) => resolvedRef(api, response).content?.["text/event-stream"]);
  const lines = [`curl -sS${streams ? " -N" : ""}${method === "GET" || (method === "POST" && type) ? "" : ` -X ${method}`} ${quotedForShell(`${apiBase()}${url}${query ? `?${query}` : ""}`)}`];
  const needsNone = Array.isArray(operation.security) && operation.security.length === 0;
  if (access.auth !== "off" && !needsNone) lines.push('-H "authorization: Bearer $LAMPLIGHTER_API_KEY"');
  if (type) {
    lines.push(`-H ${quotedForShell(`content-type: ${type}`)}`);
    if (/json/.test(type)) {
      const example = media.example ?? Object.values(media.examples ?? {})[0]?.value ?? schemaExample(api, media.schema ?? {});
      lines.push(`-d ${quotedForShell(JSON.stringify(example).slice(0, MOST_EXAMPLE_BYTES))}`);
    } else {
      lines.push(`--data-binary @${/zip/.test(type) ? "archive.zip" : /markdown/.test(type) ? "document.md" : "file"}`);
    }
  }
  return lines.join(" \\\n  ");
}
