"""The current template: neither our rules nor cfn-lint and checkov report a fault."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import rules
from sources import Repo
from template import TEMPLATE, Stack, repeated_keys

REGIONS = ["us-east-1", "eu-central-1", "ap-southeast-2"]

# Checks of checkov that this platform does not follow, each with the reason.
SKIPPED = {
    "CKV_AWS_18": "access logs of the bucket cost money per request; CloudTrail's data events can be enabled if needed",
    "CKV_AWS_26": "CloudWatch may not use the AWS-managed key, and a customer-managed key costs money every month; alarms contain no secrets",
    "CKV_AWS_27": "SQS encrypts the queues itself (SqsManagedSseEnabled), which the check does not recognise",
    "CKV_AWS_73": "X-Ray is off: its SDK is no longer developed, and traceparent goes through",
    "CKV_AWS_76": "access logs need an account-wide role, which a stack must not set; functions log every request",
    "CKV_AWS_115": "a new account's concurrency is too small to reserve from; MaximumConcurrency bounds the executors",
    "CKV_AWS_116": "only the sweep is called asynchronously, and its next call repeats what failed",
    "CKV_AWS_117": "the functions call nothing in a private network; a VPC would need a NAT gateway, which costs money per hour",
    "CKV_AWS_119": "DynamoDB encrypts with a key of its own, which is free; a key of the account costs by the month or by the call",
    "CKV_AWS_120": "a cache costs money per hour, and responses differ by caller",
    "CKV_AWS_158": "logs hold no bodies and no secrets, and are encrypted by CloudWatch itself",
    "CKV_AWS_173": "the environment is encrypted with the AWS-managed key",
}


@pytest.fixture(scope="session")
def file(translated: dict, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("translated") / "template.json"
    path.write_text(json.dumps(translated))
    return path


def run(*command: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)


def test_our_rules_find_no_fault(stack: Stack, repo: Repo) -> None:
    found = rules.faults(stack, repo)
    assert not found, "\n".join(["", *found])


def test_no_key_is_repeated() -> None:
    text = TEMPLATE.read_text()
    assert repeated_keys(text) == []
    twice = text.replace("    Timeout: 28\n", "    Timeout: 28\n    Timeout: 29\n", 1)
    assert [sentence.split(": ")[1] for sentence in repeated_keys(twice)] == ["Timeout is there twice"]


def test_cfn_lint_finds_no_fault_in_the_source() -> None:
    told = run(Path(sys.executable).parent / "cfn-lint", "--template", TEMPLATE, "--regions", *REGIONS)
    assert told.returncode == 0, told.stdout + told.stderr


def test_cfn_lint_finds_no_fault(file: Path) -> None:
    told = run(Path(sys.executable).parent / "cfn-lint", "--template", file, "--regions", *REGIONS)
    assert told.returncode == 0, told.stdout + told.stderr


def test_checkov_reports_only_the_skipped_checks(stack: Stack, tmp_path: Path) -> None:
    # Its checks of CloudFormation do not read the paths of the document, but with them it takes nine times as long.
    stack.api["Body"]["paths"] = {}
    bare = tmp_path / "template.json"
    bare.write_text(json.dumps(stack.template))
    told = run(
        Path(sys.executable).parent / "checkov",
        *("--file", bare, "--framework", "cloudformation", "--output", "json", "--skip-download", "--compact"),
    )
    report = json.loads(told.stdout)
    assert report["summary"]["passed"] > 100, "checkov looked at the template"
    failed = {check["check_id"]: check for check in report["results"]["failed_checks"]}
    new = [f"{id}: {failed[id]['check_name']} ({failed[id]['resource']})" for id in sorted(failed.keys() - SKIPPED)]
    assert not new, "\n".join(["", *new])
    assert failed.keys() == SKIPPED.keys(), "a check that no longer fails needs no reason: remove it from SKIPPED"


def test_cloudformation_accepts_it(translated: dict, file: Path) -> None:
    assert len(translated["Resources"]) <= 500
    assert len(translated["Parameters"]) <= 200
    assert file.stat().st_size <= 1_000_000, "the largest template that CloudFormation reads from S3"
    for name, resource in translated["Resources"].items():
        if resource["Type"] == "AWS::Lambda::Function":
            policy = [
                p
                for p in translated["Resources"].values()
                if p["Type"] == "AWS::Lambda::Permission" and p["Properties"]["FunctionName"] == {"Ref": name}
            ]
            # The limit for a function's policy is 20 KB.
            assert sum(len(json.dumps(p["Properties"])) + 150 for p in policy) < 20_480, name
