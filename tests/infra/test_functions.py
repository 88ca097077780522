import json
from dataclasses import replace
from typing import Any

import pytest

from infra.conclude import patterns
from infra.options import Events
from lambdas import _settings
from lambdas._runtime import AwsPorts
from lambdas._settings import NAMES as ALL_NAMES
from lambdas._settings import Settings
from scheduler.model.job import Lane
from scheduler.model.rules import Rules
from tests.infra.conftest import ROOT, Synthesized
from tests.simulation import lineage

NAMES = [
    "Api",
    "Tick",
    "Plan",
    "Dispatch",
    "ExecuteOneTime",
    "ExecuteRecurring",
    "ExecuteRetry",
    "Bury",
    "Fetch",
    "Project",
    "Notify",
    "Scale",
]
ANNOUNCE = "Announce"  # only in stages with an event bus or traces
INTAKE = "Intake"  # only in stages with intake queues
CONCLUDE = "Conclude"  # only in stages whose jobs may start containers or executions
PROVISION = "Provision"  # only in stages whose lanes may keep pollers ready
LANES = ("OneTime", "Recurring", "Retry")
EVERY = ("jobs", "tasks", "orders", "followers", "lanes")  # every function that creates or ends jobs
# The ports of each function, and the settings that its handler or its composition reads besides.
USES: dict[str, tuple[str, ...]] = {
    "api": (
        *EVERY,
        "ledger",
        "work",
        "receipts",
        "operations",
        "targets",
        "users",
        "intake_letters",
        "notice_queue",
        "receivers",
        "owner_alerts",
        "identity",
        "trail",
        "counters",
        "outputs",
        "secrets",
    ),
    "tick": ("jobs", "ledger", "operations", "users", "work"),
    "plan": (*EVERY, "ledger", "users", "owner_alerts"),
    "worker": (*EVERY, "ledger", "users", "operations", "work", "monitors", "notices", "run_timers", "owner_alerts"),
    "execute": (*EVERY, "ledger", "work", "targets", "users", "outputs", "secrets"),
    "bury": (*EVERY, "ledger", "work"),
    "fetch": (),
    "project": ("counters", "notices", "outputs", "groups", "jobs", "lanes", "ledger", "work"),
    "notify": ("jobs", "tasks", "users", "receivers", "owner_alerts", "notices", "secrets"),
    "announce": ("events", "traces"),
    "intake": (*EVERY, "ledger", "work", "receipts", "targets", "users", "owners", "intake_letters"),
    "conclude": (*EVERY, "ledger", "work", "targets"),
    "scale": (*EVERY, "ledger", "counters", "functions"),
    "provision": ("lanes", "counters", "functions"),
}
READS = {
    "api": ("archive_database", "origin_secret", "aws_issuers"),
    "execute": ("lane", "api_url", "fetch_function", "fetch_private_function"),
    "notify": ("api_url", "console_address", "fetch_function"),
    "intake": ("intake_queues",),
    "worker": ("api_url",),
}


class Noted(Settings):
    """Settings that note which names are read."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        vars(self)["noted"] = set()

    def __getattribute__(self, name: str) -> Any:
        if name in ALL_NAMES:
            object.__getattribute__(self, "__dict__")["noted"].add(name)
        return super().__getattribute__(name)

    def get(self, name: str) -> str:
        vars(self)["noted"].add(name)
        return super().get(name)


def names(stack: Synthesized) -> list[str]:
    provision = [PROVISION] if stack.settings.rules.most_pollers else []
    announce = [ANNOUNCE] if stack.settings.events is not Events.NONE or stack.settings.traces is not None else []
    conclude = [CONCLUDE] if patterns(stack.settings) else []
    return [*NAMES, *provision, *announce, *conclude, *([INTAKE] if stack.settings.intake else [])]


def verb(function: dict[str, Any]) -> str:
    return str(function["Handler"]).split(".")[1]


def environ(function: dict[str, Any]) -> dict[str, str]:
    """A function's variables; values that CloudFormation fills in are shown as expressions."""
    variables = function["Environment"]["Variables"]
    return {name: value if isinstance(value, str) else json.dumps(value) for name, value in variables.items()}


def test_there_is_one_function_per_verb_and_one_executor_per_lane(any_stage: Synthesized) -> None:
    assert sorted(any_stage.functions()) == sorted(names(any_stage))


def test_every_handler_is_a_function_of_a_file_under_lambdas(any_stage: Synthesized) -> None:
    for function in any_stage.functions().values():
        assert function["Handler"] == f"lambdas.{verb(function)}.handler"
        source = ROOT / "lambdas" / f"{verb(function)}.py"
        assert "def handler(" in source.read_text()


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_a_functions_environment_makes_every_port_it_uses(any_stage: Synthesized, name: str) -> None:
    """An absent name raises SettingsError here, and not with the first job."""
    check_environment(any_stage, name)


@pytest.mark.parametrize("name", [PROVISION])
def test_the_environment_of_provision_makes_every_port_it_uses(prod: Synthesized, name: str) -> None:
    check_environment(prod, name)


def test_the_environment_of_announce_makes_the_port_it_uses(local: Synthesized) -> None:
    check_environment(local, ANNOUNCE)


def test_the_environment_of_conclude_makes_every_port_it_uses(local: Synthesized) -> None:
    check_environment(local, CONCLUDE)


def test_the_environment_of_intake_makes_every_port_it_uses(local: Synthesized) -> None:
    check_environment(local, INTAKE)
    assert '"jobs=principals=", {"Ref": "IntakeJobs' in environ(local.functions()[INTAKE])["PUNCTUAL_INTAKE_QUEUES"]


def check_environment(any_stage: Synthesized, name: str) -> None:
    function = any_stage.functions()[name]
    settings = Noted.parse(environ(function))
    assert settings.stage == any_stage.settings.stage
    ports = AwsPorts(settings)
    for port in USES[verb(function)]:
        assert getattr(ports, port)
    for each in READS.get(verb(function), ()):
        assert getattr(settings, each) is not None
    ours = {variable for variable in environ(function) if variable.startswith(_settings.PREFIX)} - {"PUNCTUAL_RULES", "PUNCTUAL_REACH"}
    read = {_settings.PREFIX + each.upper() for each in vars(settings)["noted"]}
    assert ours - read == set(), "a variable that nothing reads"


def test_every_function_goes_by_the_rules_of_its_stage(any_stage: Synthesized) -> None:
    for function in any_stage.functions().values():
        rules = Settings.parse(environ(function)).rules
        deployed = replace(any_stage.settings.deployed, deployment=rules.deployment)  # test_versions.py has the tests of its name
        of_fetch = Rules(allow_private_http=deployed.allow_private_http, deployment=rules.deployment)
        assert rules == (of_fetch if verb(function) == "fetch" else deployed)


def test_an_environment_is_well_below_what_lambda_takes(any_stage: Synthesized) -> None:
    for function in any_stage.functions().values():
        assert sum(len(name) + len(value) for name, value in environ(function).items()) < 3_000, "of 4,096, names are longer once deployed"


def test_each_executor_has_its_lane(any_stage: Synthesized) -> None:
    lanes = [environ(any_stage.functions()[name])["PUNCTUAL_LANE"] for name in NAMES if name.startswith("Execute")]
    assert lanes == [Lane.ONE_TIME, Lane.RECURRING, Lane.RETRY]


def test_logs_and_metrics_carry_the_verb_as_service(any_stage: Synthesized) -> None:
    for function in any_stage.functions().values():
        assert environ(function)["POWERTOOLS_SERVICE_NAME"] == verb(function)
        assert environ(function)["POWERTOOLS_METRICS_NAMESPACE"] == f"Punctual/{any_stage.settings.stage}"


def test_every_function_has_its_own_role(any_stage: Synthesized) -> None:
    roles = [function["Role"]["Fn::GetAtt"][0] for function in any_stage.functions().values()]
    assert len(set(roles)) == len(names(any_stage))


def test_every_function_has_its_own_log_group_with_retention(any_stage: Synthesized) -> None:
    groups = [function["LoggingConfig"]["LogGroup"]["Ref"] for function in any_stage.functions().values()]
    assert len(set(groups)) == len(names(any_stage))
    kept = {any_stage.all("Logs::LogGroup")[group]["RetentionInDays"] for group in groups}
    assert kept == {{"local": 1, "dev": 7, "prod": 90}[any_stage.settings.stage]}


def test_functions_run_on_arm_and_are_not_traced(on_aws: Synthesized) -> None:
    for function in on_aws.functions().values():
        assert function["Runtime"] == "python3.13"
        assert function["Architectures"] == ["arm64"]
        assert "TracingConfig" not in function


def asynchronous(stack: Synthesized, field: str) -> dict[str, int]:
    """A setting of the asynchronous calls of each function."""
    found = {}
    for config in stack.all("Lambda::EventInvokeConfig").values():
        match config["Qualifier"]:
            case {"Fn::Select": [7, {"Fn::Split": [":", alias]}]}:
                found[stack.called(alias)] = config[field]
    return found


def test_lambda_repeats_only_the_calls_of_alarms_and_events(any_stage: Synthesized) -> None:
    """The next minute does the work of a missed scheduled call. An alarm calls only when it begins to ring, and an event comes once."""
    expected = {name: 2 if name in (PROVISION, CONCLUDE) else 0 for name in names(any_stage)}
    assert asynchronous(any_stage, "MaximumRetryAttempts") == expected


def test_all_functions_share_one_code_asset(any_stage: Synthesized) -> None:
    assert len({json.dumps(function["Code"], sort_keys=True) for function in any_stage.functions().values()}) == 1


def test_a_throttled_asynchronous_call_is_dropped_after_a_minute(any_stage: Synthesized) -> None:
    """Lambda would try it again for six hours, regardless of its retries: calls of past minutes would delay the present one's."""
    expected = {
        name: 300 if name in (PROVISION, CONCLUDE) else 60 for name in names(any_stage)
    }  # it is repeated after one minute and after three
    assert asynchronous(any_stage, "MaximumEventAgeInSeconds") == expected


def test_only_functions_whose_messages_start_them_again_may_loop(any_stage: Synthesized) -> None:
    """Lambda stops a chain of some 16 calls that start each other, such as the retries of a job, or the jobs of an ordering key."""
    granted = {name: {resource for action, resource in any_stage.grants(name) if action == "sqs:SendMessage"} for name in NAMES}
    granted = {name: sent | ({f"Lanes{lane}" for lane in LANES} if ("sns:Publish", "LanesTopic") in any_stage.grants(name) else set())
               for name, sent in granted.items()}  # fmt: skip
    received = {name: set[str]() for name in names(any_stage)}
    for mapping in any_stage.all("Lambda::EventSourceMapping").values():
        queue = mapping["EventSourceArn"]["Fn::GetAtt"][0][:-8]  # SQS moves messages of any lane to the dead-letter queue
        received[any_stage.called(mapping["FunctionName"])] |= {f"Lanes{lane}" for lane in LANES} if queue == "LanesDead" else {queue}
    starts = {one: {other for other in NAMES if granted[one] & received[other]} for one in NAMES}
    for _ in NAMES:  # the functions that it starts, directly or through others
        starts = {one: others.union(*(starts[other] for other in others)) for one, others in starts.items()}
    in_a_loop = {name for name in NAMES if name in starts[name]}
    assert in_a_loop == {"Dispatch", "Bury", "Notify", "ExecuteOneTime", "ExecuteRecurring", "ExecuteRetry"}
    allowed = {name for name, function in any_stage.functions().items() if function.get("RecursiveLoop") == "Allow"}
    assert allowed == in_a_loop
    assert allowed == lineage.ALLOWED | {"Notify"}, "the simulation counts the chains of all others"


@pytest.mark.parametrize("name", ["Tick", "Plan", "Scale"])
def test_tick_plan_and_scale_run_every_minute_and_retry_once(any_stage: Synthesized, name: str) -> None:
    assert len(any_stage.all("Scheduler::Schedule")) == 3
    schedule = any_stage.one("Scheduler::Schedule", f"{name}EveryMinute")
    assert schedule["ScheduleExpression"] == "rate(1 minute)"
    assert schedule["State"] == "ENABLED"
    assert schedule["FlexibleTimeWindow"] == {"Mode": "OFF"}
    assert any_stage.called(schedule["Target"]["Arn"]) == name
    assert schedule["Target"]["RetryPolicy"] == {"MaximumEventAgeInSeconds": 60, "MaximumRetryAttempts": 1}


@pytest.mark.parametrize(("name", "batch"), [("OneTime", 10), ("Recurring", 10), ("Retry", 1)])
def test_a_lane_feeds_its_executor_in_batches_with_partial_failures(any_stage: Synthesized, name: str, batch: int) -> None:
    mapping = any_stage.one("Lambda::EventSourceMapping", f"Execute{name}Lane")
    lane = {"OneTime": Lane.ONE_TIME, "Recurring": Lane.RECURRING, "Retry": Lane.RETRY}[name]
    assert mapping["EventSourceArn"]["Fn::GetAtt"][0] == any_stage.id("SQS::Queue", f"Lanes{name}")
    assert any_stage.called(mapping["FunctionName"]) == f"Execute{name}"
    assert mapping["BatchSize"] == batch
    assert mapping["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
    assert mapping["ScalingConfig"] == {"MaximumConcurrency": any_stage.settings.concurrency[lane]}


def test_each_step_of_the_engine_has_a_call_of_its_own(any_stage: Synthesized) -> None:
    """A step may take minutes: in a batch it would hold up the others, and its end would decide when they are tried again."""
    mapping = any_stage.one("Lambda::EventSourceMapping", "DispatchWork")
    assert mapping["EventSourceArn"]["Fn::GetAtt"][0] == any_stage.id("SQS::Queue", "LanesWork")
    assert any_stage.called(mapping["FunctionName"]) == "Dispatch"
    assert (mapping["BatchSize"], mapping["FunctionResponseTypes"]) == (1, ["ReportBatchItemFailures"])
    assert mapping["ScalingConfig"] == {"MaximumConcurrency": 1_000}, "a lower limit would hold up the steps of one minute"


def test_bury_receives_from_the_dead_letter_queue_of_the_lanes(any_stage: Synthesized) -> None:
    taken = {
        mapping["EventSourceArn"]["Fn::GetAtt"][0][:-8]
        for mapping in any_stage.all("Lambda::EventSourceMapping").values()
        if any_stage.called(mapping["FunctionName"]) == "Bury" and mapping["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
    }
    assert taken == {"LanesDead"}
