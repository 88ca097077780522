"""The locks fix every dependency to one version, with hashes of the allowed files."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
LOCKS = ("requirements.txt", "lambdas/requirements.txt", "compare/requirements.txt")


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


@pytest.mark.long
def test_functions_start_without_the_sdk_of_xray() -> None:
    """Its support ends in February 2027. With the option `tracing` Lambda itself writes the segments of its invocations."""
    assert not {"aws-xray-sdk", "wrapt"} & locked("lambdas/requirements.txt").keys()
    verbs = sorted(path.stem for path in (ROOT / "lambdas").glob("[a-z]*.py"))
    code = f"import sys; sys.modules['aws_xray_sdk'] = None\nfor verb in {verbs}: __import__('lambdas.' + verb)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("folder", [".", "client-ts", "compare/node", "tests/parity/node"])
def test_every_npm_package_is_pinned_with_its_hash(folder: str) -> None:
    lock, wanted = (json.loads((ROOT / folder / name).read_text()) for name in ("package-lock.json", "package.json"))
    packages = {name: entry for name, entry in lock["packages"].items() if name}
    assert packages and [name for name, entry in packages.items() if not re.match(r"sha512-\S{80,}", entry.get("integrity", ""))] == []
    assert [name for name, entry in packages.items() if "resolved" in entry] == [], "a lock names no host"
    versions = [version for kind in wanted if kind.lower().endswith("dependencies") for version in wanted[kind].values()]
    assert versions and all(re.fullmatch(r"[0-9.]+", version) for version in versions)
