"""The recorded runs from which pages of the docs are written: one JSON file each, with its machine, load, commit and day.

`write` makes one; `python -m bench.pages` writes the marked parts of the pages from them.
"""

import json
import os
import platform
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).resolve().parent
WRITTEN = ("bench/results/*.json", "docs/images")  # files that a run writes: no changes of the code


def write(name: str, content: Mapping[str, Any]) -> Path:
    """Record a run of today on this machine under this name."""
    file = RESULTS / f"{name}.json"
    file.write_text(json.dumps({"run": run_of_today(), **content}, indent=1) + "\n")
    return file


def read(name: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text())
    return content


def run_of_today() -> dict[str, Any]:
    """Return where and on what a run took place. `load`: of the fifteen minutes before its end."""
    changed = _git("status", "--porcelain", "-uno", "--", ":/", *(f":(top,exclude){path}" for path in WRITTEN))
    return {
        "day": f"{datetime.now(UTC):%Y-%m-%d}",
        "commit": _git("rev-parse", "--short=12", "HEAD") + (" with changes" if changed else ""),
        "machine": f"{os.cpu_count()} cores, {_model()}, {platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "load": round(os.getloadavg()[2], 1),
    }


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], capture_output=True, text=True, check=False, cwd=RESULTS).stdout.strip()


def _model() -> str:
    try:
        rows = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or "unknown processor"
    return next((row.partition(":")[2].strip() for row in rows if row.startswith("model name")), "unknown processor")
