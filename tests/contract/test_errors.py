"""Translated errors of botocore, and the answers of the ports to refusals."""

from types import SimpleNamespace
from typing import Any

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError, NoCredentialsError, ReadTimeoutError
from botocore.parsers import ResponseParserError

from scheduler.model.errors import SchedulerError, TooLarge, Unavailable
from scheduler.model.job import Unit, UnitKey
from scheduler.storage.aws import clients, errors, keys
from scheduler.storage.aws.items import encode
from scheduler.storage.aws.jobs import DynamoJobs
from scheduler.storage.aws.ledger import DynamoLedger
from scheduler.storage.aws.receipts import DynamoReceipts
from scheduler.storage.aws.tasks import DynamoTasks
from scheduler.storage.aws.users import DynamoUsers
from scheduler.storage.ports import Change, ClaimResult, Guard, Written
from tests.contract import make
from tests.contract.test_ledger import look
from tests.contract.wire import Wire

TOO_LARGE = {"Code": "ValidationException", "Message": "Item size to update has exceeded the maximum allowed size"}


def refusal(code: str, status: int = 400, message: str = "so", **fields: Any) -> ClientError:
    response: Any = {"Error": {"Code": code, "Message": message}, "ResponseMetadata": {"HTTPStatusCode": status}} | fields
    return ClientError(response, "Some")


@pytest.mark.parametrize(
    ("raised", "expected"),
    [
        (refusal("ThrottlingException"), Unavailable),
        (refusal("ProvisionedThroughputExceededException"), Unavailable),
        (refusal("TransactionConflictException"), Unavailable),
        (refusal("KMS.ThrottlingException"), Unavailable),  # of SQS, with a key of the owner's
        (refusal("KmsThrottled"), Unavailable),  # of SQS by its newer protocol
        (refusal("KMSThrottling"), Unavailable),  # of SNS
        (refusal("KMSThrottled"), Unavailable),  # of DynamoDB
        (refusal("ResourceConflictException", 409), Unavailable),  # of Lambda
        (refusal("KMSDisabledException", 502), SchedulerError),  # it lasts until a person enables the key
        (refusal("Anything", 503), Unavailable),
        (refusal("Anything", 429), Unavailable),
        (refusal("TransactionCanceledException", CancellationReasons=[{"Code": "None"}, {"Code": "TransactionConflict"}]), Unavailable),
        (EndpointConnectionError(endpoint_url="http://nowhere"), Unavailable),
        (ReadTimeoutError(endpoint_url="http://nowhere"), Unavailable),
        (ResponseParserError("half an answer"), Unavailable),
        (refusal("ValidationException", message="Item size has exceeded the maximum allowed size"), TooLarge),
        (refusal("ValidationException"), SchedulerError),
        (refusal("AccessDeniedException"), SchedulerError),
        (NoCredentialsError(), SchedulerError),
    ],
    ids=str,
)
def test_errors_of_botocore_become_errors_of_the_scheduler(raised: Exception, expected: type[SchedulerError]) -> None:
    with pytest.raises(SchedulerError) as found, errors.translated():
        raise raised
    assert type(found.value) is expected


def test_a_cancelled_transaction_may_be_a_false_condition_or_a_refusal() -> None:
    def cancelled(*codes: str) -> ClientError:
        return refusal("TransactionCanceledException", CancellationReasons=[{"Code": code} for code in codes])

    assert errors.condition_failed(cancelled("ConditionalCheckFailed", "None"))
    assert not errors.condition_failed(cancelled("ConditionalCheckFailed", "TransactionConflict"))
    assert not errors.condition_failed(cancelled("None", "ValidationError"))


@pytest.fixture
def jobs() -> tuple[DynamoJobs, Wire]:
    client = clients.dynamodb()
    return DynamoJobs(client, "jobs"), Wire(client)


READS_AND_WRITES = {
    "PutItem": lambda jobs: jobs.put(make.job()),
    "GetItem": lambda jobs: jobs.get(make.job().key),
    "BatchGetItem": lambda jobs: jobs.get_many([make.job().key]),
    "Query": lambda jobs: jobs.due("2026-11-20T10:01#00"),
    "Scan": lambda jobs: jobs.sweep(),
    "DeleteItem": lambda jobs: jobs.drop_canary(UnitKey("2026-11-20T10:01", 0)),
}


@pytest.mark.parametrize("operation", READS_AND_WRITES)
def test_a_throttled_call_is_unavailable(jobs: tuple[DynamoJobs, Wire], operation: str) -> None:
    port, wire = jobs
    wire.refuse(operation, "ProvisionedThroughputExceededException")
    with pytest.raises(Unavailable):
        READS_AND_WRITES[operation](port)


@pytest.mark.parametrize("company", [0, 2])
def test_a_throttled_claim_or_change_is_none(jobs: tuple[DynamoJobs, Wire], company: int) -> None:
    port, wire = jobs
    for operation in ("UpdateItem", "BatchExecuteStatement"):
        wire.refuse(operation, "ThrottlingException")
    made = [make.job() for _ in range(1 + company)]
    assert port.claim([make.request(job) for job in made]) == [None] * len(made)
    assert port.change([Change(job, make.moved(job, "elsewhere"), Guard.SLOT) for job in made]) == [Written.REFUSED] * len(made)
    for operation in ("UpdateItem", "BatchExecuteStatement"):
        wire.cut(operation)
    assert port.claim([make.request(job) for job in made]) == [None] * len(made)


@pytest.mark.parametrize("code", ["ThrottlingError", "ProvisionedThroughputExceeded", "TransactionConflict", "InternalServerError"])
def test_a_temporarily_refused_statement_leaves_its_batch_alone(jobs: tuple[DynamoJobs, Wire], code: str) -> None:
    port, wire = jobs
    made = [make.job(), make.job(), make.job()]
    item = encode(made[2])
    answers = [{"Error": {"Code": code}}, {"Item": encode(made[1])}, {"Error": {"Code": "ConditionalCheckFailed", "Item": item}}]
    wire.answer("BatchExecuteStatement", {"Responses": answers})
    refused, won, lost = port.claim([make.request(job) for job in made])
    assert refused is None and won is not None and won.won and lost is not None and not lost.won
    changes = [Change(job, make.moved(job, "elsewhere"), Guard.SLOT) for job in made]
    assert port.change(changes) == [Written.REFUSED, Written.YES, Written.NO]


@pytest.mark.parametrize("trouble", ["ThrottlingException", "no connection"])
def test_after_a_whole_refused_batch_no_further_inserts_are_sent(jobs: tuple[DynamoJobs, Wire], trouble: str) -> None:
    """Each further call would take as long to fail, and the caller waits."""
    port, wire = jobs
    wire.cut("BatchExecuteStatement") if trouble == "no connection" else wire.refuse("BatchExecuteStatement", trouble)
    assert port.put_many([make.job() for _ in range(1_000)]) == [Written.REFUSED] * 1_000
    assert len(wire.sent("BatchExecuteStatement")) <= 8


@pytest.mark.parametrize("code", ["ThrottlingError", "ProvisionedThroughputExceeded", "TransactionConflict", "InternalServerError"])
def test_a_temporarily_refused_insert_leaves_its_batch_alone(jobs: tuple[DynamoJobs, Wire], code: str) -> None:
    port, wire = jobs
    wire.answer("BatchExecuteStatement", {"Responses": [{"Error": {"Code": code}}, {}, {"Error": {"Code": "DuplicateItem"}}]})
    assert port.put_many([make.job(), make.job(), make.job()]) == [Written.REFUSED, Written.YES, Written.NO]


def test_a_missing_grant_on_inserts_is_raised(jobs: tuple[DynamoJobs, Wire]) -> None:
    port, wire = jobs
    wire.answer("BatchExecuteStatement", {"Responses": [{"Error": {"Code": "AccessDenied", "Message": "no grant"}}]})
    with pytest.raises(SchedulerError, match="no grant"):
        port.put_many([make.job()])


def test_an_update_called_invalid_in_a_batch_is_sent_as_update_item(jobs: tuple[DynamoJobs, Wire]) -> None:
    port, wire = jobs
    made = [make.job(), make.job()]
    wire.answer("BatchExecuteStatement", {"Responses": [{"Error": {"Code": "ValidationError", "Message": "not well formed"}}, {}]})
    wire.answer("UpdateItem", {})
    assert port.change([Change(job, make.succeeded(make.claimed(job)), Guard.SLOT) for job in made]) == [Written.YES] * 2
    (call,) = wire.sent("UpdateItem")
    assert call["Key"] == keys.job(made[0].key) and "REMOVE" in call["UpdateExpression"]


def _reticent(wire: Wire, count: int) -> None:
    """Let conditions be false in batches, and the errors carry no item."""
    answer = {"Error": {"Code": "ConditionalCheckFailed", "Message": "The conditional request failed"}}
    wire.answer("BatchExecuteStatement", {"Responses": [answer] * count})


def test_a_lost_claim_whose_answer_has_no_item_returns_the_stored_job(jobs: tuple[DynamoJobs, Wire]) -> None:
    port, wire = jobs
    own, gone, other = make.job(), make.job(), make.job()
    _reticent(wire, 3)
    stored = [encode(make.claimed(own)), encode(make.claimed(other, "another's"))]
    wire.answer("BatchGetItem", {"Responses": {"jobs": stored}})
    results = port.claim([make.request(job) for job in (own, gone, other)])
    assert results == [
        ClaimResult(False, make.claimed(own)),
        ClaimResult(False, None),
        ClaimResult(False, make.claimed(other, "another's")),
    ]
    (call,) = wire.sent("BatchGetItem")
    assert call["RequestItems"]["jobs"]["ConsistentRead"]


def test_a_change_whose_answer_was_lost_is_found_in_the_table(jobs: tuple[DynamoJobs, Wire]) -> None:
    port, wire = jobs
    own, other = make.claimed(make.job()), make.claimed(make.job())
    _reticent(wire, 2)
    wire.answer("BatchGetItem", {"Responses": {"jobs": [encode(make.succeeded(own)), encode(make.cancelled(other))]}})
    assert port.change([Change(job, make.succeeded(job)) for job in (own, other)]) == [Written.YES, Written.NO]


def test_without_the_read_it_is_unknown_who_won(jobs: tuple[DynamoJobs, Wire]) -> None:
    port, wire = jobs
    made = [make.job(), make.job()]
    _reticent(wire, 2)
    wire.refuse("BatchGetItem", "ThrottlingException")
    assert port.claim([make.request(job) for job in made]) == [None, None]
    assert port.change([Change(job, make.moved(job, "elsewhere"), Guard.SLOT) for job in made]) == [Written.REFUSED] * 2


def test_an_invalid_statement_is_logged_and_not_applied(jobs: tuple[DynamoJobs, Wire], caplog: pytest.LogCaptureFixture) -> None:
    port, wire = jobs
    made = [make.job(), make.job()]
    wire.answer("UpdateItem", {"Error": TOO_LARGE, "ResponseMetadata": {"HTTPStatusCode": 400}}, 400)
    wire.answer("BatchExecuteStatement", {"Responses": [{"Error": {"Code": "ValidationError", "Message": "Item size"}}, {}]})
    assert port.change([Change(job, make.moved(job, "elsewhere"), Guard.SLOT) for job in made]) == [Written.REFUSED, Written.YES]
    assert made[0].id in caplog.text


def test_a_change_that_does_not_fit_is_refused_alone_or_not(jobs: tuple[DynamoJobs, Wire], caplog: pytest.LogCaptureFixture) -> None:
    """A single change is another call than several. The error of one item must reach no caller, or it stops all other jobs of a step."""
    port, wire = jobs
    wire.answer("UpdateItem", {"Error": TOO_LARGE, "ResponseMetadata": {"HTTPStatusCode": 400}}, 400)
    wire.answer("BatchExecuteStatement", {"Responses": [{"Error": {"Code": "ValidationError", "Message": TOO_LARGE["Message"]}}, {}]})
    made = [make.job(), make.job()]
    changes = [Change(job, make.moved(job, "elsewhere"), Guard.SLOT) for job in made]
    assert port.change(changes[:1]) == [Written.REFUSED]
    assert port.change(changes) == [Written.REFUSED, Written.YES]
    assert port.claim([make.request(made[0])]) == [None]
    assert len([record for record in caplog.records if made[0].id in record.getMessage()]) == 3


def test_a_missing_grant_on_statements_is_raised(jobs: tuple[DynamoJobs, Wire]) -> None:
    port, wire = jobs
    wire.answer("BatchExecuteStatement", {"Responses": [{"Error": {"Code": "AccessDenied", "Message": "no grant"}}] * 2})
    with pytest.raises(SchedulerError, match="no grant"):
        port.claim([make.request(make.job()), make.request(make.job())])


@pytest.fixture
def tasks() -> tuple[DynamoTasks, Wire]:
    client = clients.dynamodb()
    return DynamoTasks(client, "tasks", jobs="jobs", ledger="ledger"), Wire(client)


VERBS_OF_TASKS = {
    "TransactWriteItems": lambda tasks: tasks.store(None, make.task(), []),
    "DeleteItem": lambda tasks: tasks.delete(make.task()),
    "GetItem": lambda tasks: tasks.get(make.task().key),
    "BatchGetItem": lambda tasks: tasks.get_many([make.task().key]),
    "Query": lambda tasks: tasks.to_replenish("2026-11-20T10:01#00"),
    "Scan": lambda tasks: tasks.overdue("2026-11-20T10:01"),
}


@pytest.mark.parametrize("operation", VERBS_OF_TASKS)
def test_a_throttled_task_call_is_unavailable(tasks: tuple[DynamoTasks, Wire], operation: str) -> None:
    port, wire = tasks
    wire.refuse(operation, "ProvisionedThroughputExceededException")
    with pytest.raises(Unavailable):
        VERBS_OF_TASKS[operation](port)


def test_a_throttled_move_of_a_task_is_refused(tasks: tuple[DynamoTasks, Wire]) -> None:
    port, wire = tasks
    wire.refuse("UpdateItem", "ProvisionedThroughputExceededException")
    assert port.move_on([(make.task(), make.task())]) == [Written.REFUSED]


def test_a_transaction_conflict_on_a_task_is_unavailable(tasks: tuple[DynamoTasks, Wire]) -> None:
    port, wire = tasks
    reasons = [{"Code": "ConditionalCheckFailed"}, {"Code": "TransactionConflict"}]
    wire.refuse("TransactWriteItems", "TransactionCanceledException", CancellationReasons=reasons)
    with pytest.raises(Unavailable):
        port.store(None, make.task(), [make.job()])


def test_a_temporarily_refused_holder_leaves_the_others_alone(tasks: tuple[DynamoTasks, Wire]) -> None:
    port, wire = tasks
    answers = [{"Error": {"Code": "ThrottlingError"}}, {}, {"Error": {"Code": "ConditionalCheckFailed"}}]
    wire.answer("BatchExecuteStatement", {"Responses": answers})
    wire.answer("BatchGetItem", {"Responses": {"tasks": []}})
    holders = [make.holder() for _ in range(3)]
    assert port.hold([(holder, holder) for holder in holders]) == [Written.REFUSED, Written.YES, Written.NO]
    assert len(wire.sent("BatchGetItem")[0]["RequestItems"]["tasks"]["Keys"]) == 1
    wire.cut("BatchExecuteStatement")
    assert port.hold([(None, make.holder())]) == [Written.REFUSED]


def test_a_task_is_deleted_even_if_its_holder_stays(tasks: tuple[DynamoTasks, Wire]) -> None:
    port, wire = tasks
    refused: Any = {"Error": {"Code": "ThrottlingException", "Message": "so"}, "ResponseMetadata": {"HTTPStatusCode": 400}}

    def answer(params: dict[str, Any]) -> Any:
        of_holder = '"holder"' in str(params["body"])
        return (SimpleNamespace(status_code=400), refused) if of_holder else (Wire.OK, {})

    wire.answers["DeleteItem"] = answer
    assert port.delete(make.task())
    assert len(wire.sent("DeleteItem")) == 2


def test_a_temporarily_refused_receipt_is_none() -> None:
    client = clients.dynamodb()
    port, wire = DynamoReceipts(client, "ledger"), Wire(client)
    duplicate = {"Error": {"Code": "DuplicateItem"}}
    wire.answer("BatchExecuteStatement", {"Responses": [{"Error": {"Code": "ThrottlingError"}}, {}, duplicate]})
    wire.refuse("UpdateItem", "ThrottlingException")
    made = [make.receipt(key=key) for key in "abc"]
    assert port.keep(made, make.NOW) == [None, made[1], None]


def test_a_temporarily_refused_withdrawal_is_none(jobs: tuple[DynamoJobs, Wire]) -> None:
    port, wire = jobs
    made = [make.job(), make.job(), make.job()]
    answers = [{"Error": {"Code": "ThrottlingError"}}, {}, {"Error": {"Code": "ConditionalCheckFailed"}}]
    wire.answer("BatchExecuteStatement", {"Responses": answers})
    wire.answer("BatchGetItem", {"Responses": {"jobs": [encode(made[2])]}})
    assert port.withdraw([job.key for job in made]) == [Written.REFUSED, Written.YES, Written.NO]


def test_a_successful_claim_without_its_item_reads_it(jobs: tuple[DynamoJobs, Wire]) -> None:
    port, wire = jobs
    made = [make.job(), make.job()]
    wire.answer("BatchExecuteStatement", {"Responses": [{}, {}]})
    mine = encode(make.claimed(made[0])), encode(make.claimed(made[1], nonce="another's"))
    wire.answer("BatchGetItem", {"Responses": {"jobs": list(mine)}})
    first, second = port.claim([make.request(job) for job in made])
    assert first is not None and first.won and first.job == make.claimed(made[0])
    assert second is None  # the job has changed since
    assert wire.sent("BatchGetItem")[0]["RequestItems"]["jobs"]["ConsistentRead"]


def test_a_glance_is_an_eventually_consistent_read(jobs: tuple[DynamoJobs, Wire]) -> None:
    port, wire = jobs
    made = make.job()
    wire.answer("BatchGetItem", {"Responses": {"jobs": [encode(made)]}})
    assert port.glance([made]) == {made.key: made}
    request = wire.sent("BatchGetItem")[0]["RequestItems"]["jobs"]
    assert request["ConsistentRead"] is False
    assert set(request["ExpressionAttributeNames"].values()) == {"pk", "sk", "v", "slot", "fence", "claim", "cancel_requested_at"}


@pytest.mark.long
def test_unprocessed_keys_are_read_again_while_answers_have_items(jobs: tuple[DynamoJobs, Wire]) -> None:
    port, wire = jobs
    made = [make.job(), make.job()]
    rest = {"jobs": {"Keys": [{"pk": {"S": "a"}, "sk": {"S": "b"}}]}}
    pages = iter([{"Responses": {"jobs": [encode(made[0])]}, "UnprocessedKeys": rest}, {"Responses": {"jobs": [encode(made[1])]}}])
    wire.answers["BatchGetItem"] = lambda params: (wire.OK, next(pages))
    assert port.get_many([job.key for job in made]) == {job.key: job for job in made}
    wire.answer("BatchGetItem", {"Responses": {}, "UnprocessedKeys": rest})
    with pytest.raises(Unavailable):
        port.get_many([made[0].key])


def test_a_call_has_at_most_25_statements_and_no_item_twice(jobs: tuple[DynamoJobs, Wire]) -> None:
    port, wire = jobs

    def agree(params: dict[str, Any]) -> Any:
        count = len(wire.sent("BatchExecuteStatement")[-1]["Statements"])
        return wire.OK, {"Responses": [{} for _ in range(count)]}

    wire.answers["BatchExecuteStatement"] = agree
    made = [make.job() for _ in range(27)]
    changes = [Change(job, make.moved(job, "elsewhere"), Guard.SLOT) for job in [*made, made[26], made[0]]]
    assert port.change(changes) == [Written.YES] * 29
    assert [len(call["Statements"]) for call in wire.sent("BatchExecuteStatement")] == [25, 2, 2]


@pytest.fixture
def ledger() -> tuple[DynamoLedger, Wire]:
    client = clients.dynamodb()
    return DynamoLedger(client, "ledger"), Wire(client)


def test_a_transaction_conflict_on_a_unit_is_unavailable(ledger: tuple[DynamoLedger, Wire]) -> None:
    port, wire = ledger
    unit = Unit(UnitKey("2026-11-20T10:01", 0), 0, 15)
    reasons = [{"Code": "None"}, {"Code": "TransactionConflict"}, {"Code": "None"}]
    wire.refuse("TransactWriteItems", "TransactionCanceledException", CancellationReasons=reasons)
    with pytest.raises(Unavailable):
        port.close_unit(unit, 0, look(unit))
    wire.refuse("PutItem", "InternalServerError", 500)
    with pytest.raises(Unavailable):
        port.change_unit(unit, unit)


def test_a_refused_weight_of_a_user_is_raised() -> None:
    client = clients.dynamodb()
    users, wire = DynamoUsers(client, "users"), Wire(client)
    wire.refuse("UpdateItem", "ThrottlingException")
    with pytest.raises(Unavailable):
        users.set_weight("ann", 2.0)
