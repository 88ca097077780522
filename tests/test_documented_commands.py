"""Every shell command of the documentation is run by a test, or says why not."""

import re
from pathlib import Path

import pytest

from tests.documented_commands import DOCUMENTS, Block, blocks, script, unfenced
from tests.language import ROOT

NO_RUN = ("needs AWS", "tests/")  # a reason names the test that does the same, or AWS


def name(document: Path) -> str:
    return document.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("document", DOCUMENTS, ids=name)
def test_commands_are_in_blocks_that_tests_find(document: Path) -> None:
    assert unfenced(document) == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=name)
def test_a_reason_names_aws_or_a_test_that_exists(document: Path) -> None:
    for block in blocks(document):
        if block.reason is not None:
            assert any(word in block.reason for word in NO_RUN), block
            assert all((ROOT / test).exists() for test in re.findall(r"(?:client/)?(?:tests|docs)/[\w/.-]+\w", block.reason)), block


def test_a_page_is_read_as_blocks(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    sample = "```sh\ncurl a\n```\n\n1. First:\n\n   <!-- not run: needs AWS -->\n   ```sh\n   aws b\n   c\n   ```\n\n"
    page.write_text(sample + "```json\n{}\n```\n\n    make d\n")
    assert blocks(page) == [Block("curl a", None), Block("aws b\nc", "needs AWS")]
    assert script(page) == "curl a" and unfenced(page) == ["    make d"]
