"""The predecessors that new jobs name: which jobs and groups they are, and whether they may be named. Nothing is stored.

A job names jobs that exist, or by their keys jobs of the same call. So a circle can only be within one call, which is checked as a whole:
a key is bound to the id of its job at creation.
"""

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import NamedTuple

from scheduler.admission.after import end_of, end_of_group
from scheduler.model.after import Kind, Predecessor, When
from scheduler.model.errors import Conflict, Invalid
from scheduler.model.group import Group
from scheduler.model.job import GroupKey, Job, JobKey, OwnKey
from scheduler.storage.ports import Found, Groups, Jobs

LISTED = 10  # jobs of a circle that an error names


class Named(NamedTuple):
    """A predecessor as a request names it: by the id of a job or of a group, or by the key of a job."""

    when: When = When.SUCCEEDED
    job: str | None = None
    key: str | None = None
    group: str | None = None

    @property
    def field(self) -> str:
        return "group" if self.group is not None else "job" if self.job is not None else "key"


class Draft(NamedTuple):
    """A job of a call that is not stored yet, and the predecessors that it names."""

    job: Job
    named: Sequence[Named]


@dataclass(frozen=True, slots=True)
class Resolved:
    """The predecessors of a new job. `within`: the jobs of the same call among them, each with the field that names it."""

    after: tuple[Predecessor, ...]
    within: Mapping[JobKey, str]


def resolve(
    drafts: Sequence[Draft], jobs: Jobs, groups: Groups, refused_keys: Set[str | None] = frozenset()
) -> dict[JobKey, Resolved | Conflict | Invalid]:
    """Return the predecessors of each of these jobs of one owner that names any, or why it may not have them. Raises Unavailable.

    `refused_keys`: the keys of other jobs of the call, which are refused.
    """
    naming = [draft for draft in drafts if draft.named]
    if not naming:
        return {}
    together = {draft.job.spec.key: draft.job for draft in reversed(drafts) if draft.job.spec.key is not None}  # of two, the first gets it
    owner = naming[0].job.owner
    keys = {each.key for draft in naming for each in draft.named if each.key is not None and each.key not in together}
    entries = jobs.key_entries([OwnKey(owner, key) for key in sorted(keys)]) if keys else {}
    by_key = {own.key: entry.job for own, entry in entries.items()} | {key: job.id for key, job in together.items()}
    mine = {draft.job.id for draft in drafts}
    ids = {id for draft in naming for each in draft.named if (id := each.job or by_key.get(each.key or "")) is not None}
    found = jobs.get_many([JobKey(owner, id) for id in sorted(ids - mine)]) if ids - mine else Found[JobKey, Job]()
    refused = refused_keys - together.keys()
    named_groups = {
        id: groups.get(GroupKey(owner, id)) for id in sorted({each.group for draft in naming for each in draft.named if each.group})
    }
    known = _Known(by_key, {job.id for job in together.values()}, refused, found, named_groups)
    resolved = {draft.job.key: _resolve(draft, known) for draft in naming}
    for circle in _circles(resolved):
        resolved |= dict.fromkeys(circle, _circular(circle, together))
    return resolved


def unstored(field: str) -> Conflict:
    """The refusal of a job whose predecessor of the same call was refused."""
    return Conflict(f"{field}: its job is refused", details=[{"field": field, "rule": "names a job of this call that is refused"}])


class _Known(NamedTuple):
    """The predecessors of a call, as they were read. `together`: the ids of its own jobs that have keys. `refused`: the keys of others."""

    by_key: Mapping[str, str]
    together: Set[str]
    refused: Set[str | None]
    found: Found[JobKey, Job]
    groups: Mapping[str, Group | None]


def _resolve(draft: Draft, known: _Known) -> Resolved | Conflict | Invalid:
    after, within, places = list[Predecessor](), dict[JobKey, str](), dict[str, str]()
    for place, each in enumerate(draft.named):
        field = f"after.{place}.{each.field}"
        id = each.group or each.job or known.by_key.get(each.key or "")
        if each.key is not None and each.key in known.refused:
            return unstored(field)
        if id is None:
            return Invalid.field(field, "names no job: no job has this key")
        if id == draft.job.id:
            return Invalid.field(field, "must not name the job itself")
        if id in places:
            return Invalid.field(field, f"names the same {'group' if each.group else 'job'} as {places[id]}")
        places[id], key = field, JobKey(draft.job.owner, id)
        if each.group is not None:
            group = known.groups[each.group]
            if group is None:
                return Invalid.field(field, "names no group: there is no group with this id")
            if group.sealed_at is None:
                return Invalid.field(field, "must name a sealed group: jobs may still join this one")
            after.append(Predecessor(id, each.when, Kind.GROUP, end_of_group(group)))
        elif each.key is not None and id in known.together:
            within[key] = field
            after.append(Predecessor(id, each.when))
        elif key in known.found.unreadable:
            after.append(Predecessor(id, each.when))
        elif key not in known.found:
            return Invalid.field(field, "names no job: there is no job with this id")
        else:
            after.append(Predecessor(id, each.when, end=end_of(known.found[key])))
    return Resolved(tuple(after), within)


def _circles(resolved: Mapping[JobKey, Resolved | Conflict | Invalid]) -> Iterator[list[JobKey]]:
    """Return the circles, as paths: each job waits for the one behind it, and the last one for the first."""
    edges = {key: [*each.within] for key, each in resolved.items() if isinstance(each, Resolved)}
    done = set[JobKey]()
    for first in edges:
        path, branches = [first], [iter(edges[first])]
        while branches and first not in done:
            following = next(branches[-1], None)
            if following is None:
                done.add(path.pop())
                branches.pop()
            elif following in path:
                yield path[path.index(following) :]
            elif following not in done and following in edges:
                path.append(following)
                branches.append(iter(edges[following]))


def _circular(circle: Sequence[JobKey], together: Mapping[str, Job]) -> Invalid:
    keys = {job.key: key for key, job in together.items()}
    shown = " → ".join(keys[key] for key in (*circle[:LISTED], circle[0]))
    return Invalid.field("after", f"makes a circle, in which each job waits for the next: {shown}")
