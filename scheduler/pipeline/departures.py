"""The times at which the entries of a unit leave: those of a crowd in packs, the others by the lead of their lane."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter

from scheduler.model.errors import Unavailable
from scheduler.model.job import DueEntry, Lane
from scheduler.pipeline import lead, packs
from scheduler.pipeline.latency import FRESH_MS
from scheduler.sharing.window import Flow
from scheduler.storage.ports import Ports

Crowd = tuple[Lane, int]  # a lane, and the number of the span in which its jobs are due (`packs.second`)


@dataclass(slots=True)
class Planned:
    """An entry and the time (ms) at which it leaves."""

    leave: int
    entry: DueEntry


@dataclass(slots=True)
class Departures:
    """The crowds of one unit, planned or published, and the leads of its lanes."""

    ports: Ports
    flow: Flow
    at_once: bool = False  # entries leave now, however long ahead: an executor sends each on, delayed until shortly before its instant
    leads: Mapping[Lane, int] = field(default_factory=dict)  # of early messages
    _crowds: Counter[Crowd] = field(default_factory=Counter)  # the number of jobs of each crowd, planned or published
    _gone: Counter[Crowd] = field(default_factory=Counter)  # the number of published jobs of each crowd
    _in_steps: set[Crowd] = field(default_factory=set)  # the crowds that leave pack by pack

    def plan(self, waiting: Sequence[DueEntry], now: int, rate: float) -> list[Planned]:
        """Return the entries, which are in order of their due times, by the time at which each leaves.

        `rate`: the jobs that leave in a millisecond.
        """
        self._gone = Counter({crowd: jobs for crowd, jobs in self._gone.items() if crowd[1] >= packs.second(now)})
        self._crowds = self._gone + Counter([crowd_of(entry) for entry in waiting])
        self._in_steps = set()
        if self.at_once:
            self.leads = self._delayed_leads(waiting)
            return [Planned(now, entry) for entry in waiting]
        usual = self.usual_executors
        large = [crowd for crowd, jobs in self._crowds.items() if crowd[0] is not Lane.RETRY and packs.is_crowd(jobs, usual)]
        crowds = {crowd for crowd in large if packs.is_crowd(self.together(crowd), usual)}
        crowded = [entry for entry in waiting if crowd_of(entry) in crowds] if crowds else []
        alone = [entry for entry in waiting if crowd_of(entry) not in crowds] if crowds else waiting
        planned = self._plan_crowds(crowded) + self._plan_singly(alone, rate)
        return sorted(planned, key=attrgetter("leave")) if crowded else planned

    def publish(self, entries: Sequence[DueEntry]) -> None:
        """Count these entries as published."""
        self._gone.update(map(crowd_of, entries))

    def take_back(self, entries: Sequence[DueEntry]) -> None:
        """Count these entries as not published: the topic refused them."""
        self._gone.subtract(map(crowd_of, entries))

    def is_step(self, entry: DueEntry) -> bool:
        """Return whether the entry is of a crowd that leaves pack by pack."""
        return crowd_of(entry) in self._in_steps

    @property
    def usual_executors(self) -> float:
        """The executors of a quiet lane that are ready for the jobs of this unit: its share of them."""
        return self.ports.rules.ready_executors * self.flow.share

    def has_crowd(self, entries: Sequence[DueEntry]) -> bool:
        """Return whether a crowd is among these jobs, which leaves in packs."""
        crowds = Counter(crowd_of(entry) for entry in entries if entry.lane is not Lane.RETRY)
        return any(packs.is_crowd(jobs, self.usual_executors) for jobs in crowds.values())

    def together(self, crowd: Crowd) -> float:
        """Return how many jobs of a crowd leave ahead of their instant: no more than the lane's executors can start at once."""
        return min(self._crowds[crowd], self.flow.most_ahead(crowd[0]))

    def _plan_crowds(self, crowded: Sequence[DueEntry]) -> list[Planned]:
        """Plan the jobs of crowds, in order of their due times.

        Of packs that arrive together a poller takes up to ten, and other executors get none. So a crowd that needs no more packs than
        executors leaves pack by pack, each with the lead of the jobs that are left. A larger one leaves at once: an executor that has a
        pack takes no other before the instant.
        """
        usual = self.usual_executors
        together = {crowd: self.together(crowd) for crowd in {*map(crowd_of, crowded)}}
        sizes = {crowd: packs.size(jobs, usual) for crowd, jobs in together.items()}
        leads = {crowd: self._crowd_lead(jobs) for crowd, jobs in together.items()}
        self._in_steps = {crowd for crowd, jobs in together.items() if jobs <= packs.MOST * max(usual, 1)}
        gone, leaves, planned = Counter(self._gone), dict[Crowd, int](), list[Planned]()
        for entry in crowded:
            crowd = crowd_of(entry)
            leave = entry.due_at - leads[crowd]
            if crowd in self._in_steps:
                if crowd not in leaves or gone[crowd] % sizes[crowd] == 0:
                    leaves[crowd] = entry.due_at - self._crowd_lead(together[crowd] - gone[crowd])
                leave = leaves[crowd]
                gone[crowd] += 1
            planned.append(Planned(leave, entry))
        return planned

    def _crowd_lead(self, jobs: float) -> int:
        """Return the lead (ms) of jobs of a crowd. Other units have as many of it as their share of the slots."""
        return packs.lead(round(max(jobs, 0) / self.flow.share), self.ports.rules.crowd_hold_ms)

    def _plan_singly(self, waiting: Sequence[DueEntry], rate: float) -> list[Planned]:
        """Plan jobs that leave by the lead of their lane, in order of their due times."""
        leads = self._leads_of(waiting, self.ports.rules.lead_ms)
        leaves = lead.leave_times(
            [entry.due_at for entry in waiting],
            [leads[entry.lane] for entry in waiting],
            rate=rate,
            hold_ms=self.ports.rules.hold_ms,
        )
        return [Planned(leave, entry) for leave, entry in zip(leaves, waiting, strict=True)]

    def _delayed_leads(self, waiting: Sequence[DueEntry]) -> dict[Lane, int]:
        """Return the lead of each lane for delayed messages. While none was measured, one executor is warm: the one that sends them on."""
        jobs = Counter(entry.lane for entry in waiting)
        few = [entry for entry in waiting if jobs[entry.lane] <= packs.BATCH]
        more = [entry for entry in waiting if jobs[entry.lane] > packs.BATCH]
        return self._leads_of(few, lead.WARM_MS, delayed=True) | self._leads_of(more, self.ports.rules.lead_ms, delayed=True)

    def _leads_of(self, waiting: Sequence[DueEntry], default_ms: int, *, delayed: bool = False) -> dict[Lane, int]:
        """Return the lead of each lane; `default_ms`: if its latency was not measured lately."""
        since, hold_ms = self.ports.clock.now() - FRESH_MS, self.ports.rules.hold_ms
        lanes = sorted({entry.lane for entry in waiting})
        return {lane: lead.lead(self._latency(lane, since, delayed), default_ms, hold_ms) for lane in lanes}

    def _latency(self, lane: Lane, since: int, delayed: bool) -> int | None:
        """Return the measured latency (ms) of a lane, None if it is unknown: a ledger that refuses must not stop the publishing."""
        try:
            return self.ports.ledger.latency(lane, since, deployment=self.ports.rules.deployment, delayed=delayed)
        except Unavailable:
            return None


def crowd_of(entry: DueEntry) -> Crowd:
    """Return the crowd that the entry may belong to."""
    return entry.lane, entry.due_at // packs.SPAN_MS  # as `packs.second`, without a call for each of thousands of entries
