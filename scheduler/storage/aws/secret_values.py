"""The secrets that jobs may use, from Secrets Manager: `<prefix><owner>/<name>`, current version and the one before it."""

import threading
from collections.abc import Sequence
from typing import Any

from botocore.exceptions import ClientError

from scheduler.model.errors import NotFound, Unavailable
from scheduler.storage.aws import errors
from scheduler.storage.aws.signing_keys import CURRENT, PREVIOUS

KEPT_MS = 60_000  # how long a value is cached: a changed secret takes effect within a minute
MOST = 256  # cached secrets
_NONE_SUCH = ("ResourceNotFoundException", "AccessDeniedException", "InvalidRequestException")  # the last: marked for deletion


class StoredSecrets:
    """The values of the port `Secrets`."""

    def __init__(self, client: Any, prefix: str) -> None:
        self._client = client
        self._prefix = prefix
        self._held: dict[str, tuple[int, Sequence[str]]] = {}  # by full name: the instant of the read, and the values
        self._lock = threading.Lock()  # ten jobs of a batch may read at once

    def values(self, owner: str, name: str, now: int) -> Sequence[str]:
        full = f"{self._prefix}{owner}/{name}"
        with self._lock:
            read_at, held = self._held.get(full, (None, []))
            if read_at is not None and now - read_at < KEPT_MS:
                return held
            try:
                found = [value for stage in (CURRENT, PREVIOUS) if (value := self._version(full, stage)) is not None]
            except Unavailable:  # while Secrets Manager refuses, the cached values stay valid
                if not held:
                    raise
                return held
            self._held.pop(full, None)
            if not found:
                raise NotFound(f"there is no secret {name!r}")
            if len(self._held) >= MOST:
                del self._held[next(iter(self._held))]
            self._held[full] = now, found
            return found

    def _version(self, full: str, stage: str) -> str | None:
        """The value of one version; None if it does not exist or may not be read."""
        with errors.translated():
            try:
                return str(self._client.get_secret_value(SecretId=full, VersionStage=stage)["SecretString"])
            except ClientError as error:
                if errors.code(error) in _NONE_SUCH:
                    return None
                raise
            except KeyError:  # a binary secret, which has no text to send
                return None
