"""The errors of Punctual.

    SchedulerError
    ├── Invalid            the caller's input breaks a rule            → 400
    │   └── TooLarge       the input breaks a size rule                → 413
    ├── Unauthorized       no valid token                              → 401
    ├── Forbidden          the caller may not do this                  → 403
    ├── NotFound           no such object, or not the caller's         → 404
    ├── Gone               the object is no longer stored              → 410
    ├── Conflict           the object's state forbids the change       → 409
    ├── TooMany            the caller exceeds a rate or a quota        → 429
    ├── Unavailable        AWS refused, or its answer was lost: the    → 503
    │                      change may or may not have been applied
    ├── Unreadable         another version stored the object; it is    → 503
    │                      unchanged, and this version cannot read it
    └── IllegalTransition  a bug: the state machine has no such arrow  → 500

The docstring of a class is its default message. `details` is a list of `{"field", "rule"}` records; only invalid input has any.
"""


class SchedulerError(Exception):
    """The server failed unexpectedly."""

    code = "internal_error"

    def __init__(self, message: str | None = None, *, details: list[dict[str, str]] | None = None) -> None:
        super().__init__(message or (type(self).__doc__ or "").strip())
        self.details = details or []

    @property
    def message(self) -> str:
        return str(self.args[0])


class Invalid(SchedulerError):
    """The request breaks a rule."""

    code = "validation_failed"

    @classmethod
    def field(cls, name: str, rule: str) -> "Invalid":
        """The error for one field: `name` is its path in the request, `rule` the rule it breaks."""
        return cls(f"{name}: {rule}", details=[{"field": name, "rule": rule}])


class TooLarge(Invalid):
    """The request is too large."""

    code = "payload_too_large"


class Unauthorized(SchedulerError):
    """Sign in first: the token is missing, expired or wrong."""

    code = "unauthorized"


class Forbidden(SchedulerError):
    """Only administrators may do this."""

    code = "forbidden"


class NotFound(SchedulerError):
    """There is no such object."""

    code = "not_found"


class Gone(SchedulerError):
    """The object is no longer stored."""

    code = "gone"


class Conflict(SchedulerError):
    """The object's state does not allow this."""

    code = "conflict"


class TooMany(SchedulerError):
    """Too many requests. Wait before you try again."""

    code = "too_many_requests"

    def __init__(self, message: str | None = None, retry_after_ms: int = 1_000) -> None:
        super().__init__(message)
        self.retry_after_ms = retry_after_ms


class Unavailable(SchedulerError):
    """A required AWS service is unavailable. The change may or may not have been applied. Try again."""

    code = "unavailable"


class Unreadable(SchedulerError):
    """Another version of the scheduler stored this object. It is unchanged, and becomes readable again when the scheduler is updated."""

    code = "unreadable"


class IllegalTransition(SchedulerError):
    """The state machine has no such transition."""

    code = "illegal_transition"
