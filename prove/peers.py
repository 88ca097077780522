"""Peers of the jobs, in the same account and for the same instants: one-time schedules of EventBridge Scheduler, and messages with
DelaySeconds of SQS.

A schedule sends a message to a queue of the run, and its delay is the message's SentTimestamp minus the instant. SQS takes whole
seconds of delay, so a delayed message is due at its SentTimestamp and DelaySeconds; its delay is ApproximateFirstReceiveTimestamp
minus that. A standing long poll receives it.
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_ReceiveMessage.html
"""

import json
import math
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, NamedTuple, Self

from botocore.exceptions import BotoCoreError, ClientError

from bench.prices import SCHEDULE
from local.failure import Trouble
from local.steps import step
from prove import costs, judging
from prove.cleanup import Cleanup
from prove.place import Place
from prove.plan import DELAYED, Part, Plan
from prove.report import Row

THREADS = 8
BATCH = 10  # messages of one call of SQS
POLL_S = 5  # a long poll; a run ends at most this much later
TRUSTED_S = 60  # how long Scheduler may take to see a new role
RETRIES = {"mode": "standard", "max_attempts": 10}  # CreateSchedule is throttled at 250 a second in small regions
POLICY = "send"
SCHEDULER, SQS = "EventBridge Scheduler", "SQS delay"
KEYS = {SCHEDULER: "scheduler", SQS: "sqs"}
LOCAL = {  # why this is no figure of the peer
    SCHEDULER: "the local AWS starts schedules every ten seconds, by its own clock; compare on AWS",
    SQS: "the local AWS has a queue of its own; compare on AWS",
}
LIMITS = {  # as documented
    SCHEDULER: "within a minute",  # https://docs.aws.amazon.com/scheduler/latest/UserGuide/schedule-types.html
    SQS: "15 minutes ahead at most",  # https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessage.html
}


class Arrival(NamedTuple):
    """A message of the run. `at` and `received_at` are SQS's own times in UTC milliseconds."""

    part: str
    number: int
    due: int  # of a schedule: its instant; of a delayed message: its delay in milliseconds
    sent_at: int
    received_at: int


class Inbox:
    """A queue of the run, and a thread that receives its messages while the context is open."""

    def __init__(self, sqs: Any, name: str, cleanup: Cleanup) -> None:
        self._sqs = sqs
        cleanup.later(f"the queue {name}", lambda: sqs.delete_queue(QueueUrl=sqs.get_queue_url(QueueName=name)["QueueUrl"]))
        self.url: str = sqs.create_queue(QueueName=name, Attributes={"MessageRetentionPeriod": "3600"})["QueueUrl"]
        self.arrivals: list[Arrival] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._receive, daemon=True)

    @property
    def arn(self) -> str:
        answer = self._sqs.get_queue_attributes(QueueUrl=self.url, AttributeNames=["QueueArn"])
        return str(answer["Attributes"]["QueueArn"])

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._over.set()
        self._thread.join()

    def _receive(self) -> None:
        while not self._over.is_set():
            try:
                self.poll(POLL_S)
            except (BotoCoreError, ClientError):  # the messages stay in the queue
                self._over.wait(1)

    def poll(self, wait_s: int) -> None:
        """Receive and delete messages, at most ten."""
        answer = self._sqs.receive_message(
            QueueUrl=self.url,
            MaxNumberOfMessages=BATCH,
            WaitTimeSeconds=wait_s,
            MessageSystemAttributeNames=["SentTimestamp", "ApproximateFirstReceiveTimestamp"],
        )
        if found := answer.get("Messages"):
            self.arrivals += map(_arrival, found)
            entries = [{"Id": str(n), "ReceiptHandle": each["ReceiptHandle"]} for n, each in enumerate(found)]
            self._sqs.delete_message_batch(QueueUrl=self.url, Entries=entries)


def _arrival(message: dict[str, Any]) -> Arrival:
    body, times = json.loads(message["Body"]), message["Attributes"]
    return Arrival(body["part"], body["number"], body["due"], int(times["SentTimestamp"]), int(times["ApproximateFirstReceiveTimestamp"]))


class Schedules:
    """One-time schedules in a group of the run, with a role of the run that may send to one queue."""

    def __init__(self, place: Place, name: str, cleanup: Cleanup) -> None:
        self.inbox = Inbox(place.client("sqs"), f"{name}-schedules", cleanup)
        self._scheduler = place.client("scheduler", retries=RETRIES, max_pool_connections=THREADS)
        self._name = name
        self._queue = self.inbox.arn
        self._role = self._make_role(place.client("iam"), cleanup)
        cleanup.later(f"the schedule group {name}, with its schedules", lambda: self._scheduler.delete_schedule_group(Name=name))
        self._scheduler.create_schedule_group(Name=name)

    def _make_role(self, iam: Any, cleanup: Cleanup) -> str:
        name, account = self._name, self._queue.split(":")[4]
        trust = _policy(
            "sts:AssumeRole",
            Principal={"Service": "scheduler.amazonaws.com"},
            Condition={"StringEquals": {"aws:SourceAccount": account}},
        )
        cleanup.later(f"the role {name}", lambda: iam.delete_role(RoleName=name))
        role = iam.create_role(RoleName=name, AssumeRolePolicyDocument=trust, Description="make prove: schedules send to a queue")
        cleanup.later(f"the policy of the role {name}", lambda: iam.delete_role_policy(RoleName=name, PolicyName=POLICY))
        iam.put_role_policy(RoleName=name, PolicyName=POLICY, PolicyDocument=_policy("sqs:SendMessage", Resource=self._queue))
        return str(role["Role"]["Arn"])

    def create(self, parts: Sequence[Part]) -> None:
        """Create a schedule for each instant. The first one is tried again until Scheduler sees the new role."""
        schedules = [(part.key, number, at) for part in parts for number, at in enumerate(part.instants)]
        _until_trusted(lambda: self._create(*schedules[0]))
        with ThreadPoolExecutor(THREADS) as pool:
            list(pool.map(lambda each: self._create(*each), schedules[1:]))

    def _create(self, part: str, number: int, at: int) -> None:
        instant = datetime.fromtimestamp(at / 1000, UTC)
        self._scheduler.create_schedule(
            GroupName=self._name,
            Name=f"{part}-{number}",
            ScheduleExpression=f"at({instant:%Y-%m-%dT%H:%M:%S})",
            FlexibleTimeWindow={"Mode": "OFF"},
            ActionAfterCompletion="DELETE",
            Target={"Arn": self._queue, "RoleArn": self._role, "Input": json.dumps({"part": part, "number": number, "due": at})},
        )


def _policy(action: str, **rest: Any) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": action, **rest}]})


def _until_trusted(create: Callable[[], None]) -> None:
    """Call until Scheduler can assume the new role: until then it answers with a ValidationException that names the role."""
    end = time.monotonic() + TRUSTED_S
    while True:
        try:
            return create()
        except ClientError as error:
            trusted = error.response["Error"]["Code"] != "ValidationException" or "role" not in error.response["Error"]["Message"]
            if trusted or time.monotonic() > end:
                raise
            time.sleep(2)


class Delayed:
    """Messages of SQS with DelaySeconds, in a queue of the run."""

    def __init__(self, place: Place, name: str, cleanup: Cleanup) -> None:
        self._sqs = place.client("sqs")
        self.inbox = Inbox(self._sqs, f"{name}-delayed", cleanup)

    def send(self, part: Part, now: int) -> None:
        """Send a message for each instant, hidden until then; rounded up to whole seconds."""
        entries = [_entry(part.key, number, math.ceil((at - now) / 1000)) for number, at in enumerate(part.instants)]
        for first in range(0, len(entries), BATCH):
            answer = self._sqs.send_message_batch(QueueUrl=self.inbox.url, Entries=entries[first : first + BATCH])
            if failed := answer.get("Failed"):
                raise Trouble(f"SQS refused {len(failed)} delayed messages: {failed[0]['Code']}")


def _entry(part: str, number: int, seconds: int) -> dict[str, Any]:
    body = json.dumps({"part": part, "number": number, "due": seconds * 1000})
    return {"Id": str(number), "MessageBody": body, "DelaySeconds": seconds}


class Peers:
    """Both peers of a run. A peer that AWS refuses to the caller is reported as not measured, and stops nothing else."""

    def __init__(self, place: Place, plan: Plan, name: str, cleanup: Cleanup, stack: ExitStack) -> None:
        """Create the schedules and the delayed messages. `stack` ends the receivers."""
        self._place, self._plan = place, plan
        self._inboxes: dict[str, Inbox] = {}
        self._refused: dict[str, str] = {}
        for peer, begin in ((SCHEDULER, self._schedule), (SQS, self._delay)):
            try:
                with step(f"Creating what {peer} does at the same instants"):
                    self._inboxes[peer] = stack.enter_context(begin(name, cleanup))
            except (BotoCoreError, ClientError, Trouble) as error:
                self._refused[peer] = str(error)

    def _schedule(self, name: str, cleanup: Cleanup) -> Inbox:
        schedules = Schedules(self._place, name, cleanup)
        schedules.create(self._plan.compared)
        return schedules.inbox

    def _delay(self, name: str, cleanup: Cleanup) -> Inbox:
        delayed = Delayed(self._place, name, cleanup)
        for part in self._delayed:
            delayed.send(part, time.time_ns() // 1_000_000)
        return delayed.inbox

    @property
    def _delayed(self) -> list[Part]:
        return [part for part in self._plan.compared if part.key == DELAYED]

    def rows(self) -> list[Row]:
        """Return the figures of what has arrived."""
        parts, both = self._plan.compared, SCHEDULE + costs.MESSAGE
        scheduled = [self._row(SCHEDULER, part, both, lambda each: each.sent_at - each.due) for part in parts]
        delayed = [self._row(SQS, part, costs.MESSAGE, lambda each: each.received_at - each.sent_at - each.due) for part in self._delayed]
        return scheduled + delayed

    def _row(self, peer: str, part: Part, price: float, delay: Callable[[Arrival], int]) -> Row:
        key, title, count = f"{KEYS[peer]}-{part.key}", f"{peer}: {part.key}", len(part.instants)
        if reason := self._refused.get(peer):
            return Row(key, title, count, note=f"not measured: {reason}")
        arrivals = [each for each in self._inboxes[peer].arrivals if each.part == part.key]
        if self._place.local:
            return Row(key, title, count, note=f"{len({each.number for each in arrivals})} of {count} came; {LOCAL[peer]}")
        delays = judging.grouped([(each.number, delay(each)) for each in arrivals])
        return judging.of_peer(key, title, count, delays, count * price, LIMITS[peer])
