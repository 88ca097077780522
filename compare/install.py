"""The peers' packages, in environments of their own below `.compare`: exactly the locked versions."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from local.home import REPOSITORY

ROOT = REPOSITORY / ".compare"
HERE = Path(__file__).resolve().parent
VENV, NODE = ROOT / "venv", ROOT / "node"
LOCK = HERE / "requirements.txt"


def python() -> str | None:
    """Return the folder of the programs of the environment for Python, installed if need be; None if it cannot be installed."""

    def install() -> None:
        _run([sys.executable, "-m", "venv", "--clear", str(VENV)])
        _run([str(VENV / "bin/python"), "-m", "pip", "install", "-q", "--no-input", "--require-hashes", "--no-deps", "-r", str(LOCK)])

    return str(VENV / "bin") if _current(VENV / "lock", LOCK, install) else None


def node() -> str | None:
    """The same for Node. The drivers are copied there: Node looks for packages beside the file that imports them."""
    NODE.mkdir(parents=True, exist_ok=True)
    for file in HERE.glob("node/*"):
        if file.is_file():
            shutil.copy(file, NODE)
    shutil.copy(HERE / "node/.npmrc", NODE)
    installed = _current(
        NODE / "node_modules/.lock", NODE / "package-lock.json", lambda: _run(["npm", "ci", "--no-audit", "--no-fund"], NODE)
    )
    return str(NODE / "node_modules/.bin") if installed else None


def _current(stamp: Path, lock: Path, install: Callable[[], None]) -> bool:
    """Install unless the stamp says that this lock is installed. Returns False if that fails."""
    if stamp.exists() and stamp.read_text() == lock.read_text():
        return True
    try:
        install()
    except (OSError, subprocess.CalledProcessError):
        return False
    stamp.write_text(lock.read_text())
    return True


def _run(command: list[str], cwd: Path | None = None) -> None:
    subprocess.run(command, check=True, cwd=cwd, stdout=sys.stderr, env={**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1"})
