"""Figures of the documentation's language: python -m tests.prose_figures [COMMIT ...]

For each commit (default: the files as they are), for README.md and docs/: words, sentences over 30 words, lines over 120 characters,
"you" and "your", and sentences or clauses without an actor (*who*, *whoever*, *what* as a subject). Code and tables are left out.
User pages are all pages but decisions, glossary, benchmarks, architecture, life cycle, guarantees, grants, findings and the console's
internals. The changelog and the pages under docs/internals are no user pages.
"""

import re
import subprocess
import sys
from collections.abc import Iterator
from typing import NamedTuple

from tests.language import ROOT

INTERNAL = re.compile(
    r"docs/internals/|docs/(?:concepts/)?(?:benchmarks|guarantees)\.md$"
    r"|docs/(?:decisions|glossary|architecture|lifecycle|grants|api-findings|aws-findings)\.md$"
)
HEADLESS = re.compile(
    r"(?:^|[.!?:;,]\s+|\b(?:to|for|of|from|with|by|than|and|but|that)\s)[\"'`*(]*(?:who|whoever|whom|those that|those who)\b"
    r"|(?:^|[.!?:;,]\s+|\b(?:to|for|of|from|with|by|than|and|but)\s)[\"'`*(]*what\b",
    re.IGNORECASE,
)


class Figures(NamedTuple):
    words: int = 0
    internal_words: int = 0
    sentences: int = 0
    long_sentences: int = 0
    long_lines: int = 0
    you: int = 0
    headless: int = 0

    def __add__(self, other: object) -> "Figures":
        assert isinstance(other, Figures)
        return Figures(*(a + b for a, b in zip(self, other, strict=True)))


def sentences(page: str) -> Iterator[str]:
    """The sentences of the prose of a page: without code, tables, images, and the targets of links."""
    text = re.sub(r"^( *)```.*?^ *```$", "", page, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"`[^`\n]*(?:\n[^`\n]*)?`", "code", re.sub(r"!\[[^\]]*\]\([^)]*\)", "", text))
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = "\n".join("" if re.match(r"\s*\||    (?! *[-*\d])", line) else line for line in text.split("\n"))
    for paragraph in re.split(r"\n\s*\n|\n(?=\s*(?:[-*] |\d+\. |#))", text):
        plain = " ".join(re.sub(r"^\s*(?:[-*>]|#+|\d+\.)\s+", "", paragraph).split())
        yield from (sentence for sentence in re.split(r"(?<=[.!?])\s+(?=[A-Z\"'*(`])", plain) if sentence)


def figures(name: str, page: str) -> Figures:
    found = list(sentences(page))
    words = [len(re.findall(r"\w[^\s]*", sentence)) for sentence in found]
    spoken = [sentence for sentence in found if not sentence.endswith("?")]
    internal = INTERNAL.search(name) is not None
    return Figures(
        words=0 if internal else sum(words),
        internal_words=sum(words) if internal else 0,
        sentences=len(found),
        long_sentences=sum(count > 30 for count in words),
        long_lines=sum(len(line) > 120 for line in page.split("\n")),
        you=sum(len(re.findall(r"\byou(?:r|rs|rself)?\b", sentence, re.IGNORECASE)) for sentence in found),
        headless=sum(len(HEADLESS.findall(sentence)) for sentence in spoken),
    )


def pages(commit: str | None) -> Iterator[tuple[str, str]]:
    """Path and text of README.md and the pages of docs/, of a commit or as they are."""
    listing = ["git", "ls-tree", "-r", "--name-only", commit, "README.md", "docs"] if commit else ["git", "ls-files", "README.md", "docs"]
    for name in _output(listing).splitlines():
        if name.endswith(".md"):
            yield name, _output(["git", "show", f"{commit}:{name}"]) if commit else (ROOT / name).read_text()


def _output(command: list[str]) -> str:
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout


def main(commits: list[str]) -> None:
    sys.stdout.write("| " + " | ".join(["commit", *(field.replace("_", " ") for field in Figures._fields)]) + " |\n")
    sys.stdout.write("|---" * (len(Figures._fields) + 1) + "|\n")
    for commit in commits or [""]:
        total = sum((figures(name, page) for name, page in pages(commit or None)), Figures())
        sys.stdout.write("| " + " | ".join([commit or "now", *(f"{value:,}" for value in total)]) + " |\n")


if __name__ == "__main__":
    main(sys.argv[1:])
