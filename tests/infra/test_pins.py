"""No change of the code may replace what holds data in a deployed stage."""

import copy
import json

import pytest

from tests.infra.conftest import Synthesized
from tests.infra.pins import FILE, LOSS, NAMES, NO_DATA, STAGES, differences, pins

MEANT = """
A new resource, and a new index of a table, lose nothing: run `python -m tests.infra.pins`, and commit pins.json.
For any other change, first write into docs/guides/upgrade.md how a deployed stage keeps what it would lose."""

PINNED = json.loads(FILE.read_text())


@pytest.mark.parametrize("stage", [pytest.param(stage, marks=[pytest.mark.long] if stage != "prod" else []) for stage in STAGES])
def test_what_holds_data_keeps_its_identity(stage: str) -> None:
    told = differences(stage, PINNED[stage], pins(stage))
    assert not told, "\n".join([*told, MEANT])


def test_a_new_id_key_or_name_would_be_noticed() -> None:
    before = PINNED["prod"]
    (table,) = [id for id in before if id.startswith("StorageJobs")]
    moved = copy.deepcopy(before)
    moved["StoreJobs12345678"] = moved.pop(table)
    lost, new = differences("prod", before, moved)
    assert lost == f"prod: {table} (AWS::DynamoDB::GlobalTable) is gone. A deployed stage loses {LOSS['DynamoDB::GlobalTable']}."
    assert new == "prod: StoreJobs12345678 (AWS::DynamoDB::GlobalTable) is new, and not pinned."
    changed = copy.deepcopy(before)
    changed[table]["indexes"]["due"][1] = "due_at S RANGE"
    (told,) = differences("prod", before, changed)
    assert '"due": ["slot S HASH", "due_at N RANGE"]' in told and '"due": ["slot S HASH", "due_at S RANGE"]' in told
    (options,) = [id for id, each in before.items() if each.get("Name") == "/punctual/prod/options"]
    changed = copy.deepcopy(before)
    changed[options]["Name"] = "/punctual/prod/choices"
    assert "the next deployment read" in differences("prod", before, changed)[0]


def test_what_outlives_a_stack_has_no_name_that_the_next_one_needs(prod: Synthesized) -> None:
    kept = [each for each in prod.template["Resources"].values() if each.get("DeletionPolicy", "Delete") != "Delete"]
    assert len(kept) > 30
    assert not [each for each in kept for name in NAMES if isinstance(each["Properties"].get(name), str)]


def test_every_kind_of_store_is_pinned() -> None:
    kinds = {each["type"].removeprefix("AWS::") for each in PINNED["prod"].values()}
    assert kinds == LOSS.keys() and not kinds & set(NO_DATA), "a new type belongs to one of the two"
    tables = [each for each in PINNED["prod"].values() if each["type"] == "AWS::DynamoDB::GlobalTable"]
    assert len(tables) == 7 and all(table["keys"] == ["pk S HASH", "sk S RANGE"] for table in tables)
