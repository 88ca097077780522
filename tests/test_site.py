"""The documentation: every page is in the navigation, every link leads somewhere, and the site builds without a warning."""

import json
import re
import subprocess
import tomllib
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from docs_build import diagrams, site
from tests.language import ROOT

PAGES = sorted(site.DOCS.rglob("*.md"))
DOCUMENTS = [*PAGES, *ROOT.glob("*.md"), *(ROOT / "examples").rglob("*.md")]


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    plain = [re.sub(r"\[([^\]]*)\]\([^)]*\)|[`*]", r"\1", heading).strip().lower() for heading in headings]
    return {re.sub(r"[^\w -]", "", heading).replace(" ", "-") for heading in plain}


def test_every_page_is_in_the_navigation_once() -> None:
    named = [path for pages in site.navigation().values() for path in pages.values()]
    assert sorted(named) == sorted(page.relative_to(site.DOCS).as_posix() for page in PAGES), "add the page to nav in mkdocs.yml"


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_link_in_the_repository_leads_somewhere(document: Path) -> None:
    """GitHub shows these files, too; the build of the site checks only the links between pages."""
    text = re.sub(r"^```.*?^```|`[^`\n]*`", "", document.read_text(), flags=re.MULTILINE | re.DOTALL)
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        path, _, anchor = link.partition("#")
        if "://" in link or link.startswith("mailto:"):
            continue
        file = (document.parent / path).resolve() if path else document
        assert file.exists(), link
        assert not anchor or file.suffix != ".md" or anchor in anchors(file), link


def test_the_links_of_the_console_lead_somewhere() -> None:
    lists = dict(re.findall(r"const (\w+) = \[(.+?)\]", (ROOT / "console/src/docs.ts").read_text(), re.DOTALL))
    pages, codes = (re.findall(r"'(.+?)'", lists[name]) for name in ("PAGES", "CODES"))
    assert [page for page in pages if not (site.DOCS / f"{page}.md").exists()] == []
    errors = site.DOCS / "reference/errors.md"
    assert codes == re.findall(r"^### (\w+)$", errors.read_text(), re.MULTILINE)
    assert "failures-of-attempts" in anchors(errors)


def test_the_list_for_language_models_has_each_page_and_its_first_sentence() -> None:
    lines = site.llms().splitlines()
    assert lines[:3] == ["# Punctual", "", "> Punctual is a precise, self-hosted job scheduler for AWS."]
    assert len([line for line in lines if re.fullmatch(r"- \[[^\]]+\]\([\w/-]+\.md\): .{20,}", line)]) == len(PAGES)


def test_the_search_leaves_out_the_pages_for_maintainers() -> None:
    places = ["", "guides/keys/#a", "internals/decisions/", "concepts/internals/"]
    index = {"config": {"separator": " "}, "items": [{"location": place, "title": "x"} for place in places]}
    found = site.searchable(index)
    assert [item["location"] for item in found["items"]] == ["", "guides/keys/#a", "concepts/internals/"]
    assert found["config"] == index["config"]


@pytest.mark.long
def test_the_site_builds_without_a_warning() -> None:
    site.build()
    assert (site.SITE / "index.html").exists() and (site.SITE / "search.json").stat().st_size > 100_000
    places = {item["location"].partition("/")[0] for item in json.loads((site.SITE / "search.json").read_text())["items"]}
    assert places >= {"get-started", "guides", "reference", "concepts"} and "internals" not in places
    assert (site.SITE / "reference/api.md").read_text() == (site.DOCS / "reference/api.md").read_text()
    page = (site.SITE / "internals/lifecycle/index.html").read_text()
    (picture,) = re.findall(r'<p class="diagram"><a href="\.\./\.\./(\S+)">', page)
    assert (site.SITE / picture).exists()
    assert [page for page in site.SITE.rglob("*.html") if '<pre class="mermaid">' in page.read_text()] == []


def test_each_diagram_has_the_picture_of_its_source() -> None:
    """A picture is named by a digest of its source. If this fails: make diagrams"""
    assert {file.stem for file in diagrams.PICTURES.iterdir()} == set(diagrams.sources())
    for file in diagrams.PICTURES.iterdir():
        text = file.read_text()
        assert text.startswith("<svg ") and not re.search(r"<script|<foreignObject|https?://(?!www\.w3\.org/)", text), file


def test_a_diagram_without_a_picture_fails_the_build() -> None:
    with pytest.raises(LookupError, match="make diagrams"):
        diagrams.pictured('<pre class="mermaid"><code>flowchart LR\n  a --&gt; b</code></pre>', "")


DISTRIBUTIONS = {tomllib.loads((ROOT / "client/pyproject.toml").read_text())["project"]["name"], "punctual-server"}
INSTALLED = re.compile(r"(?:pip|pipx|uv add|uv tool|uvx)\b[^\n`|]*?[ '\"](punctual[\w-]*)")


def test_every_installation_names_a_distribution_of_ours() -> None:
    """The name `punctual` of the package index belongs to another project: a page that installs it runs a stranger's code."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
    texts = [ROOT / name for name in listed if name.endswith((".md", ".py", ".yml", ".yaml", ".toml", ".sh", ".ts", ".tsx", ".txt"))]
    found = {
        f"{file.relative_to(ROOT)}: {name}"
        for file in texts
        if file.is_file() and file != Path(__file__)
        for name in INSTALLED.findall(file.read_text(encoding="utf-8"))
        if name not in DISTRIBUTIONS
    }
    assert found == set()
    assert INSTALLED.findall("pip install --upgrade 'punctual[aws]' and uvx punctual") == ["punctual", "punctual"]


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *arguments: object) -> None:
        """Print nothing."""


@pytest.mark.long
def test_axe_finds_nothing_serious_on_the_site() -> None:
    """Nor is a page wider than its window, and the calculator of the page about cost adds."""
    site.build()
    pages = [
        "",
        "concepts/cost/",
        "get-started/aws/",
        "reference/api/",
        "reference/metrics-alarms/",
    ]
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(site.SITE))) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}"
        done = subprocess.run(["node", ROOT / "lint/site.mjs", address, *pages], capture_output=True, text=True, timeout=600)
        server.shutdown()
    assert done.returncode == 0, done.stderr
    findings = [json.loads(line) for line in done.stdout.splitlines()]
    assert findings == []


@pytest.mark.long
@pytest.mark.parametrize("link", ["no-page.md", "index.md#no-heading"])
def test_a_broken_link_fails_the_build(link: str, tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/index.md").write_text(f"# Punctual\n\nA [link]({link}).\n")
    (tmp_path / "mkdocs.yml").write_text((ROOT / "mkdocs.yml").read_text().partition("nav:")[0])
    built = subprocess.run([site.sys.executable, "-m", "zensical", "build", "--strict"], cwd=tmp_path, capture_output=True)
    assert built.returncode != 0
