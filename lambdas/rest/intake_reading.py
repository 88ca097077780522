"""The body of a message: that of `POST /jobs`, or of `POST /jobs/batch`. It is validated by the same models."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from lambdas.rest import batch, envelope, request_body
from lambdas.rest.models import BatchRequest
from lambdas.rest.resolution import Stage
from scheduler.intake.intake import Parsed, Services
from scheduler.intake.senders import Senders
from scheduler.model.intake import IntakeMessage
from scheduler.storage.ports import Receipts

JOBS = "jobs"  # a body with this field is a batch


def services(ports: Any, queues: Mapping[str, str]) -> Services:
    """The services of a process with these ports, `_runtime.Api`. `queues`: an owner, or `principals`, by the name of each queue."""

    def reading(message: IntakeMessage, owner: str, key: str) -> Parsed:
        return read(message, owner, key, ports.receipts, Stage.of(ports, owner))

    return Services(Senders(ports.callers, queues), ports.quotas, reading, ports.direct)


def read(message: IntakeMessage, owner: str, key: str, receipts: Receipts, stage: Stage) -> Parsed:
    """The jobs of a message. Their times are counted from the instant at which it was sent.

    The ids of the jobs follow from `key`. Without a receipt, which is valid for a day, a repeated message thus still stores no second job.
    Raises Invalid for a body that requests no jobs.
    """
    body = request_body.parse(message.body.encode("utf-8", "surrogatepass"))
    items = _items(body) if JOBS in body else [body]
    several = JOBS in body
    randoms = sorted(_random(f"{key}#{number}") for number in range(len(items)))  # ids of one instant sort in the order of the items
    made = [
        batch.read_item(
            item,
            batch.path_of(number) if several else "",
            owner,
            message.sent_at,
            f"{key}#{number}" if several else key,
            receipts,
            randoms[number],
            stage,
            message.trace,
            delivery=message.receives,
        )
        for number, item in enumerate(items)
    ]
    return Parsed(batch.without_orphans(items, made) if several else made, (lambda places: _text(items, places)) if several else None)


def _items(body: dict[str, Any]) -> list[Any]:
    try:
        return BatchRequest.model_validate(body).jobs
    except ValidationError as error:
        raise envelope.body_violations(error, BatchRequest) from None


def _text(items: Sequence[Any], places: Sequence[int]) -> str:
    return json.dumps({JOBS: [items[place] for place in places]}, ensure_ascii=False, separators=(",", ":"))


def _random(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=9).digest())
