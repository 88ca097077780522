"""Retries of failed requests: which ones, and when."""

from __future__ import annotations

from email.utils import parsedate_to_datetime

import httpx

BASE_SECONDS, CAP_SECONDS = 0.25, 10.0
REPEATED = frozenset({429, 502, 503, 504})
NEVER_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)


def is_repeated(answer: httpx.Response | httpx.HTTPError, idempotent: bool) -> bool:
    """Whether a request may be sent again after this answer or failure.

    A 429 changed nothing, and without a connection nothing was sent: every request may be repeated. After a 502, 503, 504 or a broken
    connection, the change may have been applied: only an idempotent request is repeated.
    """
    if isinstance(answer, httpx.Response):
        return answer.status_code == 429 or (idempotent and answer.status_code in REPEATED)
    return idempotent or isinstance(answer, NEVER_SENT)


def pause(attempt: int, chance: float, requested: float | None) -> float:
    """Return the seconds to wait after the failed `attempt` (from 1): full jitter, and at least what `Retry-After` asks for."""
    return (requested or 0.0) + chance * min(CAP_SECONDS, BASE_SECONDS * 2.0 ** (attempt - 1))


def retry_after(answer: httpx.Response, now: float) -> float | None:
    """Return the seconds that the answer asks to wait, by its header `Retry-After` (seconds or a date), or None."""
    text: str = answer.headers.get("Retry-After", "").strip()
    if text.isascii() and text.isdigit():
        return float(text[:30])
    try:
        moment: float = parsedate_to_datetime(text).timestamp()
    except (TypeError, ValueError, OverflowError):
        return None
    return max(0.0, moment - now)
