"""The code of the version before: of the last tag in the history or, until there is one, of the commit below."""

import subprocess
import tarfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# The last commit that changed stored names. From the first tag on, the tag is the version before.
UNTAGGED = "f120d3e6da07d78f0675f668758b1b4cc7f5224a"


class NoHistory(Exception):
    """This clone lacks the commit; the message has the command that fetches it."""


def commit() -> str:
    """The name of the version before: the newest tag that this commit comes after."""
    done = _git("describe", "--tags", "--abbrev=0", "--match", "v*", "HEAD^")
    return done.stdout.decode().strip() if not done.returncode else UNTAGGED


def unpack(folder: Path) -> Path:
    """Write the files of the version before into the folder; returns it. Raises NoHistory."""
    name = commit()
    done = _git("archive", "--format=tar", name)
    if done.returncode:
        raise NoHistory(
            f"The upgrade test needs the version before ({name}), which this clone lacks. Fetch it: git fetch --unshallow --tags origin"
        )
    packed = folder / "previous.tar"
    packed.write_bytes(done.stdout)
    with tarfile.open(packed) as archive:
        archive.extractall(folder)
    packed.unlink()
    return folder


def _git(*words: str) -> "subprocess.CompletedProcess[bytes]":
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True)
