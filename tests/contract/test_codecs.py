"""Each stored record is read back with every field, whatever the values. `test_items` and `test_tasks` have jobs and tasks."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.model.audit import AuditEntry
from scheduler.model.breaker import Breaker
from scheduler.model.job import LaneState, LaterCheck, Receipt, Unit, UnitKey
from scheduler.model.named_target import NamedTarget
from scheduler.model.notice import News, NotificationState, Outbox, Sending, WindowEnd
from scheduler.model.notifications import Notifications
from scheduler.model.operation import Operation
from scheduler.model.spec import JobSpec
from scheduler.model.target_queue import TargetQueue
from scheduler.notify import messages
from scheduler.storage.aws import ledger, operations, receipts, spec_items, targets, trail
from tests.contract import records

some_units = records.of(
    Unit,
    key=st.builds(UnitKey, st.just("2026-11-20T10:01"), st.integers(0, 99)),
    early=st.lists(st.integers(0, 256**ledger.DIGEST - 1), max_size=3).map(tuple),
)
CODECS: dict[str, tuple[st.SearchStrategy[Any], Callable[[Any], Any]]] = {
    "JobSpec": (records.of(JobSpec), lambda spec: spec_items.decode(spec_items.encode(spec))),
    "Notifications": (records.of(Notifications), lambda wanted: messages.decode_notifications(messages.encode_notifications(wanted))),
    "Outbox": (records.of(Outbox), lambda outbox: messages.decode_outbox(messages.encode_outbox(outbox))),
    "NotificationState": (
        records.of(NotificationState),
        lambda state: messages.decode_state(state.task, state.version, messages.encode_state(state), messages.encode_decisions(state)),
    ),
    "NoticeMessage": (
        st.one_of(*map(records.of, (News, WindowEnd, Sending))),
        lambda message: messages.decode(messages.encode(message)),
    ),
    "NamedTarget": (records.of(NamedTarget), lambda target: targets.read_target(targets.target_item(target))),
    "TargetQueue": (records.of(TargetQueue), lambda queue: targets._read_queue([targets._queue_item(queue)])[0]),
    "Operation": (
        records.of(Operation, pending=st.lists(records.some_ids, max_size=3).map(tuple)),
        lambda operation: operations._decode(operations._encode(operation)),
    ),
    "Receipt": (records.of(Receipt), lambda receipt: receipts.decode(receipts.encode(receipt))),
    "AuditEntry": (records.of(AuditEntry), lambda entry: trail._decode(trail._encode(entry))),
    "LaterCheck": (records.of(LaterCheck, unit=some_units), lambda check: ledger._read_check(ledger._check_item(check))),
    "LaneState": (records.of(LaneState), lambda state: ledger._read_lane_state(ledger._lane_state(state))),
    "Breaker": (records.of(Breaker), lambda breaker: ledger._read_breaker(ledger._breaker(breaker))),
}


@pytest.mark.parametrize("name", CODECS)
def test_a_record_is_read_back_with_every_field(name: str) -> None:
    some, there_and_back = CODECS[name]

    @settings(records.unshrunk, max_examples=30)
    @given(some)
    def check(record: Any) -> None:
        assert records.differing(there_and_back(record), record) == [], f"the codec of {name} loses these fields"

    check()
