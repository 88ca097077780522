"""Translates botocore errors into `scheduler.model.errors`, most specific first. Nothing outside this package sees a botocore error."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError, HTTPClientError
from botocore.exceptions import ConnectionError as NoConnection
from botocore.parsers import ResponseParserError

from scheduler.model.errors import SchedulerError, TooLarge, Unavailable

# Codes of temporary refusals: throttling, contention, a fault at AWS. Batches of statements report some without "Exception".
# The names of the services' own models and of botocore's retry rules; KMS is named differently by each service that calls it.
TRANSIENT = frozenset(
    {
        "BandwidthLimitExceeded",
        "EC2Throttled",
        "EC2ThrottledException",
        "InternalError",
        "InternalErrorException",
        "InternalFailure",
        "InternalServerError",
        "InternalServiceError",
        "KMS.InternalException",  # KMS by way of SQS
        "KMS.ThrottlingException",
        "KMSInternal",
        "KMSInternalException",
        "KMSThrottled",  # DynamoDB
        "KMSThrottledException",
        "KMSThrottling",  # SNS
        "KMSThrottlingException",
        "KmsThrottled",  # SQS by its newer protocol
        "LimitExceededException",
        "OverLimit",
        "PriorRequestNotComplete",
        "ProvisionedThroughputExceeded",
        "ProvisionedThroughputExceededException",
        "ReplicatedWriteConflictException",
        "RequestLimitExceeded",
        "RequestThrottled",
        "RequestThrottledException",
        "RequestTimeout",
        "RequestTimeoutException",
        "ResourceConflictException",  # Lambda: another operation on the function or mapping is in progress
        "ResourceInUseException",  # Lambda: an earlier change of the mapping is in progress
        "ResourceNotReadyException",
        "ServiceUnavailable",
        "ServiceUnavailableException",
        "SlowDown",
        "SnapStartNotReadyException",
        "Throttled",
        "ThrottledException",
        "Throttling",
        "ThrottlingError",
        "ThrottlingException",
        "TooManyRequests",
        "TooManyRequestsException",
        "TransactionConflict",
        "TransactionConflictException",
        "TransactionInProgress",
        "TransactionInProgressException",
    }
)
# Lambda reports these with the status 502, but they last until a person changes a key or a grant.
LASTING = frozenset(
    {
        "EC2AccessDeniedException",
        "KMSAccessDeniedException",
        "KMSDisabledException",
        "KMSInvalidStateException",
        "KMSNotFoundException",
    }
)
UNSPOKEN = ("Signature", "Token")  # AWS's messages for codes with these words may contain the signed request
CONDITION_FAILED = frozenset({"ConditionalCheckFailed", "ConditionalCheckFailedException"})
_TRANSACTION_CANCELLED = "TransactionCanceledException"


@contextmanager
def translated() -> Iterator[None]:
    """Raise the botocore errors of the block as errors of `scheduler.model.errors`."""
    try:
        yield
    except (ClientError, BotoCoreError, ResponseParserError) as error:
        raise translate(error) from error


def translate(error: Exception) -> SchedulerError:
    """The error to raise in place of an error of botocore."""
    if isinstance(error, ClientError):
        return _refusal(error)
    if isinstance(error, NoConnection | HTTPClientError | ResponseParserError):  # no connection, no answer in time, a truncated answer
        return Unavailable()
    return SchedulerError(f"AWS could not be called: {error}")


def condition_failed(error: ClientError) -> bool:
    """Whether a false condition refused the write. For a transaction: one of its conditions, and no temporary refusal."""
    if code(error) == _TRANSACTION_CANCELLED:
        reasons = _reasons(error)
        return bool(reasons & CONDITION_FAILED) and not reasons & TRANSIENT
    return code(error) in CONDITION_FAILED


def is_conflict(error: ClientError) -> bool:
    """Whether the write was refused for a transaction in progress, and for no other temporary reason."""
    if code(error) == _TRANSACTION_CANCELLED:
        return _reasons(error) & TRANSIENT == {"TransactionConflict"}
    return code(error) == "TransactionConflictException"


def code(error: ClientError) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))


def shown(error_code: str, message: str) -> str:
    """The message of an error of AWS, without one that may contain the signed request."""
    return "" if any(word in error_code for word in UNSPOKEN) else message


def refusal(error_code: str, message: str, status: int = 400) -> SchedulerError:
    """The error for an error code of AWS."""
    if error_code in TRANSIENT or ((status >= 500 or status == 429) and error_code not in LASTING):
        return Unavailable()
    if error_code.startswith("ValidationE") and "size" in message.lower():
        return TooLarge("The job is too large to be stored.")
    return SchedulerError(f"AWS refused the call: {error_code}: {message}")


def _refusal(error: ClientError) -> SchedulerError:
    if code(error) == _TRANSACTION_CANCELLED and _reasons(error) & TRANSIENT:
        return Unavailable()
    response: Any = error.response
    status = response.get("ResponseMetadata", {}).get("HTTPStatusCode", 400)
    return refusal(code(error), str(response.get("Error", {}).get("Message", "")), status)


def _reasons(error: ClientError) -> set[str]:
    response: Any = error.response
    return {reason.get("Code", "") for reason in response.get("CancellationReasons", [])}
