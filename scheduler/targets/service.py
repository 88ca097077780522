"""The operations of administrators on named targets: register, replace, delete."""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from scheduler.model.errors import Conflict, Invalid, NotFound, Unavailable
from scheduler.model.named_target import NamedTarget
from scheduler.storage.ports import Targets
from scheduler.targets.named_target import NAME, slots_beside

TRIES = 5  # how often a change that collides with another one is tried


def find(name: str, *, targets: Targets) -> NamedTarget:
    """One target. Raises NotFound, also for a text that is no name of a target."""
    target = targets.targets([name]).get(name) if re.fullmatch(NAME, name) else None
    if target is None:
        raise NotFound("there is no such target")
    return target


def register(name: str, kind: str, fields: Mapping[str, Any], *, by: str, targets: Targets, now: int) -> NamedTarget:
    """Register a target with these validated fields. Raises Conflict if the name is taken."""
    made = NamedTarget(name, kind, created_at=now, updated_at=now, created_by=by, updated_by=by, **fields)
    made = _spread(None, made)
    if not targets.put(None, made):
        raise Conflict("a target with this name already exists")
    return made


def edit(
    name: str,
    kind: str,
    fields: Mapping[str, Any],
    *,
    by: str,
    targets: Targets,
    now: int,
    version: int | None = None,
    check: Callable[[NamedTarget], None] = lambda target: None,
) -> NamedTarget:
    """Replace the fields of a target. Raises NotFound, Invalid for another kind, Conflict if its version differs from the given one.

    `check` raises an error if the target, as it is now, must not be replaced.
    """
    for _ in range(TRIES):
        before = find(name, targets=targets)
        check(before)
        if before.kind != kind:
            raise Invalid.field("kind", f"cannot change: it is {before.kind}; delete this target first, or register another")
        if version not in (None, before.version):
            raise Conflict(f"the target was changed since you read it: its version is {before.version}")
        after = replace(before, updated_at=now, updated_by=by, version=before.version + 1, **fields)
        after = _spread(before, after)
        if targets.put(before, after):
            return after
    raise Unavailable("the target keeps changing; try again")


def _spread(before: NamedTarget | None, after: NamedTarget) -> NamedTarget:
    return replace(after, beside=slots_beside(before, after.concurrency))


def delete(name: str, *, targets: Targets) -> NamedTarget:
    """Delete a target; jobs that name it then fail when they start. Raises NotFound."""
    for _ in range(TRIES):
        target = find(name, targets=targets)
        if targets.delete(target):
            return target
    raise Unavailable("the target keeps changing; try again")
