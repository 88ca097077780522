"""`email`: sends an e-mail, from the one sender of the stage."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from annotated_types import MaxLen, MinLen, Predicate

from scheduler.model.job import Failure, FailureKind, Result
from scheduler.model.texts import as_line, broken_rule
from scheduler.targets import aws_call
from scheduler.targets.base import Context, NotAllowed, Reach
from scheduler.targets.calls import Calls, Request
from scheduler.targets.target_type import TargetType

CHARSET = "UTF-8"
OVER_BUDGET = "the budget of mails of its owner is used up: it is full again a day after its first mail"


def is_address(text: str) -> bool:
    if not re.fullmatch(r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+", text):
        raise ValueError("must be one bare e-mail address in ASCII, such as ann@example.com")
    return True


def _is_line(text: str) -> bool:
    if (rule := broken_rule(text)) is not None:
        raise ValueError(rule)
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


def check(payload: Mapping[str, Any], reach: Reach) -> None:
    """Raises NotAllowed if the stage sends no e-mail, or none to one of the recipients. The defaults of a named target may lack them."""
    if not reach.sender:
        raise NotAllowed("", "this stage cannot send e-mail: its operators deploy a sender with the option email_sender")
    for address in payload.get("to", ()):
        if rule := refusal(address, reach):
            raise NotAllowed("to", rule)


def refusal(address: str, reach: Reach) -> str | None:
    """The reason why the stage sends no mail to an address; None if it does."""
    allowed = reach.mail_domains or (reach.sender.rpartition("@")[2],)
    domain = address.rpartition("@")[2].lower()
    if any(re.fullmatch(re.escape(pattern.lower()).replace(r"\*", ".*"), domain) for pattern in allowed):
        return None
    return f"has a domain to which this stage sends no mail: {domain}; allowed: {', '.join(allowed)} (option email_domains)"


def run(payload: Mapping[str, Any], context: Context) -> Result:
    """Send one e-mail. It succeeds if SES accepts the e-mail; the output is its message id."""
    try:
        check(payload, context.reach)
        request = Payload(**payload)
        for address in request.to:
            is_address(address)  # it may have had placeholders
    except ValueError as error:
        return Result(failure=Failure(FailureKind.PERMANENT, f"to: {error}"[:500]))
    if not context.admits_mail(len(request.to)):
        return Result(failure=Failure(FailureKind.PERMANENT, OVER_BUDGET))
    body = {kind: _text(text) for kind, text in (("Text", request.text), ("Html", request.html)) if text is not None}
    headers = [{"Name": name, "Value": value} for name, value in (aws_call.ids(context) | context.job.headers()).items()]
    mail = {
        "FromEmailAddress": context.reach.sender,
        "Destination": {"ToAddresses": request.to},
        "Content": {"Simple": {"Subject": _text(request.subject), "Body": body, "Headers": headers}},
    }

    def call(calls: Calls) -> Result:
        return Result(output=str(calls.send(Request("sesv2", "send_email", mail), left=context.left)["MessageId"]))

    return aws_call.attempt("email", payload, context, call)


def _text(text: str) -> dict[str, str]:
    return {"Data": text, "Charset": CHARSET}


def called(payload: Mapping[str, Any]) -> str | None:
    """The first recipient."""
    return next((str(address) for address in payload.get("to") or ()), None)


TYPE = TargetType(payload=Payload, run=run, check=check, called=called, content=("subject", "text", "html"), encodings={"subject": as_line})
