"""The workloads, the outcome of one run, and the figures of several. Pure."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from lab.judge import percentile

EARLY_MS = -1.0  # clocks are read in milliseconds
QUANTILES = (0, 1, 2, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 98, 99, 100)


@dataclass(frozen=True)
class Workload:
    """Jobs to create ahead: all for one instant, or at equal distances over `seconds`. `stored`: jobs for tomorrow that are there first.

    `one_by_one`: they are created at their instants, for now, so their delays count from the calls.
    """

    key: str
    count: int
    seconds: int = 0
    stored: int = 0
    calls: bool = False  # each job calls a URL on this machine, and its start is the arrival there
    one_by_one: bool = False

    @property
    def title(self) -> str:
        what = f"{self.count // self.seconds:,} a second for {self.seconds} s" if self.seconds else f"{self.count:,} at one instant"
        what = f"for now, one by one: {what}" if self.one_by_one else what
        return what + (", each calls a URL" if self.calls else "") + (f", {self.stored:,} stored for tomorrow" if self.stored else "")


def workloads(quick: bool) -> list[Workload]:
    if quick:
        return [Workload("burst", 1_000), Workload("steady", 250, seconds=5), Workload("now", 25, seconds=5, one_by_one=True)]
    return [
        Workload("burst", 1_000),
        Workload("crowd", 10_000),
        Workload("steady", 3_000, seconds=60),
        Workload("now", 200, seconds=40, one_by_one=True),
        Workload("http", 1_000, calls=True),
        Workload("stored", 1_000, stored=100_000),
    ]


@dataclass(frozen=True)
class Start:
    """A job's code began `delay_ms` after its instant."""

    job: str
    delay_ms: float


@dataclass(frozen=True)
class Spent:
    """Processor seconds of the client, the servers and the workers, while jobs were created and while they ran; the most memory
    before and after they ran."""

    create_s: float
    run_s: float
    memory_mb: float
    idle_percent: float  # of a core, while all jobs are stored and none is due


@dataclass(frozen=True)
class Outcome:
    """One run of one workload. Delays are in milliseconds; None if no job started."""

    p50: float | None
    p95: float | None
    p99: float | None
    most: float | None
    first: float | None
    lost: int  # not started within the patience of the run
    doubled: int
    early: int
    created_per_s: float
    cpu_ms_per_job: float
    run_cpu_ms_per_job: float
    memory_mb: float
    idle_percent: float
    quantiles: Sequence[float] = field(default_factory=list)  # at QUANTILES
    notes: Sequence[str] = ()


def outcome(work: Workload, starts: Sequence[Start], spent: Spent, created_s: float, notes: Sequence[str] = ()) -> Outcome:
    """Return the figures of a run. Of a job that started twice, the first start counts."""
    first: dict[str, float] = {}
    for start in starts:
        first[start.job] = min(start.delay_ms, first.get(start.job, start.delay_ms))
    delays = sorted(first.values())

    def share(percent: int) -> float | None:
        return _share(delays, percent) if delays else None

    return Outcome(
        share(50),
        share(95),
        share(99),
        share(100),
        delays[0] if delays else None,
        lost=work.count - len(first),
        doubled=len(starts) - len(first),
        early=sum(delay < EARLY_MS for delay in delays),
        created_per_s=round(work.count / max(created_s, 1e-9)),
        cpu_ms_per_job=round((spent.create_s + spent.run_s) * 1_000 / work.count, 3),
        run_cpu_ms_per_job=round(spent.run_s * 1_000 / work.count, 3),
        memory_mb=round(spent.memory_mb),
        idle_percent=round(spent.idle_percent, 1),
        quantiles=[_share(delays, percent) for percent in QUANTILES] if delays else [],
        notes=notes,
    )


def _share(delays: Sequence[float], percent: int) -> float:
    """Return the percentile of sorted delays by nearest rank, in tenths of a millisecond."""
    if percent == 0:
        return round(delays[0], 1)
    return percentile([round(delay * 10) for delay in delays], percent) / 10


def record(runs: Sequence[Outcome]) -> dict[str, Any]:
    """Return the runs of one contestant and workload with the median and the range of each figure, for JSON."""
    rows = [asdict(run) for run in runs]
    summary: dict[str, Any] = {}
    for name in (
        "p50",
        "p95",
        "p99",
        "most",
        "first",
        "created_per_s",
        "cpu_ms_per_job",
        "run_cpu_ms_per_job",
        "memory_mb",
        "idle_percent",
    ):
        values = [row[name] for row in rows if row[name] is not None]
        if len(values) == len(rows):
            summary[name] = {"median": round(statistics.median(values), 3), "least": min(values), "most": max(values)}
    for name in ("lost", "doubled", "early"):
        summary[name] = sum(row[name] for row in rows)
    return {"runs": rows, **summary}


def ratios(found: Mapping[str, Mapping[str, Mapping[str, Any]]], ours: str, floors: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return by workload and figure: ours, the best peer's name and figure, and the ratio. Floors (no schedulers) and peers that lost jobs
    are left out. `found`: records by contestant and workload."""
    result: dict[str, dict[str, Any]] = {}
    for key, own in found.get(ours, {}).items():
        result[key] = {}
        for figure in ("p50", "p99"):
            peers = {
                name: records[key][figure]["median"]
                for name, records in found.items()
                if name != ours and name not in floors and key in records and figure in records[key] and not records[key]["lost"]
            }
            if figure in own and peers:
                best = min(peers, key=lambda name: peers[name])
                mine = own[figure]["median"]
                ratio = round(mine / max(peers[best], 0.1), 2)
                result[key][figure] = {"ours": mine, "best": best, "its": peers[best], "ratio": ratio}
    return result
