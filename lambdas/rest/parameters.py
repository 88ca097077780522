"""Query parameters of the lists, as several routes take them."""

from typing import Annotated, Any

from aws_lambda_powertools.event_handler.openapi.params import Query

from lambdas.rest.models import QueryInstant
from scheduler.model import ids
from scheduler.model.errors import Invalid

Upcoming = Annotated[bool, Query(description="what is ahead instead of what was due")]
Since = Annotated[QueryInstant | None, Query(alias="from", description="scheduled at or after this instant (RFC 3339)")]
Until = Annotated[QueryInstant | None, Query(alias="to", description="scheduled before this instant (RFC 3339)")]
Limit = Annotated[int, Query(ge=1, le=100)]
Cursor = Annotated[str | None, Query(description="the cursor of the page before")]
OfTask = Annotated[str | None, Query(description="runs of the task with this id")]
Tagged = Annotated[str | None, Query(description="has this tag")]


def known(event: Any, *names: str) -> None:
    """Raises Invalid for query parameters other than these: a misspelt filter would silently list everything."""
    taken = (*names, "user")  # the access rule of the route checks `user`
    unknown = [name for name in event.query_string_parameters or {} if name not in taken]
    if unknown:
        details = [{"field": name, "rule": "is not a known parameter"} for name in unknown]
        raise Invalid(f"unknown parameters: {', '.join(unknown)}", details=details)


def task_id(text: str | None) -> str | None:
    """The id of a task. Raises Invalid for a text that cannot be one: it would silently list nothing."""
    if text is not None and not ids.is_job_id(text):
        raise Invalid.field("task", "must be the id of a task")
    return text
