"""`python -m tests.lambdas.first_invocation VERB`: imports a handler and invokes it once. Prints what each of the two made:
clients, and the certificates for calls of URLs; and whether the import left garbage to be collected, and its own objects out of it.

It is a process of its own, since imports and clients stay in a process. AWS is answered in process; the environment says whether this
is Lambda.
"""

import gc
import importlib
import io
import json
import os
import ssl
import sys
import time
from collections.abc import Callable
from contextlib import redirect_stdout
from typing import Any
from unittest.mock import patch

from botocore.session import Session

from bench import inprocess
from lab.world.answered import Answered
from lab.world.events import Context, record
from scheduler.model.job import UnitKey
from scheduler.model.work import WorkItem
from scheduler.storage.aws import clients, work_queue

Invocation = tuple[dict[str, Any], Context]


def execute(aws: Answered) -> Invocation:
    return inprocess._batch(aws, "request", time.time_ns() // 1_000_000)


def worker(aws: Answered) -> Invocation:
    """A minute with jobs, which is over: the dispatcher publishes them at once."""
    aws.slots = inprocess._due_index([inprocess.START + number * 1_000 for number in range(20)])
    aws.items.append(inprocess.unit_item())
    body = work_queue.encode(WorkItem.of_unit(UnitKey(inprocess.MINUTE, 0)))
    return {"Records": [record("message", "receipt", body)]}, Context("request")


def tick(aws: Answered) -> Invocation:
    return {}, Context("request")


def api(aws: Answered) -> Invocation:
    return inprocess._post({"message": "first"}), Context("request")


def fetch(aws: Answered) -> Invocation:
    return {}, Context("request")


PREPARE: dict[str, Callable[[Answered], Invocation]] = {
    "execute": execute,
    "worker": worker,
    "tick": tick,
    "api": api,
    "fetch": fetch,
}


def main(verb: str) -> dict[str, Any]:
    os.environ |= inprocess.ENVIRONMENT
    if verb != "worker":
        del os.environ["PUNCTUAL_TOPIC_ARN"]  # no other function publishes
    aws, made = Answered(), list[str]()
    aws.listen(clients._session().events)
    original = Session.create_client

    def counted(session: Session, service: str, *given: Any, **options: Any) -> Any:
        made.append(service)
        return original(session, service, *given, **options)

    trust = ssl.create_default_context
    new_trust = patch.object(ssl, "create_default_context", lambda: made.append("certificates") or trust())
    with patch.object(Session, "create_client", counted), new_trust, redirect_stdout(io.StringIO()):
        handler = importlib.import_module(f"lambdas.{verb}").handler
        at_import, collects = list(made), (gc.isenabled(), gc.get_freeze_count() > 0)
        handler(*PREPARE[verb](aws))
    return {"at_import": at_import, "collects": collects, "at_call": made[len(at_import) :], "calls": dict(aws.calls)}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main(sys.argv[1])))
