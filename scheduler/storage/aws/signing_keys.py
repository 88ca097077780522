"""The keys that sign call-back tokens, from Secrets Manager: the secret's current version and the one before it."""

from collections.abc import Sequence
from typing import Any

from botocore.exceptions import ClientError

from scheduler.model.errors import SchedulerError
from scheduler.storage.aws import errors
from scheduler.storage.cache import Cache

CACHED_MS = 300_000  # how long keys are cached: after a rotation executors may sign with the former key for this time
AGAIN_MS = 10_000  # a token signed with an unknown key triggers another read, no sooner than this after the last one
CURRENT, PREVIOUS = "AWSCURRENT", "AWSPREVIOUS"
_NONE_SUCH = "ResourceNotFoundException"


class SecretKeys:
    """The keys of the port `Secrets`."""

    def __init__(self, client: Any, secret: str) -> None:
        self._client = client
        self._secret = secret
        self._keys: Cache[str, list[bytes]] = Cache("the keys that sign call-backs", self._read, CACHED_MS)

    def keys(self, now: int, *, newest: bool = False) -> Sequence[bytes]:
        return self._keys.get(self._secret, now, AGAIN_MS if newest else CACHED_MS)

    def _read(self, secrets: Sequence[str], now: int) -> dict[str, list[bytes]]:
        found = [key for stage in (CURRENT, PREVIOUS) if (key := self._version(stage)) is not None]
        if not found:
            raise SchedulerError("the secret that signs call-backs has no value")
        return dict.fromkeys(secrets, found)

    def _version(self, stage: str) -> bytes | None:
        """The key of one version; None if there is none. Before the first rotation there is no previous version."""
        with errors.translated():
            try:
                return str(self._client.get_secret_value(SecretId=self._secret, VersionStage=stage)["SecretString"]).encode()
            except ClientError as error:
                if errors.code(error) == _NONE_SUCH:
                    return None
                raise
