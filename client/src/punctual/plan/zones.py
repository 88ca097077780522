"""Time zones of the package `tzdata`: the names that the API accepts, with the same rules on every machine."""

from __future__ import annotations

from datetime import timezone, tzinfo
from functools import lru_cache
from importlib import resources
from zoneinfo import ZoneInfo


def zone(name: str) -> tzinfo:
    """The zone of this name. Raises ValueError for a name that the API does not accept."""
    if name == "UTC":
        return timezone.utc
    if name not in _names():
        meant = [known for known in _names() if known.casefold() == name.strip().casefold()]
        raise ValueError(f"{name[:40]!a} is not an IANA time zone, such as Europe/Berlin" + (f"; write {meant[0]}" if meant else ""))
    with resources.files("tzdata").joinpath("zoneinfo", *name.split("/")).open("rb") as file:
        return ZoneInfo.from_file(file, key=name)


@lru_cache(maxsize=1)
def _names() -> frozenset[str]:
    try:
        return frozenset(resources.files("tzdata").joinpath("zones").read_text(encoding="utf-8").split()) - {"Factory"}
    except ModuleNotFoundError:
        raise ValueError("needs the rules of time zones: pip install tzdata") from None
