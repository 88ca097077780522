"""The records of which jobs wait for a predecessor in memory, for tests and the simulation, with the same contract as on AWS."""

from collections import defaultdict
from collections.abc import Sequence

from scheduler.model.after import Follower, PredecessorKey
from scheduler.model.job import JobKey
from scheduler.storage.ports import Written


class MemoryFollowers:
    """The port `Followers`."""

    def __init__(self) -> None:
        self.stored: dict[PredecessorKey, set[str]] = defaultdict(set)

    def add(self, followers: Sequence[Follower]) -> list[Written]:
        return [Written.of(self._add(each)) for each in followers]

    def of(self, predecessor: PredecessorKey, *, after: str | None, limit: int) -> tuple[list[JobKey], str | None]:
        left = sorted(job for job in self.stored.get(predecessor, ()) if job > (after or ""))
        found = [JobKey(predecessor.owner, job) for job in left[:limit]]
        return found, found[-1].id if len(left) > limit else None

    def _add(self, each: Follower) -> bool:
        known = self.stored[each.predecessor]
        is_new = each.job not in known
        known.add(each.job)
        return is_new
