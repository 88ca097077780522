"""The composition root of the function that calls URLs. It imports no AWS client: it starts faster, and offers little to an attacker."""

import os
from dataclasses import dataclass
from functools import cache
from urllib.parse import urlsplit

from lambdas._clock import SystemClock
from lambdas._settings import Settings
from scheduler.storage.ports import Clock
from scheduler.targets.base import Reach
from scheduler.targets.types import http


@dataclass(frozen=True)
class Fetch:
    clock: Clock
    reach: Reach
    allow_private: bool
    own: str | None = None  # the host of the scheduler's API


@cache
def fetch() -> Fetch:
    settings = Settings.parse(os.environ)
    http.ready()
    return Fetch(SystemClock(), settings.reach, settings.rules.allow_private_http, urlsplit(settings.api_url).hostname)
