// What a page shows, as plain values, and the one place that changes the document.
//
// `h("a", { href: "#/" }, "Today")` describes an element. `draw(root, …)` compares the description with the one before it and
// changes only what differs, so that focus, selection and scroll positions stay. No text becomes HTML: under the content security
// policy of the console nothing could do that, and nothing here tries.

const SVG = "http://www.w3.org/2000/svg";

/** A search among all siblings would be quadratic in a long text. */
const MOST_SKIPPED = 30;

/** Attributes that people read or hear. */
const SPOKEN = /^(aria-|title$|placeholder$|alt$|label$)/;

/**
 * A text as it is shown. Characters that turn the direction of what follows could show another text than the one that is approved, so they are
 * visible instead.
 */
export const visible = (text) => String(text).replace(/[\u202a-\u202e\u2066-\u2069]/g, "\ufffd");

/** These are properties of elements, because their attributes are only initial values. */
const PROPERTIES = new Set(["value", "checked", "selected", "disabled", "open", "indeterminate"]);

/**
 * Describes an element.
 *
 * Properties: `class`; `style`, an object of CSS properties; `onclick` and other handlers; `key`, which identifies the element among its
 * siblings; `use`, a function that is called once with the new element, and may return a function for its end; `opaque`, if
 * the children belong to `use`. All others are attributes; `true` is an attribute without a value, `false`, `null` and `undefined` are none.
 */
export function h(tag, props, ...children) {
  return { tag, props: props ?? {}, key: props?.key, children: flat(children), node: null, end: null };
}

function flat(children) {
  const all = [];
  for (const child of children) {
    if (Array.isArray(child)) for (const inner of flat(child)) all.push(inner);
    else if (child !== null && child !== undefined && child !== false && child !== true && child !== "") {
      all.push(typeof child === "object" ? child : { text: visible(child), node: null });
    }
  }
  return all;
}

const drawn = new WeakMap();

/** Makes the children of `root` what `content` describes. */
export function draw(root, ...content) {
  const next = flat(content);
  patchChildren(root, drawn.get(root) ?? [], next, root.namespaceURI === SVG);
  drawn.set(root, next);
}

function patchChildren(parent, old, next, svg) {
  const byKey = new Map();
  const rest = [];
  for (const child of old) {
    if (child.key !== undefined) byKey.set(child.key, child);
    else rest.push(child);
  }
  const gone = new Set(old);
  let at = 0;
  const found = next.map((child) => {
    let from;
    if (child.key !== undefined) {
      from = byKey.get(child.key);
      if (from?.tag !== child.tag) from = undefined;
      byKey.delete(child.key);
    } else if (at < rest.length && rest[at].tag === child.tag) {
      from = rest[at++];
    } else if (at < rest.length) {
      // The kinds differ. A sibling of the same kind soon after may be the one.
      let later = at + 1;
      while (later < rest.length && later < at + MOST_SKIPPED && rest[later].tag !== child.tag) later++;
      if (rest[later]?.tag === child.tag) {
        from = rest[later];
        at = later + 1;
      }
    }
    gone.delete(from);
    return from;
  });
  // First of all, so that what stays need not move: a moved field loses its focus, and a moved frame its scroll position.
  for (const child of gone) remove(parent, child);
  let cursor = parent.firstChild;
  for (const [index, child] of next.entries()) {
    if (found[index]) patch(found[index], child, svg);
    else create(child, svg);
    if (child.node === cursor) cursor = cursor.nextSibling;
    else parent.insertBefore(child.node, cursor);
  }
}

function create(child, svg) {
  if (child.text !== undefined) {
    child.node = document.createTextNode(child.text);
    return;
  }
  const isSvg = svg || child.tag === "svg";
  child.node = isSvg ? document.createElementNS(SVG, child.tag) : document.createElement(child.tag);
  for (const [name, value] of Object.entries(child.props)) set(child.node, name, undefined, value);
  if (!child.props.opaque) {
    for (const inner of child.children) {
      create(inner, isSvg && child.tag !== "foreignObject");
      child.node.append(inner.node);
    }
  }
  // The value of a list of options exists only when the options do.
  if (child.tag === "select" && child.props.value !== undefined) child.node.value = child.props.value;
  if (child.props.use) child.end = child.props.use(child.node) ?? null;
}

function patch(old, next, svg) {
  // A page may keep the description of a part that has not changed.
  if (old === next) return;
  const node = old.node;
  next.node = node;
  if (next.text !== undefined) {
    if (next.text !== old.text) node.data = next.text;
    return;
  }
  next.end = old.end;
  for (const name of Object.keys(old.props)) {
    if (!(name in next.props)) set(node, name, old.props[name], undefined);
  }
  for (const [name, value] of Object.entries(next.props)) {
    if (value !== old.props[name]) set(node, name, old.props[name], value);
  }
  if (!next.props.opaque) {
    const isSvg = svg || next.tag === "svg";
    patchChildren(node, old.children, next.children, isSvg && next.tag !== "foreignObject");
  }
  if (next.tag === "select" && next.props.value !== old.props.value) node.value = next.props.value;
  // What a person has typed since the last description is part of this one, or the page has replaced it.
  if ((next.tag === "input" || next.tag === "textarea") && next.props.value !== undefined && node.value !== String(next.props.value)) node.value = next.props.value;
}

function remove(parent, child) {
  ended(child);
  if (child.node.parentNode === parent) parent.removeChild(child.node);
}

function ended(child) {
  if (child.text !== undefined) return;
  child.end?.();
  child.children.forEach(ended);
}

function set(node, name, before, value) {
  if (name === "key" || name === "use" || name === "opaque") return;
  if (name.startsWith("on")) {
    // A property with a function is allowed by the content security policy; an attribute with a text is not.
    node[name] = value ?? null;
  } else if (name === "style") {
    for (const property of Object.keys(before ?? {})) if (!(property in (value ?? {}))) node.style.removeProperty(property);
    for (const [property, text] of Object.entries(value ?? {})) node.style.setProperty(property, String(text));
  } else if (PROPERTIES.has(name)) {
    // What a person is typing is never replaced by an older text.
    node[name] = value ?? (name === "value" ? "" : false);
  } else if (value === undefined || value === null || value === false) {
    node.removeAttribute(name);
  } else {
    node.setAttribute(name, value === true ? "" : SPOKEN.test(name) ? visible(value) : String(value));
  }
}

/** An icon of the sprite in the page. */
export function icon(name, className = "ic") {
  return h("svg", { class: className, "aria-hidden": "true", viewBox: "0 0 24 24" }, h("use", { href: `#i-${name}` }));
}
