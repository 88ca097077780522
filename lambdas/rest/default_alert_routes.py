"""Routes of the default alerts: each owner has one set of rules for all tasks without alerts of their own."""

import secrets
from typing import Annotated

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.openapi.params import Body

from lambdas import _runtime
from lambdas.rest.access import needs
from lambdas.rest.alert_models import DefaultAlertsRequest, DefaultAlertsShape, PutDefaultAlertsShape
from lambdas.rest.envelope import answer
from lambdas.rest.resolver import Router, answers
from lambdas.rest.shapes import Answer
from scheduler.accounts.access import Need
from scheduler.model import ids
from scheduler.operations import default_alerts

EXAMPLES = {
    "rules": {
        "summary": "Runs that are five minutes late, take more than an hour, or are missed",
        "value": {"late_after_seconds": 300, "max_duration_seconds": 3_600, "missed": True},
    },
    "none": {"summary": "No default alerts", "value": {}},
}

router = Router()


@router.get(
    "/api/v1/default-alerts",
    summary="Get the default alerts",
    description="The rules about time for the tasks of the owner that have notifications, and no alerts of their own.",
    tags=["receivers"],
    responses=answers(200, Answer[DefaultAlertsShape], errors=(400, 401, 403, 503)),
)
@needs(Need.TASKS_READ, foreign=True)
def get_default_alerts() -> Response[str]:
    return answer(DefaultAlertsShape.of(default_alerts.find(router.owner, _runtime.api())))


@router.put(
    "/api/v1/default-alerts",
    summary="Replace the default alerts",
    description=(
        "The answer has an operation, which replaces the future runs of the tasks with the default alerts. Once it is done, all of their "
        "runs follow the new rules. Idempotent."
    ),
    tags=["receivers"],
    responses=answers(200, Answer[PutDefaultAlertsShape], errors=(400, 401, 403, 404, 409, 413, 415, 503)),
)
@needs(Need.TASKS_WRITE, action="default_alerts.put")
def put_default_alerts(body: Annotated[DefaultAlertsRequest, Body(openapi_examples=EXAMPLES)]) -> Response[str]:
    made = default_alerts.put(router.owner, body.record, _runtime.api(), random=secrets.randbits(ids.RANDOM_BITS))
    return answer(PutDefaultAlertsShape.of_put(made))
