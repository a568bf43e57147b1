#!/usr/bin/env bash
# Guess:    a template which computes with prices gives the same digits in liquidjs, in python-liquid and in a shop.
# Reality:  - `divided_by` with two integers: the documentation of Liquid says that the result is rounded down to an integer.
#             python-liquid does so (3, and -4 for -7 / 2); liquidjs divides exactly (3.5) unless a third, own argument is true.
#           - `round` of a half: liquidjs gives 3 for 2.5, python-liquid 2 (to the even neighbour); with digits, 2.675 gives 2.68
#             and 2.67.
#           - `plus` of 0.1 and 0.2: liquidjs prints 0.30000000000000004, python-liquid 0.3; 100 times 1.1: 110.00000000000001 and 110.0.
#           - A literal 1.0 is printed as 1 by liquidjs; `10.50 | times: 2` is 21 and 21.0.
#           - `split` drops empty ends in liquidjs (4 parts), python-liquid keeps them (6).
#           - `append: nil` is nothing in liquidjs, and the word "None" in python-liquid.
#           - `truncate: 5` of "Hello", which fits: "Hello" and "He...".
# Versions: liquidjs 10.30.1 (npm), python-liquid 2.3.6 (PyPI).
# Why:      previews of theme code and mail templates use these libraries in place of the shop's. A price that is right in the
#           preview is another in the shop; "None" goes out in a mail.
# Seen:     2026-11-29, the text at the end of this script.
set -euo pipefail
. "$(dirname "$0")/common.sh"
npm_packages liquidjs@10.30.1
pip_packages python-liquid==2.3.6

cat > "$WORK/templates.json" <<'END'
["{{ 7 | divided_by: 2 }} {{ -7 | divided_by: 2 }} {{ 1999 | divided_by: 100 }}",
 "{{ 2.5 | round }} {{ 3.5 | round }} {{ 2.675 | round: 2 }}",
 "{{ 0.1 | plus: 0.2 }} {{ 100 | times: 1.1 }}",
 "{{ 1.0 }} {{ 10.50 | times: 2 }}",
 "{{ 'a,b,,c,,' | split: ',' | size }}",
 "{{ 'SKU-' | append: nil }}",
 "{{ 'Hello' | truncate: 5 }}"]
END
cat > "$WORK/probe.mjs" <<'END'
import { readFileSync } from 'node:fs';
import { Liquid } from 'liquidjs';
const engine = new Liquid();
for (const text of JSON.parse(readFileSync('templates.json', 'utf8'))) console.log(`liquidjs       ${text} => ${engine.parseAndRenderSync(text)}`);
END
cat > "$WORK/probe.py" <<'END'
import json
from liquid import Environment
engine = Environment()
for text in json.load(open("templates.json")):
    print(f"python-liquid  {text} => {engine.from_string(text).render()}")
END
probe node probe.mjs
probe "$PYTHON" probe.py

expect "two Liquid engines compute, round, cut and append differently" <<'END'
liquidjs       {{ 7 | divided_by: 2 }} {{ -7 | divided_by: 2 }} {{ 1999 | divided_by: 100 }} => 3.5 -3.5 19.99
liquidjs       {{ 2.5 | round }} {{ 3.5 | round }} {{ 2.675 | round: 2 }} => 3 4 2.68
liquidjs       {{ 0.1 | plus: 0.2 }} {{ 100 | times: 1.1 }} => 0.30000000000000004 110.00000000000001
liquidjs       {{ 1.0 }} {{ 10.50 | times: 2 }} => 1 21
liquidjs       {{ 'a,b,,c,,' | split: ',' | size }} => 4
liquidjs       {{ 'SKU-' | append: nil }} => SKU-
liquidjs       {{ 'Hello' | truncate: 5 }} => Hello
python-liquid  {{ 7 | divided_by: 2 }} {{ -7 | divided_by: 2 }} {{ 1999 | divided_by: 100 }} => 3 -4 19
python-liquid  {{ 2.5 | round }} {{ 3.5 | round }} {{ 2.675 | round: 2 }} => 2 4 2.67
python-liquid  {{ 0.1 | plus: 0.2 }} {{ 100 | times: 1.1 }} => 0.3 110.0
python-liquid  {{ 1.0 }} {{ 10.50 | times: 2 }} => 1.0 21.0
python-liquid  {{ 'a,b,,c,,' | split: ',' | size }} => 6
python-liquid  {{ 'SKU-' | append: nil }} => SKU-None
python-liquid  {{ 'Hello' | truncate: 5 }} => He...
END
