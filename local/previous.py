"""What an earlier run of the same home left: still alive, half dead, or killed."""

from local import process, server
from local.failure import Trouble
from local.home import Home
from local.process import Process


def clear(home: Home) -> list[str]:
    """Make way for a new run; says what was found. Raises Trouble if a run is alive and in somebody's hands."""
    note = home.running.read()
    found = _settle(home, note) if note else []
    if orphans := server.end_workers(home):
        found.append(f"Ended {orphans} function workers that an earlier run left behind.")
    home.running.drop()
    return found


def _settle(home: Home, note: dict[str, object]) -> list[str]:
    owner, aws = _process(note, "owner", "owner_started"), _process(note, "pid", "started")
    if owner.alive:
        raise Trouble(
            f"It is running already (process {owner.pid}, port {note.get('port')}).\n"
            "Use that one, press Ctrl-C there, or stop it from here: make stop"
        )
    if aws.alive:
        if process.end([aws], server.PATIENCE):
            return ["An earlier run was killed and its local AWS still ran: stopped it, its jobs are kept."]
        return ["An earlier run hung and had to be killed: what happened since it started is lost."]
    return ["The local AWS of an earlier run was killed: what happened since that run started is lost."]


def _process(note: dict[str, object], pid: str, started: str) -> Process:
    number = note.get(pid)
    return Process(number if isinstance(number, int) else 0, str(note.get(started)))


def stop(home: Home) -> list[str]:
    """Stop whatever runs on the home: its run in order first, then what is left."""
    note = home.running.read()
    found = []
    if note and (owner := _process(note, "owner", "owner_started")).alive:
        clean = process.end([owner], server.PATIENCE + 10)
        found.append(f"{'Stopped' if clean else 'Killed (it did not answer)'} the run on port {note.get('port')}.")
        note = home.running.read()
    return found + clear(home)
