"""The reason of a job at the instant of a read: pauses and breakers that are over leave none."""

from typing import Any

from scheduler.admission import breaker, why_waits
from scheduler.admission.gate import PAUSED
from scheduler.admission.owner_gate import WHY_DISABLED
from scheduler.admission.why_waits import Seen
from scheduler.model import slots
from scheduler.model.breaker import Circuit
from scheduler.model.instants import render
from scheduler.model.job import Job, Lane, LaneState, RequeueCause, changed
from tests.conftest import NOW, a_job

PAUSE = LaneState(Lane.ONE_TIME, paused_at=NOW - 9_000, reason="moving house", paused_by="u1", paused_by_name="olga")
AT_PAUSE = Seen({Lane.ONE_TIME: PAUSE})
TOLD = f"its lane one-time is paused since {render(NOW - 9_000)} by olga: moving house"
CIRCUIT = Circuit("host example.com", "ann")


def sent_away(cause: RequeueCause, reason: str, **fields: Any) -> Job:
    return changed(a_job(type="http", payload={"url": "https://example.com/x"}), requeue_cause=cause, reason=reason, **fields)


def test_a_due_job_names_the_pause_of_its_lane() -> None:
    assert why_waits.reason(a_job(due_at=NOW), AT_PAUSE, NOW) == TOLD
    assert why_waits.reason(a_job(due_at=NOW + 1), AT_PAUSE, NOW) is None
    assert why_waits.reason(a_job(due_at=NOW, lane=Lane.RETRY), AT_PAUSE, NOW) is None
    assert why_waits.paused(LaneState(Lane.RETRY, paused_at=NOW)) == f"its lane retry is paused since {render(NOW)}"


def test_a_pause_that_is_over_is_no_reason() -> None:
    job = sent_away(RequeueCause.PAUSED, PAUSED.reason, slot=slots.slot(slots.room_of("one-time"), "x", 2))
    assert why_waits.reason(job, AT_PAUSE, NOW) == TOLD
    assert why_waits.reason(job, Seen(), NOW) is None
    assert why_waits.reason(job, None, NOW) == PAUSED.reason, "the states could not be read"


def test_a_job_of_a_disabled_user_keeps_its_reason() -> None:
    job = sent_away(RequeueCause.PAUSED, WHY_DISABLED, slot=slots.slot(slots.room_of_owner("ann"), "x", 2))
    assert why_waits.reason(job, Seen(), NOW) == WHY_DISABLED


def test_the_reason_of_a_breaker_follows_the_breaker() -> None:
    job = sent_away(RequeueCause.BREAKER, "breaker: as it was then", due_at=NOW + 60_000)
    opened = breaker.opened(CIRCUIT, NOW)
    assert why_waits.depends(job, NOW)
    found = why_waits.reason(job, Seen({}, {CIRCUIT: opened}), NOW)
    assert found == f"breaker: host example.com does not answer; open until {render(opened.until)}"
    half_open = breaker.probed(opened, a_job(), opened.until)
    found = why_waits.reason(job, Seen({}, {CIRCUIT: half_open}), opened.until)
    assert found == "breaker: host example.com does not answer; another job is trying it"


def test_a_breaker_that_has_closed_is_no_reason_of_a_due_job() -> None:
    job = sent_away(RequeueCause.BREAKER, "breaker: as it was then", due_at=NOW + 60_000)
    waits = f"breaker: host example.com answers again; the job starts at {render(NOW + 60_000)}"
    assert why_waits.reason(job, Seen(), NOW) == waits
    assert why_waits.reason(job, Seen(), NOW + 60_000) is None


def test_other_reasons_stay_and_an_ended_job_keeps_its_own() -> None:
    job = changed(a_job(due_at=NOW), reason="ordering: behind another")
    assert why_waits.reason(job, Seen(), NOW) == "ordering: behind another"
    ended = sent_away(RequeueCause.PAUSED, "expired", slot=None, due_at=NOW)
    assert why_waits.reason(ended, AT_PAUSE, NOW) == "expired" and not why_waits.depends(ended, NOW)
