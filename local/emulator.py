"""The local AWS (MiniStack) as `local/server.py` starts it: with what it leaves out of PartiQL statements, and a list of grants in use.

- Its DynamoDB tells a table's stream of puts, updates and deletes, and of nothing that statements write: batches would never reach the
  functions that read the streams. On AWS they do.
- It enforces the call that carries statements, not what each of them does to its table. On AWS that is what a role is granted.
- If its environment names a file as `GRANTS_LOG`, it writes there what roles were allowed to do, each once: time, role, action, resource.
"""

import copy
import os
import runpy
import time
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

from ministack.core import iam_actions, iam_evaluator
from ministack.core.responses import error_response_json, get_account_id
from ministack.services import dynamodb

from local.aws import GRANTS_LOG

STATEMENTS = {
    "_partiql_insert": "dynamodb:PartiQLInsert",
    "_partiql_update": "dynamodb:PartiQLUpdate",
    "_partiql_delete": "dynamodb:PartiQLDelete",
}

Item = dict[str, Any]

_statement: ContextVar[bool] = ContextVar("statement", default=False)  # a PartiQL statement is at work
_call: ContextVar["_Call | None"] = ContextVar("call", default=None)  # the call at work, if roles are enforced


@dataclass(frozen=True)
class _Call:
    """Who makes it, and which statements it may carry out: a batch has many of the same."""

    key: str
    region: str
    allowed: set[tuple[str, str]] = field(default_factory=set)


def _as_statement(run: Callable[..., Any], action: str, check: Callable[..., Any]) -> Callable[..., Any]:
    """A statement, which its caller must be allowed to carry out."""

    def wrapped(table: Item, *arguments: Any) -> Any:
        call, arn = _call.get(), table["TableArn"]
        if call is not None and (action, arn) not in call.allowed:
            denied = check(call.key, action, "dynamodb", call.region, resource_arn=arn)
            if denied is not None:
                message = iam_actions.identity_denial_message(action, getattr(denied, "principal_arn", call.key), arn, False)
                return error_response_json("AccessDeniedException", message, 400)
            call.allowed.add((action, arn))
        token = _statement.set(True)
        try:
            return run(table, *arguments)
        finally:
            _statement.reset(token)

    return wrapped


def _telling(write: Callable[..., Any]) -> Callable[..., Any]:
    """A write of one item, as the stream is told of it if a statement wrote it."""

    def wrapped(table: Item, pk: str, sk: str, item: Item | None = None) -> Any:
        if not _statement.get():
            return write(table, pk, sk) if item is None else write(table, pk, sk, item)
        before, after = copy.deepcopy((table["items"].get(pk, {}).get(sk), item))
        token = _statement.set(False)  # what telling it writes is no statement's
        try:
            done = write(table, pk, sk) if item is None else write(table, pk, sk, item)
            event = "REMOVE" if after is None else "MODIFY" if before else "INSERT"
            dynamodb._emit_stream_event(table["TableName"], event, before, after)
        finally:
            _statement.reset(token)
        return done

    return wrapped


def _remembering(check: Callable[..., Any]) -> Callable[..., Any]:
    """The check of a call, after which its statements know whose they are."""

    def wrapped(key: str, action: str, service: str, region: str, *rest: Any, **named: Any) -> Any:
        _call.set(_Call(key, region))
        return check(key, action, service, region, *rest, **named)

    return wrapped


def _noting(check: Callable[..., Any], log: TextIO) -> Callable[..., Any]:
    """The check of what a role does, which notes what is allowed."""
    noted: set[tuple[str, str, str]] = set()

    def wrapped(key: str, action: str, service: str, region: str, resource_arn: str = "*", **rest: Any) -> Any:
        denied = check(key, action, service, region, resource_arn=resource_arn, **rest)
        used = (_role(key), action, resource_arn)
        if denied is None and used[0] and used not in noted:
            noted.add(used)
            log.write(f"{time.time():.3f} {' '.join(used)}\n")
        return denied

    return wrapped


def _role(key: str) -> str:
    """The role whose session the key is of; empty if it is another one's."""
    principal = iam_evaluator.resolve_principal(key, get_account_id())
    return str(getattr(principal, "arn", "")).partition(":assumed-role/")[2].partition("/")[0]


def main() -> None:
    """Be the local AWS until somebody stops this process."""
    check = iam_evaluator.enforce
    if path := os.environ.get(GRANTS_LOG):
        check = _noting(check, Path(path).open("a", buffering=1))  # until the process ends
    iam_evaluator.enforce = _remembering(check)
    for name, action in STATEMENTS.items():
        setattr(dynamodb, name, _as_statement(getattr(dynamodb, name), action, check))
    for name in ("_set_item", "_remove_item"):
        setattr(dynamodb, name, _telling(getattr(dynamodb, name)))
    runpy.run_module("ministack.app", run_name="__main__", alter_sys=True)
