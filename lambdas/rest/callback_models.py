"""Request and answer shapes of workers' reports."""

import json
import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from lambdas.rest.models import Request
from lambdas.rest.shapes import Json, Shape, WrittenTime
from scheduler.model.attempt_output import first_headers
from scheduler.model.job import Failure, FailureKind, Job, Progress, Result, Status
from scheduler.model.lifecycle import LONGEST_FAILURE, status
from scheduler.targets import redaction

LONGEST_OUTPUT = 4_096  # characters of an output that are stored, as for every target


class HeartbeatRequest(Request):
    """The progress of the work."""

    progress: Annotated[float, Field(ge=0, le=1)] | None = None
    """From 0 to 1."""
    message: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    """The current step, in words."""

    @property
    def reported(self) -> Progress | None:
        return None if self.progress is None and self.message is None else Progress(self.progress, self.message)


def _header_name(text: str) -> str:
    if not re.fullmatch(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", text):
        raise ValueError("must be a header name: letters, digits and dashes")
    return text


def _header_value(text: str) -> str:
    if re.search(r"[\x00-\x08\x0a-\x1f\x7f]", text):
        raise ValueError("must be one line without control characters")
    return text


HeaderName = Annotated[str, AfterValidator(_header_name)]
HeaderValue = Annotated[str, AfterValidator(_header_value)]


class CompletedResponse(Request):
    """Stored in place of the response with which the target accepted the job."""

    status: Annotated[int, Field(ge=100, le=599)]
    headers: Annotated[dict[HeaderName, HeaderValue], Field(max_length=50)] = Field(default_factory=dict)
    """The first 4,096 characters of names and values are stored."""
    body: Annotated[str, Field(max_length=4_096)] = ""

    @property
    def stored(self) -> Json:
        headers = first_headers((name, redaction.header(name, value)) for name, value in self.headers.items())
        return {**self.model_dump(), "headers": headers}


class CompleteRequest(Request):
    """The result of the work."""

    output: Any = None
    """The output: a string as it is, any other value as JSON. The first 4 KB are stored. Default: the output of the target."""
    response: CompletedResponse | None = None

    @property
    def result(self) -> Result:
        text = self.output if isinstance(self.output, str) or self.output is None else json.dumps(self.output, ensure_ascii=False)
        return Result(text and text[:LONGEST_OUTPUT], None if self.response is None else self.response.stored)


class FailRequest(Request):
    """The reason of the failure."""

    message: Annotated[str, Field(min_length=1, max_length=LONGEST_FAILURE)]
    kind: Literal["retryable", "permanent"] = "retryable"
    """`retryable`: another attempt follows, if one is left. `permanent`: the job fails."""
    retry_after_seconds: Annotated[float, Field(ge=0, le=3_600)] | None = None
    """The wait before the next attempt. Default: by the retry policy of the job."""

    @property
    def result(self) -> Result:
        after = None if self.retry_after_seconds is None else round(self.retry_after_seconds * 1_000)
        return Result(failure=Failure(FailureKind(self.kind), self.message, after))


class HeartbeatShape(Shape):
    lease_until: WrittenTime
    """The end of the lease. The next heartbeat must arrive before this instant."""
    cancel_requested: bool
    """True: the job is to be cancelled. Stop the work and report it. After 30 s the attempt ends in any case."""


class ReportedShape(Shape):
    """The job after the report."""

    id: str
    status: Status
    """After a failure `scheduled` or `queued` if another attempt follows."""

    @classmethod
    def of(cls, job: Job, now: int) -> Json:
        return cls.from_record(job, status=status(job, now))
