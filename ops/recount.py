"""Count all jobs and tasks of a stage on AWS from scratch and correct its counters: `make recount STAGE=dev`. Reads both tables
completely."""

import argparse
import time

from local.failure import exit_code
from ops.cloud import reported, stage_of
from scheduler.insight.recount import recount
from scheduler.storage.aws import everything
from scheduler.storage.aws.counters import DynamoCounters


def main() -> int:
    parser = argparse.ArgumentParser(prog="ops.recount", description="Correct the counters of a stage deployed on AWS.")
    parser.add_argument("--stage", required=True)
    options = parser.parse_args()
    stage = stage_of(options.stage)
    with reported():
        outputs, client = stage.outputs(), stage.client("dynamodb")
        retention = stage.settings.rules.retention
        result = recount(
            everything.jobs(client, outputs["JobsTable"]),
            everything.tasks(client, outputs["TasksTable"]),
            round(time.time() * 1_000),
            min(retention.days, retention.failure_days),
            counters=DynamoCounters(client, outputs["CountersTable"]),
        )
    print(f"Counted {result.jobs} jobs and {result.tasks} tasks; corrected {result.corrected} rows of counters.")
    return 0


if __name__ == "__main__":
    raise SystemExit(exit_code(main))
