"""Stores jobs for later, directly in the table and in batches: posting a hundred thousand would take an hour."""

import time
from typing import Any

from local.stack import Stack
from scheduler.model import ids, slots
from scheduler.model.job import Job
from scheduler.model.slots import MINUTE
from scheduler.model.spec import JobSpec
from scheduler.storage.aws import items
from scheduler.storage.aws.batches import chunks

PER_SECOND = 800  # the least rate of a busy machine
BATCH = 25  # puts of one BatchWriteItem
DAY = 24 * 60 * MINUTE
OWNER = "somebody-else"


def store(stack: Stack, count: int) -> None:
    """Store `count` jobs, spread over the day that begins tomorrow at this time."""
    now = time.time_ns() // 1_000_000
    table, name = stack.aws.client("dynamodb"), stack.outputs["JobsTable"]
    for chunk in chunks(list(range(count)), BATCH):
        rest: Any = {name: [{"PutRequest": {"Item": items.encode(_job(now, number, count))}} for number in chunk]}
        while rest:
            rest = table.batch_write_item(RequestItems=rest).get("UnprocessedItems")


def _job(now: int, number: int, count: int) -> Job:
    at = now + DAY + DAY * number // count
    job_id = ids.new(at, number * 7919)
    slot = slots.slot(slots.minute_of(at), job_id, 2)
    return Job(OWNER, job_id, JobSpec("log", {"message": "much later"}), scheduled_at=at, due_at=at, created_at=now, slot=slot)
