"""Durations as text: `30m`, `1h30m`, `2d`, or in the form of ISO 8601, `PT30M`. An int of milliseconds in the records."""

import re

from scheduler.model.instants import FUTURE_LIMIT

RULE = "must be a duration such as 30m, 1h30m, 2d or PT30M; its units are d, h, m and s, in this order"
LIMIT_RULE = "must not be longer than ten years"

_SECONDS = r"(?:([0-9]{1,12})(?:[.]([0-9]{1,9}))?{s})?"
_SHORT = re.compile(r"(?:([0-9]{1,12})d)?(?:([0-9]{1,12})h)?(?:([0-9]{1,12})m)?" + _SECONDS.replace("{s}", "s"))
_ISO = re.compile(r"P(?:([0-9]{1,12})D)?(?:T(?=[0-9])(?:([0-9]{1,12})H)?(?:([0-9]{1,12})M)?" + _SECONDS.replace("{s}", "S") + ")?")
_UNITS = (86_400_000, 3_600_000, 60_000, 1_000)


def write(length: int) -> str:
    """The shortest text of a duration in ms.

    >>> write(5400000), write(604800000), write(1500)
    ('1h30m', '7d', '1.5s')
    """
    parts = []
    for unit, name in zip(_UNITS[:-1], "dhm", strict=True):
        parts += [f"{length // unit}{name}"] if length >= unit else []
        length %= unit
    return "".join(parts + [f"{length / 1_000:g}s"] * (length > 0 or not parts))


def parse(text: object) -> int:
    """The duration in ms, rounded up. Raises ValueError with the rule for any other value.

    >>> parse("1h30m"), parse("PT0.5S")
    (5400000, 500)
    """
    found = (_SHORT.fullmatch(text) or _ISO.fullmatch(text)) if isinstance(text, str) else None
    if found is None or not any(found.groups()):
        raise ValueError(RULE)
    *whole, fraction = found.groups()
    length = sum(int(number or 0) * unit for number, unit in zip(whole, _UNITS, strict=True))
    length += -(-int((fraction or "").ljust(9, "0")) // 1_000_000)
    if length > FUTURE_LIMIT:
        raise ValueError(LIMIT_RULE)
    return length
