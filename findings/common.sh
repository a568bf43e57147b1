# Shared by the scripts of this folder; not a finding. Source it first.
# It makes a temporary folder ($WORK), which goes when the script ends, and offers:
#   npm_packages NAME@VERSION...      install from npm into $WORK
#   pip_packages NAME==VERSION...     install from PyPI into $WORK/venv ($PYTHON is its interpreter)
#   probe COMMAND...                  run with a time limit, in $WORK; what it prints is shown and kept
#   expect TITLE <<'END'              compare what the probes printed so far with the text, exit 1 if it differs

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
