import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.model import ids

instants = st.integers(min_value=0, max_value=2**48 - 1)
randoms = st.integers(min_value=0, max_value=2**ids.RANDOM_BITS - 1)


@given(instants, randoms)
def test_the_time_can_be_read_from_the_id(at: int, random: int) -> None:
    assert ids.time(ids.new(at, random)) == at


@given(instants, randoms, instants, randoms)
def test_ids_sort_by_their_times(one: int, a: int, two: int, b: int) -> None:
    assert (ids.new(one, a) < ids.new(two, b)) == (one < two) or one == two


@given(instants, randoms)
def test_first_is_the_bound_of_a_range_of_times(at: int, random: int) -> None:
    assert ids.first(at) <= ids.new(at, random) < ids.first(at + 1)
    assert at == 0 or ids.new(at - 1, 2**ids.RANDOM_BITS - 1) < ids.first(at)


def test_an_instant_before_the_epoch_bounds_like_the_epoch() -> None:
    assert ids.first(-1) == ids.first(0) == "0000000000"


@given(instants, randoms, st.sampled_from([1, 8, 64, 256]))
def test_the_partition_is_written_in_the_id_and_stays(at: int, random: int, partitions: int) -> None:
    job_id = ids.new(at, random, partitions=partitions)
    assert 0 <= ids.partition(job_id) < partitions
    assert ids.partition(job_id) == ids.partition(str(job_id))


def test_known_ids_keep_their_partition() -> None:
    """With another hash, no stored job would be found."""
    assert ids.partition("01JD4Q8XKZ38W2M5R7T9V1C4FH") == 3
    assert ids.new(0, 0) == "0" * 10 + "5" + "0" * 15


@settings(max_examples=5)
@given(instants, st.lists(randoms, min_size=800, max_size=800, unique=True))
def test_the_jobs_of_one_instant_spread_over_all_partitions(at: int, chosen: list[int]) -> None:
    assert {ids.partition(ids.new(at, random)) for random in chosen} == set(range(ids.PARTITIONS))


@given(instants, randoms)
def test_every_new_id_is_valid(at: int, random: int) -> None:
    assert ids.is_job_id(ids.new(at, random))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        "01JD4Q8XKZ38W2M5R7T9V1C4F",
        "01JD4Q8XKZ38W2M5R7T9V1C4FHH",
        "81JD4Q8XKZ38W2M5R7T9V1C4FH",
        "01JD4Q8XKZ98W2M5R7T9V1C4FH",
        "01jd4q8xkz38w2m5r7t9v1c4fh",
    ],
    ids=["empty", "short", "one less", "one more", "beyond 48 bits", "too many partitions", "lower case"],
)
def test_other_texts_are_not_ids(text: str) -> None:
    assert not ids.is_job_id(text)


def test_a_rescheduled_job_is_listed_at_its_new_time_with_its_own_position() -> None:
    """Runs of one task differ in their time only."""
    first, second = (ids.run(hours * 3_600_000, "01JD4Q8XKZ38W2M5R7T9V1C4FH", 1) for hours in (1, 2))
    position = ids.position(first, ids.time(second))
    assert ids.is_job_id(position) and ids.time(position) == ids.time(second) and position != second
    assert ids.position(first, ids.time(first)) == first
