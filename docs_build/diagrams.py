"""Draw the diagrams of the documentation as pictures: python -m docs_build.diagrams

A page has the source of a diagram, which GitHub draws by itself. The site shows a picture instead, because the pages of a stage run no
script of another host. The name of a picture is a digest of its source: a changed source has no picture until this program runs again.
It gets Mermaid from the npm registry and needs Chromium.
"""

import hashlib
import html
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
DOCS = REPOSITORY / "docs"
PICTURES = DOCS / "images" / "diagrams"
MERMAID = "mermaid@11.17.2"
_FENCE = re.compile(r"^```mermaid\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_SHOWN = re.compile(r'<pre class="mermaid"><code[^>]*>(.*?)</code></pre>', re.DOTALL)
HOW = "`make diagrams` draws it"


def sources() -> dict[str, str]:
    """Return the source of each diagram of the documentation, by the name of its picture."""
    found = [source for page in sorted(DOCS.rglob("*.md")) for source in _FENCE.findall(page.read_text(encoding="utf-8"))]
    return {name(source): source for source in found}


def name(source: str) -> str:
    return hashlib.sha256(source.strip().encode()).hexdigest()[:16]


def pictured(page: str, root: str) -> str:
    """Return a page of the site with a picture for each diagram. `root` is the way to the root of the site, such as `../../`.

    Raises LookupError for a diagram without a picture.
    """

    def picture(found: re.Match[str]) -> str:
        source = html.unescape(found[1])
        file = PICTURES / f"{name(source)}.svg"
        if not file.exists():
            raise LookupError(f"this diagram has no picture; {HOW}:\n{source}")
        path = f"{root}{file.relative_to(DOCS).as_posix()}"
        text = html.escape(re.sub(r"\s+", " ", re.sub(r"[^\w\s/]+", " ", source.partition("\n")[2])).strip())
        return f'<p class="diagram"><a href="{path}"><img src="{path}" alt="Diagram: {text}"></a></p>'

    return _SHOWN.sub(picture, page)


def draw() -> None:
    """Draw the missing pictures, and delete those of no diagram."""
    pictures = sources()
    PICTURES.mkdir(parents=True, exist_ok=True)
    for file in PICTURES.glob("*.svg"):
        if file.stem not in pictures:
            file.unlink()
    missing = {each: source for each, source in pictures.items() if not (PICTURES / f"{each}.svg").exists()}
    if not missing:
        return
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["npm", "pack", "--silent", MERMAID], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        (packed,) = Path(folder).glob("*.tgz")
        subprocess.run(["tar", "-xzf", packed.name, "package/dist/mermaid.min.js"], cwd=folder, check=True)
        command: list[str | Path] = ["node", REPOSITORY / "local/diagrams.mjs", Path(folder) / "package/dist/mermaid.min.js", PICTURES]
        subprocess.run(command, input=json.dumps(missing), text=True, check=True)


if __name__ == "__main__":
    try:
        draw()
    except subprocess.CalledProcessError as failed:
        sys.exit(failed.returncode)
