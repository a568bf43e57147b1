# Shared by the scripts of this folder; not a finding. Source it first.
# It makes a temporary folder ($WORK), which goes when the script ends, and offers:
#   npm_packages NAME@VERSION...      install from npm into $WORK
#   pip_packages NAME==VERSION...     install from PyPI into $WORK/venv ($PYTHON is its interpreter)
#   probe COMMAND...                  run with a time limit, in $WORK; what it prints is shown and kept
#   expect TITLE <<'END'              compare what the probes printed so far with the text, exit 1 if it differs
#   new_york_calendar                 write calendar.json: what stands before and after the lines of an event in New York's zone

WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT
PYTHON=$WORK/venv/bin/python
export TZ=UTC

npm_packages() {
    echo "npm: $*"
    (cd "$WORK" && echo '{"private":true}' > package.json &&
        timeout 300 npm install --silent --no-audit --no-fund --ignore-scripts --no-package-lock "$@")
}

pip_packages() {
    echo "PyPI: $*"
    [ -x "$PYTHON" ] || timeout 120 python3 -m venv "$WORK/venv"
    timeout 400 "$WORK/venv/bin/pip" install --quiet --disable-pip-version-check "$@"
}

probe() {
    local answer=0
    (cd "$WORK" && timeout 150 "$@" 2>"$WORK/errors") > "$WORK/part" || answer=$?
    if [ "$answer" -ne 0 ]; then
        cat "$WORK/errors" >&2
        echo "The probe ended with $answer: $*" >&2
        exit 1
    fi
    cat "$WORK/part"
    cat "$WORK/part" >> "$WORK/seen"
}

expect() {
    cat > "$WORK/expected"
    if diff -u --label recorded "$WORK/expected" --label now "$WORK/seen"; then
        echo "As recorded: $1"
    else
        echo "Changed: $1. Lines with - were recorded, lines with + are what happens now." >&2
        exit 1
    fi
    : > "$WORK/seen"
}

new_york_calendar() {
    cat > "$WORK/calendar.json" <<'END'
["BEGIN:VCALENDAR\nVERSION:2.0\nPRODID:test\nBEGIN:VTIMEZONE\nTZID:America/New_York\nBEGIN:DAYLIGHT\nDTSTART:20070311T020000\nRRULE:FREQ=YEARLY;BYMONTH=3;BYDAY=2SU\nTZOFFSETFROM:-0500\nTZOFFSETTO:-0400\nEND:DAYLIGHT\nBEGIN:STANDARD\nDTSTART:20071104T020000\nRRULE:FREQ=YEARLY;BYMONTH=11;BYDAY=1SU\nTZOFFSETFROM:-0400\nTZOFFSETTO:-0500\nEND:STANDARD\nEND:VTIMEZONE\nBEGIN:VEVENT\nUID:1\nDTSTAMP:20261101T000000Z\n",
 "\nEND:VEVENT\nEND:VCALENDAR\n"]
END
}
