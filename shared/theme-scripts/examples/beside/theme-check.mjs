// Compares our checks with Shopify's theme-check on the planted faults of `tests/corpus`.
//
//   npm install --prefix FOLDER @shopify/theme-check-node@3.29.1
//   cargo run -p theme-scripts --example beside | node shared/theme-scripts/examples/beside/theme-check.mjs FOLDER
//   node shared/theme-scripts/examples/beside/theme-check.mjs FOLDER --speed THEME ROUNDS PATH...
//
// FOLDER is a folder outside of the repository. The first use prints the tables of `tests/beside.md`. With `--checks all`, theme-check does all
// of its checks, not only the recommended ones. With `--details FILE`, it writes each edit with the new findings of both.
// The second use measures theme-check on the theme in a folder, and on edits of some of its files.
//
// theme-check downloads Shopify's lists of names if it can. Here, it always has those of its package, so that each run has the same.
import { createRequire } from 'node:module';
import { rmSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { createInterface } from 'node:readline';

const VERSION = '3.29.1';

const [folder, ...options] = process.argv.slice(2);
if (!folder) throw new Error('name the folder with the package');
const option = (name) => (options.includes(name) ? options[options.indexOf(name) + 1] : undefined);

const scratch = await mkdtemp(join(tmpdir(), 'beside-'));
process.on('exit', () => rmSync(scratch, { recursive: true, force: true }));
// It reads both when it is loaded. Nothing is in these folders, so it takes the lists of its package.
process.env.SHOPIFY_TLD_ROOT = join(scratch, 'no-lists');
process.env.XDG_CACHE_HOME = join(scratch, 'cache');

const require = createRequire(join(resolve(folder), 'package.json'));
const { version } = require('@shopify/theme-check-node/package.json');
if (version !== VERSION) throw new Error(`the package has version ${version}, not ${VERSION}`);
const themeCheck = require('@shopify/theme-check-node');
const checks = `theme-check:${option('--checks') ?? 'recommended'}`;

if (options.includes('--speed')) {
  await speed(...options.slice(options.indexOf('--speed') + 1));
} else {
  await compare();
}

/** The findings of theme-check in a folder. */
async function find(root) {
  const { offenses } = await themeCheck.themeCheckRun(root, checks);
  const prefix = `${pathToFileURL(root)}/`;
  return offenses.map(({ check, uri, start, severity, message }) => ({
    check,
    path: decodeURIComponent(uri.slice(prefix.length)),
    line: start.line + 1,
    isError: severity === themeCheck.Severity.ERROR,
    message,
  }));
}

/** The findings of `after` that `before` has not, even if their lines moved. */
function added(before, after, textsBefore, textsAfter) {
  const key = ({ check, path, message }) => JSON.stringify([check, path, message]);
  const lineOf = (texts, { path, line }) => texts[path]?.split('\n')[line - 1]?.trim();
  const known = groups(before, key);
  const fresh = [];
  for (const [name, found] of groups(after, key)) {
    const old = known.get(name) ?? [];
    const lines = old.map((finding) => lineOf(textsBefore, finding));
    const left = found.filter((finding) => {
      const at = lines.indexOf(lineOf(textsAfter, finding));
      if (at >= 0) lines.splice(at, 1);
      return at < 0;
    });
    // What is left of the old ones is on a line that was edited.
    fresh.push(...left.slice(lines.length));
  }
  return fresh;
}

function groups(list, key) {
  const map = new Map();
  for (const item of list) {
    if (!map.has(key(item))) map.set(key(item), []);
    map.get(key(item)).push(item);
  }
  return map;
}

async function write(root, path, text) {
  await mkdir(dirname(join(root, path)), { recursive: true });
  await writeFile(join(root, path), text);
}

async function compare() {
  const root = join(scratch, 'theme');
  let [theme, before] = [undefined, []];
  const edits = [];
  const started = performance.now();
  for await (const line of createInterface({ input: process.stdin, crlfDelay: Infinity })) {
    const edit = JSON.parse(line);
    if (edit.theme) {
      theme = edit.theme;
      for (const [path, text] of Object.entries(theme)) await write(root, path, text);
      before = await find(root);
      continue;
    }
    if (edit.text === null) await rm(join(root, edit.file));
    else await write(root, edit.file, edit.text);
    const texts = { ...theme, [edit.file]: edit.text ?? undefined };
    try {
      edit.theirs = added(before, await find(root), theme, texts);
    } catch (error) {
      console.error(`${edit.file}: theme-check ended with ${error.stack}`);
      edit.theirs = [];
    }
    if (edit.file in theme) await write(root, edit.file, theme[edit.file]);
    else await rm(join(root, edit.file));
    edits.push(edit);
    if (edits.length % 100 === 0) console.error(`${edits.length} edits`);
  }
  const seconds = Math.round((performance.now() - started) / 1000);
  if (option('--details')) {
    await writeFile(option('--details'), edits.map((edit) => `${JSON.stringify(edit)}\n`).join(''));
  }
  const { revision } = JSON.parse(
    await readFile(join(dirname(require.resolve('@shopify/theme-check-docs-updater/package.json')), 'data/latest.json'), 'utf8'),
  );
  const date = new Date().toISOString().slice(0, 10);
  console.log(`theme-check-node ${version} (\`${checks}\`), theme-liquid-docs ${revision.slice(0, 10)}, Node ${process.version}, ${date}.`);
  console.log(`theme-check has ${before.length} findings of the theme without faults. Its ${edits.length + 1} runs took ${seconds} s.\n`);
  print(edits);
}

function print(edits) {
  const isThere = (edit) => (finding) => finding.path === edit.path;
  const isCaught = (side) => (edit) => edit[side].some(isThere(edit));
  const isOnLine = (side) => (edit) =>
    edit[side].filter(isThere(edit)).some((finding) => Math.abs(finding.line - edit.line) <= 1);
  const isError = (side) => (edit) =>
    edit[side].filter(isThere(edit)).some((finding) => finding.isError ?? finding.is_error);
  const isAnywhere = (side) => (edit) => edit[side].length > 0;
  const row = (...cells) => console.log(`| ${cells.join(' | ')} |`);
  const count = (list, test) => list.filter(test).length;
  const both = (list, ...tests) => ['ours', 'theirs'].flatMap((side) => tests.map((test) => count(list, test(side))));

  const faults = edits.filter((edit) => !edit.is_harmless);
  row('category', 'faults', 'ours: found', 'on the line', 'theme-check: found', 'on the line');
  row('---', ...Array(5).fill('---:'));
  const faultsRow = (name, list) => row(name, list.length, ...both(list, isCaught, isOnLine));
  for (const [name, list] of groups(faults, (edit) => edit.category)) faultsRow(name, list);
  faultsRow('**all**', faults);
  faultsRow('of these, in Liquid and JSON', faults.filter((edit) => /\.(liquid|json)$/.test(edit.path)));

  const NAMES = {
    Refused: 'Shopify refuses the file',
    Broken: 'a page breaks',
    Silent: 'something does not work, and nothing says so',
    Quality: 'it could be better',
  };
  console.log();
  row('what it does', 'faults', 'ours: found', 'on the line', 'as an error', 'theme-check: found', 'on the line', 'as an error', 'anywhere');
  row('---', ...Array(8).fill('---:'));
  const gradeRow = (name, list) =>
    row(name, list.length, ...both(list, isCaught, isOnLine, isError), count(list, isAnywhere('theirs')));
  for (const [grade, name] of Object.entries(NAMES)) gradeRow(name, faults.filter((edit) => edit.grade === grade));
  gradeRow('**all**', faults);

  const harmless = edits.filter((edit) => edit.is_harmless);
  // A snippet that was added is not used.
  for (const edit of harmless) {
    for (const side of ['ours', 'theirs']) {
      edit[side] = edit[side].filter(({ check }) => check !== 'OrphanedSnippet');
    }
  }
  const isErrorAnywhere = (side) => (edit) => edit[side].some((finding) => finding.isError ?? finding.is_error);
  console.log();
  row('look-alikes', 'edits', 'ours: reported', 'as an error', 'theme-check: reported', 'as an error');
  row('---', ...Array(5).fill('---:'));
  const harmlessRow = (name, list) => row(name, list.length, ...both(list, isAnywhere, isErrorAnywhere));
  for (const [name, list] of groups(harmless, (edit) => edit.category)) harmlessRow(name, list);
  harmlessRow('**all**', harmless);

  const kinds = groups(harmless.flatMap((edit) => [...new Set(edit.theirs.map(({ check }) => check))]), (check) => check);
  const list = [...kinds].sort((a, b) => b[1].length - a[1].length).map(([check, found]) => `\`${check}\` ${found.length}`);
  console.log(`\ntheme-check's kinds of the look-alikes, with the edits that have them: ${list.join(', ')}.`);
  console.log(`Found by theme-check, and not by ours: ${count(faults, (edit) => isCaught('theirs')(edit) && !isCaught('ours')(edit))}.`);
}

async function speed(theme, rounds, ...paths) {
  const root = resolve(theme);
  const timed = async (what, work) => {
    const times = [];
    for (let round = 0; round < Number(rounds); round++) {
      const started = performance.now();
      await work(round);
      times.push(performance.now() - started);
    }
    const first = times[0];
    times.sort((a, b) => a - b);
    const shown = [times[0], times[times.length >> 1], first].map((time) => `${time.toFixed(1)} ms`);
    console.log(`${what}: least ${shown[0]}, median ${shown[1]}, first ${shown[2]}`);
  };
  await timed('whole theme', () => themeCheck.themeCheckRun(root, checks));

  // The package checks whole themes only. As Shopify's language server does after an edit, this reads the edited file and checks all files again,
  // with the parsed texts of the others.
  const { theme: sources, config } = await themeCheck.getThemeAndConfig(root, checks);
  const { check, toSourceCode } = require('@shopify/theme-check-common');
  const { ThemeLiquidDocsManager } = require('@shopify/theme-check-docs-updater');
  const docs = new ThemeLiquidDocsManager();
  const validator = await themeCheck.JSONValidator.create(docs, config);
  const fs = themeCheck.NodeFileSystem;
  const byUri = new Map(sources.map((source) => [source.uri, source]));
  const memos = new Map();
  const remembered = (kind, uri, work) => {
    const name = `${kind} ${uri}`;
    if (!memos.has(name)) memos.set(name, work());
    return memos.get(name);
  };
  const uriOf = (...parts) => themeCheck.path.join(config.rootUri, ...parts);
  const schema = async (uri) => {
    const source = byUri.get(uri);
    return source && remembered('schema', uri, () => themeCheck.toSchema(config.context, uri, source, validator?.isValid));
  };
  const dependencies = {
    fs,
    themeDocset: docs,
    jsonValidationSet: docs,
    getSectionSchema: (name) => schema(uriOf('sections', `${name}.liquid`)),
    getBlockSchema: (name) => schema(uriOf('blocks', `${name}.liquid`)),
    getAppBlockSchema: (name) => schema(uriOf('blocks', `${name}.liquid`)),
    async getDocDefinition(path) {
      const uri = uriOf(path);
      const ast = byUri.get(uri)?.ast;
      if (!ast || ast instanceof Error || !themeCheck.filePathSupportsLiquidDoc(uri)) return undefined;
      return remembered('doc', uri, () => themeCheck.extractDocDefinition(uri, ast));
    },
    getCSSClassesForURI: (uri) =>
      remembered('classes', uri, () =>
        uri.endsWith('.css') ? themeCheck.extractCSSClassesFromAssetUri(uri, fs) : themeCheck.extractCSSClassesFromLiquidUri(uri, fs),
      ),
    getReferences: async () => [],
    getDependencies: async () => [],
  };
  for (const path of paths) {
    const uri = uriOf(path);
    const text = await readFile(join(root, path), 'utf8');
    if (!byUri.has(uri)) {
      console.log(`${path}: theme-check does not read it`);
      continue;
    }
    await timed(`one edit of ${path}`, async (round) => {
      for (const kind of ['schema', 'doc', 'classes']) memos.delete(`${kind} ${uri}`);
      byUri.set(uri, toSourceCode(uri, text + '\n'.repeat(round)));
      await check([...byUri.values()], config, dependencies);
    });
  }
}
