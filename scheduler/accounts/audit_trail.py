"""Search the audit trail."""

from dataclasses import dataclass

from scheduler.model.audit import AuditEntry
from scheduler.model.errors import Invalid
from scheduler.model.paging import read_on, read_position
from scheduler.storage.ports import Trail

BACK_MS = 30 * 86_400_000


@dataclass(frozen=True, slots=True)
class Search:
    """The filters of a search; `owner` None: the entries of all owners."""

    owner: str | None
    action: str | None = None
    object: str | None = None
    actor: str | None = None
    since: int | None = None
    until: int | None = None  # exclusive
    limit: int = 20
    cursor: str | None = None


def search(query: Search, *, trail: Trail, now: int) -> tuple[list[AuditEntry], str | None]:
    """A page of entries, newest first. The cursor is None only if nothing more can match. Raises Invalid for a bad range or cursor."""
    until = now + 1 if query.until is None else query.until
    since = until - BACK_MS if query.since is None else query.since
    if since >= until:
        raise Invalid.field("to", "must be later than from")

    def read(after: str | None, limit: int) -> tuple[list[AuditEntry], str | None]:
        return trail.entries(query.owner, since=since, until=until, after=after, limit=limit)

    filtered = any(term is not None for term in (query.action, query.object, query.actor))
    return read_on(
        read,
        after=read_position(query.cursor),
        limit=query.limit,
        matches=(lambda entry: _matches(entry, query)) if filtered else None,
        position=lambda entry: entry.id,
        parts=lambda entry: entry.changes,
    )


def _matches(entry: AuditEntry, query: Search) -> bool:
    return (
        (query.action is None or entry.action == query.action or entry.action.startswith(f"{query.action}."))
        and query.object in (None, entry.object)
        and query.actor in (None, entry.actor)
    )
