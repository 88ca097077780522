"""The state that the local AWS saves when it stops: all services at once, by MiniStack's own functions."""

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ministack.core import persistence
from ministack.services import cloudformation, lambda_svc

from local import emulator, state
from local.home import Home


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "aws").create()


@pytest.fixture
def save(home: Home, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, dict[str, Any]], None]:
    """Return a function that saves services while the stack has a status."""
    monkeypatch.setattr(persistence, "PERSIST_STATE", True)
    monkeypatch.setattr(persistence, "STATE_DIR", str(home.state))
    monkeypatch.setattr(lambda_svc, "CODE_BLOB_DIR", str(home.state / "lambda-blobs"))
    monkeypatch.setattr(lambda_svc, "_prune_orphan_code_blobs", lambda_svc._prune_orphan_code_blobs)
    (home.state / "lambda-blobs").mkdir()

    def run(status: str, services: dict[str, Any]) -> None:
        stacks = {("0", "us-east-1", "punctual"): {"StackName": "punctual", "StackStatus": status}}
        monkeypatch.setattr(cloudformation, "_stacks", SimpleNamespace(_data=stacks))
        emulator._save_as_one(home, persistence.save_all)({name: lambda content=content: content for name, content in services.items()})

    return run


def test_ministack_still_saves_by_the_functions_that_are_wrapped() -> None:
    text = Path(persistence.__file__).parents[1].joinpath("app.py").read_text()
    assert "from ministack.core.persistence import PERSIST_STATE, load_state, save_all" in text
    assert "save_all(_build_persistence_save_dict())" in text


def test_the_services_are_saved_together(home: Home, save: Callable[[str, dict[str, Any]], None]) -> None:
    save("CREATE_COMPLETE", {"sqs": {"a": 1}, "ssm": {"b": 2}, "iam": None})
    assert sorted(path.name for path in home.saved.iterdir()) == ["sqs.json", "ssm.json"]
    assert list(home.state.glob("*.json")) == []
    state.mend(home, 4566)
    assert json.loads((home.state / "ssm.json").read_text())["payload"] == {"b": 2}


@pytest.mark.parametrize("status", ["CREATE_IN_PROGRESS", "UPDATE_IN_PROGRESS", "UPDATE_ROLLBACK_IN_PROGRESS"])
def test_a_half_deployed_stack_is_not_saved(home: Home, save: Callable[[str, dict[str, Any]], None], status: str) -> None:
    save(status, {"sqs": {"a": 1}})
    assert not home.saved.exists()


def test_a_service_that_cannot_be_saved_keeps_the_state_before(home: Home, save: Callable[[str, dict[str, Any]], None]) -> None:
    save("CREATE_COMPLETE", {"sqs": {"a": 1}, "ssm": {"b": object()}})  # MiniStack logs the error and goes on
    assert not home.saved.exists()


@pytest.mark.usefixtures("save")
def test_code_is_deleted_only_after_the_state_that_needed_it(home: Home) -> None:
    blob = home.state / "lambda-blobs" / "old.zip"
    blob.touch()
    seen: list[bool] = []

    def pruned() -> dict[str, Any]:
        lambda_svc._prune_orphan_code_blobs(set())
        seen.append(blob.exists())
        return {}

    emulator._save_as_one(home, persistence.save_all)({"lambda": pruned})
    assert seen == [True] and not blob.exists()
