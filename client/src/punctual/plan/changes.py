"""Compare the tasks of files with those of the API, and carry out the difference.

`plan` changes nothing; `apply` does what a plan says, and can be repeated: a task that is as requested stays as it is.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace
from enum import Enum
from itertools import islice
from typing import Any, Protocol, TypeVar

from punctual.bodies import segment
from punctual.errors import (
    ApiError,
    Conflict,
    InvalidRequest,
    NoAnswer,
    NotAllowed,
    NotAuthenticated,
    NotFound,
    PunctualError,
    UnexpectedAnswer,
)
from punctual.plan import normal, schema
from punctual.plan.read import TAG, BadFile, Document, Item, Problem, tag
from punctual.records import part

WORKERS = 8
STOPS = (NoAnswer, NotAuthenticated, NotAllowed)  # after such an error the next change would fail, too
PAGE = 100  # tasks in an answer
T = TypeVar("T")
R = TypeVar("R")


class Api(Protocol):
    """The one method of `Punctual` that is needed here."""

    def request(
        self, method: str, path: str, body: Any = None, query: Mapping[str, Any] | None = None, *, idempotent: bool | None = None
    ) -> Any: ...


class Action(str, Enum):
    """The kinds of change that `apply` makes to a task."""

    CREATE = "create"
    CHANGE = "change"
    DELETE = "delete"
    KEEP = "unchanged"


@dataclass(frozen=True)
class FieldChange:
    """A field with its value before and after; None stands for no value."""

    field: str
    old: Any
    new: Any


@dataclass(frozen=True)
class Change:
    """The change of one task. `task` is the stored task, as the API returned it; `item` is the task of the file."""

    action: Action
    key: str | None
    name: str
    item: Item | None = None
    task: Mapping[str, Any] | None = None
    fields: tuple[FieldChange, ...] = ()
    next_run: str | None = None

    @property
    def is_paused(self) -> bool:
        return self.task is not None and self.task.get("inactive_at") is not None


@dataclass(frozen=True)
class Excess:
    """A label of which more than half of the tasks would be deleted: `deleted` of `of`."""

    label: str
    deleted: int
    of: int

    def __str__(self) -> str:
        return f"{self.deleted} of the {self.of} tasks with the label {self.label}"


@dataclass(frozen=True)
class Plan:
    """All changes, in the order of the files; deletions last. `excess` has the labels that would lose more than half of their tasks."""

    changes: tuple[Change, ...]
    excess: tuple[Excess, ...] = ()

    @property
    def to_do(self) -> tuple[Change, ...]:
        """The changes that do something."""
        return tuple(change for change in self.changes if change.action is not Action.KEEP)

    def count(self, action: Action) -> int:
        return sum(change.action is action for change in self.changes)


@dataclass(frozen=True)
class Failed:
    """A change that the server refused, or that found no answer. `problem` names the place in the file, if it has one."""

    change: Change
    problem: Problem | None
    error: PunctualError

    def __str__(self) -> str:
        return str(self.problem) if self.problem else f"{self.change.key or self.change.name}: {self.error}"


@dataclass(frozen=True)
class Result:
    """The outcome of `apply`: changes that are done, that failed, and that it has not begun. `reason` explains the last."""

    done: tuple[Change, ...]
    failed: tuple[Failed, ...]
    left: tuple[Change, ...]
    reason: str = ""

    def count(self, action: Action) -> int:
        return sum(change.action is action for change in self.done)


def plan(api: Api, document: Document, *, prune: bool = False) -> Plan:
    """Compare files with the tasks of the signed-in user.

    `prune` plans to delete the tasks that carry a label of the files and are in none of them. Schedules, types and targets that the
    server refuses are found here. Raises BadFile with their places, ApiError, NoAnswer.
    """
    of_label = {label: list(tasks(api, label)) for label in document.labels}
    labelled = [task for found in of_label.values() for task in found]
    known = {task["key"]: task for task in labelled if task.get("key")}
    known |= _found(api, [item.key for item in document.items if item.key not in known])
    wanted = [_change(item, known.get(item.key)) for item in document.items]
    problems = [*_of_labels(wanted), *_unknown(api, wanted)]
    if problems:
        raise BadFile(problems)
    kept = {item.key for item in document.items}
    gone = {task["id"]: task for task in labelled if prune and task.get("key") not in kept}
    deletions = [Change(Action.DELETE, task.get("key"), task["name"], task=task) for task in gone.values()]
    return Plan((*_with_runs(api, wanted), *deletions), tuple(_excess(of_label, gone)))


def _excess(of_label: Mapping[str, Sequence[Mapping[str, Any]]], gone: Container[str]) -> Iterator[Excess]:
    for label, found in of_label.items():
        deleted = sum(task["id"] in gone for task in found)
        if deleted * 2 > len(found):
            yield Excess(label, deleted, len(found))


def tasks(api: Api, label: str | None = None) -> Iterator[dict[str, Any]]:
    """Return all tasks of the signed-in user, or those with a label, as the API answers them."""
    return _pages(api, "/tasks", {"tag": tag(label)} if label else {})


def apply(api: Api, changes: Plan, *, progress: Callable[[Change], None] = lambda change: None, workers: int = WORKERS) -> Result:
    """Carry out a plan: creations and changes first, and deletions only if all of these succeeded.

    A task that was changed since the plan was made is not overwritten. `progress` is called after each change, by the calling thread.
    No answer and a refused token stop it; a refused task does not stop the others. On KeyboardInterrupt the requests that are under
    way end, and the result says what was left.
    """
    writes = [change for change in changes.to_do if change.action is not Action.DELETE]
    deletions = [change for change in changes.to_do if change.action is Action.DELETE]
    result = _carry_out(api, writes, progress, workers)
    if not deletions:
        return result
    if result.failed or result.left:
        reason = result.reason or "nothing is deleted, since not every task was created or changed"
        return Result(result.done, result.failed, (*result.left, *deletions), reason)
    after = _carry_out(api, deletions, progress, workers)
    return Result((*result.done, *after.done), after.failed, after.left, after.reason)


def _carry_out(api: Api, changes: Sequence[Change], progress: Callable[[Change], None], workers: int) -> Result:
    stop = threading.Event()
    done: list[Change] = []
    failed: list[Failed] = []
    reason = ""

    def one(change: Change) -> bool:
        if stop.is_set():
            return False
        try:
            _do(api, change)
        except STOPS:
            stop.set()
            raise
        return True

    with ThreadPoolExecutor(workers) as pool:
        running = {pool.submit(one, change): change for change in changes}
        waiting = dict(running)
        try:
            for future in as_completed(running):
                change = waiting[future]
                try:
                    if not future.result():
                        continue
                    done.append(change)
                except PunctualError as error:
                    failed += _failures(change, error)
                    if isinstance(error, STOPS):
                        reason = reason or f"stopped: {error}"
                del waiting[future]
                progress(change)
        except KeyboardInterrupt:
            stop.set()
            reason = "stopped by Ctrl-C"
    for future, change in list(waiting.items()):  # changes that ended after Ctrl-C
        if not future.cancelled() and future.exception() is None and future.result():
            done.append(change)
            del waiting[future]
    order = {id(change): number for number, change in enumerate(changes)}
    left = sorted(waiting.values(), key=lambda change: order[id(change)])
    return Result(tuple(sorted(done, key=lambda change: order[id(change)])), tuple(failed), tuple(left), reason)


def _do(api: Api, change: Change) -> None:
    if change.action is Action.DELETE:
        assert change.task is not None
        try:
            api.request("DELETE", f"/tasks/{change.task['id']}")
        except NotFound:
            pass  # another client deleted it
        return
    assert change.item is not None
    body = dict(change.item.body)
    if change.task is not None:
        body["generation"] = change.task["generation"]
        start = _kept_start(change)
        if start is not None:
            body["schedule"] = {**body["schedule"], "start": start}
    try:
        api.request("PUT", f"/tasks/by-key/{segment(change.item.key)}", body)
    except Conflict:
        if not _is_done(api, change.item):
            raise


def _is_done(api: Api, item: Item) -> bool:
    """Whether the task is as requested in spite of a conflict: a request whose answer was lost has been repeated."""
    found = _find(api, item.key)
    if found is None:
        return False
    now = normal.of_answer(found)
    return normal.is_same(normal.of_request(item.body, now), now)


def _kept_start(change: Change) -> str | None:
    """The start of a rate that keeps its beat though another field of its schedule changes."""
    assert change.item is not None and change.task is not None
    wanted = normal.of_request(change.item.body, normal.of_answer(change.task))["schedule"]
    start: str | None = (wanted or {}).get("start") if wanted and "rate" in wanted else None
    return start


def _failures(change: Change, error: PunctualError) -> list[Failed]:
    """One for each field that the server names."""
    item = change.item
    if item is None:
        return [Failed(change, None, error)]
    if isinstance(error, Conflict) and change.task is not None:
        rule = "was changed since the plan was made: run apply again"
        return [Failed(change, item.problem("key", f"{item.key} {rule}"), error)]
    if isinstance(error, ApiError) and error.details:
        return [Failed(change, item.problem(detail.field, detail.rule), error) for detail in error.details]
    text = error.message if isinstance(error, ApiError) else str(error)
    return [Failed(change, item.problem("", text), error)]


def _change(item: Item, task: Mapping[str, Any] | None) -> Change:
    name = str(item.body["name"])
    if task is None:
        return Change(Action.CREATE, item.key, name, item)
    before = normal.of_answer(task)
    after = normal.of_request(item.body, before)
    if normal.is_same(before, after):
        return Change(Action.KEEP, item.key, name, item, task)
    return Change(Action.CHANGE, item.key, name, item, task, tuple(_differences(before, after)))


def _differences(before: Mapping[str, Any], after: Mapping[str, Any], path: str = "") -> Iterator[FieldChange]:
    """The fields that differ; those of mappings by themselves. The start of a rate without one in the file is not the file's."""
    for name in dict.fromkeys((*before, *after)):
        old, new, field = before.get(name), after.get(name), f"{path}{name}"
        is_same = normal.is_same_json(old, new) if field.startswith("payload") else old == new
        if is_same or (path == "schedule." and name == "start" and new is None and "rate" in after):
            continue
        if isinstance(old, Mapping) and isinstance(new, Mapping):
            yield from _differences(old, new, f"{field}.")
        else:
            yield FieldChange(field, old, new)


def _found(api: Api, keys: Sequence[str]) -> dict[str, dict[str, Any]]:
    """The tasks of these keys. Of many, pages of all tasks are read first, as long as that takes fewer requests."""
    found: dict[str, dict[str, Any]] = {}
    if len(keys) > WORKERS:
        most = len(keys) * PAGE // 2
        listed = list(islice(tasks(api), most))
        wanted = set(keys)
        found = {task["key"]: task for task in listed if task.get("key") in wanted}
        if len(listed) < most:
            return found
    left = [key for key in keys if key not in found]
    return found | {key: task for key, task in zip(left, _each(left, lambda key: _find(api, key)), strict=True) if task}


def _find(api: Api, key: str) -> dict[str, Any] | None:
    try:
        found: dict[str, Any] = api.request("GET", f"/tasks/by-key/{segment(key)}")
    except NotFound:
        return None
    return found


def _each(values: Sequence[T], call: Callable[[T], R]) -> Iterable[R]:
    with ThreadPoolExecutor(WORKERS) as pool:
        return list(pool.map(call, values))


def _of_labels(changes: Iterable[Change]) -> Iterator[Problem]:
    """Tasks that another file manages."""
    for change in changes:
        assert change.item is not None
        tags = change.task["tags"] if change.task else ()
        others = [each for each in tags if each.startswith(TAG) and each not in change.item.body.get("tags", ())]
        if others and change.item.label is not None:
            rule = f"{change.item.key} belongs to another file: it has the tag {others[0]}. Choose another key, or remove that tag first"
            yield change.item.problem("key", rule)


def _unknown(api: Api, changes: Sequence[Change]) -> Iterator[Problem]:
    """Types and targets that the stage does not have. It is asked only if a file names a target, or a type that not every stage has."""
    items = [change.item for change in changes if change.item is not None and change.action is not Action.KEEP]
    if not any("target" in item.body or item.body.get("type", "log") not in schema.types() for item in items):
        return
    known = list(_pages(api, "/types", {}))
    types, targets = ({each[name] for each in known if each[name]} for name in ("type", "target"))
    for item in items:
        for field, names, list_command in (("target", targets, "punctual targets list"), ("type", types, "")):
            given = item.body.get(field)
            if given is not None and given not in names:
                shown = f"; {list_command} shows them" if list_command else f"; known types: {', '.join(sorted(types))}"
                yield item.problem(field, f"there is no such {field} that is enabled: {given}{schema.nearest(given, names) or shown}")


def _pages(api: Api, path: str, filter: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    query: dict[str, Any] = {"limit": PAGE, **filter}
    seen: set[object] = set()
    while True:
        page = api.request("GET", path, None, query)
        yield from part(page, "items", list)
        cursor = page.get("cursor")
        if not cursor:
            return
        if not isinstance(cursor, str) or cursor in seen:
            raise UnexpectedAnswer(f"GET {path} answered the same cursor twice: the list would never end")
        seen.add(cursor)
        query["cursor"] = cursor


def _with_runs(api: Api, changes: Sequence[Change]) -> list[Change]:
    """The same changes with their next runs; the server checks each new schedule once for it. Raises BadFile."""
    forms = {
        _text(change.item): change.item.body["schedule"] for change in changes if change.item is not None and _has_new_schedule(change)
    }
    runs = dict(zip(forms, _each(list(forms.values()), lambda form: _preview(api, form)), strict=True))
    problems: list[Problem] = []
    result = []
    for change in changes:
        assert change.item is not None
        found = runs.get(_text(change.item)) if _has_new_schedule(change) else None
        if isinstance(found, InvalidRequest):
            for detail in found.details:
                field = "schedule" if detail.field in ("body", "") else f"schedule.{detail.field}"
                problems.append(change.item.problem(field, detail.rule))
            problems += [] if found.details else [change.item.problem("schedule", found.message)]
        result.append(replace(change, next_run=found if isinstance(found, str) else None))
    if problems:
        raise BadFile(problems)
    return result


def _text(item: Item) -> str:
    return repr(item.body["schedule"])


def _has_new_schedule(change: Change) -> bool:
    assert change.item is not None
    if change.item.body.get("schedule") is None:
        return False
    changed = any(each.field == "schedule" or each.field.startswith("schedule.") for each in change.fields)
    return change.action is Action.CREATE or (change.action is Action.CHANGE and changed)


def _preview(api: Api, form: Mapping[str, Any]) -> str | InvalidRequest | None:
    """The next run on the clock of its zone, the refusal, or None if no run is to come."""
    try:
        runs = api.request("POST", "/schedules/preview", {**form, "count": 1}, idempotent=True)["runs"]
    except InvalidRequest as error:
        return error
    return next((str(run["local_at"]) for run in runs if run["at"] is not None), None)
