#!/usr/bin/env bash
# Guess:    `jsonschema` with a `FormatChecker()` checks `format`; without one it does not (that much is documented).
# Reality:  with the checker, "not a time" is a valid `date-time` in a fresh environment, and so is any text a valid `duration`,
#           `uri` and `hostname`: a format whose helper package is missing is skipped without a word. Install something else that happens
#           to bring the helper (openapi-schema-validator brings rfc3339-validator), and the *same code* refuses the value.
#           Second trap: `FormatChecker()` and `Draft202012Validator.FORMAT_CHECKER` judge the same word differently. `time` in the
#           first is draft 3's ("10:00:00", no zone), so the right "10:00:00Z" is refused by it, always.
# Others:   ajv with ajv-formats checks all of them by itself. (It takes "2026-11-29 10:00:00+0100" for a date-time, which RFC 3339 does
#           not: no colon in the offset.)
# Versions: jsonschema 4.26.0, openapi-schema-validator 0.9.0 (PyPI); ajv 8.20.0, ajv-formats 3.0.1 (npm).
# Why:      arguments of tools are checked with it. A test machine with more packages refuses what production accepts.
# Seen:     2026-11-29, the text at the end of this script.
set -euo pipefail
. "$(dirname "$0")/common.sh"
npm_packages ajv@8.20.0 ajv-formats@3.0.1
pip_packages jsonschema==4.26.0

cat > "$WORK/values.json" <<'END'
[["date-time", "2026-11-29T10:00:00Z"], ["date-time", "not a time"], ["date-time", "2026-11-29 10:00:00+0100"], ["time", "10:00:00Z"], ["time", "10:00:00"],
 ["duration", "soon"], ["uri", "not a uri"], ["hostname", "-"], ["email", "no at sign"]]
END
cat > "$WORK/probe.py" <<'END'
import json, sys
from jsonschema import Draft202012Validator as Draft, FormatChecker
for name, value in json.load(open("values.json")):
    answers = [Draft({"format": name}, format_checker=checker).is_valid(value) for checker in (FormatChecker(), Draft.FORMAT_CHECKER)]
    print(f"{sys.argv[1]}, {name} {value!r}: FormatChecker() {answers[0]}, the draft's own {answers[1]}")
END
cat > "$WORK/probe.mjs" <<'END'
import { readFileSync } from 'node:fs';
import Ajv from 'ajv/dist/2020.js';
import formats from 'ajv-formats';
const ajv = new Ajv.default();
formats.default(ajv);
for (const [format, value] of JSON.parse(readFileSync('values.json', 'utf8'))) console.log(`ajv, ${format} '${value}': ${ajv.validate({ type: 'string', format }, value)}`);
END
probe "$PYTHON" probe.py alone
pip_packages openapi-schema-validator==0.9.0
probe "$PYTHON" probe.py "after installing a neighbour"
probe node probe.mjs

expect "what jsonschema calls a date-time depends on other installed packages" <<'END'
alone, date-time '2026-11-29T10:00:00Z': FormatChecker() True, the draft's own True
alone, date-time 'not a time': FormatChecker() True, the draft's own True
alone, date-time '2026-11-29 10:00:00+0100': FormatChecker() True, the draft's own True
alone, time '10:00:00Z': FormatChecker() False, the draft's own True
alone, time '10:00:00': FormatChecker() True, the draft's own True
alone, duration 'soon': FormatChecker() True, the draft's own True
alone, uri 'not a uri': FormatChecker() True, the draft's own True
alone, hostname '-': FormatChecker() True, the draft's own True
alone, email 'no at sign': FormatChecker() False, the draft's own False
after installing a neighbour, date-time '2026-11-29T10:00:00Z': FormatChecker() True, the draft's own True
after installing a neighbour, date-time 'not a time': FormatChecker() False, the draft's own False
after installing a neighbour, date-time '2026-11-29 10:00:00+0100': FormatChecker() False, the draft's own False
after installing a neighbour, time '10:00:00Z': FormatChecker() False, the draft's own True
after installing a neighbour, time '10:00:00': FormatChecker() True, the draft's own False
after installing a neighbour, duration 'soon': FormatChecker() True, the draft's own True
after installing a neighbour, uri 'not a uri': FormatChecker() True, the draft's own True
after installing a neighbour, hostname '-': FormatChecker() True, the draft's own True
after installing a neighbour, email 'no at sign': FormatChecker() False, the draft's own False
ajv, date-time '2026-11-29T10:00:00Z': true
ajv, date-time 'not a time': false
ajv, date-time '2026-11-29 10:00:00+0100': true
ajv, time '10:00:00Z': true
ajv, time '10:00:00': false
ajv, duration 'soon': false
ajv, uri 'not a uri': false
ajv, hostname '-': false
ajv, email 'no at sign': false
END
