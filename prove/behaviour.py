"""Jobs whose course is judged, not only their start: a cron task, an ordering key, a killed, a cancelled and an http job."""

from collections.abc import Collection
from dataclasses import dataclass, field

from punctual import ApiError, Punctual
from punctual.fields import ScheduleFields
from punctual.records import Json

from lab.judge import of_task
from lab.scenarios.drills import ended
from prove import judging
from prove.cleanup import Cleanup
from prove.judging import Found, Judged
from prove.place import Place
from prove.plan import Plan
from prove.report import Row
from scheduler.model.instants import render

TIMEOUT_S = 2  # of the job that is killed
LONG_S = 60  # its work
EACH_S = 0.1  # work of each job of the ordering key, so that two at once would be seen
CANCELLED_LATER_S = 15  # the cancelled job is due this long after the others


@dataclass
class Posted:
    """The jobs of the behaviours, by id."""

    order: list[str] = field(default_factory=list)
    killed: str = ""
    cancelled: str = ""
    http: str = ""
    refused: str = ""  # why the http job was refused

    @property
    def ids(self) -> set[str]:
        return {id for id in (*self.order, self.killed, self.cancelled, self.http) if id}


def create_cron(client: Punctual, plan: Plan, name: str, cleanup: Cleanup) -> Json:
    """Create a task that runs at the next minutes after `cron_from`."""
    schedule: ScheduleFields = {"cron": "*/1 * * * *", "start": render(plan.cron_from), "max_runs": plan.size.runs}
    task = client.tasks.create(name, "log", {"message": "prove: cron"}, schedule=schedule).raw
    cleanup.later(f"the task {name}", lambda: client.tasks.delete(task["id"]))
    return task


def post(client: Punctual, place: Place, plan: Plan, name: str) -> Posted:
    """Post the chosen jobs for their instant, and cancel the one that must never run."""
    posted, at = Posted(), render(plan.behaviours_at)
    if "order" in plan.keys:
        one = {"message": "prove: order", "sleep_seconds": EACH_S}
        jobs = [{"type": "log", "payload": one, "execute_at": at, "ordering_key": name} for _ in range(plan.size.keyed)]
        posted.order = [job.id for job in client.jobs.create_many(jobs).all_jobs()]
    if "killed" in plan.keys:
        long = {"message": "prove: killed", "sleep_seconds": LONG_S}
        posted.killed = client.jobs.create("log", long, execute_at=at, timeout_seconds=TIMEOUT_S, max_attempts=1).id
    if "cancelled" in plan.keys:
        later = render(plan.behaviours_at + CANCELLED_LATER_S * 1000)
        posted.cancelled = client.jobs.create("log", {"message": "prove: cancelled"}, execute_at=later).id
        client.jobs.cancel(posted.cancelled)
    if "http" in plan.keys:
        try:
            posted.http = client.jobs.create("http", {"method": "GET", "url": place.called}, execute_at=at).id
        except ApiError as error:
            if error.status != 400:  # a stage may allow other hosts only (`http_hosts`)
                raise
            posted.refused = str(error)
    return posted


def judged(posted: Posted, found: Found, place: Place, keys: Collection[str]) -> list[Judged]:
    """Judge the chosen jobs, all but the task."""
    results = []
    if "order" in keys:
        results.append(judging.of_order(posted.order, found))
    if "killed" in keys:
        results.append(judging.of_killed(posted.killed, found, TIMEOUT_S))
    if "cancelled" in keys:
        results.append(judging.of_cancelled(posted.cancelled, found))
    if "http" in keys and posted.http:
        target = "the receiver" if place.local else "the stage's own /health"
        results.append(judging.of_http(posted.http, found, place.calls(), target))
    elif "http" in keys:
        results.append((Row("http", "an http job", 0, note=f"not measured: {posted.refused}"), []))
    return results


def judged_cron(client: Punctual, task: Json, plan: Plan) -> Judged:
    """Wait for the end of the task's runs, and judge them: one for each nominal time, on time and once."""
    runs = ended(client, lambda: (job.raw for job in client.tasks.jobs(task["id"])), seconds=plan.size.patience_s, count=plan.size.runs)
    promises = of_task("run", [run["nominal"] for run in task["next_runs"]], runs, {})
    missing = plan.size.runs - len(task["next_runs"])
    row, complaints = judging.of_part("cron", "a cron task, each minute", promises, {job["id"]: job for job in runs})
    return row, complaints + ([f"cron: the task announced {missing} runs too few"] if missing else [])
