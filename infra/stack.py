"""The whole of Punctual on AWS; reads as the picture in docs/architecture.md.

client ─► api ─► jobs ◄─ tick ─► dispatch ─► topic ─► lanes ─► execute
            │      ▲                                    └─► dead letters ─► bury
            ├─► tasks ◄─ plan
            └─► redrive ─► lanes
"""

import aws_cdk as cdk
from constructs import Construct

from infra import bundle
from infra.accounts import Accounts
from infra.alarms import Alarms, Operators
from infra.api import Api
from infra.bury import Bury
from infra.console import Console
from infra.dispatch import Dispatch
from infra.execute import Execute
from infra.function import Foundation
from infra.lanes import Lanes, camel
from infra.plan import Plan
from infra.redrive import Redrive
from infra.settings import Settings
from infra.storage import Storage
from infra.tick import Tick
from scheduler.model import Lane


class PunctualStack(cdk.Stack):
    """One stage."""

    def __init__(self, scope: Construct, settings: Settings) -> None:
        super().__init__(scope, f"punctual-{settings.stage}", termination_protection=settings.protected)
        self.accounts = Accounts(self, "Accounts", settings)
        self.storage = Storage(self, "Storage", settings)
        self.lanes = Lanes(self, "Lanes", settings)
        operators = Operators(self, "Operators", settings)
        foundation = Foundation(settings, bundle.code(settings.host_packages), self.storage, self.lanes, operators)

        self.redrive = Redrive(self, "Redrive", foundation)
        self.api = Api(self, "Api", foundation, self.accounts, self.redrive.function)
        self.dispatch = Dispatch(self, "Dispatch", foundation)
        self.tick = Tick(self, "Tick", foundation, self.dispatch.function)
        self.plan = Plan(self, "Plan", foundation)
        self.execute = {lane: Execute(self, f"Execute{camel(lane)}", foundation, lane, self.api.url(settings)) for lane in Lane}
        self.bury = Bury(self, "Bury", foundation)
        self.console = Console(self, "Console", settings, self.api.http)

        Alarms(self, "Alarms", operators, self.lanes, self.tick.function, self.plan.function, self.api.http)
        for name, value in self._outputs().items():
            cdk.CfnOutput(self, name, value=value)

    def _outputs(self) -> dict[str, str]:
        outputs = {
            "ApiUrl": self.api.http.api_endpoint,
            "ConsoleUrl": self.console.url,
            "ConsoleBucket": self.console.bucket.bucket_name,
            "UserPoolId": self.accounts.pool.user_pool_id,
            "UserPoolClientId": self.accounts.client.user_pool_client_id,
            "JobsTable": self.storage.jobs.table_name,
            "TasksTable": self.storage.tasks.table_name,
            "LedgerTable": self.storage.ledger.table_name,
            "TopicArn": self.lanes.topic.topic_arn,
            "TickScheduleName": self.tick.schedule.schedule_name,
            "PlanScheduleName": self.plan.schedule.schedule_name,
            "TickFunction": self.tick.function.function_name,
            "DispatchFunction": self.dispatch.function.function_name,
            "PlanFunction": self.plan.function.function_name,
            "RedriveFunction": self.redrive.function.function_name,
            "BuryFunction": self.bury.function.function_name,
            "ApiFunction": self.api.function.function_name,
        }
        for lane in Lane:
            outputs[f"{camel(lane)}QueueUrl"] = self.lanes.queues[lane].main.queue_url
            outputs[f"{camel(lane)}DlqUrl"] = self.lanes.queues[lane].dead.queue_url
            outputs[f"Execute{camel(lane)}Function"] = self.execute[lane].function.function_name
        return outputs
