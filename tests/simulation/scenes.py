"""`python -m tests.simulation.scenes [name] [--jobs N] [--seeds N]`: the engine at real sizes and in real outages, in virtual time.

    crowd          1,000,000 jobs of one user in one minute, among the jobs of twenty others
    instant        2,400,000 jobs of three users for one instant, more than a step holds in each slot, among the jobs of twenty others
    flood          1,000 jobs a second for now, of one user, for ten minutes: most go to the overflow of 16 shards
    resume         a lane of 500 jobs a second was paused for 30 minutes, 900,000 jobs wait; another lane runs 1,000 a second
    outages        each service, and all together, away for 30 s to an hour, or throttling
    deployments    functions on different settings, an empty ledger, a jobs table restored to the day before

The first four run the real tick and dispatch at the costs of `costs`, with executors that are only a rate (`crowds`). With fewer
`--jobs` than the full size, the functions' cores are slower, and the lanes and what a step holds are smaller by the same factor. So a
small scene takes its course as the full one does; the memory of a step is judged at full size only. Each scene prints its table and one
line of JSON. The exit code is 1 if a scene broke a promise.
"""

import argparse
import gc
import json
import logging
import os
import sys
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any

from scheduler.admission.lane_state import pause, resume
from scheduler.model import ids, slots
from scheduler.model.job import Lane
from scheduler.model.rules import Rules
from scheduler.pipeline.submit import Accepted, NewJob, Submission, submit_all
from tests.simulation import deployments, outages
from tests.simulation.crowds import SPEC, TAKES_MS, CrowdWorld
from tests.simulation.stepped import scaled
from tests.simulation.world import START

SMALL = 10_000  # jobs of a scene in the tests
CROWD, INSTANT, FLOOD, WAITING = 1_000_000, 2_400_000, 600_000, 900_000  # the full sizes
FIRST = START + 8 * slots.MINUTE  # the first minute with jobs; they are stored six minutes ahead
STORED_AHEAD = 6 * slots.MINUTE
TICK_AT = 7_000  # ms after the minute
MEMORY_MB = 400  # budget of a step
SHARDS, USUAL_SHARDS = 64, Rules().shards


def crowd(jobs: int = SMALL, *, rate: float = 10_000, minutes: int = 12) -> dict[str, Any]:
    """Run a minute with `jobs` of one user. The lane starts `rate` jobs a second at full size."""
    slowness = CROWD / jobs
    rules = _rules({Lane.ONE_TIME: rate / slowness, Lane.RECURRING: 0}, slowness)
    world = CrowdWorld({Lane.ONE_TIME: rate / slowness}, rules=rules, slowness=slowness)
    others = max(int(600 / slowness**0.5), 60)  # a minute
    span = range(-1, 4)
    world.store("crowd", Lane.ONE_TIME, [FIRST + number % 60 * 1_000 for number in range(jobs)], created_at=START - STORED_AHEAD)
    for minute in span:
        for number in range(others):
            at = FIRST + minute * slots.MINUTE + number * slots.MINUTE // others
            world.store(f"other{number % 20}", Lane.ONE_TIME, [at], created_at=START - STORED_AHEAD)
    until = FIRST + minutes * slots.MINUTE
    world.keep_ticking(START + TICK_AT, until)
    with scaled(slowness):
        _run(world, until)
    return {"scene": "crowd", "crowd": world.waits("crowd"), "others": world.waits("other")} | world.result()


def instant(jobs: int = SMALL) -> dict[str, Any]:
    """Run a minute with `jobs` of three users for one instant, in the usual number of slots."""
    return instant_result(instant_world(jobs))


def instant_world(jobs: int, *, rate: float = 10_000, minutes: int = 8, seed: int = 1) -> CrowdWorld:
    """Run the scene `instant`; the lane starts `rate` jobs a second at full size."""
    slowness = INSTANT / jobs
    rules = _rules({Lane.ONE_TIME: rate / slowness, Lane.RECURRING: 0}, slowness, shards=USUAL_SHARDS)
    world = CrowdWorld({Lane.ONE_TIME: rate / slowness}, rules=rules, slowness=slowness, seed=seed)
    for owner in range(3):
        world.store(f"crowd{owner}", Lane.ONE_TIME, [FIRST] * (jobs // 3), created_at=START - STORED_AHEAD)
    for number in range(300):
        world.store(f"other{number % 20}", Lane.ONE_TIME, [FIRST + (number - 60) * 1_000 + 500], created_at=START - STORED_AHEAD)
    until = FIRST + minutes * slots.MINUTE
    world.keep_ticking(START + TICK_AT, until)
    with scaled(slowness):
        _run(world, until)
    return world


def instant_result(world: CrowdWorld) -> dict[str, Any]:
    return {"scene": "instant", "crowd": world.waits("crowd"), "others": world.waits("other")} | world.result()


def flood(jobs: int = SMALL, *, rate: float = 500, minutes: int = 30) -> dict[str, Any]:
    """Post 1,000 jobs a second for now, for ten minutes at full size; the lane starts `rate` a second. Another user posts one a second."""
    slowness = FLOOD / jobs
    rules = _rules({Lane.ONE_TIME: rate / slowness, Lane.RECURRING: 0}, slowness, shards=USUAL_SHARDS)
    rules = replace(rules, direct_burst=max(int(200 / slowness), 1), direct_rate=max(int(100 / slowness), 1))
    world = CrowdWorld({Lane.ONE_TIME: rate / slowness}, rules=rules, slowness=slowness)
    together = 100
    every = int(together * slowness)  # ms between two calls

    def post(owner: str, count: int) -> None:
        asked = [Submission(NewJob(owner, SPEC), world.random.getrandbits(ids.RANDOM_BITS)) for _ in range(count)]
        made = submit_all(asked, world._ports(), direct=world._direct())
        world.stored += sum(isinstance(each, Accepted) for each in made)

    flood_s = 600
    world.each(every, FIRST, FIRST + flood_s * 1_000, lambda at: world.hub.spawn(lambda: post("flood", together)))
    world.each(1_000, FIRST + 500, FIRST + flood_s * 1_000, lambda at: world.hub.spawn(lambda: post("other", 1)))
    until = FIRST + minutes * slots.MINUTE
    world.keep_ticking(START + TICK_AT, until)
    with scaled(slowness):
        _run(world, until, since=FIRST + flood_s * 1_000)
    began = FIRST // 1_000
    starts = world.starts[Lane.ONE_TIME]
    by_minute = [sum(starts.get(began + 60 * minute + second, 0) for second in range(60)) for minute in range(minutes)]
    lane = {"starts_by_minute": by_minute, "lane_a_minute": round(60 * rate / slowness)}
    return {"scene": "flood", "flood": world.waits("flood"), "others": world.waits("other")} | lane | world.result()


def resumed(jobs: int = SMALL, *, rate: float = 500, other: float = 1_000, paused: int = 30, minutes: int = 40) -> dict[str, Any]:
    """Pause a lane for `paused` minutes, in which `jobs` become due; `other` jobs a second run in another lane all the time."""
    slowness = WAITING / jobs
    rates = {Lane.ONE_TIME: rate / slowness, Lane.RECURRING: 1.5 * other / slowness}
    rules = _rules(rates, slowness)
    world = CrowdWorld(rates, rules=rules, slowness=slowness)
    resume_at = FIRST + paused * slots.MINUTE
    until = resume_at + minutes * slots.MINUTE
    each = jobs // paused
    others = int(other / slowness * 60)

    def store(at: int) -> None:
        minute = at + STORED_AHEAD
        if minute < resume_at:
            instants = [minute + number * slots.MINUTE // each for number in range(each)]
            world.store("waiting", Lane.ONE_TIME, instants, created_at=at)
        instants = [minute + number * slots.MINUTE // others for number in range(others)]
        world.store("other", Lane.RECURRING, instants, created_at=at)

    world.each(slots.MINUTE, FIRST - STORED_AHEAD, until - STORED_AHEAD - slots.MINUTE, store)
    pause([Lane.ONE_TIME], "a scene", world.plain)
    world.hub.at(resume_at, lambda: resume([Lane.ONE_TIME], None, world.plain))
    world.keep_ticking(START + TICK_AT, until)
    _run(world, resume_at)
    before = world.waits("other")
    seen = len(world.delays["other"])
    began = time.process_time()
    _run(world, until, owner="waiting", count=each * paused)
    del world.delays["other"][:seen]
    starts = world.starts[Lane.ONE_TIME]
    first = [sum(starts.get(resume_at // 1_000 + 60 * minute + second, 0) for second in range(60)) for minute in range(minutes)]
    return {
        "scene": "resume",
        "waiting": each * paused,
        "drained": len(world.delays["waiting"]),
        "drained_by_minute": first,
        "lane_a_minute": round(60 * rates[Lane.ONE_TIME]),
        "other_before": before,
        "other_after": world.waits("other"),
        "seconds_after": round(time.process_time() - began, 1),
    } | world.result()


def all_outages(jobs: int = 200, *, seeds: int = 1) -> dict[str, Any]:
    """Run `seeds` worlds for each service and duration, and for each service that throttles for ten minutes."""
    away = [(service, lasts, 1.0) for service in outages.SERVICES for lasts in outages.LASTS_MS]
    away += [(service, 600_000, outages.THROTTLED) for service in outages.SERVICES]
    with ProcessPoolExecutor(initializer=_prepare) as pool:
        started = [
            [pool.submit(outages.suffer, service, lasts, share=share, jobs=jobs, seed=seed) for seed in range(1, seeds + 1)]
            for service, lasts, share in away
        ]
        return {"scene": "outages", "seeds": seeds, "rows": [outages.merged([one.result() for one in each]) for each in started]}


def all_deployments(jobs: int = 200) -> dict[str, Any]:
    """Run the scenes of `deployments`."""
    return {"scene": "deployments", "rows": [deployments.outcome(name, jobs) for name in deployments.SCENES]}


def _rules(rates: Mapping[Lane, float], slowness: float, *, shards: int = SHARDS) -> Rules:
    """Return the rules of a deployment with these lanes. A window is the number of jobs in a lane when all its executors are busy."""
    windows = {lane: max(int(rate * TAKES_MS / 1_000), 1) for lane, rate in rates.items()}
    return Rules(shards=shards, steps=1_000, windows=windows, max_backlog=max(int(Rules().max_backlog / slowness), 1))


def _run(world: CrowdWorld, until: int, *, since: int = 0, owner: str = "", count: int = 0) -> None:
    """Run minute by minute up to `until`, or until all jobs have ended (at `since` or later), or `count` of an owner have started."""
    while world.hub.time < until:
        world.hub.run(min(world.hub.time + slots.MINUTE, until))
        if not gc.isenabled():
            gc.collect()  # an ended dispatcher refers to itself, and to a million entries
        if world.hub.time >= since and not count and world.stored and world.ended == world.stored:
            return
        if count and len(world.delays[owner]) >= count:
            return


def broken(result: dict[str, Any]) -> list[str]:
    """Return the promises that a scene broke."""
    scene = result["scene"]
    if scene == "outages":
        return [f"{row['service']} {row['lasts_s']} s" for row in result["rows"] if not outages.is_sound(row)]
    if scene == "deployments":
        return [row["scene"] for row in result["rows"] if row["violations"]]
    found = list(result["violations"])
    if scene == "resume":
        found += ["waiting jobs left"] * (result["drained"] < result["waiting"])
        late = max(result[name].get("p99_s", 0) for name in ("other_before", "other_after"))
    else:
        found += ["jobs left"] * (result["left"] > 0)
        late = result["others"].get("p99_s", 0)
        busy = [starts for starts in result.get("starts_by_minute", ()) if starts][:-1]  # the last minute with work is no whole one
        found += ["lane idle"] * (min(busy, default=0) < BUSY * result.get("lane_a_minute", 0))
    found += ["others late"] * (late > OTHERS_S)
    if result["slowness"] == 1:  # in a smaller scene, pages and limits of a fixed size would count too much
        found += [f"{kind} over {MEMORY_MB} MB" for kind, held in result["memory_mb"].items() if held > MEMORY_MB]
    found += ["killed at its time limit"] * (result["killed_at_limit"] > 0)
    return found


BUSY = 0.9  # of its rate: a lane starts so many jobs a minute while others wait
OTHERS_S = 10  # the 99th percentile of the delays of the others: fair shares let a user's few jobs pass
SCENES: dict[str, tuple[Callable[..., dict[str, Any]], int]] = {
    "crowd": (crowd, CROWD),
    "instant": (instant, INSTANT),
    "flood": (flood, FLOOD),
    "resume": (resumed, WAITING),
    "outages": (all_outages, 200),
    "deployments": (all_deployments, 200),
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.scenes", description=(__doc__ or "").partition(":")[2].strip())
    parser.add_argument("names", nargs="*", metavar="name", help=f"of {', '.join(SCENES)} (default: all)")
    parser.add_argument("--jobs", type=int, help="jobs of the scene (default: its full size)")
    parser.add_argument("--seeds", type=int, default=1, help="worlds of each outage (default: 1)")
    args = parser.parse_args()
    if unknown := set(args.names) - set(SCENES):
        parser.error(f"there is no scene {', '.join(sorted(unknown))}")
    _prepare()
    gc.disable()
    wrong: list[str] = []
    for name in args.names or SCENES:
        scene, full = SCENES[name]
        scene = partial(scene, seeds=args.seeds) if name == "outages" else scene
        began = _processor_s()
        result = scene(args.jobs or full)
        gc.collect()
        breaks = broken(result)
        wrong += breaks
        print(f"{name}: {'broken: ' + ', '.join(breaks) if breaks else 'sound'}  ({_processor_s() - began:.0f} s of processor)")
        print(_table(result))
        print(json.dumps(result | {"broken": breaks}), flush=True)
    return 1 if wrong else 0


def _prepare() -> None:
    """Prepare a process for many worlds: each leaves cycles of objects behind."""
    logging.disable(logging.CRITICAL)
    gc.enable()


def _processor_s() -> float:
    """Return the processor time (s) of this process and of its children that have ended."""
    return sum(os.times()[:4])


def _table(result: dict[str, Any]) -> str:
    if result["scene"] == "outages":
        return outages.table(result["rows"])
    if result["scene"] == "deployments":
        rows = result["rows"]
        return "\n".join(
            f"    {row['scene']:12s} accepted {row['accepted']:6d}  lost {row['lost']:5d}  {row['violations']}" for row in rows
        )
    return "\n".join(f"    {name:22s} {value}" for name, value in result.items() if name not in ("scene", "examples"))


if __name__ == "__main__":
    sys.exit(main())
