#!/usr/bin/env bash
# usage: infra/smoke.sh URL KEY
#
# Tries a deployment from outside, as its first user would: URL is the stack's output Url, KEY an API key. Prints `ok` or
# `failed` with the reason for each check, and ends with 1 if one failed. It takes about four minutes, one long turn of the
# model and one short run, and deletes what it made.
#
#   SMOKE_TURN      the message of the long turn; the model must need longer than SMOKE_SECONDS for it
#   SMOKE_SECONDS   the minimum duration of the long turn in seconds. Default 60
#   SMOKE_PATIENCE  how many seconds to wait for work that is in progress. Default 240
set -uo pipefail

URL=${1:?usage: infra/smoke.sh URL KEY} KEY=${2:?usage: infra/smoke.sh URL KEY}
URL=${URL%/}
# Locations begin at the origin.
ORIGIN=$(echo "$URL" | sed 's|^\(https*://[^/]*\).*|\1|')
TURN=${SMOKE_TURN:-Write a story of 6000 words about a lighthouse. Write all of it, without asking.}
SECONDS_WANTED=${SMOKE_SECONDS:-60}
PATIENCE=${SMOKE_PATIENCE:-240}
TMP=$(mktemp -d)
trap 'rm -rf "$TMP"' EXIT
FAILED=0

# call METHOD PATH [arguments of curl]: writes the answer's body to $TMP/body, its headers to $TMP/headers, its status to STATUS.
call() {
    local method=$1 target=$2
    shift 2
    case $target in http*) ;; *) target=$URL$target ;; esac
    STATUS=$(curl -sS --max-time 300 -X "$method" "$target" -H "authorization: Bearer $KEY" -H "accept: ${ACCEPT:-application/json}" \
        -D "$TMP/headers" -o "$TMP/body" -w '%{http_code}' "$@" 2>"$TMP/error") || STATUS="no answer ($(tail -n 1 "$TMP/error"))"
}
json() { local method=$1 path=$2 body=$3; shift 3; call "$method" "$path" -H 'content-type: application/json' -d "$body" "$@"; }
field() { sed -n 's/.*"'"$1"'":"\([^"]*\)".*/\1/p' "$TMP/body" | head -n 1; }
location() { sed -n 's/^[Ll]ocation: *\([^[:space:]]*\).*/\1/p' "$TMP/headers" | tail -n 1; }
what() { echo "$STATUS $(head -c 300 "$TMP/body" 2>/dev/null | tr '\n' ' ')"; }

# Runs a check. A check is a function. If it fails, it prints the reason and returns 1. Other output is a remark.
check() {
    local name=$1 began=$SECONDS said
    shift
    : >"$TMP/body"
    if "$@" >"$TMP/said"; then
        said=$(cat "$TMP/said")
        echo "ok      $name ($((SECONDS - began)) s)${said:+: $said}"
    else
        echo "failed  $name ($((SECONDS - began)) s): $(cat "$TMP/said")"
        FAILED=1
    fi
}

# Waits until the answer of a path has this text.
wait_for() {
    local path=$1 text=$2 end=$((SECONDS + PATIENCE))
    while call GET "$path"; ! grep -q "$text" "$TMP/body"; do
        if [ $SECONDS -ge $end ]; then
            echo "still $(what) after $PATIENCE s"
            return 1
        fi
        sleep 2
    done
}

health() {
    call GET /health
    [ "$STATUS" = 200 ] || { what; return 1; }
    echo "version $(field version)"
}

credentials() {
    call GET /agents
    [ "$STATUS" = 200 ] || { echo "with the key: $(what)"; return 1; }
    STATUS=$(curl -sS --max-time 60 -o "$TMP/body" -w '%{http_code}' "$URL/agents" 2>&1)
    case $STATUS in
        401) ;;
        200) echo "this server asks nobody for a key" ;;
        *) echo "without a key: $(what)"; return 1 ;;
    esac
}

agent() {
    json POST /agents '{"name": "Smoke test", "goal": "An agent that tries a deployment", "instructions": "Answer at once."}'
    [ "$STATUS" = 201 ] || { what; return 1; }
    AGENT=$(field agent_id)
    call GET "$ORIGIN$(location)"
    [ "$STATUS" = 200 ] || { echo "its Location $(location) leads to $(what)"; return 1; }
}

long_turn() {
    local began=$SECONDS first
    ACCEPT=text/event-stream json POST "/agents/$AGENT/chat" "{\"message\": \"$TURN\"}" -N --max-time 900
    [ "$STATUS" = 200 ] || { what; return 1; }
    first=$(grep -c '^event: message.delta' "$TMP/body")
    grep -q '^event: run.completed' "$TMP/body" || { echo "it ended with $(grep '^event: ' "$TMP/body" | tail -n 1)"; return 1; }
    [ $((SECONDS - began)) -ge "$SECONDS_WANTED" ] || {
        echo "it took $((SECONDS - began)) s, so nothing is known of longer ones: set SMOKE_TURN to what takes longer"
        return 1
    }
    echo "$first pieces"
}

leaving() {
    local run
    # curl disconnects after four seconds, most likely in the middle of the answer.
    ACCEPT=text/event-stream json POST "/agents/$AGENT/chat" "{\"message\": \"$TURN\"}" -N --max-time 4
    run=$(location)
    [ -n "$run" ] || { echo "the turn did not begin: $(what)"; return 1; }
    wait_for "$ORIGIN$run" '"state":"\(completed\|failed\|cancelled\)"' || return 1
    [ "$(field state)" = completed ] || { what; return 1; }
}

project() {
    json POST /projects '{"name": "Smoke test"}'
    [ "$STATUS" = 201 ] || { what; return 1; }
    PROJECT=$(field project_id)
}

body_of() {
    head -c "$1" /dev/zero >"$TMP/large"
    call PUT "/projects/$PROJECT/files/assets/large.bin" -H 'content-type: application/octet-stream' --data-binary "@$TMP/large"
}

body_that_fits() {
    body_of 4300000
    [ "$STATUS" = 201 ] || { what; return 1; }
    call GET "/projects/$PROJECT/files/assets/large.bin"
    [ "$STATUS" = 200 ] && cmp -s "$TMP/body" "$TMP/large" || { echo "read again: $STATUS, $(wc -c <"$TMP/body") bytes"; return 1; }
}

body_that_does_not() {
    body_of 4600000
    [ "$STATUS" = 413 ] && [ "$(field code)" = payload_too_large ] || { what; return 1; }
}

# A zip with `layout/theme.liquid`.
ZIP=UEsDBBQAAAAAAAAAIVwZU7h+GQAAABkAAAATAAAAbGF5b3V0L3RoZW1lLmxpcXVpZHt7IGNvbnRlbnRfZm9yX2xheW91dCB9fQpQSwECFAMUAAAAAAAAACFcGVO4fhkAAAAZAAAAEwAAAAAAAAAAAAAAgAEAAAAAbGF5b3V0L3RoZW1lLmxpcXVpZFBLBQYAAAAAAQABAEEAAABKAAAAAAA=

upload() {
    echo "$ZIP" | base64 --decode >"$TMP/theme.zip"
    json POST "/projects/$PROJECT/import" "{\"bytes\": $(($(wc -c <"$TMP/theme.zip")))}"
    [ "$STATUS" = 202 ] || { what; return 1; }
    local place url
    place=$(location) url=$(field url)
    sed 's/.*"headers":{\([^}]*\)}.*/\1/' "$TMP/body" | tr ',' '\n' | sed 's/"\([^"]*\)":"\([^"]*\)"/\1: \2/' >"$TMP/sent"
    STATUS=$(curl -sS --max-time 60 -X PUT "$url" -H "@$TMP/sent" --data-binary "@$TMP/theme.zip" \
        -o "$TMP/body" -w '%{http_code}' 2>"$TMP/error") || STATUS="no answer ($(tail -n 1 "$TMP/error"))"
    [ "$STATUS" = 200 ] || { echo "the bucket: $(what)"; return 1; }
    wait_for "$ORIGIN$place" '"state":"\(done\|failed\)"' || return 1
    [ "$(field state)" = done ] || { what; return 1; }
}

action() {
    local at action hash run
    at=$(date -u -d '+1 minute' +%Y-%m-%dT%H:%M:%SZ 2>/dev/null || date -u -v+1M +%Y-%m-%dT%H:%M:%SZ)
    json POST "/agents/$AGENT/actions" '{"title": "Smoke test", "description": "", "priority": "low",
        "task_config": {"instructions": "Save one output: a document that says hello.", "expected_output": "A document that says hello."},
        "schedule": {"at": "'"$at"'"}}'
    [ "$STATUS" = 201 ] || { what; return 1; }
    action=$(field action_id) hash=$(field approval_hash)
    json POST "/actions/$action/approve" "{\"approval_hash\": \"$hash\"}"
    [ "$STATUS" = 200 ] || { echo "the approval: $(what)"; return 1; }
    wait_for "/actions/$action" '"state":"\(completed\|failed\|needs_approval\)"' || return 1
    call GET "/actions/$action"
    grep -q '"state":"completed"' "$TMP/body" || { what; return 1; }
    call GET "/actions/$action/runs"
    run=$(field run_id)
    call GET "/actions/$action/runs/$run/outputs"
    grep -q '"asset_id"' "$TMP/body" || { echo "it has no output: $(what)"; return 1; }
}

deleting() {
    local path
    for path in ${PROJECT:+"/projects/$PROJECT"} ${AGENT:+"/agents/$AGENT"}; do
        call DELETE "$path"
        [ "$STATUS" = 204 ] || { echo "$path: $(what)"; return 1; }
        call GET "$path"
        [ "$STATUS" = 404 ] || { echo "$path is still there: $(what)"; return 1; }
    done
}

# All checks run in this shell, because some of them set an id for later checks.
AGENT= PROJECT=
check "health" health
check "the key" credentials
check "an agent, and its Location" agent
check "a project" project
if [ -n "$AGENT" ]; then
    check "a streamed turn of more than $SECONDS_WANTED s" long_turn
    check "a client that leaves in the middle" leaving
fi
if [ -n "$PROJECT" ]; then
    check "a body of 4.3 MB" body_that_fits
    check "a body of 4.6 MB is refused" body_that_does_not
    check "an upload to a signed address" upload
fi
[ -z "$AGENT" ] || check "an action that is due in a minute" action
[ -z "$AGENT$PROJECT" ] || check "what was made is deleted" deleting
exit $FAILED
