"""Orders that a job of type `lambda` expires, with the idempotency of Powertools for AWS Lambda."""

import os
from typing import Any

from aws_lambda_powertools.utilities.idempotency import DynamoDBPersistenceLayer, IdempotencyConfig, idempotent
from aws_lambda_powertools.utilities.typing import LambdaContext

orders = {17: "open"}  # your database
store = DynamoDBPersistenceLayer(table_name=os.environ["CALLS_TABLE"])
config = IdempotencyConfig(
    event_key_jmespath="punctual.idempotency_key",
    raise_on_no_idempotency_key=True,
    expires_after_seconds=90 * 86_400,  # a failed job can be redriven for 90 days; the default is an hour
)


@idempotent(config=config, persistence_store=store)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, str]:
    orders[event["order"]] = "expired"
    return {"state": "expired", "job": event["punctual"]["job_id"]}
