"""The fixtures of the client's tests."""

from __future__ import annotations

from pathlib import Path

import pytest
from fake_api import URL, Flavor

from punctual import profiles
from punctual._sync.transport import Clock
from punctual.profiles import Profile


@pytest.fixture(params=["sync", "async"])
def flavor(request: pytest.FixtureRequest) -> Flavor:
    return Flavor(request.param)


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No test reads the environment or the profiles of the person who runs it."""
    names = ("URL", "KEY", "TOKEN", "USERNAME", "PASSWORD", "OWNER", "PROFILE", "AUTH", "REPOSITORY")
    for name in names:
        monkeypatch.delenv(f"PUNCTUAL_{name}", raising=False)
    monkeypatch.setenv("PUNCTUAL_CONFIG", str(tmp_path / "profiles.json"))


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test waits before it repeats a request. Tests of the pauses give the client a clock of their own."""
    monkeypatch.setattr(Clock, "sleep", lambda _clock, _seconds: None)


@pytest.fixture
def signed_in() -> None:
    """The current profile is that of ann, at the address of the fake API."""
    profiles.save(Profile("default", URL, username="ann", token="t0"))
