"""The distributions: one version, the metadata of an index, the extras, and the lines that install them."""

import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import punctual
import pytest

import scheduler

ROOT = Path(__file__).resolve().parents[1]
INSTALLS = re.compile(r"pip install [^\n`]*?(?:punctual-client|\./client)(?:\[([a-z,]+)\])?")
COMMAND = re.compile(r"(?:^|run: |\n)punctual [a-z]", re.MULTILINE)


def project(file: str) -> dict[str, Any]:
    found: dict[str, Any] = tomllib.loads((ROOT / file).read_text())["project"]
    return found


CLIENT = project("client/pyproject.toml")
EXTRAS: dict[str, list[str]] = CLIENT["optional-dependencies"]
BUILT = sorted(str(path.relative_to(ROOT)) for path in ROOT.glob("*/pyproject.toml"))


def test_there_is_one_version() -> None:
    versions = {file: project(file)["version"] for file in ("pyproject.toml", *BUILT)}
    versions |= {"scheduler": scheduler.VERSION, "punctual": punctual.__version__}
    assert set(versions.values()) == {CLIENT["version"]}, versions


def test_the_changelog_begins_with_this_version() -> None:
    headings = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert headings[0] == CLIENT["version"]


def test_a_program_installs_httpx_alone() -> None:
    assert [re.split("[<>=]", each)[0] for each in CLIENT["dependencies"]] == ["httpx"]


def test_the_server_has_the_version_of_the_client() -> None:
    for extra in ("dev", "testing"):
        assert f"punctual-server[{extra}]=={CLIENT['version']}" in EXTRAS[extra]
    assert "punctual-client[cli]" in EXTRAS["dev"], "`punctual dev` is a command"


@pytest.mark.parametrize("file", BUILT)
def test_a_distribution_pins_the_other_to_its_own_version(file: str) -> None:
    extras = project(file).get("optional-dependencies", {}).values()
    pins = [each for extra in extras for each in (*extra, *project(file)["dependencies"]) if each.startswith("punctual-") and "==" in each]
    assert {each.partition("==")[2] for each in pins} <= {CLIENT["version"]}, pins


@pytest.mark.parametrize("file", BUILT)
def test_an_index_shows_where_a_distribution_comes_from(file: str) -> None:
    found = project(file)
    assert {"Documentation", "Source", "Changelog", "Issues"} <= found["urls"].keys()
    assert all(url.startswith("https://") for url in found["urls"].values())
    assert found["authors"] and found["license"] == "Apache-2.0"
    assert all((ROOT / file).with_name(name).is_file() for name in (found["readme"], *found["license-files"]))


def installations() -> dict[str, list[str]]:
    """The extras of each line that installs the client, by file of the documentation."""
    listed = subprocess.run(["git", "ls-files", "-z", "*.md", "*.yml"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    texts = {name: (ROOT / name).read_text() for name in listed.split("\0") if name and (ROOT / name).is_file()}
    return {name: found for name, text in texts.items() if (found := INSTALLS.findall(text))}


def test_a_page_with_the_command_installs_the_command_line() -> None:
    found = installations()
    assert len(found) >= 5
    assert {extra for extras in found.values() for each in extras for extra in each.split(",") if extra} <= EXTRAS.keys()
    for name, extras in found.items():
        if COMMAND.search((ROOT / name).read_text()):
            assert any("cli" in each.split(",") or "dev" in each.split(",") for each in extras), name
