"""Services on different settings, and tables that come back from an earlier time, in a simulated world.

    rolling     the api has 64 shards, all other functions still 16; ten minutes later all have 64
    rollback    the api has 64 shards for five minutes, then 16 again: no other function ever has 64
    emptied     the ledger is empty from one moment to the next, while jobs wait in minutes and in the overflow
    restored    the jobs table is put back to what it was 25 hours before; the ledger goes on

The oracle `lost` reads every stored job, from any version: it must have ended at the end of the run.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from lab.world.faults import CALM, Rates
from scheduler.admission.lane_state import resume
from scheduler.model import lifecycle, slots
from scheduler.model.job import Job, JobKey, Lane, UnitKey
from scheduler.model.rules import Rules
from scheduler.pipeline.direct_path import DirectPath
from scheduler.storage.confirmed import ConfirmedRules
from scheduler.storage.memory import stores
from scheduler.storage.memory.ports import MemoryPorts
from scheduler.storage.memory.stores import MemoryLedger
from tests.simulation.stepped import KINDS, SteppedWorld
from tests.simulation.world import START

FEW, MANY = 16, 64  # shards
OFTEN = 5 * slots.MINUTE
BACK_MS = 25 * 60 * slots.MINUTE
WIND_DOWN = 150  # minutes in which every job must end


class DeployedWorld(SteppedWorld):
    """A world in which each function has its own settings: `settings`, by the kinds of `stepped`."""

    def __init__(self, seed: int, rates: Rates = CALM, *, rules: Rules | None = None) -> None:
        first = rules or Rules(shards=FEW)
        self.settings = dict.fromkeys(KINDS, first)
        super().__init__(seed, rates, rules=first)

    def _begin(self, kind: str, ports: MemoryPorts) -> MemoryPorts:
        begun = super()._begin(kind, ports)
        return begun.but(rules=ConfirmedRules(self.settings[kind], lambda: begun.ledger, begun.clock).get())

    def post_ahead(self, count: int, since: int, until: int, ahead_ms: int) -> None:
        """Let clients post `count` jobs between the instants `since` and `until`, each due up to `ahead_ms` after the slots' horizon."""
        for number in range(count):
            at = since + number * (until - since) // count
            self.post_one(at, at + slots.HORIZON + slots.MINUTE + number * 7_919 % ahead_ms)

    def deploy(self, settings: Mapping[str, Rules]) -> None:
        """Replace the settings of some functions, and their processes."""
        self.settings |= settings
        if "api" in settings:
            self.processes = [DirectPath(self._ports()) for _ in self.processes]
        if "execute" in settings:
            self._warm = {lane: [] for lane in Lane}

    def shards(self, count: int, *kinds: str) -> None:
        """Deploy these functions with this number of shards."""
        self.deploy({kind: replace(self.settings[kind], shards=count) for kind in kinds})

    def empty_ledger(self) -> None:
        """Let the ledger forget everything."""
        fresh = MemoryLedger()
        vars(self.ledger).update({name: value for name, value in vars(fresh).items() if name in vars(self.ledger)})

    def backup(self) -> tuple[dict[JobKey, Job], dict[UnitKey, str], int]:
        """Return what the jobs table contains: jobs, canaries and its mark."""
        return dict(self.jobs.rows), dict(self.jobs._canaries), self.jobs.mark()

    def restore(self, backup: tuple[dict[JobKey, Job], dict[UnitKey, str], int]) -> None:
        """Replace the jobs table by a backup. The oracles forget all starts since then: those jobs may run again."""
        jobs, (rows, canaries, jobs._mark) = self.jobs, backup
        for part in (jobs.rows, jobs._index, jobs._unseen, jobs._shown, jobs._placed, jobs._there, jobs._canaries, jobs._visible):
            part.clear()  # type: ignore[attr-defined]
        jobs._canaries.update(canaries)
        jobs._visible.update(dict.fromkeys(canaries, self.hub.time))
        for job in rows.values():
            jobs.rows[job.key] = job
            jobs._placed[job.key] = self.hub.time
            jobs._there[job.slot or ""].add(job.key)
            jobs._reindex(None, stores._entry(job))
        self._starts.clear()
        self._settled.clear()

    def _judge(self) -> Any:
        report = super()._judge()
        for key, job in self.jobs.rows.items():
            if key not in self._accepted and lifecycle.is_open(job):
                self._violation("lost", key.id)
        return report


def rolling(jobs: int = 200, *, seed: int = 1) -> DeployedWorld:
    """Run the rolling deployment."""
    world = DeployedWorld(seed)
    world.hub.at(START + OFTEN, lambda: world.shards(MANY, "api"))
    world.hub.at(START + 3 * OFTEN, lambda: world.shards(MANY, *KINDS))
    world.post_ahead(jobs, START + OFTEN, START + 3 * OFTEN, 2 * OFTEN)
    world.run(jobs, 20, wind_down=WIND_DOWN)
    return world


def rollback(jobs: int = 200, *, seed: int = 1) -> DeployedWorld:
    """Run the deployment that fails after the api was updated."""
    world = DeployedWorld(seed)
    world.hub.at(START + OFTEN, lambda: world.shards(MANY, "api"))
    world.hub.at(START + 2 * OFTEN, lambda: world.shards(FEW, "api"))
    world.post_ahead(jobs, START + OFTEN, START + 2 * OFTEN, 12 * OFTEN)
    world.run(jobs, 20, wind_down=WIND_DOWN)
    return world


def emptied(jobs: int = 200, *, seed: int = 1) -> DeployedWorld:
    """Run a world whose ledger is emptied between two ticks, while jobs wait in the overflow."""
    world = DeployedWorld(seed, rules=Rules(shards=2, windows={Lane.ONE_TIME: 5, Lane.RECURRING: 5}, direct_burst=1, direct_rate=1))
    world.hub.at(START + 2 * OFTEN + 20_000, world.empty_ledger)
    world.post_ahead(jobs, START + OFTEN, START + 3 * OFTEN, 12 * OFTEN)
    world.run(jobs, 20, wind_down=WIND_DOWN)
    return world


def restored(jobs: int = 200, *, seed: int = 1, back_ms: int = BACK_MS) -> DeployedWorld:
    """Run a world whose jobs table is restored to the state that it had `back_ms` before."""
    world = DeployedWorld(seed)
    backups: list[Any] = []
    world.post_ahead(jobs, START, START + OFTEN, 2 * OFTEN)
    world.hub.at(START + OFTEN, lambda: backups.append(world.backup()))
    world.hub.at(START + OFTEN + back_ms, lambda: world.restore(backups.pop()))
    lost_sight = world._accepted

    def forget() -> None:
        """Jobs posted after the backup are gone with the table."""
        lost_sight.intersection_update(world.jobs.rows)

    def resume_all() -> None:
        """An operator finds all lanes paused, checks the jobs, and resumes the lanes."""
        states = world.ledger.watched().lanes
        if any(lane not in states or states[lane].paused_at is None for lane in Lane):
            world._violation("not_paused", "after the restore")
        resume(tuple(Lane), None, world.plain)

    world.hub.at(START + OFTEN + back_ms, forget)
    world.hub.at(START + 2 * OFTEN + back_ms, resume_all)
    world.run(jobs, 20, wind_down=(OFTEN + back_ms) // slots.MINUTE + WIND_DOWN)
    return world


SCENES = {"rolling": rolling, "rollback": rollback, "emptied": emptied, "restored": restored}


def outcome(name: str, jobs: int = 200, *, seed: int = 1) -> dict[str, Any]:
    """Run one of the scenes, and return its figures."""
    world = SCENES[name](jobs, seed=seed)
    report = world.report
    return {
        "scene": name,
        "accepted": report.accepted,
        "stored": len(world.jobs.rows),
        "lost": report.violations["lost"],
        "violations": dict(report.violations),
        "latest_s": max(report.delays, default=0) // 1_000,
        "examples": report.examples[:3],
    }
