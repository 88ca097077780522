"""`aws`: calls one operation of any AWS API, such as CopyObject of S3."""

import base64
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Annotated, Any, ClassVar

from annotated_types import MaxLen, MinLen, Predicate

from scheduler.model.job import Failure, FailureKind, Result
from scheduler.targets import allowed_actions, arns, aws_call, partial_failures, service_models
from scheduler.targets.base import ACCOUNTS, Context, NotAllowed, Reach
from scheduler.targets.calls import Calls, Refused, Request
from scheduler.targets.service_models import Operation
from scheduler.targets.target_type import TargetType

UNCLEAR = "the call may have had its effect, and the job has no `idempotent`: it is not repeated"
LONGEST_REPORT = 300  # characters of the failures that an answer lists


def _is_account(text: str) -> bool:
    if re.fullmatch(r"[0-9]{12}", text) is None:
        raise ValueError("must be the 12 digits of an AWS account")
    return True


@dataclass(frozen=True, slots=True)
class Payload:
    """A call of an AWS API."""

    __pydantic_config__: ClassVar = {"extra": "forbid", "use_attribute_docstrings": True}

    service: Annotated[str, MinLen(1), MaxLen(64)]
    """The service by the name of boto3's client, such as s3."""
    action: Annotated[str, MinLen(1), MaxLen(128)]
    """The operation by its name in the API, such as CopyObject."""
    parameters: dict[str, Any]
    """Its parameters by their names in the API; bytes as base64 text, instants as RFC 3339 text."""
    idempotent: bool = False
    """Whether a call may be repeated whose answer was lost. Operations that only read, or that take a token, always are."""
    account: Annotated[str, Predicate(_is_account)] | None = None
    """The AWS account in which the call is made, by the role that the stage has for it; without it, the stage's own account."""


def _name(payload: Mapping[str, Any]) -> str:
    return f"{payload['service']}:{payload['action']}"


def _named(payload: Mapping[str, Any]) -> str | None:
    return _name(payload) if "service" in payload and "action" in payload else None


def _circuit(payload: Mapping[str, Any]) -> str | None:
    name, account = _named(payload), payload.get("account")
    return f"{name} in {account}" if name and account else name


def check(payload: Mapping[str, Any], reach: Reach) -> None:
    """Raises NotAllowed if the stage does not list the action, or has no role for the account, or if the parameters break its rules or
    name the scheduler's resources."""
    account = payload.get("account")
    if account and reach.role_in(account, "account") is None:
        raise NotAllowed("account", f"{account} has no entry in {ACCOUNTS} of this stage, which its operators set")
    if _named(payload) is not None:  # the defaults of a named target may be less
        operation = _operation(payload, reach)
        if "parameters" in payload:
            operation.converted(payload["parameters"], are_final=False)
            _check_names(payload["parameters"])


def _operation(payload: Mapping[str, Any], reach: Reach) -> Operation:
    """The operation that a payload calls. Raises NotAllowed."""
    return allowed_actions.operation(payload["service"], payload["action"], reach)


def _check_names(parameters: Mapping[str, Any]) -> None:
    """Raises NotAllowed if a text, or the name of a field, names a resource of the scheduler, to which the executors may have rights."""
    left: list[tuple[str, Any]] = [("parameters", parameters)]
    while left:
        path, value = left.pop()
        if isinstance(value, Mapping):
            left += [(f"{path}.{name}"[:200], each) for name, found in value.items() for each in (name, found)]
        elif isinstance(value, list):
            left += [(f"{path}.{number}"[:200], each) for number, each in enumerate(value)]
        elif isinstance(value, str) and arns.names_own(value):
            raise NotAllowed(path, "names a resource of the scheduler itself, which no job may reach")


def run(payload: Mapping[str, Any], context: Context) -> Result:
    """Call the operation once. The output is its answer as JSON. An answer that lists failures is a failure.

    The tokens of the operation are the job's, the same in every attempt. An attempt whose answer is lost is only repeated if the
    operation is idempotent by such a token, because it only reads, or by the payload.
    """
    request = Payload(**payload)

    def call(calls: Calls) -> Result:
        return _call(request, _operation(payload, context.reach), calls, context)

    result = aws_call.attempt("aws", payload, context, call)
    failure = result.failure
    if failure is None or failure.kind is not FailureKind.TIMEOUT or context.stop.is_set() or _is_safe(request):
        return result
    return replace(result, failure=Failure(FailureKind.PERMANENT, f"{failure.message}: {UNCLEAR}"))


def _is_safe(request: Payload) -> bool:
    """Whether the same call may be made twice."""
    return request.idempotent or service_models.operation(request.service, request.action).is_idempotent


def _call(request: Payload, operation: Operation, calls: Calls, context: Context) -> Result:
    is_safe = _is_safe(request)
    try:
        parameters = operation.converted(request.parameters, are_final=True)  # its placeholders are replaced now
    except NotAllowed as error:
        return Result(failure=Failure(FailureKind.PERMANENT, f"{error.field} {error}"[:500]))
    sent = operation.with_tokens(parameters, context.idempotency_key)
    try:
        answer = calls.send(Request(request.service, request.action, sent, waits=True, again=is_safe, is_any=True), left=context.left)
    except Refused as refused:
        return Result(failure=_refusal(refused, request, is_safe))
    output = json.dumps({name: each for name, each in answer.items() if name != "ResponseMetadata"}, default=_plain, ensure_ascii=False)
    failed = partial_failures.found(request.service, request.action, answer)
    if failed is None:
        return Result(output=output)
    listed = json.dumps(failed[1], default=_plain, ensure_ascii=False)[:LONGEST_REPORT]
    kind = FailureKind.RETRYABLE if is_safe else FailureKind.PERMANENT  # a repetition repeats the entries that succeeded
    return Result(output=output, failure=Failure(kind, f"the answer lists failures: {failed[0]} is {listed}"))


def _refusal(refused: Refused, request: Payload, is_safe: bool) -> Failure:
    if refused.unclear and not is_safe:
        return Failure(FailureKind.PERMANENT, f"{UNCLEAR}: {refused}"[:500])
    failure = aws_call.failure_of(refused)
    if failure.kind is FailureKind.PERMANENT and refused.is_denied:
        name = f"{request.service}:{request.action}"
        hint = f"; see the entry {name} of {allowed_actions.OPTION}: its resources, and its `iam` if IAM names the action otherwise"
        if request.account:
            hint = f"; see the policies of the role that {ACCOUNTS} has for {request.account}"
        return replace(failure, message=f"{failure.message[: 500 - len(hint)]}{hint}")
    return failure


def _plain(value: Any) -> str:
    """A value that JSON has no type for, in the same form as in parameters."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return str(value)


TYPE = TargetType(
    payload=Payload,
    run=run,
    account="account",
    check=check,
    content=("parameters",),
    circuit=_circuit,
    called=_named,
    equal_attempts=True,
)
