"""Applies search/replace blocks with aider-chat. One JSON object a line comes in, one goes out.

In:  {"path", "before", "edit"}: a file, and an answer of a model with blocks.
Out: {"ok", "text", "nanoseconds", "with_file", "why"}: the file afterwards. `nanoseconds` is the time of the function
     `do_replace` for all blocks, text to text, the best of three runs. `with_file` is that of `apply_edits`, which reads
     the file and writes it.
"""

import json
import os
import sys
import tempfile
import time

try:
    from aider.coders.editblock_coder import EditBlockCoder, do_replace
    from aider.io import InputOutput
except ImportError as error:
    print(json.dumps({"missing": str(error)}), flush=True)
    sys.exit(0)

from importlib.metadata import version

print(json.dumps({"version": version("aider-chat")}), flush=True)
answers = sys.stdout
sys.stdout = sys.stderr

with tempfile.TemporaryDirectory() as folder:
    for line in sys.stdin:
        case = json.loads(line)
        name = os.path.join(folder, case["path"])
        os.makedirs(os.path.dirname(name), exist_ok=True)
        with open(name, "wb") as file:
            file.write(case["before"].encode())
        # The class asks for a model when it is made. Only what edits need is set.
        coder = EditBlockCoder.__new__(EditBlockCoder)
        coder.io = InputOutput(pretty=False, yes=True)
        coder.root = folder
        coder.abs_fnames = {name}
        coder.abs_root_path_cache = {}
        coder.fence = ("```", "```")
        coder.shell_commands = []
        coder.partial_response_content = case["edit"]
        answer = {"ok": True, "why": ""}
        try:
            edits = coder.get_edits()
            content = coder.io.read_text(name)
            times = []
            for _ in range(3):
                text = content
                start = time.perf_counter_ns()
                for _, old, new in edits:
                    text = do_replace(name, text, old, new, coder.fence)
                times.append(time.perf_counter_ns() - start)
            answer["nanoseconds"] = min(times)
            start = time.perf_counter_ns()
            coder.apply_edits(edits)
            answer["with_file"] = time.perf_counter_ns() - start
        except ValueError as error:
            answer["ok"] = False
            answer["why"] = str(error).split("\n")[0]
        with open(name, "rb") as file:
            answer["text"] = file.read().decode()
        print(json.dumps(answer), file=answers, flush=True)
