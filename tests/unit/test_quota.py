"""Quotas: admitted and refused jobs, the wait after a refusal, and the number of writes."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.accounts.quota import FRESH_MS, RECOUNT_MS, QuotaGate
from scheduler.jobs.cancel import cancel, cancel_many
from scheduler.model.account import Profile, Quotas, Stock, Tally
from scheduler.model.errors import TooMany, Unavailable
from scheduler.model.job import Job
from scheduler.model.rules import Rules
from scheduler.storage.memory.ports import MemoryPorts
from scheduler.tasks import service
from tests.conftest import NOW, FixedClock, a_job
from tests.unit.task_stage import TaskStage

HOUR = 3_600_000


class Api(MemoryPorts):
    """API processes that share their tables and a clock."""

    def __init__(self, processes: int = 1, *, max_jobs: int = 0, creates_per_second: int = 0) -> None:
        super().__init__(FixedClock(), Rules(max_jobs=max_jobs, creates_per_second=creates_per_second))
        self.gates = [QuotaGate(self, lambda: 0.0) for _ in range(processes)]

    def create(self, number: int = 1, user: str = "ann", process: int = 0) -> bool:
        """Whether the jobs were admitted."""
        try:
            self.gates[process].admit(user, number)
        except TooMany as error:
            self.wait = error.retry_after_ms
            return False
        for _ in range(number):
            self.jobs.put(a_job(owner=user, due_at=self.clock.at + HOUR))
        return True


def test_a_user_far_below_the_quota_costs_no_write() -> None:
    api = Api(creates_per_second=1_000, max_jobs=1_000_000)
    assert all(api.create() for _ in range(499))
    assert api.users.writes == 0


def test_a_thousand_creates_cost_two_writes() -> None:
    api = Api(creates_per_second=1_000)
    assert all(api.create() for _ in range(1_000))
    assert api.users.writes == 2


def test_a_burst_of_ten_seconds_is_admitted_and_then_the_rate() -> None:
    api = Api(creates_per_second=2)
    let_in = sum(api.create() for _ in range(100))
    assert 20 <= let_in <= 22
    over = 0
    for _ in range(600):
        api.clock.advance(100)
        over += api.create()
    assert 115 <= over <= 122


def test_a_create_succeeds_after_the_wait_of_its_refusal() -> None:
    api = Api(creates_per_second=2)
    while api.create():
        pass
    wait = api.wait
    api.clock.advance(wait - 1)
    assert not api.create()
    api.clock.advance(1)
    assert api.create()


@pytest.mark.parametrize("size", [1, 20, 100, 300])
def test_many_processes_of_one_call_each_are_admitted_at_the_rate(size: int) -> None:
    api, random = Api(creates_per_second=100), Random(1)
    let_in = 0
    for _ in range(6_000):
        api.gates = [QuotaGate(api, random.random)]
        try:
            api.gates[0].admit("ann", size)
            let_in += size
        except TooMany:
            pass
        api.clock.advance(4 if size == 1 else 50)
    seconds = (api.clock.at - NOW) / 1_000
    assert 0.9 * 100 * seconds <= min(let_in, 100 * seconds) and let_in <= 1.1 * 100 * seconds + 1_000


def test_a_refused_user_causes_no_writes_until_the_wait_is_over() -> None:
    api = Api(creates_per_second=0.1)
    while api.create():
        pass
    writes = api.users.writes
    assert not any(api.create() for _ in range(100)) and api.users.writes == writes


@pytest.mark.long
@given(processes=st.integers(1, 20), rate=st.sampled_from([1.0, 7.0, 100.0]), seconds=st.integers(5, 40))
def test_many_processes_exceed_the_rate_by_at_most_a_block_each(processes: int, rate: float, seconds: int) -> None:
    api = Api(processes, creates_per_second=rate)
    let_in = 0
    for _ in range(seconds * 4):
        for process in range(processes):
            let_in += sum(api.create(5, process=process) for _ in range(4)) * 5
        api.clock.advance(250)
    block = max(1.0, rate * 0.5) + 5
    assert let_in <= rate * (10 + seconds) + processes * block


def test_one_user_s_flood_does_not_affect_another() -> None:
    api = Api(creates_per_second=1)
    while api.create():
        pass
    assert api.create(user="ben")


def test_an_idle_user_saves_up_at_most_one_burst() -> None:
    api = Api(creates_per_second=2)
    assert api.create()
    api.clock.advance(HOUR)
    assert 20 <= sum(api.create() for _ in range(100)) <= 23


def test_a_user_s_own_quota_applies_within_half_a_minute() -> None:
    api = Api(creates_per_second=1)
    while api.create():
        pass
    api.users.set_quotas("ann", Quotas(creates_per_second=1_000))
    api.clock.advance(FRESH_MS)
    assert sum(api.create() for _ in range(500)) == 500


def test_waiting_jobs_are_limited_by_the_quota() -> None:
    api = Api(max_jobs=50)
    assert sum(api.create() for _ in range(80)) <= 52
    assert api.jobs.count_ahead("ann", api.clock.at) >= 50
    assert 0 < api.wait <= RECOUNT_MS


def test_the_wait_of_a_refusal_is_true_for_many_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    api, open_jobs = Api(max_jobs=200_000), [200_000]
    monkeypatch.setattr(api.jobs, "count_ahead", lambda owner, now: open_jobs[0])
    api.users.tallies["ann"] = Tally(0, NOW, 200_000)
    assert not api.create() and api.wait == 200_000
    open_jobs[0] = 0
    api.clock.advance(api.wait - 1)
    assert not api.create() and api.wait == 1
    api.clock.advance(1)
    assert api.create()


@pytest.mark.parametrize("most", [5, 40, 400])
def test_cancelled_jobs_free_the_quota_at_once_in_all_processes(most: int) -> None:
    api = filled(most)
    open_jobs = list(api.jobs.rows.values())
    cancel_many(open_jobs[1:], api)
    cancel(open_jobs[0].key, api)
    let_in = sum(api.create(process=number % 3) for number in range(most + 10))
    assert most <= let_in <= most + 3 * max(1, most // 20)


def test_one_cancelled_job_frees_the_place_of_one() -> None:
    api = filled(5)
    job = next(iter(api.jobs.rows.values()))
    cancel(job.key, api)
    cancel(job.key, api)
    assert api.create(process=1) and not api.create(process=2)


def test_the_withdrawn_runs_of_a_deleted_task_free_the_quota() -> None:
    stage = TaskStage()
    task = stage.create({"cron": "* * * * *"})
    runs = stage.jobs.count_ahead(task.owner, stage.clock.now())
    stage.users.set_stock(task.owner, Stock(runs, 0, stage.clock.now()))
    service.delete(task.key, stage)
    assert runs > 0 and stage.users.profiles([task.owner])[task.owner].freed >= runs


def test_a_user_whose_jobs_were_never_counted_stores_nothing_with_a_cancel() -> None:
    api = Api(max_jobs=1_000)
    assert api.create()
    cancel(next(iter(api.jobs.rows.values())).key, api)
    assert "ann" not in api.users.rows


def test_jobs_are_cancelled_while_the_users_table_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    api = filled(5)

    def refuse(*_: object) -> None:
        raise Unavailable

    monkeypatch.setattr(api.users, "free", refuse)
    job = next(iter(api.jobs.rows.values()))
    assert cancel(job.key, api).cancelled_at is not None


def test_cancels_that_the_count_did_not_contain_admit_few_jobs() -> None:
    """Runs of tasks are stored without a question to the quota: their cancels must not raise the quota for good."""
    api = filled(40)
    for _ in range(20):
        runs = [uncounted(api) for _ in range(40)]
        cancel_many(runs, api)
        while api.create():
            pass
    assert api.jobs.count_ahead("ann", api.clock.at) <= 40 + 50 + 2


def uncounted(api: Api) -> Job:
    job = a_job(owner="ann", due_at=api.clock.at + HOUR)
    api.jobs.put(job)
    return job


def filled(most: int) -> Api:
    """Three processes of a user who has created as many jobs as may be open; each has refused one."""
    api = Api(3, max_jobs=most)
    while api.create():
        pass
    assert not any(api.create(process=number) for number in (1, 2))
    return api


def test_jobs_that_wait_past_their_time_count() -> None:
    api = Api(max_jobs=50)
    while api.create():
        pass
    api.clock.advance(2 * HOUR)
    assert not api.create()


def test_ended_jobs_free_the_quota_after_a_minute() -> None:
    api = Api(max_jobs=50)
    while api.create():
        pass
    api.jobs.rows.clear()  # all jobs have ended
    assert not api.create()
    api.clock.advance(api.wait)
    assert api.create()


def test_waiting_jobs_are_counted_only_when_they_could_be_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    api, counts = Api(max_jobs=100), []
    count = api.jobs.count_ahead
    monkeypatch.setattr(api.jobs, "count_ahead", lambda owner, since: counts.append(owner) or count(owner, since))
    for _ in range(95):
        assert api.create()
    assert counts == []
    for _ in range(30):
        api.create()
    assert len(counts) == 1


def test_a_stock_counted_by_another_process_is_used() -> None:
    api = Api(max_jobs=10)
    api.users.rows["ann"] = Profile("ann", stock=Stock(0, 95, NOW))
    api.users.tallies["ann"] = Tally(100, NOW, 100)
    assert api.create(4)  # 100 were created, but only five after the count of zero
    assert api.users.rows["ann"].stock == Stock(0, 95, NOW)


def test_a_batch_beyond_the_rate_is_admitted_and_paid_back() -> None:
    api = Api(creates_per_second=10)
    assert api.create(1_000)
    assert not api.create()
    api.clock.advance(60_000)
    assert not api.create()
    api.clock.advance(31_000)
    assert api.create()


def test_all_jobs_are_admitted_while_the_table_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    api = Api(creates_per_second=0.01)

    def refuse(*_: object, restart: bool) -> Tally:
        raise Unavailable

    monkeypatch.setattr(api.users, "add_within", refuse)
    assert all(api.create() for _ in range(50))


@pytest.mark.long
def test_without_quotas_nothing_is_counted() -> None:
    api = Api()
    assert all(api.create(1_000) for _ in range(20)) and api.users.writes == 0


def test_refused_jobs_do_not_count_against_the_rate() -> None:
    api = Api(10, creates_per_second=1)
    let_in = 0
    for _ in range(400):
        let_in += sum(api.create(process=process) for process in range(10))
        api.clock.advance(250)
    assert let_in >= 100


def test_a_count_by_another_process_is_not_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    api = Api(max_jobs=10)
    assert api.create()  # this process has read the profile
    api.users.add_to_tally("ann", 100, api.clock.at)
    api.users.set_stock("ann", Stock(1, 101, api.clock.at))
    monkeypatch.setattr(api.jobs, "count_ahead", lambda owner, since: pytest.fail("was counted again"))
    assert api.create()
