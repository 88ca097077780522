"""Items as the table stores them, in a simulated world: through the real codec, with sizes, and some that cannot be read or changed.

`CodedWorld` passes every job that is written or read through `items.encode` and `items.decode`, and refuses changes to items above
DynamoDB's limit, as the real adapter does.

`PoisonedWorld` stores a few bad jobs beside the good ones. `Bad` says which calls fail for them:

    READ       its item cannot be decoded by this version: the contract of `Jobs` for unreadable items applies
    LISTED     its entry in the due index cannot be decoded: `due` leaves it out
    CHANGED    no change of it fits into its item
"""

from collections.abc import Mapping, Sequence
from enum import Enum, auto
from typing import Any

from lab.world.faults import CALM, Rates
from lab.world.layers import Layer
from scheduler.model import ids, slots
from scheduler.model.errors import TooLarge
from scheduler.model.job import DueEntry, Job, JobKey
from scheduler.model.rules import Rules
from scheduler.model.spec import JobSpec
from scheduler.storage.aws import items
from scheduler.storage.ports import Change, ClaimRequest, ClaimResult, Found, Written
from tests.simulation.stepped import SteppedWorld
from tests.simulation.world import START

ITEM_LIMIT = 409_600  # bytes of an item
CLAIM_BYTES = 190  # the size of a claim
BAD_JOBS = 3
BAD_AT = 6 * slots.MINUTE  # when the bad jobs are due


class Coded(Layer):
    """The port `Jobs` over items. `rows` are the stored jobs."""

    def __init__(self, port: Any, rows: Mapping[JobKey, Job]) -> None:
        super().__init__(port)
        self._rows = rows

    def put(self, job: Job) -> Any:
        return self._port.put(_coded(job))

    def put_many(self, jobs: Sequence[Job]) -> Any:
        return self._port.put_many([_coded(job) for job in jobs])

    def get(self, key: JobKey) -> Job | None:
        job = self._port.get(key)
        return None if job is None else _coded(job)

    def get_many(self, keys: Sequence[JobKey]) -> Found[JobKey, Job]:
        return self._decoded(self._port.get_many(keys))

    def glance(self, jobs: Sequence[Job]) -> Found[JobKey, Job]:
        return self._decoded(self._port.glance(jobs))

    @staticmethod
    def _decoded(found: Found[JobKey, Job]) -> Found[JobKey, Job]:
        return Found({key: _coded(job) for key, job in found.items()}, found.unreadable)

    def claim(self, requests: Sequence[ClaimRequest]) -> list[ClaimResult | None]:
        fits = [self._size(request.key) + CLAIM_BYTES <= ITEM_LIMIT for request in requests]
        answers = iter(self._port.claim([request for request, fit in zip(requests, fits, strict=True) if fit]) if any(fits) else ())
        return [next(answers) if fit else None for fit in fits]

    def change(self, changes: Sequence[Change]) -> list[Written]:
        fits = [items.size(items.encode(change.after)) <= ITEM_LIMIT for change in changes]
        coded = [change._replace(after=_coded(change.after)) for change, fit in zip(changes, fits, strict=True) if fit]
        answers = iter(self._port.change(coded) if coded else ())
        return [next(answers) if fit else Written.REFUSED for fit in fits]

    def _size(self, key: JobKey) -> int:
        job = self._rows.get(key)
        return 0 if job is None else items.size(items.encode(job))


def _coded(job: Job) -> Job:
    """Return the job as the table would store it. Raises TooLarge above the limit of an item."""
    item = items.encode(job)
    if items.size(item) > ITEM_LIMIT:
        raise TooLarge
    return items.decode(item)


class CodedWorld(SteppedWorld):
    """A world whose jobs are items. Jobs are stored through the codec, too, wherever they come from."""

    def _wrap(self, name: str, port: Any) -> Any:
        port = super()._wrap(name, port)
        return Coded(port, self.jobs.rows) if name == "jobs" else port


class Bad(Enum):
    """The calls that fail for a bad job; see the module."""

    READ = auto()
    LISTED = auto()
    CHANGED = auto()


class Poisoned(Layer):
    """The port `Jobs` with bad jobs."""

    def __init__(self, port: Any, bad: Bad, keys: set[JobKey]) -> None:
        super().__init__(port)
        self._bad, self._keys = bad, keys

    def due(self, slot: str, **page: Any) -> tuple[list[DueEntry], str | None]:
        found, cursor = self._port.due(slot, **page)
        return [entry for entry in found if self._bad is not Bad.LISTED or entry.key not in self._keys], cursor

    def change(self, changes: Sequence[Change]) -> list[Written]:
        good = [self._bad is not Bad.CHANGED or change.before.key not in self._keys for change in changes]
        answers = iter(self._port.change([change for change, fit in zip(changes, good, strict=True) if fit]) if any(good) else ())
        return [next(answers) if fit else Written.REFUSED for fit in good]


class PoisonedWorld(SteppedWorld):
    """A world with bad jobs, which only the oracles of the good ones judge."""

    def __init__(self, seed: int, bad: Bad, rates: Rates = CALM, *, rules: Rules | None = None) -> None:
        self._bad, self._bad_keys = bad, set[JobKey]()
        super().__init__(seed, rates, rules=rules or Rules(shards=8))
        self.hub.at(START + 1_000, self._store_bad)

    def _wrap(self, name: str, port: Any) -> Any:
        port = super()._wrap(name, port)
        return Poisoned(port, self._bad, self._bad_keys) if name == "jobs" else port

    def _store_bad(self) -> None:
        """Store the bad jobs in one slot, unseen by the clients, as another version of the product may have left them."""
        number = 0
        while len(self._bad_keys) < BAD_JOBS:
            number += 1
            job_id = ids.new(START + BAD_AT, number)
            slot = slots.slot(slots.minute_of(START + BAD_AT), job_id, self.rules.shards)
            if not slot.endswith("#03"):
                continue
            spec = JobSpec("log", {"takes": 1, "fails": 0})
            job = Job("user", job_id, spec, START + BAD_AT, START + BAD_AT, self.hub.time, slot)
            self._bad_keys.add(job.key)
            self.jobs.put(job)
            if self._bad is Bad.READ:
                self.jobs.unreadable[job.key] = "'sideways' is not a valid Jitter"

    def _violation(self, kind: str, job_id: str) -> None:
        """Leave out the bad jobs, which nobody can help. The minute of a job that cannot be changed stays open, as the lag shows."""
        if kind == "ledger_open" and self._bad is Bad.CHANGED:
            return
        if not any(key.id in job_id for key in self._bad_keys):
            super()._violation(kind, job_id)
