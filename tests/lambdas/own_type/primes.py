"""`primes`: finds the n-th prime number."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from annotated_types import Ge, Le

from scheduler.model.job import Result
from scheduler.targets.base import Context
from scheduler.targets.target_type import TargetType

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Payload:
    """The prime number to find."""

    __pydantic_config__: ClassVar = {"extra": "forbid", "use_attribute_docstrings": True}

    number: Annotated[int, Ge(1), Le(1_000_000)]
    """1 for the first one, which is 2."""


def run(payload: Mapping[str, Any], context: Context) -> Result:
    """The output is the prime number."""
    request = Payload(**payload)
    logger.info("looking for prime number %s", request.number)
    found: list[int] = []
    candidate = 2
    while len(found) < request.number:
        if all(candidate % prime for prime in found):
            found.append(candidate)
        candidate += 1
    return Result(output=str(found[-1]))


TYPE = TargetType(payload=Payload, run=run, is_work=lambda payload: True, content=("number",))
