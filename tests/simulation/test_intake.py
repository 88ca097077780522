"""The intake in virtual time: no message is lost, none becomes two jobs, and the oracles see the removal of each guard."""

import secrets
from collections.abc import Callable, Sequence
from typing import Any
from unittest.mock import patch

import pytest

from lab.world.clock import FixedClock
from lab.world.gateway import ApiPorts
from lab.world.hub import Killed
from lab.world.layers import Layer
from lambdas.rest import intake_reading
from scheduler.intake.intake import Services, intake
from scheduler.model.intake import IntakeMessage
from scheduler.model.rules import Rules
from scheduler.storage.memory.intake_letters import MemoryIntakeDeadLetters
from tests.simulation.intake import BAD, BEGIN, CALM, FAULTY, ROUGH, IntakeReport, SimIntake, plain_ports, process
from tests.simulation.seeds import each


def rough(seed: int, kind: type[SimIntake] = SimIntake, **options: Any) -> IntakeReport:
    return kind(seed, ROUGH, **({"per_second": 60, "seconds": 4} | options)).run()


@each([1], range(2, 4), range(4, 8))
def test_each_message_becomes_one_job_or_one_dead_letter(seed: int) -> None:
    report = rough(seed)
    assert report.violations == {} and report.messages == 240, report
    assert {"crash", "refused", "double"} <= report.faults.keys(), report


@pytest.mark.long
def test_a_thousand_messages_a_second() -> None:
    report = rough(1, per_second=1_000, at_once=20)
    assert report.violations == {} and report.messages == 4_000, report
    assert "killed before it deletes" in report.faults, report


@pytest.mark.soak
def test_a_thousand_messages_a_second_for_a_minute() -> None:
    report = rough(1, per_second=1_000, seconds=60, at_once=20)
    assert report.violations == {} and report.messages == 60_000, report


def test_without_faults_each_message_is_received_once() -> None:
    report = SimIntake(1, CALM, per_second=100, seconds=5).run()
    assert report.violations == {} and report.most_receives == 1, report


def test_messages_beyond_the_quota_wait_and_none_is_lost() -> None:
    report = rough(1, per_second=50, rules=Rules(shards=2, creates_per_second=2))
    assert report.violations == {} and report.most_receives > 3, report


# Sabotages.


class DeletesFirst(SimIntake):
    def handle(self, messages: Sequence[IntakeMessage], ports: ApiPorts, own: Services) -> dict[str, int]:
        for message in messages:
            self.delete(message.id)
        return super().handle(messages, ports, own)

    def _show(self, id: str, at: int) -> None:
        if not self.queue[id].is_deleted:
            super()._show(id, at)


def keyless(read: Callable[..., Any]) -> Callable[..., Any]:
    """The reading of a message that makes up a key each time."""
    return lambda message, owner, key, *rest: read(message, owner, secrets.token_hex(8), *rest)


def test_the_oracle_sees_messages_that_are_deleted_first() -> None:
    assert rough(1, DeletesFirst).violations["lost"]


def test_the_oracle_sees_that_the_id_of_a_message_is_its_key() -> None:
    with patch.object(intake_reading, "read", keyless(intake_reading.read)):
        assert rough(1).violations["made twice"]


def test_the_oracle_sees_letters_that_are_not_stored() -> None:
    with patch.object(MemoryIntakeDeadLetters, "add", lambda self, letter: True):
        assert rough(1).violations["no dead letter"]


# A crash after each effect.


class Fatal(Layer):
    """A port in whose world the invocation dies just after effect number `fatal`."""

    count, fatal = 0, 0

    def around(self, name: str, effect: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            answer = effect(*arguments, **options)
            Fatal.count += 1
            if Fatal.count == Fatal.fatal:
                raise Killed
            return answer

        return call


BATCH = (
    '{"message": "0.0", "delay": "10m", "key": "k", "ordering_key": "o"}',
    BAD[0],
    '{"jobs": [{"message": "2.0"}, {"message": "2.1", "delay": "soon"}, {"message": "2.2", "target": "t"}]}',
    '{"message": "3.0", "idempotency_key": "a"}',
)


def deliver(ports: ApiPorts, clock: FixedClock, receives: int) -> bool:
    """Whether one delivery of the batch came to its end, in a process of its own."""
    view: Any = ports.but(**{name: Fatal(getattr(ports, name)) for name in FAULTY})
    messages = [IntakeMessage(f"m{number}", "jobs", "AROAADA:s", BEGIN, body, receives) for number, body in enumerate(BATCH)]
    try:
        assert intake(messages, view, process(view)).again == {}
    except Killed:
        return False
    return True


def test_a_crash_after_any_effect_changes_nothing_in_the_end() -> None:
    fatal, ended = 0, False
    while not ended:
        fatal += 1
        clock = FixedClock(BEGIN + 1_000)
        ports = plain_ports(Rules(shards=2), clock)
        Fatal.count, Fatal.fatal = 0, fatal
        ended = deliver(ports, clock, 1)
        clock.sleep_until(BEGIN + 121_000)
        Fatal.fatal = 0
        assert deliver(ports, clock, 2)
        made = sorted(job.spec.payload["message"] for job in ports.jobs.rows.values())
        assert made == ["0.0", "2.0", "3.0"], fatal
        assert {id: len(letter.errors) for id, letter in ports.intake_letters.rows.items() if letter} == {"m1": 1, "m2": 2}, fatal
    assert fatal > 8
