"""One run of six stored steps in DBOS on SQLite: claim, model, save, model, check, finish. See main.rs.

python dbos_runs.py RUNS MODEL_URL. Prints one line of JSON.
"""

import json
import os
import resource
import sys
import tempfile
import threading
import time
import urllib.request
from pathlib import Path

from dbos import DBOS

RUNS, MODEL = int(sys.argv[1]), sys.argv[2]

began: dict[str, float] = {}
lock = threading.Lock()


@DBOS.step()
def claim(name: str) -> dict:
    return {"id": name}


@DBOS.step()
def ask(body: dict) -> dict:
    request = urllib.request.Request(
        f"{MODEL}/chat/completions", json.dumps(body).encode(), {"content-type": "application/json"}
    )
    with urllib.request.urlopen(request) as answer:
        # The first event of the stream has the whole message.
        return json.loads(answer.read().split(b"\n\n")[0].removeprefix(b"data: "))["choices"][0]["delta"]


@DBOS.step()
def save() -> dict:
    return {"role": "tool", "tool_call_id": "call", "content": "saved"}


@DBOS.step()
def finish(name: str) -> dict:
    return {"id": name}


@DBOS.workflow()
def run(name: str) -> None:
    with lock:
        began.setdefault(name, time.monotonic())
    messages = [{"role": "user", "content": "Do it"}]
    claim(name)
    messages.append(ask({"messages": messages}))
    messages.append(save())
    messages.append(ask({"messages": messages}))
    ask({"messages": [{"role": "user", "content": "check"}]})
    finish(name)


def processor() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def size(folder: Path) -> int:
    return sum(entry.stat().st_blocks * 512 for entry in folder.rglob("*") if entry.is_file())


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="dbos-") as folder:
        data = Path(folder)
        DBOS(
            config={
                "name": "bench",
                "system_database_url": f"sqlite:///{data / 'dbos.sqlite'}",
                "run_admin_server": False,
                "log_level": "ERROR",
            }
        )
        DBOS.launch()
        queue = DBOS.register_queue("runs", worker_concurrency=100, polling_interval_sec=0.05)
        bytes_before, processor_before, start = size(data), processor(), time.monotonic()
        handles = [queue.enqueue(run, f"run-{n}") for n in range(RUNS)]
        for handle in handles:
            handle.get_result(polling_interval_sec=0.05)
        seconds = time.monotonic() - start
        print(
            json.dumps(
                {
                    "seconds": seconds,
                    "delays": [at - start for at in began.values()],
                    "processor": processor() - processor_before,
                    "bytes": size(data) - bytes_before,
                }
            ),
            flush=True,
        )
        os._exit(0)


if __name__ == "__main__":
    main()
