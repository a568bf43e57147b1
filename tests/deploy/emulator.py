"""MiniStack: AWS's services on this machine, with IAM enforced, and the functions as processes."""

import os
import socket
import subprocess
import time
import urllib.request
from pathlib import Path

import boto3
from botocore.config import Config

REGION = "us-east-1"
# The emulator treats these as the credentials of the account.
ROOT = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_DEFAULT_REGION": REGION}
# The services that the functions call. These are variables of the AWS SDKs. The emulator passes its own environment to the functions.
SERVICES = ("DYNAMODB", "S3", "EVENTBRIDGE", "SCHEDULER", "SQS", "SSM")


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Emulator:
    def __init__(self, program: Path, folder: Path):
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.log = folder / "ministack.log"
        self.endpoints = {f"AWS_ENDPOINT_URL_{service}": self.url for service in SERVICES}
        for name in ("s3", "tmp"):
            (folder / name).mkdir()
        environment = {
            "PATH": os.environ["PATH"],
            "AUTH": "true",
            "BIND_HOST": "127.0.0.1",
            "GATEWAY_PORT": str(self.port),
            "MINISTACK_REGION": REGION,
            "S3_DATA_DIR": str(folder / "s3"),
            "TMPDIR": str(folder / "tmp"),
            **self.endpoints,
        }
        with self.log.open("w") as log:
            self.process = subprocess.Popen([program], env=environment, cwd=folder, stdout=log, stderr=log)
        self.wait()

    def wait(self) -> None:
        until = time.monotonic() + 60
        while time.monotonic() < until:
            if self.process.poll() is not None:
                break
            try:
                urllib.request.urlopen(f"{self.url}/_ministack/health", timeout=2)
                return
            except OSError:
                time.sleep(0.2)
        raise AssertionError(f"MiniStack does not answer:\n{self.log.read_text()[-4000:]}")

    def client(self, service: str, keys: dict[str, str] = ROOT):
        """A client of a service, for the account itself or for the holder of these keys."""
        return boto3.client(
            service,
            endpoint_url=self.url,
            region_name=REGION,
            aws_access_key_id=keys["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=keys["AWS_SECRET_ACCESS_KEY"],
            aws_session_token=keys.get("AWS_SESSION_TOKEN"),
            config=Config(retries={"max_attempts": 1}, read_timeout=300, s3={"addressing_style": "path"}),
        )

    def stop(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
