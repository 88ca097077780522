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

# Of the access log: no function sees a request whose token API Gateway refuses.
REFUSED = "filter status = 401 | stats count(*) as n, max(@timestamp) as latest by refused, ip, route | sort n desc"


class Queries(Construct):
    """The saved queries, listed under `punctual/<stage>` in the AWS console."""

    def __init__(
        self, scope: Construct, id: str, settings: Settings, functions: Mapping[str, lambda_.Function], access: logs.LogGroup | None
    ) -> None:
        """`functions` are read by all queries but one. `access`: the access log of the API, which that one reads."""
        super().__init__(scope, id)
        self._prefix = f"punctual/{settings.stage}"
        groups = [function.log_group for function in functions.values()]
        for number, (name, query) in enumerate(QUERIES.items()):
            self._query(f"Query{number}", name, query, *groups)
        if access is not None:
            self._query("Refused", "refused tokens", REFUSED, access)

    def _query(self, id: str, name: str, query: str, *groups: logs.ILogGroup) -> None:
        found = [group.log_group_name for group in groups]
        logs.CfnQueryDefinition(self, id, name=f"{self._prefix}/{name}", query_string=query, log_group_names=found)
