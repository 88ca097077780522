"""Reminders a week, a day and an hour before an appointment, which can be moved and cancelled.

    python -m examples.reminders.main [--day 2]

With MAIL_TO set, reminders are mails of the stage's sender (type `email`); otherwise they are requests to this program.
"""

import argparse
import os
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from punctual import NotFound, Punctual

from examples.receiver import Receiver

AHEAD = {"week": timedelta(days=7), "day": timedelta(days=1), "hour": timedelta(hours=1)}


class Reminders:
    """The reminders of appointments. Each has a key, so that the calendar stores no ids of jobs."""

    def __init__(self, punctual: Punctual, receiver: Receiver, day: timedelta) -> None:
        self._punctual, self._receiver, self._day = punctual, receiver, day

    def plan(self, appointment: str, at: datetime) -> list[str]:
        """Create the reminders of an appointment, or move them. Return the ids of the jobs; reminders in the past are left out."""
        planned = []
        for name, ahead in AHEAD.items():
            due = at - ahead / timedelta(days=1) * self._day
            if due > datetime.now(UTC):
                content = self._content(appointment, name)
                job = self._punctual.jobs.create(**content, key=f"{appointment}-{name}", execute_at=due, expires_at=at)
                planned.append(job.id)
        return planned

    def cancel(self, appointment: str) -> int:
        """Cancel the reminders of an appointment that have not been sent. Return their number."""
        cancelled = 0
        for name in AHEAD:
            try:
                cancelled += self._punctual.jobs.cancel(key=f"{appointment}-{name}").status == "cancelled"
            except NotFound:
                pass  # it was sent, or never planned
        return cancelled

    def _content(self, appointment: str, name: str) -> dict[str, Any]:
        if to := os.environ.get("MAIL_TO"):
            text = f"Your appointment {appointment} is in one {name}."
            return {"type": "email", "payload": {"to": [to], "subject": "A reminder", "text": text}}
        return {"http": self._receiver.url(f"/{appointment}/{name}")}


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--day", type=float, default=2, help="how many seconds a day takes in this demonstration")
    day = timedelta(seconds=options.parse_args().day)
    sent: list[str] = []

    def remind(path: str, headers: Mapping[str, str], body: bytes) -> int:
        _, appointment, name = path.split("/")
        sent.append(f"{appointment}-{name}")
        print(f"{appointment} is in one {name}")
        return 200

    with Punctual() as punctual, Receiver(remind) as receiver:
        reminders = Reminders(punctual, receiver, day)
        now = datetime.now(UTC)
        jobs = reminders.plan("dentist", now + 9 * day)
        reminders.plan("haircut", now + 9 * day)
        print("planned: dentist and haircut in nine days")
        jobs += reminders.plan("dentist", now + 8 * day)
        print("moved: dentist to the day before")
        print(f"cancelled: haircut, {reminders.cancel('haircut')} reminders")
        for job in dict.fromkeys(jobs):
            punctual.jobs.wait(job, timeout=120)
    if os.environ.get("MAIL_TO"):
        return 0
    print(f"sent: {', '.join(sent)}")
    return 0 if sent == ["dentist-week", "dentist-day", "dentist-hour"] else 1


if __name__ == "__main__":
    raise SystemExit(main())
