"""A queue with a visibility timeout: a message that was received and not deleted appears again.

python -m examples.visibility_queue.main [--messages 6] [--seconds 3]
"""

import argparse
import threading
import uuid
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

from punctual import NotFound, Punctual

from examples.receiver import Receiver


@dataclass
class Message:
    """A message; `receipt` belongs to its last reader, and is None while the message is visible."""

    body: str
    receipt: str | None = None
    received: int = 0


class Queue:
    """Messages in memory. A job for each received message makes it visible again, by the key of the message."""

    def __init__(self, punctual: Punctual, visibility: float) -> None:
        self._punctual, self._visibility = punctual, visibility
        self._lock = threading.Condition()
        self._messages: dict[str, Message] = {}
        self._visible: deque[str] = deque()
        self.receiver = Receiver(self._appear)

    def send(self, body: str) -> None:
        with self._lock:
            name = uuid.uuid4().hex
            self._messages[name] = Message(body)
            self._visible.append(name)
            self._lock.notify()

    def receive(self, wait: float) -> tuple[str, str, Message] | None:
        """Return the name, the receipt and the message; None if none is visible within `wait` seconds."""
        with self._lock:
            if not self._lock.wait_for(lambda: bool(self._visible), wait):
                return None
            name = self._visible.popleft()
            message = self._messages[name]
            message.receipt, message.received = uuid.uuid4().hex, message.received + 1
        # If this program ends before the next line, no job makes the message visible. A real queue stores "hidden until" as well.
        url = self.receiver.url(f"/appear/{name}/{message.receipt}")
        # The job that made the message visible may not have ended yet: the new one takes the key from it.
        self._punctual.jobs.create(key=f"message-{name}", on_started="follow", delay=self._visibility, http=url, max_attempts=10)
        return name, message.receipt, message

    def delete(self, name: str, receipt: str) -> bool:
        """Delete a message. Return False if the receipt is old: the message has appeared again."""
        with self._lock:
            message = self._messages.get(name)
            if message is None or message.receipt != receipt:
                return False
            del self._messages[name]
        try:
            self._punctual.jobs.cancel(key=f"message-{name}")
        except NotFound:
            pass
        return True

    def _appear(self, path: str, headers: Mapping[str, str], body: bytes) -> int:
        _, _, name, receipt = path.split("/")
        with self._lock:
            message = self._messages.get(name)
            if message is not None and message.receipt == receipt:  # neither deleted nor received again
                message.receipt = None
                self._visible.append(name)
                self._lock.notify()
        return 200

    def __len__(self) -> int:
        with self._lock:
            return len(self._messages)


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--messages", type=int, default=6)
    options.add_argument("--seconds", type=float, default=3, help="how long a received message is invisible")
    arguments = options.parse_args()
    worked: list[str] = []
    with Punctual() as punctual:
        queue = Queue(punctual, arguments.seconds)
        with queue.receiver:
            for number in range(arguments.messages):
                queue.send(f"message {number}")
            while len(queue):
                found = queue.receive(arguments.seconds + 30)
                if found is None:
                    break
                name, receipt, message = found
                if message.received == 1 and message.body.endswith(("0", "3")):
                    print(f"{message.body}: received, and the reader dies")
                    continue
                print(f"{message.body}: received{' again' if message.received > 1 else ''}, worked on, deleted")
                worked.append(message.body)
                queue.delete(name, receipt)
    print(
        f"{len(worked)} of {arguments.messages} messages were worked on, each {'once' if len(set(worked)) == len(worked) else 'NOT ONCE'}"
    )
    return 0 if sorted(worked) == sorted(set(worked)) and len(worked) == arguments.messages else 1


if __name__ == "__main__":
    raise SystemExit(main())
