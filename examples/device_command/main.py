"""Commands that reach devices at a set time.

python -m examples.device_command.main [--devices 20] [--seconds 5]
"""

import argparse
import json
import threading
import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from punctual import JobRequest, Punctual

from examples.receiver import Receiver


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--devices", type=int, default=20)
    options.add_argument("--seconds", type=float, default=5, help="from now to the instant of the command")
    arguments = options.parse_args()
    arrived: dict[str, float] = {}
    complete = threading.Event()

    def device(path: str, headers: Mapping[str, str], body: bytes) -> int:
        now = time.time()
        name = path.rsplit("/", 1)[1]
        arrived.setdefault(name, now)  # a command that is delivered twice is carried out once
        print(f"{datetime.fromtimestamp(now).strftime('%H:%M:%S.%f')[:-3]}  {name}: {json.loads(body)['command']}")
        if len(arrived) == arguments.devices:
            complete.set()
        return 200

    at = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=arguments.seconds + 1)
    with Punctual() as punctual, Receiver(device) as receiver:
        commands = [
            JobRequest(
                http={"method": "POST", "url": receiver.url(f"/devices/lamp-{number}"), "body": {"command": "on"}},
                execute_at=at,
                ordering_key=f"lamp-{number}",  # the commands of one device never overtake each other
                expires_at=at + timedelta(minutes=1),  # a lamp that is switched on much later is worse than a dark one
            )
            for number in range(arguments.devices)
        ]
        made = punctual.jobs.create_many(commands)
        for refused in made.errors:
            print(f"refused: {refused.error}")
        print(f"{made.accepted} commands for {at.strftime('%H:%M:%S.000')}")
        complete.wait(arguments.seconds + 60)
        jobs = [punctual.jobs.wait(job.id, timeout=60) for job in made.jobs]
    starts = sorted(job.start_delay_ms for job in jobs if job.start_delay_ms is not None)
    delays = sorted(round((one - at.timestamp()) * 1000) for one in arrived.values())
    if len(delays) < arguments.devices or len(starts) < arguments.devices:
        print(f"only {len(delays)} of {arguments.devices} devices got their command")
        return 1
    print(f"started {starts[0]} to {starts[-1]} ms after the instant, arrived after {delays[0]} to {delays[-1]} ms")
    return 0 if delays[0] >= 0 else 1


if __name__ == "__main__":
    raise SystemExit(main())
