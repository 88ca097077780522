"""Processes of this machine, identified by number *and* start time: the system uses a number again."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")


@dataclass(frozen=True)
class Process:
    """One process. `started` is opaque, and differs between two processes with the same number."""

    pid: int
    started: str

    @property
    def alive(self) -> bool:
        return started(self.pid) == self.started

    def signal(self, number: signal.Signals) -> None:
        if self.alive:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)


def kill(process: Process) -> None:
    """End the process with SIGKILL, which it cannot handle. Returns once it is gone, after 5 s at most."""
    process.signal(signal.SIGKILL)
    _left([process], 5)


def end(processes: Collection[Process], patience: float) -> bool:
    """Send SIGTERM to all, wait up to `patience` seconds, then kill the rest. Returns False if it had to kill one."""
    for process in processes:
        process.signal(signal.SIGTERM)
    left = _left(processes, patience)
    for process in left:
        process.signal(signal.SIGKILL)
    _left(left, 5)
    return not left


def _left(processes: Collection[Process], patience: float) -> list[Process]:
    """Wait up to `patience` seconds until all have ended; returns the processes that still run."""
    deadline = time.monotonic() + patience
    while (alive := [process for process in processes if process.alive]) and time.monotonic() < deadline:
        time.sleep(0.05)
    return alive


def memory_mb(process: Process) -> float | None:
    """Return the resident memory of the process in MB; None once it is gone."""
    if PROC.is_dir():
        with suppress(OSError):
            pages = int((PROC / str(process.pid) / "statm").read_text().split()[1])
            return pages * os.sysconf("SC_PAGE_SIZE") / 1e6 if process.alive else None
        return None
    size = subprocess.run(["ps", "-o", "rss=", "-p", str(process.pid)], capture_output=True, text=True, check=False).stdout.strip()
    return int(size) * 1024 / 1e6 if size and process.alive else None


def this() -> Process:
    return Process(os.getpid(), started(os.getpid()) or "")


def started(pid: int) -> str | None:
    """Return an opaque start time of the process; None if it does not exist or is a zombie."""
    if PROC.is_dir():
        return _started_by_proc(pid)
    answer = subprocess.run(["ps", "-o", "stat=,lstart=", "-p", str(pid)], capture_output=True, text=True, check=False).stdout.strip()
    return None if not answer or answer.startswith("Z") else answer.split(maxsplit=1)[-1]


def _started_by_proc(pid: int) -> str | None:
    try:
        # Behind the name (in parentheses, may contain spaces): field 3 is the state, field 22 the start in ticks since boot.
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
    """Return the Lambda workers that run from the folder, of one function if named. They are children of a local AWS, and orphans once
    it is killed."""
    found = []
    for pid, command in _commands():
        ours = f"{folder}/" in command and function in command and command.endswith("_worker.py")
        start = started(pid) if ours else None
        if start:
            found.append(Process(pid, start))
    return found


def of_command(*words: str) -> list[Process]:
    """Return the processes whose command line contains all these words."""
    return _of(lambda command: all(each in command for each in words))


def ending_in(words: str) -> list[Process]:
    """Return the processes whose command line ends in these words."""
    return _of(lambda command: command.endswith(words))


def _of(matches: Callable[[str], bool]) -> list[Process]:
    found = [(pid, started(pid)) for pid, command in _commands() if matches(command)]
    return [Process(pid, start) for pid, start in found if start]


def connected(processes: Collection[Process], port: int, to: int) -> Process | None:
    """Return the process with a TCP connection from `port` to the port `to`, both on this machine. The own port alone does not
    identify a connection: another process may use the same port for a connection to somewhere else."""
    if PROC.is_dir():
        sockets = _sockets(port, to)
        return next((each for each in processes if _holds(each.pid, sockets)), None)
    listing = subprocess.run(["lsof", "-nP", "-Fpn", f"-iTCP:{port}"], capture_output=True, text=True, check=False).stdout.split()
    pid, found = "", set[str]()
    for field in listing:
        pid = field[1:] if field.startswith("p") else pid
        here, _, there = field.partition("->")
        if here.endswith(f":{port}") and there.endswith(f":{to}"):
            found.add(pid)
    return next((each for each in processes if str(each.pid) in found), None)


def _sockets(port: int, to: int) -> set[str]:
    """Return the connections between the two ports, named as the links in /proc/<pid>/fd."""
    rows = [line.split() for line in (PROC / "net/tcp").read_text().splitlines()[1:]]
    return {f"socket:[{row[9]}]" for row in rows if [int(row[side].rpartition(":")[2], 16) for side in (1, 2)] == [port, to]}


def _holds(pid: int, sockets: Collection[str]) -> bool:
    with suppress(OSError):
        for entry in (PROC / str(pid) / "fd").iterdir():
            with suppress(OSError):
                if str(entry.readlink()) in sockets:
                    return True
    return False


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
