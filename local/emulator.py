"""The local AWS (MiniStack) as `local/server.py` starts it: with what it leaves out of streams.

Its DynamoDB tells a table's stream of puts, updates and deletes, and of nothing that PartiQL statements write: batches would never reach
the functions that read the streams. On AWS they do.
"""

import copy
import runpy
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from ministack.services import dynamodb

Item = dict[str, Any]

_statement: ContextVar[bool] = ContextVar("statement", default=False)  # a PartiQL statement is at work


def _as_statement(run: Callable[..., Any]) -> Callable[..., Any]:
    def wrapped(*arguments: Any) -> Any:
        token = _statement.set(True)
        try:
            return run(*arguments)
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


def main() -> None:
    """Be the local AWS until somebody stops this process."""
    for name in ("_partiql_insert", "_partiql_update", "_partiql_delete"):
        setattr(dynamodb, name, _as_statement(getattr(dynamodb, name)))
    for name in ("_set_item", "_remove_item"):
        setattr(dynamodb, name, _telling(getattr(dynamodb, name)))
    runpy.run_module("ministack.app", run_name="__main__", alter_sys=True)
