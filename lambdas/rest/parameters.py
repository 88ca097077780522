"""The query parameters of lists."""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Generic, TypeVar

from aws_lambda_powertools.event_handler.openapi.params import Query
from pydantic import BeforeValidator

from lambdas.rest.envelope import listed, more
from lambdas.rest.models import QueryInstant, Tag
from lambdas.rest.shapes import LONGEST_FIELD, shortened
from scheduler.model import ids
from scheduler.model.errors import Invalid
from scheduler.model.job import Status


def _whole(value: Any) -> Any:
    """A number in digits. Python would read `1_0` and `5 ` too; API Gateway joins the values of a repeated parameter by commas."""
    if isinstance(value, str) and re.fullmatch("[0-9]{1,9}", value) is None:
        raise ValueError("is given more than once" if "," in value else "must be a whole number, in digits")
    return value


WHOLE = BeforeValidator(_whole)
Upcoming = Annotated[
    bool | None, Query(description="jobs that are due later, instead of those that were due; the default if `status` is only `scheduled`")
]
Since = Annotated[QueryInstant | None, Query(alias="from", description="scheduled at or after this instant (RFC 3339)")]
Until = Annotated[QueryInstant | None, Query(alias="to", description="scheduled before this instant (RFC 3339)")]
Limit = Annotated[int, WHOLE, Query(ge=1, le=100)]
AnyLimit = Annotated[int | None, WHOLE, Query(ge=1, le=100, description="the most entries of a page; default: all")]
Cursor = Annotated[str | None, Query(description="the `cursor` of the previous page")]
OfTask = Annotated[str | None, Query(description="runs of the task with this id")]
ANY_OF = "any of these values matches: repeat the parameter, or separate values by commas"
OfStatus = Annotated[list[Status], Query(description=f"{ANY_OF}; `failed` includes `killed`")]
Tagged = Annotated[
    list[Tag], Query(max_length=10, description="all of these tags match: repeat the parameter, or separate values by commas")
]

T = TypeVar("T")
NO_TAGS: list[str] = []  # the default of `Tagged`
ANY_STATUS: list[Status] = []  # the default of `OfStatus`


@dataclass(frozen=True, slots=True)
class Part(Generic[T]):
    """A part of a list that is read as a whole, and the cursor of the next part (None at the end)."""

    entries: Sequence[T]
    cursor: str | None = None


def part(entries: Sequence[T], limit: int | None = None, cursor: str | None = None) -> Part[T]:
    """The next `limit` entries of a list (None: all the others). Raises Invalid for a text that is no cursor of this list."""
    start = int(position(cursor, "[1-9][0-9]{0,8}") or 0)
    end = len(entries) if limit is None else start + limit
    return Part(entries[start:end], str(end) if end < len(entries) else None)


def position(cursor: str | None, form: str) -> str | None:
    """The cursor of a list whose cursors have this form. Raises Invalid for another text."""
    if cursor is not None and re.fullmatch(form, cursor) is None:
        raise Invalid.field("cursor", "must be the cursor of an earlier answer, unchanged")
    return cursor


def known(event: Any, names: Collection[str]) -> None:
    """Raise Invalid for other query parameters than these: a misspelt filter would silently list everything."""
    unknown = [name for name in event.get("queryStringParameters") or {} if name not in names]
    if unknown:
        shown = [shortened(name, LONGEST_FIELD) for name in unknown[: listed(len(unknown))]]
        details = [{"field": name, "rule": "is not a known parameter"} for name in shown]
        if others := len(unknown) - len(shown):
            details.append({"field": "query", "rule": more(others)})
        raise Invalid(f"unknown parameters: {', '.join(shown)}{f' and {others} more' if others else ''}", details=details)


def is_upcoming(upcoming: bool | None, statuses: Collection[Status]) -> bool:
    """Whether to list the jobs that are due later. Of those that were due, only one that waits for a retry is scheduled."""
    return {*statuses} == {Status.SCHEDULED} if upcoming is None else upcoming


def task_id(text: str | None) -> str | None:
    """The id of a task. Raises Invalid for a text that is no valid id: it would silently list nothing."""
    if text is not None and not ids.is_job_id(text):
        raise Invalid.field("task", "must be the id of a task")
    return text
