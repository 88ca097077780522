# Generated from _async/resources.py by client/generate_sync.py: change that file.
"""The parts of the API as attributes of the client: `client.jobs`, `client.tasks` and so on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime
from typing import TYPE_CHECKING, Any, Literal

from punctual import bodies
from punctual._sync.transport import Transport
from punctual.bodies import JobRequest, filters, job_change, new_key, present, segment
from punctual.errors import InvalidArgument, UnexpectedAnswer
from punctual.fields import (
    Delay,
    HttpRequest,
    JobChanges,
    JobFilter,
    NotificationFields,
    OnConflict,
    OneOrMore,
    OneTimeOptions,
    PrincipalChanges,
    QuotaFields,
    Rate,
    ReceiverFields,
    ScheduleFields,
    ScheduleOptions,
    TargetFields,
    TaskChanges,
    TaskFields,
    TaskFilter,
    TaskOptions,
    UserChanges,
)
from punctual.records import (
    ApiKey,
    AttemptText,
    BatchResult,
    Breaker,
    Calendar,
    ClosedBreaker,
    Crowded,
    DeadLetterGroup,
    DefaultAlerts,
    Estimate,
    Group,
    Identity,
    IntakeLetter,
    Invitation,
    ItemResult,
    Job,
    Lane,
    LaneState,
    MadeGroup,
    Member,
    Monitor,
    MonitorEvent,
    NextRun,
    Operation,
    OrderingKey,
    Overlap,
    Principal,
    PutCalendar,
    PutDefaultAlerts,
    PutResult,
    Receiver,
    ReceiverKind,
    ReceiverTest,
    Redrive,
    Role,
    Status,
    Target,
    Task,
    TaskStatus,
    Team,
    TeamRole,
    User,
    Year,
    part,
)

if TYPE_CHECKING:
    from typing_extensions import Unpack

PAGE, PAGE_OF_DAYS = 100, 1_000  # runs: the most of a page of a preview, without and with `days`
BATCH = 1_000  # jobs: the most of a call
BATCH_BYTES = 2_000_000  # of a body; the API takes 2,048,000
When = datetime | str
Words = str | Iterable[str]
JobStatuses = Status | Iterable[Status]
TaskStatuses = TaskStatus | Iterable[TaskStatus]


class _Resource:
    def __init__(self, transport: Transport) -> None:
        self._api = transport


class Jobs(_Resource):
    """One-time jobs, and the runs of tasks."""

    def create(
        self,
        type: str | None = None,
        payload: Mapping[str, Any] | None = None,
        *,
        http: str | HttpRequest | None = None,
        message: str | None = None,
        target: str | None = None,
        key: str | None = None,
        on_conflict: OnConflict | None = None,
        delay: Delay | None = None,
        execute_at: When | None = None,
        idempotency_key: str | None = None,
        traceparent: str | None = None,
        owner: str | None = None,
        **options: Unpack[OneTimeOptions],
    ) -> Job:
        """Create a job and return it.

        Specify one kind of work. `http` is a URL, which is called with POST, or the payload of an `http` job. `message` is a text to
        log. `target` is the name of a named target, with its `payload`. A `type` has a `payload`, too.

        The job is due after `delay` (`"30m"`, seconds or a timedelta), or at `execute_at` (an aware datetime or RFC 3339), or at once.

        With a `key`, the job of this key that has not started is changed instead, by `on_conflict` (`replace`, `keep`, `extend`), or by
        one of the rules `debounce` (with `max_wait`), `throttle` and `singleton`. `job.outcome` says what was done. The request carries
        an idempotency key, so a repeat after a lost answer does nothing twice. With `idempotency_key`, your own, or with `after`, a job of
        a `key` is only created: an open job of the key is a Conflict.

        With `after`, the job waits until other jobs have ended: `after=[{"job": first.id}]`.

        The job belongs to the trace of the active OpenTelemetry span, if there is one, or to that of `traceparent`.

        Raises InvalidRequest, Conflict, QuotaExceeded, NoAnswer and other errors; InvalidArgument for an instant without zone.
        """
        request = JobRequest(
            type,
            payload,
            http=http,
            message=message,
            target=target,
            key=key,
            on_conflict=on_conflict,
            delay=delay,
            execute_at=execute_at,
            **options,
        )
        headers = {"Idempotency-Key": idempotency_key or new_key(), **present(traceparent=traceparent)}
        if key is not None and idempotency_key is None and not options.get("after"):
            path = f"/jobs/by-key/{segment(key)}"
            return Job.from_json(self._api.request("PUT", path, request.body, {"owner": owner}, headers=headers))
        body = {**request.body, **present(key=key)}
        return Job.from_json(self._api.request("POST", "/jobs", body, {"owner": owner}, headers=headers))

    def create_many(self, jobs: Iterable[JobRequest | Mapping[str, Any]], *, owner: str | None = None) -> BatchResult:
        """Create any number of jobs, a thousand in a call, each accepted or refused on its own.

        A mapping has the arguments of `create` as keys. Each job carries an idempotency key, its own or a new one, so that a repeat
        creates no job twice. Jobs that the API refuses for now (`unavailable`) are sent again. Results are in the order of the jobs. If
        a call fails as a whole, its exception is raised, and jobs of earlier calls exist.
        """
        items = [(job if isinstance(job, JobRequest) else JobRequest(**job)).item() for job in jobs]
        results: list[ItemResult] = []
        for some in _parts(items):
            results += self._create_part(some, len(results), owner)
        accepted = sum(one.job is not None for one in results)
        return BatchResult(accepted, len(results) - accepted, tuple(results))

    def _create_part(self, items: Sequence[Mapping[str, Any]], offset: int, owner: str | None) -> list[ItemResult]:
        results: dict[int, ItemResult] = {}
        left = list(range(len(items)))
        for last in (False, False, True):
            body = {"jobs": [items[index] for index in left]}
            answer = self._api.request("POST", "/jobs/batch", body, {"owner": owner}, idempotent=True)
            again = []
            found = BatchResult.from_json(answer).results
            if len(found) != len(left):
                raise UnexpectedAnswer(f"POST /jobs/batch answered {len(found)} results for {len(left)} jobs")
            for index, one in zip(left, found, strict=True):
                if one.error is not None and one.error.code == "unavailable" and not last:
                    again.append(index)
                else:
                    results[index] = ItemResult(offset + index, one.job, one.error, one.replayed, raw=one.raw)
            left = again
            if not left:
                break
        return [results[index] for index in range(len(items))]

    def get(self, id: str | None = None, *, key: str | None = None, owner: str | None = None) -> Job:
        """Return the job of this id, or of this key. Raises NotFound."""
        return Job.from_json(self._api.request("GET", _of(id, key, "/jobs"), query={"owner": owner}))

    def list(
        self,
        *,
        upcoming: bool = False,
        status: JobStatuses | None = None,
        tag: Words | None = None,
        type: str | None = None,
        task: str | None = None,
        from_: When | None = None,
        to: When | None = None,
        owner: str | None = None,
        limit: int | None = None,
    ) -> Iterator[Job]:
        """Yield jobs over all pages, at most `limit`: those due up to now, newest first; or with `upcoming` those ahead, next first.

        One of the `status` words matches, all `tag` words match. `from_` and `to` bound `scheduled_at`. `owner` is the id of a team of
        yours, or for operators of any owner.
        """
        query: dict[str, Any] = {"upcoming": upcoming or None, "status": status, "tag": tag, "type": type, "task": task}
        query |= {"from": from_, "to": to, "owner": owner}
        return self._api.pages("/jobs", query, Job, limit)

    def update(
        self,
        id: str | None = None,
        /,
        *,
        key: str | None = None,
        delay: Delay | None = None,
        http: str | HttpRequest | None = None,
        owner: str | None = None,
        if_match: str | None = None,
        **changes: Unpack[JobChanges],
    ) -> Job:
        """Change the job of this id, or of this key, that has not started, and return it.

        `delay` (from now, as for `create`) or `execute_at` moves it. The others are `payload` (or `http`), `message`, `max_attempts`,
        `retry`, `timeout_seconds`, `expires_at`, `tags`, `notifications` and `events`. Absent fields stay. With `if_match`, an ETag, only
        if nobody has changed it since. Raises Conflict, NotFound, InvalidRequest.
        """
        path, headers = f"/jobs/{segment(self._id(id, key, owner))}", present(**{"If-Match": if_match})
        return Job.from_json(self._api.request("PATCH", path, job_change(delay, http, changes), {"owner": owner}, headers=headers))

    def _id(self, id: str | None, key: str | None, owner: str | None) -> str:
        """Return the id of the job of this id, or of this key, for routes that only take ids."""
        return id if id is not None and key is None else (self.get(id, key=key, owner=owner)).id

    def cancel(self, id: str | None = None, *, key: str | None = None, owner: str | None = None) -> Job:
        """Cancel the job of this id, or of this key, and return it. Idempotent. Raises Conflict, NotFound.

        A running job is asked to stop.
        """
        path = f"{_of(id, key, '/jobs')}/cancel"
        return Job.from_json(self._api.request("POST", path, query={"owner": owner}, idempotent=True))

    def cancel_many(
        self,
        *,
        type: str | None = None,
        tag: Words | None = None,
        task: str | None = None,
        status: JobStatuses | None = None,
        lane: Lane | None = None,
        from_: When | None = None,
        to: When | None = None,
        all: bool | None = None,
        rate: int | None = None,
        limit: int | None = None,
        owner: str | None = None,
    ) -> Operation:
        """Start to cancel all jobs that match, `rate` a second.

        A filter or `all=True` is required. `client.operations.wait` waits for the end.
        """
        body = filters(
            present(type=type, tag=tag, task=task, status=status, lane=lane, from_=from_, to=to, all=all, rate=rate, limit=limit)
        )
        return Operation.from_json(self._api.request("POST", "/jobs/cancel", body, {"owner": owner}))

    def estimate_cancel(self, *, owner: str | None = None, **filter: Unpack[JobFilter]) -> Estimate:
        """Count what `cancel_many` with the same filter would cancel. Changes nothing."""
        body = {**filters(filter), "dry_run": True}
        return Estimate.from_json(self._api.request("POST", "/jobs/cancel", body, {"owner": owner}, idempotent=True))

    def retry(self, id: str | None = None, *, key: str | None = None, owner: str | None = None) -> Job:
        """Run a failed or killed job again, at once and from the start. Raises Conflict if it is neither, NotFound."""
        path = f"/jobs/{segment(self._id(id, key, owner))}/retry"
        return Job.from_json(self._api.request("POST", path, query={"owner": owner}))

    def replay(
        self,
        id: str | None = None,
        *,
        key: str | None = None,
        payload: Mapping[str, Any] | None = None,
        delay: Delay | None = None,
        execute_at: When | None = None,
        keep_ordering: bool | None = None,
        idempotency_key: str | None = None,
        owner: str | None = None,
    ) -> Job:
        """Create a new job that does the work of this ended one again, and return it. Its `replay_of` names the original, which stays.

        The new job has no key and waits for no other job; with `keep_ordering` it has the ordering key of the original. Named targets
        and secrets are read when it runs. Raises Conflict if the job has not ended, or its target no longer takes its work; NotFound.
        """
        path = f"/jobs/{segment(self._id(id, key, owner))}/replay"
        body = job_change(delay, None, present(payload=payload, execute_at=execute_at, keep_ordering=keep_ordering))
        headers = {"Idempotency-Key": idempotency_key or new_key()}
        return Job.from_json(self._api.request("POST", path, body, {"owner": owner}, headers=headers))

    def replay_many(
        self,
        *,
        type: str | None = None,
        tag: Words | None = None,
        task: str | None = None,
        status: JobStatuses | None = None,
        from_: When | None = None,
        to: When | None = None,
        all: bool | None = None,
        payload: Mapping[str, Any] | None = None,
        rate: int | None = None,
        limit: int | None = None,
        owner: str | None = None,
    ) -> Operation:
        """Start to replay all ended jobs that match, `rate` a second; by default those that succeeded, failed or were killed.

        A filter or `all=True` is required. A `payload` for all requires a `type`, and leaves jobs with a named target out.
        """
        chosen = present(type=type, tag=tag, task=task, status=status, from_=from_, to=to, all=all, payload=payload)
        body = filters(chosen | present(rate=rate, limit=limit))
        return Operation.from_json(self._api.request("POST", "/jobs/replay", body, {"owner": owner}))

    def estimate_replay(
        self, *, payload: Mapping[str, Any] | None = None, owner: str | None = None, **filter: Unpack[JobFilter]
    ) -> Estimate:
        """Count what `replay_many` with the same filter would replay. Changes nothing."""
        body = {**filters(filter), **present(payload=payload), "dry_run": True}
        return Estimate.from_json(self._api.request("POST", "/jobs/replay", body, {"owner": owner}, idempotent=True))

    def wait(
        self,
        id: str | None = None,
        *,
        key: str | None = None,
        timeout: float | None = None,
        poll: float = 0.5,
        owner: str | None = None,
    ) -> Job:
        """Wait until the job has ended, read it every `poll` seconds, and return it. Raises WaitTimeout after `timeout` seconds.

        With a key, that is the job that has it now. Only the first read raises NoAnswer or Unavailable: later outages of the API are
        waited through.
        """
        id = self._id(id, key, owner)
        return self._api.wait(f"/jobs/{segment(id)}", Job, f"the job {id}", timeout, poll, owner)

    def output(self, id: str | None = None, attempt: int = 1, *, key: str | None = None, owner: str | None = None) -> AttemptText:
        """Return all that an attempt put out. Raises NotFound, also if it has expired."""
        path = f"/jobs/{segment(self._id(id, key, owner))}/attempts/{attempt}/output"
        return AttemptText.from_json(self._api.request("GET", path, query={"owner": owner}))

    def log(self, id: str | None = None, attempt: int = 1, *, key: str | None = None, owner: str | None = None) -> AttemptText:
        """Return all that was logged during an attempt. Raises NotFound, also if it has expired."""
        path = f"/jobs/{segment(self._id(id, key, owner))}/attempts/{attempt}/log"
        return AttemptText.from_json(self._api.request("GET", path, query={"owner": owner}))


class Tasks(_Resource):
    """Tasks: schedules, and what their runs do."""

    def create(
        self,
        name: str,
        type: str | None = None,
        payload: Mapping[str, Any] | None = None,
        *,
        http: str | HttpRequest | None = None,
        message: str | None = None,
        target: str | None = None,
        key: str | None = None,
        schedule: ScheduleFields | None = None,
        cron: OneOrMore | None = None,
        rate: Rate | None = None,
        at: When | None = None,
        time_zone: str | None = None,
        idempotency_key: str | None = None,
        owner: str | None = None,
        **options: Unpack[TaskOptions],
    ) -> Task:
        """Create a task and return it with its next runs.

        The work is specified as for `client.jobs.create`. The schedule is `schedule`, or its parts: one of `cron` (an expression or
        several), `every` (`"2 weeks"`, with `times` and `weekdays`), `rate` (`"10 minutes"` or a timedelta) and `at`, with a `time_zone`.
        Without a schedule the task runs once, at once.

        Raises InvalidRequest, Conflict if another task has the key.
        """
        chosen = present(name=name, type=type, payload=payload, http=http, message=message, target=target, key=key, schedule=schedule)
        chosen |= present(cron=cron, rate=rate, at=at, time_zone=time_zone)
        headers = {"Idempotency-Key": idempotency_key or new_key()}
        body = bodies.task({**chosen, **options})
        return Task.from_json(self._api.request("POST", "/tasks", body, {"owner": owner}, headers=headers))

    def put(self, key: str, *, dry_run: bool = False, owner: str | None = None, **fields: Unpack[TaskFields]) -> PutResult:
        """Create the task of this key, or edit it so that it is as the fields say; they are those of `create`. Idempotent.

        Fields that are left out get their defaults. A task that is as requested keeps its generation (`unchanged`). With `dry_run` the API
        only checks the request and says what it would do; a task that would be created has no id yet, and the one returned is not kept.
        """
        query = {"dry_run": dry_run or None, "owner": owner}
        return PutResult.from_json(self._api.request("PUT", f"/tasks/by-key/{segment(key)}", bodies.task(fields), query))

    def get(self, id: str | None = None, *, key: str | None = None, owner: str | None = None) -> Task:
        """Return the task of this id, or of this key, with its next runs. Raises NotFound."""
        return Task.from_json(self._api.request("GET", _of(id, key, "/tasks"), query={"owner": owner}))

    def list(
        self,
        *,
        name: str | None = None,
        tag: Words | None = None,
        type: str | None = None,
        status: TaskStatuses | None = None,
        owner: str | None = None,
        limit: int | None = None,
    ) -> Iterator[Task]:
        """Yield tasks over all pages, newest first, at most `limit`. `name` is a part of the name."""
        return self._api.pages("/tasks", {"name": name, "tag": tag, "type": type, "status": status, "owner": owner}, Task, limit)

    def update(
        self,
        id: str | None = None,
        /,
        *,
        key: str | None = None,
        owner: str | None = None,
        if_match: str | None = None,
        **changes: Unpack[TaskChanges],
    ) -> Task:
        """Change some fields of the task of this id, or of this key: absent ones stay, None removes a field.

        With `generation`, only if nobody has edited the task since.
        """
        path, headers = f"/tasks/{segment(self._id(id, key, owner))}", present(**{"If-Match": if_match})
        return Task.from_json(self._api.request("PATCH", path, bodies.task(changes), {"owner": owner}, headers=headers))

    def replace(
        self,
        id: str | None = None,
        /,
        *,
        key: str | None = None,
        owner: str | None = None,
        if_match: str | None = None,
        **fields: Unpack[TaskFields],
    ) -> Task:
        """Replace the task of this id, or of this key, by what the fields say, as for `create`; absent ones get their defaults.

        It takes the `raw` of a task, too. Beside an id, `key` must be the task's own.
        """
        body = bodies.task({**fields, **(present(key=key) if id is not None else {})})
        path, headers = f"/tasks/{segment(self._id(id, None if id is not None else key, owner))}", present(**{"If-Match": if_match})
        return Task.from_json(self._api.request("PUT", path, body, {"owner": owner}, headers=headers))

    def _id(self, id: str | None, key: str | None, owner: str | None) -> str:
        """Return the id of the task of this id, or of this key, for routes that only take ids."""
        return id if id is not None and key is None else (self.get(id, key=key, owner=owner)).id

    def delete(self, id: str | None = None, *, key: str | None = None, owner: str | None = None, if_match: str | None = None) -> None:
        """Delete a task with its future runs. Its past jobs stay. Raises NotFound."""
        path = f"/tasks/{segment(self._id(id, key, owner))}"
        self._api.request("DELETE", path, query={"owner": owner}, headers=present(**{"If-Match": if_match}))

    def pause(self, id: str | None = None, *, key: str | None = None, reason: str | None = None, owner: str | None = None) -> Task:
        """Pause a task: no run starts until it is resumed. Idempotent."""
        path = f"/tasks/{segment(self._id(id, key, owner))}/pause"
        return Task.from_json(self._api.request("POST", path, present(reason=reason), {"owner": owner}, idempotent=True))

    def resume(self, id: str | None = None, *, key: str | None = None, owner: str | None = None) -> Task:
        """Resume a paused task. Runs that the pause has suppressed are not made up for. Idempotent."""
        path = f"/tasks/{segment(self._id(id, key, owner))}/resume"
        return Task.from_json(self._api.request("POST", path, query={"owner": owner}, idempotent=True))

    def run(
        self,
        id: str | None = None,
        *,
        key: str | None = None,
        overlap: Overlap | None = None,
        group: str | None = None,
        idempotency_key: str | None = None,
        owner: str | None = None,
    ) -> Job:
        """Run a task now, outside its schedule, and return the job. `group` is the id of an open group that the run joins.

        Raises Conflict if the task is paused, or the group is not open.
        """
        headers = {"Idempotency-Key": idempotency_key or new_key()}
        path = f"/tasks/{segment(self._id(id, key, owner))}/run"
        return Job.from_json(self._api.request("POST", path, present(overlap=overlap, group=group), {"owner": owner}, headers=headers))

    def next(self, id: str | None = None, count: int = 10, *, key: str | None = None, owner: str | None = None) -> list_[NextRun]:
        """Return the next runs of a task, 1 to 100."""
        path = f"/tasks/{segment(self._id(id, key, owner))}/next"
        return _runs(self._api.request("GET", path, query={"count": count, "owner": owner}))

    def calendar(
        self,
        id: str | None = None,
        *,
        key: str | None = None,
        from_: date | str | None = None,
        days: int | None = None,
        owner: str | None = None,
    ) -> Year:
        """Return the past and the planned runs of a task by date, up to 366 `days` from `from_` (default: today)."""
        query = {"from": from_ and str(from_), "days": days, "owner": owner}
        return Year.from_json(self._api.request("GET", f"/tasks/{segment(self._id(id, key, owner))}/calendar", query=query))

    def crowded(self, *, days: int | None = None, limit: int | None = None, owner: str | None = None) -> Crowded:
        """Return the minutes of the next days (1 to 7, default 1) in which the most runs of tasks begin at the same time."""
        return Crowded.from_json(self._api.request("GET", "/forecast/crowded", query={"days": days, "limit": limit, "owner": owner}))

    def jobs(
        self,
        id: str | None = None,
        *,
        key: str | None = None,
        upcoming: bool = False,
        status: JobStatuses | None = None,
        from_: When | None = None,
        to: When | None = None,
        owner: str | None = None,
        limit: int | None = None,
    ) -> Iterator[Job]:
        """Yield the runs of a task over all pages, as `client.jobs.list` does."""
        query = {"upcoming": upcoming or None, "status": status, "from": from_, "to": to, "owner": owner}
        yield from self._api.pages(f"/tasks/{segment(self._id(id, key, owner))}/jobs", query, Job, limit)

    def pause_many(self, *, reason: str | None = None, owner: str | None = None, **filter: Unpack[TaskFilter]) -> Operation:
        """Start to pause all tasks that match `type`, `tag`, `name`, or with `all=True` all, `rate` a second, at most `limit`."""
        return self._many("pause", {**filter, "reason": reason}, owner)

    def resume_many(self, *, owner: str | None = None, **filter: Unpack[TaskFilter]) -> Operation:
        """Start to resume all tasks that match; see `pause_many`."""
        return self._many("resume", filter, owner)

    def delete_many(self, *, owner: str | None = None, **filter: Unpack[TaskFilter]) -> Operation:
        """Start to delete all tasks that match, also by `status`; see `pause_many`."""
        return self._many("delete", filter, owner)

    def estimate(self, action: Literal["pause", "resume", "delete"], *, owner: str | None = None, **filter: Unpack[TaskFilter]) -> Estimate:
        """Count the tasks that an operation on many would change. Changes nothing."""
        body = {**filters(filter), "dry_run": True}
        return Estimate.from_json(self._api.request("POST", f"/tasks/{action}", body, {"owner": owner}, idempotent=True))

    def _many(self, action: str, filter: Mapping[str, Any], owner: str | None) -> Operation:
        return Operation.from_json(self._api.request("POST", f"/tasks/{action}", filters(filter), {"owner": owner}))


class Schedules(_Resource):
    """Schedules that are not saved."""

    def preview(
        self,
        *,
        cron: OneOrMore | None = None,
        rate: Rate | None = None,
        at: When | None = None,
        time_zone: str | None = None,
        count: int = 10,
        after: When | None = None,
        days: int | None = None,
        **parts: Unpack[ScheduleOptions],
    ) -> list_[NextRun]:
        """Return the next `count` runs of a schedule, up to 10,000, from `after` (default: now), with `days` within 1 to 366 days.

        Saves nothing. Raises InvalidRequest.
        """
        body = bodies.schedule({**present(cron=cron, rate=rate, at=at, time_zone=time_zone), **parts}) | present(after=after, days=days)
        most = PAGE if days is None else PAGE_OF_DAYS
        found, left, cursor = list_[NextRun](), count, None
        while True:
            page = {**body, "count": min(left, most), **present(cursor=cursor)}
            data = self._api.request("POST", "/schedules/preview", page, idempotent=True)
            runs = _runs(data)
            found += runs
            left, cursor = left - sum(run.at is not None for run in runs), data.get("cursor")
            if cursor is None or left <= 0 or not runs:
                return found

    def calendar(
        self,
        *,
        cron: OneOrMore | None = None,
        rate: Rate | None = None,
        at: When | None = None,
        time_zone: str | None = None,
        from_: date | str | None = None,
        days: int | None = None,
        **parts: Unpack[ScheduleOptions],
    ) -> Year:
        """Return the runs of a schedule by date, up to 366 `days` from `from_` (default: today). Saves nothing. Raises InvalidRequest."""
        body = bodies.schedule({**present(cron=cron, rate=rate, at=at, time_zone=time_zone), **parts})
        body |= present(days=days, first_day=from_ and str(from_))
        return Year.from_json(self._api.request("POST", "/schedules/calendar", body, idempotent=True))


class Calendars(_Resource):
    """Calendars: named sets of dates, on which tasks do not run."""

    def list(self, *, owner: str | None = None) -> Iterator[Calendar]:
        """Yield the calendars of an owner by name, without their dates."""
        return self._api.whole("/calendars", {"owner": owner}, Calendar)

    def get(self, name: str, *, owner: str | None = None) -> Calendar:
        """Return a calendar with its dates. Raises NotFound."""
        return Calendar.from_json(self._api.request("GET", f"/calendars/{segment(name)}", query={"owner": owner}))

    def put(
        self,
        name: str,
        dates: Iterable[date | str],
        *,
        source: str | None = None,
        covers_until: date | str | None = None,
        owner: str | None = None,
    ) -> PutCalendar:
        """Create or replace a calendar of at most 5,000 dates. Idempotent. Raises InvalidRequest, Conflict.

        `source` says where the dates come from, and `covers_until` up to which date they are known; tasks with later runs have a warning.
        `punctual.calendars` reads dates from an ICS file, and has public holidays.
        """
        body = {"dates": [str(each) for each in dates], **present(source=source, covers_until=covers_until and str(covers_until))}
        return PutCalendar.from_json(self._api.request("PUT", f"/calendars/{segment(name)}", body, {"owner": owner}))

    def delete(self, name: str, *, owner: str | None = None) -> None:
        """Delete a calendar. Raises NotFound, and Conflict, which names the tasks, if a task uses it."""
        self._api.request("DELETE", f"/calendars/{segment(name)}", query={"owner": owner})


class DeadLetters(_Resource):
    """Failed and killed jobs, by error."""

    def list(
        self,
        *,
        task: str | None = None,
        type: str | None = None,
        from_: When | None = None,
        to: When | None = None,
        owner: str | None = None,
        limit: int | None = None,
    ) -> Iterator[DeadLetterGroup]:
        """Yield the groups of failed and killed jobs by error, the most frequent first, a hundred at most."""
        query = {"task": task, "type": type, "from": from_, "to": to, "owner": owner}
        return self._api.pages("/dead-letters", query, DeadLetterGroup, limit)

    def jobs(
        self,
        fingerprint: str,
        *,
        task: str | None = None,
        type: str | None = None,
        from_: When | None = None,
        to: When | None = None,
        owner: str | None = None,
        limit: int | None = None,
    ) -> Iterator[Job]:
        """Yield the jobs of one group over all pages."""
        query = {"task": task, "type": type, "from": from_, "to": to, "owner": owner}
        return self._api.pages(f"/dead-letters/{segment(fingerprint)}/jobs", query, Job, limit)

    def redrive(
        self,
        *,
        fingerprint: str | None = None,
        task: str | None = None,
        type: str | None = None,
        from_: When | None = None,
        to: When | None = None,
        all: bool | None = None,
        rate: int | None = None,
        limit: int | None = None,
        owner: str | None = None,
    ) -> Redrive:
        """Start to run all that match again, `rate` a second. A filter or `all=True` is required. `wait` waits for it."""
        body = filters(present(fingerprint=fingerprint, task=task, type=type, from_=from_, to=to, all=all, rate=rate, limit=limit))
        return Redrive.from_json(self._api.request("POST", "/dead-letters/redrive", body, {"owner": owner}))

    def get(self, id: str, *, owner: str | None = None) -> Redrive:
        """Return the progress of a redrive. Raises NotFound."""
        return Redrive.from_json(self._api.request("GET", f"/dead-letters/redrives/{segment(id)}", query={"owner": owner}))

    def abort(self, id: str, *, owner: str | None = None) -> Redrive:
        """Abort a redrive. Jobs that it has started go on. Idempotent."""
        path = f"/dead-letters/redrives/{segment(id)}/abort"
        return Redrive.from_json(self._api.request("POST", path, query={"owner": owner}, idempotent=True))

    def wait(self, id: str, *, timeout: float | None = None, poll: float = 1.0, owner: str | None = None) -> Redrive:
        """Wait until a redrive has ended and return it. Raises WaitTimeout."""
        return self._api.wait(f"/dead-letters/redrives/{segment(id)}", Redrive, f"the redrive {id}", timeout, poll, owner)


class Groups(_Resource):
    """Groups of jobs, and the jobs that start when all jobs of a group have ended."""

    def create(
        self,
        jobs: Iterable[JobRequest | Mapping[str, Any]] = (),
        *,
        name: str | None = None,
        on_complete: JobRequest | Mapping[str, Any] | None = None,
        on_success: JobRequest | Mapping[str, Any] | None = None,
        on_failure: JobRequest | Mapping[str, Any] | None = None,
        seal: bool | None = None,
        seal_within: Delay | None = None,
        idempotency_key: str | None = None,
        owner: str | None = None,
    ) -> MadeGroup:
        """Create a group with up to a thousand jobs: either all of them are accepted, or none. A mapping has the arguments of `JobRequest`.

        Each call-back is a job without time. With jobs the group is sealed, unless `seal=False`. An open group takes further jobs by
        `group=` of `client.jobs.create`, of the jobs of `create_many` and of `client.tasks.run`, until you call `seal`. Call it within
        `seal_within` (a day), or the group is abandoned.

        The request carries an idempotency key, so a repeat after a lost answer does nothing twice. Raises InvalidRequest, Conflict.
        """
        calls = {"on_complete": on_complete, "on_success": on_success, "on_failure": on_failure}
        body = {
            "jobs": [bodies.member(job) for job in jobs],
            **present(name=name, seal=seal, seal_within=bodies.duration(seal_within)),
            **{kind: bodies.member(call) for kind, call in calls.items() if call is not None},
        }
        headers = {"Idempotency-Key": idempotency_key or new_key()}
        return MadeGroup.from_json(self._api.request("POST", "/groups", body, {"owner": owner}, headers=headers))

    def get(self, id: str, *, owner: str | None = None) -> Group:
        """Return a group with the number of its jobs by status. Raises NotFound."""
        return Group.from_json(self._api.request("GET", f"/groups/{segment(id)}", query={"owner": owner}))

    def list(self, *, owner: str | None = None, limit: int | None = None) -> Iterator[Group]:
        """Yield groups over all pages, at most `limit`, the newest first."""
        return self._api.pages("/groups", {"owner": owner}, Group, limit)

    def jobs(self, id: str, *, status: JobStatuses | None = None, owner: str | None = None, limit: int | None = None) -> Iterator[Job]:
        """Yield the jobs of a group over all pages, at most `limit`, in the order in which they joined.

        With `status`, only those that ended like this: `succeeded`, `failed`, `killed`, `cancelled`, `skipped`. Raises NotFound.
        """
        return self._api.pages(f"/groups/{segment(id)}/jobs", {"status": status, "owner": owner}, Job, limit)

    def seal(self, id: str, *, owner: str | None = None) -> Group:
        """Let no other job join, and return the group. Its call-backs start once all its jobs have ended. Idempotent.

        Raises Conflict if the group was abandoned, NotFound.
        """
        return Group.from_json(self._api.request("POST", f"/groups/{segment(id)}/seal", query={"owner": owner}, idempotent=True))

    def cancel(self, id: str, *, owner: str | None = None) -> Group:
        """Seal a group, and cancel its jobs that have not started, within moments. Running jobs continue. Idempotent.

        Raises Conflict if all its jobs have ended, or it was abandoned; NotFound.
        """
        return Group.from_json(self._api.request("POST", f"/groups/{segment(id)}/cancel", query={"owner": owner}, idempotent=True))

    def wait(self, id: str, *, timeout: float | None = None, poll: float = 1.0, owner: str | None = None) -> Group:
        """Wait until all jobs of a group have ended, or it was abandoned, and return it. Raises WaitTimeout after `timeout` seconds."""
        return self._api.wait(f"/groups/{segment(id)}", Group, f"the group {id}", timeout, poll, owner)


class Operations(_Resource):
    """Operations on many jobs or tasks, redrives included."""

    def list(self, *, owner: str | None = None, limit: int | None = None) -> Iterator[Operation]:
        """Yield operations: first those that run, then the ended ones, the newest first."""
        return self._api.pages("/operations", {"owner": owner}, Operation, limit)

    def get(self, id: str, *, owner: str | None = None) -> Operation:
        """Return the progress of an operation. Raises NotFound."""
        return Operation.from_json(self._api.request("GET", f"/operations/{segment(id)}", query={"owner": owner}))

    def abort(self, id: str, *, owner: str | None = None) -> Operation:
        """Abort an operation. Changes that it has made stay. Idempotent."""
        path = f"/operations/{segment(id)}/abort"
        return Operation.from_json(self._api.request("POST", path, query={"owner": owner}, idempotent=True))

    def wait(self, id: str, *, timeout: float | None = None, poll: float = 1.0, owner: str | None = None) -> Operation:
        """Wait until an operation has ended and return it. Raises WaitTimeout."""
        return self._api.wait(f"/operations/{segment(id)}", Operation, f"the operation {id}", timeout, poll, owner)


class Monitors(_Resource):
    """Monitors of work that runs elsewhere and pings."""

    def put(
        self,
        key: str,
        name: str,
        *,
        schedule: ScheduleFields | None = None,
        period_seconds: int | None = None,
        grace_seconds: int | None = None,
        max_duration_seconds: int | None = None,
        notifications: NotificationFields | None = None,
        owner: str | None = None,
    ) -> Monitor:
        """Create a monitor, or replace the one with this key. It has a schedule or a period. Its ping URL stays. Raises InvalidRequest."""
        times = present(period_seconds=period_seconds, grace_seconds=grace_seconds, max_duration_seconds=max_duration_seconds)
        body = {"name": name, **times, **present(schedule=schedule, notifications=notifications)}
        return Monitor.from_json(self._api.request("PUT", f"/monitors/{segment(key)}", body, {"owner": owner}))

    def get(self, key: str, *, owner: str | None = None) -> Monitor:
        """Return a monitor. Raises NotFound."""
        return Monitor.from_json(self._api.request("GET", f"/monitors/{segment(key)}", query={"owner": owner}))

    def list(self, *, owner: str | None = None, limit: int | None = None) -> Iterator[Monitor]:
        """Yield monitors over all pages, at most `limit`, by key."""
        return self._api.pages("/monitors", {"owner": owner}, Monitor, limit)

    def history(self, key: str, *, owner: str | None = None) -> Sequence[MonitorEvent]:
        """Return the last pings and changes of a monitor, a hundred at most, the newest first. Raises NotFound."""
        answer = self._api.request("GET", f"/monitors/{segment(key)}/history", query={"owner": owner})
        return [MonitorEvent.from_json(each) for each in part(answer, "items", list)]

    def pause(self, key: str, *, owner: str | None = None) -> Monitor:
        """Stop watching. Pings are recorded, and nothing else happens. Idempotent. Raises NotFound."""
        return self._act(key, "pause", owner)

    def resume(self, key: str, *, owner: str | None = None) -> Monitor:
        """Begin a new period. Idempotent. Raises NotFound."""
        return self._act(key, "resume", owner)

    def renew_token(self, key: str, *, owner: str | None = None) -> Monitor:
        """Give a monitor a new ping URL; the former one is invalid from then on. Raises NotFound."""
        return Monitor.from_json(self._api.request("POST", f"/monitors/{segment(key)}/token", query={"owner": owner}))

    def delete(self, key: str, *, owner: str | None = None) -> None:
        """Delete a monitor. Its ping URL is invalid from then on. Raises NotFound."""
        self._api.request("DELETE", f"/monitors/{segment(key)}", query={"owner": owner})

    def _act(self, key: str, verb: str, owner: str | None) -> Monitor:
        path = f"/monitors/{segment(key)}/{verb}"
        return Monitor.from_json(self._api.request("POST", path, query={"owner": owner}, idempotent=True))


class Targets(_Resource):
    """Named targets. Administrators change them."""

    def list(self, *, limit: int | None = None) -> Iterator[Target]:
        """Yield the named targets, by name."""
        return self._api.pages("/targets", {}, Target, limit)

    def get(self, name: str) -> Target:
        """Return a named target. Raises NotFound."""
        return Target.from_json(self._api.request("GET", f"/targets/{segment(name)}"))

    def create(self, name: str, kind: str, *, defaults: Mapping[str, Any] | None = None, **fields: Unpack[TargetFields]) -> Target:
        """Register a target. Raises Conflict if it exists.

        `fields`: `locked`, `payload_schema`, `rate`, `concurrency`, `limit`, `network`, `allow`, `description`, `enabled`.
        """
        body = {"name": name, "kind": kind, **present(defaults=defaults), **fields}
        return Target.from_json(self._api.request("POST", "/targets", body))

    def replace(
        self,
        name: str,
        /,
        kind: str,
        *,
        defaults: Mapping[str, Any] | None = None,
        if_match: str | None = None,
        **fields: Unpack[TargetFields],
    ) -> Target:
        """Replace a target; absent fields get their defaults. With `version`, only if nobody has changed it since. Raises Conflict."""
        body = {"kind": kind, **present(defaults=defaults), **fields}
        headers = present(**{"If-Match": if_match})
        return Target.from_json(self._api.request("PUT", f"/targets/{segment(name)}", body, headers=headers))

    def delete(self, name: str) -> None:
        """Delete a target. Jobs that name it fail when they start. Raises NotFound."""
        self._api.request("DELETE", f"/targets/{segment(name)}")


class Receivers(_Resource):
    """Named receivers of notices."""

    def list(self, *, owner: str | None = None) -> Iterator[Receiver]:
        """Yield the receivers of an owner, by name, without their addresses."""
        return self._api.whole("/receivers", {"owner": owner}, Receiver)

    def get(self, name: str, *, owner: str | None = None) -> Receiver:
        """Return a receiver, without its address. Raises NotFound."""
        return Receiver.from_json(self._api.request("GET", f"/receivers/{segment(name)}", query={"owner": owner}))

    def put(
        self, name: str, /, kind: ReceiverKind, address: str | None = None, *, owner: str | None = None, **fields: Unpack[ReceiverFields]
    ) -> Receiver:
        """Create or replace a receiver.

        `address` is an e-mail address, a URL or the routing key of a PagerDuty service; without it, the stored one stays.
        """
        body = {"kind": kind, **present(address=address), **fields}
        path = f"/receivers/{segment(name)}"
        return Receiver.from_json(self._api.request("PUT", path, body, {"owner": owner}, idempotent=True))

    def test(self, name: str, *, owner: str | None = None) -> ReceiverTest:
        """Send a notice that is marked as a test. `get` then returns its result, in `tested_at` or in `failed_at` and `error`."""
        path = f"/receivers/{segment(name)}/test"
        return ReceiverTest.from_json(self._api.request("POST", path, query={"owner": owner}, idempotent=True))

    def default_alerts(self, *, owner: str | None = None) -> DefaultAlerts:
        """Return the rules about time for the tasks that have notifications, and no alerts of their own."""
        return DefaultAlerts.from_json(self._api.request("GET", "/default-alerts", query={"owner": owner}))

    def put_default_alerts(
        self,
        *,
        late_after_seconds: int | None = None,
        max_duration_seconds: int | None = None,
        missed: bool = False,
        owner: str | None = None,
    ) -> PutDefaultAlerts:
        """Replace the default alerts; without a rule, there are none. An operation replaces the future runs of their tasks. Idempotent."""
        rules = present(late_after_seconds=late_after_seconds, max_duration_seconds=max_duration_seconds)
        body = {**rules, "missed": missed}
        return PutDefaultAlerts.from_json(self._api.request("PUT", "/default-alerts", body, {"owner": owner}, idempotent=True))

    def delete(self, name: str, *, owner: str | None = None) -> None:
        """Delete a receiver. Raises NotFound, and Conflict while a task names it."""
        self._api.request("DELETE", f"/receivers/{segment(name)}", query={"owner": owner})


class Users(_Resource):
    """Users. Operators see them, administrators change them."""

    def list(self, *, limit: int | None = None) -> Iterator[User]:
        """Yield all users, in no order."""
        return self._api.pages("/users", {}, User, limit)

    def get(self, id: str) -> User:
        """Return a user. Raises NotFound."""
        return User.from_json(self._api.request("GET", f"/users/{segment(id)}"))

    def create(
        self,
        username: str,
        password: str,
        *,
        role: Role | None = None,
        job_weight: float | None = None,
        quotas: QuotaFields | None = None,
    ) -> User:
        """Create a user. Raises Conflict if the name is taken."""
        body = {"username": username, "password": password, **present(role=role, job_weight=job_weight, quotas=quotas)}
        return User.from_json(self._api.request("POST", "/users", body))

    def update(self, id: str, /, **changes: Unpack[UserChanges]) -> User:
        """Change `role`, `job_weight` or `quotas`."""
        return User.from_json(self._api.request("PATCH", f"/users/{segment(id)}", changes, idempotent=True))

    def disable(self, id: str) -> User:
        """Disable a user: no token is accepted any more within half a minute, and the user's jobs wait. Idempotent."""
        return User.from_json(self._api.request("POST", f"/users/{segment(id)}/disable", idempotent=True))

    def enable(self, id: str) -> User:
        """Enable a disabled user. Idempotent."""
        return User.from_json(self._api.request("POST", f"/users/{segment(id)}/enable", idempotent=True))

    def delete(self, id: str) -> None:
        """Delete a user; the user's jobs are cancelled when they are due."""
        self._api.request("DELETE", f"/users/{segment(id)}")

    def set_password(self, id: str, password: str) -> User:
        """Set the password of a user, which signs the user out everywhere."""
        return User.from_json(self._api.request("PUT", f"/users/{segment(id)}/password", {"password": password}))

    def identities(self, id: str) -> Sequence[Identity]:
        """Return the subjects of the identity provider as which a user signs in."""
        return _identities(self._api.request("GET", f"/users/{segment(id)}/identities"))

    def link(self, id: str, provider: str, subject: str) -> Sequence[Identity]:
        """Let a user sign in by single sign-on too, as this subject of the provider. Returns all identities of the user."""
        return _identities(self._api.request("PUT", f"/users/{segment(id)}/identities/{segment(provider)}", {"subject": subject}))

    def unlink(self, id: str, provider: str) -> Sequence[Identity]:
        """Take the identity of a provider away from a user, and end all sessions of the user. Returns the others."""
        return _identities(self._api.request("DELETE", f"/users/{segment(id)}/identities/{segment(provider)}"))

    def reset_second_factor(self, id: str) -> None:
        """Take the second factor of a user away, who signs in with the password alone until there is a new one."""
        self._api.request("DELETE", f"/users/{segment(id)}/totp")


class Teams(_Resource):
    """Teams: owners of tasks and jobs with several members. Managers of a team change it."""

    def list(self, *, all: bool = False, limit: int | None = None) -> Iterator[Team]:
        """Yield the teams of the caller, or with `all` (operators) all teams."""
        return self._api.pages("/teams", {"all": all or None}, Team, limit)

    def create(self, name: str) -> Team:
        """Create a team, and return it. The caller is its first manager."""
        return Team.from_json(self._api.request("POST", "/teams", {"name": name}))

    def get(self, id: str) -> Team:
        """Return a team. Raises NotFound."""
        return Team.from_json(self._api.request("GET", f"/teams/{segment(id)}"))

    def rename(self, id: str, name: str) -> Team:
        """Give a team another name."""
        return Team.from_json(self._api.request("PATCH", f"/teams/{segment(id)}", {"name": name}, idempotent=True))

    def delete(self, id: str) -> None:
        """Delete a team; its members, invitations, API keys and receivers end. Raises NotFound, and Conflict while a task is active."""
        self._api.request("DELETE", f"/teams/{segment(id)}")

    def members(self, id: str) -> Iterator[Member]:
        """Yield the members of a team."""
        return self._api.whole(f"/teams/{segment(id)}/members", {}, Member)

    def set_member(self, id: str, user_id: str, role: TeamRole) -> Member:
        """Give a member another role; administrators add a user, too. Raises Conflict if the team would lose its last manager, NotFound."""
        path = f"/teams/{segment(id)}/members/{segment(user_id)}"
        return Member.from_json(self._api.request("PUT", path, {"role": role}))

    def remove_member(self, id: str, user_id: str) -> None:
        """Remove a member, or leave a team. Raises NotFound, and Conflict if the team would lose its last manager."""
        self._api.request("DELETE", f"/teams/{segment(id)}/members/{segment(user_id)}")

    def invite(self, id: str, role: TeamRole, *, expires_in_days: int | None = None) -> Invitation:
        """Create an invitation, and return it with its `token`, which no other call returns. It is used once."""
        body = {"role": role, **present(expires_in_days=expires_in_days)}
        return Invitation.from_json(self._api.request("POST", f"/teams/{segment(id)}/invitations", body))

    def invitations(self, id: str) -> Iterator[Invitation]:
        """Yield the invitations of a team that were neither used nor withdrawn."""
        return self._api.whole(f"/teams/{segment(id)}/invitations", {}, Invitation)

    def withdraw(self, id: str, invitation_id: str) -> None:
        """Withdraw an invitation. Raises NotFound."""
        self._api.request("DELETE", f"/teams/{segment(id)}/invitations/{segment(invitation_id)}")

    def accept(self, token: str) -> Team:
        """Become a member of the team of an invitation, and return the team. Raises NotFound if the invitation was used or has expired."""
        return Team.from_json(self._api.request("POST", "/invitations/accept", {"token": token}))


class Keys(_Resource):
    """API keys: the credentials of programs."""

    def list(self, *, owner: str | None = None) -> Iterator[ApiKey]:
        """Yield the API keys of an owner, without their secrets, the oldest first."""
        return self._api.whole("/keys", {"owner": owner}, ApiKey)

    def create(self, name: str, scopes: Iterable[str], *, expires_in_days: int | None = None, owner: str | None = None) -> ApiKey:
        """Create an API key, and return it with the `key` itself, which no other call returns.

        `scopes` are `jobs:read`, `jobs:write`, `tasks:read`, `tasks:write`, `jobs:*`, `tasks:*` and `admin`. A key never has more rights
        than the person who created it.
        """
        body = {"name": name, "scopes": [*scopes], **present(expires_in_days=expires_in_days)}
        return ApiKey.from_json(self._api.request("POST", "/keys", body, {"owner": owner}))

    def get(self, id: str, *, owner: str | None = None) -> ApiKey:
        """Return an API key by its id, without its secret. Raises NotFound."""
        return ApiKey.from_json(self._api.request("GET", f"/keys/{segment(id)}", query={"owner": owner}))

    def revoke(self, id: str, *, owner: str | None = None) -> None:
        """Revoke an API key by its id: within half a minute, it is accepted no more. Raises NotFound."""
        self._api.request("DELETE", f"/keys/{segment(id)}", query={"owner": owner})

    def revoke_leaked(self, key: str) -> None:
        """Revoke an API key by the key itself, which everybody may do who has found one. No credentials are necessary. Idempotent."""
        self._api.request("POST", "/keys/revoke", {"key": key}, idempotent=True)


class Principals(_Resource):
    """AWS roles that act for an owner. Operators see them, administrators change them."""

    def list(self) -> Iterator[Principal]:
        """Yield all principals, by ARN."""
        return self._api.whole("/principals", {}, Principal)

    def create(self, arn: str, owner: str, scopes: Iterable[str], *, unique_id: str | None = None) -> Principal:
        """Let an AWS role, or all that match a pattern, act for the owner of this id, within scopes. Raises Conflict if the ARN has one.

        `unique_id` is the id of the role (`AROA…`), by which SQS names a sender.
        """
        body = {"arn": arn, "owner": owner, "scopes": [*scopes], **present(unique_id=unique_id)}
        return Principal.from_json(self._api.request("POST", "/principals", body))

    def get(self, id: str) -> Principal:
        """Return a principal. Raises NotFound."""
        return Principal.from_json(self._api.request("GET", f"/principals/{segment(id)}"))

    def update(self, id: str, /, **changes: Unpack[PrincipalChanges]) -> Principal:
        """Change `owner`, `scopes` or `unique_id`. Absent ones stay."""
        return Principal.from_json(self._api.request("PATCH", f"/principals/{segment(id)}", changes, idempotent=True))

    def delete(self, id: str) -> None:
        """Delete a principal: within half a minute, its role is accepted no more. Raises NotFound."""
        self._api.request("DELETE", f"/principals/{segment(id)}")


class Intake(_Resource):
    """Dead letters of the intake queues: messages of which no job was made, or not all jobs."""

    def list(self, *, unknown: bool = False, owner: str | None = None, limit: int | None = None) -> Iterator[IntakeLetter]:
        """Yield the dead letters of an owner, the last sent first, or with `unknown` (operators) those of unknown senders."""
        query = {"unknown": True} if unknown else {"owner": owner}
        return self._api.pages("/intake/dead-letters", query, IntakeLetter, limit)

    def get(self, message_id: str, *, owner: str | None = None) -> IntakeLetter:
        """Return a dead letter with its body. Raises NotFound."""
        path = f"/intake/dead-letters/{segment(message_id)}"
        return IntakeLetter.from_json(self._api.request("GET", path, query={"owner": owner}))

    def retry(self, message_id: str, body: Mapping[str, Any] | None = None, *, owner: str | None = None) -> BatchResult:
        """Create the jobs of a message, or of a corrected `body`, and return what became of each. Idempotent.

        If all are accepted, the dead letter is gone; if some are, it has the others. Raises InvalidRequest, NotFound, Conflict.
        """
        path = f"/intake/dead-letters/{segment(message_id)}/retry"
        answer = self._api.request("POST", path, present(body=body), {"owner": owner}, idempotent=True)
        return BatchResult.from_json(answer)

    def delete(self, message_id: str, *, owner: str | None = None) -> None:
        """Delete a dead letter. Raises NotFound."""
        self._api.request("DELETE", f"/intake/dead-letters/{segment(message_id)}", query={"owner": owner})


class OrderingKeys(_Resource):
    """The queues of ordering keys."""

    def get(self, ordering_key: str, *, owner: str | None = None) -> OrderingKey:
        """Return the state of an ordering key. Raises NotFound."""
        return OrderingKey.from_json(self._api.request("GET", f"/ordering-keys/{segment(ordering_key)}", query={"owner": owner}))

    def resume(self, ordering_key: str, *, owner: str | None = None) -> OrderingKey:
        """Let the jobs behind the failed one go on. Raises Conflict if the key is not paused."""
        path = f"/ordering-keys/{segment(ordering_key)}/resume"
        return OrderingKey.from_json(self._api.request("POST", path, query={"owner": owner}))


class System(_Resource):
    """Lanes and breakers of the whole stage. Operators see them, administrators change them."""

    def status(self) -> list_[LaneState]:
        """Return the state of each lane."""
        return _lanes(self._api.request("GET", "/system"))

    def pause(self, lane: Lane | None = None, *, all: bool | None = None, reason: str | None = None) -> list_[LaneState]:
        """Pause one lane (`one-time`, `recurring`, `retry`), or all with `all=True`. Idempotent."""
        return _lanes(self._api.request("POST", "/system/pause", present(lane=lane, all=all, reason=reason), idempotent=True))

    def resume(self, lane: Lane | None = None, *, reason: str | None = None) -> list_[LaneState]:
        """Resume one lane, or all. Idempotent."""
        return _lanes(self._api.request("POST", "/system/resume", present(lane=lane, reason=reason), idempotent=True))

    def breakers(self, *, limit: int | None = None) -> Iterator[Breaker]:
        """Yield the breakers that are not closed."""
        return self._api.pages("/system/breakers", {}, Breaker, limit)

    def close_breaker(self, circuit: str, *, owner: str | None = None, reason: str | None = None) -> ClosedBreaker:
        """Close the breaker of a circuit, as `breakers` has it, and return it with those that are still not closed.

        `owner` is the id or the name of its owner; it is necessary only if several owners have an open breaker of this circuit. Raises
        NotFound if no such breaker is open, Conflict if several are.
        """
        body = present(circuit=circuit, owner=owner, reason=reason)
        page = self._api.request("POST", "/system/breakers/close", body)
        others = tuple(Breaker.from_json(item) for item in part(page, "items", list))
        return replace(ClosedBreaker.from_json(part(page, "closed", dict)), others=others)


list_ = list  # a class that has a method `list` needs another name for the type


def _of(id: str | None, key: str | None, path: str) -> str:
    """Return the path of an object by its id or by its key. Raises InvalidArgument unless there is one of both."""
    if (id is None) == (key is None):
        raise InvalidArgument("specify an id or a key")
    return f"{path}/{segment(id)}" if id is not None else f"{path}/by-key/{segment(key or '')}"


def _parts(items: Sequence[Mapping[str, Any]]) -> list[list[Mapping[str, Any]]]:
    """Split the items into calls of at most a thousand jobs and of a size that the API takes."""
    from punctual._sync.transport import encode

    parts: list[list[Mapping[str, Any]]] = []
    room = 0
    for item in items:
        size = len(encode(item)) + 1
        if not parts or len(parts[-1]) == BATCH or size > room:
            parts.append([])
            room = BATCH_BYTES
        parts[-1].append(item)
        room -= size
    return parts


def _identities(data: Mapping[str, Any]) -> Sequence[Identity]:
    return [Identity.from_json(each) for each in part(data, "items", list)]


def _runs(data: Mapping[str, Any]) -> list[NextRun]:
    return [NextRun.from_json(run) for run in part(data, "runs", list)]


def _lanes(data: Mapping[str, Any]) -> list[LaneState]:
    return [LaneState.from_json(lane) for lane in part(data, "lanes", list)]
