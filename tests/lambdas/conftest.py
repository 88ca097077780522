from collections.abc import Iterator

import pytest

from lambdas import _runtime
from tests.lambdas.gateway import World


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """The ports of the API, in memory."""
    made = World()
    monkeypatch.setattr(_runtime, "api", lambda: made)
    yield made
