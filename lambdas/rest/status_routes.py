"""The route of the status: what is wrong now."""

from typing import Annotated, Literal

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.openapi.params import Query

from lambdas import _runtime
from lambdas.rest import access
from lambdas.rest.access import needs
from lambdas.rest.envelope import answer
from lambdas.rest.resolver import Router, answers
from lambdas.rest.shapes import Answer
from lambdas.rest.status_models import CurrentStatusShape
from scheduler.accounts.access import Need
from scheduler.insight import status

router = Router()

Scope = Annotated[
    Literal["own", "all"], Query(description="the jobs to check: `own` are those of the caller, `all` is for operators and administrators")
]


@router.get(
    "/api/v1/status",
    summary="Get what is wrong now",
    description=(
        "Late jobs, paused lanes, open breakers, failures of the last hour, and tasks that skip their runs. "
        "Each problem has the command that shows more of it, and the request and the command that mend it. "
        "All reads are bounded: `at_least` marks numbers that were cut."
    ),
    tags=["system"],
    responses=answers(200, Answer[CurrentStatusShape], errors=(400, 401, 403, 503)),
)
@needs(Need.JOBS_READ, foreign=True)
def get_status(scope: Scope = "own") -> Response[str]:
    ports, caller = _runtime.api(), router.caller
    if scope == "all":
        access.check(caller, Need.OVERSEE)
        return answer(CurrentStatusShape.of(status.of_all(ports.names.all(), ports, ports.settings.stage)))
    owner = router.owner
    name = ports.quotas.record(owner).profile.name or owner
    return answer(CurrentStatusShape.of(status.of_owner(owner, name, ports, is_own=owner == caller.owner)))
