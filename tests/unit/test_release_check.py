"""A release is refused until tag, versions, changelog, URLs and notes agree."""

import shutil
from pathlib import Path

import pytest

from ops import release
from scheduler import VERSION
from tests.language import ROOT

REPOSITORY = "punctual-scheduler/punctual"
FILES = ("pyproject.toml", "client/pyproject.toml", "CHANGELOG.md", release.NOTES)


@pytest.fixture
def ready(tmp_path: Path) -> Path:
    """The files of a release of this version, which only lacks its date no more."""
    for name in FILES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    changelog = tmp_path / "CHANGELOG.md"
    changelog.write_text(changelog.read_text().replace(f" {release.UNRELEASED}", ""))
    return tmp_path


def test_a_release_that_agrees_is_accepted(ready: Path) -> None:
    assert list(release.problems(f"v{VERSION}", REPOSITORY, ready)) == []


def test_another_tag_is_refused(ready: Path) -> None:
    assert list(release.problems("v9.9.9", REPOSITORY, ready)) == [f"The tag is v9.9.9, and the version is {VERSION}."]


@pytest.mark.parametrize("file", FILES[:2])
def test_another_version_of_a_distribution_is_refused(ready: Path, file: str) -> None:
    (ready / file).write_text((ready / file).read_text().replace(f'version = "{VERSION}"', 'version = "0.0.1"', 1))
    assert list(release.problems(f"v{VERSION}", REPOSITORY, ready)) == [f"{file} has the version 0.0.1, not {VERSION}."]


@pytest.mark.parametrize("repository", ["else/punctual", "punctual-scheduler/punctual2", "punctual-scheduler/punct"])
def test_urls_of_another_repository_are_refused(ready: Path, repository: str) -> None:
    (found,) = release.problems(f"v{VERSION}", repository, ready)
    assert found.startswith(f"client/pyproject.toml names another repository than {repository}: https://")


def test_a_changelog_that_says_not_released_is_refused(ready: Path) -> None:
    shutil.copy(ROOT / "CHANGELOG.md", ready)
    text = (ready / "CHANGELOG.md").read_text().replace(f"## {VERSION}\n", f"## {VERSION} {release.UNRELEASED}\n")
    (ready / "CHANGELOG.md").write_text(text)
    (found,) = release.problems(f"v{VERSION}", REPOSITORY, ready)
    assert "CHANGELOG.md begins with" in found


def test_a_release_without_notes_is_refused(ready: Path) -> None:
    (ready / release.NOTES).write_text("# Release notes\n\n## 0.0.1\n\nOld.\n")
    assert list(release.problems(f"v{VERSION}", REPOSITORY, ready)) == [f"{release.NOTES} has no section {VERSION}."]


def test_the_notes_are_those_of_this_version_alone(ready: Path) -> None:
    page = ready / release.NOTES
    page.write_text(f"# Release notes\n\n## {VERSION}\n\nNew.\n\n### More\n\nText.\n\n## 0.0.1\n\nOld.\n")
    assert release.notes(ready) == "New.\n\n### More\n\nText.\n\n"
