"""Cleans up after an earlier run in the same home, whether it still runs, lost its owner, or was killed."""

from local import process, server
from local.failure import Trouble
from local.home import Home
from local.process import Process


def clear(home: Home) -> list[str]:
    """Clean up for a new run; returns the findings, for people. Raises Trouble if a run is active and has its owner."""
    note = home.running.read()
    found = _settle(home, note) if note else []
    if orphans := server.end_workers(home):
        found.append(f"Stopped {orphans} function workers that an earlier run left behind.")
    home.running.drop()
    return found


def _settle(home: Home, note: dict[str, object]) -> list[str]:
    owner, aws = _process(note, "owner", "owner_started"), _process(note, "pid", "started")
    if owner.alive:
        raise Trouble(
            f"Punctual is already running here (process {owner.pid}, port {note.get('port')}).\n"
            "Use that run, press Ctrl-C in its terminal, or stop it from here: make stop"
        )
    if aws.alive:
        if process.end([aws], server.PATIENCE):
            return ["An earlier run was killed, but its local AWS was still running. It is stopped now; its jobs are kept."]
        return ["The local AWS of an earlier run did not stop and was killed. Everything since the start of that run is lost."]
    return ["The local AWS of an earlier run was killed. Everything since the start of that run is lost."]


def _process(note: dict[str, object], pid: str, started: str) -> Process:
    number = note.get(pid)
    return Process(number if isinstance(number, int) else 0, str(note.get(started)))


def stop(home: Home) -> list[str]:
    """Stop the run of the home in order, then clean up; returns the findings, for people."""
    note = home.running.read()
    found = []
    if note and (owner := _process(note, "owner", "owner_started")).alive:
        clean = process.end([owner], server.PATIENCE + 10)
        found.append(f"{'Stopped' if clean else 'Killed (it did not stop when requested)'} the run on port {note.get('port')}.")
        note = home.running.read()
    return found + clear(home)
