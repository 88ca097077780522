"""`email`: sends an e-mail, from the one sender of the stage."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from annotated_types import MaxLen, MinLen, Predicate

from scheduler.model.job import Result
from scheduler.targets import aws_call
from scheduler.targets.base import Context
from scheduler.targets.calls import Calls, Mail

SENDS_MAIL = True


def is_address(text: str) -> bool:
    if not re.fullmatch(r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+", text):
        raise ValueError("must be one bare e-mail address in ASCII, such as ann@example.com")
    return True


def _is_line(text: str) -> bool:
    if not text.isprintable():
        raise ValueError("must be one line of printable text")
    return True


@dataclass(frozen=True, slots=True)
class Payload:
    """An e-mail."""

    __pydantic_config__: ClassVar = {"extra": "forbid", "use_attribute_docstrings": True}

    to: Annotated[list[Annotated[str, MaxLen(254), Predicate(is_address)]], MinLen(1), MaxLen(50)]
    """Addresses, 1 to 50; each sees the others."""
    subject: Annotated[str, MinLen(1), MaxLen(300), Predicate(_is_line)]
    """One line."""
    text: Annotated[str, MinLen(1)] | None = None
    """The body as plain text."""
    html: Annotated[str, MinLen(1)] | None = None
    """The body as HTML. Give text, html or both."""

    def __post_init__(self) -> None:
        if self.text is None and self.html is None:
            raise ValueError("give text, html or both")


def run(payload: Mapping[str, Any], context: Context) -> Result:
    """One e-mail. That SES took it is success; the output is its message id."""
    wanted = Payload(**payload)
    mail = Mail(tuple(wanted.to), wanted.subject, wanted.text, wanted.html, headers=aws_call.ids(context))

    def call(calls: Calls) -> Result:
        return Result(output=calls.mail(mail, left=context.left))

    return aws_call.attempt("email", payload, context, call)
