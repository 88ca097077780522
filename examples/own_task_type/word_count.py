"""`word_count`: counts the words of a text."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from json import dumps
from typing import Annotated, Any, ClassVar

from annotated_types import Ge, Le, Len

from scheduler.model.job import Failure, FailureKind, Result
from scheduler.targets.base import Context
from scheduler.targets.target_type import TargetType


@dataclass(frozen=True, slots=True)
class Payload:
    """The text, and how many of its most frequent words the output has."""

    __pydantic_config__: ClassVar = {"extra": "forbid", "use_attribute_docstrings": True}

    text: Annotated[str, Len(1, 100_000)]
    """The text."""
    most: Annotated[int, Ge(1), Le(100)] = 3
    """The number of words to return."""


def run(payload: Mapping[str, Any], context: Context) -> Result:
    """The output is a JSON object with the most frequent words."""
    request = Payload(**payload)
    words = [word.strip(".,;:!?").lower() for word in request.text.split()]
    counted = Counter(word for word in words if word)
    if not counted:
        return Result(failure=Failure(FailureKind.PERMANENT, "the text has no words"))
    return Result(output=dumps(dict(counted.most_common(request.most))))


TYPE = TargetType(payload=Payload, run=run, is_work=lambda payload: True, content=("text", "most"))
