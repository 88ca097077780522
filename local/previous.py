"""Cleans up after an earlier run in the same home, whether it still runs, lost its owner, or was killed."""

from local import deploy, process, server
from local.failure import Trouble
from local.home import Home
from local.process import Process

PATIENCE = 40.0  # seconds for an owner to stop; after that, its local AWS is stopped from here


def clear(home: Home) -> list[str]:
    """Clean up for a new run; returns the findings, for people. Raises Trouble if a run is active and has its owner."""
    found = _settle(home, home.running.read())
    if deploy.end_abandoned(home):
        found.append("Stopped a deployment that an earlier run left behind.")
    if orphans := server.end_workers(home):
        found.append(f"Stopped {orphans} function workers that an earlier run left behind.")
    home.running.drop()
    return found


def _settle(home: Home, note: dict[str, object]) -> list[str]:
    owner, left = _process(note, "owner", "owner_started"), server.of_home(home)
    if owner.alive:
        raise Trouble(
            f"Punctual is already running here (process {owner.pid}, port {note.get('port')}).\n"
            f"Use that run, press Ctrl-C in its terminal, or stop it from here: {home.commands.stop.format(pid=owner.pid)}"
        )
    if not note and not left:
        return []
    ended = [server.end(home, aws) for aws in left]
    if home.saved.exists():
        return ["An earlier run was killed. Its local AWS is stopped now; its jobs are kept."]
    if ended:
        return [f"An earlier run was killed, and its state could not be saved. {LOST} The log has the reason: {home.log}"]
    return [f"The local AWS of an earlier run was killed. {LOST}"]


LOST = "Everything since the start of that run is lost; what was there before is kept."


def _process(note: dict[str, object], pid: str, started: str) -> Process:
    number = note.get(pid)
    return Process(number if isinstance(number, int) else 0, str(note.get(started)))


def stop(home: Home) -> list[str]:
    """Stop the run of the home in order, then clean up; returns the findings, for people."""
    note = home.running.read()
    found = []
    if note and (owner := _process(note, "owner", "owner_started")).alive:
        clean = process.end([owner], PATIENCE)
        found.append(f"{'Stopped' if clean else 'Killed (it did not stop when requested)'} the run on port {note.get('port')}.")
        note = home.running.read()
    return found + clear(home)
