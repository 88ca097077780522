"""Bytecode for the functions, compiled by their own version of Python: the code of a deployed function cannot be written to.

Without it every cold start compiles all modules that it imports. Another version of Python ignores the files, so they are checked.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
INSTALLED = ROOT / ".venv" / "pythons"  # where uv puts a Python that it downloads for the build
DEPLOYED = "/var/task"  # where Lambda has the code: tracebacks show it
MAGIC = {"3.13": 3571}  # the first two bytes of bytecode files, by version of Python (`importlib.util.MAGIC_NUMBER`)

# Unchecked hashes: unpacking changes the time of every file, so bytecode with timestamps would be stale.
COMPILE = ("-I", "-m", "compileall", "-q", "-j", "0", "--invalidation-mode", "unchecked-hash")


class NoCompiler(Exception):
    """No Python of the required version is available. The message names the version, the reason and the remedy."""


class BadBytecode(Exception):
    """The code could not be compiled, or the bytecode is for another version. The message has the reason."""


def compiler(version: str) -> str:
    """Return the path of a Python of this version: one on this machine, or one that uv downloads. Raises NoCompiler."""
    if version == "{}.{}".format(*sys.version_info[:2]):
        return sys.executable
    if found := _uv("find", "--no-project", f"cpython@{version}", PATH=os.pathsep.join(_folders(version))).stdout.strip():
        return found
    # Few tries: an unreachable host must not delay a build by minutes.
    tried = _uv("install", "--no-bin", "--install-dir", str(INSTALLED), version, UV_HTTP_RETRIES="1", UV_HTTP_TIMEOUT="30")
    if not tried.returncode and (new := next(_executables(INSTALLED, version), None)):
        return str(new)
    why = tried.stderr.strip().splitlines()[-1:] or ["no reason given"]
    raise NoCompiler(
        f"the functions run on Python {version}, and nothing here can compile for it: no Python {version} was found, and uv could not "
        f"download one ({why[0].strip()}). Install Python {version}, for example by `uv python install {version}`, pyenv or your "
        "distribution, then repeat."
    )


def compile_all(folder: Path, python: str) -> None:
    """Compile all modules below `folder` by the interpreter `python`. Raises BadBytecode."""
    done = subprocess.run([python, *COMPILE, "-s", str(folder), "-p", DEPLOYED, str(folder)], capture_output=True, text=True)
    if done.returncode:
        raise BadBytecode(f"{python} could not compile the functions' code:\n{(done.stdout + done.stderr).strip()}")


def check(folder: Path, version: str) -> None:
    """Check that the bytecode below `folder` is for Python `version`. Raises BadBytecode."""
    if version not in MAGIC:
        raise BadBytecode(f"infra/bytecode.py lacks the magic number of Python {version}: add it to MAGIC")
    found = {_magic(path) for path in folder.rglob("*.pyc")}
    if found != {MAGIC[version]}:
        shown = ", ".join(map(str, sorted(found))) or "none"
        raise BadBytecode(
            f"the bytecode is not for Python {version}, which runs the functions: its magic number is {MAGIC[version]}, not {shown}"
        )


def _magic(path: Path) -> int:
    with path.open("rb") as file:
        return int.from_bytes(file.read(2), "little")


def _folders(version: str) -> Iterator[str]:
    """Return the folders in which uv looks for interpreters: those of PATH, those of an earlier download, and pyenv's.

    pyenv puts only the versions in use on PATH.
    """
    yield os.environ.get("PATH", os.defpath)
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    for place in (INSTALLED, pyenv / "versions"):
        yield from (str(found.parent) for found in _executables(place, version))


def _executables(place: Path, version: str) -> Iterator[Path]:
    return iter(sorted(place.glob(f"*{version}*/bin/python{version}")))


def _uv(*command: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    line = [sys.executable, "-m", "uv", "--no-progress", "--color", "never", "python", *command]
    return subprocess.run(line, env={**os.environ, **environment}, capture_output=True, text=True)
