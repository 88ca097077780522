"""The largest item that a request may create or change. Pure; only an implementation of the ports can tell the size of an item.

DynamoDB accepts items of up to 400 KB. Every claim, settlement and move of the largest job must still fit: attempts, previews, reasons
and responses add less than the 100 KB between both limits.
"""

from scheduler.model.errors import TooLarge

LIMIT = 307_200  # bytes
NEW_JOB = 1_024  # bytes of the item of a job that has not started, besides its spec: at most


def check(what: str, size: int) -> None:
    """Raise TooLarge if the item of `what` has more than `LIMIT` bytes."""
    if size > LIMIT:
        raise TooLarge(f"{what} needs {size:,} bytes in the table; at most {LIMIT:,} ({LIMIT // 1024} KB) are allowed")
