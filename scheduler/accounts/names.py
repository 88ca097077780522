"""The names of owners by their ids, for people who see the objects of several owners."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from scheduler.model.errors import Unavailable
from scheduler.storage.cache import Cache
from scheduler.storage.ports import Ports

CACHED_MS = 20_000  # the status shows a new owner's failures after this time
PAGES, PAGE = 3, 100  # of persons, and of teams. Further ones are shown by their ids
MANY = 1_000  # names in memory


@dataclass(slots=True)
class Names:
    """The names of owners, each read at most every `CACHED_MS` by one process. While the table refuses, the last ones known."""

    ports: Ports
    _all: Cache[None, dict[str, str]] = field(init=False)
    _some: Cache[str, str | None] = field(init=False)

    def __post_init__(self) -> None:
        self._all = Cache("the names of owners", self._read_all, CACHED_MS, backs_off=False)
        self._some = Cache("the name of an owner", lambda ids, now: self._read(ids), CACHED_MS, most=MANY)

    def all(self) -> Mapping[str, str]:
        """The names of the first `PAGES * PAGE` persons, and of as many teams. Never raises."""
        try:
            return self._all.get(None, self.ports.clock.now())
        except Unavailable:
            return {}

    def of(self, ids: Collection[str]) -> Mapping[str, str]:
        """The names of these owners; those without one are omitted. Never raises."""
        try:
            found = self._some.get_all(ids, self.ports.clock.now())
        except Unavailable:
            return {}
        return {id: name for id, name in found.items() if name is not None}

    def _read_all(self, keys: Sequence[None], now: int) -> dict[None, dict[str, str]]:
        ids: list[str] = []
        for list_page in (self.ports.owners.people, self.ports.owners.teams):
            cursor = None
            for _ in range(PAGES):
                found, cursor = list_page(cursor, PAGE)
                ids += found
                if cursor is None:
                    break
        return {None: {id: name for id, name in self._read(ids).items() if name is not None}}

    def _read(self, ids: Sequence[str]) -> dict[str, str | None]:
        return {id: profile.name for id, profile in self.ports.users.profiles(ids).items()}
