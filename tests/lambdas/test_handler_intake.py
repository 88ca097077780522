"""The handler of intake: messages of a queue become jobs or dead letters."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from lab.world.clock import FixedClock
from lab.world.events import record
from lambdas import _runtime, intake
from lambdas.rest.intake_reading import services
from scheduler.admission.ordering_queue import leave_queues
from scheduler.intake.intake import LONGEST_S, pause_s
from scheduler.jobs import groups
from scheduler.jobs.groups import NewGroup
from scheduler.model import lifecycle
from scheduler.model.account import Principal, Quotas, Role, Scope
from scheduler.model.errors import Unavailable
from scheduler.model.intake import BODY_BYTES, PRINCIPALS, IntakeLetter, IntakeMessage
from scheduler.model.job import Job, Lane, OrderKey, OwnKey
from scheduler.storage.aws.intake_queues import SqsIntakeQueues
from tests.lambdas.gateway import NOW, World

ROLE = "AROAEXAMPLE000000001"
URL = "https://sqs.us-east-1.amazonaws.com/123456789012/punctual-test-intake-"
ARN = "arn:aws:sqs:us-east-1:123456789012:punctual-test-intake-"
PRINCIPAL = Principal("p1", "arn:aws:iam::123456789012:role/orders", "ada", frozenset({Scope.JOBS_WRITE}), "root", NOW, ROLE)


class Sqs:
    """The client of SQS."""

    def __init__(self) -> None:
        self.hidden: dict[str, int] = {}

    def change_message_visibility(self, *, QueueUrl: str, ReceiptHandle: str, VisibilityTimeout: int) -> None:
        assert QueueUrl.startswith(URL)
        self.hidden[ReceiptHandle] = VisibilityTimeout


class Stage(World):
    """Ports of a stage with the queue `jobs`, of principals, and the queue `orders` of the owner eve."""

    clock: FixedClock

    def __init__(self) -> None:
        super().__init__()
        self.sqs = Sqs()
        self.intake_queues = SqsIntakeQueues(self.sqs, {name: URL + name for name in ("jobs", "orders")})  # type: ignore[arg-type]
        self.owners.put_principal(PRINCIPAL, new=True)
        for owner in ("ada", "eve", "sub-ann"):
            self.be(owner, owner.removeprefix("sub-"), Role.USER)
        self.restart()

    def restart(self) -> None:
        """Begin a new process, which knows nothing."""
        self.serve(self.settings, self.reach)
        vars(self)["intake"] = services(self, {"jobs": PRINCIPALS, "orders": "eve"})

    @property
    def stored(self) -> list[Job]:
        return sorted(self.jobs.rows.values(), key=lambda job: (job.scheduled_at, job.id))

    @property
    def letters(self) -> list[IntakeLetter]:
        return [each for each in self.intake_letters.rows.values() if each is not None]

    @property
    def broken(self) -> dict[str, str]:
        """The rules that the only dead letter names, by field."""
        (letter,) = self.letters
        return dict(letter.errors)


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Stage:
    made = Stage()
    monkeypatch.setattr(_runtime, "api", lambda: made)
    return made


def message(
    body: Any, id: str = "m1", *, queue: str = "jobs", sender: str = f"{ROLE}:session", sent_at: int = NOW, receives: int = 1
) -> dict[str, Any]:
    text = body if isinstance(body, str) else json.dumps(body)
    made = record(id, f"receipt-{id}", text, receives, SenderId=sender, SentTimestamp=str(sent_at))
    return made | {"eventSourceARN": ARN + queue}


def receive(*messages: dict[str, Any]) -> list[str]:
    """The ids of the messages that come again."""
    answer = intake.handler({"Records": list(messages)}, None)
    return [each["itemIdentifier"] for each in answer["batchItemFailures"]]


def refusing(times: int, call: Callable[..., Any]) -> Callable[..., Any]:
    """The call, which is refused the first times."""
    left = iter(range(times))

    def wrapped(*arguments: Any, **named: Any) -> Any:
        if next(left, None) is not None:
            raise Unavailable
        return call(*arguments, **named)

    return wrapped


# Jobs.


def test_a_message_of_a_principal_becomes_a_job_of_its_owner(stage: Stage) -> None:
    assert receive(message({"message": "hello", "delay": "30m", "tags": ["a"]})) == []
    (job,) = stage.stored
    assert (job.owner, job.scheduled_at, job.spec.payload, job.spec.tags) == ("ada", NOW + 1_800_000, {"message": "hello"}, ("a",))


def test_a_queue_with_an_owner_takes_messages_of_any_sender(stage: Stage) -> None:
    receive(message({"message": "hello"}, queue="orders", sender="AIDASERVICE"))
    assert [job.owner for job in stage.stored] == ["eve"]


def test_a_batch_becomes_jobs_in_order(stage: Stage) -> None:
    receive(message({"jobs": [{"message": str(number), "execute_at": "2026-12-01T10:00:00Z"} for number in range(20)]}))
    assert [job.spec.payload["message"] for job in stage.stored] == [str(number) for number in range(20)]


def test_the_messages_of_one_owner_are_stored_together(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    puts: list[int] = []
    put_many = stage.jobs.put_many
    monkeypatch.setattr(stage.jobs, "put_many", lambda jobs: puts.append(len(jobs)) or put_many(jobs))
    receive(*(message({"message": "x"}, f"m{number}") for number in range(10)))
    assert puts == [10]


def test_a_delay_is_counted_from_the_sending_of_the_message(stage: Stage) -> None:
    receive(message({"message": "late", "delay": "1m"}, sent_at=NOW - 120_000))
    (job,) = stage.stored
    assert (job.scheduled_at, job.due_at) == (NOW - 60_000, NOW)
    assert lifecycle.is_late(job, NOW)
    (sent,) = stage.lanes.queues[Lane.ONE_TIME].values()
    assert (sent.message.key, sent.message.not_before) == (job.key, 0), "it starts at once"


def test_a_message_that_waited_a_second_makes_a_job_in_time(stage: Stage) -> None:
    receive(message({"message": "x"}, sent_at=NOW - 1_000))
    (job,) = stage.stored
    assert (job.scheduled_at, job.created_at) == (NOW - 1_000, NOW - 1_000) and not lifecycle.is_late(job, NOW)


def test_a_late_job_of_a_message_is_created_for_a_past_time(stage: Stage) -> None:
    """So it is not among the start delays, whose alarm is about the engine."""
    receive(message({"message": "x"}, sent_at=NOW - 60_000), message({"message": "y", "ordering_key": "k"}, "m2", sent_at=NOW - 60_000))
    plain, ordered = sorted(stage.stored, key=lambda job: job.spec.ordering is not None)
    assert (plain.created_at, ordered.created_at) == (NOW, NOW - 60_000)
    assert lifecycle.is_late(plain, NOW) and lifecycle.is_late(ordered, NOW)


def test_an_instant_is_checked_as_of_the_sending(stage: Stage) -> None:
    two_days = 2 * 86_400_000
    receive(message({"message": "x", "execute_at": "2026-11-20T09:59:00Z"}, sent_at=NOW))
    receive(message({"message": "x", "execute_at": "2026-11-18T10:01:00Z"}, "m2", sent_at=NOW - two_days))
    assert len(stage.stored) == 2 and not stage.letters
    receive(message({"message": "x", "execute_at": "2026-11-18T10:01:00Z"}, "m3", sent_at=NOW))
    assert "execute_at" in stage.broken


# Idempotency.


def test_a_message_delivered_twice_makes_one_job(stage: Stage) -> None:
    receive(message({"message": "x", "delay": "1m"}))
    stage.clock.sleep_until(NOW + 30_000)
    assert receive(message({"message": "x", "delay": "1m"}, receives=2)) == []
    assert len(stage.stored) == 1 and not stage.letters


def test_a_message_delivered_twice_at_once_makes_one_job(stage: Stage) -> None:
    receive(message({"message": "x"}), message({"message": "x"}))
    assert len(stage.stored) == 1


def test_a_message_delivered_days_later_makes_no_second_job(stage: Stage) -> None:
    receive(message({"jobs": [{"message": "a"}, {"message": "b", "execute_at": "2026-12-01T10:00:00Z"}]}))
    stage.clock.sleep_until(NOW + 5 * 86_400_000)
    assert receive(message({"jobs": [{"message": "a"}, {"message": "b", "execute_at": "2026-12-01T10:00:00Z"}]}, receives=40)) == []
    assert len(stage.stored) == 2


def test_a_repeated_message_leaves_a_later_job_of_its_key_alone(stage: Stage) -> None:
    receive(message({"message": "a", "key": "k", "delay": "1h"}))
    (first,) = stage.stored
    stage.jobs.rows[first.key] = lifecycle.cancel(first, NOW, reason="by its owner")
    receive(message({"message": "b", "key": "k", "delay": "1h"}, "m2"))
    assert receive(message({"message": "a", "key": "k", "delay": "1h"}, receives=2)) == []
    assert len(stage.stored) == 2 and not stage.letters


def test_a_repeated_message_of_an_ended_job_enters_no_ordering_queue(stage: Stage) -> None:
    sent = {"message": "a", "ordering_key": "o", "delay": "1h"}
    receive(message(sent))
    (job,) = stage.stored
    stage.jobs.rows[job.key] = lifecycle.cancel(job, NOW, reason="by its owner")
    leave_queues([stage.jobs.rows[job.key]], orders=stage.orders)
    assert receive(message(sent, receives=2)) == []
    (line,) = stage.orders.lines([OrderKey("ada", "o")], limit=5).values()
    assert not line.entries


def test_a_resent_message_makes_a_second_job(stage: Stage) -> None:
    receive(message({"message": "x"}), message({"message": "x"}, "m2"))
    assert len(stage.stored) == 2


def test_the_key_in_the_body_makes_a_resent_message_safe(stage: Stage) -> None:
    receive(message({"message": "x", "idempotency_key": "order 17"}))
    stage.clock.sleep_until(NOW + 5_000)
    receive(message({"message": "x", "idempotency_key": "order 17"}, "m2", sent_at=NOW + 5_000))
    receive(message({"jobs": [{"message": "x", "idempotency_key": "order 17"}, {"message": "y"}]}, "m3", sent_at=NOW + 5_000))
    assert [job.spec.payload["message"] for job in stage.stored] == ["x", "y"] and not stage.letters


def test_a_key_of_another_request_is_refused(stage: Stage) -> None:
    receive(message({"message": "x", "idempotency_key": "k"}))
    receive(message({"message": "other", "idempotency_key": "k"}, "m2"))
    assert stage.broken == {"idempotency_key": "this idempotency key was used for another request"}


# Dead letters.


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ("not json", "body"),
        ("[1]", "body"),
        ('{"message": "x", "message": "y"}', "message"),
        ({"message": "x", "owner": "eve"}, "owner"),
        ({"jobs": [{"message": "x"}], "owner": "eve"}, "owner"),
        ({"message": "x", "dealy": "1m"}, "dealy"),
        ({"message": "x", "delay": "soon"}, "delay"),
        ({"target": "nowhere"}, "target"),
        ({"jobs": []}, "jobs"),
        ({"type": "http", "payload": {"method": "GET", "url": "x" * 300_000}}, "body"),
    ],
)
def test_a_wrong_message_is_a_dead_letter_at_once(stage: Stage, body: Any, field: str) -> None:
    assert receive(message(body)) == []
    assert [*stage.broken] == [field] and not stage.stored
    (letter,) = stage.letters
    assert (letter.owner, letter.message.queue, letter.refused_at) == ("ada", "jobs", NOW)


def test_one_wrong_message_stops_no_other(stage: Stage) -> None:
    assert receive(*(message({"message": "x"} if number != 4 else "{", f"m{number}") for number in range(10))) == []
    assert len(stage.stored) == 9
    assert [letter.message.id for letter in stage.letters] == ["m4"]


def test_a_batch_leaves_its_refused_jobs_in_one_dead_letter(stage: Stage) -> None:
    items = [{"message": "a"}, {"message": "b", "delay": "soon"}, {"message": "c"}, {"type": "none"}]
    receive(message({"jobs": items}))
    assert {job.spec.payload["message"] for job in stage.stored} == {"a", "c"}
    (letter,) = stage.letters
    assert letter.accepted == 2 and json.loads(letter.message.body) == {"jobs": [items[1], items[3]]}
    assert {field for field, _ in letter.errors} == {"jobs[0].delay", "jobs[1].type"}


def test_a_job_whose_key_is_taken_is_named_in_the_dead_letter(stage: Stage) -> None:
    receive(message({"message": "a", "key": "k", "delay": "1h"}))
    receive(message({"jobs": [{"message": "b"}, {"message": "c", "key": "k"}]}, "m2"))
    assert [*stage.broken] == ["jobs[0].key"]
    assert stage.jobs.key_entries([OwnKey("ada", "k")])


def test_jobs_of_a_message_wait_for_each_other_and_are_refused_together(stage: Stage) -> None:
    receive(message({"jobs": [{"message": "b", "after": [{"key": "a"}]}, {"message": "a", "key": "a"}]}))
    (second,) = (job for job in stage.stored if job.after)
    assert stage.stored[0].id in {each.id for each in second.after} or stage.stored[1].id in {each.id for each in second.after}
    receive(message({"jobs": [{"message": "b", "after": [{"key": "c"}]}, {"message": "c", "key": "c", "delay": "soon"}]}, "m2"))
    assert [*stage.broken] == ["jobs[0].after.0.key", "jobs[1].delay"] and len(stage.stored) == 2
    receive(message({"message": "d", "after": [{"key": "nobody"}]}, "m3"))
    assert any("after.0.key" in field for letter in stage.letters for field, _ in letter.errors)


def test_a_dead_letter_lists_at_most_fifty_rules(stage: Stage) -> None:
    receive(message({"jobs": [{"message": "x", "delay": "soon"}] * 200}))
    (letter,) = stage.letters
    assert len(letter.errors) == 51 and letter.errors[-1] == ("body", "breaks 150 more rules")


def test_a_long_body_is_cut(stage: Stage) -> None:
    receive(message({"jobs": [{"message": "é" * BODY_BYTES, "delay": "soon"}]}))
    (letter,) = stage.letters
    assert letter.is_cut and BODY_BYTES - 1 <= len(letter.message.body.encode()) <= BODY_BYTES


def test_a_message_that_comes_again_after_its_dead_letter_is_deleted(stage: Stage) -> None:
    receive(message("{"))
    before = stage.letters
    assert receive(message("{", receives=2)) == []
    assert stage.letters == before
    assert stage.intake_letters.remove(before[0])
    assert receive(message({"message": "x"}, receives=3)) == [], "as if it were valid by now"
    assert not stage.stored and not stage.letters


def test_a_body_with_a_lone_surrogate_stops_nothing(stage: Stage) -> None:
    assert receive(message("\ud800"), message({"message": "x"}, "m2")) == []
    assert len(stage.stored) == 1 and [*stage.broken] == ["body"]


# Senders.


def principal(**fields: Any) -> Principal:
    return replace(PRINCIPAL, **({"arn": "arn:aws:iam::123456789012:role/other"} | fields))


def test_an_unknown_sender_is_refused(stage: Stage) -> None:
    receive(message({"message": "x"}, sender="AROANOBODY:session"))
    assert [*stage.broken] == ["sender"] and "AROANOBODY" in stage.broken["sender"]
    assert stage.letters[0].owner is None


def test_a_sender_of_two_principals_is_refused(stage: Stage) -> None:
    stage.owners.put_principal(principal(owner="eve"), new=True)
    receive(message({"message": "x"}))
    assert [*stage.broken] == ["sender"] and stage.letters[0].owner is None


@pytest.mark.parametrize(("scope", "accepted"), [(Scope.JOBS_READ, False), (Scope.ADMIN, True)])
def test_a_principal_needs_the_scope_to_write_jobs(stage: Stage, scope: Scope, accepted: bool) -> None:
    stage.owners.put_principal(replace(PRINCIPAL, scopes=frozenset({scope})), new=False)
    receive(message({"message": "x"}))
    assert bool(stage.stored) is accepted
    assert accepted or ([*stage.broken], stage.letters[0].owner) == (["sender"], "ada")


def test_messages_of_a_disabled_owner_are_refused(stage: Stage) -> None:
    stage.users.set_disabled("ada", NOW)
    receive(message({"message": "x"}))
    assert stage.broken == {"owner": "is disabled or deleted"} and stage.letters[0].owner == "ada"


def test_a_queue_of_an_owner_that_does_not_exist_creates_nothing(stage: Stage) -> None:
    del stage.users.rows["eve"]
    receive(message({"message": "x"}, queue="orders"))
    assert [*stage.broken] == ["owner"] and not stage.stored


def test_a_principal_that_was_just_added_is_found(stage: Stage) -> None:
    receive(message({"message": "x"}))
    stage.owners.put_principal(principal(unique_id="AROANEW", owner="eve"), new=True)
    stage.clock.sleep_until(NOW + 1_000)
    receive(message({"message": "x"}, "m2", sender="AROANEW:session"))
    assert {job.owner for job in stage.stored} == {"ada", "eve"}


# Messages that must wait.


def waits(stage: Stage, id: str = "m1") -> int:
    return stage.sqs.hidden[f"receipt-{id}"]


def test_a_message_waits_while_the_quota_is_used_up(stage: Stage) -> None:
    stage.users.set_quotas("ada", Quotas(creates_per_second=1))
    receive(*(message({"message": "x"}, f"a{number}") for number in range(12)))
    assert receive(message({"message": "x"}), message({"message": "y"}, "m2", queue="orders")) == ["m1"]
    assert waits(stage) >= 1 and not stage.letters
    stage.clock.sleep_until(NOW + 60_000)
    before = len(stage.stored)
    assert receive(message({"message": "x"}, receives=2)) == []
    assert len(stage.stored) == before + 1


@pytest.mark.parametrize("port", ["jobs", "receipts"])
def test_a_message_waits_while_a_table_refuses(stage: Stage, port: str, monkeypatch: pytest.MonkeyPatch) -> None:
    call = {"jobs": "put", "receipts": "keep"}[port]
    monkeypatch.setattr(getattr(stage, port), call, refusing(1, getattr(getattr(stage, port), call)))
    assert receive(message({"message": "x"})) == ["m1"]
    assert waits(stage) >= 1
    assert receive(message({"message": "x"}, receives=2)) == []
    assert len(stage.stored) == 1 and not stage.letters


@pytest.mark.parametrize(("port", "call"), [("owners", "principals"), ("users", "owner"), ("intake_letters", "add")])
def test_a_message_waits_while_its_sender_or_its_letter_is_refused(
    stage: Stage, port: str, call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(getattr(stage, port), call, refusing(1, getattr(getattr(stage, port), call)))
    stage.restart()
    assert receive(message("{")) == ["m1"] and not stage.letters
    stage.clock.sleep_until(NOW + 5_000)
    assert receive(message("{", receives=2)) == [] and len(stage.letters) == 1


def test_repeated_messages_wait_while_letters_cannot_be_read(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage.intake_letters, "had", refusing(1, stage.intake_letters.had))
    assert receive(message({"message": "x"}, receives=2), message({"message": "y"}, "m2")) == ["m1"]
    assert len(stage.stored) == 1


def test_an_error_of_ours_stops_only_its_message(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    put, put_many = stage.jobs.put, stage.jobs.put_many

    def broken(jobs: Sequence[Job]) -> Any:
        if any(job.spec.payload["message"] == "bad" for job in jobs):
            raise RuntimeError("a bug")
        return put_many(jobs) if len(jobs) > 1 else [put(job) for job in jobs]

    monkeypatch.setattr(stage.jobs, "put_many", broken)
    monkeypatch.setattr(stage.jobs, "put", lambda job: broken([job])[0])
    bodies = ["a", "bad", "c"]
    assert receive(*(message({"message": body}, body) for body in bodies)) == ["bad"]
    assert {job.spec.payload["message"] for job in stage.stored} == {"a", "c"} and not stage.letters


def test_the_wait_grows_and_differs_between_messages() -> None:
    def wait(receives: int, id: str = "m") -> int:
        return pause_s(IntakeMessage(id, "jobs", ROLE, NOW, "", receives))

    waits = [wait(receives) for receives in range(1, 300)]
    assert 1 <= waits[0] <= 3 and max(waits) == LONGEST_S
    assert sum(waits) < 13 * 86_400, "the queue keeps a message for 14 days"
    assert len({wait(8, f"m{number}") for number in range(100)}) > 50
    assert pause_s(IntakeMessage("m", "jobs", ROLE, NOW, ""), 90_000) == 90


# Groups.


def test_a_message_joins_a_group_of_its_owner_once(stage: Stage) -> None:
    group = groups.create(NewGroup("ada"), [], stage, random=1).group
    for receives in (1, 2):
        assert receive(message({"jobs": [{"message": "x", "group": group.id}] * 2}, receives=receives)) == []
    assert [(job.group, job.member) for job in stage.stored] == [(group.id, 0), (group.id, 1)] and not stage.letters


def test_a_message_for_a_sealed_group_is_a_dead_letter(stage: Stage) -> None:
    group = groups.create(NewGroup("ada", seal=True), [], stage, random=1).group
    assert receive(message({"message": "x", "group": group.id})) == []
    assert not stage.stored and "is sealed" in str(stage.broken)
