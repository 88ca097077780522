"""The collector of spans: an endpoint of OTLP over HTTP, with headers from a secret, or X-Ray's endpoint, with a signature.

One request carries the spans of a batch. A failure loses them: a second try would delay the events behind them.
"""

import json
import logging
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import urllib3

from scheduler.notify import spans as otlp
from scheduler.storage.aws import clients

XRAY = "xray"
JSON = {"Content-Type": "application/json", "User-Agent": "punctual"}
TIMEOUT = urllib3.Timeout(total=3, connect=1)  # seconds
PAUSE_MS = 30_000  # after a failure nothing is sent for this time
CACHED_MS = 300_000  # how long the headers of the secret are cached
ANSWER_BYTES = 65_536  # of an answer that are read
_NAME, _VALUE = r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}", r"[\t\x20-\x7e]{0,8192}"

log = logging.getLogger(__name__)


class Collector:
    """The port `Traces`. `endpoint`: a URL, or `xray`. `secret`: the name or the ARN of the one with further headers; empty: none."""

    def __init__(self, endpoint: str, secret: str, resource: Mapping[str, str], secrets: Callable[[], Any] = clients.secrets) -> None:
        self._is_xray = endpoint == XRAY
        region = resource.get("cloud.region", "")
        suffix = "amazonaws.com.cn" if region.startswith("cn-") else "amazonaws.com"
        self._url = f"https://xray.{region}.{suffix}/v1/traces" if self._is_xray else endpoint
        self._secret, self._secrets, self._resource = secret, secrets, resource
        self._headers: Mapping[str, str] = {}
        self._read_at: int | None = None
        self._paused_until = 0
        self._connections = urllib3.PoolManager(num_pools=1, retries=False, timeout=TIMEOUT)

    def export(self, spans: Sequence[Mapping[str, Any]], now: int) -> int:
        if now < self._paused_until:
            return 0
        try:
            return len(spans) - self._send([dict(span) for span in spans], now)
        except Exception as error:
            self._paused_until = now + PAUSE_MS
            # The text of an error may have a header or the URL, and either one a key.
            log.warning("spans are lost: the collector did not take them", extra={"spans": len(spans), "error": _named(error)})
            return 0

    def _send(self, spans: Sequence[dict[str, Any]], now: int) -> int:
        """Send spans. Returns how many of them were refused."""
        body = json.dumps(otlp.document(spans, self._resource), separators=(",", ":")).encode()
        headers = {**JSON, **self._further(now)}
        if self._is_xray:
            headers = clients.signed("xray", "POST", self._url, body, headers)
        answer = self._connections.request("POST", self._url, body=body, headers=headers, redirect=False, preload_content=False)
        try:
            content = answer.read(ANSWER_BYTES)
        finally:
            answer.release_conn()
        if not 200 <= answer.status < 300:
            raise _Refused(f"HTTP {answer.status}")
        return min(_rejected(content), len(spans))

    def _further(self, now: int) -> Mapping[str, str]:
        """The headers of the secret."""
        if self._secret and (self._read_at is None or now >= self._read_at + CACHED_MS):
            self._headers = _read(self._secrets().get_secret_value(SecretId=self._secret)["SecretString"])
            self._read_at = now
        return self._headers


class _Refused(Exception):
    """The collector took no span; the text says why, and has nothing of the request."""


def _named(error: Exception) -> str:
    return str(error) if isinstance(error, _Refused) else type(error).__name__


def _read(text: str) -> Mapping[str, str]:
    """The headers in a secret: a JSON object of texts. Raises _Refused."""
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict) or not all(isinstance(value, str) for value in found.values()):
        raise _Refused("the secret has no JSON object of texts")
    if not all(re.fullmatch(_NAME, name) and re.fullmatch(_VALUE, value) for name, value in found.items()):
        raise _Refused("the secret has a text that cannot be a header")
    return found


def _rejected(content: bytes) -> int:
    """The number of spans that a collector rejects in an answer that accepts the others."""
    try:
        return max(int(json.loads(content or b"{}")["partialSuccess"]["rejectedSpans"]), 0)
    except (ValueError, LookupError, TypeError):
        return 0
