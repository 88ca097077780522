"""Writes the synchronous client (`src/punctual/_sync`) from the asynchronous one (`src/punctual/_async`).

    python client/generate_sync.py [--check]

A line `# sync: <code>` of the asynchronous source becomes `<code>`. With `--check` nothing is written, and the exit code is 1 if the
files are not current.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

SOURCES = Path(__file__).parent / "src" / "punctual"
NOTE = "# Generated from {} by client/generate_sync.py: change that file.\n"
RULES = [
    (r"asyncio\.sleep", "time.sleep"),
    (r"await asyncio\.to_thread\(([\w.]+)\)", r"\1()"),
    (r"asyncio\.Lock", "threading.Lock"),
    (r"\bimport asyncio\b", "import threading"),
    (r"\bpunctual\._async\b", "punctual._sync"),
    (r"\bAsync(Iterator)\b", r"\1"),
    (r"\bAwaitable\[([^\[\]]+)\]", r"\1"),
    (r"\bAwaitable, ", ""),
    (r"\bhttpx\.Async(Client)\b", r"httpx.\1"),
    (r"\bhttpx\.AsyncBaseTransport\b", "httpx.BaseTransport"),
    (r"\b(_?)Async([A-Z]\w*)", r"\1\2"),
    (r"\b_AsyncResource\b", "_Resource"),
    (r"\baclose\b", "close"),
    (r"__a(enter|exit|iter|next)__", r"__\1__"),
    (r"\basync (def|with|for)\b", r"\1"),
    (r"\bfor (\w+) in (.+):\n +yield \1\n", r"yield from \2\n"),
    (r"\bawait ", ""),
    (r"\basync_within\b", "within"),
    (r"\bTasks of one event loop\b", "Threads"),
    (r"# sync: ", ""),
]


def synchronous(source: str) -> str:
    """Return the synchronous form of an asynchronous module."""
    for pattern, replacement in RULES:
        source = re.sub(pattern, replacement, source)
    return _ruff("format", _ruff("check", source, "--fix", "--quiet", "--select", "I,F401"))


def _ruff(command: str, source: str, *options: str) -> str:
    where = ["--stdin-filename", str(SOURCES / "_sync" / "module.py"), "-"]
    done = subprocess.run(
        [sys.executable, "-m", "ruff", command, *options, *where], input=source, capture_output=True, text=True, check=True
    )
    return done.stdout


def generated() -> dict[Path, str]:
    """Return the text of each file of `_sync`, formatted as it is stored."""
    texts = {}
    for path in sorted((SOURCES / "_async").glob("*.py")):
        texts[SOURCES / "_sync" / path.name] = synchronous(NOTE.format(f"_async/{path.name}") + path.read_text(encoding="utf-8"))
    return texts


def main() -> int:
    texts = generated()
    stale = [path for path, text in texts.items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    for path in stale:
        if "--check" not in sys.argv:
            path.parent.mkdir(exist_ok=True)
            path.write_text(texts[path], encoding="utf-8")
        print(path.relative_to(SOURCES.parent.parent))
    return 1 if stale and "--check" in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
