"""Calendars in memory, for tests and the simulation, with the same contract as on AWS."""

from collections.abc import Sequence

from scheduler.model.calendar import Calendar
from scheduler.model.job import TaskKey
from scheduler.model.task import Task


class MemoryCalendars:
    """The calendars, and which tasks use them."""

    def __init__(self) -> None:
        self.rows: dict[tuple[str, str], Calendar] = {}
        self._users: dict[tuple[str, str], set[str]] = {}

    def named(self, owner: str, names: Sequence[str]) -> dict[str, Calendar]:
        return {name: self.rows[owner, name] for name in names if (owner, name) in self.rows}

    def all(self, owner: str) -> list[Calendar]:
        return [self.rows[key] for key in sorted(self.rows) if key[0] == owner]

    def put(self, before: Calendar | None, after: Calendar) -> bool:
        key = after.owner, after.name
        stored = self.rows.get(key)
        if stored == after:
            return True
        if (stored and stored.version) != (before and before.version):
            return False
        self.rows[key] = after
        return True

    def delete(self, calendar: Calendar) -> bool:
        stored = self.rows.get((calendar.owner, calendar.name))
        if stored is None or stored.version != calendar.version:
            return False
        del self.rows[calendar.owner, calendar.name]
        return True

    def tasks(self, owner: str, name: str, *, after: str | None, limit: int) -> tuple[list[TaskKey], str | None]:
        found = sorted(id for id in self._users.get((owner, name), ()) if after is None or id > after)
        return [TaskKey(owner, id) for id in found[:limit]], found[limit - 1] if len(found) > limit else None

    def take(self, before: Task | None, after: Task) -> bool:
        """Note the calendars of a task that is stored. False, and nothing changes, if one of them has another version or is withdrawn."""
        former = {} if before is None else before.calendars
        for name, version in after.calendars.items():
            stored = self.rows.get((after.owner, name))
            if stored is None or stored.version != version or (stored.withdrawn and name not in former):
                return False
        self.leave(after.key, former)
        for name in after.calendars:
            self._users.setdefault((after.owner, name), set()).add(after.id)
        return True

    def leave(self, task: TaskKey, names: Sequence[str] | dict[str, int]) -> None:
        """Forget that the task uses these calendars."""
        for name in names:
            self._users.get((task.owner, name), set()).discard(task.id)
