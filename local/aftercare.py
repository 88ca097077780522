"""Settings that CloudFormation on MiniStack accepts and then ignores, applied after a deploy. AWS does not need this file."""

from collections.abc import Mapping

from local.aws import LocalAws

EXPIRING = ("JobsTable", "LedgerTable", "UsersTable", "AuditTable", "CountersTable", "NoticesTable")
EXPIRY = "expires"  # the time-to-live attribute of these tables


def aftercare(aws: LocalAws, outputs: Mapping[str, str]) -> None:
    """Apply the settings of the template that the deploy left out. Idempotent."""
    tables = aws.client("dynamodb")
    for name in filter(None, map(outputs.get, EXPIRING)):
        if tables.describe_time_to_live(TableName=name)["TimeToLiveDescription"]["TimeToLiveStatus"] != "ENABLED":
            tables.update_time_to_live(TableName=name, TimeToLiveSpecification={"Enabled": True, "AttributeName": EXPIRY})
        tables.update_continuous_backups(TableName=name, PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": True})
