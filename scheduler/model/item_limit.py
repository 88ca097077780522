"""How large an item may be that a request makes or changes. Pure; only an implementation of the ports knows how large an item is.

DynamoDB takes items of up to 400 KB. Every claim, settlement and move must still fit, however large the job: attempts, previews, reasons
and responses add less than the 100 KB between both limits.
"""

from scheduler.model.errors import TooLarge

LIMIT = 307_200  # bytes
NEW_JOB = 1_024  # bytes of the item of a job that has not started, besides its spec: at most


def check(what: str, size: int) -> None:
    """Raise TooLarge if the item of `what` has more than `LIMIT` bytes."""
    if size > LIMIT:
        raise TooLarge(f"{what} needs {size:,} bytes in the table; at most {LIMIT:,} ({LIMIT // 1024} KB) are allowed")
