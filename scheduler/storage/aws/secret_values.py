"""The secrets that jobs may use, from Secrets Manager: `<prefix><owner>/<name>`, current version and the one before it."""

from collections.abc import Sequence
from typing import Any

from botocore.exceptions import ClientError

from scheduler.model.errors import NotFound
from scheduler.storage.aws import errors
from scheduler.storage.aws.signing_keys import CURRENT, PREVIOUS
from scheduler.storage.cache import Cache

CACHED_MS = 60_000  # how long a value is cached: a changed secret takes effect within a minute
MOST = 256  # cached secrets
_NONE_SUCH = ("ResourceNotFoundException", "AccessDeniedException", "InvalidRequestException")  # the last: marked for deletion


class StoredSecrets:
    """The values of the port `Secrets`."""

    def __init__(self, client: Any, prefix: str) -> None:
        self._client = client
        self._prefix = prefix
        self._secrets: Cache[tuple[str, str], list[str]] = Cache("a secret", self._read, CACHED_MS, most=MOST)

    def values(self, owner: str, name: str, now: int) -> Sequence[str]:
        return self._secrets.get((owner, name), now)

    def _read(self, secrets: Sequence[tuple[str, str]], now: int) -> dict[tuple[str, str], list[str]]:
        return {(owner, name): self._versions(owner, name) for owner, name in secrets}

    def _versions(self, owner: str, name: str) -> list[str]:
        full = f"{self._prefix}{owner}/{name}"
        found = [value for stage in (CURRENT, PREVIOUS) if (value := self._version(full, stage)) is not None]
        if not found:
            raise NotFound(f"there is no secret {name!r}")
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
