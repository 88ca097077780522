"""A job for now: the rounds of calls that it waits for, its modelled time on AWS, and the page that shows both."""

from functools import cache

import pytest

from bench import now, rounds
from bench.rounds import CASES, Rounds
from local.home import REPOSITORY

PAGE = REPOSITORY / "docs" / "internals" / "job-for-now.md"


@cache
def counted(keyed: bool = True) -> dict[str, Rounds]:
    return {case.key: rounds.rounds(case, keyed=keyed) for case in CASES}


@pytest.mark.parametrize("case", [case for case in CASES if case.after_ms is not None], ids=lambda case: case.key)
def test_an_executor_of_a_warm_job_for_now_waits_for_one_round(case: rounds.Case) -> None:
    (start,) = counted()[case.key].start
    assert {"ChangeMessageVisibilityBatch", "UpdateItem"} <= set(start)


def test_a_request_waits_for_its_receipt_its_put_and_its_send() -> None:
    for key in ("moment", "seconds"):
        receipt, *others = counted()[key].request
        assert "PutItem" in receipt and set(receipt) <= {"PutItem", "Query", "BatchGetItem"}
        assert others == [("PutItem",), ("SendMessageBatch",)]


@pytest.mark.long
def test_the_message_is_sent_after_the_put_and_last_of_all() -> None:
    for keyed in (True, False):
        assert {found.request[-2:] for found in counted(keyed).values()} == {(("PutItem",), ("SendMessageBatch",))}


def test_without_a_key_the_reads_of_a_request_are_a_round_of_their_own() -> None:
    assert counted(False)["seconds"].request[0] == ("BatchGetItem", "Query")
    assert len(counted(False)["moment"].request) == 3


def test_the_person_and_the_profile_are_read_once_in_half_a_minute() -> None:
    assert counted()["minute"].request[:2] == (("GetItem",), ("Query",))
    assert {key: len(found.request) for key, found in counted().items()} == {"moment": 3, "seconds": 3, "minute": 5, "cold": 6}


def test_a_warm_job_for_now_starts_within_its_budget_on_aws() -> None:
    figures = {figure.key: figure for figure in now.measure(short=True)}
    warm = [figures[f"now.{case.key}.p50_ms"] for case in CASES if case.after_ms is not None]
    assert all(figure.ok for figure in warm) and len(warm) == 3
    assert figures["now.cold.p50_ms"].budget is None


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.key)
def test_the_parts_of_the_way_add_up(case: rounds.Case) -> None:
    found = now.parts(case, counted()[case.key], {"api": 1, "execute": 1})
    assert sum(part.ms for part in found if "round" in part.key) == 5 * (
        len(counted()[case.key].request) - 1 + len(counted()[case.key].start)
    )
    assert sum(part.key.startswith("cold") for part in found) == (2 if case.key == "cold" else 0)


def test_the_page_shows_the_rounds_and_the_parts() -> None:
    page = PAGE.read_text()
    for table in (now.rounds_table(counted()), now.parts_table(counted(), now.recorded_cpu_ms())):
        assert "\n".join(table) in page, "\n" + "\n".join(table)
