"""A whole local stack: starts AWS, deploys Punctual, creates the first user; always stops everything in order."""

import json
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError, HTTPClientError
from punctual import Punctual, PunctualError

from infra.parameters import LIVE
from local import previous, server, user
from local.aws import LocalAws
from local.busy import load
from local.deploy import deploy
from local.failure import Trouble
from local.home import Home
from local.steps import console, step
from ops.publish import publish
from scheduler.model.job import Lane, UnitKey
from scheduler.model.work import WorkItem
from scheduler.storage.aws import work_queue

USERNAME = "admin"
BUSY_S = 120  # for a request to the local API: its functions share the machine with all others


@dataclass
class Stack:
    """A running local AWS with Punctual deployed. `outputs` are those of the deployed stacks."""

    home: Home
    server: server.Server
    outputs: dict[str, str]
    username: str = USERNAME
    password: str = ""
    functions_endpoint: str | None = None  # the address at which the functions call AWS, if not the local AWS's own

    @property
    def aws(self) -> LocalAws:
        return self.server.aws

    @property
    def address(self) -> str:
        return self.aws.api_address(self.outputs)

    @property
    def console_address(self) -> str:
        return self.aws.console_address(self.outputs)

    def client(self) -> Punctual:
        """Return a client of the API, signed in as the first user."""
        return Punctual(self.address, username=self.username, password=self.password, timeout=BUSY_S)

    def user(self, username: str, weight: float = 1.0) -> Punctual:
        """Create another user with this fair-share weight. Returns a client of the API, signed in as that user."""
        secret = user.password()
        cognito = self.aws.client("cognito-idp")
        user.ensure(cognito, self.aws.client("dynamodb"), self.outputs, username, secret, administrator=False, weight=weight)
        return Punctual(self.address, username=username, password=secret, timeout=BUSY_S)

    @property
    def most_executors(self) -> int:
        """The most executors of one-time jobs at the same time."""
        return int(self._one_time()["ScalingConfig"]["MaximumConcurrency"])

    def _one_time(self) -> Any:
        """Return the event source mapping of the one-time lane."""
        name = f"{self.outputs['ExecuteOneTimeFunction']}:{LIVE}"
        (mapping,) = self.aws.client("lambda").list_event_source_mappings(FunctionName=name)["EventSourceMappings"]
        return mapping

    def narrow(self, executors: int) -> None:
        """Limit the executors of one-time jobs. Dispatch gets the window that a deployment with this limit has for jobs that compute."""
        mapping = self._one_time()
        self.aws.client("lambda").update_event_source_mapping(UUID=mapping["UUID"], ScalingConfig={"MaximumConcurrency": executors})
        rules = json.loads(self.aws.variables(self.outputs["DispatchFunction"])["PUNCTUAL_RULES"])
        for name in ("windows", "crowds"):  # a job that computes needs a process, of which an executor has ten
            rules[name] |= {Lane.ONE_TIME: executors * mapping["BatchSize"]}
        self.aws.set_variables(self.outputs["DispatchFunction"], PUNCTUAL_RULES=json.dumps(rules))

    def set_tick(self, state: str) -> None:
        """Set the schedule that invokes the tick every minute to ENABLED or DISABLED."""
        scheduler = self.aws.client("scheduler")
        known = scheduler.get_schedule(Name=self.outputs["TickScheduleName"])
        settings = {name: known[name] for name in ("Name", "GroupName", "ScheduleExpression", "FlexibleTimeWindow", "Target")}
        scheduler.update_schedule(**settings, State=state)

    def work_again(self, minute: str, copies: int, delay_s: int = 0) -> None:
        """Send further messages for the first unit of a minute, as SQS does if it delivers one several times."""
        body = work_queue.encode(WorkItem.of_unit(UnitKey(minute, 0)))
        for _ in range(copies):
            self.aws.client("sqs").send_message(QueueUrl=self.outputs["WorkQueueUrl"], MessageBody=body, DelaySeconds=delay_s)

    def restart(self, *, enforce_iam: bool = False) -> None:
        """Stop and start the local AWS on the same port; all state is kept."""
        self.server.stop()
        self.server = server.start(self.home, self.aws.port, enforce_iam=enforce_iam, functions_endpoint=self.functions_endpoint)


Deploy = Callable[[Home, LocalAws], dict[str, str]]  # deploys what has changed, and returns the outputs


def by_cdk(home: Home, aws: LocalAws) -> dict[str, str]:
    """Deploy the sources of this folder, and upload the console."""
    outputs = deploy(home, aws)
    if "ConsoleBucket" in outputs:
        with step("Uploading the web console"):
            publish(aws.client("s3"), outputs["ConsoleBucket"])
    return outputs


@contextmanager
def up(home: Home, *, port: str | None = None, enforce_iam: bool = False, deployment: Deploy = by_cdk) -> Iterator[Stack]:
    """Start the stack of a home, and stop it at the end. Raises Trouble, with a remedy, if it cannot be started."""
    for found in previous.clear(home):
        console.print(f"  [yellow]![/] {found}")
    chosen = server.choose_port(home, port)
    if not port and chosen != (default := home.settled.read().get("port", server.FIRST_PORT)):
        console.print(f"  [yellow]![/] Port {default} is taken by another program; using port {chosen}.")
    with interruptible():
        with step(f"Starting the local AWS on port {chosen}"):
            stack = Stack(home, server.start(home, chosen), {})
        try:
            stack.outputs = deployment(home, stack.aws)
            if enforce_iam:
                with step("Restarting the local AWS with IAM enforced"):
                    stack.restart(enforce_iam=True)
            with step("Creating the first user, or keeping it"):
                _first_user(stack)
            yield stack
        except BaseException as error:
            explained = explain(error, home, alive=stack.server.alive)
            with uninterruptible():
                _stop_too(stack)
            if explained:
                raise explained from error
            raise
        with uninterruptible(), step("Stopping the local AWS"):
            stack.server.stop()


def explain(error: BaseException, home: Home, *, alive: bool) -> Trouble | None:
    """Return the error for people if its cause is that the local AWS ended, or is too slow for its caller; else None."""
    if not alive and isinstance(error, BotoCoreError | ClientError | Trouble | PunctualError):
        return Trouble(
            "Another program killed the local AWS. Everything since the start of this run is lost; what was there before is kept.\n"
            f"The log is {home.log}. Start again with: {home.commands.run}"
        )
    if isinstance(error, HTTPClientError):
        return Trouble(f"The local AWS does not answer in time: this machine is busy ({load()}).\nStart again with: {home.commands.run}")
    return None


def _stop_too(stack: Stack) -> None:
    """Stop the local AWS after an error, which stays the one that is reported."""
    try:
        with step("Stopping the local AWS"):
            stack.server.stop()
    except Trouble as trouble:
        console.print(f"  [yellow]![/] {trouble}")


def _first_user(stack: Stack) -> None:
    """Create the first user if missing. The password stays the same over restarts."""
    secret = stack.home.settled.read().get("password") or user.password()
    cognito = stack.aws.client("cognito-idp")
    user.ensure(cognito, stack.aws.client("dynamodb"), stack.outputs, stack.username, secret)
    stack.home.settled.update(username=stack.username, password=secret)
    stack.password = secret


SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)  # that end a run
Handler = Callable[[int, FrameType | None], Any] | int | None


@contextmanager
def interruptible() -> Iterator[None]:
    """Let `kill`, a closed terminal and the end of `make` end a run as Ctrl-C does. Further signals do not interrupt that end."""
    over = threading.Event()
    with _handling(SIGNALS, _end):
        if "MAKELEVEL" in os.environ:
            threading.Thread(target=_end_with, args=(os.getppid(), over), name="make", daemon=True).start()
        try:
            yield
        finally:
            over.set()


def _end(number: int, frame: FrameType | None) -> None:
    """Raise KeyboardInterrupt for the first signal: a supervisor often sends one to this process, and one to each of its parents."""
    for each in SIGNALS:
        signal.signal(each, signal.SIG_IGN)
    raise KeyboardInterrupt


def _end_with(parent: int, over: threading.Event, every: float = 1.0) -> None:
    """Stop this process in order once its parent has ended: a killed `make` cannot stop it."""
    while not over.wait(every):
        if os.getppid() != parent:
            os.kill(os.getpid(), signal.SIGTERM)
            return


@contextmanager
def uninterruptible() -> Iterator[None]:
    """Ignore signals: a second Ctrl-C must not destroy the state that is just being written."""
    with _handling(SIGNALS, signal.SIG_IGN):
        yield


@contextmanager
def _handling(signals: tuple[signal.Signals, ...], handler: Handler) -> Iterator[None]:
    before = {number: signal.signal(number, handler) for number in signals}
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)
