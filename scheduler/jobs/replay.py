"""Replay an ended job: a new job does its work again. The original stays as it is; the new job names it."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from scheduler.model import lifecycle, trace
from scheduler.model.errors import Conflict
from scheduler.model.job import Job
from scheduler.model.spec import JobSpec
from scheduler.pipeline.submit import NewJob
from scheduler.targets import placeholders

OF_ORIGINAL: Mapping[str, Any] = {"key": None, "ordering": None}
"""The fields of a spec that a replay does not take over, with their values in it: what names the job, and what it waits for."""


def check_ended(original: Job, now: int) -> None:
    """Raises Conflict if the job has not ended."""
    if lifecycle.is_open(original):
        raise Conflict(f"the job has not ended: it is {lifecycle.status(original, now)}")


def replay(
    original: Job,
    *,
    payload: Mapping[str, Any] | None = None,
    execute_at: int | None = None,
    delay_ms: int | None = None,
    keep_ordering: bool = False,
    trace_ratio: float | None = None,
) -> NewJob:
    """The job to submit. `payload`: None for that of the original. With `keep_ordering` it waits for the jobs of its ordering key.
    With `trace_ratio`, of a stage that exports spans, its trace links to that of the original.

    It is a one-time job, also if the original is a run of a task. It does not expire.
    """
    return NewJob(
        original.owner,
        _spec(original.spec, payload, keep_ordering),
        execute_at,
        notifications=original.notifications,
        delay_ms=delay_ms,
        replay_of=original.id,
        nominal_at=lifecycle.nominal_at(original),
        links_to=None if trace_ratio is None else trace.last(original, trace_ratio).parent,
    )


def _spec(spec: JobSpec, payload: Mapping[str, Any] | None, keep_ordering: bool) -> JobSpec:
    again = replace(spec, **OF_ORIGINAL)
    if keep_ordering:
        again = replace(again, ordering=spec.ordering)
    return again if payload is None else replace(again, payload=payload, placeholders=placeholders.used_in(payload))
