"""Saved queries of CloudWatch Logs Insights: the first questions of an operator."""

from collections.abc import Mapping

from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from constructs import Construct

from infra.settings import Settings

QUERIES = {
    "one job": "fields @timestamp, service, level, message, fence, lane | filter job_id = 'PUT THE ID HERE' | sort @timestamp",
    "one request": "fields @timestamp, service, level, message | filter request_id = 'PUT THE ID HERE' | sort @timestamp",
    "one task": "fields @timestamp, service, level, message, job_id | filter task_id = 'PUT THE ID HERE' | sort @timestamp",
    "warnings and errors": "filter level in ['WARNING', 'ERROR', 'CRITICAL'] | stats count(*) as n by service, message | sort n desc",
    "ticks": "filter service = 'tick' and message = 'tick' | sort @timestamp desc | limit 60",
    "dispatches with refused messages": "filter service = 'worker' and refused > 0 | sort @timestamp desc",
    "batches left in their queue": "filter service = 'execute' and left > 0 | stats sum(left) by bin(1m)",
    "required executors": "filter service = 'scale' and message = 'scale' | fields @timestamp, required, available | sort @timestamp desc",
}


class Queries(Construct):
    """The saved queries, listed under `punctual/<stage>` in the AWS console."""

    def __init__(self, scope: Construct, id: str, settings: Settings, functions: Mapping[str, lambda_.Function]) -> None:
        super().__init__(scope, id)
        groups = [function.log_group.log_group_name for function in functions.values()]
        for number, (name, query) in enumerate(QUERIES.items()):
            logs.CfnQueryDefinition(
                self, f"Query{number}", name=f"punctual/{settings.stage}/{name}", query_string=query, log_group_names=groups
            )
