"""Routes of the audit trail: the caller's entries, and all entries for operators and administrators."""

from typing import Annotated

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.openapi.params import Query

from lambdas import _runtime
from lambdas.rest.access import needs
from lambdas.rest.envelope import answer
from lambdas.rest.models import QueryInstant
from lambdas.rest.parameters import Cursor, Limit
from lambdas.rest.resolver import Router, answers
from lambdas.rest.shapes import Answer
from lambdas.rest.user_models import TrailShape
from scheduler.accounts import audit_trail
from scheduler.accounts.access import Need
from scheduler.accounts.audit_trail import Search

router = Router()

Action = Annotated[str | None, Query(description="the action, or its beginning: `task`, `task.edit`")]
Object = Annotated[str | None, Query(description="the id of the object that was changed")]
Actor = Annotated[str | None, Query(description="the id of the user or program that made the change")]
From = Annotated[QueryInstant | None, Query(alias="from", description="at or after this instant (RFC 3339); default: 30 days ago")]
To = Annotated[QueryInstant | None, Query(alias="to", description="before this instant (RFC 3339)")]


@router.get(
    "/api/v1/me/audit",
    summary="List your audit entries",
    description="Changes of your jobs, tasks, ordering keys and account, newest first.",
    tags=["audit"],
    responses=answers(200, Answer[TrailShape], errors=(400, 401, 403, 503)),
)
@needs(Need.JOBS_READ, foreign=True)
def list_my_audit_entries(
    action: Action = None,
    object: Object = None,
    actor: Actor = None,
    since: From = None,
    until: To = None,
    limit: Limit = 20,
    cursor: Cursor = None,
) -> Response[str]:
    owner = router.owner
    return _answer(Search(owner, action, object, actor, since, until, limit, cursor))


@router.get(
    "/api/v1/audit",
    summary="List all audit entries",
    description="Operators and administrators only. Newest first. The `owner` of changes that concern all users is `system`.",
    tags=["audit"],
    responses=answers(200, Answer[TrailShape], errors=(400, 401, 403, 503)),
)
@needs(Need.OVERSEE)
def list_audit_entries(
    action: Action = None,
    object: Object = None,
    actor: Actor = None,
    since: From = None,
    until: To = None,
    limit: Limit = 20,
    cursor: Cursor = None,
) -> Response[str]:
    return _answer(Search(None, action, object, actor, since, until, limit, cursor))


def _answer(search: Search) -> Response[str]:
    ports = _runtime.api()
    entries, cursor = audit_trail.search(search, trail=ports.trail, now=ports.clock.now())
    return answer(TrailShape.of(entries, cursor, ports.names.of({entry.actor for entry in entries})))
