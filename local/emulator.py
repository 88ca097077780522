"""The local AWS (MiniStack) as `local/server.py` starts it: with two features of PartiQL statements added, limits of AWS that it lacks, a
slower growth of executors, short garbage collections, and a log of grants in use.

- MiniStack writes puts, updates and deletes to a table's stream, but no writes of statements. On AWS the stream has these as well;
  without them, jobs posted in a batch would never reach the functions that read the streams.
- MiniStack checks the grant for the call that carries the statements. AWS checks the grant for each statement.
- MiniStack accepts calls that AWS refuses. Here those of `local/strict.py` and `local/cognito.py` are refused.
- MiniStack starts a process for each batch that meets no idle one. Lambda starts five at once from a queue, then five a second. Here each
  process takes a third of a second of processor, which the waiting jobs need: five at once, then two a second (`Growth`).
- MiniStack keeps all tables in its memory, and the garbage collector of Python looks at all of them in each full collection: with some
  tens of thousands of items every call waits 200 ms, every ten seconds. Here it looks at each object once (`collect_once`).
- MiniStack sorts all items of a table for each page of a scan, which takes 0.7 s for 100,000 of them, once a minute. Here a page of an
  index is read from the index (`_page_of_index`).
- MiniStack parses the condition of a query again for each item of the partition, which takes 0.3 s for 10,000 of them. Here it compares
  the keys (`_by_comparisons`).
- MiniStack reads the streams of tables in the thread that polls the queues, after each write: a message waits until the batches of the
  streams have ended, and each job starts project. Lambda reads them apart, and gathers changes. So does this (`read_streams`).
- MiniStack's filters of streams never match "exists: false" below an object that is missing. Lambda's do (`_flat`).
- MiniStack pauses for 50 ms after it was woken for nothing, as by the end of a batch, and waits 5 ms for more lines of a function's log
  before it passes the answer on. Lambda does neither; here they are `WAKE_GAP_S` and `LOG_S`.
- MiniStack gives the id of the account as the sender of a message. Here it is the caller's unique id, also of a function
  (`local/senders.py`).
- MiniStack compares the condition key aws:PrincipalArn with the ARN of a session. Here it is that of the role (`local/principals.py`).
- MiniStack replaces the saved state of one service after the other. Here the state is replaced as a whole, and not during a deployment
  (`_save_as_one`, `local/state.py`).
- MiniStack runs the tasks of ECS until they are stopped, and sends no events of them. Here they end (`local/containers.py`).
- MiniStack loses an event of EventBridge if its function is throttled or fails. Here it is repeated (`local/deliveries.py`).
- MiniStack signs the tokens of roles (GetWebIdentityToken) with a secret of its own, for the root user, so that no authorizer takes them.
  Here they are those of `local/issuer.py`, whose documents the local AWS serves as AWS does, and policies may limit them.
- MiniStack runs the functions of CloudFront by Node. Without Node they are those of `local/viewer_functions.py`.
- If its environment names a file as `GRANTS_LOG`, it writes there each grant that a role used, once: time, role, action, resource.
"""

import copy
import gc
import json
import logging
import os
import re
import runpy
import shutil
import sys
import threading
import time
from base64 import urlsafe_b64decode
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, TextIO
from urllib.parse import parse_qs

from ministack.core import cloudfront_js, iam_actions, iam_evaluator, lambda_runtime, persistence
from ministack.core.responses import error_response_json, get_account_id, get_region, json_response
from ministack.core.router import extract_access_key_id
from ministack.services import cloudformation, cognito, dynamodb, iam, lambda_svc, sns, sqs, sts

from local import cognito as local_cognito
from local import containers, deliveries, issuer, principals, senders, state, strict, viewer_functions
from local.aws import GRANTS_LOG, HOST, Deployed
from local.containers import Containers
from local.home import Home
from local.issuer import Issuer
from local.strict import Refusal

STATEMENTS = {
    "_partiql_insert": "dynamodb:PartiQLInsert",
    "_partiql_update": "dynamodb:PartiQLUpdate",
    "_partiql_delete": "dynamodb:PartiQLDelete",
}

PAGE = 3_000  # items of a page of an index: about 1 MB, the most on AWS
COMPARISON = re.compile(r"(#?\w+) (?:(<=|>=|[<=>]) (:\w+)|BETWEEN (:\w+) AND (:\w+))(?: AND (?=.)|$)")
OLDEST = 2  # generation of the garbage collector; collecting it is a full collection
GATHERED_S = 1  # changes in streams are gathered for this time: `batching_s` of the local stage
WAKE_GAP_S, LOG_S = 0.005, 0.001
FIRST, EVERY_S = 5, 0.5  # executors of a function that start at once; then one more after this time (s)

Item = dict[str, Any]

log = logging.getLogger(__name__)
_statement: ContextVar[bool] = ContextVar("statement", default=False)  # whether a PartiQL statement is being executed
_call: ContextVar["_Call | None"] = ContextVar("call", default=None)  # the call being executed, if roles are enforced


@dataclass(frozen=True)
class _Call:
    """The caller's key and region, and the statements allowed so far: a batch has many of the same kind."""

    key: str
    region: str
    allowed: set[tuple[str, str]] = field(default_factory=set)


def _further(check: Callable[..., Any]) -> containers.Check:
    """Return the check of a grant that the call needs beside its own."""

    def denial(action: str, resource: str, keys: Item) -> str | None:
        call = _call.get()
        service = action.partition(":")[0]
        denied = None if call is None else check(call.key, action, service, call.region, resource_arn=resource, service_context=keys)
        if call is None or denied is None:
            return None
        return str(iam_actions.identity_denial_message(action, getattr(denied, "principal_arn", call.key), resource, False))

    return denial


def _as_statement(run: Callable[..., Any], action: str, denial: containers.Check) -> Callable[..., Any]:
    """Wrap the execution of a statement: check that the caller's role is allowed `action` on the table."""

    def wrapped(table: Item, *arguments: Any) -> Any:
        call, arn = _call.get(), table["TableArn"]
        if call is not None and (action, arn) not in call.allowed:
            if denied := denial(action, arn, {}):
                return error_response_json("AccessDeniedException", denied, 400)
            call.allowed.add((action, arn))
        token = _statement.set(True)
        try:
            return run(table, *arguments)
        finally:
            _statement.reset(token)

    return wrapped


def _streaming(write: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap the write of an item: if a statement wrote it, add the change to the table's stream."""

    def wrapped(table: Item, pk: str, sk: str, item: Item | None = None) -> Any:
        if not _statement.get():
            return write(table, pk, sk) if item is None else write(table, pk, sk, item)
        before, after = copy.deepcopy((table["items"].get(pk, {}).get(sk), item))
        token = _statement.set(False)  # writes caused by the stream event do not belong to the statement
        try:
            result = write(table, pk, sk) if item is None else write(table, pk, sk, item)
            event = "REMOVE" if after is None else "MODIFY" if before else "INSERT"
            dynamodb._emit_stream_event(table["TableName"], event, before, after)
        finally:
            _statement.reset(token)
        return result

    return wrapped


def _page_of_index(scan: Callable[[Item], Any]) -> Callable[[Item], Any]:
    """Wrap Scan: a scan of an index without other conditions reads the partitions of the index, in order, until a page is full."""

    def wrapped(request: Item) -> Any:
        table, name = dynamodb._tables.get(request.get("TableName")), request.get("IndexName")
        members = None if table is None else dynamodb._index_members(table).get(name)
        if table is None or members is None or not request.keys() <= {"TableName", "IndexName", "ExclusiveStartKey"}:
            return scan(request)
        hashes, ranges = dynamodb._index_key_lists(dynamodb._index_def(table, name))
        order = dynamodb._index_order_keys(table, ranges)

        def place(item: Item) -> tuple[Any, ...]:
            return tuple(dynamodb._index_order_value(item, *key) for key in order)

        start = request.get("ExclusiveStartKey")
        first = dynamodb._extract_key_val(start[hashes[0]]) if start else ""
        found: list[Item] = []
        for partition in sorted(each for each in members if each >= first):
            items = sorted((table["items"][pk][sk] for pk, sk in members[partition]), key=place)
            found += [item for item in items if place(item) > place(start)] if start and partition == first else items
            if len(found) >= PAGE:
                break
        page = found[:PAGE]
        answer: Item = {"Items": [dynamodb._apply_index_projection(item, table, name) for item in page], "Count": len(page)}
        if len(page) == PAGE:
            answer["LastEvaluatedKey"] = {key: page[-1][key] for key in {*hashes, *(key for key, _ in order)}}
        return json_response(answer | {"ScannedCount": len(page)})

    return wrapped


@lru_cache
def _comparisons(condition: str) -> list[tuple[str, str, str]]:
    """Return the comparisons of a condition on keys: name, operator, value. Empty if it has other parts."""
    found = list(COMPARISON.finditer(condition))
    if "".join(each.group() for each in found) != condition:
        return []
    return [
        test
        for name, operator, value, low, high in (each.groups() for each in found)
        for test in ([(name, operator, value)] if operator else [(name, ">=", low), (name, "<=", high)])
    ]


def _by_comparisons(evaluate: Callable[..., bool]) -> Callable[..., bool]:
    """Wrap the evaluation of a condition for an item: compare keys without parsing the condition again. The query has checked it."""

    def wrapped(condition: str, item: Item, values: Item, names: Item, slot: str = "ConditionExpression") -> bool:
        tests = _comparisons(condition) if slot == "KeyConditionExpression" else []
        if not tests or not all(value in values and (name[0] != "#" or name in names) for name, _, value in tests):
            return evaluate(condition, item, values, names, slot)
        return all(dynamodb._compare_ddb(item.get(names.get(name, name)), operator, values[value]) for name, operator, value in tests)

    return wrapped


def _remembering(check: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap the check of a call: remember its caller for the checks of its statements."""

    def wrapped(key: str, action: str, service: str, region: str, *rest: Any, **named: Any) -> Any:
        _call.set(_Call(key, region))
        return check(key, action, service, region, *rest, **named)

    return wrapped


def _logging(check: Callable[..., Any], log: TextIO) -> Callable[..., Any]:
    """Wrap the check of a call: write each allowed combination of role, action and resource to `log`, once."""
    logged: set[tuple[str, str, str]] = set()

    def wrapped(key: str, action: str, service: str, region: str, resource_arn: str = "*", **rest: Any) -> Any:
        denied = check(key, action, service, region, resource_arn=resource_arn, **rest)
        used = (_role(key), action, resource_arn)
        if denied is None and used[0] and used not in logged:
            logged.add(used)
            log.write(f"{time.time():.3f} {' '.join(used)}\n")
        return denied

    return wrapped


@dataclass
class Growth:
    """The number of batches that a mapping may have in hand at once: one for each process that its function has, and from time to time one
    more. `count` returns the number of those processes, `clock` the seconds."""

    count: Callable[[Item], int]
    clock: Callable[[], float] = time.monotonic
    _grown_at: dict[str, float] = field(default_factory=dict)  # by mapping

    def wrap(self, limit: Callable[..., int], in_hand: Callable[[str], int]) -> Callable[..., int]:
        """Wrap MiniStack's limit of a mapping."""

        def wrapped(mapping: Item, function: Item, config: Item, *rest: Any) -> int:
            most, running, now, mapping_id = limit(mapping, function, config, *rest), self.count(config), self.clock(), mapping["UUID"]
            if running < FIRST:
                return min(most, FIRST)
            if in_hand(mapping_id) >= running and now - self._grown_at.get(mapping_id, 0.0) >= EVERY_S:
                self._grown_at[mapping_id] = now
                running += 1
            return min(most, running)

        return wrapped


def read_streams(poll: Callable[[], bool], pause: Callable[[float], None] = time.sleep) -> None:
    """Read the streams until the process ends. `poll` handles a batch of each stream, and returns False once there is nothing more."""
    while True:
        pause(GATHERED_S)
        try:
            while poll():
                pass
        except Exception:
            log.exception("the streams could not be read")


def _flat(fits: Callable[[Item, Item], bool]) -> Callable[[Item, Item], bool]:
    """Match a filter as Lambda does, which compares paths: nothing exists below an object that is missing."""

    def wrapped(record: Item, pattern: Item) -> bool:
        missing: Item = {name: {} for name, inner in pattern.items() if isinstance(inner, dict) and name not in record}
        return fits({**record, **missing} if missing else record, pattern)

    return wrapped


def _without_waits() -> None:
    """Let queues be polled, and answers be passed on, without waiting for streams and logs."""
    poll = lambda_svc._poll_dynamodb_streams
    lambda_svc._poll_dynamodb_streams = lambda: False
    dynamodb.esm_wake = threading.Event()  # a write to a stream wakes nobody: its reader comes by itself
    threading.Thread(target=read_streams, args=(poll,), name="streams", daemon=True).start()
    lambda_svc._ESM_IDLE_WAKE_GAP_SECONDS = WAKE_GAP_S
    first_line_s, _, most_s = lambda_runtime.Worker._drain_stderr_bounded.__defaults__
    lambda_runtime.Worker._drain_stderr_bounded.__defaults__ = (first_line_s, LOG_S, most_s)


def _processes(config: Item) -> int:
    """Return the number of processes of a version of a function, busy or idle."""
    version = f":{config['FunctionName']}:{config['Version']}"
    return sum(len(entries) for key, entries in list(lambda_runtime._workers.items()) if key.endswith(version))


def _before(check: Callable[..., Refusal | None], act: Callable[..., Any], answer: Callable[[Refusal], Any]) -> Callable[..., Any]:
    """Wrap an operation: answer the refusal of a request if there is one, else carry it out."""

    def wrapped(*arguments: Any, **named: Any) -> Any:
        refused = check(*arguments, **named)
        return act(*arguments, **named) if refused is None else answer(refused)

    return wrapped


def _be_strict() -> None:
    """Let the services refuse the calls of `local/strict.py`."""
    reserved = frozenset(dynamodb.AWS_KEYWORDS)

    def json_error(refused: Refusal) -> Any:
        return error_response_json(*refused, 400)

    def sqs_error(refused: Refusal) -> Any:
        raise sqs._Err(*refused)

    def sent(request: Item, url: str) -> Refusal | None:
        return strict.message(request, fifo=str(request.get("QueueUrl") or url).endswith(".fifo"))

    def written(request: Item) -> Refusal | None:
        return strict.batch(request.get("Statements") or (), reserved)

    def chosen(request: Item) -> Refusal | None:
        fields = ("Password", "PreviousPassword", "ProposedPassword")
        return next(filter(None, (strict.password(request[field]) for field in fields if field in request)), None)

    def hidden(request: Item, url: str) -> Refusal | None:
        return next(filter(None, map(strict.visibility, request.get("Entries") or [request])), None)

    for name in ("_query", "_scan"):
        setattr(dynamodb, name, _before(lambda request: strict.query(request, reserved), getattr(dynamodb, name), json_error))
    dynamodb._batch_execute_statement = _before(written, dynamodb._batch_execute_statement, json_error)
    # A batch sends its messages by the same function, and answers with the error of each entry.
    sqs._act_send_message = sqs._HANDLERS["SendMessage"] = _before(sent, sqs._act_send_message, sqs_error)
    for action in ("ChangeMessageVisibility", "ChangeMessageVisibilityBatch"):
        sqs._HANDLERS[action] = _before(hidden, sqs._HANDLERS[action], sqs_error)
    sns._publish_batch = _before(
        lambda request: strict.published(sns._parse_batch_entries(request)), sns._publish_batch, lambda refused: sns._error(*refused, 400)
    )
    for name in ("_admin_set_user_password", "_change_password"):
        setattr(cognito, name, _before(chosen, getattr(cognito, name), json_error))
    handle = lambda_svc.handle_request

    async def invoke(method: str, path: str, headers: Item, body: bytes, query_params: Item) -> Any:
        asynchronous = headers.get("x-amz-invocation-type") == "Event"
        refused = strict.invocation(len(body), asynchronous=asynchronous) if path.endswith("/invocations") else None
        return await handle(method, path, headers, body, query_params) if refused is None else error_response_json(*refused, 413)

    lambda_svc.handle_request = invoke


TOKEN = re.compile(rb"(?<=<WebIdentityToken>)[^<]+")


def _issue_tokens(signer: Issuer) -> None:
    """Let STS answer tokens of the issuer, and serve the issuer's documents."""
    handle, known = sts.handle_request, cognito._get_pool_unscoped
    keys, configuration = cognito.well_known_jwks, cognito.well_known_openid_configuration

    async def handled(method: str, path: str, headers: Item, body: bytes, query_params: Item) -> Any:
        status, answered, content = await handle(method, path, headers, body, query_params)
        if status == 200 and TOKEN.search(content):
            return _role_token(signer, extract_access_key_id(headers, query_params), parse_qs(body.decode()), (status, answered, content))
        return status, answered, content

    sts.handle_request = handled
    iam_actions.request_tag_context = _with_conditions(iam_actions.request_tag_context)
    # MiniStack serves these documents for pools.
    cognito._get_pool_unscoped = lambda pool_id: {} if issuer.account_of(pool_id) else known(pool_id)
    cognito.well_known_jwks = lambda pool_id: json_response(signer.key_set()) if issuer.account_of(pool_id) else keys(pool_id)
    cognito.well_known_openid_configuration = lambda pool_id, *rest: (
        json_response(signer.configuration(account)) if (account := issuer.account_of(pool_id)) else configuration(pool_id, *rest)
    )


def _with_conditions(context: Callable[..., Item]) -> Callable[..., Item]:
    """Wrap the condition keys of a request: those of GetWebIdentityToken, which policies of roles name, are added."""

    def wrapped(service: str, action: str, body: bytes, *rest: Any) -> Item:
        found = context(service, action, body, *rest)
        if action != "sts:GetWebIdentityToken":
            return found
        request = parse_qs(body.decode())
        return found | {
            "sts:identitytokenaudience": [each for name, values in request.items() if name.startswith("Audience.") for each in values],
            "sts:durationseconds": request.get("DurationSeconds", ["300"])[0],
            "sts:signingalgorithm": request.get("SigningAlgorithm", [""])[0],
        }

    return wrapped


def _role_token(signer: Issuer, key: str, request: Mapping[str, list[str]], answer: tuple[int, Item, bytes]) -> Any:
    """Return MiniStack's answer with the token of its caller; the refusal of a token that outlives the caller's session."""
    status, headers, content = answer
    found = TOKEN.search(content)
    assert found is not None
    claims = json.loads(urlsafe_b64decode(found.group().split(b".")[1] + b"=="))
    caller = iam_evaluator.resolve_caller_identity(key) or {}
    ends = (caller.get("session") or {}).get("Expiration")
    if ends is not None and claims["exp"] > ends:
        refused = "The requested token duration would extend the session beyond its original expiration time."
        return iam._error(403, "SessionDurationEscalationException", refused, ns="sts")
    account, subject = get_account_id(), issuer.subject(caller.get("userArn") or f"arn:aws:iam::{get_account_id()}:root")
    role = iam._roles.get(subject.rpartition("/")[2]) if ":role/" in subject else None  # a session's ARN lacks the path of its role
    audience = claims["aud"] if isinstance(claims["aud"], list) else [claims["aud"]]
    token = signer.token(
        role["Arn"] if role else subject,
        audience,
        request["SigningAlgorithm"][0],
        issued_at=claims["iat"],
        expires_at=claims["exp"],
        aws={"aws_account": account, "source_region": get_region()},
    )
    return status, headers, TOKEN.sub(token.encode(), content)


def _save_as_one(home: Home, save_all: Callable[[state.Services], None]) -> Callable[[state.Services], None]:
    """Wrap the saving of all services: the new state is complete, or the state before remains. Code that it needs stays until then."""
    prune, referenced = lambda_svc._prune_orphan_code_blobs, list[set[str]]()
    lambda_svc._prune_orphan_code_blobs = referenced.append

    def write(folder: Path, services: state.Services) -> None:
        persistence.STATE_DIR = str(folder)
        save_all(services)

    def wrapped(services: state.Services) -> None:
        try:
            if busy := [each.name for each in map(_stack, cloudformation._stacks._data.values()) if each.busy]:
                raise state.NotSaved(f"a deployment of {', '.join(busy)} was interrupted")
            state.save(home, services, write)
        except (state.NotSaved, OSError) as error:
            log.error("the state is not saved: %s", error)
            return
        for used in referenced:
            prune(used)

    return wrapped


def _stack(found: Item) -> Deployed:
    return Deployed(found["StackName"], found["StackStatus"])


def _role(key: str) -> str:
    """Return the name of the role whose session the key belongs to; empty if the key belongs to no role."""
    principal = iam_evaluator.resolve_principal(key, get_account_id())
    return str(getattr(principal, "arn", "")).partition(":assumed-role/")[2].partition("/")[0]


def collect_once(phase: str, collection: Mapping[str, int]) -> None:
    """Exempt what survived a full garbage collection from later ones. It is freed as soon as nothing refers to it, unless it is in a cycle:
    items of tables are in none."""
    if phase == "stop" and collection["generation"] == OLDEST:
        gc.freeze()


def main() -> None:
    """Run the local AWS of the home that the command line names, until this process is stopped."""
    home = Home(Path(sys.argv.pop()))
    gc.callbacks.append(collect_once)
    persistence.save_all = _save_as_one(home, persistence.save_all)
    check = iam_evaluator.enforce
    if path := os.environ.get(GRANTS_LOG):
        check = _logging(check, Path(path).open("a", buffering=1))  # stays open until the process ends
    iam_evaluator.enforce = _remembering(check)
    for name, action in STATEMENTS.items():
        setattr(dynamodb, name, _as_statement(getattr(dynamodb, name), action, _further(check)))
    dynamodb._scan = _page_of_index(dynamodb._scan)
    dynamodb._evaluate_condition = _by_comparisons(dynamodb._evaluate_condition)
    _be_strict()
    local_cognito.be_strict()
    senders.install()
    deliveries.install()
    Containers(_further(check)).install()
    principals.install()
    for name in ("_set_item", "_remove_item"):
        setattr(dynamodb, name, _streaming(getattr(dynamodb, name)))
    lambda_svc._match_esm_filter = _flat(lambda_svc._match_esm_filter)
    lambda_svc._sqs_esm_concurrency = Growth(_processes).wrap(
        lambda_svc._sqs_esm_concurrency, lambda mapping_id: lambda_svc._esm_inflight.get(mapping_id, 0)
    )
    _without_waits()
    _issue_tokens(Issuer(f"http://{HOST}:{os.environ.get('GATEWAY_PORT', '4566')}", home.issuer))
    if shutil.which("node") is None:
        cloudfront_js.evaluate = viewer_functions.evaluate
    runpy.run_module("ministack.app", run_name="__main__", alter_sys=True)
