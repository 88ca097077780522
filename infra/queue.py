"""A queue with the settings of the stage: encrypted, and TLS only."""

from aws_cdk import Duration
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra.encryption import Encryption
from infra.settings import Settings


def queue(
    scope: Construct,
    id: str,
    settings: Settings,
    encryption: Encryption,
    key: kms.IKey | None,
    *,
    visibility_timeout: Duration,
    retention_period: Duration | None = None,
    dead_letter_queue: sqs.DeadLetterQueue | None = None,
) -> sqs.Queue:
    """Create a queue. Messages are retained for four days by default. `key`: the customer key of the stage, if it has one."""
    return sqs.Queue(
        scope,
        id,
        encryption=encryption.of_queues,
        encryption_master_key=key,
        enforce_ssl=settings.tls_only,
        removal_policy=settings.removal_policy,
        visibility_timeout=visibility_timeout,
        retention_period=retention_period,
        dead_letter_queue=dead_letter_queue,
    )
