"""Processes of this machine, told apart by number *and* start: a number alone is used again."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")


@dataclass(frozen=True)
class Process:
    """One process; `started` is opaque and never the same for two processes of one number."""

    pid: int
    started: str

    @property
    def alive(self) -> bool:
        return started(self.pid) == self.started

    def end(self, patience: float) -> bool:
        """Ask it to stop, wait, then kill it. False if it had to be killed."""
        if self._signal(signal.SIGTERM) and not self._gone_within(patience):
            self._signal(signal.SIGKILL)
            self._gone_within(5)
            return False
        return True

    def _signal(self, number: signal.Signals) -> bool:
        if not self.alive:
            return False
        try:
            os.kill(self.pid, number)
        except ProcessLookupError:
            return False
        return True

    def _gone_within(self, seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        while self.alive:
            if time.monotonic() > deadline:
                return False
            time.sleep(0.05)
        return True


def this() -> Process:
    return Process(os.getpid(), started(os.getpid()) or "")


def started(pid: int) -> str | None:
    """When the process started; None if there is none or it is a zombie."""
    if PROC.is_dir():
        return _started_by_proc(pid)
    answer = subprocess.run(["ps", "-o", "stat=,lstart=", "-p", str(pid)], capture_output=True, text=True, check=False).stdout.strip()
    return None if not answer or answer.startswith("Z") else answer.split(maxsplit=1)[-1]


def _started_by_proc(pid: int) -> str | None:
    try:
        # After the name (in parentheses, may hold spaces): field 3 is the state, field 22 the start in ticks since boot.
        fields = (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else f"{_boot()}-{fields[19]}"


def _boot() -> str:
    try:
        return (PROC / "sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return "boot"


def naming(folder: Path, function: str = "") -> list[Process]:
    """The Lambda workers that run out of the folder, of one function or of all: children of a local AWS, orphans once it is killed."""
    found = []
    for pid, command in _commands():
        start = started(pid) if f"{folder}/" in command and function in command and command.endswith("_worker.py") else None
        if start:
            found.append(Process(pid, start))
    return found


def _commands() -> Iterator[tuple[int, str]]:
    if PROC.is_dir():
        for entry in PROC.iterdir():
            if entry.name.isdigit():
                yield int(entry.name), _command(entry)
        return
    listing = subprocess.run(["ps", "-axo", "pid=,command="], capture_output=True, text=True, check=False).stdout
    for line in listing.splitlines():
        pid, _, command = line.strip().partition(" ")
        yield int(pid), command.strip()


def _command(entry: Path) -> str:
    try:
        return (entry / "cmdline").read_bytes().rstrip(b"\0").replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""
