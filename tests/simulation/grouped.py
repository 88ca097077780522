"""Users who make groups of jobs in a simulated world, the reader of the jobs' stream, and the oracles.

group_early      a call-back was stored before the seal, or while a member had not ended; or that of a success, while one had not succeeded
group_twice      a call-back was stored twice
group_never      all members of a sealed group have ended, and a call-back that follows is missing; or the group is not ended
group_miscounted the counts of a group exceed the truth; or at the end, they differ from it
group_lost       a group that was answered to its owner is missing, or a number of members that were accepted
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from lab.world.faults import Faults
from lab.world.hub import Hub, Killed
from lab.world.tables import LaggingJobs
from scheduler.groups import counting, ends
from scheduler.jobs import groups
from scheduler.jobs.groups import NewGroup
from scheduler.jobs.retry_job import retry_job
from scheduler.model import ids, lifecycle, slots
from scheduler.model.errors import Conflict, NotFound, Unavailable
from scheduler.model.group import CallKind, End, Group, GroupKey, GroupState
from scheduler.model.job import Job, JobKey, Receipt
from scheduler.model.spec import JobSpec
from scheduler.pipeline.enqueue import try_enqueue
from scheduler.pipeline.submit import Accepted, NewJob, Submission, submit_all
from scheduler.storage.memory.groups import MemoryGroups


class WatchedGroups(MemoryGroups):
    """Groups whose heads are watched, as by the stream of their table."""

    def __init__(self, changed: Callable[[Group], None]) -> None:
        super().__init__()
        self._changed = changed

    def add(self, group: Group) -> bool:
        return super().add(group) and self._told(group.key, True)

    def seal(self, key: GroupKey, at: int, *, cancelled: bool = False) -> Group | None:
        before = self.heads.get(key)
        sealed = super().seal(key, at, cancelled=cancelled)
        self._told(key, before is not None and before.sealed_at is None)
        return sealed

    def end(self, key: GroupKey, at: int, *, succeeded: bool, expires: int) -> Group:
        before = self.heads[key]
        ended = super().end(key, at, succeeded=succeeded, expires=expires)
        self._told(key, before.ended_at is None)
        return ended

    def _told(self, key: GroupKey, news: bool) -> bool:
        group = self.get(key)
        if news and group is not None and group.sealed_at is not None:
            self._changed(group)
        return True


OWNER = "grouper"
SIZES = (0, 1, 2, 3, 5, 16, 17, 40)
FAILS = (0,) * 9 + (9,)  # more often than a job is tried: it fails
PAUSES_MS = (500, 1_000, 5_000, 60_000)  # before a request without an answer is repeated
STREAM_MS = (200, 500, 1_000, 2_000)  # from a write to its delivery by the stream
ABANDONED_MS = 20 * slots.MINUTE  # within which some groups are not sealed
REDRIVE_AGAIN_MS = 600_000  # until the retried members of a group are looked at again
LOOK_MS = 20_000  # between two looks at the counts of a group
SPEC = JobSpec("log", {}, max_attempts=2, timeout_ms=60_000)
CALLS = {kind: JobSpec("log", {"takes": 1, "fails": 0, "call": kind.value}) for kind in CallKind}


@dataclass
class Course:
    """What a user does with one group."""

    size: int
    fails: Sequence[int]
    seals: bool  # with its jobs, in one request; else jobs join in `joins` requests
    joins: int = 1
    leaves: bool = False  # it is never sealed
    cancels: bool = False
    redrives: bool = False
    key: GroupKey | None = None
    accepted: set[str] = field(default_factory=set)


@dataclass
class Groupers:
    """Make groups. `ports()` returns the ports as one invocation sees them."""

    hub: Hub
    faults: Faults
    random: Random
    ports: Callable[[], Any]
    plain: Any
    jobs: LaggingJobs
    violation: Callable[[str, str], None]
    courses: list[Course] = field(default_factory=list)
    stored: Counter[tuple[str, str]] = field(default_factory=Counter)  # call-backs by group and kind
    truth: dict[str, dict[str, Job]] = field(default_factory=lambda: defaultdict(dict))  # the members of each group, as written last
    ever: dict[str, set[tuple[str, int, End]]] = field(default_factory=lambda: defaultdict(set))  # each end of each member
    last_end: dict[str, int] = field(default_factory=dict)  # by group: the last end of a member, redrives not included
    _requests: int = 0

    # actions

    def plan(self, count: int, begin: int, end: int) -> None:
        for _ in range(count):
            size = self.random.choice(SIZES)
            fails = [self.random.choice(FAILS) for _ in range(size)]
            course = Course(size, fails, self.random.random() < 0.5, self.random.randint(1, 4))
            course.leaves = not course.seals and self.random.random() < 0.15
            course.cancels = not course.leaves and self.random.random() < 0.15
            course.redrives = self.random.random() < 0.7
            self.courses.append(course)
            self._later(lambda course=course: self._create(course), self.random.randint(begin, end))  # type: ignore[misc]

    def plan_one(self, size: int, failing: float, at: int) -> None:
        """Plan one group, which jobs join by thousands; the failed ones are redriven."""
        fails = [9 if self.random.random() < failing else 0 for _ in range(size)]
        course = Course(size, fails, seals=False, joins=-(-size // 1_000), redrives=True)
        self.courses.append(course)
        self._later(lambda: self._create(course), at)

    def _later(self, act: Callable[[], None], at: int) -> None:
        self.hub.spawn(act, at)

    def _repeated(self, act: Callable[[], None]) -> None:
        """Act until there is an answer."""
        try:
            act()
        except (Unavailable, Killed) as error:
            self._later(lambda: self._repeated(act), self.hub.time + self.random.choice(PAUSES_MS))
            if isinstance(error, Killed):
                raise

    def _receipt(self, name: str) -> Callable[[int], Receipt]:
        """Return a function that makes the receipt of each try of one request, at an instant."""
        self._requests += 1
        key = f"{name} {self._requests}"
        return lambda now: Receipt(OWNER, key, key, now, self.random.getrandbits(ids.RANDOM_BITS))

    def _asked(self, course: Course, numbers: Sequence[int]) -> list[NewJob]:
        at = self.hub.time
        return [
            NewJob(
                OWNER,
                JobSpec(
                    "log", {"takes": self.random.choice((1, 20, 500)), "fails": course.fails[number]}, max_attempts=2, timeout_ms=60_000
                ),
                self.random.choice((None, at + 5_000, at + 60_000, at + 400_000)),
            )
            for number in numbers
        ]

    def _create(self, course: Course) -> None:
        receipt, asked = self._receipt("group"), self._asked(course, range(course.size if course.seals else 0))
        within = ABANDONED_MS if course.leaves else groups.SEAL_WITHIN_MS

        def create() -> None:
            ports = self.ports()
            jobs = [Submission(request, self.random.getrandbits(ids.RANDOM_BITS)) for request in asked]
            new = NewGroup(OWNER, None, CALLS, seal=course.seals, seal_within_ms=within)
            made = groups.create(new, jobs, ports, random=self.random.getrandbits(ids.RANDOM_BITS), receipt=receipt(ports.clock.now()))
            course.key = made.group.key
            course.accepted |= {done.job.id for done in made.results if isinstance(done, Accepted)}
            self._go_on(course)

        self._repeated(create)

    def _go_on(self, course: Course) -> None:
        now = self.hub.time
        if course.cancels:
            self._later(lambda: self._repeated(lambda: self._seal(course, groups.cancel)), now + self.random.choice((1, 3_000, 90_000)))
        if course.seals:
            return
        numbers, last = list(range(course.size)), now
        for part in range(course.joins):
            share = numbers[part :: course.joins]
            last = now + self.random.randint(0, 120_000)
            if share:
                self._later(lambda share=share: self._join(course, share), last)  # type: ignore[misc]
        if not course.leaves:
            self._later(lambda: self._repeated(lambda: self._seal(course, groups.seal)), now + 121_000 + self.random.randint(0, 300_000))

    def _join(self, course: Course, numbers: Sequence[int]) -> None:
        assert course.key is not None
        asked, receipts = self._asked(course, numbers), [self._receipt("member") for _ in numbers]
        group = course.key.id

        def join() -> None:
            ports = self.ports()
            now = ports.clock.now()
            jobs = [
                Submission(replace(request, group=group), self.random.getrandbits(ids.RANDOM_BITS), receipt(now))
                for request, receipt in zip(asked, receipts, strict=True)
            ]
            done = submit_all(jobs, ports)
            course.accepted |= {each.job.id for each in done if isinstance(each, Accepted)}
            if None in done:
                raise Unavailable

        self._repeated(join)

    def _seal(self, course: Course, act: Callable[[GroupKey, Any], Group]) -> None:
        assert course.key is not None
        try:
            act(course.key, self.ports())
        except Conflict:
            pass  # all members have ended, or it was abandoned

    def _redrive(self, group: str) -> None:
        """Fix the cause of the failures, and retry them; later those again that failed for other reasons."""
        dead = [job for job in self.truth[group].values() if not lifecycle.is_open(job) and lifecycle.state(job) in lifecycle.DEAD]
        for job in dead:
            job.spec.payload["fails"] = 0  # type: ignore[index]
            self._later(lambda key=job.key: self._repeated(lambda: self._retry(key)), self.hub.time + 1)  # type: ignore[misc]
        if dead:
            self._later(lambda: self._redrive(group), self.hub.time + REDRIVE_AGAIN_MS)

    def _retry(self, key: JobKey) -> None:
        try:
            retry_job(key, self.ports(), request=f"retry {self.random.getrandbits(40)}")
        except (Conflict, NotFound):
            pass

    # the stream

    def written(self, before: Job | None, after: Job) -> None:
        """Check a write of the jobs table, and deliver it to the reader of the stream."""
        if after.group is None:
            return
        if after.member is None:
            if before is None:
                self._called(after)
            return
        self.truth[after.group][after.id] = after
        if lifecycle.is_open(after) or (before is not None and not lifecycle.is_open(before)):
            return
        if not after.redrives:
            self.last_end[after.group] = self.hub.time
        self.ever[after.group].add((after.id, after.redrives, counting.ENDS[lifecycle.state(after)]))
        self._later(lambda: self._read(after), self.hub.time + self.random.choice(STREAM_MS))
        self._look(after)

    def changed(self, group: Group) -> None:
        """Deliver a sealed or ended group to the reader of the stream."""
        self._later(lambda: self._read(group), self.hub.time + self.random.choice(STREAM_MS))

    def _read(self, news: Job | Group) -> None:
        """The reader of the stream repeats a batch until it is done, and sometimes once more."""

        def read() -> None:
            ports = self.ports()
            now = ports.clock.now()
            go = ends.count_again([news], ports, now=now) if isinstance(news, Job) else ends.note_sealed(news, ports, now=now)
            try_enqueue(go, lanes=ports.lanes, now=now)

        self._repeated(read)
        if self.random.random() < 0.1:
            self._later(lambda: self._repeated(read), self.hub.time + self.random.choice(STREAM_MS))

    # oracles

    def _called(self, call: Job) -> None:
        assert call.group is not None
        kind, members = call.spec.payload["call"], self.truth[call.group]
        self.stored[call.group, kind] += 1
        if self.stored[call.group, kind] > 1:
            self.violation("group_twice", f"{call.group} {kind}")
        never_ended = [job for job in members.values() if lifecycle.is_open(job) and not job.redrives]
        not_succeeded = [job for job in members.values() if job.completed_at is None]
        group = self.plain.groups.get(call.group_key)
        if group is None or group.sealed_at is None or never_ended or (kind == CallKind.ON_SUCCESS and not_succeeded):
            self.violation("group_early", f"{call.group} {kind}")
        if kind == CallKind.ON_FAILURE and any(course.redrives and course.key and course.key.id == call.group for course in self.courses):
            self._later(lambda: self._redrive(call.group or ""), self.hub.time + 30_000)

    def _look(self, ended: Job) -> None:
        """Compare the counts of a group with the truth, some time after an end."""
        key = ended.group_key
        if key is not None and self.random.random() < 0.05:
            self.hub.at(self.hub.time + self.random.randint(0, LOOK_MS), lambda: self._compare(key))

    def _compare(self, key: GroupKey) -> None:
        group = self.plain.groups.get(key)
        if group is None:
            return
        counted, ever = ends.counts_of(group, self.plain), Counter(end for _, _, end in self.ever[key.id])
        if any(count > ever[end] for end, count in counted.items() if end is not End.VOID):
            self.violation("group_miscounted", f"{key.id}: {counted} of {ever}")
        if sum(counted.values()) > group.members:
            self.violation("group_miscounted", f"{key.id}: {counted} of {group.members}")

    def judge(self) -> None:
        for course in self.courses:
            group = None if course.key is None else self.plain.groups.get(course.key)
            if course.key is None:
                continue  # it was never answered
            if group is None:
                self.violation("group_lost", course.key.id)
                continue
            if lost := course.accepted - self.truth[group.id].keys():
                self.violation("group_lost", f"{group.id}: {len(lost)} members")
            self._judge(course, group)

    def _judge(self, course: Course, group: Group) -> None:
        members, state = self.truth[group.id], counting.state(group)
        if course.leaves and group.sealed_at is None:
            if state is not GroupState.ABANDONED or self._kinds(group):
                self.violation("group_never", f"{group.id} was not abandoned")
            return
        if any(lifecycle.is_open(job) for job in members.values()):
            return  # lost jobs are violations of their own
        truth = Counter(counting.ENDS[lifecycle.state(job)] for job in members.values())
        if state is not GroupState.ENDED:
            self.violation("group_never", f"{group.id} is {state}")
            return
        counted = ends.counts_of(group, self.plain)
        if {end: count for end, count in counted.items() if end is not End.VOID and count} != dict(truth):
            self.violation("group_miscounted", f"{group.id}: {counted} of {truth}")
        follow = {kind for kind, _ in counting.calls(group)}
        succeeded = truth[End.SUCCEEDED] == len(members)
        if self._kinds(group) != follow or succeeded != (CallKind.ON_SUCCESS in follow):
            self.violation("group_never", f"{group.id} called {sorted(self._kinds(group))}")

    def _kinds(self, group: Group) -> set[str]:
        return {kind for name, kind in self.stored if name == group.id}
