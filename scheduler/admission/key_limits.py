"""The rules for setting the limit of a key. A key has one limit, stored with its usage; all jobs of the key start by that one.

A job, a task or a named target names a key with its limit. The first one sets the limit. Another limit for the key is

- applied at once, up or down, if the same task or target names it: its definition was changed
- applied at once, too, if a job of the key is changed to it, unless a task or a target has set the present one
- applied if the key is idle: no job of it runs or waits, and none is due later
- refused otherwise (409): two limits of one key are an error of the caller

`KeyLimit.until` is the instant by which the last of the jobs that named the limit runs or waits. It is rounded up to a minute, so that jobs
of one minute write it once. A job that waits for a retry does not keep the key from being idle.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from scheduler.admission import limits, target_queue
from scheduler.model.errors import Conflict, Unavailable
from scheduler.model.limiter import KeyLimit, name_of
from scheduler.model.slots import MINUTE
from scheduler.model.spec import Limit
from scheduler.model.target_usage import TargetUsage, UsageChange
from scheduler.storage.ports import Ports, Written

TRIES = 5  # at a record that others change at the same time


@dataclass(frozen=True, slots=True)
class Claim:
    """The limit that a job, a task or a named target names for a key, and the instant at which its job is due."""

    owner: str  # `limiter.NOBODY` for a named target
    limit: Limit
    by: str = ""  # as in `KeyLimit`
    due_at: int = 0
    changes: bool = False  # whether it is a request to change the limit of the key, which no task or target has set

    @property
    def name(self) -> str:
        return name_of(self.owner, self.limit.key)


def agreed(usage: TargetUsage, claim: Claim, now: int) -> KeyLimit | Conflict:
    """The limit of the key after this claim, or the reason why it is refused."""
    stored = usage.limit
    if stored is None:
        return KeyLimit(claim.limit, claim.by, _until(claim.due_at))
    until = max(stored.until, _until(claim.due_at))
    if stored.limit == claim.limit:
        return KeyLimit(stored.limit, stored.by or claim.by, until)
    is_idle = stored.until <= now and usage.queued_until <= now and not limits.live(usage, now)
    if is_idle or (claim.by == stored.by and (claim.by or claim.changes)):
        return KeyLimit(claim.limit, claim.by, until)
    by = f", set by {stored.by}" if stored.by else ""
    return _conflict(f"key {claim.limit.key} is in use with another limit ({stored.limit}{by}): all jobs of a key have one limit")


def agree(claims: Sequence[Claim], ports: Ports, now: int) -> list[Conflict | None]:
    """Store the limits of these keys where they are missing or change; a Conflict where a claim is refused. Raises Unavailable.

    Of a changed limit a release step is requested: more jobs may start now.
    """
    answers: list[Conflict | None] = [None] * len(claims)
    by_name: dict[str, list[int]] = {}
    for index, claim in enumerate(claims):
        by_name.setdefault(claim.name, []).append(index)
    for _ in range(TRIES):
        found = ports.targets.usages(sorted(by_name)) if by_name else {}
        usages, uses = {name: found.get(name, TargetUsage(name)) for name in by_name}, list[UsageChange]()
        for name, indices in by_name.items():
            usage = usages[name]
            for index in indices:
                after = agreed(usage, claims[index], now)
                answers[index] = after if isinstance(after, Conflict) else None
                usage = usage if isinstance(after, Conflict) else replace(usage, limit=after)
            if usage.limit is not None and usage.limit != usages[name].limit:
                uses.append(_change(usages[name], usage.limit, now))
        results = dict(zip((use.target for use in uses), ports.targets.use(uses), strict=True)) if uses else {}
        if any(result.done is Written.REFUSED for result in results.values()):
            raise Unavailable
        written = [use for use in uses if results[use.target].done is Written.YES]
        target_queue.wake_queues({use.target for use in written if _allows_others(usages[use.target], use, now)}, ports)
        by_name = {name: by_name[name] for name, result in results.items() if result.done is Written.NO}
        if not by_name:
            return answers
    raise Unavailable("the limit of the key keeps changing; try again")


def check(claim: Claim, ports: Ports, now: int) -> None:
    """Store the limit of one key. Raises Conflict, Unavailable."""
    (conflict,) = agree([claim], ports, now)
    if conflict is not None:
        raise conflict


def _change(usage: TargetUsage, limit: KeyLimit, now: int) -> UsageChange:
    use = UsageChange(usage.target, first=not usage.stored, limit=(usage.limit, limit))
    return replace(use, expires=limits.expiry(usage, use, now))


def _allows_others(before: TargetUsage, use: UsageChange, now: int) -> bool:
    """Whether jobs wait whose limit has changed."""
    is_new = before.limit is None or use.limit is None or before.limit.limit == use.limit[1].limit
    return not is_new and before.queued_until > now


def _until(due_at: int) -> int:
    """A minute after the instant at which the job is due, rounded up to a minute: by then it runs or waits."""
    return (due_at // MINUTE + 2) * MINUTE


def _conflict(rule: str) -> Conflict:
    return Conflict(f"limit: {rule}", details=[{"field": "limit", "rule": rule}])
