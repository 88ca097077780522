"""Routes of ordering keys: read the state of a key, and resume a paused key."""

from aws_lambda_powertools.event_handler import Response

from lambdas import _runtime
from lambdas.rest.access import needs
from lambdas.rest.envelope import answer
from lambdas.rest.models import ORDERING_KEY_RULE, OrderingKeyShape, is_ordering_key
from lambdas.rest.resolver import Router, answers
from lambdas.rest.shapes import Answer
from scheduler.accounts.access import Need
from scheduler.jobs import ordering_keys
from scheduler.model.errors import Invalid
from scheduler.model.job import OrderKey

router = Router()


@router.get(
    "/api/v1/ordering-keys/<ordering_key>",
    summary="Get an ordering key",
    description=(
        "The current job, the number of waiting jobs, and the failed job that pauses the key, if any. "
        "A key that was never used is shown as empty."
    ),
    tags=["ordering keys"],
    responses=answers(200, Answer[OrderingKeyShape], errors=(400, 401, 404, 503)),
)
@needs(Need.JOBS_READ, foreign=True)
def get_ordering_key(ordering_key: str) -> Response[str]:
    ports, order = _runtime.api(), _order(ordering_key)
    return answer(OrderingKeyShape.of(order.key, ordering_keys.view(order, ports)))


@router.post(
    "/api/v1/ordering-keys/<ordering_key>/resume",
    summary="Resume a paused ordering key",
    description="The jobs behind the failed job start. The failed job stays failed: to run it first, retry it instead.",
    tags=["ordering keys"],
    responses=answers(200, Answer[OrderingKeyShape], errors=(400, 401, 404, 409, 503)),
)
@needs(Need.JOBS_WRITE, foreign=True, action="ordering-key.resume")
def resume_ordering_key(ordering_key: str) -> Response[str]:
    ports, order = _runtime.api(), _order(ordering_key)
    view = ordering_keys.resume(order, ports)
    return answer(OrderingKeyShape.of(order.key, view))


def _order(key: str) -> OrderKey:
    """The caller's ordering queue of this key. Raises Invalid for a text that is no valid key."""
    if not is_ordering_key(key):
        raise Invalid.field("ordering_key", ORDERING_KEY_RULE)
    return OrderKey(router.owner, key)
