"""The typed dictionaries of the Python client have the fields of this scheduler's payloads and words."""

import dataclasses
from typing import get_args

from punctual import fields, records

from scheduler.jobs.by_key import OnConflict, OnStarted
from scheduler.model.job import Lane, Misfire, Overlap, Status
from scheduler.targets.types import http
from scheduler.tasks.schedule import DST_GAP, DST_OVERLAP


def test_the_request_of_a_url_has_the_fields_of_the_type_http() -> None:
    assert set(fields.HttpRequest.__annotations__) == {each.name for each in dataclasses.fields(http.Payload)}


def test_the_words_are_those_of_the_scheduler() -> None:
    enums = {fields.OnConflict: OnConflict, fields.OnStarted: OnStarted, records.Overlap: Overlap, records.Misfire: Misfire}
    for words, values in [*enums.items(), (records.Status, Status), (records.Lane, Lane)]:
        assert set(get_args(words)) == {each.value for each in values}
    assert get_args(fields.DstGap) == DST_GAP and get_args(fields.DstOverlap) == DST_OVERLAP
