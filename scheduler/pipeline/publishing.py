"""Publish entries as messages on the topic, those of a crowd in packs."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from scheduler.model.errors import Unavailable
from scheduler.model.job import CANARY_OWNER, DueEntry, JobKey, Lane, Message
from scheduler.pipeline import bundles, lead, packs
from scheduler.pipeline.departures import Departures
from scheduler.storage.ports import Ports

READY_FRESH_MS = 180_000  # an older report of pollers that are kept ready is ignored: `scale` reports every minute
RATE = 0.5  # jobs a millisecond, until the first publish has been measured


@dataclass(slots=True)
class DispatchResult:
    """The counts of one dispatcher. `handed_out` is False if it lost or never had the unit, parked it, or left it to another dispatcher."""

    published: int = 0
    canaries: int = 0  # those of the published jobs that are the scheduler's own
    refused: int = 0  # messages that the topic refused twice; they are sent again
    waited: int = 0  # jobs published late, since more were due than the lane could take
    left_paused: int = 0  # jobs left to reconciling: their lane was paused to the end of the minute
    handed_out: bool = False


@dataclass(slots=True)
class Publishing:
    """The messages of one dispatcher."""

    ports: Ports
    departures: Departures
    result: DispatchResult
    jobs_a_message: dict[Lane, float] = field(default_factory=dict)  # by the last publishing
    rate: float = RATE
    _ready: dict[Lane, int] = field(default_factory=dict)  # executors by the reports of `scale`, read when a crowd is published

    def _ready_executors(self, lane: Lane) -> float:
        """The executors of the pollers that are kept ready for this unit's crowds of the lane; 0 if there are none."""
        if lane not in self._ready:
            try:
                self._ready[lane] = self.ports.ledger.ready(lane, self.ports.clock.now() - READY_FRESH_MS)
            except Unavailable:
                self._ready[lane] = 0
        return self._ready[lane] * self.departures.flow.share

    def publish(self, entries: Sequence[DueEntry]) -> set[JobKey]:
        """Publish the entries; return the keys of the jobs whose messages the topic refused twice."""
        now = self.ports.clock.now()
        messages = self._packed(entries, now)
        refused = self.ports.lanes.publish(messages)
        if refused:
            refused = self.ports.lanes.publish(refused)
        keys = {single.key for message in refused for single in message.singles()}
        took = max(self.ports.clock.now() - now, 1)
        if len(entries) >= 50:
            self.rate = (self.rate + len(entries) / took) / 2
        self.result.published += len(entries) - len(keys)
        self.result.canaries += sum(entry.key.owner == CANARY_OWNER for entry in entries)
        self.result.refused += len(keys)
        return keys

    def _packed(self, entries: Sequence[DueEntry], now: int) -> list[Message]:
        """Return the messages of these jobs; a crowd travels in packs."""
        together = Counter(entry.lane for entry in entries)

        def most(first: Message) -> int:
            if first.due_at <= now:
                return packs.size(together[first.lane], self.departures.usual_executors, late=True)
            crowd, usual = self.departures.together((first.lane, packs.second(first.due_at))), self.departures.usual_executors
            return packs.size(crowd, usual, ready=self._ready_executors(first.lane)) if packs.is_crowd(crowd, usual) else 1

        messages = [self._message(entry, now) for entry in entries]
        early, rest = [each for each in messages if each.not_before], [each for each in messages if not each.not_before]
        packed = bundles.bundle(early) + packs.pack(rest, most, now)
        self.jobs_a_message |= {lane: jobs / sum(message.lane is lane for message in packed) for lane, jobs in together.items()}
        return packed

    def _message(self, entry: DueEntry, now: int) -> Message:
        is_early = self.departures.at_once and entry.due_at > now + self.ports.rules.hold_ms
        not_before = entry.due_at - self.departures.leads.get(entry.lane, lead.WARM_MS) if is_early else 0
        return Message(entry.key, entry.fence, entry.lane, entry.due_at, sent_at=now, not_before=not_before)
