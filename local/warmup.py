"""Starts executors ahead, as provisioned concurrency does on AWS. A batch without messages starts an executor and runs no job."""

import json
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

from infra.parameters import LIVE
from local.aws import LocalAws

READY = 12  # executors of one-time jobs for which packs are made: `Rules.ready_executors` of the local stage
NOTHING = json.dumps({"Records": []})


def warm_up(aws: LocalAws, outputs: Mapping[str, str], **executors: int) -> None:
    """Start this number of executors of each lane, named as in the outputs: `OneTime=10`. Each of the simultaneous calls starts one."""
    functions = [outputs[f"Execute{lane}Function"] for lane, count in executors.items() for _ in range(count)]
    client = aws.client("lambda", max_pool_connections=max(10, len(functions)), read_timeout=120, retries={"max_attempts": 0})
    with ThreadPoolExecutor(len(functions)) as pool:
        for answer in pool.map(lambda name: client.invoke(FunctionName=name, Qualifier=LIVE, Payload=NOTHING), functions):
            answer["Payload"].read()
