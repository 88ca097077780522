"""The settings of a deployment that services read. A default is written here and nowhere else."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from scheduler.model.job import Lane
from scheduler.model.lifecycle import Retention

BATCH = {Lane.ONE_TIME: 10, Lane.RECURRING: 10, Lane.RETRY: 1}  # a retry runs alone: a job that kills its executor affects no other job
RETRY_SHARE, RETRY_LEAST = (
    5,
    5,
)  # a retry lane without a window is taken to have a fifth of the executors of the one-time lane, or this number


@dataclass(frozen=True, slots=True)
class Rules:
    """One record for all services; each reads the fields that concern it."""

    shards: int = 16  # slots per minute; may grow, never shrink (the ledger keeps the largest)
    units: int = 1  # dispatchers per minute
    hold_ms: int = 5_000  # how long before its instant an executor may claim a job and wait
    lead_ms: int = 2_500  # how long before its instant a job is published while no latency was measured lately: enough for a cold executor
    crowd_hold_ms: int = 20_000  # the same for the jobs of a pack: one executor that waits long with hundreds of jobs costs less than many
    ready_executors: int = 5  # executors of a lane that was quiet: Lambda reads five batches at once from a queue
    overdue_units: int = 4  # parallel dispatchers of past minutes: a backlog is processed in order, at a bounded rate
    steps: int = 5  # steps of the engine at once; Lambda begins with five for a queue
    operating: int = 1  # operations at work at once: whatever their number, they leave the other steps to the minutes
    max_backlog: int = 1_000  # a lane with more waiting messages is behind, and a reconcile adds no more to it
    windows: Mapping[Lane, int] = field(  # jobs in a lane when all its executors are busy; see `window`
        default_factory=lambda: {Lane.ONE_TIME: 1_000, Lane.RECURRING: 1_000}
    )
    crowds: Mapping[Lane, int] = field(default_factory=dict)  # jobs that a lane's executors can start at once; else: its window
    direct_burst: int = 200  # jobs of a user that one process enqueues directly at once ...
    direct_rate: int = 100  # ... and per second after that; the jobs beyond go to the overflow slots
    retention: Retention = field(default_factory=Retention)
    executors: int = 100  # maximum of executors for first attempts
    most_pollers: Mapping[Lane, int] = field(default_factory=dict)  # of a lane, if an alarm keeps some ready; others scale by AWS alone
    concurrency: Mapping[Lane, int] = field(default_factory=dict)  # executors of such a lane while it keeps no pollers ready
    lag_canary: bool = False  # scale posts a job every two minutes and measures its delay
    calls_at_once: int = 256  # most calls of the function `fetch` that one executor has in flight
    calls: int = 0  # most calls of `fetch` by all executors; 0: executors call URLs themselves
    max_jobs: int = 1_000_000  # open jobs of a user, unless an administrator sets another number; 0: any number
    creates_per_second: int = 1_000  # jobs of a user per second; 0: any number
    mails_per_day: int = 1_000  # recipients of mail of a user in 24 hours; 0: any number
    raw_http: bool = True  # jobs may call any URL; False: named targets only
    events: bool = False  # jobs may ask for events: the stage has an event bus
    all_events: bool = False  # ... and the ends of jobs that do not ask are put on it, too
    intake: bool = False  # the stage has intake queues
    traces: bool = False  # the stage exports spans: `model.trace`
    trace_ratio: float = 1.0  # ... of this part of the traces that begin here; the others begin elsewhere, with a decision
    allow_private_http: bool = False  # `http` jobs may call private and loopback addresses
    deployment: str = ""  # the name of the deployment: latencies that executors of another one measured are ignored
    one_shard: bool = False  # stream events name no shard, since the stream has one shard

    @property
    def traced(self) -> float | None:
        """The part of the traces that begin here whose spans are exported; None: the stage exports none."""
        return self.trace_ratio if self.traces else None

    def window(self, lane: Lane) -> int | None:
        """The jobs in a lane when all its executors are busy; None: unbounded. Of a retry lane that is not listed it is an estimate."""
        if lane is Lane.RETRY and lane not in self.windows and (first := self.windows.get(Lane.ONE_TIME)):
            return max(first // BATCH[Lane.ONE_TIME] // RETRY_SHARE, RETRY_LEAST)
        return self.windows.get(lane)

    def executors_of(self, lane: Lane) -> int | None:
        """The executors of a lane; None: unbounded."""
        window = self.window(lane)
        return None if window is None else max(window // BATCH[lane], 1)
