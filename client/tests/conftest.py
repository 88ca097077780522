"""The fixtures of the client's tests."""

from __future__ import annotations

from pathlib import Path

import pytest
from fake_api import URL, Flavor

from punctual import profiles
from punctual.profiles import Profile


@pytest.fixture(params=["sync", "async"])
def flavor(request: pytest.FixtureRequest) -> Flavor:
    return Flavor(request.param)


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No test reads the environment or the profiles of the person who runs it."""
    names = ("URL", "TOKEN", "CLIENT_ID", "CLIENT_SECRET", "TOKEN_URL", "USERNAME", "PASSWORD", "PROFILE", "REPOSITORY")
    for name in names:
        monkeypatch.delenv(f"PUNCTUAL_{name}", raising=False)
    monkeypatch.setenv("PUNCTUAL_CONFIG", str(tmp_path / "profiles.json"))


@pytest.fixture
def signed_in() -> None:
    """The current profile is that of ann, at the address of the fake API."""
    profiles.save(Profile("default", URL, username="ann", token="t0"))
