"""Starts executors ahead, as provisioned concurrency does on AWS. A batch without messages starts an executor and runs no job."""

import json
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

from botocore import exceptions

from infra.parameters import LIVE
from local.aws import LocalAws
from local.busy import load
from local.steps import console

READY = 12  # executors of one-time jobs for which packs are made: `Rules.ready_executors` of the local stage
NOTHING = json.dumps({"Records": []})


def warm_up(aws: LocalAws, outputs: Mapping[str, str], **executors: int) -> None:
    """Start this number of executors of each lane, named as in the outputs: `OneTime=10`. Each of the simultaneous calls starts one.

    An executor that does not start in time is left out, and a line says so: it starts with the first jobs.
    """
    functions = [outputs[f"Execute{lane}Function"] for lane, count in executors.items() for _ in range(count)]
    client = aws.client("lambda", max_pool_connections=max(10, len(functions)), read_timeout=120, retries={"max_attempts": 0})

    def start(name: str) -> bool:
        try:
            client.invoke(FunctionName=name, Qualifier=LIVE, Payload=NOTHING)["Payload"].read()
        except (exceptions.ReadTimeoutError, exceptions.ConnectionClosedError, client.exceptions.TooManyRequestsException):
            return False
        return True

    with ThreadPoolExecutor(len(functions)) as pool:
        missing = list(pool.map(start, functions)).count(False)
    if missing:
        console.print(
            f"  [yellow]![/] {missing} of {len(functions)} executors have not started yet: this machine is busy ({load()}). "
            "The first jobs may start late."
        )
