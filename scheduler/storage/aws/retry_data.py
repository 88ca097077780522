"""Refusals of any operation, classified by botocore's own retry rules and the errors that its models mark as retryable."""

from types import SimpleNamespace
from typing import Any

from botocore.exceptions import (
    ClientError,
    ConnectTimeoutError,
    EndpointConnectionError,
    HTTPClientError,
    IncompleteReadError,
    ProxyConnectionError,
    SSLError,
)
from botocore.exceptions import ConnectionError as NoConnection
from botocore.model import ServiceModel
from botocore.parsers import ResponseParserError
from botocore.retries.standard import ModeledRetryErrorDetector, RetryContext, ThrottledRetryableChecker, TransientRetryableChecker

from scheduler.storage.aws import errors
from scheduler.targets.calls import Refused

THROTTLED_STATUSES = (429, 509)  # botocore/data/_retry.json: too_many_requests, limit_exceeded
UNSENT = (EndpointConnectionError, ConnectTimeoutError, ProxyConnectionError, SSLError)  # the request did not reach the service


def refused(error: Exception, model: ServiceModel) -> Refused:
    """The refusal that an error of a call means. `model`: of the service that was called."""
    if not isinstance(error, ClientError):
        passes = isinstance(error, NoConnection | HTTPClientError | IncompleteReadError | ResponseParserError)
        return Refused(type(error).__name__, str(error), retryable=passes, unclear=passes and not isinstance(error, UNSENT))
    response: Any = error.response
    status = response.get("ResponseMetadata", {}).get("HTTPStatusCode", 400)
    http: Any = SimpleNamespace(status_code=status)
    context = RetryContext(1, model.operation_model(error.operation_name), response, http)
    modelled = ModeledRetryErrorDetector()
    marked = modelled.detect_error_type(context)
    throttled = status in THROTTLED_STATUSES or marked == modelled.THROTTLING_ERROR or ThrottledRetryableChecker().is_retryable(context)
    retryable = throttled or marked is not None or TransientRetryableChecker().is_retryable(context)
    code, message = errors.code(error), str(response.get("Error", {}).get("Message", ""))
    return Refused(code, errors.shown(code, message), retryable=retryable, throttled=throttled)
