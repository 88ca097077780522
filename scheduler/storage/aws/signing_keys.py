"""The keys that sign call-back tokens, from Secrets Manager: the secret's current version and the one before it."""

import threading
from collections.abc import Sequence
from typing import Any

from botocore.exceptions import ClientError

from scheduler.model.errors import SchedulerError, Unavailable
from scheduler.storage.aws import errors

KEPT_MS = 300_000  # how long keys are cached: after a rotation executors may sign with the former key for this time
AGAIN_MS = 10_000  # a token signed with an unknown key triggers another read, no sooner than this after the last one
CURRENT, PREVIOUS = "AWSCURRENT", "AWSPREVIOUS"
_NONE_SUCH = "ResourceNotFoundException"


class SecretKeys:
    """The keys of the port `Secrets`."""

    def __init__(self, client: Any, secret: str) -> None:
        self._client = client
        self._secret = secret
        self._held: list[bytes] = []
        self._read_at = 0
        self._lock = threading.Lock()  # ten jobs of a batch may read at once

    def keys(self, now: int, *, newest: bool = False) -> Sequence[bytes]:
        with self._lock:
            if not self._held or now - self._read_at >= (AGAIN_MS if newest else KEPT_MS):
                self._read(now)
            return self._held

    def _read(self, now: int) -> None:
        """Read the keys. While Secrets Manager refuses, the cached keys stay valid."""
        try:
            found = [key for stage in (CURRENT, PREVIOUS) if (key := self._version(stage)) is not None]
        except Unavailable:
            if not self._held:
                raise
            return
        if not found:
            raise SchedulerError("the secret that signs call-backs has no value")
        self._held, self._read_at = found, now

    def _version(self, stage: str) -> bytes | None:
        """The key of one version; None if there is none. Before the first rotation there is no previous version."""
        with errors.translated():
            try:
                return str(self._client.get_secret_value(SecretId=self._secret, VersionStage=stage)["SecretString"]).encode()
            except ClientError as error:
                if errors.code(error) == _NONE_SUCH:
                    return None
                raise
