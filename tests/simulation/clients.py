"""Clients that post jobs in a simulated world, some with idempotency keys, and repeat calls without an answer.

The oracle of keys: however often a client repeats a call with a key, one job is stored for it, and each answer names that job.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from random import Random

from lab.world.faults import Faults
from lab.world.hub import Hub, Killed
from scheduler.model import ids
from scheduler.model.errors import Conflict, Unavailable
from scheduler.model.job import Job, Receipt
from scheduler.pipeline.direct_path import DirectPath
from scheduler.pipeline.submit import Accepted, NewJob, Submission, submit_all
from scheduler.storage.ports import Ports

KEYED = 0.25  # share of posts with a key; each of their jobs has that key with its number
TRIES = 4  # of a post with a key; a client never repeats a post without a key
PAUSES_MS = (500, 1_000, 1_000, 5_000, 60_000, 300_000)  # before a client repeats a post
TWICE = 0.2  # share of posts with keys that are sent twice, whatever the answer,
TWICE_MS = (0, 2, 10, 30, 1_000, 60_000)  # this long after the first time


@dataclass
class Post:
    """The jobs that a client posts in one call."""

    requests: Sequence[NewJob]
    direct: DirectPath
    key: str | None = None
    tries: int = 0

    def key_of(self, index: int) -> str:
        """Return the key of one of its jobs, derived from the key of the call as in the API."""
        return f"{self.key}#{index}"


@dataclass
class Clients:
    """Post jobs. `ports()` returns the ports as one invocation sees them. `accept` receives each accepted job once."""

    hub: Hub
    faults: Faults
    random: Random
    ports: Callable[[], Ports]
    accept: Callable[[Job], None]
    violation: Callable[[str, str], None]
    _posts: int = 0
    _made: dict[tuple[str, str], str] = field(default_factory=dict)  # the job id of each key, by owner and key
    _heard: set[tuple[str, str]] = field(default_factory=set)  # the keys that were answered with their job

    # actions

    def post(self, requests: Sequence[NewJob], randoms: Sequence[int], direct: DirectPath) -> None:
        """Post these jobs, whose ids contain `randoms`; with a key, repeat the post until it is answered or `TRIES` is reached."""
        post = Post(requests, direct)
        if self.random.random() < KEYED:
            self._posts += 1
            post.key = f"post {self._posts}"
            post.requests = [self._keyed(post, index) for index in range(len(requests))]
            if self.random.random() < TWICE:
                self._ask_again(post, self.random.choice(TWICE_MS))
        self._ask(post, randoms)

    @staticmethod
    def _keyed(post: Post, index: int) -> NewJob:
        """Return the request with its key in the payload, which identifies its job, and with the same owner for all jobs of the call."""
        request, owner = post.requests[index], post.requests[0].owner
        request.spec.payload["key"] = post.key_of(index)  # type: ignore[index]  # no other job has this dictionary
        return request if request.owner == owner else replace(request, owner=owner)

    def _ask_again(self, post: Post, pause_ms: int) -> None:
        """Repeat the post after a pause, with new randoms for the ids, as the API does."""
        randoms = sorted(self.random.getrandbits(ids.RANDOM_BITS) for _ in post.requests)
        self.hub.spawn(lambda: self._ask(post, randoms), self.hub.time + pause_ms)

    def _ask(self, post: Post, randoms: Sequence[int]) -> None:
        """Make one call of the API. If its invocation dies, the client gets no answer."""
        post.tries += 1
        self.faults.counts["asked again"] += post.tries > 1
        ports = self.ports()
        now = ports.clock.now()
        asked = [
            Submission(request, random, _receipt(request, random, now)) for request, random in zip(post.requests, randoms, strict=True)
        ]
        try:
            answers = submit_all(asked, ports, direct=post.direct)
        except Unavailable:
            self._retry(post)
            return
        except (Exception, Killed):  # the invocation died, or answered 500
            self._retry(post)
            raise
        for each, answer in zip(asked, answers, strict=True):
            self._hear(each, answer)
        if None in answers:
            self._retry(post)

    def _retry(self, post: Post) -> None:
        """Repeat a post with a key. A client without a key cannot know whether its jobs are stored, and gives up."""
        if post.key is not None and post.tries < TRIES:
            self._ask_again(post, self.random.choice(PAUSES_MS))

    def _hear(self, asked: Submission, answer: Accepted | Conflict | None) -> None:
        if isinstance(answer, Conflict):
            self.violation("conflict_with_itself", f"key {asked.receipt and asked.receipt.key}")
        if not isinstance(answer, Accepted):
            return
        if asked.receipt is not None:
            self.faults.counts["replayed"] += answer.replayed
            key = (asked.receipt.owner, asked.receipt.key)
            self._check(key, answer.job)
            if key in self._heard:
                return
            self._heard.add(key)
        self.accept(answer.job)

    # oracles

    def written(self, before: Job | None, after: Job) -> None:
        """Check a write of the jobs table."""
        if before is None and (key := after.spec.payload.get("key")) is not None:
            self._check((after.owner, key), after)

    def _check(self, key: tuple[str, str], job: Job) -> None:
        """Check that the job is the only one of its key."""
        if self._made.setdefault(key, job.id) != job.id:
            self.violation("doubled_by_key", job.id)


def _receipt(request: NewJob, random: int, now: int) -> Receipt | None:
    """Return the receipt that the API creates. Here the key identifies the request, so it is also the fingerprint."""
    key = request.spec.payload.get("key")
    return None if key is None else Receipt(request.owner, key, key, now, random)
