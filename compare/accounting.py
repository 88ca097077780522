"""Processor time and memory of process trees, from /proc. A process counts with the children that it has waited for."""

import os
from collections import defaultdict
from collections.abc import Collection, Iterable
from contextlib import suppress
from typing import NamedTuple

from local.process import PROC, Process, end, started

TICK = os.sysconf("SC_CLK_TCK")
MB = 1_024  # kB


class _Entry(NamedTuple):
    parent: int
    ticks: int


def tree(roots: Iterable[int]) -> dict[int, int]:
    """Return the living processes below and with these, and the ticks of processor that each has used."""
    entries = {int(each.name): entry for each in PROC.iterdir() if each.name.isdigit() and (entry := _entry(int(each.name)))}
    children = defaultdict(list)
    for pid, entry in entries.items():
        children[entry.parent].append(pid)
    found: dict[int, int] = {}
    waiting = list(roots)
    while waiting:
        pid = waiting.pop()
        if pid in entries and pid not in found:
            found[pid] = entries[pid].ticks
            waiting += children[pid]
    return found


def _entry(pid: int) -> _Entry | None:
    with suppress(OSError):
        fields = (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
        return _Entry(int(fields[1]), sum(map(int, fields[11:15])))
    return None


def cpu_s(roots: Iterable[int]) -> float:
    """Return the seconds of processor that the trees have used."""
    return sum(tree(roots).values()) / TICK


def memory_mb(roots: Iterable[int]) -> float:
    """Return the memory of the trees in MB, shared pages divided among those that share them (PSS)."""
    total = 0
    for pid in tree(roots):
        with suppress(OSError):
            rows = (PROC / str(pid) / "smaps_rollup").read_text().splitlines()
            total += next((int(row.split()[1]) for row in rows if row.startswith("Pss:")), 0)
    return total / MB


def machine_s() -> float:
    """Return the seconds of processor that the whole machine has used."""
    fields = [int(field) for field in (PROC / "stat").read_text().split("\n", 1)[0].split()[1:]]
    return (sum(fields[:3]) + sum(fields[5:8])) / TICK


def stop(roots: Collection[int], patience: float = 8) -> None:
    """End these processes with SIGTERM, then what is left of their trees."""
    whole = [Process(pid, began) for pid in tree(roots) if (began := started(pid))]
    end([each for each in whole if each.pid in roots], patience)
    end([each for each in whole if each.alive], 1)
