"""One invocation of notify, in virtual time."""

from collections.abc import Callable
from typing import Any

import pytest

from lab.world.clock import SimClock
from lab.world.hub import Hub
from scheduler.model.job import Failure, FailureKind, Result, Status
from scheduler.model.notice import News, Sending
from scheduler.model.notifications import Notifications, Webhook
from scheduler.notify import notify as service
from scheduler.notify.invocation import RECEIVES_MS, SLOW_CALLS_MS, InvocationResult, process
from scheduler.notify.notify import GIVE_UP_MS, PATIENCE_MS, BatchResult, Incoming, Post, notify
from scheduler.storage.memory.notices import MemoryNoticeQueue
from scheduler.storage.memory.ports import MemoryPorts
from tests.contract import make
from tests.simulation.notices import BEGIN, SimThreads

HANG_MS = 10_000
TIMED_OUT = Result(failure=Failure(FailureKind.RETRYABLE, "no answer"))


class Stage(MemoryPorts):
    """Receivers at hosts that answer as `answers` says; others answer after 200 ms."""

    def __init__(self) -> None:
        self.hub = Hub(BEGIN)
        super().__init__(SimClock(self.hub, 0))
        self.queue = MemoryNoticeQueue(self.clock)
        self.notices.send = self.queue.send  # type: ignore[method-assign]
        self.answers: dict[str, tuple[int, Result]] = {}
        self.calls: list[tuple[str, int]] = []  # the owner, and when it was called
        self.post = Post(lambda payload, id: Result(), self._call)
        self.threads: Any = SimThreads(self.hub)

    def _call(self, owner: str, payload: Any, id: str) -> Result:
        self.calls.append((owner, self.hub.time - BEGIN))
        takes, result = self.answers.get(owner, (200, Result()))
        self.hub.sleep_until(self.hub.time + takes)
        return result

    def sending(self, owner: str, number: int = 0) -> Sending:
        hook = Webhook(f"https://{owner}.example.com", "s")
        task = make.task(owner=owner, id=f"{owner}{number}", notifications=Notifications(webhooks=(hook,)))
        self.tasks.store(None, task, [])
        news = News(task.key, f"j{number}.0", f"j{number}", "log", Status.FAILED, BEGIN, BEGIN)
        notify([Incoming("news", news)], self, post=self.post, threads=self.threads)
        *_, last = [queued.message for queued in self.queue.messages.values() if isinstance(queued.message, Sending)]
        self.queue.messages = {}
        return last

    def run(self, work: Callable[[], Any], seconds: int = 200) -> tuple[Any, int]:
        """Return the result of the work, and how long it took (ms)."""
        found: list[tuple[Any, int]] = []
        begun = self.hub.time
        self.hub.spawn(lambda: found.append((work(), self.hub.time - begun)))
        self.hub.run(self.hub.time + seconds * 1_000)
        return found[0]

    def take(self, *sendings: Sending, sent_at: int | None = None) -> tuple[BatchResult, int]:
        batch = [Incoming(f"m{number}", sending, sent_at) for number, sending in enumerate(sendings)]
        return self.run(lambda: notify(batch, self, post=self.post, threads=self.threads), 5)

    def process(self, *sendings: Sending) -> tuple[InvocationResult, int]:
        self.queue.send(sendings, BEGIN)
        event = self.queue.receive(0)

        def work() -> InvocationResult:
            result = process(event, self.queue, self, post=self.post, threads=self.threads)
            self.queue.delete([each.receipt for each in event if each.message_id not in result.unfinished])
            return result

        return self.run(work)


@pytest.fixture
def stage() -> Stage:
    made = Stage()
    made.answers = {"bad": (HANG_MS, TIMED_OUT), "slow": (3_000, Result())}
    return made


def test_a_batch_does_not_wait_for_a_receiver_that_hangs(stage: Stage) -> None:
    result, took = stage.take(stage.sending("bad"), stage.sending("good"))
    assert took <= PATIENCE_MS + 10 and result.sent == 1 and result.again == {"m0": 20}
    stage.hub.run(stage.hub.time + HANG_MS)
    later, _ = stage.take()
    assert later.ended == {"m0": 10} and later.failed == 1


def test_a_sending_without_a_place_is_deferred_without_a_try(stage: Stage) -> None:
    result, _ = stage.take(*[stage.sending("bad", number) for number in range(10)])
    assert len(stage.calls) == 1 and [*result.again.values()].count(20) == 1, "a new receiver is called once at a time"
    stage.hub.run(stage.hub.time + HANG_MS)
    _, took = stage.take(*[stage.sending("bad", number) for number in range(10, 12)])
    assert len(stage.calls) == 3
    again, took = stage.take(*[stage.sending("bad", number) for number in range(20, 30)])
    assert len(stage.calls) == 3 and took == 0 and sorted(again.again.values())[-1] >= 45, "the batch does not wait for slow places"
    assert [record.tries for record in stage.notices.deliveries.values()] == [1] * 3


def test_a_burst_of_a_good_owner_is_sent_within_its_batch(stage: Stage) -> None:
    stage.answers["good"] = (100, Result())
    result, took = stage.take(*[stage.sending("good", number) for number in range(9)])
    assert result.sent == 9 and result.again == {} and took < PATIENCE_MS, "one, and then eight at once"


@pytest.mark.parametrize(("age", "given_up"), [(GIVE_UP_MS - 1, 0), (GIVE_UP_MS, 1)])
def test_a_sending_that_had_no_place_for_hours_is_given_up(stage: Stage, age: int, given_up: int) -> None:
    stage.answers["bad"] = (3_600_000, TIMED_OUT)
    stage.take(stage.sending("bad"), stage.sending("bad", 1))
    stage.take(*[stage.sending("bad", number) for number in range(2, 9)])
    result, _ = stage.take(stage.sending("bad", 9), sent_at=stage.hub.time - age)
    assert result.undelivered == given_up and bool(result.again) is not bool(given_up)


def test_an_unexpected_error_stops_only_its_sending(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = stage.sending("good")
    usual = service._send

    def send(call: Any, sending: Sending, *more: Any) -> Any:
        if sending == broken:
            raise LookupError("secret")
        return usual(call, sending, *more)

    monkeypatch.setattr(service, "_send", send)
    result, _ = stage.take(broken, stage.sending("good", 1))
    assert result.sent == 1 and result.again == {"m0": 60}


def test_an_invocation_receives_further_messages_beside_a_hanging_call(stage: Stage) -> None:
    good = stage.sending("good")
    stage.hub.at(BEGIN + 5_000, lambda: stage.queue.send([good], stage.hub.time))
    result, took = stage.process(stage.sending("bad"))
    assert (result.sent, result.failed, len(result.unfinished)) == (1, 1, 1) and HANG_MS <= took <= HANG_MS + 1_500
    assert ("good", 5_100) >= stage.calls[1] >= ("good", 5_000)
    (left,) = stage.queue.messages.values()
    assert left.visible_at - BEGIN <= HANG_MS + 11_500, "the next try follows ten seconds after the end of the first"


def test_a_slow_success_is_deleted_when_it_ends(stage: Stage) -> None:
    result, took = stage.process(stage.sending("slow"))
    assert result.sent == 1 and result.unfinished == set() and stage.queue.messages == {} and took <= 4_500


def test_a_slow_success_of_a_further_message_is_deleted_too(stage: Stage) -> None:
    slow = stage.sending("slow")
    stage.hub.at(BEGIN + 1_000, lambda: stage.queue.send([slow], stage.hub.time))
    result, _ = stage.process(stage.sending("bad"))
    assert result.sent == 1 and [queued.message for queued in stage.queue.messages.values()] != [slow] and len(stage.queue.messages) == 1


def test_a_message_of_the_event_that_comes_again_is_deleted(stage: Stage) -> None:
    stage.answers["good"] = (100, Result(failure=Failure(FailureKind.RETRYABLE, "HTTP 500")))
    stage.hub.at(BEGIN + 1_000, lambda: stage.answers.pop("good"))
    slow, bad = stage.sending("slow"), stage.sending("bad")
    stage.hub.at(BEGIN + 9_000, lambda: stage.queue.send([slow], stage.hub.time))  # the invocation is there when the other one returns
    result, _ = stage.process(bad, stage.sending("good"))
    assert result.sent == 2 and [queued.message for queued in stage.queue.messages.values()] == [bad]


def test_an_invocation_ends_although_its_receivers_hang_all_the_time(stage: Stage) -> None:
    more = [stage.sending("bad", number) for number in range(60)]
    for number, sending in enumerate(more):
        stage.hub.at(BEGIN + number * 1_500, lambda sending=sending: stage.queue.send([sending], stage.hub.time))
    result, took = stage.process(stage.sending("bad", 99))
    assert result.failed > 3 and took <= SLOW_CALLS_MS + HANG_MS + 2_000


def test_an_invocation_ends_although_new_receivers_hang_all_the_time(stage: Stage) -> None:
    for number in range(100):
        stage.answers[f"b{number}"] = (HANG_MS, TIMED_OUT)
    more = [stage.sending(f"b{number}") for number in range(100)]
    for number, sending in enumerate(more):
        stage.hub.at(BEGIN + number * 1_500, lambda sending=sending: stage.queue.send([sending], stage.hub.time))
    _, took = stage.process(stage.sending("bad"))
    assert RECEIVES_MS < took <= RECEIVES_MS + HANG_MS + 2_500
