"""Routes for a task form: preview a schedule, list the task types. Nothing is saved."""

from typing import Annotated

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.openapi.params import Body

from lambdas import _runtime
from lambdas.rest.access import needs
from lambdas.rest.envelope import answer
from lambdas.rest.form_models import EXAMPLES, PreviewRequest, PreviewShape, TaskTypesShape
from lambdas.rest.parameters import AnyLimit, Cursor, part
from lambdas.rest.resolver import Router, answers
from lambdas.rest.shapes import Answer
from scheduler.accounts.access import Need
from scheduler.targets import registry
from scheduler.tasks.preview import preview

router = Router()


@router.post(
    "/api/v1/schedules/preview",
    summary="Preview a schedule",
    description="The next runs in UTC and in local time, with a note where a change of the clock matters. Nothing is saved.",
    tags=["schedules"],
    responses=answers(200, Answer[PreviewShape], errors=(400, 401, 413, 415)),
)
@needs(Need.SIGNED_IN)
def preview_schedule(body: Annotated[PreviewRequest, Body(openapi_examples=EXAMPLES)]) -> Response[str]:
    runs = preview(body.form, count=body.count, after=body.after, now=_runtime.api().clock.now())
    return answer(PreviewShape.of(runs))


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
