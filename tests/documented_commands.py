"""The shell commands of the documentation, by page. A block that no test runs has a comment `<!-- not run: REASON -->` before it."""

import re
import textwrap
from pathlib import Path
from typing import NamedTuple

from tests.language import ROOT

DOCUMENTS = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("README.md")])
BLOCK = re.compile(
    r"^(?:(?P<indent> *)<!-- not run: (?P<reason>[^\n]+) -->\n)?(?P<start> *)```sh\n(?P<code>.*?)\n *```$", re.MULTILINE | re.DOTALL
)
INDENTED = re.compile(r"^ {4,}(?:curl|make|npm|npx|aws|git|python|punctual|pip|\.venv|node_modules)[ /].*", re.MULTILINE)


class Block(NamedTuple):
    code: str
    reason: str | None  # why no test runs it


def blocks(document: Path) -> list[Block]:
    return [Block(textwrap.dedent(each["code"]), each["reason"]) for each in BLOCK.finditer(document.read_text())]


def script(document: Path) -> str:
    """The commands of a document that run, in their order; empty if there are none."""
    return "\n".join(block.code for block in blocks(document) if block.reason is None)


def unfenced(document: Path) -> list[str]:
    """Commands in blocks that are not marked as shell: no test would find them."""
    return INDENTED.findall(re.sub(r"^( *)```.*?^\1```$", "", document.read_text(), flags=re.MULTILINE | re.DOTALL))
