"""Compare the tasks of files with those of the API, and carry out the difference.

`plan` changes nothing; `apply` does what a plan says, and can be repeated: a task that is as requested stays as it is.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from enum import Enum
from itertools import islice
from random import uniform
from time import sleep
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
    QuotaExceeded,
    Throttled,
    UnexpectedAnswer,
)
from punctual.plan.export import full_body, shortest
from punctual.plan.read import TAG, BadFile, Document, Item, Problem, tag
from punctual.records import FieldChange, NextRun, part

WORKERS = 8
STOPS = (NoAnswer, NotAuthenticated, NotAllowed)  # after such an error the next change would fail, too
PAGE = 100  # tasks in an answer
PATIENCE = 60  # tries of a request that API Gateway throttles, about one a second
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


def plan(api: Api, document: Document, *, prune: bool = False, progress: Callable[[int], None] = lambda compared: None) -> Plan:
    """Compare files with the tasks of the owner of the client.

    The API says what each task would change, and refuses here what it would refuse later. A task that is stored as the file has it needs
    no request. `prune` plans to delete the tasks that carry a label of the files and are in none of them. `progress` gets the number of
    tasks that are compared so far. Raises BadFile with the places of all refused fields, ApiError, NoAnswer.
    """
    of_label = {label: list(tasks(api, label)) for label in document.labels}
    labelled = [task for found in of_label.values() for task in found]
    # Tasks that no label finds are read in pages, as long as that takes fewer requests than to ask for each.
    free = sum(item.label is None for item in document.items)
    stored = {task.get("key"): task for task in [*labelled, *(islice(tasks(api), free * PAGE // 2) if free > WORKERS else ())]}
    found = _each(document.items, lambda item: _planned(api, item, stored.get(item.key)), progress)
    problems = [problem for each in found if not isinstance(each, Change) for problem in each]
    if problems:
        raise BadFile(problems)
    present = {item.key for item in document.items}
    gone = {task["id"]: task for task in labelled if prune and task.get("key") not in present}
    deletions = [Change(Action.DELETE, task.get("key"), task["name"], task=task) for task in gone.values()]
    return Plan((*(each for each in found if isinstance(each, Change)), *deletions), tuple(_excess(of_label, gone)))


def _planned(api: Api, item: Item, stored: Mapping[str, Any] | None) -> Change | list[Problem]:
    """The change of one task, or the rules that it breaks."""
    if stored is not None and _is_stored(item.body, full := full_body(stored), shortest(full, stored.get("defaults", ()))):
        return Change(Action.KEEP, item.key, str(stored["name"]), item, stored)
    try:
        task = _dry_run(api, item)
    except InvalidRequest as error:
        return _places(item, error)
    return _of_answer(item, task)


def _of_answer(item: Item, task: Any) -> Change | list[Problem]:
    """The change that the API says, or the problem that the task belongs to another file."""
    outcome, changes = part(task, "outcome", str), part(task, "changes", list)
    fields = tuple(FieldChange.from_json(each) for each in changes)
    tags = next((field.before for field in fields if field.field == "tags"), item.body.get("tags", ()))
    others = [each for each in tags if each.startswith(TAG) and each not in item.body.get("tags", ())]
    if others and item.label is not None:
        rule = f"{item.key} belongs to another file: it has the tag {others[0]}. Choose another key, or remove that tag first"
        return [item.problem("key", rule)]
    action = {"created": Action.CREATE, "updated": Action.CHANGE}.get(outcome, Action.KEEP)
    runs = part(task, "next_runs", list)
    is_new = action is Action.CREATE or any(field.field.partition(".")[0] == "schedule" for field in fields)
    run = str(NextRun.from_json(runs[0]).raw["local_at"]) if runs and is_new else None
    return Change(action, item.key, part(task, "name", str), item, None if action is Action.CREATE else task, fields, run)


def _is_stored(answered: Any, full: Any, shortest: Any) -> bool:
    """Whether a request leaves a task as it is: each field is as stored, and each that is absent has its default.

    False if only the API knows: it may be the same in another form, such as `5 minutes` and `rate(5 minutes)`.
    """
    if not (isinstance(answered, Mapping) and isinstance(full, Mapping) and isinstance(shortest, Mapping)):
        return json.dumps(answered, sort_keys=True) == json.dumps(full, sort_keys=True)  # not `==`: for Python, true, 1 and 1.0 are equal
    is_whole = shortest.keys() <= answered.keys() <= full.keys()
    return is_whole and all(_is_stored(answered[name], full[name], shortest.get(name, {})) for name in answered)


def _dry_run(api: Api, item: Item) -> Any:
    """The task as a put of it would leave it, with its `outcome` and its `changes`."""
    return _request(api, "PUT", _path(item), item.body, {"dry_run": True, **OF_CLIENT})


OF_CLIENT = {"owner": None}  # a query about the owner of the client


def _request(api: Api, method: str, path: str, body: Any = None, query: Mapping[str, Any] | None = None, tries: int = PATIENCE) -> Any:
    """As `api.request`. Of thousands of requests some are throttled after all repeats: each waits until the stage has room for it."""
    try:
        return api.request(method, path, body, query)
    except Throttled as error:
        if isinstance(error, QuotaExceeded) or tries == 1:
            raise
    sleep(uniform(0.5, 1.5))
    return _request(api, method, path, body, query, tries - 1)


def _path(item: Item) -> str:
    return f"/tasks/by-key/{segment(item.key)}"


def _excess(of_label: Mapping[str, Sequence[Mapping[str, Any]]], gone: Container[str]) -> Iterator[Excess]:
    for label, found in of_label.items():
        deleted = sum(task["id"] in gone for task in found)
        if deleted * 2 > len(found):
            yield Excess(label, deleted, len(found))


def tasks(api: Api, label: str | None = None) -> Iterator[dict[str, Any]]:
    """Return all tasks of the owner of the client, or those with a label, as the API answers them."""
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
            _request(api, "DELETE", f"/tasks/{change.task['id']}", None, OF_CLIENT)
        except NotFound:
            pass  # another client deleted it
        return
    assert change.item is not None
    body = {**change.item.body, **({} if change.task is None else {"generation": change.task["generation"]})}
    try:
        _request(api, "PUT", _path(change.item), body, OF_CLIENT)
    except Conflict:
        if part(_dry_run(api, change.item), "outcome", str) != "unchanged":  # else a request whose answer was lost has been repeated
            raise


def _failures(change: Change, error: PunctualError) -> list[Failed]:
    """One for each field that the server names."""
    item = change.item
    if item is None:
        return [Failed(change, None, error)]
    if isinstance(error, Conflict) and change.task is not None:
        rule = "was changed since the plan was made: run apply again"
        return [Failed(change, item.problem("key", f"{item.key} {rule}"), error)]
    return [Failed(change, problem, error) for problem in _places(item, error)]


def _places(item: Item, error: PunctualError) -> list[Problem]:
    """One problem for each field that the API names."""
    if isinstance(error, ApiError) and error.details:
        return [item.problem("" if detail.field == "body" else detail.field, detail.rule) for detail in error.details]
    return [item.problem("", error.message if isinstance(error, ApiError) else str(error))]


def _each(values: Sequence[T], call: Callable[[T], R], progress: Callable[[int], None]) -> list[R]:
    results = []
    with ThreadPoolExecutor(WORKERS) as pool:
        for result in pool.map(call, values):
            results.append(result)
            progress(len(results))
    return results


def _pages(api: Api, path: str, filter: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    query: dict[str, Any] = {"limit": PAGE, **filter, **OF_CLIENT}
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
