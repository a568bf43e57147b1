"""The template is translated once. Tests that change it use a copy."""

import copy

import pytest

from sources import Repo
from template import Stack, source, translate


@pytest.fixture(scope="session")
def translated() -> dict:
    return translate(source())


@pytest.fixture
def stack(translated: dict) -> Stack:
    return Stack(copy.deepcopy(translated))


@pytest.fixture
def repo() -> Repo:
    return Repo()
