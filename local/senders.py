"""The senders of messages in queues of the local AWS: the unique id of the caller, as on AWS.

MiniStack gives the id of the account, and names the session of a function by the name of its role.
https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_identifiers.html#identifiers-unique-ids
"""

import re
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any

from ministack.core import iam_evaluator
from ministack.core.router import extract_access_key_id
from ministack.services import iam, lambda_svc, sqs, sts

Message = dict[str, Any]

_sender: ContextVar[str] = ContextVar("sender", default="")  # of the call that is carried out


def named(build: Callable[..., Message]) -> Callable[..., Message]:
    """Wrap the making of a sent message's attributes: name its sender."""

    def wrapped(*arguments: Any, **options: Any) -> Message:
        made = build(*arguments, **options)
        return made | {"SenderId": _sender.get()} if _sender.get() else made

    return wrapped


def noting(handle: Callable[..., Any], sender_of: Callable[[str], str]) -> Callable[..., Any]:
    """Wrap the calls of SQS: note the sender of each. `sender_of`: of an access key; empty if it is unknown."""

    async def wrapped(method: str, path: str, headers: Message, body: bytes, query: Message) -> Any:
        token = _sender.set(sender_of(extract_access_key_id(headers, query)))
        try:
            return await handle(method, path, headers, body, query)
        finally:
            _sender.reset(token)

    return wrapped


def delivered(run: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap the delivery of a batch to a function: each record names the sender of its message."""

    def wrapped(mapping: Message, function: Message, event: Message, batch: Sequence[Message], *rest: Any) -> Any:
        senders = {message["id"]: message.get("sys", {}).get("SenderId") for message in batch}
        for record in event["Records"]:
            if sender := senders.get(record["messageId"]):
                record["attributes"]["SenderId"] = sender
        return run(mapping, function, event, batch, *rest)

    return wrapped


def by_role(register: Callable[[str, Message], None]) -> Callable[[str, Message], None]:
    """Wrap the registration of a session: that of a role begins with the unique id of the role."""

    def wrapped(access_key: str, session: Message) -> None:
        found = re.fullmatch(r"arn:aws:sts::(\d{12}):assumed-role/([^/]+)/(.+)", session.get("Arn", ""))
        if found and (role := iam._roles.get_scoped(found[1], None, found[2])):
            session = session | {"UserId": f"{role['RoleId']}:{found[3]}"}
        register(access_key, session)

    return wrapped


def install() -> None:
    """Let SQS name its senders."""
    sts.register_session = by_role(sts.register_session)
    sqs._build_send_sys_attrs = named(sqs._build_send_sys_attrs)
    sqs.handle_request = noting(sqs.handle_request, lambda key: str((iam_evaluator.resolve_caller_identity(key) or {}).get("userId") or ""))
    lambda_svc._run_sqs_batch = delivered(lambda_svc._run_sqs_batch)
