"""What is to come and what has been, as the API shows it."""

from typing import Any

from scheduler.insight.counting import LATE
from scheduler.insight.forecast import Expected
from scheduler.insight.summary import TypeSummary
from scheduler.model.instants import render as instant
from scheduler.model.lifecycle import FINAL_TIMES


def minute(record: Expected) -> dict[str, Any]:
    return {
        "scheduled_at": instant(record.at),
        "jobs": record.jobs,
        "compute_ms": record.compute_ms,
        "required_instances": record.executors,
    }


def day(record: tuple[str, list[TypeSummary]]) -> dict[str, Any]:
    named, types = record
    return {"day": named, "types": list(map(type_summary, types))}


def type_summary(record: TypeSummary) -> dict[str, Any]:
    average = None if record.average_ms is None else round(record.average_ms, 1)
    shown = {"type": record.type, "runs": record.runs, "average_ms": average, "p50_ms": record.p50_ms, "p95_ms": record.p95_ms}
    return shown | {str(name): record.counts.get(str(name), 0) for name in (*FINAL_TIMES, LATE)}
