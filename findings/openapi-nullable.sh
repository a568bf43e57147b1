#!/usr/bin/env bash
# Guess:    `nullable: true` in an OpenAPI 3.1 document is an error for every linter: 3.1 replaced it by `type: [string, "null"]`.
#           Or it is harmless, because it still works.
# Reality:  it does nothing, and two of three linters are silent. In 3.1 a schema is JSON Schema 2020-12, where an unknown keyword is
#           allowed and ignored. Spectral (spectral:oas) and openapi-spec-validator call the document valid; Redocly calls
#           it an error (rule `struct`). An example with the null does not help: Spectral checks examples (it refuses the
#           number), but goes on reading `nullable` as 3.0 did, so the wrong document and its example confirm each other.
# Versions: @redocly/cli 2.77.0, @stoplight/spectral-cli 6.16.3 (npm); openapi-spec-validator 0.9.0 (PyPI).
# Why:      moving a document from 3.0 to 3.1 is a change of one line at its top, CI is green, and generated clients then
#           refuse the null that the service has always sent.
# Seen:     2026-11-29, the text at the end of this script: the rules that name the schema or its example.
set -euo pipefail
. "$(dirname "$0")/common.sh"
npm_packages @redocly/cli@2.77.0 @stoplight/spectral-cli@6.16.3
pip_packages openapi-spec-validator==0.9.0

cat > "$WORK/make.py" <<'END'
import sys
for version in ("3.0.3", "3.1.0"):
    for example in ("no", "null", "7"):
        line = f"              example: {{note: {example}}}\n" if example != "no" else ""
        open(f"{version}-{example}.yaml", "w").write(f"""openapi: {version}
info: {{title: runs, version: '1'}}
servers: [{{url: 'https://api.example.org'}}]
paths:
  /runs:
    get:
      operationId: runs
      responses:
        '200':
          description: A run.
          content:
            application/json:
{line}              schema:
                type: object
                properties:
                  note: {{type: string, nullable: true}}
""")
END
echo 'extends: ["spectral:oas"]' > "$WORK/.spectral.yaml"
cat > "$WORK/probe.py" <<'END'
import json, re, subprocess, sys
import yaml
from openapi_spec_validator import validate

def run(*command):
    return subprocess.run(command, capture_output=True, text=True, timeout=60).stdout

for version in ("3.0.3", "3.1.0"):
    for example in ("no", "null", "7"):
        name = f"{version}-{example}.yaml"
        redocly = json.loads(run("node_modules/.bin/redocly", "lint", name, "--format=json"))
        spectral = json.loads(re.search(r"\[.*\]", run("node_modules/.bin/spectral", "lint", name, "-r", ".spectral.yaml", "-f", "json"), re.S).group())
        found = {
            "redocly": sorted({p["ruleId"] for p in redocly["problems"] if "200" in p["location"][0]["pointer"]}),
            "spectral": sorted({p["code"] for p in spectral if "200" in p["path"]}),
        }
        try:
            validate(yaml.safe_load(open(name)))
            found["openapi-spec-validator"] = []
        except Exception as error:
            found["openapi-spec-validator"] = [type(error).__name__]
        for tool, rules in found.items():
            print(f"{version}, {example} as example: {tool}: {', '.join(rules) or 'nothing'}")
END
probe "$PYTHON" make.py
probe "$PYTHON" probe.py

expect "nullable in OpenAPI 3.1 is an error for Redocly, and nothing for the others" <<'END'
3.0.3, no as example: redocly: nothing
3.0.3, no as example: spectral: nothing
3.0.3, no as example: openapi-spec-validator: nothing
3.0.3, null as example: redocly: nothing
3.0.3, null as example: spectral: nothing
3.0.3, null as example: openapi-spec-validator: nothing
3.0.3, 7 as example: redocly: no-invalid-media-type-examples
3.0.3, 7 as example: spectral: oas3-valid-media-example
3.0.3, 7 as example: openapi-spec-validator: nothing
3.1.0, no as example: redocly: struct
3.1.0, no as example: spectral: nothing
3.1.0, no as example: openapi-spec-validator: nothing
3.1.0, null as example: redocly: struct
3.1.0, null as example: spectral: nothing
3.1.0, null as example: openapi-spec-validator: nothing
3.1.0, 7 as example: redocly: no-invalid-media-type-examples, struct
3.1.0, 7 as example: spectral: oas3-valid-media-example
3.1.0, 7 as example: openapi-spec-validator: nothing
END
