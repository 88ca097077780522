"""A world whose users are disabled and enabled again and again, with jobs of every kind, and the oracles of their waiting rooms.

    late_after_enable   a job that was in the waiting room of its owner is not claimed `PATIENCE_MS` after the enable, or the deletion; if
                        the message of the enable is lost, `LOST_MS` after it
    polled              a job was claimed more than `MOST_CLAIMS` times while its owner was disabled

There are always executors enough. `waited` counts the judged jobs by kind, `most_claims` is the largest number of claims of a job.
"""

from collections import Counter

from lab.world.faults import CALM, Rates
from scheduler.accounts import user_admin
from scheduler.model import lifecycle, slots
from scheduler.model.account import COGNITO, Profile, Subject
from scheduler.model.job import Job, JobKey, Lane
from scheduler.model.rules import Rules
from scheduler.model.work import WorkItem, WorkKind
from scheduler.storage.memory.stores import QueuedWork
from tests.simulation import queuers
from tests.simulation.resumes import kind_of
from tests.simulation.world import START, World

PATIENCE_MS = 5_000
LOST_MS = 66_000  # the next tick, and what follows it
MOST_CLAIMS = 4
LASTS_MS = (5_000, 70_000, 150_000, 600_000)
GAPS_MS = (1_500, 40_000)  # from an enable to the next disable
USERS = ("user", "other", "user0", "user1", "user2", queuers.OWNER)
BEGIN_MINUTES, MINUTES = 2, 30


class EnabledWorld(World):
    """See the module."""

    def __init__(self, seed: int, rates: Rates = CALM) -> None:
        rules = Rules(shards=2, windows=dict.fromkeys(Lane, 1_000), direct_burst=5, direct_rate=1)
        super().__init__(seed, rates, rules=rules, concurrency=1_000)
        for user in USERS:
            self.plain.owners.add_person(Profile(user, name=user), Subject(COGNITO, user))
        self.waited: Counter[str] = Counter()
        self.most_claims = 0
        self._claims: Counter[JobKey] = Counter()  # since the owner was last disabled
        self._claimed_at: dict[JobKey, int] = {}
        self._disabled_at: dict[str, int] = {}  # when each user was last disabled
        self._disabled: set[str] = set()
        self._loses_enable = False
        resume = self.queuers._maybe_resume
        self.queuers._maybe_resume = lambda key: None if queuers.OWNER in self._disabled else resume(key)  # type: ignore[method-assign]
        self._add = self.work.add
        self.work.add = self._add_or_lose  # type: ignore[method-assign]

    def plan_all_disables(self, until: int) -> None:
        """Disable each user again and again from the second minute on, and enable the user. One is deleted in the end."""
        for user in USERS:
            at = START + BEGIN_MINUTES * slots.MINUTE + self.random.randint(0, 300_000)
            while at < until:
                lasts, is_lost = self.random.choice(LASTS_MS), self.random.random() < 0.2
                self.hub.at(at, lambda user=user: self._disable(user))  # type: ignore[misc]
                at += lasts
                is_last = user == "other" and at >= until
                self.hub.at(at, lambda user=user, is_lost=is_lost, last=is_last: self._end(user, is_lost, last))  # type: ignore[misc]
                at += LOST_MS + 1_000 if is_lost else self.random.choice(GAPS_MS)

    def _disable(self, user: str) -> None:
        user_admin.disable(user, "an administrator", self.plain)
        self._disabled_at[user] = self.hub.time
        self._disabled.add(user)
        for key in [key for key in self._claims if key.owner == user]:
            del self._claims[key]

    def _end(self, user: str, is_lost: bool, is_deleted: bool) -> None:
        now = self.hub.time
        self._loses_enable = is_lost
        if is_deleted:
            user_admin.delete(user, "an administrator", self.plain)
        else:
            user_admin.enable(user, self.plain)
        self._loses_enable = False
        self._disabled.discard(user)
        room = slots.room_of_owner(user)
        theirs = [job for job in self.jobs.rows.values() if job.owner == user and job.slot is not None and job.claim is None]
        waiting = [job.key for job in theirs if slots.minute(job.slot or "") == room]
        self.hub.at(now + (LOST_MS if is_lost else PATIENCE_MS), lambda: self._judge_end(user, waiting, now))

    def _add_or_lose(self, item: WorkItem, visible_at: int) -> QueuedWork:
        made = self._add(item, visible_at)
        if self._loses_enable and item.kind is WorkKind.RESUME:
            self.work.queued.pop(made.message_id, None)
        return made

    def _watch(self, before: Job | None, after: Job) -> None:
        super()._watch(before, after)
        if after.claim is None or (before is not None and before.claim is not None):
            return
        self._claimed_at[after.key] = self.hub.time
        if after.owner in self._disabled:
            self._claims[after.key] += 1
            self.most_claims = max(self.most_claims, self._claims[after.key])
            if self._claims[after.key] == MOST_CLAIMS + 1:
                self._violation("polled", after.id)

    def _judge_end(self, user: str, waiting: list[JobKey], ended_at: int) -> None:
        if self._disabled_at[user] > ended_at:
            return
        for key in waiting:
            job = self.jobs.rows[key]
            self.waited[kind_of(job)] += 1
            if lifecycle.is_open(job) and self._claimed_at.get(key, 0) < ended_at:
                self._violation("late_after_enable", f"{job.id} ({kind_of(job)})")


def disabled_often(seed: int, rates: Rates = CALM) -> EnabledWorld:
    """Run a world of this kind; its oracles judge it only without faults."""
    world = EnabledWorld(seed, rates)
    world.plan_all_disables(START + MINUTES * slots.MINUTE)
    world.run(500, MINUTES, tasks=8, ordered=60, wind_down=60)
    return world
