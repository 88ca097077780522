"""Build the documentation site into `site/`: python -m docs_build.site

A broken link, a broken anchor, a diagram without a picture or another warning fails the build. Beside each page lies its Markdown;
`llms.txt` lists all pages.
"""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from docs_build.diagrams import pictured

REPOSITORY = Path(__file__).resolve().parent.parent
DOCS = REPOSITORY / "docs"
SITE = REPOSITORY / "site"
INTERNALS = "internals/"


class _Loader(yaml.SafeLoader):
    """Reads mkdocs.yml; the names of Python functions in it stay unresolved."""


_Loader.add_multi_constructor("tag:yaml.org,2002:python/name:", lambda loader, suffix, node: suffix)


def navigation() -> dict[str, dict[str, str]]:
    """The pages of mkdocs.yml: the path of a page by its name, by section. A group of a section is a section, such as "Guides: Time".

    The first page is alone in the section "Punctual".
    """
    nav = yaml.load((REPOSITORY / "mkdocs.yml").read_text(), _Loader)["nav"]
    sections: dict[str, dict[str, str]] = {}
    for name, title, path in _pages(nav, ""):
        sections.setdefault(title or name, {})[name] = path
    return sections


def _pages(nav: Sequence[Mapping[str, Any]], title: str) -> Iterator[tuple[str, str, str]]:
    """Yield the name, the section and the path of each page."""
    for entry in nav:
        for name, below in entry.items():
            if isinstance(below, str):
                yield name, title, below
            else:
                yield from _pages(below, f"{title}: {name}" if title else name)


def llms() -> str:
    """The content of llms.txt (https://llmstxt.org): one line a page, with its first sentence."""
    return "\n".join(_llms_lines()) + "\n"


def _llms_lines() -> Iterator[str]:
    yield "# Punctual"
    yield ""
    yield f"> {summary((DOCS / 'index.md').read_text())}"
    for title, pages in navigation().items():
        yield from ("", f"## {title}", "")
        for name, path in pages.items():
            yield f"- [{name}]({path}): {summary((DOCS / path).read_text())}"


def summary(page: str) -> str:
    """The first sentence of a page, without links and line breaks."""
    paragraphs = page.partition("\n")[2].split("\n\n")
    first = next((text for text in paragraphs if re.match(r"[\w*`\[]", text.strip())), "")
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", " ".join(first.split()))
    return re.split(r"(?<=[.])\s", plain)[0]


def accessible(html: str) -> str:
    """The page without two faults of the theme: labels with a forbidden attribute, and code that the keyboard cannot scroll."""
    html = re.sub(r'(<label[^>]*) aria-label=("[^"]*")', r"\1 title=\2", html)
    return re.sub(r"(<pre[^>]*>(?:<span></span>)?)<code>", r'\1<code tabindex="0">', html)


def searchable(index: Mapping[str, Any]) -> dict[str, Any]:
    """The index of the search without the pages for maintainers: a user who searches for a term finds the pages for users.

    The theme has no ranks for pages; it can only leave one out. Everything else of the index stays.
    """
    return {**index, "items": [item for item in index["items"] if not item["location"].startswith(INTERNALS)]}


def build() -> None:
    """Raises `CalledProcessError` if the build has a warning, LookupError for a diagram without a picture."""
    subprocess.run([sys.executable, "-m", "zensical", "build", "--strict", "--clean"], cwd=REPOSITORY, check=True)
    for built in SITE.rglob("*.html"):
        root = "../" * (len(built.relative_to(SITE).parts) - 1)
        built.write_text(pictured(accessible(built.read_text()), root))
    index = SITE / "search.json"
    index.write_text(json.dumps(searchable(json.loads(index.read_text()))))
    for page in DOCS.rglob("*.md"):
        shutil.copyfile(page, SITE / page.relative_to(DOCS))
    (SITE / "llms.txt").write_text(llms())


if __name__ == "__main__":
    try:
        build()
    except subprocess.CalledProcessError as failed:
        sys.exit(failed.returncode)
    except LookupError as missing:
        sys.exit(str(missing.args[0]))
    print(f"The site is in {SITE.relative_to(REPOSITORY)}/: open {SITE.relative_to(REPOSITORY)}/index.html, or serve the folder.")
