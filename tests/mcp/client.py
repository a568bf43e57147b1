"""A sequence of calls, with the official Python client: python client.py URL WORKFLOW MODE SEQUENCE

MODE is `auto` (the newest version that the server supports) or `legacy` (the versions with a handshake). Prints how many calls
were made, and every answer that differs. If one differs, the exit status is 1.
"""

import asyncio
import json
import re
import sys
from pathlib import Path
from typing import Any

from mcp.client.client import Client
from mcp.shared.exceptions import MCPError

URL, WORKFLOW, MODE, SEQUENCE = sys.argv[1:]
STEPS = json.loads((Path(__file__).parent / SEQUENCE).read_text())

known: dict[str, str] = {"workflow": WORKFLOW}
calls = 0
differences: list[dict[str, Any]] = []


def filled(value: Any, index: int | None = None) -> Any:
    if isinstance(value, str):
        value = re.sub(r"\$(\w+)", lambda found: known.get(found[1], found[0]), value)
        return value if index is None else value.replace("#", str(index))
    if isinstance(value, list):
        return [filled(item, index) for item in value]
    if isinstance(value, dict):
        return {key: filled(item, index) for key, item in value.items()}
    return value


def at(value: Any, pointer: str) -> Any:
    for key in pointer.split("/")[1:]:
        value = value[int(key)] if isinstance(value, list) else (value or {}).get(key)
    return value


def expect(step: dict[str, Any], what: str, found: Any, wanted: Any) -> None:
    if found != wanted:
        differences.append({"step": step, "what": what, "found": found, "wanted": wanted})


async def tool(client: Client, step: dict[str, Any], index: int | None) -> None:
    global calls
    calls += 1
    result = await client.call_tool(step["call"], filled(step["with"], index))
    text = result.content[0].text
    if "fails" in step:
        expect(step, "is_error", [result.is_error, text], [True, step["fails"]])
        return
    if result.is_error:
        differences.append({"step": step, "error": text})
        return
    expect(step, "text", json.loads(text), result.structured_content)
    for pointer, wanted in step["gives"].items():
        expect(step, pointer, at(result.structured_content, pointer), filled(wanted))
    for name, pointer in step.get("keep", {}).items():
        known[name] = at(result.structured_content, pointer)


async def listed(client: Client, kind: str) -> list[str]:
    match kind:
        case "tools":
            return [tool.name for tool in (await client.list_tools()).tools]
        case "prompts":
            return [prompt.name for prompt in (await client.list_prompts()).prompts]
    return [str(resource.uri) for resource in (await client.list_resources()).resources]


async def is_refused(client: Client, method: str, name: str) -> bool:
    try:
        match method:
            case "tools/call":
                await client.call_tool(name, {})
            case "prompts/get":
                await client.get_prompt(name, {})
            case _:
                await client.read_resource(name)
    except MCPError:
        return True
    return False


async def run(client: Client, step: dict[str, Any]) -> None:
    global calls
    if "call" in step:
        times = range(step["times"]) if "times" in step else [None]
        await asyncio.gather(*(tool(client, step, index) for index in times))
        return
    calls += 1
    if "list" in step:
        found = await listed(client, step["list"])
        for name in filled(step["has"]):
            expect(step, name, name in found, True)
        for name in step.get("lacks", []):
            expect(step, name, name in found, False)
    elif "prompt" in step:
        prompt = await client.get_prompt(step["prompt"], step["with"])
        expect(step, "prompt", prompt.messages[0].content.text.startswith(step["begins"]), True)
    elif "resource" in step:
        resource = await client.read_resource(filled(step["resource"]))
        expect(step, "resource", step["has"] in resource.contents[0].text, True)
    else:
        expect(step, "refused", await is_refused(client, step["refused"], step["with"]), True)


async def main() -> int:
    async with Client(URL, mode=MODE) as client:
        for step in STEPS:
            await run(client, step)
    for difference in differences:
        print(json.dumps(difference, ensure_ascii=False))
    print(f"{calls} calls, {len(differences)} differences")
    return 0 if not differences else 1


sys.exit(asyncio.run(main()))
