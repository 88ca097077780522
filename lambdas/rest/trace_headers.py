"""The trace context of a request: its headers `traceparent` and `tracestate`. One that is not valid is ignored, as the W3C requires."""

from collections.abc import Mapping
from typing import Any

from scheduler.model import trace


def read(event: Mapping[str, Any]) -> str | None:
    """The context of a request (an API Gateway event, format 2.0) as a job stores it; None without a valid one."""
    headers = event.get("headers", {})
    parent = next((value for name, value in headers.items() if name.lower() == trace.PARENT), None)
    if parent is None:
        return None
    return trace.parse(parent, next((value for name, value in headers.items() if name.lower() == trace.STATE), None))
