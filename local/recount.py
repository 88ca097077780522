"""Count all jobs and tasks of a stage on AWS from scratch and correct its counters: `make recount STAGE=dev`. Reads both tables
completely."""

import argparse
import time

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from infra.settings import settings_for
from local.aws import stack_outputs
from local.failure import Trouble, exit_code
from scheduler.insight.recount import recount
from scheduler.storage.aws import clients, everything
from scheduler.storage.aws.counters import DynamoCounters


def main() -> int:
    parser = argparse.ArgumentParser(prog="local.recount", description="Correct the counters of a stage deployed on AWS.")
    parser.add_argument("--stage", required=True)
    options = parser.parse_args()
    try:
        settings = settings_for(options.stage)
        outputs = stack_outputs(boto3.Session().client("cloudformation"), f"punctual-{options.stage}")
        if not outputs:
            raise Trouble(f"The stack punctual-{options.stage} is not deployed in this account.")
        client = clients.dynamodb()
        result = recount(
            everything.jobs(client, outputs["JobsTable"]),
            everything.tasks(client, outputs["TasksTable"]),
            round(time.time() * 1_000),
            min(settings.retention_days, settings.failure_retention_days),
            counters=DynamoCounters(client, outputs["CountersTable"]),
        )
    except ValueError as error:
        raise Trouble(str(error)) from error
    except (BotoCoreError, ClientError) as error:
        raise Trouble(f"AWS refused: {error}") from error
    print(f"Counted {result.jobs} jobs and {result.tasks} tasks; corrected {result.corrected} rows of counters.")
    return 0


if __name__ == "__main__":
    raise SystemExit(exit_code(main))
