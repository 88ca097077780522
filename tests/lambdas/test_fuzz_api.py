"""The API, fuzzed by its own OpenAPI document: no 5xx, no internals in messages, answers as documented, and no user sees or changes
the objects of another user."""

import itertools
import json
import os
import random
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import FlakyStrategyDefinition
from werkzeug.test import Client

import scheduler
from lambdas import _runtime
from lambdas.rest import audit_trail
from scheduler.accounts import api_keys, teams
from scheduler.accounts.access import Caller, Rights
from scheduler.admission import ordering
from scheduler.model import ids, lifecycle
from scheduler.model.account import Membership, OwnerKind, Profile, Role, Scope, TeamRole
from scheduler.model.calendar import Calendar
from scheduler.model.group import Group
from scheduler.model.intake import IntakeLetter, IntakeMessage, Violation
from scheduler.model.job import Claim, Failure, FailureKind, Job, Receipt, Result
from scheduler.model.monitor import Monitor
from scheduler.model.named_target import NamedTarget
from scheduler.model.operation import Action, Filter, Operation, new
from scheduler.model.receiver import NamedReceiver, ReceiverKind
from scheduler.model.schedule import Rate, Schedule
from scheduler.model.spec import Ordering
from scheduler.model.task import Task
from scheduler.monitors import rules, tokens
from scheduler.storage.ports import KeyTaking
from tests.conftest import a_job
from tests.contract import make
from tests.lambdas.front import application
from tests.lambdas.gateway import NOW, World

INSIDE = (
    "Traceback",
    'File "',
    "scheduler.",
    "lambdas.",
    "botocore",
    "boto3",
    "pydantic",
    "powertools",
    "object at 0x",
    "Error(",
    "dynamodb",
)
FEW, MANY = 2, 8 if settings().derandomize else 60  # examples of each operation and mode; `make fuzz` tries more
HOUR = 3_600_000
PRODUCT = tuple(f"{Path(module.__file__ or '').parent}{os.sep}" for module in (_runtime, scheduler))
NOBODYS = tuple(
    f"/api/v1/{path}" for path in ("task-types", "types", "schedules/preview", "schedules/calendar", "version")
)  # their answers are the same for all: only the gateway checks the token
NAMES_OF_ANYBODY = {"token"}  # of a ping: it lets its sender ping
NAMES_OF_ANYBODY |= {"fingerprint", "key", "ordering_key", "name"}  # these name no user's object; `judge` checks that no answer shows bob's
CREATES_OWN = {
    f"PUT /api/v1/{path}" for path in ("calendars/{calendar_name}", "receivers/{receiver}")
}  # another user may have the name, too
_numbers = itertools.count(1)


@dataclass
class Belongings:
    """The objects of a user before each case, in all states."""

    owner: str
    jobs: list[Job] = field(default_factory=list)
    tasks: list[Task] = field(default_factory=list)
    redrives: list[Operation] = field(default_factory=list)
    receipts: list[Receipt] = field(default_factory=list)
    key: api_keys.Made = field(init=False)
    invited: teams.Invited = field(init=False)
    letter: IntakeLetter = field(init=False)
    group: Group = field(init=False)
    monitor: Monitor = field(init=False)
    receiver: NamedReceiver = field(init=False)

    @property
    def secret(self) -> str:
        return f"only {self.owner} knows"

    @property
    def name_of_team(self) -> str:
        return f"administrators and {self.owner} know"

    def __post_init__(self) -> None:
        def job(**fields: Any) -> Job:
            return a_job(owner=self.owner, payload={"message": self.secret}, created_at=NOW - HOUR, **fields)

        claim = Claim("m", "n", NOW - 5_000, True)
        running = job(due_at=NOW - 5_000, claim=claim)
        failure = Result(failure=Failure(FailureKind.PERMANENT, self.secret))
        failed, killed = (end(running, NOW, started_at=NOW - 4, result=failure) for end in (lifecycle.fail, lifecycle.kill))
        done = lifecycle.succeed(running, NOW, started_at=NOW - 4, result=Result(self.secret))
        task = make.task(
            owner=self.owner,
            name=self.secret,
            schedule=Schedule(Rate(300_000, NOW)),
            created_at=NOW,
            updated_at=NOW,
            planned_until=NOW + HOUR,
        )
        inactive = replace(task, id=make.task().id, inactive_at=NOW, inactive_reason=self.secret, replenish=None)
        self.tasks = [task, inactive, replace(task, id=make.task().id, spec=replace(task.spec, key=f"{self.owner}:key"))]
        others = [replace(each, id=a_job().id) for each in (failed, killed, done)]
        lined = job(due_at=NOW + HOUR, ordering=Ordering(f"{self.owner}:line"))
        named = job(due_at=NOW + HOUR, key=f"{self.owner}:key")
        self.jobs = [job(due_at=NOW + HOUR), job(due_at=NOW + 3_000), running, lined, named, *others, *_runs(task, self.secret)]
        self.redrives = [new(self.owner, NOW, next(_numbers), Action.REDRIVE, Filter())]
        message = IntakeMessage(f"message-of-{self.owner}", "jobs", "AROA1:s", NOW, self.secret)
        self.letter = IntakeLetter(message, (Violation("body", "is not JSON"),), NOW, self.owner)
        self.receiver = NamedReceiver(self.owner, f"of-{self.owner}", ReceiverKind.EMAIL, "ann@example.com", NOW, NOW)
        self.group = Group(self.owner, ids.new(NOW, next(_numbers)), NOW, NOW + HOUR, self.secret)
        self.monitor = monitor_of(self.owner, self.secret)
        self.receipts = [Receipt(self.owner, "bob's key", "f", NOW - 1_000, 5)]

    def into(self, world: World) -> None:
        for job in self.jobs:
            if job.own_key is None:
                world.jobs.put(job)
            else:
                world.jobs.take_keys([KeyTaking(None, job)])
        self.acting_into(world)
        world.orders.enqueue([ordering.entry_of(job) for job in self.jobs if job.spec.ordering is not None])
        for task in self.tasks:
            world.tasks.store(None, task, [])
        world.calendars.put(None, Calendar(self.owner, f"cal-{self.owner}", frozenset({740_000}), NOW, self.secret))
        for each in self.redrives:
            world.operations.add(each, len(world.operations.rows), None)
        world.receipts.keep(self.receipts, NOW)
        world.intake_letters.add(self.letter)
        world.groups.add(self.group)
        world.monitors.put(None, self.monitor)
        world.receivers.put(None, self.receiver)

    def acting_into(self, world: World) -> None:
        """The person, an API key of theirs, and a team that they manage, with another member and an invitation."""
        letter = self.owner[-1]
        for id in (self.manager, self.guest):
            world.be(id, id.removeprefix("sub-"), Role.USER)
        team = Profile(self.team, kind=OwnerKind.TEAM, name=self.name_of_team, created_at=NOW, managers=1)
        assert world.owners.add_team(team, self.manager)
        assert world.owners.add_member(Membership(self.team, self.guest, TeamRole.EDITOR, NOW))
        caller = Caller(self.manager, self.manager, self.manager, Rights(self.manager, teams={self.team: TeamRole.MANAGER}))
        self.key = api_keys.make(self.owner, caller, self.secret, [Scope.JOBS_READ], None, world, lambda letters: letter)
        self.invited = teams.invite(self.team, TeamRole.VIEWER, 7, self.manager, world, lambda letters: letter)

    @property
    def manager(self) -> str:
        return self.owner

    @property
    def guest(self) -> str:
        return f"{self.manager}-guest"

    @property
    def team(self) -> str:
        return f"team-{self.owner.removeprefix('sub-')}"

    def names(self, parameter: str) -> list[str]:
        """The objects of this user that a path parameter may name."""
        found = {
            "job_id": [job.id for job in self.jobs],
            "task_id": [task.id for task in self.tasks],
            "group_id": [self.group.id],
            "calendar_name": [f"cal-{self.owner}"],
            "redrive_id": [each.id for each in self.redrives],
            "operation_id": [each.id for each in self.redrives],
            "message_id": [self.letter.message.id],
            "ordering_key": [f"{self.owner}:line"],
            "key": [f"{self.owner}:key"],
            "token": [tokens.derive(self.monitor.id, 1, b"key")],
            "signal": ["start"],
            "number": ["1"],
            "name": ["reports"],
            "receiver": [self.receiver.name],
            "user_id": [self.owner],
            "key_id": [self.owner[-1] * 16],
            "team_id": [self.team],
            "invitation_id": [self.owner[-1] * 12],
            "principal_id": ["principal-1"],
            "provider": ["corp"],
            "service": ["s3"],
            "action": ["CopyObject"],
            "fingerprint": [job.fingerprint for job in self.jobs if job.fingerprint is not None],
        }
        return found[parameter]


def monitor_of(owner: str, secret: str) -> Monitor:
    """A monitor of the owner, whose key is that of the owner's task."""
    hashed = tokens.hash_of(tokens.derive(f"monitor-of-{owner}", 1, b"key"))
    pulse = rules.created(NOW)
    return Monitor(owner, f"{owner}:key", f"monitor-of-{owner}", secret, hashed, 1, HOUR, HOUR, NOW, NOW, pulse, period_ms=HOUR)


class OfTeam(Belongings):
    """The objects of a team."""

    @property
    def manager(self) -> str:
        return f"sub-manager-of-{self.owner}"

    @property
    def team(self) -> str:
        return self.owner


def _runs(task: Task, secret: str) -> list[Job]:
    return [make.run(task.key, at=NOW + HOUR * n, payload={"message": secret}) for n in (1, 2)]


ANN, BOB = Belongings("sub-ann"), Belongings("sub-bob")


class Fuzz:
    """The world of a case, and the checks of every answer."""

    def __init__(self) -> None:
        import schemathesis
        from schemathesis.openapi import from_wsgi
        from schemathesis.specs.openapi import checks

        self.world = World()
        self.random = random.Random()  # all ids, keys and tokens follow from it: a walk that is repeated gets the same answers
        self.document = from_wsgi("/api/v1/openapi.json", application)
        self.modes = (schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE)
        self.checks = [checks.status_code_conformance, checks.content_type_conformance, checks.response_schema_conformance]
        self.statuses: Counter[int] = Counter()
        self.followed = 0  # links that were followed successfully

    def operations(self) -> list[Any]:
        return [found.ok() for found in self.document.get_all_operations()]

    def fresh(self, role: Role = Role.USER) -> None:
        """Begin a world in which ann has this role in the stage."""
        self.random.seed(1)
        audit_trail._refused.clear()
        self.world = World()
        self.world.rules = replace(self.world.rules, intake=True)
        self.world.targets.put(None, NamedTarget("reports", "log", NOW, NOW, "ada", "ada"))
        for user in (ANN, BOB):
            user.into(self.world)
        self.world.be("sub-ann", "ann", role)

    def case(self, case: Any) -> None:
        """A generated request as it is; then on what the caller has, as an administrator; on what is bob's; and without a token."""
        number = len(json.dumps(case.body, default=str)) if case.body is not None else 0
        generated = dict(case.path_parameters or {})
        self.send(case, "token")
        for user, token in ((ANN, "token2"), (BOB, "token"), (ANN, None)):
            if generated or token != "token":
                case.path_parameters = {name: _one_of(user.names(name), number) for name in generated}
                status = self.send(case, token)
                if user is BOB and not generated.keys() & NAMES_OF_ANYBODY and case.operation.label not in CREATES_OWN:
                    assert 400 <= status < 500, f"{case.operation.label}: it is bob's"

    def send(self, case: Any, token: str | None) -> int:
        self.fresh(Role.ADMINISTRATOR if token == "token2" else Role.USER)
        whose = "sub-bob" if token else None
        before = self.state(whose)
        response = case.call(headers={"Authorization": f"Bearer {token}"} if token else {"Authorization": "none"})
        self.judge(case, response, BOB.secret, *([] if token == "token2" else [BOB.name_of_team]))
        assert self.state(whose) == before
        if token is None and case.operation.path not in NOBODYS and case.operation.definition.raw.get("security") != []:
            assert 400 <= response.status_code < 500
        return int(response.status_code)

    def judge(self, case: Any, response: Any, *hidden: str) -> None:
        """Check an answer by the rules for every answer. `hidden`: what its reader may not see."""
        self.statuses[response.status_code] += 1
        text = response.content.decode()
        assert response.status_code < 500, text
        case.validate_response(response, checks=self.checks)
        assert not [each for each in hidden if each in text], text
        told = json.loads(text).get("error")
        sent = repr((case.path_parameters, case.query, case.headers, case.body))  # a refusal names the field as the request does
        assert not told or not [word for word in INSIDE if word in json.dumps(told) and word not in sent], text

    def walk(self, scenarios: int, steps: int, *, derandomize: bool) -> None:
        """Requests that follow from answers: created objects are read, changed, run, cancelled and deleted, in one world per walk."""
        fuzz, wrong = self, list[AssertionError]()

        class Walk(self.document.as_state_machine()):  # type: ignore[misc]
            def setup(self) -> None:
                fuzz.fresh(Role.ADMINISTRATOR)
                self.before = fuzz.state("sub-bob")

            def get_call_kwargs(self, case: Any) -> dict[str, Any]:
                return {"headers": {"Authorization": "Bearer token2"}}

            def validate_response(self, response: Any, case: Any, **_: Any) -> None:
                fuzz.followed += case.path_parameters is not None and response.status_code < 300
                try:
                    fuzz.judge(case, response, BOB.secret)
                except AssertionError as error:
                    wrong.append(error)
                    raise

            def teardown(self) -> None:
                assert fuzz.state("sub-bob") == self.before

        try:
            Walk.run(settings=_settings(scenarios, derandomize, stateful_step_count=steps))
        except FlakyStrategyDefinition as error:  # the repetition of a failed walk drew other data: say what failed
            raise (wrong or [error])[0] from None

    def state(self, owner: str | None) -> Any:
        """All stored records of a user, or of all users."""
        world = self.world
        rows = [world.jobs.rows.values(), world.tasks.rows.values(), world.operations.rows.values(), world.receipts.rows.values()]
        return [{each for each in map(_frozen, kind) if owner in (None, each[0])} for kind in rows]


def _frozen(record: Any) -> tuple[str, str]:
    return record.owner, repr(record)


def _one_of(names: list[str], number: int) -> str:
    return names[number % len(names)]


@pytest.fixture(scope="module")
def module_fuzz() -> Iterator[Fuzz]:
    with pytest.MonkeyPatch.context() as patch:
        holder: list[Fuzz] = []
        patch.setattr(_runtime, "api", lambda: holder[0].world)
        holder.append(Fuzz())
        for module, name in ((os, "urandom"), (random, "_urandom")):  # of `uuid`, and of `secrets`
            patch.setattr(module, name, _drawn(holder[0].random))
        yield holder[0]


def _drawn(source: random.Random) -> Callable[[int], bytes]:
    """`os.urandom` whose bytes are from `source` for the product, and as they were for the libraries that make the requests."""
    really = os.urandom

    def drawn(count: int) -> bytes:
        frames = islice(traceback.walk_stack(sys._getframe(1)), 25)
        ours = any(frame.f_code.co_filename.startswith(PRODUCT) for frame, _ in frames)
        return source.randbytes(count) if ours else really(count)

    return drawn


def _settings(examples: int, derandomize: bool, **more: Any) -> settings:
    phases = [Phase.generate, Phase.shrink]
    quiet = list(HealthCheck)
    return settings(
        max_examples=examples, derandomize=derandomize, database=None, deadline=None, suppress_health_check=quiet, phases=phases, **more
    )


def explore(fuzz: Fuzz, examples: int, *, derandomize: bool) -> None:
    """Send `examples` requests that each operation allows, and as many that it forbids."""
    options = _settings(examples, derandomize)
    for operation in fuzz.operations():
        for mode in fuzz.modes:
            if mode.is_negative and not (operation.body or operation.query or operation.path_parameters or operation.headers):
                continue  # the operation has no input that could be wrong

            @options
            @given(case=operation.as_strategy(mode))
            def cases(case: Any) -> None:
                fuzz.case(case)

            cases()


@pytest.mark.long
def test_generated_requests_are_answered_as_documented(module_fuzz: Fuzz) -> None:
    explore(module_fuzz, FEW, derandomize=True)
    assert len(module_fuzz.operations()) >= 30 and module_fuzz.statuses.total() > 100


@pytest.mark.long
def test_requests_that_follow_from_answers_are_answered_as_documented(module_fuzz: Fuzz) -> None:
    module_fuzz.walk(5, 20, derandomize=True)
    assert module_fuzz.followed >= 5


@pytest.mark.parametrize("path", ["/jobs", f"/tasks/{ANN.names('task_id')[0]}/jobs", "/dead-letters"])
@pytest.mark.parametrize("name", ["from", "to"])
def test_a_repeated_instant_parameter_is_refused(module_fuzz: Fuzz, path: str, name: str) -> None:
    module_fuzz.fresh()
    answer = Client(application).get(f"/api/v1{path}?{name}=a&{name}=b", headers={"Authorization": "Bearer token"})
    assert (answer.status_code, [detail["field"] for detail in answer.json["error"]["details"]]) == (400, [name])


@pytest.mark.long
def test_thousands_of_requests_are_answered_as_documented(module_fuzz: Fuzz, capsys: pytest.CaptureFixture[str]) -> None:
    explore(module_fuzz, MANY, derandomize=settings().derandomize)
    module_fuzz.walk(100, 30, derandomize=settings().derandomize)
    with capsys.disabled():
        sys.stdout.write(f"\nfuzz: {module_fuzz.statuses.total()} requests, by status {dict(sorted(module_fuzz.statuses.items()))}\n")
    assert module_fuzz.statuses.total() > 5_000 and module_fuzz.followed > 300
