"""What CloudFormation on MiniStack accepts and drops, done by hand after a deploy. Each line here is a difference to AWS."""

from collections.abc import Mapping

from local.aws import LocalAws

EXPIRY = "expires"  # the attribute in which the jobs table, the ledger and the counters keep their time to live


def aftercare(aws: LocalAws, outputs: Mapping[str, str]) -> None:
    """Bring the deployed stack to what its template says. Idempotent."""
    tables = aws.client("dynamodb")
    for name in filter(None, (outputs.get("JobsTable"), outputs.get("LedgerTable"), outputs.get("CountersTable"))):
        if tables.describe_time_to_live(TableName=name)["TimeToLiveDescription"]["TimeToLiveStatus"] != "ENABLED":
            tables.update_time_to_live(TableName=name, TimeToLiveSpecification={"Enabled": True, "AttributeName": EXPIRY})
        tables.update_continuous_backups(TableName=name, PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": True})
