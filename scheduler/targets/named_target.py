"""Named targets: an administrator registers where and how to call, and jobs refer to it by name; locked fields are the target's own."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from scheduler.model.job import Failure, FailureKind, Job
from scheduler.model.limiter import Limiter
from scheduler.model.named_target import NamedTarget
from scheduler.targets import placeholders
from scheduler.targets.base import Reach
from scheduler.targets.job_context import JobContext

if TYPE_CHECKING:
    from scheduler.targets.target_type import TargetType

NO_NETWORK = "this stage has no private network: its operators deploy one with the option network"
NAME = r"[a-z0-9][a-z0-9._-]{0,62}"
MOST_PER_SECOND, LEAST_PER_SECOND, MOST_AT_ONCE = 1_000, 0.1, 500  # every start writes one item: docs/internals/decisions.md
IN_ONE_ITEM = 50  # a target with more concurrency slots has most of them in further items; a write costs as many units as its item has KB
ITEMS, OWN = 25, 8  # the further items, of 20 slots at most; and the slots that stay in the first one, which has the cursors too


def slots_beside(before: NamedTarget | None, concurrency: int | None) -> int:
    """The slots of a new target, or of a changed one (`before`), that are in further items.

    The slots that were in the first item stay there: jobs may be using them. A target whose slots lie in further items keeps that, and
    a lower limit makes the share of every item smaller.
    """
    former = before.concurrency if before is not None else None
    if concurrency is None or (concurrency <= IN_ONE_ITEM and not (before and before.beside)):
        return 0
    if before is None or former is None:
        own = OWN
    elif before.beside:
        own = (former - before.beside) * min(concurrency, former) // former
    else:
        own = min(former, IN_ONE_ITEM)
    return concurrency - max(1, own)


def item_name(target: str, number: int) -> str:
    """The name under which the usage of one of the target's items is stored; 0: the first one. No target has such a name."""
    return f"{target}#{number}" if number else target


def target_of(item: str) -> str:
    """The target of the item with this name."""
    return item.partition("#")[0]


def share_of(target: Limiter, number: int) -> int | None:
    """The number of the item's concurrency slots; None: the target has no limit of these. All shares together are `concurrency`."""
    if target.concurrency is None:
        return None
    if number == 0:
        return target.concurrency - target.beside
    return target.beside * number // ITEMS - target.beside * (number - 1) // ITEMS


def default_locks(kind: str, defaults: Mapping[str, Any]) -> tuple[str, ...]:
    """The fields locked by default: all default fields except the type's content."""
    return tuple(sorted(set(defaults) - set(_declared(kind).content)))


def overridden(target: NamedTarget, payload: Mapping[str, Any]) -> Sequence[str]:
    """The locked fields that a payload contains nevertheless."""
    return sorted(set(payload) & set(target.locked))


def merged(target: NamedTarget, payload: Mapping[str, Any]) -> dict[str, Any]:
    """The effective payload: the job's own fields, else the defaults; a locked field is always the target's, even for an old job."""
    return {**target.defaults, **{name: value for name, value in payload.items() if name not in target.locked}}


def own_secrets(kind: str, locked: Sequence[str]) -> frozenset[str]:
    """The locked fields that name secrets of the target, the same for all users; an unlocked one names a secret of the job's owner."""
    return frozenset(_declared(kind).secrets).intersection(locked)


def secret_of(target: str, name: str) -> str:
    """The name of a target's own secret in an effective payload. No job can use it: names of secrets contain no `/`."""
    return f"{target}/{name}"


def reach_of(target: NamedTarget | None, reach: Reach) -> Reach:
    """The reach of a target's jobs, or of a job without one: that of the stage or, of a private target, what its list allows."""
    return reach if target is None or not target.allow else reach.within(target.allow)


def work_of(job: Job, target: NamedTarget | None, context: JobContext) -> Mapping[str, Any] | Failure:
    """The payload that the job runs with, or the failure if it cannot run; `target`: the one that its target name now refers to.

    Placeholders are replaced. The target's own secrets are named as by `secret_of`.
    """
    if job.spec.target is None:
        return _run_with(job.spec.type, job.spec.payload, context) if job.spec.placeholders else job.spec.payload
    if target is None:
        return Failure(FailureKind.PERMANENT, f"target {job.spec.target} does not exist")
    if not target.enabled:
        return Failure(FailureKind.PERMANENT, f"target {job.spec.target} is disabled")
    if target.kind != job.spec.type:  # the target was deleted and registered again with another type
        return Failure(FailureKind.PERMANENT, f"target {job.spec.target} is of kind {target.kind} now, not {job.spec.type}")
    payload = job.spec.payload
    if job.spec.placeholders:
        rendered = _run_with(target.kind, payload, context)
        if isinstance(rendered, Failure):
            return rendered
        payload = rendered
        if broken := _broken_anew(target, job.spec.payload, payload):
            return Failure(FailureKind.PERMANENT, broken[:500])
    if target.placeholders:
        defaults = _run_with(target.kind, target.defaults, context)
        if isinstance(defaults, Failure):
            return defaults
        target = replace(target, defaults=defaults)
    own = own_secrets(target.kind, target.locked)
    return {name: _owned(target.name, value) if name in own else value for name, value in merged(target, payload).items()}


def _run_with(kind: str, payload: Mapping[str, Any], context: JobContext) -> Mapping[str, Any] | Failure:
    """The payload with its placeholders replaced; the failure if a value leaves the path of the URL, which a target may have locked."""
    declared = _declared(kind)
    rendered = placeholders.rendered(payload, context, declared.encodings)
    url = declared.destination
    if url and placeholders.leaves_path(str(payload.get(url, "")), str(rendered.get(url, ""))):
        return Failure(FailureKind.PERMANENT, f"payload.{url}: a placeholder makes a part of its path . or .., which would leave the path")
    return rendered


def _broken_anew(target: NamedTarget, written: Mapping[str, Any], rendered: Mapping[str, Any]) -> str:
    """The rule of the target's schema that the payload breaks only with its placeholders replaced: their values may be any text."""
    if target.payload_schema is None:
        return ""
    from scheduler.targets import payload_schema  # imported here: it loads the engine of patterns

    known = set(payload_schema.broken(target.payload_schema, written))
    new = [each for each in payload_schema.broken(target.payload_schema, rendered) if each not in known]
    return f"payload.{'.'.join(map(str, new[0].path))} {new[0].rule}: its placeholders are replaced" if new else ""


def _declared(kind: str) -> "TargetType":
    from scheduler.targets import registry  # imported here: functions that run no jobs never load it

    return registry.load(kind)


def _owned(target: str, named: Any) -> Any:
    if isinstance(named, Mapping):
        return {header: secret_of(target, name) for header, name in named.items()}
    return None if named is None else secret_of(target, named)
