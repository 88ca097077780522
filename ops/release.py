"""Check a release, and print its notes.

python -m ops.release check --tag v0.2.0 --repository OWNER/NAME    whether tag, versions, changelog and URLs agree
python -m ops.release notes                                         the notes of this version
"""

import argparse
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

from local.failure import Trouble, exit_code
from local.home import REPOSITORY
from scheduler import VERSION

NOTES = "docs/reference/release-notes.md"
UNRELEASED = "(not released yet)"


def main() -> int:
    parser = argparse.ArgumentParser(prog="ops.release", description="Check a release, or print its notes.")
    steps = parser.add_subparsers(dest="step", required=True)
    check = steps.add_parser("check", help="fail if tag, versions, changelog and URLs do not agree")
    check.add_argument("--tag", required=True, help="such as v0.2.0")
    check.add_argument("--repository", required=True, help="OWNER/NAME on GitHub")
    steps.add_parser("notes", help="print the release notes of this version")
    arguments = parser.parse_args()
    if arguments.step == "notes":
        sys.stdout.write(notes())
    elif found := list(problems(arguments.tag, arguments.repository)):
        raise Trouble("\n".join([*found, "Nothing is built or published."]))
    return 0


def problems(tag: str, repository: str, root: Path = REPOSITORY) -> Iterator[str]:
    """Yield a sentence for each thing that does not agree with the tag or the repository."""
    if tag != f"v{VERSION}":
        yield f"The tag is {tag}, and the version is {VERSION}."
    for file in (root / "pyproject.toml", *sorted(root.glob("*/pyproject.toml"))):
        project, name = tomllib.loads(file.read_text())["project"], file.relative_to(root)
        if project["version"] != VERSION:
            yield f"{name} has the version {project['version']}, not {VERSION}."
        strangers = [url for url in project.get("urls", {}).values() if not _belongs(url, repository)]
        if strangers:
            yield f"{name} names another repository than {repository}: {', '.join(strangers)}."
    heading = _heading((root / "CHANGELOG.md").read_text())
    if heading != VERSION:
        yield f"CHANGELOG.md begins with {heading!r}, not with {VERSION!r}. Remove {UNRELEASED} when you make the release."
    if not notes(root):
        yield f"{NOTES} has no section {VERSION}."


def notes(root: Path = REPOSITORY) -> str:
    """Return the notes of this version, without their heading; empty if there are none."""
    found = re.search(rf"^## {re.escape(VERSION)}\n+(.*?)(?=^## |\Z)", (root / NOTES).read_text(), re.MULTILINE | re.DOTALL)
    return found[1] if found else ""


def _heading(changelog: str) -> str:
    found = re.search(r"^## (.*)$", changelog, re.MULTILINE)
    return found[1] if found else ""


def _belongs(url: str, repository: str) -> bool:
    owner, _, name = repository.lower().partition("/")
    places = (f"https://github.com/{owner}/{name}", f"https://{owner}.github.io/{name}")
    return any(url.lower() == place or url.lower().startswith(f"{place}/") for place in places)


if __name__ == "__main__":
    raise SystemExit(exit_code(main))
