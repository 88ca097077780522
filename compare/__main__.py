"""`make compare`: run Punctual's local stack and its peers one after the other on this machine, with the same work, and print tables.

    python -m compare                             all contestants and workloads, three rounds: some two hours
    python -m compare --quick                     two small workloads, one round: under ten minutes
    python -m compare --only punctual,pg-boss     some contestants
    python -m compare --works burst,steady        some workloads
    python -m compare --record compare            write bench/results/compare.json and the picture, for the docs

Each round starts each contestant with an empty store. A start delay is the time from a job's instant until its code begins. The machine
should do nothing else. Contestants that are not installed are skipped.
The curves are written to `.compare/compare.svg`; the last line is JSON.
The exit code is 1 if Punctual lost, doubled or started early a job, or did not run.
"""

import argparse
import json
import shutil
import time
import traceback
from collections import defaultdict
from pathlib import Path
from typing import Any

from bench.results import write
from compare import install, report
from compare.contestants import CONTESTANTS, OURS, Contestant, Session
from compare.course import receiver, run
from compare.work import Outcome, Workload, ratios, record, workloads
from local.failure import Trouble, exit_code
from local.home import REPOSITORY
from local.steps import console, step

ROUNDS = 3
PAUSE_S = 2  # between two workloads
FLOORS = [each.key for each in CONTESTANTS if each.floor]
TITLES = {each.key: each.title for each in CONTESTANTS}
SCHEDULER = "EventBridge Scheduler is not run: it starts a schedule within 60 s by its documentation; `make prove` measures it on AWS."


class Comparison:
    """The outcomes so far, by contestant and workload."""

    def __init__(self, works: list[Workload]) -> None:
        self.works = works
        self.outcomes: dict[str, dict[str, list[Outcome]]] = {}
        self.skipped: dict[str, str] = {}  # by contestant, or contestant and workload: why
        self.settings: dict[str, str] = {}
        self.versions: dict[str, dict[str, str]] = {}

    def round(self, contestant: Contestant) -> None:
        """Start a contestant, and run all workloads that it can."""
        key = contestant.key
        seen = self.outcomes.setdefault(key, defaultdict(list))
        folder = install.ROOT / "runs" / key
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        with receiver(folder) as urls, contestant.begin(folder, urls.log) as session:
            self._introduce(key, session)
            for work in self.works:
                if reason := contestant.cannot.get(work.key):
                    self.skipped[f"{key}.{work.key}"] = reason
                    continue
                try:
                    seen[work.key].append(self._run(contestant, session, work, urls.url))
                except (Trouble, TimeoutError) as error:
                    console.print(f"  [yellow]![/] {contestant.title}: {work.title}: {error}")
                    self.skipped[f"{key}.{work.key}"] = str(error).splitlines()[0]
                time.sleep(PAUSE_S)

    def _introduce(self, key: str, session: Session) -> None:
        if key not in self.settings:
            self.settings[key], self.versions[key] = session.settings, dict(session.versions)
            numbers = ", ".join(f"{name} {number}" for name, number in session.versions.items())
            console.print(f"    {numbers}: {session.settings}", markup=False)

    def _run(self, contestant: Contestant, session: Session, work: Workload, url: str) -> Outcome:
        if work.stored:
            with step(f"{contestant.title}: storing {work.stored:,} jobs for tomorrow"):
                session.store(work.stored)
                time.sleep(PAUSE_S)
        with step(f"{contestant.title}: {work.title}"):
            found = run(session, work, url)
        if found.p50 is None:
            console.print(f"      none of {work.count:,} jobs started", markup=False)
        else:
            lost = f", {found.lost:,} not started" if found.lost else ""
            console.print(f"      p50 {found.p50:,.1f} ms, p99 {found.p99:,.1f} ms{lost}; {'; '.join(found.notes)}", markup=False)
        return found

    def records(self) -> dict[str, dict[str, Any]]:
        return {key: {work: record(runs) for work, runs in seen.items() if runs} for key, seen in self.outcomes.items()}


def main() -> int:
    options = _options()
    works = [work for work in workloads(options.quick) if not options.works or work.key in options.works]
    if options.count:
        works = [Workload(**{**vars(work), "count": min(work.count, options.count)}) for work in works]
    if options.stored is not None:
        works = [Workload(**{**vars(work), "stored": min(work.stored, options.stored)}) for work in works]
    seen = Comparison(works)
    chosen = [each for each in CONTESTANTS if not options.only or each.key in options.only]
    ready = []
    for each in chosen:
        if missing := each.missing():
            seen.skipped[each.key] = missing
            console.print(f"  [yellow]![/] {each.title} is skipped. It needs: {missing}")
        else:
            ready.append(each)
    for number in range(1, options.rounds + 1):
        for each in ready:
            console.print(f"\nRound {number} of {options.rounds}: {each.title}", markup=False)
            try:
                seen.round(each)
            except Exception as error:  # one that does not start must not stop the others
                console.print(f"  ! {each.title}: {error}", markup=False)
                (install.ROOT / "runs" / f"{each.key}.error").write_text(traceback.format_exc())
                seen.skipped[each.key] = str(error).splitlines()[0] if str(error) else type(error).__name__
        if options.record:  # after each round, so that a run that is stopped has left those before
            _record(options.record, _content(seen, number))
    return _report(seen, options)


def _content(seen: Comparison, rounds: int) -> dict[str, Any]:
    records = seen.records()
    return {
        "rounds": rounds,
        "works": {work.key: work.title for work in seen.works},
        "titles": {key: TITLES[key] for key in records},
        "settings": seen.settings,
        "versions": seen.versions,
        "records": records,
        "ratios": ratios(records, OURS, FLOORS),
        "skipped": seen.skipped,
    }


def _record(name: str, content: dict[str, Any]) -> None:
    write(name, content)
    (REPOSITORY / "docs/images" / f"{name}.svg").write_text(_picture(content))


def _picture(content: dict[str, Any]) -> str:
    return report.picture(content["records"], TITLES, content["works"])


def _report(seen: Comparison, options: argparse.Namespace) -> int:
    content = _content(seen, options.rounds)
    records, titles = content["records"], content["works"]
    for work in seen.works:
        console.print(f"\n{work.title}\n", markup=False)
        for line in report.table(work.key, records, TITLES, seen.skipped):
            console.print(line, markup=False)
    console.print("\nPunctual against the best peer\n", markup=False)
    for line in report.ratio_table(content["ratios"], titles):
        console.print(line, markup=False)
    console.print(f"\n{SCHEDULER}", markup=False)
    (install.ROOT / "compare.svg").write_text(_picture(content))
    print(json.dumps(_short(content)))
    own = records.get(OURS, {})
    needs_ours = not options.only or OURS in options.only
    broken = any(record["lost"] or record["doubled"] or record["early"] for record in own.values())
    return 1 if broken or (needs_ours and not own) else 0


def _short(content: dict[str, Any]) -> dict[str, Any]:
    """Return the content without its single runs, for one line."""
    records = {
        name: {key: {figure: value for figure, value in record.items() if figure != "runs"} for key, record in each.items()}
        for name, each in content["records"].items()
    }
    return {**content, "records": records}


def _options() -> argparse.Namespace:
    def names(text: str) -> list[str]:
        return text.split(",")

    parser = argparse.ArgumentParser(
        prog="python -m compare",
        description="Run Punctual's local stack and its peers with the same work on this machine.",
        epilog="The last line is JSON. The exit code is 1 if Punctual lost, doubled or started early a job, or did not run.",
    )
    parser.add_argument("--only", type=names, default=[], help=f"contestants: {','.join(TITLES)} (default: all)")
    parser.add_argument("--works", type=names, default=[], help="workloads: burst,crowd,steady,http,stored (default: all)")
    parser.add_argument("--quick", action="store_true", help="two small workloads, one round: under ten minutes")
    parser.add_argument("--rounds", type=int, help=f"runs of each workload (default {ROUNDS}, or 1 with --quick)")
    parser.add_argument("--count", type=int, help="at most this many jobs a workload, to check that a driver works")
    parser.add_argument("--stored", type=int, help="at most this many jobs stored for tomorrow")
    parser.add_argument("--record", metavar="NAME", help="write bench/results/NAME.json and docs/images/NAME.svg")
    options = parser.parse_args()
    if unknown := [name for name in options.only if name not in TITLES]:
        raise Trouble(f"There is no contestant {', '.join(unknown)}. Choose from: {', '.join(TITLES)}")
    if unknown := [name for name in options.works if name not in {work.key for work in workloads(options.quick)}]:
        raise Trouble(f"There is no workload {', '.join(unknown)}{' with --quick' if options.quick else ''}.")
    options.rounds = options.rounds or (1 if options.quick else ROUNDS)
    Path(install.ROOT).mkdir(exist_ok=True)
    return options


if __name__ == "__main__":
    raise SystemExit(exit_code(main))
