"""What CloudFormation on MiniStack accepts and drops, done by hand after a deploy. Each line here is a difference to AWS."""

from collections.abc import Mapping

from local.aws import LocalAws

EXPIRING = ("JobsTable", "LedgerTable", "UsersTable", "AuditTable", "CountersTable", "NoticesTable")
EXPIRY = "expires"  # the attribute in which these tables keep their time to live


def aftercare(aws: LocalAws, outputs: Mapping[str, str]) -> None:
    """Bring the deployed stack to what its template says. Idempotent."""
    tables = aws.client("dynamodb")
    for name in filter(None, map(outputs.get, EXPIRING)):
        if tables.describe_time_to_live(TableName=name)["TimeToLiveDescription"]["TimeToLiveStatus"] != "ENABLED":
            tables.update_time_to_live(TableName=name, TimeToLiveSpecification={"Enabled": True, "AttributeName": EXPIRY})
        tables.update_continuous_backups(TableName=name, PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": True})
