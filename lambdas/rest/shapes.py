"""The parts of every answer: models that make its JSON from records."""

from collections.abc import Callable, Sequence
from typing import Annotated, Any, ClassVar, Generic, Literal, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, WithJsonSchema
from pydantic.fields import FieldInfo

from scheduler.model import instants
from scheduler.model.errors import SchedulerError

R = TypeVar("R")
S = TypeVar("S")
T = TypeVar("T")
WRITTEN_INSTANT = WithJsonSchema({"type": "string", "format": "date-time"})
LONGEST_FIELD, LONGEST_RULE, LONGEST_MESSAGE = 300, 1_000, 20_000  # characters: an error may quote what the request chose
Json = dict[str, Any]
WrittenTime = Annotated[str, WRITTEN_INSTANT]


class Shape(BaseModel):
    """Part of an answer. `of`, or else `from_record`, makes the JSON object that it describes."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)
    written: ClassVar[tuple[tuple[str, str, bool], ...]] = ()  # of each field: its name here, its name in JSON, whether it is an instant

    @classmethod
    def __pydantic_init_subclass__(cls, **options: Any) -> None:
        super().__pydantic_init_subclass__(**options)
        cls.written = tuple((name, field.alias or name, _is_time(field)) for name, field in cls.model_fields.items())

    @classmethod
    def from_record(cls, record: object, /, **others: Any) -> Json:
        """The JSON object with every field: its value in `others`, else the record's attribute of that name. Instants are given in ms.

        The method creates no model: our own records need no validation, and without it a list takes half the time.
        """
        shown: Json = {}
        for name, key, is_time in cls.written:
            value = others[name] if name in others else getattr(record, name)
            if is_time and value is not None:
                value = instants.render(value)
            shown[key] = value
        return shown


def _is_time(field: FieldInfo) -> bool:
    parts = [part for option in get_args(field.annotation) for part in get_args(option)]
    return WRITTEN_INSTANT in (*field.metadata, *parts)


def shortened(text: str, most: int) -> str:
    """The text, or its first characters and an ellipsis."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def optional(make: Callable[[R], S], record: R | None) -> S | None:
    """`make(record)`, or None if there is no record."""
    return None if record is None else make(record)


def present(shown: Json) -> Json:
    """The same without the fields that are null."""
    return {name: value for name, value in shown.items() if value is not None}


def seconds(ms: int | None) -> float | None:
    """Seconds as a number, without a fraction if they are whole."""
    return None if ms is None else ms // 1000 if ms % 1000 == 0 else ms / 1000


class Answer(Shape, Generic[T]):
    """Every answer that is not an error."""

    success: Literal[True]
    data: T


class ListShape(Shape):
    """A page of a list. Every list has these fields, and its entries in `items`."""

    cursor: str | None
    """Pass it as the parameter `cursor` to get the next page. Null on the last page. A page with few entries may have a successor."""
    has_more: bool
    """True: there is a next page, and `cursor` is not null."""

    @classmethod
    def page(cls, entries: Sequence[Json], cursor: str | None, **others: Any) -> Json:
        return {"items": entries, "cursor": cursor, "has_more": cursor is not None, **others}


class Violation(Shape):
    field: str
    rule: str


class ErrorShape(Shape):
    code: str
    message: str
    details: list[Violation]
    """One entry per broken rule, if the request is invalid."""
    request_id: str

    @classmethod
    def of(cls, error: SchedulerError, request_id: str) -> Json:
        details = [
            {"field": shortened(each["field"], LONGEST_FIELD), "rule": shortened(each["rule"], LONGEST_RULE)} for each in error.details
        ]
        return cls.from_record(error, message=shortened(error.message, LONGEST_MESSAGE), details=details, request_id=request_id)


class GatewayAnswer(Shape):
    """The answer of API Gateway to a request without a valid token: it does not reach the API."""

    message: str


class ErrorAnswer(Shape):
    """Every error."""

    success: Literal[False]
    error: ErrorShape
