#!/usr/bin/env bash
# Guess:    a `Queue("name")` stands at module level, as in DBOS's older examples; a step declared with `retries_allowed=True`
#           is retried wherever it is called; a workflow that is started with an id which is taken, and other arguments, is an error.
# Reality:  - `Queue(...)` raises in 3.4: queues are declared by `DBOS.register_queue`, and that raises before `DBOS.launch()`, so a queue
#             can't be declared when a module is imported.
#           - Outside a workflow, a step is a plain function: one attempt, no retry, nothing stored, no warning.
#           - The same id with other arguments is not an error: it answers with the first call's result, although the arguments of the first call
#             are stored. Only another *function* under the same id is an error. A failed workflow answers with its
#             old error again, so calling it again with its id is no retry.
# Versions: dbos 3.4.0 (PyPI), on SQLite.
# Why:      an id such as "report-42" that leaves out one argument gives Tuesday's reader Monday's report, as a success.
# Seen:     2026-11-29, the text at the end of this script.
set -euo pipefail
. "$(dirname "$0")/common.sh"
pip_packages dbos==3.4.0

cat > "$WORK/probe.py" <<'END'
import logging
from dbos import DBOS, Queue, SetWorkflowID

def show(what, call):
    try:
        print(f"{what}: {call()}")
    except Exception as error:
        print(f"{what}: {type(error).__name__}")

show("Queue at module level", lambda: Queue("mails"))
DBOS(config={"name": "findings", "system_database_url": "sqlite:///state.sqlite", "run_admin_server": False, "log_level": "CRITICAL"})
show("register_queue before launch", lambda: DBOS.register_queue("mails"))
attempts = []

@DBOS.step(retries_allowed=True, max_attempts=3, interval_seconds=0.01)
def fetch():
    attempts.append(1)
    raise ConnectionError("down")

@DBOS.workflow()
def within():
    fetch()

@DBOS.workflow()
def report(day):
    return "report of " + day

@DBOS.workflow()
def broken(day):
    raise ValueError("no data for " + day)

def with_id(name, function, *arguments):
    with SetWorkflowID(name):
        return function(*arguments)

DBOS.launch()
show("register_queue after launch", lambda: type(DBOS.register_queue("mails")).__name__)
show("step in a workflow", within)
print("attempts:", len(attempts))
attempts.clear()
show("step outside a workflow", fetch)
print("attempts:", len(attempts))
show("report-1, Monday", lambda: with_id("report-1", report, "Monday"))
show("report-1, Tuesday", lambda: with_id("report-1", report, "Tuesday"))
show("report-1, another function", lambda: with_id("report-1", broken, "Monday"))
for day in ("Monday", "Tuesday"):
    try:
        with_id("broken-1", broken, day)
    except ValueError as error:
        print(f"broken-1, {day}: {error}")
DBOS.destroy()
END
probe "$PYTHON" probe.py

expect "queues after launch only, steps outside a workflow are not retried, an id answers for other arguments" <<'END'
Queue at module level: DBOSException
register_queue before launch: DBOSException
register_queue after launch: Queue
step in a workflow: DBOSMaxStepRetriesExceeded
attempts: 3
step outside a workflow: ConnectionError
attempts: 1
report-1, Monday: report of Monday
report-1, Tuesday: report of Monday
report-1, another function: DBOSConflictingWorkflowError
broken-1, Monday: no data for Monday
broken-1, Tuesday: no data for Monday
END
