"""The names of users by their ids, for people who see the objects of all users."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from scheduler.model.errors import Unavailable
from scheduler.storage.cache import Cache
from scheduler.storage.ports import Ports

# The status shows a new user's failures after this time.
CACHED_MS = 20_000  # Cognito allows 30 of these calls a second: https://docs.aws.amazon.com/cognito/latest/developerguide/quotas.html
PAGES, PAGE = 5, 60  # 60: the most that ListUsers returns. Further users are shown by their ids


@dataclass(slots=True)
class Names:
    """The first `PAGES * PAGE` users and all machine clients, read at most every `CACHED_MS` by one process."""

    ports: Ports
    _names: Cache[None, dict[str, str]] = field(init=False)

    def __post_init__(self) -> None:
        self._names = Cache("the names of users", self._read, CACHED_MS, backs_off=False)

    def all(self) -> Mapping[str, str]:
        """The names by id. While the identity provider refuses, the last ones known. Never raises."""
        try:
            return self._names.get(None, self.ports.clock.now())
        except Unavailable:
            return {}

    def _read(self, keys: Sequence[None], now: int) -> dict[None, dict[str, str]]:
        found, cursor = dict(self.ports.identity.clients), None
        for _ in range(PAGES):
            accounts, cursor = self.ports.identity.page(cursor, PAGE)
            found |= {account.id: account.username for account in accounts}
            if cursor is None:
                break
        return {None: found}
