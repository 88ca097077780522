"""The port `Secrets` on Secrets Manager. The client is made with the first job that needs a key or a secret."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from scheduler.storage.aws import clients
from scheduler.storage.aws.secret_values import StoredSecrets
from scheduler.storage.aws.signing_keys import SecretKeys


class AwsSecrets:
    """`callback_secret`: the ARN of the secret that signs call-back tokens. `prefix`: of the names of the secrets that jobs may use."""

    def __init__(self, callback_secret: str, prefix: str) -> None:
        self._callback_secret, self._prefix = callback_secret, prefix

    def keys(self, now: int, *, newest: bool = False) -> Sequence[bytes]:
        return self._signing.keys(now, newest=newest)

    def values(self, owner: str, name: str, now: int) -> Sequence[str]:
        return self._stored.values(owner, name, now)

    @cached_property
    def _client(self) -> Any:
        return clients.secrets()

    @cached_property
    def _signing(self) -> SecretKeys:
        return SecretKeys(self._client, self._callback_secret)

    @cached_property
    def _stored(self) -> StoredSecrets:
        return StoredSecrets(self._client, self._prefix)
