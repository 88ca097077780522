"""Routes for a task form: preview a schedule, list the task types and the operations of AWS. Nothing is saved."""

from typing import Annotated, Literal

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.openapi.params import Body, Query

from lambdas import _runtime
from lambdas.rest import access
from lambdas.rest.access import needs
from lambdas.rest.aws_action_models import AwsActionsShape, DescribedAwsActionShape
from lambdas.rest.envelope import answer
from lambdas.rest.form_models import EXAMPLES, PreviewPageShape, PreviewRequest, TaskTypesShape, WholeScheduleRequest
from lambdas.rest.parameters import AnyLimit, Cursor, part
from lambdas.rest.resolver import Router, answers
from lambdas.rest.shapes import Answer
from scheduler.accounts.access import REFUSALS, Need
from scheduler.model.calendar import Calendar
from scheduler.model.errors import Forbidden, NotFound
from scheduler.targets import allowed_actions, registry
from scheduler.targets.base import NotAllowed, Reach
from scheduler.tasks import calendar_form
from scheduler.tasks.calendars import named_in
from scheduler.tasks.preview import position_of, preview

router = Router()
Scope = Annotated[
    Literal["own", "all"], Query(description="`own`: what jobs of the owner may call. `all`, for operators: what those of any owner may")
]


@router.post(
    "/api/v1/schedules/preview",
    summary="Preview a schedule",
    description="The next runs in UTC and in local time, with a note where a change of the clock matters: by pages, up to 10,000. Nothing "
    "is saved.",
    tags=["schedules"],
    responses=answers(200, Answer[PreviewPageShape], errors=(400, 401, 403, 413, 415, 503)),
)
@needs(Need.SIGNED_IN, owned=True)
def preview_schedule(body: Annotated[PreviewRequest, Body(openapi_examples=EXAMPLES)]) -> Response[str]:
    now = _runtime.api().clock.now()
    shown = preview(
        body.form,
        count=body.count,
        after=body.after,
        now=now,
        calendars=calendars_of(body, router),
        days=body.days,
        position=position_of(body.cursor, now),
    )
    return answer(PreviewPageShape.of(shown))


@router.get(
    "/api/v1/types",
    summary="List types and named targets",
    tags=["tasks"],
    responses=answers(200, Answer[TaskTypesShape], errors=(400, 401, 503)),
)
@needs(Need.SIGNED_IN)
def list_types(limit: AnyLimit = None, cursor: Cursor = None) -> Response[str]:
    ports = _runtime.api()
    types = [name for name in registry.names() if name != "http" or ports.rules.raw_http]
    targets = [target for target in ports.targets.all() if target.enabled]
    return answer(TaskTypesShape.of(part([*types, *targets], limit, cursor)))


@router.get(
    "/api/v1/types/aws/actions",
    summary="List the actions of AWS that jobs may call",
    description="The entries of the option `allowed_actions`, for jobs of the type `aws`. `GET /types/aws/actions/{service}/{action}` has "
    "the parameters of one.",
    tags=["tasks"],
    responses=answers(200, Answer[AwsActionsShape], errors=(400, 401, 403, 503)),
)
@needs(Need.JOBS_READ, foreign=True)
def list_aws_actions(scope: Scope = "own", limit: AnyLimit = None, cursor: Cursor = None) -> Response[str]:
    return answer(AwsActionsShape.of(part(allowed_actions.operations(_reach(scope)), limit, cursor)))


@router.get(
    "/api/v1/types/aws/actions/<service>/<action>",
    summary="Get an action of AWS with its parameters",
    description="The parameters as a JSON Schema, from boto3's model. 404: jobs may not call it; the message has the reason.",
    tags=["tasks"],
    responses=answers(200, Answer[DescribedAwsActionShape], errors=(400, 401, 403, 404, 503)),
)
@needs(Need.JOBS_READ, foreign=True)
def get_aws_action(service: str, action: str, scope: Scope = "own") -> Response[str]:
    try:
        return answer(DescribedAwsActionShape.of(allowed_actions.operation(service, action, _reach(scope))))
    except NotAllowed as error:
        raise NotFound(str(error)) from None


def calendars_of(body: WholeScheduleRequest, of: Router) -> dict[str, Calendar]:
    """The calendars that the schedule names. Raises Forbidden if the caller may not see them; a schedule without any needs no rights.

    `of`: the router of the route that is asked.
    """
    if not calendar_form.names(body.form):
        return {}
    ports, caller = _runtime.api(), of.caller
    if not caller.may(Need.TASKS_READ, of.owner):
        raise Forbidden(REFUSALS[Need.TASKS_READ])
    ports.callers.may_act_for(caller, of.owner)
    return named_in(body.form, of.owner, ports)


def _reach(scope: str) -> Reach:
    """The reach of the owner's jobs, or that of all jobs of the stage. Raises Forbidden if the caller may not see all of them."""
    reach = _runtime.api().reach
    if scope != "all":
        return reach.of(router.owner)
    access.check(router.caller, Need.OVERSEE)
    return reach
