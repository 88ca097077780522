"""The name of what a job calls, in a few words: for lists of jobs and of failures."""

from scheduler.model.spec import JobSpec
from scheduler.targets import registry

LONGEST = 200  # characters: a URL may have 2,000


def calls(spec: JobSpec) -> str | None:
    """The named target, or the host and path, function, state machine, queue, topic, bus or first recipient; None: it calls nothing."""
    if spec.target is not None:
        return spec.target
    try:
        found = registry.load(spec.type).called_by(spec.payload)
    except registry.UnknownType:
        return None
    return found if found is None or len(found) <= LONGEST else f"{found[: LONGEST - 1]}…"


def place(spec: JobSpec) -> str:
    """As `calls`, but the host of a URL without its path. The type, if the job calls nothing."""
    found = calls(spec)
    return spec.type if found is None else found if spec.target is not None else found.partition("/")[0] or found
