"""The npm package in client-ts: its version, its tools, and what it installs."""

import json
import re
from pathlib import Path
from typing import Any

import punctual
import pytest

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "client-ts"


def package(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "package.json").read_text())
    return found


def test_the_typescript_client_has_the_version_of_the_python_client() -> None:
    lock = json.loads((FOLDER / "package-lock.json").read_text())
    assert {package(FOLDER)["version"], lock["version"], lock["packages"][""]["version"]} == {punctual.__version__}


def test_a_program_installs_no_other_package() -> None:
    assert not {kind for kind in package(FOLDER) if kind.lower().endswith("dependencies")} - {"devDependencies"}


def test_a_tool_of_the_client_is_the_one_of_the_console() -> None:
    """`make client-ts` uses the packages of the console, so that they are installed once."""
    assert package(FOLDER)["devDependencies"].items() <= package(ROOT / "console")["devDependencies"].items()


def test_a_package_has_its_license_and_its_readme() -> None:
    assert (FOLDER / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()
    assert package(FOLDER)["license"] == "Apache-2.0"


@pytest.mark.parametrize("page", ["client-ts/README.md", "docs/guides/typescript.md"])
def test_a_page_installs_the_file_that_npm_packs(page: str) -> None:
    name, version = package(FOLDER)["name"], package(FOLDER)["version"]
    assert set(re.findall(r"client-ts/([\w.-]+\.tgz)", (ROOT / page).read_text())) == {f"{name}-{version}.tgz"}
