"""docs/reference/limits.md against the constants that it quotes."""

import re
from pathlib import Path

import pytest

from lambdas.rest import group_models, request_body, target_models
from lambdas.rest.models import BatchRequest
from scheduler.intake import intake
from scheduler.jobs import groups
from scheduler.model import after, attempt_output, calendar, group, ids, instants, item_limit, lifecycle, operation, own_keys, paging, spec
from scheduler.model import intake as intake_letter
from scheduler.storage.aws import keys
from scheduler.targets import payload_schema, placeholders
from scheduler.targets.types import http
from scheduler.tasks import calendar_form, exclusions

PAGE = (Path(__file__).parents[2] / "docs/reference/limits.md").read_text()
DAY = 86_400_000
SQS_BYTES = 1_048_576  # of a message: https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-messages.html
ROWS = {
    "body of a request": [request_body.LIMIT],
    "body of a batch": [request_body.LARGE, BatchRequest.model_json_schema()["properties"]["jobs"]["maxItems"]],
    "jobs of a request for a group": [group_models.MOST_JOBS],
    "jobs of a group": [group.MOST],
    "jobs that join a group one by one": [1_000],
    "time within which a group is sealed": [groups.LEAST_MS // 60_000, groups.LONGEST_MS // DAY],
    "message of an intake queue": [SQS_BYTES, BatchRequest.model_json_schema()["properties"]["jobs"]["maxItems"]],
    "body of a dead letter of the intake": [intake_letter.BODY_BYTES],
    "rules that a dead letter of the intake lists": [intake.LISTED],
    "a job or a task as it is stored, with everything in it": [item_limit.LIMIT],
    "key of your own": [own_keys.LONGEST],
    "jobs that a job waits for (`after`)": [after.MOST],
    "start in the future, delay": [instants.FUTURE_LIMIT // DAY],
    "start in the past": [instants.PAST_LIMIT // DAY],
    "calendars of an owner": [calendar.MOST_CALENDARS],
    "dates of a calendar": [calendar.MOST_DATES, calendar_form.FIRST.year, calendar_form.LAST.year],
    "calendars of a schedule; calendars and dates": [calendar_form.MOST_NAMED, calendar_form.MOST_ENTRIES],
    "days by which a calendar moves a run": [exclusions.MOST_MOVED],
    "runs a day of a schedule whose excluded runs move": [exclusions.MOST_A_DAY],
    "placeholders in a payload": [placeholders.MOST],
    "jobs of one key at once, by its `limit`": [spec.MOST_OF_KEY],
    "starts of one key": [spec.MOST_STARTS_A_SECOND, spec.SHORTEST_PERIOD_MS // 1_000, spec.LONGEST_PERIOD_MS // DAY],
    "`payload_schema` of a named target": [payload_schema.MOST_BYTES],
    "defaults of a named target": [target_models.MOST_DEFAULTS],
    "operations of one owner at once": [operation.MAX_RUNNING],
    "output and log of an attempt, stored whole in a bucket": [attempt_output.WHOLE],
    "response that `http` keeps": [http.READ_LIMIT],
    "attempts in the record of a job": [attempt_output.RETAINED_ATTEMPTS],
    "excerpts in the record: output, log and response of all attempts together": [attempt_output.ROOM],
    "of them, an attempt that another one has followed": [attempt_output.FORMER, attempt_output.FORMER],
    "message of a failure": [lifecycle.LONGEST_FAILURE],
    "headers of a response": [attempt_output.HEADERS],
    "writes of the jobs of one user": [ids.PARTITIONS * 1_000],
    "changes of time, and jobs replaced by their key, of one user": [keys.MOVED_PARTITIONS * 1_000 // 2],
    "page of a list": [100, paging.ANSWER_BYTES],
}


def test_the_page_has_a_row_for_each_limit() -> None:
    assert re.findall(r"^\| (.+?) \|", PAGE, re.MULTILINE)[1:] == list(ROWS)


@pytest.mark.parametrize("what", ROWS)
def test_the_figures_equal_the_limits_in_the_code(what: str) -> None:
    (limit,) = re.findall(rf"^\| {re.escape(what)} \| (.+?) \|", PAGE, re.MULTILINE)
    assert [int(number.replace(",", "")) for number in re.findall(r"\d[\d,]*", limit)] == ROWS[what]
