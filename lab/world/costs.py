"""Calls that take what they move, in virtual time, and invocations that hold what they were given: costs by the memory of a function.

A function has the share `memory / 1,769 MB` of a core. Its own processor time per call (measured with boto3, at a whole core):

- an entry of the due index 17 to 23 us, a whole job 29 us, a projected one `PROJECTED_US`, an item that is written or sent `WRITTEN_US`
- a call to AWS moves `CALLS` items; what does not fit goes in further calls, some in parallel, each `ROUND_MS` later
- a page of `due` ends at 1 MB, and an entry has `ENTRY_BYTES` there
- in a share of the batch reads DynamoDB leaves keys unprocessed: the read then takes longer, and nothing is lost

A call has its effect first and takes its time then, so what it read is that old. A step that outlasts its function's time limit is
killed at its next call. The time of the code between two calls is not modelled.

Memory: an entry in hand counts `ENTRY_MEMORY` bytes, a job `JOB_MEMORY` and its payload, from the read until the step drops the last
reference: `due` and the batch reads return copies that report their end. Not counted: jobs derived by `replace`, messages, claims, and
what the parser of a page needs. A key that outlives its job counts as the job. So the figure is good within a factor of two.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from random import Random
from typing import Any

from lab.world.calls import CALLS, OTHER_ROUND_MS, READS, ROUND_MS, WHOLE_CORE_MB, WRITES, rounds
from lab.world.faults import Faults
from lab.world.hub import Hub, Killed
from lab.world.layers import Layer
from scheduler.model.job import DueEntry, Job, JobKey
from scheduler.storage.ports import Found

DEV = {"api": 512, "tick": 512, "dispatch": 512, "execute": 512}
PROD = {"api": 512, "tick": 512, "dispatch": 1_769, "execute": 768}
LIMIT_MS = {"tick": 300_000, "dispatch": 600_000}  # an invocation ends after this time
ENTRY_US = (17, 23)
JOB_US, PROJECTED_US = 29, 12
WRITTEN_US = 25
PAGE_BYTES, ENTRY_BYTES = 1_000_000, 200
PAGE = PAGE_BYTES // ENTRY_BYTES
COUNTED_MS = 5  # for each page that a count reads
UNPROCESSED = 0.05  # share of batch reads with unprocessed keys
UNPROCESSED_MS = (50, 400)
ENTRY_MEMORY, JOB_MEMORY, PROJECTED_MEMORY = 600, 2_048, 600

_JOB_FIELDS = [each.name for each in fields(Job)]


@dataclass(slots=True)
class Step:
    """One invocation: what it holds and how long it takes. `most` is the largest number of bytes that it held at once."""

    kind: str
    began: int
    core: float
    ended: int = 0
    busy_us: float = 0.0
    in_memory: int = 0
    most: int = 0
    entries: int = 0  # read
    jobs: int = 0  # read whole
    _owed_us: float = 0.0
    _made: dict[tuple[type, int], type] = field(default_factory=dict)

    def work(self, us: float) -> int:
        """Return the milliseconds that this much work of a whole core takes here; fractions are kept for the next call."""
        self.busy_us += us
        self._owed_us += us / self.core
        ms = int(self._owed_us // 1_000)
        self._owed_us -= ms * 1_000
        return ms

    def hold(self, kind: type, size: int, values: Iterable[Any]) -> list[Any]:
        """Return copies of these tuples that count `size` bytes each for as long as they exist."""
        made: Any = self._class(kind, size)
        copies = [tuple.__new__(made, value) for value in values]
        self._add(size * len(copies))
        return copies

    def hold_job(self, job: Any) -> Any:
        """Return a copy of the job that counts for as long as anything refers to it or to its key."""
        size = JOB_MEMORY + len(str(job.spec.payload)) if isinstance(job, Job) else PROJECTED_MEMORY
        kind: Any = self._class(JobKey, size)
        key = tuple.__new__(kind, job.key)
        self._add(size)
        copy = object.__new__(type(job))
        for name in _JOB_FIELDS if isinstance(job, Job) else [each.name for each in fields(job)]:
            object.__setattr__(copy, name, getattr(job, name))
        object.__setattr__(copy, "key", key)
        return copy

    def _add(self, size: int) -> None:
        self.in_memory += size
        if self.in_memory > self.most:
            self.most = self.in_memory

    def _class(self, kind: type, size: int) -> type:
        """Return a subclass of the tuple `kind` whose objects report their end to this step. Tuples derived from them do not count."""
        if (made := self._made.get((kind, size))) is None:
            step = self

            def gone(self: Any) -> None:
                step.in_memory -= size

            body = {"__slots__": (), "__del__": gone, "_make": kind._make}  # type: ignore[attr-defined]
            made = self._made[(kind, size)] = type(f"Held{kind.__name__}", (kind,), body)
        return made


@dataclass
class Costs:
    """The steps of a world, and the most that one of each kind held and took."""

    hub: Hub
    faults: Faults
    memory_mb: Mapping[str, int]
    slowness: float = 1.0  # a scene that is smaller by this factor runs on cores that are slower by it
    random: Random = field(default_factory=lambda: Random(7))
    most: dict[str, int] = field(default_factory=dict)  # by kind: bytes
    longest: dict[str, int] = field(default_factory=dict)  # ms
    busiest: dict[str, float] = field(default_factory=dict)  # us of a whole core
    steps: dict[str, int] = field(default_factory=dict)
    killed: int = 0

    def step(self, kind: str) -> Step:
        self.steps[kind] = self.steps.get(kind, 0) + 1
        return Step(kind, self.hub.time, self.memory_mb[kind] / WHOLE_CORE_MB / self.slowness)

    def note(self, step: Step) -> None:
        """Note the state of a step after a call."""
        kind, step.ended = step.kind, self.hub.time
        self.most[kind] = max(self.most.get(kind, 0), step.most)
        self.longest[kind] = max(self.longest.get(kind, 0), step.ended - step.began)
        self.busiest[kind] = max(self.busiest.get(kind, 0.0), step.busy_us)

    def check(self, step: Step) -> None:
        """Kill a step that outlasted its function's time limit."""
        limit = LIMIT_MS.get(step.kind)
        if limit is not None and self.hub.time - step.began >= limit:
            self.killed += 1
            self.faults.counts["killed at its time limit"] += 1
            raise Killed

    def summary(self, kinds: Sequence[str] = ("tick", "dispatch")) -> dict[str, Any]:
        """Return the figures of these kinds, for a table or JSON."""
        return {
            "memory_mb": {kind: round(self.most.get(kind, 0) * self.slowness / 1e6, 1) for kind in kinds},
            "longest_s": {kind: round(self.longest.get(kind, 0) / 1_000, 1) for kind in kinds},
            "processor_s": {kind: round(self.busiest.get(kind, 0.0) * self.slowness / 1e6, 1) for kind in kinds},
            "steps": {kind: self.steps.get(kind, 0) for kind in kinds},
            "killed_at_limit": self.killed,
        }


class Costly(Layer):
    """A port as one step sees it. Calls take their time and count what they return."""

    def __init__(self, name: str, port: Any, costs: Costs, step: Step) -> None:
        super().__init__(port)
        self._name, self._costs, self._step = name, costs, step

    def around(self, name: str, effect: Callable[..., Any]) -> Callable[..., Any]:
        costs, step = self._costs, self._step
        reads: dict[str, Callable[..., Any]] = {"due": self._due, "due_in": self._due_in, "count": self._count, "tally": self._tally}
        special = reads.get(name) if self._name == "jobs" else None

        def call(*args: Any, **kwargs: Any) -> Any:
            costs.check(step)
            if special is not None:
                answer, ms = special(effect, *args, **kwargs)
            else:
                answer = effect(*args, **kwargs)
                ms = self._moved(name, args)
                if self._name == "jobs":
                    answer, more = self._copied(name, answer)
                    ms += more
            if ms:
                costs.hub.sleep_until(costs.hub.time + ms)
            costs.note(step)
            return answer

        return call

    def _moved(self, name: str, args: Sequence[Any]) -> int:
        """Return the time of what a call writes, sends or requests."""
        if name not in CALLS:
            return 0
        count = max((len(each) for each in args if isinstance(each, Sequence) and not isinstance(each, str)), default=0)
        ms = max(rounds(name, count) - 1, 0) * ROUND_MS.get(name, OTHER_ROUND_MS)
        if name in READS and count and self._costs.random.random() < UNPROCESSED:
            ms += self._costs.random.randint(*UNPROCESSED_MS)
        return ms + (self._step.work(count * WRITTEN_US) if name in WRITES else 0)

    def _copied(self, name: str, answer: Any) -> tuple[Any, int]:
        """Return an answer that counts for as long as the step holds it, and its time."""
        step = self._step
        if isinstance(answer, dict) and answer:
            whole = sum(1 for value in answer.values() if isinstance(value, Job))
            step.jobs += whole
            ms = step.work(whole * JOB_US + (len(answer) - whole) * PROJECTED_US)
            found = {key: step.hold_job(value) if hasattr(value, "key") else value for key, value in answer.items()}
            return Found(found, answer.unreadable) if isinstance(answer, Found) else found, ms
        if isinstance(answer, Job):
            return answer, step.work(JOB_US)
        if name == "claim":
            return answer, step.work(len(answer) * JOB_US)
        if isinstance(answer, tuple) and answer and isinstance(answer[0], list):  # a page of another index or of a scan
            page = answer[0]
            if page and isinstance(page[0], DueEntry):
                return (step.hold(DueEntry, ENTRY_MEMORY, page), *answer[1:]), step.work(sum(ENTRY_US) / 2 * len(page))
            return answer, step.work(sum(ENTRY_US) / 2 * len(page))
        return answer, 0

    def _due(self, effect: Callable[..., Any], slot: str, *, since: int = 0, after: str | None = None) -> tuple[Any, int]:
        page, cursor = paged(effect(slot, since=since)[0], after, max(int(PAGE / self._costs.slowness), 1))
        step = self._step
        step.entries += len(page)
        ms = step.work(self._costs.random.uniform(*ENTRY_US) * len(page))
        return (step.hold(DueEntry, ENTRY_MEMORY, page), cursor), ms

    def _due_in(self, effect: Callable[..., Any], slots: Sequence[str], *, since: int = 0) -> tuple[Any, int]:
        whole = dict(zip(slots, effect(slots, since=since), strict=True))
        read = [self._due(lambda slot, **_: whole[slot], slot, since=since) for slot in slots]
        return [page for page, _ in read], sum(ms for _, ms in read)  # threads share the core

    def _count(self, effect: Callable[..., Any], *args: Any, **kwargs: Any) -> tuple[Any, int]:
        counted = effect(*args, **kwargs)
        return counted, int(counted * self._costs.slowness) // PAGE * COUNTED_MS

    def _tally(self, effect: Callable[..., Any], *args: Any) -> tuple[Any, int]:
        counted = effect(*args)
        return counted, int(max(counted, default=0) * self._costs.slowness) // PAGE * COUNTED_MS


def paged(entries: Sequence[DueEntry], after: str | None, size: int) -> tuple[Sequence[DueEntry], str | None]:
    """Return the page of `size` entries beyond the position `after`, and the position of its last entry if more follow.

    The entries are sorted by due time, then by key, as in the index. An entry that was changed between two pages may appear in both.
    """
    first = 0
    if after is not None:
        due_at, owner, job_id = after.split(" ", 2)
        position = (int(due_at), (owner, job_id))
        low, high = 0, len(entries)
        while low < high:
            middle = (low + high) // 2
            if (entries[middle].due_at, tuple(entries[middle].key)) <= position:
                low = middle + 1
            else:
                high = middle
        first = low
    page = entries[first : first + size]
    if first + size >= len(entries):
        return page, None
    last = page[-1]
    return page, f"{last.due_at} {last.key.owner} {last.key.id}"
