import re

import pytest

from infra.settings import SAMPLE
from scheduler.storage.aws.keys import OWNER_ALERTS, RECEIVERS
from tests.infra.conftest import ROOT, Synthesized, allowed, synthesized

# Actions that may be granted on every resource, with the reason why there is no narrower grant. On AWS there are none.
ANYWHERE_LOCALLY = {
    "dynamodb:BatchExecuteStatement": "an action of the local AWS alone, which sees no table in a statement",
    "ses:SendEmail": "the local AWS sees no identity in a call",
    "ecs:DescribeTaskDefinition": "AWS checks no resource of it; other stages have it only if they allow containers",
}


SCALED = ("OneTime", "Recurring")  # the lanes that may keep pollers ready
POLLERS = {(f"lambda:{verb}EventSourceMapping", f"event-source-mapping:Execute{lane}Lane") for verb in ("Get", "Update") for lane in SCALED}
POLLERS |= {("sqs:GetQueueAttributes", f"Lanes{lane}") for lane in SCALED}


def named(grant: tuple[str, str]) -> tuple[str, str]:
    """A grant on an event source mapping without the account's part of its ARN."""
    action, resource = grant
    return action, resource[max(resource.find("event-source-mapping:"), 0) :]


def who_may(stack: Synthesized, action: str, resource: str) -> set[str]:
    return {name for name in stack.functions() if (action, resource) in stack.grants(name)}


def of_tasks(stack: Synthesized, name: str) -> set[str]:
    """A function's actions on the tasks table itself, without its indexes."""
    granted = {grant for grant in stack.grants(name) if grant[1].startswith("StorageTasks")}
    assert {resource for _, resource in granted} == {"StorageTasks"}
    return {action.removeprefix("dynamodb:") for action, _ in granted}


LANE_OF = {f"Execute{lane}": f"Lanes{lane}" for lane in ("OneTime", "Recurring", "Retry")}
EXECUTORS = LANE_OF.keys()


def test_no_role_allows_a_wildcard_except_the_explained_ones(any_stage: Synthesized) -> None:
    explained = ANYWHERE_LOCALLY if any_stage.settings.stage == "local" else {}
    for id, role in any_stage.all("IAM::Role").items():
        assert "ManagedPolicyArns" not in role, id
        for policy in role["Policies"]:
            for action, resource in allowed(policy["PolicyDocument"]):
                assert "*" not in action, (id, action)
                work = ("states:DescribeExecution", "states:StopExecution", "ecs:DescribeTasks", "ecs:StopTask", "ecs:TagResource")
                over_executions = action in work and resource.count("*") == 1 and resource.endswith((":*", "/*"))
                over_executions |= action == "ecs:RunTask" and resource.removesuffix(":*") in any_stage.settings.allowed_targets
                over_secrets = action == "secretsmanager:GetSecretValue" and resource.endswith(
                    f":secret:punctual/{any_stage.settings.stage}/*"
                )
                over_objects = action in ("s3:PutObject", "s3:GetObject") and resource == "StorageOutputs/*"
                over_objects |= action in ("s3:PutObject", "s3:AbortMultipartUpload") and resource == "ArchiveBucket/*"
                assert "*" not in resource or action in explained or over_executions or over_objects or over_secrets, (id, action, resource)


def test_no_policy_is_added_to_a_role_beyond_its_grants(any_stage: Synthesized) -> None:
    assert not any_stage.all("IAM::Policy")
    assert not any_stage.all("IAM::ManagedPolicy")


def test_only_its_service_can_assume_a_role(any_stage: Synthesized) -> None:
    for id, role in any_stage.all("IAM::Role").items():
        (statement,) = role["AssumeRolePolicyDocument"]["Statement"]
        services = {"ScheduleRole": "scheduler", "StreamRole": "firehose"}
        service = next((name for end, name in services.items() if id[:-8].endswith(end)), "lambda")
        assert statement["Principal"] == {"Service": f"{service}.amazonaws.com"}
        ours = statement.get("Condition", {}).get("StringEquals", {})
        assert ours.get("aws:SourceAccount") == (None if service == "lambda" else {"Ref": "AWS::AccountId"}), "others could name the role"
        group = ours.get("aws:SourceArn", {"Fn::Join": ["", [""]]})["Fn::Join"][1][-1]
        assert group == (":schedule-group/default" if service == "scheduler" else ""), "as EventBridge Scheduler requires"


def test_only_some_verbs_write_jobs_and_fewer_insert_them(prod: Synthesized) -> None:
    changers = {"Api", "Dispatch", "Bury", "Scale"} | EXECUTORS  # dispatch: reconciles, operations; scale: its canaries
    assert who_may(prod, "dynamodb:UpdateItem", "StorageJobs") == changers
    assert who_may(prod, "dynamodb:PartiQLUpdate", "StorageJobs") == changers
    assert who_may(prod, "dynamodb:PutItem", "StorageJobs") == {"Api", "Tick", "Dispatch", "Scale"}  # tick and dispatch: canaries
    enders = {"Bury", "Project"} | EXECUTORS  # call-backs of groups
    assert who_may(prod, "dynamodb:PartiQLInsert", "StorageJobs") == {"Api", "Plan", "Dispatch"} | enders  # dispatch: tasks resumed
    assert who_may(prod, "dynamodb:PartiQLDelete", "StorageJobs") == {"Api", "Plan", "Dispatch"}  # dispatch: tasks paused
    assert who_may(prod, "dynamodb:DeleteItem", "StorageJobs") == {"Dispatch"}  # canaries of closed units


def test_dispatch_reads_indexes_changes_jobs_and_writes_canaries(prod: Synthesized) -> None:
    assert {grant for grant in prod.grants("Dispatch") if grant[1].startswith("StorageJobs")} == {
        ("dynamodb:Query", "StorageJobs/index/due"),
        ("dynamodb:Scan", "StorageJobs/index/due"),  # the sweep
        ("dynamodb:Query", "StorageJobs/index/failures"),  # operations read the lists
        ("dynamodb:Query", "StorageJobs/index/moved"),
        ("dynamodb:Query", "StorageJobs/index/by_task"),
        ("dynamodb:Query", "StorageJobs"),
        ("dynamodb:BatchGetItem", "StorageJobs"),
        ("dynamodb:GetItem", "StorageJobs"),  # the entry of a key, of which a redrive takes one job
        ("dynamodb:UpdateItem", "StorageJobs"),
        ("dynamodb:PartiQLUpdate", "StorageJobs"),
        ("dynamodb:PutItem", "StorageJobs"),
        ("dynamodb:DeleteItem", "StorageJobs"),
        ("dynamodb:PartiQLInsert", "StorageJobs"),  # runs of tasks that operations resume
        ("dynamodb:PartiQLDelete", "StorageJobs"),  # ... and pause or delete
    }


def test_tick_writes_canaries_and_the_mark_and_reads_no_slot(prod: Synthesized) -> None:
    assert {grant for grant in prod.grants("Tick") if not grant[0].startswith("logs:")} == {
        ("dynamodb:GetItem", "StorageJobs"),
        ("dynamodb:PutItem", "StorageJobs"),
        ("dynamodb:GetItem", "StorageLedger"),
        ("dynamodb:Query", "StorageLedger"),
        ("dynamodb:PutItem", "StorageLedger"),
        ("dynamodb:GetItem", "StorageUsers"),
        ("sqs:SendMessage", "LanesWork"),
    }


def test_only_api_and_dispatch_write_users_and_dispatch_notes_freed_jobs(prod: Synthesized) -> None:
    found = {(name, action) for name in prod.functions() for action, resource in prod.grants(name) if resource.startswith("StorageUsers")}
    # The item of the disabled and deleted users; the API reads it for the status.
    barred = {(name, "dynamodb:GetItem") for name in {"Plan", "Tick", "Dispatch", "Api"} | EXECUTORS}
    weights = {(name, "dynamodb:BatchGetItem") for name in {"Dispatch", "Api"} | EXECUTORS}  # executors: of users with long jobs
    alerts = {(name, "dynamodb:BatchGetItem") for name in ("Plan", "Notify")}  # the default ones of owners
    owners = {("Api", f"dynamodb:{action}") for action in ("Query", "PutItem", "DeleteItem", "ConditionCheckItem")}  # and who acts for them
    receivers = {("Notify", f"dynamodb:{action}") for action in ("GetItem", "Query", "UpdateItem")} | {("Dispatch", "dynamodb:Query")}
    assert found == weights | alerts | {("Api", "dynamodb:UpdateItem"), ("Dispatch", "dynamodb:UpdateItem")} | barred | owners | receivers


@pytest.mark.parametrize("name", ["Notify", "Dispatch"])
def test_notify_and_dispatch_list_only_receivers_of_the_users_table(prod: Synthesized, name: str) -> None:
    role = prod.all("IAM::Role")[prod.functions()[name]["Role"]["Fn::GetAtt"][0]]
    statements = [each for each in role["Policies"][0]["PolicyDocument"]["Statement"] if "StorageUsers" in str(each["Resource"])]
    found = [each["Condition"] for each in statements if name == "Notify" or "dynamodb:Query" in each["Action"]]
    keys = [f"{RECEIVERS}*", *([f"{OWNER_ALERTS}*"] if name == "Notify" else [])]
    assert found == [{"ForAllValues:StringLike": {"dynamodb:LeadingKeys": keys}}]


def test_api_and_dispatch_edit_tasks_and_others_update_items_beside_them(prod: Synthesized) -> None:
    assert who_may(prod, "dynamodb:PutItem", "StorageTasks") == {"Api", "Dispatch"}  # dispatch: operations on many tasks
    assert who_may(prod, "dynamodb:DeleteItem", "StorageTasks") == {"Api", "Dispatch"}
    assert who_may(prod, "dynamodb:ConditionCheckItem", "StorageTasks") == {"Api", "Dispatch"}  # the versions of calendars of a task
    counting = {"Bury", "Project"} | EXECUTORS  # ended members of groups; executors: the usage of limits, too
    assert who_may(prod, "dynamodb:UpdateItem", "StorageTasks") == {"Api", "Plan", "Dispatch"} | counting


def test_an_executor_reads_and_writes_ordering_queues_locks_and_limits(prod: Synthesized) -> None:
    """All these items are in the tasks table; IAM cannot distinguish them."""
    actions = {"BatchGetItem", "GetItem", "Query", "PartiQLInsert", "PartiQLUpdate", "PartiQLDelete", "UpdateItem"}
    for name in EXECUTORS:
        assert of_tasks(prod, name) == actions


def test_verbs_that_end_or_create_jobs_may_change_ordering_queues(prod: Synthesized) -> None:
    enders = {"Api", "Dispatch", "Bury"} | EXECUTORS
    assert who_may(prod, "dynamodb:Query", "StorageTasks") == enders
    assert who_may(prod, "dynamodb:PartiQLDelete", "StorageTasks") == enders | {"Plan"}
    assert who_may(prod, "dynamodb:PartiQLInsert", "StorageTasks") == {"Api", "Plan", "Dispatch"} | EXECUTORS  # dispatch: operations
    assert who_may(prod, "dynamodb:PartiQLUpdate", "StorageTasks") == EXECUTORS | {"Plan"}  # plan: many tasks at once
    assert of_tasks(prod, "Bury") == {"BatchGetItem", "GetItem", "Query", "PartiQLDelete", "UpdateItem"}
    assert {"BatchGetItem", "GetItem", "UpdateItem"} <= of_tasks(prod, "Project")
    edits = {"GetItem", "PutItem", "UpdateItem", "DeleteItem", "ConditionCheckItem"}
    assert of_tasks(prod, "Dispatch") == {"BatchGetItem", "Query", "PartiQLDelete", "PartiQLInsert"} | edits
    for lane in LANE_OF.values():
        assert "Bury" in who_may(prod, "sqs:SendMessage", lane), "jobs that waited for a buried one are enqueued"


def test_executors_write_outputs_and_only_the_api_reads_them(prod: Synthesized) -> None:
    assert who_may(prod, "s3:PutObject", "StorageOutputs/*") == EXECUTORS
    assert who_may(prod, "s3:GetObject", "StorageOutputs/*") == {"Api"}
    assert who_may(prod, "s3:ListBucket", "StorageOutputs") == {"Api"}


def test_only_dispatch_and_the_status_of_the_api_read_the_due_index(prod: Synthesized) -> None:
    assert who_may(prod, "dynamodb:Query", "StorageJobs/index/due") == {"Dispatch", "Api"}


def test_only_dispatch_and_plan_scan_and_only_sparse_indexes(prod: Synthesized) -> None:
    scans = [(name, resource) for name in prod.functions() for action, resource in prod.grants(name) if action == "dynamodb:Scan"]
    assert sorted(scans) == [("Dispatch", "StorageJobs/index/due"), ("Plan", "StorageTasks/index/replenish")]


def test_an_executor_receives_only_messages_of_its_own_lane(prod: Synthesized) -> None:
    for name, lane in LANE_OF.items():
        for action in ("sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:ChangeMessageVisibility"):
            assert [resource for granted, resource in prod.grants(name) if granted == action] == [lane]


def test_only_dispatch_publishes_and_only_messages_start_it(prod: Synthesized) -> None:
    assert who_may(prod, "sns:Publish", "LanesTopic") == {"Dispatch"}
    assert who_may(prod, "lambda:InvokeFunction", "DispatchFunction") == set()
    # Executors: retries, release steps. Project: steps for the jobs that waited for ended ones.
    assert who_may(prod, "sqs:SendMessage", "LanesWork") == {"Api", "Bury", "Tick", "Dispatch", "Project"} | EXECUTORS
    for action in ("ReceiveMessage", "DeleteMessage", "GetQueueAttributes", "ChangeMessageVisibility"):
        assert who_may(prod, f"sqs:{action}", "LanesWork") == {"Dispatch"}


def test_only_api_and_executors_read_the_callback_secret(any_stage: Synthesized) -> None:
    assert who_may(any_stage, "secretsmanager:GetSecretValue", "StorageCallbackKey") == {"Api"} | EXECUTORS


def test_fetch_may_only_write_its_log_and_has_no_table(any_stage: Synthesized) -> None:
    assert any_stage.grants("Fetch") == [("logs:CreateLogStream", "FetchLogs"), ("logs:PutLogEvents", "FetchLogs")]
    assert who_may(any_stage, "lambda:InvokeFunction", "FetchLive") == EXECUTORS | {"Notify"}
    environment = any_stage.functions()["Fetch"]["Environment"]["Variables"]
    assert all(isinstance(value, str) for value in environment.values()), "variables would reveal the names of resources"


def test_only_notify_reads_a_parameter_and_only_the_consoles_url(prod: Synthesized) -> None:
    found = [(name, *grant) for name in prod.functions() for grant in prod.grants(name) if grant[0].startswith("ssm:")]
    assert [(name, action, where.partition("parameter")[2]) for name, action, where in found] == [
        ("Notify", "ssm:GetParameter", prod.settings.console_address)
    ]


def test_only_executors_and_notify_read_secrets_of_jobs(any_stage: Synthesized) -> None:
    granted = {
        name: {what for action, what in any_stage.grants(name) if action.startswith("secretsmanager:")} for name in any_stage.functions()
    }
    of_jobs = {
        name: {what for what in found if what.endswith(f":secret:punctual/{any_stage.settings.stage}/*")} for name, found in granted.items()
    }
    assert {name for name, found in of_jobs.items() if found} == EXECUTORS | {"Notify"}
    assert set().union(*granted.values()) - set().union(*of_jobs.values()) == {"StorageCallbackKey"}


def test_only_api_and_dispatch_read_the_failures(prod: Synthesized) -> None:
    """The API lists dead letters; dispatch redrives them, as one kind of operation."""
    assert who_may(prod, "dynamodb:Query", "StorageJobs/index/failures") == {"Api", "Dispatch"}


def test_only_provision_and_scale_set_pollers_of_the_first_two_lanes(prod: Synthesized) -> None:
    setters = {name: {grant for grant in prod.grants(name) if "EventSourceMapping" in grant[0]} for name in prod.functions()}
    assert {name for name, granted in setters.items() if granted} == {"Provision", "Scale"}
    for name in ("Provision", "Scale"):
        assert len(setters[name]) == 4 and {named(grant) for grant in prod.grants(name)} >= POLLERS


def test_provision_reads_counters_and_queues_and_sets_only_pollers(prod: Synthesized) -> None:
    others = {("logs:CreateLogStream", "ProvisionLogs"), ("logs:PutLogEvents", "ProvisionLogs"), ("dynamodb:Query", "StorageCounters")}
    assert {named(grant) for grant in prod.grants("Provision")} == POLLERS | others


@pytest.mark.parametrize("name", ["Tick", "Plan", "Scale"])
def test_a_schedule_may_only_start_its_function(prod: Synthesized, name: str) -> None:
    (policy,) = prod.one("IAM::Role", f"{name}ScheduleRole")["Policies"]
    assert list(allowed(policy["PolicyDocument"])) == [("lambda:InvokeFunction", f"{name}Live")]


def test_the_local_stage_grants_batch_calls_under_their_own_names(local: Synthesized) -> None:
    assert ("dynamodb:BatchExecuteStatement", "*") in local.grants("Api")


def test_the_local_stage_grants_the_same_except_renames(local: Synthesized, prod: Synthesized) -> None:
    renamed = {item.action for item in local.settings.renamed_actions.values()}
    for name in local.functions().keys() - {"Announce", "Conclude", "Intake"}:  # of options, which the local stage has
        tallies = {"dynamodb:UpdateItem": "StorageUsers"} if name in EXECUTORS else {}  # notify records how receivers answer, too
        mail = {"ses:SendEmail": "*"} | tallies if name in EXECUTORS | {"Notify"} else {}
        whole = {"ecs:DescribeTaskDefinition": "*"} | mail
        samples = {grant for grant in local.grants(name) if SAMPLE in grant[1] or whole.get(grant[0]) == grant[1]}
        assert bool(samples) == (name in EXECUTORS | {"Notify"})
        on_aws = {(action, where.replace("/prod/", "/local/")) for action, where in prod.grants(name) if not action.startswith("firehose:")}
        on_aws -= {grant for grant in on_aws if name == "Scale" and named(grant) in POLLERS}  # the local stage keeps none ready
        assert {grant for grant in local.grants(name) if grant[0] not in renamed} - samples == on_aws


def test_the_page_of_grants_matches_the_template(prod: Synthesized) -> None:
    """After a change of grants: `GRANTS_LOG=used make test`, then `python -m tests.infra.grants used.* > docs/internals/grants.md`."""
    written = re.findall(r"^\| (\w+) \| `([\w:-]+)` \| `([^`]+)` \|", (ROOT / "docs/internals/grants.md").read_text(), re.MULTILINE)
    found = {(name, action, resource) for name in prod.functions() for action, resource in prod.grants(name)}
    assert set(written) == found


def test_notify_uses_its_own_table_and_queue_and_reads_jobs_and_tasks(any_stage: Synthesized) -> None:
    local = any_stage.settings.stage == "local"
    own = {(action, what) for action, what in any_stage.grants("Notify") if "Notify" in what or "Storage" in what}
    table = {(f"dynamodb:{action}", "StorageNotices") for action in ("BatchGetItem", "GetItem", "PutItem")}
    queue = {
        f"sqs:{action}" for action in ("ReceiveMessage", "DeleteMessage", "GetQueueAttributes", "ChangeMessageVisibility", "SendMessage")
    }
    queue |= {"sqs:SendMessageBatch", "sqs:ChangeMessageVisibilityBatch"} if local else set()
    logs = {(f"logs:{action}", "NotifyLogs") for action in ("CreateLogStream", "PutLogEvents")}
    receivers = {("dynamodb:GetItem", "StorageJobs"), ("dynamodb:GetItem", "StorageTasks")}
    receivers |= {
        (f"dynamodb:{action}", "StorageUsers") for action in ("BatchGetItem", "GetItem", "Query", "UpdateItem")
    }  # named ones; default alerts
    assert own == table | {(action, "NotifyQueue") for action in queue} | logs | receivers
    assert who_may(any_stage, "dynamodb:PutItem", "StorageNotices") == {"Notify"}


def test_only_api_project_dispatch_and_notify_send_to_the_notices_queue(prod: Synthesized) -> None:
    """The API sends tests of receivers, dispatch the notices of monitors."""
    assert who_may(prod, "sqs:SendMessage", "NotifyQueue") == {"Api", "Project", "Dispatch", "Notify"}


@pytest.mark.long
def test_executors_and_notify_send_mail_only_as_the_sender() -> None:
    stack = synthesized("dev", email_sender="punctual@example.org")
    assert {name for name in stack.functions() if "ses:SendEmail" in {action for action, _ in stack.grants(name)}} == EXECUTORS | {"Notify"}


def test_each_function_writes_only_its_own_log(prod: Synthesized) -> None:
    for name in prod.functions():
        granted = {grant for grant in prod.grants(name) if grant[0].startswith(("logs:", "xray:"))}
        assert granted == {(f"logs:{action}", f"{name}Logs") for action in ("CreateLogStream", "PutLogEvents")}


@pytest.mark.long
def test_with_tracing_each_function_but_fetch_writes_traces() -> None:
    stack = synthesized("prod", tracing=True)
    for name, function in stack.functions().items():
        granted = {grant for grant in stack.grants(name) if grant[0].startswith("xray:")}
        traces = {(f"xray:{action}", "*") for action in ("PutTraceSegments", "PutTelemetryRecords")}
        assert granted == (set() if name == "Fetch" else traces), "fetch may only write its log"
        assert function.get("TracingConfig") == (None if name == "Fetch" else {"Mode": "Active"})


def test_a_function_may_read_only_its_own_queues_and_streams(prod: Synthesized) -> None:
    """Lambda reads queues and streams with the role of the function that it calls."""
    queues = {name: {lane} for name, lane in LANE_OF.items()}
    queues |= {"Bury": {"LanesDead"}, "Notify": {"NotifyQueue"}, "Dispatch": {"LanesWork"}}
    for action in ("sqs:ReceiveMessage", "sqs:DeleteMessage"):
        for name in prod.functions():
            assert {what for granted, what in prod.grants(name) if granted == action} == queues.get(name, set()), (name, action)
    for name, own in queues.items():
        assert {("sqs:GetQueueAttributes", queue) for queue in own} <= set(prod.grants(name))
    for action in ("DescribeStream", "GetRecords", "GetShardIterator", "ListStreams"):
        for table in ("StorageJobs", "StorageTasks"):
            assert who_may(prod, f"dynamodb:{action}", table) == {"Project"}


def test_verbs_that_write_due_jobs_may_send_to_any_lane(prod: Synthesized) -> None:
    """The verb that writes a retry, a released job, a redrive or a job due soon also sends it, and its lane may be any."""
    for lane in LANE_OF.values():
        assert who_may(prod, "sqs:SendMessage", lane) == {"Api", "Dispatch", "Bury", "Plan", "Scale", "Project", *EXECUTORS}


def test_only_the_api_signs_people_in_and_administers_them(prod: Synthesized) -> None:
    granted = {(name, action) for name in prod.functions() for action, what in prod.grants(name) if what == "AccountsUsers"}
    users = {"CreateUser", "DeleteUser", "DisableUser", "EnableUser", "GetUser", "SetUserPassword"}
    sessions = {"InitiateAuth", "RespondToAuthChallenge", "SetUserMFAPreference", "UserGlobalSignOut"}
    assert granted == {("Api", f"cognito-idp:Admin{action}") for action in users | sessions}


def test_the_verbs_that_use_the_ledger(prod: Synthesized) -> None:
    """One table holds minutes and units, latencies, backlogs, breakers, pauses, receipts and operations."""
    placing = {"Api", "Tick", "Dispatch", "Plan", "Bury", "Project", "Scale"}
    confirming = placing | EXECUTORS  # they place jobs: in shards that the cursor confirms
    assert who_may(prod, "dynamodb:GetItem", "StorageLedger") == confirming
    assert who_may(prod, "dynamodb:PutItem", "StorageLedger") == confirming
    assert who_may(prod, "dynamodb:DeleteItem", "StorageLedger") == {"Api", "Dispatch"} | EXECUTORS
    assert who_may(prod, "dynamodb:Query", "StorageLedger") == {"Api", "Tick", "Dispatch", "Plan"} | EXECUTORS
    assert who_may(prod, "dynamodb:UpdateItem", "StorageLedger") == {"Api"} | EXECUTORS  # expired receipts; pins


def test_verbs_that_write_jobs_may_read_them_in_batches(prod: Synthesized) -> None:
    """A batch returns no item for a false condition, so each verb that changes items in batches reads them; plan reads edited runs."""
    assert who_may(prod, "dynamodb:BatchGetItem", "StorageJobs") == {"Api", "Dispatch", "Bury", "Scale", "Plan", "Project"} | EXECUTORS
    assert who_may(prod, "dynamodb:GetItem", "StorageTasks") == {"Api", "Notify", "Dispatch", "Bury", "Project"} | EXECUTORS
    for table in ("StorageJobs", "StorageTasks", "StorageLedger"):
        assert who_may(prod, "dynamodb:PartiQLUpdate", table) <= who_may(prod, "dynamodb:BatchGetItem", table)
        assert who_may(prod, "dynamodb:PartiQLUpdate", table) <= who_may(prod, "dynamodb:UpdateItem", table), "statements called invalid"
    assert who_may(prod, "dynamodb:BatchGetItem", "StorageLedger") == {"Api", "Dispatch"}  # monitors


def test_dispatch_may_read_the_depth_of_every_lane(prod: Synthesized) -> None:
    for name, lane in LANE_OF.items():
        pollers = {"Provision", "Scale"} if lane.removeprefix("Lanes") in SCALED else set()
        assert who_may(prod, "sqs:GetQueueAttributes", lane) == {"Dispatch", name} | pollers


def test_only_project_archives_ended_jobs(prod: Synthesized) -> None:
    assert who_may(prod, "firehose:PutRecordBatch", "ArchiveStream") == {"Project"}
