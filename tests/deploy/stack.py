"""The template, deployed by SAM CLI with the binaries of this build."""

import os
import re
import shutil
import subprocess
from pathlib import Path

from emulator import ROOT, Emulator

ROOT_FOLDER = Path(__file__).resolve().parents[2]
NAME = "lamplighter"


def adapted(text: str, functions: Path) -> str:
    """The template in a form that the emulator accepts. The differences and their reasons:

    - code: debug binaries of this machine's processor, from a folder of their own;
    - MaximumConcurrency: the emulator accepts a number but no reference;
    - the bucket's policy: it refuses plain HTTP, and the emulator only supports plain HTTP;
    - the first user of the pool: the emulator does not know this type of resource;
    - sqs:SendMessage: on AWS it also allows SendMessageBatch, but the emulator requires an action of that name.
    """

    def replaced(pattern: str, by: str, text: str) -> str:
        changed, count = re.subn(pattern, by, text)
        assert count, f"the template has no {pattern}"
        return changed

    text = replaced(r"CodeUri: \.\./target/lambda/", f"CodeUri: {functions}/", text)
    text = replaced(r"MaximumConcurrency: !Ref Maximum\w+", "MaximumConcurrency: 2", text)
    send = "Action: sqs:SendMessage, Resource: !GetAtt Queue.Arn"
    text = replaced(send, "Action: [sqs:SendMessage, sqs:SendMessageBatch], Resource: !GetAtt Queue.Arn", text)
    text = replaced(r"(?ms)^  FirstUser:\n.*?(?=^  \S)", "", text)
    return replaced(r"(?ms)^  BucketPolicy:\n.*?(?=^  \S)", "", text)


def lay_out(binaries: Path, functions: Path) -> None:
    """`{function}/bootstrap`, as Lambda requires it, without symbols: a tenth of the size."""
    for source in sorted((ROOT_FOLDER / "functions").glob("*/src/main.rs")):
        name = source.parts[-3]
        folder = functions / name
        folder.mkdir(parents=True)
        shutil.copy(binaries / name, folder / "bootstrap")
        subprocess.run(["strip", folder / "bootstrap"], check=True)


def quoted(value: str) -> str:
    """A value as SAM CLI reads it: JSON loses its quotes otherwise."""
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"' if '"' in value else value


class Stack:
    def __init__(self, emulator: Emulator, sam: Path, binaries: Path, folder: Path, parameters: dict[str, str]):
        self.emulator, self.sam, self.folder = emulator, sam, folder
        functions = folder / "functions"
        lay_out(binaries, functions)
        self.template = folder / "template.yaml"
        self.template.write_text(adapted((ROOT_FOLDER / "infra/template.yaml").read_text(), functions))
        overrides = [f"{name}={quoted(value)}" for name, value in parameters.items()]
        self.run(
            "deploy", "--template", self.template, "--stack-name", NAME, "--resolve-s3", "--no-progressbar",
            "--capabilities", "CAPABILITY_IAM", "--parameter-overrides", *overrides,
        )  # fmt: skip
        (described,) = emulator.client("cloudformation").describe_stacks(StackName=NAME)["Stacks"]
        self.outputs = {output["OutputKey"]: output["OutputValue"] for output in described["Outputs"]}

    def run(self, *command: str | Path) -> None:
        environment = {**os.environ, **ROOT, "AWS_ENDPOINT_URL": self.emulator.url, "SAM_CLI_TELEMETRY": "0"}
        told = subprocess.run(
            [str(self.sam), *map(str, command)], env=environment, cwd=self.folder, capture_output=True, text=True
        )
        assert told.returncode == 0, f"sam {command[0]}:\n{told.stdout[-6000:]}\n{told.stderr[-3000:]}"

    def delete(self) -> None:
        self.run("delete", "--stack-name", NAME, "--no-prompts", "--region", ROOT["AWS_DEFAULT_REGION"])
