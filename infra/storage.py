"""The tables: `jobs` and `tasks` with their sparse indexes, the `ledger` of minutes, and `users`."""

from aws_cdk import aws_dynamodb as dynamodb
from constructs import Construct

from infra.settings import Settings

DUE_INDEX = "due"
FAILURES_INDEX = "failures"
MOVED_INDEX = "moved"
BY_TASK_INDEX = "by_task"
REPLENISH_INDEX = "replenish"


def _text(name: str) -> dynamodb.Attribute:
    return dynamodb.Attribute(name=name, type=dynamodb.AttributeType.STRING)


def _number(name: str) -> dynamodb.Attribute:
    return dynamodb.Attribute(name=name, type=dynamodb.AttributeType.NUMBER)


class Storage(Construct):
    """On demand, with point-in-time recovery; items leave by TTL (`expires`, epoch seconds)."""

    def __init__(self, scope: Construct, id: str, settings: Settings) -> None:
        super().__init__(scope, id)
        self.jobs = self._table(
            "Jobs",
            settings,
            stream=dynamodb.StreamViewType.NEW_AND_OLD_IMAGES,
            indexes=[
                dynamodb.GlobalSecondaryIndexPropsV2(  # exactly the jobs that are not finished, by the minute to look at them next
                    index_name=DUE_INDEX,
                    partition_key=_text("slot"),
                    sort_key=_number("due_at"),
                    projection_type=dynamodb.ProjectionType.INCLUDE,
                    non_key_attributes=["lane", "fence"],  # all that dispatch needs, and nothing that a claim changes
                ),
                dynamodb.GlobalSecondaryIndexPropsV2(  # failed and killed jobs of one owner, whatever the number of good ones
                    index_name=FAILURES_INDEX,
                    partition_key=_text("failed_owner"),
                    sort_key=_text("position"),
                    projection_type=dynamodb.ProjectionType.INCLUDE,
                    non_key_attributes=["type", "task", "fingerprint", "failed_at", "killed_at"],  # to count them by error, and to choose
                ),
                dynamodb.GlobalSecondaryIndexPropsV2(  # jobs that were rescheduled: a list by time does not find them by their ids
                    index_name=MOVED_INDEX,
                    partition_key=_text("moved_owner"),
                    sort_key=_text("position"),
                    projection_type=dynamodb.ProjectionType.ALL,  # they are few, and a page of a list is one query of each partition
                ),
                dynamodb.GlobalSecondaryIndexPropsV2(  # the runs of one task
                    index_name=BY_TASK_INDEX,
                    partition_key=_text("task"),
                    sort_key=_text("sk"),
                    projection_type=dynamodb.ProjectionType.KEYS_ONLY,
                ),
            ],
        )
        self.tasks = self._table(
            "Tasks",
            settings,
            indexes=[
                dynamodb.GlobalSecondaryIndexPropsV2(  # tasks whose next runs must be stored, by the minute of it
                    index_name=REPLENISH_INDEX,
                    partition_key=_text("replenish"),
                    sort_key=_text("sk"),
                    projection_type=dynamodb.ProjectionType.KEYS_ONLY,
                ),
            ],
        )
        self.ledger = self._table("Ledger", settings)
        self.users = self._table("Users", settings)
        self.due_index_arn = f"{self.jobs.table_arn}/index/{DUE_INDEX}"
        self.failures_index_arn = f"{self.jobs.table_arn}/index/{FAILURES_INDEX}"
        self.replenish_index_arn = f"{self.tasks.table_arn}/index/{REPLENISH_INDEX}"
        self.list_index_arns = [f"{self.jobs.table_arn}/index/{name}" for name in (FAILURES_INDEX, MOVED_INDEX, BY_TASK_INDEX)]

    def _table(
        self,
        id: str,
        settings: Settings,
        *,
        stream: dynamodb.StreamViewType | None = None,
        indexes: list[dynamodb.GlobalSecondaryIndexPropsV2] | None = None,
    ) -> dynamodb.TableV2:
        # TableV2, a global table of one region: a standby region joins later without a new table.
        return dynamodb.TableV2(
            self,
            id,
            partition_key=_text("pk"),
            sort_key=_text("sk"),
            billing=dynamodb.Billing.on_demand(),
            dynamo_stream=stream,
            global_secondary_indexes=indexes,
            time_to_live_attribute="expires",
            point_in_time_recovery_specification=dynamodb.PointInTimeRecoverySpecification(point_in_time_recovery_enabled=True),
            deletion_protection=settings.protected,
            removal_policy=settings.removal_policy,
        )
