"""The locks fix every dependency to one version, with hashes of the allowed files."""

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
LOCKS = ("requirements.txt", "lambdas/requirements.txt")


def locked(name: str) -> dict[str, tuple[str, int]]:
    """Return version and number of hashes of each package in a lock."""
    text = (ROOT / name).read_text().replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    found = {}
    for line in lines:
        match = re.match(r"([a-z0-9_.-]+)(?:\[[a-z0-9,-]+\])?==([^\s;]+)", line)
        assert match is not None, f"not pinned to one version: {line[:80]}"
        found[match[1]] = match[2], len(re.findall(r"--hash=sha256:[0-9a-f]{64}", line))
    return found


@pytest.mark.parametrize("name", LOCKS)
def test_every_python_package_is_pinned_with_hashes(name: str) -> None:
    packages = locked(name)
    assert len(packages) > 10
    assert [package for package, (_, hashes) in packages.items() if hashes == 0] == []


def test_functions_get_the_tested_versions() -> None:
    tested = locked("requirements.txt")
    assert {package: version for package, (version, _) in locked("lambdas/requirements.txt").items()}.items() <= {
        package: version for package, (version, _) in tested.items()
    }.items()


def test_every_npm_package_is_pinned_with_its_hash() -> None:
    packages = {name: entry for name, entry in json.loads((ROOT / "package-lock.json").read_text())["packages"].items() if name}
    assert packages and [name for name, entry in packages.items() if not re.match(r"sha512-\S{80,}", entry.get("integrity", ""))] == []
    wanted = json.loads((ROOT / "package.json").read_text())["devDependencies"].values()
    assert all(re.fullmatch(r"[0-9.]+", version) for version in wanted)
