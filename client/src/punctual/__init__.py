"""The client of Punctual, a serverless job scheduler for AWS.

`Punctual` is the client, `AsyncPunctual` the same for asyncio. Records and exceptions are in this package, too.
"""

from punctual import errors, records
from punctual._async.client import AsyncPunctual
from punctual._sync.client import Punctual
from punctual.bodies import JobRequest
from punctual.errors import (
    ApiError,
    CallbackEnded,
    Conflict,
    FieldError,
    InvalidArgument,
    InvalidRequest,
    InvalidSignature,
    NoAnswer,
    NoRoleToken,
    NotAllowed,
    NotAuthenticated,
    NotConfigured,
    NotFound,
    PunctualError,
    QuotaExceeded,
    Throttled,
    Unavailable,
    UnexpectedAnswer,
    WaitTimeout,
)
from punctual.records import (
    Attempt,
    BatchResult,
    DeadLetterGroup,
    FieldChange,
    Forecast,
    Job,
    NextRun,
    Operation,
    Problem,
    PutResult,
    Redrive,
    Schedule,
    StatusReport,
    Target,
    Task,
    User,
)
from punctual.signature import verify_signature
from punctual.worker import Worker

__version__ = "0.2.0"
__all__ = [
    "ApiError",
    "AsyncPunctual",
    "Attempt",
    "BatchResult",
    "CallbackEnded",
    "Conflict",
    "DeadLetterGroup",
    "FieldChange",
    "FieldError",
    "Forecast",
    "InvalidArgument",
    "InvalidRequest",
    "InvalidSignature",
    "Job",
    "JobRequest",
    "NextRun",
    "NoAnswer",
    "NoRoleToken",
    "NotAllowed",
    "NotAuthenticated",
    "NotConfigured",
    "NotFound",
    "Operation",
    "Problem",
    "Punctual",
    "PunctualError",
    "PutResult",
    "QuotaExceeded",
    "Redrive",
    "Schedule",
    "StatusReport",
    "Target",
    "Task",
    "Throttled",
    "Unavailable",
    "UnexpectedAnswer",
    "User",
    "WaitTimeout",
    "Worker",
    "__version__",
    "errors",
    "records",
    "verify_signature",
]
