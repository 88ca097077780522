"""A small stage for deterministic scenarios: the world of one invocation after the other, and the jobs of tests."""

from dataclasses import dataclass
from typing import Any

from lab.world import stage
from lab.world.layers import Wrapped, lost_answer, refuse, times
from lab.world.stage import STEPS
from scheduler.model.job import Delivery, Job, JobKey, Lane, Message
from scheduler.model.spec import JobSpec
from scheduler.model.work import WorkItem
from scheduler.pipeline.direct_path import DirectPath
from scheduler.pipeline.submit import NewJob, submit
from scheduler.pipeline.tick import TickResult, tick
from scheduler.storage.ports import ClaimRequest
from tests.conftest import with_spec

__all__ = ["STEPS", "Stage", "Wrapped", "lost_answer", "refuse", "times"]


@dataclass
class Stage(stage.Stage):
    """Everything an invocation needs. Ports may be replaced by `Wrapped` ones."""

    @property
    def asked(self) -> list[WorkItem]:
        """The items in the work queue, the first sent first."""
        return [each.item for each in self.work.queued.values()]

    def submit(self, execute_at: int | None = None, **fields: Any) -> Job:
        self.requests += 1
        request = NewJob(**with_spec({"owner": "ann", "execute_at": execute_at} | fields))
        return submit(request, self, random=self.requests)

    def submit_all(self, *execute_at: int | None) -> list[Job | None]:
        """One job for each instant, in one call."""
        return self.post(*(NewJob("ann", JobSpec("log", {"message": "hello"}), at) for at in execute_at))

    def tick(self) -> TickResult:
        return tick(self)

    def direct(self) -> DirectPath:
        """One process's count of the jobs that its users enqueued directly."""
        return DirectPath(self)

    def hand(self, *jobs: Job) -> list[Delivery]:
        """Store jobs, put their messages into their lane, and receive them."""

        for job in jobs:
            self.jobs.put(job)
            self.lanes.add(Message.of(job, self.clock.now()), self.clock.now())
        return self.receive(jobs[0].lane)

    def claim(self, item: Delivery, *, nonce: str = "someone", at: int | None = None, alone: bool = False, revocable: bool = False) -> Job:
        """Another executor claims the job of a delivery."""
        now = self.clock.now() if at is None else at
        request = ClaimRequest(item.message.key, item.message.fence, item.message_id, nonce, now, alone, item.message.due_at, revocable)
        (answer,) = self.jobs.claim([request])
        assert answer.won and answer.job
        claimed: Job = answer.job
        return claimed

    def stored(self, job: Job | JobKey) -> Job:
        found: Job | None = self.jobs.get(job.key if isinstance(job, Job) else job)
        assert found is not None
        return found

    def waiting(self, lane: Lane) -> list[str]:
        """The ids of the jobs whose messages are in a lane."""
        return sorted(queued.message.key.id for queued in self.lanes.queues[lane].values())
