"""Messages of SQS with DelaySeconds on the local AWS, and a process per core that polls for them.

SQS delays by whole seconds, rounded up here so that no job is early, and by 15 minutes at most. Its settings come from the environment of
the AWS client.
"""

import json
import math
import os
import time
from collections.abc import Mapping
from typing import Any

import boto3
from botocore.config import Config

from compare.drivers import lib

QUEUE = "compare"
BATCH = 10  # messages of one call
LONGEST_S = 900
cores = os.cpu_count() or 1


def _sqs() -> Any:
    return boto3.client("sqs", config=Config(proxies={}, read_timeout=60))


def describe() -> Mapping[str, Any]:
    return {
        "versions": lib.versions("boto3", "ministack"),
        "settings": f"{cores} processes, long polls of 20 s, {BATCH} messages a call; DelaySeconds rounded up",
        "workers": [["python", "-m", "compare.drivers.sqs_delay", "worker"]] * cores,
        "per_second": 300,
        "ready_s": 3,
    }


def init() -> None:
    _sqs().create_queue(QueueName=QUEUE, Attributes={"VisibilityTimeout": "300"})


def worker() -> None:
    sqs = _sqs()
    url = sqs.get_queue_url(QueueName=QUEUE)["QueueUrl"]
    while True:
        found = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=BATCH, WaitTimeSeconds=20).get("Messages", [])
        for message in found:
            lib.run(*json.loads(message["Body"]))
        if found:
            entries = [{"Id": str(number), "ReceiptHandle": each["ReceiptHandle"]} for number, each in enumerate(found)]
            sqs.delete_message_batch(QueueUrl=url, Entries=entries)


def produce(order: lib.Order) -> Mapping[str, Any]:
    sqs = _sqs()
    url = sqs.get_queue_url(QueueName=QUEUE)["QueueUrl"]
    with lib.Creating(f"send_message_batch(DelaySeconds), {BATCH} a call") as done:
        for call in lib.calls(order, BATCH):
            now = time.time()
            entries = [
                {
                    "Id": str(number),
                    "MessageBody": json.dumps([name, order.url]),
                    "DelaySeconds": min(max(math.ceil(at - now), 0), LONGEST_S),
                }
                for number, (name, at) in enumerate(call)
            ]
            sqs.send_message_batch(QueueUrl=url, Entries=entries)
    return done.answer


if __name__ == "__main__":
    lib.main(describe, produce, init=init, worker=worker)
