"""Runs each call once: claims, leases and remembered answers."""

from __future__ import annotations

import hashlib
import json
import logging
import math
import secrets
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from punctual.errors import InvalidArgument
from punctual.receivers.answers import BUSY, Answer, Permanent, Retry, error_answer
from punctual.receivers.call import Call
from punctual.receivers.stores import Store
from punctual.worker import TOKEN

LEASE_SECONDS = 900.0  # Punctual waits at most 840 s for an answer
KEEP_SECONDS = 90 * 86_400.0  # a failed job can be redriven for 90 days
MOST_BODY = 65_536  # bytes of an answer that a store remembers; an item of DynamoDB has 400 KB
T = TypeVar("T")
Offload = Callable[[Callable[[], Any]], Awaitable[Any]]

log = logging.getLogger("punctual.receivers")


class Claim:
    """The right to run a call. It ends with `finish`, `release`, or its lease."""

    def __init__(self, once: Once, call: Call) -> None:
        self._store, self._lease, self._keep = once.store, math.ceil(once.lease), math.ceil(once.keep)
        self._call, self._key = call, _key(call)
        self._value = json.dumps({"claimed_by": secrets.token_hex(8)})
        self._is_over = once.store is None

    def take(self) -> Answer | None:
        """Take the claim. Return None, or the answer of a call that has been or is being answered elsewhere."""
        if self._store is None:
            return None
        for _ in range(2):  # an entry may end between the two requests
            if self._store.add(self._key, self._value, self._lease):
                return None
            if (found := self._store.get(self._key)) is not None:
                known = _remembered(found)
                was = "still runs" if known is BUSY else "was answered before"
                log.info("the job %s, attempt %d: an earlier delivery %s", self._call.job_id, self._call.attempt, was)
                return known
        return BUSY

    def finish(self, answer: Answer) -> None:
        """Remember a success; release the claim after any other answer. A store that fails has no effect on the answer."""
        if not answer.is_success:
            return self.release()
        if self._is_over or self._store is None:
            return None
        self._is_over = True
        try:
            self._store.set(self._key, _encoded(answer), self._keep)
        except Exception:
            log.exception("a call was answered, but the store could not remember it: after its lease a repeat runs again")

    def release(self) -> None:
        """Let the next delivery run, unless the call is finished. Another claim, taken after this one's lease, stays."""
        if self._is_over or self._store is None:
            return
        self._is_over = True
        try:
            if self._store.get(self._key) == self._value:
                self._store.delete(self._key)
        except Exception:
            log.exception("the store could not release a call: its next attempt runs after its lease")


def _key(call: Call) -> str:
    """Return the key of a call in a store. With a call-back, each attempt has a key of its own, as it has a worker of its own."""
    callback = None if call.event is None else call.event["punctual"].get("callback")
    token = callback.get("token") if isinstance(callback, Mapping) else call.headers.get(TOKEN.lower())
    of_attempt = f"-{hashlib.sha256(str(token).encode()).hexdigest()[:16]}" if token else ""
    return f"punctual-call-{call.idempotency_key}{of_attempt}"


def _encoded(answer: Answer) -> str:
    body = answer.body if len(answer.body) <= MOST_BODY else b""
    return json.dumps({"status": answer.status, "content_type": answer.content_type, "body": body.decode("latin-1")})


def _remembered(value: str) -> Answer:
    """Return the answer that a store remembers, or that of a call which still runs."""
    found = json.loads(value)
    if "status" not in found:
        return BUSY
    return Answer(found["status"], found["body"].encode("latin-1"), found["content_type"], {"Idempotent-Replayed": "true"})


@dataclass(frozen=True)
class Once:
    """Runs each call once: `store` remembers the successes for `keep` seconds. A claim ends after `lease` seconds if its process died."""

    store: Store | None
    lease: float = LEASE_SECONDS
    keep: float = KEEP_SECONDS

    def __post_init__(self) -> None:
        if not 0 < self.lease <= self.keep:
            raise InvalidArgument(f"lease must be more than 0 and at most keep: {self.lease} and {self.keep} seconds")

    def run(self, call: Call, handler: Callable[[Call], T], answer_of: Callable[[T], Answer], result_of: Callable[[Answer], T]) -> T:
        """Run the handler and return its result, or that of the answer which is remembered, or by which the call ends otherwise.

        `answer_of` and `result_of` convert results of the handler and answers. Exceptions of the handler are raised again, except Retry
        and Permanent.
        """
        claim = self.claim(call)
        if (known := claim.take()) is not None:
            return result_of(known)
        try:
            result = handler(call)
            answer = answer_of(result)
        except BaseException as error:
            claim.release()
            if isinstance(error, (Retry, Permanent)):
                return result_of(error_answer(error))
            raise
        claim.finish(answer)
        return result

    async def run_async(
        self,
        call: Call,
        handler: Callable[[Call], Awaitable[T]],
        answer_of: Callable[[T], Answer],
        result_of: Callable[[Answer], T],
        offload: Offload,
    ) -> T:
        """The same in an event loop. `offload` runs what waits for the store in another thread, also while its task is cancelled."""
        claim = self.claim(call)
        if (known := await offload(claim.take)) is not None:
            return result_of(known)
        try:
            result = await handler(call)
            answer = answer_of(result)
        except BaseException as error:
            await offload(claim.release)
            if isinstance(error, (Retry, Permanent)):
                return result_of(error_answer(error))
            raise
        await offload(lambda: claim.finish(answer))
        return result

    def claim(self, call: Call) -> Claim:
        """Return the claim of a call, which is not taken yet."""
        return Claim(self, call)
