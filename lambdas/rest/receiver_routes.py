"""Routes of named receivers: each owner has receivers of its own."""

from typing import Annotated

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.openapi.params import Body

from lambdas import _runtime
from lambdas.rest.access import needs
from lambdas.rest.envelope import answer
from lambdas.rest.receiver_models import DeletedReceiverShape, ReceiverRequest, ReceiverShape, ReceiversShape, RequestedTestShape
from lambdas.rest.resolver import Router, answers
from lambdas.rest.shapes import Answer
from scheduler.accounts.access import Need
from scheduler.notify import receivers

EXAMPLES = {
    "slack": {
        "summary": "A channel in Slack",
        "value": {"kind": "slack", "address": "https://hooks.slack.com/services/T0/B0/abcdef"},
    },
    "pagerduty": {
        "summary": "A service of PagerDuty, for all tasks that name no other receiver",
        "value": {"kind": "pagerduty", "address": "0123456789abcdef0123456789abcdef", "region": "eu", "default": True},
    },
}

router = Router()


@router.get(
    "/api/v1/receivers",
    summary="List receivers of notices",
    description="All receivers of the owner, by name, without their addresses.",
    tags=["receivers"],
    responses=answers(200, Answer[ReceiversShape], errors=(400, 401, 403, 503)),
)
@needs(Need.TASKS_READ, foreign=True)
def list_receivers() -> Response[str]:
    return answer(ReceiversShape.of(_runtime.api().receivers.all(router.owner)))


@router.get(
    "/api/v1/receivers/<receiver>",
    summary="Get a receiver of notices",
    tags=["receivers"],
    responses=answers(200, Answer[ReceiverShape], errors=(401, 403, 404, 503)),
)
@needs(Need.TASKS_READ, foreign=True)
def get_receiver(receiver: str) -> Response[str]:
    return answer(ReceiverShape.of(receivers.find(router.owner, receiver, _runtime.api())))


@router.put(
    "/api/v1/receivers/<receiver>",
    summary="Create or replace a receiver of notices",
    description="201: it is new. A new address applies to notices that are not sent yet, too.",
    tags=["receivers"],
    responses=answers(201, Answer[ReceiverShape], 200, errors=(400, 401, 403, 404, 409, 413, 415, 503)),
)
@needs(Need.TASKS_WRITE, action="receiver.put")
def put_receiver(receiver: str, body: Annotated[ReceiverRequest, Body(openapi_examples=EXAMPLES)]) -> Response[str]:
    stored, is_new = receivers.put(body.new(router.owner, receiver), _runtime.api())
    return answer(ReceiverShape.of(stored), 201 if is_new else 200, {"Location": f"/api/v1/receivers/{receiver}"} if is_new else {})


@router.delete(
    "/api/v1/receivers/<receiver>",
    summary="Delete a receiver of notices",
    description="Refused while a monitor or one of your newest 5,000 tasks names it. A job that names it sends it no notice.",
    tags=["receivers"],
    responses=answers(200, Answer[DeletedReceiverShape], errors=(401, 403, 404, 409, 503)),
)
@needs(Need.TASKS_WRITE, foreign=True, action="receiver.delete")
def delete_receiver(receiver: str) -> Response[str]:
    return answer(DeletedReceiverShape.from_record(receivers.delete(router.owner, receiver, _runtime.api())))


@router.post(
    "/api/v1/receivers/<receiver>/test",
    summary="Test a receiver of notices",
    description=(
        "Sends a notice that is marked as a test. `GET /receivers/{receiver}` has the result, usually within seconds. "
        "In PagerDuty it opens an incident of its own and resolves it. At most one test in ten seconds is sent."
    ),
    tags=["receivers"],
    responses=answers(202, Answer[RequestedTestShape], errors=(401, 403, 404, 503)),
)
@needs(Need.TASKS_WRITE, action="receiver.test")
def test_receiver(receiver: str) -> Response[str]:
    at = receivers.send_test(router.owner, receiver, _runtime.api())
    return answer(RequestedTestShape.from_record(None, name=receiver, requested_at=at), 202)
