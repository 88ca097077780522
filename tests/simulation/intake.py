"""The intake in virtual time: messages of two owners, invocations that die between any two effects, tables that refuse, duplicates.

The oracles: each good message becomes exactly one job, each wrong one exactly one dead letter, a batch with wrong jobs both, and none stays
in the queue.
"""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from lab.world.clock import SimClock
from lab.world.faults import Faults, Faulty, Rates
from lab.world.gateway import ApiPorts
from lab.world.hub import Hub, Killed
from lambdas._settings import Settings
from lambdas.rest.intake_reading import services
from scheduler.intake.intake import Services, intake
from scheduler.model.account import Principal, Profile, Scope
from scheduler.model.intake import PRINCIPALS, IntakeMessage
from scheduler.model.rules import Rules
from scheduler.targets.base import Reach
from tests.contract.make import NOW

BEGIN = NOW - NOW % 60_000
OWNERS = {"AROAADA": "ada", "AROAEVE": "eve"}
FAULTY = ("jobs", "receipts", "orders", "ledger", "lanes", "work", "users", "owners", "targets", "intake_letters")
VISIBILITY_MS, POLL_MS, TEN = 120_000, 20, 10
CALM, ROUGH = Rates(), Rates(crash=0.004, refuse=0.01, slow=0.001, double=0.02, redeliver=0.02, skew_ms=250)
MOST_RECEIVES = 300  # `infra/intake.py`: then the message would be in the queue's own dead-letter queue
WIND_DOWN_MS = 3 * 3_600_000
BAD = ("{", json.dumps({"message": "x", "delay": "soon"}), json.dumps({"message": "x", "owner": "eve"}))


def plain_ports(rules: Rules, clock: Any) -> ApiPorts:
    """Ports with the principals of both owners."""
    ports = ApiPorts(clock, rules)
    for unique_id, owner in OWNERS.items():
        arn = f"arn:aws:iam::123456789012:role/{owner}"
        ports.owners.put_principal(Principal(owner, arn, owner, frozenset({Scope.JOBS_WRITE}), "root", BEGIN, unique_id), new=True)
        ports.users.rows[owner] = Profile(owner, name=owner)
    return ports


def process(ports: ApiPorts) -> Services:
    """The services of a new process."""
    ports.serve(Settings(stage="simulation"), Reach())
    return services(ports, {"jobs": PRINCIPALS})


@dataclass
class Sent:
    """A message in the queue. `jobs`, `letters`: how many it must become."""

    message: IntakeMessage
    jobs: int
    letters: int
    visible_at: int
    receives: int = 0
    is_deleted: bool = False


@dataclass
class IntakeReport:
    violations: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    messages: int = 0
    jobs: int = 0
    most_receives: int = 0


def body_of(number: int, random: Random) -> tuple[str, int, int]:
    """The body of a message, and how many jobs and dead letters it must become. Each job has its number and place as its text."""
    kind = random.random()
    if kind < 0.05:
        return random.choice(BAD), 0, 1
    if kind < 0.15:
        good = [{"message": f"{number}.{place}", "delay": "10m"} for place in range(3)]
        wrong = {"message": "x", "delay": "soon"}
        return json.dumps({"jobs": [good[0], wrong, *good[1:]] if kind < 0.1 else good}), 3, int(kind < 0.1)
    return json.dumps({"message": f"{number}.0", "delay": random.choice(("1s", "10m"))}), 1, 0


class SimIntake:
    """Messages at a rate, and as many invocations at once as the mapping allows."""

    def __init__(self, seed: int, rates: Rates, *, per_second: int, seconds: int, at_once: int = 10, rules: Rules | None = None) -> None:
        self.hub, self.random = Hub(BEGIN), Random(seed)
        self.faults = Faults(rates, Random(seed + 1), self.hub)
        self.ports = plain_ports(rules or Rules(shards=2), SimClock(self.hub, 0))
        self.report = IntakeReport()
        self.queue: dict[str, Sent] = {}
        self._visible: list[str] = []
        self._busy = 0
        self._at_once = at_once
        self._warm: list[tuple[ApiPorts, Services]] = []
        self._sent_until = BEGIN + seconds * 1_000
        for number in range(per_second * seconds):
            self.hub.at(BEGIN + number * 1_000 // per_second, lambda number=number: self._send(number))
        self.hub.at(BEGIN, self._poll)

    def run(self) -> IntakeReport:
        self.hub.run(self._sent_until + 60_000)
        self.faults.on = False
        self.hub.run(self._sent_until + WIND_DOWN_MS)
        return self._judge()

    def _send(self, number: int) -> None:
        text, jobs, letters = body_of(number, self.random)
        sender = f"{self.random.choice([*OWNERS])}:session"
        message = IntakeMessage(f"m{number}", "jobs", sender, self.hub.time, text)
        self.queue[message.id] = Sent(message, jobs, letters, self.hub.time)
        self._show(message.id, self.hub.time)
        if self.faults.strike("double", self.faults.rates.double):
            self._show(message.id, self.hub.time + self.random.choice((0, 500, 90_000)))

    def _show(self, id: str, at: int) -> None:
        """Let a message be received from this instant on."""
        self.hub.at(at, lambda: self._visible.append(id))

    def _poll(self) -> None:
        """Start invocations, as many as may run. A message that was deleted may still be delivered once more."""
        while self._visible and self._busy < self._at_once:
            batch, self._visible = self._visible[:TEN], self._visible[TEN:]
            self._busy += 1
            self.hub.spawn(lambda batch=batch: self._invoke(batch))
        left = self._busy or not all(sent.is_deleted for sent in self.queue.values())
        if left or self.hub.time < self._sent_until:
            self.hub.at(self.hub.time + POLL_MS, self._poll)

    def _invoke(self, ids: Sequence[str]) -> None:
        ports, own = self._warm.pop() if self._warm else self._begin()
        ended = False
        try:
            again = self.handle(self._received(ids), ports, own)
            for id in dict.fromkeys(ids):
                if id in again:
                    self._show(id, self.hub.time + again[id] * 1_000)
                else:
                    self.delete(id)
            ended = True
        finally:
            self._busy -= 1
            if ended:
                self._warm.append((ports, own))
            else:  # it died: the queue delivers the messages again after their time-out
                for id in dict.fromkeys(ids):
                    self._show(id, self.hub.time + VISIBILITY_MS)

    def handle(self, messages: Sequence[IntakeMessage], ports: ApiPorts, own: Services) -> dict[str, int]:
        """One invocation, as `lambdas/intake.py` makes it; the seconds until a message comes again."""
        again = intake(messages, ports, own).again
        if self.faults.strike("killed before it deletes", self.faults.rates.crash):
            raise Killed
        return again

    def delete(self, id: str) -> None:
        self.queue[id].is_deleted = True

    def _received(self, ids: Sequence[str]) -> list[IntakeMessage]:
        found = []
        for id in dict.fromkeys(ids):
            sent = self.queue[id]
            if not sent.is_deleted or self.random.random() < 0.5:
                sent.receives += 1
                found.append(replace(sent.message, receives=sent.receives))
        return found

    def _begin(self) -> tuple[ApiPorts, Services]:
        view: Any = self.ports.but(
            clock=SimClock(self.hub, self.faults.skew()), **{name: Faulty(getattr(self.ports, name), self.faults) for name in FAULTY}
        )
        return view, process(view)

    def _judge(self) -> IntakeReport:
        report, letters = self.report, self.ports.intake_letters.rows
        made = Counter(job.spec.payload["message"] for job in self.ports.jobs.rows.values())
        of_message = Counter(text.partition(".")[0] for text in made.elements())
        for id, sent in self.queue.items():
            jobs, number = of_message[id.removeprefix("m")], id.removeprefix("m")
            report.violations["left in the queue"] += not sent.is_deleted
            report.violations["lost"] += jobs < sent.jobs
            report.violations["made twice"] += jobs > sent.jobs or any(made[f"{number}.{place}"] > 1 for place in range(3))
            report.violations["dead letter of a good message"] += id in letters and not sent.letters
            report.violations["no dead letter"] += sent.letters > 0 and id not in letters
            report.violations["given up"] += sent.receives > MOST_RECEIVES
            report.most_receives = max(report.most_receives, sent.receives)
        report.violations = +report.violations
        report.messages, report.jobs, report.faults = len(self.queue), sum(made.values()), self.faults.counts
        return report
