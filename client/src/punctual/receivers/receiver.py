"""Verifies the calls of `http` jobs, and runs each once."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence

from punctual.errors import InvalidArgument, InvalidSignature
from punctual.receivers.answers import Answer, failure
from punctual.receivers.call import Call
from punctual.receivers.once import KEEP_SECONDS, LEASE_SECONDS, Once
from punctual.receivers.stores import Store
from punctual.signature import TOLERANCE_SECONDS, signing_key, verify_signature

Secret = str | Sequence[str]

log = logging.getLogger("punctual.receivers")


class CallReceiver:
    """Verifies, deduplicates and answers calls of `http` jobs that name a `signing_secret`.

    `secret`: the signing secret, several of them during a rotation, or a function that returns either. `store` remembers the successes for
    `keep` seconds, so that a call that arrives twice runs once; with None the handler must be idempotent itself. `lease`: the seconds after
    which a call may run again if its process died; it is longer than the handler ever runs. `tolerance`: the most seconds between the
    signed time and this clock. Raises InvalidArgument for a secret that is empty or too short.

    | case | answer | effect on the job |
    |---|---|---|
    | the handler returned | its own; a success is remembered | as its status says |
    | a success is remembered | the same, with `Idempotent-Replayed: true` | succeeds |
    | an earlier delivery still runs | 503 with `Retry-After` | another call follows; no attempt is used up |
    | the signature is missing, wrong or too old | 401 | fails permanently |
    | the handler raised | `Retry` 503, `Permanent` 422, any other 500 | as the status says |
    """

    def __init__(
        self,
        secret: Secret | Callable[[], Secret],
        *,
        store: Store | None,
        lease: float = LEASE_SECONDS,
        keep: float = KEEP_SECONDS,
        tolerance: float = TOLERANCE_SECONDS,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._secret, self._tolerance, self._now = secret, tolerance, now
        self.once = Once(store, lease, keep)
        if not callable(secret):
            _valid(secret)

    def verify(self, headers: Mapping[str, str], body: bytes) -> Call | Answer:
        """Return the call of a request, or the answer that refuses it. The answer does not say why; the log does.

        Raises InvalidArgument if the function of the secret returns none that is valid.
        """
        found = {name.lower(): value for name, value in headers.items()}
        try:
            self._check(found, body)
        except InvalidSignature as error:
            log.warning("a call was refused with 401: %s", error)
            return failure(401, "signature", "the signature is missing, invalid or too old: the log of the receiver has the reason")
        return Call.from_request(found, body)

    def receive(self, headers: Mapping[str, str], body: bytes, handler: Callable[[Call], Answer]) -> Answer:
        """Return the answer to a request: verify it, and run the handler unless it has succeeded before.

        Exceptions of the handler are raised again, except Retry and Permanent.
        """
        call = self.verify(headers, body)
        return call if isinstance(call, Answer) else self.once.run(call, handler, lambda answer: answer, lambda answer: answer)

    def _check(self, headers: Mapping[str, str], body: bytes) -> None:
        """Raises InvalidSignature unless one of the secrets has signed the body, and the key that is remembered."""
        now = self._now()
        refused = InvalidSignature("there is no secret")
        for secret in _valid(self._secret() if callable(self._secret) else self._secret):
            try:
                verify_signature(headers, body, secret, tolerance=self._tolerance, now=now)
                break
            except InvalidSignature as error:
                refused = error
        else:
            raise refused
        if headers.get("idempotency-key", headers["webhook-id"]) != headers["webhook-id"]:
            raise InvalidSignature("the Idempotency-Key is not the webhook-id that was signed")


def _valid(secret: Secret) -> tuple[str, ...]:
    """Return the secrets. Raises InvalidArgument for one that Punctual never signs with: a fault of this program, not of a caller."""
    found = (secret,) if isinstance(secret, str) or secret is None else tuple(secret)
    if not found:
        raise InvalidArgument("there is no signing secret")
    for each in found:
        _check_secret(each)
    return found


def _check_secret(secret: str) -> None:
    try:
        signing_key(secret)
    except InvalidSignature as error:
        raise InvalidArgument(str(error)) from error
