"""The folder in which one local AWS keeps all its files; git ignores it. Two local AWS never share a folder."""

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parent.parent
LOCAL = REPOSITORY / ".local"


@dataclass(frozen=True)
class Commands:
    """The commands of people for the stack of a home, which messages name as remedies."""

    run: str = "make run"
    run_at: str = "make run PORT={port}"
    stop: str = "make stop"  # may name the process: {pid}
    reset: str = "make clean"  # deletes the stack and its jobs
    client: str = ".venv/bin/punctual"


@dataclass(frozen=True)
class Home:
    """The folder of one local AWS, and the commands of those who started it."""

    root: Path
    commands: Commands = Commands()

    @property
    def state(self) -> Path:
        """One JSON file per emulated service, from which the local AWS starts; and keys and code, written immediately."""
        return self.root / "state"

    @property
    def saving(self) -> Path:
        """The files of a new state that is being written. Left over if a run was killed."""
        return self.root / "state.saving"

    @property
    def saved(self) -> Path:
        """The files of a complete new state. The next start moves them to the state."""
        return self.root / "state.saved"

    @property
    def port_of_state(self) -> "Note":
        """The port in the addresses of the state."""
        return Note(self.state / "port.note")

    @property
    def objects(self) -> Path:
        """The content of the S3 buckets, written immediately."""
        return self.root / "objects"

    @property
    def scratch(self) -> Path:
        """The unpacked functions, deleted when the local AWS stops. Its path is in the command line of every worker of this home."""
        return self.root / "scratch"

    @property
    def assembly(self) -> Path:
        """The assembly that the CDK synthesized last."""
        return self.root / "cdk.out"

    @property
    def log(self) -> Path:
        return self.root / "aws.log"

    @property
    def deploy_log(self) -> Path:
        return self.root / "deploy.log"

    @property
    def running(self) -> "Note":
        """The processes of the current run. The note is absent if nothing runs, and left over if a run was killed."""
        return Note(self.root / "running.json")

    @property
    def settled(self) -> "Note":
        """Values that the next run reuses: the port, and the first user's password."""
        return Note(self.root / "settled.json")

    @property
    def issuer(self) -> "Note":
        """The keys that sign the tokens of roles."""
        return Note(self.root / "issuer.json")

    def empty(self) -> None:
        """Delete the stack and its jobs: what a local AWS and its owner have written, and nothing else of the folder."""
        for folder in (self.state, self.saving, self.saved, self.objects, self.scratch, self.assembly):
            shutil.rmtree(folder, ignore_errors=True)
        for file in (self.log, self.deploy_log, self.running.path, self.settled.path, self.issuer.path):
            file.unlink(missing_ok=True)

    def create(self) -> "Home":
        for folder in (self.state, self.objects, self.scratch):
            folder.mkdir(parents=True, exist_ok=True)
        return self


@dataclass(frozen=True)
class Note:
    """A small JSON file. A missing file, or an unreadable one after a crash, is read as empty."""

    path: Path

    def read(self) -> dict[str, Any]:
        try:
            content = json.loads(self.path.read_text())
        except (OSError, ValueError):
            return {}
        return content if isinstance(content, dict) else {}

    def write(self, **values: Any) -> None:
        """Replace the note. Only the file's owner may read it: it can contain a password."""
        fresh = self.path.with_suffix(".new")
        fresh.touch(mode=0o600)
        fresh.write_text(json.dumps(values, indent=2) + "\n")
        fresh.replace(self.path)

    def update(self, **values: Any) -> None:
        self.write(**{**self.read(), **values})

    def drop(self) -> None:
        self.path.unlink(missing_ok=True)
