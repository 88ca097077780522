"""`punctual dev` before it starts anything: its folder, its commands, and what it refuses."""

import importlib
import importlib.util
import socket
import zoneinfo
from pathlib import Path
from typing import Any

import pytest

from local import server
from local.assembled import Assembly
from local.failure import Trouble
from local.home import Home

ROOT = Path(__file__).parents[2]


@pytest.fixture
def dev(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT / "server" / "src"))
    return importlib.import_module("punctual_server.dev")


def test_the_state_is_in_the_data_folder_of_the_user(dev: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert dev.home_of(None).root == tmp_path / "punctual" / "dev"
    assert dev.home_of(None).commands.reset == "punctual dev --reset"


def test_messages_name_the_folder_that_was_chosen(dev: Any, tmp_path: Path) -> None:
    chosen = tmp_path / "my {stack}"
    home = dev.home_of(chosen)
    assert home.root == chosen
    assert home.commands.run_at.format(port=5001) == f"punctual dev --home '{chosen}' --port 5001"


def test_a_port_in_use_is_refused_with_the_option(dev: Any, tmp_path: Path) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        taken = listener.getsockname()[1]
        with pytest.raises(Trouble, match=rf"Port {taken} is taken by another program.*--port \d+"):
            server.choose_port(dev.home_of(tmp_path), str(taken))


@pytest.mark.parametrize(("written", "refused"), [("0.1.0", False), ("0.0.9", False), ("", False), ("0.2.0", True), ("0.10.0rc1", True)])
def test_the_state_of_a_newer_version_is_refused_and_unchanged(dev: Any, tmp_path: Path, written: str, refused: bool) -> None:
    home = dev.home_of(tmp_path).create()
    home.settled.write(port=4566, **({"version": written} if written else {}))
    if not refused:
        dev.check_version(home, "0.1.0")
        return
    with pytest.raises(Trouble, match=rf"written by Punctual {written}.*Nothing was changed(.|\n)*--reset"):
        dev.check_version(home, "0.1.0")
    assert home.settled.read()["version"] == written


def test_a_python_without_zones_is_refused(dev: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    dev.check_python()

    def missing(key: str) -> zoneinfo.ZoneInfo:
        raise zoneinfo.ZoneInfoNotFoundError(key)

    monkeypatch.setattr(zoneinfo, "ZoneInfo", missing)
    with pytest.raises(Trouble, match="pip install tzdata"):
        dev.check_python()


def test_a_package_without_the_local_aws_is_refused(dev: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    with pytest.raises(Trouble, match=r"pip install 'punctual-client\[dev\]'"):
        dev.check_python()


def test_a_reset_deletes_the_state_and_nothing_else(tmp_path: Path) -> None:
    home = Home(tmp_path).create()
    home.settled.write(port=4566)
    mine = tmp_path / "thesis.txt"
    mine.write_text("mine")
    home.empty()
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_a_checkout_has_no_assembly_and_says_what_to_use(tmp_path: Path) -> None:
    with pytest.raises(Trouble, match="make run"):
        _ = Assembly(tmp_path).manifest
