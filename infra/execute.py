"""execute: claims, runs and settles the jobs of one lane. Each lane has its own function, so a failing one does not stop the others."""

from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from infra import targets
from infra.function import JOB_RESOURCES, Foundation, Function, actions_of, allow, change_jobs, read_callback_secret, step_out
from infra.lanes import EXECUTE_TIMEOUT
from scheduler.model.job import Lane
from scheduler.model.rules import BATCH


class Execute(Construct):
    """The function of one lane, with the lane's queue as event source."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        foundation: Foundation,
        lane: Lane,
        api_url: str,
        fetch: lambda_.Alias,
        fetch_private: lambda_.Alias | None,
    ) -> None:
        super().__init__(scope, id)
        settings, storage, lanes = foundation.settings, foundation.storage, foundation.lanes
        queue = lanes.queues[lane]
        grants = [
            change_jobs(foundation),  # its reads are also the last check before the instant
            *step_out(foundation),  # also the heads of ordering queues, run locks, named targets and their limits
            allow(storage.tasks.table_arn, "dynamodb:PartiQLInsert", "dynamodb:PartiQLUpdate"),  # run locks, heads and ordering entries
            allow(storage.tasks.table_arn, "dynamodb:UpdateItem"),  # the usage of limits, and users who join a target queue
            allow(storage.tasks.table_arn, "dynamodb:GetItem"),  # whether a call whose answer was lost took a head
            allow(storage.ledger.table_arn, "dynamodb:GetItem"),  # the shards that it may use
            allow(storage.ledger.table_arn, "dynamodb:PutItem"),  # its latency, which feeds the lead; a breaker that opens
            allow(storage.ledger.table_arn, "dynamodb:DeleteItem"),  # ... and closes
            allow(storage.ledger.table_arn, "dynamodb:UpdateItem"),  # the executors that the long jobs of a user keep busy
            allow(storage.ledger.table_arn, "dynamodb:Query"),  # paused lanes and open breakers
            allow(storage.users.table_arn, "dynamodb:GetItem"),  # which users are disabled
            allow(storage.users.table_arn, "dynamodb:BatchGetItem"),  # the weights of users with long jobs
            allow(lanes.arns, "sqs:SendMessage"),  # retries, and jobs that are enqueued again
            allow(lanes.work.queue_arn, "sqs:SendMessage"),  # the work of the overflow, in which many retries wait; release steps
            allow(  # the visibility of a message is the lease of its job
                queue.queue_arn, "sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes", "sqs:ChangeMessageVisibility"
            ),
            allow(storage.outputs.arn_for_objects("*"), "s3:PutObject"),  # outputs that are too large for an item
            read_callback_secret(foundation),  # for the tokens of workers that report
            allow(targets.secrets(self, settings), "secretsmanager:GetSecretValue"),  # secrets that payloads name
            *(allow(each.function_arn, "lambda:InvokeFunction") for each in (fetch, fetch_private) if each is not None),
        ]
        self.actions = actions_of(
            [*grants, *foundation.encryption.grants], settings
        )  # the policy of `allowed_actions` leaves it these on resources of the stage
        self.function = Function(
            self,
            "execute",
            foundation,
            foundation.environment(
                *JOB_RESOURCES,
                "ledger_table",
                "users_table",
                "work_queue_url",
                "outputs_bucket",
                "callback_secret",
                reach=settings.reach,
                lane=str(lane),
                api_url=api_url,
                fetch_function=fetch.function_arn if settings.http_apart else "",
                secret_prefix=settings.secret_prefix,
                **({} if fetch_private is None else {"fetch_private_function": fetch_private.function_arn}),
            ),
            grants=[*grants, *targets.grants(self, settings, storage.users.table_arn), *targets.assume(settings), *targets.denials(self)],
            timeout=EXECUTE_TIMEOUT,
            loops=True,  # retries, and jobs that waited for this job: ends, since attempts and waiting jobs are counted
        )
        targets.acknowledge(self, settings)
        storage.acknowledge_outputs(self)
        self.mapping = lambda_.EventSourceMapping(
            self,
            "Lane",
            target=self.function.live,
            event_source_arn=queue.queue_arn,
            batch_size=BATCH[lane],
            max_concurrency=settings.concurrency[lane],  # the function `provision` replaces it while it keeps pollers ready
            report_batch_item_failures=True,
        )
