#!/usr/bin/env bash
# Guess:    theme-check with all of its checks reports values of a schema that contradict the schema itself.
# Reality:  it reports a range without `max`. It reports nothing for a range whose default lies above `max` or between
#           two steps, a range with a step of 0, a select with a default that no option has, one option twice, and two settings with one id
#           in one section. Nor for a template whose `order` names a section that is not there.
# Versions: @shopify/theme-check-node 3.29.1 (npm); another version may differ.
# Why:      Shopify's documentation of input settings forbids most of these. A pipeline that trusts theme-check uploads them, and a person hears of it
#           in the editor, if at all.
# Seen:     2026-11-30, the text at the end of this script: the checks that report anything, for each schema.
set -euo pipefail
. "$(dirname "$0")/common.sh"
npm_packages @shopify/theme-check-node@3.29.1

cat > "$WORK/probe.cjs" <<'END'
const { mkdirSync, rmSync, writeFileSync } = require('fs');
const { join } = require('path');
// Nothing is in these folders, so the package takes the lists of names that it brings along.
process.env.SHOPIFY_TLD_ROOT = join(process.cwd(), 'no-lists');
process.env.XDG_CACHE_HOME = join(process.cwd(), 'cache');
const { themeCheckRun } = require('@shopify/theme-check-node');

const range = (values) => ({ settings: [{ type: 'range', id: 'size', label: 'Size', min: 0, max: 10, step: 2, unit: 'px', default: 4, ...values }] });
const select = (options, value) => ({ settings: [{ type: 'select', id: 'side', label: 'Side', options: options.map((name) => ({ value: name, label: name })), default: value }] });
const text = (id) => ({ type: 'text', id, label: id });
const schemas = {
  'a right range': range({}),
  'a range without max': range({ max: undefined }),
  'a default above max': range({ default: 12 }),
  'a default between two steps': range({ default: 3 }),
  'a step of 0': range({ step: 0 }),
  'a default that no option has': select(['left', 'right'], 'top'),
  'one option twice': select(['left', 'left'], 'left'),
  'two settings with one id': { settings: [text('title'), text('title')] },
};
const root = join(process.cwd(), 'theme');
const write = (path, content) => {
  mkdirSync(join(root, path, '..'), { recursive: true });
  writeFileSync(join(root, path), content);
};
const report = async (name) => {
  const { offenses } = await themeCheckRun(root, 'theme-check:all');
  const checks = [...new Set(offenses.map(({ check }) => check))].sort();
  console.log(`${name}: ${checks.join(', ') || 'nothing'}`);
};
const begin = (schema, order) => {
  rmSync(root, { recursive: true, force: true });
  write('sections/boat.liquid', `<p>{{ section.settings | json }}</p>\n{% schema %}\n${JSON.stringify({ name: 'Boat', ...schema, presets: [{ name: 'Boat' }] })}\n{% endschema %}\n`);
  write('templates/index.json', JSON.stringify({ sections: { boat: { type: 'boat', settings: {} } }, order }));
};
(async () => {
  for (const [name, schema] of Object.entries(schemas)) {
    begin(schema, ['boat']);
    await report(name);
  }
  begin({}, ['boat', 'ship']);
  await report('an order that names no section');
})();
END
probe node probe.cjs
expect 'what theme-check reports of values of schemas' <<'END'
a right range: nothing
a range without max: ValidSchema
a default above max: nothing
a default between two steps: nothing
a step of 0: nothing
a default that no option has: nothing
one option twice: nothing
two settings with one id: nothing
an order that names no section: nothing
END
