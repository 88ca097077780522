"""The names of users by their ids, for people who see the objects of all users."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field

from scheduler.model.errors import Unavailable
from scheduler.storage.ports import Ports

# The status shows a new user's failures after this time.
KEPT_MS = 20_000  # Cognito allows 30 of these calls a second: https://docs.aws.amazon.com/cognito/latest/developerguide/quotas.html
PAGES, PAGE = 5, 60  # 60: the most that ListUsers returns. Further users are shown by their ids

log = logging.getLogger(__name__)


@dataclass(slots=True)
class Names:
    """The first `PAGES * PAGE` users and all machine clients, read at most every `KEPT_MS` by one process."""

    ports: Ports
    _known: dict[str, str] = field(default_factory=dict)
    _read_at: int | None = None

    def all(self) -> Mapping[str, str]:
        """The names by id. While the identity provider refuses, the last ones known. Never raises."""
        now = self.ports.clock.now()
        if self._read_at is None or now - self._read_at >= KEPT_MS:
            try:
                self._known, self._read_at = self._read(), now
            except Unavailable as error:
                log.warning("could not read the names of users", extra={"error": str(error)})
        return self._known

    def _read(self) -> dict[str, str]:
        found, cursor = dict(self.ports.identity.clients), None
        for _ in range(PAGES):
            accounts, cursor = self.ports.identity.page(cursor, PAGE)
            found |= {account.id: account.username for account in accounts}
            if cursor is None:
                break
        return found
