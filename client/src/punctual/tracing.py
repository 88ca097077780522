"""The trace context of a request: that of the caller's active OpenTelemetry span, if the program uses OpenTelemetry."""

from __future__ import annotations

import sys

PARENT, STATE = "traceparent", "tracestate"


def active() -> dict[str, str]:
    """Return the headers `traceparent` and `tracestate` of the active span; none without one.

    A program that has an active span has loaded OpenTelemetry's API. Nothing is loaded here, so that other programs pay nothing.
    """
    if "opentelemetry.trace" not in sys.modules:
        return {}
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    headers: dict[str, str] = {}
    TraceContextTextMapPropagator().inject(headers)
    return {name: value for name, value in headers.items() if name in (PARENT, STATE)}
