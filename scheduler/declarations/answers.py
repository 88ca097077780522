"""Answers to CloudFormation: where one may be sent, and its body. Pure.

The sender of an event chooses the address. Everyone who may invoke the function can send one, so it must not become a way to call
addresses in its network: only the buckets in which CloudFormation waits for answers are called, and no answer of theirs is passed on.
https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/crpg-ref-responses.html
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import SplitResult, urlsplit

from scheduler.model.errors import Invalid

MOST_BYTES = 4_096  # of a body: a longer one counts as no answer
SHORT = " …"
_BUCKET = r"cloudformation-custom-resource-response-[a-z0-9-]+"
_S3 = r"s3([.-][a-z0-9-]+){0,2}\.amazonaws\.com(\.cn)?"
_LOOPBACK = ("localhost", "127.0.0.1")


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of an event. `reason`: of a failure."""

    physical_id: str
    data: Mapping[str, str] = field(default_factory=dict)
    secret: bool = False  # CloudFormation hides the data
    reason: str | None = None


def check_address(url: object, endpoint: str = "") -> str:
    """Return the address if an answer may be sent there. `endpoint`: of the local AWS, which waits for answers itself; empty on AWS.

    Raises Invalid, without the address: its query is a signature, by which everyone could answer.
    """
    if isinstance(url, str) and url.isascii() and url.isprintable() and " " not in url and _is_known(url, endpoint):
        return url
    raise Invalid.field("ResponseURL", "is not an address of CloudFormation")


def _is_known(url: str, endpoint: str) -> bool:
    try:
        parts, own = urlsplit(url), urlsplit(endpoint)
        port = parts.port
        local = bool(endpoint) and (parts.scheme, port) == (own.scheme, own.port) and parts.hostname in (own.hostname, *_LOOPBACK)
    except ValueError:
        return False
    return "@" not in parts.netloc and (local or (parts.scheme == "https" and port in (None, 443) and _is_of_s3(parts)))


def _is_of_s3(parts: SplitResult) -> bool:
    host = parts.hostname or ""
    by_path = re.match(rf"/{_BUCKET}/", parts.path) is not None
    return re.fullmatch(rf"{_BUCKET}\.{_S3}", host) is not None or (by_path and re.fullmatch(_S3, host) is not None)


def body(event: Mapping[str, Any], outcome: Outcome) -> bytes:
    """The body of an answer. A long reason is cut."""
    answer = {
        "Status": "SUCCESS" if outcome.reason is None else "FAILED",
        "PhysicalResourceId": outcome.physical_id,
        **{name: str(event.get(name, "")) for name in ("StackId", "RequestId", "LogicalResourceId")},
        "NoEcho": outcome.secret,
        "Data": dict(outcome.data),
    }
    if outcome.reason is None:
        return _written(answer)
    room = MOST_BYTES - len(_written(answer | {"Reason": ""}))
    return _written(answer | {"Reason": _cut(outcome.reason, room)})


def _written(answer: Mapping[str, Any]) -> bytes:
    return json.dumps(answer, separators=(",", ":")).encode()


def _cut(text: str, room: int) -> str:
    """The beginning of a text whose JSON form has at most `room` characters."""
    if len(json.dumps(text)) - 2 <= room:
        return text
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if len(json.dumps(text[:middle] + SHORT)) - 2 <= room else (low, middle - 1)
    return text[:low] + SHORT
