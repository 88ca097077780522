"""The stage that `make prove` measures: found by its CloudFormation outputs, in the region of the environment."""

import pytest

from local.aws import Deployed
from local.failure import Trouble
from local.receiver import Receiver
from ops.cloud import Stage
from prove import place
from prove.place import Place, opened

OUTPUTS = {"ApiUrl": "https://abc.execute-api.eu-west-1.amazonaws.com/"}


@pytest.fixture
def stacks(monkeypatch: pytest.MonkeyPatch) -> dict[str, dict[str, str]]:
    """Return the outputs by stack, of the stacks that are deployed."""
    outputs: dict[str, dict[str, str]] = {}

    def state(self: Stage, stack: str) -> Deployed | None:
        return Deployed(stack, "CREATE_COMPLETE", "", outputs[stack]) if stack in outputs else None

    monkeypatch.setattr(Stage, "state", state)
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    return outputs


def test_a_stage_is_found_in_the_region_of_the_environment(stacks: dict[str, dict[str, str]]) -> None:
    stacks["punctual-dev"] = OUTPUTS
    with opened("dev", short=False) as found:
        assert (found.stage, found.region, found.local) == ("dev", "eu-west-1", False)
        assert found.called == "https://abc.execute-api.eu-west-1.amazonaws.com/api/v1/health"
        assert found.calls() is None
        assert found.client("scheduler", retries={"max_attempts": 3}).meta.region_name == "eu-west-1"


def test_a_stage_that_is_not_deployed_is_named_with_a_remedy(stacks: dict[str, dict[str, str]]) -> None:
    with pytest.raises(Trouble, match=r"no stack punctual-dev in eu-west-1. Deploy it: make deploy STAGE=dev"), opened("dev", short=False):
        pytest.fail("opened")


def test_locally_the_http_job_calls_the_receiver() -> None:
    with Receiver() as receiver:
        local = Place("local", "us-east-1", {}, "", lambda _service: None, receiver)
        assert local.called == receiver.url(place.CALLED)
        assert local.calls() == []
