import logging
from collections.abc import Iterator

import pytest

from lambdas import _runtime
from lambdas._logger import logger
from tests.lambdas.gateway import World


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """The ports of the API, in memory."""
    made = World()
    monkeypatch.setattr(_runtime, "api", lambda: made)
    yield made


@pytest.fixture
def logged(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    """The lines that handlers log themselves: their logger passes nothing on to the root."""
    level = logger._logger.level
    logger._logger.addHandler(caplog.handler)
    logger._logger.setLevel(logging.INFO)
    yield caplog
    logger._logger.setLevel(level)
    logger._logger.removeHandler(caplog.handler)
