// Colours of code: small lexers, and ranges that the browser paints (`::highlight`) without a node for each word.
//
// Every pattern takes linear time: a comment or a string without an end reaches to the end of its text or line.

/** Longer code stays plain. */
const MOST_PAINTED = 40_000;

const codeWords = (text) => new Set(text.split(" "));
const DOUBLE = String.raw`"(?:[^"\\\n]|\\.)*"?`;
const SINGLE_QUOTED = String.raw`'(?:[^'\\\n]|\\.)*'?`;
const NUMBER = String.raw`\b\d[\w.]*`;
const BLOCK_COMMENT = String.raw`\/\*(?:[^*]|\*(?!\/))*(?:\*\/)?`;
const LINE_COMMENT = String.raw`\/\/[^\n]*`;
const WORD = String.raw`[A-Za-z_$][\w$]*`;

/** The kinds of parts, each with its pattern; a `word` is painted if it is one of `words`. */
const lexer = (parts, keywords = "") => ({ pattern: new RegExp(Object.entries(parts).map(([name, part]) => `(?<${name}>${part})`).join("|"), "g"), words: codeWords(keywords) });

const LEXERS = {
  json: lexer({ name: String.raw`"(?:[^"\\\n]|\\.){0,200}"(?=[ \t]{0,9}:)`, string: DOUBLE, number: String.raw`-?\b\d[\d.eE+-]*`, word: WORD }, "true false null"),
  js: lexer(
    { comment: `${LINE_COMMENT}|${BLOCK_COMMENT}`, string: `${DOUBLE}|${SINGLE_QUOTED}|\`(?:[^\`\\\\]|\\\\[^])*\`?`, number: NUMBER, word: WORD },
    "async await break case catch class const continue default delete do else export extends false finally for from function if import in instanceof interface let new null of return static super switch this throw true try type typeof undefined var void while yield",
  ),
  css: lexer({ comment: BLOCK_COMMENT, string: `${DOUBLE}|${SINGLE_QUOTED}`, word: "@[a-z-]{1,40}", name: String.raw`(?<![\w-])[a-z-]{1,60}(?=:[ \t])`, number: String.raw`#[0-9a-fA-F]{3,8}\b|-?\b\d[\d.]*[a-z%]*` }),
  rust: lexer(
    { comment: `${LINE_COMMENT}|${BLOCK_COMMENT}`, string: String.raw`"(?:[^"\\]|\\[^])*"?|'(?:[^'\\\n]|\\[^\n]{1,8})'`, number: NUMBER, word: String.raw`[A-Za-z_]\w*` },
    "as async await break const continue crate dyn else enum extern false fn for if impl in let loop match mod move mut pub ref return self Self static struct super trait true type unsafe use where while",
  ),
  shell: lexer(
    { comment: String.raw`(?<![^\s])#[^\n]*`, string: `${DOUBLE}|'[^'\\n]*'?`, name: String.raw`\$\{?[\w@#?*!-]+`, word: String.raw`[A-Za-z_][\w-]*` },
    "case cd do done echo elif else esac exit export fi for function if in local return set then unset while",
  ),
  liquid: lexer({ comment: String.raw`<!--(?:[^-]|-(?!->))*(?:-->)?`, name: String.raw`\{\{[^{}\n]*\}\}|\{%[^{}\n]*%\}`, word: String.raw`<\/?[A-Za-z][\w-]*`, string: `${DOUBLE}|'[^'\\n]*'` }),
};
LEXERS.liquid.all = true;
LEXERS.css.all = true;

const LANGUAGES = { javascript: "js", jsx: "js", mjs: "js", ts: "js", tsx: "js", typescript: "js", jsonc: "json", jsonl: "json", scss: "css", rs: "rust", sh: "shell", bash: "shell", zsh: "shell", console: "shell", html: "liquid", xml: "liquid" };

/** The lexer of a language's name, or null. */
export function languageOf(name) {
  const known = name.toLowerCase();
  const language = Object.hasOwn(LANGUAGES, known) ? LANGUAGES[known] : known;
  return Object.hasOwn(LEXERS, language) ? language : null;
}

const painted = new WeakMap();

/** Paints the only text of a node. */
export function paintCode(node, language) {
  const text = node.firstChild;
  if (!globalThis.CSS?.highlights || !text || text.data.length > MOST_PAINTED || painted.get(node)?.text === text.data) return;
  unpaintCode(node);
  const ranges = [];
  const { pattern, words: known, all } = LEXERS[language];
  for (const found of text.data.matchAll(pattern)) {
    const [kind] = Object.entries(found.groups).find(([, part]) => part !== undefined);
    if (kind === "word" && !all && !known.has(found[0])) continue;
    // These ranges do not follow changes, so they cost nothing when other parts of the page change.
    ranges.push([`code-${kind}`, new StaticRange({ startContainer: text, startOffset: found.index, endContainer: text, endOffset: found.index + found[0].length })]);
  }
  for (const [kind, range] of ranges) {
    if (!CSS.highlights.has(kind)) CSS.highlights.set(kind, new Highlight());
    CSS.highlights.get(kind).add(range);
  }
  painted.set(node, { text: text.data, ranges });
}

export function unpaintCode(node) {
  for (const [kind, range] of painted.get(node)?.ranges ?? []) CSS.highlights.get(kind).delete(range);
  painted.delete(node);
}
