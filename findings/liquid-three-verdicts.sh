#!/usr/bin/env bash
# Guess:    what the vendor's checker of themes passes is Liquid, and what it refuses is none; other engines agree with it.
# Reality:  - A tag that does not exist: theme-check-node says nothing. liquidjs and python-liquid refuse it.
#           - `1 <> 2`: theme-check calls it a syntax error. python-liquid compares and prints; liquidjs takes it without a word, and it is false.
#           - Words behind `endcomment`: two errors in theme-check, that the comment was never closed. The other two print what follows.
#             Words behind `endif`: nothing in theme-check, and an error in the other two.
#           - `(1 .. 3)`: an error in theme-check. The other two count.
#           - A second `else`: nothing in theme-check, an error in liquidjs, and python-liquid prints the first branch.
#           - `assign a = 1 2`: an error in theme-check and in python-liquid; liquidjs drops the 2.
# Versions: @shopify/theme-check-node 3.29.1, liquidjs 10.30.1 (npm), python-liquid 2.3.6 (PyPI).
# Why:      a theme that the checker passes can be refused at the upload, and a preview in another engine decides a condition otherwise.
#           No two of the three give the same verdicts on these seven lines.
# Seen:     2026-11-30, the text at the end of this script.
set -euo pipefail
. "$(dirname "$0")/common.sh"
npm_packages @shopify/theme-check-node@3.29.1 liquidjs@10.30.1
pip_packages python-liquid==2.3.6

cat > "$WORK/templates.json" <<'END'
["{% wishlist %}",
 "{% if 1 <> 2 %}yes{% endif %}",
 "{% for i in (1 .. 3) %}{{ i }}{% endfor %}",
 "{% comment %}a{% endcomment of the note %}b",
 "{% if 1 == 1 %}a{% endif 1 %}",
 "{% if true %}a{% else %}b{% else %}c{% endif %}",
 "{% assign a = 1 2 %}{{ a }}"]
END
cat > "$WORK/probe.mjs" <<'END'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { Liquid } from 'liquidjs';
import { themeCheckRun } from '@shopify/theme-check-node';
const texts = JSON.parse(readFileSync('templates.json', 'utf8'));
for (const folder of ['snippets', 'locales']) mkdirSync(`theme/${folder}`, { recursive: true });
writeFileSync('theme/locales/en.default.json', '{}');
texts.forEach((text, n) => writeFileSync(`theme/snippets/t${n}.liquid`, text));
const checked = await themeCheckRun(`${process.cwd()}/theme`, undefined, () => {});
texts.forEach((text, n) => {
  const found = checked.offenses.filter((one) => one.uri.endsWith(`/t${n}.liquid`) && one.check.includes('Syntax'));
  console.log(`theme-check  ${text} => ${[...new Set(found.map((one) => one.check))].sort().join(', ') || 'nothing'}`);
});
for (const text of texts) {
  try {
    console.log(`liquidjs     ${text} => prints ${JSON.stringify(new Liquid().parseAndRenderSync(text))}`);
  } catch {
    console.log(`liquidjs     ${text} => refuses it`);
  }
}
END
cat > "$WORK/probe.py" <<'END'
import json
from liquid import Environment
from liquid.exceptions import LiquidError
for text in json.load(open("templates.json")):
    try:
        print(f"python-liquid {text} => prints {json.dumps(Environment().from_string(text).render())}")
    except LiquidError:
        print(f"python-liquid {text} => refuses it")
END
probe node probe.mjs
probe "$PYTHON" probe.py
expect "three tools judge seven templates in three ways" <<'END'
theme-check  {% wishlist %} => nothing
theme-check  {% if 1 <> 2 %}yes{% endif %} => LiquidHTMLSyntaxError, LiquidSyntaxError
theme-check  {% for i in (1 .. 3) %}{{ i }}{% endfor %} => LiquidHTMLSyntaxError
theme-check  {% comment %}a{% endcomment of the note %}b => LiquidHTMLSyntaxError, LiquidSyntaxError
theme-check  {% if 1 == 1 %}a{% endif 1 %} => nothing
theme-check  {% if true %}a{% else %}b{% else %}c{% endif %} => nothing
theme-check  {% assign a = 1 2 %}{{ a }} => LiquidHTMLSyntaxError, LiquidSyntaxError
liquidjs     {% wishlist %} => refuses it
liquidjs     {% if 1 <> 2 %}yes{% endif %} => prints ""
liquidjs     {% for i in (1 .. 3) %}{{ i }}{% endfor %} => prints "123"
liquidjs     {% comment %}a{% endcomment of the note %}b => prints "b"
liquidjs     {% if 1 == 1 %}a{% endif 1 %} => refuses it
liquidjs     {% if true %}a{% else %}b{% else %}c{% endif %} => refuses it
liquidjs     {% assign a = 1 2 %}{{ a }} => prints "1"
python-liquid {% wishlist %} => refuses it
python-liquid {% if 1 <> 2 %}yes{% endif %} => prints "yes"
python-liquid {% for i in (1 .. 3) %}{{ i }}{% endfor %} => prints "123"
python-liquid {% comment %}a{% endcomment of the note %}b => prints "b"
python-liquid {% if 1 == 1 %}a{% endif 1 %} => refuses it
python-liquid {% if true %}a{% else %}b{% else %}c{% endif %} => prints "a"
python-liquid {% assign a = 1 2 %}{{ a }} => refuses it
END
