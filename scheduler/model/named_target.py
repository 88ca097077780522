"""A named target. `scheduler/targets/named_target.py` has the rules."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from scheduler.model.spec import Limit

PUBLIC, PRIVATE = "public", "private"  # the networks of a target: the internet, or that of the option `network`


@dataclass(frozen=True, slots=True)
class NamedTarget:
    """A registered target. `version` rises with every change, and every change is conditional on it."""

    name: str
    kind: str  # one of the task types; never changes
    created_at: int
    updated_at: int
    created_by: str
    updated_by: str
    defaults: Mapping[str, Any] = field(default_factory=dict)  # fields of the payload
    locked: tuple[str, ...] = ()  # default fields that no job may override
    payload_schema: Mapping[str, Any] | None = None  # of the fields that jobs set; None: any that complete the defaults
    rate: float | None = None  # starts per second
    concurrency: int | None = None  # maximum of running jobs
    beside: int = 0  # of these, the slots in the further items: see `slots_beside`
    description: str | None = None
    enabled: bool = True
    version: int = 1
    allow: tuple[str, ...] = ()  # hosts and ranges that its jobs may call in the private network; none: the target is public
    limit: Limit | None = None  # of a key that it shares with other targets
    placeholders: bool = False  # whether the defaults have placeholders; if not, they are not searched for them

    @property
    def network(self) -> str:
        return PRIVATE if self.allow else PUBLIC

    @property
    def is_limited(self) -> bool:
        return self.rate is not None or self.concurrency is not None
