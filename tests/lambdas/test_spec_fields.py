"""A field of a job's spec that one of the API's models lacks is named here with the model and its file."""

from dataclasses import fields

import pytest
from pydantic import BaseModel

from lambdas.rest.job_answers import JobShape
from lambdas.rest.models import CONVERTED, JobChange, WorkRequest
from lambdas.rest.task_models import TaskFacts
from scheduler.model.spec import JobSpec

NAMES = {field: name for name, (field, _) in CONVERTED.items()} | {"ordering": "ordering_key"}  # of fields with another name in the API
FIELDS = {NAMES.get(field.name, field.name) for field in fields(JobSpec)} - {"placeholders"}  # which follows from the payload
FIXED = {"type", "target", "callback", "ordering_key", "key"}  # a job keeps these


@pytest.mark.parametrize(("model", "without"), [(WorkRequest, set()), (JobChange, FIXED), (JobShape, set()), (TaskFacts, set())])
def test_a_model_has_each_field_of_the_spec(model: type[BaseModel], without: set[str]) -> None:
    lacking = FIELDS - without - model.model_fields.keys()
    assert lacking == set(), f"{model.__name__} in {model.__module__.replace('.', '/')}.py lacks {', '.join(lacking)}"


@pytest.mark.parametrize("model", [WorkRequest, JobChange])
def test_each_field_of_a_request_reaches_the_spec(model: type[BaseModel]) -> None:
    elsewhere = {"message", "on_failure", "notifications", "execute_at", "delay", "expires_at"}  # part of others, or of the job itself
    lost = model.model_fields.keys() - FIELDS - elsewhere
    assert lost == set(), f"JobSpec in scheduler/model/spec.py lacks {', '.join(lost)} of {model.__name__}"
