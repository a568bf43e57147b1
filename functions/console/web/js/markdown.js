// Markdown as nodes of the page: CommonMark with tables, strikethrough and addresses that become links by themselves.
//
// A stream is read line by line. Blocks that have ended keep their nodes; the rest is described again once per frame. Raw HTML is
// shown as text, and an image is a link, because a picture that loads by itself could carry data away. All work is linear in the
// length of the text, and nesting is bounded.

import { languageOf, paintCode, unpaintCode } from "./code.js";
import { copyButton } from "./parts.js";
import { draw, h } from "./view.js";

/** Deeper quotes, lists and emphases stay text. A page with thousands of nested elements would stop the browser. */
const MOST_NESTED = 40;
const MOST_COLUMNS = 100;
const MOST_LABEL = 999;

const ENTITIES = new Map(
  ("amp& lt< gt> quot\" apos' nbsp\u00a0 iexcl¡ cent¢ pound£ curren¤ yen¥ brvbar¦ sect§ uml¨ copy© ordf\u00aa laquo« not¬ shy\u00ad reg® macr¯ deg° plusmn± sup2² sup3³ acute´ micro\u00b5 para¶ middot· cedil¸ sup1¹ ordm\u00ba raquo» frac14¼ frac12½ frac34¾ iquest¿ times× divide÷ " +
    "Agrave\u00c0 Aacute\u00c1 Acirc\u00c2 Atilde\u00c3 Auml\u00c4 Aring\u00c5 AElig\u00c6 Ccedil\u00c7 Egrave\u00c8 Eacute\u00c9 Ecirc\u00ca Euml\u00cb Igrave\u00cc Iacute\u00cd Icirc\u00ce Iuml\u00cf ETH\u00d0 Ntilde\u00d1 Ograve\u00d2 Oacute\u00d3 Ocirc\u00d4 Otilde\u00d5 Ouml\u00d6 Oslash\u00d8 Ugrave\u00d9 Uacute\u00da Ucirc\u00db Uuml\u00dc Yacute\u00dd THORN\u00de szlig\u00df " +
    "agrave\u00e0 aacute\u00e1 acirc\u00e2 atilde\u00e3 auml\u00e4 aring\u00e5 aelig\u00e6 ccedil\u00e7 egrave\u00e8 eacute\u00e9 ecirc\u00ea euml\u00eb igrave\u00ec iacute\u00ed icirc\u00ee iuml\u00ef eth\u00f0 ntilde\u00f1 ograve\u00f2 oacute\u00f3 ocirc\u00f4 otilde\u00f5 ouml\u00f6 oslash\u00f8 ugrave\u00f9 uacute\u00fa ucirc\u00fb uuml\u00fc yacute\u00fd thorn\u00fe yuml\u00ff " +
    "hellip… ndash– mdash— lsquo‘ rsquo’ sbquo‚ ldquo“ rdquo” bdquo„ lsaquo‹ rsaquo› bull• dagger† permil‰ euro€ trade™ larr← uarr↑ rarr→ darr↓ harr↔ rArr⇒ lArr⇐ hArr⇔ forall∀ part∂ exist∃ empty∅ nabla∇ isin∈ prod∏ sum∑ minus− radic√ infin∞ and∧ or∨ cap∩ cup∪ int∫ asymp≈ ne≠ equiv≡ le≤ ge≥ sub⊂ sup⊃ alpha\u03b1 beta\u03b2 gamma\u03b3 delta\u03b4 epsilon\u03b5 lambda\u03bb mu\u03bc pi\u03c0 sigma\u03c3 tau\u03c4 phi\u03c6 omega\u03c9 Delta\u0394 Sigma\u03a3 Omega\u03a9 thinsp\u2009 ensp\u2002 emsp\u2003 zwnj\u200c zwj\u200d check✓ star☆"
  )
    .split(" ")
    .filter(Boolean)
    .map((pair) => [pair.slice(0, -1), pair.slice(-1)]),
);
const ESCAPE = /\\([!-/:-@[-`{-~])|&(#[xX][0-9a-fA-F]{1,6}|#[0-9]{1,7}|[a-zA-Z][a-zA-Z0-9]{1,31});/g;
const AT_ENTITY = /&(#[xX][0-9a-fA-F]{1,6}|#[0-9]{1,7}|[a-zA-Z][a-zA-Z0-9]{1,31});/y;

function entityText(name) {
  if (name[0] !== "#") return ENTITIES.get(name) ?? `&${name};`;
  const code = /^#x/i.test(name) ? parseInt(name.slice(2), 16) : Number(name.slice(1));
  return code === 0 || code > 0x10ffff || (code >= 0xd800 && code < 0xe000) ? "\ufffd" : String.fromCodePoint(code);
}

const unescaped = (text) => text.replace(ESCAPE, (_, mark, entity) => mark ?? entityText(entity));
const labelKey = (label) => label.trim().replace(/[ \t\r\n]+/g, " ").toLowerCase().toUpperCase();

// ---- Blocks: what a line begins, continues and ends ----

function newBlock(kind, more) {
  return { kind, parent: null, depth: 0, children: [], lines: [], blankEnd: false, settled: false, kept: null, ...more };
}

const HOLDS = {
  document: (kind) => kind !== "item",
  quote: (kind) => kind !== "item",
  item: (kind) => kind !== "item",
  list: (kind) => kind === "item",
  table: (kind) => kind === "row",
};

const isBlank = (text) => !/[^ \t]/.test(text);
const isGap = (char) => char === " " || char === "\t";

class MarkdownBlocks {
  constructor(references = new Map()) {
    this.references = references;
    this.root = newBlock("document");
    this.tip = this.root;
    this.number = 0;
    this.isFork = false;
  }

  /** A copy that may read on without changing this one. Blocks that have ended are shared. */
  fork() {
    const copy = new MarkdownBlocks(new Map(this.references));
    copy.isFork = true;
    copy.number = this.number;
    let parent = null;
    for (let block = this.root; ; block = block.children.at(-1)) {
      const twin = { ...block, parent, children: [...block.children], lines: [...block.lines] };
      if (parent) parent.children[parent.children.length - 1] = twin;
      else copy.root = twin;
      copy.tip = twin;
      parent = twin;
      if (block === this.tip) return copy;
    }
  }

  line(text) {
    this.text = text.replaceAll("\0", "\ufffd");
    this.offset = 0;
    this.column = 0;
    this.inTab = false;
    this.number++;
    const tip = this.tip;
    let block = this.root;
    let matched = this.root;
    while (matched !== tip) {
      block = matched.children.at(-1);
      this.look();
      const goesOn = this.continues(block);
      if (goesOn === "done") return;
      if (!goesOn) break;
      matched = block;
    }
    this.unmatched = matched;
    const wasTip = matched === tip;
    block = matched;
    let isLeaf = block.kind === "code";
    while (!isLeaf) {
      this.look();
      if (!this.indented && !/[#`~*+_=>0-9|:-]/.test(this.text[this.next] ?? "")) break;
      const begun = this.begins(block);
      if (!begun) break;
      block = this.tip;
      if (begun === "line") return this.markBlank(block, false);
      isLeaf = begun === "leaf";
    }
    this.look();
    if (!isLeaf) this.toNext();
    if (!wasTip && this.unmatched && !this.blank && this.tip.kind === "paragraph") {
      this.tip.lines.push(this.rest());
      return;
    }
    this.closeUnmatched();
    this.markBlank(block, this.blank);
    if (block.kind === "code" || block.kind === "paragraph") block.lines.push(this.rest());
    else if (block.kind === "table") {
      if (!this.blank) this.addRow(block, this.rest());
    } else if (!this.blank && block.kind in HOLDS) {
      this.add("paragraph").lines.push(this.rest());
    }
  }

  end() {
    while (this.tip) this.close(this.tip);
  }

  /** Notes whether blocks end with a blank line, which makes a list loose. */
  markBlank(block, blank) {
    if (blank && block.children.length > 0) block.children.at(-1).blankEnd = true;
    const ends = blank && !(block.kind === "quote" || (block.kind === "code" && block.fence) || (block.kind === "item" && block.children.length === 0 && block.number === this.number));
    for (let one = block; one; one = one.parent) one.blankEnd = ends;
  }

  look() {
    let next = this.offset;
    let column = this.column;
    for (; isGap(this.text[next]); next++) column += this.text[next] === "\t" ? 4 - (column % 4) : 1;
    this.next = next;
    this.nextColumn = column;
    this.blank = next >= this.text.length;
    this.indent = column - this.column;
    this.indented = this.indent >= 4;
  }

  toNext() {
    this.offset = this.next;
    this.column = this.nextColumn;
    this.inTab = false;
  }

  advance(count, byColumns) {
    while (count > 0 && this.offset < this.text.length) {
      if (this.text[this.offset] === "\t") {
        const width = 4 - (this.column % 4);
        const step = byColumns ? Math.min(count, width) : width;
        this.inTab = byColumns && width > count;
        this.column += step;
        if (!this.inTab) this.offset++;
        count -= byColumns ? step : 1;
      } else {
        this.inTab = false;
        this.offset++;
        this.column++;
        count--;
      }
    }
  }

  /** The rest of the line. A tab of which a part is used up counts as its remaining columns. */
  rest() {
    if (!this.inTab) return this.text.slice(this.offset);
    return " ".repeat(4 - (this.column % 4)) + this.text.slice(this.offset + 1);
  }

  add(kind, more) {
    this.closeUnmatched();
    while (!HOLDS[this.tip.kind]?.(kind)) this.close(this.tip);
    const block = newBlock(kind, { ...more, parent: this.tip, depth: this.tip.depth + 1, number: this.number });
    this.tip.children.push(block);
    this.tip = block;
    return block;
  }

  closeUnmatched() {
    while (this.unmatched && this.tip !== this.unmatched) this.close(this.tip);
    this.unmatched = null;
  }

  close(block) {
    this.tip = block.parent;
    block.settled = !this.isFork;
    if (block.kind === "paragraph") {
      this.takeReferences(block);
      if (block.lines.length === 0) block.parent.children.pop();
    } else if (block.kind === "code" && !block.fence) {
      while (block.lines.length > 0 && isBlank(block.lines.at(-1))) block.lines.pop();
    } else if (block.kind === "list") {
      block.tight = block.children.every((item, index) => {
        const isLast = index === block.children.length - 1;
        return (isLast || !endsBlank(item)) && item.children.every((inner, at) => (isLast && at === item.children.length - 1) || !endsBlank(inner));
      });
    }
  }

  /** Takes the definitions of links from the beginning of a paragraph. */
  takeReferences(block) {
    if (block.lines[0]?.[0] !== "[") return;
    const text = block.lines.join("\n");
    let at = 0;
    for (let end; text[at] === "[" && (end = this.reference(text, at)) !== null; ) at = end;
    if (at > 0) block.lines = at >= text.length || isBlank(text.slice(at).replaceAll("\n", "")) ? [] : text.slice(at).split("\n");
  }

  reference(text, start) {
    const label = labelAt(text, start);
    if (!label || text[start + label.length] !== ":") return null;
    const destination = destinationAt(text, afterGap(text, start + label.length + 1), true);
    if (!destination) return null;
    let end = destination.end;
    let title = "";
    const gap = afterGap(text, end);
    const titled = gap > end ? titleAt(text, gap) : null;
    const lineEnd = titled && endOfLine(text, titled.end);
    if (titled && lineEnd !== null) {
      title = titled.title;
      end = lineEnd;
    } else {
      end = endOfLine(text, end);
      if (end === null) return null;
    }
    const key = labelKey(label.slice(1, -1));
    if (key === "") return null;
    if (!this.references.has(key)) this.references.set(key, { to: destination.to, title });
    return end;
  }

  continues(block) {
    switch (block.kind) {
      case "quote":
        return this.quoteMark();
      case "item":
        if (this.blank) {
          if (block.children.length === 0) return false;
          this.toNext();
          return true;
        }
        if (this.indent < block.offset + block.padding) return false;
        this.advance(block.offset + block.padding, true);
        return true;
      case "code":
        if (!block.fence) {
          if (this.indented) this.advance(4, true);
          else if (this.blank) this.toNext();
          else return false;
          return true;
        }
        if (!this.indented && this.closesFence(block)) {
          while (this.tip !== block) this.close(this.tip);
          this.close(block);
          return "done";
        }
        for (let left = block.offset; left > 0 && isGap(this.text[this.offset]); left--) this.advance(1, true);
        return true;
      case "paragraph":
      case "table":
        return !this.blank;
      case "list":
        return true;
      default:
        return false;
    }
  }

  closesFence(block) {
    const text = this.text.slice(this.next);
    let count = 0;
    while (text[count] === block.fence[0]) count++;
    return count >= block.fence.length && isBlank(text.slice(count));
  }

  quoteMark() {
    if (this.indented || this.text[this.next] !== ">") return false;
    this.toNext();
    this.advance(1);
    if (isGap(this.text[this.offset])) this.advance(1, true);
    return true;
  }

  /** Begins a block. Returns `"line"` if that takes the whole line, `"leaf"` if the rest is its text, `"container"`, or null. */
  begins(block) {
    if (this.indented) {
      if (this.tip.kind === "paragraph" || this.blank || block.kind === "table") return null;
      this.advance(4, true);
      this.add("code");
      return "leaf";
    }
    const rest = this.text.slice(this.next);
    const nests = block.depth < MOST_NESTED;
    if (rest[0] === ">" && nests) {
      this.quoteMark();
      this.add("quote");
      return "container";
    }
    const heading = /^#{1,6}(?=[ \t]|$)/.exec(rest);
    if (heading) {
      this.add("heading", { level: heading[0].length }).lines.push(withoutMarks(rest.slice(heading[0].length)));
      return "line";
    }
    const fence = /^(?:`{3,}(?!.*`)|~{3,})/.exec(rest);
    if (fence) {
      const offset = this.indent;
      this.add("code", { fence: fence[0], offset, info: unescaped(rest.slice(fence[0].length).trim()) });
      return "line";
    }
    if (block.kind === "paragraph") {
      const line = /^(=+|-+)[ \t]*$/.exec(rest);
      if (line) {
        this.takeReferences(block);
        if (block.lines.length > 0) {
          const { lines } = block;
          this.closeUnmatched();
          this.tip = block.parent;
          block.parent.children.pop();
          this.add("heading", { level: line[1][0] === "=" ? 1 : 2 }).lines = lines;
          return "line";
        }
      }
      if (this.beginsTable(block, rest)) return "line";
    }
    if (/^(?:(?:\*[ \t]*){3,}|(?:_[ \t]*){3,}|(?:-[ \t]*){3,})$/.test(rest)) {
      this.add("rule");
      return "line";
    }
    const item = nests && this.itemMark(block, rest);
    if (!item) return null;
    this.closeUnmatched();
    if (this.tip.kind !== "list" || this.tip.mark !== item.mark) this.add("list", { mark: item.mark, start: item.start, tight: true });
    this.add("item", { offset: item.offset, padding: item.padding });
    return "container";
  }

  itemMark(block, rest) {
    const mark = /^(?:[*+-]|(\d{1,9})([.)]))(?=[ \t]|$)/.exec(rest);
    if (!mark) return null;
    // Within a paragraph, only a list that begins with 1 and is not empty is meant as a list.
    if (block.kind === "paragraph" && ((mark[1] && Number(mark[1]) !== 1) || isBlank(rest.slice(mark[0].length)))) return null;
    const length = mark[0].length;
    const offset = this.indent;
    this.toNext();
    this.advance(length, true);
    const { column, offset: from } = this;
    do this.advance(1, true);
    while (this.column - column < 5 && isGap(this.text[this.offset]));
    const gap = this.column - column;
    let padding = length + gap;
    if (gap >= 5 || gap < 1 || this.offset >= this.text.length) {
      padding = length + 1;
      this.column = column;
      this.offset = from;
      this.inTab = false;
      if (isGap(this.text[this.offset])) this.advance(1, true);
    }
    return { mark: mark[2] ?? mark[0], start: mark[1] ? Number(mark[1]) : null, offset, padding };
  }

  beginsTable(block, rest) {
    if (!rest.includes("|") || /[^-:| \t]/.test(rest)) return false;
    const marks = cellsOf(rest);
    if (marks.length > MOST_COLUMNS || !marks.every((cell) => /^:?-+:?$/.test(cell))) return false;
    const header = block.lines.at(-1) ?? "";
    if (cellsOf(header).length !== marks.length) return false;
    this.closeUnmatched();
    block.lines.pop();
    if (block.lines.length > 0) this.close(block);
    else {
      this.tip = block.parent;
      block.parent.children.pop();
    }
    const aligns = marks.map((cell) => (cell.endsWith(":") ? (cell.startsWith(":") ? "center" : "right") : null));
    const table = this.add("table", { aligns });
    this.addRow(table, header);
    return true;
  }

  addRow(table, text) {
    const row = newBlock("row", { cells: cellsOf(text).slice(0, table.aligns.length), aligns: table.aligns, isHead: table.children.length === 0 });
    row.settled = !this.isFork;
    table.children.push(row);
  }
}

function endsBlank(block) {
  for (let one = block; one; one = one.kind === "list" || one.kind === "item" ? one.children.at(-1) : null) if (one.blankEnd) return true;
  return false;
}

/** The text of a heading without the marks at its end. */
function withoutMarks(text) {
  const trimmed = text.trim();
  let end = trimmed.length;
  while (trimmed[end - 1] === "#") end--;
  return end === 0 || isGap(trimmed[end - 1]) ? trimmed.slice(0, end).trim() : trimmed;
}

/** The cells of a row of a table. `\|` is no border. */
function cellsOf(line) {
  const text = line.trim();
  const cells = [];
  let cell = "";
  for (let at = text[0] === "|" ? 1 : 0; at < text.length; at++) {
    if (text[at] === "\\" && at + 1 < text.length) {
      cell += text[at + 1] === "|" ? "|" : text.slice(at, at + 2);
      at++;
    } else if (text[at] === "|") {
      cells.push(cell.trim());
      cell = "";
      if (at === text.length - 1) return cells;
    } else cell += text[at];
  }
  cells.push(cell.trim());
  return cells;
}

// ---- Parts of links ----

function labelAt(text, at) {
  const found = /\[(?:[^\\[\]]|\\.){0,1000}\]/sy;
  found.lastIndex = at;
  const label = found.exec(text)?.[0];
  return label && label.length <= MOST_LABEL + 2 ? label : null;
}

/** After spaces and at most one line's end. */
function afterGap(text, at) {
  while (isGap(text[at])) at++;
  if (text[at] !== "\n") return at;
  at++;
  while (isGap(text[at])) at++;
  return at;
}

function endOfLine(text, at) {
  while (isGap(text[at])) at++;
  if (at >= text.length) return at;
  return text[at] === "\n" ? at + 1 : null;
}

function destinationAt(text, at, isNeeded) {
  if (text[at] === "<") {
    for (let end = at + 1; end < text.length && text[end] !== "\n" && text[end] !== "<"; end++) {
      if (text[end] === ">") return { to: unescaped(text.slice(at + 1, end)), end: end + 1 };
      if (text[end] === "\\") end++;
    }
    return null;
  }
  let open = 0;
  let end = at;
  for (; end < text.length; end++) {
    const char = text[end];
    if (char === "\\" && /[!-/:-@[-`{-~]/.test(text[end + 1] ?? "")) end++;
    else if (char === "(") {
      if (++open > 32) return null;
    } else if (char === ")") {
      if (open-- === 0) break;
    } else if (char <= " " || char === "\x7f") break;
  }
  if (open > 0 || (isNeeded && end === at)) return null;
  return { to: unescaped(text.slice(at, end)), end: Math.min(end, text.length) };
}

function titleAt(text, at) {
  const close = { '"': '"', "'": "'", "(": ")" }[text[at]];
  if (!close) return null;
  for (let end = at + 1; end < text.length; end++) {
    if (text[end] === close) return { title: unescaped(text.slice(at + 1, end)), end: end + 1 };
    if (text[end] === "\\") end++;
    else if (close === ")" && text[end] === "(") return null;
  }
  return null;
}

// ---- Within a block: a flat list of marks and texts, in which pairs are found, and then one pass that nests ----

const PLAIN = /[^\n`[\]\\!<&*_~]+/y;
const AUTOLINK = /<([A-Za-z][A-Za-z0-9.+-]{1,31}:[^<>\x00-\x20]*)>/y;
const AUTOMAIL = /<([a-zA-Z0-9.!#$%&'*+/=?^_`{|}~-]+@[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?)*)>/y;

function matchAt(pattern, text, position) {
  pattern.lastIndex = position;
  return pattern.exec(text);
}

/** Where runs of backticks are, by their length. */
function tickRuns(text) {
  const runs = new Map();
  for (const run of text.matchAll(/`+/g)) {
    if (!runs.has(run[0].length)) runs.set(run[0].length, { at: 0, places: [] });
    runs.get(run[0].length).places.push(run.index);
  }
  return runs;
}

function inlineTokens(text, references, missed) {
  const tokens = [];
  const brackets = [];
  let inactive = 0;
  let last = null;
  let ticks = null;
  let place = 0;
  const say = (said) => tokens.push({ kind: "text", text: said });

  const drop = (mark) => {
    if (mark.before) mark.before.after = mark.after;
    if (mark.after) mark.after.before = mark.before;
    else last = mark.before;
  };

  const marks = (char) => {
    let end = place;
    while (text[end] === char) end++;
    const count = end - place;
    if (char === "~" && count !== 2) say(text.slice(place, end));
    else {
      const before = place === 0 ? "\n" : characterBefore(text, place);
      const after = end >= text.length ? "\n" : String.fromCodePoint(text.codePointAt(end));
      const [gapBefore, gapAfter] = [/\s/.test(before), /\s/.test(after)];
      const [markBefore, markAfter] = [/[\p{P}\p{S}]/u.test(before), /[\p{P}\p{S}]/u.test(after)];
      const left = !gapAfter && (!markAfter || gapBefore || markBefore);
      const right = !gapBefore && (!markBefore || gapAfter || markAfter);
      const isLine = char === "_";
      const mark = { kind: "mark", char, count, whole: count, opens: isLine ? left && (!right || markBefore) : left, closes: isLine ? right && (!left || markAfter) : right, begun: [], ended: 0, before: last, after: null };
      tokens.push(mark);
      if (last) last.after = mark;
      last = mark;
    }
    place = end;
  };

  const pair = (bottom) => {
    const floors = new Map();
    let closer = last;
    while (closer && closer.before !== bottom) closer = closer.before;
    while (closer) {
      if (!closer.closes) {
        closer = closer.after;
        continue;
      }
      const key = `${closer.char}${closer.opens}${closer.whole % 3}`;
      const floor = floors.has(key) ? floors.get(key) : bottom;
      let opener = closer.before;
      while (opener && opener !== bottom && opener !== floor) {
        const odd = (closer.opens || opener.closes) && closer.whole % 3 !== 0 && (opener.whole + closer.whole) % 3 === 0;
        if (opener.char === closer.char && opener.opens && !odd) break;
        opener = opener.before;
      }
      if (!opener || opener === bottom || opener === floor) {
        floors.set(key, closer.before);
        const next = closer.after;
        if (!closer.opens) drop(closer);
        closer = next;
        continue;
      }
      const used = opener.count >= 2 && closer.count >= 2 ? 2 : 1;
      opener.begun.push(opener.char === "~" ? "del" : used === 2 ? "strong" : "em");
      closer.ended++;
      opener.count -= used;
      closer.count -= used;
      opener.after = closer;
      closer.before = opener;
      if (opener.count === 0) drop(opener);
      if (closer.count === 0) {
        const next = closer.after;
        drop(closer);
        closer = next;
      }
    }
    while (last && last !== bottom) drop(last);
  };

  const closeBracket = () => {
    const start = place++;
    const opener = brackets.pop();
    const isOff = opener && !opener.isImage && brackets.length < inactive;
    inactive = Math.min(inactive, brackets.length);
    if (!opener || isOff) return say("]");
    let link = null;
    if (text[place] === "(") {
      const destination = destinationAt(text, afterGap(text, place + 1), false);
      if (destination) {
        const gap = afterGap(text, destination.end);
        const titled = gap > destination.end ? titleAt(text, gap) : null;
        const end = afterGap(text, titled ? titled.end : destination.end);
        if (text[end] === ")") {
          link = { to: destination.to, title: titled?.title ?? "" };
          place = end + 1;
        }
      }
    }
    if (!link) {
      const label = labelAt(text, place);
      const own = text.slice(opener.place, start);
      const key = label && label.length > 2 ? labelKey(label.slice(1, -1)) : !opener.isFollowed && own.length <= MOST_LABEL ? labelKey(own) : "";
      if (key) {
        link = references.get(key) ?? null;
        if (link) place += label?.length ?? 0;
        else missed.push(key);
      }
    }
    if (!link) return say("]");
    pair(opener.last);
    opener.token.link = link;
    tokens.push({ kind: "end" });
    if (!opener.isImage) inactive = brackets.length;
  };

  const openBracket = (isImage) => {
    const token = { kind: "bracket", isImage, link: null };
    tokens.push(token);
    place += isImage ? 2 : 1;
    if (brackets.length > 0) brackets.at(-1).isFollowed = true;
    brackets.push({ token, isImage, place, last, isFollowed: false });
  };

  const code = () => {
    let end = place;
    while (text[end] === "`") end++;
    const count = end - place;
    ticks ??= tickRuns(text);
    const runs = ticks.get(count);
    while (runs && runs.at < runs.places.length && runs.places[runs.at] < end) runs.at++;
    const close = runs?.places[runs.at];
    if (close === undefined) {
      say(text.slice(place, end));
      place = end;
      return;
    }
    let inner = text.slice(end, close).replaceAll("\n", " ");
    if (inner.startsWith(" ") && inner.endsWith(" ") && /[^ ]/.test(inner)) inner = inner.slice(1, -1);
    tokens.push({ kind: "code", text: inner });
    place = close + count;
  };

  const lineEnd = () => {
    const before = tokens.at(-1);
    let isHard = false;
    if (before?.kind === "text") {
      let end = before.text.length;
      while (before.text[end - 1] === " ") end--;
      isHard = before.text.length - end >= 2;
      before.text = before.text.slice(0, end);
    }
    place++;
    while (isGap(text[place])) place++;
    if (isHard) tokens.push({ kind: "break" });
    else say("\n");
  };

  while (place < text.length) {
    const plain = matchAt(PLAIN, text, place);
    if (plain) {
      say(plain[0]);
      place = PLAIN.lastIndex;
      continue;
    }
    const char = text[place];
    if (char === "\n") lineEnd();
    else if (char === "`") code();
    else if (char === "*" || char === "_" || char === "~") marks(char);
    else if (char === "[") openBracket(false);
    else if (char === "!" && text[place + 1] === "[") openBracket(true);
    else if (char === "]") closeBracket();
    else if (char === "\\" && text[place + 1] === "\n") {
      tokens.push({ kind: "break" });
      place += 2;
      while (isGap(text[place])) place++;
    } else if (char === "\\" && /[!-/:-@[-`{-~]/.test(text[place + 1] ?? "")) {
      say(text[place + 1]);
      place += 2;
    } else {
      const entity = char === "&" && matchAt(AT_ENTITY, text, place);
      const link = char === "<" && matchAt(AUTOLINK, text, place);
      const mail = char === "<" && !link && matchAt(AUTOMAIL, text, place);
      if (entity) say(entityText(entity[1]));
      else if (link || mail) tokens.push({ kind: "auto", to: link ? link[1] : `mailto:${mail[1]}`, text: (link || mail)[1] });
      else say(char);
      place += (entity || link || mail || [char])[0].length;
    }
  }
  pair(null);
  return tokens;
}

function characterBefore(text, place) {
  const pair = place > 1 && text.charCodeAt(place - 1) >= 0xdc00 && text.charCodeAt(place - 1) < 0xe000;
  return text.slice(place - (pair ? 2 : 1), place);
}

// ---- What is shown ----

/** An address as it may stand in a link, or null. */
export function safeHref(to) {
  let href;
  try {
    href = encodeURI(to).replace(/%25(?=[0-9a-f]{2})/gi, "%");
    if (!/^(?:https?:\/\/|mailto:)/i.test(href)) return null;
    new URL(href);
  } catch {
    return null;
  }
  return href;
}

function isNamed(url, text) {
  const said = text.trim();
  if (url.protocol === "mailto:") return said.toLowerCase().replace(/^mailto:/, "") === decodedOr(url.pathname).toLowerCase();
  if (url.username || url.password) return false;
  try {
    return new URL(/^https?:\/\//i.test(said) ? said : `https://${said}`).host === url.host;
  } catch {
    return false;
  }
}

function decodedOr(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

const textOf = (nodes) => nodes.map((node) => node.text ?? textOf(node.children)).join("");

/** A link to a foreign place. The host is shown if the text does not name it. An address that is not allowed is no link. */
export function foreignLink({ to, title, isImage = false }, children) {
  const href = safeHref(to);
  if (!href) return h("span", { class: isImage ? "no-link image" : "no-link", title: title || null, "data-to": encodedOr(to) }, children);
  const url = new URL(href);
  const inner = h("a", { class: isImage ? "image" : null, href, title: title || null, target: "_blank", rel: "noopener noreferrer" }, children);
  return [inner, !isNamed(url, textOf(inner.children)) && h("span", { class: "host" }, ` (${url.host || decodedOr(url.pathname)})`)];
}

function encodedOr(to) {
  try {
    return encodeURI(to).replace(/%25(?=[0-9a-f]{2})/gi, "%");
  } catch {
    return to;
  }
}

const ADDRESS = /https?:\/\/[^\s<]+/gi;

/** A text in which addresses become links. */
function linked(text) {
  if (!text.includes("://")) return [text];
  const parts = [];
  let end = 0;
  for (const found of text.matchAll(ADDRESS)) {
    if (found.index > 0 && !/[\s*_~(]/.test(text[found.index - 1])) continue;
    let address = found[0];
    let parens = 0;
    for (const char of address) parens += char === "(" ? 1 : char === ")" ? -1 : 0;
    for (let size = address.length; size > 0; address = address.slice(0, size)) {
      const char = address[size - 1];
      if (/[?!.,:*_~'"]/.test(char)) size--;
      else if (char === ")" && parens < 0) {
        size--;
        parens++;
      } else break;
    }
    if (!/^https?:\/\/[^/?#]/i.test(address)) continue;
    parts.push(text.slice(end, found.index), foreignLink({ to: address }, [address]));
    end = found.index + address.length;
  }
  parts.push(text.slice(end));
  return parts;
}

/** The nodes of a text, from its tokens. */
function inlineNodes(text, references, missed) {
  const rootFrame = { children: [], isLink: false };
  const frames = [rootFrame];
  let said = "";
  const flush = () => {
    if (said === "") return;
    const frame = frames.at(-1);
    for (const part of frame.isLink ? [said] : linked(said)) frame.children.push(part);
    said = "";
  };
  const open = (make, isLink) => {
    flush();
    const parent = frames.at(-1);
    // Links hold no links, and what is nested too deep is not nested at all.
    const isFlat = frames.length > MOST_NESTED || (isLink && parent.isLink);
    frames.push({ make: isFlat ? null : make, children: isFlat ? parent.children : [], isLink: isLink || parent.isLink });
  };
  const close = () => {
    flush();
    const frame = frames.pop();
    if (frame.make) frames.at(-1).children.push(frame.make(frame.children));
  };
  for (const token of inlineTokens(text, references, missed)) {
    if (token.kind === "text") said += token.text;
    else if (token.kind === "mark") {
      for (let count = token.ended; count > 0; count--) close();
      said += token.char.repeat(token.count);
      for (const tag of token.begun.reverse()) open((children) => h(tag, {}, children), false);
    } else if (token.kind === "bracket") {
      if (token.link) open((children) => foreignLink({ ...token.link, isImage: token.isImage }, children), true);
      else said += token.isImage ? "![" : "[";
    } else if (token.kind === "end") close();
    else {
      flush();
      const frame = frames.at(-1);
      if (token.kind === "code") frame.children.push(h("code", {}, token.text));
      else if (token.kind === "break") frame.children.push(h("br"));
      else if (frame.isLink) said += token.text;
      else frame.children.push(foreignLink({ to: token.to }, [token.text]));
    }
  }
  flush();
  return rootFrame.children;
}

/** Describes blocks. `settled` are the definitions that stay, `now` those that the open rest may add. */
class MarkdownView {
  constructor(settled, now, { isFinal, level }) {
    this.settled = settled;
    this.now = now;
    this.isFinal = isFinal;
    this.level = level;
  }

  view(block, tight, missed) {
    const { kept } = block;
    if (block.settled && kept && kept.tight === tight && !(this.isFinal && kept.missed.some((key) => this.settled.has(key)))) {
      for (const key of kept.missed) missed.push(key);
      return kept.node;
    }
    const mine = [];
    const node = this.describe(block, tight, mine);
    if (block.settled) block.kept = { node, tight, missed: mine };
    for (const key of mine) missed.push(key);
    return node;
  }

  inline(block, text, missed) {
    return inlineNodes(text, block.settled ? this.settled : this.now, missed);
  }

  describe(block, tight, missed) {
    const inside = (isTight) => block.children.map((child) => this.view(child, isTight, missed));
    switch (block.kind) {
      case "paragraph": {
        const nodes = this.inline(block, block.lines.join("\n").trimEnd(), missed);
        return tight ? nodes : h("p", {}, nodes);
      }
      case "heading":
        return h(`h${Math.min(6, block.level + this.level)}`, { class: `h${block.level}` }, this.inline(block, block.lines.join("\n").trim(), missed));
      case "quote":
        return h("blockquote", {}, inside(false));
      case "list":
        return h(block.start === null ? "ul" : "ol", { start: block.start === null || block.start === 1 ? null : block.start }, inside(block.tight));
      case "item":
        return h("li", {}, inside(tight));
      case "rule":
        return h("hr");
      case "row":
        return h("tr", {}, block.cells.map((cell, index) => h(block.isHead ? "th" : "td", { class: block.aligns[index], scope: block.isHead ? "col" : null }, this.inline(block, cell, missed))));
      case "table": {
        const [headRow, ...rows] = inside(false);
        return h("div", { class: "table", role: "region", "aria-label": "Table", tabindex: "0" }, h("table", {}, h("thead", {}, headRow), rows.length > 0 && h("tbody", {}, rows)));
      }
      default:
        return codeBlock(block.lines.map((line) => `${line}\n`).join(""), block.info ?? "", block.settled);
    }
  }
}

/** Code with a button that copies it. It is painted when it has ended. */
export function codeBlock(text, info = "", isWhole = true) {
  const name = info.split(/\s/)[0];
  return h(
    "div",
    { class: "code" },
    h("div", { class: "code-head" }, h("span", {}, name), copyButton(text.replace(/\n$/, ""))),
    h("pre", { tabindex: "0", "aria-label": name ? `Code, ${name}` : "Code" }, h("code", { class: name ? `language-${name}` : null, "data-paint": isWhole ? languageOf(name) : null, use: (node) => () => unpaintCode(node) }, text)),
  );
}

/** Paints code that has ended and is not painted yet. */
export function paintAll(root) {
  for (const node of root.querySelectorAll("code[data-paint]")) paintCode(node, node.dataset.paint);
}

const LINE_END = /\r\n|\n|\r/g;

/**
 * A text that grows inside of `node`. `push(text)` adds to it, and shows it with the next frame; `end()` shows all of it at once.
 * `level` is the level of the heading above: a first heading becomes one level lower.
 */
export function markdownStream(node, { level = 2 } = {}) {
  const blocks = new MarkdownBlocks();
  let rest = "";
  let isPlanned = false;
  let hasEnded = false;

  const read = (isLast) => {
    // A carriage return at the end may be the first half of a line's end.
    LINE_END.lastIndex = 0;
    let from = 0;
    for (let found; (found = LINE_END.exec(rest)); from = LINE_END.lastIndex) {
      if (!isLast && found[0] === "\r" && LINE_END.lastIndex === rest.length) break;
      blocks.line(rest.slice(from, found.index));
    }
    rest = rest.slice(from);
  };

  const show = (shown, isFinal) => {
    const view = new MarkdownView(blocks.references, shown.references, { isFinal, level });
    draw(node, shown.root.children.map((block) => view.view(block, false, [])));
    paintAll(node);
  };

  const frame = () => {
    if (hasEnded) return;
    const began = performance.now();
    read(false);
    const fork = blocks.fork();
    const open = rest.replace(/\r$/, "");
    if (!isBlank(open)) fork.line(open);
    fork.end();
    show(fork, false);
    isPlanned = false;
    // A huge open block takes long to describe. Then there are fewer frames, so that the page stays usable.
    const took = performance.now() - began;
    if (took > 12) {
      isPlanned = true;
      setTimeout(() => requestAnimationFrame(frame), took * 3);
    }
  };

  return {
    push(text) {
      if (hasEnded) return;
      rest += text;
      if (isPlanned) return;
      isPlanned = true;
      requestAnimationFrame(frame);
    },
    end() {
      if (hasEnded) return;
      hasEnded = true;
      read(true);
      if (rest !== "") blocks.line(rest);
      rest = "";
      blocks.end();
      show(blocks, true);
    },
  };
}

/** A finished text. */
export function markdownView(text, options) {
  return h("div", {
    class: "md",
    key: `md ${text}`,
    opaque: true,
    use(node) {
      const stream = markdownStream(node, options);
      stream.push(text);
      stream.end();
      return () => draw(node);
    },
  });
}

/** The content of an asset as a person reads it: documents and e-mails as Markdown, all else as it is. */
export function readContent(content, type) {
  if (type === "document" || type === "email") return h("div", { class: "reading" }, markdownView(content));
  return h("pre", { class: "reader", tabindex: "0" }, content);
}
