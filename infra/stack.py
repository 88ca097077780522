"""All resources of Punctual on AWS except the console (`console.py`), in the order of the picture in docs/internals/architecture.md.

client ─► api ─► jobs ◄─ worker ───► topic ─► lanes ─► execute ─► fetch, fetch-private (an option)
            │      ▲         ▲                  └─► dead letters ─► bury
            │      │   tick ─► work queue
            └─► tasks ◄─ plan          jobs ─► project ─► notify ─► receivers
stacks of users ─► declare ─► api (an option)
senders ─► intake queues ─► intake ─► jobs (an option)
                                       jobs ─► announce ─► event bus, collector of spans (options)
ends of containers and executions ─► conclude ─► jobs (with allowed targets of that kind)
                                         counters ─► scale ─► CloudWatch ─► provision ─► lanes
"""

import json

import aws_cdk as cdk
from aws_cdk import aws_ssm as ssm
from constructs import Construct

from infra import bundle
from infra import intake as intake_
from infra.accounts import Accounts
from infra.alarms import AlarmClass, Alarms, Operators
from infra.allowed_actions import AllowedActions
from infra.announce import Announce
from infra.api import Api
from infra.archive import Archive
from infra.bury import Bury
from infra.conclude import Conclude, patterns
from infra.dashboard import Dashboard
from infra.declare import Declare
from infra.encryption import Encryption
from infra.execute import Execute
from infra.fetch import Fetch
from infra.function import Foundation, deployment
from infra.lanes import Lanes, camel
from infra.notify import Notify
from infra.options import Events
from infra.parameters import OPTIONS, parameter
from infra.plan import Plan
from infra.project import Project
from infra.provision import Provision
from infra.queries import Queries
from infra.scale import Scale
from infra.settings import Settings
from infra.storage import Storage
from infra.tick import Tick
from infra.worker import Worker
from scheduler.model.job import Lane


class PunctualStack(cdk.Stack):
    """The stack of one stage."""

    def __init__(self, scope: Construct, settings: Settings) -> None:
        super().__init__(scope, settings.stack, termination_protection=settings.protected)
        encryption = Encryption(self, "Encryption", settings)
        self.accounts = Accounts(self, "Accounts", settings, encryption)
        self.storage = Storage(self, "Storage", settings, encryption)
        self.lanes = Lanes(self, "Lanes", settings, encryption)
        archive = Archive(self, "Archive", settings, encryption) if settings.archive else None
        operators = Operators(self, "Operators", settings)
        code = bundle.code(self, host_packages=settings.host_packages, bytecode_optional=settings.bytecode_optional)
        foundation = Foundation(settings, code, self.storage, self.lanes, operators, encryption, deployment(self, code, settings))

        self.notify = Notify(self, "Notify", foundation)
        self.api = Api(self, "Api", foundation, self.accounts, self.notify.queue)
        self.tick = Tick(self, "Tick", foundation)
        self.plan = Plan(self, "Plan", foundation)
        self.fetch = Fetch(self, "Fetch", foundation)
        url, network = self.api.url(settings), settings.network
        self.notify.add_function(foundation, self.fetch.function.live, api_url=url)
        self.worker = Worker(self, "Dispatch", foundation, self.notify.queue, api_url=url)
        self.fetch_private = Fetch(self, "FetchPrivate", foundation, network=network, api_url=url) if network else None
        fetch = (self.fetch.function.live, self.fetch_private.function.live if self.fetch_private else None)
        self.execute = {lane: Execute(self, f"Execute{camel(lane)}", foundation, lane, url, *fetch) for lane in Lane}
        if settings.allowed_actions:
            own = [self.accounts.pool.user_pool_arn, f"arn:{cdk.Aws.PARTITION}:apigateway:*::/apis/{self.api.http.api_id}*"]
            own += [] if encryption.key is None else [encryption.key.key_arn]
            secret = self.storage.callback_secret_arn
            actions = AllowedActions(self, "Actions", settings, [*self.execute.values()], secret=secret, own=own)
            for execute in self.execute.values():  # until then it lacks the rights for what its list allows
                execute.function.live.node.add_dependency(actions)
        for execute in self.execute.values():  # until then the worker would take latencies of the executors before for theirs
            execute.function.live.node.add_dependency(self.worker.function.live)
        self.bury = Bury(self, "Bury", foundation)
        self.project = Project(self, "Project", foundation, self.notify.queue, archive)
        is_announced = settings.events is not Events.NONE or settings.traces is not None
        self.announce = Announce(self, "Announce", foundation) if is_announced else None
        self.conclude = Conclude(self, "Conclude", foundation) if patterns(settings) else None
        self.intake = intake_.Intake(self, "Intake", foundation) if settings.intake else None
        self.declare = Declare(self, "Declare", foundation, self.api.function, url) if settings.templates else None
        scaled = {lane: self.execute[lane].mapping for lane in settings.rules.most_pollers}
        self.scale = Scale(self, "Scale", foundation, scaled)

        functions = {
            verb: getattr(self, verb).function for verb in ("api", "tick", "worker", "plan", "fetch", "project", "notify", "scale", "bury")
        }
        functions |= {f"execute {lane}": execute.function for lane, execute in self.execute.items()}
        if self.fetch_private is not None:
            functions["fetch-private"] = self.fetch_private.function
        if self.announce is not None:
            functions["announce"] = self.announce.function
        if self.conclude is not None:
            functions["conclude"] = self.conclude.function
        if self.intake is not None:
            functions["intake"] = self.intake.function
        if self.declare is not None:
            functions["declare"] = self.declare.function
        alarms = Alarms(self, "Alarms", operators, self.lanes, self.api.http, self.storage, functions, settings)
        if scaled:
            provision = Provision(self, "Provision", foundation, scaled)
            operators.call(provision.function.live, *(alarms.ages[lane] for lane in scaled))
            functions["provision"] = provision.function
        executors = settings.deployed.executors
        Dashboard(self, "Dashboard", operators, self.lanes, self.storage, self.api.http, functions, executors)
        if settings.saved_queries:
            Queries(self, "Queries", settings, functions, self.api.access_logs)
        chosen = json.dumps(settings.options)
        ssm.StringParameter(self, "Options", parameter_name=parameter(settings.stage, OPTIONS), string_value=chosen)
        for name, value in self._outputs(operators).items():
            cdk.CfnOutput(self, name, value=value)

    def _outputs(self, operators: Operators) -> dict[str, str]:
        outputs = {
            "ApiId": self.api.http.api_id,
            "ApiUrl": self.api.http.api_endpoint,
            "UserPoolId": self.accounts.pool.user_pool_id,
            "UserPoolClientId": self.accounts.client.user_pool_client_id,
            "JobsTable": self.storage.jobs.table_name,
            "TasksTable": self.storage.tasks.table_name,
            "UsersTable": self.storage.users.table_name,
            "LedgerTable": self.storage.ledger.table_name,
            "AuditTable": self.storage.audit.table_name,
            "CountersTable": self.storage.counters.table_name,
            "NoticesTable": self.storage.notices.table_name,
            "NoticesQueueUrl": self.notify.queue.queue_url,
            "NoticesDlqUrl": self.notify.dead.queue_url,
            "NotifyFunction": self.notify.function.function_name,
            "TopicArn": self.lanes.topic.topic_arn,
            "PagesTopicArn": operators.topics[AlarmClass.PAGE].topic_arn,
            "TicketsTopicArn": operators.topics[AlarmClass.TICKET].topic_arn,
            "DlqUrl": self.lanes.dead.queue_url,
            "TickScheduleName": self.tick.schedule.schedule_name,
            "PlanScheduleName": self.plan.schedule.schedule_name,
            "TickFunction": self.tick.function.function_name,
            "DispatchFunction": self.worker.function.function_name,
            "PlanFunction": self.plan.function.function_name,
            "WorkQueueUrl": self.lanes.work.queue_url,
            "ProjectFunction": self.project.function.function_name,
            "ScaleFunction": self.scale.function.function_name,
            "ScaleScheduleName": self.scale.schedule.schedule_name,
            "BuryFunction": self.bury.function.function_name,
            "ApiFunction": self.api.function.function_name,
            "FetchFunction": self.fetch.function.function_name,
        }
        if self.fetch_private is not None:
            outputs["FetchPrivateFunction"] = self.fetch_private.function.function_name
        if self.announce is not None and self.announce.bus is not None:
            outputs["EventBusName"] = self.announce.bus.event_bus_name
        if self.announce is not None and self.announce.lost is not None:
            outputs["EventsLostQueueUrl"] = self.announce.lost.queue_url
        if self.api.accounts:
            outputs["AwsAccounts"] = " ".join(self.api.accounts)  # whose roles may use the API
        if self.intake is not None:
            outputs["IntakeFunction"] = self.intake.function.function_name
            outputs["IntakeDlqUrl"] = self.intake.dead.queue_url
            for name, queue in self.intake.queues.items():
                outputs[f"Intake{intake_.camel(name)}QueueUrl"] = queue.queue_url
                outputs[f"Intake{intake_.camel(name)}QueueArn"] = queue.queue_arn
        if self.declare is not None:
            outputs["DeclareFunction"] = self.declare.function.function_name
        for lane in Lane:
            outputs[f"{camel(lane)}QueueUrl"] = self.lanes.queues[lane].queue_url
            outputs[f"Execute{camel(lane)}Function"] = self.execute[lane].function.function_name
        return outputs
